/* The engine's behaviour: refusals, cancelling, stopping, full cache, seeds. */
#include <semaphore.h>
#include <unistd.h>

#include "helper.h"
#include "infer/batch.h"
#include "infer/engine_impl.h"

#define GQA DATA "hf/llama-gqa"

static const int32_t prompt[] = {1, 592, 655, 333, 411, 467, 478, 330, 526, 517, 474, 411};
#define N_PROMPT (sizeof prompt / sizeof *prompt)

static rig the_rig;

static int open_rig(void **state)
{
    rig_open(&the_rig, GQA, (engine_options){0});
    return 0;
}

static int close_rig(void **state)
{
    rig_close(&the_rig);
    return 0;
}

static void refused(const gen_request *q, int code, const char *words)
{
    shoal_err err = {0};
    uint64_t id;
    assert_int_equal(engine_generate(the_rig.e, q, on_event, NULL, &id, &err), code);
    if (!strstr(err.message, words)) fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

static void bad_requests_are_refused_with_their_cause(void **state)
{
    int32_t bad[] = {1, 99999};
    const char *const empty[] = {""};
    refused(&(gen_request){.ids = prompt, .n_ids = 0}, SHOAL_EINVALID, "empty");
    refused(&(gen_request){.ids = bad, .n_ids = 2}, SHOAL_EINVALID, "99999");
    int32_t full[256] = {0};
    refused(&(gen_request){.ids = full, .n_ids = 256}, SHOAL_ELIMIT, "256");
    refused(&(gen_request){.ids = prompt, .n_ids = N_PROMPT, .sampling = {.temperature = -1}}, SHOAL_EINVALID,
            "temperature");
    refused(&(gen_request){.ids = prompt, .n_ids = N_PROMPT, .n_top = 50}, SHOAL_EINVALID, "50");
    refused(&(gen_request){.ids = prompt, .n_ids = N_PROMPT, .stop = empty, .n_stop = 1}, SHOAL_EINVALID,
            "stop string 0");
    refused(&(gen_request){.ids = prompt,
                           .n_ids = N_PROMPT,
                           .sampling = {.bias = &(logit_bias){.id = -4}, .n_bias = 1}},
            SHOAL_EINVALID, "-4");
    refused(&(gen_request){.ids = prompt, .n_ids = N_PROMPT, .deadline_ns = 1}, SHOAL_EDEADLINE, "deadline");
}

static void a_decoder_does_not_encode(void **state)
{
    shoal_err err = {0};
    int rc =
        engine_encode(the_rig.e, &(enc_request){.ids = prompt, .n_ids = 3}, on_vectors, NULL, NULL, &err);
    assert_int_equal(rc, SHOAL_EINVALID);
}

static void a_reply_ends_at_max_tokens_with_its_timings(void **state)
{
    reply *r = generate(
        the_rig.e, &(gen_request){.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 9, .ignore_eos = true});
    assert_int_equal(r->finish, FINISH_LENGTH);
    assert_int_equal(r->n, 9);
    assert_int_equal(r->timings.n_generated, 9);
    assert_int_equal(r->timings.n_prompt, N_PROMPT);
    assert_true(r->timings.mean_prob > 0 && r->timings.mean_prob <= 1);
    assert_false(r->bad_utf8);
    reply_free(r);
}

static void a_reply_ends_with_the_context(void **state)
{
    reply *r = generate(the_rig.e, &(gen_request){.ids = prompt, .n_ids = N_PROMPT, .ignore_eos = true});
    assert_int_equal(r->finish, FINISH_LENGTH);
    assert_int_equal(r->n, 256 - N_PROMPT);
    reply_free(r);
}

static void the_text_is_the_tokens_decoded(void **state)
{
    for (uint64_t seed = 0; seed < 10; seed++) {
        buf text = {0};
        reply *r = generate(the_rig.e, &(gen_request){.ids = prompt,
                                                      .n_ids = N_PROMPT,
                                                      .max_tokens = 60,
                                                      .ignore_eos = true,
                                                      .sampling = {.temperature = 1.5f, .seed = seed}});
        tokenizer_decode(model_tokenizer(the_rig.m), r->ids, r->n, false, &text);
        assert_int_equal(text.len, r->text_len);
        assert_memory_equal(text.data, r->text, text.len);
        assert_false(r->bad_utf8);
        buf_done(&text);
        reply_free(r);
    }
}

/* As a chat template of the request may end its turns by another token than the model's own does. */
static void a_reply_ends_at_the_token_of_the_request(void **state)
{
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 12};
    reply *whole = generate(the_rig.e, &q);
    assert_int_equal(whole->n, 12);
    size_t at = 5;
    for (size_t i = 0; i < at; i++)
        if (whole->ids[i] == whole->ids[at]) at = i;
    q.end = &whole->ids[at];
    reply *r = generate(the_rig.e, &q);
    assert_int_equal(r->finish, FINISH_STOP);
    assert_int_equal(r->n, at + 1);
    assert_true(r->text_len < whole->text_len);
    reply_free(r);
    reply_free(whole);
}

/* Cut the reply's text at its middle: a stop string across several tokens ends it right there. */
static void a_stop_string_ends_the_text_before_it(void **state)
{
    gen_request q = {.ids = prompt,
                     .n_ids = N_PROMPT,
                     .max_tokens = 60,
                     .ignore_eos = true,
                     .sampling = {.temperature = 1, .seed = 4}};
    reply *whole = generate(the_rig.e, &q);
    size_t at = whole->text_len / 2;
    while (at < whole->text_len && ((unsigned char)whole->text[at] & 0xC0) == 0x80) at++;
    size_t end = at + 9;
    while (end < whole->text_len && ((unsigned char)whole->text[end] & 0xC0) == 0x80) end++;
    char stop[64] = {0};
    memcpy(stop, whole->text + at, end - at);
    const char *stops[] = {"never in the text \xe2\x82\xac", stop};
    q.stop = stops;
    q.n_stop = 2;
    reply *cut = generate(the_rig.e, &q);
    size_t first = (size_t)(strstr(whole->text, stop) - whole->text);
    assert_int_equal(cut->finish, FINISH_STOP);
    assert_int_equal(cut->text_len, first);
    assert_memory_equal(cut->text, whole->text, first);
    assert_true(cut->n < whole->n);
    reply_free(whole);
    reply_free(cut);
}

static void seeds_repeat_and_differ(void **state)
{
    gen_request q = {.ids = prompt,
                     .n_ids = N_PROMPT,
                     .max_tokens = 30,
                     .ignore_eos = true,
                     .sampling = {.temperature = 1, .top_k = 50, .top_p = 0.95f, .min_p = 0.01f, .seed = 1}};
    reply *a = generate(the_rig.e, &q), *b = generate(the_rig.e, &q);
    q.sampling.seed = 2;
    reply *c = generate(the_rig.e, &q);
    assert_memory_equal(a->ids, b->ids, 30 * sizeof(int32_t));
    assert_memory_not_equal(a->ids, c->ids, 30 * sizeof(int32_t));
    reply_free(a);
    reply_free(b);
    reply_free(c);
}

static void alternatives_come_sorted_with_the_chosen_first_when_greedy(void **state)
{
    reply *r = generate(the_rig.e, &(gen_request){.ids = prompt,
                                                  .n_ids = N_PROMPT,
                                                  .max_tokens = 3,
                                                  .logprobs = true,
                                                  .n_top = 5,
                                                  .ignore_eos = true});
    assert_int_equal(r->n_top, 5);
    assert_int_equal(r->top[0].id, r->ids[0]);
    assert_true(r->top[0].logprob == r->logprobs[0]);
    for (int i = 1; i < 5; i++) assert_true(r->top[i].logprob <= r->top[i - 1].logprob);
    reply_free(r);
}

static void a_reply_longer_than_the_context_ends_with_it(void **state)
{
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 1000, .ignore_eos = true};
    reply *r = generate(the_rig.e, &q);
    assert_int_equal(r->status, 0);
    assert_int_equal(r->finish, FINISH_LENGTH);
    assert_int_equal(r->n, 256 - N_PROMPT);
    reply_free(r);
}

static void bias_and_penalties_change_the_choice(void **state)
{
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 24, .ignore_eos = true};
    reply *plain = generate(the_rig.e, &q);
    q.sampling.bias = &(logit_bias){.id = 77, .bias = 100};
    q.sampling.n_bias = 1;
    reply *biased = generate(the_rig.e, &q);
    for (size_t i = 0; i < biased->n; i++) assert_int_equal(biased->ids[i], 77);
    q.sampling = (sampling){.frequency_penalty = 2, .presence_penalty = 2};
    reply *fresh = generate(the_rig.e, &q);
    for (size_t i = 0; i < fresh->n; i++) {
        for (size_t k = 0; k < i; k++) assert_int_not_equal(fresh->ids[i], fresh->ids[k]);
    }
    reply_free(plain);
    reply_free(biased);
    reply_free(fresh);
}

static void cancelling_frees_the_place_and_disturbs_nobody(void **state)
{
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 100, .ignore_eos = true};
    reply *ref = generate(the_rig.e, &q);
    reply *stay[4], *go[4];
    for (int i = 0; i < 4; i++) {
        stay[i] = reply_new();
        go[i] = reply_new();
        go[i]->cancel_on = the_rig.e;
        go[i]->cancel_after = (size_t)(5 + i * 3);
        must(reply_start(stay[i], the_rig.e, &q, &err));
        must(reply_start(go[i], the_rig.e, &q, &err));
    }
    for (int i = 0; i < 4; i++) {
        reply_wait(stay[i]);
        reply_wait(go[i]);
        assert_int_equal(go[i]->status, SHOAL_ECANCELLED);
        assert_int_equal(go[i]->finish, FINISH_ERROR);
        assert_int_equal(go[i]->n, go[i]->cancel_after);
        assert_int_equal(stay[i]->n, 100);
        assert_memory_equal(stay[i]->ids, ref->ids, 100 * sizeof(int32_t));
        reply_free(stay[i]);
        reply_free(go[i]);
    }
    engine_stats st;
    engine_get_stats(the_rig.e, &st);
    assert_int_equal(st.n_running, 0);
    assert_int_equal(st.kv_pages_used, 0);
    assert_int_equal(st.n_cancelled, 4);
    reply_free(ref);
}

static void cancelling_what_is_gone_does_nothing(void **state)
{
    engine_stats before, after;
    engine_get_stats(the_rig.e, &before);
    engine_cancel(the_rig.e, 123456);
    engine_get_stats(the_rig.e, &after);
    assert_int_equal(after.n_cancelled, before.n_cancelled);
}

/* One place, so that the second request waits; it is cancelled where it waits. */
static void what_waits_can_be_cancelled(void **state)
{
    rig r;
    rig_open(&r, GQA, (engine_options){.max_batch = 1});
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 200, .ignore_eos = true};
    reply *first = reply_new(), *second = reply_new();
    pthread_mutex_lock(&first->lock); /* the engine waits for it at the first token */
    must(engine_generate(r.e, &q, on_event, first, &first->id, &err));
    must(reply_start(second, r.e, &q, &err));
    engine_cancel(r.e, second->id);
    pthread_mutex_unlock(&first->lock);
    reply_wait(second);
    assert_int_equal(second->status, SHOAL_ECANCELLED);
    assert_int_equal(second->n, 0);
    reply_wait(first);
    assert_int_equal(first->n, 200);
    reply_free(first);
    reply_free(second);
    rig_close(&r);
}

/* n long requests of the given groups, then a short one; all are in the queue before one of them is done. */
static reply *short_beside_long(rig *r, const uint64_t *groups, int n, reply **longs)
{
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 240, .ignore_eos = true};
    reply *quick = reply_new();
    for (int i = 0; i < n; i++) longs[i] = reply_new();
    q.group = groups[0];
    pthread_mutex_lock(&longs[0]->lock); /* the engine waits for it at the first token */
    must(engine_generate(r->e, &q, on_event, longs[0], &longs[0]->id, &err));
    for (int i = 1; i < n; i++) {
        q.group = groups[i];
        must(reply_start(longs[i], r->e, &q, &err));
    }
    q.group = 99;
    q.max_tokens = 8;
    must(reply_start(quick, r->e, &q, &err));
    pthread_mutex_unlock(&longs[0]->lock);
    return quick;
}

static void check_long(const reply *ref, reply *r, const reply *quick)
{
    reply_wait(r);
    assert_int_equal(r->n, 240);
    assert_memory_equal(r->ids, ref->ids, 240 * sizeof(int32_t)); /* whoever left its place lost nothing */
    assert_true(r->order > quick->order);
}

/* Returns false when they came so slowly that they were due otherwise. */
static bool short_ones_are_served_as_due(void)
{
    enum { BATCH, INTERACTIVE, REALTIME, ALSO_REALTIME, N };
    static const int latency[N] = {[BATCH] = 2, [INTERACTIVE] = 0, [REALTIME] = 1, [ALSO_REALTIME] = 1};
    rig r;
    reply *busy = reply_new(), *quick[N];
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 240, .ignore_eos = true};
    rig_open(&r, GQA, (engine_options){.max_batch = 1});
    pthread_mutex_lock(&busy->lock); /* the engine waits for it at the first token */
    must(engine_generate(r.e, &q, on_event, busy, &busy->id, &err));
    q.max_tokens = 4;
    uint64_t start = clock_ns();
    for (int i = 0; i < N; i++) {
        quick[i] = reply_new();
        q.latency = latency[i];
        q.group = 50 + (uint64_t)i;
        must(reply_start(quick[i], r.e, &q, &err));
    }
    bool soon = clock_ms_since(start) < 500; /* their patience differs by more */
    pthread_mutex_unlock(&busy->lock);
    for (int i = 0; i < N; i++) reply_wait(quick[i]);
    assert_true(quick[REALTIME]->order < quick[ALSO_REALTIME]->order);
    if (soon) assert_true(quick[ALSO_REALTIME]->order < quick[INTERACTIVE]->order);
    if (soon) assert_true(quick[INTERACTIVE]->order < quick[BATCH]->order);
    reply_wait(busy);
    for (int i = 0; i < N; i++) reply_free(quick[i]);
    reply_free(busy);
    rig_close(&r);
    return soon;
}

/* Short requests that wait behind a long one are served as they are due, not as they came. */
static void who_is_due_first_is_served_first(void **state)
{
    while (!short_ones_are_served_as_due()) {
    }
}

static void one_request_of_many_choices_leaves_room_for_others(void **state)
{
    static const uint64_t groups[] = {7, 7, 7, 7, 7, 7};
    rig r;
    reply *longs[6];
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 240, .ignore_eos = true};
    reply *ref = generate(the_rig.e, &q);
    rig_open(&r, GQA, (engine_options){.max_batch = 3});
    reply *quick = short_beside_long(&r, groups, 6, longs);
    reply_wait(quick);
    for (int i = 0; i < 6; i++) {
        check_long(ref, longs[i], quick);
        reply_free(longs[i]);
    }
    reply_free(quick);
    reply_free(ref);
    rig_close(&r);
}

static void long_requests_take_turns_with_short_ones(void **state)
{
    static const uint64_t groups[] = {0, 0, 0, 0};
    rig r;
    reply *longs[4];
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 240, .ignore_eos = true};
    reply *ref = generate(the_rig.e, &q);
    rig_open(&r, GQA, (engine_options){.max_batch = 2});
    reply *quick = short_beside_long(&r, groups, 4, longs);
    reply_wait(quick);
    for (int i = 0; i < 4; i++) {
        check_long(ref, longs[i], quick);
        reply_free(longs[i]);
    }
    reply_free(quick);
    reply_free(ref);
    rig_close(&r);
}

/* One place: who rests does not keep it, and goes on where it was. */
static void a_paused_request_leaves_its_place_and_loses_nothing(void **state)
{
    rig r;
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 200, .ignore_eos = true};
    reply *ref = generate(the_rig.e, &q), *slow = reply_new(), *other = reply_new(), *late = reply_new();
    rig_open(&r, GQA, (engine_options){.max_batch = 1});
    must(reply_start(slow, r.e, &q, &err));
    engine_pause(r.e, slow->id, true);
    must(reply_start(other, r.e, &q, &err));
    reply_wait(other);
    shoal_err passed;
    do q.deadline_ns = clock_ns() + 400000000u;
    while (reply_start(late, r.e, &q, &passed) == SHOAL_EDEADLINE);
    engine_pause(r.e, late->id, true);
    reply_wait(late); /* its deadline goes on while it rests */
    engine_pause(r.e, slow->id, false);
    reply_wait(slow);
    assert_int_equal(slow->n, 200);
    assert_memory_equal(slow->ids, ref->ids, 200 * sizeof(int32_t));
    reply_free(slow);
    reply_free(other);
    reply_free(late);
    reply_free(ref);
    rig_close(&r);
}

static void places_are_taken_from_the_most_crowded_group(void **state)
{
    batch_slot p[] = {{.group = 1, .n_stint = 3},
                       {.group = 2, .n_stint = 9},
                       {.group = 2, .n_stint = 5, .fixed = true},
                       {.group = 2, .n_stint = 7},
                       {.group = 3, .n_stint = 90}};
    assert_int_equal(batch_slots_of(p, 5, 2), 3);
    assert_int_equal(batch_victim(p, 5, 1), 1); /* at once: 1 has one place, 2 has three */
    assert_int_equal(batch_victim(p, 5, 9), 1);
    assert_int_equal(batch_victim(p, 5, 2), 5); /* not from those with less, and not from itself */
    p[1].group = p[3].group = 4;
    assert_int_equal(batch_victim(p, 5, 3), 5); /* one more is within the stint */
    assert_int_equal(batch_victim(p, 5, 9), 1);
    p[1].group = 5;
    assert_int_equal(batch_victim(p, 5, 9), 4); /* everybody has one: whoever had its stint */
    p[4].n_stint = BATCH_STINT - 1;
    assert_int_equal(batch_victim(p, 5, 9), 5);
}

static void a_full_queue_refuses_and_the_rest_is_served(void **state)
{
    enum { N = 12 };
    rig r;
    rig_open(&r, GQA, (engine_options){.max_batch = 1, .max_queue = 3});
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 200, .ignore_eos = true};
    reply *all[N];
    int n_refused = 0;
    for (int i = 0; i < N; i++) {
        shoal_err err = {0};
        all[i] = reply_new();
        int rc = reply_start(all[i], r.e, &q, &err);
        if (rc == 0) continue;
        assert_int_equal(rc, SHOAL_EFULL);
        reply_free(all[i]);
        all[i] = NULL;
        n_refused++;
    }
    for (int i = 0; i < N; i++) {
        if (!all[i]) continue;
        reply_wait(all[i]);
        assert_int_equal(all[i]->n, 200);
        reply_free(all[i]);
    }
    assert_true(n_refused > 0);
    rig_close(&r);
}

static void a_missed_deadline_ends_the_reply(void **state)
{
    rig r;
    rig_open(&r, GQA, (engine_options){.max_batch = 1});
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 240, .ignore_eos = true};
    reply *busy[4], *late = reply_new();
    for (int i = 0; i < 4; i++) {
        busy[i] = reply_new();
        must(reply_start(busy[i], r.e, &q, &err));
    }
    q.deadline_ns = clock_ns() + 500000; /* passes while it waits behind four others */
    shoal_err err = {0};
    int rc = reply_start(late, r.e, &q, &err);
    if (rc == 0) {
        reply_wait(late);
        assert_int_equal(late->status, SHOAL_EDEADLINE);
    } else {
        assert_int_equal(rc, SHOAL_EDEADLINE);
    }
    for (int i = 0; i < 4; i++) {
        reply_wait(busy[i]);
        assert_int_equal(busy[i]->n, 240);
        reply_free(busy[i]);
    }
    reply_free(late);
    rig_close(&r);
}

/* The measured speed says that 240 tokens take longer than that. It may be wrong: with nobody else there the
 * request is tried. (A machine that is busy may let the time pass before it is even asked, hence twenty.) */
static void an_idle_engine_refuses_no_deadline_ahead(void **state)
{
    int32_t ids[240];
    int n_accepted = 0;
    for (size_t i = 0; i < 240; i++) ids[i] = prompt[i % N_PROMPT];
    gen_request q = {.ids = ids, .n_ids = 240, .max_tokens = 1, .ignore_eos = true};
    rig r;
    rig_open(&r, GQA, (engine_options){.n_threads = 1});
    for (int i = 0; i < 3; i++) {
        ids[0] = prompt[i]; /* so that the cache knows nothing of it */
        reply_free(generate(r.e, &q));
    }
    for (int i = 0; i < 20; i++) {
        reply *late = reply_new();
        shoal_err err;
        q.deadline_ns = clock_ns() + 100000;
        int rc = reply_start(late, r.e, &q, &err);
        if (rc == 0) reply_wait(late);
        n_accepted += rc == 0;
        assert_true(rc == 0 || rc == SHOAL_EDEADLINE);
        reply_free(late);
    }
    assert_true(n_accepted > 0);
    rig_close(&r);
}

/* A reply whose engine stands still after the first token until it is let go. */
typedef struct held_reply {
    reply *reply;
    sem_t stands, go;
} held_reply;

static void hold_first(void *user, const gen_event *ev)
{
    held_reply *h = user;
    on_event(h->reply, ev);
    if (ev->kind != EVENT_TOKEN || h->reply->n != 1) return;
    sem_post(&h->stands);
    sem_wait(&h->go);
}

/* Starts a reply whose deadline is as near as the engine takes it: on a busy machine the first steps have taught it
 * that its tokens take long. */
static void start_with_deadline(reply *to, engine *e, gen_request *q)
{
    shoal_err why = {0};
    for (uint64_t ms = 300;; ms *= 2) {
        q->deadline_ns = clock_ns() + ms * 1000000;
        int rc = reply_start(to, e, q, &why);
        if (rc == 0) return;
        if (rc != SHOAL_EDEADLINE || ms > 60000) fail_msg("%s", why.message);
    }
}

/* The engine's thread stands in the first token of a reply; what waits behind it is cancelled, or late. */
static void what_is_cancelled_leaves_the_queue_at_once(void **state)
{
    enum { N = 3 };
    rig r;
    engine_stats s;
    held_reply busy = {.reply = reply_new()};
    reply *waits[N], *next = reply_new(), *last = reply_new();
    sem_init(&busy.stands, 0, 0);
    sem_init(&busy.go, 0, 0);
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 20, .ignore_eos = true}, soon = q;
    rig_open(&r, GQA, (engine_options){.max_batch = 1, .max_queue = N});
    must(engine_generate(r.e, &q, hold_first, &busy, NULL, &err));
    sem_wait(&busy.stands);
    for (int i = 0; i < N; i++) {
        waits[i] = reply_new();
        if (i == 1)
            start_with_deadline(waits[i], r.e, &soon);
        else
            must(reply_start(waits[i], r.e, &q, &err));
    }
    while (clock_ns() < soon.deadline_ns) usleep(1000);
    engine_cancel(r.e, waits[0]->id);
    engine_get_stats(r.e, &s);
    assert_int_equal(s.n_waiting, N - 1);
    assert_true(s.queue_ms > 0);
    must(reply_start(next, r.e, &q, &err)); /* in the place of what was cancelled, */
    must(reply_start(last, r.e, &q, &err)); /* and of what is late */
    engine_cancel(r.e, waits[0]->id);       /* it is in no list any more */
    sem_post(&busy.go);
    reply_wait(busy.reply);
    for (int i = 0; i < N; i++) reply_wait(waits[i]);
    reply_wait(next);
    reply_wait(last);
    assert_int_equal(waits[0]->status, SHOAL_ECANCELLED);
    assert_int_equal(waits[1]->status, SHOAL_EDEADLINE);
    assert_int_equal(waits[2]->n, 20);
    assert_int_equal(next->n, 20);
    assert_int_equal(last->n, 20);
    for (int i = 0; i < N; i++) reply_free(waits[i]);
    reply_free(busy.reply);
    reply_free(next);
    reply_free(last);
    sem_destroy(&busy.stands);
    sem_destroy(&busy.go);
    rig_close(&r);
}

/* Learnt from 24 tokens that took 24 s: what 200 take is not known, but they take no less than 24 do. Returns
 * false when it asked too late: once a second anybody is tried. */
static bool refuses_what_is_certain_alone(void)
{
    int32_t ids[200];
    rig r;
    shoal_err why;
    held_reply busy = {.reply = reply_new()};
    reply *large = reply_new(), *late = reply_new();
    sem_init(&busy.stands, 0, 0);
    sem_init(&busy.go, 0, 0);
    for (size_t i = 0; i < 200; i++) ids[i] = prompt[i % N_PROMPT];
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 240, .ignore_eos = true};
    rig_open(&r, GQA, (engine_options){.n_threads = 1, .max_batch = 1});
    must(engine_generate(r.e, &q, hold_first, &busy, NULL, &err));
    sem_wait(&busy.stands);
    learnt_cost *c = &r.e->stats.prefill;
    atomic_store(&c->fixed_ms, 0);
    atomic_store(&c->unit_ms, 1000);
    atomic_store(&c->reach, 24);
    atomic_store(&r.e->stats.fresh_share, 1);
    q = (gen_request){.ids = ids, .n_ids = 200, .max_tokens = 1, .ignore_eos = true};
    uint64_t start = r.e->accepted_ns = clock_ns();
    q.deadline_ns = start + 10000000000u;
    int rc = reply_start(late, r.e, &q, &why);
    bool soon = clock_ms_since(start) < 500;
    if (soon) assert_int_equal(rc, SHOAL_EDEADLINE);
    q.deadline_ns = clock_ns() + 60000000000u;
    must(reply_start(large, r.e, &q, &err));
    sem_post(&busy.go);
    reply_wait(busy.reply);
    if (rc == 0) reply_wait(late);
    reply_wait(large);
    assert_int_equal(large->n, 1);
    reply_free(busy.reply);
    reply_free(large);
    reply_free(late);
    sem_destroy(&busy.stands);
    sem_destroy(&busy.go);
    rig_close(&r);
    return soon;
}

static void a_deadline_is_refused_for_what_is_certain_alone(void **state)
{
    while (!refuses_what_is_certain_alone()) {
    }
}

static void closing_cancels_everything(void **state)
{
    rig r;
    reply *all[6];
    rig_open(&r, GQA, (engine_options){.max_batch = 2});
    gen_request q = {.ids = prompt, .n_ids = N_PROMPT, .max_tokens = 240, .ignore_eos = true};
    for (int i = 0; i < 6; i++) all[i] = reply_new();
    pthread_mutex_lock(&all[0]->lock); /* the engine waits for it at the first token */
    must(engine_generate(r.e, &q, on_event, all[0], &all[0]->id, &err));
    for (int i = 1; i < 6; i++) must(reply_start(all[i], r.e, &q, &err));
    engine_pause(r.e, all[1]->id, true); /* so that one is there when the engine ends */
    pthread_mutex_unlock(&all[0]->lock);
    rig_close(&r);
    int n_cancelled = 0;
    for (int i = 0; i < 6; i++) {
        assert_true(all[i]->done);
        n_cancelled += all[i]->status == SHOAL_ECANCELLED;
        reply_free(all[i]);
    }
    assert_true(n_cancelled > 0);
}

/* A ceiling under one context: the context shrinks to it, and what can never fit is refused. */
static void a_request_over_the_cache_is_refused_with_numbers(void **state)
{
    rig r;
    shoal_err err = {0};
    rig_open(&r, GQA, (engine_options){.kv_bytes = 3 * 2 * 2 * 16 * 16 * 4 * 4});
    assert_int_equal(engine_ctx(r.e), 64);
    int32_t long_ids[64] = {0};
    gen_request q = {.ids = long_ids, .n_ids = 64};
    assert_int_equal(engine_generate(r.e, &q, on_event, NULL, NULL, &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "64"));
    q.ids = prompt;
    q.n_ids = N_PROMPT;
    q.max_tokens = 52;
    q.ignore_eos = true;
    reply *fits = generate(r.e, &q);
    assert_int_equal(fits->n, 52);
    reply_free(fits);
    rig_close(&r);
}

static void json_constrained_replies_parse(void **state)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        const char *schema = "{\"type\":\"object\",\"properties\":{\"on\":{\"type\":\"boolean\"},"
                             "\"room\":{\"enum\":[\"den\",\"kitchen\"]}},\"required\":[\"on\",\"room\"]}";
        grammar_spec form = {.kind = GRAMMAR_JSON_SCHEMA, .schema = schema};
        reply *r = generate(the_rig.e, &(gen_request){.ids = prompt,
                                                      .n_ids = N_PROMPT,
                                                      .max_tokens = 200,
                                                      .form = &form,
                                                      .sampling = {.temperature = 1, .seed = seed}});
        json_t *v = NULL;
        assert_int_equal(r->status, 0);
        if (r->finish == FINISH_STOP) {
            must(json_parse(&v, r->text, r->text_len, "reply", &err));
            assert_true(json_is_boolean(json_object_get(v, "on")));
        }
        json_decref(v);
        reply_free(r);
    }
}

/* The bias makes the model open brackets for ever, which the schema allows: an error, not a "stop". */
/* A reply of opening brackets, as far as the schema lets it. */
static reply *open_brackets(const char *schema)
{
    grammar_spec form = {.kind = GRAMMAR_JSON_SCHEMA, .schema = schema};
    const tokenizer *t = model_tokenizer(the_rig.m);
    encoding bracket = {0};
    must(tokenizer_encode(t, "[", 1, NULL, 0, 0, 0, &bracket, &err));
    logit_bias bias = {bracket.ids[bracket.n - 1], 100};
    gen_request q = {
        .ids = prompt, .n_ids = N_PROMPT, .form = &form, .sampling = {.bias = &bias, .n_bias = 1}};
    reply *r = generate(the_rig.e, &q);
    encoding_done(&bracket);
    return r;
}

/* Behind its last bracket comes a text that the context has no room for, so that nothing is closed before. */
static void a_reply_that_nests_too_deeply_ends_with_an_error(void **state)
{
    char schema[4096];
    snprintf(
        schema, sizeof schema,
        "{\"$defs\":{\"a\":{\"type\":\"array\",\"minItems\":1,\"items\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},"
        "{\"const\":\"%03000d\"}]}}},\"$ref\":\"#/$defs/a\"}",
        0);
    reply *r = open_brackets(schema);
    assert_int_equal(r->status, SHOAL_ELIMIT);
    assert_int_equal(r->finish, FINISH_ERROR);
    assert_true(r->n > 60);
    for (size_t i = 0; i < r->text_len; i++) assert_int_equal(r->text[i], '[');
    reply_free(r);
}

static void lists_are_closed_before_the_context_ends(void **state)
{
    reply *r = open_brackets("{\"$defs\":{\"a\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/a\"}}},"
                             "\"$ref\":\"#/$defs/a\"}");
    size_t open = 0, n = 0;
    assert_int_equal(r->finish, FINISH_STOP);
    for (const char *p = r->text; *p; p++) {
        n += *p == '[';
        open += (*p == '[') - (size_t)(*p == ']');
    }
    assert_true(n > 60);
    assert_int_equal(open, 0);
    reply_free(r);
}

/* A context is as long as was asked for, or the engine says why not. */
static void a_context_is_given_or_refused(void **state)
{
    static const struct {
        size_t n_ctx, kv_bytes, want; /* want 0: refused */
        const char *why;
    } cases[] = {{0, 0, 256, ""},
                 {100, 0, 100, ""},
                 {256, 0, 256, ""},
                 {257, 0, 0, "the model was made for 256 tokens, so its context cannot be 257"},
                 {0, 60000, 64, ""},
                 {64, 60000, 64, ""},
                 {200, 60000, 0,
                  "a context of 200 tokens takes 1 MiB of keys and values, and kv_mb allows 64 tokens"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        engine_options o = {.n_threads = 1, .n_ctx = cases[i].n_ctx, .kv_bytes = cases[i].kv_bytes};
        shoal_err err = {0};
        model *m = NULL;
        engine *e = NULL;
        int rc = model_open(&m, GQA, NULL, &err);
        if (rc == 0) rc = engine_new(&e, m, &o, &err);
        if (cases[i].want ? rc != 0 || engine_ctx(e) != cases[i].want
                          : rc == 0 || !strstr(err.message, cases[i].why))
            fail_msg("context %zu, cache %zu: %zu, %s", cases[i].n_ctx, cases[i].kv_bytes,
                     e ? engine_ctx(e) : 0, err.message);
        engine_free(e);
        model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_is_given_or_refused),
        cmocka_unit_test(bad_requests_are_refused_with_their_cause),
        cmocka_unit_test(a_decoder_does_not_encode),
        cmocka_unit_test(a_reply_ends_at_max_tokens_with_its_timings),
        cmocka_unit_test(a_reply_ends_with_the_context),
        cmocka_unit_test(the_text_is_the_tokens_decoded),
        cmocka_unit_test(a_reply_ends_at_the_token_of_the_request),
        cmocka_unit_test(a_stop_string_ends_the_text_before_it),
        cmocka_unit_test(seeds_repeat_and_differ),
        cmocka_unit_test(alternatives_come_sorted_with_the_chosen_first_when_greedy),
        cmocka_unit_test(a_reply_longer_than_the_context_ends_with_it),
        cmocka_unit_test(bias_and_penalties_change_the_choice),
        cmocka_unit_test(cancelling_frees_the_place_and_disturbs_nobody),
        cmocka_unit_test(cancelling_what_is_gone_does_nothing),
        cmocka_unit_test(what_waits_can_be_cancelled),
        cmocka_unit_test(what_is_cancelled_leaves_the_queue_at_once),
        cmocka_unit_test(who_is_due_first_is_served_first),
        cmocka_unit_test(one_request_of_many_choices_leaves_room_for_others),
        cmocka_unit_test(long_requests_take_turns_with_short_ones),
        cmocka_unit_test(a_paused_request_leaves_its_place_and_loses_nothing),
        cmocka_unit_test(places_are_taken_from_the_most_crowded_group),
        cmocka_unit_test(a_full_queue_refuses_and_the_rest_is_served),
        cmocka_unit_test(a_missed_deadline_ends_the_reply),
        cmocka_unit_test(an_idle_engine_refuses_no_deadline_ahead),
        cmocka_unit_test(a_deadline_is_refused_for_what_is_certain_alone),
        cmocka_unit_test(closing_cancels_everything),
        cmocka_unit_test(a_request_over_the_cache_is_refused_with_numbers),
        cmocka_unit_test(json_constrained_replies_parse),
        cmocka_unit_test(a_reply_that_nests_too_deeply_ends_with_an_error),
        cmocka_unit_test(lists_are_closed_before_the_context_ends),
    };
    return cmocka_run_group_tests_name("infer_engine", tests, open_rig, close_rig);
}
