/* HTTP/1.1 over real sockets: what is served, and what is refused. */
#include "wire_fixture.h"

static void assert_status(const char *answer, int status, const char *what)
{
    char want[32];
    snprintf(want, sizeof want, "HTTP/1.1 %d ", status);
    if (strncmp(answer, want, strlen(want)) != 0) fail_msg("%s: wanted %d, got: %.80s", what, status, answer);
}

typedef struct wire_case {
    const char *name, *request;
    int status;
    const char *answer_has; /* may be NULL */
} wire_case;

#define HOST "Host: x\r\n"
#define POST "POST /echo HTTP/1.1\r\n" HOST

static const wire_case good[] = {
    {"get", "GET /a/b?c=d&e HTTP/1.1\r\n" HOST "\r\n", 200, "GET\n/a/b\nc=d&e\nx\n"},
    {"doubled and closing slashes", "GET //a///b/?q//r/ HTTP/1.1\r\n" HOST "\r\n", 200,
     "GET\n/a/b\nq//r/\nx\n"},
    {"slashes alone", "GET /// HTTP/1.1\r\n" HOST "\r\n", 200, "GET\n/\n\nx\n"},
    {"no host in 1.0", "GET / HTTP/1.0\r\n\r\n", 200, "GET\n/\n\n-\n"},
    {"stray empty line", "\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n", 200, "hello"},
    {"host with port", "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", 200, "[::1]:8080"},
    {"absolute form", "GET http://x/p?q HTTP/1.1\r\n" HOST "\r\n", 200, "GET\n/p\nq\nx\n"},
    {"absolute form without path", "GET http://x HTTP/1.1\r\n" HOST "\r\n", 200, "GET\n/\n\nx\n"},
    {"options star", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 200, "OPTIONS\n*\n"},
    {"body", POST "Content-Length: 5\r\n\r\nabcde", 200, "\r\n\r\nabcde"},
    {"empty body", POST "Content-Length: 0\r\n\r\n", 200, "Content-Length: 0"},
    {"chunked", POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", 200,
     "abc0123456789"},
    {"chunk extension", POST "Transfer-Encoding: Chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\n\r\n", 200, "abc"},
    {"trailers", POST "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\n\r\n", 200, "\r\n\r\na"},
    {"absolute form with query alone", "GET http://x?q HTTP/1.1\r\n" HOST "\r\n", 200, "GET\n/\nq\nx\n"},
    {"empty values", "PATCH /a HTTP/1.1\r\n" HOST "X:\r\nY: \t \r\n\r\n", 200, "PATCH\n/a\n"},
    {"upgrade is not taken up", "GET /hello HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: h2c\r\n\r\n",
     200, "hello"},
    {"value spaces", "GET / HTTP/1.1\r\nHost: \t x \t\r\n\r\n", 200, "\nx\n"},
};

static const wire_case bad[] = {
    {"length and coding", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, NULL},
    {"coding and length", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400, NULL},
    {"two lengths", POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", 400, NULL},
    {"length twice", POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde", 400, NULL},
    {"length list", POST "Content-Length: 5, 5\r\n\r\nabcde", 400, NULL},
    {"signed length", POST "Content-Length: +5\r\n\r\nabcde", 400, NULL},
    {"negative length", POST "Content-Length: -5\r\n\r\nabcde", 400, NULL},
    {"hex length", POST "Content-Length: 0x5\r\n\r\nabcde", 400, NULL},
    {"huge length", POST "Content-Length: 99999999999999999999\r\n\r\nabcde", 400, NULL},
    {"empty length", POST "Content-Length:\r\n\r\n", 400, NULL},
    {"folded header", "GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", 400, NULL},
    {"folded first header", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400, NULL},
    {"space before colon", POST "Content-Length : 5\r\n\r\nabcde", 400, NULL},
    {"tab before colon", POST "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", 400, NULL},
    {"no colon", "GET / HTTP/1.1\r\n" HOST "nonsense\r\n\r\n", 400, NULL},
    {"empty name", "GET / HTTP/1.1\r\n" HOST ": v\r\n\r\n", 400, NULL},
    {"name with slash", "GET / HTTP/1.1\r\n" HOST "a/b: v\r\n\r\n", 400, NULL},
    {"bare lf in head", "GET / HTTP/1.1\nHost: x\r\n\r\n", 400, NULL},
    {"bare lf at end", "GET / HTTP/1.1\r\nHost: x\n\n", 400, NULL},
    {"bare cr in value", "GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n", 400, NULL},
    {"double cr", "GET / HTTP/1.1\r\r\n" HOST "\r\n", 400, NULL},
    {"control in value", "GET / HTTP/1.1\r\n" HOST "X: a\001b\r\n\r\n", 400, NULL},
    {"delete in value", "GET / HTTP/1.1\r\n" HOST "X: a\177b\r\n\r\n", 400, NULL},
    {"xchunked", POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400, NULL},
    {"gzip, chunked", POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, NULL},
    {"chunked, identity", POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400, NULL},
    {"identity", POST "Transfer-Encoding: identity\r\n\r\n", 400, NULL},
    {"vertical tab chunked", POST "Transfer-Encoding: \013chunked\r\n\r\n0\r\n\r\n", 400, NULL},
    {"chunked twice", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
     NULL},
    {"chunked in 1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, NULL},
    {"chunk size sign", POST "Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n", 400, NULL},
    {"chunk size 0x", POST "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", 400, NULL},
    {"chunk size space", POST "Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n", 400, NULL},
    {"chunk size empty", POST "Transfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n", 400, NULL},
    {"chunk size overflow", POST "Transfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n0\r\n\r\n",
     400, NULL},
    {"chunk bare lf", POST "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 400, NULL},
    {"chunk extension bare lf", POST "Transfer-Encoding: chunked\r\n\r\n3;a\nb\r\nabc\r\n0\r\n\r\n", 400,
     NULL},
    {"chunk extension bare cr", POST "Transfer-Encoding: chunked\r\n\r\n3;a\rb\r\nabc\r\n0\r\n\r\n", 400,
     NULL},
    {"chunk too long", POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n", 400, NULL},
    {"chunk end not crlf", POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n", 400, NULL},
    {"bad trailer", POST "Transfer-Encoding: chunked\r\n\r\n0\r\nX : 1\r\n\r\n", 400, NULL},
    {"no host", "GET / HTTP/1.1\r\n\r\n", 400, NULL},
    {"two hosts", "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400, NULL},
    {"host with path", "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n", 400, NULL},
    {"host with user", "GET / HTTP/1.1\r\nHost: a@x\r\n\r\n", 400, NULL},
    {"host with space", "GET / HTTP/1.1\r\nHost: x y\r\n\r\n", 400, NULL},
    {"other host in target", "GET http://y/ HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"authority form", "GET x:80 HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"ftp target", "GET ftp://x/ HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"star for get", "GET * HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"fragment", "GET /a#b HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"high byte in target", "GET /\xff HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"two spaces", "GET  / HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"space in target", "GET /a b HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"tab separator", "GET\t/ HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"bad method", "G@T / HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"method of more than 32 bytes", "AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDDE / HTTP/1.1\r\n" HOST "\r\n", 501,
     NULL},
    {"space before method", " GET / HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"space after version", "GET / HTTP/1.1 \r\n" HOST "\r\n", 400, NULL},
    {"no target", "GET  HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"absolute form without host", "GET http:///a HTTP/1.1\r\nHost:\r\n\r\n", 400, NULL},
    {"absolute form with user", "GET http://a@x/ HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"absolute form in 1.0 without Host", "GET http://x/ HTTP/1.0\r\n\r\n", 400, NULL},
    {"upper-case scheme", "GET HTTP://x/ HTTP/1.1\r\n" HOST "\r\n", 400, NULL},
    {"blank line of spaces", "GET / HTTP/1.1\r\n" HOST "  \r\n\r\n", 400, NULL},
    {"length with a tab inside", POST "Content-Length: 1\t1\r\n\r\nabcdefghijk", 400, NULL},
    {"http 0.9", "GET /\r\n\r\n", 400, NULL},
    {"lower-case version", "GET / http/1.1\r\n" HOST "\r\n", 400, NULL},
    {"http 2 without preface", "GET / HTTP/2.0\r\n" HOST "\r\n", 505, NULL},
    {"http 1.2", "GET / HTTP/1.2\r\n" HOST "\r\n", 505, NULL},
    {"connect", "CONNECT x:443 HTTP/1.1\r\n" HOST "\r\n", 501, NULL},
    {"connect to a path", "CONNECT / HTTP/1.1\r\n" HOST "\r\n", 501, NULL},
    {"unknown expectation", POST "Expect: cake\r\nContent-Length: 1\r\n\r\na", 417, NULL},
    {"tls to a clear port", "\026\003\001\002", 400, NULL},
    {"cut short in head", "GET / HTTP/1.1\r\nHos", 400, NULL},
    {"cut short in body", POST "Content-Length: 5\r\n\r\nab", 400, NULL},
};

static void serves_well_formed_requests(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char *answer = fixture_exchange(&f, good[i].request);
        assert_status(answer, good[i].status, good[i].name);
        if (!strstr(answer, good[i].answer_has)) fail_msg("%s: got: %s", good[i].name, answer);
        free(answer);
    }
    fixture_stop(&f);
}

/* Each is refused once, the connection closes, and what follows it is never read as a request. */
static void refuses_smuggling_forms_and_closes(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bool cut = strncmp(bad[i].name, "cut short", 9) == 0;
        buf b = {0};
        buf_puts(&b, bad[i].request);
        if (!cut) buf_puts(&b, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        char *answer = fixture_exchange_n(&f, b.data, b.len);
        assert_status(answer, bad[i].status, bad[i].name);
        if (strstr(answer, "hello") || count_of(answer, "\r\nDate: ") != 1)
            fail_msg("%s: more than one answer: %s", bad[i].name, answer);
        if (!strstr(answer, "Connection: close\r\n")) fail_msg("%s: stays open", bad[i].name);
        free(answer);
        buf_done(&b);
    }
    assert_int_equal(atomic_load(&f.n_requests), 0);
    fixture_stop(&f);
}

static void refuses_nul_in_a_header(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n";
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    char *answer = fixture_exchange_n(&f, request, sizeof request - 1);
    assert_status(answer, 400, "NUL");
    free(answer);
    fixture_stop(&f);
}

static void answers_the_same_whatever_the_packets(void **state)
{
    static const char request[] =
        POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: 1\r\n\r\n"
             "GET /hello HTTP/1.1\r\n" HOST "\r\n";
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f), on = 1;
    setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
    for (size_t i = 0; i + 1 < sizeof request; i++) {
        send_bytes(fd, request + i, 1);
        if (i % 8 == 0) usleep(500);
    }
    shutdown(fd, SHUT_WR);
    char *answer = read_all(fd, NULL);
    assert_int_equal(count_of(answer, "HTTP/1.1 200 OK\r\n"), 2);
    assert_non_null(strstr(answer, "\r\n\r\nabcde"));
    assert_non_null(strstr(answer, "\r\n\r\nhello\n"));
    free(answer);
    close(fd);
    fixture_stop(&f);
}

static void answers_a_pipeline_in_order(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    char *answer =
        fixture_exchange(&f, "GET /slow HTTP/1.1\r\n" HOST "\r\n"
                             "GET /hello HTTP/1.1\r\n" HOST "\r\n" POST "Content-Length: 3\r\n\r\nend"
                             "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    char *slow = strstr(answer, "slow\n"), *hello = strstr(answer, "hello\n"), *end = strstr(answer, "end");
    char *stream = strstr(answer, "4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n");
    assert_true(slow && slow < hello && hello < end && end < stream);
    assert_int_equal(count_of(answer, "HTTP/1.1 200 OK\r\n"), 4);
    free(answer);
    fixture_stop(&f);
}

static void head_has_length_but_no_body(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    char *answer =
        fixture_exchange(&f, "HEAD /hello HTTP/1.1\r\n" HOST "\r\nHEAD /stream HTTP/1.1\r\n" HOST "\r\n");
    assert_non_null(strstr(answer, "Content-Length: 6\r\n"));
    assert_int_equal(count_of(answer, "HTTP/1.1 200"), 2);
    assert_null(strstr(answer, "hello\n"));
    assert_null(strstr(answer, "three"));
    free(answer);
    fixture_stop(&f);
}

static void keeps_alive_as_the_version_says(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    send_text(fd, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    char *one = read_until(fd, "hello\n");
    assert_null(strstr(one, "Connection: close"));
    assert_non_null(strstr(one, "\r\nConnection: keep-alive\r\nKeep-Alive: timeout=120\r\n"));
    send_text(fd, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    char *two = read_all(fd, NULL);
    assert_non_null(strstr(two, "Connection: close"));
    assert_null(strstr(two, "Keep-Alive"));
    close(fd);
    fd = fixture_connect(&f);
    send_text(fd, "GET /stream HTTP/1.0\r\n\r\n");
    char *old = read_all(fd, NULL); /* delimited by the close */
    assert_null(strstr(old, "Transfer-Encoding"));
    assert_non_null(strstr(old, "\r\n\r\none two three"));
    close(fd);
    free(one);
    free(two);
    free(old);
    fixture_stop(&f);
}

static void reads_connection_as_a_list(void **state)
{
    static const struct {
        const char *lines;
        bool kept_11, kept_10;
    } cases[] = {
        {"", true, false},
        {"Connection: keep-alive\r\n", true, true},
        {"connection: Keep-Alive\r\n", true, true},
        {"Connection: x, keep-alive ,y\r\n", true, true},
        {"Connection: x\r\nConnection: keep-alive\r\n", true, true},
        {"Connection: x-keep-alive\r\n", true, false},
        {"Connection: close\r\n", false, false},
        {"Connection: keep-alive, CLOSE\r\n", false, false},
        {"Connection: keep-alive\r\nConnection: ,,\tclose\r\n", false, false},
        {"Connection: closed\r\n", true, false},
        {"Proxy-Connection: close\r\n", true, false},
    };
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        bool kept = i % 2 ? cases[i / 2].kept_10 : cases[i / 2].kept_11;
        buf b = {0};
        for (int k = 0; k < 2; k++)
            buf_printf(&b, "GET /hello HTTP/1.%d\r\n" HOST "%s\r\n", i % 2 ? 0 : 1, cases[i / 2].lines);
        char *answer = fixture_exchange(&f, b.data);
        if (count_of(answer, "hello\n") != (kept ? 2 : 1)) fail_msg("%s got: %s", b.data, answer);
        free(answer);
        buf_done(&b);
    }
    fixture_stop(&f);
}

static void says_continue_before_a_body(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    static const char head[] = POST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    send_bytes(fd, head, sizeof head - 1);
    char *go = read_until(fd, "100 Continue\r\n\r\n");
    assert_status(go, 100, "expect");
    send_text(fd, "abc");
    char *answer = read_until(fd, "abc");
    assert_status(answer, 200, "expect");
    close(fd);
    free(go);
    free(answer);
    fixture_stop(&f);
}

static void holds_to_its_limits(void **state)
{
    http_limits l = {.max_body_bytes = 10, .max_header_bytes = 200, .max_headers = 3};
    fixture f = {0};
    buf big = {0};
    fixture_start(&f, &l, NULL);
    buf_puts(&big, "GET / HTTP/1.1\r\nHost: x\r\nX: ");
    for (int i = 0; i < 300; i++) buf_putc(&big, 'a');
    const wire_case cases[] = {
        {"long body", POST "Content-Length: 11\r\n\r\nabcdefghijk", 413, NULL},
        {"long expected body", POST "Expect: 100-continue\r\nContent-Length: 11\r\n\r\n", 413, NULL},
        {"long chunks", POST "Transfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n6\r\nabcdef\r\n0\r\n\r\n", 413,
         NULL},
        {"long header without end", big.data, 431, NULL},
        {"many headers", "GET / HTTP/1.1\r\n" HOST "A: 1\r\nB: 2\r\nC: 3\r\n\r\n", 431, NULL},
        {"just fits", POST "Content-Length: 10\r\n\r\nabcdefghij", 200, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *answer = fixture_exchange(&f, cases[i].request);
        assert_status(answer, cases[i].status, cases[i].name);
        free(answer);
    }
    buf_done(&big);
    fixture_stop(&f);
}

static void notices_a_client_that_closes_while_it_waits(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    send_text(fd, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(wait_for(&f.n_requests, 1));
    close(fd);
    assert_true(wait_for(&f.n_gone, 1));
    fixture_stop(&f);
    assert_int_equal(atomic_load(&f.n_gone), 1);
}

static void answers_a_half_closed_client_however_late(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    send_text(fd, "GET /await HTTP/1.1\r\nHost: x\r\n\r\n");
    shutdown(fd, SHUT_WR);
    char *probe = read_until(fd, "\r\n\r\n");
    assert_status(probe, 102, "the probe");
    uv_async_send(&f.answer);
    char *answer = read_all(fd, NULL);
    assert_int_equal(count_of(probe, "HTTP/1.1 200 OK\r\n") + count_of(answer, "HTTP/1.1 200 OK\r\n"), 1);
    assert_non_null(strstr(answer, "\r\n\r\nslow\n"));
    assert_int_equal(atomic_load(&f.n_gone), 0);
    free(probe);
    free(answer);
    close(fd);
    char *old = fixture_exchange(&f, "GET /late HTTP/1.0\r\n\r\n");
    assert_status(old, 200, "no interim responses in 1.0");
    free(old);
    fixture_stop(&f);
}

static void notices_clients_that_close_while_their_streams_rest(void **state)
{
    enum { LEAVERS = 32 };
    fixture f = {0};
    int fd[LEAVERS];
    fixture_start(&f, NULL, NULL);
    int held = fixture_connect(&f);
    send_text(held, "GET /rest HTTP/1.1\r\nHost: x\r\n\r\n");
    free(read_until(held, "one \r\n"));
    for (int i = 0; i < LEAVERS; i++) {
        fd[i] = fixture_connect(&f);
        send_text(fd[i], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
        free(read_until(fd[i], "held\r\n")); /* with bytes unread the system would send a reset */
    }
    for (int i = 0; i < LEAVERS; i++) close(fd[i]);
    assert_true(wait_for(&f.n_gone, LEAVERS));
    uv_async_send(&f.answer);
    char *rest = read_until(held, "0\r\n\r\n");
    assert_string_equal(rest, "3\r\ntwo\r\n0\r\n\r\n");
    free(rest);
    close(held);
    fixture_stop(&f);
    assert_int_equal(atomic_load(&f.n_gone), LEAVERS);
}

/* What follows the first piece of a stream to a half-closed client is zeros and `expected`, whose size they begin. */
static void check_rest(const char *request, const char *expected)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    send_text(fd, request);
    shutdown(fd, SHUT_WR);
    char *begun = read_until(fd, "one \r\n00");
    uv_async_send(&f.answer);
    char *rest = read_all(fd, NULL);
    size_t n_zeros = strspn(rest, "0");
    assert_true(n_zeros >= strspn(expected, "0"));
    assert_string_equal(rest + n_zeros, expected + strspn(expected, "0"));
    assert_int_equal(atomic_load(&f.n_gone), 0);
    free(begun);
    free(rest);
    close(fd);
    fixture_stop(&f);
}

static void streams_to_a_half_closed_client_however_late(void **state)
{
    check_rest("GET /rest HTTP/1.1\r\nHost: x\r\n\r\n", "3\r\ntwo\r\n0\r\n\r\n");
    check_rest("GET /rest-end HTTP/1.1\r\nHost: x\r\n\r\n", "0\r\n\r\n");
}

static void refuses_slow_clients_with_408(void **state)
{
    http_limits slow_ones = {.request_timeout_ms = 60}, idle_ones = {.idle_timeout_ms = 60};
    fixture f = {0}, g = {0};
    fixture_start(&f, &slow_ones, NULL);
    fixture_start(&g, &idle_ones, NULL); /* where nobody else has to begin in time */
    int fd = fixture_connect(&f), idle = fixture_connect(&g), body = fixture_connect(&f);
    send_text(fd, "GET / HTTP/1.1\r\nHo");
    send_text(body, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\na");
    char *slow = read_all(fd, NULL), *nothing = read_all(idle, NULL), *slow_body = read_all(body, NULL);
    assert_status(slow, 408, "slow head");
    assert_status(slow_body, 408, "slow body");
    assert_string_equal(nothing, "");
    free(slow);
    free(nothing);
    free(slow_body);
    close(fd);
    close(idle);
    close(body);
    fixture_stop(&f);
    fixture_stop(&g);
}

static void turns_away_connections_over_the_limit(void **state)
{
    http_limits l = {.max_connections = 1};
    fixture f = {0};
    fixture_start(&f, &l, NULL);
    int first = fixture_connect(&f);
    send_text(first, "GET /await HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(wait_for(&f.n_requests, 1));
    int second = fixture_connect(&f);
    char *answer = read_all(second, NULL);
    assert_status(answer, 503, "second connection");
    free(answer);
    close(second);
    uv_async_send(&f.answer);
    answer = read_until(first, "slow\n");
    assert_status(answer, 200, "first connection");
    free(answer);
    close(first);
    fixture_stop(&f);
}

static void tells_the_handler_once_when_the_client_leaves(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    send_text(fd, "GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
    free(read_until(fd, "200 OK"));
    close(fd);
    assert_true(wait_for(&f.n_gone, 1));
    fixture_stop(&f);
    assert_int_equal(atomic_load(&f.n_gone), 1);
}

static void drops_a_client_that_reads_too_slowly(void **state)
{
    http_limits backlog = {.max_write_backlog = 50000},
                stall = {.write_timeout_ms = 60, .max_write_backlog = 1u << 30};
    const http_limits *limits[] = {&backlog, &stall};
    for (int i = 0; i < 2; i++) {
        fixture f = {0};
        fixture_start(&f, limits[i], NULL);
        int fd = fixture_connect(&f);
        send_text(fd, "GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_true(wait_for(&f.n_gone, 1));
        close(fd);
        fixture_stop(&f);
    }
}

static void closing_the_server_ends_open_requests(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    send_text(fd, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    free(read_until(fd, "held"));
    fixture_stop(&f);
    assert_int_equal(atomic_load(&f.n_gone), 1);
    close(fd);
}

static void drain_finishes_what_runs_and_closes_what_idles(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    int idle = fixture_connect(&f), busy = fixture_connect(&f);
    send_text(idle, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    free(read_until(idle, "hello\n"));
    send_text(busy, "GET /await HTTP/1.1\r\nHost: x\r\n\r\n"); /* answered after the drain has begun */
    assert_true(wait_for(&f.n_requests, 2));
    uv_async_send(&f.drain);
    char *rest = read_all(idle, NULL), *answer = read_all(busy, NULL);
    assert_string_equal(rest, "");
    assert_status(answer, 200, "the running request");
    assert_non_null(strstr(answer, "Connection: close"));
    free(rest);
    free(answer);
    close(idle);
    close(busy);
    assert_true(wait_for(&f.n_drained, 1));
    fixture_stop(&f);
}

static void big_answers_arrive_whole(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    size_t n;
    send_text(fd, "GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    char *answer = read_all(fd, &n);
    assert_true(n > 200000);
    assert_non_null(strstr(answer, "Content-Length: 200000\r\n"));
    free(answer);
    close(fd);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_well_formed_requests),
        cmocka_unit_test(refuses_smuggling_forms_and_closes),
        cmocka_unit_test(refuses_nul_in_a_header),
        cmocka_unit_test(answers_the_same_whatever_the_packets),
        cmocka_unit_test(answers_a_pipeline_in_order),
        cmocka_unit_test(head_has_length_but_no_body),
        cmocka_unit_test(keeps_alive_as_the_version_says),
        cmocka_unit_test(reads_connection_as_a_list),
        cmocka_unit_test(says_continue_before_a_body),
        cmocka_unit_test(holds_to_its_limits),
        cmocka_unit_test(notices_a_client_that_closes_while_it_waits),
        cmocka_unit_test(answers_a_half_closed_client_however_late),
        cmocka_unit_test(notices_clients_that_close_while_their_streams_rest),
        cmocka_unit_test(streams_to_a_half_closed_client_however_late),
        cmocka_unit_test(refuses_slow_clients_with_408),
        cmocka_unit_test(turns_away_connections_over_the_limit),
        cmocka_unit_test(tells_the_handler_once_when_the_client_leaves),
        cmocka_unit_test(drops_a_client_that_reads_too_slowly),
        cmocka_unit_test(closing_the_server_ends_open_requests),
        cmocka_unit_test(drain_finishes_what_runs_and_closes_what_idles),
        cmocka_unit_test(big_answers_arrive_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
