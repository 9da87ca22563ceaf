/* json_proto.h: messages of Protocol Buffers as JSON, and back, by what the schema says of their fields.
 *
 *     json_proto_read(&body, schema_message, msg, n_msg, &err); // {"model": "m", "input": ["a"], "top_k": 2}
 *     json_proto_write(&out, schema_message, answer, &err);
 *
 * A field is the member of its name; one that is not on the wire is not there. Beside protobuf's own mapping
 * of JSON: names stay as they are written, 64-bit numbers are numbers, and fields that end in _json hold the
 * text of the member without that ending, of any form. "more_json" holds an object of all members that have
 * no field: it may add to a request what the schema does not know, and nothing of an answer is lost in it.
 * A map is read as a list of {"key", "value"}, and written from one or from an object.
 *
 * Bounds: JSON_DEPTH_MAX levels, JSON_PROTO_VALUES_MAX values of one message. Pure. */
#ifndef MESSAGES_JSON_PROTO_H
#define MESSAGES_JSON_PROTO_H

#include "messages/proto_schema.h"
#include "base/buf.h"
#include "json/json.h"

#define JSON_PROTO_VALUES_MAX 1000000

/* The caller owns *ret, an object. SHOAL_EINVALID (the sentence names the field), SHOAL_EFORMAT, SHOAL_ELIMIT
 * or SHOAL_ENOMEM. Fields that the schema does not know are skipped. */
int json_proto_read(json_t **ret, const proto_message *m, const uint8_t *bytes, size_t n, shoal_err *err);
/* Append the message. Members that are null are left out. What has no field, or does not fit into the one of
 * its name, goes into more_json; without such a field an unknown one is left out, and one that does not fit
 * is SHOAL_EINVALID. */
int json_proto_write(buf *out, const proto_message *m, const json_t *v, shoal_err *err);

#endif
