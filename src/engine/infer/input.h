/* input.h: what an encoder reads, checked and copied: tokens, or features of another kind.
 *
 * One piece of memory, made on the caller's thread and owned by the job it belongs to. */
#ifndef INFER_INPUT_H
#define INFER_INPUT_H

#include "infer/engine.h"
#include "net/net.h"

typedef struct input {
    net_input in;       /* points behind this struct */
    size_t n_positions; /* what the encoder makes of it */
    size_t bytes;       /* of what lies behind this struct */
} input;

/* n_ctx bounds tokens. SHOAL_EINVALID (empty, ids out of range), SHOAL_ELIMIT (too long). Free with free().
 */
int input_new(input **ret, const net_ops *ops, const model_config *c, const enc_request *r, size_t n_ctx,
              shoal_err *err);
/* Of its content: equal inputs, equal digests. SHOAL_ENOMEM. */
int input_digest(const input *in, uint64_t *ret);

#endif
