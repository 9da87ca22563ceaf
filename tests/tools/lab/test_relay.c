/* The lab's switch between socket pairs, which keep packets apart as TUN devices do; no root needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "lab/relay.h"

typedef struct net { /* three nodes: what the relay holds, and what a node's kernel would */
    int inner[3], outer[3];
    relay *r;
} net;

static void net_open(net *t)
{
    shoal_err err;
    for (int i = 0; i < 3; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        t->inner[i] = pair[0];
        t->outer[i] = pair[1];
    }
    assert_int_equal(relay_start(&t->r, t->inner, 3, 7, &err), 0);
}

static void net_close(net *t)
{
    relay_stop(t->r);
    for (int i = 0; i < 3; i++) {
        close(t->inner[i]);
        close(t->outer[i]);
    }
}

/* A packet of n_bytes with a number in it. */
static void put(net *t, int from, int to, uint32_t number, size_t n_bytes)
{
    unsigned char p[1500] = {0x45};
    p[12] = p[16] = 10;
    p[13] = p[17] = 77;
    p[15] = (unsigned char)(from + 1);
    p[19] = (unsigned char)(to + 1);
    memcpy(p + 20, &number, sizeof number);
    assert_int_equal(send(t->outer[from], p, n_bytes, 0), n_bytes);
}

/* The next packet's number; -1 when none comes within ms. */
static int64_t get(net *t, int node, int ms)
{
    unsigned char p[1500];
    uint32_t number;
    struct pollfd f = {.fd = t->outer[node], .events = POLLIN};
    if (poll(&f, 1, ms) != 1) return -1;
    if (recv(t->outer[node], p, sizeof p, 0) < 24) return -1;
    memcpy(&number, p + 20, sizeof number);
    return number;
}

static void relay_brings_packets_to_whom_they_are_for(void **state)
{
    net t;
    net_open(&t);
    put(&t, 0, 1, 1, 100);
    put(&t, 0, 2, 2, 100);
    put(&t, 2, 1, 3, 100);
    assert_int_equal(get(&t, 2, 60000), 2);
    int64_t a = get(&t, 1, 60000), b = get(&t, 1, 60000);
    assert_true((a == 1 && b == 3) || (a == 3 && b == 1));
    put(&t, 0, 0, 4, 100);   /* to itself */
    put(&t, 0, 200, 5, 100); /* to nobody */
    send(t.outer[0], "\x60", 1, 0);
    send(t.outer[0], "\x45short", 6, 0);
    put(&t, 0, 1, 6, 100);
    assert_int_equal(get(&t, 1, 60000), 6);
    assert_int_equal(relay_read(t.r).n_passed, 4);
    net_close(&t);
}

static void relay_delays_in_order(void **state)
{
    net t;
    net_open(&t);
    relay_set(t.r, 0, 1, &(lab_quality){.delay_ms = 30, .jitter_ms = 20});
    uint64_t start = clock_ns();
    for (uint32_t i = 0; i < 50; i++) put(&t, 0, 1, i, 100);
    assert_int_equal(get(&t, 1, 60000), 0);
    assert_true(clock_ms_since(start) >= 10); /* never earlier than delay - jitter */
    for (uint32_t i = 1; i < 50; i++) assert_int_equal(get(&t, 1, 60000), i);
    put(&t, 1, 0, 7, 100); /* the other direction has no rule */
    assert_int_equal(get(&t, 0, 60000), 7);
    net_close(&t);
}

static void relay_lets_no_more_through_than_the_rate(void **state)
{
    net t;
    net_open(&t);
    relay_set(t.r, 0, 1, &(lab_quality){.rate_kbit = 1000});
    uint64_t start = clock_ns();
    for (uint32_t i = 0; i < 10; i++) put(&t, 0, 1, i, 1000); /* 80 kbit */
    for (uint32_t i = 0; i < 10; i++) assert_int_equal(get(&t, 1, 60000), i);
    assert_true(clock_ms_since(start) >= 79);
    net_close(&t);
}

static size_t arrivals(net *t, uint32_t n)
{
    size_t got = 0;
    for (uint32_t i = 0; i < n; i++) put(t, 0, 1, i, 60);
    put(t, 0, 2, n, 60); /* which is handled behind the others */
    assert_int_equal(get(t, 2, 60000), n);
    while (get(t, 1, 0) >= 0) got++;
    return got;
}

static void relay_loses_the_share_it_is_told_by_the_seed(void **state)
{
    size_t got[2];
    for (int k = 0; k < 2; k++) {
        net t;
        net_open(&t);
        relay_set(t.r, 0, 1, &(lab_quality){.loss = 0.3});
        got[k] = arrivals(&t, 150);
        assert_int_equal(relay_read(t.r).n_lost, 150 - got[k]);
        net_close(&t);
    }
    assert_true(got[0] > 75 && got[0] < 130);
    assert_int_equal(got[0], got[1]);
}

/* A TCP packet's first bytes between two ports. */
static void put_tcp(net *t, int from, int to, unsigned port, unsigned to_port, uint32_t number)
{
    unsigned char p[40] = {0x45, [9] = 6, [12] = 10, [13] = 77, [16] = 10, [17] = 77};
    p[15] = (unsigned char)(from + 1);
    p[19] = (unsigned char)(to + 1);
    memcpy(p + 28, &number, sizeof number);
    p[20] = (unsigned char)(port >> 8);
    p[21] = (unsigned char)port;
    p[22] = (unsigned char)(to_port >> 8);
    p[23] = (unsigned char)to_port;
    assert_int_equal(send(t->outer[from], p, sizeof p, 0), sizeof p);
}

static int64_t get_tcp(net *t, int node)
{
    unsigned char p[1500];
    uint32_t number;
    struct pollfd f = {.fd = t->outer[node], .events = POLLIN};
    assert_int_equal(poll(&f, 1, 60000), 1);
    assert_int_equal(recv(t->outer[node], p, sizeof p, 0), 40);
    memcpy(&number, p + 28, sizeof number);
    return number;
}

/* The connection whose end nobody is told of; others between the same machines go on. */
static void relay_mutes_connections_in_both_directions(void **state)
{
    const relay_flow flow = {.address = {10u << 24 | 77 << 16 | 1, 10u << 24 | 77 << 16 | 2},
                             .port = {40000, 7081}};
    shoal_err err;
    net t;
    net_open(&t);
    assert_int_equal(relay_mute(t.r, &flow, 1, true, &err), 0);
    put_tcp(&t, 0, 1, 40000, 7081, 1);
    put_tcp(&t, 0, 1, 40001, 7081, 2);
    assert_int_equal(get_tcp(&t, 1), 2);
    put_tcp(&t, 1, 0, 7081, 40000, 3);
    put_tcp(&t, 1, 0, 40000, 7081, 4); /* the same numbers, the other way round: another connection */
    assert_int_equal(get_tcp(&t, 0), 4);
    assert_int_equal(relay_read(t.r).n_cut, 2);
    assert_int_equal(relay_mute(t.r, &flow, 1, false, &err), 0);
    put_tcp(&t, 0, 1, 40000, 7081, 5);
    assert_int_equal(get_tcp(&t, 1), 5);
    net_close(&t);
}

static void relay_replaces_the_device_of_a_port(void **state)
{
    shoal_err err;
    net t;
    int pair[2];
    net_open(&t);
    assert_int_equal(relay_plug(t.r, 1, -1, &err), 0);
    assert_int_equal(arrivals(&t, 5), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(relay_plug(t.r, 1, pair[0], &err), 0);
    put(&t, 1, 2, 7, 60); /* from the device that it had */
    close(t.inner[1]);
    close(t.outer[1]);
    t.inner[1] = pair[0];
    t.outer[1] = pair[1];
    assert_int_equal(arrivals(&t, 5), 5);
    put(&t, 1, 2, 8, 60);
    assert_int_equal(get(&t, 2, 60000), 8);
    net_close(&t);
}

static void relay_cuts_one_way_and_counts_cuts(void **state)
{
    net t;
    net_open(&t);
    relay_cut(t.r, 0, 1, true);
    relay_cut(t.r, 0, 1, true);
    assert_int_equal(arrivals(&t, 5), 0);
    put(&t, 1, 0, 9, 60);
    assert_int_equal(get(&t, 0, 60000), 9);
    relay_cut(t.r, 0, 1, false);
    assert_int_equal(arrivals(&t, 5), 0);
    relay_cut(t.r, 0, 1, false);
    assert_int_equal(arrivals(&t, 5), 5);
    assert_int_equal(relay_read(t.r).n_cut, 10);
    net_close(&t);
}

static void relay_bounds_what_waits(void **state)
{
    net t;
    net_open(&t);
    relay_set(t.r, 0, 1, &(lab_quality){.delay_ms = 60000});
    for (uint32_t i = 0; i < RELAY_QUEUE_MAX + 20; i++) put(&t, 0, 1, i, 60);
    put(&t, 0, 2, 1, 60);
    assert_int_equal(get(&t, 2, 60000), 1);
    assert_int_equal(relay_read(t.r).n_full, 20);
    net_close(&t); /* what waits is freed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relay_brings_packets_to_whom_they_are_for),
        cmocka_unit_test(relay_delays_in_order),
        cmocka_unit_test(relay_lets_no_more_through_than_the_rate),
        cmocka_unit_test(relay_loses_the_share_it_is_told_by_the_seed),
        cmocka_unit_test(relay_mutes_connections_in_both_directions),
        cmocka_unit_test(relay_replaces_the_device_of_a_port),
        cmocka_unit_test(relay_cuts_one_way_and_counts_cuts),
        cmocka_unit_test(relay_bounds_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
