/* Events of ops: `begin` makes a mark when an op starts, `mark.end(id)` appends a row to its thread's buffer. */
#include "native.h"

#define FIELDS 5 /* id, start, end, sequence number, inputs (-1 for none) */

/* -- Budget: how many events all buffers of a session hold, and how many found no room ------------------------- */

typedef struct {
    PyObject_HEAD
    long long taken, dropped;
} Budget;

static PyMemberDef budget_members[] = {
    {"taken", T_LONGLONG, offsetof(Budget, taken), READONLY, "events in all buffers"},
    {"dropped", T_LONGLONG, offsetof(Budget, dropped), READONLY, "events that found no room"},
    {NULL},
};

PyTypeObject BudgetType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.Budget",
    .tp_basicsize = sizeof(Budget),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Counts the events of all buffers that share it.",
    .tp_members = budget_members,
    .tp_new = PyType_GenericNew,
};

/* -- EventBuffer ------------------------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    Rows rows;
    Budget *budget;
    long long limit; /* over all buffers of the budget; -1 for none */
} EventBuffer;

/* Append an event, or count it as dropped. */
static inline int
buffer_add(EventBuffer *buffer, int64_t id, int64_t start, int64_t end, int64_t sequence, int64_t inputs)
{
    Budget *budget = buffer->budget;
    if (buffer->limit >= 0 && budget->taken >= buffer->limit) {
        budget->dropped++;
        return 0;
    }
    int64_t *row = rows_append(&buffer->rows);
    if (row == NULL)
        return -1;
    row[0] = id;
    row[1] = start;
    row[2] = end;
    row[3] = sequence;
    row[4] = inputs;
    budget->taken++;
    return 0;
}

static PyObject *
buffer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"budget", "limit", NULL};
    PyObject *budget;
    long long limit = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|L:EventBuffer", names, &BudgetType, &budget, &limit))
        return NULL;
    EventBuffer *self = (EventBuffer *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    rows_init(&self->rows, FIELDS);
    self->budget = (Budget *)budget;
    Py_INCREF(budget);
    self->limit = limit;
    return (PyObject *)self;
}

static void
buffer_dealloc(EventBuffer *self)
{
    rows_free(&self->rows);
    Py_XDECREF(self->budget);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static Py_ssize_t
buffer_length(EventBuffer *self)
{
    return (Py_ssize_t)self->rows.count;
}

static PyObject *
buffer_extend(EventBuffer *self, PyObject *event)
{
    int64_t fields[FIELDS];
    if (!PyTuple_Check(event) || PyTuple_GET_SIZE(event) != FIELDS) {
        PyErr_Format(PyExc_TypeError, "an event is a tuple of %d items, got %R", FIELDS, event);
        return NULL;
    }
    for (int i = 0; i < FIELDS; i++) {
        PyObject *item = PyTuple_GET_ITEM(event, i);
        fields[i] = i == FIELDS - 1 && item == Py_None ? -1 : PyLong_AsLongLong(item);
        if (fields[i] == -1 && PyErr_Occurred())
            return NULL;
    }
    if (buffer_add(self, fields[0], fields[1], fields[2], fields[3], fields[4]) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
buffer_columns(EventBuffer *self, PyObject *Py_UNUSED(ignored))
{
    return rows_columns(&self->rows, 0);
}

/* An empty buffer for events of another. Its budget is its own: they were counted when they were recorded. */
static PyObject *
new_part(void)
{
    PyObject *budget = PyObject_CallNoArgs((PyObject *)&BudgetType);
    if (budget == NULL)
        return NULL;
    PyObject *part = PyObject_CallOneArg((PyObject *)&EventBufferType, budget);
    Py_DECREF(budget);
    return part;
}

static PyObject *
buffer_since(EventBuffer *self, PyObject *argument)
{
    int64_t begin = PyLong_AsLongLong(argument);
    if (begin == -1 && PyErr_Occurred())
        return NULL;
    PyObject *part = new_part();
    if (part != NULL && rows_copy(&((EventBuffer *)part)->rows, &self->rows, begin < 0 ? 0 : begin) < 0)
        Py_CLEAR(part);
    return part;
}

static PyObject *
buffer_drain(EventBuffer *self, PyObject *argument)
{
    int64_t begin = PyLong_AsLongLong(argument);
    if (begin == -1 && PyErr_Occurred())
        return NULL;
    PyObject *part = new_part();
    if (part == NULL)
        return NULL;
    /* At once, so that no other thread appends to what is taken. */
    Rows taken = self->rows;
    rows_init(&self->rows, FIELDS);
    if (begin <= 0)
        ((EventBuffer *)part)->rows = taken;
    else {
        if (rows_copy(&((EventBuffer *)part)->rows, &taken, begin) < 0)
            Py_CLEAR(part);
        rows_free(&taken);
    }
    return part;
}

static PyMethodDef buffer_methods[] = {
    {"drain", (PyCFunction)buffer_drain, METH_O, "A new buffer with the events from this one on; this one is empty then."},
    {"extend", (PyCFunction)buffer_extend, METH_O, "Append `(id, start, end, sequence number, inputs or None)`."},
    {"columns", (PyCFunction)buffer_columns, METH_NOARGS, "Five int64 arrays, one per field; inputs -1 for None."},
    {"since", (PyCFunction)buffer_since, METH_O, "A new buffer with a copy of the events from this one on."},
    {NULL},
};

static PySequenceMethods buffer_sequence = {.sq_length = (lenfunc)buffer_length};

PyTypeObject EventBufferType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.EventBuffer",
    .tp_basicsize = sizeof(EventBuffer),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "EventBuffer(budget, limit=-1): the events of one thread.",
    .tp_new = buffer_new,
    .tp_dealloc = (destructor)buffer_dealloc,
    .tp_methods = buffer_methods,
    .tp_as_sequence = &buffer_sequence,
};

/* -- the thread's state ------------------------------------------------------------------------------------------ */

static PyObject *thread_local, *state_name, *state_key;
static Py_ssize_t extend_offset, grad_offset, seq_offset;

PyObject *
native_set_thread(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *local, *state_type;
    if (!PyArg_ParseTuple(args, "OO:set_thread", &local, &state_type))
        return NULL;
    Py_ssize_t extend, grad, seq;
    if ((extend = slot_offset(state_type, "extend")) < 0 || (grad = slot_offset(state_type, "grad")) < 0 ||
        (seq = slot_offset(state_type, "seq")) < 0)
        return NULL;
    if (state_name == NULL && (state_name = PyUnicode_InternFromString("state")) == NULL)
        return NULL;
    if (state_key == NULL && (state_key = PyUnicode_InternFromString("mindtorch_v2 thread state")) == NULL)
        return NULL;
    extend_offset = extend;
    grad_offset = grad;
    seq_offset = seq;
    Py_INCREF(local);
    Py_XSETREF(thread_local, local);
    Py_RETURN_NONE;
}

/* `THREAD.state` as a new reference. The interpreter's own dictionary of the thread remembers it: half the price. */
static PyObject *
current_state(void)
{
    PyObject *dict = PyThreadState_GetDict();
    if (dict != NULL && state_key != NULL) {
        PyObject *known = PyDict_GetItemWithError(dict, state_key);
        if (known != NULL)
            return Py_NewRef(known);
        if (PyErr_Occurred())
            return NULL;
    }
    if (thread_local == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "set_thread() was not called");
        return NULL;
    }
    PyObject *state = PyObject_GetAttr(thread_local, state_name);
    if (state != NULL && dict != NULL && PyDict_SetItem(dict, state_key, state) < 0)
        Py_CLEAR(state);
    return state;
}

/* -- Mark: an op that has started -------------------------------------------------------------------------------- */

typedef struct Mark {
    PyObject_HEAD
    PyObject *state;
    int64_t start, sequence, inputs;
    struct Mark *next; /* while unused */
    uint64_t paused; /* the thread whose calls are not noted until `end`, by the number that no other thread gets; or 0 */
} Mark;

#define MOST_UNUSED 64
static Mark *unused;
static int unused_count;

#ifdef CAN_PAUSE_CALLS
/* A thread by its number, or NULL if it is over: a mark in a traceback can outlive its thread. */
static PyThreadState *
thread_of(uint64_t number)
{
    PyThreadState *thread = PyThreadState_Get();
    if (PyThreadState_GetID(thread) == number)
        return thread;
    for (thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); thread != NULL; thread = PyThreadState_Next(thread))
        if (PyThreadState_GetID(thread) == number)
            break;
    return thread;
}
#endif

/* Also when a mark dies without its end, as an interrupt right after `begin` can make it. */
static void
resume_calls(Mark *self)
{
#ifdef CAN_PAUSE_CALLS
    if (self->paused != 0) {
        PyThreadState *thread = thread_of(self->paused);
        self->paused = 0;
        if (thread != NULL && thread->tracing > 0)
            PyThreadState_LeaveTracing(thread);
    }
#else
    (void)self;
#endif
}

static void
mark_dealloc(Mark *self)
{
    resume_calls(self);
    Py_CLEAR(self->state);
    if (unused_count < MOST_UNUSED) {
        self->next = unused;
        unused = self;
        unused_count++;
    }
    else
        PyObject_Free(self);
}

/* Takes over the reference to the state. */
static Mark *
new_mark(PyObject *state, int64_t inputs, int64_t sequence)
{
    Mark *mark = unused;
    if (mark != NULL) {
        unused = mark->next;
        unused_count--;
        PyObject_Init((PyObject *)mark, &MarkType);
    }
    else if ((mark = PyObject_New(Mark, &MarkType)) == NULL) {
        Py_DECREF(state);
        return NULL;
    }
    mark->state = state;
    mark->inputs = inputs;
    mark->sequence = sequence;
    mark->paused = 0;
    return mark;
}

PyObject *
native_open(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "open(inputs, sequence) takes two arguments");
        return NULL;
    }
    int64_t inputs = args[0] == Py_None ? -1 : PyLong_AsLongLong(args[0]), sequence = PyLong_AsLongLong(args[1]);
    if ((inputs == -1 || sequence == -1) && PyErr_Occurred())
        return NULL;
    int64_t line = current_line();
    PyObject *state = line < 0 ? NULL : current_state();
    Mark *mark = state == NULL ? NULL : new_mark(state, inputs, sequence + (line << LINE_BITS));
    if (mark != NULL)
        mark->start = now_ns();
    return (PyObject *)mark;
}

int describing;

/* The number of the description of an op's arguments, -1 if it is not needed, -2 with an exception. */
static int64_t
inputs_of(PyObject *describer, PyObject *const *values, Py_ssize_t count)
{
    if (uses_are_noted() && note_uses(values, count) < 0)
        return -2;
    if (!describing || describer == Py_False)
        return -1;
    PyObject *number = describe_values(describer, values, count);
    if (number == NULL)
        return -2;
    int64_t inputs = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return inputs == -1 && PyErr_Occurred() ? -2 : inputs;
}

PyObject *
native_begin(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count < 2) {
        PyErr_SetString(PyExc_TypeError, "begin(inputs, in_graph, *values) takes at least two arguments");
        return NULL;
    }
    int64_t inputs = -1, sequence = -1;
    if (PyLong_CheckExact(args[0])) {
        inputs = PyLong_AsLongLong(args[0]);
        if (inputs == -1 && PyErr_Occurred())
            return NULL;
    }
    else if (args[0] != Py_None && (inputs = inputs_of(args[0], args + 2, count - 2)) == -2)
        return NULL;
    PyObject *state = current_state();
    if (state == NULL)
        return NULL;
    PyObject *grad = args[1] == Py_True ? slot(state, grad_offset) : Py_False;
    int in_graph = grad == Py_True ? 1 : grad == Py_False ? 0 : grad == NULL ? -1 : PyObject_IsTrue(grad);
    if (in_graph > 0)
        sequence = PyLong_AsLongLong(slot(state, seq_offset));
    if (in_graph < 0 || (sequence == -1 && PyErr_Occurred())) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_AttributeError, "the thread's state has no 'grad'");
        Py_DECREF(state);
        return NULL;
    }
    int64_t line = current_line();
    if (line < 0) {
        Py_DECREF(state);
        return NULL;
    }
    Mark *mark = new_mark(state, inputs, sequence + (line << LINE_BITS));
    if (mark == NULL)
        return NULL;
#ifdef CAN_PAUSE_CALLS
    PyThreadState *thread = PyThreadState_Get();
    if (calls_are_noted(thread)) {
        PyThreadState_EnterTracing(thread);
        mark->paused = PyThreadState_GetID(thread);
    }
#endif
    mark->start = now_ns();
    return (PyObject *)mark;
}

static PyObject *
mark_end(Mark *self, PyObject *const *args, Py_ssize_t count)
{
    int64_t end = now_ns();
    resume_calls(self);
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "end(event, inputs=None) takes one or two arguments");
        return NULL;
    }
    int64_t id = PyLong_AsLongLong(args[0]);
    if (id == -1 && PyErr_Occurred())
        return NULL;
    if (count == 2 && args[1] != Py_None) {
        self->inputs = PyLong_AsLongLong(args[1]);
        if (self->inputs == -1 && PyErr_Occurred())
            return NULL;
    }
    /* Looked up now: a recording may have ended, or another begun, since the op started. */
    PyObject *extend = slot(self->state, extend_offset);
    if (extend == NULL) {
        PyErr_SetString(PyExc_AttributeError, "the thread's state has no 'extend'");
        return NULL;
    }
    if (PyCFunction_CheckExact(extend) && PyCFunction_GET_FUNCTION(extend) == (PyCFunction)buffer_extend) {
        EventBuffer *buffer = (EventBuffer *)PyCFunction_GET_SELF(extend);
        if (buffer_add(buffer, id, self->start, end, self->sequence, self->inputs) < 0)
            return NULL;
        Py_RETURN_NONE;
    }
    /* Somebody else wants to see the event. */
    PyObject *inputs = self->inputs < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(self->inputs);
    PyObject *event = inputs == NULL ? NULL
        : Py_BuildValue("(LLLLN)", (long long)id, (long long)self->start, (long long)end, (long long)self->sequence, inputs);
    if (event == NULL)
        return NULL;
    Py_INCREF(extend);
    PyObject *result = PyObject_CallOneArg(extend, event);
    Py_DECREF(extend);
    Py_DECREF(event);
    return result;
}

static PyObject *
mark_resume(Mark *self, PyObject *Py_UNUSED(ignored))
{
    resume_calls(self);
    Py_RETURN_NONE;
}

static PyMethodDef mark_methods[] = {
    {"resume", (PyCFunction)mark_resume, METH_NOARGS, "Let the thread's calls be noted again, without an event."},
    {"end", (PyCFunction)(void (*)(void))mark_end, METH_FASTCALL, "Append the event, under this id, to its thread's buffer."},
    {NULL},
};

PyTypeObject MarkType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.Mark",
    .tp_basicsize = sizeof(Mark),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "An op that has started.",
    .tp_dealloc = (destructor)mark_dealloc,
    .tp_methods = mark_methods,
};
