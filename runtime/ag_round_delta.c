/* The differences of a round as they are sent: all or the largest, clipped and with noise where the round
 * says so, as floats or bytes. */
#include "ag_round_shared.h"

#include "ag_frame.h"
#include "ag_noise.h"
#include "ag_rng.h"

#include <string.h>

/* The products are rounded before they are added. */
static float masked(const ag_round *r, uint32_t element, float delta) {
    volatile float clipped = delta * r->factor;
    if (r->note.noise == 0.0f) {
        return clipped;
    }
    volatile float noise = r->note.noise * r->note.clip * ag_noise(r->key, element);
    return clipped + noise;
}

typedef void visit_fn(void *ctx, uint32_t element, float delta);

/* Visits the differences of elements of the shared part, as they are or masked. */
static int visit(const ag_round *r, bool masks, uint32_t first, uint32_t count, visit_fn *f, void *ctx) {
    uint8_t chunk[AG_ROUND_CHUNK];
    uint32_t before = 0; /* elements */
    const uint32_t end = first + count;
    for (uint32_t i = 0; i < r->model->shared_parts; i++) {
        const ag_shared *s = &r->model->shared[i];
        if (!ag_round_has(s, r->local_buffers)) {
            continue;
        }
        const uint32_t size = ag_round_size(s->kind), after = before + s->count;
        const uint32_t to = end < after ? end : after;
        for (uint32_t e = first > before ? first : before, bytes; e < to; e += bytes / size) {
            const uint32_t offset = s->offset + (e - before) * size;
            bytes = (to - e) * size < AG_ROUND_CHUNK ? (to - e) * size : AG_ROUND_CHUNK;
            const uint8_t *w = ag_state_at(r->model, r->memory, offset, &bytes);
            if (ag_round_read(&r->start, offset, chunk, bytes) != AG_STORE_OK) {
                return AG_STORE_ERR_FLASH;
            }
            for (uint32_t k = 0; k < bytes; k += size) {
                const uint32_t element = e + k / size;
                const float delta = ag_round_element(w + k, s->kind) - ag_round_element(chunk + k, s->kind);
                f(ctx, element, masks ? masked(r, element, delta) : delta);
            }
        }
        before = after;
    }
    return AG_ROUND_OK;
}

/* ---- what masks a difference */

/* The square root of x >= 1 by Newton's method, to some units in the last place: runtime code is linked
 * without libm. */
static float root(float x) {
    float y = x;
    for (uint32_t k = 0; k < 24; k++) { /* half of the bits of x halve y, then its digits double */
        y = 0.5f * (y + x / y);
    }
    return y;
}

typedef struct norm {
    float largest, sum, lost; /* the sum of squares, relative to the largest, and what rounding lost of it */
    bool is_finite;
} norm;

static void find_largest(void *ctx, uint32_t element, float delta) {
    norm *n = (norm *)ctx;
    const float size = delta < 0.0f ? -delta : delta;
    (void)element;
    n->is_finite &= delta - delta == 0.0f;
    n->largest = size > n->largest ? size : n->largest;
}

static void add_square(void *ctx, uint32_t element, float delta) {
    norm *n = (norm *)ctx;
    const float x = delta / n->largest;
    volatile float square = x * x;
    const float added = square - n->lost; /* Kahan's sum */
    volatile float sum = n->sum + added;
    volatile float change = sum - n->sum;
    (void)element;
    n->lost = change - added;
    n->sum = sum;
}

/* The factor that clips the difference. It is a little smaller than clip / norm, so that rounding does not
 * make the norm too large. */
static int measure_norm(ag_round *r) {
    norm n = {0.0f, 0.0f, 0.0f, true};
    const uint32_t all = ag_round_elements(r);
    int status = visit(r, false, 0, all, find_largest, &n);
    if (status == AG_ROUND_OK && !n.is_finite) {
        return AG_ROUND_ERR_FINITE;
    }
    if (status == AG_ROUND_OK && n.largest > 0.0f) {
        status = visit(r, false, 0, all, add_square, &n);
    }
    const float length = n.largest * root(n.sum); /* infinite: all becomes 0 */
    r->factor = length > r->note.clip ? r->note.clip / length * 0.999999f : 1.0f;
    return status;
}

typedef struct message {
    uint32_t *key, word[4], words;
} message;

static void add_to_key(void *ctx, uint32_t element, float delta) {
    message *m = (message *)ctx;
    (void)element;
    memcpy(&m->word[m->words++], &delta, sizeof delta);
    if (m->words == 4) {
        ag_noise_key(m->key, m->word);
        m->words = 0;
    }
}

/* The key of the noise is a function of the round and of all that is masked: another difference of the same
 * round gets other noise, so that the noise does not cancel out between the two. */
static int make_key(ag_round *r) {
    message m = {r->key, {r->number, r->note.options, 0, 0}, 0};
    memcpy(r->key, r->note.seed, sizeof r->key);
    memcpy(&m.word[2], &r->note.clip, sizeof r->note.clip);
    memcpy(&m.word[3], &r->note.noise, sizeof r->note.noise);
    ag_noise_key(m.key, m.word);
    const int status = visit(r, false, 0, ag_round_elements(r), add_to_key, &m);
    ag_noise_key(m.key, m.word); /* the last block, partly filled */
    return status;
}

/* Measures the norm, and makes the key, once for the differences of these weights. */
static int prepare(ag_round *r) {
    int status = AG_ROUND_OK;
    if (r->note.clip > 0.0f && !r->is_measured) {
        status = measure_norm(r);
        if (status == AG_ROUND_OK && r->note.noise > 0.0f) {
            status = make_key(r);
        }
        r->is_measured = status == AG_ROUND_OK;
    }
    return status;
}

/* ---- the largest differences */

enum { RADIX = 256 };

/* Selects the `left` largest elements by the bits of their magnitudes: all elements above `limit` in the
 * known bits, and the first elements equal to it. */
typedef struct selection {
    uint32_t limit, known, shift, left;
    uint32_t largest;      /* of all elements */
    uint16_t count[RADIX]; /* of elements with the same known bits as the limit, by their next 8 bits */
} selection;

/* The bits without the sign, in the order of the magnitudes. */
static uint32_t magnitude(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits << 1;
}

static void count_next(void *ctx, uint32_t element, float delta) {
    selection *s = (selection *)ctx;
    const uint32_t size = magnitude(delta);
    (void)element;
    s->largest = size > s->largest ? size : s->largest;
    if ((size & s->known) == s->limit) {
        s->count[size >> s->shift & (RADIX - 1)]++;
    }
}

/* Whether the next element is one of the largest. */
static bool selects(selection *s, float delta) {
    const uint32_t size = magnitude(delta) & s->known;
    if (size == s->limit && s->left > 0) {
        s->left--;
        return true;
    }
    return size > s->limit;
}

/* Ends early when as many elements match the known bits as are still wanted, because each pass computes the
 * noise of all elements again. */
static int select_largest(const ag_round *r, bool masks, const ag_round_piece *p, selection *s) {
    int status = AG_ROUND_OK;
    uint32_t next = 0;
    memset(s, 0, sizeof *s);
    s->left = p->top > 0 ? p->top : p->count;
    for (s->shift = 24; s->shift < 32 && s->count[next] != s->left && status == AG_ROUND_OK; s->shift -= 8) {
        memset(s->count, 0, sizeof s->count);
        status = visit(r, masks, p->first, p->count, count_next, s);
        for (next = RADIX - 1; next > 0 && s->count[next] < s->left; next--) {
            s->left -= s->count[next];
        }
        s->limit |= next << s->shift;
        s->known |= (uint32_t)(RADIX - 1) << s->shift;
    }
    return status;
}

/* ---- sending */

typedef struct encoder {
    const ag_round_piece *piece;
    selection selected;
    uint8_t *place, *out;
    float scale;
    bool is_finite;
    uint32_t number;
} encoder;

/* The scale of bytes. 0 if it is not finite, or too small for an exact quotient: all bytes are then 0. */
static float scale_of(uint32_t largest) {
    const uint32_t bits = largest >> 1;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    scale /= 127.0f;
    return scale >= 1.17549435e-38f && scale - scale == 0.0f ? scale : 0.0f;
}

static void put(void *ctx, uint32_t element, float delta) {
    encoder *e = (encoder *)ctx;
    e->is_finite &= delta - delta == 0.0f;
    if (e->piece->top > 0) {
        if (!selects(&e->selected, delta)) {
            return;
        }
        ag_put16(e->place, element - e->piece->first);
        e->place += 2;
    }
    if (e->piece->encoding == AG_ROUND_F32) {
        ag_put_f32(e->out, delta);
        e->out += sizeof delta;
    } else {
        const float u = ag_unitf(e->piece->seed, e->number, element);
        *e->out++ = e->scale == 0.0f ? 0 : (uint8_t)ag_round_rounded(delta / e->scale, u, -127, 127);
    }
}

uint32_t ag_round_delta_bytes(const ag_round_piece *p) {
    const uint32_t count = p->top > 0 ? p->top : p->count;
    return 2 * p->top + (p->encoding == AG_ROUND_F32 ? 4 * count : 4 + count);
}

int ag_round_delta(ag_round *r, uint32_t number, const ag_round_piece *p, uint8_t *out) {
    if (!r->begun || number != r->number) {
        return AG_ROUND_ERR_NUMBER;
    }
    const uint32_t all = ag_round_elements(r);
    if (p->first > all || p->count > all - p->first || p->encoding > AG_ROUND_S8 || p->top > p->count ||
        p->count > UINT16_MAX) {
        return AG_ROUND_ERR_RANGE;
    }
    encoder e;
    e.piece = p;
    e.place = out;
    e.out = out + 2 * (size_t)p->top;
    e.is_finite = true;
    e.number = number;
    const bool masks = r->note.clip > 0.0f;
    int status = prepare(r);
    if (status == AG_ROUND_OK && (p->top > 0 || p->encoding == AG_ROUND_S8)) {
        status = select_largest(r, masks, p, &e.selected);
    }
    if (status == AG_ROUND_OK && p->encoding == AG_ROUND_S8) {
        e.scale = scale_of(e.selected.largest);
        ag_put_f32(e.out, e.scale);
        e.out += sizeof e.scale;
    }
    if (status == AG_ROUND_OK) {
        status = visit(r, masks, p->first, p->count, put, &e);
    }
    return status == AG_ROUND_OK && !e.is_finite ? AG_ROUND_ERR_FINITE : status;
}
