/* encode_parse.h: requests of the encoder endpoints as checked structs. Pure. */
#ifndef MESSAGES_ENCODE_PARSE_H
#define MESSAGES_ENCODE_PARSE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "messages/api_error.h"
#include "shoal/v1/worker.pb-c.h"
#include "tasks/task.h"

#define ENCODE_INPUTS_MAX    256
#define ENCODE_EMBED_MAX     2048 /* as OpenAI: clients send their texts in such batches */
#define ENCODE_DOCUMENTS_MAX 1000 /* of one rerank request */
#define ENCODE_GUESSES_MAX   100  /* words for one gap */

typedef struct encode_spec {
    task_endpoint_id kind;                      /* one of the encoders' */
    json_t *root;                               /* owned; all strings belong to it */
    const char *model;                          /* NULL: the only one with the task */
    Shoal__V1__TextInput *inputs, **input_list; /* owned; the list as protobuf-c wants it */
    int32_t *ids;                               /* owned; those of all inputs that are token ids, n_ids */
    size_t n_ids;
    size_t n_inputs; /* answers that the worker owes */
    buf bytes;       /* owned; score: the CSV; image: the file */
    bool base64;     /* embeddings as little-endian float32 in base64 */
    /* Of an embedding's texts; 0: longer ones fail; UINT32_MAX: the model's limit. */
    uint32_t truncate_tokens;
    int64_t dimensions; /* of an embedding that are wanted; 0: all */
    int64_t top_k;      /* labels (rerank: documents) in the answer, 0: all; fill-mask: words, 0: five */
    bool documents;     /* rerank: the answer holds the documents, too */
    bool by_vectors;    /* rerank: an embedder answers, by the cosine of query and document */
    /* moderate; borrowed: labels that flag nothing, and the score from which on the others do */
    const char *const *safe;
    size_t n_safe;
    double min_score;
} encode_spec;

/* 0 and *ret (encode_spec_done), or an HTTP status with *e filled and *ret untouched. */
int encode_spec_parse(encode_spec *ret, task_endpoint_id kind, const char *body, size_t len, api_error *e);
void encode_spec_done(encode_spec *s); /* accepts a zeroed one */
/* The cache key for the model of that identity; false when memory ran out: not to be cached. */
bool encode_spec_key(const encode_spec *s, const char *identity, const char *adapter_digest,
                     sha256_digest *ret);

#endif
