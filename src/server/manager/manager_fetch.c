/* manager_fetch.c: see manager_fetch.h. */
#define _GNU_SOURCE
#include "manager/manager_fetch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/json.h"
#include "fetch/pull_ref.h"

enum { LINE_MAX_BYTES = 1 << 20, WHY_BYTES = 400, CHUNK_BYTES = 4096, KILL_MS = 3000, N_HANDLES = 4 };

struct manager_fetch {
    uv_process_t process; /* first */
    uv_pipe_t out, err;
    uv_timer_t kill; /* it was told to stop, and does not */
    manager_fetch_options o;
    arena *mem; /* of the strings of o, and of the next */
    manager_fetched got;
    bool left, exited;
    int n_open; /* handles, and what is read of them */
    int code;
    buf line;
    char why[WHY_BYTES]; /* what it wrote to its standard error */
    size_t n_why;
    char chunk[CHUNK_BYTES];
};

/* ---- whom to ask ----------------------------------------------------------------------------------- */

/* The host and port of "https://host:port/..." */
static const char *host_of(arena *mem, const char *url)
{
    const char *at = strstr(url, "://");
    at = at ? at + 3 : url;
    return arena_strndup(mem, at, strcspn(at, "/?#"));
}

static const char *host_asked(arena *mem, const pull_ref *r, const config_library *l)
{
    switch (r->kind) {
    case PULL_HF: return l->hub ? host_of(mem, l->hub) : "huggingface.co";
    case PULL_OLLAMA:
        return r->host ? r->host : l->registry ? host_of(mem, l->registry) : "registry.ollama.ai";
    case PULL_OCI: return r->host;
    case PULL_URL: return host_of(mem, r->url);
    }
    return NULL;
}

/* --endpoint, where the configuration has one. */
static const char *endpoint_of(const pull_ref *r, const config_library *l)
{
    if (r->kind == PULL_HF) return l->hub;
    return r->kind == PULL_OLLAMA && !r->host ? l->registry : NULL;
}

static int check_manager_fetch(const manager_fetch_options *o, arena *mem, pull_ref *ret, shoal_err *err)
{
    int rc = mem ? pull_ref_parse(ret, mem, o->reference, err) : err_nomem(err);
    const char *host = rc == 0 ? host_asked(mem, ret, o->library) : NULL;
    if (rc == 0 && !host) rc = err_nomem(err);
    for (size_t i = 0; rc == 0 && i < o->library->n_hosts; i++)
        if (strcasecmp(o->library->hosts[i], host) == 0) return 0;
    if (rc != 0) return rc;
    return err_set(err, SHOAL_EAUTH,
                   "nothing is fetched from %.200s here; the operator allows it with library: {fetch_from: "
                   "[%.200s]} in shoal.yaml, or fetches it with shoal pull",
                   host, host);
}

int manager_fetch_check(const manager_fetch_options *o, shoal_err *err)
{
    arena *mem = arena_new(0);
    pull_ref r;
    int rc = check_manager_fetch(o, mem, &r, err);
    arena_free(mem);
    return rc;
}

/* ---- the end --------------------------------------------------------------------------------------- */

static void closed(uv_handle_t *h)
{
    manager_fetch *f = h->data;
    if (--f->n_open > 0) return;
    arena_free(f->mem);
    buf_done(&f->line);
    free(f);
}

static void close_one(uv_handle_t *h)
{
    if (!uv_is_closing(h)) uv_close(h, closed);
}

static const char *reason(const manager_fetch *f)
{
    static const char SAYS[] = "shoal pull: ";
    const char *why = strncmp(f->why, SAYS, sizeof SAYS - 1) == 0 ? f->why + sizeof SAYS - 1 : f->why;
    return *why ? why : "shoal pull ended without a word";
}

static void manager_fetch_finish(manager_fetch *f)
{
    const char *why = NULL;
    while (f->n_why > 0 && f->why[f->n_why - 1] == ' ') f->why[--f->n_why] = '\0';
    if (f->code != 0 || !f->got.model) why = reason(f);
    if (!f->left) f->o.done(f->o.user, &f->got, why);
    f->left = true;
    close_one((uv_handle_t *)&f->kill);
}

/* It has ended, and all that it said was read. */
static void look_for_end(manager_fetch *f)
{
    bool read = uv_is_closing((uv_handle_t *)&f->out) && uv_is_closing((uv_handle_t *)&f->err);
    if (f->exited && read && !uv_is_closing((uv_handle_t *)&f->kill)) manager_fetch_finish(f);
}

static void exited(uv_process_t *p, int64_t code, int sig)
{
    manager_fetch *f = p->data;
    f->exited = true;
    f->code = sig ? 128 + sig : (int)code;
    if (sig && !*f->why) snprintf(f->why, sizeof f->why, "shoal pull was ended by signal %d", sig);
    close_one((uv_handle_t *)p);
    look_for_end(f);
}

/* ---- what it says ---------------------------------------------------------------------------------- */

static bool were_here(const json_t *files)
{
    size_t i;
    const json_t *file;
    bool all = true;
    json_array_foreach(files, i, file) all &= json_is_true(json_object_get(file, "was_here"));
    return all;
}

static void take_line(manager_fetch *f, const char *line, size_t n)
{
    json_t *o = NULL;
    if (json_parse(&o, line, n, "shoal pull", NULL) != 0) return;
    const char *file = json_string_value(json_object_get(o, "file"));
    const char *digest = json_string_value(json_object_get(o, "sha256"));
    const char *model = json_string_value(json_object_get(o, "model"));
    if (model)
        f->got =
            (manager_fetched){arena_strdup(f->mem, model), json_is_true(json_object_get(o, "in_manifest")),
                              were_here(json_object_get(o, "files"))};
    if (file && !f->left)
        f->o.news(f->o.user, file, digest ? digest : "",
                  (uint64_t)json_integer_value(json_object_get(o, "total")),
                  (uint64_t)json_integer_value(json_object_get(o, "completed")));
    json_decref(o);
}

static void take_lines(manager_fetch *f, const char *bytes, size_t n)
{
    if (f->line.len + n > LINE_MAX_BYTES || buf_append(&f->line, bytes, n) != 0) buf_clear(&f->line);
    for (char *end; f->line.len && (end = memchr(f->line.data, '\n', f->line.len));) {
        take_line(f, f->line.data, (size_t)(end - f->line.data));
        buf_consume(&f->line, (size_t)(end + 1 - f->line.data));
    }
}

/* "shoal pull: sentence", and perhaps references to choose from behind it. */
static void take_words(manager_fetch *f, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n && f->n_why + 1 < sizeof f->why; i++) {
        bool plain = (unsigned char)bytes[i] >= 0x20 && bytes[i] != 0x7F;
        f->why[f->n_why++] = plain ? bytes[i] : ' ';
    }
    f->why[f->n_why] = '\0';
}

static void room(uv_handle_t *h, size_t n, uv_buf_t *ret)
{
    manager_fetch *f = h->data;
    *ret = uv_buf_init(f->chunk, sizeof f->chunk);
}

static void came(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    manager_fetch *f = s->data;
    if (n > 0 && s == (uv_stream_t *)&f->out) take_lines(f, b->base, (size_t)n);
    if (n > 0 && s == (uv_stream_t *)&f->err) take_words(f, b->base, (size_t)n);
    if (n >= 0) return;
    close_one((uv_handle_t *)s);
    look_for_end(f);
}

/* ---- the beginning --------------------------------------------------------------------------------- */

static bool manager_strings(manager_fetch *f, const manager_fetch_options *o)
{
    f->o = *o;
    f->o.program = arena_strdup(f->mem, o->program ? o->program : "/proc/self/exe"); /* also once replaced */
    f->o.reference = arena_strdup(f->mem, o->reference);
    f->o.folder = arena_strdup(f->mem, o->folder);
    return f->o.program && f->o.reference && f->o.folder;
}

/* "HOST,HOST:PORT": redirects may lead near here to these alone. */
static char *host_list(manager_fetch *f)
{
    buf list = {0};
    for (size_t i = 0; i < f->o.library->n_hosts; i++)
        buf_printf(&list, "%s%s", i ? "," : "", f->o.library->hosts[i]);
    char *text = list.failed ? NULL : arena_strdup(f->mem, list.data ? list.data : "");
    buf_done(&list);
    return text;
}

static int spawn(manager_fetch *f, uv_loop_t *loop, const char *endpoint, shoal_err *err)
{
    char *args[18], parent[24], *hosts = host_list(f);
    if (!hosts) return err_nomem(err);
    size_t n = 0;
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    const char *const fixed[] = {"shoal", "pull", "--events", "--to", f->o.folder, "--parent", parent};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) args[n++] = (char *)fixed[i];
    if (endpoint) args[n++] = "--endpoint";
    if (endpoint) args[n++] = (char *)endpoint;
    args[n++] = "--hosts";
    args[n++] = hosts;
    args[n++] = "--";
    args[n++] = (char *)f->o.reference;
    args[n] = NULL;
    uv_stdio_container_t io[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&f->out},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&f->err},
    };
    uv_process_options_t po = {
        .exit_cb = exited, .file = f->o.program, .args = args, .stdio_count = 3, .stdio = io};
    int rc = uv_spawn(loop, &f->process, &po);
    return rc == 0 ? 0 : err_set(err, SHOAL_EIO, "cannot start %s: %s", f->o.program, uv_strerror(rc));
}

static void close_all(manager_fetch *f)
{
    close_one((uv_handle_t *)&f->out);
    close_one((uv_handle_t *)&f->err);
    close_one((uv_handle_t *)&f->kill);
    close_one((uv_handle_t *)&f->process);
}

int manager_fetch_start(manager_fetch **ret, uv_loop_t *loop, const manager_fetch_options *o, shoal_err *err)
{
    manager_fetch *f = calloc(1, sizeof *f);
    pull_ref r;
    if (!f) return err_nomem(err);
    f->mem = arena_new(0);
    int rc = check_manager_fetch(o, f->mem, &r, err);
    if (rc == 0 && !manager_strings(f, o)) rc = err_nomem(err);
    if (rc != 0) {
        arena_free(f->mem);
        free(f);
        return rc;
    }
    uv_pipe_init(loop, &f->out, 0);
    uv_pipe_init(loop, &f->err, 0);
    uv_timer_init(loop, &f->kill);
    f->n_open = N_HANDLES;
    f->out.data = f->err.data = f->kill.data = f->process.data = f;
    rc = spawn(f, loop, endpoint_of(&r, o->library), err); /* which initialises the process */
    f->process.data = f;
    if (rc != 0) {
        close_all(f);
        return rc;
    }
    uv_read_start((uv_stream_t *)&f->out, room, came);
    uv_read_start((uv_stream_t *)&f->err, room, came);
    *ret = f;
    return 0;
}

static void kill_it(uv_timer_t *t)
{
    manager_fetch *f = t->data;
    if (!f->exited) uv_process_kill(&f->process, SIGKILL);
}

void manager_fetch_stop(manager_fetch *f)
{
    if (f->exited) return;
    uv_process_kill(&f->process, SIGTERM);
    uv_timer_start(&f->kill, kill_it, KILL_MS, 0);
}

void manager_fetch_leave(manager_fetch *f)
{
    f->left = true;
    manager_fetch_stop(f);
}
