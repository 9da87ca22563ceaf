/* agent_impl.h: the agent's insides, for agent.c (who is wanted, and the whole), agent_args.c (the command
 * line of a worker), agent_life.c (its starts and its ends) and agent_watch.c (does it hang). */
#ifndef AGENT_AGENT_IMPL_H
#define AGENT_AGENT_IMPL_H

#include <uv.h>

#include "base/arena.h"
#include "cluster/threads.h"
#include "agent/agent.h"
#include "agent/rundir.h"
#include "agent/worker_book.h"

enum { AGENT_WATCH_MS = 100 };
enum { MAX_ARGS = 48 + 2 * (WORKER_SPEC_ADAPTERS + WORKER_SPEC_STAGES) };

typedef struct child child;
typedef struct worker_lines worker_lines;

/* A file, or that there was none, as far as a look without reading tells. */
struct file_mark {
    uint64_t size, inode, changed_ns;
};

/* One life of one worker; freed by the loop once its handle is closed. Of a supervised agent it is a child of
 * the supervisor, which tells how it ends (agent_worker_exited), and `process` is not used. */
typedef struct life {
    uv_process_t process; /* first */
    child *of;
    int says; /* what the worker wrote to its standard output: why it cannot start; -1: it was adopted */
    worker_lines *lines; /* what it writes to its standard error; NULL: it writes to ours */
    int pid, pidfd;      /* pidfd -1: `process` is used */
    bool replaced;       /* of an earlier life, with other options: the child starts again when it is gone */
} life;

/* What agent_watch.c has seen of that life. */
typedef struct child_watch {
    liveness work, loop, lock;
    bool works, killed;
    bool has_seen; /* its threads, at the last look */
    threads seen;
    uint64_t looked_ns;
} child_watch;

struct child {
    agent *a;
    arena *strings; /* those of spec, and the next four */
    worker_spec spec;
    int slot;
    bool standby; /* it is loaded, and asked when `wanted` says so */
    bool leaving; /* it is not wanted any more, and goes when its process has */
    char *socket;
    const char *id, *address;
    const char *member;  /* what it is a replica of: the model, or a stage of it */
    uint64_t generation; /* rises with every start */
    process process;
    life *life; /* NULL: no process */
    env_timer *restart;
    uint64_t backoff_ms, started_ns;
    bool refused;           /* it has failed, and waits for another file, or until */
    uint64_t retry_ns;      /* 0: for a file alone */
    uint64_t refusals;      /* in a row */
    struct file_mark tried; /* the file that it failed with */
    bool served;            /* ready at some time since then */
    child_watch watch;
};

struct agent {
    uv_loop_t *loop;
    env loop_time;
    const env *e; /* time and timers: loop_time, or what the caller gave */
    registry *g;
    source *source;
    arena *strings, *wanted_mem; /* wanted_mem: of wanted */
    const worker_spec *wanted;
    size_t n_wanted;
    agent_arbiter arbiter;
    bool has_arbiter, stopping;
    rundir dir;
    char *program, *shown; /* what is executed, and what its argv[0] says */
    char *log_level, *member, *packed, *crashes;
    void (*refused)(void *user, const char *model);
    void *user;
    size_t packed_mb, packed_min_mb;
    bool packed_check;
    child **children;
    size_t n, cap;
    env_timer *kill, *watch, *unclaimed_over;
    worker_book *book; /* NULL: not supervised */
    int book_fd;
    uint64_t unclaimed; /* slots with a process of the life before, which no child has taken over */
    int kept_lines[WORKER_BOOK_SLOTS]; /* and what these processes write; -1: none */
    void (*done)(void *user);
    void *done_user;
};

typedef struct args {
    arena *a; /* dies after the spawn */
    char *v[MAX_ARGS];
    size_t n;
    bool failed; /* an option is missing: what it limits would not be limited */
} args;

void args_build(args *x, const child *c);
/* Of all but the program's path: equal ones are one command line. False: no memory. */
bool args_digest(const args *x, sha256_digest *ret);

/* ---- agent_spawn.c: processes ---- */
/* uv_spawn, or, supervised, a child of the supervisor. err: its standard error. A libuv error code. */
int life_spawn(life *l, int says, int err, args *x);
void life_kill(life *l, int sig);
/* Closed and freed, at once or by the loop. */
void life_free(life *l);

/* ---- agent_lines.c: what workers write to standard error ---- */
int lines_pipe(int ret_ends[2]); /* the reading end first; -1 with errno */
/* Takes fd, the reading end. NULL: no memory. */
worker_lines *lines_open(uv_loop_t *loop, const char *replica, int fd);
void lines_close(worker_lines *w); /* accepts NULL */
/* Over a crash of this process; -1: nothing is kept. */
void lines_keep(int slot, int fd);
int lines_take(int slot);
/* A line without its end: of the worker's log, or whatever else. */
void worker_line(const char *replica, const char *s, size_t n);

/* ---- agent_adopt.c: what the life before left ---- */
int adopt_open(agent *a, shoal_err *err); /* nothing where nobody supervises */
void adopt_close(agent *a);
void adopt_unclaimed_over(void *agent); /* a timer's: nothing wants what is left */
/* The entry of that id, -1: none. With *ret_lives: its process may be taken over. */
int adopt_find(agent *a, const char *id, bool *ret_lives);
/* The process in the child's slot becomes its life: taken over, or ended because it has other options. False:
 * there is none. */
bool adopt_take(child *c);
/* A process is about to be started for it with these arguments. */
void adopt_note(child *c, const args *x);
/* What is left in the book of a child without a process: its counts. */
void adopt_note_end(const child *c);
/* A process of the life before is in that slot, and no child has taken it over. */
bool adopt_is_unclaimed(const agent *a, int slot);
void adopt_kill_unclaimed(agent *a);

/* agent_life.c: its process has ended. Takes l. */
void life_over(life *l, int64_t code, int sig);

/* What the cluster is told of it. */
int child_tell(child *c, replica_state state, const char *reason, shoal_err *err);
/* Its timer's: the next start is due, or the grace of one that leaves is over. */
void child_timer(void *child);
/* A process for it, now; when there can be none, later. */
void child_start(child *c);
/* The one that left is no child any more. */
void child_gone(child *c);

uint64_t agent_now_ns(const agent *a);
/* A timer's: look at all workers, and kill those that hang. */
void agent_watch(void *agent);
bool child_is_at_work(void *worker); /* of a child (replica.h: process) */

child *agent_child(agent *a, const char *id);
child *agent_child_at(const agent *a, int slot);
/* Make the children those that are wanted. */
void agent_settle(agent *a);
/* Tell who waits for the end when no process is left. */
void agent_check_all_gone(agent *a);

#endif
