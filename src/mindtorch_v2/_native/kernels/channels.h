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

/* Images of one pixel: channels are columns of a matrix. Items are blocks of them. */
enum { CHANNELS_AT_ONCE = 4 * LANES };

/* Each step through EACH does the same to `vectors` vectors side by side: additions need not wait for each other. */
#define EACH _Pragma("GCC unroll 4") for (int k = 0; k < vectors; k++)

INLINE void batch_norm_columns(const ChannelNorm *how, ptrdiff_t first, const int vectors) {
    float count = (float)how->images;
    ptrdiff_t left = how->channels - first, step = how->channels;
    const float *x = how->given + first;
    V mean[4], scale[4], shift[4];
    if (how->learns) {
        V sum[4], squares[4];
        EACH sum[k] = squares[k] = splat(0.0f);
        for (ptrdiff_t i = 0; i < how->images; i++) EACH sum[k] += next(x + i * step + k * LANES, left);
        EACH mean[k] = sum[k] / count;
        for (ptrdiff_t i = 0; i < how->images; i++) EACH {
            V d = next(x + i * step + k * LANES, left) - mean[k];
            squares[k] += d * d;
        }
        EACH put(how->mean + first + k * LANES, mean[k], left);
        EACH put(how->variance + first + k * LANES, squares[k] / count, left);
    }
    EACH {
        ptrdiff_t c = first + k * LANES;
        mean[k] = next(how->mean + c, left), scale[k] = 1.0f / root(next(how->variance + c, left) + how->eps);
        put(how->rstd + c, scale[k], left);
        if (how->weight) scale[k] *= next(how->weight + c, left);
        shift[k] = how->bias ? next(how->bias + c, left) : splat(0.0f);
    }
    for (ptrdiff_t i = 0; i < how->images; i++) EACH {
        ptrdiff_t at = i * step + k * LANES;
        put(how->made + first + at, (next(x + at, left) - mean[k]) * scale[k] + shift[k], left);
    }
}

static void batch_norm_columns_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const ChannelNorm *how = work;
    (void)share;
    for (ptrdiff_t block = begin; block < end; block++) {
        ptrdiff_t c = block * CHANNELS_AT_ONCE;
        if (c + CHANNELS_AT_ONCE <= how->channels) batch_norm_columns(how, c, 4);
        else for (; c < how->channels; c += LANES) batch_norm_columns(how, c, 1);
    }
}

INLINE void batch_norm_columns_back(const ChannelNorm *how, ptrdiff_t first, const int vectors) {
    float count = (float)how->images;
    ptrdiff_t left = how->channels - first, step = how->channels;
    const float *x = how->given + first, *g = how->pull + first;
    V mean[4], sum[4], product[4], scale[4], slope[4], base[4];
    EACH mean[k] = next(how->mean + first + k * LANES, left), sum[k] = product[k] = splat(0.0f);
    for (ptrdiff_t i = 0; i < how->images; i++) EACH {
        ptrdiff_t at = i * step + k * LANES;
        V here = next(g + at, left);
        sum[k] += here, product[k] += here * (next(x + at, left) - mean[k]);
    }
    EACH {
        ptrdiff_t c = first + k * LANES;
        V rstd = next(how->rstd + c, left);
        scale[k] = rstd, slope[k] = base[k] = splat(0.0f);
        if (how->weight) scale[k] *= next(how->weight + c, left);
        put(how->weight_pull + c, product[k] * rstd, left), put(how->bias_pull + c, sum[k], left);
        if (how->learns)
            slope[k] = -(product[k] / count) * rstd * rstd * scale[k], base[k] = -(sum[k] / count) * scale[k];
    }
    for (ptrdiff_t i = 0; i < how->images; i++) EACH {
        ptrdiff_t at = i * step + k * LANES;
        put(how->made + first + at, next(g + at, left) * scale[k] + (next(x + at, left) - mean[k]) * slope[k] + base[k],
            left);
    }
}

static void batch_norm_columns_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const ChannelNorm *how = work;
    (void)share;
    for (ptrdiff_t block = begin; block < end; block++) {
        ptrdiff_t c = block * CHANNELS_AT_ONCE;
        if (c + CHANNELS_AT_ONCE <= how->channels) batch_norm_columns_back(how, c, 4);
        else for (; c < how->channels; c += LANES) batch_norm_columns_back(how, c, 1);
    }
}

INLINE void by_columns(Share share, const ChannelNorm *how) {
    pool_run(share, (void *)how, (how->channels + CHANNELS_AT_ONCE - 1) / CHANNELS_AT_ONCE,
             1 + SHARE / 2 / (how->images * CHANNELS_AT_ONCE + 1));
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
