/* Memory in another order, and one element again and again: elements are 1, 2, 4 or 8 bytes. Included once by each level. */

/* to[j, i] = from[i, j] of a tile, rows at the given distances in bytes. */
#define EXCHANGED(TYPE)                                                                                                \
    for (ptrdiff_t i = 0; i < rows; i++)                                                                               \
        for (ptrdiff_t j = 0; j < columns; j++) *(TYPE *)(to + j * to_row + i * size) = ((const TYPE *)(from + i * from_row))[j]

static void exchange_tile(char *to, ptrdiff_t to_row, const char *from, ptrdiff_t from_row, ptrdiff_t rows,
                          ptrdiff_t columns, ptrdiff_t size) {
    if (size == 8) EXCHANGED(uint64_t);
    else if (size == 2) EXCHANGED(uint16_t);
    else if (size == 1) EXCHANGED(uint8_t);
    else {
        ptrdiff_t whole = rows / 4 * 4, fours = to_row % 4 || from_row % 4 ? 0 : columns / 4 * 4;
        for (ptrdiff_t i = 0; i < whole; i += 4)
            for (ptrdiff_t j = 0; j < fours; j += 4)
                transpose((float *)(to + j * to_row) + i, to_row / 4, (const float *)(from + i * from_row) + j, from_row / 4);
        for (ptrdiff_t i = 0; i < rows; i++)
            for (ptrdiff_t j = i < whole ? fours : 0; j < columns; j++)
                ((uint32_t *)(to + j * to_row))[i] = ((const uint32_t *)(from + i * from_row))[j];
    }
}

/* Rows whose distance is a multiple of this many bytes have few places in a processor's cache: lines of some of them push
   each other out before they are full. Tiles are put together elsewhere then. */
enum { CROWDED = 512, TILE_ROW = 256, TILE_ROW_APART = TILE_ROW + 64 };

static void exchange(char *to, ptrdiff_t to_row, const char *from, ptrdiff_t from_row, ptrdiff_t rows, ptrdiff_t columns,
                     ptrdiff_t size) {
    char made[TILE_ROW / 4 * TILE_ROW_APART] __attribute__((aligned(64)));
    ptrdiff_t crowded = to_row % CROWDED == 0, side = crowded ? least(TILE_ROW / size, TILE_ROW / 4) : 32;
    for (ptrdiff_t r = 0; r < rows; r += side)
        for (ptrdiff_t c = 0; c < columns; c += side) {
            ptrdiff_t tall = least(side, rows - r), wide = least(side, columns - c);
            const char *here = from + r * from_row + c * size;
            char *there = to + c * to_row + r * size;
            if (!crowded) {
                exchange_tile(there, to_row, here, from_row, tall, wide, size);
                continue;
            }
            exchange_tile(made, TILE_ROW_APART, here, from_row, tall, wide, size);
            for (ptrdiff_t j = 0; j < wide; j++)
                memcpy(there + j * to_row, made + j * TILE_ROW_APART, (size_t)(tall * size));
        }
}

/* to[i] = from[-i]: compilers do not turn such a loop into vectors by themselves. */
typedef uint8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLED(TYPE, V, ...) __builtin_shufflevector(V, V, __VA_ARGS__)
#else
#define SHUFFLED(TYPE, V, ...) __builtin_shuffle(V, (TYPE){__VA_ARGS__})
#endif
#if LANES == 16
#define TURN_FLOATS(X) SHUFFLED(I, X, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#elif LANES == 8
#define TURN_FLOATS(X) SHUFFLED(I, X, 7, 6, 5, 4, 3, 2, 1, 0)
#else
#define TURN_FLOATS(X) SHUFFLED(I, X, 3, 2, 1, 0)
#endif

#define BACKWARDS(TYPE, VECTOR, TURN)                                                                                  \
    do {                                                                                                               \
        enum { PER = sizeof(VECTOR) / sizeof(TYPE) };                                                                 \
        TYPE *made = (TYPE *)to;                                                                                       \
        const TYPE *given = (const TYPE *)from;                                                                        \
        ptrdiff_t i = 0;                                                                                               \
        for (; i + PER <= count; i += PER) *(VECTOR *)(made + i) = TURN(*(const VECTOR *)(given - i - (PER - 1)));   \
        for (; i < count; i++) made[i] = given[-i];                                                                    \
    } while (0)
#define TURN_BYTES(X) SHUFFLED(Bytes, X, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TURN_PAIRS(X) SHUFFLED(Bytes, X, 14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1)
#define TURN_EIGHTS(X) SHUFFLED(Bytes, X, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)

static void backwards(char *to, const char *from, ptrdiff_t count, ptrdiff_t size) {
    if (size == 4) BACKWARDS(float, V, TURN_FLOATS);
    else if (size == 8) BACKWARDS(uint64_t, Bytes, TURN_EIGHTS);
    else if (size == 2) BACKWARDS(uint16_t, Bytes, TURN_PAIRS);
    else BACKWARDS(uint8_t, Bytes, TURN_BYTES);
}

/* to[i] = *value, in aligned vectors if `to` is at a multiple of the size. */
static void repeat(char *to, const char *value, ptrdiff_t count, ptrdiff_t size) {
    enum { WIDE = 4 * LANES };
    typedef uint8_t Wide __attribute__((vector_size(4 * LANES), aligned(1), may_alias));
    char pattern[WIDE] __attribute__((aligned(WIDE)));
    ptrdiff_t bytes = count * size;
    for (ptrdiff_t i = 0; i < WIDE; i += size) memcpy(pattern + i, value, (size_t)size);
    if (bytes < WIDE) {
        memcpy(to, pattern, (size_t)bytes);
        return;
    }
    Wide all = *(const Wide *)pattern;
    *(Wide *)to = all;
    for (ptrdiff_t i = WIDE - (ptrdiff_t)((uintptr_t)to % WIDE) / size * size; i + WIDE <= bytes; i += WIDE)
        *(Wide *)(to + i) = all;
    *(Wide *)(to + bytes - WIDE) = all;
}
