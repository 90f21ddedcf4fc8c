/* Convolution of images and the gradient of its weight. Included once by each level's file.

   Images are copied once, with their padding, into planes in which windows step by one: a stride of 2 gives 4 planes a
   channel, of even and odd rows and columns. What one tap of a kernel sees at consecutive positions is then a run of
   memory, and a table of offsets, one for each channel and tap, is all that a product with the weights needs. Positions
   keep the pitch of the planes; those beyond the end of a row are computed and dropped. */

typedef struct {
    const Windows *how;
    const float *given, *weight, *bias, *pull;
    float *made;
    ptrdiff_t high, wide;          /* of a plane */
    ptrdiff_t positions;           /* of an image, at the planes' pitch */
    ptrdiff_t image;               /* numbers that an image's planes take */
    ptrdiff_t taps;                /* channels of a group times kernel elements */
    ptrdiff_t first, some;         /* the images in hand */
    ptrdiff_t pieces;              /* stretches of positions that an image is cut into */
    ptrdiff_t *offsets;
    float *planes, *panels, *pulls;
} Convolution;

enum { IMAGES_AT_ONCE = 1 << 22 }; /* numbers of planes that are in memory together, but at least one image */

static void planes_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Convolution *it = work;
    const Windows *how = it->how;
    (void)share;
    ptrdiff_t plane = it->high * it->wide, across = how->stride[1];
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t image = i / how->channels, channel = i % how->channels;
        const float *from = it->given + ((it->first + image) * how->channels + channel) * how->height * how->width;
        float *to = it->planes + image * it->image + channel * how->stride[0] * across * plane;
        memset(to, 0, sizeof(float) * (size_t)(how->stride[0] * across * plane));
        for (ptrdiff_t y = 0; y < how->height; y++) {
            ptrdiff_t row = y + how->padding[0];
            float *line = to + row % how->stride[0] * across * plane + row / how->stride[0] * it->wide;
            const float *source = from + y * how->width;
            if (across == 1) {
                memcpy(line + how->padding[1], source, sizeof(float) * (size_t)how->width);
                continue;
            }
            for (ptrdiff_t phase = 0; phase < across; phase++) {
                float *target = line + phase * plane;
                ptrdiff_t x = (phase - how->padding[1] % across + across) % across;
                for (target += (x + how->padding[1]) / across; x < how->width; x += across) *target++ = source[x];
            }
        }
    }
}

/* ROWS output channels at WIDE positions: a product whose right factor is read where it lies. */
#define WINDOW_TILE(NAME, ROWS)                                                                                        \
    static void NAME(float *tile, const float *left, const float *planes, const ptrdiff_t *offsets, ptrdiff_t taps) {  \
        V sum[ROWS][2];                                                                                                \
        _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++) sum[i][0] = sum[i][1] = splat(0.0f);                   \
        for (ptrdiff_t k = 0; k < taps; k++) {                                                                         \
            const float *right = planes + offsets[k];                                                                  \
            V b0 = load(right), b1 = load(right + LANES);                                                              \
            _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++) {                                                  \
                V a = splat(left[k * TALL + i]);                                                                       \
                sum[i][0] += a * b0;                                                                                   \
                sum[i][1] += a * b1;                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
        _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++) {                                                      \
            store(tile + i * WIDE, sum[i][0]);                                                                         \
            store(tile + i * WIDE + LANES, sum[i][1]);                                                                 \
        }                                                                                                              \
    }
WINDOW_TILE(windows_full, TALL)
WINDOW_TILE(windows_half, (TALL / 2))
WINDOW_TILE(windows_one, 1)

/* The positions of a tile that are of the image go to the result. */
INLINE void keep_positions(const Convolution *it, float *out, const float *row, ptrdiff_t position, float shift) {
    const Windows *how = it->how;
    ptrdiff_t y = position / it->wide, x = position % it->wide, done = 0;
    while (done < WIDE && y < how->out_height) {
        ptrdiff_t count = least(WIDE - done, how->out_width - x);
        float *to = out + y * how->out_width + x;
        if (count > 0)
            for (ptrdiff_t j = 0; j < count; j++) to[j] = row[done + j] + shift;
        done += it->wide - x;
        x = 0;
        y++;
    }
}

static void windows_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Convolution *it = work;
    const Windows *how = it->how;
    (void)share;
    ptrdiff_t outs = how->out_channels / how->groups, ins = how->channels / how->groups;
    ptrdiff_t tiles = (it->positions + WIDE - 1) / WIDE, area = how->out_height * how->out_width;
    ptrdiff_t group_planes = ins * how->stride[0] * how->stride[1] * it->high * it->wide;
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t piece = i % it->pieces, group = i / it->pieces % how->groups, image = i / it->pieces / how->groups;
        const float *planes = it->planes + image * it->image + group * group_planes;
        const float *left = it->panels + group * up(outs, TALL) * it->taps;
        float *out = it->made + ((it->first + image) * how->out_channels + group * outs) * area;
        const float *bias = it->bias ? it->bias + group * outs : NULL;
        for (ptrdiff_t t = tiles * piece / it->pieces; t < tiles * (piece + 1) / it->pieces; t++)
            for (ptrdiff_t r = 0; r < outs; r += TALL) {
                float tile[TALL * WIDE];
                ptrdiff_t rows = least(TALL, outs - r);
                const float *at = planes + t * WIDE, *panel = left + r * it->taps;
                if (rows == 1) windows_one(tile, panel, at, it->offsets, it->taps);
                else if (rows <= TALL / 2) windows_half(tile, panel, at, it->offsets, it->taps);
                else windows_full(tile, panel, at, it->offsets, it->taps);
                for (ptrdiff_t j = 0; j < rows; j++)
                    keep_positions(it, out + (r + j) * area, tile + j * WIDE, t * WIDE, bias ? bias[r + j] : 0.0f);
            }
    }
}

/* Geometry, offsets and memory for planes; NO_MEMORY if there is none. */
static int prepare(Convolution *it, size_t more) {
    const Windows *how = it->how;
    it->high = (how->height + 2 * how->padding[0] + how->stride[0] - 1) / how->stride[0];
    it->wide = (how->width + 2 * how->padding[1] + how->stride[1] - 1) / how->stride[1];
    ptrdiff_t plane = it->high * it->wide, phases = how->stride[0] * how->stride[1];
    it->positions = (how->out_height - 1) * it->wide + how->out_width;
    it->image = how->channels * phases * plane;
    ptrdiff_t ins = how->channels / how->groups, size = how->kernel[0] * how->kernel[1];
    it->taps = ins * size;
    it->some = IMAGES_AT_ONCE / (it->image + 1);
    if (it->some < 1) it->some = 1;
    if (it->some > how->images) it->some = how->images;
    /* The last tile may read beyond the last image. */
    size_t slack = (size_t)(2 * WIDE), planes = (size_t)(it->some * it->image) + slack;
    it->planes = malloc(sizeof(float) * (planes + more) + sizeof(ptrdiff_t) * (size_t)(it->taps + 1));
    if (!it->planes) return NO_MEMORY;
    memset(it->planes + planes - slack, 0, sizeof(float) * slack);
    it->panels = it->planes + planes;
    it->offsets = (ptrdiff_t *)(((uintptr_t)(it->panels + more) + sizeof(ptrdiff_t) - 1) / sizeof(ptrdiff_t) *
                                sizeof(ptrdiff_t));
    for (ptrdiff_t k = 0; k < it->taps; k++) {
        ptrdiff_t y = k % size / how->kernel[1] * how->dilation[0], x = k % how->kernel[1] * how->dilation[1];
        ptrdiff_t phase = y % how->stride[0] * how->stride[1] + x % how->stride[1];
        it->offsets[k] = (k / size * phases + phase) * plane + y / how->stride[0] * it->wide + x / how->stride[1];
    }
    return 0;
}

static int convolve(const Windows *how, float *made, const float *given, const float *weight, const float *bias) {
    ptrdiff_t outs = how->out_channels / how->groups;
    ptrdiff_t taps = how->channels / how->groups * how->kernel[0] * how->kernel[1];
    Convolution it = {.how = how, .given = given, .weight = weight, .bias = bias, .made = made};
    if (prepare(&it, (size_t)(how->groups * up(outs, TALL) * taps))) return NO_MEMORY;
    for (ptrdiff_t group = 0; group < how->groups; group++)
        pack_left(it.panels + group * up(outs, TALL) * taps, (Matrix){(float *)weight + group * outs * taps, taps, 1},
                  outs, taps);
    ptrdiff_t tiles = (it.positions + WIDE - 1) / WIDE;
    it.pieces = it.some * how->groups >= 2 * pool_threads() ? 1 : least(tiles, 2 * pool_threads());
    double each = (double)outs * (double)taps * (double)it.positions / (double)it.pieces;
    ptrdiff_t block = it.some;
    for (; it.first < how->images; it.first += block) {
        it.some = least(block, how->images - it.first);
        pool_run(planes_share, &it, it.some * how->channels, 1 + SHARE / (how->height * how->width + 1));
        pool_run(windows_share, &it, it.some * how->groups * it.pieces,
                 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / (each + 1)));
    }
    free(it.planes);
    return 0;
}

/* The gradient of the weight: for each output channel and tap, the product of two runs of memory. */
#if LANES == 16
enum { DOT_ROWS = 5, DOT_TAPS = 5 };
#else
enum { DOT_ROWS = 3, DOT_TAPS = 3 };
#endif

static void pulls_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Convolution *it = work;
    const Windows *how = it->how;
    (void)share;
    ptrdiff_t run = up(it->positions, LANES), area = how->out_height * how->out_width;
    for (ptrdiff_t i = begin; i < end; i++) {
        const float *from = it->pull + (it->first * how->out_channels + i) * area;
        float *to = it->pulls + i * run;
        memset(to, 0, sizeof(float) * (size_t)run);
        for (ptrdiff_t y = 0; y < how->out_height; y++)
            memcpy(to + y * it->wide, from + y * how->out_width, sizeof(float) * (size_t)how->out_width);
    }
}

INLINE void dots(float *made, ptrdiff_t step, const float *pulls, ptrdiff_t run, const float *planes,
                 const ptrdiff_t *offsets, int rows, int taps) {
    V sum[DOT_ROWS][DOT_TAPS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int k = 0; k < taps; k++) sum[i][k] = splat(0.0f);
    for (ptrdiff_t j = 0; j < run; j += LANES) {
        V right[DOT_TAPS];
#pragma GCC unroll 8
        for (int k = 0; k < taps; k++) right[k] = load(planes + offsets[k] + j);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            V left = load(pulls + i * run + j);
#pragma GCC unroll 8
            for (int k = 0; k < taps; k++) sum[i][k] += left * right[k];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int k = 0; k < taps; k++) made[i * step + k] += total(sum[i][k]);
}

/* Items are blocks of output channels; each goes through all images in hand. */
static void dots_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Convolution *it = work;
    const Windows *how = it->how;
    (void)share;
    ptrdiff_t outs = how->out_channels / how->groups, blocks = (outs + DOT_ROWS - 1) / DOT_ROWS;
    ptrdiff_t group_planes = it->image / how->groups, run = up(it->positions, LANES);
    for (ptrdiff_t image = 0; image < it->some; image++)
        for (ptrdiff_t i = begin; i < end; i++) {
            ptrdiff_t group = i / blocks, r = i % blocks * DOT_ROWS, rows = least(DOT_ROWS, outs - r);
            const float *planes = it->planes + image * it->image + group * group_planes;
            const float *pulls = it->pulls + (image * how->out_channels + group * outs + r) * run;
            float *made = it->made + (group * outs + r) * it->taps;
            ptrdiff_t k = 0;
            for (; rows == DOT_ROWS && k + DOT_TAPS <= it->taps; k += DOT_TAPS)
                dots(made + k, it->taps, pulls, run, planes, it->offsets + k, DOT_ROWS, DOT_TAPS);
            for (; k < it->taps; k++)
                for (ptrdiff_t j = 0; j < rows; j++)
                    dots(made + j * it->taps + k, it->taps, pulls + j * run, run, planes, it->offsets + k, 1, 1);
        }
}

static int convolve_back(const Windows *how, float *made, const float *pull, const float *given) {
    Convolution it = {.how = how, .given = given, .pull = pull, .made = made};
    ptrdiff_t outs = how->out_channels / how->groups, blocks = how->groups * ((outs + DOT_ROWS - 1) / DOT_ROWS);
    if (prepare(&it, 0)) return NO_MEMORY;
    ptrdiff_t run = up(it.positions, LANES), block = it.some;
    it.pulls = malloc(sizeof(float) * (size_t)(block * how->out_channels * run) + 1);
    if (!it.pulls) return free(it.planes), NO_MEMORY;
    memset(made, 0, sizeof(float) * (size_t)(how->out_channels * it.taps));
    double each = (double)DOT_ROWS * (double)it.taps * (double)run * (double)block;
    for (; it.first < how->images; it.first += block) {
        it.some = least(block, how->images - it.first);
        pool_run(planes_share, &it, it.some * how->channels, 1 + SHARE / (how->height * how->width + 1));
        pool_run(pulls_share, &it, it.some * how->out_channels, 1 + SHARE / (run + 1));
        pool_run(dots_share, &it, blocks, 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / (each + 1)));
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
enum { COLUMNS_BELOW = 24 }; /* positions in a row */

static void columns_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Columns *it = work;
    const Windows *how = it->how;
    (void)share;
    ptrdiff_t size = how->kernel[0] * how->kernel[1], area = how->out_height * how->out_width, across = how->stride[1];
    for (ptrdiff_t row = begin; row < end; row++) {
        ptrdiff_t channel = row / size, tap = row % size;
        ptrdiff_t down = tap / how->kernel[1] * how->dilation[0] - how->padding[0];
        ptrdiff_t right = tap % how->kernel[1] * how->dilation[1] - how->padding[1];
        /* Positions from `from` up to `until` see the image, the others its padding. */
        ptrdiff_t from = right < 0 ? least((-right + across - 1) / across, how->out_width) : 0;
        ptrdiff_t until = how->width > right ? least((how->width - right + across - 1) / across, how->out_width) : 0;
        if (until < from) until = from;
        for (ptrdiff_t image = 0; image < it->some; image++) {
            const float *source = it->given + ((it->first + image) * how->channels + channel) * how->height * how->width;
            float *to = it->columns + (row * it->some + image) * area;
            for (ptrdiff_t y = 0; y < how->out_height; y++, to += how->out_width) {
                ptrdiff_t line = y * how->stride[0] + down;
                if (line < 0 || line >= how->height) {
                    memset(to, 0, sizeof(float) * (size_t)how->out_width);
                    continue;
                }
                const float *seen = source + line * how->width + right;
                for (ptrdiff_t x = 0; x < from; x++) to[x] = 0.0f;
                if (across == 1) for (ptrdiff_t x = from; x < until; x++) to[x] = seen[x];
                else for (ptrdiff_t x = from; x < until; x++) to[x] = seen[x * across];
                for (ptrdiff_t x = until; x < how->out_width; x++) to[x] = 0.0f;
            }
        }
    }
}

/* Gradients of some images as `(channel, image, position)`. */
static void grouped_pulls_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Columns *it = work;
    const Windows *how = it->how;
    (void)share;
    size_t area = (size_t)(how->out_height * how->out_width);
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t image = i / how->out_channels, channel = i % how->out_channels;
        memcpy(it->made + (size_t)(channel * it->some + image) * area,
               it->given + (size_t)((it->first + image) * how->out_channels + channel) * area, sizeof(float) * area);
    }
}

INLINE ptrdiff_t images_at_once(const Windows *how) {
    ptrdiff_t one = how->channels * how->kernel[0] * how->kernel[1] * how->out_height * how->out_width;
    ptrdiff_t some = COLUMN_NUMBERS / (one + 1);
    return some < 1 ? 1 : least(some, how->images);
}

/* Panels of window contents: WIDE positions, of one image or several, with all the taps that they see, are brought
   together from the planes and multiplied with all output channels. */
typedef struct {
    Convolution base;
    ptrdiff_t area;
    float *room;
    size_t room_each;
    const float *limit; /* the end of the planes */
} Gathered;

enum { TAPS = 384 }; /* of a panel: it stays in the second cache */

/* Consecutive positions in a plane, and where they go in a tile. */
typedef struct {
    ptrdiff_t from, count;
} Run;

INLINE int runs_of(const Gathered *it, ptrdiff_t position, ptrdiff_t count, Run *runs) {
    const Windows *how = it->base.how;
    int made = 0;
    while (count) {
        ptrdiff_t image = position / it->area, place = position % it->area;
        ptrdiff_t y = place / how->out_width, x = place % how->out_width, here = least(count, how->out_width - x);
        ptrdiff_t from = image * it->base.image + y * it->base.wide + x;
        if (made && runs[made - 1].from + runs[made - 1].count == from) runs[made - 1].count += here;
        else runs[made++] = (Run){from, here};
        position += here;
        count -= here;
    }
    return made;
}

static void gathered_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Gathered *it = work;
    const Convolution *base = &it->base;
    const Windows *how = base->how;
    ptrdiff_t outs = how->out_channels / how->groups, positions = base->some * it->area;
    ptrdiff_t tiles = (positions + WIDE - 1) / WIDE, group_planes = base->image / how->groups;
    float *panel = it->room + (size_t)share * it->room_each, *results = panel + TAPS * WIDE + 2 * WIDE;
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t group = i / tiles, position = i % tiles * WIDE, count = least(WIDE, positions - position);
        Run runs[WIDE];
        int parts = runs_of(it, position, count, runs);
        const float *planes = base->planes + group * group_planes;
        const float *left = base->panels + group * up(outs, TALL) * base->taps;
        for (ptrdiff_t k = 0; k < base->taps; k += TAPS) {
            ptrdiff_t taps = least(TAPS, base->taps - k);
            for (ptrdiff_t tap = 0; tap < taps; tap++) {
                const float *seen = planes + base->offsets[k + tap];
                float *to = panel + tap * WIDE;
                for (int r = 0; r < parts; r++) {
                    const float *from = seen + runs[r].from;
                    ptrdiff_t length = runs[r].count;
                    /* Whole vectors, of which the next run or row overwrites what is too much. */
                    if (from + up(length, LANES) <= it->limit)
                        for (ptrdiff_t j = 0; j < length; j += LANES) store(to + j, load(from + j));
                    else
                        for (ptrdiff_t j = 0; j < length; j++) to[j] = from[j];
                    to += length;
                }
                for (float *stop = panel + (tap + 1) * WIDE; to < stop;) *to++ = 0.0f;
            }
            multiply_panels(results, WIDE, left + up(outs, TALL) * k, panel, outs, count, taps, NULL, k > 0);
        }
        for (ptrdiff_t channel = 0; channel < outs; channel++) {
            const float *from = results + channel * WIDE;
            float shift = base->bias ? base->bias[group * outs + channel] : 0.0f;
            for (ptrdiff_t done = 0; done < count;) {
                ptrdiff_t image = (position + done) / it->area, place = (position + done) % it->area;
                ptrdiff_t here = least(count - done, it->area - place);
                float *to = base->made + ((base->first + image) * how->out_channels + group * outs + channel) * it->area;
                for (ptrdiff_t j = 0; j < here; j++) to[place + j] = from[done + j] + shift;
                done += here;
            }
        }
    }
}

static int convolve_gathered(const Windows *how, float *made, const float *given, const float *weight,
                             const float *bias) {
    ptrdiff_t outs = how->out_channels / how->groups, tall = up(outs, TALL);
    Gathered it = {.base = {.how = how, .given = given, .weight = weight, .bias = bias, .made = made},
                   .area = how->out_height * how->out_width,
                   .room_each = (size_t)(TAPS * WIDE + 2 * WIDE + tall * WIDE)};
    Convolution *base = &it.base;
    if (prepare(base, (size_t)(how->groups * tall * how->channels / how->groups * how->kernel[0] * how->kernel[1])))
        return NO_MEMORY;
    /* A panel of a block of taps follows that of the block before it. */
    for (ptrdiff_t group = 0; group < how->groups; group++)
        for (ptrdiff_t k = 0; k < base->taps; k += TAPS)
            pack_left(base->panels + group * tall * base->taps + tall * k,
                      (Matrix){(float *)weight + group * outs * base->taps + k, base->taps, 1}, outs,
                      least(TAPS, base->taps - k));
    double each = (double)outs * (double)base->taps * WIDE;
    ptrdiff_t fewest = 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / (each + 1)), block = base->some;
    ptrdiff_t tiles = how->groups * ((block * it.area + WIDE - 1) / WIDE);
    it.room = malloc(sizeof(float) * it.room_each * (size_t)pool_shares(tiles, fewest) + 1);
    if (!it.room) return free(base->planes), NO_MEMORY;
    it.limit = base->planes + block * base->image;
    for (; base->first < how->images; base->first += block) {
        base->some = least(block, how->images - base->first);
        pool_run(planes_share, base, base->some * how->channels, 1 + SHARE / (how->height * how->width + 1));
        pool_run(gathered_share, &it, how->groups * ((base->some * it.area + WIDE - 1) / WIDE), fewest);
    }
    free(it.room);
    free(base->planes);
    return 0;
}

static int convolve_back_columns(const Windows *how, float *made, const float *pull, const float *given) {
    ptrdiff_t area = how->out_height * how->out_width, outs = how->out_channels / how->groups;
    ptrdiff_t rows = how->channels * how->kernel[0] * how->kernel[1], taps = rows / how->groups;
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

/* Contents are brought together where much would be computed beyond the ends of rows, unless few channels use them. */
static int convolve_any(const Windows *how, float *made, const float *given, const float *weight, const float *bias) {
    ptrdiff_t wide = (how->width + 2 * how->padding[1] + how->stride[1] - 1) / how->stride[1];
    int in_place = how->out_channels / how->groups < 8 || 7 * wide <= 8 * how->out_width;
    return in_place ? convolve(how, made, given, weight, bias) : convolve_gathered(how, made, given, weight, bias);
}

static int convolve_back_any(const Windows *how, float *made, const float *pull, const float *given) {
    int large = how->out_width >= COLUMNS_BELOW && how->kernel[0] * how->kernel[1] > 1;
    int runs = how->out_channels / how->groups < 8 || large;
    return runs ? convolve_back(how, made, pull, given) : convolve_back_columns(how, made, pull, given);
}
