/* The way of events from the engine's thread to the loop's; under TSan this is its race test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/bridge.h"

enum { N_JOBS = 4, N_TOKENS = 2000 };

typedef struct fake_job {
    bridge_job job; /* first */
    int n_tokens, n_flushes, n_done, last_id;
    char tail[16];
    uv_thread_t engine;
} fake_job;

static void on_token(bridge_job *j, const gen_event *ev)
{
    fake_job *f = (fake_job *)j;
    assert_int_equal(f->n_done, 0);
    if (ev->id < 0) {
        snprintf(f->tail, sizeof f->tail, "%.*s", (int)ev->text_len, ev->text);
        return;
    }
    assert_int_equal(ev->id, f->n_tokens);
    assert_int_equal(ev->text_len, (size_t)ev->id % 7);
    assert_int_equal(ev->n_top, (size_t)ev->id % 3);
    for (size_t i = 0; i < ev->n_top; i++) assert_int_equal(ev->top[i].id, ev->id + (int)i);
    f->last_id = ev->id;
    f->n_tokens++;
}

static void on_flush(bridge_job *j)
{
    ((fake_job *)j)->n_flushes++;
}

static void on_done(bridge_job *j)
{
    ((fake_job *)j)->n_done++;
}

static void run_engine(void *arg)
{
    fake_job *f = arg;
    for (int i = 0; i < N_TOKENS; i++) {
        token_logprob top[2] = {{i, -1}, {i + 1, -2}};
        gen_event ev = {.kind = EVENT_TOKEN,
                        .id = i,
                        .text = "abcdefg",
                        .text_len = (size_t)i % 7,
                        .top = top,
                        .n_top = (size_t)i % 3};
        bridge_event(&f->job, &ev);
    }
    gen_event done = {.kind = EVENT_DONE,
                      .text = "end",
                      .text_len = 3,
                      .finish = FINISH_STOP,
                      .timings = {.n_generated = N_TOKENS}};
    bridge_event(&f->job, &done);
}

static void bridge_keeps_order_and_ends_each_job_once(void **state)
{
    uv_loop_t loop;
    bridge *b = NULL;
    static fake_job jobs[N_JOBS];
    memset(jobs, 0, sizeof jobs);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(bridge_new(&b, &loop, NULL), 0);
    for (int i = 0; i < N_JOBS; i++) {
        jobs[i].job = (bridge_job){.b = b, .on_token = on_token, .on_flush = on_flush, .on_done = on_done};
        assert_int_equal(uv_thread_create(&jobs[i].engine, run_engine, &jobs[i]), 0);
    }
    for (int left = N_JOBS; left > 0;) {
        uv_run(&loop, UV_RUN_ONCE);
        left = 0;
        for (int i = 0; i < N_JOBS; i++) left += jobs[i].n_done == 0;
    }
    for (int i = 0; i < N_JOBS; i++) {
        uv_thread_join(&jobs[i].engine);
        assert_int_equal(jobs[i].n_tokens, N_TOKENS);
        assert_int_equal(jobs[i].n_done, 1);
        assert_in_range(jobs[i].n_flushes, 1, N_TOKENS + 1);
        assert_string_equal(jobs[i].tail, "end");
        assert_int_equal(jobs[i].job.finish, FINISH_STOP);
        assert_int_equal(jobs[i].job.timings.n_generated, N_TOKENS);
    }
    bridge_close(b, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* The loop is woken once a step, behind the last event. */
static void bridge_wakes_the_loop_behind_a_burst(void **state)
{
    uv_loop_t loop;
    bridge *b = NULL;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(bridge_new(&b, &loop, NULL), 0);
    fake_job f = {.job = {.b = b, .on_token = on_token, .on_flush = on_flush, .on_done = on_done}};
    bridge_burst(b, true);
    for (int id = 0; id < 3; id++)
        bridge_event(&f.job, &(gen_event){.kind = EVENT_TOKEN,
                                          .id = id,
                                          .text = "ab",
                                          .text_len = (size_t)id,
                                          .top = (token_logprob[]){{id, -1}, {id + 1, -2}},
                                          .n_top = (size_t)id});
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(f.n_tokens, 0);
    bridge_burst(b, false);
    uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(f.n_tokens, 3);
    assert_int_equal(f.n_flushes, 1);
    bridge_burst(b, true); /* of which nothing comes */
    bridge_burst(b, false);
    bridge_event(&f.job, &(gen_event){.kind = EVENT_DONE, .finish = FINISH_STOP});
    uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(f.n_done, 1);
    bridge_close(b, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void count_events(bridge_job *j, const gen_event *ev)
{
    fake_job *f = (fake_job *)j;
    if (ev->kind == EVENT_PROGRESS) assert_true(ev->n_read == 3 && ev->n_input == 9 && ev->n_cached == 2);
    if (ev->kind == EVENT_RESUMED) assert_memory_equal(ev->text, "begun", ev->text_len);
    f->n_tokens += ev->kind == EVENT_TOKEN;
    f->n_flushes += ev->kind != EVENT_TOKEN;
}

/* What is held back may have been the beginning of a stop string: only a whole reply ends with it. */
static void bridge_tells_no_tail_of_a_reply_that_broke_off(void **state)
{
    uv_loop_t loop;
    bridge *b = NULL;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(bridge_new(&b, &loop, NULL), 0);
    for (int ok = 0; ok < 2; ok++) {
        fake_job f = {.job = {.b = b, .on_token = count_events, .on_done = on_done}};
        gen_event progress = {.kind = EVENT_PROGRESS, .id = -1, .n_read = 3, .n_input = 9, .n_cached = 2};
        bridge_event(&f.job, &progress);
        bridge_event(&f.job, &(gen_event){.kind = EVENT_RESUMED, .id = -1, .text = "begun", .text_len = 5});
        bridge_event(&f.job, &(gen_event){.kind = EVENT_DONE,
                                          .text = "en",
                                          .text_len = 2,
                                          .status = ok ? 0 : SHOAL_ECANCELLED,
                                          .message = ""});
        bridge_deliver(b);
        assert_int_equal(f.n_flushes, 2);
        assert_int_equal(f.n_tokens, ok);
        assert_int_equal(f.n_done, 1);
    }
    bridge_close(b, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void bridge_refuses_a_result_larger_than_its_room(void **state)
{
    uv_loop_t loop;
    bridge *b = NULL;
    float room[4], given[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(bridge_new(&b, &loop, NULL), 0);
    fake_job small = {.job = {.b = b, .on_done = on_done, .values = room, .n_values = 4}};
    fake_job good = small;
    bridge_result(&small.job, &(enc_result){.values = given, .rows = 2, .cols = 4});
    bridge_result(&good.job, &(enc_result){.values = given, .rows = 1, .cols = 4});
    bridge_deliver(b);
    assert_int_equal(small.job.status, SHOAL_EINTERNAL);
    assert_int_equal(small.job.n_values, 0);
    assert_int_equal(good.job.status, 0);
    assert_int_equal(good.job.n_values, 4);
    assert_true(room[3] == 4);
    bridge_close(b, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bridge_keeps_order_and_ends_each_job_once),
        cmocka_unit_test(bridge_wakes_the_loop_behind_a_burst),
        cmocka_unit_test(bridge_tells_no_tail_of_a_reply_that_broke_off),
        cmocka_unit_test(bridge_refuses_a_result_larger_than_its_room),
    };
    return cmocka_run_group_tests_name("bridge", tests, NULL, NULL);
}
