/* Formulas, reductions, scans and conversions as functions on NumPy arrays. */
#include "arrays.h"

#include "arguments.h"
#include "direct.h"
#include "elementwise.h"
#include "kernels.h"
#include "numbers.h"

enum { CALLED_FORMULA, CALLED_MODULO, CALLED_REDUCE, CALLED_EXTREME, CALLED_CONVERT, CALLED_SCAN, CALLED_SCAN_EXTREME,
       CALLED_GATED };
Counter numbers_calls[] = {{"formula", 0}, {"modulo", 0}, {"reduce", 0}, {"extreme", 0}, {"convert", 0}, {"scan", 0},
                           {"scan_extreme", 0}, {"gated", 0}, {NULL, 0}};

static int kind_below(PyObject *o, int count) {
    long kind = PyLong_AsLong(o);
    if (kind == -1 && PyErr_Occurred()) return -1;
    if (kind >= 0 && kind < count) return (int)kind;
    wrong("unknown kind");
    return -1;
}

/* formula(kind, made, a, b, p, q, r): `made` may be None for a new array, or one of the others. The result, or None for
   arrays that NumPy has to take. */
static PyObject *formula(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    int kind;
    float given[3];
    if (!counted(count, 7) || (kind = kind_below(args[0], FORMULA_COUNT)) < 0) return NULL;
    for (int i = 0; i < 3; i++) given[i] = (float)PyFloat_AsDouble(args[4 + i]);
    if (PyErr_Occurred()) return NULL;
    PyArrayObject *a = (PyArrayObject *)args[2], *b = (PyArrayObject *)args[3], *made = (PyArrayObject *)args[1];
    if (!is_plain(args[2]) || !is_plain(args[3]) || !PyArray_SAMESHAPE(a, b)) Py_RETURN_NONE;
    npy_intp size = PyArray_SIZE(a);
    if (args[1] == Py_None) {
        made = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(a), PyArray_DIMS(a), NPY_FLOAT);
        if (!made) return NULL;
    } else {
        if (!is_plain(args[1]) || !PyArray_SAMESHAPE(made, a) || !PyArray_ISWRITEABLE(made) ||
            crosses(PyArray_DATA(made), PyArray_DATA(a), size, size) ||
            crosses(PyArray_DATA(made), PyArray_DATA(b), size, size))
            Py_RETURN_NONE;
        Py_INCREF(made);
    }
    numbers_calls[CALLED_FORMULA].calls++;
    UNLOCKED(size > MANY, level->formula((enum Formula)kind, PyArray_DATA(made), PyArray_DATA(a), PyArray_DATA(b), given,
                                         size));
    return (PyObject *)made;
}

/* gated(made, pull, given, outer): `outer` stretches of `given` have two halves each; `pull` may be None. False for
   arrays that NumPy has to take. */
static PyObject *gated(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 4)) return NULL;
    int back = args[1] != Py_None;
    Py_ssize_t outer = PyLong_AsSsize_t(args[3]);
    if (outer == -1 && PyErr_Occurred()) return NULL;
    if (!is_plain(args[0]) || !is_plain(args[2]) || (back && !is_plain(args[1]))) Py_RETURN_FALSE;
    PyArrayObject *made = (PyArrayObject *)args[0], *given = (PyArrayObject *)args[2];
    npy_intp size = PyArray_SIZE(given);
    if (outer < 1 || size % (2 * outer) || PyArray_SIZE(made) != (back ? size : size / 2) || !PyArray_ISWRITEABLE(made) ||
        (back && PyArray_SIZE((PyArrayObject *)args[1]) != size / 2))
        return wrong("sizes do not fit");
    numbers_calls[CALLED_GATED].calls++;
    UNLOCKED(size > MANY, level->gated(PyArray_DATA(made), back ? PyArray_DATA((PyArrayObject *)args[1]) : NULL,
                                       PyArray_DATA(given), outer, size / outer / 2));
    Py_RETURN_TRUE;
}

/* modulo(a, b, floored): a new array, or None */
static PyObject *modulo(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 3)) return NULL;
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1];
    if (!is_plain(args[0]) || !is_plain(args[1]) || !PyArray_SAMESHAPE(a, b)) Py_RETURN_NONE;
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(a), PyArray_DIMS(a), NPY_FLOAT);
    if (!made) return NULL;
    numbers_calls[CALLED_MODULO].calls++;
    UNLOCKED(PyArray_SIZE(a) > MANY / 8, level->modulo(PyArray_DATA(made), PyArray_DATA(a), PyArray_DATA(b),
                                                       PyArray_SIZE(a), PyObject_IsTrue(args[2])));
    return (PyObject *)made;
}

/* The sizes before, in and after dimensions `first` to `last`, and the shape of what is left of a reduction. */
typedef struct {
    npy_intp outer, count, inner, left[NPY_MAXDIMS];
    int ndim;
} Cut;

static int cut(PyArrayObject *a, PyObject *first, PyObject *last, int keep, Cut *it) {
    long from = PyLong_AsLong(first);
    if (from == -1 && PyErr_Occurred()) return 0; /* before the next call: that may run Python */
    long to = PyLong_AsLong(last);
    if (to == -1 && PyErr_Occurred()) return 0;
    int ndim = PyArray_NDIM(a);
    if (from < 0 || to < from || to >= ndim) return wrong("dimensions out of range"), 0;
    it->outer = it->count = it->inner = 1, it->ndim = 0;
    for (int i = 0; i < ndim; i++) {
        npy_intp size = PyArray_DIM(a, i);
        if (i < from) it->outer *= size;
        else if (i <= to) it->count *= size;
        else it->inner *= size;
        if (i < from || i > to) it->left[it->ndim++] = size;
        else if (keep) it->left[it->ndim++] = 1;
    }
    return 1;
}

/* reduce(kind, given, first, last, keepdim): over dimensions `first` to `last`; a new array, or None. Of int64
   only sums over the last dimensions. */
static PyObject *reduce(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    int kind;
    Cut it;
    if (!counted(count, 5) || (kind = kind_below(args[0], REDUCTION_COUNT)) < 0) return NULL;
    PyArrayObject *given = (PyArrayObject *)args[1];
    int integers = kind == SUM && PyArray_CheckExact(args[1]) && PyArray_TYPE(given) == NPY_INT64 &&
                   PyArray_IS_C_CONTIGUOUS(given) && PyArray_ISBEHAVED_RO(given);
    if (!(integers || is_plain(args[1])) || !PyArray_NDIM(given) || !PyArray_SIZE(given)) Py_RETURN_NONE;
    if (!cut(given, args[2], args[3], PyObject_IsTrue(args[4]), &it)) return NULL;
    if (integers && it.inner > 1) Py_RETURN_NONE;
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(it.ndim, it.left, integers ? NPY_INT64 : NPY_FLOAT);
    if (!made) return NULL;
    numbers_calls[CALLED_REDUCE].calls++;
    int failed = 0;
    if (integers)
        UNLOCKED(PyArray_SIZE(given) > MANY,
                 level->sum_integers(PyArray_DATA(made), PyArray_DATA(given), it.outer, it.count));
    else UNLOCKED(PyArray_SIZE(given) > MANY, failed = level->reduce((enum Reduction)kind, PyArray_DATA(made),
                                                                PyArray_DATA(given), it.outer, it.count, it.inner));
    if (failed) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    return (PyObject *)made;
}

/* extreme(kind, given, dim, keepdim): values and where they are, or None */
static PyObject *extreme(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    int kind;
    Cut it;
    if (!counted(count, 4) || (kind = kind_below(args[0], REDUCTION_COUNT)) < 0) return NULL;
    if (kind != LARGEST && kind != SMALLEST) return wrong("expected a kind of extreme");
    PyArrayObject *given = (PyArrayObject *)args[1];
    if (!is_plain(args[1]) || !PyArray_NDIM(given) || !PyArray_SIZE(given)) Py_RETURN_NONE;
    if (!cut(given, args[2], args[2], PyObject_IsTrue(args[3]), &it)) return NULL;
    if (it.count > INT32_MAX) Py_RETURN_NONE;
    PyObject *made = PyArray_SimpleNew(it.ndim, it.left, NPY_FLOAT);
    PyObject *where = made ? PyArray_SimpleNew(it.ndim, it.left, NPY_INT64) : NULL;
    if (!where) {
        Py_XDECREF(made);
        return NULL;
    }
    numbers_calls[CALLED_EXTREME].calls++;
    UNLOCKED(PyArray_SIZE(given) > MANY,
             level->extreme((enum Reduction)kind, PyArray_DATA((PyArrayObject *)made),
                            PyArray_DATA((PyArrayObject *)where), PyArray_DATA(given), it.outer, it.count, it.inner));
    return Py_BuildValue("(NN)", made, where);
}

static int is_regular(PyArrayObject *a, int size) {
    return PyArray_CheckExact((PyObject *)a) && PyArray_ITEMSIZE(a) == size && PyArray_IS_C_CONTIGUOUS(a) &&
           PyArray_ISALIGNED(a) && PyArray_ISNOTSWAPPED(a);
}

/* convert(kind, made, given): False for what is left to NumPy. The caller knows the dtypes; sizes are checked here. */
static PyObject *convert(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    int kind;
    if (!counted(count, 3) || (kind = kind_below(args[0], CONVERSION_COUNT)) < 0) return NULL;
    PyArrayObject *made = (PyArrayObject *)args[1], *given = (PyArrayObject *)args[2];
#define CONVERSION_SIZES(NAME, TO, FROM, RESULT) [NAME] = {sizeof(TO), sizeof(FROM)},
    static const int sizes[CONVERSION_COUNT][2] = {
        [TO_FLOAT16] = {2, 4}, [OF_FLOAT16] = {4, 2}, [TO_BFLOAT16] = {2, 4}, [OF_BFLOAT16] = {4, 2},
        PLAIN_CONVERSIONS(CONVERSION_SIZES)};
    if (!PyArray_Check(args[1]) || !PyArray_Check(args[2]) || !is_regular(made, sizes[kind][0]) ||
        !is_regular(given, sizes[kind][1]) || !PyArray_ISWRITEABLE(made) || PyArray_SIZE(made) != PyArray_SIZE(given))
        Py_RETURN_FALSE;
    int done = 0;
    UNLOCKED(PyArray_SIZE(given) > MANY,
             done = level->convert((enum Conversion)kind, PyArray_DATA(made), PyArray_DATA(given), PyArray_SIZE(given)));
    numbers_calls[CALLED_CONVERT].calls += done;
    return PyBool_FromLong(done);
}

/* Scans along the middle of (outer, count, inner). Items are blocks of columns of one of the outer parts. */
enum { COLUMNS = 64 };
enum Running { RUNNING_SUM, RUNNING_PRODUCT, RUNNING_LOG_OF_EXP };
typedef struct {
    enum Running kind;
    int smallest;
    float *made;
    int64_t *where;
    const float *given;
    npy_intp count, inner, blocks;
} Scan;

static void scan_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Scan *it = work;
    (void)share;
    for (ptrdiff_t item = begin; item < end; item++) {
        npy_intp from = item % it->blocks * COLUMNS, width = it->inner - from < COLUMNS ? it->inner - from : COLUMNS;
        npy_intp at = item / it->blocks * it->count * it->inner + from;
        const float *restrict x = it->given + at;
        float *restrict y = it->made + at;
        double all[COLUMNS];
        for (npy_intp j = 0; j < width; j++) all[j] = it->kind == RUNNING_PRODUCT ? 1.0 : 0.0;
        if (width == 1 && it->inner == 1) { /* the usual case, without the inner loop */
            double sum = all[0];
            if (it->kind == RUNNING_PRODUCT) for (npy_intp i = 0; i < it->count; i++) y[i] = (float)(sum *= (double)x[i]);
            else for (npy_intp i = 0; i < it->count; i++) y[i] = (float)(sum += (double)x[i]);
            continue;
        }
        for (npy_intp i = 0; i < it->count; i++, x += it->inner, y += it->inner) {
            if (it->kind == RUNNING_PRODUCT) for (npy_intp j = 0; j < width; j++) y[j] = (float)(all[j] *= (double)x[j]);
            else for (npy_intp j = 0; j < width; j++) y[j] = (float)(all[j] += (double)x[j]);
        }
    }
}

/* The logarithm of a sum of exponentials: of those so far as multiples of the largest. */
static void scan_logs_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Scan *it = work;
    (void)share;
    for (ptrdiff_t item = begin; item < end; item++) {
        npy_intp from = item % it->blocks * COLUMNS, width = it->inner - from < COLUMNS ? it->inner - from : COLUMNS;
        for (npy_intp j = 0; j < width; j++) {
            npy_intp at = item / it->blocks * it->count * it->inner + from + j;
            double top = -INFINITY, sum = 0.0;
            for (npy_intp i = 0; i < it->count; i++, at += it->inner) {
                double x = (double)it->given[at];
                if (x == top) sum += 1.0; /* also of two infinities, which have no difference */
                else if (x < top) sum += exp(x - top);
                else sum = sum * exp(top - x) + 1.0, top = x;
                it->made[at] = (float)(top + log(sum));
            }
        }
    }
}

/* The latest of equals; once there is NaN, it stays. */
static void scan_extreme_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Scan *it = work;
    (void)share;
    for (ptrdiff_t item = begin; item < end; item++) {
        npy_intp from = item % it->blocks * COLUMNS, width = it->inner - from < COLUMNS ? it->inner - from : COLUMNS;
        for (npy_intp j = 0; j < width; j++) {
            npy_intp at = item / it->blocks * it->count * it->inner + from + j, place = 0;
            float best = it->given[at];
            for (npy_intp i = 0; i < it->count; i++, at += it->inner) {
                float x = it->given[at];
                if (x != x || (best == best && (it->smallest ? x <= best : x >= best))) best = x, place = i;
                it->made[at] = best, it->where[at] = place;
            }
        }
    }
}

static int scanned(PyArrayObject *given, PyObject *dim, Scan *it, Cut *sizes) {
    if (!cut(given, dim, dim, 1, sizes)) return 0;
    it->given = PyArray_DATA(given), it->count = sizes->count, it->inner = sizes->inner;
    it->blocks = (it->inner + COLUMNS - 1) / COLUMNS;
    return 1;
}

/* scan(given, dim, kind): running sums, products or logarithms of sums, in float64; a new array, or None */
static PyObject *scan(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Scan it = {0};
    Cut sizes;
    if (!counted(count, 3)) return NULL;
    PyArrayObject *given = (PyArrayObject *)args[0];
    if (!is_plain(args[0]) || !PyArray_NDIM(given) || !PyArray_SIZE(given)) Py_RETURN_NONE;
    if (!scanned(given, args[1], &it, &sizes)) return NULL;
    int kind = kind_below(args[2], RUNNING_LOG_OF_EXP + 1);
    if (kind < 0) return NULL;
    it.kind = (enum Running)kind;
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(given), PyArray_DIMS(given), NPY_FLOAT);
    if (!made) return NULL;
    it.made = PyArray_DATA(made);
    numbers_calls[CALLED_SCAN].calls++;
    npy_intp each = it.count * (it.inner < COLUMNS ? it.inner : COLUMNS);
    UNLOCKED(PyArray_SIZE(given) > MANY, pool_run(it.kind == RUNNING_LOG_OF_EXP ? scan_logs_share : scan_share, &it, sizes.outer * it.blocks,
                                                  1 + SHARE / (each + 1)));
    return (PyObject *)made;
}

/* scan_extreme(given, dim, smallest): running extremes and where they are, or None */
static PyObject *scan_extreme(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Scan it = {0};
    Cut sizes;
    if (!counted(count, 3)) return NULL;
    PyArrayObject *given = (PyArrayObject *)args[0];
    if (!is_plain(args[0]) || !PyArray_NDIM(given) || !PyArray_SIZE(given)) Py_RETURN_NONE;
    if (!scanned(given, args[1], &it, &sizes)) return NULL;
    it.smallest = PyObject_IsTrue(args[2]);
    PyObject *made = PyArray_SimpleNew(PyArray_NDIM(given), PyArray_DIMS(given), NPY_FLOAT);
    PyObject *where = made ? PyArray_SimpleNew(PyArray_NDIM(given), PyArray_DIMS(given), NPY_INT64) : NULL;
    if (!where) {
        Py_XDECREF(made);
        return NULL;
    }
    it.made = PyArray_DATA((PyArrayObject *)made), it.where = PyArray_DATA((PyArrayObject *)where);
    numbers_calls[CALLED_SCAN_EXTREME].calls++;
    npy_intp each = it.count * (it.inner < COLUMNS ? it.inner : COLUMNS);
    UNLOCKED(PyArray_SIZE(given) > MANY,
             pool_run(scan_extreme_share, &it, sizes.outer * it.blocks, 1 + SHARE / (each + 1)));
    return Py_BuildValue("(NN)", made, where);
}

/* -- kernels that look for themselves -- */

/* What looks like a flag may be any byte that is not 0. */
#define IS_SET(X) ((X) != 0)
#define AS_IT_IS(X) (X)
#define CONVERTED(FROM, TO, AS)                                                                                          \
    do {                                                                                                               \
        const FROM *from = PyArray_DATA(a);                                                                            \
        TO *to = PyArray_DATA(made);                                                                                   \
        for (npy_intp i = 0; i < size; i++) to[i] = (TO)AS(from[i]);                                                    \
        return (PyObject *)made;                                                                                       \
    } while (0)

/* to(a, dtype): numbers as floats of at most as many bits, booleans as integers */
static PyObject *to_dtype(PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyArray_CheckExact(args[0]) || !PyArray_DescrCheck(args[1])) return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    PyArray_Descr *wanted = (PyArray_Descr *)args[1];
    if (PyArray_DESCR(a) == wanted) {
        Py_INCREF(args[0]);
        return args[0];
    }
    npy_intp size = PyArray_SIZE(a);
    int from = PyArray_TYPE(a), to = wanted->type_num;
    int known = to == NPY_FLOAT    ? from == NPY_BOOL || from == NPY_INT64 || from == NPY_DOUBLE
                : to == NPY_INT64  ? from == NPY_BOOL
                : to == NPY_DOUBLE ? from == NPY_BOOL || from == NPY_INT64 || from == NPY_FLOAT
                                   : 0;
    if (!known || !is_dense(args[0]) || size > MANY || steps_are_heard()) return LEFT;
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(a), PyArray_DIMS(a), to);
    if (!made) return NULL;
    if (to == NPY_FLOAT) {
        if (from == NPY_BOOL) CONVERTED(npy_bool, float, IS_SET);
        if (from == NPY_INT64) CONVERTED(int64_t, float, AS_IT_IS);
        CONVERTED(double, float, AS_IT_IS);
    }
    if (to == NPY_INT64) CONVERTED(npy_bool, int64_t, IS_SET);
    if (from == NPY_BOOL) CONVERTED(npy_bool, double, IS_SET);
    if (from == NPY_INT64) CONVERTED(int64_t, double, AS_IT_IS);
    CONVERTED(float, double, AS_IT_IS);
}

/* Rows of float32 without gaps: how many floats one begins after the other, or -1. One row if there are no gaps at all. */
static npy_intp row_step(PyArrayObject *a) {
    if (PyArray_IS_C_CONTIGUOUS(a)) return PyArray_SIZE(a) / (PyArray_NDIM(a) == 2 && PyArray_DIM(a, 0) ? PyArray_DIM(a, 0) : 1);
    return PyArray_NDIM(a) == 2 && PyArray_STRIDE(a, 1) == 4 && PyArray_STRIDE(a, 0) % 4 == 0 ? PyArray_STRIDE(a, 0) / 4 : -1;
}

/* The slope of a few numbers at a result; both in row-major order or with gaps between rows. */
static PyObject *few_slopes(enum Slope kind, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyArray_CheckExact(args[0]) || !PyArray_CheckExact(args[1])) return LEFT;
    PyArrayObject *pull = (PyArrayObject *)args[0], *given = (PyArrayObject *)args[1];
    if (PyArray_TYPE(pull) != NPY_FLOAT || PyArray_TYPE(given) != NPY_FLOAT || !PyArray_SAMESHAPE(pull, given) ||
        !PyArray_ISBEHAVED_RO(pull) || !PyArray_ISBEHAVED_RO(given) || !PyArray_SIZE(given) || PyArray_SIZE(given) > MANY)
        return LEFT;
    npy_intp rows = PyArray_NDIM(given) == 2 ? PyArray_DIM(given, 0) : 1, columns = PyArray_SIZE(given) / rows;
    npy_intp pull_step = row_step(pull), given_step = row_step(given);
    if (pull_step < 0 || given_step < 0) return LEFT;
    PyArrayObject *made = new_of(given, PyArray_NDIM(given), PyArray_DIMS(given));
    if (!made) return NULL;
    for (npy_intp r = 0; r < rows; r++)
        level->slope(kind, (float *)PyArray_DATA(made) + r * columns, (float *)PyArray_DATA(pull) + r * pull_step,
                     (float *)PyArray_DATA(given) + r * given_step, columns);
    return (PyObject *)made;
}

/* sigmoid_backward(grad, output), tanh_backward(grad, output) */
static PyObject *sigmoid_backward(PyObject *const *args, Py_ssize_t count) {
    return few_slopes(SIGMOID_SLOPE, args, count);
}
static PyObject *tanh_backward(PyObject *const *args, Py_ssize_t count) { return few_slopes(TANH_SLOPE, args, count); }

DirectEntry numbers_direct[] = {{"sigmoid_backward", sigmoid_backward, 0}, {"tanh_backward", tanh_backward, 0},
                                {"to", to_dtype, 0}, {NULL, NULL, 0}};

#define FAST(NAME) {#NAME, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {FAST(formula), FAST(modulo), FAST(reduce), FAST(extreme), FAST(convert), FAST(scan),
                                FAST(scan_extreme), FAST(gated), {NULL, NULL, 0, NULL}};

int numbers_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
