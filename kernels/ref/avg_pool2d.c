/* Average pooling, one window at a time: this order of the sums is the specification. */
#include "ag_kernels.h"

#include <stddef.h>

/* The extent of a window along one axis: indices of x from `start` to before `end`, clipped to the padded
 * axis. */
typedef struct {
    int32_t start, end;
} ag_pool_span;

static inline ag_pool_span span_of(int32_t window, int32_t stride, int32_t kernel, int32_t before,
                                   int32_t size, int32_t after) {
    ag_pool_span s;
    s.start = window * stride - before;
    s.end = s.start + kernel < size + after ? s.start + kernel : size + after;
    return s;
}

static inline ag_pool_span inside(ag_pool_span s, int32_t size) {
    s.start = s.start > 0 ? s.start : 0;
    s.end = s.end < size ? s.end : size;
    return s;
}

static inline float divisor_of(const ag_pool2d_shape *shape, ag_pool_span rows, ag_pool_span columns) {
    if (shape->divisor != 0) {
        return (float)shape->divisor;
    }
    if (shape->count_pad == 0) {
        rows = inside(rows, shape->h);
        columns = inside(columns, shape->w);
    }
    return (float)((rows.end - rows.start) * (columns.end - columns.start));
}

static inline float sum_over(const float *x, const ag_pool2d_shape *shape, ag_pool_span rows,
                             ag_pool_span columns) {
    float sum = 0.0f;
    for (int32_t i = rows.start; i < rows.end; i++) {
        for (int32_t j = columns.start; j < columns.end; j++) {
            sum += x[(ptrdiff_t)i * shape->x_h + (ptrdiff_t)j * shape->x_w];
        }
    }
    return sum;
}

void ag_avg_pool2d_f32_ref(const float *x, float *y, int32_t n, const ag_pool2d_shape *shape) {
    for (int32_t b = 0; b < n; b++, x += shape->x_n) {
        for (int32_t p = 0; p < shape->oh; p++) {
            const ag_pool_span rows =
                span_of(p, shape->stride_h, shape->kh, shape->pad_top, shape->h, shape->pad_bottom);
            for (int32_t q = 0; q < shape->ow; q++, y += shape->c) {
                const ag_pool_span columns =
                    span_of(q, shape->stride_w, shape->kw, shape->pad_left, shape->w, shape->pad_right);
                const float divisor = divisor_of(shape, rows, columns);
                for (int32_t k = 0; k < shape->c; k++) {
                    const float *channel = x + (ptrdiff_t)k * shape->x_c;
                    y[k] =
                        sum_over(channel, shape, inside(rows, shape->h), inside(columns, shape->w)) / divisor;
                }
            }
        }
    }
}

static inline void clear(float *x, int32_t n, const ag_pool2d_shape *shape) {
    for (int32_t b = 0; b < n; b++, x += shape->x_n) {
        for (int32_t i = 0; i < shape->h; i++) {
            for (int32_t j = 0; j < shape->w; j++) {
                for (int32_t k = 0; k < shape->c; k++) {
                    x[(ptrdiff_t)i * shape->x_h + (ptrdiff_t)j * shape->x_w + (ptrdiff_t)k * shape->x_c] =
                        0.0f;
                }
            }
        }
    }
}

static inline void add_over(float *x, const ag_pool2d_shape *shape, ag_pool_span rows, ag_pool_span columns,
                            float value) {
    for (int32_t i = rows.start; i < rows.end; i++) {
        for (int32_t j = columns.start; j < columns.end; j++) {
            x[(ptrdiff_t)i * shape->x_h + (ptrdiff_t)j * shape->x_w] += value;
        }
    }
}

void ag_avg_pool2d_dx_f32_ref(const float *dy, float *dx, int32_t n, const ag_pool2d_shape *shape) {
    clear(dx, n, shape);
    for (int32_t b = 0; b < n; b++, dx += shape->x_n) {
        for (int32_t p = 0; p < shape->oh; p++) {
            const ag_pool_span rows =
                span_of(p, shape->stride_h, shape->kh, shape->pad_top, shape->h, shape->pad_bottom);
            for (int32_t q = 0; q < shape->ow; q++, dy += shape->c) {
                const ag_pool_span columns =
                    span_of(q, shape->stride_w, shape->kw, shape->pad_left, shape->w, shape->pad_right);
                const float divisor = divisor_of(shape, rows, columns);
                for (int32_t k = 0; k < shape->c; k++) {
                    add_over(dx + (ptrdiff_t)k * shape->x_c, shape, inside(rows, shape->h),
                             inside(columns, shape->w), dy[k] / divisor);
                }
            }
        }
    }
}
