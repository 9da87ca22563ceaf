/* llama_impl.h: what the files of llama-server's endpoints share: whom a request means, and one call of a
 * worker for it. */
#ifndef COMPAT_LLAMA_IMPL_H
#define COMPAT_LLAMA_IMPL_H

#include <jansson.h>

#include "dialects/openai.h"
#include "dialects/tokens.h"
#include "request/request.h"

enum { LLAMA_NAME_MAX = 128 };

/* The model that is asked for, which is there and is no route; of `given` NULL the only one with this task.
 */
int llama_choose(gateway_request *rq, const char *given, const char *task, char ret[LLAMA_NAME_MAX],
                 api_error *e);
/* The same, of `given` NULL the only tokenizer of models that generate: ids of another model's mean something else. */
int llama_choose_tokenizer(gateway_request *rq, const char *given, char ret[LLAMA_NAME_MAX], api_error *e);
/* Its name without an adapter. */
void llama_base(const char *model, char ret[LLAMA_NAME_MAX]);
/* Of a GET, in its query. */
int llama_choose_by_query(gateway_request *rq, char ret[LLAMA_NAME_MAX], api_error *e);

/* A request that is answered when one call of a worker has ended. It dies with its request. */
typedef struct about_job {
    gateway_request *rq;
    model_call *call;
    json_t *root; /* the request's body, or NULL */
    char model[LLAMA_NAME_MAX];
    tokens_ask tokens; /* of /tokenize */
    int32_t *ids;
    gen_spec *spec;
} about_job;

about_job *about_job_new(gateway_request *rq); /* NULL: the request was answered, there is no memory */
void about_job_fail(about_job *j, const api_error *e); /* answers; j is gone */
void about_job_reply(about_job *j, buf *out);          /* 200; j is gone, and so is what out holds */
int about_job_read(about_job *j, api_error *e);        /* the body into j->root */
int about_job_choose(about_job *j,
                     api_error *e); /* the model that the body names, or the first that generates */
/* In a call's end: true when it went well; else j is gone. */
bool about_job_went_well(about_job *j, const call_result *r);
/* Behind the start of j->call: NULL is answered as want of memory, and j is gone. */
void about_job_await(about_job *j);

#endif
