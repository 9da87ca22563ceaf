/* config_schema.h: the YAML schema of shoal.yaml, and what it loads into. Inside config*.c and its
 * tests (which hold docs/configuration.md to this table). */
#ifndef GATEWAY_CONFIG_SCHEMA_H
#define GATEWAY_CONFIG_SCHEMA_H

#include <cyaml/cyaml.h>

#include "gateway/config.h"
#include "gateway/pipeline.h"

/* libcyaml zeroes what a file leaves out. Where zero is a value of its own (no cache, no deadline) the
 * field is a pointer here, and config.c moves it or the default into the public part. */
typedef struct config_file {
    gateway_config pub; /* first: gateway_config_free finds the file from it */
    uint64_t *cache_mb, *cache_ttl_s, *deadline_ms, *drain_ms;
} config_file;

extern const cyaml_schema_value_t config_schema;
const cyaml_config_t *config_cyaml(void); /* without log_fn and log_ctx */

/* Bounds, names, references and formats that a schema cannot say. The sentence starts with the
 * field's path: "models[1].name: ...". */
int config_check(gateway_config *c, shoal_err *err);

/* The line (from 1) of the field at `path` ("pipelines[0].stages[2].when"), or of the deepest part of the
 * path that exists, or of the syntax error when the text is no YAML; 0 without memory. */
size_t config_line_of(const char *yaml, size_t len, const char *path);
/* The first line >= from where any mapping has `key`; 0: none. */
size_t config_line_of_key(const char *yaml, size_t len, const char *key, size_t from);

#endif
