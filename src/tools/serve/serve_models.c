/* serve_models.c: from the models of a configuration to files, and what the files say of themselves. */
#include "serve/serve_models.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend_tuning.h"
#include "json/json.h"
#include "json/tuning.h"
#include "kinds/model_kind.h"
#include "config/config_fit.h"
#include "infer/context_plan.h"
#include "infer/model_about.h"
#include "model/adapter.h"
#include "model/model.h"
#include "serve/serve_calibrations.h"
#include "serve/serve_stages.h"
#include "serve/serve_tools.h"

enum { DESCRIBE_MAX_S = 30, DESCRIBED_MAX_BYTES = 64 << 20 };

/* ---- files ---- */

static int not_in_manifest(const gateway_config *c, size_t i, const manifest *m, const char *path,
                           shoal_err *err)
{
    char names[300] = "";
    for (size_t k = 0, at = 0; k < manifest_count(m) && at < sizeof names; k++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", k ? ", " : "", manifest_at(m, k)->name);
    return config_fail(c, err, "models[%zu].name: '%s' has no path and is not in %s, which has only %s", i,
                       c->models[i].name, path, names);
}

static int find_named(const gateway_config *c, size_t i, const manifest *m, const char *manifest_path,
                      worker_spec *ret, shoal_err *err)
{
    const manifest_entry *e = manifest_find(m, c->models[i].name);
    if (!e) return not_in_manifest(c, i, m, manifest_path, err);
    ret->path = strdup(e->file);
    if (!ret->sha256) ret->sha256 = strdup(e->sha256);
    return ret->path && ret->sha256 ? 0 : err_nomem(err);
}

/* Open the manifest that models without a path are looked up in. */
static int open_manifest(const gateway_config *c, size_t i, manifest **ret, char **ret_path, shoal_err *err)
{
    shoal_err why;
    int rc = 0;
    *ret_path = c->manifest ? strdup(c->manifest) : NULL;
    if (c->manifest && !*ret_path) return err_nomem(err);
    if (!c->manifest) rc = manifest_locate(ret_path, &why);
    if (rc)
        return config_fail(c, err, "models[%zu].name: '%s' has no path: %s", i, c->models[i].name,
                           why.message);
    rc = manifest_open(ret, *ret_path, &why);
    if (!rc) return 0;
    return rc == SHOAL_ENOMEM ? err_nomem(err) : config_fail(c, err, "manifest: %s", why.message);
}

_Static_assert(CONFIG_ADAPTERS_MAX == WORKER_SPEC_ADAPTERS, "a worker gets all of its model's adapters");
_Static_assert(WORKER_SPEC_OPTIONS == TUNING_TEXT_BYTES, "and all of its options");

static int name_adapters(const config_model *m, worker_spec *ret)
{
    for (size_t i = 0; i < m->n_adapters; i++) {
        buf text = {0};
        buf_printf(&text, "%s=%s", m->adapters[i].name, m->adapters[i].path);
        ret->adapters[i] = text.failed ? NULL : strdup(text.data);
        buf_done(&text);
        if (!ret->adapters[i]) return SHOAL_ENOMEM;
    }
    return 0;
}

#define WIRE_NAME(e, n) n,
static const char *const wires[] = {CONFIG_WIRE_TABLE(WIRE_NAME)};
#undef WIRE_NAME

static int serve_models_find_model(const gateway_config *c, size_t i, manifest **m, char **manifest_path,
                                   worker_spec *ret, shoal_err *err)
{
    const config_model *cm = &c->models[i];
    *ret = (worker_spec){.model = cm->name,
                         .n_replicas = (int)config_replicas(cm),
                         .n_threads = (int)cm->threads,
                         .kv_bytes = (size_t)cm->kv_mb << 20,
                         .sound_bytes = (size_t)cm->sound_mb << 20,
                         .n_ctx = cm->context,
                         .wire = cm->wire == CONFIG_WIRE_F32 ? NULL : wires[cm->wire]};
    tuning_format(&cm->tuning, ret->options);
    if (cm->external) return 0;
    if (cm->sha256 && !(ret->sha256 = strdup(cm->sha256))) return err_nomem(err);
    if (name_adapters(cm, ret) != 0) return err_nomem(err);
    int rc = 0;
    if (cm->path)
        rc = (ret->path = strdup(cm->path)) ? 0 : err_nomem(err);
    else if (!*m)
        rc = open_manifest(c, i, m, manifest_path, err);
    if (!rc && !cm->path) rc = find_named(c, i, *m, *manifest_path, ret, err);
    if (rc) return rc;
    sampling_defaults said = config_sampling_said(&cm->sampling);
    manifest_sampling(ret->path, &ret->sampling);
    sampling_override(&ret->sampling, &said);
    return 0;
}

int serve_models_find(worker_spec **ret, const gateway_config *c, shoal_err *err)
{
    manifest *m = NULL; /* opened when the first model needs it */
    char *manifest_path = NULL;
    worker_spec *specs = calloc(c->n_models, sizeof *specs);
    int rc = specs ? 0 : err_nomem(err);
    for (size_t i = 0; !rc && i < c->n_models; i++)
        rc = config_found(c, serve_models_find_model(c, i, &m, &manifest_path, &specs[i], err), err);
    if (!rc) rc = config_found_none(c, 0, err);
    if (!rc) rc = serve_calibrations_check(c, specs, m, manifest_path, err);
    manifest_free(m);
    free(manifest_path);
    if (rc)
        serve_models_free(specs, c->n_models);
    else
        *ret = specs;
    return rc;
}

void serve_models_free(worker_spec *specs, size_t n)
{
    for (size_t i = 0; specs && i < n; i++) {
        free((void *)specs[i].path);
        free((void *)specs[i].sha256);
        for (size_t k = 0; k < WORKER_SPEC_ADAPTERS; k++) free((void *)specs[i].adapters[k]);
    }
    free(specs);
}

/* ---- what a replica needs ------------------------------------------------------------------------ */

placement_model serve_models_want(const gateway_config *c, const worker_spec *specs, size_t i)
{
    const config_model *m = &c->models[i];
    uint64_t kv_bytes = m->kv_mb ? (uint64_t)m->kv_mb << 20 : MODEL_KV_LEAST_BYTES;
    return (placement_model){.name = m->name,
                             .n_replicas = config_replicas(m),
                             .n_least = m->scale.max ? m->replicas : 0,
                             .n_most = m->scale.max,
                             .n_standby = m->standby,
                             .memory_bytes = model_kind_measure(specs[i].path).bytes + kv_bytes,
                             .device = model_kind_of(specs[i].path)->device,
                             .labels = m->place.labels,
                             .n_labels = m->place.n_labels,
                             .nodes = m->place.nodes,
                             .n_nodes = m->place.n_nodes,
                             .spread = m->place.spread,
                             .battery = m->place.on_battery,
                             .max_rtt_ms = m->place.max_rtt_ms,
                             .rebalance = m->place.rebalance,
                             .shards = m->shards};
}

/* ---- the reader: a process that opens each model and writes a line of JSON about it ---- */

static json_t *labels_json(const char *const *labels, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) json_array_append_new(list, json_string(labels[i]));
    return list;
}

/* key: of models[i], which it is about; "": the model itself. */
static json_t *describe_error(size_t i, const char *key, const shoal_err *err)
{
    return json_pack("{s:I,s:s,s:s}", "model", (json_int_t)i, "key", key, "error", err->message);
}

/* How its worker would run it. */
static int read_options(const worker_spec *s, backend_options *ret, shoal_err *err)
{
    tuning t = {0};
    *ret = (backend_options){.path = s->path, .engine = {.n_ctx = s->n_ctx, .kv_bytes = s->kv_bytes}};
    while (ret->n_adapters < WORKER_SPEC_ADAPTERS && s->adapters[ret->n_adapters]) ret->n_adapters++;
    int rc = tuning_parse(&t, s->options, err);
    return rc == 0 ? backend_tune(ret, &t, err) : rc;
}

/* Each fits its model, or the first that does not says why. */
static int try_adapters(const worker_spec *s, const model *m, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < WORKER_SPEC_ADAPTERS && s->adapters[i]; i++) {
        adapter *a = NULL;
        rc = adapter_open(&a, strchr(s->adapters[i], '=') + 1, 1, m, err);
        adapter_unref(a);
    }
    return rc;
}

/* "shorter": {"context": 2912, "model_context": 8192, "key": "kv_mb"} where the model could hold more. */
static void describe_context(json_t *to, const model *m, const engine_options *o)
{
    size_t own = model_get_config(m)->n_ctx, served = context_plan_served(m, o);
    const char *key = context_plan_key(m, o, served);
    if (served && *key)
        json_object_set_new(to, "shorter",
                            json_pack("{s:I,s:I,s:s}", "context", (json_int_t)served, "model_context",
                                      (json_int_t)own, "key", key));
}

/* What only networks have: text, a context, adapters. */
static int check_network(const worker_spec *s, const model *m, bool digest, const char **ret_key,
                         shoal_err *err)
{
    int rc = model_check_text(m, err);
    if (rc == 0 && (rc = context_plan_check(model_get_config(m), s->n_ctx, err)) != 0) *ret_key = "context";
    return rc == 0 && digest ? try_adapters(s, m, err) : rc;
}

/* {"model": 2, "task": "classify", "labels": [...], "chat": false} or {"model": 2, "error": "..."} */
static json_t *describe_serve_models(const worker_spec *s, size_t i, bool digest)
{
    model_options o = {.no_tokenizer = !digest, .expect_sha256 = digest ? s->sha256 : NULL};
    model_about a = {0};
    shoal_err err;
    const char *key = "";
    backend_options bo;
    int rc = read_options(s, &bo, &err);
    if (rc == 0 && digest) o.regroup = bo.regroup;
    if (rc == 0) rc = model_about_open(&a, s->path, &o, &err);
    if (rc == 0 && digest) rc = backend_check_tuning(&bo, a.network, &err);
    if (rc == 0 && a.network) rc = check_network(s, a.network, digest, &key, &err);
    json_t *j = rc != 0 ? describe_error(i, key, &err)
                        : json_pack("{s:I,s:s,s:o,s:b}", "model", (json_int_t)i, "task", task_name(a.task),
                                    "labels", labels_json(a.labels, a.n_labels), "chat", a.talks);
    if (rc == 0 && j && a.network) json_object_set_new(j, "stages", serve_stages_describe(a.network));
    if (rc == 0 && j && a.network && digest) describe_context(j, a.network, &bo.engine);
    model_about_close(&a);
    return j;
}

typedef bool (*picker)(const gateway_config *c, size_t i); /* NULL: all of them */

static bool is_used(const gateway_config *c, size_t i)
{
    return config_uses_model(c, c->models[i].name);
}

static void describe_all(const gateway_config *c, const worker_spec *specs, picker pick, int fd)
{
    FILE *out = fdopen(fd, "w");
    alarm(DESCRIBE_MAX_S); /* the default action ends this process */
    for (size_t i = 0; out && i < c->n_models; i++) {
        if (c->models[i].external || (pick && !pick(c, i))) continue;
        json_t *j = describe_serve_models(&specs[i], i, !pick);
        if (!j || json_dumpf(j, out, JSON_COMPACT) != 0 || fputc('\n', out) == EOF || fflush(out) == EOF)
            break;
        json_decref(j);
    }
    _exit(0);
}

/* All that comes until the other end is closed. */
static int serve_models_read_all(int fd, buf *out, shoal_err *err)
{
    char chunk[16384];
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) != 0;) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return err_set(err, SHOAL_EIO, "reading what the models are: %s", strerror(errno));
        if (out->len + (size_t)n > DESCRIBED_MAX_BYTES)
            return err_set(err, SHOAL_ELIMIT, "the models' labels are longer than %d bytes",
                           DESCRIBED_MAX_BYTES);
        if (buf_append(out, chunk, (size_t)n)) return err_nomem(err);
    }
    return 0;
}

static int read_models(const gateway_config *c, const worker_spec *specs, picker pick, buf *out,
                       shoal_err *err)
{
    int ends[2];
    if (pipe(ends) != 0) return err_set(err, SHOAL_EIO, "pipe: %s", strerror(errno));
    fflush(NULL); /* or what is buffered would be written twice */
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        describe_all(c, specs, pick, ends[1]);
    }
    close(ends[1]);
    int rc = pid > 0 ? serve_models_read_all(ends[0], out, err)
                     : err_set(err, SHOAL_EIO, "fork: %s", strerror(errno));
    close(ends[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    return rc;
}

/* ---- what they say, against the pipelines ---- */

static int fit_one(const gateway_config *c, const char *name, const json_t *j, shoal_err *err)
{
    const json_t *list = json_object_get(j, "labels");
    size_t n = json_array_size(list);
    const char **labels = calloc(n + 1, sizeof *labels);
    if (!labels) return err_nomem(err);
    for (size_t i = 0; i < n; i++) labels[i] = json_string_value(json_array_get(list, i));
    model_facts f = {.task = json_string_value(json_object_get(j, "task")),
                     .labels = labels,
                     .n_labels = n,
                     .has_chat_template = json_is_true(json_object_get(j, "chat"))};
    int rc = config_fit(c, name, &f, err);
    free(labels);
    return rc;
}

int serve_models_fit_one(const gateway_config *c, size_t i, const json_t *said, shoal_err *err)
{
    return fit_one(c, c->models[i].name, said, err);
}

/* What was said of each model is kept in seen. */
static int use_line(const gateway_config *c, const char *line, size_t len, bool all, json_t **seen,
                    shoal_err *err)
{
    json_t *j = NULL;
    if (json_parse(&j, line, len, "model", err) != 0) return 0; /* cut short: the model counts as not seen */
    size_t i = (size_t)json_integer_value(json_object_get(j, "model"));
    const char *error = json_string_value(json_object_get(j, "error"));
    const char *key = json_string_value(json_object_get(j, "key"));
    bool about_key = key && *key;
    int rc = 0;
    if (i < c->n_models && !error) rc = fit_one(c, c->models[i].name, j, err);
    if (i < c->n_models && error && (all || about_key))
        rc = config_fail(c, err, "models[%zu]%s%s: %s", i, about_key ? "." : "", about_key ? key : "", error);
    if (i < c->n_models && !seen[i])
        seen[i] = j;
    else
        json_decref(j);
    return rc;
}

static int fit_fallbacks(const gateway_config *c, json_t *const *seen, shoal_err *err)
{
    const char **tasks = calloc(c->n_models, sizeof *tasks);
    if (!tasks) return err_nomem(err);
    for (size_t i = 0; i < c->n_models; i++) tasks[i] = json_string_value(json_object_get(seen[i], "task"));
    int rc = config_fit_fallbacks(c, tasks, err);
    free(tasks);
    return rc;
}

static int note_context(json_t *to, const char *name, const json_t *said, shoal_err *err)
{
    const json_t *s = json_object_get(said, "shorter");
    if (!to || !s) return 0;
    json_t *note = json_sprintf(
        "%s is served with a context of %lld tokens and was made for %lld: its key %s gives it more", name,
        (long long)json_integer_value(json_object_get(s, "context")),
        (long long)json_integer_value(json_object_get(s, "model_context")),
        json_string_value(json_object_get(s, "key")));
    return json_array_append_new(to, note) == 0 ? 0 : err_nomem(err);
}

static int use_lines(const gateway_config *c, const buf *lines, bool all, json_t *notes, shoal_err *err)
{
    json_t **seen = calloc(c->n_models, sizeof *seen);
    if (!seen) return err_nomem(err);
    int rc = 0;
    for (size_t at = 0; !rc && at < lines->len;) {
        const char *end = memchr(lines->data + at, '\n', lines->len - at);
        size_t len = (end ? (size_t)(end - lines->data) : lines->len) - at;
        rc = config_found(c, use_line(c, lines->data + at, len, all, seen, err), err);
        at += len + 1;
    }
    for (size_t i = 0; !rc && all && i < c->n_models; i++)
        if (!seen[i] && !c->models[i].external)
            rc = config_found(c, config_fail(c, err, "models[%zu]: the process that read its file died", i),
                              err);
    if (!rc) rc = config_found_none(c, 0, err);
    if (!rc) rc = fit_fallbacks(c, seen, err);
    for (size_t i = 0; !rc && i < c->n_models; i++) rc = note_context(notes, c->models[i].name, seen[i], err);
    for (size_t i = 0; i < c->n_models; i++) json_decref(seen[i]);
    free(seen);
    return rc;
}

static int fit(const gateway_config *c, const worker_spec *specs, bool all, json_t *notes, shoal_err *err)
{
    buf lines = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < c->n_pipelines; i++)
        rc = config_found(c, serve_tools_check(c, i, err), err);
    if (!rc) rc = read_models(c, specs, all ? NULL : is_used, &lines, err);
    if (!rc) rc = use_lines(c, &lines, all, notes, err);
    buf_done(&lines);
    return rc;
}

int serve_models_fit(const gateway_config *c, const worker_spec *specs, shoal_err *err)
{
    return fit(c, specs, false, NULL, err);
}

int serve_models_check(const gateway_config *c, const worker_spec *specs, json_t *notes, shoal_err *err)
{
    return fit(c, specs, true, notes, err);
}

/* ---- others that want to know -------------------------------------------------------------------- */

static int take_line(const gateway_config *c, const char *line, size_t len, bool *seen,
                     int (*take)(void *user, const gateway_config *c, size_t i, const json_t *said,
                                 shoal_err *err),
                     void *user, shoal_err *err)
{
    json_t *j = NULL;
    if (json_parse(&j, line, len, "model", err) != 0) return 0; /* cut short: the model counts as not seen */
    size_t i = (size_t)json_integer_value(json_object_get(j, "model"));
    const char *error = json_string_value(json_object_get(j, "error"));
    int rc = 0;
    if (i < c->n_models) {
        seen[i] = true;
        rc = error ? config_fail(c, err, "models[%zu]: %s", i, error) : take(user, c, i, j, err);
    }
    json_decref(j);
    return rc;
}

int serve_models_read(const gateway_config *c, const worker_spec *specs, picker pick,
                      int (*take)(void *user, const gateway_config *c, size_t i, const json_t *said,
                                  shoal_err *err),
                      void *user, shoal_err *err)
{
    buf lines = {0};
    bool *seen = calloc(c->n_models + 1, sizeof *seen);
    int rc = seen ? read_models(c, specs, pick, &lines, err) : err_nomem(err);
    for (size_t at = 0; rc == 0 && at < lines.len;) {
        const char *end = memchr(lines.data + at, '\n', lines.len - at);
        size_t len = (end ? (size_t)(end - lines.data) : lines.len) - at;
        rc = take_line(c, lines.data + at, len, seen, take, user, err);
        at += len + 1;
    }
    for (size_t i = 0; rc == 0 && i < c->n_models; i++)
        if (pick(c, i) && !seen[i])
            rc = config_fail(c, err, "models[%zu]: the process that read its file died", i);
    free(seen);
    buf_done(&lines);
    return rc;
}

static bool is_any(const gateway_config *c, size_t i)
{
    return i < c->n_models;
}

static int put_described(const gateway_config *c, const char *line, size_t len, json_t *to, shoal_err *err)
{
    json_t *j = NULL;
    int rc = json_parse(&j, line, len, "model", err);
    if (rc != 0) return rc == SHOAL_ENOMEM ? rc : 0; /* cut short: the model counts as not seen */
    size_t i = (size_t)json_integer_value(json_object_get(j, "model"));
    rc = i < c->n_models && json_array_set(to, i, j) != 0 ? err_nomem(err) : 0;
    json_decref(j);
    return rc;
}

int serve_models_describe(const gateway_config *c, const worker_spec *specs, json_t **ret, shoal_err *err)
{
    buf lines = {0};
    json_t *all = json_array();
    int rc = all ? read_models(c, specs, is_any, &lines, err) : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < c->n_models; i++)
        if (json_array_append_new(all, json_null()) != 0) rc = err_nomem(err);
    for (size_t at = 0; rc == 0 && at < lines.len;) {
        const char *end = memchr(lines.data + at, '\n', lines.len - at);
        size_t len = (end ? (size_t)(end - lines.data) : lines.len) - at;
        rc = put_described(c, lines.data + at, len, all, err);
        at += len + 1;
    }
    buf_done(&lines);
    if (rc == 0)
        *ret = all;
    else
        json_decref(all);
    return rc;
}
