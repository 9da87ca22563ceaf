/* config_cache.h: how answers are kept: by exact key and, where it is asked for, by likeness.
 *
 *     cache:
 *       mb: 64
 *       stale_s: 3600
 *       semantic:
 *         model: home-embed
 *         of: [auto, home-chat-m]                             # routes, pipelines, ensembles, models
 *         min_similarity: 0.95
 *         verify: rule                                        # or {model: my-cross-encoder, min: 0.9}
 *         audit_share: 0.02 */
#ifndef CONFIG_CONFIG_CACHE_H
#define CONFIG_CONFIG_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SEMANTIC_SIMILARITY 0.95 /* of files that do not say */
#define SEMANTIC_SCORE      0.9

typedef enum semantic_verify { SEMANTIC_RULE, SEMANTIC_MODEL } semantic_verify;

typedef struct config_semantic { /* answers to what was asked in other words */
    const char *model;           /* that embeds; NULL: there are none */
    const char **of;             /* for whom: names of routes, pipelines, ensembles and models */
    size_t n_of;
    double min_similarity; /* 0: SEMANTIC_SIMILARITY */
    semantic_verify verify;
    const char *verify_model; /* of SEMANTIC_MODEL: a cross-encoder, */
    double verify_min;        /* and the score that it must give; 0: SEMANTIC_SCORE */
    uint64_t max_entries, bytes, timeout_ms;
    double audit_share; /* of its answers that are made anew and compared */
    bool sampled;       /* also of requests with a temperature, and a seed */
} config_semantic;

typedef struct config_cache { /* of whole answers */
    uint64_t bytes, ttl_ms;   /* 0 bytes: no cache */
    uint64_t stale_ms;        /* beyond their time they still go out so long, while they are made anew */
    uint64_t negative_ttl_ms; /* of refusals; 0: they are not kept */
    bool shared;              /* between API keys */
    config_semantic semantic;
} config_cache;

struct gateway_config;
int config_check_cache(const struct gateway_config *c, shoal_err *err);
/* Does it name this model, and may a model of that task be named there? NULL: yes, or it does not. */
const char *config_cache_misfit(const config_cache *c, const char *model, const char *task,
                                const char **ret_field);
bool config_cache_uses(const config_cache *c, const char *model);

#endif
