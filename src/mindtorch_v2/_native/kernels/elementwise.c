/* `Elementwise(kind, operands, ufunc)` is called as the ufunc is, or the function that stands for one: f(a), f(a, out),
   f(a, b), f(a, b, out), out=.

   Plain arrays (float32, row-major) of one shape, or one of them a number, a row or a column, are computed here, and
   arrays of 16-bit floats of one shape; a result without dimensions is an array. With kind -1 there is no kernel for
   them. Large arrays of other types go through the ufunc's own inner loop, but on several threads. Everything else, and
   everything while it is switched off, is the ufunc's. */
#include "arrays.h"

#define NO_IMPORT_UFUNC
#include <numpy/ufuncobject.h>

#include <stddef.h>

#include "elementwise.h"
#include "kernels.h"
#include "order.h"

long long elementwise_calls[2];
int elementwise_enabled = 1;
static PyObject *out_name; /* ("out",) */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *ufunc;
    PyUFuncObject *loops; /* the same if it is a ufunc of NumPy, with a loop for each type */
    int kind, operands;
} Elementwise;

int is_plain(PyObject *o) {
    PyArrayObject *a = (PyArrayObject *)o;
    return PyArray_CheckExact(o) && PyArray_TYPE(a) == NPY_FLOAT && PyArray_IS_C_CONTIGUOUS(a) && PyArray_ISBEHAVED_RO(a);
}

int crosses(const float *a, const float *b, ptrdiff_t a_count, ptrdiff_t b_count) {
    if (a == b && a_count == b_count) return 0;
    return a < b + b_count && b < a + a_count;
}

/* Whether `b` is a number or has the shape of the last dimensions of `a`. */
static int fits(PyArrayObject *a, PyArrayObject *b) {
    int lead = PyArray_NDIM(a) - PyArray_NDIM(b);
    if (lead < 0) return 0;
    if (!PyArray_NDIM(b)) return 1; /* a number has no list of dimensions to look at */
    return !memcmp(PyArray_DIMS(a) + lead, PyArray_DIMS(b), sizeof(npy_intp) * (size_t)PyArray_NDIM(b));
}

/* Whether `b` has one column and is as `a` else. */
static int is_column(PyArrayObject *a, PyArrayObject *b) {
    int last = PyArray_NDIM(a) - 1;
    return last > 0 && PyArray_NDIM(b) == last + 1 && PyArray_DIM(b, last) == 1 && PyArray_DIM(a, last) > 1 &&
           !memcmp(PyArray_DIMS(a), PyArray_DIMS(b), sizeof(npy_intp) * (size_t)last);
}

static void run_column(int kind, float *made, PyArrayObject *a, PyArrayObject *b, int second) {
    npy_intp columns = PyArray_DIM(second ? a : b, PyArray_NDIM(a) - 1), size = PyArray_SIZE(second ? a : b);
    npy_intp rows = columns ? size / columns : 0;
    const float *x = PyArray_DATA(a), *y = PyArray_DATA(b);
    PyThreadState *state = size > 1 << 14 ? PyEval_SaveThread() : NULL;
    level->binary((enum Binary)kind, made, x, y, rows, columns, second ? columns : 1, second, second ? 1 : columns, !second);
    if (state) PyEval_RestoreThread(state);
}

/* A column of any step times a row and the like: a new matrix, or NULL without an error. */
static PyObject *run_outer(int kind, PyObject *first, PyObject *second) {
    PyArrayObject *a = (PyArrayObject *)first, *b = (PyArrayObject *)second;
    if (!PyArray_CheckExact(first) || PyArray_TYPE(a) != NPY_FLOAT || PyArray_NDIM(a) != 2 || PyArray_DIM(a, 1) != 1 ||
        !PyArray_ISBEHAVED_RO(a) || PyArray_STRIDE(a, 0) % 4 || !is_plain(second) || PyArray_NDIM(b) != 1 ||
        PyArray_DIM(b, 0) < 2 || PyArray_DIM(a, 0) < 2)
        return NULL;
    npy_intp sizes[2] = {PyArray_DIM(a, 0), PyArray_DIM(b, 0)};
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(2, sizes, NPY_FLOAT);
    if (!made) return NULL;
    elementwise_calls[1]++;
    PyThreadState *state = sizes[0] * sizes[1] > 1 << 14 ? PyEval_SaveThread() : NULL;
    level->binary((enum Binary)kind, PyArray_DATA(made), PyArray_DATA(a), PyArray_DATA(b), sizes[0], sizes[1],
                  PyArray_STRIDE(a, 0) / 4, 0, 0, 1);
    if (state) PyEval_RestoreThread(state);
    return (PyObject *)made;
}

/* Floats of 16 bits, some at a time in float32. */
static int bfloat16_type = -1;
enum { SOME = 512 };
typedef struct {
    int kind, operands, brain;
    uint16_t *made;
    const uint16_t *a, *b;
} Halves;

static void halves_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Halves *it = work;
    (void)share;
    enum Conversion widen = it->brain ? OF_BFLOAT16 : OF_FLOAT16, narrow = it->brain ? TO_BFLOAT16 : TO_FLOAT16;
    if (!it->brain && it->operands == 2 &&
        level->binary_halves((enum Binary)it->kind, it->made + begin, it->a + begin, it->b + begin, end - begin))
        return;
    float a[SOME], b[SOME];
    for (ptrdiff_t i = begin; i < end; i += SOME) {
        ptrdiff_t count = end - i < SOME ? end - i : SOME;
        level->convert(widen, a, it->a + i, count);
        if (it->operands == 2) {
            level->convert(widen, b, it->b + i, count);
            level->binary((enum Binary)it->kind, a, a, b, 1, count, count, 1, count, 1);
        } else {
            level->unary((enum Unary)it->kind, a, a, count);
        }
        level->convert(narrow, it->made + i, a, count);
    }
}

static int is_half(PyObject *o) {
    PyArrayObject *a = (PyArrayObject *)o;
    return PyArray_CheckExact(o) && (PyArray_TYPE(a) == NPY_HALF || PyArray_TYPE(a) == bfloat16_type) &&
           PyArray_IS_C_CONTIGUOUS(a) && PyArray_ISBEHAVED_RO(a);
}

/* A new array, NULL with an error, or None for what the ufunc has to do. */
static PyObject *run_halves(const Elementwise *it, PyArrayObject *a, PyArrayObject *b) {
    static float probe;
    static uint16_t probed;
    Halves work = {it->kind, it->operands, PyArray_TYPE(a) == bfloat16_type, NULL, PyArray_DATA(a), PyArray_DATA(b)};
    if (PyArray_TYPE(a) != PyArray_TYPE(b) || !PyArray_SAMESHAPE(a, b) ||
        (!work.brain && !level->convert(OF_FLOAT16, &probe, &probed, 1)))
        Py_RETURN_NONE;
    PyArrayObject *made = (PyArrayObject *)PyArray_NewLikeArray(a, NPY_CORDER, NULL, 0);
    if (!made) return NULL;
    work.made = PyArray_DATA(made);
    npy_intp size = PyArray_SIZE(a);
    elementwise_calls[it->operands - 1]++;
    PyThreadState *state = size > 1 << 14 ? PyEval_SaveThread() : NULL;
    pool_run(halves_share, &work, size, SHARE);
    if (state) PyEval_RestoreThread(state);
    return (PyObject *)made;
}

/* A ufunc's inner loop over a part of the arrays. */
typedef struct {
    PyUFuncGenericFunction loop;
    void *data;
    char *at[3];
    npy_intp step[3];
    int count;
} Looped;

static void loop_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Looped *it = work;
    (void)share;
    char *at[3];
    npy_intp size = end - begin;
    for (int i = 0; i < it->count; i++) at[i] = it->at[i] + begin * it->step[i];
    it->loop(at, &size, it->step, it->data);
}

static int has_loops(PyObject *o) {
    PyArrayObject *a = (PyArrayObject *)o;
    return PyArray_CheckExact(o) && PyArray_TYPE(a) <= NPY_DOUBLE && PyArray_IS_C_CONTIGUOUS(a) && PyArray_ISBEHAVED_RO(a);
}

/* A new array, NULL with an error, or None for what the ufunc has to do. */
static PyObject *run_loops(const Elementwise *it, PyArrayObject *a, PyArrayObject *b) {
    npy_intp size = PyArray_SIZE(a);
    if (PyArray_TYPE(a) != PyArray_TYPE(b) || (PyArray_NDIM(b) && !PyArray_SAMESHAPE(a, b)) ||
        pool_shares(size, SHARE) == 1)
        Py_RETURN_NONE;
    PyUFuncObject *ufunc = it->loops;
    for (int which = 0; which < ufunc->ntypes; which++) {
        const char *types = ufunc->types + which * ufunc->nargs;
        if (types[0] != PyArray_TYPE(a) || types[it->operands - 1] != PyArray_TYPE(a)) continue;
        if (types[it->operands] > NPY_DOUBLE || !ufunc->functions[which]) break;
        PyArrayObject *made =
            (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(a), PyArray_DIMS(a), types[it->operands]);
        if (!made) return NULL;
        Looped work = {ufunc->functions[which], ufunc->data ? ufunc->data[which] : NULL, {0}, {0}, it->operands + 1};
        work.at[0] = PyArray_BYTES(a), work.step[0] = PyArray_ITEMSIZE(a);
        if (it->operands == 2) work.at[1] = PyArray_BYTES(b), work.step[1] = PyArray_NDIM(b) ? PyArray_ITEMSIZE(b) : 0;
        work.at[it->operands] = PyArray_BYTES(made), work.step[it->operands] = PyArray_ITEMSIZE(made);
        Py_BEGIN_ALLOW_THREADS pool_run(loop_share, &work, size, SHARE);
        Py_END_ALLOW_THREADS
        return (PyObject *)made;
    }
    Py_RETURN_NONE;
}

/* The ufunc's result of operands that are not in row-major order, in the order that PyTorch gives it; or NULL with an
   error, or None. */
static PyObject *run_ordered(const Elementwise *it, PyObject *const *args) {
    PyArrayObject *arrays[2] = {(PyArrayObject *)args[0], (PyArrayObject *)args[it->operands - 1]};
    int plain = 1;
    for (int i = 0; i < it->operands; i++) {
        if (!PyArray_CheckExact(args[i]) || PyArray_TYPE(arrays[i]) > NPY_CLONGDOUBLE) Py_RETURN_NONE;
        plain = plain && PyArray_IS_C_CONTIGUOUS(arrays[i]);
    }
    int type = PyArray_TYPE(arrays[0]);
    if (plain || type != PyArray_TYPE(arrays[1])) Py_RETURN_NONE;
    PyUFuncObject *ufunc = it->loops;
    for (int which = 0; which < ufunc->ntypes; which++) {
        const char *types = ufunc->types + which * ufunc->nargs;
        if (types[0] != type || types[it->operands - 1] != type) continue;
        PyArrayObject *made = order_result(arrays, it->operands, types[it->operands]);
        if (!made && PyErr_Occurred()) return NULL;
        if (!made) break;
        PyObject *given[3] = {args[0], args[it->operands - 1], (PyObject *)made};
        given[it->operands] = (PyObject *)made;
        PyObject *result = PyObject_Vectorcall(it->ufunc, given, (size_t)it->operands, out_name);
        Py_DECREF(made);
        return result;
    }
    Py_RETURN_NONE;
}

/* How an operand is spread over a result of its own shape, seen as a matrix: a row that stays the same (`row` is 0), a
   column (`column` is 0) or a number (both). `columns` is 0 for a number, and for an operand that is not spread at all. */
typedef struct {
    const float *data;
    npy_intp columns;
    ptrdiff_t row, column;
} Spread;

static int spread_of(PyObject *o, Spread *it) {
    PyArrayObject *a = (PyArrayObject *)o;
    if (!PyArray_CheckExact(o) || PyArray_TYPE(a) != NPY_FLOAT || !PyArray_ISBEHAVED_RO(a)) return 0;
    /* From the last dimension on: those that step through memory and those that stay, in at most two parts. */
    int parts = 0, moving[2] = {0, 0};
    npy_intp extents[2] = {1, 1}, dense = sizeof(float);
    for (int i = PyArray_NDIM(a) - 1; i >= 0; i--) {
        npy_intp extent = PyArray_DIM(a, i), stride = PyArray_STRIDE(a, i);
        if (extent == 1) continue;
        if (stride && stride != dense) return 0;
        if (stride) dense *= extent;
        if (!parts || moving[parts - 1] != (stride != 0)) {
            if (parts == 2) return 0;
            moving[parts++] = stride != 0;
        }
        extents[parts - 1] *= extent;
    }
    it->data = PyArray_DATA(a), it->columns = parts == 2 ? extents[0] : 0;
    it->row = moving[1], it->column = moving[0];
    return 1;
}

/* Two operands of one shape, or the second a number, of which one is spread: a new array, NULL with an error, or None. */
static PyObject *run_spread(const Elementwise *it, PyObject *first, PyObject *second) {
    PyArrayObject *a = (PyArrayObject *)first, *b = (PyArrayObject *)second;
    Spread x, y;
    if (!PyArray_CheckExact(first) || !PyArray_CheckExact(second) || PyArray_SIZE(a) < 2 || !spread_of(first, &x))
        Py_RETURN_NONE;
    if (is_plain(second) && !PyArray_NDIM(b)) y = (Spread){PyArray_DATA(b), 0, 0, 0};
    else if (!PyArray_SAMESHAPE(a, b) || !spread_of(second, &y)) Py_RETURN_NONE;
    npy_intp size = PyArray_SIZE(a), columns = x.columns ? x.columns : y.columns;
    if (x.columns && y.columns && x.columns != y.columns) Py_RETURN_NONE;
    if (!columns) columns = size;
    if (x.column && !x.columns) x.row = columns;
    if (y.column && !y.columns) y.row = columns;
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(a), PyArray_DIMS(a), NPY_FLOAT);
    if (!made) return NULL;
    elementwise_calls[1]++;
    PyThreadState *state = size > 1 << 14 ? PyEval_SaveThread() : NULL;
    level->binary((enum Binary)it->kind, PyArray_DATA(made), x.data, y.data, size / columns, columns, x.row, x.column,
                  y.row, y.column);
    if (state) PyEval_RestoreThread(state);
    return (PyObject *)made;
}

static void run_unary(int kind, float *made, const float *a, npy_intp size) {
    if (size > 1 << 14) {
        Py_BEGIN_ALLOW_THREADS level->unary((enum Unary)kind, made, a, size);
        Py_END_ALLOW_THREADS
    } else {
        level->unary((enum Unary)kind, made, a, size);
    }
}

static void run_binary(int kind, float *made, const float *a, const float *b, npy_intp a_size, npy_intp b_size) {
    npy_intp size = a_size > b_size ? a_size : b_size, columns = size;
    /* A row is spread over rows, a number over one long row. */
    if (a_size != b_size && a_size > 1 && b_size > 1) columns = a_size < b_size ? a_size : b_size;
    npy_intp rows = columns ? size / columns : 0;
    ptrdiff_t a_row = a_size == size ? columns : 0, b_row = b_size == size ? columns : 0;
    ptrdiff_t a_column = a_size > 1 || size == 1, b_column = b_size > 1 || size == 1;
    if (size > 1 << 14) {
        Py_BEGIN_ALLOW_THREADS level->binary((enum Binary)kind, made, a, b, rows, columns, a_row, a_column, b_row, b_column);
        Py_END_ALLOW_THREADS
    } else {
        level->binary((enum Binary)kind, made, a, b, rows, columns, a_row, a_column, b_row, b_column);
    }
}

static PyObject *elementwise_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
    Elementwise *it = (Elementwise *)self;
    Py_ssize_t count = PyVectorcall_NARGS(flags), named = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject *out = NULL;
    if (!elementwise_enabled || named > 1 || count + named < it->operands || count + named > it->operands + 1) goto other;
    if (named && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out")) goto other;
    if (count + named > it->operands) out = args[it->operands];
    if (out == Py_None) out = NULL;
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[it->operands - 1];
    int column = 0;
    if (it->kind < 0) goto large;
    if (count >= it->operands && !out && is_half(args[0]) && is_half(args[it->operands - 1])) {
        PyObject *made = run_halves(it, a, b);
        if (made != Py_None) return made;
        Py_DECREF(made);
    }
    if (count == 2 && it->operands == 2 && !out) {
        PyObject *made = run_outer(it->kind, args[0], args[1]);
        if (made || PyErr_Occurred()) return made;
    }
    if (count < it->operands) goto other;
    if (!is_plain(args[0]) || (it->operands == 2 && !is_plain(args[1]))) {
        if (it->operands == 2 && !out) {
            PyObject *made = run_spread(it, args[0], args[1]);
            if (made != Py_None) return made;
            Py_DECREF(made);
        }
        goto large;
    }
    PyArrayObject *like = a;
    if (it->operands == 2 && !PyArray_SAMESHAPE(a, b)) {
        if (fits(a, b)) like = a;
        else if (fits(b, a)) like = b;
        else if (is_column(a, b)) column = 2;
        else if (is_column(b, a)) like = b, column = 1;
        else goto other;
    }
    npy_intp a_size = PyArray_SIZE(a), b_size = PyArray_SIZE(b), size = PyArray_SIZE(like);
    PyArrayObject *made = (PyArrayObject *)out;
    if (out) {
        if (!is_plain(out) || !PyArray_SAMESHAPE(made, like) || !PyArray_ISWRITEABLE(made) ||
            crosses(PyArray_DATA(made), PyArray_DATA(a), size, a_size) ||
            crosses(PyArray_DATA(made), PyArray_DATA(b), size, b_size))
            goto other;
        Py_INCREF(out);
    } else {
        made = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(like), PyArray_DIMS(like), NPY_FLOAT);
        if (!made) return NULL;
    }
    elementwise_calls[it->operands - 1]++;
    if (it->operands == 1) run_unary(it->kind, PyArray_DATA(made), PyArray_DATA(a), size);
    else if (size && column) run_column(it->kind, PyArray_DATA(made), a, b, column == 2);
    else if (size) run_binary(it->kind, PyArray_DATA(made), PyArray_DATA(a), PyArray_DATA(b), a_size, b_size);
    return (PyObject *)made;
large:
    if (it->loops && !out && count >= it->operands && has_loops(args[0]) && has_loops(args[it->operands - 1])) {
        PyObject *made = run_loops(it, a, b);
        if (made != Py_None) return made;
        Py_DECREF(made);
    }
other:
    if (it->loops && elementwise_enabled && !named && count == it->operands) {
        PyObject *made = run_ordered(it, args);
        if (made != Py_None) return made;
        Py_DECREF(made);
    }
    return PyObject_Vectorcall(it->ufunc, args, flags, names);
}

static PyObject *elementwise_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    int kind, operands;
    PyObject *ufunc;
    static char *words[] = {"kind", "operands", "ufunc", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "iiO", words, &kind, &operands, &ufunc)) return NULL;
    if (operands < 1 || operands > 2 || kind < -1 || kind >= (operands == 1 ? (int)UNARY_COUNT : (int)BINARY_COUNT))
        return PyErr_Format(PyExc_ValueError, "no elementwise kernel %d of %d operands", kind, operands);
    Elementwise *it = (Elementwise *)type->tp_alloc(type, 0);
    if (!it) return NULL;
    Py_INCREF(ufunc);
    it->ufunc = ufunc, it->kind = kind, it->operands = operands, it->call = elementwise_call;
    PyUFuncObject *loops = (PyUFuncObject *)ufunc;
    if (!strcmp(Py_TYPE(ufunc)->tp_name, "numpy.ufunc") && loops->nin == operands && loops->nout == 1) it->loops = loops;
    return (PyObject *)it;
}

static void elementwise_free(PyObject *self) {
    Py_XDECREF(((Elementwise *)self)->ufunc);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *elementwise_repr(PyObject *self) {
    return PyUnicode_FromFormat("<native %R>", ((Elementwise *)self)->ufunc);
}

/* The function may itself stand for a ufunc. */
static PyObject *elementwise_ufunc(PyObject *self, void *unused) {
    (void)unused;
    PyObject *function = ((Elementwise *)self)->ufunc, *inner = PyObject_GetAttrString(function, "ufunc");
    if (inner) return inner;
    PyErr_Clear();
    Py_INCREF(function);
    return function;
}

static PyGetSetDef GETTERS[] = {{"ufunc", elementwise_ufunc, NULL, "What it stands for.", NULL},
                                {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject TYPE = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._backends.cpu._kernels.Elementwise",
    .tp_basicsize = sizeof(Elementwise),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Elementwise, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = elementwise_new,
    .tp_dealloc = elementwise_free,
    .tp_repr = elementwise_repr,
    .tp_getset = GETTERS,
};

static PyObject *switch_elementwise(PyObject *self, PyObject *on) {
    (void)self;
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0) return NULL;
    elementwise_enabled = wanted;
    Py_RETURN_NONE;
}

/* set_bfloat16(number): the number that NumPy has given to the dtype, which another package registers. */
static PyObject *set_bfloat16(PyObject *self, PyObject *number) {
    (void)self;
    long type = PyLong_AsLong(number);
    if (type == -1 && PyErr_Occurred()) return NULL;
    bfloat16_type = (int)type;
    Py_RETURN_NONE;
}

/* ordered_like(array, number): new memory in the shape of an array and the order of its dimensions, for elements of the
   dtype that NumPy numbers so; None if there is no order to keep. */
static PyObject *ordered_like(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (count != 2 || !PyArray_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "ordered_like(array, number)");
    long type = PyLong_AsLong(args[1]);
    if (type == -1 && PyErr_Occurred()) return NULL;
    PyArrayObject *like = (PyArrayObject *)args[0], *made = order_result(&like, 1, (int)type);
    if (made || PyErr_Occurred()) return (PyObject *)made;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {{"ordered_like", (PyCFunction)(void (*)(void))ordered_like, METH_FASTCALL, NULL},
                                {"switch_elementwise", switch_elementwise, METH_O, NULL},
                                {"set_bfloat16", set_bfloat16, METH_O, NULL},
                                {NULL, NULL, 0, NULL}};

int elementwise_add(PyObject *module) {
    if (!out_name && !(out_name = Py_BuildValue("(s)", "out"))) return -1;
    if (PyType_Ready(&TYPE)) return -1;
    Py_INCREF(&TYPE);
    if (PyModule_AddObject(module, "Elementwise", (PyObject *)&TYPE)) {
        Py_DECREF(&TYPE);
        return -1;
    }
    return PyModule_AddFunctions(module, METHODS);
}
