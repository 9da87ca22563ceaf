/* pull_plan.h: which files make up a model, from what a hub's JSON lists. Pure: bytes in, a plan out.
 *
 * Paths are checked (pull_path_ok) before they enter a plan, sizes are bounded, digests are hexadecimal
 * digits. */
#ifndef FETCH_PULL_PLAN_H
#define FETCH_PULL_PLAN_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "fetch/pull_ref.h"

enum { PULL_FILES_MAX = 20000 };
#define PULL_SIZE_MAX (UINT64_C(1) << 42) /* bytes of one file: 4 TB */

typedef struct pull_item {
    const char *path;   /* where it goes, relative */
    const char *source; /* what it is called there: a path of the repository, "sha256:HEX" of a blob, a URL */
    bool has_size;
    uint64_t size;
    const char *sha256; /* hex, "" when not known */
    const char *sha1;   /* git's name of the blob, hex, "" when not known */
} pull_item;

typedef struct pull_plan {
    arena *mem;
    const char *folder; /* under which the items go, for models of several files; NULL for one file */
    pull_item *items;
    size_t n;
    /* Of one GGUF file in Ollama's registry: its template, which goes beside it (MODEL_TEMPLATE_SUFFIX); NULL: it has none. */
    pull_item *beside;
} pull_plan;

/* All files of a Hugging Face repository, added page by page of /api/models/REPO/tree/REV?recursive=1. */
typedef struct pull_list {
    arena *mem;
    pull_item *items;
    size_t n, cap;
} pull_list;
int pull_list_add_hf(pull_list *l, const json_t *page, shoal_err *err);

/* Choose from them what ref asks for: its file (or all parts of it), the one GGUF of a quantisation, or,
 * without ref->file, a whole model: configuration, tokenizer and safetensors. When several would do,
 * SHOAL_EINVALID lists them with their sizes and says what to type; pull_choices gives the whole list. */
int pull_plan_hf(pull_plan *ret, arena *mem, const pull_list *l, const pull_ref *ref, shoal_err *err);
/* The GGUF files to choose from, a line each, as arguments of `shoal pull`. */
void pull_choices(buf *to, const pull_list *l, const pull_ref *ref);

/* A manifest of an OCI registry (image or artifact) or of Ollama's: its layers that are model files.
 * *ret_index is the digest of the manifest to read instead, when this is an index of several; else NULL. */
int pull_plan_oci(pull_plan *ret, arena *mem, const json_t *manifest, const pull_ref *ref,
                  const char **ret_index, shoal_err *err);

/* "4.1 GB" */
void pull_put_size(buf *to, uint64_t bytes);

#endif
