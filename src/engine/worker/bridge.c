/* bridge.c: the queue between the engine thread and the loop thread; see bridge.h. The lock guards copying
 * alone: callbacks run on the loop thread, without it.
 *
 * The loop watches an eventfd. A uv_async wakes it in the middle of uv_async_send, and it then spins and
 * yields the processor until the sender, who may have no other to run on, has come to the end of that
 * function. */
#include "worker/bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"

/* One queued event: this header, n_top alternatives, text_len and thought_len bytes, padding to 8. */
typedef struct record {
    bridge_job *job;
    double prob_sum;
    int32_t id;
    float logprob;
    uint32_t kind, n_top, text_len, thought_len;
    uint32_t n_read, n_input, n_cached;
} record;

struct bridge {
    uv_poll_t poll;         /* of wake_fd */
    int wake_fd;            /* an eventfd: readable while there is something new */
    uv_mutex_t lock;        /* guards bursts, queue and done; a leaf: nothing else is taken under it */
    bool bursts, owes_wake; /* more of the same step follows; the loop is to be woken behind it */
    buf queue;
    bridge_job *done_head, **done_tail;
    buf replay; /* the loop thread's: the queue being replayed */
    void (*closed)(void *user);
    void *closed_user;
};

static void bridge_woken(uv_poll_t *h, int status, int events)
{
    bridge *b = h->data;
    uint64_t n;
    if (read(b->wake_fd, &n, sizeof n) == sizeof n) bridge_deliver(b);
}

/* Under the lock: behind it the loop may already have closed the handle. A full counter is no loss: it wakes.
 */
static void wake_loop(bridge *b)
{
    b->owes_wake = b->bursts;
    if (b->bursts) return;
    while (write(b->wake_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0 && errno == EINTR) continue;
}

void bridge_burst(void *user, bool begins)
{
    bridge *b = user;
    uv_mutex_lock(&b->lock);
    b->bursts = begins;
    if (!begins && b->owes_wake) wake_loop(b);
    uv_mutex_unlock(&b->lock);
}

/* 0, or libuv's reason. */
static int watch_wakes(bridge *b, uv_loop_t *loop)
{
    b->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (b->wake_fd < 0) return uv_translate_sys_error(errno);
    int rc = uv_poll_init(loop, &b->poll, b->wake_fd);
    if (rc != 0) close(b->wake_fd);
    return rc;
}

int bridge_new(bridge **ret, uv_loop_t *loop, shoal_err *err)
{
    bridge *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    if (uv_mutex_init(&b->lock) != 0) {
        free(b);
        return err_nomem(err);
    }
    int rc = watch_wakes(b, loop);
    if (rc != 0) {
        uv_mutex_destroy(&b->lock);
        free(b);
        return err_set(err, SHOAL_EIO, "cannot make a wake-up handle: %s", uv_strerror(rc));
    }
    b->poll.data = b;
    uv_poll_start(&b->poll, UV_READABLE, bridge_woken);
    b->done_tail = &b->done_head;
    *ret = b;
    return 0;
}

static void bridge_handle_closed(uv_handle_t *h)
{
    bridge *b = h->data;
    void (*closed)(void *) = b->closed;
    void *user = b->closed_user;
    close(b->wake_fd);
    uv_mutex_destroy(&b->lock);
    buf_done(&b->queue);
    buf_done(&b->replay);
    free(b);
    if (closed) closed(user);
}

void bridge_close(bridge *b, void (*closed)(void *user), void *user)
{
    b->closed = closed;
    b->closed_user = user;
    uv_close((uv_handle_t *)&b->poll, bridge_handle_closed);
}

static size_t record_bytes(size_t n_top, size_t text_len)
{
    return (sizeof(record) + n_top * sizeof(token_logprob) + text_len + 7) & ~(size_t)7;
}

/* Under the lock. An event that finds no memory spoils its job: the client gets an error, not a gap. */
static void push_event(bridge *b, bridge_job *j, const gen_event *ev)
{
    size_t bytes = record_bytes(ev->n_top, ev->text_len + ev->thought_len);
    if (j->overflow || buf_reserve(&b->queue, bytes) != 0) {
        j->overflow = true;
        return;
    }
    record r = {.job = j,
                .prob_sum = ev->prob_sum,
                .id = ev->id,
                .logprob = ev->logprob,
                .kind = ev->kind,
                .n_top = (uint32_t)ev->n_top,
                .text_len = (uint32_t)ev->text_len,
                .thought_len = (uint32_t)ev->thought_len,
                .n_read = (uint32_t)ev->n_read,
                .n_input = (uint32_t)ev->n_input,
                .n_cached = (uint32_t)ev->n_cached};
    char *at = b->queue.data + b->queue.len;
    memcpy(at, &r, sizeof r);
    if (ev->n_top) memcpy(at + sizeof r, ev->top, ev->n_top * sizeof *ev->top);
    at += sizeof r + ev->n_top * sizeof *ev->top;
    if (ev->text_len) memcpy(at, ev->text, ev->text_len);
    if (ev->thought_len) memcpy(at + ev->text_len, ev->thought, ev->thought_len);
    b->queue.len += bytes;
}

static void push_done(bridge *b, bridge_job *j, int status, const char *message)
{
    j->status = status;
    strncpy(j->message, message ? message : "", sizeof j->message - 1);
    j->next_done = NULL;
    *b->done_tail = j;
    b->done_tail = &j->next_done;
}

void bridge_event(void *job, const gen_event *ev)
{
    bridge_job *j = job;
    bridge *b = j->b;
    uv_mutex_lock(&b->lock);
    bool wake = b->queue.len == 0 && !b->done_head, spoilt = j->overflow;
    if (ev->kind != EVENT_DONE) {
        push_event(b, j, ev);
    } else {
        gen_event tail = {.kind = EVENT_TOKEN,
                          .id = -1,
                          .text = ev->text,
                          .text_len = ev->text_len,
                          .thought = ev->thought,
                          .thought_len = ev->thought_len};
        /* What is held back is not yet text: where the reply was broken off it might have become none. */
        if (ev->status == 0 && tail.text_len + tail.thought_len > 0) push_event(b, j, &tail);
        j->finish = ev->finish;
        j->n_stop = ev->n_stop;
        j->timings = ev->timings;
        push_done(b, j, ev->status, ev->message);
    }
    spoilt = !spoilt && j->overflow && ev->kind != EVENT_DONE;
    if (wake) wake_loop(b);
    uv_mutex_unlock(&b->lock);
    if (spoilt && j->on_overflow) j->on_overflow(j);
}

void bridge_result(void *job, const enc_result *r)
{
    bridge_job *j = job;
    bridge *b = j->b;
    uv_mutex_lock(&b->lock);
    bool wake = b->queue.len == 0 && !b->done_head;
    size_t n = r->status == 0 ? r->rows * r->cols : 0;
    bool fits = n <= j->n_values;
    if (fits && n > 0) memcpy(j->values, r->values, n * sizeof *j->values);
    j->n_values = fits ? n : 0;
    j->queue_ms = r->queue_ms;
    j->compute_ms = r->compute_ms;
    j->cpu_ms = r->cpu_ms;
    if (fits)
        push_done(b, j, r->status, r->message);
    else
        push_done(b, j, SHOAL_EINTERNAL, "the engine gave a result of another size than the model's");
    if (wake) wake_loop(b);
    uv_mutex_unlock(&b->lock);
}

static bridge_job *replay_tokens(const buf *q)
{
    bridge_job *head = NULL, **tail = &head;
    for (size_t at = 0; at < q->len;) {
        record r;
        memcpy(&r, q->data + at, sizeof r);
        const char *rest = q->data + at + sizeof r;
        gen_event ev = {.kind = r.kind,
                        .id = r.id,
                        .logprob = r.logprob,
                        .prob_sum = r.prob_sum,
                        .n_read = r.n_read,
                        .n_input = r.n_input,
                        .n_cached = r.n_cached,
                        .n_top = r.n_top,
                        .top = (const token_logprob *)(const void *)rest,
                        .text = rest + r.n_top * sizeof(token_logprob),
                        .text_len = r.text_len,
                        .thought_len = r.thought_len};
        ev.thought = ev.text + ev.text_len;
        if (!r.job->touched) {
            r.job->touched = true;
            r.job->next_touched = NULL;
            *tail = r.job;
            tail = &r.job->next_touched;
        }
        r.job->on_token(r.job, &ev);
        at += record_bytes(r.n_top, (size_t)r.text_len + r.thought_len);
    }
    return head;
}

static void finish_job(bridge_job *j)
{
    if (j->overflow && (j->status == 0 || j->status == SHOAL_ECANCELLED)) {
        j->status = SHOAL_ENOMEM;
        strcpy(j->message, "out of memory while streaming the reply");
    }
    j->on_done(j);
}

void bridge_deliver(bridge *b)
{
    uv_mutex_lock(&b->lock);
    buf swap = b->queue;
    b->queue = b->replay;
    b->replay = swap;
    bridge_job *done = b->done_head;
    b->done_head = NULL;
    b->done_tail = &b->done_head;
    uv_mutex_unlock(&b->lock);

    bridge_job *touched = replay_tokens(&b->replay);
    for (bridge_job *j = touched; j; j = j->next_touched) {
        j->touched = false;
        if (j->on_flush) j->on_flush(j);
    }
    buf_clear(&b->replay);
    while (done) {
        bridge_job *next = done->next_done;
        finish_job(done);
        done = next;
    }
}
