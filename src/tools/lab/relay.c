/* relay.c: one thread that moves packets between TUN devices. */
#define _GNU_SOURCE
#include "lab/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"

enum { BATCH = 64, HELD_BUCKETS = 64 };

typedef struct packet packet;
struct packet {
    packet *next;
    uint64_t due_ns;
    uint16_t n_bytes;
    unsigned char data[];
};

typedef struct link_state {
    lab_quality q;
    int n_cuts;
    uint64_t n_seen, free_ns, last_due_ns; /* free: when the line has sent what it was given */
    packet *first, **end;
    size_t n_waiting;
} link_state;

struct relay {
    pthread_t thread;
    pthread_mutex_t lock; /* of links and counts: callers of relay_set against the thread */
    int epoll, timer, wake;
    int *fds; /* [n]; -1: unplugged */
    size_t n;
    uint64_t seed;
    link_state *links; /* [n][n]: from, to */
    relay_flow *muted;
    size_t n_muted;
    relay_counts counts;
    uint64_t held[HELD_BUCKETS]; /* powers of sqrt 2 of 0.1 us */
};

static link_state *link_at(relay *r, size_t from, size_t to)
{
    return &r->links[from * r->n + to];
}

/* ---- one packet ---- */

/* The port that an IPv4 packet is for; n when it is for nobody here. */
static size_t receiver(const relay *r, const unsigned char *p, size_t n)
{
    if (n < 20 || p[0] >> 4 != 4 || p[16] != 10 || p[17] != 77 || p[18] != 0 || p[19] == 0) return r->n;
    return (size_t)(p[19] - 1) < r->n ? (size_t)(p[19] - 1) : r->n;
}

static uint32_t get32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The TCP connection of an IPv4 packet; false: it is none, or a fragment without its head. */
static bool flow_of(const unsigned char *p, size_t n, relay_flow *ret)
{
    size_t head = (size_t)(p[0] & 15) * 4;
    if (n < 20 || head < 20 || n < head + 4 || p[9] != IPPROTO_TCP || (p[6] & 0x1f) || p[7]) return false;
    *ret = (relay_flow){
        .address = {get32(p + 12), get32(p + 16)},
        .port = {(uint16_t)(p[head] << 8 | p[head + 1]), (uint16_t)(p[head + 2] << 8 | p[head + 3])}};
    return true;
}

static bool same_flow(const relay_flow *a, const relay_flow *b)
{
    for (int k = 0; k < 2; k++)
        if (a->address[0] == b->address[k] && a->port[0] == b->port[k] && a->address[1] == b->address[!k] &&
            a->port[1] == b->port[!k])
            return true;
    return false;
}

static bool is_muted(const relay *r, const unsigned char *p, size_t n)
{
    relay_flow f;
    if (r->n_muted == 0 || !flow_of(p, n, &f)) return false;
    for (size_t i = 0; i < r->n_muted; i++)
        if (same_flow(&r->muted[i], &f)) return true;
    return false;
}

static void deliver(relay *r, size_t to, const unsigned char *data, size_t n)
{
    if (write(r->fds[to], data, n) == (ssize_t)n)
        r->counts.n_passed++;
    else
        r->counts.n_full++; /* the device's queue: the node's kernel does not take it */
}

/* When a packet of n bytes that comes now leaves the link. */
static uint64_t due(link_state *l, uint64_t seed, size_t n, uint64_t now)
{
    uint64_t start = l->free_ns > now ? l->free_ns : now;
    if (l->q.rate_kbit > 0) start += (uint64_t)((double)n * 8e6 / l->q.rate_kbit);
    l->free_ns = start;
    double ms = l->q.delay_ms + l->q.jitter_ms * (2 * rng_uniform(seed + 1, l->n_seen) - 1);
    uint64_t at = start + (uint64_t)(fmax(ms, 0) * 1e6);
    if (at < l->last_due_ns) at = l->last_due_ns;
    return l->last_due_ns = at;
}

static void enqueue(relay *r, link_state *l, const unsigned char *data, size_t n, uint64_t at)
{
    packet *p = l->n_waiting < RELAY_QUEUE_MAX ? malloc(sizeof *p + n) : NULL;
    if (!p) {
        r->counts.n_full++;
        return;
    }
    *p = (packet){.due_ns = at, .n_bytes = (uint16_t)n};
    memcpy(p->data, data, n);
    if (!l->first) l->end = &l->first;
    *l->end = p;
    l->end = &p->next;
    l->n_waiting++;
}

/* True when it was delivered at once. */
static bool forward(relay *r, size_t from, const unsigned char *data, size_t n, uint64_t now)
{
    size_t to = receiver(r, data, n);
    if (to == r->n || to == from) return false;
    link_state *l = link_at(r, from, to);
    uint64_t seed = r->seed ^ rng_mix(from * 256 + to);
    l->n_seen++;
    if (l->n_cuts || r->fds[to] < 0 || is_muted(r, data, n)) {
        r->counts.n_cut++;
    } else if (l->q.loss > 0 && rng_uniform(seed, l->n_seen) < l->q.loss) {
        r->counts.n_lost++;
    } else {
        uint64_t at = due(l, seed, n, now);
        if (at <= now && !l->first) {
            deliver(r, to, data, n);
            return true;
        }
        enqueue(r, l, data, n, at);
    }
    return false;
}

/* ---- the thread ---- */

static void note_held(relay *r, uint64_t ns, size_t n)
{
    int b = ns < 100 ? 0 : (int)(2 * log2((double)ns / 100));
    r->held[b < HELD_BUCKETS ? b : HELD_BUCKETS - 1] += n;
}

static void relay_take(relay *r, size_t from)
{
    unsigned char data[RELAY_MTU + 64];
    pthread_mutex_lock(&r->lock);
    for (int i = 0; r->fds[from] >= 0 && i < BATCH; i++) {
        ssize_t n = read(r->fds[from], data, sizeof data);
        if (n <= 0) break;
        uint64_t now = clock_ns();
        if (forward(r, from, data, (size_t)n, now)) note_held(r, clock_ns() - now, 1);
    }
    pthread_mutex_unlock(&r->lock);
}

/* Deliver what is due on every link and set the timer for the next. */
static void relay_flush(relay *r)
{
    uint64_t now = clock_ns(), next = UINT64_MAX;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n * r->n; i++) {
        link_state *l = &r->links[i];
        while (l->first && l->first->due_ns <= now) {
            packet *p = l->first;
            if (l->n_cuts || r->fds[i % r->n] < 0 || is_muted(r, p->data, p->n_bytes))
                r->counts.n_cut++;
            else
                deliver(r, i % r->n, p->data, p->n_bytes);
            l->first = p->next;
            l->n_waiting--;
            free(p);
        }
        if (l->first && l->first->due_ns < next) next = l->first->due_ns;
    }
    pthread_mutex_unlock(&r->lock);
    struct itimerspec at = {0};
    if (next != UINT64_MAX)
        at.it_value = (struct timespec){(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
    timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static void *relay_main(void *arg)
{
    relay *r = arg;
    struct epoll_event ready[LAB_NODES_MAX + 3];
    struct sched_param first = {.sched_priority = 1}; /* before the workers, which fill the cores */
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
    for (;;) {
        int n = epoll_wait(r->epoll, ready, (int)(sizeof ready / sizeof *ready), -1);
        for (int i = 0; i < n; i++) {
            uint64_t drain, port = ready[i].data.u64;
            if (port == r->n && read(r->wake, &drain, sizeof drain) > 0) return NULL;
            if (port == r->n + 1 && read(r->timer, &drain, sizeof drain) < 0) continue;
            if (port < r->n) relay_take(r, (size_t)port);
        }
        relay_flush(r);
    }
}

/* ---- for everybody ---- */

static int relay_watch(relay *r, int fd, uint64_t port)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = port};
    return epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &e);
}

static int open_port(relay *r, size_t port)
{
    return fcntl(r->fds[port], F_SETFL, O_NONBLOCK) == 0 ? relay_watch(r, r->fds[port], port) : -1;
}

static int open_events(relay *r, shoal_err *err)
{
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ok = r->epoll >= 0 && r->timer >= 0 && r->wake >= 0 && relay_watch(r, r->wake, r->n) == 0 &&
              relay_watch(r, r->timer, r->n + 1) == 0;
    for (size_t i = 0; ok && i < r->n; i++) ok = open_port(r, i) == 0;
    return ok ? 0 : err_set(err, SHOAL_EIO, "the lab's links: %s", strerror(errno));
}

static void relay_free(relay *r)
{
    for (size_t i = 0; i < r->n * r->n; i++)
        for (packet *p = r->links[i].first, *next; p; p = next) {
            next = p->next;
            free(p);
        }
    if (r->epoll >= 0) close(r->epoll);
    if (r->timer >= 0) close(r->timer);
    if (r->wake >= 0) close(r->wake);
    pthread_mutex_destroy(&r->lock);
    free(r->links);
    free(r->muted);
    free(r->fds);
    free(r);
}

int relay_start(relay **ret, const int *fds, size_t n, uint64_t seed, shoal_err *err)
{
    relay *r = calloc(1, sizeof *r);
    link_state *links = calloc(n * n, sizeof *links);
    int *own = malloc((n + 1) * sizeof *own);
    if (!r || !links || !own) {
        free(own);
        free(links);
        free(r);
        return err_nomem(err);
    }
    memcpy(own, fds, n * sizeof *own);
    *r = (relay){.fds = own, .n = n, .seed = seed, .links = links, .epoll = -1, .timer = -1, .wake = -1};
    pthread_mutex_init(&r->lock, NULL);
    int rc = open_events(r, err);
    if (rc == 0 && pthread_create(&r->thread, NULL, relay_main, r) != 0)
        rc = err_set(err, SHOAL_ENOMEM, "the lab's links: no thread for them");
    if (rc == 0)
        *ret = r;
    else
        relay_free(r);
    return rc;
}

void relay_stop(relay *r)
{
    if (!r) return;
    uint64_t one = 1;
    while (write(r->wake, &one, sizeof one) < 0 && errno == EINTR) {
    }
    pthread_join(r->thread, NULL);
    relay_free(r);
}

void relay_set(relay *r, size_t from, size_t to, const lab_quality *q)
{
    pthread_mutex_lock(&r->lock);
    link_at(r, from, to)->q = *q;
    pthread_mutex_unlock(&r->lock);
}

void relay_cut(relay *r, size_t from, size_t to, bool cut)
{
    pthread_mutex_lock(&r->lock);
    link_at(r, from, to)->n_cuts += cut ? 1 : -1;
    pthread_mutex_unlock(&r->lock);
}

int relay_plug(relay *r, size_t port, int fd, shoal_err *err)
{
    pthread_mutex_lock(&r->lock);
    int before = r->fds[port], rc = 0;
    r->fds[port] = fd;
    if (fd >= 0 && open_port(r, port) != 0) {
        rc = err_set(err, SHOAL_EIO, "the lab's links: %s", strerror(errno));
        r->fds[port] = before;
    } else if (before >= 0) {
        epoll_ctl(r->epoll, EPOLL_CTL_DEL, before, NULL);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

static void unmute(relay *r, const relay_flow *f)
{
    for (size_t i = r->n_muted; i-- > 0;)
        if (same_flow(&r->muted[i], f)) r->muted[i] = r->muted[--r->n_muted];
}

int relay_mute(relay *r, const relay_flow *flows, size_t n, bool mute, shoal_err *err)
{
    int rc = 0;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; !mute && i < n; i++) unmute(r, &flows[i]);
    relay_flow *more = mute && n ? realloc(r->muted, (r->n_muted + n) * sizeof *more) : NULL;
    if (more) {
        r->muted = more;
        memcpy(r->muted + r->n_muted, flows, n * sizeof *flows);
        r->n_muted += n;
    } else if (mute && n) {
        rc = err_nomem(err);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

/* The upper end of the bucket in which the share q of all held packets is reached. */
static double held_quantile(const relay *r, double q)
{
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < HELD_BUCKETS; i++) all += r->held[i];
    for (int i = 0; i < HELD_BUCKETS && all; i++)
        if ((double)(seen += r->held[i]) >= q * (double)all) return 0.1 * exp2((i + 1) / 2.0);
    return 0;
}

relay_counts relay_read(relay *r)
{
    pthread_mutex_lock(&r->lock);
    relay_counts c = r->counts;
    c.held_us_p50 = held_quantile(r, 0.50);
    c.held_us_p99 = held_quantile(r, 0.99);
    pthread_mutex_unlock(&r->lock);
    return c;
}
