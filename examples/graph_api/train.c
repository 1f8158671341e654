/* A program around the generated model.c: it memorises ten random images with different labels.
 *
 *     python main.py > model.c && cc -std=c99 -O2 train.c -lm -o train && ./train */
#include "model.c"

#include <stdio.h>

#define CLASSES 10
#define PIXELS 784
#define STEPS_PER_LINE 1000

/* Uniform in [-1, 1). */
static float noise(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) * 0x1p-23f - 1.0f;
}

int main(void) {
    static float images[CLASSES][PIXELS];
    float *buf = graph_new();
    if (buf == NULL) {
        return EXIT_FAILURE;
    }
    for (int i = 0; i < 32 * PIXELS; i++) {
        buf[W1_OFFSET + i] = noise() / 28.0f;
    }
    for (int i = 0; i < CLASSES * 32; i++) {
        buf[W2_OFFSET + i] = noise() / 6.0f;
    }
    for (int i = 0; i < CLASSES * PIXELS; i++) {
        images[i / PIXELS][i % PIXELS] = noise();
    }

    float sum = 0.0f;
    for (int step = 0; step <= 4 * STEPS_PER_LINE; step++) {
        const int label = step % CLASSES;
        memcpy(buf + INPUT_OFFSET, images[label], sizeof images[label]);
        memset(buf + OUTPUT_OFFSET, 0, CLASSES * sizeof(float));
        buf[OUTPUT_OFFSET + label] = 1.0f;
        forward(buf);
        backward(buf);
        sgd(buf, 0.05f);

        sum += buf[LOSS_OFFSET];
        if (step % STEPS_PER_LINE == 0) {
            printf("step %4d  loss %.4f\n", step, (double)(step == 0 ? sum : sum / STEPS_PER_LINE));
            sum = 0.0f;
        }
    }
    free(buf);
    return EXIT_SUCCESS;
}
