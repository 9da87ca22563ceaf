/* cli_server.c: see cli_server.h. */
#define _GNU_SOURCE
#include "command/cli_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child. SIGTERM comes when whoever asked for the server is gone. */
static void become_server(const char *config, int out, int log, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    dup2(out, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl("/proc/self/exe", "shoal", "serve", "-c", config, "--port", "0", (char *)NULL);
    _exit(127);
}

/* The server says where it listens when it is ready. False: it said something else to the end. */
static bool read_url(cli_server *s)
{
    char line[512];
    while (fgets(line, sizeof line, s->out)) {
        const char *at = strstr(line, "http");
        size_t n = at ? strcspn(at, " \n,") : 0;
        if (n <= 8 || n >= sizeof s->url) continue;
        snprintf(s->url, sizeof s->url, "%.*s", (int)n, at);
        return true;
    }
    return false;
}

/* The last line of the log. */
static int said(const cli_server *s, shoal_err *err)
{
    char text[1024] = "";
    off_t end = lseek(s->log, 0, SEEK_END), from = end > 1000 ? end - 1000 : 0;
    ssize_t n = pread(s->log, text, sizeof text - 1, from);
    while (n > 0 && text[n - 1] == '\n') text[--n] = '\0';
    const char *last = n > 0 ? strrchr(text, '\n') : NULL;
    last = last ? last + 1 : text;
    return err_set(err, SHOAL_EUNAVAILABLE, "the server does not start: %s",
                   *last ? last : "it said nothing");
}

int cli_server_start(cli_server *ret, const char *config, shoal_err *err)
{
    int ends[2] = {-1, -1};
    *ret = (cli_server){.log = memfd_create("shoal-serve", MFD_CLOEXEC)};
    if (ret->log < 0 || pipe2(ends, O_CLOEXEC) != 0 || !(ret->out = fdopen(ends[0], "r"))) {
        if (ends[0] >= 0) close(ends[0]), close(ends[1]);
        return err_set(err, SHOAL_EIO, "a server cannot be started: %s", strerror(errno));
    }
    pid_t parent = getpid();
    fflush(stdout);
    fflush(stderr);
    ret->pid = fork();
    if (ret->pid == 0) become_server(config, ends[1], ret->log, parent);
    close(ends[1]);
    if (ret->pid < 0) {
        ret->pid = 0;
        return err_set(err, SHOAL_EIO, "fork: %s", strerror(errno));
    }
    return read_url(ret) ? 0 : said(ret, err);
}

void cli_server_stop(cli_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGTERM);
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    if (s->out) fclose(s->out);
    if (s->log > 0) close(s->log);
    *s = (cli_server){0};
}
