/* function_table_impl.h: the table in memory. Inside function_*.c. */
#ifndef CONVERSE_FUNCTION_TABLE_IMPL_H
#define CONVERSE_FUNCTION_TABLE_IMPL_H

#include "converse/function_table.h"

struct function_table {
    json_t
        *root; /* the file as JSON, whose form function_table_parse has checked; the others borrow from it */
    const json_t *rows, *domains, *parameters, *words, *offered, *services;
    const json_t *unit_domains, *unit_names, *unit_locales;
    const json_t *state_functions, *verdicts;
    const json_t *failed, *done, *empty, *why, *failed_words, *done_words;
    const char *replies[N_REPLIES];
};

/* Is it one of a list of texts? list may be NULL. */
bool function_table_has(const json_t *list, const char *s);

#endif
