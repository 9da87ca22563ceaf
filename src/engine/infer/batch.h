/* batch.h: who computes how many tokens in the next step, and who has a slot in it at all. Pure: no clock,
 * no engine.
 *
 * Every running stream gets its one decode token; prefills share a budget, so that streams keep their
 * pace while a long prompt comes in. The budget is dealt out evenly, from another one on each step,
 * and what short ones leave goes to the others. */
#ifndef INFER_BATCH_H
#define INFER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BATCH_GRAIN 16 /* smallest share of a prefill, tokens */

typedef struct batch_entry {
    size_t pending; /* tokens still to compute; 1 is a decode step, 0: it waits for something else */
    bool probe;     /* wants logits of all tokens after the first n_quiet pending ones */
    size_t n_quiet;
    size_t n; /* out: tokens in this step, 0 for none */
} batch_entry;

typedef struct batch_limits {
    size_t alone, shared; /* prefill budget in tokens without and with decode steps beside it */
    size_t probe_rows;    /* rows of logits for probes */
    size_t turn;          /* number of the step */
} batch_limits;

/* Fills in n of each of the n entries. */
void batch_plan(batch_entry *entries, size_t n, const batch_limits *limits);

/* The budget. Weights stream from memory once a step, which takes as long as eight tokens of a prompt and
 * more (135 M Q8_0 on one thread: 2.50 M cycles a token in chunks of 32, 2.25 in 64, 2.15 in 128, 2.09 in
 * 256), so chunks are long where nobody waits for their end, and as short as the others want where somebody
 * does:
 *
 *     beside the prompts                          a chunk lasts           tokens
 *     nobody                                      QUIET_MS                128 to 256
 *     other requests came to this engine lately   COMPANY_MS              32 to 256
 *     streams that decode                         so long that the step   16 to `most`
 *                                                 takes BATCH_GAP times
 *                                                 what it takes without
 *
 * and no longer than a quarter of the time until the earliest deadline of the others, but 16 tokens at least.
 * Where a cost is not known yet it is 64. Other workers do not wait for the end of a step: it is interrupted
 * (step.c). */
#define BATCH_QUIET_MS   250.0
#define BATCH_COMPANY_MS 100.0
#define BATCH_GAP        2.0
#define BATCH_CHUNK_MAX  256

typedef struct batch_scene {
    double fixed_ms, token_ms; /* of a step of prompts alone: in any case, and each token; 0: not known */
    double beside_ms;          /* each token in a step that decodes as well; 0: not known */
    double decode_ms;          /* the step without its prompts; 0: not known */
    double left_ms;            /* until the earliest deadline of the others; 0: there is none */
    bool others_here;          /* other requests came to this engine lately */
    size_t most;               /* what the owner allows beside streams; 0: BATCH_CHUNK_MAX */
} batch_scene;

size_t batch_alone(const batch_scene *s);  /* a budget without decode steps beside it */
size_t batch_shared(const batch_scene *s); /* and with them */

/* Places. When more want one than there are, they are shared by request (a group may have many sequences):
 * whoever waits takes the slot of one that has had BATCH_STINT tokens out of it, if its group has more
 * slots, or at once if that has at least two more. */
#define BATCH_STINT 32

typedef struct batch_slot {
    uint64_t group;
    size_t n_stint; /* tokens it has generated since it got the slot */
    bool fixed;     /* not to be taken from it */
} batch_slot;

/* How many of the slots the group has. */
size_t batch_slots_of(const batch_slot *slots, size_t n, uint64_t group);
/* The slot to be taken for one of `group`, n for none. */
size_t batch_victim(const batch_slot *slots, size_t n, uint64_t group);

/* Replays: requests whose worker died. All that there is of each has to be computed again
 * before its next token comes; where workers die often, that is most of the work, and all of it is lost with
 * the next death. So they are computed again one at a time, beside the decode steps of those that are ready;
 * those nearest their end come first, and find pages of equal prompts in the cache. From the second death in
 * a short time on only few run at all, for a while: that makes whole replies of what would otherwise be begun
 * again and again. */
#define BATCH_REPLAYS       1    /* computed again at a time */
#define BATCH_STORM_DEATHS  2    /* so many in a short time are no accident: */
#define BATCH_STORM_RUNNING 2    /* then so many run, */
#define BATCH_STORM_WAIT_MS 3000 /* until they have waited so long */

typedef struct batch_replay {
    size_t n_left;     /* tokens that it may still get */
    unsigned n_deaths; /* workers that died on it lately */
    double waited_ms;
} batch_replay;

/* May it get a slot now, beside n_running of its kind, of which n_replaying are not ready yet? */
bool batch_may_replay(const batch_replay *r, size_t n_running, size_t n_replaying);
/* Does a come before b? Equals stay in their order. */
bool batch_replays_before(const batch_replay *a, const batch_replay *b);

#endif
