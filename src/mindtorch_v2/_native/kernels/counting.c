/* Counting: histograms, how often integers occur, and the smallest and largest of few numbers. Kernels that look at their
   arguments themselves. */
#include "direct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "kernels.h"

enum { FEW_NUMBERS = 2048 };

/* aminmax(a, dim, keepdim): of all elements, in row-major order or at even distances; NaN if there is one */
static PyObject *aminmax(PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || args[1] != Py_None || args[2] != Py_False || !PyArray_CheckExact(args[0])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    npy_intp size = PyArray_SIZE(a);
    int type = PyArray_TYPE(a), even = PyArray_NDIM(a) == 1 && PyArray_ISBEHAVED_RO(a);
    npy_intp item = PyArray_ITEMSIZE(a), step = even ? PyArray_STRIDE(a, 0) / item : 1;
    if ((!is_dense(args[0]) && !(even && step * item == PyArray_STRIDE(a, 0))) || !size || size > FEW_NUMBERS || (type != NPY_INT64 && type != NPY_FLOAT)) return LEFT;
    PyArrayObject *least = new_of(a, 0, NULL), *most = least ? new_of(a, 0, NULL) : NULL;
    PyObject *made = most ? PyTuple_Pack(2, least, most) : NULL;
    if (made && type == NPY_INT64) {
        const int64_t *x = PyArray_DATA(a);
        int64_t low = x[0], high = x[0];
        for (npy_intp i = 1; i < size; i++)
            low = x[i * step] < low ? x[i * step] : low, high = x[i * step] > high ? x[i * step] : high;
        *(int64_t *)PyArray_DATA(least) = low, *(int64_t *)PyArray_DATA(most) = high;
    } else if (made) {
        const float *x = PyArray_DATA(a);
        float low = x[0], high = x[0], none = 0.0f;
        for (npy_intp i = 0; i < size; i++) {
            float one = x[i * step];
            low = one < low ? one : low, high = one > high ? one : high;
            if (one != one) none = one;
        }
        *(float *)PyArray_DATA(least) = none != none ? none : low;
        *(float *)PyArray_DATA(most) = none != none ? none : high;
    }
    Py_XDECREF(least), Py_XDECREF(most);
    return made;
}

/* A limit of a histogram as NumPy would take it: a float, or an integer that a float holds. */
static int end_of(PyObject *o, double *made) {
    npy_intp whole;
    if (PyFloat_CheckExact(o)) *made = PyFloat_AS_DOUBLE(o);
    else if (number_of(o, &whole) && labs(whole) < (npy_intp)1 << 52) *made = (double)whole;
    else return 0;
    return 1;
}

/* histc(a, bins, low, high): float32; between the smallest and the largest if both limits are equal */
static PyObject *histc(PyObject *const *args, Py_ssize_t count) {
    npy_intp bins;
    double low, high;
    if (count != 4 || !is_of(args[0], NPY_FLOAT) || !number_of(args[1], &bins) || bins < 1 || bins > 1 << 24 ||
        !end_of(args[2], &low) || !end_of(args[3], &high))
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    npy_intp size = PyArray_SIZE(a);
    const float *x = PyArray_DATA(a);
    /* Beyond that, float32 does not hold every count. */
    if (!size || size > 1 << 24) return LEFT;
    if (low == high) {
        float least = x[0], most = x[0];
        for (npy_intp i = 0; i < size; i++) {
            if (x[i] != x[i]) return LEFT;
            least = x[i] < least ? x[i] : least, most = x[i] > most ? x[i] : most;
        }
        low = (double)least, high = (double)most;
    }
    if (!isfinite(low) || !isfinite(high) || low > high) return LEFT;
    if (low == high) low -= 1.0, high += 1.0;
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(1, &bins, NPY_FLOAT);
    if (!made) return NULL;
    float *counts = PyArray_DATA(made), first = (float)low, last = (float)high;
    memset(counts, 0, sizeof(float) * (size_t)bins);
    for (npy_intp i = 0; i < size; i++) {
        if (!(x[i] >= first && x[i] <= last)) continue;
        float place = (x[i] - first) * (float)bins / (last - first);
        counts[place < (float)bins ? (npy_intp)place : bins - 1] += 1.0f;
    }
    return (PyObject *)made;
}

/* unique(a, in_order, return_inverse, return_counts): few integers that are close together, without the inverse */
static PyObject *unique(PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !is_of(args[0], NPY_INT64) || args[2] != Py_False || !PyBool_Check(args[3])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    npy_intp size = PyArray_SIZE(a);
    if (!size || size > FEW_NUMBERS) return LEFT;
    const int64_t *x = PyArray_DATA(a);
    int64_t low = x[0], high = x[0];
    for (npy_intp i = 1; i < size; i++) low = x[i] < low ? x[i] : low, high = x[i] > high ? x[i] : high;
    uint64_t span = (uint64_t)high - (uint64_t)low;
    uint16_t counts[4 * FEW_NUMBERS + 1024];
    if (span >= (uint64_t)(4 * size + 1024)) return LEFT;
    memset(counts, 0, sizeof *counts * (size_t)(span + 1));
    npy_intp distinct = 0, none = 0;
    for (npy_intp i = 0; i < size; i++) distinct += !counts[x[i] - low]++;
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(1, &distinct, NPY_INT64);
    PyArrayObject *inverse = made ? (PyArrayObject *)PyArray_SimpleNew(1, &none, NPY_INT64) : NULL;
    PyArrayObject *often = inverse ? (PyArrayObject *)PyArray_SimpleNew(1, args[3] == Py_True ? &distinct : &none,
                                                                        NPY_INT64) : NULL;
    if (often) {
        int64_t *to = PyArray_DATA(made), *times = args[3] == Py_True ? PyArray_DATA(often) : NULL;
        for (uint64_t place = 0; place <= span; place++) {
            if (!counts[place]) continue;
            *to++ = low + (int64_t)place;
            if (times) *times++ = counts[place];
        }
    }
    return tuple_of_three(made, inverse, often);
}

typedef struct {
    const int64_t *given;
    uint64_t *seen; /* of each share: which bits its numbers have */
    uint32_t *counts; /* a row for each share */
    npy_intp span, each;
} Occurrences;

static void bits_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    (void)share;
    Occurrences *it = work;
    for (ptrdiff_t part = begin; part < end; part++) {
        const int64_t *x = it->given + part * it->each;
        uint64_t seen = 0;
        for (npy_intp i = 0; i < it->each; i++) seen |= (uint64_t)x[i];
        it->seen[part] = seen;
    }
}

static void occurrences_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    (void)share;
    Occurrences *it = work;
    for (ptrdiff_t part = begin; part < end; part++) {
        const int64_t *x = it->given + part * it->each;
        uint32_t *counts = it->counts + part * it->span;
        memset(counts, 0, sizeof *counts * (size_t)it->span);
        for (npy_intp i = 0; i < it->each; i++) counts[x[i]]++;
    }
}

/* bincount(a, weights, minlength): int64 that are not much larger than they are many, without weights */
static PyObject *bincount(PyObject *const *args, Py_ssize_t count) {
    enum { PARTS = 4 };
    npy_intp shortest, size, used = 0;
    if (count != 3 || !is_of(args[0], NPY_INT64) || args[1] != Py_None || !number_of(args[2], &shortest) || shortest < 0)
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    if (PyArray_NDIM(a) != 1 || !(size = PyArray_SIZE(a)) || size >= UINT32_MAX || shortest > 4 * size + 1024) return LEFT;
    const int64_t *x = PyArray_DATA(a);
    /* Parts of one size, which threads may count apart; what is left over is counted last. */
    npy_intp parts = size >= 2 * SHARE ? PARTS : 1;
    uint64_t seen[PARTS] = {0}, bits = 0;
    Occurrences it = {x, seen, NULL, 0, size / parts};
    UNLOCKED(size > MANY, pool_run(bits_share, &it, parts, 1));
    for (int i = 0; i < parts; i++) bits |= seen[i];
    for (npy_intp i = parts * it.each; i < size; i++) bits |= (uint64_t)x[i];
    /* No number is as large as the next power of two. */
    it.span = 1;
    while ((uint64_t)it.span <= bits && it.span <= 8 * size + 1024) it.span *= 2;
    if ((uint64_t)it.span <= bits) return LEFT;
    if (!(it.counts = malloc(sizeof *it.counts * (size_t)(parts * it.span)))) return PyErr_NoMemory();
    UNLOCKED(size > MANY, pool_run(occurrences_share, &it, parts, 1));
    for (npy_intp i = parts * it.each; i < size; i++) it.counts[x[i]]++;
    for (npy_intp part = 1; part < parts; part++)
        for (npy_intp i = 0; i < it.span; i++) it.counts[i] += it.counts[part * it.span + i];
    for (used = it.span; used && !it.counts[used - 1]; used--) continue;
    npy_intp length = used > shortest ? used : shortest;
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(1, &length, NPY_INT64);
    if (made) {
        int64_t *to = PyArray_DATA(made);
        for (npy_intp i = 0; i < length; i++) to[i] = i < used ? it.counts[i] : 0;
    }
    free(it.counts);
    return (PyObject *)made;
}

DirectEntry counting_direct[] = {{"aminmax", aminmax, 0}, {"histc", histc, 0}, {"unique", unique, 0},
                                 {"bincount", bincount, 0}, {NULL, NULL, 0}};
