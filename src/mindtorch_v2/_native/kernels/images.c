/* Pooling, resizing and sampling of images. One version serves all processors: these pick numbers more than they
   compute. Arrays are float32 in row-major order; the last two dimensions are an image's. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_kernels_array
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <math.h>
#include <string.h>

#include "arguments.h"
#include "elementwise.h"
#include "images.h"
#include "kernels.h"

enum { CALLED_POOL_MAX, CALLED_POOL_MEAN, CALLED_POOL_MEAN_BACK, CALLED_RESIZE, CALLED_RESIZE_BACK, CALLED_SAMPLE,
       CALLED_SAMPLE_BACK };
Counter images_calls[] = {{"pool_max", 0}, {"pool_mean", 0}, {"pool_mean_back", 0}, {"resize", 0}, {"resize_back", 0},
                          {"grid_sample", 0}, {"grid_sample_back", 0}, {NULL, 0}};

static int is_array(PyObject *o, int type, int ndim, int written) {
    PyArrayObject *a = (PyArrayObject *)o;
    return PyArray_Check(o) && PyArray_TYPE(a) == type && PyArray_NDIM(a) == ndim && PyArray_IS_C_CONTIGUOUS(a) &&
           PyArray_ISBEHAVED_RO(a) && (!written || PyArray_ISWRITEABLE(a));
}
#define DIM(O, I) PyArray_DIM((PyArrayObject *)(O), I)
#define DATA(O) PyArray_DATA((PyArrayObject *)(O))

/* -- pooling: planes of (height, width), and for each position of a result where its window begins and ends -- */

typedef struct {
    float *made;
    const float *given, *divisors;
    const int64_t *top, *bottom, *left, *right;
    npy_intp height, width, out_height, out_width;
} Pool;

/* pool: (made, given) and four arrays of bounds. `large` is the array of whole planes, `small` the pooled one. */
static int pool_of(PyObject *large, PyObject *small, PyObject *const *bounds, Pool *it) {
    if (!is_array(large, NPY_FLOAT, 3, 0) || !is_array(small, NPY_FLOAT, 3, 0) || DIM(large, 0) != DIM(small, 0))
        return wrong("expected planes and as many pooled ones"), 0;
    it->height = DIM(large, 1), it->width = DIM(large, 2), it->out_height = DIM(small, 1), it->out_width = DIM(small, 2);
    for (int i = 0; i < 4; i++)
        if (!is_array(bounds[i], NPY_INT64, 1, 0) || DIM(bounds[i], 0) != (i < 2 ? it->out_height : it->out_width))
            return wrong("expected a bound for each window"), 0;
    it->top = DATA(bounds[0]), it->bottom = DATA(bounds[1]), it->left = DATA(bounds[2]), it->right = DATA(bounds[3]);
    for (npy_intp i = 0; i < it->out_height; i++)
        if (it->top[i] < 0 || it->bottom[i] > it->height || it->top[i] >= it->bottom[i]) return wrong("a window is empty"), 0;
    for (npy_intp i = 0; i < it->out_width; i++)
        if (it->left[i] < 0 || it->right[i] > it->width || it->left[i] >= it->right[i]) return wrong("a window is empty"), 0;
    return 1;
}

static void pool_max_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    (void)share;
    level->maxima(work, begin, end);
}

/* pool_max(made, where, given, top, bottom, left, right, down, across): windows take every `down`th row */
static PyObject *pool_max(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Pool it = {0};
    if (!counted(count, 9) || !pool_of(args[2], args[0], args + 3, &it)) return NULL;
    if (!is_array(args[0], NPY_FLOAT, 3, 1) || !is_array(args[1], NPY_INT64, 3, 1) ||
        !PyArray_SAMESHAPE((PyArrayObject *)args[0], (PyArrayObject *)args[1]))
        return wrong("expected results that fit");
    Maxima how = {DATA(args[0]), DATA(args[1]), DATA(args[2]), it.top, it.bottom, it.left, it.right, it.height, it.width,
                  it.out_height, it.out_width, PyLong_AsSsize_t(args[7]), PyLong_AsSsize_t(args[8])};
    if (how.down < 1 || how.across < 1) return PyErr_Occurred() ? NULL : wrong("expected steps");
    if (it.width > INT32_MAX / 2 || how.across > INT32_MAX / 2) return wrong("rows are too long");
    images_calls[CALLED_POOL_MAX].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(pool_max_share, &how, DIM(args[2], 0), 1 + SHARE / 2 / (it.height * it.width + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* Long rows are added in four strands, which keeps the processor's adders busy. */
static inline float span(const float *x, npy_intp count) {
    float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
    npy_intp i = 0;
    for (; i + 4 <= count; i += 4) a += x[i], b += x[i + 1], c += x[i + 2], d += x[i + 3];
    for (; i < count; i++) a += x[i];
    return (a + b) + (c + d);
}

static void pool_mean_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Pool it = *(Pool *)work;
    (void)share;
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        const float *x = it.given + plane * it.height * it.width;
        float *y = it.made + plane * it.out_height * it.out_width;
        const float *by = it.divisors;
        for (npy_intp i = 0; i < it.out_height; i++)
            for (npy_intp j = 0; j < it.out_width; j++) {
                float sum = 0.0f;
                for (npy_intp r = it.top[i]; r < it.bottom[i]; r++)
                    sum += span(x + r * it.width + it.left[j], it.right[j] - it.left[j]);
                *y++ = sum / *by++;
            }
    }
}

static int pool_mean_arguments(PyObject *const *args, PyObject *large, PyObject *small, Pool *it) {
    if (!pool_of(large, small, args + 2, it)) return 0;
    if (!is_array(args[0], NPY_FLOAT, 3, 1) || !is_array(args[6], NPY_FLOAT, 2, 0) || DIM(args[6], 0) != it->out_height ||
        DIM(args[6], 1) != it->out_width)
        return wrong("expected a result and divisors that fit"), 0;
    it->made = DATA(args[0]), it->given = DATA(args[1]), it->divisors = DATA(args[6]);
    return 1;
}

/* pool_mean(made, given, top, bottom, left, right, divisors) */
static PyObject *pool_mean(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Pool it = {0};
    if (!counted(count, 7) || !pool_mean_arguments(args, args[1], args[0], &it)) return NULL;
    images_calls[CALLED_POOL_MEAN].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(pool_mean_share, &it, DIM(args[1], 0), 1 + SHARE / (it.height * it.width + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static void pool_mean_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Pool it = *(Pool *)work;
    (void)share;
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        float *x = it.made + plane * it.height * it.width;
        const float *y = it.given + plane * it.out_height * it.out_width, *by = it.divisors;
        memset(x, 0, sizeof(float) * (size_t)(it.height * it.width));
        for (npy_intp i = 0; i < it.out_height; i++)
            for (npy_intp j = 0; j < it.out_width; j++) {
                float part = *y++ / *by++;
                for (npy_intp r = it.top[i]; r < it.bottom[i]; r++)
                    for (npy_intp c = it.left[j]; c < it.right[j]; c++) x[r * it.width + c] += part;
            }
    }
}

/* pool_mean_back(made, pull, top, bottom, left, right, divisors) */
static PyObject *pool_mean_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Pool it = {0};
    if (!counted(count, 7) || !pool_mean_arguments(args, args[0], args[1], &it)) return NULL;
    images_calls[CALLED_POOL_MEAN_BACK].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(pool_mean_back_share, &it, DIM(args[0], 0), 1 + SHARE / (it.height * it.width + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* -- resizing: along the middle of (outer, count, inner), each position a weighted sum of some others -- */

typedef struct {
    float *made;
    const float *given, *weights;
    const int64_t *places;
    npy_intp taps, many, few, inner; /* `many` positions are made of `few` */
} Resize;

static void resize_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Resize it = *(Resize *)work;
    (void)share;
    for (ptrdiff_t o = begin; o < end; o++) {
        const float *x = it.given + o * it.few * it.inner;
        float *y = it.made + o * it.many * it.inner;
        if (it.inner == 1) {
            for (npy_intp j = 0; j < it.many; j++) {
                float sum = 0.0f;
                if (!it.weights) sum = x[it.places[j]];
                else for (npy_intp t = 0; t < it.taps; t++) sum += it.weights[t * it.many + j] * x[it.places[t * it.many + j]];
                y[j] = sum;
            }
            continue;
        }
        for (npy_intp j = 0; j < it.many; j++) {
            float *restrict to = y + j * it.inner;
            for (npy_intp t = 0; t < it.taps; t++) {
                const float *restrict from = x + it.places[t * it.many + j] * it.inner;
                if (!it.weights) {
                    memcpy(to, from, sizeof(float) * (size_t)it.inner);
                    continue;
                }
                float weight = it.weights[t * it.many + j];
                if (!t) for (npy_intp i = 0; i < it.inner; i++) to[i] = weight * from[i];
                else for (npy_intp i = 0; i < it.inner; i++) to[i] += weight * from[i];
            }
        }
    }
}

static void resize_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Resize it = *(Resize *)work;
    (void)share;
    for (ptrdiff_t o = begin; o < end; o++) {
        float *x = it.made + o * it.few * it.inner;
        const float *y = it.given + o * it.many * it.inner;
        memset(x, 0, sizeof(float) * (size_t)(it.few * it.inner));
        for (npy_intp j = 0; j < it.many; j++)
            for (npy_intp t = 0; t < it.taps; t++) {
                float weight = it.weights ? it.weights[t * it.many + j] : 1.0f;
                float *restrict to = x + it.places[t * it.many + j] * it.inner;
                const float *restrict from = y + j * it.inner;
                for (npy_intp i = 0; i < it.inner; i++) to[i] += weight * from[i];
            }
    }
}

/* resize(made, given, places, weights): arrays (outer, positions, inner), places and weights (taps, positions) */
static PyObject *resize_any(PyObject *const *args, Py_ssize_t count, int back) {
    if (!counted(count, 4)) return NULL;
    PyObject *many = args[back ? 1 : 0], *few = args[back ? 0 : 1];
    if (!is_array(args[0], NPY_FLOAT, 3, 1) || !is_array(args[1], NPY_FLOAT, 3, 0) || DIM(many, 0) != DIM(few, 0) ||
        DIM(many, 2) != DIM(few, 2) || !is_array(args[2], NPY_INT64, 2, 0) || DIM(args[2], 1) != DIM(many, 1))
        return wrong("expected arrays of three dimensions and places");
    Resize it = {.made = DATA(args[0]), .given = DATA(args[1]), .places = DATA(args[2]), .taps = DIM(args[2], 0),
                 .many = DIM(many, 1), .few = DIM(few, 1), .inner = DIM(many, 2)};
    if (args[3] != Py_None) {
        if (!is_array(args[3], NPY_FLOAT, 2, 0) || DIM(args[3], 0) != it.taps || DIM(args[3], 1) != it.many)
            return wrong("expected a weight for each place");
        it.weights = DATA(args[3]);
    }
    for (npy_intp i = 0; i < it.taps * it.many; i++)
        if (it.places[i] < 0 || it.places[i] >= it.few) return wrong("a place is out of range");
    images_calls[back ? CALLED_RESIZE_BACK : CALLED_RESIZE].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(back ? resize_back_share : resize_share, &it, DIM(many, 0),
                                    1 + SHARE / (it.many * it.inner + 1));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *resize(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    return resize_any(args, count, 0);
}

static PyObject *resize_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    return resize_any(args, count, 1);
}

/* -- sampling at given places -- */

enum { ZEROS, BORDER, REFLECTION };
typedef struct {
    const float *given, *grid, *pull;
    float *made, *image_pull, *grid_pull;
    npy_intp images, channels, height, width, points;
    int nearest, padding, corners;
} Sample;

/* The pixels around a place, numbers beyond the image being 0 with a weight of 0, and how weights change with it. */
typedef struct {
    npy_intp low, high;
    float low_weight, high_weight, low_slope, high_slope, slope;
} Around;

static inline Around around(const Sample *it, float place, npy_intp size) {
    Around made = {0};
    float half = it->corners ? (float)(size - 1) / 2.0f : (float)size / 2.0f;
    /* Without corners this rounds once, as PyTorch does: which side of a whole number a place is decides the slope. */
    place = it->corners ? (place + 1.0f) * half : (float)((double)(place + 1.0f) * (double)half - 0.5);
    made.slope = half;
    if (it->padding == REFLECTION) {
        float low = it->corners ? 0.0f : -0.5f, span = it->corners ? (float)(size - 1) : (float)size;
        if (span == 0.0f) {
            place = 0.0f, made.slope = 0.0f;
        } else {
            float away = place - low, sign = away < 0.0f ? -1.0f : 1.0f;
            away = fabsf(away);
            float rest = fmodf(away, span);
            int odd = fmodf(floorf(away / span), 2.0f) == 1.0f;
            place = (odd ? span - rest : rest) + low;
            made.slope *= odd ? -sign : sign;
        }
    }
    if (it->padding != ZEROS) {
        float last = (float)(size - 1);
        if (!(place > 0.0f && place < last)) made.slope *= 0.0f;
        place = place < 0.0f ? 0.0f : place > last ? last : place;
    }
    float floor = it->nearest ? nearbyintf(place) : floorf(place), part = place - floor;
    int inside = floor >= 0.0f && floor < (float)size;
    if (inside) made.low = (npy_intp)floor, made.low_weight = it->nearest ? 1.0f : 1.0f - part, made.low_slope = -1.0f;
    if (!it->nearest && floor + 1.0f >= 0.0f && floor + 1.0f < (float)size)
        made.high = (npy_intp)floor + 1, made.high_weight = part, made.high_slope = 1.0f;
    return made;
}

enum { POINTS = 256 };

/* Items are blocks of points of an image. */
static void sample_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Sample it = *(Sample *)work;
    (void)share;
    npy_intp blocks = (it.points + POINTS - 1) / POINTS, area = it.height * it.width;
    for (ptrdiff_t item = begin; item < end; item++) {
        npy_intp image = item / blocks, from = item % blocks * POINTS;
        npy_intp count = it.points - from < POINTS ? it.points - from : POINTS;
        int32_t place[4][POINTS];
        float weight[4][POINTS];
        for (npy_intp p = 0; p < count; p++) {
            const float *at = it.grid + (image * it.points + from + p) * 2;
            Around x = around(&it, at[0], it.width), y = around(&it, at[1], it.height);
            place[0][p] = (int32_t)(y.low * it.width + x.low), weight[0][p] = y.low_weight * x.low_weight;
            place[1][p] = (int32_t)(y.low * it.width + x.high), weight[1][p] = y.low_weight * x.high_weight;
            place[2][p] = (int32_t)(y.high * it.width + x.low), weight[2][p] = y.high_weight * x.low_weight;
            place[3][p] = (int32_t)(y.high * it.width + x.high), weight[3][p] = y.high_weight * x.high_weight;
        }
        for (npy_intp c = 0; c < it.channels; c++) {
            const float *x = it.given + (image * it.channels + c) * area;
            float *y = it.made + (image * it.channels + c) * it.points + from;
            if (it.nearest) for (npy_intp p = 0; p < count; p++) y[p] = weight[0][p] * x[place[0][p]];
            else
                for (npy_intp p = 0; p < count; p++)
                    y[p] = weight[0][p] * x[place[0][p]] + weight[1][p] * x[place[1][p]] + weight[2][p] * x[place[2][p]] +
                           weight[3][p] * x[place[3][p]];
        }
    }
}

/* Items are images, whose gradients are added up at the same pixels. */
static void sample_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Sample it = *(Sample *)work;
    (void)share;
    npy_intp area = it.height * it.width;
    for (ptrdiff_t image = begin; image < end; image++) {
        if (it.image_pull)
            memset(it.image_pull + image * it.channels * area, 0, sizeof(float) * (size_t)(it.channels * area));
        for (npy_intp from = 0; from < it.points; from += POINTS) {
            npy_intp count = it.points - from < POINTS ? it.points - from : POINTS;
            int32_t place[4][POINTS];
            float weight[4][POINTS], along[4][POINTS] = {{0}};
            Around xs[POINTS], ys[POINTS];
            for (npy_intp p = 0; p < count; p++) {
                const float *at = it.grid + (image * it.points + from + p) * 2;
                Around x = xs[p] = around(&it, at[0], it.width), y = ys[p] = around(&it, at[1], it.height);
                place[0][p] = (int32_t)(y.low * it.width + x.low), weight[0][p] = y.low_weight * x.low_weight;
                place[1][p] = (int32_t)(y.low * it.width + x.high), weight[1][p] = y.low_weight * x.high_weight;
                place[2][p] = (int32_t)(y.high * it.width + x.low), weight[2][p] = y.high_weight * x.low_weight;
                place[3][p] = (int32_t)(y.high * it.width + x.high), weight[3][p] = y.high_weight * x.high_weight;
            }
            for (npy_intp c = 0; c < it.channels; c++) {
                const float *x = it.given + (image * it.channels + c) * area;
                const float *g = it.pull + (image * it.channels + c) * it.points + from;
                if (it.image_pull) {
                    float *to = it.image_pull + (image * it.channels + c) * area;
                    for (npy_intp p = 0; p < count; p++)
                        for (int k = 0; k < (it.nearest ? 1 : 4); k++) to[place[k][p]] += weight[k][p] * g[p];
                }
                if (it.grid_pull && !it.nearest)
                    for (int k = 0; k < 4; k++)
                        for (npy_intp p = 0; p < count; p++) along[k][p] += x[place[k][p]] * g[p];
            }
            if (!it.grid_pull) continue;
            float *to = it.grid_pull + (image * it.points + from) * 2;
            for (npy_intp p = 0; p < count; p++) {
                Around x = xs[p], y = ys[p];
                float across = along[0][p] * x.low_slope * y.low_weight + along[1][p] * x.high_slope * y.low_weight +
                               along[2][p] * x.low_slope * y.high_weight + along[3][p] * x.high_slope * y.high_weight;
                float down = along[0][p] * y.low_slope * x.low_weight + along[1][p] * y.low_slope * x.high_weight +
                             along[2][p] * y.high_slope * x.low_weight + along[3][p] * y.high_slope * x.high_weight;
                to[2 * p] = across * x.slope, to[2 * p + 1] = down * y.slope;
            }
        }
    }
}

/* The image (N, C, H, W), the grid (N, points, 2), nearest, padding, corners. */
static int sample_of(PyObject *const *args, Sample *it) {
    if (!is_array(args[0], NPY_FLOAT, 4, 0) || !is_array(args[1], NPY_FLOAT, 3, 0) || DIM(args[0], 0) != DIM(args[1], 0) ||
        DIM(args[1], 2) != 2)
        return wrong("expected images and a grid of points"), 0;
    it->given = DATA(args[0]), it->grid = DATA(args[1]), it->images = DIM(args[0], 0), it->channels = DIM(args[0], 1);
    it->height = DIM(args[0], 2), it->width = DIM(args[0], 3), it->points = DIM(args[1], 1);
    it->nearest = PyObject_IsTrue(args[2]), it->padding = (int)PyLong_AsLong(args[3]), it->corners = PyObject_IsTrue(args[4]);
    if (PyErr_Occurred()) return 0;
    if (it->height < 1 || it->width < 1 || it->height * it->width > INT32_MAX) return wrong("images are too large"), 0;
    return 1;
}

/* grid_sample(given, grid, nearest, padding, corners, made) */
static PyObject *grid_sample(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Sample it = {0};
    if (!counted(count, 6) || !sample_of(args, &it)) return NULL;
    if (!is_array(args[5], NPY_FLOAT, 3, 1) || DIM(args[5], 0) != it.images || DIM(args[5], 1) != it.channels ||
        DIM(args[5], 2) != it.points)
        return wrong("expected a result that fits");
    it.made = DATA(args[5]);
    images_calls[CALLED_SAMPLE].calls++;
    npy_intp blocks = (it.points + POINTS - 1) / POINTS;
    Py_BEGIN_ALLOW_THREADS pool_run(sample_share, &it, it.images * blocks, 1 + SHARE / 4 / (POINTS * (it.channels + 1)));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* grid_sample_back(given, grid, nearest, padding, corners, pull, image_pull, grid_pull): None for what is not wanted */
static PyObject *grid_sample_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    Sample it = {0};
    if (!counted(count, 8) || !sample_of(args, &it)) return NULL;
    if (!is_array(args[5], NPY_FLOAT, 3, 0) || DIM(args[5], 0) != it.images || DIM(args[5], 1) != it.channels ||
        DIM(args[5], 2) != it.points ||
        (args[6] != Py_None && (!is_array(args[6], NPY_FLOAT, 4, 1) ||
                                !PyArray_SAMESHAPE((PyArrayObject *)args[6], (PyArrayObject *)args[0]))) ||
        (args[7] != Py_None && (!is_array(args[7], NPY_FLOAT, 3, 1) ||
                                !PyArray_SAMESHAPE((PyArrayObject *)args[7], (PyArrayObject *)args[1]))))
        return wrong("expected gradients that fit");
    it.pull = DATA(args[5]);
    it.image_pull = args[6] == Py_None ? NULL : DATA(args[6]), it.grid_pull = args[7] == Py_None ? NULL : DATA(args[7]);
    images_calls[CALLED_SAMPLE_BACK].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(sample_back_share, &it, it.images, 1);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

#define FAST(NAME) {#NAME, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {FAST(pool_max), FAST(pool_mean), FAST(pool_mean_back), FAST(resize), FAST(resize_back),
                                FAST(grid_sample), FAST(grid_sample_back), {NULL, NULL, 0, NULL}};

int images_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
