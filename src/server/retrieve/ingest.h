/* ingest.h: documents on their way into a collection: read and cut in a thread, embedded by a model through
 * the calls seam, and put in one transaction. What `done` says was put is on disk.
 *
 *     {"documents": [{"source": "manual.md", "text": "# Boiler ...", "type": "markdown",
 *                     "metadata": {"room": "cellar"}}]}
 *
 * or one such object alone. type: text, markdown, html or csv; absent, as the source's ending says, else
 * text. Also taken: filename or name for source, content for text, attributes for metadata (OpenAI's words).
 * A document whose bytes and metadata are those that are there is left as it is. A piece that is too long for
 * the model's context makes its document be cut again, into pieces of half the size.
 *
 * Loop thread. */
#ifndef RETRIEVE_INGEST_H
#define RETRIEVE_INGEST_H

#include "calls/calls.h"
#include "retrieve/executor.h"

enum { INGEST_DOCUMENTS_MAX = 1000 };
#define INGEST_FILE "file-" /* in front of an uploaded file's number */

/* X(enum, word) */
#define INGEST_STATUS_TABLE(X)       \
    X(INGEST_ADDED, "added")         \
    X(INGEST_REPLACED, "replaced")   \
    X(INGEST_UNCHANGED, "unchanged") \
    X(INGEST_FAILED, "failed")
typedef enum ingest_status {
#define INGEST_ENUM(e, word) e,
    INGEST_STATUS_TABLE(INGEST_ENUM)
#undef INGEST_ENUM
} ingest_status;
const char *ingest_status_word(ingest_status s);

/* What tells whether a document has changed: of its type, metadata and bytes. steps may be NULL.
 * SHOAL_ENOMEM, SHOAL_ECANCELLED. */
int ingest_digest(plain_type type, const char *metadata, const char *text, size_t n, char ret_hex[65],
                  steps *steps, shoal_err *err);

typedef struct ingest_outcome { /* of one document */
    const char *source;
    ingest_status status;
    int64_t id, file; /* id 0: failed; file 0: it was not uploaded before */
    size_t n_pieces, n_bytes;
    int64_t created;
    const char *metadata; /* JSON */
    const char *error;    /* "" or one sentence */
} ingest_outcome;

typedef struct ingest_result {
    int status;                /* 0, or why nothing was put: SHOAL_E... */
    const char *message;       /* one sentence */
    const call_result *failed; /* a model call that is to blame, or NULL */
    const ingest_outcome *v;
    size_t n;
} ingest_result;

typedef struct ingest ingest;

typedef struct ingest_ask {
    executor *executor;
    calls *calls;
    const call_context *ctx;
    const char *owner; /* executor_job.owner; copied */
    const char *collection;
    const char *body; /* JSON, copied */
    size_t n_body;
    int64_t created; /* the date of its documents */
    void *user;
    void (*done)(void *user, const ingest_result *r); /* once, from the loop; everything dies after it */
} ingest_ask;

/* NULL: out of memory. */
ingest *ingest_start(const ingest_ask *ask);
/* No done comes any more. What is at work ends soon (executor_cancel): documents that are on disk stay. Accepts
 * NULL. */
void ingest_cancel(ingest *in);

#endif
