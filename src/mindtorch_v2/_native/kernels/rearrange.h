/* Kernels that move numbers by index or add them up along a dimension. */
#ifndef MINDTORCH_REARRANGE_H
#define MINDTORCH_REARRANGE_H

#include <Python.h>

/* Put the functions into the module; -1 on error. */
int rearrange_add(PyObject *module);

/* How often each of them has run, with names; ends with a name of NULL. */
typedef struct {
    const char *name;
    long long calls;
} Counter;
extern Counter rearrange_calls[];

#endif
