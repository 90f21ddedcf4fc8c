/* Products of matrices of float32: blocks of both factors are packed into panels that the innermost kernel reads in
   order, and TALL rows of 2 * LANES columns of the result are kept in registers. Included once by each level's file. */

#include <stdlib.h>

enum { WIDE = 2 * LANES };
enum { DEEP = 320 };                           /* inner elements of a block */
enum { HIGH = TALL * (96 / TALL) };            /* rows of a block: they fit into the second cache */
enum { BROAD = WIDE * (1024 / WIDE) };         /* columns of a block */

INLINE ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
INLINE ptrdiff_t up(ptrdiff_t count, ptrdiff_t unit) { return (count + unit - 1) / unit * unit; }

#include "thin.h"

/* `count` runs of memory, `step` apart, side by side in lines that are `pitch` numbers apart. */
INLINE void interleave(float *panel, ptrdiff_t pitch, const float *from, ptrdiff_t step, ptrdiff_t count,
                       ptrdiff_t length) {
    ptrdiff_t whole = length - length % 4, i = 0;
    for (; i + 4 <= count; i += 4) {
        const float *runs = from + i * step;
        for (ptrdiff_t k = 0; k < whole; k += 4) transpose(panel + k * pitch + i, pitch, runs + k, step);
        for (ptrdiff_t k = whole; k < length; k++)
            for (int j = 0; j < 4; j++) panel[k * pitch + i + j] = runs[j * step + k];
    }
    for (; i < count; i++)
        for (ptrdiff_t k = 0; k < length; k++) panel[k * pitch + i] = from[i * step + k];
}

/* TALL rows of `left` in a panel: for each inner element, the rows' elements. Missing rows are zero. */
static void pack_left(float *panel, Matrix left, ptrdiff_t rows, ptrdiff_t inner) {
    ptrdiff_t r = 0;
    if (left.row == 1 && left.column != 1) {
        /* All rows of an inner element at once: they lie next to each other. */
        r = rows - rows % TALL;
        for (ptrdiff_t k = 0; k < inner; k++)
            for (ptrdiff_t i = 0; i < r; i += TALL)
                memcpy(panel + i * inner + k * TALL, left.data + k * left.column + i, sizeof(float) * TALL);
        panel += r * inner;
    }
    for (; r < rows; r += TALL, panel += TALL * inner) {
        ptrdiff_t here = least(TALL, rows - r);
        const float *from = left.data + r * left.row;
        if (here < TALL) memset(panel, 0, sizeof(float) * TALL * (size_t)inner);
        if (left.column == 1) {
            interleave(panel, TALL, from, left.row, here, inner);
        } else {
            for (ptrdiff_t k = 0; k < inner; k++)
                for (ptrdiff_t i = 0; i < here; i++) panel[k * TALL + i] = from[i * left.row + k * left.column];
        }
    }
}

/* WIDE columns of `right` in a panel: for each inner element, the columns' elements. Missing columns are zero. */
static void pack_right(float *panel, Matrix right, ptrdiff_t columns, ptrdiff_t inner) {
    for (ptrdiff_t c = 0; c < columns; c += WIDE, panel += WIDE * inner) {
        ptrdiff_t here = least(WIDE, columns - c);
        const float *from = right.data + c * right.column;
        if (here < WIDE) memset(panel, 0, sizeof(float) * WIDE * (size_t)inner);
        if (right.column == 1 && here == WIDE) {
            for (ptrdiff_t k = 0; k < inner; k++) {
                store(panel + k * WIDE, load(from + k * right.row));
                store(panel + k * WIDE + LANES, load(from + k * right.row + LANES));
            }
        } else if (right.row == 1) {
            interleave(panel, WIDE, from, right.column, here, inner);
        } else {
            for (ptrdiff_t k = 0; k < inner; k++)
                for (ptrdiff_t j = 0; j < here; j++) panel[k * WIDE + j] = from[k * right.row + j * right.column];
        }
    }
}

/* A tile of some of a panel's rows and WIDE columns: `add` to what is there, or set it; `bias` is added if there is one.
   There is one for each number of rows: the last rows of a matrix cost what they are worth. */
#define TILE(ROWS)                                                                                                     \
    static void tile_##ROWS(float *made, ptrdiff_t step, const float *left, const float *right, ptrdiff_t inner,       \
                            const float *bias, int add) {                                                              \
        V sum[ROWS][2];                                                                                                \
        _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++) sum[i][0] = sum[i][1] = splat(0.0f);                   \
        for (ptrdiff_t k = 0; k < inner; k++) {                                                                        \
            V b0 = load(right), b1 = load(right + LANES);                                                              \
            _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++) {                                                  \
                V a = splat(left[i]);                                                                                  \
                sum[i][0] += a * b0;                                                                                   \
                sum[i][1] += a * b1;                                                                                   \
            }                                                                                                          \
            left += TALL;                                                                                              \
            right += WIDE;                                                                                             \
        }                                                                                                              \
        V c0 = splat(0.0f), c1 = c0;                                                                                   \
        if (bias) c0 = load(bias), c1 = load(bias + LANES);                                                            \
        _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++) {                                                      \
            float *to = made + i * step;                                                                               \
            V s0 = sum[i][0] + c0, s1 = sum[i][1] + c1;                                                                \
            if (add) s0 += load(to), s1 += load(to + LANES);                                                           \
            store(to, s0);                                                                                             \
            store(to + LANES, s1);                                                                                     \
        }                                                                                                              \
    }

typedef void (*Tile)(float *, ptrdiff_t, const float *, const float *, ptrdiff_t, const float *, int);
TILE(1) TILE(2) TILE(3) TILE(4)
#if TALL > 4
TILE(5) TILE(6)
#endif
#if TALL > 6
TILE(7) TILE(8)
#endif
#if TALL > 8
TILE(9) TILE(10) TILE(11) TILE(12)
#endif
static const Tile TILE_OF_ROWS[TALL + 1] = {
    NULL, tile_1, tile_2, tile_3, tile_4,
#if TALL > 4
    tile_5, tile_6,
#endif
#if TALL > 6
    tile_7, tile_8,
#endif
#if TALL > 8
    tile_9, tile_10, tile_11, tile_12,
#endif
};

/* The same with LANES columns, for the last columns of a matrix. */
static void tile_narrow(float *made, ptrdiff_t step, const float *left, const float *right, ptrdiff_t inner) {
    V sum[TALL];
#pragma GCC unroll 16
    for (int i = 0; i < TALL; i++) sum[i] = splat(0.0f);
    for (ptrdiff_t k = 0; k < inner; k++, left += TALL, right += WIDE) {
        V b = load(right);
#pragma GCC unroll 16
        for (int i = 0; i < TALL; i++) sum[i] += left[i] * b;
    }
#pragma GCC unroll 16
    for (int i = 0; i < TALL; i++) store(made + i * step, sum[i]);
}

/* Packed rows times packed columns. */
static void multiply_panels(float *made, ptrdiff_t step, const float *left, const float *right, ptrdiff_t rows,
                            ptrdiff_t columns, ptrdiff_t inner, const float *bias, int add) {
    for (ptrdiff_t c = 0; c < columns; c += WIDE) {
        ptrdiff_t across = least(WIDE, columns - c);
        float held[WIDE];
        const float *shift = bias ? bias + c : NULL;
        if (shift && across < WIDE) {
            memset(held, 0, sizeof held);
            memcpy(held, shift, sizeof(float) * (size_t)across);
            shift = held;
        }
        for (ptrdiff_t r = 0; r < rows; r += TALL) {
            ptrdiff_t down = least(TALL, rows - r);
            const float *a = left + r * inner, *b = right + c * inner;
            float *to = made + r * step + c;
            if (across == WIDE) {
                TILE_OF_ROWS[down](to, step, a, b, inner, shift, add);
                continue;
            }
            float tile[TALL * WIDE];
            if (across <= LANES && !shift && down > TALL / 2) tile_narrow(tile, WIDE, a, b, inner);
            else TILE_OF_ROWS[down](tile, WIDE, a, b, inner, shift, 0);
            for (ptrdiff_t i = 0; i < down; i++) {
                if (add) for (ptrdiff_t j = 0; j < across; j++) to[i * step + j] += tile[i * WIDE + j];
                else memcpy(to + i * step, tile + i * WIDE, sizeof(float) * (size_t)across);
            }
        }
    }
}

enum { AHEAD = 96 }; /* numbers */

/* TALL rows that are read where they lie, times a packed panel of which `vectors` times LANES columns count. */
INLINE void tile_direct(float *tile, const float *const *rows, const float *right, ptrdiff_t inner, int vectors) {
    V sum[TALL][2];
#pragma GCC unroll 16
    for (int i = 0; i < TALL; i++)
        for (int j = 0; j < vectors; j++) sum[i][j] = splat(0.0f);
    for (ptrdiff_t from = 0; from < inner; from += 16) {
        /* So many rows are more than a processor foresees. */
#pragma GCC unroll 16
        for (int i = 0; i < TALL; i++) __builtin_prefetch(rows[i] + from + AHEAD);
        for (ptrdiff_t k = from; k < least(from + 16, inner); k++, right += WIDE) {
            V b[2];
            for (int j = 0; j < vectors; j++) b[j] = load(right + j * LANES);
#pragma GCC unroll 16
            for (int i = 0; i < TALL; i++)
                for (int j = 0; j < vectors; j++) sum[i][j] += rows[i][k] * b[j];
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < TALL; i++)
        for (int j = 0; j < vectors; j++) store(tile + i * WIDE + j * LANES, sum[i][j]);
}
static void tile_direct_one(float *tile, const float *const *rows, const float *right, ptrdiff_t inner) {
    tile_direct(tile, rows, right, inner, 1);
}
static void tile_direct_two(float *tile, const float *const *rows, const float *right, ptrdiff_t inner) {
    tile_direct(tile, rows, right, inner, 2);
}

/* Rows that lie `row` apart times one packed panel: packing them takes longer than it saves. */
static void multiply_direct(float *made, ptrdiff_t step, const float *left, ptrdiff_t row, const float *right,
                            ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t inner, int add) {
    for (ptrdiff_t r = 0; r < rows; r += TALL) {
        const float *lines[TALL];
        float tile[TALL * WIDE];
        ptrdiff_t down = least(TALL, rows - r);
        for (ptrdiff_t i = 0; i < TALL; i++) lines[i] = left + (r + least(i, down - 1)) * row;
        (columns <= LANES ? tile_direct_one : tile_direct_two)(tile, lines, right, inner);
        for (ptrdiff_t i = 0; i < down; i++) {
            float *to = made + (r + i) * step;
            if (add) for (ptrdiff_t j = 0; j < columns; j++) to[j] += tile[i * WIDE + j];
            else memcpy(to, tile + i * WIDE, sizeof(float) * (size_t)columns);
        }
    }
}

/* Numbers of scratch memory that `multiply_here` needs. */
INLINE size_t multiply_room(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t inner) {
    return (size_t)(least(inner, DEEP) * (up(least(rows, HIGH), TALL) + up(least(columns, BROAD), WIDE)));
}

/* A product by the calling thread alone. */
static void multiply_here(float *made, ptrdiff_t step, Matrix left, Matrix right, ptrdiff_t rows, ptrdiff_t columns,
                          ptrdiff_t inner, const float *bias, int add, float *room) {
    if (!inner) {
        for (ptrdiff_t i = 0; i < rows && !add; i++)
            for (ptrdiff_t j = 0; j < columns; j++) made[i * step + j] = bias ? bias[j] : 0.0f;
        return;
    }
    float *panels = room, *others = room + least(inner, DEEP) * up(least(rows, HIGH), TALL);
    for (ptrdiff_t c = 0; c < columns; c += BROAD) {
        ptrdiff_t across = least(BROAD, columns - c);
        for (ptrdiff_t k = 0; k < inner; k += DEEP) {
            ptrdiff_t deep = least(DEEP, inner - k);
            Matrix part = {right.data + k * right.row + c * right.column, right.row, right.column};
            pack_right(others, part, across, deep);
            for (ptrdiff_t r = 0; r < rows; r += HIGH) {
                ptrdiff_t down = least(HIGH, rows - r);
                Matrix some = {left.data + r * left.row + k * left.column, left.row, left.column};
                pack_left(panels, some, down, deep);
                multiply_panels(made + r * step + c, step, panels, others, down, across, deep,
                                bias && !k ? bias + c : NULL, add || k);
            }
        }
    }
}

/* A product that several threads share: the result is cut into a grid, and whoever takes a cell packs what it needs. */
typedef struct {
    Matrix made, left, right;
    ptrdiff_t rows, columns, inner, down, across; /* `down` by `across` cells */
    const float *bias;
    int add;
    float *room; /* of each share */
    size_t room_each;
} Product;

/* Where part `which` of `parts` begins, in whole tiles. */
INLINE ptrdiff_t cut(ptrdiff_t count, ptrdiff_t unit, ptrdiff_t which, ptrdiff_t parts) {
    return least((count + unit - 1) / unit * which / parts * unit, count);
}

static void product_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Product *it = work;
    for (ptrdiff_t cell = begin; cell < end; cell++) {
        ptrdiff_t i = cell / it->across, j = cell % it->across;
        ptrdiff_t r = cut(it->rows, TALL, i, it->down), c = cut(it->columns, WIDE, j, it->across);
        Matrix left = {it->left.data + r * it->left.row, it->left.row, it->left.column};
        Matrix right = {it->right.data + c * it->right.column, it->right.row, it->right.column};
        multiply_here(it->made.data + r * it->made.row + c, it->made.row, left, right,
                      cut(it->rows, TALL, i + 1, it->down) - r, cut(it->columns, WIDE, j + 1, it->across) - c, it->inner,
                      it->bias ? it->bias + c : NULL, it->add, it->room + (size_t)share * it->room_each);
    }
}

/* Multiplications that make a second thread worth its while. */
static const double MANY_PRODUCTS = 400e3;
/* Multiplications that take as long as packing a number. */
enum { PACKING = 32 };

/* The grid of `cells` whose largest cell is done first, packing included. */
INLINE void choose_grid(Product *it, ptrdiff_t cells) {
    double best = 0.0;
    for (ptrdiff_t down = 1; down <= cells; down++) {
        if (cells % down) continue;
        ptrdiff_t across = cells / down;
        double high = (double)up((it->rows + down - 1) / down, TALL);
        double wide = (double)up((it->columns + across - 1) / across, WIDE);
        double cost = high * wide + PACKING * (high + wide);
        if (down == 1 || cost < best) best = cost, it->down = down, it->across = across;
    }
}

static int multiply(Matrix made, Matrix left, Matrix right, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t inner,
                    const float *bias, int add) {
    if (!rows || !columns) return 0;
    if (inner && (rows < FEW || columns < FEW || inner < FEW)) {
        int done = multiply_thin(made, left, right, rows, columns, inner, bias, add);
        if (done) return done < 0 ? done : 0;
    }
    double worth = (double)rows * (double)columns * (double)inner / (MANY_PRODUCTS / 2);
    ptrdiff_t threads = worth < 2 ? 1 : pool_threads();
    if (threads > 1 && worth < (double)threads) threads = (ptrdiff_t)worth;
    Product it = {made, left, right, rows, columns, inner, 1, 1, bias, add, NULL, 0};
    if (threads > 1) choose_grid(&it, threads);
    it.room_each = multiply_room(rows / it.down + TALL, columns / it.across + WIDE, inner);
    size_t room = it.room_each * (size_t)threads;
    float small[4096];
    it.room = room <= 4096 ? small : malloc(sizeof(float) * room);
    if (!it.room) return NO_MEMORY;
    pool_run(product_share, &it, threads, 1);
    if (it.room != small) free(it.room);
    return 0;
}

typedef struct {
    float *made;
    const float *left, *right;
    ptrdiff_t rows, columns, inner;
    const ptrdiff_t *steps;
    float *room; /* of each share */
    size_t room_each;
} Batch;

static void batch_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Batch *it = work;
    float *room = it->room + (size_t)share * it->room_each;
    for (ptrdiff_t i = begin; i < end; i++) {
        Matrix left = {(float *)it->left + i * it->steps[1], it->steps[3], it->steps[4]};
        Matrix right = {(float *)it->right + i * it->steps[2], it->steps[5], it->steps[6]};
        multiply_here(it->made + i * it->steps[0], it->columns, left, right, it->rows, it->columns, it->inner, NULL, 0,
                      room);
    }
}

/* Steps: of the batches of all three, then rows and columns of left and right. */
static int multiply_batch(float *made, const float *left, const float *right, ptrdiff_t count, ptrdiff_t rows,
                          ptrdiff_t columns, ptrdiff_t inner, const ptrdiff_t steps[7]) {
    double each = (double)rows * (double)columns * (double)inner;
    if (count < pool_threads() && each > MANY_PRODUCTS) {
        int failed = 0;
        for (ptrdiff_t i = 0; i < count && !failed; i++)
            failed = multiply((Matrix){made + i * steps[0], columns, 1},
                              (Matrix){(float *)left + i * steps[1], steps[3], steps[4]},
                              (Matrix){(float *)right + i * steps[2], steps[5], steps[6]}, rows, columns, inner, NULL,
                              0);
        return failed;
    }
    ptrdiff_t fewest = 1 + (ptrdiff_t)(MANY_PRODUCTS / 2 / (each + 1));
    Batch it = {made, left, right, rows, columns, inner, steps, NULL, multiply_room(rows, columns, inner)};
    it.room = malloc(sizeof(float) * it.room_each * (size_t)pool_shares(count, fewest) + 1);
    if (!it.room) return NO_MEMORY;
    pool_run(batch_share, &it, count, fewest);
    free(it.room);
    return 0;
}
