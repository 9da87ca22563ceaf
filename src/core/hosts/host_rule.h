/* host_rule.h: hosts as the configuration names them, and what can be asked of one.
 *
 *     hosts:
 *       - name: weather
 *         url: https://api.lan:8443/v1
 *         methods: [GET, POST]
 *         headers: [{name: authorization, file: weather.token}]
 *
 * Pure; hosts.h asks. */
#ifndef HOSTS_HOST_RULE_H
#define HOSTS_HOST_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* X(enum, name) */
#define HOST_METHOD_TABLE(X) \
    X(HOST_GET, "GET")       \
    X(HOST_POST, "POST")     \
    X(HOST_PUT, "PUT")       \
    X(HOST_PATCH, "PATCH")   \
    X(HOST_DELETE, "DELETE")
typedef enum host_method {
#define HOST_METHOD_ENUM(e, name) e,
    HOST_METHOD_TABLE(HOST_METHOD_ENUM)
#undef HOST_METHOD_ENUM
} host_method;
const char *host_method_name(host_method m);
bool host_method_known(const char *name);

typedef struct host_header {
    const char *name;  /* in lower case */
    const char *value; /* or what the first line of `file` says; one of the two is NULL */
    const char *file;
} host_header;

typedef struct host_rule {
    const char *name;     /* what stages call it */
    const char *url;      /* "https://api.lan:8443/v1": what stands before every path */
    const char **methods; /* that may be used; none: GET */
    size_t n_methods;
    host_header *headers;
    size_t n_headers;
    const char *ca;      /* PEM file of the CAs to trust; NULL: the system's */
    uint64_t timeout_ms; /* of a whole call */
    uint64_t max_bytes;  /* of an answer's body */
} host_rule;

/* Is it one that can be asked: http or https, a host, perhaps a port and the beginning of a path?
 * SHOAL_EINVALID with the sentence that says what is wrong. */
int host_url_check(const char *url, shoal_err *err);
/* May a request's header have this name, and this value? Those that make the request what it is are not
 * taken. */
bool host_header_name_ok(const char *name);
bool host_header_value_ok(const char *value);
/* The i-th of a list's headers: a sentence that begins with where, "hosts[0].", and "headers[1].name: ". SHOAL_EINVALID. */
int host_header_check(const host_header *h, const char *where, size_t i, shoal_err *err);
bool host_allows(const host_rule *r, host_method m);
const host_rule *host_find(const host_rule *all, size_t n, const char *name); /* NULL: there is none */
/* Does a path stay below the host's URL: '/' first, visible ASCII without '#', no segment that is "." or ".."
 * in whatever way it is written? */
bool host_path_ok(const char *path);

#endif
