/* judge.h: whether an answer is whole, and its canonical bytes.
 *
 * Two answers to the same request are the same when their canonical bytes are. These are the answer as JSON
 * with sorted keys; the events of a stream are put together first, so that it does not matter how many
 * tokens came in one piece, but every byte of their texts, the reasons they ended and their counts do. What
 * may differ between two computations of one answer is left out: the paths in judge_left_out.
 *
 *     buf canon = {0};
 *     char why[120];
 *     if (judge_canon(&canon, body, n, true, why, sizeof why) != 0) ... lost, because of `why` */
#ifndef LAB_JUDGE_H
#define LAB_JUDGE_H

#include <stdbool.h>

#include "base/buf.h"

/* "trace[].ms" and the like; ends with NULL. */
extern const char *const judge_left_out[];

/* Append the canonical bytes of a whole answer. SHOAL_EPROTOCOL and one sentence when it is none: an error
 * object or event, a stream without its [DONE] or with something behind it, what is no JSON. */
int judge_canon(buf *ret, const char *body, size_t n, bool stream, char *why, size_t why_cap);

/* Where two canonical answers part, in a few words for the report. */
void judge_difference(const char *want, const char *got, char *ret, size_t cap);

#endif
