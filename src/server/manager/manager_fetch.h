/* manager_fetch.h: `shoal pull` in a process of its own, and what it says as it goes on.
 *
 * A download may crash, hang or fill a disk, and libcurl blocks: none of that is the server's affair. Its
 * lines of JSON come through a pipe; why it failed is what its standard error says. It ends with the server,
 * however that ends (--parent).
 *
 *     manager_fetch_start(&f, loop, &o, &err);
 *     ... o.news(user, file, sha256, total, fetched) ... o.done(user, &got, NULL) once, then f is gone ...
 *     manager_fetch_stop(f);                     what came stays as a part, and the next one goes on with it
 *
 * Which hosts may be asked is looked at before anything starts. Loop thread. */
#ifndef MANAGER_MANAGER_FETCH_H
#define MANAGER_MANAGER_FETCH_H

#include <uv.h>

#include "base/err.h"
#include "config/config.h"

typedef struct manager_fetch manager_fetch;

typedef struct manager_fetched {
    const char *model; /* a path, or a name of the folder's models.json */
    bool named;        /* it is such a name */
    bool was_here;     /* nothing had to be fetched */
} manager_fetched;

typedef struct manager_fetch_options {
    const char *program; /* NULL: /proc/self/exe */
    const char *reference, *folder;
    const config_library *library;
    /* sha256: what the file is to be; "": not known, as total 0. */
    void (*news)(void *user, const char *file, const char *sha256, uint64_t total, uint64_t fetched);
    /* why: a sentence, NULL: it is there. */
    void (*done)(void *user, const manager_fetched *got, const char *why);
    void *user;
} manager_fetch_options;

/* SHOAL_EINVALID: it is no reference; SHOAL_EAUTH: from there nothing may be fetched. Strings are copied but
 * for the library. */
int manager_fetch_check(const manager_fetch_options *o, shoal_err *err);
int manager_fetch_start(manager_fetch **ret, uv_loop_t *loop, const manager_fetch_options *o, shoal_err *err);
/* It ends soon, and `done` says so. */
void manager_fetch_stop(manager_fetch *f);
/* Nobody is told any more; it frees itself. */
void manager_fetch_leave(manager_fetch *f);

#endif
