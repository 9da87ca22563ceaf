/* ensemble_words.h: how an ensemble comes to its answers, in the form of a route's decision.
 *
 *     {"route":"home-cascade","kind":"cascade",
 *      "steps":[{"model":"home-chat-s","why":"asked first; ..."}, ...],"skipped":[],"object":"shoal.route"
 *
 * What it decides it decides by what its members say, so this holds for every request. Pure. */
#ifndef CONFIG_ENSEMBLE_WORDS_H
#define CONFIG_ENSEMBLE_WORDS_H

#include "base/buf.h"
#include "config/config_ensembles.h"

/* Without the closing brace: the caller adds what it took. */
void ensemble_words_put(buf *out, const config_ensemble *e);

#endif
