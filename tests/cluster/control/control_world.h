/* A cluster in one process: a CA, a control-plane listener on its loop, and machines that join from threads
 * of their own. */
#ifndef TESTS_CONTROL_WORLD_H
#define TESTS_CONTROL_WORLD_H

#include "../trust/trust_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <uv.h>

#include "base/clock.h"
#include "logging/log.h"
#include "join/attach.h"
#include "control/control.h"
#include "join/join.h"
#include "time/env_sim.h"

typedef struct control_world {
    uv_loop_t loop;
    char state[80]; /* the gateway's folder, with the CA */
    char address[64];
    ca *ca;
    control *control;
    bool closed;
    /* The time of listeners and attached machines; sockets, and threads that join, take their own. */
    env_sim *sim;
} control_world;

static control_world w;

static inline int64_t today(void)
{
    return (int64_t)time(NULL);
}

/* Simulated time that passes with each turn of the loop: an answer over a socket takes a few turns, far less
 * than the seconds after which somebody is taken for silent. */
enum { TURN_MS = 10 };

static inline void world_turn(void)
{
    uv_run(&w.loop, UV_RUN_NOWAIT);
    if (w.sim) env_sim_run(w.sim, TURN_MS);
}

/* Turn the loop until it is so. No test asserts a time: one that never comes to pass is ended by the runner.
 */
#define TURN_UNTIL(condition)                                   \
    while (!(condition)) {                                      \
        world_turn();                                           \
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL); \
    }

static inline void world_closed(void *user)
{
    *(bool *)user = true;
}

enum { WORLD_SILENCE_MS = 60000 }; /* on a slow machine a thread may stand still for seconds */

static inline int world_open_with(void **state, uint64_t silence_ms)
{
    shoal_err err;
    char path[128];
    log_setup(LOG_OFF, false);
    memset(&w, 0, sizeof w);
    w.sim = env_sim_new(1);
    assert_non_null(w.sim);
    control_options o = {
        .listen = "127.0.0.1:0", .name = "boss", .silence_ms = silence_ms, .time = env_sim_env(w.sim)};
    if (place_open(state) != 0 || uv_loop_init(&w.loop) != 0) return -1;
    snprintf(w.state, sizeof w.state, "%s/gateway", place);
    snprintf(path, sizeof path, "%s/ca", w.state);
    folder f = FOLDER_NONE;
    if (folder_open(&f, w.state, true, &err) != 0) return -1;
    folder_close(&f);
    o.state = w.state;
    if (ca_init(path, "home", today(), &err) != 0 || ca_open(&w.ca, path, &err) != 0 ||
        control_open(&w.control, &w.loop, &o, &err) != 0) {
        print_error("%s\n", err.message);
        return -1;
    }
    snprintf(w.address, sizeof w.address, "127.0.0.1:%d", control_port(w.control));
    return 0;
}

static inline int world_open(void **state)
{
    return world_open_with(state, WORLD_SILENCE_MS);
}

/* The listener once more, at the port that it had: another program may have got that for a moment. */
static inline void world_reopen(const control_options *o)
{
    shoal_err err;
    for (int i = 0; control_open(&w.control, &w.loop, o, &err) != 0; i++) {
        if (i == 200 || !strstr(err.message, "in use")) fail_msg("%s", err.message);
        world_turn();
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
}

static inline int world_close(void **state)
{
    control_close(w.control, world_closed, &w.closed);
    TURN_UNTIL(w.closed);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    ca_close(w.ca);
    if (env_sim_timers(w.sim) != 0) return -1;
    env_sim_free(w.sim);
    if (uv_loop_close(&w.loop) != 0) return -1;
    return place_close(state);
}

/* ---- joining ------------------------------------------------------------------------------------- */

/* A machine joins in a thread of its own beside the loop of its gateway. A descriptor that one of them closes
 * may be the other's next one, which the kernel orders and ThreadSanitizer does not see unless all reads and
 * writes do. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "io_sync=2";
}

typedef struct joiner {
    join_ask ask;
    folder dir;
    shoal_err err;
    int rc;
    atomic_bool done;
} joiner;

static inline void *join_thread(void *arg)
{
    joiner *j = arg;
    j->rc = join_cluster(&j->ask, &j->dir, &j->err);
    atomic_store(&j->done, true);
    return NULL;
}

static inline int world_join(const char *name, const char *token, folder *ret_dir, shoal_err *err)
{
    char path[256];
    pthread_t thread;
    joiner j = {.ask = {.address = w.address, .token = token, .name = name}, .dir = FOLDER_NONE};
    snprintf(path, sizeof path, "%s/%s", place, name);
    assert_int_equal(folder_open(&j.dir, path, true, NULL), 0);
    atomic_init(&j.done, false);
    assert_int_equal(pthread_create(&thread, NULL, join_thread, &j), 0);
    TURN_UNTIL(atomic_load(&j.done));
    pthread_join(thread, NULL);
    if (err) *err = j.err;
    if (ret_dir)
        *ret_dir = j.dir;
    else
        folder_close(&j.dir);
    return j.rc;
}

static inline void world_token(role r, char text[TOKEN_TEXT_SIZE])
{
    assert_int_equal(ca_token(w.ca, &(ca_token_ask){.role = r}, today(), text, NULL), 0);
}

/* ---- unauthenticated peers ----------------------------------------------------------------------------- */

/* One that connects and does not get through the handshake; half: it sends the beginning of a hello. */
static inline int unauthenticated_connect(const char *at, bool half)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_port = htons((uint16_t)atoi(strrchr(at, ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    if (half) assert_int_equal(send(fd, "\x16\x03\x01\x02\x00\x01\x00", 7, MSG_NOSIGNAL), 7);
    return fd;
}

/* How many of them the other end has closed. */
static inline int unauthenticated_cut(const int *fds, int n)
{
    int n_cut = 0;
    char byte;
    for (int i = 0; i < n; i++) {
        ssize_t got = recv(fds[i], &byte, 1, MSG_DONTWAIT);
        n_cut += got == 0 || (got < 0 && errno == ECONNRESET);
    }
    return n_cut;
}

/* ---- machines ------------------------------------------------------------------------------------ */

typedef struct machine_up {
    folder dir;
    attach *a;
    int n_attached, n_detached;
    char why[256];
    int64_t ahead_s; /* of its clock, as far as renewals go */
    bool roams;
    bool closed;
} machine_up;

static inline void up_attached(void *user, const char *gateway)
{
    ((machine_up *)user)->n_attached++;
}

static inline void up_detached(void *user, const char *why)
{
    machine_up *m = user;
    m->n_detached++;
    snprintf(m->why, sizeof m->why, "%s", why);
}

static inline int64_t up_now(void *user)
{
    return today() + ((machine_up *)user)->ahead_s;
}

static inline void up_start(machine_up *m)
{
    static char *labels[] = {"attic"};
    shoal_err err;
    Shoal__V1__NodeFacts f = SHOAL__V1__NODE_FACTS__INIT;
    f.site = "house";
    f.n_cores = 4;
    f.labels = labels;
    f.n_labels = 1;
    attach_options o = {.address = w.address,
                        .roams = m->roams,
                        .dir = &m->dir,
                        .facts = &f,
                        .attached = up_attached,
                        .detached = up_detached,
                        .now = up_now,
                        .time = env_sim_env(w.sim),
                        .user = m};
    if (attach_open(&m->a, &w.loop, &o, &err) != 0) fail_msg("%s", err.message);
}

static inline void up_join(machine_up *m, const char *name)
{
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    *m = (machine_up){.dir = FOLDER_NONE};
    world_token(ROLE_NODE, text);
    if (world_join(name, text, &m->dir, &err) != 0) fail_msg("%s", err.message);
    up_start(m);
    TURN_UNTIL(m->n_attached == 1);
}

static inline void up_stop(machine_up *m)
{
    attach_close(m->a, world_closed, &m->closed);
    TURN_UNTIL(m->closed);
    folder_close(&m->dir);
}

#endif
