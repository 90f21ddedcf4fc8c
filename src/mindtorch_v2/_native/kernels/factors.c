/* Factors of float32 matrices as functions on NumPy arrays. */
#include "arrays.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "direct.h"
#include "factors.h"
#include "kernels.h"

enum { CALLED_QR };
Counter factors_calls[] = {{"qr", 0}, {NULL, 0}};

static int is_stack(PyObject *o) {
    return PyArray_Check(o) && PyArray_TYPE((PyArrayObject *)o) == NPY_FLOAT && PyArray_ISCARRAY((PyArrayObject *)o) &&
           PyArray_NDIM((PyArrayObject *)o) == 3;
}

/* to[j][i] = from[i][j] */
static void turn_over(float *to, const float *from, npy_intp rows, npy_intp columns) {
    enum { TILE = 16 };
    for (npy_intp i = 0; i < rows; i += TILE)
        for (npy_intp j = 0; j < columns; j += TILE)
            for (npy_intp y = j; y < j + TILE && y < columns; y++)
                for (npy_intp x = i; x < i + TILE && x < rows; x++) to[y * rows + x] = from[x * columns + y];
}

/* qr(work, q, r): stacks of matrices; `work` has what is factored and is used up, `q` may be None. Q and R are written
   column by column: to arrays of their transposes. */
static PyObject *qr(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 3)) return NULL;
    int with_q = args[1] != Py_None;
    if (!is_stack(args[0]) || !is_stack(args[2]) || (with_q && !is_stack(args[1])))
        return wrong("expected contiguous stacks of matrices of float32");
    const npy_intp *work = PyArray_DIMS((PyArrayObject *)args[0]), *r = PyArray_DIMS((PyArrayObject *)args[2]);
    const npy_intp *q = with_q ? PyArray_DIMS((PyArrayObject *)args[1]) : NULL;
    npy_intp rows = work[1], columns = work[2], fewest = rows < columns ? rows : columns;
    if (r[0] != work[0] || r[1] != columns || (r[2] != fewest && r[2] != rows) ||
        (q && (q[0] != work[0] || q[2] != rows || (q[1] != fewest && q[1] != rows))))
        return wrong("sizes do not fit");
    factors_calls[CALLED_QR].calls++;
    float *from = PyArray_DATA((PyArrayObject *)args[0]), *to = PyArray_DATA((PyArrayObject *)args[2]);
    float *turn = with_q ? PyArray_DATA((PyArrayObject *)args[1]) : NULL;
    npy_intp across = with_q ? q[1] : 0, down = r[2];
    float *room = malloc(sizeof(float) * (size_t)(rows * across + down * columns)), *by_rows = room + rows * across;
    if (!room) return PyErr_NoMemory();
    int failed = 0;
    PyThreadState *state = work[0] * rows * columns > MANY / 8 ? PyEval_SaveThread() : NULL;
    for (npy_intp i = 0; i < work[0] && !failed; i++) {
        failed = level->orthogonal_triangular(from + i * rows * columns, with_q ? room : NULL, by_rows, rows, columns,
                                              across, down);
        turn_over(to + i * down * columns, by_rows, down, columns);
        if (with_q) turn_over(turn + i * rows * across, room, rows, across);
    }
    if (state) PyEval_RestoreThread(state);
    free(room);
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* qr(a, "reduced"): one small matrix of float32 */
static PyObject *small_qr(PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !is_of(args[0], NPY_FLOAT) || !PyUnicode_Check(args[1]) ||
        PyUnicode_CompareWithASCIIString(args[1], "reduced"))
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    if (PyArray_NDIM(a) != 2 || !PyArray_SIZE(a) || PyArray_SIZE(a) > MANY / 8) return LEFT;
    npy_intp rows = PyArray_DIM(a, 0), columns = PyArray_DIM(a, 1), fewest = rows < columns ? rows : columns;
    npy_intp of_q[] = {rows, fewest}, of_r[] = {fewest, columns};
    float *work = malloc(sizeof(float) * (size_t)(rows * columns + (rows + columns) * fewest));
    if (!work) return PyErr_NoMemory();
    float *by_rows = work + rows * columns, *below = by_rows + rows * fewest;
    PyObject *q = PyArray_EMPTY(2, of_q, NPY_FLOAT, 1), *r = PyArray_EMPTY(2, of_r, NPY_FLOAT, 1), *both = NULL;
    if (q && r) {
        memcpy(work, PyArray_DATA(a), sizeof(float) * (size_t)(rows * columns));
        if (level->orthogonal_triangular(work, by_rows, below, rows, columns, fewest, fewest)) {
            PyErr_NoMemory();
        } else {
            turn_over(PyArray_DATA((PyArrayObject *)q), by_rows, rows, fewest);
            turn_over(PyArray_DATA((PyArrayObject *)r), below, fewest, columns);
            both = PyTuple_Pack(2, q, r);
        }
    }
    Py_XDECREF(q), Py_XDECREF(r);
    free(work);
    return both;
}

/* The lower factor of a positive matrix, column by column, with sums in float64; 0 if it is none. Of what is given the
   upper triangle is not looked at. */
static int factor(float *made, const float *given, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        for (npy_intp j = 0; j <= i; j++) {
            double left = (double)given[i * n + j];
            for (npy_intp k = 0; k < j; k++) left -= (double)made[k * n + i] * (double)made[k * n + j];
            if (i == j && !(left > 0.0 && left < INFINITY)) return 0;
            made[j * n + i] = (float)(i == j ? sqrt(left) : left / (double)made[j * n + j]);
        }
        for (npy_intp j = i + 1; j < n; j++) made[j * n + i] = 0.0f;
    }
    return 1;
}

/* cholesky_ex(a, upper, check_errors): small positive matrices of float32 */
static PyObject *cholesky_ex(PyObject *const *args, Py_ssize_t count) {
    enum { SMALL = 16 };
    if (count != 3 || !is_of(args[0], NPY_FLOAT) || args[1] != Py_False || !PyBool_Check(args[2])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a);
    if (ndim < 2 || !PyArray_SIZE(a) || PyArray_SIZE(a) > MANY || PyArray_DIM(a, ndim - 1) > SMALL ||
        PyArray_DIM(a, ndim - 1) != PyArray_DIM(a, ndim - 2))
        return LEFT;
    npy_intp n = PyArray_DIM(a, ndim - 1), area = n * n;
    PyArrayObject *made = new_of(a, ndim, PyArray_DIMS(a));
    if (!made) return NULL;
    for (npy_intp at = 0; at < PyArray_SIZE(a); at += area)
        if (!factor((float *)PyArray_DATA(made) + at, (const float *)PyArray_DATA(a) + at, n)) {
            Py_DECREF(made);
            return LEFT;
        }
    npy_intp *steps = PyArray_STRIDES(made), step = steps[ndim - 1];
    steps[ndim - 1] = steps[ndim - 2], steps[ndim - 2] = step;
    PyArray_UpdateFlags(made, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
    PyObject *infos = PyArray_ZEROS(ndim - 2, PyArray_DIMS(a), NPY_INT32, 0);
    PyObject *both = infos ? PyTuple_Pack(2, made, infos) : NULL;
    Py_DECREF(made), Py_XDECREF(infos);
    return both;
}

DirectEntry factors_direct[] = {{"cholesky_ex", cholesky_ex, 0}, {"qr", small_qr, 0}, {NULL, NULL, 0}};

static PyMethodDef METHODS[] = {{"qr", (PyCFunction)(void (*)(void))qr, METH_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};

int factors_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
