/* What the levels of instructions have in common: the table of kernels that each of them fills. */
#ifndef MINDTORCH_KERNELS_H
#define MINDTORCH_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "pool.h"

typedef struct {
    float *data;
    ptrdiff_t row, column; /* distances in elements */
} Matrix;

/* Those before RELU take long. */
enum Unary { LOG_GAMMA, DIGAMMA, TRIGAMMA, EXP, LOG, TANH, SIGMOID, ERF, SILU, GELU, GELU_TANH, RELU, SQRT, NEG, ABS, SQUARE, RECIPROCAL, RSQRT,
             UNARY_COUNT };
/* Of a gradient and either the operand or the result. */
enum Slope { TANH_SLOPE, SIGMOID_SLOPE, SILU_SLOPE, GELU_SLOPE, GELU_TANH_SLOPE, RELU_SLOPE, SLOPE_COUNT };
enum Binary { ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, BINARY_COUNT };
/* Functions of one or two arrays and three numbers; slopes take the gradient first. */
enum Formula { CLAMP, CLAMP_SLOPE, HARD_SIGMOID, HARD_SIGMOID_SLOPE, HARD_SWISH, HARD_SWISH_SLOPE, LEAKY, LEAKY_SLOPE,
               SOFT_SHRINK, SHRINK_SLOPE, ELU, ELU_SLOPE, ELU_SLOPE_OF_RESULT, SOFT_PLUS, SOFT_PLUS_SLOPE, LOG_SIGMOID,
               LOG_SIGMOID_SLOPE, SMOOTH_L1, SMOOTH_L1_SLOPE, HUBER, HUBER_SLOPE, SQUARED_DIFFERENCE, DIFFERENCE_TIMES,
               SIGN, SUM_OF_SCALED, FORMULA_COUNT };
enum Reduction { SUM, PRODUCT, LARGEST, SMALLEST, SQUARES, REDUCTION_COUNT };
/* Name, type of the result, type of what is given, and the result of x. Floats that do not fit are what x86 makes of them. */
#define PLAIN_CONVERSIONS(_)                                                                                           \
    _(BYTES_TO_INTEGERS, int64_t, uint8_t, x)                                                                          \
    _(FLAGS_TO_INTEGERS, int64_t, uint8_t, x != 0)                                                                     \
    _(BYTES_TO_FLOAT32, float, uint8_t, x)                                                                             \
    _(FLAGS_TO_FLOAT32, float, uint8_t, x != 0)                                                                        \
    _(FLOAT32_TO_FLOAT64, double, float, x)                                                                            \
    _(FLOAT64_TO_FLOAT32, float, double, x)                                                                            \
    _(FLOAT32_TO_INTEGERS, int64_t, float, x)                                                                          \
    _(INTEGERS_TO_FLOAT32, float, int64_t, x)                                                                          \
    _(FLOAT64_TO_INTEGERS, int64_t, double, x)                                                                         \
    _(INTEGERS_TO_FLOAT64, double, int64_t, x)                                                                         \
    _(INT32_TO_INTEGERS, int64_t, int32_t, x)                                                                          \
    _(INTEGERS_TO_INT32, int32_t, int64_t, x)                                                                          \
    _(INT32_TO_FLOAT32, float, int32_t, x)                                                                             \
    _(FLOAT32_TO_FLAGS, uint8_t, float, x != 0)                                                                        \
    _(INTEGERS_TO_FLAGS, uint8_t, int64_t, x != 0)                                                                     \
    _(FLOAT32_TO_BYTES, uint8_t, float, (int32_t)x)
#define CONVERSION_NAME(NAME, TO, FROM, RESULT) NAME,
enum Conversion { TO_FLOAT16, OF_FLOAT16, TO_BFLOAT16, OF_BFLOAT16, PLAIN_CONVERSIONS(CONVERSION_NAME) CONVERSION_COUNT };
enum Update { LERP, ADD_PRODUCT, ADD_QUOTIENT, ADD_SCALED, UPDATE_COUNT };

/* Numbers of a step are worked out in float64 and rounded here: 1 - 0.999 has few digits left in float32. */
typedef struct {
    float rate, new_average, old_square, new_square, spread, eps, decay, shrink;
    int decoupled, maximize;
} Adam;

typedef struct {
    float rate, eps, decay;
    int maximize;
} Adagrad;

typedef struct {
    float lr, momentum, new_moving, decay;
    int nesterov, maximize, first;
} Descent;

typedef struct {
    ptrdiff_t batch, heads, groups, rows, keys, features, values;
    float scale;
    int causal;
    /* Distances in elements: batch, head, row. The last dimension has distance 1. */
    const float *query, *key, *value, *mask;
    ptrdiff_t query_step[3], key_step[3], value_step[3], mask_step[4];
    float *out, *logs;
    ptrdiff_t out_step[3];
    /* The way back. */
    const float *pull;
    ptrdiff_t pull_step[3];
    float *query_pull, *key_pull, *value_pull;
    ptrdiff_t query_pull_step[3], key_pull_step[3], value_pull_step[3];
} Attention;

/* In PyTorch's order. Only long short-term memory has cells. Of plain layers `gates` are `out`. */
enum RecurrentKind { RECURRENT_RELU, RECURRENT_TANH, RECURRENT_LSTM, RECURRENT_GRU, RECURRENT_COUNT };
typedef struct {
    enum RecurrentKind kind;
    ptrdiff_t steps, batch, hidden;
    int reverse;
    const float *weight, *first, *first_cell;
    float *gates, *cells, *squashed, *out;
    /* The backward. `state_pull` and `cell_pull` hold the last states' gradients, and then the first ones'. */
    const float *pull;
    float *slopes, *state_pull, *cell_pull;
} Recurrent;

typedef struct {
    ptrdiff_t images, channels, area, groups;
    float eps;
    int learns;
    const float *given, *weight, *bias, *pull;
    float *made, *mean, *variance, *rstd, *weight_pull, *bias_pull;
} ChannelNorm;

/* Of volumes: depth, height and width. Images have a depth of 1, lines a height of 1 too. */
typedef struct {
    ptrdiff_t images, channels, out_channels, groups;
    ptrdiff_t given[3], made[3], kernel[3], stride[3], padding[3], dilation[3];
} Windows;

/* Planes of (height, width), and for each position of a result where its window begins and ends; windows take every
   `down`th row and every `across`th column. */
typedef struct {
    float *made;
    int64_t *where;
    const float *given;
    const int64_t *top, *bottom, *left, *right;
    ptrdiff_t height, width, out_height, out_width, down, across;
} Maxima;

/* A transform along the middle of (outer, total, inner). Real rows have half a spectrum, or are given a full one; `sign`
   is -1 for the inverse. `roots` are the complex roots of one, `total` of them, clockwise. */
enum Spectrum { COMPLEX_TO_COMPLEX, REAL_TO_HALF, REAL_TO_FULL, HALF_TO_REAL, SPECTRUM_COUNT };
typedef struct {
    enum Spectrum kind;
    ptrdiff_t outer, total, inner;
    float sign, scale;
    const float *roots;
} Fourier;

/* Kernels that need memory of their own return 0, or this if there is none. */
enum { NO_MEMORY = -1 };

typedef struct {
    const char *name;
    /* made = left @ right, plus a row `bias`, or added to what is there. Columns of `made` are next to each other. */
    int (*multiply)(Matrix made, Matrix left, Matrix right, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t inner,
                     const float *bias, int add);
    int (*multiply_batch)(float *made, const float *left, const float *right, ptrdiff_t count, ptrdiff_t rows,
                           ptrdiff_t columns, ptrdiff_t inner, const ptrdiff_t steps[7]);
    void (*softmax)(float *made, const float *given, ptrdiff_t rows, ptrdiff_t count, int logs);
    void (*softmax_back)(float *made, const float *pull, const float *result, ptrdiff_t rows, ptrdiff_t count,
                         int logs);
    void (*layer_norm)(float *made, float *mean, float *rstd, const float *given, const float *weight,
                       const float *bias, ptrdiff_t rows, ptrdiff_t count, float eps, int centre);
    int (*layer_norm_back)(float *made, float *weight_pull, float *bias_pull, const float *pull, const float *given,
                            const float *mean, const float *rstd, const float *weight, ptrdiff_t rows,
                            ptrdiff_t count);
    void (*unary)(enum Unary kind, float *made, const float *given, ptrdiff_t count);
    void (*slope)(enum Slope kind, float *made, const float *pull, const float *given, ptrdiff_t count);
    void (*binary)(enum Binary kind, float *made, const float *a, const float *b, ptrdiff_t rows, ptrdiff_t columns,
                   ptrdiff_t a_row, ptrdiff_t a_column, ptrdiff_t b_row, ptrdiff_t b_column);
    void (*update)(enum Update kind, float *made, const float *a, const float *b, const float *c, float value,
                   ptrdiff_t count);
    void (*formula)(enum Formula kind, float *made, const float *a, const float *b, const float numbers[3],
                    ptrdiff_t count);
    /* The first half of every stretch times the logistic function of the second. With `pull` its gradient. */
    void (*gated)(float *made, const float *pull, const float *given, ptrdiff_t outer, ptrdiff_t half);
    void (*modulo)(float *made, const float *a, const float *b, ptrdiff_t count, int floored);
    int (*reduce)(enum Reduction kind, float *made, const float *given, ptrdiff_t outer, ptrdiff_t count,
                  ptrdiff_t inner);
    /* Rows of int64, or if `flags` of bool; what does not fit wraps around. */
    void (*sum_integers)(int64_t *made, const int64_t *given, ptrdiff_t rows, ptrdiff_t count);
    void (*extreme)(enum Reduction kind, float *made, int64_t *where, const float *given, ptrdiff_t outer,
                    ptrdiff_t count, ptrdiff_t inner);
    int (*convert)(enum Conversion kind, void *made, const void *given, ptrdiff_t count);
    void (*distances)(float *made, const float *a, const float *b, const float *pull, const float *distance,
                      ptrdiff_t rows, ptrdiff_t others, ptrdiff_t features);
    int (*attention)(const Attention *it);
    int (*attention_back)(const Attention *it);
    int (*recurrent)(const Recurrent *how, int back);
    void (*batch_norm)(const ChannelNorm *how);
    void (*batch_norm_back)(const ChannelNorm *how);
    void (*group_norm)(const ChannelNorm *how);
    void (*group_norm_back)(const ChannelNorm *how);
    int (*convolve)(const Windows *how, float *made, const float *given, const float *weight, const float *bias);
    int (*convolve_back)(const Windows *how, float *made, const float *pull, const float *given);
    int (*convolve_input)(const Windows *how, float *made, const float *pull, const float *weight);
    void (*adam)(const Adam *how, float *weight, const float *pull, float *average, float *square, float *most,
                 ptrdiff_t count);
    void (*maxima)(const Maxima *how, ptrdiff_t begin, ptrdiff_t end);
    int (*fourier)(const Fourier *how, float *made, const float *given);
    /* Elements of 1, 2, 4 or 8 bytes. to[j, i] = from[i, j]: matrices whose columns are next to each other, rows at the
       given distances in bytes; to[i] = from[-i]; to[i] = *value. */
    void (*exchange)(char *to, ptrdiff_t to_row, const char *from, ptrdiff_t from_row, ptrdiff_t rows, ptrdiff_t columns,
                     ptrdiff_t size);
    void (*backwards)(char *to, const char *from, ptrdiff_t count, ptrdiff_t size);
    void (*repeat)(char *to, const char *value, ptrdiff_t count, ptrdiff_t size);
    /* `work` has the matrix and is used up; `q` has `q_columns`, or there is none; `r` has `r_rows`. */
    int (*orthogonal_triangular)(float *work, float *q, float *r, ptrdiff_t rows, ptrdiff_t columns,
                                 ptrdiff_t q_columns, ptrdiff_t r_rows);
    void (*adagrad)(const Adagrad *how, float *weight, const float *pull, float *sum, ptrdiff_t count);
    void (*descend)(const Descent *how, float *weight, const float *pull, float *moving, ptrdiff_t count);
    /* Of float16, in float32 and rounded once; 0 for what this level cannot do. */
    int (*binary_halves)(enum Binary kind, uint16_t *made, const uint16_t *a, const uint16_t *b, ptrdiff_t count);
} Kernels;

extern const Kernels kernels_plain;
#if defined(__x86_64__) && defined(__GNUC__)
#define WITH_LEVELS 1
extern const Kernels kernels_avx2, kernels_avx512;
#endif

/* The table in use. */
extern const Kernels *level;

/* Elements that a share of elementwise work should have at least: a thread takes microseconds to take part. */
enum { SHARE = 1 << 14 };

#endif
