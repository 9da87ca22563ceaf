/* serve_address.c: see serve_address.h. */
#define _GNU_SOURCE
#include "serve/serve_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

void serve_url(char *out, size_t cap, const char *listen, bool tls, int port)
{
    const char *colon = strrchr(listen, ':');
    int host_len = colon ? (int)(colon - listen) : 0;
    bool any = host_len == 0 || strncmp(listen, "0.0.0.0:", 8) == 0 || strncmp(listen, "[::]:", 5) == 0;
    if (strncmp(listen, "unix:", 5) == 0)
        snprintf(out, cap, "%s", listen);
    else
        snprintf(out, cap, "%s://%.*s:%d", tls ? "https" : "http", any ? 9 : host_len,
                 any ? "127.0.0.1" : listen, port);
}

static bool is_in_path(const struct stat *program)
{
    char file[4096];
    struct stat found;
    const char *dir = getenv("PATH");
    while (dir && *dir) {
        int n = (int)strcspn(dir, ":");
        snprintf(file, sizeof file, "%.*s/shoal", n, dir);
        if (stat(file, &found) == 0 && found.st_dev == program->st_dev && found.st_ino == program->st_ino)
            return true;
        dir += n + (dir[n] == ':');
    }
    return false;
}

void serve_program(char *ret, size_t size)
{
    char exe[4096], here[4096];
    struct stat st;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    snprintf(ret, size, "shoal");
    if (n <= 0 || stat("/proc/self/exe", &st) != 0 || is_in_path(&st)) return;
    exe[n] = '\0';
    size_t n_here = getcwd(here, sizeof here) ? strlen(here) : 0;
    bool below = n_here > 0 && strncmp(exe, here, n_here) == 0 && exe[n_here] == '/';
    snprintf(ret, size, "%s", below ? exe + n_here + 1 : exe);
}

/* "host:8080" with another host, another port. */
int serve_override_listen(gateway_config *c, const char *listen, const char *host, long long port,
                          shoal_err *err)
{
    const char *base = listen ? listen : c->listen ? c->listen : "127.0.0.1:8080";
    const char *colon = strrchr(base, ':');
    if (!listen && !host && port < 0) return 0;
    if ((host || port >= 0) && (!colon || strncmp(base, "unix:", 5) == 0))
        return err_set(err, SHOAL_EINVALID, "--%s does not go with the address \"%s\"",
                       host ? "host" : "port", base);
    if (host && (!*host || strpbrk(host, "/ \t")))
        return err_set(err, SHOAL_EINVALID, "--host wants an address or a name, not \"%s\"", host);
    char *s = NULL, number[24];
    bool v6 = host && strchr(host, ':') && *host != '[';
    int n_host = host ? (int)strlen(host) : colon ? (int)(colon - base) : 0;
    snprintf(number, sizeof number, "%lld", port);
    int n = !host && port < 0 ? asprintf(&s, "%s", base)
                              : asprintf(&s, "%s%.*s%s:%s", v6 ? "[" : "", n_host, host ? host : base,
                                         v6 ? "]" : "", port < 0 ? colon + 1 : number);
    if (n < 0) return err_nomem(err);
    c->listen = config_keep(c, s);
    free(s);
    return c->listen ? 0 : err_nomem(err);
}

/* What to do about the commonest failure. */
int serve_advise(shoal_err *err, int rc)
{
    char cause[sizeof err->message];
    if (!strstr(err->message, uv_strerror(UV_EADDRINUSE))) return rc;
    snprintf(cause, sizeof cause, "%s", err->message);
    return err_set(err, rc,
                   "%s; stop what listens there, or take another port with -p PORT (0: any free one)", cause);
}
