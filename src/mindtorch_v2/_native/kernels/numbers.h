/* Formulas, reductions, scans and conversions as functions on NumPy arrays. */
#ifndef MINDTORCH_NUMBERS_H
#define MINDTORCH_NUMBERS_H

#include <Python.h>

#include "counter.h"

/* Put the functions into the module; -1 on error. */
int numbers_add(PyObject *module);

extern Counter numbers_calls[];

#endif
