/* Guesses change how many steps a reply takes and nothing else: with guesses at every price, in any company
 * and on every architecture, replies have the bits of an engine that guesses nothing. */
#include "helper.h"

#include "infer/decoding/draft.h"
#include "grammar/grammar.h"

/* ---- guesses by themselves -------------------------------------------------------------------------- */

static void book_open(draft_book *b)
{
    must(draft_book_init(b));
}

static void the_past_is_guessed_to_go_on(void **state)
{
    draft_book b;
    draft d = {0};
    int32_t ids[32] = {1, 2, 3, 4, 5, 9, 2, 3, 7, 8, 2, 3};
    book_open(&b);
    draft_guess(&b, &d, ids, 12, 4);
    assert_int_equal(d.n, 4);
    static const int32_t latest[] = {7, 8, 2, 3};
    assert_memory_equal(ids + 12, latest, sizeof latest);
    ids[12] = 7, ids[13] = 1, ids[14] = 2, ids[15] = 3; /* 1 2 3 is longer than any later 2 3 */
    draft_guess(&b, &d, ids, 16, 2);
    assert_int_equal(d.n, 2);
    assert_int_equal(ids[16], 4);
    assert_int_equal(ids[17], 5);
    draft_guess(&b, &d, ids, 5, 8); /* nothing came twice */
    assert_int_equal(d.n, 0);
    draft_guess(&b, &d, ids, 16, 0);
    assert_int_equal(d.n, 0);
    draft_book_done(&b);
}

/* What repeats with a period is guessed beyond its end. */
static void a_period_goes_on_over_what_is_guessed(void **state)
{
    draft_book b;
    draft d = {0};
    int32_t ids[64] = {1, 2, 1, 2, 1, 2};
    book_open(&b);
    for (int i = 0; i < 60; i++) b.rate[DRAFT_PAST_4] = b.rate[DRAFT_PAST_8] = (draft_rate){60, 60};
    draft_guess(&b, &d, ids, 6, 99);
    assert_int_equal(d.n, DRAFT_MAX);
    for (size_t i = 0; i < d.n; i++) assert_int_equal(ids[6 + i], 1 + i % 2);
    draft_book_done(&b);
}

static void what_replies_said_is_guessed_in_others(void **state)
{
    draft_book b;
    draft d = {0};
    int32_t said[] = {4, 5, 6, 7, 8, 9, 10, 11, 12}, ids[16] = {100, 4, 5, 6};
    book_open(&b);
    for (int k = 0; k < 4; k++)
        for (size_t i = 3; i < 9; i++) assert_false(draft_check(&b, &d, 0, said, i, said[i]));
    draft_guess(&b, &d, ids, 4, 4);
    assert_int_equal(d.n, 4);
    assert_memory_equal(ids + 4, said + 3, 4 * sizeof *ids);
    for (size_t i = 0; i < 4; i++) assert_true(draft_check(&b, &d, i, ids, 4 + i, said[3 + i]));
    draft_guess(&b, &d, ids, 4, 4);
    assert_false(draft_check(&b, &d, 0, ids, 4, 1));
    draft_book_done(&b);
}

/* Twelve misses, and a guess of that kind is not worth a row any more; hits bring it back. */
static void guesses_that_fail_are_not_computed(void **state)
{
    draft_book b;
    draft d = {0};
    draft_cost c = {0};
    int32_t ids[8] = {2, 2};
    double tokens = 1;
    book_open(&b);
    for (int k = 0; k < 20; k++) draft_cost_note(&c, 1, 1.0), draft_cost_note(&c, 2, 1.15);
    draft_guess(&b, &d, ids, 2, 1);
    assert_int_equal(draft_cost_best(&c, &d, 1, &tokens), 1);
    assert_true(tokens > 1.2 && tokens < 2);
    for (int k = 0; k < 12; k++) draft_check(&b, &d, 0, ids, 2, 5);
    draft_guess(&b, &d, ids, 2, 1);
    tokens = 1;
    assert_int_equal(draft_cost_best(&c, &d, 1, &tokens), 0);
    assert_true(tokens == 1);
    for (int k = 0; k < 12; k++) draft_check(&b, &d, 0, ids, 2, 2);
    draft_guess(&b, &d, ids, 2, 1);
    assert_int_equal(draft_cost_best(&c, &d, 1, &tokens), 1);
    draft_book_done(&b);
}

/* Where a row costs what a stream costs, as in a full batch, nothing is worth it. */
static void a_full_batch_guesses_nothing(void **state)
{
    draft d = {.n = 1, .chance = {0.95f}};
    draft_cost c = {0};
    double tokens = 32, alone = 1;
    for (size_t rows = 1; rows <= 64; rows++)
        for (int k = 0; k < 8; k++) draft_cost_note(&c, rows, 0.3 + 0.1 * (double)rows);
    assert_int_equal(draft_cost_best(&c, &d, 32, &tokens), 0);
    assert_int_equal(draft_cost_best(&c, &d, 1, &alone), 1);
}

/* ---- replies ------------------------------------------------------------------------------------------ */

enum { N_PROMPT = 24, N_NEW = 48, N_STREAMS = 5 };

/* A prompt whose tokens come again. */
static void make_prompt(int32_t *ids, size_t seed, size_t n_vocab)
{
    for (size_t i = 0; i < N_PROMPT; i++) ids[i] = (int32_t)(rng_mix(seed * 77 + i % 6) % n_vocab);
}

typedef struct draft_pair {
    rig plain, drafts;
    size_t n_drafted, n_accepted;
} draft_pair;

static void pair_open(draft_pair *p, const char *path, engine_options o)
{
    *p = (draft_pair){0};
    rig_open(&p->plain, path, (engine_options){.n_threads = 1, .no_drafts = true});
    rig_open(&p->drafts, path, o);
}

static void pair_close(draft_pair *p)
{
    rig_close(&p->plain);
    rig_close(&p->drafts);
}

static void same_reply(const reply *got, const reply *want)
{
    assert_int_equal(got->status, want->status);
    assert_int_equal(got->n, want->n);
    assert_memory_equal(got->ids, want->ids, want->n * sizeof *want->ids);
    assert_memory_equal(got->logprobs, want->logprobs, want->n * sizeof *want->logprobs);
    assert_string_equal(got->text, want->text);
    assert_int_equal(got->finish, want->finish);
    assert_true(got->timings.mean_prob == want->timings.mean_prob);
    assert_int_equal(want->timings.n_drafted, 0);
    assert_true(got->timings.n_accepted <= got->timings.n_drafted);
}

static void check_same(draft_pair *p, const gen_request *q)
{
    reply *want = generate(p->plain.e, q), *got = generate(p->drafts.e, q);
    same_reply(got, want);
    p->n_drafted += got->timings.n_drafted;
    p->n_accepted += got->timings.n_accepted;
    reply_free(want);
    reply_free(got);
}

/* Several at once: each has its own bits, and the pages of the others. */
static void check_streams(draft_pair *p, gen_request q)
{
    int32_t ids[N_STREAMS][N_PROMPT];
    reply *got[N_STREAMS];
    for (size_t i = 0; i < N_STREAMS; i++) {
        make_prompt(ids[i], i % 3, model_get_config(p->plain.m)->n_vocab);
        q.ids = ids[i];
        q.sampling.seed = i;
        got[i] = reply_new();
        must(reply_start(got[i], p->drafts.e, &q, &err));
    }
    for (size_t i = 0; i < N_STREAMS; i++) {
        q.ids = ids[i];
        q.sampling.seed = i;
        reply *want = generate(p->plain.e, &q);
        reply_wait(got[i]);
        same_reply(got[i], want);
        p->n_drafted += got[i]->timings.n_drafted;
        p->n_accepted += got[i]->timings.n_accepted;
        reply_free(got[i]);
        reply_free(want);
    }
}

static gen_request request(const int32_t *ids)
{
    return (gen_request){.ids = ids, .n_ids = N_PROMPT, .max_tokens = N_NEW, .ignore_eos = true};
}

static const sampling ways[] = {
    {0},
    {.temperature = 0.3f},
    {.temperature = 1.2f, .top_p = 0.9f, .top_k = 8},
    {.temperature = 0.5f, .repetition_penalty = 1.2f, .presence_penalty = 0.4f, .frequency_penalty = 0.2f},
    {.repetition_penalty = 1.05f},
};

static void check_ways(draft_pair *p)
{
    int32_t ids[N_PROMPT];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (uint64_t seed = 1; seed <= 2; seed++) {
            make_prompt(ids, seed, model_get_config(p->plain.m)->n_vocab);
            gen_request q = request(ids);
            q.sampling = ways[i];
            q.sampling.seed = seed;
            q.n_top = seed == 1 ? 3 : 0;
            check_same(p, &q);
        }
    }
}

static void every_architecture_replies_the_same(void **state)
{
    static const char *const models[] = {"hf/llama-gqa",       "hf/lfm2-conv", "hf/gemma3",
                                         "hf/mistral-sliding", "hf/qwen3-moe", "hf/gpt-neox-pythia"};
    static const double prices[] = {1e-9, 0.4, 0};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[512];
        snprintf(path, sizeof path, DATA "%s", models[i]);
        for (size_t k = 0; k < 3; k++) {
            draft_pair p;
            pair_open(&p, path, (engine_options){.n_threads = 1 + (int)k, .draft_price = prices[k]});
            check_ways(&p);
            if (k == 0) assert_true(p.n_drafted > p.n_accepted && p.n_accepted > 0);
            pair_close(&p);
        }
    }
}

/* Few places, chunks, and a cache in which streams push each other out. */
static void streams_reply_the_same(void **state)
{
    static const engine_options options[] = {
        {.n_threads = 2, .draft_price = 1e-9},
        {.n_threads = 1, .draft_price = 1e-9, .max_batch = 2, .prefill_chunk = 8},
        {.n_threads = 3, .draft_price = 0.3, .kv_bytes = 96 << 10},
        {.n_threads = 2},
    };
    int32_t ids[N_PROMPT] = {0};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        draft_pair p;
        pair_open(&p, DATA "hf/llama-gqa", options[i]);
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            gen_request q = request(ids);
            q.sampling = ways[k];
            check_streams(&p, q);
        }
        if (options[i].draft_price > 0) assert_true(p.n_accepted > 0);
        pair_close(&p);
    }
}

static void odd_ones(void *user, const int32_t *ids, size_t n, float *logits, size_t n_vocab)
{
    for (size_t i = n % 2; i < n_vocab; i += 2) logits[i] = GEN_NEVER;
    if (n > 0) logits[ids[n - 1]] = GEN_NEVER;
}

static void forms_rules_and_stops_hold(void **state)
{
    static const char *const stops[] = {"ab", "}", "e"};
    grammar_spec any = {.kind = GRAMMAR_JSON_SCHEMA,
                        .schema = "{\"type\":\"array\",\"items\":{\"enum\":[\"kitchen\",\"attic\",12]},"
                                  "\"minItems\":4,\"maxItems\":6}"};
    int32_t ids[N_PROMPT];
    draft_pair p;
    pair_open(&p, DATA "hf/llama-gqa", (engine_options){.n_threads = 2, .draft_price = 1e-9});
    make_prompt(ids, 4, model_get_config(p.plain.m)->n_vocab);
    for (uint64_t seed = 0; seed < 6; seed++) {
        gen_request q = request(ids);
        q.sampling = (sampling){.temperature = seed % 2 ? 0.8f : 0, .seed = seed};
        q.ignore_eos = false;
        q.form = &any;
        check_same(&p, &q);
        q.form = NULL;
        q.rule = (gen_rule){odd_ones, NULL};
        check_same(&p, &q);
        q.rule = (gen_rule){0};
        q.stop = stops;
        q.n_stop = 3;
        check_same(&p, &q);
    }
    assert_true(p.n_accepted > 0);
    pair_close(&p);
}

/* A reply that ends in the middle of what was guessed right: nothing comes behind it. */
static void a_reply_ends_where_it_ends(void **state)
{
    int32_t ids[N_PROMPT];
    draft_pair p;
    pair_open(&p, DATA "hf/llama-gqa", (engine_options){.n_threads = 1, .draft_price = 1e-9});
    make_prompt(ids, 1, model_get_config(p.plain.m)->n_vocab);
    for (size_t n = 1; n <= 20; n++) {
        gen_request q = request(ids);
        q.max_tokens = n;
        check_same(&p, &q);
    }
    pair_close(&p);
}

static void begun_replies_go_on_the_same(void **state)
{
    int32_t ids[N_PROMPT];
    draft_pair p;
    pair_open(&p, DATA "hf/llama-gqa", (engine_options){.n_threads = 2, .draft_price = 1e-9});
    make_prompt(ids, 2, model_get_config(p.plain.m)->n_vocab);
    gen_request q = request(ids);
    q.sampling = (sampling){.temperature = 0.6f, .frequency_penalty = 0.1f, .seed = 9};
    reply *whole = generate(p.plain.e, &q);
    for (size_t cut = 0; cut < whole->n; cut += 5) {
        q.resume_ids = whole->ids;
        q.n_resume = cut;
        reply *rest = generate(p.drafts.e, &q);
        assert_int_equal(rest->status, 0);
        assert_int_equal(rest->n, whole->n - cut);
        assert_memory_equal(rest->ids, whole->ids + cut, rest->n * sizeof *rest->ids);
        reply_free(rest);
    }
    reply_free(whole);
    pair_close(&p);
}

static void who_cancels_gets_no_more(void **state)
{
    int32_t ids[N_PROMPT];
    draft_pair p;
    pair_open(&p, DATA "hf/llama-gqa", (engine_options){.n_threads = 1, .draft_price = 1e-9});
    make_prompt(ids, 1, model_get_config(p.plain.m)->n_vocab);
    gen_request q = request(ids);
    reply *whole = generate(p.plain.e, &q);
    for (size_t after = 1; after < 20; after += 3) {
        reply *r = reply_new();
        r->cancel_on = p.drafts.e;
        r->cancel_after = after;
        must(reply_start(r, p.drafts.e, &q, &err));
        reply_wait(r);
        assert_int_equal(r->status, SHOAL_ECANCELLED);
        assert_int_equal(r->n, after);
        assert_memory_equal(r->ids, whole->ids, after * sizeof *r->ids);
        reply_free(r);
    }
    reply_free(whole);
    pair_close(&p);
}

static void beams_are_not_guessed(void **state)
{
    int32_t ids[N_PROMPT];
    draft_pair p;
    pair_open(&p, DATA "hf/llama-gqa", (engine_options){.n_threads = 2, .draft_price = 1e-9});
    make_prompt(ids, 3, model_get_config(p.plain.m)->n_vocab);
    gen_request q = request(ids);
    q.n_beams = 3;
    q.ignore_eos = false;
    check_same(&p, &q);
    assert_int_equal(p.n_drafted, 0);
    pair_close(&p);
}

/* Keys of wrong guesses are in no page that others find: what stands behind a cached reply has the bits of
 * an engine that never guessed. */
static void wrong_guesses_leave_nothing_in_the_cache(void **state)
{
    int32_t ids[N_PROMPT + N_NEW];
    draft_pair p;
    pair_open(&p, DATA "hf/llama-gqa", (engine_options){.n_threads = 1, .draft_price = 1e-9});
    size_t n_vocab = model_get_config(p.plain.m)->n_vocab, n = N_PROMPT + N_NEW, n_wrong = 0;
    float *want = malloc(n_vocab * sizeof *want), *got = malloc(n_vocab * sizeof *got);
    for (uint64_t seed = 0; seed < 8; seed++) {
        make_prompt(ids, seed, n_vocab);
        gen_request q = request(ids);
        q.sampling = (sampling){.temperature = 0.9f, .seed = seed};
        reply *r = generate(p.drafts.e, &q);
        n_wrong += r->timings.n_drafted - r->timings.n_accepted;
        memcpy(ids + N_PROMPT, r->ids, N_NEW * sizeof *ids);
        must(engine_logits(p.drafts.e, NULL, ids, n, 1, got, &err));
        must(engine_logits(p.plain.e, NULL, ids, n, 1, want, &err));
        assert_memory_equal(got, want, n_vocab * sizeof *want);
        reply_free(r);
    }
    assert_true(n_wrong > 20);
    free(want);
    free(got);
    pair_close(&p);
}

/* The next one of the same kind takes fewer steps, as the engine says itself. */
static void what_comes_again_takes_fewer_steps(void **state)
{
    int32_t ids[N_PROMPT];
    rig r;
    engine_stats first, second;
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){.n_threads = 1, .draft_price = 0.05});
    make_prompt(ids, 5, model_get_config(r.m)->n_vocab);
    gen_request q = request(ids);
    for (int i = 0; i < 4; i++) reply_free(generate(r.e, &q));
    engine_get_stats(r.e, &first);
    reply *last = generate(r.e, &q);
    engine_get_stats(r.e, &second);
    assert_int_equal(last->n, N_NEW);
    assert_true(second.n_steps - first.n_steps < N_NEW / 2);
    assert_int_equal(second.n_accepted - first.n_accepted, last->timings.n_accepted);
    assert_int_equal(second.n_drafted - first.n_drafted, last->timings.n_drafted);
    reply_free(last);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_past_is_guessed_to_go_on),
        cmocka_unit_test(a_period_goes_on_over_what_is_guessed),
        cmocka_unit_test(what_replies_said_is_guessed_in_others),
        cmocka_unit_test(guesses_that_fail_are_not_computed),
        cmocka_unit_test(a_full_batch_guesses_nothing),
        cmocka_unit_test(every_architecture_replies_the_same),
        cmocka_unit_test(streams_reply_the_same),
        cmocka_unit_test(forms_rules_and_stops_hold),
        cmocka_unit_test(a_reply_ends_where_it_ends),
        cmocka_unit_test(begun_replies_go_on_the_same),
        cmocka_unit_test(who_cancels_gets_no_more),
        cmocka_unit_test(beams_are_not_guessed),
        cmocka_unit_test(wrong_guesses_leave_nothing_in_the_cache),
        cmocka_unit_test(what_comes_again_takes_fewer_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
