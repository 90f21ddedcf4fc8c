/* Views: other shapes and strides on the same memory, as kernels that look at their arguments themselves. */
#include "direct.h"

#include <string.h>

#include "order.h"

/* A view of `a` that begins `offset` bytes after it. */
static PyObject *shown(PyArrayObject *a, int ndim, npy_intp *sizes, npy_intp *strides, npy_intp offset, int writable) {
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
    return (PyObject *)made;
}

/* The same; `aten::as_strided` in a profile. */
static PyObject *view_of(PyArrayObject *a, int ndim, npy_intp *sizes, npy_intp *strides, npy_intp offset, int writable) {
    PyObject *made = shown(a, ndim, sizes, strides, offset, writable);
    return made ? (PyObject *)step_strided(a, (PyArrayObject *)made) : NULL;
}

/* suits(array, leaf): whether a leaf may take over a gradient */
static PyObject *suits(PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyArray_CheckExact(args[0]) || !PyArray_CheckExact(args[1])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0], *leaf = (PyArrayObject *)args[1];
    if (!PyArray_SAMESHAPE(a, leaf)) return LEFT;
    int same = order_is_dense(leaf);
    if (!same) return PyBool_FromLong(PyArray_IS_C_CONTIGUOUS(a));
    for (int d = 0; d < PyArray_NDIM(a); d++)
        if (PyArray_DIM(a, d) == 1 ? !PyArray_STRIDE(a, d) : PyArray_STRIDE(a, d) != PyArray_STRIDE(leaf, d)) same = 0;
    return PyBool_FromLong(same);
}

/* from_strides(a, shape, byte_strides): any geometry within the memory that `a` is in, from where `a` begins */
static PyObject *from_strides(PyObject *const *args, Py_ssize_t count) {
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (count != 3 || !PyArray_CheckExact(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0], *owner = a;
    int ndim = sizes_of(args[1], sizes);
    if (ndim < 0 || PyLong_Check(args[1]) || PyLong_Check(args[2]) || sizes_of(args[2], strides) != ndim) return LEFT;
    while (PyArray_BASE(owner) && PyArray_CheckExact(PyArray_BASE(owner))) owner = (PyArrayObject *)PyArray_BASE(owner);
    if (!PyArray_SIZE(a) || !PyArray_IS_C_CONTIGUOUS(owner)) return LEFT;
    npy_intp low = PyArray_BYTES(a) - PyArray_BYTES(owner), high = low + PyArray_ITEMSIZE(a), most = PyArray_NBYTES(owner);
    for (int d = 0; d < ndim; d++) {
        npy_intp reach;
        if (sizes[d] < 1 || __builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) || reach > most || reach < -most)
            return LEFT;
        if (reach < 0) low += reach;
        else high += reach;
    }
    if (low < 0 || high > most) return LEFT;
    /* Memory that is written through `a`, or through its owner if `a` shows only some of it. */
    PyArrayObject *through = PyArray_IS_C_CONTIGUOUS(a) ? a : owner;
    Py_INCREF(PyArray_DESCR(a));
    PyArrayObject *made = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DESCR(a), ndim, sizes, strides, PyArray_BYTES(a),
        PyArray_FLAGS(through) & NPY_ARRAY_WRITEABLE, NULL);
    if (!made) return NULL;
    Py_INCREF(through);
    if (PyArray_SetBaseObject(made, (PyObject *)through)) {
        Py_DECREF(made);
        return NULL;
    }
    return (PyObject *)made;
}

/* Strides in bytes with which the memory of `a` has the shape `wanted`; 0 if that needs a copy. */
static int strides_as(PyArrayObject *a, int ndim, const npy_intp *wanted, npy_intp *strides) {
    int target = ndim - 1, last = PyArray_NDIM(a) - 1;
    npy_intp chunk = 1, base = last < 0 ? PyArray_ITEMSIZE(a) : PyArray_STRIDE(a, last);
    /* From the right, in chunks of evenly spaced memory. */
    for (int i = last; i >= 0; i--) {
        chunk *= PyArray_DIM(a, i);
        if (i && (PyArray_DIM(a, i - 1) == 1 || PyArray_STRIDE(a, i - 1) == chunk * base)) continue;
        npy_intp filled = 1;
        for (; target >= 0 && (filled < chunk || wanted[target] == 1); target--)
            strides[target] = filled * base, filled *= wanted[target];
        if (filled != chunk) return 0;
        if (i) base = PyArray_STRIDE(a, i - 1), chunk = 1;
    }
    for (int i = target; i >= 0; i--) {
        if (wanted[i] != 1) return 0;
        strides[i] = i + 1 == ndim ? PyArray_ITEMSIZE(a) : strides[i + 1] * wanted[i + 1];
    }
    return 1;
}

static PyObject *numbers_in(int count, const npy_intp *numbers, npy_intp unit) {
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made && i < count; i++) {
        PyObject *number = PyLong_FromSsize_t(numbers[i] / unit);
        if (!number) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, i, number);
    }
    return made;
}

/* reshaped(a, shape): the shape without a -1, and the strides in elements, or None where `a` is in row-major order or
   would have to be copied */
static PyObject *reshaped(PyObject *const *args, Py_ssize_t count) {
    npy_intp wanted[NPY_MAXDIMS], strides[NPY_MAXDIMS], known = 1;
    if (count != 2 || !PyArray_CheckExact(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = sizes_of(args[1], wanted), open = -1;
    npy_intp size = PyArray_SIZE(a), item = PyArray_ITEMSIZE(a);
    if (ndim < 0 || !size) return LEFT;
    for (int d = 0; d < ndim; d++) {
        if (wanted[d] == -1 && open < 0) open = d;
        else if (wanted[d] < 1 || __builtin_mul_overflow(known, wanted[d], &known)) return LEFT;
    }
    if (open >= 0) {
        if (size % known) return LEFT;
        wanted[open] = size / known, known = size;
    }
    if (known != size) return LEFT;
    int viewed = !PyArray_IS_C_CONTIGUOUS(a) && strides_as(a, ndim, wanted, strides);
    for (int d = 0; d < PyArray_NDIM(a); d++)
        if (PyArray_STRIDE(a, d) % item) return LEFT;
    PyObject *shape = numbers_in(ndim, wanted, 1), *steps = shape && viewed ? numbers_in(ndim, strides, item) : NULL;
    PyObject *made = shape && (steps || !viewed) ? PyTuple_Pack(2, shape, viewed ? steps : Py_None) : NULL;
    Py_XDECREF(shape), Py_XDECREF(steps);
    return made;
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

/* view(a, size): the same memory in another shape; no step of its own, so it is not reported */
static PyObject *view(PyObject *const *args, Py_ssize_t count) {
    npy_intp wanted[NPY_MAXDIMS], strides[NPY_MAXDIMS], known = 1;
    if (count != 2 || !PyArray_CheckExact(args[0]) || PyLong_Check(args[1])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_IS_C_CONTIGUOUS(a) && PyArray_SIZE(a) ? sizes_of(args[1], wanted) : -1;
    if (ndim < 0) return LEFT;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = known * PyArray_ITEMSIZE(a);
        if (wanted[d] < 1 || __builtin_mul_overflow(known, wanted[d], &known)) return LEFT;
    }
    if (known != PyArray_SIZE(a)) return LEFT;
    return shown(a, ndim, wanted, strides, 0, 1);
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

/* t(a): a matrix; `aten::transpose` is a step of its own */
static PyObject *transposed(PyObject *const *args, Py_ssize_t count) {
    if (count != 1 || !PyArray_CheckExact(args[0]) || PyArray_NDIM((PyArrayObject *)args[0]) != 2 || steps_are_heard())
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    npy_intp sizes[2] = {PyArray_DIM(a, 1), PyArray_DIM(a, 0)}, strides[2] = {PyArray_STRIDE(a, 1), PyArray_STRIDE(a, 0)};
    return shown(a, 2, sizes, strides, 0, 1);
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

/* split(a, split_size, dim): pieces of one length, the last one shorter if need be; each is a step of its own */
static PyObject *split(PyObject *const *args, Py_ssize_t count) {
    npy_intp sizes[NPY_MAXDIMS], each;
    if (count != 3 || !PyArray_CheckExact(args[0]) || !number_of(args[1], &each) || each < 1 || steps_are_heard())
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a), at = dim_of(args[2], ndim);
    if (at < 0 || !PyArray_SIZE(a)) return LEFT;
    npy_intp extent = PyArray_DIM(a, at), pieces = (extent - 1) / each + 1;
    memcpy(sizes, PyArray_DIMS(a), sizeof *sizes * (size_t)ndim);
    PyObject *made = PyList_New(pieces);
    for (npy_intp i = 0; made && i < pieces; i++) {
        sizes[at] = extent - i * each < each ? extent - i * each : each;
        PyObject *piece = shown(a, ndim, sizes, PyArray_STRIDES(a), i * each * PyArray_STRIDE(a, at), 1);
        if (!piece) Py_CLEAR(made);
        else PyList_SET_ITEM(made, i, piece);
    }
    return made;
}

DirectEntry views_direct[] = {{"suits", suits, 0}, {"split", split, 0}, {"from_strides", from_strides, 0}, {"reshaped", reshaped, 0}, {"expand", expand, 0}, {"permute", permute, 0}, {"transpose", transpose, 0}, {"t", transposed, 0}, {"view", view, 0},
                              {"squeeze", squeeze, 0}, {"unsqueeze", unsqueeze, 0}, {"select", select_one, 0},
                              {"slice", slice, 0}, {NULL, NULL, 0}};
