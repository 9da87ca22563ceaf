/* given.h: a reply that somebody gives, as the tokens that this model would write it with.
 *
 *     Reply {"The fan is on.", [{"fan.turn_on", "{\"target\": ...}"}]}
 *     "The fan is on.\n<tool_call>\n{"name": "fan.turn_on", "arguments": {"target": ...}}\n</tool_call>"
 *
 * Markers of calls are the syntax's own and may be control tokens; what the request brought is none. */
#ifndef WORKER_GIVEN_H
#define WORKER_GIVEN_H

#include "shoal/v1/worker.pb-c.h"
#include "tokenizer/tokenizer.h"
#include "chat/toolcall.h"

/* Appends to the text, and for each byte to marks whether the request brought it. */
void given_write(const toolcall_syntax *syntax, const Shoal__V1__Reply *r, buf *text, buf *marks);
/* SHOAL_EINVALID: no UTF-8; SHOAL_ELIMIT: more than max_tokens. */
int given_encode(const tokenizer *t, const toolcall_syntax *syntax, const Shoal__V1__Reply *r,
                 size_t max_tokens, encoding *ret, shoal_err *err);

#endif
