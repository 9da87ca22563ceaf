/* conversation.h: the conversation of a request: loaded before it is computed, kept when its answer is whole.
 *
 *     conversation *k = calloc(1, sizeof *k);                 // rq, loads, keeps, loaded and done are set
 *     k->id = conversation_id(rq, "session", "kitchen");
 *     conversation_load(k);                                   // loaded(k, NULL): k->history is there
 *     conversation_body(k, &body);                            // the chat request with the history in it
 *     conversation_keep(k, answer, form);                     // done(user, NULL): it outlives a crash from here on
 *     conversation_free(k);
 *
 * A history is one flat list of chat messages, whatever holds it. A session is a list of turns, each
 * {"id":"chatcmpl-...","messages":[...]}: what one request brought and what was answered. A response is one
 * turn, {"messages":[all of it],"response":"the object as text"}: it needs no other that may be deleted
 * before it.
 *
 * A turn says, too, whose KV pages hold it: {"pages":...,"n_prompt":...}. The next turn goes there while that
 * life of that replica is there and not overloaded (router.h), else to whom the conversation's id leads; so
 * gateways that share conversations send them to the same replicas. Loop thread. */
#ifndef INFERENCE_CONVERSATION_H
#define INFERENCE_CONVERSATION_H

#include "dialects/responses.h"
#include "request/request.h"
#include "sessions/session_thread.h"

/* A body as what is generated: 0 and *ret, or an HTTP status with *e filled. */
typedef int (*generate_parse)(gen_spec **ret, const char *body, size_t len, api_error *e);

/* What a turn says beside its messages. */
typedef struct conversation_marks {
    const char *skip;         /* the turn with this id is passed over; NULL: none */
    bool skipped;             /* and it was this one */
    uint64_t pages, n_prompt; /* who computed it, and how many tokens it read; 0: not said */
} conversation_marks;

typedef struct conversation {
    gateway_request *rq;
    json_t *chat;            /* the request, without "messages"; owned, as all here */
    json_t *head;            /* its leading messages of the system, which are not kept */
    json_t *added;           /* the others */
    json_t *history;         /* what comes between */
    response_spec *response; /* NULL: a session's */
    response_form form;      /* of a response */
    generate_parse parse;    /* of its chat request; NULL: OpenAI's */
    session_id id;           /* of the session, of the response that is gone on with */
    bool loads, keeps, shortens;
    char decided[192]; /* whom the route of its model has chosen; "": nobody yet */
    bool was_kept;     /* the stream that is gone on with had been kept before its end was heard */
    char resumed[48];  /* its id; "": none */
    uint64_t pages;    /* who holds the KV pages of the last turn, then of this one; 0: nobody known */
    uint64_t n_past;   /* tokens that the last turn read; 0: not known */
    bool computed;     /* this turn was, and did not come from the cache */
    session_job *job;  /* that runs; NULL: none */
    void (*loaded)(struct conversation *k, const api_error *e); /* NULL: it was loaded */
    void (*done)(void *job, const api_error *e);                /* NULL: it was kept */
    void *user;
} conversation;

/* The owner of what a request keeps: its API key, where keys are asked for. `kind`: "session", "response". */
session_id conversation_id(const gateway_request *rq, const char *kind, const char *name);
/* A job's failure as clients see it. */
int conversation_error(api_error *e, const session_job *j);
/* 400 when the configuration keeps nothing. */
int conversation_is_on(const gateway_request *rq, api_error *e);
/* Appends the messages of a stored turn to an array; SHOAL_EFORMAT for what is none. m may be NULL. */
int conversation_read_turn(json_t *to, const char *text, size_t n, conversation_marks *m, shoal_err *err);

/* Takes the messages apart: leading ones of the system, and the rest. 0 or an HTTP status. */
int conversation_split(conversation *k, const json_t *messages, api_error *e);
/* Loads k->history if k->loads, then calls k->loaded, now or later; not when the client has left. */
void conversation_load(conversation *k);
/* The same, of a response whose request refers to items of others: those first, and of them k->added. */
void conversation_load_items(conversation *k);
/* Append the chat request with the history in it. */
void conversation_body(const conversation *k, buf *out);
/* Which replicas a call of it prefers: whoever holds its pages, then by its id. A route that says otherwise
 * (round_robin, a key of its own) is obeyed. k may be NULL. */
void conversation_lead(const conversation *k, call_context *ctx);
/* Somebody there has computed the answer. k may be NULL. */
void conversation_computed(conversation *k, const call_place *p);
/* The older half of the history goes, up to what a user says; false: there is none. */
bool conversation_shorten(conversation *k);
/* Keeps the answer, then calls k->done(k->user), later. */
void conversation_keep(conversation *k, const gen_answer *a, const answer_form *f);
void conversation_free(conversation *k); /* NULL is fine; a job that runs goes on without it */

#endif
