/* All time steps of a layer with long short-term memory, forward and back. Included once by each level's file.

   Hidden units are cut into blocks of WIDE. A block's part of a step, product and gates, is one item of work; nobody
   but the next step needs it. Gates are in the order input, forget, cell, output. */

typedef struct {
    const Lstm *how;
    ptrdiff_t blocks, time;
    float *panels, *packed;
    size_t packed_each;
} Steps;

INLINE ptrdiff_t step_at(const Lstm *how, ptrdiff_t number) { return how->reverse ? how->steps - 1 - number : number; }

/* The panel of a gate's columns for a block of units. */
INLINE float *gate_panel(const Steps *it, ptrdiff_t block, int gate) {
    return it->panels + (block * 4 + gate) * WIDE * it->how->hidden;
}

static void lstm_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Steps *it = work;
    const Lstm *how = it->how;
    ptrdiff_t hidden = how->hidden, batch = how->batch, now = step_at(how, it->time);
    const float *state = it->time ? how->out + step_at(how, it->time - 1) * batch * hidden : how->first;
    const float *before = it->time ? how->cells + step_at(how, it->time - 1) * batch * hidden : how->first_cell;
    float *packed = it->packed + (size_t)share * it->packed_each, *gates = how->gates + now * batch * 4 * hidden;
    pack_left(packed, (Matrix){(float *)state, hidden, 1}, batch, hidden);
    for (ptrdiff_t block = begin; block < end; block++) {
        ptrdiff_t unit = block * WIDE, units = least(WIDE, hidden - unit);
        for (int gate = 0; gate < 4; gate++)
            multiply_panels(gates + gate * hidden + unit, 4 * hidden, packed, gate_panel(it, block, gate), batch, units,
                            hidden, NULL, 1);
        for (ptrdiff_t b = 0; b < batch; b++) {
            float *g = gates + b * 4 * hidden + unit;
            const ptrdiff_t place = b * hidden + unit;
            float *cells = how->cells + now * batch * hidden + place, *out = how->out + now * batch * hidden + place;
            float *squashed = how->squashed + now * batch * hidden + place;
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
    }
}

/* A step must be long enough to be shared. */
INLINE ptrdiff_t fewest_blocks(const Lstm *how) {
    return 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / ((double)how->batch * 4 * WIDE * (double)how->hidden + 1));
}

static int lstm(const Lstm *how) {
    Steps it = {how, (how->hidden + WIDE - 1) / WIDE, 0, NULL, NULL, (size_t)(up(how->batch, TALL) * how->hidden)};
    size_t panels = (size_t)(it.blocks * 4 * WIDE * how->hidden);
    ptrdiff_t fewest = fewest_blocks(how);
    it.panels = malloc(sizeof(float) * (panels + it.packed_each * (size_t)pool_shares(it.blocks, fewest)) + 1);
    if (!it.panels) return NO_MEMORY;
    it.packed = it.panels + panels;
    for (ptrdiff_t block = 0; block < it.blocks; block++)
        for (int gate = 0; gate < 4; gate++) {
            ptrdiff_t unit = block * WIDE;
            Matrix part = {(float *)how->weight + (gate * how->hidden + unit) * how->hidden, 1, how->hidden};
            pack_right(gate_panel(&it, block, gate), part, least(WIDE, how->hidden - unit), how->hidden);
        }
    for (; it.time < how->steps; it.time++) pool_run(lstm_share, &it, it.blocks, fewest);
    free(it.panels);
    return 0;
}

/* The product of the later step's slopes with the weights, then the slopes of this step, for some blocks of units. */
static void lstm_back_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Steps *it = work;
    const Lstm *how = it->how;
    ptrdiff_t hidden = how->hidden, batch = how->batch;
    float *packed = it->packed + (size_t)share * it->packed_each;
    if (it->time < how->steps) {
        float *later = how->slopes + step_at(how, it->time) * batch * 4 * hidden;
        pack_left(packed, (Matrix){later, 4 * hidden, 1}, batch, 4 * hidden);
        for (ptrdiff_t block = begin; block < end; block++)
            multiply_panels(how->state_pull + block * WIDE, hidden, packed, it->panels + block * WIDE * 4 * hidden, batch,
                            least(WIDE, hidden - block * WIDE), 4 * hidden, NULL, 0);
    }
    if (!it->time) return;
    ptrdiff_t now = step_at(how, it->time - 1);
    const float *before = it->time > 1 ? how->cells + step_at(how, it->time - 2) * batch * hidden : how->first_cell;
    ptrdiff_t from = begin * WIDE, until = least(end * WIDE, hidden);
    for (ptrdiff_t b = 0; b < batch; b++) {
        const float *g = how->gates + (now * batch + b) * 4 * hidden;
        float *s = how->slopes + (now * batch + b) * 4 * hidden;
        const float *pull = how->pull + (now * batch + b) * hidden, *old = before + b * hidden;
        const float *flats = how->squashed + (now * batch + b) * hidden;
        float *state = how->state_pull + b * hidden, *cells = how->cell_pull + b * hidden;
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
}

/* `state_pull` and `cell_pull` come in as the last states' gradients and leave as the first ones'. */
static int lstm_back(const Lstm *how) {
    Steps it = {how, (how->hidden + WIDE - 1) / WIDE, 0, NULL, NULL, (size_t)(up(how->batch, TALL) * 4 * how->hidden)};
    size_t panels = (size_t)(it.blocks * WIDE * 4 * how->hidden);
    ptrdiff_t fewest = fewest_blocks(how);
    it.panels = malloc(sizeof(float) * (panels + it.packed_each * (size_t)pool_shares(it.blocks, fewest)) + 1);
    if (!it.panels) return NO_MEMORY;
    it.packed = it.panels + panels;
    pack_right(it.panels, (Matrix){(float *)how->weight, how->hidden, 1}, how->hidden, 4 * how->hidden);
    for (it.time = how->steps; it.time >= 0; it.time--) pool_run(lstm_back_share, &it, it.blocks, fewest);
    free(it.panels);
    return 0;
}
