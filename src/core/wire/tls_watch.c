/* tls_watch.c: see tls_watch.h. */
#include "wire/tls_watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "logging/log.h"
#include "wire/tls_expiry.h"
#include "wire/tls_link.h"

enum { N_FILES = 4 };

/* What changes when a file does. */
typedef struct stamp {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec written;
} stamp;

typedef struct stamps {
    stamp of[N_FILES];
} stamps;

struct tls_watch {
    env time;
    env_timer *timer;
    tls_context *context;
    const char *component;
    stamps seen;
    bool unread; /* what was seen could not be used */
    tls_expiry expiry;
};

static stamp stamp_of(const char *path)
{
    struct stat st;
    stamp s;
    memset(&s, 0, sizeof s); /* compared as bytes */
    if (!path || stat(path, &st) != 0) return s;
    s.device = st.st_dev;
    s.inode = st.st_ino;
    s.bytes = st.st_size;
    s.written = st.st_mtim;
    return s;
}

static stamps look(const tls_watch *w)
{
    const tls_options *o = tls_context_options(w->context);
    const char *const paths[N_FILES] = {o->cert_file, o->key_file, o->ca_file, o->crl_file};
    stamps all;
    for (size_t i = 0; i < N_FILES; i++) all.of[i] = stamp_of(paths[i]);
    return all;
}

static void follow(tls_watch *w)
{
    shoal_err err;
    stamps now = look(w);
    bool changed = memcmp(&now, &w->seen, sizeof now) != 0;
    if (!changed && !w->unread) return;
    int rc = tls_context_reload(w->context, &err);
    w->seen = now; /* from before it was read: what came meanwhile is found next time */
    w->unread = rc != 0;
    if (rc == 0)
        LOG(LOG_INFO, w->component, "certificate_renewed");
    else if (changed)
        LOG(LOG_WARN, w->component, "certificate_unusable", LOG_S("reason", err.message),
            LOG_S("effect", "the one before is shown until this is mended"));
}

static void watch_due(void *user)
{
    tls_watch *w = user;
    w->time.timer_start(w->timer, TLS_WATCH_MS);
    follow(w);
    tls_expiry_tell(&w->expiry, w->context, w->component, env_wall_s(&w->time));
}

int tls_watch_new(tls_watch **ret, const env *time, tls_context *context, const char *component,
                  shoal_err *err)
{
    tls_watch *w = calloc(1, sizeof *w);
    if (!w) return err_nomem(err);
    *w = (tls_watch){.time = *time, .context = context, .component = component};
    w->timer = time->timer_new(time->user, watch_due, w);
    if (!w->timer) {
        free(w);
        return err_nomem(err);
    }
    w->seen = look(w);
    tls_expiry_tell(&w->expiry, context, component, env_wall_s(time));
    time->timer_start(w->timer, TLS_WATCH_MS);
    *ret = w;
    return 0;
}

void tls_watch_free(tls_watch *w)
{
    if (!w) return;
    w->time.timer_free(w->timer);
    free(w);
}
