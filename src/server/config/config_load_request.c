/* config_load_request.c: see config_load_request.h. */
#include "config/config_load_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/name.h"
#include "base/utf8.h"
#include "config/config_schema.h"

/* ---- read ------------------------------------------------------------------------------------------ */

/* The sentence without ":1: " in front of it, which is of no use to whoever sent one line. */
static int without_place(int rc, shoal_err *err)
{
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    char sentence[sizeof err->message];
    const char *at = err->message + strspn(err->message, ":0123456789 ");
    snprintf(sentence, sizeof sentence, "%s", at);
    return err_set(err, SHOAL_EINVALID, "%s", sentence);
}

static int config_load_request_check(const config_load_request *l, shoal_err *err)
{
    uint8_t digest[32];
    if (!l->what == !l->as.path)
        return err_set(
            err, SHOAL_EINVALID,
            "model: say which model, by \"model\" (a name, or what shoal pull takes) or by \"path\"");
    char such[NAME_SUCH_SIZE];
    if (l->as.name && !name_is_fine(l->as.name, strlen(l->as.name)))
        return err_set(err, SHOAL_EINVALID,
                       "name: '%.100s' " NAME_RULE
                       "%s; aliases of shoal.yaml may hold ':' and '/', and so may "
                       "names of copies (ollama cp)",
                       l->as.name, name_such(such, l->as.name));
    if (l->as.sha256 && !hex_decode(l->as.sha256, strlen(l->as.sha256), digest, sizeof digest))
        return err_set(err, SHOAL_EINVALID, "sha256: must be the 64 hex digits of the file's SHA-256");
    return 0;
}

int config_load_request_parse(config_load_request *ret, arena *mem, const json_t *o, shoal_err *err)
{
    config_load_request l = {0};
    buf text = {0};
    yaml_doc *doc = NULL;
    shoal_err own;
    if (!json_is_object(o)) return err_set(err, SHOAL_EINVALID, "the body must be a JSON object");
    int rc = json_put(&text, o) != 0 ? err_nomem(&own) : yaml_parse(&doc, text.data, text.len, "", &own);
    if (rc == 0) rc = config_read(&config_load_request_schema, NULL, doc, mem, &l, &own);
    if (rc == 0 && !config_load_request_copy(ret, mem, &l)) rc = err_nomem(&own);
    yaml_doc_free(doc);
    buf_done(&text);
    if (rc == 0) return config_load_request_check(ret, err);
    rc = without_place(rc, &own);
    return err_set(err, rc, "%s", own.message);
}

/* ---- write ----------------------------------------------------------------------------------------- */

typedef const char *text;

static const struct {
    const char *key;
    size_t at;
} texts[] = {{"model", offsetof(config_load_request, what)},
             {"name", offsetof(config_load_request, as.name)},
             {"path", offsetof(config_load_request, as.path)},
             {"sha256", offsetof(config_load_request, as.sha256)}};
enum { N_TEXTS = sizeof texts / sizeof *texts };

bool config_load_request_copy(config_load_request *ret, arena *mem, const config_load_request *l)
{
    config_load_request copy = *l;
    for (size_t i = 0; i < N_TEXTS; i++) {
        text *at = (text *)((char *)&copy + texts[i].at);
        if (*at && !(*at = arena_strdup(mem, *at))) return false;
    }
    file_user *reader = l->reader ? arena_alloc(mem, sizeof *reader) : NULL;
    if (l->reader && !reader) return false;
    if (reader) *reader = *l->reader;
    copy.reader = reader;
    *ret = copy;
    return true;
}

json_t *config_load_request_json(const config_load_request *l)
{
    const struct {
        const char *key;
        unsigned value;
    } sizes[] = {{"replicas", l->as.replicas},
                 {"threads", l->as.threads},
                 {"context", l->as.context},
                 {"kv_mb", l->as.kv_mb}};
    json_t *o = json_object();
    bool ok = o != NULL;
    for (size_t i = 0; ok && i < N_TEXTS; i++) {
        text s = *(const text *)((const char *)l + texts[i].at);
        ok = !s || json_object_set_new(o, texts[i].key, json_string(s)) == 0;
    }
    for (size_t i = 0; ok && i < sizeof sizes / sizeof *sizes; i++)
        ok = !sizes[i].value || json_object_set_new(o, sizes[i].key, json_integer(sizes[i].value)) == 0;
    if (ok && l->keep_alive_s != LOAD_REQUEST_STAYS)
        ok = json_object_set_new(o, "keep_alive_s", json_integer((json_int_t)l->keep_alive_s)) == 0;
    if (ok) ok = tuning_put_json(o, &l->as.tuning) == 0;
    if (ok && l->keep) ok = json_object_set_new(o, "keep", json_true()) == 0;
    if (ok) return o;
    json_decref(o);
    return NULL;
}

/* ---- who needs it ---------------------------------------------------------------------------------- */

typedef struct search {
    const char *model;
    bool found;
} search;

/* "MODEL:ADAPTER" is asked of MODEL. */
static bool names(const char *said, const char *model)
{
    size_t n = said ? strcspn(said, ":") : 0;
    return n > 0 && strlen(model) == n && memcmp(said, model, n) == 0;
}

static void config_load_request_look(void *user, const char *name)
{
    search *s = user;
    s->found |= names(name, s->model);
}

static bool ensemble_asks(const config_ensemble *e, const char *model)
{
    bool found = names(e->score.model, model) || names(e->score.log_prob, model);
    for (size_t i = 0; i < e->n_members; i++) found |= names(e->members[i].model, model);
    for (size_t i = 0; i < e->n_checks; i++) found |= names(e->checks[i].model, model);
    return found;
}

static bool pipeline_asks(const config_pipeline *p, const char *model)
{
    bool found = false;
    for (unsigned i = 0; i < p->n_stages; i++) found |= names(p->stages[i].model, model);
    return found;
}

static bool falls_back_to(const config_model *m, const char *model)
{
    bool found = false;
    for (size_t i = 0; i < m->n_fallback; i++) found |= names(m->fallback[i], model);
    return found;
}

void config_load_request_user(const gateway_config *c, const char *model, char *ret, size_t size)
{
    search s = {.model = model};
    *ret = '\0';
    for (size_t i = 0; i < c->n_pipelines && !*ret; i++)
        if (pipeline_asks(&c->pipelines[i], model))
            snprintf(ret, size, "the pipeline %s", c->pipelines[i].name);
    for (size_t i = 0; i < c->n_ensembles && !*ret; i++)
        if (ensemble_asks(&c->ensembles[i], model))
            snprintf(ret, size, "the ensemble %s", c->ensembles[i].name);
    for (size_t i = 0; i < c->book.n_routes && !*ret; i++) {
        route_each(&c->book.routes[i], config_load_request_look, &s);
        if (s.found) snprintf(ret, size, "the route %s", c->book.routes[i].name);
    }
    for (size_t i = 0; i < c->book.n_domains && !*ret; i++)
        if (names(c->book.domains[i].model, model))
            snprintf(ret, size, "the domains %s", c->book.domains[i].name);
    for (size_t i = 0; i < c->n_models && !*ret; i++)
        if (falls_back_to(&c->models[i], model))
            snprintf(ret, size, "the model %s, which falls back to it,", c->models[i].name);
    if (!*ret && config_cache_uses(&c->cache, model)) snprintf(ret, size, "the cache");
}
