/* What a gateway shows of itself while it runs: the cluster as it changes, and the requests that it has
 * answered. */
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
#include "endpoints/table.h"
#include "gateway/gateway.h"
#include "request/gateway_state.h"
#include "observe/live.h"
#include "observe/recent.h"
#include "time/env_sim.h"

enum { TURN_MS = 10 }; /* that pass in a turn of the loop */

typedef struct house {
    uv_loop_t loop;
    env_sim *sim; /* the gateway's time; sockets take their own */
    registry *g;
    gateway_config config;
    gateway *gw;
    source *members;
    char reply[1 << 20];
    size_t n_reply;
    const char *from; /* of the next connection; NULL: the system's choice */
} house;

static void put(house *h, const char *id, uint64_t life, replica_state state, const char *reason)
{
    member m = {.id = id,
                .generation = life,
                .model = "slow",
                .address = "unix:/nonexistent/w",
                .state = state,
                .reason = reason};
    assert_int_equal(source_put(h->members, &m, NULL), 0);
}

static house *open_house(const gateway_config *config)
{
    shoal_err err = {0};
    house *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->sim = env_sim_new(1);
    h->config = *config;
    h->config.listen = "127.0.0.1:0";
    assert_int_equal(uv_loop_init(&h->loop), 0);
    connector how = connector_grpc(&h->loop);
    assert_int_equal(registry_new_with(&h->g, env_sim_env(h->sim), &how, &err), 0);
    assert_int_equal(source_open(&h->members, h->g, "test", &err), 0);
    put(h, "slow/0", 1, REPLICA_STARTING, NULL);
    put(h, "slow/1", 1, REPLICA_STARTING, NULL);
    source_synced(h->members);
    if (gateway_new(&h->gw, &h->loop, h->g, &h->config, &ENDPOINTS, &err) != 0) fail_msg("%s", err.message);
    return h;
}

static void close_house(house *h)
{
    gateway_free(h->gw);
    registry_free(h->g);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    assert_int_equal(env_sim_timers(h->sim), 0);
    env_sim_free(h->sim);
    free(h);
}

static int ask(house *h, const char *head, const char *body)
{
    char text[8192];
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)gateway_port(h->gw)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    struct sockaddr_in from = {.sin_family = AF_INET};
    if (h->from) {
        inet_pton(AF_INET, h->from, &from.sin_addr);
        assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    }
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    int n = snprintf(text, sizeof text,
                     "%s\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %zu\r\n\r\n%s", head,
                     strlen(body), body);
    assert_int_equal(send(fd, text, (size_t)n, 0), n);
    h->n_reply = 0;
    h->reply[0] = '\0';
    return fd;
}

/* One turn of the loop, and what has come by then; false: the server closed. */
static bool turn(house *h, int fd)
{
    uv_run(&h->loop, UV_RUN_NOWAIT);
    env_sim_run(h->sim, TURN_MS);
    usleep(200);
    ssize_t n = recv(fd, h->reply + h->n_reply, sizeof h->reply - 1 - h->n_reply, MSG_DONTWAIT);
    if (n > 0) h->n_reply += (size_t)n;
    h->reply[h->n_reply] = '\0';
    return n != 0;
}

static void receive(house *h, int fd)
{
    while (turn(h, fd)) {
    }
    close(fd);
}

/* Until this text has come, which may be at most so late. */
static void hear(house *h, int fd, const char *part)
{
    for (int i = 0; i < 50000; i++) {
        if (strstr(h->reply, part)) return;
        assert_true(turn(h, fd));
    }
    fail_msg("'%s' did not come; this did:\n%s", part, h->reply);
}

static void live_tells_all_then_what_changes(void **state)
{
    house *h = open_house(&(gateway_config){0});
    int fd = ask(h, "GET /v1/events HTTP/1.1", "");
    hear(h, fd, "\"gone\":[]}\n\n");
    assert_non_null(strstr(h->reply, "content-type: text/event-stream"));
    assert_non_null(strstr(h->reply, "event: status\ndata: {\"at\":"));
    assert_non_null(strstr(h->reply, "\"gateway\":{\"status\":\"not_ready\""));
    assert_non_null(strstr(h->reply, "\"nodes\":[{\"name\":\"\",\"host\":\""));
    assert_non_null(strstr(h->reply, "{\"id\":\"slow/0\""));
    assert_non_null(strstr(h->reply, "{\"id\":\"slow/1\""));
    h->n_reply = 0;
    put(h, "slow/1", 1, REPLICA_FAILED, "slow.gguf: it is no file");
    hear(h, fd, "it is no file");
    assert_null(strstr(h->reply, "slow/0")); /* which is as it was */
    h->n_reply = 0;
    source_drop(h->members, "slow/1", 1);
    hear(h, fd, "\"gone\":[\"replica slow/1\"]");
    h->n_reply = 0;
    put(h, "slow/1", 2, REPLICA_STARTING, "it is back");
    hear(h, fd, "it is back");
    close(fd);
    while (h->gw->requests) turn(h, -1);
    close_house(h);
}

static void live_rests_while_nobody_listens_and_ends_with_the_gateway(void **state)
{
    house *h = open_house(&(gateway_config){0});
    int fd = ask(h, "GET /v1/events HTTP/1.1", "");
    hear(h, fd, "slow/0");
    gateway_drain(h->gw, NULL, NULL);
    receive(h, fd);
    assert_null(h->gw->requests);
    assert_int_equal(h->n_reply > 5 ? memcmp(h->reply + h->n_reply - 5, "0\r\n\r\n", 5) : 1,
                     0); /* a whole answer */
    close_house(h);
}

static void live_lets_a_bounded_number_listen(void **state)
{
    int fds[LIVE_LISTENERS_MAX];
    house *h = open_house(&(gateway_config){0});
    for (int i = 0; i < LIVE_LISTENERS_MAX; i++) {
        h->from = i < LIVE_LISTENERS_OF_ONE ? "127.0.0.1" : "127.0.0.2";
        fds[i] = ask(h, "GET /v1/events HTTP/1.1", "");
        hear(h, fds[i], "slow/0");
        if (i != LIVE_LISTENERS_OF_ONE - 1) continue;
        receive(h, ask(h, "GET /v1/events HTTP/1.1", ""));
        assert_non_null(strstr(h->reply, "HTTP/1.1 429"));
        assert_non_null(strstr(h->reply, "this client listens 32 times"));
    }
    h->from = "127.0.0.3";
    receive(h, ask(h, "GET /v1/events HTTP/1.1", ""));
    assert_non_null(strstr(h->reply, "HTTP/1.1 429"));
    assert_non_null(strstr(h->reply, "64 clients listen"));
    for (int i = 0; i < LIVE_LISTENERS_MAX; i++) close(fds[i]);
    close_house(h);
}

static void recent_keeps_what_became_of_requests_and_not_what_was_asked(void **state)
{
    house *h = open_house(&(gateway_config){0});
    receive(h, ask(h, "POST /v1/chat/completions HTTP/1.1\r\nx-request-id: first",
                   "{\"model\":\"nobody\",\"messages\":[]}"));
    receive(h, ask(h, "POST /v1/tag HTTP/1.1\r\nx-request-id: second\r\nx-shoal-deadline-ms: 0",
                   "{\"model\":\"slow\",\"input\":\"a secret\"}"));
    receive(h, ask(h, "GET /nowhere HTTP/1.1", ""));
    receive(h, ask(h, "GET /v1/models HTTP/1.1", ""));
    receive(h, ask(h, "GET /v1/requests HTTP/1.1", ""));
    assert_non_null(strstr(h->reply, "\"last\":3,\"kept\":512,\"prompts\":false"));
    const char *nowhere = strstr(h->reply, "{\"number\":3,"), *second = strstr(h->reply, "{\"number\":2,"),
               *first = strstr(h->reply, "{\"number\":1,");
    assert_true(nowhere && second && first && nowhere < second && second < first);
    assert_non_null(strstr(second, "\"endpoint\":\"tag\",\"status\":504"));
    assert_non_null(strstr(second, "\"id\":\"second\""));
    assert_null(strstr(h->reply, "secret"));
    receive(h, ask(h, "GET /v1/requests?status=504 HTTP/1.1", ""));
    assert_non_null(strstr(h->reply, "\"data\":[{\"number\":2,"));
    assert_null(strstr(h->reply, "\"number\":1,"));
    receive(h, ask(h, "GET /v1/requests?status=4xx&endpoint=tag HTTP/1.1", ""));
    assert_non_null(strstr(h->reply, "\"data\":[]"));
    receive(h, ask(h, "GET /v1/requests?since=2&status=error HTTP/1.1", ""));
    assert_non_null(strstr(h->reply, "\"data\":[{\"number\":3,"));
    assert_null(strstr(h->reply, "\"number\":2,"));
    receive(h, ask(h, "GET /v1/requests?limit=1 HTTP/1.1", ""));
    assert_null(strstr(h->reply, "\"number\":2,"));
    const char *const wrong[] = {"status=xyz", "status=99", "status=6xx", "slow_ms=-1",
                                 "since=abc",  "limit=0",   "limit=1000"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char head[64];
        snprintf(head, sizeof head, "GET /v1/requests?%s HTTP/1.1", wrong[i]);
        receive(h, ask(h, head, ""));
        assert_non_null(strstr(h->reply, "HTTP/1.1 400"));
    }
    close_house(h);
}

static void recent_keeps_a_bounded_beginning_where_the_operator_says_so(void **state)
{
    house *h = open_house(&(gateway_config){.log_prompts = true});
    char body[4000];
    snprintf(body, sizeof body, "{\"model\":\"slow\",\"input\":\"my words %.*d\"}", RECENT_ASKED_MAX, 7);
    receive(h, ask(h, "POST /v1/tag HTTP/1.1\r\nx-shoal-deadline-ms: 1", body));
    receive(h, ask(h, "GET /v1/requests HTTP/1.1", ""));
    const char *asked = strstr(h->reply, "\"asked\":\"");
    assert_non_null(asked);
    assert_non_null(strstr(asked, "my words 000"));
    assert_null(strstr(asked, "0007\\\"")); /* the end */
    close_house(h);
}

static void recent_forgets_the_oldest(void **state)
{
    recent *r = recent_new();
    buf out = {0};
    env_sim *sim = env_sim_new(1);
    gateway g = {.recent = r, .time = *env_sim_env(sim)};
    gateway_request rq = {.gateway = &g};
    assert_non_null(r);
    for (int i = 1; i <= RECENT_MAX + 3; i++) {
        snprintf(rq.id, sizeof rq.id, "r%d.", i);
        snprintf(rq.ensemble, sizeof rq.ensemble, "%*d", 1000, i);
        RECENT_SINK.finish(&rq, 404, "not_found");
    }
    RECENT_SINK.finish(&rq, 200, NULL); /* a page */
    assert_int_equal(recent_last(r), RECENT_MAX + 3);
    recent_put(&out, r, NULL, &(recent_filter){0});
    assert_null(strstr(out.data, "\"r3.\""));
    assert_non_null(strstr(out.data, "\"r4.\""));
    assert_non_null(strstr(out.data, "\"r515.\""));
    assert_true(strncmp(out.data, "[{\"number\":515,", 15) == 0);
    buf_done(&out);
    recent_free(r);
    env_sim_free(sim);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_tells_all_then_what_changes),
        cmocka_unit_test(live_rests_while_nobody_listens_and_ends_with_the_gateway),
        cmocka_unit_test(live_lets_a_bounded_number_listen),
        cmocka_unit_test(recent_keeps_what_became_of_requests_and_not_what_was_asked),
        cmocka_unit_test(recent_keeps_a_bounded_beginning_where_the_operator_says_so),
        cmocka_unit_test(recent_forgets_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
