/* otlp_impl.h: attributes as messages, for the files of otlp/. */
#ifndef OTLP_OTLP_IMPL_H
#define OTLP_OTLP_IMPL_H

#include "otlp/otlp.h"
#include "otlp/otlp.pb-c.h"

typedef struct otlp_value { /* one attribute, where its message lies */
    Otlp__KeyValue pair;
    Otlp__AnyValue value, entry, *entries[1];
    Otlp__ArrayValue list;
} otlp_value;

typedef struct otlp_values {
    otlp_value values[OTLP_ATTRIBUTES_MAX];
    Otlp__KeyValue *pairs[OTLP_ATTRIBUTES_MAX];
} otlp_values;

/* Borrows from a; *v must not move. */
void otlp_set_value(otlp_value *v, const otlp_attribute *a);
void otlp_put_message(buf *out, otlp_protocol p, const ProtobufCMessage *m);

#endif
