/* What functions on NumPy arrays ask of their arguments. */
#ifndef MINDTORCH_ARGUMENTS_H
#define MINDTORCH_ARGUMENTS_H

#include <Python.h>

/* Who asks has looked before: a kernel that cannot take its arguments was called wrongly. */
static inline PyObject *wrong(const char *what) {
    PyErr_Format(PyExc_ValueError, "kernels: %s", what);
    return NULL;
}

static inline int counted(Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted) return 1;
    PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", wanted, given);
    return 0;
}

/* Run CALL, and let other Python threads run meanwhile if it is LARGE. */
#define UNLOCKED(LARGE, CALL)                                                                                          \
    do {                                                                                                               \
        PyThreadState *state = (LARGE) ? PyEval_SaveThread() : NULL;                                                   \
        CALL;                                                                                                          \
        if (state) PyEval_RestoreThread(state);                                                                        \
    } while (0)
enum { MANY = 1 << 13 };

#endif
