/* clause.h: one request of a sentence ("dim the lamp to 40%") taken apart: cue, device, values, guards. */
#ifndef NLU_CLAUSE_H
#define NLU_CLAUSE_H

#include "nlu/units.h"

#define CLAUSE_VALUES_MAX 6
#define CLAUSE_CUES_MAX   24
#define CLAUSE_EXCEPT_MAX 4

typedef struct clause_value {
    size_t at, n;    /* units */
    bool choice;     /* a word of some value's choices; else a number or a duration */
    bool difference; /* so much more or less: "by 2 degrees" */
    bool degree;     /* "a little" */
} clause_value;

/* What stands beside the words that a cue uses. */
typedef struct clause_rest {
    entity_mention what;
    entity_mention except[CLAUSE_EXCEPT_MAX]; /* what a group leaves out */
    size_t n_except;
    size_t n_whole; /* whole names that stood there */
    size_t device;  /* the last of them; SIZE_MAX: none */
    clause_value values[CLAUSE_VALUES_MAX];
    size_t n_values;
    bool forbidden, later, withdrawn, contrast, reported, keeps;
    bool only_state;      /* the cue is no more than "on" or "off" */
    size_t n_strange;     /* words that nothing explains */
    size_t first_strange; /* the unit, SIZE_MAX: none */
} clause_rest;

typedef struct clause_cue {
    const action_def *action;
    unit_set used;
    clause_rest rest;
} clause_cue;

typedef struct clause {
    size_t from, to;  /* units */
    unit_set guarded; /* units that no cue may use */
    size_t except_at; /* where an exception begins; `to`: nowhere */
    size_t n_cues;    /* best first: fewest strange words, then most words used */
    clause_cue *cues[CLAUSE_CUES_MAX];
    clause_rest bare; /* without any cue */
} clause;

/* Units [from, to) of u; *ret is zeroed. SHOAL_ENOMEM, or 0. */
int clause_read(clause *ret, const units *u, size_t from, size_t to, const devices *d, arena *a);
/* Once more for values that came to c->bare: actions that need no cue. SHOAL_ENOMEM, or 0. */
int clause_read_bare(clause *c, const devices *d, arena *a);
/* Where a request ends, before trailing fillers ("please") and signs. */
size_t clause_trim(const units *u, size_t from, size_t to, const lexicon *l);
/* The rest beside `used`. */
void clause_rest_read(clause_rest *ret, const units *u, size_t from, size_t to, unit_set used,
                      const devices *d);
/* Does this value fit the definition? For a choice *ret_means is what it means. */
bool clause_value_fits(const clause_value *v, const units *u, const value_def *def, const char **ret_means);
/* Where the request begins, after fillers and polite leads. *ret_lead: there was a lead. */
size_t clause_start(const units *u, size_t from, size_t to, const lexicon *l, bool *ret_lead);

#endif
