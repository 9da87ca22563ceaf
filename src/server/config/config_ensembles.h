/* config_ensembles.h: names under which several models answer together (ensemble/).
 *
 *     ensembles:
 *       - name: home-cascade
 *         kind: cascade                # small first, larger when it is not sure
 *         members:
 *           - {model: home-chat-s, min_confidence: 0.8, calibration: home-chat-s.calibration.json}
 *           - {model: home-chat-m}
 *       - {name: home-vote, kind: vote, members: [{model: home-chat-s}, {model: home-chat-m, weight: 2}]}
 *       - name: home-verified
 *         kind: verify                 # nothing leaves unchecked
 *         members: [{model: home-chat-s}, {model: home-cascade}]
 *         check: [{kind: devices, lexicon: lexicons/home.yaml}]
 *         on_fail: [repair, escalate, safe]
 *       - name: home-best
 *         kind: rerank
 *         members: [{model: home-chat-s, candidates: 4, temperature: 0.8}, {model: home-chat-m}]
 *         score: {log_prob: home-chat-m} */
#ifndef CONFIG_CONFIG_ENSEMBLES_H
#define CONFIG_CONFIG_ENSEMBLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define ENSEMBLE_MEMBERS_MAX    8
#define ENSEMBLE_CONFIDENCE     0.8 /* of members that say nothing else */
#define ENSEMBLE_WAIT_MS        300
#define ENSEMBLE_CANDIDATES_MAX 16 /* of all members of a rerank together */
#define ENSEMBLE_CHECKS_MAX     8
#define ENSEMBLE_PATTERNS_MAX   16
#define ENSEMBLE_ENTAILS        "entailment"
#define ENSEMBLE_SAFE           "I did nothing: no answer of mine passed its checks."

/* X(enum, name in YAML) */
#define ENSEMBLE_KIND_TABLE(X)     \
    X(ENSEMBLE_CASCADE, "cascade") \
    X(ENSEMBLE_VOTE, "vote")       \
    X(ENSEMBLE_REFINE, "refine")   \
    X(ENSEMBLE_VERIFY, "verify")   \
    X(ENSEMBLE_RERANK, "rerank")
typedef enum ensemble_kind {
#define ENSEMBLE_KIND_ENUM(e, name) e,
    ENSEMBLE_KIND_TABLE(ENSEMBLE_KIND_ENUM)
#undef ENSEMBLE_KIND_ENUM
} ensemble_kind;

/* X(enum, name in YAML): what a verify checks. */
#define CHECK_KIND_TABLE(X)     \
    X(CHECK_DEVICES, "devices") \
    X(CHECK_NUMBERS, "numbers") \
    X(CHECK_PATTERN, "pattern") \
    X(CHECK_JSON, "json")       \
    X(CHECK_NLI, "nli")
typedef enum check_kind {
#define CHECK_KIND_ENUM(e, name) e,
    CHECK_KIND_TABLE(CHECK_KIND_ENUM)
#undef CHECK_KIND_ENUM
} check_kind;

/* X(enum, name in YAML): what becomes of an answer that fails. */
#define FAIL_STEP_TABLE(X)       \
    X(FAIL_REPAIR, "repair")     \
    X(FAIL_ESCALATE, "escalate") \
    X(FAIL_SAFE, "safe")
typedef enum fail_step {
#define FAIL_STEP_ENUM(e, name) e,
    FAIL_STEP_TABLE(FAIL_STEP_ENUM)
#undef FAIL_STEP_ENUM
        FAIL_N_STEPS
} fail_step;

/* What an answer may be worth, said without a model. */
#define ENSEMBLE_RULE_TABLE(X) \
    X("longest")               \
    X("shortest")              \
    X("majority")              \
    X("words")                 \
    X("names")                 \
    X("json")                  \
    X("pattern")

typedef enum ensemble_mean { ENSEMBLE_ARITHMETIC, ENSEMBLE_GEOMETRIC } ensemble_mean;

typedef struct config_member {
    const char *model;
    double min_confidence; /* of a cascade, but for its last; 0: the calibration's, or ENSEMBLE_CONFIDENCE */
    /* A file that `shoal calibrate` wrote; NULL: the confidence as the model says it. */
    const char *calibration;
    double weight;       /* of a vote; 0: 1 */
    unsigned candidates; /* of a rerank: answers of this model; 0: 1 */
    double *temperature; /* of a rerank: of its candidates; NULL: the request's */
} config_member;

typedef struct config_answer_check {
    check_kind kind;
    const char *lexicon;           /* of devices; NULL: what the request means is not looked at */
    const char *functions;         /* of devices; NULL: what results of functions usually say */
    const char **must, **must_not; /* of a pattern */
    size_t n_must, n_must_not;
    const char *schema;          /* of json: a file; NULL: any */
    const char *model, *entails; /* of nli; entails NULL: ENSEMBLE_ENTAILS */
    double min_score;            /* 0: 0.5 */
} config_answer_check;

/* What makes one candidate of a rerank better than another: exactly one of model, log_prob and rule. */
typedef struct config_score {
    const char *model;    /* a cross-encoder: how well the candidate answers the question */
    const char *log_prob; /* a decoder: how likely it finds the candidate */
    const char *rule;     /* of ENSEMBLE_RULE_TABLE */
    const char *pattern;  /* of the rule "pattern" */
    const char *schema;   /* of the rule "json": a file; NULL: any object or array */
} config_score;

typedef struct config_ensemble {
    const char *name;
    ensemble_kind kind;
    ensemble_mean mean; /* of a vote */
    unsigned wait_ms;   /* of a refined answer: how long the better one may be silent; 0: ENSEMBLE_WAIT_MS */
    config_score score; /* of a rerank */
    bool in_turn; /* of a rerank by a rule: a member is asked only when none before was all that can be */
    config_member *members;
    size_t n_members;
    config_answer_check *checks; /* of a verify */
    size_t n_checks;
    const char **on_fail; /* words of FAIL_STEP_TABLE; none: all, in its order */
    size_t n_on_fail;
    const char *safe; /* NULL: ENSEMBLE_SAFE */
} config_ensemble;

struct gateway_config;
const config_ensemble *config_ensemble_find(const struct gateway_config *c, const char *name); /* or NULL */
/* A model of this file, or an ensemble. */
bool config_answers(const struct gateway_config *c, const char *name);
/* The step that a word of on_fail means; FAIL_N_STEPS: none. */
fail_step config_fail_step(const char *word);
int config_check_ensembles(const struct gateway_config *c, shoal_err *err);

#endif
