/* Discrete Fourier transforms of many rows at once: a vector holds the same place of LANES rows, so that every step is
   the same for all of them and nothing is shuffled. Included once by each level's file.

   Stockham's form: each pass reads one buffer and writes the other, and results come out in order. A buffer holds the
   real and the imaginary parts of a place next to each other: part 2j is real, 2j + 1 imaginary. */

typedef struct {
    const Fourier *how;
    const float *given;
    float *made;
    int failed;
} Transforms;

/* One pass by a radix without a formula of its own: every result from every operand. */
static void pass_any(const V *x, V *y, const float *roots, ptrdiff_t total, ptrdiff_t part, ptrdiff_t step, int radix,
                     float sign) {
    for (ptrdiff_t p = 0; p < part; p++)
        for (ptrdiff_t q = 0; q < step; q++)
            for (int k = 0; k < radix; k++) {
                V re = {0}, im = {0};
                for (int m = 0; m < radix; m++) {
                    const V *from = x + 2 * (q + step * (p + m * part));
                    ptrdiff_t turn = (total / radix * m * k) % total;
                    float c = roots[2 * turn], s = sign * roots[2 * turn + 1];
                    re += from[0] * c - from[1] * s;
                    im += from[0] * s + from[1] * c;
                }
                ptrdiff_t turn = p * k * step;
                float c = roots[2 * turn], s = sign * roots[2 * turn + 1];
                V *to = y + 2 * (q + step * (radix * p + k));
                to[0] = re * c - im * s, to[1] = re * s + im * c;
            }
}

#define TURNED(TO, RE, IM, C, S) ((TO)[0] = (RE) * (C) - (IM) * (S), (TO)[1] = (RE) * (S) + (IM) * (C))

static void pass_two(const V *x, V *y, const float *roots, ptrdiff_t half, ptrdiff_t step, float sign) {
    for (ptrdiff_t p = 0; p < half; p++) {
        float c = roots[2 * p * step], s = sign * roots[2 * p * step + 1];
        for (ptrdiff_t q = 0; q < step; q++) {
            const V *a = x + 2 * (q + step * p), *b = a + 2 * step * half;
            V *to = y + 2 * (q + step * 2 * p);
            V re = a[0] - b[0], im = a[1] - b[1];
            to[0] = a[0] + b[0], to[1] = a[1] + b[1];
            to += 2 * step;
            TURNED(to, re, im, c, s);
        }
    }
}

static void pass_three(const V *x, V *y, const float *roots, ptrdiff_t third, ptrdiff_t step, float sign) {
    const float sine = -sign * 0.866025403784f;
    for (ptrdiff_t p = 0; p < third; p++) {
        const float *one = roots + 2 * p * step, *two = roots + 4 * p * step;
        float c1 = one[0], s1 = sign * one[1], c2 = two[0], s2 = sign * two[1];
        for (ptrdiff_t q = 0; q < step; q++) {
            const V *a = x + 2 * (q + step * p), *b = a + 2 * step * third, *c = b + 2 * step * third;
            V *to = y + 2 * (q + step * 3 * p);
            V sum_re = b[0] + c[0], sum_im = b[1] + c[1];
            V turn_re = (b[1] - c[1]) * -sine, turn_im = (b[0] - c[0]) * sine;
            V base_re = a[0] - 0.5f * sum_re, base_im = a[1] - 0.5f * sum_im;
            to[0] = a[0] + sum_re, to[1] = a[1] + sum_im;
            to += 2 * step;
            TURNED(to, base_re + turn_re, base_im + turn_im, c1, s1);
            to += 2 * step;
            TURNED(to, base_re - turn_re, base_im - turn_im, c2, s2);
        }
    }
}

static void pass_four(const V *x, V *y, const float *roots, ptrdiff_t quarter, ptrdiff_t step, float sign) {
    for (ptrdiff_t p = 0; p < quarter; p++) {
        const float *one = roots + 2 * p * step, *two = roots + 4 * p * step, *three = roots + 6 * p * step;
        float c1 = one[0], s1 = sign * one[1], c2 = two[0], s2 = sign * two[1], c3 = three[0], s3 = sign * three[1];
        for (ptrdiff_t q = 0; q < step; q++) {
            const V *a = x + 2 * (q + step * p), *b = a + 2 * step * quarter, *c = b + 2 * step * quarter;
            const V *d = c + 2 * step * quarter;
            V *to = y + 2 * (q + step * 4 * p);
            V ac_re = a[0] + c[0], ac_im = a[1] + c[1], less_re = a[0] - c[0], less_im = a[1] - c[1];
            V bd_re = b[0] + d[0], bd_im = b[1] + d[1];
            V turn_re = (b[1] - d[1]) * sign, turn_im = (d[0] - b[0]) * sign;
            to[0] = ac_re + bd_re, to[1] = ac_im + bd_im;
            to += 2 * step;
            TURNED(to, less_re + turn_re, less_im + turn_im, c1, s1);
            to += 2 * step;
            TURNED(to, ac_re - bd_re, ac_im - bd_im, c2, s2);
            to += 2 * step;
            TURNED(to, less_re - turn_re, less_im - turn_im, c3, s3);
        }
    }
}

/* All passes; the result is in the buffer that is returned. */
static V *transform(V *x, V *y, const float *roots, ptrdiff_t total, float sign) {
    ptrdiff_t left = total, step = 1;
    while (left > 1) {
        int radix = left % 4 == 0 ? 4 : left % 2 == 0 ? 2 : left % 3 == 0 ? 3 : 5;
        while (left % radix) radix += 2;
        ptrdiff_t part = left / radix;
        if (radix == 4) pass_four(x, y, roots, part, step, sign);
        else if (radix == 2) pass_two(x, y, roots, part, step, sign);
        else if (radix == 3) pass_three(x, y, roots, part, step, sign);
        else pass_any(x, y, roots, total, part, step, radix, sign);
        V *other = x;
        x = y, y = other;
        left = part, step *= radix;
    }
    return x;
}

/* Rows of `count` floats that lie `row` apart become columns of vectors, `gap` of them for each place, and back. */
static void rows_in(V *to, ptrdiff_t gap, const float *from, ptrdiff_t row, ptrdiff_t column, ptrdiff_t count,
                    ptrdiff_t lanes) {
    ptrdiff_t j = 0;
    if (lanes == LANES && column == 1)
        for (; j + 4 <= count; j += 4)
            for (int l = 0; l < LANES; l += 4)
                transpose((float *)(to + j * gap) + l, gap * LANES, from + l * row + j, row);
    for (; j < count; j++) {
        float *place = (float *)(to + j * gap);
        for (ptrdiff_t l = 0; l < lanes; l++) place[l] = from[l * row + j * column];
        for (ptrdiff_t l = lanes; l < LANES; l++) place[l] = 0.0f;
    }
}

static void rows_out(float *to, ptrdiff_t row, ptrdiff_t column, const V *from, ptrdiff_t gap, ptrdiff_t count,
                     ptrdiff_t lanes) {
    ptrdiff_t j = 0;
    if (lanes == LANES && column == 1)
        for (; j + 4 <= count; j += 4)
            for (int l = 0; l < LANES; l += 4)
                transpose(to + l * row + j, row, (const float *)(from + j * gap) + l, gap * LANES);
    for (; j < count; j++) {
        const float *place = (const float *)(from + j * gap);
        for (ptrdiff_t l = 0; l < lanes; l++) to[l * row + j * column] = place[l];
    }
}

/* Complex rows: of a contiguous row both parts are one row of twice as many floats. */
static void complex_in(V *to, const float *from, ptrdiff_t row, ptrdiff_t column, ptrdiff_t count, ptrdiff_t lanes) {
    if (column == 2) {
        rows_in(to, 1, from, row, 1, 2 * count, lanes);
        return;
    }
    rows_in(to, 2, from, row, column, count, lanes);
    rows_in(to + 1, 2, from + 1, row, column, count, lanes);
}

static void complex_out(float *to, ptrdiff_t row, ptrdiff_t column, const V *from, ptrdiff_t count, ptrdiff_t lanes) {
    if (column == 2) {
        rows_out(to, row, 1, from, 1, 2 * count, lanes);
        return;
    }
    rows_out(to, row, column, from, 2, count, lanes);
    rows_out(to + 1, row, column, from + 1, 2, count, lanes);
}

/* Of z = a + ib, both transforms, at the places 0 to `count`: a's in `first`, b's in `second`. */
static void part_pairs(V *first, V *second, const V *z, ptrdiff_t total, ptrdiff_t count, float scale) {
    float half = 0.5f * scale;
    for (ptrdiff_t k = 0; k < count; k++) {
        const V *here = z + 2 * k, *there = z + 2 * (k ? total - k : 0);
        first[2 * k] = (here[0] + there[0]) * half, first[2 * k + 1] = (here[1] - there[1]) * half;
        second[2 * k] = (here[1] + there[1]) * half, second[2 * k + 1] = (there[0] - here[0]) * half;
    }
}

/* The other way: z from halves of two such transforms, whose places without an imaginary part lose it. */
static void join_pairs(V *z, const V *first, const V *second, ptrdiff_t total) {
    for (ptrdiff_t k = 0; k <= total / 2; k++) {
        int real = k == 0 || 2 * k == total;
        V a = first[2 * k], b = second[2 * k];
        V turned_a = real ? splat(0.0f) : first[2 * k + 1], turned_b = real ? splat(0.0f) : second[2 * k + 1];
        z[2 * k] = a - turned_b, z[2 * k + 1] = turned_a + b;
        if (!real) z[2 * (total - k)] = a + turned_b, z[2 * (total - k) + 1] = b - turned_a;
    }
}

/* The rows of one vector: (outer, places, inner) with `inner` > 1 has its rows along `inner`. */
static void transforms_share(void *work, ptrdiff_t begin, ptrdiff_t end, int share) {
    Transforms *it = work;
    const Fourier *how = it->how;
    (void)share;
    ptrdiff_t n = how->total, half = n / 2 + 1, inner = how->inner;
    ptrdiff_t from_places = how->kind == HALF_TO_REAL ? half : n, to_places = how->kind == REAL_TO_HALF ? half : n;
    ptrdiff_t from_size = how->kind == REAL_TO_HALF || how->kind == REAL_TO_FULL ? 1 : 2;
    ptrdiff_t to_size = how->kind == HALF_TO_REAL ? 1 : 2;
    int paired = how->kind != COMPLEX_TO_COMPLEX;
    /* Two buffers for the passes and, for pairs, two for their halves. */
    V *memory = NULL;
    size_t places = 2 * (size_t)n * (paired ? 4 : 2) + 2;
    if (posix_memalign((void **)&memory, 64, places * sizeof(V))) {
        it->failed = 1;
        return;
    }
    V *x = memory, *y = x + 2 * n, *first = y + 2 * n, *second = first + 2 * n;
    for (ptrdiff_t v = begin; v < end; v++) {
        /* Which rows these are: groups never cross from one outer index to the next, unless there is no inner one. */
        ptrdiff_t across = inner == 1 ? how->outer : inner;
        ptrdiff_t each = paired ? 2 * LANES : LANES, in_group = (across + each - 1) / each;
        ptrdiff_t group = v / in_group, start = v % in_group * each;
        ptrdiff_t rows = across - start < each ? across - start : each;
        ptrdiff_t from_row = (inner == 1 ? from_places : 1) * from_size, to_row = (inner == 1 ? to_places : 1) * to_size;
        ptrdiff_t from_column = inner * from_size, to_column = inner * to_size;
        const float *given = it->given + group * from_places * inner * from_size + start * from_row;
        float *made = it->made + group * to_places * inner * to_size + start * to_row;
        if (!paired) {
            complex_in(x, given, from_row, from_column, n, rows);
            V *z = transform(x, y, how->roots, n, how->sign);
            if (how->scale != 1.0f)
                for (ptrdiff_t i = 0; i < 2 * n; i++) z[i] *= how->scale;
            complex_out(made, to_row, to_column, z, n, rows);
            continue;
        }
        /* The second halves of pairs come from the second half of the rows. */
        ptrdiff_t firsts = rows < 2 * LANES ? (rows + 1) / 2 : LANES, seconds = rows - firsts;
        if (how->kind == HALF_TO_REAL) {
            complex_in(first, given, from_row, from_column, half, firsts);
            complex_in(second, given + firsts * from_row, from_row, from_column, half, seconds);
            join_pairs(x, first, second, n);
        } else {
            rows_in(x, 2, given, from_row, from_column, n, firsts);
            rows_in(x + 1, 2, given + firsts * from_row, from_row, from_column, n, seconds);
        }
        V *z = transform(x, y, how->roots, n, how->sign);
        if (how->kind == HALF_TO_REAL) {
            if (how->scale != 1.0f)
                for (ptrdiff_t i = 0; i < 2 * n; i++) z[i] *= how->scale;
            rows_out(made, to_row, to_column, z, 2, n, firsts);
            rows_out(made + firsts * to_row, to_row, to_column, z + 1, 2, n, seconds);
        } else {
            part_pairs(first, second, z, n, to_places, how->scale);
            complex_out(made, to_row, to_column, first, to_places, firsts);
            complex_out(made + firsts * to_row, to_row, to_column, second, to_places, seconds);
        }
    }
    free(memory);
}

static int fourier(const Fourier *how, float *made, const float *given) {
    Transforms it = {how, given, made, 0};
    ptrdiff_t across = how->inner == 1 ? how->outer : how->inner, groups = how->inner == 1 ? 1 : how->outer;
    ptrdiff_t each = how->kind == COMPLEX_TO_COMPLEX ? LANES : 2 * LANES;
    ptrdiff_t count = (across + each - 1) / each * groups;
    pool_run(transforms_share, &it, count, 1 + SHARE / (how->total * LANES + 1));
    return it.failed ? NO_MEMORY : 0;
}
