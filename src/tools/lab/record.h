/* record.h: what happened in a run of the lab: every request's fate, every fault, every node's state.
 *
 * Times are milliseconds since the disturbed run began. The record owns nothing but its lists; texts are the
 * scenario's. Written by the threads of the load (each its own answers) and the lab's own; read when both
 * are done. */
#ifndef LAB_RECORD_H
#define LAB_RECORD_H

#include "lab/relay.h"
#include "lab/scenario.h"

/* X(NAME, word, what it means) */
#define LAB_FATES(X)                                                    \
    X(SAME, "same", "a whole answer, the bytes of the undisturbed run") \
    X(DIFFERENT, "different", "a whole answer with other bytes")        \
    X(LOST, "lost", "an error, a broken stream, or nothing within patience")
typedef enum lab_fate {
#define LAB_FATE_ENUM(name, word, about) FATE_##name,
    LAB_FATES(LAB_FATE_ENUM)
#undef LAB_FATE_ENUM
} lab_fate;
extern const char *const lab_fate_words[];

typedef struct lab_answer {
    size_t request; /* of the scenario, with its variant (from 1) */
    uint32_t variant;
    uint32_t client, gateway, attempts; /* gateway: the last that was asked */
    uint32_t resumed; /* attempts that went on with a stream where an earlier one broke off */
    int status;       /* of the last attempt; 0: there was none */
    lab_fate fate;
    double start_ms, end_ms, first_ms; /* first: the first byte of an answer's body; -1: none */
    float *pieces_ms;                  /* [n_pieces] when each piece of what was kept came, after start_ms */
    size_t n_pieces;
    char why[120];   /* of what is lost or different */
    char digest[17]; /* the beginning of its canonical bytes' SHA-256; "": none */
} lab_answer;

typedef struct lab_injection {
    size_t fault;         /* of the scenario */
    double at_ms, end_ms; /* end: -1 when it has none */
    int node;             /* where it struck; -1: on links */
    char what[240];       /* "kill worker home-chat-s on gw" */
    char model[64];       /* whose worker; "": not a worker's */
    bool hit;             /* false: there was nothing to affect */
    size_t n_touched;     /* streams that were under way and could feel it */
    double gap_ms;        /* the longest silence of one of them around it; -1: none ended well */
} lab_injection;

/* X(NAME, word) */
#define LAB_STATES(X) \
    X(DOWN, "down") X(FROZEN, "frozen") X(CUT_OFF, "cut off") X(SLOW, "slow link") X(FULL, "disk full")
typedef enum lab_state {
#define LAB_STATE_ENUM(name, word) STATE_##name,
    LAB_STATES(LAB_STATE_ENUM)
#undef LAB_STATE_ENUM
        LAB_N_STATES
} lab_state;
extern const char *const lab_state_words[];

typedef struct lab_span {
    size_t node; /* n_nodes: the client */
    lab_state state;
    double from_ms, to_ms; /* to: -1 while it lasts */
} lab_span;

typedef struct lab_record {
    const lab_scenario *scenario;
    lab_answer *answers; /* by start */
    size_t n_answers;
    lab_injection *injections;
    size_t n_injections;
    lab_span *spans;
    size_t n_spans, room_spans;
    double whole_ms;                                    /* from the first request to the last answer */
    double calm_p50_ms, calm_p99_ms, calm_first_p50_ms; /* of the undisturbed run */
    size_t n_distinct;
    relay_counts links;
    double link_added_us; /* what a packet's way through the relay takes on an idle machine; -1: not known */
    bool interrupted;
} lab_record;

void record_done(lab_record *r);

/* A state of a node begins (at from_ms) or ends; beginning twice or ending what is not is fine. Memory that
 * cannot be had leaves the span out. */
void record_begin(lab_record *r, size_t node, lab_state s, double at_ms);
void record_end(lab_record *r, size_t node, lab_state s, double at_ms);

/* Fill in n_touched and gap_ms of every injection. A stream that was under way when it struck, or began before
 * it was over (within 0.5 s of an injection without an end), felt it if it asked the affected worker's model, or if
 * more than a worker was struck. Of those that were answered, the longest time between two pieces that ended
 * after the injection and began before the next one (and within 10 s) counts. */
void record_find_gaps(lab_record *r);

#endif
