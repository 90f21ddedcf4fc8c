/* Random draws for the module. */
#ifndef MINDTORCH_RANDOM_H
#define MINDTORCH_RANDOM_H

#include <Python.h>

/* Put the functions into the module; -1 on error. */
int random_add(PyObject *module);

#endif
