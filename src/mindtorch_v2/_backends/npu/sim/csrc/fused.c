/* Fused operators: the AdamW step and attention. */
#include "kernels.h"

#include <math.h>

int adam_w(Call *call)
{
    const Tensor *var = TENSOR(0), *m = TENSOR(1), *v = TENSOR(2), *grad = TENSOR(4);
    double lr = DOUBLE(6), beta1 = DOUBLE(7), beta2 = DOUBLE(8), decay = DOUBLE(9), eps = DOUBLE(10);
    bool amsgrad = INT(11), maximize = INT(12);
    REQUIRE(same_shape(var, m) && same_shape(var, v) && same_shape(var, grad), "aclnnApplyAdamWV2: var, m, v and grad have different shapes");
    REQUIRE(numel(TENSOR(5)) == 1, "aclnnApplyAdamWV2: step has one element");
    REQUIRE(!amsgrad || (PRESENT(3) && same_shape(TENSOR(3), var)), "aclnnApplyAdamWV2: amsgrad needs maxGradNormRef in var's shape");
    call->operations = (uint64_t)numel(var) * 14;
    if (call->planning) return OK;
    double *p = dense_double(var), *first = dense_double(m), *second = dense_double(v), *g = dense_double(grad), *step = dense_double(TENSOR(5));
    double *largest = amsgrad ? dense_double(TENSOR(3)) : NULL;
    double correction1 = 1 - pow(beta1, step[0]), correction2 = 1 - pow(beta2, step[0]);
    for (int64_t k = 0, count = numel(var); k < count; k++) {
        double slope = maximize ? -g[k] : g[k];
        p[k] *= 1 - lr * decay;
        first[k] += (slope - first[k]) * (1 - beta1);
        second[k] = beta2 * second[k] + (1 - beta2) * slope * slope;
        double spread = second[k];
        if (amsgrad) spread = largest[k] = largest[k] > second[k] ? largest[k] : second[k];
        p[k] -= lr / correction1 * first[k] / (sqrt(spread / correction2) + eps);
    }
    put_double(var, p);
    put_double(m, first);
    put_double(v, second);
    if (amsgrad) put_double(TENSOR(3), largest);
    free(p), free(first), free(second), free(g), free(step), free(largest);
    return OK;
}

/* [batch, heads, sequence, width] views of the layouts */
static int as_heads(const Tensor *tensor, const char *layout, int64_t heads, Tensor *view)
{
    *view = *tensor;
    view->nd = 4;
    const int64_t *d = tensor->dims, *s = tensor->strides;
    int64_t dims[4], strides[4];
    if (!strcmp(layout, "BNSD") && tensor->nd == 4) memcpy(dims, d, sizeof dims), memcpy(strides, s, sizeof strides);
    else if (!strcmp(layout, "BSND") && tensor->nd == 4) {
        int64_t order[4] = {0, 2, 1, 3};
        for (int k = 0; k < 4; k++) dims[k] = d[order[k]], strides[k] = s[order[k]];
    } else if ((!strcmp(layout, "BSH") || !strcmp(layout, "SBH")) && tensor->nd == 3 && heads > 0 && d[2] % heads == 0) {
        int b = layout[0] == 'S';
        dims[0] = d[b], strides[0] = s[b];
        dims[1] = heads, strides[1] = d[2] / heads * s[2];
        dims[2] = d[1 - b], strides[2] = s[1 - b];
        dims[3] = d[2] / heads, strides[3] = s[2];
    } else REFUSE("aclnnFlashAttentionScore: layout \"%s\" does not fit a tensor of %d dimensions (BNSD, BSND, BSH and SBH are known)", layout, tensor->nd);
    memcpy(view->dims, dims, sizeof dims);
    memcpy(view->strides, strides, sizeof strides);
    return OK;
}

int flash_attention(Call *call)
{
    const char *layout = call->args[13].string;
    int64_t heads = INT(12), sparse = INT(15);
    Tensor q, k, v, out;
    CHECK(as_heads(TENSOR(0), layout, heads, &q));
    int64_t width = q.dims[3], kv_heads = layout[0] == 'B' && layout[1] != 'S' ? TENSOR(1)->dims[1]
        : TENSOR(1)->nd == 4 ? TENSOR(1)->dims[2] : width ? TENSOR(1)->dims[2] / width : 0;
    CHECK(as_heads(TENSOR(1), layout, kv_heads, &k));
    CHECK(as_heads(TENSOR(2), layout, kv_heads, &v));
    CHECK(as_heads(TENSOR(19), layout, heads, &out));
    int64_t batch = q.dims[0], rows = q.dims[2], columns = k.dims[2], wide = v.dims[3];
    REQUIRE(q.dims[1] == heads && kv_heads > 0 && heads % kv_heads == 0 && k.dims[0] == batch && v.dims[0] == batch && v.dims[2] == columns
                && k.dims[3] == width && v.dims[1] == kv_heads && out.dims[0] == batch && out.dims[1] == heads && out.dims[2] == rows && out.dims[3] == wide,
            "aclnnFlashAttentionScore: query, key, value and attentionOut do not fit together");
    REQUIRE(!PRESENT(5) && !PRESENT(7), "aclnnFlashAttentionScore: the simulator knows neither paddingMask nor prefix");
    REQUIRE(sparse >= 0 && sparse <= 3, "aclnnFlashAttentionScore: the simulator knows sparse modes 0 to 3, not %lld", (long long)sparse);
    int64_t shape[4] = {batch, heads, rows, columns};
    Tensor scores = {.nd = 4, .dims = {batch, heads, rows, columns}};
    REQUIRE(!PRESENT(3) || broadcasts_to(TENSOR(3), &scores), "aclnnFlashAttentionScore: realShift cannot be broadcast to the scores");
    REQUIRE(!PRESENT(6) || sparse >= 2 || broadcasts_to(TENSOR(6), &scores), "aclnnFlashAttentionScore: attenMask cannot be broadcast to the scores");
    REQUIRE(!PRESENT(4) || (TENSOR(4)->dtype == DT_UINT8 && is_contiguous(TENSOR(4)) && numel(TENSOR(4)) * 8 >= batch * heads * rows * columns), "aclnnFlashAttentionScore: dropMask must be a mask of bits");
    for (int at = 16; at < 18; at++) REQUIRE(!PRESENT(at) || numel(TENSOR(at)) == batch * heads * rows * 8, "aclnnFlashAttentionScore: %s has shape [B, N, S, 8]", call->args[at].name);
    call->cube = true;
    call->operations = (uint64_t)(2 * batch * heads * rows * columns * (width + wide));
    if (call->planning) return OK;
    float *qs = dense_float(&q), *ks = dense_float(&k), *vs = dense_float(&v), *made = need_memory((size_t)(batch * heads * rows * wide) * sizeof *made);
    double *shift = NULL, *masked = NULL, *tops = need_memory((size_t)(batch * heads * rows * 8) * 8), *sums = need_memory((size_t)(batch * heads * rows * 8) * 8);
    double *row = need_memory((size_t)columns * 8), scale = DOUBLE(8), keep = DOUBLE(9);
    if (PRESENT(3)) { Tensor view = view_expand(TENSOR(3), 4, shape); shift = dense_double(&view); }
    if (PRESENT(6) && sparse < 2) { Tensor view = view_expand(TENSOR(6), 4, shape); masked = dense_double(&view); }
    const uint8_t *drop = PRESENT(4) ? (const uint8_t *)TENSOR(4)->data : NULL;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t r = 0; r < rows; r++) {
                int64_t line = (b * heads + h) * rows + r, group = b * kv_heads + h / (heads / kv_heads);
                double top = -INFINITY, sum = 0;
                for (int64_t c = 0; c < columns; c++) {
                    double dot = 0;
                    for (int64_t w = 0; w < width; w++) dot += (double)qs[line * width + w] * ks[(group * columns + c) * width + w];
                    row[c] = scale * (dot + (shift ? shift[line * columns + c] : 0));
                    bool hidden = (masked && masked[line * columns + c] != 0) || (sparse == 2 && c > r) || (sparse == 3 && c > r + columns - rows);
                    if (hidden) row[c] = -INFINITY;
                    if (row[c] > top) top = row[c];
                }
                for (int64_t c = 0; c < columns; c++) sum += row[c] = top == -INFINITY ? 0 : exp(row[c] - top);
                for (int64_t w = 0; w < 8; w++) tops[line * 8 + w] = top, sums[line * 8 + w] = sum;
                for (int64_t w = 0; w < wide; w++) {
                    double mixed = 0;
                    for (int64_t c = 0; c < columns; c++) {
                        int64_t bit = line * columns + c;
                        double share = !drop ? 1 : drop[bit / 8] >> bit % 8 & 1 ? 1 / keep : 0;
                        if (share != 0) mixed += row[c] * share * vs[(group * columns + c) * wide + w];
                    }
                    made[line * wide + w] = (float)(sum > 0 ? mixed / sum : 0);
                }
            }
    put_float(&out, made);
    if (PRESENT(16)) put_double(TENSOR(16), tops);
    if (PRESENT(17)) put_double(TENSOR(17), sums);
    free(qs), free(ks), free(vs), free(made), free(shift), free(masked), free(tops), free(sums), free(row);
    return OK;
}
