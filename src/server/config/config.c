/* config.c: shoal.yaml from a file to a checked gateway_config. */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "os/installed.h"
#include "config/config_prices.h"
#include "config/config_schema.h"
#include "wire/transport.h"

#define CONFIG_MAX_BYTES (1u << 20)

/* Lives in `mem`, as all it points to but the texts, which are the document's. */
typedef struct config_file {
    gateway_config pub; /* first: the public functions find the file from it */
    arena *mem;
    yaml_doc *doc;
    config_faults *faults; /* NULL: the first error ends it */
} config_file;

/* ---- where a field stands ---- */

/* The place of the map's key that the path begins with: the longest, as names may hold what ends a key
 * ("llama3.2:1b"). n->n when there is none. */
static size_t find_key(const yaml_node *n, const char *path)
{
    size_t best = n->n;
    for (size_t i = 0; n->kind == YAML_MAP && i < n->n; i++) {
        size_t len = n->keys[i]->len;
        if (strncmp(n->keys[i]->text, path, len) != 0 || (path[len] && !strchr(".[:", path[len]))) continue;
        if (best == n->n || len > n->keys[best]->len) best = i;
    }
    return best;
}

/* The next part of a path, "key" or "[i]", below `n`: its value, with the node that has the line in *ret_at.
 * NULL when there is none. */
static const yaml_node *config_step(const yaml_node *n, const char **path, const yaml_node **ret_at)
{
    const yaml_node *const none = NULL;
    char *end = NULL;
    if (**path == '[') {
        size_t i = strtoul(*path + 1, &end, 10);
        *path = *end == ']' ? end + 1 : end;
        if (n->kind != YAML_LIST || i >= n->n) return none;
        return *ret_at = n->items[i];
    }
    *path += **path == '.';
    size_t i = find_key(n, *path);
    *path += i < n->n ? n->keys[i]->len : strcspn(*path, ".[:");
    if (i >= n->n) return none;
    *ret_at = n->keys[i];
    return n->items[i];
}

/* The node that a sentence is about, which begins with a field's path; the deepest part that exists. */
static const yaml_node *find_place(const yaml_doc *doc, const char *sentence)
{
    const yaml_node *n = yaml_root(doc), *at = n;
    while (n && *sentence && *sentence != ':' && *sentence != ' ') n = config_step(n, &sentence, &at);
    return at;
}

static int locate(const config_file *f, int rc, shoal_err *err)
{
    if (!err || rc != SHOAL_EINVALID) return rc;
    char sentence[sizeof err->message];
    memcpy(sentence, err->message, sizeof sentence);
    return yaml_fail(f->doc, find_place(f->doc, sentence), err, "%s", sentence);
}

int config_fail(const gateway_config *c, shoal_err *err, const char *fmt, ...)
{
    shoal_err own;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(own.message, sizeof own.message, fmt, ap);
    va_end(ap);
    int rc = locate((const config_file *)c, SHOAL_EINVALID, &own);
    return err_set(err, rc, "%s", own.message);
}

int config_found(const gateway_config *c, int rc, shoal_err *err)
{
    return config_faults_add(((const config_file *)c)->faults, rc, err);
}

int config_found_at(const gateway_config *c, int rc, shoal_err *err)
{
    return config_found(c, locate((const config_file *)c, rc, err), err);
}

int config_found_none(const gateway_config *c, int rc, shoal_err *err)
{
    return config_faults_end(((const config_file *)c)->faults, rc, err);
}

const char *config_keep(gateway_config *c, const char *s)
{
    return arena_strdup(((config_file *)c)->mem, s);
}

sampling_defaults config_sampling_said(const config_sampling *s)
{
    sampling_defaults d = {0};
#define SAID(field, min, max) \
    if (s->field) d.field = (float)*s->field, d.said |= SAMPLING_BIT(field);
    SAMPLING_TABLE(SAID)
#undef SAID
    return d;
}

/* ---- files that it names ---- */

/* Relative paths start at the configuration's folder, so that a service finds its files from any
 * working directory. dir NULL: that is the working directory, and they stay as they are. */
static int resolve(config_file *f, const char **path, const char *dir, shoal_err *err)
{
    if (!*path || **path == '/' || !dir) return 0;
    *path = arena_printf(f->mem, "%s/%s", dir, *path);
    return *path ? 0 : err_nomem(err);
}

/* Of a file that may have come with the program: what is not in the configuration's folder is looked for
 * there, so that the shipped configuration serves from /etc/shoal. */
static int resolve_shipped(config_file *f, const char **path, const char *dir, shoal_err *err)
{
    char installed[INSTALLED_PATH_BYTES];
    const char *name = *path;
    int rc = resolve(f, path, dir, err);
    if (rc != 0 || !name || *name == '/' || file_exists(*path)) return rc;
    if (!installed_find(installed, sizeof installed, name)) return 0;
    *path = arena_strdup(f->mem, installed);
    return *path ? 0 : err_nomem(err);
}

static int resolve_adapters(config_file *f, const config_model *m, const char *dir, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < m->n_adapters; i++) rc = resolve(f, &m->adapters[i].path, dir, err);
    return rc;
}

static int resolve_discovery(config_file *f, const char *dir, shoal_err *err)
{
    config_etcd *e = &f->pub.etcd;
    config_worker_tls *t = &f->pub.discovery_tls;
    const char **paths[] = {&e->ca, &e->cert, &e->key, &e->password_file, &t->cert, &t->key, &t->ca};
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof paths / sizeof *paths; i++) rc = resolve(f, paths[i], dir, err);
    return rc;
}

static int resolve_otel(config_file *f, config_otel *o, const char *dir, shoal_err *err)
{
    int rc = resolve(f, &o->ca, dir, err);
    for (size_t i = 0; !rc && i < o->n_headers; i++) rc = resolve(f, &o->headers[i].file, dir, err);
    return rc;
}

static int resolve_ensemble(config_file *f, config_ensemble *e, const char *dir, shoal_err *err)
{
    int rc = 0;
    for (size_t k = 0; !rc && k < e->n_members; k++)
        rc = resolve_shipped(f, &e->members[k].calibration, dir, err);
    for (size_t k = 0; !rc && k < e->n_checks; k++) rc = resolve_shipped(f, &e->checks[k].lexicon, dir, err);
    for (size_t k = 0; !rc && k < e->n_checks; k++)
        rc = resolve_shipped(f, &e->checks[k].functions, dir, err);
    for (size_t k = 0; !rc && k < e->n_checks; k++) rc = resolve_shipped(f, &e->checks[k].schema, dir, err);
    if (!rc) rc = resolve_shipped(f, &e->score.schema, dir, err);
    return rc;
}

static int resolve_paths(config_file *f, const char *config_path, shoal_err *err)
{
    gateway_config *c = &f->pub;
    const char *slash = strrchr(config_path, '/'), *dir = NULL;
    if (slash && !(dir = arena_strndup(f->mem, config_path, (size_t)(slash - config_path))))
        return err_nomem(err);
    int rc = resolve(f, &c->tls_cert, dir, err);
    if (!rc) rc = resolve(f, &c->tls_key, dir, err);
    if (!rc) rc = resolve(f, &c->retrieval_path, dir, err);
    if (!rc) rc = resolve(f, &c->packed_folder, dir, err);
    if (!rc) rc = resolve(f, &c->sessions.path, dir, err);
    if (!rc) rc = resolve(f, &c->sessions.key_file, dir, err);
    if (!rc) rc = resolve(f, &c->cluster_state, dir, err);
    if (!rc) rc = resolve_shipped(f, &c->manifest, dir, err);
    if (!rc) rc = resolve(f, &c->library.store, dir, err);
    for (size_t i = 0; !rc && i < c->library.n_folders; i++)
        rc = resolve(f, &c->library.folders[i], dir, err);
    if (!rc) rc = resolve_discovery(f, dir, err);
    if (!rc) rc = resolve_otel(f, &c->otel, dir, err);
    for (size_t i = 0; !rc && i < c->n_models; i++) rc = resolve_shipped(f, &c->models[i].path, dir, err);
    for (size_t i = 0; !rc && i < c->n_models; i++) rc = resolve_adapters(f, &c->models[i], dir, err);
    for (size_t i = 0; !rc && i < c->n_pipelines; i++) {
        config_pipeline *p = &c->pipelines[i];
        rc = resolve_shipped(f, &p->functions, dir, err);
        for (unsigned k = 0; !rc && k < p->n_stages; k++)
            rc = resolve_shipped(f, &p->stages[k].lexicon_path, dir, err);
        for (unsigned k = 0; !rc && k < p->n_stages; k++)
            rc = resolve_shipped(f, &p->stages[k].forms_path, dir, err);
    }
    for (size_t i = 0; !rc && i < c->n_hosts; i++) {
        rc = resolve(f, &c->hosts[i].ca, dir, err);
        for (size_t k = 0; !rc && k < c->hosts[i].n_headers; k++)
            rc = resolve(f, &c->hosts[i].headers[k].file, dir, err);
    }
    for (size_t i = 0; !rc && i < c->n_mcp_servers; i++) {
        mcp_rule *m = &c->mcp_servers[i];
        rc = resolve(f, &m->ca, dir, err);
        for (size_t k = 0; !rc && k < m->n_headers; k++) rc = resolve(f, &m->headers[k].file, dir, err);
        for (size_t k = 0; !rc && k < m->n_env; k++) rc = resolve(f, &m->env[k].file, dir, err);
    }
    for (size_t i = 0; !rc && i < c->n_ensembles; i++) rc = resolve_ensemble(f, &c->ensembles[i], dir, err);
    for (size_t i = 0; !rc && i < c->book.n_domains; i++)
        rc = resolve_shipped(f, &c->book.domains[i].centroids_path, dir, err);
    return rc;
}

static int open_pipelines(config_file *f, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < f->pub.n_pipelines; i++) {
        char where[48];
        snprintf(where, sizeof where, "pipelines[%zu].", i);
        rc = config_found_at(&f->pub, pipeline_open(&f->pub.pipelines[i], where, err), err);
    }
    return rc;
}

static int check_readable(const config_file *f, const char *field, const char *path, shoal_err *err)
{
    if (!path || access(path, R_OK) == 0) return 0;
    int rc = config_fail(&f->pub, err, "%s: '%s' cannot be read: %s", field, path, strerror(errno));
    return config_found(&f->pub, rc, err);
}

static int check_adapters(const config_file *f, size_t i, shoal_err *err)
{
    const config_model *m = &f->pub.models[i];
    char field[80];
    int rc = 0;
    for (size_t k = 0; !rc && k < m->n_adapters; k++) {
        snprintf(field, sizeof field, "models[%zu].adapters[%zu].path", i, k);
        rc = check_readable(f, field, m->adapters[k].path, err);
    }
    return rc;
}

/* Load what the server will load, so that a wrong file is found before anything starts. */
static int check_context(const config_file *f, const char *section, tls_side side, const tls_options *o,
                         shoal_err *err)
{
    shoal_err why;
    tls_context *ctx = NULL;
    int rc = tls_context_new(&ctx, side, o, &why);
    tls_context_unref(ctx);
    if (!rc) return 0;
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    return config_found(&f->pub, config_fail(&f->pub, err, "%s: %s", section, why.message), err);
}

static int check_tls(const config_file *f, shoal_err *err)
{
    const tls_options o = {.cert_file = f->pub.tls_cert, .key_file = f->pub.tls_key};
    return o.cert_file ? check_context(f, "tls", TLS_SERVER, &o, err) : 0;
}

/* The same for what etcd is spoken to with. */
static int check_etcd(const config_file *f, shoal_err *err)
{
    const config_etcd *e = &f->pub.etcd;
    int rc = check_readable(f, "discovery.etcd.ca", e->ca, err);
    if (!rc) rc = check_readable(f, "discovery.etcd.cert", e->cert, err);
    if (!rc) rc = check_readable(f, "discovery.etcd.key", e->key, err);
    if (!rc) rc = check_readable(f, "discovery.etcd.password_file", e->password_file, err);
    if (rc || (!e->ca && !e->cert)) return rc;
    const tls_options o = {.cert_file = e->cert, .key_file = e->key, .ca_file = e->ca};
    return check_context(f, "discovery.etcd", TLS_CLIENT, &o, err);
}

/* And for what workers are spoken to with. */
static int check_worker_tls(const config_file *f, shoal_err *err)
{
    const config_worker_tls *t = &f->pub.discovery_tls;
    int rc = check_readable(f, "discovery.tls.ca", t->ca, err);
    if (!rc) rc = check_readable(f, "discovery.tls.cert", t->cert, err);
    if (!rc) rc = check_readable(f, "discovery.tls.key", t->key, err);
    if (rc || !t->cert) return rc;
    const tls_options o = {.cert_file = t->cert, .key_file = t->key, .ca_file = t->ca};
    return check_context(f, "discovery.tls", TLS_CLIENT, &o, err);
}

static int check_files(const config_file *f, shoal_err *err)
{
    const gateway_config *c = &f->pub;
    int rc = check_readable(f, "tls.cert", c->tls_cert, err);
    if (!rc) rc = check_readable(f, "tls.key", c->tls_key, err);
    if (!rc) rc = check_readable(f, "manifest", c->manifest, err);
    for (size_t i = 0; !rc && i < c->n_models; i++) {
        char field[48];
        snprintf(field, sizeof field, "models[%zu].path", i);
        rc = check_readable(f, field, c->models[i].path, err);
        if (!rc) rc = check_adapters(f, i, err);
    }
    if (!rc) rc = check_etcd(f, err);
    if (!rc) rc = check_worker_tls(f, err);
    return rc ? rc : check_tls(f, err);
}

/* ---- parse ---- */

/* What lacks a key or an entry is not checked: it would seem to miss that. */
static int read_checked(config_file *f, shoal_err *err)
{
    int rc = config_read_all(&config_schema, f->pub.kinds, f->doc, f->mem, &f->pub, f->faults, err);
    rc = config_faults_end(f->faults, rc, err);
    for (size_t i = 0; !rc && i < f->pub.n_pipelines; i++) f->pub.pipelines[i].kinds = f->pub.kinds;
    if (!rc) rc = config_check(&f->pub, err);
    return rc ? rc : config_prices_fill(&f->pub, f->mem, err);
}

/* With `faults`, what was found wrong with a configuration that could be read is there alone. */
static int parse(gateway_config **ret, const stage_registry *kinds, const char *yaml, size_t len,
                 const char *what, config_faults *faults, shoal_err *err)
{
    if (len > CONFIG_MAX_BYTES)
        return err_set(err, SHOAL_ELIMIT, "%s: a configuration may hold %u bytes, this one has %zu", what,
                       CONFIG_MAX_BYTES, len);
    yaml_doc *doc = NULL;
    int rc = yaml_parse(&doc, yaml, len, what, err);
    if (rc && rc != SHOAL_ENOMEM && err)
        err->code = SHOAL_EINVALID; /* whatever is wrong, a person wrote it */
    if (rc) return rc == SHOAL_ENOMEM ? rc : SHOAL_EINVALID;
    arena *mem = arena_new(0);
    config_file *f = mem ? arena_alloc(mem, sizeof *f) : NULL;
    if (!f) {
        arena_free(mem);
        yaml_doc_free(doc);
        return err_nomem(err);
    }
    f->mem = mem;
    f->doc = doc;
    f->pub.kinds = kinds ? kinds : &PLAIN_STAGES;
    f->faults = faults;
    rc = read_checked(f, err);
    if (rc)
        config_free(&f->pub);
    else
        *ret = &f->pub;
    return rc;
}

int config_parse(gateway_config **ret, const stage_registry *kinds, const char *yaml, size_t len,
                 const char *what, shoal_err *err)
{
    return parse(ret, kinds, yaml, len, what, NULL, err);
}

int config_parse_all(gateway_config **ret, const stage_registry *kinds, const char *yaml, size_t len,
                     const char *what, config_faults *faults, shoal_err *err)
{
    gateway_config *c = NULL;
    int rc = parse(&c, kinds, yaml, len, what, faults, err);
    if (!rc && (rc = config_faults_end(faults, 0, err)) != 0)
        config_free(c);
    else if (!rc)
        *ret = c;
    return rc;
}

static int config_config_load(gateway_config **ret, const stage_registry *kinds, const char *path,
                              bool trained, config_faults *faults, shoal_err *err)
{
    buf text = {0};
    gateway_config *c = NULL;
    int rc = file_read(&text, path, CONFIG_MAX_BYTES, err);
    if (!rc) rc = parse(&c, kinds, text.data ? text.data : "", text.len, path, faults, err);
    if (!rc) rc = resolve_paths((config_file *)c, path, err);
    if (!rc) rc = check_files((config_file *)c, err);
    if (!rc) rc = config_found_none(c, 0, err);
    if (!rc) rc = open_pipelines((config_file *)c, err);
    if (!rc && trained) rc = config_found_at(c, routes_open(&c->book, err), err);
    if (!rc) rc = config_found_none(c, 0, err);
    if (rc)
        config_free(c);
    else
        *ret = c;
    buf_done(&text);
    return rc;
}

int config_load(gateway_config **ret, const stage_registry *kinds, const char *path, shoal_err *err)
{
    return config_config_load(ret, kinds, path, true, NULL, err);
}

int config_load_untrained(gateway_config **ret, const stage_registry *kinds, const char *path, shoal_err *err)
{
    return config_config_load(ret, kinds, path, false, NULL, err);
}

int config_load_all(gateway_config **ret, const stage_registry *kinds, const char *path,
                    config_faults *faults, shoal_err *err)
{
    return config_config_load(ret, kinds, path, true, faults, err);
}

void config_free(gateway_config *c)
{
    if (!c) return;
    config_file *f = (config_file *)c;
    for (size_t i = 0; i < c->n_pipelines; i++) pipeline_close(&c->pipelines[i]);
    routes_close(&c->book);
    yaml_doc_free(f->doc);
    arena_free(f->mem);
}

const config_model *config_find_model(const gateway_config *c, const char *name)
{
    for (size_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, name) == 0) return &c->models[i];
    return NULL;
}

unsigned config_replicas(const config_model *m)
{
    return m->replicas || m->scale.max ? m->replicas : 1;
}

bool config_has_adapter(const config_model *m, const char *name)
{
    for (size_t i = 0; i < m->n_adapters; i++)
        if (strcmp(m->adapters[i].name, name) == 0) return true;
    return false;
}
