/* Convolution over channel-last images, and depthwise convolution, which has a window for every channel: this
 * order of the sums is the specification. Weight (o, i, j, k) is o * filter + (i * kw + j) * tap + k elements
 * after the first one. */
#include "ag_kernels.h"
#include "windows.h"

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

void ag_conv2d_f32_ref(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape,
                       const ag_epilogue *epilogue) {
    const int32_t channels = shape->c / shape->groups;
    forward(x, w, y, n, shape->kh * shape->kw * channels, channels, channels, shape, epilogue);
}

void ag_depthwise2d_f32_ref(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape,
                            const ag_epilogue *epilogue) {
    forward(x, w, y, n, 1, 1, shape->c, shape, epilogue);
}

static inline void input_gradient(const float *dy, const float *w, float *dx, int32_t n, int32_t filter,
                                  int32_t channels, int32_t tap, const ag_conv2d_shape *s) {
    const int32_t outputs = s->o / s->groups;
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        ag_clear_image(dx, s->h, s->w, s->c, s->x_h, s->x_w, s->x_c);
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const ag_window window = ag_window_of(p, q, s);
                for (int32_t o = 0; o < s->o; o++) {
                    float *group = dx + (ptrdiff_t)(o / outputs) * channels * s->x_c;
                    ag_window_add(group, w + (ptrdiff_t)o * filter, dy[o], &window, channels, tap, s);
                }
            }
        }
    }
}

void ag_conv2d_dx_f32_ref(const float *dy, const float *w, float *dx, int32_t n,
                          const ag_conv2d_shape *shape) {
    const int32_t channels = shape->c / shape->groups;
    input_gradient(dy, w, dx, n, shape->kh * shape->kw * channels, channels, channels, shape);
}

void ag_depthwise2d_dx_f32_ref(const float *dy, const float *w, float *dx, int32_t n,
                               const ag_conv2d_shape *shape) {
    input_gradient(dy, w, dx, n, 1, 1, shape->c, shape);
}

/* The sum over all windows, ascending, of dy times the element (row, column) away from the window's corner.
 */
static inline float weight_sum(const float *x, const float *dy, int32_t row, int32_t column, int32_t n,
                               const ag_conv2d_shape *s) {
    float sum = 0.0f;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            const int32_t r = p * s->stride_h - s->pad_top + row;
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const int32_t c = q * s->stride_w - s->pad_left + column;
                if (r >= 0 && r < s->h && c >= 0 && c < s->w) {
                    sum += x[(ptrdiff_t)r * s->x_h + (ptrdiff_t)c * s->x_w] * *dy;
                }
            }
        }
    }
    return sum;
}

static inline void weight_gradient(const float *x, const float *dy, float *dw, int32_t n, int32_t filter,
                                   int32_t channels, int32_t tap, const ag_conv2d_shape *s, float alpha,
                                   float beta) {
    const int32_t outputs = s->o / s->groups;
    for (int32_t o = 0; o < s->o; o++) {
        const float *group = x + (ptrdiff_t)(o / outputs) * channels * s->x_c;
        for (int32_t i = 0; i < s->kh; i++) {
            for (int32_t j = 0; j < s->kw; j++) {
                float *w = dw + (ptrdiff_t)o * filter + (ptrdiff_t)(i * s->kw + j) * tap;
                for (int32_t k = 0; k < channels; k++, w++) {
                    const float sum = weight_sum(group + (ptrdiff_t)k * s->x_c, dy + o, i * s->dilation_h,
                                                 j * s->dilation_w, n, s);
                    *w = beta == 0.0f ? alpha * sum : alpha * sum + beta * *w;
                }
            }
        }
    }
}

void ag_conv2d_dw_f32_ref(const float *x, const float *dy, float *dw, int32_t n, const ag_conv2d_shape *shape,
                          float alpha, float beta) {
    const int32_t channels = shape->c / shape->groups;
    weight_gradient(x, dy, dw, n, shape->kh * shape->kw * channels, channels, channels, shape, alpha, beta);
}

void ag_depthwise2d_dw_f32_ref(const float *x, const float *dy, float *dw, int32_t n,
                               const ag_conv2d_shape *shape, float alpha, float beta) {
    weight_gradient(x, dy, dw, n, 1, 1, shape->c, shape, alpha, beta);
}
