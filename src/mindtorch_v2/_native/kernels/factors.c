/* Factors of float32 matrices as functions on NumPy arrays. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_kernels_array
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include "arguments.h"
#include "factors.h"
#include "kernels.h"

enum { CALLED_QR };
Counter factors_calls[] = {{"qr", 0}, {NULL, 0}};

static int is_stack(PyObject *o) {
    return PyArray_Check(o) && PyArray_TYPE((PyArrayObject *)o) == NPY_FLOAT && PyArray_ISCARRAY((PyArrayObject *)o) &&
           PyArray_NDIM((PyArrayObject *)o) == 3;
}

/* qr(work, q, r): stacks of matrices; `work` has what is factored and is used up, `q` may be None. */
static PyObject *qr(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 3)) return NULL;
    int with_q = args[1] != Py_None;
    if (!is_stack(args[0]) || !is_stack(args[2]) || (with_q && !is_stack(args[1])))
        return wrong("expected contiguous stacks of matrices of float32");
    const npy_intp *work = PyArray_DIMS((PyArrayObject *)args[0]), *r = PyArray_DIMS((PyArrayObject *)args[2]);
    const npy_intp *q = with_q ? PyArray_DIMS((PyArrayObject *)args[1]) : NULL;
    npy_intp rows = work[1], columns = work[2], fewest = rows < columns ? rows : columns;
    if (r[0] != work[0] || r[2] != columns || (r[1] != fewest && r[1] != rows) ||
        (q && (q[0] != work[0] || q[1] != rows || (q[2] != fewest && q[2] != rows))))
        return wrong("sizes do not fit");
    factors_calls[CALLED_QR].calls++;
    float *from = PyArray_DATA((PyArrayObject *)args[0]), *to = PyArray_DATA((PyArrayObject *)args[2]);
    float *turn = with_q ? PyArray_DATA((PyArrayObject *)args[1]) : NULL;
    npy_intp across = with_q ? q[2] : 0;
    int failed = 0;
    PyThreadState *state = work[0] * rows * columns > MANY / 8 ? PyEval_SaveThread() : NULL;
    for (npy_intp i = 0; i < work[0] && !failed; i++)
        failed = level->orthogonal_triangular(from + i * rows * columns, turn ? turn + i * rows * across : NULL,
                                              to + i * r[1] * columns, rows, columns, across, r[1]);
    if (state) PyEval_RestoreThread(state);
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {{"qr", (PyCFunction)(void (*)(void))qr, METH_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};

int factors_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
