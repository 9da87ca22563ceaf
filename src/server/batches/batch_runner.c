/* batch_runner.c: see batch_runner.h.
 *
 * Everything goes by one function, `turn`, which a timer calls soon after anything has happened: it gives idle slots a
 * line, begins what waits, checks and ends batches. Jobs and answers only note what came, so that none of them is inside
 * another. */
#include "batches/batch_runner.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "batches/batch_check.h"
#include "batches/batch_put.h"
#include "batches/batch_window.h"
#include "json/json.h"
#include "logging/log.h"
#include "request/gateway_state.h"
#include "request/ingress_request.h"
#include "request/metrics.h"

enum {
    OWNER_SIZE = 65,
    YIELD_MS = 50,      /* how often it is looked whether others are still served */
    AGAIN_MS = 5000,    /* after a write that failed, or without the lock */
    ROOM_MS = 30000,    /* of a key whose files take all that they may */
    SCAN_MS = 30000,    /* for batches that another gateway took in */
    SWEEP_MS = 3600000, /* for what is old */
    WINDOWS_MAX = 16,   /* batches that have a part of their input in memory */
};
#define MS 1000000u

typedef struct batch_entry batch_entry;
struct batch_entry {  /* a batch that has not ended */
    executor_job job; /* first: its check, or its end */
    batch_entry *next;
    struct batch_runner *r;
    int64_t id, input, expires;
    batch_dialect dialect;
    char owner[OWNER_SIZE], key[OWNER_SIZE], endpoint[64];
    bool validating, ends, exhausted, busy;
    int64_t cursor;    /* the last line that a slot took */
    int64_t postponed; /* the first line that was put off, and comes again behind the last one; 0: none */
    uint64_t asks_after_ns; /* its lines were refused for lack of room: none is taken until then */
    unsigned n_slots;
    uint64_t not_before_ns; /* its job failed: it is tried again then */
    uint64_t failing_ns;    /* since when its jobs fail; 0: they do not */
    bool gives_up;          /* when its job fails once more */
    batch_status ended;
    batch_check check;
    store_batch_end end;
    batch_window window; /* of its input: that of the slot that fetches */
    char names[2][64];
};

typedef enum slot_state {
    SLOT_IDLE,
    SLOT_FETCH,
    SLOT_WAIT,
    SLOT_RUN,
    SLOT_STORE,
    SLOT_STORE_WAIT
} slot_state;

typedef struct slot {
    ingress_request ingress; /* first */
    executor_job job;
    struct batch_runner *r;
    slot_state state;
    batch_entry *e; /* NULL: idle */
    arena *mem;     /* of line */
    store_batch_line line;
    int64_t taken[BATCH_SLOTS]; /* lines of the batch that other slots have */
    size_t n_taken;
    buf body, answer;
    bool ok;
    unsigned n_tries;
    uint64_t not_before_ns;
    uint64_t failing_ns; /* since when its answer cannot be stored; 0: it was not tried */
    bool gives_up;       /* its batch, when that fails once more */
    bool gave_up;
    int64_t now;        /* of storing it, in seconds since 1970 */
    int64_t most_bytes; /* of all batches of its owner */
} slot;

typedef struct scan_job {
    executor_job job; /* first */
    struct batch_runner *r;
    batch_entry *found;
    int64_t keep_s, now, n_swept;
    bool sweeps;
} scan_job;

struct batch_runner {
    struct gateway *g;
    char *path;
    int lock; /* -1: another process has it, or none does */
    env_timer *timer;
    bool stopped, scanning, scan_again;
    bool scan_is_stale; /* a batch ended while the scan was under way: what it found may have ended */
    scan_job scan;
    uint64_t scan_at_ns, sweep_at_ns, begun_at_ns;
    batch_entry *entries, *last; /* last: whose line was taken last */
    slot slots[BATCH_SLOTS];
};
typedef struct batch_runner batch_runner;

static void turn(void *arg);

static uint64_t now_of(const batch_runner *r)
{
    return env_now_ns(&r->g->time);
}

static void soon(batch_runner *r)
{
    if (!r->stopped) r->g->time.timer_start(r->timer, 0);
}

/* ---- what is open --------------------------------------------------------------------------------- */

static int note_open(void *user, const store_batch *b)
{
    scan_job *j = user;
    batch_entry *e = calloc(1, sizeof *e);
    if (!e) return SHOAL_ENOMEM;
    *e = (batch_entry){.next = j->found,
                       .r = j->r,
                       .id = b->id,
                       .input = b->input,
                       .expires = b->expires,
                       .dialect = b->dialect,
                       .validating = b->status == BATCH_VALIDATING,
                       .ends = b->status == BATCH_CANCELLING || b->status == BATCH_FINALIZING};
    snprintf(e->owner, sizeof e->owner, "%s", b->owner);
    snprintf(e->key, sizeof e->key, "%s", b->key);
    snprintf(e->endpoint, sizeof e->endpoint, "%s", b->endpoint);
    j->found = e;
    return 0;
}

static int work_scan(executor_job *job, const executor_tools *t, shoal_err *err)
{
    scan_job *j = (scan_job *)job;
    int rc = j->sweeps ? store_batch_sweep(t->store, j->now, j->keep_s, &j->n_swept, err) : 0;
    return rc == 0 ? store_batches_open(t->store, note_open, j, err) : rc;
}

static batch_entry *find_entry(batch_runner *r, int64_t id)
{
    batch_entry *e = r->entries;
    while (e && e->id != id) e = e->next;
    return e;
}

static void remove_entry(batch_runner *r, batch_entry *e)
{
    batch_entry **at = &r->entries;
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    if (r->last == e) r->last = NULL;
    batch_window_done(&e->window);
    free(e);
}

/* A new one stands behind the others: found has the youngest first. */
static void take_in(batch_runner *r, batch_entry *found)
{
    batch_entry *old = find_entry(r, found->id);
    if (old) {
        old->ends = old->ends || found->ends;
        free(found);
        return;
    }
    batch_entry **at = &r->entries;
    while (*at && (*at)->id != found->id) at = &(*at)->next;
    found->next = NULL;
    *at = found;
}

static batch_entry *reversed(batch_entry *list)
{
    batch_entry *turned = NULL;
    while (list) {
        batch_entry *next = list->next;
        list->next = turned;
        turned = list;
        list = next;
    }
    return turned;
}

static void done_scan(executor_job *job)
{
    scan_job *j = (scan_job *)job;
    batch_runner *r = j->r;
    r->scanning = false;
    r->scan_again = r->scan_again || r->scan_is_stale;
    for (batch_entry *e = reversed(j->found), *next; e; e = next) {
        next = e->next;
        if (r->scan_is_stale)
            free(e);
        else
            take_in(r, e);
    }
    j->found = NULL;
    if (job->rc != 0 && job->rc != SHOAL_ECANCELLED)
        LOG(LOG_WARN, "batches", "cannot_look", LOG_S("error", job->err.message));
    if (j->n_swept) LOG(LOG_INFO, "batches", "swept", LOG_I("rows", j->n_swept));
    soon(r);
}

/* Only one process runs the batches of a store. It ends with the process, however that ends. */
static bool has_lock(batch_runner *r)
{
    char path[4096];
    if (r->lock >= 0) return true;
    if ((size_t)snprintf(path, sizeof path, "%s.batches", r->path) >= sizeof path) return false;
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        r->lock = fd;
    else
        close(fd);
    return r->lock >= 0;
}

static void scan(batch_runner *r)
{
    uint64_t now = now_of(r);
    if (r->scanning || (now < r->scan_at_ns && !r->scan_again)) return;
    if (access(r->path, F_OK) != 0) { /* nothing was ever stored, and looking would make the file */
        r->scan_at_ns = now + SCAN_MS * (uint64_t)MS;
        r->scan_again = false;
        return;
    }
    if (!has_lock(r)) {
        r->scan_at_ns = now + AGAIN_MS * (uint64_t)MS;
        r->scan_again = false;
        return;
    }
    bool sweeps = now >= r->sweep_at_ns;
    if (sweeps) r->sweep_at_ns = now + SWEEP_MS * (uint64_t)MS;
    r->scan = (scan_job){.r = r,
                         .sweeps = sweeps,
                         .now = env_wall_s(&r->g->time),
                         .keep_s = (int64_t)r->g->config->batches.keep_days * 86400};
    r->scan.job = (executor_job){
        .work = work_scan, .done = done_scan, .queue = sweeps ? EXECUTOR_WRITES : EXECUTOR_READS};
    r->scanning = true;
    r->scan_again = r->scan_is_stale = false;
    r->scan_at_ns = now + SCAN_MS * (uint64_t)MS;
    executor_submit(r->g->executor, &r->scan.job);
}

/* ---- what cannot be written ----------------------------------------------------------------------- */

/* Has a write failed for as long as it is to be tried again? */
static bool fails_lastingly(const batch_runner *r, uint64_t *since_ns)
{
    uint64_t now = now_of(r);
    if (!*since_ns) *since_ns = now;
    return now - *since_ns >= r->g->config->batches.write_retry_s * 1000 * MS;
}

/* In a job whose write has failed with rc, as err says: the batch fails for that reason, if so much can be written. */
static int give_up(const batch_entry *e, store *s, int64_t now, int rc, shoal_err *err)
{
    batch_fault f = {.code = "answers_not_written"};
    shoal_err unsaid;
    buf list = {0};
    if (rc == SHOAL_ECANCELLED) return rc;
    snprintf(f.message, sizeof f.message, "The answers cannot be written: %.200s", err->message);
    buf_putc(&list, '[');
    batch_put_fault(&list, &f, 0);
    buf_putc(&list, ']');
    int done = list.failed ? SHOAL_ENOMEM : store_batch_give_up(s, e->id, list.data, now, &unsaid);
    buf_done(&list);
    if (done != 0) return rc;
    LOG(LOG_ERROR, "batches", "given_up", LOG_I("batch", e->id), LOG_S("error", err->message));
    return 0;
}

/* ---- a batch's check and end ---------------------------------------------------------------------- */

static void later(batch_entry *e)
{
    LOG(LOG_WARN, "batches", "cannot_store", LOG_I("batch", e->id), LOG_S("error", e->job.err.message));
    e->gives_up = fails_lastingly(e->r, &e->failing_ns);
    e->not_before_ns = now_of(e->r) + AGAIN_MS * (uint64_t)MS;
}

static int work_check(executor_job *job, const executor_tools *t, shoal_err *err)
{
    batch_entry *e = (batch_entry *)job;
    int rc = batch_check_run(&e->check, t->store, &job->steps, err);
    return rc == 0 || !e->gives_up ? rc : give_up(e, t->store, e->check.now, rc, err);
}

static void done_check(executor_job *job)
{
    batch_entry *e = (batch_entry *)job;
    e->busy = false;
    e->validating = job->rc != 0;
    if (job->rc == 0) e->failing_ns = 0, e->gives_up = false;
    if (job->rc != 0) later(e);
    soon(e->r);
}

/* One that has failed has no lines, and its end finds that it has ended. */
static void start_check(batch_entry *e)
{
    const gateway_config *c = e->r->g->config;
    e->check = (batch_check){.id = e->id,
                             .input = e->input,
                             .now = env_wall_s(&e->r->g->time),
                             .endpoint = e->endpoint,
                             .most_lines = (int64_t)c->batches.max_lines,
                             .most_line_bytes = ingress_request_max_bytes(e->r->g) + 4096};
    e->busy = true;
    e->job =
        (executor_job){.work = work_check, .done = done_check, .queue = EXECUTOR_INDEXING, .owner = e->owner};
    executor_submit(e->r->g->executor, &e->job);
}

static void put_missing(void *user, const store_batch *b, batch_status ends, const store_batch_line *l,
                        buf *out)
{
    batch_put_missing(out, b->dialect, b->id, l, ends);
}

static int work_finish(executor_job *job, const executor_tools *t, shoal_err *err)
{
    batch_entry *e = (batch_entry *)job;
    int rc = store_batch_finish(t->store, e->id, &e->end, &e->ended, err);
    if (rc == 0 || rc == SHOAL_ENOTFOUND || !e->gives_up) return rc;
    rc = give_up(e, t->store, e->end.now, rc, err);
    e->ended = BATCH_FAILED;
    return rc;
}

static void done_finish(executor_job *job)
{
    batch_entry *e = (batch_entry *)job;
    batch_runner *r = e->r;
    e->busy = false;
    if (job->rc == 0 || job->rc == SHOAL_ENOTFOUND) {
        if (job->rc == 0) {
            LOG(LOG_INFO, "batches", "ended", LOG_I("batch", e->id),
                LOG_S("status", batch_status_name(e->ended)));
            metrics_add(r->g->metrics, METRIC_BATCHES, 1, batch_status_name(e->ended), NULL, NULL);
        }
        r->scan_is_stale = true;
        remove_entry(r, e);
    } else {
        later(e);
    }
    soon(r);
}

static void start_finish(batch_entry *e)
{
    snprintf(e->names[0], sizeof e->names[0], BATCH_ID "%lld_output.jsonl", (long long)e->id);
    snprintf(e->names[1], sizeof e->names[1], BATCH_ID "%lld_error.jsonl", (long long)e->id);
    e->end = (store_batch_end){env_wall_s(&e->r->g->time), e->names[0], e->names[1], put_missing, NULL};
    e->busy = true;
    e->job =
        (executor_job){.work = work_finish, .done = done_finish, .queue = EXECUTOR_WRITES, .owner = e->owner};
    executor_submit(e->r->g->executor, &e->job);
}

/* ---- slots ---------------------------------------------------------------------------------------- */

static void release(slot *s)
{
    if (s->e) s->e->n_slots--;
    s->e = NULL;
    s->state = SLOT_IDLE;
    arena_free(s->mem);
    s->mem = NULL;
    buf_done(&s->body);
    buf_done(&s->answer);
    soon(s->r);
}

/* The line is given back: it is asked again, when the batch's other lines have been, and not before so long. */
static void postpone(slot *s, uint64_t ms)
{
    batch_entry *e = s->e;
    uint64_t at = now_of(s->r) + ms * MS;
    if (!e->postponed || s->line.n < e->postponed) e->postponed = s->line.n;
    if (at > e->asks_after_ns) e->asks_after_ns = at;
    e->exhausted = false;
    release(s);
}

static bool is_taken(const slot *s, int64_t n)
{
    for (size_t i = 0; i < s->n_taken; i++)
        if (s->taken[i] == n) return true;
    return false;
}

static int work_fetch(executor_job *job, const executor_tools *t, shoal_err *err)
{
    slot *s = (slot *)((char *)job - offsetof(slot, job));
    batch_line line = {0};
    batch_fault f;
    const char *text;
    int64_t after = s->e->cursor, has = 0;
    int rc = store_batch_bytes(t->store, &has, err);
    if (rc == 0 && has >= s->most_bytes)
        rc = err_set(err, SHOAL_ELIMIT, "files of batches take %lld bytes, and batches.max_mb allows no more",
                     (long long)has);
    if (rc != 0) return rc;
    do {
        s->line = (store_batch_line){0};
        rc = store_batch_next(t->store, s->e->id, after, s->mem, &s->line, err);
        after = s->line.n;
    } while (rc == 1 && is_taken(s, after));
    if (rc != 1) return rc;
    rc = batch_window_read(&s->e->window, t->store, s->e->input, s->line.start, s->line.n_bytes, &text, err);
    if (rc == 0) rc = batch_line_parse(&line, text, (size_t)s->line.n_bytes, s->e->endpoint, &f);
    if (rc == 0) rc = batch_line_put_body(&s->body, &line, s->e->endpoint);
    json_drop(line.root);
    return rc == 0 ? 1 : rc == SHOAL_ENOMEM ? err_nomem(err) : rc;
}

static void store_answer(slot *s);

static void done_fetch(executor_job *job)
{
    slot *s = (slot *)((char *)job - offsetof(slot, job));
    batch_entry *e = s->e;
    if (job->rc == 1) {
        e->cursor = s->line.n;
        s->state = SLOT_WAIT;
        soon(s->r);
        return;
    }
    if (job->rc == 0) {
        e->exhausted = !e->postponed;
        e->cursor = e->postponed ? e->postponed - 1 : e->cursor;
        e->postponed = 0;
        batch_window_done(&e->window);
    } else if (s->line.n &&
               (job->rc == SHOAL_ENOTFOUND || job->rc == SHOAL_EFORMAT || job->rc == SHOAL_EINVALID)) {
        e->cursor =
            s->line.n; /* the input is not what it was: the line gets an error, as its number is known */
        batch_put_unreadable(&s->answer, e->dialect, e->id, &s->line);
        s->ok = false;
        store_answer(s);
        return;
    } else {
        if (job->rc != SHOAL_ECANCELLED)
            LOG(LOG_WARN, "batches", "cannot_read", LOG_I("batch", e->id), LOG_S("error", job->err.message));
        e->asks_after_ns = now_of(s->r) + (job->rc == SHOAL_ELIMIT ? ROOM_MS : AGAIN_MS) * (uint64_t)MS;
    }
    release(s);
}

/* One fetch of a batch at a time: the next one begins behind the line that it brings. */
static bool is_fetching(const batch_runner *r, const batch_entry *e)
{
    for (size_t i = 0; i < BATCH_SLOTS; i++)
        if (r->slots[i].e == e && r->slots[i].state == SLOT_FETCH) return true;
    return false;
}

static bool has_lines(const batch_runner *r, const batch_entry *e)
{
    return !e->validating && !e->ends && !e->exhausted && !e->busy && now_of(r) >= e->not_before_ns &&
           now_of(r) >= e->asks_after_ns && !is_fetching(r, e);
}

/* Batches take turns. */
static batch_entry *next_entry(batch_runner *r)
{
    batch_entry *from = r->last && r->last->next ? r->last->next : r->entries;
    for (batch_entry *e = from; e; e = e->next)
        if (has_lines(r, e)) return e;
    for (batch_entry *e = r->entries; e != from; e = e->next)
        if (has_lines(r, e)) return e;
    return NULL;
}

static void spare_windows(batch_runner *r, const batch_entry *next)
{
    size_t n = 0;
    for (batch_entry *e = r->entries; e; e = e->next)
        if (e != next && !is_fetching(r, e) && e->window.bytes && ++n >= WINDOWS_MAX)
            batch_window_done(&e->window);
}

static bool start_fetch(slot *s)
{
    batch_entry *e = next_entry(s->r);
    if (!e || !(s->mem = arena_new(1024))) return false;
    s->n_taken = 0;
    for (size_t i = 0; i < BATCH_SLOTS; i++)
        if (s->r->slots[i].e == e) s->taken[s->n_taken++] = s->r->slots[i].line.n;
    spare_windows(s->r, e);
    s->e = e;
    s->r->last = e;
    e->n_slots++;
    s->line = (store_batch_line){0};
    s->most_bytes = (int64_t)s->r->g->config->batches.bytes;
    s->n_tries = 0;
    s->not_before_ns = s->failing_ns = 0;
    s->gives_up = s->gave_up = false;
    s->state = SLOT_FETCH;
    s->job =
        (executor_job){.work = work_fetch, .done = done_fetch, .queue = EXECUTOR_READS, .owner = e->owner};
    executor_submit(s->r->g->executor, &s->job);
    return true;
}

/* ---- the answer ----------------------------------------------------------------------------------- */

static int work_store(executor_job *job, const executor_tools *t, shoal_err *err)
{
    slot *s = (slot *)((char *)job - offsetof(slot, job));
    int rc = store_batch_answer(t->store, s->e->id, s->line.n, s->ok, &s->answer, s->most_bytes, err);
    if (rc == 0 || rc == SHOAL_ELIMIT || !s->gives_up) return rc;
    rc = give_up(s->e, t->store, s->now, rc, err);
    s->gave_up = rc == 0;
    return rc;
}

static void done_store(executor_job *job)
{
    slot *s = (slot *)((char *)job - offsetof(slot, job));
    if (job->rc == 0) {
        s->e->ends = s->e->ends || s->gave_up;
        metrics_add(s->r->g->metrics, METRIC_BATCH_LINES, 1, s->ok ? "ok" : "error", NULL, NULL);
        release(s);
        return;
    }
    if (job->rc != SHOAL_ECANCELLED)
        LOG(LOG_WARN, "batches", "cannot_store", LOG_I("batch", s->e->id), LOG_S("error", job->err.message));
    if (job->rc == SHOAL_ELIMIT) { /* asked again once files were deleted, or given up when the window ends */
        postpone(s, ROOM_MS);
        return;
    }
    s->state = SLOT_STORE_WAIT;
    s->gives_up = fails_lastingly(s->r, &s->failing_ns);
    s->not_before_ns = now_of(s->r) + AGAIN_MS * (uint64_t)MS;
    soon(s->r);
}

static void submit_store(slot *s)
{
    s->state = SLOT_STORE;
    s->now = env_wall_s(&s->r->g->time);
    s->job = (executor_job){
        .work = work_store, .done = done_store, .queue = EXECUTOR_WRITES, .owner = s->e->owner};
    executor_submit(s->r->g->executor, &s->job);
}

static void wait_again(slot *s, uint64_t ms)
{
    s->state = SLOT_WAIT;
    s->not_before_ns = now_of(s->r) + ms * MS;
    soon(s->r);
}

/* Without memory for its answer the line is asked again. */
static void store_answer(slot *s)
{
    if (s->answer.failed) {
        buf_done(&s->answer);
        wait_again(s, AGAIN_MS);
        return;
    }
    submit_store(s);
}

/* ---- the request, as its ingress sees it ---------------------------------------------------------- */

static const slot *slot_of(const ingress_request *in)
{
    return (const slot *)in;
}

static const char *slot_method(const ingress_request *in)
{
    return "POST";
}

static const char *slot_path(const ingress_request *in)
{
    return slot_of(in)->e->endpoint;
}

static const char *slot_query(const ingress_request *in)
{
    return "";
}

static const char *slot_header(const ingress_request *in, const char *name)
{
    if (strcmp(name, "content-type") == 0) return "application/json";
    if (strcmp(name, "anthropic-version") == 0 && slot_of(in)->e->dialect == BATCH_ANTHROPIC)
        return "2023-06-01";
    return strcmp(name, "x-shoal-latency") == 0 ? "batch" : NULL;
}

static const char *slot_body(const ingress_request *in, size_t *ret_len)
{
    const buf *b = &slot_of(in)->body;
    if (ret_len) *ret_len = b->len;
    return buf_text(b);
}

static void slot_pause(ingress_request *in, bool paused) {}

static const char *named(const http_header *headers, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(headers[i].name, name) == 0) return headers[i].value;
    return NULL;
}

static uint64_t told_ms(const char *retry_after)
{
    int told_s = retry_after ? atoi(retry_after) : 0;
    return told_s > 0 ? (uint64_t)told_s * 1000 : 1000;
}

/* How long until a call that broke is made again; 0: the answer counts. */
static uint64_t wait_of(slot *s, int status)
{
    bool broken = status == 500 || status == 502 || status == 504;
    return broken && ++s->n_tries < BATCH_TRIES ? 1000u << s->n_tries : 0;
}

static void slot_reply(ingress_request *in, int status, const http_header *headers, size_t n,
                       const void *body, size_t len)
{
    slot *s = (slot *)in;
    if (status == 429 || status == 503) {
        postpone(s, told_ms(named(headers, n, "retry-after")));
        return;
    }
    uint64_t ms = wait_of(s, status);
    const char *id = named(headers, n, "x-request-id");
    if (ms || status == 0) {
        wait_again(s, ms ? ms : AGAIN_MS);
        return;
    }
    s->ok = status < 300;
    batch_put_answer(&s->answer, s->e->dialect, s->e->id, &s->line,
                     &(batch_reply){status, id ? id : "", body, len});
    store_answer(s);
}

/* No line asks for a stream (batch_line.c); one that came all the same is an answer that was not understood. */
static void slot_begin(ingress_request *in, int status, const http_header *headers, size_t n) {}

static void slot_event(ingress_request *in, const event *e) {}

static void slot_end(ingress_request *in)
{
    static const char WHY[] =
        "{\"error\":{\"message\":\"the answer was a stream\",\"type\":\"server_error\"}}";
    slot *s = (slot *)in;
    s->n_tries = BATCH_TRIES;
    slot_reply(in, 500, NULL, 0, WHY, sizeof WHY - 1);
}

static size_t slot_unsent(const ingress_request *in)
{
    return 0;
}

/* The gateway goes: the next one asks it again. */
static void slot_drop(ingress_request *in)
{
    release((slot *)in);
}

static const ingress_request_ops BATCH_INGRESS = {.method = slot_method,
                                                  .path = slot_path,
                                                  .query = slot_query,
                                                  .header = slot_header,
                                                  .body = slot_body,
                                                  .pause = slot_pause,
                                                  .reply = slot_reply,
                                                  .begin = slot_begin,
                                                  .event = slot_event,
                                                  .end = slot_end,
                                                  .unsent = slot_unsent,
                                                  .drop = slot_drop};

/* One for each choice, as n_admitted counts them. */
static size_t n_admitted_here(const batch_runner *r)
{
    size_t n = 0;
    for (size_t i = 0; i < BATCH_SLOTS; i++)
        if (r->slots[i].state == SLOT_RUN && r->slots[i].ingress.rq) n += r->slots[i].ingress.rq->n_counted;
    return n;
}

/* Others come first; but a server that is never idle does not stop a batch. */
static bool may_begin(const batch_runner *r)
{
    return r->g->n_admitted <= n_admitted_here(r) ||
           now_of(r) - r->begun_at_ns >= BATCH_PATIENCE_MS * (uint64_t)MS;
}

static void ask(slot *s)
{
    s->ingress = (ingress_request){.ops = &BATCH_INGRESS,
                                   .local = true,
                                   .key_digest = *s->e->key ? s->e->key : NULL,
                                   .owner = s->e->owner};
    s->state = SLOT_RUN;
    s->r->begun_at_ns = now_of(s->r);
    ingress_request_enter(s->r->g, &s->ingress);
}

/* ---- turns ---------------------------------------------------------------------------------------- */

static void turn_entry(batch_entry *e)
{
    batch_runner *r = e->r;
    if (e->busy || now_of(r) < e->not_before_ns) return;
    if (env_wall_s(&r->g->time) >= e->expires) e->ends = true;
    if (e->validating && !e->ends)
        start_check(e);
    else if (e->n_slots == 0 && (e->ends || e->exhausted))
        start_finish(e);
}

/* Milliseconds until it is to be looked at again; 0: something else wakes the runner. */
static uint64_t turn_slot(slot *s, bool within)
{
    batch_runner *r = s->r;
    if (s->state == SLOT_IDLE && within) start_fetch(s);
    if (s->state != SLOT_WAIT && s->state != SLOT_STORE_WAIT) return 0;
    if (s->state == SLOT_WAIT && s->e->ends) {
        release(s);
        return 0;
    }
    uint64_t now = now_of(r);
    if (now < s->not_before_ns) return (s->not_before_ns - now) / MS + 1;
    if (s->state == SLOT_STORE_WAIT)
        submit_store(s);
    else if (may_begin(r))
        ask(s);
    else
        return YIELD_MS;
    return 0;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

static void turn(void *arg)
{
    batch_runner *r = arg;
    uint64_t wait_ms = 0, now = now_of(r);
    size_t most = r->g->config->batches.max_running;
    if (r->stopped) return;
    scan(r);
    for (batch_entry *e = r->entries, *next; e; e = next) {
        next = e->next;
        turn_entry(e);
        if (!e->busy && e->not_before_ns > now) wait_ms = sooner(wait_ms, (e->not_before_ns - now) / MS + 1);
        if (e->asks_after_ns > now) wait_ms = sooner(wait_ms, (e->asks_after_ns - now) / MS + 1);
    }
    for (size_t i = 0; i < BATCH_SLOTS; i++) wait_ms = sooner(wait_ms, turn_slot(&r->slots[i], i < most));
    uint64_t scan_ms = r->scan_at_ns > now ? (r->scan_at_ns - now) / MS + 1 : 1;
    if (!r->scanning) wait_ms = sooner(wait_ms, scan_ms);
    if (r->entries) wait_ms = sooner(wait_ms, 1000); /* windows end */
    if (wait_ms && !r->scan_again) r->g->time.timer_start(r->timer, wait_ms);
    if (r->scan_again && !r->scanning) soon(r);
}

/* ---- life ----------------------------------------------------------------------------------------- */

int batch_runner_open(struct gateway *g, const char *path, shoal_err *err)
{
    if (!path) return 0;
    batch_runner *r = calloc(1, sizeof *r);
    if (!r) return err_nomem(err);
    *r = (batch_runner){.g = g, .lock = -1, .path = strdup(path)};
    r->timer = r->path ? g->time.timer_new(g->time.user, turn, r) : NULL;
    if (!r->timer) {
        free(r->path);
        free(r);
        return err_nomem(err);
    }
    for (size_t i = 0; i < BATCH_SLOTS; i++) r->slots[i].r = r;
    g->batches = r;
    soon(r);
    return 0;
}

void batch_runner_wake(struct gateway *g)
{
    batch_runner *r = g->batches;
    if (!r) return;
    r->scan_again = true;
    soon(r);
}

void batch_runner_stop(struct gateway *g)
{
    batch_runner *r = g->batches;
    if (!r || r->stopped) return;
    r->stopped = true;
    g->time.timer_stop(r->timer);
    for (size_t i = 0; i < BATCH_SLOTS; i++) {
        slot *s = &r->slots[i];
        if (s->state == SLOT_RUN) ingress_request_leave(&s->ingress);
        if (s->state == SLOT_RUN || s->state == SLOT_WAIT || s->state == SLOT_STORE_WAIT) release(s);
    }
}

void batch_runner_free(struct gateway *g)
{
    batch_runner *r = g->batches;
    if (!r) return;
    g->batches = NULL;
    for (size_t i = 0; i < BATCH_SLOTS; i++)
        if (r->slots[i].state != SLOT_IDLE) release(&r->slots[i]);
    while (r->entries) remove_entry(r, r->entries);
    g->time.timer_free(r->timer);
    if (r->lock >= 0) close(r->lock);
    free(r->path);
    free(r);
}
