/* Layers in their simplest form: plain loops, every activation and gradient stored, the update at the end. */
#ifndef NAIVE_H
#define NAIVE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* y[n][out] = x[n][in] w[out][in]' + b[out]; b may be NULL */
static void linear(const float *x, const float *w, const float *b, float *y, int n, int in, int out) {
    for (int i = 0; i < n; i++) {
        for (int o = 0; o < out; o++) {
            float sum = b != NULL ? b[o] : 0.0f;
            for (int k = 0; k < in; k++) {
                sum += x[i * in + k] * w[o * in + k];
            }
            y[i * out + o] = sum;
        }
    }
}

/* dw, db (unless NULL) and dx (unless NULL) of linear */
static void linear_back(const float *x, const float *w, const float *dy, float *dw, float *db, float *dx,
                        int n, int in, int out) {
    memset(dw, 0, sizeof(float) * (size_t)(in * out));
    for (int i = 0; i < n; i++) {
        for (int o = 0; o < out; o++) {
            for (int k = 0; k < in; k++) {
                dw[o * in + k] += dy[i * out + o] * x[i * in + k];
            }
        }
    }
    if (db != NULL) {
        memset(db, 0, sizeof(float) * (size_t)out);
        for (int i = 0; i < n; i++) {
            for (int o = 0; o < out; o++) {
                db[o] += dy[i * out + o];
            }
        }
    }
    if (dx != NULL) {
        memset(dx, 0, sizeof(float) * (size_t)(n * in));
        for (int i = 0; i < n; i++) {
            for (int o = 0; o < out; o++) {
                for (int k = 0; k < in; k++) {
                    dx[i * in + k] += dy[i * out + o] * w[o * in + k];
                }
            }
        }
    }
}

/* A convolution of square images, channels first; `groups` is 1 or the number of channels. */
typedef struct {
    int c, h, o, oh, k, stride, pad, groups;
} conv_shape;

static void conv(const float *x, const float *w, const float *b, float *y, int n, const conv_shape *s) {
    const int depth = s->c / s->groups;
    for (int i = 0; i < n; i++) {
        for (int o = 0; o < s->o; o++) {
            const int first = s->groups == 1 ? 0 : o;
            for (int p = 0; p < s->oh; p++) {
                for (int q = 0; q < s->oh; q++) {
                    float sum = b[o];
                    for (int c = 0; c < depth; c++) {
                        for (int u = 0; u < s->k; u++) {
                            for (int v = 0; v < s->k; v++) {
                                const int row = p * s->stride + u - s->pad,
                                          column = q * s->stride + v - s->pad;
                                if (row >= 0 && row < s->h && column >= 0 && column < s->h) {
                                    sum += x[((i * s->c + first + c) * s->h + row) * s->h + column] *
                                           w[((o * depth + c) * s->k + u) * s->k + v];
                                }
                            }
                        }
                    }
                    y[((i * s->o + o) * s->oh + p) * s->oh + q] = sum;
                }
            }
        }
    }
}

/* dw, db and dx (unless NULL) of conv */
static void conv_back(const float *x, const float *w, const float *dy, float *dw, float *db, float *dx, int n,
                      const conv_shape *s) {
    const int depth = s->c / s->groups;
    memset(dw, 0, sizeof(float) * (size_t)(s->o * depth * s->k * s->k));
    memset(db, 0, sizeof(float) * (size_t)s->o);
    if (dx != NULL) {
        memset(dx, 0, sizeof(float) * (size_t)(n * s->c * s->h * s->h));
    }
    for (int i = 0; i < n; i++) {
        for (int o = 0; o < s->o; o++) {
            const int first = s->groups == 1 ? 0 : o;
            for (int p = 0; p < s->oh; p++) {
                for (int q = 0; q < s->oh; q++) {
                    const float g = dy[((i * s->o + o) * s->oh + p) * s->oh + q];
                    db[o] += g;
                    for (int c = 0; c < depth; c++) {
                        for (int u = 0; u < s->k; u++) {
                            for (int v = 0; v < s->k; v++) {
                                const int row = p * s->stride + u - s->pad,
                                          column = q * s->stride + v - s->pad;
                                if (row < 0 || row >= s->h || column < 0 || column >= s->h) {
                                    continue;
                                }
                                const int at = ((i * s->c + first + c) * s->h + row) * s->h + column;
                                const int weight = ((o * depth + c) * s->k + u) * s->k + v;
                                dw[weight] += g * x[at];
                                if (dx != NULL) {
                                    dx[at] += g * w[weight];
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/* y = the maximum of each 2 x 2 pixels of x[planes][h][h], at = its index */
static void pool(const float *x, float *y, int *at, int planes, int h) {
    for (int c = 0; c < planes; c++) {
        for (int p = 0; p < h / 2; p++) {
            for (int q = 0; q < h / 2; q++) {
                int best = (c * h + 2 * p) * h + 2 * q;
                for (int e = 1; e < 4; e++) {
                    const int other = (c * h + 2 * p + e / 2) * h + 2 * q + e % 2;
                    best = x[other] > x[best] ? other : best;
                }
                y[(c * (h / 2) + p) * (h / 2) + q] = x[best];
                at[(c * (h / 2) + p) * (h / 2) + q] = best;
            }
        }
    }
}

static void pool_back(const float *dy, const int *at, float *dx, int planes, int h) {
    memset(dx, 0, sizeof(float) * (size_t)(planes * h * h));
    for (int i = 0; i < planes * (h / 2) * (h / 2); i++) {
        dx[at[i]] += dy[i];
    }
}

/* In place; the gradients use the result. */
static void clamp(float *x, float top, int n) {
    for (int i = 0; i < n; i++) {
        x[i] = x[i] < 0.0f ? 0.0f : x[i] > top ? top : x[i];
    }
}

static void clamp_back(const float *y, float top, float *dy, int n) {
    for (int i = 0; i < n; i++) {
        dy[i] = y[i] > 0.0f && y[i] < top ? dy[i] : 0.0f;
    }
}

/* The mean cross-entropy of scores[n][classes], and its gradient. */
static float cross_entropy(const float *scores, const uint8_t *label, float *d, int n, int classes) {
    float loss = 0.0f;
    for (int i = 0; i < n; i++) {
        const float *row = scores + i * classes;
        float most = row[0], sum = 0.0f;
        for (int k = 1; k < classes; k++) {
            most = row[k] > most ? row[k] : most;
        }
        for (int k = 0; k < classes; k++) {
            sum += expf(row[k] - most);
        }
        loss -= row[label[i]] - most - logf(sum);
        for (int k = 0; k < classes; k++) {
            d[i * classes + k] = (expf(row[k] - most) / sum - (k == label[i] ? 1.0f : 0.0f)) / (float)n;
        }
    }
    return loss / (float)n;
}

static void sgd_step(float *w, const float *g, float lr, int n) {
    for (int i = 0; i < n; i++) {
        w[i] -= lr * g[i];
    }
}

/* Weights of the workloads: (2u - 1) * bound, u = (s >> 8) / 2^24, s <- s * 1664525 + 1013904223. */
static void init_weights(float *w, int n, float bound, uint32_t seed) {
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        w[i] = (2.0f * ((float)(seed >> 8) * 0x1p-24f) - 1.0f) * bound;
    }
}

#endif
