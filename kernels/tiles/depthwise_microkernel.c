/* The depthwise micro-kernel (depthwise_microkernel.h): several results x up to four vectors of channels, as
 * many sums as the registers hold, so that a vector of b is loaded once for all results.
 *
 *             channels: vectors 0 .. 3
 *     a       +----+----+----+----+
 *     a_next  |    |    |    |    |  results: DEPTHWISE_RESULTS
 *     2 *     +----+----+----+----+  with AG_GENERAL_TILES 8 where there is 1 vector, 6 of 2, 3 of 3 or 4 */
#include "tiles/moving_pointers.h"
#include "tiles/depthwise_microkernel.h"
#include "tiles/vectors.h"

enum { MOST_SUMS = AG_GENERAL_TILES ? 12 : DEPTHWISE_RESULTS * AG_CHANNEL_TILE / LANES };

/* Constants; `partial` says that the last of the vectors is masked. */
typedef struct {
    int32_t results, vectors;
    bool partial;
} ag_extent;

ALWAYS_INLINE vec ag_channels(ag_extent e, const float *p, int32_t v, lane_mask mask) {
    return get(e.partial && v == e.vectors - 1, p + (ptrdiff_t)v * LANES, mask);
}

/* Adds k_runs runs of k products; a[r] and b move on where the backend moves pointers. */
ALWAYS_INLINE void ag_add_runs(ag_extent e, const ag_depthwise_tile *s, const float **a, ptrdiff_t offset,
                               const float *b, lane_mask mask, vec *sum) {
    const int32_t a_step = s->a_step, b_step = s->b_step;
    for (int32_t run = s->k_runs; run != 0; run--) {
        for (int32_t k = s->k; k != 0; k--) {
            vec w[AG_CHANNEL_TILE / LANES];
            EACH (v, e.vectors) {
                w[v] = ag_channels(e, b, v, mask);
            }
            b = ag_after(b, b_step);
            EACH (r, e.results) {
                EACH (v, e.vectors) {
                    vec *total = &sum[v * e.results + r];
                    *total = plus_product(*total, ag_channels(e, ag_after(a[r], offset), v, mask), w[v]);
                }
                if (AG_MOVING_POINTERS) {
                    a[r] = ag_after(a[r], a_step);
                }
            }
            offset += AG_MOVING_POINTERS ? 0 : a_step;
        }
        if (AG_MOVING_POINTERS) {
            EACH (r, e.results) {
                a[r] = ag_after(a[r], s->a_skip);
            }
        } else {
            offset += s->a_skip;
        }
        b = ag_after(b, s->b_skip);
    }
}

/* The results whose operands and sums begin at from and c; sum[v * results + r] is vector v of result
 * r. */
ALWAYS_INLINE void ag_results(ag_extent e, const ag_depthwise_tile *s, const float *from, float *c) {
    const float *a[DEPTHWISE_RESULTS];
    vec sum[MOST_SUMS];
    const int32_t last = AG_GENERAL_TILES ? s->channels - (e.vectors - 1) * LANES : LANES;
    const lane_mask mask = first_lanes(last < LANES ? last : LANES);
    EACH (r, e.results) {
        a[r] = from;
        from = ag_after(from, s->a_next);
        EACH (v, e.vectors) {
            sum[v * e.results + r] = ag_channels(e, s->init, v, mask);
        }
    }
    if (AG_GENERAL_TILES) {
        for (int32_t block = 0; block < s->k_blocks; block++) {
            ag_add_runs(e, s, a, block * s->a_block, ag_after(s->b, block * s->b_block), mask, sum);
        }
    } else {
        ag_add_runs(e, s, a, 0, s->b, mask, sum);
    }
    EACH (r, e.results) {
        EACH (v, e.vectors) {
            put(e.partial && v == e.vectors - 1, c + (ptrdiff_t)v * LANES, mask, sum[v * e.results + r]);
        }
        c = ag_element_after(c, s->c_next);
    }
}

ALWAYS_INLINE void ag_results_from(ag_extent e, const ag_depthwise_tile *s, int32_t i) {
    ag_results(e, s, ag_after(s->a, (ptrdiff_t)i * s->a_next),
               ag_element_after(s->c, (ptrdiff_t)i * s->c_next));
}

/* All results, up to e.results at a time. */
ALWAYS_INLINE void ag_all_results(ag_extent e, const ag_depthwise_tile *s) {
    const int32_t most = e.results;
    for (int32_t i = 0; i < s->count;) {
        const int32_t remaining = s->count - i;
        if (remaining >= most || s->count >= most) { /* at the end, some of them again */
            i = remaining >= most ? i : s->count - most;
            ag_results_from(e, s, i);
            i += most;
        } else if (most > 3 && remaining >= 3) {
            ag_results_from((ag_extent){3, e.vectors, e.partial}, s, i);
            i += 3;
        } else {
            ag_results_from((ag_extent){1, e.vectors, e.partial}, s, i);
            i++;
        }
    }
}

/* The micro-kernel with AG_GENERAL_TILES, and without. */
ALWAYS_INLINE void ag_any_channels(const ag_depthwise_tile *s) {
#define RESULTS_OF(results, vectors)                                                                         \
    if (s->channels == (vectors) * LANES) {                                                                  \
        ag_all_results((ag_extent){results, vectors, false}, s);                                             \
    } else {                                                                                                 \
        ag_all_results((ag_extent){results, vectors, true}, s);                                              \
    }
    if (s->channels > 3 * LANES) {
        RESULTS_OF(3, 4)
    } else if (s->channels > 2 * LANES) {
        RESULTS_OF(3, 3)
    } else if (s->channels > LANES) {
        RESULTS_OF(6, 2)
    } else {
        RESULTS_OF(8, 1)
    }
#undef RESULTS_OF
}

ALWAYS_INLINE void ag_whole_channels(const ag_depthwise_tile *s) {
    const ag_extent several = {DEPTHWISE_RESULTS, AG_CHANNEL_TILE / LANES, false},
                    one = {1, several.vectors, false};
    const float *a = s->a;
    float *c = s->c;
    int32_t count = s->count;
    for (; count >= several.results; count -= several.results) {
        ag_results(several, s, a, c);
        a = ag_after(a, (ptrdiff_t)several.results * s->a_next);
        c = ag_element_after(c, (ptrdiff_t)several.results * s->c_next);
    }
    for (; several.results > 1 && count > 0; count--) {
        ag_results(one, s, a, c);
        a = ag_after(a, s->a_next);
        c = ag_element_after(c, s->c_next);
    }
}

void AG_DEPTHWISE_MICROKERNEL(const ag_depthwise_tile *s) {
    if (AG_GENERAL_TILES) {
        ag_any_channels(s);
    } else {
        ag_whole_channels(s);
    }
}
