/* transcript_stream.h: a transcription's stream that outlives its gateway; as stream.h has it for
 * generations.
 *
 * Nothing of a transcription without a temperature is drawn, so its id (stream_id.h, one choice, no nonce)
 * has the digest of what was asked, the file that was sent included, the model's, and how much text was sent.
 * A client that comes back sends the file again; the answer is made again, and what the client has is left
 * out.
 *
 *     transcript_stream_open(&ts, rq, info->identity, &key, &e);                // new, or by Last-Event-ID
 *     transcript_stream_text(&ts, rq, place.identity, text, n, &is_new, &e);    // each segment, in its order
 *     transcript_stream_put_id(&out, &ts);                                    // before each event
 */
#ifndef INFERENCE_TRANSCRIPT_STREAM_H
#define INFERENCE_TRANSCRIPT_STREAM_H

#include "messages/stream_id.h"
#include "base/sha256.h"
#include "request/request.h"

typedef struct transcript_stream {
    stream_id id;    /* what has been sent, or will have been with the next event */
    stream_mark had; /* what the client has, when it resumes */
    bool named;      /* its events carry ids */
    bool resumes;
} transcript_stream;

/* key NULL: the answer is drawn, or not known well enough, and its events carry no ids. 0 or an HTTP status:
 * 400 for what is no id, 409 for the id of another request or model. */
int transcript_stream_open(transcript_stream *ret, gateway_request *rq, const char *identity,
                           const sha256_digest *key, api_error *e);
/* The client has all of it. */
bool transcript_stream_is_whole(const transcript_stream *s);
/* A segment's text comes from a replica of that identity ("": its replies cannot be made again). *ret_new: it is to be sent. 409: it is not what
 * the client has. */
int transcript_stream_text(transcript_stream *s, const gateway_request *rq, const char *identity,
                           const char *text, size_t n, bool *ret_new, api_error *e);
/* The last event is next. 409: the client has more than there is. */
int transcript_stream_end(transcript_stream *s, api_error *e);
void transcript_stream_put_id(buf *out, const transcript_stream *s);

#endif
