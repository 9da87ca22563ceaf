/* address.c: an address's text taken apart. */
#include "wire/address.h"

#include <stdio.h>
#include <string.h>

static int parse_port(const char *s, int *ret)
{
    size_t n = strspn(s, "0123456789");
    if (n == 0 || n > 5 || s[n]) return SHOAL_EINVALID;
    int port = 0;
    for (size_t i = 0; i < n; i++) port = port * 10 + (s[i] - '0');
    if (port > 65535) return SHOAL_EINVALID;
    *ret = port;
    return 0;
}

static int parse_unix(address *a, const char *path, shoal_err *err)
{
    size_t n = strlen(path);
    if (n == 0) return err_set(err, SHOAL_EINVALID, "unix: needs a path");
    if (n >= sizeof a->path)
        return err_set(err, SHOAL_EINVALID, "unix:%s: a socket path has at most %zu bytes", path,
                       sizeof a->path - 1);
    a->is_unix = true;
    memcpy(a->path, path, n + 1);
    return 0;
}

int address_parse(address *ret, const char *text, shoal_err *err)
{
    address a = {0};
    if (strncmp(text, "unix:", 5) == 0) {
        int rc = parse_unix(&a, text + 5, err);
        if (rc == 0) *ret = a;
        return rc;
    }
    const char *colon = strrchr(text, ':');
    if (!colon || parse_port(colon + 1, &a.port) != 0)
        return err_set(err, SHOAL_EINVALID, "%s: an address is host:port or unix:/path", text);
    const char *host = text;
    size_t n = (size_t)(colon - text);
    if (n >= 2 && host[0] == '[' && host[n - 1] == ']') {
        host++;
        n -= 2;
    } else if (memchr(host, ':', n)) {
        return err_set(err, SHOAL_EINVALID, "%s: an IPv6 address is written [::1]:port", text);
    }
    if (n >= sizeof a.host) return err_set(err, SHOAL_EINVALID, "%.40s...: the host name is too long", text);
    memcpy(a.host, host, n);
    *ret = a;
    return 0;
}

bool address_is_here(const address *a)
{
    return a->is_unix || strcmp(a->host, "localhost") == 0 || strcmp(a->host, "::1") == 0 ||
           strncmp(a->host, "127.", 4) == 0;
}
