/* include/shoal.h as another program uses it: from many threads, with wrong arguments, closed in mid-call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shoal.h"

#define DATA      SHOAL_SOURCE_DIR "/tests/data/hf/"
#define HOME_CHAT SHOAL_SOURCE_DIR "/models/home-chat-s.gguf"

enum { N_THREADS = 6, N_ROUNDS = 8 };

static shoal_model *open_with(const char *path, const shoal_options *opts)
{
    shoal_err err = {0};
    shoal_model *m = NULL;
    if (shoal_model_open(&m, path, opts, &err) != 0) fail_msg("%s", err.message);
    return m;
}

static shoal_model *open_model(const char *path)
{
    return open_with(path, &(shoal_options){.n_threads = 2});
}

/* ---- many threads on one model ------------------------------------------------------------------ */

typedef struct crowd {
    shoal_model *m;
    const void *alone; /* what the same call gave before */
    int (*call)(struct crowd *c, int thread);
    atomic_int n_wrong;
} crowd;

typedef struct member {
    crowd *c;
    int thread;
} member;

static void *member_main(void *arg)
{
    member *m = arg;
    for (int i = 0; i < N_ROUNDS; i++)
        if (m->c->call(m->c, m->thread + i) != 0) atomic_fetch_add(&m->c->n_wrong, 1);
    return NULL;
}

static void run_crowd(crowd *c)
{
    pthread_t threads[N_THREADS];
    member members[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        members[i] = (member){c, i};
        assert_int_equal(pthread_create(&threads[i], NULL, member_main, &members[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&c->n_wrong), 0);
}

static const char *const prompts[] = {"Turn on the kitchen lights, please.", "The quick brown fox", "a",
                                      "13 dogs"};
enum { N_PROMPTS = sizeof prompts / sizeof *prompts };

static int generate_once(shoal_model *m, int i, shoal_generation *ret)
{
    const shoal_generate_options o = {.max_tokens = 12, .temperature = (i & 1) ? 0.8f : 0, .seed = 7};
    return shoal_generate(m, prompts[i % N_PROMPTS], &o, NULL, NULL, ret, NULL);
}

static int generate_again(crowd *c, int i)
{
    const shoal_generation *alone = (const shoal_generation *)c->alone + i % N_PROMPTS;
    shoal_generation g = {0};
    int rc = generate_once(c->m, i % N_PROMPTS, &g);
    bool same = rc == 0 && g.n_ids == alone->n_ids && !memcmp(g.ids, alone->ids, g.n_ids * sizeof *g.ids) &&
                !strcmp(g.text, alone->text);
    shoal_generation_done(&g);
    return same ? 0 : 1;
}

static void generation_is_the_same_in_a_crowd(void **state)
{
    (void)state;
    shoal_generation alone[N_PROMPTS] = {0};
    crowd c = {.m = open_model(DATA "llama-gqa"), .alone = alone, .call = generate_again};
    for (int i = 0; i < N_PROMPTS; i++) assert_int_equal(generate_once(c.m, i, &alone[i]), 0);
    run_crowd(&c);
    for (int i = 0; i < N_PROMPTS; i++) shoal_generation_done(&alone[i]);
    shoal_model_close(c.m);
}

static int classify_again(crowd *c, int i)
{
    const shoal_classification *alone = (const shoal_classification *)c->alone + i % N_PROMPTS;
    shoal_classification r = {0};
    int rc = shoal_classify(c->m, prompts[i % N_PROMPTS], NULL, &r, NULL);
    bool same = rc == 0 && r.n_labels == alone->n_labels &&
                !memcmp(r.logits, alone->logits, r.n_labels * sizeof *r.logits) &&
                !strcmp(r.labels[0].name, alone->labels[0].name);
    shoal_classification_done(&r);
    return same ? 0 : 1;
}

static void classification_is_the_same_in_a_crowd(void **state)
{
    (void)state;
    shoal_classification alone[N_PROMPTS] = {0};
    crowd c = {.m = open_model(DATA "bert-intent"), .alone = alone, .call = classify_again};
    for (int i = 0; i < N_PROMPTS; i++) {
        assert_int_equal(shoal_classify(c.m, prompts[i], NULL, &alone[i], NULL), 0);
        float sum = 0;
        for (size_t k = 0; k < alone[i].n_labels; k++) {
            sum += alone[i].labels[k].score;
            if (k) assert_true(alone[i].labels[k - 1].score >= alone[i].labels[k].score);
        }
        assert_true(sum > 0.9999f && sum < 1.0001f);
    }
    run_crowd(&c);
    for (int i = 0; i < N_PROMPTS; i++) shoal_classification_done(&alone[i]);
    shoal_model_close(c.m);
}

static int tag_again(crowd *c, int i)
{
    const shoal_tagging *alone = (const shoal_tagging *)c->alone + i % N_PROMPTS;
    shoal_tagging t = {0};
    int rc = shoal_tag(c->m, prompts[i % N_PROMPTS], &t, NULL);
    bool same = rc == 0 && t.n_spans == alone->n_spans && t.n_tokens == alone->n_tokens &&
                !memcmp(t.logits, alone->logits, t.n_tokens * t.n_labels * sizeof *t.logits);
    for (size_t k = 0; same && k < t.n_spans; k++)
        same = t.spans[k].start == alone->spans[k].start && !strcmp(t.spans[k].label, alone->spans[k].label);
    shoal_tagging_done(&t);
    return same ? 0 : 1;
}

static void tagging_is_the_same_in_a_crowd(void **state)
{
    (void)state;
    shoal_tagging alone[N_PROMPTS] = {0};
    crowd c = {.m = open_model(DATA "bert-ner"), .alone = alone, .call = tag_again};
    for (int i = 0; i < N_PROMPTS; i++) assert_int_equal(shoal_tag(c.m, prompts[i], &alone[i], NULL), 0);
    run_crowd(&c);
    for (int i = 0; i < N_PROMPTS; i++) shoal_tagging_done(&alone[i]);
    shoal_model_close(c.m);
}

static int embed_again(crowd *c, int i)
{
    const shoal_embedding *alone = (const shoal_embedding *)c->alone + i % N_PROMPTS;
    shoal_embedding e = {0};
    int rc = shoal_embed(c->m, prompts[i % N_PROMPTS], &e, NULL);
    bool same = rc == 0 && e.n == alone->n && !memcmp(e.values, alone->values, e.n * sizeof *e.values);
    shoal_embedding_done(&e);
    return same ? 0 : 1;
}

static void embeddings_are_the_same_in_a_crowd(void **state)
{
    (void)state;
    shoal_embedding alone[N_PROMPTS] = {0};
    crowd c = {.m = open_model(DATA "minilm-embed"), .alone = alone, .call = embed_again};
    for (int i = 0; i < N_PROMPTS; i++) {
        assert_int_equal(shoal_embed(c.m, prompts[i], &alone[i], NULL), 0);
        double sum = 0;
        for (size_t k = 0; k < alone[i].n; k++)
            sum += (double)alone[i].values[k] * (double)alone[i].values[k];
        assert_true(sum > 0.9999 && sum < 1.0001);
    }
    run_crowd(&c);
    for (int i = 0; i < N_PROMPTS; i++) shoal_embedding_done(&alone[i]);
    shoal_model_close(c.m);
}

/* Ranking many is asking for each pair alone, to the bit. */
static void ranks_are_the_pairs_scores(void **state)
{
    (void)state;
    enum { N = 70 };
    char text[N][32];
    const char *docs[N];
    float scores[N];
    shoal_model *m = open_model(DATA "cross-encoder-rerank");
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "document number %d", i * i);
        docs[i] = text[i];
    }
    assert_int_equal(shoal_rerank(m, "which number?", docs, N, scores, NULL), 0);
    for (int i = 0; i < N; i++) {
        shoal_classification c = {0};
        assert_int_equal(shoal_classify(m, "which number?", docs[i], &c, NULL), 0);
        assert_memory_equal(&c.labels[0].score, &scores[i], sizeof scores[i]);
        shoal_classification_done(&c);
    }
    assert_int_equal(shoal_rerank(m, "which number?", docs, 0, scores, NULL), 0);
    docs[40] = NULL; /* and nothing is written */
    float first = scores[0];
    assert_int_equal(shoal_rerank(m, "which number?", docs, N, scores, NULL), SHOAL_EINVALID);
    assert_true(scores[0] == first);
    shoal_model_close(m);
    m = open_model(DATA "bert-intent");
    assert_int_equal(shoal_rerank(m, "q", docs, 1, scores, NULL), SHOAL_EUNSUPPORTED);
    shoal_model_close(m);
}

/* ---- streaming ------------------------------------------------------------------------------------ */

typedef struct listener {
    char text[4096];
    size_t n;
    int n_calls, stop_at;
    pthread_t thread;
} listener;

static int listen_to(void *user, const char *text, size_t n)
{
    listener *l = user;
    assert_true(pthread_equal(pthread_self(), l->thread));
    assert_true(l->n + n < sizeof l->text);
    memcpy(l->text + l->n, text, n);
    l->n += n;
    l->text[l->n] = '\0';
    return ++l->n_calls == l->stop_at;
}

static void pieces_add_up_to_the_text(void **state)
{
    (void)state;
    shoal_model *m = open_model(DATA "llama-gqa");
    listener l = {.thread = pthread_self()};
    shoal_generation g = {0};
    shoal_generate_options o = {.max_tokens = 40};
    assert_int_equal(shoal_generate(m, "Turn on", &o, listen_to, &l, &g, NULL), 0);
    assert_string_equal(l.text, g.text);
    assert_int_equal(g.n_bytes, strlen(g.text));
    assert_int_equal(g.n_ids, 40);
    assert_int_equal(g.stopped, 0);
    assert_true(g.mean_prob > 0 && g.mean_prob <= 1);
    shoal_generation_done(&g);
    shoal_model_close(m);
}

static void a_callback_stops_the_reply(void **state)
{
    (void)state;
    shoal_model *m = open_model(DATA "llama-gqa");
    listener l = {.thread = pthread_self(), .stop_at = 1};
    shoal_generation g = {0};
    shoal_err err = {0};
    assert_int_equal(shoal_generate(m, "Turn on", NULL, listen_to, &l, &g, &err), SHOAL_ECANCELLED);
    assert_int_equal(l.n_calls, 1);
    assert_string_equal(l.text, g.text);
    assert_int_equal(err.code, SHOAL_ECANCELLED);
    shoal_generation_done(&g);
    /* The place is free and the model goes on. */
    shoal_generate_options o = {.max_tokens = 3};
    assert_int_equal(shoal_generate(m, "Turn on", &o, NULL, NULL, NULL, NULL), 0);
    shoal_model_close(m);
}

static void a_stop_string_is_no_part_of_the_reply(void **state)
{
    (void)state;
    shoal_model *m = open_model(DATA "llama-gqa");
    shoal_generation whole = {0}, cut = {0};
    shoal_generate_options o = {.max_tokens = 30};
    assert_int_equal(shoal_generate(m, "Turn on", &o, NULL, NULL, &whole, NULL), 0);
    size_t at = whole.n_bytes / 2;
    while (((unsigned char)whole.text[at] & 0xC0) == 0x80) at++;
    const char *stop[] = {whole.text + at};
    const char *first = strstr(whole.text, stop[0]);
    o.stop = stop;
    o.n_stop = 1;
    assert_int_equal(shoal_generate(m, "Turn on", &o, NULL, NULL, &cut, NULL), 0);
    assert_int_equal(cut.stopped, 1);
    assert_int_equal(cut.n_bytes, (size_t)(first - whole.text));
    assert_memory_equal(cut.text, whole.text, cut.n_bytes);
    shoal_generation_done(&whole);
    shoal_generation_done(&cut);
    shoal_model_close(m);
}

static void a_schema_binds_the_reply(void **state)
{
    (void)state;
    static const char schema[] = "{\"type\":\"object\",\"properties\":{\"on\":{\"enum\":[\"yes\",\"no\"]}},"
                                 "\"required\":[\"on\"],\"additionalProperties\":false}";
    shoal_model *m = open_model(DATA "llama-gqa");
    shoal_generation g = {0};
    shoal_err err = {0};
    shoal_generate_options o = {.max_tokens = 60, .json_schema = schema};
    assert_int_equal(shoal_generate(m, "Turn on", &o, NULL, NULL, &g, &err), 0);
    if (!strstr(g.text, "\"yes\"") && !strstr(g.text, "\"no\"")) fail_msg("%s", g.text);
    assert_int_equal(g.text[0], '{');
    assert_int_equal(g.text[g.n_bytes - 1], '}');
    shoal_generation_done(&g);
    o.json_schema = "{\"type\":";
    assert_int_equal(shoal_generate(m, "Turn on", &o, NULL, NULL, &g, &err), SHOAL_EINVALID);
    assert_int_equal(err.code, SHOAL_EINVALID);
    assert_null(g.text);
    shoal_model_close(m);
}

static void a_conversation_is_answered(void **state)
{
    (void)state;
    if (access(HOME_CHAT, R_OK) != 0) {
        fprintf(stderr, "SKIP a_conversation_is_answered: models/home-chat-s.gguf is not there\n");
        skip();
    }
    shoal_model *m = open_model(HOME_CHAT);
    const shoal_message talk[] = {{"system", "You are a helpful assistant."}, {"user", "hello"}};
    shoal_generate_options o = {.max_tokens = 40};
    listener l = {.thread = pthread_self()};
    shoal_generation g = {0};
    shoal_err err = {0};
    if (shoal_chat(m, talk, 2, &o, listen_to, &l, &g, &err) != 0) fail_msg("%s", err.message);
    assert_true(g.n_bytes > 0 && g.stopped);
    assert_null(strstr(g.text, "<|im_end|>"));
    assert_string_equal(l.text, g.text);
    shoal_generation_done(&g);
    const shoal_message bad[] = {{"user", NULL}};
    assert_int_equal(shoal_chat(m, bad, 1, &o, NULL, NULL, &g, &err), SHOAL_EINVALID);
    const shoal_message not_utf8[] = {{"user", "\xFF"}};
    assert_int_equal(shoal_chat(m, not_utf8, 1, &o, NULL, NULL, &g, &err), SHOAL_EINVALID);
    assert_null(g.text);
    shoal_model_close(m);
}

/* ---- errors ------------------------------------------------------------------------------------------ */

static void a_wrong_task_is_named(void **state)
{
    (void)state;
    shoal_model *m = open_model(DATA "bert-intent");
    shoal_err err = {0};
    shoal_embedding e = {.n = 99};
    assert_int_equal(shoal_embed(m, "hello", &e, &err), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "\"classify\""));
    assert_non_null(strstr(err.message, "\"embed\""));
    assert_int_equal(e.n, 99);
    shoal_tagging t = {.n_tokens = 98};
    assert_int_equal(shoal_tag(m, "hello", &t, NULL), SHOAL_EUNSUPPORTED);
    assert_int_equal(t.n_tokens, 98);
    shoal_generation g = {.n_ids = 97};
    assert_int_equal(shoal_generate(m, "hello", NULL, NULL, NULL, &g, &err), SHOAL_EUNSUPPORTED);
    assert_int_equal(g.n_ids, 97);
    shoal_model_close(m);
}

static char *long_text(size_t words)
{
    char *s = malloc(2 * words + 1);
    assert_non_null(s);
    for (size_t i = 0; i < words; i++) memcpy(s + 2 * i, "a ", 2);
    s[2 * words] = '\0';
    return s;
}

static void a_text_too_long_is_told_with_the_numbers(void **state)
{
    (void)state;
    char *text = long_text(500);
    shoal_err err = {0};
    shoal_model *m = open_model(DATA "bert-intent");
    shoal_classification c = {.n_labels = 96};
    assert_int_equal(shoal_classify(m, text, NULL, &c, &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "502"));
    assert_non_null(strstr(err.message, "128"));
    assert_int_equal(c.n_labels, 96);
    shoal_model_close(m);

    m = open_with(DATA "llama-gqa", &(shoal_options){.n_threads = 1, .n_ctx = 32});
    shoal_generation g = {0};
    assert_int_equal(shoal_generate(m, text, NULL, NULL, NULL, &g, &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, " 32 "));
    assert_null(g.text);
    /* Without max_tokens a reply fills the context and no more. */
    assert_int_equal(shoal_generate(m, "a", NULL, NULL, NULL, &g, &err), 0);
    assert_true(g.n_prompt + g.n_ids <= 32);
    shoal_generation_done(&g);
    shoal_model_close(m);
    free(text);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    shoal_model *m = open_model(DATA "llama-gqa");
    const shoal_generate_options wrong[] = {{.temperature = -1}, {.top_p = 2},  {.top_p = -0.5f},
                                            {.min_p = 3},        {.top_k = -1}, {.repetition_penalty = -2}};
    shoal_generation g = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        shoal_err err = {0};
        int rc = shoal_generate(m, "a", &wrong[i], NULL, NULL, &g, &err);
        if (rc != SHOAL_EINVALID) fail_msg("case %zu: %d", i, rc);
        assert_true(strlen(err.message) > 10);
        assert_null(g.text);
    }
    assert_int_equal(shoal_generate(m, "\xFFoops", NULL, NULL, NULL, &g, NULL), SHOAL_EINVALID);
    assert_int_equal(shoal_generate(m, NULL, NULL, NULL, NULL, &g, NULL), SHOAL_EINVALID);
    assert_null(g.text);
    shoal_model_close(m);
}

static void a_model_that_cannot_be_opened_leaves_nothing(void **state)
{
    (void)state;
    static const char no_digest[] = "0000000000000000000000000000000000000000000000000000000000000000";
    shoal_model *m = NULL;
    shoal_err err = {0};
    assert_int_equal(shoal_model_open(&m, "/no/such/model", NULL, &err), SHOAL_ENOTFOUND);
    assert_int_equal(shoal_model_open(&m, SHOAL_SOURCE_DIR "/CMakeLists.txt", NULL, &err), SHOAL_EFORMAT);
    assert_int_equal(
        shoal_model_open(&m, SHOAL_GGUF_DIR "/llama-gqa.gguf", &(shoal_options){.sha256 = no_digest}, &err),
        SHOAL_EDIGEST);
    assert_non_null(strstr(err.message, "llama-gqa.gguf"));
    assert_null(m);
    shoal_model_close(NULL);
}

/* Fill what follows the header of model.safetensors with bfloat16 NaNs. */
static void poison(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    uint64_t n_header = 0, at = 0;
    assert_int_equal(fread(&n_header, 8, 1, in), 1);
    rewind(in);
    for (int c; (c = getc(in)) != EOF; at++) putc(at < 8 + n_header ? c : at & 1 ? 0x7F : 0xC0, out);
    fclose(in);
    fclose(out);
}

static void damaged_model(const char *name, char folder[64])
{
    static const char *const copied[] = {"config.json", "tokenizer.json"};
    char from[512], to[512], bytes[65536];
    strcpy(folder, "/tmp/shoal_api_XXXXXX");
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < 2; i++) {
        snprintf(from, sizeof from, DATA "%s/%s", name, copied[i]);
        snprintf(to, sizeof to, "%s/%s", folder, copied[i]);
        FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
        assert_true(in && out);
        for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
            assert_int_equal(fwrite(bytes, 1, n, out), n);
        fclose(in);
        fclose(out);
    }
    snprintf(from, sizeof from, DATA "%s/model.safetensors", name);
    snprintf(to, sizeof to, "%s/model.safetensors", folder);
    poison(from, to);
}

static void remove_damaged(const char *folder)
{
    static const char *const files[] = {"config.json", "tokenizer.json", "model.safetensors"};
    char path[512];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void answers_that_are_no_numbers_are_errors(void **state)
{
    (void)state;
    char folder[64];
    shoal_err err = {0};
    damaged_model("llama-gqa", folder);
    shoal_model *m = open_model(folder);
    shoal_generation g = {0};
    assert_int_equal(shoal_generate(m, "a", NULL, NULL, NULL, &g, &err), SHOAL_EINTERNAL);
    assert_non_null(strstr(err.message, "not a finite number"));
    assert_null(g.text);
    shoal_model_close(m);
    remove_damaged(folder);

    damaged_model("bert-intent", folder);
    m = open_model(folder);
    shoal_classification c = {0};
    assert_int_equal(shoal_classify(m, "a", NULL, &c, &err), SHOAL_EINTERNAL);
    assert_null(c.labels);
    shoal_model_close(m);
    remove_damaged(folder);
}

static void a_model_describes_itself(void **state)
{
    (void)state;
    shoal_model *m = open_model(DATA "bert-ner");
    shoal_model_info i = {0};
    assert_int_equal(shoal_model_describe(m, &i, NULL), 0);
    assert_string_equal(i.task, "tag");
    assert_string_equal(i.architecture, "bert");
    assert_int_equal(strlen(i.digest), 64);
    assert_int_equal(i.n_ctx, 128);
    assert_true(i.n_labels > 0 && strlen(i.labels[0]) > 0);
    shoal_model_close(m);
}

/* ---- closing in the middle ------------------------------------------------------------------- */

typedef struct caller {
    shoal_model *m;
    atomic_int *n_begun;
    int rc;
} caller;

static int note_begun(void *user, const char *text, size_t n)
{
    (void)text;
    (void)n;
    caller *c = user;
    if (c->n_begun) atomic_fetch_add(c->n_begun, 1);
    c->n_begun = NULL; /* once a caller */
    return 0;
}

static void *caller_main(void *arg)
{
    caller *c = arg;
    /* A text that is never whole, so that it ends only by being cancelled. */
    c->rc = shoal_generate(c->m, "The quick brown fox", NULL, note_begun, c, NULL, NULL);
    return NULL;
}

static void closing_waits_for_the_calls_it_cancels(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        atomic_int n_begun = 0;
        pthread_t threads[4];
        caller callers[4];
        shoal_model *m = open_model(DATA "llama-gqa");
        for (int i = 0; i < 4; i++) {
            callers[i] = (caller){.m = m, .n_begun = &n_begun};
            assert_int_equal(pthread_create(&threads[i], NULL, caller_main, &callers[i]), 0);
        }
        while (atomic_load(&n_begun) < 4) usleep(200);
        shoal_model_close(m);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            /* Some may have come to the end of their context by then. */
            if (callers[i].rc != 0) assert_int_equal(callers[i].rc, SHOAL_ECANCELLED);
        }
    }
}

/* ---- adapters --------------------------------------------------------------------------------------- */

#define ADAPTERS SHOAL_SOURCE_DIR "/tests/data/adapters/"

static char *say(shoal_model *m, const char *adapter)
{
    shoal_generation g = {0};
    shoal_err err = {0};
    shoal_generate_options o = {.max_tokens = 12, .adapter = adapter};
    if (shoal_generate(m, "hello there", &o, NULL, NULL, &g, &err) != 0) fail_msg("%s", err.message);
    char *text = strdup(g.text);
    shoal_generation_done(&g);
    return text;
}

static void adapters_are_named_by_calls_or_stand_for_all(void **state)
{
    shoal_model *m = open_model(DATA "llama-gqa");
    shoal_model *fixed =
        open_with(DATA "llama-gqa", &(shoal_options){.n_threads = 1, .adapter = ADAPTERS "llama-one"});
    shoal_err err = {0};
    shoal_generate_options o = {.max_tokens = 4, .adapter = "one"};
    assert_int_equal(shoal_generate(m, "hello", &o, NULL, NULL, NULL, &err), SHOAL_ENOTFOUND);
    assert_int_equal(shoal_adapter_load(m, "one", ADAPTERS "llama-one", 1, &err), 0);
    assert_int_equal(shoal_adapter_load(m, "bert", ADAPTERS "bert-intent", 1, &err), SHOAL_EFORMAT);
    char *plain = say(m, NULL), *one = say(m, "one"), *always = say(fixed, NULL);
    assert_string_not_equal(plain, one);
    assert_string_equal(one, always);
    assert_int_equal(shoal_adapter_unload(m, "one", &err), 0);
    assert_int_equal(shoal_adapter_unload(m, "one", &err), SHOAL_ENOTFOUND);
    free(plain);
    free(one);
    free(always);
    shoal_model_close(m);
    shoal_model_close(fixed);
    assert_int_equal(shoal_model_open(&m, DATA "llama-gqa", &(shoal_options){.adapter = "/nowhere"}, &err),
                     SHOAL_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_are_named_by_calls_or_stand_for_all),
        cmocka_unit_test(generation_is_the_same_in_a_crowd),
        cmocka_unit_test(classification_is_the_same_in_a_crowd),
        cmocka_unit_test(tagging_is_the_same_in_a_crowd),
        cmocka_unit_test(embeddings_are_the_same_in_a_crowd),
        cmocka_unit_test(ranks_are_the_pairs_scores),
        cmocka_unit_test(pieces_add_up_to_the_text),
        cmocka_unit_test(a_callback_stops_the_reply),
        cmocka_unit_test(a_stop_string_is_no_part_of_the_reply),
        cmocka_unit_test(a_schema_binds_the_reply),
        cmocka_unit_test(a_conversation_is_answered),
        cmocka_unit_test(a_wrong_task_is_named),
        cmocka_unit_test(a_text_too_long_is_told_with_the_numbers),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(a_model_that_cannot_be_opened_leaves_nothing),
        cmocka_unit_test(answers_that_are_no_numbers_are_errors),
        cmocka_unit_test(a_model_describes_itself),
        cmocka_unit_test(closing_waits_for_the_calls_it_cancels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
