/* job_queue.c: a list with a tail and two counts; see job_queue.h. */
#include "infer/job_queue.h"

static const uint64_t patience_ms[] = {
#define PATIENCE_MS(e, ms) [e] = ms,
    JOB_CLASS_TABLE(PATIENCE_MS)
#undef PATIENCE_MS
};

job_class job_class_of(int number)
{
    return number >= 0 && number < JOB_N_CLASSES ? (job_class)number : JOB_INTERACTIVE;
}

uint64_t job_queue_due_ns(uint64_t submit_ns, uint64_t deadline_ns, job_class c)
{
    uint64_t due = submit_ns + patience_ms[c] * 1000000u;
    return deadline_ns && deadline_ns < due ? deadline_ns : due;
}

static void job_queue_count(job_queue *q, const job *j, int change)
{
    size_t n = atomic_load_explicit(&q->n, memory_order_relaxed);
    atomic_store_explicit(&q->n, change > 0 ? n + 1 : n - 1, memory_order_relaxed);
    q->n_tokens += change > 0 ? j->n_tokens : -j->n_tokens;
}

void job_queue_push(job_queue *q, job *j)
{
    job *before = NULL;
    for (job *k = q->head; k && k->due_ns <= j->due_ns; k = k->next) before = k;
    j->next = before ? before->next : q->head;
    *(before ? &before->next : &q->head) = j;
    if (!j->next) q->tail = j;
    job_queue_count(q, j, 1);
}

size_t job_queue_tokens_before(const job_queue *q, uint64_t due_ns)
{
    size_t n = 0;
    for (const job *j = q->head; j && j->due_ns <= due_ns; j = j->next) n += j->n_tokens;
    return n;
}

uint64_t job_queue_longest_ns(const job_queue *q, uint64_t now_ns)
{
    uint64_t longest = 0;
    for (const job *j = q->head; j; j = j->next) {
        uint64_t ns = j->waited_ns + (now_ns > j->queued_ns ? now_ns - j->queued_ns : 0);
        if (!j->over && !atomic_load(&j->paused) && ns > longest) longest = ns;
    }
    return longest;
}

void job_queue_push_back(job_queue *q, job *j)
{
    j->next = NULL;
    *(q->tail ? &q->tail->next : &q->head) = j;
    q->tail = j;
    job_queue_count(q, j, 1);
}

void job_queue_push_front(job_queue *q, job *j)
{
    j->next = q->head;
    q->head = j;
    if (!q->tail) q->tail = j;
    job_queue_count(q, j, 1);
}

/* Take out the one after `before`; NULL: the first. */
static void unlink_after(job_queue *q, job *before, job *j)
{
    *(before ? &before->next : &q->head) = j->next;
    if (q->tail == j) q->tail = before;
    j->next = NULL;
    job_queue_count(q, j, -1);
}

job *job_queue_pop(job_queue *q)
{
    job *j = q->head;
    if (j) unlink_after(q, NULL, j);
    return j;
}

job *job_queue_first(const job_queue *q, job_kind kind)
{
    job *j = q->head;
    while (j && j->kind != kind) j = j->next;
    return j;
}

void job_queue_take(job_queue *q, job *j)
{
    job *before = NULL;
    for (job *k = q->head; k && k != j; k = k->next) before = k;
    unlink_after(q, before, j);
}

bool job_queue_is_dead(const job *j, uint64_t now_ns)
{
    return j->over || atomic_load(&j->cancelled) || (j->deadline_ns && j->deadline_ns <= now_ns);
}

job *job_queue_reap(job_queue *q, uint64_t now_ns)
{
    job *dead = NULL, **end = &dead, *before = NULL;
    for (job *j = q->head, *next; j; j = next) {
        next = j->next;
        if (!job_queue_is_dead(j, now_ns)) {
            before = j;
            continue;
        }
        unlink_after(q, before, j);
        *end = j;
        end = &j->next;
    }
    return dead;
}
