/* llama_about.c: what llama-server's clients ask of a server: properties, slots, health, vectors; see llama.h.
 * Loop thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages/fields.h"
#include "dialects/llama.h"
#include "json/json.h"
#include "json/json_put.h"
#include "messages/query.h"
#include "compat/llama.h"
#include "compat/llama_impl.h"
#include "ingress/redispatch.h"
#include "request/gateway_state.h"

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
    int rc = llama_choose_by_query(rq, model, &e);
    if (rc == 0) rc = query_value(request_query(rq), "fail_on_no_slot", &strict, &e);
    if (rc != 0) {
        request_error(rq, &e);
        return;
    }
    slot_counts all = count_all(rq, model);
    bool full = strict && *strict && strcmp(strict, "0") != 0 && all.busy >= all.n;
    free(strict);
    put_slots(&out, rq, model);
    if (full) {
        api_error_set(&e, 503, "service_unavailable", "overloaded", NULL, "no slot is free");
        request_error(rq, &e);
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
    if (!about_job_went_well(j, r)) return;
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
    about_job_reply(j, &out);
}

void llama_props(gateway_request *rq)
{
    about_job *j = about_job_new(rq);
    Shoal__V1__DescribeRequest q = SHOAL__V1__DESCRIBE_REQUEST__INIT;
    char base[LLAMA_NAME_MAX];
    api_error e = {0};
    if (!j) return;
    if (llama_choose_by_query(rq, j->model, &e) != 0) {
        about_job_fail(j, &e);
        return;
    }
    call_context ctx = request_context(rq, "endpoint");
    llama_base(j->model, base);
    q.texts = true;
    j->call = calls_describe(rq->calls, base, &q, &ctx, on_described, j);
    about_job_await(j);
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
    request_error(rq, &e);
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
        request_error(rq, &e);
        return;
    }
    redispatch_init(&j->redispatch, rq, &VECTORS);
    j->redispatch.body = body;
    redispatch_ask(&j->redispatch, "POST", "/v1/embeddings");
}
