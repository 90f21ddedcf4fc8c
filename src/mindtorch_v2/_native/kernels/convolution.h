/* Convolution of lines, images and volumes, which are all called images here. Included once by each level's file.

   Images are copied once, with their padding, into planes in which windows step by one: a stride of 2 gives 4 planes a
   channel of an image, of even and odd rows and columns; those of a volume are volumes. What one tap of a kernel sees at consecutive positions is then a run of
   memory, and a table of offsets, one for each channel and tap, is all that a product with the weights needs. Positions
   keep the pitch of the planes; those beyond the end of a row are computed and dropped. */

INLINE ptrdiff_t volume(const ptrdiff_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

/* Where tap `tap` of a kernel is in it. */
INLINE void place_of_tap(const Windows *how, ptrdiff_t tap, ptrdiff_t place[3]) {
    place[0] = tap / (how->kernel[1] * how->kernel[2]) * how->dilation[0];
    place[1] = tap / how->kernel[2] % how->kernel[1] * how->dilation[1];
    place[2] = tap % how->kernel[2] * how->dilation[2];
}

typedef struct {
    const Windows *how;
    const float *given, *weight, *bias, *pull;
    float *made;
    ptrdiff_t phases[3];           /* planes of a channel along each dimension: those that a kernel sees */
    ptrdiff_t high, wide, plane;   /* rows of a slice of a plane, numbers of a row, and of all of it */
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
    ptrdiff_t across = how->stride[2], phases = volume(it->phases), width = how->given[2], padding = how->padding[2];
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t image = i / how->channels, channel = i % how->channels;
        const float *source = it->given + ((it->first + image) * how->channels + channel) * volume(how->given);
        float *to = it->planes + image * it->image + channel * phases * it->plane;
        memset(to, 0, sizeof(float) * (size_t)(phases * it->plane));
        for (ptrdiff_t z = how->padding[0]; z < how->padding[0] + how->given[0]; z++)
            for (ptrdiff_t y = how->padding[1]; y < how->padding[1] + how->given[1]; y++, source += width) {
                if (z % how->stride[0] >= it->phases[0] || y % how->stride[1] >= it->phases[1]) continue;
                ptrdiff_t phase = (z % how->stride[0] * it->phases[1] + y % how->stride[1]) * it->phases[2];
                float *line = to + phase * it->plane + (z / how->stride[0] * it->high + y / how->stride[1]) * it->wide;
                if (across == 1) {
                    memcpy(line + padding, source, sizeof(float) * (size_t)width);
                    continue;
                }
                for (ptrdiff_t part = 0; part < it->phases[2]; part++) {
                    float *target = line + part * it->plane;
                    ptrdiff_t x = (part - padding % across + across) % across;
                    for (target += (x + padding) / across; x < width; x += across) *target++ = source[x];
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
    ptrdiff_t line = position / it->wide, x = position % it->wide, done = 0;
    ptrdiff_t z = line / it->high, y = line % it->high;
    while (done < WIDE && z < how->made[0]) {
        ptrdiff_t count = y < how->made[1] ? least(WIDE - done, how->made[2] - x) : 0;
        float *to = out + (z * how->made[1] + y) * how->made[2] + x;
        for (ptrdiff_t j = 0; j < count; j++) to[j] = row[done + j] + shift;
        done += it->wide - x;
        x = 0;
        if (++y == it->high) y = 0, z++;
    }
}

static void windows_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Convolution *it = work;
    const Windows *how = it->how;
    (void)share;
    ptrdiff_t outs = how->out_channels / how->groups, ins = how->channels / how->groups;
    ptrdiff_t tiles = (it->positions + WIDE - 1) / WIDE, area = volume(how->made);
    ptrdiff_t group_planes = ins * volume(it->phases) * it->plane;
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

/* Sizes of a plane, and the positions of an image at its pitch. */
INLINE ptrdiff_t pitched(const Windows *how, ptrdiff_t sizes[3]) {
    for (int i = 0; i < 3; i++)
        sizes[i] = (how->given[i] + 2 * how->padding[i] + how->stride[i] - 1) / how->stride[i];
    return ((how->made[0] - 1) * sizes[1] + how->made[1] - 1) * sizes[2] + how->made[2];
}

/* A distance of at least so many numbers, of an odd number of cache lines: with distances that are multiples of a large power
   of two, what many channels have at one position would push each other out of the cache. */
INLINE ptrdiff_t apart(ptrdiff_t count) { return (up(count, 16) / 16 | 1) * 16; }

/* Geometry, offsets and memory for planes; NO_MEMORY if there is none. */
static int prepare(Convolution *it, size_t more) {
    const Windows *how = it->how;
    ptrdiff_t sizes[3];
    for (int i = 0; i < 3; i++) it->phases[i] = least(how->stride[i], (how->kernel[i] - 1) * how->dilation[i] + 1);
    ptrdiff_t phases = volume(it->phases);
    it->positions = pitched(how, sizes);
    it->high = sizes[1], it->wide = sizes[2], it->plane = apart(volume(sizes));
    it->image = how->channels * phases * it->plane;
    ptrdiff_t ins = how->channels / how->groups, size = volume(how->kernel);
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
        ptrdiff_t at[3], phase = 0;
        place_of_tap(how, k % size, at);
        for (int i = 0; i < 3; i++) phase = phase * it->phases[i] + at[i] % how->stride[i], at[i] /= how->stride[i];
        it->offsets[k] = (k / size * phases + phase) * it->plane + (at[0] * it->high + at[1]) * it->wide + at[2];
    }
    return 0;
}

static int convolve(const Windows *how, float *made, const float *given, const float *weight, const float *bias) {
    ptrdiff_t outs = how->out_channels / how->groups;
    ptrdiff_t taps = how->channels / how->groups * volume(how->kernel);
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
        pool_run(planes_share, &it, it.some * how->channels, 1 + SHARE / (volume(how->given) + 1));
        pool_run(windows_share, &it, it.some * how->groups * it.pieces,
                 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / (each + 1)));
    }
    free(it.planes);
    return 0;
}

/* Panels of window contents: WIDE positions, of one image or several, with the taps that they see, are brought together
   from the planes and multiplied with the weights. Output channels and positions are cut into a grid; whoever takes a
   cell brings together what it needs: it would take longer to get it from another processor's cache. */
typedef struct {
    Convolution base;
    Product grid;
    ptrdiff_t area, tiles;
    float *results; /* `(output channel, image and position)` */
    float *room;    /* of each share */
} Joined;

enum { TILES = 12 };        /* that are brought together: they fit into the second cache */
enum { FEW_TILES = 2 };     /* weights are read where they lie */
enum { JOINED = 1 << 20 };  /* results of several images that are in memory together */

/* Consecutive positions in a plane, and where they go in a tile. */
typedef struct {
    ptrdiff_t from, count;
} Run;

INLINE int runs_of(const Joined *it, ptrdiff_t position, ptrdiff_t count, Run *runs) {
    const Windows *how = it->base.how;
    int made = 0;
    while (count) {
        ptrdiff_t image = position / it->area, place = position % it->area;
        ptrdiff_t line = place / how->made[2], x = place % how->made[2], here = least(count, how->made[2] - x);
        ptrdiff_t z = line / how->made[1], y = line % how->made[1];
        ptrdiff_t from = image * it->base.image + (z * it->base.high + y) * it->base.wide + x;
        if (made && runs[made - 1].from + runs[made - 1].count == from) runs[made - 1].count += here;
        else runs[made++] = (Run){from, here};
        position += here;
        count -= here;
    }
    return made;
}

/* What a tile sees through `deep` taps from `first` on. Whole vectors are copied, of which the next run or row overwrites
   what is too much; the last row is copied exactly. */
static void bring_together(const Joined *it, float *panel, ptrdiff_t group, ptrdiff_t tile, ptrdiff_t first,
                           ptrdiff_t deep) {
    const Convolution *base = &it->base;
    ptrdiff_t position = tile * WIDE;
    Run runs[WIDE];
    int parts = runs_of(it, position, least(WIDE, base->some * it->area - position), runs);
    const float *planes = base->planes + group * (base->image / base->how->groups);
    const float *limit = base->planes + base->some * base->image;
    for (ptrdiff_t k = 0; k < deep; k++) {
        const float *seen = planes + base->offsets[first + k];
        float *to = panel + k * WIDE;
        for (int r = 0; r < parts; r++) {
            const float *from = seen + runs[r].from;
            ptrdiff_t length = runs[r].count;
            if (k + 1 < deep && from + up(length, LANES) <= limit)
                for (ptrdiff_t j = 0; j < length; j += LANES) store(to + j, load(from + j));
            else
                for (ptrdiff_t j = 0; j < length; j++) to[j] = from[j];
            to += length;
        }
        for (float *stop = panel + (k + 1) * WIDE; to < stop;) *to++ = 0.0f;
    }
}

/* Output channels of a group from `first` to `last` at some tiles. */
static void joined_cell(const Joined *it, float *room, ptrdiff_t group, ptrdiff_t first, ptrdiff_t last, ptrdiff_t tile,
                        ptrdiff_t tiles) {
    ptrdiff_t positions = it->base.some * it->area, taps = it->base.taps, outs = it->grid.rows;
    float *packed = room, *contents = room + HIGH * DEEP;
    for (ptrdiff_t k = 0; k < taps; k += DEEP) {
        ptrdiff_t deep = least(DEEP, taps - k);
        for (ptrdiff_t t = 0; t < tiles; t++) bring_together(it, contents + t * deep * WIDE, group, tile + t, k, deep);
        for (ptrdiff_t r = first; r < last; r += HIGH) {
            ptrdiff_t down = least(HIGH, last - r), channel = group * outs + r;
            const float *weight = it->base.weight + channel * taps + k;
            float *made = it->results + channel * positions + tile * WIDE;
            ptrdiff_t columns = least(tiles * WIDE, positions - tile * WIDE);
            if (tiles > FEW_TILES) {
                pack_left(packed, (Matrix){(float *)weight, taps, 1}, down, deep);
                multiply_panels(made, positions, packed, contents, down, columns, deep, NULL, k > 0);
                continue;
            }
            for (ptrdiff_t t = 0; t < tiles; t++)
                multiply_direct(made + t * WIDE, positions, weight, taps, contents + t * deep * WIDE, down,
                                least(WIDE, columns - t * WIDE), deep, k > 0);
        }
    }
}

/* Items are cells, one grid a group. */
static void joined_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Joined *it = work;
    const Product *grid = &it->grid;
    float *room = it->room + (ptrdiff_t)share * DEEP * (HIGH + TILES * WIDE);
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t group = i / (grid->down * grid->across), cell = i % (grid->down * grid->across);
        ptrdiff_t row = cell / grid->across, column = cell % grid->across;
        ptrdiff_t until = it->tiles * (column + 1) / grid->across;
        for (ptrdiff_t t = it->tiles * column / grid->across; t < until; t += TILES)
            joined_cell(it, room, group, cut(grid->rows, TALL, row, grid->down),
                        cut(grid->rows, TALL, row + 1, grid->down), t, least(TILES, until - t));
    }
}

/* Results of several images go to their images, and the bias is added. */
static void results_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Joined *it = work;
    const Convolution *base = &it->base;
    (void)share;
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t image = i / base->how->out_channels, channel = i % base->how->out_channels;
        const float *from = it->results + (channel * base->some + image) * it->area;
        float *to = base->made + (base->first * base->how->out_channels + i) * it->area;
        float shift = base->bias ? base->bias[channel] : 0.0f;
        for (ptrdiff_t j = 0; j < it->area; j++) to[j] = from[j] + shift;
    }
}

static int convolve_joined(const Windows *how, float *made, const float *given, const float *weight,
                           const float *bias) {
    ptrdiff_t outs = how->out_channels / how->groups, area = volume(how->made);
    Joined it = {.base = {.how = how, .given = given, .weight = weight, .bias = bias, .made = made}, .area = area};
    Convolution *base = &it.base;
    if (prepare(base, 0)) return NO_MEMORY;
    ptrdiff_t block = least(base->some, JOINED / (how->out_channels * area + 1));
    if (block < 1) block = 1;
    it.grid.rows = outs, it.grid.columns = block * area, it.grid.down = it.grid.across = 1;
    ptrdiff_t cells = how->groups % pool_threads() ? pool_threads() : 1;
    if (cells > 1) choose_grid(&it.grid, cells);
    double each = (double)outs * (double)base->taps * (double)(block * area) / (double)cells;
    ptrdiff_t fewest = 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / (each + 1));
    size_t room = (size_t)(DEEP * (HIGH + TILES * WIDE)) * (size_t)pool_shares(how->groups * cells, fewest);
    size_t results = block > 1 ? (size_t)(how->out_channels * block * area) : 0;
    it.room = malloc(sizeof(float) * (room + results));
    if (!it.room) return free(base->planes), NO_MEMORY;
    for (; base->first < how->images; base->first += block) {
        base->some = least(block, how->images - base->first);
        it.tiles = (base->some * area + WIDE - 1) / WIDE;
        it.results = block > 1 ? it.room + room : made + base->first * how->out_channels * area;
        pool_run(planes_share, base, base->some * how->channels, 1 + SHARE / (volume(how->given) + 1));
        pool_run(joined_share, &it, how->groups * cells, fewest);
        if (block > 1 || bias)
            pool_run(results_share, &it, base->some * how->out_channels, 1 + SHARE / (area + 1));
    }
    free(it.room);
    free(base->planes);
    return 0;
}

/* How long a convolution takes, in products: in place, with what is between the rows of an image and the way from tiles
   to the result, or with the contents of windows brought together. Some rows of a tile may be idle, and one alone waits for its own sums. */
enum { TO_RESULT = 8, TOGETHER = 12, ALONE = 4 };

typedef struct {
    double in_place, joined;
} Costs;

static Costs costs_of(const Windows *how) {
    ptrdiff_t sizes[3], outs = how->out_channels / how->groups, rest = outs % TALL;
    double rows = (double)(outs - rest + (!rest ? 0 : rest == 1 ? ALONE : rest <= TALL / 2 ? TALL / 2 : TALL));
    double taps = (double)(how->channels / how->groups * volume(how->kernel)), all = (double)(how->images * how->groups);
    return (Costs){all * rows * (taps + TO_RESULT) * (double)up(pitched(how, sizes), WIDE),
                   all * (rows + TOGETHER) * taps * (double)volume(how->made)};
}

/* Kernels of one element are products of matrices, `(made, given)` by `(given, position)`, for each image. */
INLINE int are_points(const Windows *how) {
    return volume(how->kernel) == 1 && volume(how->stride) == 1 && !how->padding[0] && !how->padding[1] &&
           !how->padding[2] && (volume(how->made) >= 2 * WIDE || how->images == 1);
}

/* Distances of the weight's rows and columns as the product needs them. */
static int convolve_points(const Windows *how, float *made, const float *given, const float *weight, ptrdiff_t outs,
                           ptrdiff_t ins, ptrdiff_t row, ptrdiff_t column) {
    ptrdiff_t area = volume(how->made);
    const ptrdiff_t steps[7] = {how->groups * outs * area, 0, how->groups * ins * area, row, column, area, 1};
    int failed = 0;
    for (ptrdiff_t group = 0; group < how->groups && !failed; group++)
        failed = multiply_batch(made + group * outs * area, weight + group * outs * ins, given + group * ins * area,
                                how->images, outs, area, ins, steps);
    return failed;
}

static void add_bias(const Windows *how, float *made, const float *bias) {
    ptrdiff_t area = volume(how->made);
    for (ptrdiff_t i = 0; i < how->images * how->out_channels; i++)
        for (ptrdiff_t j = 0; j < area; j++) made[i * area + j] += bias[i % how->out_channels];
}

static int convolve_any(const Windows *how, float *made, const float *given, const float *weight, const float *bias) {
    if (are_points(how)) {
        ptrdiff_t outs = how->out_channels / how->groups, ins = how->channels / how->groups;
        int failed = convolve_points(how, made, given, weight, outs, ins, ins, 1);
        if (bias && !failed) add_bias(how, made, bias);
        return failed;
    }
    Costs costs = costs_of(how);
    return costs.in_place < costs.joined ? convolve(how, made, given, weight, bias)
                                         : convolve_joined(how, made, given, weight, bias);
}
