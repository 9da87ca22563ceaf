/* agent_spawn.c: a worker's process: started, signalled, forgotten.
 *
 * Without a supervisor it is libuv's. With one it is cloned with CLONE_PARENT, which makes the supervisor its
 * parent from its first instruction on: it outlives this process, it is told (PR_SET_PDEATHSIG) when the
 * supervisor dies, and the supervisor alone can wait for it. */
#define _GNU_SOURCE
#include "agent/agent_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/handover.h"

static void exited(uv_process_t *p, int64_t code, int sig)
{
    life_over((life *)p, code, sig);
}

/* The worker's standard streams: nothing to read, `says` to write to, `err` for its log. */
static int spawn_own(life *l, int says, int err, args *x)
{
    const agent *a = l->of->a;
    uv_stdio_container_t io[4] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = says},
        {.flags = UV_INHERIT_FD, .data.fd = err},
        {.flags = UV_INHERIT_FD, .data.fd = a->arbiter.fd},
    };
    uv_process_options_t o = {.exit_cb = exited,
                              .file = a->program,
                              .args = x->v,
                              .stdio_count = a->has_arbiter ? 4 : 3,
                              .stdio = io};
    int rc = uv_spawn(a->loop, &l->process, &o);
    l->pid = rc == 0 ? uv_process_get_pid(&l->process) : 0;
    return rc;
}

/* ---- a child of the supervisor ------------------------------------------------------------------------ */

enum { FIRST_FREE_FD = 10 }; /* above those that the worker gets */

/* Between clone and exec: system calls only. The same descriptors as spawn_own's. */
static void become_worker(const agent *a, volatile int32_t *pid, int says, int err, args *x)
{
    static const char sorry[] = "the program cannot be executed";
    sigset_t none;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    *pid = (int32_t)getpid();
    for (int s = 1; s < NSIG; s++) sigaction(s, &usual, NULL);
    int null = open("/dev/null", O_RDONLY), arbiter = -1;
    int out = fcntl(says, F_DUPFD, FIRST_FREE_FD), in = fcntl(null, F_DUPFD, FIRST_FREE_FD);
    int log = err == STDERR_FILENO ? err : fcntl(err, F_DUPFD, FIRST_FREE_FD);
    if (a->has_arbiter) arbiter = fcntl(a->arbiter.fd, F_DUPFD, FIRST_FREE_FD);
    bool ok = in >= 0 && out >= 0 && log >= 0 && dup2(in, STDIN_FILENO) >= 0 &&
              dup2(out, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0;
    if (a->has_arbiter) ok = ok && arbiter >= 0 && dup2(arbiter, STDERR_FILENO + 1) >= 0;
    int first = STDERR_FILENO + (a->has_arbiter ? 2 : 1);
    syscall(SYS_close_range, first, ~0u, 0); /* an old kernel cannot: what is ours is close-on-exec anyway */
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) & ~O_NONBLOCK);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (ok) execv(a->program, x->v);
    if (write(STDOUT_FILENO, sorry, sizeof sorry - 1) < 0) { /* the exit code says it as well */
    }
    _exit(127);
}

static int spawn_for_supervisor(life *l, int says, int err, args *x)
{
    const agent *a = l->of->a;
    volatile int32_t *pid = &worker_book_at(a->book, l->of->slot)->pid;
    sigset_t all, before;
    int pidfd = -1;
    sigfillset(&all); /* libuv's handlers, run in the child, would write into our pipe */
    sigprocmask(SIG_SETMASK, &all, &before);
    long rc = syscall(SYS_clone, CLONE_PARENT | CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0);
    if (rc == 0) become_worker(a, pid, says, err, x);
    int saved = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (rc < 0) return -saved;
    *pid = (int32_t)rc;
    l->pid = (int)rc;
    l->pidfd = pidfd;
    return 0;
}

int life_spawn(life *l, int says, int err, args *x)
{
    return l->of->a->book ? spawn_for_supervisor(l, says, err, x) : spawn_own(l, says, err, x);
}

/* ---- any ---------------------------------------------------------------------------------------------- */

static bool signal_by_pidfd(const life *l, int sig)
{
    return l->pidfd >= 0 && (syscall(SYS_pidfd_send_signal, l->pidfd, sig, NULL, 0) == 0 || errno == ESRCH);
}

/* A process that has ended is waited for by the supervisor, whose message may still be on its way: its pid
 * may be another process's by now, so a kernel or a filter of system calls without pidfds costs a look. */
void life_kill(life *l, int sig)
{
    if (!l->of->a->book)
        uv_process_kill(&l->process, sig);
    else if (!signal_by_pidfd(l, sig) && worker_is_child(l->pid, handover_supervisor()))
        kill(l->pid, sig);
}

static void life_closed(uv_handle_t *h)
{
    free(h);
}

void life_free(life *l)
{
    lines_close(l->lines);
    if (l->says >= 0) close(l->says);
    if (l->pidfd >= 0) close(l->pidfd);
    if (l->of->a->book)
        free(l);
    else
        uv_close((uv_handle_t *)&l->process, life_closed); /* uv_spawn initialised it, even if it failed */
}
