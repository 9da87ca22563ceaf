/* resume.h: what has come of a stream, as far as another worker needs it to go on exactly there.
 *
 * Feed it every event that is passed on; when the worker dies, resume_order makes of the first order one
 * whose answer begins with the next event. proto/worker.proto (GenerateRequest.resume_ids) says what must be
 * sent; since a packed message may be followed by more of its fields (Protocol Buffers, "Last One Wins"), the
 * first request is never unpacked.
 *
 *     resume r = {0};
 *     if (resume_takes(&r, order, m)) { resume_note(&r, order, m); pass(m); }
 *     ...
 *     call_order *next = resume_order(&r, order);
 *     resume_done(&r); */
#ifndef CALLS_RESUME_H
#define CALLS_RESUME_H

#include "calls/calls.h"

typedef struct resume {
    bool begun; /* the first event has been noted, */
    bool told;  /* or was before the answer began anew */
    bool grown; /* some of the reply has come */
    bool done;  /* and the last */
    /* of a generation */
    uint32_t max_tokens, n_cached;
    bool in_thought, knows_cached;
    int32_t *prompt_ids, *ids;
    size_t n_prompt_ids, n_ids, cap;
    uint64_t n_bytes;
    double prob_sum;
    /* of a transcription */
    uint32_t n_segments;
    uint64_t done_ms;
    /* It cannot go on elsewhere: no memory for the ids, or a worker that does not know of resuming. */
    bool broken;
    unsigned n_deaths; /* workers that died on it lately; the owner counts */
} resume;

/* Is this event news? No: the caller has had it from the worker before (the beginning, progress that is made
 * a second time). */
bool resume_takes(const resume *r, const call_order *o, const ProtobufCMessage *m);
/* Did the reply grow? */
bool resume_grows(const call_order *o, const ProtobufCMessage *m);
void resume_note(resume *r, const call_order *o, const ProtobufCMessage *m);
/* The event as the first worker would have sent it: the last one says how much of the prompt was cached at
 * first. Returns m or what is in *space. */
typedef struct resume_space {
    Shoal__V1__GenerateEvent event;
    Shoal__V1__Done done;
} resume_space;
const ProtobufCMessage *resume_mend(const resume *r, const call_order *o, const ProtobufCMessage *m,
                                    resume_space *space);
/* The order to go on with, o itself (one more reference) when nothing has come yet; NULL: no memory. */
call_order *resume_order(const resume *r, call_order *o);
/* The answer begins anew, elsewhere. told: whoever listens is not to hear of its beginning again. */
void resume_restart(resume *r, bool told);
void resume_done(resume *r); /* accepts a zeroed one */

#endif
