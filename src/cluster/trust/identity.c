/* identity.c: names and the URI they are written in. */
#include "trust/identity.h"

#include <stdio.h>
#include <string.h>

#define SCHEME "shoal://"

static const char *const role_names[N_ROLES] = {
#define ROLE_NAME(e, name, may) name,
    ROLE_TABLE(ROLE_NAME)
#undef ROLE_NAME
};

const char *role_name(role r)
{
    return role_names[r];
}

bool role_parse(role *ret, const char *s, size_t n)
{
    for (int r = 0; r < N_ROLES; r++) {
        if (strlen(role_names[r]) != n || memcmp(role_names[r], s, n) != 0) continue;
        *ret = (role)r;
        return true;
    }
    return false;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool identity_name_ok(const char *s, size_t n)
{
    if (n == 0 || n >= IDENTITY_NAME_SIZE) return false;
    for (size_t i = 0; i < n; i++) {
        bool at_edge = i == 0 || i + 1 == n || s[i - 1] == '.' || s[i + 1] == '.';
        if (!is_alnum(s[i]) && (at_edge || (s[i] != '-' && s[i] != '.'))) return false;
    }
    return true;
}

int identity_name_check(const char *s, size_t n, const char *what, shoal_err *err)
{
    if (identity_name_ok(s, n)) return 0;
    char shown[IDENTITY_NAME_SIZE];
    size_t m = 0;
    for (; m < n && m + 1 < sizeof shown; m++) shown[m] = s[m] >= ' ' && s[m] <= '~' ? s[m] : '?';
    shown[m] = '\0';
    return err_set(
        err, SHOAL_EINVALID,
        "\"%s\" cannot be the name of a %s: 1 to 63 of a-z, 0-9, \"-\" and \".\", beginning and ending with "
        "a letter or digit",
        shown, what);
}

void identity_name_from_host(char ret[IDENTITY_NAME_SIZE], const char *host)
{
    size_t n = 0;
    for (; *host && n + 1 < IDENTITY_NAME_SIZE; host++) {
        char c = *host >= 'A' && *host <= 'Z' ? (char)(*host - 'A' + 'a') : *host;
        bool after_edge = n == 0 || ret[n - 1] == '.' || ret[n - 1] == '-';
        if (is_alnum(c))
            ret[n++] = c;
        else if (!after_edge)
            ret[n++] = c == '.' ? '.' : '-';
    }
    while (n > 0 && !is_alnum(ret[n - 1])) n--;
    ret[n] = '\0';
    if (n == 0) strcpy(ret, "node");
}

/* The next part of a path, up to '/' or the end; false when it is no name. */
static bool take_part(const char **at, const char *end, const char **ret, size_t *ret_n)
{
    const char *slash = memchr(*at, '/', (size_t)(end - *at));
    *ret = *at;
    *ret_n = (size_t)((slash ? slash : end) - *at);
    *at = slash ? slash + 1 : end;
    return identity_name_ok(*ret, *ret_n);
}

bool identity_parse(identity *ret, const char *s, size_t n)
{
    size_t n_scheme = strlen(SCHEME), n_cluster, n_role, n_name;
    const char *cluster, *kind, *name, *at = s + n_scheme, *end = s + n;
    identity id = {0};
    if (n <= n_scheme || memcmp(s, SCHEME, n_scheme) != 0 || s[n - 1] == '/') return false;
    if (!take_part(&at, end, &cluster, &n_cluster)) return false;
    if (!take_part(&at, end, &kind, &n_role) || !role_parse(&id.role, kind, n_role)) return false;
    if (!take_part(&at, end, &name, &n_name) || at != end) return false;
    memcpy(id.cluster, cluster, n_cluster);
    memcpy(id.name, name, n_name);
    *ret = id;
    return true;
}

void identity_format(char ret[IDENTITY_URI_SIZE], const identity *id)
{
    snprintf(ret, IDENTITY_URI_SIZE, SCHEME "%s/%s/%s", id->cluster, role_name(id->role), id->name);
}
