/* Kernels that look at their arguments themselves.

   `Direct(name, function)` is called as the function is. The kernel of that name in C computes what it knows: arrays of
   the common types and layouts, arguments without a mistake. It answers everything else with LEFT, and then, and while
   kernels are switched off, the function is called with the same arguments. A small call so costs one call. */
#ifndef MINDTORCH_DIRECT_H
#define MINDTORCH_DIRECT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef PY_ARRAY_UNIQUE_SYMBOL
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_kernels_array
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "counter.h"

/* What a kernel returns for what it leaves to the function; not counted as a reference. */
#define LEFT Py_NotImplemented

/* A new reference, NULL with an error, or LEFT. */
typedef PyObject *(*DirectKernel)(PyObject *const *args, Py_ssize_t count);

typedef struct {
    const char *name;
    DirectKernel run;
    long long calls; /* of those that were not left */
} DirectEntry;

/* Each file's kernels; ends with a name of NULL. */
extern DirectEntry rearrange_direct[];

/* Put the type into the module; -1 on error. */
int direct_add(PyObject *module);

/* Put the counts of calls into a dictionary; -1 on error. */
int direct_count(PyObject *counts);

/* -- steps that have a row of their own in a profile --

   Each is done here, by one call, unless somebody hears of ops: then the function does it that `set_step` was given. */

/* Uninitialised memory in row-major order: `aten::empty`. */
PyArrayObject *step_empty(int ndim, npy_intp *sizes, int type);

/* The same in the shape and type of an array: `aten::empty_like`. */
PyArrayObject *step_empty_like(PyArrayObject *like);

/* An array in row-major order in another shape of as many elements: `aten::view`. Takes the reference. */
PyArrayObject *step_view(PyArrayObject *a, int ndim, npy_intp *sizes);

/* What is already of type int64, asked to be: `aten::to`. -1 on error. */
int step_to_int64(PyArrayObject *a);

/* -- what kernels ask of their arguments -- */

/* An array in row-major order that its memory is aligned for, with elements that are only bytes. */
static inline int is_dense(PyObject *o) {
    PyArrayObject *a = (PyArrayObject *)o;
    return PyArray_CheckExact(o) && PyArray_ISCARRAY_RO(a) && !PyDataType_REFCHK(PyArray_DESCR(a));
}

static inline int is_of(PyObject *o, int type) { return is_dense(o) && PyArray_TYPE((PyArrayObject *)o) == type; }

/* A dimension counted from the front, or -1. */
static inline int dim_of(PyObject *o, int ndim) {
    if (!PyLong_CheckExact(o)) return -1;
    int over;
    long dim = PyLong_AsLongAndOverflow(o, &over);
    if (over || dim < -ndim || dim >= ndim) return -1;
    return (int)(dim < 0 ? dim + ndim : dim);
}

/* Uninitialised memory in row-major order, of an array's type. */
static inline PyArrayObject *new_of(PyArrayObject *like, int ndim, npy_intp *sizes) {
    Py_INCREF(PyArray_DESCR(like));
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(like), ndim, sizes, NULL, NULL, 0, NULL);
}

/* Whether two arrays in row-major order have no memory in common. */
static inline int are_apart(PyArrayObject *a, PyArrayObject *b) {
    const char *x = PyArray_BYTES(a), *y = PyArray_BYTES(b);
    return x + PyArray_NBYTES(a) <= y || y + PyArray_NBYTES(b) <= x;
}

#endif
