#include "unity.h"

#include <stddef.h>

static struct {
    int32_t tests, failures;
    const char *file, *name;
    int line, failed;
} now;

static void print_verdict(int line, const char *verdict) {
    ag_print(now.file);
    ag_print(":");
    ag_print_i32(line, 0);
    ag_print(":");
    ag_print(now.name);
    ag_print(":");
    ag_print(verdict);
}

void unity_begin(void) {
    now.tests = now.failures = 0;
}

void unity_run(void (*test)(void), const char *name, const char *file, int line) {
    const char *base = file;
    for (const char *p = file; *p != '\0'; p++) {
        base = *p == '/' ? p + 1 : base;
    }
    now.file = base;
    now.name = name;
    now.line = line;
    now.failed = 0;
    test();
    now.tests++;
    now.failures += now.failed;
    if (!now.failed) {
        print_verdict(line, "PASS\n");
    }
    ag_print_flush();
}

void unity_fail(int line, const char *message) {
    if (!now.failed) { /* one result per test */
        print_verdict(line, "FAIL: ");
        ag_print(message);
        ag_print("\n");
    }
    now.failed = 1;
}

int unity_failed(void) {
    return now.failed;
}

int unity_within(float delta, float expected, float actual) {
    const float off = actual > expected ? actual - expected : expected - actual;
    return off <= delta; /* false for NaN */
}

int unity_end(void) {
    ag_print("\n-----------------------\n");
    ag_print_i32(now.tests, 0);
    ag_print(" Tests ");
    ag_print_i32(now.failures, 0);
    ag_print(" Failures 0 Ignored\n");
    ag_print(now.failures == 0 ? "OK\n" : "FAIL\n");
    ag_print_flush();
    return (int)now.failures;
}
