/* Normalisation, forwards and backwards. Statistics are kept in double. */
#include "kernels.h"

#include <math.h>

static int rows_of(Call *call, const Tensor *input, int ints_at, int64_t *rows, int64_t *width)
{
    int nd = (int)INTS(ints_at)->size, first = input->nd - nd;
    bool fits = first >= 0 && nd > 0;
    *width = 1;
    for (int k = 0; fits && k < nd; k++) {
        fits = INTS(ints_at)->values[k] == input->dims[first + k];
        *width *= input->dims[first + k];
    }
    REQUIRE(fits, "aclnn%s: normalizedShape does not end the shape of the input", call->op->name);
    *rows = extent_before(input, first);
    return OK;
}

static double *dense_or(const Call *call, int at, int64_t count, double otherwise)
{
    if (PRESENT(at) && numel(&call->args[at].tensor) == count) return dense_double(&call->args[at].tensor);
    double *values = need_memory((size_t)count * sizeof *values);
    for (int64_t k = 0; k < count; k++) values[k] = otherwise;
    return values;
}

int layer_norm(Call *call)
{
    const Tensor *input = TENSOR(0), *out = TENSOR(5);
    int64_t rows, width;
    CHECK(rows_of(call, input, 1, &rows, &width));
    REQUIRE(same_shape(input, out), "aclnnLayerNorm: out does not have the input's shape");
    for (int k = 2; k < 4; k++) REQUIRE(!PRESENT(k) || numel(TENSOR(k)) == width, "aclnnLayerNorm: %s does not have normalizedShape", call->args[k].name);
    for (int k = 6; k < 8; k++) REQUIRE(!PRESENT(k) || numel(TENSOR(k)) == rows, "aclnnLayerNorm: %s does not have one element per row", call->args[k].name);
    call->operations = (uint64_t)numel(input) * 8;
    if (call->planning) return OK;
    double *x = dense_double(input), *w = dense_or(call, 2, width, 1), *b = dense_or(call, 3, width, 0);
    double *means = need_memory((size_t)rows * 8), *scales = need_memory((size_t)rows * 8);
    for (int64_t r = 0; r < rows; r++) {
        double *row = x + r * width, sum = 0, square = 0;
        for (int64_t k = 0; k < width; k++) sum += row[k];
        double mean = sum / (double)width;
        for (int64_t k = 0; k < width; k++) square += (row[k] - mean) * (row[k] - mean);
        double scale = 1 / sqrt(square / (double)width + DOUBLE(4));
        for (int64_t k = 0; k < width; k++) row[k] = (row[k] - mean) * scale * w[k] + b[k];
        means[r] = mean;
        scales[r] = scale;
    }
    put_double(out, x);
    if (PRESENT(6)) put_double(TENSOR(6), means);
    if (PRESENT(7)) put_double(TENSOR(7), scales);
    free(x), free(w), free(b), free(means), free(scales);
    return OK;
}

int layer_norm_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *input = TENSOR(1);
    int64_t rows, width;
    CHECK(rows_of(call, input, 2, &rows, &width));
    REQUIRE(same_shape(grad, input), "aclnnLayerNormBackward: gradOut and input have different shapes");
    REQUIRE(numel(TENSOR(3)) == rows && numel(TENSOR(4)) == rows, "aclnnLayerNormBackward: mean and rstd have one element per row");
    REQUIRE(call->args[7].bools.size == 3, "aclnnLayerNormBackward: outputMask has 3 entries");
    const bool *mask = call->args[7].bools.values;
    for (int k = 0; k < 3; k++) {
        REQUIRE(!mask[k] || PRESENT(8 + k), "aclnnLayerNormBackward: %s is asked for and NULL", call->args[8 + k].name);
        REQUIRE(!mask[k] || numel(TENSOR(8 + k)) == (k ? width : numel(input)), "aclnnLayerNormBackward: %s has the wrong shape", call->args[8 + k].name);
    }
    call->operations = (uint64_t)numel(input) * 16;
    if (call->planning) return OK;
    double *g = dense_double(grad), *x = dense_double(input), *mean = dense_double(TENSOR(3)), *scale = dense_double(TENSOR(4));
    double *w = dense_or(call, 5, width, 1), *dw = need_memory((size_t)width * 8), *db = need_memory((size_t)width * 8);
    for (int64_t r = 0; r < rows; r++) {
        double *gr = g + r * width, *xr = x + r * width, sum = 0, dot = 0;
        for (int64_t k = 0; k < width; k++) {
            double normal = (xr[k] - mean[r]) * scale[r];
            xr[k] = normal;
            dw[k] += gr[k] * normal;
            db[k] += gr[k];
            sum += gr[k] * w[k];
            dot += gr[k] * w[k] * normal;
        }
        sum /= (double)width;
        dot /= (double)width;
        for (int64_t k = 0; k < width; k++) gr[k] = (gr[k] * w[k] - sum - xr[k] * dot) * scale[r];
    }
    if (mask[0]) put_double(TENSOR(8), g);
    if (mask[1]) put_double(TENSOR(9), dw);
    if (mask[2]) put_double(TENSOR(10), db);
    free(g), free(x), free(mean), free(scale), free(w), free(dw), free(db);
    return OK;
}

int rms_norm(Call *call)
{
    const Tensor *input = TENSOR(0), *gamma = TENSOR(1);
    int64_t width = numel(gamma), rows = width ? numel(input) / width : 0;
    REQUIRE(same_shape(input, TENSOR(3)) && broadcasts_to(gamma, input) && width && rows * width == numel(input), "aclnnRmsNorm: gamma does not end the shape of x");
    REQUIRE(numel(TENSOR(4)) == rows, "aclnnRmsNorm: rstd has one element per row");
    call->operations = (uint64_t)numel(input) * 5;
    if (call->planning) return OK;
    double *x = dense_double(input), *w = dense_double(gamma), *scales = need_memory((size_t)rows * 8);
    for (int64_t r = 0; r < rows; r++) {
        double *row = x + r * width, square = 0;
        for (int64_t k = 0; k < width; k++) square += row[k] * row[k];
        scales[r] = 1 / sqrt(square / (double)width + DOUBLE(2));
        for (int64_t k = 0; k < width; k++) row[k] *= scales[r] * w[k];
    }
    put_double(TENSOR(3), x);
    put_double(TENSOR(4), scales);
    free(x), free(w), free(scales);
    return OK;
}

int rms_norm_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *input = TENSOR(1), *gamma = TENSOR(3);
    int64_t width = numel(gamma), rows = width ? numel(input) / width : 0;
    REQUIRE(same_shape(grad, input) && same_shape(input, TENSOR(4)) && width && rows * width == numel(input) && numel(TENSOR(2)) == rows
                && numel(TENSOR(5)) == width, "aclnnRmsNormGrad: the shapes do not fit");
    call->operations = (uint64_t)numel(input) * 10;
    if (call->planning) return OK;
    double *g = dense_double(grad), *x = dense_double(input), *scale = dense_double(TENSOR(2)), *w = dense_double(gamma);
    double *dw = need_memory((size_t)width * 8);
    for (int64_t r = 0; r < rows; r++) {
        double *gr = g + r * width, *xr = x + r * width, dot = 0;
        for (int64_t k = 0; k < width; k++) {
            double normal = xr[k] * scale[r];
            xr[k] = normal;
            dw[k] += gr[k] * normal;
            dot += gr[k] * w[k] * normal;
        }
        dot /= (double)width;
        for (int64_t k = 0; k < width; k++) gr[k] = (gr[k] * w[k] - xr[k] * dot) * scale[r];
    }
    put_double(TENSOR(4), g);
    put_double(TENSOR(5), dw);
    free(g), free(x), free(scale), free(w), free(dw);
    return OK;
}

int group_norm(Call *call)
{
    const Tensor *input = TENSOR(0), *out = TENSOR(8);
    int64_t n = INT(3), channels = INT(4), inner = INT(5), groups = INT(6);
    REQUIRE(groups > 0 && channels % groups == 0 && n * channels * inner == numel(input), "aclnnGroupNorm: N, C, HxW and group do not fit self");
    REQUIRE(same_shape(input, out) && numel(TENSOR(9)) == n * groups && numel(TENSOR(10)) == n * groups, "aclnnGroupNorm: an output has the wrong shape");
    REQUIRE(numel(TENSOR(1)) == channels && numel(TENSOR(2)) == channels, "aclnnGroupNorm: gamma and beta have one element per channel");
    call->operations = (uint64_t)numel(input) * 8;
    if (call->planning) return OK;
    double *x = dense_double(input), *w = dense_double(TENSOR(1)), *b = dense_double(TENSOR(2));
    double *means = need_memory((size_t)(n * groups) * 8), *scales = need_memory((size_t)(n * groups) * 8);
    int64_t width = channels / groups * inner;
    for (int64_t r = 0; r < n * groups; r++) {
        double *row = x + r * width, sum = 0, square = 0;
        for (int64_t k = 0; k < width; k++) sum += row[k];
        means[r] = sum / (double)width;
        for (int64_t k = 0; k < width; k++) square += (row[k] - means[r]) * (row[k] - means[r]);
        scales[r] = 1 / sqrt(square / (double)width + DOUBLE(7));
        for (int64_t k = 0; k < width; k++) {
            int64_t channel = r % groups * (channels / groups) + k / inner;
            row[k] = (row[k] - means[r]) * scales[r] * w[channel] + b[channel];
        }
    }
    put_double(out, x);
    put_double(TENSOR(9), means);
    put_double(TENSOR(10), scales);
    free(x), free(w), free(b), free(means), free(scales);
    return OK;
}

static int check_channels(Call *call, const Tensor *input, int first, int last, int64_t channels)
{
    REQUIRE(input->nd >= 2, "aclnn%s: the input needs a batch and a channel dimension", call->op->name);
    for (int k = first; k <= last; k++)
        REQUIRE(!PRESENT(k) || numel(TENSOR(k)) == channels, "aclnn%s: %s does not have one element per channel", call->op->name, call->args[k].name);
    return OK;
}

int batch_norm(Call *call)
{
    const Tensor *input = TENSOR(0), *out = TENSOR(8);
    int64_t channels = input->nd > 1 ? input->dims[1] : 0, inner = extent_after(input, 1), n = input->nd ? input->dims[0] : 0, count = n * inner;
    CHECK(check_channels(call, input, 1, 4, channels));
    CHECK(check_channels(call, input, 9, 10, channels));
    REQUIRE(same_shape(input, out), "aclnnBatchNorm: output does not have the input's shape");
    bool training = INT(5);
    REQUIRE(training || (PRESENT(3) && PRESENT(4)), "aclnnBatchNorm: without training the running statistics are needed");
    call->operations = (uint64_t)numel(input) * 8;
    if (call->planning) return OK;
    double *x = dense_double(input), *w = dense_or(call, 1, channels, 1), *b = dense_or(call, 2, channels, 0);
    double *running_mean = dense_or(call, 3, channels, 0), *running_var = dense_or(call, 4, channels, 1), momentum = DOUBLE(6);
    double *means = need_memory((size_t)channels * 8), *scales = need_memory((size_t)channels * 8);
    for (int64_t c = 0; c < channels; c++) {
        double mean = running_mean[c], var = running_var[c];
        if (training) {
            double sum = 0, square = 0;
            for (int64_t s = 0; s < n; s++)
                for (int64_t k = 0; k < inner; k++) sum += x[(s * channels + c) * inner + k];
            mean = sum / (double)count;
            for (int64_t s = 0; s < n; s++)
                for (int64_t k = 0; k < inner; k++) {
                    double away = x[(s * channels + c) * inner + k] - mean;
                    square += away * away;
                }
            var = square / (double)count;
            running_mean[c] += momentum * (mean - running_mean[c]);
            running_var[c] += momentum * ((count > 1 ? square / (double)(count - 1) : var) - running_var[c]);
        }
        means[c] = mean;
        scales[c] = 1 / sqrt(var + DOUBLE(7));
        for (int64_t s = 0; s < n; s++)
            for (int64_t k = 0; k < inner; k++) {
                double *at = x + (s * channels + c) * inner + k;
                *at = (*at - mean) * scales[c] * w[c] + b[c];
            }
    }
    put_double(out, x);
    if (training) {
        if (PRESENT(3)) put_double(TENSOR(3), running_mean);
        if (PRESENT(4)) put_double(TENSOR(4), running_var);
        if (PRESENT(9)) put_double(TENSOR(9), means);
        if (PRESENT(10)) put_double(TENSOR(10), scales);
    }
    free(x), free(w), free(b), free(running_mean), free(running_var), free(means), free(scales);
    return OK;
}

int batch_norm_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *input = TENSOR(1);
    int64_t channels = input->nd > 1 ? input->dims[1] : 0, inner = extent_after(input, 1), n = input->nd ? input->dims[0] : 0, count = n * inner;
    CHECK(check_channels(call, input, 2, 6, channels));
    REQUIRE(same_shape(grad, input), "aclnnBatchNormBackward: gradOut and input have different shapes");
    bool training = INT(7);
    const bool *mask = call->args[9].bools.values;
    REQUIRE(call->args[9].bools.size == 3, "aclnnBatchNormBackward: outputMask has 3 entries");
    for (int k = 0; k < 3; k++) {
        REQUIRE(!mask[k] || PRESENT(10 + k), "aclnnBatchNormBackward: %s is asked for and NULL", call->args[10 + k].name);
        REQUIRE(!mask[k] || numel(TENSOR(10 + k)) == (k ? channels : numel(input)), "aclnnBatchNormBackward: %s has the wrong shape", call->args[10 + k].name);
    }
    REQUIRE(training ? PRESENT(5) && PRESENT(6) : PRESENT(3) && PRESENT(4), "aclnnBatchNormBackward: the statistics are NULL");
    call->operations = (uint64_t)numel(input) * 16;
    if (call->planning) return OK;
    double *g = dense_double(grad), *x = dense_double(input), *w = dense_or(call, 2, channels, 1);
    double *mean = dense_or(call, training ? 5 : 3, channels, 0), *scale = dense_or(call, training ? 6 : 4, channels, 1);
    double *dw = need_memory((size_t)channels * 8), *db = need_memory((size_t)channels * 8);
    for (int64_t c = 0; c < channels; c++) {
        double s = training ? scale[c] : 1 / sqrt(scale[c] + DOUBLE(8));
        for (int64_t b = 0; b < n; b++)
            for (int64_t k = 0; k < inner; k++) {
                int64_t at = (b * channels + c) * inner + k;
                x[at] = (x[at] - mean[c]) * s;
                dw[c] += g[at] * x[at];
                db[c] += g[at];
            }
        for (int64_t b = 0; b < n; b++)
            for (int64_t k = 0; k < inner; k++) {
                int64_t at = (b * channels + c) * inner + k;
                g[at] = training ? (g[at] - db[c] / (double)count - x[at] * dw[c] / (double)count) * s * w[c] : g[at] * s * w[c];
            }
    }
    if (mask[0]) put_double(TENSOR(10), g);
    if (mask[1]) put_double(TENSOR(11), dw);
    if (mask[2]) put_double(TENSOR(12), db);
    free(g), free(x), free(w), free(mean), free(scale), free(dw), free(db);
    return OK;
}
