/* log_ring.c: lines in a circle of pointers; one lock guards all of it. */
#include "logging/log_ring.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct kept {
    char *line;
    size_t n;
    log_level level;
} kept;

static struct {
    pthread_mutex_t lock;
    kept *lines; /* of number k at k % max_lines; NULL: nothing is kept */
    size_t max_lines, max_bytes, n_bytes;
    uint64_t first, next; /* numbers: the oldest that is there, and the one to come; from 1 */
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

static kept *at(uint64_t number)
{
    return &ring.lines[number % ring.max_lines];
}

static void drop_oldest(void)
{
    kept *k = at(ring.first++);
    ring.n_bytes -= k->n;
    free(k->line);
    *k = (kept){0};
}

int log_ring_open(size_t max_lines, size_t max_bytes, shoal_err *err)
{
    kept *lines = calloc(max_lines, sizeof *lines);
    if (!lines) return err_nomem(err);
    ring.lines = lines;
    ring.max_lines = max_lines;
    ring.max_bytes = max_bytes;
    ring.first = ring.next = 1;
    return 0;
}

void log_ring_close(void)
{
    pthread_mutex_lock(&ring.lock);
    while (ring.lines && ring.first < ring.next) drop_oldest();
    free(ring.lines);
    ring.lines = NULL;
    pthread_mutex_unlock(&ring.lock);
}

bool log_ring_is_open(void)
{
    pthread_mutex_lock(&ring.lock);
    bool is_open = ring.lines != NULL;
    pthread_mutex_unlock(&ring.lock);
    return is_open;
}

void log_ring_add(log_level level, const char *line, size_t n)
{
    char *copy = n <= ring.max_bytes ? malloc(n + 1) : NULL;
    if (!copy) return;
    memcpy(copy, line, n);
    copy[n] = '\0';
    pthread_mutex_lock(&ring.lock);
    while (ring.first < ring.next &&
           (ring.next - ring.first == ring.max_lines || ring.n_bytes + n > ring.max_bytes))
        drop_oldest();
    if (ring.lines) {
        *at(ring.next++) = (kept){.line = copy, .n = n, .level = level};
        ring.n_bytes += n;
        copy = NULL;
    }
    pthread_mutex_unlock(&ring.lock);
    free(copy); /* closed: a thread may log until the process ends */
}

uint64_t log_ring_before(size_t n, log_level least)
{
    pthread_mutex_lock(&ring.lock);
    uint64_t number = ring.next;
    while (ring.lines && n > 0 && number > ring.first) n -= at(--number)->level >= least;
    pthread_mutex_unlock(&ring.lock);
    return number ? number - 1 : 0;
}

bool log_ring_next(uint64_t *number, log_level least, buf *out)
{
    bool found = false;
    pthread_mutex_lock(&ring.lock);
    uint64_t i = *number + 1 < ring.first ? ring.first : *number + 1;
    for (; ring.lines && i < ring.next && !found; i++) {
        found = at(i)->level >= least;
        if (found) buf_append(out, at(i)->line, at(i)->n);
        *number = i;
    }
    pthread_mutex_unlock(&ring.lock);
    return found;
}

uint64_t log_ring_missed(uint64_t number)
{
    pthread_mutex_lock(&ring.lock);
    uint64_t n = ring.lines && number + 1 < ring.first ? ring.first - number - 1 : 0;
    pthread_mutex_unlock(&ring.lock);
    return n;
}
