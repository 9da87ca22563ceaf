/* agent_adopt.c: workers that the agent of an earlier life left: found, taken over, or ended.
 *
 * A slot of `unclaimed` has a process that lives and no child. A child of the same id gets that slot when it
 * is added, and with it the socket's path, so its command line can be compared when it is to start. What
 * nothing has claimed after a while (a model that is not wanted any more) is ended; loads by request and
 * plans of a gateway come within that time. */
#define _GNU_SOURCE
#include "agent/agent_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/handover.h"
#include "logging/log.h"

#define BOOK_NAME "workers"

enum { UNCLAIMED_MS = 60000 };

static uint64_t bit(int slot)
{
    return UINT64_C(1) << slot;
}

static bool lives(const worker_entry *e)
{
    return e->pid != getpid() && worker_is_child(e->pid, handover_supervisor());
}

/* ---- what there is ------------------------------------------------------------------------------------ */

static int open_book(agent *a, shoal_err *err)
{
    shoal_err why;
    int fd = handover_take(BOOK_NAME);
    if (fd >= 0 && worker_book_open(&a->book, fd, &why) == 0) {
        a->book_fd = fd;
        return 0;
    }
    if (fd >= 0) {
        LOG(LOG_ERROR, "agent", "workers_unknown", LOG_S("reason", why.message));
        handover_forget(fd);
        close(fd);
    }
    int rc = worker_book_new(&a->book, &a->book_fd, err);
    if (rc == 0) handover_keep(BOOK_NAME, a->book_fd);
    return rc;
}

/* What an ended process has written, its crash report maybe, is logged now. */
static void end_lines(agent *a, int slot)
{
    char id[WORKER_BOOK_ID];
    if (a->kept_lines[slot] < 0) return;
    snprintf(id, sizeof id, "%.*s", WORKER_BOOK_ID - 1, worker_book_at(a->book, slot)->id);
    lines_close(lines_open(a->loop, id, a->kept_lines[slot]));
    a->kept_lines[slot] = -1;
}

static void agent_adopt_look_at(agent *a, int slot)
{
    worker_entry *e = worker_book_at(a->book, slot);
    worker_claim claim = worker_book_claim(e, lives(e));
    a->kept_lines[slot] = lines_take(slot);
    if (claim == CLAIM_NOTHING) end_lines(a, slot);
    if (claim != CLAIM_NOTHING) a->unclaimed |= bit(slot);
    if (claim == CLAIM_NOTHING && e->used && a->has_arbiter && a->arbiter.reap)
        a->arbiter.reap(a->arbiter.user, slot);
    if (claim != CLAIM_KILL) return;
    e->leaving = 1;
    LOG(LOG_WARN, "agent", "worker_killed", LOG_I("pid", e->pid),
        LOG_S("reason", "it is left over, and not known"));
    kill(e->pid, SIGKILL);
}

void adopt_unclaimed_over(void *agent)
{
    adopt_kill_unclaimed(agent);
}

int adopt_open(agent *a, shoal_err *err)
{
    if (!handover_is_open()) return 0;
    int rc = open_book(a, err);
    for (int slot = 0; rc == 0 && slot < WORKER_BOOK_SLOTS; slot++) agent_adopt_look_at(a, slot);
    if (rc == 0 && a->unclaimed) a->e->timer_start(a->unclaimed_over, UNCLAIMED_MS);
    return rc;
}

void adopt_close(agent *a)
{
    if (!a->book) return;
    adopt_kill_unclaimed(a); /* without the list nobody would */
    for (int slot = 0; slot < WORKER_BOOK_SLOTS; slot++) end_lines(a, slot);
    handover_forget(a->book_fd);
    close(a->book_fd);
    worker_book_free(a->book);
    a->book = NULL;
}

bool adopt_is_unclaimed(const agent *a, int slot)
{
    return slot < WORKER_BOOK_SLOTS && (a->unclaimed & bit(slot)) != 0;
}

void adopt_kill_unclaimed(agent *a)
{
    for (int slot = 0; a->book && slot < WORKER_BOOK_SLOTS; slot++) {
        worker_entry *e = worker_book_at(a->book, slot);
        if (!adopt_is_unclaimed(a, slot) || e->leaving || !lives(e)) continue;
        LOG(LOG_INFO, "agent", "worker_killed", LOG_S("replica", e->id), LOG_I("pid", e->pid),
            LOG_S("reason", "nothing wants it after the restart"));
        e->leaving = 1;
        kill(e->pid, SIGKILL);
    }
}

/* ---- children ----------------------------------------------------------------------------------------- */

int adopt_find(agent *a, const char *id, bool *ret_lives)
{
    *ret_lives = false;
    for (int slot = 0; a->book && slot < WORKER_BOOK_SLOTS; slot++) {
        const worker_entry *e = worker_book_at(a->book, slot);
        if (e->used != 1 || e->id[WORKER_BOOK_ID - 1] || strcmp(e->id, id) != 0 || agent_child_at(a, slot))
            continue;
        *ret_lives = adopt_is_unclaimed(a, slot);
        return slot;
    }
    return -1;
}

static bool digest_args(const child *c, sha256_digest *ret)
{
    args x = {.a = arena_new(0)};
    if (!x.a) return false;
    args_build(&x, c);
    bool ok = !x.failed && args_digest(&x, ret);
    arena_free(x.a);
    return ok;
}

static life *life_of(child *c, const worker_entry *e)
{
    life *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    *l = (life){.of = c, .says = -1, .pid = e->pid};
    l->pidfd =
        (int)syscall(SYS_pidfd_open, e->pid, 0); /* -1: it has ended, and the supervisor says so next */
    return l;
}

bool adopt_take(child *c)
{
    agent *a = c->a;
    sha256_digest now;
    if (!adopt_is_unclaimed(a, c->slot)) return false;
    const worker_entry *e = worker_book_at(a->book, c->slot);
    life *l = life_of(c, e);
    if (!l) return false;
    bool same = !e->leaving && digest_args(c, &now) && memcmp(&now, &e->args, sizeof now) == 0;
    a->unclaimed &= ~bit(c->slot);
    if (a->kept_lines[c->slot] >= 0) l->lines = lines_open(a->loop, c->id, a->kept_lines[c->slot]);
    a->kept_lines[c->slot] = -1;
    c->life = l;
    c->process.pid = l->pid;
    c->started_ns = e->started_ns;
    c->served = e->served;
    LOG(LOG_INFO, "agent", same ? "worker_adopted" : "worker_outdated", LOG_S("replica", c->id),
        LOG_I("pid", l->pid), LOG_S("address", c->address));
    if (same) {
        child_tell(c, REPLICA_STARTING, NULL, NULL);
    } else {
        l->replaced = true;
        life_kill(l, SIGKILL);
    }
    return true;
}

bool args_digest(const args *x, sha256_digest *ret)
{
    sha256 *h = sha256_new();
    if (!h) return false;
    for (size_t i = 1; i < x->n; i++) sha256_add_text(h, x->v[i]);
    sha256_end(h, ret);
    return true;
}

void adopt_note(child *c, const args *x)
{
    worker_entry e = {.generation = c->generation,
                      .started_ns = c->started_ns,
                      .backoff_ms = c->backoff_ms,
                      .n_restarts = c->process.n_restarts,
                      .n_crashes = c->process.n_crashes};
    if (!c->a->book) return;
    args_digest(x, &e.args); /* without memory it stays zero, like no other, and the worker is started anew */
    strncpy(e.id, c->id, sizeof e.id - 1);
    worker_book_write(c->a->book, c->slot, &e);
}

void adopt_note_end(const child *c)
{
    if (c->a->book) worker_book_at(c->a->book, c->slot)->pid = 0;
}

/* ---- ends --------------------------------------------------------------------------------------------- */

static void unclaimed_ended(agent *a, int slot)
{
    a->unclaimed &= ~bit(slot);
    end_lines(a, slot);
    worker_book_clear(a->book, slot);
    if (a->has_arbiter && a->arbiter.reap) a->arbiter.reap(a->arbiter.user, slot);
    if (!a->stopping) agent_settle(a); /* a worker may have found no free slot */
}

void agent_worker_exited(agent *a, int pid, int status)
{
    if (!a->book) return;
    for (size_t i = 0; i < a->n; i++) {
        life *l = a->children[i]->life;
        if (!l || l->pid != pid) continue;
        life_over(l, WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        return;
    }
    for (int slot = 0; slot < WORKER_BOOK_SLOTS; slot++)
        if (adopt_is_unclaimed(a, slot) && worker_book_at(a->book, slot)->pid == pid) {
            unclaimed_ended(a, slot);
            return;
        }
}
