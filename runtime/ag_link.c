#include "ag_link.h"

#include "ag_crc32.h"
#include "ag_frame.h"
#include "ag_requests.h"

#include <stddef.h>
#include <string.h>

static void send_frame(const ag_link *l, const uint8_t *frame, uint32_t bytes) {
    uint8_t encoded[AG_LINK_ENCODED];
    l->send(l->send_ctx, encoded, ag_frame_encode(encoded, frame, bytes));
}

/* A valid HELLO starts a session, unless it is a repetition of the one that started the current session. */
static void handle_hello(ag_link *l, const uint8_t *frame, ag_exchange x) {
    uint8_t reply[AG_LINK_HEADER + AG_LINK_GREETING + 4];
    const uint32_t nonce = ag_get32(frame + AG_FRAME_SEQUENCE);
    x.out = reply + AG_FRAME_PAYLOAD;
    const int status = ag_link_hello(l, &x);
    if (status == AG_LINK_OK && (l->hellos == 0 || nonce != l->nonce)) {
        uint8_t seed[8];
        l->hellos++;
        ag_put32(seed, nonce);
        ag_put32(seed + 4, l->hellos);
        l->nonce = nonce;
        l->session = (uint16_t)(ag_crc32(0, seed, sizeof seed) >> 8);
        l->sequence = 0;
        l->reply_bytes = 0;
    }
    ag_frame_fill(reply, AG_LINK_HELLO | AG_LINK_REPLY, status, l->session, nonce);
    send_frame(l, reply, ag_frame_seal(reply, x.out_bytes));
}

/* Tells the host the last executed request; the next one is missing. */
static void send_nak(const ag_link *l) {
    uint8_t nak[AG_LINK_HEADER + 4];
    ag_frame_fill(nak, AG_LINK_NAK, 0, l->session, l->sequence);
    send_frame(l, nak, ag_frame_seal(nak, 0));
}

/* Replies with an error status; the reply to the last valid request is kept. */
static void reject(ag_link *l, const uint8_t *frame, int status) {
    uint8_t reply[AG_LINK_HEADER + 4];
    l->count.unexpected++;
    ag_frame_fill(reply, frame[AG_FRAME_REQUEST] | AG_LINK_REPLY, status, ag_get16(frame + AG_FRAME_SESSION),
                  ag_get32(frame + AG_FRAME_SEQUENCE));
    send_frame(l, reply, ag_frame_seal(reply, 0));
}

static void handle_frame(ag_link *l, const uint8_t *frame, uint32_t bytes) {
    const uint32_t sequence = ag_get32(frame + AG_FRAME_SEQUENCE), sum = ag_get32(frame + bytes - 4);
    ag_exchange x = {frame + AG_FRAME_PAYLOAD, bytes - AG_LINK_HEADER - 4, l->reply + AG_FRAME_PAYLOAD, 0};
    if (frame[AG_FRAME_REQUEST] >= AG_LINK_REPLY) {
        return; /* an echo of a reply */
    }
    if (frame[AG_FRAME_REQUEST] == AG_LINK_HELLO) {
        handle_hello(l, frame, x);
        return;
    }
    if (l->hellos == 0 || ag_get16(frame + AG_FRAME_SESSION) != l->session) {
        reject(l, frame, AG_LINK_ERR_SESSION);
        return;
    }
    if (sequence == l->sequence && l->reply_bytes > 0) {
        if (sum != l->last_sum) {
            reject(l, frame, AG_LINK_ERR_SEQUENCE);
            return;
        }
        l->count.repeated++;
        send_frame(l, l->reply, l->reply_bytes);
        return;
    }
    const uint32_t missing = sequence - l->sequence - 1u; /* modulo 2^32 */
    if (missing >= 1u << 31) { /* executed before; the host sends the last one again too, which is answered */
        l->count.repeated++;
        return;
    }
    if (missing > 0) {
        l->count.unexpected++;
        send_nak(l);
        return;
    }
    const int status = ag_link_dispatch(l, frame[AG_FRAME_REQUEST], &x);
    ag_frame_fill(l->reply, frame[AG_FRAME_REQUEST] | AG_LINK_REPLY, status, l->session, sequence);
    l->reply_bytes = ag_frame_seal(l->reply, x.out_bytes);
    l->sequence = sequence;
    l->last_sum = sum;
    send_frame(l, l->reply, l->reply_bytes);
}

static void end_of_frame(ag_link *l) {
    const uint32_t received = l->received;
    l->received = 0;
    if (received == 0) {
        return; /* an additional delimiter between frames */
    }
    const uint32_t bytes = received <= sizeof l->frame ? ag_frame_decode(l->frame, received) : 0;
    if (!ag_frame_is_good(l->frame, bytes)) {
        l->count.damaged++;
        send_nak(l);
        return;
    }
    l->count.frames++;
    handle_frame(l, l->frame, bytes);
}

void ag_link_receive(ag_link *link, const uint8_t *data, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) {
        if (data[i] == 0) {
            end_of_frame(link);
        } else if (link->received < sizeof link->frame) {
            link->frame[link->received++] = data[i];
        } else {
            link->received = sizeof link->frame + 1; /* longer than any frame: dropped */
        }
    }
}

void ag_link_start(ag_link *link, const ag_link_model *model, void *memory, const ag_flash *flash,
                   ag_link_send_fn *send, void *send_ctx) {
    memset(link, 0, sizeof *link);
    link->model = model;
    link->memory = (uint8_t *)memory;
    link->flash = flash;
    link->send = send;
    link->send_ctx = send_ctx;
    link->lr = model->lr;
    ag_round_init(&link->round, model, memory, flash);
    link->window = AG_LINK_ENCODED;
    link->rejections.limit = model->restore_after;
}

int ag_link_restore(ag_link *link) {
    static const uint8_t own_program[4] = {0, 0, 0, 0};
    uint8_t out[8];
    ag_exchange x = {own_program, sizeof own_program, out, 0};
    ag_note note;
    if (link->flash != NULL && ag_store_newest_note(link->flash, &note)) {
        link->round.note.identity = note.identity;
    }
    const int status = ag_link_load(link, &x);
    if (status != AG_STORE_OK) {
        (void)link->model->init(link->memory, 0);
    }
    link->start = status;
    return status;
}
