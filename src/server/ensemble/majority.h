/* majority.h: many replies into one; see majority_calls.h. Pure.
 *
 *     majority_reply replies[] = {{&a->base, 1}, {&b->base, 2}};
 *     ProtobufCMessage *m = majority_merge(CALL_CLASSIFY, replies, 2);
 *     protobuf_c_message_free_unpacked(m, NULL); */
#ifndef ENSEMBLE_MAJORITY_H
#define ENSEMBLE_MAJORITY_H

#include "calls/calls.h"

typedef struct majority_reply {
    const ProtobufCMessage *reply;
    double weight;
} majority_reply;

bool majority_takes(call_task task);
/* n is 1 or more, and all replies have as many results: else, or out of memory, NULL. */
ProtobufCMessage *majority_merge(call_task task, const majority_reply *replies, size_t n);

#endif
