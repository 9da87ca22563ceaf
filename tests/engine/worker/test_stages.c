/* A network in stages over real sockets: an engine as the first stage, workers as the others. */
#define _GNU_SOURCE
#include "../infer/helper.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "logging/log.h"
#include "shoal/v1/stage.pb-c.h"
#include "shoal/v1/worker.pb-c.h"
#include "grpc/grpc.h"
#include "backend/stage_link.h"
#include "worker/worker.h"

#define MODEL    DATA "hf/qwen3-qknorm" /* three layers */
#define N_LAYER  3
#define N_EMBD   64
#define N_STREAM 5

static char dir[] = "/tmp/shoal-test-XXXXXX", digest[65];

/* ---- a stage: a worker with a loop and a thread of its own ------------------------------------------ */

typedef struct host {
    const char *model; /* NULL: MODEL */
    net_layers part;
    const char *const *stages; /* of the first */
    size_t n_stages;
    char address[128];
    uv_thread_t thread;
    uv_async_t stop;
    uv_sem_t up;
    worker *w;
} host;

static void host_stop(uv_async_t *a)
{
    host *h = a->data;
    worker_close(h->w, NULL, NULL);
    uv_close((uv_handle_t *)a, NULL);
}

static void host_main(void *arg)
{
    host *h = arg;
    uv_loop_t loop;
    shoal_err err = {0};
    worker_options o = {.model = {.name = "tiny",
                                  .path = h->model ? h->model : MODEL,
                                  .layers = h->part,
                                  .stages = h->stages,
                                  .n_stages = h->n_stages,
                                  .engine = {.n_threads = 1, .kv_bytes = 4 << 20}},
                        .address = h->address,
                        .arbiter_fd = -1};
    uv_loop_init(&loop);
    uv_async_init(&loop, &h->stop, host_stop);
    h->stop.data = h;
    if (worker_new(&h->w, &loop, &o, &err) != 0) {
        fprintf(stderr, "worker_new: %s\n", err.message);
        abort();
    }
    uv_sem_post(&h->up);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
}

static void host_open(host *h, const char *name, net_layers part)
{
    h->part = part;
    snprintf(h->address, sizeof h->address, "unix:%s/%s", dir, name);
    uv_sem_init(&h->up, 0);
    uv_thread_create(&h->thread, host_main, h);
    uv_sem_wait(&h->up);
}

static void host_close(host *h)
{
    uv_async_send(&h->stop);
    uv_thread_join(&h->thread);
    uv_sem_destroy(&h->up);
}

/* ---- streams ------------------------------------------------------------------------------------------- */

static void streams_start(engine *e, reply *out[N_STREAM], size_t n_new)
{
    for (size_t i = 0; i < N_STREAM; i++) {
        int32_t ids[64];
        size_t n = 1 + i * 14;
        for (size_t k = 0; k < n; k++) ids[k] = (int32_t)(rng_mix(k + i / 2) % 100);
        out[i] = reply_new();
        gen_request q = {.ids = ids,
                         .n_ids = n,
                         .max_tokens = n_new,
                         .ignore_eos = true,
                         .logprobs = true,
                         .sampling = {.temperature = i % 2 ? 0.8f : 0, .seed = i}};
        must(reply_start(out[i], e, &q, &err));
    }
}

static void streams_wait(reply *out[N_STREAM])
{
    for (size_t i = 0; i < N_STREAM; i++) reply_wait(out[i]);
}

static void streams_free(reply *out[N_STREAM])
{
    for (size_t i = 0; i < N_STREAM; i++) reply_free(out[i]);
}

static void streams_same(reply *a[N_STREAM], reply *b[N_STREAM])
{
    for (size_t i = 0; i < N_STREAM; i++) {
        if (b[i]->status) fail_msg("stream %zu: %s", i, b[i]->message);
        assert_int_equal(a[i]->n, b[i]->n);
        assert_memory_equal(a[i]->ids, b[i]->ids, a[i]->n * sizeof *a[i]->ids);
        assert_memory_equal(a[i]->logprobs, b[i]->logprobs, a[i]->n * sizeof *a[i]->logprobs);
    }
}

static void whole_streams(reply *out[N_STREAM], size_t n_new)
{
    rig r;
    rig_open(&r, MODEL, (engine_options){0});
    streams_start(r.e, out, n_new);
    streams_wait(out);
    rig_close(&r);
}

static stage_link_options link_to(const char *const *addresses, size_t n, size_t end, rows_wire wire)
{
    return (stage_link_options){.addresses = addresses,
                                .n = n,
                                .digest = digest,
                                .part = {0, end},
                                .n_layer = N_LAYER,
                                .n_embd = N_EMBD,
                                .wire = wire,
                                .wait_ms = 10000,
                                .silent_ms = 60000}; /* a thread that stands still is no loss */
}

static void streams_through_sockets_are_the_same(void **state)
{
    reply *whole[N_STREAM], *cut[N_STREAM];
    host a = {0}, b = {0};
    stage_link *l;
    stage_link_stats s;
    rig r;
    whole_streams(whole, 40);
    host_open(&a, "a", (net_layers){1, 2});
    host_open(&b, "b", (net_layers){2, 3});
    const char *const addresses[] = {a.address, b.address};
    stage_link_options o = link_to(addresses, 2, 1, ROWS_F32);
    must(stage_link_open(&l, &o, &err));
    rig_open(&r, MODEL, (engine_options){.shards = stage_link_shards(l)});
    streams_start(r.e, cut, 40);
    streams_wait(cut);
    streams_same(whole, cut);
    rig_close(&r);
    stage_link_get_stats(l, &s);
    assert_true(s.n_steps > 40 && s.n_losses == 0 && s.sent_bytes > 0 && s.received_bytes > 0);
    stage_link_close(l);
    host_close(&a);
    host_close(&b);
    streams_free(whole);
    streams_free(cut);
}

static void digest_of(const char *path, char hex[65])
{
    model *m;
    sha256_digest d;
    must(model_open(&m, path, &(model_options){.no_tokenizer = true}, &err));
    must(model_digest(m, &d, &err));
    sha256_hex(&d, hex);
    model_free(m);
}

/* The states of convolutions stay with their layers; the first stage, which has one of them, numbers them. */
static void states_through_sockets_are_the_same(void **state)
{
    static const char path[] = DATA "hf/lfm2-conv";
    reply *whole[N_STREAM], *cut[N_STREAM];
    char hex[65];
    host a = {.model = path};
    stage_link *l;
    rig r;
    rig_open(&r, path, (engine_options){0});
    streams_start(r.e, whole, 60);
    streams_wait(whole);
    rig_close(&r);
    digest_of(path, hex);
    host_open(&a, "a", (net_layers){2, 4});
    const char *const addresses[] = {a.address};
    stage_link_options o = link_to(addresses, 1, 2, ROWS_F32);
    o.digest = hex;
    o.n_layer = 4;
    must(stage_link_open(&l, &o, &err));
    rig_open(&r, path, (engine_options){.shards = stage_link_shards(l), .draft_price = 1e-9});
    streams_start(r.e, cut, 60);
    streams_wait(cut);
    streams_same(whole, cut);
    rig_close(&r);
    stage_link_close(l);
    host_close(&a);
    streams_free(whole);
    streams_free(cut);
}

static size_t tokens_of(reply *r)
{
    pthread_mutex_lock(&r->lock);
    size_t n = r->n;
    pthread_mutex_unlock(&r->lock);
    return n;
}

static void wait_for_tokens(reply *r, size_t n)
{
    for (bool there = false; !there; usleep(500)) {
        pthread_mutex_lock(&r->lock);
        there = r->n >= n || r->done;
        pthread_mutex_unlock(&r->lock);
    }
}

/* Twice a stage goes in the middle of the streams, and another comes in its place. */
static void streams_outlive_their_stages(void **state)
{
    reply *whole[N_STREAM], *cut[N_STREAM];
    host a = {0};
    stage_link *l;
    stage_link_stats s;
    rig r;
    whole_streams(whole, 190);
    host_open(&a, "a", (net_layers){1, 3});
    const char *const addresses[] = {a.address};
    stage_link_options o = link_to(addresses, 1, 1, ROWS_F32);
    must(stage_link_open(&l, &o, &err));
    rig_open(&r, MODEL, (engine_options){.shards = stage_link_shards(l)});
    streams_start(r.e, cut, 190);
    for (size_t i = 0; i < 2; i++) {
        wait_for_tokens(cut[0], tokens_of(cut[0]) + 8);
        host_close(&a);
        host_open(&a, "a", (net_layers){1, 3});
    }
    streams_wait(cut);
    streams_same(whole, cut);
    stage_link_get_stats(l, &s);
    assert_in_range(s.n_losses, 1, 2);
    rig_close(&r);
    stage_link_close(l);
    host_close(&a);
    streams_free(whole);
    streams_free(cut);
}

/* ---- kill -9 ---------------------------------------------------------------------------------------- */

/* A process that starts `shoal worker`'s own main as often as it dies, as an agent does; and says its pid. */
static struct {
    pid_t pid;
    int pids; /* to be read: one pid for each start */
    char address[128];
} nurse;

static void nurse_main(int to)
{
    worker_options o = {.model = {.name = "tiny",
                                  .path = MODEL,
                                  .layers = {1, 3},
                                  .engine = {.n_threads = 1, .kv_bytes = 4 << 20}},
                        .address = nurse.address,
                        .arbiter_fd = -1,
                        .parent_pid = getpid()};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        pid_t child = fork();
        if (child == 0) _exit(worker_run(&o));
        if (child < 0 || write(to, &child, sizeof child) != sizeof child) _exit(1);
        waitpid(child, NULL, 0);
    }
}

/* In a process without threads. */
static int nurse_start(void)
{
    int fds[2];
    if (pipe(fds) != 0) return -1;
    snprintf(nurse.address, sizeof nurse.address, "unix:%s/nursed", dir);
    nurse.pid = fork();
    if (nurse.pid == 0) nurse_main(fds[1]);
    close(fds[1]);
    nurse.pids = fds[0];
    return nurse.pid < 0 ? -1 : 0;
}

static int nurse_end(void)
{
    kill(nurse.pid, SIGKILL);
    waitpid(nurse.pid, NULL, 0);
    close(nurse.pids);
    return unlink(nurse.address + 5);
}

/* kill -9 of a stage in the middle: the streams go on with the same tokens. */
static void streams_outlive_kill_9(void **state)
{
    reply *whole[N_STREAM], *cut[N_STREAM];
    stage_link *l;
    stage_link_stats s;
    rig r;
    pid_t pid;
    whole_streams(whole, 190);
    const char *const addresses[] = {nurse.address};
    stage_link_options o = link_to(addresses, 1, 1, ROWS_F32);
    must(stage_link_open(&l, &o, &err));
    rig_open(&r, MODEL, (engine_options){.shards = stage_link_shards(l)});
    streams_start(r.e, cut, 190);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(read(nurse.pids, &pid, sizeof pid), sizeof pid);
        wait_for_tokens(cut[0], tokens_of(cut[0]) + 8);
        kill(pid, SIGKILL);
    }
    streams_wait(cut);
    streams_same(whole, cut);
    stage_link_get_stats(l, &s);
    assert_in_range(s.n_losses, 1, 3);
    rig_close(&r);
    stage_link_close(l);
    streams_free(whole);
    streams_free(cut);
}

/* ---- coarser rows ----------------------------------------------------------------------------------- */

static double cosine(const float *a, const float *b, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return ab / sqrt(aa * bb);
}

static float *logits_over(rows_wire wire, const char *const *addresses, size_t *ret_n)
{
    enum { N = 40 };
    stage_link *l;
    rig r;
    int32_t ids[N];
    stage_link_options o = link_to(addresses, 1, 1, wire);
    must(stage_link_open(&l, &o, &err));
    rig_open(&r, MODEL, (engine_options){.shards = stage_link_shards(l)});
    *ret_n = N * model_get_config(r.m)->n_vocab;
    float *out = malloc(*ret_n * sizeof *out);
    for (size_t i = 0; i < N; i++) ids[i] = (int32_t)(rng_mix(i) % 100);
    must(engine_logits(r.e, NULL, ids, N, N, out, &err));
    rig_close(&r);
    stage_link_close(l);
    return out;
}

static void coarser_rows_stay_near(void **state)
{
    host a = {0};
    size_t n;
    host_open(&a, "a", (net_layers){1, 3});
    const char *const addresses[] = {a.address};
    float *exact = logits_over(ROWS_F32, addresses, &n);
    float *f16 = logits_over(ROWS_F16, addresses, &n), *int8 = logits_over(ROWS_INT8, addresses, &n);
    double c16 = cosine(exact, f16, n), c8 = cosine(exact, int8, n);
    if (!(c16 > 0.999999 && c16 < 1 && c8 > 0.999 && c8 < c16)) fail_msg("f16 %.9f, int8 %.9f", c16, c8);
    free(exact);
    free(f16);
    free(int8);
    host_close(&a);
}

/* ---- what they cost a trained model ---- */

#define HOME SHOAL_SOURCE_DIR "/models/home-chat-m.gguf"

/* Only figures are compared, which a sanitizer knows nothing of: there as many tokens as take all ways. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HOME_IDS = 40 };
#else
enum { HOME_IDS = 400 };
#endif

/* What the home model's users say, one request after the other. */
static size_t home_ids(const model *m, int32_t *ids)
{
    static const char *const said[] = {"turn on the kitchen light",
                                       "is the front door locked?",
                                       "make it two degrees warmer in the bedroom",
                                       "good night",
                                       "which windows are open upstairs?",
                                       "dim the lamp by the sofa to 30 %"};
    size_t n = 0;
    for (size_t k = 0; n < HOME_IDS; k++) {
        encoding e = {0};
        const char *s = said[k % (sizeof said / sizeof *said)];
        must(tokenizer_encode(model_tokenizer(m), s, strlen(s), NULL, 0, TOK_ADD_SPECIAL, 0, &e, &err));
        for (size_t i = 0; i < e.n && n < HOME_IDS; i++) ids[n++] = e.ids[i];
        encoding_done(&e);
    }
    return n;
}

static float *home_logits(rows_wire wire, const char *address, const char *hex, size_t *ret_n,
                          size_t *ret_n_vocab)
{
    int32_t ids[HOME_IDS];
    stage_link *l;
    rig r;
    model *m;
    must(model_open(&m, HOME, NULL, &err));
    const model_config *c = model_get_config(m);
    const char *const addresses[] = {address};
    stage_link_options o = {.addresses = addresses,
                            .n = 1,
                            .digest = hex,
                            .part = {0, 3},
                            .n_layer = c->n_layer,
                            .n_embd = c->n_embd,
                            .wire = wire};
    *ret_n = home_ids(m, ids);
    *ret_n_vocab = c->n_vocab;
    model_free(m);
    must(stage_link_open(&l, &o, &err));
    rig_open(&r, HOME, (engine_options){.shards = stage_link_shards(l)});
    float *out = malloc(*ret_n * *ret_n_vocab * sizeof *out);
    must(engine_logits(r.e, NULL, ids, *ret_n, *ret_n, out, &err));
    rig_close(&r);
    stage_link_close(l);
    return out;
}

static size_t largest(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* Prints what docs/cluster.md says of them. */
static void near_enough(const char *name, const float *exact, const float *x, size_t n, size_t n_vocab,
                        double least_cosine, double least_same)
{
    double worst = 1, mean = 0;
    size_t n_same = 0;
    for (size_t i = 0; i < n; i++) {
        const float *a = exact + i * n_vocab, *b = x + i * n_vocab;
        double c = cosine(a, b, n_vocab);
        if (c < worst) worst = c;
        mean += c / (double)n;
        n_same += largest(a, n_vocab) == largest(b, n_vocab);
    }
    double same = (double)n_same / (double)n;
    printf("%s: cosine of the logits %.7f in the mean, %.7f at the worst; %.1f %% choose the same token\n",
           name, mean, worst, 100 * same);
    assert_true(mean >= least_cosine && same >= least_same);
}

static void coarser_rows_of_a_trained_model(void **state)
{
    host a = {.model = HOME};
    size_t n, n_vocab;
    char hex[65];
    sha256_digest d;
    must(sha256_file(HOME, &d, &err));
    sha256_hex(&d, hex);
    host_open(&a, "home", (net_layers){3, 8});
    float *exact = home_logits(ROWS_F32, a.address, hex, &n, &n_vocab);
    float *f16 = home_logits(ROWS_F16, a.address, hex, &n, &n_vocab);
    float *int8 = home_logits(ROWS_INT8, a.address, hex, &n, &n_vocab);
    near_enough("f16", exact, f16, n, n_vocab, 0.9999, 0.97);
    near_enough("int8", exact, int8, n, n_vocab, 0.999, 0.95);
    free(exact);
    free(f16);
    free(int8);
    host_close(&a);
}

static void rows_become_bytes_and_come_back(void **state)
{
    enum { N = 67 };
    float x[N], y[N];
    uint8_t bytes[N * 4];
    for (size_t i = 0; i < N; i++) x[i] = (float)((double)rng_mix(i) / 1e19 - 0.9) * (i % 7 == 0 ? 100 : 1);
    assert_int_equal(rows_wire_bytes(ROWS_F32, N), 4 * N);
    assert_int_equal(rows_wire_bytes(ROWS_F16, N), 2 * N);
    assert_int_equal(rows_wire_bytes(ROWS_INT8, N), N + 3 * 2);
    assert_int_equal(rows_wire_bytes((rows_wire)3, N), 0);
    assert_int_equal(rows_wire_bytes(ROWS_F32, SIZE_MAX), 0);
    rows_wire_put(ROWS_F32, x, 1, N, bytes);
    rows_wire_get(ROWS_F32, bytes, 1, N, y);
    assert_memory_equal(x, y, sizeof x);
    rows_wire_put(ROWS_INT8, x, 1, N, bytes);
    rows_wire_get(ROWS_INT8, bytes, 1, N, y);
    for (size_t i = 0; i < N; i++) assert_true(fabsf(x[i] - y[i]) < 0.5f);
    x[0] = INFINITY;
    x[40] = 1e30f;
    rows_wire_put(ROWS_INT8, x, 1, N, bytes);
    rows_wire_get(ROWS_INT8, bytes, 1, N, y);
    assert_true(isnan(y[0]) && isnan(y[31]) && !isfinite(y[40]) && isfinite(y[64]));
    memset(x, 0, sizeof x);
    rows_wire_put(ROWS_INT8, x, 1, N, bytes);
    rows_wire_get(ROWS_INT8, bytes, 1, N, y);
    assert_memory_equal(x, y, sizeof x);
}

/* ---- links that cannot be --------------------------------------------------------------------------- */

static void link_refused(const stage_link_options *o, int code, const char *says)
{
    stage_link *l;
    shoal_err err = {0};
    assert_int_equal(stage_link_open(&l, o, &err), code);
    if (!strstr(err.message, says)) fail_msg("%s", err.message);
}

static void stages_that_do_not_fit_are_refused(void **state)
{
    host a = {0}, b = {0};
    host_open(&a, "a", (net_layers){1, 2});
    host_open(&b, "b", (net_layers){2, 3});
    const char *const both[] = {a.address, b.address}, *const turned[] = {b.address, a.address};
    stage_link_options o = link_to(both, 1, 1, ROWS_F32);
    link_refused(&o, SHOAL_EINVALID, "missing behind");
    o = link_to(turned, 2, 1, ROWS_F32);
    link_refused(&o, SHOAL_EINVALID, "do not follow");
    o = link_to(both, 2, 2, ROWS_F32);
    link_refused(&o, SHOAL_EINVALID, "do not follow");
    o = link_to(both, 2, 1, ROWS_F32);
    o.n_embd = 128;
    link_refused(&o, SHOAL_EINVALID, "another model");
    o = link_to(both, 2, 1, ROWS_F32);
    o.digest = "0123";
    link_refused(&o, SHOAL_EINVALID, "another model");
    o = link_to(both, 2, 1, ROWS_F32);
    o.kv_type = KV_Q8_0;
    link_refused(&o, SHOAL_EINVALID, "keeps keys and values as q8_0, this one as its weights ask");
    o = link_to((const char *[]){"127.0.0.1:1"}, 1, 1, ROWS_F32);
    link_refused(&o, SHOAL_EINVALID, "Unix socket");
    o = link_to((const char *[]){"unix:/nowhere/at/all"}, 1, 1, ROWS_F32);
    o.wait_ms = 250;
    link_refused(&o, SHOAL_EUNAVAILABLE, "/nowhere");
    host_close(&a);
    host_close(&b);
}

/* ---- a first stage that lies ------------------------------------------------------------------------ */

typedef struct liar {
    uv_loop_t loop;
    grpc_channel *channel;
    bool connected, ended;
    size_t n_replies;
    grpc_status status;
    char why[256];
} liar;

static void liar_connected(void *user)
{
    ((liar *)user)->connected = true;
}
static void liar_reply(void *user, const uint8_t *msg, size_t n)
{
    ((liar *)user)->n_replies++;
}
static void liar_end(void *user, grpc_status status, const char *message)
{
    liar *x = user;
    x->ended = true;
    x->status = status;
    snprintf(x->why, sizeof x->why, "%s", message ? message : "");
}

static void liar_open(liar *x, const char *address)
{
    grpc_channel_events ev = {.user = x, .connected = liar_connected};
    *x = (liar){0};
    uv_loop_init(&x->loop);
    must(grpc_channel_new(&x->channel, &x->loop, address, &ev, &err));
    while (!x->connected) uv_run(&x->loop, UV_RUN_ONCE);
}

static void liar_close(liar *x)
{
    grpc_channel_close(x->channel);
    uv_run(&x->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&x->loop), 0);
}

static grpc_client_call *liar_call(liar *x)
{
    grpc_client_events ev = {.user = x, .message = liar_reply, .end = liar_end};
    x->ended = false;
    x->n_replies = 0;
    return grpc_call_open(x->channel, "/shoal.v1.Stage/Run", NULL, &ev);
}

static void liar_send(grpc_client_call *c, Shoal__V1__StageOpen *open, Shoal__V1__StageStep *step)
{
    uint8_t bytes[70000];
    Shoal__V1__StageRequest m = SHOAL__V1__STAGE_REQUEST__INIT;
    m.what_case = open   ? SHOAL__V1__STAGE_REQUEST__WHAT_OPEN
                  : step ? SHOAL__V1__STAGE_REQUEST__WHAT_STEP
                         : SHOAL__V1__STAGE_REQUEST__WHAT__NOT_SET;
    if (open)
        m.open = open;
    else
        m.step = step;
    assert_true(protobuf_c_message_get_packed_size(&m.base) <= sizeof bytes);
    assert_int_equal(grpc_client_send(c, bytes, protobuf_c_message_pack(&m.base, bytes)), 0);
}

/* A step of one item, with the stream opened before it if it is to be. */
static void liar_tries(liar *x, bool open, Shoal__V1__StageItem item, size_t n_bytes, size_t n_copies,
                       const char *says)
{
    static uint8_t zeros[64000];
    uint32_t copies[3] = {0, 1, 2};
    Shoal__V1__StageOpen o = SHOAL__V1__STAGE_OPEN__INIT;
    Shoal__V1__StageStep s = SHOAL__V1__STAGE_STEP__INIT;
    Shoal__V1__StageItem *items[] = {&item};
    o.digest = digest;
    s.items = items;
    s.n_items = 1;
    s.copies = copies;
    s.n_copies = n_copies;
    s.rows = (ProtobufCBinaryData){.data = zeros, .len = n_bytes};
    grpc_client_call *c = liar_call(x);
    if (open) liar_send(c, &o, NULL);
    liar_send(c, NULL, &s);
    while (!x->ended && !(x->n_replies == 2 && !says)) uv_run(&x->loop, UV_RUN_ONCE);
    if (!says) {
        assert_false(x->ended);
        grpc_client_cancel(c);
        return;
    }
    assert_int_equal(x->status, GRPC_INVALID_ARGUMENT);
    if (!strstr(x->why, says)) fail_msg("%s", x->why);
}

static Shoal__V1__StageItem item_of(uint32_t *pages, size_t n_pages, uint32_t position, uint32_t n,
                                    uint32_t n_out)
{
    Shoal__V1__StageItem it = SHOAL__V1__STAGE_ITEM__INIT;
    it.pages = pages;
    it.n_pages = n_pages;
    it.position = position;
    it.n = n;
    it.n_out = n_out;
    return it;
}

static void steps_that_lie_end_their_stream_and_nothing_else(void **state)
{
    host a = {0};
    liar x;
    uint32_t zero = 0, far = UINT32_MAX;
    size_t row = N_EMBD * 4;
    host_open(&a, "a", (net_layers){1, 3});
    liar_open(&x, a.address);
    liar_tries(&x, false, item_of(&zero, 1, 0, 1, 1), row, 0, "before the stream was opened");
    liar_tries(&x, true, item_of(&zero, 1, 0, 1, 1), row - 1, 0, "bytes of rows");
    liar_tries(&x, true, item_of(&zero, 1, 0, 1, 1), row, 1, "copies");
    liar_tries(&x, true, item_of(&zero, 1, 0, 2, 1), row, 0, "rows are left");
    liar_tries(&x, true, item_of(&zero, 1, 0, 1, 2), row, 0, "wanted");
    liar_tries(&x, true, item_of(&far, 1, 0, 1, 1), row, 0, "names page");
    liar_tries(&x, true, item_of(&zero, 1, far, far, 1), row, 0, "rows are left");
    liar_tries(&x, true, item_of(&zero, 0, 0, 1, 1), row, 0, "brings 0 pages");
    grpc_client_call *c = liar_call(&x);
    assert_int_equal(grpc_client_send(c, "\xff\xff\xff", 3), 0);
    while (!x.ended) uv_run(&x.loop, UV_RUN_ONCE);
    assert_int_equal(x.status, GRPC_INVALID_ARGUMENT);
    c = liar_call(&x);
    liar_send(c, NULL, NULL);
    while (!x.ended) uv_run(&x.loop, UV_RUN_ONCE);
    assert_int_equal(x.status, GRPC_INVALID_ARGUMENT);
    liar_tries(&x, true, item_of(&zero, 1, 0, 1, 1), row, 0, NULL); /* it serves on */
    liar_close(&x);
    host_close(&a);
}

/* A stage has one first stage at a time, and nothing for those who ask it for words. */
static void a_second_first_stage_is_refused(void **state)
{
    host a = {0};
    liar x, y;
    Shoal__V1__StageOpen o = SHOAL__V1__STAGE_OPEN__INIT;
    o.digest = digest;
    host_open(&a, "a", (net_layers){1, 3});
    liar_open(&x, a.address);
    liar_open(&y, a.address);
    grpc_client_call *c = liar_call(&x);
    liar_send(c, &o, NULL);
    while (x.n_replies == 0) uv_run(&x.loop, UV_RUN_ONCE);
    grpc_client_call *d = liar_call(&y);
    liar_send(d, &o, NULL);
    for (; !y.ended; usleep(500)) {
        uv_run(&y.loop, UV_RUN_NOWAIT);
        uv_run(&x.loop, UV_RUN_NOWAIT); /* it answers pings */
    }
    assert_int_equal(y.status, GRPC_UNAVAILABLE);
    grpc_client_cancel(c);
    grpc_client_events ev = {.user = &y, .end = liar_end};
    y.ended = false;
    grpc_call_start(y.channel, "/shoal.v1.Worker/Generate", "", 0, NULL, 0, 0, &ev);
    while (!y.ended) uv_run(&y.loop, UV_RUN_ONCE);
    assert_int_equal(y.status, GRPC_UNIMPLEMENTED);
    assert_non_null(strstr(y.why, "first stage"));
    liar_close(&x);
    liar_close(&y);
    host_close(&a);
}

/* A first stage whose machine lost its power says nothing and closes nothing: the next one is taken all the
 * same, though nothing was under way. */
static void a_first_stage_that_vanishes_keeps_nobody_out(void **state)
{
    host a = {0};
    liar x, y;
    Shoal__V1__StageOpen o = SHOAL__V1__STAGE_OPEN__INIT;
    size_t n_refused = 0;
    o.digest = digest;
    host_open(&a, "a", (net_layers){1, 3});
    liar_open(&x, a.address);
    liar_open(&y, a.address);
    liar_send(liar_call(&x), &o, NULL);
    while (x.n_replies == 0) uv_run(&x.loop, UV_RUN_ONCE);
    do { /* x's loop does not run any more */
        n_refused += y.ended;
        if (y.ended) usleep(50000); /* as the link of a first stage rests between two tries */
        liar_send(liar_call(&y), &o, NULL);
        for (; !y.ended && y.n_replies == 0; usleep(500)) uv_run(&y.loop, UV_RUN_NOWAIT);
    } while (y.ended);
    assert_true(n_refused > 0); /* while nobody knew */
    while (!x.ended) uv_run(&x.loop, UV_RUN_ONCE);
    assert_int_equal(x.status, GRPC_UNAVAILABLE);
    liar_close(&x);
    liar_close(&y);
    host_close(&a);
}

/* ---- the whole of it -------------------------------------------------------------------------------- */

typedef struct words {
    liar x;
    size_t n;
    int32_t ids[64];
} words;

static void words_reply(void *user, const uint8_t *msg, size_t n)
{
    words *w = user;
    Shoal__V1__GenerateEvent *ev = shoal__v1__generate_event__unpack(NULL, n, msg);
    for (size_t i = 0; ev->delta && i < ev->delta->n_ids; i++) w->ids[w->n++] = ev->delta->ids[i];
    shoal__v1__generate_event__free_unpacked(ev, NULL);
}

/* Asked of a worker over gRPC. */
static void words_of(words *w, const char *address)
{
    uint8_t bytes[512];
    int32_t ids[] = {5, 6, 7, 8};
    Shoal__V1__GenerateRequest r = SHOAL__V1__GENERATE_REQUEST__INIT;
    r.ids = ids;
    r.n_ids = 4;
    r.max_tokens = 40;
    r.ignore_eos = true;
    liar_open(&w->x, address);
    grpc_client_events ev = {.user = w, .message = words_reply, .end = liar_end};
    size_t n = protobuf_c_message_pack(&r.base, bytes);
    grpc_call_start(w->x.channel, "/shoal.v1.Worker/Generate", bytes, n, NULL, 0, 0, &ev);
    while (!w->x.ended) uv_run(&w->x.loop, UV_RUN_ONCE);
    if (w->x.status != GRPC_OK) fail_msg("%s", w->x.why);
    liar_close(&w->x);
}

static void a_first_stage_serves_as_a_whole_worker_does(void **state)
{
    host a = {0}, first = {0}, whole = {0};
    words w = {0}, v = {0};
    host_open(&a, "a", (net_layers){2, 3});
    const char *const addresses[] = {a.address};
    first.stages = addresses;
    first.n_stages = 1;
    host_open(&first, "first", (net_layers){0, 2});
    host_open(&whole, "whole", (net_layers){0, 0});
    words_of(&w, whole.address);
    words_of(&v, first.address);
    assert_int_equal(w.n, 40);
    assert_int_equal(v.n, 40);
    assert_memory_equal(w.ids, v.ids, 40 * sizeof *w.ids);
    host_close(&first);
    host_close(&whole);
    host_close(&a);
}

/* ---- a stage that lies ------------------------------------------------------------------------------ */

typedef struct fake {
    uv_loop_t loop;
    uv_thread_t thread;
    uv_async_t stop;
    grpc_server *server;
    char address[128];
    /* 0: rows missing, 1: another step, 2: bytes that are no message, 3: unasked rows, 4: silence, 5: NaN */
    int how;
} fake;

static void fake_send(grpc_call *c, Shoal__V1__StageReady *ready, Shoal__V1__StageRows *rows)
{
    uint8_t bytes[4096];
    Shoal__V1__StageReply m = SHOAL__V1__STAGE_REPLY__INIT;
    m.what_case = ready ? SHOAL__V1__STAGE_REPLY__WHAT_READY : SHOAL__V1__STAGE_REPLY__WHAT_ROWS;
    if (ready)
        m.ready = ready;
    else
        m.rows = rows;
    grpc_call_send(c, bytes, protobuf_c_message_pack(&m.base, bytes));
}

static void fake_begin(void *user, grpc_call *c)
{
    Shoal__V1__StageReady r = SHOAL__V1__STAGE_READY__INIT;
    r.first = 1;
    r.end = r.n_layer = N_LAYER;
    r.n_embd = N_EMBD;
    r.n_ctx = 256;
    r.n_pages = 64;
    r.max_items = 32;
    r.max_tokens = 1000;
    fake_send(c, &r, NULL);
}

static void fake_message(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    const fake *f = user;
    Shoal__V1__StageRequest *m = shoal__v1__stage_request__unpack(NULL, n, msg);
    Shoal__V1__StageRows r = SHOAL__V1__STAGE_ROWS__INIT;
    uint8_t zeros[N_EMBD * 4] = {0};
    if (m->what_case == SHOAL__V1__STAGE_REQUEST__WHAT_STEP && f->how != 4) {
        float nan = NAN;
        if (f->how == 5) memcpy(zeros + 4 * 7, &nan, sizeof nan);
        r.number = m->step->number + (f->how == 1);
        r.rows = (ProtobufCBinaryData){.data = zeros, .len = f->how == 0 ? N_EMBD : sizeof zeros};
        if (f->how == 2)
            grpc_call_send(c, "\xff\xff\xff", 3);
        else
            fake_send(c, NULL, &r);
        if (f->how == 3) fake_send(c, NULL, &r);
    }
    shoal__v1__stage_request__free_unpacked(m, NULL);
}

static const grpc_stream_method fake_methods[] = {
    {.path = "/shoal.v1.Stage/Run", .begin = fake_begin, .message = fake_message}};

static void fake_stop(uv_async_t *a)
{
    fake *f = a->data;
    grpc_server_close(f->server, NULL, NULL);
    uv_close((uv_handle_t *)a, NULL);
}

static void fake_main(void *arg)
{
    uv_run(&((fake *)arg)->loop, UV_RUN_DEFAULT);
}

static void fake_open(fake *f, int how)
{
    *f = (fake){.how = how};
    snprintf(f->address, sizeof f->address, "unix:%s/fake", dir);
    unlink(f->address + 5);
    uv_loop_init(&f->loop);
    uv_async_init(&f->loop, &f->stop, fake_stop);
    f->stop.data = f;
    must(grpc_server_new(&f->server, &f->loop, NULL, 0, f, NULL, &err));
    must(grpc_server_add_streams(f->server, fake_methods, 1, f, &err));
    must(grpc_server_listen(f->server, f->address, &err));
    uv_thread_create(&f->thread, fake_main, f);
}

static void fake_close(fake *f)
{
    uv_async_send(&f->stop);
    uv_thread_join(&f->thread);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    unlink(f->address + 5);
}

/* Its lies are found out each time, and the request is given up: no token is made of them. */
static void a_stage_that_lies_is_found_out(void **state)
{
    for (int how = 0; how < 5; how++) {
        fake f;
        stage_link *l;
        stage_link_stats s;
        rig r;
        int32_t ids[] = {1, 2};
        fake_open(&f, how);
        const char *const addresses[] = {f.address};
        stage_link_options o = link_to(addresses, 1, 1, ROWS_F32);
        o.silent_ms = 100;
        must(stage_link_open(&l, &o, &err));
        rig_open(&r, MODEL, (engine_options){.shards = stage_link_shards(l)});
        reply *a = generate(r.e, &(gen_request){.ids = ids, .n_ids = 2, .max_tokens = 3, .ignore_eos = true});
        if (how != 3) {
            assert_int_equal(a->status, SHOAL_EUNAVAILABLE);
            assert_int_equal(a->n, 0);
        }
        reply_free(a);
        rig_close(&r);
        stage_link_get_stats(l, &s);
        assert_true(s.n_losses >= (how != 3 ? 5 : 1));
        stage_link_close(l);
        fake_close(&f);
    }
}

/* One whose numbers are not finite is named, and no token is made of them. */
static void a_stage_whose_numbers_are_not_finite_is_named(void **state)
{
    fake f;
    stage_link *l;
    stage_link_stats s;
    rig r;
    int32_t ids[] = {1, 2};
    fake_open(&f, 5);
    const char *const addresses[] = {f.address};
    stage_link_options o = link_to(addresses, 1, 1, ROWS_F32);
    must(stage_link_open(&l, &o, &err));
    rig_open(&r, MODEL, (engine_options){.shards = stage_link_shards(l)});
    reply *a = generate(r.e, &(gen_request){.ids = ids, .n_ids = 2, .max_tokens = 3, .ignore_eos = true});
    assert_int_equal(a->status, SHOAL_EINTERNAL);
    assert_int_equal(a->n, 0);
    if (!strstr(a->message, "/fake gave back numbers that are not finite")) fail_msg("%s", a->message);
    reply_free(a);
    rig_close(&r);
    stage_link_get_stats(l, &s);
    assert_int_equal(s.n_losses, 0);
    stage_link_close(l);
    fake_close(&f);
}

static void rows_know_whether_they_are_finite(void **state)
{
    enum { N = 67 };
    static const float others[] = {NAN, INFINITY, -INFINITY};
    float x[2 * N] = {0};
    uint8_t bytes[2 * N * 4];
    for (int w = ROWS_F32; w <= ROWS_INT8; w++) {
        for (size_t i = 0; i < 2 * N; i++) x[i] = (float)i * (w == ROWS_F32 ? 1e30f : 3);
        rows_wire_put((rows_wire)w, x, 2, N, bytes);
        assert_true(rows_wire_finite((rows_wire)w, bytes, 2, N));
        for (size_t i = 0; i < 2 * N; i++) {
            float was = x[i];
            x[i] = others[i % 3];
            rows_wire_put((rows_wire)w, x, 2, N, bytes);
            assert_false(rows_wire_finite((rows_wire)w, bytes, 2, N));
            x[i] = was;
        }
    }
    x[0] = 1e9f; /* beyond f16, and finite all the same */
    rows_wire_put(ROWS_F16, x, 1, N, bytes);
    assert_true(rows_wire_finite(ROWS_F16, bytes, 1, N));
}

/* ---- all ---------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
    log_setup(LOG_OFF, false);
    if (!mkdtemp(dir) || nurse_start() != 0) return -1;
    digest_of(MODEL, digest);
    return 0;
}

static int teardown(void **state)
{
    return nurse_end() || rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_through_sockets_are_the_same),
        cmocka_unit_test(states_through_sockets_are_the_same),
        cmocka_unit_test(streams_outlive_their_stages),
        cmocka_unit_test(streams_outlive_kill_9),
        cmocka_unit_test(coarser_rows_stay_near),
        cmocka_unit_test(coarser_rows_of_a_trained_model),
        cmocka_unit_test(rows_become_bytes_and_come_back),
        cmocka_unit_test(stages_that_do_not_fit_are_refused),
        cmocka_unit_test(steps_that_lie_end_their_stream_and_nothing_else),
        cmocka_unit_test(a_second_first_stage_is_refused),
        cmocka_unit_test(a_first_stage_that_vanishes_keeps_nobody_out),
        cmocka_unit_test(a_first_stage_serves_as_a_whole_worker_does),
        cmocka_unit_test(a_stage_that_lies_is_found_out),
        cmocka_unit_test(a_stage_whose_numbers_are_not_finite_is_named),
        cmocka_unit_test(rows_know_whether_they_are_finite),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
