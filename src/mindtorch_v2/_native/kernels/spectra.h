/* Fourier transforms as functions on NumPy arrays. */
#ifndef MINDTORCH_SPECTRA_H
#define MINDTORCH_SPECTRA_H

#include <Python.h>

#include "counter.h"

/* Put the functions into the module; -1 on error. */
int spectra_add(PyObject *module);

extern Counter spectra_calls[];

#endif
