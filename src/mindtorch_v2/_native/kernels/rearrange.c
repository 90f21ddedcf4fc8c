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

enum { CALLED_ADD_ROWS, CALLED_ALONG, CALLED_PICK, CALLED_ADD_SLICES };
Counter rearrange_calls[] = {{"add_rows", 0}, {"along", 0}, {"pick", 0}, {"add_slices", 0},
                             {NULL, 0}};

static int is_indices(PyObject *o) {
    PyArrayObject *a = (PyArrayObject *)o;
    return PyArray_Check(o) && PyArray_TYPE(a) == NPY_INT64 && PyArray_IS_C_CONTIGUOUS(a) && PyArray_ISBEHAVED_RO(a);
}

typedef struct {
    float *made;
    const float *given;
    const int64_t *index;
    npy_intp count, inner, others;
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

/* -- one index for each element, along the middle of (outer, others, inner) -- */

enum Along { TAKE, ADD_TO, PUT, ALONG_COUNT };
typedef struct {
    enum Along kind;
    char *many, *few;
    const int64_t *index;
    npy_intp others, count, inner, size;
    int one;     /* `few` is a single element */
    int strayed; /* an index was out of range */
} Elements;

/* CODE for each index: `at` is its place, `place` that of the element it names, `from` that of what is written there. */
#define EACH(CODE)                                                                                                     \
    if (inner == 1) /* rows, without the inner loop */                                                                 \
        for (npy_intp j = 0; j < it->count; j++) {                                                                     \
            npy_intp at = o * it->count + j, from = it->one ? 0 : at, place = (npy_intp)it->index[at];                 \
            uint64_t chosen = (uint64_t)place;                                                                         \
            (void)from, (void)chosen;                                                                                  \
            CODE;                                                                                                      \
        }                                                                                                              \
    else                                                                                                               \
        for (npy_intp j = 0; j < it->count; j++)                                                                       \
            for (npy_intp k = 0; k < inner; k++) {                                                                     \
                npy_intp at = (o * it->count + j) * inner + k, from = it->one ? 0 : at;                                \
                uint64_t chosen = (uint64_t)it->index[at];                                                             \
                npy_intp place = (npy_intp)(chosen * (uint64_t)inner) + k;                                             \
                (void)from;                                                                                            \
                CODE;                                                                                                  \
            }
#define EACH_OF(TYPE)                                                                                                  \
    do {                                                                                                               \
        TYPE *restrict many = (TYPE *)it->many + o * it->others * inner, *restrict few = (TYPE *)it->few;              \
        if (it->kind == TAKE) {                                                                                        \
            EACH(if (chosen < others) few[at] = many[place]; else strayed = 1)                                         \
        } else {                                                                                                       \
            EACH(many[place] = few[from])                                                                              \
        }                                                                                                              \
    } while (0)

static void along_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Elements copied = *(Elements *)work, *it = &copied; /* that nothing written may change */
    (void)share;
    npy_intp inner = it->inner;
    uint64_t others = (uint64_t)it->others;
    int strayed = 0;
    for (ptrdiff_t o = begin; o < end; o++) {
        if (it->kind == ADD_TO) {
            float *restrict many = (float *)it->many + o * it->others * inner, *restrict few = (float *)it->few;
            EACH(many[place] += few[from])
        } else if (it->size == 4) {
            EACH_OF(uint32_t);
        } else {
            EACH_OF(uint64_t);
        }
    }
    if (strayed) ((Elements *)work)->strayed = 1;
}

/* along(kind, many, index, few, dim): few = many[index], many[index] += few or many[index] = few, by elements along
   `dim`; `few` may be a single one for the last two. True, or False if an index is out of range, with nothing written
   to `many`. */
static PyObject *along(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 5)) return NULL;
    long kind = PyLong_AsLong(args[0]), dim = PyLong_AsLong(args[4]);
    if (PyErr_Occurred()) return NULL;
    PyArrayObject *many = (PyArrayObject *)args[1], *index = (PyArrayObject *)args[2], *few = (PyArrayObject *)args[3];
    if (kind < 0 || kind >= ALONG_COUNT) return wrong("unknown kind");
    if (!PyArray_Check(args[1]) || !PyArray_Check(args[3]) || !is_indices(args[2]) || !PyArray_ISCARRAY_RO(many) ||
        !PyArray_ISCARRAY_RO(few) || !PyArray_ISWRITEABLE(kind == TAKE ? few : many) ||
        PyArray_DESCR(many) != PyArray_DESCR(few) || (kind == ADD_TO && PyArray_TYPE(many) != NPY_FLOAT) ||
        (PyArray_ITEMSIZE(many) != 4 && PyArray_ITEMSIZE(many) != 8) || PyArray_TYPE(many) == NPY_OBJECT)
        return wrong("expected contiguous arrays of one type and indices");
    Elements it = {.kind = (enum Along)kind, .many = PyArray_DATA(many), .few = PyArray_DATA(few),
                   .index = PyArray_DATA(index), .inner = 1, .size = PyArray_ITEMSIZE(many),
                   .one = kind != TAKE && PyArray_NDIM(few) == 0};
    if (PyArray_NDIM(many) != PyArray_NDIM(index) || dim < 0 || dim >= PyArray_NDIM(many) ||
        (!it.one && !PyArray_SAMESHAPE(few, index)))
        return wrong("expected an index for each element");
    npy_intp outer = 1, size = PyArray_SIZE(index);
    for (int d = 0; d < PyArray_NDIM(many); d++) {
        if (d != dim && PyArray_DIM(many, d) != PyArray_DIM(index, d)) return wrong("expected an index for each element");
        if (d < dim) outer *= PyArray_DIM(many, d);
        else if (d > dim) it.inner *= PyArray_DIM(many, d);
    }
    it.others = PyArray_DIM(many, dim), it.count = PyArray_DIM(index, dim);
    if (kind != TAKE) {
        /* The sign is set where an index is negative, or beyond the last. */
        uint64_t signs = 0, last = (uint64_t)it.others - 1;
        for (npy_intp i = 0; i < size; i++) signs |= (uint64_t)it.index[i] | (last - (uint64_t)it.index[i]);
        if (signs >> 63) Py_RETURN_FALSE;
    }
    rearrange_calls[CALLED_ALONG].calls++;
    UNLOCKED(size > MANY, pool_run(along_share, &it, outer, 1 + SHARE / (it.count * it.inner + 1)));
    return PyBool_FromLong(!it.strayed);
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
static PyMethodDef METHODS[] = {FAST(add_rows), FAST(along), FAST(pick), FAST(add_slices),
                                {NULL, NULL, 0, NULL}};

int rearrange_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
