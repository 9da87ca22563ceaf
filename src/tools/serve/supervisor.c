/* supervisor.c: see supervisor.h. */
#define _GNU_SOURCE
#include "serve/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "os/handover.h"
#include "logging/log.h"
#include "serve/turn_watch.h"

enum {
    BACKOFF_MIN_MS = 100,
    BACKOFF_MAX_MS = 10000,
    BACKOFF_SERVED_MS = 1000, /* it starts well, so its clients are served in between */
    HEALTHY_MS = 60000,
    ABORT_LOOKS = 10, /* after so many more its crash report is not waited for */
    REPEAT_MS = 250,
    SIGNALS_MAX = 3, /* the third ends everything at once, whatever the child does */
};

typedef struct held {
    uint32_t id;
    int fd;
    char name[HANDOVER_NAME + 1];
} held;

typedef struct supervisor {
    char *const *argv; /* of the child */
    const char *name;
    sigset_t before; /* the signal mask that the child gets */
    int signals, sock;
    pid_t child; /* 0: none now */
    bool hears;  /* its handlers of signals are there */
    int unheard; /* the last signal that it got before: it may be lost. 0: none */
    supervisor_life life;
    uint64_t started_ns, start_at_ns, backoff_ms;
    turn_watch *turns; /* NULL: nobody watches them */
    uint64_t look_at_ns;
    int n_aborted; /* looks since it was aborted, that one included; 0: it was not */
    int n_signals;
    uint64_t stop_ns; /* the last of them */
    held held[HANDOVER_MAX];
    size_t n_held;
} supervisor;

/* ---- decisions ---------------------------------------------------------------------------------------- */

bool supervisor_repeats(uint64_t *last_ns, uint64_t now_ns)
{
    bool repeats = *last_ns && now_ns - *last_ns < REPEAT_MS * UINT64_C(1000000);
    if (!repeats) *last_ns = now_ns;
    return repeats;
}

uint64_t supervisor_wait_ms(uint64_t *backoff_ms, uint64_t lived_ms, bool served)
{
    uint64_t wait = lived_ms >= HEALTHY_MS ? 0 : *backoff_ms;
    if (served && wait > BACKOFF_SERVED_MS) wait = BACKOFF_SERVED_MS;
    *backoff_ms = wait == 0 ? BACKOFF_MIN_MS : wait < BACKOFF_MAX_MS / 2 ? 2 * wait : BACKOFF_MAX_MS;
    return wait;
}

bool supervisor_restarts(const supervisor_life *l, int status)
{
    if (l->stopping) return false;
    int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (sig == SIGTERM || sig == SIGINT || sig == SIGHUP)
        return false; /* before it had handlers: meant to end it */
    if (sig) return true;
    return WEXITSTATUS(status) != 0 && l->n > 0 && !l->ready;
}

/* ---- what is held ------------------------------------------------------------------------------------- */

static void hold(supervisor *s, const handover_msg *m, int fd)
{
    if (fd < 0) return;
    if (s->n_held == HANDOVER_MAX) {
        close(fd);
        return;
    }
    held *h = &s->held[s->n_held++];
    *h = (held){.id = m->id, .fd = fd};
    memcpy(h->name, m->name, sizeof h->name);
}

static void let_go(supervisor *s, uint32_t id)
{
    for (size_t i = 0; i < s->n_held; i++) {
        if (s->held[i].id != id) continue;
        close(s->held[i].fd);
        memmove(&s->held[i], &s->held[i + 1], (--s->n_held - i) * sizeof *s->held);
        return;
    }
}

static void forward(const supervisor *s, int value)
{
    sigqueue(s->child, HANDOVER_SIGNAL, (union sigval){.sival_int = value});
}

/* From now on the child ignores all but what is forwarded. It may have ignored the signal already, when it
 * came too late for the usual end, or where whoever started the server has it ignored. */
static void child_hears(supervisor *s)
{
    s->hears = true;
    if (s->unheard && s->child) forward(s, s->unheard | HANDOVER_AGAIN);
    s->unheard = 0;
}

static void hear(supervisor *s)
{
    handover_msg m;
    int fd;
    while (s->sock >= 0 && handover_recv(s->sock, &m, &fd) == 1) {
        if (m.what == HANDOVER_KEEP) {
            hold(s, &m, fd);
            continue;
        }
        if (fd >= 0) close(fd);
        if (m.what == HANDOVER_FORGET) let_go(s, m.id);
        if (m.what == HANDOVER_LOG) log_setup((log_level)m.b, m.a != 0);
        if (m.what == HANDOVER_LOG) child_hears(s);
        if (m.what == HANDOVER_READY) s->life.ready = true;
    }
}

static void supervisor_tell(supervisor *s, handover_what what, int a, int b)
{
    const handover_msg m = {.what = what, .a = a, .b = b};
    if (s->child && s->sock >= 0) handover_send(s->sock, &m, -1);
}

/* ---- the child ---------------------------------------------------------------------------------------- */

static int send_held(const supervisor *s, int sock)
{
    handover_msg m = {.what = HANDOVER_HELLO, .a = (int)s->life.n, .b = (int)s->n_held};
    int rc = handover_send(sock, &m, -1);
    for (size_t i = 0; rc == 0 && i < s->n_held; i++) {
        m = (handover_msg){.what = HANDOVER_FD, .id = s->held[i].id};
        memcpy(m.name, s->held[i].name, sizeof s->held[i].name);
        rc = handover_send(sock, &m, s->held[i].fd);
    }
    return rc;
}

/* In the child. It goes with its supervisor, however that ends. */
static void become_child(const supervisor *s, int sock, pid_t supervisor_pid)
{
    char number[16];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor_pid) _exit(1);
    snprintf(number, sizeof number, "%d", sock);
    if (fcntl(sock, F_SETFD, 0) != 0 || setenv(HANDOVER_ENV, number, 1) != 0) _exit(1);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
    execv("/proc/self/exe", s->argv);
    _exit(127);
}

static int start_child(supervisor *s)
{
    int ends[2];
    pid_t self = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    if (s->turns) turn_watch_begin(s->turns);
    pid_t pid = send_held(s, ends[0]) == 0 ? fork() : -1;
    if (pid == 0) become_child(s, ends[1], self);
    int saved = errno;
    close(ends[1]);
    if (pid < 0) close(ends[0]);
    errno = saved;
    if (pid < 0) return -1;
    s->sock = ends[0];
    s->child = pid;
    s->life.ready = s->hears = false;
    s->unheard = 0;
    s->n_aborted = 0;
    s->started_ns = clock_ns();
    s->start_at_ns = 0;
    return 0;
}

static void start_later(supervisor *s, uint64_t wait_ms)
{
    s->start_at_ns = clock_ns() + wait_ms * UINT64_C(1000000);
}

static void restart(supervisor *s)
{
    s->life.n++;
    if (start_child(s) == 0) return;
    uint64_t wait = supervisor_wait_ms(&s->backoff_ms, 0, false);
    LOG(LOG_ERROR, "supervisor", "cannot_start", LOG_S("reason", strerror(errno)),
        LOG_I("again_in_ms", wait));
    start_later(s, wait);
}

typedef char event_name[48];

/* "gateway_crashed", "agent_crashed": of "shoal-gateway" the word behind the dash. */
static const char *event_of(const supervisor *s, const char *what, event_name out)
{
    const char *dash = strchr(s->name, '-');
    snprintf(out, sizeof(event_name), "%s_%s", dash ? dash + 1 : s->name, what);
    return out;
}

static void log_crash(const supervisor *s, int status, uint64_t lived_ms, uint64_t wait_ms)
{
    int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    event_name event;
    LOG(LOG_ERROR, "supervisor", event_of(s, sig ? "crashed" : "cannot_restart", event),
        LOG_I("pid", s->child), LOG_I("signal", sig), LOG_S("name", sig ? strsignal(sig) : ""),
        LOG_I("code", sig ? 0 : WEXITSTATUS(status)), LOG_I("uptime_ms", lived_ms),
        LOG_I("restart", s->life.n + 1), LOG_I("in_ms", wait_ms),
        LOG_S("workers", "keep running; the next process takes them over"),
        LOG_S("what_to_do",
              sig ? "report the event=crash line above, if there is one; SIGKILL usually means that "
                    "memory ran out (see dmesg)"
                  : "the reason is above: correct the configuration, and it starts; or stop the server"));
}

/* True: *ret_code is the server's. */
static bool child_ended(supervisor *s, int status, int *ret_code)
{
    uint64_t lived_ms = (uint64_t)clock_ms_since(s->started_ns);
    hear(s); /* what it kept last */
    close(s->sock);
    s->sock = -1;
    *ret_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    bool again = supervisor_restarts(&s->life, status);
    if (again) {
        uint64_t wait = supervisor_wait_ms(&s->backoff_ms, lived_ms, s->life.ready);
        log_crash(s, status, lived_ms, wait);
        start_later(s, wait);
    } else if (WIFSIGNALED(status)) {
        event_name event;
        LOG(LOG_ERROR, "supervisor", event_of(s, "crashed", event), LOG_I("pid", s->child),
            LOG_I("signal", WTERMSIG(status)), LOG_S("name", strsignal(WTERMSIG(status))),
            LOG_S("restart", "none: it was stopping"));
    }
    s->child = 0;
    return !again;
}

/* ---- a child that hangs ------------------------------------------------------------------------------- */

/* The page is kept like what the child keeps, under the first id: the child's ids follow the highest there
 * is. */
static void watch_turns(supervisor *s)
{
    const handover_msg m = {.id = 1, .name = HANDOVER_TURNS};
    shoal_err err;
    int fd;
    if (turn_watch_new(&s->turns, TURN_CPU_MS, &fd, &err) == 0)
        hold(s, &m, fd);
    else
        LOG(LOG_WARN, "supervisor", "not_watched", LOG_S("reason", err.message));
}

/* While it starts and while it stops a turn may be long; a stop has a guard of its own (os/exit_guard.h).
 */
static bool is_watched(const supervisor *s)
{
    return s->turns && s->child && s->life.ready && !s->life.stopping;
}

static void abort_child(supervisor *s)
{
    event_name event;
    if (++s->n_aborted == 1) {
        LOG(LOG_ERROR, "supervisor", event_of(s, "hangs", event), LOG_I("pid", s->child),
            LOG_I("cpu_ms", TURN_CPU_MS), LOG_S("reason", "one turn of its event loop does not end"),
            LOG_S("what_to_do", "report the event=crash line below: it says where"));
        kill(s->child, SIGABRT);
    } else if (s->n_aborted > ABORT_LOOKS) {
        kill(s->child, SIGKILL);
    }
}

static void look_at_turns(supervisor *s)
{
    uint64_t now = clock_ns();
    if (!is_watched(s) || now < s->look_at_ns) return;
    s->look_at_ns = now + TURN_LOOK_MS * UINT64_C(1000000);
    if (s->n_aborted > 0 || turn_watch_hangs(s->turns, s->child)) abort_child(s);
}

/* ---- signals ------------------------------------------------------------------------------------------ */

static bool reap(supervisor *s, int *ret_code)
{
    int status;
    bool over = false;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == s->child)
            over |= child_ended(s, status, ret_code);
        else
            supervisor_tell(s, HANDOVER_EXITED, pid, status);
    }
    return over;
}

/* A child that does not listen to it yet has the usual end. */
static void pass_on(supervisor *s, int sig)
{
    if (s->hears) {
        forward(s, sig);
    } else {
        s->unheard = sig;
        kill(s->child, sig);
    }
}

/* SIGHUP asks for the configuration to be read again; a child that is just being started reads it anyway. */
static bool take_signal(supervisor *s, int sig, int *ret_code)
{
    if (sig == SIGCHLD) return reap(s, ret_code);
    if (sig == SIGHUP) {
        if (s->child && s->hears) pass_on(s, sig);
        return false;
    }
    if (supervisor_repeats(&s->stop_ns, clock_ns())) return false;
    if (s->child) pass_on(s, sig);
    s->life.stopping = true;
    *ret_code = s->child ? 128 + sig : 0;
    return !s->child || ++s->n_signals >= SIGNALS_MAX;
}

static bool take_signals(supervisor *s, int *ret_code)
{
    struct signalfd_siginfo si;
    bool over = false;
    while (!over && read(s->signals, &si, sizeof si) == (ssize_t)sizeof si)
        over = take_signal(s, (int)si.ssi_signo, ret_code);
    return over;
}

static int open_signals(supervisor *s)
{
    struct sigaction old;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    bool ignored = sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler == SIG_IGN; /* nohup */
    if (!ignored) sigaddset(&set, SIGHUP);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would have the kernel throw away how children end */
    if (sigprocmask(SIG_BLOCK, &set, &s->before) != 0) return -1;
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals < 0 ? -1 : 0;
}

/* ---- the loop ----------------------------------------------------------------------------------------- */

static int wait_ms(const supervisor *s)
{
    if (!s->start_at_ns) return is_watched(s) ? TURN_LOOK_MS : -1;
    uint64_t now = clock_ns();
    return s->start_at_ns <= now ? 0 : (int)((s->start_at_ns - now) / 1000000 + 1);
}

static int supervisor_run(supervisor *s)
{
    for (int code = 0;;) {
        struct pollfd p[2] = {{.fd = s->signals, .events = POLLIN}, {.fd = s->sock, .events = POLLIN}};
        poll(p, 2, wait_ms(s));
        hear(s); /* also where a signal woke us: whether the child listens to signals is said there */
        if (take_signals(s, &code)) return code;
        if (p[1].revents & POLLHUP && !(p[1].revents & POLLIN) && s->sock >= 0)
            s->sock = (close(s->sock), -1); /* its end comes with SIGCHLD */
        if (s->start_at_ns && wait_ms(s) == 0) restart(s);
        look_at_turns(s);
    }
}

/* "shoal-gateway serve ...": what ps shows. */
static char **child_argv(int argc, char **argv, const char *name)
{
    char **v = calloc((size_t)argc + 2, sizeof *v);
    if (!v) return NULL;
    v[0] = (char *)name;
    memcpy(v + 1, argv, (size_t)argc * sizeof *v);
    return v;
}

int supervise(int argc, char **argv, const char *name)
{
    sys_short_turns(); /* of the gateway and of all workers */
    supervisor *s = handover_open() ? NULL : calloc(1, sizeof *s);
    if (handover_is_open()) {
        prctl(PR_SET_NAME, name);
        return -1;
    }
    if (!s) return -1;
    s->sock = s->signals = -1;
    s->name = name;
    s->argv = child_argv(argc, argv, name);
    int rc = s->argv ? open_signals(s) : -1;
    if (rc == 0) prctl(PR_SET_CHILD_SUBREAPER, 1); /* what its children start is waited for here, too */
    if (rc == 0) {
        watch_turns(s);
        rc = start_child(s);
    }
    if (rc != 0) {
        LOG(LOG_WARN, "supervisor", "not_supervised", LOG_S("reason", strerror(errno)));
        if (s->signals >= 0) sigprocmask(SIG_SETMASK, &s->before, NULL), close(s->signals);
    } else {
        prctl(PR_SET_NAME, "shoal-supervise");
        rc = supervisor_run(s);
    }
    turn_watch_free(s->turns);
    free((void *)s->argv);
    free(s);
    return rc;
}
