/* sim_reply.h: streams of which every worker says the same, and whoever listens knows each word beforehand.
 *
 * A request's text is "SEED N_TOKENS"; its answer is one Started, N_TOKENS letters that follow from the seed,
 * one Done. A worker that goes on with a stream checks that what was said so far is what it would have said.
 *
 * Engines say the same in other letters: their tokens are `shift` higher.
 *
 *     sim_reply r = {.shift = 0};
 *     sim_reply_read(&r, request);                       // also one that resumes
 *     for (sim_words w; (ev = sim_reply_next(&r, &w));) say(ev);
 *     sim_heard_event(&heard, ev);                       // fails the test when a word is missing or twice */
#ifndef TESTS_CALLS_SIM_REPLY_H
#define TESTS_CALLS_SIM_REPLY_H

#include <stdio.h>

#include "../../text_bytes.h"
#include "shoal/v1/worker.pb-c.h"

typedef struct sim_reply {
    uint32_t seed, n, n_tokens; /* n: tokens said, those before a resumption included */
    int32_t shift;              /* of this engine; the caller's */
    bool begun, done;
} sim_reply;

typedef struct sim_words { /* holds one event */
    Shoal__V1__GenerateEvent event;
    Shoal__V1__Started started;
    Shoal__V1__Delta delta;
    Shoal__V1__Done done;
    int32_t id;
    char text[2];
} sim_words;

/* Token n of the reply of a request. */
static int32_t sim_token(uint32_t seed, uint32_t n)
{
    return (int32_t)((seed * 2654435761u + n * 40503u) % 26);
}

static void sim_reply_read(sim_reply *r, const Shoal__V1__GenerateRequest *req)
{
    *r = (sim_reply){.n = (uint32_t)req->n_resume_ids, .shift = r->shift};
    assert_int_equal(sscanf(req->text, "%u %u", &r->seed, &r->n_tokens), 2);
    for (uint32_t i = 0; i < r->n; i++)
        assert_int_equal(req->resume_ids[i], sim_token(r->seed, i) + r->shift);
    assert_int_equal(req->resume_bytes, r->n);
    assert_true(req->resume_prob_sum == r->n);
    assert_true(req->n_prompt_ids <= 1);
}

/* NULL: all is said. */
static const Shoal__V1__GenerateEvent *sim_reply_next(sim_reply *r, sim_words *w)
{
    if (r->done) return NULL;
    shoal__v1__generate_event__init(&w->event);
    if (!r->begun) {
        shoal__v1__started__init(&w->started);
        w->id = 5;
        w->started.max_tokens = 1000;
        w->started.prompt_ids = &w->id;
        w->started.n_prompt_ids = 1;
        w->event.started = &w->started;
        r->begun = true;
    } else if (r->n < r->n_tokens) {
        shoal__v1__delta__init(&w->delta);
        w->id = sim_token(r->seed, r->n++) + r->shift;
        w->text[0] = (char)('a' + w->id);
        w->text[1] = 0;
        w->delta.ids = &w->id;
        w->delta.n_ids = 1;
        w->delta.text = text_bytes(w->text);
        w->delta.prob_sum = r->n;
        w->event.delta = &w->delta;
    } else {
        shoal__v1__done__init(&w->done);
        w->done.n_generated = r->n;
        w->event.done = &w->done;
        r->done = true;
    }
    return &w->event;
}

typedef struct sim_heard { /* at the other end */
    uint32_t seed, n_tokens, n_said;
    int n_started, n_done;
    int32_t shift; /* of the engine that said the first token */
} sim_heard;

static void sim_heard_event(sim_heard *h, const Shoal__V1__GenerateEvent *ev)
{
    h->n_started += ev->started != NULL;
    h->n_done += ev->done != NULL;
    if (ev->done) assert_int_equal(ev->done->n_generated, h->n_tokens);
    if (!ev->delta) return;
    assert_int_equal(h->n_started, 1);
    assert_int_equal(ev->delta->n_ids, 1);
    if (h->n_said == 0) h->shift = ev->delta->ids[0] - sim_token(h->seed, 0);
    /* none twice, none missing, none of another engine */
    assert_int_equal(ev->delta->ids[0], sim_token(h->seed, h->n_said++) + h->shift);
}

static bool sim_heard_all(const sim_heard *h)
{
    return h->n_said == h->n_tokens && h->n_started == 1 && h->n_done == 1;
}

#endif
