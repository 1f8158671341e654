#include "vectors.h"
#include "unity.h"

#include "ag_kernels.h"
#include "kernel_vectors.h"

void test_kernels(void);

void test_kernels(void) {
#define X(test) RUN_TEST(test);
    KERNEL_VECTORS(X)
#undef X
}
