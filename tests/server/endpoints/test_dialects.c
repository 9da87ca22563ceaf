/* Requests of other servers' dialects, whose inner requests this test answers itself. */
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

#include "base/clock.h"
#include "logging/log.h"
#include "logging/log_ring.h"
#include "compat/kserve.h"
#include "operations/logs.h"
#include "compat/ollama.h"
#include "ingress/redispatch.h"
#include "gateway/gateway.h"
#include "request/gateway_state.h"
#include "time/env_sim.h"

enum { TURN_MS = 10 }; /* that pass in a turn of the loop */

/* The allocation that gets no memory, counted down; -1: none, or it was refused. */
static long countdown = -1;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which bring their own allocator */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

static __attribute__((unused)) bool refuses(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *malloc(size_t n)
{
    return refuses() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return refuses() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return refuses() ? NULL : __libc_realloc(p, n);
}
enum { REFUSES = 1 };
#else
enum { REFUSES = 0 };
#endif

typedef struct house {
    uv_loop_t loop;
    env_sim *sim; /* the gateway's time; sockets take their own */
    registry *g;
    gateway_config config;
    gateway *gw;
    char reply[65536];
    size_t n_reply;
} house;

static void open_house(house *h, const endpoint_table *t)
{
    shoal_err err = {0};
    memset(h, 0, sizeof *h);
    h->sim = env_sim_new(1);
    h->config.listen = "127.0.0.1:0";
    assert_int_equal(uv_loop_init(&h->loop), 0);
    connector how = connector_grpc(&h->loop);
    assert_int_equal(registry_new_with(&h->g, env_sim_env(h->sim), &how, &err), 0);
    if (gateway_new(&h->gw, &h->loop, h->g, &h->config, t, &err) != 0) fail_msg("%s", err.message);
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

static int send_request(house *h, const char *head, const char *body)
{
    char text[8192];
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)gateway_port(h->gw)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
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
    int status = 0;
    h->n_reply = 0;
    for (;;) {
        turn(h);
        ssize_t n = recv(fd, h->reply + h->n_reply, sizeof h->reply - 1 - h->n_reply, MSG_DONTWAIT);
        if (n == 0) break;
        if (n > 0) h->n_reply += (size_t)n;
    }
    close(fd);
    h->reply[h->n_reply] = '\0';
    sscanf(h->reply, "HTTP/1.1 %d", &status);
    return status;
}

/* ---- the inner request --------------------------------------------------------------------------- */

/* The one that waits, and what became of it. */
static gateway_request *waits;
static unsigned n_gone;

static void on_gone(void *work)
{
    waits = NULL;
    n_gone++;
}

static void wait_here(gateway_request *rq)
{
    waits = rq;
    request_watch(rq, on_gone, NULL);
}

static gateway_request *take_waiting(house *h)
{
    while (!waits) turn(h);
    gateway_request *rq = waits;
    waits = NULL;
    request_watch(rq, NULL, NULL);
    return rq;
}

static void reply_text(gateway_request *rq, const char *json)
{
    request_json(rq, 200, &(buf){.data = (char *)json, .len = strlen(json)});
}

static void reply_at_once(gateway_request *rq)
{
    reply_text(rq, "{\"n\":2}");
}

/* ---- again --------------------------------------------------------------------------------------- */

/* Asks for /later, then for /now, and answers with what that says. */
typedef struct twice {
    redispatch redispatch;
    unsigned n_asked, n_freed;
} twice;
static twice asks_twice;

static void on_twice(redispatch *a, const redispatch_reply *r)
{
    if (++asks_twice.n_asked == 1)
        redispatch_ask(a, "GET", "/now");
    else
        reply_text(redispatch_take(a), "{\"n\":2}");
}

static void free_twice(redispatch *a)
{
    asks_twice.n_freed++;
}

static void ask_twice(gateway_request *rq)
{
    static const redispatch_ops OPS = {.reply = on_twice, .free = free_twice};
    asks_twice = (twice){0};
    redispatch_init(&asks_twice.redispatch, rq, &OPS);
    redispatch_ask(&asks_twice.redispatch, "GET", "/later");
}

static const endpoint ROWS[] = {
    {.method = "GET", .path = "/twice", .handle = ask_twice, .name = "twice"},
    {.method = "GET", .path = "/later", .handle = wait_here, .name = "later"},
    {.method = "GET", .path = "/now", .handle = reply_at_once, .name = "now"},
};
static const endpoint_table TABLE = {ROWS, sizeof ROWS / sizeof *ROWS};

static void redispatch_ends_once_when_its_reply_asks_again(void **state)
{
    house h;
    open_house(&h, &TABLE);
    int fd = send_request(&h, "GET /twice HTTP/1.1", "");
    reply_text(take_waiting(&h), "{\"n\":1}");
    assert_int_equal(receive(&h, fd), 200);
    assert_non_null(strstr(h.reply, "{\"n\":2}"));
    assert_int_equal(asks_twice.n_freed, 1);
    close_house(&h);
}

/* ---- Ollama's ------------------------------------------------------------------------------------ */

static const endpoint OLLAMA_ROWS[] = {
    {.method = "POST",
     .path = "/api/generate",
     .handle = ollama_generate,
     .name = "ollama_generate",
     .takes = ENDPOINT_OLLAMA},
    {.method = "POST", .path = "/v1/chat/completions", .handle = wait_here, .name = "chat"},
};
static const endpoint_table OLLAMA_TABLE = {OLLAMA_ROWS, sizeof OLLAMA_ROWS / sizeof *OLLAMA_ROWS};

static void put_piece(buf *out, const char *text)
{
    event_begin(out, EVENT_DATA, NULL);
    buf_printf(out, "{\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}", text);
    event_end(out);
}

static void say(gateway_request *rq, const char *text)
{
    buf b = {0};
    put_piece(&b, text);
    request_stream_write(rq, &b);
    buf_done(&b);
}

/* Two pieces of a reply, while the n-th allocation finds no memory. */
static void stream_without(house *h, long n)
{
    static const char TEXT[] = "a long piece of a reply, behind which the line's memory has to grow: "
                               "0123456789012345678901234567890123456789012345678901234567890123456789";
    buf piece = {0};
    put_piece(&piece, TEXT);
    int fd = send_request(h, "POST /api/generate HTTP/1.0", "{\"model\":\"m\",\"prompt\":\"x\"}");
    gateway_request *rq = take_waiting(h);
    request_watch(rq, on_gone, NULL);
    request_stream_begin(rq);
    say(rq, "first");
    waits = rq;
    countdown = n;
    request_stream_write(rq, &piece);
    countdown = -1;
    for (int i = 0; waits && i < 40; i++) turn(h); /* whoever breaks off does so soon */
    if (waits) {
        say(take_waiting(h), "last");
        request_stream_end(rq);
    }
    receive(h, fd);
    buf_done(&piece);
}

static void ollamas_lines_are_whole_or_not_there(void **state)
{
    house h;
    if (!REFUSES) skip();
    open_house(&h, &OLLAMA_TABLE);
    unsigned n_broken = 0;
    for (long n = 0; n < 60; n++) {
        n_gone = 0;
        stream_without(&h, n);
        n_broken += n_gone;
        char *line = strstr(h.reply, "\r\n\r\n");
        line = line ? line + 4 : h.reply + h.n_reply;
        for (char *end; *line; line = end + 1) {
            json_t *o;
            if (!(end = strchr(line, '\n'))) fail_msg("n %ld: half a line: %s", n, line);
            if (!(o = json_loadb(line, (size_t)(end - line), 0, NULL)))
                fail_msg("n %ld: no line: %s", n, line);
            json_decref(o);
        }
    }
    assert_true(n_broken > 0);
    close_house(&h);
}

/* A model manager whose one model comes when the test says so. */
static const model_manager_watch *loading;
static model_manager_watch load_watch;
static unsigned n_left;

static model_manager_ticket *load_model(void *user, const config_load_request *wanted,
                                        const model_manager_watch *w, api_error *e)
{
    load_watch = *w;
    loading = &load_watch;
    return (model_manager_ticket *)loading;
}

static void leave(model_manager_ticket *t)
{
    n_left += t != NULL;
}

static bool about(void *user, const char *model, model_manager_fact *ret)
{
    return false;
}

static const char *find(void *user, const char *called)
{
    return "stored";
}

static const model_manager MANAGER = {.load = load_model, .leave = leave, .about = about, .find = find};

static int ask_stored(house *h, const char *deadline_ms)
{
    char head[128];
    snprintf(head, sizeof head, "POST /api/generate HTTP/1.1\r\nx-shoal-deadline-ms: %s", deadline_ms);
    loading = NULL;
    n_left = 0;
    int fd = send_request(h, head, "{\"model\":\"m\",\"prompt\":\"x\",\"stream\":false}");
    while (!loading) turn(h);
    return fd;
}

static void ollamas_deadline_counts_while_a_model_loads(void **state)
{
    house h;
    open_house(&h, &OLLAMA_TABLE);
    gateway_show_model_manager(h.gw, &MANAGER);
    assert_int_equal(receive(&h, ask_stored(&h, "30")), 504);
    assert_non_null(strstr(h.reply, "{\"error\":\"'stored' is not loaded yet"));
    assert_int_equal(n_left, 1);
    close_house(&h);
}

/* What the load took is not there any more for the answer. */
static void a_deadline_that_was_named_does_not_begin_anew(void **state)
{
    house h;
    open_house(&h, &OLLAMA_TABLE);
    gateway_show_model_manager(h.gw, &MANAGER);
    int fd = ask_stored(&h, "60000");
    uint64_t named_ns = h.gw->requests->deadline_ns;
    env_sim_run(h.sim, 2);
    loading->done(loading->user, NULL, NULL);
    gateway_request *rq = take_waiting(&h);
    assert_true(rq->deadline_ns == named_ns);
    reply_text(rq, "{}");
    receive(&h, fd);
    assert_int_equal(n_left, 0);
    close_house(&h);
}

/* ---- KServe's ------------------------------------------------------------------------------------ */

/* Of two members, and of the vote between them, what is known while the first is down. */
static const Shoal__V1__ModelInfo *info_of(calls *c, const char *model, bool *ret_known)
{
    static Shoal__V1__ModelInfo info = SHOAL__V1__MODEL_INFO__INIT;
    info.task = "generate";
    info.version = "7";
    *ret_known = true;
    return strcmp(model, "second") == 0 ? &info : NULL;
}

static void an_ensemble_is_there_with_any_of_its_members(void **state)
{
    static const endpoint ROW = {.method = "GET",
                                 .path = "/v2/models/*",
                                 .handle = kserve_model,
                                 .name = "m",
                                 .takes = ENDPOINT_KSERVE};
    static const endpoint_table ONE = {&ROW, 1}; /* to ask again for what our own endpoints say would fail */
    static const calls_ops OPS = {.info = info_of};
    config_member members[] = {{.model = "first"}, {.model = "second"}};
    config_ensemble pair = {.name = "pair", .members = members, .n_members = 2};
    calls fake = {&OPS};
    house h;
    open_house(&h, &ONE);
    calls *own = h.gw->settings->calls;
    h.config.ensembles = &pair;
    h.config.n_ensembles = 1;
    h.gw->settings->calls = &fake;
    assert_int_equal(receive(&h, send_request(&h, "GET /v2/models/pair HTTP/1.1", "")), 200);
    assert_non_null(strstr(h.reply, "{\"name\":\"pair\",\"versions\":[\"7\"]"));
    assert_int_equal(receive(&h, send_request(&h, "GET /v2/models/first HTTP/1.1", "")), 503);
    h.gw->settings->calls = own;
    h.config.n_ensembles = 0;
    close_house(&h);
}

/* ---- who follows the log ------------------------------------------------------------------------- */

/* Or the connection is cut, and its client comes again. */
static bool hears(house *h, int fd, const char *part)
{
    for (int i = 0; i < 5000; i++) {
        turn(h);
        ssize_t n = recv(fd, h->reply + h->n_reply, sizeof h->reply - 1 - h->n_reply, MSG_DONTWAIT);
        if (n > 0) h->n_reply += (size_t)n;
        h->reply[h->n_reply] = '\0';
        if (n == 0 || strstr(h->reply, part)) return true;
    }
    return false;
}

static void a_log_line_that_found_no_memory_comes_later(void **state)
{
    static const endpoint ROW = {.method = "GET", .path = "/v1/logs", .handle = logs_handle, .name = "logs"};
    static const endpoint_table ONE = {&ROW, 1};
    house h;
    if (!REFUSES) skip();
    assert_int_equal(log_ring_open(100, 100000, NULL), 0);
    open_house(&h, &ONE);
    for (int n = 0; n < 4; n++) {
        char mark[24];
        int fd = send_request(&h, "GET /v1/logs?follow=true&lines=0 HTTP/1.1", "");
        h.n_reply = 0;
        assert_true(hears(&h, fd, "\r\n\r\n"));
        snprintf(mark, sizeof mark, "mark-%d-here", n);
        LOG(LOG_INFO, "test", mark);
        countdown = n;
        if (!hears(&h, fd, mark)) fail_msg("the line %d is lost", n);
        countdown = -1;
        close(fd);
    }
    close_house(&h);
    log_ring_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redispatch_ends_once_when_its_reply_asks_again),
        cmocka_unit_test(ollamas_lines_are_whole_or_not_there),
        cmocka_unit_test(an_ensemble_is_there_with_any_of_its_members),
        cmocka_unit_test(a_log_line_that_found_no_memory_comes_later),
        cmocka_unit_test(ollamas_deadline_counts_while_a_model_loads),
        cmocka_unit_test(a_deadline_that_was_named_does_not_begin_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
