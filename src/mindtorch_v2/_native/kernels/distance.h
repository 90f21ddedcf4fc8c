/* Euclidean distances between all rows of two matrices. Included once by each level's file. */

typedef struct {
    float *made;
    const float *a, *b, *pull, *distance;
    ptrdiff_t rows, others, features;
} Distances;

static void distances_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Distances it = *(Distances *)work;
    (void)share;
    for (ptrdiff_t i = begin; i < end; i++) {
        const float *x = it.a + i * it.features;
        for (ptrdiff_t j = 0; j < it.others; j++) {
            const float *y = it.b + j * it.features;
            V sum = splat(0.0f);
            ptrdiff_t k = 0;
            for (; k + LANES <= it.features; k += LANES) {
                V d = load(x + k) - load(y + k);
                sum += d * d;
            }
            float all = total(sum);
            for (; k < it.features; k++) all += (x[k] - y[k]) * (x[k] - y[k]);
            it.made[i * it.others + j] = sqrtf(all);
        }
    }
}

/* A row is pulled along its differences from the others; by those at no distance not at all. */
static void distances_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Distances it = *(Distances *)work;
    (void)share;
    for (ptrdiff_t i = begin; i < end; i++) {
        const float *x = it.a + i * it.features;
        float *to = it.made + i * it.features;
        memset(to, 0, sizeof(float) * (size_t)it.features);
        for (ptrdiff_t j = 0; j < it.others; j++) {
            float distance = it.distance[i * it.others + j];
            if (distance == 0.0f) continue;
            float pull = it.pull[i * it.others + j] / distance;
            const float *y = it.b + j * it.features;
            ptrdiff_t k = 0;
            for (; k + LANES <= it.features; k += LANES) store(to + k, load(to + k) + pull * (load(x + k) - load(y + k)));
            for (; k < it.features; k++) to[k] += pull * (x[k] - y[k]);
        }
    }
}

/* Without distances it makes them; with distances and their gradients, the gradient of `a`. */
static void distances(float *made, const float *a, const float *b, const float *pull, const float *distance,
                      ptrdiff_t rows, ptrdiff_t others, ptrdiff_t features) {
    Distances it = {made, a, b, pull, distance, rows, others, features};
    pool_run(distance ? distances_back_share : distances_share, &it, rows, 1 + SHARE / (others * features + 1));
}
