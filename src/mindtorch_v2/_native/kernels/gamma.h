/* The logarithm of the gamma function and its first two derivatives. Included once by each level's file. */

/* Arguments below this are moved up one by one; above it the expansion has float32's digits. */
#define FAR_UP 8.0f

INLINE V log_gamma(V x) {
    for (int i = 0; i < LANES; i++) {
        int sign;
        x[i] = lgammaf_r(x[i], &sign);
    }
    return x;
}

/* Left of zero by reflection; at zero infinite with the opposite sign, at other poles NaN. */
static float digamma_left(float given) {
    double x = given, at = 1.0 - x, below = 0.0;
    if (given == 0.0f) return copysignf(INFINITY, -given);
    if (x == floor(x) || x != x) return NAN;
    for (; at < 10.0; at += 1.0) below += 1.0 / at;
    double s = 1.0 / (at * at), series = s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s / 240)));
    return (float)(log(at) - 0.5 / at - series - below - 3.14159265358979323846 / tan(3.14159265358979323846 * (x - rint(x))));
}

INLINE V digamma(V x) {
    V at = x, below = splat(0.0f);
    for (int i = 0; i < (int)FAR_UP; i++) {
        I low = at < FAR_UP;
        below += choose(low, 1.0f / at, splat(0.0f));
        at += choose(low, splat(1.0f), splat(0.0f));
    }
    V s = 1.0f / (at * at);
    V series = s * (0.083333333f - s * (0.0083333333f - s * 0.003968254f));
    V made = logarithm(at) - 0.5f / at - series - below;
    I left = x <= 0.0f;
    for (int i = 0; i < LANES; i++)
        if (left[i]) made[i] = digamma_left(x[i]);
    return made;
}

static float trigamma_left(float given) {
    double x = given, at = 1.0 - x, below = 0.0;
    if (x == floor(x)) return INFINITY;
    for (; at < 10.0; at += 1.0) below += 1.0 / (at * at);
    double s = 1.0 / (at * at), sine = sin(3.14159265358979323846 * (x - rint(x)));
    double far = 1.0 / at + 0.5 * s + s / at * (1.0 / 6 - s * (1.0 / 30 - s * (1.0 / 42 - s / 30)));
    return (float)(9.86960440108935861883 / (sine * sine) - far - below);
}

INLINE V trigamma(V x) {
    V at = x, below = splat(0.0f);
    for (int i = 0; i < (int)FAR_UP; i++) {
        I low = at < FAR_UP;
        below += choose(low, 1.0f / (at * at), splat(0.0f));
        at += choose(low, splat(1.0f), splat(0.0f));
    }
    V s = 1.0f / (at * at), one = 1.0f / at;
    V made = below + one + 0.5f * s + s * one * (0.16666667f - s * (0.033333333f - s * 0.023809524f));
    I left = x <= 0.0f;
    for (int i = 0; i < LANES; i++)
        if (left[i]) made[i] = trigamma_left(x[i]);
    return made;
}
