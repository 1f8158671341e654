/* The subset of Unity's interface that the tests on a board use, with Unity's output format:
 *
 *     FILE:LINE:NAME:PASS        FILE:LINE:NAME:FAIL: MESSAGE        N Tests M Failures 0 Ignored
 *
 * A failing assertion returns from the function that contains it. */
#ifndef UNITY_H
#define UNITY_H

#include "ag_console.h"

#ifdef __cplusplus
extern "C" {
#endif

void unity_begin(void);
int unity_end(void); /* prints the summary; returns the number of failed tests */
void unity_run(void (*test)(void), const char *name, const char *file, int line);
void unity_fail(int line, const char *message);
int unity_failed(void); /* whether the current test has failed */
int unity_within(float delta, float expected, float actual);

#ifdef __cplusplus
}
#endif

#define UNITY_BEGIN() unity_begin()
#define UNITY_END() unity_end()
#define RUN_TEST(test) unity_run(test, #test, __FILE__, __LINE__)

#define TEST_FAIL_MESSAGE(message)                                                                           \
    do {                                                                                                     \
        unity_fail(__LINE__, message);                                                                       \
        return;                                                                                              \
    } while (0)
#define TEST_ASSERT_MESSAGE(condition, message)                                                              \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            unity_fail(__LINE__, message);                                                                   \
            return;                                                                                          \
        }                                                                                                    \
    } while (0)
#define TEST_ASSERT(condition) TEST_ASSERT_MESSAGE(condition, #condition)
#define TEST_ASSERT_TRUE(condition) TEST_ASSERT(condition)
#define TEST_ASSERT_FALSE(condition) TEST_ASSERT(!(condition))
#define TEST_ASSERT_NULL(pointer) TEST_ASSERT((pointer) == 0)
#define TEST_ASSERT_NOT_NULL(pointer) TEST_ASSERT((pointer) != 0)
#define TEST_ASSERT_EQUAL_INT(expected, actual)                                                              \
    TEST_ASSERT_MESSAGE((expected) == (actual), #actual " is not " #expected)
#define TEST_ASSERT_FLOAT_WITHIN(delta, expected, actual)                                                    \
    TEST_ASSERT_MESSAGE(unity_within(delta, expected, actual), #actual " is not within " #delta)

#endif
