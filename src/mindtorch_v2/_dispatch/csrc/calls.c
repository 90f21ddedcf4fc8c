/* CallProbe: the profile function of one thread, in C.
 *
 * The interpreter reports every call of a built-in function too; here that costs a comparison, where the Python twin in
 * profiler/recorder/python_calls.py pays for a Python call. Files that are neither the user's nor this package's are
 * left to the twin.
 */
#include "native.h"

typedef struct {
    PyObject_HEAD
    PyObject *calls;   /* list: time, code, instruction; three items a record */
    PyObject *users;   /* set of the user's files */
    PyObject *files;   /* dict: file -> whose it is */
    PyObject *decide;  /* the twin: decide(frame, event, argument) */
    PyObject *restore; /* called at the next event once the recording has ended */
    long own;          /* in `files`: this package's */
    long exit;         /* in place of an instruction: the frame is left */
    int retired;
} CallProbe;

static int
note(CallProbe *probe, PyObject *code, long instruction)
{
    PyObject *time = PyLong_FromLongLong(now_ns());
    PyObject *place = PyLong_FromLong(instruction);
    int failed = time == NULL || place == NULL || PyList_Append(probe->calls, time) < 0 ||
                 PyList_Append(probe->calls, code) < 0 || PyList_Append(probe->calls, place) < 0;
    Py_XDECREF(time);
    Py_XDECREF(place);
    return failed ? -1 : 0;
}

static long
last_instruction(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    PyObject *value = PyObject_GetAttrString((PyObject *)frame, "f_lasti");
    if (value == NULL)
        return -1;
    long found = PyLong_AsLong(value);
    Py_DECREF(value);
    return found;
#endif
}

static int
call(PyObject *function, PyObject *frame, const char *event)
{
    PyObject *done = frame == NULL ? PyObject_CallNoArgs(function)
                                   : PyObject_CallFunction(function, "OsO", frame, event, Py_None);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int
on_event(PyObject *self, PyFrameObject *frame, int what, PyObject *Py_UNUSED(argument))
{
    CallProbe *probe = (CallProbe *)self;
    if (what != PyTrace_CALL && what != PyTrace_RETURN)
        return 0;
    if (probe->retired)
        return call(probe->restore, NULL, NULL);
    PyCodeObject *code = PyFrame_GetCode(frame);
    int users = PySet_Contains(probe->users, code->co_filename);
    int result = users;
    if (users > 0)
        result = note(probe, (PyObject *)code, what == PyTrace_CALL ? last_instruction(frame) : probe->exit);
    else if (users == 0) {
        PyObject *kind = PyDict_GetItemWithError(probe->files, code->co_filename);
        if (kind == NULL && PyErr_Occurred())
            result = -1;
        else if (kind == NULL || PyLong_AsLong(kind) != probe->own)
            result = call(probe->decide, (PyObject *)frame, what == PyTrace_CALL ? "call" : "return");
    }
    Py_DECREF(code);
    return result < 0 ? -1 : 0;
}

#ifdef CAN_PAUSE_CALLS
int
calls_are_noted(PyThreadState *thread)
{
    return thread->c_profilefunc == on_event && thread->tracing == 0;
}
#endif

static int
probe_init(CallProbe *self, PyObject *args, PyObject *Py_UNUSED(keywords))
{
    PyObject *calls, *users, *files, *decide, *restore;
    if (!PyArg_ParseTuple(args, "O!OO!OOll", &PyList_Type, &calls, &users, &PyDict_Type, &files, &decide, &restore,
                          &self->own, &self->exit))
        return -1;
    if (!PyAnySet_Check(users)) {
        PyErr_SetString(PyExc_TypeError, "users must be a set");
        return -1;
    }
    Py_XSETREF(self->calls, Py_NewRef(calls));
    Py_XSETREF(self->users, Py_NewRef(users));
    Py_XSETREF(self->files, Py_NewRef(files));
    Py_XSETREF(self->decide, Py_NewRef(decide));
    Py_XSETREF(self->restore, Py_NewRef(restore));
    return 0;
}

static int
probe_traverse(CallProbe *self, visitproc visit, void *arg)
{
    Py_VISIT(self->calls);
    Py_VISIT(self->users);
    Py_VISIT(self->files);
    Py_VISIT(self->decide);
    Py_VISIT(self->restore);
    return 0;
}

static int
probe_clear(CallProbe *self)
{
    Py_CLEAR(self->calls);
    Py_CLEAR(self->users);
    Py_CLEAR(self->files);
    Py_CLEAR(self->decide);
    Py_CLEAR(self->restore);
    return 0;
}

static void
probe_dealloc(CallProbe *self)
{
    PyObject_GC_UnTrack(self);
    probe_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
probe_install(CallProbe *self, PyObject *Py_UNUSED(ignored))
{
    if (self->calls == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the probe was not initialised");
        return NULL;
    }
    PyEval_SetProfile(on_event, (PyObject *)self);
    Py_RETURN_NONE;
}

static PyObject *
probe_retire(CallProbe *self, PyObject *Py_UNUSED(ignored))
{
    self->retired = 1;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"install", (PyCFunction)probe_install, METH_NOARGS, "Become the calling thread's profile function."},
    {"retire", (PyCFunction)probe_retire, METH_NOARGS, "Note nothing more; restore at the next event."},
    {NULL},
};

PyTypeObject CallProbeType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._dispatch._native.CallProbe",
    .tp_basicsize = sizeof(CallProbe),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "CallProbe(calls, users, files, decide, restore, own, exit): a thread's profile function.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)probe_init,
    .tp_dealloc = (destructor)probe_dealloc,
    .tp_traverse = (traverseproc)probe_traverse,
    .tp_clear = (inquiry)probe_clear,
    .tp_methods = methods,
};
