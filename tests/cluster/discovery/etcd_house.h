/* etcd_house.h: a real etcd-server on loopback, gateways beside it, and a worker for them to find.
 *
 *     etcd_server s;
 *     server_open(&s);
 *     server_start(&s);
 *     ...
 *     server_close(&s);
 *     house h; house_open(&h);             a loop, and a worker that says it is ready
 *     UNTIL(&h, condition)
 *     house_close(&h);
 *
 * A gateway here is what discovery/etcd.c puts together, each part reachable. */
#ifndef TESTS_CLUSTER_ETCD_HOUSE_H
#define TESTS_CLUSTER_ETCD_HOUSE_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "logging/log.h"
#include "discovery/etcd_election.h"
#include "discovery/etcd_publisher.h"
#include "discovery/etcd_source.h"
#include "wire/env_uv.h"

enum { PATIENCE_MS = 60000 };

/* ---- the server ---------------------------------------------------------------------------------- */

typedef struct etcd_server {
    char dir[64], endpoint[32];
    int port, peer_port;
    pid_t pid;
    const char *crt, *key, *ca; /* NULL: clear */
} etcd_server;

/* A port that is free and stays so: below those the system gives to connections (ip_local_port_range). */
static int free_tcp_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static unsigned n_tried;
    unsigned port;
    int bound;
    do {
        port = 12000 + ((unsigned)getpid() * 8 + n_tried++) % 20000;
        a.sin_port = htons((uint16_t)port);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        bound = bind(fd, (struct sockaddr *)&a, sizeof a);
        close(fd);
    } while (bound != 0);
    return (int)port;
}

static const char *etcd_program(void)
{
    static const char *const places[] = {"/usr/bin/etcd", "/usr/local/bin/etcd"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], X_OK) == 0) return places[i];
    return NULL;
}

static bool missing_etcd(void)
{
    if (etcd_program()) return false;
    fprintf(stderr, "SKIP etcd: etcd-server is not installed (scripts/setup.sh --test)\n");
    return true;
}

static void server_open(etcd_server *s)
{
    *s = (etcd_server){.port = free_tcp_port()};
    s->peer_port = free_tcp_port();
    snprintf(s->dir, sizeof s->dir, "/tmp/shoal-etcd-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->endpoint, sizeof s->endpoint, "127.0.0.1:%d", s->port);
}

static void server_exec(const etcd_server *s)
{
    char data[96], client[48], peer[48], cluster[64], cert[160], key[160], ca[160];
    const char *scheme = s->crt ? "https" : "http";
    snprintf(data, sizeof data, "--data-dir=%s/data", s->dir);
    snprintf(client, sizeof client, "%s://127.0.0.1:%d", scheme, s->port);
    snprintf(peer, sizeof peer, "http://127.0.0.1:%d", s->peer_port);
    snprintf(cluster, sizeof cluster, "one=%s", peer);
    snprintf(cert, sizeof cert, "--cert-file=%s", s->crt);
    snprintf(key, sizeof key, "--key-file=%s", s->key);
    snprintf(ca, sizeof ca, "--trusted-ca-file=%s", s->ca);
    const char *argv[] = {"etcd",
                          "--name=one",
                          data,
                          "--listen-client-urls",
                          client,
                          "--advertise-client-urls",
                          client,
                          "--listen-peer-urls",
                          peer,
                          "--initial-advertise-peer-urls",
                          peer,
                          "--initial-cluster",
                          cluster,
                          "--heartbeat-interval=20",
                          "--election-timeout=200",
                          s->crt ? cert : NULL,
                          key,
                          ca,
                          "--client-cert-auth",
                          NULL};
    execv(etcd_program(), (char *const *)argv);
}

/* Its end comes with ours, should a test fail. */
static void server_start(etcd_server *s)
{
    s->pid = fork();
    if (s->pid != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(1);
    server_exec(s);
    _exit(127);
}

static void server_kill(etcd_server *s)
{
    if (s->pid <= 0) return;
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

static void server_wipe(const etcd_server *s)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s/data'", s->dir);
    assert_int_equal(system(command), 0);
}

static void server_close(etcd_server *s)
{
    server_kill(s);
    server_wipe(s);
    rmdir(s->dir);
}

/* ---- a worker ------------------------------------------------------------------------------------ */

static void worker_describe(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    Shoal__V1__ModelInfo m = SHOAL__V1__MODEL_INFO__INIT;
    uint8_t out[256];
    m.name = "m";
    grpc_call_send(c, out, shoal__v1__model_info__pack(&m, out));
    grpc_call_end(c, GRPC_OK, NULL);
}

static void worker_stats(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    grpc_call_send(c, "", 0);
    grpc_call_end(c, GRPC_OK, NULL);
}

static const grpc_method worker_methods[] = {{"/shoal.v1.Worker/Describe", worker_describe},
                                             {"/shoal.v1.Worker/GetStats", worker_stats}};

typedef struct house {
    uv_loop_t loop;
    env e;
    uv_timer_t tick;
    grpc_server *worker;
    char address[80], machine[33];
} house;

static void house_ticked(uv_timer_t *t) {}

static void house_serve(house *h)
{
    shoal_err err;
    assert_int_equal(grpc_server_new(&h->worker, &h->loop, worker_methods, 2, h, NULL, &err), 0);
    if (grpc_server_listen(h->worker, h->address, &err) != 0) fail_msg("%s", err.message);
}

static void house_open(house *h)
{
    static int n;
    *h = (house){.machine = "here"};
    log_setup(getenv("SHOAL_TEST_LOG") ? LOG_DEBUG : LOG_OFF, false);
    assert_int_equal(uv_loop_init(&h->loop), 0);
    h->e = env_uv(&h->loop);
    uv_timer_init(&h->loop, &h->tick);
    uv_timer_start(&h->tick, house_ticked, 5, 5);
    snprintf(h->address, sizeof h->address, "unix:/tmp/shoal-etcd-%d-%d.sock", (int)getpid(), n++);
    house_serve(h);
}

static void house_close(house *h)
{
    if (h->worker) grpc_server_close(h->worker, NULL, NULL);
    uv_close((uv_handle_t *)&h->tick, NULL);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    unlink(h->address + 5);
}

#define UNTIL(h, condition)                                               \
    for (uint64_t start_ = clock_ns(); !(condition);) {                   \
        if (clock_ms_since(start_) > PATIENCE_MS)                         \
            fail_msg("%s:%d: never: %s", __FILE__, __LINE__, #condition); \
        uv_run(&(h)->loop, UV_RUN_ONCE);                                  \
    }

static void house_run_ms(house *h, unsigned ms)
{
    for (uint64_t start = clock_ns(); clock_ms_since(start) < ms;) uv_run(&h->loop, UV_RUN_ONCE);
}

/* ---- gateways ------------------------------------------------------------------------------------ */

typedef struct gate {
    house *h;
    registry *g;
    source *own; /* "agent" */
    etcd_session *c;
    etcd_source *source;
    etcd_publisher *publisher;
    etcd_election *election;
    const char *name;
    int n_dropped, n_elected, n_deposed;
    int64_t term;
    char leader[64], why[160];
} gate;

static void gate_elected(void *user, int64_t term)
{
    gate *x = user;
    x->n_elected++;
    x->term = term;
}

static void gate_deposed(void *user, const char *why)
{
    gate *x = user;
    x->n_deposed++;
    snprintf(x->why, sizeof x->why, "%s", why);
}

static void gate_leader(void *user, const char *name)
{
    gate *x = user;
    snprintf(x->leader, sizeof x->leader, "%s", name ? name : "");
}

static void gate_heard(void *user, const registry_event *e)
{
    gate *x = user;
    x->n_dropped += e->what == REGISTRY_DROP;
}

#define OK(call)                                                 \
    do {                                                         \
        shoal_err err = {0};                                     \
        if ((call) != 0) fail_msg("%s: %s", #call, err.message); \
    } while (0)

/* A session and a registry; what else is wanted follows. */
static void gate_open(gate *x, house *h, const char *name, const etcd_session_options *o)
{
    *x = (gate){.h = h, .name = name};
    OK(registry_new(&x->g, &h->loop, &err));
    OK(registry_listen(x->g, gate_heard, x, &err));
    OK(source_open(&x->own, x->g, "agent", &err));
    source_synced(x->own);
    OK(etcd_session_open(&x->c, &h->loop, &h->e, o, &err));
}

static void gate_read(gate *x, const char *prefix, unsigned linger_ms)
{
    const etcd_source_options o = {.prefix = prefix,
                                   .own = x->name,
                                   .instance = x->name,
                                   .machine = x->h->machine,
                                   .linger_ms = linger_ms};
    OK(etcd_source_open(&x->source, x->c, x->g, &o, &err));
}

static void gate_publish(gate *x, const char *prefix)
{
    const node self = {.name = x->name, .isa = "avx2", .n_cores = 4};
    const etcd_publisher_options o = {
        .prefix = prefix, .instance = x->name, .machine = x->h->machine, .self = &self};
    OK(etcd_publisher_open(&x->publisher, x->c, x->g, &o, &err));
}

static void gate_stand(gate *x, const char *prefix)
{
    const etcd_election_events ev = {
        .user = x, .elected = gate_elected, .deposed = gate_deposed, .leader = gate_leader};
    OK(etcd_election_open(&x->election, x->c, prefix, x->name, &ev, &err));
    etcd_election_campaign(x->election);
}

static void gate_put(gate *x, const char *id, uint64_t generation)
{
    const member m = {.id = id, .generation = generation, .model = "m", .address = x->h->address};
    OK(source_put(x->own, &m, &err));
}

/* As when the process is killed: nothing is said to etcd. */
static void gate_die(gate *x)
{
    etcd_election_close(x->election);
    etcd_publisher_close(x->publisher);
    etcd_source_close(x->source);
    etcd_session_close(x->c);
    registry_unlisten(x->g, gate_heard, x);
    registry_free(x->g);
    x->g = NULL;
}

static bool gate_sees(const gate *x, const char *id)
{
    const replica *r = registry_get(x->g, id);
    return r && r->state == REPLICA_READY;
}

static const source *gate_etcd(const gate *x)
{
    for (size_t i = 0; i < registry_count_sources(x->g); i++)
        if (strcmp(source_name(registry_source_at(x->g, i)), "etcd") == 0) return registry_source_at(x->g, i);
    return NULL;
}

static bool gate_synced(const gate *x)
{
    return source_is_synced(gate_etcd(x)) && !*source_trouble(gate_etcd(x));
}

static bool gate_away(const gate *x)
{
    return *source_trouble(gate_etcd(x)) != '\0';
}

#endif
