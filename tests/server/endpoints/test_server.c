/* The front door over a real loopback socket, with workers that are not there: what it answers itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "logging/log.h"
#include "base/sha256.h"
#include "endpoints/table.h"
#include "gateway/gateway.h"
#include "request/gateway_state.h"
#include "time/env_sim.h"

enum { TURN_MS = 1 }; /* that pass in a turn of the loop */

typedef struct house {
    uv_loop_t loop;
    env_sim *sim; /* the gateway's time; sockets take their own */
    registry *g;
    gateway_config config;
    gateway *gw;
    source *members;
    char reply[65536];
    size_t n_reply;
} house;

static void put(house *h, const char *model, const char *id, replica_state state, const char *reason)
{
    member m = {.id = id,
                .generation = 1,
                .model = model,
                .address = "unix:/nonexistent/w",
                .state = state,
                .reason = reason};
    assert_int_equal(source_put(h->members, &m, NULL), 0);
}

static void open_house(house *h, const gateway_config *config)
{
    shoal_err err = {0};
    memset(h, 0, sizeof *h);
    h->sim = env_sim_new(1);
    h->config = *config;
    h->config.listen = "127.0.0.1:0";
    assert_int_equal(uv_loop_init(&h->loop), 0);
    connector how = connector_grpc(&h->loop);
    assert_int_equal(registry_new_with(&h->g, env_sim_env(h->sim), &how, &err), 0);
    assert_int_equal(source_open(&h->members, h->g, "test", &err), 0);
    put(h, "broken", "broken/0", REPLICA_FAILED, "broken.gguf: the digest differs from the pinned one");
    put(h, "slow", "slow/0", REPLICA_STARTING, NULL);
    source_synced(h->members);
    if (gateway_new(&h->gw, &h->loop, h->g, &h->config, &ENDPOINTS, &err) != 0) fail_msg("%s", err.message);
}

static void close_house(house *h)
{
    gateway_free(h->gw);
    registry_free(h->g);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    assert_int_equal(env_sim_timers(h->sim), 0);
    env_sim_free(h->sim);
}

static int dial(const house *h)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)gateway_port(h->gw)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static int send_request(house *h, const char *head, const char *body)
{
    char text[8192];
    int fd = dial(h);
    int n = snprintf(text, sizeof text,
                     "%s\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %zu\r\n\r\n%s", head,
                     strlen(body), body);
    assert_int_equal(send(fd, text, (size_t)n, 0), n);
    return fd;
}

static void turn(house *h)
{
    uv_run(&h->loop, UV_RUN_NOWAIT);
    env_sim_run(h->sim, TURN_MS);
    usleep(200);
}

/* Everything until the server closes; returns the status. */
static int receive(house *h, int fd)
{
    h->n_reply = 0;
    for (;;) {
        turn(h);
        ssize_t n = recv(fd, h->reply + h->n_reply, sizeof h->reply - 1 - h->n_reply, MSG_DONTWAIT);
        if (n == 0) break;
        if (n > 0) h->n_reply += (size_t)n;
    }
    close(fd);
    h->reply[h->n_reply] = '\0';
    int status = 0;
    sscanf(h->reply, "HTTP/1.1 %d", &status);
    return status;
}

static int ask(house *h, const char *head, const char *body)
{
    return receive(h, send_request(h, head, body));
}

static void expect(house *h, const char *head, const char *body, int status, const char *part)
{
    int got = ask(h, head, body);
    if (got != status || !strstr(h->reply, part))
        print_error("%s\n%s\nwanted %d and %s, got:\n%s\n", head, body, status, part, h->reply);
    assert_int_equal(got, status);
    assert_non_null(strstr(h->reply, part));
}

#define CHAT        "POST /v1/chat/completions HTTP/1.1"
#define PATIENT     "\r\nx-shoal-deadline-ms: 600000" /* what waits for a worker ends by itself without it */
#define BODY(model) "{\"model\":\"" model "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"

static void gateway_refuses_in_the_openai_form(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    expect(&h, "GET /nothing HTTP/1.1", "", 404, "\"code\":\"not_found\"");
    expect(&h, "POST /v1/chat/completion HTTP/1.1", "", 404, "did you mean POST /v1/chat/completions?");
    expect(&h, "GET /v1/chat/completions HTTP/1.1", "", 405, "allow: POST\r\n");
    expect(&h, "POST /healthz HTTP/1.1", "", 405, "\"code\":\"method_not_allowed\"");
    expect(&h, "QUERY /healthz HTTP/1.1", "", 405, "allow: GET, HEAD\r\n");
    expect(&h, "get /healthz HTTP/1.1", "", 405, "get is not allowed here; use GET, HEAD");
    expect(&h, "PRI /nothing HTTP/1.1", "", 404, "\"code\":\"not_found\"");
    expect(&h, "HEAD /healthz HTTP/1.1", "", 200, "Content-Length: ");
    expect(&h, CHAT, "{", 400, "\"type\":\"invalid_request_error\"");
    expect(&h, CHAT, "", 400, "\"message\":\"body is empty, must be JSON\"");
    expect(&h, CHAT, "{\"n\":0,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", 400,
           "\\\"n\\\" is 0, must be between 1 and 32");
    expect(&h, CHAT, "{\"max_tokens\":-5,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", 400,
           "\\\"max_tokens\\\" is -5, must be -1 or more");
    expect(&h, CHAT, BODY("nobody"), 404, "\"code\":\"model_not_found\"");
    expect(&h, CHAT, BODY("nobody"), 404, "none that does \\\"generate\\\" is served");
    expect(&h, "POST /v1/embeddings HTTP/1.1", "{\"model\":\"slow\",\"input\":5}", 400,
           "\\\"input\\\" must be text, an array of token ids or an array of these\"");
    expect(&h, CHAT, "{\"model\":\"slow\",\"messages\":[]}", 400, "\"param\":\"messages\"");
    expect(&h, "POST /v1/embeddings HTTP/1.1", "{\"input\":\"x\"}", 400, "\"param\":\"model\"");
    expect(&h, "POST /v1/embeddings HTTP/1.1", "{\"model\":\"slow\",\"input\":[[1,-2]]}", 400, "token ids");
    expect(&h, "POST /v1/classify HTTP/1.1", "{\"input\":\"x\"}", 400, "\"param\":\"model\"");
    expect(&h, "POST /v1/tag HTTP/1.1", "{\"model\":\"slow\",\"input\":[]}", 400, "\"param\":\"input\"");
    expect(&h, "GET /v1/models/nobody HTTP/1.1", "", 404, "model_not_found");
    close_house(&h);
}

static void gateway_refuses_in_the_form_of_the_paths_clients(void **state)
{
    house h;
    gateway_config c = {.limits.max_body_bytes = 16};
    open_house(&h, &c);
    static const char LONG[] = "{\"model\":\"a longer body than may come\"}";
    expect(&h, "GET /api/chat HTTP/1.1", "", 405, "{\"error\":\"GET is not allowed here");
    expect(&h, "POST /api/nothing HTTP/1.1", "", 404, "{\"error\":\"there is nothing at");
    expect(&h, "POST /api/chat HTTP/1.1", LONG, 413, "{\"error\":\"");
    expect(&h, "POST /api/show HTTP/1.1", "{\"model\":\"x\"}", 404, "GET /api/tags lists those that do");
    expect(&h, "GET /v2/nothing HTTP/1.1", "", 404, "{\"error\":\"there is nothing at");
    expect(&h, "POST /v2/models/m/infer HTTP/1.1", LONG, 413, "{\"error\":\"");
    expect(&h, "GET /completion HTTP/1.1", "", 405, "{\"error\":{\"code\":405,");
    expect(&h, "POST /completion HTTP/1.1", LONG, 413, "{\"error\":{\"code\":413,");
    expect(&h, "POST /v1/completions HTTP/1.1", LONG, 413, "\"code\":\"request_too_large\"");
    expect(&h, "GET /nothing HTTP/1.1", "", 404, "\"code\":\"not_found\"");
    close_house(&h);
}

static void gateway_says_which_source_hears_nothing(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    expect(&h, "GET /readyz HTTP/1.1", "", 503,
           "\"sources\":[{\"name\":\"test\",\"synced\":true,\"trouble\":\"\"}]");
    source_away(h.members, "the name server does not answer");
    expect(&h, "GET /readyz HTTP/1.1", "", 503,
           "\"synced\":true,\"trouble\":\"the name server does not answer\"");
    close_house(&h);
}

static void gateway_says_why_a_model_is_not_served(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    expect(&h, CHAT, BODY("broken"), 503, "the digest differs");
    assert_non_null(strstr(h.reply, "retry-after: 1\r\n"));
    assert_non_null(strstr(h.reply, "\"code\":\"worker_unavailable\""));
    expect(&h, "GET /v1/models/slow HTTP/1.1", "", 503, "worker_unavailable");
    expect(&h, "GET /readyz HTTP/1.1", "", 503,
           "\"state\":\"failed\",\"reason\":\"broken.gguf: the digest differs");
    expect(&h, "GET /v1/models HTTP/1.1", "", 200, "{\"id\":\"broken\",\"object\":\"model\"");
    expect(&h, "GET /healthz HTTP/1.1", "", 200, "{\"status\":\"ok\"}");
    close_house(&h);
}

static void gateway_names_each_request(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    expect(&h, "GET /healthz HTTP/1.1\r\nx-request-id: my-id-7", "", 200, "x-request-id: my-id-7\r\n");
    ask(&h, "GET /healthz HTTP/1.1\r\nx-request-id: two words", "");
    assert_null(strstr(h.reply, "two words"));
    char *made = strstr(h.reply, "x-request-id: ");
    assert_non_null(made);
    assert_int_equal(strspn(made + 14, "0123456789abcdef"), 16);
    close_house(&h);
}

static void gateway_takes_traces_up(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    expect(&h,
           "GET /healthz HTTP/1.1\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "", 200, "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-");
    assert_null(strstr(h.reply, "00f067aa0ba902b7"));
    expect(&h, "GET /nothing HTTP/1.1\r\ntraceparent: new", "", 404, "traceparent: 00-");
    ask(&h, "GET /healthz HTTP/1.1", "");
    assert_null(strstr(h.reply, "traceparent"));
    close_house(&h);
}

static void gateway_keeps_deadlines(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    expect(&h, CHAT "\r\nx-shoal-deadline-ms: 0", BODY("slow"), 504, "deadline_unmeetable");
    static const char *const NONE[] = {"-1", "+5", "1.5", "5ms", "0x10", "86400001", "1e3", "007", ""};
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
        char head[128];
        snprintf(head, sizeof head, CHAT "\r\nx-shoal-deadline-ms: %s", NONE[i]);
        expect(&h, head, BODY("slow"), 400, "\"param\":\"x-shoal-deadline-ms\"");
    }
    expect(&h, CHAT "\r\nx-shoal-max-cost: 1e3", BODY("slow"), 400, "\"param\":\"x-shoal-max-cost\"");
    expect(&h, CHAT "\r\nx-shoal-max-energy-j: +1", BODY("slow"), 400, "\"param\":\"x-shoal-max-energy-j\"");
    expect(&h, CHAT "\r\nx-shoal-deadline-ms: soon", BODY("slow"), 400, "x-shoal-deadline-ms");
    expect(&h, CHAT "\r\nx-shoal-deadline-ms: 30", BODY("slow"), 504, "deadline_exceeded");
    assert_non_null(strstr(h.reply, "it was 30 ms, by the request (x-shoal-deadline-ms)"));
    close_house(&h);
}

static void gateway_waits_a_little_for_a_worker_that_starts(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    int fd = send_request(&h, CHAT PATIENT, BODY("slow"));
    while (h.gw->n_admitted == 0) turn(&h);
    for (int i = 0; i < 100; i++) turn(&h);
    assert_int_equal(h.gw->n_admitted, 1); /* held, not refused */
    put(&h, "slow", "slow/0", REPLICA_FAILED, "no such file");
    assert_int_equal(receive(&h, fd), 503);
    assert_non_null(strstr(h.reply, "no such file"));
    close_house(&h);
}

static void gateway_limits_requests_and_forgets_clients_that_left(void **state)
{
    house h;
    open_house(&h, &(gateway_config){.max_requests = 1});
    int fd = send_request(&h, CHAT PATIENT, BODY("slow"));
    while (h.gw->n_admitted == 0) turn(&h);
    expect(&h, CHAT, BODY("slow"), 429, "retry-after: 1\r\n");
    expect(&h, "GET /healthz HTTP/1.1", "", 200, "ok");
    /* A reset, since a plain close looks like a client that has sent all and still reads. */
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)), 0);
    close(fd);
    while (h.gw->n_admitted > 0) turn(&h);
    assert_true(metrics_get(h.gw->metrics, METRIC_GONE, "chat_completions", NULL, NULL) == 1);
    close_house(&h);
}

static void gateway_limits_bodies(void **state)
{
    house h;
    char big[2048];
    memset(big, ' ', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    open_house(&h, &(gateway_config){.limits = {.max_body_bytes = 1024}});
    expect(&h, CHAT, big, 413, "\"code\":\"request_too_large\"");
    assert_non_null(strstr(h.reply, "x-request-id: "));
    assert_non_null(strstr(h.reply, "vary: origin\r\n"));
    assert_null(strstr(h.reply, "access-control-allow-origin"));
    close_house(&h);
}

/* A page must be able to read why, also where there never was a request. */
static void gateway_lets_allowed_origins_read_early_refusals(void **state)
{
    static const char PAGE[] = "\r\norigin: http://localhost:3000\r\nx-request-id: mine";
    static const struct {
        const char *head;
        int status;
    } CASES[] = {{CHAT, 413}, {CHAT "\r\ncontent-length: 5", 400}, {CHAT "\r\nbad header: x", 400}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        house h;
        char head[400], big[2048];
        memset(big, ' ', sizeof big - 1);
        big[sizeof big - 1] = '\0';
        const char *line = strstr(CASES[i].head, "\r\n");
        snprintf(head, sizeof head, CHAT "%s%s", PAGE, line ? line : "");
        open_house(&h, &(gateway_config){.limits = {.max_body_bytes = 1024}});
        expect(&h, head, big, CASES[i].status, "access-control-allow-origin: http://localhost:3000\r\n");
        assert_non_null(strstr(h.reply, "x-request-id: mine\r\n"));
        assert_non_null(strstr(h.reply, "access-control-expose-headers: age, x-request-id"));
        expect(&h, CHAT "\r\norigin: https://evil.example", big, 413, "vary: origin");
        assert_null(strstr(h.reply, "access-control-allow-origin"));
        close_house(&h);
    }
}

static void gateway_asks_for_keys_where_configured(void **state)
{
    house h;
    char entry[80] = "sha256:";
    config_key keys[] = {{.sha256 = entry, .name = "", .admin = true}};
    sha256_digest d;
    sha256_of("sesame", 6, &d);
    sha256_hex(&d, entry + 7);
    open_house(&h, &(gateway_config){.api_keys = keys, .n_api_keys = 1});
    expect(&h, "GET /v1/models HTTP/1.1", "", 401, "\"code\":\"invalid_api_key\"");
    expect(&h, "GET /v1/models HTTP/1.1\r\nauthorization: Bearer wrong", "", 401,
           "www-authenticate: Bearer\r\n");
    expect(&h, "GET /v1/models HTTP/1.1\r\nauthorization: Bearer sesame", "", 200, "\"object\":\"list\"");
    expect(&h, "GET /healthz HTTP/1.1", "", 200, "ok");
    expect(&h, "GET /metrics HTTP/1.1", "", 401, "\"code\":\"invalid_api_key\"");
    expect(&h, "GET /metrics HTTP/1.1\r\nauthorization: Bearer sesame", "", 200,
           "shoal_requests_total{endpoint=\"models\",model=\"\",code=\"401\"} 2\n");
    close_house(&h);
}

static gateway_config *parsed(const char *more)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    char text[2048];
    snprintf(text, sizeof text, "models: [{name: slow, path: x}]\n%s", more);
    if (config_parse(&c, NULL, text, strlen(text), "t.yaml", &err) != 0) fail_msg("%s", err.message);
    return c;
}

static size_t n_settings(const house *h)
{
    size_t n = 0;
    for (const settings *s = h->gw->all_settings; s; s = s->next) n++;
    return n;
}

/* The request that waits goes on with the settings that it came with, and takes them away. */
static void gateway_takes_another_configuration(void **state)
{
    house h;
    open_house(&h, &(gateway_config){.max_requests = 9});
    const char *KEYED =
        "limits: {max_requests: 2}\napi_keys: ['me=sha256:"
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08']\n"; /* of "test" */
    int fd = send_request(&h, CHAT PATIENT, BODY("slow"));
    while (h.gw->n_admitted == 0) turn(&h);
    gateway_config *next = parsed(KEYED);
    assert_int_equal(gateway_reload(h.gw, next, NULL), 0);
    assert_ptr_equal(gateway_config_now(h.gw), next);
    assert_int_equal(n_settings(&h), 2);
    expect(&h, "GET /v1/models HTTP/1.1", "", 401, "invalid_api_key");
    expect(&h, "GET /v1/models HTTP/1.1\r\nauthorization: Bearer test", "", 200, "slow");
    for (int i = 0; i < 5; i++) assert_int_equal(gateway_reload(h.gw, parsed(KEYED), NULL), 0);
    for (int i = 0; i < 50; i++) turn(&h);
    assert_int_equal(n_settings(&h), 2); /* the first, which the request has, and the last */
    put(&h, "slow", "slow/0", REPLICA_FAILED, "no such file");
    assert_int_equal(receive(&h, fd), 503);
    while (n_settings(&h) > 1) turn(&h);
    close_house(&h);
}

static void gateway_keeps_its_configuration_when_the_next_is_wrong(void **state)
{
    house h;
    shoal_err err = {0};
    open_house(&h, &(gateway_config){0});
    gateway_config *bad = parsed("api_keys:\n  - name: me\n    sha256: "
                                 "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"
                                 "    endpoints: [classifi]\n");
    assert_int_equal(gateway_reload(h.gw, bad, &err), SHOAL_EINVALID);
    assert_string_equal(err.message,
                        "t.yaml:5: api_keys[0].endpoints[0]: there is no endpoint 'classifi'; did you "
                        "mean 'classify'?");
    config_free(bad);
    assert_ptr_equal(gateway_config_now(h.gw), &h.config);
    expect(&h, "GET /v1/models HTTP/1.1", "", 200, "slow");
    assert_int_equal(n_settings(&h), 1);
    close_house(&h);
}

static void gateway_shows_workers_in_metrics(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    expect(&h, "GET /metrics HTTP/1.1", "", 200,
           "shoal_worker_up{model=\"broken\",replica=\"broken/0\"} 0\n");
    assert_non_null(strstr(h.reply, "content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert_non_null(strstr(h.reply, "shoal_requests_in_flight 1\n"));
    close_house(&h);
}

/* A scraper that asks again at once gets the same text: writing it is not for free. */
static void gateway_writes_metrics_once_a_second(void **state)
{
    static const char COUNTED[] = "shoal_requests_total{endpoint=\"healthz\",model=\"\",code=\"200\"} ";
    house h;
    open_house(&h, &(gateway_config){0});
    expect(&h, "GET /healthz HTTP/1.1", "", 200, "ok");
    expect(&h, "GET /metrics HTTP/1.1", "", 200, COUNTED);
    expect(&h, "GET /healthz HTTP/1.1", "", 200, "ok");
    expect(&h, "GET /metrics HTTP/1.1", "", 200, COUNTED);
    assert_int_equal(strstr(h.reply, COUNTED)[sizeof COUNTED - 1], '1');
    env_sim_run(h.sim, 1000);
    expect(&h, "GET /metrics HTTP/1.1", "", 200, COUNTED);
    assert_int_equal(strstr(h.reply, COUNTED)[sizeof COUNTED - 1], '2');
    close_house(&h);
}

static void gateway_tells_allowed_pages_that_they_are(void **state)
{
    house h;
    const char *pages[] = {"https://app.example"};
    open_house(&h, &(gateway_config){.allow_origins = pages, .n_allow_origins = 1});
    expect(&h, "GET /healthz HTTP/1.1\r\norigin: https://app.example", "", 200,
           "access-control-allow-origin: https://app.example\r\n");
    expect(&h, "OPTIONS /v1/chat/completions HTTP/1.1\r\norigin: https://app.example", "", 204,
           "access-control-allow-methods: POST\r\n");
    expect(&h, "OPTIONS /nothing HTTP/1.1\r\norigin: https://app.example", "", 404, "not_found");
    expect(&h, "OPTIONS /v1/chat/completions HTTP/1.1", "", 405, "method_not_allowed");
    close_house(&h);
}

/* The browser shows a page why it is refused: the preflight passes, and the request itself is the one to fail. */
static void gateway_tells_refused_pages_why(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    expect(&h, "OPTIONS /v1/chat/completions HTTP/1.1\r\norigin: https://evil.example", "", 204,
           "access-control-allow-origin: https://evil.example\r\n");
    expect(&h, "POST /v1/chat/completions HTTP/1.1\r\norigin: https://evil.example", "{}", 403,
           "write allow_origins: [\\\"https://evil.example\\\"]");
    assert_non_null(strstr(h.reply, "access-control-allow-origin: https://evil.example\r\n"));
    expect(&h, "GET /healthz HTTP/1.1\r\norigin: http://localhost:3000", "", 200,
           "access-control-allow-origin: http://localhost:3000\r\n");
    assert_non_null(strstr(h.reply, "vary: origin\r\n"));
    expect(&h, "GET /healthz HTTP/1.1", "", 200, "vary: origin\r\n");
    assert_null(strstr(h.reply, "access-control-allow-origin"));
    close_house(&h);
}

/* What a page loads: told apart by its tag, packed for those who take it, and held to this server. */
static void gateway_serves_what_pages_load(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    expect(&h, "GET /assets/icon.svg HTTP/1.1", "", 200, "<svg ");
    assert_non_null(strstr(h.reply, "content-type: image/svg+xml\r\n"));
    assert_non_null(strstr(h.reply, "content-security-policy: default-src 'none'; script-src 'self';"));
    assert_null(strstr(h.reply, "content-encoding"));
    char etag[64], head[256];
    const char *at = strstr(h.reply, "etag: ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "etag: %63[^\r]", etag), 1);
    assert_memory_equal(etag, "W/\"", 3);
    snprintf(head, sizeof head, "GET /assets/icon.svg HTTP/1.1\r\nif-none-match: \"other\", %s", etag);
    expect(&h, head, "", 304, etag);
    expect(&h, "GET /assets/icon.svg HTTP/1.1\r\nif-none-match: \"other\"", "", 200, "<svg ");
    expect(&h, "GET /assets/icon.svg HTTP/1.1\r\naccept-encoding: gzip", "", 200, "content-encoding: gzip");
    assert_null(strstr(h.reply, "<svg "));
    expect(&h, "GET /assets/icon.svg HTTP/1.1\r\naccept-encoding: gzip;q=0", "", 200, "<svg ");
    expect(&h, "GET /assets/../icon.svg HTTP/1.1", "", 404, "there is nothing at /assets/../icon.svg");
    expect(&h, "GET /assets/ HTTP/1.1", "", 404, "not_found");
    expect(&h, "POST /assets/icon.svg HTTP/1.1", "", 405, "allow: GET, HEAD\r\n");
    close_house(&h);
}

static void note_done(void *user)
{
    *(bool *)user = true;
}

static void gateway_drains_running_requests(void **state)
{
    house h;
    bool done = false;
    open_house(&h, &(gateway_config){0});
    int fd = send_request(&h, CHAT PATIENT, BODY("slow"));
    while (h.gw->n_admitted == 0) turn(&h);
    gateway_drain(h.gw, note_done, &done);
    turn(&h);
    assert_false(done); /* one is still being answered */
    put(&h, "slow", "slow/0", REPLICA_FAILED, "no such file");
    assert_int_equal(receive(&h, fd), 503);
    while (!done) turn(&h);
    close_house(&h);
}

static void gateway_freed_with_requests_open_leaves_nothing(void **state)
{
    house h;
    open_house(&h, &(gateway_config){0});
    int fd = send_request(&h, CHAT, BODY("slow"));
    int half = dial(&h);
    assert_int_equal(send(half, "POST /v1/chat", 13, 0), 13);
    while (h.gw->n_admitted == 0) turn(&h);
    close_house(&h);
    close(fd);
    close(half);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gateway_refuses_in_the_openai_form),
        cmocka_unit_test(gateway_refuses_in_the_form_of_the_paths_clients),
        cmocka_unit_test(gateway_says_which_source_hears_nothing),
        cmocka_unit_test(gateway_says_why_a_model_is_not_served),
        cmocka_unit_test(gateway_names_each_request),
        cmocka_unit_test(gateway_takes_traces_up),
        cmocka_unit_test(gateway_keeps_deadlines),
        cmocka_unit_test(gateway_waits_a_little_for_a_worker_that_starts),
        cmocka_unit_test(gateway_limits_requests_and_forgets_clients_that_left),
        cmocka_unit_test(gateway_limits_bodies),
        cmocka_unit_test(gateway_lets_allowed_origins_read_early_refusals),
        cmocka_unit_test(gateway_asks_for_keys_where_configured),
        cmocka_unit_test(gateway_takes_another_configuration),
        cmocka_unit_test(gateway_keeps_its_configuration_when_the_next_is_wrong),
        cmocka_unit_test(gateway_shows_workers_in_metrics),
        cmocka_unit_test(gateway_writes_metrics_once_a_second),
        cmocka_unit_test(gateway_tells_allowed_pages_that_they_are),
        cmocka_unit_test(gateway_tells_refused_pages_why),
        cmocka_unit_test(gateway_serves_what_pages_load),
        cmocka_unit_test(gateway_drains_running_requests),
        cmocka_unit_test(gateway_freed_with_requests_open_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
