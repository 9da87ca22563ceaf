/* teacher_forced.h: teacher-forced text: a reply that the request gives, as the tokens that this
 * model would write it with.
 *
 *     Reply {"The fan is on.", [{"fan.turn_on", "{\"target\": ...}"}]}
 *     "The fan is on.\n<tool_call>\n{"name": "fan.turn_on", "arguments": {"target": ...}}\n</tool_call>"
 *
 * Markers of calls are the syntax's own and may be control tokens; what the request brought is none. */
#ifndef WORKER_TEACHER_FORCED_H
#define WORKER_TEACHER_FORCED_H

#include "shoal/v1/worker.pb-c.h"
#include "tokenizer/tokenizer.h"
#include "chat/toolcall.h"

/* Appends to the text, and for each byte to marks whether the request brought it. */
void teacher_forced_write(const toolcall_syntax *syntax, const Shoal__V1__Reply *r, buf *text, buf *marks);
/* SHOAL_EINVALID: no UTF-8; SHOAL_ELIMIT: more than max_tokens. */
int teacher_forced_encode(const tokenizer *t, const toolcall_syntax *syntax, const Shoal__V1__Reply *r,
                          size_t max_tokens, encoding *ret, shoal_err *err);

#endif
