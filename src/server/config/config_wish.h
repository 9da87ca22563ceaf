/* config_wish.h: a model that a running server is asked to load: the body of POST /v1/models/load, and a line
 * of the list that is kept over restarts.
 *
 *     {"model": "hf:ORG/NAME:Q4_K_M", "name": "chat", "replicas": 2, "keep": true}
 *
 * The keys are those of a model in shoal.yaml that need no other part of the file, with the same ranges and
 * the same sentences. Pure. */
#ifndef CONFIG_CONFIG_WISH_H
#define CONFIG_CONFIG_WISH_H

#include "base/arena.h"
#include "json/json.h"
#include "config/config.h"

#define CONFIG_WISH_STAYS UINT64_MAX

typedef struct config_wish {
    /* A name of the manifest or of the configuration, a file, or a reference; NULL: as.path. */
    const char *what;
    config_model as;       /* name NULL: what the file is called; of path or `what` one is NULL */
    uint64_t keep_alive_s; /* it goes when it was not asked for so long; CONFIG_WISH_STAYS: it does not */
    bool keep, stream;
} config_wish;

/* The texts live in mem. SHOAL_EINVALID: a sentence that begins with the field's name; SHOAL_ENOMEM. */
int config_wish_parse(config_wish *ret, arena *mem, const json_t *o, shoal_err *err);
/* The object that gives the same again, but for `stream`; NULL: no memory. */
json_t *config_wish_json(const config_wish *l);
/* A copy whose texts live in mem; false: no memory. */
bool config_wish_copy(config_wish *ret, arena *mem, const config_wish *l);

/* Who of the configuration asks for this model: "the pipeline home", "the route fast"; "": nobody. */
void config_wish_user(const gateway_config *c, const char *model, char *ret, size_t size);

#endif
