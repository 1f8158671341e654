/* The workloads as plain loops; WORKLOAD is 1 to 6, BATCH the number of samples of a step. loop.c includes
 * this file, so that nothing needs to be linked. */
#include "naive.h"

#if WORKLOAD == 1 || WORKLOAD == 2
typedef struct {
    float w1[32 * 784], w2[10 * 32], dw1[32 * 784], dw2[10 * 32];
    float h[BATCH * 32], y[BATCH * 10], dh[BATCH * 32], dy[BATCH * 10];
} naive_trainer;

static int naive_init(naive_trainer *t) {
    init_weights(t->w1, 32 * 784, 1.0f / 28.0f, 1001);
    init_weights(t->w2, 10 * 32, 0.17677669f, 1002);
    return 0;
}

static int naive_step(naive_trainer *t, const float *x, const uint8_t *label, float *loss) {
    linear(x, t->w1, NULL, t->h, BATCH, 784, 32);
    for (int i = 0; i < BATCH * 32; i++) {
#if WORKLOAD == 1
        t->h[i] = 1.0f / (1.0f + expf(-t->h[i]));
#else
        t->h[i] = t->h[i] < 0.0f ? 0.0f : t->h[i];
#endif
    }
    linear(t->h, t->w2, NULL, t->y, BATCH, 32, 10);
    *loss = cross_entropy(t->y, label, t->dy, BATCH, 10);
    linear_back(t->h, t->w2, t->dy, t->dw2, NULL, t->dh, BATCH, 32, 10);
    for (int i = 0; i < BATCH * 32; i++) {
#if WORKLOAD == 1
        t->dh[i] *= t->h[i] * (1.0f - t->h[i]);
#else
        t->dh[i] = t->h[i] > 0.0f ? t->dh[i] : 0.0f;
#endif
    }
    linear_back(x, t->w1, t->dh, t->dw1, NULL, NULL, BATCH, 784, 32);
    sgd_step(t->w1, t->dw1, 0.01f, 32 * 784);
    sgd_step(t->w2, t->dw2, 0.01f, 10 * 32);
    return 0;
}

#elif WORKLOAD == 3
static const conv_shape FIRST = {1, 28, 6, 24, 5, 1, 0, 1}, SECOND = {6, 12, 16, 8, 5, 1, 0, 1};

typedef struct {
    float w1[150], b1[6], w2[2400], b2[16], w3[120 * 256], b3[120], w4[84 * 120], b4[84], w5[840], b5[10];
} lenet;

typedef struct {
    lenet p, d;
    float c1[BATCH * 6 * 24 * 24], s1[BATCH * 6 * 12 * 12], c2[BATCH * 16 * 8 * 8], s2[BATCH * 256];
    float h1[BATCH * 120], h2[BATCH * 84], y[BATCH * 10];
    float dc1[BATCH * 6 * 24 * 24], ds1[BATCH * 6 * 12 * 12], dc2[BATCH * 16 * 8 * 8], ds2[BATCH * 256];
    float dh1[BATCH * 120], dh2[BATCH * 84], dy[BATCH * 10];
    int at1[BATCH * 6 * 12 * 12], at2[BATCH * 256];
} naive_trainer;

static int naive_init(naive_trainer *t) {
    memset(&t->p, 0, sizeof t->p);
    init_weights(t->p.w1, 150, 0.2f, 3001);
    init_weights(t->p.w2, 2400, 0.08164966f, 3003);
    init_weights(t->p.w3, 120 * 256, 1.0f / 16.0f, 3005);
    init_weights(t->p.w4, 84 * 120, 0.09128709f, 3007);
    init_weights(t->p.w5, 840, 0.10910895f, 3009);
    return 0;
}

static int naive_step(naive_trainer *t, const float *x, const uint8_t *label, float *loss) {
    const lenet *p = &t->p;
    lenet *d = &t->d;
    conv(x, p->w1, p->b1, t->c1, BATCH, &FIRST);
    clamp(t->c1, INFINITY, BATCH * 6 * 24 * 24);
    pool(t->c1, t->s1, t->at1, BATCH * 6, 24);
    conv(t->s1, p->w2, p->b2, t->c2, BATCH, &SECOND);
    clamp(t->c2, INFINITY, BATCH * 16 * 8 * 8);
    pool(t->c2, t->s2, t->at2, BATCH * 16, 8);
    linear(t->s2, p->w3, p->b3, t->h1, BATCH, 256, 120);
    clamp(t->h1, INFINITY, BATCH * 120);
    linear(t->h1, p->w4, p->b4, t->h2, BATCH, 120, 84);
    clamp(t->h2, INFINITY, BATCH * 84);
    linear(t->h2, p->w5, p->b5, t->y, BATCH, 84, 10);
    *loss = cross_entropy(t->y, label, t->dy, BATCH, 10);
    linear_back(t->h2, p->w5, t->dy, d->w5, d->b5, t->dh2, BATCH, 84, 10);
    clamp_back(t->h2, INFINITY, t->dh2, BATCH * 84);
    linear_back(t->h1, p->w4, t->dh2, d->w4, d->b4, t->dh1, BATCH, 120, 84);
    clamp_back(t->h1, INFINITY, t->dh1, BATCH * 120);
    linear_back(t->s2, p->w3, t->dh1, d->w3, d->b3, t->ds2, BATCH, 256, 120);
    pool_back(t->ds2, t->at2, t->dc2, BATCH * 16, 8);
    clamp_back(t->c2, INFINITY, t->dc2, BATCH * 16 * 8 * 8);
    conv_back(t->s1, p->w2, t->dc2, d->w2, d->b2, t->ds1, BATCH, &SECOND);
    pool_back(t->ds1, t->at1, t->dc1, BATCH * 6, 24);
    clamp_back(t->c1, INFINITY, t->dc1, BATCH * 6 * 24 * 24);
    conv_back(x, p->w1, t->dc1, d->w1, d->b1, NULL, BATCH, &FIRST);
    sgd_step(t->p.w1, d->w1, 0.01f, (int)(sizeof *d / sizeof(float)));
    return 0;
}

#elif WORKLOAD == 4
typedef struct {
    float w1[16], b1[8], w2[16], b2[2], dw1[16], db1[8], dw2[16], db2[2];
    float h[BATCH * 8], y[BATCH * 2], dh[BATCH * 8], dy[BATCH * 2];
} naive_trainer;

static int naive_init(naive_trainer *t) {
    memset(t, 0, sizeof *t);
    init_weights(t->w1, 16, 0.70710678f, 4001);
    init_weights(t->w2, 16, 0.35355339f, 4003);
    return 0;
}

static int naive_step(naive_trainer *t, const float *x, const uint8_t *label, float *loss) {
    linear(x, t->w1, t->b1, t->h, BATCH, 2, 8);
    clamp(t->h, INFINITY, BATCH * 8);
    linear(t->h, t->w2, t->b2, t->y, BATCH, 8, 2);
    *loss = cross_entropy(t->y, label, t->dy, BATCH, 2);
    linear_back(t->h, t->w2, t->dy, t->dw2, t->db2, t->dh, BATCH, 8, 2);
    clamp_back(t->h, INFINITY, t->dh, BATCH * 8);
    linear_back(x, t->w1, t->dh, t->dw1, t->db1, NULL, BATCH, 2, 8);
    sgd_step(t->w1, t->dw1, 0.5f, 16);
    sgd_step(t->b1, t->db1, 0.5f, 8);
    sgd_step(t->w2, t->dw2, 0.5f, 16);
    sgd_step(t->b2, t->db2, 0.5f, 2);
    return 0;
}

#elif WORKLOAD == 5
typedef struct {
    float w1[12], b1[4], w2[16], b2[4], w3[4], b3[1];
} dense;

typedef struct {
    dense p, d;
    float h1[BATCH * 4], h2[BATCH * 4], y[BATCH], dh1[BATCH * 4], dh2[BATCH * 4], dy[BATCH];
} naive_trainer;

static int naive_init(naive_trainer *t) {
    memset(t, 0, sizeof *t);
    init_weights(t->p.w1, 12, 0.57735027f, 5001);
    init_weights(t->p.w2, 16, 0.5f, 5003);
    init_weights(t->p.w3, 4, 0.5f, 5005);
    return 0;
}

static int naive_step(naive_trainer *t, const float *x, const float *target, float *loss) {
    const dense *p = &t->p;
    dense *d = &t->d;
    linear(x, p->w1, p->b1, t->h1, BATCH, 3, 4);
    for (int i = 0; i < BATCH * 4; i++) {
        t->h1[i] = tanhf(t->h1[i]);
    }
    linear(t->h1, p->w2, p->b2, t->h2, BATCH, 4, 4);
    for (int i = 0; i < BATCH * 4; i++) {
        t->h2[i] = tanhf(t->h2[i]);
    }
    linear(t->h2, p->w3, p->b3, t->y, BATCH, 4, 1);
    *loss = 0.0f;
    for (int i = 0; i < BATCH; i++) {
        const float error = t->y[i] - target[i];
        *loss += error * error;
        t->dy[i] = 2.0f * error;
    }
    linear_back(t->h2, p->w3, t->dy, d->w3, d->b3, t->dh2, BATCH, 4, 1);
    for (int i = 0; i < BATCH * 4; i++) {
        t->dh2[i] *= 1.0f - t->h2[i] * t->h2[i];
    }
    linear_back(t->h1, p->w2, t->dh2, d->w2, d->b2, t->dh1, BATCH, 4, 4);
    for (int i = 0; i < BATCH * 4; i++) {
        t->dh1[i] *= 1.0f - t->h1[i] * t->h1[i];
    }
    linear_back(x, p->w1, t->dh1, d->w1, d->b1, NULL, BATCH, 3, 4);
    sgd_step(t->p.w1, d->w1, 0.01f, (int)(sizeof *d / sizeof(float)));
    return 0;
}

#elif WORKLOAD == 6
/* The layers in order: a convolution, then three blocks of three. */
enum { LAYERS = 10, MAX_FLOATS = 48 * 16 * 16 };
static const conv_shape SHAPE[LAYERS] = {
    {3, 32, 16, 16, 3, 2, 1, 1},  {16, 16, 48, 16, 1, 1, 0, 1}, {48, 16, 48, 16, 3, 1, 1, 48},
    {48, 16, 16, 16, 1, 1, 0, 1}, {16, 16, 48, 16, 1, 1, 0, 1}, {48, 16, 48, 8, 3, 2, 1, 48},
    {48, 8, 24, 8, 1, 1, 0, 1},   {24, 8, 72, 8, 1, 1, 0, 1},   {72, 8, 72, 8, 3, 1, 1, 72},
    {72, 8, 24, 8, 1, 1, 0, 1},
};

typedef struct {
    float w[LAYERS][2048], b[LAYERS][72], head[240], bias[10];
} mobile;

typedef struct {
    mobile p, d;
    float y[LAYERS][MAX_FLOATS], dy[LAYERS][MAX_FLOATS], mean[24], dmean[24], scores[10], dscores[10];
} naive_trainer;

static int weights_of(const conv_shape *s) {
    return s->o * (s->c / s->groups) * s->k * s->k;
}

static int pixels_of(const conv_shape *s) {
    return s->o * s->oh * s->oh;
}

static int naive_init(naive_trainer *t) {
    memset(t, 0, sizeof *t);
    for (int i = 0; i < LAYERS; i++) {
        const conv_shape *s = SHAPE + i;
        const double fan_in = (double)(s->c / s->groups * s->k * s->k);
        init_weights(t->p.w[i], weights_of(s), (float)sqrt(3.0 / fan_in), 6001u + 2u * (uint32_t)i);
    }
    init_weights(t->p.head, 240, 0.20412415f, 6101);
    return 0;
}

/* Layers 3 and 9 end a residual block; the block's input, the result of layer 0 or 6, is added to their
 * result. */
static int residual_input(int layer) {
    return layer == 3 ? 0 : layer == 9 ? 6 : -1;
}

static int naive_step(naive_trainer *t, const float *x, const uint8_t *label, float *loss) {
    for (int i = 0; i < LAYERS; i++) {
        const int pixels = pixels_of(SHAPE + i), from = residual_input(i);
        conv(i == 0 ? x : t->y[i - 1], t->p.w[i], t->p.b[i], t->y[i], 1, SHAPE + i);
        if (i % 3 != 0 || i == 0) { /* 3, 6 and 9 end a block: no relu6 */
            clamp(t->y[i], 6.0f, pixels);
        }
        for (int k = 0; from >= 0 && k < pixels; k++) {
            t->y[i][k] += t->y[from][k];
        }
    }
    for (int c = 0; c < 24; c++) {
        t->mean[c] = 0.0f;
        for (int k = 0; k < 64; k++) {
            t->mean[c] += t->y[9][c * 64 + k] / 64.0f;
        }
    }
    linear(t->mean, t->p.head, t->p.bias, t->scores, 1, 24, 10);
    *loss = cross_entropy(t->scores, label, t->dscores, 1, 10);
    linear_back(t->mean, t->p.head, t->dscores, t->d.head, t->d.bias, t->dmean, 1, 24, 10);
    for (int k = 0; k < 24 * 64; k++) {
        t->dy[9][k] = t->dmean[k / 64] / 64.0f;
    }
    for (int i = LAYERS - 1; i >= 0; i--) {
        const int later = i == 0 ? 3 : i == 6 ? 9 : -1, pixels = pixels_of(SHAPE + i);
        for (int k = 0; later >= 0 && k < pixels; k++) {
            t->dy[i][k] += t->dy[later][k];
        }
        if (i % 3 != 0 || i == 0) {
            clamp_back(t->y[i], 6.0f, t->dy[i], pixels);
        }
        conv_back(i == 0 ? x : t->y[i - 1], t->p.w[i], t->dy[i], t->d.w[i], t->d.b[i],
                  i == 0 ? NULL : t->dy[i - 1], 1, SHAPE + i);
    }
    for (int i = 0; i < LAYERS; i++) {
        sgd_step(t->p.w[i], t->d.w[i], 0.01f, weights_of(SHAPE + i));
        sgd_step(t->p.b[i], t->d.b[i], 0.01f, SHAPE[i].o);
    }
    sgd_step(t->p.head, t->d.head, 0.01f, 240);
    sgd_step(t->p.bias, t->d.bias, 0.01f, 10);
    return 0;
}
#endif
