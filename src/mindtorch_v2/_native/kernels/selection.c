/* Choosing among the numbers of a row, and the recursions of connectionist temporal classification. */
#include "arrays.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "direct.h"
#include "elementwise.h"
#include "kernels.h"
#include "selection.h"

enum { CALLED_TOP, CALLED_LIKELIHOODS, CALLED_LIKELIHOODS_BACK, CALLED_CTC, CALLED_CTC_BACK, CALLED_DISTANCES,
       CALLED_NONZERO, CALLED_SEARCH };
Counter selection_calls[] = {{"top", 0}, {"likelihoods", 0}, {"likelihoods_back", 0}, {"ctc", 0}, {"ctc_back", 0},
                             {"distances", 0}, {"nonzero", 0}, {"search", 0}, {NULL, 0}};

/* -- the first of a row in order -- */

typedef struct {
    float *made;
    int64_t *where;
    const float *given;
    npy_intp columns, count;
    int largest;
} Top;

/* NaN is larger than all numbers. */
static inline int goes_before(float a, float b, int largest) {
    return largest ? a > b || (a != a && b == b) : a < b || (b != b && a == a);
}

/* The best so far are kept in order: a number that is not among them costs one comparison. */
static void top_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Top it = *(Top *)work;
    (void)share;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *x = it.given + r * it.columns;
        float *best = it.made + r * it.count;
        int64_t *where = it.where + r * it.count;
        npy_intp held = 0;
        for (npy_intp i = 0; i < it.columns; i++) {
            if (held == it.count && !goes_before(x[i], best[held - 1], it.largest)) continue;
            npy_intp at = held < it.count ? held++ : held - 1;
            for (; at && goes_before(x[i], best[at - 1], it.largest); at--) best[at] = best[at - 1], where[at] = where[at - 1];
            best[at] = x[i], where[at] = i;
        }
    }
}

/* top(made, where, given, largest): the first columns of every row of a matrix, in order; the first of equals */
static PyObject *top(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 4)) return NULL;
    if (!is_array(args[0], NPY_FLOAT, 2, 1) || !is_like(args[1], NPY_INT64, 1, args[0]) ||
        !is_array(args[2], NPY_FLOAT, 2, 0) || DIM(args[0], 0) != DIM(args[2], 0) || DIM(args[0], 1) > DIM(args[2], 1) ||
        DIM(args[0], 1) < 1)
        return wrong("expected a matrix and room for its first columns");
    Top it = {DATA(args[0]), DATA(args[1]), DATA(args[2]), DIM(args[2], 1), DIM(args[0], 1), PyObject_IsTrue(args[3])};
    selection_calls[CALLED_TOP].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(top_share, &it, DIM(args[2], 0), 1 + SHARE / (it.columns + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* -- negative log likelihood: (batch, classes, inner) and a class for each of (batch, inner) -- */

typedef struct {
    const float *values, *weight;
    const int64_t *target;
    npy_intp batch, classes, inner;
    long long ignored;
} Likelihood;

/* The arguments at `args`: an array of three dimensions, classes, weights or None, the class that is left out. 1 if
   they fit, 0 with an error, -1 if there is no such class. */
static int likelihood(PyObject *const *args, int written, Likelihood *it) {
    if (!is_array(args[0], NPY_FLOAT, 3, written) ||
        !IS_SHAPED(args[1], NPY_INT64, 0, DIM(args[0], 0), DIM(args[0], 2)) ||
        (args[2] != Py_None && !IS_SHAPED(args[2], NPY_FLOAT, 0, DIM(args[0], 1))))
        return wrong("expected values, classes and a weight for each class"), 0;
    *it = (Likelihood){DATA(args[0]), args[2] == Py_None ? NULL : DATA(args[2]), DATA(args[1]),
                       DIM(args[0], 0), DIM(args[0], 1), DIM(args[0], 2), PyLong_AsLongLong(args[3])};
    if (it->ignored == -1 && PyErr_Occurred()) return 0;
    for (npy_intp i = 0; i < it->batch * it->inner; i++)
        if (it->target[i] != it->ignored && (uint64_t)it->target[i] >= (uint64_t)it->classes) return -1;
    return 1;
}

/* likelihoods(values, target, weight, ignored, made): the loss of each sample into `made`; the sum of all and of their
   weights, or None if there is no such class */
static PyObject *likelihoods(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Likelihood it;
    if (!counted(count, 5)) return NULL;
    int fits = likelihood(args, 0, &it);
    if (!fits) return NULL;
    if (fits < 0) Py_RETURN_NONE;
    if (!is_array(args[4], NPY_FLOAT, 2, 1) || !PyArray_SAMESHAPE((PyArrayObject *)args[4], (PyArrayObject *)args[1]))
        return wrong("expected room for each loss");
    float *made = DATA(args[4]);
    double sum = 0.0, total = 0.0;
    selection_calls[CALLED_LIKELIHOODS].calls++;
    for (npy_intp i = 0; i < it.batch * it.inner; i++) {
        int64_t chosen = it.target[i];
        float weight = chosen == it.ignored ? 0.0f : it.weight ? it.weight[chosen] : 1.0f, loss = 0.0f;
        /* What weighs nothing counts nothing, even where its value is infinite. */
        if (weight != 0.0f) loss = -it.values[(i / it.inner * it.classes + chosen) * it.inner + i % it.inner] * weight;
        made[i] = loss;
        sum += (double)loss, total += (double)weight;
    }
    return Py_BuildValue("(dd)", sum, total);
}

/* likelihoods_back(made, target, weight, ignored, slopes): -weight * slope at each sample's class of `made`, which is
   zero; `slopes` is one number or one for each sample. True, or False if there is no such class. */
static PyObject *likelihoods_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Likelihood it;
    if (!counted(count, 5)) return NULL;
    int fits = likelihood(args, 1, &it);
    if (!fits) return NULL;
    if (fits < 0) Py_RETURN_FALSE;
    PyArrayObject *slopes = (PyArrayObject *)args[4];
    npy_intp each = it.batch * it.inner;
    if (!PyArray_Check(args[4]) || PyArray_TYPE(slopes) != NPY_FLOAT || !PyArray_ISCARRAY_RO(slopes) ||
        (PyArray_SIZE(slopes) != 1 && PyArray_SIZE(slopes) != each))
        return wrong("expected one slope, or one for each sample");
    float *made = DATA(args[0]), *slope = PyArray_DATA(slopes);
    int step = PyArray_SIZE(slopes) != 1;
    selection_calls[CALLED_LIKELIHOODS_BACK].calls++;
    for (npy_intp i = 0; i < each; i++) {
        int64_t chosen = it.target[i];
        float weight = chosen == it.ignored ? 0.0f : it.weight ? it.weight[chosen] : 1.0f;
        if (weight != 0.0f)
            made[(i / it.inner * it.classes + chosen) * it.inner + i % it.inner] = -slope[i * step] * weight;
    }
    Py_RETURN_TRUE;
}

/* -- connectionist temporal classification: time steps, a batch, classes; each target is a row of states -- */

typedef struct {
    const float *log_probs, *loss, *pull, *alpha_in;
    float *alpha, *made, *room;
    const int64_t *states, *inputs, *wanted;
    const npy_bool *skips;
    npy_intp times, batch, classes, count;
} Ctc;

static inline float sum_of_three(float a, float b, float c) {
    float top = a > b ? a : b;
    top = c > top ? c : top;
    if (top == -INFINITY) return top;
    return logf(expf(a - top) + expf(b - top) + expf(c - top)) + top;
}

static void ctc_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Ctc it = *(Ctc *)work;
    (void)share;
    for (ptrdiff_t n = begin; n < end; n++) {
        const int64_t *state = it.states + n * it.count;
        const npy_bool *skips = it.skips + n * it.count;
        npy_intp used = 2 * it.wanted[n] + 1;
        for (npy_intp t = 0; t < it.times; t++) {
            const float *said = it.log_probs + (t * it.batch + n) * it.classes;
            float *now = it.alpha + (n * it.times + t) * it.count, *before = now - it.count;
            for (npy_intp s = 0; s < it.count; s++) {
                float here = -INFINITY;
                if (t == 0) {
                    if (s == 0 || (s == 1 && it.wanted[n])) here = said[state[s]];
                } else if (s < used) {
                    here = sum_of_three(before[s], s > 0 ? before[s - 1] : -INFINITY,
                                        s > 1 && skips[s] ? before[s - 2] : -INFINITY) + said[state[s]];
                }
                now[s] = here;
            }
        }
    }
}

static void ctc_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Ctc it = *(Ctc *)work;
    (void)share;
    for (ptrdiff_t n = begin; n < end; n++) {
        const int64_t *state = it.states + n * it.count;
        const npy_bool *skips = it.skips + n * it.count;
        npy_intp used = 2 * it.wanted[n] + 1, last = it.inputs[n] - 1;
        float *beta = it.room + n * it.count;
        for (npy_intp s = 0; s < it.count; s++) beta[s] = -INFINITY;
        for (npy_intp t = it.times - 1; t >= 0; t--) {
            const float *said = it.log_probs + (t * it.batch + n) * it.classes;
            const float *alpha = it.alpha_in + (n * it.times + t) * it.count;
            float *to = it.made + (t * it.batch + n) * it.classes;
            memset(to, 0, sizeof(float) * (size_t)it.classes);
            if (t > last) continue;
            for (npy_intp s = 0; s < used; s++) {
                float here;
                if (t == last) here = s >= used - 2 ? said[state[s]] : -INFINITY;
                else /* upwards, so that later states still have the later step's values */
                    here = sum_of_three(beta[s], s + 1 < used ? beta[s + 1] : -INFINITY,
                                        s + 2 < used && skips[s + 2] ? beta[s + 2] : -INFINITY) + said[state[s]];
                beta[s] = here;
                float both = alpha[s] + here;
                /* Both count the present step. */
                if (both > -INFINITY) to[state[s]] += expf(both - said[state[s]] + it.loss[n]);
            }
            /* What is impossible has no gradient that is a number. */
            for (npy_intp c = 0; c < it.classes; c++)
                to[c] = isinf(it.loss[n]) ? NAN : (expf(said[c]) - to[c]) * it.pull[n];
        }
    }
}

static int ctc_of(PyObject *const *args, Ctc *it) {
    if (!is_array(args[0], NPY_FLOAT, 3, 0) || !is_array(args[1], NPY_INT64, 2, 0) || DIM(args[1], 0) != DIM(args[0], 1) ||
        !is_like(args[2], NPY_BOOL, 0, args[1]) || !IS_SHAPED(args[3], NPY_INT64, 0, DIM(args[0], 1)) ||
        !IS_SHAPED(args[4], NPY_INT64, 0, DIM(args[0], 1)))
        return wrong("expected scores, and states, skips and lengths that fit"), 0;
    it->log_probs = DATA(args[0]), it->states = DATA(args[1]), it->skips = DATA(args[2]);
    it->inputs = DATA(args[3]), it->wanted = DATA(args[4]);
    it->times = DIM(args[0], 0), it->batch = DIM(args[0], 1), it->classes = DIM(args[0], 2), it->count = DIM(args[1], 1);
    for (npy_intp i = 0; i < it->batch * it->count; i++)
        if (it->states[i] < 0 || it->states[i] >= it->classes) return wrong("a label is out of range"), 0;
    for (npy_intp n = 0; n < it->batch; n++)
        if (it->wanted[n] < 0 || 2 * it->wanted[n] + 1 > it->count || it->inputs[n] > it->times)
            return wrong("a length is out of range"), 0;
    return 1;
}

/* ctc(log_probs, states, skips, inputs, wanted, alpha) */
static PyObject *ctc(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Ctc it = {0};
    if (!counted(count, 6) || !ctc_of(args, &it)) return NULL;
    if (!IS_SHAPED(args[5], NPY_FLOAT, 1, it.batch, it.times, it.count))
        return wrong("expected room for the forward variables");
    it.alpha = DATA(args[5]);
    selection_calls[CALLED_CTC].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(ctc_share, &it, it.batch, 1 + SHARE / 16 / (it.times * it.count + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* ctc_back(log_probs, states, skips, inputs, wanted, alpha, loss, pull, room, made) */
static PyObject *ctc_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Ctc it = {0};
    if (!counted(count, 10) || !ctc_of(args, &it)) return NULL;
    if (!IS_SHAPED(args[5], NPY_FLOAT, 0, it.batch, it.times, it.count) || !IS_SHAPED(args[6], NPY_FLOAT, 0, it.batch) ||
        !IS_SHAPED(args[7], NPY_FLOAT, 0, it.batch) || !is_like(args[8], NPY_FLOAT, 1, args[1]) ||
        !is_like(args[9], NPY_FLOAT, 1, args[0]))
        return wrong("expected variables, losses, gradients and room for results");
    it.alpha_in = DATA(args[5]), it.loss = DATA(args[6]), it.pull = DATA(args[7]), it.room = DATA(args[8]);
    it.made = DATA(args[9]);
    selection_calls[CALLED_CTC_BACK].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(ctc_back_share, &it, it.batch, 1 + SHARE / 16 / (it.times * it.count + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* The arguments of `ctc_loss` or of its backward, and memory for them, `held`. */
typedef struct {
    Ctc it;
    void *held;
    int64_t *inputs, *wanted;
} Spoken;

/* A length for each of the batch, not negative and at most `most`. */
static int lengths_of(PyObject *o, npy_intp batch, int64_t most, int64_t *made) {
    if ((!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) || PySequence_Fast_GET_SIZE(o) != batch) return 0;
    for (npy_intp n = 0; n < batch; n++) {
        npy_intp length;
        if (!number_of(PySequence_Fast_GET_ITEM(o, n), &length) || length < 0 || length > most) return 0;
        made[n] = length;
    }
    return 1;
}

/* Log-probabilities, targets, lengths and the blank: 1, 0 for what is left to others, -1 without memory. The states of a
   target are its labels with blanks before, between and after them; what is not used is blank. */
static int spoken_of(PyObject *const *args, PyObject *blank, Spoken *made) {
    npy_intp none;
    *made = (Spoken){.held = NULL};
    Ctc *it = &made->it;
    if (!is_of(args[0], NPY_FLOAT) || PyArray_NDIM((PyArrayObject *)args[0]) != 3 || !PyArray_SIZE((PyArrayObject *)args[0]) ||
        !is_of(args[1], NPY_INT64) || !number_of(blank, &none))
        return 0;
    PyArrayObject *targets = (PyArrayObject *)args[1];
    it->log_probs = DATA(args[0]);
    it->times = DIM(args[0], 0), it->batch = DIM(args[0], 1), it->classes = DIM(args[0], 2);
    int listed = PyArray_NDIM(targets) == 1;
    if (none < 0 || none >= it->classes || (!listed && (PyArray_NDIM(targets) != 2 || PyArray_DIM(targets, 0) != it->batch)))
        return 0;
    npy_intp room = PyArray_DIM(targets, !listed); /* no target is longer */
    if (!(made->held = malloc(sizeof(int64_t) * (size_t)(2 * it->batch)))) return -1;
    made->inputs = made->held, made->wanted = made->inputs + it->batch;
    it->inputs = made->inputs, it->wanted = made->wanted;
    if (!lengths_of(args[2], it->batch, it->times, made->inputs) || !lengths_of(args[3], it->batch, room, made->wanted))
        return 0;
    npy_intp most = 0, all = 0;
    for (npy_intp n = 0; n < it->batch; n++) most = it->wanted[n] > most ? it->wanted[n] : most, all += it->wanted[n];
    if (listed && all != room) return 0;
    it->count = 2 * most + 1;
    size_t places = (size_t)(it->batch * it->count);
    int64_t *memory = realloc(made->held, sizeof(int64_t) * (size_t)(2 * it->batch) + places * (sizeof(int64_t) + 1));
    if (!memory) return -1;
    made->held = memory, made->inputs = memory, made->wanted = memory + it->batch;
    int64_t *states = memory + 2 * it->batch;
    npy_bool *skips = (npy_bool *)(states + places);
    it->inputs = made->inputs, it->wanted = made->wanted, it->states = states, it->skips = skips;
    const int64_t *label = PyArray_DATA(targets);
    for (npy_intp n = 0; n < it->batch; n++, states += it->count, skips += it->count) {
        for (npy_intp i = 0; i < it->count; i++) states[i] = none, skips[i] = 0;
        for (npy_intp i = 0; i < it->wanted[n]; i++) {
            if (label[i] < 0 || label[i] >= it->classes) return 0;
            states[2 * i + 1] = label[i];
        }
        for (npy_intp i = 3; i < it->count; i += 2) skips[i] = states[i] != states[i - 2];
        label += listed ? it->wanted[n] : room;
    }
    return 1;
}

/* log(exp(a) + exp(b)), as NumPy rounds it. */
static float sum_of_logs(float a, float b) {
    if (a == b) return a + 0.693147180559945309417f;
    float away = a - b;
    return away > 0 ? a + log1pf(expf(-away)) : away <= 0 ? b + log1pf(expf(away)) : away;
}

/* ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity): the losses and the variables */
static PyObject *ctc_loss(PyObject *const *args, Py_ssize_t count) {
    Spoken said;
    int fits = count == 6 ? spoken_of(args, args[4], &said) : 0;
    if (count == 6 && fits != 1) free(said.held);
    if (fits != 1) return fits ? PyErr_NoMemory() : LEFT;
    Ctc it = said.it;
    npy_intp sizes[3] = {it.batch, it.times, it.count};
    PyArrayObject *alpha = (PyArrayObject *)PyArray_SimpleNew(3, sizes, NPY_FLOAT);
    PyArrayObject *loss = alpha ? (PyArrayObject *)PyArray_SimpleNew(1, sizes, NPY_FLOAT) : NULL;
    if (loss) {
        it.alpha = PyArray_DATA(alpha);
        UNLOCKED(PyArray_SIZE(alpha) > MANY / 16,
                 pool_run(ctc_share, &it, it.batch, 1 + SHARE / 16 / (it.times * it.count + 1)));
        for (npy_intp n = 0; n < it.batch; n++) {
            int64_t heard = it.inputs[n], wanted = it.wanted[n];
            const float *last = it.alpha + (n * it.times + (heard ? heard - 1 : 0)) * it.count;
            float likely = sum_of_logs(last[2 * wanted], wanted ? last[2 * wanted - 1] : -INFINITY);
            /* Without input, an empty target is certain and any other impossible. */
            ((float *)PyArray_DATA(loss))[n] = heard ? -likely : wanted ? INFINITY : 0.0f;
        }
    }
    free(said.held);
    PyObject *made = loss ? PyTuple_Pack(2, loss, alpha) : NULL;
    Py_XDECREF(loss), Py_XDECREF(alpha);
    return made;
}

static int is_vector_of(PyObject *o, npy_intp size) {
    return is_of(o, NPY_FLOAT) && PyArray_NDIM((PyArrayObject *)o) == 1 && DIM(o, 0) == size;
}

/* ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, loss, alpha, blank, zero_infinity) */
static PyObject *ctc_loss_backward(PyObject *const *args, Py_ssize_t count) {
    Spoken said = {.held = NULL};
    int fits = count == 9 && PyBool_Check(args[8]) ? spoken_of(args + 1, args[7], &said) : 0;
    Ctc it = said.it;
    if (fits == 1)
        fits = is_vector_of(args[0], it.batch) && is_vector_of(args[5], it.batch) && is_of(args[6], NPY_FLOAT) &&
               PyArray_NDIM((PyArrayObject *)args[6]) == 3 && DIM(args[6], 0) == it.batch &&
               DIM(args[6], 1) == it.times && DIM(args[6], 2) == it.count;
    if (fits == 1 && !(it.room = malloc(sizeof(float) * (size_t)(it.batch * it.count)))) fits = -1;
    if (fits != 1) {
        free(said.held);
        return fits ? PyErr_NoMemory() : LEFT;
    }
    PyArrayObject *made = new_of((PyArrayObject *)args[1], 3, PyArray_DIMS((PyArrayObject *)args[1]));
    if (made) {
        it.pull = DATA(args[0]), it.loss = DATA(args[5]), it.alpha_in = DATA(args[6]), it.made = PyArray_DATA(made);
        UNLOCKED(it.batch * it.times * it.count > MANY / 16,
                 pool_run(ctc_back_share, &it, it.batch, 1 + SHARE / 16 / (it.times * it.count + 1)));
        for (npy_intp n = 0; args[8] == Py_True && n < it.batch; n++)
            for (npy_intp t = 0; isinf(it.loss[n]) && t < it.times; t++)
                memset(it.made + (t * it.batch + n) * it.classes, 0, sizeof(float) * (size_t)it.classes);
    }
    free(said.held), free(it.room);
    return (PyObject *)made;
}

/* distances(made, a, b, pull, distance): of rows of matrices; with the last two, the gradient of `a` */
static PyObject *distances(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 5)) return NULL;
    int back = args[4] != Py_None;
    if (!is_array(args[0], NPY_FLOAT, 2, 1) || !is_array(args[1], NPY_FLOAT, 2, 0) || !is_array(args[2], NPY_FLOAT, 2, 0) ||
        DIM(args[1], 1) != DIM(args[2], 1) || DIM(args[0], 0) != DIM(args[1], 0) ||
        DIM(args[0], 1) != (back ? DIM(args[1], 1) : DIM(args[2], 0)))
        return wrong("expected matrices that fit");
    for (int i = 3; back && i < 5; i++)
        if (!IS_SHAPED(args[i], NPY_FLOAT, 0, DIM(args[1], 0), DIM(args[2], 0)))
            return wrong("expected distances that fit");
    selection_calls[CALLED_DISTANCES].calls++;
    Py_BEGIN_ALLOW_THREADS level->distances(DATA(args[0]), DATA(args[1]), DATA(args[2]), back ? DATA(args[3]) : NULL,
                                            back ? DATA(args[4]) : NULL, DIM(args[1], 0), DIM(args[2], 0), DIM(args[1], 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* -- where something is -- */

/* Whether eight bytes from here are 0. */
static inline int nothing(const uint8_t *bytes) {
    uint64_t all;
    memcpy(&all, bytes, sizeof all);
    return !all;
}

/* Rows of bytes, in blocks of some rows that are looked through apart: how many of a block are not 0, then where. */
enum { BLOCKS = 64 };
typedef struct {
    const uint8_t *bytes;
    int ndim;
    const npy_intp *sizes;
    npy_intp rows, found, from[BLOCKS + 1]; /* where the positions of a block begin */
    int64_t *made;
} Positions;

static void count_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Positions *it = work;
    (void)share;
    enum { WIDTH = 16, MOST = 255 };
    npy_intp width = it->sizes[it->ndim - 1];
    for (ptrdiff_t block = begin; block < end; block++) {
        npy_intp at = it->rows * block / BLOCKS * width, last = it->rows * (block + 1) / BLOCKS * width, found = 0;
        while (last - at >= WIDTH) {
            uint8_t sums[WIDTH] = {0};
            for (int i = 0; i < MOST && last - at >= WIDTH; i++, at += WIDTH)
                for (int j = 0; j < WIDTH; j++) sums[j] += it->bytes[at + j] != 0;
            for (int j = 0; j < WIDTH; j++) found += sums[j];
        }
        for (; at < last; at++) found += it->bytes[at] != 0;
        it->from[block + 1] = found;
    }
}

/* Positions of bytes that are not 0, `(dimension, position)`; rows are along the last dimension. */
static void positions_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Positions *it = work;
    (void)share;
    enum { SOME = 256 };
    int last = it->ndim - 1;
    npy_intp width = it->sizes[last], at[NPY_MAXDIMS], row = it->rows * begin / BLOCKS, left = row, k = it->from[begin];
    for (int d = last - 1; d >= 0; d--) at[d] = left % it->sizes[d], left /= it->sizes[d];
    for (; row < it->rows * end / BLOCKS; row++) {
        const uint8_t *bytes = it->bytes + row * width;
        npy_intp before = k;
        for (npy_intp from = 0; from < width; from += SOME) {
            npy_intp to = width - from < SOME ? width : from + SOME, held = 0, j = from;
            int64_t places[SOME + 1]; /* without a branch for each byte: the next one overwrites what is not found */
            for (; j + 8 <= to; j += 8) {
                if (nothing(bytes + j)) continue;
                for (int i = 0; i < 8; i++) places[held] = j + i, held += bytes[j + i] != 0;
            }
            for (; j < to; j++) places[held] = j, held += bytes[j] != 0;
            memcpy(it->made + last * it->found + k, places, sizeof *places * (size_t)held);
            k += held;
        }
        for (int d = 0; d < last; d++)
            for (npy_intp i = before; i < k; i++) it->made[d * it->found + i] = at[d];
        for (int d = last - 1; d >= 0 && ++at[d] == it->sizes[d]; d--) at[d] = 0;
    }
}

/* nonzero(mask): where it is set, `(dimension, position)`, or None for arrays that NumPy has to take */
static PyObject *nonzero(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 1)) return NULL;
    PyArrayObject *mask = (PyArrayObject *)args[0];
    if (!PyArray_CheckExact(args[0]) || PyArray_TYPE(mask) != NPY_BOOL || !PyArray_NDIM(mask) ||
        !PyArray_IS_C_CONTIGUOUS(mask) || !PyArray_SIZE(mask))
        Py_RETURN_NONE;
    npy_intp size = PyArray_SIZE(mask);
    int ndim = PyArray_NDIM(mask);
    Positions it = {.bytes = PyArray_DATA(mask), .ndim = ndim, .sizes = PyArray_DIMS(mask),
                    .rows = size / PyArray_DIM(mask, ndim - 1)};
    UNLOCKED(size > MANY, pool_run(count_share, &it, BLOCKS, 1 + SHARE * BLOCKS / size));
    for (int block = 0; block < BLOCKS; block++) it.from[block + 1] += it.from[block];
    npy_intp sizes[2] = {ndim, it.from[BLOCKS]};
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(2, sizes, NPY_INT64);
    if (!made) return NULL;
    selection_calls[CALLED_NONZERO].calls++;
    it.found = sizes[1], it.made = PyArray_DATA(made);
    UNLOCKED(size > MANY, pool_run(positions_share, &it, BLOCKS, 1 + SHARE * BLOCKS / size));
    return (PyObject *)made;
}

/* -- kernels that look for themselves -- */

enum { EACH_LOSS, MEAN_LOSS, SUM_LOSS };

/* A matrix or its shape, classes, weights or None, a reduction and the class that is left out. */
static int likelihood_of(PyArrayObject *values, PyObject *const *args, long *reduction, Likelihood *it) {
    if (PyArray_NDIM(values) != 2 || !PyArray_SIZE(values) || !is_of(args[0], NPY_INT64) ||
        PyArray_NDIM((PyArrayObject *)args[0]) != 1 || DIM(args[0], 0) != PyArray_DIM(values, 0) ||
        (args[1] != Py_None && (!is_of(args[1], NPY_FLOAT) || PyArray_NDIM((PyArrayObject *)args[1]) != 1 ||
                                DIM(args[1], 0) != PyArray_DIM(values, 1))) ||
        !PyLong_CheckExact(args[2]) || !PyLong_CheckExact(args[3]))
        return 0;
    int over;
    *reduction = PyLong_AsLongAndOverflow(args[2], &over);
    *it = (Likelihood){PyArray_DATA(values), args[1] == Py_None ? NULL : DATA(args[1]), DATA(args[0]),
                       PyArray_DIM(values, 0), PyArray_DIM(values, 1), 1, PyLong_AsLongLongAndOverflow(args[3], &over)};
    if (over) return 0;
    for (npy_intp i = 0; i < it->batch; i++)
        if (it->target[i] != it->ignored && (uint64_t)it->target[i] >= (uint64_t)it->classes) return 0;
    return 1;
}

/* nll_loss_forward(a, target, weight, reduction, ignore_index) */
static PyObject *nll_loss_forward(PyObject *const *args, Py_ssize_t count) {
    Likelihood it;
    long reduction;
    if (count != 5 || !is_of(args[0], NPY_FLOAT) ||
        !likelihood_of((PyArrayObject *)args[0], args + 1, &reduction, &it))
        return LEFT;
    npy_intp batch = it.batch;
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(reduction == EACH_LOSS, &batch, NPY_FLOAT);
    PyArrayObject *total = made ? (PyArrayObject *)PyArray_SimpleNew(0, NULL, NPY_FLOAT) : NULL;
    if (total) {
        double sum = 0.0, weights = 0.0;
        for (npy_intp i = 0; i < it.batch; i++) {
            int64_t chosen = it.target[i];
            float weight = chosen == it.ignored ? 0.0f : it.weight ? it.weight[chosen] : 1.0f, loss = 0.0f;
            if (weight != 0.0f) loss = -it.values[i * it.classes + chosen] * weight;
            if (reduction == EACH_LOSS) ((float *)PyArray_DATA(made))[i] = loss;
            sum += (double)loss, weights += (double)weight;
        }
        if (reduction != EACH_LOSS)
            *(float *)PyArray_DATA(made) = (float)(reduction != MEAN_LOSS ? sum : weights != 0.0 ? sum / weights : NAN);
        *(float *)PyArray_DATA(total) = (float)weights;
    }
    PyObject *both = total ? PyTuple_Pack(2, made, total) : NULL;
    Py_XDECREF(made), Py_XDECREF(total);
    return both;
}

/* nll_loss_backward(grad, a, target, weight, reduction, ignore_index, total_weight) */
static PyObject *nll_loss_backward(PyObject *const *args, Py_ssize_t count) {
    Likelihood it;
    long reduction;
    if (count != 7 || !is_of(args[0], NPY_FLOAT) || !is_of(args[1], NPY_FLOAT) || !is_of(args[6], NPY_FLOAT) ||
        PyArray_SIZE((PyArrayObject *)args[6]) != 1 ||
        !likelihood_of((PyArrayObject *)args[1], args + 2, &reduction, &it) ||
        PyArray_SIZE((PyArrayObject *)args[0]) != (reduction == EACH_LOSS ? it.batch : 1))
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[1], *made = new_of(a, 2, PyArray_DIMS(a));
    if (!made || step_zero(made)) {
        Py_XDECREF(made);
        return NULL;
    }
    const float *slope = DATA(args[0]), by = reduction == MEAN_LOSS ? *(float *)DATA(args[6]) : 1.0f;
    float *to = PyArray_DATA(made);
    for (npy_intp i = 0; i < it.batch; i++) {
        int64_t chosen = it.target[i];
        float weight = chosen == it.ignored ? 0.0f : it.weight ? it.weight[chosen] : 1.0f;
        if (weight != 0.0f) to[i * it.classes + chosen] = -(slope[reduction == EACH_LOSS ? i : 0] / by) * weight;
    }
    return (PyObject *)made;
}

/* topk(a, k, dim, largest, sorted): of rows */
static PyObject *topk(PyObject *const *args, Py_ssize_t count) {
    npy_intp k, sizes[NPY_MAXDIMS];
    if (count != 5 || !is_of(args[0], NPY_FLOAT) || !number_of(args[1], &k) ||
        !PyBool_Check(args[3]))
        return LEFT;
    PyArrayObject *a = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(a), last = ndim - 1;
    if (!ndim || dim_of(args[2], ndim) != last || !PyArray_SIZE(a) || k < 1 || k > PyArray_DIM(a, last) || k > 64) return LEFT;
    memcpy(sizes, PyArray_DIMS(a), sizeof *sizes * (size_t)ndim);
    sizes[last] = k;
    PyArrayObject *made = new_of(a, ndim, sizes), *where = made ? (PyArrayObject *)PyArray_SimpleNew(ndim, sizes, NPY_INT64) : NULL;
    PyObject *both = NULL;
    if (where) {
        Top it = {PyArray_DATA(made), PyArray_DATA(where), PyArray_DATA(a), PyArray_DIM(a, last), k, args[3] == Py_True};
        UNLOCKED(PyArray_SIZE(a) > MANY,
                 pool_run(top_share, &it, PyArray_SIZE(a) / it.columns, 1 + SHARE / (it.columns + 1)));
        both = PyTuple_Pack(2, made, where);
    }
    Py_XDECREF(made), Py_XDECREF(where);
    return both;
}

DirectEntry selection_direct[] = {{"nll_loss_forward", nll_loss_forward, 0}, {"nll_loss_backward", nll_loss_backward, 0},
                                  {"topk", topk, 0}, {"ctc_loss", ctc_loss, 0},
                                  {"ctc_loss_backward", ctc_loss_backward, 0}, {NULL, NULL, 0}};

/* -- where numbers belong in sorted rows -- */

typedef struct {
    int64_t *made;
    const float *sorted, *given;
    npy_intp length, each; /* of a sorted row; numbers that are looked for in it */
    int right;
} Search;

/* NaN belongs at the end. */
static inline int goes_on(float middle, float x, int right) { return !((middle > x) | (!right & (middle == x))); }

/* A product instead of a branch that depends on the numbers. */
static void search_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Search it = *(Search *)work;
    (void)share;
    for (ptrdiff_t i = begin; i < end; i++) {
        const float *row = it.sorted + i / it.each * it.length;
        float x = it.given[i];
        npy_intp low = 0, left = it.length;
        for (; left > 1; left -= left / 2) low += left / 2 * goes_on(row[low + left / 2 - 1], x, it.right);
        it.made[i] = low + (left && goes_on(row[low], x, it.right));
    }
}

/* search(sorted, given, right): a new array of int64 like `given`, or None. `sorted` is one row, or one for each of
   `given`'s. */
static PyObject *search(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 3)) return NULL;
    PyArrayObject *sorted = (PyArrayObject *)args[0], *given = (PyArrayObject *)args[1];
    if (!is_plain(args[0]) || !is_plain(args[1]) || !PyArray_NDIM(sorted) || !PyArray_SIZE(given)) Py_RETURN_NONE;
    Search it = {NULL, PyArray_DATA(sorted), PyArray_DATA(given), PyArray_DIM(sorted, PyArray_NDIM(sorted) - 1),
                 PyArray_SIZE(given), PyObject_IsTrue(args[2])};
    if (PyArray_NDIM(sorted) > 1) {
        if (PyArray_NDIM(given) != PyArray_NDIM(sorted) ||
            memcmp(PyArray_DIMS(given), PyArray_DIMS(sorted), sizeof(npy_intp) * (size_t)(PyArray_NDIM(sorted) - 1)))
            Py_RETURN_NONE;
        it.each = PyArray_DIM(given, PyArray_NDIM(given) - 1);
    }
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(given), PyArray_DIMS(given), NPY_INT64);
    if (!made) return NULL;
    it.made = PyArray_DATA(made);
    selection_calls[CALLED_SEARCH].calls++;
    UNLOCKED(PyArray_SIZE(given) > MANY, pool_run(search_share, &it, PyArray_SIZE(given), SHARE / 8));
    return (PyObject *)made;
}

#define FAST(NAME) {#NAME, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {FAST(likelihoods), FAST(likelihoods_back), FAST(top), FAST(ctc), FAST(ctc_back), FAST(distances),
                                FAST(nonzero), FAST(search),
                                {NULL, NULL, 0, NULL}};

int selection_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
