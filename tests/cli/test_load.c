/* The measuring client against a server that says exactly what each test wants it to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/load_client.h"

/* One connection; after each request (its body has no blank line) the next answer; then it hangs up. */
typedef struct server {
    pthread_t thread;
    int fd, port;
    const char *answers[4];
    char first_request[2048];
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
    int rc = http_client_once(&(http_where){"127.0.0.1", s.port}, &(http_ask){.method = "GET", .path = "/x"},
                              status, body, err);
    server_stop(&s);
    return rc;
}

static void urls_are_taken_apart(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",           "127.0.0.1:80",   "ftp://127.0.0.1:80", "http://127.0.0.1", "http://:80",  "unix:",
        "http://a:0", "http://a:70000", "http://a:80x",       "http://a:",        "http://[]:80"};
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
    assert_int_equal(http_where_parse(&w, "https://127.0.0.1:80", NULL), SHOAL_EUNSUPPORTED);
    char longer[200] = "unix:";
    memset(longer + 5, 'a', 150);
    assert_int_equal(http_where_parse(&w, longer, NULL), SHOAL_EINVALID);
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
    assert_int_equal(http_client_once(&(http_where){"127.0.0.1", 1},
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
    http_client_init(&c, &(http_where){"127.0.0.1", s.port});
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

static void make(void *user, size_t i, buf *scratch, http_ask *ret)
{
    (void)user;
    buf_printf(scratch, "/%zu", i);
    *ret = (http_ask){.method = "GET", .path = scratch->data, .headers = "x-a: b\r\n"};
}

static void a_run_counts_what_fails(void **state)
{
    (void)state;
    server s = {.answers = {"HTTP/1.1 200 OK\r\ncontent-length: 47\r\n\r\n"
                            "data: {\"usage\":{\"completion_tokens\":2,\"x\":1}}\n\n",
                            "HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\ndata: {\"error\"",
                            "HTTP/1.1 429 Too Many\r\ncontent-length: 2\r\n\r\nno"}};
    server_start(&s);
    load_result r;
    shoal_err err = {0};
    load_plan p = {.where = {"127.0.0.1", s.port}, .n_clients = 1, .n_requests = 3, .make = make};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(answers_of_known_length_are_read),
        cmocka_unit_test(chunks_are_joined),
        cmocka_unit_test(broken_answers_are_errors),
        cmocka_unit_test(nobody_there_is_an_error),
        cmocka_unit_test(a_connection_is_kept_and_opened_again_after_it_broke),
        cmocka_unit_test(a_run_counts_what_fails),
    };
    return cmocka_run_group_tests_name("load client", tests, NULL, NULL);
}
