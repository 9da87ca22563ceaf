/* manager_session.c: what is loaded and unloaded now, for the next life of a supervised process
 * (os/handover.h).
 *
 *     {"models": [loads, as in the book], "unloaded": ["names of the configuration's models"]}
 *
 * A load for another user (config_load_request.reader) has "reader", too. The worker checks again what that user may read.
 *
 * The book (manager_book.h) has what a person wants after a restart; this has all that ran when the process
 * crashed, in memory that the supervisor holds. Each change is a new file, kept before the last one is
 * forgotten. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/handover.h"
#include "logging/log.h"
#include "manager/manager_impl.h"

#define LOADED_NAME "loaded"

enum { SESSION_MAX_BYTES = 1 << 20 };

/* ---- writing ------------------------------------------------------------------------------------------- */

/* NULL: no memory. */
static json_t *describe_load(const managed_model *m)
{
    char reader[FILE_USER_TEXT_BYTES];
    config_load_request w = m->wanted;
    w.as.name = m->spec.model;
    w.as.replicas = (unsigned)m->spec.n_replicas;
    w.keep_alive_s = m->stay_s;
    json_t *o = config_load_request_json(&w);
    if (!o || !w.reader) return o;
    file_user_format(w.reader, reader);
    if (json_object_set_new(o, "reader", json_string(reader)) == 0) return o;
    json_decref(o);
    return NULL;
}

static json_t *manager_session_describe(const manager *k)
{
    json_t *models = json_array(), *unloaded = json_array();
    bool ok = models && unloaded;
    for (const managed_model *m = k->models; ok && m; m = m->next)
        ok = m->down ? json_array_append_new(unloaded, json_string(m->spec.model)) == 0
                     : json_array_append_new(models, describe_load(m)) == 0;
    json_t *all = ok ? json_pack("{s:O,s:O}", "models", models, "unloaded", unloaded) : NULL;
    json_decref(models);
    json_decref(unloaded);
    return all;
}

static bool write_all(int fd, const char *text)
{
    size_t n = strlen(text);
    return n <= SESSION_MAX_BYTES && write(fd, text, n) == (ssize_t)n;
}

/* -1: none is there any more. */
static void set_file(manager *k, int fd)
{
    if (k->session_fd >= 0) {
        handover_forget(k->session_fd);
        close(k->session_fd);
    }
    k->session_fd = fd;
}

void session_write(manager *k)
{
    if (!handover_is_open() || k->closing || k->session)
        return; /* until all is loaded again the old file counts */
    json_t *all = manager_session_describe(k);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    int fd = text ? memfd_create("shoal-loaded", MFD_CLOEXEC) : -1;
    if (fd >= 0 && write_all(fd, text)) {
        handover_keep(LOADED_NAME, fd);
        set_file(k, fd);
    } else {
        LOG(LOG_ERROR, "models", "not_kept", LOG_S("reason", "no memory to note what is loaded"));
        if (fd >= 0) close(fd);
    }
    free(text);
    json_decref(all);
}

void session_close(manager *k)
{
    json_decref(k->session);
    set_file(k, -1);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static json_t *manager_session_read_text(int fd)
{
    struct stat st;
    json_t *all = NULL;
    if (fstat(fd, &st) != 0 || st.st_size <= 0 || st.st_size > SESSION_MAX_BYTES) return NULL;
    char *text = malloc((size_t)st.st_size);
    if (text && pread(fd, text, (size_t)st.st_size, 0) == st.st_size)
        json_parse(&all, text, (size_t)st.st_size, LOADED_NAME, NULL);
    free(text);
    return all;
}

/* Of two files the process crashed between, the newer counts. */
void session_open(manager *k)
{
    k->session_fd = -1;
    for (int fd; (fd = handover_take(LOADED_NAME)) >= 0;) set_file(k, fd);
    if (k->session_fd >= 0) k->session = manager_session_read_text(k->session_fd);
}

static bool is_unloaded(const manager *k, const char *name)
{
    size_t i;
    const json_t *s;
    json_array_foreach(json_object_get(k->session, "unloaded"), i,
                       s) if (json_is_string(s) && strcmp(json_string_value(s), name) == 0) return true;
    return false;
}

void session_leave_out(manager *k)
{
    for (size_t i = 0; k->session && i < k->n_base; i++) {
        const char *name = k->base[i].model;
        if (!is_unloaded(k, name) || managed_model_find(k, name)) continue;
        managed_model *m = managed_model_new(k, &k->base[i], NULL);
        if (m) m->down = true;
    }
}

static void over(manager *k)
{
    if (--k->n_restoring > 0) return;
    json_decref(k->session);
    k->session = NULL;
    session_write(k);
}

static void restored(void *user, const model_manager_progress *n, const api_error *e)
{
    over(user);
    if (e) LOG(LOG_ERROR, "models", "not_restored", LOG_S("model", n->model), LOG_S("reason", e->message));
}

/* With what it was allowed before the crash. reader is borrowed by *ret. */
static int read_load(config_load_request *ret, file_user *reader, arena *mem, json_t *o, shoal_err *err)
{
    const char *text = json_string_value(json_object_get(o, "reader"));
    bool is_for = text != NULL;
    if (is_for && !file_user_parse(reader, text))
        return err_set(err, SHOAL_EFORMAT, "'%.100s' is no user", text);
    json_object_del(o, "reader");
    int rc = config_load_request_parse(ret, mem, o, err);
    if (rc != 0) return rc;
    ret->any_path = !is_for;
    ret->reader = is_for ? reader : NULL;
    return 0;
}

static void load_again(manager *k, json_t *o)
{
    arena *mem = arena_new(0);
    config_load_request w;
    file_user reader;
    shoal_err err;
    api_error e = {0};
    const model_manager_watch watch = {.done = restored, .user = k};
    int rc = mem ? read_load(&w, &reader, mem, o, &err) : err_nomem(&err);
    model_manager_ticket *t = rc == 0 ? k->face.load(k, &w, &watch, &e) : NULL;
    if (t) {
        t->job->runs = true;
        k->n_restoring++;
    } else {
        LOG(LOG_ERROR, "models", "not_restored", LOG_S("reason", rc ? err.message : e.message));
    }
    arena_free(mem);
}

void session_restore(manager *k)
{
    size_t i;
    json_t *o;
    if (!k->session) return;
    k->n_restoring = 1;
    json_array_foreach(json_object_get(k->session, "models"), i, o) load_again(k, o);
    over(k);
}
