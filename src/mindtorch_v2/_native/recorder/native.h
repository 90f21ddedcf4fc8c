/* What the files of the extension share. Every function here runs with the GIL held. */
#ifndef MINDTORCH_NATIVE_H
#define MINDTORCH_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

/* Headers of NumPy 2 make a module that also runs on 1.26. */
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_v2_native_array_api
#ifndef NATIVE_MODULE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

/* Counted up when the Python side needs a new build; an older one is then ignored. */
#define NATIVE_VERSION 16

#include <stdint.h>
#include <time.h>

#ifndef __linux__
#error "time.perf_counter_ns() is known to be CLOCK_MONOTONIC on Linux only; elsewhere the Python twin records"
#endif
#ifdef Py_GIL_DISABLED
#error "relies on the GIL; without it the Python twin records"
#endif

/* The clock of time.perf_counter_ns(). */
static inline int64_t
now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* rows.c: a table of integers that grows in chunks, so that no append ever copies what is there. */
typedef struct {
    int width;
    int64_t count;
    int64_t **chunks;
    int64_t *next, *end; /* free part of the last chunk */
    Py_ssize_t chunk_count, chunk_room;
} Rows;

void rows_init(Rows *rows, int width);
void rows_free(Rows *rows);
int rows_grow(Rows *rows);
int rows_copy(Rows *target, const Rows *source, int64_t begin);
PyObject *rows_columns(const Rows *rows, int64_t begin);

/* Room for one more row, or NULL with an exception. */
static inline int64_t *
rows_append(Rows *rows)
{
    if (rows->next == rows->end && rows_grow(rows) < 0)
        return NULL;
    int64_t *row = rows->next;
    rows->next += rows->width;
    rows->count++;
    return row;
}

/* module.c: members of Python classes with __slots__, read as C reads a field. */
Py_ssize_t slot_offset(PyObject *type, const char *name);

static inline PyObject *
slot(PyObject *object, Py_ssize_t offset)
{
    return *(PyObject **)((char *)object + offset);
}

/* describe.c */
PyArrayObject *array_of(PyObject *value);
PyObject *other_array_of(PyObject *value);
PyObject *describe_values(PyObject *describer, PyObject *const *values, Py_ssize_t count);

/* uses.c: whether and where the tensor arguments of ops are noted; 0 or -1. */
int uses_are_noted(void);
int note_uses(PyObject *const *values, Py_ssize_t count);

/* lines.c: the line of the user's program that runs now; 0 if it is not needed or unknown, -1 with an exception. */
int64_t current_line(void);
PyObject *native_lines(PyObject *module, PyObject *argument);
/* A line travels in the upper part of a sequence number, which is -1 at least; 0 leaves it as it is. */
#define LINE_BITS 40
#define MOST_LINES ((INT64_C(1) << (63 - LINE_BITS)) - 1) /* a line that does not fit is not known */

/* events.c: whether `begin` asks for descriptions. */
extern int describing;

extern PyTypeObject EventBufferType, BudgetType, MarkType, DescriberType, MemoryLogType, BlockType, UseLogType;
extern PyTypeObject CallBookType, CallLaneType, CallProbeType, CallMonitorType;

/* call_probe.c: on Python 3.11, whether this thread's calls are noted by a probe. While they are, the interpreter is slow at
 * everything; inside an op there is nothing to note, so `begin` and `end` switch it off and on again. */
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define CAN_PAUSE_CALLS
int calls_are_noted(PyThreadState *thread);
#endif

PyObject *native_set_thread(PyObject *module, PyObject *args);
PyObject *native_begin(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_set_tensor(PyObject *module, PyObject *args);
PyObject *native_watch(PyObject *module, PyObject *args);
PyObject *native_forget(PyObject *module, PyObject *ignored);
PyObject *native_open(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
