/* Arrays put together: one copy into the result, shared among threads. Kernels that look at their arguments themselves. */
#include "direct.h"

#include <string.h>

#include "arguments.h"
#include "kernels.h"

enum { MOST_JOINED = 64 };

/* Each array has a chunk in every row of the result; `ends` says where it ends there. In bytes. */
typedef struct {
    char *made;
    const char *from[MOST_JOINED];
    npy_intp chunk[MOST_JOINED], ends[MOST_JOINED], count, row;
} Joined;

/* A part of the result's bytes. */
static void join_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Joined *it = work;
    (void)share;
    npy_intp row = begin / it->row, at = begin % it->row, k = 0;
    while (at >= it->ends[k]) k++;
    for (npy_intp size; begin < end; begin += size) {
        size = it->ends[k] - at;
        if (size > end - begin) size = end - begin;
        memcpy(it->made + begin, it->from[k] + row * it->chunk[k] + (at - (it->ends[k] - it->chunk[k])), (size_t)size);
        at += size;
        while (k < it->count && at == it->ends[k]) k++;
        if (k == it->count) {
            k = 0, at = 0, row++;
            while (k < it->count - 1 && !it->ends[k]) k++;
        }
    }
}

/* Rows of which each array has one element of 4 or 8 bytes. */
#define TAKE_TURNS(TYPE)                                                                                               \
    for (npy_intp k = 0; k < it->count; k++) {                                                                         \
        const TYPE *from = (const TYPE *)it->from[k];                                                                  \
        TYPE *to = (TYPE *)it->made + k;                                                                               \
        for (ptrdiff_t i = begin; i < end; i++) to[i * it->count] = from[i];                                           \
    }

static void turns_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Joined *it = work;
    (void)share;
    if (it->chunk[0] == 4) TAKE_TURNS(uint32_t)
    else TAKE_TURNS(uint64_t)
}

/* The arrays of a list or tuple, dense and of one type; how many, or 0 for what is left to others. */
static Py_ssize_t arrays_of(PyObject *o, PyObject ***items) {
    if (!PyList_Check(o) && !PyTuple_Check(o)) return 0;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
    *items = PySequence_Fast_ITEMS(o);
    if (count > MOST_JOINED) return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_dense((*items)[i]) ||
            PyArray_DESCR((PyArrayObject *)(*items)[i]) != PyArray_DESCR((PyArrayObject *)(*items)[0]) ||
            PyArray_NDIM((PyArrayObject *)(*items)[i]) != PyArray_NDIM((PyArrayObject *)(*items)[0]))
            return 0;
    return count;
}

/* A result of these sizes, whose rows begin at dimension `dim` of the arrays. */
static PyObject *joined(PyObject **items, Py_ssize_t count, int dim, int ndim, npy_intp *sizes) {
    Joined it = {.count = count};
    int turns = 1;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyArrayObject *a = (PyArrayObject *)items[k];
        npy_intp chunk = PyArray_ITEMSIZE(a);
        for (int d = dim; d < PyArray_NDIM(a); d++) chunk *= PyArray_DIM(a, d);
        it.from[k] = PyArray_DATA(a), it.chunk[k] = chunk, it.row += chunk, it.ends[k] = it.row;
        turns = turns && (chunk == 4 || chunk == 8) && chunk == it.chunk[0] && chunk == PyArray_ITEMSIZE(a);
    }
    PyArrayObject *made = new_of((PyArrayObject *)items[0], ndim, sizes);
    if (!made) return NULL;
    npy_intp bytes = PyArray_NBYTES(made);
    it.made = PyArray_DATA(made);
    if (!bytes) return (PyObject *)made;
    if (turns) UNLOCKED(bytes > 8 * MANY, pool_run(turns_share, &it, bytes / it.row, 1 + SHARE / count));
    else UNLOCKED(bytes > 8 * MANY, pool_run(join_share, &it, bytes, 16 * SHARE));
    return (PyObject *)made;
}

/* cat(arrays, dim) */
static PyObject *cat(PyObject *const *args, Py_ssize_t count) {
    PyObject **items;
    npy_intp sizes[NPY_MAXDIMS];
    Py_ssize_t arrays = count == 2 ? arrays_of(args[0], &items) : 0;
    if (!arrays) return LEFT;
    PyArrayObject *first = (PyArrayObject *)items[0];
    int ndim = PyArray_NDIM(first), dim = dim_of(args[1], ndim);
    if (dim < 0) return LEFT;
    memcpy(sizes, PyArray_DIMS(first), sizeof *sizes * (size_t)ndim);
    for (Py_ssize_t k = 1; k < arrays; k++)
        for (int d = 0; d < ndim; d++) {
            npy_intp size = PyArray_DIM((PyArrayObject *)items[k], d);
            if (d == dim) sizes[d] += size;
            else if (size != sizes[d]) return LEFT;
        }
    return joined(items, arrays, dim, ndim, sizes);
}

/* stack(arrays, dim): a `cat` and a view, in one */
static PyObject *stack(PyObject *const *args, Py_ssize_t count) {
    PyObject **items;
    npy_intp sizes[NPY_MAXDIMS];
    Py_ssize_t arrays = count == 2 && !steps_are_heard() ? arrays_of(args[0], &items) : 0;
    if (!arrays) return LEFT;
    PyArrayObject *first = (PyArrayObject *)items[0];
    int ndim = PyArray_NDIM(first), dim = ndim + 1 < NPY_MAXDIMS ? dim_of(args[1], ndim + 1) : -1;
    if (dim < 0) return LEFT;
    for (Py_ssize_t k = 1; k < arrays; k++)
        if (!PyArray_SAMESHAPE(first, (PyArrayObject *)items[k])) return LEFT;
    for (int d = 0; d < ndim; d++) sizes[d + (d >= dim)] = PyArray_DIM(first, d);
    sizes[dim] = arrays;
    return joined(items, arrays, dim, ndim + 1, sizes);
}

DirectEntry joins_direct[] = {{"cat", cat, 0}, {"stack", stack, 0}, {NULL, NULL, 0}};
