/* config_schema.c: every key of shoal.yaml, one row each. */
#include "config/config_schema.h"

#include "json/sampling.h"
#include "discovery/etcd.h"
#include "config/config_load_request.h"
#include "config/config_nodes.h"
#include "os/cpu_share.h"
#include "routes/facts.h"

#define KIB     1024ull
#define MIB     (1024ull * KIB)
#define HOUR_MS 3600000ull
#define DAY_MS  (24 * HOUR_MS)

#define NAME_MAX_BYTES 64
#define PATH_MAX_BYTES 4096
#define TEXT_MAX_BYTES 65536

#define WIDTH(type, member) sizeof(((type *)0)->member)
#define COUNT(rows)         (sizeof(rows) / sizeof *(rows))

/* After `about_` a row may add .required, .otherwise, .otherwise_text, .unit, .words or .pointer. */
#define TEXT(key_, type, member, min_, max_, about_, ...)                                         \
    {                                                                                             \
        .key = key_, .kind = CONFIG_TEXT, .at = offsetof(type, member), .min = min_, .max = max_, \
        .about = about_, __VA_ARGS__                                                              \
    }
#define WORD(key_, type, member, words_, about_, ...)                                                 \
    {                                                                                                 \
        .key = key_, .kind = CONFIG_WORD, .at = offsetof(type, member), .width = WIDTH(type, member), \
        .words = words_, .about = about_, __VA_ARGS__                                                 \
    }
#define UINT(key_, type, member, min_, max_, about_, ...)                                             \
    {                                                                                                 \
        .key = key_, .kind = CONFIG_UINT, .at = offsetof(type, member), .width = WIDTH(type, member), \
        .min = min_, .max = max_, .about = about_, __VA_ARGS__                                        \
    }
#define INT(key_, type, member, low_, high_, about_)                                               \
    {                                                                                              \
        .key = key_, .kind = CONFIG_INT, .at = offsetof(type, member), .low = low_, .high = high_, \
        .about = about_                                                                            \
    }
#define NUMBER(key_, type, member, low_, high_, about_, ...)                                          \
    {                                                                                                 \
        .key = key_, .kind = CONFIG_NUMBER, .at = offsetof(type, member), .low = low_, .high = high_, \
        .about = about_, __VA_ARGS__                                                                  \
    }
#define BOOL(key_, type, member, about_, ...)                                                        \
    {                                                                                                \
        .key = key_, .kind = CONFIG_BOOL, .at = offsetof(type, member), .about = about_, __VA_ARGS__ \
    }
#define SECTION(key_, record_, about_)                                       \
    {                                                                        \
        .key = key_, .kind = CONFIG_SECTION, .of = &record_, .about = about_ \
    }
#define JSON(key_, type, member, max_, about_)                                                       \
    {                                                                                                \
        .key = key_, .kind = CONFIG_JSON, .at = offsetof(type, member), .max = max_, .about = about_ \
    }
#define SHARDS(key_, type, member, min_, max_, about_)                                              \
    {                                                                                               \
        .key = key_, .kind = CONFIG_SHARDS, .at = offsetof(type, member), .min = min_, .max = max_, \
        .about = about_                                                                             \
    }
#define LIST(key_, type, member, count_, record_, min_, max_, about_, ...)                              \
    {                                                                                                   \
        .key = key_, .kind = CONFIG_LIST, .at = offsetof(type, member), .at_n = offsetof(type, count_), \
        .width_n = WIDTH(type, count_), .of = &record_, .min = min_, .max = max_, .about = about_,      \
        __VA_ARGS__                                                                                     \
    }
#define TEXTS(key_, type, member, count_, min_, max_, max_text_, about_, ...)                             \
    {                                                                                                     \
        .key = key_, .kind = CONFIG_LIST, .at = offsetof(type, member), .at_n = offsetof(type, count_),   \
        .width_n = WIDTH(type, count_), .max_text = max_text_, .min = min_, .max = max_, .about = about_, \
        __VA_ARGS__                                                                                       \
    }
#define PAIRS(key_, type, member, count_, record_, min_, max_, about_)                                   \
    {                                                                                                    \
        .key = key_, .kind = CONFIG_PAIRS, .at = offsetof(type, member), .at_n = offsetof(type, count_), \
        .width_n = WIDTH(type, count_), .of = &record_, .min = min_, .max = max_, .about = about_        \
    }
#define RECORD(name_, type, rows) static const config_record name_ = {sizeof(type), rows, COUNT(rows)}

static const config_field tls_rows[] = {
    TEXT("cert", gateway_config, tls_cert, 1, PATH_MAX_BYTES, "the PEM file with the certificate chain",
         .required = true),
    TEXT("key", gateway_config, tls_key, 1, PATH_MAX_BYTES, "the PEM file with the private key",
         .required = true),
};
RECORD(tls, gateway_config, tls_rows);

static const config_field key_limit_rows[] = {
    UINT("requests_per_minute", config_key, requests_per_minute, 1, 1000000, "requests of a minute"),
    UINT("tokens_per_minute", config_key, tokens_per_minute, 1, 1000000000,
         "tokens of a minute, prompts and replies"),
    UINT("concurrent", config_key, n_concurrent, 1, 100000, "requests being answered at once"),
};
RECORD(key_limits, config_key, key_limit_rows);

static const config_field key_rows[] = {
    TEXT("name", config_key, name, 1, NAME_MAX_BYTES, "what logs, errors and rules call it",
         .required = true),
    TEXT("sha256", config_key, sha256, 1, 256, "the SHA-256 of the key", .required = true, .secret = true),
    TEXT("expires", config_key, expires, 1, 40, "when it ends"),
    TEXTS("models", config_key, models, n_models, 1, 256, NAME_MAX_BYTES * 2,
          "models, routes, ensembles and pipelines that it may name"),
    TEXTS("endpoints", config_key, endpoints, n_endpoints, 1, 64, 128, "where it may ask"),
    BOOL("admin", config_key, admin, "also what shows or changes the server"),
    SECTION("limits", key_limits, "what it may take"),
};
RECORD(key_of_api, config_key, key_rows);

static const char *const metrics_key_words[] = {"admin", "any", "none", NULL}; /* as config_metrics_key */
static const char *const metrics_compat_words[] = {"none", "vllm", NULL};      /* as config_metrics_compat */
static const config_field metrics_rows[] = {
    WORD("key", gateway_config, metrics_key, metrics_key_words, "with which keys, where there are any"),
    WORD("compat", gateway_config, metrics_compat, metrics_compat_words, "further names of metrics"),
};
RECORD(metrics_section, gateway_config, metrics_rows);

/* Absent limits stay zero: the server has their defaults. */
static const config_field limit_rows[] = {
    UINT("max_body_bytes", gateway_config, limits.max_body_bytes, KIB, 1024 * MIB, "longest request body"),
    UINT("max_bodies_bytes", gateway_config, limits.max_bodies, 64 * KIB, 1024 * 1024 * MIB,
         "memory of request bodies of all connections"),
    UINT("max_audio_mb", gateway_config, max_audio_bytes, 1, 128, "longest request that brings sound",
         .unit = MIB, .otherwise = 32),
    UINT("max_header_bytes", gateway_config, limits.max_header_bytes, KIB, MIB, "longest header block"),
    UINT("max_headers", gateway_config, limits.max_headers, 8, 1000, "header fields of a request"),
    UINT("max_connections", gateway_config, limits.max_connections, 1, 100000, "connections at once"),
    UINT("max_streams", gateway_config, limits.max_streams, 1, 10000, "HTTP/2 streams of a connection"),
    UINT("max_write_backlog_bytes", gateway_config, limits.max_write_backlog, 16 * KIB, 1024 * MIB,
         "unsent bytes of a connection"),
    UINT("max_unsent_bytes", gateway_config, limits.max_unsent, 64 * KIB, 1024 * 1024 * MIB,
         "memory of unsent bytes of all connections"),
    UINT("max_requests", gateway_config, max_requests, 1, 100000, "requests being answered at once",
         .otherwise = 256),
    UINT("max_uploads", gateway_config, max_uploads, 1, 100000, "files and sounds being received at once",
         .otherwise = 128),
    UINT("max_upload_mb", gateway_config, max_upload_bytes, 1, 1024 * KIB,
         "room for what was received of them", .unit = MIB, .otherwise = 1024),
    UINT("min_body_rate", gateway_config, limits.min_body_rate, 1, 1024 * MIB,
         "bytes a second that a client sends of a file or sound at least"),
    UINT("request_timeout_ms", gateway_config, limits.request_timeout_ms, 100, HOUR_MS,
         "from a request's first byte to its last"),
    UINT("idle_timeout_ms", gateway_config, limits.idle_timeout_ms, 100, DAY_MS,
         "how long a connection may wait without a request"),
    UINT("write_timeout_ms", gateway_config, limits.write_timeout_ms, 100, HOUR_MS,
         "how long a client may take nothing"),
};
RECORD(limits, gateway_config, limit_rows);

static const config_field semantic_verify_rows[] = {
    TEXT("model", gateway_config, cache.semantic.verify_model, 1, NAME_MAX_BYTES, "the cross-encoder",
         .required = true),
    NUMBER("min", gateway_config, cache.semantic.verify_min, 0, 1, "the score that it must give; 0: 0.9"),
};
RECORD(verify_model, gateway_config, semantic_verify_rows);

/* A map stands behind them: SEMANTIC_MODEL. */
static const char *const verify_words[] = {"rule", NULL};
static const config_field semantic_rows[] = {
    TEXT("model", gateway_config, cache.semantic.model, 1, NAME_MAX_BYTES, "the model that embeds",
         .required = true),
    TEXTS("of", gateway_config, cache.semantic.of, cache.semantic.n_of, 1, 64, NAME_MAX_BYTES * 2,
          "routes, pipelines, ensembles and models whose answers are found so", .required = true),
    NUMBER("min_similarity", gateway_config, cache.semantic.min_similarity, 0, 1,
           "the least cosine; 0: 0.95"),
    WORD("verify", gateway_config, cache.semantic.verify, verify_words, "who has the last word",
         .of = &verify_model),
    UINT("max_entries", gateway_config, cache.semantic.max_entries, 1, 1000000, "how many can be found",
         .otherwise = 4096),
    UINT("mb", gateway_config, cache.semantic.bytes, 1, 64 * KIB, "bound of vectors and texts", .unit = MIB,
         .otherwise = 4),
    UINT("timeout_ms", gateway_config, cache.semantic.timeout_ms, 1, 10000,
         "how long the models are waited for", .otherwise = 50),
    NUMBER("audit_share", gateway_config, cache.semantic.audit_share, 0, 1,
           "the share of its answers that is made anew and compared"),
    BOOL("sampled", gateway_config, cache.semantic.sampled, "also of requests with temperature and seed"),
};
RECORD(semantic, gateway_config, semantic_rows);

static const config_field cache_rows[] = {
    UINT("mb", gateway_config, cache.bytes, 0, 64 * KIB, "size of the response cache", .unit = MIB,
         .otherwise = 16),
    UINT("ttl_s", gateway_config, cache.ttl_ms, 0, 30 * 24 * 3600, "how long an answer is good for",
         .unit = 1000, .otherwise = 600),
    UINT("stale_s", gateway_config, cache.stale_ms, 0, 30 * 24 * 3600,
         "how long beyond that it goes out while it is made anew", .unit = 1000),
    UINT("negative_ttl_s", gateway_config, cache.negative_ttl_ms, 0, 3600, "how long a refusal is good for",
         .unit = 1000, .otherwise = 10),
    BOOL("shared", gateway_config, cache.shared, "one API key's answers are every key's"),
    SECTION("semantic", semantic, "answers to what was asked in other words"),
};
RECORD(cache, gateway_config, cache_rows);

static const config_field session_rows[] = {
    TEXT("path", gateway_config, sessions.path, 1, PATH_MAX_BYTES, "the file that holds conversations"),
    TEXT("redis", gateway_config, sessions.redis, 1, 1024, "the URL of a Redis that gateways share",
         .secret = true),
    TEXT("key_file", gateway_config, sessions.key_file, 1, PATH_MAX_BYTES,
         "the file with the keys that encrypt them"),
    UINT("max_mb", gateway_config, sessions.all_bytes, 0, 64 * KIB, "bound of all of them", .unit = MIB,
         .otherwise = 256),
    UINT("max_kb", gateway_config, sessions.bytes, 1, 64 * KIB, "bound of one", .unit = KIB,
         .otherwise = 256),
    UINT("max_turns", gateway_config, sessions.turns, 1, 400, "requests that one session remembers",
         .otherwise = 64),
    UINT("ttl_s", gateway_config, sessions.ttl_s, 1, 10 * 365 * 24 * 3600,
         "how long one is kept after its last use", .otherwise = 30 * 24 * 3600),
};
RECORD(sessions, gateway_config, session_rows);

static const char *const spill_words[] = {"when_full", "when_gone", "never", NULL}; /* as router_policy */
static const config_field spill_rows[] = {
    WORD("policy", gateway_config, spill.policy, spill_words, "when machines of other sites may be asked"),
    NUMBER("max_rtt_ms", gateway_config, spill.max_rtt_ms, 0, 60000,
           "how far away they may be; 0: however far"),
    UINT("queue", gateway_config, spill.queue, 0, 100000,
         "how many calls may wait at each replica of this site before it counts as full"),
};
RECORD(spill_section, gateway_config, spill_rows);

static const config_field retrieval_rows[] = {
    TEXT("path", gateway_config, retrieval_path, 1, PATH_MAX_BYTES, "the file that holds the collections"),
    UINT("memory_mb", gateway_config, retrieval_bytes, 1, 1024 * KIB, "memory for vectors", .unit = MIB,
         .otherwise = 1024),
    UINT("threads", gateway_config, retrieval_threads, 1, 64, "threads of one search"),
    UINT("max_document_mb", gateway_config, retrieval_document_bytes, 1, 950, /* SQLite's row: 1e9 bytes */
         "longest request that brings documents", .unit = MIB, .otherwise = 32),
    UINT("max_collections", gateway_config, retrieval_collections, 1, 1000000,
         "collections of one API key, or of all without keys", .otherwise = 1000),
    UINT("max_indexing", gateway_config, retrieval_indexing, 1, 100000,
         "requests of one API key that bring documents, at once", .otherwise = 16),
};
RECORD(retrieval, gateway_config, retrieval_rows);

static const config_field batch_rows[] = {
    UINT("max_running", gateway_config, batches.max_running, 0, 64, "requests of batches at once",
         .otherwise = 2),
    UINT("max_lines", gateway_config, batches.max_lines, 1, 1000000, "requests of one batch",
         .otherwise = 50000),
    UINT("max_open", gateway_config, batches.max_open, 1, 100000,
         "batches of one API key that have not ended, or of all without keys", .otherwise = 100),
    UINT("max_mb", gateway_config, batches.bytes, 1, 1024 * KIB, "bound of all their files and answers",
         .unit = MIB, .otherwise = 900),
    UINT("keep_days", gateway_config, batches.keep_days, 1, 3650, "how long they and their files stay",
         .otherwise = 30),
    UINT("write_retry_s", gateway_config, batches.write_retry_s, 1, 14 * 24 * 3600,
         "how long answers that cannot be written are kept", .otherwise = 3600),
};
RECORD(batches, gateway_config, batch_rows);

static const config_field packed_rows[] = {
    TEXT("folder", gateway_config, packed_folder, 1, PATH_MAX_BYTES, "where packed weights are kept"),
    UINT("max_mb", gateway_config, packed_mb, 0, 1024 * KIB * KIB,
         "what they may take together; 0: none are kept", .otherwise = 16384),
    UINT("min_mb", gateway_config, packed_min_mb, 0, 1024 * KIB,
         "models that take less are always packed anew", .otherwise = 32),
    BOOL("check", gateway_config, packed_check, "they are compared whole before they are used"),
};
RECORD(packed_section, gateway_config, packed_rows);

static const config_field cluster_rows[] = {
    TEXT("listen", gateway_config, cluster_listen, 1, 256, "HOST:PORT where other machines join and attach",
         .required = true),
    TEXT("name", gateway_config, cluster_name, 1, 63, "this gateway's name in the cluster"),
    TEXT("site", gateway_config, cluster_site, 1, 63, "where it stands", .otherwise_text = ""),
    TEXT("state", gateway_config, cluster_state, 1, PATH_MAX_BYTES,
         "the state folder, with the CA or a certificate"),
    SECTION("spill", spill_section, "when a request may leave the site"),
};
RECORD(cluster_section, gateway_config, cluster_rows);

static const config_field cpu_rows[] = {
    UINT("reserve", gateway_config, cpu.reserve, 0, CPU_RESERVE_MAX, "cores that are left to other programs"),
    INT("nice", gateway_config, cpu.nice, CPU_NICE_MIN, CPU_NICE_MAX, "the nice level of all processes"),
    WORD("sched", gateway_config, cpu.sched, cpu_sched_words, "their scheduling policy"),
};
RECORD(cpu_section, gateway_config, cpu_rows);

static const char *const log_levels[] = {"debug", "info", "warn", "error", "off", NULL};
static const config_field log_rows[] = {
    TEXT("level", gateway_config, log_level, 1, 16, "what is logged", .words = log_levels,
         .otherwise_text = "info"),
    BOOL("json", gateway_config, log_json, "JSON lines"),
    BOOL("prompts", gateway_config, log_prompts, "GET /v1/requests shows the beginning of what was asked"),
};
RECORD(log_section, gateway_config, log_rows);

static const config_field adapter_rows[] = {
    TEXT("name", config_adapter, name, 1, NAME_MAX_BYTES - 1, "what follows the model's name and a colon",
         .required = true),
    TEXT("path", config_adapter, path, 1, PATH_MAX_BYTES, "a PEFT folder or a GGUF file", .required = true),
};
RECORD(adapter, config_adapter, adapter_rows);

#define WORD_NAME(e, name) name,
static const char *const spreads[] = {PLACEMENT_SPREAD_TABLE(WORD_NAME) NULL};
static const char *const batteries[] = {PLACEMENT_BATTERY_TABLE(WORD_NAME) NULL};
#undef WORD_NAME

static const config_field place_rows[] = {
    TEXTS("labels", config_model, place.labels, place.n_labels, 1, 16, NAME_MAX_BYTES,
          "what nodes that run it have"),
    TEXTS("nodes", config_model, place.nodes, place.n_nodes, 1, 1000, NAME_MAX_BYTES,
          "nodes that may run it"),
    WORD("spread", config_model, place.spread, spreads, "what its replicas do not share"),
    WORD("on_battery", config_model, place.on_battery, batteries, "whether it runs on battery"),
    UINT("max_rtt_ms", config_model, place.max_rtt_ms, 1, 10000, "how far away it may be"),
    BOOL("rebalance", config_model, place.rebalance, "a machine that joins relieves busy ones of it"),
};
RECORD(place, config_model, place_rows);

static const config_field scale_rows[] = {
    UINT("min", config_model, replicas, 0, 64, "least number", .otherwise = 1),
    UINT("max", config_model, scale.max, 1, 64, "greatest number", .required = true),
    UINT("wait_ms", config_model, scale.wait_ms, 10, 600000, "longer waits bring one more",
         .otherwise = 1000),
    UINT("idle_s", config_model, scale.idle_s, 1, 7 * 24 * 3600, "so long the load is low before one leaves",
         .otherwise = 300),
};
RECORD(scale, config_model, scale_rows);

#define WORD_NAME(e, name) name,
static const char *const wires[] = {CONFIG_WIRE_TABLE(WORD_NAME) NULL};
#undef WORD_NAME

#define SAMPLING_ROW(field, min, max)                                                                  \
    NUMBER(#field, config_model, sampling.field, (min) < 0 ? (min) : 0, max, "of requests without it", \
           .pointer = true),
static const config_field sampling_rows[] = {SAMPLING_TABLE(SAMPLING_ROW)};
#undef SAMPLING_ROW
RECORD(sampling, config_model, sampling_rows);

/* The options that are the worker's own (json/tuning.h). */
#define MODEL_UINT(key, least, most, about) UINT(#key, config_model, tuning.key, least, most, about),
#define MODEL_WORD(key, about, ...)         WORD(#key, config_model, tuning.key, tuning_##key##_words, about),
#define LOAD_UINT(key, least, most, about)  UINT(#key, config_load_request, as.tuning.key, least, most, about),
#define LOAD_WORD(key, about, ...) \
    WORD(#key, config_load_request, as.tuning.key, tuning_##key##_words, about),

static const config_field model_rows[] = {
    TEXT("name", config_model, name, 1, NAME_MAX_BYTES, "the name clients use", .required = true),
    TEXT("path", config_model, path, 1, PATH_MAX_BYTES, "a GGUF file or a Hugging Face folder"),
    TEXT("sha256", config_model, sha256, 1, 256, "what the file must be"),
    BOOL("external", config_model, external, "others start its workers, and 'discovery' names them"),
    UINT("replicas", config_model, replicas, 1, 64, "worker processes", .of = &scale),
    UINT("standby", config_model, standby, 0, 64, "replicas that are loaded and wait"),
    SECTION("place", place, "where it may run"),
    SHARDS("shards", config_model, shards, 2, PLACEMENT_SHARDS_MAX,
           "over how many workers its layers are dealt out"),
    WORD("wire", config_model, wire, wires, "how rows travel between its stages"),
    UINT("threads", config_model, threads, 1, 64, "threads of a worker"),
    UINT("context", config_model, context, 16, 1u << 20, "longest prompt and reply, in tokens"),
    UINT("kv_mb", config_model, kv_mb, 1, 1u << 20, "ceiling of the KV cache"),
    UINT("sound_mb", config_model, sound_mb, 1, 1u << 20, "memory of all sounds that a worker hears at once"),
    TUNING_TABLE(MODEL_UINT, MODEL_WORD)
        SECTION("sampling", sampling, "how replies are drawn unless the request says otherwise"),
    NUMBER("cost", config_model, cost, 0, 1e9, "of a thousand tokens, in any unit", .pointer = true),
    NUMBER("energy_j", config_model, energy_j, 0, 1e6, "joules of a token, in place of what is measured",
           .pointer = true),
    TEXTS("fallback", config_model, fallback, n_fallback, 1, 8, NAME_MAX_BYTES,
          "models that answer when none of its replicas lives"),
    LIST("adapters", config_model, adapters, n_adapters, adapter, 1, CONFIG_ADAPTERS_MAX,
         "LoRA adapters that requests may ask for"),
};
RECORD(model, config_model, model_rows);

/* What a model may be given while the server runs: its sizes, as above, and how it is to be had. */
static const config_field load_rows[] = {
    TEXT("model", config_load_request, what, 1, PATH_MAX_BYTES,
         "a name of the manifest, or what `shoal pull` takes"),
    TEXT("name", config_load_request, as.name, 1, NAME_MAX_BYTES, "the name clients use"),
    TEXT("path", config_load_request, as.path, 1, PATH_MAX_BYTES, "a GGUF file or a Hugging Face folder"),
    TEXT("sha256", config_load_request, as.sha256, 64, 64, "what the file must be"),
    UINT("replicas", config_load_request, as.replicas, 1, 64, "worker processes"),
    UINT("threads", config_load_request, as.threads, 1, 64, "threads of a worker"),
    UINT("context", config_load_request, as.context, 16, 1u << 20, "longest prompt and reply, in tokens"),
    UINT("kv_mb", config_load_request, as.kv_mb, 1, 1u << 20, "ceiling of the KV cache"),
    TUNING_TABLE(LOAD_UINT, LOAD_WORD)
        UINT("keep_alive_s", config_load_request, keep_alive_s, 1, 365 * 24 * 3600,
             "how long it stays unused", .otherwise = LOAD_REQUEST_STAYS),
    BOOL("keep", config_load_request, keep, "whether it is loaded again after a restart"),
    BOOL("stream", config_load_request, stream, "whether progress is told"),
};
const config_record config_load_request_schema = {sizeof(config_load_request), load_rows, COUNT(load_rows)};

static const config_field device_rows[] = {
    TEXT("id", config_device, id, 1, 128, "the device's id, such as light.kitchen", .required = true),
    TEXT("name", config_device, name, 1, 128, "what people call it, such as Kitchen Light", .required = true),
    TEXT("state", config_device, state, 0, 128, "how it is", .otherwise_text = ""),
    TEXT("unit", config_device, unit, 1, 16, "the unit of its numbers, such as °F"),
    TEXT("area", config_device, area, 1, 128, "where it is"),
    TEXTS("aliases", config_device, aliases, n_aliases, 1, PIPELINE_ALIASES_MAX, 128, "other names of it"),
    TEXTS("groups", config_device, groups, n_groups, 1, PIPELINE_GROUPS_MAX, 128, "what it belongs to"),
    TEXT("kind", config_device, kind, 1, 64, "what it is, where its id does not say so"),
};
RECORD(home_device, config_device, device_rows);

#define MEDIUM_NAME(e, name, noun, how) name,
static const char *const media[] = {MEDIUM_TABLE(MEDIUM_NAME) NULL};
#undef MEDIUM_NAME

static const config_field condition_rows[] = {
    TEXT("stage", stage_condition, stage, 1, NAME_MAX_BYTES, "the earlier stage whose result is looked at"),
    TEXTS("label", stage_condition, label, n_label, 1, 1000, NAME_MAX_BYTES, "its label is one of these"),
    NUMBER("score_min", stage_condition, score_min, 0, 1, "its score is at least this", .pointer = true),
    NUMBER("score_below", stage_condition, score_below, 0, 1, "its score is under this", .pointer = true),
    NUMBER("number_min", stage_condition, number_min, -1e15, 1e15, "its number is at least this",
           .pointer = true),
    NUMBER("number_below", stage_condition, number_below, -1e15, 1e15, "its number is under this",
           .pointer = true),
    NUMBER("mean_prob_below", stage_condition, mean_prob_below, 0, 1,
           "its tokens' mean probability is under this", .pointer = true),
    TEXT("text_prefix", stage_condition, text_prefix, 1, 256, "the input starts with this"),
    BOOL("mentions_device", stage_condition, mentions_device, "the input names a device"),
    TEXT("brings", stage_condition, brings, 1, 16, "the request brings this", .words = media),
};
RECORD(condition, stage_condition, condition_rows);

#define METHOD_NAME(e, name) name,
static const char *const method_words[] = {HOST_METHOD_TABLE(METHOD_NAME) NULL};
#undef METHOD_NAME

#define BY_NAME(e, name) name,
static const char *const by_words[] = {EACH_BY_TABLE(BY_NAME) NULL};
#undef BY_NAME

/* What foreach and reduce have in common. */
#define EACH_ROWS(member, most_, about_)                                                                     \
    TEXT("of", config_stage, member.of, 1, 256, "the list that is gone through", .required = true),          \
        WORD("by", config_stage, member.by, by_words, "how a text becomes a list"),                          \
        TEXT("as", config_stage, member.as, 1, 32, "what templates call an item", .otherwise_text = "item"), \
        UINT("parallel", config_stage, member.parallel, 1, EACH_PARALLEL_MAX, "items at once",               \
             .otherwise = 4),                                                                                \
        UINT("max", config_stage, member.max, 1, PIPELINE_EACH_MAX, "longest list", .otherwise = 64),        \
        UINT("most", config_stage, member.most, 64, 16384, about_, .otherwise = (most_))

static const config_field foreach_rows[] = {
    EACH_ROWS(each, 2000, "bytes of a piece"),
    UINT("overlap", config_stage, each.overlap, 0, 4096, "bytes that pieces may have in common"),
};
RECORD(foreach_section, config_stage, foreach_rows);

static const config_field reduce_rows[] = {
    EACH_ROWS(reduce, 4000, "bytes of texts that are read at once"),
    TEXT("join", config_stage, reduce.join, 1, 64, "what stands between two texts", .otherwise_text = "\n"),
};
RECORD(reduce_section, config_stage, reduce_rows);

static const config_field saying_rows[] = {
    TEXT("rule", stage_saying, rule, 1, 32, "the rule that it is said for", .required = true),
    TEXT("language", stage_saying, language, 1, 16, "the language of the request"),
    TEXT("text", stage_saying, text, 1, 1024, "template of what is said", .required = true),
};
RECORD(saying, stage_saying, saying_rows);

static const config_field tool_rows[] = {
    TEXT("name", stage_tool, name, 1, NAME_MAX_BYTES, "what the function is called", .required = true),
    TEXT("description", stage_tool, description, 1, 4096, "what it does, for the model"),
    JSON("parameters", stage_tool, parameters, TEXT_MAX_BYTES, "the JSON schema of its arguments"),
};
RECORD(tool, stage_tool, tool_rows);

static const char *const row_words[] = {"last", "highest", "lowest", NULL};
static const config_field stage_rows[] = {
    TEXT("name", config_stage, name, 1, NAME_MAX_BYTES, "what traces and other stages call it",
         .required = true),
    {.key = "kind",
     .kind = CONFIG_STAGE,
     .at = offsetof(config_stage, kind),
     .about = "what the stage does",
     .required = true},
    TEXT("model", config_stage, model, 1, NAME_MAX_BYTES, "a name of 'models'"),
    TEXT("lexicon", config_stage, lexicon_path, 1, PATH_MAX_BYTES, "what words mean for devices"),
    TEXT("forms", config_stage, forms_path, 1, PATH_MAX_BYTES, "the forms of lines"),
    TEXT("intent", config_stage, intent, 1, NAME_MAX_BYTES,
         "the classify stage whose label decides what is said when no device is meant"),
    TEXT("choices", config_stage, choices, 1, NAME_MAX_BYTES,
         "the ground stage whose options the reply is one of"),
    LIST("tools", config_stage, tools, n_tools, tool, 1, PIPELINE_TOOLS_MAX,
         "the functions that the reply may call, and no others"),
    TEXT("tool_choice", config_stage, tool_choice, 1, NAME_MAX_BYTES,
         "auto, required, none or the name of the function that has to be called"),
    TEXTS("mcp", config_stage, mcp, n_mcp, 1, 16, NAME_MAX_BYTES,
          "names of 'mcp_servers' whose tools are called"),
    UINT("mcp_rounds", config_stage, mcp_rounds, 1, 16, "calls of such tools at most"),
    BOOL("parallel_tool_calls", config_stage, several_calls, "the reply may hold more than one call"),
    TEXT("near", config_stage, near_stage, 1, NAME_MAX_BYTES,
         "the ground stage whose devices go into the prompt"),
    TEXT("of", config_stage, of, 1, NAME_MAX_BYTES, "the stage that is checked or guarded"),
    TEXT("against", config_stage, against, 1, NAME_MAX_BYTES, "the ground or line stage it is held against"),
    SECTION("foreach", foreach_section, "the stage runs for each item of a list"),
    SECTION("reduce", reduce_section, "the stage makes one text of a list"),
    TEXT("slots", config_stage, slots, 1, NAME_MAX_BYTES, "the tag stage whose spans name devices"),
    TEXTS("slot_labels", config_stage, slot_labels, n_slot_labels, 1, 64, NAME_MAX_BYTES,
          "labels of the spans that name devices and places"),
    TEXTS("languages", config_stage, languages, n_languages, 1, 8, 16, "the languages that may be spoken"),
    TEXTS("rules", config_stage, rules, n_rules, 1, 16, 32, "the rules that are held"),
    TEXTS("ask_kinds", config_stage, ask_kinds, n_ask_kinds, 1, 64, 64,
          "kinds of devices that are asked about"),
    TEXTS("ask_ids", config_stage, ask_ids, n_ask_ids, 1, 256, 128, "devices that are asked about"),
    TEXTS("ask_actions", config_stage, ask_actions, n_ask_actions, 1, 64, 128,
          "services and intents that are asked about"),
    UINT("max_targets", config_stage, max_targets, 0, PIPELINE_DEVICES_MAX, "more devices are asked about"),
    UINT("confirm_s", config_stage, confirm_s, 0, 3600, "how long a question may be answered"),
    LIST("say", config_stage, say, n_say, saying, 1, 64, "what is said for a rule"),
    LIST("when", config_stage, when, n_when, condition, 1, 32, "the stage runs if any of these holds"),
    LIST("unless", config_stage, unless, n_unless, condition, 1, 32,
         "the stage is skipped if any of these holds"),
    TEXTS("after", config_stage, after, n_after, 1, PIPELINE_STAGES_MAX, NAME_MAX_BYTES,
          "further stages to wait for"),
    TEXT("system", config_stage, system, 1, TEXT_MAX_BYTES, "template of the system message"),
    TEXT("schema", config_stage, schema, 2, TEXT_MAX_BYTES, "the JSON Schema that the reply follows"),
    TEXT("prompt", config_stage, prompt, 1, TEXT_MAX_BYTES, "template of the user message"),
    TEXT("input", config_stage, input, 1, TEXT_MAX_BYTES, "template of the text that the model reads"),
    TEXTS("candidates", config_stage, candidates, n_candidates, 1, PIPELINE_CANDIDATES_MAX, 1024,
          "the texts of which the nearest is found"),
    TEXTS("documents", config_stage, documents, n_documents, 1, PIPELINE_DOCUMENTS_MAX, 16384,
          "the texts that are ordered by how well they answer"),
    TEXT("collection", config_stage, collection, 1, 64, "the collection that is searched"),
    UINT("limit", config_stage, limit, 1, 50, "passages that are taken"),
    TEXT("host", config_stage, host, 1, NAME_MAX_BYTES, "a name of 'hosts'"),
    WORD("method", config_stage, method, method_words, "how the host is asked"),
    TEXT("path", config_stage, path, 1, 4096, "template of what follows the host's URL"),
    TEXT("body", config_stage, body, 1, TEXT_MAX_BYTES, "template of the JSON that is sent"),
    TEXT("adapter", config_stage, adapter, 1, NAME_MAX_BYTES - 1, "a name of the model's 'adapters'"),
    TEXT("language", config_stage, language, 1, 32, "what is spoken: code or English name"),
    BOOL("translate", config_stage, translate, "what is heard is put into English"),
    NUMBER("threshold", config_stage, threshold, 0, 1, "from which probability on a window is speech"),
    UINT("min_speech_ms", config_stage, min_speech_ms, 0, DAY_MS, "shorter speech does not count"),
    UINT("min_silence_ms", config_stage, min_silence_ms, 0, DAY_MS, "shorter pauses do not end speech"),
    UINT("pad_ms", config_stage, pad_ms, 0, DAY_MS, "speech begins so much earlier, and ends later"),
    TEXTS("alert", config_stage, alert, n_alert, 1, 64, NAME_MAX_BYTES,
          "labels; the first that any row has is the stage's"),
    TEXT("row", config_stage, row, 1, 16, "whose number is the score", .words = row_words),
    UINT("beams", config_stage, n_beams, 1, 10, "replies that are followed side by side"),
    UINT("max_tokens", config_stage, max_tokens, 0, 65536, "longest reply"),
    NUMBER("temperature", config_stage, temperature, 0, SAMPLING_TEMPERATURE_MAX, "0 is greedy"),
    NUMBER("top_p", config_stage, top_p, 0, SAMPLING_TOP_P_MAX, "nucleus sampling"),
    UINT("seed", config_stage, seed, 0, UINT64_MAX, "seed of the draws"),
    UINT("timeout_ms", config_stage, timeout_ms, 0, DAY_MS, "deadline of this stage"),
    BOOL("optional", config_stage, optional, "a failure does not fail the request"),
};
RECORD(stage, config_stage, stage_rows);

static const config_field pipeline_rows[] = {
    TEXT("name", config_pipeline, name, 1, NAME_MAX_BYTES, "what a request's 'pipeline' names",
         .required = true),
    TEXT("use", config_pipeline, use, 1, 256, "what it is for"),
    TEXT("functions", config_pipeline, functions, 1, PATH_MAX_BYTES,
         "which offered functions carry out its calls"),
    LIST("devices", config_pipeline, devices, n_devices, home_device, 0, PIPELINE_DEVICES_MAX,
         "the devices of requests that bring none"),
    LIST("stages", config_pipeline, stages, n_stages, stage, 1, PIPELINE_STAGES_MAX, "its model calls",
         .required = true),
};
RECORD(pipeline, config_pipeline, pipeline_rows);

static const config_field host_header_rows[] = {
    TEXT("name", host_header, name, 1, NAME_MAX_BYTES, "the header's name", .required = true),
    TEXT("value", host_header, value, 1, 8192, "what it says", .secret = true),
    TEXT("file", host_header, file, 1, PATH_MAX_BYTES, "the file whose first line it says"),
};
RECORD(header_of_host, host_header, host_header_rows);

static const config_field host_rows[] = {
    TEXT("name", host_rule, name, 1, NAME_MAX_BYTES, "what http stages call it", .required = true),
    TEXT("url", host_rule, url, 1, 2048, "where it is, and what every path begins with", .required = true),
    TEXTS("methods", host_rule, methods, n_methods, 1, 5, 8, "how it may be asked"),
    LIST("headers", host_rule, headers, n_headers, header_of_host, 1, 32, "headers of every request"),
    TEXT("ca", host_rule, ca, 1, PATH_MAX_BYTES, "the PEM file of the CAs that its certificate is of"),
    UINT("timeout_ms", host_rule, timeout_ms, 1, HOUR_MS, "how long a call may take", .otherwise = 5000),
    UINT("max_kb", host_rule, max_bytes, 1, 4096, "longest answer", .unit = KIB, .otherwise = 256),
};
RECORD(named_host, host_rule, host_rows);

static const config_field mcp_rows[] = {
    TEXT("name", mcp_rule, name, 1, NAME_MAX_BYTES, "what generate stages call it", .required = true),
    TEXT("url", mcp_rule, url, 1, 2048, "where it is (Streamable HTTP)"),
    TEXTS("command", mcp_rule, command, n_command, 1, 64, PATH_MAX_BYTES, "or the program and its arguments"),
    LIST("headers", mcp_rule, headers, n_headers, header_of_host, 1, 32, "headers of every request"),
    LIST("env", mcp_rule, env, n_env, header_of_host, 1, 64, "further variables of the program"),
    TEXT("ca", mcp_rule, ca, 1, PATH_MAX_BYTES, "the PEM file of the CAs that its certificate is of"),
    TEXTS("tools", mcp_rule, tools, n_tools, 1, 64, 64, "its tools that models are offered",
          .required = true),
    UINT("timeout_ms", mcp_rule, timeout_ms, 1, HOUR_MS, "how long a call may take", .otherwise = 10000),
    UINT("max_kb", mcp_rule, max_bytes, 1, 16384, "longest answer", .unit = KIB, .otherwise = 256),
    UINT("text_kb", mcp_rule, text_bytes, 1, 1024, "of a result that a model reads", .unit = KIB,
         .otherwise = 8),
    UINT("max_tools", mcp_rule, max_tools, 1, 4096, "tools that it may list", .otherwise = 512),
    UINT("tools_kb", mcp_rule, tools_bytes, 1, 16384, "longest list of tools", .unit = KIB,
         .otherwise = 1024),
};
RECORD(mcp_server, mcp_rule, mcp_rows);

static const char *const ensemble_words[] = {
#define ENSEMBLE_WORD(e, name) name,
    ENSEMBLE_KIND_TABLE(ENSEMBLE_WORD)
#undef ENSEMBLE_WORD
        NULL};
static const char *const mean_words[] = {"arithmetic", "geometric", NULL}; /* as ensemble_mean */

static const config_field member_rows[] = {
    TEXT("model", config_member, model, 1, NAME_MAX_BYTES, "which of this file's models", .required = true),
    NUMBER("min_confidence", config_member, min_confidence, 0, 1, "under it the next member is asked"),
    TEXT("calibration", config_member, calibration, 1, PATH_MAX_BYTES, "the file that shoal calibrate wrote"),
    NUMBER("weight", config_member, weight, 0, 1000, "what its vote counts"),
    UINT("candidates", config_member, candidates, 1, ENSEMBLE_CANDIDATES_MAX, "of a rerank: its answers"),
    NUMBER("temperature", config_member, temperature, 0, SAMPLING_TEMPERATURE_MAX,
           "of a rerank: how freely its candidates are drawn", .pointer = true),
};
RECORD(ensemble_member, config_member, member_rows);

static const char *const check_words[] = {
#define CHECK_WORD(e, name) name,
    CHECK_KIND_TABLE(CHECK_WORD)
#undef CHECK_WORD
        NULL};

static const config_field answer_check_rows[] = {
    WORD("kind", config_answer_check, kind, check_words, "what the answer is held against", .required = true),
    TEXT("lexicon", config_answer_check, lexicon, 1, PATH_MAX_BYTES, "of devices: what words mean for them"),
    TEXT("functions", config_answer_check, functions, 1, PATH_MAX_BYTES,
         "of devices: what results of functions say"),
    TEXTS("must", config_answer_check, must, n_must, 1, ENSEMBLE_PATTERNS_MAX, 1024,
          "of a pattern: regular expressions that are found in the answer"),
    TEXTS("must_not", config_answer_check, must_not, n_must_not, 1, ENSEMBLE_PATTERNS_MAX, 1024,
          "of a pattern: regular expressions that are not"),
    TEXT("schema", config_answer_check, schema, 1, PATH_MAX_BYTES, "of json: the file with its JSON Schema"),
    TEXT("model", config_answer_check, model, 1, NAME_MAX_BYTES, "of nli: the classifier of pairs of texts"),
    TEXT("entails", config_answer_check, entails, 1, NAME_MAX_BYTES,
         "of nli: its label for what follows from the context"),
    NUMBER("min_score", config_answer_check, min_score, 0, 1, "of nli: how sure that must be"),
};
RECORD(answer_check, config_answer_check, answer_check_rows);

static const char *const rule_words[] = {
#define RULE_WORD(name) name,
    ENSEMBLE_RULE_TABLE(RULE_WORD)
#undef RULE_WORD
        NULL};

static const config_field score_rows[] = {
    TEXT("model", config_ensemble, score.model, 1, NAME_MAX_BYTES, "the cross-encoder that judges"),
    TEXT("log_prob", config_ensemble, score.log_prob, 1, NAME_MAX_BYTES, "the decoder that judges"),
    TEXT("rule", config_ensemble, score.rule, 1, NAME_MAX_BYTES, "what is better", .words = rule_words),
    TEXT("pattern", config_ensemble, score.pattern, 1, 4096, "what a good answer matches"),
    TEXT("schema", config_ensemble, score.schema, 1, PATH_MAX_BYTES, "of the rule json: its JSON Schema"),
};
RECORD(ensemble_score, config_ensemble, score_rows);

static const config_field ensemble_rows[] = {
    TEXT("name", config_ensemble, name, 1, NAME_MAX_BYTES, "what requests call it", .required = true),
    WORD("kind", config_ensemble, kind, ensemble_words, "how its members work together", .required = true),
    WORD("mean", config_ensemble, mean, mean_words, "of a vote: what is taken of its members' probabilities"),
    UINT("wait_ms", config_ensemble, wait_ms, 1, DAY_MS,
         "of a refine: how long the better one may be silent"),
    BOOL("in_turn", config_ensemble, in_turn, "of a rerank: whether a member waits for those before it"),
    SECTION("score", ensemble_score, "of a rerank: what makes a candidate the best"),
    LIST("members", config_ensemble, members, n_members, ensemble_member, 1, ENSEMBLE_MEMBERS_MAX,
         "its models, in order", .required = true),
    LIST("check", config_ensemble, checks, n_checks, answer_check, 1, ENSEMBLE_CHECKS_MAX,
         "of a verify: what an answer must pass"),
    TEXTS("on_fail", config_ensemble, on_fail, n_on_fail, 1, FAIL_N_STEPS, 16,
          "of a verify: what becomes of an answer that does not"),
    TEXT("safe", config_ensemble, safe, 1, 4096, "of a verify: what is said when no answer passes"),
};
RECORD(ensemble, config_ensemble, ensemble_rows);

#define WORD_NAME(e, name) name,
static const char *const order_words[] = {ROUTER_ORDER_TABLE(WORD_NAME) NULL};
static const char *const key_words[] = {ROUTE_KEY_TABLE(WORD_NAME) NULL};
#undef WORD_NAME

static const config_field route_header_rows[] = {
    TEXT("name", route_header, name, 1, NAME_MAX_BYTES, "the header's name, in lower case", .required = true),
    TEXT("value", route_header, value, 1, 256, "what it is; a trailing '*' is a prefix"),
};
RECORD(header_condition, route_header, route_header_rows);

static const config_field share_rows[] = {
    TEXT("model", config_share, model, 1, NAME_MAX_BYTES * 2, "a model or a route", .required = true),
    NUMBER("share", config_share, share, 0, 1e6, "its share, over the sum of all", .required = true),
};
RECORD(share, config_share, share_rows);

#define NAMES(key_, member, about_) \
    TEXTS(key_, config_rule, member, n_##member, 1, 64, NAME_MAX_BYTES * 2, about_)
static const config_field rule_rows[] = {
    TEXT("name", config_rule, name, 1, NAME_MAX_BYTES, "what explanations call it"),
    NAMES("endpoint", endpoint, "where it is asked: chat_completions, embeddings, ..."),
    NAMES("path", path, "the same as a path; a trailing '*' is a prefix"),
    NAMES("api_key", api_key, "who asks: names of api_keys"),
    LIST("header", config_rule, header, n_header, header_condition, 1, 16, "headers that it brings"),
    NAMES("language", language, "what it seems to be written in: en, de, ..."),
    NAMES("wants", wants, "what it asks for: tools, json_schema, ..."),
    NAMES("latency", latency, "how urgent it is"),
    UINT("min_bytes", config_rule, min_bytes, 0, UINT32_MAX, "shortest text"),
    UINT("max_bytes", config_rule, max_bytes, 1, UINT32_MAX, "longest text"),
    UINT("min_tokens", config_rule, min_tokens, 0, UINT32_MAX, "the same in tokens, at four bytes each"),
    UINT("max_tokens", config_rule, max_tokens, 1, UINT32_MAX, "the same in tokens, at four bytes each"),
    UINT("min_deadline_ms", config_rule, min_deadline_ms, 0, DAY_MS, "least time that is left"),
    UINT("max_deadline_ms", config_rule, max_deadline_ms, 1, DAY_MS, "most time that is left"),
    TEXT("matches", config_rule, matches, 1, 1024, "a regular expression that is found in the text"),
    NAMES("domain", domain, "what the text is about"),
    NUMBER("min_score", config_rule, min_score, 0, 1, "how sure that must be", .pointer = true),
    NUMBER("max_load", config_rule, max_load, 0, 1000, "calls at the target over what it does at once"),
    UINT("max_wait_ms", config_rule, max_wait_ms, 1, DAY_MS, "until the target's first answer"),
    NUMBER("max_cost", config_rule, max_cost, 0, 1e9, "what the target may cost for the request"),
    NUMBER("max_energy_j", config_rule, max_energy_j, 0, 1e9, "joules that the target may take for it"),
    TEXT("model", config_rule, model, 1, NAME_MAX_BYTES * 2, "a model or a route"),
    TEXTS("any", config_rule, any, n_any, 1, ROUTE_ANY_MAX, NAME_MAX_BYTES * 2,
          "models that are all as good; the route's order says which is asked"),
    LIST("split", config_rule, split, n_split, share, 1, 16, "targets that share the requests"),
    WORD("split_by", config_rule, split_by, key_words, "what stays with one of them"),
};
#undef NAMES
RECORD(rule, config_rule, rule_rows);

static const config_field route_rows[] = {
    TEXT("name", config_route, name, 1, NAME_MAX_BYTES, "what requests give as their model",
         .required = true),
    TEXT("domains", config_route, domains, 1, NAME_MAX_BYTES, "the domains that its rules ask"),
    LIST("rules", config_route, rules, n_rules, rule, 1, 64, "who answers what; the first that holds"),
    TEXTS("fallback", config_route, fallback, n_fallback, 1, 8, NAME_MAX_BYTES * 2,
          "models or routes that are asked when no rule's target can answer"),
    WORD("order", config_route, order, order_words, "which replica of the target is asked"),
    WORD("key", config_route, key, key_words, "what stays with one replica, with order: hash"),
    TEXT("shadow", config_route, shadow, 1, NAME_MAX_BYTES * 2, "a model or route that answers unseen"),
    NUMBER("shadow_share", config_route, shadow_share, 0, 1, "how many of the requests it gets"),
    UINT("first_token_ms", config_route, limits.first_token_ms, 1, DAY_MS,
         "how long its replies may have no token; then it is an error"),
    UINT("token_gap_ms", config_route, limits.token_gap_ms, 1, DAY_MS,
         "how long no further token of its replies may come; then they end with what there is"),
    UINT("reply_ms", config_route, limits.reply_ms, 1, DAY_MS,
         "how long its replies may take in all; then they end with what there is"),
};
RECORD(route, config_route, route_rows);

static const config_field domain_rows[] = {
    TEXT("name", config_domain, name, 1, NAME_MAX_BYTES - 1, "what rules call it", .required = true),
    TEXTS("labels", config_domain, labels, n_labels, 1, 256, NAME_MAX_BYTES,
          "labels of the classifier that are this domain"),
    TEXTS("examples", config_domain, examples, n_examples, 1, 1000, 4096, "texts of this domain"),
};
RECORD(one_domain, config_domain, domain_rows);

static const config_field domains_rows[] = {
    TEXT("name", config_domains, name, 1, NAME_MAX_BYTES, "what routes call them", .required = true),
    TEXT("model", config_domains, model, 1, NAME_MAX_BYTES, "the classifier or embedder that is asked",
         .required = true),
    TEXT("centroids", config_domains, centroids_path, 1, PATH_MAX_BYTES, "what \"shoal route train\" wrote"),
    UINT("timeout_ms", config_domains, timeout_ms, 1, 10000, "how long is waited for it", .otherwise = 50),
    NUMBER("min_score", config_domains, min_score, 0, 1, "under it a text is of no domain"),
    LIST("of", config_domains, of, n_of, one_domain, 1, CENTROIDS_MAX, "the domains"),
};
RECORD(domain_set, config_domains, domains_rows);

static const config_field moderation_rows[] = {
    TEXT("model", gateway_config, moderation.model, 1, NAME_MAX_BYTES, "the classifier that is asked",
         .required = true),
    TEXTS("safe", gateway_config, moderation.safe, moderation.n_safe, 1, 256, NAME_MAX_BYTES,
          "its labels that flag nothing"),
    NUMBER("min_score", gateway_config, moderation.min_score, 0, 1,
           "from which score on a label flags; 0: 0.5"),
};
RECORD(moderation_section, gateway_config, moderation_rows);

static const char *const loading_words[] = {"on", "off", NULL}; /* as config_loading */
static const config_field library_rows[] = {
    WORD("load", gateway_config, library.loading, loading_words,
         "whether requests may load and unload models"),
    TEXTS("folders", gateway_config, library.folders, library.n_folders, 1, 32, PATH_MAX_BYTES,
          "further folders that models may be loaded from"),
    TEXT("store", gateway_config, library.store, 1, PATH_MAX_BYTES, "the folder for fetched models"),
    TEXTS("fetch_from", gateway_config, library.hosts, library.n_hosts, 1, 64, 255,
          "hosts that models may be fetched from"),
    TEXT("hub", gateway_config, library.hub, 1, 1024, "a hub in place of https://huggingface.co"),
    TEXT("registry", gateway_config, library.registry, 1, 1024,
         "a registry in place of https://registry.ollama.ai"),
    UINT("keep_alive_s", gateway_config, library.keep_alive_s, 1, 365 * 24 * 3600,
         "how long a model stays unused that a question made load", .otherwise = 300),
};
RECORD(library_section, gateway_config, library_rows);

static const char *const hedge_words[] = {"auto", "off", NULL}; /* as config_hedge */

static const config_field worker_rows[] = {
    TEXT("model", table_row, model, 1, NAME_MAX_BYTES, "what it serves", .required = true),
    TEXT("address", table_row, address, 1, 256, "unix:/path or HOST:PORT"),
};
RECORD(worker, table_row, worker_rows);

static const config_field dns_rows[] = {
    TEXT("name", dns_name, name, 1, 253, "the name whose SRV records are workers", .required = true),
    TEXT("model", dns_name, model, 1, NAME_MAX_BYTES, "what they serve", .required = true),
};
RECORD(dns_entry, dns_name, dns_rows);

static const config_field etcd_rows[] = {
    TEXTS("endpoints", gateway_config, etcd.endpoints, etcd.n_endpoints, 1, 16, 256,
          "HOST:PORT of each etcd server", .required = true),
    TEXT("prefix", gateway_config, etcd.prefix, 1, ETCD_PREFIX_BYTES, "where this cluster's keys begin",
         .otherwise_text = ETCD_PREFIX),
    TEXT("ca", gateway_config, etcd.ca, 1, PATH_MAX_BYTES, "the PEM file of the CA of its servers"),
    TEXT("cert", gateway_config, etcd.cert, 1, PATH_MAX_BYTES, "the PEM file with our certificate"),
    TEXT("key", gateway_config, etcd.key, 1, PATH_MAX_BYTES, "the PEM file with its key"),
    TEXT("user", gateway_config, etcd.user, 1, 128, "who we are to etcd"),
    TEXT("password_file", gateway_config, etcd.password_file, 1, PATH_MAX_BYTES,
         "the file with its password"),
    UINT("lease_s", gateway_config, etcd.lease_s, 3, 3600, "how long a silent gateway is kept",
         .otherwise = ETCD_LEASE_S),
};
RECORD(etcd_section, gateway_config, etcd_rows);

static const config_field worker_tls_rows[] = {
    TEXT("cert", gateway_config, discovery_tls.cert, 1, PATH_MAX_BYTES, "the PEM file with our certificate",
         .required = true),
    TEXT("key", gateway_config, discovery_tls.key, 1, PATH_MAX_BYTES, "the PEM file with its key",
         .required = true),
    TEXT("ca", gateway_config, discovery_tls.ca, 1, PATH_MAX_BYTES,
         "the PEM file of the CA of gateways and workers", .required = true),
    TEXT("name", gateway_config, discovery_tls.name, 1, 253, "the name in the certificates of workers",
         .otherwise_text = "shoal-worker"),
};
RECORD(worker_tls_section, gateway_config, worker_tls_rows);

static const config_field discovery_rows[] = {
    SECTION("etcd", etcd_section, "gateways that see each other through etcd"),
    SECTION("tls", worker_tls_section, "how workers with a TCP address are reached"),
    LIST("workers", gateway_config, workers, n_workers, worker, 1, 1000, "workers that run by themselves"),
    LIST("dns", gateway_config, dns, n_dns, dns_entry, 1, 100, "workers that DNS knows"),
    TEXT("dns_server", gateway_config, dns_server, 1, 256, "the name server, if it is not the machine's"),
};
RECORD(discovery, gateway_config, discovery_rows);

static const config_field listen_rows[] = {
    TEXT("address", config_listen, address, 1, 256, "HOST:PORT or unix:/path", .required = true),
    TEXT("mode", config_listen, mode, 4, 4, "who may use a Unix socket, as of chmod: \"0660\""),
    TEXT("group", config_listen, group, 1, 64, "whose a Unix socket is"),
    BOOL("user_files", config_listen, user_files, "loads may name what the connecting user may read"),
};
RECORD(also_listen, config_listen, listen_rows);

static const config_field alias_rows[] = {
    TEXT("name", config_alias, name, 1, CONFIG_ALIAS_BYTES, "what clients call it"),
    TEXT("model", config_alias, model, 1, NAME_MAX_BYTES * 2, "what it stands for"),
};
RECORD(alias_pair, config_alias, alias_rows);

static const config_field otel_pair_rows[] = {
    TEXT("key", config_otel_pair, key, 1, 128, "the attribute's name"),
    TEXT("value", config_otel_pair, value, 1, 512, "its value"),
};
RECORD(otel_pair, config_otel_pair, otel_pair_rows);

/* Zero is "auto": what is absent here the environment says. */
static const char *const switch_words[] = {"auto", "on", "off", NULL}; /* as config_otel_switch */
static const char *const protocol_words[] = {"auto", "http/protobuf", "http/json", NULL}; /* ..._protocol */
static const char *const compression_words[] = {"auto", "none", "gzip", NULL}; /* ..._compression */
static const char *const semconv_words[] = {
#define OTEL_SEMCONV_WORD(e, name) name,
    OTEL_SEMCONV_TABLE(OTEL_SEMCONV_WORD)
#undef OTEL_SEMCONV_WORD
        NULL};

static const config_field otel_rows[] = {
    TEXT("endpoint", gateway_config, otel.endpoint, 1, 2048, "the collector's URL, before /v1/traces"),
    WORD("protocol", gateway_config, otel.protocol, protocol_words, "how it is written"),
    LIST("headers", gateway_config, otel.headers, otel.n_headers, header_of_host, 1, 32,
         "headers of every request to it"),
    TEXT("ca", gateway_config, otel.ca, 1, PATH_MAX_BYTES,
         "the PEM file of the CAs that its certificate is of"),
    WORD("compression", gateway_config, otel.compression, compression_words, "whether bodies are packed"),
    TEXT("service_name", gateway_config, otel.service_name, 1, 128, "what this gateway is called there"),
    PAIRS("resource", gateway_config, otel.resource, otel.n_resource, otel_pair, 1, 32,
          "further attributes of this gateway"),
    NUMBER("sample", gateway_config, otel.sample, 0, 1, "which share of the traces that begin here is kept",
           .pointer = true),
    BOOL("keep_failed", gateway_config, otel.keep_failed, "also keep each whose request failed"),
    UINT("slow_ms", gateway_config, otel.slow_ms, 1, DAY_MS, "also keep each whose request took as long"),
    WORD("semconv", gateway_config, otel.semconv, semconv_words, "version of the semantic conventions"),
    WORD("traces", gateway_config, otel.traces, switch_words, "whether traces are exported"),
    WORD("metrics", gateway_config, otel.metrics, switch_words, "whether metrics are exported"),
    WORD("logs", gateway_config, otel.logs, switch_words, "whether log lines are exported"),
    UINT("batch", gateway_config, otel.batch, 1, 10000, "spans or log lines of one request at most"),
    UINT("interval_ms", gateway_config, otel.interval_ms, 10, HOUR_MS,
         "how long spans and log lines wait for a batch to be full"),
    UINT("metrics_interval_ms", gateway_config, otel.metrics_interval_ms, 100, DAY_MS,
         "how often metrics are sent"),
    UINT("timeout_ms", gateway_config, otel.timeout_ms, 1, HOUR_MS, "how long one request may take"),
    UINT("queue_bytes", gateway_config, otel.queue_bytes, 64 * KIB, 1024 * MIB,
         "what may wait of each of the three; more is dropped", .otherwise = 4 * MIB),
};
RECORD(otel_section, gateway_config, otel_rows);

static const config_field file_rows[] = {
    TEXT("listen", gateway_config, listen, 1, 256, "HOST:PORT or unix:/path",
         .otherwise_text = "127.0.0.1:8080"),
    LIST("also_listen", gateway_config, also_listen, n_also_listen, also_listen, 1, 16, "further addresses",
         .alone = "address"),
    SECTION("tls", tls, "certificate and key"),
    LIST("api_keys", gateway_config, api_keys, n_api_keys, key_of_api, 1, 10000,
         "the keys that clients may use", .alone = "sha256"),
    TEXTS("allow_hosts", gateway_config, allow_hosts, n_allow_hosts, 1, 256, 256,
          "further names of this server"),
    TEXTS("allow_origins", gateway_config, allow_origins, n_allow_origins, 1, 256, 256,
          "sites whose pages may use it"),
    SECTION("metrics", metrics_section, "/metrics: who may read it, and further names"),
    SECTION("otel", otel_section, "traces, metrics and logs for an OpenTelemetry collector"),
    SECTION("limits", limits, "what one client, or all of them, may take"),
    SECTION("cache", cache, "the response cache"),
    SECTION("retrieval", retrieval, "collections of documents"),
    SECTION("sessions", sessions, "conversations that are kept"),
    SECTION("batches", batches, "requests that can wait"),
    SECTION("moderation", moderation_section, "who says at /v1/moderations what a text is"),
    SECTION("cpu", cpu_section, "how much of the processor it takes beside other programs"),
    SECTION("log", log_section, "one line an event"),
    SECTION("cluster", cluster_section, "the port for other machines of the cluster"),
    NUMBER("watts_per_core", gateway_config, watts_per_core, 0, 1000,
           "what a busy core takes, where energy cannot be measured"),
    UINT("deadline_ms", gateway_config, default_deadline_ms, 0, DAY_MS,
         "deadline of requests that bring none, but for replies", .otherwise = 60000),
    UINT("first_token_ms", gateway_config, reply_limits.first_token_ms, 0, DAY_MS,
         "how long a reply may have no token; then it is an error", .otherwise = 600000),
    UINT("token_gap_ms", gateway_config, reply_limits.token_gap_ms, 0, DAY_MS,
         "how long no further token may come; then the reply ends with what there is", .otherwise = 60000),
    UINT("reply_ms", gateway_config, reply_limits.reply_ms, 0, DAY_MS,
         "how long a reply may take in all; then it ends with what there is"),
    UINT("failover_wait_ms", gateway_config, failover_wait_ms, 1, DAY_MS,
         "how long a request without a deadline waits for a worker that is restarted", .otherwise = 30000),
    WORD("hedge", gateway_config, hedge, hedge_words, "whether short calls that take long are made twice"),
    UINT("drain_ms", gateway_config, drain_ms, 0, DAY_MS, "how long running answers may take after SIGTERM",
         .otherwise = 10000),
    UINT("drain_grace_ms", gateway_config, drain_grace_ms, 0, DAY_MS,
         "how long after SIGTERM new requests are answered while /readyz is 503"),
    SECTION("discovery", discovery, "workers beyond those that this program starts"),
    TEXT("manifest", gateway_config, manifest, 1, PATH_MAX_BYTES, "the models.json to look names up in"),
    SECTION("packed", packed_section, "weights as they were packed, for the next start and other replicas"),
    LIST("models", gateway_config, models, n_models, model, 1, 64, "the models of this cluster",
         .required = true),
    SECTION("library", library_section, "models that are loaded and unloaded while it serves"),
    LIST("ensembles", gateway_config, ensembles, n_ensembles, ensemble, 1, 32, "models that answer together"),
    LIST("pipelines", gateway_config, pipelines, n_pipelines, pipeline, 1, 32, "what POST /v1/process runs"),
    LIST("hosts", gateway_config, hosts, n_hosts, named_host, 1, 64, "what http stages may ask"),
    LIST("mcp_servers", gateway_config, mcp_servers, n_mcp_servers, mcp_server, 1, 64,
         "servers whose tools generate stages call"),
    LIST("domains", gateway_config, book.domains, book.n_domains, domain_set, 1, ROUTE_DOMAINS_MAX,
         "what texts may be about"),
    LIST("routes", gateway_config, book.routes, book.n_routes, route, 1, 64,
         "names that stand for several models"),
    PAIRS("aliases", gateway_config, aliases, n_aliases, alias_pair, 1, 256,
          "further names for what is served"),
};

const config_record config_schema = {sizeof(gateway_config), file_rows, COUNT(file_rows)};

/* ---- the file of `shoal plan --nodes` ---- */

static const config_field node_rows[] = {
    TEXT("name", node, name, 1, NAME_MAX_BYTES, "what the node is called", .required = true),
    TEXT("site", node, site, 1, NAME_MAX_BYTES, "where it stands"),
    TEXT("isa", node, isa, 1, NAME_MAX_BYTES, "its kernels"),
    UINT("cores", node, n_cores, 1, 4096, "its cores", .otherwise = 1),
    UINT("memory_mb", node, memory_bytes, 1, 1u << 26, "its memory", .unit = MIB, .required = true),
    NUMBER("gb_per_s", node, bytes_per_s, 0, 100000, "measured: memory read by all cores"),
    NUMBER("gmul_per_s", node, multiplies_per_s, 0, 1e7, "measured: int8 multiply-adds of all cores"),
    NUMBER("load", node, load_1m, 0, 100000, "processes that want to run"),
    NUMBER("rtt_ms", node, rtt_ms, 0, 100000, "how far away it is"),
    BOOL("on_battery", node, on_battery, "whether it runs on battery"),
    UINT("battery_percent", node, battery_percent, 0, 100, "what is left in it", .otherwise = 100),
    BOOL("draining", node, draining, "nothing new goes there"),
    BOOL("gateway", node, is_gateway, "it is the gateway, which is there before the others join"),
    TEXTS("labels", node, labels, n_labels, 0, 64, NAME_MAX_BYTES, "what models may ask for"),
};
RECORD(plan_node, node, node_rows);

static const config_field now_rows[] = {
    TEXT("model", placement_now, model, 1, NAME_MAX_BYTES, "what runs", .required = true),
    TEXT("node", placement_now, node, 1, NAME_MAX_BYTES, "where it runs", .required = true),
    BOOL("standby", placement_now, standby, "it is loaded, and waits"),
    UINT("first_layer", placement_now, first, 0, PLACEMENT_LAYERS_MAX, "where its layers begin"),
    UINT("end_layer", placement_now, end, 0, PLACEMENT_LAYERS_MAX, "and where they end; 0: it is whole"),
};
RECORD(plan_now, placement_now, now_rows);

static const config_field nodes_rows[] = {
    LIST("nodes", config_nodes, nodes, n_nodes, plan_node, 1, 10000, "the machines", .required = true),
    LIST("now", config_nodes, now, n_now, plan_now, 0, 100000, "what runs on them"),
};

const config_record config_nodes_schema = {sizeof(config_nodes), nodes_rows, COUNT(nodes_rows)};
