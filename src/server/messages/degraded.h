/* degraded.h: that an answer is another model's than the one that was asked, as its reader is told.
 *
 *     "degraded": {"wanted": "chat-large", "answered_by": "chat-small", "why": "...", "confidence": 0.83}
 *
 * and the header x-shoal-degraded: chat-large. "confidence" is there where the task has one: of a generation
 * the mean probability of its tokens, of a classification the best label's score; of several the lowest. */
#ifndef MESSAGES_DEGRADED_H
#define MESSAGES_DEGRADED_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct degraded {
    char wanted[96]; /* "": the answer is the wanted model's */
    char by[96], why[320];
    double confidence;
    bool is_confident; /* confidence is known */
    bool told;         /* a stream's first chunk has said it */
} degraded;

void degraded_set(degraded *d, const char *wanted, const char *by, const char *why);
void degraded_trust(degraded *d, double confidence); /* the lowest stays */
/* Append the member, name and value: no comma. */
void degraded_put(buf *out, const degraded *d);

#endif
