/* ground.h: what a request means for the devices of a home, or why nothing may happen.
 *
 * A request is acted on only when every word of it is explained: as a cue of an action, a name, a value or a
 * filler. What is forbidden, put off, asked, remarked or not understood is answered and never acted on. This
 * is how small models are held by what is known: they choose among the options given here, or propose one
 * that a person confirms.
 *
 *     grounding g;
 *     rc = ground(&g, lex, devices, n_devices, "turn on the attic fan and lock up", arena);
 *     if (g.verdict == GROUND_ACT) ... g.options[0].calls[0..n_calls) ... g.text
 *
 * Pure: no clock, no I/O; the result lives in the caller's arena and borrows text and devices. */
#ifndef NLU_GROUND_H
#define NLU_GROUND_H

#include "base/err.h"
#include "nlu/devices.h"

#define GROUND_OPTIONS_MAX 16
#define GROUND_CALLS_MAX   DEVICES_MAX
#define GROUND_WORDS_MAX   256 /* of a request; it bounds the work, and nobody asks for so much at once */

/* X(enum, name in conditions and traces, what it is) */
#define GROUND_VERDICTS(X)                                                                 \
    X(GROUND_ACT, "act", "clear: options[0] is what was asked")                            \
    X(GROUND_CHOOSE, "choose", "one of the options was asked")                             \
    X(GROUND_PROPOSE, "propose", "an option may have been meant: ask first, never act")    \
    X(GROUND_ASK, "ask", "text asks which device or value is meant")                       \
    X(GROUND_ANSWER, "answer", "text answers a question about states")                     \
    X(GROUND_LEAVE, "leave", "it was forbidden or withdrawn")                              \
    X(GROUND_LATER, "later", "it was put off, conditional, or for a time")                 \
    X(GROUND_MISSING, "missing", "the home has no such device")                            \
    X(GROUND_CANNOT, "cannot", "the device cannot do that")                                \
    X(GROUND_TALK, "talk", "a greeting or a question about Shoal")                         \
    X(GROUND_UNCLEAR, "unclear", "not understood: devices are named, nothing may be done") \
    X(GROUND_NOTHING, "nothing", "no request for the devices")
typedef enum ground_verdict {
#define GROUND_ENUM(e, n, about) e,
    GROUND_VERDICTS(GROUND_ENUM)
#undef GROUND_ENUM
} ground_verdict;
const char *ground_verdict_name(ground_verdict v);

typedef struct grounding {
    ground_verdict verdict;
    const char *text; /* the reply; never empty. For CHOOSE and PROPOSE what is said when nobody chooses */
    size_t n_options;
    device_option *options;
    device_set named;    /* devices that the request names or may name */
    device_set done;     /* ACT: what is acted on */
    const char *example; /* something that can be asked of this home; "" when nothing can */
    bool question;       /* NOTHING, TALK: it was a question */
    const char
        *request; /* where text asks for a value of one device: the request that an {answer} completes, */
    const char *about; /* and the {name} in it; NULL: it asks for none */
    bool odd_value;    /* a value was given, which is out of bounds or in no unit of its kind */
} grounding;

/* SHOAL_ENOMEM, or 0. Text is UTF-8 of any length; what is too long is not understood. */
int ground(grounding *ret, const lexicon *lex, const device *list, size_t n, const char *text, arena *a,
           shoal_err *err);

/* The same behind a request that was about `before`: that is what "it" stands for. NULL: there was none. */
int ground_after(grounding *ret, const lexicon *lex, const device *list, size_t n, const char *text,
                 const device_set *before, arena *a, shoal_err *err);

/* The same for a home whose devices are known already: for many requests they are looked at once. */
int ground_home(grounding *ret, const devices *home, const char *text, const device_set *before, arena *a,
                shoal_err *err);

/* A sentence of the lexicon's talk with this home's example in it; NULL: out of memory. */
const char *ground_say(const grounding *g, const char *say, arena *a);

#endif
