/* Maxima of windows of planes and where they are. Included once by each level's file. */

enum { WINDOWS_AT_ONCE = 256, FEW_WINDOWS = 8 };

/* One window after the other, for rows of few large ones. */
static void maxima_of_few(const Maxima *how, ptrdiff_t begin, ptrdiff_t end) {
    ptrdiff_t made = begin * how->out_height * how->out_width;
    for (ptrdiff_t plane = begin; plane < end; plane++)
        for (ptrdiff_t i = 0; i < how->out_height; i++)
            for (ptrdiff_t j = 0; j < how->out_width; j++, made++) {
                const float *x = how->given + plane * how->height * how->width;
                ptrdiff_t found = how->top[i] * how->width + how->left[j];
                float best = -INFINITY;
                for (ptrdiff_t r = how->top[i]; r < how->bottom[i]; r += how->down)
                    for (ptrdiff_t c = how->left[j]; c < how->right[j]; c += how->across) {
                        float here = x[r * how->width + c];
                        /* The first of equals, and the last NaN. */
                        if (here > best || here != here) best = here, found = r * how->width + c;
                    }
                how->made[made] = best, how->where[made] = found;
            }
}

/* Windows of a row of results side by side, an element of all of them at a time: nothing depends on what is larger. */
static void maxima(const Maxima *how, ptrdiff_t begin, ptrdiff_t end) {
    if (how->out_width < FEW_WINDOWS) {
        maxima_of_few(how, begin, end);
        return;
    }
    ptrdiff_t width = how->width, across = how->across;
    for (ptrdiff_t from = 0; from < how->out_width; from += WINDOWS_AT_ONCE) {
        ptrdiff_t count = least(WINDOWS_AT_ONCE, how->out_width - from);
        int32_t first[WINDOWS_AT_ONCE], last[WINDOWS_AT_ONCE], found[WINDOWS_AT_ONCE], longest = 0;
        float best[WINDOWS_AT_ONCE];
        for (ptrdiff_t j = 0; j < count; j++) {
            ptrdiff_t left = how->left[from + j], steps = (how->right[from + j] - left - 1) / across;
            first[j] = (int32_t)left, last[j] = (int32_t)(left + steps * across);
            if (steps >= longest) longest = (int32_t)steps + 1;
        }
        for (ptrdiff_t plane = begin; plane < end; plane++)
            for (ptrdiff_t i = 0; i < how->out_height; i++) {
                int32_t number = 0;
                for (ptrdiff_t j = 0; j < count; j++) best[j] = -INFINITY, found[j] = 0;
                for (ptrdiff_t r = how->top[i]; r < how->bottom[i]; r += how->down) {
                    const float *row = how->given + (plane * how->height + r) * width;
                    for (int32_t t = 0; t < longest; t++, number++) {
                        int32_t far = t * (int32_t)across;
                        for (ptrdiff_t j = 0; j < count; j++) {
                            /* A short window sees its last element again, which changes nothing. */
                            int32_t c = first[j] + far < last[j] ? first[j] + far : last[j];
                            float here = row[c];
                            int32_t better = (here > best[j]) | (here != here);
                            best[j] = better ? here : best[j];
                            found[j] = better ? number : found[j];
                        }
                    }
                }
                ptrdiff_t at = (plane * how->out_height + i) * how->out_width + from;
                for (ptrdiff_t j = 0; j < count; j++) {
                    ptrdiff_t c = first[j] + (ptrdiff_t)(found[j] % longest) * across;
                    how->made[at + j] = best[j];
                    how->where[at + j] = (how->top[i] + found[j] / longest * how->down) * width + least(c, last[j]);
                }
            }
    }
}
