/* The depthwise micro-kernel of tiles/depthwise_microkernel.h: up to 8 results x 4 vectors of channels, as
 * many sums as the registers hold, so that a vector of b is loaded once for all results.
 *
 *             channels: vectors 0 .. 3
 *     a       +----+----+----+----+
 *     a_next  |    |    |    |    |  results: 8 where there is 1 vector, 6 of 2, 3 of 3 or 4
 *     2 *     +----+----+----+----+ */
#include "tiles/depthwise_microkernel.h"

enum { VECTORS = 4, RESULTS = 8 };

static inline const float *at(const float *p, ptrdiff_t bytes) {
    return (const float *)(const void *)((const char *)p + bytes);
}

/* `results` results from number `first` on; sum[v * results + r] is vector v of result r. `results`,
 * `vectors` and `masked`, which says that the last vector has `last` elements, are constants. */
ALWAYS_INLINE void sums_of(int32_t results, int32_t vectors, bool masked, int32_t last,
                           const ag_depthwise_tile *s, int32_t first) {
    const float *init[RESULTS], *a[RESULTS];
    float *c[RESULTS];
    const lane_mask mask = first_lanes(last);
    vec sum[RESULTS * VECTORS];
    for (int32_t r = 0; r < results; r++) {
        init[r] = at(s->init, (ptrdiff_t)(first + r) * s->init_next);
        a[r] = at(s->a, (ptrdiff_t)(first + r) * s->a_next);
        c[r] = s->c + (ptrdiff_t)(first + r) * (s->c_next / (int32_t)sizeof(float));
    }
    for (int32_t e = 0; e < results * vectors; e++) {
        sum[e] = get(masked && e / results == vectors - 1,
                     init[e % results] + (ptrdiff_t)(e / results) * LANES, mask);
    }
    for (int32_t block = 0; block < s->k_blocks; block++) {
        const float *b = at(s->b, block * s->b_block);
        ptrdiff_t offset = block * s->a_block;
        for (int32_t run = s->k_runs; run > 0; run--) {
            for (int32_t k = s->k; k > 0; k--) {
                for (int32_t v = 0; v < vectors; v++) {
                    const bool part = masked && v == vectors - 1;
                    const vec w = get(part, b + (ptrdiff_t)v * LANES, mask);
                    for (int32_t r = 0; r < results; r++) {
                        sum[v * results + r] += get(part, at(a[r], offset) + (ptrdiff_t)v * LANES, mask) * w;
                    }
                }
                offset += s->a_step;
                b = at(b, s->b_step);
            }
            offset += s->a_skip;
            b = at(b, s->b_skip);
        }
    }
    for (int32_t e = 0; e < results * vectors; e++) {
        put(masked && e / results == vectors - 1, c[e % results] + (ptrdiff_t)(e / results) * LANES, mask,
            sum[e]);
    }
}

/* All results, up to `most` at a time, a constant. */
ALWAYS_INLINE void results_of(int32_t most, int32_t vectors, bool masked, const ag_depthwise_tile *s) {
    const int32_t last = s->channels - (vectors - 1) * LANES;
    for (int32_t i = 0; i < s->count;) {
        const int32_t remaining = s->count - i;
        if (remaining >= most ||
            (s->count >= most && s->init_next == 0)) { /* at the end, some of them again */
            i = remaining >= most ? i : s->count - most;
            sums_of(most, vectors, masked, last, s, i);
            i += most;
        } else if (most > 3 && remaining >= 3) {
            sums_of(3, vectors, masked, last, s, i);
            i += 3;
        } else {
            sums_of(1, vectors, masked, last, s, i);
            i++;
        }
    }
}

void AG_DEPTHWISE_MICROKERNEL(const ag_depthwise_tile *s) {
    if (s->channels > 3 * LANES) {
        if (s->channels == 4 * LANES) {
            results_of(3, 4, false, s);
        } else {
            results_of(3, 4, true, s);
        }
    } else if (s->channels > 2 * LANES) {
        if (s->channels == 3 * LANES) {
            results_of(3, 3, false, s);
        } else {
            results_of(3, 3, true, s);
        }
    } else if (s->channels > LANES) {
        if (s->channels == 2 * LANES) {
            results_of(6, 2, false, s);
        } else {
            results_of(6, 2, true, s);
        }
    } else if (s->channels == LANES) {
        results_of(8, 1, false, s);
    } else {
        results_of(8, 1, true, s);
    }
}
