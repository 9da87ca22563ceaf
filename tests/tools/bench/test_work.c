/* What a model must read and multiply: sums that a person can do beside the ones bench_work.c does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/bench_work.h"
#include "bench/profile_report.h"

/* Two layers' worth of it, one number a matrix. */
static const bench_work small = {
    .layer_bytes = 1000, .layer_adds = 800, .head_bytes = 50, .head_adds = 40, .kv_bytes = 8, .kv_adds = 4};

static void a_prompt_reads_the_weights_once(void **state)
{
    (void)state;
    bench_cost c = bench_work_prompt(&small, 0, 3);
    assert_true(c.bytes == 1050);
    assert_true(c.multiply_adds == 3 * 800 + 40 + 4 * (1 + 2 + 3));
    c = bench_work_prompt(&small, 10, 3); /* the keys in front are read, and scored by each */
    assert_true(c.bytes == 1050 + 8 * 10);
    assert_true(c.multiply_adds == 3 * 800 + 40 + 4 * (11 + 12 + 13));
}

static void a_reply_reads_them_once_a_step(void **state)
{
    (void)state;
    bench_cost c = bench_work_decode(&small, 10, 2, 1);
    assert_true(c.bytes == 2 * 1050 + 8 * (11 + 12));
    assert_true(c.multiply_adds == 2 * 840 + 4 * (11 + 12));
    bench_cost many = bench_work_decode(&small, 10, 2, 5); /* of five streams too, whose keys are their own */
    assert_true(many.bytes == 2 * 1050 + 5 * 8 * (11 + 12));
    assert_true(many.multiply_adds == 5 * c.multiply_adds);
}

static void a_window_ends_what_is_seen(void **state)
{
    (void)state;
    const bench_work w = {.local_kv_bytes = 1, .local_kv_adds = 1, .window = 4};
    double seen[] = {1, 2, 3, 4, 4, 4}; /* positions that each of six tokens sees */
    double sum = 0;
    for (size_t n = 1; n <= 6; n++) {
        sum += seen[n - 1];
        assert_true(bench_work_prompt(&w, 0, n).multiply_adds == sum);
        assert_true(bench_work_decode(&w, 0, n, 1).bytes == sum);
    }
    assert_true(bench_work_prompt(&w, 3, 2).multiply_adds == 8);
    assert_true(bench_work_prompt(&w, 100, 2).multiply_adds == 8);
    assert_true(bench_work_prompt(&w, 100, 2).bytes == 4);
    assert_true(bench_work_encode(&w, 1, 6).multiply_adds == 24);
}

static void texts_see_their_own_tokens(void **state)
{
    (void)state;
    bench_cost c = bench_work_encode(&small, 3, 5);
    assert_true(c.bytes == 1050);
    assert_true(c.multiply_adds == 3 * (5 * 800 + 40 + 4 * 5 * 5));
    bench_work tagger = small;
    tagger.head_each = true;
    assert_true(bench_work_encode(&tagger, 3, 5).multiply_adds == 3 * (5 * 840 + 4 * 5 * 5));
}

/* The matrices of home-chat-s by its shapes; the sums are those of its configuration. */
static void a_model_is_counted_by_its_shapes(void **state)
{
    (void)state;
    model *m = NULL;
    shoal_err err = {0};
    if (model_open(&m, SHOAL_SOURCE_DIR "/models/home-chat-s.gguf", NULL, &err) != 0) {
        print_message("SKIP a_model_is_counted_by_its_shapes: %s\n", err.message);
        skip();
    }
    const model_config *c = model_get_config(m);
    double e = (double)c->n_embd, q = (double)(c->attn.n_head * c->attn.head_dim);
    double kv = (double)(c->attn.n_head_kv * c->attn.head_dim), ff = (double)c->ffn.n_ff;
    double layers = (double)c->n_layer * (2 * e * q + 2 * e * kv + 3 * e * ff), v = (double)c->n_vocab;
    bench_work w = bench_work_of(m, KV_AS_WEIGHTS);
    assert_true(w.layer_adds == layers);
    assert_true(w.layer_bytes == layers / 32 * 34);
    assert_true(w.head_adds == e * v);
    assert_true(w.kv_adds == 2 * (double)c->n_layer * q);
    assert_true(w.kv_bytes == 2 * 2 * (double)c->n_layer * kv);
    assert_false(w.is_float);
    model_free(m);
}

/* ---- what a profile counts of real steps is what is worked out above --------------------------------- */

enum { N_PROMPT = 21, N_REPLY = 6 };

typedef struct subject {
    model *m;
    engine *e;
    profile *p;
    bench_work work;
} subject;

static void open_subject(subject *s, const char *name, int n_threads)
{
    shoal_err err = {0};
    char path[400];
    snprintf(path, sizeof path, "%s/tests/data/hf/%s", SHOAL_SOURCE_DIR, name);
    if (model_open(&s->m, path, &(model_options){0}, &err) != 0) fail_msg("%s", err.message);
    s->work = bench_work_of(s->m, KV_AS_WEIGHTS);
    assert_int_equal(profile_new(&s->p, &err), 0);
    const engine_options o = {.n_threads = n_threads, .no_drafts = true, .profile = s->p};
    if (engine_new(&s->e, s->m, &o, &err) != 0) fail_msg("%s: %s", name, err.message);
}

static void close_subject(subject *s)
{
    engine_free(s->e);
    profile_free(s->p);
    model_free(s->m);
}

static void on_event(void *user, const gen_event *ev)
{
    if (ev->kind == EVENT_DONE) bench_gate_pass(user, ev->status, NULL);
}

static void on_encoded(void *user, const enc_result *r)
{
    bench_gate_pass(user, r->status, NULL);
}

static void run(subject *s, bool encodes)
{
    static uint64_t salt;
    int32_t ids[N_PROMPT];
    bench_gate g;
    uint64_t id;
    bench_fill_ids(ids, N_PROMPT, model_get_config(s->m)->n_vocab, salt++);
    bench_gate_init(&g, 1);
    gen_request r = {.ids = ids, .n_ids = N_PROMPT, .max_tokens = N_REPLY + 1, .ignore_eos = true};
    enc_request text = {.ids = ids, .n_ids = N_PROMPT};
    assert_int_equal(encodes ? engine_encode(s->e, &text, on_encoded, &g, &id, NULL)
                             : engine_generate(s->e, &r, on_event, &g, &id, NULL),
                     0);
    assert_int_equal(bench_gate_wait(&g), 0);
}

/* Operations add up to the phase, to its layers, and to the bytes and products that are worked out. */
static void check_phase(const subject *s, profile_phase phase, const char *name, size_t n_steps,
                        size_t n_tokens, bench_cost want)
{
    profile_snap snap;
    profile_table t;
    double kernels = 0, layers = 0, parts = 0;
    assert_int_equal(profile_snap_take(&snap, s->p, NULL), 0);
    assert_int_equal(profile_table_make(&t, &snap, phase, NULL), 0);
    assert_int_equal(t.total.n_steps, n_steps);
    assert_int_equal(t.total.n_tokens, n_tokens);
    for (size_t i = 0; i < t.n_kernels; i++) kernels += t.kernels[i].ms;
    for (size_t i = 0; i < t.n_layers; i++) {
        layers += t.layers[i].ms;
        for (int k = 0; k < PROFILE_N_OPS; k++) parts += t.layers[i].op_ms[k];
    }
    double whole = (double)t.total.ns / 1e6;
    assert_true(whole > 0 && fabs(kernels - whole) < 1e-6 && fabs(layers - whole) < 1e-6 &&
                fabs(parts - whole) < 1e-6);
    assert_int_equal(t.n_layers, model_get_config(s->m)->n_layer + 1); /* and what is around them */
    if (t.bytes != want.bytes || t.multiply_adds != want.multiply_adds)
        fail_msg("%s, %s: %.0f bytes and %.0f multiply-adds, not %.0f and %.0f", name,
                 profile_phase_word(phase), t.bytes, t.multiply_adds, want.bytes, want.multiply_adds);
    profile_table_done(&t);
    profile_snap_done(&snap);
}

static void a_profile_counts_what_is_read_and_multiplied(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool encodes;
        int n_threads;
    } cases[] = {{"llama-gqa", false, 1},      {"llama-gqa", false, 2},   {"mistral-sliding", false, 2},
                 {"gemma2-softcap", false, 1}, {"lfm2-conv", false, 2},   {"llama-bf16", false, 1},
                 {"bert-intent", true, 1},     {"minilm-embed", true, 2}, {"distilbert-ner", true, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        subject s = {0};
        open_subject(&s, cases[i].name, cases[i].n_threads);
        run(&s, cases[i].encodes);
        assert_int_equal(profile_count(s.p), 0); /* it was not asked for */
        for (int again = 0; again < 2; again++) {
            profile_reset(s.p);
            profile_enable(s.p, true);
            run(&s, cases[i].encodes);
            profile_enable(s.p, false);
            if (cases[i].encodes) {
                bench_cost c = bench_work_encode(&s.work, 1, N_PROMPT);
                check_phase(&s, PROFILE_ENCODE, cases[i].name, 1, N_PROMPT, c);
                continue;
            }
            check_phase(&s, PROFILE_PREFILL, cases[i].name, 1, N_PROMPT,
                        bench_work_prompt(&s.work, 0, N_PROMPT));
            check_phase(&s, PROFILE_DECODE, cases[i].name, N_REPLY, N_REPLY,
                        bench_work_decode(&s.work, N_PROMPT, N_REPLY, 1));
        }
        size_t before = profile_count(s.p);
        run(&s, cases[i].encodes);
        assert_int_equal(profile_count(s.p), before); /* nor is it any longer */
        close_subject(&s);
    }
}

/* A token reads the experts that it chose; a prompt those that any of its tokens chose, which nobody works out before. */
static void a_profile_counts_chosen_experts(void **state)
{
    (void)state;
    subject s = {0};
    open_subject(&s, "qwen3-moe", 1);
    profile_enable(s.p, true);
    run(&s, false);
    profile_enable(s.p, false);
    check_phase(&s, PROFILE_DECODE, "qwen3-moe", N_REPLY, N_REPLY,
                bench_work_decode(&s.work, N_PROMPT, N_REPLY, 1));
    profile_snap snap;
    profile_table t;
    assert_int_equal(profile_snap_take(&snap, s.p, NULL), 0);
    assert_int_equal(profile_table_make(&t, &snap, PROFILE_PREFILL, NULL), 0);
    assert_true(t.multiply_adds == bench_work_prompt(&s.work, 0, N_PROMPT).multiply_adds);
    assert_true(t.bytes >= bench_work_prompt(&s.work, 0, N_PROMPT).bytes);
    bool experts = false;
    for (size_t i = 0; i < t.n_kernels; i++) experts |= strcmp(t.kernels[i].name, "ffn_down_exps") == 0;
    assert_true(experts);
    profile_table_done(&t);
    profile_snap_done(&snap);
    close_subject(&s);
}

/* Tables, JSON and the chart of a real profile are whole. */
static void a_profile_is_shown(void **state)
{
    (void)state;
    subject s = {0};
    profile_snap snap;
    profile_table t[PROFILE_N_PHASES] = {0};
    const bench_limits limits = {.adds_per_s = 1e12, .read_per_s = 1e10};
    buf text = {0}, json = {0}, svg = {0};
    open_subject(&s, "llama-gqa", 1);
    profile_enable(s.p, true);
    run(&s, false);
    assert_int_equal(profile_snap_take(&snap, s.p, NULL), 0);
    for (int i = 0; i < PROFILE_N_PHASES; i++)
        assert_int_equal(profile_table_make(&t[i], &snap, (profile_phase)i, NULL), 0);
    profile_table_put(&t[PROFILE_DECODE], &limits, true, &text);
    assert_non_null(strstr(text.data, "decode: 6 tokens in 6 steps"));
    assert_non_null(strstr(text.data, "matmul attn_q+attn_k+attn_v "));
    assert_non_null(strstr(text.data, "around them\n"));
    profile_table_put_json(&t[PROFILE_PREFILL], &limits, &json);
    json_t *v = json_loads(json.data, 0, NULL);
    assert_non_null(v);
    assert_true(json_number_value(json_object_get(v, "bytes")) == t[PROFILE_PREFILL].bytes);
    assert_int_equal(json_array_size(json_object_get(v, "layers")), model_get_config(s.m)->n_layer + 1);
    json_decref(v);
    profile_put_svg(t, PROFILE_N_PHASES, "a < b", "", &svg);
    assert_non_null(strstr(svg.data, "a &#60; b"));
    assert_null(strstr(svg.data, "nan"));
    assert_string_equal(svg.data + svg.len - 7, "</svg>\n");
    buf_done(&text);
    buf_done(&json);
    buf_done(&svg);
    for (int i = 0; i < PROFILE_N_PHASES; i++) profile_table_done(&t[i]);
    profile_snap_done(&snap);
    close_subject(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_reads_the_weights_once),
        cmocka_unit_test(a_reply_reads_them_once_a_step),
        cmocka_unit_test(a_window_ends_what_is_seen),
        cmocka_unit_test(texts_see_their_own_tokens),
        cmocka_unit_test(a_model_is_counted_by_its_shapes),
        cmocka_unit_test(a_profile_counts_what_is_read_and_multiplied),
        cmocka_unit_test(a_profile_counts_chosen_experts),
        cmocka_unit_test(a_profile_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
