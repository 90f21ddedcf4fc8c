/* Matrix products. */
#include "kernels.h"

typedef float Lanes __attribute__((vector_size(32), aligned(4)));
enum { ROWS = 6, COLUMNS = 16, DEPTH = 256, BAND = 96 };

/* ROWS x COLUMNS of C from packed panels of A (ROWS wide) and B (COLUMNS wide). */
static void block(int64_t depth, const float *a, const float *b, float *c, int64_t ldc, int64_t rows, int64_t columns)
{
    Lanes sum[ROWS][2] = {0};
    for (int64_t k = 0; k < depth; k++, a += ROWS, b += COLUMNS) {
        Lanes left, right;
        memcpy(&left, b, sizeof left);
        memcpy(&right, b + 8, sizeof right);
#pragma GCC unroll 6
        for (int r = 0; r < ROWS; r++) {
            sum[r][0] += a[r] * left;
            sum[r][1] += a[r] * right;
        }
    }
    float made[ROWS][COLUMNS];
    memcpy(made, sum, sizeof made);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t n = 0; n < columns; n++) c[r * ldc + n] += made[r][n];
}

void gemm_float(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc, bool accumulate)
{
    if (!accumulate)
        for (int64_t r = 0; r < m; r++) memset(c + r * ldc, 0, (size_t)n * sizeof *c);
    if (m == 0 || n == 0 || k == 0) return;
    int64_t panels = (n + COLUMNS - 1) / COLUMNS;
    float *packed_b = malloc((size_t)(panels * COLUMNS * DEPTH) * sizeof *packed_b), *packed_a = malloc(BAND * DEPTH * sizeof *packed_a);
    if (!packed_b || !packed_a) die("the host has no memory for a kernel");
    for (int64_t k0 = 0; k0 < k; k0 += DEPTH) {
        int64_t depth = k - k0 < DEPTH ? k - k0 : DEPTH;
        for (int64_t p = 0; p < panels; p++)
            for (int64_t q = 0; q < depth; q++) {
                float *to = packed_b + (p * depth + q) * COLUMNS;
                const float *from = b + (k0 + q) * ldb + p * COLUMNS;
                int64_t width = n - p * COLUMNS < COLUMNS ? n - p * COLUMNS : COLUMNS;
                for (int64_t w = 0; w < COLUMNS; w++) to[w] = w < width ? from[w] : 0;
            }
        for (int64_t m0 = 0; m0 < m; m0 += BAND) {
            int64_t band = m - m0 < BAND ? m - m0 : BAND;
            for (int64_t r = 0; r < band; r += ROWS)
                for (int64_t q = 0; q < depth; q++)
                    for (int64_t w = 0; w < ROWS; w++)
                        packed_a[(r / ROWS * depth + q) * ROWS + w] = r + w < band ? a[(m0 + r + w) * lda + k0 + q] : 0;
            for (int64_t p = 0; p < panels; p++)
                for (int64_t r = 0; r < band; r += ROWS)
                    block(depth, packed_a + r / ROWS * depth * ROWS, packed_b + p * depth * COLUMNS, c + (m0 + r) * ldc + p * COLUMNS, ldc,
                          band - r < ROWS ? band - r : ROWS, n - p * COLUMNS < COLUMNS ? n - p * COLUMNS : COLUMNS);
        }
    }
    free(packed_b);
    free(packed_a);
}

static void gemm_double(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c)
{
    memset(c, 0, (size_t)(m * n) * sizeof *c);
    for (int64_t r = 0; r < m; r++)
        for (int64_t q = 0; q < k; q++)
            for (int64_t w = 0; w < n; w++) c[r * n + w] += a[r * k + q] * b[q * n + w];
}

static int product(Call *call, const Tensor *a, const Tensor *b, const Tensor *added, double beta, double alpha, const Tensor *out)
{
    const char *op = call->op->name;
    REQUIRE(is_floating(a->dtype) && is_floating(b->dtype) && is_floating(out->dtype), "aclnn%s: the tensors must be of floating types", op);
    REQUIRE(a->nd >= 1 && b->nd >= 1, "aclnn%s: a matrix has at least one dimension", op);
    int64_t m = a->nd > 1 ? a->dims[a->nd - 2] : 1, k = a->dims[a->nd - 1];
    int64_t n = b->nd > 1 ? b->dims[b->nd - 1] : 1, k_of_b = b->nd > 1 ? b->dims[b->nd - 2] : b->dims[0];
    REQUIRE(k == k_of_b, "aclnn%s: the inner dimensions %lld and %lld differ", op, (long long)k, (long long)k_of_b);
    int a_batch = a->nd > 2 ? a->nd - 2 : 0, b_batch = b->nd > 2 ? b->nd - 2 : 0, batch_nd = a_batch > b_batch ? a_batch : b_batch;
    int64_t expected[MAX_DIMS], batches = 1;
    for (int d = 0; d < batch_nd; d++) {
        int64_t x = d < batch_nd - a_batch ? 1 : a->dims[d - (batch_nd - a_batch)], y = d < batch_nd - b_batch ? 1 : b->dims[d - (batch_nd - b_batch)];
        REQUIRE(x == y || x == 1 || y == 1, "aclnn%s: the batch dimensions cannot be broadcast", op);
        expected[d] = x == 1 ? y : x;
        batches *= expected[d];
    }
    int nd = batch_nd;
    if (a->nd > 1) expected[nd++] = m;
    if (b->nd > 1) expected[nd++] = n;
    REQUIRE(nd == out->nd && !memcmp(expected, out->dims, (size_t)nd * sizeof *expected), "aclnn%s: the output's shape does not fit the product", op);
    REQUIRE(!added || broadcasts_to(added, out), "aclnn%s: the added tensor cannot be broadcast to the output", op);
    call->cube = true;
    call->operations = (uint64_t)(2 * batches * m * n * k);
    if (call->planning) return OK;

    Tensor left = *a, right = *b;
    if (a->nd == 1) left = (Tensor){.nd = 2, .dtype = a->dtype, .dims = {1, k}, .strides = {0, a->strides[0]}, .data = a->data};
    if (b->nd == 1) right = (Tensor){.nd = 2, .dtype = b->dtype, .dims = {k, 1}, .strides = {b->strides[0], 0}, .data = b->data};
    bool in_double = a->dtype == DT_DOUBLE || b->dtype == DT_DOUBLE;
    size_t size = in_double ? sizeof(double) : sizeof(float), count = (size_t)(batches * m * n);
    void *dense_a = in_double ? (void *)dense_double(&left) : (void *)dense_float(&left);
    void *dense_b = in_double ? (void *)dense_double(&right) : (void *)dense_float(&right);
    char *result = need_memory(count * size);
    for (int64_t batch = 0; batch < batches; batch++) {
        int64_t rest = batch, at_a = 0, at_b = 0, step_a = 1, step_b = 1;
        for (int d = batch_nd - 1; d >= 0; d--) {
            int64_t index = rest % expected[d];
            rest /= expected[d];
            int da = d - (batch_nd - a_batch), db = d - (batch_nd - b_batch);
            if (da >= 0) { if (a->dims[da] > 1) at_a += index * step_a; step_a *= a->dims[da]; }
            if (db >= 0) { if (b->dims[db] > 1) at_b += index * step_b; step_b *= b->dims[db]; }
        }
        if (in_double) gemm_double(m, n, k, (double *)dense_a + at_a * m * k, (double *)dense_b + at_b * k * n, (double *)(void *)result + batch * m * n);
        else gemm_float(m, n, k, (float *)dense_a + at_a * m * k, k, (float *)dense_b + at_b * k * n, n, (float *)(void *)result + batch * m * n, n, false);
    }
    Tensor made = view_dense(in_double ? DT_DOUBLE : DT_FLOAT, out->nd, out->dims, result);
    int code = OK;
    if (added && beta != 0) {
        const Tensor *terms[] = {added, &made};
        if (alpha != 1) code = apply_function(call, E_mul_scalar, &made, (const Tensor *[]){&made}, 1, alpha, 0);
        /* beta * added + made: added is read before out is written, they may be the same tensor */
        Tensor scaled = made;
        void *other = need_memory(count * size);
        scaled.data = scaled.address = other;
        if (code == OK) code = apply_function(call, E_mul_scalar, &scaled, terms, 1, beta, 0);
        terms[0] = &scaled;
        if (code == OK) code = apply_function(call, E_add, out, terms, 2, 1, 0);
        free(other);
    } else code = apply_function(call, E_mul_scalar, out, (const Tensor *[]){&made}, 1, alpha, 0);
    free(result);
    free(dense_a);
    free(dense_b);
    return code;
}

int matmul(Call *call)
{
    if (call->op->variant) REQUIRE(TENSOR(0)->nd == call->op->variant && TENSOR(1)->nd == call->op->variant, "aclnn%s: both matrices must have %d dimensions", call->op->name, call->op->variant);
    return product(call, TENSOR(0), TENSOR(1), NULL, 0, 1, TENSOR(2));
}

int mv(Call *call)
{
    REQUIRE(TENSOR(0)->nd == 2 && TENSOR(1)->nd == 1, "aclnnMv: needs a matrix and a vector");
    return product(call, TENSOR(0), TENSOR(1), NULL, 0, 1, TENSOR(2));
}

int addmm(Call *call) /* Addmm, Baddbmm, InplaceAddmm */
{
    int nd = call->op->variant;
    REQUIRE(TENSOR(1)->nd == nd && TENSOR(2)->nd == nd, "aclnn%s: both matrices must have %d dimensions", call->op->name, nd);
    const Tensor *out = call->args[5].kind == A_OUT ? TENSOR(5) : TENSOR(0);
    return product(call, TENSOR(1), TENSOR(2), TENSOR(0), SCALAR(3)->d, SCALAR(4)->d, out);
}
