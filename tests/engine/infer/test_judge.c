/* Prompts that are judged: the log-probabilities are those that the tokens had, or would have had, as a
 * reply, to the bit, whatever runs beside it, however the prompt is cut and whatever of it is cached. */
#include "helper.h"

#include "infer/decoding/sampler.h"

#define Q8 DATA "quant/q-Q8_0.gguf"

enum { N_PROMPT = 9, N_NEW = 70, N_ALL = N_PROMPT + N_NEW };

/* What was told of a prompt, and then of a reply. */
typedef struct verdict {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    int status;
    finish_reason finish;
    gen_timings timings;
    size_t n, n_tokens, first;
    int32_t ids[N_ALL + 1], replied[N_ALL];
    float logprobs[N_ALL + 1];
    token_logprob top[N_ALL + 1];
} verdict;

static void on_verdict(void *user, const gen_event *ev)
{
    verdict *v = user;
    pthread_mutex_lock(&v->lock);
    if (ev->kind == EVENT_JUDGED) {
        assert_int_equal(v->n_tokens, 0); /* all of the prompt before the reply */
        if (v->n == 0) v->first = ev->n_read;
        assert_int_equal(ev->n_read, v->first + v->n);
        v->ids[v->n] = ev->id;
        if (ev->n_top) v->top[v->n] = ev->top[0];
        v->logprobs[v->n++] = ev->logprob;
    }
    if (ev->kind == EVENT_TOKEN && ev->id >= 0) v->replied[v->n_tokens++] = ev->id;
    if (ev->kind == EVENT_DONE) {
        v->status = ev->status;
        v->finish = ev->finish;
        v->timings = ev->timings;
        v->done = true;
    }
    pthread_cond_signal(&v->wake);
    pthread_mutex_unlock(&v->lock);
}

static void judge_start(verdict *v, engine *e, const gen_request *q)
{
    *v = (verdict){.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    must(engine_generate(e, q, on_verdict, v, NULL, &err));
}

static void judge_wait(verdict *v)
{
    pthread_mutex_lock(&v->lock);
    while (!v->done) pthread_cond_wait(&v->wake, &v->lock);
    pthread_mutex_unlock(&v->lock);
    assert_int_equal(v->status, 0);
}

/* A reply that was drawn, with what each of its tokens was worth. */
static reply *drawn(int32_t ids[N_ALL])
{
    rig r;
    rig_open(&r, Q8, (engine_options){.n_threads = 1});
    for (size_t i = 0; i < N_PROMPT; i++) ids[i] = (int32_t)(3 + i * 5);
    reply *one = generate(r.e, &(gen_request){.ids = ids,
                                              .n_ids = N_PROMPT,
                                              .max_tokens = N_NEW,
                                              .ignore_eos = true,
                                              .logprobs = true,
                                              .sampling = {.temperature = 1, .seed = 5}});
    assert_int_equal(one->n, N_NEW);
    memcpy(ids + N_PROMPT, one->ids, N_NEW * sizeof *ids);
    rig_close(&r);
    return one;
}

static void what_was_said_is_worth_what_it_was(void **state)
{
    static const engine_options ways[] = {
        {.n_threads = 1}, {.n_threads = 3}, {.prefill_chunk = 5}, {.max_batch = 2}};
    int32_t ids[N_ALL];
    reply *said = drawn(ids);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        enum { N = 5 };
        rig r;
        static verdict v[N];
        rig_open(&r, Q8, ways[w]);
        gen_request q = {.ids = ids, .n_ids = N_ALL, .judge_from = N_PROMPT, .only_judges = true};
        for (size_t i = 0; i < N; i++) judge_start(&v[i], r.e, &q); /* with and without the others' pages */
        for (size_t i = 0; i < N; i++) {
            judge_wait(&v[i]);
            assert_int_equal(v[i].finish, FINISH_LENGTH);
            assert_int_equal(v[i].timings.n_generated, 0);
            assert_int_equal(v[i].n, N_NEW + 1);
            assert_int_equal(v[i].first, N_PROMPT);
            assert_memory_equal(v[i].ids, ids + N_PROMPT, N_NEW * sizeof *ids);
            assert_memory_equal(v[i].logprobs, said->logprobs, N_NEW * sizeof(float));
            assert_int_equal(v[i].ids[N_NEW], model_get_config(r.m)->eos_ids[0]);
            assert_true(v[i].logprobs[N_NEW] < 0);
            assert_memory_equal(&v[i].logprobs[N_NEW], &v[0].logprobs[N_NEW], sizeof(float));
        }
        rig_close(&r);
    }
    reply_free(said);
}

/* Little memory, and generations that take it from whom is judged: it is computed again. */
static void want_of_memory_changes_nothing(void **state)
{
    enum { N = 6 };
    static verdict v[N];
    int32_t ids[N_ALL];
    reply *said = drawn(ids), *beside[N];
    rig r;
    rig_open(&r, Q8, (engine_options){.kv_bytes = 64 << 20});
    engine_stats st;
    engine_get_stats(r.e, &st);
    rig_close(&r);
    rig_open(&r, Q8, (engine_options){.kv_bytes = ((size_t)64 << 20) / st.kv_pages_total * 12});
    for (size_t i = 0; i < N; i++) {
        gen_request g = {.ids = ids + i, .n_ids = 20, .max_tokens = 60, .ignore_eos = true};
        gen_request q = {.ids = ids, .n_ids = N_ALL, .judge_from = N_PROMPT, .only_judges = true};
        beside[i] = reply_new();
        must(reply_start(beside[i], r.e, &g, &err));
        judge_start(&v[i], r.e, &q);
    }
    for (size_t i = 0; i < N; i++) {
        judge_wait(&v[i]);
        assert_memory_equal(v[i].logprobs, said->logprobs, N_NEW * sizeof(float));
        reply_wait(beside[i]);
        reply_free(beside[i]);
    }
    reply_free(said);
    rig_close(&r);
}

/* Against logits that were asked for as such. */
static void a_prompt_is_judged_from_its_second_token_on(void **state)
{
    rig r;
    static verdict v;
    int32_t ids[N_ALL];
    reply *said = drawn(ids);
    rig_open(&r, Q8, (engine_options){0});
    size_t n_vocab = model_get_config(r.m)->n_vocab;
    float *logits = malloc(N_ALL * n_vocab * sizeof *logits);
    must(engine_logits(r.e, NULL, ids, N_ALL, N_ALL, logits, &err));
    gen_request q = {.ids = ids, .n_ids = N_ALL, .max_tokens = 12, .ignore_eos = true, .n_top = 3};
    reply *plain = generate(r.e, &q);
    q.judge_from = 1;
    judge_start(&v, r.e, &q);
    judge_wait(&v);
    assert_int_equal(v.n, N_ALL - 1); /* the end was not asked about */
    assert_int_equal(v.n_tokens, 12);
    assert_memory_equal(v.replied, plain->ids, 12 * sizeof *plain->ids); /* nor is the reply another */
    sampler s;
    sampler_space space;
    must(sampler_init(&s, &(sampling){0}, 3, n_vocab, NULL, 0, &err));
    assert_int_equal(sampler_space_init(&space, n_vocab), 0);
    for (size_t i = 0; i + 1 < N_ALL; i++) {
        sample want;
        sampler_judge(&s, vec_kernels_for(ISA_SCALAR), &space, logits + i * n_vocab, ids[i + 1], &want);
        assert_int_equal(v.ids[i], ids[i + 1]);
        assert_memory_equal(&v.logprobs[i], &want.logprob, sizeof(float));
        assert_int_equal(v.top[i].id, want.top[0].id);
        assert_memory_equal(&v.top[i].logprob, &want.top[0].logprob, sizeof(float));
    }
    sampler_space_done(&space);
    sampler_done(&s);
    free(logits);
    reply_free(plain);
    reply_free(said);
    rig_close(&r);
}

static void the_whole_context_may_be_judged_and_no_more(void **state)
{
    rig r;
    static verdict v;
    shoal_err err;
    int32_t ids[33] = {0};
    rig_open(&r, Q8, (engine_options){.n_ctx = 32});
    gen_request q = {.ids = ids, .n_ids = 32, .judge_from = 32, .only_judges = true};
    judge_start(&v, r.e, &q);
    judge_wait(&v);
    assert_int_equal(v.n, 1); /* the end alone */
    q.n_ids = 33;
    assert_int_equal(engine_generate(r.e, &q, on_verdict, &v, NULL, &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "has 33"));
    rig_close(&r);
}

static void what_has_no_one_prompt_is_not_judged(void **state)
{
    rig r;
    verdict v = {0};
    shoal_err err;
    int32_t ids[4] = {1, 2, 3, 4};
    gen_request good = {.ids = ids, .n_ids = 4, .max_tokens = 3, .judge_from = 1}, q[5];
    for (size_t i = 0; i < 5; i++) q[i] = good;
    q[0].votes = true;
    q[1].n_beams = 2;
    q[2].judge_from = 5;
    q[3].judge_from = 0, q[3].only_judges = true;
    q[4].resume_ids = ids, q[4].n_resume = 1;
    rig_open(&r, Q8, (engine_options){0});
    for (size_t i = 0; i < 5; i++) {
        err = (shoal_err){0};
        if (engine_generate(r.e, &q[i], on_verdict, &v, NULL, &err) != SHOAL_EINVALID)
            fail_msg("request %zu was taken", i);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_said_is_worth_what_it_was),
        cmocka_unit_test(want_of_memory_changes_nothing),
        cmocka_unit_test(a_prompt_is_judged_from_its_second_token_on),
        cmocka_unit_test(the_whole_context_may_be_judged_and_no_more),
        cmocka_unit_test(what_has_no_one_prompt_is_not_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
