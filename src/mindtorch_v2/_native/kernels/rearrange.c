/* Rows picked and added. Memory decides their speed, so one version serves all processors. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_kernels_array
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <string.h>

#include "arguments.h"
#include "elementwise.h"
#include "kernels.h"
#include "rearrange.h"

enum { CALLED_ADD_ROWS, CALLED_TAKE, CALLED_ADD_ALONG, CALLED_PICK, CALLED_ADD_SLICES };
Counter rearrange_calls[] = {{"add_rows", 0}, {"take_along", 0}, {"add_along", 0}, {"pick", 0}, {"add_slices", 0},
                             {NULL, 0}};

static int is_indices(PyObject *o) {
    PyArrayObject *a = (PyArrayObject *)o;
    return PyArray_Check(o) && PyArray_TYPE(a) == NPY_INT64 && PyArray_IS_C_CONTIGUOUS(a) && PyArray_ISBEHAVED_RO(a);
}

typedef struct {
    float *made;
    const float *given;
    const int64_t *index;
    npy_intp count, inner, others, length;
} Moves;

/* Shares are columns: whoever has one adds all rows in their order. */
static void add_rows_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Moves *it = work;
    (void)share;
    for (npy_intp r = 0; r < it->count; r++) {
        if (it->index[r] < 0) continue;
        float *restrict to = it->made + it->index[r] * it->inner;
        const float *restrict from = it->given + r * it->inner;
        for (ptrdiff_t j = begin; j < end; j++) to[j] += from[j];
    }
}

/* add_rows(made, index, rows): made[index[i]] += rows[i]; a negative index leaves its row out */
static PyObject *add_rows(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 3)) return NULL;
    PyArrayObject *made = (PyArrayObject *)args[0], *rows = (PyArrayObject *)args[2];
    if (!is_plain(args[0]) || !is_indices(args[1]) || !is_plain(args[2]) || !PyArray_ISWRITEABLE(made) ||
        PyArray_NDIM(made) != 2 || PyArray_NDIM(rows) != 2 || PyArray_DIM(made, 1) != PyArray_DIM(rows, 1) ||
        PyArray_SIZE((PyArrayObject *)args[1]) != PyArray_DIM(rows, 0))
        return wrong("expected two plain matrices and an index for each row");
    Moves it = {.made = PyArray_DATA(made), .given = PyArray_DATA(rows), .index = PyArray_DATA((PyArrayObject *)args[1]),
                .count = PyArray_DIM(rows, 0), .inner = PyArray_DIM(made, 1)};
    for (npy_intp i = 0; i < it.count; i++)
        if (it.index[i] >= PyArray_DIM(made, 0)) return wrong("an index is beyond the last row");
    rearrange_calls[CALLED_ADD_ROWS].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(add_rows_share, &it, it.inner, 1 + 2 * SHARE / (it.count + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* `made` is (rows, count), `given` (rows, others) or the other way round; indices are (rows, count). */
static void take_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Moves *it = work;
    (void)share;
    for (ptrdiff_t r = begin; r < end; r++)
        for (npy_intp i = 0; i < it->count; i++)
            it->made[r * it->count + i] = it->given[r * it->others + it->index[r * it->count + i]];
}

static void add_along_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Moves *it = work;
    (void)share;
    for (ptrdiff_t r = begin; r < end; r++)
        for (npy_intp i = 0; i < it->count; i++)
            it->made[r * it->others + it->index[r * it->count + i]] += it->given[r * it->length + i];
}

static int along_last(PyObject *const *args, Moves *it, npy_intp *rows, int adds) {
    PyArrayObject *index = (PyArrayObject *)args[1], *picked = (PyArrayObject *)args[adds ? 0 : 2];
    PyArrayObject *other = (PyArrayObject *)args[adds ? 2 : 0];
    if (!is_plain(args[0]) || !is_indices(args[1]) || !is_plain(args[2]) ||
        !PyArray_ISWRITEABLE((PyArrayObject *)args[0]) || PyArray_NDIM(index) != 2 || PyArray_NDIM(picked) != 2 ||
        PyArray_NDIM(other) != 2 || PyArray_DIM(picked, 0) != PyArray_DIM(index, 0) ||
        PyArray_DIM(other, 0) != PyArray_DIM(index, 0) || PyArray_DIM(other, 1) != PyArray_DIM(index, 1))
        return wrong("expected plain matrices and a matrix of indices"), 0;
    it->made = PyArray_DATA((PyArrayObject *)args[0]), it->given = PyArray_DATA((PyArrayObject *)args[2]);
    it->index = PyArray_DATA(index), it->count = PyArray_DIM(index, 1), it->others = PyArray_DIM(picked, 1);
    it->length = PyArray_DIM(other, 1), *rows = PyArray_DIM(index, 0);
    npy_intp size = PyArray_SIZE(index);
    uint64_t most = 0; /* seen as unsigned, negative indices are large */
    for (npy_intp i = 0; i < size; i++) most = (uint64_t)it->index[i] > most ? (uint64_t)it->index[i] : most;
    if (size && most >= (uint64_t)it->others) return wrong("an index is out of range"), 0;
    return 1;
}

/* take_along(made, index, given): made[i, j] = given[i, index[i, j]] */
static PyObject *take_along(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Moves it = {0};
    npy_intp rows;
    if (!counted(count, 3) || !along_last(args, &it, &rows, 0)) return NULL;
    rearrange_calls[CALLED_TAKE].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(take_share, &it, rows, 1 + SHARE / (it.count + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* add_along(made, index, given): made[i, index[i, j]] += given[i, j] */
static PyObject *add_along(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Moves it = {0};
    npy_intp rows;
    if (!counted(count, 3) || !along_last(args, &it, &rows, 1)) return NULL;
    rearrange_calls[CALLED_ADD_ALONG].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(add_along_share, &it, rows, 1 + SHARE / (it.count + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* Slices along the middle of (outer, others, inner); `count` of them are picked, or added to. */
static void pick_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Moves it = *(Moves *)work;
    (void)share;
    for (ptrdiff_t o = begin; o < end; o++) {
        float *to = it.made + o * it.count * it.inner;
        const float *from = it.given + o * it.others * it.inner;
        if (it.inner == 1) for (npy_intp j = 0; j < it.count; j++) to[j] = from[it.index[j]];
        else
            for (npy_intp j = 0; j < it.count; j++)
                memcpy(to + j * it.inner, from + it.index[j] * it.inner, sizeof(float) * (size_t)it.inner);
    }
}

static void add_slices_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Moves it = *(Moves *)work;
    (void)share;
    for (ptrdiff_t o = begin; o < end; o++) {
        float *restrict to = it.made + o * it.others * it.inner;
        const float *restrict from = it.given + o * it.count * it.inner;
        if (it.inner == 1) for (npy_intp j = 0; j < it.count; j++) to[it.index[j]] += from[j];
        else
            for (npy_intp j = 0; j < it.count; j++)
                for (npy_intp i = 0; i < it.inner; i++) to[it.index[j] * it.inner + i] += from[j * it.inner + i];
    }
}

static PyObject *slices(PyObject *const *args, Py_ssize_t count, int adds) {
    if (!counted(count, 3)) return NULL;
    PyArrayObject *many = (PyArrayObject *)args[adds ? 0 : 2], *few = (PyArrayObject *)args[adds ? 2 : 0];
    PyArrayObject *index = (PyArrayObject *)args[1];
    if (!is_plain(args[0]) || !is_indices(args[1]) || !is_plain(args[2]) ||
        !PyArray_ISWRITEABLE((PyArrayObject *)args[0]) || PyArray_NDIM(many) != 3 || PyArray_NDIM(few) != 3 ||
        PyArray_NDIM(index) != 1 || PyArray_DIM(index, 0) != PyArray_DIM(few, 1) ||
        PyArray_DIM(many, 0) != PyArray_DIM(few, 0) || PyArray_DIM(many, 2) != PyArray_DIM(few, 2))
        return wrong("expected arrays of slices and an index for each");
    Moves it = {.made = PyArray_DATA((PyArrayObject *)args[0]), .given = PyArray_DATA((PyArrayObject *)args[2]),
                .index = PyArray_DATA(index), .count = PyArray_DIM(few, 1), .inner = PyArray_DIM(many, 2),
                .others = PyArray_DIM(many, 1)};
    for (npy_intp i = 0; i < it.count; i++)
        if (it.index[i] < 0 || it.index[i] >= it.others) return wrong("an index is out of range");
    rearrange_calls[adds ? CALLED_ADD_SLICES : CALLED_PICK].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(adds ? add_slices_share : pick_share, &it, PyArray_DIM(many, 0),
                                    1 + SHARE / (it.count * it.inner + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* pick(made, index, given): made[:, j] = given[:, index[j]] */
static PyObject *pick(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    return slices(args, count, 0);
}

/* add_slices(made, index, given): made[:, index[j]] += given[:, j] */
static PyObject *add_slices(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    return slices(args, count, 1);
}

#define FAST(NAME) {#NAME, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {FAST(add_rows), FAST(take_along), FAST(add_along), FAST(pick), FAST(add_slices),
                                {NULL, NULL, 0, NULL}};

int rearrange_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
