/* A model that is cut between its layers computes the bits of the whole one: whatever the cuts, the family,
 * the batch, the chunks, the shared prefixes and the searches, and when stages are lost in between. */
#include <unistd.h>

#include "stages.h"

#define GQA DATA "hf/llama-gqa"

static char dir[] = "/tmp/shoal-test-XXXXXX", q8[64], q4[64]; /* of qwen3-qknorm, with three layers */

static int32_t *make_ids(size_t n, size_t n_vocab, uint64_t seed)
{
    int32_t *ids = malloc(n * sizeof *ids);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(rng_mix(seed * 1000 + i) % n_vocab);
    return ids;
}

static void same_floats(const float *a, const float *b, size_t n, const char *path, size_t cut)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], 4) != 0)
            fail_msg("%s cut at %zu: value %zu is %.9g instead of %.9g", path, cut, i, (double)b[i],
                     (double)a[i]);
}

/* ---- logits ------------------------------------------------------------------------------------------- */

#define N_PROMPT 70 /* more than a window, a page and a chunk */

/* Logits of all positions of a prompt; malloc'd. cuts NULL: of the whole model. */
static float *logits_of(const char *path, const size_t *cuts, size_t n_cuts, size_t *ret_n)
{
    rig r;
    stages x;
    engine_options o = {.prefill_chunk = 16};
    if (cuts) {
        stages_open(&x, path, cuts, n_cuts, o);
        o.shards = &x.table;
    }
    rig_open(&r, path, o);
    size_t n_vocab = model_get_config(r.m)->n_vocab;
    int32_t *ids = make_ids(N_PROMPT, n_vocab, 7);
    *ret_n = N_PROMPT * n_vocab;
    float *out = malloc(*ret_n * sizeof *out);
    must(engine_logits(r.e, NULL, ids, N_PROMPT, N_PROMPT, out, &err));
    free(ids);
    rig_close(&r);
    if (cuts) stages_close(&x);
    return out;
}

static size_t layers_of(const char *path)
{
    model *m;
    must(model_open(&m, path, &(model_options){.no_tokenizer = true}, &err));
    size_t n = model_get_config(m)->n_layer;
    model_free(m);
    return n;
}

static void every_cut_of(const char *path)
{
    size_t n, n_layer = layers_of(path), all[STAGES_MAX];
    float *whole = logits_of(path, NULL, 0, &n);
    for (size_t cut = 1; cut < n_layer; cut++) {
        float *two = logits_of(path, &cut, 1, &n);
        same_floats(whole, two, n, path, cut);
        free(two);
    }
    for (size_t i = 0; i + 1 < n_layer; i++) all[i] = i + 1;
    float *each = logits_of(path, all, n_layer - 1, &n);
    same_floats(whole, each, n, path, n_layer);
    free(each);
    free(whole);
}

static void every_cut_of_every_family_gives_the_same_logits(void **state)
{
    const char *const paths[] = {GQA,
                                 q8,
                                 q4,
                                 DATA "hf/llama3-rope-scaled-tied",
                                 DATA "hf/qwen3-qknorm",
                                 DATA "hf/qwen3-moe",
                                 DATA "hf/gemma2-softcap",
                                 DATA "hf/gemma3",
                                 DATA "hf/mistral-sliding",
                                 DATA "hf/lfm2-conv",
                                 DATA "hf/gpt2",
                                 DATA "hf/gpt-neox-pythia",
                                 DATA "hf/granite",
                                 DATA "hf/olmo2",
                                 DATA "hf/opt",
                                 DATA "hf/phi-1.5",
                                 DATA "hf/phi3",
                                 DATA "hf/smollm3-nope"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) every_cut_of(paths[i]);
}

/* ---- streams ------------------------------------------------------------------------------------------ */

#define N_STREAMS 9

/* Prompts of several lengths that share prefixes, sampled and greedy, and a search, at once. */
static void run_streams(engine *e, size_t n_vocab, reply *out[N_STREAMS])
{
    for (size_t i = 0; i < N_STREAMS; i++) {
        size_t n = 1 + i * 13;
        int32_t *ids = make_ids(n, n_vocab, i / 3);
        out[i] = reply_new();
        if (i == 0) pthread_mutex_lock(&out[0]->lock); /* the engine waits for it at the first token */
        gen_request q = {.ids = ids, .n_ids = n, .max_tokens = 10 + i * 5, .ignore_eos = true};
        if (i % 4 == 3) {
            q.n_beams = 3;
            q.length_penalty = 1;
        } else {
            q.sampling = (sampling){.temperature = i % 2 ? 0.9f : 0, .top_p = 0.95f, .seed = i};
            q.logprobs = true;
        }
        must(engine_generate(e, &q, on_event, out[i], &out[i]->id, &err));
        free(ids);
    }
    pthread_mutex_unlock(&out[0]->lock);
    for (size_t i = 0; i < N_STREAMS; i++) reply_wait(out[i]);
}

static void same_replies(reply *a[N_STREAMS], reply *b[N_STREAMS])
{
    for (size_t i = 0; i < N_STREAMS; i++) {
        if (b[i]->status) fail_msg("stream %zu: %s", i, b[i]->message);
        assert_int_equal(a[i]->n, b[i]->n);
        assert_memory_equal(a[i]->ids, b[i]->ids, a[i]->n * sizeof *a[i]->ids);
        assert_memory_equal(a[i]->logprobs, b[i]->logprobs, a[i]->n * sizeof *a[i]->logprobs);
        reply_free(a[i]);
        reply_free(b[i]);
    }
}

typedef struct course {
    stages x;
    engine_stats stats;
} course;

/* The streams in stages, against the whole model's. */
static void compare_streams(const char *path, const size_t *cuts, size_t n_cuts, engine_options o,
                            unsigned lose_every, course *ret)
{
    reply *whole[N_STREAMS], *cut[N_STREAMS];
    rig r;
    rig_open(&r, path, (engine_options){0});
    size_t n_vocab = model_get_config(r.m)->n_vocab;
    run_streams(r.e, n_vocab, whole);
    rig_close(&r);
    stages_open(&ret->x, path, cuts, n_cuts, o);
    ret->x.lose_every = lose_every;
    ret->x.most_lost = 4; /* one more, and what is always there is given up */
    o.shards = &ret->x.table;
    rig_open(&r, path, o);
    run_streams(r.e, n_vocab, cut);
    engine_get_stats(r.e, &ret->stats);
    rig_close(&r);
    stages_close(&ret->x);
    same_replies(whole, cut);
}

static void streams_side_by_side_say_the_same(void **state)
{
    course c;
    compare_streams(q8, (const size_t[]){1}, 1, (engine_options){0}, 0, &c);
    assert_int_equal(c.x.most_under_way, 2);
    compare_streams(DATA "hf/lfm2-conv", (const size_t[]){1, 3}, 2, (engine_options){.draft_price = 1e-9}, 0,
                    &c);
    assert_int_equal(c.x.most_under_way, 3);
    compare_streams(DATA "hf/gemma3", (const size_t[]){1, 2, 3, 4, 5}, 5,
                    (engine_options){.prefill_chunk = 16}, 0, &c);
    assert_int_equal(c.x.most_under_way, 6);
}

/* As many groups of sequences are under way as there are stages, so that none idles: all the time, but for
 * the prompts at the start and the last replies at the end. */
static void no_stage_idles(void **state)
{
    static const size_t cuts[] = {1, 2};
    for (size_t n_cuts = 1; n_cuts <= 2; n_cuts++) {
        stages x;
        rig r;
        reply *out[N_STREAMS];
        int32_t ids[] = {1, 2, 3};
        stages_open(&x, q8, cuts, n_cuts, (engine_options){0});
        rig_open(&r, q8, (engine_options){.shards = &x.table});
        gen_request q = {.ids = ids, .n_ids = 3, .max_tokens = 100, .ignore_eos = true};
        for (size_t i = 0; i < N_STREAMS; i++) out[i] = reply_new();
        pthread_mutex_lock(&out[0]->lock); /* the engine waits for it at the first token */
        must(engine_generate(r.e, &q, on_event, out[0], &out[0]->id, &err));
        for (size_t i = 1; i < N_STREAMS; i++) must(reply_start(out[i], r.e, &q, &err));
        pthread_mutex_unlock(&out[0]->lock);
        for (size_t i = 0; i < N_STREAMS; i++) {
            reply_wait(out[i]);
            reply_free(out[i]);
        }
        rig_close(&r);
        if (x.n_received_full * 10 < x.n_received * 9)
            fail_msg("%zu stages: %u of %u steps had all of them busy", n_cuts + 1, x.n_received_full,
                     x.n_received);
        stages_close(&x);
    }
}

/* One place, so that there is nothing beside it; and a cache that cannot hold all, so that they are preempted
 * and computed again. */
static void short_of_places_and_pages_they_say_the_same(void **state)
{
    course c;
    compare_streams(q8, (const size_t[]){2}, 1, (engine_options){.max_batch = 3}, 0, &c);
    compare_streams(q8, (const size_t[]){1}, 1, (engine_options){.kv_bytes = 250000}, 0, &c);
    assert_in_range(c.stats.kv_pages_total, 27, 40); /* a search of three needs 27 */
}

static void lost_stages_change_no_byte(void **state)
{
    course c;
    compare_streams(q8, (const size_t[]){1, 2}, 2, (engine_options){0}, 30, &c);
    assert_true(c.x.n_lost > 0);
    compare_streams(DATA "hf/qwen3-moe", (const size_t[]){1}, 1, (engine_options){0}, 25, &c);
    assert_true(c.x.n_lost > 0);
}

/* A stage that is lost with every step serves nobody: the request ends, and says so. */
static void what_ends_every_stage_is_given_up(void **state)
{
    stages x;
    rig r;
    int32_t ids[] = {1, 2, 3};
    stages_open(&x, q8, (const size_t[]){1}, 1, (engine_options){0});
    x.lose_every = 1;
    rig_open(&r, q8, (engine_options){.shards = &x.table});
    reply *a = generate(r.e, &(gen_request){.ids = ids, .n_ids = 3, .max_tokens = 4});
    assert_int_equal(a->status, SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(a->message, "stage"));
    reply_free(a);
    x.lose_every = 0;
    a = generate(r.e, &(gen_request){.ids = ids, .n_ids = 3, .max_tokens = 4, .ignore_eos = true});
    assert_int_equal(a->status, 0);
    assert_int_equal(a->n, 4);
    reply_free(a);
    rig_close(&r);
    stages_close(&x);
}

/* Rows that are no numbers end their own sequence, with an error and no made-up token. */
static void rows_that_are_no_numbers_end_their_sequence(void **state)
{
    stages x;
    rig r;
    int32_t ids[] = {1, 2, 3};
    stages_open(&x, GQA, (const size_t[]){1}, 1, (engine_options){0});
    x.spoil = 3;
    rig_open(&r, GQA, (engine_options){.shards = &x.table});
    reply *a = generate(r.e, &(gen_request){.ids = ids, .n_ids = 3, .max_tokens = 8, .ignore_eos = true});
    assert_int_equal(a->status, SHOAL_EINTERNAL);
    assert_int_equal(a->n, 2);
    reply_free(a);
    rig_close(&r);
    stages_close(&x);
}

/* Closing while steps are under way. */
static void an_engine_closes_in_the_middle(void **state)
{
    stages x;
    rig r;
    reply *a = reply_new();
    int32_t ids[] = {1, 2, 3};
    stages_open(&x, q8, (const size_t[]){1}, 1, (engine_options){0});
    rig_open(&r, q8, (engine_options){.shards = &x.table});
    gen_request q = {.ids = ids, .n_ids = 3, .max_tokens = 200, .ignore_eos = true};
    must(reply_start(a, r.e, &q, &err));
    rig_close(&r);
    assert_true(a->done);
    reply_free(a);
    stages_close(&x);
}

/* ---- a part ------------------------------------------------------------------------------------------- */

static void a_part_keeps_its_own_layers_alone(void **state)
{
    model *m;
    must(model_open(&m, q8, &(model_options){.no_tokenizer = true}, &err));
    const net_ops *ops = net_ops_for(model_get_config(m), NULL);
    size_t n = model_get_config(m)->n_layer;
    kv_shape whole = ops->kv(m), one = ops->kv_part(m, (net_layers){1, 2}),
             rest = ops->kv_part(m, (net_layers){2, n});
    assert_int_equal(one.n_layer, 1);
    assert_int_equal(whole.n_layer, 2 + rest.n_layer);
    assert_int_equal(whole.type, rest.type);
    model_free(m);
}

static void parts_that_cannot_be_are_refused(void **state)
{
    const struct {
        const char *path;
        net_layers part;
        const char *says;
    } cases[] = {{q8, {2, 2}, "layers 2:2"},
                 {q8, {1, 99}, "layers 1:99"},
                 {q8, {0, 1}, "first stage"},
                 {DATA "hf/flan-t5-gated", {1, 2}, "cut"},
                 {DATA "hf/bert-intent", {1, 2}, "cut"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model *m;
        stage *s;
        shoal_err why = {0};
        must(model_open(&m, cases[i].path, &(model_options){.no_tokenizer = true}, &err));
        assert_int_equal(stage_new(&s, m, &(stage_options){.part = cases[i].part}, &why), SHOAL_EINVALID);
        if (!strstr(why.message, cases[i].says)) fail_msg("%s", why.message);
        model_free(m);
    }
}

/* ---- steps of a peer that lies ------------------------------------------------------------------------ */

#define ITEM(pages, n_pages, position, n, n_out)       \
    {                                                  \
        pages, n_pages, position, n, n_out, 0, NULL, 0 \
    }

static void steps_that_lie_are_refused(void **state)
{
    model *m;
    stage *s;
    stage_facts f;
    must(model_open(&m, q8, &(model_options){.no_tokenizer = true}, &err));
    must(stage_new(&s, m, &(stage_options){.part = {1, 2}, .n_ctx = 64, .max_batch = 4}, &err));
    stage_get_facts(s, &f);
    uint32_t p[] = {0, 1, 2, 3, (uint32_t)f.n_pages}, twice[] = {0, 0};
    const struct {
        stage_item items[2];
        size_t n_items, n_rows;
        stage_copy copy;
    } cases[] = {
        {{ITEM(p, 1, 0, 0, 0)}, 1, 0, {0, 0}},                             /* no row */
        {{ITEM(p, 1, 0, 2, 3)}, 1, 2, {0, 0}},                             /* more wanted than there are */
        {{ITEM(p, 1, 0, 3, 0)}, 1, 2, {0, 0}},                             /* rows that were not sent */
        {{ITEM(p, 1, 0, 1, 0)}, 1, 2, {0, 0}},                             /* rows of nobody */
        {{ITEM(p, 1, 16, 1, 0)}, 1, 1, {0, 0}},                            /* a page too few */
        {{ITEM(p, 2, 0, 1, 0)}, 1, 1, {0, 0}},                             /* a page too many */
        {{ITEM(p + 4, 1, 0, 1, 0)}, 1, 1, {0, 0}},                         /* a page that is not there */
        {{ITEM(p, 5, 64, 1, 0)}, 1, 1, {0, 0}},                            /* behind the context */
        {{ITEM(p, 1, SIZE_MAX, 1, 0)}, 1, 1, {0, 0}},                      /* far behind it */
        {{ITEM(p, 1, 0, SIZE_MAX, 0), ITEM(p, 1, 0, 3, 0)}, 2, 2, {0, 0}}, /* a sum that wraps around */
        {{ITEM(p, 1, 0, 1, 0), ITEM(p, 1, 0, 1, 0)}, 2, 2, {0, 0}},        /* two write one page */
        {{ITEM(p, 1, 0, 1, 0), ITEM(p, 2, 16, 1, 0)}, 2, 2, {0, 0}},       /* one reads what another writes */
        {{ITEM(twice, 2, 16, 1, 0)}, 1, 1, {0, 0}},              /* and itself, as another position */
        {{ITEM(p, 1, 0, 1, 0)}, 1, 1, {0, (uint32_t)f.n_pages}}, /* a copy to nowhere */
        {{ITEM(p, 1, 0, 1, 0)}, 1, 1, {UINT32_MAX, 0}},          /* and from there */
        {{ITEM(p, 1, 0, 1, 0)}, 1, f.max_tokens + 1, {0, 0}},    /* more than there is room for */
    };
    float *rows = calloc((f.max_tokens + 1) * f.n_embd, sizeof *rows);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_err err = {0};
        stage_step step = {
            .copies = &cases[i].copy, .n_copies = 1, .items = cases[i].items, .n_items = cases[i].n_items};
        if (stage_run(s, &step, rows, cases[i].n_rows, &err) != SHOAL_EINVALID) fail_msg("case %zu", i);
        assert_true(strlen(err.message) > 0);
    }
    stage_step fine = {.items = &(stage_item)ITEM(p, 2, 15, 2, 1), .n_items = 1};
    must(stage_run(s, &fine, rows, 2, &err));
    assert_int_equal(stage_keep_wanted(&fine, rows, f.n_embd), 1);
    free(rows);
    stage_free(s);
    model_free(m);
}

/* Of a model with convolutions: states that are read and left. */
static void states_that_lie_are_refused(void **state)
{
    model *m;
    stage *s;
    stage_facts f;
    must(model_open(&m, DATA "hf/lfm2-conv", &(model_options){.no_tokenizer = true}, &err));
    must(stage_new(&s, m, &(stage_options){.part = {1, 3}, .n_ctx = 64, .max_batch = 4}, &err));
    stage_get_facts(s, &f);
    uint32_t p[] = {0, 1}, last = (uint32_t)f.n_pages + KV_SPARE_STATES;
    const struct {
        uint32_t position, from;
        seq_mark marks[2];
        bool fine;
    } cases[] = {
        {0, 0, {{1, 1}, {2, last}}, true},      {3, 2, {{4, 1}, {5, 3}}, true},
        {0, 0, {{1, 1}, {2, last + 1}}, false}, /* a state that is not there */
        {0, 0, {{1, 1}, {2, 0}}, false},        /* none */
        {0, 0, {{1, 1}, {3, 2}}, false},        /* behind what is computed */
        {3, 2, {{3, 1}, {5, 3}}, false},        /* in front of it */
        {0, 0, {{2, 1}, {1, 2}}, false},        /* out of order */
        {0, 0, {{1, 1}, {2, 1}}, false},        /* left twice */
        {3, 2, {{4, 1}, {5, 2}}, false},        /* left and read */
        {3, 0, {{4, 1}, {5, 2}}, false},        /* from none in the middle */
        {0, 3, {{1, 1}, {2, 2}}, false},        /* from one at the start */
        {3, last + 1, {{4, 1}, {5, 2}}, false}, /* from one that is not there */
    };
    float *rows = calloc(2 * f.n_embd, sizeof *rows);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_err why = {0};
        stage_item it = {.pages = p,
                         .n_pages = 1,
                         .position = cases[i].position,
                         .n = 2,
                         .state = cases[i].from,
                         .marks = cases[i].marks,
                         .n_marks = 2};
        int rc = stage_run(s, &(stage_step){.items = &it, .n_items = 1}, rows, 2, &why);
        if (rc != (cases[i].fine ? 0 : SHOAL_EINVALID)) fail_msg("case %zu: %s", i, why.message);
    }
    /* Two items may go on from one state, but not from one that either leaves. */
    seq_mark marks[] = {{2, 3}, {2, 4}};
    stage_item two[] = {
        {.pages = p, .n_pages = 1, .position = 1, .n = 1, .state = 1, .marks = marks, .n_marks = 1},
        {.pages = p + 1, .n_pages = 1, .position = 1, .n = 1, .state = 1, .marks = marks + 1, .n_marks = 1}};
    stage_step step = {.items = two, .n_items = 2};
    must(stage_run(s, &step, rows, 2, &err));
    two[1].state = 3;
    shoal_err why = {0};
    assert_int_equal(stage_run(s, &step, rows, 2, &why), SHOAL_EINVALID);
    free(rows);
    stage_free(s);
    model_free(m);
}

static void stages_without_room_for_the_batch_are_refused(void **state)
{
    stages x;
    model *m;
    engine *e;
    shoal_err why = {0};
    stages_open(&x, q8, (const size_t[]){1}, 1, (engine_options){.max_batch = 4});
    must(model_open(&m, q8, NULL, &err));
    assert_int_equal(engine_new(&e, m, &(engine_options){.shards = &x.table, .max_batch = 8}, &why),
                     SHOAL_EINVALID);
    assert_non_null(strstr(why.message, "--max-batch"));
    must(engine_new(&e, m, &(engine_options){.shards = &x.table, .max_batch = 4}, &err));
    assert_int_equal(engine_adapter_load(e, "a", "/nowhere", 1, &why), SHOAL_EUNSUPPORTED);
    engine_free(e);
    model_free(m);
    stages_close(&x);
}

static int quantise(void **state)
{
    quantize_report r;
    if (!mkdtemp(dir)) return -1;
    snprintf(q8, sizeof q8, "%s/q8.gguf", dir);
    snprintf(q4, sizeof q4, "%s/q4.gguf", dir);
    must(quantize_model(DATA "hf/qwen3-qknorm", q8, &(quantize_options){.type = DT_Q8_0}, &r, &err));
    must(quantize_model(DATA "hf/qwen3-moe", q4, &(quantize_options){.type = DT_Q4_0}, &r, &err));
    return 0;
}

static int clear(void **state)
{
    return unlink(q8) || unlink(q4) || rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_of_every_family_gives_the_same_logits),
        cmocka_unit_test(streams_side_by_side_say_the_same),
        cmocka_unit_test(no_stage_idles),
        cmocka_unit_test(short_of_places_and_pages_they_say_the_same),
        cmocka_unit_test(lost_stages_change_no_byte),
        WITH_INT8_KV(lost_stages_change_no_byte),
        cmocka_unit_test(what_ends_every_stage_is_given_up),
        cmocka_unit_test(rows_that_are_no_numbers_end_their_sequence),
        cmocka_unit_test(an_engine_closes_in_the_middle),
        cmocka_unit_test(a_part_keeps_its_own_layers_alone),
        cmocka_unit_test(parts_that_cannot_be_are_refused),
        cmocka_unit_test(steps_that_lie_are_refused),
        cmocka_unit_test(states_that_lie_are_refused),
        cmocka_unit_test(stages_without_room_for_the_batch_are_refused),
    };
    return cmocka_run_group_tests(tests, quantise, clear);
}
