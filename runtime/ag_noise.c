#include "ag_noise.h"

#include <stdbool.h>
#include <string.h>

enum { WORDS = 16, DOUBLE_ROUNDS = 10 };

static uint32_t rotated(uint32_t x, uint32_t by) {
    return x << by | x >> (32 - by);
}

static void quarter_round(uint32_t *x, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    x[a] += x[b];
    x[d] = rotated(x[d] ^ x[a], 16);
    x[c] += x[d];
    x[b] = rotated(x[b] ^ x[c], 12);
    x[a] += x[b];
    x[d] = rotated(x[d] ^ x[a], 8);
    x[c] += x[d];
    x[b] = rotated(x[b] ^ x[c], 7);
}

void ag_chacha20(const uint32_t key[8], const uint32_t in[4], uint32_t out[WORDS]) {
    const uint32_t start[WORDS] = {
        0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u, /* "expand 32-byte k" */
        key[0],      key[1],      key[2],      key[3],      key[4], key[5],
        key[6],      key[7],      in[0],       in[1],       in[2],  in[3],
    };
    memcpy(out, start, sizeof start);
    for (uint32_t k = 0; k < DOUBLE_ROUNDS; k++) {
        for (uint32_t i = 0; i < 4; i++) { /* the columns */
            quarter_round(out, i, i + 4, i + 8, i + 12);
        }
        for (uint32_t i = 0; i < 4; i++) { /* the diagonals */
            quarter_round(out, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
        }
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        out[i] += start[i];
    }
}

void ag_noise_key(uint32_t key[8], const uint32_t in[4]) {
    uint32_t out[WORDS];
    ag_chacha20(key, in, out);
    memcpy(key, out, 8 * sizeof *key);
}

/* Random words, block by block. */
typedef struct stream {
    const uint32_t *key;
    uint32_t in[4], used; /* in[0] counts the blocks */
    uint32_t word[WORDS];
} stream;

static uint32_t draw(stream *s) {
    if (s->used == WORDS) {
        ag_chacha20(s->key, s->in, s->word);
        s->in[0]++;
        s->used = 0;
    }
    return s->word[s->used++];
}

/* True with probability e^(-1/2): the length of a run of falling numbers that begins below 1/2 is even. */
static bool is_half(stream *s) {
    bool even = true;
    for (uint32_t last = 0x80000000u, next = draw(s); next < last; next = draw(s)) {
        last = next;
        even = !even;
    }
    return even;
}

/* True with probability e^(-x (2k + x) / (2k + 2)), for x in units of 2^-32. */
static bool is_below(stream *s, uint32_t k, uint32_t x) {
    const uint64_t limit = ((uint64_t)(2 * k) << 32) + x;
    bool even = true;
    for (uint32_t last = x, next = draw(s); next < last; next = draw(s)) {
        if ((uint64_t)draw(s) * (2 * k + 2) >= limit) {
            break;
        }
        last = next;
        even = !even;
    }
    return even;
}

static bool all_half(stream *s, uint32_t count) {
    while (count > 0 && is_half(s)) {
        count--;
    }
    return count == 0;
}

float ag_noise(const uint32_t key[8], uint32_t index) {
    stream s = {key, {0, index, 0, 0}, WORDS, {0}};
    for (;;) {
        uint32_t k = 0;
        while (is_half(&s)) {
            k++;
        }
        if (!all_half(&s, k * (k - 1))) { /* now the probability of k is as e^(-k^2 / 2) */
            continue;
        }
        const uint32_t x = draw(&s);
        uint32_t left = k + 1;
        while (left > 0 && is_below(&s, k, x)) {
            left--;
        }
        if (left == 0) {
            const float size = (float)k + (float)x * 2.3283064365386963e-10f; /* 2^-32 */
            return draw(&s) & 1u ? -size : size;
        }
    }
}
