#include "vectors.h"

#include "unity.h"

#include "ag_rng.h"

#include <string.h>

void vectors_draw_f32(float *x, uint32_t count, uint32_t key, uint32_t step, float low, float span) {
    for (uint32_t i = 0; i < count; i++) {
        x[i] = ag_uniform_fromf(key, step, i, low, span);
    }
}

void vectors_draw_u8(uint8_t *x, uint32_t count, uint32_t key, uint32_t step, uint32_t high) {
    for (uint32_t i = 0; i < count; i++) {
        x[i] = (uint8_t)(ag_rand_u32(key, step, i) % high);
    }
}

void vectors_draw_s32(int32_t *x, uint32_t count, uint32_t key, uint32_t step, uint32_t high) {
    for (uint32_t i = 0; i < count; i++) {
        x[i] = (int32_t)(ag_rand_u32(key, step, i) % high);
    }
}

void vectors_spoil(void *x, uint32_t bytes) {
    memset(x, 0xff, bytes);
}

void vectors_compare(const char *what, const float *got, const float *want, uint32_t count, float bound) {
    for (uint32_t i = 0; i < count; i++) {
        if (!unity_within(bound, want[i], got[i])) {
            ag_print(what);
            ag_print(" [");
            ag_print_u32(i, 0);
            ag_print("]: ");
            ag_print_e32(got[i], 0, 8);
            ag_print(", expected ");
            ag_print_e32(want[i], 0, 8);
            ag_print("\n");
            TEST_FAIL_MESSAGE(what);
        }
    }
}

void vectors_equal(const char *what, const void *got, const void *want, uint32_t bytes) {
    TEST_ASSERT_MESSAGE(memcmp(got, want, bytes) == 0, what);
}

void vectors_status(const char *call, int status, int wanted) {
    if (status != wanted) {
        ag_print(call);
        ag_print(": status ");
        ag_print_i32(status, 0);
        ag_print(", expected ");
        ag_print_i32(wanted, 0);
        ag_print("\n");
        TEST_FAIL_MESSAGE(call);
    }
}
