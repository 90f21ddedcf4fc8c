/* A NumPy ufunc with a shorter way for plain float32 arrays. */
#ifndef MINDTORCH_ELEMENTWISE_H
#define MINDTORCH_ELEMENTWISE_H

#include <Python.h>
#include <stddef.h>

/* A float32 array in row-major order that its memory is aligned for. */
int is_plain(PyObject *o);

/* Whether two stretches of memory overlap without being the same. */
int crosses(const float *a, const float *b, ptrdiff_t a_count, ptrdiff_t b_count);

/* Calls that went the shorter way, of one and of two operands, since they were last taken away. */
extern long long elementwise_calls[2];

/* Whether kernels that replace functions are on: `switch_elementwise` decides. */
extern int elementwise_enabled;

/* Put the type into the module; -1 on error. */
int elementwise_add(PyObject *module);

#endif
