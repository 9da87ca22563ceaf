/* The measuring client against a server that says exactly what each test wants it to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/stream_client.h"
#include "command/cli_loads.h"
#include "load/load_arrivals.h"
#include "load/load_client.h"
#include "load/load_cpu.h"

/* One connection; after each request (its body has no blank line) the next answer; then it hangs up. */
typedef struct server {
    pthread_t thread;
    int fd, port;
    const char *answers[4];
    char first_request[2048];
    unsigned pause_us; /* in front of each answer */
} server;

static void *server_main(void *arg)
{
    server *s = arg;
    int fd = accept(s->fd, NULL, NULL);
    char in[2048];
    for (int i = 0; s->answers[i]; i++) {
        size_t n = 0;
        in[0] = '\0';
        while (!strstr(in, "\r\n\r\n") && n < sizeof in - 1) {
            ssize_t got = recv(fd, in + n, sizeof in - 1 - n, 0);
            if (got <= 0) break;
            n += (size_t)got;
            in[n] = '\0';
        }
        if (i == 0) memcpy(s->first_request, in, sizeof in);
        usleep(s->pause_us);
        /* In two pieces, so that the client meets a cut in the middle. */
        size_t len = strlen(s->answers[i]);
        send(fd, s->answers[i], len / 2, MSG_NOSIGNAL);
        usleep(1000);
        send(fd, s->answers[i] + len / 2, len - len / 2, MSG_NOSIGNAL);
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
    assert_int_equal(listen(s->fd, 4), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

static void server_stop(server *s)
{
    pthread_join(s->thread, NULL);
    close(s->fd);
}

static int ask(const char *answer, int *status, buf *body, shoal_err *err)
{
    server s = {.answers = {answer}};
    server_start(&s);
    int rc = http_client_once(&(http_where){.host = "127.0.0.1", .port = s.port},
                              &(http_ask){.method = "GET", .path = "/x"}, status, body, err);
    server_stop(&s);
    return rc;
}

static void urls_are_taken_apart(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        ":",
                                        "ftp://127.0.0.1:80",
                                        "a:b",
                                        "http://:80",
                                        "unix:",
                                        "http://a:0",
                                        "http://a:70000",
                                        "http://a:80x",
                                        "http://a:",
                                        "a:",
                                        "http://[]:80",
                                        "[::1",
                                        "::1",
                                        "not there",
                                        "[::1]80"};
    static const struct {
        const char *text, *host;
        int port;
    } right[] = {{"127.0.0.1", "127.0.0.1", 8080}, {"box:9000", "box", 9000},
                 {":9000", "127.0.0.1", 9000},     {"[::1]", "::1", 8080},
                 {"http://box", "box", 80},        {"HTTP://box:81/v1", "box", 81}};
    http_where w;
    assert_int_equal(http_where_parse(&w, "http://127.0.0.1:8080", NULL), 0);
    assert_string_equal(w.host, "127.0.0.1");
    assert_int_equal(w.port, 8080);
    assert_int_equal(http_where_parse(&w, "http://localhost:1/v1", NULL), 0);
    assert_string_equal(w.host, "localhost");
    assert_int_equal(http_where_parse(&w, "http://[::1]:81/", NULL), 0);
    assert_string_equal(w.host, "::1");
    assert_int_equal(w.port, 81);
    assert_int_equal(http_where_parse(&w, "unix:/run/shoal.sock", NULL), 0);
    assert_string_equal(w.host, "/run/shoal.sock");
    assert_int_equal(w.port, 0);
    assert_int_equal(http_where_parse(&w, "HTTPS://shoal.lan/v1", NULL), 0);
    assert_true(w.tls && w.port == 443 && strcmp(w.host, "shoal.lan") == 0);
    assert_int_equal(http_where_parse(&w, "http://shoal.lan", NULL), 0);
    assert_true(!w.tls && w.port == 80);
    assert_int_equal(http_where_parse(&w, "https:shoal.lan", NULL), SHOAL_EINVALID);
    char longer[200] = "unix:";
    memset(longer + 5, 'a', 150);
    assert_int_equal(http_where_parse(&w, longer, NULL), SHOAL_EINVALID);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(http_where_parse(&w, right[i].text, NULL), 0);
        assert_string_equal(w.host, right[i].host);
        assert_int_equal(w.port, right[i].port);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (http_where_parse(&w, wrong[i], NULL) != SHOAL_EINVALID) fail_msg("\"%s\" is taken", wrong[i]);
}

static void answers_of_known_length_are_read(void **state)
{
    (void)state;
    buf body = {0};
    int status = 0;
    shoal_err err = {0};
    assert_int_equal(ask("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello", &status, &body, &err),
                     0);
    assert_int_equal(status, 404);
    assert_string_equal(body.data, "hello");
    buf_done(&body);
}

static void chunks_are_joined(void **state)
{
    (void)state;
    buf body = {0};
    int status = 0;
    shoal_err err = {0};
    assert_int_equal(
        ask("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", &status,
            &body, &err),
        0);
    assert_string_equal(body.data, "hello");
    buf_done(&body);
}

static void broken_answers_are_errors(void **state)
{
    (void)state;
    static const char *const broken[] = {"", "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhel",
                                         "SSH-2.0-x\r\n\r\n",
                                         "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        buf body = {0};
        int status = 77;
        shoal_err err = {0};
        if (ask(broken[i], &status, &body, &err) == 0) fail_msg("answer %zu passes", i);
        assert_true(strlen(err.message) > 0);
        assert_int_equal(status, 77);
        buf_done(&body);
    }
}

static void nobody_there_is_an_error(void **state)
{
    (void)state;
    int status;
    buf body = {0};
    shoal_err err = {0};
    assert_int_equal(http_client_once(&(http_where){.host = "127.0.0.1", .port = 1},
                                      &(http_ask){.method = "GET", .path = "/"}, &status, &body, &err),
                     SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(err.message, "127.0.0.1:1"));
}

static void a_connection_is_kept_and_opened_again_after_it_broke(void **state)
{
    (void)state;
    server s = {.answers = {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none",
                            "HTTP/1.1 503 Busy\r\ncontent-length: 3\r\n\r\ntwo"}};
    server_start(&s);
    http_client c;
    http_client_init(&c, &(http_where){.host = "127.0.0.1", .port = s.port});
    http_ask r = {.path = "/p", .body = "{}"};
    shoal_err err = {0};
    assert_int_equal(http_client_exchange(&c, &r, &err), 0);
    assert_int_equal(http_client_exchange(&c, &r, &err), 0);
    assert_int_equal(c.status, 503);
    assert_string_equal(c.body.data, "two");
    pthread_join(s.thread, NULL);
    assert_int_not_equal(http_client_exchange(&c, &r, &err), 0); /* the server has hung up */
    s.answers[1] = NULL;
    assert_int_equal(pthread_create(&s.thread, NULL, server_main, &s), 0);
    assert_int_equal(http_client_exchange(&c, &r, &err), 0);
    assert_string_equal(c.body.data, "one");
    assert_non_null(strstr(s.first_request, "POST /p HTTP/1.1\r\n"));
    server_stop(&s);
    http_client_done(&c);
}

static void a_kept_connection_that_ended_unheard_may_be_replaced(void **state)
{
    (void)state;
    server s = {.answers = {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none"}};
    server_start(&s);
    http_client c;
    http_client_init(&c, &(http_where){.host = "127.0.0.1", .port = s.port});
    c.again = true;
    http_ask r = {.path = "/p", .body = "{}"};
    shoal_err err = {0};
    assert_int_equal(http_client_exchange(&c, &r, &err), 0);
    pthread_join(s.thread, NULL); /* it has hung up */
    s.answers[0] = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntwo";
    assert_int_equal(pthread_create(&s.thread, NULL, server_main, &s), 0);
    assert_int_equal(http_client_exchange(&c, &r, &err), 0);
    assert_string_equal(c.body.data, "two");
    pthread_join(s.thread, NULL);
    s.answers[0] =
        "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhel"; /* that begins is not asked for again */
    assert_int_equal(pthread_create(&s.thread, NULL, server_main, &s), 0);
    assert_int_equal(http_client_exchange(&c, &r, &err), SHOAL_EIO);
    server_stop(&s);
    http_client_done(&c);
}

static void consume(void *user, size_t n_bytes)
{
    buf *body = user;
    assert_true(n_bytes <= body->len);
    buf_consume(body, body->len);
}

static int ask_within(const char *answer, size_t most_bytes, bool consumes, shoal_err *err)
{
    http_client c;
    server s = {.answers = {answer}};
    server_start(&s);
    http_client_init(&c, &(http_where){.host = "127.0.0.1", .port = s.port});
    c.most_bytes = most_bytes;
    if (consumes) c.piece = consume, c.piece_user = &c.body;
    int rc = http_client_exchange(&c, &(http_ask){.path = "/x"}, err);
    http_client_done(&c);
    server_stop(&s);
    return rc;
}

/* What has no length ends with the connection, as of servers of HTTP/1.0. */
static void an_answer_may_end_with_its_connection(void **state)
{
    (void)state;
    static const char *const answers[] = {"HTTP/1.0 200 OK\r\n\r\nabcdefgh",
                                          "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabcdefgh",
                                          "HTTP/1.0 200 OK\r\ncontent-length: 8\r\n\r\nabcdefgh"};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        shoal_err err = {0};
        buf body = {0};
        int status = 0;
        assert_int_equal(ask(answers[i], &status, &body, &err), 0);
        assert_int_equal(status, 200);
        assert_string_equal(buf_text(&body), "abcdefgh");
        buf_done(&body);
    }
    shoal_err err = {0};
    int status = 0;
    buf body = {0};
    assert_int_equal(ask("HTTP/1.1 200 OK\r\n\r\n", &status, &body, &err), 0); /* kept, and empty */
    assert_int_equal(body.len, 0);
    assert_int_equal(ask("HTTP/1.0 200 OK\r\ncontent-length: 9\r\n\r\nabcdefgh", &status, &body, &err),
                     SHOAL_EIO);
    buf_done(&body);
}

static void an_answer_without_measure_is_refused(void **state)
{
    static const char chunks[] =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n5\r\nfghij\r\n"
        "0\r\n\r\n";
    shoal_err err = {0};
    (void)state;
    assert_int_equal(ask_within(chunks, 10, false, &err), 0);
    assert_int_equal(ask_within(chunks, 9, false, &err), SHOAL_ELIMIT);
    assert_int_equal(ask_within(chunks, 9, true, &err), 0);
    assert_int_equal(ask_within(chunks, 4, true, &err), SHOAL_ELIMIT);
    assert_int_equal(
        ask_within("HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\na", 0, false, &err),
        SHOAL_ELIMIT);
    assert_int_equal(ask_within("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\na",
                                0, false, &err),
                     SHOAL_ELIMIT);
    buf head = {0};
    buf_puts(&head, "HTTP/1.1 200 OK\r\n");
    while (head.len < 1 << 20) buf_puts(&head, "x-more: and more and more and more\r\n");
    buf_puts(&head, "content-length: 0\r\n\r\n");
    assert_false(head.failed);
    assert_int_equal(ask_within(head.data, 0, false, &err), SHOAL_EPROTOCOL);
    buf_done(&head);
}

/* What is told of a loading is longer than what is kept of it. */
static void progress_may_be_told_for_ever(void **state)
{
    static const char line[] = "{\"status\":\"loading\",\"model\":\"m\"}\n";
    buf text = {0};
    json_t *last = NULL;
    shoal_err err = {0};
    (void)state;
    buf_puts(&text, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    while (text.len < 3 << 20) buf_printf(&text, "%zx\r\n%s\r\n", sizeof line - 1, line);
    buf_puts(&text, "10\r\n{\"status\":\"end\"}\r\n0\r\n\r\n");
    assert_false(text.failed);
    server s = {.answers = {text.data}};
    server_start(&s);
    const cli_loads_ask ask = {.path = "/v1/models/load", .what = "m", .quiet = true};
    assert_int_equal(cli_loads_send(&(http_where){.host = "127.0.0.1", .port = s.port}, &ask, &last, &err),
                     0);
    assert_string_equal(json_string_value(json_object_get(last, "status")), "end");
    json_decref(last);
    server_stop(&s);
    buf_done(&text);
}

static void make(void *user, size_t i, buf *scratch, http_ask *ret)
{
    (void)user;
    buf_printf(scratch, "/%zu", i);
    *ret = (http_ask){.method = "GET", .path = scratch->data, .headers = "x-a: b\r\n"};
}

/* ---- streams that break and go on ---------------------------------------------------------------- */

#define SSE(length, events) "HTTP/1.1 200 OK\r\ncontent-length: " #length "\r\n\r\n" events

static void make_stream(void *user, size_t i, buf *scratch, http_ask *ret)
{
    (void)user, (void)i, (void)scratch;
    *ret = (http_ask){.path = "/s", .body = "{}", .headers = "x-a: b\r\n"};
}

static void a_stream_goes_on_behind_the_last_whole_event(void **state)
{
    (void)state;
    /* "id: 2" has come, but not all of its event: it is asked for again. */
    server s = {.answers = {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                            "11\r\nid: 1\ndata: one\n\n\r\nb\r\nid: 2\ndata:\r\n"}};
    server more = {.answers = {SSE(31, "id: 2\ndata: two\n\ndata: [DONE]\n\n")}};
    server_start(&s);
    server_start(&more);
    stream_client all = {0};
    http_client c[2];
    char why[200];
    http_ask r = {.path = "/s", .body = "{}", .headers = "x-a: b\r\n"};
    http_client_init(&c[0], &(http_where){.host = "127.0.0.1", .port = s.port});
    http_client_init(&c[1], &(http_where){.host = "127.0.0.1", .port = more.port});
    assert_int_equal(stream_client_ask(&all, &c[0], &r, why, sizeof why), STREAM_BROKEN);
    assert_non_null(strstr(why, "closed the connection"));
    assert_null(strstr(s.first_request, "last-event-id"));
    assert_int_equal(stream_client_ask(&all, &c[1], &r, why, sizeof why), STREAM_WHOLE);
    server_stop(&s);
    server_stop(&more);
    assert_string_equal(all.events.data, "id: 1\ndata: one\n\nid: 2\ndata: two\n\ndata: [DONE]\n\n");
    assert_non_null(strstr(more.first_request, "x-a: b\r\nlast-event-id: 1\r\n"));
    assert_int_equal(all.n_resumed, 1);
    http_client_done(&c[0]);
    http_client_done(&c[1]);
    stream_client_done(&all);
}

static stream_try take(stream_client *s, int status, const char *body)
{
    char why[200];
    return stream_client_take(s, status, body, strlen(body), why, sizeof why);
}

static void a_stream_that_says_no_ids_begins_anew(void **state)
{
    (void)state;
    stream_client s = {0};
    assert_int_equal(take(&s, 200, "id: 1\ndata: a\n\ndata: b\n\n"), STREAM_BROKEN);
    assert_string_equal(s.id, ""); /* going on behind 1 would bring b twice */
    assert_int_equal(take(&s, 200, "id: 1\ndata: a\n\n: still there\n\n"), STREAM_BROKEN);
    assert_string_equal(s.id, "1");
    char longer[STREAM_CLIENT_ID_MAX + 40] = "id: ";
    memset(longer + 4, 'x', STREAM_CLIENT_ID_MAX + 1);
    strcat(longer, "\ndata: c\n\n");
    assert_int_equal(take(&s, 200, longer), STREAM_BROKEN);
    assert_string_equal(s.id, "");
    stream_client_done(&s);
}

static void a_stream_ends_where_nobody_goes_on(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body;
        stream_try want;
    } cases[] = {
        {0, "", STREAM_BROKEN},
        {503, "{\"error\":{\"code\":\"worker_unavailable\",\"message\":\"m\"}}", STREAM_BROKEN},
        {409, "{\"error\":{\"code\":\"less_room\",\"message\":\"m\"}}", STREAM_BROKEN},
        {409, "{\"error\":{\"code\":\"other_request\",\"message\":\"m\"}}", STREAM_REFUSED},
        {409, "{\"error\":{\"code\":\"model_replaced\",\"message\":\"m\"}}", STREAM_REFUSED},
        {400, "{\"error\":{\"code\":null,\"message\":\"m\"}}", STREAM_REFUSED},
        {200, "data: {\"error\":{\"code\":\"stream_differs\",\"message\":\"m\"}}\n\n", STREAM_REFUSED},
        {200, "data: {\"error\":{\"code\":\"draining\",\"message\":\"m\"}}\n\n", STREAM_BROKEN},
        {200, "", STREAM_BROKEN},
        {200, "data: [DONE]\n", STREAM_BROKEN},
        {200, "data: [DONE]\n\n", STREAM_WHOLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stream_client s = {.id = "1"};
        if (take(&s, cases[i].status, cases[i].body) != cases[i].want) fail_msg("case %zu", i);
        assert_null(s.events.len ? strstr(s.events.data, "error") : NULL);
        assert_string_equal(s.id, "1");
        stream_client_done(&s);
    }
}

static void a_run_comes_back_to_streams_that_break(void **state)
{
    (void)state;
    server s = {
        .answers = {SSE(15, "id: 1\ndata: a\n\n"),
                    SSE(80, "id: 2\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":2,\"x\":1}}"
                            "\n\ndata: [DONE]\n\n")}};
    server_start(&s);
    load_result r;
    shoal_err err = {0};
    load_plan p = {.where = {"127.0.0.1", s.port},
                   .schedule = {.n_clients = 1, .n_requests = 1},
                   .make = make_stream,
                   .back_ms = 60000};
    assert_int_equal(load_run(&p, &r, &err), 0);
    server_stop(&s);
    assert_int_equal(r.n_ok, 1);
    assert_int_equal(r.n_resumed, 1);
    assert_int_equal(r.n_tokens, 2);
}

static void a_run_counts_what_fails(void **state)
{
    (void)state;
    server s = {.answers = {"HTTP/1.1 200 OK\r\ncontent-length: 61\r\n\r\n"
                            "data: {\"usage\":{\"completion_tokens\":2,\"x\":1}}\n\ndata: [DONE]\n\n",
                            "HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\ndata: {\"error\"",
                            "HTTP/1.1 429 Too Many\r\ncontent-length: 2\r\n\r\nno"}};
    server_start(&s);
    load_result r;
    shoal_err err = {0};
    load_plan p = {
        .where = {"127.0.0.1", s.port}, .schedule = {.n_clients = 1, .n_requests = 3}, .make = make};
    assert_int_equal(load_run(&p, &r, &err), 0);
    server_stop(&s);
    assert_non_null(strstr(s.first_request, "GET /0 HTTP/1.1\r\n"));
    assert_non_null(strstr(s.first_request, "\r\nx-a: b\r\n"));
    assert_int_equal(r.n_ok, 1);
    assert_int_equal(r.n_failed, 2);
    assert_int_equal(r.n_tokens, 2);
    assert_non_null(strstr(r.first_failure, "error"));
    assert_true(r.p50_ms > 0 && r.p50_ms == r.max_ms);
}

/* The answer comes after the time, so that no second request is sent: none failed, and one counts. */
static void a_run_ends_with_its_time(void **state)
{
    (void)state;
    server s = {.answers = {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"}, .pause_us = 100000};
    server_start(&s);
    load_result r;
    shoal_err err = {0};
    load_plan p = {.where = {"127.0.0.1", s.port},
                   .schedule = {.n_clients = 1, .n_requests = 1000, .seconds = 0.05},
                   .make = make};
    assert_int_equal(load_run(&p, &r, &err), 0);
    server_stop(&s);
    assert_int_equal(r.n_ok, 1);
    assert_int_equal(r.n_failed, 0);
    assert_true(r.p50_ms >= 100 && r.p50_ms == r.p99_ms && r.p50_ms == r.max_ms);
}

/* Of a stream the events that bring text are what a reader sees; one that never ends is no answer. */
static void a_run_times_texts(void **state)
{
    (void)state;
    server s = {.answers = {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                            "33\r\ndata: {\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}\n\n\r\n"
                            "1d\r\ndata: {\"content\":\"a \\\"b\\\"\"}\n\n\r\n"
                            "17\r\ndata: {\"text\":\"\\\"c\\\"\"}\n\r\n"
                            "1\r\n\n\r\n"
                            "2b\r\nid: 7\ndata: {\"content\":\"d\"}\n\ndata: [DONE]\n\n\r\n"
                            "0\r\n\r\n",
                            "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\ndata: {\"text\":\"x\"}\n\n"}};
    server_start(&s);
    load_result r;
    shoal_err err = {0};
    load_plan p = {
        .where = {"127.0.0.1", s.port}, .schedule = {.n_clients = 1, .n_requests = 2}, .make = make};
    assert_int_equal(load_run(&p, &r, &err), 0);
    server_stop(&s);
    print_message("%s\n", r.first_failure);
    assert_int_equal(r.n_ok, 1);
    assert_int_equal(r.n_gaps, 2);
    assert_true(r.gap_p50_ms <= r.gap_p99_ms);
    assert_true(r.first_p50_ms > 0);
}

/* Others write blanks behind colons, end a stream with the connection, and may count no tokens. */
static void a_run_reads_streams_of_other_servers(void **state)
{
    (void)state;
    for (int counted = 0; counted < 2; counted++) {
        server s = {
            .answers = {
                counted
                    ? "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
                      "data: {\"choices\": [{\"delta\": {\"role\": \"assistant\", \"content\": \"\"}}]}\n\n"
                      "data: {\"choices\": [{\"delta\": {\"content\": \"a\"}}]}\n\n"
                      "data: {\"choices\": [{\"delta\": {\"content\": \"b\"}}]}\n\n"
                      "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": "
                      "7}}\n\n"
                      "data: [DONE]\n\n"
                    : "HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
                      "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"a\"}}]}\n\n"
                      "data: {\"choices\": [{\"text\": \"b\"}]}\n\ndata: [DONE]\n\n"}};
        server_start(&s);
        load_result r;
        shoal_err err = {0};
        load_plan p = {
            .where = {"127.0.0.1", s.port}, .schedule = {.n_clients = 1, .n_requests = 1}, .make = make};
        assert_int_equal(load_run(&p, &r, &err), 0);
        server_stop(&s);
        if (r.n_ok != 1) fail_msg("%s", r.first_failure);
        assert_int_equal(r.n_tokens, counted ? 7 : 2);
        assert_int_equal(r.n_gaps, 1);
    }
}

/* A server that keeps one client waiting is charged for those who were due meanwhile: no time is held to a
 * bound that a slow machine could miss. */
static void an_open_loop_counts_from_when_a_request_was_due(void **state)
{
    (void)state;
    static const double due_s[] = {0, 0.001, 0.002};
    server s = {.pause_us = 30000,
                .answers = {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
                            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
                            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"}};
    server_start(&s);
    load_result r;
    shoal_err err = {0};
    load_plan p = {.where = {"127.0.0.1", s.port},
                   .schedule = {.n_clients = 1, .n_requests = 3, .due_s = due_s},
                   .make = make};
    assert_int_equal(load_run(&p, &r, &err), 0);
    server_stop(&s);
    assert_int_equal(r.n_ok, 3);
    assert_true(r.n_late >= 2);         /* the first one, too, where the machine is busy */
    assert_true(r.max_ms > 3 * 30 - 3); /* the third was due at 2 ms and had to wait for two others */
}

/* ---- open loops on a server that stalls, or dies ------------------------------------------------- */

/* Each connection has a thread; requests that come before stalled_ns is over are answered then. */
typedef struct staller {
    pthread_t thread;
    int fd, port;
    uint64_t until_ns;
    size_t n_most; /* connections; then nobody listens any more. 0: any number */
} staller;

typedef struct stalled_link {
    const staller *s;
    int fd;
} stalled_link;

static void *link_main(void *arg)
{
    stalled_link *l = arg;
    static const char answer[] = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    char in[2048];
    while (recv(l->fd, in, sizeof in, 0) > 0) {
        uint64_t now = clock_ns();
        if (now < l->s->until_ns) usleep((useconds_t)((l->s->until_ns - now) / 1000));
        if (send(l->fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) break;
    }
    close(l->fd);
    free(l);
    return NULL;
}

static void *staller_main(void *arg)
{
    staller *s = arg;
    for (size_t n = 0; !s->n_most || n < s->n_most; n++) {
        pthread_t thread;
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0) return NULL;
        stalled_link *l = malloc(sizeof *l);
        *l = (stalled_link){s, fd};
        pthread_create(&thread, NULL, link_main, l);
        pthread_detach(thread);
    }
    shutdown(s->fd, SHUT_RDWR);
    return NULL;
}

static void staller_start(staller *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(s->fd, 256), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, staller_main, s), 0);
}

static void staller_stop(staller *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

/* 100 requests, 5 ms apart, on a server that answers none for 400 ms. Whoever was due in the stall waited for its end,
 * with one client as with many: a fifth of all waited over 300 ms. With one client the times since each was really
 * sent show none of it but once, which is what a closed loop would have reported. */
static void a_stall_is_charged_to_all_who_were_due(void **state)
{
    (void)state;
    double due_s[100];
    for (size_t i = 0; i < 100; i++) due_s[i] = (double)i * 0.005;
    for (int n_clients = 1; n_clients <= 128; n_clients *= 128) {
        staller s = {.until_ns = clock_ns() + 400000000};
        shoal_err err = {0};
        load_result r;
        load_record *record;
        staller_start(&s);
        s.until_ns = clock_ns() + 400000000;
        assert_int_equal(load_record_new(&record, &err), 0);
        load_plan p = {.where = {"127.0.0.1", s.port},
                       .schedule = {.n_clients = n_clients, .n_requests = 100, .due_s = due_s},
                       .make = make,
                       .record = record};
        assert_int_equal(load_run(&p, &r, &err), 0);
        staller_stop(&s);
        assert_int_equal(r.n_ok, 100);
        assert_true(load_histogram_ms(&record->whole, 0.81) > 300);
        assert_true(load_histogram_ms(&record->whole, 0.50) > 140);
        assert_true(r.p99_ms > 380);
        if (n_clients == 1) assert_true(load_histogram_ms(&record->service, 0.50) < 140);
        if (n_clients == 1) assert_true(r.n_late >= 79);
        size_t n_due = 0, n_ok = 0;
        for (size_t i = 0; i < record->n_intervals; i++) {
            n_due += record->intervals[i].n_due;
            n_ok += record->intervals[i].n_ok;
        }
        assert_int_equal(n_due, 100);
        assert_int_equal(n_ok, 100);
        load_record_free(record);
    }
}

/* The server ends behind its first connection: errors are counted by kind, and the load ends. */
static void a_server_that_dies_gives_errors(void **state)
{
    (void)state;
    double due_s[40];
    for (size_t i = 0; i < 40; i++) due_s[i] = (double)i * 0.001;
    staller s = {.n_most = 1, .until_ns = clock_ns() + 10000000000};
    shoal_err err = {0};
    load_result r;
    load_record *record;
    staller_start(&s);
    assert_int_equal(load_record_new(&record, &err), 0);
    load_plan p = {.where = {"127.0.0.1", s.port},
                   .schedule = {.n_clients = 64, .n_requests = 40, .due_s = due_s},
                   .make = make,
                   .timeout_ms = 200,
                   .record = record};
    assert_int_equal(load_run(&p, &r, &err), 0);
    staller_stop(&s);
    assert_int_equal(r.n_ok, 0);
    assert_int_equal(r.n_failed, 40);
    assert_true(record->errors[LOAD_ERROR_TIMEOUT] >= 1); /* who was let in before */
    assert_true(record->errors[LOAD_ERROR_CONNECT] + record->errors[LOAD_ERROR_BROKEN] >= 1);
    assert_int_equal(record->errors[LOAD_ERROR_TIMEOUT] + record->errors[LOAD_ERROR_CONNECT] +
                         record->errors[LOAD_ERROR_BROKEN],
                     40);
    assert_int_equal(r.p99_ms, 0);
    load_record_free(record);
}

/* ---- histograms and arrivals ---------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Against sorted draws of many magnitudes: each quantile within a hundredth, and a sum of parts is the whole. */
static void histograms_are_within_a_hundredth(void **state)
{
    (void)state;
    enum { N = 3000 };
    static uint64_t v[N];
    for (uint64_t seed = 0; seed < 40; seed++) {
        load_histogram *all = calloc(1, sizeof *all), *parts = calloc(3, sizeof *parts);
        for (size_t i = 0; i < N; i++) {
            v[i] = (uint64_t)exp2(rng_uniform(seed, i) * (double)(8 + seed)); /* up to 2^47 */
            load_histogram_add(all, v[i]);
            load_histogram_add(&parts[i % 3], v[i]);
        }
        qsort(v, N, sizeof *v, by_value);
        load_histogram_merge(&parts[0], &parts[1]);
        load_histogram_merge(&parts[0], &parts[2]);
        assert_true(parts[0].n == all->n && parts[0].min_ns == v[0] && parts[0].max_ns == v[N - 1]);
        assert_memory_equal(parts[0].counts, all->counts, sizeof all->counts);
        for (double q = 0; q <= 1; q += 1.0 / 128) {
            size_t rank = (size_t)ceil(q * N);
            double want = (double)v[rank ? rank - 1 : 0], is = (double)load_histogram_quantile(all, q);
            if (fabs(is - want) > 0.01 * want) fail_msg("seed %d, q %g: %g is %g", (int)seed, q, want, is);
        }
        free(all);
        free(parts);
    }
    load_histogram *far = calloc(1, sizeof *far);
    assert_int_equal(load_histogram_quantile(far, 0.5), 0);
    load_histogram_add(far, UINT64_MAX);
    load_histogram_add(far, 0);
    assert_int_equal(load_histogram_quantile(far, 0), 0);
    assert_true(load_histogram_quantile(far, 1) == UINT64_MAX);
    free(far);
}

static void arrivals_keep_their_rate(void **state)
{
    (void)state;
    double *due;
    size_t n;
    load_arrivals a = {.rate = 20, .seconds = 2, .n_most = 1000};
    assert_int_equal(load_arrivals_make(&due, &n, &a, NULL), 0);
    assert_int_equal(n, 40);
    for (size_t i = 0; i < n; i++) assert_true(fabs(due[i] - (double)i / 20) < 1e-9);
    free(due);
    a = (load_arrivals){.rate = 10, .rate_to = 30, .seconds = 10, .n_most = 1000};
    assert_int_equal(load_arrivals_make(&due, &n, &a, NULL), 0);
    assert_int_equal(n, 200);             /* 20 a second in the mean */
    assert_true(fabs(due[75] - 5) < 0.1); /* of which 75 are in the first half: 10 t + t^2 */
    free(due);
    a = (load_arrivals){.rate = 30, .rate_to = 10, .seconds = 10, .n_most = 1000};
    assert_int_equal(load_arrivals_make(&due, &n, &a, NULL), 0);
    assert_int_equal(n, 200);
    free(due);
    a = (load_arrivals){.kind = LOAD_POISSON, .rate = 100, .seconds = 100, .n_most = 100000, .seed = 7};
    assert_int_equal(load_arrivals_make(&due, &n, &a, NULL), 0);
    assert_true(n > 9600 && n < 10400); /* four deviations */
    double squares = 0;
    for (size_t i = 1; i < n; i++) {
        assert_true(due[i] >= due[i - 1]);
        squares += pow(due[i] - due[i - 1], 2);
    }
    assert_true(squares / (double)n * 1e4 > 1.8 &&
                squares / (double)n * 1e4 < 2.2); /* exponential: twice the mean's square */
    free(due);
    a = (load_arrivals){.rate = 100, .n_most = 7};
    assert_int_equal(load_arrivals_make(&due, &n, &a, NULL), 0);
    assert_int_equal(n, 7);
    free(due);
}

/* Two hours of a load: the intervals widen, nothing is lost. */
static void intervals_widen(void **state)
{
    (void)state;
    load_record *r;
    assert_int_equal(load_record_new(&r, NULL), 0);
    for (size_t i = 0; i < 7200; i++) {
        load_answer a = {.due_s = (double)i, .sent_s = (double)i, .end_s = (double)i + 0.5, .n_tokens = 2};
        load_record_sent(r, a.due_s, a.sent_s);
        load_record_add(r, &a);
    }
    size_t n = 0, n_due = 0, n_times = 0, n_tokens = 0;
    for (size_t i = 0; i < r->n_intervals; i++) {
        n += r->intervals[i].n_ok;
        n_due += r->intervals[i].n_due;
        n_tokens += r->intervals[i].n_tokens;
        n_times += r->intervals[i].whole ? r->intervals[i].whole->n : 0;
    }
    assert_true(r->n_intervals > LOAD_INTERVALS / 2 && r->n_intervals <= LOAD_INTERVALS);
    assert_true(r->interval_s == 64);
    assert_true(n == 7200 && n_due == 7200 && n_times == 7200 && n_tokens == 14400 && r->n_late == 0);
    assert_int_equal(r->intervals[0].n_due, 64);
    load_record_free(r);
}

/* Whoever listens is found by the port, and its time counts what its children took. */
static void the_time_of_who_listens_is_known(void **state)
{
    (void)state;
    server s = {.answers = {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"}};
    server_start(&s);
    assert_int_equal(load_cpu_find(&(http_where){.host = "127.0.0.1", .port = s.port}), getpid());
    assert_int_equal(load_cpu_find(&(http_where){.host = "localhost", .port = s.port}), getpid());
    assert_int_equal(load_cpu_find(&(http_where){.host = "192.0.2.1", .port = s.port}),
                     0); /* another machine's port */
    assert_int_equal(load_cpu_find(&(http_where){.host = "/run/x.sock"}), 0);
    int status;
    assert_int_equal(http_client_once(&(http_where){.host = "127.0.0.1", .port = s.port},
                                      &(http_ask){.path = "/"}, &status, NULL, NULL),
                     0);
    server_stop(&s);
    double before = load_cpu_seconds(getpid());
    assert_true(before >= 0);
    pid_t child = fork();
    if (child == 0) {
        while (clock() < CLOCKS_PER_SEC / 20) continue; /* of its own CPU */
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(load_cpu_seconds(getpid()) >= before + 0.03);
    assert_true(load_cpu_seconds(child) < 0);
}

/* A process and its child, which says its name in its command line. */
static void the_time_of_each_process_is_known(void **state)
{
    (void)state;
    load_cpu_process each[4];
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ready[1], STDOUT_FILENO);
        execlp("sh", "sh", "-c", "echo; kill -STOP $$; :", "sh", "--name", "kitchen", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    size_t n = load_cpu_each(getpid(), each, 4);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(n, 2);
    bool own = each[0].pid == getpid();
    assert_int_equal(each[own ? 0 : 1].pid, getpid());
    assert_int_equal(each[own ? 1 : 0].pid, child);
    assert_string_equal(each[own ? 1 : 0].name, "sh kitchen");
    assert_true(each[0].seconds >= 0 && each[1].seconds >= 0);
    assert_int_equal(load_cpu_each(getpid(), each, 1), 1);
    assert_int_equal(load_cpu_each(child, each, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(answers_of_known_length_are_read),
        cmocka_unit_test(chunks_are_joined),
        cmocka_unit_test(broken_answers_are_errors),
        cmocka_unit_test(nobody_there_is_an_error),
        cmocka_unit_test(a_connection_is_kept_and_opened_again_after_it_broke),
        cmocka_unit_test(a_kept_connection_that_ended_unheard_may_be_replaced),
        cmocka_unit_test(an_answer_may_end_with_its_connection),
        cmocka_unit_test(an_answer_without_measure_is_refused),
        cmocka_unit_test(progress_may_be_told_for_ever),
        cmocka_unit_test(a_stream_goes_on_behind_the_last_whole_event),
        cmocka_unit_test(a_stream_that_says_no_ids_begins_anew),
        cmocka_unit_test(a_stream_ends_where_nobody_goes_on),
        cmocka_unit_test(a_run_comes_back_to_streams_that_break),
        cmocka_unit_test(a_run_counts_what_fails),
        cmocka_unit_test(a_run_ends_with_its_time),
        cmocka_unit_test(a_run_times_texts),
        cmocka_unit_test(a_run_reads_streams_of_other_servers),
        cmocka_unit_test(the_time_of_who_listens_is_known),
        cmocka_unit_test(the_time_of_each_process_is_known),
        cmocka_unit_test(an_open_loop_counts_from_when_a_request_was_due),
        cmocka_unit_test(a_stall_is_charged_to_all_who_were_due),
        cmocka_unit_test(a_server_that_dies_gives_errors),
        cmocka_unit_test(histograms_are_within_a_hundredth),
        cmocka_unit_test(arrivals_keep_their_rate),
        cmocka_unit_test(intervals_widen),
    };
    return cmocka_run_group_tests_name("load client", tests, NULL, NULL);
}
