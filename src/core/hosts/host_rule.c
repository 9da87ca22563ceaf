/* host_rule.c: what of a host's configuration, and of a path, can be; see host_rule.h. */
#include "hosts/host_rule.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *const methods[] = {
#define METHOD_NAME(e, name) [e] = name,
    HOST_METHOD_TABLE(METHOD_NAME)
#undef METHOD_NAME
};

const char *host_method_name(host_method m)
{
    return methods[m];
}

bool host_method_known(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i], name) == 0) return true;
    return false;
}

/* A host's name or address, and perhaps a port: letters, digits, '.', '-' and '_', or what stands in
 * brackets. */
static bool is_authority(const char *s, size_t n)
{
    size_t name = 0;
    if (n && *s == '[') {
        const char *end = memchr(s, ']', n);
        name = end ? (size_t)(end - s) + 1 : 0;
        for (size_t i = 1; i + 1 < name; i++)
            if (!isxdigit((unsigned char)s[i]) && s[i] != ':' && s[i] != '.') return false;
    } else {
        while (name < n && (isalnum((unsigned char)s[name]) || strchr("-._", s[name]))) name++;
    }
    if (name == 0 || name > 253) return false;
    if (name == n) return true;
    long port = 0;
    if (s[name] != ':' || n - name > 6 || n - name < 2) return false;
    for (size_t i = name + 1; i < n; i++) {
        if (!isdigit((unsigned char)s[i])) return false;
        port = 10 * port + (s[i] - '0');
    }
    return port > 0 && port <= 65535;
}

int host_url_check(const char *url, shoal_err *err)
{
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
    if (!scheme) return err_set(err, SHOAL_EINVALID, "must begin with https:// or http://");
    const char *at = url + scheme;
    size_t n = strcspn(at, "/?#");
    if (memchr(at, '@', n))
        return err_set(err, SHOAL_EINVALID,
                       "must hold no user or password: a header from a file is for that");
    if (!is_authority(at, n))
        return err_set(err, SHOAL_EINVALID, "'%.*s' is no host, or no port of one (example: api.lan:8443)",
                       (int)(n < 64 ? n : 64), at);
    if (strpbrk(at, "?#"))
        return err_set(err, SHOAL_EINVALID, "must hold no '?' and no '#': a stage's path has them");
    if (at[n] && !host_path_ok(at + n))
        return err_set(err, SHOAL_EINVALID, "'%.64s' is no beginning of a path", at + n);
    return 0;
}

bool host_header_name_ok(const char *name)
{
    static const char *const ours[] = {"host",       "content-length", "content-type", "transfer-encoding",
                                       "connection", "expect",         "upgrade",      "te",
                                       "trailer",    "x-request-id"};
    size_t n = 0;
    for (; name[n]; n++)
        if (!isalnum((unsigned char)name[n]) && name[n] != '-' && name[n] != '_') return false;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcasecmp(name, ours[i]) == 0) return false;
    return n > 0 && n <= 64;
}

bool host_header_value_ok(const char *value)
{
    size_t n = 0;
    for (; value[n]; n++)
        if ((unsigned char)value[n] < 0x20 || value[n] == 0x7f) return false;
    return n > 0 && n <= 8192;
}

int host_header_check(const host_header *h, const char *where, size_t i, shoal_err *err)
{
    if (!host_header_name_ok(h->name))
        return err_set(
            err, SHOAL_EINVALID,
            "%sheaders[%zu].name: '%s' is no name of a header, or of one that the request itself sets", where,
            i, h->name);
    if (!h->value == !h->file)
        return err_set(err, SHOAL_EINVALID,
                       "%sheaders[%zu]: needs 'value', or 'file' for a secret, and not both", where, i);
    if (h->value && !host_header_value_ok(h->value))
        return err_set(err, SHOAL_EINVALID, "%sheaders[%zu].value: must be one line", where, i);
    return 0;
}

bool host_allows(const host_rule *r, host_method m)
{
    for (size_t i = 0; i < r->n_methods; i++)
        if (strcmp(r->methods[i], methods[m]) == 0) return true;
    return !r->n_methods && m == HOST_GET;
}

const host_rule *host_find(const host_rule *all, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0) return &all[i];
    return NULL;
}

/* How many dots a segment is, and nothing else, written as they are or as %2e; 0: it is something else. */
static size_t dots_of(const char *s, size_t n)
{
    size_t dots = 0;
    for (size_t i = 0; i < n; dots++) {
        if (s[i] == '.')
            i++;
        else if (n - i >= 3 && strncasecmp(s + i, "%2e", 3) == 0)
            i += 3;
        else
            return 0;
    }
    return dots;
}

/* Bytes of what may part two segments at s: "/", and what some servers take for it, "%2F" and "%5C"; 0:
 * nothing does. */
static size_t separator(const char *s)
{
    if (*s == '/') return 1;
    return strncasecmp(s, "%2f", 3) == 0 || strncasecmp(s, "%5c", 3) == 0 ? 3 : 0;
}

bool host_path_ok(const char *path)
{
    if (*path != '/') return false;
    for (const char *c = path; *c; c++)
        if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f || strchr("#\\\"<>^`{|}", *c))
            return false;
    size_t end = strcspn(path, "?");
    for (size_t at = 1, n; at <= end;) {
        for (n = 0; at + n < end && !separator(path + at + n);) n++;
        size_t dots = dots_of(path + at, n);
        if (dots == 1 || dots == 2) return false;
        at += n + (at + n < end ? separator(path + at + n) : 1);
    }
    return true;
}
