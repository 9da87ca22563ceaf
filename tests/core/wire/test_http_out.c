/* Requests to a server on loopback that answers exactly what each test wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "wire/http_out.h"
#include "wire/loop.h"

#define LINE "x: yyyy\r\n" /* a header, or 9 bytes of a body */

/* ---- the server --------------------------------------------------------------------------------------- */

/* One connection, one request, one answer; "" keeps the client waiting until it hangs up. */
typedef struct server {
    pthread_t thread;
    int fd, port;
    const char *answer;
    size_t n_more; /* times LINE that follow */
    char request[4096];
} server;

static void *server_main(void *arg)
{
    server *s = arg;
    int fd = accept(s->fd, NULL, NULL);
    size_t n = 0, n_answer = strlen(s->answer);
    char rest[64];
    while (!strstr(s->request, "\r\n\r\n") && n < sizeof s->request - 1) {
        ssize_t got = recv(fd, s->request + n, sizeof s->request - 1 - n, 0);
        if (got <= 0) break;
        n += (size_t)got;
    }
    if (n_answer) send(fd, s->answer, n_answer, MSG_NOSIGNAL);
    for (size_t i = 0; i < s->n_more; i++)
        if (send(fd, LINE, sizeof LINE - 1, MSG_NOSIGNAL) < 0) break;
    if (!n_answer)
        while (recv(fd, rest, sizeof rest, 0) > 0) {
        }
    close(fd);
    return NULL;
}

static void server_start(server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
    s->port = ntohs(a.sin_port);
    if (!s->answer) return; /* nobody listens */
    assert_int_equal(listen(s->fd, 4), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

static void server_stop(server *s)
{
    if (s->answer) pthread_join(s->thread, NULL);
    close(s->fd);
}

/* ---- the client --------------------------------------------------------------------------------------- */

typedef struct client {
    uv_loop_t loop;
    http_out *out;
    int n_done;
    http_out_fault fault;
    int status;
    char type[64], why[300];
    buf body, head;
    bool stop_at_data, close_at_end;
} client;

static int on_data(void *user, int status, const char *data, size_t n)
{
    client *c = user;
    assert_int_equal(status, 200);
    buf_append(&c->body, data, n);
    return c->stop_at_data;
}

static void on_head(void *user, const char *line, size_t n)
{
    buf_append(&((client *)user)->head, line, n);
}

static void on_done(void *user, const http_out_end *end)
{
    client *c = user;
    c->n_done++;
    c->fault = end->fault;
    c->status = end->status;
    snprintf(c->type, sizeof c->type, "%s", end->type);
    snprintf(c->why, sizeof c->why, "%s", end->why);
    if (!c->close_at_end) return;
    http_out_close(c->out);
    c->out = NULL;
}

static void client_start(client *c)
{
    assert_int_equal(loop_open(&c->loop, 64, NULL), 0);
    assert_int_equal(http_out_open(&c->out, &c->loop, &(http_out_options){0}, NULL), 0);
}

static void client_stop(client *c)
{
    http_out_close(c->out);
    uv_run(&c->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&c->loop), 0);
    buf_done(&c->body);
    buf_done(&c->head);
}

static http_out_call *start(client *c, const char *host, int port, http_out_request r)
{
    char url[128];
    snprintf(url, sizeof url, "http://%s:%d/a/../b?c=d", host, port);
    r.url = url;
    r.head = on_head;
    r.data = on_data;
    r.done = on_done;
    r.user = c;
    http_out_call *x = http_out_start(c->out, &r);
    assert_non_null(x);
    assert_int_equal(c->n_done, 0); /* never from inside */
    return x;
}

static void await(client *c)
{
    while (!c->n_done) uv_run(&c->loop, UV_RUN_ONCE);
    assert_int_equal(c->n_done, 1);
}

#define HELLO "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"

static void a_request_is_sent_as_it_was_given(void **state)
{
    server s = {.answer = HELLO};
    client c = {0};
    server_start(&s);
    client_start(&c);
    char headers[] = "x-a: b\r\nAccept: text/plain\r\n", body[] = "{}", method[] = "PATCH";
    start(&c, "localhost", s.port,
          (http_out_request){.method = method, .headers = headers, .body = body, .n_body = 2});
    memset(headers, '-', sizeof headers); /* all was copied */
    memset(body, '-', sizeof body);
    memset(method, '-', sizeof method);
    await(&c);
    server_stop(&s);
    assert_int_equal(c.fault, HTTP_OUT_OK);
    assert_int_equal(c.status, 200);
    assert_string_equal(c.type, "text/plain");
    assert_string_equal(c.why, "");
    assert_string_equal(c.body.data, "hello");
    assert_memory_equal(c.head.data, "HTTP/1.1 200 OK\r\nContent-Type", 29);
    assert_memory_equal(s.request, "PATCH /a/../b?c=d HTTP/1.1\r\nHost: localhost:", 44);
    assert_non_null(strstr(s.request, "\r\nx-a: b\r\nAccept: text/plain\r\n"));
    assert_non_null(strstr(s.request, "\r\nUser-Agent: shoal/"));
    client_stop(&c);
}

static bool admit_none(const struct sockaddr *a)
{
    assert_int_equal(a->sa_family, AF_INET);
    return false;
}

static void each_fault_has_its_name(void **state)
{
    static const struct {
        const char *answer; /* NULL: nobody listens */
        size_t n_more;
        http_out_request r;
        bool stop;
        http_out_fault fault;
        int status;
    } CASES[] = {
        {HELLO, 0, {0}, false, HTTP_OUT_OK, 200},
        {HELLO, 0, {.max_bytes = 5}, false, HTTP_OUT_OK, 200},
        {HELLO, 0, {.max_bytes = 4}, false, HTTP_OUT_BODY_TOO_LONG, 200},
        {"HTTP/1.1 200 OK\r\n\r\n", 1, {.max_bytes = 8}, false, HTTP_OUT_BODY_TOO_LONG, 200},
        {HELLO, 0, {0}, true, HTTP_OUT_STOPPED, 200},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 0, {0}, false, HTTP_OUT_CUT_OFF, 200},
        {"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", 0, {0}, false, HTTP_OUT_OK, 302},
        {"HTTP/1.1 200 OK\r\n", HTTP_OUT_HEAD_MAX / 9, {0}, false, HTTP_OUT_HEAD_TOO_LONG, 200},
        {NULL, 0, {0}, false, HTTP_OUT_NO_LISTENER, 0},
        {NULL, 0, {.admit = admit_none}, false, HTTP_OUT_NOT_ADMITTED, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        server s = {.answer = CASES[i].answer, .n_more = CASES[i].n_more};
        client c = {.stop_at_data = CASES[i].stop};
        server_start(&s);
        client_start(&c);
        start(&c, "127.0.0.1", s.port, CASES[i].r);
        await(&c);
        client_stop(&c); /* hangs up */
        server_stop(&s);
        if (c.fault != CASES[i].fault || c.status != CASES[i].status)
            fail_msg("case %zu: fault %d, status %d: %s", i, (int)c.fault, c.status, c.why);
        assert_int_equal(c.fault == HTTP_OUT_OK, c.why[0] == '\0');
    }
}

static void a_long_line_of_the_head_is_named(void **state)
{
    enum { N = 200000 };
    char *answer = malloc(N + 1);
    assert_non_null(answer);
    memset(answer, 'x', N);
    answer[N] = '\0';
    memcpy(answer, "HTTP/1.1 200 OK\r\nX-A: ", 22);
    server s = {.answer = answer};
    client c = {0};
    server_start(&s);
    client_start(&c);
    start(&c, "127.0.0.1", s.port, (http_out_request){0});
    await(&c);
    assert_int_equal(c.fault, HTTP_OUT_FAILED);
    assert_non_null(strstr(c.why, "a line of the answer's head is over 100 KiB"));
    client_stop(&c);
    server_stop(&s);
    free(answer);
}

static void a_silent_server_is_given_up(void **state)
{
    server s = {.answer = ""};
    client c = {0};
    server_start(&s);
    client_start(&c);
    start(&c, "127.0.0.1", s.port, (http_out_request){.until_ns = clock_ns() + 50 * 1000000u});
    await(&c);
    assert_int_equal(c.fault, HTTP_OUT_LATE);
    client_stop(&c);
    server_stop(&s);
}

static void other_urls_are_refused(void **state)
{
    static const char *const URLS[] = {"ftp://127.0.0.1/x", "http://", "http://[::1", "file:///etc/passwd"};
    for (size_t i = 0; i < sizeof URLS / sizeof *URLS; i++) {
        client c = {0};
        client_start(&c);
        assert_non_null(
            http_out_start(c.out, &(http_out_request){.url = URLS[i], .done = on_done, .user = &c}));
        await(&c);
        if (c.fault != HTTP_OUT_UNUSABLE) fail_msg("%s: fault %d: %s", URLS[i], (int)c.fault, c.why);
        client_stop(&c);
    }
}

static void a_cancelled_call_never_ends(void **state)
{
    static const char *const HOSTS[] = {"127.0.0.1", "localhost"}; /* connecting, looked up */
    for (size_t i = 0; i < 2; i++) {
        server s = {0};
        client c = {0};
        server_start(&s);
        client_start(&c);
        http_out_cancel(start(&c, HOSTS[i], s.port, (http_out_request){0}));
        start(&c, HOSTS[i], s.port, (http_out_request){0}); /* cancelled by the end */
        client_stop(&c);
        server_stop(&s);
        assert_int_equal(c.n_done, 0);
    }
}

static void it_may_be_closed_at_a_calls_end(void **state)
{
    server s = {.answer = HELLO};
    client c = {.close_at_end = true};
    server_start(&s);
    client_start(&c);
    start(&c, "127.0.0.1", s.port, (http_out_request){0});
    await(&c);
    server_stop(&s);
    assert_null(c.out);
    client_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_sent_as_it_was_given),
        cmocka_unit_test(each_fault_has_its_name),
        cmocka_unit_test(a_long_line_of_the_head_is_named),
        cmocka_unit_test(a_silent_server_is_given_up),
        cmocka_unit_test(other_urls_are_refused),
        cmocka_unit_test(a_cancelled_call_never_ends),
        cmocka_unit_test(it_may_be_closed_at_a_calls_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
