/* conversation.c: see conversation.h. */
#include "inference/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "dialects/response_items.h"
#include "json/json.h"
#include "json/json_put.h"
#include "request/admission.h"
#include "request/gateway_state.h"
#include "trust/key.h"

#define HISTORY_MAX 900 /* messages: chat takes 1024 with the new ones */

/* ---- names and errors ---------------------------------------------------------------------------- */

session_id conversation_id(const gateway_request *rq, const char *kind, const char *name)
{
    const char *owner = rq->config->n_api_keys > 0 ? admission_credential(rq) : NULL;
    return session_id_of(owner ? owner : "", kind, name);
}

int conversation_error(api_error *e, const session_job *j)
{
    switch (j->rc) {
    case SHOAL_ENOMEM: return api_error_nomem(e);
    case SHOAL_ELIMIT:
        return api_error_set(e, 400, "invalid_request_error", "turn_too_long", NULL, "%s", j->err.message);
    case SHOAL_EUNAVAILABLE:
    case SHOAL_ECANCELLED:
        api_error_set(e, 503, "service_unavailable", "sessions_unavailable", NULL, "%s", j->err.message);
        e->retry_after_s = 1;
        return e->status;
    default:
        return api_error_set(e, 500, "server_error", "sessions_failed", NULL, "the conversation: %s",
                             j->err.message);
    }
}

int conversation_is_on(const gateway_request *rq, api_error *e)
{
    if (rq->gateway->session_thread) return 0;
    return api_error_set(
        e, 400, "invalid_request_error", "sessions_off", NULL,
        "conversations are not kept here (sessions.max_mb is 0): send all messages with each "
        "request, and \"store\": false");
}

/* ---- turns --------------------------------------------------------------------------------------- */

int conversation_read_turn(json_t *to, const char *text, size_t n, conversation_marks *m, shoal_err *err)
{
    json_t *turn = NULL;
    int rc = json_parse(&turn, text, n, "a stored turn", err);
    if (rc != 0) return rc;
    const json_t *messages = json_object_get(turn, "messages");
    const char *id = json_string_value(json_object_get(turn, "id"));
    if (!json_is_array(messages))
        rc = err_set(err, SHOAL_EFORMAT, "a stored turn has no messages: delete the session");
    else if (m && m->skip && id && strcmp(id, m->skip) == 0)
        m->skipped = true;
    else if (json_array_extend(to, (json_t *)messages) != 0)
        rc = err_nomem(err);
    if (rc == 0 && m)
        m->pages = json_integer_of(turn, "pages"), m->n_prompt = json_integer_of(turn, "n_prompt");
    json_decref(turn);
    return rc;
}

int conversation_split(conversation *k, const json_t *messages, api_error *e)
{
    size_t i;
    json_t *m;
    bool leading = true;
    k->head = json_array();
    k->added = json_array();
    if (!k->head || !k->added) return api_error_nomem(e);
    json_array_foreach(messages, i, m)
    {
        const char *role = json_string_value(json_object_get(m, "role"));
        leading = leading && role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
        if (json_array_append(leading ? k->head : k->added, m) != 0) return api_error_nomem(e);
    }
    if (json_array_size(k->added) > 0) return 0;
    return api_error_bad(e, "messages", "\"messages\" must have a message that is not the system's");
}

static int conversation_read_all(conversation *k, const session_job *j, shoal_err *err)
{
    const char *at = j->text.data;
    int rc = (k->history = json_array()) ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < j->n_turns; i++) {
        size_t n = strlen(at);
        bool last = i + 1 == j->n_turns;
        conversation_marks m = {.skip = last && *k->resumed ? k->resumed : NULL};
        rc = conversation_read_turn(k->history, at, n, &m, err);
        k->was_kept = m.skipped;
        k->pages = m.pages;
        k->n_past = m.n_prompt;
        at += n + 1;
    }
    return rc;
}

static void conversation_job_free(session_job *j)
{
    session_job_done(j);
    free(j);
}

static void on_loaded(session_job *j)
{
    conversation *k = j->user;
    api_error e;
    if (!k) { /* the client has left */
        conversation_job_free(j);
        return;
    }
    k->job = NULL;
    if (j->rc == 0) j->rc = conversation_read_all(k, j, &j->err);
    while (j->rc == 0 && json_array_size(k->history) > HISTORY_MAX && conversation_shorten(k)) continue;
    int status = j->rc == 0 ? 0 : conversation_error(&e, j);
    if (j->rc == 0 && k->response && k->loads && j->n_turns == 0)
        status = api_error_set(&e, 400, "invalid_request_error", "previous_response_not_found",
                               "previous_response_id", "there is no response %.80s (any more)",
                               k->response->previous);
    conversation_job_free(j);
    k->loaded(k, status ? &e : NULL);
}

static session_job *conversation_job_new(conversation *k, session_job_what what, const session_id *id,
                                         void (*done)(session_job *))
{
    session_job *j = calloc(1, sizeof *j);
    if (j) *j = (session_job){.what = what, .id = *id, .done = done, .user = k};
    return j;
}

void conversation_load(conversation *k)
{
    api_error e;
    k->job = k->loads ? conversation_job_new(k, SESSION_LOAD, &k->id, on_loaded) : NULL;
    if (!k->loads && (k->history = json_array())) {
        k->loaded(k, NULL);
    } else if (!k->job) {
        api_error_nomem(&e);
        k->loaded(k, &e);
    } else {
        session_thread_submit(k->rq->gateway->session_thread, k->job);
    }
}

void conversation_body(const conversation *k, buf *out)
{
    json_t *all = json_array();
    bool ok = all && json_array_extend(all, k->head) == 0 && json_array_extend(all, k->history) == 0 &&
              json_array_extend(all, k->added) == 0 && json_object_set(k->chat, "messages", all) == 0;
    if (!ok || json_put(out, k->chat) != 0) out->failed = true;
    json_object_del(k->chat, "messages");
    json_decref(all);
}

void conversation_lead(const conversation *k, call_context *ctx)
{
    if (!k || !k->loads || ctx->order == ROUTER_BY_TURN) return;
    if (ctx->order != ROUTER_BY_HASH) memcpy(&ctx->key, k->id.bytes, sizeof ctx->key);
    ctx->order = ROUTER_BY_HASH;
    ctx->pages = k->pages;
}

void conversation_computed(conversation *k, const call_place *p)
{
    if (!k) return;
    k->pages = p->pages;
    k->computed = true;
}

static bool is_of_user(const json_t *messages, size_t i)
{
    const char *role = json_string_value(json_object_get(json_array_get(messages, i), "role"));
    return role && strcmp(role, "user") == 0;
}

/* Without a history, "truncation": "auto" drops the older half of what the request itself brought, to a turn.
 */
static bool shorten_added(conversation *k)
{
    size_t n = json_array_size(k->added), gone = n > 2 ? n / 2 : 1;
    while (gone < n && !is_of_user(k->added, gone)) gone++;
    if (gone >= n) return false;
    while (gone-- > 0) json_array_remove(k->added, 0);
    return true;
}

bool conversation_shorten(conversation *k)
{
    size_t n = json_array_size(k->history), gone = (n + 1) / 2;
    if (n == 0 && k->response && k->response->shortens) return shorten_added(k);
    if (n == 0 || !k->shortens) return false;
    for (; gone < n; gone++) {
        if (is_of_user(k->history, gone)) break;
    }
    while (gone-- > 0) json_array_remove(k->history, 0);
    return true;
}

/* ---- keeping ------------------------------------------------------------------------------------- */

static void put_messages(buf *out, const json_t *messages)
{
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_put(out, json_array_get(messages, i));
        buf_putc(out, ',');
    }
}

static void put_turn(const conversation *k, buf *out, const gen_answer *a, const answer_form *f)
{
    buf_printf(out, "{\"id\":\"%s\"", f->id);
    if (k->pages)
        buf_printf(out, ",\"pages\":%lld,\"n_prompt\":%llu", (long long)k->pages,
                   (unsigned long long)a->n_prompt);
    buf_puts(out, ",\"messages\":[");
    if (k->response) put_messages(out, k->history);
    put_messages(out, k->added);
    answer_put_kept(out, f, &a->choices[0], 0);
    buf_putc(out, ']');
    if (k->response) {
        char name[RESPONSE_ID_BYTES];
        buf object = {0};
        response_id(f, name);
        buf_puts(out, ",\"input\":");
        response_items_put(out, k->response, name + strlen("resp_"));
        response_put(&object, f, a);
        json_put_buf(out, "response", &object);
        out->failed |= object.failed;
        buf_wipe(&object);
    }
    buf_putc(out, '}');
}

static void on_kept(session_job *j)
{
    conversation *k = j->user;
    api_error e;
    int status = j->rc == 0 ? 0 : conversation_error(&e, j);
    if (k) k->job = NULL;
    conversation_job_free(j);
    if (k) k->done(k->user, status ? &e : NULL);
}

/* A response holds what went before it, and is shorter by the oldest of that where it would be too long. */
static void put_bounded(conversation *k, buf *out, const gen_answer *a, const answer_form *f)
{
    uint64_t most = k->rq->config->sessions.bytes;
    bool shortens = k->shortens;
    put_turn(k, out, a, f);
    k->shortens = true;
    while (k->response && out->len + SESSION_SEAL_BYTES > most && conversation_shorten(k)) {
        buf_clear(out);
        put_turn(k, out, a, f);
    }
    k->shortens = shortens;
}

/* Half of the last prompt is what whole pages hold of it at least. */
static void conversation_count(const conversation *k, const gen_answer *a)
{
    metrics *m = k->rq->metrics;
    const char *model = k->rq->model;
    uint64_t past = k->n_past ? k->n_past : a->n_prompt;
    bool warm = 2 * a->n_cached >= past;
    if (!k->computed) return;
    if (json_array_size(k->history) == 0) {
        metrics_add(m, METRIC_TURNS, 1, model, "new", NULL);
        return;
    }
    metrics_add(m, METRIC_TURNS, 1, model, warm ? "yes" : "no", NULL);
    metrics_add(m, METRIC_TURN_TOKENS, (double)a->n_cached, model, "pages", NULL);
    metrics_add(m, METRIC_TURN_TOKENS, (double)(a->n_prompt - a->n_cached), model, "prefill", NULL);
}

void conversation_keep(conversation *k, const gen_answer *a, const answer_form *f)
{
    char name[RESPONSE_ID_BYTES];
    api_error e;
    conversation_count(k, a);
    response_id(f, name);
    session_id id = k->response ? conversation_id(k->rq, "response", name) : k->id;
    k->job = conversation_job_new(k, SESSION_APPEND, &id, on_kept);
    if (!k->job) {
        api_error_nomem(&e);
        k->done(k->user, &e);
        return;
    }
    put_bounded(k, &k->job->text, a, f);
    session_thread_submit(k->rq->gateway->session_thread, k->job);
}

void conversation_free(conversation *k)
{
    if (!k) return;
    if (k->job) k->job->user = NULL;
    json_decref(k->chat);
    json_decref(k->head);
    json_decref(k->added);
    json_decref(k->history);
    response_spec_free(k->response);
    free(k);
}
