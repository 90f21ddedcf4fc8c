/* Pooling, resizing and sampling of images. One version serves all processors: these pick numbers more than they
   compute. Arrays are float32 in row-major order; the last two dimensions are an image's. */
#include "arrays.h"

#include <math.h>
#include <string.h>

#include "arguments.h"
#include "direct.h"
#include "elementwise.h"
#include "images.h"
#include "kernels.h"

enum { CALLED_POOL_MAX, CALLED_POOL_MEAN, CALLED_POOL_MEAN_BACK, CALLED_RESIZE, CALLED_RESIZE_BACK, CALLED_SAMPLE,
       CALLED_SAMPLE_BACK };
Counter images_calls[] = {{"pool_max", 0}, {"pool_mean", 0}, {"pool_mean_back", 0}, {"resize", 0}, {"resize_back", 0},
                          {"grid_sample", 0}, {"grid_sample_back", 0}, {NULL, 0}};

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
        if (!IS_SHAPED(bounds[i], NPY_INT64, 0, i < 2 ? it->out_height : it->out_width))
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
    if (!is_array(args[0], NPY_FLOAT, 3, 1) || !IS_SHAPED(args[6], NPY_FLOAT, 0, it->out_height, it->out_width))
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

/* -- resizing: each position along an axis is a weighted sum of some others -- */

/* `many` positions are made of `few`. `repeated`: each of them so often, one after the other, without weights. */
typedef struct {
    const int64_t *places;
    const float *weights;
    npy_intp taps, many, few, repeated;
} Axis;

/* Rows of some planes, and the numbers in a row; an axis without places stays as it is. */
typedef struct {
    float *made;
    const float *given;
    Axis rows, columns;
    npy_intp planes;
    int failed;
} Resize;

static inline __attribute__((always_inline)) void across_taps(const Axis *it, float *restrict to, const float *restrict from,
                                                              npy_intp taps) {
    for (npy_intp j = 0; j < it->many; j++) {
        float sum = 0.0f;
        for (npy_intp t = 0; t < taps; t++) sum += it->weights[t * it->many + j] * from[it->places[t * it->many + j]];
        to[j] = sum;
    }
}

static void across(const Axis *it, float *restrict to, const float *restrict from) {
    if (it->repeated == 2) for (npy_intp i = 0; i < it->few; i++) to[2 * i] = to[2 * i + 1] = from[i];
    else if (!it->weights) for (npy_intp j = 0; j < it->many; j++) to[j] = from[it->places[j]];
    else if (it->taps == 2) across_taps(it, to, from, 2);
    else across_taps(it, to, from, it->taps);
}

static void across_back(const Axis *it, float *restrict to, const float *restrict from) {
    if (it->repeated == 2) {
        for (npy_intp i = 0; i < it->few; i++) to[i] = 0.0f + from[2 * i] + from[2 * i + 1];
        return;
    }
    memset(to, 0, sizeof(float) * (size_t)it->few);
    for (npy_intp j = 0; j < it->many; j++)
        for (npy_intp t = 0; t < it->taps; t++)
            to[it->places[t * it->many + j]] += (it->weights ? it->weights[t * it->many + j] : 1.0f) * from[j];
}

/* Rows of all planes. A row is put together from some, and then spread. */
static void resize_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Resize *it = work;
    const Axis *rows = &it->rows, *columns = &it->columns;
    (void)share;
    npy_intp width = columns->few;
    float *sum = rows->weights && columns->places ? malloc(sizeof(float) * (size_t)width) : NULL;
    if (rows->weights && columns->places && !sum) {
        __atomic_store_n(&it->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (ptrdiff_t r = begin; r < end; r++) {
        npy_intp plane = r / rows->many, j = r % rows->many;
        const float *given = it->given + plane * rows->few * width;
        float *to = it->made + r * columns->many;
        if (rows->weights) {
            float *restrict made = sum ? sum : to;
            for (npy_intp t = 0; t < rows->taps; t++) {
                const float *restrict from = given + rows->places[t * rows->many + j] * width;
                float weight = rows->weights[t * rows->many + j];
                if (!t) for (npy_intp i = 0; i < width; i++) made[i] = weight * from[i];
                else for (npy_intp i = 0; i < width; i++) made[i] += weight * from[i];
            }
            if (sum) across(columns, to, sum);
        } else if (rows->places && j && r > begin && rows->places[j] == rows->places[j - 1]) {
            memcpy(to, to - columns->many, sizeof(float) * (size_t)columns->many);
        } else {
            const float *from = given + (rows->places ? rows->places[j] : j) * width;
            if (columns->places) across(columns, to, from);
            else memcpy(to, from, sizeof(float) * (size_t)width);
        }
    }
    free(sum);
}

/* Planes. Rows are put together first, with as many columns as there are. */
static void resize_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Resize *it = work;
    const Axis *rows = &it->rows, *columns = &it->columns;
    (void)share;
    npy_intp width = columns->many;
    float *sums = rows->places && columns->places ? malloc(sizeof(float) * (size_t)(rows->few * width)) : NULL;
    if (rows->places && columns->places && !sums) {
        __atomic_store_n(&it->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (ptrdiff_t p = begin; p < end; p++) {
        const float *given = it->given + p * rows->many * width;
        float *made = it->made + p * rows->few * columns->few, *sum = sums ? sums : made;
        if (rows->places) {
            memset(sum, 0, sizeof(float) * (size_t)(rows->few * width));
            for (npy_intp j = 0; j < rows->many; j++)
                for (npy_intp t = 0; t < rows->taps; t++) {
                    float weight = rows->weights ? rows->weights[t * rows->many + j] : 1.0f;
                    float *restrict to = sum + rows->places[t * rows->many + j] * width;
                    const float *restrict from = given + j * width;
                    for (npy_intp i = 0; i < width; i++) to[i] += weight * from[i];
                }
        }
        if (columns->places)
            for (npy_intp r = 0; r < rows->few; r++)
                across_back(columns, made + r * columns->few, (rows->places ? sum : given) + r * width);
    }
    free(sums);
}

/* An axis of `length` positions, resized to a number of them: (places, weights or None, number), or None. What is wrong, or
   NULL. */
static const char *axis_of(PyObject *o, npy_intp length, int back, Axis *it) {
    npy_intp size = length;
    if (o == Py_None) {
        it->many = it->few = length;
        return NULL;
    }
    if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) != 3 || !is_array(PyTuple_GET_ITEM(o, 0), NPY_INT64, 2, 0) ||
        !number_of(PyTuple_GET_ITEM(o, 2), &size) || size < 1 || length < 1)
        return "expected places, weights and a number";
    PyObject *places = PyTuple_GET_ITEM(o, 0), *weights = PyTuple_GET_ITEM(o, 1);
    it->places = DATA(places), it->taps = DIM(places, 0), it->many = back ? length : size, it->few = back ? size : length;
    if (DIM(places, 1) != it->many) return "expected a place for each position";
    if (weights != Py_None) {
        if (!IS_SHAPED(weights, NPY_FLOAT, 0, it->taps, it->many)) return "expected a weight for each place";
        it->weights = DATA(weights);
    } else if (it->taps != 1) return "expected one place for each position";
    it->repeated = it->weights || it->many % it->few ? 0 : it->many / it->few;
    for (npy_intp i = 0; i < it->taps * it->many; i++) {
        if (it->places[i] < 0 || it->places[i] >= it->few) return "a place is out of range";
        if (it->repeated && it->places[i] != i / it->repeated) it->repeated = 0;
    }
    return NULL;
}

/* resize(given, axis, rows, columns), resize_back: a new array. Rows are an axis, and columns the last one if it is resized,
   otherwise all after the rows. None for what is left to others. */
static PyObject *resize_any(PyObject *const *args, Py_ssize_t count, int back) {
    if (!counted(count, 4)) return NULL;
    if (!is_of(args[0], NPY_FLOAT)) Py_RETURN_NONE;
    PyArrayObject *given = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(given), axis = dim_of(args[1], ndim);
    npy_intp sizes[NPY_MAXDIMS], width = 1;
    Resize it = {.given = PyArray_DATA(given), .planes = 1};
    if (axis < 0) Py_RETURN_NONE;
    for (int d = 0; d < ndim; d++) {
        sizes[d] = PyArray_DIM(given, d);
        if (d < axis) it.planes *= sizes[d];
        else if (d > axis) width *= sizes[d];
    }
    const char *trouble = axis_of(args[2], sizes[axis], back, &it.rows);
    if (!trouble) trouble = axis_of(args[3], width, back, &it.columns);
    if (!trouble && it.columns.places && axis != ndim - 2) trouble = "expected columns after rows";
    if (trouble) return wrong(trouble);
    sizes[axis] = back ? it.rows.few : it.rows.many;
    if (it.columns.places) sizes[ndim - 1] = back ? it.columns.few : it.columns.many;
    PyArrayObject *made = new_of(given, ndim, sizes);
    if (!made) return NULL;
    it.made = PyArray_DATA(made);
    images_calls[back ? CALLED_RESIZE_BACK : CALLED_RESIZE].calls++;
    npy_intp large = it.rows.many * it.columns.many;
    if (back) UNLOCKED(it.planes * large > MANY, pool_run(resize_back_share, &it, it.planes, 1 + SHARE / (large + 1)));
    else UNLOCKED(it.planes * large > MANY,
                  pool_run(resize_share, &it, it.planes * it.rows.many, 1 + SHARE / (it.columns.many + 1)));
    if (!it.failed) return (PyObject *)made;
    Py_DECREF(made);
    return PyErr_NoMemory();
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
    if (!IS_SHAPED(args[5], NPY_FLOAT, 1, it.images, it.channels, it.points))
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
    if (!IS_SHAPED(args[5], NPY_FLOAT, 0, it.images, it.channels, it.points) ||
        (args[6] != Py_None && !is_like(args[6], NPY_FLOAT, 1, args[0])) ||
        (args[7] != Py_None && !is_like(args[7], NPY_FLOAT, 1, args[1])))
        return wrong("expected gradients that fit");
    it.pull = DATA(args[5]);
    it.image_pull = args[6] == Py_None ? NULL : DATA(args[6]), it.grid_pull = args[7] == Py_None ? NULL : DATA(args[7]);
    images_calls[CALLED_SAMPLE_BACK].calls++;
    Py_BEGIN_ALLOW_THREADS pool_run(sample_back_share, &it, it.images, 1);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* -- kernels that look for themselves: images (..., height, width) of float32 -- */

/* Windows along both dimensions: where each begins and ends in the image, and how many elements it counts. */
typedef struct {
    npy_intp size[2], out[2], kernel[2], stride[2], padding[2], dilation[2], planes;
    int64_t *bounds; /* top, bottom, left, right, then how many rows and columns count */
    int64_t *top, *bottom, *left, *right, *rows, *columns;
} Geometry;

static int pair_of(PyObject *o, npy_intp pair[2]) {
    npy_intp found[NPY_MAXDIMS];
    int count = sizes_of(o, found);
    if (count != 1 && count != 2) return 0;
    pair[0] = found[0], pair[1] = found[count - 1];
    return 1;
}

/* An image or a batch of them, not empty. */
static int is_images(PyObject *o, Geometry *it) {
    PyArrayObject *a = (PyArrayObject *)o;
    if (!is_of(o, NPY_FLOAT) || (PyArray_NDIM(a) != 3 && PyArray_NDIM(a) != 4) || !PyArray_SIZE(a)) return 0;
    it->size[0] = PyArray_DIM(a, PyArray_NDIM(a) - 2), it->size[1] = PyArray_DIM(a, PyArray_NDIM(a) - 1);
    it->planes = PyArray_SIZE(a) / (it->size[0] * it->size[1]);
    return 1;
}

/* Room for the bounds; 0 with an error. */
static int with_bounds(Geometry *it) {
    npy_intp high = it->out[0], wide = it->out[1];
    it->bounds = PyMem_Malloc(sizeof(int64_t) * (size_t)(3 * (high + wide)));
    if (!it->bounds) return PyErr_NoMemory(), 0;
    it->top = it->bounds, it->bottom = it->top + high, it->rows = it->bottom + high;
    it->left = it->rows + high, it->right = it->left + wide, it->columns = it->right + wide;
    return 1;
}

/* The windows of pooling from kernel size, stride, padding and, if there is one, dilation at `args`. 1, 0 if they are
   left to others, -1 with an error. */
static int windows_of(PyObject *const *args, PyObject *dilation, PyObject *ceil_mode, int padded, Geometry *it) {
    npy_intp none[NPY_MAXDIMS];
    if (!pair_of(args[0], it->kernel) || !pair_of(args[2], it->padding) || !PyBool_Check(ceil_mode)) return 0;
    if (sizes_of(args[1], none) == 0) it->stride[0] = it->kernel[0], it->stride[1] = it->kernel[1];
    else if (!pair_of(args[1], it->stride)) return 0;
    it->dilation[0] = it->dilation[1] = 1;
    if (dilation && !pair_of(dilation, it->dilation)) return 0;
    for (int i = 0; i < 2; i++) {
        npy_intp k = it->kernel[i], s = it->stride[i], p = it->padding[i], d = it->dilation[i], n = it->size[i];
        if (k < 1 || s < 1 || d < 1 || p < 0 || k > 1 << 20 || d > 1 << 20 || s > 1 << 20 || p > ((k - 1) * d + 1) / 2)
            return 0;
        npy_intp reach = n + 2 * p - d * (k - 1) - 1;
        if (reach < 0) return 0;
        npy_intp out = (reach + (ceil_mode == Py_True ? s - 1 : 0)) / s + 1;
        /* A window must start inside the image or its left padding. */
        if (ceil_mode == Py_True && (out - 1) * s >= n + p) out--;
        it->out[i] = out;
    }
    if (!with_bounds(it)) return -1;
    for (int i = 0; i < 2; i++) {
        int64_t *begin = i ? it->left : it->top, *end = i ? it->right : it->bottom, *counted = i ? it->columns : it->rows;
        npy_intp k = it->kernel[i], p = it->padding[i], d = it->dilation[i], n = it->size[i];
        for (npy_intp j = 0; j < it->out[i]; j++) {
            npy_intp start = j * it->stride[i] - p, stop = start + d * (k - 1) + 1;
            begin[j] = start < 0 ? (d - -start % d) % d : start;
            end[j] = stop < n ? stop : n;
            counted[j] = padded ? (start + k < n + p ? start + k : n + p) - start : end[j] - (start < 0 ? 0 : start);
            if (begin[j] >= end[j]) {
                PyMem_Free(it->bounds);
                return 0;
            }
        }
    }
    return 1;
}

/* The windows that cover an image evenly. */
static int even_windows(Geometry *it) {
    for (int i = 0; i < 2; i++)
        if (it->out[i] < 1 || it->out[i] > 1 << 30) return 0;
    if (!with_bounds(it)) return -1;
    for (int i = 0; i < 2; i++) {
        int64_t *begin = i ? it->left : it->top, *end = i ? it->right : it->bottom, *counted = i ? it->columns : it->rows;
        npy_intp n = it->size[i], out = it->out[i];
        for (npy_intp j = 0; j < out; j++)
            begin[j] = j * n / out, end[j] = ((j + 1) * n + out - 1) / out, counted[j] = end[j] - begin[j];
    }
    return 1;
}

/* An array with an image's leading dimensions, followed by others. */
static PyArrayObject *new_images(PyArrayObject *like, const npy_intp sizes[2], int type) {
    npy_intp shape[NPY_MAXDIMS];
    int ndim = PyArray_NDIM(like);
    memcpy(shape, PyArray_DIMS(like), sizeof(npy_intp) * (size_t)ndim);
    shape[ndim - 2] = sizes[0], shape[ndim - 1] = sizes[1];
    return (PyArrayObject *)PyArray_SimpleNew(ndim, shape, type);
}

/* Frees the bounds. */
static PyObject *maxima_of(PyArrayObject *x, Geometry *it) {
    PyObject *both = NULL;
    PyArrayObject *made = new_images(x, it->out, NPY_FLOAT), *where = made ? new_images(x, it->out, NPY_INT64) : NULL;
    if (where) {
        Maxima how = {PyArray_DATA(made), PyArray_DATA(where), PyArray_DATA(x), it->top, it->bottom, it->left, it->right,
                      it->size[0], it->size[1], it->out[0], it->out[1], it->dilation[0], it->dilation[1]};
        UNLOCKED(PyArray_SIZE(x) > MANY, pool_run(pool_max_share, &how, it->planes,
                                                  1 + SHARE / 2 / (it->size[0] * it->size[1] + 1)));
        both = PyTuple_Pack(2, made, where);
    }
    PyMem_Free(it->bounds);
    Py_XDECREF(made), Py_XDECREF(where);
    return both;
}

/* max_pool2d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode) */
static PyObject *max_pool(PyObject *const *args, Py_ssize_t count) {
    Geometry it;
    if (count != 6 || !is_images(args[0], &it) || it.size[1] > INT32_MAX / 2) return LEFT;
    int fits = windows_of(args + 1, args[4], args[5], 0, &it);
    if (fits < 1) return fits ? NULL : LEFT;
    return maxima_of((PyArrayObject *)args[0], &it);
}

/* adaptive_max_pool2d(x, output_size) */
static PyObject *adaptive_max_pool(PyObject *const *args, Py_ssize_t count) {
    Geometry it = {.dilation = {1, 1}};
    /* One channel, or one row of one column, is in the order of channels too: others decide about the result's. */
    if (count != 2 || !is_images(args[0], &it) || it.size[1] > INT32_MAX / 2 || it.size[0] * it.size[1] == 1 ||
        PyArray_DIM((PyArrayObject *)args[0], PyArray_NDIM((PyArrayObject *)args[0]) - 3) == 1 ||
        sizes_of(args[1], (npy_intp[NPY_MAXDIMS]){0}) != 2 || !pair_of(args[1], it.out))
        return LEFT;
    int fits = even_windows(&it);
    if (fits < 1) return fits ? NULL : LEFT;
    return maxima_of((PyArrayObject *)args[0], &it);
}

/* What came from the places of maxima goes back there, into the shape of `x`. */
static PyObject *put_back(PyObject *grad, PyObject *x, PyObject *indices, int add) {
    Geometry it, small;
    if (!is_images(x, &it) || !is_images(grad, &small) || !is_of(indices, NPY_INT64) || small.planes != it.planes ||
        PyArray_NDIM((PyArrayObject *)grad) != PyArray_NDIM((PyArrayObject *)x) ||
        !PyArray_SAMESHAPE((PyArrayObject *)grad, (PyArrayObject *)indices))
        return LEFT;
    npy_intp area = it.size[0] * it.size[1], count = small.size[0] * small.size[1];
    const int64_t *place = DATA(indices);
    for (npy_intp i = 0; i < it.planes * count; i++)
        if ((uint64_t)place[i] >= (uint64_t)area) return LEFT;
    PyArrayObject *made = new_images((PyArrayObject *)x, it.size, NPY_FLOAT);
    if (!made || step_zero(made)) {
        Py_XDECREF(made);
        return NULL;
    }
    const float *from = DATA(grad);
    float *to = PyArray_DATA(made);
    for (npy_intp plane = 0; plane < it.planes; plane++, to += area)
        for (npy_intp i = 0; i < count; i++, place++, from++) to[*place] = add ? to[*place] + *from : *from;
    return (PyObject *)made;
}

/* max_pool2d_with_indices_backward(grad, x, kernel_size, stride, padding, dilation, ceil_mode, indices) */
static PyObject *max_pool_backward(PyObject *const *args, Py_ssize_t count) {
    Geometry it, small;
    if (count != 8 || !is_images(args[1], &it) || !is_images(args[0], &small) ||
        PyArray_SIZE((PyArrayObject *)args[1]) > 1 << 16)
        return LEFT;
    int fits = windows_of(args + 2, args[5], args[6], 0, &it), add = 0;
    if (fits < 1) return fits ? NULL : LEFT;
    PyMem_Free(it.bounds);
    if (it.out[0] != small.size[0] || it.out[1] != small.size[1]) return LEFT;
    for (int i = 0; i < 2; i++) add |= it.stride[i] < it.dilation[i] * (it.kernel[i] - 1) + 1;
    return put_back(args[0], args[1], args[7], add);
}

/* adaptive_max_pool2d_backward(grad, x, indices) */
static PyObject *adaptive_max_pool_backward(PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !PyArray_Check(args[1]) || PyArray_SIZE((PyArrayObject *)args[1]) > 1 << 16) return LEFT;
    return put_back(args[0], args[1], args[2], 1);
}

/* Means of windows, or back from them. Frees the bounds. */
static PyObject *means_of(PyObject *given, Geometry *it, npy_intp divisor, int back) {
    PyArrayObject *a = (PyArrayObject *)given, *made = NULL;
    float *divisors = PyMem_Malloc(sizeof(float) * (size_t)(it->out[0] * it->out[1]));
    if (!divisors) PyErr_NoMemory();
    else made = new_images(a, back ? it->size : it->out, NPY_FLOAT);
    if (made) {
        for (npy_intp i = 0; i < it->out[0]; i++)
            for (npy_intp j = 0; j < it->out[1]; j++)
                divisors[i * it->out[1] + j] = (float)(divisor ? divisor : it->rows[i] * it->columns[j]);
        Pool how = {PyArray_DATA(made), PyArray_DATA(a), divisors, it->top, it->bottom, it->left, it->right,
                    it->size[0], it->size[1], it->out[0], it->out[1]};
        UNLOCKED(PyArray_SIZE(back ? made : a) > MANY, pool_run(back ? pool_mean_back_share : pool_mean_share, &how,
                                                                it->planes, 1 + SHARE / (it->size[0] * it->size[1] + 1)));
    }
    PyMem_Free(divisors), PyMem_Free(it->bounds);
    return (PyObject *)made;
}

/* The divisor that replaces a window's number of elements, 0 if there is none, or -1. */
static npy_intp divisor_of(PyObject *o) {
    npy_intp found;
    if (o == Py_None) return 0;
    return number_of(o, &found) && found > 0 ? found : -1;
}

/* avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) */
static PyObject *avg_pool(PyObject *const *args, Py_ssize_t count) {
    Geometry it;
    npy_intp divisor;
    if (count != 7 || !is_images(args[0], &it) || !PyBool_Check(args[5]) || (divisor = divisor_of(args[6])) < 0) return LEFT;
    int fits = windows_of(args + 1, NULL, args[4], args[5] == Py_True, &it);
    if (fits < 1) return fits ? NULL : LEFT;
    return means_of(args[0], &it, divisor, 0);
}

/* avg_pool2d_backward(grad, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) */
static PyObject *avg_pool_backward(PyObject *const *args, Py_ssize_t count) {
    Geometry it, small;
    npy_intp divisor;
    if (count != 8 || !is_images(args[1], &it) || !is_images(args[0], &small) || !PyBool_Check(args[6]) ||
        PyArray_NDIM((PyArrayObject *)args[0]) != PyArray_NDIM((PyArrayObject *)args[1]) || small.planes != it.planes ||
        (divisor = divisor_of(args[7])) < 0)
        return LEFT;
    int fits = windows_of(args + 2, NULL, args[5], args[6] == Py_True, &it);
    if (fits < 1) return fits ? NULL : LEFT;
    if (it.out[0] != small.size[0] || it.out[1] != small.size[1]) return PyMem_Free(it.bounds), LEFT;
    return means_of(args[0], &it, divisor, 1);
}

/* _adaptive_avg_pool2d(x, output_size) */
static PyObject *adaptive_avg_pool(PyObject *const *args, Py_ssize_t count) {
    Geometry it;
    if (count != 2 || !is_images(args[0], &it) || sizes_of(args[1], (npy_intp[NPY_MAXDIMS]){0}) != 2 ||
        !pair_of(args[1], it.out))
        return LEFT;
    int fits = even_windows(&it);
    if (fits < 1) return fits ? NULL : LEFT;
    return means_of(args[0], &it, 0, 0);
}

/* _adaptive_avg_pool2d_backward(grad, x) */
static PyObject *adaptive_avg_pool_backward(PyObject *const *args, Py_ssize_t count) {
    Geometry it, small;
    if (count != 2 || !is_images(args[1], &it) || !is_images(args[0], &small) || small.planes != it.planes ||
        PyArray_NDIM((PyArrayObject *)args[0]) != PyArray_NDIM((PyArrayObject *)args[1]))
        return LEFT;
    it.out[0] = small.size[0], it.out[1] = small.size[1];
    int fits = even_windows(&it);
    if (fits < 1) return fits ? NULL : LEFT;
    return means_of(args[0], &it, 0, 1);
}

/* Elements above which windows are laid out by others. */
enum { FEW_CELLS = 1 << 14 };

/* The windows of `im2col`, one after the other: kernel, dilation, padding and stride at `args`. */
static int blocks_of(PyObject *const *args, Geometry *it) {
    if (!pair_of(args[0], it->kernel) || !pair_of(args[1], it->dilation) || !pair_of(args[2], it->padding) ||
        !pair_of(args[3], it->stride))
        return 0;
    for (int i = 0; i < 2; i++) {
        npy_intp k = it->kernel[i], s = it->stride[i], p = it->padding[i], d = it->dilation[i];
        if (k < 1 || s < 1 || d < 1 || p < 0 || k > 1 << 12 || d > 1 << 12 || s > 1 << 12 || p > 1 << 12) return 0;
        npy_intp reach = it->size[i] + 2 * p - d * (k - 1) - 1;
        if (reach < 0) return 0;
        it->out[i] = reach / s + 1;
    }
    return 1;
}

/* Between planes and the contents of their windows: planes, elements of a window, windows. */
static void lay_out(const Geometry *it, float *planes, float *cells, int back) {
    for (npy_intp plane = 0; plane < it->planes; plane++, planes += it->size[0] * it->size[1])
        for (npy_intp y = 0; y < it->kernel[0]; y++)
            for (npy_intp x = 0; x < it->kernel[1]; x++)
                for (npy_intp i = 0; i < it->out[0]; i++)
                    for (npy_intp j = 0; j < it->out[1]; j++, cells++) {
                        npy_intp row = i * it->stride[0] + y * it->dilation[0] - it->padding[0];
                        npy_intp column = j * it->stride[1] + x * it->dilation[1] - it->padding[1];
                        int inside = row >= 0 && row < it->size[0] && column >= 0 && column < it->size[1];
                        if (!back) *cells = inside ? planes[row * it->size[1] + column] : 0.0f;
                        else if (inside) planes[row * it->size[1] + column] += *cells;
                    }
}

/* im2col(x, kernel_size, dilation, padding, stride) */
static PyObject *im2col(PyObject *const *args, Py_ssize_t count) {
    Geometry it;
    if (count != 5 || !is_images(args[0], &it) || !blocks_of(args + 1, &it)) return LEFT;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(x);
    npy_intp window = it.kernel[0] * it.kernel[1], windows = it.out[0] * it.out[1];
    npy_intp shape[3] = {PyArray_DIM(x, 0), PyArray_DIM(x, ndim - 3) * window, windows};
    if (it.planes * window * windows > FEW_CELLS) return LEFT;
    PyArrayObject *made = new_of(x, ndim - 1, ndim == 4 ? shape : shape + 1);
    if (made) lay_out(&it, PyArray_DATA(x), PyArray_DATA(made), 0);
    return (PyObject *)made;
}

/* col2im(x, output_size, kernel_size, dilation, padding, stride) */
static PyObject *col2im(PyObject *const *args, Py_ssize_t count) {
    Geometry it;
    if (count != 6 || !is_of(args[0], NPY_FLOAT) || !pair_of(args[1], it.size) || it.size[0] < 1 || it.size[1] < 1 ||
        !blocks_of(args + 2, &it))
        return LEFT;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(x);
    npy_intp window = it.kernel[0] * it.kernel[1], windows = it.out[0] * it.out[1];
    if ((ndim != 2 && ndim != 3) || !PyArray_SIZE(x) || PyArray_DIM(x, ndim - 2) % window ||
        PyArray_DIM(x, ndim - 1) != windows || PyArray_SIZE(x) > FEW_CELLS || it.size[0] > FEW_CELLS || it.size[1] > FEW_CELLS)
        return LEFT;
    npy_intp shape[4] = {PyArray_DIM(x, 0), PyArray_DIM(x, ndim - 2) / window, it.size[0], it.size[1]};
    it.planes = PyArray_SIZE(x) / (window * windows);
    PyArrayObject *made = new_of(x, ndim + 1, ndim == 3 ? shape : shape + 1);
    if (!made) return NULL;
    memset(PyArray_DATA(made), 0, (size_t)PyArray_NBYTES(made));
    lay_out(&it, PyArray_DATA(made), PyArray_DATA(x), 1);
    return (PyObject *)made;
}

/* Which row or column a padded one repeats, by reflection. */
static npy_intp mirrored(npy_intp place, npy_intp size) {
    if (place < 0) place = -place;
    return place >= size ? 2 * (size - 1) - place : place;
}

/* left, right, top, bottom */
static int margins_of(PyObject *o, const Geometry *it, npy_intp margins[4]) {
    npy_intp found[NPY_MAXDIMS];
    if (sizes_of(o, found) != 4) return 0;
    for (int i = 0; i < 4; i++) {
        if (found[i] < 0 || found[i] >= it->size[i < 2]) return 0;
        margins[i] = found[i];
    }
    return 1;
}

static void reflect(const Geometry *it, const npy_intp margins[4], float *inner, float *outer, int back) {
    npy_intp high = it->size[0] + margins[2] + margins[3], wide = it->size[1] + margins[0] + margins[1];
    for (npy_intp plane = 0; plane < it->planes; plane++, inner += it->size[0] * it->size[1])
        for (npy_intp i = 0; i < high; i++) {
            float *row = inner + mirrored(i - margins[2], it->size[0]) * it->size[1];
            for (npy_intp j = 0; j < wide; j++, outer++) {
                npy_intp column = mirrored(j - margins[0], it->size[1]);
                if (back) row[column] += *outer;
                else *outer = row[column];
            }
        }
}

/* reflection_pad2d(x, padding) */
static PyObject *reflection_pad(PyObject *const *args, Py_ssize_t count) {
    Geometry it;
    npy_intp margins[4];
    if (count != 2 || !is_images(args[0], &it) || !margins_of(args[1], &it, margins) ||
        PyArray_SIZE((PyArrayObject *)args[0]) > FEW_CELLS)
        return LEFT;
    npy_intp sizes[2] = {it.size[0] + margins[2] + margins[3], it.size[1] + margins[0] + margins[1]};
    PyArrayObject *made = new_images((PyArrayObject *)args[0], sizes, NPY_FLOAT);
    if (made) reflect(&it, margins, DATA(args[0]), PyArray_DATA(made), 0);
    return (PyObject *)made;
}

/* reflection_pad2d_backward(grad, x, padding) */
static PyObject *reflection_pad_backward(PyObject *const *args, Py_ssize_t count) {
    Geometry it, large;
    npy_intp margins[4];
    if (count != 3 || !is_images(args[1], &it) || !is_images(args[0], &large) || !margins_of(args[2], &it, margins) ||
        PyArray_SIZE((PyArrayObject *)args[0]) > FEW_CELLS || large.planes != it.planes ||
        PyArray_NDIM((PyArrayObject *)args[0]) != PyArray_NDIM((PyArrayObject *)args[1]) ||
        large.size[0] != it.size[0] + margins[2] + margins[3] || large.size[1] != it.size[1] + margins[0] + margins[1])
        return LEFT;
    PyArrayObject *made = new_images((PyArrayObject *)args[1], it.size, NPY_FLOAT);
    if (!made) return NULL;
    memset(PyArray_DATA(made), 0, (size_t)PyArray_NBYTES(made));
    reflect(&it, margins, PyArray_DATA(made), DATA(args[0]), 1);
    return (PyObject *)made;
}

DirectEntry images_direct[] = {{"max_pool2d_with_indices", max_pool, 0},
                               {"max_pool2d_with_indices_backward", max_pool_backward, 0},
                               {"adaptive_max_pool2d", adaptive_max_pool, 0},
                               {"adaptive_max_pool2d_backward", adaptive_max_pool_backward, 0},
                               {"avg_pool2d", avg_pool, 0}, {"avg_pool2d_backward", avg_pool_backward, 0},
                               {"_adaptive_avg_pool2d", adaptive_avg_pool, 0},
                               {"_adaptive_avg_pool2d_backward", adaptive_avg_pool_backward, 0},
                               {"im2col", im2col, 0}, {"col2im", col2im, 0},
                               {"reflection_pad2d", reflection_pad, 0},
                               {"reflection_pad2d_backward", reflection_pad_backward, 0}, {NULL, NULL, 0}};

#define FAST(NAME) {#NAME, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {FAST(pool_max), FAST(pool_mean), FAST(pool_mean_back), FAST(resize), FAST(resize_back),
                                FAST(grid_sample), FAST(grid_sample_back), {NULL, NULL, 0, NULL}};

int images_add(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
