/* batch.h: who computes how many tokens in the next step, and who has a place in it at all. Pure: no clock,
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

/* Places. When more want one than there are, they are shared by request (a group may have many sequences):
 * whoever waits takes the place of one that has had BATCH_STINT tokens out of it, if its group has more
 * places, or at once if that has at least two more. */
#define BATCH_STINT 32

typedef struct batch_place {
    uint64_t group;
    size_t n_stint; /* tokens it has generated since it got the place */
    bool fixed;     /* not to be taken from it */
} batch_place;

/* How many of the places the group has. */
size_t batch_places_of(const batch_place *places, size_t n, uint64_t group);
/* The place to be taken for one of `group`, n for none. */
size_t batch_victim(const batch_place *places, size_t n, uint64_t group);

#endif
