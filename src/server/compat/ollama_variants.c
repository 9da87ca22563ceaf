/* ollama_variants.c: see ollama_variants.h. */
#include "compat/ollama_variants.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "compat/ollama.h"
#include "gateway/model_manager.h"
#include "messages/query.h"
#include "request/admission.h"
#include "request/gateway_state.h"

typedef struct variant_job {
    gateway_request *rq;
    model_manager_ticket *ticket;
    bool stream, tells; /* tells: it answers with statuses */
} variant_job;

const json_t *ollama_variant_find(const gateway_request *rq, const char *name)
{
    const model_manager *k = rq->gateway->model_manager;
    return k && k->variants ? json_object_get(k->variants(k->user), name) : NULL;
}

static void variant_gone(void *work)
{
    variant_job *j = work;
    j->rq->gateway->model_manager->leave(j->ticket);
    free(j);
}

static void variant_status(const variant_job *j, const char *status)
{
    buf line = {0};
    ollama_put_status(&line, status);
    if (!line.failed) request_event(j->rq, &(event){.data = line.data, .n_data = line.len});
    buf_done(&line);
}

static void variant_failed(const variant_job *j, const api_error *e)
{
    buf line = {0};
    if (!j->stream) {
        request_error(j->rq, e);
        return;
    }
    ollama_put_error(&line, e->message);
    if (!line.failed)
        request_event(j->rq, &(event){.kind = EVENT_ERROR, .data = line.data, .n_data = line.len});
    buf_done(&line);
    j->rq->error_code = e->code ? e->code : e->type;
    request_stream_end(j->rq);
}

static void variant_done(void *user, const model_manager_progress *n, const api_error *e)
{
    variant_job *j = user;
    buf out = {0};
    request_watch(j->rq, NULL, NULL);
    if (e) {
        variant_failed(j, e);
    } else if (j->stream) {
        variant_status(j, "success");
        request_stream_end(j->rq);
    } else {
        if (j->tells)
            ollama_put_status(&out, "success");
        else
            buf_puts(&out, "{}");
        request_json(j->rq, 200, &out);
    }
    buf_done(&out);
    free(j);
}

/* ---- files ----------------------------------------------------------------------------------------- */

static const char *served_file(const gateway_request *rq, const char *sha256)
{
    for (size_t i = 0; i < registry_count_models(rq->registry); i++) {
        const replica_set *set = registry_model_at(rq->registry, i);
        const Shoal__V1__ModelInfo *info = set->n > 0 ? set->replicas[0]->info : NULL;
        if (info && strcmp(info->digest, sha256) == 0) return set->replicas[0]->model;
    }
    return NULL;
}

/* Which model has the file with this digest: one that is served, or one of the store. Borrowed until the next turn of
 * the loop; NULL: none. */
static const char *find_file(const gateway_request *rq, const char *sha256)
{
    const model_manager *k = rq->gateway->model_manager;
    const json_t *all = k ? k->stored(k->user) : NULL, *m;
    const char *served = served_file(rq, sha256);
    size_t i;
    json_array_foreach(served ? NULL : all, i, m)
    {
        const char *its = json_string_value(json_object_get(m, "sha256"));
        if (its && strcmp(its, sha256) == 0) return json_string_value(json_object_get(m, "name"));
    }
    return served;
}

static int no_file(api_error *e, int status, const char *sha256)
{
    return api_error_set(
        e, status, "invalid_request_error", "file_not_found", "files",
        "no model here has the file sha256:%.12s..., and this server takes no files from clients: "
        "`shoal load FILE` on its machine loads it, and then the same create works",
        sha256);
}

void ollama_blob(gateway_request *rq)
{
    const char *at = request_path(rq) + strlen("/api/blobs/");
    bool sends = strcmp(request_method(rq), "POST") == 0;
    char sha256[65], *named = NULL;
    api_error e;
    int rc = query_segment(at, strlen(at), &named, &e);
    if (rc == 0 && !ollama_read_digest(sha256, named))
        rc = api_error_bad(&e, "digest", "a digest is \"sha256:\" and 64 hexadecimal digits");
    else if (rc == 0 && !find_file(rq, sha256))
        rc = no_file(&e, sends ? 400 : 404, sha256);
    free(named);
    if (rc != 0)
        request_error(rq, &e);
    else
        request_reply(rq, sends ? 201 : 200, NULL, NULL, 0, "", 0);
}

/* ---- what a variant is made of --------------------------------------------------------------------- */

static int refuse_name(gateway_request *rq, const char *name, api_error *e)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/";
    if (!*name || name[strspn(name, LETTERS)] || strchr("-.:/", *name))
        return api_error_bad(
            e, "model",
            "a model's name may hold letters, digits, '_', '-', '.', ':' and '/', and begins with "
            "a letter, a digit or '_'");
    if (ollama_is_known(rq, name))
        return api_error_set(e, 409, "invalid_request_error", "model_exists", "model",
                             "'%.96s' is the name of a model of this server: choose another", name);
    return 0;
}

/* What `from` names, with what it says itself. A variant of a variant is one of that one's model. */
static int take_base(gateway_request *rq, json_t *made, const char *from, api_error *e)
{
    const json_t *base = ollama_variant_find(rq, from);
    const char *model = base ? json_text_of(base, "from") : from;
    if (admission_may_use(rq, model, e) != 0) return e->status;
    if (!base && !ollama_is_known(rq, from)) return api_error_no_model(e, from);
    json_t *own = json_object_get(made, "parameters"), *all = json_object();
    const json_t *theirs = json_object_get(base, "parameters");
    bool ok = all && (!theirs || json_object_update(all, (json_t *)theirs) == 0) &&
              (!own || json_object_update(all, own) == 0);
    ok = ok && json_object_set(made, "parameters", all) == 0;
    for (const char *const *key = (const char *const[]){"system", "messages", "template", NULL}; ok && *key;
         key++)
        if (!json_object_get(made, *key) && json_object_get(base, *key))
            ok = json_object_set(made, *key, json_object_get(base, *key)) == 0;
    ok = ok && json_object_set_new(made, "from", json_string(model)) == 0;
    ok = ok && json_object_set_new(made, "created", json_integer(request_date_s(rq))) == 0;
    json_decref(all);
    return ok ? 0 : api_error_nomem(e);
}

/* made: taken. */
static void variant_make(gateway_request *rq, const ollama_making *m, json_t *made, bool tells)
{
    const model_manager *k = rq->gateway->model_manager;
    api_error e;
    const char *from = *m->sha256 ? find_file(rq, m->sha256) : m->from;
    int rc = from ? refuse_name(rq, m->name, &e) : no_file(&e, 400, m->sha256);
    if (rc == 0) rc = take_base(rq, made, from, &e);
    if (rc == 0 && (!k || !k->vary))
        rc = api_error_set(&e, 403, "invalid_request_error", "not_allowed", NULL,
                           "this gateway keeps no models of its own");
    if (rc == 0 && m->stream && !rq->ingress->ops->takes_lines)
        rc = api_error_bad(&e, "stream", "lines are streamed over HTTP alone; ask for \"stream\": false");
    variant_job *j = rc == 0 ? calloc(1, sizeof *j) : NULL;
    if (rc == 0 && !j) rc = api_error_nomem(&e);
    if (j) {
        *j = (variant_job){.rq = rq, .stream = m->stream, .tells = tells};
        model_manager_watch w = {.done = variant_done, .user = j};
        j->ticket = k->vary(k->user, m->name, made, &w, &e);
    }
    json_decref(made);
    if (!j || !j->ticket) {
        free(j);
        request_error(rq, &e);
        return;
    }
    request_watch(rq, variant_gone, j);
    if (!j->stream) return;
    request_lines_begin(rq);
    variant_status(j, "using existing layers");
    variant_status(j, "writing manifest");
}

void ollama_create(gateway_request *rq)
{
    size_t n;
    const char *bytes = request_body(rq, &n);
    ollama_making m;
    json_t *made;
    api_error e;
    if (ollama_read_create(&m, bytes, n, &made, &e) == 0)
        variant_make(rq, &m, made, true);
    else
        request_error(rq, &e);
}

void ollama_copy(gateway_request *rq)
{
    size_t n;
    const char *bytes = request_body(rq, &n);
    ollama_making m;
    api_error e;
    json_t *made = json_object();
    int rc = made ? ollama_read_copy(&m, bytes, n, &e) : api_error_nomem(&e);
    if (rc == 0) {
        variant_make(rq, &m, made, false);
        return;
    }
    json_decref(made);
    request_error(rq, &e);
}
