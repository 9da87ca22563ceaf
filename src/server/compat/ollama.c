/* ollama.c: requests of Ollama's clients, asked again in our own form. */
#include "compat/ollama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat/ollama_variants.h"
#include "dialects/ollama.h"
#include "request/admission.h"
#include "ingress/redispatch.h"
#include "request/model_resolve.h"
#include "request/gateway_state.h"
#include "gateway/model_manager.h"
#include "request/routed.h"

typedef struct ollama_job ollama_job;

/* What becomes of our whole answer. */
typedef int (*ollama_form)(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t);

struct ollama_job {
    redispatch redispatch; /* first */
    ollama_ask ask;
    ollama_form form; /* of answers that come whole; NULL: it is a stream */
    buf out;
    ollama_run run;
    const env *time;
    uint64_t start_ns, first_ns;        /* first: of its reply; 0: none came yet */
    char error[512];                    /* that a stream ended with */
    const model_manager *model_manager; /* NULL: nobody loads models here */
    json_t *ours;                       /* what is asked once the model is there */
    model_manager_ticket *ticket;       /* for it */
    char served[136];                   /* what the model is called here; "": as the client calls it */
    json_t *made;                       /* of a variant: what it fills in, owned; NULL: it is none */
};

static void ollama_job_free(redispatch *a)
{
    ollama_job *j = (ollama_job *)a;
    if (j->ticket) j->model_manager->leave(j->ticket);
    json_decref(j->ours);
    json_decref(j->made);
    buf_done(&j->out);
    ollama_run_done(&j->run);
    free(j);
}

static ollama_times times_of(const ollama_job *j)
{
    uint64_t now = env_now_ns(j->time), first = j->first_ns ? j->first_ns : now;
    return (ollama_times){.unix_us = env_wall_ns(j->time) / 1000,
                          .total_ns = now - j->start_ns,
                          .prompt_ns = first - j->start_ns,
                          .reply_ns = now - first};
}

static void ollama_fail(ollama_job *j, const api_error *e)
{
    request_error(redispatch_take(&j->redispatch), e);
    redispatch_drop(&j->redispatch);
}

static const char *model_of(const ollama_job *j)
{
    return *j->served ? j->served : j->ask.model;
}

/* Whoever may use a model may let it come; how long it stays for all is an admin's affair. */
static bool may_administer(const gateway_request *rq)
{
    return !rq->key || rq->key->rule->admin;
}

/* How long it stays from now on. What the configuration names stays whatever is asked. */
static void keep_alive(const ollama_job *j)
{
    const model_manager *k = j->model_manager;
    model_manager_fact f;
    model_manager_watch nobody = {0};
    api_error e;
    int64_t s = j->ask.keep_alive_s;
    if (!k || s == OLLAMA_NOT_SAID || !may_administer(j->redispatch.rq) ||
        !k->about(k->user, model_of(j), &f) || f.configured)
        return;
    if (s == 0)
        k->leave(k->unload(k->user, model_of(j), 0, &nobody, &e));
    else
        k->stay(k->user, model_of(j), s == OLLAMA_FOR_GOOD ? LOAD_REQUEST_STAYS : (uint64_t)s);
}

/* ---- our answer ---------------------------------------------------------------------------------- */

static void ask_body(ollama_job *j, const char *path);

static bool is_too_long(const redispatch_reply *r)
{
    const char *code = json_string_value(json_object_get(json_object_get(r->json, "error"), "code"));
    return r->status == 400 && code && strcmp(code, "context_length_exceeded") == 0;
}

static void ollama_on_reply(redispatch *a, const redispatch_reply *r)
{
    ollama_job *j = (ollama_job *)a;
    if (j->ask.truncates && is_too_long(r) && ollama_shorten(j->ours)) {
        ask_body(j, j->ask.path);
        return;
    }
    if (r->status >= 400 || !r->json) {
        redispatch_fail(a, r);
        return;
    }
    ollama_times t = times_of(j);
    keep_alive(j);
    int rc = j->form ? j->form(&j->out, j, r->json, &t) : SHOAL_EPROTOCOL;
    if (rc == 0)
        request_json(redispatch_take(a), 200, &j->out);
    else
        redispatch_bad_answer(a, rc);
}

static void on_begin(redispatch *a)
{
    if (((ollama_job *)a)->ask.stream) request_lines_begin(a->rq);
}

static void ollama_on_event(redispatch *a, const event *e)
{
    ollama_job *j = (ollama_job *)a;
    json_t *chunk = NULL;
    int rc = json_parse(&chunk, e->data, e->n_data, "a chunk", NULL);
    if (rc == 0 && json_object_get(chunk, "error"))
        snprintf(j->error, sizeof j->error, "%s", redispatch_message(chunk));
    else if (rc == 0)
        rc = ollama_take(&j->run, chunk);
    if (rc != 0 && !*j->error)
        snprintf(j->error, sizeof j->error, "%s",
                 rc == SHOAL_ENOMEM ? "out of memory" : "a chunk was not understood");
    json_decref(chunk);
}

/* A line that found no memory is not there, and none comes behind the gap. */
static int send_lines(ollama_job *j)
{
    if (j->out.failed) return SHOAL_ENOMEM;
    if (j->out.len) request_event(j->redispatch.rq, &(event){.data = j->out.data, .n_data = j->out.len});
    buf_clear(&j->out);
    return 0;
}

static void on_flush(redispatch *a)
{
    ollama_job *j = (ollama_job *)a;
    if (!j->first_ns && (j->run.text.len || j->run.thinking.len || j->run.n_calls))
        j->first_ns = env_now_ns(j->time);
    if (!j->ask.stream || j->out.failed) return;
    ollama_times t = times_of(j);
    ollama_put_line(&j->out, &j->ask, &j->run, &t);
    if (send_lines(j) != 0) redispatch_break_off(a);
}

static void ollama_on_end(redispatch *a)
{
    ollama_job *j = (ollama_job *)a;
    ollama_times t = times_of(j);
    keep_alive(j);
    if (*j->error)
        ollama_put_error(&j->out, j->error);
    else
        ollama_put_last(&j->out, &j->ask, &j->run, &t);
    if (!*j->error && !j->ask.stream) buf_putc(&j->out, '\n');
    if (j->out.failed) {
        redispatch_error(a, 500, "out of memory");
    } else if (j->ask.stream) {
        send_lines(j);
        gateway_request *rq = redispatch_take(a);
        if (*j->error) rq->error_code = "stream_failed";
        request_stream_end(rq);
    } else {
        request_text(redispatch_take(a), *j->error ? 500 : 200, "application/json", &j->out);
    }
}

static const redispatch_ops OPS = {.reply = ollama_on_reply,
                                   .begin = on_begin,
                                   .event = ollama_on_event,
                                   .flush = on_flush,
                                   .end = ollama_on_end,
                                   .free = ollama_job_free};

/* ---- Ollama's request ---------------------------------------------------------------------------- */

static ollama_job *ollama_job_new(gateway_request *rq, ollama_form form)
{
    ollama_job *j = calloc(1, sizeof *j);
    if (!j) {
        api_error e;
        api_error_nomem(&e);
        request_error(rq, &e);
        return NULL;
    }
    j->form = form;
    j->time = &rq->gateway->time;
    j->start_ns = rq->start_ns;
    j->model_manager = rq->gateway->model_manager;
    redispatch_init(&j->redispatch, rq, &OPS);
    return j;
}

static int put_loaded(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t)
{
    ollama_put_loaded(out, &j->ask, t);
    return out->failed ? SHOAL_ENOMEM : 0;
}

/* ---- the model is there -------------------------------------------------------------------------- */

/* NULL of routes, of ensembles and of what is not up. */
static const Shoal__V1__ModelInfo *info_of(const ollama_job *j)
{
    char base[96];
    snprintf(base, sizeof base, "%.*s", (int)strcspn(model_of(j), ":"), model_of(j));
    return calls_info(j->redispatch.rq->calls, base, NULL);
}

/* Ollama's template of a model that brings none is the prompt itself. */
static int suit_model(ollama_job *j, api_error *e)
{
    const ollama_ask *a = &j->ask;
    const Shoal__V1__ModelInfo *info = info_of(j);
    if (a->inserts && !a->uses.suffix)
        return api_error_bad(e, "suffix", "\"%.96s\" does not support insert: no template of it has .Suffix",
                             a->model);
    if (!info) return 0;
    bool brings = a->has_template || (info->has_chat_template && !info->default_chat_template);
    if (!brings && j->ours && ollama_use_text(&j->ask, j->ours) != 0) return api_error_nomem(e);
    if (!a->thinks || info->reasons || a->uses.thinking) return 0;
    return api_error_bad(e, "think", "\"%.96s\" does not support thinking", a->model);
}

/* path: of the request that has j->ours as its body. j may be gone then. */
static void ask_body(ollama_job *j, const char *path)
{
    json_ahead parsed = {0};
    buf_clear(&j->redispatch.body);
    if (json_put(&j->redispatch.body, j->ours) != 0) {
        redispatch_error(&j->redispatch, 500, "out of memory");
        redispatch_drop(&j->redispatch);
        return;
    }
    json_ahead_from(&parsed, &j->redispatch.body, j->ours);
    json_ahead_offer(&parsed);
    redispatch_ask(&j->redispatch, "POST", path);
    json_ahead_offer(NULL);
    json_ahead_done(&parsed);
}

static void ask_ours(ollama_job *j)
{
    api_error e;
    if (suit_model(j, &e) != 0) {
        ollama_fail(j, &e);
        return;
    }
    bool shows = j->ask.kind == OLLAMA_SHOW || j->ask.loads;
    char shown[sizeof j->served + 16];
    if (*j->served && j->ours && json_object_set_new(j->ours, "model", json_string(j->served)) != 0)
        json_decref(j->ours), j->ours = NULL;
    if (!shows && !j->ours) {
        api_error_nomem(&e);
        ollama_fail(j, &e);
        return;
    }
    request_note_model(j->redispatch.rq, model_of(j), "", "");
    snprintf(shown, sizeof shown, "/v1/models/%s", model_of(j));
    if (shows)
        redispatch_ask(&j->redispatch, "GET", shown); /* j may be gone then */
    else
        ask_body(j, j->ask.path);
}

static void on_loaded(void *user, const model_manager_progress *n, const api_error *e)
{
    ollama_job *j = user;
    j->ticket = NULL;
    request_on_deadline(j->redispatch.rq, NULL);
    if (e)
        ollama_fail(j, e);
    else
        ask_ours(j);
}

/* The model loads on: whoever asks again finds it further. */
static void on_late(void *work)
{
    ollama_job *j = work;
    api_error e;
    api_error_set(&e, 504, "timeout_error", "deadline_exceeded", NULL,
                  "'%s' is not loaded yet, and loads on; ask again, or give it more time", j->served);
    ollama_fail(j, &e); /* whose end leaves the ticket */
}

/* A model of the store is loaded because somebody asks for it, and goes when nobody does any more. A deadline
 * counts where the client named one: to load may take longer than any answer. */
static void load_first(ollama_job *j)
{
    const model_manager *k = j->model_manager;
    int64_t s = j->ask.keep_alive_s;
    model_manager_watch w = {.done = on_loaded, .user = j};
    api_error e;
    config_load_request wanted = {.what = j->served,
                                  .keep_alive_s = s == OLLAMA_FOR_GOOD ? LOAD_REQUEST_STAYS
                                                  : s > 0              ? (uint64_t)s
                                                          : j->redispatch.rq->config->library.keep_alive_s};
    if (admission_may_use(j->redispatch.rq, j->served, &e) == 0)
        j->ticket = k->load(k->user, &wanted, &w, &e);
    if (!j->ticket)
        ollama_fail(j, &e);
    else if (j->redispatch.rq->names_deadline)
        request_on_deadline(j->redispatch.rq, on_late);
}

static void on_unloaded(void *user, const model_manager_progress *n, const api_error *e)
{
    ollama_job *j = user;
    ollama_times t = times_of(j);
    j->ticket = NULL;
    if (e) {
        ollama_fail(j, e);
        return;
    }
    ollama_put_loaded(&j->out, &j->ask, &t);
    request_json(redispatch_take(&j->redispatch), 200, &j->out);
    redispatch_drop(&j->redispatch);
}

/* An empty prompt, and a stay of no time. */
static void unload(ollama_job *j)
{
    const model_manager *k = j->model_manager;
    model_manager_watch w = {.done = on_unloaded, .user = j};
    model_manager_fact f;
    api_error e;
    if (!may_administer(j->redispatch.rq))
        api_error_set(&e, 403, "invalid_request_error", "not_allowed", NULL,
                      "to unload a model takes a key with 'admin: true'");
    else if (k->about(k->user, model_of(j), &f) && f.configured)
        api_error_set(&e, 409, "invalid_request_error", "model_is_configured", NULL,
                      "'%s' is a model of this server's configuration, and stays", model_of(j));
    else
        j->ticket = k->unload(k->user, model_of(j), 0, &w, &e);
    if (!j->ticket) ollama_fail(j, &e);
}

/* What models.json says of a model that lies there and is not loaded. */
static void show_stored(ollama_job *j)
{
    const model_manager *k = j->model_manager;
    const json_t *all = k->stored(k->user), *m, *found = NULL;
    ollama_times t = times_of(j);
    api_error e;
    size_t i;
    json_array_foreach(all, i, m) if (strcmp(json_text_of(m, "name"), j->served) == 0) found = m;
    bool known = found && admission_may_use(j->redispatch.rq, j->served, &e) == 0;
    if (!found) api_error_no_model(&e, j->ask.model);
    if (known && ollama_put_model(&j->out, found, j->made, &t) == 0) {
        request_json(redispatch_take(&j->redispatch), 200, &j->out);
        redispatch_drop(&j->redispatch);
        return;
    }
    if (known) api_error_nomem(&e);
    ollama_fail(j, &e);
}

/* What answers without a worker of its own, so that there is nothing to unload. */
static bool has_no_worker(const ollama_job *j)
{
    const gateway_request *rq = j->redispatch.rq;
    const char *name = model_of(j);
    model_manager_fact f;
    if (routed_find(rq, name) || config_ensemble_find(rq->config, name)) return true;
    return !j->model_manager->about(j->model_manager->user, name, &f) &&
           pipeline_find(rq->config->pipelines, rq->config->n_pipelines, name);
}

/* An empty prompt with keep_alive 0. An empty input of an embedding only gets no vectors. */
static bool unloads(const ollama_ask *a)
{
    return a->loads && a->keep_alive_s == 0 && a->kind != OLLAMA_EMBED && a->kind != OLLAMA_EMBEDDINGS;
}

const char *ollama_find_alias(gateway_request *rq, const char *name)
{
    char tagged[sizeof((ollama_ask *)0)->shown];
    snprintf(tagged, sizeof tagged, "%s:latest", name);
    const config_alias *a = config_alias_find(rq->config, name);
    if (!a) a = config_alias_find(rq->config, tagged);
    if (a) rq->alias = a->name;
    return a ? a->model : NULL;
}

bool ollama_is_known(gateway_request *rq, const char *name)
{
    const model_manager *k = rq->gateway->model_manager;
    char tagged[sizeof((ollama_ask *)0)->shown];
    snprintf(tagged, sizeof tagged, "%s:latest", name);
    return model_resolve_serves(rq, name) || config_alias_find(rq->config, name) ||
           config_alias_find(rq->config, tagged) || (k && k->find(k->user, name));
}

/* What the made model brings. */
static int fill_variant(ollama_job *j, api_error *e)
{
    if (ollama_fill_in(j->ours, j->made) != 0) return api_error_nomem(e);
    return ollama_fill_template(&j->ask, j->ours, j->made, e);
}

static void ollama_begin(ollama_job *j)
{
    gateway_request *rq = j->redispatch.rq;
    const model_manager *k = j->model_manager;
    const char *model = j->ask.model;
    bool served = model_resolve_serves(rq, model);
    const json_t *made = ollama_is_known(rq, model) ? NULL : ollama_variant_find(rq, model);
    if (made) {
        j->made = json_incref((json_t *)made);
        model = json_text_of(made, "from");
        snprintf(j->served, sizeof j->served, "%s", model);
        served = model_resolve_serves(rq, model);
    }
    const char *alias = served ? NULL : ollama_find_alias(rq, model);
    const char *stored = k && !served && !alias ? k->find(k->user, model) : NULL;
    if (alias || stored) snprintf(j->served, sizeof j->served, "%s", alias ? alias : stored);
    if (alias || stored) served = model_resolve_serves(rq, j->served);
    bool generates = j->ask.kind == OLLAMA_CHAT || j->ask.kind == OLLAMA_GENERATE;
    api_error e;
    if (made && generates && j->ours && fill_variant(j, &e) != 0) {
        ollama_fail(j, &e);
    } else if (unloads(&j->ask) && (made || (k && served && has_no_worker(j)))) {
        j->ask.keep_alive_s = OLLAMA_NOT_SAID; /* what answers stays, and the reply says "load" */
        on_unloaded(j, NULL, NULL);
    } else if (k && served && unloads(&j->ask))
        unload(j);
    else if (stored && unloads(&j->ask))
        on_unloaded(j, NULL, NULL); /* it is not there */
    else if (stored && !served && j->ask.kind < OLLAMA_SHOW)
        load_first(j);
    else if (stored && !served)
        show_stored(j);
    else
        ask_ours(j);
}

static void ask_ollama(gateway_request *rq, ollama_kind kind, ollama_form form)
{
    size_t n;
    const char *bytes = request_body(rq, &n);
    api_error e = {0};
    ollama_job *j = ollama_job_new(rq, form);
    if (!j) return;
    int rc = ollama_read(&j->ask, kind, bytes, n, &j->ours, &e);
    if (rc == 0 && j->ask.loads) {
        j->ask.stream = false;
        j->form = put_loaded;
    }
    if (rc == 0 && j->ask.stream && !rq->ingress->ops->takes_lines)
        rc = api_error_bad(&e, "stream", "lines are streamed over HTTP alone; ask for \"stream\": false");
    if (rc != 0)
        ollama_fail(j, &e);
    else
        ollama_begin(j);
}

static int put_vectors(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t)
{
    return ollama_put_vectors(out, &j->ask, ours, t);
}

/* What lies in the store and the key may name; borrows its entries. NULL: out of memory. */
static json_t *shown_of(const gateway_request *rq, const json_t *stored)
{
    json_t *shown = json_array(), *m;
    size_t i;
    json_array_foreach((json_t *)stored, i, m)
    {
        const char *name = json_string_value(json_object_get(m, "name"));
        if (!shown || !name || !admission_shows(rq, name) || json_array_append(shown, m) == 0) continue;
        json_decref(shown);
        return NULL;
    }
    return shown;
}

static int put_tags(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t)
{
    const model_manager *k = j->model_manager;
    json_t *stored = k ? shown_of(j->redispatch.rq, k->stored(k->user)) : NULL;
    const json_t *made = k && k->variants ? k->variants(k->user) : NULL;
    int rc = k && !stored ? SHOAL_ENOMEM : ollama_put_models(out, ours, stored, made, false, t);
    json_decref(stored);
    return rc;
}

static int put_running(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t)
{
    return ollama_put_models(out, ours, NULL, NULL, true, t);
}

static int put_shown(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t)
{
    return ollama_put_model(out, ours, j->made, t);
}

void ollama_chat(gateway_request *rq)
{
    ask_ollama(rq, OLLAMA_CHAT, NULL);
}

void ollama_generate(gateway_request *rq)
{
    ask_ollama(rq, OLLAMA_GENERATE, NULL);
}

void ollama_embed(gateway_request *rq)
{
    ask_ollama(rq, OLLAMA_EMBED, put_vectors);
}

void ollama_embeddings(gateway_request *rq)
{
    ask_ollama(rq, OLLAMA_EMBEDDINGS, put_vectors);
}

void ollama_show(gateway_request *rq)
{
    ask_ollama(rq, OLLAMA_SHOW, put_shown);
}

static void ollama_list(gateway_request *rq, ollama_form form)
{
    ollama_job *j = ollama_job_new(rq, form);
    if (j) redispatch_ask(&j->redispatch, "GET", "/v1/models");
}

void ollama_tags(gateway_request *rq)
{
    ollama_list(rq, put_tags);
}

void ollama_ps(gateway_request *rq)
{
    ollama_list(rq, put_running);
}

void ollama_version(gateway_request *rq)
{
    buf out = {0};
    buf_printf(&out, "{\"version\":\"%s\"}", SHOAL_VERSION);
    request_json(rq, 200, &out);
    buf_done(&out);
}
