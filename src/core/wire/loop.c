/* loop.c: the loop's table of descriptors, taken at the start. */
#define _GNU_SOURCE
#include "wire/loop.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* libuv 1.44 calls realloc for this table alone, and abort() where it fails. */
static void *realloc_or_leave(void *p, size_t n)
{
    void *grown = realloc(p, n);
    if (grown || n == 0) return grown;
    fputs("shoal: out of memory for the event loop\n", stderr);
    _exit(1);
}

static void unused(uv_poll_t *p, int status, int events) {}

/* The table grows to the descriptor that is polled; of a pipe, since not everything can be. */
static int reach(uv_loop_t *loop, int high)
{
    int ends[2], rc;
    uv_poll_t poll;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return UV_EMFILE;
    int fd = fcntl(ends[0], F_DUPFD_CLOEXEC, high);
    rc = fd < 0 ? UV_EMFILE : uv_poll_init(loop, &poll, fd);
    if (rc == 0) {
        rc = uv_poll_start(&poll, UV_READABLE, unused);
        uv_close((uv_handle_t *)&poll, NULL);
        uv_run(loop, UV_RUN_NOWAIT);
    }
    if (fd >= 0) close(fd);
    close(ends[0]);
    close(ends[1]);
    return rc;
}

/* As many as are asked for, where the machine lets us: a shell's usual 1,024 are soon held by unauthenticated peers. */
static unsigned may_open(unsigned n_fds)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0 || most.rlim_cur >= n_fds) return n_fds;
    rlim_t before = most.rlim_cur;
    most.rlim_cur = most.rlim_max < n_fds ? most.rlim_max : n_fds;
    return (unsigned)(setrlimit(RLIMIT_NOFILE, &most) == 0 ? most.rlim_cur : before);
}

int loop_open(uv_loop_t *loop, unsigned n_fds, shoal_err *err)
{
    uv_replace_allocator(malloc, realloc_or_leave, calloc, free);
    int rc = uv_loop_init(loop);
    if (rc == 0) {
        n_fds = may_open(n_fds);
        rc = reach(loop, n_fds > 1 ? (int)n_fds - 1 : 0);
        if (rc != 0) uv_loop_close(loop);
    }
    return rc == 0 ? 0 : err_set(err, SHOAL_EIO, "cannot open the event loop: %s", uv_strerror(rc));
}

size_t loop_connections(size_t n)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return n;
    rlim_t share = most.rlim_cur / 3,
           rest = most.rlim_cur > LOOP_OTHER_FDS ? most.rlim_cur - LOOP_OTHER_FDS : 0;
    rlim_t room = rest > share ? rest : share > 1 ? share : 1;
    return room < n ? (size_t)room : n;
}
