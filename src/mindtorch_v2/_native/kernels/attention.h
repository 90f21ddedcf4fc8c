/* Attention, a block of rows of queries at a time: the scores of a block are the only ones in memory. Included once by
   each level's file. */

enum { QUERIES = 8 * TALL < 64 ? 16 * TALL : 8 * TALL };

typedef struct {
    const Attention *how;
    float *room;
    size_t room_each;
    ptrdiff_t pieces;
} Heads;

INLINE Matrix rows_of(const float *data, const ptrdiff_t step[3], ptrdiff_t batch, ptrdiff_t head, ptrdiff_t row) {
    return (Matrix){(float *)data + batch * step[0] + head * step[1] + row * step[2], step[2], 1};
}
INLINE Matrix turned(Matrix a) { return (Matrix){a.data, a.column, a.row}; }

/* Keys that the rows up to `row` may look at, rounded up. */
INLINE ptrdiff_t seen_until(const Attention *how, ptrdiff_t row) {
    return how->causal ? least(how->keys, row) : how->keys;
}

/* Scores of some rows, scaled and masked. */
static void scores_of(const Attention *how, float *scores, ptrdiff_t batch, ptrdiff_t head, ptrdiff_t first,
                      ptrdiff_t rows, ptrdiff_t keys, Matrix query, Matrix key, float *room) {
    multiply_here(scores, keys, query, turned(key), rows, keys, how->features, NULL, 0, room);
    for (ptrdiff_t r = 0; r < rows; r++) {
        float *s = scores + r * keys;
        ptrdiff_t shown = how->causal ? least(keys, first + r + 1) : keys;
        if (how->mask) {
            const float *mask = how->mask + batch * how->mask_step[0] + head * how->mask_step[1] +
                                (first + r) * how->mask_step[2];
            for (ptrdiff_t k = 0; k < shown; k++) s[k] = s[k] * how->scale + mask[k * how->mask_step[3]];
        } else {
            for (ptrdiff_t k = 0; k < shown; k++) s[k] *= how->scale;
        }
        for (ptrdiff_t k = shown; k < keys; k++) s[k] = -INFINITY;
    }
}

/* Exponentials of a row less its largest, in place; returns their sum. A row that sees nothing sums to 0. */
INLINE float exponentials(float *s, ptrdiff_t keys, float top) {
    V sum = splat(0.0f);
    ptrdiff_t k = 0;
    for (; k + LANES <= keys; k += LANES) {
        V e = exponential(load(s + k) - top);
        store(s + k, e);
        sum += e;
    }
    float all = total(sum);
    if (k < keys) {
        float some[LANES];
        store(some, exponential(load_some(s + k, keys - k, -INFINITY) - top));
        for (ptrdiff_t i = 0; i < keys - k; i++) all += s[k + i] = some[i];
    }
    return all;
}

static size_t attention_room(const Attention *how) {
    ptrdiff_t rows = least(QUERIES, how->rows);
    size_t most = multiply_room(rows, how->keys, how->features), other = multiply_room(rows, how->values, how->keys);
    return (size_t)(rows * how->keys) + (most > other ? most : other);
}

static void attention_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Heads *it = work;
    const Attention *how = it->how;
    float *scores = it->room + (size_t)share * it->room_each;
    float *room = scores + least(QUERIES, how->rows) * how->keys;
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t piece = i % it->pieces, head = i / it->pieces % how->heads, batch = i / it->pieces / how->heads;
        ptrdiff_t group = head / (how->heads / how->groups);
        Matrix key = rows_of(how->key, how->key_step, batch, group, 0);
        Matrix value = rows_of(how->value, how->value_step, batch, group, 0);
        ptrdiff_t first = piece * QUERIES, rows = least(QUERIES, how->rows - first);
        ptrdiff_t keys = seen_until(how, first + rows);
        Matrix out = rows_of(how->out, how->out_step, batch, head, first);
        float *logs = how->logs + (batch * how->heads + head) * how->rows + first;
        scores_of(how, scores, batch, head, first, rows, keys,
                  rows_of(how->query, how->query_step, batch, head, first), key, room);
        for (ptrdiff_t r = 0; r < rows; r++) {
            float *s = scores + r * keys, top = row_largest(s, keys);
            if (top == -INFINITY) top = 0.0f;
            logs[r] = exponentials(s, keys, top);
            float share = logs[r] == 0.0f ? 1.0f : 1.0f / logs[r];
            logs[r] = logf(logs[r]) + top;
            for (ptrdiff_t k = 0; k < keys; k++) s[k] *= share;
        }
        multiply_here(out.data, out.row, (Matrix){scores, keys, 1}, value, rows, how->values, keys, NULL, 0, room);
    }
}

static int attention(const Attention *how) {
    Heads it = {how, NULL, attention_room(how), (how->rows + QUERIES - 1) / QUERIES};
    ptrdiff_t count = how->batch * how->heads * it.pieces;
    ptrdiff_t fewest = 1 + SHARE / 2 / (least(QUERIES, how->rows) * how->keys + 1);
    it.room = malloc(sizeof(float) * it.room_each * (size_t)pool_shares(count, fewest) + 1);
    if (!it.room) return NO_MEMORY;
    pool_run(attention_share, &it, count, fewest);
    free(it.room);
    return 0;
}

static size_t attention_back_room(const Attention *how) {
    ptrdiff_t rows = least(QUERIES, how->rows);
    size_t most = 0, each[] = {multiply_room(rows, how->keys, how->features), multiply_room(rows, how->keys, how->values),
                               multiply_room(rows, how->features, how->keys), multiply_room(how->keys, how->features, rows),
                               multiply_room(how->keys, how->values, rows)};
    for (int i = 0; i < 5; i++) most = each[i] > most ? each[i] : most;
    return (size_t)(2 * rows * how->keys) + most;
}

/* An item is a head of keys with all queries that use it, so that no other thread adds to its gradients. */
static void attention_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Heads *it = work;
    const Attention *how = it->how;
    ptrdiff_t most = least(QUERIES, how->rows), together = how->heads / how->groups;
    float *weights = it->room + (size_t)share * it->room_each, *slopes = weights + most * how->keys;
    float *room = slopes + most * how->keys;
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t group = i % how->groups, batch = i / how->groups;
        Matrix key = rows_of(how->key, how->key_step, batch, group, 0);
        Matrix value = rows_of(how->value, how->value_step, batch, group, 0);
        Matrix key_pull = rows_of(how->key_pull, how->key_pull_step, batch, group, 0);
        Matrix value_pull = rows_of(how->value_pull, how->value_pull_step, batch, group, 0);
        for (ptrdiff_t k = 0; k < how->keys; k++) {
            memset(key_pull.data + k * key_pull.row, 0, sizeof(float) * (size_t)how->features);
            memset(value_pull.data + k * value_pull.row, 0, sizeof(float) * (size_t)how->values);
        }
        for (ptrdiff_t head = group * together; head < (group + 1) * together; head++) {
            const float *logs = how->logs + (batch * how->heads + head) * how->rows;
            for (ptrdiff_t first = 0; first < how->rows; first += QUERIES) {
                ptrdiff_t rows = least(QUERIES, how->rows - first), keys = seen_until(how, first + rows);
                Matrix query = rows_of(how->query, how->query_step, batch, head, first);
                Matrix pull = rows_of(how->pull, how->pull_step, batch, head, first);
                Matrix out = rows_of(how->out, how->out_step, batch, head, first);
                Matrix query_pull = rows_of(how->query_pull, how->query_pull_step, batch, head, first);
                scores_of(how, weights, batch, head, first, rows, keys, query, key, room);
                multiply_here(slopes, keys, pull, turned(value), rows, keys, how->values, NULL, 0, room);
                for (ptrdiff_t r = 0; r < rows; r++) {
                    float *w = weights + r * keys, *s = slopes + r * keys, shared = 0.0f;
                    float log = logs[first + r] == -INFINITY ? INFINITY : logs[first + r];
                    for (ptrdiff_t v = 0; v < how->values; v++)
                        shared += pull.data[r * pull.row + v] * out.data[r * out.row + v];
                    ptrdiff_t k = 0;
                    for (; k + LANES <= keys; k += LANES) {
                        V e = exponential(load(w + k) - log);
                        store(w + k, e);
                        store(s + k, (load(s + k) - shared) * e * how->scale);
                    }
                    if (k < keys) {
                        V e = exponential(load_some(w + k, keys - k, -INFINITY) - log);
                        store_some(w + k, e, keys - k);
                        store_some(s + k, (load_some(s + k, keys - k, 0.0f) - shared) * e * how->scale, keys - k);
                    }
                }
                Matrix slope = {slopes, keys, 1}, weight = {weights, keys, 1};
                multiply_here(query_pull.data, query_pull.row, slope, key, rows, how->features, keys, NULL, 0, room);
                multiply_here(key_pull.data, key_pull.row, turned(slope), query, keys, how->features, rows, NULL, 1,
                              room);
                multiply_here(value_pull.data, value_pull.row, turned(weight), pull, keys, how->values, rows, NULL, 1,
                              room);
            }
        }
    }
}

static int attention_back(const Attention *how) {
    Heads it = {how, NULL, attention_back_room(how), 1};
    ptrdiff_t count = how->batch * how->groups;
    ptrdiff_t fewest = 1 + SHARE / 4 / (how->rows * how->keys + 1);
    it.room = malloc(sizeof(float) * it.room_each * (size_t)pool_shares(count, fewest) + 1);
    if (!it.room) return NO_MEMORY;
    pool_run(attention_back_share, &it, count, fewest);
    free(it.room);
    return 0;
}
