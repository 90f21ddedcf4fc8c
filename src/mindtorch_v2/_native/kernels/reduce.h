/* Sums, products and extremes of `(outer, count, inner)` along the middle. Included once by each level's file. Sums are
   added up in stretches, and those in float64, so that long ones keep their digits. */

enum { STRETCH_LENGTH = 1024, COLUMNS_AT_ONCE = 4 * LANES, ROWS_AT_ONCE = 128 };

typedef struct {
    enum Reduction kind;
    float *made;
    int64_t *where;
    const float *given;
    double *parts;
    ptrdiff_t outer, count, inner, blocks;
} Reduced;

INLINE V joined(enum Reduction kind, V a, V b) {
    switch (kind) {
    case SUM:
    case SQUARES: return a + b;
    case PRODUCT: return a * b;
    case LARGEST: return choose((b > a) | (b != b), b, a);
    default: return choose((b < a) | (b != b), b, a);
    }
}
INLINE float joined_one(enum Reduction kind, float a, float b) {
    switch (kind) {
    case SUM:
    case SQUARES: return a + b;
    case PRODUCT: return a * b;
    case LARGEST: return b > a || b != b ? b : a;
    default: return b < a || b != b ? b : a;
    }
}
INLINE int is_extreme(enum Reduction kind) { return kind == LARGEST || kind == SMALLEST; }
INLINE int is_sum(enum Reduction kind) { return kind == SUM || kind == SQUARES; }
/* NaN stays: a comparison with it is false, so the accumulator must not be replaced once it is NaN. */
INLINE V kept(enum Reduction kind, V a, V b) {
    V c = joined(kind, a, b);
    return is_extreme(kind) ? choose(a != a, a, c) : c;
}
INLINE float kept_one(enum Reduction kind, float a, float b) {
    if (is_extreme(kind) && a != a) return a;
    return joined_one(kind, a, b);
}
/* Elements rather than results of parts. */
INLINE V taken(enum Reduction kind, V a, V x) { return kept(kind, a, kind == SQUARES ? (V)(x * x) : x); }
INLINE float taken_one(enum Reduction kind, float a, float x) {
    return kept_one(kind, a, kind == SQUARES ? x * x : x);
}
INLINE float neutral(enum Reduction kind) {
    return is_sum(kind) ? 0.0f : kind == PRODUCT ? 1.0f : kind == LARGEST ? -INFINITY : INFINITY;
}

INLINE float stretch_of(enum Reduction kind, const float *x, ptrdiff_t count) {
    V a = splat(neutral(kind)), b = a, c = a, d = a;
    ptrdiff_t j = 0;
    for (; j + 4 * LANES <= count; j += 4 * LANES) {
        a = taken(kind, a, load(x + j)), b = taken(kind, b, load(x + j + LANES));
        c = taken(kind, c, load(x + j + 2 * LANES)), d = taken(kind, d, load(x + j + 3 * LANES));
    }
    for (; j + LANES <= count; j += LANES) a = taken(kind, a, load(x + j));
    float all[LANES];
    store(all, kept(kind, kept(kind, a, b), kept(kind, c, d)));
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) all[i] = kept_one(kind, all[i], all[i + half]);
    for (; j < count; j++) all[0] = taken_one(kind, all[0], x[j]);
    return all[0];
}
static float stretch_by(enum Reduction kind, const float *x, ptrdiff_t count) {
    switch (kind) {
    case SUM: return stretch_of(SUM, x, count);
    case PRODUCT: return stretch_of(PRODUCT, x, count);
    case LARGEST: return stretch_of(LARGEST, x, count);
    case SQUARES: return stretch_of(SQUARES, x, count);
    default: return stretch_of(SMALLEST, x, count);
    }
}

/* Products of many numbers leave the range of float32 before their result does not, as they do in NumPy. */
static float line_of(enum Reduction kind, const float *x, ptrdiff_t count) {
    if (!is_sum(kind) || count <= STRETCH_LENGTH) return stretch_by(kind, x, count);
    double all = 0.0;
    for (ptrdiff_t j = 0; j < count; j += STRETCH_LENGTH)
        all += (double)stretch_by(kind, x + j, least(STRETCH_LENGTH, count - j));
    return (float)all;
}

static void reduce_rows_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Reduced *it = work;
    (void)share;
    for (ptrdiff_t r = begin; r < end; r++) it->made[r] = line_of(it->kind, it->given + r * it->count, it->count);
}

/* One long line, in blocks of fixed size. */
static void reduce_line_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Reduced *it = work;
    (void)share;
    for (ptrdiff_t b = begin; b < end; b++) {
        ptrdiff_t from = b * 16 * STRETCH_LENGTH;
        it->parts[b] = (double)line_of(it->kind, it->given + from, least(16 * STRETCH_LENGTH, it->count - from));
    }
}

INLINE void columns_of(enum Reduction kind, float *to, const float *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t width) {
    for (ptrdiff_t j = 0; j < width; j += COLUMNS_AT_ONCE) {
        ptrdiff_t here = least(COLUMNS_AT_ONCE, width - j);
        V all[4];
        for (int v = 0; v < 4; v++) all[v] = splat(neutral(kind));
        for (ptrdiff_t from = 0; from < count; from += ROWS_AT_ONCE) {
            ptrdiff_t until = least(count, from + ROWS_AT_ONCE);
            V some[4];
            for (int v = 0; v < 4; v++) some[v] = splat(neutral(kind));
            if (here == COLUMNS_AT_ONCE)
                for (ptrdiff_t r = from; r < until; r++)
                    for (int v = 0; v < 4; v++) some[v] = taken(kind, some[v], load(x + r * step + j + v * LANES));
            else
                for (ptrdiff_t r = from; r < until; r++)
                    for (int v = 0; v < 4; v++)
                        if (here > v * LANES)
                            some[v] = taken(kind, some[v], next(x + r * step + j + v * LANES, here - v * LANES));
            for (int v = 0; v < 4; v++) all[v] = kept(kind, all[v], some[v]);
        }
        for (int v = 0; v < 4; v++)
            if (here > v * LANES) put(to + j + v * LANES, all[v], here - v * LANES);
    }
}

/* Items are blocks of columns of one of the outer parts. */
static void reduce_columns_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Reduced *it = work;
    (void)share;
    enum { BLOCK = 4 * COLUMNS_AT_ONCE };
    for (ptrdiff_t item = begin; item < end; item++) {
        ptrdiff_t o = item / it->blocks, j = item % it->blocks * BLOCK;
        const float *x = it->given + o * it->count * it->inner + j;
        float *to = it->made + o * it->inner + j;
        ptrdiff_t width = least(BLOCK, it->inner - j);
        switch (it->kind) {
        case SUM: columns_of(SUM, to, x, it->count, it->inner, width); break;
        case PRODUCT: columns_of(PRODUCT, to, x, it->count, it->inner, width); break;
        case LARGEST: columns_of(LARGEST, to, x, it->count, it->inner, width); break;
        case SQUARES: columns_of(SQUARES, to, x, it->count, it->inner, width); break;
        default: columns_of(SMALLEST, to, x, it->count, it->inner, width);
        }
    }
}

static int reduce(enum Reduction kind, float *made, const float *given, ptrdiff_t outer, ptrdiff_t count,
                  ptrdiff_t inner) {
    Reduced it = {.kind = kind, .made = made, .given = given, .outer = outer, .count = count, .inner = inner};
    if (inner > 1) {
        it.blocks = (inner + 4 * COLUMNS_AT_ONCE - 1) / (4 * COLUMNS_AT_ONCE);
        pool_run(reduce_columns_share, &it, outer * it.blocks, 1 + 2 * SHARE / (count * 4 * COLUMNS_AT_ONCE + 1));
    } else if (outer > 1 || count < 4 * SHARE) {
        pool_run(reduce_rows_share, &it, outer, 1 + 2 * SHARE / (count + 1));
    } else {
        ptrdiff_t blocks = (count + 16 * STRETCH_LENGTH - 1) / (16 * STRETCH_LENGTH);
        it.parts = malloc(sizeof(double) * (size_t)blocks);
        if (!it.parts) return NO_MEMORY;
        pool_run(reduce_line_share, &it, blocks, 2);
        double all = it.parts[0];
        for (ptrdiff_t b = 1; b < blocks; b++)
            all = is_sum(kind) ? all + it.parts[b] : (double)kept_one(kind, (float)all, (float)it.parts[b]);
        made[0] = (float)all;
        free(it.parts);
    }
    return 0;
}

typedef struct {
    int64_t *made;
    const int64_t *given;
    ptrdiff_t count;
} Integers;

static void sum_integers_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Integers *it = work;
    (void)share;
    for (ptrdiff_t r = begin; r < end; r++) {
        const uint64_t *row = (const uint64_t *)it->given + r * it->count;
        uint64_t all = 0;
        for (ptrdiff_t j = 0; j < it->count; j++) all += row[j];
        it->made[r] = (int64_t)all;
    }
}

static void sum_integers(int64_t *made, const int64_t *given, ptrdiff_t rows, ptrdiff_t count) {
    enum { PARTS = 64 };
    if (rows == 1 && count >= 2 * SHARE) {
        /* One long row is many short ones and a rest. */
        int64_t parts[PARTS + 1];
        uint64_t all = 0;
        ptrdiff_t whole = count - count % PARTS;
        sum_integers(parts, given, PARTS, whole / PARTS);
        sum_integers(parts + PARTS, given + whole, 1, count - whole);
        for (int i = 0; i <= PARTS; i++) all += (uint64_t)parts[i];
        made[0] = (int64_t)all;
        return;
    }
    Integers it = {made, given, count};
    pool_run(sum_integers_share, &it, rows, 1 + SHARE / (count + 1));
}

/* Extremes and where the first of them is; the first NaN wins. */
static void extreme_rows_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Reduced *it = work;
    (void)share;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *x = it->given + r * it->count;
        float found = stretch_by(it->kind, x, it->count);
        ptrdiff_t j = 0;
        V wanted = splat(found);
        if (found == found) {
            for (; j + LANES <= it->count; j += LANES) {
                I same = load(x + j) == wanted;
                int any = 0;
                for (int i = 0; i < LANES; i++) any |= same[i];
                if (any) break;
            }
            while (x[j] != found) j++;
        } else {
            while (x[j] == x[j]) j++;
        }
        it->made[r] = x[j];
        it->where[r] = j;
    }
}

static void extreme_columns_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Reduced *it = work;
    (void)share;
    for (ptrdiff_t item = begin; item < end; item++) {
        ptrdiff_t o = item / it->blocks, from = item % it->blocks * LANES, width = least(LANES, it->inner - from);
        const float *x = it->given + o * it->count * it->inner + from;
        V best = next(x, width);
        I place = {};
        for (ptrdiff_t r = 1; r < it->count; r++) {
            V here = next(x + r * it->inner, width);
            I better = (it->kind == LARGEST ? here > best : here < best) | (here != here);
            better &= best == best;
            best = choose(better, here, best);
            place = (place & ~better) | (((I){} + (int32_t)r) & better);
        }
        put(it->made + o * it->inner + from, best, width);
        for (ptrdiff_t i = 0; i < width; i++) it->where[o * it->inner + from + i] = place[i];
    }
}

static void extreme(enum Reduction kind, float *made, int64_t *where, const float *given, ptrdiff_t outer,
                    ptrdiff_t count, ptrdiff_t inner) {
    Reduced it = {.kind = kind, .made = made, .where = where, .given = given, .outer = outer, .count = count,
                  .inner = inner};
    it.blocks = (inner + LANES - 1) / LANES;
    if (inner > 1) pool_run(extreme_columns_share, &it, outer * it.blocks, 1 + SHARE / (count * LANES + 1));
    else pool_run(extreme_rows_share, &it, outer, 1 + SHARE / (count + 1));
}
