/* made_calls.h: the calls of functions that a chat's messages tell, each with what the application answered.
 *
 *     made_call list[MADE_CALLS_MAX];
 *     size_t n = 0;
 *     rc = made_calls_add(list, &n, assistant_message, arena);
 *     rc = made_calls_answer(list, n, tool_message, arena);
 *
 * Messages may be anyone's JSON. All texts live in the arena. Pure. */
#ifndef ENSEMBLE_MADE_CALLS_H
#define ENSEMBLE_MADE_CALLS_H

#include <jansson.h>

#include "base/arena.h"

#define MADE_CALLS_MAX 64 /* since the last message of a user; the rest is left out */

typedef struct made_call {
    const char *id; /* "": none */
    const char *name, *arguments;
    const char *result; /* what the application answered; NULL: nothing */
} made_call;

/* The content of a message: a text, or parts of one; "" without. SHOAL_ENOMEM, or 0. */
int made_calls_text(const char **ret, const json_t *message, arena *a);
/* Those of an assistant's message. SHOAL_ENOMEM, or 0. */
int made_calls_add(made_call list[MADE_CALLS_MAX], size_t *n, const json_t *message, arena *a);
/* A tool's message is the result of the call that it names, else of the first without a result, where it names none or
 * the function's name. SHOAL_ENOMEM, or 0. */
int made_calls_answer(made_call *list, size_t n, const json_t *message, arena *a);

#endif
