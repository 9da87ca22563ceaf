/* status.c: the endpoints that say how things are: models, health, readiness, metrics. */
#include "operations/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "messages/query.h"
#include "base/clock.h"
#include "os/handover.h"
#include "json/json.h"
#include "json/json_put.h"
#include "base/number.h"
#include "cluster/node.h"
#include "cluster/stage_name.h"
#include "converse/pipeline_calls.h"
#include "dialects/anthropic.h"
#include "request/admission.h"
#include "request/metrics_vllm.h"
#include "request/model_resolve.h"
#include "observe/describe.h"
#include "observe/gateway_metrics.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"
#include "gateway/model_manager.h"
#include "observe/readiness.h"
#include "request/routed.h"

/* What models.json says of the file with this digest: "use", "tools"; NULL: nothing. */
static const char *listed_of(const gateway_request *rq, const char *digest, const char *key)
{
    const model_manager *k = rq->gateway->model_manager;
    const json_t *list = k ? k->stored(k->user) : NULL, *o;
    size_t i;
    json_array_foreach(list, i, o)
    {
        const char *sha256 = json_string_value(json_object_get(o, "sha256"));
        if (*digest && sha256 && strcmp(sha256, digest) == 0)
            return json_string_value(json_object_get(o, key));
    }
    return NULL;
}

/* How many there are of it, what they take, and how long it stays. */
static void put_presence(buf *out, const gateway_request *rq, const char *name,
                         const Shoal__V1__ModelInfo *info)
{
    const replica_set *set = registry_find(rq->registry, name);
    const model_manager *k = rq->gateway->model_manager;
    model_manager_fact f = {0};
    uint64_t rss = 0;
    for (size_t i = 0; set && i < set->n; i++) {
        const replica *r = set->replicas[i];
        bool runs = r->state == REPLICA_READY || r->state == REPLICA_DRAINING;
        if (r->stats && runs) rss += r->stats->rss_bytes;
    }
    buf_printf(out, ",\"replicas\":%zu,\"ready\":%zu", set ? set->n : 0, set ? set->n_ready : 0);
    const config_model *m = config_find_model(rq->gateway->config, name);
    if (m && m->scale.max > 0)
        buf_printf(out, ",\"min_replicas\":%u,\"max_replicas\":%u", m->replicas, m->scale.max);
    if (rss) buf_printf(out, ",\"memory_bytes\":%llu", (unsigned long long)rss);
    bool known = k && k->about(k->user, name, &f);
    uint64_t bytes = info && info->file_bytes ? info->file_bytes : f.bytes;
    if (bytes) buf_printf(out, ",\"file_bytes\":%llu", (unsigned long long)bytes);
    if (!known) return;
    json_put_text(out, "loaded_by", f.configured ? "configuration" : "request");
    if (f.kept) buf_puts(out, ",\"keep\":true");
    if (f.goes) buf_printf(out, ",\"unloads_in_ms\":%llu", (unsigned long long)f.left_ms);
}

/* A model that a request loads is not there yet, whatever its worker does at the moment. */
static const char *state_name(const gateway_request *rq, const char *name, replica_state state)
{
    const model_manager *k = rq->gateway->model_manager;
    model_manager_fact f;
    bool starts = state == REPLICA_STARTING || state == REPLICA_DOWN;
    return starts && k && k->about(k->user, name, &f) && f.loading ? "loading" : replica_state_name(state);
}

/* What holds of a request to it that does not say it. */
static void put_sampling(buf *out, const Shoal__V1__Sampling *s)
{
    const char *comma = "";
    if (!s) return;
    buf_puts(out, ",\"sampling\":{");
#define PUT(field, min, max)                         \
    if (!(s->unsaid & SAMPLING_BIT(field))) {        \
        buf_printf(out, "%s\"" #field "\":", comma); \
        number_put(out, (double)s->field, 6);        \
        comma = ",";                                 \
    }
    SAMPLING_TABLE(PUT)
#undef PUT
    buf_putc(out, '}');
}

/* By the names that the protocol gives them; nothing of a worker that is older than they are. */
static void put_capabilities(buf *out, const Shoal__V1__Capabilities *c)
{
    const char *comma = "";
    if (!c) return;
    buf_puts(out, ",\"capabilities\":[");
    for (unsigned i = 0; i < c->base.descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &c->base.descriptor->fields[i];
        if (!*(const protobuf_c_boolean *)((const char *)c + f->offset)) continue;
        buf_printf(out, "%s\"%s\"", comma, f->name);
        comma = ",";
    }
    buf_putc(out, ']');
}

/* The OpenAI model object, and what Shoal knows beyond it once the worker has described itself. */
static void put_model(buf *out, const gateway_request *rq, const char *name, replica_state state,
                      const char *reason, const Shoal__V1__ModelInfo *info)
{
    buf_putc(out, '{');
    json_put_text(out, "id", name);
    buf_printf(out, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"shoal\"",
               info ? (long long)info->file_time_s : 0);
    json_put_text(out, "state", state_name(rq, name, state));
    if (state == REPLICA_FAILED || state == REPLICA_DOWN) json_put_text(out, "reason", reason);
    put_presence(out, rq, name, info);
    if (info) {
        json_put_text(out, "task", info->task);
        json_put_text(out, "architecture", info->architecture);
        json_put_text(out, "version", info->version);
        json_put_text(out, "quantisation", info->quantisation);
        json_put_text(out, "digest", info->digest);
        json_put_filled(out, "use", listed_of(rq, info->digest, "use"));
        bool talks =
            strcmp(info->task, "generate") == 0 && info->has_chat_template && !info->default_chat_template;
        const char *tools = listed_of(rq, info->digest, "tools");
        if (strcmp(info->task, "generate") == 0)
            json_put_text(out, "tools", tools ? tools : talks ? "any" : "none");
        json_put_text(out, "identity", info->identity);
        buf_printf(out, ",\"exact_resume\":%s", info->exact_resume ? "true" : "false");
        put_capabilities(out, info->capabilities);
        json_put_text(out, "isa", info->isa);
        json_put_text(out, "device", *info->device ? info->device : NODE_CPU);
        if (info->n_parameters)
            buf_printf(out, ",\"parameters\":%llu", (unsigned long long)info->n_parameters);
        if (strcmp(info->task, "embed") == 0) json_put_text(out, "rerank", "embeddings"); /* how it ranks */
        json_put_text(out, "root", info->name);
        buf_printf(out, ",\"parent\":null,\"max_model_len\":%u", info->n_ctx); /* root, parent: vLLM's */
        buf_printf(out, ",\"context_length\":%u,\"embedding_length\":%u,\"vocabulary\":%u,\"labels\":[",
                   info->n_ctx, info->n_embd, info->n_vocab);
        for (size_t i = 0; i < info->n_labels; i++) json_put_text(out, NULL, info->labels[i]);
        buf_putc(out, ']');
        if (info->default_chat_template) json_put_text(out, "chat_template", "default");
        put_sampling(out, info->sampling);
    }
    buf_putc(out, '}');
}

/* The i-th adapter of a model as one of its own: "MODEL:ADAPTER" is a name that requests may give. */
static void put_adapter(buf *out, const char *model, replica_state state, const Shoal__V1__ModelInfo *info,
                        size_t i)
{
    buf id = {0};
    buf_printf(&id, "%s:%s", model, info->adapters[i]);
    buf_puts(out, "{\"id\":");
    json_put_string(out, id.data ? id.data : "", id.len);
    out->failed |= id.failed;
    buf_done(&id);
    buf_puts(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"shoal\"");
    json_put_text(out, "state", replica_state_name(state));
    json_put_text(out, "parent", model);
    json_put_text(out, "task", info->task);
    if (i < info->n_adapter_digests) json_put_text(out, "digest", info->adapter_digests[i]);
    buf_putc(out, '}');
}

/* The replica to show for a model: a ready one, or any. NULL: it has none. */
static const replica *shown_replica(const replica_set *set)
{
    return set->n > 0 ? set->replicas[0] : NULL; /* ready ones come first */
}

static void put_ensemble(buf *out, const config_ensemble *e)
{
    static const char *const KINDS[] = {
#define KIND_NAME(e, name) name,
        ENSEMBLE_KIND_TABLE(KIND_NAME)
#undef KIND_NAME
    };
    buf_putc(out, '{');
    json_put_text(out, "id", e->name);
    buf_printf(out,
               ",\"object\":\"model\",\"created\":0,\"owned_by\":\"shoal\",\"kind\":\"%s\",\"members\":[",
               KINDS[e->kind]);
    for (size_t i = 0; i < e->n_members; i++) json_put_text(out, NULL, e->members[i].model);
    buf_puts(out, "]}");
}

/* A pipeline that chats (converse/pipeline_calls.h). */
static void put_pipeline(buf *out, const config_pipeline *p)
{
    bool first = true;
    buf_putc(out, '{');
    json_put_text(out, "id", p->name);
    buf_puts(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"shoal\",\"kind\":\"pipeline\"");
    json_put_text(out, "task", "generate");
    json_put_filled(out, "use", p->use);
    json_put_text(out, "tools", "any");
    buf_puts(out, ",\"members\":[");
    for (unsigned i = 0; i < p->n_stages; i++) {
        bool named = false;
        for (unsigned k = 0; k < i && p->stages[i].model; k++)
            named |= p->stages[k].model && strcmp(p->stages[k].model, p->stages[i].model) == 0;
        if (!p->stages[i].model || named) continue;
        buf_puts(out, first ? "" : ",");
        json_put_string(out, p->stages[i].model, strlen(p->stages[i].model));
        first = false;
    }
    buf_puts(out, "]}");
}

static void put_comma(buf *out, bool *first)
{
    if (!*first) buf_putc(out, ',');
    *first = false;
}

/* A model, and each of its adapters, of which a key may use some and not others. */
static void put_served(buf *out, const gateway_request *rq, const replica *r, bool *first)
{
    char name[200];
    if (admission_shows(rq, r->model)) {
        put_comma(out, first);
        put_model(out, rq, r->model, r->state, r->reason, r->info);
    }
    for (size_t k = 0; r->info && k < r->info->n_adapters; k++) {
        snprintf(name, sizeof name, "%s:%s", r->model, r->info->adapters[k]);
        if (!admission_shows(rq, name)) continue;
        put_comma(out, first);
        put_adapter(out, r->model, r->state, r->info, k);
    }
}

/* A model that is configured or was served here, and that no machine has now: it rests, or is missing. */
static void put_missing(buf *out, const gateway_request *rq, const replica_set *set)
{
    char why[READINESS_WHY_SIZE];
    registry_say_missing(set, why, sizeof why);
    buf_putc(out, '{');
    json_put_text(out, "id", set->model);
    buf_puts(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"shoal\"");
    json_put_text(out, "state", registry_is_missing(set) ? "missing" : "resting");
    json_put_text(out, "reason", why);
    put_presence(out, rq, set->model, NULL);
    buf_putc(out, '}');
}

static void put_set(buf *out, const gateway_request *rq, const replica_set *set, bool *first)
{
    const replica *r = shown_replica(set);
    if (stage_name_parse(set->model, NULL, NULL, NULL)) return; /* nobody can ask a stage */
    if (r) {
        put_served(out, rq, r, first);
    } else if (admission_shows(rq, set->model)) {
        put_comma(out, first);
        put_missing(out, rq, set);
    }
}

void status_put_model(buf *out, const gateway_request *rq, const char *name)
{
    const replica_set *set = registry_find(rq->registry, name);
    const replica *r = set ? shown_replica(set) : NULL;
    if (r)
        put_model(out, rq, r->model, r->state, r->reason, r->info);
    else
        buf_puts(out, "{}");
}

/* The i-th adapter of r by its name; r->info->n_adapters: it has none of that name. */
static size_t find_adapter(const Shoal__V1__ModelInfo *info, const char *name)
{
    size_t i = 0;
    while (i < info->n_adapters && strcmp(info->adapters[i], name) != 0) i++;
    return i;
}

/* The row of MODEL or MODEL:ADAPTER; nothing where nobody serves it. */
static void put_model_of(buf *out, const gateway_request *rq, const char *name)
{
    char base[96];
    const char *colon = strchr(name, ':');
    snprintf(base, sizeof base, "%.*s", (int)strcspn(name, ":"), name);
    const replica_set *set = registry_find(rq->registry, base);
    const replica *r = set ? shown_replica(set) : NULL;
    size_t i = r && r->info && colon ? find_adapter(r->info, colon + 1) : 0;
    if (colon && r && r->info && i < r->info->n_adapters)
        put_adapter(out, base, r->state, r->info, i);
    else if (!colon && r)
        put_model(out, rq, r->model, r->state, r->reason, r->info);
    else if (!colon && set)
        put_missing(out, rq, set);
}

/* A price or a sampling value is written as in the row itself: 0.7, not 0.69999999999999996. */
enum { ROW_DIGITS = 15 };

/* The row of what an alias or a variant stands for, under its name. */
static void put_as_alias(buf *out, const char *name, const char *root, const buf *row)
{
    json_t *o = NULL;
    if (row->failed || json_parse(&o, row->data, row->len, "a model", NULL) != 0 ||
        json_object_set_new(o, "id", json_string(name)) != 0 ||
        json_object_set_new(o, "root", json_string(root)) != 0 || json_put_digits(out, o, ROW_DIGITS) != 0)
        out->failed = true;
    json_decref(o);
}

/* Pipelines that do not chat are no models, nor are their aliases. root: what the name stands for, which `model` is
 * called here. */
static void put_alias(buf *out, const gateway_request *rq, const char *name, const char *root,
                      const char *model, bool *first)
{
    const config_route *route = routed_find(rq, model);
    const config_ensemble *ensemble = config_ensemble_find(rq->config, model);
    const config_pipeline *pipeline = pipeline_calls_find(rq->config, model);
    buf row = {0};
    if (!admission_shows(rq, model)) return;
    if (pipeline)
        put_pipeline(&row, pipeline);
    else if (route)
        routed_put_model(&row, route);
    else if (ensemble)
        put_ensemble(&row, ensemble);
    else
        put_model_of(&row, rq, model);
    if (row.len || row.failed) {
        put_comma(out, first);
        put_as_alias(out, name, root, &row);
    }
    buf_done(&row);
}

/* Models that clients made of others; of one that is not served there is no row. */
static void put_variants(buf *out, const gateway_request *rq, bool *first)
{
    const gateway *g = rq->gateway;
    const json_t *all = g->variants ? g->variants(g) : NULL, *made;
    const char *name;
    json_object_foreach((json_t *)all, name, made)
    {
        const char *from = json_text_of(made, "from");
        const config_alias *a = config_alias_find(rq->config, from);
        if (model_resolve_variant(rq, name) == made)
            put_alias(out, rq, name, from, a ? a->model : from, first);
    }
}

/* A model of models.json that no replica serves: what a load of this name begins. */
static void put_loadable(buf *out, const gateway_request *rq, const json_t *o, bool *first)
{
    static const char *const FIELDS[] = {"task", "architecture", "version", "quantisation", "use"};
    const char *name = json_string_value(json_object_get(o, "name"));
    const char *sha256 = json_string_value(json_object_get(o, "sha256"));
    const json_t *bytes = json_object_get(o, "bytes");
    if (!name || registry_find(rq->registry, name) || !admission_shows(rq, name)) return;
    put_comma(out, first);
    buf_putc(out, '{');
    json_put_text(out, "id", name);
    buf_printf(out, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"shoal\",\"state\":\"loadable\"",
               (long long)json_integer_value(json_object_get(o, "created")));
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        json_put_filled(out, FIELDS[i], json_string_value(json_object_get(o, FIELDS[i])));
    json_put_filled(out, "digest", sha256);
    if (json_integer_value(bytes) > 0)
        buf_printf(out, ",\"file_bytes\":%lld", (long long)json_integer_value(bytes));
    buf_putc(out, '}');
}

/* ---- Anthropic's form ----------------------------------------------------------------------------- */

static bool asks_as_anthropic(const gateway_request *rq)
{
    return !rq->ingress->of && request_header(rq, "anthropic-version");
}

/* Anthropic's pages hold at most a thousand. */
static int read_page(const gateway_request *rq, char **ret_after, char **ret_before, anthropic_page *ret,
                     api_error *e)
{
    int64_t limit = 0;
    int rc = query_number(request_query(rq), "limit", 1, 1000, &limit, e);
    if (rc == 0) rc = query_value(request_query(rq), "after_id", ret_after, e);
    if (rc == 0) rc = query_value(request_query(rq), "before_id", ret_before, e);
    *ret = (anthropic_page){.after_id = *ret_after, .before_id = *ret_before, .limit = (size_t)limit};
    return rc;
}

/* `ours`: the list of models or the row of one, as other clients get it. */
static void answer_for_anthropic(gateway_request *rq, const buf *ours, bool is_list)
{
    char *after = NULL, *before = NULL;
    anthropic_page page;
    json_t *o = NULL;
    buf out = {0};
    api_error e;
    int rc = is_list ? read_page(rq, &after, &before, &page, &e) : 0;
    if (rc == 0 && (ours->failed || json_parse(&o, ours->data, ours->len, "the models", NULL) != 0))
        rc = api_error_nomem(&e);
    if (rc == 0 && is_list && anthropic_put_models(&out, o, &page) != 0) rc = api_error_nomem(&e);
    if (rc == 0 && !is_list) anthropic_put_model(&out, o);
    if (rc == 0)
        request_json(rq, 200, &out);
    else
        request_error(rq, &e);
    json_decref(o);
    buf_done(&out);
    free(after);
    free(before);
}

/* "loadable=true" of the query. 0, or an HTTP status with *e filled. */
static int wants_loadable(const gateway_request *rq, bool *ret, api_error *e)
{
    char *s = NULL;
    int rc = query_value(request_query(rq), "loadable", &s, e);
    *ret = rc == 0 && s && strcmp(s, "true") == 0;
    if (rc == 0 && s && !*ret && strcmp(s, "false") != 0)
        rc = api_error_bad(e, "loadable", "\"loadable\" must be true or false");
    free(s);
    return rc;
}

void status_models(gateway_request *rq)
{
    registry *g = rq->registry;
    const model_manager *k = rq->gateway->model_manager;
    buf out = {0};
    bool loadable;
    api_error e;
    if (wants_loadable(rq, &loadable, &e) != 0) {
        request_error(rq, &e);
        return;
    }
    buf_puts(&out, "{\"object\":\"list\",\"data\":[");
    bool first = true;
    for (size_t i = 0; i < registry_count_models(g); i++) put_set(&out, rq, registry_model_at(g, i), &first);
    for (size_t i = 0; i < rq->config->n_ensembles; i++) {
        if (!admission_shows(rq, rq->config->ensembles[i].name)) continue;
        put_comma(&out, &first);
        put_ensemble(&out, &rq->config->ensembles[i]);
    }
    routed_put_models(&out, rq, &first);
    for (size_t i = 0; i < rq->config->n_pipelines; i++) {
        const config_pipeline *p = &rq->config->pipelines[i];
        if (!admission_shows(rq, p->name) || pipeline_calls_find(rq->config, p->name) != p) continue;
        put_comma(&out, &first);
        put_pipeline(&out, p);
    }
    for (size_t i = 0; i < rq->config->n_aliases; i++) {
        const config_alias *a = &rq->config->aliases[i];
        put_alias(&out, rq, a->name, a->model, a->model, &first);
    }
    put_variants(&out, rq, &first);
    const json_t *stored = loadable && k ? k->stored(k->user) : NULL, *o;
    size_t i;
    json_array_foreach(stored, i, o) put_loadable(&out, rq, o, &first);
    buf_puts(&out, "]}");
    if (asks_as_anthropic(rq))
        answer_for_anthropic(rq, &out, true);
    else
        request_json(rq, 200, &out);
    buf_done(&out);
}

/* ---- one model ----------------------------------------------------------------------------------- */

typedef struct describe_job {
    gateway_request *rq;
    model_call *call;
    char name[136]; /* MODEL or MODEL:ADAPTER */
} describe_job;

static void describe_gone(void *work)
{
    describe_job *j = work;
    calls_cancel(j->call);
    free(j);
}

/* The row, under the name that the client gave. */
static void answer_row(gateway_request *rq, buf *row)
{
    const config_alias *alias = config_alias_find(rq->config, rq->alias);
    buf out = {0};
    if (rq->alias)
        put_as_alias(&out, rq->alias, alias ? alias->model : json_text_of(rq->variant, "from"), row);
    if (asks_as_anthropic(rq))
        answer_for_anthropic(rq, rq->alias ? &out : row, false);
    else
        request_json(rq, 200, rq->alias ? &out : row);
    buf_done(&out);
    buf_done(row);
}

/* The model itself, or the adapter that is named behind it. */
static void answer_described(gateway_request *rq, const char *name, const char *model,
                             const Shoal__V1__ModelInfo *info)
{
    const char *colon = strchr(name, ':');
    size_t i = colon ? find_adapter(info, colon + 1) : 0;
    buf out = {0};
    if (colon && i == info->n_adapters) {
        api_error e;
        api_error_no_model(&e, name);
        request_error(rq, &e);
        return;
    }
    if (colon)
        put_adapter(&out, model, REPLICA_READY, info, i);
    else
        put_model(&out, rq, model, REPLICA_READY, "", info);
    answer_row(rq, &out);
}

static void on_described(void *user, const call_result *r, const Shoal__V1__ModelInfo *info)
{
    describe_job *j = user;
    gateway_request *rq = j->rq;
    request_note_result(rq, r);
    if (r->status == 0) {
        answer_described(rq, j->name, r->model, info);
    } else {
        api_error e;
        api_error_from_call(&e, r);
        request_error(rq, &e);
    }
    free(j);
}

static void answer_route(gateway_request *rq, const config_route *r)
{
    buf out = {0};
    routed_put_model(&out, r);
    answer_row(rq, &out);
}

/* NAME or NAME:latest; NULL: it is none of a pipeline that chats. */
static const config_pipeline *find_pipeline(const gateway_request *rq, const char *name)
{
    char base[96];
    size_t n = strcspn(name, ":");
    if (n >= sizeof base || (name[n] && strcmp(name + n, ":latest") != 0)) return NULL;
    snprintf(base, sizeof base, "%.*s", (int)n, name);
    return pipeline_calls_find(rq->config, base);
}

static void answer_pipeline(gateway_request *rq, const config_pipeline *p)
{
    buf out = {0};
    put_pipeline(&out, p);
    answer_row(rq, &out);
}

/* given: what the client calls it, for errors. */
static void status_describe(gateway_request *rq, const char *given, const char *served)
{
    char name[96];
    bool known;
    api_error e;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(served, ":"), served);
    calls_info(rq->calls, name, &known);
    known = known && strlen(served) < sizeof((describe_job *)0)->name;
    describe_job *j = known ? calloc(1, sizeof *j) : NULL;
    if (!j) {
        if (known)
            api_error_nomem(&e);
        else
            api_error_no_model(&e, given);
        request_error(rq, &e);
        return;
    }
    strcpy(j->name, served);
    call_context ctx = request_context(rq, "endpoint");
    Shoal__V1__DescribeRequest req = SHOAL__V1__DESCRIBE_REQUEST__INIT;
    j->rq = rq;
    request_watch(rq, describe_gone, j);
    j->call = calls_describe(rq->calls, name, &req, &ctx, on_described, j);
    if (j->call) return;
    free(j);
    request_watch(rq, NULL, NULL);
    api_error_nomem(&e);
    request_error(rq, &e);
}

static bool has_adapter_latest(const gateway_request *rq, const char *name)
{
    char base[NAME_BYTES_MAX + 1];
    const char *model = name_without_latest(base, name);
    const Shoal__V1__ModelInfo *info = model == base ? calls_info(rq->calls, model, NULL) : NULL;
    for (size_t i = 0; info && i < info->n_adapters; i++)
        if (strcmp(info->adapters[i], "latest") == 0) return true;
    return false;
}

/* Behind the endpoint's path the name, which may hold slashes ("openai/gpt-4o-mini"), encoded or not. */
void status_model(gateway_request *rq)
{
    const char *path = request_path(rq) + strlen(rq->endpoint->path);
    char *name = NULL;
    api_error e;
    int rc = query_segment(path, strlen(path), &name, &e);
    const char *served = model_resolve_alias(rq, name);
    char base[NAME_BYTES_MAX + 1];
    if (rc == 0 && !has_adapter_latest(rq, served)) served = name_without_latest(base, served);
    if (rc == 0) rc = admission_may_use(rq, served, &e);
    const config_route *route = routed_find(rq, served);
    if (rc != 0)
        request_error(rq, &e);
    else if (route)
        answer_route(rq, route);
    else if (find_pipeline(rq, served))
        answer_pipeline(rq, find_pipeline(rq, served));
    else
        status_describe(rq, name, served);
    free(name);
}

/* ---- health -------------------------------------------------------------------------------------- */

void status_health(gateway_request *rq)
{
    static const char OK[] = "{\"status\":\"ok\"}";
    request_json(rq, 200, &(buf){.data = (char *)OK, .len = sizeof OK - 1});
}

static void put_replica(buf *out, const replica *r)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "id", r->id);
    json_put_text(out, "model", r->model);
    json_put_text(out, "state", describe_replica_state(r));
    json_put_text(out, "reason", r->reason);
    if (r->standby) buf_printf(out, ",\"standby\":true,\"stands_in\":%s", r->stands_in ? "true" : "false");
    if (*r->process.report) json_put_text(out, "crash_report", r->process.report);
    buf_printf(out, ",\"pid\":%d,\"restarts\":%u,\"crashes\":%u}", r->process.pid, r->process.n_restarts,
               r->process.n_crashes);
}

void status_put_sources(buf *out, const registry *g)
{
    buf_puts(out, "\"sources\":[");
    for (size_t i = 0; i < registry_count_sources(g); i++) {
        const source *s = registry_source_at(g, i);
        json_put_open(out, NULL, '{');
        json_put_text(out, "name", source_name(s));
        buf_printf(out, ",\"synced\":%s", source_is_synced(s) ? "true" : "false");
        json_put_text(out, "trouble", source_trouble(s));
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

/* /readyz?model=NAME */
static void answer_ready_one(gateway_request *rq, const char *name)
{
    char why[READINESS_WHY_SIZE];
    bool draining = rq->gateway->withdrawn;
    readiness r = readiness_of(rq->gateway, name, why);
    if (r == READINESS_UNKNOWN) {
        api_error e;
        api_error_no_model(&e, name);
        request_error(rq, &e);
        return;
    }
    bool ready = r == READINESS_READY && !draining;
    buf out = {0};
    buf_printf(&out, "{\"status\":\"%s\"", draining ? "draining" : ready ? "ready" : "not_ready");
    json_put_text(&out, "model", name);
    json_put_text(&out, "reason", draining ? "the server is shutting down" : why);
    buf_putc(&out, '}');
    request_json(rq, ready ? 200 : 503, &out);
    buf_done(&out);
}

static void answer_ready_all(gateway_request *rq)
{
    registry *g = rq->registry;
    bool draining = rq->gateway->withdrawn, ready = registry_all_ready(g) && !draining;
    buf out = {0};
    buf_printf(&out, "{\"status\":\"%s\",\"replicas\":[",
               draining ? "draining"
               : ready  ? "ready"
                        : "not_ready");
    for (size_t i = 0; i < registry_count(g); i++) put_replica(&out, registry_at(g, i));
    buf_printf(&out, "],\"restarts\":%u,", handover_restarts());
    status_put_sources(&out, g);
    readiness_put_missing(&out, rq->gateway);
    buf_putc(&out, '}');
    request_json(rq, ready ? 200 : 503, &out);
    buf_done(&out);
}

void status_ready(gateway_request *rq)
{
    char *name = NULL;
    api_error e;
    if (query_value(request_query(rq), "model", &name, &e) != 0)
        request_error(rq, &e);
    else if (name)
        answer_ready_one(rq, name);
    else
        answer_ready_all(rq);
    free(name);
}

void status_metrics(gateway_request *rq)
{
    static const char *const TYPES[] = {[METRICS_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
                                        [METRICS_OPEN] =
                                            "application/openmetrics-text; version=1.0.0; charset=utf-8"};
    const char *accept = request_header(rq, "accept");
    metrics_form form =
        accept && strstr(accept, "application/openmetrics-text") ? METRICS_OPEN : METRICS_PROMETHEUS;
    const buf *text = gateway_metrics_text(rq->gateway, rq->config, form);
    request_text(rq, text->failed ? 500 : 200, TYPES[form], text);
}
