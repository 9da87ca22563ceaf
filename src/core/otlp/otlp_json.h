/* otlp_json.h: a protobuf message as OTLP's JSON, by its descriptor. Inside otlp/. */
#ifndef OTLP_OTLP_JSON_H
#define OTLP_OTLP_JSON_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

/* Append the object. Bytes are ids: hex. Members that are absent or zero are left out, as in protobuf's JSON. */
void otlp_json_put(buf *out, const ProtobufCMessage *m);

#endif
