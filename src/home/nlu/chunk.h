/* chunk.h: one request of a sentence ("dim the lamp to 40%") taken apart: cue, device, values, guards. */
#ifndef NLU_CHUNK_H
#define NLU_CHUNK_H

#include "nlu/units.h"

#define CHUNK_VALUES_MAX 6
#define CHUNK_CUES_MAX   24
#define CHUNK_EXCEPT_MAX 4

typedef struct chunk_value {
    size_t at, n; /* units */
    bool choice;  /* a word of some value's choices; else a number or a duration */
} chunk_value;

/* What stands beside the words that a cue uses. */
typedef struct chunk_rest {
    mention what;
    mention except[CHUNK_EXCEPT_MAX]; /* what a group leaves out */
    size_t n_except;
    size_t n_whole; /* whole names that stood there */
    size_t device;  /* the last of them; SIZE_MAX: none */
    chunk_value values[CHUNK_VALUES_MAX];
    size_t n_values;
    bool forbidden, later, withdrawn, contrast, reported, keeps;
    bool only_state;      /* the cue is no more than "on" or "off" */
    size_t n_strange;     /* words that nothing explains */
    size_t first_strange; /* the unit, SIZE_MAX: none */
} chunk_rest;

typedef struct chunk_cue {
    const action_def *action;
    unit_set used;
    chunk_rest rest;
} chunk_cue;

typedef struct chunk {
    size_t from, to;  /* units */
    unit_set guarded; /* units that no cue may use */
    size_t except_at; /* where an exception begins; `to`: nowhere */
    size_t n_cues;    /* best first: fewest strange words, then most words used */
    chunk_cue cues[CHUNK_CUES_MAX];
    chunk_rest bare; /* without any cue */
} chunk;

/* Units [from, to) of u. `lead`: polite beginnings may stand at its start. */
void chunk_read(chunk *ret, const units *u, size_t from, size_t to, const devices *d);
/* Once more for values that came to c->bare: actions that need no cue. */
void chunk_read_bare(chunk *c, const lexicon *l);
/* Where a request ends, before trailing fillers ("please") and signs. */
size_t chunk_trim(const units *u, size_t from, size_t to, const lexicon *l);
/* The rest beside `used`. */
void chunk_rest_read(chunk_rest *ret, const units *u, size_t from, size_t to, unit_set used,
                     const devices *d);
/* Does this value fit the definition? For a choice *ret_means is what it means. */
bool chunk_value_fits(const chunk_value *v, const units *u, const value_def *def, const char **ret_means);
/* Where the request begins, after fillers and polite leads. *ret_lead: there was a lead. */
size_t chunk_start(const units *u, size_t from, size_t to, const lexicon *l, bool *ret_lead);

#endif
