/* CMSIS-NN's header without its warnings: gcc treats everything that a system header includes as a system
 * header. And its structs from the contract's arguments. */
#ifndef CMSIS_NN_H
#define CMSIS_NN_H

#if defined(__GNUC__)
#pragma GCC system_header
#endif
#include "arm_nnfunctions.h"

static inline cmsis_nn_dims cmsis_dims(int32_t n, int32_t h, int32_t w, int32_t c) {
    const cmsis_nn_dims dims = {n, h, w, c};
    return dims;
}

static inline cmsis_nn_tile cmsis_tile(int32_t h, int32_t w) {
    const cmsis_nn_tile tile = {w, h};
    return tile;
}

static inline cmsis_nn_activation cmsis_limits(int32_t low, int32_t high) {
    const cmsis_nn_activation limits = {low, high};
    return limits;
}

static inline cmsis_nn_context cmsis_context(void *scratch) {
    const cmsis_nn_context context = {scratch, 0};
    return context;
}

/* CMSIS-NN reads shifts as words, which are written to `shifts`. It does not change the multipliers, but its
 * struct has no const. */
static inline cmsis_nn_per_channel_quant_params cmsis_scales(const int32_t *multiplier, const int8_t *shift,
                                                             int32_t channels, int32_t *shifts) {
    const cmsis_nn_per_channel_quant_params scales = {(int32_t *)(uintptr_t)multiplier, shifts};
    for (int32_t i = 0; i < channels; i++) {
        shifts[i] = shift[i];
    }
    return scales;
}

#endif
