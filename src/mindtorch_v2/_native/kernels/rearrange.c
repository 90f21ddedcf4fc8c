/* Rows picked and added. Memory decides their speed, so one version serves all processors. */
#include "arrays.h"

#include <string.h>

#include "arguments.h"
#include "direct.h"
#include "elementwise.h"
#include "kernels.h"
#include "rearrange.h"

enum { CALLED_ADD_ROWS, CALLED_ALONG, CALLED_ADD_SLICES };
Counter rearrange_calls[] = {{"add_rows", 0}, {"along", 0}, {"add_slices", 0},
                             {NULL, 0}};

/* More than this is shared among threads by others. */
enum { FEW_BYTES = 1 << 15 };

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

/* few = many[index], many[index] += few or many[index] = few along `dim`; all in row-major order, of one type. 1, 0 if an
   index is out of range, with nothing written to `many`, or -1 if shapes do not fit. */
static int move_elements(enum Along kind, PyArrayObject *many, PyArrayObject *index, PyArrayObject *few, int dim) {
    Elements it = {.kind = kind, .many = PyArray_DATA(many), .few = PyArray_DATA(few),
                   .index = PyArray_DATA(index), .inner = 1, .size = PyArray_ITEMSIZE(many),
                   .one = kind != TAKE && PyArray_NDIM(few) == 0};
    if (PyArray_NDIM(many) != PyArray_NDIM(index) || dim < 0 || dim >= PyArray_NDIM(many) ||
        (!it.one && !PyArray_SAMESHAPE(few, index)))
        return -1;
    npy_intp outer = 1, size = PyArray_SIZE(index);
    for (int d = 0; d < PyArray_NDIM(many); d++) {
        if (d != dim && PyArray_DIM(many, d) != PyArray_DIM(index, d)) return -1;
        if (d < dim) outer *= PyArray_DIM(many, d);
        else if (d > dim) it.inner *= PyArray_DIM(many, d);
    }
    it.others = PyArray_DIM(many, dim), it.count = PyArray_DIM(index, dim);
    if (kind != TAKE) {
        /* The sign is set where an index is negative, or beyond the last. */
        uint64_t signs = 0, last = (uint64_t)it.others - 1;
        for (npy_intp i = 0; i < size; i++) signs |= (uint64_t)it.index[i] | (last - (uint64_t)it.index[i]);
        if (signs >> 63) return 0;
    }
    rearrange_calls[CALLED_ALONG].calls++;
    UNLOCKED(size > MANY, pool_run(along_share, &it, outer, 1 + SHARE / (it.count * it.inner + 1)));
    return !it.strayed;
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
    int done = move_elements((enum Along)kind, many, index, few, (int)dim);
    if (done < 0) return wrong("expected an index for each element");
    return PyBool_FromLong(done);
}

/* Slices along the middle of (outer, others, inner); `count` of them are added to. */
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

/* add_slices(made, index, given): made[:, index[j]] += given[:, j] */
static PyObject *add_slices(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 3)) return NULL;
    PyArrayObject *many = (PyArrayObject *)args[0], *few = (PyArrayObject *)args[2], *index = (PyArrayObject *)args[1];
    if (!is_plain(args[0]) || !is_indices(args[1]) || !is_plain(args[2]) || !PyArray_ISWRITEABLE(many) ||
        PyArray_NDIM(many) != 3 || PyArray_NDIM(few) != 3 || PyArray_NDIM(index) != 1 ||
        PyArray_DIM(index, 0) != PyArray_DIM(few, 1) || PyArray_DIM(many, 0) != PyArray_DIM(few, 0) ||
        PyArray_DIM(many, 2) != PyArray_DIM(few, 2))
        return wrong("expected arrays of slices and an index for each");
    Moves it = {.made = PyArray_DATA(many), .given = PyArray_DATA(few), .index = PyArray_DATA(index),
                .count = PyArray_DIM(few, 1), .inner = PyArray_DIM(many, 2), .others = PyArray_DIM(many, 1)};
    for (npy_intp i = 0; i < it.count; i++)
        if (it.index[i] < 0 || it.index[i] >= it.others) return wrong("an index is out of range");
    rearrange_calls[CALLED_ADD_SLICES].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(add_slices_share, &it, PyArray_DIM(many, 0), 1 + SHARE / (it.count * it.inner + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* -- kernels that look for themselves -- */

static int has_words(PyArrayObject *a) { return PyArray_ITEMSIZE(a) == 4 || PyArray_ITEMSIZE(a) == 8; }

/* Indices of int64 in row-major order, for an array of as many dimensions: a new reference, or NULL. */
static PyArrayObject *indices_for(PyObject *o, PyArrayObject *many) {
    PyArrayObject *index = (PyArrayObject *)o;
    if (!PyArray_CheckExact(o) || PyArray_TYPE(index) != NPY_INT64 || !PyArray_ISBEHAVED_RO(index) ||
        PyArray_NDIM(index) != PyArray_NDIM(many) || !PyArray_SIZE(index))
        return NULL;
    /* Many that lie otherwise may be one for a whole slice, which the function sees; copying them takes longer. */
    if (!PyArray_IS_C_CONTIGUOUS(index) && PyArray_NBYTES(index) > FEW_BYTES) return NULL;
    PyArrayObject *dense = PyArray_GETCONTIGUOUS(index);
    if (!dense) PyErr_Clear();
    return dense;
}

/* gather(a, dim, index, sparse_grad) */
static PyObject *gather(PyObject *const *args, Py_ssize_t count) {
    if (count < 3 || !is_dense(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0], *index, *made;
    int dim = dim_of(args[1], PyArray_NDIM(a));
    if (dim < 0 || !has_words(a) || !(index = indices_for(args[2], a))) return LEFT;
    if (!(made = new_of(a, PyArray_NDIM(index), PyArray_DIMS(index)))) return Py_DECREF(index), NULL;
    int done = move_elements(TAKE, a, index, made, dim);
    Py_DECREF(index);
    if (done == 1 && !step_to_int64((PyArrayObject *)args[2])) return (PyObject *)made;
    Py_DECREF(made);
    return done == 1 ? NULL : LEFT;
}

static PyObject *scatter_into(PyObject *const *args, Py_ssize_t count, enum Along kind) {
    if (count != 4 || !is_dense(args[0]) || !is_dense(args[3])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0], *few = (PyArrayObject *)args[3], *index;
    int dim = dim_of(args[1], PyArray_NDIM(a));
    if (dim < 0 || !PyArray_NDIM(few) || !has_words(a) || PyArray_DESCR(a) != PyArray_DESCR(few) || !PyArray_ISWRITEABLE(a) ||
        (kind == ADD_TO && PyArray_TYPE(a) != NPY_FLOAT) || !PyArray_SIZE(a) || !are_apart(a, few) ||
        !(index = indices_for(args[2], a)))
        return LEFT;
    int done = are_apart(a, index) ? move_elements(kind, a, index, few, dim) : -1;
    Py_DECREF(index);
    if (done != 1) return LEFT;
    if (step_to_int64((PyArrayObject *)args[2])) return NULL;
    Py_INCREF(args[0]);
    return args[0];
}

/* scatter_add(a, dim, index, source), scatter(a, dim, index, source): `a` itself */
static PyObject *scatter_add(PyObject *const *args, Py_ssize_t count) { return scatter_into(args, count, ADD_TO); }
static PyObject *scatter(PyObject *const *args, Py_ssize_t count) { return scatter_into(args, count, PUT); }

/* scatter_value(a, dim, index, number): `a` itself */
static PyObject *scatter_value(PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !is_dense(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0], *index, *one;
    int dim = dim_of(args[1], PyArray_NDIM(a)), type = PyArray_TYPE(a), over = 0;
    float number = 0;
    long long whole = 0;
    if (type == NPY_FLOAT && PyFloat_CheckExact(args[3])) number = (float)PyFloat_AS_DOUBLE(args[3]);
    else if ((type == NPY_FLOAT || type == NPY_INT64) && PyLong_CheckExact(args[3]))
        whole = PyLong_AsLongLongAndOverflow(args[3], &over), number = (float)whole;
    else return LEFT;
    if (dim < 0 || over || !PyArray_ISWRITEABLE(a) || !PyArray_SIZE(a) || !(index = indices_for(args[2], a)))
        return LEFT;
    if (!(one = new_of(a, 0, NULL))) return Py_DECREF(index), NULL;
    if (type == NPY_FLOAT) *(float *)PyArray_DATA(one) = number;
    else *(int64_t *)PyArray_DATA(one) = whole;
    int done = are_apart(a, index) ? move_elements(PUT, a, index, one, dim) : -1;
    Py_DECREF(index), Py_DECREF(one);
    if (done != 1) return LEFT;
    if (step_to_int64((PyArrayObject *)args[2])) return NULL;
    Py_INCREF(args[0]);
    return args[0];
}

/* A place counted from the front, or -1. */
static inline npy_intp wrapped(int64_t place, npy_intp size) {
    if (place < 0) place += size;
    return place < 0 || place >= size ? -1 : (npy_intp)place;
}

/* Slices of some bytes, `chosen` of `others` in each outer one. */
typedef struct {
    char *made;
    const char *given;
    const int64_t *index;
    npy_intp chosen, others, inner;
} Slices;

/* Copies of a number of bytes that the compiler knows are single instructions. */
#define SELECTED(BYTES)                                                                                                \
    for (npy_intp i = first; i < last; i++)                                                                            \
        memcpy(to + i * (BYTES), from + (it->index[i] < 0 ? it->index[i] + it->others : it->index[i]) * (BYTES),       \
               (size_t)(BYTES))

static void select_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Slices *it = work;
    (void)share;
    while (begin < end) {
        npy_intp outer = begin / it->chosen, first = begin % it->chosen, last = first + (end - begin);
        if (last > it->chosen) last = it->chosen;
        char *to = it->made + outer * it->chosen * it->inner;
        const char *from = it->given + outer * it->others * it->inner;
        if (it->inner == 4) SELECTED(4);
        else if (it->inner == 8) SELECTED(8);
        else SELECTED(it->inner);
        begin += last - first;
    }
}

/* The slices of a dimension that an array of any shape names, in its place. */
static PyObject *select_slices(PyArrayObject *a, PyArrayObject *index, int dim, int from_the_end) {
    int ndim = 0;
    npy_intp sizes[NPY_MAXDIMS], outer = 1;
    if (!PyArray_SIZE(a) || PyArray_NDIM(a) + PyArray_NDIM(index) > NPY_MAXDIMS) return LEFT;
    Slices it = {.given = PyArray_DATA(a), .index = PyArray_DATA(index), .chosen = PyArray_SIZE(index),
                 .others = PyArray_DIM(a, dim), .inner = PyArray_ITEMSIZE(a)};
    for (int d = 0; d < dim; d++) outer *= sizes[ndim++] = PyArray_DIM(a, d);
    for (int d = 0; d < PyArray_NDIM(index); d++) sizes[ndim++] = PyArray_DIM(index, d);
    for (int d = dim + 1; d < PyArray_NDIM(a); d++) it.inner *= sizes[ndim++] = PyArray_DIM(a, d);
    for (npy_intp i = 0; i < it.chosen; i++)
        if (it.index[i] >= it.others || it.index[i] < (from_the_end ? -it.others : 0)) return LEFT;
    PyArrayObject *made = new_of(a, ndim, sizes);
    if (!made) return NULL;
    it.made = PyArray_DATA(made);
    UNLOCKED(PyArray_NBYTES(made) > 8 * MANY, pool_run(select_share, &it, outer * it.chosen, 1 + 4 * SHARE / it.inner));
    return (PyObject *)made;
}

/* index_select(a, dim, index) */
static PyObject *index_select(PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !is_dense(args[0]) || !is_of(args[2], NPY_INT64) || PyArray_NDIM((PyArrayObject *)args[2]) != 1)
        return LEFT;
    int dim = dim_of(args[1], PyArray_NDIM((PyArrayObject *)args[0]));
    return dim < 0 ? LEFT : select_slices((PyArrayObject *)args[0], (PyArrayObject *)args[2], dim, 0);
}

/* index(a, indices): by one array of indices, the last of a list */
static PyObject *index_by_one(PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !is_dense(args[0]) || !(PyList_CheckExact(args[1]) || PyTuple_CheckExact(args[1]))) return LEFT;
    Py_ssize_t dim = PySequence_Fast_GET_SIZE(args[1]) - 1;
    PyObject **items = PySequence_Fast_ITEMS(args[1]);
    if (dim < 0 || dim >= PyArray_NDIM((PyArrayObject *)args[0]) || !is_of(items[dim], NPY_INT64) ||
        !PyArray_NDIM((PyArrayObject *)items[dim]))
        return LEFT;
    for (Py_ssize_t i = 0; i < dim; i++)
        if (items[i] != Py_None) return LEFT;
    return select_slices((PyArrayObject *)args[0], (PyArrayObject *)items[dim], (int)dim, 1);
}

/* take(a, index): by positions in row-major order */
static PyObject *take(PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !is_dense(args[0]) || !is_of(args[1], NPY_INT64)) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0], *index = (PyArrayObject *)args[1];
    npy_intp size = PyArray_SIZE(a), chosen = PyArray_SIZE(index);
    if (!has_words(a) || chosen > FEW_BYTES) return LEFT;
    PyArrayObject *made = new_of(a, PyArray_NDIM(index), PyArray_DIMS(index));
    if (!made) return NULL;
    const int64_t *place = PyArray_DATA(index);
    for (npy_intp i = 0; i < chosen; i++) {
        npy_intp at = wrapped(place[i], size);
        if (at < 0) return Py_DECREF(made), LEFT;
        if (PyArray_ITEMSIZE(a) == 4) ((uint32_t *)PyArray_DATA(made))[i] = ((uint32_t *)PyArray_DATA(a))[at];
        else ((uint64_t *)PyArray_DATA(made))[i] = ((uint64_t *)PyArray_DATA(a))[at];
    }
    return (PyObject *)made;
}

/* Slices of `inner` bytes of `a` become, or if `add` get added, those of `values`: `a` itself, or LEFT. */
static PyObject *put_slices(PyArrayObject *a, PyArrayObject *index, PyArrayObject *values, npy_intp others,
                            npy_intp inner, int add) {
    npy_intp chosen = PyArray_SIZE(index);
    const int64_t *place = PyArray_DATA(index);
    if (PyArray_DESCR(a) != PyArray_DESCR(values) || !PyArray_ISWRITEABLE(a) || (add && PyArray_TYPE(a) != NPY_FLOAT) ||
        PyArray_NBYTES(values) != chosen * inner || PyArray_NBYTES(values) > FEW_BYTES || !are_apart(a, values) ||
        !are_apart(a, index))
        return LEFT;
    for (npy_intp i = 0; i < chosen; i++)
        if (wrapped(place[i], others) < 0) return LEFT;
    const char *from = PyArray_DATA(values);
    for (npy_intp i = 0; i < chosen; i++, from += inner) {
        char *to = PyArray_BYTES(a) + wrapped(place[i], others) * inner;
        if (!add) memcpy(to, from, (size_t)inner);
        else
            for (npy_intp j = 0; j < inner / 4; j++) ((float *)to)[j] += ((const float *)from)[j];
    }
    Py_INCREF(a);
    return (PyObject *)a;
}

/* Slices of `a` become one element: `a` itself, or LEFT. */
static PyObject *fill_slices(PyArrayObject *a, PyArrayObject *index, PyArrayObject *value) {
    npy_intp chosen = PyArray_SIZE(index), others = PyArray_DIM(a, 0), inner = PyArray_SIZE(a) / others;
    const int64_t *place = PyArray_DATA(index);
    if (PyArray_DESCR(a) != PyArray_DESCR(value) || !PyArray_ISWRITEABLE(a) || !has_words(a) || !are_apart(a, index) ||
        !are_apart(a, value) || chosen > FEW_BYTES || chosen * inner > FEW_BYTES)
        return LEFT;
    for (npy_intp i = 0; i < chosen; i++)
        if (wrapped(place[i], others) < 0) return LEFT;
    for (npy_intp i = 0; i < chosen; i++) {
        npy_intp at = wrapped(place[i], others) * inner;
        if (PyArray_ITEMSIZE(a) == 4)
            for (npy_intp j = 0; j < inner; j++) ((uint32_t *)PyArray_DATA(a))[at + j] = *(uint32_t *)PyArray_DATA(value);
        else
            for (npy_intp j = 0; j < inner; j++) ((uint64_t *)PyArray_DATA(a))[at + j] = *(uint64_t *)PyArray_DATA(value);
    }
    Py_INCREF(a);
    return (PyObject *)a;
}

/* put(a, index, source, accumulate): by positions in row-major order */
static PyObject *put(PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !is_dense(args[0]) || !is_of(args[1], NPY_INT64) || !is_dense(args[2]) || args[3] != Py_True)
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    return put_slices(a, (PyArrayObject *)args[1], (PyArrayObject *)args[2], PyArray_SIZE(a), PyArray_ITEMSIZE(a), 1);
}

/* index_put(a, indices, values, accumulate): rows, by one array of indices */
static PyObject *index_put(PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !is_dense(args[0]) || !PyList_Check(args[1]) || PyList_GET_SIZE(args[1]) != 1 ||
        !is_of(PyList_GET_ITEM(args[1], 0), NPY_INT64) || !is_dense(args[2]) || !PyBool_Check(args[3]))
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0], *index = (PyArrayObject *)PyList_GET_ITEM(args[1], 0);
    PyArrayObject *values = (PyArrayObject *)args[2];
    int ndim = PyArray_NDIM(a), lead = PyArray_NDIM(index);
    if (!ndim || !lead || !PyArray_SIZE(a)) return LEFT;
    if (!PyArray_NDIM(values) && args[3] == Py_False) return fill_slices(a, index, values);
    if (PyArray_NDIM(values) != lead + ndim - 1) return LEFT;
    for (int d = 0; d < PyArray_NDIM(values); d++)
        if (PyArray_DIM(values, d) != (d < lead ? PyArray_DIM(index, d) : PyArray_DIM(a, d - lead + 1))) return LEFT;
    npy_intp others = PyArray_DIM(a, 0);
    return put_slices(a, index, values, others, PyArray_NBYTES(a) / others, args[3] == Py_True);
}

/* index_put_copy(a, indices, values, accumulate): the same of a copy, in one */
static PyObject *index_put_copy(PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !is_dense(args[0]) || PyArray_NBYTES((PyArrayObject *)args[0]) > FEW_BYTES || steps_are_heard())
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0], *made = new_of(a, PyArray_NDIM(a), PyArray_DIMS(a));
    if (!made) return NULL;
    memcpy(PyArray_DATA(made), PyArray_DATA(a), (size_t)PyArray_NBYTES(a));
    PyObject *const copied[4] = {(PyObject *)made, args[1], args[2], args[3]};
    PyObject *same = index_put(copied, 4);
    Py_DECREF(made);
    return same;
}

DirectEntry rearrange_direct[] = {{"gather", gather, 0}, {"scatter_add", scatter_add, 0}, {"scatter", scatter, 0},
                                  {"scatter_value", scatter_value, 0},
                                  {"index_select", index_select, 0}, {"index", index_by_one, 0}, {"take", take, 0}, {"put", put, 0},
                                  {"index_put", index_put, 0}, {"index_put_copy", index_put_copy, 0}, {NULL, NULL, 0}};

#define FAST(NAME) {#NAME, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {FAST(add_rows), FAST(along), FAST(add_slices),
                                {NULL, NULL, 0, NULL}};

int rearrange_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
