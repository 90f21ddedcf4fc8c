/* Kernels that look at their arguments themselves.

   `Direct(name, function)` is called as the function is. The kernel of that name in C computes what it knows: arrays of
   the common types and layouts, arguments without a mistake. It answers everything else with LEFT, and then, and while
   kernels are switched off, the function is called with the same arguments. A small call so costs one call. */
#ifndef MINDTORCH_DIRECT_H
#define MINDTORCH_DIRECT_H

#include "arrays.h"
#include "counter.h"

/* What a kernel returns for what it leaves to the function; not counted as a reference. */
#define LEFT Py_NotImplemented

/* A new reference, NULL with an error, or LEFT. */
typedef PyObject *(*DirectKernel)(PyObject *const *args, Py_ssize_t count);

typedef struct {
    const char *name;
    DirectKernel run;
    long long calls; /* of those that were not left */
} DirectEntry;

/* Each file's kernels; ends with a name of NULL. */
extern DirectEntry rearrange_direct[], norms_direct[], selection_direct[], images_direct[], sums_direct[], views_direct[],
    convolutions_direct[], numbers_direct[], counting_direct[], joins_direct[],
    spectra_direct[], factors_direct[], copies_direct[];

/* Put the type into the module; -1 on error. */
int direct_add(PyObject *module);

/* Put the counts of calls into a dictionary; -1 on error. */
int direct_count(PyObject *counts);

/* -- steps that have a row of their own in a profile --

   Each is done here, by one call, unless somebody hears of ops: then the function does it that `set_step` was given. A
   kernel that does several steps in one loop leaves the call to its function then, which does the same one by one. */

/* Whether somebody hears of ops. */
int steps_are_heard(void);

/* Uninitialised memory in row-major order: `aten::empty`. */
PyArrayObject *step_empty(int ndim, npy_intp *sizes, int type);

/* The same array in another shape, without a step. */
PyArrayObject *step_empty_as(int ndim, npy_intp *sizes, int shown, npy_intp *shape, int type);

/* The same in the shape and type of an array: `aten::empty_like`. */
PyArrayObject *step_empty_like(PyArrayObject *like);

/* `aten::empty` of what `step_viewed` is asked to show in another shape, `aten::view`; it takes the reference. */
PyArrayObject *step_empty_to_view(int ndim, npy_intp *sizes, int shown, npy_intp *shape, int type);
PyArrayObject *step_viewed(PyArrayObject *a, int shown, npy_intp *shape);

/* A view that was just made of an array: `aten::as_strided`. Takes the reference. */
PyArrayObject *step_strided(PyArrayObject *a, PyArrayObject *made);

/* Every byte of an array in row-major order set to 0: `aten::zero_`. -1 on error. */
int step_zero(PyArrayObject *a);

/* What is already of type int64, asked to be: `aten::to`. -1 on error. */
int step_to_int64(PyArrayObject *a);

/* `aten::mkldnn_convolution` of its arguments if a tap is on; otherwise NULL, without an error. */
PyObject *step_convolve(PyObject *const args[7]);

/* -- what kernels ask of their arguments -- */

/* An array in row-major order that its memory is aligned for, with elements that are only bytes. */
static inline int is_dense(PyObject *o) {
    PyArrayObject *a = (PyArrayObject *)o;
    return PyArray_CheckExact(o) && PyArray_ISCARRAY_RO(a) && !PyDataType_REFCHK(PyArray_DESCR(a));
}

static inline int is_of(PyObject *o, int type) { return is_dense(o) && PyArray_TYPE((PyArrayObject *)o) == type; }

/* A dimension counted from the front, or -1. */
static inline int dim_of(PyObject *o, int ndim) {
    if (!PyLong_CheckExact(o)) return -1;
    int over;
    long dim = PyLong_AsLongAndOverflow(o, &over);
    if (over || dim < -ndim || dim >= ndim) return -1;
    return (int)(dim < 0 ? dim + ndim : dim);
}

/* Uninitialised memory in row-major order, of an array's type. */
static inline PyArrayObject *new_of(PyArrayObject *like, int ndim, npy_intp *sizes) {
    Py_INCREF(PyArray_DESCR(like));
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(like), ndim, sizes, NULL, NULL, 0, NULL);
}

/* Whether two arrays in row-major order have no memory in common. */
static inline int are_apart(PyArrayObject *a, PyArrayObject *b) {
    const char *x = PyArray_BYTES(a), *y = PyArray_BYTES(b);
    return x + PyArray_NBYTES(a) <= y || y + PyArray_NBYTES(b) <= x;
}

/* Whether it is a whole number, and which. */
static inline int number_of(PyObject *o, npy_intp *number) {
    int over = 0;
    if (!PyLong_CheckExact(o)) return 0;
    *number = (npy_intp)PyLong_AsLongAndOverflow(o, &over);
    return !over;
}

/* The numbers of a tuple or list of sizes, or one number: how many, or -1. `sizes` has room for NPY_MAXDIMS. */
static inline int sizes_of(PyObject *o, npy_intp *sizes) {
    int listed = PyTuple_Check(o) || PyList_CheckExact(o);
    Py_ssize_t count = listed ? PySequence_Fast_GET_SIZE(o) : 1;
    if (count > NPY_MAXDIMS) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!number_of(listed ? PySequence_Fast_GET_ITEM(o, i) : o, sizes + i)) return -1;
    }
    return (int)count;
}

/* The numbers of an array, NULL for None; `*fits` becomes 0 unless it is float32 with this many elements. */
static inline float *floats_or_none(PyObject *o, npy_intp size, int *fits) {
    if (o == Py_None) return NULL;
    if (is_of(o, NPY_FLOAT) && PyArray_SIZE((PyArrayObject *)o) == size) return PyArray_DATA((PyArrayObject *)o);
    *fits = 0;
    return NULL;
}

/* Three arrays as a tuple, whose references it takes; NULL with an error if one is missing. */
static inline PyObject *tuple_of_three(PyArrayObject *a, PyArrayObject *b, PyArrayObject *c) {
    PyObject *made = a && b && c ? PyTuple_Pack(3, a, b, c) : NULL;
    Py_XDECREF(a), Py_XDECREF(b), Py_XDECREF(c);
    return made;
}

/* An array of no elements. */
static inline PyArrayObject *empty_floats(void) {
    npy_intp none = 0;
    return (PyArrayObject *)PyArray_SimpleNew(1, &none, NPY_FLOAT);
}

/* Which of three results are asked for; 0 if `o` does not say. */
static inline int mask_of(PyObject *o, int asked[3]) {
    int listed = PyTuple_Check(o) || PyList_CheckExact(o);
    if (!listed || PySequence_Fast_GET_SIZE(o) != 3) return 0;
    for (int i = 0; i < 3; i++) {
        PyObject *one = PySequence_Fast_GET_ITEM(o, i);
        if (!PyBool_Check(one)) return 0;
        asked[i] = one == Py_True;
    }
    return 1;
}

#endif
