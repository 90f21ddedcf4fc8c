/* Between float32 and the floats of 16 bits, and between common types. Included once by each level's file. */

/* To the nearest, of two as near the one with an even last bit; NaN stays one. */
INLINE uint16_t bfloat16_of(uint32_t bits) {
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 & 0x8000u) | 0x7fc0u : rounded);
}

static void to_bfloat16(uint16_t *made, const float *given, ptrdiff_t count) {
    const uint32_t *bits = (const uint32_t *)given;
    for (ptrdiff_t i = 0; i < count; i++) made[i] = bfloat16_of(bits[i]);
}

static void of_bfloat16(float *made, const uint16_t *given, ptrdiff_t count) {
    uint32_t *bits = (uint32_t *)made;
    for (ptrdiff_t i = 0; i < count; i++) bits[i] = (uint32_t)given[i] << 16;
}

#define CONVERSION_LOOP(NAME, TO, FROM, RESULT)                                                                        \
    static void converted_##NAME(TO *made, const FROM *given, ptrdiff_t count) {                                       \
        for (ptrdiff_t i = 0; i < count; i++) {                                                                        \
            FROM x = given[i];                                                                                         \
            made[i] = (TO)(RESULT);                                                                                    \
        }                                                                                                              \
    }
PLAIN_CONVERSIONS(CONVERSION_LOOP)

#if defined(WITH_LEVELS) && LANES >= 8
#define WITH_HALF 1
static void to_float16(uint16_t *made, const float *given, ptrdiff_t count) {
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(made + i), _mm256_cvtps_ph(_mm256_loadu_ps(given + i), 0));
    for (; i < count; i++) made[i] = (uint16_t)_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(given[i]), 0));
}
static void of_float16(float *made, const uint16_t *given, ptrdiff_t count) {
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(made + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(given + i))));
    for (; i < count; i++) made[i] = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(given[i])));
}
#elif defined(__aarch64__)
#define WITH_HALF 1
static void to_float16(uint16_t *made, const float *given, ptrdiff_t count) {
    __fp16 *halves = (__fp16 *)made;
    for (ptrdiff_t i = 0; i < count; i++) halves[i] = (__fp16)given[i];
}
static void of_float16(float *made, const uint16_t *given, ptrdiff_t count) {
    const __fp16 *halves = (const __fp16 *)given;
    for (ptrdiff_t i = 0; i < count; i++) made[i] = (float)halves[i];
}
#endif

/* Two operands in one pass, without float32 in memory. */
#if defined(WITH_LEVELS) && (LANES == 8 || LANES == 16)
#if LANES == 16
INLINE V load_halves(const uint16_t *x) { return (V)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)x)); }
INLINE void store_halves(uint16_t *to, V x) { _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph((__m512)x, 0)); }
#else
INLINE V load_halves(const uint16_t *x) { return (V)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x)); }
INLINE void store_halves(uint16_t *to, V x) { _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph((__m256)x, 0)); }
#endif
#define HALVES_LOOP(KIND)                                                                                              \
    static void halves_##KIND(uint16_t *made, const uint16_t *a, const uint16_t *b, ptrdiff_t count) {                 \
        ptrdiff_t i = 0;                                                                                               \
        for (; i + LANES <= count; i += LANES)                                                                         \
            store_halves(made + i, binary_of(KIND, load_halves(a + i), load_halves(b + i)));                           \
        if (i == count) return;                                                                                        \
        uint16_t x[LANES] = {0}, y[LANES] = {0};                                                                       \
        memcpy(x, a + i, sizeof *x * (size_t)(count - i)), memcpy(y, b + i, sizeof *y * (size_t)(count - i));          \
        store_halves(x, binary_of(KIND, load_halves(x), load_halves(y)));                                              \
        memcpy(made + i, x, sizeof *x * (size_t)(count - i));                                                          \
    }
HALVES_LOOP(ADD) HALVES_LOOP(SUBTRACT) HALVES_LOOP(MULTIPLY) HALVES_LOOP(DIVIDE)

static int binary_halves(enum Binary kind, uint16_t *made, const uint16_t *a, const uint16_t *b, ptrdiff_t count) {
    switch (kind) {
    case ADD: halves_ADD(made, a, b, count); return 1;
    case SUBTRACT: halves_SUBTRACT(made, a, b, count); return 1;
    case MULTIPLY: halves_MULTIPLY(made, a, b, count); return 1;
    case DIVIDE: halves_DIVIDE(made, a, b, count); return 1;
    default: return 0;
    }
}
#else
static int binary_halves(enum Binary kind, uint16_t *made, const uint16_t *a, const uint16_t *b, ptrdiff_t count) {
    (void)kind, (void)made, (void)a, (void)b, (void)count;
    return 0;
}
#endif

typedef struct {
    enum Conversion kind;
    void *made;
    const void *given;
} Converted;

static void convert_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Converted *it = work;
    (void)share;
    ptrdiff_t count = end - begin;
    switch (it->kind) {
    case TO_BFLOAT16: to_bfloat16((uint16_t *)it->made + begin, (const float *)it->given + begin, count); break;
#define CONVERSION_CASE(NAME, TO, FROM, RESULT)                                                                        \
    case NAME: converted_##NAME((TO *)it->made + begin, (const FROM *)it->given + begin, count); break;
    PLAIN_CONVERSIONS(CONVERSION_CASE)
    case OF_BFLOAT16: of_bfloat16((float *)it->made + begin, (const uint16_t *)it->given + begin, count); break;
#ifdef WITH_HALF
    case TO_FLOAT16: to_float16((uint16_t *)it->made + begin, (const float *)it->given + begin, count); break;
    case OF_FLOAT16: of_float16((float *)it->made + begin, (const uint16_t *)it->given + begin, count); break;
#endif
    default: break;
    }
}

/* 0 for what this level cannot do. */
static int convert(enum Conversion kind, void *made, const void *given, ptrdiff_t count) {
#ifndef WITH_HALF
    if (kind == TO_FLOAT16 || kind == OF_FLOAT16) return 0;
#endif
    Converted it = {kind, made, given};
    pool_run(convert_share, &it, count, SHARE);
    return 1;
}
