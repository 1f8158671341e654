/* Depthwise convolution of fewer channels than AG_CHANNEL_TILE, and its gradients: depthwise2d.c with tiles
 * of three channels, such as the axes of a sensor or colours, and a micro-kernel of floats. */
#include "ag_kernels.h"
#include "tiles/helpers.h"
#include "tiles/symbols.h"

#define AG_CHANNEL_TILE 3
#undef AG_DEPTHWISE_MICROKERNEL
#define AG_DEPTHWISE_MICROKERNEL AG_JOIN(ag_depthwise_microkernel_few, AG_BACKEND)

ag_depthwise2d_f32_fn AG_SYMBOL(depthwise2d_few_f32);
ag_depthwise2d_dx_f32_fn AG_SYMBOL(depthwise2d_dx_few_f32);
ag_depthwise2d_dw_f32_fn AG_SYMBOL(depthwise2d_dw_few_f32);
#define ag_depthwise2d_f32 ag_depthwise2d_few_f32
#define ag_depthwise2d_dx_f32 ag_depthwise2d_dx_few_f32
#define ag_depthwise2d_dw_f32 ag_depthwise2d_dw_few_f32
#include "tiles/depthwise2d.c" /* NOLINT(bugprone-suspicious-include) */

enum { RESULTS = 4 };

/* `results` results, a constant, whose operands and sums begin at a and c. */
ALWAYS_INLINE void ag_few_channels(int32_t results, const ag_depthwise_tile *s, const float *a, float *c) {
    const float *from[RESULTS], *b = s->b;
    float sum[RESULTS * AG_CHANNEL_TILE];
    EACH (r, results) {
        from[r] = ag_after(a, (ptrdiff_t)r * s->a_next);
        EACH (v, AG_CHANNEL_TILE) {
            sum[r * AG_CHANNEL_TILE + v] = s->init[v];
        }
    }
    for (int32_t run = s->k_runs; run > 0; run--) {
        for (int32_t k = s->k; k > 0; k--) {
            EACH (r, results) {
                EACH (v, AG_CHANNEL_TILE) {
                    sum[r * AG_CHANNEL_TILE + v] += from[r][v] * b[v];
                }
                from[r] = ag_after(from[r], s->a_step);
            }
            b = ag_after(b, s->b_step);
        }
        EACH (r, results) {
            from[r] = ag_after(from[r], s->a_skip);
        }
        b = ag_after(b, s->b_skip);
    }
    EACH (r, results) {
        EACH (v, AG_CHANNEL_TILE) {
            c[v] = sum[r * AG_CHANNEL_TILE + v];
        }
        c = ag_element_after(c, s->c_next);
    }
}

void AG_DEPTHWISE_MICROKERNEL(const ag_depthwise_tile *s) {
    const float *a = s->a;
    float *c = s->c;
    int32_t count = s->count;
    for (; count >= RESULTS; count -= RESULTS) {
        ag_few_channels(RESULTS, s, a, c);
        a = ag_after(a, (ptrdiff_t)RESULTS * s->a_next);
        c = ag_element_after(c, (ptrdiff_t)RESULTS * s->c_next);
    }
    for (; count > 0; count--) {
        ag_few_channels(1, s, a, c);
        a = ag_after(a, s->a_next);
        c = ag_element_after(c, s->c_next);
    }
}
