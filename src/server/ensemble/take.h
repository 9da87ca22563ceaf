/* take.h: what one member of an ensemble said, kept until somebody decides whose answer goes out.
 *
 *     take k;
 *     take_init(&k, "home-chat-s");
 *     take_note(&k, order, m);                  // each event, from the member's on_event
 *     take_end(&k, order, result);              // and its end
 *     if (take_confidence(&k) >= 0.8) ...
 *     while ((m = take_next(&k, order))) { ...; take_free(m); }    // again, in their order
 *     take_done(&k);
 *
 * Confidence is the member's own word, from 0 to 1, raw (confidence.h makes a probability of it): of a
 * generation the mean probability of its tokens, of a classification that of the best label (of several texts
 * the least), of a tagging that of the least sure span. Events are kept packed: a reply of 1,000 tokens takes
 * about 30 KiB. */
#ifndef ENSEMBLE_TAKE_H
#define ENSEMBLE_TAKE_H

#include "base/buf.h"
#include "calls/calls.h"

typedef struct take {
    const char *model; /* borrowed */
    buf events;        /* packed, each behind its length */
    size_t at;         /* what take_next has given out */
    size_t n_tokens;
    double prob_sum, square_sum;
    /* Looked at after every token, however they come in pieces; given what the confidence will hardly exceed
     * (take_confidence_at_most). May be NULL. */
    bool (*is_hopeless)(void *user, double at_most);
    void *user;
    double hopeless_at; /* what the confidence was when that first held; < 0: it did not */
    bool ended, lost;   /* lost: there was no memory to keep it all */
    call_result result;
    buf strings; /* result's */
    buf reply;   /* packed, of a unary call */
    double sure; /* of a unary reply; < 0: it says nothing */
} take;

void take_init(take *k, const char *model);
/* A stream's event; m is copied. */
void take_note(take *k, const call_order *o, const ProtobufCMessage *m);
/* The end; what *r points to is copied. */
void take_end(take *k, const call_order *o, const call_result *r);
/* It ended well and is all here. */
bool take_is_whole(const take *k);
/* 0 to 1; 0 when nothing can be said. */
double take_confidence(const take *k);
/* What the confidence will hardly exceed when the reply goes on as it began: two standard errors above the
 * mean; 1 before TAKE_TOKENS_MIN tokens. */
#define TAKE_TOKENS_MIN 8
double take_confidence_at_most(const take *k);

bool take_has_more(const take *k);
/* The next event, to be freed by take_free. NULL: out of memory, or there is none. */
ProtobufCMessage *take_next(take *k, const call_order *o);
/* The end as it was, its reply unpacked into *ret_reply (NULL without one): free it by take_free after use.
 * SHOAL_ENOMEM: *ret is a result that says so. */
int take_result(const take *k, const call_order *o, call_result *ret, ProtobufCMessage **ret_reply);
void take_free(ProtobufCMessage *m); /* accepts NULL */
void take_done(take *k);             /* accepts a zeroed one */

#endif
