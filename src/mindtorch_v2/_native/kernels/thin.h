/* Products of float32 matrices of which one side is shorter than FEW: they are bound by reading or writing the larger
   matrix, so nothing is packed. Sums are added in an order that does not depend on threads. Included once by each
   level's file. */

enum { FEW = 4, LINES = 4 };

typedef struct {
    Matrix made, left, right;
    ptrdiff_t rows, columns, inner;
    const float *bias;
    int add;
} Thin;

/* What a row of the result begins with. */
INLINE void begin_row(const Thin *it, ptrdiff_t i, ptrdiff_t from, ptrdiff_t until) {
    float *to = it->made.data + i * it->made.row;
    for (ptrdiff_t j = from; j < until; j++) to[j] = (it->add ? to[j] : 0.0f) + (it->bias ? it->bias[j] : 0.0f);
}

/* to += a[0] x[0] + … of LINES lines. */
INLINE void add_lines(float *to, const float *const *x, const float *a, ptrdiff_t count) {
    ptrdiff_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        V sum = load(to + j);
#pragma GCC unroll 4
        for (int k = 0; k < LINES; k++) sum += load(x[k] + j) * a[k];
        store(to + j, sum);
    }
    for (; j < count; j++) {
        float sum = to[j];
        for (int k = 0; k < LINES; k++) sum += x[k][j] * a[k];
        to[j] = sum;
    }
}

/* Columns of the result whose elements of `right` lie side by side. */
static void thin_columns_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Thin *it = work;
    ptrdiff_t from = begin * LANES, until = least(end * LANES, it->columns);
    (void)share;
    for (ptrdiff_t i = 0; i < it->rows; i++) begin_row(it, i, from, until);
    for (ptrdiff_t k = 0; k < it->inner; k += LINES) {
        ptrdiff_t lines = least(LINES, it->inner - k);
        const float *x[LINES];
        for (ptrdiff_t l = 0; l < lines; l++) x[l] = it->right.data + (k + l) * it->right.row + from;
        for (ptrdiff_t i = 0; i < it->rows; i++) {
            const float *given = it->left.data + i * it->left.row + k * it->left.column;
            float *to = it->made.data + i * it->made.row + from;
            if (lines == LINES) {
                float a[LINES];
                for (ptrdiff_t l = 0; l < LINES; l++) a[l] = given[l * it->left.column];
                add_lines(to, x, a, until - from);
            } else {
                for (ptrdiff_t l = 0; l < lines; l++)
                    for (ptrdiff_t j = 0; j < until - from; j++) to[j] += x[l][j] * given[l * it->left.column];
            }
        }
    }
}

/* Columns of the result whose column of `right` is one run of memory, as rows of `left` are. */
static void thin_dots_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Thin *it = work;
    (void)share;
    for (ptrdiff_t j = begin; j < end; j++)
        for (ptrdiff_t i = 0; i < it->rows; i++) {
            const float *a = it->left.data + i * it->left.row, *b = it->right.data + j * it->right.column;
            float *to = it->made.data + i * it->made.row + j;
            V sum[4] = {{0}};
            ptrdiff_t k = 0;
            for (; k + 4 * LANES <= it->inner; k += 4 * LANES)
#pragma GCC unroll 4
                for (int l = 0; l < 4; l++) sum[l] += load(a + k + l * LANES) * load(b + k + l * LANES);
            float all = total((sum[0] + sum[1]) + (sum[2] + sum[3]));
            for (; k < it->inner; k++) all += a[k] * b[k];
            *to = (it->add ? *to : 0.0f) + all + (it->bias ? it->bias[j] : 0.0f);
        }
}

/* Rows of a result that is larger than what it is made of. */
static void thin_rows_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    const Thin *it = work;
    (void)share;
    for (ptrdiff_t i = begin; i < end; i++) {
        float *to = it->made.data + i * it->made.row, a[FEW] = {0};
        const float *x[FEW];
        for (ptrdiff_t k = 0; k < it->inner; k++) {
            x[k] = it->right.data + k * it->right.row;
            a[k] = it->left.data[i * it->left.row + k * it->left.column];
        }
        ptrdiff_t j = 0;
        for (; j + LANES <= it->columns; j += LANES) {
            V sum = load(x[0] + j) * a[0];
            for (ptrdiff_t k = 1; k < it->inner; k++) sum += load(x[k] + j) * a[k];
            if (it->bias) sum += load(it->bias + j);
            if (it->add) sum += load(to + j);
            store(to + j, sum);
        }
        for (; j < it->columns; j++) {
            float sum = x[0][j] * a[0];
            for (ptrdiff_t k = 1; k < it->inner; k++) sum += x[k][j] * a[k];
            to[j] = sum + (it->bias ? it->bias[j] : 0.0f) + (it->add ? to[j] : 0.0f);
        }
    }
}

/* 1 if this was such a product and is done, 0 if not, or NO_MEMORY. */
static int multiply_thin(Matrix made, Matrix left, Matrix right, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t inner,
                         const float *bias, int add) {
    Thin it = {made, left, right, rows, columns, inner, bias, add};
    if (rows < FEW && right.column == 1 && columns >= LANES) {
        pool_run(thin_columns_share, &it, (columns + LANES - 1) / LANES, 1 + SHARE / (inner * LANES + 1));
        return 1;
    }
    if (rows < FEW && right.row == 1 && left.column == 1 && inner >= LANES) {
        pool_run(thin_dots_share, &it, columns, 1 + SHARE / (inner + 1));
        return 1;
    }
    if (columns < FEW && rows >= FEW && rows >= LANES) {
        /* The transposed product has few rows. */
        float *turned = malloc(sizeof(float) * (size_t)(rows * columns));
        if (!turned) return NO_MEMORY;
        int done = multiply_thin((Matrix){turned, rows, 1}, (Matrix){right.data, right.column, right.row},
                                 (Matrix){left.data, left.column, left.row}, columns, rows, inner, NULL, 0);
        for (ptrdiff_t i = 0; i < rows && done > 0; i++)
            for (ptrdiff_t j = 0; j < columns; j++) {
                float *to = made.data + i * made.row + j;
                *to = (add ? *to : 0.0f) + turned[j * rows + i] + (bias ? bias[j] : 0.0f);
            }
        free(turned);
        return done;
    }
    if (inner < FEW && right.column == 1 && columns >= LANES) {
        pool_run(thin_rows_share, &it, rows, 1 + SHARE / (columns + 1));
        return 1;
    }
    return 0;
}
