/* helper.h: fixtures and blocking calls for the tests of infer/. Include once a test file. */
#ifndef TESTS_INFER_HELPER_H
#define TESTS_INFER_HELPER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sizes.h"
#include "base/clock.h"
#include "json/json.h"
#include "base/file.h"
#include "base/utf8.h"
#include "infer/engine.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"

#define must(call)                                                                              \
    do {                                                                                        \
        shoal_err err = {0};                                                                    \
        if ((call) != 0) fail_msg("%s: %s (%s)", #call, err.message, shoal_err_name(err.code)); \
    } while (0)

/* Is a whole model to be run on this instruction set? Under a sanitizer, which is slow and knows nothing of
 * bits, only on the best one: compute's own tests run all of them there. */
static inline bool isa_tested(isa i)
{
    if (!isa_built(i) || !isa_usable(i)) return false;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    isa best;
    return isa_choose(&best, NULL) != 0 || i == best;
#else
    return true;
#endif
}

/* What a whole model runs on alone, for others to be compared with: scalar, the specification. Under a
 * sanitizer the best one again: scalar products took nine tenths of the time there. */
static inline isa isa_compared(void)
{
    isa best = ISA_SCALAR;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (isa_choose(&best, NULL) != 0) best = ISA_SCALAR;
#endif
    return best;
}

/* And with a team of so many? One thread races with nobody, and where three do not, two do not. */
static inline bool team_tested(isa i, int n_threads)
{
#ifdef __SANITIZE_THREAD__
    if (n_threads < 3) return false;
#endif
    return isa_tested(i);
}

/* And with the k-th of some cuts? Each instruction set meets each team and each cut, and each team each cut;
 * all of the threesomes would be three times as many. Threads meet in the same places whatever the cut. */
static inline bool way_tested(isa i, int n_threads, size_t k)
{
#ifdef __SANITIZE_THREAD__
    return team_tested(i, n_threads) && k == 2;
#else
    return team_tested(i, n_threads) && ((size_t)i + (size_t)n_threads + k) % 3 == 0;
#endif
}

/* ---- fixtures: expected.json beside expected.safetensors ---------------------------------------- */

typedef struct fixture {
    json_t *expected, *tensors; /* tensors: the safetensors header */
    file_map map;
    const uint8_t *data;
} fixture;

static inline void fixture_open(fixture *f, const char *name)
{
    char path[512];
    uint64_t n;
    *f = (fixture){0};
    snprintf(path, sizeof path, DATA "hf/%s/expected.json", name);
    must(json_parse_file(&f->expected, path, 64 << 20, &err));
    snprintf(path, sizeof path, DATA "hf/%s/expected.safetensors", name);
    must(file_map_open(&f->map, path, &err));
    memcpy(&n, f->map.data, 8);
    must(json_parse(&f->tensors, (const char *)f->map.data + 8, n, path, &err));
    f->data = f->map.data + 8 + n;
}

static inline void fixture_close(fixture *f)
{
    json_decref(f->expected);
    json_decref(f->tensors);
    file_map_close(&f->map);
}

/* The float32 tensor, malloc'd (the file need not align it). */
static inline float *fixture_tensor(const fixture *f, const char *name, size_t *ret_n)
{
    json_t *t = json_object_get(f->tensors, name), *at = json_object_get(t, "data_offsets");
    assert_non_null(t);
    size_t begin = (size_t)json_integer_value(json_array_get(at, 0)),
           end = (size_t)json_integer_value(json_array_get(at, 1));
    float *v = malloc(end - begin);
    memcpy(v, f->data + begin, end - begin);
    *ret_n = (end - begin) / 4;
    return v;
}

static inline int32_t *int_array(const json_t *a, size_t *ret_n)
{
    *ret_n = json_array_size(a);
    int32_t *v = malloc((*ret_n + 1) * sizeof *v);
    for (size_t i = 0; i < *ret_n; i++) v[i] = (int32_t)json_integer_value(json_array_get(a, i));
    return v;
}

/* Largest difference, relative to the largest reference value. */
static inline double worst(const float *a, const float *ref, size_t n)
{
    double diff = 0, top = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)ref[i]);
        if (!(d <= diff)) diff = d;
        if (fabs((double)ref[i]) > top) top = fabs((double)ref[i]);
    }
    return diff / (top > 0 ? top : 1);
}

/* ---- engines ------------------------------------------------------------------------------------- */

typedef struct rig {
    model *m;
    engine *e;
} rig;

/* What rigs keep keys and values as, where their options do not say: a test in between these two runs with
 * int8. */
static kv_type rig_kv_type;
static inline int keep_int8(void **state)
{
    rig_kv_type = KV_Q8_0;
    return 0;
}
static inline int keep_floats(void **state)
{
    rig_kv_type = KV_AS_WEIGHTS;
    return 0;
}
#define WITH_INT8_KV(test) cmocka_unit_test_setup_teardown(test, keep_int8, keep_floats)

static inline void rig_open_as(rig *r, const char *path, const model_options *mo, engine_options o)
{
    *r = (rig){0};
    if (o.kv_type == KV_AS_WEIGHTS) o.kv_type = rig_kv_type;
    if (o.n_threads == 0) o.n_threads = 2;
    must(model_open(&r->m, path, mo, &err));
    must(engine_new(&r->e, r->m, &o, &err));
}

static inline void rig_open(rig *r, const char *path, engine_options o)
{
    rig_open_as(r, path, NULL, o);
}

static inline void rig_close(rig *r)
{
    engine_free(r->e);
    model_free(r->m);
}

/* What a request gave, and the means to wait for it. */
typedef struct reply {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    int status;
    char message[256];
    finish_reason finish;
    gen_timings timings;
    size_t n;
    int32_t ids[2048];
    float logprobs[2048];
    size_t n_top;
    token_logprob top[20]; /* of the first token */
    char text[16384];
    size_t text_len;
    bool bad_utf8;
    /* set before: cancel after so many tokens */
    engine *cancel_on;
    size_t cancel_after;
    uint64_t id;
    int order; /* so many were done before it */
} reply;

static atomic_int replies_done;

static inline void reply_text(reply *r, const gen_event *ev)
{
    size_t bad;
    if (ev->text_len > 0 && !utf8_valid(ev->text, ev->text_len, &bad)) r->bad_utf8 = true;
    memcpy(r->text + r->text_len, ev->text, ev->text_len);
    r->text_len += ev->text_len;
    r->text[r->text_len] = 0;
}

static inline void on_event(void *user, const gen_event *ev)
{
    reply *r = user;
    pthread_mutex_lock(&r->lock);
    reply_text(r, ev);
    if (ev->kind == EVENT_TOKEN) {
        if (r->n == 0 && ev->n_top) memcpy(r->top, ev->top, ev->n_top * sizeof *ev->top);
        if (r->n == 0) r->n_top = ev->n_top;
        r->logprobs[r->n] = ev->logprob;
        r->ids[r->n++] = ev->id;
        if (r->cancel_on && r->n == r->cancel_after) engine_cancel(r->cancel_on, r->id);
    } else if (ev->kind == EVENT_DONE) {
        r->status = ev->status;
        snprintf(r->message, sizeof r->message, "%s", ev->message);
        r->finish = ev->finish;
        r->timings = ev->timings;
        r->done = true;
        r->order = atomic_fetch_add(&replies_done, 1);
        pthread_cond_broadcast(&r->wake);
    }
    pthread_mutex_unlock(&r->lock);
}

static inline reply *reply_new(void)
{
    reply *r = calloc(1, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->wake, NULL);
    return r;
}

static inline void reply_free(reply *r)
{
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
    free(r);
}

static inline void reply_wait(reply *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->done) pthread_cond_wait(&r->wake, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

/* The id is known to the events as soon as there is one. */
static inline int reply_start(reply *r, engine *e, const gen_request *q, shoal_err *err)
{
    pthread_mutex_lock(&r->lock);
    int rc = engine_generate(e, q, on_event, r, &r->id, err);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

static inline reply *generate(engine *e, const gen_request *q)
{
    reply *r = reply_new();
    must(reply_start(r, e, q, &err));
    reply_wait(r);
    return r;
}

/* An encoder's answer, copied. */
typedef struct vectors {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    int status;
    size_t rows, cols;
    float *values;
} vectors;

static inline void on_vectors(void *user, const enc_result *res)
{
    vectors *v = user;
    pthread_mutex_lock(&v->lock);
    v->status = res->status;
    v->rows = res->rows;
    v->cols = res->cols;
    if (res->status == 0) {
        v->values = malloc(res->rows * res->cols * sizeof(float));
        memcpy(v->values, res->values, res->rows * res->cols * sizeof(float));
    }
    v->done = true;
    pthread_cond_broadcast(&v->wake);
    pthread_mutex_unlock(&v->lock);
}

static inline void vectors_init(vectors *v)
{
    *v = (vectors){0};
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->wake, NULL);
}

static inline void vectors_wait(vectors *v)
{
    pthread_mutex_lock(&v->lock);
    while (!v->done) pthread_cond_wait(&v->wake, &v->lock);
    pthread_mutex_unlock(&v->lock);
}

static inline void vectors_done(vectors *v)
{
    pthread_mutex_destroy(&v->lock);
    pthread_cond_destroy(&v->wake);
    free(v->values);
}

#endif
