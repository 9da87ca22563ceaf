/* A reply that one engine began goes on in another: for every number of tokens that were generated there,
 * what follows is what followed in the undisturbed run, to the bit: ids, texts, thoughts, log-probabilities,
 * alternatives, how it ends and what is counted. */
#include "helper.h"

enum { MAX_TOKENS = 64 };

/* Under a sanitizer, which knows nothing of bits, some of the cuts will do. */
#ifdef __SANITIZE_THREAD__
#define CUT_EVERY 9
#elif defined(__SANITIZE_ADDRESS__)
#define CUT_EVERY 3
#else
#define CUT_EVERY 1
#endif

/* ---- a run and all its events --------------------------------------------------------------------- */

typedef struct token {
    int32_t id;
    float logprob;
    double prob_sum;
    size_t n_top;
    token_logprob top[20];
    size_t text, thought; /* where they end in run.text and run.thought */
} token;

typedef struct run {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    buf text, thought;        /* of tokens */
    buf begun, begun_thought; /* of EVENT_RESUMED */
    size_t n_resumed, n_progress, n_read, n_input;
    token tokens[MAX_TOKENS];
    size_t n;
    buf tail, tail_thought;
    int status;
    char message[256];
    finish_reason finish;
    gen_timings timings;
} run;

static void note_token(run *r, const gen_event *ev)
{
    assert_true(r->n < MAX_TOKENS);
    token *t = &r->tokens[r->n++];
    buf_append(&r->text, ev->text, ev->text_len);
    buf_append(&r->thought, ev->thought, ev->thought_len);
    *t = (token){.id = ev->id,
                 .logprob = ev->logprob,
                 .prob_sum = ev->prob_sum,
                 .n_top = ev->n_top,
                 .text = r->text.len,
                 .thought = r->thought.len};
    if (ev->n_top) memcpy(t->top, ev->top, ev->n_top * sizeof *t->top);
}

static void note_end(run *r, const gen_event *ev)
{
    buf_append(&r->tail, ev->text, ev->text_len);
    buf_append(&r->tail_thought, ev->thought, ev->thought_len);
    r->status = ev->status;
    snprintf(r->message, sizeof r->message, "%s", ev->message);
    r->finish = ev->finish;
    r->timings = ev->timings;
    r->done = true;
    pthread_cond_signal(&r->wake);
}

static void note_resumed(run *r, const gen_event *ev)
{
    assert_int_equal(r->n, 0); /* it comes first */
    assert_false(r->done);
    r->n_resumed++;
    buf_append(&r->begun, ev->text, ev->text_len);
    buf_append(&r->begun_thought, ev->thought, ev->thought_len);
}

static void note(void *user, const gen_event *ev)
{
    run *r = user;
    pthread_mutex_lock(&r->lock);
    switch (ev->kind) {
    case EVENT_TOKEN: note_token(r, ev); break;
    case EVENT_DONE: note_end(r, ev); break;
    case EVENT_BALLOT:
    case EVENT_JUDGED: break;
    case EVENT_RESUMED: note_resumed(r, ev); break;
    case EVENT_PROGRESS:
        r->n_progress++;
        r->n_read = ev->n_read;
        r->n_input = ev->n_input;
        break;
    }
    pthread_mutex_unlock(&r->lock);
}

static run *run_start(engine *e, const gen_request *q)
{
    run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->wake, NULL);
    must(engine_generate(e, q, note, r, NULL, &err));
    return r;
}

static run *run_whole(engine *e, const gen_request *q)
{
    run *r = run_start(e, q);
    pthread_mutex_lock(&r->lock);
    while (!r->done) pthread_cond_wait(&r->wake, &r->lock);
    pthread_mutex_unlock(&r->lock);
    return r;
}

static void run_free(run *r)
{
    buf *const all[] = {&r->text, &r->thought, &r->begun, &r->begun_thought, &r->tail, &r->tail_thought};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) buf_done(all[i]);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
    free(r);
}

/* ---- two runs compared ---------------------------------------------------------------------------- */

static void same_bytes(const char *what, size_t cut, const char *a, size_t n_a, const char *b, size_t n_b)
{
    if (n_a != n_b || (n_a > 0 && memcmp(a, b, n_a) != 0))
        fail_msg("%s after %zu tokens: \"%.*s\", wanted \"%.*s\"", what, cut, (int)n_a, a, (int)n_b, b);
}

static void same_buf(const char *what, size_t cut, const buf *a, const buf *b)
{
    same_bytes(what, cut, a->data, a->len, b->data, b->len);
}

static void same_token(size_t cut, size_t i, const token *a, const token *b)
{
    if (a->id != b->id) fail_msg("cut %zu, token %zu: %d, wanted %d", cut, i, a->id, b->id);
    assert_memory_equal(&a->logprob, &b->logprob, sizeof a->logprob);
    assert_memory_equal(&a->prob_sum, &b->prob_sum, sizeof a->prob_sum);
    assert_int_equal(a->n_top, b->n_top);
    assert_memory_equal(a->top, b->top, a->n_top * sizeof *a->top);
}

/* The rest of `whole` after `cut` tokens. */
static void same_rest(const run *rest, const run *whole, size_t cut)
{
    size_t text = cut ? whole->tokens[cut - 1].text : 0, thought = cut ? whole->tokens[cut - 1].thought : 0;
    assert_int_equal(rest->status, 0);
    assert_int_equal(rest->n_resumed, cut > 0);
    same_bytes("the text so far", cut, rest->begun.data, rest->begun.len, whole->text.data, text);
    same_bytes("the thought so far", cut, rest->begun_thought.data, rest->begun_thought.len,
               whole->thought.data, thought);
    assert_int_equal(rest->n, whole->n - cut);
    for (size_t i = 0; i < rest->n; i++) {
        same_token(cut, i, &rest->tokens[i], &whole->tokens[cut + i]);
        assert_int_equal(rest->tokens[i].text, whole->tokens[cut + i].text - text);
        assert_int_equal(rest->tokens[i].thought, whole->tokens[cut + i].thought - thought);
    }
    same_bytes("the text", cut, rest->text.data, rest->text.len,
               whole->text.data ? whole->text.data + text : "", whole->text.len - text);
    same_bytes("the thought", cut, rest->thought.data, rest->thought.len,
               whole->thought.data ? whole->thought.data + thought : "", whole->thought.len - thought);
    same_buf("the end", cut, &rest->tail, &whole->tail);
    same_buf("the thought's end", cut, &rest->tail_thought, &whole->tail_thought);
    assert_int_equal(rest->finish, whole->finish);
    assert_int_equal(rest->timings.n_prompt, whole->timings.n_prompt);
    assert_int_equal(rest->timings.n_generated, whole->timings.n_generated);
    assert_int_equal(rest->timings.n_thought, whole->timings.n_thought);
    assert_memory_equal(&rest->timings.mean_prob, &whole->timings.mean_prob, sizeof(double));
}

static run *resume_at(engine *e, const gen_request *q, const run *whole, size_t cut)
{
    int32_t ids[MAX_TOKENS];
    gen_request again = *q;
    for (size_t i = 0; i < cut; i++) ids[i] = whole->tokens[i].id;
    again.resume_ids = ids;
    again.n_resume = cut;
    again.resume_prob_sum = cut ? whole->tokens[cut - 1].prob_sum : 0;
    return run_whole(e, &again);
}

/* ---- two replicas --------------------------------------------------------------------------------- */

/* Of one model, with other threads, chunks and company in the cache. */
typedef struct pair {
    char path[512];
    rig first, second;
} pair;

static void open_second(pair *p)
{
    rig_open(&p->second, p->path, (engine_options){.n_threads = 1, .prefill_chunk = 16});
}

static void pair_open(pair *p, const char *path)
{
    snprintf(p->path, sizeof p->path, "%s", path);
    rig_open(&p->first, path, (engine_options){.n_threads = 2});
    open_second(p);
}

static void pair_close(pair *p)
{
    rig_close(&p->first);
    rig_close(&p->second);
}

/* Every cut, the last ones first, so that the cache of the second engine knows as little as it can. At three
 * cuts that engine is a new one. The undisturbed run is given back. */
static run *check_cuts(pair *p, const gen_request *q)
{
    run *whole = run_whole(p->first.e, q);
    if (whole->status) fail_msg("%s: %s", p->path, whole->message);
    for (size_t cut = whole->n + 1; cut-- > 0;) {
        if ((whole->n - cut) % CUT_EVERY != 0) continue;
        if (cut == whole->n / 2 || cut == 1 || cut == 0) {
            rig_close(&p->second);
            open_second(p);
        }
        run *rest = resume_at(p->second.e, q, whole, cut);
        same_rest(rest, whole, cut);
        run_free(rest);
    }
    return whole;
}

static void check_and_forget(pair *p, const gen_request *q)
{
    run_free(check_cuts(p, q));
}

static int32_t prompt[] = {1, 59, 65, 33, 41, 46, 47, 33, 52, 51, 47, 41, 60, 61, 62, 63, 64, 65, 66, 67};
#define N_PROMPT (sizeof prompt / sizeof *prompt)

static gen_request plain(size_t max_tokens)
{
    return (gen_request){.ids = prompt, .n_ids = N_PROMPT, .max_tokens = max_tokens, .ignore_eos = true};
}

#define HOT                                            \
    {                                                  \
        .temperature = 1.2f, .top_p = 0.98f, .seed = 5 \
    }
#define PENALISED                                                                             \
    {                                                                                         \
        .temperature = 1, .top_k = 60, .min_p = 0.001f, .seed = 11, .presence_penalty = 0.7f, \
        .frequency_penalty = 0.9f, .repetition_penalty = 1.3f                                 \
    }

/* ---- tests ---------------------------------------------------------------------------------------- */

static void every_architecture_goes_on_where_another_engine_stopped(void **state)
{
    static const char *const models[] = {
        DATA "hf/llama-gqa", DATA "hf/lfm2-conv",       DATA "hf/gemma3",  DATA "hf/mistral-sliding",
        DATA "hf/qwen3-moe", DATA "hf/gpt-neox-pythia", DATA "hf/granite", SHOAL_GGUF_DIR "/phi-1.5.gguf"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        pair p;
        pair_open(&p, models[i]);
        gen_request q = plain(24);
        check_and_forget(&p, &q); /* greedy */
        q.sampling = (sampling)PENALISED;
        q.n_top = 3;
        q.logprobs = true;
        check_and_forget(&p, &q);
        pair_close(&p);
    }
}

static void what_reads_a_source_goes_on_too(void **state)
{
    static const char *const models[] = {"t5-small-relu", "bart", "marian-translate"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[512];
        pair p;
        snprintf(path, sizeof path, DATA "hf/%s", models[i]);
        pair_open(&p, path);
        int32_t start = model_get_config(p.first.m)->start_id;
        enc_request source = {.ids = prompt + 1, .n_ids = N_PROMPT - 1};
        gen_request q = {.ids = &start, .n_ids = 1, .source = &source, .max_tokens = 20, .ignore_eos = true};
        check_and_forget(&p, &q);
        q.sampling = (sampling)HOT;
        q.n_top = 2;
        check_and_forget(&p, &q);
        q.sampling = (sampling){0};
        q.n_top = 0;
        q.n_beams = 3; /* made again: it finds the same reply */
        q.ignore_eos = false;
        check_and_forget(&p, &q);
        pair_close(&p);
    }
}

/* Bytes of the euro sign are likely, so that characters are split, broken and repaired. */
static void characters_split_over_tokens_go_on(void **state)
{
    static const char *const bytes[] = {"\xE2", "\x82", "\xAC"};
    pair p;
    logit_bias bias[3];
    pair_open(&p, DATA "hf/llama-gqa");
    const tokenizer *t = model_tokenizer(p.first.m);
    size_t found = 0, held = 0, broken = 0, whole = 0;
    for (int32_t id = 0; (size_t)id < tokenizer_vocab_size(t); id++) {
        size_t len = 0;
        const char *s = tokenizer_bytes(t, id, &len, &(bool){false});
        for (size_t k = 0; k < 3; k++)
            if (s && len == 1 && *s == *bytes[k] && found < 3) bias[found++] = (logit_bias){id, 12};
    }
    assert_int_equal(found, 3);
    for (uint64_t seed = 0; seed < 4; seed++) {
        gen_request q = plain(40);
        q.sampling = (sampling){.temperature = 1, .seed = seed, .bias = bias, .n_bias = 3};
        run *r = check_cuts(&p, &q);
        buf_putc(&r->text, '\0');
        for (size_t i = 1; i < r->n; i++) held += r->tokens[i].text == r->tokens[i - 1].text;
        broken += strstr(r->text.data, "\xEF\xBF\xBD") != NULL;
        whole += strstr(r->text.data, "\xE2\x82\xAC") != NULL;
        run_free(r);
    }
    assert_true(held > 10 && broken > 0 && whole > 0);
    pair_close(&p);
}

/* s[0..n) begins and ends between characters. */
static bool is_whole(const char *s, size_t n)
{
    return utf8_valid(s, n, NULL);
}

/* A piece of the text from its middle on, of at least `least` bytes. */
static void slice(const buf *text, size_t least, char *out)
{
    size_t at = text->len / 2, n = least;
    while (!is_whole(text->data, at)) at++;
    while (!is_whole(text->data + at, n)) n++;
    assert_true(at + n < text->len && n < 60);
    memcpy(out, text->data + at, n);
    out[n] = '\0';
}

/* A stop string over several tokens, and one that differs at its end: text is held back and let go. */
static void stop_strings_split_over_tokens_go_on(void **state)
{
    pair p;
    pair_open(&p, DATA "hf/llama-gqa");
    size_t held = 0;
    for (uint64_t seed = 0; seed < 4; seed++) {
        char stop[64], near[66];
        const char *stops[] = {near, stop};
        gen_request q = plain(40);
        q.sampling = (sampling){.temperature = 1, .seed = seed};
        run *whole = run_whole(p.first.e, &q);
        slice(&whole->text, 12, stop);
        snprintf(near, sizeof near, "%s\x01", stop);
        run_free(whole);
        q.stop = stops;
        for (q.n_stop = 1; q.n_stop <= 2; q.n_stop++) {
            run *r = check_cuts(&p, &q);
            assert_int_equal(r->finish, q.n_stop == 1 ? FINISH_LENGTH : FINISH_STOP);
            for (size_t i = 1; i < r->n; i++) held += r->tokens[i].text == r->tokens[i - 1].text;
            run_free(r);
        }
    }
    assert_true(held > 8);
    pair_close(&p);
}

/* The thought ends in the reply's middle, at a marker over several tokens. */
static void thoughts_go_on(void **state)
{
    pair p;
    pair_open(&p, DATA "hf/llama-gqa");
    for (uint64_t seed = 0; seed < 4; seed++) {
        char close[64];
        thinking_form form = {.open = "<think>", .close = close};
        gen_request q = plain(40);
        q.sampling = (sampling){.temperature = 1, .seed = seed};
        run *whole = run_whole(p.first.e, &q);
        slice(&whole->text, 7, close);
        run_free(whole);
        q.thinking = &form;
        q.in_thought = true;
        run *r = check_cuts(&p, &q);
        assert_true(r->thought.len > 0 && r->text.len > 0);
        assert_true(r->timings.n_thought > 0 && r->timings.n_thought < 40);
        run_free(r);
        q.in_thought = false;
        check_and_forget(&p, &q);
    }
    pair_close(&p);
}

static const char SCHEMA[] = "{\"type\":\"object\",\"properties\":{\"room\":{\"enum\":[\"hall\",\"attic\"]},"
                             "\"note\":{\"type\":\"string\","
                             "\"maxLength\":12},\"level\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":99}"
                             "},\"required\":[\"room\",\"note\","
                             "\"level\"],\"additionalProperties\":false}";
static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"nod\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{"
    "\"often\":{\"type\":\"integer\",\"maximum\":9,\"minimum\":0}},\"required\":[\"often\"],"
    "\"additionalProperties\":false}}}]";

static void forms_go_on(void **state)
{
    static const char *const choices[] = {"kitchen", "bed", "bedroom \xC3\xA9", "front door"};
    const grammar_spec forms[] = {
        {.kind = GRAMMAR_JSON_SCHEMA, .schema = SCHEMA},
        {.kind = GRAMMAR_JSON_OBJECT},
        {.kind = GRAMMAR_TOOLS, .tools_json = TOOLS, .mode = TOOLS_REQUIRED},
        {.kind = GRAMMAR_TOOLS, .tools_json = TOOLS, .mode = TOOLS_AUTO, .parallel = true},
        {.kind = GRAMMAR_CHOICES, .choices = choices, .n_choices = 4},
    };
    static const char *const models[] = {"llama-gqa", "lfm2-conv"};
    size_t n_stopped = 0;
    for (size_t m = 0; m < 2; m++) {
        char path[512];
        pair p;
        snprintf(path, sizeof path, DATA "hf/%s", models[m]);
        pair_open(&p, path);
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            for (int eos = 0; eos < 2; eos++) {
                gen_request q = plain(48);
                q.ignore_eos = eos;
                q.form = &forms[f];
                q.sampling = (sampling)PENALISED;
                run *r = check_cuts(&p, &q);
                n_stopped += r->finish == FINISH_STOP;
                run_free(r);
            }
        }
        pair_close(&p);
    }
    assert_true(n_stopped > 4);
}

/* The bundled model, whose replies end by themselves. */
static void the_home_model_goes_on(void **state)
{
    static const char PROMPT[] =
        "<|im_start|>user\nTurn on the kitchen light<|im_end|>\n<|im_start|>assistant\n";
    pair p;
    encoding enc = {0};
    pair_open(&p, SHOAL_SOURCE_DIR "/models/home-chat-s.gguf");
    const tokenizer *t = model_tokenizer(p.first.m);
    must(tokenizer_encode(t, PROMPT, strlen(PROMPT), NULL, 0, TOK_PARSE_SPECIAL, 0, &enc, &err));
    gen_request q = {.ids = enc.ids, .n_ids = enc.n, .max_tokens = MAX_TOKENS, .logprobs = true, .n_top = 2};
    q.calls = toolcall_find("hermes");
    run *r = check_cuts(&p, &q);
    assert_int_equal(r->finish, FINISH_STOP);
    run_free(r);
    q.sampling = (sampling)HOT;
    check_and_forget(&p, &q);
    pair_close(&p);
    encoding_done(&enc);
}

static void a_reply_goes_on_with_its_adapter(void **state)
{
    pair p;
    pair_open(&p, DATA "hf/llama-gqa");
    for (int i = 0; i < 2; i++)
        must(engine_adapter_load(i ? p.first.e : p.second.e, "one", DATA "adapters/llama-one", 1, &err));
    gen_request q = plain(20);
    q.adapter = "one";
    run *whole = run_whole(p.first.e, &q);
    for (size_t cut = 0; cut <= whole->n; cut++) {
        run *rest = resume_at(p.second.e, &q, whole, cut);
        same_rest(rest, whole, cut);
        run_free(rest);
    }
    run_free(whole);
    pair_close(&p);
}

/* ---- what cannot be resumed ----------------------------------------------------------------------- */

static void refused(engine *e, const gen_request *q, int code, const char *words)
{
    shoal_err err = {0};
    assert_int_equal(engine_generate(e, q, note, NULL, NULL, &err), code);
    if (!strstr(err.message, words)) fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

static void ids_that_no_reply_begins_with_are_refused(void **state)
{
    pair p;
    int32_t ids[300] = {5, 99999, -1};
    static const char *const choices[] = {"kitchen"};
    grammar_spec form = {.kind = GRAMMAR_CHOICES, .choices = choices, .n_choices = 1};
    pair_open(&p, DATA "hf/llama-gqa");
    engine *e = p.first.e;
    gen_request q = plain(8);
    q.resume_ids = ids;
    q.n_resume = 2;
    refused(e, &q, SHOAL_EINVALID, "99999");
    ids[1] = -7;
    refused(e, &q, SHOAL_EINVALID, "-7");
    ids[1] = 5;
    q.n_resume = 9;
    refused(e, &q, SHOAL_EINVALID, "8 tokens at most");
    q.n_resume = 2;
    q.resume_prob_sum = 2.5;
    refused(e, &q, SHOAL_EINVALID, "resume_prob_sum");
    q.resume_prob_sum = NAN;
    refused(e, &q, SHOAL_EINVALID, "resume_prob_sum");
    q.resume_prob_sum = 1;
    q.max_tokens = 250;
    refused(e, &q, SHOAL_ELIMIT, "has room for");
    q.max_tokens = 8;
    q.form = &form;
    refused(e, &q, SHOAL_EINVALID, "the form of the reply");
    q.form = NULL;
    q.ignore_eos = false;
    ids[0] = model_get_config(p.first.m)->eos_ids[0];
    refused(e, &q, SHOAL_EINVALID, "after the end");
    pair_close(&p);
}

/* Another reply than the search finds. */
static void a_search_that_began_otherwise_fails(void **state)
{
    pair p;
    pair_open(&p, DATA "hf/llama-gqa");
    gen_request q = plain(8);
    q.n_beams = 3;
    run *whole = check_cuts(&p, &q);
    whole->tokens[2].id ^= 1;
    run *r = resume_at(p.second.e, &q, whole, 4);
    assert_int_equal(r->status, SHOAL_EINVALID);
    assert_non_null(strstr(r->message, "resume_ids"));
    assert_int_equal(r->n, 0);
    run_free(r);
    run_free(whole);
    pair_close(&p);
}

/* It has nothing to compute: neither a place nor a source is waited for. */
static void a_reply_that_has_ended_ends_at_once(void **state)
{
    pair p;
    rig_open(&p.first, DATA "hf/llama-gqa", (engine_options){.n_threads = 1, .max_batch = 1});
    gen_request long_one = plain(60), q = plain(3);
    run *busy = run_start(p.first.e, &long_one);
    int32_t ids[] = {5, 6, 7};
    q.resume_ids = ids;
    q.n_resume = 3;
    q.resume_prob_sum = 1.5;
    run *r = run_whole(p.first.e, &q);
    assert_int_equal(r->status, 0);
    assert_int_equal(r->finish, FINISH_LENGTH);
    assert_int_equal(r->n, 0);
    assert_int_equal(r->n_resumed, 1);
    assert_int_equal(r->timings.n_generated, 3);
    assert_true(r->timings.mean_prob == 0.5);
    run_free(r);
    pthread_mutex_lock(&busy->lock);
    while (!busy->done) pthread_cond_wait(&busy->wake, &busy->lock);
    pthread_mutex_unlock(&busy->lock);
    run_free(busy);
    rig_close(&p.first);
}

/* A long prompt beside another reply is read in pieces, and each is told to who asked. */
static void progress_is_told_for_each_step_without_a_token(void **state)
{
    rig r;
    int32_t ids[200];
    for (size_t i = 0; i < 200; i++) ids[i] = (int32_t)(3 + i % 500);
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){.n_threads = 1});
    gen_request q = {.ids = ids, .n_ids = 200, .max_tokens = 4, .ignore_eos = true};
    run *quiet = run_whole(r.e, &q);
    assert_int_equal(quiet->n_progress, 0);
    ids[0] = 9; /* not in the cache */
    q.progress = true;
    run *told = run_whole(r.e, &q);
    assert_true(told->n_progress >= 1);
    assert_int_equal(told->n_input, 200);
    assert_true(told->n_read < 200);
    q.n_ids = 20;
    q.max_tokens = 12;
    q.n_beams = 2;
    run *search = run_whole(r.e, &q);
    assert_true(search->n_progress >= 12);
    assert_int_equal(search->n_read, 20);
    run_free(search);
    run_free(told);
    run_free(quiet);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_goes_on_where_another_engine_stopped),
        cmocka_unit_test(what_reads_a_source_goes_on_too),
        cmocka_unit_test(characters_split_over_tokens_go_on),
        cmocka_unit_test(stop_strings_split_over_tokens_go_on),
        cmocka_unit_test(thoughts_go_on),
        cmocka_unit_test(forms_go_on),
        cmocka_unit_test(the_home_model_goes_on),
        cmocka_unit_test(a_reply_goes_on_with_its_adapter),
        cmocka_unit_test(ids_that_no_reply_begins_with_are_refused),
        cmocka_unit_test(a_search_that_began_otherwise_fails),
        cmocka_unit_test(a_reply_that_has_ended_ends_at_once),
        cmocka_unit_test(progress_is_told_for_each_step_without_a_token),
    };
    return cmocka_run_group_tests_name("resume", tests, NULL, NULL);
}
