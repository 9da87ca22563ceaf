/* ingest_impl.h: what ingest*.c share: the documents of one request. */
#ifndef RETRIEVE_INGEST_IMPL_H
#define RETRIEVE_INGEST_IMPL_H

#include <jansson.h>

#include "retrieve/ingest.h"

typedef struct ingest_document {
    const char *source, *text; /* the request's */
    size_t n_text;
    int64_t file; /* uploaded before, which has source and text; 0: none */
    plain_type type;
    char *metadata; /* owned, as are plain, cut, scales and codes */
    char digest[65];
    plain plain;
    pieces cut;
    size_t piece_bytes;
    bool too_long; /* a piece was: cut again */
    float *scales;
    int8_t *codes;
    size_t n_asked, n_embedded; /* pieces */
    ingest_outcome outcome;
    char error[256];
} ingest_document;

struct ingest {
    executor_job job;
    executor *executor;
    calls *calls;
    call_context ctx; /* strings of `mem` */
    arena *mem;
    buf body;
    json_t *root;
    char *collection_name;
    int64_t created;    /* the date of its documents */
    store_collection c; /* strings of `mem` */
    ingest_document *v;
    size_t n;
    char model_digest[CALL_DIGEST_BYTES];
    uint32_t dims;
    struct ingest_batch *batches; /* calls that run */
    size_t n_running;
    bool gone; /* cancelled while a job runs */
    bool working;
    executor_turn turn; /* for a place to embed */
    const char *owner;  /* of `mem` */
    void *user;
    void (*done)(void *user, const ingest_result *r);
};

/* In a thread: parse the body, look the collection up, read and cut what is new. */
int ingest_read(executor_job *j, const executor_tools *t, shoal_err *err);
/* In a thread: cut again what was too long. */
int ingest_recut(executor_job *j, const executor_tools *t, shoal_err *err);
/* In a thread: put all that was embedded. */
int ingest_write(executor_job *j, const executor_tools *t, shoal_err *err);
/* The document does not come in; the others do. */
void ingest_fail_document(ingest_document *d, const char *why);
void ingest_documents_done(ingest *in);
/* Is there something of d to be put? */
bool ingest_is_new(const ingest_document *d);

#endif
