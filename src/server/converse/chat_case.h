/* chat_case.h: a request for a chat reply, as a pipeline that answers it needs it.
 *
 *     chat_case k;
 *     rc = chat_case_read(&k, request, arena);
 *     ... k.question, k.functions, k.made ...
 *     chat_case_done(&k);
 *
 * Who writes a message decides what it is good for (docs/decisions/037): devices are read from system messages
 * and results of functions, which the application writes, never from what a user says. Pure; all but the JSON
 * lives in the caller's arena. */
#ifndef CONVERSE_CHAT_CASE_H
#define CONVERSE_CHAT_CASE_H

#include <jansson.h>
#include <stdbool.h>

#include "ensemble/made_calls.h"
#include "shoal/v1/worker.pb-c.h"

typedef struct offered_function { /* borrows from chat_case.tools */
    const char *name;
    const json_t *parameters; /* a JSON schema; NULL: none was given */
} offered_function;

#define CHAT_TURNS_MAX 4 /* what was said before them is not looked at */

typedef struct chat_turn { /* a message of a user, and the last text of the assistant behind it */
    const char *request, *reply;
} chat_turn;

typedef struct chat_case {
    const char *question; /* the last message of a user; NULL: there is none */
    size_t n_turns;       /* without a gap before the question; the last is the one just before it */
    chat_turn turns[CHAT_TURNS_MAX];
    const char *system;            /* the system messages, a line behind the other; "": none */
    bool offers, no_calls, forced; /* functions; by tool_choice none is wanted; one is */
    bool one_call;                 /* at a time */
    bool formed;                   /* the reply is to be JSON, which leaves no room for calls, */
    json_t *schema;                /* of this; owned; NULL: any object */
    size_t n_functions;
    offered_function *functions; /* of a tool_choice that names one, that one */
    size_t n_made;
    made_call *made; /* since the question */
    json_t *tools;   /* owned */
} chat_case;

/* What cannot be read as messages or tools counts as none. SHOAL_ENOMEM, or 0; call chat_case_done in any case. */
int chat_case_read(chat_case *ret, const Shoal__V1__GenerateRequest *q, arena *a);
void chat_case_done(chat_case *k); /* accepts a zeroed one */

/* By its name, or by that behind a scope: "assist__HassTurnOn", as programs name functions of several sources. NULL:
 * none, or several. */
const offered_function *chat_case_function(const chat_case *k, const char *name);
const char *chat_case_unscoped(const char *name); /* what stands behind the last "__"; borrows */

#endif
