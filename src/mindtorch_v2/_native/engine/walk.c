/* The backward pass over nodes that run only this package's code: the twin of `count_dependencies`, `Walk.run`,
 * `evaluate` and `send` in `_autograd/engine.py`, of `in_common` and `passed_on` in `_autograd/ownership.py`, and of
 * `suits`, `unpack` and `leaf_edge` in `_autograd/graph.py`.
 *
 * What is rare is left to the Python code, one node at a time: hooks, a program's own functions, captured gradients,
 * anomaly detection. While somebody observes, nothing runs here.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

#include "modes.h"

#define VERSION 4
#define FEW 8 /* gradients of a node, beyond which memory is taken for them */

/* What `prepare_graph` and `prepare_walk` are given: classes, functions and values of the Python side. */
static PyTypeObject *tensor_type, *node_type, *accumulate_type, *shared_type;
static PyObject *new_leaf_edge, *unpack_all, *hook_slots, *released, *detach, *fit, *give_views, *in_common_of_many, *anomaly, *plain_release, *heappush, *heappop;

/* Where the slots of their instances are. */
static Py_ssize_t tensor_array, tensor_extras, tensor_base, tensor_shared, tensor_requires, tensor_edge,
    shared_version, extras_accumulator, node_edges, node_hooks, node_meta, node_seq,
    accumulate_leaf, extras_grad, extras_post_hooks, walk_buffers, walk_marks, walk_waiting, walk_needed, walk_wanted,
    walk_ready, walk_arrived, walk_keep_graph, walk_exposed, state_exposed, state_grad;

static PyObject *word_apply, *word_deposit, *word_edges, *word_enabled, *word_evaluate, *word_hooks, *word_may_run,
    *word_meta, *word_observing, *word_release, *word_saved_names, *word_send, *word_seq, *first_of_all;

static inline PyObject **slot(PyObject *object, Py_ssize_t offset)
{
    return (PyObject **)((char *)object + offset);
}

/* An attribute of a node, a new reference: from its slot, or from its class where that has it for all. */
static inline PyObject *of_node(PyObject *node, Py_ssize_t offset, PyObject *word)
{
    PyObject *found = PyObject_TypeCheck(node, node_type) ? *slot(node, offset) : NULL;
    return found != NULL ? Py_NewRef(found) : PyObject_GetAttr(node, word);
}

/* -- ownership: a mark is a list with one number ---------------------------------------------------------------- */

/* Numbers of marks have no largest: what a program has seen is counted up by a lot, each time. */
static int count_of_mark(PyObject *mark, long long *count)
{
    int beyond;
    *count = PyLong_AsLongLongAndOverflow(PyList_GET_ITEM(mark, 0), &beyond);
    if (beyond) *count = LLONG_MAX;
    return *count == -1 && PyErr_Occurred() ? -1 : 0;
}

static int add_to_mark(PyObject *mark, long change)
{
    PyObject *more = PyLong_FromLong(change);
    PyObject *changed = more == NULL ? NULL : PyNumber_Add(PyList_GET_ITEM(mark, 0), more);
    Py_XDECREF(more);
    return changed == NULL ? -1 : PyList_SetItem(mark, 0, changed);
}

static int leave(PyObject *marks)
{
    PyObject *number, *mark;
    for (Py_ssize_t at = 0; PyDict_Next(marks, &at, &number, &mark);)
        if (add_to_mark(mark, -1) < 0) return -1;
    return 0;
}

/* The tensor whose memory a tensor's is, borrowed; NULL for what is no tensor. */
static inline PyObject *memory_of(PyObject *grad)
{
    if (!PyObject_TypeCheck(grad, tensor_type)) return NULL;
    PyObject *base = *slot(grad, tensor_base);
    return base == NULL || base == Py_None ? grad : PyTuple_GET_ITEM(base, 0);
}

/* The marks of what a node gives; a new dictionary, or NULL if there are none, with an error set or not. */
static PyObject *in_common(PyObject *results)
{
    Py_ssize_t count = PyTuple_GET_SIZE(results);
    int shared = count > 4 * FEW;
    for (Py_ssize_t i = 1; i < count && !shared; i++) {
        PyObject *memory = memory_of(PyTuple_GET_ITEM(results, i));
        for (Py_ssize_t k = 0; k < i && memory != NULL; k++)
            if (memory_of(PyTuple_GET_ITEM(results, k)) == memory) shared = 1;
    }
    if (!shared) return NULL;
    PyObject *marks = PyObject_CallOneArg(in_common_of_many, results);
    if (marks == Py_None) Py_CLEAR(marks);
    return marks;
}

static PyObject *passed_on(PyObject *received, PyObject *marks, PyObject *results)
{
    Py_ssize_t count = PyTuple_GET_SIZE(results);
    PyObject *found = count > 1 ? in_common(results) : NULL;
    if (found == NULL && PyErr_Occurred()) return NULL;
    PyObject *number, *mark;
    for (Py_ssize_t at = 0; PyDict_Next(marks, &at, &number, &mark);) {
        PyObject *given = PyList_GET_ITEM(received, PyLong_AsSsize_t(number));
        long long left;
        if (add_to_mark(mark, -1) < 0 || count_of_mark(mark, &left) < 0) goto failed;
        if (given == Py_None || left == 0) continue; /* what the node made of it is the engine's */
        PyObject *whole = memory_of(given);
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *grad = PyTuple_GET_ITEM(results, i);
            if (grad != given && (whole == NULL || memory_of(grad) != whole)) continue;
            if (add_to_mark(mark, 1) < 0) goto failed;
            if (found == NULL && (found = PyDict_New()) == NULL) return NULL;
            PyObject *place = PyLong_FromSsize_t(i);
            int failed = place == NULL || PyDict_SetItem(found, place, mark) < 0;
            Py_XDECREF(place);
            if (failed) goto failed;
        }
    }
    return found;
failed:
    Py_XDECREF(found);
    return NULL;
}

static int only_here(PyObject *walk, PyObject *state, PyObject *grad, PyObject *marks, Py_ssize_t number)
{
    if (Py_TYPE(grad) != tensor_type) return 0;
    if (marks != NULL) {
        PyObject *place = PyLong_FromSsize_t(number);
        if (place == NULL) return -1;
        PyObject *mark = PyDict_GetItemWithError(marks, place);
        Py_DECREF(place);
        if (mark == NULL && PyErr_Occurred()) return -1;
        long long count = 1;
        if (mark != NULL && count_of_mark(mark, &count) < 0) return -1;
        if (count != 1) return 0;
    }
    return PyObject_RichCompareBool(*slot(walk, walk_exposed), *slot(state, state_exposed), Py_EQ);
}

/* -- the walk ---------------------------------------------------------------------------------------------------- */

/* Take an entry out of a dictionary; NULL without an error if it has none. */
static PyObject *take(PyObject *entries, PyObject *key)
{
    PyObject *found = PyDict_GetItemWithError(entries, key);
    if (found == NULL) return NULL;
    Py_INCREF(found);
    if (PyDict_DelItem(entries, key) < 0) Py_CLEAR(found);
    return found;
}

static int push(PyObject *walk, PyObject *node)
{
    PyObject *order;
    if (Py_TYPE(node) == accumulate_type) {
        order = Py_NewRef(first_of_all);
    } else {
        PyObject *seq = of_node(node, node_seq, word_seq);
        order = seq == NULL ? NULL : PyNumber_Negative(seq);
        Py_XDECREF(seq);
    }
    if (order == NULL) return -1;
    PyObject **arrived = slot(walk, walk_arrived);
    PyObject *entry = PyTuple_Pack(3, order, *arrived, node);
    Py_DECREF(order);
    if (entry == NULL) return -1;
    PyObject *next = PyLong_FromSsize_t(PyLong_AsSsize_t(*arrived) + 1);
    PyObject *arguments[] = {*slot(walk, walk_ready), entry};
    PyObject *done = next == NULL ? NULL : PyObject_Vectorcall(heappush, arguments, 2, NULL);
    Py_DECREF(entry);
    if (done == NULL) {
        Py_XDECREF(next);
        return -1;
    }
    Py_DECREF(done);
    Py_SETREF(*arrived, next);
    return 0;
}

/* Whether a gradient has the shape and dtype that are asked for, without any code of another device. */
static int fits(PyObject *grad, PyObject *wanted)
{
    if (Py_TYPE(grad) != tensor_type) return 0;
    PyObject *array = *slot(grad, tensor_array), *shape = PyTuple_GET_ITEM(wanted, 0);
    if (array == NULL || !PyArray_CheckExact(array)) return 0;
    PyArrayObject *values = (PyArrayObject *)array;
    if ((PyObject *)PyArray_DESCR(values) != PyTuple_GET_ITEM(wanted, 1)) return 0;
    if (!PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) != PyArray_NDIM(values)) return 0;
    for (int i = 0; i < PyArray_NDIM(values); i++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) != PyArray_DIM(values, i)) return 0;
    return 1;
}

/* Hand one result to the node that it is for. */
static int hand_over(PyObject *walk, PyObject *node, Py_ssize_t i, PyObject *result, PyObject *following,
                     PyObject *key, PyObject *number, PyObject *buffer, PyObject *marks)
{
    Py_ssize_t at = PyLong_AsSsize_t(number);
    PyObject *meta = of_node(following, node_meta, word_meta);
    if (meta == NULL) return -1;
    PyObject *wanted = PyTuple_GET_ITEM(meta, at), *grad = NULL, *place = NULL;
    int status = -1;
    if (fits(result, wanted)) {
        grad = Py_NewRef(result);
    } else {
        place = PyLong_FromSsize_t(i);
        if (place == NULL) goto done;
        PyObject *arguments[] = {node, place, result};
        grad = PyObject_Vectorcall(fit, arguments, 3, NULL);
        if (grad == NULL) goto done;
    }
    PyObject *mark = NULL;
    if (marks != NULL) {
        if (place == NULL && (place = PyLong_FromSsize_t(i)) == NULL) goto done;
        mark = PyDict_GetItemWithError(marks, place);
        if (mark == NULL && PyErr_Occurred()) goto done;
    }
    if (mark != NULL && grad != result && memory_of(grad) != memory_of(result)) {
        if (add_to_mark(mark, -1) < 0) goto done; /* what was made of it is new */
        mark = NULL;
    }
    if (mark == NULL && PyList_GET_ITEM(buffer, at) == Py_None) {
        status = PyList_SetItem(buffer, at, Py_NewRef(grad));
    } else {
        PyObject *arguments[] = {walk, buffer, key, number, grad, mark == NULL ? Py_None : mark};
        PyObject *found = PyObject_VectorcallMethod(word_deposit, arguments, 6, NULL);
        Py_XDECREF(found);
        status = found == NULL ? -1 : 0;
    }
done:
    Py_DECREF(meta);
    Py_XDECREF(grad);
    Py_XDECREF(place);
    return status;
}

static int send_one(PyObject *walk, PyObject *node, Py_ssize_t i, PyObject *target, PyObject *result, PyObject *marks)
{
    PyObject *following = PyTuple_GET_ITEM(target, 0), *number = PyTuple_GET_ITEM(target, 1);
    PyObject *needed = *slot(walk, walk_needed), *buffers = *slot(walk, walk_buffers);
    PyObject *key = PyLong_FromVoidPtr(following);
    if (key == NULL) return -1;
    int status = -1;
    if (needed != Py_None) {
        int found = PySet_Contains(needed, key);
        if (found <= 0) {
            status = found;
            goto done;
        }
    }
    PyObject *buffer = PyDict_GetItemWithError(buffers, key);
    if (buffer == NULL) {
        if (PyErr_Occurred()) goto done;
        PyObject *meta = of_node(following, node_meta, word_meta);
        if (meta == NULL) goto done;
        Py_ssize_t count = PyTuple_GET_SIZE(meta);
        Py_DECREF(meta);
        PyObject *made = PyList_New(count);
        if (made == NULL) goto done;
        for (Py_ssize_t k = 0; k < count; k++) PyList_SET_ITEM(made, k, Py_NewRef(Py_None));
        int failed = PyDict_SetItem(buffers, key, made) < 0;
        Py_DECREF(made); /* the dictionary holds it */
        if (failed) goto done;
        buffer = made;
    }
    if (result != Py_None && hand_over(walk, node, i, result, following, key, number, buffer, marks) < 0) goto done;
    PyObject *waiting = *slot(walk, walk_waiting);
    PyObject *left = PyDict_GetItemWithError(waiting, key);
    if (left == NULL) {
        if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
        goto done;
    }
    Py_ssize_t after = PyLong_AsSsize_t(left) - 1;
    if (after == 0) {
        /* Even a node that got no gradient has to run, so that what depends on it is not left waiting. */
        status = push(walk, following);
    } else {
        PyObject *count = PyLong_FromSsize_t(after);
        status = count == NULL ? -1 : PyDict_SetItem(waiting, key, count);
        Py_XDECREF(count);
    }
done:
    Py_DECREF(key);
    return status;
}

static int send(PyObject *walk, PyObject *node, PyObject *edges, PyObject *results, PyObject *marks)
{
    Py_ssize_t count = PyTuple_GET_SIZE(edges);
    if (PyTuple_GET_SIZE(results) != count) { /* an error, in words */
        PyObject *arguments[] = {walk, node, edges, results, marks == NULL ? Py_None : marks};
        PyObject *found = PyObject_VectorcallMethod(word_send, arguments, 5, NULL);
        Py_XDECREF(found);
        return found == NULL ? -1 : 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *target = PyTuple_GET_ITEM(edges, i);
        if (target != Py_None && send_one(walk, node, i, target, PyTuple_GET_ITEM(results, i), marks) < 0) return -1;
    }
    return 0;
}

static int release(PyObject *node)
{
    PyObject *kind = (PyObject *)Py_TYPE(node);
    PyObject *function = PyObject_GetAttr(kind, word_release);
    if (function == NULL) return -1;
    Py_DECREF(function); /* its class has it */
    if (function != plain_release) {
        PyObject *done = PyObject_CallMethodNoArgs(node, word_release);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    PyObject *names = PyObject_GetAttr(kind, word_saved_names);
    if (names == NULL) return -1;
    int status = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names) && status == 0; i++)
        status = PyObject_SetAttr(node, PyTuple_GET_ITEM(names, i), released);
    Py_DECREF(names);
    return status;
}

/* What a node makes of the gradients that came; a tuple. */
static PyObject *apply(PyObject *node, PyObject *received, PyObject *edges)
{
    Py_ssize_t count = PyList_GET_SIZE(received), missing = 0;
    while (missing < count && PyList_GET_ITEM(received, missing) == Py_None) missing++;
    if (missing == count) {
        PyObject *nothing = PyTuple_New(PyTuple_GET_SIZE(edges));
        for (Py_ssize_t i = 0; nothing != NULL && i < PyTuple_GET_SIZE(edges); i++)
            PyTuple_SET_ITEM(nothing, i, Py_NewRef(Py_None));
        return nothing;
    }
    PyObject *few[FEW + 1], **arguments = few;
    if (count > FEW) {
        arguments = PyMem_Malloc((count + 1) * sizeof *arguments);
        if (arguments == NULL) return PyErr_NoMemory();
    }
    arguments[0] = node;
    for (Py_ssize_t i = 0; i < count; i++) arguments[i + 1] = PyList_GET_ITEM(received, i);
    PyObject *made = PyObject_VectorcallMethod(word_apply, arguments, count + 1, NULL);
    if (arguments != few) PyMem_Free(arguments);
    if (made == NULL || PyTuple_CheckExact(made)) return made;
    PyObject *results = PySequence_Tuple(made);
    Py_DECREF(made);
    return results;
}

static PyObject *leaf_of(PyObject *node)
{
    PyObject *reference = *slot(node, accumulate_leaf);
    if (reference == NULL || !PyWeakref_Check(reference)) {
        PyErr_SetString(PyExc_SystemError, "an accumulator without its leaf");
        return NULL;
    }
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *leaf;
    if (PyWeakref_GetRef(reference, &leaf) < 0) return NULL;
    return leaf == NULL ? Py_NewRef(Py_None) : leaf;
#else
    return Py_NewRef(PyWeakref_GetObject(reference));
#endif
}

/* Whether elements fill their span of memory without holes or overlap, in some order of dimensions. */
static int is_dense(PyArrayObject *array)
{
    if (PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS) || PyArray_CHKFLAGS(array, NPY_ARRAY_F_CONTIGUOUS)) return 1;
    npy_intp expected = PyArray_ITEMSIZE(array), size = PyArray_NBYTES(array);
    while (expected < size) {
        int i = 0;
        while (i < PyArray_NDIM(array) && (PyArray_STRIDE(array, i) != expected || PyArray_DIM(array, i) == 1)) i++;
        if (i == PyArray_NDIM(array)) return 0;
        expected *= PyArray_DIM(array, i);
    }
    return 1;
}

/* Whether a gradient has its leaf's memory order, or is row-major if the leaf has gaps. */
static int suits(PyObject *grad, PyObject *leaf)
{
    if (grad == NULL || leaf == NULL || !PyArray_CheckExact(grad) || !PyArray_CheckExact(leaf)) return 0;
    PyArrayObject *a = (PyArrayObject *)grad, *b = (PyArrayObject *)leaf;
    if (PyArray_NDIM(a) != PyArray_NDIM(b)) return 0;
    if (!is_dense(b)) return PyArray_CHKFLAGS(a, NPY_ARRAY_C_CONTIGUOUS);
    for (int i = 0; i < PyArray_NDIM(a); i++) {
        npy_intp step = PyArray_STRIDE(a, i);
        if (PyArray_DIM(a, i) != 1 ? step != PyArray_STRIDE(b, i) : step == 0) return 0;
    }
    return 1;
}

/* The end of a path: a first gradient that nobody else sees is the leaf's from now on; all else `apply` does. */
static int accumulate(PyObject *walk, PyObject *state, PyObject *node, PyObject *leaf, PyObject *received,
                      PyObject *marks)
{
    PyObject *grad = PyList_GET_ITEM(received, 0);
    int mine = only_here(walk, state, grad, marks, 0);
    if (mine < 0 || (marks != NULL && leave(marks) < 0)) return -1;
    PyObject *extras = leaf == Py_None ? Py_None : *slot(leaf, tensor_extras);
    if (mine && extras != Py_None && *slot(extras, extras_grad) == Py_None && *slot(state, state_grad) == Py_False
            && suits(*slot(grad, tensor_array), *slot(leaf, tensor_array))) {
        PyObject *taken = PyObject_CallOneArg(detach, grad);
        if (taken == NULL) return -1;
        Py_SETREF(*slot(extras, extras_grad), taken);
        return 0;
    }
    PyObject *arguments[] = {node, grad, mine ? Py_True : Py_False};
    PyObject *done = PyObject_VectorcallMethod(word_apply, arguments, 3, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Whether a node runs only this package's code, and nothing about it is asked for. */
static int is_plain(PyObject *walk, PyObject *node, PyObject *key, PyObject *leaf)
{
    if (PyDict_GET_SIZE(*slot(walk, walk_wanted))) {
        int wanted = PyDict_Contains(*slot(walk, walk_wanted), key);
        if (wanted) return wanted < 0 ? -1 : 0;
    }
    PyObject *hooks = of_node(node, node_hooks, word_hooks);
    if (hooks == NULL) return -1;
    Py_DECREF(hooks); /* the node has it, or it is None */
    if (hooks != Py_None) return 0;
    if (leaf != NULL) {
        PyObject *extras = leaf == Py_None ? Py_None : *slot(leaf, tensor_extras);
        if (extras == Py_None) return 1;
        int hooked = PyObject_IsTrue(*slot(extras, extras_post_hooks));
        return hooked < 0 ? -1 : !hooked;
    }
    PyObject *foreign = PyObject_GetAttr(node, word_may_run);
    if (foreign == NULL) return -1;
    Py_DECREF(foreign);
    return foreign == Py_False;
}

/* Let leaves have the views that a node has made for them alone. */
static int views_for_leaves(PyObject *edges, PyObject *received, PyObject *results, PyObject *marks)
{
    PyObject *to_leaves = PyList_New(0);
    int status = to_leaves == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(edges) && status == 0; i++) {
        PyObject *target = PyTuple_GET_ITEM(edges, i);
        if (target == Py_None || Py_TYPE(PyTuple_GET_ITEM(target, 0)) != accumulate_type) continue;
        PyObject *number = PyLong_FromSsize_t(i);
        status = number == NULL ? -1 : PyList_Append(to_leaves, number);
        Py_XDECREF(number);
    }
    if (status == 0 && PyList_GET_SIZE(to_leaves)) {
        PyObject *arguments[] = {to_leaves, received, results, marks};
        PyObject *done = PyObject_Vectorcall(give_views, arguments, 4, NULL);
        Py_XDECREF(done);
        status = done == NULL ? -1 : 0;
    }
    Py_XDECREF(to_leaves);
    return status;
}

static int evaluate(PyObject *walk, PyObject *state, PyObject *node, int watched)
{
    PyObject *received = NULL, *marks = NULL, *edges = NULL, *results = NULL, *given = NULL;
    PyObject *leaf = Py_TYPE(node) == accumulate_type ? leaf_of(node) : NULL;
    PyObject *key = PyErr_Occurred() ? NULL : PyLong_FromVoidPtr(node);
    int status = -1;
    if (key == NULL) goto done;
    int plain = watched ? 0 : is_plain(walk, node, key, leaf);
    if (plain < 0) goto done;
    if (!plain) {
        Py_CLEAR(leaf);
        PyObject *nobody = PyLong_FromLong(-1);
        PyObject *arguments[] = {walk, node, nobody};
        PyObject *found = nobody == NULL ? NULL : PyObject_VectorcallMethod(word_evaluate, arguments, 3, NULL);
        Py_XDECREF(nobody);
        Py_XDECREF(found);
        status = found == NULL ? -1 : 0;
        goto done;
    }
    received = take(*slot(walk, walk_buffers), key);
    if (received == NULL) {
        if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
        goto done;
    }
    if (PyDict_GET_SIZE(*slot(walk, walk_marks))) {
        marks = take(*slot(walk, walk_marks), key);
        if (marks == NULL && PyErr_Occurred()) goto done;
    }
    PyObject *needed = *slot(walk, walk_needed);
    if (needed != Py_None) {
        int found = PySet_Contains(needed, key);
        if (found <= 0) { /* no node after it is needed */
            status = found < 0 || (marks != NULL && leave(marks) < 0) ? -1 : 0;
            goto done;
        }
    }
    if (leaf != NULL) {
        status = accumulate(walk, state, node, leaf, received, marks);
        goto done;
    }
    edges = of_node(node, node_edges, word_edges);
    if (edges == NULL) goto done;
    results = apply(node, received, edges);
    if (results == NULL) goto done;
    if (*slot(walk, walk_keep_graph) != Py_True && release(node) < 0) goto done;
    if (PyTuple_GET_SIZE(edges)) {
        if (marks != NULL && PyDict_GET_SIZE(marks)) given = passed_on(received, marks, results);
        else if (PyTuple_GET_SIZE(edges) > 1) given = in_common(results);
        if (given == NULL ? PyErr_Occurred() != NULL : views_for_leaves(edges, received, results, given) < 0) goto done;
        Py_CLEAR(received); /* memory is freed where PyTorch frees it */
        status = send(walk, node, edges, results, given);
    } else {
        status = 0;
    }
done:
    Py_XDECREF(given);
    Py_XDECREF(results);
    Py_XDECREF(edges);
    Py_XDECREF(marks);
    Py_XDECREF(received);
    Py_XDECREF(leaf);
    Py_XDECREF(key);
    return status;
}

PyDoc_STRVAR(drain_doc, "drain(walk, state)\n--\n\nRun nodes until none is ready, or until somebody observes.");

static PyObject *drain(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2) return PyErr_Format(PyExc_TypeError, "drain() takes 2 arguments, got %zd", count);
    PyObject *walk = arguments[0], *state = arguments[1], *ready = *slot(walk, walk_ready);
    while (PyList_GET_SIZE(ready)) {
        PyObject *observing = PyDict_GetItemWithError(hook_slots, word_observing);
        if (observing == NULL && PyErr_Occurred()) return NULL;
        if (observing != Py_False) break;
        PyObject *suspicious = PyObject_GetAttr(anomaly, word_enabled);
        if (suspicious == NULL) return NULL;
        Py_DECREF(suspicious); /* True or False */
        PyObject *entry = PyObject_CallOneArg(heappop, ready);
        if (entry == NULL) return NULL;
        PyObject *node = Py_NewRef(PyTuple_GET_ITEM(entry, 2));
        Py_DECREF(entry);
        int status = evaluate(walk, state, node, suspicious != Py_False);
        Py_DECREF(node);
        if (status < 0) return NULL;
    }
    Py_RETURN_NONE;
}

/* -- what nodes wait for ----------------------------------------------------------------------------------------- */

PyDoc_STRVAR(count_doc, "count_dependencies(begun)\n--\n\nHow many gradients each node has to wait for.");

static int count_from(PyObject *node, PyObject *begun, PyObject *waiting, PyObject *stack)
{
    PyObject *edges = of_node(node, node_edges, word_edges);
    if (edges == NULL) return -1;
    int status = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(edges) && status == 0; i++) {
        PyObject *target = PyTuple_GET_ITEM(edges, i);
        if (target == Py_None) continue;
        PyObject *following = PyTuple_GET_ITEM(target, 0);
        PyObject *key = PyLong_FromVoidPtr(following);
        if (key == NULL) {
            status = -1;
            break;
        }
        PyObject *known = PyDict_GetItemWithError(waiting, key);
        PyObject *now = known == NULL && PyErr_Occurred()
            ? NULL : PyLong_FromSsize_t(known == NULL ? 1 : PyLong_AsSsize_t(known) + 1);
        status = now == NULL ? -1 : PyDict_SetItem(waiting, key, now);
        if (status == 0 && known == NULL && Py_TYPE(following) != accumulate_type) {
            int first = PyDict_Contains(begun, key);
            status = first < 0 ? -1 : first ? 0 : PyList_Append(stack, following);
        }
        Py_XDECREF(now);
        Py_DECREF(key);
    }
    Py_DECREF(edges);
    return status;
}

static PyObject *count_dependencies(PyObject *module, PyObject *begun)
{
    if (!PyDict_Check(begun)) return PyErr_Format(PyExc_TypeError, "expected a dictionary of nodes");
    PyObject *waiting = PyDict_New(), *stack = PyDict_Values(begun);
    if (waiting == NULL || stack == NULL) goto failed;
    for (Py_ssize_t last; (last = PyList_GET_SIZE(stack) - 1) >= 0;) {
        PyObject *node = Py_NewRef(PyList_GET_ITEM(stack, last));
        int status = PyList_SetSlice(stack, last, last + 1, NULL);
        if (status == 0) status = count_from(node, begun, waiting, stack);
        Py_DECREF(node);
        if (status < 0) goto failed;
    }
    Py_DECREF(stack);
    return waiting;
failed:
    Py_XDECREF(stack);
    Py_XDECREF(waiting);
    return NULL;
}

/* -- what nodes saved ---------------------------------------------------------------------------------------------- */

/* Whether what a tensor shares with its views is at a version; -1 if the Python code has to look. */
static int at_version(PyObject *shared, PyObject *version)
{
    if (shared == NULL) return -1;
    if (shared == Py_None) return PyLong_CheckExact(version) && PyLong_AsLong(version) == 0 ? 1 : -1;
    if (Py_TYPE(shared) != shared_type || *slot(shared, shared_version) == NULL) return -1;
    return PyObject_RichCompareBool(*slot(shared, shared_version), version, Py_EQ) == 1 ? 1 : -1;
}

/* A tensor without history around memory that is known: `wrap_known`, with what it shares. */
static PyObject *wrapped(PyObject *array, PyObject *shared)
{
    PyObject *tensor = tensor_type->tp_alloc(tensor_type, 0);
    if (tensor == NULL) return NULL;
    *slot(tensor, tensor_array) = Py_NewRef(array);
    *slot(tensor, tensor_requires) = Py_NewRef(Py_False);
    *slot(tensor, tensor_edge) = Py_NewRef(Py_None);
    *slot(tensor, tensor_extras) = Py_NewRef(Py_None);
    *slot(tensor, tensor_base) = Py_NewRef(Py_None);
    *slot(tensor, tensor_shared) = Py_NewRef(shared);
    return tensor;
}

PyDoc_STRVAR(unpack_doc, "unpack(node, saved)\n--\n\nThe tensor behind what `save` returned.");

static PyObject *unpack(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count == 2 && PyTuple_CheckExact(arguments[1])) {
        PyObject *saved = arguments[1], *kept = PyTuple_GET_ITEM(saved, 0);
        if (PyTuple_GET_SIZE(saved) == 2) {
            if (!PyObject_TypeCheck(kept, tensor_type)) return Py_NewRef(kept); /* a number, or None */
            if (at_version(*slot(kept, tensor_shared), PyTuple_GET_ITEM(saved, 1)) == 1) return Py_NewRef(kept);
        } else if (PyTuple_GET_SIZE(saved) == 3 && PyArray_CheckExact(kept)) {
            PyObject *shared = PyTuple_GET_ITEM(saved, 1);
            if (at_version(shared, PyTuple_GET_ITEM(saved, 2)) == 1) return wrapped(kept, shared);
        }
        if (PyErr_Occurred()) return NULL;
    }
    return PyObject_Vectorcall(unpack_all, arguments, count, NULL); /* packed, released, changed since */
}

PyDoc_STRVAR(leaf_edge_doc, "leaf_edge(tensor)\n--\n\nThe edge to a leaf's accumulator, made once.");

static PyObject *leaf_edge(PyObject *module, PyObject *tensor)
{
    if (PyObject_TypeCheck(tensor, tensor_type)) {
        PyObject *extras = *slot(tensor, tensor_extras);
        if (extras != NULL && extras != Py_None) {
            PyObject *found = *slot(extras, extras_accumulator);
            if (found != NULL && found != Py_None) return Py_NewRef(found);
        }
    }
    return PyObject_CallOneArg(new_leaf_edge, tensor);
}

/* -- setting up ---------------------------------------------------------------------------------------------------- */

static int find_slot(PyObject *given, const char *class_name, const char *name, Py_ssize_t *offset)
{
    PyObject *kind = PyDict_GetItemString(given, class_name);
    PyObject *found = kind == NULL ? NULL : PyObject_GetAttrString(kind, name);
    int status = -1;
    if (found != NULL && Py_TYPE(found) == &PyMemberDescr_Type) {
        *offset = ((PyMemberDescrObject *)found)->d_member->offset;
        status = 0;
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "%s.%s is no slot", class_name, name);
    }
    Py_XDECREF(found);
    return status;
}

static int find_object(PyObject *given, const char *name, PyObject **place)
{
    PyObject *found = PyDict_GetItemString(given, name);
    if (found == NULL) {
        PyErr_Format(PyExc_TypeError, "prepare() needs %s", name);
        return -1;
    }
    Py_XSETREF(*place, Py_NewRef(found));
    return 0;
}

struct wanted_slot { const char *class_name, *name; Py_ssize_t *offset; };
struct wanted_object { const char *name; PyObject **place; };

static int find_all(PyObject *given, const struct wanted_slot *slots, size_t slot_count,
                    const struct wanted_object *objects, size_t object_count)
{
    if (!PyDict_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "expected a dictionary");
        return -1;
    }
    for (size_t i = 0; i < slot_count; i++)
        if (find_slot(given, slots[i].class_name, slots[i].name, slots[i].offset) < 0) return -1;
    for (size_t i = 0; i < object_count; i++)
        if (find_object(given, objects[i].name, objects[i].place) < 0) return -1;
    return 0;
}

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof *(ARRAY))

PyDoc_STRVAR(prepare_graph_doc, "prepare_graph(given)\n--\n\nTell what `unpack` and `leaf_edge` need, by name.");

static PyObject *prepare_graph(PyObject *module, PyObject *given)
{
    const struct wanted_slot slots[] = {
        {"Tensor", "_a", &tensor_array}, {"Tensor", "_ag", &tensor_extras}, {"Tensor", "_of", &tensor_base},
        {"Tensor", "_st", &tensor_shared}, {"Tensor", "_rg", &tensor_requires}, {"Tensor", "_edge", &tensor_edge},
        {"Shared", "version", &shared_version}, {"Extras", "accumulator", &extras_accumulator},
    };
    const struct wanted_object objects[] = {
        {"Tensor", (PyObject **)&tensor_type}, {"Shared", (PyObject **)&shared_type}, {"unpack", &unpack_all},
        {"leaf_edge", &new_leaf_edge},
    };
    if (find_all(given, slots, COUNT(slots), objects, COUNT(objects)) < 0) return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(prepare_walk_doc, "prepare_walk(given)\n--\n\nTell what the walk needs, by name; after `prepare_graph`.");

static PyObject *prepare_walk(PyObject *module, PyObject *given)
{
    const struct wanted_slot slots[] = {
        {"Node", "edges", &node_edges}, {"Node", "hooks", &node_hooks}, {"Node", "meta", &node_meta},
        {"Node", "seq", &node_seq}, {"AccumulateGrad", "reference", &accumulate_leaf},
        {"Extras", "grad", &extras_grad}, {"Extras", "post_hooks", &extras_post_hooks},
        {"Walk", "buffers", &walk_buffers}, {"Walk", "marks", &walk_marks}, {"Walk", "waiting", &walk_waiting},
        {"Walk", "needed", &walk_needed}, {"Walk", "wanted", &walk_wanted}, {"Walk", "ready", &walk_ready},
        {"Walk", "arrived", &walk_arrived}, {"Walk", "keep_graph", &walk_keep_graph},
        {"Walk", "exposed", &walk_exposed}, {"ThreadState", "exposed", &state_exposed},
        {"ThreadState", "grad", &state_grad},
    };
    const struct wanted_object objects[] = {
        {"Node", (PyObject **)&node_type}, {"AccumulateGrad", (PyObject **)&accumulate_type}, {"HOOK", &hook_slots},
        {"RELEASED", &released}, {"detach", &detach}, {"fit", &fit}, {"give_views", &give_views}, {"in_common", &in_common_of_many},
        {"AnomalyState", &anomaly}, {"release", &plain_release}, {"heappush", &heappush}, {"heappop", &heappop},
        {"first_of_all", &first_of_all},
    };
    const struct wanted_object words[] = {
        {"apply", &word_apply}, {"deposit", &word_deposit}, {"edges", &word_edges}, {"enabled", &word_enabled},
        {"evaluate", &word_evaluate}, {"hooks", &word_hooks}, {"may_run_user_code", &word_may_run},
        {"meta", &word_meta}, {"OBSERVING", &word_observing}, {"release", &word_release},
        {"saved_names", &word_saved_names}, {"send", &word_send}, {"seq", &word_seq},
    };
    if (tensor_type == NULL) return PyErr_Format(PyExc_RuntimeError, "prepare_graph() comes first");
    if (find_all(given, slots, COUNT(slots), objects, COUNT(objects)) < 0) return NULL;
    for (size_t i = 0; i < COUNT(words); i++) {
        PyObject *word = PyUnicode_InternFromString(words[i].name);
        if (word == NULL) return NULL;
        Py_XSETREF(*words[i].place, word);
    }
    if (!PyDict_Check(hook_slots)) return PyErr_Format(PyExc_TypeError, "the hook is no dictionary");
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"prepare_graph", prepare_graph, METH_O, prepare_graph_doc},
    {"prepare_walk", prepare_walk, METH_O, prepare_walk_doc},
    {"unpack", (PyCFunction)(void (*)(void))unpack, METH_FASTCALL, unpack_doc},
    {"leaf_edge", leaf_edge, METH_O, leaf_edge_doc},
    {"drain", (PyCFunction)(void (*)(void))drain, METH_FASTCALL, drain_doc},
    {"count_dependencies", count_dependencies, METH_O, count_doc},
    {"exits", exits, METH_O, exits_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_walk", "The backward pass over plain nodes, in C.", -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__walk(void)
{
    import_array();
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddIntConstant(module, "VERSION", VERSION) < 0) Py_CLEAR(module);
    return module;
}
