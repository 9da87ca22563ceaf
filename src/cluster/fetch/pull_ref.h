/* pull_ref.h: what a person types after `shoal pull`, and which names from servers may become files.
 *
 *     hf:ORG/NAME[@REVISION][:FILE]      a Hugging Face repository; FILE may be a quantisation, as Q4_K_M
 *     ollama:[HOST/][USER/]NAME[:TAG]    Ollama's registry (an OCI registry of GGUF layers)
 *     oci://HOST[:PORT]/REPOSITORY[:TAG | @sha256:HEX]
 *     https://HOST/PATH/FILE             one file; http is taken from this machine alone
 *
 * A web page's address of huggingface.co is read as hf:. Pure: no network, no files. */
#ifndef FETCH_PULL_REF_H
#define FETCH_PULL_REF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

typedef enum pull_kind { PULL_HF, PULL_OLLAMA, PULL_OCI, PULL_URL } pull_kind;

typedef struct pull_ref { /* texts live in the arena; absent ones are NULL */
    pull_kind kind;
    const char *host;   /* "registry:5000" of OCI and Ollama (NULL: the usual one) */
    const char *repo;   /* "ORG/NAME" */
    const char *name;   /* the last part of repo, or of the URL: what the model may be called */
    const char *tag;    /* tag, or revision */
    const char *digest; /* "sha256:HEX" of a manifest */
    const char *file;   /* of a repository */
    const char *url;    /* of PULL_URL */
} pull_ref;

/* SHOAL_EINVALID says what to type instead. */
int pull_ref_parse(pull_ref *ret, arena *mem, const char *text, shoal_err *err);

/* May `path`, from a server, be written under a folder of ours? Relative, at most four plain parts, none of
 * which begins with a dot, no control characters or backslashes, UTF-8, and no name that we use ourselves. */
bool pull_path_ok(const char *path);

/* "q4_k_m" of "model-Q4_K_M.gguf": is `word` one of a file name's parts between - . and _ (letters of either
 * case)? */
bool pull_has_word(const char *path, const char *word);

#endif
