/* Gradients of convolutions and depthwise convolutions of which one operand is quantised. */
#include "ag_kernels.h"
#include "windows.h"

/* Weight (o, i, j, k) is o * filter + (i * kw + j) * tap + k elements after the first one. */

/* Adds dy * w to the window of one output channel. */
static inline void window_add(float *dx, const int8_t *w, float dy, const ag_window *v, int32_t tap,
                              const ag_conv2d_shape *s) {
    for (int32_t i = v->rows.first; i < v->rows.end; i++) {
        for (int32_t j = v->columns.first; j < v->columns.end; j++) {
            float *pixel = dx + ag_tap_at(v, i, j, s);
            const int8_t *weight = w + (ptrdiff_t)(i * s->kw + j) * tap;
            for (int32_t k = 0; k < s->c / s->groups; k++) {
                pixel[(ptrdiff_t)k * s->x_c] += dy * (float)weight[k];
            }
        }
    }
}

static inline void input_gradient(const float *dy, const int8_t *w, float *dx, int32_t n, int32_t filter,
                                  int32_t tap, const ag_conv2d_shape *s) {
    const int32_t inputs = s->c / s->groups, outputs = s->o / s->groups;
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        ag_clear_image(dx, s->h, s->w, s->c, s->x_h, s->x_w, s->x_c);
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const ag_window window = ag_window_of(p, q, s);
                for (int32_t o = 0; o < s->o; o++) {
                    float *group = dx + (ptrdiff_t)(o / outputs) * inputs * s->x_c;
                    window_add(group, w + (ptrdiff_t)o * filter, dy[o], &window, tap, s);
                }
            }
        }
    }
}

void ag_conv2d_dx_f32_s8_ref(const float *dy, const int8_t *w, float *dx, int32_t n, void *scratch,
                             const ag_conv2d_shape *shape) {
    const int32_t inputs = shape->c / shape->groups;
    (void)scratch;
    input_gradient(dy, w, dx, n, shape->kh * shape->kw * inputs, inputs, shape);
}

void ag_depthwise2d_dx_f32_s8_ref(const float *dy, const int8_t *w, float *dx, int32_t n, void *scratch,
                                  const ag_conv2d_shape *shape) {
    (void)scratch;
    input_gradient(dy, w, dx, n, 1, shape->c, shape);
}

/* The sum over all windows, ascending, of dy times the element (row, column) away from the window's corner.
 */
static inline float weight_sum(const int8_t *x, const float *dy, int32_t row, int32_t column, int32_t n,
                               int32_t x_zero, const ag_conv2d_shape *s) {
    float sum = 0.0f;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            const int32_t r = p * s->stride_h - s->pad_top + row;
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const int32_t c = q * s->stride_w - s->pad_left + column;
                if (r >= 0 && r < s->h && c >= 0 && c < s->w) {
                    sum += (float)(x[(ptrdiff_t)r * s->x_h + (ptrdiff_t)c * s->x_w] - x_zero) * *dy;
                }
            }
        }
    }
    return sum;
}

static inline void weight_gradient(const int8_t *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                                   int32_t filter, int32_t tap, const ag_conv2d_shape *s, float alpha,
                                   float beta) {
    const int32_t inputs = s->c / s->groups, outputs = s->o / s->groups;
    for (int32_t o = 0; o < s->o; o++) {
        const int8_t *group = x + (ptrdiff_t)(o / outputs) * inputs * s->x_c;
        for (int32_t i = 0; i < s->kh; i++) {
            for (int32_t j = 0; j < s->kw; j++) {
                float *w = dw + (ptrdiff_t)o * filter + (ptrdiff_t)(i * s->kw + j) * tap;
                for (int32_t k = 0; k < inputs; k++, w++) {
                    const float sum = weight_sum(group + (ptrdiff_t)k * s->x_c, dy + o, i * s->dilation_h,
                                                 j * s->dilation_w, n, x_zero, s);
                    *w = beta == 0.0f ? alpha * sum : alpha * sum + beta * *w;
                }
            }
        }
    }
}

void ag_conv2d_dw_s8_f32_ref(const int8_t *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                             void *scratch, const ag_conv2d_shape *shape, float alpha, float beta) {
    const int32_t inputs = shape->c / shape->groups;
    (void)scratch;
    weight_gradient(x, dy, dw, n, x_zero, shape->kh * shape->kw * inputs, inputs, shape, alpha, beta);
}

void ag_depthwise2d_dw_s8_f32_ref(const int8_t *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                                  void *scratch, const ag_conv2d_shape *shape, float alpha, float beta) {
    (void)scratch;
    weight_gradient(x, dy, dw, n, x_zero, 1, shape->c, shape, alpha, beta);
}
