/* Describer: a cache in front of the Python describer of an op.
 *
 * Arguments are written as words into a key: equal keys mean arguments that Python's key holds equal too. A key seen
 * before yields its number at once. A new one gets a description here if that is one of the arguments as they are; all
 * else is left to the Python function.
 */
#include "native.h"

#define MOST_WORDS 1024    /* longer argument lists are not remembered */
#define MOST_ENTRIES 65536 /* per op */
#define MOST_PINS 256

enum { NONE = 1, FALSE_, TRUE_, INTEGER, FLOAT, COMPLEX, TEXT, TENSOR, SEQUENCE, OBJECT };

static PyTypeObject *tensor_type;
static PyObject *descriptions;   /* the list that numbers are positions in, or NULL */
static PyObject *constant_types; /* classes of immutable values that are distinguished by identity */
static Py_ssize_t array_offset;
/* Objects whose address is part of a key. They are kept alive, or another object could get the address. */
static PyObject *pins;

PyObject *
native_set_tensor(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *type, *constants, *list = NULL;
    if (!PyArg_ParseTuple(args, "O!O!|O!:set_tensor", &PyType_Type, &type, &PyTuple_Type, &constants, &PyList_Type, &list))
        return NULL;
    Py_ssize_t offset = slot_offset(type, "_a");
    if (offset < 0 || (pins == NULL && (pins = PyDict_New()) == NULL))
        return NULL;
    array_offset = offset;
    Py_INCREF(type);
    Py_XSETREF(tensor_type, (PyTypeObject *)type);
    Py_INCREF(constants);
    Py_XSETREF(constant_types, constants);
    Py_XINCREF(list);
    Py_XSETREF(descriptions, list);
    Py_RETURN_NONE;
}

/* An array, or the one of a tensor on the CPU; NULL, without an exception, for anything else. */
PyArrayObject *
array_of(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyArray_Type)
        return (PyArrayObject *)value;
    if (tensor_type == NULL || !(type == tensor_type || PyType_IsSubtype(type, tensor_type)))
        return NULL;
    PyObject *object = slot(value, array_offset);
    return object != NULL && PyArray_CheckExact(object) ? (PyArrayObject *)object : NULL;
}

/* What may be an array that is not NumPy's: that of a tensor elsewhere, or an object that is neither a tensor nor one of
 * the values that ops are given; NULL, without an exception, for anything else. Borrowed. */
PyObject *
other_array_of(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyUnicode_Type || type == &PyArray_Type || tensor_type == NULL)
        return NULL;
    if (type != tensor_type && !PyType_IsSubtype(type, tensor_type)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constant_types); i++)
            if ((PyObject *)type == PyTuple_GET_ITEM(constant_types, i))
                return NULL;
        return value;
    }
    PyObject *object = slot(value, array_offset);
    return object != NULL && !PyArray_CheckExact(object) ? object : NULL;
}

typedef struct {
    int64_t *next, *end;
    PyObject *pinned[32];
    int pinned_count;
} Key;

/* Writes one value; 0 if it has no key here. Runs no Python code, so nothing changes meanwhile. */
static int
put_value(Key *key, PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    if (key->end - key->next < 4)
        return 0;
    PyArrayObject *array = array_of(value);
    if (array != NULL) {
        int dimensions = PyArray_NDIM(array);
        PyObject *dtype = (PyObject *)PyArray_DESCR(array);
        if (key->end - key->next < 2 + 2 * dimensions || key->pinned_count == 32)
            return 0;
        key->pinned[key->pinned_count++] = dtype;
        *key->next++ = TENSOR | (int64_t)dimensions << 8;
        *key->next++ = (int64_t)(intptr_t)dtype;
        for (int i = 0; i < dimensions; i++) {
            *key->next++ = PyArray_DIM(array, i);
            *key->next++ = PyArray_STRIDE(array, i);
        }
        return 1;
    }
    if (value == Py_None || value == Py_False || value == Py_True) {
        *key->next++ = value == Py_None ? NONE : value == Py_True ? TRUE_ : FALSE_;
        return 1;
    }
    if (type == &PyLong_Type) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow)
            return 0;
        *key->next++ = INTEGER;
        *key->next++ = number;
        return 1;
    }
    if (type == &PyFloat_Type || type == &PyComplex_Type) {
        double parts[2] = {0, 0};
        if (type == &PyFloat_Type)
            parts[0] = PyFloat_AS_DOUBLE(value);
        else {
            Py_complex number = ((PyComplexObject *)value)->cval;
            parts[0] = number.real;
            parts[1] = number.imag;
        }
        if (parts[0] != parts[0] || parts[1] != parts[1])
            return 0; /* to Python, one nan equals another only if it is the same object */
        for (int i = 0; i < 2; i++)
            parts[i] += 0.0; /* -0.0 equals 0.0 */
        *key->next++ = type == &PyFloat_Type ? FLOAT : COMPLEX;
        memcpy(key->next, parts, sizeof parts);
        key->next += 2;
        return 1;
    }
    if (type == &PyUnicode_Type) {
#if PY_VERSION_HEX < 0x030C0000
        if (!PyUnicode_IS_READY(value))
            return 0;
#endif
        Py_ssize_t bytes = PyUnicode_GET_LENGTH(value) * (Py_ssize_t)PyUnicode_KIND(value);
        Py_ssize_t words = (bytes + 7) / 8;
        if (words > key->end - key->next - 1)
            return 0;
        *key->next++ = TEXT | (int64_t)PyUnicode_KIND(value) << 8 | (int64_t)bytes << 16;
        if (words) {
            key->next[words - 1] = 0;
            memcpy(key->next, PyUnicode_DATA(value), bytes);
        }
        key->next += words;
        return 1;
    }
    /* A subclass may iterate differently, which is for Python to find out. */
    if ((PyTuple_Check(value) && type->tp_iter == PyTuple_Type.tp_iter) || PyList_CheckExact(value)) {
        Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
        PyObject **items = PySequence_Fast_ITEMS(value);
        *key->next++ = SEQUENCE | (int64_t)size << 8;
        for (Py_ssize_t i = 0; i < size; i++)
            if (!put_value(key, items[i]))
                return 0;
        return 1;
    }
    if (PyArray_DescrCheck(value) && key->pinned_count < 32) { /* what steps of kernels are given as a dtype */
        key->pinned[key->pinned_count++] = value;
        *key->next++ = OBJECT;
        *key->next++ = (int64_t)(intptr_t)value;
        return 1;
    }
    if (constant_types != NULL && key->pinned_count < 32)
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constant_types); i++)
            if ((PyObject *)type == PyTuple_GET_ITEM(constant_types, i)) {
                key->pinned[key->pinned_count++] = value;
                *key->next++ = OBJECT;
                *key->next++ = (int64_t)(intptr_t)value;
                return 1;
            }
    return 0;
}

/* What describe_value() of describe.py says; NULL, also without an exception, for what is left to that. */
static PyObject *
described(PyObject *value)
{
    PyArrayObject *array = array_of(value);
    if (array != NULL) {
        PyObject *shape = PyArray_IntTupleFromIntp(PyArray_NDIM(array), PyArray_DIMS(array));
        PyObject *strides = PyArray_IntTupleFromIntp(PyArray_NDIM(array), PyArray_STRIDES(array));
        PyObject *made = shape == NULL || strides == NULL ? NULL : PyTuple_Pack(3, shape, PyArray_DESCR(array), strides);
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return made;
    }
    PyTypeObject *type = Py_TYPE(value);
    if (value == Py_None || type == &PyBool_Type || type == &PyLong_Type || type == &PyFloat_Type ||
        type == &PyComplex_Type || type == &PyUnicode_Type)
        return Py_NewRef(value);
    if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value))
        return NULL;
    Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
    PyObject *made = PyTuple_New(size);
    for (Py_ssize_t i = 0; made != NULL && i < size; i++) {
        PyObject *item = described(PySequence_Fast_GET_ITEM(value, i));
        if (item == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, item);
    }
    return made;
}

/* Append a description; its number, or NULL, also without an exception. */
static PyObject *
number_of_new(PyObject *const *values, Py_ssize_t count)
{
    if (descriptions == NULL)
        return NULL;
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t i = 0; all != NULL && i < count; i++) {
        PyObject *one = described(values[i]);
        if (one == NULL)
            Py_CLEAR(all);
        else
            PyTuple_SET_ITEM(all, i, one);
    }
    if (all == NULL)
        return NULL;
    PyObject *number = PyLong_FromSsize_t(PyList_GET_SIZE(descriptions));
    if (number != NULL && PyList_Append(descriptions, all) < 0)
        Py_CLEAR(number);
    Py_DECREF(all);
    return number;
}

typedef struct {
    uint64_t hash;
    int64_t *words; /* NULL where the entry is free */
    Py_ssize_t count;
    PyObject *number;
} Entry;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *python;
    int plain; /* the description is that of the arguments themselves */
    Entry *entries; /* open addressing; a power of two, at most half full */
    Py_ssize_t room, used;
    long generation; /* of the numbers in it */
} Describer;

static long generation; /* of the numbers that are valid */

PyObject *
native_forget(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    generation++;
    Py_RETURN_NONE;
}

static void
empty_table(Describer *self)
{
    for (Py_ssize_t i = 0; i < self->room; i++)
        if (self->entries[i].words != NULL) {
            PyMem_Free(self->entries[i].words);
            Py_DECREF(self->entries[i].number);
        }
    PyMem_Free(self->entries);
    self->entries = NULL;
    self->room = self->used = 0;
}

static uint64_t
hash_words(const int64_t *words, Py_ssize_t count)
{
    uint64_t hash = 0x9E3779B97F4A7C15u + (uint64_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        hash = (hash ^ (uint64_t)words[i]) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    return hash;
}

/* The entry of a key, or the free one where it belongs. */
static Entry *
find(Entry *entries, Py_ssize_t room, uint64_t hash, const int64_t *words, Py_ssize_t count)
{
    for (Py_ssize_t i = (Py_ssize_t)(hash & (uint64_t)(room - 1));; i = (i + 1) & (room - 1)) {
        Entry *entry = entries + i;
        if (entry->words == NULL ||
            (entry->hash == hash && entry->count == count && !memcmp(entry->words, words, count * sizeof *words)))
            return entry;
    }
}

static int
enlarge(Describer *self)
{
    Py_ssize_t room = self->room ? self->room * 2 : 8;
    Entry *entries = PyMem_Calloc(room, sizeof *entries);
    if (entries == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < self->room; i++)
        if (self->entries[i].words != NULL)
            *find(entries, room, self->entries[i].hash, self->entries[i].words, self->entries[i].count) = self->entries[i];
    PyMem_Free(self->entries);
    self->entries = entries;
    self->room = room;
    return 0;
}

/* Keep alive what the key names by address; 0 if there is too much of it, -1 on errors. */
static int
pin(PyObject **objects, int count)
{
    for (int i = 0; i < count; i++) {
        PyObject *address = PyLong_FromVoidPtr(objects[i]);
        if (address == NULL)
            return -1;
        int known = PyDict_Contains(pins, address);
        if (known == 0 && PyDict_GET_SIZE(pins) < MOST_PINS)
            known = PyDict_SetItem(pins, address, objects[i]) < 0 ? -1 : 1;
        Py_DECREF(address);
        if (known != 1)
            return known;
    }
    return 1;
}

static int
remember(Describer *self, uint64_t hash, const int64_t *words, Py_ssize_t count, PyObject *number)
{
    if (self->used >= MOST_ENTRIES)
        return 0;
    if (2 * self->used >= self->room && enlarge(self) < 0)
        return -1;
    Entry *entry = find(self->entries, self->room, hash, words, count);
    if (entry->words != NULL)
        return 0; /* another thread was faster */
    size_t bytes = (size_t)(count ? count : 1) * sizeof *words;
    int64_t *copy = PyMem_Malloc(bytes);
    if (copy == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(copy, words, count * sizeof *words);
    *entry = (Entry){hash, copy, count, Py_NewRef(number)};
    self->used++;
    return 0;
}

static PyObject *
describer_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    Describer *self = (Describer *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    int64_t words[MOST_WORDS];
    Key key;
    key.next = words;
    key.end = words + MOST_WORDS;
    key.pinned_count = 0;
    int has_key = names == NULL;
    if (self->python == NULL) { /* only while the garbage collector takes it apart */
        PyErr_SetString(PyExc_RuntimeError, "this describer is being deleted");
        return NULL;
    }
    for (Py_ssize_t i = 0; has_key && i < count; i++)
        has_key = put_value(&key, args[i]);
    if (!has_key)
        return PyObject_Vectorcall(self->python, args, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    if (self->generation != generation) {
        empty_table(self);
        self->generation = generation;
    }
    Py_ssize_t length = key.next - words;
    uint64_t hash = hash_words(words, length);
    if (self->room) {
        Entry *entry = find(self->entries, self->room, hash, words, length);
        if (entry->words != NULL)
            return Py_NewRef(entry->number);
    }
    /* Pinned before Python runs, which might drop the last other reference. */
    int pinned = pin(key.pinned, key.pinned_count);
    if (pinned < 0)
        return NULL;
    PyObject *number = self->plain && pinned && self->used < MOST_ENTRIES ? number_of_new(args, count) : NULL;
    if (number == NULL && PyErr_Occurred())
        return NULL;
    if (number == NULL)
        number = PyObject_Vectorcall(self->python, args, (size_t)count, NULL);
    if (number != NULL && pinned && remember(self, hash, words, length, number) < 0)
        Py_CLEAR(number);
    return number;
}

PyObject *
describe_values(PyObject *describer, PyObject *const *values, Py_ssize_t count)
{
    return Py_IS_TYPE(describer, &DescriberType) ? describer_call(describer, values, (size_t)count, NULL)
                                                 : PyObject_Vectorcall(describer, values, (size_t)count, NULL);
}

static PyObject *
describer_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *python;
    int plain = 0;
    if (!PyArg_ParseTuple(args, "O|p:Describer", &python, &plain))
        return NULL;
    Describer *self = (Describer *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->call = describer_call;
    self->plain = plain;
    self->generation = generation;
    self->python = Py_NewRef(python);
    return (PyObject *)self;
}

static int
describer_traverse(Describer *self, visitproc visit, void *arg)
{
    Py_VISIT(self->python);
    return 0; /* the numbers refer to nothing */
}

static int
describer_clear(Describer *self)
{
    Py_CLEAR(self->python);
    return 0;
}

static void
describer_dealloc(Describer *self)
{
    PyObject_GC_UnTrack(self);
    describer_clear(self);
    empty_table(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef describer_members[] = {
    {"python", T_OBJECT, offsetof(Describer, python), READONLY, "the function behind the cache"},
    {"known", T_PYSSIZET, offsetof(Describer, used), READONLY, "how many argument lists are remembered"},
    {NULL},
};

PyTypeObject DescriberType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native._recorder.Describer",
    .tp_basicsize = sizeof(Describer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Describer(python, plain=False): the same function, remembering its results.",
    .tp_new = describer_new,
    .tp_dealloc = (destructor)describer_dealloc,
    .tp_traverse = (traverseproc)describer_traverse,
    .tp_clear = (inquiry)describer_clear,
    .tp_members = describer_members,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Describer, call),
};
