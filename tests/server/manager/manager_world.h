/* The model manager over a cluster of the imagination: an agent that starts nothing, workers of a simulated world, a
 * store in a folder of its own, and somebody who asks and waits. A file called "broken" is no model, one
 * called "dies" ends its worker, and the worker of one called "hangs" never listens.
 *
 *     house h;
 *     house_open(&h);
 *     assert_int_equal(loaded(&h, "a.gguf", NULL, 0).status, 0);
 *     house_close(&h); */
#ifndef TESTS_MANAGER_MANAGER_WORLD_H
#define TESTS_MANAGER_MANAGER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../cluster/cluster/sim_workers.h"

#include "logging/log.h"
#include "cluster/registry.h"
#include "manager/manager.h"

enum { WORKERS_MAX = 96, TURNS_MAX = 4000, WAIT_MAX_S = 60 };

typedef struct house {
    uv_loop_t loop;
    uv_timer_t alive; /* a loop without handles runs no timers */
    sim_world world;
    registry *g;
    source *agent;
    gateway_config *config;
    manager *k;
    char top[64], book[96];
    const char *store, *manifest, *program; /* NULL: top, none, this one */
    worker_spec wanted[WORKERS_MAX];        /* as last set; texts are copied */
    char ids[WORKERS_MAX][96], addresses[WORKERS_MAX][40];
    unsigned n_wanted, n_ids, n_sets, n_hurries;
    uint64_t generation;
    bool slow;    /* what leaves does so when it is told */
    bool refuses; /* set fails */
} house;

/* ---- an agent that starts nothing ---------------------------------------------------------------------- */

static inline bool wants(const worker_spec *specs, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        for (int r = 0; r < specs[i].n_replicas; r++) {
            char name[96];
            snprintf(name, sizeof name, "%s/%d", specs[i].model, r);
            if (strcmp(name, id) == 0) return true;
        }
    return false;
}

static inline void put(house *h, const worker_spec *s, int replica)
{
    char id[96], address[40];
    snprintf(id, sizeof id, "%s/%d", s->model, replica);
    snprintf(address, sizeof address, "sim:%u", (unsigned)++h->generation);
    for (unsigned i = 0; i < h->n_ids; i++)
        if (strcmp(h->ids[i], id) == 0) return;
    bool broken = strstr(s->path, "broken") != NULL, dies = strstr(s->path, "dies") != NULL;
    member m = {.id = id,
                .generation = h->generation,
                .model = s->model,
                .address = address,
                .guest = s->guest,
                .reason = broken ? "it is no model" : "killed",
                .process = {.n_crashes = dies ? 3 : 0},
                .state = broken ? REPLICA_FAILED
                         : dies ? REPLICA_DOWN
                                : REPLICA_STARTING};
    if (!broken && !dies && !strstr(s->path, "hangs")) sim_worker_at(&h->world, address);
    assert_int_equal(source_put(h->agent, &m, NULL), 0);
    snprintf(h->addresses[h->n_ids], sizeof h->addresses[0], "%s", address);
    snprintf(h->ids[h->n_ids++], sizeof h->ids[0], "%s", id);
}

static inline void drop(house *h, unsigned i)
{
    char id[96];
    snprintf(id, sizeof id, "%s", h->ids[i]);
    memmove(&h->addresses[i], &h->addresses[i + 1], (h->n_ids - i - 1) * sizeof h->addresses[0]);
    memmove(&h->ids[i], &h->ids[i + 1], (--h->n_ids - i) * sizeof h->ids[0]);
    source_drop(h->agent, id, h->generation + 1);
}

/* It is not wanted any more, and finishes what it does. */
static inline void let_leave(house *h, unsigned i)
{
    char model[96];
    snprintf(model, sizeof model, "%.*s", (int)strcspn(h->ids[i], "/"), h->ids[i]);
    member m = {.id = h->ids[i],
                .generation = ++h->generation,
                .model = model,
                .address = h->addresses[i],
                .state = REPLICA_DRAINING};
    assert_int_equal(source_put(h->agent, &m, NULL), 0);
}

static inline int set(void *user, const worker_spec *specs, size_t n, shoal_err *err)
{
    house *h = user;
    h->n_sets++;
    if (h->refuses) return err_set(err, SHOAL_ELIMIT, "there are too many workers");
    for (unsigned i = h->n_ids; i-- > 0;)
        if (!wants(specs, n, h->ids[i])) (h->slow ? let_leave : drop)(h, i);
    for (size_t i = 0; i < n; i++)
        for (int r = 0; r < specs[i].n_replicas; r++) put(h, &specs[i], r);
    h->n_wanted = (unsigned)n;
    return 0;
}

static inline void hurry(void *user, const char *model)
{
    ((house *)user)->n_hurries++;
}

/* ---- a house ------------------------------------------------------------------------------------------- */

static inline void write_file(const house *h, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", h->top, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fputs("weights", f) < 0, 0);
    assert_int_equal(fclose(f), 0);
}

static inline void manager_start(house *h)
{
    char path[160];
    manager_options o = {.registry = h->g,
                         .config = h->config,
                         .store = h->store ? h->store : h->top,
                         .manifest = h->manifest,
                         .program = h->program,
                         .book = *h->book ? h->book : NULL,
                         .set = set,
                         .hurry = hurry,
                         .user = h,
                         .root = h->top};
    snprintf(path, sizeof path, "%s/fixed.gguf", h->top);
    worker_spec base = {.model = "fixed", .path = path, .n_replicas = 1};
    assert_int_equal(manager_open(&h->k, &h->loop, &o, NULL), 0);
    assert_int_equal(manager_base(h->k, &base, 1, NULL), 0);
}

static inline void ticked(uv_timer_t *t) {}

static inline void house_open(house *h)
{
    static const char yaml[] =
        "models:\n- name: fixed\n- name: spare\nroutes:\n- {name: fast, fallback: [fixed]}\n"
        "library: {fetch_from: [huggingface.co]}\n";
    static const char *const files[] = {"fixed.gguf", "a.gguf", "b.gguf", "broken.gguf", "dies.gguf"};
    memset(h, 0, sizeof *h);
    log_setup(LOG_OFF, false);
    strcpy(h->top, "/tmp/shoal_keep_XXXXXX");
    assert_non_null(mkdtemp(h->top));
    snprintf(h->book, sizeof h->book, "%s/state/loaded.json", h->top);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) write_file(h, files[i]);
    assert_int_equal(uv_loop_init(&h->loop), 0);
    uv_timer_init(&h->loop, &h->alive);
    uv_timer_start(&h->alive, ticked, 1, 1);
    assert_int_equal(config_parse(&h->config, NULL, yaml, sizeof yaml - 1, "x.yaml", NULL), 0);
    sim_world_open(&h->world, 1);
    connector how = sim_connector(&h->world);
    assert_int_equal(registry_new_with(&h->g, h->world.e, &how, NULL), 0);
    assert_int_equal(source_open(&h->agent, h->g, "agent", NULL), 0);
    manager_start(h);
}

static inline void manager_end(house *h)
{
    manager_drain(h->k);
    manager_close(h->k);
    uv_unref((uv_handle_t *)&h->alive);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    uv_ref((uv_handle_t *)&h->alive);
}

static inline void house_close(house *h)
{
    char command[160];
    manager_end(h);
    uv_close((uv_handle_t *)&h->alive, NULL);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    registry_free(h->g);
    sim_world_close(&h->world);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    config_free(h->config);
    snprintf(command, sizeof command, "rm -rf %s", h->top);
    assert_int_equal(system(command), 0);
}

/* ---- who asks ------------------------------------------------------------------------------------------ */

typedef struct asked {
    unsigned n_news, n_done;
    model_manager_step step; /* as last told */
    int status;              /* 0: well */
    char model[65], message[512];
} asked;

static inline void news(void *user, const model_manager_progress *n)
{
    ((asked *)user)->n_news++;
    ((asked *)user)->step = n->step;
}

static inline void done(void *user, const model_manager_progress *n, const api_error *e)
{
    asked *a = user;
    a->n_done++;
    a->step = n->step;
    snprintf(a->model, sizeof a->model, "%s", n->model);
    if (e) a->status = e->status;
    if (e) snprintf(a->message, sizeof a->message, "%s", e->message);
}

static inline model_manager_watch watch_of(asked *a)
{
    return (model_manager_watch){.news = news, .done = done, .user = a};
}

static inline void turn(house *h)
{
    uv_run(&h->loop, UV_RUN_NOWAIT);
    env_sim_run(h->world.time, 10);
    usleep(200);
}

typedef struct waiting {
    int n_turns;
    uint64_t end_ns;
} waiting;

/* Simulated time runs ahead for TURNS_MAX turns, and then at the pace of the true clock: a thread or a
 * program that is late is waited for, and no load runs into its limit meanwhile. */
static inline bool wait_turn(house *h, waiting *w, bool in_time)
{
    if (!w->end_ns) w->end_ns = uv_hrtime() + WAIT_MAX_S * (uint64_t)1000000000;
    if (uv_hrtime() > w->end_ns) return false;
    if (in_time) {
        turn(h);
        if (++w->n_turns > TURNS_MAX) usleep(10000);
    } else {
        uv_run(&h->loop, UV_RUN_ONCE);
    }
    return true;
}

/* Until it is so, or WAIT_MAX_S have passed; LOOP_UNTIL while simulated time stands still. */
#define TURN_UNTIL(h, is_so) \
    for (waiting w_ = {0}; !(is_so) && wait_turn(h, &w_, true);) continue
#define LOOP_UNTIL(h, is_so) \
    for (waiting w_ = {0}; !(is_so) && wait_turn(h, &w_, false);) continue

/* Until nothing is on the pool, nor about to be. */
static inline void calm_down(house *h)
{
    for (int n_calm = 0; n_calm < 20;) {
        turn(h);
        n_calm = h->loop.active_reqs.count > 0 ? 0 : n_calm + 1;
    }
}

static inline void wait_for(house *h, const asked *a)
{
    TURN_UNTIL(h, a->n_done > 0);
    assert_int_equal(a->n_done, 1);
}

static inline model_manager_ticket *ask(house *h, const char *path, const char *name, unsigned replicas,
                                        asked *a)
{
    const model_manager *k = manager_interface(h->k);
    config_load_request w = {.as = {.path = path, .name = name, .replicas = replicas},
                             .keep_alive_s = LOAD_REQUEST_STAYS};
    model_manager_watch watch = watch_of(a);
    api_error e;
    *a = (asked){0};
    model_manager_ticket *t = k->load(k->user, &w, &watch, &e);
    assert_non_null(t);
    assert_int_equal(a->n_done + a->n_news, 0); /* nobody is told inside the call */
    return t;
}

static inline asked loaded(house *h, const char *path, const char *name, unsigned replicas)
{
    asked a;
    ask(h, path, name, replicas, &a);
    wait_for(h, &a);
    return a;
}

static inline asked unloaded(house *h, const char *name, unsigned how)
{
    const model_manager *k = manager_interface(h->k);
    asked a = {0};
    model_manager_watch w = watch_of(&a);
    api_error e;
    assert_non_null(k->unload(k->user, name, how, &w, &e));
    wait_for(h, &a);
    return a;
}

static inline asked removed(house *h, const char *name, unsigned how)
{
    const model_manager *k = manager_interface(h->k);
    asked a = {0};
    model_manager_watch w = watch_of(&a);
    api_error e;
    assert_non_null(k->remove(k->user, name, how, &w, &e));
    wait_for(h, &a);
    return a;
}

static inline bool is_there(const house *h, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", h->top, name);
    return access(path, F_OK) == 0;
}

static inline void make_folder(const house *h, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", h->top, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static inline unsigned n_replicas(const house *h, const char *model)
{
    const replica_set *s = registry_find(h->g, model);
    return s ? (unsigned)s->n_ready : 0;
}

#endif
