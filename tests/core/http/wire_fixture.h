/* wire_fixture.h: a server on its own thread, and blocking clients to poke it with.
 *
 *     fixture f;
 *     fixture_start(&f, NULL, NULL);
 *     char *answer = fixture_exchange(&f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
 *     fixture_stop(&f);
 *
 * Paths of the handler: /hello, /echo (the body back), /slow (answers after 30 ms), /late (after
 * 150 ms), /await (answers at uv_async_send of `answer`, or after a drain), /wait (never answers), /stream
 * (three pieces), /hold (begins an answer and never ends it), /rest (begins one and ends it as /await does),
 * /rest-end (the same without a piece before the end), /flood (half a MiB always waits, as long as the client
 * is there), /big (200 000 bytes), /spin (keeps the loop busy for 200 us), /work (the bytes of work of the
 * largest turn of the loop since the last /work), anything else: method, path, query and Host, one a line. */
#ifndef TESTS_WIRE_FIXTURE_H
#define TESTS_WIRE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop_work.h"
#include "http/http.h"

typedef struct fixture {
    uv_loop_t loop;
    uv_async_t stop, drain, answer;
    pthread_t thread;
    http_server *server;
    http_request *awaiting;      /* of /await; the loop's */
    http_request *resting;       /* of /rest */
    bool rests_to_the_end;       /* it is of /rest-end */
    const char *address;         /* NULL: 127.0.0.1:0 */
    const http_handler *handler; /* NULL: the one above; its user becomes the fixture */
    int port;
    atomic_int n_requests, n_gone, n_drained, n_closed;
    atomic_size_t n_conns;
} fixture;

typedef struct later {
    uv_timer_t timer;
    http_request *r;
    fixture *f;
} later;

static inline void later_freed(uv_handle_t *h)
{
    free(h->data);
}

static inline void later_answer(uv_timer_t *t)
{
    later *l = t->data;
    if (l->r) http_respond(l->r, 200, NULL, 0, "slow\n", 5);
    uv_close((uv_handle_t *)t, later_freed);
}

/* It stays below the default max_write_backlog, for a client that is late. */
static inline void flood(uv_timer_t *t)
{
    later *l = t->data;
    static const char piece[16384];
    if (!l->r)
        uv_close((uv_handle_t *)t, later_freed);
    else if (http_unsent(l->r) < 512 << 10)
        http_respond_write(l->r, piece, sizeof piece);
}

static inline void start_later(fixture *f, http_request *r, uv_timer_cb fn, uint64_t first_ms,
                               uint64_t every_ms)
{
    later *l = calloc(1, sizeof *l);
    l->r = r;
    l->f = f;
    uv_timer_init(&f->loop, &l->timer);
    l->timer.data = l;
    http_set_data(r, l);
    uv_timer_start(&l->timer, fn, first_ms, every_ms);
}

static inline void answer_stream(http_request *r)
{
    http_header h = {"content-type", "text/plain"}, trailer = {"x-sum", "42"};
    http_respond_begin(r, 200, &h, 1);
    http_respond_write(r, "one ", 4);
    http_respond_write(r, "two ", 4);
    http_respond_write(r, "three", 5);
    http_respond_end(r, &trailer, 1);
}

static inline void answer_work(http_request *r)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%llu\n", (unsigned long long)loop_work_get()->max_bytes);
    loop_work_reset();
    http_respond(r, 200, NULL, 0, text, (size_t)n);
}

static inline void fixture_request(void *user, http_request *r)
{
    fixture *f = user;
    size_t n;
    const char *body = http_body(r, &n), *path = http_path(r), *host = http_header_get(r, "host");
    static const char big[200000];
    atomic_fetch_add(&f->n_requests, 1);
    if (strcmp(path, "/hello") == 0) {
        http_respond(r, 200, NULL, 0, "hello\n", 6);
    } else if (strcmp(path, "/echo") == 0) {
        http_respond(r, 200, NULL, 0, body, n);
    } else if (strcmp(path, "/slow") == 0) {
        start_later(f, r, later_answer, 30, 0);
    } else if (strcmp(path, "/late") == 0) {
        start_later(f, r, later_answer, 150, 0);
    } else if (strcmp(path, "/await") == 0) {
        f->awaiting = r;
    } else if (strcmp(path, "/wait") == 0) {
        return; /* on_gone is the only way out */
    } else if (strcmp(path, "/stream") == 0) {
        answer_stream(r);
    } else if (strcmp(path, "/hold") == 0) {
        http_respond_begin(r, 200, NULL, 0);
        http_respond_write(r, "held", 4);
    } else if (strncmp(path, "/rest", 5) == 0) {
        http_respond_begin(r, 200, NULL, 0);
        http_respond_write(r, "one ", 4);
        f->resting = r;
        f->rests_to_the_end = strcmp(path, "/rest-end") == 0;
    } else if (strcmp(path, "/flood") == 0) {
        http_respond_begin(r, 200, NULL, 0);
        start_later(f, r, flood, 0, 1);
    } else if (strcmp(path, "/big") == 0) {
        http_respond(r, 200, NULL, 0, big, sizeof big);
    } else if (strcmp(path, "/work") == 0) {
        answer_work(r);
    } else if (strcmp(path, "/spin") == 0) {
        for (uint64_t end = uv_hrtime() + 200000; uv_hrtime() < end;) continue;
        http_respond(r, 200, NULL, 0, NULL, 0);
    } else {
        buf b = {0};
        buf_printf(&b, "%s\n%s\n%s\n%s\n", http_method(r), path, http_query(r), host ? host : "-");
        http_respond(r, 200, NULL, 0, b.data, b.len);
        buf_done(&b);
    }
}

static inline void fixture_gone(void *user, http_request *r)
{
    fixture *f = user;
    later *l = http_data(r);
    if (l) l->r = NULL;
    if (f->awaiting == r) f->awaiting = NULL;
    if (f->resting == r) f->resting = NULL;
    atomic_fetch_add(&f->n_gone, 1);
}

static inline void fixture_closed(void *user)
{
    fixture *f = user;
    atomic_fetch_add(&f->n_closed, 1);
}

static inline void fixture_drained(void *user)
{
    fixture *f = user;
    atomic_fetch_add(&f->n_drained, 1);
}

static inline void fixture_on_stop(uv_async_t *a)
{
    fixture *f = a->data;
    http_server_close(f->server, fixture_closed, f);
    uv_close((uv_handle_t *)&f->stop, NULL);
    uv_close((uv_handle_t *)&f->drain, NULL);
    uv_close((uv_handle_t *)&f->answer, NULL);
}

static inline void fixture_on_answer(uv_async_t *a)
{
    fixture *f = a->data;
    if (f->awaiting) http_respond(f->awaiting, 200, NULL, 0, "slow\n", 5);
    if (f->resting) {
        if (!f->rests_to_the_end) http_respond_write(f->resting, "two", 3);
        http_respond_end(f->resting, NULL, 0);
    }
    f->awaiting = f->resting = NULL;
}

static inline void fixture_on_drain(uv_async_t *a)
{
    fixture *f = a->data;
    http_server_drain(f->server, fixture_drained, f);
    fixture_on_answer(a);
}

static inline void *fixture_thread(void *arg)
{
    fixture *f = arg;
    uv_run(&f->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* f->address and f->handler may be set before; everything else is filled in. */
static inline void fixture_start(fixture *f, const http_limits *limits, const http_tls *tls)
{
    const char *address = f->address;
    const http_handler *own = f->handler;
    shoal_err err = {0};
    memset(f, 0, sizeof *f);
    f->address = address;
    f->handler = own;
    http_handler h = {.on_request = fixture_request, .on_gone = fixture_gone};
    if (own) h = *own;
    h.user = f;
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(http_server_new(&f->server, &f->loop, &h, limits, &err), 0);
    if (http_server_listen(f->server, address ? address : "127.0.0.1:0", tls, &err) != 0)
        fail_msg("%s", err.message);
    f->port = http_server_port(f->server);
    uv_async_init(&f->loop, &f->stop, fixture_on_stop);
    uv_async_init(&f->loop, &f->drain, fixture_on_drain);
    uv_async_init(&f->loop, &f->answer, fixture_on_answer);
    f->stop.data = f->drain.data = f->answer.data = f;
    assert_int_equal(pthread_create(&f->thread, NULL, fixture_thread, f), 0);
}

static inline void fixture_stop(fixture *f)
{
    uv_async_send(&f->stop);
    pthread_join(f->thread, NULL);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    assert_int_equal(atomic_load(&f->n_closed), 1);
}

/* receive_bytes 0: as much as the system takes in for a client that does not read. */
static inline int fixture_connect_with(const fixture *f, int receive_bytes)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f->port)};
    struct timeval limit = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (receive_bytes) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    return fd;
}

static inline int fixture_connect(const fixture *f)
{
    return fixture_connect_with(f, 0);
}

static inline void send_bytes(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0) return; /* the server may have hung up on purpose */
        bytes += sent;
        n -= (size_t)sent;
    }
}

static inline void send_text(int fd, const char *text)
{
    send_bytes(fd, text, strlen(text));
}

/* All until the server closes, NUL-terminated; free() it. */
static inline char *read_all(int fd, size_t *ret_n)
{
    buf b = {0};
    char chunk[4096];
    ssize_t n;
    buf_reserve(&b, 1);
    while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0) buf_append(&b, chunk, (size_t)n);
    if (ret_n) *ret_n = b.len;
    return buf_take(&b);
}

/* Read until `needle` has been seen or the server closes. */
static inline char *read_until(int fd, const char *needle)
{
    buf b = {0};
    char chunk[4096];
    ssize_t n;
    buf_reserve(&b, 1);
    while (!strstr(b.data, needle) && (n = recv(fd, chunk, sizeof chunk, 0)) > 0)
        buf_append(&b, chunk, (size_t)n);
    return buf_take(&b);
}

/* Send, shut the writing side, read until the server closes. */
static inline char *fixture_exchange_n(const fixture *f, const char *bytes, size_t n)
{
    int fd = fixture_connect(f);
    send_bytes(fd, bytes, n);
    shutdown(fd, SHUT_WR);
    char *answer = read_all(fd, NULL);
    close(fd);
    return answer;
}

static inline char *fixture_exchange(const fixture *f, const char *text)
{
    return fixture_exchange_n(f, text, strlen(text));
}

/* Bytes of work (base/loop_work.h) of the server's largest turn since the last call. */
static inline size_t fixture_largest_turn(const fixture *f)
{
    char *answer = fixture_exchange(f, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
    const char *body = strstr(answer, "\r\n\r\n");
    assert_non_null(body);
    size_t n = (size_t)strtoull(body, NULL, 10);
    free(answer);
    return n;
}

/* Poll for something that another thread will make true; gives up after ten seconds. */
static inline bool wait_for(atomic_int *counter, int at_least)
{
    for (int i = 0; i < 10000 && atomic_load(counter) < at_least; i++) usleep(1000);
    return atomic_load(counter) >= at_least;
}

/* Wait until a counter has stood still for a fifth of a second, and say where. */
static inline int settled(atomic_int *counter)
{
    int seen = -1;
    for (int same = 0; same < 200; usleep(1000)) {
        int now = atomic_load(counter);
        same = now == seen ? same + 1 : 0;
        seen = now;
    }
    return seen;
}

static inline int count_of(const char *haystack, const char *needle)
{
    int n = 0;
    for (const char *p = haystack; (p = strstr(p, needle)); p += strlen(needle)) n++;
    return n;
}

#endif
