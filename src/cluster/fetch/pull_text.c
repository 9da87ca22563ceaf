/* pull_text.c: see pull_text.h. */
#define _GNU_SOURCE
#include "fetch/pull_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "json/json.h"
#include "base/utf8.h"

void pull_auth_done(pull_auth *a)
{
    free(a->header);
    a->header = NULL;
}

bool pull_status_may_pass(int status)
{
    return status == 408 || status == 429 || status >= 500;
}

int pull_wait_ms(int k, int retry_after_s)
{
    int ms = 500 << (k < 5 ? k : 5), asked = retry_after_s > 60 ? 60 : retry_after_s;
    return asked * 1000 > ms ? asked * 1000 : ms;
}

/* ---- bodies -------------------------------------------------------------------------------------------- */

typedef struct body {
    buf *text;
    size_t max;
    const char *url;
} body;

static int begin_body(void *user, const pull_reply *reply, shoal_err *err)
{
    (void)reply, (void)err;
    buf_clear(((body *)user)->text);
    return 0;
}

static int add_body(void *user, const char *data, size_t n, shoal_err *err)
{
    body *b = user;
    if (b->text->len + n > b->max)
        return err_set(err, SHOAL_ELIMIT, "%.200s: the answer is longer than %zu bytes", b->url, b->max);
    return buf_append(b->text, data, n) != 0 ? err_nomem(err) : 0;
}

int pull_text_get(pull_client *c, const char *url, const char *accept, pull_auth *auth, size_t max, buf *text,
                  pull_reply *reply, shoal_err *err)
{
    body b = {text, max, url};
    bool renewed = false;
    for (int k = 0;; k++) {
        pull_request r = {.url = url,
                          .accept = accept,
                          .authorization = auth ? auth->header : NULL,
                          .begin = begin_body,
                          .data = add_body,
                          .user = &b};
        int rc = pull_http_get(c, &r, reply, err);
        if (rc == 0 && reply->status == 401 && auth && auth->renewable && !renewed) {
            renewed = true;
            rc = pull_auth_renew(auth, c, url, reply->authenticate, err);
            if (rc != 0) return rc;
            continue;
        }
        bool again = rc == SHOAL_EUNAVAILABLE || (rc == 0 && pull_status_may_pass(reply->status));
        if (!again) return rc;
        if (rc == 0) rc = err_set(err, SHOAL_EUNAVAILABLE, "%.300s: status %d", url, reply->status);
        if (k + 1 >= pull_client_tries(c)) return rc;
        pull_client_sleep(c, pull_wait_ms(k, reply->retry_after_s));
        if (pull_client_stopped(c)) return err_set(err, SHOAL_ECANCELLED, "stopped");
    }
}

/* ---- tokens -------------------------------------------------------------------------------------------- */

/* "docker.io" of "https://registry-1.docker.io:443/v2/": where the last two names begin, and how long they
 * are. */
static const char *site(const char *url, size_t *ret_n)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t n = strcspn(host, ":/?#");
    const char *at = host + n;
    for (int dots = 0; at > host; at--) {
        if (at[-1] == '.' && ++dots == 2) break;
    }
    *ret_n = (size_t)(host + n - at);
    return at;
}

static bool same_site(const char *a, const char *b)
{
    size_t n, k;
    const char *x = site(a, &n), *y = site(b, &k);
    return n == k && strncasecmp(x, y, n) == 0;
}

/* realm?service=...&scope=... */
static int token_url(const char *challenge, buf *ret, shoal_err *err)
{
    static const char *const words[] = {"service", "scope"};
    if (!pull_challenge_word(challenge, "realm", ret))
        return err_set(err, SHOAL_EAUTH, "the registry wants a login and does not say where");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        buf value = {0};
        if (pull_challenge_word(challenge, words[i], &value)) {
            buf_printf(ret, "%c%s=", strchr(ret->data, '?') ? '&' : '?', words[i]);
            percent_encode(ret, value.data, value.len, "");
        }
        buf_done(&value);
    }
    return ret->failed ? err_nomem(err) : 0;
}

static int read_token(pull_auth *a, const buf *text, shoal_err *err)
{
    json_t *root = NULL;
    char *header = NULL;
    int rc = json_parse(&root, text->data ? text->data : "", text->len, "the registry's token", err);
    if (rc != 0) return rc;
    const char *token = json_string_value(json_object_get(root, "token"));
    if (!token) token = json_string_value(json_object_get(root, "access_token"));
    size_t n = token ? strlen(token) : 0;
    bool plain = n > 0 && n < 16384;
    for (size_t i = 0; i < n; i++) plain &= token[i] > 0x20 && token[i] < 0x7F;
    if (!plain)
        rc = err_set(err, SHOAL_EAUTH, "the registry's token is none");
    else if (asprintf(&header, "Bearer %s", token) < 0)
        rc = err_nomem(err);
    json_decref(root);
    if (rc != 0) return rc;
    free(a->header);
    a->header = header;
    return 0;
}

static int put_basic(buf *to, const char *login)
{
    buf_puts(to, "Basic ");
    return base64_encode(to, login, strlen(login));
}

int pull_auth_renew(pull_auth *a, pull_client *c, const char *url, const char *challenge, shoal_err *err)
{
    buf from = {0}, text = {0}, basic = {0};
    pull_reply reply = {0};
    pull_auth with = {0};
    int rc = token_url(challenge, &from, err);
    if (rc == 0 && a->login && same_site(url, from.data)) {
        rc = put_basic(&basic, a->login) != 0 ? err_nomem(err) : 0;
        with.header = basic.data;
    }
    if (rc == 0) rc = pull_text_get(c, from.data, "application/json", &with, 1 << 20, &text, &reply, err);
    if (rc == 0 && reply.status != 200)
        rc = err_set(
            err, SHOAL_EAUTH, "%.200s gives no token (status %d)%s", from.data, reply.status,
            a->login ? "; is the login right?"
                     : "; if it needs a login, put USER:PASSWORD into a file and name it with --token-file");
    if (rc == 0) rc = read_token(a, &text, err);
    buf_done(&from);
    buf_done(&text);
    buf_done(&basic);
    return rc;
}
