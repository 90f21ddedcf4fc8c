/* Convolutions of float32 as kernels that look at their arguments themselves. */
#include "direct.h"

#include <string.h>

#include "arguments.h"
#include "kernels.h"

#define FLOATS(A) ((float *)PyArray_DATA(A))

/* One number per dimension, for the last `count` of three; a single number is for all. */
static int numbers_of(PyObject *o, int count, ptrdiff_t made[3], npy_intp smallest) {
    npy_intp found[NPY_MAXDIMS];
    int given = sizes_of(o, found);
    if (given != 1 && given != count) return 0;
    for (int i = 0; i < count; i++) {
        npy_intp number = found[given == 1 ? 0 : i];
        if (number < smallest || number > 1 << 20) return 0;
        made[3 - count + i] = number;
    }
    return 1;
}

/* Images (N, C, ...) and weights (out, in of a group, ...) with stride, padding, dilation and groups; the sizes of the
   result as well. 0 if they are left to others. */
static int windows_of(PyObject *images, PyObject *weight, PyObject *stride, PyObject *padding, PyObject *dilation,
                      PyObject *groups, Windows *it) {
    PyArrayObject *x = (PyArrayObject *)images, *w = (PyArrayObject *)weight;
    npy_intp parts;
    if (!is_of(images, NPY_FLOAT) || !is_of(weight, NPY_FLOAT) || PyArray_NDIM(x) < 3 || PyArray_NDIM(x) > 5 ||
        PyArray_NDIM(w) != PyArray_NDIM(x) || !PyArray_SIZE(x) || !PyArray_SIZE(w) || !PyLong_CheckExact(groups) ||
        !number_of(groups, &parts) || parts < 1)
        return 0;
    int dims = PyArray_NDIM(x), count = dims - 2;
    it->images = PyArray_DIM(x, 0), it->channels = PyArray_DIM(x, 1), it->out_channels = PyArray_DIM(w, 0);
    it->groups = parts;
    if (PyArray_DIM(w, 1) * parts != it->channels || it->out_channels % parts) return 0;
    for (int i = 0; i < 3; i++) {
        int there = i - 3 + dims;
        it->given[i] = it->made[i] = it->kernel[i] = it->stride[i] = it->dilation[i] = 1, it->padding[i] = 0;
        if (there > 1) it->given[i] = PyArray_DIM(x, there), it->kernel[i] = PyArray_DIM(w, there);
    }
    if (!numbers_of(stride, count, it->stride, 1) || !numbers_of(padding, count, it->padding, 0) ||
        !numbers_of(dilation, count, it->dilation, 1))
        return 0;
    for (int i = 3 - count; i < 3; i++) {
        ptrdiff_t reach = it->given[i] + 2 * it->padding[i] - it->dilation[i] * (it->kernel[i] - 1) - 1;
        if (reach < 0) return 0;
        it->made[i] = reach / it->stride[i] + 1;
    }
    return 1;
}

/* The shape of the result. */
static void result_of(const Windows *it, int dims, npy_intp shape[5]) {
    shape[0] = it->images, shape[1] = it->out_channels;
    for (int i = 2; i < dims; i++) shape[i] = it->made[i - dims + 3];
}

static int is_bias(PyObject *o, ptrdiff_t channels) {
    return o == Py_None || (is_of(o, NPY_FLOAT) && PyArray_NDIM((PyArrayObject *)o) == 1 &&
                            PyArray_DIM((PyArrayObject *)o, 0) == channels);
}

/* A small convolution is done before other threads could take over. */
static int is_long(const Windows *it) {
    ptrdiff_t size = it->images * it->out_channels * it->channels;
    for (int i = 0; i < 3; i++) size *= it->made[i] * it->kernel[i];
    return size > 1 << 16;
}

static PyObject *convolved(PyObject *x, PyObject *weight, PyObject *bias, const Windows *it) {
    npy_intp shape[5];
    int dims = PyArray_NDIM((PyArrayObject *)x), failed = 0;
    result_of(it, dims, shape);
    PyArrayObject *made = step_empty(dims, shape, NPY_FLOAT);
    if (!made) return NULL;
    const float *shift = bias == Py_None ? NULL : FLOATS((PyArrayObject *)bias);
    UNLOCKED(is_long(it), failed = level->convolve(it, FLOATS(made), FLOATS((PyArrayObject *)x),
                                                   FLOATS((PyArrayObject *)weight), shift));
    if (failed) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    return (PyObject *)made;
}

/* mkldnn_convolution(x, weight, bias, padding, stride, dilation, groups) */
static PyObject *of_floats(PyObject *const *args, Py_ssize_t count) {
    Windows it;
    if (count != 7 || !windows_of(args[0], args[1], args[4], args[3], args[5], args[6], &it) ||
        !is_bias(args[2], it.out_channels))
        return LEFT;
    return convolved(args[0], args[1], args[2], &it);
}

/* _convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, ...) */
static PyObject *convolution(PyObject *const *args, Py_ssize_t count) {
    Windows it;
    npy_intp extra[NPY_MAXDIMS];
    if (count != 13 || args[6] != Py_False || !windows_of(args[0], args[1], args[3], args[4], args[5], args[8], &it) ||
        !is_bias(args[2], it.out_channels))
        return LEFT;
    int given = sizes_of(args[7], extra);
    if (given != 1 && given != PyArray_NDIM((PyArrayObject *)args[0]) - 2) return LEFT;
    for (int i = 0; i < given; i++)
        if (extra[i] < 0) return LEFT;
    PyObject *const asked[7] = {args[0], args[1], args[2], args[4], args[3], args[5], args[8]};
    PyObject *made = step_convolve(asked);
    return made || PyErr_Occurred() ? made : convolved(args[0], args[1], args[2], &it);
}

/* Sums over all but the channels. */
static void channel_sums(float *made, const float *pull, ptrdiff_t images, ptrdiff_t channels, ptrdiff_t area) {
    for (ptrdiff_t c = 0; c < channels; c++) {
        double sum = 0.0;
        for (ptrdiff_t n = 0; n < images; n++)
            for (ptrdiff_t i = 0; i < area; i++) sum += (double)pull[(n * channels + c) * area + i];
        made[c] = (float)sum;
    }
}

/* convolution_backward(grad, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
   output_mask) */
static PyObject *convolution_backward(PyObject *const *args, Py_ssize_t count) {
    Windows it;
    npy_intp shape[5];
    int asked[3], failed = 0;
    if (count != 11 || args[7] != Py_False || !is_of(args[0], NPY_FLOAT) || !mask_of(args[10], asked) ||
        !windows_of(args[1], args[2], args[4], args[5], args[6], args[9], &it))
        return LEFT;
    PyArrayObject *pull = (PyArrayObject *)args[0], *x = (PyArrayObject *)args[1], *weight = (PyArrayObject *)args[2];
    int dims = PyArray_NDIM(x), slow = is_long(&it);
    result_of(&it, dims, shape);
    /* Sums of much are others' work, who share it. */
    if (PyArray_NDIM(pull) != dims || !PyArray_CompareLists(PyArray_DIMS(pull), shape, dims) ||
        (asked[2] && PyArray_SIZE(pull) > MANY))
        return LEFT;
    PyArrayObject *first = asked[0] ? step_empty(dims, PyArray_DIMS(x), NPY_FLOAT) : empty_floats();
    if (first && asked[0])
        UNLOCKED(slow, failed = level->convolve_input(&it, FLOATS(first), FLOATS(pull), FLOATS(weight)));
    PyArrayObject *second = !first || failed ? NULL : asked[1] ? step_empty(dims, PyArray_DIMS(weight), NPY_FLOAT)
                                                               : empty_floats();
    if (second && asked[1])
        UNLOCKED(slow, failed = level->convolve_back(&it, FLOATS(second), FLOATS(pull), FLOATS(x)));
    npy_intp channels = it.out_channels;
    PyArrayObject *third = !second || failed ? NULL : asked[2] ? step_empty(1, &channels, NPY_FLOAT) : empty_floats();
    if (third && asked[2])
        channel_sums(FLOATS(third), FLOATS(pull), it.images, channels, PyArray_SIZE(pull) / (it.images * channels));
    if (failed) PyErr_NoMemory();
    return tuple_of_three(first, second, third);
}

DirectEntry convolutions_direct[] = {{"mkldnn_convolution", of_floats, 0}, {"convolution", convolution, 0},
                                     {"convolution_backward", convolution_backward, 0}, {NULL, NULL, 0}};
