/* Steps of optimizers on the arrays of one parameter. Included once by each level's file. */

typedef struct {
    const void *how;
    float *weight, *first, *second, *third;
    const float *pull;
} Parameter;

static void adam_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Parameter *it = work;
    const Adam *how = it->how;
    (void)share;
    float *restrict weight = it->weight, *restrict average = it->first, *restrict square = it->second;
    float *most = it->third;
    const float *pull = it->pull;
    for (ptrdiff_t i = begin; i < end; i += LANES) {
        ptrdiff_t count = end - i;
        V w = next(weight + i, count), g = next(pull + i, count);
        V m = next(average + i, count);
        V v = next(square + i, count);
        if (how->maximize) g = -g;
        if (how->decay != 0.0f) {
            if (how->decoupled) w = w * how->shrink;
            else g = g + w * how->decay;
        }
        m = m + how->new_average * (g - m);
        v = v * how->old_square + how->new_square * g * g;
        V top = v;
        if (most) {
            V before = next(most + i, count);
            top = choose((before > v) | (before != before), before, v);
            put(most + i, top, count);
        }
        w = w - how->rate * m / (root(top) * how->spread + how->eps);
        put(weight + i, w, count);
        put(average + i, m, count);
        put(square + i, v, count);
    }
}

static void adam(const Adam *how, float *weight, const float *pull, float *average, float *square, float *most,
                 ptrdiff_t count) {
    Parameter it = {how, weight, average, square, most, pull};
    pool_run(adam_share, &it, count, SHARE);
}

static void adagrad_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Parameter *it = work;
    const Adagrad *how = it->how;
    (void)share;
    for (ptrdiff_t i = begin; i < end; i += LANES) {
        ptrdiff_t count = end - i;
        V w = next(it->weight + i, count), g = next(it->pull + i, count);
        if (how->maximize) g = -g;
        if (how->decay != 0.0f) g = g + w * how->decay;
        V sum = next(it->first + i, count) + g * g;
        put(it->first + i, sum, count);
        put(it->weight + i, w - how->rate * g / (root(sum) + how->eps), count);
    }
}

static void adagrad(const Adagrad *how, float *weight, const float *pull, float *sum, ptrdiff_t count) {
    Parameter it = {how, weight, sum, NULL, NULL, pull};
    pool_run(adagrad_share, &it, count, SHARE);
}

static void descend_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Parameter *it = work;
    const Descent *how = it->how;
    (void)share;
    float *weight = it->weight, *moving = it->first;
    const float *pull = it->pull;
    for (ptrdiff_t i = begin; i < end; i += LANES) {
        ptrdiff_t count = end - i;
        V w = next(weight + i, count), g = next(pull + i, count);
        if (how->maximize) g = -g;
        if (how->decay != 0.0f) g = g + w * how->decay;
        if (moving) {
            V m = g;
            if (!how->first) m = next(moving + i, count) * how->momentum + g * how->new_moving;
            put(moving + i, m, count);
            if (how->nesterov) g = g + m * how->momentum;
            else g = m;
        }
        w = w - g * how->lr;
        put(weight + i, w, count);
    }
}

static void descend(const Descent *how, float *weight, const float *pull, float *moving, ptrdiff_t count) {
    Parameter it = {how, weight, moving, NULL, NULL, pull};
    pool_run(descend_share, &it, count, SHARE);
}
