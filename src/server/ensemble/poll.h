/* poll.h: many replies into one; see poll_calls.h. Pure.
 *
 *     poll_reply replies[] = {{&a->base, 1}, {&b->base, 2}};
 *     ProtobufCMessage *m = poll_merge(CALL_CLASSIFY, replies, 2);
 *     protobuf_c_message_free_unpacked(m, NULL); */
#ifndef ENSEMBLE_POLL_H
#define ENSEMBLE_POLL_H

#include "calls/calls.h"

typedef struct poll_reply {
    const ProtobufCMessage *reply;
    double weight;
} poll_reply;

bool poll_takes(call_task task);
/* n is 1 or more, and all replies have as many results: else, or out of memory, NULL. */
ProtobufCMessage *poll_merge(call_task task, const poll_reply *replies, size_t n);

#endif
