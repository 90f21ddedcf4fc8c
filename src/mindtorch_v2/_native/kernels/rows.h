/* Softmax and normalization of rows that lie one after the other. Included once by each level's file. */

typedef struct {
    float *made;
    const float *given, *other;
    ptrdiff_t count;
    int logs;
} Softmax;

INLINE float row_largest(const float *x, ptrdiff_t count) {
    V top = splat(-INFINITY), other = top;
    I odd = {};
    ptrdiff_t j = 0;
    for (; j + 2 * LANES <= count; j += 2 * LANES) {
        V a = load(x + j), b = load(x + j + LANES);
        odd |= (a != a) | (b != b);
        top = larger(a, top), other = larger(b, other);
    }
    for (; j < count; j += LANES) {
        V a = count - j >= LANES ? load(x + j) : load_some(x + j, count - j, -INFINITY);
        odd |= (a != a);
        top = larger(a, top);
    }
    for (int i = 0; i < LANES; i++)
        if (odd[i]) return NAN;
    return largest(larger(top, other));
}

static void softmax_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Softmax *it = work;
    (void)share;
    ptrdiff_t count = it->count, whole = count - count % LANES, rest = count - whole;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *x = it->given + r * count;
        float *y = it->made + r * count;
        float top = row_largest(x, count);
        V sum = splat(0.0f);
        for (ptrdiff_t j = 0; j < whole; j += LANES) {
            V e = exponential(load(x + j) - top);
            if (!it->logs) store(y + j, e);
            sum += e;
        }
        float all = 0.0f;
        if (rest) {
            V e = exponential(load_some(x + whole, rest, -INFINITY) - top);
            /* What was filled up has exponentials of zero, but not if the largest is infinite. */
            float some[LANES];
            store(some, e);
            for (ptrdiff_t j = 0; j < rest; j++) all += some[j];
            if (!it->logs) store_some(y + whole, e, rest);
        }
        all += total(sum);
        if (it->logs) {
            float log = logf(all);
            for (ptrdiff_t j = 0; j < whole; j += LANES) store(y + j, load(x + j) - top - log);
            for (ptrdiff_t j = whole; j < count; j++) y[j] = x[j] - top - log;
        } else {
            float share = 1.0f / all;
            for (ptrdiff_t j = 0; j < whole; j += LANES) store(y + j, load(y + j) * share);
            for (ptrdiff_t j = whole; j < count; j++) y[j] *= share;
        }
    }
}

static void softmax(float *made, const float *given, ptrdiff_t rows, ptrdiff_t count, int logs) {
    Softmax it = {made, given, NULL, count, logs};
    pool_run(softmax_share, &it, rows, 1 + SHARE / 4 / (count + 1));
}

static void softmax_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Softmax *it = work;
    (void)share;
    ptrdiff_t count = it->count, whole = count - count % LANES, rest = count - whole;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *g = it->given + r * count, *y = it->other + r * count;
        float *x = it->made + r * count;
        V sum = splat(0.0f);
        if (it->logs) {
            for (ptrdiff_t j = 0; j < whole; j += LANES) sum += load(g + j);
            float all = total(sum);
            for (ptrdiff_t j = whole; j < count; j++) all += g[j];
            for (ptrdiff_t j = 0; j < whole; j += LANES) store(x + j, load(g + j) - exponential(load(y + j)) * all);
            if (rest) store_some(x + whole, load_some(g + whole, rest, 0) - exponential(load_some(y + whole, rest, 0)) *
                                                                                all, rest);
        } else {
            for (ptrdiff_t j = 0; j < whole; j += LANES) sum += load(g + j) * load(y + j);
            float all = total(sum);
            for (ptrdiff_t j = whole; j < count; j++) all += g[j] * y[j];
            for (ptrdiff_t j = 0; j < whole; j += LANES) store(x + j, (load(g + j) - all) * load(y + j));
            for (ptrdiff_t j = whole; j < count; j++) x[j] = (g[j] - all) * y[j];
        }
    }
}

static void softmax_back(float *made, const float *pull, const float *result, ptrdiff_t rows, ptrdiff_t count,
                         int logs) {
    Softmax it = {made, pull, result, count, logs};
    pool_run(softmax_back_share, &it, rows, 1 + SHARE / 4 / (count + 1));
}

typedef struct {
    float *made, *mean, *rstd, *weight_pull, *bias_pull, *sums;
    const float *given, *weight, *bias, *pull;
    ptrdiff_t rows, count, block;
    float eps;
    int centre;
} Norm;

INLINE float row_sum(const float *x, ptrdiff_t count) {
    V a = splat(0.0f), b = a;
    ptrdiff_t j = 0;
    for (; j + 2 * LANES <= count; j += 2 * LANES) a += load(x + j), b += load(x + j + LANES);
    float all = total(a + b);
    for (; j < count; j++) all += x[j];
    return all;
}

static void norm_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Norm *it = work;
    (void)share;
    ptrdiff_t count = it->count, whole = count - count % LANES;
    const float *w = it->weight, *b = it->bias;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *x = it->given + r * count;
        float *y = it->made + r * count;
        float mean = it->centre ? row_sum(x, count) / (float)count : 0.0f;
        V sum = splat(0.0f);
        for (ptrdiff_t j = 0; j < whole; j += LANES) {
            V d = load(x + j) - mean;
            sum += d * d;
        }
        float squares = total(sum);
        for (ptrdiff_t j = whole; j < count; j++) squares += (x[j] - mean) * (x[j] - mean);
        float rstd = 1.0f / sqrtf(squares / (float)count + it->eps);
        if (it->mean) it->mean[r] = mean;
        it->rstd[r] = rstd;
        for (ptrdiff_t j = 0; j < whole; j += LANES) {
            V z = (load(x + j) - mean) * rstd;
            if (w) z *= load(w + j);
            if (b) z += load(b + j);
            store(y + j, z);
        }
        for (ptrdiff_t j = whole; j < count; j++) {
            float z = (x[j] - mean) * rstd;
            if (w) z *= w[j];
            if (b) z += b[j];
            y[j] = z;
        }
    }
}

static void layer_norm(float *made, float *mean, float *rstd, const float *given, const float *weight,
                       const float *bias, ptrdiff_t rows, ptrdiff_t count, float eps, int centre) {
    Norm it = {.made = made, .mean = mean, .rstd = rstd, .given = given, .weight = weight, .bias = bias, .rows = rows,
               .count = count, .eps = eps, .centre = centre};
    pool_run(norm_share, &it, rows, 1 + SHARE / 4 / (count + 1));
}

/* Rows are taken in blocks of fixed size, each with sums of its own for the parameters' gradients. */
static void norm_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Norm *it = work;
    (void)share;
    ptrdiff_t count = it->count, whole = count - count % LANES;
    const float *w = it->weight;
    for (ptrdiff_t block = begin; block < end; block++) {
        float *weight_sums = it->sums ? it->sums + 2 * block * count : NULL;
        float *bias_sums = weight_sums ? weight_sums + count : NULL;
        if (weight_sums) memset(weight_sums, 0, sizeof(float) * 2 * (size_t)count);
        ptrdiff_t last = least((block + 1) * it->block, it->rows);
        for (ptrdiff_t r = block * it->block; r < last; r++) {
            const float *g = it->pull + r * count, *x = it->given + r * count;
            float mean = it->mean[r], rstd = it->rstd[r];
            V level = splat(0.0f), slope = level;
            float levels = 0.0f, slopes = 0.0f;
            for (ptrdiff_t j = 0; j < whole; j += LANES) {
                V p = load(g + j), z = (load(x + j) - mean) * rstd;
                if (weight_sums) {
                    store(weight_sums + j, load(weight_sums + j) + p * z);
                    store(bias_sums + j, load(bias_sums + j) + p);
                }
                if (w) p *= load(w + j);
                level += p;
                slope += p * z;
            }
            for (ptrdiff_t j = whole; j < count; j++) {
                float p = g[j], z = (x[j] - mean) * rstd;
                if (weight_sums) weight_sums[j] += p * z, bias_sums[j] += p;
                if (w) p *= w[j];
                levels += p;
                slopes += p * z;
            }
            if (!it->made) continue;
            levels = (levels + total(level)) / (float)count;
            slopes = (slopes + total(slope)) / (float)count;
            float *y = it->made + r * count;
            for (ptrdiff_t j = 0; j < whole; j += LANES) {
                V p = load(g + j), z = (load(x + j) - mean) * rstd;
                if (w) p *= load(w + j);
                store(y + j, (p - levels - z * slopes) * rstd);
            }
            for (ptrdiff_t j = whole; j < count; j++) {
                float p = g[j], z = (x[j] - mean) * rstd;
                if (w) p *= w[j];
                y[j] = (p - levels - z * slopes) * rstd;
            }
        }
    }
}

static int layer_norm_back(float *made, float *weight_pull, float *bias_pull, const float *pull, const float *given,
                           const float *mean, const float *rstd, const float *weight, ptrdiff_t rows,
                           ptrdiff_t count) {
    Norm it = {.made = made, .mean = (float *)mean, .rstd = (float *)rstd, .given = given, .weight = weight,
               .pull = pull, .rows = rows, .count = count};
    it.block = rows < 1024 ? 64 : (rows + 15) / 16;
    ptrdiff_t blocks = (rows + it.block - 1) / it.block;
    int sums = weight_pull || bias_pull;
    if (sums) {
        it.sums = malloc(sizeof(float) * 2 * (size_t)(blocks * count) + 1);
        if (!it.sums) return NO_MEMORY;
    }
    pool_run(norm_back_share, &it, blocks, 1 + SHARE / 4 / (count * it.block + 1));
    for (ptrdiff_t j = 0; sums && j < count; j++) {
        float first = 0.0f, second = 0.0f;
        for (ptrdiff_t b = 0; b < blocks; b++) first += it.sums[2 * b * count + j], second += it.sums[(2 * b + 1) * count + j];
        if (weight_pull) weight_pull[j] = first;
        if (bias_pull) bias_pull[j] = second;
    }
    free(it.sums);
    return 0;
}
