/* Random numbers: Philox 4x32-10 with the seed as key and (offset, element) as counter, so that the same seed and offset
 * give the same numbers whatever the shape. */
#include "kernels.h"

#include <math.h>

static void philox(uint64_t seed, uint64_t offset, uint64_t block, uint32_t out[4])
{
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)offset, (uint32_t)(offset >> 32)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t low = (uint64_t)0xD2511F53u * counter[0], high = (uint64_t)0xCD9E8D57u * counter[2];
        uint32_t next[4] = {(uint32_t)(high >> 32) ^ counter[1] ^ key[0], (uint32_t)high, (uint32_t)(low >> 32) ^ counter[3] ^ key[1], (uint32_t)low};
        memcpy(counter, next, sizeof next);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    memcpy(out, counter, sizeof counter);
}

/* One number in [0, 1) per element: 24 bits, or 53 for double. */
static double *uniforms(uint64_t seed, uint64_t offset, int64_t count, bool wide)
{
    double *values = need_memory((size_t)count * 8);
    uint32_t words[4];
    for (int64_t k = 0; k < count; k++) {
        if (wide) {
            philox(seed, offset, (uint64_t)k, words);
            values[k] = (double)(((uint64_t)words[0] << 32 | words[1]) >> 11) * 0x1p-53;
        } else {
            if (k % 4 == 0) philox(seed, offset, (uint64_t)k / 4, words);
            values[k] = (double)(words[k % 4] >> 8) * 0x1p-24;
        }
    }
    return values;
}

int random_uniform(Call *call)
{
    const Tensor *self = TENSOR(0);
    REQUIRE(DOUBLE(1) <= DOUBLE(2), "aclnnInplaceUniform: from is greater than to");
    if (call->planning) return OK;
    double *u = uniforms((uint64_t)INT(3), (uint64_t)INT(4), numel(self), self->dtype == DT_DOUBLE);
    int digits = self->dtype == DT_FLOAT16 ? 11 : self->dtype == DT_BF16 ? 8 : 0;
    for (int64_t k = 0; k < numel(self); k++) {
        if (digits) u[k] = floor(ldexp(u[k], digits)) / ldexp(1, digits); /* or rounding could give `to` itself */
        u[k] = DOUBLE(1) + u[k] * (DOUBLE(2) - DOUBLE(1));
    }
    put_double(self, u);
    free(u);
    return OK;
}

int random_normal(Call *call)
{
    const Tensor *self = TENSOR(0);
    REQUIRE(is_floating(self->dtype) && DOUBLE(2) >= 0, "aclnnInplaceNormal: needs a floating tensor and std of at least 0");
    if (call->planning) return OK;
    int64_t count = numel(self);
    double *u = uniforms((uint64_t)INT(3), (uint64_t)INT(4), count + 1, true);
    for (int64_t k = 0; k < count; k += 2) { /* Box and Muller: two uniform numbers give two normal ones */
        double radius = sqrt(-2 * log(1 - u[k])), angle = 6.283185307179586 * u[k + 1];
        u[k] = DOUBLE(1) + DOUBLE(2) * radius * cos(angle);
        if (k + 1 < count) u[k + 1] = DOUBLE(1) + DOUBLE(2) * radius * sin(angle);
    }
    put_double(self, u);
    free(u);
    return OK;
}

int random_bernoulli(Call *call)
{
    const Tensor *self = TENSOR(0);
    double p = SCALAR(1)->d;
    REQUIRE(p >= 0 && p <= 1, "aclnnInplaceBernoulli: prob %g is not in 0..1", p);
    if (call->planning) return OK;
    double *u = uniforms((uint64_t)INT(2), (uint64_t)INT(3), numel(self), true);
    for (int64_t k = 0; k < numel(self); k++) u[k] = u[k] < p;
    put_double(self, u);
    free(u);
    return OK;
}

int random_integers(Call *call)
{
    const Tensor *self = TENSOR(0);
    int64_t from = INT(1), to = INT(2);
    REQUIRE(from < to, "aclnnInplaceRandom: from must be less than to");
    if (call->planning) return OK;
    int64_t *values = need_memory((size_t)numel(self) * 8);
    uint64_t range = (uint64_t)to - (uint64_t)from;
    for (int64_t k = 0; k < numel(self); k++) {
        uint32_t words[4];
        philox((uint64_t)INT(3), (uint64_t)INT(4), (uint64_t)k, words);
        values[k] = (int64_t)((uint64_t)from + ((uint64_t)words[0] << 32 | words[1]) % range);
    }
    put_int(self, values);
    free(values);
    return OK;
}

int random_permutation(Call *call)
{
    const Tensor *out = TENSOR(3);
    int64_t n = INT(0);
    REQUIRE(n >= 0 && out->nd == 1 && out->dims[0] == n, "aclnnRandperm: out must be a vector of n elements");
    if (call->planning) return OK;
    int64_t *values = need_memory((size_t)n * 8);
    for (int64_t k = 0; k < n; k++) values[k] = k;
    for (int64_t k = n - 1; k > 0; k--) {
        uint32_t words[4];
        philox((uint64_t)INT(1), (uint64_t)INT(2), (uint64_t)k, words);
        int64_t with = (int64_t)(((uint64_t)words[0] << 32 | words[1]) % (uint64_t)(k + 1)), held = values[k];
        values[k] = values[with];
        values[with] = held;
    }
    put_int(out, values);
    free(values);
    return OK;
}

/* ---- dropout: masks of bits, 1 means keep ---- */
static int64_t mask_bytes(int64_t count) { return (count + 127) / 128 * 128 / 8; }

static int check_mask(Call *call, const Tensor *mask, int64_t count)
{
    REQUIRE(mask->dtype == DT_UINT8 && is_contiguous(mask) && numel(mask) >= mask_bytes(count), "aclnn%s: the mask must be UINT8 with align(numel, 128) / 8 elements", call->op->name);
    return OK;
}

static void make_mask(const Tensor *mask, int64_t count, double p, uint64_t seed, uint64_t offset)
{
    double *u = uniforms(seed, offset, count, false);
    uint8_t *bits = (uint8_t *)mask->data;
    memset(bits, 0, (size_t)mask_bytes(count));
    for (int64_t k = 0; k < count; k++)
        if (u[k] >= p) bits[k / 8] |= (uint8_t)(1u << k % 8);
    free(u);
}

static void apply_mask(const Tensor *in, const Tensor *mask, double scale, const Tensor *out)
{
    double *x = dense_double(in);
    const uint8_t *bits = (const uint8_t *)mask->data;
    for (int64_t k = 0; k < numel(in); k++) x[k] = bits[k / 8] >> k % 8 & 1 ? x[k] * scale : 0;
    put_double(out, x);
    free(x);
}

int dropout(Call *call)
{
    const Tensor *input = TENSOR(0), *out = TENSOR(5), *mask = TENSOR(6);
    double p = DOUBLE(1);
    REQUIRE(p >= 0 && p <= 1, "aclnnDropout: p %g is not in 0..1", p);
    REQUIRE(same_shape(input, out), "aclnnDropout: out does not have the input's shape");
    CHECK(check_mask(call, mask, numel(input)));
    if (call->planning) return OK;
    if (!INT(2) || p == 0) return copy_values(call, out, input);
    if (p == 1) return fill_values(call, out, &(Scalar){.dtype = DT_INT64});
    make_mask(mask, numel(input), p, (uint64_t)INT(3), (uint64_t)INT(4));
    apply_mask(input, mask, 1 / (1 - p), out);
    return OK;
}

int dropout_mask(Call *call) /* DropoutGenMask; V2 has a data type before out */
{
    const Tensor *out = TENSOR(call->count - 1);
    int64_t count = 1;
    for (uint64_t k = 0; k < INTS(0)->size; k++) count *= INTS(0)->values[k];
    REQUIRE(DOUBLE(1) >= 0 && DOUBLE(1) <= 1, "aclnn%s: prob %g is not in 0..1", call->op->name, DOUBLE(1));
    CHECK(check_mask(call, out, count));
    if (!call->planning) make_mask(out, count, DOUBLE(1), (uint64_t)INT(2), (uint64_t)INT(3));
    return OK;
}

int dropout_apply(Call *call) /* DropoutDoMask takes a probability; DropoutBackward, variant 1, a scale */
{
    const Tensor *self = TENSOR(0), *mask = TENSOR(1), *out = TENSOR(3);
    double given = DOUBLE(2);
    REQUIRE(same_shape(self, out), "aclnn%s: out does not have the input's shape", call->op->name);
    CHECK(check_mask(call, mask, numel(self)));
    if (call->op->variant) REQUIRE(given == 0 || given >= 1, "aclnnDropoutBackward: scale %g is neither 0 nor at least 1", given);
    else REQUIRE(given >= 0 && given <= 1, "aclnnDropoutDoMask: prob %g is not in 0..1", given);
    if (call->planning) return OK;
    apply_mask(self, mask, call->op->variant ? given : given < 1 ? 1 / (1 - given) : 0, out);
    return OK;
}
