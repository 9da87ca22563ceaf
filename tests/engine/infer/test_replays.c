/* Requests that began on a worker that died: who is computed again first, and that all of them end however
 * often it dies. A death here is an engine of which nothing is heard any more after so many steps. */
#include <semaphore.h>

#include "helper.h"
#include "infer/batch.h"

#define GQA DATA "hf/llama-gqa"

enum { N = 16, N_PROMPT = 120, N_REPLY = 130, STEPS = 12 };

/* ---- the rule ---------------------------------------------------------------------------------------- */

static void few_are_computed_again_at_a_time(void **state)
{
    batch_replay r = {.n_left = 10, .n_deaths = 1};
    assert_true(batch_may_replay(&r, 0, 0));
    assert_true(batch_may_replay(&r, 20, BATCH_REPLAYS - 1));
    assert_false(batch_may_replay(&r, 1, BATCH_REPLAYS));
    r.n_deaths = BATCH_STORM_DEATHS;
    assert_true(batch_may_replay(&r, BATCH_STORM_RUNNING - 1, 0));
    assert_false(batch_may_replay(&r, BATCH_STORM_RUNNING, 0));
    r.waited_ms = BATCH_STORM_WAIT_MS;
    assert_true(batch_may_replay(&r, BATCH_STORM_RUNNING, 0));
    assert_false(batch_may_replay(&r, BATCH_STORM_RUNNING, BATCH_REPLAYS));
}

static void those_nearest_their_end_come_first(void **state)
{
    batch_replay near = {.n_left = 3}, far = {.n_left = 300};
    assert_true(batch_replays_before(&near, &far));
    assert_false(batch_replays_before(&far, &near));
    assert_false(batch_replays_before(&near, &near));
}

/* ---- lives of an engine ------------------------------------------------------------------------------ */

typedef struct stream {
    struct lives *of;
    int32_t ids[N_REPLY];
    size_t n;
    double prob_sum;
    unsigned n_deaths;
    bool done;
    size_t lives; /* in which it got its tokens */
} stream;

typedef struct lives {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    stream all[N];
    int first[N]; /* streams in the order in which they got a token in this life */
    size_t n_first, n_done, steps_left;
    bool dead, holds;
    sem_t stands, go;
    bool seen[N];
} lives;

static void on_stream(void *user, const gen_event *ev)
{
    stream *s = user;
    lives *l = s->of;
    pthread_mutex_lock(&l->lock);
    size_t i = (size_t)(s - l->all);
    if (!l->dead && ev->kind == EVENT_TOKEN) {
        s->ids[s->n++] = ev->id;
        s->prob_sum = ev->prob_sum;
        if (!l->seen[i]) l->first[l->n_first++] = (int)i;
        l->seen[i] = true;
    }
    if (!l->dead && ev->kind == EVENT_DONE) {
        assert_int_equal(ev->status, 0);
        s->done = true;
        l->n_done++;
        pthread_cond_signal(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
}

/* Of the first request of a life, which stands in the way until all others are there. */
static void on_holder(void *user, const gen_event *ev)
{
    lives *l = user;
    if (ev->kind != EVENT_TOKEN) return;
    sem_post(&l->stands);
    sem_wait(&l->go);
}

static void on_burst(void *user, bool begins)
{
    lives *l = user;
    pthread_mutex_lock(&l->lock);
    if (begins && !l->holds && l->steps_left-- == 0) {
        l->dead = true;
        l->steps_left = 0;
        pthread_cond_signal(&l->changed);
    }
    if (!begins) l->holds = false; /* the holder has one token: that was its step */
    pthread_mutex_unlock(&l->lock);
}

static gen_request request_of(const int32_t *prompt, const stream *s, size_t i)
{
    return (gen_request){.ids = prompt,
                         .n_ids = N_PROMPT,
                         .max_tokens = N_REPLY,
                         .ignore_eos = true,
                         .sampling = {.temperature = 1, .seed = i},
                         .resume_ids = s->n ? s->ids : NULL,
                         .n_resume = s->n,
                         .resume_prob_sum = s->prob_sum,
                         .n_deaths = s->n_deaths};
}

/* Until so many steps are over, or all have ended. */
static void live(lives *l, const int32_t *prompt, size_t n_steps)
{
    rig r;
    l->n_first = 0;
    l->dead = false;
    l->holds = true;
    l->steps_left = n_steps;
    memset(l->seen, 0, sizeof l->seen);
    rig_open(&r, GQA, (engine_options){.n_threads = 1, .burst = on_burst, .burst_user = l});
    gen_request hold = {.ids = prompt, .n_ids = 1, .max_tokens = 1, .ignore_eos = true};
    must(engine_generate(r.e, &hold, on_holder, l, NULL, &err));
    sem_wait(&l->stands); /* else the first of the others join its step */
    for (size_t i = 0; i < N; i++) {
        gen_request q = request_of(prompt, &l->all[i], i);
        if (!l->all[i].done) must(engine_generate(r.e, &q, on_stream, &l->all[i], NULL, &err));
    }
    sem_post(&l->go);
    pthread_mutex_lock(&l->lock);
    while (!l->dead && l->n_done < N) pthread_cond_wait(&l->changed, &l->lock);
    l->dead = true; /* what still comes is for nobody */
    pthread_mutex_unlock(&l->lock);
    rig_close(&r);
    for (size_t i = 0; i < N; i++) {
        l->all[i].n_deaths += !l->all[i].done;
        l->all[i].lives += l->seen[i];
    }
}

static void lives_open(lives *l)
{
    memset(l, 0, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    sem_init(&l->stands, 0, 0);
    sem_init(&l->go, 0, 0);
    for (size_t i = 0; i < N; i++) l->all[i].of = l;
}

static void lives_close(lives *l)
{
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    sem_destroy(&l->stands);
    sem_destroy(&l->go);
}

static void make_prompt(int32_t *prompt)
{
    for (size_t i = 0; i < N_PROMPT; i++) prompt[i] = (int32_t)(i * 37 % 500 + 3);
}

/* All that there is to be computed again is more than a life has steps for, so that nobody would ever get
 * anywhere if all were computed again side by side. */
static void all_end_however_often_the_engine_dies(void **state)
{
    int32_t prompt[N_PROMPT];
    lives *plain = malloc(sizeof *plain), *l = malloc(sizeof *l);
    size_t n_lives = 0;
    make_prompt(prompt);
    lives_open(plain);
    live(plain, prompt, SIZE_MAX);
    assert_int_equal(plain->n_done, N);
    lives_open(l);
    for (size_t n_before = SIZE_MAX, n_tokens = 0; l->n_done < N; n_lives++) {
        live(l, prompt, STEPS);
        n_tokens = 0;
        for (size_t i = 0; i < N; i++) n_tokens += l->all[i].n;
        if (n_lives > 2 && n_tokens == n_before) fail_msg("life %zu brought no token", n_lives);
        if (n_lives > N * N_REPLY) fail_msg("%zu of %d ended in %zu lives", l->n_done, N, n_lives);
        n_before = n_tokens;
    }
    for (size_t i = 0; i < N; i++) { /* and say what they would have said */
        assert_int_equal(l->all[i].n, N_REPLY);
        assert_memory_equal(l->all[i].ids, plain->all[i].ids, sizeof l->all[i].ids);
    }
    print_message("%zu lives of %d steps for %d tokens\n", n_lives, STEPS, N * N_REPLY);
    lives_close(plain);
    lives_close(l);
    free(plain);
    free(l);
}

/* Streams of different lengths come back in the order of what is missing, whatever order they come in. */
static void who_is_nearest_the_end_gets_the_first_token(void **state)
{
    int32_t prompt[N_PROMPT];
    lives *plain = malloc(sizeof *plain), *l = malloc(sizeof *l);
    make_prompt(prompt);
    lives_open(plain);
    live(plain, prompt, SIZE_MAX);
    lives_open(l);
    for (size_t i = 0; i < N; i++) {
        stream *s = &l->all[i];
        s->n = (i * 5 % N + 1) * 6; /* all are different */
        memcpy(s->ids, plain->all[i].ids, s->n * sizeof *s->ids);
        s->n_deaths = 1;
    }
    size_t had[N];
    for (size_t i = 0; i < N; i++) had[i] = l->all[i].n;
    live(l, prompt, SIZE_MAX);
    assert_int_equal(l->n_first, N);
    for (size_t k = 1; k < N; k++)
        if (had[l->first[k]] > had[l->first[k - 1]])
            fail_msg("place %zu went to one with %zu tokens, behind one with %zu", k, had[l->first[k]],
                     had[l->first[k - 1]]);
    for (size_t i = 0; i < N; i++)
        assert_memory_equal(l->all[i].ids, plain->all[i].ids, sizeof l->all[i].ids);
    lives_close(plain);
    lives_close(l);
    free(plain);
    free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_are_computed_again_at_a_time),
        cmocka_unit_test(those_nearest_their_end_come_first),
        cmocka_unit_test(all_end_however_often_the_engine_dies),
        cmocka_unit_test(who_is_nearest_the_end_gets_the_first_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
