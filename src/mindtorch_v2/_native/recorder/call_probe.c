/* CallProbe: the profile function of one thread, in C. The Python twin is in profiler/recorder/profile_functions.py. */
#include "calls.h"

typedef struct {
    PyObject_HEAD
    CallLane *lane;
    PyObject *restore; /* called at the next event once the recording has ended */
    PyFrameObject *quiet; /* the frame that was entered last, if it is not the user's: its calls are not shown */
    int retired;
} CallProbe;

/* A frame of this package that stands for a built-in function is shown if the user's code called it. */
static int
stand_in_begins(CallLane *lane, PyFrameObject *frame, PyCodeObject *code)
{
    PyFrameObject *caller = PyFrame_GetBack(frame);
    if (caller == NULL)
        return 0;
    PyCodeObject *caller_code = PyFrame_GetCode(caller);
    long kind = book_kind(lane->book, caller_code);
    int result = kind < 0 ? -1 : 0;
    if (kind == USERS) {
        PyObject *name = book_site(lane->book, caller, caller_code, last_instruction(caller), code);
        if (name == NULL)
            result = -1;
        else if (name != Py_None)
            result = lane_open(lane, frame, name);
    }
    Py_DECREF(caller_code);
    Py_DECREF(caller);
    return result;
}

#define GENERATORS (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)
#if PY_VERSION_HEX >= 0x030B0000
#define FIRST_YIELD 8 /* no generator waits at an instruction before this one */
#else
#define FIRST_YIELD 0
#endif

/* A generator goes on. Those that wait for it are noted unless they were entered themselves. */
static int
note_waiting(CallLane *lane, PyFrameObject *frame)
{
    PyFrameObject *caller = PyFrame_GetBack(frame);
    if (caller == NULL)
        return 0;
    PyCodeObject *code = PyFrame_GetCode(caller);
    int waits = code->co_flags & GENERATORS ? book_waits(lane->book, code, last_instruction(caller)) : 0;
    Py_DECREF(code);
    Py_DECREF(caller);
    return waits <= 0 ? waits : lane_delegating(lane, frame);
}

static int
note_frame(CallLane *lane, PyFrameObject *frame, PyCodeObject *code, long kind, int enters)
{
    int shown = kind == USERS;
    if (kind == STAND_IN)
        return enters ? stand_in_begins(lane, frame, code) : lane_close(lane, frame);
    if (kind == LIBRARY)
        shown = book_shows(lane->book, frame);
    if (shown <= 0)
        return shown;
    long instruction = enters ? last_instruction(frame) : EXIT;
    if (instruction >= FIRST_YIELD && code->co_flags & GENERATORS && note_waiting(lane, frame) < 0)
        return -1;
    return lane_note(lane, code, instruction);
}

static int
note_function(CallLane *lane, PyObject *function, int enters)
{
    PyObject *name = book_function(lane->book, function, NULL);
    return name == NULL ? -1 : name == Py_None ? 0 : lane_note(lane, name, enters ? BUILT_IN : EXIT);
}

static int
note_event(CallProbe *probe, PyFrameObject *frame, int what, PyObject *argument)
{
    int of_frame = what == PyTrace_CALL || what == PyTrace_RETURN;
    if (probe->retired) {
        if (!of_frame || probe->restore == NULL)
            return 0;
        PyObject *done = PyObject_CallNoArgs(probe->restore);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    if (!of_frame && what != PyTrace_C_CALL && what != PyTrace_C_RETURN && what != PyTrace_C_EXCEPTION)
        return 0;
    if (of_frame)
        probe->quiet = NULL;
    else if (frame == probe->quiet)
        return 0;
    PyCodeObject *code = PyFrame_GetCode(frame);
    long kind = book_kind(probe->lane->book, code);
    int result = kind < 0 ? -1 : 0;
    if (kind != USERS && what != PyTrace_RETURN)
        probe->quiet = frame; /* until the next frame is entered or this one is left */
    if (of_frame && kind >= 0 && kind != OWN)
        result = note_frame(probe->lane, frame, code, kind, what == PyTrace_CALL);
    else if (!of_frame && kind == USERS)
        result = note_function(probe->lane, argument, what == PyTrace_C_CALL);
    Py_DECREF(code);
    return result;
}

/* The interpreter does not hold on to what it calls. Noting asks Python code, during which another thread may end the
 * recording, begin the next one and put that one's probe in this one's place. */
static int
on_event(PyObject *self, PyFrameObject *frame, int what, PyObject *argument)
{
    Py_INCREF(self);
    int result = note_event((CallProbe *)self, frame, what, argument);
    Py_DECREF(self);
    return result;
}

#ifdef CAN_PAUSE_CALLS
int
calls_are_noted(PyThreadState *thread)
{
    return thread->c_profilefunc == on_event && thread->tracing == 0;
}
#endif

static PyObject *
probe_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(keywords))
{
    PyObject *lane, *restore;
    if (!PyArg_ParseTuple(args, "O!O:CallProbe", &CallLaneType, &lane, &restore))
        return NULL;
    CallProbe *self = (CallProbe *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->lane = (CallLane *)Py_NewRef(lane);
    self->restore = Py_NewRef(restore);
    return (PyObject *)self;
}

static int
probe_traverse(CallProbe *self, visitproc visit, void *arg)
{
    Py_VISIT(self->lane);
    Py_VISIT(self->restore);
    return 0;
}

static int
probe_clear(CallProbe *self)
{
    Py_CLEAR(self->restore); /* not the lane: the interpreter may still report */
    self->retired = 1;
    return 0;
}

static void
probe_dealloc(CallProbe *self)
{
    PyObject_GC_UnTrack(self);
    probe_clear(self);
    Py_CLEAR(self->lane);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
probe_install(CallProbe *self, PyObject *Py_UNUSED(ignored))
{
    PyEval_SetProfile(on_event, (PyObject *)self);
    Py_RETURN_NONE;
}

/* Become the profile function of a thread by its ident, unless it has one or is not there; says whether it is. */
static PyObject *
probe_install_on(CallProbe *self, PyObject *argument)
{
    unsigned long ident = PyLong_AsUnsignedLong(argument);
    if (ident == (unsigned long)-1 && PyErr_Occurred())
        return NULL;
#if PY_VERSION_HEX < 0x030C0000
    PyThreadState *other = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    while (other != NULL && other->thread_id != ident)
        other = PyThreadState_Next(other);
    /* A retired probe stays until the thread's next event, which may come after the next recording. */
    if (other == NULL || (other->c_profilefunc != NULL && !(other->c_profilefunc == on_event &&
                                                            ((CallProbe *)other->c_profileobj)->retired)))
        Py_RETURN_FALSE;
    /* The interpreter sets the function of the thread that it takes for the current one. What was there must not die
     * meanwhile, because what it holds may run code when it goes. */
    PyObject *before = Py_XNewRef(other->c_profileobj);
    PyThreadState *here = PyThreadState_Swap(other);
    PyEval_SetProfile(on_event, (PyObject *)self);
    PyThreadState_Swap(here);
    Py_XDECREF(before);
    Py_RETURN_TRUE;
#else /* sys.monitoring sees all threads */
    Py_RETURN_FALSE;
#endif
}

static PyObject *
probe_retire(CallProbe *self, PyObject *Py_UNUSED(ignored))
{
    self->retired = 1;
    Py_RETURN_NONE;
}

/* A program that took it from sys.getprofile() gives it back to sys.setprofile(), which calls it as a function of
 * Python's: it becomes the thread's own again. */
static PyObject *
probe_call(CallProbe *self, PyObject *args, PyObject *Py_UNUSED(keywords))
{
    static const char *const events[] = {"call", "exception", "line", "return", "c_call", "c_exception", "c_return"};
    PyObject *frame, *event, *argument;
    if (!PyArg_ParseTuple(args, "O!UO:CallProbe", &PyFrame_Type, &frame, &event, &argument))
        return NULL;
    PyEval_SetProfile(on_event, (PyObject *)self);
    for (int what = 0; what < (int)(sizeof events / sizeof *events); what++) {
        if (PyUnicode_CompareWithASCIIString(event, events[what]) == 0 &&
            on_event((PyObject *)self, (PyFrameObject *)frame, what, argument) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"install", (PyCFunction)probe_install, METH_NOARGS, "Become the calling thread's profile function."},
    {"install_on", (PyCFunction)probe_install_on, METH_O, "Become the profile function of a thread that has none."},
    {"retire", (PyCFunction)probe_retire, METH_NOARGS, "Note nothing more; restore at the next event."},
    {NULL},
};

PyTypeObject CallProbeType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.CallProbe",
    .tp_basicsize = sizeof(CallProbe),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "CallProbe(lane, restore): a thread's profile function.",
    .tp_new = probe_new,
    .tp_dealloc = (destructor)probe_dealloc,
    .tp_traverse = (traverseproc)probe_traverse,
    .tp_clear = (inquiry)probe_clear,
    .tp_call = (ternaryfunc)probe_call,
    .tp_methods = methods,
};
