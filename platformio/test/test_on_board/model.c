#include "vectors.h"
#include "unity.h"

#include "model_vectors.h" /* of the project */

void test_model(void);

void test_model(void) {
    RUN_TEST(steps_are_pytorchs);
    RUN_TEST(bad_arguments_are_rejected);
}
