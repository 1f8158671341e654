/* Request handlers of the link, without framing. Internal to the link. */
#ifndef AG_REQUESTS_H
#define AG_REQUESTS_H

#include "ag_link.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The payload of a request and of its reply. */
typedef struct ag_exchange {
    const uint8_t *in;
    uint32_t in_bytes;
    uint8_t *out; /* AG_LINK_PAYLOAD bytes; AG_LINK_GREETING for HELLO, 8 for LOAD */
    uint32_t out_bytes;
} ag_exchange;

/* All return the status for the reply. */
int ag_link_hello(ag_link *l, ag_exchange *x);
int ag_link_load(ag_link *l, ag_exchange *x);
int ag_link_save(ag_link *l);
int ag_link_dispatch(ag_link *l, uint32_t request, ag_exchange *x);        /* all requests except HELLO */
int ag_link_dispatch_object(ag_link *l, uint32_t request, ag_exchange *x); /* READ, WRITE, SUM, FETCH */
int ag_link_dispatch_round(ag_link *l, uint32_t request, ag_exchange *x);  /* the requests of rounds */

#ifdef __cplusplus
}
#endif
#endif
