/* DNS: answers byte by byte, and a real name server (dnsmasq) that is asked, changed, stopped and started
 * again. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "logging/log.h"
#include "discovery/dns.h"
#include "discovery/dns_answer.h"
#include "cluster/registry.h"
#include "cluster/table.h"

enum { PATIENCE_MS = 60000 };

/* ---- answers ------------------------------------------------------------------------------------- */

typedef struct message {
    uint8_t b[2048];
    size_t n;
} message;

static void put16(message *m, unsigned v)
{
    m->b[m->n++] = (uint8_t)(v >> 8);
    m->b[m->n++] = (uint8_t)v;
}

static void put_name(message *m, const char *name)
{
    while (*name) {
        size_t len = strcspn(name, ".");
        m->b[m->n++] = (uint8_t)len;
        memcpy(&m->b[m->n], name, len);
        m->n += len;
        name += len + (name[len] == '.');
    }
    m->b[m->n++] = 0;
}

static void put_head(message *m, unsigned type, unsigned ttl_s, unsigned n_data)
{
    put16(m, 0xC00C); /* the question's name */
    put16(m, type);
    put16(m, 1);
    put16(m, ttl_s >> 16);
    put16(m, ttl_s);
    put16(m, n_data);
}

static void put_srv(message *m, unsigned ttl_s, unsigned port, const char *host)
{
    put_head(m, 33, ttl_s, 6 + (*host ? (unsigned)strlen(host) + 2 : 1));
    put16(m, 10);
    put16(m, 20);
    put16(m, port);
    put_name(m, host);
}

static message begin(unsigned n_answers, unsigned n_more)
{
    message m = {0};
    unsigned head[] = {1, 0x8180, 1, n_answers, 0, n_more};
    for (int i = 0; i < 6; i++) put16(&m, head[i]);
    put_name(&m, "_m._tcp.test");
    put16(&m, 33);
    put16(&m, 1);
    return m;
}

static message two_workers(void)
{
    message m = begin(3, 1);
    put_srv(&m, 60, 7001, "pi.test");
    put_head(&m, 16, 1, 3); /* TXT: stepped over */
    m.n += 3;
    put_srv(&m, 30, 7002, "nas.test");
    put_name(&m, "NAS.test");
    unsigned head[] = {1, 1, 0, 5, 4, 0xC0A8, 0x0102};
    for (int i = 0; i < 7; i++) put16(&m, head[i]);
    return m;
}

static void dns_answer_gives_hosts_ports_and_addresses(void **state)
{
    message m = two_workers();
    dns_answer a;
    assert_int_equal(dns_answer_parse(m.b, m.n, &a, NULL), 0);
    assert_int_equal(a.n, 2);
    assert_int_equal(a.ttl_s, 30);
    assert_string_equal(a.list[0].host, "pi.test");
    assert_string_equal(a.list[0].ip, "");
    assert_int_equal(a.list[0].port, 7001);
    assert_int_equal(a.list[0].priority, 10);
    assert_int_equal(a.list[0].weight, 20);
    assert_string_equal(a.list[1].ip, "192.168.1.2");
    dns_answer_done(&a);
}

static void dns_asks_sooner_for_a_name_without_records(void **state)
{
    uint64_t wait = 0, waits[7];
    for (int i = 0; i < 7; i++) waits[i] = wait = dns_retry_ms(wait, false);
    assert_memory_equal(waits, ((uint64_t[]){1000, 2000, 4000, 8000, 16000, 30000, 30000}), sizeof waits);
    assert_int_equal(dns_retry_ms(0, true), 1000);
    assert_int_equal(dns_retry_ms(1000, true), 2000);
    assert_int_equal(dns_retry_ms(wait, true), 4000); /* the server is back, and there are none */
}

static void dns_answer_refuses_what_ends_early(void **state)
{
    message m = two_workers();
    size_t whole = m.n - 14 - 10; /* without the additional record, which is a favour */
    dns_answer a;
    for (size_t n = 0; n < whole; n++) assert_int_equal(dns_answer_parse(m.b, n, &a, NULL), SHOAL_EFORMAT);
    for (size_t n = whole; n <= m.n; n++) {
        assert_int_equal(dns_answer_parse(m.b, n, &a, NULL), 0);
        dns_answer_done(&a);
    }
}

static void dns_answer_refuses_names_that_are_none(void **state)
{
    dns_answer a;
    shoal_err err;
    message m = begin(1, 0);
    put_srv(&m, 60, 7001, "pi test"); /* what a log would show as something else */
    assert_int_equal(dns_answer_parse(m.b, m.n, &a, &err), SHOAL_EFORMAT);
    assert_non_null(strstr(err.message, "malformed at byte"));
    m = begin(1, 0);
    put_head(&m, 33, 60, 8);
    m.n += 6;
    put16(&m, 0xC000 | (unsigned)m.n); /* a pointer to itself */
    assert_int_equal(dns_answer_parse(m.b, m.n, &a, NULL), SHOAL_EFORMAT);
    m = begin(2000, 0);
    assert_int_equal(dns_answer_parse(m.b, m.n, &a, NULL), SHOAL_ELIMIT);
    m = begin(1, 0);
    put_srv(&m, 60, 0, ""); /* RFC 2782: the service is decidedly not there */
    assert_int_equal(dns_answer_parse(m.b, m.n, &a, NULL), 0);
    assert_int_equal(a.n, 0);
    dns_answer_done(&a);
}

/* ---- a name server ------------------------------------------------------------------------------- */

#define NAME_PORT "15353"

typedef struct bench {
    uv_loop_t loop;
    uv_timer_t tick;
    registry *g;
    dns *d;
    char conf[64], address[24], server[32];
    pid_t pid;
} bench;

static void ticked(uv_timer_t *t) {}

static const char *dnsmasq(void)
{
    static const char *const places[] = {"/usr/sbin/dnsmasq", "/sbin/dnsmasq", "/usr/local/sbin/dnsmasq"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], X_OK) == 0) return places[i];
    return NULL;
}

static bool missing_server(void)
{
    if (dnsmasq()) return false;
    fprintf(stderr, "SKIP dns: dnsmasq is not installed (scripts/setup.sh --test)\n");
    return true;
}

static void start_server(bench *b)
{
    char address[48], conf[80];
    snprintf(address, sizeof address, "--listen-address=%s", b->address);
    snprintf(conf, sizeof conf, "--conf-file=%s", b->conf);
    b->pid = fork();
    if (b->pid == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        execl(dnsmasq(), "dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", "--bind-interfaces",
              "--port=" NAME_PORT, "--user=", "--group=", "--pid-file=", "--local-ttl=1", address, conf,
              (char *)NULL);
        _exit(127);
    }
}

static void serve(bench *b, const char *records)
{
    FILE *f = fopen(b->conf, "w");
    assert_non_null(f);
    fprintf(f, "%s", records);
    fclose(f);
    for (int i = 0; i < 100; i++) {
        start_server(b);
        usleep(50000);
        if (waitpid(b->pid, NULL, WNOHANG) == 0) return;
    }
    fail_msg("dnsmasq does not stay at %s", b->server);
}

static void stop_server(bench *b)
{
    if (b->pid <= 0) return;
    kill(b->pid, SIGKILL);
    waitpid(b->pid, NULL, 0);
    b->pid = 0;
}

static void bench_open(bench *b, const dns_name *names, size_t n)
{
    shoal_err err = {0};
    uv_timer_init(&b->loop, &b->tick);
    uv_timer_start(&b->tick, ticked, 5, 5);
    assert_int_equal(registry_new(&b->g, &b->loop, &err), 0);
    dns_options o = {.names = names, .n_names = n, .server = b->server, .timeout_ms = 300};
    if (dns_open(&b->d, &b->loop, b->g, &o, &err) != 0) fail_msg("dns_open: %s", err.message);
}

static void bench_init(bench *b)
{
    *b = (bench){0};
    /* A loopback address of this process alone, and a port below those the system gives to connections:
       nobody else can be there in between, over UDP or TCP. */
    unsigned pid = (unsigned)getpid();
    snprintf(b->address, sizeof b->address, "127.%u.%u.%u", 64 + (pid >> 16) % 64, (pid >> 8) % 256,
             pid % 256);
    log_setup(LOG_OFF, false);
    snprintf(b->conf, sizeof b->conf, "/tmp/shoal-dns-XXXXXX");
    int fd = mkstemp(b->conf);
    assert_true(fd >= 0);
    close(fd);
    snprintf(b->server, sizeof b->server, "%s:" NAME_PORT, b->address);
    assert_int_equal(uv_loop_init(&b->loop), 0);
}

static void bench_close(bench *b)
{
    dns_close(b->d);
    assert_int_equal(registry_count(b->g), 0);
    registry_free(b->g);
    uv_close((uv_handle_t *)&b->tick, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    stop_server(b);
    unlink(b->conf);
}

static bool trouble(bench *b)
{
    return *source_trouble(registry_source_at(b->g, 0)) != '\0';
}

static bool synced(bench *b)
{
    return source_is_synced(registry_source_at(b->g, 0)) && !trouble(b);
}

static bool has(bench *b, const char *id)
{
    return registry_get(b->g, id) != NULL;
}

#define UNTIL(b, condition)                                                         \
    for (uint64_t start = clock_ns(); !(condition);) {                              \
        if (clock_ms_since(start) > PATIENCE_MS) fail_msg("never: %s", #condition); \
        uv_run(&(b)->loop, UV_RUN_ONCE);                                            \
    }

#define PI  "srv-host=_m._tcp.test,pi.test,7001\nhost-record=pi.test,127.0.0.2\n"
#define NAS "srv-host=_m._tcp.test,nas.test,7002\nhost-record=nas.test,127.0.0.3\n"

static void dns_members_follow_the_records(void **state)
{
    if (missing_server()) skip();
    bench b;
    bench_init(&b);
    serve(&b, PI NAS);
    bench_open(&b, &(dns_name){"_m._tcp.test", "m"}, 1);
    assert_false(registry_all_ready(b.g));
    UNTIL(&b, synced(&b));
    assert_int_equal(registry_find(b.g, "m")->n, 2);
    assert_string_equal(registry_get(b.g, "pi.test:7001/m")->address, "127.0.0.2:7001");
    stop_server(&b);
    serve(&b, NAS "srv-host=_m._tcp.test,new.test,7003\n");
    UNTIL(&b, has(&b, "new.test:7003/m"));
    assert_false(has(&b, "pi.test:7001/m"));
    assert_true(has(&b, "nas.test:7002/m"));
    const replica *r = registry_get(b.g, "new.test:7003/m");
    assert_string_equal(r->address, "new.test:7003");
    assert_int_equal(r->state, REPLICA_FAILED); /* it is not known to be here */
    assert_non_null(strstr(r->reason, "clear text"));
    bench_close(&b);
}

static void dns_keeps_the_last_view_when_nobody_answers(void **state)
{
    if (missing_server()) skip();
    bench b;
    bench_init(&b);
    serve(&b, PI);
    bench_open(&b, &(dns_name){"_m._tcp.test", "m"}, 1);
    UNTIL(&b, synced(&b));
    stop_server(&b);
    UNTIL(&b, trouble(&b));
    assert_non_null(strstr(source_trouble(registry_source_at(b.g, 0)), "_m._tcp.test: "));
    assert_true(has(&b, "pi.test:7001/m"));
    serve(&b, "address=/test/\n"); /* a zone that lost its records */
    UNTIL(&b, strstr(source_trouble(registry_source_at(b.g, 0)), "no SRV records") ||
                  strstr(source_trouble(registry_source_at(b.g, 0)), "not found"));
    assert_true(has(&b, "pi.test:7001/m"));
    stop_server(&b);
    serve(&b, PI NAS);
    UNTIL(&b, synced(&b) && has(&b, "nas.test:7002/m"));
    bench_close(&b);
}

static void dns_without_a_server_says_so_and_knows_the_model(void **state)
{
    bench b;
    bench_init(&b);
    bench_open(&b, &(dns_name){"_m._tcp.test", "m"}, 1);
    UNTIL(&b, trouble(&b));
    assert_int_equal(registry_find(b.g, "m")->n, 0);
    assert_false(registry_all_ready(b.g));
    dns *other = NULL;
    shoal_err err;
    assert_int_equal(dns_open(&other, &b.loop, b.g, &(dns_options){.server = "nowhere"}, &err),
                     SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "127.0.0.1:8600"));
    bench_close(&b);
}

static void table_puts_its_rows(void **state)
{
    uv_loop_t loop;
    registry *g;
    table *t;
    shoal_err err;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(registry_new(&g, &loop, &err), 0);
    table_row rows[] = {{"m", "unix:/nowhere/1"}, {"n", "unix:/nowhere/1"}, {"m", "unix:/nowhere/1"}};
    assert_int_equal(table_open(&t, g, rows, 3, &err), 0);
    assert_true(source_is_synced(registry_source_at(g, 0)));
    assert_int_equal(registry_count(g), 2);
    const replica *n = registry_get(g, "unix:/nowhere/1/n");
    assert_string_equal(n->model, "n");

    /* Another list: n stays the same replica, m goes, a second one of n comes, o has none yet. */
    table_row next[] = {{"n", "unix:/nowhere/1"}, {"n", "unix:/nowhere/2"}, {"o", NULL}};
    assert_int_equal(table_set(t, next, 3, &err), 0);
    assert_int_equal(registry_count(g), 2);
    assert_ptr_equal(registry_get(g, "unix:/nowhere/1/n"), n);
    assert_null(registry_get(g, "unix:/nowhere/1/m"));
    assert_non_null(registry_get(g, "unix:/nowhere/2/n"));
    assert_non_null(registry_find(g, "o"));
    assert_null(registry_find(g, "m"));
    assert_int_equal(table_set(t, NULL, 0, &err), 0);
    assert_int_equal(registry_count(g), 0);
    assert_null(registry_find(g, "o"));
    table_close(t);
    registry_free(g);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dns_answer_gives_hosts_ports_and_addresses),
        cmocka_unit_test(dns_asks_sooner_for_a_name_without_records),
        cmocka_unit_test(dns_answer_refuses_what_ends_early),
        cmocka_unit_test(dns_answer_refuses_names_that_are_none),
        cmocka_unit_test(dns_members_follow_the_records),
        cmocka_unit_test(dns_keeps_the_last_view_when_nobody_answers),
        cmocka_unit_test(dns_without_a_server_says_so_and_knows_the_model),
        cmocka_unit_test(table_puts_its_rows),
    };
    return cmocka_run_group_tests_name("dns", tests, NULL, NULL);
}
