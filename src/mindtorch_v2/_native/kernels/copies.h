/* Kernels that fill memory and copy it in another order. */
#ifndef MINDTORCH_COPIES_H
#define MINDTORCH_COPIES_H

#include <Python.h>

#include "counter.h"

/* Put the functions into the module; -1 on error. */
int copies_add(PyObject *module);

extern Counter copies_calls[];

#endif
