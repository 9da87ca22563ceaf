/* Clients that take what costs them nothing: answers they do not read, places they do not use. */
#include <poll.h>

#include "wire_fixture.h"

#include "http/http_internal.h"

static void put_pipeline(buf *b, const char *path, int n)
{
    for (int i = 0; i < n; i++) buf_printf(b, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
}

/* A few are answered, into a small part of the system's buffers and a small mark of ours. */
static void a_pipeline_that_nobody_reads_is_not_answered_ahead(void **state)
{
    enum { N = 200, A_FEW = 8 };
    fixture f = {0};
    buf b = {0};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect_with(&f, 4096);
    put_pipeline(&b, "/big", N);
    buf_puts(&b, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    send_bytes(fd, b.data, b.len);
    assert_true(wait_for(&f.n_requests, 1));
    assert_in_range(settled(&f.n_requests), 1, A_FEW);
    size_t n;
    char *answers = read_all(fd, &n); /* and all of them arrive when it does read */
    assert_int_equal(atomic_load(&f.n_requests), N + 1);
    assert_in_range(n, (size_t)N * 200000, (size_t)N * 200400);
    assert_memory_equal(answers + n - 6, "hello\n", 6);
    free(answers);
    close(fd);
    buf_done(&b);
    fixture_stop(&f);
}

static void ask_hello(int fd)
{
    send_text(fd, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    char *answer = read_until(fd, "hello\n");
    assert_non_null(strstr(answer, "200 OK"));
    free(answer);
}

static atomic_bool all_is_sent;
static atomic_int n_held, n_before_hello; /* the first is held; requests before the last /hello */

/* The first of the pipeline holds the loop until all of it, and what another asks for, is at the server. */
static void on_request(void *user, http_request *r)
{
    fixture *f = user;
    bool is_first = strcmp(http_path(r), "/first") == 0;
    if (is_first) atomic_fetch_add(&n_held, 1);
    while (is_first && !all_is_sent) usleep(100);
    if (strcmp(http_path(r), "/hello") == 0) n_before_hello = atomic_load(&f->n_requests);
    fixture_request(user, r);
}

static void others_are_served_between_the_requests_of_a_pipeline(void **state)
{
    enum { N = 1500, A_FEW_TURNS = 150 };
    const http_handler h = {.on_request = on_request, .on_gone = fixture_gone};
    fixture f = {.handler = &h};
    buf b = {0};
    fixture_start(&f, NULL, NULL);
    int busy = fixture_connect(&f), other = fixture_connect(&f);
    ask_hello(other); /* it has been let in */
    put_pipeline(&b, "/first", 1);
    put_pipeline(&b, "/spin", N - 1);
    send_bytes(busy, b.data, b.len);
    assert_true(wait_for(&n_held, 1));
    send_text(other, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    all_is_sent = true;
    char *answer = read_until(other, "hello\n");
    assert_in_range(n_before_hello, 2, 1 + A_FEW_TURNS); /* the other's first is one of them */
    shutdown(busy, SHUT_WR);                             /* what was sent before the end is still answered */
    char *all = read_all(busy, NULL);
    assert_int_equal(count_of(all, "HTTP/1.1 200 OK"), N);
    free(all);
    free(answer);
    close(busy);
    close(other);
    buf_done(&b);
    fixture_stop(&f);
}

/* One read, and the few requests of it that a turn takes; so it is however the client's bytes arrive. */
static void no_turn_serves_more_than_a_few_requests_of_a_connection(void **state)
{
    enum { N = 3000, TURN_REQUESTS = 16, TURN_BYTES = 65536 + (TURN_REQUESTS + 1) * LOOP_WORK_MESSAGE_BYTES };
    fixture f = {0};
    buf b = {0};
    fixture_start(&f, NULL, NULL);
    put_pipeline(&b, "/hello", N);
    char *all = fixture_exchange_n(&f, b.data, b.len);
    assert_int_equal(count_of(all, "HTTP/1.1 200 OK"), N);
    assert_in_range(fixture_largest_turn(&f), LOOP_WORK_MESSAGE_BYTES, TURN_BYTES);
    free(all);
    buf_done(&b);
    fixture_stop(&f);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

/* /block holds the loop while the test has the gate. */
static void on_request_or_block(void *user, http_request *r)
{
    if (strcmp(http_path(r), "/block") != 0) {
        fixture_request(user, r);
        return;
    }
    atomic_fetch_add(&((fixture *)user)->n_requests, 1);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    http_respond(r, 200, NULL, 0, "open\n", 5);
}

/* They had all asked before the server looked at one of them. */
static void a_burst_of_clients_beyond_the_places_is_served(void **state)
{
    enum { N_CLIENTS = 256, PLACES = 40 };
    static const char ask[] = "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const http_handler h = {.on_request = on_request_or_block, .on_gone = fixture_gone};
    http_limits l = {.max_connections = PLACES};
    fixture f = {.handler = &h};
    int fd[N_CLIENTS];
    pthread_mutex_lock(&gate);
    fixture_start(&f, &l, NULL);
    int blocking = fixture_connect(&f);
    send_text(blocking, "GET /block HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(wait_for(&f.n_requests, 1));
    for (int i = 0; i < N_CLIENTS; i++) {
        fd[i] = fixture_connect(&f);
        send_bytes(fd[i], ask, sizeof ask - 1);
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < N_CLIENTS; i++) {
        size_t n;
        char *answer = read_all(fd[i], &n);
        if (!strstr(answer, "hello\n")) fail_msg("client %d got \"%s\"", i, answer);
        free(answer);
        close(fd[i]);
    }
    close(blocking);
    fixture_stop(&f);
}

static void put_post(buf *b, const char *path, int n)
{
    buf_printf(b, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", path, n);
    for (int i = 0; i < n; i++) buf_putc(b, 'a');
}

static int status_of_post(const fixture *f, const char *path, int n)
{
    buf b = {0};
    put_post(&b, path, n);
    char *answer = fixture_exchange_n(f, b.data, b.len);
    int status = 0;
    sscanf(answer, "HTTP/1.1 %d", &status);
    free(answer);
    buf_done(&b);
    return status;
}

static void bodies_of_all_together_are_bounded(void **state)
{
    enum { LARGE = 100000, SMALL = 1000 };
    http_limits l = {
        .max_body_bytes = 400000, .max_bodies = 2 * LARGE + LARGE / 2, .request_timeout_ms = 600000};
    fixture f = {0};
    buf b = {0};
    fixture_start(&f, &l, NULL);
    assert_int_equal(status_of_post(&f, "/echo", 3 * LARGE), 413); /* it would never have room */
    put_post(&b, "/wait", LARGE);
    int held[2] = {fixture_connect(&f), fixture_connect(&f)};
    for (int i = 0; i < 2; i++) send_bytes(held[i], b.data, b.len);
    assert_true(wait_for(&f.n_requests, 2));
    assert_int_equal(status_of_post(&f, "/echo", LARGE), 503);
    assert_int_equal(status_of_post(&f, "/echo", SMALL), 200);
    for (int i = 0; i < 2; i++) close(held[i]);
    int status = 503;
    while (status == 503) status = status_of_post(&f, "/echo", LARGE); /* when the server has seen them go */
    assert_int_equal(status, 200);
    buf_done(&b);
    fixture_stop(&f);
}

static void unsent_bytes_of_all_together_are_bounded(void **state)
{
    enum { N_CLIENTS = 16, N = 50 };
    http_limits l = {.max_unsent = 3u << 20, .write_timeout_ms = 600000}; /* however slowly they read */
    fixture f = {0};
    buf b = {0};
    int fd[N_CLIENTS], n_whole = 0;
    fixture_start(&f, &l, NULL);
    put_pipeline(&b, "/big", N);
    buf_puts(&b, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < N_CLIENTS; i++) {
        fd[i] = fixture_connect_with(&f, 4096);
        send_bytes(fd[i], b.data, b.len);
    }
    settled(&f.n_requests);
    char *polite = fixture_exchange(&f, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_non_null(strstr(polite, "hello\n"));
    for (int i = 0; i < N_CLIENTS; i++) {
        size_t n;
        char *answers = read_all(fd[i], &n);
        n_whole += n > (size_t)N * 200000;
        free(answers);
        close(fd[i]);
    }
    assert_in_range(n_whole, 2, N_CLIENTS - 1); /* those that held most were closed, not all */
    free(polite);
    buf_done(&b);
    fixture_stop(&f);
}

/* 100 bytes wait, 40 are to be taken in a span of 10 ms. */
static void pace_asks_for_what_waits_or_a_least_rate(void **state)
{
    http_pace p = {0};
    assert_false(conn_pace_is_too_slow(&p, 0, 5, 40, 0, 10)); /* nothing waits */
    assert_false(conn_pace_is_too_slow(&p, 100, 5, 40, 50, 10));
    assert_false(conn_pace_is_too_slow(&p, 100, 44, 40, 60, 10));
    assert_true(conn_pace_is_too_slow(&p, 100, 44, 40, 61, 10)); /* 39 in a span */
    assert_false(conn_pace_is_too_slow(&p, 100, 45, 40, 61, 10));
    assert_false(conn_pace_is_too_slow(&p, 3, 45 + 40, 40, 70, 10)); /* 3 wait now, so 3 are enough */
    assert_true(conn_pace_is_too_slow(&p, 3, 87, 40, 81, 10));
    assert_false(conn_pace_is_too_slow(&p, 3, 88, 40, 81, 10));
    assert_false(conn_pace_is_too_slow(&p, 0, 88, 40, 200, 10));
}

static bool is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, 0) == 0;
}

/* Every place is taken: by an answer being made, by two idle clients, and by one that never said a word. */
static void idle_connections_give_way_to_new_ones(void **state)
{
    http_limits l = {.max_connections = 4};
    fixture f = {0};
    fixture_start(&f, &l, NULL);
    int busy = fixture_connect(&f), old = fixture_connect(&f);
    send_text(busy, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    free(read_until(busy, "held"));
    ask_hello(old);
    usleep(20000);
    int young = fixture_connect(&f);
    ask_hello(young);
    int silent = fixture_connect(&f);
    for (int i = 0; i < 2; i++) ask_hello(young); /* a turn later the server knows of silent */
    usleep(1100000);                              /* NEWCOMER_MS */
    int a = fixture_connect(&f);
    ask_hello(a);
    assert_true(is_closed(silent));
    int b = fixture_connect(&f);
    ask_hello(b);
    assert_true(is_closed(old));
    ask_hello(young);
    assert_int_equal(atomic_load(&f.n_gone), 0); /* the answer being made was left alone */
    int all[] = {busy, old, young, silent, a, b};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) close(all[i]);
    fixture_stop(&f);
}

/* It is refused that comes while the one before is new; where a second passed between them, again. */
static void a_newcomer_has_time_to_speak(void **state)
{
    enum { TRIES = 20, SURELY_NEW_MS = 900 }; /* NEWCOMER_MS is 1000 */
    http_limits l = {.max_connections = 1};
    bool refused = false;
    for (int i = 0; i < TRIES && !refused; i++) {
        fixture f = {0};
        fixture_start(&f, &l, NULL);
        uint64_t began = uv_hrtime();
        int first = fixture_connect(&f), second = fixture_connect(&f);
        struct pollfd told[] = {{.fd = first, .events = POLLIN}, {.fd = second, .events = POLLIN}};
        assert_true(poll(told, 2, 20000) > 0);
        refused = told[1].revents != 0;
        if (refused) {
            char *answer = read_all(second, NULL);
            assert_non_null(strstr(answer, "HTTP/1.1 503 "));
            ask_hello(first);
            free(answer);
        } else if (uv_hrtime() - began < SURELY_NEW_MS * UINT64_C(1000000)) {
            fail_msg("a newcomer had to give way");
        }
        close(first);
        close(second);
        fixture_stop(&f);
    }
    assert_true(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_that_nobody_reads_is_not_answered_ahead),
        cmocka_unit_test(others_are_served_between_the_requests_of_a_pipeline),
        cmocka_unit_test(pace_asks_for_what_waits_or_a_least_rate),
        cmocka_unit_test(no_turn_serves_more_than_a_few_requests_of_a_connection),
        cmocka_unit_test(a_burst_of_clients_beyond_the_places_is_served),
        cmocka_unit_test(bodies_of_all_together_are_bounded),
        cmocka_unit_test(unsent_bytes_of_all_together_are_bounded),
        cmocka_unit_test(idle_connections_give_way_to_new_ones),
        cmocka_unit_test(a_newcomer_has_time_to_speak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
