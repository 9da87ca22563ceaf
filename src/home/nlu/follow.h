/* follow.h: a yes or a no to the question that a proposal became ("Do you mean: Turning off Bedroom Lamp.").
 *
 * A yes carries out the option that was asked about and no other one: the request is read again, and the
 * option must be among its proposals as it was. So a yes to something else than such a question does nothing.
 *
 *     follow_reply answer;
 *     rc = follow_read(&answer, lex, "yes please", arena);
 *     ... ground(&g, lex, devices, n, "and the lamp", arena, err) ...
 *     const device_option *o;
 *     rc = follow_asked(&o, &g, lex, "I am not sure ... Do you mean: Turning off Bedroom Lamp.", arena);
 *     if (o && answer == FOLLOW_YES) rc = follow_apply(&g, lex, true, &digest_of_o);
 *
 * Pure; memory is the caller's arena. */
#ifndef NLU_FOLLOW_H
#define NLU_FOLLOW_H

#include "base/sha256.h"
#include "nlu/ground.h"

typedef enum follow_reply { FOLLOW_OTHER, FOLLOW_YES, FOLLOW_NO } follow_reply;

/* Is the whole text a yes or a no? SHOAL_ENOMEM, or 0. */
int follow_read(follow_reply *ret, const lexicon *lex, const char *text, arena *a);

/* The option that `said`, a reply to the request of g, asked about; NULL: it asked about none. SHOAL_ENOMEM, or 0. */
int follow_asked(const device_option **ret, const grounding *g, const lexicon *lex, const char *said,
                 arena *a);

/* What a question about this option stands for. SHOAL_ENOMEM, or 0. */
int follow_digest(sha256_digest *ret, const device_option *o);

/* Make of a grounding what it is once somebody has answered the question about the option of that digest: after a
 * yes GROUND_ACT with that option alone, after a no GROUND_LEAVE. Without that option nothing may be done:
 * GROUND_PROPOSE stays, anything else becomes GROUND_UNCLEAR. SHOAL_ENOMEM, or 0. */
int follow_apply(grounding *g, const lexicon *lex, bool yes, const sha256_digest *about);

typedef struct follow_turn {
    const char *request, *reply, *answer;
    device_set before; /* what "it" stood for in the request */
} follow_turn;
typedef struct follow_meaning {
    const char *text; /* the request that the answer makes, in the arena; NULL: the answer as it is */
    device_set it;    /* what "it" stands for in that; empty: nothing */
} follow_meaning;
/* What the answer means behind the request and its reply. Did the reply ask which device is meant, or for a value, and
 * does the answer tell it ("turn on the lamp", "the left one"; "turn up the heat", "20")? Then they are one request.
 * Where the answer by itself would lead to a proposal, it is read with the request, too, or the request again: both do
 * nothing. Did the reply say what was done, or how a device is, and does the answer leave open what it is about ("turn
 * it off")? Then it is about that. A reply that the request would not have got means nothing. SHOAL_ENOMEM, or 0. */
int follow_read_turn(follow_meaning *ret, const lexicon *lex, const device *list, size_t n,
                     const follow_turn *t, arena *a);

#endif
