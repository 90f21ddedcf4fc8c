/* Views: other shapes and strides on the same memory, as kernels that look at their arguments themselves. */
#include "direct.h"

#include <string.h>

/* A view of `a` that begins `offset` bytes after it; `aten::as_strided` in a profile. */
static PyObject *view_of(PyArrayObject *a, int ndim, npy_intp *sizes, npy_intp *strides, npy_intp offset, int writable) {
    Py_INCREF(PyArray_DESCR(a));
    PyArrayObject *made = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DESCR(a), ndim, sizes, strides, PyArray_BYTES(a) + offset,
        writable ? PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE : 0, NULL);
    if (!made) return NULL;
    Py_INCREF(a);
    if (PyArray_SetBaseObject(made, (PyObject *)a)) {
        Py_DECREF(made);
        return NULL;
    }
    return (PyObject *)step_strided(a, made);
}

/* expand(a, size, implicit) */
static PyObject *expand(PyObject *const *args, Py_ssize_t count) {
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (count < 2 || !PyArray_CheckExact(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyTuple_Check(args[1]) || PyList_CheckExact(args[1]) ? sizes_of(args[1], sizes) : -1;
    int lead = ndim - PyArray_NDIM(a), repeated = 0;
    if (ndim < 0 || lead < 0) return LEFT;
    for (int d = 0; d < ndim; d++) {
        npy_intp have = d < lead ? 1 : PyArray_DIM(a, d - lead);
        if (d >= lead && (sizes[d] == -1 || sizes[d] == have)) {
            sizes[d] = have, strides[d] = PyArray_STRIDE(a, d - lead);
        } else {
            if (have != 1 || sizes[d] < 0) return LEFT;
            strides[d] = 0;
            /* What shows an element twice is not to be written to. */
            repeated |= d < lead ? sizes[d] > 1 : 1;
        }
    }
    return view_of(a, ndim, sizes, strides, 0, !repeated);
}

/* permute(a, dims) */
static PyObject *permute(PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[NPY_MAXDIMS], sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    char used[NPY_MAXDIMS] = {0};
    if (count != 2 || !PyArray_CheckExact(args[0]) || PyLong_Check(args[1])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a);
    if (!ndim || sizes_of(args[1], dims) != ndim) return LEFT;
    for (int d = 0; d < ndim; d++) {
        npy_intp from = dims[d] < 0 ? dims[d] + ndim : dims[d];
        if (from < 0 || from >= ndim || used[from]) return LEFT;
        used[from] = 1;
        sizes[d] = PyArray_DIM(a, from), strides[d] = PyArray_STRIDE(a, from);
    }
    return view_of(a, ndim, sizes, strides, 0, 1);
}

/* transpose(a, dim0, dim1) */
static PyObject *transpose(PyObject *const *args, Py_ssize_t count) {
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (count != 3 || !PyArray_CheckExact(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a), first = dim_of(args[1], ndim), second = dim_of(args[2], ndim);
    if (first < 0 || second < 0) return LEFT;
    memcpy(sizes, PyArray_DIMS(a), sizeof *sizes * (size_t)ndim);
    memcpy(strides, PyArray_STRIDES(a), sizeof *strides * (size_t)ndim);
    sizes[first] = PyArray_DIM(a, second), strides[first] = PyArray_STRIDE(a, second);
    sizes[second] = PyArray_DIM(a, first), strides[second] = PyArray_STRIDE(a, first);
    return view_of(a, ndim, sizes, strides, 0, 1);
}

/* squeeze(a, dim): one dimension, or some */
static PyObject *squeeze(PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[NPY_MAXDIMS], sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    char gone[NPY_MAXDIMS] = {0};
    if (count != 2 || !PyArray_CheckExact(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a), named = sizes_of(args[1], dims), kept = 0;
    if (!ndim || named < 0) return LEFT;
    for (int i = 0; i < named; i++) {
        npy_intp dim = dims[i] < 0 ? dims[i] + ndim : dims[i];
        if (dim < 0 || dim >= ndim || gone[dim]) return LEFT;
        gone[dim] = 1;
    }
    for (int d = 0; d < ndim; d++)
        if (!gone[d] || PyArray_DIM(a, d) != 1) sizes[kept] = PyArray_DIM(a, d), strides[kept++] = PyArray_STRIDE(a, d);
    return view_of(a, kept, sizes, strides, 0, 1);
}

/* unsqueeze(a, dim): the new dimension has the stride that it would have in row-major order */
static PyObject *unsqueeze(PyObject *const *args, Py_ssize_t count) {
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (count != 2 || !PyArray_CheckExact(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a), at = ndim + 1 < NPY_MAXDIMS ? dim_of(args[1], ndim + 1) : -1;
    if (at < 0) return LEFT;
    for (int d = 0; d < ndim; d++)
        sizes[d + (d >= at)] = PyArray_DIM(a, d), strides[d + (d >= at)] = PyArray_STRIDE(a, d);
    sizes[at] = 1;
    strides[at] = at < ndim ? PyArray_DIM(a, at) * PyArray_STRIDE(a, at) : PyArray_ITEMSIZE(a);
    return view_of(a, ndim + 1, sizes, strides, 0, 1);
}

/* select(a, dim, index) */
static PyObject *select_one(PyObject *const *args, Py_ssize_t count) {
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS], index;
    if (count != 3 || !PyArray_CheckExact(args[0]) || !PyLong_CheckExact(args[2])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a), at = dim_of(args[1], ndim);
    if (at < 0 || !number_of(args[2], &index)) return LEFT;
    if (index < 0) index += PyArray_DIM(a, at);
    if (index < 0 || index >= PyArray_DIM(a, at)) return LEFT;
    for (int d = 0, kept = 0; d < ndim; d++)
        if (d != at) sizes[kept] = PyArray_DIM(a, d), strides[kept++] = PyArray_STRIDE(a, d);
    return view_of(a, ndim - 1, sizes, strides, index * PyArray_STRIDE(a, at), 1);
}

/* A bound of a slice within a dimension; 0 if `o` is no number. */
static int bound_of(PyObject *o, npy_intp size, npy_intp missing, npy_intp *made) {
    if (o == Py_None) return *made = missing, 1;
    if (!number_of(o, made)) return 0;
    if (*made < 0) *made += size;
    *made = *made < 0 ? 0 : *made > size ? size : *made;
    return 1;
}

/* slice(a, dim, start, end, step) */
static PyObject *slice(PyObject *const *args, Py_ssize_t count) {
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS], start, end, step;
    if (count != 5 || !PyArray_CheckExact(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a), at = dim_of(args[1], ndim);
    if (at < 0) return LEFT;
    npy_intp size = PyArray_DIM(a, at);
    if (!bound_of(args[2], size, 0, &start) || !bound_of(args[3], size, size, &end) || !PyLong_CheckExact(args[4]) ||
        !number_of(args[4], &step) || step < 1 || end <= start)
        return LEFT;
    memcpy(sizes, PyArray_DIMS(a), sizeof *sizes * (size_t)ndim);
    memcpy(strides, PyArray_STRIDES(a), sizeof *strides * (size_t)ndim);
    sizes[at] = (end - start - 1) / step + 1;
    strides[at] *= step;
    return view_of(a, ndim, sizes, strides, start * PyArray_STRIDE(a, at), 1);
}

DirectEntry views_direct[] = {{"expand", expand, 0}, {"permute", permute, 0}, {"transpose", transpose, 0},
                              {"squeeze", squeeze, 0}, {"unsqueeze", unsqueeze, 0}, {"select", select_one, 0},
                              {"slice", slice, 0}, {NULL, NULL, 0}};
