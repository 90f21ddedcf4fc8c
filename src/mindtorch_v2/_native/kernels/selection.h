/* Choosing among the numbers of a row; distances; connectionist temporal classification. */
#ifndef MINDTORCH_SELECTION_H
#define MINDTORCH_SELECTION_H

#include <Python.h>

#include "counter.h"

/* Put the functions into the module; -1 on error. */
int selection_add(PyObject *module);

extern Counter selection_calls[];

#endif
