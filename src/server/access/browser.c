/* browser.c: Host, Origin and content type of requests to a gateway without keys. */
#include "access/browser.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static bool is_listed(const char *const *list, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(list[i], s) == 0) return true;
    return false;
}

/* ---- whom the request takes us for ------------------------------------------------------------ */

/* "name:port" without the port; false when it is longer than any name. An address in brackets stays whole. */
static bool browser_name_of(const char *authority, char *ret, size_t cap)
{
    const char *colon = *authority == '[' ? strstr(authority, "]:") : strrchr(authority, ':');
    size_t n = colon ? (size_t)(colon - authority) + (*authority == '[') : strlen(authority);
    if (n >= cap) return false;
    memcpy(ret, authority, n);
    ret[n] = '\0';
    return true;
}

static bool is_address(const char *name)
{
    struct in_addr v4;
    return *name == '[' || inet_pton(AF_INET, name, &v4) == 1;
}

static bool is_local(const char *name)
{
    static const char suffix[] = ".localhost";
    size_t n = strlen(name), n_suffix = sizeof suffix - 1;
    return strcasecmp(name, "localhost") == 0 ||
           (n > n_suffix && strcasecmp(name + n - n_suffix, suffix) == 0);
}

static bool host_is_ours(const gateway_config *c, const char *host)
{
    char name[256], listen[256];
    if (!host) return true; /* HTTP/1.0: no browser */
    if (!browser_name_of(host, name, sizeof name) || !*name) return false;
    if (is_address(name) || is_local(name)) return true;
    if (c->listen && browser_name_of(c->listen, listen, sizeof listen) && strcasecmp(name, listen) == 0)
        return true;
    return is_listed(c->allow_hosts, c->n_allow_hosts, name) ||
           is_listed(c->allow_hosts, c->n_allow_hosts, host);
}

/* ---- who asks ------------------------------------------------------------------------------------- */

/* "http://localhost:*" is that host with any port or none. */
static bool origin_matches(const char *pattern, const char *origin)
{
    size_t n = strlen(pattern);
    if (strcmp(pattern, "*") == 0) return true;
    if (n < 2 || strcmp(pattern + n - 2, ":*") != 0) return strcasecmp(pattern, origin) == 0;
    if (strncasecmp(pattern, origin, n - 2) != 0) return false;
    const char *port = origin + n - 2;
    return !*port || (port[0] == ':' && port[1] && !port[1 + strspn(port + 1, "0123456789")]);
}

/* An address that only programs of this machine reach. */
static bool is_loopback(const char *listen)
{
    char name[256];
    struct in_addr v4;
    if (strncmp(listen, "unix:", 5) == 0) return true;
    if (!browser_name_of(listen, name, sizeof name)) return false;
    if (inet_pton(AF_INET, name, &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
    return strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0;
}

static bool listens_on_loopback(const gateway_config *c)
{
    bool loopback = !c->listen || is_loopback(c->listen);
    for (size_t i = 0; i < c->n_also_listen; i++) loopback &= is_loopback(c->also_listen[i].address);
    return loopback;
}

bool browser_allows_origins(const gateway_config *c)
{
    return c->n_allow_origins > 0 || listens_on_loopback(c);
}

bool browser_origin_is_allowed(const gateway_config *c, const char *origin)
{
    static const char *const local[] = {"http://localhost:*",  "http://127.0.0.1:*",  "http://[::1]:*",
                                        "https://localhost:*", "https://127.0.0.1:*", "https://[::1]:*"};
    const char *const *list = c->n_allow_origins ? c->allow_origins : local;
    size_t n = c->n_allow_origins ? c->n_allow_origins : sizeof local / sizeof *local;
    if (!origin || !browser_allows_origins(c)) return false;
    for (size_t i = 0; i < n; i++)
        if (origin_matches(list[i], origin)) return true;
    return false;
}

static bool is_own_origin(const char *origin, const char *host)
{
    const char *at = strstr(origin, "://");
    return at && host && strcasecmp(at + 3, host) == 0;
}

static bool type_is(const char *type, const char *wanted)
{
    size_t n = strlen(wanted);
    return type && strncasecmp(type, wanted, n) == 0 && (wanted[n - 1] == '/' || strchr("; \t", type[n]));
}

static bool is_json(const char *type)
{
    if (!type) return false;
    size_t n = strcspn(type, "; \t");
    return type_is(type, "application/json") || (n > 5 && strncasecmp(type + n - 5, "+json", 5) == 0);
}

/* Forms send three types; of these curl -d says the first, so that it is taken where no browser shows. A trusted
 * page may send what it likes: the text/plain of a fetch() without headers, too. */
static bool may_be_a_form(const browser_facts *f, bool trusted)
{
    if (trusted) return false;
    /* Files come in forms; a browser says where such a form is from. */
    if (f->takes_forms &&
        (type_is(f->content_type, "multipart/form-data") || type_is(f->content_type, "audio/")))
        return f->fetch_site && strcmp(f->fetch_site, "same-origin") != 0;
    if (strcmp(f->method, "POST") != 0 || is_json(f->content_type)) return false;
    return f->fetch_site || type_is(f->content_type, "text/plain") || type_is(f->content_type, "multipart/");
}

static bool is_elsewhere(const browser_facts *f)
{
    return f->fetch_site && strcmp(f->fetch_site, "same-origin") != 0 && strcmp(f->fetch_site, "none") != 0;
}

/* A GET without an Origin is how a page shows a picture or a frame of another site: it cannot read the answer, but
 * it can hold one of a few places with it. A link that its reader follows opens a document of its own. */
static bool is_embedded_elsewhere(const browser_facts *f)
{
    bool is_read = strcmp(f->method, "GET") == 0 || strcmp(f->method, "HEAD") == 0;
    return is_elsewhere(f) && is_read && !f->origin &&
           !(f->fetch_dest && strcmp(f->fetch_dest, "document") == 0);
}

static int refuse_origin(const char *origin, api_error *e)
{
    return api_error_set(e, 403, "invalid_request_error", "origin_not_allowed", NULL,
                         "pages of '%.100s' may not use this server; to allow them, write "
                         "allow_origins: [\"%.100s\"] in the configuration",
                         origin, origin);
}

/* A page's fetch, whose answer the browser would keep from it. */
static bool is_kept_from_page(const browser_facts *f)
{
    return f->origin && is_elsewhere(f) && f->fetch_mode && strcmp(f->fetch_mode, "cors") == 0;
}

int browser_check(const gateway_config *c, const browser_facts *f, api_error *e)
{
    bool allowed = browser_origin_is_allowed(c, f->origin);
    if (c->n_api_keys) return is_kept_from_page(f) && !allowed ? refuse_origin(f->origin, e) : 0;
    if (!host_is_ours(c, f->host))
        return api_error_set(
            e, 421, "invalid_request_error", "host_not_allowed", NULL,
            "the host '%.100s' is no name of this server; add it to allow_hosts, or configure "
            "api_keys",
            f->host);
    if (f->origin && !allowed && !is_own_origin(f->origin, f->host)) return refuse_origin(f->origin, e);
    if (is_embedded_elsewhere(f))
        return api_error_set(
            e, 403, "invalid_request_error", "origin_not_allowed", NULL,
            "pages of other sites may not use this server; add theirs to allow_origins, and have "
            "them ask with CORS");
    if (may_be_a_form(f, f->origin != NULL))
        return api_error_set(
            e, 415, "invalid_request_error", "unsupported_media_type", NULL,
            "the content type is '%.60s' and must be application/json, because the form of any "
            "page may send other types; send the header 'content-type: application/json'",
            f->content_type ? f->content_type : "");
    return 0;
}
