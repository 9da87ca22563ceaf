/* config_load_request.h: a model that a running server is asked to load: the body of POST /v1/models/load, and a line
 * of the list that is kept over restarts.
 *
 *     {"model": "hf:ORG/NAME:Q4_K_M", "name": "chat", "replicas": 2, "keep": true}
 *
 * The keys are those of a model in shoal.yaml that need no other part of the file, with the same ranges and
 * the same sentences. Pure. */
#ifndef CONFIG_CONFIG_LOAD_REQUEST_H
#define CONFIG_CONFIG_LOAD_REQUEST_H

#include "base/arena.h"
#include "base/file_user.h"
#include "json/json.h"
#include "config/config.h"

#define LOAD_REQUEST_STAYS UINT64_MAX

typedef struct config_load_request {
    /* A name of the manifest or of the configuration, a file, or a reference; NULL: as.path. */
    const char *what;
    config_model as;       /* name NULL: what the file is called; of path or `what` one is NULL */
    uint64_t keep_alive_s; /* it goes when it was not asked for so long; LOAD_REQUEST_STAYS: it does not */
    bool keep, stream;
    /* No keys: who asks may name any file of this machine, not only those of the library's folders; or any that this user
     * may read (base/file_user.h), NULL: none. */
    bool any_path;
    const file_user *reader;
} config_load_request;

/* The texts live in mem. SHOAL_EINVALID: a sentence that begins with the field's name; SHOAL_ENOMEM. */
int config_load_request_parse(config_load_request *ret, arena *mem, const json_t *o, shoal_err *err);
/* The object that gives the same again, but for `stream`; NULL: no memory. */
json_t *config_load_request_json(const config_load_request *l);
/* A copy whose texts live in mem; false: no memory. */
bool config_load_request_copy(config_load_request *ret, arena *mem, const config_load_request *l);

/* Who of the configuration asks for this model: "the pipeline home", "the route fast"; "": nobody. */
void config_load_request_user(const gateway_config *c, const char *model, char *ret, size_t size);

#endif
