/* response_buffer.h: what one member of an ensemble said, kept until somebody decides whose answer goes out.
 *
 *     response_buffer k;
 *     response_buffer_init(&k, "home-chat-s");
 *     response_buffer_note(&k, order, m);                  // each event, from the member's on_event
 *     response_buffer_end(&k, order, result);              // and its end
 *     if (response_buffer_confidence(&k) >= 0.8) ...
 *     while ((m = response_buffer_next(&k, order))) { ...; response_buffer_free(m); }    // again, in their order
 *     response_buffer_done(&k);
 *
 * Confidence is the member's own word, from 0 to 1, raw (confidence.h makes a probability of it): of a
 * generation the mean probability of its tokens, of a classification that of the best label (of several texts
 * the least), of a tagging that of the least sure span. Events are kept packed: a reply of 1,000 tokens takes
 * about 30 KiB. */
#ifndef ENSEMBLE_RESPONSE_BUFFER_H
#define ENSEMBLE_RESPONSE_BUFFER_H

#include "base/buf.h"
#include "calls/calls.h"

typedef struct response_buffer {
    const char *model; /* borrowed */
    buf events;        /* packed, each behind its length */
    size_t at;         /* what response_buffer_next has given out */
    size_t n_tokens;
    double prob_sum, square_sum;
    /* Looked at after every token, however they come in pieces; given what the confidence will hardly exceed
     * (response_buffer_confidence_at_most). May be NULL. */
    bool (*is_hopeless)(void *user, double at_most);
    void *user;
    double hopeless_at; /* what the confidence was when that first held; < 0: it did not */
    bool ended, lost;   /* lost: there was no memory to keep it all */
    call_result result;
    buf strings; /* result's */
    buf reply;   /* packed, of a unary call */
    double sure; /* of a unary reply; < 0: it says nothing */
} response_buffer;

void response_buffer_init(response_buffer *k, const char *model);
/* A stream's event; m is copied. */
void response_buffer_note(response_buffer *k, const call_order *o, const ProtobufCMessage *m);
/* The end; what *r points to is copied. */
void response_buffer_end(response_buffer *k, const call_order *o, const call_result *r);
/* It ended well and is all here. */
bool response_buffer_is_whole(const response_buffer *k);
/* 0 to 1; 0 when nothing can be said. */
double response_buffer_confidence(const response_buffer *k);
/* What the confidence will hardly exceed when the reply goes on as it began: two standard errors above the
 * mean; 1 before RESPONSE_BUFFER_TOKENS_MIN tokens. */
#define RESPONSE_BUFFER_TOKENS_MIN 8
double response_buffer_confidence_at_most(const response_buffer *k);

bool response_buffer_has_more(const response_buffer *k);
/* The next event, to be freed by response_buffer_free. NULL: out of memory, or there is none. */
ProtobufCMessage *response_buffer_next(response_buffer *k, const call_order *o);
/* The end as it was, its reply unpacked into *ret_reply (NULL without one): free it by response_buffer_free after use.
 * SHOAL_ENOMEM: *ret is a result that says so. */
int response_buffer_result(const response_buffer *k, const call_order *o, call_result *ret,
                           ProtobufCMessage **ret_reply);
void response_buffer_free(ProtobufCMessage *m); /* accepts NULL */
void response_buffer_done(response_buffer *k);  /* accepts a zeroed one */

#endif
