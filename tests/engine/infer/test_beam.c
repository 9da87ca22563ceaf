/* Beam search: the choosing alone, and searches in the engine against searches that compute every lane anew.
 */
#include "helper.h"

#include "infer/decoding/beam.h"

#define EOS 0

static token_logprob tl(int32_t id, float logprob)
{
    return (token_logprob){.id = id, .logprob = logprob};
}

static void the_best_sums_go_on_and_endings_are_scored_by_length(void **state)
{
    beam *b;
    beam_move moves[BEAM_MAX];
    const int32_t eos[] = {EOS};
    must(beam_new(&b, &(beam_options){.n = 2, .length_penalty = 1}, 8, &err));
    token_logprob first[] = {tl(5, -0.5f), tl(6, -1.0f), tl(EOS, -1.5f), tl(7, -3.0f)};
    assert_int_equal(beam_advance(b, &(beam_lane){.next = first, .n_next = 4}, 1, eos, 1, moves), 2);
    assert_true(moves[0].from == 0 && moves[0].id == 5 && moves[1].from == 0 && moves[1].id == 6);
    /* lane 0 ends at -0.7 / 2; lane 1's best overtakes lane 0's second */
    token_logprob a[] = {tl(EOS, -0.2f), tl(8, -2.0f), tl(9, -2.5f), tl(10, -4)};
    token_logprob c[] = {tl(8, -0.3f), tl(EOS, -0.6f), tl(9, -4.0f), tl(10, -5)};
    const int32_t ids0[] = {5}, ids1[] = {6};
    beam_lane lanes[] = {{.ids = ids0, .n_ids = 1, .next = a, .n_next = 4},
                         {.ids = ids1, .n_ids = 1, .next = c, .n_next = 4}};
    assert_int_equal(beam_advance(b, lanes, 2, eos, 1, moves), 2);
    assert_true(moves[0].from == 1 && moves[0].id == 8 && moves[1].from == 0 && moves[1].id == 8);
    /* a second ending; nothing open can be better than the worse of both: over */
    token_logprob d[] = {tl(EOS, -0.1f), tl(8, -9), tl(9, -9), tl(10, -9)};
    const int32_t ids2[] = {6, 8}, ids3[] = {5, 8};
    beam_lane last[] = {{.ids = ids2, .n_ids = 2, .next = d, .n_next = 4},
                        {.ids = ids3, .n_ids = 2, .next = d + 1, .n_next = 3}};
    assert_int_equal(beam_advance(b, last, 2, eos, 1, moves), 0);
    size_t n;
    float logprob;
    const int32_t *best = beam_best(b, &n, &logprob);
    assert_int_equal(n, 2); /* -0.7 / 2 against -1.4 / 3 */
    assert_true(best[0] == 5 && best[1] == EOS && fabsf(logprob + 0.35f) < 1e-6f);
    beam_free(b);
}

static void equal_sums_go_to_the_earlier_lane(void **state)
{
    beam *b;
    beam_move moves[BEAM_MAX];
    must(beam_new(&b, &(beam_options){.n = 2, .length_penalty = 1}, 8, &err));
    token_logprob next[] = {tl(5, -1), tl(6, -1), tl(7, -1), tl(8, -1)};
    assert_int_equal(beam_advance(b, &(beam_lane){.next = next, .n_next = 4}, 1, NULL, 0, moves), 2);
    assert_true(moves[0].id == 5 && moves[1].id == 6);
    beam_free(b);
}

static void options_out_of_range_are_refused(void **state)
{
    beam *b = NULL;
    shoal_err err = {0};
    assert_int_equal(beam_new(&b, &(beam_options){.n = 0}, 8, &err), SHOAL_EINVALID);
    assert_int_equal(beam_new(&b, &(beam_options){.n = BEAM_MAX + 1}, 8, &err), SHOAL_EINVALID);
    assert_int_equal(beam_new(&b, &(beam_options){.n = 2, .length_penalty = NAN}, 8, &err), SHOAL_EINVALID);
    assert_null(b);
}

/* ---- in the engine --------------------------------------------------------------------------------- */

typedef struct hypothesis {
    int32_t ids[64];
    size_t n;
    token_logprob top[2 * BEAM_MAX];
    size_t n_top;
} hypothesis;

/* Every lane of every step from its whole prefix, one request at a time. */
static size_t plain_search(rig *r, const int32_t *prompt, size_t n_prompt, const gen_request *q, int32_t *out)
{
    beam *b;
    beam_move moves[BEAM_MAX];
    beam_options o = {.n = q->n_beams, .length_penalty = q->length_penalty, .early = q->early_stopping};
    must(beam_new(&b, &o, q->max_tokens, &err));
    hypothesis *h = calloc(BEAM_MAX, sizeof *h), *old = calloc(BEAM_MAX, sizeof *old);
    for (size_t n = 1; n > 0;) {
        beam_lane lanes[BEAM_MAX];
        for (size_t i = 0; i < n; i++) {
            int32_t ids[256];
            memcpy(ids, prompt, n_prompt * sizeof *ids);
            memcpy(ids + n_prompt, h[i].ids, h[i].n * sizeof *ids);
            gen_request one = {.ids = ids,
                               .n_ids = n_prompt + h[i].n,
                               .source = q->source,
                               .max_tokens = 1,
                               .n_top = (int)(2 * o.n)};
            reply *a = generate(r->e, &one);
            h[i].n_top = a->n_top;
            memcpy(h[i].top, a->top, a->n_top * sizeof *a->top);
            lanes[i] = (beam_lane){.ids = h[i].ids, .n_ids = h[i].n, .next = h[i].top, .n_next = h[i].n_top};
            reply_free(a);
        }
        const model_config *c = model_get_config(r->m);
        n = beam_advance(b, lanes, n, c->eos_ids, c->n_eos, moves);
        memcpy(old, h, BEAM_MAX * sizeof *h);
        for (size_t i = 0; i < n; i++) {
            h[i] = old[moves[i].from];
            h[i].ids[h[i].n++] = moves[i].id;
        }
    }
    size_t n;
    float logprob;
    const int32_t *best = beam_best(b, &n, &logprob);
    memcpy(out, best, n * sizeof *out);
    beam_free(b);
    free(h);
    free(old);
    return n;
}

static void assert_reply(const reply *r, const int32_t *ids, size_t n)
{
    assert_int_equal(r->status, 0);
    assert_int_equal(r->n, n);
    assert_memory_equal(r->ids, ids, n * sizeof *ids);
}

/* Beside others, in little memory, whatever the number of lanes: the search of the plain runs. */
static void searches_equal_plain_ones(void **state)
{
    static const char *const paths[] = {DATA "hf/llama-gqa", DATA "quant/q-Q4_1.gguf"};
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        rig plain, busy;
        rig_open(&plain, paths[p], (engine_options){.n_threads = 1});
        rig_open(&busy, paths[p], (engine_options){.max_batch = 8, .kv_bytes = 260 << 10});
        int32_t prompt[21];
        for (size_t i = 0; i < 21; i++) prompt[i] = (int32_t)(rng_mix(i + 77 * p) % 500);
        for (size_t width = 2; width <= 5; width++) {
            gen_request q = {.ids = prompt,
                             .n_ids = 21,
                             .max_tokens = 20,
                             .n_beams = width,
                             .length_penalty = (float)width / 2,
                             .early_stopping = width % 2};
            int32_t want[64];
            size_t n = plain_search(&plain, prompt, 21, &q, want);
            gen_request other = {.ids = prompt, .n_ids = 9, .max_tokens = 60, .ignore_eos = true};
            reply *o[3], *got[2];
            for (size_t i = 0; i < 3; i++) {
                o[i] = reply_new();
                must(reply_start(o[i], busy.e, &other, &err));
            }
            for (size_t i = 0; i < 2; i++) {
                got[i] = reply_new();
                must(reply_start(got[i], busy.e, &q, &err));
            }
            for (size_t i = 0; i < 3; i++) reply_wait(o[i]);
            for (size_t i = 0; i < 2; i++) {
                reply_wait(got[i]);
                assert_reply(got[i], want, n);
                reply_free(got[i]);
            }
            for (size_t i = 0; i < 3; i++) reply_free(o[i]);
        }
        rig_close(&busy);
        rig_close(&plain);
    }
}

/* The same of encoder-decoders, whose lanes share what was made of the source. */
static void searches_with_a_source_equal_plain_ones(void **state)
{
    static const char *const names[] = {"t5-small-relu", "bart", "marian-translate"};
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        char path[256];
        rig plain, busy;
        snprintf(path, sizeof path, DATA "hf/%s", names[f]);
        rig_open(&plain, path, (engine_options){.n_threads = 1});
        rig_open(&busy, path, (engine_options){.max_batch = 9, .kv_bytes = 400 << 10});
        const model_config *c = model_get_config(plain.m);
        int32_t ids[2][30], want[2][64];
        enc_request source[2];
        gen_request q[2];
        reply *got[2];
        size_t n[2];
        for (size_t i = 0; i < 2; i++) {
            for (size_t k = 0; k < 30; k++) ids[i][k] = (int32_t)(rng_mix(100 * i + k) % c->n_vocab);
            source[i] = (enc_request){.ids = ids[i], .n_ids = 12 + 18 * i};
            q[i] = (gen_request){.ids = &c->start_id,
                                 .n_ids = 1,
                                 .source = &source[i],
                                 .max_tokens = 20,
                                 .n_beams = 4 - i,
                                 .length_penalty = 1};
            n[i] = plain_search(&plain, q[i].ids, 1, &q[i], want[i]);
            got[i] = reply_new();
            must(reply_start(got[i], busy.e, &q[i], &err));
        }
        for (size_t i = 0; i < 2; i++) {
            reply_wait(got[i]);
            assert_reply(got[i], want[i], n[i]);
            reply_free(got[i]);
        }
        rig_close(&busy);
        rig_close(&plain);
    }
}

static void what_does_not_go_with_beams_is_refused(void **state)
{
    rig r;
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){.max_batch = 4});
    int32_t ids[] = {1, 2, 3};
    const char *stop[] = {"x"};
    shoal_err err = {0};
    reply *a = reply_new();
    gen_request q = {.ids = ids, .n_ids = 3, .max_tokens = 4, .n_beams = 3, .stop = stop, .n_stop = 1};
    assert_int_equal(reply_start(a, r.e, &q, &err), SHOAL_EINVALID);
    q = (gen_request){.ids = ids, .n_ids = 3, .max_tokens = 4, .n_beams = 3, .sampling.temperature = 1};
    assert_int_equal(reply_start(a, r.e, &q, &err), SHOAL_EINVALID);
    q = (gen_request){.ids = ids, .n_ids = 3, .max_tokens = 4, .n_beams = 5};
    assert_int_equal(reply_start(a, r.e, &q, &err), SHOAL_ELIMIT);
    reply_free(a);
    rig_close(&r);
}

static void a_cancelled_search_leaves_no_pages(void **state)
{
    rig r;
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
    int32_t ids[] = {1, 2, 3};
    reply *a = reply_new();
    must(reply_start(a, r.e, &(gen_request){.ids = ids, .n_ids = 3, .n_beams = 4}, &err));
    engine_cancel(r.e, a->id);
    reply_wait(a);
    engine_stats s;
    engine_get_stats(r.e, &s);
    assert_true(a->status == SHOAL_ECANCELLED || a->status == 0);
    assert_int_equal(s.kv_pages_used, 0);
    reply_free(a);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_sums_go_on_and_endings_are_scored_by_length),
        cmocka_unit_test(equal_sums_go_to_the_earlier_lane),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(searches_equal_plain_ones),
        cmocka_unit_test(searches_with_a_source_equal_plain_ones),
        cmocka_unit_test(what_does_not_go_with_beams_is_refused),
        cmocka_unit_test(a_cancelled_search_leaves_no_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
