/* config_schema.h: shoal.yaml as tables: which keys there are, what each may hold, and where it goes.
 *
 * A map of the file is a config_record, a key of it one row (config_field). Reading, defaults, ranges, error
 * sentences and the tables of docs/configuration.md all follow the rows, so a new key is a member of a struct,
 * one row in config_schema.c and one in config_help.c. Inside config*.c and its tests, but
 * for config_nearest. */
#ifndef CONFIG_CONFIG_SCHEMA_H
#define CONFIG_CONFIG_SCHEMA_H

#include "base/buf.h"
#include "yaml/yaml.h"
#include "config/config.h"
#include "pipeline/pipeline.h"

typedef enum config_kind {
    CONFIG_TEXT,  /* const char *: min to max bytes; with `words` one of them */
    CONFIG_WORD,  /* an enum: the place in `words`; with `of`, which lies flat, a map in place of the last */
    CONFIG_STAGE, /* const stage_kind *: the name of one that the registry has */
    CONFIG_UINT, /* an unsigned integer of `width` bytes: min to max, times `unit`; with `of`, which lies flat, a map in
                      its place, where there is what `of` requires */
    CONFIG_INT,     /* an int: low to high */
    CONFIG_NUMBER,  /* double, or with `pointer` double * that is NULL when absent: low to high */
    CONFIG_BOOL,    /* bool */
    CONFIG_SECTION, /* a map whose keys lie flat in the struct around it */
    /* placement_shards: "auto", a number of min to max, or a map of nodes to numbers of layers. */
    CONFIG_SHARDS,
    CONFIG_JSON,  /* const char *: any part of the file as JSON text, of at most max bytes */
    CONFIG_LIST,  /* min to max of `item`s; the member points to them, the one at `at_n` counts them */
    CONFIG_PAIRS, /* a map whose keys are names: as a list of maps whose rows are two texts, key and value */
} config_kind;

typedef struct config_record config_record;

typedef struct config_field {
    const char *key;
    const char *about; /* what it is for, in a few words: ends "'key' is required: ..." */
    config_kind kind;
    bool required;
    size_t at; /* the member's offset in its struct */
    size_t width;
    uint64_t min, max;
    uint64_t unit; /* 0: 1 */
    double low, high;
    bool pointer;
    const char *const *words;   /* ends with NULL */
    uint64_t otherwise;         /* UINT: the value when absent, before `unit` */
    const char *otherwise_text; /* TEXT: the same; NULL: NULL */
    size_t at_n, width_n;
    const config_record
        *of; /* SECTION; UINT; WORD; PAIRS; LIST: of maps; NULL there: of texts of 1 to max_text bytes */
    size_t max_text;
    bool secret;       /* TEXT: nobody should read it */
    const char *alone; /* LIST of maps: the key that a text in place of a map is the value of; NULL: none */
} config_field;

struct config_record {
    size_t bytes; /* of the struct that one of them fills */
    const config_field *fields;
    size_t n;
};

extern const config_record config_schema; /* the whole file; fills a gateway_config */
extern const config_record
    config_load_request_schema;                 /* of config_load_request.h; fills a config_load_request */
extern const config_record config_nodes_schema; /* of config_nodes.h; fills a config_nodes */

/* Fill the zeroed struct `into`, with the kinds of stages that `kinds` (NULL: PLAIN_STAGES) has, from a document's root. Structs and lists are made in `mem`, texts stay the
 * document's. Errors are "file:line: path: ...", as of yaml_fail. */
int config_read(const config_record *schema, const stage_registry *kinds, const yaml_doc *doc, arena *mem,
                void *into, shoal_err *err);
/* The same; with `faults` an error of one key or entry keeps no other from being read. `into` is whole only where none
 * was found. */
int config_read_all(const config_record *schema, const stage_registry *kinds, const yaml_doc *doc, arena *mem,
                    void *into, config_faults *faults, shoal_err *err);

/* The word that was probably meant: few letters away from `given`, in any case; NULL when none is near. */
const char *config_nearest(const char *given, const char *const *words, size_t n_words);

enum { CONFIG_NAME_BYTES = 65 };

/* Names, references and formats that a row cannot say: what is wrong is given to config_found, section by section and
 * entry by entry. */
int config_check(gateway_config *c, shoal_err *err);

/* Put "file:line: " before a sentence that begins with a field's path, "models[1].name: ...", then config_found. */
int config_found_at(const gateway_config *c, int rc, shoal_err *err);

#endif
