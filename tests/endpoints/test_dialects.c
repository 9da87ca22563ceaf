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
#include "gateway/again.h"
#include "gateway/gateway.h"
#include "gateway/gateway_internal.h"

typedef struct house {
    uv_loop_t loop;
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
    h->config.listen = "127.0.0.1:0";
    assert_int_equal(uv_loop_init(&h->loop), 0);
    assert_int_equal(registry_new(&h->g, &h->loop, &err), 0);
    if (gateway_new(&h->gw, &h->loop, h->g, &h->config, t, &err) != 0) fail_msg("%s", err.message);
}

static void close_house(house *h)
{
    gateway_free(h->gw);
    registry_free(h->g);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&h->loop), 0);
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
    again again;
    unsigned n_asked, n_freed;
} twice;
static twice asks_twice;

static void on_twice(again *a, const again_reply *r)
{
    if (++asks_twice.n_asked == 1)
        again_ask(a, "GET", "/now");
    else
        reply_text(again_take(a), "{\"n\":2}");
}

static void free_twice(again *a)
{
    asks_twice.n_freed++;
}

static void ask_twice(gateway_request *rq)
{
    static const again_ops OPS = {.reply = on_twice, .free = free_twice};
    asks_twice = (twice){0};
    again_init(&asks_twice.again, rq, &OPS);
    again_ask(&asks_twice.again, "GET", "/later");
}

static const endpoint ROWS[] = {
    {.method = "GET", .path = "/twice", .handle = ask_twice, .name = "twice"},
    {.method = "GET", .path = "/later", .handle = wait_here, .name = "later"},
    {.method = "GET", .path = "/now", .handle = reply_at_once, .name = "now"},
};
static const endpoint_table TABLE = {ROWS, sizeof ROWS / sizeof *ROWS};

static void again_ends_once_when_its_reply_asks_again(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(again_ends_once_when_its_reply_asks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
