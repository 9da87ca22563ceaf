/* encode_put.h: worker replies of the encoder endpoints as JSON bodies. Pure. */
#ifndef MESSAGES_ENCODE_PUT_H
#define MESSAGES_ENCODE_PUT_H

#include "base/buf.h"
#include "messages/encode_parse.h"

/* Append the whole object: OpenAI's list of embeddings, and lists of the same form for classes, spans and gaps;
 * documents by relevance, best first, in the form that Cohere and Jina made usual; OpenAI's moderations. Sets the
 * tokens that were read; a table has none. */
void encode_put(buf *out, const encode_spec *s, const ProtobufCMessage *reply, uint64_t *ret_tokens);

#endif
