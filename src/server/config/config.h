/* config.h: shoal.yaml as a checked struct.
 *
 *     listen: 127.0.0.1:8080
 *     models:
 *       - name: home-intent          # a name of the manifest, or give path:
 *     pipelines:
 *       - name: home
 *         ...                        # see docs/configuration.md
 *
 * Errors name file, line and field. What a config points to is the config's own and dies with it. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config_faults.h"
#include "base/err.h"
#include "json/sampling.h"
#include "json/tuning.h"
#include "discovery/dns.h"
#include "hosts/host_rule.h"
#include "mcp/mcp_rule.h"
#include "cluster/placement.h"
#include "cluster/table.h"
#include "config/config_alias.h"
#include "config/config_cache.h"
#include "config/config_ensembles.h"
#include "config/config_keys.h"
#include "config/config_otel.h"
#include "pipeline/stage_kind.h"
#include "pipeline/pipeline.h"
#include "router/router.h"
#include "routes/routes.h"
#include "http/http.h"
#include "os/cpu_share.h"

typedef struct config_adapter {
    const char *name, *path;
} config_adapter;

#define CONFIG_ADAPTERS_MAX 16

/* Where a model's replicas may be (cluster/placement.h). */
typedef struct config_place {
    const char **labels; /* the node has all of them */
    size_t n_labels;
    const char **nodes; /* and is one of these; none: any */
    size_t n_nodes;
    placement_spread spread;
    placement_battery on_battery;
    unsigned max_rtt_ms; /* 0: any */
    bool rebalance;      /* a machine that joins takes replicas from busy ones */
} config_place;

/* By what the number of replicas follows the load (cluster/scale.h); max 0: it does not. */
typedef struct config_scale {
    unsigned max;
    uint64_t wait_ms, idle_s;
} config_scale;

/* How rows travel between the stages of a model (X(enum, name)); as rows_wire (worker/stage_rows.h). */
#define CONFIG_WIRE_TABLE(X)  \
    X(CONFIG_WIRE_F32, "f32") \
    X(CONFIG_WIRE_F16, "f16") \
    X(CONFIG_WIRE_INT8, "int8")
#define CONFIG_WIRE_ENUM(e, n) e,
typedef enum config_wire { CONFIG_WIRE_TABLE(CONFIG_WIRE_ENUM) } config_wire;
#undef CONFIG_WIRE_ENUM

typedef struct config_sampling { /* of requests that do not say; NULL: as the model's own files */
#define CONFIG_SAMPLING_MEMBER(field, min, max) double *field;
    SAMPLING_TABLE(CONFIG_SAMPLING_MEMBER)
#undef CONFIG_SAMPLING_MEMBER
} config_sampling;
/* What of it is said. */
sampling_defaults config_sampling_said(const config_sampling *s);

typedef struct config_model {
    const char *name;
    const char *path;   /* NULL: look the name up in the manifest */
    const char *sha256; /* NULL: not pinned (or pinned by the manifest) */
    bool external;      /* discovery names its workers: no file, and none is started */
    unsigned replicas, threads, context, kv_mb; /* 0: default */
    config_scale scale;                         /* then `replicas` is the least number, which may be 0 */
    tuning tuning;                              /* the worker's own options */
    config_sampling sampling;
    unsigned sound_mb; /* of all sounds that a worker hears at once; 0: default */
    unsigned standby;  /* replicas that are loaded, and serve when one is missing */
    config_place place;
    placement_shards shards; /* how its layers are dealt out; zeroed: it is whole everywhere */
    config_wire wire;
    const char **fallback; /* models that answer when no replica of this one lives, the best first */
    size_t n_fallback;
    double *cost, *energy_j;  /* of a thousand tokens, and joules of one; NULL: not said */
    config_adapter *adapters; /* requests ask for "MODEL:ADAPTER" */
    size_t n_adapters;
} config_model;

/* So many it has at the start; 0 only of one whose number follows the load. */
unsigned config_replicas(const config_model *m);

/* Membership through etcd (discovery/etcd.h); n_endpoints 0: without. */
typedef struct config_etcd {
    const char **endpoints;
    size_t n_endpoints;
    const char *prefix, *ca, *cert, *key, *user, *password_file;
    unsigned lease_s;
} config_etcd;

/* How workers are reached that have an address of their own: both ends show certificates of one CA. */
typedef struct config_worker_tls {
    const char *cert, *key, *ca; /* PEM files: ours with its key, and the CA's */
    const char *name;            /* that the workers' certificates have */
} config_worker_tls;

typedef struct config_batches { /* requests that can wait */
    unsigned max_running;       /* lines at once; 0: none */
    uint64_t max_lines;         /* of one batch */
    unsigned max_open;          /* batches of one owner that have not ended */
    uint64_t bytes;             /* of all their files and answers */
    unsigned keep_days;         /* after which they go, with their files */
    uint64_t write_retry_s;     /* what cannot be written is tried again for so long; then its batch fails */
} config_batches;

typedef struct config_sessions { /* conversations that are kept */
    const char *redis;           /* the URL of a Redis in place of a file; NULL: none */
    const char *path, *key_file; /* NULL: sessions.db, sessions.key in the state folder */
    uint64_t all_bytes;          /* 0: nothing is kept */
    uint64_t bytes, turns;       /* of one */
    uint64_t ttl_s;              /* after its last use */
} config_sessions;

typedef struct config_moderation { /* /v1/moderations */
    const char *model;             /* a classifier; NULL: nothing is moderated */
    const char **safe;             /* labels that are no reason to flag a text */
    size_t n_safe;
    double min_score; /* from which score on a label flags; 0: 0.5 */
} config_moderation;

typedef enum { CONFIG_HEDGE_AUTO, CONFIG_HEDGE_OFF } config_hedge;
typedef enum { CONFIG_LOADING_ON, CONFIG_LOADING_OFF } config_loading;

/* Models that come and go while the server runs (config_load_request.h says what a request for one may hold). */
typedef struct config_library {
    config_loading loading;
    /* Further ones that files may be loaded from, beside the store and the manifest's. */
    const char **folders;
    size_t n_folders;
    const char *store;  /* where fetched models are kept; NULL: $SHOAL_MODELS, or the manifest's folder */
    const char **hosts; /* that models may be fetched from, "huggingface.co"; none: nothing is fetched */
    size_t n_hosts;
    /* In place of huggingface.co and registry.ollama.ai: "https://mirror.example". */
    const char *hub, *registry;
    uint64_t keep_alive_s; /* how long a model stays unused that a request for an answer made load */
} config_library;

typedef struct config_listen { /* one more address at which the gateway is reached */
    const char *address;       /* HOST:PORT or unix:/path */
    const char *mode, *group;  /* of a Unix socket: "0660"; NULL: 0600, and the group that it has */
    bool user_files;           /* of a Unix socket: loads may name what the connecting user may read */
} config_listen;

typedef struct gateway_config {
    const char *listen;
    config_listen *also_listen;
    size_t n_also_listen;
    const char *tls_cert, *tls_key;           /* NULL: clear text */
    const char *cluster_listen;               /* for other machines, NULL: this one serves alone */
    const char *cluster_name;                 /* NULL: from the host's name */
    const char *cluster_site, *cluster_state; /* state NULL: the usual place (trust/state.h) */
    router_spill spill;                       /* when requests may leave the site */
    double watts_per_core;                    /* of workers' machines that measure none; 0: not known */
    config_key *api_keys;                     /* none: open to all */
    size_t n_api_keys;
    config_metrics_key metrics_key;
    config_metrics_compat metrics_compat;
    const char **allow_hosts; /* further names of this server, with or without port; see browser.h */
    size_t n_allow_hosts;
    const char **allow_origins; /* sites whose pages may use it: "https://app.example" */
    size_t n_allow_origins;
    http_limits limits;
    size_t max_audio_bytes;    /* of a request that brings sound; it replaces limits.max_body_bytes */
    size_t max_requests;       /* in flight over all endpoints; over it 429 */
    size_t max_uploads;        /* bodies in pieces that are not whole yet; over it 429 */
    uint64_t max_upload_bytes; /* of all of them */
    config_otel otel;
    config_cache cache;
    config_sessions sessions;
    config_batches batches;
    config_moderation moderation;
    uint64_t default_deadline_ms; /* of all but replies; 0: none */
    reply_limits reply_limits;    /* 0: none */
    uint64_t failover_wait_ms;    /* a call without a deadline waits so long for a restarted worker */
    config_hedge hedge;           /* unary calls that take long are made a second time */
    uint64_t drain_ms;            /* grace after SIGTERM */
    uint64_t drain_grace_ms;      /* before that: new requests are answered, and /readyz says 503 */
    cpu_share cpu;                /* of this process and its workers */
    const char *log_level;
    bool log_json;
    bool log_prompts;   /* the beginning of what is asked is kept for GET /v1/requests */
    table_row *workers; /* that run by themselves */
    size_t n_workers;
    dns_name *dns; /* names whose SRV records are workers */
    size_t n_dns;
    const char *dns_server; /* NULL: the machine's */
    config_worker_tls
        discovery_tls; /* of workers with an address; cert NULL: none, and those of this machine alone */
    config_etcd etcd;
    const char *retrieval_path; /* the file of the collections; NULL: collections.db in the state folder */
    uint64_t retrieval_bytes;   /* of vectors in memory */
    uint64_t retrieval_document_bytes; /* of a request that brings documents */
    unsigned retrieval_collections;    /* of one owner; over it they are refused */
    unsigned retrieval_indexing;       /* requests of one API key that bring documents, at once */
    unsigned retrieval_threads;        /* 0: two, or the machine's one */
    const char *packed_folder;         /* of packed weights; NULL: packed in the state folder */
    uint64_t packed_mb;                /* of them together; 0: none are kept */
    uint64_t packed_min_mb;            /* of a model that keeps any */
    bool packed_check;                 /* compared whole before they are used */
    const char *manifest;              /* models.json; NULL: the usual places */
    config_model *models;
    size_t n_models;
    config_ensemble *ensembles;
    size_t n_ensembles;
    config_pipeline *pipelines;
    size_t n_pipelines;
    host_rule *hosts; /* that http stages may ask */
    size_t n_hosts;
    mcp_rule *mcp_servers; /* whose tools generate stages call */
    size_t n_mcp_servers;
    config_library library;
    route_book book;             /* routes and domains */
    const stage_registry *kinds; /* of stages: those that it was read with */
    config_alias *aliases;
    size_t n_aliases;
} gateway_config;

/* Read, check, and open what its stages name. `kinds`: what the program registered; NULL: PLAIN_STAGES. Relative paths in it count from its folder;
 * errors begin with "path:line: " where a line is to blame. */
int config_load(gateway_config **ret, const stage_registry *kinds, const char *path, shoal_err *err);
/* The same; with `faults` (config_faults.h) each error that does not depend on another is there. Later ones are, too:
 * the configuration remembers `faults`, which must live as long, for config_found. SHOAL_EINVALID without one in
 * `faults`: it is no YAML, and err alone says so. */
int config_load_all(gateway_config **ret, const stage_registry *kinds, const char *path,
                    config_faults *faults, shoal_err *err);
/* The same, but for centroids, which need not be there yet: for whoever makes them. */
int config_load_untrained(gateway_config **ret, const stage_registry *kinds, const char *path,
                          shoal_err *err);
/* The same from text; `what` names it in errors. */
int config_parse(gateway_config **ret, const stage_registry *kinds, const char *yaml, size_t len,
                 const char *what, shoal_err *err);
/* The same; what was found is in `faults`, and none was found if 0 is returned. */
int config_parse_all(gateway_config **ret, const stage_registry *kinds, const char *yaml, size_t len,
                     const char *what, config_faults *faults, shoal_err *err);
void config_free(gateway_config *c); /* NULL is fine */

/* SHOAL_EINVALID about a field, for whoever finds out later that its value cannot be: the sentence begins
 * with the field's path, "models[0].path: no such file", and gets "shoal.yaml:7: " before it. */
int config_fail(const gateway_config *c, shoal_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* What a check of the configuration returned: of one that collects errors (config_load_all) 0 where rc is
 * SHOAL_EINVALID, which is kept; else rc. config_found_none: SHOAL_EINVALID once anything was kept, else rc. */
int config_found(const gateway_config *c, int rc, shoal_err *err);
int config_found_none(const gateway_config *c, int rc, shoal_err *err);
/* A copy of s that lives as long as the config; NULL when out of memory. */
const char *config_keep(gateway_config *c, const char *s);

/* By its name, or NULL; whether the model has an adapter of that name. */
const config_model *config_find_model(const gateway_config *c, const char *name);
bool config_has_adapter(const config_model *m, const char *name);

#endif
