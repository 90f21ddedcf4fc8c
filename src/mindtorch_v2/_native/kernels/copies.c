/* Memory that is filled or copied: it decides the speed, so elements are bytes of some size and not numbers. */
#include "direct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "copies.h"
#include "kernels.h"
#include "order.h"

enum { CALLED_RANGE, CALLED_FILL, CALLED_COPY, CALLED_TRIANGLE, CALLED_PAD, CALLED_PAD_BACK };
Counter copies_calls[] = {{"fill_range", 0}, {"fill", 0}, {"copy", 0}, {"triangle", 0}, {"pad", 0}, {"pad_back", 0},
                          {NULL, 0}};

typedef struct {
    char *made;
    const char *given;
    int64_t first, by;
    float value;
    npy_intp rows, columns, size, diagonal, gap, inner_from, inner_to, outer_from[NPY_MAXDIMS], outer_to[NPY_MAXDIMS],
        sizes[NPY_MAXDIMS], second, second_from, second_to, cut;
    /* `cut`: the length of `second` or `columns` before it was cut into pieces; these are the last of the outer
       dimensions then. */
    int cut_second;
    int upper, ndim;
} Copy;

/* -- filling -- */

static void range_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Copy *it = work;
    (void)share;
    int64_t *made = (int64_t *)it->made;
    /* Added up: vectors of integers of 64 bits are not multiplied everywhere. */
    uint64_t value = (uint64_t)it->first + (uint64_t)begin * (uint64_t)it->by, by = (uint64_t)it->by;
    for (ptrdiff_t i = begin; i < end; i++, value += by) made[i] = (int64_t)value;
}

/* fill_range(made, first, by): int64 */
static PyObject *fill_range(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 3)) return NULL;
    PyArrayObject *made = (PyArrayObject *)args[0];
    if (!PyArray_Check(args[0]) || PyArray_TYPE(made) != NPY_INT64 || !PyArray_ISCARRAY(made))
        return wrong("expected a contiguous array of int64");
    Copy it = {.made = PyArray_DATA(made), .first = (int64_t)PyLong_AsUnsignedLongLongMask(args[1]),
               .by = (int64_t)PyLong_AsUnsignedLongLongMask(args[2])};
    if (PyErr_Occurred()) return NULL;
    copies_calls[CALLED_RANGE].calls++;
    UNLOCKED(PyArray_SIZE(made) > MANY, pool_run(range_share, &it, PyArray_SIZE(made), SHARE));
    Py_RETURN_NONE;
}

static void bytes_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    (void)share;
    memset(((Copy *)work)->made + begin, 0, (size_t)(end - begin));
}

static void floats_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Copy *it = work;
    (void)share;
    level->repeat(it->made + 4 * begin, (const char *)&it->value, end - begin, 4);
}

/* fill(made, value): zeros of any type, or float32; True, or False for what NumPy has to fill */
static PyObject *fill(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 2)) return NULL;
    PyArrayObject *made = (PyArrayObject *)args[0];
    if (!PyArray_CheckExact(args[0]) || !PyArray_ISCARRAY(made) || PyArray_TYPE(made) == NPY_OBJECT ||
        !(PyFloat_CheckExact(args[1]) || PyLong_CheckExact(args[1])))
        Py_RETURN_FALSE;
    double value = PyFloat_AsDouble(args[1]);
    if (value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear(); /* an integer too large for it: NumPy says what is wrong */
        Py_RETURN_FALSE;
    }
    Copy it = {.made = PyArray_DATA(made), .value = (float)value};
    npy_intp bytes = PyArray_NBYTES(made);
    int zeros = value == 0.0 && !signbit(value);
    if (!zeros && PyArray_TYPE(made) != NPY_FLOAT) Py_RETURN_FALSE;
    if ((double)it.value != value && isinf(it.value)) Py_RETURN_FALSE;
    copies_calls[CALLED_FILL].calls++;
    if (zeros) UNLOCKED(bytes > 8 * MANY, pool_run(bytes_share, &it, bytes, 16 * SHARE));
    else UNLOCKED(bytes > 8 * MANY, pool_run(floats_share, &it, PyArray_SIZE(made), 4 * SHARE));
    Py_RETURN_TRUE;
}

/* -- copies of memory with gaps, or in another order -- */

#define STEPPED(TYPE)                                                                                                  \
    for (npy_intp i = 0; i < count; i++) *(TYPE *)(to + i * to_step) = *(const TYPE *)(from + i * from_step)

static void copy_row(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp count, npy_intp size) {
    if (to_step == size && from_step == size) memcpy(to, from, (size_t)(count * size));
    else if (to_step == size && from_step == -size) level->backwards(to, from, count, size);
    else if (to_step == size && !from_step) level->repeat(to, from, count, size);
    else if (size == 4 && to_step == 4) for (npy_intp i = 0; i < count; i++) ((float *)to)[i] = *(const float *)(from + i * from_step);
    else if (size == 4) STEPPED(uint32_t);
    else if (size == 8) STEPPED(uint64_t);
    else if (size == 2) STEPPED(uint16_t);
    else STEPPED(char);
}

/* Rows of one array are columns of the other: in tiles, so that neither is read again from far away. */
static void copy_exchanged(const Copy *it, char *to, const char *from, npy_intp rows, npy_intp columns) {
    enum { TILE = 32 };
    npy_intp size = it->size;
    if (it->inner_to == size && it->second_from == size) { /* to[second, inner] = from[inner, second] */
        level->exchange(to, it->second_to, from, it->inner_from, columns, rows, size);
        return;
    }
    for (npy_intp r = 0; r < rows; r += TILE)
        for (npy_intp c = 0; c < columns; c += TILE)
            for (npy_intp i = r; i < (rows - r < TILE ? rows : r + TILE); i++)
                copy_row(to + i * it->second_to + c * it->inner_to, it->inner_to,
                         from + i * it->second_from + c * it->inner_from, it->inner_from,
                         columns - c < TILE ? columns - c : TILE, size);
}

static inline npy_intp least(npy_intp a, npy_intp b) { return a < b ? a : b; }

static void copy_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Copy *it = work;
    (void)share;
    npy_intp at[NPY_MAXDIMS], rest = begin;
    char *to = it->made;
    const char *from = it->given;
    for (int d = it->ndim - 1; d >= 0; d--) {
        at[d] = rest % it->sizes[d], rest /= it->sizes[d];
        to += at[d] * it->outer_to[d], from += at[d] * it->outer_from[d];
    }
    for (ptrdiff_t item = begin; item < end; item++) {
        npy_intp rows = it->second, columns = it->columns;
        if (it->cut && it->cut_second) rows = least(rows, it->cut - at[it->ndim - 1] * rows);
        else if (it->cut) columns = least(columns, it->cut - at[it->ndim - 1] * columns);
        if (rows) copy_exchanged(it, to, from, rows, columns);
        else copy_row(to, it->inner_to, from, it->inner_from, columns, it->size);
        for (int d = it->ndim - 1; d >= 0; d--) {
            to += it->outer_to[d], from += it->outer_from[d];
            if (++at[d] < it->sizes[d]) break;
            to -= it->sizes[d] * it->outer_to[d], from -= it->sizes[d] * it->outer_from[d];
            at[d] = 0;
        }
    }
}

/* made[...] = given, of one shape and type, in any order; 0 for what NumPy has to copy. */
static int copy_array(PyArrayObject *made, PyArrayObject *given) {
    if (PyArray_DESCR(made) != PyArray_DESCR(given) || !PyArray_SAMESHAPE(made, given) || !PyArray_ISBEHAVED(made) ||
        !PyArray_ISBEHAVED_RO(given) || PyDataType_REFCHK(PyArray_DESCR(made)) || !PyArray_SIZE(made))
        return 0;
    npy_intp size = PyArray_ITEMSIZE(made);
    if (size != 1 && size != 2 && size != 4 && size != 8) return 0;
    /* Where the arrays begin and end in memory: what may overlap is NumPy's. */
    char *low[2], *high[2];
    for (int k = 0; k < 2; k++) {
        PyArrayObject *a = k ? given : made;
        low[k] = high[k] = PyArray_DATA(a);
        for (int d = 0; d < PyArray_NDIM(a); d++) {
            npy_intp reach = (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
            if (reach < 0) low[k] += reach;
            else high[k] += reach;
        }
    }
    if (low[0] < high[1] + size && low[1] < high[0] + size) return 0;
    Copy it = {.made = PyArray_DATA(made), .given = PyArray_DATA(given), .size = size};
    /* Dimensions of more than one element, neighbours joined where both arrays allow it. */
    npy_intp to[NPY_MAXDIMS], from[NPY_MAXDIMS], sizes[NPY_MAXDIMS];
    int ndim = 0;
    for (int d = 0; d < PyArray_NDIM(made); d++) {
        npy_intp extent = PyArray_DIM(made, d), a = PyArray_STRIDE(made, d), b = PyArray_STRIDE(given, d);
        if (extent == 1) continue;
        if (ndim && to[ndim - 1] == extent * a && from[ndim - 1] == extent * b) {
            sizes[ndim - 1] *= extent, to[ndim - 1] = a, from[ndim - 1] = b;
            continue;
        }
        sizes[ndim] = extent, to[ndim] = a, from[ndim++] = b;
    }
    if (!ndim) sizes[0] = 1, to[0] = from[0] = size, ndim = 1;
    /* The narrowest step of what is written is innermost; that of what is read next, if it is another one. */
    int inner = 0, second = 0;
    for (int d = 0; d < ndim; d++) {
        if (labs(to[d]) <= labs(to[inner])) inner = d;
        if (labs(from[d]) <= labs(from[second])) second = d;
    }
    it.columns = sizes[inner], it.inner_to = to[inner], it.inner_from = from[inner];
    if (second != inner && from[second]) it.second = sizes[second], it.second_to = to[second], it.second_from = from[second];
    npy_intp items = 1;
    for (int d = 0; d < ndim; d++) {
        if (d == inner || (it.second && d == second)) continue;
        it.sizes[it.ndim] = sizes[d], it.outer_to[it.ndim] = to[d], it.outer_from[it.ndim++] = from[d];
        items *= sizes[d];
    }
    /* What is large is cut along its longer side, so that threads have shares. */
    it.cut_second = it.second > it.columns;
    npy_intp *length = it.cut_second ? &it.second : &it.columns;
    npy_intp other = it.cut_second ? it.columns : it.second ? it.second : 1, part = (SHARE / 4 / other + 63) / 64 * 64;
    if (part < 64) part = 64;
    if (*length > part && *length * other > 2 * SHARE) {
        it.sizes[it.ndim] = (*length + part - 1) / part, items *= it.sizes[it.ndim];
        it.outer_to[it.ndim] = part * (it.cut_second ? it.second_to : it.inner_to);
        it.outer_from[it.ndim++] = part * (it.cut_second ? it.second_from : it.inner_from);
        it.cut = *length, *length = part;
    }
    npy_intp each = it.columns * (it.second ? it.second : 1);
    UNLOCKED(items * each > MANY, pool_run(copy_share, &it, items, 1 + SHARE / each));
    return 1;
}

/* copy(made, given): of one shape and type, in any order; True, or False for what NumPy has to copy */
static PyObject *copy(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 2)) return NULL;
    if (!PyArray_Check(args[0]) || !PyArray_Check(args[1]) ||
        !copy_array((PyArrayObject *)args[0], (PyArrayObject *)args[1]))
        Py_RETURN_FALSE;
    copies_calls[CALLED_COPY].calls++;
    Py_RETURN_TRUE;
}

/* copy_into(target, source, ...): `target` itself */
static PyObject *copy_into(PyObject *const *args, Py_ssize_t count) {
    if (count < 2 || !PyArray_CheckExact(args[0]) || !PyArray_CheckExact(args[1]) ||
        !copy_array((PyArrayObject *)args[0], (PyArrayObject *)args[1]))
        return LEFT;
    Py_INCREF(args[0]);
    return args[0];
}

/* A copy of an array in new memory, whose reference it takes. */
static PyObject *copied_to(PyArrayObject *made, PyArrayObject *given) {
    if (!made) return PyErr_Occurred() ? NULL : LEFT;
    if (copy_array(made, given)) return (PyObject *)made;
    Py_DECREF(made);
    return LEFT;
}

static int is_copied(PyObject *o) {
    return PyArray_CheckExact(o) && !PyDataType_REFCHK(PyArray_DESCR((PyArrayObject *)o)) &&
           PyArray_SIZE((PyArrayObject *)o) && !steps_are_heard();
}

/* copied_as(source, like): memory in the order of an array's dimensions and a copy there, in one */
static PyObject *copied_as(PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !is_copied(args[0]) || !PyArray_CheckExact(args[1])) return LEFT;
    PyArrayObject *source = (PyArrayObject *)args[0], *like = (PyArrayObject *)args[1];
    if (!PyArray_SAMESHAPE(source, like)) return LEFT;
    return copied_to(PyArray_IS_C_CONTIGUOUS(like) ? new_of(source, PyArray_NDIM(like), PyArray_DIMS(like))
                                                   : order_result(&like, 1, PyArray_TYPE(source)), source);
}

/* preserving_copy(a): the same in its own order; row_major_copy(a) */
static PyObject *preserving_copy(PyObject *const *args, Py_ssize_t count) {
    PyObject *const twice[2] = {args[0], args[0]};
    return count == 1 ? copied_as(twice, 2) : LEFT;
}
static PyObject *row_major_copy(PyObject *const *args, Py_ssize_t count) {
    if (count != 1 || !is_copied(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    return copied_to(new_of(a, PyArray_NDIM(a), PyArray_DIMS(a)), a);
}

DirectEntry copies_direct[] = {{"copy_into", copy_into, 0}, {"copied_as", copied_as, 0},
                               {"preserving_copy", preserving_copy, 0}, {"row_major_copy", row_major_copy, 0}, {NULL, NULL, 0}};

/* -- triangles -- */

static void triangle_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Copy *it = work;
    (void)share;
    for (ptrdiff_t r = begin; r < end; r++) {
        /* The lower triangle has the columns before `edge`, the upper one those from it on. */
        npy_intp edge = r % it->rows + it->diagonal + (it->upper ? 0 : 1);
        edge = edge < 0 ? 0 : edge > it->columns ? it->columns : edge;
        size_t before = (size_t)(edge * it->size), after = (size_t)((it->columns - edge) * it->size);
        char *to = it->made + r * it->columns * it->size;
        const char *from = it->given + r * it->columns * it->size;
        if (it->upper) memset(to, 0, before), memcpy(to + before, from + before, after);
        else memcpy(to, from, before), memset(to + before, 0, after);
    }
}

/* triangle(made, given, diagonal, upper): contiguous matrices of any type, zeros where the triangle is not */
static PyObject *triangle(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 4)) return NULL;
    PyArrayObject *made = (PyArrayObject *)args[0], *given = (PyArrayObject *)args[1];
    if (!PyArray_Check(args[0]) || !PyArray_Check(args[1]) || PyArray_DESCR(made) != PyArray_DESCR(given) ||
        !PyArray_SAMESHAPE(made, given) || !PyArray_ISCARRAY(made) || !PyArray_IS_C_CONTIGUOUS(given) ||
        PyArray_TYPE(made) == NPY_OBJECT || PyArray_NDIM(made) < 2)
        return wrong("expected contiguous matrices of one type");
    int last = PyArray_NDIM(made) - 1;
    npy_intp most = PyArray_DIM(made, last) + PyArray_DIM(made, last - 1) + 1;
    long long diagonal = PyLong_AsLongLong(args[2]);
    if (diagonal == -1 && PyErr_Occurred()) return NULL;
    Copy it = {.made = PyArray_DATA(made), .given = PyArray_DATA(given), .rows = PyArray_DIM(made, last - 1),
               .columns = PyArray_DIM(made, last), .size = PyArray_ITEMSIZE(made), .upper = PyObject_IsTrue(args[3]),
               .diagonal = diagonal > most ? most : diagonal < -most ? -most : (npy_intp)diagonal};
    copies_calls[CALLED_TRIANGLE].calls++;
    npy_intp rows = it.columns ? PyArray_SIZE(made) / it.columns : 0;
    UNLOCKED(PyArray_SIZE(made) > MANY, pool_run(triangle_share, &it, rows, 1 + SHARE / (it.columns + 1)));
    Py_RETURN_NONE;
}

/* -- margins that repeat what is inside -- */

typedef struct {
    float *made;
    const float *given;
    const int64_t *maps[3];
    npy_intp in[3], out[3];
} Margins;

static void pad_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Margins *it = work;
    (void)share;
    const int64_t *columns = it->maps[2];
    for (ptrdiff_t r = begin; r < end; r++) {
        npy_intp row = r % it->out[1], plane = r / it->out[1] % it->out[0], outer = r / it->out[1] / it->out[0];
        const float *restrict from =
            it->given + ((outer * it->in[0] + it->maps[0][plane]) * it->in[1] + it->maps[1][row]) * it->in[2];
        float *restrict to = it->made + r * it->out[2];
        for (npy_intp j = 0; j < it->out[2]; j++) to[j] = from[columns[j]];
    }
}

/* Rows of one outer index are added in their order by one thread. */
static void pad_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Margins *it = work;
    (void)share;
    const int64_t *columns = it->maps[2];
    npy_intp rows = it->out[0] * it->out[1];
    for (ptrdiff_t r = begin * rows; r < end * rows; r++) {
        npy_intp row = r % it->out[1], plane = r / it->out[1] % it->out[0], outer = r / it->out[1] / it->out[0];
        float *restrict to =
            it->made + ((outer * it->in[0] + it->maps[0][plane]) * it->in[1] + it->maps[1][row]) * it->in[2];
        const float *restrict from = it->given + r * it->out[2];
        for (npy_intp j = 0; j < it->out[2]; j++) to[columns[j]] += from[j];
    }
}

/* pad(made, given, planes, rows, columns): made[:, i, j, k] = given[:, planes[i], rows[j], columns[k]] of float32;
   pad_back(made, given, planes, rows, columns): made[:, planes[i], rows[j], columns[k]] += given[:, i, j, k] */
static PyObject *padded(PyObject *const *args, Py_ssize_t count, int back) {
    if (!counted(count, 5)) return NULL;
    PyArrayObject *inside = (PyArrayObject *)args[back ? 0 : 1], *outside = (PyArrayObject *)args[back ? 1 : 0];
    if (!PyArray_Check(args[0]) || !PyArray_Check(args[1]) || PyArray_TYPE(inside) != NPY_FLOAT ||
        PyArray_TYPE(outside) != NPY_FLOAT || PyArray_NDIM(inside) != 4 || PyArray_NDIM(outside) != 4 ||
        !PyArray_ISCARRAY((PyArrayObject *)args[0]) || !PyArray_ISCARRAY_RO((PyArrayObject *)args[1]) ||
        DIM(inside, 0) != DIM(outside, 0))
        return wrong("expected contiguous float32 arrays of four dimensions");
    Margins it = {.made = DATA(args[0]), .given = DATA(args[1])};
    for (int d = 0; d < 3; d++) {
        PyArrayObject *map = (PyArrayObject *)args[2 + d];
        it.in[d] = DIM(inside, 1 + d), it.out[d] = DIM(outside, 1 + d);
        if (!PyArray_Check(args[2 + d]) || PyArray_TYPE(map) != NPY_INT64 || PyArray_NDIM(map) != 1 ||
            !PyArray_ISCARRAY_RO(map) || DIM(map, 0) != it.out[d])
            return wrong("expected a place for each element");
        it.maps[d] = PyArray_DATA(map);
        for (npy_intp i = 0; i < it.out[d]; i++)
            if (it.maps[d][i] < 0 || it.maps[d][i] >= it.in[d]) return wrong("an index is out of range");
    }
    copies_calls[back ? CALLED_PAD_BACK : CALLED_PAD].calls++;
    npy_intp rows = it.out[0] * it.out[1];
    if (back) UNLOCKED(PyArray_SIZE(outside) > MANY,
                       pool_run(pad_back_share, &it, DIM(inside, 0), 1 + SHARE / (rows * it.out[2] + 1)));
    else UNLOCKED(PyArray_SIZE(outside) > MANY,
                  pool_run(pad_share, &it, DIM(inside, 0) * rows, 1 + SHARE / (it.out[2] + 1)));
    Py_RETURN_NONE;
}

static PyObject *pad(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    return padded(args, count, 0);
}

static PyObject *pad_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    return padded(args, count, 1);
}

/* address(array): its first byte */
static PyObject *address(PyObject *self, PyObject *array) {
    (void)self;
    if (!PyArray_Check(array)) return wrong("expected an array");
    return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)array));
}

#define FAST(NAME) {#NAME, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {FAST(fill_range), FAST(fill), FAST(copy), FAST(triangle), FAST(pad), FAST(pad_back),
                                {"address", address, METH_O, NULL},
                                {NULL, NULL, 0, NULL}};

int copies_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
