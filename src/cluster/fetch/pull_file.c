/* pull_file.c: see pull_file.h. */
#define _GNU_SOURCE
#define OPENSSL_SUPPRESS_DEPRECATED
#include "fetch/pull_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "json/json.h"
#include "kinds/model_kind.h"
#include "json/json_put.h"
#include "base/sha256.h"

enum { STATE_MAX = 65536 };
/* Of a file whose length nobody told: what is taken at most, and what is left free of the disk. */
static const uint64_t UNTOLD_MAX = UINT64_C(64) << 30, LEAVE_FREE = UINT64_C(256) << 20;

typedef struct fetching {
    pull_client *c;
    const pull_target *t;
    pull_meter *m;
    char *part, *state;
    int fd;
    uint64_t at; /* bytes in the part */
    bool has_total;
    uint64_t total, most;
    char etag[256]; /* of the part; "" when weak or unknown */
    bool mine;      /* the part is locked */
    bool restarted; /* once, because a part did not fit */
} fetching;

uint64_t pull_file_here(const char *path)
{
    struct stat st;
    char *part = NULL;
    if (stat(path, &st) == 0) return (uint64_t)st.st_size;
    bool there = asprintf(&part, "%s.part", path) >= 0 && stat(part, &st) == 0;
    free(part);
    return there ? (uint64_t)st.st_size : 0;
}

/* ---- digests ------------------------------------------------------------------------------------------- */

/* What git calls a blob of these bytes: SHA-1 of "blob N\0" and them. */
static int git_sha1(const char *path, char ret[41], shoal_err *err)
{
    file_map map = {0};
    int rc = file_map_open(&map, path, err);
    if (rc != 0) return rc;
    unsigned char d[20];
    char head[40];
    SHA_CTX s;
    SHA1_Init(&s);
    SHA1_Update(&s, head, (size_t)snprintf(head, sizeof head, "blob %zu", map.len) + 1);
    if (map.len) SHA1_Update(&s, map.data, map.len);
    SHA1_Final(d, &s);
    file_map_close(&map);
    for (size_t i = 0; i < sizeof d; i++) snprintf(ret + 2 * i, 3, "%02x", d[i]);
    return 0;
}

/* Is the file at `path` the one that is wanted? Without any digest only its size can tell. */
static int is_wanted(const pull_target *t, const char *path, pull_result *ret, bool *ret_yes, shoal_err *err)
{
    sha256_digest d;
    char sha1[41] = "";
    struct stat st;
    if (stat(path, &st) != 0) return err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    int rc = sha256_file(path, &d, err);
    if (rc == 0 && *t->sha1) rc = git_sha1(path, sha1, err);
    if (rc != 0) return rc;
    sha256_hex(&d, ret->sha256);
    ret->bytes = (uint64_t)st.st_size;
    *ret_yes = (!t->has_size || t->size == ret->bytes) &&
               (!*t->sha256 || strcasecmp(t->sha256, ret->sha256) == 0) &&
               (!*t->sha1 || strcasecmp(t->sha1, sha1) == 0);
    return 0;
}

/* ---- state --------------------------------------------------------------------------------------------- */

static int write_state(const fetching *x, shoal_err *err)
{
    buf text = {0};
    buf_putc(&text, '{');
    json_put_text(&text, "url", x->t->url);
    json_put_text(&text, "etag", x->etag);
    buf_printf(&text, ",\"sha256\":\"%s\"}\n", x->t->sha256);
    int rc = file_replace(x->state, &text, err);
    buf_done(&text);
    return rc;
}

/* May the part be continued? Fills x->etag. What cannot be read is no reason to stop: the part is begun anew.
 */
static bool may_continue(fetching *x)
{
    json_t *root = NULL;
    const char *url = "", *etag = "", *sha256 = "";
    shoal_err err;
    bool ok = json_parse_file(&root, x->state, STATE_MAX, &err) == 0 &&
              json_get_str(root, "url", &url, &err) == 0 && json_get_str(root, "etag", &etag, &err) == 0 &&
              json_get_str(root, "sha256", &sha256, &err) == 0;
    if (ok && *x->t->sha256)
        ok = strcasecmp(sha256, x->t->sha256) == 0;
    else if (ok)
        ok = *etag && strlen(etag) < sizeof x->etag && strcmp(url, x->t->url) == 0;
    if (ok && strlen(etag) < sizeof x->etag) strcpy(x->etag, etag);
    json_decref(root);
    return ok;
}

static int start_anew(fetching *x, shoal_err *err)
{
    x->at = 0;
    x->etag[0] = '\0';
    if (ftruncate(x->fd, 0) != 0) return err_set(err, SHOAL_EIO, "%s: %s", x->part, strerror(errno));
    return 0;
}

static int open_part(fetching *x, shoal_err *err)
{
    struct stat st;
    if (asprintf(&x->part, "%s.part", x->t->path) < 0) x->part = NULL;
    if (asprintf(&x->state, "%s.part.json", x->t->path) < 0) x->state = NULL;
    if (!x->part || !x->state) return err_nomem(err);
    x->fd = open(x->part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (x->fd < 0 || fstat(x->fd, &st) != 0)
        return err_set(err, errno == EACCES ? SHOAL_EAUTH : SHOAL_EIO,
                       "%s: cannot write: %s; --to DIR names another place", x->part, strerror(errno));
    if (!S_ISREG(st.st_mode)) return err_set(err, SHOAL_EINVALID, "%s is no regular file", x->part);
    if (flock(x->fd, LOCK_EX | LOCK_NB) != 0)
        return err_set(err, SHOAL_EFULL, "%s is being fetched by another shoal; wait for it", x->t->name);
    x->mine = true;
    x->at = (uint64_t)st.st_size;
    bool fits = x->at > 0 && (!x->t->has_size || x->at <= x->t->size) && may_continue(x);
    return fits || x->at == 0 ? 0 : start_anew(x, err);
}

/* ---- transfer ------------------------------------------------------------------------------------------ */

static uint64_t free_bytes(const char *path)
{
    struct statvfs v;
    char *slash, *folder = strdup(path);
    if (!folder) return 0;
    slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
    bool ok = statvfs(slash ? folder : ".", &v) == 0;
    free(folder);
    return ok ? (uint64_t)v.f_bavail * v.f_frsize : 0;
}

/* What is announced must be what the list said; and there must be room for it. */
static int check_length(fetching *x, const pull_reply *r, shoal_err *err)
{
    uint64_t room = free_bytes(x->t->path);
    x->has_total = x->t->has_size;
    x->total = x->t->size;
    if (r->has_length && !x->has_total) {
        x->has_total = true;
        x->total = x->at + r->length;
    }
    if (r->has_length && x->total != x->at + r->length)
        return err_set(err, SHOAL_EPROTOCOL, "%s: the server announces %llu bytes, but %llu are expected",
                       x->t->name, (unsigned long long)(x->at + r->length), (unsigned long long)x->total);
    x->most = x->has_total ? x->total : room > LEAVE_FREE ? x->at + room - LEAVE_FREE : x->at;
    if (!x->has_total && x->most > UNTOLD_MAX) x->most = UNTOLD_MAX;
    if (x->has_total && x->total - x->at > room)
        return err_set(err, SHOAL_EIO, "%s: %llu bytes are needed and %llu are free on the disk", x->t->name,
                       (unsigned long long)(x->total - x->at), (unsigned long long)room);
    return 0;
}

static int pull_file_begin(void *user, const pull_reply *r, shoal_err *err)
{
    fetching *x = user;
    int rc = 0;
    if (r->status == 206 && (!r->has_range || r->range_from != x->at))
        return err_set(err, SHOAL_EPROTOCOL, "%s: the server sends another part than was asked for",
                       x->t->name);
    if (r->status != 206 && x->at > 0) rc = start_anew(x, err);
    if (rc == 0) rc = check_length(x, r, err);
    if (rc != 0) return rc;
    snprintf(x->etag, sizeof x->etag, "%s", strncmp(r->etag, "W/", 2) == 0 ? "" : r->etag);
    pull_meter_begin(x->m, x->t->name, x->has_total, x->total, x->at);
    return write_state(x, err);
}

static bool is_gguf(const char *path)
{
    return model_kind_named(path) == &model_kind_gguf;
}

static int wrong_kind(const fetching *x, shoal_err *err)
{
    return err_set(err, SHOAL_EFORMAT, "%s: what the server sends is no %s (a web page?)", x->t->name,
                   is_gguf(x->t->path) ? "GGUF file" : "file of a model");
}

/* Of the part, which is whole. */
static bool is_wrong_kind(const fetching *x)
{
    uint8_t head[64];
    ssize_t n = pread(x->fd, head, sizeof head, 0);
    if (is_gguf(x->t->path)) return n < 4 || memcmp(head, "GGUF", 4) != 0;
    return x->t->is_model && (n <= 0 || !model_kind_begins(head, (size_t)n));
}

static int pull_file_take(void *user, const char *data, size_t n, shoal_err *err)
{
    fetching *x = user;
    if (x->at == 0 && n >= 4 && is_gguf(x->t->path) && memcmp(data, "GGUF", 4) != 0)
        return wrong_kind(x, err);
    if (n > x->most - x->at)
        return err_set(err, x->has_total ? SHOAL_EPROTOCOL : SHOAL_ELIMIT,
                       "%s: the server sends more than %llu bytes%s", x->t->name, (unsigned long long)x->most,
                       x->has_total ? "" : ", and does not say how many there are");
    if (file_write_at(x->fd, data, n, x->at) != 0)
        return err_set(err, SHOAL_EIO, "%s: %s; what came is kept: make room and run the same command again",
                       x->part, strerror(errno));
    x->at += n;
    pull_meter_at(x->m, x->at);
    return 0;
}

/* One request; 0 when the file is whole. */
static int fetch_once(fetching *x, pull_reply *reply, shoal_err *err)
{
    const pull_target *t = x->t;
    bool anonymous = !*t->sha256; /* then the etag alone tells whose part this is */
    pull_request r = {.url = t->url,
                      .authorization = t->auth ? t->auth->header : NULL,
                      .from = x->at,
                      .if_range = anonymous && *x->etag ? x->etag : NULL,
                      .begin = pull_file_begin,
                      .data = pull_file_take,
                      .user = x};
    *reply = (pull_reply){0};
    int rc = pull_http_get(x->c, &r, reply, err);
    if (rc != 0) return rc;
    if (reply->status == 200 || reply->status == 206) {
        if (x->has_total && x->at < x->total)
            return err_set(err, SHOAL_EUNAVAILABLE, "%s: the connection was cut off", t->name);
        return 0;
    }
    if (pull_status_may_pass(reply->status))
        return err_set(err, SHOAL_EUNAVAILABLE, "%s: status %d", t->name, reply->status);
    if (reply->status == 401 || reply->status == 403)
        return err_set(err, SHOAL_EAUTH, "%s: not allowed (status %d)", t->name, reply->status);
    if (reply->status == 404 || reply->status == 410)
        return err_set(err, SHOAL_ENOTFOUND, "%s: not there (status %d)", t->name, reply->status);
    return err_set(err, SHOAL_EPROTOCOL, "%s: status %d", t->name, reply->status);
}

/* Requests until the part is whole. What gets on may be tried on. */
static int fetch_part(fetching *x, shoal_err *err)
{
    bool renewed = false;
    for (int k = 0;;) {
        pull_reply reply;
        uint64_t before = x->at;
        if (x->t->has_size && x->at == x->t->size && x->at > 0) return 0;
        int rc = fetch_once(x, &reply, err);
        if (rc == SHOAL_EAUTH && reply.status == 401 && x->t->auth && x->t->auth->renewable && !renewed) {
            renewed = true;
            rc = pull_auth_renew(x->t->auth, x->c, x->t->url, reply.authenticate, err);
            if (rc == 0) continue;
        }
        if (reply.status == 416 && x->at > 0 && !x->restarted) {
            x->restarted = true;
            rc = start_anew(x, err);
            if (rc == 0) continue;
        }
        if (rc != SHOAL_EUNAVAILABLE) return rc;
        k = x->at > before + 65536 ? 0 : k + 1;
        if (k >= pull_client_tries(x->c)) return rc;
        pull_meter_say(x->m, "%s; trying again", err ? err->message : x->t->name);
        pull_client_sleep(x->c, pull_wait_ms(k, reply.retry_after_s));
        if (pull_client_stopped(x->c)) return err_set(err, SHOAL_ECANCELLED, "stopped");
    }
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static int pull_file_drop(fetching *x)
{
    unlink(x->part);
    return unlink(x->state);
}

static int take_name(fetching *x, shoal_err *err)
{
    if (fsync(x->fd) != 0 || rename(x->part, x->t->path) != 0)
        return err_set(err, SHOAL_EIO, "%s: %s", x->t->path, strerror(errno));
    unlink(x->state);
    return 0;
}

static int wrong_content(const fetching *x, const pull_result *got, shoal_err *err)
{
    const char *want = *x->t->sha256 ? x->t->sha256 : x->t->sha1;
    return err_set(
        err, SHOAL_EDIGEST,
        "%s: what came (%llu bytes, sha256 %.12s...) is not what was promised (%.12s...); it was removed",
        x->t->name, (unsigned long long)got->bytes, got->sha256, *want ? want : "another size");
}

/* Check the part and give it its name. A continued part that is wrong is fetched anew, once. */
static int pull_file_finish(fetching *x, bool continued, pull_result *ret, bool *ret_again, shoal_err *err)
{
    bool good = false;
    int rc = is_wanted(x->t, x->part, ret, &good, err);
    if (rc != 0) return rc;
    if (good && is_wrong_kind(x)) {
        pull_file_drop(x);
        return wrong_kind(x, err);
    }
    if (good) return take_name(x, err);
    if (continued && !x->restarted) {
        x->restarted = *ret_again = true;
        return start_anew(x, err);
    }
    pull_file_drop(x);
    return wrong_content(x, ret, err);
}

static const char *outcome(int rc)
{
    return rc == 0 ? "done" : rc == SHOAL_ECANCELLED ? "stopped" : "failed";
}

static int fetch(fetching *x, pull_result *ret, shoal_err *err)
{
    bool again = true;
    int rc = open_part(x, err);
    while (rc == 0 && again) {
        bool continued = x->at > 0;
        again = false;
        rc = fetch_part(x, err);
        pull_meter_end(x->m, outcome(rc));
        if (rc == 0) rc = pull_file_finish(x, continued, ret, &again, err);
    }
    if (x->mine && (rc == SHOAL_EFORMAT || (rc != 0 && x->at == 0))) pull_file_drop(x);
    return rc;
}

int pull_file_get(pull_client *c, const pull_target *t, pull_meter *m, pull_result *ret, shoal_err *err)
{
    bool same = false, known = *t->sha256 || *t->sha1;
    *ret = (pull_result){0};
    if (file_exists(t->path)) {
        int rc = is_wanted(t, t->path, ret, &same, err);
        if (rc != 0) return rc;
        ret->was_here = known && same;
        if (ret->was_here) return 0;
        if (!t->force)
            return err_set(err, SHOAL_EINVALID,
                           "%s is there and %s; --force replaces it, --to DIR puts it elsewhere", t->path,
                           known ? "is another file" : "nothing tells whether it is the same");
    }
    fetching x = {.c = c, .t = t, .m = m, .fd = -1};
    int rc = fetch(&x, ret, err);
    if (x.fd >= 0) close(x.fd);
    free(x.part);
    free(x.state);
    return rc;
}
