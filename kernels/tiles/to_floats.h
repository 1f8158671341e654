/* Integers that become floats, where no instructions take less time than a loop. */
#ifndef AG_TILES_TO_FLOATS_H
#define AG_TILES_TO_FLOATS_H

/* `count` integers less zero. */
static inline void ag_to_floats(const int8_t *q, int32_t count, int32_t zero, float *x) {
    for (int32_t i = 0; i < count; i++) {
        x[i] = (float)(q[i] - zero);
    }
}

#endif
