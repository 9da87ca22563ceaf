/* model_kind.h: what a file or folder with a model is: one row for each kind.
 *
 * Everything that asks what a model is asks here: the loader, the library, run and inspect, pulls from hubs, and
 * transfers between machines. Recognition reads names, a file's first bytes and a folder's config.json, never
 * weights: no engine is needed for it.
 *
 *     const model_kind *k = model_kind_of("models/llama");
 *     k == &model_kind_hf
 *     model_kind_file(k, "pytorch_model.bin") is MODEL_FILE_FOREIGN: it does not travel
 *
 * Rows are read-only: any thread. */
#ifndef KINDS_MODEL_KIND_H
#define KINDS_MODEL_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What recognisers see: a file or folder of this machine, or a repository that a hub lists. */
typedef struct model_view {
    const char *path;    /* NULL: known by its names or first bytes alone */
    const char *name;    /* its last part; "": none */
    bool is_folder;      /* or a repository */
    const uint8_t *head; /* [n_head]: the file's first bytes */
    size_t n_head;
    const char *const *names; /* [n_names]: of a repository's files, with their folders */
    size_t n_names;
} model_view;

/* What a file in a model's folder is to the model. */
typedef enum model_file_role {
    MODEL_FILE_WEIGHTS,
    MODEL_FILE_SIDE,    /* a small file that the model may need: a pull takes it */
    MODEL_FILE_OTHER,   /* a pull leaves it; it travels with the folder */
    MODEL_FILE_FOREIGN, /* weights in another program's form: they do not travel */
} model_file_role;

typedef struct model_kind {
    const char *name; /* for logs and tests */
    bool (*recognise)(const model_view *v);
    /* The task, as model.h names tasks, as far as names and config.json tell it; NULL: they do not. */
    const char *(*describe)(const model_view *v);
    /* Of a kind that is a folder: `name` is relative to it. NULL: the kind is one file. */
    model_file_role (*file)(const char *name);
    const char *device; /* kind of device that its worker computes on, such as "cuda"; NULL: CPU cores */
} model_kind;

extern const model_kind model_kind_gguf, model_kind_bare, model_kind_trees, model_kind_llama2c,
    model_kind_ct2, model_kind_hf;

/* Behind the name of a model's file: a chat template of Ollama's for it, where it brings none (gotemplate.h). A pull puts
 * it there. */
#define MODEL_TEMPLATE_SUFFIX ".template"

/* What no row recognises counts as GGUF (a file) or a Hugging Face folder: their loaders say what is wrong with
 * it. So does what is not there. */
const model_kind *model_kind_of(const char *path);
/* The same of the files that a hub lists; NULL: they are no model. */
const model_kind *model_kind_listed(const char *const *names, size_t n);
/* Of a file by its name alone, which need not exist; NULL: the name does not tell. */
const model_kind *model_kind_named(const char *name);
/* Do a file's first bytes begin a model, whatever its name? 64 bytes are enough. */
bool model_kind_begins(const uint8_t *head, size_t n);

/* Is it what `shoal pull` takes: "hf:ORG/NAME", "ollama:NAME", "oci://...", "https://..."? */
bool model_is_reference(const char *s);

/* As the member `describe`. */
const char *model_kind_task(const char *path);
/* As the member `file`; of a kind that is one file: MODEL_FILE_OTHER. */
model_file_role model_kind_file(const model_kind *k, const char *name);
/* The bytes of a model on this machine, and when they were last written, since 1970: its file, or the files directly in its
 * folder but foreign weights. Zeros: it cannot be read. */
typedef struct model_kind_size {
    uint64_t bytes;
    int64_t time_s;
} model_kind_size;
model_kind_size model_kind_measure(const char *path);

/* What a replica counts for keys and values where kv_mb does not say it, for those who know nothing of the model but its
 * file: the least ceiling that a worker sets by itself. It sets a higher one as far as half of the memory that is left
 * allows (kv_default_bytes of net), so this is what has to fit. */
#define MODEL_KV_LEAST_BYTES ((uint64_t)64 << 20)

/* For rows. */
bool model_view_has(const model_view *v, const char *file); /* directly in the folder or repository */
bool model_view_begins(const model_view *v, const char *bytes, size_t n);
bool model_name_ends(const char *name, const char *end); /* letters of either case */

#endif
