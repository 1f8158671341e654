/* The board's end of the link to a host: data in, losses and weights out, over any byte stream. docs/link.md
 * is the protocol specification; autodiff_gen/device is the host's end.
 *
 * A frame is a request or its reply, COBS-encoded and terminated by 0, with a checksum over all of it. The
 * host sends as many requests as the board's receive buffer holds before it waits for replies, and after a
 * timeout or a NAK sends again from the first that is not answered. Requests are executed in the order of
 * their numbers, and each once; TRAIN carries the step number and the checksum of its data, so that no step
 * is executed twice or on damaged data. */
#ifndef AG_LINK_H
#define AG_LINK_H

#include "ag_guard.h"
#include "ag_link_model.h"
#include "ag_round.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest payload of a frame. Memory is two frames in ag_link, and a third on the stack. */
#ifndef AG_LINK_PAYLOAD
#define AG_LINK_PAYLOAD 240
#endif
#if AG_LINK_PAYLOAD < 60 || AG_LINK_PAYLOAD > 240 || AG_LINK_PAYLOAD % 4 != 0
#error "AG_LINK_PAYLOAD must be a multiple of 4 from 60 to 240"
#endif

enum {
    AG_LINK_VERSION = 3,
    AG_LINK_HEADER = 8, /* request, status, session, sequence */
    AG_LINK_FRAME = AG_LINK_HEADER + AG_LINK_PAYLOAD + 4,
    AG_LINK_ENCODED = AG_LINK_FRAME + 2,
    AG_LINK_NAME = 16,
    AG_LINK_GREETING = 60, /* the payload of the reply to HELLO */
};

/* Requests. */
enum {
    AG_LINK_HELLO = 1,
    AG_LINK_READ = 2,
    AG_LINK_WRITE = 3,
    AG_LINK_SUM = 4,
    AG_LINK_TRAIN = 5,
    AG_LINK_PREDICT = 6,
    AG_LINK_SET_LR = 7,
    AG_LINK_INIT = 8,
    AG_LINK_BEGIN = 9,
    AG_LINK_END = 10,
    AG_LINK_SAVE = 11,
    AG_LINK_LOAD = 12,
    AG_LINK_FETCH = 13,
    AG_LINK_ROUND = 14,
    AG_LINK_LOCAL = 15,
    AG_LINK_DELTA = 16,
    AG_LINK_EVALUATE = 17,
    AG_LINK_IDENTITY = 18,
    AG_LINK_WEAR = 19,
    AG_LINK_ACCUMULATE = 21, /* models with `accumulate` */
    AG_LINK_APPLY = 22,
    AG_LINK_REPLY = 0x80, /* added to the request in its reply */
    AG_LINK_NAK = 0xff,   /* an invalid frame was received, or one whose predecessor is missing */
};

/* The payload of LOAD: a checkpoint of this program, or also one of another program with the same states. */
enum { AG_LINK_LOAD_OWN = 0, AG_LINK_LOAD_ANY = 1 };

/* The objects of READ, WRITE and SUM. */
enum { AG_LINK_INPUT = 0, AG_LINK_OUTPUT = 1, AG_LINK_STATE = 2, AG_LINK_COUNTERS = 3 };

/* Encodings of WRITE: raw memory; one byte per float, value / 255; the same run-length encoded, as (zeros,
 * count, count bytes) repeated; or a float and then signed integers of 8 or 16 bits, value * that float. */
enum { AG_LINK_RAW = 0, AG_LINK_UNIT = 1, AG_LINK_RUNS = 2, AG_LINK_S8 = 3, AG_LINK_S16 = 4 };

/* Status codes of the link; -1 to -15 are the model's, -43 to -48 and -50 are for rounds, -51 and -52 for
 * gradients, -64 and below the store's. */
enum {
    AG_LINK_OK = 0,
    AG_LINK_ERR_REQUEST = -32,    /* no such request */
    AG_LINK_ERR_LENGTH = -33,     /* a payload of the wrong length */
    AG_LINK_ERR_RANGE = -34,      /* a number that is out of range: an address, a count, n, a rate */
    AG_LINK_ERR_SESSION = -35,    /* not the session that HELLO started */
    AG_LINK_ERR_SEQUENCE = -36,   /* another request with the number of the last one */
    AG_LINK_ERR_VERSION = -37,    /* HELLO of another version of the protocol */
    AG_LINK_ERR_STEP = -38,       /* the request names another step than the next one */
    AG_LINK_ERR_SUM = -39,        /* data or state do not match the checksum in the request */
    AG_LINK_ERR_INCOMPLETE = -40, /* the state is half written; END, WRITE: no BEGIN before */
    AG_LINK_ERR_FILE = -42,       /* FETCH: the file of the inputs cannot be read */
    AG_LINK_ERR_IDENTITY = -49,   /* the board has another identity already */
};

/* The program's model and its memory: defined by NAME_link.c, which `autodiff-gen link` generates. */
extern const ag_link_model ag_linked_model;
extern void *const ag_linked_memory;

/* Called between the parts of a step where the model is split, for example to service a watchdog. link_main.c
 * has an empty weak definition, which yours overrides. */
void ag_between_parts(void);

/* The contents of AG_LINK_COUNTERS, in this order. */
typedef struct ag_link_counters {
    uint32_t steps;      /* training steps of the state */
    uint32_t trained;    /* steps since the start of the program */
    uint32_t rejected;   /* steps that the model rejected */
    uint32_t predicted;  /* calls of predict */
    uint32_t saved;      /* checkpoints written since the start */
    uint32_t frames;     /* valid frames */
    uint32_t damaged;    /* frames with a wrong length, encoding or checksum */
    uint32_t repeated;   /* requests that had been executed before, and were not again */
    uint32_t unexpected; /* frames of another session or content, or whose predecessor is missing */
    uint32_t overruns;   /* bytes lost because the buffer was full */
    uint32_t restored;   /* checkpoints loaded because steps were rejected */
} ag_link_counters;

/* Reads the first `bytes` bytes of the host's file of inputs: 0, or -1 when not all of them are available. */
typedef int ag_link_fetch_fn(void *data, uint32_t bytes);

typedef void ag_link_send_fn(void *ctx, const uint8_t *data, uint32_t bytes);

typedef struct ag_link {
    const ag_link_model *model;
    uint8_t *memory;
    const ag_flash *flash; /* NULL without one */
    ag_link_send_fn *send;
    void *send_ctx;
    ag_link_fetch_fn *fetch; /* NULL without files of the host */
    ag_link_counters count;
    ag_rejections rejections;
    float lr, loss;
    uint32_t checkpoint; /* sequence number of the last one saved or loaded, 0 before */
    int start;           /* status of loading one at start-up, until the state is replaced */
    bool incomplete;     /* the state is partially written */
    bool beyond_shared;  /* also outside of the part that rounds exchange */
    bool in_buffers;     /* also outside of the part that they exchange where buffers are local */
    ag_round round;      /* set samples, cycles and entropy to the board's */
    uint32_t window;     /* bytes of requests that the host may send before it waits for a reply */
    uint16_t session;
    uint32_t nonce, sequence, hellos;
    uint32_t last_sum;    /* checksum of the last executed request */
    uint32_t reply_bytes; /* length of `reply` */
    uint32_t received;    /* bytes received of the current frame; above its size: too many */
    uint8_t frame[AG_LINK_ENCODED];
    uint8_t reply[AG_LINK_FRAME];
} ag_link;

/* Starts with `memory` as it is: the model is neither initialised nor loaded. `flash` may be NULL. `window`
 * has room for one frame; set it to the bytes that are buffered while ag_link_receive executes a request. */
void ag_link_start(ag_link *link, const ag_link_model *model, void *memory, const ag_flash *flash,
                   ag_link_send_fn *send, void *send_ctx);

/* Loads the newest checkpoint, or initialises the weights where there is none. Returns the status of loading.
 */
int ag_link_restore(ag_link *link);

/* Processes received bytes, in pieces of any size. Requests are executed and answered before this returns. */
void ag_link_receive(ag_link *link, const uint8_t *data, uint32_t bytes);

#ifdef __cplusplus
}
#endif
#endif
