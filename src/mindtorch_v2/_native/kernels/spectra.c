/* Fourier transforms of float32 as functions on NumPy arrays. */
#include "arrays.h"

#include <math.h>
#include <string.h>

#include "arguments.h"
#include "direct.h"
#include "kernels.h"
#include "spectra.h"

enum { CALLED_FOURIER };
Counter spectra_calls[] = {{"fourier", 0}, {NULL, 0}};

static int is_type(PyObject *o, int type) {
    return PyArray_Check(o) && PyArray_TYPE((PyArrayObject *)o) == type && PyArray_ISCARRAY_RO((PyArrayObject *)o);
}

/* The roots that a call was given before, by how many there are. */
enum { FEW_PLACES = 256 };
static PyArrayObject *known_roots[FEW_PLACES + 1];

static void keep_roots(PyArrayObject *roots) {
    npy_intp total = PyArray_SIZE(roots);
    if (total > FEW_PLACES || known_roots[total]) return;
    Py_INCREF(roots);
    known_roots[total] = roots;
}

/* fourier(kind, made, given, roots, dim, inverse, scale): along one dimension. `made` may be `given`, if both are
   complex. */
static PyObject *fourier(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 7)) return NULL;
    long kind = PyLong_AsLong(args[0]), dim = PyLong_AsLong(args[4]);
    int inverse = PyObject_IsTrue(args[5]);
    double scale = PyFloat_AsDouble(args[6]);
    if (PyErr_Occurred()) return NULL;
    if (kind < 0 || kind >= SPECTRUM_COUNT) return wrong("unknown kind");
    int from = kind == REAL_TO_HALF || kind == REAL_TO_FULL ? NPY_FLOAT : NPY_CFLOAT;
    int to = kind == HALF_TO_REAL ? NPY_FLOAT : NPY_CFLOAT;
    if (!is_type(args[1], to) || !is_type(args[2], from) || !is_type(args[3], NPY_CFLOAT))
        return wrong("expected contiguous arrays of other types");
    PyArrayObject *made = (PyArrayObject *)args[1], *given = (PyArrayObject *)args[2], *roots = (PyArrayObject *)args[3];
    if (!PyArray_ISWRITEABLE(made) || PyArray_NDIM(made) != PyArray_NDIM(given) || dim < 0 || dim >= PyArray_NDIM(made))
        return wrong("expected arrays of the same dimensions");
    Fourier it = {.kind = (enum Spectrum)kind, .outer = 1, .total = PyArray_SIZE(roots), .inner = 1,
                  .sign = inverse ? -1.0f : 1.0f, .scale = (float)scale, .roots = PyArray_DATA(roots)};
    if (it.total < 1) return wrong("a transform of nothing");
    for (int d = 0; d < PyArray_NDIM(made); d++) {
        npy_intp here = PyArray_DIM(made, d), there = PyArray_DIM(given, d), half = it.total / 2 + 1;
        if (d != dim && here != there) return wrong("arrays of other sizes");
        if (d < dim) it.outer *= here;
        else if (d > dim) it.inner *= here;
        else if (here != (kind == REAL_TO_HALF ? half : it.total) || there != (kind == HALF_TO_REAL ? half : it.total))
            return wrong("not as long as the roots say");
    }
    int failed = 0;
    spectra_calls[CALLED_FOURIER].calls++;
    if (PyArray_SIZE(made))
        UNLOCKED(PyArray_SIZE(made) > MANY, failed = level->fourier(&it, PyArray_DATA(made), PyArray_DATA(given)));
    if (failed) return PyErr_NoMemory();
    keep_roots(roots);
    Py_RETURN_NONE;
}

/* -- kernels that look for themselves -- */

/* A small transform along the one dimension of `dims`, the last; `last` is how long a real result is. */
static PyObject *one_transform(enum Spectrum kind, PyObject *const *args, int inverse, npy_intp last) {
    npy_intp dims[NPY_MAXDIMS], sizes[NPY_MAXDIMS], by;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int real = kind == REAL_TO_HALF || kind == REAL_TO_FULL;
    if (!is_of(args[0], real ? NPY_FLOAT : NPY_CFLOAT) || sizes_of(args[1], dims) != 1 || !number_of(args[2], &by) ||
        by < 0 || by > 2 || !PyArray_SIZE(a) || PyArray_SIZE(a) > MANY)
        return LEFT;
    int ndim = PyArray_NDIM(a), dim = (int)(dims[0] < 0 ? dims[0] + ndim : dims[0]);
    if (dim != ndim - 1) return LEFT; /* along another dimension the result has another memory order */
    npy_intp given = PyArray_DIM(a, dim), total = kind == HALF_TO_REAL ? last : given;
    if (total < 1 || total > FEW_PLACES || !known_roots[total] || (kind == HALF_TO_REAL && given != total / 2 + 1))
        return LEFT;
    memcpy(sizes, PyArray_DIMS(a), sizeof *sizes * (size_t)ndim);
    sizes[dim] = kind == REAL_TO_HALF ? total / 2 + 1 : total;
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(ndim, sizes, kind == HALF_TO_REAL ? NPY_FLOAT : NPY_CFLOAT);
    if (!made) return NULL;
    Fourier it = {.kind = kind, .outer = 1, .total = total, .inner = 1, .sign = inverse ? -1.0f : 1.0f,
                  .scale = (float)(by == 0 ? 1.0 : by == 1 ? 1 / sqrt((double)total) : 1 / (double)total),
                  .roots = PyArray_DATA(known_roots[total])};
    for (int d = 0; d < dim; d++) it.outer *= sizes[d];
    spectra_calls[CALLED_FOURIER].calls++;
    if (!level->fourier(&it, PyArray_DATA(made), PyArray_DATA(a))) return (PyObject *)made;
    Py_DECREF(made);
    return PyErr_NoMemory();
}

/* fft_c2c(a, dim, normalization, forward) */
static PyObject *fft_c2c(PyObject *const *args, Py_ssize_t count) {
    return count == 4 && PyBool_Check(args[3]) ? one_transform(COMPLEX_TO_COMPLEX, args, args[3] == Py_False, 0) : LEFT;
}

/* fft_r2c(a, dim, normalization, onesided) */
static PyObject *fft_r2c(PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !PyBool_Check(args[3])) return LEFT;
    return one_transform(args[3] == Py_True ? REAL_TO_HALF : REAL_TO_FULL, args, 0, 0);
}

/* fft_c2r(a, dim, normalization, last_dim_size) */
static PyObject *fft_c2r(PyObject *const *args, Py_ssize_t count) {
    npy_intp last;
    return count == 4 && number_of(args[3], &last) ? one_transform(HALF_TO_REAL, args, 1, last) : LEFT;
}

DirectEntry spectra_direct[] = {{"fft_c2c", fft_c2c, 0}, {"fft_r2c", fft_r2c, 0}, {"fft_c2r", fft_c2r, 0}, {NULL, NULL, 0}};

static PyMethodDef METHODS[] = {{"fourier", (PyCFunction)(void (*)(void))fourier, METH_FASTCALL, NULL},
                                {NULL, NULL, 0, NULL}};

int spectra_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
