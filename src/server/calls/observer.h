/* observer.h: what happens to calls, told to whoever counts, traces or logs it.
 *
 * One observer serves a whole stack of decorators; each tells what it decides. An order names the request that
 * it belongs to by a number (call_context.request), so that an observer finds it without comparing texts. What
 * is told is borrowed for the moment. An observer cancels and starts no calls.
 *
 *     call_observer o = {.user = g, .moved = on_moved};            // what is NULL is not told
 *     failover_calls_new(&c, env, c, &(failover_options){.observer = &o}, err);   // which outlives the calls
 */
#ifndef CALLS_OBSERVER_H
#define CALLS_OBSERVER_H

#include "calls/calls.h"
#include "logging/span.h"

enum { CALL_PHASES_MAX = 4 };
typedef struct call_phase { /* what a worker said that it spent its time on, one after the other */
    const char *name;       /* "queue", "prefill", "decode", ... */
    double ms;
} call_phase;

typedef struct call_usage { /* what a generation's end says */
    bool known;
    uint32_t n_prompt, n_generated;
    char finish[16]; /* "stop", "length", "tool_calls" */
} call_usage;

enum { CALL_CONFIDENCES_MAX = 64 };
typedef struct call_confidences { /* of a classification: each text's best score, of the first texts */
    size_t n;
    float best[CALL_CONFIDENCES_MAX];
} call_confidences;

typedef struct call_attempt { /* one replica's part in a call, from the sending to its end */
    const char *replica_id, *identity;
    uint64_t start_ns, end_ns;
    int status; /* SHOAL_ECANCELLED: whoever asked left it */
    call_fault fault;
    call_phase phases[CALL_PHASES_MAX];
    size_t n_phases; /* 0: it said nothing of its time */
    double cpu_ms;   /* of the worker's cores; 0: it said nothing of them */
    call_usage usage;
    const call_confidences *confidences; /* NULL: it is no classification, or it did not end well */
} call_attempt;

typedef struct call_move { /* a call goes on at another replica, which has just answered */
    const char *cause;     /* call_fault_name of how the last one was lost, or "silent" */
    const char *to;        /* the replica */
    double gap_ms;         /* without an event */
    bool restarted;        /* the answer began anew there: nobody was left to go on with the same bits */
} call_move;

typedef struct call_observer {
    void *user;
    void (*attempt)(void *user, const call_order *o, const call_attempt *a);
    void (*moved)(void *user, const call_order *o, const call_move *m);
    void (*hedged)(void *user, const call_order *o, bool won); /* a second call answered first, or not */
    void (*degraded)(void *user, const call_order *o, const char *to); /* a model stands in for the order's */
    void (*held)(void *user, const call_order *o,
                 bool held); /* it begins to wait for a replica, or no longer waits */
    void (*end)(void *user, const call_order *o, const call_result *r); /* of one model, after all attempts */
    /* A part of a request's work is over: a stage, an ensemble's call. Only where call_spans has somebody. */
    void (*span)(void *user, uint64_t request, const span *s);
} call_observer;

/* Each accepts NULL, and an observer that does not want to hear it. */
void call_observer_attempt(const call_observer *w, const call_order *o, const call_attempt *a);
void call_observer_moved(const call_observer *w, const call_order *o, const call_move *m);
void call_observer_hedged(const call_observer *w, const call_order *o, bool won);
void call_observer_degraded(const call_observer *w, const call_order *o, const char *to);
void call_observer_held(const call_observer *w, const call_order *o, bool held);
void call_observer_end(const call_observer *w, const call_order *o, const call_result *r);

/* A span that begins under `at`: its id, and where the work in it stands; 0, and *ret zeroed, where nobody is told. */
uint64_t call_spans_begin(call_spans *ret, const call_spans *at);
/* s has ended; nothing where nobody is told. */
void call_spans_end(const call_spans *at, uint64_t request, const span *s);

/* What a last message of a task says of its time: returns the number of phases, 0 for other messages. */
size_t call_phases_of(call_task task, const ProtobufCMessage *m, call_phase ret[CALL_PHASES_MAX]);
/* Of its tokens; zeroed for other messages. */
call_usage call_usage_of(call_task task, const ProtobufCMessage *m);
/* What a classification is sure of; n is 0 for other messages. */
void call_confidences_of(call_task task, const ProtobufCMessage *m, call_confidences *ret);
/* And of the cores that it used; 0 for other messages. */
double call_cpu_ms_of(call_task task, const ProtobufCMessage *m);

#endif
