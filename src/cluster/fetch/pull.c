/* pull.c: from a reference to files; see pull.h. */
#define _GNU_SOURCE
#include "fetch/pull.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "json/json.h"
#include "kinds/model_kind.h"
#include "base/sha256.h"
#include "logging/sanitise.h"
#include "base/utf8.h"
#include "fetch/pull_file.h"
#include "fetch/pull_plan.h"
#include "fetch/pull_manifest.h"

enum { PAGES_MAX = 200, HOSTS_MAX = 64 };

typedef struct run {
    const pull_options *o;
    arena *mem;
    pull_client *c;
    pull_auth auth;
    pull_ref ref;
    pull_plan plan;
    const char *base; /* "https://huggingface.co", without a slash behind */
    char *choices;
} run;

/* ---- addresses ----------------------------------------------------------------------------------------- */

static int set_base(run *r, shoal_err *err)
{
    const char *given =
        r->ref.kind == PULL_HF || (r->ref.kind == PULL_OLLAMA && !r->ref.host) ? r->o->endpoint : NULL;
    const char *host = r->ref.host;
    if (given)
        r->base = arena_strndup(r->mem, given, strlen(given) - (given[0] && given[strlen(given) - 1] == '/'));
    else if (r->ref.kind == PULL_HF)
        r->base = "https://huggingface.co";
    else if (!host)
        r->base = "https://registry.ollama.ai";
    else
        r->base = arena_printf(r->mem, "%s://%s", pull_host_is_loopback(host) ? "http" : "https",
                               strcmp(host, "docker.io") == 0 ? "registry-1.docker.io" : host);
    if (!r->base) return err_nomem(err);
    int rc = pull_url_check(r->base, err);
    return rc != 0 && given ? err_prefix(err, rc, "--endpoint") : rc;
}

/* base + a + one part of a path, + ... ; NULL when out of memory. */
static const char *make_url(run *r, const char *a, const char *repo, const char *b, const char *tag,
                            const char *c, const char *rest)
{
    buf url = {0};
    buf_puts(&url, r->base);
    buf_puts(&url, a);
    percent_encode(&url, repo, strlen(repo), "/");
    buf_puts(&url, b);
    percent_encode(&url, tag, strlen(tag), "");
    buf_puts(&url, c);
    if (rest) percent_encode(&url, rest, strlen(rest), "/");
    const char *copy = url.failed ? NULL : arena_strdup(r->mem, url.data);
    buf_done(&url);
    return copy;
}

/* ---- Hugging Face -------------------------------------------------------------------------------------- */

static int hf_refused(const run *r, int status, shoal_err *err)
{
    const char *repo = r->ref.repo;
    if (status == 401 || status == 403)
        return err_set(
            err, SHOAL_EAUTH,
            r->o->token ? "hf:%.200s: the token does not open it; accept its terms on its web page first"
                        : "hf:%.200s does not exist, is private or wants its terms accepted: accept them on "
                          "its web page, and give a token in HF_TOKEN or a file named with --token-file",
            repo);
    if (status == 404)
        return err_set(err, SHOAL_ENOTFOUND,
                       "hf:%.200s has no revision \"%.100s\", or there is no such repository", repo,
                       r->ref.tag);
    return err_set(err, SHOAL_EPROTOCOL, "hf:%.200s: the hub answers with status %d", repo, status);
}

/* The page behind this one: <URL>; rel="next", on the same hub. "" when there is none. */
static int next_page(run *r, const char *link, const char **ret, shoal_err *err)
{
    const char *open = strchr(link, '<'), *close = open ? strchr(open, '>') : NULL;
    *ret = "";
    if (!close || !strstr(close, "rel=\"next\"")) return 0;
    const char *url = arena_strndup(r->mem, open + 1, (size_t)(close - open) - 1);
    if (!url) return err_nomem(err);
    if (!pull_url_same_origin(url, r->base))
        return err_set(err, SHOAL_EPROTOCOL, "the list of files goes on at another place");
    *ret = url;
    return 0;
}

static int hf_page(run *r, const char *url, pull_list *l, const char **ret_next, shoal_err *err)
{
    buf text = {0};
    pull_reply *reply = calloc(1, sizeof *reply);
    json_t *page = NULL;
    int rc = reply ? pull_text_get(r->c, url, "application/json", &r->auth, PULL_TEXT_MAX, &text, reply, err)
                   : err_nomem(err);
    if (rc == 0 && reply->status != 200) rc = hf_refused(r, reply->status, err);
    if (rc == 0) rc = json_parse(&page, text.data ? text.data : "", text.len, "the list of files", err);
    if (rc == 0) rc = pull_list_add_hf(l, page, err);
    if (rc == 0) rc = next_page(r, reply->link, ret_next, err);
    json_decref(page);
    buf_done(&text);
    free(reply);
    return rc;
}

static int hf_urls(run *r, shoal_err *err)
{
    for (size_t i = 0; i < r->plan.n; i++) {
        pull_item *it = &r->plan.items[i];
        it->source = make_url(r, "/", r->ref.repo, "/resolve/", r->ref.tag, "/", it->source);
        if (!it->source) return err_nomem(err);
    }
    return 0;
}

static int plan_hf(run *r, shoal_err *err)
{
    pull_list l = {.mem = r->mem};
    const char *url = make_url(r, "/api/models/", r->ref.repo, "/tree/", r->ref.tag, "?recursive=1", NULL);
    int rc = url ? 0 : err_nomem(err);
    for (int i = 0; rc == 0 && *url; i++)
        rc = i < PAGES_MAX
                 ? hf_page(r, url, &l, &url, err)
                 : err_set(err, SHOAL_ELIMIT, "the list of files has more than %d pages", PAGES_MAX);
    if (rc != 0) return rc;
    rc = pull_plan_hf(&r->plan, r->mem, &l, &r->ref, err);
    if (rc == SHOAL_EINVALID || rc == SHOAL_ENOTFOUND) {
        buf lines = {0};
        pull_choices(&lines, &l, &r->ref);
        r->choices = lines.len ? buf_take(&lines) : NULL;
        buf_done(&lines);
    }
    return rc != 0 ? rc : hf_urls(r, err);
}

/* ---- registries ---------------------------------------------------------------------------------------- */

static const char MANIFEST_TYPES[] =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json, "
    "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json";

static int registry_refused(const run *r, const char *reference, int status, shoal_err *err)
{
    if (status == 401 || status == 403)
        return err_set(
            err, SHOAL_EAUTH,
            "%.200s: not allowed; if it needs a login, put USER:PASSWORD into a file and name it with "
            "--token-file",
            r->ref.repo);
    if (status == 404)
        return err_set(err, SHOAL_ENOTFOUND, "%.200s has no \"%.100s\" at %.200s", r->ref.repo, reference,
                       r->base);
    return err_set(err, SHOAL_EPROTOCOL, "%.200s: the registry answers with status %d", r->ref.repo, status);
}

/* A manifest that was asked for by digest must have it. */
static int check_manifest(const char *reference, const buf *text, shoal_err *err)
{
    sha256_digest d;
    char hex[65];
    if (strncmp(reference, "sha256:", 7) != 0) return 0;
    sha256_of(text->data ? text->data : "", text->len, &d);
    sha256_hex(&d, hex);
    return strcasecmp(hex, reference + 7) == 0
               ? 0
               : err_set(err, SHOAL_EDIGEST, "the registry's manifest is not %.30s...", reference);
}

static int get_manifest(run *r, const char *reference, json_t **ret, shoal_err *err)
{
    buf text = {0};
    pull_reply *reply = calloc(1, sizeof *reply);
    const char *url = make_url(r, "/v2/", r->ref.repo, "/manifests/", "", reference, NULL);
    int rc = reply && url ? pull_text_get(r->c, url, MANIFEST_TYPES, &r->auth, 4 << 20, &text, reply, err)
                          : err_nomem(err);
    if (rc == 0 && reply->status != 200) rc = registry_refused(r, reference, reply->status, err);
    if (rc == 0) rc = check_manifest(reference, &text, err);
    if (rc == 0) rc = json_parse(ret, text.data ? text.data : "", text.len, "the registry's manifest", err);
    buf_done(&text);
    free(reply);
    return rc;
}

static int blob_url(run *r, pull_item *it, shoal_err *err)
{
    it->source = make_url(r, "/v2/", r->ref.repo, "/blobs/", "", it->source, NULL);
    return it->source ? 0 : err_nomem(err);
}

static int plan_registry(run *r, shoal_err *err)
{
    const char *reference = r->ref.digest ? r->ref.digest : r->ref.tag;
    int rc = 0;
    for (int depth = 0; rc == 0 && reference; depth++) {
        json_t *manifest = NULL;
        if (depth == 3)
            return err_set(err, SHOAL_EPROTOCOL, "the registry's indexes never come to a manifest");
        rc = get_manifest(r, reference, &manifest, err);
        if (rc == 0) rc = pull_plan_oci(&r->plan, r->mem, manifest, &r->ref, &reference, err);
        json_decref(manifest);
    }
    for (size_t i = 0; rc == 0 && i < r->plan.n; i++) rc = blob_url(r, &r->plan.items[i], err);
    return rc == 0 && r->plan.beside ? blob_url(r, r->plan.beside, err) : rc;
}

static int plan_url(run *r, shoal_err *err)
{
    pull_item *it = arena_alloc(r->mem, sizeof *it);
    if (!it) return err_nomem(err);
    *it = (pull_item){.path = r->ref.name, .source = r->ref.url, .sha256 = "", .sha1 = ""};
    r->plan = (pull_plan){.mem = r->mem, .items = it, .n = 1};
    return pull_url_check(r->ref.url, err);
}

/* ---- files --------------------------------------------------------------------------------------------- */

static char *path_of(const run *r, const pull_item *it)
{
    const char *folder = r->plan.folder;
    return arena_printf(r->mem, "%s/%s%s%s", r->o->folder, folder ? folder : "", folder ? "/" : "", it->path);
}

/* Room for all that is still to come, before the first byte of it does. */
static int check_room(const run *r, shoal_err *err)
{
    uint64_t need = 0, room;
    for (size_t i = 0; i < r->plan.n; i++) {
        const char *path = path_of(r, &r->plan.items[i]);
        if (!path) return err_nomem(err);
        uint64_t size = r->plan.items[i].size, here = pull_file_here(path);
        need += size > here ? size - here : 0; /* at most 20,000 sizes of 2^42 */
    }
    int rc = file_free_bytes(&room, r->o->folder, err);
    if (rc != 0 || need <= room) return rc;
    buf a = {0}, b = {0};
    pull_put_size(&a, need);
    pull_put_size(&b, room);
    rc = a.failed || b.failed ? err_nomem(err)
                              : err_set(err, SHOAL_EIO,
                                        "%s are needed and %s are free in %s; make room, or name "
                                        "another place with --to",
                                        a.data, b.data, r->o->folder);
    buf_done(&a);
    buf_done(&b);
    return rc;
}

static int fetch_item(run *r, const pull_item *it, pull_meter *m, pull_file *ret, shoal_err *err)
{
    char *path = path_of(r, it);
    if (!path) return err_nomem(err);
    int rc = file_make_folders(path, 0755, err);
    if (rc != 0) return rc;
    pull_target t = {.path = path,
                     .name = it->path,
                     .url = it->source,
                     .auth = &r->auth,
                     .has_size = it->has_size,
                     .size = it->size,
                     .sha256 = it->sha256,
                     .sha1 = it->sha1,
                     .force = r->o->force,
                     .is_model = r->ref.kind == PULL_URL};
    pull_result got;
    m->sha256 = it->sha256;
    rc = pull_file_get(r->c, &t, m, &got, err);
    if (rc != 0) return rc;
    if (got.was_here) pull_meter_say(m, "%s  is here already", it->path);
    *ret = (pull_file){.path = path,
                       .sha256 = arena_strdup(r->mem, got.found.sha256),
                       .bytes = got.found.bytes,
                       .was_here = got.was_here};
    return ret->sha256 ? 0 : err_nomem(err);
}

static int fetch_all(run *r, pull_done *ret, shoal_err *err)
{
    pull_meter m;
    pull_meter_init(&m, r->o->to);
    m.events = r->o->events;
    ret->files = arena_alloc(r->mem, r->plan.n * sizeof *ret->files + 1);
    if (!ret->files) return err_nomem(err);
    for (size_t i = 0; i < r->plan.n; i++) {
        int rc = fetch_item(r, &r->plan.items[i], &m, &ret->files[i], err);
        if (rc != 0) return rc;
        ret->n++;
    }
    return r->plan.beside ? fetch_item(r, r->plan.beside, &m, &(pull_file){0}, err) : 0;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* "smollm2-135m-q4_k_m" of "SmolLM2-135M-Q4_K_M.gguf" */
static char *short_name(arena *mem, const char *file)
{
    char *s = arena_strndup(mem, file, strlen(file) - strlen(".gguf"));
    for (char *p = s; p && *p; p++)
        if (*p >= 'A' && *p <= 'Z') *p = (char)(*p - 'A' + 'a');
    return s;
}

static int pull_enter(run *r, pull_done *ret, shoal_err *err)
{
    const pull_item *it = &r->plan.items[0];
    char *name = NULL;
    pull_manifest_entry e = {.name = short_name(r->mem, it->path),
                             .file = it->path,
                             .sha256 = ret->files[0].sha256,
                             .source = r->o->ref,
                             .bytes = ret->files[0].bytes};
    if (!e.name) return err_nomem(err);
    int rc = pull_manifest_put(r->o->folder, &e, &name, err);
    if (rc != 0)
        return err_prefix(err, rc, "%s is there, but was not added to models.json", ret->files[0].path);
    ret->model = arena_strdup(r->mem, name);
    ret->named = true;
    free(name);
    return ret->model ? 0 : err_nomem(err);
}

/* That it was pulled, so that it may be removed again as such. */
static int note_folder(run *r, shoal_err *err)
{
    const char *folder = arena_printf(r->mem, "%s/%s", r->o->folder, r->plan.folder);
    const char **files = arena_alloc(r->mem, r->plan.n * sizeof *files);
    if (!folder || !files) return err_nomem(err);
    for (size_t i = 0; i < r->plan.n; i++) files[i] = r->plan.items[i].path;
    return pull_manifest_note_folder(folder, r->o->ref, files, r->plan.n, err);
}

/* What a command takes for it. */
static int name_model(run *r, pull_done *ret, shoal_err *err)
{
    bool others = false; /* than GGUF files */
    for (size_t i = 0; i < r->plan.n; i++)
        others |= model_kind_named(r->plan.items[i].path) != &model_kind_gguf;
    ret->model = ret->files[0].path;
    if (r->plan.folder && others) ret->model = arena_printf(r->mem, "%s/%s", r->o->folder, r->plan.folder);
    if (!ret->model) return err_nomem(err);
    if (r->plan.folder && !r->o->no_manifest) {
        int rc = note_folder(r, err);
        if (rc != 0) return rc;
    }
    if (r->plan.n != 1 || r->plan.folder || others || r->o->no_manifest) return 0;
    return pull_enter(r, ret, err);
}

static int set_auth(run *r, shoal_err *err)
{
    const char *token = r->o->token;
    r->auth.renewable = r->ref.kind == PULL_OCI || r->ref.kind == PULL_OLLAMA;
    if (r->auth.renewable) r->auth.login = token;
    if (!token || r->auth.renewable) return 0;
    for (const char *p = token; *p; p++)
        if ((unsigned char)*p <= 0x20 || *p == 0x7F)
            return err_set(err, SHOAL_EINVALID, "the token has blanks in it");
    return asprintf(&r->auth.header, "Bearer %s", token) < 0 ? (r->auth.header = NULL, err_nomem(err)) : 0;
}

/* --sha256 is for what is one file. */
static int pin(run *r, shoal_err *err)
{
    uint8_t bytes[32];
    const char *want = r->o->sha256;
    if (!want) return 0;
    if (!hex_decode(want, strlen(want), bytes, sizeof bytes))
        return err_set(err, SHOAL_EINVALID, "--sha256 wants 64 hexadecimal digits");
    if (r->plan.n != 1)
        return err_set(err, SHOAL_EINVALID, "--sha256 is for one file; these are %zu", r->plan.n);
    if (*r->plan.items[0].sha256 && strcasecmp(r->plan.items[0].sha256, want) != 0)
        return err_set(err, SHOAL_EDIGEST, "%s has the digest %s there, not the one given",
                       r->plan.items[0].path, r->plan.items[0].sha256);
    r->plan.items[0].sha256 = want;
    return 0;
}

/* "a,b:1" as a list; of at most as many as the configuration may have. */
static int take_hosts(run *r, pull_client_options *co, shoal_err *err)
{
    const char *at = r->o->hosts;
    const char **hosts = at ? arena_alloc(r->mem, HOSTS_MAX * sizeof *hosts) : NULL;
    if (!at) return 0;
    if (!hosts) return err_nomem(err);
    for (size_t n; *at && co->n_hosts < HOSTS_MAX; at += n + (at[n] == ',')) {
        n = strcspn(at, ",");
        if (n && !(hosts[co->n_hosts++] = arena_strndup(r->mem, at, n))) return err_nomem(err);
    }
    co->hosts = hosts;
    return 0;
}

static int run_all(run *r, pull_done *ret, shoal_err *err)
{
    int rc = pull_ref_parse(&r->ref, r->mem, r->o->ref, err);
    pull_client_options co = {.stall_s = r->o->stall_s, .tries = r->o->tries, .stop = r->o->stop};
    if (rc == 0) rc = take_hosts(r, &co, err);
    if (rc == 0) rc = pull_client_new(&r->c, &co, err);
    if (rc == 0 && r->ref.kind != PULL_URL) rc = set_base(r, err);
    if (rc == 0) rc = set_auth(r, err);
    if (rc != 0) return rc;
    rc = r->ref.kind == PULL_HF    ? plan_hf(r, err)
         : r->ref.kind == PULL_URL ? plan_url(r, err)
                                   : plan_registry(r, err);
    if (rc == 0) rc = pin(r, err);
    char *folder = rc == 0 ? arena_printf(r->mem, "%s/", r->o->folder) : NULL;
    if (rc == 0) rc = folder ? file_make_folders(folder, 0755, err) : err_nomem(err);
    if (rc == 0) rc = check_room(r, err);
    if (rc == 0) rc = fetch_all(r, ret, err);
    return rc != 0 ? rc : name_model(r, ret, err);
}

int pull_run(const pull_options *o, pull_done *ret, char **ret_choices, shoal_err *err)
{
    run r = {.o = o, .mem = arena_new(0)};
    pull_done done = {.mem = r.mem};
    *ret_choices = NULL;
    int rc = r.mem ? run_all(&r, &done, err) : err_nomem(err);
    pull_client_free(r.c);
    pull_auth_done(&r.auth);
    *ret_choices = r.choices;
    if (rc == 0)
        *ret = done;
    else
        arena_free(r.mem);
    if (rc != 0 && err) sanitise_text(err->message, "");
    return rc;
}
