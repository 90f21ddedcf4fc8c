/* Sums, spreads and norms over dimensions, and a few moves of elements, for small arrays of float32: kernels that look at
   their arguments themselves. What is large is left to those that share work among threads. */
#include "direct.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { FEW = 2048 };

/* Neighbouring dimensions that are reduced, as the middle of (outer, count, inner). */
typedef struct {
    npy_intp outer, count, inner, sizes[NPY_MAXDIMS];
    int ndim;
} Reduced;

/* Which dimensions a call names: a number, numbers, or None or none for all. 0 if this is left to others. */
static int reduced_of(PyObject *o, PyObject *dims, PyObject *keepdim, Reduced *it) {
    PyArrayObject *a = (PyArrayObject *)o;
    npy_intp named[NPY_MAXDIMS];
    char gone[NPY_MAXDIMS] = {0};
    if (!is_of(o, NPY_FLOAT) || !PyArray_NDIM(a) || !PyArray_SIZE(a) || PyArray_SIZE(a) > FEW || !PyBool_Check(keepdim))
        return 0;
    int ndim = PyArray_NDIM(a), count = dims == Py_None ? 0 : sizes_of(dims, named), first = ndim, last = -1;
    if (count < 0) return 0;
    for (int i = 0; i < (count ? count : ndim); i++) {
        npy_intp dim = count ? named[i] : i;
        if (dim < -ndim || dim >= ndim) return 0;
        if (dim < 0) dim += ndim;
        if (gone[dim]) return 0;
        gone[dim] = 1;
        if (dim < first) first = (int)dim;
        if (dim > last) last = (int)dim;
    }
    it->outer = it->count = it->inner = 1, it->ndim = 0;
    for (int d = 0; d < ndim; d++) {
        npy_intp size = PyArray_DIM(a, d);
        if (d >= first && d <= last && !gone[d]) return 0;
        if (gone[d]) it->count *= size;
        else if (d < first) it->outer *= size;
        else it->inner *= size;
        if (!gone[d]) it->sizes[it->ndim++] = size;
        else if (keepdim == Py_True) it->sizes[it->ndim++] = 1;
    }
    return 1;
}

/* Sums are made in float64: of few numbers that is as fast, and exact. */
static inline double sum_of(const float *x, npy_intp count, npy_intp step) {
    double sum = 0.0;
    for (npy_intp j = 0; j < count; j++) sum += (double)x[j * step];
    return sum;
}

#define EACH_RESULT(...)                                                                                               \
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(it.ndim, it.sizes, NPY_FLOAT);                            \
    if (!made) return NULL;                                                                                            \
    float *to = PyArray_DATA(made);                                                                                    \
    for (npy_intp o = 0; o < it.outer; o++)                                                                            \
        for (npy_intp i = 0; i < it.inner; i++) {                                                                      \
            const float *x = (const float *)PyArray_DATA((PyArrayObject *)args[0]) + o * it.count * it.inner + i;      \
            __VA_ARGS__;                                                                                                \
        }                                                                                                              \
    return (PyObject *)made;

/* sum_dims(a, dim, keepdim, dtype) */
static PyObject *sum_dims(PyObject *const *args, Py_ssize_t count) {
    Reduced it;
    if (count != 4 || args[3] != Py_None || !reduced_of(args[0], args[1], args[2], &it)) return LEFT;
    EACH_RESULT(*to++ = (float)sum_of(x, it.count, it.inner))
}

/* mean_dims(a, dim, keepdim, dtype), mean(a): a sum and a division */
static PyObject *mean_dims(PyObject *const *args, Py_ssize_t count) {
    Reduced it;
    if (count != 4 || args[3] != Py_None || !reduced_of(args[0], args[1], args[2], &it) || steps_are_heard()) return LEFT;
    EACH_RESULT(*to++ = (float)sum_of(x, it.count, it.inner) / (float)it.count)
}

static PyObject *mean(PyObject *const *args, Py_ssize_t count) {
    if (count != 1) return LEFT;
    PyObject *const all[4] = {args[0], Py_None, Py_False, Py_None};
    return mean_dims(all, 4);
}

static PyObject *moment(PyObject *const *args, Py_ssize_t count, int root) {
    Reduced it;
    npy_intp correction = 1;
    /* Over all dimensions at once the mean is a step of its own. */
    if (count != 4 || args[1] == Py_None || !reduced_of(args[0], args[1], args[3], &it)) return LEFT;
    if (args[2] != Py_None && !number_of(args[2], &correction)) return LEFT;
    if (it.count - correction <= 0) return LEFT;
    EACH_RESULT({
        double mean = sum_of(x, it.count, it.inner) / (double)it.count, sum = 0.0;
        for (npy_intp j = 0; j < it.count; j++) {
            double away = (double)x[j * it.inner] - mean;
            sum += away * away;
        }
        sum /= (double)(it.count - correction);
        *to++ = (float)(root ? sqrt(sum) : sum);
    })
}

/* var(a, dim, correction, keepdim), std */
static PyObject *var(PyObject *const *args, Py_ssize_t count) { return moment(args, count, 0); }
static PyObject *deviation(PyObject *const *args, Py_ssize_t count) { return moment(args, count, 1); }

/* vector_norm(a, order, dim, keepdim, dtype): of order 2 */
static PyObject *vector_norm(PyObject *const *args, Py_ssize_t count) {
    Reduced it;
    npy_intp order;
    if (count != 5 || args[4] != Py_None || !reduced_of(args[0], args[2], args[3], &it)) return LEFT;
    if (PyFloat_CheckExact(args[1]) ? PyFloat_AS_DOUBLE(args[1]) != 2.0
                                    : !number_of(args[1], &order) || order != 2)
        return LEFT;
    EACH_RESULT({
        double sum = 0.0;
        for (npy_intp j = 0; j < it.count; j++) sum += (double)x[j * it.inner] * (double)x[j * it.inner];
        *to++ = (float)sqrt(sum);
    })
}

/* The element of an array's type that a number is, in `bits`; 0 if this is left to others. */
static int element_of(PyObject *value, PyArrayObject *a, uint64_t *bits) {
    int type = PyArray_TYPE(a), over = 0;
    double number = 0.0;
    int64_t whole = 0;
    if (PyFloat_CheckExact(value)) {
        if (type != NPY_FLOAT && type != NPY_DOUBLE) return 0;
        number = PyFloat_AS_DOUBLE(value);
    } else if (PyLong_CheckExact(value)) {
        whole = PyLong_AsLongLongAndOverflow(value, &over), number = (double)whole;
        if (over) return 0;
    } else if (is_of(value, type) && !PyArray_NDIM((PyArrayObject *)value)) {
        memcpy(bits, PyArray_DATA((PyArrayObject *)value), (size_t)PyArray_ITEMSIZE(a));
        return PyArray_ITEMSIZE(a) == 4 || PyArray_ITEMSIZE(a) == 8;
    } else {
        return 0;
    }
    if (type == NPY_FLOAT && isfinite(number) && fabs(number) > FLT_MAX) return 0; /* refused in Python */
    if (type == NPY_FLOAT) memcpy(bits, &(float){(float)number}, 4);
    else if (type == NPY_DOUBLE) memcpy(bits, &number, 8);
    else if (type == NPY_INT64) memcpy(bits, &whole, 8);
    else return 0;
    return 1;
}

/* masked_fill_(a, mask, value): `a` itself */
static PyObject *masked_fill(PyObject *const *args, Py_ssize_t count) {
    uint64_t bits;
    if (count != 3 || !is_dense(args[0]) || !is_of(args[1], NPY_BOOL)) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0], *mask = (PyArrayObject *)args[1];
    npy_intp size = PyArray_SIZE(a), columns = 1;
    /* Of one shape, or a mask whose last dimensions have one element. */
    if (PyArray_NDIM(a) != PyArray_NDIM(mask)) return LEFT;
    int d = PyArray_NDIM(a) - 1;
    for (; d >= 0 && PyArray_DIM(mask, d) == 1; d--) columns *= PyArray_DIM(a, d);
    for (; d >= 0; d--)
        if (PyArray_DIM(mask, d) != PyArray_DIM(a, d)) return LEFT;
    if (!PyArray_ISWRITEABLE(a) || (size > FEW && columns == 1) || !are_apart(a, mask) ||
        !element_of(args[2], a, &bits))
        return LEFT;
    if (columns > 1) {
        for (npy_intp row = 0; row < PyArray_SIZE(mask); row++) {
            if (!((const npy_bool *)PyArray_DATA(mask))[row]) continue;
            for (npy_intp i = row * columns; i < (row + 1) * columns; i++) {
                if (PyArray_ITEMSIZE(a) == 4) memcpy((uint32_t *)PyArray_DATA(a) + i, &bits, 4);
                else ((uint64_t *)PyArray_DATA(a))[i] = bits;
            }
        }
        Py_INCREF(args[0]);
        return args[0];
    }
    const npy_bool *set = PyArray_DATA(mask);
    if (PyArray_ITEMSIZE(a) == 4) {
        uint32_t *to = PyArray_DATA(a), filled;
        memcpy(&filled, &bits, 4);
        for (npy_intp i = 0; i < size; i++) to[i] = set[i] ? filled : to[i];
    } else {
        uint64_t *to = PyArray_DATA(a);
        for (npy_intp i = 0; i < size; i++) to[i] = set[i] ? bits : to[i];
    }
    Py_INCREF(args[0]);
    return args[0];
}

/* xlogy(a, b): a * log(b), 0 where a is 0, of one shape */
static PyObject *xlogy(PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !is_of(args[0], NPY_FLOAT) || !is_of(args[1], NPY_FLOAT)) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1];
    if (!PyArray_SAMESHAPE(a, b) || PyArray_SIZE(a) > FEW) return LEFT;
    PyArrayObject *made = new_of(a, PyArray_NDIM(a), PyArray_DIMS(a));
    if (!made) return NULL;
    const float *x = PyArray_DATA(a), *y = PyArray_DATA(b);
    float *to = PyArray_DATA(made);
    for (npy_intp i = 0; i < PyArray_SIZE(a); i++) to[i] = y[i] != y[i] ? y[i] : x[i] == 0.0f ? 0.0f : x[i] * logf(y[i]);
    return (PyObject *)made;
}

/* flip(a, dims) */
static PyObject *flip(PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[NPY_MAXDIMS], place[NPY_MAXDIMS] = {0}, steps[NPY_MAXDIMS];
    char turned[NPY_MAXDIMS] = {0};
    if (count != 2 || !is_dense(args[0]) || steps_are_heard()) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a), named = sizes_of(args[1], dims);
    npy_intp size = PyArray_SIZE(a), item = PyArray_ITEMSIZE(a);
    if (named < 1 || !size || size > FEW || (item != 4 && item != 8)) return LEFT;
    for (int i = 0; i < named; i++) {
        npy_intp dim = dims[i] < 0 ? dims[i] + ndim : dims[i];
        if (dim < 0 || dim >= ndim || turned[dim]) return LEFT;
        turned[dim] = 1;
    }
    const char *from = PyArray_DATA(a);
    for (int d = 0; d < ndim; d++) {
        steps[d] = turned[d] ? -PyArray_STRIDE(a, d) : PyArray_STRIDE(a, d);
        if (turned[d]) from += (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
    }
    PyArrayObject *made = new_of(a, ndim, PyArray_DIMS(a));
    if (!made) return NULL;
    char *to = PyArray_DATA(made);
    for (npy_intp i = 0; i < size; i++, to += item) {
        if (item == 4) memcpy(to, from, 4);
        else memcpy(to, from, 8);
        for (int d = ndim - 1; d >= 0; d--) {
            from += steps[d];
            if (++place[d] < PyArray_DIM(a, d)) break;
            from -= steps[d] * PyArray_DIM(a, d);
            place[d] = 0;
        }
    }
    return (PyObject *)made;
}

/* where(condition, a, b): arrays of one shape, or one number */
static PyObject *where(PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !is_of(args[0], NPY_BOOL) || !is_dense(args[1]) || !is_dense(args[2])) return LEFT;
    PyArrayObject *mask = (PyArrayObject *)args[0], *a = (PyArrayObject *)args[1], *b = (PyArrayObject *)args[2];
    npy_intp size = PyArray_SIZE(mask), item = PyArray_ITEMSIZE(a);
    int many_a = PyArray_NDIM(a) != 0, many_b = PyArray_NDIM(b) != 0;
    if (PyArray_DESCR(a) != PyArray_DESCR(b) || size > FEW || (item != 4 && item != 8) ||
        (many_a && !PyArray_SAMESHAPE(mask, a)) || (many_b && !PyArray_SAMESHAPE(mask, b)))
        return LEFT;
    PyArrayObject *made = new_of(a, PyArray_NDIM(mask), PyArray_DIMS(mask));
    if (!made) return NULL;
    const npy_bool *set = PyArray_DATA(mask);
#define CHOOSE(TYPE)                                                                                                   \
    for (npy_intp i = 0; i < size; i++)                                                                                \
        ((TYPE *)PyArray_DATA(made))[i] =                                                                              \
            set[i] ? ((TYPE *)PyArray_DATA(a))[many_a ? i : 0] : ((TYPE *)PyArray_DATA(b))[many_b ? i : 0];
    if (item == 4) CHOOSE(uint32_t)
    else CHOOSE(uint64_t)
    return (PyObject *)made;
}

/* A bound of `clamp`: 1, or 0 if this is left to others. */
static int limit_of(PyObject *o, float missing, float *made) {
    if (o == Py_None) *made = missing;
    else if (PyFloat_CheckExact(o)) *made = (float)PyFloat_AS_DOUBLE(o);
    else return 0;
    return *made == *made;
}

/* clamp(a, low, high) */
static PyObject *clamp(PyObject *const *args, Py_ssize_t count) {
    float low, high;
    if (count != 3 || !is_of(args[0], NPY_FLOAT) || (args[1] == Py_None && args[2] == Py_None) ||
        !limit_of(args[1], -INFINITY, &low) || !limit_of(args[2], INFINITY, &high) || steps_are_heard())
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    if (PyArray_SIZE(a) > FEW) return LEFT;
    PyArrayObject *made = new_of(a, PyArray_NDIM(a), PyArray_DIMS(a));
    if (!made) return NULL;
    const float *x = PyArray_DATA(a);
    float *to = PyArray_DATA(made);
    for (npy_intp i = 0; i < PyArray_SIZE(a); i++) {
        float kept = x[i] < low ? low : x[i];
        to[i] = kept > high ? high : kept;
    }
    return (PyObject *)made;
}

/* constant_pad_nd(a, pad, value): margins (before, after) from the last dimension on, none of them negative */
static PyObject *constant_pad(PyObject *const *args, Py_ssize_t count) {
    npy_intp pad[NPY_MAXDIMS], sizes[NPY_MAXDIMS], place[NPY_MAXDIMS] = {0}, offset = 0;
    uint64_t bits;
    if (count != 3 || !is_dense(args[0]) || steps_are_heard()) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a), given = sizes_of(args[1], pad), some = 0;
    npy_intp size = PyArray_SIZE(a), item = PyArray_ITEMSIZE(a), whole = 1;
    if (given < 2 || given % 2 || given > 2 * ndim || !size || size > FEW || (item != 4 && item != 8) ||
        !element_of(args[2], a, &bits))
        return LEFT;
    for (int d = 0; d < ndim; d++) {
        int k = ndim - 1 - d;
        npy_intp before = 2 * k < given ? pad[2 * k] : 0, after = 2 * k < given ? pad[2 * k + 1] : 0;
        if (before < 0 || after < 0 || before > FEW || after > FEW) return LEFT;
        some |= before || after;
        sizes[d] = PyArray_DIM(a, d) + before + after;
        offset = offset * sizes[d] + before;
        if ((whole *= sizes[d]) > 8 * FEW) return LEFT;
    }
    if (!some) return LEFT;
    PyArrayObject *made = new_of(a, ndim, sizes);
    if (!made) return NULL;
    char *to = PyArray_DATA(made);
    const char *from = PyArray_DATA(a);
    for (npy_intp i = 0; i < whole; i++) memcpy(to + i * item, &bits, (size_t)item);
    npy_intp row = PyArray_DIM(a, ndim - 1) * item;
    to += offset * item;
    for (npy_intp done = 0; done < size * item; done += row, from += row) {
        memcpy(to, from, (size_t)row);
        for (int d = ndim - 2; d >= 0; d--) {
            to += PyArray_STRIDE(made, d);
            if (++place[d] < PyArray_DIM(a, d)) break;
            to -= PyArray_STRIDE(made, d) * PyArray_DIM(a, d);
            place[d] = 0;
        }
    }
    return (PyObject *)made;
}

DirectEntry sums_direct[] = {{"sum.dim_IntList", sum_dims, 0}, {"mean.dim", mean_dims, 0}, {"mean", mean, 0}, {"var", var, 0}, {"std", deviation, 0},
                             {"linalg_vector_norm", vector_norm, 0}, {"masked_fill_", masked_fill, 0},
                             {"xlogy", xlogy, 0}, {"flip", flip, 0}, {"where", where, 0}, {"clamp", clamp, 0},
                             {"constant_pad_nd", constant_pad, 0}, {NULL, NULL, 0}};
