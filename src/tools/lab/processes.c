/* processes.c: processes of nodes, from their command lines to their deaths. */
#define _GNU_SOURCE
#include "lab/processes.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

enum { WORDS_MAX = 64, OUT_MAX_BYTES = 65536, POLL_MS = 10 };

typedef struct member { /* one process of one node */
    const lab_process *what;
    pid_t pid; /* 0: does not run */
    bool ready, done, held;
    uint64_t start_ns; /* not 0: to be started then */
    uint64_t poll_ns;
    char *out; /* of one that runs once: what it printed, without the line's end */
} member;

typedef struct post { /* one node */
    member *members;
    size_t next; /* the member that boots; n_start: all are up */
    bool off, was_up;
} post;

struct processes {
    const lab_scenario *s;
    const host *nodes;
    processes_hooks hooks;
    post *posts;
};

extern char **environ;

/* ---- fields ---- */

typedef struct viewpoint {
    const processes *c;
    size_t node;
    char ip[16];
} viewpoint;

static bool processes_is(const char *name, size_t n, const char *what)
{
    return strlen(what) == n && memcmp(name, what, n) == 0;
}

static const char *find_out(const processes *c, const char *role, size_t n)
{
    for (size_t i = 0; i < c->s->n_nodes; i++)
        for (size_t k = 0; k < c->s->nodes[i].n_start; k++) {
            const member *m = &c->posts[i].members[k];
            if (m->out && processes_is(role, n, m->what->role)) return m->out;
        }
    return NULL;
}

static const char *lookup(void *user, const char *name, size_t n)
{
    viewpoint *v = user;
    const processes *c = v->c;
    if (processes_is(name, n, "ip")) return c->nodes[v->node].ip;
    if (processes_is(name, n, "node")) return c->nodes[v->node].name;
    if (processes_is(name, n, "state")) return c->nodes[v->node].folder;
    if (processes_is(name, n, "share")) return c->hooks.share;
    for (size_t i = 0; n > 3 && memcmp(name, "ip.", 3) == 0 && i <= c->s->n_nodes; i++)
        if (processes_is(name + 3, n - 3, c->nodes[i].name)) return c->nodes[i].ip;
    if (n > 4 && memcmp(name, "out.", 4) == 0) return find_out(c, name + 4, n - 4);
    return NULL;
}

int processes_expand(processes *c, size_t node, const char *text, buf *ret)
{
    return scenario_expand(ret, text, lookup, &(viewpoint){.c = c, .node = node});
}

/* ---- starting ---- */

/* The environment with the node's own places in front; libc takes the first of a name. */
static char **make_env(const processes *c, size_t node, buf *mem)
{
    size_t n = 0;
    while (environ[n]) n++;
    char **env = calloc(n + 8, sizeof *env);
    const char *folder = c->nodes[node].folder;
    if (!env) return NULL;
    static const char *const formats[] = {"XDG_RUNTIME_DIR=%s/run", "XDG_STATE_HOME=%s/state",
                                          "SHOAL_STATE=%s/shoal", "HOME=%s", "TMPDIR=%s/run"};
    enum { N_FORMATS = sizeof formats / sizeof *formats };
    size_t at[N_FORMATS + 1], k = 0;
    for (; k < N_FORMATS; k++) {
        at[k] = mem->len;
        buf_printf(mem, formats[k], folder);
        buf_putc(mem, '\0');
    }
    if (node < c->s->n_nodes && c->s->nodes[node].cores) {
        at[k++] = mem->len;
        buf_printf(mem, "SHOAL_CORES=%u", c->s->nodes[node].cores);
        buf_putc(mem, '\0');
    }
    for (size_t i = 0; !mem->failed && i < k; i++) env[i] = mem->data + at[i];
    for (size_t i = 0; i < n; i++) env[k + i] = environ[i];
    return env;
}

/* Split at blanks, in place. */
static size_t processes_split(char *line, char *argv[WORDS_MAX])
{
    size_t n = 0;
    for (char *save, *w = strtok_r(line, " \t\r\n", &save); w && n < WORDS_MAX - 1;
         w = strtok_r(NULL, " \t\r\n", &save))
        argv[n++] = w;
    argv[n] = NULL;
    return n;
}

static void log_path(const processes *c, size_t node, const char *role, const char *end, char *out,
                     size_t cap)
{
    snprintf(out, cap, "%s/%s.%s.%s", c->hooks.logs, c->nodes[node].name, role, end);
}

static int open_log(const processes *c, size_t node, const char *role, const char *end, int flags)
{
    char path[4300];
    log_path(c, node, role, end, path, sizeof path);
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
}

static pid_t spawn(processes *c, size_t node, const char *role, const char *line, bool once, shoal_err *err)
{
    buf text = {0}, places = {0};
    char *argv[WORDS_MAX];
    int log = open_log(c, node, role, "log", O_APPEND);
    int out = once ? open_log(c, node, role, "out", O_TRUNC) : log;
    char **env = make_env(c, node, &places);
    pid_t pid = SHOAL_ENOMEM;
    if (log < 0 || out < 0) {
        pid = err_set(err, SHOAL_EIO, "%s: %s", c->hooks.logs, strerror(errno));
    } else if (!env || places.failed || processes_expand(c, node, line, &text) != 0) {
        err_nomem(err);
    } else if (processes_split(text.data, argv) == 0) {
        pid = err_set(err, SHOAL_EINVALID, "node %s: %s: no command", c->nodes[node].name, role);
    } else {
        if (strcmp(argv[0], "shoal") == 0) argv[0] = (char *)c->hooks.program;
        pid = host_spawn(&c->nodes[node], argv, env, out, log, err);
    }
    if (once && out >= 0) close(out);
    if (log >= 0) close(log);
    free(env);
    buf_done(&places);
    buf_done(&text);
    return pid;
}

int processes_run(processes *c, size_t node, const char *line, shoal_err *err)
{
    pid_t pid = spawn(c, node, "run", line, false, err);
    return pid < 0 ? (int)pid : 0;
}

static int start_member(processes *c, size_t node, member *m, shoal_err *err)
{
    pid_t pid = spawn(c, node, m->what->role, m->what->run, m->what->once, err);
    if (pid < 0) return (int)pid;
    m->pid = pid;
    m->start_ns = 0;
    m->ready = !m->what->ready && !m->what->once;
    return 0;
}

static int write_files(processes *c, size_t node, shoal_err *err)
{
    const lab_node *n = &c->s->nodes[node];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n->n_files; i++) {
        char path[600];
        buf text = {0};
        snprintf(path, sizeof path, "%s/%s", c->nodes[node].folder, n->files[i].name);
        if (processes_expand(c, node, n->files[i].text, &text) != 0) rc = err_nomem(err);
        if (rc == 0) rc = file_replace(path, &text, err);
        buf_done(&text);
    }
    return rc;
}

int processes_new(processes **ret, const lab_scenario *s, const host *nodes, const processes_hooks *hooks,
                  shoal_err *err)
{
    processes *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    *c = (processes){.s = s, .nodes = nodes, .hooks = *hooks, .posts = calloc(s->n_nodes, sizeof(post))};
    int rc = c->posts ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < s->n_nodes; i++) {
        c->posts[i] = (post){.off = true, .members = calloc(s->nodes[i].n_start + 1, sizeof(member))};
        if (!c->posts[i].members) rc = err_nomem(err);
        for (size_t k = 0; rc == 0 && k < s->nodes[i].n_start; k++)
            c->posts[i].members[k].what = &s->nodes[i].start[k];
        if (rc == 0) rc = write_files(c, i, err);
    }
    if (rc == 0)
        *ret = c;
    else
        processes_free(c);
    return rc;
}

void processes_free(processes *c)
{
    if (!c) return;
    for (size_t i = 0; c->posts && i < c->s->n_nodes; i++) {
        for (size_t k = 0; c->posts[i].members && k < c->s->nodes[i].n_start; k++)
            free(c->posts[i].members[k].out);
        free(c->posts[i].members);
    }
    free(c->posts);
    free(c);
}

/* ---- steps ---- */

static member *find_member(const processes *c, size_t node, const char *role)
{
    for (size_t k = 0; k < c->s->nodes[node].n_start; k++)
        if (strcmp(c->s->nodes[node].start[k].role, role) == 0) return &c->posts[node].members[k];
    return NULL;
}

/* The end of a log, for a sentence. */
static void last_line(const processes *c, size_t node, const char *role, char *out, size_t cap)
{
    char path[4300];
    buf text = {0};
    log_path(c, node, role, "log", path, sizeof path);
    snprintf(out, cap, "its log is empty");
    if (file_read(&text, path, 1 << 24, NULL) == 0 && text.len) {
        while (text.len && isspace((unsigned char)text.data[text.len - 1])) text.data[--text.len] = '\0';
        char *line = text.data ? strrchr(text.data, '\n') : NULL;
        snprintf(out, cap, "%s", line ? line + 1 : text.data);
    }
    buf_done(&text);
}

static int keep_output(processes *c, size_t node, member *m, shoal_err *err)
{
    char path[4300];
    buf text = {0};
    log_path(c, node, m->what->role, "out", path, sizeof path);
    int rc = file_read(&text, path, OUT_MAX_BYTES, err);
    while (text.len && isspace((unsigned char)text.data[text.len - 1])) text.data[--text.len] = '\0';
    free(m->out);
    m->out = NULL;
    if (rc == 0 && !(m->out = strdup(text.data ? text.data : ""))) rc = err_nomem(err);
    buf_done(&text);
    return rc;
}

static int died_early(processes *c, size_t node, const member *m, int status, shoal_err *err)
{
    char line[300];
    last_line(c, node, m->what->role, line, sizeof line);
    return err_set(err, SHOAL_EUNAVAILABLE, "node %s: %s ended with %s %d %s: %s", c->nodes[node].name,
                   m->what->role, WIFEXITED(status) ? "status" : "signal",
                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                   m->what->once ? "and had to succeed" : "before it was ready", line);
}

static int bury(processes *c, size_t node, member *m, int status, uint64_t now, shoal_err *err)
{
    bool was_ready = m->ready, fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    m->pid = 0;
    m->ready = false;
    if (c->posts[node].off || m->held) return 0;
    if (m->what->once && fine) {
        m->ready = m->done = true;
        return keep_output(c, node, m, err);
    }
    if (!c->posts[node].was_up && !was_ready) return died_early(c, node, m, status, err);
    if (m->what->restart_ms) m->start_ns = now + m->what->restart_ms * 1000000ull;
    return 0;
}

static int bury_dead(processes *c, uint64_t now, shoal_err *err)
{
    int status, rc = 0;
    for (pid_t pid; rc == 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (size_t i = 0; i < c->s->n_nodes; i++)
            for (size_t k = 0; k < c->s->nodes[i].n_start; k++) {
                member *m = &c->posts[i].members[k];
                if (m->pid == pid) rc = bury(c, i, m, status, now, err);
            }
    return rc;
}

static void processes_look(processes *c, size_t node, member *m, uint64_t now)
{
    buf url = {0};
    if (m->ready || !m->pid || m->what->once || now < m->poll_ns) return;
    m->poll_ns = now + POLL_MS * 1000000ull;
    if (processes_expand(c, node, m->what->ready, &url) == 0)
        m->ready = c->hooks.answers(c->hooks.user, url.data);
    buf_done(&url);
}

/* What runs only at a node's first boot counts as up at later ones. */
static bool is_left_out(const post *p, const member *m)
{
    return p->was_up && m->what->first;
}

static int step_node(processes *c, size_t node, uint64_t now, shoal_err *err)
{
    post *p = &c->posts[node];
    size_t n = c->s->nodes[node].n_start;
    int rc = 0;
    for (size_t k = 0; rc == 0 && !p->off && k < n && k <= p->next; k++) {
        member *m = &p->members[k];
        if (m->start_ns && now >= m->start_ns && !m->held) rc = start_member(c, node, m, err);
        if (rc == 0) processes_look(c, node, m, now);
        if (k == p->next && (m->ready || is_left_out(p, m)) && ++p->next < n)
            p->members[p->next].start_ns = is_left_out(p, &p->members[p->next]) ? 0 : now;
    }
    if (!p->off && p->next == n) p->was_up = true;
    return rc;
}

int processes_tick(processes *c, uint64_t now, shoal_err *err)
{
    int rc = bury_dead(c, now, err);
    for (size_t i = 0; rc == 0 && i < c->s->n_nodes; i++) rc = step_node(c, i, now, err);
    return rc;
}

void processes_boot(processes *c, size_t node)
{
    post *p = &c->posts[node];
    p->off = false;
    p->next = 0;
    for (size_t k = 0; k < c->s->nodes[node].n_start; k++) {
        member *m = &p->members[k];
        m->held = m->ready = m->done = false;
        m->pid = 0; /* one that is not yet buried is nobody's now */
        m->start_ns = 0;
    }
    if (c->s->nodes[node].n_start && !is_left_out(p, &p->members[0])) p->members[0].start_ns = 1; /* now */
}

bool processes_up(const processes *c, size_t node)
{
    const post *p = &c->posts[node];
    bool up = !p->off && p->next == c->s->nodes[node].n_start;
    for (size_t k = 0; up && k < c->s->nodes[node].n_start; k++) {
        const member *m = &p->members[k];
        up = m->ready || is_left_out(p, m) || m->what->once;
    }
    return up;
}

pid_t processes_pid(const processes *c, size_t node, const char *role)
{
    const member *m = find_member(c, node, role);
    return m ? m->pid : 0;
}

void processes_hold(processes *c, size_t node, const char *role)
{
    member *m = find_member(c, node, role);
    if (m) m->held = true;
}

void processes_release(processes *c, size_t node, const char *role, uint64_t now)
{
    member *m = find_member(c, node, role);
    if (!m) return;
    m->held = false;
    if (!m->pid) m->start_ns = now;
}

void processes_off(processes *c, size_t node)
{
    c->posts[node].off = true;
    for (size_t k = 0; k < c->s->nodes[node].n_start; k++) c->posts[node].members[k].ready = false;
    host_signal(&c->nodes[node], SIGKILL);
}
