/* Pooling over planes: all leading dimensions count as planes, the last two are height and width. */
#include "kernels.h"

#include <math.h>

typedef struct { int64_t planes, in[2], out[2], kernel[2], stride[2], padding[2], dilation[2]; bool ceil; } Window;

static int one_or_two(Call *call, int at, int64_t *values, const int64_t *otherwise)
{
    uint64_t size = at < 0 ? 0 : INTS(at)->size;
    REQUIRE(size <= 2 && (size || otherwise), "aclnn%s: %s needs one or two entries", call->op->name, at < 0 ? "an array" : call->args[at].name);
    for (int k = 0; k < 2; k++) values[k] = size == 0 ? otherwise[k] : INTS(at)->values[size == 1 ? 0 : k];
    return OK;
}

static int window(Call *call, const Tensor *in, const Tensor *out, int first_ints, bool dilated, bool ceil_mode, Window *w)
{
    static const int64_t ONES[2] = {1, 1};
    REQUIRE((in->nd == 3 || in->nd == 4) && out->nd == in->nd, "aclnn%s: needs tensors of 3 or 4 dimensions", call->op->name);
    *w = (Window){.planes = extent_before(in, in->nd - 2), .ceil = ceil_mode};
    CHECK(one_or_two(call, first_ints, w->kernel, NULL));
    CHECK(one_or_two(call, first_ints + 1, w->stride, w->kernel));
    CHECK(one_or_two(call, first_ints + 2, w->padding, NULL));
    CHECK(one_or_two(call, dilated ? first_ints + 3 : -1, w->dilation, ONES));
    bool fits = extent_before(out, out->nd - 2) == w->planes;
    for (int k = 0; k < 2; k++) {
        REQUIRE(w->kernel[k] > 0 && w->stride[k] > 0 && w->dilation[k] > 0 && w->padding[k] >= 0 && w->padding[k] * 2 <= w->kernel[k] * w->dilation[k],
                "aclnn%s: kernel, stride, padding or dilation is out of range", call->op->name);
        w->in[k] = in->dims[in->nd - 2 + k];
        w->out[k] = out->dims[out->nd - 2 + k];
        int64_t span = w->in[k] + 2 * w->padding[k] - w->dilation[k] * (w->kernel[k] - 1) - 1;
        int64_t expected = (span + (ceil_mode ? w->stride[k] - 1 : 0)) / w->stride[k] + 1;
        if (ceil_mode && (expected - 1) * w->stride[k] >= w->in[k] + w->padding[k]) expected--;
        fits = fits && span >= 0 && expected == w->out[k];
    }
    REQUIRE(fits, "aclnn%s: the output does not have the size that the window gives", call->op->name);
    call->operations = (uint64_t)(numel(out) * w->kernel[0] * w->kernel[1]);
    return OK;
}

static int64_t mask_row(const Window *w) { return ((w->out[0] * w->out[1] + 15) / 16 + 1) * 32; }

static int check_indices(Call *call, const Tensor *indices, const Tensor *out, const Window *w)
{
    if (!call->op->variant) {
        REQUIRE(same_shape(indices, out) && (indices->dtype == DT_INT32 || indices->dtype == DT_INT64), "aclnn%s: indices are INT32 in the shape of the output", call->op->name);
        return OK;
    }
    REQUIRE(indices->dtype == DT_INT8 && is_contiguous(indices) && numel(indices) == w->planes * w->kernel[0] * w->kernel[1] * mask_row(w),
            "aclnn%s: the mask is INT8 of shape [N, C, kH*kW, (ceil(Ho*Wo/16)+1)*32]", call->op->name);
    return OK;
}

int max_pool(Call *call) /* WithIndices, and WithMask with variant 1 */
{
    const Tensor *self = TENSOR(0), *out = TENSOR(6), *indices = TENSOR(7);
    Window w;
    CHECK(window(call, self, out, 1, true, INT(5), &w));
    CHECK(check_indices(call, indices, out, &w));
    if (call->planning) return OK;
    double *x = dense_double(self), *y = need_memory((size_t)numel(out) * 8);
    int64_t *where = need_memory((size_t)numel(out) * 8), size = w.out[0] * w.out[1];
    uint8_t *bits = (uint8_t *)indices->data;
    if (call->op->variant) memset(bits, 0, (size_t)numel(indices));
    for (int64_t p = 0; p < w.planes; p++)
        for (int64_t o = 0; o < size; o++) {
            double best = -INFINITY;
            int64_t found = -1, slot = 0;
            for (int64_t kh = 0; kh < w.kernel[0]; kh++)
                for (int64_t kw = 0; kw < w.kernel[1]; kw++) {
                    int64_t h = o / w.out[1] * w.stride[0] - w.padding[0] + kh * w.dilation[0], v = o % w.out[1] * w.stride[1] - w.padding[1] + kw * w.dilation[1];
                    if (h < 0 || h >= w.in[0] || v < 0 || v >= w.in[1]) continue;
                    double value = x[(p * w.in[0] + h) * w.in[1] + v];
                    if (found < 0 || value > best || value != value) { best = value; found = h * w.in[1] + v; slot = kh * w.kernel[1] + kw; }
                }
            y[p * size + o] = best;
            where[p * size + o] = found;
            if (call->op->variant) bits[(p * w.kernel[0] * w.kernel[1] + slot) * mask_row(&w) + o / 8] |= (uint8_t)(1u << o % 8);
        }
    put_double(out, y);
    if (!call->op->variant) put_int(indices, where);
    free(x), free(y), free(where);
    return OK;
}

int max_pool_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *self = TENSOR(1), *indices = TENSOR(2), *out = TENSOR(8);
    Window w;
    CHECK(window(call, self, grad, 3, true, INT(7), &w));
    CHECK(check_indices(call, indices, grad, &w));
    REQUIRE(same_shape(self, out), "aclnn%s: gradInput does not have self's shape", call->op->name);
    if (call->planning) return OK;
    double *g = dense_double(grad), *dx = need_memory((size_t)numel(out) * 8);
    int64_t *where = call->op->variant ? NULL : dense_int(indices), size = w.out[0] * w.out[1], plane = w.in[0] * w.in[1];
    const uint8_t *bits = (const uint8_t *)indices->data;
    int code = OK;
    for (int64_t p = 0; p < w.planes; p++)
        for (int64_t o = 0; o < size; o++) {
            int64_t at = where ? where[p * size + o] : -1;
            if (!where)
                for (int64_t slot = 0; slot < w.kernel[0] * w.kernel[1]; slot++)
                    if (bits[(p * w.kernel[0] * w.kernel[1] + slot) * mask_row(&w) + o / 8] >> o % 8 & 1)
                        at = (o / w.out[1] * w.stride[0] - w.padding[0] + slot / w.kernel[1] * w.dilation[0]) * w.in[1]
                            + o % w.out[1] * w.stride[1] - w.padding[1] + slot % w.kernel[1] * w.dilation[1];
            if (at < 0 || at >= plane) code = fail(E_AICORE, "aclnn%s: AI core exception: an index is outside the plane", call->op->name);
            else dx[p * plane + at] += g[p * size + o];
        }
    if (code == OK) put_double(out, dx);
    free(g), free(dx), free(where);
    return code;
}

static void average(const Window *w, double *in, double *out, bool backward, bool count_pad, int64_t divisor)
{
    for (int64_t p = 0; p < w->planes; p++)
        for (int64_t oh = 0; oh < w->out[0]; oh++)
            for (int64_t ow = 0; ow < w->out[1]; ow++) {
                int64_t h0 = oh * w->stride[0] - w->padding[0], w0 = ow * w->stride[1] - w->padding[1];
                int64_t h1 = h0 + w->kernel[0], w1 = w0 + w->kernel[1];
                if (h1 > w->in[0] + w->padding[0]) h1 = w->in[0] + w->padding[0];
                if (w1 > w->in[1] + w->padding[1]) w1 = w->in[1] + w->padding[1];
                int64_t padded = (h1 - h0) * (w1 - w0);
                if (h0 < 0) h0 = 0;
                if (w0 < 0) w0 = 0;
                if (h1 > w->in[0]) h1 = w->in[0];
                if (w1 > w->in[1]) w1 = w->in[1];
                double count = (double)(divisor ? divisor : count_pad ? padded : (h1 - h0) * (w1 - w0)), sum = 0;
                double *result = out + (p * w->out[0] + oh) * w->out[1] + ow;
                for (int64_t h = h0; h < h1; h++)
                    for (int64_t v = w0; v < w1; v++) {
                        double *element = in + (p * w->in[0] + h) * w->in[1] + v;
                        if (backward) *element += *result / count;
                        else sum += *element;
                    }
                if (!backward) *result = h1 > h0 && w1 > w0 ? sum / count : 0;
            }
}

int avg_pool(Call *call)
{
    const Tensor *self = TENSOR(0), *out = TENSOR(8);
    Window w;
    CHECK(window(call, self, out, 1, false, INT(4), &w));
    if (call->planning) return OK;
    double *x = dense_double(self), *y = need_memory((size_t)numel(out) * 8);
    average(&w, x, y, false, INT(5), INT(6));
    put_double(out, y);
    free(x), free(y);
    return OK;
}

int avg_pool_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *self = TENSOR(1), *out = TENSOR(9);
    Window w;
    CHECK(window(call, self, grad, 2, false, INT(5), &w));
    REQUIRE(same_shape(self, out), "aclnnAvgPool2dBackward: gradInput does not have self's shape");
    if (call->planning) return OK;
    double *g = dense_double(grad), *dx = need_memory((size_t)numel(out) * 8);
    average(&w, dx, g, true, INT(6), INT(7));
    put_double(out, dx);
    free(g), free(dx);
    return OK;
}

static void adaptive(const Tensor *big, const Tensor *small, double *in, double *out, bool backward)
{
    int64_t planes = extent_before(big, big->nd - 2), ih = big->dims[big->nd - 2], iw = big->dims[big->nd - 1];
    int64_t oh = small->dims[small->nd - 2], ow = small->dims[small->nd - 1];
    for (int64_t p = 0; p < planes; p++)
        for (int64_t a = 0; a < oh; a++)
            for (int64_t b = 0; b < ow; b++) {
                int64_t h0 = a * ih / oh, h1 = ((a + 1) * ih + oh - 1) / oh, w0 = b * iw / ow, w1 = ((b + 1) * iw + ow - 1) / ow;
                double *result = out + (p * oh + a) * ow + b, sum = 0, count = (double)((h1 - h0) * (w1 - w0));
                for (int64_t h = h0; h < h1; h++)
                    for (int64_t v = w0; v < w1; v++) {
                        double *element = in + (p * ih + h) * iw + v;
                        if (backward) *element += *result / count;
                        else sum += *element;
                    }
                if (!backward) *result = sum / count;
            }
}

static int check_adaptive(Call *call, const Tensor *big, const Tensor *small)
{
    REQUIRE((big->nd == 3 || big->nd == 4) && small->nd == big->nd && extent_before(big, big->nd - 2) == extent_before(small, small->nd - 2) && numel(big),
            "aclnn%s: the shapes do not fit", call->op->name);
    return OK;
}

int adaptive_pool(Call *call)
{
    const Tensor *self = TENSOR(0), *out = TENSOR(2);
    CHECK(check_adaptive(call, self, out));
    REQUIRE(INTS(1)->size == 2 && INTS(1)->values[0] == out->dims[out->nd - 2] && INTS(1)->values[1] == out->dims[out->nd - 1], "aclnnAdaptiveAvgPool2d: out does not have outputSize");
    if (call->planning) return OK;
    double *x = dense_double(self), *y = need_memory((size_t)numel(out) * 8);
    adaptive(self, out, x, y, false);
    put_double(out, y);
    free(x), free(y);
    return OK;
}

int adaptive_pool_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *self = TENSOR(1), *out = TENSOR(2);
    CHECK(check_adaptive(call, self, grad));
    REQUIRE(same_shape(self, out), "aclnnAdaptiveAvgPool2dBackward: out does not have self's shape");
    if (call->planning) return OK;
    double *g = dense_double(grad), *dx = need_memory((size_t)numel(out) * 8);
    adaptive(self, grad, dx, g, true);
    put_double(out, dx);
    free(g), free(dx);
    return OK;
}
