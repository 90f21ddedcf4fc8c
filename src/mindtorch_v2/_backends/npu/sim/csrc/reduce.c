/* Reductions over dimensions, and scans along one. */
#include "kernels.h"

#include <float.h>
#include <math.h>

/* ---- which dimensions, which shape ---- */
typedef struct { bool reduced[MAX_DIMS]; int64_t count; } Dims;

static int read_dims(Call *call, const Tensor *self, int ints_at, bool keep, const Tensor *out, Dims *dims)
{
    memset(dims, 0, sizeof *dims);
    const char *op = call->op->name;
    uint64_t given = ints_at < 0 ? 0 : INTS(ints_at)->size;
    for (uint64_t k = 0; k < given; k++) {
        int dim = wrap_dim(INTS(ints_at)->values[k], self->nd);
        REQUIRE(dim >= 0, "aclnn%s: dimension %lld does not exist in a tensor of %d dimensions", op, (long long)INTS(ints_at)->values[k], self->nd);
        REQUIRE(!dims->reduced[dim], "aclnn%s: dimension %d is named twice", op, dim);
        dims->reduced[dim] = true;
    }
    if (given == 0) for (int k = 0; k < self->nd; k++) dims->reduced[k] = true;
    dims->count = 1;
    int at = 0;
    bool fits = true;
    for (int k = 0; k < self->nd; k++) {
        if (dims->reduced[k]) dims->count *= self->dims[k];
        if (dims->reduced[k] && !keep) continue;
        fits = fits && at < out->nd && out->dims[at] == (dims->reduced[k] ? 1 : self->dims[k]);
        at++;
    }
    REQUIRE(fits && at == out->nd, "aclnn%s: the output does not have the shape of the result", op);
    return OK;
}

/* Accumulators, one per element of the result, as a tensor of self's shape whose reduced dimensions have stride 0. */
static Tensor accumulators(const Tensor *self, const Dims *dims, int dtype, void *values)
{
    Tensor view = {.nd = self->nd, .dtype = dtype, .data = values};
    int64_t running = 1;
    for (int k = self->nd - 1; k >= 0; k--) {
        view.dims[k] = self->dims[k];
        view.strides[k] = dims->reduced[k] ? 0 : running;
        if (!dims->reduced[k]) running *= self->dims[k];
    }
    return view;
}

enum { R_SUM, R_MAX, R_MIN, R_ANY, R_ALL, R_POWER, R_SQUARE_AROUND };
typedef struct { int kind, dtype; double p; } Reduction;

static inline double combine(int kind, double p, double sum, double value, double centre)
{
    switch (kind) {
    case R_SUM: return sum + value;
    case R_MAX: return value > sum || value != value ? value : sum;
    case R_MIN: return value < sum || value != value ? value : sum;
    case R_ANY: return sum != 0 || value != 0;
    case R_ALL: return sum != 0 && value != 0;
    case R_SQUARE_AROUND: return sum + (value - centre) * (value - centre);
    default:
        if (p == 2) return sum + value * value;
        if (p == 1) return sum + fabs(value);
        if (p == 0) return sum + (value != 0);
        if (p == INFINITY) return fabs(value) > sum || value != value ? fabs(value) : sum;
        if (p == -INFINITY) return fabs(value) < sum || value != value ? fabs(value) : sum;
        return sum + pow(fabs(value), p);
    }
}

static void visit_double(void *context, char **data, const int64_t *steps, int64_t count)
{
    const Reduction *reduction = context;
    double values[1024];
    for (int64_t at = 0; at < count; at += 1024) {
        int64_t part = count - at < 1024 ? count - at : 1024;
        load_double(values, data[0] + at * steps[0], steps[0], part, reduction->dtype);
        double *sums = (double *)(void *)(data[1] + at * steps[1]);
        const double *centres = (const double *)(const void *)(data[2] + at * steps[2]);
        int64_t step = steps[1] / 8, centre_step = steps[2] / 8;
        if (reduction->kind == R_SUM && step == 1) for (int64_t k = 0; k < part; k++) sums[k] += values[k];
        else if (step == 0) {
            double sum = *sums, centre = *centres;
            for (int64_t k = 0; k < part; k++) sum = combine(reduction->kind, reduction->p, sum, values[k], centre);
            *sums = sum;
        } else for (int64_t k = 0; k < part; k++) sums[k * step] = combine(reduction->kind, reduction->p, sums[k * step], values[k], centres[k * centre_step]);
    }
}

static void visit_int(void *context, char **data, const int64_t *steps, int64_t count)
{
    const Reduction *reduction = context;
    int64_t values[1024];
    for (int64_t at = 0; at < count; at += 1024) {
        int64_t part = count - at < 1024 ? count - at : 1024;
        load_int(values, data[0] + at * steps[0], steps[0], part, reduction->dtype);
        int64_t *sums = (int64_t *)(void *)(data[1] + at * steps[1]), step = steps[1] / 8;
        for (int64_t k = 0; k < part; k++) {
            int64_t *sum = &sums[k * step], value = values[k];
            switch (reduction->kind) {
            case R_SUM: *sum += value; break;
            case R_MAX: if (value > *sum) *sum = value; break;
            case R_MIN: if (value < *sum) *sum = value; break;
            case R_ANY: *sum = *sum || value; break;
            default: *sum = *sum && value; break;
            }
        }
    }
}

static int64_t results(const Tensor *self, const Dims *dims)
{
    int64_t count = 1;
    for (int k = 0; k < self->nd; k++)
        if (!dims->reduced[k]) count *= self->dims[k];
    return count;
}

static double *reduce_double(const Tensor *self, const Dims *dims, int kind, double p, double first, double *centres)
{
    int64_t count = results(self, dims);
    double *sums = need_memory((size_t)count * sizeof *sums);
    for (int64_t k = 0; k < count; k++) sums[k] = first;
    Tensor into = accumulators(self, dims, DT_DOUBLE, sums), around = accumulators(self, dims, DT_DOUBLE, centres ? centres : sums);
    Reduction reduction = {kind, self->dtype, p};
    Loop loop;
    loop_begin(&loop, self->nd, self->dims);
    loop_add(&loop, self);
    loop_add(&loop, &into);
    loop_add(&loop, &around);
    loop_run(&loop, visit_double, &reduction);
    return sums;
}

static int64_t *reduce_int(const Tensor *self, const Dims *dims, int kind, int64_t first)
{
    int64_t count = results(self, dims);
    int64_t *sums = need_memory((size_t)count * sizeof *sums);
    for (int64_t k = 0; k < count; k++) sums[k] = first;
    Tensor into = accumulators(self, dims, DT_INT64, sums);
    Reduction reduction = {kind, self->dtype, 0};
    Loop loop;
    loop_begin(&loop, self->nd, self->dims);
    loop_add(&loop, self);
    loop_add(&loop, &into);
    loop_run(&loop, visit_int, &reduction);
    return sums;
}

/* ---- kernels ---- */
int reduce_sum(Call *call) /* ReduceSum, and Mean with variant 1 */
{
    const Tensor *self = TENSOR(0), *out = TENSOR(4);
    Dims dims;
    CHECK(read_dims(call, self, 1, INT(2), out, &dims));
    REQUIRE(INT(3) == out->dtype || INT(3) == DT_UNDEFINED, "aclnn%s: out is %s, not the type asked for", call->op->name, dtype_name(out->dtype));
    bool mean = call->op->variant;
    REQUIRE(!mean || is_floating(out->dtype), "aclnnMean: the mean is a floating number");
    if (call->planning) return OK;
    if (is_integral(self->dtype) && is_integral(out->dtype)) {
        int64_t *sums = reduce_int(self, &dims, R_SUM, 0);
        put_int(out, sums);
        free(sums);
        return OK;
    }
    double *sums = reduce_double(self, &dims, R_SUM, 0, 0, NULL);
    if (mean) for (int64_t k = 0, count = results(self, &dims); k < count; k++) sums[k] /= (double)dims.count;
    put_double(out, sums);
    free(sums);
    return OK;
}

int reduce_extreme(Call *call) /* Max, Min: two arguments; Amax, Amin: four */
{
    bool all = call->count == 2, largest = call->op->variant;
    const Tensor *self = TENSOR(0), *out = all ? TENSOR(1) : TENSOR(3);
    Dims dims;
    CHECK(read_dims(call, self, all ? -1 : 1, all ? false : INT(2), out, &dims));
    REQUIRE(dims.count > 0, "aclnn%s: there is no %s of no elements", call->op->name, largest ? "maximum" : "minimum");
    if (call->planning) return OK;
    if (is_integral(self->dtype)) {
        int64_t *found = reduce_int(self, &dims, largest ? R_MAX : R_MIN, largest ? INT64_MIN : INT64_MAX);
        put_int(out, found);
        free(found);
    } else {
        double *found = reduce_double(self, &dims, largest ? R_MAX : R_MIN, 0, largest ? -INFINITY : INFINITY, NULL);
        put_double(out, found);
        free(found);
    }
    return OK;
}

int reduce_truth(Call *call) /* All, and Any with variant 1 */
{
    Dims dims;
    CHECK(read_dims(call, TENSOR(0), 1, INT(2), TENSOR(3), &dims));
    if (call->planning) return OK;
    double *found = reduce_double(TENSOR(0), &dims, call->op->variant ? R_ANY : R_ALL, 0, call->op->variant ? 0 : 1, NULL);
    put_double(TENSOR(3), found);
    free(found);
    return OK;
}

int reduce_var(Call *call) /* Var(unbiased), and Std(correction) with variant 1 */
{
    const Tensor *self = TENSOR(0), *out = TENSOR(4);
    Dims dims;
    REQUIRE(is_floating(self->dtype), "aclnn%s: self must be of a floating type", call->op->name);
    CHECK(read_dims(call, self, 1, INT(3), out, &dims));
    if (call->planning) return OK;
    int64_t count = results(self, &dims), correction = INT(2);
    double *means = reduce_double(self, &dims, R_SUM, 0, 0, NULL);
    for (int64_t k = 0; k < count; k++) means[k] /= (double)dims.count;
    double *squares = reduce_double(self, &dims, R_SQUARE_AROUND, 0, 0, means);
    double divisor = (double)(dims.count - correction);
    for (int64_t k = 0; k < count; k++) {
        squares[k] /= divisor > 0 ? divisor : 0;
        if (call->op->variant) squares[k] = sqrt(squares[k]);
    }
    put_double(out, squares);
    free(means);
    free(squares);
    return OK;
}

static double *norms(const Tensor *self, const Dims *dims, double p)
{
    double *sums = reduce_double(self, dims, R_POWER, p, p == -INFINITY ? INFINITY : 0, NULL);
    for (int64_t k = 0, count = results(self, dims); k < count; k++)
        if (p == 2) sums[k] = sqrt(sums[k]);
        else if (p != 1 && p != 0 && p != INFINITY && p != -INFINITY) sums[k] = pow(sums[k], 1 / p);
    return sums;
}

int reduce_norm(Call *call) /* Norm: out fifth; LinalgVectorNorm: a data type before it */
{
    const Tensor *out = TENSOR(call->count - 1);
    Dims dims;
    REQUIRE(is_floating(TENSOR(0)->dtype), "aclnn%s: self must be of a floating type", call->op->name);
    CHECK(read_dims(call, TENSOR(0), 2, INT(3), out, &dims));
    if (call->planning) return OK;
    double *found = norms(TENSOR(0), &dims, SCALAR(1)->d);
    put_double(out, found);
    free(found);
    return OK;
}

int foreach_norm(Call *call)
{
    REQUIRE(LIST(0)->size == LIST(2)->size, "aclnnForeachNorm: the lists have different lengths");
    for (uint64_t k = 0; k < LIST(0)->size; k++) {
        const Tensor *self = &LIST(0)->values[k], *out = &LIST(2)->values[k];
        REQUIRE(numel(out) == 1, "aclnnForeachNorm: each output has one element");
        if (call->planning) continue;
        Dims dims = {.count = numel(self)};
        for (int d = 0; d < self->nd; d++) dims.reduced[d] = true;
        double *found = norms(self, &dims, SCALAR(1)->d);
        put_double(out, found);
        free(found);
    }
    return OK;
}

/* ---- along one dimension ---- */
typedef struct { int dim; int64_t outer, size, inner; } Line;

static int read_line(Call *call, const Tensor *self, int64_t dim, Line *line)
{
    line->dim = wrap_dim(dim, self->nd);
    REQUIRE(line->dim >= 0, "aclnn%s: dimension %lld does not exist in a tensor of %d dimensions", call->op->name, (long long)dim, self->nd);
    line->outer = extent_before(self, line->dim);
    line->size = self->nd ? self->dims[line->dim] : 1;
    line->inner = extent_after(self, line->dim);
    return OK;
}

static int check_reduced(Call *call, const Tensor *self, int dim, bool keep, const Tensor *out)
{
    int at = 0;
    bool fits = true;
    for (int k = 0; k < self->nd; k++) {
        if (k == dim && !keep) continue;
        fits = fits && at < out->nd && out->dims[at] == (k == dim ? 1 : self->dims[k]);
        at++;
    }
    REQUIRE(fits && at == out->nd, "aclnn%s: an output does not have the shape of the result", call->op->name);
    return OK;
}

static void extremes(const Tensor *self, const Line *line, bool largest, const Tensor *values, const Tensor *indices)
{
    Cells cells = cells_of(self), best = {.is_float = cells.is_float};
    int64_t count = line->outer * line->inner;
    best.i = need_memory((size_t)count * 8);
    int64_t *where = need_memory((size_t)count * 8);
    for (int64_t o = 0; o < line->outer; o++)
        for (int64_t i = 0; i < line->inner; i++) {
            int64_t at = o * line->size * line->inner + i, found = 0;
            for (int64_t k = 1; k < line->size; k++) {
                if (cells.is_float) {
                    double value = cells.d[at + k * line->inner], held = cells.d[at + found * line->inner];
                    if (held == held && (value != value || (largest ? value > held : value < held))) found = k;
                } else {
                    int64_t value = cells.i[at + k * line->inner], held = cells.i[at + found * line->inner];
                    if (largest ? value > held : value < held) found = k;
                }
            }
            where[o * line->inner + i] = found;
            best.i[o * line->inner + i] = cells.i[at + found * line->inner]; /* eight bytes of either kind */
        }
    if (values) cells_put(values, best);
    if (indices) put_int(indices, where);
    cells_free(cells);
    cells_free(best);
    free(where);
}

int extreme_dim(Call *call) /* MinDim, and MaxDim with variant 1 */
{
    Line line;
    CHECK(read_line(call, TENSOR(0), INT(1), &line));
    CHECK(check_reduced(call, TENSOR(0), line.dim, INT(2), TENSOR(3)));
    CHECK(check_reduced(call, TENSOR(0), line.dim, INT(2), TENSOR(4)));
    REQUIRE(line.size > 0, "aclnn%s: the dimension is empty", call->op->name);
    if (!call->planning) extremes(TENSOR(0), &line, call->op->variant, TENSOR(3), TENSOR(4));
    return OK;
}

int arg_extreme(Call *call)
{
    Line line;
    CHECK(read_line(call, TENSOR(0), INT(1), &line));
    CHECK(check_reduced(call, TENSOR(0), line.dim, INT(2), TENSOR(3)));
    REQUIRE(line.size > 0, "aclnn%s: the dimension is empty", call->op->name);
    if (!call->planning) extremes(TENSOR(0), &line, call->op->variant, NULL, TENSOR(3));
    return OK;
}

int cumsum(Call *call)
{
    const Tensor *self = TENSOR(0), *out = TENSOR(3);
    Line line;
    CHECK(read_line(call, self, INT(1), &line));
    REQUIRE(same_shape(self, out), "aclnnCumsum: self and out have different shapes");
    REQUIRE(INT(2) == out->dtype, "aclnnCumsum: out is %s, not the type asked for", dtype_name(out->dtype));
    if (call->planning) return OK;
    bool integers = is_integral(self->dtype) && is_integral(out->dtype);
    Cells cells = {.is_float = !integers};
    if (integers) cells.i = dense_int(self);
    else cells.d = dense_double(self);
    for (int64_t o = 0; o < line.outer; o++)
        for (int64_t k = 1; k < line.size; k++)
            for (int64_t i = 0; i < line.inner; i++) {
                int64_t at = (o * line.size + k) * line.inner + i;
                if (integers) cells.i[at] += cells.i[at - line.inner];
                else cells.d[at] += cells.d[at - line.inner];
            }
    cells_put(out, cells);
    cells_free(cells);
    return OK;
}

int softmax(Call *call) /* Softmax, and LogSoftmax with variant 1 */
{
    const Tensor *self = TENSOR(0), *out = TENSOR(2);
    Line line;
    CHECK(read_line(call, self, INT(1), &line));
    REQUIRE(same_shape(self, out), "aclnn%s: self and out have different shapes", call->op->name);
    REQUIRE(is_floating(self->dtype) && is_floating(out->dtype), "aclnn%s: needs floating tensors", call->op->name);
    call->operations = (uint64_t)numel(self) * 8;
    if (call->planning) return OK;
    double *x = dense_double(self);
    for (int64_t o = 0; o < line.outer; o++)
        for (int64_t i = 0; i < line.inner; i++) {
            double *row = x + o * line.size * line.inner + i, top = -INFINITY, sum = 0;
            for (int64_t k = 0; k < line.size; k++) if (row[k * line.inner] > top) top = row[k * line.inner];
            for (int64_t k = 0; k < line.size; k++) sum += exp(row[k * line.inner] - top);
            double shift = top + log(sum);
            for (int64_t k = 0; k < line.size; k++)
                row[k * line.inner] = call->op->variant ? row[k * line.inner] - shift : exp(row[k * line.inner] - top) / sum;
        }
    put_double(out, x);
    free(x);
    return OK;
}

int softmax_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *output = TENSOR(1), *out = TENSOR(3);
    Line line;
    CHECK(read_line(call, output, INT(2), &line));
    REQUIRE(same_shape(grad, output) && same_shape(output, out), "aclnn%s: the shapes differ", call->op->name);
    call->operations = (uint64_t)numel(output) * 6;
    if (call->planning) return OK;
    double *g = dense_double(grad), *y = dense_double(output);
    for (int64_t o = 0; o < line.outer; o++)
        for (int64_t i = 0; i < line.inner; i++) {
            int64_t at = o * line.size * line.inner + i;
            double sum = 0;
            for (int64_t k = 0; k < line.size; k++) {
                int64_t p = at + k * line.inner;
                sum += call->op->variant ? g[p] : g[p] * y[p];
            }
            for (int64_t k = 0; k < line.size; k++) {
                int64_t p = at + k * line.inner;
                g[p] = call->op->variant ? g[p] - exp(y[p]) * sum : (g[p] - sum) * y[p];
            }
        }
    put_double(out, g);
    free(g);
    free(y);
    return OK;
}
