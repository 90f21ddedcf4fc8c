/* CallMonitor: callbacks for sys.monitoring, in C. The Python twin is in profiler/recorder/monitoring.py.
 *
 * Events of code that nobody wants to see return `disable`, and the interpreter does not report that place again.
 */
#include "calls.h"

typedef struct {
    PyObject_HEAD
    CallBook *book;
    PyObject *new_lane; /* new_lane(): a lane for the thread that asks */
    PyObject *disable;
    PyObject *lanes; /* dict: thread -> lane */
    uint64_t last_thread;
    CallLane *last_lane; /* borrowed from `lanes` */
} CallMonitor;

static CallLane *
lane_here(CallMonitor *self)
{
    uint64_t thread = PyThreadState_GetID(PyThreadState_Get()); /* never given twice */
    if (thread == self->last_thread && self->last_lane != NULL)
        return self->last_lane;
    PyObject *key = PyLong_FromUnsignedLongLong(thread);
    if (key == NULL)
        return NULL;
    PyObject *lane = PyDict_GetItemWithError(self->lanes, key);
    if (lane == NULL && !PyErr_Occurred()) {
        lane = PyObject_CallNoArgs(self->new_lane);
        if (lane != NULL && !Py_IS_TYPE(lane, &CallLaneType)) {
            PyErr_SetString(PyExc_TypeError, "new_lane() made no CallLane");
            Py_CLEAR(lane);
        }
        if (lane != NULL) {
            int failed = PyDict_SetItem(self->lanes, key, lane) < 0;
            Py_DECREF(lane);
            if (failed)
                lane = NULL;
        }
    }
    Py_DECREF(key);
    if (lane != NULL) {
        self->last_thread = thread;
        self->last_lane = (CallLane *)lane;
    }
    return (CallLane *)lane;
}

static int
stand_in_begins(CallLane *lane, PyCodeObject *code)
{
    if (lane->expected == code)
        return lane_open(lane, code, lane->expected_name);
    if (lane->open_count && lane->open[lane->open_count - 1].which == code)
        lane->open[lane->open_count - 1].again++;
    return 0;
}

/* A frame is entered or left: `(code, instruction, ...)`. */
static PyObject *
frame_event(CallMonitor *self, PyObject *const *args, Py_ssize_t count, int enters, int thrown, int can_disable)
{
    if (count < 2 || !PyCode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "not what sys.monitoring reports");
        return NULL;
    }
    PyCodeObject *code = (PyCodeObject *)args[0];
    long kind = book_kind(self->book, code);
    if (kind == OWN)
        return Py_NewRef(can_disable ? self->disable : Py_None);
    CallLane *lane = kind < 0 ? NULL : lane_here(self);
    if (lane == NULL)
        return NULL;
    int failed = 0, shown = kind == USERS;
    if (kind == STAND_IN)
        failed = enters ? stand_in_begins(lane, code) : lane_close(lane, code);
    else if (kind == LIBRARY) {
        PyFrameObject *frame = PyEval_GetFrame();
        shown = frame == NULL ? 0 : book_shows(self->book, frame);
        failed = shown < 0;
    }
    if (!failed && shown > 0 && thrown) {
        PyFrameObject *frame = PyEval_GetFrame();
        failed = frame == NULL ? 0 : lane_delegating(lane, frame);
    }
    if (!failed && shown > 0)
        failed = lane_note(lane, code, enters ? PyLong_AsLong(args[1]) : EXIT);
    lane->expected = NULL;
    return failed ? NULL : Py_NewRef(Py_None);
}

static PyObject *
entered(CallMonitor *self, PyObject *const *args, Py_ssize_t count)
{
    return frame_event(self, args, count, 1, 0, 1);
}

static PyObject *
left(CallMonitor *self, PyObject *const *args, Py_ssize_t count)
{
    return frame_event(self, args, count, 0, 0, 1);
}

/* These two cannot be switched off for a place. */
static PyObject *
thrown(CallMonitor *self, PyObject *const *args, Py_ssize_t count)
{
    return frame_event(self, args, count, 1, 1, 0);
}

static PyObject *
unwound(CallMonitor *self, PyObject *const *args, Py_ssize_t count)
{
    return frame_event(self, args, count, 0, 0, 0);
}

/* The user's code is about to call something: `(code, instruction, callable, first argument)`. */
static PyObject *
called(CallMonitor *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyCode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "not what sys.monitoring reports");
        return NULL;
    }
    PyCodeObject *caller = (PyCodeObject *)args[0];
    long kind = book_kind(self->book, caller);
    if (kind != USERS)
        return kind < 0 ? NULL : Py_NewRef(self->disable);
    CallLane *lane = lane_here(self);
    if (lane == NULL)
        return NULL;
    lane->expected = NULL;
    PyObject *callable = args[2];
    if (PyMethod_Check(callable))
        callable = PyMethod_GET_FUNCTION(callable);
    PyObject *name;
    if (PyFunction_Check(callable)) {
        PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(callable);
        kind = book_kind(self->book, code);
        name = kind < 0 ? NULL
            : kind == STAND_IN ? book_site(self->book, NULL, caller, PyLong_AsLong(args[1]), code) : Py_None;
        if (name != NULL && name != Py_None) {
            lane->expected = code;
            lane->expected_name = name;
        }
    }
    else if ((name = book_function(self->book, callable, args[3])) != NULL && name != Py_None &&
             lane_note(lane, name, BUILT_IN) < 0)
        return NULL;
    return name == NULL ? NULL : Py_NewRef(Py_None);
}

/* A call of something that is no Python function is over; classes are no built-in functions. */
static PyObject *
c_left(CallMonitor *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyCode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "not what sys.monitoring reports");
        return NULL;
    }
    long kind = book_kind(self->book, (PyCodeObject *)args[0]);
    PyObject *name = kind < 0 ? NULL : kind != USERS ? Py_None : book_function(self->book, args[2], args[3]);
    if (name == NULL)
        return NULL;
    if (name != Py_None) {
        CallLane *lane = lane_here(self);
        if (lane == NULL || lane_note(lane, name, EXIT) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
monitor_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(keywords))
{
    PyObject *book, *new_lane, *disable;
    if (!PyArg_ParseTuple(args, "O!OO:CallMonitor", &CallBookType, &book, &new_lane, &disable))
        return NULL;
    CallMonitor *self = (CallMonitor *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->book = (CallBook *)Py_NewRef(book);
    self->new_lane = Py_NewRef(new_lane);
    self->disable = Py_NewRef(disable);
    if ((self->lanes = PyDict_New()) == NULL)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int
monitor_traverse(CallMonitor *self, visitproc visit, void *arg)
{
    Py_VISIT(self->book);
    Py_VISIT(self->new_lane);
    Py_VISIT(self->disable);
    Py_VISIT(self->lanes);
    return 0;
}

static void
monitor_dealloc(CallMonitor *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->lanes);
    Py_CLEAR(self->book);
    Py_CLEAR(self->new_lane);
    Py_CLEAR(self->disable);
    Py_TYPE(self)->tp_free(self);
}

#define CALLBACK(function, text) {#function, (PyCFunction)(void (*)(void))function, METH_FASTCALL, text}

static PyMethodDef methods[] = {
    CALLBACK(entered, "For PY_START and PY_RESUME."),
    CALLBACK(left, "For PY_RETURN and PY_YIELD."),
    CALLBACK(thrown, "For PY_THROW."),
    CALLBACK(unwound, "For PY_UNWIND."),
    CALLBACK(called, "For CALL."),
    CALLBACK(c_left, "For C_RETURN and C_RAISE."),
    {NULL},
};

PyTypeObject CallMonitorType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.CallMonitor",
    .tp_basicsize = sizeof(CallMonitor),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "CallMonitor(book, new_lane, disable): callbacks for sys.monitoring.",
    .tp_new = monitor_new,
    .tp_dealloc = (destructor)monitor_dealloc,
    .tp_traverse = (traverseproc)monitor_traverse,
    .tp_methods = methods,
};
