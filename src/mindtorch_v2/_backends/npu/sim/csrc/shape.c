/* Operators that move elements: joining, splitting, permuting, padding; and tensors made from numbers. */
#include "kernels.h"

#include <math.h>

static int join(Call *call, int dim, bool stacked)
{
    const Tensor *out = TENSOR(2);
    int64_t at = 0;
    for (uint64_t k = 0; k < LIST(0)->size; k++) {
        Tensor in = LIST(0)->values[k];
        if (!stacked && in.nd == 1 && in.dims[0] == 0) continue; /* an empty vector joins anything */
        if (stacked) {
            REQUIRE(in.nd + 1 == out->nd, "aclnnStack: tensor %llu has the wrong number of dimensions", (unsigned long long)k);
            for (int d = in.nd; d > dim; d--) {
                in.dims[d] = in.dims[d - 1];
                in.strides[d] = in.strides[d - 1];
            }
            in.nd++;
            in.dims[dim] = 1;
            in.strides[dim] = 0;
        }
        bool fits = in.nd == out->nd && at + in.dims[dim] <= out->dims[dim];
        for (int d = 0; fits && d < in.nd; d++) fits = d == dim || in.dims[d] == out->dims[d];
        REQUIRE(fits, "aclnn%s: tensor %llu does not fit into the output", call->op->name, (unsigned long long)k);
        Tensor part = view_narrow(out, dim, at, in.dims[dim]);
        CHECK(copy_values(call, &part, &in));
        at += in.dims[dim];
    }
    REQUIRE(at == out->dims[dim], "aclnn%s: the output is longer than the tensors together", call->op->name);
    return OK;
}

int cat(Call *call)
{
    int dim = wrap_dim(INT(1), TENSOR(2)->nd);
    REQUIRE(dim >= 0 && TENSOR(2)->nd > 0, "aclnnCat: dimension %lld does not exist", (long long)INT(1));
    return join(call, dim, false);
}

int stack(Call *call)
{
    int dim = wrap_dim(INT(1), TENSOR(2)->nd);
    REQUIRE(dim >= 0, "aclnnStack: dimension %lld does not exist", (long long)INT(1));
    return join(call, dim, true);
}

static int split(Call *call, int dim, const int64_t *sizes, int64_t every)
{
    const Tensor *self = TENSOR(0);
    int64_t at = 0;
    for (uint64_t k = 0; k < LIST(3)->size; k++) {
        const Tensor *out = &LIST(3)->values[k];
        int64_t size = sizes ? sizes[k] : self->dims[dim] - at < every ? self->dims[dim] - at : every;
        bool fits = out->nd == self->nd && at + size <= self->dims[dim];
        for (int d = 0; fits && d < out->nd; d++) fits = out->dims[d] == (d == dim ? size : self->dims[d]);
        REQUIRE(fits, "aclnn%s: output %llu does not have the shape of its part", call->op->name, (unsigned long long)k);
        Tensor part = view_narrow(self, dim, at, size);
        CHECK(copy_values(call, out, &part));
        at += size;
    }
    REQUIRE(at == self->dims[dim], "aclnn%s: the parts do not cover the dimension", call->op->name);
    return OK;
}

int split_tensor(Call *call)
{
    int dim = wrap_dim(INT(2), TENSOR(0)->nd);
    REQUIRE(dim >= 0 && TENSOR(0)->nd > 0 && INT(1) > 0, "aclnnSplitTensor: bad dimension or size");
    return split(call, dim, NULL, INT(1));
}

int split_sizes(Call *call)
{
    int dim = wrap_dim(INT(2), TENSOR(0)->nd);
    REQUIRE(dim >= 0 && TENSOR(0)->nd > 0, "aclnnSplitWithSize: dimension %lld does not exist", (long long)INT(2));
    REQUIRE(INTS(1)->size == LIST(3)->size, "aclnnSplitWithSize: %llu sizes for %llu outputs", (unsigned long long)INTS(1)->size, (unsigned long long)LIST(3)->size);
    return split(call, dim, INTS(1)->values, 0);
}

int permute(Call *call)
{
    const Tensor *self = TENSOR(0), *out = TENSOR(2);
    REQUIRE((int)INTS(1)->size == self->nd && out->nd == self->nd, "aclnnPermute: needs one index per dimension");
    Tensor view = *self;
    unsigned seen = 0;
    for (int k = 0; k < self->nd; k++) {
        int dim = wrap_dim(INTS(1)->values[k], self->nd);
        REQUIRE(dim >= 0 && !(seen >> dim & 1), "aclnnPermute: the dimensions are no permutation");
        seen |= 1u << dim;
        view.dims[k] = self->dims[dim];
        view.strides[k] = self->strides[dim];
    }
    REQUIRE(same_shape(&view, out), "aclnnPermute: out does not have the permuted shape");
    return copy_values(call, out, &view);
}

int expand(Call *call) { return copy_values(call, TENSOR(2), TENSOR(0)); }

int repeat(Call *call)
{
    const Tensor *self = TENSOR(0), *out = TENSOR(2);
    int nd = (int)INTS(1)->size, lead = nd - self->nd;
    REQUIRE(lead >= 0 && out->nd == nd && nd <= MAX_DIMS, "aclnnRepeat: needs at least one count per dimension");
    int64_t counts[MAX_DIMS], sizes[MAX_DIMS], total = 1;
    for (int k = 0; k < nd; k++) {
        counts[k] = INTS(1)->values[k];
        sizes[k] = k < lead ? 1 : self->dims[k - lead];
        REQUIRE(counts[k] >= 0 && out->dims[k] == sizes[k] * counts[k], "aclnnRepeat: out does not have the repeated shape");
        total *= counts[k];
    }
    for (int64_t n = 0; n < (call->planning ? 0 : total); n++) {
        Tensor part = *out;
        int64_t rest = n;
        for (int k = nd - 1; k >= 0; k--) {
            part = view_narrow(&part, k, rest % counts[k] * sizes[k], sizes[k]);
            rest /= counts[k];
        }
        CHECK(copy_values(call, &part, self));
    }
    return OK;
}

int pad(Call *call)
{
    const Tensor *self = TENSOR(0), *out = TENSOR(3);
    int pairs = (int)INTS(1)->size / 2;
    REQUIRE(INTS(1)->size % 2 == 0 && pairs <= self->nd && out->nd == self->nd, "aclnnConstantPadNd: pad does not fit the dimensions");
    Tensor from = *self, to = *out;
    for (int k = 0; k < self->nd; k++) {
        int pair = self->nd - 1 - k;
        int64_t before = pair < pairs ? INTS(1)->values[2 * pair] : 0, after = pair < pairs ? INTS(1)->values[2 * pair + 1] : 0;
        REQUIRE(out->dims[k] == self->dims[k] + before + after, "aclnnConstantPadNd: out does not have the padded shape");
        int64_t cut_before = before < 0 ? -before : 0, cut_after = after < 0 ? -after : 0;
        int64_t kept = self->dims[k] - cut_before - cut_after;
        REQUIRE(kept >= 0, "aclnnConstantPadNd: pad cuts off more than there is");
        from = view_narrow(&from, k, cut_before, kept);
        to = view_narrow(&to, k, before > 0 ? before : 0, kept);
    }
    CHECK(fill_values(call, out, SCALAR(2)));
    return copy_values(call, &to, &from);
}

int triangle(Call *call) /* Tril, and Triu with variant 1 */
{
    const Tensor *self = TENSOR(0), *out = TENSOR(2);
    REQUIRE(self->nd >= 2 && same_shape(self, out), "aclnn%s: needs matrices of one shape", call->op->name);
    if (call->planning) return OK;
    Cells cells = cells_of(self);
    int64_t rows = self->dims[self->nd - 2], columns = self->dims[self->nd - 1], diagonal = INT(1), at = 0;
    for (int64_t m = 0, count = extent_before(self, self->nd - 2); m < count; m++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++, at++)
                if (call->op->variant ? c - r < diagonal : c - r > diagonal) cells.i[at] = 0; /* also the bits of 0.0 */
    cells_put(out, cells);
    cells_free(cells);
    return OK;
}

int arange(Call *call)
{
    const Scalar *start = SCALAR(0), *end = SCALAR(1), *step = SCALAR(2);
    const Tensor *out = TENSOR(3);
    REQUIRE(step->d != 0 && (end->d - start->d) / step->d >= 0, "aclnnArange: the step does not lead from start to end");
    double span = ceil((end->d - start->d) / step->d);
    REQUIRE(out->nd == 1 && fabs((double)out->dims[0] - span) <= 1, "aclnnArange: out has %lld elements, the range %.0f", (long long)numel(out), span);
    if (call->planning) return OK;
    bool integers = !start->is_float && !step->is_float;
    Cells cells = {.is_float = !integers};
    cells.i = need_memory((size_t)numel(out) * 8);
    for (int64_t k = 0; k < numel(out); k++) {
        if (integers) cells.i[k] = start->i + k * step->i;
        else cells.d[k] = start->d + (double)k * step->d;
    }
    cells_put(out, cells);
    cells_free(cells);
    return OK;
}

int one_hot(Call *call)
{
    const Tensor *self = TENSOR(0), *out = TENSOR(5);
    int64_t classes = INT(1);
    int axis = wrap_dim(INT(4), self->nd + 1);
    REQUIRE(axis >= 0 && out->nd == self->nd + 1 && out->dims[axis] == classes, "aclnnOneHot: out does not fit axis %lld and %lld classes", (long long)INT(4), (long long)classes);
    REQUIRE(numel(TENSOR(2)) == 1 && numel(TENSOR(3)) == 1, "aclnnOneHot: onValue and offValue have one element");
    REQUIRE(numel(out) == numel(self) * classes, "aclnnOneHot: out has the wrong shape");
    if (call->planning) return OK;
    int64_t *index = dense_int(self), inner = extent_after(out, axis);
    Cells on = cells_of(TENSOR(2)), off = cells_of(TENSOR(3)), cells = {.is_float = on.is_float};
    cells.i = need_memory((size_t)numel(out) * 8);
    for (int64_t k = 0; k < numel(out); k++) {
        int64_t outer = k / (classes * inner), class = k / inner % classes;
        cells.i[k] = index[outer * inner + k % inner] == class ? on.i[0] : off.i[0];
    }
    cells_put(out, cells);
    cells_free(cells);
    cells_free(on);
    cells_free(off);
    free(index);
    return OK;
}
