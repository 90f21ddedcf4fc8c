/* CallBook: what is known of code objects, built-in functions and places where they are called.
 * CallLane: the calls of one thread.
 *
 * A call is noted millions of times but looked up in Python once: the book answers from then on.
 */
#include "calls.h"

#define FIRST_ROOM 256

static Known *
place_of(Known *known, size_t room, void *first, void *second, long third)
{
    uint64_t hash = ((uintptr_t)first >> 4) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ ((uintptr_t)second >> 4) ^ ((uint64_t)third << 1)) * 0xD6E8FEB86659FD93u;
    for (size_t i = (size_t)(hash >> 32) & (room - 1);; i = (i + 1) & (room - 1)) {
        Known *entry = known + i;
        if (entry->first == NULL || (entry->first == first && entry->second == second && entry->third == third))
            return entry;
    }
}

static int
book_add(CallBook *book, Known entry)
{
    if (2 * book->used >= book->room) {
        size_t room = book->room ? 2 * book->room : FIRST_ROOM;
        Known *known = PyMem_Calloc(room, sizeof *known);
        if (known == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        for (size_t i = 0; i < book->room; i++) {
            Known *old = book->known + i;
            if (old->first != NULL)
                *place_of(known, room, old->first, old->second, old->third) = *old;
        }
        PyMem_Free(book->known);
        book->known = known;
        book->room = room;
    }
    Known *place = place_of(book->known, book->room, entry.first, entry.second, entry.third);
    if (place->first == NULL) { /* else asking let another thread be faster */
        *place = entry;
        book->used++;
    }
    return 0;
}

static inline Known *
look_up(CallBook *book, void *first, void *second, long third)
{
    if (!book->room)
        return NULL;
    Known *found = place_of(book->known, book->room, first, second, third);
    return found->first == NULL ? NULL : found;
}

/* Make an object that rows refer to findable by its address. */
static int
publish(CallBook *book, PyObject *object)
{
    PyObject *address = PyLong_FromVoidPtr(object);
    int failed = address == NULL || PyDict_SetItem(book->objects, address, object) < 0;
    Py_XDECREF(address);
    return failed ? -1 : 0;
}

#define ABOUT_CODE -5
#define ABOUT_FUNCTION -6

long
book_kind(CallBook *book, PyCodeObject *code)
{
    Known *found = look_up(book, code, NULL, ABOUT_CODE);
    if (found != NULL)
        return found->kind;
    PyObject *answer = PyObject_CallOneArg(book->classify, (PyObject *)code);
    if (answer == NULL)
        return -1;
    long kind = PyLong_AsLong(answer);
    Py_DECREF(answer);
    if ((kind == -1 && PyErr_Occurred()) || publish(book, (PyObject *)code) < 0 ||
        book_add(book, (Known){code, NULL, ABOUT_CODE, kind, NULL}) < 0)
        return -1;
    return kind;
}

/* The line of an instruction, the function's first if it has none; -1 with an exception. */
long
book_line(CallBook *book, PyCodeObject *code, long instruction)
{
    Known *found = look_up(book, code, book, instruction);
    if (found != NULL)
        return found->kind;
    long line = PyCode_Addr2Line(code, (int)instruction);
    if (line <= 0)
        line = code->co_firstlineno;
    /* The code was classified, so it is kept already. */
    return book_add(book, (Known){code, book, instruction, line, NULL}) < 0 ? -1 : line;
}

int
book_waits(CallBook *book, PyCodeObject *code, long instruction)
{
    Known *found = look_up(book, code, NULL, instruction);
    if (found != NULL)
        return (int)found->kind;
    PyObject *answer = PyObject_CallFunction(book->waits, "Ol", (PyObject *)code, instruction);
    if (answer == NULL)
        return -1;
    int waits = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    if (waits < 0 || publish(book, (PyObject *)code) < 0 ||
        book_add(book, (Known){code, NULL, instruction, waits, NULL}) < 0)
        return -1;
    return waits;
}

int
book_shows(CallBook *book, PyFrameObject *frame)
{
    PyObject *answer = PyObject_CallOneArg(book->shown, (PyObject *)frame);
    if (answer == NULL)
        return -1;
    int shown = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return shown;
}

PyObject *
book_site(CallBook *book, PyFrameObject *caller, PyCodeObject *caller_code, long instruction, PyCodeObject *code)
{
    Known *found = look_up(book, caller_code, code, instruction);
    if (found != NULL)
        return found->name;
    PyObject *frame = caller != NULL ? (PyObject *)caller : (PyObject *)PyEval_GetFrame();
    PyObject *name = PyObject_CallFunction(book->site, "OlO", frame != NULL ? frame : Py_None, instruction, code);
    if (name == NULL)
        return NULL;
    /* Both code objects were classified, so they are kept already. */
    int failed = publish(book, name) < 0 || book_add(book, (Known){caller_code, code, instruction, 0, name}) < 0;
    Py_DECREF(name); /* `objects` has it */
    return failed ? NULL : name;
}

PyObject *
book_function(CallBook *book, PyObject *function, PyObject *self)
{
    PyMethodDef *method;
    if (PyCFunction_Check(function)) {
        method = ((PyCFunctionObject *)function)->m_ml;
        self = PyCFunction_GET_SELF(function);
    }
    else if (Py_IS_TYPE(function, &PyMethodDescr_Type) && self != NULL)
        method = ((PyMethodDescrObject *)function)->d_method;
    else
        return Py_None;
    PyTypeObject *type = self == NULL || PyModule_Check(self) ? NULL : Py_TYPE(self);
    Known *found = look_up(book, method, type, ABOUT_FUNCTION);
    if (found != NULL)
        return found->name;
    PyObject *name = type == NULL
        ? PyUnicode_FromFormat("<built-in function %s>", method->ml_name)
        : PyUnicode_FromFormat("<built-in method %s of %s object>", method->ml_name, type->tp_name);
    if (name == NULL)
        return NULL;
    PyUnicode_InternInPlace(&name); /* functions of one name are one to the reader */
    int failed = publish(book, name) < 0 || (type != NULL && PyList_Append(book->kept, (PyObject *)type) < 0) ||
                 (type == NULL && PyList_Append(book->kept, function) < 0) ||
                 book_add(book, (Known){method, type, ABOUT_FUNCTION, 0, name}) < 0;
    Py_DECREF(name);
    return failed ? NULL : name;
}

long
last_instruction(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return frame->f_lasti < 0 ? -1 : frame->f_lasti * (long)sizeof(uint16_t); /* of code units */
#endif
}

static int
book_init(CallBook *self, PyObject *args, PyObject *Py_UNUSED(keywords))
{
    PyObject *classify, *shown, *site, *waits, *delegating;
    if (!PyArg_ParseTuple(args, "OOOOO:CallBook", &classify, &shown, &site, &waits, &delegating))
        return -1;
    if (self->objects == NULL && ((self->objects = PyDict_New()) == NULL || (self->kept = PyList_New(0)) == NULL))
        return -1;
    Py_XSETREF(self->classify, Py_NewRef(classify));
    Py_XSETREF(self->shown, Py_NewRef(shown));
    Py_XSETREF(self->site, Py_NewRef(site));
    Py_XSETREF(self->waits, Py_NewRef(waits));
    Py_XSETREF(self->delegating, Py_NewRef(delegating));
    return 0;
}

static int
book_traverse(CallBook *self, visitproc visit, void *arg)
{
    Py_VISIT(self->objects);
    Py_VISIT(self->kept);
    Py_VISIT(self->classify);
    Py_VISIT(self->shown);
    Py_VISIT(self->site);
    Py_VISIT(self->waits);
    Py_VISIT(self->delegating);
    return 0;
}

static int
book_clear(CallBook *self)
{
    PyMem_Free(self->known); /* its entries point to what goes now */
    self->known = NULL;
    self->room = self->used = 0;
    Py_CLEAR(self->objects);
    Py_CLEAR(self->kept);
    Py_CLEAR(self->classify);
    Py_CLEAR(self->shown);
    Py_CLEAR(self->site);
    Py_CLEAR(self->waits);
    Py_CLEAR(self->delegating);
    return 0;
}

static void
book_dealloc(CallBook *self)
{
    PyObject_GC_UnTrack(self);
    book_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef book_members[] = {
    {"objects", T_OBJECT, offsetof(CallBook, objects), READONLY, "what the rows of lanes refer to, by address"},
    {NULL},
};

PyTypeObject CallBookType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.CallBook",
    .tp_basicsize = sizeof(CallBook),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "CallBook(classify, shown, site, waits, delegating): remembers what these functions say.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)book_init,
    .tp_dealloc = (destructor)book_dealloc,
    .tp_traverse = (traverseproc)book_traverse,
    .tp_clear = (inquiry)book_clear,
    .tp_members = book_members,
};

/* -- CallLane ---------------------------------------------------------------------------------------------------- */

int
lane_note(CallLane *lane, void *object, long instruction)
{
    int64_t *row = rows_append(&lane->rows);
    if (row == NULL)
        return -1;
    row[0] = now_ns();
    row[1] = (int64_t)(intptr_t)object;
    row[2] = instruction;
    return 0;
}

int
lane_delegating(CallLane *lane, PyFrameObject *frame)
{
    PyObject *waiting = PyObject_CallOneArg(lane->book->delegating, (PyObject *)frame);
    int failed = waiting == NULL || !PyList_Check(waiting);
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(waiting); i++) {
        PyObject *code;
        long instruction;
        failed = !PyArg_ParseTuple(PyList_GET_ITEM(waiting, i), "O!l", &PyCode_Type, &code, &instruction) ||
                 book_kind(lane->book, (PyCodeObject *)code) < 0 || lane_note(lane, code, DELEGATES - instruction) < 0;
    }
    Py_XDECREF(waiting);
    return failed ? -1 : 0;
}

/* A stand-in begins. */
int
lane_open(CallLane *lane, void *which, PyObject *name)
{
    if (lane->open_count == lane->open_room) {
        Py_ssize_t room = lane->open_room ? 2 * lane->open_room : 16;
        OpenStandIn *open = PyMem_Realloc(lane->open, room * sizeof *open);
        if (open == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        lane->open = open;
        lane->open_room = room;
    }
    lane->open[lane->open_count++] = (OpenStandIn){which, name, 0};
    return lane_note(lane, name, BUILT_IN);
}

/* A stand-in ends, which may be one that was not noted. */
int
lane_close(CallLane *lane, void *which)
{
    if (!lane->open_count || lane->open[lane->open_count - 1].which != which)
        return 0;
    OpenStandIn *top = &lane->open[lane->open_count - 1];
    if (top->again) {
        top->again--;
        return 0;
    }
    lane->open_count--;
    return lane_note(lane, top->name, EXIT);
}

static PyObject *
lane_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(keywords))
{
    PyObject *book;
    if (!PyArg_ParseTuple(args, "O!:CallLane", &CallBookType, &book))
        return NULL;
    if (((CallBook *)book)->site == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the book was not initialised");
        return NULL;
    }
    CallLane *self = (CallLane *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    rows_init(&self->rows, 3);
    self->book = (CallBook *)Py_NewRef(book);
    return (PyObject *)self;
}

static int
lane_traverse(CallLane *self, visitproc visit, void *arg)
{
    Py_VISIT(self->book);
    return 0;
}

static void
lane_dealloc(CallLane *self)
{
    PyObject_GC_UnTrack(self);
    rows_free(&self->rows);
    PyMem_Free(self->open);
    Py_CLEAR(self->book);
    Py_TYPE(self)->tp_free(self);
}

static Py_ssize_t
lane_length(CallLane *self)
{
    return (Py_ssize_t)self->rows.count;
}

static PyObject *
lane_since(CallLane *self, PyObject *argument)
{
    int64_t begin = PyLong_AsLongLong(argument);
    if (begin == -1 && PyErr_Occurred())
        return NULL;
    return rows_columns(&self->rows, begin < 0 ? 0 : begin);
}

static PyObject *
lane_drain(CallLane *self, PyObject *Py_UNUSED(ignored))
{
    /* At once, so that nothing is noted between taking and forgetting. */
    Rows taken = self->rows;
    rows_init(&self->rows, taken.width);
    PyObject *columns = rows_columns(&taken, 0);
    rows_free(&taken);
    return columns;
}

static PyMethodDef lane_methods[] = {
    {"since", (PyCFunction)lane_since, METH_O, "Times, addresses and instructions from this row on."},
    {"drain", (PyCFunction)lane_drain, METH_NOARGS, "Those of all rows, which are forgotten."},
    {NULL},
};

static PySequenceMethods lane_sequence = {.sq_length = (lenfunc)lane_length};

PyTypeObject CallLaneType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.CallLane",
    .tp_basicsize = sizeof(CallLane),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "CallLane(book): the calls of one thread.",
    .tp_new = lane_new,
    .tp_dealloc = (destructor)lane_dealloc,
    .tp_traverse = (traverseproc)lane_traverse,
    .tp_methods = lane_methods,
    .tp_as_sequence = &lane_sequence,
};
