/* llama_about.c: what llama-server's clients ask besides completions: tokens, templates, properties, slots,
 * health, vectors; see llama.h. Loop thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages/fields.h"
#include "dialects/llama.h"
#include "dialects/ollama.h"
#include "messages/query.h"
#include "json/json.h"
#include "json/json_put.h"
#include "compat/llama.h"
#include "compat/llama_impl.h"
#include "request/admission.h"
#include "ingress/redispatch.h"
#include "request/model_resolve.h"
#include "request/gateway_state.h"
#include "request/routed.h"

enum { TOKENS_MAX = 1 << 20 };

static void llama_about_fail(gateway_request *rq, const api_error *e)
{
    request_error(rq, e);
}

/* ---- whom a request means ------------------------------------------------------------------------ */

void llama_base(const char *model, char ret[LLAMA_NAME_MAX])
{
    snprintf(ret, LLAMA_NAME_MAX, "%.*s", (int)strcspn(model, ":"), model);
}

int llama_choose(gateway_request *rq, const char *given, const char *task, char ret[LLAMA_NAME_MAX],
                 api_error *e)
{
    char base[LLAMA_NAME_MAX];
    const Shoal__V1__ModelInfo *info;
    bool known;
    given = given ? model_resolve_alias(rq, given) : model_resolve_first(rq, task);
    if (!given) {
        int rc = model_resolve(rq, task, &given, &info, e);
        if (rc == 0) snprintf(ret, LLAMA_NAME_MAX, "%s", given);
        return rc;
    }
    if (routed_find(rq, given))
        return api_error_bad(e, "model",
                             "%.64s is a route, whose models have tokens of their own: name a model", given);
    if (strlen(given) >= LLAMA_NAME_MAX) return api_error_no_model(e, given);
    llama_base(given, base);
    calls_info(rq->calls, base, &known);
    if (!known) return api_error_no_model(e, given);
    strcpy(ret, given);
    return admission_may_use(rq, given, e);
}

/* Of a GET, in its query. */
static int choose_by_query(gateway_request *rq, char ret[LLAMA_NAME_MAX], api_error *e)
{
    char *name = NULL;
    int rc = query_value(request_query(rq), "model", &name, e);
    if (rc == 0) rc = llama_choose(rq, name && *name ? name : NULL, "generate", ret, e);
    free(name);
    return rc;
}

/* ---- one call ------------------------------------------------------------------------------------ */

typedef struct about_job {
    gateway_request *rq;
    model_call *call;
    json_t *root; /* the request's body, or NULL */
    char model[LLAMA_NAME_MAX];
    int32_t *ids;
    gen_spec *spec;
} about_job;

static void llama_about_job_free(about_job *j)
{
    calls_cancel(j->call);
    json_drop(j->root);
    openai_spec_free(j->spec);
    free(j->ids);
    free(j);
}

static void llama_about_on_gone(void *work)
{
    llama_about_job_free(work);
}

static about_job *llama_about_job_new(gateway_request *rq)
{
    about_job *j = calloc(1, sizeof *j);
    if (!j) {
        api_error e;
        api_error_nomem(&e);
        llama_about_fail(rq, &e);
        return NULL;
    }
    j->rq = rq;
    request_watch(rq, llama_about_on_gone, j);
    return j;
}

/* Its request is to be answered; j is gone. */
static gateway_request *job_end(about_job *j)
{
    gateway_request *rq = j->rq;
    request_watch(rq, NULL, NULL);
    llama_about_job_free(j);
    return rq;
}

static void job_fail(about_job *j, const api_error *e)
{
    llama_about_fail(job_end(j), e);
}

static int read_body(about_job *j, api_error *e)
{
    size_t n;
    const char *body = request_body(j->rq, &n);
    return fields_parse(&j->root, body, n, e);
}

/* Whom it means. */
static int llama_about_choose(about_job *j, api_error *e)
{
    const char *given = NULL;
    int rc = fields_str(j->root, "model", &given, e);
    return rc == 0 ? llama_choose(j->rq, given && *given ? given : NULL, "generate", j->model, e) : rc;
}

/* True when the call went well; else j is gone. */
static bool went_well(about_job *j, const call_result *r)
{
    api_error e;
    j->call = NULL;
    request_note_result(j->rq, r);
    if (r->status == 0) return true;
    api_error_from_call(&e, r);
    job_fail(j, &e);
    return false;
}

/* The call has begun, or there was no memory for it. */
static void await(about_job *j)
{
    api_error e;
    if (j->call) return;
    api_error_nomem(&e);
    job_fail(j, &e);
}

static void llama_about_reply(about_job *j, buf *out)
{
    request_json(job_end(j), 200, out);
    buf_done(out);
}

/* ---- tokens -------------------------------------------------------------------------------------- */

static void on_tokens(void *user, const call_result *r, const Shoal__V1__TokenizeReply *m)
{
    about_job *j = user;
    buf out = {0};
    if (!went_well(j, r)) return;
    llama_put_tokens(&out, m);
    llama_about_reply(j, &out);
}

static int read_tokenize(about_job *j, Shoal__V1__TokenizeRequest *q, Shoal__V1__TextInput *in, api_error *e)
{
    bool special = false, parse = true, pieces = false;
    const char *text = NULL;
    int rc = read_body(j, e);
    if (rc == 0) rc = fields_str(j->root, "content", &text, e);
    if (rc == 0 && !text)
        rc = api_error_bad(e, "content", "\"content\" is missing: the text to be tokenised");
    if (rc == 0) rc = fields_bool(j->root, "add_special", &special, e);
    if (rc == 0) rc = fields_bool(j->root, "parse_special", &parse, e);
    if (rc == 0) rc = fields_bool(j->root, "with_pieces", &pieces, e);
    in->text = (char *)(text ? text : "");
    q->input = in;
    q->no_special = !special;
    q->plain = !parse;
    q->pieces = pieces;
    return rc == 0 ? llama_about_choose(j, e) : rc;
}

void llama_tokenize(gateway_request *rq)
{
    about_job *j = llama_about_job_new(rq);
    Shoal__V1__TokenizeRequest q = SHOAL__V1__TOKENIZE_REQUEST__INIT;
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT;
    char base[LLAMA_NAME_MAX];
    api_error e = {0};
    if (!j) return;
    if (read_tokenize(j, &q, &in, &e) != 0) {
        job_fail(j, &e);
        return;
    }
    call_context ctx = request_context(rq, "endpoint");
    llama_base(j->model, base);
    j->call = calls_tokenize(rq->calls, base, &q, &ctx, on_tokens, j);
    await(j);
}

static int read_ids(about_job *j, size_t *ret_n, api_error *e)
{
    int rc = read_body(j, e);
    if (rc != 0) return rc;
    const json_t *tokens = fields_get(j->root, "tokens");
    size_t n = json_array_size(tokens);
    if (!json_is_array(tokens) || n > TOKENS_MAX)
        return api_error_bad(e, "tokens", "\"tokens\" must be an array of at most %d token ids", TOKENS_MAX);
    j->ids = calloc(n + 1, sizeof *j->ids);
    if (!j->ids) return api_error_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(tokens, i);
        json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id > INT32_MAX)
            return api_error_bad(e, "tokens", "tokens[%zu] is no token id", i);
        j->ids[i] = (int32_t)id;
    }
    *ret_n = n;
    return llama_about_choose(j, e);
}

static void on_text(void *user, const call_result *r, const Shoal__V1__DetokenizeReply *m)
{
    about_job *j = user;
    buf out = {0};
    if (!went_well(j, r)) return;
    buf_puts(&out, "{\"content\":");
    json_put_string(&out, m->text.len ? (const char *)m->text.data : "", m->text.len);
    buf_putc(&out, '}');
    llama_about_reply(j, &out);
}

void llama_detokenize(gateway_request *rq)
{
    about_job *j = llama_about_job_new(rq);
    Shoal__V1__DetokenizeRequest q = SHOAL__V1__DETOKENIZE_REQUEST__INIT;
    char base[LLAMA_NAME_MAX];
    api_error e = {0};
    if (!j) return;
    if (read_ids(j, &q.n_ids, &e) != 0) {
        job_fail(j, &e);
        return;
    }
    call_context ctx = request_context(rq, "endpoint");
    llama_base(j->model, base);
    q.ids = j->ids;
    j->call = calls_detokenize(rq->calls, base, &q, &ctx, on_text, j);
    await(j);
}

/* ---- templates ----------------------------------------------------------------------------------- */

static void on_rendered(void *user, const call_result *r, const Shoal__V1__RenderReply *m)
{
    about_job *j = user;
    buf out = {0};
    if (!went_well(j, r)) return;
    buf_puts(&out, "{\"prompt\":");
    json_put_string(&out, m->text.len ? (const char *)m->text.data : "", m->text.len);
    buf_putc(&out, '}');
    llama_about_reply(j, &out);
}

/* What a model that a client made of another adds to the chat. */
static int about_fill_variant(about_job *j, api_error *e)
{
    const json_t *made = j->rq->variant;
    if (!made) return 0;
    return ollama_fill_in(j->root, made) == 0 ? ollama_fill_template(NULL, j->root, made, e)
                                              : api_error_nomem(e);
}

/* Checked as a chat request's messages are. */
static int read_messages(about_job *j, api_error *e)
{
    buf text = {0};
    json_ahead parsed = {0};
    int rc = read_body(j, e);
    if (rc == 0) rc = llama_about_choose(j, e);
    if (rc == 0) rc = about_fill_variant(j, e);
    if (rc == 0 &&
        (json_object_set_new(j->root, "model", json_string(j->model)) != 0 || json_put(&text, j->root) != 0))
        rc = api_error_nomem(e);
    if (rc == 0) json_ahead_from(&parsed, &text, j->root);
    json_ahead_offer(&parsed);
    if (rc == 0) rc = openai_spec_parse_chat(&j->spec, text.data, text.len, e);
    json_ahead_offer(NULL);
    json_ahead_done(&parsed);
    buf_done(&text);
    return rc;
}

void llama_template(gateway_request *rq)
{
    about_job *j = llama_about_job_new(rq);
    Shoal__V1__RenderRequest q = SHOAL__V1__RENDER_REQUEST__INIT;
    char base[LLAMA_NAME_MAX];
    api_error e = {0};
    if (!j) return;
    if (read_messages(j, &e) != 0) {
        job_fail(j, &e);
        return;
    }
    call_context ctx = request_context(rq, "endpoint");
    llama_base(j->model, base);
    q.messages_json = (char *)j->spec->messages_json;
    if (j->spec->tools_json) q.tools_json = (char *)j->spec->tools_json;
    if (j->spec->chat_template) q.chat_template = (char *)j->spec->chat_template;
    if (j->spec->template_kwargs_json) q.template_kwargs_json = (char *)j->spec->template_kwargs_json;
    j->call = calls_render(rq->calls, base, &q, &ctx, on_rendered, j);
    await(j);
}

/* ---- slots --------------------------------------------------------------------------------------- */

/* What a replica works on at once, and how much of that it does now. */
static size_t count_slots(const replica *r, size_t *ret_busy)
{
    if (r->state != REPLICA_READY || r->standby || !r->info || r->info->n_parallel == 0) return 0;
    size_t busy = r->load.n_in_flight, told = r->stats ? r->stats->n_running : 0;
    busy = told > busy ? told : busy;
    *ret_busy = busy < r->info->n_parallel ? busy : r->info->n_parallel;
    return r->info->n_parallel;
}

/* Whose replicas work for it: of an ensemble those of the member that its description is of. */
static const replica_set *find_replicas(const gateway_request *rq, const char *model)
{
    char base[LLAMA_NAME_MAX];
    llama_base(model, base);
    const Shoal__V1__ModelInfo *info = calls_info(rq->calls, base, NULL);
    return registry_find(rq->registry, info ? info->name : base);
}

typedef struct slot_counts {
    size_t n, busy;
} slot_counts;

static slot_counts count_all(const gateway_request *rq, const char *model)
{
    const replica_set *set = find_replicas(rq, model);
    slot_counts all = {0};
    for (size_t i = 0; set && i < set->n; i++) {
        size_t busy = 0;
        all.n += count_slots(set->replicas[i], &busy);
        all.busy += busy;
    }
    return all;
}

static void put_slot(buf *out, size_t id, const replica *r, bool busy)
{
    buf_printf(out, "%s{\"id\":%zu,\"id_task\":-1,\"n_ctx\":%u,\"speculative\":false,\"is_processing\":%s",
               id ? "," : "", id, r->info->n_ctx, busy ? "true" : "false");
    json_put_text(out, "replica", r->id);
    buf_putc(out, '}');
}

static void put_slots(buf *out, const gateway_request *rq, const char *model)
{
    const replica_set *set = find_replicas(rq, model);
    size_t id = 0;
    buf_putc(out, '[');
    for (size_t i = 0; set && i < set->n; i++) {
        size_t busy = 0, n = count_slots(set->replicas[i], &busy);
        for (size_t k = 0; k < n; k++) put_slot(out, id++, set->replicas[i], k < busy);
    }
    buf_putc(out, ']');
}

void llama_slots(gateway_request *rq)
{
    char model[LLAMA_NAME_MAX];
    char *strict = NULL;
    api_error e = {0};
    buf out = {0};
    int rc = choose_by_query(rq, model, &e);
    if (rc == 0) rc = query_value(request_query(rq), "fail_on_no_slot", &strict, &e);
    if (rc != 0) {
        llama_about_fail(rq, &e);
        return;
    }
    slot_counts all = count_all(rq, model);
    bool full = strict && *strict && strcmp(strict, "0") != 0 && all.busy >= all.n;
    free(strict);
    put_slots(&out, rq, model);
    if (full) {
        api_error_set(&e, 503, "service_unavailable", "overloaded", NULL, "no slot is free");
        llama_about_fail(rq, &e);
    } else {
        request_json(rq, 200, &out);
    }
    buf_done(&out);
}

/* ---- properties ---------------------------------------------------------------------------------- */

static void on_described(void *user, const call_result *r, const Shoal__V1__ModelInfo *m)
{
    about_job *j = user;
    buf out = {0};
    if (!went_well(j, r)) return;
    buf_printf(&out,
               "{\"default_generation_settings\":{\"id\":0,\"id_task\":-1,\"n_ctx\":%u,\"speculative\":false,"
               "\"is_processing\":false,\"params\":",
               m->n_ctx);
    llama_put_defaults(&out, m);
    buf_printf(&out, "},\"total_slots\":%zu", count_all(j->rq, j->model).n);
    json_put_text(&out, "model_alias", request_shown_model(j->rq, j->model));
    json_put_text(&out, "model_path", m->name);
    json_put_text(&out, "chat_template", m->chat_template);
    json_put_text(&out, "bos_token", m->bos_token);
    json_put_text(&out, "eos_token", m->eos_token);
    buf_puts(&out, ",\"modalities\":{\"vision\":false,\"audio\":false},\"build_info\":\"shoal-" SHOAL_VERSION
                   "\",\"is_sleeping\":false}");
    llama_about_reply(j, &out);
}

void llama_props(gateway_request *rq)
{
    about_job *j = llama_about_job_new(rq);
    Shoal__V1__DescribeRequest q = SHOAL__V1__DESCRIBE_REQUEST__INIT;
    char base[LLAMA_NAME_MAX];
    api_error e = {0};
    if (!j) return;
    if (choose_by_query(rq, j->model, &e) != 0) {
        job_fail(j, &e);
        return;
    }
    call_context ctx = request_context(rq, "endpoint");
    llama_base(j->model, base);
    q.texts = true;
    j->call = calls_describe(rq->calls, base, &q, &ctx, on_described, j);
    await(j);
}

/* ---- health -------------------------------------------------------------------------------------- */

void llama_health(gateway_request *rq)
{
    static const char OK[] = "{\"status\":\"ok\"}";
    if (registry_all_ready(rq->registry) && !rq->gateway->withdrawn) {
        request_json(rq, 200, &(buf){.data = (char *)OK, .len = sizeof OK - 1});
        return;
    }
    api_error e;
    api_error_set(&e, 503, "service_unavailable", "not_ready", NULL,
                  rq->gateway->withdrawn ? "the server is shutting down" : "Loading model");
    llama_about_fail(rq, &e);
}

/* ---- vectors ------------------------------------------------------------------------------------- */

typedef struct vector_job {
    redispatch redispatch; /* first */
} vector_job;

static void vector_free(redispatch *a)
{
    free(a);
}

static void on_vectors(redispatch *a, const redispatch_reply *r)
{
    const json_t *data = json_object_get(r->json, "data");
    buf out = {0};
    json_t *o;
    size_t i;
    if (r->status >= 400 || !json_is_array(data)) {
        redispatch_fail(a, r);
        return;
    }
    buf_putc(&out, '[');
    json_array_foreach(data, i, o)
    {
        buf_printf(&out, "%s{\"index\":%zu,\"embedding\":[", i ? "," : "", i);
        json_put_digits(&out, json_object_get(o, "embedding"), 9);
        buf_puts(&out, "]}");
    }
    buf_putc(&out, ']');
    request_json(redispatch_take(a), 200, &out);
    buf_done(&out);
}

static void on_stream_end(redispatch *a)
{
    redispatch_bad_answer(a, SHOAL_EPROTOCOL); /* none is asked for */
}

static void on_stream_event(redispatch *a, const event *e) {}

static const redispatch_ops VECTORS = {
    .reply = on_vectors, .event = on_stream_event, .end = on_stream_end, .free = vector_free};

/* {"content": text or texts}, or "input". */
static int read_vectors(gateway_request *rq, buf *ret, api_error *e)
{
    size_t n;
    const char *body = request_body(rq, &n), *given = NULL;
    char model[LLAMA_NAME_MAX];
    json_t *root = NULL;
    int64_t norm = 2;
    int rc = fields_parse(&root, body, n, e);
    if (rc == 0) rc = fields_str(root, "model", &given, e);
    if (rc == 0) rc = fields_int(root, "embd_normalize", INT64_MIN, INT64_MAX, &norm, e);
    if (rc == 0 && norm != 2)
        rc = api_error_bad(e, "embd_normalize", "\"embd_normalize\" is 2 here: vectors have the length 1");
    const json_t *input =
        fields_get(root, "content") ? fields_get(root, "content") : fields_get(root, "input");
    if (rc == 0 && !input) rc = api_error_bad(e, "content", "\"content\" is missing: the text or texts");
    if (rc == 0) rc = llama_choose(rq, given && *given ? given : NULL, "embed", model, e);
    if (rc == 0) {
        json_t *ours = json_pack("{s:s,s:O}", "model", model, "input", input);
        if (!ours || json_put(ret, ours) != 0) rc = api_error_nomem(e);
        json_decref(ours);
    }
    json_drop(root);
    return rc;
}

void llama_embedding(gateway_request *rq)
{
    api_error e = {0};
    buf body = {0};
    vector_job *j = calloc(1, sizeof *j);
    int rc = j ? read_vectors(rq, &body, &e) : api_error_nomem(&e);
    if (rc != 0) {
        free(j);
        buf_done(&body);
        llama_about_fail(rq, &e);
        return;
    }
    redispatch_init(&j->redispatch, rq, &VECTORS);
    j->redispatch.body = body;
    redispatch_ask(&j->redispatch, "POST", "/v1/embeddings");
}
