/* Convolutions and their gradients over a backend's micro-kernels against `ref`, with random geometry: arrays
 * have exactly the required size, so that a sanitizer detects every access outside. */
#include "ag_kernels.h"
#include "ag_rng.h"

#include "tiles/conv2d.c"
#include "tiles/conv2d_dw.c"
#include "tiles/conv2d_dx.c"
#include "tiles/conv2d_pool_dx.c"
#include "tiles/epilogue.c"
#if AG_GENERAL_TILES /* the host */
#include "host/conv2d_pool.c"
#include "host/conv2d_pool_dw.c"
#else
#include "tiles/conv2d_pool.c"
#include "tiles/conv2d_pool_dw.c"
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GEOMETRIES = 1000 };
static uint32_t drawn, cases, wrong;

static int32_t random_between(int32_t low, int32_t high) {
    return low + (int32_t)(ag_rand_u32(1u, drawn++, 0u) % (uint32_t)(high - low + 1));
}

/* An array of multiples of 1/8, whose sums are exact in any order. */
static float *array(int32_t count) {
    float *made = (float *)malloc((size_t)count * sizeof(float));
    for (int32_t i = 0; i < count; i++) {
        made[i] = (float)random_between(-8, 8) * 0.125f;
    }
    return made;
}

static float *copy(const float *from, int32_t count) {
    float *made = (float *)malloc((size_t)count * sizeof(float));
    memcpy(made, from, (size_t)count * sizeof(float));
    return made;
}

static void compare(const char *name, const float *actual, const float *expected, int32_t count,
                    const ag_conv2d_shape *s) {
    bool same = true;
    for (int32_t i = 0; i < count; i++) {
        same = same && (fabsf(actual[i] - expected[i]) <= 1e-3f || (isnan(actual[i]) && isnan(expected[i])));
    }
    cases++;
    if (!same) {
        wrong++;
        printf("%s differs: image %d x %d x %d, %d channels of %d x %d, x_w %d, x_c %d, groups %d\n", name,
               s->h, s->w, s->c, s->o, s->kh, s->kw, s->x_w, s->x_c, s->groups);
    }
}

/* Channel-last images with gaps between pixels, or channel-first images. */
static void random_layout(ag_conv2d_shape *s) {
    const int32_t order = random_between(0, 2);
    s->x_c = order == 2 ? s->h * s->w : 1;
    s->x_w = order == 2 ? 1 : s->c + 2 * order;
    s->x_h = order == 2 ? s->w : s->w * s->x_w + order;
    s->x_n = order == 2 ? s->c * s->x_c : s->h * s->x_h + order;
    s->ldy = s->o + 2 * random_between(0, 1);
}

static bool draw(ag_conv2d_shape *s) {
    const bool padded = random_between(0, 1) == 1, dilated = random_between(0, 3) == 0;
    const int32_t pads = padded ? 3 : 0, dilation = dilated ? 3 : 1;
    s->groups = random_between(0, 4) == 0 ? random_between(1, 3) : 1;
    s->c = s->groups * random_between(1, random_between(0, 1) == 0 ? 3 : 9);
    s->o = s->groups * random_between(1, 9);
    s->h = random_between(1, 10);
    s->w = random_between(1, 10);
    s->kh = random_between(1, 5);
    s->kw = random_between(1, 5);
    s->stride_h = random_between(1, 3);
    s->stride_w = random_between(1, 3);
    s->dilation_h = random_between(1, dilation);
    s->dilation_w = random_between(1, dilation);
    s->pad_top = random_between(0, pads);
    s->pad_left = random_between(0, pads);
    const int32_t room_h = s->h + s->pad_top + random_between(0, pads) - (s->kh - 1) * s->dilation_h - 1;
    const int32_t room_w = s->w + s->pad_left + random_between(0, pads) - (s->kw - 1) * s->dilation_w - 1;
    s->oh = room_h / s->stride_h + 1;
    s->ow = room_w / s->stride_w + 1;
    random_layout(s);
    return room_h >= 0 && room_w >= 0;
}

static ag_conv2d_pool_shape pooled(const ag_conv2d_shape *s) {
    ag_conv2d_pool_shape p = {s->h,
                              s->w,
                              s->c,
                              s->oh,
                              s->ow,
                              s->o,
                              s->kh,
                              s->kw,
                              s->stride_h,
                              s->stride_w,
                              s->pad_top,
                              s->pad_left,
                              s->dilation_h,
                              s->dilation_w,
                              s->x_n,
                              s->x_h,
                              s->x_w,
                              s->x_c,
                              random_between(1, 3),
                              random_between(1, 3),
                              0,
                              0,
                              0,
                              0};
    p.pool_stride_h = p.pool_h + random_between(0, 1);
    p.pool_stride_w = p.pool_w + random_between(0, 1);
    p.ph = (p.oh + p.pool_stride_h - 1) / p.pool_stride_h;
    p.pw = (p.ow + p.pool_stride_w - 1) / p.pool_stride_w;
    return p;
}

static void pooled_kernels(const ag_conv2d_shape *s, float *x, int32_t span, const float *w, float *dw,
                           int32_t weights, int32_t n, float alpha, float beta) {
    const ag_conv2d_pool_shape p = pooled(s);
    const int32_t count = n * p.ph * p.pw * p.o;
    float *bias = array(p.o), *y = array(count), *want = array(count), *dw_want = copy(dw, weights);
    uint8_t *index = (uint8_t *)malloc((size_t)count), *index_want = (uint8_t *)malloc((size_t)count);
    const int32_t spoiled = random_between(0, span - 1);
    const float kept = x[spoiled];
    x[spoiled] = random_between(0, 1) == 0 ? NAN : kept;
    AG_SYMBOL(conv2d_pool_f32)(x, w, bias, y, index, n, &p);
    ag_conv2d_pool_f32_ref(x, w, bias, want, index_want, n, &p);
    compare("pool", y, want, count, s);
    wrong += memcmp(index, index_want, (size_t)count) != 0;
    x[spoiled] = kept;
    float *dy = array(count);
    ag_conv2d_pool_dw_by_rows(x, dy, index_want, dw, n, &p, alpha, beta);
    ag_conv2d_pool_dw_f32_ref(x, dy, index_want, dw_want, n, &p, alpha, beta);
    compare("pool dw", dw, dw_want, weights, s);
    if (s->x_n == s->h * s->w * s->c && s->x_c == 1) {
        float *dx = array(span), *dx_want = array(span);
        ag_conv2d_pool_dx_by_rows(dy, index_want, w, dx, n, &p);
        ag_conv2d_pool_dx_f32_ref(dy, index_want, w, dx_want, n, &p);
        compare("pool dx", dx, dx_want, span, s);
        free(dx);
        free(dx_want);
    }
    free(bias);
    free(y);
    free(want);
    free(dw_want);
    free(index);
    free(index_want);
    free(dy);
}

static void kernels(const ag_conv2d_shape *s) {
    const int32_t n = random_between(1, 3), channels = s->c / s->groups;
    const int32_t span =
        (n - 1) * s->x_n + (s->h - 1) * s->x_h + (s->w - 1) * s->x_w + (s->c - 1) * s->x_c + 1;
    const int32_t results = (n * s->oh * s->ow - 1) * s->ldy + s->o,
                  weights = s->o * s->kh * s->kw * channels;
    const float alpha = (float)random_between(-2, 2) * 0.5f, beta = (float)random_between(-1, 1);
    float *x = array(span), *w = array(weights), *y = array(results), *want = copy(y, results);
    float *dy = array(results), *dx = array(span), *dx_want = copy(dx, span);
    float *dw = array(weights), *dw_want = copy(dw, weights);
    float *scale = array(s->o), *bias = array(s->o), *residual = array(results);
    const ag_epilogue epilogue = {
        random_between(0, 1) == 0 ? NULL : scale, random_between(0, 1) == 0 ? NULL : bias,
        random_between(0, 1) == 0 ? NULL : residual, 0.0f, (float)random_between(0, 2)};
    const ag_epilogue *const e = random_between(0, 2) == 0 ? NULL : &epilogue;
    AG_SYMBOL(conv2d_f32)(x, w, y, n, s, e);
    ag_conv2d_f32_ref(x, w, want, n, s, e);
    compare("conv2d", y, want, results, s);
    free(scale);
    free(bias);
    free(residual);
    ag_conv2d_dx_tiled(dy, w, dx, n, s);
    ag_conv2d_dx_f32_ref(dy, w, dx_want, n, s);
    compare("dx", dx, dx_want, span, s);
    ag_conv2d_dw_tiled(x, dy, dw, n, s, alpha, beta);
    ag_conv2d_dw_f32_ref(x, dy, dw_want, n, s, alpha, beta);
    compare("dw", dw, dw_want, weights, s);
    if (s->groups == 1) {
        pooled_kernels(s, x, span, w, dw, weights, n, alpha, beta);
    }
    free(x);
    free(w);
    free(y);
    free(want);
    free(dy);
    free(dx);
    free(dx_want);
    free(dw);
    free(dw_want);
}

int main(void) {
    for (int32_t i = 0; i < GEOMETRIES; i++) {
        ag_conv2d_shape s;
        if (draw(&s)) {
            kernels(&s);
        }
    }
    printf("%u cases, %u wrong\n", (unsigned)cases, (unsigned)wrong);
    return wrong == 0 ? 0 : 1;
}
