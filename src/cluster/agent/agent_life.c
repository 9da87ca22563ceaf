/* agent_life.c: a worker's starts and ends, and what the cluster is told of them. */
#define _GNU_SOURCE
#include "agent/agent_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "logging/log.h"
#include "os/crash.h"

enum {
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 5000,
    BACKOFF_SERVED_MS = 500, /* it starts well, so whoever waits for it is served within a second */
    USEFUL_MS = 1000,   /* a worker that lived so long did something; a pause costs more than its start: */
    USEFUL_PART = 16,   /* such a part of its life at most */
    HEALTHY_MS = 30000, /* a worker that lived so long starts with a clean record */
    LOOK_MS = 1000,     /* so often the file of one that has failed is looked at */
    RETRY_MIN_MS = 15000,
    RETRY_MAX_MS = 300000,
};

int child_tell(child *c, replica_state state, const char *reason, shoal_err *err)
{
    member m = {.id = c->id,
                .generation = c->generation,
                .model = c->member,
                .address = c->address,
                .state = state,
                .reason = reason,
                .process = c->process,
                .standby = c->standby,
                .guest = c->spec.guest || c->leaving};
    return source_put(c->a->source, &m, err);
}

static struct file_mark mark_of(const char *path)
{
    struct stat st;
    if (!path || stat(path, &st) != 0) return (struct file_mark){0};
    return (struct file_mark){.size = (uint64_t)st.st_size + 1,
                              .inode = st.st_ino,
                              .changed_ns =
                                  (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec};
}

static bool same_file(const struct file_mark *a, const struct file_mark *b)
{
    return a->size == b->size && a->inode == b->inode && a->changed_ns == b->changed_ns;
}

/* Of one that has failed: it may start with another file than the one that it failed with. */
static bool may_start(const child *c)
{
    struct file_mark now = mark_of(c->spec.path);
    return !c->refused || !same_file(&now, &c->tried) || (c->retry_ns && agent_now_ns(c->a) >= c->retry_ns);
}

static void wait_to_restart(child *c, uint64_t ms)
{
    c->a->e->timer_start(c->restart, ms);
}

void child_timer(void *user)
{
    child *c = user;
    if (c->leaving) {
        LOG(LOG_WARN, "agent", "worker_killed", LOG_S("replica", c->id), LOG_S("reason", "grace is over"));
        if (c->life) life_kill(c->life, SIGKILL);
    } else if (may_start(c)) {
        c->process.n_restarts += c->refused;
        child_start(c);
    } else {
        wait_to_restart(c, LOOK_MS);
    }
}

/* It cannot start: the next start waits for another file, and where this one may be mended, not for ever. */
static void wait_for_file(child *c, bool mends)
{
    uint64_t ms = RETRY_MIN_MS << (c->refusals < 5 ? c->refusals : 5);
    c->refused = true;
    c->refusals++;
    c->retry_ns = mends ? agent_now_ns(c->a) + (ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS) * 1000000u : 0;
    wait_to_restart(c, LOOK_MS);
    if (mends && c->a->refused) c->a->refused(c->a->user, c->spec.model);
}

void agent_check_all_gone(agent *a)
{
    if (!a->stopping || !a->done) return;
    for (size_t i = 0; i < a->n; i++)
        if (a->children[i]->life) return;
    a->e->timer_stop(a->kill);
    void (*done)(void *) = a->done;
    a->done = NULL;
    done(a->done_user);
}

uint64_t agent_restart_wait_ms(uint64_t *backoff_ms, uint64_t lived_ms, bool served)
{
    uint64_t wait = lived_ms >= HEALTHY_MS ? 0 : *backoff_ms;
    if (served && wait > BACKOFF_SERVED_MS) wait = BACKOFF_SERVED_MS;
    if (served && lived_ms >= USEFUL_MS && wait > lived_ms / USEFUL_PART) wait = lived_ms / USEFUL_PART;
    *backoff_ms = wait == 0 ? BACKOFF_MIN_MS : wait < BACKOFF_MAX_MS / 2 ? 2 * wait : BACKOFF_MAX_MS;
    return wait;
}

static void restart_later(child *c)
{
    uint64_t wait =
        agent_restart_wait_ms(&c->backoff_ms, (agent_now_ns(c->a) - c->started_ns) / 1000000, c->served);
    wait_to_restart(c, wait);
    LOG(LOG_INFO, "agent", "worker_restart", LOG_S("replica", c->id), LOG_I("in_ms", wait),
        LOG_I("crashes", c->process.n_crashes));
}

/* When this life began, in seconds since 1970, or a little before. */
static uint64_t began_s(const child *c)
{
    enum { SLACK_S = 2 };
    uint64_t now_s = (uint64_t)time(NULL),
             age_s = (agent_now_ns(c->a) - c->started_ns) / 1000000000u + SLACK_S;
    return now_s > age_s ? now_s - age_s : 0;
}

/* The report that it kept, if it could. */
static void find_report(child *c, int pid, int sig, char *why, size_t cap)
{
    char name[CRASH_NAME_BYTES];
    size_t n = strlen(why);
    if (sig) *c->process.report = '\0';
    if (!crash_is_fatal(sig) || !crash_find(c->a->crashes, "worker", pid, began_s(c), name)) return;
    strcpy(c->process.report, name);
    snprintf(why + n, cap - n, "; shoal crash %s shows more", name);
}

static void describe_exit(const life *l, int64_t code, int sig, char *out, size_t cap)
{
    ssize_t n = l->says >= 0 ? read(l->says, out, cap - 1) : 0;
    if (n > 0) {
        out[n] = '\0';
    } else if (sig) {
        snprintf(out, cap, "killed by signal %d (%s)", sig, strsignal(sig));
    } else {
        snprintf(out, cap, "exited with code %d", (int)code);
    }
}

/* It was of an earlier life: what it did is no news of this one. */
static void replaced_over(child *c)
{
    LOG(LOG_INFO, "agent", "worker_replaced", LOG_S("replica", c->id));
    if (c->leaving) {
        agent *a = c->a;
        child_gone(c);
        agent_settle(a);
        return;
    }
    child_start(c);
}

void life_over(life *l, int64_t code, int sig)
{
    child *c = l->of;
    agent *a = c->a;
    char why[256];
    describe_exit(l, code, sig, why, sizeof why);
    bool replaced = l->replaced && !a->stopping;
    int pid = l->pid;
    find_report(c, pid, sig, why, sizeof why);
    life_free(l); /* its last lines are logged before its end is */
    c->life = NULL;
    c->process.pid = 0;
    adopt_note_end(c);
    if (a->has_arbiter && a->arbiter.reap) a->arbiter.reap(a->arbiter.user, c->slot);
    unlink(c->socket);
    if (replaced) {
        replaced_over(c);
        return;
    }
    bool refused = sig == 0 && (code == WORKER_EXIT_CONFIG || code == WORKER_EXIT_FILE);
    /* One that ends before it served has failed, whatever it says: whoever waits for it must hear that. */
    bool crashed = !a->stopping && !c->leaving && !refused && (sig != 0 || code != 0 || !c->served);
    if (crashed) c->process.n_crashes++;
    LOG(crashed || refused ? LOG_ERROR : LOG_INFO, "agent", "worker_exited", LOG_S("replica", c->id),
        LOG_I("pid", pid), LOG_I("code", code), LOG_I("signal", sig),
        LOG_S("reason", a->stopping ? "stopped" : why));
    if (a->stopping) {
        child_tell(c, REPLICA_DOWN, "stopped", NULL);
        agent_check_all_gone(a);
        return;
    }
    if (c->leaving) {
        child_gone(c);
        agent_settle(a);
        return;
    }
    child_tell(c, refused ? REPLICA_FAILED : REPLICA_DOWN, why, NULL);
    if (refused) {
        wait_for_file(c, code == WORKER_EXIT_FILE);
        return;
    }
    c->process.n_restarts++;
    restart_later(c);
}

/* Its standard error is ours where there can be no pipe. */
static int spawn_with_lines(life *l, int says, args *x)
{
    child *c = l->of;
    int ends[2] = {-1, -1};
    bool piped = lines_pipe(ends) == 0;
    if (piped && c->a->book) lines_keep(c->slot, ends[0]);
    int rc = life_spawn(l, says, piped ? ends[1] : STDERR_FILENO, x);
    if (!piped) return rc;
    close(ends[1]);
    l->lines = lines_open(c->a->loop, c->id, ends[0]);
    return rc;
}

static int launch(child *c, shoal_err *err)
{
    args x = {.a = arena_new(0)};
    life *l = calloc(1, sizeof *l);
    int ends[2] = {-1, -1};
    if (!x.a || !l) {
        free(l);
        arena_free(x.a);
        return err_nomem(err);
    }
    args_build(&x, c);
    int rc = x.failed ? UV_ENOMEM : pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : -errno;
    *l = (life){.of = c, .says = ends[0], .pidfd = -1};
    if (rc == 0) {
        adopt_note(c, &x);
        rc = spawn_with_lines(l, ends[1], &x);
        close(ends[1]);
        if (rc != 0) life_free(l);
    } else {
        free(l);
    }
    arena_free(x.a);
    if (rc != 0) return err_set(err, SHOAL_EIO, "cannot start %s: %s", c->a->shown, uv_strerror(rc));
    c->life = l;
    c->process.pid = l->pid;
    return 0;
}

void child_start(child *c)
{
    shoal_err err;
    c->refused = false;
    c->tried = mark_of(c->spec.path);
    memset(&c->watch, 0, sizeof c->watch);
    if (adopt_take(c)) return;
    c->started_ns = agent_now_ns(c->a);
    c->served = false;
    c->generation++;
    if (launch(c, &err) != 0) {
        c->process.n_crashes++;
        LOG(LOG_ERROR, "agent", "cannot_start", LOG_S("replica", c->id), LOG_S("reason", err.message));
        child_tell(c, REPLICA_DOWN, err.message, NULL);
        restart_later(c);
        return;
    }
    LOG(LOG_INFO, "agent", "worker_started", LOG_S("replica", c->id), LOG_I("pid", c->process.pid),
        LOG_S("address", c->address), LOG_I("restarts", c->process.n_restarts));
    child_tell(c, REPLICA_STARTING, NULL, NULL);
}
