/* chat_reply.h: what a chat client is told when a pipeline has answered: calls of functions that it offered, or a text.
 *
 *     verify_answer reply;
 *     rc = chat_reply_make(&reply, table, &k, devices, n, answer, arena);
 *
 * A text never says that something was done which is not: while calls are made there is no text; when their results
 * have come, the pipeline's own sentence is told if all succeeded, and else what failed; where no function fits,
 * nothing is called and the text says so. Of several calls all are made or none. Pure. */
#ifndef CONVERSE_CHAT_REPLY_H
#define CONVERSE_CHAT_REPLY_H

#include "converse/function_table.h"
#include "ensemble/verify.h"

/* answer: of POST /v1/process. What *ret points to lives in the arena or in k. SHOAL_ENOMEM, or 0. */
int chat_reply_make(verify_answer *ret, const function_table *t, const chat_case *k, const device *list,
                    size_t n, const json_t *answer, arena *a);

/* The same as JSON, where that is wanted (chat_case.formed): {"text": ..., "calls": [{"name", "arguments"}]}, of which only
 * members that the schema names. Its calls are what the request means, and nobody has made them. *ret: its text, in the
 * arena; NULL: the schema takes none, and *ret_why says where, in the arena. SHOAL_ENOMEM, or 0. */
int chat_reply_make_form(const char **ret, const char **ret_why, const function_table *t, const chat_case *k,
                         const device *list, size_t n, const json_t *answer, arena *a);

#endif
