/* stream.h: a generation's stream that outlives its gateway.
 *
 * Each event carries an id (stream_id.h). A client whose connection ends, or whose gateway dies, sends the
 * same request to any gateway of the cluster with the last id as Last-Event-ID; there the answer is made
 * again with the same seed, time and names, and goes out from where the client left. What is the same, byte
 * for byte: id, created, model and fingerprint of the chunks, and of each choice its role, reasoning, text,
 * calls (with their ids), log-probabilities, end and usage, each joined over the chunks that bring it. How an
 * answer is cut into chunks, in which order the chunks of several choices come, and usage's cached_tokens are
 * not promised.
 *
 *     stream st;
 *     stream_open(&st, rq, spec, &e)             a new one, or what Last-Event-ID says
 *     stream_terms(&st, rq, &terms, &e)          whom to ask
 *     stream_meet(&st, rq, place.identity, place.adapter_digest, &e)     who answers */
#ifndef INFERENCE_STREAM_H
#define INFERENCE_STREAM_H

#include "dialects/answer.h"
#include "request/request.h"

typedef struct stream {
    stream_id id;                        /* what has been sent */
    stream_mark had[STREAM_CHOICES_MAX]; /* what the client has of each choice, when it resumes */
    bool named;                          /* its events carry ids */
    bool resumes;                        /* it goes on with another */
    bool was_whole;                      /* and nothing is left but to say so */
    bool met;                            /* id.model is known */
} stream;

/* After the model was chosen. Gives the spec its seed if it has none, and its clock. 0 or an HTTP status: 400
 * for what is no id, 409 for the id of another request. */
int stream_open(stream *ret, gateway_request *rq, gen_spec *spec, api_error *e);
/* The answer's names follow from s, which f borrows. */
void stream_name(stream *s, answer_form *f);
/* Only replicas with the identity that began an answer go on with it: 409 when none is served here any more. */
int stream_terms(const stream *s, gateway_request *rq, call_terms *ret, api_error *e);
/* A choice is answered with this identity (base/bit_identity.h; NULL or "": not known, or its replies cannot be
 * made again exactly) and this adapter ("": none is asked for). 409: it is not the one that began. When choices
 * of a new stream are answered by different ones (a file is being replaced), its events carry no ids from then
 * on. */
int stream_meet(stream *s, const gateway_request *rq, const char *identity, const char *adapter_digest,
                api_error *e);
/* The answer of a new stream begins anew, and may be another's (stream_meet). */
void stream_forget(stream *s);
/* Choice k may have max_tokens; 409: a resumed one had room for another number where it began. */
int stream_started(stream *s, size_t k, uint32_t max_tokens, api_error *e);
/* Are this identity and this adapter those that began? */
bool stream_is_of(const stream *s, const char *identity, const char *adapter_digest);
/* 409: the answer came out otherwise than what the client has; the id is of another request; the model's file,
 * its engine or its precision is another than the one that began. */
int stream_differs(api_error *e);
int stream_other(api_error *e);
int stream_replaced(const gateway_request *rq, api_error *e);

#endif
