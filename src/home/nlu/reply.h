/* reply.h: sentences from a lexicon's templates. All return NULL when memory is out. */
#ifndef NLU_REPLY_H
#define NLU_REPLY_H

#include "nlu/devices.h"

typedef struct reply_field {
    const char *name, *value;
} reply_field;

/* Fill in {name} of the fields; a name that is not among them stays as it is written. */
const char *reply_fill(arena *a, const char *template, const reply_field *fields, size_t n);

/* "A, B and C"; from eight on the first seven in `more`, with {names} and {count}. word: and/or. */
const char *reply_list(arena *a, const char *const *names, size_t n, const char *word, const char *more);
/* The same of devices; those that share a name with their ids. */
const char *reply_names(arena *a, const devices *d, const device_set *s, const char *word);

#endif
