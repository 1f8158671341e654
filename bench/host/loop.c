/* The loop that times a trainer, generated or naive; both have the same functions.
 *
 * MODEL_H is the header, TRAINER the type of the trainer's memory, TARGET the type of a label or target, and
 * INIT(t) and STEP(t, x, y, loss) call the trainer. */
#define _POSIX_C_SOURCE 199309L

#include MODEL_H

#include <stdint.h>
#include <time.h>

static TRAINER trainer;

#pragma GCC visibility push(default)
int loop_start(void);
int loop_losses(const float *x, const TARGET *y, int32_t x_step, int32_t y_step, int32_t batches,
                int32_t steps, float *losses);
double loop_seconds(const float *x, const TARGET *y, int32_t x_step, int32_t y_step, int32_t batches,
                    int32_t steps);
#pragma GCC visibility pop

/* The only call of a step, as in a program; `stride` elements from loss to loss. */
static int run(const float *x, const TARGET *y, int32_t x_step, int32_t y_step, int32_t batches,
               int32_t steps, float *losses, int32_t stride) {
    for (int32_t i = 0, b = 0; i < steps; i++, b = b + 1 < batches ? b + 1 : 0, losses += stride) {
        const int status = STEP(&trainer, x + (int64_t)b * x_step, y + (int64_t)b * y_step, losses);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

/* Restores the initial weights. */
int loop_start(void) {
    return INIT(&trainer);
}

/* The losses of `steps` steps over the batches in order, cycled; x_step and y_step elements a batch. */
int loop_losses(const float *x, const TARGET *y, int32_t x_step, int32_t y_step, int32_t batches,
                int32_t steps, float *losses) {
    return run(x, y, x_step, y_step, batches, steps, losses, 1);
}

/* The processor time in seconds of `steps` such steps, or -1 where one fails. */
double loop_seconds(const float *x, const TARGET *y, int32_t x_step, int32_t y_step, int32_t batches,
                    int32_t steps) {
    struct timespec from, to;
    float loss = 0.0f;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    if (run(x, y, x_step, y_step, batches, steps, &loss, 0) != 0) {
        return -1.0;
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}
