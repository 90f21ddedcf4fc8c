/* Normalization and softmax as kernels that look at their arguments themselves. */
#include "direct.h"

#include <math.h>
#include <string.h>

#include "arguments.h"
#include "kernels.h"

#define FLOATS(A) ((float *)PyArray_DATA(A))

/* Whether an array has these sizes as its last ones; `*rows` becomes how many there are of them. */
static int ends_with(PyArrayObject *a, int count, const npy_intp *sizes, npy_intp *rows, npy_intp *columns) {
    int lead = PyArray_NDIM(a) - count;
    if (lead < 0 || count < 1) return 0;
    *rows = *columns = 1;
    for (int d = 0; d < lead; d++) *rows *= PyArray_DIM(a, d);
    for (int d = 0; d < count; d++) {
        if (PyArray_DIM(a, lead + d) != sizes[d]) return 0;
        *columns *= sizes[d];
    }
    return 1;
}

static int has_sizes(PyObject *o, int count, npy_intp *sizes) {
    if (o == Py_None) return 1;
    PyArrayObject *a = (PyArrayObject *)o;
    return is_of(o, NPY_FLOAT) && PyArray_NDIM(a) == count && PyArray_CompareLists(PyArray_DIMS(a), sizes, count);
}

/* layer_norm(a, normalized_shape, weight, bias, eps) */
static PyObject *layer_norm(PyObject *const *args, Py_ssize_t count) {
    npy_intp sizes[NPY_MAXDIMS], column[NPY_MAXDIMS], rows, columns;
    if (count != 5 || !is_of(args[0], NPY_FLOAT) || !PyFloat_CheckExact(args[4])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int last = sizes_of(args[1], sizes), ndim = PyArray_NDIM(a), fits = 1;
    if (last < 1 || !PyArray_SIZE(a) || !ends_with(a, last, sizes, &rows, &columns) || !has_sizes(args[2], last, sizes) ||
        !has_sizes(args[3], last, sizes))
        return LEFT;
    const float *weight = floats_or_none(args[2], columns, &fits), *bias = floats_or_none(args[3], columns, &fits);
    for (int d = 0; d < ndim; d++) column[d] = d < ndim - last ? PyArray_DIM(a, d) : 1;
    npy_intp flat[2] = {rows, columns}, single[2] = {rows, 1};
    PyArrayObject *made = step_empty_as(2, flat, ndim, PyArray_DIMS(a), NPY_FLOAT);
    PyArrayObject *mean = made ? step_empty_to_view(2, single, ndim, column, NPY_FLOAT) : NULL;
    PyArrayObject *rstd = mean ? step_empty_to_view(2, single, ndim, column, NPY_FLOAT) : NULL;
    float eps = (float)PyFloat_AS_DOUBLE(args[4]);
    if (rstd)
        UNLOCKED(rows * columns > MANY, level->layer_norm(FLOATS(made), FLOATS(mean), FLOATS(rstd), FLOATS(a), weight,
                                                          bias, rows, columns, eps, 1));
    mean = step_viewed(mean, ndim, column), rstd = step_viewed(rstd, ndim, column);
    return tuple_of_three(made, mean, rstd);
}

/* layer_norm_backward(grad, a, normalized_shape, mean, rstd, weight, bias, output_mask) */
static PyObject *layer_norm_backward(PyObject *const *args, Py_ssize_t count) {
    npy_intp sizes[NPY_MAXDIMS], rows, columns;
    int asked[3], fits = 1, last;
    if (count != 8 || !is_of(args[0], NPY_FLOAT) || !is_of(args[1], NPY_FLOAT) || !mask_of(args[7], asked)) return LEFT;
    PyArrayObject *pull = (PyArrayObject *)args[0], *a = (PyArrayObject *)args[1];
    if ((last = sizes_of(args[2], sizes)) < 1 || !PyArray_SIZE(a) || !PyArray_SAMESHAPE(pull, a) ||
        !ends_with(a, last, sizes, &rows, &columns) || args[3] == Py_None || args[4] == Py_None)
        return LEFT;
    const float *mean = floats_or_none(args[3], rows, &fits), *rstd = floats_or_none(args[4], rows, &fits);
    const float *weight = floats_or_none(args[5], columns, &fits);
    floats_or_none(args[6], columns, &fits);
    if (!fits) return LEFT;
    npy_intp flat[2] = {rows, columns};
    PyArrayObject *made = asked[0] ? step_empty_as(2, flat, PyArray_NDIM(a), PyArray_DIMS(a), NPY_FLOAT) : empty_floats();
    PyArrayObject *second = !made ? NULL : asked[1] ? step_empty(last, sizes, NPY_FLOAT) : empty_floats();
    PyArrayObject *third = !second ? NULL : asked[2] ? step_empty(last, sizes, NPY_FLOAT) : empty_floats();
    int failed = 0;
    if (third)
        UNLOCKED(rows * columns > MANY, failed = level->layer_norm_back(
            asked[0] ? FLOATS(made) : NULL, asked[1] ? FLOATS(second) : NULL, asked[2] ? FLOATS(third) : NULL,
            FLOATS(pull), FLOATS(a), mean, rstd, weight, rows, columns));
    PyObject *all = tuple_of_three(made, second, third);
    if (failed) {
        Py_XDECREF(all);
        return PyErr_NoMemory();
    }
    return all;
}

/* An array of float32 as (images, channels, area). */
static int channels_of(PyObject *o, ChannelNorm *it) {
    PyArrayObject *a = (PyArrayObject *)o;
    if (!is_of(o, NPY_FLOAT) || PyArray_NDIM(a) < 2 || !PyArray_SIZE(a)) return 0;
    it->images = PyArray_DIM(a, 0), it->channels = PyArray_DIM(a, 1), it->groups = 1;
    it->area = PyArray_SIZE(a) / (it->images * it->channels);
    it->given = FLOATS(a);
    return 1;
}

/* Running statistics: a vector to write to, or None. */
static int is_running(PyObject *o, npy_intp channels) {
    return o == Py_None || (is_of(o, NPY_FLOAT) && PyArray_ISWRITEABLE((PyArrayObject *)o) &&
                            PyArray_NDIM((PyArrayObject *)o) == 1 && PyArray_DIM((PyArrayObject *)o, 0) == channels);
}

/* batch_norm(a, weight, bias, running_mean, running_var, training, momentum, eps) */
static PyObject *batch_norm(PyObject *const *args, Py_ssize_t count) {
    ChannelNorm it = {0};
    int fits = 1;
    if (count != 8 || !channels_of(args[0], &it) || !is_running(args[3], it.channels) || !is_running(args[4], it.channels) ||
        args[5] != Py_True || !PyFloat_CheckExact(args[6]) || !PyFloat_CheckExact(args[7]))
        return LEFT;
    it.weight = floats_or_none(args[1], it.channels, &fits), it.bias = floats_or_none(args[2], it.channels, &fits);
    float *old_mean = floats_or_none(args[3], it.channels, &fits), *old = floats_or_none(args[4], it.channels, &fits);
    if (!fits) return LEFT;
    it.eps = (float)PyFloat_AS_DOUBLE(args[7]), it.learns = 1;
    npy_intp channels = it.channels, size = it.images * it.channels * it.area;
    PyArrayObject *made = step_empty_like((PyArrayObject *)args[0]);
    PyArrayObject *mean = made ? (PyArrayObject *)PyArray_SimpleNew(1, &channels, NPY_FLOAT) : NULL;
    PyArrayObject *rstd = mean ? (PyArrayObject *)PyArray_SimpleNew(1, &channels, NPY_FLOAT) : NULL;
    float *variance = rstd ? PyMem_Malloc(sizeof(float) * (size_t)channels) : NULL;
    if (variance) {
        it.made = FLOATS(made), it.mean = FLOATS(mean), it.rstd = FLOATS(rstd), it.variance = variance;
        UNLOCKED(size > MANY, level->batch_norm(&it));
        double samples = (double)(it.images * it.area), momentum = PyFloat_AS_DOUBLE(args[6]);
        double unbiased = samples > 1 ? samples / (samples - 1) : INFINITY;
        for (npy_intp c = 0; c < channels; c++) {
            float kept = (float)(1 - momentum);
            if (old_mean) old_mean[c] = old_mean[c] * kept + it.mean[c] * (float)momentum;
            if (old) old[c] = (float)((double)(old[c] * kept) + (double)variance[c] * unbiased * momentum);
        }
    } else if (rstd) {
        Py_CLEAR(rstd);
        PyErr_NoMemory();
    }
    PyMem_Free(variance);
    return tuple_of_three(made, mean, rstd);
}

/* batch_norm_backward(grad, a, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask) */
static PyObject *batch_norm_backward(PyObject *const *args, Py_ssize_t count) {
    ChannelNorm it = {0};
    int fits = 1, asked[3];
    if (count != 10 || !is_of(args[0], NPY_FLOAT) || !channels_of(args[1], &it) || args[7] != Py_True ||
        !PyArray_SAMESHAPE((PyArrayObject *)args[0], (PyArrayObject *)args[1]) || !mask_of(args[9], asked))
        return LEFT;
    it.pull = FLOATS((PyArrayObject *)args[0]), it.weight = floats_or_none(args[2], it.channels, &fits);
    it.mean = floats_or_none(args[5], it.channels, &fits), it.rstd = floats_or_none(args[6], it.channels, &fits);
    if (!fits || !it.mean || !it.rstd) return LEFT;
    it.learns = 1;
    npy_intp channels = it.channels, size = it.images * it.channels * it.area;
    PyArrayObject *made = step_empty_like((PyArrayObject *)args[1]);
    PyArrayObject *second = made ? (PyArrayObject *)PyArray_SimpleNew(1, &channels, NPY_FLOAT) : NULL;
    PyArrayObject *third = second ? (PyArrayObject *)PyArray_SimpleNew(1, &channels, NPY_FLOAT) : NULL;
    if (third) {
        it.made = FLOATS(made), it.weight_pull = FLOATS(second), it.bias_pull = FLOATS(third);
        UNLOCKED(size > MANY, level->batch_norm_back(&it));
        if (!asked[1]) Py_SETREF(second, empty_floats());
        if (!asked[2]) Py_SETREF(third, empty_floats());
    }
    return tuple_of_three(made, second, third);
}

/* The numbers n, c, hxw, group at `args`, which an array fits. */
static int groups_of(PyObject *const *args, PyObject *o, ChannelNorm *it) {
    npy_intp number[4];
    for (int i = 0; i < 4; i++)
        if (!number_of(args[i], number + i)) return 0;
    it->images = number[0], it->channels = number[1], it->area = number[2], it->groups = number[3];
    if (!is_of(o, NPY_FLOAT) || it->groups < 1 || it->images < 1 || it->channels < 1 || it->area < 1 ||
        it->channels % it->groups || PyArray_SIZE((PyArrayObject *)o) != it->images * it->channels * it->area)
        return 0;
    it->given = FLOATS((PyArrayObject *)o);
    return 1;
}

/* group_norm(a, weight, bias, n, c, hxw, group, eps) */
static PyObject *group_norm(PyObject *const *args, Py_ssize_t count) {
    ChannelNorm it = {0};
    int fits = 1;
    if (count != 8 || !groups_of(args + 3, args[0], &it) || !PyFloat_CheckExact(args[7])) return LEFT;
    it.weight = floats_or_none(args[1], it.channels, &fits), it.bias = floats_or_none(args[2], it.channels, &fits);
    if (!fits) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    npy_intp flat[2] = {it.images * it.channels, it.area}, each[2] = {it.images, it.groups};
    PyArrayObject *made = step_empty_as(2, flat, PyArray_NDIM(a), PyArray_DIMS(a), NPY_FLOAT);
    PyArrayObject *mean = made ? step_empty(2, each, NPY_FLOAT) : NULL, *rstd = mean ? step_empty(2, each, NPY_FLOAT) : NULL;
    if (rstd) {
        it.made = FLOATS(made), it.mean = FLOATS(mean), it.rstd = FLOATS(rstd);
        it.eps = (float)PyFloat_AS_DOUBLE(args[7]);
        UNLOCKED(PyArray_SIZE(a) > MANY, level->group_norm(&it));
    }
    return tuple_of_three(made, mean, rstd);
}

/* Sums over images; takes the reference of nothing. */
static PyArrayObject *over_images(const float *given, npy_intp images, npy_intp channels) {
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(1, &channels, NPY_FLOAT);
    if (!made) return NULL;
    memcpy(FLOATS(made), given, sizeof(float) * (size_t)channels);
    for (npy_intp n = 1; n < images; n++)
        for (npy_intp c = 0; c < channels; c++) FLOATS(made)[c] += given[n * channels + c];
    return made;
}

/* group_norm_backward(grad, a, mean, rstd, weight, n, c, hxw, group, output_mask) */
static PyObject *group_norm_backward(PyObject *const *args, Py_ssize_t count) {
    ChannelNorm it = {0};
    int fits = 1, asked[3];
    if (count != 10 || !groups_of(args + 5, args[1], &it) || !is_of(args[0], NPY_FLOAT) || !mask_of(args[9], asked) ||
        PyArray_SIZE((PyArrayObject *)args[0]) != PyArray_SIZE((PyArrayObject *)args[1]))
        return LEFT;
    it.mean = floats_or_none(args[2], it.images * it.groups, &fits);
    it.rstd = floats_or_none(args[3], it.images * it.groups, &fits);
    it.weight = floats_or_none(args[4], it.channels, &fits);
    if (!fits || !it.mean || !it.rstd) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[1], *second = NULL, *third = NULL;
    npy_intp flat[2] = {it.images * it.channels, it.area};
    PyArrayObject *made = step_empty_as(2, flat, PyArray_NDIM(a), PyArray_DIMS(a), NPY_FLOAT);
    float *room = made ? PyMem_Malloc(2 * sizeof(float) * (size_t)flat[0]) : NULL;
    if (room) {
        it.pull = FLOATS((PyArrayObject *)args[0]), it.made = FLOATS(made);
        it.weight_pull = room, it.bias_pull = room + flat[0];
        UNLOCKED(PyArray_SIZE(a) > MANY, level->group_norm_back(&it));
        second = asked[1] ? over_images(it.weight_pull, it.images, it.channels) : empty_floats();
        third = asked[2] ? over_images(it.bias_pull, it.images, it.channels) : empty_floats();
        PyMem_Free(room);
    } else if (made) {
        PyErr_NoMemory();
    }
    return tuple_of_three(made, second, third);
}

/* -- softmax -- */

/* Above this, what is not along rows is left: it would be moved about too much. */
enum { FEW = 4096 };

/* (outer, count, inner) from or to rows of `count`. */
static void turned(float *rows, float *cells, npy_intp outer, npy_intp count, npy_intp inner, int back) {
    for (npy_intp o = 0; o < outer; o++)
        for (npy_intp i = 0; i < inner; i++)
            for (npy_intp j = 0; j < count; j++) {
                float *row = rows + (o * inner + i) * count + j, *cell = cells + (o * count + j) * inner + i;
                if (back) *cell = *row;
                else *row = *cell;
            }
}

static int extents(PyArrayObject *a, PyObject *at, npy_intp *outer, npy_intp *count, npy_intp *inner) {
    int dim = dim_of(at, PyArray_NDIM(a));
    if (dim < 0 || !PyArray_SIZE(a)) return 0;
    *outer = *inner = 1, *count = PyArray_DIM(a, dim);
    for (int d = 0; d < dim; d++) *outer *= PyArray_DIM(a, d);
    for (int d = dim + 1; d < PyArray_NDIM(a); d++) *inner *= PyArray_DIM(a, d);
    return *inner == 1 || PyArray_SIZE(a) <= FEW;
}

static PyObject *softmax_of(PyObject *const *args, Py_ssize_t given, int logs) {
    npy_intp outer, count, inner;
    if (given != 3 || !is_of(args[0], NPY_FLOAT) || args[2] != Py_False) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    if (!extents(a, args[1], &outer, &count, &inner)) return LEFT;
    PyArrayObject *made = new_of(a, PyArray_NDIM(a), PyArray_DIMS(a));
    if (!made) return NULL;
    if (inner == 1) {
        UNLOCKED(PyArray_SIZE(a) > MANY / 2, level->softmax(FLOATS(made), FLOATS(a), outer, count, logs));
    } else {
        float rows[2 * FEW], *results = rows + FEW;
        turned(rows, FLOATS(a), outer, count, inner, 0);
        level->softmax(results, rows, outer * inner, count, logs);
        turned(results, FLOATS(made), outer, count, inner, 1);
    }
    return (PyObject *)made;
}

static PyObject *softmax_back_of(PyObject *const *args, Py_ssize_t given, int logs) {
    npy_intp outer, count, inner;
    if (given != 4 || !is_of(args[0], NPY_FLOAT) || !is_of(args[1], NPY_FLOAT)) return LEFT;
    PyArrayObject *pull = (PyArrayObject *)args[0], *result = (PyArrayObject *)args[1];
    /* Of 16-bit floats the gradient is asked for in their type. */
    PyObject *kind = PyObject_GetAttrString(args[3], "np");
    Py_XDECREF(kind);
    if (!kind) PyErr_Clear();
    if (kind != (PyObject *)PyArray_DESCR(pull) || !PyArray_SAMESHAPE(pull, result) || !extents(pull, args[2], &outer, &count, &inner)) return LEFT;
    PyArrayObject *made = new_of(pull, PyArray_NDIM(pull), PyArray_DIMS(pull));
    if (!made) return NULL;
    if (inner == 1) {
        UNLOCKED(PyArray_SIZE(pull) > MANY / 2,
                 level->softmax_back(FLOATS(made), FLOATS(pull), FLOATS(result), outer, count, logs));
    } else {
        float rows[3 * FEW], *values = rows + FEW, *results = rows + 2 * FEW;
        turned(rows, FLOATS(pull), outer, count, inner, 0);
        turned(values, FLOATS(result), outer, count, inner, 0);
        level->softmax_back(results, rows, values, outer * inner, count, logs);
        turned(results, FLOATS(made), outer, count, inner, 1);
    }
    return (PyObject *)made;
}

/* softmax(a, dim, half_to_float), softmax_backward(grad, output, dim, input_dtype) and those of logarithms */
static PyObject *softmax(PyObject *const *args, Py_ssize_t count) { return softmax_of(args, count, 0); }
static PyObject *log_softmax(PyObject *const *args, Py_ssize_t count) { return softmax_of(args, count, 1); }
static PyObject *softmax_backward(PyObject *const *args, Py_ssize_t count) { return softmax_back_of(args, count, 0); }
static PyObject *log_softmax_backward(PyObject *const *args, Py_ssize_t count) { return softmax_back_of(args, count, 1); }

DirectEntry norms_direct[] = {{"layer_norm", layer_norm, 0}, {"layer_norm_back", layer_norm_backward, 0},
                              {"batch_norm", batch_norm, 0}, {"batch_norm_back", batch_norm_backward, 0},
                              {"group_norm", group_norm, 0}, {"group_norm_back", group_norm_backward, 0},
                              {"softmax", softmax, 0}, {"log_softmax", log_softmax, 0},
                              {"softmax_back", softmax_backward, 0},
                              {"log_softmax_back", log_softmax_backward, 0}, {NULL, NULL, 0}};
