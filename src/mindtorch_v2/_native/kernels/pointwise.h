/* Functions of each element, gradients of them, and sums, products and the like of two arrays. Included once by each
   level's file. */

/* sqrt(2 / pi), and the factor of the cube in the approximation of gelu by tanh. */
#define GELU_RATE 0.7978845608f
#define GELU_CUBIC 0.044715f

/* The share of a normal distribution below x, where `bell` is e**(-x*x/2). Half the complement of the error function is
   that times a polynomial in u, fitted for |x| below 6 with an error of 1e-7; it has no near and far, and loses no digits
   below zero. */
INLINE V normal_share(V x, V bell) {
    V u = 1.0f / (1.0f + 0.25455844f * absolute(x));
    V p = splat(-0.085865956f);
    p = p * u + 0.29923159f;
    p = p * u - 0.20737258f;
    p = p * u + 0.24081564f;
    p = p * u + 0.040847116f;
    p = p * u + 0.1115716f;
    p = p * u + 0.10077254f;
    V tail = p * u * bell;
    return choose(x < 0.0f, tail, 1.0f - tail);
}
INLINE V gelu(V x) { return x * normal_share(x, exponential(x * x * -0.5f)); }
INLINE V gelu_tanh(V x) {
    return 0.5f * x * (1.0f + hyperbolic_tangent(GELU_RATE * (x + GELU_CUBIC * x * x * x)));
}

INLINE V unary_of(enum Unary kind, V x) {
    switch (kind) {
    case LOG_GAMMA: return log_gamma(x);
    case DIGAMMA: return digamma(x);
    case TRIGAMMA: return trigamma(x);
    case EXP: return exponential(x);
    case LOG: return logarithm(x);
    case TANH: return hyperbolic_tangent(x);
    case SIGMOID: return logistic(x);
    case ERF: return error_function(x);
    case SILU: return x / (1.0f + exponential(-x));
    case GELU: return gelu(x);
    case GELU_TANH: return gelu_tanh(x);
    case RELU: return choose(x < 0.0f, splat(0.0f), x);
    case SQRT: return root(x);
    case NEG: return -x;
    case ABS: return absolute(x);
    case SQUARE: return x * x;
    case RECIPROCAL: return 1.0f / x;
    case RSQRT: return 1.0f / root(x);
    default: return x;
    }
}

INLINE V slope_of(enum Slope kind, V g, V x) {
    switch (kind) {
    case TANH_SLOPE: return g * (1.0f - x * x);
    case SIGMOID_SLOPE: return g * ((1.0f - x) * x);
    case SILU_SLOPE: {
        V s = logistic(x);
        return g * s * (1.0f + x * (1.0f - s));
    }
    case GELU_SLOPE: {
        V bell = exponential(x * x * -0.5f);
        return g * (normal_share(x, bell) + x * 0.39894228f * bell);
    }
    case GELU_TANH_SLOPE: {
        V s = x * x, t = hyperbolic_tangent(GELU_RATE * (x + GELU_CUBIC * s * x));
        V inner = GELU_RATE * (1.0f + 3.0f * GELU_CUBIC * s);
        return g * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner);
    }
    case RELU_SLOPE: return choose(x <= 0.0f, splat(0.0f), g);
    default: return g;
    }
}

INLINE V binary_of(enum Binary kind, V a, V b) {
    switch (kind) {
    case ADD: return a + b;
    case SUBTRACT: return a - b;
    case MULTIPLY: return a * b;
    case DIVIDE: return a / b;
    case MAXIMUM: return choose((a > b) | (a != a), a, b);
    case MINIMUM: return choose((a < b) | (a != a), a, b);
    default: return a;
    }
}

typedef struct {
    float *made;
    const float *a, *b;
    ptrdiff_t columns, a_row, a_column, b_row, b_column;
} Pointwise;

/* A function for each kind, so that the choice is made outside of the loop. */
#define UNARY_SHARE(KIND)                                                                                              \
    static void unary_##KIND(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {                                 \
        Pointwise *it = work;                                                                                          \
        (void)share;                                                                                                  \
        ptrdiff_t i = begin;                                                                                           \
        for (; i + LANES <= end; i += LANES) store(it->made + i, unary_of(KIND, load(it->a + i)));                     \
        if (i < end) store_some(it->made + i, unary_of(KIND, load_some(it->a + i, end - i, 0.0f)), end - i);           \
    }
#define SLOPE_SHARE(KIND)                                                                                              \
    static void slope_##KIND(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {                                 \
        Pointwise *it = work;                                                                                          \
        (void)share;                                                                                                  \
        ptrdiff_t i = begin;                                                                                           \
        for (; i + LANES <= end; i += LANES) store(it->made + i, slope_of(KIND, load(it->a + i), load(it->b + i)));    \
        if (i < end)                                                                                                   \
            store_some(it->made + i, slope_of(KIND, load_some(it->a + i, end - i, 0.0f),                               \
                                              load_some(it->b + i, end - i, 0.0f)), end - i);                          \
    }
/* Rows of a result; an operand's step within a row is 1 or 0. */
#define BINARY_SHARE(KIND)                                                                                             \
    static void binary_##KIND(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {                                \
        Pointwise *it = work;                                                                                          \
        (void)share;                                                                                                  \
        ptrdiff_t columns = it->columns, position = begin;                                                             \
        while (position < end) {                                                                                       \
            ptrdiff_t r = position / columns, c = position % columns;                                                  \
            ptrdiff_t count = least(columns - c, end - position);                                                      \
            const float *a = it->a + r * it->a_row + c * it->a_column, *b = it->b + r * it->b_row + c * it->b_column;  \
            float *to = it->made + position;                                                                           \
            ptrdiff_t i = 0;                                                                                           \
            if (it->a_column && it->b_column)                                                                          \
                for (; i + LANES <= count; i += LANES) store(to + i, binary_of(KIND, load(a + i), load(b + i)));       \
            else if (it->a_column)                                                                                     \
                for (V y = splat(*b); i + LANES <= count; i += LANES) store(to + i, binary_of(KIND, load(a + i), y));  \
            else                                                                                                       \
                for (V x = splat(*a); i + LANES <= count; i += LANES)                                                  \
                    store(to + i, binary_of(KIND, x, it->b_column ? load(b + i) : splat(*b)));                         \
            if (i < count)                                                                                             \
                store_some(to + i, binary_of(KIND,                                                                     \
                                             it->a_column ? load_some(a + i, count - i, 1.0f) : splat(*a),             \
                                             it->b_column ? load_some(b + i, count - i, 1.0f) : splat(*b)), count - i);\
            position += count;                                                                                         \
        }                                                                                                              \
    }

UNARY_SHARE(LOG_GAMMA) UNARY_SHARE(DIGAMMA) UNARY_SHARE(TRIGAMMA)
UNARY_SHARE(EXP) UNARY_SHARE(LOG) UNARY_SHARE(TANH) UNARY_SHARE(SIGMOID) UNARY_SHARE(ERF) UNARY_SHARE(SILU)
UNARY_SHARE(GELU) UNARY_SHARE(GELU_TANH) UNARY_SHARE(RELU) UNARY_SHARE(SQRT) UNARY_SHARE(NEG) UNARY_SHARE(ABS)
UNARY_SHARE(SQUARE) UNARY_SHARE(RECIPROCAL) UNARY_SHARE(RSQRT)
SLOPE_SHARE(TANH_SLOPE) SLOPE_SHARE(SIGMOID_SLOPE) SLOPE_SHARE(SILU_SLOPE) SLOPE_SHARE(GELU_SLOPE)
SLOPE_SHARE(GELU_TANH_SLOPE) SLOPE_SHARE(RELU_SLOPE)
BINARY_SHARE(ADD) BINARY_SHARE(SUBTRACT) BINARY_SHARE(MULTIPLY) BINARY_SHARE(DIVIDE) BINARY_SHARE(MAXIMUM)
BINARY_SHARE(MINIMUM)

static const Share UNARY_SHARES[UNARY_COUNT] = {
    [LOG_GAMMA] = unary_LOG_GAMMA, [DIGAMMA] = unary_DIGAMMA, [TRIGAMMA] = unary_TRIGAMMA,
    [EXP] = unary_EXP, [LOG] = unary_LOG, [TANH] = unary_TANH, [SIGMOID] = unary_SIGMOID, [ERF] = unary_ERF,
    [SILU] = unary_SILU, [GELU] = unary_GELU, [GELU_TANH] = unary_GELU_TANH, [RELU] = unary_RELU, [SQRT] = unary_SQRT,
    [NEG] = unary_NEG, [ABS] = unary_ABS, [SQUARE] = unary_SQUARE, [RECIPROCAL] = unary_RECIPROCAL,
    [RSQRT] = unary_RSQRT};
static const Share SLOPE_SHARES[SLOPE_COUNT] = {
    [TANH_SLOPE] = slope_TANH_SLOPE, [SIGMOID_SLOPE] = slope_SIGMOID_SLOPE, [SILU_SLOPE] = slope_SILU_SLOPE,
    [GELU_SLOPE] = slope_GELU_SLOPE, [GELU_TANH_SLOPE] = slope_GELU_TANH_SLOPE, [RELU_SLOPE] = slope_RELU_SLOPE};
static const Share BINARY_SHARES[BINARY_COUNT] = {
    [ADD] = binary_ADD, [SUBTRACT] = binary_SUBTRACT, [MULTIPLY] = binary_MULTIPLY, [DIVIDE] = binary_DIVIDE,
    [MAXIMUM] = binary_MAXIMUM, [MINIMUM] = binary_MINIMUM};

static void unary(enum Unary kind, float *made, const float *given, ptrdiff_t count) {
    Pointwise it = {.made = made, .a = given};
    pool_run(UNARY_SHARES[kind], &it, count, kind < RELU ? SHARE / 2 : 2 * SHARE);
}

static void slope(enum Slope kind, float *made, const float *pull, const float *given, ptrdiff_t count) {
    Pointwise it = {.made = made, .a = pull, .b = given};
    pool_run(SLOPE_SHARES[kind], &it, count, kind == GELU_SLOPE || kind == GELU_TANH_SLOPE ? SHARE / 2 : 2 * SHARE);
}

static void binary(enum Binary kind, float *made, const float *a, const float *b, ptrdiff_t rows, ptrdiff_t columns,
                   ptrdiff_t a_row, ptrdiff_t a_column, ptrdiff_t b_row, ptrdiff_t b_column) {
    Pointwise it = {made, a, b, columns, a_row, a_column, b_row, b_column};
    pool_run(BINARY_SHARES[kind], &it, rows * columns, 2 * SHARE);
}

/* An array updated by one or two others and a number, in place or into another. */
INLINE V update_of(enum Update kind, V a, V b, V c, float value) {
    switch (kind) {
    case LERP: return a + value * (b - a);
    case ADD_PRODUCT: return a + value * b * c;
    case ADD_QUOTIENT: return a + value * b / c;
    case ADD_SCALED: return a + value * b;
    default: return a;
    }
}

typedef struct {
    float *made;
    const float *a, *b, *c;
    float value;
} Updated;

#define UPDATE_SHARE(KIND)                                                                                             \
    static void update_##KIND(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {                                 \
        Updated *it = work;                                                                                            \
        (void)share;                                                                                                   \
        ptrdiff_t i = begin;                                                                                           \
        for (; i + LANES <= end; i += LANES)                                                                           \
            store(it->made + i, update_of(KIND, load(it->a + i), load(it->b + i), load(it->c + i), it->value));        \
        if (i < end)                                                                                                   \
            store_some(it->made + i, update_of(KIND, load_some(it->a + i, end - i, 0.0f),                              \
                                               load_some(it->b + i, end - i, 0.0f),                                    \
                                               load_some(it->c + i, end - i, 1.0f), it->value), end - i);              \
    }
UPDATE_SHARE(LERP) UPDATE_SHARE(ADD_PRODUCT) UPDATE_SHARE(ADD_QUOTIENT) UPDATE_SHARE(ADD_SCALED)
static const Share UPDATE_SHARES[UPDATE_COUNT] = {
    [LERP] = update_LERP, [ADD_PRODUCT] = update_ADD_PRODUCT, [ADD_QUOTIENT] = update_ADD_QUOTIENT,
    [ADD_SCALED] = update_ADD_SCALED};

static void update(enum Update kind, float *made, const float *a, const float *b, const float *c, float value,
                   ptrdiff_t count) {
    Updated it = {made, a, b, c, value};
    pool_run(UPDATE_SHARES[kind], &it, count, 2 * SHARE);
}
