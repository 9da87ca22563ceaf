/* shadow.h: answers that nobody sees, to learn how another model would have done.
 *
 * A route may name a shadow. When one of its answers is out, the same request is made of the shadow, as batch
 * work and at most SHADOWS_MAX at a time, and the two are compared: are they the same, and what share of
 * their words do they have in common (Dice, "Measures of the Amount of Ecologic Association Between Species",
 * 1945). What comes of it are metrics and a log line, never text. Only generations that were computed, of one
 * choice, are followed.
 *
 *     shadow_start(rq, &answer, &request);       // before the request ends; what it needs is copied
 *
 * Loop thread only. */
#ifndef ANSWERS_SHADOW_H
#define ANSWERS_SHADOW_H

#include "dialects/answer.h"
#include "request/routed.h"

enum { SHADOWS_MAX = 8, SHADOW_WORDS_MAX = 200, SHADOW_BYTES_MAX = 65536, SHADOW_DEADLINE_MS = 30000 };

/* Does the request's route want one, and is this one of its share? */
bool shadow_is_due(const gateway_request *rq);
void shadow_start(gateway_request *rq, const gen_answer *answer, const Shoal__V1__GenerateRequest *request);
/* No callback follows. */
void shadow_cancel_all(struct gateway *g);

/* 0 (no word in common) to 1 (the same words as often): of the first SHADOW_WORDS_MAX of each. Two empty
 * texts: 1. */
double shadow_likeness(const char *a, const char *b);

#endif
