/* Convolution, depthwise convolution and products of quantised tensors: extreme values, zeros and limits, and
 * scales from those that shift to the left to those that shift everything out. */
#include "images.h"

enum { MAX_CHANNELS = 160 };

/* Zeros of x and y, and limits. */
static const int32_t encodings[][4] = {
    {0, 0, -128, 127}, {-128, -128, -128, 127}, {127, 5, -20, 50}, {3, 127, -128, 126}, {-7, -3, -3, 127}};

static void encode(compare_attributes *f, uint32_t number) {
    const int32_t *e = encodings[number % (sizeof encodings / sizeof *encodings)];
    f->x_zero = e[0];
    f->y_zero = e[1];
    f->low = e[2];
    f->high = e[3];
}

static int32_t bits(int32_t v) {
    int32_t n = 0;
    for (; v > 0; v /= 2) {
        n++;
    }
    return n;
}

/* Of each channel. */
typedef struct scales {
    const int32_t *bias, *multiplier;
    const int8_t *shift;
} scales;

/* Shifts are the last bytes of the words. */
static int32_t words_of(int32_t channels) {
    return 2 * channels + (channels + 3) / 4;
}

static scales scales_of(const compare_call *c, int32_t channels) {
    const int32_t *const words = (const int32_t *)(const void *)c->in[2];
    const int8_t *const end = (const int8_t *)(words + words_of(channels));
    const scales found = {words, words + channels, end - channels};
    return found;
}

/* Bias, multiplier and shift of each channel, for sums of `terms` products: most results are between the
 * limits, some shifts are the largest or the smallest possible. */
static void draw_scales(int32_t channels, int32_t terms, bool small, bool per_channel) {
    static int32_t words[3 * MAX_CHANNELS];
    int8_t *const shifts = (int8_t *)(words + words_of(channels)) - channels;
    const int32_t bias = small ? 100 : 10000, needed = bits(terms * 255 * (small ? 1 : 128) + bias);
    for (int32_t i = 0; i < channels; i++) {
        const uint32_t number = per_channel ? (uint32_t)i : 0u;
        const uint32_t u = compare_random(31u, number), kind = compare_random(32u, number) % 16u;
        const int32_t shift = 8 - needed + (int32_t)(u % 6u) - 2;
        words[i] = (int32_t)(compare_random(33u, (uint32_t)i) % (2u * (uint32_t)bias)) - bias;
        words[channels + i] = kind == 0u ? INT32_MAX : kind == 1u ? 0 : (int32_t)(1u << 30 | u >> 2);
        shifts[i] = (int8_t)(kind == 2u ? -31 : kind == 3u ? 31 - needed : shift);
    }
    compare_input_words(2, words, words_of(channels));
}

/* More convolutions: windows outside x, one row with more padding on the right. */
static const images more[] = {
    {1, 3, 4, 4, 5, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1},  {1, 3, 4, 4, 5, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1},
    {1, 1, 1, 4, 5, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1},  {1, 1, 1, 4, 5, 1, 1, 1, 1, 0, 0, 1, 0, 1, 1, 1},
    {2, 1, 9, 4, 5, 1, 4, 1, 1, 0, 0, 1, 2, 1, 1, 1},  {1, 1, 8, 8, 6, 1, 3, 1, 1, 0, 0, 1, 1, 1, 1, 1},
    {1, 1, 12, 4, 5, 1, 6, 1, 2, 0, 0, 0, 4, 1, 1, 1}, {1, 1, 1, 4, 5, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1}};

static void convolution(const compare_row *row, ag_conv2d_s8_fn *ref, const images *i, image_layout layout,
                        compare_attributes *f, bool small) {
    ag_conv2d_s8_fn *kernel = (ag_conv2d_s8_fn *)row->function;
    const ag_conv2d_shape *s = &f->conv2d_shape;
    compare_input_s8(0, array_layout(i, layout), false);
    compare_input_s8(1, weights_of(s), small);
    draw_scales(s->o, s->kh * s->kw * (s->c / s->groups), small, true);
    compare_output_s8(results_of(s, f->n));
    for (compare_call c = compare_exactly(); compare_next(&c, f);) {
        const scales t = scales_of(&c, s->o);
        (c.of_ref ? ref : kernel)(c.in_s8[0], c.in_s8[1], t.bias, t.multiplier, t.shift, c.out_s8, f->n,
                                  f->x_zero, f->y_zero, f->low, f->high, c.scratch, s);
    }
}

static void convolutions_of(const compare_row *row, ag_conv2d_s8_fn *ref, const images *table,
                            uint32_t count) {
    for (uint32_t i = 0; i < count + COMPARE_RANDOM; i++) {
        const images image = image_at(table, count, i);
        for (int32_t l = DENSE; l <= CHANNEL_FIRST; l++) {
            compare_attributes f = {.n = image.n, .conv2d_shape = shape_of(&image, (image_layout)l)};
            for (uint32_t k = 0; k < (l == DENSE ? 4u : 1u); k++) {
                encode(&f, i + k);
                if (compare_matches(row, &f)) {
                    convolution(row, ref, &image, (image_layout)l, &f, k % 2u == 1u);
                }
            }
        }
    }
}

COMPARE_CASES(conv2d_s8) {
    convolutions_of(row, ag_conv2d_s8_ref, convolutions, sizeof convolutions / sizeof *convolutions);
    convolutions_of(row, ag_conv2d_s8_ref, more, sizeof more / sizeof *more);
}

COMPARE_CASES(depthwise2d_s8) {
    convolutions_of(row, ag_depthwise2d_s8_ref, depthwise, sizeof depthwise / sizeof *depthwise);
}

COMPARE_CASES(depthwise2d_in_place_s8) {
    ag_conv2d_s8_fn *kernel = (ag_conv2d_s8_fn *)row->function;
    for (uint32_t i = 0; i < sizeof depthwise / sizeof *depthwise; i++) {
        compare_attributes f = {.n = depthwise[i].n, .conv2d_shape = shape_of(depthwise + i, DENSE)};
        const ag_conv2d_shape *s = &f.conv2d_shape;
        encode(&f, i);
        if (s->oh > s->h || s->ow > s->w || !compare_matches(row, &f)) {
            continue;
        }
        compare_input_s8(0, array_layout(depthwise + i, DENSE), false);
        compare_input_s8(1, weights_of(s), false);
        draw_scales(s->o, s->kh * s->kw, false, true);
        compare_output_in_place_s8(0);
        for (compare_call c = compare_exactly(); compare_next(&c, &f);) {
            const scales t = scales_of(&c, s->o);
            (c.of_ref ? ag_depthwise2d_s8_ref : kernel)(c.of_ref ? c.in_s8[0] : c.out_s8, c.in_s8[1], t.bias,
                                                        t.multiplier, t.shift, c.out_s8, f.n, f.x_zero,
                                                        f.y_zero, f.low, f.high, c.scratch, s);
        }
    }
}

static void product(const compare_row *row, compare_attributes *f, bool small) {
    ag_dense_s8_fn *kernel = (ag_dense_s8_fn *)row->function;
    compare_input_s8(0, compare_dense(f->m * f->k), false);
    compare_input_s8(1, compare_dense(f->n * f->k), small);
    draw_scales(f->n, f->k, small, f->per_channel != 0);
    compare_output_s8(compare_dense(f->m * f->n));
    for (compare_call c = compare_exactly(); compare_next(&c, f);) {
        const scales t = scales_of(&c, f->n);
        (c.of_ref ? ag_dense_s8_ref : kernel)(c.in_s8[0], c.in_s8[1], t.bias, t.multiplier, t.shift, c.out_s8,
                                              f->m, f->n, f->k, f->x_zero, f->y_zero, f->low, f->high,
                                              f->per_channel, c.scratch);
    }
}

COMPARE_CASES(dense_s8) {
    static const int32_t sizes[][3] = {{1, 1, 1},   {1, 10, 32}, {2, 5, 17},   {3, 33, 70},
                                       {4, 16, 64}, {7, 5, 9},   {1, 20, 250}, {5, 4, 3},
                                       {9, 13, 31}, {1, 3, 4},   {6, 150, 2},  {1, 11, 47}};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t k = 0; k < 8; k++) {
            compare_attributes f = {.m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2]};
            f.per_channel = k % 4u < 2u ? 1 : 0;
            encode(&f, i + k);
            if (compare_matches(row, &f)) {
                product(row, &f, k % 2u == 1u);
            }
        }
    }
}

/* Scales, as multipliers and shifts, from those of which all integers count to those of which one does. */
COMPARE_CASES(softmax_s8) {
    static const int32_t sizes[][2] = {{1, 1}, {3, 2}, {2, 10}, {5, 17}, {1, 33}, {1, 511}, {1, 520}};
    static const int32_t scales[][3] = {{1 << 30, 1, -255},
                                        {1374389535, 20, -1984},
                                        {1717986918, 23, -248},
                                        {INT32_MAX, 27, -15},
                                        {2013265920, 30, -1}};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t k = 0; k < 2 * sizeof scales / sizeof *scales; k++) {
            const int32_t *scale = scales[k / 2];
            compare_attributes f = {.m = sizes[i][0], .n = sizes[i][1]};
            ag_softmax_s8_fn *kernel = (ag_softmax_s8_fn *)row->function;
            f.multiplier = scale[0];
            f.shift = scale[1];
            f.least = scale[2];
            if (!compare_matches(row, &f)) {
                continue;
            }
            const compare_layout layout = compare_dense(f.m * f.n);
            compare_input_s8(0, layout, k % 2 == 1);
            compare_output_s8(layout);
            for (compare_call c = compare_exactly(); compare_next(&c, &f);) {
                (c.of_ref ? ag_softmax_s8_ref : kernel)(c.in_s8[0], c.out_s8, f.m, f.n, f.multiplier, f.shift,
                                                        f.least);
            }
        }
    }
}
