/* rule_form.h: is a text made of sentences that the rules of a lexicon have themselves?
 *
 *     Turning on Kitchen Light and locking Front Door Lock.      "Turning on {name}", "Locking {name}"
 *     Yes, Kitchen Light is on.                                  "Yes, {name} is {state}."
 *     I think the best                                           none
 *
 * A sentence of another form says what nobody can check. What stands in the fields is devices of the list, and for
 * other fields words that were given. */
#ifndef RULES_RULE_FORM_H
#define RULES_RULE_FORM_H

#include "nlu/lexicon.h"
#include "pipeline/device.h"

typedef struct rule_form_given {
    const lexicon *lex;
    const device *devices;
    size_t n_devices;
    const char *const *known; /* texts whose words may stand in fields */
    size_t n_known;
} rule_form_given;

/* SHOAL_ENOMEM, or 0. An empty text is made of none. */
int rule_form_fits(bool *ret, const rule_form_given *given, const char *text, arena *mem);

#endif
