/* Normalization of channels, over all images (batch norm) or over groups of channels of one image (group norm).
   Included once by each level's file. Arrays are `(images, channels, area)`. */

INLINE float stretch_squares(const float *x, ptrdiff_t count, float mean) {
    V a = splat(0.0f), b = a;
    ptrdiff_t j = 0;
    for (; j + 2 * LANES <= count; j += 2 * LANES) {
        V d = load(x + j) - mean, e = load(x + j + LANES) - mean;
        a += d * d;
        b += e * e;
    }
    float all = total(a + b);
    for (; j < count; j++) all += (x[j] - mean) * (x[j] - mean);
    return all;
}

INLINE void stretch_products(const float *g, const float *x, ptrdiff_t count, float mean, double *sums, double *products) {
    V s = splat(0.0f), p = s;
    ptrdiff_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        V here = load(g + j);
        s += here;
        p += here * (load(x + j) - mean);
    }
    float sum = total(s), product = total(p);
    for (; j < count; j++) sum += g[j], product += g[j] * (x[j] - mean);
    *sums += (double)sum;
    *products += (double)product;
}

INLINE void stretch_affine(float *to, const float *x, ptrdiff_t count, float mean, float scale, float shift) {
    ptrdiff_t j = 0;
    for (; j + LANES <= count; j += LANES) store(to + j, (load(x + j) - mean) * scale + shift);
    for (; j < count; j++) to[j] = (x[j] - mean) * scale + shift;
}

/* to = g * factor + (x - mean) * slope + level */
INLINE void stretch_back(float *to, const float *g, const float *x, ptrdiff_t count, float factor, float mean,
                         float slope, float level) {
    ptrdiff_t j = 0;
    for (; j + LANES <= count; j += LANES)
        store(to + j, load(g + j) * factor + (load(x + j) - mean) * slope + level);
    for (; j < count; j++) to[j] = g[j] * factor + (x[j] - mean) * slope + level;
}

/* Items are channels; means and variances are worked out if `how->learns`. */
static void batch_norm_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const ChannelNorm *how = work;
    (void)share;
    ptrdiff_t step = how->channels * how->area;
    float count = (float)(how->images * how->area);
    for (ptrdiff_t c = begin; c < end; c++) {
        const float *x = how->given + c * how->area;
        if (how->learns) {
            double sum = 0.0, squares = 0.0;
            for (ptrdiff_t i = 0; i < how->images; i++) sum += (double)row_sum(x + i * step, how->area);
            how->mean[c] = (float)sum / count;
            for (ptrdiff_t i = 0; i < how->images; i++)
                squares += (double)stretch_squares(x + i * step, how->area, how->mean[c]);
            how->variance[c] = (float)squares / count;
        }
        float scale = 1.0f / sqrtf(how->variance[c] + how->eps);
        how->rstd[c] = scale;
        if (how->weight) scale *= how->weight[c];
        for (ptrdiff_t i = 0; i < how->images; i++)
            stretch_affine(how->made + i * step + c * how->area, x + i * step, how->area, how->mean[c], scale,
                           how->bias ? how->bias[c] : 0.0f);
    }
}

/* Images of one pixel: channels are columns of a matrix. Stretches of them are read row by row, as they lie in memory;
   additions to one column go through its rows in their order. */
enum { CHANNELS_AT_ONCE = 512 };

/* FOUR and ONE add the columns `c` of four rows or one. */
#define DOWN_THE_ROWS(FOUR, ONE)                                                                                       \
    do {                                                                                                               \
        ptrdiff_t i = 0;                                                                                               \
        for (; i + 4 <= images; i += 4)                                                                                \
            for (ptrdiff_t c = 0; c < wide; c++) FOUR;                                                                 \
        for (; i < images; i++)                                                                                        \
            for (ptrdiff_t c = 0; c < wide; c++) ONE;                                                                  \
    } while (0)
#define AT(X, I) (X)[(i + (I)) * step + c]

static void column_sums(float *restrict sum, const float *restrict x, ptrdiff_t images, ptrdiff_t step, ptrdiff_t wide) {
    DOWN_THE_ROWS(sum[c] = sum[c] + AT(x, 0) + AT(x, 1) + AT(x, 2) + AT(x, 3), sum[c] += AT(x, 0));
}

#define PART(I) (AT(x, I) - mean[c]) * (AT(x, I) - mean[c])
static void column_squares(float *restrict sum, const float *restrict mean, const float *restrict x, ptrdiff_t images,
                           ptrdiff_t step, ptrdiff_t wide) {
    DOWN_THE_ROWS(sum[c] = sum[c] + PART(0) + PART(1) + PART(2) + PART(3), sum[c] += PART(0));
}
#undef PART

#define PART(I) AT(g, I) * (AT(x, I) - mean[c])
static void column_products(float *restrict sum, const float *restrict mean, const float *restrict g,
                            const float *restrict x, ptrdiff_t images, ptrdiff_t step, ptrdiff_t wide) {
    DOWN_THE_ROWS(sum[c] = sum[c] + PART(0) + PART(1) + PART(2) + PART(3), sum[c] += PART(0));
}
#undef PART
#undef AT

static void batch_norm_columns(const ChannelNorm *how, ptrdiff_t first, ptrdiff_t wide) {
    ptrdiff_t images = how->images, step = how->channels;
    const float *x = how->given + first;
    float *mean = how->mean + first, *variance = how->variance + first, scale[CHANNELS_AT_ONCE], shift[CHANNELS_AT_ONCE];
    if (how->learns) {
        float sum[CHANNELS_AT_ONCE] = {0}, squares[CHANNELS_AT_ONCE] = {0};
        column_sums(sum, x, images, step, wide);
        for (ptrdiff_t c = 0; c < wide; c++) mean[c] = sum[c] / (float)images;
        column_squares(squares, mean, x, images, step, wide);
        for (ptrdiff_t c = 0; c < wide; c++) variance[c] = squares[c] / (float)images;
    }
    for (ptrdiff_t c = 0; c < wide; c++) {
        scale[c] = how->rstd[first + c] = 1.0f / sqrtf(variance[c] + how->eps);
        if (how->weight) scale[c] *= how->weight[first + c];
        shift[c] = how->bias ? how->bias[first + c] : 0.0f;
    }
    for (ptrdiff_t i = 0; i < images; i++) {
        float *restrict to = how->made + i * step + first;
        const float *restrict row = x + i * step;
        for (ptrdiff_t c = 0; c < wide; c++) to[c] = (row[c] - mean[c]) * scale[c] + shift[c];
    }
}

static void batch_norm_columns_back(const ChannelNorm *how, ptrdiff_t first, ptrdiff_t wide) {
    ptrdiff_t images = how->images, step = how->channels;
    const float *x = how->given + first, *g = how->pull + first, *mean = how->mean + first;
    float sum[CHANNELS_AT_ONCE] = {0}, product[CHANNELS_AT_ONCE] = {0}, scale[CHANNELS_AT_ONCE];
    column_sums(sum, g, images, step, wide);
    column_products(product, mean, g, x, images, step, wide);
    for (ptrdiff_t c = 0; c < wide; c++) {
        float rstd = how->rstd[first + c];
        scale[c] = how->weight ? rstd * how->weight[first + c] : rstd;
        how->weight_pull[first + c] = product[c] * rstd, how->bias_pull[first + c] = sum[c];
        /* What the sums are needed for else: the slope and the level of the input's gradient. */
        product[c] = how->learns ? -(product[c] / (float)images) * rstd * rstd * scale[c] : 0.0f;
        sum[c] = how->learns ? -(sum[c] / (float)images) * scale[c] : 0.0f;
    }
    for (ptrdiff_t i = 0; i < images; i++) {
        float *restrict to = how->made + i * step + first;
        const float *restrict row = x + i * step, *restrict pull = g + i * step;
        for (ptrdiff_t c = 0; c < wide; c++) to[c] = pull[c] * scale[c] + (row[c] - mean[c]) * product[c] + sum[c];
    }
}

/* Items are vectors of channels. */
#define COLUMNS_SHARE(NAME)                                                                                            \
    static void NAME##_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {                                  \
        const ChannelNorm *how = work;                                                                                 \
        (void)share;                                                                                                   \
        ptrdiff_t last = least(end * LANES, how->channels);                                                            \
        for (ptrdiff_t c = begin * LANES; c < last; c += CHANNELS_AT_ONCE) NAME(how, c, least(CHANNELS_AT_ONCE, last - c)); \
    }
COLUMNS_SHARE(batch_norm_columns)
COLUMNS_SHARE(batch_norm_columns_back)

INLINE void by_columns(Share share, const ChannelNorm *how) {
    pool_run(share, (void *)how, (how->channels + LANES - 1) / LANES, 1 + SHARE / 2 / (how->images * LANES + 1));
}

static void batch_norm(const ChannelNorm *how) {
    if (how->area == 1) {
        by_columns(batch_norm_columns_share, how);
        return;
    }
    pool_run(batch_norm_share, (void *)how, how->channels, 1 + SHARE / 2 / (how->images * how->area + 1));
}

/* Gradients of input, weight and bias; the input's depends on the sums only if the statistics were learnt. */
static void batch_norm_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const ChannelNorm *how = work;
    (void)share;
    ptrdiff_t step = how->channels * how->area;
    double count = (double)(how->images * how->area);
    for (ptrdiff_t c = begin; c < end; c++) {
        const float *x = how->given + c * how->area, *g = how->pull + c * how->area;
        double sum = 0.0, product = 0.0;
        for (ptrdiff_t i = 0; i < how->images; i++)
            stretch_products(g + i * step, x + i * step, how->area, how->mean[c], &sum, &product);
        float rstd = how->rstd[c], scale = how->weight ? rstd * how->weight[c] : rstd;
        how->weight_pull[c] = (float)product * rstd;
        how->bias_pull[c] = (float)sum;
        float slope = how->learns ? -(float)(product / count) * rstd * rstd * scale : 0.0f;
        float level = how->learns ? -(float)(sum / count) * scale : 0.0f;
        for (ptrdiff_t i = 0; i < how->images; i++)
            stretch_back(how->made + i * step + c * how->area, g + i * step, x + i * step, how->area, scale,
                         how->mean[c], slope, level);
    }
}

static void batch_norm_back(const ChannelNorm *how) {
    if (how->area == 1) {
        by_columns(batch_norm_columns_back_share, how);
        return;
    }
    pool_run(batch_norm_back_share, (void *)how, how->channels, 1 + SHARE / 2 / (how->images * how->area + 1));
}

/* Items are groups of channels of an image. */
static void group_norm_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const ChannelNorm *how = work;
    (void)share;
    ptrdiff_t each = how->channels / how->groups, count = each * how->area;
    for (ptrdiff_t i = begin; i < end; i++) {
        const float *x = how->given + i * count;
        double sum = 0.0, squares = 0.0;
        for (ptrdiff_t c = 0; c < each; c++) sum += (double)row_sum(x + c * how->area, how->area);
        float mean = (float)(sum / (double)count);
        for (ptrdiff_t c = 0; c < each; c++) squares += (double)stretch_squares(x + c * how->area, how->area, mean);
        float rstd = 1.0f / sqrtf((float)(squares / (double)count) + how->eps);
        how->mean[i] = mean, how->rstd[i] = rstd;
        for (ptrdiff_t c = 0; c < each; c++) {
            ptrdiff_t channel = i % how->groups * each + c;
            stretch_affine(how->made + i * count + c * how->area, x + c * how->area, how->area, mean,
                           how->weight ? rstd * how->weight[channel] : rstd, how->bias ? how->bias[channel] : 0.0f);
        }
    }
}

static void group_norm(const ChannelNorm *how) {
    pool_run(group_norm_share, (void *)how, how->images * how->groups,
             1 + SHARE / 2 / (how->channels / how->groups * how->area + 1));
}

/* The input's gradient, and for every channel of every image the sums that the parameters' gradients are made of. */
static void group_norm_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const ChannelNorm *how = work;
    (void)share;
    ptrdiff_t each = how->channels / how->groups, count = each * how->area;
    for (ptrdiff_t i = begin; i < end; i++) {
        const float *x = how->given + i * count, *g = how->pull + i * count;
        float mean = how->mean[i], rstd = how->rstd[i];
        double sum = 0.0, product = 0.0;
        for (ptrdiff_t c = 0; c < each; c++) {
            ptrdiff_t channel = i % how->groups * each + c;
            double here = 0.0, along = 0.0;
            stretch_products(g + c * how->area, x + c * how->area, how->area, mean, &here, &along);
            how->bias_pull[i * each + c] = (float)here, how->weight_pull[i * each + c] = (float)along * rstd;
            double weight = how->weight ? (double)how->weight[channel] : 1.0;
            sum += here * weight, product += along * weight;
        }
        float slope = -(float)(product / (double)count) * rstd * rstd * rstd, level = -(float)(sum / (double)count) * rstd;
        for (ptrdiff_t c = 0; c < each; c++)
            stretch_back(how->made + i * count + c * how->area, g + c * how->area, x + c * how->area, how->area,
                         how->weight ? rstd * how->weight[i % how->groups * each + c] : rstd, mean, slope, level);
    }
}

static void group_norm_back(const ChannelNorm *how) {
    pool_run(group_norm_back_share, (void *)how, how->images * how->groups,
             1 + SHARE / 2 / (how->channels / how->groups * how->area + 1));
}
