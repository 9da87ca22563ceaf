/* model_store.c: a folder, one fetch at a time, and a digest before a name. */
#include "join/model_store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sha256.h"
#include "shoal/v1/cluster.pb-c.h"
#include "trust/folder.h"
#include "wire/grpc.h"

enum { AGAIN_MIN_MS = 500, AGAIN_MAX_MS = 30000, MESSAGE_MAX = 1 << 20, SLICE_MS = 100 };

struct model_store {
    uv_loop_t *loop;
    model_store_options o;
    char *folder, *address;
    tls_context *tls;
    model_file wanted[MODEL_STORE_FILES_MAX];
    size_t n_wanted, next; /* next: where to look first, so that one that fails keeps no other waiting */
    uv_timer_t again, slice;
    uint64_t again_ms, in_slice;
    /* the fetch that runs */
    bool busy, hashing, closing;
    model_file file;
    grpc_channel *channel;
    grpc_client_call *call;
    int fd;
    uint64_t at;
    uv_work_t work;
    char found[65];
    int n_open; /* timers */
    void (*closed)(void *user);
    void *closed_user;
};

/* ---- names --------------------------------------------------------------------------------------- */

int model_file_make(model_file *ret, const char *name, const char *digest, uint64_t bytes, shoal_err *err)
{
    const char *dot = strrchr(name, '.');
    *ret = (model_file){.bytes = bytes};
    if (strlen(digest) != 64 || strspn(digest, "0123456789abcdef") != 64 || bytes > INT64_MAX)
        return err_set(err, SHOAL_EINVALID, "\"%.80s\" is no SHA-256 of a model", digest);
    memcpy(ret->digest, digest, 65);
    size_t n = dot ? strlen(dot) : 0;
    bool plain = n > 1 && n < sizeof ret->suffix;
    for (size_t i = 1; plain && i < n; i++) plain = isalnum((unsigned char)dot[i]);
    if (plain && strcmp(dot, ".part") != 0) memcpy(ret->suffix, dot, n + 1);
    return 0;
}

static void path_of(const model_store *s, const model_file *f, bool part, char ret[MODEL_STORE_PATH])
{
    snprintf(ret, MODEL_STORE_PATH, "%s/%s%s", s->folder, f->digest, part ? ".part" : f->suffix);
}

bool model_store_find(const model_store *s, const model_file *f, char ret_path[MODEL_STORE_PATH])
{
    struct stat st;
    path_of(s, f, false, ret_path);
    return stat(ret_path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == f->bytes;
}

static bool is_wanted(const model_store *s, const char *file_name)
{
    for (size_t i = 0; i < s->n_wanted; i++)
        if (strncmp(s->wanted[i].digest, file_name, 64) == 0) return true;
    return false;
}

/* ---- room ---------------------------------------------------------------------------------------- */

typedef struct shelf { /* what one look at the folder finds */
    uint64_t bytes;
    char oldest[300]; /* of those that nobody wants; "": none */
    struct timespec when;
} shelf;

static bool earlier(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

static void look(const model_store *s, shelf *ret)
{
    DIR *d = opendir(s->folder);
    *ret = (shelf){0};
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) continue;
        ret->bytes += (uint64_t)st.st_size;
        if (is_wanted(s, e->d_name) || strlen(e->d_name) < 64) continue;
        if (*ret->oldest && !earlier(st.st_mtim, ret->when)) continue;
        snprintf(ret->oldest, sizeof ret->oldest, "%s", e->d_name);
        ret->when = st.st_mtim;
    }
    if (d) closedir(d);
}

/* Unlinking a file that a worker still maps takes nothing from it. */
static bool make_room(const model_store *s, uint64_t bytes)
{
    shelf found;
    char path[MODEL_STORE_PATH];
    for (;;) {
        look(s, &found);
        bool fits = s->o.max_bytes == 0 || (bytes <= s->o.max_bytes && found.bytes <= s->o.max_bytes - bytes);
        if (fits || !*found.oldest) return fits;
        snprintf(path, sizeof path, "%s/%s", s->folder, found.oldest);
        LOG(LOG_INFO, "store", "evicted", LOG_S("file", found.oldest));
        if (unlink(path) != 0) return false;
    }
}

/* ---- a fetch ------------------------------------------------------------------------------------- */

static void go_on(model_store *s);

static void on_again(uv_timer_t *t)
{
    go_on(t->data);
}

static void fetch_over(model_store *s)
{
    grpc_channel *ch = s->channel;
    s->channel = NULL;
    s->call = NULL;
    uv_timer_stop(&s->slice);
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
    s->busy = false;
    if (ch) grpc_channel_close(ch);
}

static void fail(model_store *s, const char *why)
{
    if (!s->busy) return;
    LOG(LOG_WARN, "store", "fetch_failed", LOG_S("digest", s->file.digest), LOG_I("at", s->at),
        LOG_S("from", s->address), LOG_S("reason", why));
    fetch_over(s);
    s->again_ms = s->again_ms ? 2 * s->again_ms : AGAIN_MIN_MS;
    if (s->again_ms > AGAIN_MAX_MS) s->again_ms = AGAIN_MAX_MS;
    uv_timer_start(&s->again, on_again, s->again_ms, 0);
}

static void hash(uv_work_t *w)
{
    model_store *s = w->data;
    char path[MODEL_STORE_PATH];
    sha256_digest d;
    path_of(s, &s->file, true, path);
    *s->found = '\0';
    if (sha256_file(path, &d, NULL) == 0) sha256_hex(&d, s->found);
}

static void release(model_store *s);

static void hashed(uv_work_t *w, int status)
{
    model_store *s = w->data;
    char part[MODEL_STORE_PATH], path[MODEL_STORE_PATH];
    s->hashing = false;
    if (s->closing) {
        release(s);
        return;
    }
    path_of(s, &s->file, true, part);
    path_of(s, &s->file, false, path);
    if (status != 0 || strcmp(s->found, s->file.digest) != 0) {
        unlink(part); /* nobody knows which byte is wrong */
        fail(s, "what came is another file: its SHA-256 is not the one that was asked for");
        return;
    }
    if (rename(part, path) != 0) {
        fail(s, strerror(errno));
        return;
    }
    LOG(LOG_INFO, "store", "fetched", LOG_S("digest", s->file.digest), LOG_I("bytes", s->file.bytes));
    s->again_ms = 0;
    fetch_over(s);
    s->o.changed(s->o.user);
    go_on(s);
}

static void check(model_store *s)
{
    if (s->fd >= 0 && fsync(s->fd) != 0) {
        fail(s, strerror(errno));
        return;
    }
    s->work.data = s;
    s->hashing = uv_queue_work(s->loop, &s->work, hash, hashed) == 0;
    if (!s->hashing) fail(s, "out of memory");
}

/* ---- pieces -------------------------------------------------------------------------------------- */

static void next_slice(uv_timer_t *t)
{
    model_store *s = t->data;
    s->in_slice = 0;
    if (s->call) grpc_client_pause(s->call, false);
}

static void keep_pace(model_store *s, size_t n)
{
    s->in_slice += n;
    if (s->o.bytes_per_s == 0 || s->in_slice < s->o.bytes_per_s * SLICE_MS / 1000) return;
    grpc_client_pause(s->call, true);
    uv_timer_start(&s->slice, next_slice, s->in_slice * 1000 / s->o.bytes_per_s + 1, 0);
}

static bool write_all(int fd, const uint8_t *bytes, size_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t k = pwrite(fd, bytes, n, (off_t)at);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        bytes += k;
        n -= (size_t)k;
        at += (uint64_t)k;
    }
    return true;
}

static void on_chunk(void *user, const uint8_t *msg, size_t n)
{
    model_store *s = user;
    Shoal__V1__FetchChunk *m = shoal__v1__fetch_chunk__unpack(NULL, n, msg);
    const char *wrong = NULL;
    if (!m)
        wrong = "a piece cannot be read";
    else if (m->data.len > s->file.bytes - s->at)
        wrong = "more comes than the file is long";
    else if (!write_all(s->fd, m->data.data, m->data.len, s->at))
        wrong = strerror(errno);
    else
        s->at += m->data.len;
    size_t len = m ? m->data.len : 0;
    if (m) shoal__v1__fetch_chunk__free_unpacked(m, NULL);
    if (wrong)
        fail(s, wrong);
    else
        keep_pace(s, len);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    model_store *s = user;
    if (!s->call) return;
    s->call = NULL;
    if (status == GRPC_OK && s->at == s->file.bytes)
        check(s);
    else
        fail(s, message && *message ? message
                : status == GRPC_OK ? "it is shorter"
                                    : grpc_status_name(status));
}

static void on_connected(void *user)
{
    model_store *s = user;
    Shoal__V1__FetchRequest m = SHOAL__V1__FETCH_REQUEST__INIT;
    uint8_t packed[96];
    const grpc_client_events ev = {.user = s, .message = on_chunk, .end = on_end};
    m.digest = s->file.digest;
    m.offset = s->at;
    size_t n = shoal__v1__fetch_request__pack(&m, packed);
    s->call = grpc_call_start(s->channel, "/shoal.v1.Models/Fetch", packed, n, NULL, 0, 0, &ev);
    if (!s->call) fail(s, "it takes no call now");
}

static void on_disconnected(void *user, const char *why)
{
    model_store *s = user;
    if (!s->hashing) fail(s, why);
}

static int open_part(model_store *s)
{
    char path[MODEL_STORE_PATH];
    path_of(s, &s->file, true, path);
    s->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;
    if (s->fd < 0 || fstat(s->fd, &st) != 0) return -1;
    s->at = (uint64_t)st.st_size;
    if (s->at > s->file.bytes && ftruncate(s->fd, 0) == 0) s->at = 0;
    return s->at <= s->file.bytes ? 0 : -1;
}

static void begin(model_store *s, const model_file *f)
{
    shoal_err err;
    const grpc_channel_events ev = {.user = s, .connected = on_connected, .disconnected = on_disconnected};
    const grpc_channel_options o = {.tls = s->tls, .keepalive_ms = 5000, .keepalive_timeout_ms = 5000};
    s->busy = true;
    s->file = *f;
    s->at = s->in_slice = 0;
    if (!make_room(s, f->bytes)) {
        fail(s, "there is no room for it: give the store more (--models-gb)");
    } else if (open_part(s) != 0) {
        fail(s, strerror(errno));
    } else if (s->at == f->bytes) {
        check(s);
    } else {
        LOG(LOG_INFO, "store", "fetching", LOG_S("digest", f->digest), LOG_I("bytes", f->bytes),
            LOG_I("from", s->at));
        if (grpc_channel_open(&s->channel, s->loop, s->address, &o, &ev, &err) != 0) fail(s, err.message);
    }
}

static void go_on(model_store *s)
{
    char path[MODEL_STORE_PATH];
    if (s->busy || s->closing || !s->address) return;
    for (size_t k = 0; k < s->n_wanted; k++) {
        size_t i = (s->next + k) % s->n_wanted;
        if (model_store_find(s, &s->wanted[i], path)) continue;
        s->next = i + 1;
        begin(s, &s->wanted[i]);
        return;
    }
}

/* ---- life ---------------------------------------------------------------------------------------- */

void model_store_want(model_store *s, const model_file *files, size_t n)
{
    char path[MODEL_STORE_PATH];
    s->n_wanted = n < MODEL_STORE_FILES_MAX ? n : MODEL_STORE_FILES_MAX;
    if (s->n_wanted) memcpy(s->wanted, files, s->n_wanted * sizeof *files);
    for (size_t i = 0; i < s->n_wanted; i++)
        if (model_store_find(s, &files[i], path)) utimensat(AT_FDCWD, path, NULL, 0); /* used now */
    if (s->busy && !s->hashing && !is_wanted(s, s->file.digest)) fetch_over(s);
    s->again_ms = 0;
    uv_timer_stop(&s->again);
    go_on(s);
}

int model_store_source(model_store *s, const char *address, tls_context *tls, shoal_err *err)
{
    char *copy = strdup(address);
    if (!copy) return err_nomem(err);
    free(s->address);
    s->address = copy;
    tls_context_ref(tls);
    tls_context_unref(s->tls);
    s->tls = tls;
    go_on(s);
    return 0;
}

int model_store_open(model_store **ret, uv_loop_t *loop, const model_store_options *o, shoal_err *err)
{
    folder f = FOLDER_NONE;
    int rc = folder_open(&f, o->folder, true, err);
    folder_close(&f);
    if (rc != 0) return rc;
    model_store *s = calloc(1, sizeof *s);
    char *path = strdup(o->folder);
    if (!s || !path) {
        free(s);
        free(path);
        return err_nomem(err);
    }
    s->loop = loop;
    s->o = *o;
    s->folder = path;
    s->fd = -1;
    uv_timer_init(loop, &s->again);
    uv_timer_init(loop, &s->slice);
    s->again.data = s->slice.data = s;
    s->n_open = 2;
    *ret = s;
    return 0;
}

static void release(model_store *s)
{
    if (s->n_open > 0 || s->hashing) return;
    void (*closed)(void *) = s->closed;
    void *user = s->closed_user;
    tls_context_unref(s->tls);
    free(s->folder);
    free(s->address);
    free(s);
    if (closed) closed(user);
}

static void timer_closed(uv_handle_t *h)
{
    model_store *s = h->data;
    s->n_open--;
    release(s);
}

void model_store_close(model_store *s, void (*closed)(void *user), void *user)
{
    if (!s) {
        if (closed) closed(user);
        return;
    }
    s->closing = true;
    s->closed = closed;
    s->closed_user = user;
    fetch_over(s);
    uv_close((uv_handle_t *)&s->again, timer_closed);
    uv_close((uv_handle_t *)&s->slice, timer_closed);
}
