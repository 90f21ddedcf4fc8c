/* Factors of matrices as functions on NumPy arrays. */
#ifndef MINDTORCH_FACTORS_H
#define MINDTORCH_FACTORS_H

#include <Python.h>

#include "counter.h"

/* Put the functions into the module; -1 on error. */
int factors_add(PyObject *module);

extern Counter factors_calls[];

#endif
