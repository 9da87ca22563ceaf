/* toolcall_write.h: calls -> the text that a model of this syntax writes for them.
 *
 *     f {"a": 1}      <tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call> */
#ifndef CHAT_TOOLCALL_WRITE_H
#define CHAT_TOOLCALL_WRITE_H

#include "chat/toolcall.h"

typedef struct toolcall_call {
    const char *name, *arguments; /* arguments: JSON text, which is written as it is where it is no object */
} toolcall_call;

/* Append the calls with all markers, behind the `text` that stands there. marks (may be NULL) gets a byte for
 * each: 1 where it is the calls' own, 0 where the syntax wrote it. */
void toolcall_write(buf *text, buf *marks, const toolcall_syntax *syntax, const toolcall_call *calls,
                    size_t n);

#endif
