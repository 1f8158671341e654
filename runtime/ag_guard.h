/* What a training step checks before it changes anything. */
#ifndef AG_GUARD_H
#define AG_GUARD_H

#include <stdint.h>

/* Whether all of x[n] are finite: x - x is 0, and NaN for what is not. */
static inline int ag_all_finite(const float *x, int32_t n) {
    float sum = 0.0f;
    for (int32_t i = 0; i < n; i++) {
        sum += x[i] - x[i];
    }
    return sum == 0.0f;
}

#endif
