/* Matrices of float32 as products of an orthogonal and a triangular one, by reflections in blocks. Included once by each
   level's file.

   A reflection is I - tau v v^T with v[0] = 1. A block of them is I + V N V^T: V has their vectors in its columns, and
   N, upper triangular, is minus LAPACK's T. Signs are LAPACK's too. */

enum { REFLECTIONS = 32 }; /* of a block */

/* Make a panel's columns zero below its diagonal; the vectors go there, without their ones. */
static void reflect_panel(float *a, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t columns, float *tau) {
    for (ptrdiff_t k = 0; k < columns; k++) {
        float *pivot = a + k * step + k;
        double squares = 0.0, alpha = (double)*pivot;
        for (ptrdiff_t i = 1; i < rows - k; i++) squares += (double)pivot[i * step] * (double)pivot[i * step];
        tau[k] = 0.0f;
        if (squares == 0.0) continue;
        double beta = -copysign(sqrt(alpha * alpha + squares), alpha);
        tau[k] = (float)((beta - alpha) / beta);
        for (ptrdiff_t i = 1; i < rows - k; i++) pivot[i * step] = (float)((double)pivot[i * step] / (alpha - beta));
        *pivot = (float)beta;
        ptrdiff_t others = columns - k - 1;
        float along[REFLECTIONS];
        for (ptrdiff_t j = 0; j < others; j++) along[j] = pivot[1 + j];
        for (ptrdiff_t i = 1; i < rows - k; i++) {
            const float *row = pivot + i * step;
            for (ptrdiff_t j = 0; j < others; j++) along[j] += row[0] * row[1 + j];
        }
        for (ptrdiff_t j = 0; j < others; j++) along[j] *= tau[k], pivot[1 + j] -= along[j];
        for (ptrdiff_t i = 1; i < rows - k; i++) {
            float *row = pivot + i * step;
            for (ptrdiff_t j = 0; j < others; j++) row[1 + j] -= row[0] * along[j];
        }
    }
}

/* The vectors of a panel with their ones and zeros. */
static void reflection_vectors(float *v, const float *a, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t columns) {
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++) v[i * columns + j] = j < i ? a[i * step + j] : j == i ? 1.0f : 0.0f;
}

/* N of a block: column j is -tau[j] (e_j + N V^T v_j). */
static int reflection_block(float *n, float *products, const float *v, const float *tau, ptrdiff_t rows,
                            ptrdiff_t columns) {
    if (multiply((Matrix){products, columns, 1}, (Matrix){(float *)v, 1, columns}, (Matrix){(float *)v, columns, 1},
                 columns, columns, rows, NULL, 0))
        return NO_MEMORY;
    for (ptrdiff_t i = 0; i < columns * columns; i++) n[i] = 0.0f;
    for (ptrdiff_t j = 0; j < columns; j++) {
        for (ptrdiff_t i = 0; i < j; i++) {
            float sum = 0.0f;
            for (ptrdiff_t k = i; k < j; k++) sum += n[i * columns + k] * products[k * columns + j];
            n[i * columns + j] = -tau[j] * sum;
        }
        n[j * columns + j] = -tau[j];
    }
    return 0;
}

/* a += V (N or its transpose) V^T a, with room for two times `count` by `columns` numbers. */
static int reflect(float *a, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t columns, const float *v, Matrix n,
                   ptrdiff_t count, float *room) {
    float *along = room, *turned = room + count * columns;
    return multiply((Matrix){along, columns, 1}, (Matrix){(float *)v, 1, count}, (Matrix){a, step, 1}, count, columns,
                    rows, NULL, 0) ||
           multiply((Matrix){turned, columns, 1}, n, (Matrix){along, columns, 1}, count, columns, count, NULL, 0) ||
           multiply((Matrix){a, step, 1}, (Matrix){(float *)v, count, 1}, (Matrix){turned, columns, 1}, rows, columns,
                    count, NULL, 1) ? NO_MEMORY : 0;
}

/* `work` has the matrix and is used up; `q` has `q_columns`, or there is none; `r` has `r_rows`. */
static int orthogonal_triangular(float *work, float *q, float *r, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t q_columns,
                                 ptrdiff_t r_rows) {
    ptrdiff_t least_of = least(rows, columns), widest = q_columns > columns ? q_columns : columns, b = REFLECTIONS;
    ptrdiff_t blocks = (least_of + b - 1) / b;
    float *room = malloc(sizeof(float) * (size_t)(rows * b + (blocks + 1) * b * b + b + 2 * b * widest));
    if (!room) return NO_MEMORY;
    float *v = room, *all = v + rows * b, *products = all + blocks * b * b, *tau = products + b * b, *rest = tau + b;
    int failed = 0;
    for (ptrdiff_t block = 0; block < blocks && !failed; block++) {
        ptrdiff_t from = block * b, count = least(b, least_of - from), after = columns - from - count;
        float *corner = work + from * columns + from, *n = all + block * b * b;
        reflect_panel(corner, columns, rows - from, count, tau);
        reflection_vectors(v, corner, columns, rows - from, count);
        failed = reflection_block(n, products, v, tau, rows - from, count);
        if (after && !failed)
            failed = reflect(corner + count, columns, rows - from, after, v, (Matrix){n, 1, count}, count, rest);
    }
    for (ptrdiff_t i = 0; i < r_rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++) r[i * columns + j] = j < i ? 0.0f : work[i * columns + j];
    for (ptrdiff_t i = 0; q && i < rows; i++)
        for (ptrdiff_t j = 0; j < q_columns; j++) q[i * q_columns + j] = i == j;
    for (ptrdiff_t block = blocks - 1; q && block >= 0 && !failed; block--) {
        ptrdiff_t from = block * b, count = least(b, least_of - from);
        reflection_vectors(v, work + from * columns + from, columns, rows - from, count);
        failed = reflect(q + from * q_columns + from, q_columns, rows - from, q_columns - from, v,
                         (Matrix){all + block * b * b, count, 1}, count, rest);
    }
    free(room);
    return failed;
}
