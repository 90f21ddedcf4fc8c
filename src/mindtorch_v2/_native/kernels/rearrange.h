/* Kernels that move numbers by index or add them where an index says. */
#ifndef MINDTORCH_REARRANGE_H
#define MINDTORCH_REARRANGE_H

#include <Python.h>

#include "counter.h"

/* Put the functions into the module; -1 on error. */
int rearrange_add(PyObject *module);

extern Counter rearrange_calls[];

#endif
