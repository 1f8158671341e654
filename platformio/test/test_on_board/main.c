/* On the board: every reference kernel against float64 test vectors, the model's steps against PyTorch's, and
 * the statuses of its functions for invalid arguments. */
#include "figures.h"
#include "unity.h"

void test_kernels(void);
void test_model(void);

int main(void) {
    UNITY_BEGIN();
    test_kernels();
    test_model();
    return UNITY_END();
}
