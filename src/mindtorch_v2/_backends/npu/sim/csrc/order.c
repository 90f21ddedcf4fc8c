/* Sorting and the k largest. */
#include "kernels.h"

typedef struct { int64_t index; union { double d; int64_t i; }; } Entry;

static int compare_floats(const Entry *a, const Entry *b) /* a not-a-number is greater than every number */
{
    bool left = a->d != a->d, right = b->d != b->d;
    if (left || right) return left - right;
    return (a->d > b->d) - (a->d < b->d);
}

static int compare_ints(const Entry *a, const Entry *b) { return (a->i > b->i) - (a->i < b->i); }

/* Merge sort: equal elements keep their order, in both directions. */
static void merge_sort(Entry *entries, Entry *scratch, int64_t count, int (*compare)(const Entry *, const Entry *), bool descending)
{
    if (count < 2) return;
    int64_t half = count / 2, left = 0, right = half;
    merge_sort(entries, scratch, half, compare, descending);
    merge_sort(entries + half, scratch, count - half, compare, descending);
    for (int64_t k = 0; k < count; k++) {
        int order = left < half && right < count ? compare(&entries[left], &entries[right]) : left < half ? -1 : 1;
        bool take_left = left < half && (right >= count || (descending ? order >= 0 : order <= 0));
        scratch[k] = entries[take_left ? left++ : right++];
    }
    memcpy(entries, scratch, (size_t)count * sizeof *entries);
}

static int arrange(Call *call, int64_t given, int64_t k, bool descending, const Tensor *values, const Tensor *indices)
{
    const Tensor *self = TENSOR(0);
    int dim = wrap_dim(given, self->nd);
    REQUIRE(dim >= 0, "aclnn%s: dimension %lld does not exist", call->op->name, (long long)given);
    int64_t size = self->nd ? self->dims[dim] : 1, outer = extent_before(self, dim), inner = extent_after(self, dim), kept = k < 0 ? size : k;
    REQUIRE(kept <= size, "aclnn%s: k %lld is more than the %lld elements", call->op->name, (long long)kept, (long long)size);
    bool fits = values->nd == self->nd && same_shape(values, indices);
    for (int d = 0; fits && d < self->nd; d++) fits = values->dims[d] == (d == dim ? kept : self->dims[d]);
    REQUIRE(fits, "aclnn%s: an output has the wrong shape", call->op->name);
    call->operations = (uint64_t)numel(self) * 16;
    if (call->planning) return OK;
    Cells x = cells_of(self), y = {.is_float = x.is_float};
    y.i = need_memory((size_t)(outer * kept * inner) * 8);
    int64_t *where = need_memory((size_t)(outer * kept * inner) * 8);
    Entry *entries = need_memory((size_t)size * sizeof *entries), *scratch = need_memory((size_t)size * sizeof *scratch);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            for (int64_t m = 0; m < size; m++) entries[m] = (Entry){.index = m, .i = x.i[(o * size + m) * inner + i]};
            merge_sort(entries, scratch, size, x.is_float ? compare_floats : compare_ints, descending);
            for (int64_t m = 0; m < kept; m++) {
                y.i[(o * kept + m) * inner + i] = entries[m].i;
                where[(o * kept + m) * inner + i] = entries[m].index;
            }
        }
    cells_put(values, y);
    put_int(indices, where);
    cells_free(x), cells_free(y), free(where), free(entries), free(scratch);
    return OK;
}

int top_k(Call *call)
{
    REQUIRE(INT(1) >= 0, "aclnnTopk: k is negative");
    return arrange(call, INT(2), INT(1), INT(3), TENSOR(5), TENSOR(6)); /* sorted also where that is not asked for */
}

int sort(Call *call) { return arrange(call, INT(2), -1, INT(3), TENSOR(4), TENSOR(5)); }
