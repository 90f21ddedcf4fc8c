/* The kernels as functions on NumPy arrays. What a kernel cannot take raises ValueError: who asks has looked before. */
#define IMPORTS_ARRAYS
#include "arrays.h"

#include "copies.h"
#include "direct.h"
#include "elementwise.h"
#include "factors.h"
#include "images.h"
#include "kernels.h"
#include "numbers.h"
#include "random.h"
#include "rearrange.h"
#include "selection.h"
#include "spectra.h"

const Kernels *level = &kernels_plain;

/* How often each function of this module has run: a recording says which it used. */
enum { CALLED_MATMUL, CALLED_BATCH, CALLED_SOFTMAX, CALLED_SOFTMAX_BACK, CALLED_NORM, CALLED_NORM_BACK, CALLED_UNARY,
       CALLED_SLOPE, CALLED_BINARY, CALLED_ATTENTION, CALLED_ATTENTION_BACK, CALLED_RECURRENT, CALLED_RECURRENT_BACK, CALLED_BATCH_NORM, CALLED_BATCH_NORM_BACK, CALLED_GROUP_NORM,
       CALLED_GROUP_NORM_BACK, CALLED_CONVOLVE, CALLED_CONVOLVE_BACK, CALLED_CONVOLVE_INPUT,
       CALLED_ADAM, CALLED_ADAGRAD, CALLED_SGD, CALLED_UPDATE, CALLED_COUNT };
static const char *const CALLED_NAMES[CALLED_COUNT] = {
    "matmul", "matmul_batch", "softmax", "softmax_back", "layer_norm", "layer_norm_back", "unary", "slope", "binary",
    "attention", "attention_back", "recurrent", "recurrent_back", "batch_norm", "batch_norm_back", "group_norm",
    "group_norm_back", "convolve", "convolve_back", "convolve_input", "adam", "adagrad", "sgd", "update"};
static long long called[CALLED_COUNT];

/* Elements from which other Python threads may run meanwhile. */
enum { LONG = 1 << 14 };
#define WORK(LARGE, CALL)                                                                                              \
    do {                                                                                                               \
        if (LARGE) {                                                                                                   \
            Py_BEGIN_ALLOW_THREADS CALL;                                                                               \
            Py_END_ALLOW_THREADS                                                                                       \
        } else {                                                                                                       \
            CALL;                                                                                                      \
        }                                                                                                              \
    } while (0)

static PyObject *refuse(const char *what) { return PyErr_Format(PyExc_ValueError, "kernels: %s", what), NULL; }

static int enough(const char *name, Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted) return 1;
    PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, got %zd", name, wanted, given);
    return 0;
}

/* The data of a contiguous float32 array, or NULL with an error set. None gives NULL without one. */
static float *floats(PyObject *o, npy_intp size, int written) {
    if (o == Py_None) return NULL;
    PyArrayObject *a = (PyArrayObject *)o;
    if (!PyArray_Check(o) || PyArray_TYPE(a) != NPY_FLOAT || !PyArray_IS_C_CONTIGUOUS(a) || !PyArray_ISBEHAVED_RO(a) ||
        (written && !PyArray_ISWRITEABLE(a))) {
        refuse("expected a contiguous float32 array");
        return NULL;
    }
    if (size >= 0 && PyArray_SIZE(a) != size) {
        PyErr_Format(PyExc_ValueError, "kernels: expected %zd elements, got %zd", (Py_ssize_t)size,
                     (Py_ssize_t)PyArray_SIZE(a));
        return NULL;
    }
    return PyArray_DATA(a);
}

/* Distances in elements of the dimensions of a float32 array; the last one's must be 1 if `rows`. 0 on error. */
static int steps_of(PyObject *o, int ndim, int rows, ptrdiff_t *steps) {
    PyArrayObject *a = (PyArrayObject *)o;
    if (!PyArray_Check(o) || PyArray_TYPE(a) != NPY_FLOAT || PyArray_NDIM(a) != ndim || !PyArray_ISBEHAVED_RO(a))
        return refuse("expected a float32 array of other dimensions"), 0;
    for (int i = 0; i < ndim; i++) {
        npy_intp stride = PyArray_STRIDE(a, i);
        if (stride % 4) return refuse("elements are not in steps of whole numbers"), 0;
        if (rows && i == ndim - 1) {
            if (stride != 4 && PyArray_DIM(a, i) > 1) return refuse("rows with gaps"), 0;
        } else {
            steps[i] = stride / 4;
        }
    }
    return 1;
}

static int is_matrix(PyObject *o, Matrix *m) {
    PyArrayObject *a = (PyArrayObject *)o;
    if (!PyArray_Check(o) || PyArray_TYPE(a) != NPY_FLOAT || PyArray_NDIM(a) != 2 || !PyArray_ISBEHAVED_RO(a)) return 0;
    npy_intp *stride = PyArray_STRIDES(a);
    if ((stride[0] | stride[1]) & 3) return 0;
    m->data = PyArray_DATA(a), m->row = stride[0] / 4, m->column = stride[1] / 4;
    return 1;
}

static double product_of(double a, double b, double c) { return a * b * c; }

/* matmul(a, b, bias): a new array, or None for what is left to others. */
static PyObject *py_matmul(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!enough("matmul", count, 3)) return NULL;
    Matrix a, b;
    if (!is_matrix(args[0], &a) || !is_matrix(args[1], &b)) Py_RETURN_NONE;
    npy_intp rows = PyArray_DIM((PyArrayObject *)args[0], 0), inner = PyArray_DIM((PyArrayObject *)args[0], 1);
    npy_intp columns = PyArray_DIM((PyArrayObject *)args[1], 1), dims[2] = {rows, columns};
    if (PyArray_DIM((PyArrayObject *)args[1], 0) != inner) Py_RETURN_NONE;
    const float *bias = NULL;
    if (args[2] != Py_None) {
        PyArrayObject *row = (PyArrayObject *)args[2];
        if (!PyArray_Check(args[2]) || PyArray_TYPE(row) != NPY_FLOAT || PyArray_NDIM(row) != 1 ||
            PyArray_DIM(row, 0) != columns || !PyArray_IS_C_CONTIGUOUS(row) || !PyArray_ISBEHAVED_RO(row))
            Py_RETURN_NONE;
        bias = PyArray_DATA(row);
    }
    double size = product_of((double)rows, (double)columns, (double)inner);
    PyArrayObject *made = (PyArrayObject *)PyArray_EMPTY(2, dims, NPY_FLOAT, 0);
    if (!made) return NULL;
    float *to = PyArray_DATA(made);
    called[CALLED_MATMUL]++;
    if (size <= 512) {
        for (npy_intp i = 0; i < rows; i++)
            for (npy_intp j = 0; j < columns; j++) {
                float sum = 0.0f;
                const float *x = a.data + i * a.row, *y = b.data + j * b.column;
                for (npy_intp k = 0; k < inner; k++) sum += x[k * a.column] * y[k * b.row];
                to[i * columns + j] = bias ? sum + bias[j] : sum;
            }
        return (PyObject *)made;
    }
    int failed = 0;
    WORK(size > 1e5, failed = level->multiply((Matrix){to, columns, 1}, a, b, rows, columns, inner, bias, 0));
    if (failed) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    return (PyObject *)made;
}

/* multiply_into(made, a, b, add): `made` is a matrix whose columns are next to each other. */
static PyObject *py_multiply_into(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!enough("multiply_into", count, 4)) return NULL;
    Matrix made, a, b;
    if (!is_matrix(args[0], &made) || !is_matrix(args[1], &a) || !is_matrix(args[2], &b) ||
        !PyArray_ISWRITEABLE((PyArrayObject *)args[0]))
        return refuse("expected three float32 matrices");
    npy_intp rows = PyArray_DIM((PyArrayObject *)args[0], 0), columns = PyArray_DIM((PyArrayObject *)args[0], 1);
    npy_intp inner = PyArray_DIM((PyArrayObject *)args[1], 1);
    if (PyArray_DIM((PyArrayObject *)args[1], 0) != rows || PyArray_DIM((PyArrayObject *)args[2], 0) != inner ||
        PyArray_DIM((PyArrayObject *)args[2], 1) != columns || (made.column != 1 && columns > 1))
        return refuse("matrices do not fit");
    int add = PyObject_IsTrue(args[3]), failed = 0;
    called[CALLED_MATMUL]++;
    WORK(product_of((double)rows, (double)columns, (double)inner) > 1e5,
         failed = level->multiply(made, a, b, rows, columns, inner, NULL, add));
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* matmul_batch(made, a, b): arrays of three dimensions. */
static PyObject *py_matmul_batch(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!enough("matmul_batch", count, 3)) return NULL;
    ptrdiff_t m[3], a[3], b[3];
    float *made = floats(args[0], -1, 1);
    if (!made || !steps_of(args[0], 3, 0, m) || !steps_of(args[1], 3, 0, a) || !steps_of(args[2], 3, 0, b)) return NULL;
    npy_intp *size = PyArray_DIMS((PyArrayObject *)args[0]), *left = PyArray_DIMS((PyArrayObject *)args[1]);
    npy_intp *right = PyArray_DIMS((PyArrayObject *)args[2]);
    if (left[0] != size[0] || right[0] != size[0] || left[1] != size[1] || right[2] != size[2] || left[2] != right[1])
        return refuse("batches do not fit");
    ptrdiff_t steps[7] = {size[1] * size[2], a[0], b[0], a[1], a[2], b[1], b[2]};
    int failed = 0;
    called[CALLED_BATCH]++;
    WORK(product_of((double)PyArray_SIZE((PyArrayObject *)args[0]), (double)left[2], 1) > 1e5,
         failed = level->multiply_batch(made, PyArray_DATA((PyArrayObject *)args[1]),
                                        PyArray_DATA((PyArrayObject *)args[2]), size[0], size[1], size[2], left[2],
                                        steps));
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static int split_rows(PyObject *o, npy_intp *rows, npy_intp *columns) {
    PyArrayObject *a = (PyArrayObject *)o;
    if (!PyArray_Check(o) || PyArray_NDIM(a) < 1) return refuse("expected an array with a dimension"), 0;
    *columns = PyArray_DIM(a, PyArray_NDIM(a) - 1);
    *rows = *columns ? PyArray_SIZE(a) / *columns : 0;
    return 1;
}

/* softmax(made, given, logs): of rows, the last dimension. */
static PyObject *py_softmax(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    npy_intp rows, columns;
    if (!enough("softmax", count, 3) || !split_rows(args[1], &rows, &columns)) return NULL;
    float *made = floats(args[0], rows * columns, 1), *given = made ? floats(args[1], -1, 0) : NULL;
    if (!given) return NULL;
    int logs = PyObject_IsTrue(args[2]);
    called[CALLED_SOFTMAX]++;
    WORK(rows * columns > LONG / 4, level->softmax(made, given, rows, columns, logs));
    Py_RETURN_NONE;
}

static PyObject *py_softmax_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    npy_intp rows, columns;
    if (!enough("softmax_back", count, 4) || !split_rows(args[1], &rows, &columns)) return NULL;
    float *made = floats(args[0], rows * columns, 1), *pull = made ? floats(args[1], -1, 0) : NULL;
    float *result = pull ? floats(args[2], rows * columns, 0) : NULL;
    if (!result) return NULL;
    int logs = PyObject_IsTrue(args[3]);
    called[CALLED_SOFTMAX_BACK]++;
    WORK(rows * columns > LONG / 4, level->softmax_back(made, pull, result, rows, columns, logs));
    Py_RETURN_NONE;
}

/* layer_norm(made, mean, rstd, given, weight, bias, eps): `given` is a matrix; without means, those are taken as 0. */
static PyObject *py_layer_norm(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    npy_intp rows, columns;
    if (!enough("layer_norm", count, 7) || !split_rows(args[3], &rows, &columns)) return NULL;
    float *made = floats(args[0], rows * columns, 1), *mean = floats(args[1], rows, 1);
    float *rstd = floats(args[2], rows, 1), *given = floats(args[3], -1, 0);
    float *weight = floats(args[4], columns, 0), *bias = floats(args[5], columns, 0);
    double eps = PyFloat_AsDouble(args[6]);
    if (PyErr_Occurred()) return NULL;
    if (!made || !rstd || !given) return refuse("None where an array is needed");
    called[CALLED_NORM]++;
    WORK(rows * columns > LONG / 4,
         level->layer_norm(made, mean, rstd, given, weight, bias, rows, columns, (float)eps, mean != NULL));
    Py_RETURN_NONE;
}

/* layer_norm_back(made, weight_pull, bias_pull, pull, given, mean, rstd, weight) */
static PyObject *py_layer_norm_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    npy_intp rows, columns;
    if (!enough("layer_norm_back", count, 8) || !split_rows(args[4], &rows, &columns)) return NULL;
    float *made = floats(args[0], rows * columns, 1), *weight_pull = floats(args[1], columns, 1);
    float *bias_pull = floats(args[2], columns, 1), *pull = floats(args[3], rows * columns, 0);
    float *given = floats(args[4], -1, 0), *mean = floats(args[5], rows, 0), *rstd = floats(args[6], rows, 0);
    float *weight = floats(args[7], columns, 0);
    if (PyErr_Occurred()) return NULL;
    if (!pull || !given || !mean || !rstd) return refuse("None where an array is needed");
    int failed = 0;
    called[CALLED_NORM_BACK]++;
    WORK(rows * columns > LONG / 4, failed = level->layer_norm_back(made, weight_pull, bias_pull, pull, given, mean,
                                                                    rstd, weight, rows, columns));
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static int kind_of(PyObject *o, int count) {
    long kind = PyLong_AsLong(o);
    if (kind < 0 || kind >= count) {
        if (!PyErr_Occurred()) refuse("unknown kind");
        return -1;
    }
    return (int)kind;
}

static PyObject *py_unary(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    int kind;
    if (!enough("unary", count, 3) || (kind = kind_of(args[0], UNARY_COUNT)) < 0) return NULL;
    float *made = floats(args[1], -1, 1);
    npy_intp size = made ? PyArray_SIZE((PyArrayObject *)args[1]) : 0;
    float *given = made ? floats(args[2], size, 0) : NULL;
    if (!given) return PyErr_Occurred() ? NULL : refuse("None where an array is needed");
    called[CALLED_UNARY]++;
    WORK(size > LONG, level->unary((enum Unary)kind, made, given, size));
    Py_RETURN_NONE;
}

static PyObject *py_slope(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    int kind;
    if (!enough("slope", count, 4) || (kind = kind_of(args[0], SLOPE_COUNT)) < 0) return NULL;
    float *made = floats(args[1], -1, 1);
    npy_intp size = made ? PyArray_SIZE((PyArrayObject *)args[1]) : 0;
    float *pull = made ? floats(args[2], size, 0) : NULL, *given = pull ? floats(args[3], size, 0) : NULL;
    if (!given) return PyErr_Occurred() ? NULL : refuse("None where an array is needed");
    called[CALLED_SLOPE]++;
    WORK(size > LONG, level->slope((enum Slope)kind, made, pull, given, size));
    Py_RETURN_NONE;
}

/* binary(kind, made, a, b): operands of the shape of `made`, or a row, a column or a number that is spread over it. */
static int spread(PyObject *o, npy_intp rows, npy_intp columns, const float **data, ptrdiff_t *row, ptrdiff_t *column) {
    PyArrayObject *a = (PyArrayObject *)o;
    *data = floats(o, -1, 0);
    if (!*data) return PyErr_Occurred() ? 0 : (refuse("None where an array is needed"), 0);
    npy_intp size = PyArray_SIZE(a);
    if (size == rows * columns) *row = columns, *column = 1;
    else if (size == 1) *row = *column = 0;
    else if (size == columns && (PyArray_NDIM(a) == 1 || PyArray_DIM(a, PyArray_NDIM(a) - 1) == columns)) *row = 0, *column = 1;
    else if (size == rows) *row = 1, *column = 0;
    else return refuse("operands do not fit"), 0;
    return 1;
}

static PyObject *py_binary(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    int kind;
    npy_intp rows, columns;
    const float *a, *b;
    ptrdiff_t a_row, a_column, b_row, b_column;
    if (!enough("binary", count, 4) || (kind = kind_of(args[0], BINARY_COUNT)) < 0) return NULL;
    float *made = floats(args[1], -1, 1);
    if (!made || !split_rows(args[1], &rows, &columns)) return PyErr_Occurred() ? NULL : refuse("no result");
    if (!spread(args[2], rows, columns, &a, &a_row, &a_column) || !spread(args[3], rows, columns, &b, &b_row, &b_column))
        return NULL;
    if (a_column && b_column && a_row == columns && b_row == columns)
        columns *= rows, rows = 1;
    called[CALLED_BINARY]++;
    WORK(rows * columns > LONG,
         level->binary((enum Binary)kind, made, a, b, rows, columns, a_row, a_column, b_row, b_column));
    Py_RETURN_NONE;
}

static int attention_arguments(PyObject *const *args, Attention *it) {
    PyArrayObject *q = (PyArrayObject *)args[0], *k = (PyArrayObject *)args[1], *v = (PyArrayObject *)args[2];
    if (!steps_of(args[0], 4, 1, it->query_step) || !steps_of(args[1], 4, 1, it->key_step) ||
        !steps_of(args[2], 4, 1, it->value_step))
        return 0;
    it->query = PyArray_DATA(q), it->key = PyArray_DATA(k), it->value = PyArray_DATA(v);
    it->batch = PyArray_DIM(q, 0), it->heads = PyArray_DIM(q, 1), it->rows = PyArray_DIM(q, 2);
    it->features = PyArray_DIM(q, 3);
    it->groups = PyArray_DIM(k, 1), it->keys = PyArray_DIM(k, 2), it->values = PyArray_DIM(v, 3);
    if (PyArray_DIM(k, 0) != it->batch || PyArray_DIM(v, 0) != it->batch || PyArray_DIM(v, 1) != it->groups ||
        PyArray_DIM(v, 2) != it->keys || PyArray_DIM(k, 3) != it->features || !it->groups || it->heads % it->groups)
        return refuse("queries, keys and values do not fit"), 0;
    if (args[3] != Py_None) {
        PyArrayObject *mask = (PyArrayObject *)args[3];
        if (!steps_of(args[3], 4, 0, it->mask_step)) return 0;
        if (PyArray_DIM(mask, 0) != it->batch || PyArray_DIM(mask, 1) != it->heads ||
            PyArray_DIM(mask, 2) != it->rows || PyArray_DIM(mask, 3) != it->keys)
            return refuse("the mask does not fit"), 0;
        it->mask = PyArray_DATA(mask);
    }
    it->causal = PyObject_IsTrue(args[4]);
    double scale = PyFloat_AsDouble(args[5]);
    if (PyErr_Occurred()) return 0;
    it->scale = (float)scale;
    return 1;
}

static float *heads_of(PyObject *o, ptrdiff_t batch, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t features,
                       ptrdiff_t *steps, int written) {
    if (!steps_of(o, 4, 1, steps)) return NULL;
    PyArrayObject *a = (PyArrayObject *)o;
    if (PyArray_DIM(a, 0) != batch || PyArray_DIM(a, 1) != heads || PyArray_DIM(a, 2) != rows ||
        PyArray_DIM(a, 3) != features || (written && !PyArray_ISWRITEABLE(a)))
        return refuse("an array of heads does not fit"), NULL;
    return PyArray_DATA(a);
}

/* attention(query, key, value, mask, causal, scale, out, logs) */
static PyObject *py_attention(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Attention it = {0};
    if (!enough("attention", count, 8) || !attention_arguments(args, &it)) return NULL;
    it.out = heads_of(args[6], it.batch, it.heads, it.rows, it.values, it.out_step, 1);
    it.logs = floats(args[7], it.batch * it.heads * it.rows, 1);
    if (!it.out || !it.logs) return PyErr_Occurred() ? NULL : refuse("None where an array is needed");
    int failed = 0;
    called[CALLED_ATTENTION]++;
    WORK(it.heads * it.rows * it.keys * it.batch > LONG / 16, failed = level->attention(&it));
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* attention_back(query, key, value, mask, causal, scale, out, logs, pull, query_pull, key_pull, value_pull) */
static PyObject *py_attention_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Attention it = {0};
    if (!enough("attention_back", count, 12) || !attention_arguments(args, &it)) return NULL;
    it.out = heads_of(args[6], it.batch, it.heads, it.rows, it.values, it.out_step, 0);
    it.logs = floats(args[7], it.batch * it.heads * it.rows, 0);
    it.pull = heads_of(args[8], it.batch, it.heads, it.rows, it.values, it.pull_step, 0);
    it.query_pull = heads_of(args[9], it.batch, it.heads, it.rows, it.features, it.query_pull_step, 1);
    it.key_pull = heads_of(args[10], it.batch, it.groups, it.keys, it.features, it.key_pull_step, 1);
    it.value_pull = heads_of(args[11], it.batch, it.groups, it.keys, it.values, it.value_pull_step, 1);
    if (PyErr_Occurred()) return NULL;
    int failed = 0;
    called[CALLED_ATTENTION_BACK]++;
    WORK(it.heads * it.rows * it.keys * it.batch > LONG / 16, failed = level->attention_back(&it));
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* The kind, and sizes from `out` (steps, batch, hidden). */
static int recurrent_sizes(PyObject *kind, PyObject *out, PyObject *reverse, Recurrent *it) {
    PyArrayObject *a = (PyArrayObject *)out;
    int which = kind_of(kind, RECURRENT_COUNT);
    if (which < 0) return 0;
    if (!PyArray_Check(out) || PyArray_NDIM(a) != 3) return refuse("expected outputs of three dimensions"), 0;
    it->kind = (enum RecurrentKind)which;
    it->steps = PyArray_DIM(a, 0), it->batch = PyArray_DIM(a, 1), it->hidden = PyArray_DIM(a, 2);
    it->reverse = PyObject_IsTrue(reverse);
    return 1;
}

static int kept_by(enum RecurrentKind kind) { return kind == RECURRENT_LSTM || kind == RECURRENT_GRU ? 4 : 1; }
static int gates_of(enum RecurrentKind kind) { return kind == RECURRENT_LSTM ? 4 : kind == RECURRENT_GRU ? 3 : 1; }

/* recurrent(kind, gates, weight, first, first_cell, cells, squashed, out, reverse): `gates` come in as the inputs' part
   of the sums. Cells are None where a layer has none. */
static PyObject *py_recurrent(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Recurrent it = {0};
    if (!enough("recurrent", count, 9) || !recurrent_sizes(args[0], args[7], args[8], &it)) return NULL;
    npy_intp size = it.batch * it.hidden, all = it.steps * size;
    it.gates = floats(args[1], kept_by(it.kind) * all, 1);
    it.weight = floats(args[2], gates_of(it.kind) * it.hidden * it.hidden, 0), it.first = floats(args[3], size, 0);
    it.first_cell = floats(args[4], size, 0), it.cells = floats(args[5], all, 1);
    it.squashed = floats(args[6], all, 1), it.out = floats(args[7], all, 1);
    if (PyErr_Occurred()) return NULL;
    if (!it.gates || !it.weight || !it.first || !it.out ||
        (it.kind == RECURRENT_LSTM && (!it.first_cell || !it.cells || !it.squashed)))
        return refuse("None where an array is needed");
    int failed = 0;
    called[CALLED_RECURRENT]++;
    WORK(all * it.hidden > LONG, failed = level->recurrent(&it, 0));
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* recurrent_back(kind, slopes, gates, weight, first, first_cell, cells, squashed, out, pull, state_pull, cell_pull,
   reverse) */
static PyObject *py_recurrent_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Recurrent it = {0};
    if (!enough("recurrent_back", count, 13) || !recurrent_sizes(args[0], args[8], args[12], &it)) return NULL;
    npy_intp size = it.batch * it.hidden, all = it.steps * size;
    it.slopes = floats(args[1], kept_by(it.kind) * all, 1), it.gates = floats(args[2], kept_by(it.kind) * all, 0);
    it.weight = floats(args[3], gates_of(it.kind) * it.hidden * it.hidden, 0), it.first = floats(args[4], size, 0);
    it.first_cell = floats(args[5], size, 0), it.cells = floats(args[6], all, 0);
    it.squashed = floats(args[7], all, 0), it.out = floats(args[8], all, 0), it.pull = floats(args[9], all, 0);
    it.state_pull = floats(args[10], size, 1), it.cell_pull = floats(args[11], size, 1);
    if (PyErr_Occurred()) return NULL;
    if (!it.slopes || !it.gates || !it.weight || !it.first || !it.out || !it.pull || !it.state_pull ||
        (it.kind == RECURRENT_LSTM && (!it.first_cell || !it.cells || !it.squashed || !it.cell_pull)))
        return refuse("None where an array is needed");
    int failed = 0;
    called[CALLED_RECURRENT_BACK]++;
    WORK(all * it.hidden > LONG, failed = level->recurrent(&it, 1));
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static int channels_of(PyObject *o, PyObject *groups, ChannelNorm *it) {
    PyArrayObject *a = (PyArrayObject *)o;
    if (!PyArray_Check(o) || PyArray_NDIM(a) != 3) return refuse("expected (images, channels, area)"), 0;
    it->images = PyArray_DIM(a, 0), it->channels = PyArray_DIM(a, 1), it->area = PyArray_DIM(a, 2);
    it->groups = groups ? PyLong_AsSsize_t(groups) : 1;
    if (it->groups == -1 && PyErr_Occurred()) return 0;
    return it->groups > 0 && !(it->channels % it->groups) ? 1 : (refuse("channels do not fit into groups"), 0);
}

/* batch_norm(made, given, mean, variance, rstd, weight, bias, eps, learns): means and variances are given, or learnt */
static PyObject *py_batch_norm(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    ChannelNorm it = {0};
    if (!enough("batch_norm", count, 9) || !channels_of(args[1], NULL, &it)) return NULL;
    it.given = floats(args[1], -1, 0), it.made = floats(args[0], it.images * it.channels * it.area, 1);
    it.learns = PyObject_IsTrue(args[8]), it.eps = (float)PyFloat_AsDouble(args[7]);
    it.mean = floats(args[2], it.channels, it.learns), it.variance = floats(args[3], it.channels, it.learns);
    it.rstd = floats(args[4], it.channels, 1);
    it.weight = floats(args[5], it.channels, 0), it.bias = floats(args[6], it.channels, 0);
    if (PyErr_Occurred()) return NULL;
    if (!it.given || !it.made || !it.mean || !it.variance || !it.rstd) return refuse("None where an array is needed");
    called[CALLED_BATCH_NORM]++;
    WORK(it.images * it.channels * it.area > LONG / 4, level->batch_norm(&it));
    Py_RETURN_NONE;
}

/* batch_norm_back(made, weight_pull, bias_pull, pull, given, mean, rstd, weight, learns) */
static PyObject *py_batch_norm_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    ChannelNorm it = {0};
    if (!enough("batch_norm_back", count, 9) || !channels_of(args[4], NULL, &it)) return NULL;
    npy_intp size = it.images * it.channels * it.area;
    it.made = floats(args[0], size, 1), it.weight_pull = floats(args[1], it.channels, 1);
    it.bias_pull = floats(args[2], it.channels, 1), it.pull = floats(args[3], size, 0);
    it.given = floats(args[4], -1, 0), it.mean = floats(args[5], it.channels, 0);
    it.rstd = floats(args[6], it.channels, 0), it.weight = floats(args[7], it.channels, 0);
    it.learns = PyObject_IsTrue(args[8]);
    if (PyErr_Occurred()) return NULL;
    if (!it.made || !it.weight_pull || !it.bias_pull || !it.pull || !it.given || !it.mean || !it.rstd)
        return refuse("None where an array is needed");
    called[CALLED_BATCH_NORM_BACK]++;
    WORK(size > LONG / 4, level->batch_norm_back(&it));
    Py_RETURN_NONE;
}

/* group_norm(made, given, mean, rstd, weight, bias, eps, groups) */
static PyObject *py_group_norm(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    ChannelNorm it = {0};
    if (!enough("group_norm", count, 8) || !channels_of(args[1], args[7], &it)) return NULL;
    npy_intp groups = it.images * it.groups;
    it.given = floats(args[1], -1, 0), it.made = floats(args[0], it.images * it.channels * it.area, 1);
    it.mean = floats(args[2], groups, 1), it.rstd = floats(args[3], groups, 1);
    it.weight = floats(args[4], it.channels, 0), it.bias = floats(args[5], it.channels, 0);
    it.eps = (float)PyFloat_AsDouble(args[6]);
    if (PyErr_Occurred()) return NULL;
    if (!it.given || !it.made || !it.mean || !it.rstd) return refuse("None where an array is needed");
    called[CALLED_GROUP_NORM]++;
    WORK(it.images * it.channels * it.area > LONG / 4, level->group_norm(&it));
    Py_RETURN_NONE;
}

/* group_norm_back(made, weight_pulls, bias_pulls, pull, given, mean, rstd, weight, groups): pulls for each image */
static PyObject *py_group_norm_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    ChannelNorm it = {0};
    if (!enough("group_norm_back", count, 9) || !channels_of(args[4], args[8], &it)) return NULL;
    npy_intp size = it.images * it.channels * it.area, groups = it.images * it.groups;
    it.made = floats(args[0], size, 1), it.weight_pull = floats(args[1], it.images * it.channels, 1);
    it.bias_pull = floats(args[2], it.images * it.channels, 1), it.pull = floats(args[3], size, 0);
    it.given = floats(args[4], -1, 0), it.mean = floats(args[5], groups, 0), it.rstd = floats(args[6], groups, 0);
    it.weight = floats(args[7], it.channels, 0);
    if (PyErr_Occurred()) return NULL;
    if (!it.made || !it.weight_pull || !it.bias_pull || !it.pull || !it.given || !it.mean || !it.rstd)
        return refuse("None where an array is needed");
    called[CALLED_GROUP_NORM_BACK]++;
    WORK(size > LONG / 4, level->group_norm_back(&it));
    Py_RETURN_NONE;
}

/* One number a dimension, for the last `count` of three; the others keep what they have. */
static int moves_of(PyObject *o, int count, ptrdiff_t made[3], ptrdiff_t smallest) {
    if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) != count) return refuse("expected a number for each dimension"), 0;
    for (int i = 0; i < count; i++) {
        ptrdiff_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(o, i));
        if (number == -1 && PyErr_Occurred()) return 0;
        if (number < smallest || number > 1 << 20) return refuse("a number of a window is out of range"), 0;
        made[3 - count + i] = number;
    }
    return 1;
}

/* Sizes of images (N, C, ...), results and weights (out, in of a group, ...) of one to three dimensions, and that they
   fit. */
static int windows_of(PyObject *images, PyObject *made, PyObject *weight, PyObject *const *moves, Windows *it) {
    PyObject *arrays[3] = {images, made, weight};
    int dims = PyArray_Check(images) ? PyArray_NDIM((PyArrayObject *)images) : 0, count = dims - 2;
    for (int i = 0; i < 3; i++)
        if (!PyArray_Check(arrays[i]) || dims < 3 || dims > 5 || PyArray_NDIM((PyArrayObject *)arrays[i]) != dims)
            return refuse("expected arrays of three to five dimensions"), 0;
    npy_intp *x = PyArray_DIMS((PyArrayObject *)images), *y = PyArray_DIMS((PyArrayObject *)made);
    npy_intp *w = PyArray_DIMS((PyArrayObject *)weight);
    it->images = x[0], it->channels = x[1], it->out_channels = y[1], it->groups = PyLong_AsSsize_t(moves[3]);
    for (int i = 0; i < 3; i++) {
        int there = i - 3 + dims;
        it->given[i] = it->made[i] = it->kernel[i] = it->stride[i] = it->dilation[i] = 1, it->padding[i] = 0;
        if (there > 1) it->given[i] = x[there], it->made[i] = y[there], it->kernel[i] = w[there];
    }
    if ((it->groups == -1 && PyErr_Occurred()) || !moves_of(moves[0], count, it->stride, 1) ||
        !moves_of(moves[1], count, it->padding, 0) || !moves_of(moves[2], count, it->dilation, 1))
        return 0;
    int fit = it->groups > 0 && y[0] == x[0] && w[0] == y[1] && w[1] * it->groups == x[1] && !(y[1] % it->groups) &&
              PyArray_SIZE((PyArrayObject *)images) && PyArray_SIZE((PyArrayObject *)made) &&
              PyArray_SIZE((PyArrayObject *)weight);
    for (int i = 0; fit && i < 3; i++)
        fit = (it->made[i] - 1) * it->stride[i] + (it->kernel[i] - 1) * it->dilation[i] <
              it->given[i] + 2 * it->padding[i];
    return fit ? 1 : (refuse("images, weights and windows do not fit"), 0);
}

/* convolve(made, images, weight, bias, stride, padding, dilation, groups) */
static PyObject *py_convolve(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Windows it;
    if (!enough("convolve", count, 8) || !windows_of(args[1], args[0], args[2], args + 4, &it)) return NULL;
    float *made = floats(args[0], -1, 1), *images = floats(args[1], -1, 0), *weight = floats(args[2], -1, 0);
    float *bias = floats(args[3], it.out_channels, 0);
    if (PyErr_Occurred()) return NULL;
    int failed = 0;
    called[CALLED_CONVOLVE]++;
    WORK(1, failed = level->convolve(&it, made, images, weight, bias));
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* convolve_back(weight_pull, pull, images, stride, padding, dilation, groups) */
static PyObject *py_convolve_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Windows it;
    if (!enough("convolve_back", count, 7) || !windows_of(args[2], args[1], args[0], args + 3, &it)) return NULL;
    float *made = floats(args[0], -1, 1), *pull = floats(args[1], -1, 0), *images = floats(args[2], -1, 0);
    if (PyErr_Occurred()) return NULL;
    int failed = 0;
    called[CALLED_CONVOLVE_BACK]++;
    WORK(1, failed = level->convolve_back(&it, made, pull, images));
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* convolve_input(image_pull, pull, weight, stride, padding, dilation, groups) */
static PyObject *py_convolve_input(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Windows it;
    if (!enough("convolve_input", count, 7) || !windows_of(args[0], args[1], args[2], args + 3, &it)) return NULL;
    float *made = floats(args[0], -1, 1), *pull = floats(args[1], -1, 0), *weight = floats(args[2], -1, 0);
    if (PyErr_Occurred()) return NULL;
    int failed = 0;
    called[CALLED_CONVOLVE_INPUT]++;
    WORK(1, failed = level->convolve_input(&it, made, pull, weight));
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static int numbers(PyObject *const *args, int count, float *made) {
    for (int i = 0; i < count; i++) made[i] = (float)PyFloat_AsDouble(args[i]);
    return !PyErr_Occurred();
}

/* adam(weight, pull, average, square, most, rate, new_average, old_square, new_square, spread, eps, decay, shrink,
   decoupled, maximize) */
static PyObject *py_adam(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    float given[8];
    if (!enough("adam", count, 15) || !numbers(args + 5, 8, given)) return NULL;
    float *weight = floats(args[0], -1, 1);
    if (!weight) return PyErr_Occurred() ? NULL : refuse("None where an array is needed");
    npy_intp size = PyArray_SIZE((PyArrayObject *)args[0]);
    float *pull = floats(args[1], size, 0), *average = floats(args[2], size, 1), *square = floats(args[3], size, 1);
    float *most = floats(args[4], size, 1);
    if (PyErr_Occurred()) return NULL;
    if (!pull || !average || !square) return refuse("None where an array is needed");
    Adam how = {given[0], given[1], given[2], given[3], given[4], given[5], given[6], given[7],
                PyObject_IsTrue(args[13]), PyObject_IsTrue(args[14])};
    called[CALLED_ADAM]++;
    WORK(size > LONG, level->adam(&how, weight, pull, average, square, most, size));
    Py_RETURN_NONE;
}

/* adagrad(weight, pull, sum, rate, eps, decay, maximize) */
static PyObject *py_adagrad(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    float given[3];
    if (!enough("adagrad", count, 7) || !numbers(args + 3, 3, given)) return NULL;
    float *weight = floats(args[0], -1, 1);
    if (!weight) return PyErr_Occurred() ? NULL : refuse("None where an array is needed");
    npy_intp size = PyArray_SIZE((PyArrayObject *)args[0]);
    float *pull = floats(args[1], size, 0), *sum = floats(args[2], size, 1);
    if (PyErr_Occurred()) return NULL;
    if (!pull || !sum) return refuse("None where an array is needed");
    Adagrad how = {given[0], given[1], given[2], PyObject_IsTrue(args[6])};
    called[CALLED_ADAGRAD]++;
    WORK(size > LONG, level->adagrad(&how, weight, pull, sum, size));
    Py_RETURN_NONE;
}

/* sgd(weight, pull, moving, lr, momentum, new_moving, decay, nesterov, maximize, first) */
static PyObject *py_sgd(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    float given[4];
    if (!enough("sgd", count, 10) || !numbers(args + 3, 4, given)) return NULL;
    float *weight = floats(args[0], -1, 1);
    if (!weight) return PyErr_Occurred() ? NULL : refuse("None where an array is needed");
    npy_intp size = PyArray_SIZE((PyArrayObject *)args[0]);
    float *pull = floats(args[1], size, 0), *moving = floats(args[2], size, 1);
    if (PyErr_Occurred()) return NULL;
    if (!pull) return refuse("None where an array is needed");
    Descent how = {given[0], given[1], given[2], given[3], PyObject_IsTrue(args[7]), PyObject_IsTrue(args[8]),
                   PyObject_IsTrue(args[9])};
    called[CALLED_SGD]++;
    WORK(size > LONG, level->descend(&how, weight, pull, moving, size));
    Py_RETURN_NONE;
}

/* update(kind, made, a, b, c, value): into `made`, which may be `a`, or a new array where it is None; None for arrays
   that others have to take. */
static PyObject *py_update(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    int kind;
    if (!enough("update", count, 6) || (kind = kind_of(args[0], UPDATE_COUNT)) < 0) return NULL;
    double value = PyFloat_AsDouble(args[5]);
    if (value == -1.0 && PyErr_Occurred()) return NULL;
    float *data[3];
    PyArrayObject *first = (PyArrayObject *)args[2], *made = (PyArrayObject *)args[1];
    for (int i = 0; i < 3; i++) {
        PyArrayObject *a = (PyArrayObject *)args[2 + i];
        if (!is_plain((PyObject *)a) || !PyArray_SAMESHAPE(a, first)) Py_RETURN_NONE;
        data[i] = PyArray_DATA(a);
    }
    npy_intp size = PyArray_SIZE(first);
    if (args[1] == Py_None) {
        made = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(first), PyArray_DIMS(first), NPY_FLOAT);
        if (!made) return NULL;
    } else {
        if (!is_plain(args[1]) || !PyArray_SAMESHAPE(made, first) || !PyArray_ISWRITEABLE(made)) Py_RETURN_NONE;
        for (int i = 0; i < 3; i++)
            if (crosses(PyArray_DATA(made), data[i], size, size)) Py_RETURN_NONE;
        Py_INCREF(made);
    }
    called[CALLED_UPDATE]++;
    WORK(size > LONG, level->update((enum Update)kind, PyArray_DATA(made), data[0], data[1], data[2], (float)value, size));
    return (PyObject *)made;
}

static PyObject *py_calls(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    called[CALLED_UNARY] += elementwise_calls[0], called[CALLED_BINARY] += elementwise_calls[1];
    elementwise_calls[0] = elementwise_calls[1] = 0;
    PyObject *made = PyDict_New();
    for (int i = 0; made && i < CALLED_COUNT; i++) {
        PyObject *number = PyLong_FromLongLong(called[i]);
        if (!number || PyDict_SetItemString(made, CALLED_NAMES[i], number)) Py_CLEAR(made);
        Py_XDECREF(number);
    }
    Counter *const tables[] = {rearrange_calls, numbers_calls, images_calls, selection_calls, copies_calls,
                               spectra_calls, factors_calls};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (Counter *it = tables[i]; made && it->name; it++) {
            PyObject *number = PyLong_FromLongLong(it->calls);
            if (!number || PyDict_SetItemString(made, it->name, number)) Py_CLEAR(made);
            Py_XDECREF(number);
        }
    if (made && direct_count(made)) Py_CLEAR(made);
    return made;
}

static PyObject *py_set_threads(PyObject *self, PyObject *number) {
    (void)self;
    long count = PyLong_AsLong(number);
    if (count == -1 && PyErr_Occurred()) return NULL;
    pool_set_threads(count > 256 ? 256 : (int)count);
    Py_RETURN_NONE;
}

static PyObject *py_threads(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLong(pool_threads());
}

/* Levels that this processor has, the best first. */
static int levels(const Kernels *found[3]) {
    int count = 0;
#ifdef WITH_LEVELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        found[count++] = &kernels_avx512;
    /* Every processor with AVX2 has the conversions of float16 (F16C). */
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        found[count++] = &kernels_avx2;
#endif
    found[count++] = &kernels_plain;
    return count;
}

static PyObject *py_set_level(PyObject *self, PyObject *name) {
    (void)self;
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    const Kernels *found[3];
    int count = levels(found);
    for (int i = 0; i < count; i++)
        if (!strcmp(found[i]->name, text)) {
            level = found[i];
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_ValueError, "this processor has no level '%s'", text);
}

static PyObject *py_levels(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    const Kernels *found[3];
    int count = levels(found);
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made && i < count; i++) PyTuple_SET_ITEM(made, i, PyUnicode_FromString(found[i]->name));
    return made;
}

static PyObject *py_level(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyUnicode_FromString(level->name);
}

#define FAST(NAME) {#NAME, (PyCFunction)(void (*)(void))py_##NAME, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {
    FAST(matmul), FAST(multiply_into), FAST(matmul_batch), FAST(softmax), FAST(softmax_back), FAST(layer_norm),
    FAST(layer_norm_back), FAST(unary), FAST(slope), FAST(binary), FAST(attention), FAST(attention_back), FAST(recurrent),
    FAST(recurrent_back), FAST(batch_norm), FAST(batch_norm_back), FAST(group_norm), FAST(group_norm_back),
    FAST(convolve), FAST(convolve_back), FAST(convolve_input), FAST(adam), FAST(adagrad),
    FAST(sgd), FAST(update),
    {"calls", py_calls, METH_NOARGS, NULL},
    {"set_threads", py_set_threads, METH_O, NULL},
    {"threads", py_threads, METH_NOARGS, NULL},
    {"set_level", py_set_level, METH_O, NULL},
    {"levels", py_levels, METH_NOARGS, NULL},
    {"level", py_level, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_kernels", "Kernels in C on NumPy arrays.", -1, METHODS,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) {
    import_array();
    const Kernels *found[3];
    levels(found);
    level = found[0];
    PyObject *module = PyModule_Create(&MODULE);
    if (module && (PyModule_AddIntConstant(module, "VERSION", 8) || elementwise_add(module) || random_add(module) ||
                   rearrange_add(module) || numbers_add(module) || images_add(module) ||
                   selection_add(module) || copies_add(module) || spectra_add(module) ||
                   factors_add(module) || direct_add(module))) Py_CLEAR(module);
    return module;
}
