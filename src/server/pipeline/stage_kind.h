/* stage_kind.h: the kinds of stages, and the registry in which a program lists those that it has.
 *
 * A kind is data and a few pure functions: what it gives and reads, which keys of shoal.yaml it has, how these
 * are checked, what it loads. How it runs is its runner's business (process/stage_run.h), which the registry
 * has beside it. The kinds that a model or a host stands behind are the server's (STAGE_KINDS); others stand in
 * modules above it (home/rules), which the server does not know:
 *
 *     static const stage_row ROWS[] = {SERVER_STAGE_ROWS, {&my_kind, &my_runner}};
 *     static const stage_registry mine = {.stages = ROWS, .n_stages = sizeof ROWS / sizeof *ROWS};
 *     rc = config_load(&config, &mine, "shoal.yaml", &err);
 *
 * Registries and kinds are immutable and outlive what was configured with them. */
#ifndef PIPELINE_STAGE_KIND_H
#define PIPELINE_STAGE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct arena;
struct config_pipeline;
struct config_stage;
struct stage_site;

/* What a kind of stage gives to conditions, templates and the answer, what it reads, and what it may do. */
enum {
    GIVES_LABEL = 1,  /* label in conditions, {label.STAGE} */
    GIVES_SCORE = 2,  /* score_min, score_below */
    GIVES_TEXT = 4,   /* {text.STAGE}; the answer's text when it is the last that has any */
    GIVES_PROB = 8,   /* mean_prob_below: it writes token by token */
    READS_TEXT = 16,  /* one text, made from the template `input` */
    READS_AUDIO = 32, /* what a request brings beside its text */
    READS_IMAGE = 64,
    READS_CSV = 128,
    READS_INPUT = 256,    /* the input as it is, without a template */
    GIVES_OPTIONS = 512,  /* replies that a generate stage chooses from ("choices", "near") */
    GIVES_DETAILS = 1024, /* its details are its value, and stand in the answer (`answer`) */
    SPEAKS = 2048,        /* its text can be the answer's */
    MAY_BE_SILENT = 4096, /* without a text it leaves the word to others */
    MAY_CALL = 16384,     /* what it says may come with calls */
    REPEATS = 8192,       /* does for an item of a list what it does for a request */
};

/* X(id, name of its runner): the server's own, in the order in which sentences name them. */
#define STAGE_TABLE(X)              \
    X(STAGE_CLASSIFY, classify)     \
    X(STAGE_TAG, tag)               \
    X(STAGE_GENERATE, generate)     \
    X(STAGE_EMBED, embed)           \
    X(STAGE_RERANK, rerank)         \
    X(STAGE_SEQ2SEQ, seq2seq)       \
    X(STAGE_FILL_MASK, fill_mask)   \
    X(STAGE_TRANSCRIBE, transcribe) \
    X(STAGE_VAD, vad)               \
    X(STAGE_IMAGE, image)           \
    X(STAGE_SCORE, score)           \
    X(STAGE_RETRIEVE, retrieve)     \
    X(STAGE_HTTP, http)
typedef enum stage_id {
    STAGE_REGISTERED, /* of a module above */
#define STAGE_ENUM(id, name) id,
    STAGE_TABLE(STAGE_ENUM)
#undef STAGE_ENUM
        N_STAGE_IDS
} stage_id;

typedef struct stage_kind {
    stage_id id;
    const char *name; /* in YAML */
    const char *task; /* of its model; NULL: a rule */
    unsigned gives;
    /* The keys of shoal.yaml that it has beside those of every stage, with blanks between them; those with a
     * '!' are required: "lexicon! intent". */
    const char *fields;
    const char *const *labels; /* all that it can come to; NULL: its model knows them */
    size_t n_labels;
    const char *passes; /* the label without which it holds the request back; NULL: it is no guard */
    const char *answer; /* GIVES_DETAILS: the key in the answer */
    /* Functions may be NULL. Sentences of the first begin with the site's path, of the second with `where`. */
    int (*check)(struct stage_site *s, const struct config_stage *st, shoal_err *err);
    int (*open)(struct config_pipeline *p, unsigned i, const char *where, shoal_err *err); /* its `own` */
    void (*close)(struct config_stage *s);
} stage_kind;

extern const stage_kind STAGE_KINDS[N_STAGE_IDS]; /* by id; the first is empty */

struct stage_runner;   /* process/stage_run.h */
struct device_checker; /* ensemble/verify.h */

typedef struct stage_row {
    const stage_kind *kind;
    const struct stage_runner *runner; /* NULL: it is only checked, never run */
} stage_row;

#define STAGE_KINDS_MAX 32

typedef struct stage_registry {
    const stage_row *stages; /* in the order in which sentences name them */
    size_t n_stages;
    const struct device_checker *devices; /* what an ensemble's check of devices does; NULL: there is none */
} stage_registry;

/* The server's kinds without runners: for who only reads configurations. Stands in for NULL everywhere. */
extern const stage_registry PLAIN_STAGES;

/* NULL: it has no such kind. */
const stage_row *stage_registry_find(const stage_registry *r, const char *name);
const stage_row *stage_registry_row(const stage_registry *r, const stage_kind *kind);

/* ---- checking, for the `check` of kinds ---------------------------------------------------------------- */

typedef struct stage_site stage_site;

/* The key `field` names an earlier stage of one of these kinds ("ground line"), which this one waits for and
 * reads. name NULL: it is not given. */
int stage_site_reads(stage_site *s, const char *field, const char *name, const char *kinds, shoal_err *err);
/* The same of one whose label alone is looked at; and without waiting for it. */
int stage_site_looks(stage_site *s, const char *field, const char *name, const char *kinds, shoal_err *err);
int stage_site_knows(stage_site *s, const char *field, const char *name, const char *kinds, shoal_err *err);
/* The earlier stage of that name, which was referred to before. */
const struct config_stage *stage_site_stage(const stage_site *s, const char *name);
const char *stage_site_path(const stage_site *s); /* "pipelines[0].stages[1]." */

#endif
