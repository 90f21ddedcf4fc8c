/* NumPy's arrays in C, and what kernels ask of arrays that they are given. */
#ifndef MINDTORCH_ARRAYS_H
#define MINDTORCH_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* NumPy's table of functions: `module.c` imports it, with IMPORTS_ARRAYS, and all files use it. */
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_kernels_array
#ifndef IMPORTS_ARRAYS
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#define DIM(O, I) PyArray_DIM((PyArrayObject *)(O), I)
#define DATA(O) PyArray_DATA((PyArrayObject *)(O))

/* Whether it is an array of this type and so many dimensions in row-major order, and may be written to if that is due. */
static inline int is_array(PyObject *o, int type, int ndim, int written) {
    PyArrayObject *a = (PyArrayObject *)o;
    return PyArray_Check(o) && PyArray_TYPE(a) == type && PyArray_NDIM(a) == ndim && PyArray_IS_C_CONTIGUOUS(a) &&
           PyArray_ISBEHAVED_RO(a) && (!written || PyArray_ISWRITEABLE(a));
}

/* The same, of a shape. */
static inline int is_shaped(PyObject *o, int type, int written, int ndim, const npy_intp *shape) {
    return is_array(o, type, ndim, written) && PyArray_CompareLists(PyArray_DIMS((PyArrayObject *)o), shape, ndim);
}
#define IS_SHAPED(O, TYPE, WRITTEN, ...)                                                                               \
    is_shaped(O, TYPE, WRITTEN, (int)(sizeof(npy_intp[]){__VA_ARGS__} / sizeof(npy_intp)), (npy_intp[]){__VA_ARGS__})

/* The same, of the shape of an array. */
static inline int is_like(PyObject *o, int type, int written, PyObject *other) {
    PyArrayObject *a = (PyArrayObject *)other;
    return is_shaped(o, type, written, PyArray_NDIM(a), PyArray_DIMS(a));
}

#endif
