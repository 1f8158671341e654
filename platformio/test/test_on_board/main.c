/* On the board: every reference kernel against results in float64, the model's steps against PyTorch's, and
 * what its functions say to bad arguments. */
#include "vectors.h"
#include "unity.h"

void test_kernels(void);
void test_model(void);

int main(void) {
    UNITY_BEGIN();
    test_kernels();
    test_model();
    return UNITY_END();
}
