/* pages.c: assets as answers. */
#include "endpoints/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "asset/asset.h"
#include "wire/coding.h"

/* 'self' of connect-src is this server's WebSockets, too (CSP 3, section 6.7.2.8). */
#define POLICY                                                                                            \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* If-None-Match is "*" or a list of tags, which compare weakly (RFC 9110 13.1.2). */
bool pages_client_has(const gateway_request *rq, const char *etag)
{
    const char *tags = request_header(rq, "if-none-match");
    return tags && (strcmp(tags, "*") == 0 || strstr(tags, etag));
}

static void serve_varied(gateway_request *rq, const char *name, const char *vary)
{
    const asset *a = asset_find(name);
    if (!a) {
        api_error e = {0};
        api_error_set(&e, 404, "invalid_request_error", "not_found", NULL, "there is nothing at %.200s",
                      request_path(rq));
        request_error(rq, &e);
        return;
    }
    bool packed = a->gzip && coding_choose(request_header(rq, "accept-encoding"), CODING_GZIP) == CODING_GZIP;
    char etag[48]; /* weak: packed or plain, it is the same page */
    snprintf(etag, sizeof etag, "W/%s", a->etag);
    const http_header more[] = {{"etag", etag},
                                {"cache-control", "no-cache"}, /* ask, and hear 304 */
                                {"content-security-policy", POLICY},
                                {"x-content-type-options", "nosniff"},
                                {"referrer-policy", "no-referrer"},
                                {"vary", vary},
                                {"content-encoding", "gzip"}};
    size_t n = sizeof more / sizeof *more - !packed;
    if (pages_client_has(rq, a->etag))
        request_reply(rq, 304, NULL, more, 6, NULL, 0);
    else
        request_reply(rq, 200, a->content_type, more, n, packed ? a->gzip : a->bytes,
                      packed ? a->n_gzip : a->n);
}

void pages_serve(gateway_request *rq, const char *name)
{
    serve_varied(rq, name, "accept-encoding");
}

void pages_docs(gateway_request *rq)
{
    pages_serve(rq, "docs/index.html");
}

/* What `type` is worth by an Accept header (RFC 9110 12.5.1), which names it; -1: it does not. */
static double worth_of(const char *accept, const char *type)
{
    size_t n = strlen(type);
    for (const char *at = accept; at && *at; at += *at == ',') {
        at += strspn(at, " \t");
        size_t len = strcspn(at, ",");
        if (len >= n && strncasecmp(at, type, n) == 0 && (len == n || strchr("; \t", at[n]))) {
            const char *q = strstr(at, "q=");
            return q && q < at + len ? strtod(q + 2, NULL) : 1;
        }
        at += len;
    }
    return -1;
}

/* Browsers name text/html, and nothing that they would rather have. */
static bool is_browser(const gateway_request *rq)
{
    static const char *const OTHERS[] = {"application/json", "text/plain"};
    const char *accept = request_header(rq, "accept");
    double page = worth_of(accept, "text/html");
    bool best = page > 0;
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) best &= worth_of(accept, OTHERS[i]) <= page;
    return best;
}

/* Other programs than browsers ask here whether a server of Ollama runs. */
void pages_root(gateway_request *rq)
{
    static const char RUNS[] = "Ollama is running";
    static const http_header VARY[] = {{"vary", "accept"}};
    if (is_browser(rq))
        serve_varied(rq, "page/index.html", "accept, accept-encoding");
    else
        request_reply(rq, 200, "text/plain; charset=utf-8", VARY, 1, RUNS, sizeof RUNS - 1);
}

void pages_asset(gateway_request *rq)
{
    pages_serve(rq, request_path(rq) + strlen("/assets/"));
}
