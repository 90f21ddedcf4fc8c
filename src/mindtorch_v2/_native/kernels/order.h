/* How the result of an elementwise op lies in memory where its operands are not in row-major order: PyTorch's rule. The
   first operand says which of two dimensions is the outer one; where it shows elements twice, the next one does. */
#pragma once

#include <string.h>

/* Which of two dimensions is the inner one: below 0 the first, above 0 the second, 0 if no operand knows. */
static int order_compare(const npy_intp (*steps)[NPY_MAXDIMS], int operands, const npy_intp *sizes, int first, int second) {
    for (int i = 0; i < operands; i++) {
        npy_intp one = steps[i][first], other = steps[i][second];
        if (!one || !other) continue;
        if (one != other) return one < other ? -1 : 1;
        if (sizes[first] > sizes[second]) return 1;
    }
    return 0;
}

/* Whether the elements fill their memory, each at a place of its own. */
static int order_is_dense(PyArrayObject *a) {
    npy_intp expected = PyArray_ITEMSIZE(a);
    if (PyArray_IS_C_CONTIGUOUS(a)) return 1;
    for (int left = PyArray_NDIM(a), d; left; left--) { /* from the innermost dimension on */
        for (d = 0; d < PyArray_NDIM(a); d++)
            if (PyArray_DIM(a, d) != 1 && PyArray_STRIDE(a, d) == expected) break;
        if (d == PyArray_NDIM(a)) break;
        expected *= PyArray_DIM(a, d);
    }
    return expected == PyArray_NBYTES(a);
}

/* The same, and the strides of all operands are those of the first. */
static int order_is_given(PyArrayObject *const *arrays, int operands) {
    PyArrayObject *first = arrays[0];
    for (int i = 1; i < operands; i++)
        if (!PyArray_SAMESHAPE(first, arrays[i]) ||
            memcmp(PyArray_STRIDES(first), PyArray_STRIDES(arrays[i]), sizeof(npy_intp) * (size_t)PyArray_NDIM(first)))
            return 0;
    return order_is_dense(first);
}

/* New memory for the result of operands of one itemsize, or NULL: with an error, or if NumPy's own order will do. */
static inline PyArrayObject *order_result(PyArrayObject *const *arrays, int operands, int type) {
    npy_intp steps[2][NPY_MAXDIMS], sizes[NPY_MAXDIMS], size = 1;
    int dims = 0, order[NPY_MAXDIMS];
    for (int i = 0; i < operands; i++)
        if (PyArray_NDIM(arrays[i]) > dims) dims = PyArray_NDIM(arrays[i]);
    if (dims < 2) return NULL;
    for (int d = 0; d < dims; d++) {
        sizes[d] = 1;
        for (int i = 0; i < operands; i++) {
            int own = d - dims + PyArray_NDIM(arrays[i]);
            npy_intp extent = own < 0 ? 1 : PyArray_DIM(arrays[i], own);
            if (extent != 1 && sizes[d] != 1 && extent != sizes[d]) return NULL;
            if (extent != 1) sizes[d] = extent;
        }
        size *= sizes[d];
    }
    if (!size) return NULL;
    for (int i = 0; i < operands; i++)
        for (int d = 0; d < dims; d++) {
            int own = d - dims + PyArray_NDIM(arrays[i]);
            int spread = own < 0 || (PyArray_DIM(arrays[i], own) == 1 && sizes[d] != 1);
            steps[i][d] = spread ? 0 : PyArray_STRIDE(arrays[i], own);
        }
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(dims, sizes, type);
    if (!made) return NULL;
    npy_intp item = PyArray_ITEMSIZE(made);
    if (order_is_given(arrays, operands)) {
        for (int d = 0; d < dims; d++) PyArray_STRIDES(made)[d] = steps[0][d] / PyArray_ITEMSIZE(arrays[0]) * item;
    } else {
        for (int d = 0; d < dims; d++) order[d] = dims - 1 - d; /* the innermost first */
        for (int last = 1; last < dims; last++) {
            int moving = last;
            for (int at = last - 1; at >= 0; at--) {
                int found = order_compare((const npy_intp(*)[NPY_MAXDIMS])steps, operands, sizes, order[at], order[moving]);
                if (found < 0) break;
                if (!found) continue;
                int other = order[at];
                order[at] = order[moving], order[moving] = other;
                moving = at;
            }
        }
        for (int d = 0; d < dims; d++) {
            PyArray_STRIDES(made)[order[d]] = item;
            item *= sizes[order[d]];
        }
    }
    PyArray_UpdateFlags(made, NPY_ARRAY_UPDATE_ALL);
    return made;
}
