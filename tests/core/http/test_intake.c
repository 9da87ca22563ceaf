/* Bodies that a handler takes in pieces, over HTTP/1.1 and HTTP/2 alike. */
#include "wire_fixture.h"

/* What became of one body; answered as "STATUS BYTES SUM". */
typedef struct intake_job {
    http_request *r;
    uv_timer_t timer;
    size_t n_pieces, n_bytes;
    unsigned sum;
    bool rests, early, over;
} intake_job;

static void job_closed(uv_handle_t *h)
{
    free(h->data);
}

static void job_end(intake_job *j)
{
    j->over = true;
    uv_close((uv_handle_t *)&j->timer, job_closed);
}

static void answer(intake_job *j, int status)
{
    char text[64];
    snprintf(text, sizeof text, "%d %zu %u", status, j->n_bytes, j->sum);
    http_respond(j->r, status ? status : 200, NULL, 0, text, strlen(text));
    job_end(j);
}

static void go_on(uv_timer_t *t)
{
    intake_job *j = t->data;
    http_pause(j->r, false);
}

static http_intake intake(void *user, const http_request *r)
{
    return strncmp(http_path(r), "/pieces", 7) == 0 ? HTTP_PIECES : HTTP_WHOLE;
}

static void on_request(void *user, http_request *r)
{
    fixture *f = user;
    size_t n;
    http_body(r, &n);
    atomic_fetch_add(&f->n_requests, 1);
    if (intake(user, r) == HTTP_WHOLE) {
        http_respond(r, 200, NULL, 0, "whole\n", 6);
        return;
    }
    intake_job *j = calloc(1, sizeof *j);
    j->r = r;
    j->rests = strcmp(http_path(r), "/pieces-rest") == 0;
    j->early = strcmp(http_path(r), "/pieces-early") == 0;
    uv_timer_init(&f->loop, &j->timer);
    j->timer.data = j;
    http_set_data(r, j);
    if (n) fail_msg("a body before its pieces"); /* nothing of it comes with its head */
    if (strcmp(http_path(r), "/pieces-none") == 0) answer(j, 403);
}

static void on_body(void *user, http_request *r, const uint8_t *bytes, size_t n)
{
    intake_job *j = http_data(r);
    j->n_pieces++;
    j->n_bytes += n;
    for (size_t i = 0; i < n; i++) j->sum = j->sum * 31 + bytes[i];
    if (j->early && j->n_bytes >= 10) {
        answer(j, 409);
    } else if (j->rests && n) {
        http_pause(r, true);
        uv_timer_start(&j->timer, go_on, 1, 0);
    }
}

static void on_body_end(void *user, http_request *r, int status, const char *why)
{
    answer(http_data(r), status);
}

static void on_gone(void *user, http_request *r)
{
    fixture *f = user;
    intake_job *j = http_data(r);
    atomic_fetch_add(&f->n_gone, 1);
    if (j && !j->over) job_end(j);
}

static const http_handler handler = {.on_request = on_request,
                                     .on_gone = on_gone,
                                     .intake = intake,
                                     .on_body = on_body,
                                     .on_body_end = on_body_end};

static unsigned sum_of(const char *bytes, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++) sum = sum * 31 + (unsigned char)bytes[i];
    return sum;
}

static char *random_bytes(size_t n)
{
    char *b = malloc(n);
    unsigned x = 1;
    for (size_t i = 0; i < n; i++) b[i] = (char)((x = x * 1103515245u + 12345u) >> 16);
    return b;
}

/* ---- HTTP/1.1 -------------------------------------------------------------------------------- */

static void expect_answer(const char *got, int status, const char *bytes, size_t n)
{
    char want[64];
    snprintf(want, sizeof want, "\r\n\r\n%d %zu %u", status, n, sum_of(bytes, n));
    if (!strstr(got, want)) fail_msg("\"%s\" lacks \"%s\"", got, want + 4);
}

static char *put_chunks(const char *path, const char *bytes, size_t n, size_t each, size_t *ret_n)
{
    buf b = {0};
    buf_printf(&b, "POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", path);
    for (size_t at = 0; at < n; at += each) {
        size_t take = n - at < each ? n - at : each;
        buf_printf(&b, "%zx\r\n", take);
        buf_append(&b, bytes + at, take);
        buf_puts(&b, "\r\n");
    }
    buf_puts(&b, "0\r\n\r\n");
    *ret_n = b.len;
    return buf_take(&b);
}

static char *put_length(const char *path, const char *bytes, size_t n, size_t *ret_n)
{
    buf b = {0};
    buf_printf(&b, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", path, n);
    buf_append(&b, bytes, n);
    *ret_n = b.len;
    return buf_take(&b);
}

static void http1_bodies_come_whole_in_pieces(void **state)
{
    static const char *const paths[] = {"/pieces", "/pieces-rest"};
    fixture f = {.handler = &handler};
    enum { N = 700000 };
    char *bytes = random_bytes(N);
    fixture_start(&f, NULL, NULL);
    for (int i = 0; i < 2; i++)
        for (int chunked = 0; chunked < 2; chunked++) {
            size_t n;
            char *all =
                chunked ? put_chunks(paths[i], bytes, N, 9000, &n) : put_length(paths[i], bytes, N, &n);
            char *got = fixture_exchange_n(&f, all, n);
            expect_answer(got, 0, bytes, N);
            free(got);
            free(all);
        }
    char *empty = fixture_exchange(&f, "POST /pieces HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_answer(empty, 0, "", 0);
    free(empty);
    free(bytes);
    fixture_stop(&f);
    assert_int_equal(atomic_load(&f.n_gone), 0);
}

/* What follows on the same connection is understood, and only after the end of the body. */
static void http1_requests_follow_a_body_in_pieces(void **state)
{
    fixture f = {.handler = &handler};
    fixture_start(&f, NULL, NULL);
    char *got =
        fixture_exchange(&f, "POST /pieces HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                             "POST /pieces-rest HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "2\r\nde\r\n1\r\nf\r\n0\r\n\r\n"
                             "POST /else HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
    expect_answer(got, 0, "abc", 3);
    expect_answer(got, 0, "def", 3);
    assert_non_null(strstr(got, "whole\n"));
    assert_int_equal(count_of(got, "HTTP/1.1 200"), 3);
    free(got);
    fixture_stop(&f);
}

static void http1_an_early_answer_ends_the_connection(void **state)
{
    fixture f = {.handler = &handler};
    char *bytes = random_bytes(300000), *all, *got;
    size_t n;
    fixture_start(&f, NULL, NULL);
    static const char *const paths[] = {"/pieces-early", "/pieces-none"};
    for (int i = 0; i < 2; i++) {
        all = put_length(paths[i], bytes, 300000, &n);
        got = fixture_exchange_n(&f, all, n);
        assert_non_null(strstr(got, i ? "HTTP/1.1 403" : "HTTP/1.1 409"));
        assert_non_null(strstr(got, "Connection: close"));
        assert_int_equal(count_of(got, "HTTP/1.1"), 1); /* the rest is no request */
        free(got);
        free(all);
    }
    free(bytes);
    fixture_stop(&f);
}

static void http1_bad_bodies_are_told_to_the_handler(void **state)
{
    http_limits l = {.max_body_bytes = 1000}, hasty = {.request_timeout_ms = 60};
    fixture f = {.handler = &handler};
    char *bytes = random_bytes(1500), *all, *got;
    size_t n;
    fixture_start(&f, &l, NULL);
    all = put_chunks("/pieces", bytes, 1500, 400, &n);
    got = fixture_exchange_n(&f, all, n);
    assert_non_null(strstr(got, "HTTP/1.1 413"));
    free(got);
    free(all);
    static const char head[] = "POST /pieces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    char text[256];
    snprintf(text, sizeof text, "%s3\r\nabc\r\nnonsense\r\n", head);
    got = fixture_exchange(&f, text);
    expect_answer(got, 400, "", 0); /* in one piece with what is malformed: not delivered */
    free(got);
    snprintf(text, sizeof text, "%s3\r\nabc\r\n", head);
    got = fixture_exchange(&f, text); /* and then the client's end */
    expect_answer(got, 400, "abc", 3);
    free(got);
    int fd = fixture_connect(&f);
    send_bytes(fd, text, strlen(text));
    struct linger reset = {1, 0};
    assert_true(wait_for(&f.n_requests, 4));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    assert_true(wait_for(&f.n_gone, 1));
    free(bytes);
    fixture_stop(&f);
    fixture_start(&f, &hasty, NULL); /* where nothing else has to come in time */
    fd = fixture_connect(&f);
    send_bytes(fd, text, strlen(text));
    got = read_all(fd, NULL);
    expect_answer(got, 408, "abc", 3);
    free(got);
    close(fd);
    fixture_stop(&f);
}

/* ---- HTTP/2, with curl ----------------------------------------------------------------------- */

static void http2_bodies_come_whole_in_pieces(void **state)
{
    enum { N = 700000 };
    fixture f = {.handler = &handler};
    http_limits l = {.max_body_bytes = N};
    char *bytes = random_bytes(N + 1), path[64], command[512], want[64], got[64];
    if (system("curl --version 2>/dev/null | grep -q nghttp2") != 0) {
        printf("SKIP http_test_intake: curl without HTTP/2\n");
        free(bytes);
        skip();
    }
    snprintf(path, sizeof path, "/tmp/shoal-intake-%d", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_int_equal(fwrite(bytes, 1, N, file), N);
    fclose(file);
    fixture_start(&f, &l, NULL);
    static const char *const paths[] = {"/pieces", "/pieces-rest"};
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "curl -sS -m 20 --http2-prior-knowledge -T - -X POST 'http://127.0.0.1:%d%s' <%s", f.port,
                 paths[i], path);
        FILE *curl = popen(command, "r");
        memset(got, 0, sizeof got);
        assert_true(fread(got, 1, sizeof got - 1, curl) > 0);
        pclose(curl);
        snprintf(want, sizeof want, "0 %d %u", N, sum_of(bytes, N));
        assert_string_equal(got, want);
    }
    unlink(path);
    free(bytes);
    fixture_stop(&f);
    assert_int_equal(atomic_load(&f.n_gone), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http1_bodies_come_whole_in_pieces),
        cmocka_unit_test(http1_requests_follow_a_body_in_pieces),
        cmocka_unit_test(http1_an_early_answer_ends_the_connection),
        cmocka_unit_test(http1_bad_bodies_are_told_to_the_handler),
        cmocka_unit_test(http2_bodies_come_whole_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
