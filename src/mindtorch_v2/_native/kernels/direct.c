/* The type `Direct`, and where its kernels are found. */
#include "direct.h"

#include <stddef.h>
#include <string.h>

#include "elementwise.h"

static DirectEntry *const TABLES[] = {rearrange_direct, norms_direct, selection_direct, images_direct,
                                      sums_direct, views_direct, convolutions_direct, numbers_direct,
                                      counting_direct, joins_direct, spectra_direct, factors_direct,
                                      copies_direct, NULL};

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *function;
    DirectEntry *entry;
} Direct;

static PyObject *direct_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
    Direct *it = (Direct *)self;
    if (!names && elementwise_enabled) {
        PyObject *made = it->entry->run(args, PyVectorcall_NARGS(flags));
        if (made != LEFT) {
            it->entry->calls++;
            return made;
        }
    }
    return PyObject_Vectorcall(it->function, args, flags, names);
}

static PyObject *direct_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    const char *name;
    PyObject *function;
    static char *words[] = {"name", "function", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "sO", words, &name, &function)) return NULL;
    for (DirectEntry *const *table = TABLES; *table; table++)
        for (DirectEntry *entry = *table; entry->name; entry++)
            if (!strcmp(entry->name, name)) {
                Direct *it = (Direct *)type->tp_alloc(type, 0);
                if (!it) return NULL;
                Py_INCREF(function);
                it->function = function, it->entry = entry, it->call = direct_call;
                return (PyObject *)it;
            }
    return PyErr_Format(PyExc_ValueError, "no kernel '%s'", name);
}

static void direct_free(PyObject *self) {
    Py_XDECREF(((Direct *)self)->function);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *direct_repr(PyObject *self) { return PyUnicode_FromFormat("<native %R>", ((Direct *)self)->function); }

static PyObject *direct_function(PyObject *self, void *unused) {
    (void)unused;
    PyObject *function = ((Direct *)self)->function;
    Py_INCREF(function);
    return function;
}

static PyObject *direct_name(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(((Direct *)self)->entry->name);
}

static PyGetSetDef GETTERS[] = {{"function", direct_function, NULL, "What computes everything else.", NULL},
                                {"name", direct_name, NULL, "The kernel in C.", NULL},
                                {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject TYPE = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._backends.cpu._kernels.Direct",
    .tp_basicsize = sizeof(Direct),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Direct, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = direct_new,
    .tp_dealloc = direct_free,
    .tp_repr = direct_repr,
    .tp_getset = GETTERS,
};

/* -- steps -- */

enum Step { STEP_EMPTY, STEP_EMPTY_LIKE, STEP_VIEW, STEP_TO, STEP_ZERO, STEP_STRIDED, STEP_CONVOLVE, STEP_COUNT };
static const char *const STEP_NAMES[STEP_COUNT] = {"empty", "empty_like", "view", "to", "zero_", "as_strided",
                                                    "mkldnn_convolution"};
static PyObject *steps[STEP_COUNT], *hook, *observing;

/* set_step(name, function) */
static PyObject *set_step(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *function;
    (void)self;
    if (!PyArg_ParseTuple(args, "sO", &name, &function)) return NULL;
    for (int i = 0; i < STEP_COUNT; i++)
        if (!strcmp(name, STEP_NAMES[i])) {
            Py_INCREF(function);
            Py_XSETREF(steps[i], function);
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_ValueError, "no step '%s'", name);
}

/* set_hook(dictionary): its "OBSERVING" says whether somebody hears of ops */
static PyObject *set_hook(PyObject *self, PyObject *given) {
    (void)self;
    if (!PyDict_Check(given)) return PyErr_Format(PyExc_TypeError, "expected a dictionary");
    if (!observing && !(observing = PyUnicode_InternFromString("OBSERVING"))) return NULL;
    Py_INCREF(given);
    Py_XSETREF(hook, given);
    Py_RETURN_NONE;
}

int steps_are_heard(void) { return hook && PyDict_GetItemWithError(hook, observing) == Py_True; }

static int is_heard(enum Step step) { return steps[step] && steps_are_heard(); }

static PyObject *tuple_of(int ndim, const npy_intp *sizes) {
    PyObject *made = PyTuple_New(ndim);
    for (int d = 0; made && d < ndim; d++) {
        PyObject *size = PyLong_FromSsize_t(sizes[d]);
        if (!size) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, d, size);
    }
    return made;
}

/* The result of a step of two arguments; takes the reference of the second. */
static PyArrayObject *run_step(enum Step step, PyObject *first, PyObject *second) {
    if (!second) return NULL;
    PyObject *made = PyObject_CallFunctionObjArgs(steps[step], first, second, NULL);
    Py_DECREF(second);
    if (made && !PyArray_Check(made)) {
        Py_CLEAR(made);
        PyErr_SetString(PyExc_TypeError, "a step made no array");
    }
    return (PyArrayObject *)made;
}

PyArrayObject *step_empty(int ndim, npy_intp *sizes, int type) {
    if (!is_heard(STEP_EMPTY)) return (PyArrayObject *)PyArray_SimpleNew(ndim, sizes, type);
    PyObject *shape = tuple_of(ndim, sizes);
    PyArrayObject *made = shape ? run_step(STEP_EMPTY, shape, (PyObject *)PyArray_DescrFromType(type)) : NULL;
    Py_XDECREF(shape);
    return made;
}

PyArrayObject *step_empty_like(PyArrayObject *like) {
    if (!is_heard(STEP_EMPTY_LIKE)) return new_of(like, PyArray_NDIM(like), PyArray_DIMS(like));
    Py_INCREF(PyArray_DESCR(like));
    return run_step(STEP_EMPTY_LIKE, (PyObject *)like, (PyObject *)PyArray_DESCR(like));
}

/* In another shape; takes the reference. */
static PyArrayObject *reshaped(PyArrayObject *a, int ndim, npy_intp *sizes) {
    if (!a) return NULL;
    PyArray_Dims shape = {sizes, ndim};
    PyArrayObject *made = (PyArrayObject *)PyArray_Newshape(a, &shape, NPY_CORDER);
    Py_DECREF(a);
    return made;
}

PyArrayObject *step_empty_as(int ndim, npy_intp *sizes, int shown, npy_intp *shape, int type) {
    if (!is_heard(STEP_EMPTY)) return (PyArrayObject *)PyArray_SimpleNew(shown, shape, type);
    return reshaped(step_empty(ndim, sizes, type), shown, shape);
}

PyArrayObject *step_empty_to_view(int ndim, npy_intp *sizes, int shown, npy_intp *shape, int type) {
    if (!is_heard(STEP_VIEW)) return (PyArrayObject *)PyArray_SimpleNew(shown, shape, type);
    return step_empty(ndim, sizes, type);
}

PyArrayObject *step_viewed(PyArrayObject *a, int shown, npy_intp *shape) {
    if (!a || !is_heard(STEP_VIEW)) return a;
    PyArrayObject *made = run_step(STEP_VIEW, (PyObject *)a, tuple_of(shown, shape));
    Py_DECREF(a);
    return made;
}

PyArrayObject *step_strided(PyArrayObject *a, PyArrayObject *made) {
    return is_heard(STEP_STRIDED) ? run_step(STEP_STRIDED, (PyObject *)a, (PyObject *)made) : made;
}

PyObject *step_convolve(PyObject *const args[7]) {
    return is_heard(STEP_CONVOLVE) ? PyObject_Vectorcall(steps[STEP_CONVOLVE], args, 7, NULL) : NULL;
}

int step_zero(PyArrayObject *a) {
    if (!is_heard(STEP_ZERO)) {
        memset(PyArray_DATA(a), 0, (size_t)PyArray_NBYTES(a));
        return 0;
    }
    PyObject *same = PyObject_CallOneArg(steps[STEP_ZERO], (PyObject *)a);
    Py_XDECREF(same);
    return same ? 0 : -1;
}

int step_to_int64(PyArrayObject *a) {
    if (!is_heard(STEP_TO)) return 0;
    PyArrayObject *same = run_step(STEP_TO, (PyObject *)a, (PyObject *)PyArray_DescrFromType(NPY_INT64));
    Py_XDECREF(same);
    return same ? 0 : -1;
}

static PyMethodDef METHODS[] = {{"set_step", set_step, METH_VARARGS, NULL},
                                {"set_hook", set_hook, METH_O, NULL},
                                {NULL, NULL, 0, NULL}};

int direct_add(PyObject *module) {
    if (PyType_Ready(&TYPE) || PyModule_AddFunctions(module, METHODS)) return -1;
    Py_INCREF(&TYPE);
    if (PyModule_AddObject(module, "Direct", (PyObject *)&TYPE)) {
        Py_DECREF(&TYPE);
        return -1;
    }
    return 0;
}

int direct_count(PyObject *counts) {
    for (DirectEntry *const *table = TABLES; *table; table++)
        for (DirectEntry *entry = *table; entry->name; entry++) {
            if (!entry->calls) continue;
            PyObject *known = PyDict_GetItemString(counts, entry->name); /* of the kernel that is called by others */
            PyObject *number = PyLong_FromLongLong(entry->calls + (known ? PyLong_AsLongLong(known) : 0));
            int failed = !number || PyDict_SetItemString(counts, entry->name, number);
            Py_XDECREF(number);
            if (failed) return -1;
        }
    return 0;
}
