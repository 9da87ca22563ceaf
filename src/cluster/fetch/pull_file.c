/* pull_file.c: see pull_file.h. */
#define _GNU_SOURCE
#include "fetch/pull_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "json/json.h"
#include "kinds/model_kind.h"
#include "json/json_put.h"

enum { STATE_MAX = 65536 };
/* Of a file whose length nobody told: what is taken at most, and what is left free of the disk. */
static const uint64_t UNTOLD_MAX = UINT64_C(64) << 30, LEAVE_FREE = UINT64_C(256) << 20;

typedef struct fetching {
    pull_client *c;
    const pull_target *t;
    pull_meter *m;
    partial part; /* PATH.part */
    char *state;  /* PATH.part.json */
    bool has_total;
    uint64_t total, most;
    char etag[256]; /* of the part; "" when weak or unknown */
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

static content content_of(const pull_target *t)
{
    return (content){.has_size = t->has_size, .size = t->size, .sha256 = t->sha256, .git_sha1 = t->sha1};
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
    x->etag[0] = '\0';
    return partial_restart(&x->part, err);
}

static int open_part(fetching *x, shoal_err *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s.part", x->t->path) < 0) path = NULL;
    if (asprintf(&x->state, "%s.part.json", x->t->path) < 0) x->state = NULL;
    shoal_err why;
    int rc = path && x->state ? partial_open(&x->part, path, 0644, &why) : SHOAL_ENOMEM;
    free(path);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc == SHOAL_EFULL)
        return err_set(err, rc, "%s is being fetched by another shoal; wait for it", x->t->name);
    if (rc != 0) return err_set(err, rc, "%s; --to DIR names another place", why.message);
    uint64_t at = x->part.at;
    bool fits = at > 0 && (!x->t->has_size || at <= x->t->size) && may_continue(x);
    return fits || at == 0 ? 0 : start_anew(x, err);
}

/* ---- transfer ------------------------------------------------------------------------------------------ */

/* What is announced must be what the list said; and there must be room for it. */
static int check_length(fetching *x, const pull_reply *r, shoal_err *err)
{
    uint64_t room = 0, at = x->part.at;
    (void)file_free_bytes(&room, x->part.path, NULL);
    x->has_total = x->t->has_size;
    x->total = x->t->size;
    if (r->has_length && !x->has_total) {
        x->has_total = true;
        x->total = at + r->length;
    }
    if (r->has_length && x->total != at + r->length)
        return err_set(err, SHOAL_EPROTOCOL, "%s: the server announces %llu bytes, but %llu are expected",
                       x->t->name, (unsigned long long)(at + r->length), (unsigned long long)x->total);
    x->most = x->has_total ? x->total : room > LEAVE_FREE ? at + room - LEAVE_FREE : at;
    if (!x->has_total && x->most > UNTOLD_MAX) x->most = UNTOLD_MAX;
    if (x->has_total && x->total - at > room)
        return err_set(err, SHOAL_EIO, "%s: %llu bytes are needed and %llu are free on the disk", x->t->name,
                       (unsigned long long)(x->total - at), (unsigned long long)room);
    return 0;
}

static int pull_file_begin(void *user, const pull_reply *r, shoal_err *err)
{
    fetching *x = user;
    int rc = 0;
    if (r->status == 206 && (!r->has_range || r->range_from != x->part.at))
        return err_set(err, SHOAL_EPROTOCOL, "%s: the server sends another part than was asked for",
                       x->t->name);
    if (r->status != 206 && x->part.at > 0) rc = start_anew(x, err);
    if (rc == 0) rc = check_length(x, r, err);
    if (rc != 0) return rc;
    snprintf(x->etag, sizeof x->etag, "%s", strncmp(r->etag, "W/", 2) == 0 ? "" : r->etag);
    pull_meter_begin(x->m, x->t->name, x->has_total, x->total, x->part.at);
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
    ssize_t n = pread(x->part.fd, head, sizeof head, 0);
    if (is_gguf(x->t->path)) return n < 4 || memcmp(head, "GGUF", 4) != 0;
    return x->t->is_model && (n <= 0 || !model_kind_begins(head, (size_t)n));
}

static int pull_file_take(void *user, const char *data, size_t n, shoal_err *err)
{
    fetching *x = user;
    shoal_err why;
    if (x->part.at == 0 && n >= 4 && is_gguf(x->t->path) && memcmp(data, "GGUF", 4) != 0)
        return wrong_kind(x, err);
    if (n > x->most - x->part.at)
        return err_set(err, x->has_total ? SHOAL_EPROTOCOL : SHOAL_ELIMIT,
                       "%s: the server sends more than %llu bytes%s", x->t->name, (unsigned long long)x->most,
                       x->has_total ? "" : ", and does not say how many there are");
    int rc = partial_append(&x->part, data, n, &why);
    if (rc != 0)
        return err_set(err, rc, "%s; what came is kept: make room and run the same command again",
                       why.message);
    pull_meter_at(x->m, x->part.at);
    return 0;
}

/* One request; 0 when the file is whole. */
static int fetch_once(fetching *x, pull_reply *reply, shoal_err *err)
{
    const pull_target *t = x->t;
    bool anonymous = !*t->sha256; /* then the etag alone tells whose part this is */
    pull_request r = {.url = t->url,
                      .authorization = t->auth ? t->auth->header : NULL,
                      .from = x->part.at,
                      .if_range = anonymous && *x->etag ? x->etag : NULL,
                      .begin = pull_file_begin,
                      .data = pull_file_take,
                      .user = x};
    *reply = (pull_reply){0};
    int rc = pull_http_get(x->c, &r, reply, err);
    if (rc != 0) return rc;
    if (reply->status == 200 || reply->status == 206) {
        if (x->has_total && x->part.at < x->total)
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
        uint64_t before = x->part.at;
        if (x->t->has_size && x->part.at == x->t->size && x->part.at > 0) return 0;
        int rc = fetch_once(x, &reply, err);
        if (rc == SHOAL_EAUTH && reply.status == 401 && x->t->auth && x->t->auth->renewable && !renewed) {
            renewed = true;
            rc = pull_auth_renew(x->t->auth, x->c, x->t->url, reply.authenticate, err);
            if (rc == 0) continue;
        }
        if (reply.status == 416 && x->part.at > 0 && !x->restarted) {
            x->restarted = true;
            rc = start_anew(x, err);
            if (rc == 0) continue;
        }
        if (rc != SHOAL_EUNAVAILABLE) return rc;
        k = x->part.at > before + 65536 ? 0 : k + 1;
        if (k >= pull_client_tries(x->c)) return rc;
        pull_meter_say(x->m, "%s; trying again", err ? err->message : x->t->name);
        pull_client_sleep(x->c, pull_wait_ms(k, reply.retry_after_s));
        if (pull_client_stopped(x->c)) return err_set(err, SHOAL_ECANCELLED, "stopped");
    }
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void pull_file_drop(fetching *x)
{
    partial_remove(&x->part);
    unlink(x->state);
}

static int take_name(fetching *x, shoal_err *err)
{
    int rc = partial_publish(&x->part, x->t->path, err);
    if (rc == 0) unlink(x->state);
    return rc;
}

static int wrong_content(const fetching *x, const content_found *got, shoal_err *err)
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
    const content want = content_of(x->t);
    int rc = partial_verify(&x->part, &want, &ret->found, err);
    if (rc == 0 && !is_wrong_kind(x)) return take_name(x, err);
    if (rc == SHOAL_EDIGEST && continued && !x->restarted) {
        x->restarted = *ret_again = true;
        return start_anew(x, err);
    }
    if (rc != 0 && rc != SHOAL_EDIGEST) return rc;
    pull_file_drop(x);
    return rc == 0 ? wrong_kind(x, err) : wrong_content(x, &ret->found, err);
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
        bool continued = x->part.at > 0;
        again = false;
        rc = fetch_part(x, err);
        pull_meter_end(x->m, outcome(rc));
        if (rc == 0) rc = pull_file_finish(x, continued, ret, &again, err);
    }
    if (x->part.path && (rc == SHOAL_EFORMAT || (rc != 0 && x->part.at == 0))) pull_file_drop(x);
    return rc;
}

static int check_present(const pull_target *t, pull_result *ret, shoal_err *err)
{
    const content want = content_of(t);
    bool known = *t->sha256 || *t->sha1;
    int rc = content_check(t->path, &want, &ret->found, err);
    ret->was_here = rc == 0 && known;
    if ((rc != 0 && rc != SHOAL_EDIGEST) || ret->was_here) return rc;
    if (t->force) return 0;
    return err_set(err, SHOAL_EINVALID, "%s is there and %s; --force replaces it, --to DIR puts it elsewhere",
                   t->path, known ? "is another file" : "nothing tells whether it is the same");
}

int pull_file_get(pull_client *c, const pull_target *t, pull_meter *m, pull_result *ret, shoal_err *err)
{
    fetching x = {.c = c, .t = t, .m = m, .part = PARTIAL_NONE};
    *ret = (pull_result){0};
    int rc = file_exists(t->path) ? check_present(t, ret, err) : 0;
    if (rc == 0 && !ret->was_here) rc = fetch(&x, ret, err);
    partial_close(&x.part);
    free(x.state);
    return rc;
}
