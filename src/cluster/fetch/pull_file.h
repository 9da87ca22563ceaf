/* pull_file.h: one file, fetched so that it can be resumed and is never half there.
 *
 * Bytes go to PATH.part; PATH.part.json says what they are a part of. A later run asks for the rest (Range):
 * when the digest is known in advance, the part may be of any server, else only with the same address and a
 * strong etag (If-Range). The file takes its name after its size and digest were found right and it is on the
 * disk. Two runs of the same file do not meet: the part is locked. */
#ifndef FETCH_PULL_FILE_H
#define FETCH_PULL_FILE_H

#include "fetch/pull_meter.h"
#include "fetch/pull_text.h"
#include "store/partial.h"

typedef struct pull_target {
    const char *path; /* where it goes; its folder exists */
    const char *name; /* what to call it in messages */
    const char *url;
    pull_auth *auth; /* NULL: none */
    bool has_size;
    uint64_t size;
    const char *sha256, *sha1; /* "" when not known; sha1 is git's of a blob */
    bool force;                /* replace another file of that name */
    bool is_model; /* it must begin as a model's file does, whatever its name; those of .gguf always must */
} pull_target;

typedef struct pull_result {
    content_found found;
    bool was_here;
} pull_result;

/* SHOAL_EDIGEST: what came is not it, and was removed; SHOAL_EFORMAT: it is no model, and was removed;
 * SHOAL_ECANCELLED, SHOAL_EUNAVAILABLE, SHOAL_EIO (a full disk): what came stays for the next run;
 * SHOAL_EINVALID: another file is there; SHOAL_EAUTH, SHOAL_ENOTFOUND. */
int pull_file_get(pull_client *c, const pull_target *t, pull_meter *m, pull_result *ret, shoal_err *err);

/* Bytes of the file or of its part that are here already. */
uint64_t pull_file_here(const char *path);

#endif
