/* load_record.h: what a load measured: histograms, errors by kind, and how it went over time. Bounded memory.
 *
 *     load_record *r;
 *     load_record_new(&r, err);
 *     load_record_sent(r, at_s);                       // any thread
 *     load_record_add(r, &answer);
 *     load_record_lock(r); ... r->whole, r->intervals ... load_record_unlock(r);
 *     load_record_free(r); */
#ifndef LOAD_LOAD_RECORD_H
#define LOAD_LOAD_RECORD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"
#include "load/load_histogram.h"

/* X(NAME, word, what it is) */
#define LOAD_ERRORS(X)                                                       \
    X(NONE, "none", "answered")                                              \
    X(CONNECT, "connect", "nobody listened, or no connection in time")       \
    X(TIMEOUT, "timeout", "no whole answer in time")                         \
    X(BROKEN, "broken", "the connection ended before the answer")            \
    X(STREAM, "stream", "a stream that ended with an error, or without end") \
    X(REFUSED, "429", "status 429: too many requests")                       \
    X(CLIENT, "4xx", "another status from 300 to 499")                       \
    X(SERVER, "5xx", "status 500 and above")                                 \
    X(OTHER, "other", "no HTTP, or none of these")
typedef enum load_error {
#define LOAD_ERROR_ENUM(name, word, about) LOAD_ERROR_##name,
    LOAD_ERRORS(LOAD_ERROR_ENUM)
#undef LOAD_ERROR_ENUM
        LOAD_N_ERRORS
} load_error;
extern const char *const load_error_words[LOAD_N_ERRORS];
extern const char *const load_error_abouts[LOAD_N_ERRORS];

typedef struct load_answer { /* seconds since the start of the load */
    double due_s, sent_s, end_s;
    uint64_t first_ns;       /* from due to the first text; 0: none came */
    const uint64_t *gaps_ns; /* [n_gaps] between one text of a stream and the next */
    size_t n_gaps, n_tokens, n_prompt_tokens, n_resumed;
    bool by_texts; /* n_tokens are the texts of the stream: the answer said no number */
    load_error error;
    const char *why; /* of an error */
} load_answer;

/* Requests count in the interval in which they were due, their times too; answers in which they ended. */
typedef struct load_interval {
    size_t n_due, n_sent, n_ok, n_failed, n_tokens;
    load_histogram *whole, *first; /* NULL: none */
} load_interval;

enum { LOAD_INTERVALS = 120 }; /* of a width that doubles when the load outlasts them */

typedef struct load_record {
    pthread_mutex_t lock;
    size_t n_sent, n_ok, n_failed, n_late, n_resumed, n_tokens, n_prompt_tokens, n_by_texts;
    size_t errors[LOAD_N_ERRORS];
    char first_failure[200];
    /* of whole answers; to the first text or byte; between texts; and of whole answers from when they were really sent,
     * which an open loop must not be judged by */
    load_histogram whole, first, gap, service;
    double interval_s;
    load_interval intervals[LOAD_INTERVALS];
    size_t n_intervals; /* up to the last one in which anything was */
    double seconds;     /* of the load, once it is over */
} load_record;

int load_record_new(load_record **ret, shoal_err *err);
void load_record_free(load_record *r); /* NULL is fine */
/* A request leaves at sent_s that was due at due_s. */
void load_record_sent(load_record *r, double due_s, double sent_s);
void load_record_add(load_record *r, const load_answer *a);
void load_record_lock(load_record *r);
void load_record_unlock(load_record *r);

#endif
