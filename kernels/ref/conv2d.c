/* Convolution over channel-last images, and depthwise convolution, which has a window for every channel: this
 * order of the sums is the specification. Weight (o, i, j, k) is o * filter + (i * kw + j) * tap + k elements
 * after the first one. */
#include "ag_kernels.h"

typedef float element;
#include "gradients.h"

static inline void forward(const float *x, const float *w, float *y, int32_t n, int32_t filter,
                           int32_t channels, int32_t tap, const ag_conv2d_shape *s,
                           const ag_epilogue *epilogue) {
    const int32_t outputs = s->o / s->groups;
    const float *const first = y;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                const ag_window window = ag_window_of(p, q, s);
                for (int32_t o = 0; o < s->o; o++) {
                    const float *group = x + (ptrdiff_t)(o / outputs) * channels * s->x_c;
                    const float *weights = w + (ptrdiff_t)o * filter;
                    const float sum = ag_window_sum(group, weights, &window, channels, tap, s);
                    y[o] = ag_finished(epilogue, sum, o, y + o - first);
                }
            }
        }
    }
}

void ag_conv2d_f32_ref(const float *x, const float *w, float *y, int32_t n, void *scratch,
                       const ag_conv2d_shape *shape, const ag_epilogue *epilogue) {
    (void)scratch;
    const int32_t channels = shape->c / shape->groups;
    forward(x, w, y, n, shape->kh * shape->kw * channels, channels, channels, shape, epilogue);
}

void ag_depthwise2d_f32_ref(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape,
                            const ag_epilogue *epilogue) {
    forward(x, w, y, n, 1, 1, shape->c, shape, epilogue);
}

void ag_conv2d_dx_f32_ref(const float *dy, const float *w, float *dx, int32_t n, void *scratch,
                          const ag_conv2d_shape *shape) {
    (void)scratch;
    const int32_t channels = shape->c / shape->groups;
    input_gradient(dy, w, dx, n, shape->kh * shape->kw * channels, channels, channels, shape);
}

void ag_depthwise2d_dx_f32_ref(const float *dy, const float *w, float *dx, int32_t n,
                               const ag_conv2d_shape *shape) {
    input_gradient(dy, w, dx, n, 1, 1, shape->c, shape);
}

void ag_conv2d_dw_f32_ref(const float *x, const float *dy, float *dw, int32_t n, const ag_conv2d_shape *shape,
                          float alpha, float beta) {
    const int32_t channels = shape->c / shape->groups;
    weight_gradient(x, dy, dw, n, 0.0f, shape->kh * shape->kw * channels, channels, channels, shape, alpha,
                    beta);
}

void ag_depthwise2d_dw_f32_ref(const float *x, const float *dy, float *dw, int32_t n,
                               const ag_conv2d_shape *shape, float alpha, float beta) {
    weight_gradient(x, dy, dw, n, 0.0f, 1, 1, shape->c, shape, alpha, beta);
}
