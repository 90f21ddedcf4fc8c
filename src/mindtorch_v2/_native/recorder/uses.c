/* UseLog: which memory the tensor arguments of an op are in, noted when the op starts. */
#include "native.h"

/* Time, thread, place (position of the argument, above it the device), address of the memory, its bytes, the tensor. */
#define FIELDS 6

typedef struct {
    PyObject_HEAD
    Rows rows;
    PyObject *block_of; /* of an array that is not NumPy's: (address, bytes, device in the bits of a place) or None */
} UseLog;

/* Lists inside lists that are looked into: no op takes deeper ones, and a list can contain itself. */
#define DEEPEST 3

static inline int
add(UseLog *self, int64_t time, int64_t thread, int64_t place, int64_t address, int64_t size, int64_t tensor)
{
    int64_t *row = rows_append(&self->rows);
    if (row == NULL)
        return -1;
    row[0] = time;
    row[1] = thread;
    row[2] = place;
    row[3] = address;
    row[4] = size;
    row[5] = tensor;
    return 0;
}

/* One row for what may be on another device; 0 or -1. */
static int __attribute__((noinline))
note_elsewhere(UseLog *self, PyObject *value, int64_t position, int64_t time, int64_t thread)
{
    PyObject *array = other_array_of(value);
    if (array == NULL)
        return 0;
    int64_t tensor = array == value ? 0 : (int64_t)(intptr_t)value;
    Py_INCREF(array);
    PyObject *block = PyObject_CallOneArg(self->block_of, array);
    Py_DECREF(array);
    if (block == NULL)
        return -1;
    long long address, size, where;
    int result = 0;
    if (block != Py_None)
        result = PyArg_ParseTuple(block, "LLL", &address, &size, &where)
                     ? add(self, time, thread, position | where, address, size, tensor) : -1;
    Py_DECREF(block);
    return result;
}

/* One row per tensor in a value; 0 or -1. */
static int
note(UseLog *self, PyObject *value, int64_t position, int64_t time, int64_t thread, int depth)
{
    if (value == Py_None || PyLong_CheckExact(value) || PyBool_Check(value) || PyFloat_CheckExact(value))
        return 0;
    if (PyTuple_Check(value) || PyList_CheckExact(value)) {
        if (depth == DEEPEST)
            return 0;
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++)
            if (note(self, PySequence_Fast_GET_ITEM(value, i), position, time, thread, depth + 1) < 0)
                return -1;
        return 0;
    }
    PyArrayObject *array = array_of(value);
    if (array == NULL)
        return note_elsewhere(self, value, position, time, thread);
    while (PyArray_BASE(array) != NULL && PyArray_CheckExact(PyArray_BASE(array)))
        array = (PyArrayObject *)PyArray_BASE(array);
    int64_t size = PyArray_NBYTES(array);
    /* Where there is nothing, there is no address. */
    return add(self, time, thread, position, size == 0 ? 0 : (int64_t)(intptr_t)PyArray_DATA(array), size,
               Py_IS_TYPE(value, &PyArray_Type) ? 0 : (int64_t)(intptr_t)value);
}

static int
note_all(UseLog *self, PyObject *const *values, Py_ssize_t count)
{
    int64_t time = now_ns(), thread = (int64_t)PyThread_get_thread_ident();
    for (Py_ssize_t i = 0; i < count; i++)
        if (note(self, values[i], i, time, thread, 0) < 0)
            return -1;
    return 0;
}

static PyObject *
log_used(UseLog *self, PyObject *const *args, Py_ssize_t count)
{
    if (note_all(self, args, count) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* -- the log that `begin` writes to ------------------------------------------------------------------------------ */

static UseLog *active;

int
uses_are_noted(void)
{
    return active != NULL;
}

int
note_uses(PyObject *const *values, Py_ssize_t count)
{
    return note_all(active, values, count);
}

PyObject *
native_watch(PyObject *Py_UNUSED(module), PyObject *args)
{
    int describe;
    PyObject *log;
    if (!PyArg_ParseTuple(args, "pO:watch", &describe, &log))
        return NULL;
    if (log != Py_None && !Py_IS_TYPE(log, &UseLogType)) {
        PyErr_Format(PyExc_TypeError, "expected a UseLog or None, got %R", log);
        return NULL;
    }
    describing = describe;
    Py_XSETREF(active, log == Py_None ? NULL : (UseLog *)Py_NewRef(log));
    Py_RETURN_NONE;
}

static PyObject *
log_since(UseLog *self, PyObject *argument)
{
    int64_t begin = PyLong_AsLongLong(argument);
    if (begin == -1 && PyErr_Occurred())
        return NULL;
    return rows_columns(&self->rows, begin < 0 ? 0 : begin);
}

static Py_ssize_t
log_length(UseLog *self)
{
    return (Py_ssize_t)self->rows.count;
}

static PyObject *
log_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *block_of;
    if (!PyArg_ParseTuple(args, "O:UseLog", &block_of))
        return NULL;
    UseLog *self = (UseLog *)type->tp_alloc(type, 0);
    if (self != NULL) {
        rows_init(&self->rows, FIELDS);
        self->block_of = Py_NewRef(block_of);
    }
    return (PyObject *)self;
}

static void
log_dealloc(UseLog *self)
{
    rows_free(&self->rows);
    Py_XDECREF(self->block_of);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef log_methods[] = {
    {"used", (PyCFunction)(void (*)(void))log_used, METH_FASTCALL, "Note the arguments of an op that is about to start."},
    {"since", (PyCFunction)log_since, METH_O, "Six int64 arrays (time, thread, place, address, bytes, tensor) from one on."},
    {NULL},
};

static PySequenceMethods log_sequence = {.sq_length = (lenfunc)log_length};

PyTypeObject UseLogType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.UseLog",
    .tp_basicsize = sizeof(UseLog),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "UseLog(block_of): notes (time, thread, place, address, bytes, tensor) for every tensor argument of an op.",
    .tp_new = log_new,
    .tp_dealloc = (destructor)log_dealloc,
    .tp_methods = log_methods,
    .tp_as_sequence = &log_sequence,
};
