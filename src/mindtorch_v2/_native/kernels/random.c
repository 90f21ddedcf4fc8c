/* Draws from MT19937 as PyTorch's CPU generator makes them; `rng.py` says which words each draw takes.

   The generator is NumPy's, by its public C interface. Normals in float32 round where PyTorch's AVX2 kernel rounds, so
   nothing here may be fused but what is written as fused: `rng_cephes.py` is the same in NumPy, step by step. */
#include "arrays.h"

#include <numpy/random/bitgen.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "arguments.h"
#include "random.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

#if defined(__x86_64__)
#define WITH_FMA __attribute__((target("avx2,fma")))
#else
#define WITH_FMA
#endif

enum { BLOCK = 16, HALF = 8 };

static uint32_t word(bitgen_t *bits) { return bits->next_uint32(bits->state); }

/* The word drawn first is the high half. */
static uint64_t two_words(bitgen_t *bits) {
    uint64_t high = word(bits);
    return high << 32 | word(bits);
}

static float unit_float(bitgen_t *bits) { return (float)(word(bits) & 0xffffff) * 0x1p-24f; }
static double unit_double(bitgen_t *bits) { return (double)(two_words(bits) & 0x1fffffffffffff) * 0x1p-53; }

WITH_FMA static void logarithms(float *values) {
    static const float SERIES[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                   -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                   2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
    for (int i = 0; i < HALF; i++) {
        int32_t bits;
        memcpy(&bits, values + i, 4);
        int32_t mantissa = (bits & 0x007fffff) | 0x3f000000, below = mantissa < 0x3f3504f3;
        float exponent = (float)((bits >> 23) - below - 126), x;
        mantissa += below << 23;
        memcpy(&x, &mantissa, 4);
        x = x - 1.0f;
        float y = fmaf(x, SERIES[0], SERIES[1]);
        for (int k = 2; k < 9; k++) y = fmaf(y, x, SERIES[k]);
        y = y * x;
        float square = x * x;
        y = fmaf(y, square, exponent * -2.12194440e-4f);
        y = y - square * 0.5f;
        y = y + x;
        values[i] = fmaf(exponent, 0.693359375f, y);
    }
}

WITH_FMA static void turns(const float *angles, float *sines, float *cosines) {
    for (int i = 0; i < HALF; i++) {
        float x = angles[i];
        int32_t octant = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
        float steps = (float)octant;
        x = fmaf(steps, -0.78515625f, x);
        x = fmaf(steps, -2.4187564849853515625e-4f, x);
        x = fmaf(steps, -3.77489497744594108e-8f, x);
        float square = x * x;
        float even = fmaf(square, 2.443315711809948e-5f, -1.388731625493765e-3f);
        even = fmaf(even, square, 4.166664568298827e-2f);
        even = even * square;
        float odd = fmaf(square, -1.9515295891e-4f, 8.3321608736e-3f);
        odd = fmaf(odd, square, -1.6666654611e-1f);
        odd = odd * square;
        even = fmaf(even, square, square * -0.5f);
        even = even + 1.0f;
        odd = fmaf(odd, x, x);
        int swap = octant >> 1 & 1;
        float sine = swap ? even : odd, cosine = swap ? odd : even;
        uint32_t sign = (uint32_t)octant << 29 & 0x80000000u, other = sign ^ ((uint32_t)octant << 30 & 0x80000000u), b;
        memcpy(&b, &sine, 4);
        b ^= sign;
        memcpy(sines + i, &b, 4);
        memcpy(&b, &cosine, 4);
        b ^= other;
        memcpy(cosines + i, &b, 4);
    }
}

/* Sixteen uniforms become sixteen normals: 8 radii and 8 angles, 8 cosines and then 8 sines. */
WITH_FMA static void box_muller(float *block, float std, float mean) {
    float radius[HALF], angle[HALF], sine[HALF], cosine[HALF];
    for (int i = 0; i < HALF; i++) radius[i] = 1.0f - block[i];
    logarithms(radius);
    for (int i = 0; i < HALF; i++) radius[i] = sqrtf(radius[i] * -2.0f);
    for (int i = 0; i < HALF; i++) angle[i] = block[HALF + i] * 6.283185307179586f;
    turns(angle, sine, cosine);
    for (int i = 0; i < HALF; i++) block[i] = fmaf(radius[i] * cosine[i], std, mean);
    for (int i = 0; i < HALF; i++) block[HALF + i] = fmaf(radius[i] * sine[i], std, mean);
}

/* 16 elements or more: uniforms everywhere, blocks of 16 made normal; if some remain, the last 16 are drawn again. */
static void normals(bitgen_t *bits, float *made, npy_intp count, float std, float mean) {
    for (npy_intp i = 0; i < count; i++) made[i] = unit_float(bits);
    npy_intp whole = count - count % BLOCK;
    for (npy_intp i = 0; i < whole; i += BLOCK) box_muller(made + i, std, mean);
    if (whole < count) {
        float *last = made + count - BLOCK;
        for (int i = 0; i < BLOCK; i++) last[i] = unit_float(bits);
        box_muller(last, std, mean);
    }
}

static int has_fma(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 1;
#endif
}

static bitgen_t *generator(PyObject *capsule) { return PyCapsule_GetPointer(capsule, "BitGenerator"); }

/* The data of a contiguous array of one type that may be written to. */
static void *filled(PyObject *o, int type, npy_intp *size) {
    PyArrayObject *a = (PyArrayObject *)o;
    if (!PyArray_Check(o) || PyArray_TYPE(a) != type || !PyArray_ISCARRAY(a)) {
        PyErr_SetString(PyExc_ValueError, "kernels: expected a contiguous array of another type");
        return NULL;
    }
    *size = PyArray_SIZE(a);
    return PyArray_DATA(a);
}

#define DRAW(SIZE, ...)                                                                                                \
    do {                                                                                                               \
        if ((SIZE) > 4096) {                                                                                           \
            Py_BEGIN_ALLOW_THREADS __VA_ARGS__;                                                                        \
            Py_END_ALLOW_THREADS                                                                                       \
        } else {                                                                                                       \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
    } while (0)

/* random_uniform(capsule, made): float32 or float64 of [0, 1) */
static PyObject *random_uniform(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size;
    if (!counted(count, 2) || !(bits = generator(args[0]))) return NULL;
    if (PyArray_Check(args[1]) && PyArray_TYPE((PyArrayObject *)args[1]) == NPY_DOUBLE) {
        double *wide = filled(args[1], NPY_DOUBLE, &size);
        if (!wide) return NULL;
        DRAW(size, for (npy_intp i = 0; i < size; i++) wide[i] = unit_double(bits));
        Py_RETURN_NONE;
    }
    float *made = filled(args[1], NPY_FLOAT, &size);
    if (!made) return NULL;
    DRAW(size, for (npy_intp i = 0; i < size; i++) made[i] = unit_float(bits));
    Py_RETURN_NONE;
}

/* random_normal(capsule, made, mean, std): float32, 16 elements or more */
static PyObject *random_normal(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size;
    if (!counted(count, 4) || !(bits = generator(args[0]))) return NULL;
    float *made = filled(args[1], NPY_FLOAT, &size);
    double mean = PyFloat_AsDouble(args[2]), std = PyFloat_AsDouble(args[3]);
    if (!made || PyErr_Occurred()) return NULL;
    if (size < BLOCK) return PyErr_Format(PyExc_ValueError, "kernels: normals come in blocks of %d", BLOCK);
    DRAW(size, normals(bits, made, size, (float)std, (float)mean));
    Py_RETURN_NONE;
}

/* random_pairs(capsule, made): float64 normals, two from each two uniforms */
static PyObject *random_pairs(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size;
    if (!counted(count, 2) || !(bits = generator(args[0]))) return NULL;
    double *made = filled(args[1], NPY_DOUBLE, &size);
    if (!made) return NULL;
    for (npy_intp i = 0; i + 1 < size; i += 2) {
        double turn = unit_double(bits), quantile = unit_double(bits);
        double length = sqrt(-2.0 * log1p(-quantile)), angle = 6.283185307179586 * turn;
        made[i] = length * cos(angle);
        made[i + 1] = length * sin(angle);
    }
    Py_RETURN_NONE;
}

/* random_few(capsule, made, mean, std, kept): fewer than 16 float32 normals, in float64 and then rounded. `kept` is the
   second one of a pair that was drawn before, or None; the same is returned. */
WITH_FMA static PyObject *random_few(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size;
    if (!counted(count, 5) || !(bits = generator(args[0]))) return NULL;
    float *made = filled(args[1], NPY_FLOAT, &size);
    double mean = PyFloat_AsDouble(args[2]), std = PyFloat_AsDouble(args[3]), kept = 0.0;
    int has = args[4] != Py_None;
    if (has) kept = PyFloat_AsDouble(args[4]);
    if (!made || PyErr_Occurred()) return NULL;
    for (npy_intp i = 0; i < size; i++) {
        double drawn = kept;
        if (!has) {
            double turn = unit_double(bits), quantile = unit_double(bits);
            double length = sqrt(-2.0 * log1p(-quantile)), angle = 6.283185307179586 * turn;
            drawn = length * cos(angle), kept = length * sin(angle);
        }
        has = !has;
        made[i] = (float)fma(drawn, std, mean);
    }
    if (has) return PyFloat_FromDouble(kept);
    Py_RETURN_NONE;
}

/* random_integers(capsule, made, span, low, wide): int64; a span of 0 stands for 2**64 */
static PyObject *random_integers(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size;
    if (!counted(count, 5) || !(bits = generator(args[0]))) return NULL;
    int64_t *made = filled(args[1], NPY_INT64, &size);
    uint64_t span = PyLong_AsUnsignedLongLong(args[2]), low = PyLong_AsUnsignedLongLongMask(args[3]);
    int wide = PyObject_IsTrue(args[4]);
    if (!made || PyErr_Occurred()) return NULL;
    if (wide) DRAW(size, for (npy_intp i = 0; i < size; i++) {
            uint64_t drawn = two_words(bits);
            made[i] = (int64_t)((span ? drawn % span : drawn) + low);
        });
    else if (span < 1 || span >> 32) return PyErr_Format(PyExc_ValueError, "kernels: one word has 32 bits");
    else DRAW(size, for (npy_intp i = 0; i < size; i++) made[i] = (int64_t)(word(bits) % (uint32_t)span + low));
    Py_RETURN_NONE;
}

/* random_permutation(capsule, made): int64, Fisher-Yates from the front */
static PyObject *random_permutation(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size;
    if (!counted(count, 2) || !(bits = generator(args[0]))) return NULL;
    int64_t *made = filled(args[1], NPY_INT64, &size);
    if (!made) return NULL;
    if (size >> 32) return PyErr_Format(PyExc_ValueError, "kernels: one word has 32 bits");
    DRAW(size, {
        for (npy_intp i = 0; i < size; i++) made[i] = i;
        for (npy_intp i = 0; i + 1 < size; i++) {
            npy_intp other = i + (npy_intp)(word(bits) % (uint32_t)(size - i));
            int64_t kept = made[i];
            made[i] = made[other];
            made[other] = kept;
        }
    });
    Py_RETURN_NONE;
}

/* random_bernoulli(capsule, made, threshold): float32 or bool, 1 where 53 bits are below the threshold */
static PyObject *random_bernoulli(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size;
    if (!counted(count, 3) || !(bits = generator(args[0]))) return NULL;
    uint64_t limit = PyLong_AsUnsignedLongLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    if (PyArray_Check(args[1]) && PyArray_TYPE((PyArrayObject *)args[1]) == NPY_BOOL) {
        npy_bool *marks = filled(args[1], NPY_BOOL, &size);
        if (!marks) return NULL;
        DRAW(size, for (npy_intp i = 0; i < size; i++) marks[i] = (two_words(bits) & 0x1fffffffffffff) < limit);
        Py_RETURN_NONE;
    }
    float *made = filled(args[1], NPY_FLOAT, &size);
    if (!made) return NULL;
    DRAW(size, for (npy_intp i = 0; i < size; i++) made[i] = (two_words(bits) & 0x1fffffffffffff) < limit);
    Py_RETURN_NONE;
}

/* random_bernoulli_each(capsule, made, chances): float32; True, or False, with nothing drawn, if a chance is none */
static PyObject *random_bernoulli_each(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size;
    if (!counted(count, 3) || !(bits = generator(args[0]))) return NULL;
    float *made = filled(args[1], NPY_FLOAT, &size);
    if (!made) return NULL;
    PyArrayObject *chances = (PyArrayObject *)args[2];
    if (!PyArray_Check(args[2]) || PyArray_TYPE(chances) != NPY_FLOAT || !PyArray_ISCARRAY_RO(chances) ||
        PyArray_SIZE(chances) != size)
        return wrong("expected as many contiguous float32");
    const float *p = PyArray_DATA(chances);
    int fine = 1;
    for (npy_intp i = 0; i < size; i++) fine &= p[i] >= 0.0f && p[i] <= 1.0f;
    if (!fine) Py_RETURN_FALSE;
    DRAW(size, for (npy_intp i = 0; i < size; i++) made[i] = unit_float(bits) < p[i]);
    Py_RETURN_TRUE;
}

/* random_weighted(capsule, made, weights, sums): of each row of weights, places drawn with replacement. `sums` is room
   for one row. True, or False, with nothing drawn, if weights are none. */
static PyObject *random_weighted(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size, columns;
    if (!counted(count, 4) || !(bits = generator(args[0]))) return NULL;
    int64_t *made = filled(args[1], NPY_INT64, &size);
    float *sums = made ? filled(args[3], NPY_FLOAT, &columns) : NULL;
    if (!sums) return NULL;
    PyArrayObject *weights = (PyArrayObject *)args[2];
    if (!PyArray_Check(args[2]) || PyArray_TYPE(weights) != NPY_FLOAT || !PyArray_ISCARRAY_RO(weights) || !columns ||
        PyArray_SIZE(weights) % columns || (PyArray_SIZE(weights) && size % (PyArray_SIZE(weights) / columns)))
        return wrong("expected rows of weights");
    npy_intp rows = PyArray_SIZE(weights) / columns, each = rows ? size / rows : 0;
    const float *w = PyArray_DATA(weights);
    for (npy_intp r = 0; r < rows; r++) {
        int fine = 1, any = 0;
        for (npy_intp i = 0; i < columns; i++)
            fine &= w[r * columns + i] >= 0.0f && w[r * columns + i] < INFINITY, any |= w[r * columns + i] > 0.0f;
        if (!fine || !any) Py_RETURN_FALSE;
    }
    DRAW(rows * columns, for (npy_intp r = 0; r < rows; r++) {
        float sum = 0.0f;
        for (npy_intp i = 0; i < columns; i++) sums[i] = sum = sum + w[r * columns + i];
        for (npy_intp k = 0; k < each; k++) {
            double wanted = unit_double(bits);
            npy_intp low = 0, high = columns;
            while (low < high) {
                npy_intp middle = low + (high - low) / 2;
                if ((double)(sums[middle] / sum) < wanted) low = middle + 1;
                else high = middle;
            }
            made[r * each + k] = low;
        }
    });
    Py_RETURN_TRUE;
}

/* The C library's `lgamma` writes a sign into a global variable, which threads share. */
static double log_gamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

/* What is left of log(k!) after Stirling's formula for it. */
static double stirling_rest(double k) {
    return log_gamma(k + 1) - (0.5 * log(2 * M_PI) + (k + 0.5) * log(k + 1) - (k + 1));
}

/* The samplers of `rng_counts.py`, which says whose they are. */
static double poisson_number(bitgen_t *bits, double rate) {
    if (!(rate > 0)) return 0;
    if (rate < 10) {
        double limit = exp(-rate), product = 1, k = 0;
        while ((product *= unit_double(bits)) > limit) k++;
        return k;
    }
    double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    for (;;) {
        double u = unit_double(bits) - 0.5, v = unit_double(bits), near = 0.5 - fabs(u);
        double k = floor((2 * a / near + b) * u + rate + 0.43);
        if (near >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
        if (k < 0 || (near < 0.013 && v > near)) continue;
        double level = log(v) + log(1.1239 + 1.1328 / (b - 3.4)) - log(a / (near * near) + b);
        if (level <= -rate + k * log(rate) - log_gamma(k + 1)) return k;
    }
}

static double few_successes(bitgen_t *bits, double trials, double p) {
    double k = 0, reached = 0, rate = log1p(-p);
    for (;; k++) {
        reached += ceil(log(unit_double(bits)) / rate);
        if (!(reached <= trials)) return k;
    }
}

static double many_successes(bitgen_t *bits, double trials, double p) {
    double spread = sqrt(trials * p * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
    double odds = p / (1 - p), mode = floor((trials + 1) * p);
    for (;;) {
        double u = unit_double(bits) - 0.5, v = unit_double(bits), near = 0.5 - fabs(u);
        double k = floor((2 * a / near + b) * u + trials * p + 0.5);
        if (near >= 0.07 && v <= 0.92 - 4.2 / b) return k;
        if (k < 0 || k > trials) continue;
        double level = log(v * ((2.83 + 5.1 / b) * spread) / (a / (near * near) + b));
        double bound = (mode + 0.5) * log((mode + 1) / (odds * (trials - mode + 1))) +
                       (trials + 1) * log((trials - mode + 1) / (trials - k + 1)) +
                       (k + 0.5) * log(odds * (trials - k + 1) / (k + 1)) + stirling_rest(mode) +
                       stirling_rest(trials - mode) - stirling_rest(k) - stirling_rest(trials - k);
        if (level <= bound) return k;
    }
}

static double binomial_number(bitgen_t *bits, double trials, double p) {
    if (!(trials > 0) || p <= 0) return 0;
    if (p >= 1) return trials;
    if (p != p) return NAN;
    double q = p <= 0.5 ? p : 1 - p;
    double k = trials * q >= 10 ? many_successes(bits, trials, q) : few_successes(bits, trials, q);
    return p <= 0.5 ? k : trials - k;
}

/* random_poisson(capsule, made): rates, float64, become counts */
static PyObject *random_poisson(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size;
    if (!counted(count, 2) || !(bits = generator(args[0]))) return NULL;
    double *made = filled(args[1], NPY_DOUBLE, &size);
    if (!made) return NULL;
    DRAW(size, for (npy_intp i = 0; i < size; i++) made[i] = poisson_number(bits, made[i]));
    Py_RETURN_NONE;
}

/* random_binomial(capsule, made, probabilities): numbers of trials, float64, become numbers of successes */
static PyObject *random_binomial(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    bitgen_t *bits;
    npy_intp size, others;
    if (!counted(count, 3) || !(bits = generator(args[0]))) return NULL;
    double *made = filled(args[1], NPY_DOUBLE, &size), *p = made ? filled(args[2], NPY_DOUBLE, &others) : NULL;
    if (!p) return NULL;
    if (others != size) return wrong("expected a probability for each");
    DRAW(size, for (npy_intp i = 0; i < size; i++) made[i] = binomial_number(bits, made[i], p[i]));
    Py_RETURN_NONE;
}

#define FAST(NAME) {#NAME, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {FAST(random_uniform),     FAST(random_normal),    FAST(random_pairs),
                                FAST(random_integers),    FAST(random_bernoulli), FAST(random_permutation),
                                FAST(random_few),         FAST(random_bernoulli_each), FAST(random_weighted),
                                FAST(random_poisson),     FAST(random_binomial),
                                {NULL, NULL, 0, NULL}};

int random_add(PyObject *module) {
    if (PyModule_AddFunctions(module, METHODS)) return -1;
    /* Without fused instructions, normals are left to NumPy: fusing by software takes longer. */
    PyObject *fused = has_fma() ? Py_True : Py_False;
    Py_INCREF(fused);
    if (PyModule_AddObject(module, "RANDOM_NORMAL", fused)) {
        Py_DECREF(fused);
        return -1;
    }
    return 0;
}
