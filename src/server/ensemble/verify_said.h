/* verify_said.h: from what a member said (response_buffer.h) to an answer that rules can read, and back to events.
 *
 *     verify_answer a;
 *     rc = verify_said_read(&a, &plain, &response, order, &k, arena);
 *     ...
 *     rc = verify_said_make(&out, &response, order, &k, &mended, model);     // events in place of the member's
 *     response_buffer_done(&out);
 *
 * What a member thought before it answered is no part of its answer, and no part of one that is made here. */
#ifndef ENSEMBLE_VERIFY_SAID_H
#define ENSEMBLE_VERIFY_SAID_H

#include "ensemble/response_buffer.h"
#include "ensemble/verify.h"

/* *ret_plain: the events as they are say this and nothing else on the way; a text that was replaced (Refined)
 * is not plain. Of more than VERIFY_CALLS_MAX calls one too many is given. SHOAL_ENOMEM, or 0. */
int verify_said_read(verify_answer *ret, bool *ret_plain, const response_buffer *from, const call_order *o,
                     const verify_case *k, arena *mem);

/* *ret, which must be zeroed, is an ended response that says `a`: the tokens counted are those of `from`, which
 * may be one without an answer; then the result is `model`'s. SHOAL_ENOMEM, or 0; response_buffer_done either way. */
int verify_said_make(response_buffer *ret, const response_buffer *from, const call_order *o,
                     const verify_case *k, const verify_answer *a, const char *model);

/* The request once more, to be answered by one of these options. NULL: out of memory. */
call_order *verify_said_choose(const call_order *o, const char *model, const device_option *options, size_t n,
                               arena *mem);

#endif
