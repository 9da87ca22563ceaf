/* collections_impl.h: what collections*.c and vector_stores.c share: work in a thread whose answer is JSON,
 * and searches. */
#ifndef DOCUMENTS_COLLECTIONS_IMPL_H
#define DOCUMENTS_COLLECTIONS_IMPL_H

#include "messages/fields.h"
#include "request/gateway_state.h"
#include "retrieve/find.h"
#include "retrieve/ingest.h"

typedef struct documents_job documents_job;
struct documents_job {   /* dies with the request, or when its thread is done with it */
    executor_job job;    /* first: the thread takes it by it */
    gateway_request *rq; /* NULL: the client has left */
    arena *mem;          /* of all strings */
    const char *name;    /* the collection's, of the path */
    char owner[REQUEST_OWNER_SIZE];
    const char *source;  /* or another text of the request */
    const char *purpose; /* of files in a list; NULL: any */
    int64_t id, after, limit;
    int64_t most_answer; /* bytes that its answer may have, beside others; 0: any number */
    int64_t most;        /* collections that one owner may have */
    store_collection c;  /* to make */
    int (*fn)(documents_job *a, const executor_tools *t, shoal_err *err); /* in a thread: writes body */
    buf in;                                                               /* bytes that fn reads */
    buf body;                                                             /* what it writes, */
    const char *type;                                                     /* of this type; NULL: JSON */
    void (*after_done)(gateway *g); /* before the answer, of fn that did what it was to do; NULL: nothing */
};

/* The i-th segment of the request's path, from 0 ("v1"), in `mem`. NULL: out of memory. */
const char *collections_segment(const gateway_request *rq, size_t i, arena *mem);
/* An answer that fn will write; its name is the path's third segment if there is one. NULL: rq is answered
 * (out of memory, or no retrieval here). */
documents_job *collections_answer_new(gateway_request *rq,
                                      int (*fn)(documents_job *, const executor_tools *, shoal_err *));
/* The same as the first member of a larger struct, whose rest is zeroed. */
documents_job *collections_answer_new_sized(gateway_request *rq,
                                            int (*fn)(documents_job *, const executor_tools *, shoal_err *),
                                            size_t size);
void collections_answer_free(documents_job *a);
void collections_submit(documents_job *a, executor_queue queue);
/* Answers with the error and frees a. */
void collections_refuse(documents_job *a, const api_error *e);
/* What a failure of the store means to a client. */
void collections_error(api_error *e, int rc, const char *message, const call_result *failed);
/* The id that stands behind a prefix ("file-12"); 0 when it is none. */
int64_t collections_id(const char *text, const char *prefix);

/* A model and a piece size for a collection that is to be made: a->c.model and piece_bytes. model NULL: the
 * only one that embeds; "none": no vectors. 0 or an HTTP status. */
int collections_choose(documents_job *a, const char *model, int64_t piece_bytes, api_error *e);

/* {KEY: NAME, "object": "WHAT.deleted", "deleted": true} */
void collections_put_deleted(buf *out, const char *what, const char *key, const char *name);

/* ?limit= and ?after= of a list, whose `after` is a text: a->limit and a->source. Submits a, or refuses it. */
void collections_submit_list(documents_job *a, int64_t limit_default);

/* "metadata" of a request's object into a->c; {} without. 0 or an HTTP status. */
/* Of the member `key`; absent: {}. 0 or the status of *e. */
int collections_take_object(documents_job *a, const json_t *o, const char *key, api_error *e);
int collections_take_metadata(documents_job *a, const json_t *o, api_error *e);

/* ---- searches (collections_search.c) ---------------------------------------------------------------- */

typedef struct search_job search_job;
struct search_job {
    gateway_request *rq;
    find *find;
    json_t *root; /* the request */
    char *collection;
    const char *text; /* root's */
    int64_t k;
    void (*answer)(search_job *j, const find_result *r); /* answers rq and frees j */
    void *user;
};

/* Parses the body and searches; `keys` name the text and the number of results in it. Answers rq now or
 * later. */
typedef struct search_keys {
    const char *text, *text_too, *k;
    int64_t k_default;
} search_keys;
void collections_start_search(gateway_request *rq, const search_keys *keys,
                              void (*answer)(search_job *, const find_result *));
void collections_search_free(search_job *j);
/* "source":..., and the place: what every result says of its piece, without braces. */
void collections_put_piece(buf *out, const store_piece *p);
void collections_put_collection(buf *out, const store_collection *c);

/* ---- documents (collections_add.c) ------------------------------------------------------------------ */

/* Adds what the body says to the collection that the path names; `put` writes the answer. */
void collections_ingest(gateway_request *rq,
                        void (*put)(buf *out, const ingest_result *r, const char *collection));

/* A file with its content, in a->mem. SHOAL_ELIMIT: a connection with all of it to send would be closed (files.c). */
int collections_get_file(documents_job *a, const executor_tools *t, int64_t id, store_file *ret,
                         const char **ret_content, shoal_err *err);
/* A file as OpenAI says it (files.c). */
void files_put(buf *out, const store_file *f);

#endif
