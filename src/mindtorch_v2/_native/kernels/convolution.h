/* Convolution of images. Included once by each level's file.

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
        ptrdiff_t y = place / how->out_width, x = place % how->out_width, here = least(count, how->out_width - x);
        ptrdiff_t from = image * it->base.image + y * it->base.wide + x;
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
    ptrdiff_t outs = how->out_channels / how->groups, area = how->out_height * how->out_width;
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
        pool_run(planes_share, base, base->some * how->channels, 1 + SHARE / (how->height * how->width + 1));
        pool_run(joined_share, &it, how->groups * cells, fewest);
        if (block > 1 || bias)
            pool_run(results_share, &it, base->some * how->out_channels, 1 + SHARE / (area + 1));
    }
    free(it.room);
    free(base->planes);
    return 0;
}

/* Contents are brought together unless few channels use them. */
static int convolve_any(const Windows *how, float *made, const float *given, const float *weight, const float *bias) {
    int in_place = how->out_channels / how->groups < 8;
    return in_place ? convolve(how, made, given, weight, bias) : convolve_joined(how, made, given, weight, bias);
}
