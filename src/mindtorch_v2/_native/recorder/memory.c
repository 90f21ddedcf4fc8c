/* MemoryLog: watches arrays through weak references and notes when they come and go.

   While it rests it notes nothing, but still knows what it has seen: what a recording allocated and a later one sees
   released belongs to both. */
#include "native.h"

#define FIELDS 4 /* time, thread, bytes, identity */

struct MemoryLog;

/* The callback of an array's weak reference; knows the array's size when the array itself is gone. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    struct MemoryLog *log; /* borrowed; NULL once the log has stopped watching */
    int64_t size_bytes;
    uintptr_t identity;
    uintptr_t address; /* of the memory, which is what is noted */
} Block;

typedef struct {
    uintptr_t identity; /* 0 where the entry is free */
    PyObject *reference;
    Block *block;
} Watch;

typedef struct MemoryLog {
    PyObject_HEAD
    Rows rows;
    Watch *watched; /* open addressing with linear probing; a power of two, at most half full */
    size_t room, used;
    long long live_bytes, peak_bytes; /* of all that is watched: now, and the most since it was reset */
    long long allocated_bytes, freed_bytes, allocations, releases; /* since they were reset */
    int resting;
} MemoryLog;

static size_t
home(const MemoryLog *log, uintptr_t identity)
{
    return (size_t)(((uint64_t)identity * 0x9E3779B97F4A7C15u) >> 20) & (log->room - 1);
}

/* Where the array is watched, or the free place where it belongs. */
static Watch *
find(const MemoryLog *log, uintptr_t identity)
{
    size_t i = home(log, identity);
    while (log->watched[i].identity != 0 && log->watched[i].identity != identity)
        i = (i + 1) & (log->room - 1);
    return log->watched + i;
}

static int
enlarge(MemoryLog *log)
{
    size_t before = log->room;
    Watch *old = log->watched, *fresh = PyMem_Calloc(before ? before * 2 : 64, sizeof *fresh);
    if (fresh == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    log->watched = fresh;
    log->room = before ? before * 2 : 64;
    for (size_t i = 0; i < before; i++)
        if (old[i].identity != 0)
            *find(log, old[i].identity) = old[i];
    PyMem_Free(old);
    return 0;
}

/* Free a place and close the gap, so that probing needs no tombstones. */
static void
take_out(MemoryLog *log, Watch *watch)
{
    size_t gap = (size_t)(watch - log->watched), mask = log->room - 1;
    for (size_t i = (gap + 1) & mask; log->watched[i].identity != 0; i = (i + 1) & mask) {
        size_t wanted = home(log, log->watched[i].identity);
        if (((i - wanted) & mask) >= ((i - gap) & mask)) {
            log->watched[gap] = log->watched[i];
            gap = i;
        }
    }
    log->watched[gap] = (Watch){0, NULL, NULL};
    log->used--;
}

static int
note(MemoryLog *log, int64_t size_bytes, uintptr_t identity)
{
    log->live_bytes += size_bytes;
    if (size_bytes > 0) {
        log->allocated_bytes += size_bytes;
        log->allocations++;
        if (log->live_bytes > log->peak_bytes)
            log->peak_bytes = log->live_bytes;
    }
    else {
        log->freed_bytes -= size_bytes;
        log->releases++;
    }
    if (log->resting)
        return 0;
    int64_t *row = rows_append(&log->rows);
    if (row == NULL)
        return -1;
    row[0] = now_ns();
    row[1] = (int64_t)PyThread_get_thread_ident();
    row[2] = size_bytes;
    row[3] = (int64_t)identity;
    return 0;
}

/* -- Block ------------------------------------------------------------------------------------------------------ */

static PyObject *
block_call(PyObject *object, PyObject *const *Py_UNUSED(args), size_t Py_UNUSED(flags), PyObject *Py_UNUSED(names))
{
    Block *self = (Block *)object;
    MemoryLog *log = self->log;
    if (log != NULL) {
        self->log = NULL;
        Watch *watch = find(log, self->identity), held = *watch;
        if (watch->identity != 0 && held.block == self) {
            take_out(log, watch);
            int failed = note(log, -self->size_bytes, self->address);
            /* The caller still holds the reference, and through it this block. */
            Py_DECREF(held.reference);
            Py_DECREF(held.block);
            if (failed)
                return NULL;
        }
    }
    Py_RETURN_NONE;
}

static void
block_dealloc(PyObject *self)
{
    PyObject_Free(self);
}

PyTypeObject BlockType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.Block",
    .tp_basicsize = sizeof(Block),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A watched array.",
    .tp_dealloc = block_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Block, call),
};

/* -- MemoryLog -------------------------------------------------------------------------------------------------- */

static PyObject *
log_allocated(MemoryLog *self, PyObject *object)
{
    if (!PyArray_CheckExact(object))
        Py_RETURN_NONE;
    PyArrayObject *array = (PyArrayObject *)object;
    while (PyArray_BASE(array) != NULL) {
        if (!PyArray_CheckExact(PyArray_BASE(array)))
            Py_RETURN_NONE;
        array = (PyArrayObject *)PyArray_BASE(array);
    }
    int64_t size_bytes = PyArray_NBYTES(array);
    uintptr_t identity = (uintptr_t)array;
    if (size_bytes == 0 || (self->room && find(self, identity)->identity != 0))
        Py_RETURN_NONE;
    Block *block = PyObject_New(Block, &BlockType);
    if (block == NULL)
        return NULL;
    block->call = block_call;
    block->log = NULL;
    block->size_bytes = size_bytes;
    block->identity = identity;
    block->address = (uintptr_t)PyArray_DATA(array);
    /* May run the garbage collector and with it releases and other allocations: the table is asked again after. */
    PyObject *reference = PyWeakref_NewRef((PyObject *)array, (PyObject *)block);
    if (reference == NULL) {
        Py_DECREF(block);
        return NULL;
    }
    if (2 * self->used >= self->room && enlarge(self) < 0)
        goto failed;
    Watch *watch = find(self, identity);
    if (watch->identity != 0) {
        Py_DECREF(reference);
        Py_DECREF(block);
        Py_RETURN_NONE;
    }
    if (note(self, size_bytes, block->address) < 0)
        goto failed;
    *watch = (Watch){identity, reference, block};
    self->used++;
    block->log = self;
    Py_RETURN_NONE;
failed:
    Py_DECREF(reference);
    Py_DECREF(block);
    return NULL;
}

static void
stop_watching(MemoryLog *self)
{
    Watch *watched = self->watched;
    size_t room = self->room;
    self->watched = NULL;
    self->room = self->used = 0;
    self->live_bytes = 0;
    for (size_t i = 0; i < room; i++)
        if (watched[i].identity != 0) {
            watched[i].block->log = NULL;
            Py_DECREF(watched[i].reference);
            Py_DECREF(watched[i].block);
        }
    PyMem_Free(watched);
}

static PyObject *
log_rest(MemoryLog *self, PyObject *Py_UNUSED(ignored))
{
    self->resting = 1;
    rows_free(&self->rows);
    Py_RETURN_NONE;
}

static PyObject *
log_wake(MemoryLog *self, PyObject *Py_UNUSED(ignored))
{
    self->resting = 0;
    Py_RETURN_NONE;
}

static PyObject *
log_reset_peak(MemoryLog *self, PyObject *Py_UNUSED(ignored))
{
    self->peak_bytes = self->live_bytes;
    Py_RETURN_NONE;
}

static PyObject *
log_reset_sums(MemoryLog *self, PyObject *Py_UNUSED(ignored))
{
    self->allocated_bytes = self->freed_bytes = self->allocations = self->releases = 0;
    Py_RETURN_NONE;
}

static PyObject *
log_since(MemoryLog *self, PyObject *argument)
{
    int64_t begin = PyLong_AsLongLong(argument);
    if (begin == -1 && PyErr_Occurred())
        return NULL;
    return rows_columns(&self->rows, begin < 0 ? 0 : begin);
}

static PyObject *
log_drain(MemoryLog *self, PyObject *Py_UNUSED(ignored))
{
    /* At once, so that no other thread appends to what is taken. */
    Rows taken = self->rows;
    rows_init(&self->rows, FIELDS);
    PyObject *columns = rows_columns(&taken, 0);
    rows_free(&taken);
    return columns;
}

static Py_ssize_t
log_length(MemoryLog *self)
{
    return (Py_ssize_t)self->rows.count;
}

static PyObject *
log_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    if (!PyArg_ParseTuple(args, ":MemoryLog"))
        return NULL;
    MemoryLog *self = (MemoryLog *)type->tp_alloc(type, 0);
    if (self != NULL)
        rows_init(&self->rows, FIELDS);
    return (PyObject *)self;
}

static void
log_dealloc(MemoryLog *self)
{
    stop_watching(self);
    rows_free(&self->rows);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef log_methods[] = {
    {"allocated", (PyCFunction)log_allocated, METH_O, "Note that a new tensor owns this array (or a view of a fresh one)."},
    {"since", (PyCFunction)log_since, METH_O, "Four int64 arrays (time, thread, bytes, identity) of the changes from one on."},
    {"drain", (PyCFunction)log_drain, METH_NOARGS, "Four int64 arrays of all changes, which are forgotten."},
    {"rest", (PyCFunction)log_rest, METH_NOARGS, "Forget what was noted and note nothing, but keep watching."},
    {"wake", (PyCFunction)log_wake, METH_NOARGS, "Note again."},
    {"reset_peak", (PyCFunction)log_reset_peak, METH_NOARGS, "Let the peak be what is alive now."},
    {"reset_sums", (PyCFunction)log_reset_sums, METH_NOARGS, "Count from zero what is allocated and freed."},
    {NULL},
};

static PyMemberDef log_members[] = {
    {"live_bytes", T_LONGLONG, offsetof(MemoryLog, live_bytes), READONLY, "what is watched and alive"},
    {"peak_bytes", T_LONGLONG, offsetof(MemoryLog, peak_bytes), READONLY, "the most that was alive"},
    {"allocated_bytes", T_LONGLONG, offsetof(MemoryLog, allocated_bytes), READONLY, "all that was allocated"},
    {"freed_bytes", T_LONGLONG, offsetof(MemoryLog, freed_bytes), READONLY, "all that was freed"},
    {"allocations", T_LONGLONG, offsetof(MemoryLog, allocations), READONLY, "how often memory was allocated"},
    {"releases", T_LONGLONG, offsetof(MemoryLog, releases), READONLY, "how often memory was freed"},
    {NULL},
};

static PySequenceMethods log_sequence = {.sq_length = (lenfunc)log_length};

PyTypeObject MemoryLogType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.MemoryLog",
    .tp_basicsize = sizeof(MemoryLog),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Notes (time, thread, bytes, identity) for every allocation, with negative bytes for releases.",
    .tp_new = log_new,
    .tp_dealloc = (destructor)log_dealloc,
    .tp_methods = log_methods,
    .tp_members = log_members,
    .tp_as_sequence = &log_sequence,
};
