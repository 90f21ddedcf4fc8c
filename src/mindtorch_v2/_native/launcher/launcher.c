/* Queueing small ops on an NPU without Python in between: the twin of `call.py`, `memory.py` and the table's kernels.
 *
 * It speaks the same C interface, through addresses of functions that Python has found. Whatever is not the common case
 * (a profiler watches, an argument of another kind, memory that is not at hand, an error) goes to the Python version,
 * which is the reference: an `Operator`, a `Kernel` and a `Depot` each hold the function that they stand for.
 *
 * All of it runs under the GIL, which is released around the two phases of an operator. Nothing between the look at a
 * depot and the end of the change calls Python, so that a change is never seen half done. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

#define MAX_DIMS 8
#define MAX_ARGUMENTS 20
#define MAX_FLOATS 8
#define MAX_DEVICES 16
#define KNOWN_STREAMS 4

/* ---- what Python tells once ---- */
static struct {
    PyObject *array_type, *watch, *stream_of, *bind;
    Py_ssize_t memory, shape, strides, dtype, offset; /* places of an array's slots */
} told;
static struct { PyObject *dtype; int code, item; bool floating; } dtypes[32];
static int dtype_count;
static int bool_kind; /* place of truth values in `dtypes` */

typedef void *(*CreateTensor)(const int64_t *, uint64_t, int32_t, const int64_t *, int64_t, int32_t, const int64_t *, uint64_t, void *);
typedef void *(*CreateValues)(const void *, uint64_t);
typedef void *(*CreateScalar)(void *, int32_t);
typedef int32_t (*Destroy)(const void *);
enum { O_TENSOR, O_SCALAR, O_INTS, O_BOOLS, O_TENSORS, O_KINDS };
static void *creators[O_KINDS];
static Destroy destroyers[O_KINDS];

static PyObject *slot(PyObject *object, Py_ssize_t at) { return *(PyObject **)((char *)object + at); }

/* ---- this thread's device and streams; Python says when they change ---- */
static uint64_t epoch = 1;
static __thread uint64_t seen_epoch;
static __thread int bound_index = -1;
static __thread void *streams[MAX_DEVICES];

static bool current_stream(int index, void **stream)
{
    if (index < 0 || index >= MAX_DEVICES) return false;
    if (seen_epoch != epoch) {
        memset(streams, 0, sizeof streams);
        seen_epoch = epoch;
    }
    if (!streams[index]) {
        PyObject *found = PyObject_CallFunction(told.stream_of, "i", index);
        PyObject *number = found ? PyObject_GetAttrString(found, "npu_stream") : NULL;
        void *pointer = number ? PyLong_AsVoidPtr(number) : NULL;
        Py_XDECREF(found);
        Py_XDECREF(number);
        if (!pointer) return false;
        streams[index] = pointer;
    }
    *stream = streams[index];
    return true;
}

/* ---- counts of an allocator ---- */
typedef struct {
    PyObject_HEAD
    long long taken, given, peak, bytes_taken, bytes_given, bytes_peak, requested_taken, requested_given, requested_peak;
} Counts;
#define NUMBER(Type, name) {#name, T_LONGLONG, offsetof(Type, name), 0, NULL}
#define OBJECT(Type, name) {#name, T_OBJECT, offsetof(Type, name), 0, NULL}
static PyMemberDef counts_members[] = {
    NUMBER(Counts, taken), NUMBER(Counts, given), NUMBER(Counts, peak), NUMBER(Counts, bytes_taken), NUMBER(Counts, bytes_given),
    NUMBER(Counts, bytes_peak), NUMBER(Counts, requested_taken), NUMBER(Counts, requested_given), NUMBER(Counts, requested_peak), {NULL}};
static PyTypeObject CountsType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._backends.npu._launch.Counts",
    .tp_basicsize = sizeof(Counts), .tp_flags = Py_TPFLAGS_DEFAULT, .tp_new = PyType_GenericNew, .tp_members = counts_members,
    .tp_doc = "Blocks of one pool that tensors have."};

typedef struct {
    PyObject_HEAD
    Counts *pools[2];
    long long peak, bytes_peak, requested_peak, waiting;
} Tally;
static PyMemberDef tally_members[] = {NUMBER(Tally, peak), NUMBER(Tally, bytes_peak), NUMBER(Tally, requested_peak), NUMBER(Tally, waiting), {NULL}};

static PyObject *tally_blocks(Tally *self, void *unused)
{
    (void)unused;
    return PyTuple_Pack(2, self->pools[0], self->pools[1]);
}
static PyGetSetDef tally_getters[] = {{"blocks", (getter)tally_blocks, NULL, "Counts of the small and the large pool.", NULL}, {NULL}};

static PyObject *tally_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    (void)args, (void)named;
    Tally *self = (Tally *)type->tp_alloc(type, 0);
    for (int pool = 0; self && pool < 2; pool++)
        if (!(self->pools[pool] = (Counts *)CountsType.tp_alloc(&CountsType, 0))) Py_CLEAR(self);
    return (PyObject *)self;
}

static void tally_dealloc(Tally *self)
{
    Py_XDECREF(self->pools[0]);
    Py_XDECREF(self->pools[1]);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject TallyType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._backends.npu._launch.Tally",
    .tp_basicsize = sizeof(Tally), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .tp_new = tally_new, .tp_dealloc = (destructor)tally_dealloc,
    .tp_members = tally_members, .tp_getset = tally_getters, .tp_doc = "Counts of both pools, and their peaks."};

static void raise_peak(long long *peak, long long *both, long long mine, long long other)
{
    if (mine > *peak) *peak = mine;
    if (mine + other > *both) *both = mine + other;
}

static void tally_take(Tally *self, int pool, long long size, long long requested)
{
    Counts *mine = self->pools[pool], *other = self->pools[1 - pool];
    mine->taken++;
    mine->bytes_taken += size;
    mine->requested_taken += requested;
    raise_peak(&mine->peak, &self->peak, mine->taken - mine->given, other->taken - other->given);
    raise_peak(&mine->bytes_peak, &self->bytes_peak, mine->bytes_taken - mine->bytes_given, other->bytes_taken - other->bytes_given);
    raise_peak(&mine->requested_peak, &self->requested_peak, mine->requested_taken - mine->requested_given, other->requested_taken - other->requested_given);
}

/* ---- segments and blocks ---- */
typedef struct {
    PyObject_HEAD
    long long address, size, pool, stream, used;
    PyObject *first;
} Segment;
static PyMemberDef segment_members[] = {NUMBER(Segment, address), NUMBER(Segment, size), NUMBER(Segment, pool), NUMBER(Segment, stream), NUMBER(Segment, used),
    OBJECT(Segment, first), {NULL}};
static int segment_traverse(Segment *self, visitproc visit, void *arg) { Py_VISIT(self->first); return 0; }
static int segment_clear(Segment *self) { Py_CLEAR(self->first); return 0; }
static void segment_dealloc(Segment *self)
{
    PyObject_GC_UnTrack(self);
    segment_clear(self);
    Py_TYPE(self)->tp_free(self);
}
static PyTypeObject SegmentType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._backends.npu._launch.Segment",
    .tp_basicsize = sizeof(Segment), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)segment_dealloc, .tp_traverse = (traverseproc)segment_traverse, .tp_clear = (inquiry)segment_clear,
    .tp_members = segment_members, .tp_doc = "A stretch of memory that the runtime gave."};

typedef struct {
    PyObject_HEAD
    long long address, size, requested;
    char free;
    PyObject *segment, *before, *after, *streams;
} Block;
static PyMemberDef block_members[] = {NUMBER(Block, address), NUMBER(Block, size), NUMBER(Block, requested), {"free", T_BOOL, offsetof(Block, free), 0, NULL},
    OBJECT(Block, segment), OBJECT(Block, before), OBJECT(Block, after), OBJECT(Block, streams), {NULL}};
static int block_traverse(Block *self, visitproc visit, void *arg)
{
    Py_VISIT(self->segment);
    Py_VISIT(self->before);
    Py_VISIT(self->after);
    Py_VISIT(self->streams);
    return 0;
}
static int block_clear(Block *self)
{
    Py_CLEAR(self->segment);
    Py_CLEAR(self->before);
    Py_CLEAR(self->after);
    Py_CLEAR(self->streams);
    return 0;
}
static void block_dealloc(Block *self)
{
    PyObject_GC_UnTrack(self);
    block_clear(self);
    Py_TYPE(self)->tp_free(self);
}
static PyTypeObject BlockType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._backends.npu._launch.Block",
    .tp_basicsize = sizeof(Block), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)block_dealloc, .tp_traverse = (traverseproc)block_traverse, .tp_clear = (inquiry)block_clear,
    .tp_members = block_members, .tp_doc = "A part of a segment."};

static bool absent(const PyObject *object) { return !object || object == Py_None; }

/* ---- an allocator, and the memory that it hands out ---- */
typedef struct {
    PyObject_HEAD
    long long busy, index; /* busy: how many are inside the Python version, which may be half way through a change */
    PyObject *returned, *watch, *statistics, *where;
    struct { long long stream; PyObject *recent[2]; } known[KNOWN_STREAMS];
} Depot;
static PyMemberDef depot_members[] = {NUMBER(Depot, busy), NUMBER(Depot, index), OBJECT(Depot, returned), OBJECT(Depot, watch), OBJECT(Depot, statistics),
    OBJECT(Depot, where), {NULL}};

typedef struct {
    PyObject_HEAD
    PyObject *device, *block, *depot, *weak;
    long long pointer, nbytes;
} Memory;
static PyTypeObject MemoryType, DepotType;

static PyObject **shelf(Depot *self, long long stream, int pool)
{
    for (int k = 0; k < KNOWN_STREAMS; k++)
        if (self->known[k].stream == stream && self->known[k].recent[pool]) return &self->known[k].recent[pool];
    return NULL;
}

static bool settled(const Depot *self) /* no half-done change, no observer, nothing waits */
{
    return !self->busy && absent(self->watch) && self->statistics && PyObject_TypeCheck(self->statistics, &TallyType)
        && !((Tally *)self->statistics)->waiting;
}

static PyObject *depot_take_now(Depot *self, long long nbytes, long long stream)
{
    long long size = (nbytes + 32 + 511) / 512 * 512;
    int pool = size > 1 << 20;
    PyObject **recent;
    if (!settled(self) || !self->returned || PyObject_Size(self->returned) || !(recent = shelf(self, stream, pool))) goto slowly;
    PyObject *key = PyLong_FromLongLong(size);
    if (!key) return NULL;
    PyObject *list = PyDict_GetItemWithError(*recent, key);
    Py_DECREF(key);
    if (!list || !PyList_CheckExact(list) || !PyList_GET_SIZE(list)) goto slowly;
    Memory *made = (Memory *)MemoryType.tp_alloc(&MemoryType, 0); /* has no part in garbage collection, so that none runs here */
    if (!made) return NULL;
    Py_ssize_t last = PyList_GET_SIZE(list) - 1;
    Block *block = (Block *)PyList_GET_ITEM(list, last);
    Py_INCREF(block);
    if (PyList_SetSlice(list, last, last + 1, NULL) < 0) {
        Py_DECREF(block);
        Py_DECREF(made);
        return NULL;
    }
    block->free = 0;
    block->requested = nbytes;
    ((Segment *)block->segment)->used++;
    tally_take((Tally *)self->statistics, pool, block->size, nbytes);
    made->block = (PyObject *)block;
    made->depot = Py_NewRef((PyObject *)self);
    made->device = Py_NewRef(self->where);
    made->pointer = block->address;
    made->nbytes = nbytes;
    return (PyObject *)made;
slowly:
    if (PyErr_Occurred()) return NULL;
    return PyObject_CallMethod((PyObject *)self, "take_slowly", "LL", nbytes, stream);
}

static PyObject *depot_take(Depot *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) return PyErr_Format(PyExc_TypeError, "take(nbytes, stream)");
    long long nbytes = PyLong_AsLongLong(args[0]), stream = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred()) return NULL;
    return depot_take_now(self, nbytes, stream);
}

static PyObject *depot_know(Depot *self, PyObject *args)
{
    long long stream;
    int pool;
    PyObject *recent;
    if (!PyArg_ParseTuple(args, "LiO!", &stream, &pool, &PyDict_Type, &recent)) return NULL;
    for (int k = 0; k < KNOWN_STREAMS; k++)
        if (self->known[k].stream == stream || (!self->known[k].recent[0] && !self->known[k].recent[1])) {
            self->known[k].stream = stream;
            Py_XSETREF(self->known[k].recent[pool != 0], Py_NewRef(recent));
            break;
        }
    Py_RETURN_NONE;
}

static PyMethodDef depot_methods[] = {
    {"take", (PyCFunction)(void (*)(void))depot_take, METH_FASTCALL, "Memory for a tensor whose work is on a stream."},
    {"know", (PyCFunction)depot_know, METH_VARARGS, "The blocks by size that were given back last, of a stream and pool."}, {NULL}};

static void depot_dealloc(Depot *self)
{
    for (int k = 0; k < KNOWN_STREAMS; k++) {
        Py_XDECREF(self->known[k].recent[0]);
        Py_XDECREF(self->known[k].recent[1]);
    }
    Py_XDECREF(self->returned);
    Py_XDECREF(self->watch);
    Py_XDECREF(self->statistics);
    Py_XDECREF(self->where);
    Py_TYPE(self)->tp_free(self);
}
static PyTypeObject DepotType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._backends.npu._launch.Depot",
    .tp_basicsize = sizeof(Depot), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .tp_new = PyType_GenericNew, .tp_dealloc = (destructor)depot_dealloc,
    .tp_members = depot_members, .tp_methods = depot_methods, .tp_doc = "The memory of one device, as far as it is at hand."};

static PyMemberDef memory_members[] = {OBJECT(Memory, device), {"_block", T_OBJECT, offsetof(Memory, block), READONLY, NULL},
    {"_allocator", T_OBJECT, offsetof(Memory, depot), READONLY, NULL}, NUMBER(Memory, pointer), NUMBER(Memory, nbytes), {NULL}};

static PyObject *memory_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *where, *block, *depot;
    long long nbytes;
    (void)named;
    if (!PyArg_ParseTuple(args, "OO!LO!", &where, &BlockType, &block, &nbytes, &DepotType, &depot)) return NULL;
    Memory *self = (Memory *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->device = Py_NewRef(where);
    self->block = Py_NewRef(block);
    self->depot = Py_NewRef(depot);
    self->pointer = ((Block *)block)->address;
    self->nbytes = nbytes;
    return (PyObject *)self;
}

static void memory_give_back(Memory *self)
{
    Depot *depot = (Depot *)self->depot;
    Block *block = (Block *)self->block;
    Segment *segment = (Segment *)block->segment;
    PyObject **recent;
    if (settled(depot) && absent(block->streams) && segment && (recent = shelf(depot, segment->stream, (int)segment->pool))) {
        PyObject *key = PyLong_FromLongLong(block->size), *list = key ? PyDict_GetItemWithError(*recent, key) : NULL;
        Py_XDECREF(key);
        if (list && PyList_CheckExact(list) && PyList_Append(list, (PyObject *)block) == 0) {
            Counts *counts = ((Tally *)depot->statistics)->pools[segment->pool != 0];
            counts->given++;
            counts->bytes_given += block->size;
            counts->requested_given += block->requested;
            block->free = 1;
            segment->used--;
            return;
        }
        PyErr_Clear();
    }
    PyObject *done = PyObject_CallMethod((PyObject *)depot, "give_back", "O", block);
    if (!done) PyErr_WriteUnraisable((PyObject *)depot);
    Py_XDECREF(done);
}

static void memory_dealloc(Memory *self)
{
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (self->block && self->depot) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        memory_give_back(self);
        PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(self->device);
    Py_XDECREF(self->block);
    Py_XDECREF(self->depot);
    Py_TYPE(self)->tp_free(self);
}
static PyTypeObject MemoryType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._backends.npu._launch.Memory",
    .tp_basicsize = sizeof(Memory), .tp_flags = Py_TPFLAGS_DEFAULT, .tp_new = memory_new, .tp_dealloc = (destructor)memory_dealloc,
    .tp_members = memory_members, .tp_weaklistoffset = offsetof(Memory, weak), .tp_doc = "A block that a tensor has, given back when the last array on it is gone."};

/* ---- arrays ---- */
typedef struct {
    Memory *memory;
    PyObject *shape, *strides;
    int nd, code, item, kind; /* kind: place in `dtypes` */
    bool row_major;
    int64_t dims[MAX_DIMS], steps[MAX_DIMS], offset, extent, count;
} Described;

static bool read_numbers(PyObject *tuple, int64_t *to, Py_ssize_t count)
{
    for (Py_ssize_t k = 0; k < count; k++) {
        to[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, k));
        if (to[k] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

static bool describe(PyObject *array, Described *to)
{
    if ((PyObject *)Py_TYPE(array) != told.array_type) return false;
    PyObject *memory = slot(array, told.memory), *dtype = slot(array, told.dtype);
    to->shape = slot(array, told.shape);
    to->strides = slot(array, told.strides);
    if (!memory || Py_TYPE(memory) != &MemoryType || !PyTuple_CheckExact(to->shape) || !PyTuple_CheckExact(to->strides)) return false;
    to->memory = (Memory *)memory;
    for (to->kind = 0; to->kind < dtype_count && dtypes[to->kind].dtype != dtype; to->kind++) continue;
    if (to->kind == dtype_count) return false;
    to->code = dtypes[to->kind].code;
    to->item = dtypes[to->kind].item;
    Py_ssize_t nd = PyTuple_GET_SIZE(to->shape);
    if (nd > MAX_DIMS || PyTuple_GET_SIZE(to->strides) != nd) return false;
    to->nd = (int)nd;
    if (!read_numbers(to->shape, to->dims, nd) || !read_numbers(to->strides, to->steps, nd)) return false;
    int64_t offset = PyLong_AsLongLong(slot(array, told.offset));
    if (offset % to->item) return false;
    to->offset = offset / to->item;
    to->extent = to->memory->nbytes / to->item;
    to->count = 1;
    to->row_major = true;
    for (int k = (int)nd - 1; k >= 0; k--) {
        if (to->steps[k] % to->item) return false;
        to->steps[k] /= to->item;
        if (to->dims[k] != 1 && to->steps[k] != to->count) to->row_major = false;
        to->count *= to->dims[k];
    }
    return true;
}

static void *make_tensor(const Described *d)
{
    int format = d->nd == 3 ? 47 : d->nd == 4 ? 0 : d->nd == 5 ? 30 : 2;
    return ((CreateTensor)creators[O_TENSOR])(d->nd ? d->dims : NULL, (uint64_t)d->nd, d->code, d->nd ? d->steps : NULL, d->offset, format, &d->extent, 1,
                                              (void *)(uintptr_t)d->memory->pointer);
}

static void *make_scalar(PyObject *value)
{
    PyObject *plain = NULL;
    if (!PyLong_Check(value) && !PyFloat_Check(value)) { /* an array of the host without dimensions */
        plain = PyObject_CallMethod(value, "item", NULL);
        if (!plain) {
            PyErr_Clear();
            return NULL;
        }
        value = plain;
    }
    void *made = NULL;
    if (PyBool_Check(value)) {
        bool b = value == Py_True;
        made = ((CreateScalar)creators[O_SCALAR])(&b, 12);
    } else if (PyLong_Check(value)) {
        int64_t i = PyLong_AsLongLong(value);
        if (i == -1 && PyErr_Occurred()) PyErr_Clear();
        else made = ((CreateScalar)creators[O_SCALAR])(&i, 9);
    } else if (PyFloat_Check(value)) {
        double d = PyFloat_AS_DOUBLE(value);
        made = ((CreateScalar)creators[O_SCALAR])(&d, 11);
    }
    Py_XDECREF(plain);
    return made;
}

static PyObject *new_array(Memory *memory, PyObject *shape, PyObject *strides, PyObject *dtype) /* takes the memory */
{
    PyTypeObject *type = (PyTypeObject *)told.array_type;
    PyObject *made = type->tp_alloc(type, 0);
    if (!made) {
        Py_DECREF(memory);
        return NULL;
    }
    *(PyObject **)((char *)made + told.memory) = (PyObject *)memory;
    *(PyObject **)((char *)made + told.shape) = Py_NewRef(shape);
    *(PyObject **)((char *)made + told.strides) = Py_NewRef(strides);
    *(PyObject **)((char *)made + told.dtype) = Py_NewRef(dtype);
    *(PyObject **)((char *)made + told.offset) = PyLong_FromLong(0);
    return made;
}

/* ---- operators ---- */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *python, *failed, *name;
    void *plan, *run;
    int count, place; /* place: the argument that gives its device */
    char words[MAX_ARGUMENTS + 1];
} Operator;

/* Integers and pointers are passed in one row of registers, floating numbers in another, on x86-64 and on aarch64 alike;
 * what is left over of the first goes to the stack in order. So one prototype with all integers first serves them all,
 * and arguments beyond those that a function has are not seen by it. */
typedef int64_t N;
typedef int32_t (*Plan)(N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, double, double, double, double, double, double, double, double);
typedef int32_t (*Run)(void *, uint64_t, void *, void *);
#if defined(__x86_64__) || defined(__aarch64__)
#define ONE_PROTOTYPE 1
#else
#define ONE_PROTOTYPE 0
#endif

typedef struct { int count; struct { void *object; int kind; } made[MAX_ARGUMENTS]; } Made;

static void let_go(const Made *made)
{
    for (int k = 0; k < made->count; k++) destroyers[made->made[k].kind](made->made[k].object);
}

static bool keep(Made *made, void *object, int kind, N *to)
{
    if (!object) return false;
    made->made[made->count].object = object;
    made->made[made->count++].kind = kind;
    *to = (N)(uintptr_t)object;
    return true;
}

static bool make_list(PyObject *sequence, Made *made, N *to, Memory **first)
{
    if (!PyList_CheckExact(sequence) && !PyTuple_CheckExact(sequence)) return false;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    void *few[64], **members = count <= 64 ? few : PyMem_Malloc((size_t)count * sizeof *members);
    Py_ssize_t k = 0;
    Described d;
    for (; members && k < count; k++) {
        if (!describe(PySequence_Fast_GET_ITEM(sequence, k), &d) || !(members[k] = make_tensor(&d))) break;
        if (!k) *first = d.memory;
    }
    void *list = members && count && k == count ? ((CreateValues)creators[O_TENSORS])(members, (uint64_t)count) : NULL;
    if (!list && members) while (k--) destroyers[O_TENSOR](members[k]);
    if (members != few) PyMem_Free(members);
    return keep(made, list, O_TENSORS, to);
}

static bool make_values(PyObject *sequence, bool truth, Made *made, N *to)
{
    int64_t numbers[64];
    bool truths[64];
    if (!PyList_CheckExact(sequence) && !PyTuple_CheckExact(sequence)) return false;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    if (count > 64) return false;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *one = PySequence_Fast_GET_ITEM(sequence, k);
        if (!PyLong_Check(one)) return false;
        numbers[k] = PyLong_AsLongLong(one);
        truths[k] = numbers[k] != 0;
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    void *array = ((CreateValues)creators[truth ? O_BOOLS : O_INTS])(truth ? (const void *)truths : numbers, (uint64_t)count);
    return keep(made, array, truth ? O_BOOLS : O_INTS, to);
}

/* Both phases. The result is 1 if it is done, 0 if Python has to do it, -1 with an exception, -2 with that of a plan.
 * `known` is NULL, or has the descriptions of the arguments that are arrays. */
static int launch(Operator *op, PyObject *const *args, const Described *const *known)
{
    N numbers[22] = {0};
    double reals[MAX_FLOATS] = {0};
    int integers = 0, floats = 0, answer = 0;
    Made made;
    Described fresh;
    Memory *where = NULL, *member = NULL;
    made.count = 0;
    for (int k = 0; k < op->count; k++) {
        PyObject *arg = args[k];
        N *to = &numbers[integers];
        switch (op->words[k]) {
        case 't':
            if (arg == Py_None) { *to = 0; integers++; break; }
            /* fall through */
        case 'T': {
            const Described *d = known ? known[k] : NULL;
            if (!d && describe(arg, &fresh)) d = &fresh;
            if (!d || !keep(&made, make_tensor(d), O_TENSOR, to)) goto done;
            integers++;
            if (k == op->place) where = d->memory;
            break;
        }
        case 'L':
            if (!make_list(arg, &made, to, &member)) goto done;
            integers++;
            if (k == op->place) where = member;
            break;
        case 'S':
            if (!keep(&made, make_scalar(arg), O_SCALAR, to)) goto done;
            integers++;
            break;
        case 'I': case 'B':
            if (arg == Py_None) *to = 0;
            else if (!make_values(arg, op->words[k] == 'B', &made, to)) goto done;
            integers++;
            break;
        case 'i':
            if (!PyLong_Check(arg)) goto done;
            *to = PyLong_AsLongLong(arg);
            if (*to == -1 && PyErr_Occurred()) { /* of a type without sign */
                PyErr_Clear();
                *to = (N)PyLong_AsUnsignedLongLong(arg);
                if (PyErr_Occurred()) { PyErr_Clear(); goto done; }
            }
            integers++;
            break;
        case 'c':
            if (!PyUnicode_Check(arg) || !(*to = (N)(uintptr_t)PyUnicode_AsUTF8(arg))) { PyErr_Clear(); goto done; }
            integers++;
            break;
        case 'd': case 'f': {
            double value = PyFloat_AsDouble(arg);
            if (value == -1 && PyErr_Occurred()) { PyErr_Clear(); goto done; }
            if (op->words[k] == 'f') { /* the lower half of a register */
                float half = (float)value;
                memset(&value, 0, sizeof value);
                memcpy(&value, &half, sizeof half);
            }
            reals[floats++] = value;
            break;
        }
        default:
            goto done;
        }
    }
    if (!where) goto done;
    int index = (int)((Depot *)where->depot)->index;
    void *stream;
    if (bound_index != index) {
        PyObject *bound = PyObject_CallFunction(told.bind, "i", index);
        Py_XDECREF(bound);
        if (!bound) { answer = -1; goto done; }
    }
    if (!current_stream(index, &stream)) { answer = PyErr_Occurred() ? -1 : 0; goto done; }
    uint64_t size = 0;
    void *executor = NULL;
    numbers[integers++] = (N)(uintptr_t)&size;
    numbers[integers++] = (N)(uintptr_t)&executor;
    const N *n = numbers;
    const double *r = reals;
    int32_t code;
    bool planned = false;
    PyThreadState *thread = PyEval_SaveThread();
    code = ((Plan)op->plan)(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15], n[16], n[17], n[18], n[19],
                            n[20], n[21], r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]);
    if (code == 0 && !size) {
        planned = true;
        code = ((Run)op->run)(NULL, 0, executor, stream);
    }
    PyEval_RestoreThread(thread);
    if (code == 0 && size) {
        /* It is freed at once: its next user is queued later on the same stream. */
        PyObject *workspace = depot_take_now((Depot *)where->depot, (long long)size, (long long)(uintptr_t)stream);
        if (!workspace) { answer = -1; goto done; }
        long long pointer = 0;
        PyObject *number = PyObject_GetAttrString(workspace, "pointer");
        if (number) pointer = PyLong_AsLongLong(number);
        Py_XDECREF(number);
        planned = true;
        thread = PyEval_SaveThread();
        code = ((Run)op->run)((void *)(uintptr_t)pointer, size, executor, stream);
        PyEval_RestoreThread(thread);
        Py_DECREF(workspace);
    }
    answer = 1;
    if (code) { /* asked at once: the library keeps the text of the last error only */
        PyObject *raised = PyObject_CallFunction(op->failed, "Oii", op->name, planned, code);
        Py_XDECREF(raised);
        answer = planned ? -1 : -2;
    }
done:
    let_go(&made);
    return answer;
}

static bool watched(void) { return PyList_GET_ITEM(told.watch, 0) != Py_None; }

static PyObject *operator_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    Operator *self = (Operator *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (!names && count == self->count && !watched()) {
        int done = launch(self, args, NULL);
        if (done < 0) return NULL;
        if (done) Py_RETURN_NONE;
    }
    return PyObject_Vectorcall(self->python, args, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
}

static void operator_dealloc(Operator *self)
{
    Py_XDECREF(self->python);
    Py_XDECREF(self->failed);
    Py_XDECREF(self->name);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *operator_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *python, *failed, *name;
    const char *words;
    unsigned long long plan, run;
    int place;
    (void)named;
    if (!PyArg_ParseTuple(args, "UsKKiOO", &name, &words, &plan, &run, &place, &python, &failed)) return NULL;
    if (strlen(words) > MAX_ARGUMENTS) return PyErr_Format(PyExc_ValueError, "an operator of more than %d arguments", MAX_ARGUMENTS);
    Operator *self = (Operator *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->call = operator_call;
    self->name = Py_NewRef(name);
    self->python = Py_NewRef(python);
    self->failed = Py_NewRef(failed);
    self->plan = (void *)(uintptr_t)plan;
    self->run = (void *)(uintptr_t)run;
    self->count = (int)strlen(words);
    self->place = place;
    strcpy(self->words, words);
    return (PyObject *)self;
}

static PyMemberDef operator_members[] = {{"python", T_OBJECT, offsetof(Operator, python), READONLY, NULL},
    {"plan", T_ULONGLONG, offsetof(Operator, plan), 0, NULL}, {"run", T_ULONGLONG, offsetof(Operator, run), 0, NULL}, {NULL}};
static PyTypeObject OperatorType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._backends.npu._launch.Operator",
    .tp_basicsize = sizeof(Operator), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, .tp_new = operator_new, .tp_dealloc = (destructor)operator_dealloc,
    .tp_call = PyVectorcall_Call, .tp_vectorcall_offset = offsetof(Operator, call), .tp_members = operator_members,
    .tp_doc = "Operator(name, words, plan, run, place, python, failed): both phases of an operator."};

/* ---- kernels: a line of the table ---- */
enum { OUT_ARRAY = 100, CONSTANT = 200 }; /* in templates; smaller numbers are the op's arguments */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *python;
    Operator *operators[2]; /* the second is for a number in the place of an array */
    PyObject *constants;
    int count, second; /* arguments of the op; which of them may be a number */
    int result;        /* 0 in place, 1 like the first, 2 truth values */
    int template[2][MAX_ARGUMENTS];
    bool is_array[MAX_ARGUMENTS];
} Kernel;

static PyObject *kernel_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    Kernel *self = (Kernel *)object;
    Described described[MAX_ARGUMENTS], made;
    const Described *of[MAX_ARGUMENTS], *first = NULL; /* of: those of the op's arguments */
    int by_number = 0;
    if (names || PyVectorcall_NARGS(flags) != self->count || watched()) goto python;
    for (int k = 0; k < self->count; k++) {
        if (!self->is_array[k]) continue;
        if (k == self->second && self->operators[1] && (PyObject *)Py_TYPE(args[k]) != told.array_type) {
            by_number = 1; /* an array of the host without dimensions, or Python says what is wrong with it */
            continue;
        }
        if (first && args[k] == args[0] && self->is_array[0]) {
            of[k] = of[0];
            continue;
        }
        Described *now = &described[k];
        of[k] = now;
        if (!describe(args[k], now) || !now->row_major || !now->count || !dtypes[now->kind].floating) goto python;
        if (first && (now->memory->depot != first->memory->depot || now->kind != first->kind || now->nd != first->nd
                      || memcmp(now->dims, first->dims, (size_t)first->nd * sizeof *first->dims))) goto python;
        if (!first) first = now;
    }
    if (!first) goto python;
    PyObject *out = NULL;
    if (self->result) {
        Depot *depot = (Depot *)first->memory->depot;
        void *stream;
        PyObject *strides = first->strides;
        if (bound_index != depot->index || !current_stream((int)depot->index, &stream)) {
            if (PyErr_Occurred()) return NULL;
            goto python;
        }
        made.nd = first->nd;
        made.kind = first->kind;
        if (self->result == 2) {
            made.kind = bool_kind;
            if (!(strides = PyTuple_New(first->nd))) return NULL;
        } else Py_INCREF(strides);
        int64_t step = 1;
        for (int k = first->nd - 1; k >= 0; k--) {
            made.dims[k] = first->dims[k];
            made.steps[k] = self->result == 2 ? step : first->steps[k]; /* of a dimension of one, any step will do */
            if (self->result == 2) PyTuple_SET_ITEM(strides, k, PyLong_FromLongLong(step));
            step *= first->dims[k];
        }
        made.code = dtypes[made.kind].code;
        made.item = dtypes[made.kind].item;
        made.offset = 0;
        made.extent = first->count;
        PyObject *memory = depot_take_now(depot, first->count * made.item, (long long)(uintptr_t)stream);
        made.memory = (Memory *)memory;
        out = memory ? new_array(made.memory, first->shape, strides, dtypes[made.kind].dtype) : NULL;
        Py_DECREF(strides);
        if (!out) return NULL;
    }
    PyObject *given[MAX_ARGUMENTS];
    const Described *known[MAX_ARGUMENTS];
    Operator *op = self->operators[by_number];
    for (int k = 0; k < op->count; k++) {
        int from = self->template[by_number][k];
        known[k] = NULL;
        if (from == OUT_ARRAY) {
            given[k] = out;
            known[k] = &made;
        } else if (from >= CONSTANT) given[k] = PyTuple_GET_ITEM(self->constants, from - CONSTANT);
        else {
            given[k] = args[from];
            if (self->is_array[from] && !(by_number && from == self->second)) known[k] = of[from];
        }
    }
    int done = launch(op, given, known);
    if (done == 1) return out ? out : Py_NewRef(args[0]);
    Py_XDECREF(out);
    if (done == -1) return NULL;
    if (done == -2) PyErr_Clear(); /* nothing is queued; Python is refused in the same way, and finds PyTorch's words */
python:
    return PyObject_Vectorcall(self->python, args, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
}

static void kernel_dealloc(Kernel *self)
{
    Py_XDECREF(self->python);
    Py_XDECREF(self->constants);
    Py_XDECREF(self->operators[0]);
    Py_XDECREF(self->operators[1]);
    Py_TYPE(self)->tp_free(self);
}

static bool read_template(PyObject *given, int *to, int count)
{
    if (PyTuple_GET_SIZE(given) != count) return false;
    for (int k = 0; k < count; k++) to[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(given, k));
    return !PyErr_Occurred();
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *python, *arrays, *first, *first_template, *second, *second_template, *constants;
    int result, place;
    (void)named;
    if (!PyArg_ParseTuple(args, "OO!iiO!O!OO!O!", &python, &PyTuple_Type, &arrays, &result, &place, &OperatorType, &first, &PyTuple_Type, &first_template, &second,
                          &PyTuple_Type, &second_template, &PyTuple_Type, &constants)) return NULL;
    Kernel *self = (Kernel *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->call = kernel_call;
    self->python = Py_NewRef(python);
    self->constants = Py_NewRef(constants);
    self->operators[0] = (Operator *)Py_NewRef(first);
    self->operators[1] = second == Py_None ? NULL : (Operator *)Py_NewRef(second);
    self->result = result;
    self->second = place;
    self->count = (int)PyTuple_GET_SIZE(arrays);
    bool good = self->count <= MAX_ARGUMENTS && read_template(first_template, self->template[0], self->operators[0]->count)
        && (!self->operators[1] || read_template(second_template, self->template[1], self->operators[1]->count));
    if (!good) {
        Py_DECREF(self);
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "a kernel whose arguments are not its operator's");
    }
    for (int k = 0; k < self->count; k++) self->is_array[k] = PyObject_IsTrue(PyTuple_GET_ITEM(arrays, k));
    return (PyObject *)self;
}

static PyMemberDef kernel_members[] = {{"python", T_OBJECT, offsetof(Kernel, python), READONLY, NULL}, {NULL}};
static PyTypeObject KernelType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._backends.npu._launch.Kernel",
    .tp_basicsize = sizeof(Kernel), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, .tp_new = kernel_new, .tp_dealloc = (destructor)kernel_dealloc,
    .tp_call = PyVectorcall_Call, .tp_vectorcall_offset = offsetof(Kernel, call), .tp_members = kernel_members,
    .tp_doc = "Kernel(python, arrays, result, second, operator, template, by_number, template, constants): a line of the table."};

/* ---- what Python calls ---- */
static PyObject *tell(PyObject *module, PyObject *args)
{
    PyObject *array_type, *watch, *stream_of, *bind, *kinds, *places;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!OOO!O!", &PyType_Type, &array_type, &PyList_Type, &watch, &stream_of, &bind, &PyList_Type, &kinds, &PyTuple_Type, &places)) return NULL;
    Py_ssize_t *to[] = {&told.memory, &told.shape, &told.strides, &told.dtype, &told.offset};
    for (int k = 0; k < 5; k++) {
        PyObject *descriptor = PyTuple_GetItem(places, k);
        if (!descriptor || Py_TYPE(descriptor) != &PyMemberDescr_Type) return PyErr_Format(PyExc_TypeError, "arrays have slots");
        *to[k] = ((PyMemberDescrObject *)descriptor)->d_member->offset;
    }
    dtype_count = 0;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(kinds) && k < 32; k++) {
        PyObject *dtype;
        int code, item, floating;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(kinds, k), "Oiip", &dtype, &code, &item, &floating)) return NULL;
        dtypes[dtype_count].dtype = Py_NewRef(dtype);
        dtypes[dtype_count].code = code;
        dtypes[dtype_count].item = item;
        dtypes[dtype_count++].floating = floating;
        if (code == 12) bool_kind = dtype_count - 1;
    }
    Py_XSETREF(told.array_type, Py_NewRef(array_type));
    Py_XSETREF(told.watch, Py_NewRef(watch));
    Py_XSETREF(told.stream_of, Py_NewRef(stream_of));
    Py_XSETREF(told.bind, Py_NewRef(bind));
    Py_RETURN_NONE;
}

static PyObject *objects(PyObject *module, PyObject *args)
{
    unsigned long long create[O_KINDS], destroy[O_KINDS];
    (void)module;
    if (!PyArg_ParseTuple(args, "KKKKKKKKKK", create, create + 1, create + 2, create + 3, create + 4, destroy, destroy + 1, destroy + 2, destroy + 3, destroy + 4)) return NULL;
    for (int k = 0; k < O_KINDS; k++) {
        creators[k] = (void *)(uintptr_t)create[k];
        destroyers[k] = (Destroy)(uintptr_t)destroy[k];
    }
    Py_RETURN_NONE;
}

static PyObject *bound(PyObject *module, PyObject *index)
{
    (void)module;
    bound_index = (int)PyLong_AsLong(index);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *streams_changed(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    epoch++;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"tell", tell, METH_VARARGS, "tell(array_type, watch, stream_of, bind, dtypes, slots): what arrays are, and whom to ask."},
    {"objects", objects, METH_VARARGS, "Addresses of the functions that make descriptions, then of those that destroy them."},
    {"bound", bound, METH_O, "The device that this thread's calls go to."},
    {"streams_changed", streams_changed, METH_NOARGS, "A thread's current stream is another."}, {NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_launch", .m_size = -1, .m_methods = methods,
    .m_doc = "Queueing small ops without Python in between."};

PyMODINIT_FUNC PyInit__launch(void)
{
    if (!ONE_PROTOTYPE) {
        PyErr_SetString(PyExc_ImportError, "how this processor passes arguments is not known here");
        return NULL;
    }
    PyObject *module = PyModule_Create(&definition);
    static struct { const char *name; PyTypeObject *type; } types[] = {{"Counts", &CountsType}, {"Tally", &TallyType}, {"Segment", &SegmentType},
        {"Block", &BlockType}, {"Depot", &DepotType}, {"Memory", &MemoryType}, {"Operator", &OperatorType}, {"Kernel", &KernelType}};
    for (size_t k = 0; module && k < sizeof types / sizeof *types; k++)
        if (PyModule_AddType(module, types[k].type) < 0) Py_CLEAR(module);
    return module;
}
