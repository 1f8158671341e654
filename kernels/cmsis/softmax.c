/* Softmax by CMSIS-NN. */
#include "ag_kernels.h"
#include "cmsis_nn.h"

void ag_softmax_s8_cmsis(const int8_t *x, int8_t *y, int32_t m, int32_t n, int32_t multiplier, int32_t shift,
                         int32_t least) {
    arm_softmax_s8(x, m, n, multiplier, shift, least, y);
}
