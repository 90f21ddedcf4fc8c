/* A matrix of float32 with rows and columns exchanged, in tiles that stay in the cache. Included once by each level. */

static void exchange(float *to, ptrdiff_t to_row, const float *from, ptrdiff_t from_row, ptrdiff_t rows,
                     ptrdiff_t columns) {
    enum { TILE = 32 };
    for (ptrdiff_t r = 0; r < rows; r += TILE)
        for (ptrdiff_t c = 0; c < columns; c += TILE) {
            ptrdiff_t last_row = rows - r < TILE ? rows : r + TILE, last = columns - c < TILE ? columns : c + TILE;
            ptrdiff_t i = r;
            for (; i + 4 <= last_row; i += 4) {
                ptrdiff_t j = c;
                for (; j + 4 <= last; j += 4) transpose(to + j * to_row + i, to_row, from + i * from_row + j, from_row);
                for (; j < last; j++)
                    for (int k = 0; k < 4; k++) to[j * to_row + i + k] = from[(i + k) * from_row + j];
            }
            for (; i < last_row; i++)
                for (ptrdiff_t j = c; j < last; j++) to[j * to_row + i] = from[i * from_row + j];
        }
}
