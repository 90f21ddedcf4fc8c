/* Operators with index tensors. An index out of range is found when the kernel runs, as on the device. */
#include "kernels.h"

static int out_of_range(Call *call, int64_t index, int64_t size)
{
    return fail(E_AICORE, "aclnn%s: AI core exception: index %lld is out of range for a dimension of %lld", call->op->name, (long long)index, (long long)size);
}

static bool is_index(const Tensor *tensor) { return tensor->dtype == DT_INT64 || tensor->dtype == DT_INT32; }

int embedding(Call *call)
{
    const Tensor *weight = TENSOR(0), *indices = TENSOR(1), *out = TENSOR(2);
    REQUIRE(weight->nd == 2 && is_index(indices) && numel(out) == numel(indices) * weight->dims[1], "aclnnEmbedding: the shapes do not fit");
    call->bytes = (uint64_t)numel(out) * 2 * (uint64_t)item_size(out->dtype);
    if (call->planning) return OK;
    int64_t *index = dense_int(indices), width = weight->dims[1], count = numel(indices);
    Cells made = {.is_float = is_floating(weight->dtype)};
    made.i = need_memory((size_t)(count * width) * 8);
    int code = OK, size = item_size(weight->dtype);
    for (int64_t k = 0; k < count && code == OK; k++) {
        if (index[k] < 0 || index[k] >= weight->dims[0]) { code = out_of_range(call, index[k], weight->dims[0]); break; }
        const char *row = weight->data + index[k] * weight->strides[0] * size;
        if (made.is_float) load_double(made.d + k * width, row, weight->strides[1] * size, width, weight->dtype);
        else load_int(made.i + k * width, row, weight->strides[1] * size, width, weight->dtype);
    }
    if (code == OK) cells_put(out, made);
    cells_free(made);
    free(index);
    return code;
}

int embedding_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *indices = TENSOR(1), *out = TENSOR(5);
    int64_t rows = INT(2), padding = INT(3), width = out->nd == 2 ? out->dims[1] : 0, count = numel(indices);
    REQUIRE(out->nd == 2 && out->dims[0] == rows && numel(grad) == count * width && is_index(indices), "aclnnEmbeddingDenseBackward: the shapes do not fit");
    if (call->planning) return OK;
    int64_t *index = dense_int(indices), *times = need_memory((size_t)rows * 8);
    double *g = dense_double(grad), *dw = need_memory((size_t)(rows * width) * 8);
    int code = OK;
    for (int64_t k = 0; k < count && code == OK; k++) {
        if (index[k] < 0 || index[k] >= rows) code = out_of_range(call, index[k], rows);
        else times[index[k]]++;
    }
    for (int64_t k = 0; k < count && code == OK; k++) {
        if (index[k] == padding) continue;
        double scale = INT(4) ? 1 / (double)times[index[k]] : 1;
        for (int64_t w = 0; w < width; w++) dw[index[k] * width + w] += g[k * width + w] * scale;
    }
    if (code == OK) put_double(out, dw);
    free(index), free(times), free(g), free(dw);
    return code;
}

/* Where element k of `index` (dense) points in a dense tensor of shape `dims`, with coordinate `dim` replaced. */
static int64_t replaced(const Tensor *index, const Tensor *tensor, int64_t k, int dim, int64_t coordinate)
{
    int64_t at = 0, step = 1;
    for (int d = tensor->nd - 1; d >= 0; d--) {
        int64_t here = index->nd ? k % index->dims[d] : 0;
        if (index->nd) k /= index->dims[d];
        at += (d == dim ? coordinate : here) * step;
        step *= tensor->dims[d];
    }
    return at;
}

static int check_along(Call *call, const Tensor *self, const Tensor *index, int64_t given, int *dim)
{
    *dim = wrap_dim(given, self->nd);
    REQUIRE(*dim >= 0, "aclnn%s: dimension %lld does not exist", call->op->name, (long long)given);
    REQUIRE(is_index(index) && index->nd == self->nd, "aclnn%s: index is INT64 or INT32 with self's number of dimensions", call->op->name);
    for (int d = 0; d < self->nd; d++) REQUIRE(d == *dim || index->dims[d] <= self->dims[d], "aclnn%s: index is larger than self in dimension %d", call->op->name, d);
    return OK;
}

int gather(Call *call)
{
    const Tensor *self = TENSOR(0), *index = TENSOR(2), *out = TENSOR(3);
    int dim;
    CHECK(check_along(call, self, index, INT(1), &dim));
    REQUIRE(same_shape(index, out), "aclnnGather: out does not have the index's shape");
    if (call->planning) return OK;
    Cells x = cells_of(self), y = {.is_float = x.is_float};
    int64_t *i = dense_int(index), count = numel(index), size = self->nd ? self->dims[dim] : 1;
    y.i = need_memory((size_t)count * 8);
    int code = OK;
    for (int64_t k = 0; k < count; k++) {
        if (i[k] < 0 || i[k] >= size) { code = out_of_range(call, i[k], size); break; }
        y.i[k] = x.i[replaced(index, self, k, dim, i[k])];
    }
    if (code == OK) cells_put(out, y);
    cells_free(x), cells_free(y), free(i);
    return code;
}

int index_select(Call *call)
{
    const Tensor *self = TENSOR(0), *index = TENSOR(2), *out = TENSOR(3);
    int dim = wrap_dim(INT(1), self->nd);
    REQUIRE(dim >= 0 && is_index(index) && index->nd <= 1, "aclnnIndexSelect: needs a vector of indices and a dimension that exists");
    int64_t count = numel(index), inner = extent_after(self, dim), outer = extent_before(self, dim), size = self->nd ? self->dims[dim] : 1;
    REQUIRE(out->nd == self->nd && numel(out) == outer * count * inner, "aclnnIndexSelect: out has the wrong shape");
    if (call->planning) return OK;
    int64_t *i = dense_int(index);
    Cells x = cells_of(self), y = {.is_float = x.is_float};
    y.i = need_memory((size_t)numel(out) * 8);
    int code = OK;
    for (int64_t k = 0; k < count && code == OK; k++) {
        if (i[k] < 0 || i[k] >= size) { code = out_of_range(call, i[k], size); break; }
        for (int64_t o = 0; o < outer; o++) memcpy(y.i + (o * count + k) * inner, x.i + (o * size + i[k]) * inner, (size_t)inner * 8);
    }
    if (code == OK) cells_put(out, y);
    cells_free(x), cells_free(y), free(i);
    return code;
}

/* Scatter(self, dim, index, src, reduce, out), ScatterValue with a scalar, their in-place forms, and ScatterAdd. */
int scatter(Call *call)
{
    const Tensor *self = TENSOR(0), *index = TENSOR(2);
    const Arg *source = &call->args[3], *last = &call->args[call->count - 1];
    bool in_place = call->args[0].kind == A_OUT, always_add = call->op->variant;
    const Tensor *out = in_place ? self : &last->tensor;
    int64_t reduce = always_add ? 1 : INT(4);
    int dim;
    CHECK(check_along(call, self, index, INT(1), &dim));
    REQUIRE(reduce >= 0 && reduce <= 2, "aclnn%s: reduce %lld is not 0, 1 or 2", call->op->name, (long long)reduce);
    REQUIRE(same_shape(self, out), "aclnn%s: out does not have self's shape", call->op->name);
    bool from_tensor = source->kind == A_TENSOR;
    if (from_tensor) {
        REQUIRE(source->tensor.nd == index->nd, "aclnn%s: src does not have index's number of dimensions", call->op->name);
        for (int d = 0; d < index->nd; d++) REQUIRE(index->dims[d] <= source->tensor.dims[d], "aclnn%s: index is larger than src in dimension %d", call->op->name, d);
    }
    if (call->planning) return OK;
    Cells y = cells_of(self), s = {0};
    if (from_tensor) {
        if (y.is_float) s.d = dense_double(&source->tensor);
        else s.i = dense_int(&source->tensor);
    }
    int64_t *i = dense_int(index), count = numel(index), size = self->nd ? self->dims[dim] : 1;
    int code = OK;
    for (int64_t k = 0; k < count; k++) {
        if (i[k] < 0 || i[k] >= size) { code = out_of_range(call, i[k], size); break; }
        int64_t to = replaced(index, self, k, dim, i[k]);
        int64_t from = 0;
        if (from_tensor) {
            int64_t rest = k, step = 1;
            for (int d = index->nd - 1; d >= 0; d--) {
                from += rest % index->dims[d] * step;
                rest /= index->dims[d];
                step *= source->tensor.dims[d];
            }
        }
        if (y.is_float) {
            double value = from_tensor ? s.d[from] : source->scalar.d;
            y.d[to] = reduce == 0 ? value : reduce == 1 ? y.d[to] + value : y.d[to] * value;
        } else {
            int64_t value = from_tensor ? s.i[from] : source->scalar.i;
            y.i[to] = reduce == 0 ? value : reduce == 1 ? y.i[to] + value : y.i[to] * value;
        }
    }
    if (code == OK) cells_put(out, y);
    cells_free(y), cells_free(s), free(i);
    return code;
}

int index_add(Call *call)
{
    const Tensor *self = TENSOR(0), *index = TENSOR(2), *source = TENSOR(3), *out = TENSOR(5);
    int dim = wrap_dim(INT(1), self->nd);
    REQUIRE(dim >= 0 && is_index(index) && index->nd <= 1 && same_shape(self, out), "aclnnIndexAdd: needs a vector of indices, and out in self's shape");
    int64_t count = numel(index), inner = extent_after(self, dim), outer = extent_before(self, dim), size = self->nd ? self->dims[dim] : 1;
    REQUIRE(numel(source) == outer * count * inner, "aclnnIndexAdd: source does not fit self and index");
    if (call->planning) return OK;
    Cells y = cells_of(self), s = {.is_float = y.is_float};
    if (y.is_float) s.d = dense_double(source);
    else s.i = dense_int(source);
    int64_t *i = dense_int(index);
    int code = OK;
    for (int64_t k = 0; k < count && code == OK; k++) {
        if (i[k] < 0 || i[k] >= size) { code = out_of_range(call, i[k], size); break; }
        for (int64_t o = 0; o < outer; o++)
            for (int64_t w = 0; w < inner; w++) {
                int64_t to = (o * size + i[k]) * inner + w, from = (o * count + k) * inner + w;
                if (y.is_float) y.d[to] += SCALAR(4)->d * s.d[from];
                else y.i[to] += SCALAR(4)->i * s.i[from];
            }
    }
    if (code == OK) cells_put(out, y);
    cells_free(y), cells_free(s), free(i);
    return code;
}

/* ---- Index and IndexPutImpl: one index tensor per leading dimension, an empty one for ":" ---- */
typedef struct {
    int nd;                        /* of the result */
    int64_t dims[MAX_DIMS];
    int indexed[MAX_DIMS];         /* dimensions of self that have an index, in order */
    int count;
    int64_t *values[MAX_DIMS];     /* their indices, dense, broadcast to the common shape */
    int common_nd, first;          /* where the common shape stands in the result */
    int64_t common[MAX_DIMS], points;
    int kept[MAX_DIMS], kept_count;
} Selection;

static void selection_free(Selection *s)
{
    for (int k = 0; k < s->count; k++) free(s->values[k]);
}

static bool absent(const Tensor *tensor) { return tensor->nd == 1 && tensor->dims[0] == 0; }

static int selection(Call *call, const Tensor *self, const Arg *list, Selection *s)
{
    memset(s, 0, sizeof *s);
    uint64_t given = list->list.size;
    Tensor expanded[MAX_DIMS];
    int64_t *bool_indices[MAX_DIMS] = {NULL};
    int at = 0; /* dimension of self */
    int code = OK;
    int slots = 0;
    for (uint64_t k = 0; k < given && code == OK; k++) {
        const Tensor *index = &list->list.values[k];
        bool is_mask = index->dtype == DT_BOOL || index->dtype == DT_UINT8;
        if (absent(index) && !(is_mask && at < self->nd && self->dims[at] == 0)) { at++; continue; }
        int span = is_mask ? index->nd : 1;
        if (at + span > self->nd || slots + span > MAX_DIMS) { code = fail(E_NN_PARAM, "aclnn%s: too many indices for self", call->op->name); break; }
        if (!is_mask) {
            if (!is_index(index)) { code = fail(E_NN_PARAM, "aclnn%s: index %llu is neither INT64, INT32 nor BOOL", call->op->name, (unsigned long long)k); break; }
            expanded[slots] = *index;
            s->indexed[slots++] = at++;
            continue;
        }
        for (int d = 0; d < span && code == OK; d++)
            if (index->dims[d] != self->dims[at + d]) code = fail(E_NN_PARAM, "aclnn%s: mask %llu does not have the shape of the dimensions it masks", call->op->name, (unsigned long long)k);
        if (code != OK || call->planning) { for (int d = 0; d < span; d++) { expanded[slots] = (Tensor){.nd = 0, .dtype = DT_INT64}; s->indexed[slots++] = at + d; } at += span; continue; }
        int64_t *mask = dense_int(index), total = numel(index), hits = 0;
        for (int64_t m = 0; m < total; m++) hits += mask[m] != 0;
        for (int d = 0; d < span; d++) {
            int64_t *where = need_memory((size_t)hits * 8), inner = extent_after(index, d), filled = 0;
            for (int64_t m = 0; m < total; m++) if (mask[m]) where[filled++] = m / inner % index->dims[d];
            expanded[slots] = view_dense(DT_INT64, 1, &hits, where);
            bool_indices[slots] = where;
            s->indexed[slots++] = at++;
        }
        free(mask);
    }
    bool masked = false;
    for (uint64_t k = 0; k < given; k++) masked = masked || list->list.values[k].dtype == DT_BOOL || list->list.values[k].dtype == DT_UINT8;
    if (code == OK && slots == 0) code = fail(E_NN_PARAM, "aclnn%s: no dimension has an index", call->op->name);
    for (int k = 0; k < slots && code == OK; k++) {
        if (expanded[k].nd > s->common_nd) {
            int shift = expanded[k].nd - s->common_nd;
            memmove(s->common + shift, s->common, (size_t)s->common_nd * sizeof *s->common);
            for (int d = 0; d < shift; d++) s->common[d] = 1;
            s->common_nd = expanded[k].nd;
        }
        for (int d = 0; d < expanded[k].nd && code == OK; d++) {
            int64_t *extent = &s->common[s->common_nd - expanded[k].nd + d], own = expanded[k].dims[d];
            if (*extent == 1) *extent = own;
            else if (own != 1 && own != *extent) code = fail(E_NN_PARAM, "aclnn%s: the index tensors cannot be broadcast together", call->op->name);
        }
    }
    s->points = 1;
    for (int d = 0; d < s->common_nd; d++) s->points *= s->common[d];
    bool adjacent = true;
    for (int k = 1; k < slots; k++) adjacent = adjacent && s->indexed[k] == s->indexed[k - 1] + 1;
    s->first = adjacent && slots ? s->indexed[0] : 0;
    for (int d = 0; d < self->nd; d++) {
        bool taken = false;
        for (int k = 0; k < slots; k++) taken = taken || s->indexed[k] == d;
        if (!taken) s->kept[s->kept_count++] = d;
    }
    if (code == OK && s->kept_count + s->common_nd > MAX_DIMS) code = fail(E_NN_PARAM, "aclnn%s: the result has too many dimensions", call->op->name);
    if (code == OK) {
        for (int k = 0; k < s->first; k++) s->dims[s->nd++] = self->dims[s->kept[k]];
        for (int d = 0; d < s->common_nd; d++) s->dims[s->nd++] = s->common[d];
        for (int k = s->first; k < s->kept_count; k++) s->dims[s->nd++] = self->dims[s->kept[k]];
    }
    if (code == OK && !call->planning)
        for (int k = 0; k < slots && code == OK; k++) {
            Tensor view = view_expand(&expanded[k], s->common_nd, s->common);
            s->values[s->count] = dense_int(&view);
            int64_t size = self->dims[s->indexed[k]], *v = s->values[s->count++];
            for (int64_t p = 0; p < s->points; p++) {
                if (v[p] < -size || v[p] >= size) { code = out_of_range(call, v[p], size); break; }
                if (v[p] < 0) v[p] += size;
            }
        }
    for (int k = 0; k < slots; k++) free(bool_indices[k]);
    if (code != OK) selection_free(s);
    if (code == OK && call->planning && masked) s->nd = -1; /* the shape is known only when it runs */
    return code;
}

static int64_t selected(const Selection *s, const Tensor *self, int64_t k) /* dense position in self of element k of the result */
{
    int64_t coordinates[MAX_DIMS], place[MAX_DIMS] = {0};
    for (int d = s->nd - 1; d >= 0; d--) {
        coordinates[d] = k % s->dims[d];
        k /= s->dims[d];
    }
    int64_t point = 0;
    for (int d = 0; d < s->common_nd; d++) point = point * s->common[d] + coordinates[s->first + d];
    for (int m = 0; m < s->kept_count; m++) place[s->kept[m]] = coordinates[m < s->first ? m : m + s->common_nd];
    for (int m = 0; m < s->count; m++) place[s->indexed[m]] = s->values[m][point];
    int64_t at = 0;
    for (int d = 0; d < self->nd; d++) at = at * self->dims[d] + place[d];
    return at;
}

int index_tensors(Call *call)
{
    const Tensor *self = TENSOR(0), *out = TENSOR(2);
    Selection s;
    CHECK(selection(call, self, &call->args[1], &s));
    if (s.nd >= 0 && (s.nd != out->nd || memcmp(s.dims, out->dims, (size_t)s.nd * sizeof *s.dims))) {
        selection_free(&s);
        REFUSE("aclnnIndex: out does not have the shape of the selection");
    }
    if (call->planning) return OK;
    Cells x = cells_of(self), y = {.is_float = x.is_float};
    int64_t count = numel(out);
    y.i = need_memory((size_t)count * 8);
    for (int64_t k = 0; k < count; k++) y.i[k] = x.i[selected(&s, self, k)];
    cells_put(out, y);
    cells_free(x), cells_free(y);
    selection_free(&s);
    return OK;
}

int index_put(Call *call)
{
    const Tensor *self = TENSOR(0), *source = TENSOR(2);
    Selection s;
    CHECK(selection(call, self, &call->args[1], &s));
    if (call->planning) {
        if (s.nd < 0) return OK;
        Tensor shape = {.nd = s.nd};
        memcpy(shape.dims, s.dims, sizeof s.dims);
        REQUIRE(broadcasts_to(source, &shape), "aclnnIndexPutImpl: values cannot be broadcast to the selection");
        return OK;
    }
    Tensor shape = view_dense(self->dtype, s.nd, s.dims, NULL);
    if (!broadcasts_to(source, &shape)) {
        selection_free(&s);
        return fail(E_AICORE, "aclnnIndexPutImpl: values cannot be broadcast to the selection");
    }
    Tensor view = view_expand(source, s.nd, s.dims);
    Cells y = cells_of(self), v = {.is_float = y.is_float};
    if (y.is_float) v.d = dense_double(&view);
    else v.i = dense_int(&view);
    for (int64_t k = 0, count = numel(&shape); k < count; k++) {
        int64_t at = selected(&s, self, k);
        if (!INT(3)) y.i[at] = v.i[k];
        else if (y.is_float) y.d[at] += v.d[k];
        else y.i[at] += v.i[k];
    }
    cells_put(self, y);
    cells_free(y), cells_free(v);
    selection_free(&s);
    return OK;
}

int masked_select(Call *call) /* out has room for all; its shape becomes that of the result */
{
    const Tensor *self = TENSOR(0), *mask = TENSOR(1);
    Tensor *out = TENSOR(2);
    REQUIRE(out->nd == 1 && is_contiguous(out) && out->dtype == self->dtype && (mask->dtype == DT_BOOL || mask->dtype == DT_UINT8), "aclnnMaskedSelect: out must be a contiguous vector of self's type, mask BOOL");
    int nd = self->nd > mask->nd ? self->nd : mask->nd;
    int64_t dims[MAX_DIMS], count = 1;
    for (int d = 0; d < nd; d++) {
        int64_t a = d < nd - self->nd ? 1 : self->dims[d - (nd - self->nd)], b = d < nd - mask->nd ? 1 : mask->dims[d - (nd - mask->nd)];
        REQUIRE(a == b || a == 1 || b == 1, "aclnnMaskedSelect: self and mask cannot be broadcast together");
        dims[d] = a == 1 ? b : a;
        count *= dims[d];
    }
    REQUIRE(numel(out) >= count, "aclnnMaskedSelect: out must have room for every element");
    call->synchronous = true;
    if (call->planning) return OK;
    Tensor values = view_expand(self, nd, dims), flags = view_expand(mask, nd, dims);
    Cells x = cells_of(&values);
    int64_t *m = dense_int(&flags), hits = 0;
    for (int64_t k = 0; k < count; k++)
        if (m[k]) x.i[hits++] = x.i[k];
    out->dims[0] = hits;
    cells_put(out, x);
    cells_free(x), free(m);
    return OK;
}
