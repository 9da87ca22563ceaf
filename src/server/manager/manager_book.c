/* manager_book.c: see manager_book.h. */
#define _GNU_SOURCE
#include "manager/manager_book.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "logging/log.h"

enum { BOOK_MAX_BYTES = 1 << 20, LOCK_WAIT_MS = 5000 };

/* ---- reading ----------------------------------------------------------------------------------------- */

/* *ret stays NULL where there is no file. */
static int manager_book_read_file(json_t **ret, const char *path, shoal_err *err)
{
    int rc = json_parse_file(ret, path, BOOK_MAX_BYTES, err);
    if (rc == SHOAL_ENOTFOUND) return 0;
    if (rc == 0 && !json_is_array(json_object_get(*ret, "models")))
        rc = err_set(err, SHOAL_EFORMAT, "%s: \"models\" is no list", path);
    return rc;
}

typedef struct reader {
    const char *path;
    void (*take)(void *user, const config_load_request *w);
    void (*why)(void *user, const char *sentence);
    void *user;
} reader;

static bool read_entry(const reader *r, size_t i, const json_t *o)
{
    arena *mem = arena_new(0);
    config_load_request w;
    shoal_err err;
    char sentence[sizeof err.message + 128];
    int rc = mem ? config_load_request_parse(&w, mem, o, &err) : err_nomem(&err);
    if (rc == 0) {
        r->take(r->user, &w);
    } else {
        snprintf(sentence, sizeof sentence, "%s: models[%zu].%s", r->path, i, err.message);
        r->why(r->user, sentence);
    }
    arena_free(mem);
    return rc == 0;
}

json_t *manager_book_read(const char *path, void (*take)(void *user, const config_load_request *w),
                          void (*why)(void *user, const char *sentence), void *user)
{
    const reader r = {.path = path, .take = take, .why = why, .user = user};
    json_t *root = NULL, *taken = json_array(), *o;
    shoal_err err;
    size_t i;
    int rc = manager_book_read_file(&root, path, &err);
    if (rc != 0) why(user, err.message);
    json_array_foreach(rc == 0 ? json_object_get(root, "models") : NULL, i, o)
    {
        if (read_entry(&r, i, o)) json_array_append(taken, o);
    }
    json_decref(root);
    return taken;
}

/* ---- writing ----------------------------------------------------------------------------------------- */

int manager_book_lock(int *ret_fd, const char *path, shoal_err *err)
{
    char *folder = file_folder(path);
    *ret_fd = -1;
    int rc = folder ? file_make_folders(path, 0700, err) : err_nomem(err);
    if (rc == 0) rc = file_lock_folder(ret_fd, folder, LOCK_WAIT_MS, err);
    free(folder);
    return rc;
}

/* What cannot be understood may still be mended by a person. */
int manager_book_set_aside(const char *path, const shoal_err *why, shoal_err *err)
{
    char *aside = NULL;
    if (asprintf(&aside, "%s.broken", path) < 0) return err_nomem(err);
    int rc = rename(path, aside) == 0 ? 0 : err_set(err, SHOAL_EIO, "%s: %s", aside, strerror(errno));
    if (rc == 0)
        LOG(LOG_WARN, "models", "set_aside", LOG_S("file", aside), LOG_S("reason", why->message),
            LOG_S("what_to_do",
                  "load or make what is missing again, or stop the server, mend the file and rename it"));
    free(aside);
    return rc;
}

static bool has_equal(const json_t *list, const json_t *o)
{
    size_t i;
    const json_t *other;
    json_array_foreach(list, i, other) if (json_equal(other, o)) return true;
    return false;
}

static bool has_name(const json_t *list, const json_t *o)
{
    const char *name = json_string_value(json_object_get(o, "name"));
    size_t i;
    const json_t *other;
    json_array_foreach(list, i, other)
    {
        const char *its = json_string_value(json_object_get(other, "name"));
        if (name && its && strcmp(its, name) == 0) return true;
    }
    return false;
}

/* Ours, and what the file has of others: entries that we neither wrote nor read. */
static json_t *join_lists(const json_t *ours, const json_t *before, const json_t *in_file)
{
    json_t *all = json_array(), *o;
    size_t i;
    bool ok = all && json_array_extend(all, (json_t *)ours) == 0;
    json_array_foreach(in_file, i, o)
    {
        if (!has_equal(before, o) && !has_equal(ours, o) && !has_name(ours, o))
            ok = ok && json_array_append(all, o) == 0;
    }
    if (ok) return all;
    json_decref(all);
    return NULL;
}

static int write_list(const char *path, const json_t *list, shoal_err *err)
{
    buf text = {0};
    buf_puts(&text, "{\"models\": ");
    bool ok = json_put(&text, list) == 0;
    buf_puts(&text, "}\n");
    int rc = ok ? file_replace(path, &text, err) : err_nomem(err);
    buf_done(&text);
    return rc;
}

int manager_book_write(const char *path, const json_t *ours, const json_t *before, shoal_err *err)
{
    json_t *root = NULL, *all = NULL;
    shoal_err why;
    int folder;
    int rc = manager_book_lock(&folder, path, err);
    if (rc != 0) return rc;
    rc = manager_book_read_file(&root, path, &why);
    if (rc == SHOAL_EFORMAT || rc == SHOAL_ELIMIT)
        rc = manager_book_set_aside(path, &why, err);
    else if (rc != 0)
        *err = why; /* it may be whole: it is not written over */
    if (rc == 0 && !(all = join_lists(ours, before, json_object_get(root, "models")))) rc = err_nomem(err);
    if (rc == 0) rc = write_list(path, all, err);
    json_decref(all);
    json_decref(root);
    close(folder);
    return rc;
}
