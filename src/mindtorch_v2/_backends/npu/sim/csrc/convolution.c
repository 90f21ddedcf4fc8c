/* Convolutions of one to three spatial dimensions, as matrix products over unfolded patches. */
#include "kernels.h"

/* All shapes are brought to three spatial dimensions; missing ones have extent 1. */
typedef struct {
    int64_t batch, in_channels, out_channels, groups;
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    int64_t in_size, out_size, kernel_size;
} Geometry;

/* x: [batch, in_channels, in…]; weight: [out_channels, in_channels / groups, kernel…]; y: [batch, out_channels, out…] */
static int geometry(Call *call, const Tensor *x, const Tensor *weight, const Tensor *y, int first_ints, int64_t groups, Geometry *g)
{
    const char *op = call->op->name;
    int spatial = weight->nd - 2;
    REQUIRE(spatial >= 1 && spatial <= 3 && x->nd == weight->nd && y->nd == weight->nd, "aclnn%s: input, weight and output need 3 to 5 dimensions, all the same", op);
    *g = (Geometry){.batch = x->dims[0], .in_channels = x->dims[1], .out_channels = y->dims[1], .groups = groups,
                    .in = {1, 1, 1}, .out = {1, 1, 1}, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    REQUIRE(groups > 0 && g->in_channels % groups == 0 && g->out_channels % groups == 0, "aclnn%s: %lld groups do not divide the channels", op, (long long)groups);
    REQUIRE(weight->dims[0] == g->out_channels && weight->dims[1] * groups == g->in_channels && y->dims[0] == g->batch, "aclnn%s: the channels or batches of input, weight and output do not fit", op);
    for (int k = 0; k < 3; k++) {
        int dim = k - (3 - spatial);
        if (dim < 0) continue;
        g->in[k] = x->dims[dim + 2];
        g->out[k] = y->dims[dim + 2];
        g->kernel[k] = weight->dims[dim + 2];
        for (int what = 0; what < 3; what++) {
            uint64_t size = INTS(first_ints + what)->size;
            REQUIRE(size == 1 || size == (uint64_t)spatial, "aclnn%s: %s has %llu entries for %d dimensions", op, call->args[first_ints + what].name, (unsigned long long)size, spatial);
            int64_t value = INTS(first_ints + what)->values[size == 1 ? 0 : dim];
            REQUIRE(value >= (what != 1), "aclnn%s: %s is out of range", op, call->args[first_ints + what].name);
            (what == 0 ? g->stride : what == 1 ? g->padding : g->dilation)[k] = value;
        }
    }
    g->in_size = g->in[0] * g->in[1] * g->in[2];
    g->out_size = g->out[0] * g->out[1] * g->out[2];
    g->kernel_size = g->kernel[0] * g->kernel[1] * g->kernel[2];
    call->cube = true;
    call->operations += (uint64_t)(2 * g->batch * g->out_channels * g->out_size * g->in_channels / groups * g->kernel_size);
    return OK;
}

/* Whether the sizes of both sides go together; `room` is the output padding of a transposed convolution, else NULL. */
static bool output_fits(const Geometry *g, const int64_t *room, uint64_t rooms, int spatial)
{
    for (int k = 0; k < 3; k++) {
        int64_t reach = g->dilation[k] * (g->kernel[k] - 1) + 1, dim = k - (3 - spatial);
        int64_t more = !room || dim < 0 ? 0 : room[rooms == 1 ? 0 : dim];
        if (room ? g->in[k] != (g->out[k] - 1) * g->stride[k] - 2 * g->padding[k] + reach + more
                 : g->out[k] != (g->in[k] + 2 * g->padding[k] - reach) / g->stride[k] + 1) return false;
    }
    return true;
}

/* patches[channel of the group * kernel_size, out_size] from or to one image of a group */
static void patches(const Geometry *g, float *image, float *columns, bool fold)
{
    int64_t channels = g->in_channels / g->groups;
    float *column = columns;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t kd = 0; kd < g->kernel[0]; kd++)
            for (int64_t kh = 0; kh < g->kernel[1]; kh++)
                for (int64_t kw = 0; kw < g->kernel[2]; kw++)
                    for (int64_t od = 0; od < g->out[0]; od++)
                        for (int64_t oh = 0; oh < g->out[1]; oh++) {
                            int64_t d = od * g->stride[0] - g->padding[0] + kd * g->dilation[0], h = oh * g->stride[1] - g->padding[1] + kh * g->dilation[1];
                            bool inside = d >= 0 && d < g->in[0] && h >= 0 && h < g->in[1];
                            float *row = inside ? image + ((c * g->in[0] + d) * g->in[1] + h) * g->in[2] : NULL;
                            int64_t w = -g->padding[2] + kw * g->dilation[2];
                            for (int64_t ow = 0; ow < g->out[2]; ow++, w += g->stride[2], column++) {
                                bool hits = inside && w >= 0 && w < g->in[2];
                                if (fold) { if (hits) row[w] += *column; }
                                else *column = hits ? row[w] : 0;
                            }
                        }
}

static float *transposed_copy(const float *from, int64_t rows, int64_t columns)
{
    float *to = need_memory((size_t)(rows * columns) * sizeof *to);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
    return to;
}

static void forward(const Geometry *g, float *x, const float *weight, float *y)
{
    int64_t depth = g->in_channels / g->groups * g->kernel_size, outs = g->out_channels / g->groups;
    float *columns = need_memory((size_t)(depth * g->out_size) * sizeof *columns);
    for (int64_t n = 0; n < g->batch; n++)
        for (int64_t group = 0; group < g->groups; group++) {
            patches(g, x + (n * g->in_channels + group * (g->in_channels / g->groups)) * g->in_size, columns, false);
            gemm_float(outs, g->out_size, depth, weight + group * outs * depth, depth, columns, g->out_size,
                       y + (n * g->out_channels + group * outs) * g->out_size, g->out_size, false);
        }
    free(columns);
}

static void to_input(const Geometry *g, const float *dy, const float *weight, float *dx) /* dx is zero */
{
    int64_t depth = g->in_channels / g->groups * g->kernel_size, outs = g->out_channels / g->groups;
    float *columns = need_memory((size_t)(depth * g->out_size) * sizeof *columns);
    for (int64_t group = 0; group < g->groups; group++) {
        float *turned = transposed_copy(weight + group * outs * depth, outs, depth);
        for (int64_t n = 0; n < g->batch; n++) {
            gemm_float(depth, g->out_size, outs, turned, outs, dy + (n * g->out_channels + group * outs) * g->out_size, g->out_size, columns, g->out_size, false);
            patches(g, dx + (n * g->in_channels + group * (g->in_channels / g->groups)) * g->in_size, columns, true);
        }
        free(turned);
    }
    free(columns);
}

static void to_weight(const Geometry *g, const float *dy, float *x, float *dw) /* dw is zero */
{
    int64_t depth = g->in_channels / g->groups * g->kernel_size, outs = g->out_channels / g->groups;
    float *columns = need_memory((size_t)(depth * g->out_size) * sizeof *columns);
    for (int64_t n = 0; n < g->batch; n++)
        for (int64_t group = 0; group < g->groups; group++) {
            patches(g, x + (n * g->in_channels + group * (g->in_channels / g->groups)) * g->in_size, columns, false);
            float *turned = transposed_copy(columns, depth, g->out_size);
            gemm_float(outs, depth, g->out_size, dy + (n * g->out_channels + group * outs) * g->out_size, g->out_size, turned, depth, dw + group * outs * depth, depth, true);
            free(turned);
        }
    free(columns);
}

static int check_types(Call *call, int first, int last)
{
    for (int k = first; k <= last; k++)
        REQUIRE(!PRESENT(k) || (is_floating(TENSOR(k)->dtype) && TENSOR(k)->dtype != DT_DOUBLE), "aclnn%s: %s is %s; FLOAT, FLOAT16 or BF16 is needed", call->op->name, call->args[k].name, dtype_name(TENSOR(k)->dtype));
    return OK;
}

int convolution(Call *call)
{
    const Tensor *input = TENSOR(0), *weight = TENSOR(1), *out = TENSOR(9);
    CHECK(check_types(call, 0, 2));
    Geometry g;
    bool transposed = INT(6);
    if (transposed) CHECK(geometry(call, out, weight, input, 3, INT(8), &g)); /* it is the gradient of a convolution from out to input */
    else CHECK(geometry(call, input, weight, out, 3, INT(8), &g));
    REQUIRE(output_fits(&g, transposed ? INTS(7)->values : NULL, INTS(7)->size, weight->nd - 2), "aclnnConvolution: the output does not have the size that stride, padding and dilation give");
    REQUIRE(!PRESENT(2) || numel(TENSOR(2)) == out->dims[1], "aclnnConvolution: bias does not have one element per output channel");
    if (call->planning) return OK;
    float *x = dense_float(input), *w = dense_float(weight), *y = need_memory((size_t)numel(out) * sizeof *y);
    if (transposed) to_input(&g, x, w, y);
    else forward(&g, x, w, y);
    if (PRESENT(2)) {
        float *bias = dense_float(TENSOR(2));
        int64_t size = extent_after(out, 1);
        for (int64_t k = 0; k < numel(out); k++) y[k] += bias[k / size % out->dims[1]];
        free(bias);
    }
    put_float(out, y);
    free(x), free(w), free(y);
    return OK;
}

int convolution_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *input = TENSOR(1), *weight = TENSOR(2);
    CHECK(check_types(call, 0, 2));
    Geometry g;
    bool transposed = INT(7);
    REQUIRE(call->args[10].bools.size == 3, "aclnnConvolutionBackward: outputMask has 3 entries");
    const bool *mask = call->args[10].bools.values;
    if (transposed) CHECK(geometry(call, grad, weight, input, 4, INT(9), &g));
    else CHECK(geometry(call, input, weight, grad, 4, INT(9), &g));
    REQUIRE(output_fits(&g, transposed ? INTS(8)->values : NULL, INTS(8)->size, weight->nd - 2), "aclnnConvolutionBackward: gradOutput does not have the size that stride, padding and dilation give");
    for (int k = 0; k < 3; k++) REQUIRE(!mask[k] || PRESENT(12 + k), "aclnnConvolutionBackward: %s is asked for and NULL", call->args[12 + k].name);
    REQUIRE(!mask[0] || same_shape(TENSOR(12), input), "aclnnConvolutionBackward: gradInput does not have the input's shape");
    REQUIRE(!mask[1] || same_shape(TENSOR(13), weight), "aclnnConvolutionBackward: gradWeight does not have the weight's shape");
    REQUIRE(!mask[2] || (PRESENT(3) && INTS(3)->size == 1 && INTS(3)->values[0] == grad->dims[1] && numel(TENSOR(14)) == grad->dims[1]), "aclnnConvolutionBackward: biasSizes must be [channels of gradOutput]");
    call->operations *= (uint64_t)(mask[0] + mask[1] ? mask[0] + mask[1] : 1);
    if (call->planning) return OK;
    float *dy = dense_float(grad), *x = dense_float(input), *w = dense_float(weight);
    if (mask[0]) {
        float *dx = need_memory((size_t)numel(input) * sizeof *dx);
        if (transposed) forward(&g, dy, w, dx);
        else to_input(&g, dy, w, dx);
        put_float(TENSOR(12), dx);
        free(dx);
    }
    if (mask[1]) {
        float *dw = need_memory((size_t)numel(weight) * sizeof *dw);
        if (transposed) to_weight(&g, x, dy, dw);
        else to_weight(&g, dy, x, dw);
        put_float(TENSOR(13), dw);
        free(dw);
    }
    if (mask[2]) {
        int64_t channels = grad->dims[1], size = extent_after(grad, 1);
        double *db = need_memory((size_t)channels * sizeof *db);
        for (int64_t k = 0; k < numel(grad); k++) db[k / size % channels] += dy[k];
        put_double(TENSOR(14), db);
        free(db);
    }
    free(dy), free(x), free(w);
    return OK;
}
