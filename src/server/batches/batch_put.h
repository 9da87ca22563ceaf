/* batch_put.h: batches and the lines of their output as clients see them: OpenAI's and Anthropic's. Pure. */
#ifndef BATCHES_BATCH_PUT_H
#define BATCHES_BATCH_PUT_H

#include "batches/batch_line.h"
#include "retrieve/store_batch.h"

#define BATCH_ID     "batch_"    /* in front of a batch's number, */
#define BATCH_MSG_ID "msgbatch_" /* and of one of Anthropic's */

void batch_put(buf *out, const store_batch *b); /* in its dialect */
/* What one of the batch's requests was answered, without a newline. body: JSON; n 0: none came. */
typedef struct batch_reply {
    int status;
    const char *request_id;
    const char *body;
    size_t n;
} batch_reply;
void batch_put_answer(buf *out, batch_dialect d, int64_t batch, const store_batch_line *l,
                      const batch_reply *r);
/* It was given no answer, since the batch ended so: BATCH_CANCELLED or BATCH_EXPIRED. */
void batch_put_missing(buf *out, batch_dialect d, int64_t batch, const store_batch_line *l,
                       batch_status ends);
/* The input is not what it was, so it cannot be asked. */
void batch_put_unreadable(buf *out, batch_dialect d, int64_t batch, const store_batch_line *l);
/* An entry of a failed batch's errors. line 0: none. */
void batch_put_fault(buf *out, const batch_fault *f, int64_t line);

#endif
