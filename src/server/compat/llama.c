/* llama.c: completions as llama-server's clients ask for them; see llama.h. What it tells of its model is
 * llama_about.c's. Loop thread. */
#include "compat/llama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages/fields.h"
#include "dialects/llama.h"
#include "dialects/ollama.h"
#include "json/json.h"
#include "request/gateway_state.h"
#include "request/model_resolve.h"
#include "inference/generate.h"
#include "compat/llama_impl.h"

/* ---- completions --------------------------------------------------------------------------------- */

typedef struct llama_job { /* a completion whose prompts are not all ids or texts yet */
    gateway_request *rq;
    llama_ask ask;
    char model[LLAMA_NAME_MAX];
    model_call *call;      /* that turns a text into tokens */
    size_t family, marker; /* of /infill: which is looked for */
    int32_t markers[3];
} llama_job;

static void llama_job_free(llama_job *j)
{
    calls_cancel(j->call);
    llama_ask_done(&j->ask);
    free(j);
}

static void llama_on_gone(void *work)
{
    llama_job_free(work);
}

static void job_fail(llama_job *j, const api_error *e)
{
    gateway_request *rq = j->rq;
    request_watch(rq, NULL, NULL);
    llama_job_free(j);
    request_error(rq, e);
}

static void llama_go_on(llama_job *j);

static bool ended_well(llama_job *j, const call_result *r)
{
    api_error e;
    j->call = NULL;
    if (r->status == 0) return true;
    api_error_from_call(&e, r);
    job_fail(j, &e);
    return false;
}

static void on_tokens(void *user, const call_result *r, const Shoal__V1__TokenizeReply *reply)
{
    llama_job *j = user;
    if (!ended_well(j, r)) return;
    llama_take_tokens(&j->ask, reply->ids, reply->n_ids);
    llama_go_on(j);
}

/* special: with the tokens that go before a text; plain: what spells a token is text. */
static void tokenize(llama_job *j, const char *text, bool special, bool plain, calls_tokenize_done done)
{
    call_context ctx = request_context(j->rq, "endpoint");
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT;
    Shoal__V1__TokenizeRequest q = SHOAL__V1__TOKENIZE_REQUEST__INIT;
    char base[LLAMA_NAME_MAX];
    api_error e;
    in.text = (char *)text;
    q.input = &in;
    q.no_special = !special;
    q.plain = plain;
    llama_base(j->model, base);
    j->call = calls_tokenize(j->rq->calls, base, &q, &ctx, done, j);
    if (j->call) return;
    api_error_nomem(&e);
    job_fail(j, &e);
}

/* Tokenise what is text among ids; then it is a completion as any other. */
static void llama_go_on(llama_job *j)
{
    gateway_request *rq = j->rq;
    gen_spec *spec = NULL;
    const char *text;
    bool first;
    api_error e;
    if (llama_next_text(&j->ask, &text, &first)) {
        tokenize(j, text, first, j->ask.plain, on_tokens);
    } else if (llama_spec(&spec, &j->ask, j->model, &e) != 0) {
        job_fail(j, &e);
    } else {
        request_watch(rq, NULL, NULL);
        llama_job_free(j);
        generate_spec(rq, spec);
    }
}

/* ---- gaps ---------------------------------------------------------------------------------------- */

static void try_marker(llama_job *j);

/* A marker is one token, or the model is of another family. */
static void on_marker(void *user, const call_result *r, const Shoal__V1__TokenizeReply *reply)
{
    llama_job *j = user;
    api_error e;
    if (!ended_well(j, r)) return;
    bool known = reply->n_ids == 1;
    if (known) j->markers[j->marker] = reply->ids[0];
    j->marker = known ? j->marker + 1 : 0;
    j->family += !known;
    if (j->marker < 3 && j->family < LLAMA_FILL_FAMILIES) {
        try_marker(j);
    } else if (j->marker < 3) {
        api_error_set(&e, 501, "invalid_request_error", "no_infill", "model",
                      "%.64s was not made to fill gaps: it has no tokens that mark one", j->model);
        job_fail(j, &e);
    } else if (llama_fill(&j->ask, j->markers) != 0) {
        api_error_nomem(&e);
        job_fail(j, &e);
    } else {
        llama_go_on(j);
    }
}

static void try_marker(llama_job *j)
{
    tokenize(j, LLAMA_FILL[j->family][j->marker], false, false, on_marker);
}

/* ---- the start ----------------------------------------------------------------------------------- */

/* Texts among ids are the tokens of one vocabulary, and a route has several. */
static int choose_llama(llama_job *j, api_error *e)
{
    if (j->ask.model && j->ask.n_texts == 0 && !j->ask.plain) {
        if (strlen(j->ask.model) >= sizeof j->model) return api_error_no_model(e, j->ask.model);
        strcpy(j->model, j->ask.model);
        return 0;
    }
    return llama_choose(j->rq, j->ask.model, "generate", j->model, e);
}

/* A model that a client made of another brings what the request leaves out. `ret`: the body with it, or empty. */
static int fill_variant(const gateway_request *rq, const char *body, size_t n, buf *ret, api_error *e)
{
    const gateway *g = rq->gateway;
    json_t *root = NULL;
    if (!g->variants || json_object_size(g->variants(g)) == 0) return 0; /* the body is read once */
    int rc = fields_parse(&root, body, n, e);
    const json_t *made = rc == 0 ? model_resolve_variant(rq, fields_text(fields_get(root, "model"))) : NULL;
    if (made && (ollama_fill_in_llama(root, made) != 0 || json_put(ret, root) != 0)) rc = api_error_nomem(e);
    json_drop(root);
    return rc;
}

static void llama_start(gateway_request *rq, bool infills, void (*begin)(llama_job *j))
{
    size_t n;
    const char *body = request_body(rq, &n);
    buf filled = {0};
    api_error e = {0};
    llama_job *j = calloc(1, sizeof *j);
    if (!j) {
        api_error_nomem(&e);
        request_error(rq, &e);
        return;
    }
    j->rq = rq;
    request_watch(rq, llama_on_gone, j);
    int rc = fill_variant(rq, body, n, &filled, &e);
    if (rc == 0)
        rc = llama_read(&j->ask, infills, filled.len ? filled.data : body, filled.len ? filled.len : n, &e);
    buf_done(&filled);
    if (rc == 0) rc = choose_llama(j, &e);
    if (rc == 0)
        begin(j);
    else
        job_fail(j, &e);
}

void llama_completion(gateway_request *rq)
{
    llama_start(rq, false, llama_go_on);
}

void llama_infill(gateway_request *rq)
{
    llama_start(rq, true, try_marker);
}
