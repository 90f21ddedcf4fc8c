/* The line of the user's program that runs now: that of the nearest frame which is the user's, or a library's that the
 * user has called and not this package.
 *
 * Frames are walked as the interpreter links them, where its headers say how; making frame objects of them would cost
 * more than the rest of an event.
 */
#include "calls.h"
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030D0000
#define WALKS_FRAMES
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE
#endif
#include <internal/pycore_frame.h>
#endif

#define FURTHEST 64 /* frames: beyond that, no line is known */

static CallBook *book; /* while lines are wanted */

/* Go on with the next frame outwards: 0, or 1 if the line is known by now, or -1 with an exception. */
static int
look_at(CallBook *asked, PyCodeObject *code, long instruction, int64_t *line)
{
    long kind = book_kind(asked, code);
    if (kind < 0)
        return -1;
    if (kind == OWN || kind == STAND_IN) {
        *line = 0; /* called the library that was found */
        return 0;
    }
    if (*line == 0 && (*line = book_line(asked, code, instruction)) < 0)
        return -1;
    return kind == USERS;
}

/* lines(book or None) */
PyObject *
native_lines(PyObject *Py_UNUSED(module), PyObject *argument)
{
    if (argument != Py_None && !Py_IS_TYPE(argument, &CallBookType)) {
        PyErr_Format(PyExc_TypeError, "expected a CallBook or None, got %R", argument);
        return NULL;
    }
    Py_XSETREF(book, argument == Py_None ? NULL : (CallBook *)Py_NewRef(argument));
    Py_RETURN_NONE;
}

int64_t
current_line(void)
{
    if (book == NULL)
        return 0;
    CallBook *asked = (CallBook *)Py_NewRef(book); /* asking runs Python code */
    int64_t line = 0;
#ifdef WALKS_FRAMES
    struct _PyInterpreterFrame *frame = PyThreadState_Get()->cframe->current_frame;
    for (int i = 0; i < FURTHEST && frame != NULL; i++, frame = frame->previous) {
#if PY_VERSION_HEX >= 0x030C0000
        if (frame->owner == FRAME_OWNED_BY_CSTACK)
            continue;
#endif
        int found = look_at(asked, frame->f_code, (long)(_PyInterpreterFrame_LASTI(frame) * sizeof(_Py_CODEUNIT)), &line);
        if (found < 0)
            line = -1;
        if (found != 0)
            break;
    }
#else
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    for (int i = 0; i < FURTHEST && frame != NULL; i++) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        int found = look_at(asked, code, last_instruction(frame), &line);
        if (found < 0)
            line = -1;
        Py_DECREF(code);
        PyFrameObject *caller = found != 0 ? NULL : PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF(frame);
#endif
    Py_DECREF(asked);
    return line <= MOST_LINES ? line : 0;
}
