#include "gateway/config_schema.h"

/* libcyaml's macros leave fields of its structs to their zero default. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define OPT CYAML_FLAG_OPTIONAL
#define STR(key, type, member, max) \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | OPT, type, member, 1, max)
#define STR_REQUIRED(key, type, member, max) \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, type, member, 1, max)
#define UINT(key, type, member)     CYAML_FIELD_UINT(key, OPT, type, member)
#define UINT_PTR(key, type, member) CYAML_FIELD_UINT_PTR(key, CYAML_FLAG_POINTER | OPT, type, member)
#define NUM_PTR(key, type, member)  CYAML_FIELD_FLOAT_PTR(key, CYAML_FLAG_POINTER | OPT, type, member)
/* An enum of two words: libcyaml's own boolean takes any word that is not "false" for true. */
#define BOOL(key, type, member) CYAML_FIELD_ENUM(key, CYAML_FLAG_STRICT | OPT, type, member, truths, 2)
#define LIST(key, flags, type, member, count, entry, min, max) \
    CYAML_FIELD_SEQUENCE_COUNT(key, CYAML_FLAG_POINTER | (flags), type, member, count, entry, min, max)
/* A mapping in the file whose fields lie flat in the struct around it. */
#define SECTION(name, type, fields_of)                                                        \
    {                                                                                         \
        .key = name, .data_offset = 0, .value = { CYAML_VALUE_MAPPING(OPT, type, fields_of) } \
    }

#define NAME_MAX_BYTES 64
#define PATH_MAX_BYTES 4096
#define TEXT_MAX_BYTES 65536

static const cyaml_strval_t truths[] = {{"false", 0}, {"true", 1}};
static const cyaml_schema_value_t name_entry = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, NAME_MAX_BYTES)};
static const cyaml_schema_value_t key_entry = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, 256)};

static const cyaml_schema_field_t tls_fields[] = {
    STR_REQUIRED("cert", gateway_config, tls_cert, PATH_MAX_BYTES),
    STR_REQUIRED("key", gateway_config, tls_key, PATH_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t limit_fields[] = {
    UINT("max_body_bytes", gateway_config, limits.max_body_bytes),
    UINT("max_header_bytes", gateway_config, limits.max_header_bytes),
    UINT("max_headers", gateway_config, limits.max_headers),
    UINT("max_connections", gateway_config, limits.max_connections),
    UINT("max_streams", gateway_config, limits.max_streams),
    UINT("max_write_backlog_bytes", gateway_config, limits.max_write_backlog),
    UINT("max_requests", gateway_config, max_requests),
    UINT("request_timeout_ms", gateway_config, limits.request_timeout_ms),
    UINT("idle_timeout_ms", gateway_config, limits.idle_timeout_ms),
    UINT("write_timeout_ms", gateway_config, limits.write_timeout_ms),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t cache_fields[] = {
    UINT_PTR("mb", config_file, cache_mb),
    UINT_PTR("ttl_s", config_file, cache_ttl_s),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t log_fields[] = {
    STR("level", gateway_config, log_level, 16),
    BOOL("json", gateway_config, log_json),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t model_fields[] = {
    STR_REQUIRED("name", config_model, name, NAME_MAX_BYTES),
    STR("path", config_model, path, PATH_MAX_BYTES),
    STR("sha256", config_model, sha256, 64),
    UINT("replicas", config_model, replicas),
    UINT("threads", config_model, threads),
    UINT("context", config_model, context),
    UINT("max_batch", config_model, max_batch),
    UINT("max_queue", config_model, max_queue),
    UINT("prefill_chunk", config_model, prefill_chunk),
    UINT("kv_mb", config_model, kv_mb),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t model_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, config_model, model_fields)};

static const cyaml_schema_field_t device_fields[] = {
    STR_REQUIRED("id", config_device, id, 128),
    STR_REQUIRED("name", config_device, name, 128),
    STR_REQUIRED("state", config_device, state, 128),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t device_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, config_device, device_fields)};

static const cyaml_schema_field_t condition_fields[] = {
    STR("stage", stage_condition, stage, NAME_MAX_BYTES),
    LIST("label", OPT, stage_condition, label, n_label, &name_entry, 1, 1000),
    NUM_PTR("score_min", stage_condition, score_min),
    NUM_PTR("score_below", stage_condition, score_below),
    NUM_PTR("mean_prob_below", stage_condition, mean_prob_below),
    STR("text_prefix", stage_condition, text_prefix, 256),
    BOOL("mentions_device", stage_condition, mentions_device),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t condition_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, stage_condition, condition_fields)};

#define KIND(e, n) {n, e},
static const cyaml_strval_t stage_kinds[] = {STAGE_KIND_TABLE(KIND)};
#undef KIND

static const cyaml_schema_field_t stage_fields[] = {
    STR_REQUIRED("name", config_stage, name, NAME_MAX_BYTES),
    CYAML_FIELD_ENUM("kind", CYAML_FLAG_STRICT, config_stage, kind, stage_kinds,
                     CYAML_ARRAY_LEN(stage_kinds)),
    STR_REQUIRED("model", config_stage, model, NAME_MAX_BYTES),
    LIST("when", OPT, config_stage, when, n_when, &condition_entry, 1, 32),
    LIST("unless", OPT, config_stage, unless, n_unless, &condition_entry, 1, 32),
    LIST("after", OPT, config_stage, after, n_after, &name_entry, 1, PIPELINE_STAGES_MAX),
    STR("system", config_stage, system, TEXT_MAX_BYTES),
    STR("prompt", config_stage, prompt, TEXT_MAX_BYTES),
    UINT("max_tokens", config_stage, max_tokens),
    CYAML_FIELD_FLOAT("temperature", OPT, config_stage, temperature),
    CYAML_FIELD_FLOAT("top_p", OPT, config_stage, top_p),
    UINT("seed", config_stage, seed),
    UINT("timeout_ms", config_stage, timeout_ms),
    BOOL("optional", config_stage, optional),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t stage_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, config_stage, stage_fields)};

static const cyaml_schema_field_t pipeline_fields[] = {
    STR_REQUIRED("name", config_pipeline, name, NAME_MAX_BYTES),
    LIST("devices", OPT, config_pipeline, devices, n_devices, &device_entry, 0, PIPELINE_DEVICES_MAX),
    LIST("stages", 0, config_pipeline, stages, n_stages, &stage_entry, 1, PIPELINE_STAGES_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t pipeline_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, config_pipeline, pipeline_fields)};

static const cyaml_schema_field_t file_fields[] = {
    STR("listen", gateway_config, listen, 256),
    SECTION("tls", gateway_config, tls_fields),
    LIST("api_keys", OPT, gateway_config, api_keys, n_api_keys, &key_entry, 1, 256),
    SECTION("limits", gateway_config, limit_fields),
    SECTION("cache", config_file, cache_fields),
    SECTION("log", gateway_config, log_fields),
    UINT_PTR("deadline_ms", config_file, deadline_ms),
    UINT_PTR("drain_ms", config_file, drain_ms),
    STR("manifest", gateway_config, manifest, PATH_MAX_BYTES),
    LIST("models", 0, gateway_config, models, n_models, &model_entry, 1, 64),
    LIST("pipelines", OPT, gateway_config, pipelines, n_pipelines, &pipeline_entry, 1, 32),
    CYAML_FIELD_END,
};

const cyaml_schema_value_t config_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, config_file, file_fields)};

const cyaml_config_t *config_cyaml(void)
{
    /* Without aliases no file is larger in memory than on disk (no "billion laughs"). */
    static const cyaml_config_t base = {
        .mem_fn = cyaml_mem, .log_level = CYAML_LOG_ERROR, .flags = CYAML_CFG_NO_ALIAS};
    return &base;
}
