/* Functions of one or two arrays and up to three numbers: activations made of pieces, losses, and their slopes.
   Included once by each level's file. */

/* e**x - 1: where no power of two is taken out, what is added to the 1 is the result. */
INLINE V exponential_less_one(V x) {
    V s = splat(1.0f / 5040.0f);
    s = s * x + 1.0f / 720.0f;
    s = s * x + 1.0f / 120.0f;
    s = s * x + 1.0f / 24.0f;
    s = s * x + 1.0f / 6.0f;
    s = s * x + 0.5f;
    return with_sign(choose(absolute(x) < 0.35f, x + x * x * s, exponential(x) - 1.0f), x); /* -0 of -0 */
}

/* log(1 + x) for x >= 0: what was rounded off in 1 + x is added to the logarithm. */
INLINE V logarithm_beside_one(V x) {
    V u = 1.0f + x;
    return choose(u == INFINITY, u, logarithm(u) + (x - (u - 1.0f)) / u);
}

/* Of NaN, the bounds keep it. */
INLINE V keep_between(V x, float low, float high) {
    x = choose(x < low, splat(low), x);
    return choose(x > high, splat(high), x);
}

INLINE V formula_of(enum Formula kind, V a, V b, float p, float q, float r) {
    switch (kind) {
    case CLAMP: return keep_between(a, p, q);
    case CLAMP_SLOPE: return choose((b <= p) | (b >= q), splat(0.0f), a);
    case HARD_SIGMOID: return keep_between(a + 3.0f, 0.0f, 6.0f) / 6.0f;
    case HARD_SIGMOID_SLOPE: return choose((b > -3.0f) & (b < 3.0f), a / 6.0f, splat(0.0f));
    case HARD_SWISH: return keep_between(a + 3.0f, 0.0f, 6.0f) * a / 6.0f;
    case HARD_SWISH_SLOPE: {
        V inside = choose(b < 3.0f, a * (b / 3.0f + 0.5f), a);
        return choose(b <= -3.0f, splat(0.0f), inside);
    }
    case LEAKY: return choose(a > 0.0f, a, a * p);
    case LEAKY_SLOPE: return choose(b > 0.0f, a, a * p);
    case SOFT_SHRINK: return a - keep_between(a, -p, p);
    case SHRINK_SLOPE: return choose(absolute(b) <= p, splat(0.0f), a);
    case ELU: return choose(a > 0.0f, a * q, exponential_less_one(a * r) * p);
    case ELU_SLOPE: return a * choose(b > 0.0f, splat(q), r * p * exponential(b * r));
    case ELU_SLOPE_OF_RESULT: return a * choose(b > 0.0f, splat(q), r * (b + p));
    case SOFT_PLUS: {
        V z = a * p;
        return choose(z > q, a, logarithm_beside_one(exponential(z)) / p);
    }
    case SOFT_PLUS_SLOPE: {
        V z = b * p;
        return choose(z > q, a, a * logistic(z));
    }
    case LOG_SIGMOID: return choose(a > 0.0f, splat(0.0f), a) - logarithm_beside_one(b);
    case LOG_SIGMOID_SLOPE: return a * logistic(-b);
    case SMOOTH_L1: {
        V size = absolute(a - b);
        return choose(size < p, 0.5f * size * size / p, size - 0.5f * p);
    }
    case SMOOTH_L1_SLOPE: {
        V d = a - b;
        return keep_between(d / p, -1.0f, 1.0f) * q;
    }
    case HUBER: {
        V size = absolute(a - b);
        return choose(size <= p, 0.5f * size * size, p * (size - 0.5f * p));
    }
    case HUBER_SLOPE: return keep_between(a - b, -p, p) * q;
    case SQUARED_DIFFERENCE: return (a - b) * (a - b);
    case DIFFERENCE_TIMES: return (a - b) * p;
    case SIGN: return choose(a > 0.0f, splat(1.0f), choose(a < 0.0f, splat(-1.0f), splat(0.0f)));
    case SUM_OF_SCALED: return a + b * p;
    default: return a;
    }
}

typedef struct {
    float *made;
    const float *a, *b;
    float p, q, r;
} Formulas;

#define FORMULA_SHARE(KIND)                                                                                            \
    static void formula_##KIND(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {                               \
        Formulas it = *(Formulas *)work;                                                                               \
        (void)share;                                                                                                  \
        ptrdiff_t i = begin;                                                                                           \
        for (; i + LANES <= end; i += LANES)                                                                           \
            store(it.made + i, formula_of(KIND, load(it.a + i), load(it.b + i), it.p, it.q, it.r));                    \
        if (i < end)                                                                                                   \
            store_some(it.made + i, formula_of(KIND, load_some(it.a + i, end - i, 0.0f),                               \
                                               load_some(it.b + i, end - i, 0.0f), it.p, it.q, it.r), end - i);        \
    }
#define ALL_FORMULAS(DO)                                                                                               \
    DO(CLAMP) DO(CLAMP_SLOPE) DO(HARD_SIGMOID) DO(HARD_SIGMOID_SLOPE) DO(HARD_SWISH) DO(HARD_SWISH_SLOPE) DO(LEAKY)    \
    DO(LEAKY_SLOPE) DO(SOFT_SHRINK) DO(SHRINK_SLOPE) DO(ELU) DO(ELU_SLOPE) DO(ELU_SLOPE_OF_RESULT) DO(SOFT_PLUS)       \
    DO(SOFT_PLUS_SLOPE) DO(LOG_SIGMOID) DO(LOG_SIGMOID_SLOPE) DO(SMOOTH_L1) DO(SMOOTH_L1_SLOPE) DO(HUBER)              \
    DO(HUBER_SLOPE) DO(SQUARED_DIFFERENCE) DO(DIFFERENCE_TIMES) DO(SIGN) DO(SUM_OF_SCALED)
#define FORMULA_NAME(KIND) [KIND] = formula_##KIND,
ALL_FORMULAS(FORMULA_SHARE)
static const Share FORMULA_SHARES[FORMULA_COUNT] = {ALL_FORMULAS(FORMULA_NAME)};

static void formula(enum Formula kind, float *made, const float *a, const float *b, const float numbers[3],
                    ptrdiff_t count) {
    Formulas it = {made, a, b, numbers[0], numbers[1], numbers[2]};
    pool_run(FORMULA_SHARES[kind], &it, count, SHARE);
}

typedef struct {
    float *made;
    const float *pull, *given;
    ptrdiff_t half;
} Gates;

/* Items are stretches. */
static void gated_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Gates *it = work;
    ptrdiff_t half = it->half;
    (void)share;
    for (ptrdiff_t s = begin; s < end; s++) {
        const float *a = it->given + 2 * s * half, *b = a + half, *g = it->pull ? it->pull + s * half : NULL;
        float *to = it->made + (it->pull ? 2 : 1) * s * half;
        for (ptrdiff_t j = 0; j < half; j += LANES) {
            ptrdiff_t left = half - j;
            V first = next(a + j, left), open = logistic(next(b + j, left));
            if (!it->pull) {
                put(to + j, first * open, left);
                continue;
            }
            V slope = next(g + j, left) * open;
            put(to + j, slope, left);
            put(to + half + j, (1.0f - open) * slope * first, left);
        }
    }
}

static void gated(float *made, const float *pull, const float *given, ptrdiff_t outer, ptrdiff_t half) {
    Gates it = {made, pull, given, half};
    pool_run(gated_share, &it, outer, 1 + SHARE / 2 / (half + 1));
}

/* What is left of a division, with the sign of the dividend or of the divisor. Products of quotients below 2**29 and
   float32 numbers are exact in float64; others are left to the library. */
typedef struct {
    float *made;
    const float *a, *b;
    int floored;
} Moduli;

INLINE float signed_as(float rest, float by) { return rest != 0.0f && (rest < 0.0f) != (by < 0.0f) ? rest + by : rest; }

static void modulo_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Moduli it = *(Moduli *)work;
    (void)share;
    enum { SOME = 512 };
    for (ptrdiff_t from = begin; from < end; from += SOME) {
        ptrdiff_t count = least(SOME, end - from);
        const float *a = it.a + from, *b = it.b + from;
        float rest[SOME];
        int odd = 0;
        for (ptrdiff_t i = 0; i < count; i++) {
            double x = (double)a[i], y = (double)b[i], size = y < 0.0 ? -y : y;
            double ratio = x / y;
            int usual = ratio < 536870912.0 && ratio > -536870912.0 && size < INFINITY;
            odd |= !usual;
            int32_t whole = (int32_t)(usual ? ratio : 0.0);
            double left = x - (double)whole * y;
            /* The quotient may have been rounded to the next whole number. */
            left = x >= 0.0 ? (left < 0.0 ? left + size : left) : (left > 0.0 ? left - size : left);
            left = left >= size ? left - size : left <= -size ? left + size : left;
            rest[i] = copysignf((float)left, a[i]);
        }
        if (odd)
            for (ptrdiff_t i = 0; i < count; i++) {
                double ratio = (double)a[i] / (double)b[i];
                if (!(ratio < 536870912.0 && ratio > -536870912.0 && fabsf(b[i]) < INFINITY)) rest[i] = fmodf(a[i], b[i]);
            }
        for (ptrdiff_t i = 0; i < count; i++) it.made[from + i] = it.floored ? signed_as(rest[i], b[i]) : rest[i];
    }
}

static void modulo(float *made, const float *a, const float *b, ptrdiff_t count, int floored) {
    Moduli it = {made, a, b, floored};
    pool_run(modulo_share, &it, count, SHARE / 2);
}
