/* Vectors of float32 for one level of instructions, and functions of them. Included once by each level's file.

   GCC's vector extension is lowered to whatever the level has. The polynomials are fitted to relative error below half
   a unit in the last place of float32; with their roundings the functions are within 2 units. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, unused))

typedef float V __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t I __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t U __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* Less zero and not plus: a compiler knows that it changes nothing, not even the sign of a zero. */
INLINE V splat(float x) { return x - (V){}; }
INLINE V load(const float *p) { return *(const V *)p; }
INLINE void store(float *p, V x) { *(V *)p = x; }
INLINE V choose(I mask, V yes, V no) { return (V)(((I)yes & mask) | ((I)no & ~mask)); }
INLINE V with_sign(V x, V of) { return (V)((I)x | ((I)of & (int32_t)0x80000000)); } /* of a number that has it, or none yet */
INLINE V absolute(V x) { return (V)((I)x & 0x7fffffff); }
INLINE V larger(V a, V b) { return choose(a > b, a, b); }    /* b if either is NaN */
INLINE V smaller(V a, V b) { return choose(a < b, a, b); }

/* The first `count` numbers, the rest filled up. */
INLINE V load_some(const float *p, ptrdiff_t count, float fill) {
    float all[LANES];
    for (int i = 0; i < LANES; i++) all[i] = fill;
    memcpy(all, p, (size_t)count * sizeof(float));
    return load(all);
}
INLINE void store_some(float *p, V x, ptrdiff_t count) {
    float all[LANES];
    store(all, x);
    memcpy(p, all, (size_t)count * sizeof(float));
}
/* A vector's worth, or the `count` numbers that are left if those are fewer. */
INLINE V next(const float *p, ptrdiff_t count) {
    if (count >= LANES) return load(p);
    return load_some(p, count, 0.0f);
}
INLINE void put(float *p, V x, ptrdiff_t count) {
    if (count >= LANES) store(p, x);
    else store_some(p, x, count);
}

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
#if defined(__clang__) || __GNUC__ >= 12
#define MIX(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int32_t Places __attribute__((vector_size(16)));
#define MIX(a, b, i, j, k, l) __builtin_shuffle(a, b, (Places){i, j, k, l})
#endif

/* By halves, so that the order does not depend on the compiler. */
INLINE float total(V x) {
    Four a[LANES / 4];
    store((float *)a, x);
#pragma GCC unroll 2
    for (int half = LANES / 8; half; half /= 2)
#pragma GCC unroll 2
        for (int i = 0; i < half; i++) a[i] += a[i + half];
    Four pairs = a[0] + MIX(a[0], a[0], 2, 3, 2, 3);
    return pairs[0] + pairs[1];
}
INLINE float largest(V x) {
    float a[LANES];
    store(a, x);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) a[i] = a[i] > a[i + half] ? a[i] : a[i + half];
    return a[0];
}

INLINE V root(V x) {
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) x[i] = sqrtf(x[i]);
    return x;
}

/* p * 2**n for a whole n, which is also there as the last bits of `n` plus 1.5 * 2**23. */
INLINE V times_power(V p, V n, V bits) {
#if LANES == 16
    (void)bits;
    return (V)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
    /* In two factors: one alone would leave the range of exponents before the result does. */
    I whole = (I)((U)bits - 0x4b400000u), half = whole >> 1;
    (void)n;
    return p * (V)(((U)half + 127u) << 23) * (V)(((U)(whole - half) + 127u) << 23);
#endif
}

/* e**x = 2**n e**r with |r| <= ln(2) / 2; n is found by adding a number so large that the sum's last bit is worth 1. */
INLINE V exponential(V x) {
    const float shift = 12582912.0f;
    x = choose(x > 89.0f, splat(89.0f), choose(x < -104.0f, splat(-104.0f), x));
    V t = x * 1.44269504f + shift;
    V n = t - shift;
    V r = x - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;
    V p = splat(0.0013950489f);
    p = p * r + 0.0083688896f;
    p = p * r + 0.041666206f;
    p = p * r + 0.16666519f;
    p = p * r + 0.5f;
    p = p * (r * r) + r + 1.0f;
    return times_power(p, n, t);
}

INLINE V logarithm(V x) {
    I tiny = (x < 1.17549435e-38f) & (x > 0.0f);
    V y = choose(tiny, x * 8388608.0f, x);
    U bits = (U)y;
    /* The mantissa in [sqrt(1/2), sqrt(2)). */
    U moved = bits - 0x3f3504f3u;
    V e = __builtin_convertvector((I)moved >> 23, V) - choose(tiny, splat(23.0f), splat(0.0f));
    V r = (V)((moved & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    V p = splat(0.067466012f);
    p = p * r - 0.11675641f;
    p = p * r + 0.11888175f;
    p = p * r - 0.12405591f;
    p = p * r + 0.14219551f;
    p = p * r - 0.16667996f;
    p = p * r + 0.20002119f;
    p = p * r - 0.2500001f;
    p = p * r + 0.33333313f;
    V s = r * r;
    V made = e * 0.693145752f + (r - (0.5f * s - (p * r * s + e * 1.42860677e-6f)));
    made = choose(x == INFINITY, x, made);
    made = choose(x == 0.0f, splat(-INFINITY), made);
    return choose((x < 0.0f) | (x != x), splat(NAN), made);
}

INLINE V hyperbolic_tangent(V x) {
    V size = absolute(x), s = x * x;
    V p = splat(0.0021475369f);
    p = p * s - 0.0081826739f;
    p = p * s + 0.021702967f;
    p = p * s - 0.053947204f;
    p = p * s + 0.1333321f;
    p = p * s - 0.33333331f;
    V near = size + size * s * p;
    V far = 1.0f - 2.0f / (exponential(smaller(size, splat(20.0f)) * 2.0f) + 1.0f);
    return choose(x != x, x, with_sign(choose(size < 0.625f, near, far), x));
}

INLINE V logistic(V x) { return 1.0f / (1.0f + exponential(-x)); }

INLINE V error_function(V x) {
    V size = absolute(x), s = x * x;
    V p = splat(7.853858e-5f);
    p = p * s - 0.00080101925f;
    p = p * s + 0.0051883276f;
    p = p * s - 0.026853812f;
    p = p * s + 0.11283585f;
    p = p * s - 0.37612626f;
    p = p * s + 0.12837917f;
    V near = x + x * p;
    V t = smaller(size, splat(4.0f));
    V q = splat(-2.1445592e-5f);
    q = q * t + 0.00043853022f;
    q = q * t - 0.004190857f;
    q = q * t + 0.025171812f;
    q = q * t - 0.10836156f;
    q = q * t - 0.63327241f;
    q = q * t - 0.12955204f;
    V far = 1.0f - exponential(q * t + 0.00018246049f - t);
    return choose(size < 0.97f, near, choose(x != x, x, with_sign(far, x)));
}

/* Four vectors of four numbers, exchanged: `to[i][j] = from[j][i]`, rows of both at the given distances. */
INLINE void transpose(float *to, ptrdiff_t to_step, const float *from, ptrdiff_t from_step) {
    Four a = *(const Four *)from, b = *(const Four *)(from + from_step), c = *(const Four *)(from + 2 * from_step);
    Four d = *(const Four *)(from + 3 * from_step);
    Four ab = MIX(a, b, 0, 4, 1, 5), other_ab = MIX(a, b, 2, 6, 3, 7);
    Four cd = MIX(c, d, 0, 4, 1, 5), other_cd = MIX(c, d, 2, 6, 3, 7);
    *(Four *)to = MIX(ab, cd, 0, 1, 4, 5);
    *(Four *)(to + to_step) = MIX(ab, cd, 2, 3, 6, 7);
    *(Four *)(to + 2 * to_step) = MIX(other_ab, other_cd, 0, 1, 4, 5);
    *(Four *)(to + 3 * to_step) = MIX(other_ab, other_cd, 2, 3, 6, 7);
}
