/* Gradients of a convolution. Included once by each level's file. */

/* The gradient of the weight: for each output channel and tap, the product of two runs of memory. */
#if LANES == 16
enum { DOT_ROWS = 5, DOT_TAPS = 5 };
#else
enum { DOT_ROWS = 3, DOT_TAPS = 3 };
#endif

/* Gradients of some output channels at the planes' pitch, `(image, channel)`. */
static void lay_pulls(const Convolution *it, float *pulls, ptrdiff_t channel, ptrdiff_t rows) {
    const Windows *how = it->how;
    ptrdiff_t run = up(it->positions, LANES), width = how->made[2], slice = it->high * it->wide;
    for (ptrdiff_t image = 0; image < it->some; image++)
        for (ptrdiff_t i = 0; i < rows; i++) {
            const float *from = it->pull + ((it->first + image) * how->out_channels + channel + i) * volume(how->made);
            float *to = pulls + (image * DOT_ROWS + i) * run;
            for (ptrdiff_t z = 0; z < how->made[0]; z++, to += slice)
                for (ptrdiff_t y = 0; y < how->made[1]; y++, from += width) {
                    float *line = to + y * it->wide;
                    ptrdiff_t until = it->wide;
                    if (y + 1 == how->made[1]) until = (z + 1 < how->made[0] ? slice : run - z * slice) - y * it->wide;
                    for (ptrdiff_t x = 0; x < width; x++) line[x] = from[x];
                    for (ptrdiff_t x = width; x < until; x++) line[x] = 0.0f;
                }
        }
}

/* Sums over all images in hand, of DOT_ROWS output channels and DOT_TAPS taps. */
static void dots(const Convolution *it, V sum[DOT_ROWS][DOT_TAPS], const float *const *pulls, const float *planes,
                 const ptrdiff_t *offsets) {
    ptrdiff_t run = up(it->positions, LANES), pull_step = DOT_ROWS * run;
    V held[DOT_ROWS][DOT_TAPS];
#pragma GCC unroll 8
    for (int i = 0; i < DOT_ROWS; i++)
#pragma GCC unroll 8
        for (int k = 0; k < DOT_TAPS; k++) held[i][k] = splat(0.0f);
    for (ptrdiff_t image = 0; image < it->some; image++, planes += it->image)
        for (ptrdiff_t j = 0; j < run; j += LANES) {
            V right[DOT_TAPS];
#pragma GCC unroll 8
            for (int k = 0; k < DOT_TAPS; k++) right[k] = load(planes + offsets[k] + j);
#pragma GCC unroll 8
            for (int i = 0; i < DOT_ROWS; i++) {
                V left = load(pulls[i] + image * pull_step + j);
#pragma GCC unroll 8
                for (int k = 0; k < DOT_TAPS; k++) held[i][k] += left * right[k];
            }
        }
#pragma GCC unroll 8
    for (int i = 0; i < DOT_ROWS; i++)
#pragma GCC unroll 8
        for (int k = 0; k < DOT_TAPS; k++) sum[i][k] = held[i][k];
}

/* Items are blocks of output channels. Blocks at the ends repeat what they have. */
static void dots_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Convolution *it = work;
    const Windows *how = it->how;
    ptrdiff_t outs = how->out_channels / how->groups, blocks = (outs + DOT_ROWS - 1) / DOT_ROWS;
    ptrdiff_t run = up(it->positions, LANES);
    float *laid = it->pulls + (ptrdiff_t)share * it->pieces * DOT_ROWS * run;
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t group = i / blocks, r = i % blocks * DOT_ROWS, rows = least(DOT_ROWS, outs - r);
        const float *pulls[DOT_ROWS], *planes = it->planes + group * (it->image / how->groups);
        lay_pulls(it, laid, group * outs + r, rows);
        for (ptrdiff_t j = 0; j < DOT_ROWS; j++) pulls[j] = laid + least(j, rows - 1) * run;
        for (ptrdiff_t k = 0; k < it->taps; k += DOT_TAPS) {
            V sum[DOT_ROWS][DOT_TAPS];
            ptrdiff_t offsets[DOT_TAPS];
            for (ptrdiff_t t = 0; t < DOT_TAPS; t++) offsets[t] = it->offsets[least(k + t, it->taps - 1)];
            dots(it, sum, pulls, planes, offsets);
            for (ptrdiff_t j = 0; j < rows; j++)
                for (ptrdiff_t t = 0; t < DOT_TAPS && k + t < it->taps; t++)
                    it->made[(group * outs + r + j) * it->taps + k + t] += total(sum[j][t]);
        }
    }
}

static int convolve_back(const Windows *how, float *made, const float *pull, const float *given) {
    Convolution it = {.how = how, .given = given, .pull = pull, .made = made};
    ptrdiff_t outs = how->out_channels / how->groups;
    if (prepare(&it, 0)) return NO_MEMORY;
    ptrdiff_t run = up(it.positions, LANES), block = it.some;
    ptrdiff_t items = how->groups * ((outs + DOT_ROWS - 1) / DOT_ROWS);
    double each = (double)DOT_ROWS * (double)it.taps * (double)run * (double)block;
    ptrdiff_t fewest = 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / (each + 1));
    it.pieces = block; /* images that a share has room for */
    it.pulls = malloc(sizeof(float) * (size_t)(block * DOT_ROWS * run) * (size_t)pool_shares(items, fewest) + 1);
    if (!it.pulls) return free(it.planes), NO_MEMORY;
    memset(made, 0, sizeof(float) * (size_t)(how->out_channels * it.taps));
    for (; it.first < how->images; it.first += block) {
        it.some = least(block, how->images - it.first);
        pool_run(planes_share, &it, it.some * how->channels, 1 + SHARE / (volume(how->given) + 1));
        pool_run(dots_share, &it, items, fewest);
    }
    free(it.pulls);
    free(it.planes);
    return 0;
}

/* The weight's gradient of small images: the contents of all windows as columns of a matrix
   `(channel and tap, image and position)`, and products of large matrices. */
typedef struct {
    const Windows *how;
    const float *given;
    float *columns, *made;
    ptrdiff_t first, some;
} Columns;

enum { COLUMN_NUMBERS = 1 << 20 };
enum { SUMMING = 64 }; /* positions whose products take as long as adding up a vector */

/* Positions along a dimension from `from` up to `until` see the image through a tap that is `shift` further on; others
   see padding. */
INLINE void seen_positions(const Windows *how, int i, ptrdiff_t shift, ptrdiff_t *from, ptrdiff_t *until) {
    ptrdiff_t by = how->stride[i];
    *from = shift < 0 ? least((-shift + by - 1) / by, how->made[i]) : 0;
    *until = how->given[i] > shift ? least((how->given[i] - shift + by - 1) / by, how->made[i]) : 0;
    if (*until < *from) *until = *from;
}

static void columns_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Columns *it = work;
    const Windows *how = it->how;
    (void)share;
    ptrdiff_t size = volume(how->kernel), area = volume(how->made), across = how->stride[2], width = how->made[2];
    for (ptrdiff_t row = begin; row < end; row++) {
        ptrdiff_t channel = row / size, at[3], from[3], until[3];
        place_of_tap(how, row % size, at);
        for (int i = 0; i < 3; i++) seen_positions(how, i, at[i] -= how->padding[i], from + i, until + i);
        for (ptrdiff_t image = 0; image < it->some; image++) {
            const float *source = it->given + ((it->first + image) * how->channels + channel) * volume(how->given);
            float *to = it->columns + (row * it->some + image) * area;
            for (ptrdiff_t z = 0; z < how->made[0]; z++)
                for (ptrdiff_t y = 0; y < how->made[1]; y++, to += width) {
                    if (z < from[0] || z >= until[0] || y < from[1] || y >= until[1]) {
                        memset(to, 0, sizeof(float) * (size_t)width);
                        continue;
                    }
                    ptrdiff_t slice = z * how->stride[0] + at[0], line = y * how->stride[1] + at[1];
                    const float *seen = source + (slice * how->given[1] + line) * how->given[2] + at[2];
                    for (ptrdiff_t x = 0; x < from[2]; x++) to[x] = 0.0f;
                    if (across == 1) for (ptrdiff_t x = from[2]; x < until[2]; x++) to[x] = seen[x];
                    else for (ptrdiff_t x = from[2]; x < until[2]; x++) to[x] = seen[x * across];
                    for (ptrdiff_t x = until[2]; x < width; x++) to[x] = 0.0f;
                }
        }
    }
}

/* Gradients of some images as `(channel, image, position)`. */
static void grouped_pulls_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Columns *it = work;
    const Windows *how = it->how;
    (void)share;
    size_t area = (size_t)volume(how->made);
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t image = i / how->out_channels, channel = i % how->out_channels;
        memcpy(it->made + (size_t)(channel * it->some + image) * area,
               it->given + (size_t)((it->first + image) * how->out_channels + channel) * area, sizeof(float) * area);
    }
}

INLINE ptrdiff_t images_at_once(const Windows *how) {
    ptrdiff_t one = how->channels * volume(how->kernel) * volume(how->made);
    ptrdiff_t some = COLUMN_NUMBERS / (one + 1);
    return some < 1 ? 1 : least(some, how->images);
}

static int convolve_back_columns(const Windows *how, float *made, const float *pull, const float *given) {
    ptrdiff_t area = volume(how->made), outs = how->out_channels / how->groups;
    ptrdiff_t rows = how->channels * volume(how->kernel), taps = rows / how->groups;
    ptrdiff_t block = images_at_once(how);
    float *columns = malloc(sizeof(float) * (size_t)(block * area * (rows + how->out_channels)) + 1);
    if (!columns) return NO_MEMORY;
    float *pulls = columns + block * area * rows;
    int failed = 0;
    for (ptrdiff_t first = 0; first < how->images && !failed; first += block) {
        Columns it = {how, given, columns, pulls, first, least(block, how->images - first)};
        ptrdiff_t across = it.some * area;
        pool_run(columns_share, &it, rows, 1 + SHARE / (across + 1));
        it.given = pull;
        pool_run(grouped_pulls_share, &it, it.some * how->out_channels, 1 + SHARE / (area + 1));
        for (ptrdiff_t group = 0; group < how->groups && !failed; group++)
            failed = multiply((Matrix){made + group * outs * taps, taps, 1},
                              (Matrix){pulls + group * outs * across, across, 1},
                              (Matrix){columns + group * taps * across, 1, across}, outs, taps, across, NULL, first > 0);
    }
    free(columns);
    return failed;
}

static int convolve_back_points(const Windows *how, float *made, const float *pull, const float *given) {
    ptrdiff_t area = volume(how->made), outs = how->out_channels / how->groups, ins = how->channels / how->groups;
    int failed = 0;
    for (ptrdiff_t i = 0; i < how->images * how->groups && !failed; i++)
        failed = multiply((Matrix){made + i % how->groups * outs * ins, ins, 1},
                          (Matrix){(float *)pull + i * outs * area, area, 1},
                          (Matrix){(float *)given + i * ins * area, 1, area}, outs, ins, area, NULL, i >= how->groups);
    return failed;
}

/* What is cheaper: multiplying runs of the planes, with what is between the rows of an image and a sum at the end of each,
   or bringing the contents of windows together first. */
static int convolve_back_any(const Windows *how, float *made, const float *pull, const float *given) {
    if (are_points(how)) return convolve_back_points(how, made, pull, given);
    ptrdiff_t outs = how->out_channels / how->groups, area = volume(how->made), sizes[3];
    double runs = (double)up(outs, DOT_ROWS) * (double)(pitched(how, sizes) * how->images + SUMMING);
    double columns = (double)(outs + PACKING) * (double)(area * how->images);
    return runs < columns ? convolve_back(how, made, pull, given) : convolve_back_columns(how, made, pull, given);
}

/* The gradient of the input. The weights times the output's gradient say what every position gives back through every
   tap; this is then added up in the image. Items of work are some channels of a set of images: small images are put
   together, so that the positions of a set fill vectors. */
typedef struct {
    const Windows *how;
    const float *pull, *weight;
    float *made;
    ptrdiff_t together, sets, tiles, block, blocks; /* images of a set; tiles of a set; channels of an item */
    float *panels;                                  /* of the gradient, `(set, group, tile)` */
    float *room;
    size_t room_each;
} InputBack;

enum { SET_POSITIONS = 128 };
enum { GIVEN_BACK = 1 << 17 }; /* numbers that an item gives back: they fit into the second cache */

INLINE ptrdiff_t images_of_set(const InputBack *it, ptrdiff_t set) {
    return least(it->together, it->how->images - set * it->together);
}

static void input_panels_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    InputBack *it = work;
    const Windows *how = it->how;
    (void)share;
    ptrdiff_t area = volume(how->made), outs = how->out_channels / how->groups;
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t set = i / it->tiles / how->groups, group = i / it->tiles % how->groups, position = i % it->tiles * WIDE;
        ptrdiff_t count = least(WIDE, images_of_set(it, set) * area - position);
        float *panel = it->panels + i * outs * WIDE;
        for (ptrdiff_t o = 0; o < outs; o++, panel += WIDE) {
            ptrdiff_t done = 0;
            while (done < count) {
                ptrdiff_t image = (position + done) / area, place = (position + done) % area;
                ptrdiff_t here = least(count - done, area - place);
                image += set * it->together;
                memcpy(panel + done, it->pull + (image * how->out_channels + group * outs + o) * area + place,
                       sizeof(float) * (size_t)here);
                done += here;
            }
            for (done = done < 0 ? 0 : done; done < WIDE; done++) panel[done] = 0.0f;
        }
    }
}

/* What the positions of an image give back through all taps of a channel, added up. */
static void give_back(const Windows *how, float *image, const float *given, ptrdiff_t pitch) {
    ptrdiff_t across = how->stride[2];
    memset(image, 0, sizeof(float) * (size_t)volume(how->given));
    for (ptrdiff_t tap = 0; tap < volume(how->kernel); tap++, given += pitch) {
        ptrdiff_t at[3], from[3], until[3];
        place_of_tap(how, tap, at);
        for (int i = 0; i < 3; i++) seen_positions(how, i, at[i] -= how->padding[i], from + i, until + i);
        for (ptrdiff_t z = from[0]; z < until[0]; z++)
            for (ptrdiff_t y = from[1]; y < until[1]; y++) {
                ptrdiff_t slice = z * how->stride[0] + at[0], line = y * how->stride[1] + at[1];
                float *to = image + (slice * how->given[1] + line) * how->given[2] + at[2];
                const float *row = given + (z * how->made[1] + y) * how->made[2];
                if (across == 1) for (ptrdiff_t x = from[2]; x < until[2]; x++) to[x] += row[x];
                else for (ptrdiff_t x = from[2]; x < until[2]; x++) to[x * across] += row[x];
            }
    }
}

static void input_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    InputBack *it = work;
    const Windows *how = it->how;
    ptrdiff_t ins = how->channels / how->groups, outs = how->out_channels / how->groups;
    ptrdiff_t size = volume(how->kernel), area = volume(how->made), pitch = it->tiles * WIDE;
    float *packed = it->room + (size_t)share * it->room_each, *given = packed + HIGH * DEEP;
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t set = i / it->blocks / how->groups, group = i / it->blocks % how->groups;
        ptrdiff_t channel = i % it->blocks * it->block, channels = least(it->block, ins - channel);
        ptrdiff_t images = images_of_set(it, set), rows = channels * size;
        const float *panels = it->panels + (set * how->groups + group) * it->tiles * outs * WIDE;
        for (ptrdiff_t k = 0; k < outs; k += DEEP)
            for (ptrdiff_t r = 0; r < rows; r += HIGH) {
                ptrdiff_t deep = least(DEEP, outs - k), down = least(HIGH, rows - r);
                const float *weight = it->weight + ((group * outs + k) * ins + channel) * size + r;
                pack_left(packed, (Matrix){(float *)weight, 1, ins * size}, down, deep);
                for (ptrdiff_t t = 0; t * WIDE < images * area; t++)
                    multiply_panels(given + r * pitch + t * WIDE, pitch, packed, panels + (t * outs + k) * WIDE, down,
                                    least(WIDE, images * area - t * WIDE), deep, NULL, k > 0);
            }
        for (ptrdiff_t image = 0; image < images; image++)
            for (ptrdiff_t c = 0; c < channels; c++) {
                ptrdiff_t plane = (set * it->together + image) * how->channels + group * ins + channel + c;
                give_back(how, it->made + plane * volume(how->given), given + c * size * pitch + image * area, pitch);
            }
    }
}

static int convolve_input(const Windows *how, float *made, const float *pull, const float *weight) {
    ptrdiff_t area = volume(how->made), size = volume(how->kernel);
    ptrdiff_t ins = how->channels / how->groups, outs = how->out_channels / how->groups;
    InputBack it = {.how = how, .pull = pull, .weight = weight, .made = made};
    it.together = least((SET_POSITIONS + area - 1) / area, how->images);
    it.sets = (how->images + it.together - 1) / it.together;
    it.tiles = (it.together * area + WIDE - 1) / WIDE;
    /* Several items for each thread, of channels whose taps fill panels where that is possible. */
    it.block = least(GIVEN_BACK / (size * it.tiles * WIDE + 1), ins * how->groups * it.sets / (4 * pool_threads()));
    it.block = it.block >= TALL ? it.block - it.block % TALL : it.block >= 4 ? it.block - it.block % 4 : 1;
    if (it.block > ins) it.block = ins;
    it.blocks = (ins + it.block - 1) / it.block;
    ptrdiff_t items = it.sets * how->groups * it.blocks;
    double each = (double)(it.block * size) * (double)outs * (double)(it.together * area);
    ptrdiff_t fewest = 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / (each + 1));
    it.room_each = (size_t)(HIGH * DEEP + it.block * size * it.tiles * WIDE);
    size_t panels = (size_t)(it.sets * it.tiles * how->out_channels * WIDE);
    it.panels = malloc(sizeof(float) * (panels + it.room_each * (size_t)pool_shares(items, fewest)));
    if (!it.panels) return NO_MEMORY;
    it.room = it.panels + panels;
    pool_run(input_panels_share, &it, it.sets * how->groups * it.tiles, 1 + SHARE / (outs * WIDE + 1));
    pool_run(input_share, &it, items, fewest);
    free(it.panels);
    return 0;
}

/* For windows that step by one it is a convolution too: of the output's gradient with the weight, reversed in space,
   input and output channels exchanged. */
static int turned_windows(const Windows *how, Windows *back) {
    *back = *how;
    back->channels = how->out_channels, back->out_channels = how->channels;
    for (int i = 0; i < 3; i++) {
        ptrdiff_t reach = how->dilation[i] * (how->kernel[i] - 1);
        back->given[i] = how->made[i], back->made[i] = how->given[i], back->padding[i] = reach - how->padding[i];
        if (how->stride[i] != 1 || back->padding[i] < 0 || how->made[i] != how->given[i] + 2 * how->padding[i] - reach)
            return 0;
    }
    return 1;
}

static int convolve_input_turned(const Windows *how, const Windows *back, float *made, const float *pull,
                                 const float *weight) {
    ptrdiff_t ins = how->channels / how->groups, outs = how->out_channels / how->groups, size = volume(how->kernel);
    float *other = malloc(sizeof(float) * (size_t)(how->groups * ins * outs * size));
    if (!other) return NO_MEMORY;
    float *to = other;
    for (ptrdiff_t group = 0; group < how->groups; group++)
        for (ptrdiff_t i = 0; i < ins; i++)
            for (ptrdiff_t o = 0; o < outs; o++) {
                const float *from = weight + ((group * outs + o) * ins + i) * size;
                for (ptrdiff_t k = size; k; k--) *to++ = from[k - 1];
            }
    int failed = convolve_any(back, made, pull, other, NULL);
    free(other);
    return failed;
}

enum { GIVING = 16 }; /* products that take as long as adding a number to the image that it is given back to */

static int convolve_input_any(const Windows *how, float *made, const float *pull, const float *weight) {
    Windows back;
    ptrdiff_t outs = how->out_channels / how->groups, ins = how->channels / how->groups;
    if (are_points(how)) return convolve_points(how, made, pull, weight, ins, outs, 1, ins);
    double spread = (double)(outs + GIVING) * (double)(how->channels * volume(how->kernel)) *
                    (double)(how->images * volume(how->made));
    if (turned_windows(how, &back)) {
        Costs costs = costs_of(&back);
        if (costs.in_place < spread || costs.joined < spread)
            return convolve_input_turned(how, &back, made, pull, weight);
    }
    return convolve_input(how, made, pull, weight);
}
