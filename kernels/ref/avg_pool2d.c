/* Average pooling, one window at a time: this order of the sums is the specification. */
#include "ag_kernels.h"
#include "windows.h"

static inline float divisor_of(const ag_pool2d_shape *s, int32_t top, int32_t left, ag_taps rows,
                               ag_taps columns) {
    const int32_t below = s->h + s->pad_bottom - top, right = s->w + s->pad_right - left;
    if (s->divisor != 0) {
        return (float)s->divisor;
    }
    if (s->count_pad == 0) {
        return (float)((rows.end - rows.first) * (columns.end - columns.first));
    }
    return (float)((s->kh < below ? s->kh : below) * (s->kw < right ? s->kw : right));
}

void ag_avg_pool2d_f32_ref(const float *x, float *y, int32_t n, const ag_pool2d_shape *shape) {
    const ag_pool2d_shape *s = shape;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->c) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                const ag_taps rows = ag_taps_inside(top, s->kh, 1, s->h);
                const ag_taps columns = ag_taps_inside(left, s->kw, 1, s->w);
                const float divisor = divisor_of(s, top, left, rows, columns);
                for (int32_t k = 0; k < s->c; k++) {
                    float sum = 0.0f;
                    for (int32_t i = top + rows.first; i < top + rows.end; i++) {
                        for (int32_t j = left + columns.first; j < left + columns.end; j++) {
                            sum += x[(ptrdiff_t)i * s->x_h + (ptrdiff_t)j * s->x_w + (ptrdiff_t)k * s->x_c];
                        }
                    }
                    y[k] = sum / divisor;
                }
            }
        }
    }
}

void ag_avg_pool2d_dx_f32_ref(const float *dy, float *dx, int32_t n, const ag_pool2d_shape *shape) {
    const ag_pool2d_shape *s = shape;
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        ag_clear_image(dx, s->h, s->w, s->c, s->x_h, s->x_w, s->x_c);
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, dy += s->c) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                const ag_taps rows = ag_taps_inside(top, s->kh, 1, s->h);
                const ag_taps columns = ag_taps_inside(left, s->kw, 1, s->w);
                const float divisor = divisor_of(s, top, left, rows, columns);
                for (int32_t k = 0; k < s->c; k++) {
                    const float share = dy[k] / divisor;
                    for (int32_t i = top + rows.first; i < top + rows.end; i++) {
                        for (int32_t j = left + columns.first; j < left + columns.end; j++) {
                            dx[(ptrdiff_t)i * s->x_h + (ptrdiff_t)j * s->x_w + (ptrdiff_t)k * s->x_c] +=
                                share;
                        }
                    }
                }
            }
        }
    }
}
