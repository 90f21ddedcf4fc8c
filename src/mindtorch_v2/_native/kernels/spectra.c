/* Fourier transforms of float32 as functions on NumPy arrays. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_kernels_array
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include "arguments.h"
#include "kernels.h"
#include "spectra.h"

enum { CALLED_FOURIER };
Counter spectra_calls[] = {{"fourier", 0}, {NULL, 0}};

static int is_type(PyObject *o, int type) {
    return PyArray_Check(o) && PyArray_TYPE((PyArrayObject *)o) == type && PyArray_ISCARRAY_RO((PyArrayObject *)o);
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
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {{"fourier", (PyCFunction)(void (*)(void))fourier, METH_FASTCALL, NULL},
                                {NULL, NULL, 0, NULL}};

int spectra_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
