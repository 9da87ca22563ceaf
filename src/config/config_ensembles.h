/* config_ensembles.h: names under which several models answer together (ensemble/).
 *
 *     ensembles:
 *       - name: home-cascade
 *         kind: cascade                # small first, larger when it is not sure
 *         members:
 *           - {model: home-chat-s, min_confidence: 0.8, calibration: home-chat-s.calibration.json}
 *           - {model: home-chat-m}
 *       - {name: home-vote, kind: vote, members: [{model: home-chat-s}, {model: home-chat-m, weight: 2}]} */
#ifndef CONFIG_CONFIG_ENSEMBLES_H
#define CONFIG_CONFIG_ENSEMBLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define ENSEMBLE_MEMBERS_MAX 8
#define ENSEMBLE_CONFIDENCE  0.8 /* of members that say nothing else */
#define ENSEMBLE_WAIT_MS     300

/* X(enum, name in YAML) */
#define ENSEMBLE_KIND_TABLE(X)     \
    X(ENSEMBLE_CASCADE, "cascade") \
    X(ENSEMBLE_VOTE, "vote")       \
    X(ENSEMBLE_REFINE, "refine")
typedef enum ensemble_kind {
#define ENSEMBLE_KIND_ENUM(e, name) e,
    ENSEMBLE_KIND_TABLE(ENSEMBLE_KIND_ENUM)
#undef ENSEMBLE_KIND_ENUM
} ensemble_kind;

typedef enum ensemble_mean { ENSEMBLE_ARITHMETIC, ENSEMBLE_GEOMETRIC } ensemble_mean;

typedef struct config_member {
    const char *model;
    double min_confidence; /* of a cascade, but for its last; 0: the calibration's, or ENSEMBLE_CONFIDENCE */
    const char
        *calibration; /* a file that `shoal calibrate` wrote; NULL: the confidence as the model says it */
    double weight;    /* of a vote; 0: 1 */
} config_member;

typedef struct config_ensemble {
    const char *name;
    ensemble_kind kind;
    ensemble_mean mean; /* of a vote */
    unsigned wait_ms;   /* of a refined answer: how long the better one may be silent; 0: ENSEMBLE_WAIT_MS */
    config_member *members;
    size_t n_members;
} config_ensemble;

struct gateway_config;
const config_ensemble *config_ensemble_find(const struct gateway_config *c, const char *name); /* or NULL */
/* A model of this file, or an ensemble. */
bool config_answers(const struct gateway_config *c, const char *name);
int config_check_ensembles(const struct gateway_config *c, shoal_err *err);

#endif
