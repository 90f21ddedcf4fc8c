/* Leaving a mode of autograd: the twin of `_leave` in `_autograd/grad_mode.py`.
 *
 * A function in Python may be interrupted before its first line, by Ctrl-C or another signal's handler: the mode would
 * stay on for good. One in C is not, so what a `with` block changed is put back whatever ends it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "modes.h"

static PyObject *thread, *word_state, *word_before, *word_left;

/* The thread's state as it was: `before` has pairs of attributes and values. */
static int put_back(PyObject *mode)
{
    PyObject *state = PyObject_GetAttr(thread, word_state);
    PyObject *before = state == NULL ? NULL : PyObject_GetAttr(mode, word_before);
    int failed = before == NULL || !PyTuple_Check(before);
    if (before != NULL && failed) PyErr_SetString(PyExc_RuntimeError, "this mode has not been entered");
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(before); i++) {
        PyObject *pair = PyTuple_GET_ITEM(before, i);
        failed = !PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 ||
                 PyObject_SetAttr(state, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)) < 0;
        if (failed && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "not a pair of an attribute and a value");
    }
    Py_XDECREF(state);
    Py_XDECREF(before);
    return failed ? -1 : 0;
}

static PyObject *leave(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count < 1) return PyErr_Format(PyExc_TypeError, "__exit__() takes a mode");
    if (put_back(args[0]) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *leave_and_tell(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count < 1) return PyErr_Format(PyExc_TypeError, "__exit__() takes a mode");
    if (put_back(args[0]) < 0) return NULL;
    return PyObject_CallMethodNoArgs(args[0], word_left);
}

static PyMethodDef leaving[] = {
    {"__exit__", (PyCFunction)(void (*)(void))leave, METH_FASTCALL, "Put the thread's state back."},
    {"__exit__", (PyCFunction)(void (*)(void))leave_and_tell, METH_FASTCALL, "Put it back, and call `left`."},
};

PyObject *exits(PyObject *module, PyObject *given)
{
    (void)module;
    PyObject *made = PyTuple_New(2);
    if (made == NULL) return NULL;
    if (!(word_state = PyUnicode_InternFromString("state")) || !(word_before = PyUnicode_InternFromString("before")) ||
        !(word_left = PyUnicode_InternFromString("left"))) {
        Py_DECREF(made);
        return NULL;
    }
    Py_XSETREF(thread, Py_NewRef(given));
    for (Py_ssize_t i = 0; i < 2; i++) {
        PyObject *function = PyCFunction_New(&leaving[i], NULL);
        PyObject *method = function == NULL ? NULL : PyInstanceMethod_New(function);
        Py_XDECREF(function);
        if (method == NULL) {
            Py_DECREF(made);
            return NULL;
        }
        PyTuple_SET_ITEM(made, i, method);
    }
    return made;
}
