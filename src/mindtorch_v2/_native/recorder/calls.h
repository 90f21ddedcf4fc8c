/* Calls of Python and built-in functions: what the two ways to see them share. */
#ifndef MINDTORCH_CALLS_H
#define MINDTORCH_CALLS_H

#include "native.h"
#include <frameobject.h>

/* Whose code it is; the numbers of profiler/recorder/call_book.py. */
enum { USERS = 0, OWN = 1, LIBRARY = 2, STAND_IN = 3 };

/* In place of an instruction: the call is over, or is one of a built-in function. */
#define EXIT -2
#define BUILT_IN -3
#define DELEGATES -10 /* minus the instruction at which a generator waits for the one that is entered next */

/* What was once asked about objects, remembered under their addresses. The objects are kept, so that no other object
 * gets an address that is in here. */
typedef struct {
    void *first, *second;
    long third;
    long kind;       /* of a code object */
    PyObject *name;  /* of a built-in function or a call site; None where it is not shown */
} Known;

typedef struct {
    PyObject_HEAD
    Known *known; /* open addressing; a power of two, at most half full; free where `first` is NULL */
    size_t room, used;
    PyObject *objects;  /* dict: address -> code or name, what rows refer to */
    PyObject *kept;     /* list: what else is named by its address */
    PyObject *classify; /* classify(code): whose it is */
    PyObject *shown;    /* shown(frame): whether a call of a library is the user's */
    PyObject *site;     /* site(caller's frame, instruction, code): name of the built-in function that it is, or None */
    PyObject *waits;      /* waits(code, instruction): whether a generator that is there waits for another */
    PyObject *delegating; /* delegating(frame): generators that wait for that one, [(code, instruction)] */
} CallBook;

/* A call of a stand-in that was noted: its frame for the probe, its code for the monitor. */
typedef struct {
    void *which;
    PyObject *name; /* borrowed from the book */
    long again;     /* how often the code is open inside itself */
} OpenStandIn;

typedef struct {
    PyObject_HEAD
    CallBook *book;
    Rows rows; /* time, address of a code or name, instruction */
    /* For sys.monitoring, which reports a call at the caller and the begin at the callee. */
    void *expected;
    PyObject *expected_name;
    OpenStandIn *open;
    Py_ssize_t open_count, open_room;
} CallLane;

int lane_note(CallLane *lane, void *object, long instruction);
/* Note the generators that wait for one that is about to be noted. */
int lane_delegating(CallLane *lane, PyFrameObject *frame);
int lane_open(CallLane *lane, void *which, PyObject *name);
int lane_close(CallLane *lane, void *which);
/* -1 with an exception */
long book_kind(CallBook *book, PyCodeObject *code);
long book_line(CallBook *book, PyCodeObject *code, long instruction);
int book_waits(CallBook *book, PyCodeObject *code, long instruction);
int book_shows(CallBook *book, PyFrameObject *frame);
/* Borrowed; None where it is not shown, NULL with an exception. */
PyObject *book_site(CallBook *book, PyFrameObject *caller, PyCodeObject *caller_code, long instruction, PyCodeObject *code);
/* Borrowed; None if it is no built-in function. `self` is what a method descriptor is called with, or NULL. */
PyObject *book_function(CallBook *book, PyObject *function, PyObject *self);
long last_instruction(PyFrameObject *frame);

#endif
