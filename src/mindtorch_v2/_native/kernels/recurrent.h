/* All time steps of one direction of a recurrent layer, forward and back. Included once by each level's file.

   Hidden units are cut into blocks of WIDE; of a step, a block's products and what follows from them need nothing of
   the other blocks. Where there are enough sequences, each thread does some of them from the first step to the last and
   nobody waits for anybody. Otherwise threads share the blocks of every step. */

/* For each unit a step keeps some numbers. With long short-term memory: input, forget, cell, output. A gated unit: reset,
   update, new, and what the state gave to the new value before it was reset. A plain one: its output. */
typedef struct {
    int kept, products;
    int of_product[4]; /* which of the kept numbers a product with the state goes to */
} Layout;
static const Layout LAYOUTS[RECURRENT_COUNT] = {
    [RECURRENT_RELU] = {1, 1, {0}},
    [RECURRENT_TANH] = {1, 1, {0}},
    [RECURRENT_LSTM] = {4, 4, {0, 1, 2, 3}},
    [RECURRENT_GRU] = {4, 3, {0, 1, 3}},
};

typedef struct {
    const Recurrent *how;
    Layout layout;
    ptrdiff_t blocks, time;
    float *panels, *packed;
    size_t packed_each; /* of each share */
} Steps;

INLINE ptrdiff_t step_at(const Recurrent *how, ptrdiff_t number) {
    return how->reverse ? how->steps - 1 - number : number;
}

/* Sequences `begin` to `end` in tiles of equal height, so that none has too few rows to keep the processor busy. */
typedef struct {
    ptrdiff_t begin, end, tiles;
} Sequences;

INLINE Sequences sequences(ptrdiff_t begin, ptrdiff_t end) {
    return (Sequences){begin, end, (end - begin + TALL - 1) / TALL};
}
INLINE ptrdiff_t tile_begin(Sequences some, ptrdiff_t tile) {
    return some.begin + (some.end - some.begin) * tile / some.tiles;
}

/* The panel of a product's columns for a block of units. */
INLINE float *product_panel(const Steps *it, ptrdiff_t block, int product) {
    return it->panels + (block * it->layout.products + product) * WIDE * it->how->hidden;
}

INLINE void lstm_cell(const Recurrent *how, ptrdiff_t now, ptrdiff_t place, float *g, const float *before,
                      ptrdiff_t units) {
    ptrdiff_t hidden = how->hidden;
    float *cells = how->cells + now + place, *out = how->out + now + place, *squashed = how->squashed + now + place;
    for (ptrdiff_t j = 0; j < units; j += LANES) {
        ptrdiff_t left = units - j;
        V entry = logistic(next(g + j, left)), forget = logistic(next(g + hidden + j, left));
        V fresh = hyperbolic_tangent(next(g + 2 * hidden + j, left));
        V shown = logistic(next(g + 3 * hidden + j, left));
        V cell = forget * next(before + place + j, left) + entry * fresh, flat = hyperbolic_tangent(cell);
        put(g + j, entry, left), put(g + hidden + j, forget, left), put(g + 2 * hidden + j, fresh, left);
        put(g + 3 * hidden + j, shown, left);
        put(cells + j, cell, left), put(squashed + j, flat, left), put(out + j, shown * flat, left);
    }
}

INLINE void gru_cell(const Recurrent *how, float *out, float *g, const float *state, ptrdiff_t units) {
    ptrdiff_t hidden = how->hidden;
    for (ptrdiff_t j = 0; j < units; j += LANES) {
        ptrdiff_t left = units - j;
        V reset = logistic(next(g + j, left)), update = logistic(next(g + hidden + j, left));
        V fresh = hyperbolic_tangent(next(g + 2 * hidden + j, left) + reset * next(g + 3 * hidden + j, left));
        put(g + j, reset, left), put(g + hidden + j, update, left), put(g + 2 * hidden + j, fresh, left);
        put(out + j, (next(state + j, left) - fresh) * update + fresh, left);
    }
}

INLINE void plain_cell(enum RecurrentKind kind, float *g, ptrdiff_t units) {
    for (ptrdiff_t j = 0; j < units; j += LANES) {
        ptrdiff_t left = units - j;
        V x = next(g + j, left);
        put(g + j, kind == RECURRENT_TANH ? hyperbolic_tangent(x) : choose(x < 0.0f, splat(0.0f), x), left);
    }
}

/* One step of some sequences, for some blocks of units. */
static void step_part(const Steps *it, ptrdiff_t time, Sequences some, ptrdiff_t begin, ptrdiff_t end, float *packed) {
    const Recurrent *how = it->how;
    const Layout *layout = &it->layout;
    ptrdiff_t hidden = how->hidden, row = layout->kept * hidden, all = how->batch * hidden;
    ptrdiff_t now = step_at(how, time) * all, last = time ? step_at(how, time - 1) * all : 0;
    const float *state = time ? how->out + last : how->first;
    float *gates = how->gates + now * layout->kept;
    for (ptrdiff_t tile = 0; tile < some.tiles; tile++) {
        ptrdiff_t top = tile_begin(some, tile), rows = tile_begin(some, tile + 1) - top;
        pack_left(packed + tile * TALL * hidden, (Matrix){(float *)state + top * hidden, hidden, 1}, rows, hidden);
    }
    for (ptrdiff_t block = begin; block < end; block++) {
        ptrdiff_t unit = block * WIDE, units = least(WIDE, hidden - unit);
        for (int product = 0; product < layout->products; product++)
            for (ptrdiff_t tile = 0; tile < some.tiles; tile++) {
                ptrdiff_t top = tile_begin(some, tile), rows = tile_begin(some, tile + 1) - top;
                multiply_panels(gates + top * row + layout->of_product[product] * hidden + unit, row,
                                packed + tile * TALL * hidden, product_panel(it, block, product), rows, units, hidden,
                                NULL, 1);
            }
        for (ptrdiff_t b = some.begin; b < some.end; b++) {
            float *g = gates + b * row + unit;
            ptrdiff_t place = b * hidden + unit;
            if (how->kind == RECURRENT_LSTM)
                lstm_cell(how, now, place, g, time ? how->cells + last : how->first_cell, units);
            else if (how->kind == RECURRENT_GRU) gru_cell(how, how->out + now + place, g, state + place, units);
            else plain_cell(how->kind, g, units);
        }
    }
}

static void step_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Steps *it = work;
    step_part(it, it->time, sequences(0, it->how->batch), begin, end, it->packed + (size_t)share * it->packed_each);
}

static void sequences_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Steps *it = work;
    float *packed = it->packed + (size_t)share * it->packed_each;
    for (ptrdiff_t time = 0; time < it->how->steps; time++)
        step_part(it, time, sequences(begin, end), 0, it->blocks, packed);
}

INLINE void lstm_cell_back(const Recurrent *how, ptrdiff_t now, ptrdiff_t b, const float *before, ptrdiff_t from,
                           ptrdiff_t until) {
    ptrdiff_t hidden = how->hidden, place = (now * how->batch + b) * hidden;
    const float *g = how->gates + place * 4, *pull = how->pull + place, *flats = how->squashed + place;
    const float *old = before + b * hidden;
    float *s = how->slopes + place * 4, *state = how->state_pull + b * hidden, *cells = how->cell_pull + b * hidden;
    for (ptrdiff_t j = from; j < until; j += LANES) {
        ptrdiff_t left = until - j;
        V entry = next(g + j, left), forget = next(g + hidden + j, left), fresh = next(g + 2 * hidden + j, left);
        V shown = next(g + 3 * hidden + j, left), flat = next(flats + j, left);
        V dh = next(state + j, left) + next(pull + j, left);
        V dc = next(cells + j, left) + dh * shown * (1.0f - flat * flat);
        put(s + j, dc * fresh * entry * (1.0f - entry), left);
        put(s + hidden + j, dc * next(old + j, left) * forget * (1.0f - forget), left);
        put(s + 2 * hidden + j, dc * entry * (1.0f - fresh * fresh), left);
        put(s + 3 * hidden + j, dh * flat * shown * (1.0f - shown), left);
        put(cells + j, dc * forget, left);
    }
}

INLINE void gru_cell_back(const Recurrent *how, ptrdiff_t now, ptrdiff_t b, const float *before, ptrdiff_t from,
                          ptrdiff_t until) {
    ptrdiff_t hidden = how->hidden, place = (now * how->batch + b) * hidden;
    const float *g = how->gates + place * 4, *pull = how->pull + place, *old = before + b * hidden;
    float *s = how->slopes + place * 4, *state = how->state_pull + b * hidden;
    for (ptrdiff_t j = from; j < until; j += LANES) {
        ptrdiff_t left = until - j;
        V reset = next(g + j, left), update = next(g + hidden + j, left), fresh = next(g + 2 * hidden + j, left);
        V held = next(g + 3 * hidden + j, left), dh = next(state + j, left) + next(pull + j, left);
        V inner = dh * (1.0f - update) * (1.0f - fresh * fresh);
        put(s + j, inner * held * reset * (1.0f - reset), left);
        put(s + hidden + j, dh * (next(old + j, left) - fresh) * update * (1.0f - update), left);
        put(s + 2 * hidden + j, inner, left);
        put(s + 3 * hidden + j, inner * reset, left);
        put(state + j, dh * update, left); /* the products are added to this */
    }
}

INLINE void plain_cell_back(const Recurrent *how, ptrdiff_t now, ptrdiff_t b, ptrdiff_t from, ptrdiff_t until) {
    ptrdiff_t place = (now * how->batch + b) * how->hidden;
    const float *y = how->out + place, *pull = how->pull + place, *state = how->state_pull + b * how->hidden;
    float *s = how->slopes + place;
    for (ptrdiff_t j = from; j < until; j += LANES) {
        ptrdiff_t left = until - j;
        V dh = next(state + j, left) + next(pull + j, left), shown = next(y + j, left);
        V through = dh * (1.0f - shown * shown);
        put(s + j, how->kind == RECURRENT_TANH ? through : choose(shown <= 0.0f, splat(0.0f), dh), left);
    }
}

/* The product of the later step's slopes with the weights, then the slopes of this step: some sequences and blocks. */
static void back_part(const Steps *it, ptrdiff_t time, Sequences some, ptrdiff_t begin, ptrdiff_t end, float *packed) {
    const Recurrent *how = it->how;
    const Layout *layout = &it->layout;
    ptrdiff_t hidden = how->hidden, row = layout->kept * hidden, inner = layout->products * hidden;
    if (time < how->steps) {
        const float *later = how->slopes + step_at(how, time) * how->batch * row;
        for (ptrdiff_t tile = 0; tile < some.tiles; tile++) {
            ptrdiff_t top = tile_begin(some, tile), rows = tile_begin(some, tile + 1) - top;
            float *panel = packed + tile * TALL * inner;
            /* Neighbouring products at once. */
            for (int product = 0, many; product < layout->products; product += many, panel += TALL * many * hidden) {
                for (many = 1; product + many < layout->products; many++)
                    if (layout->of_product[product + many] != layout->of_product[product] + many) break;
                const float *from = later + top * row + layout->of_product[product] * hidden;
                pack_left(panel, (Matrix){(float *)from, row, 1}, rows, many * hidden);
            }
        }
        for (ptrdiff_t block = begin; block < end; block++)
            for (ptrdiff_t tile = 0; tile < some.tiles; tile++) {
                ptrdiff_t top = tile_begin(some, tile), rows = tile_begin(some, tile + 1) - top;
                multiply_panels(how->state_pull + top * hidden + block * WIDE, hidden, packed + tile * TALL * inner,
                                it->panels + block * WIDE * inner, rows, least(WIDE, hidden - block * WIDE), inner,
                                NULL, how->kind == RECURRENT_GRU);
            }
    }
    if (!time) return;
    ptrdiff_t now = step_at(how, time - 1), all = how->batch * hidden;
    const float *states = how->kind == RECURRENT_LSTM ? how->cells : how->out;
    const float *before = how->kind == RECURRENT_LSTM ? how->first_cell : how->first;
    if (time > 1) before = states + step_at(how, time - 2) * all;
    ptrdiff_t from = begin * WIDE, until = least(end * WIDE, hidden);
    for (ptrdiff_t b = some.begin; b < some.end; b++) {
        if (how->kind == RECURRENT_LSTM) lstm_cell_back(how, now, b, before, from, until);
        else if (how->kind == RECURRENT_GRU) gru_cell_back(how, now, b, before, from, until);
        else plain_cell_back(how, now, b, from, until);
    }
}

static void back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Steps *it = work;
    back_part(it, it->time, sequences(0, it->how->batch), begin, end, it->packed + (size_t)share * it->packed_each);
}

static void sequences_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Steps *it = work;
    float *packed = it->packed + (size_t)share * it->packed_each;
    for (ptrdiff_t time = it->how->steps; time >= 0; time--)
        back_part(it, time, sequences(begin, end), 0, it->blocks, packed);
}

/* Sequences that a thread should have at least: fewer would make it read the weights for too little. */
enum { FEWEST_SEQUENCES = 4, NEAR_WEIGHTS = 1 << 18 };

static int recurrent(const Recurrent *how, int back) {
    ptrdiff_t hidden = how->hidden;
    Layout layout = LAYOUTS[how->kind];
    Steps it = {how, layout, (hidden + WIDE - 1) / WIDE, 0, NULL, NULL, 0};
    double products = (double)layout.products * (double)hidden * (double)hidden;
    ptrdiff_t fewest = 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / ((double)how->steps * products + 1));
    fewest = fewest > FEWEST_SEQUENCES ? fewest : FEWEST_SEQUENCES;
    if (products > NEAR_WEIGHTS && fewest < TALL) fewest = TALL;
    int apart = pool_shares(how->batch, fewest);
    /* A step must be long enough to be shared. */
    ptrdiff_t fewest_blocks = 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / ((double)how->batch * products / (double)it.blocks + 1));
    int shares = apart > 1 ? apart : pool_shares(it.blocks, fewest_blocks);
    ptrdiff_t tiles = apart > 1 ? (how->batch / apart + TALL) / TALL : (how->batch + TALL - 1) / TALL;
    size_t panels = (size_t)(it.blocks * layout.products * WIDE * hidden);
    it.packed_each = (size_t)(tiles * TALL * hidden * (back ? layout.products : 1));
    it.panels = malloc(sizeof(float) * (panels + it.packed_each * (size_t)shares) + 1);
    if (!it.panels) return NO_MEMORY;
    it.packed = it.panels + panels;
    if (back) {
        pack_right(it.panels, (Matrix){(float *)how->weight, hidden, 1}, hidden, layout.products * hidden);
    } else {
        for (ptrdiff_t block = 0; block < it.blocks; block++)
            for (int product = 0; product < layout.products; product++) {
                const float *from = how->weight + (product * hidden + block * WIDE) * hidden;
                pack_right(product_panel(&it, block, product), (Matrix){(float *)from, 1, hidden},
                           least(WIDE, hidden - block * WIDE), hidden);
            }
    }
    if (apart > 1) {
        pool_run(back ? sequences_back_share : sequences_share, &it, how->batch, fewest);
    } else if (back) {
        for (it.time = how->steps; it.time >= 0; it.time--) pool_run(back_share, &it, it.blocks, fewest_blocks);
    } else {
        for (; it.time < how->steps; it.time++) pool_run(step_share, &it, it.blocks, fewest_blocks);
    }
    free(it.panels);
    return 0;
}
