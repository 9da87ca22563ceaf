/* Whether an answer is whole and the same, where silences are, and what a run amounts to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lab/judge.h"
#include "lab/report.h"

#define EVENT(json) "data: " json "\n\n"
#define DONE        "data: [DONE]\n\n"
#define TEXT(t) \
    EVENT("{\"id\":\"a\",\"created\":1,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" t "\"}}]}")
#define END EVENT("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}")

static const char *canon(buf *b, const char *body, bool stream)
{
    char why[120] = "";
    buf_clear(b);
    return judge_canon(b, body, strlen(body), stream, why, sizeof why) == 0 ? b->data : NULL;
}

static void same(const char *x, const char *y, bool stream, bool wanted)
{
    buf a = {0}, b = {0};
    const char *p = canon(&a, x, stream), *q = canon(&b, y, stream);
    if (!p || !q || (strcmp(p, q) == 0) != wanted)
        fail_msg("%s\nand\n%s\n(%s and %s) should %sbe the same", x, y, p, q, wanted ? "" : "not ");
    buf_done(&a);
    buf_done(&b);
}

static void judge_takes_pieces_of_any_length_for_the_same(void **state)
{
    same(TEXT("hello") END DONE, TEXT("he") TEXT("ll") ": a comment\n\n" TEXT("o") END DONE, true, true);
    same(TEXT("hello") END DONE, TEXT("hel") TEXT("o") END DONE, true, false); /* a lost one */
    same(TEXT("hello") END DONE, TEXT("hel") TEXT("lo") TEXT("lo") END DONE, true,
         false);                                                   /* a repeated one */
    same(TEXT("hello") END DONE, TEXT("hello") DONE, true, false); /* why did it end? */
    same(EVENT("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}")
             EVENT("{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}}]}") DONE,
         EVENT("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ab\"}}]}") DONE, true, false);
    same(EVENT("{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\","
               "\"function\":{\"arguments\":\"{1\"}}]}}]}")
             EVENT("{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,"
                   "\"function\":{\"arguments\":\"2}\"}}]}}]}") DONE,
         EVENT("{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"y\","
               "\"function\":{\"arguments\":\"{12}\"}}]}}]}") DONE,
         true, true);
    same(EVENT("{\"usage\":{\"completion_tokens\":5}}") DONE,
         EVENT("{\"usage\":{\"completion_tokens\":6}}") DONE, true, false);
}

static void judge_leaves_out_what_may_differ_and_nothing_else(void **state)
{
    same(
        "{\"usage\":{\"completion_tokens\":5,\"completion_tokens_details\":{\"accepted_prediction_tokens\":3,"
        "\"rejected_prediction_tokens\":1}}}",
        "{\"usage\":{\"completion_tokens\":5}}", false, true);
    same("{\"usage\":{\"completion_tokens_details\":{\"reasoning_tokens\":3}}}",
         "{\"usage\":{\"completion_tokens_details\":{\"reasoning_tokens\":4}}}", false, false);
    same("{\"id\":\"1\",\"ms\":4.1,\"trace\":[{\"ms\":1,\"at_ms\":0.2,\"queue_ms\":0.1,\"prefill_ms\":1,"
         "\"decode_ms\":2,\"replica\":\"m/0\",\"label\":\"a\"}]}",
         "{\"id\":\"2\",\"ms\":9,\"trace\":[{\"label\":\"a\",\"ms\":2,\"replica\":\"m/1\"}]}", false, true);
    same("{\"trace\":[{\"label\":\"a\"}]}", "{\"trace\":[{\"label\":\"b\"}]}", false, false);
    same("{\"tool_call\":{\"id\":\"light\"}}", "{\"tool_call\":{\"id\":\"lock\"}}", false, false);
    same("{\"data\":[{\"embedding\":[0.1,0.25]}]}", "{\"data\":[{\"embedding\":[0.1,0.2500001]}]}", false,
         false);
    same("{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\"}]}}]}",
         "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"b\",\"type\":\"function\"}]}}]}", false,
         true);
}

static void judge_knows_what_is_not_whole(void **state)
{
    static const struct {
        const char *body;
        bool stream;
        const char *says;
    } cases[] = {
        {"", true, "without [DONE]"},
        {TEXT("a") END, true, "without [DONE]"},
        {TEXT("a") EVENT("{\"id\":\"b\",\"choices\":[]}") END DONE, true, "another answer"},
        {TEXT("a") DONE TEXT("b"), true, "behind [DONE]"},
        {TEXT("a") DONE DONE, true, "behind [DONE]"},
        {TEXT("a") EVENT("{\"error\":{\"message\":\"worker gone\"}}") DONE, true, "error event: worker gone"},
        {EVENT("{\"choi"), true, "event"},
        {TEXT("a") "data: {\"choi", true, "without [DONE]"},
        {"{\"error\":{\"message\":\"no\"}}", false, "error: no"},
        {"{\"text\":", false, "answer"},
        {"", false, "answer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf b = {0};
        char why[120] = "";
        int rc = judge_canon(&b, cases[i].body, strlen(cases[i].body), cases[i].stream, why, sizeof why);
        if (rc != SHOAL_EPROTOCOL || !strstr(why, cases[i].says)) fail_msg("case %zu: %d \"%s\"", i, rc, why);
        buf_done(&b);
    }
    char where[120];
    judge_difference("{\"a\":\"hello\"}", "{\"a\":\"help\"}", where, sizeof where);
    assert_non_null(strstr(where, "at byte 9"));
}

/* ---- a run of two models' streams around two deaths ---- */

static void report_counts_fates_and_finds_the_gap_at_each_fault(void **state)
{
    static float early[] = {10, 20, 30}, across[] = {10, 80, 90}, other[] = {5, 400, 410}, late[] = {60, 61};
    lab_request requests[] = {
        {.name = "s", .body = "{\"model\": \"m\", \"stream\": true}", .stream = true},
        {.name = "o", .body = "{\"model\":\"other\"}", .stream = true},
        {.name = "u", .body = "{\"model\":\"m\"}"},
    };
    lab_fault faults[] = {{.action = LAB_KILL, .of = "worker"},
                          {.action = LAB_REBOOT},
                          {.action = LAB_KILL, .of = "worker"},
                          {.action = LAB_FILL}};
    lab_scenario s = {.name = "t",
                      .about = "t",
                      .requests = requests,
                      .n_requests = 3,
                      .clients = 1,
                      .faults = faults,
                      .n_faults = 4};
    lab_answer answers[] = {
        {.request = 0, .start_ms = 0, .end_ms = 30, .first_ms = 10, .pieces_ms = early, .n_pieces = 3},
        {.request = 0, .start_ms = 40, .end_ms = 130, .first_ms = 50, .pieces_ms = across, .n_pieces = 3},
        {.request = 1, .start_ms = 40, .end_ms = 450, .first_ms = 45, .pieces_ms = other, .n_pieces = 3},
        {.request = 0, .start_ms = 45, .end_ms = 70, .first_ms = -1, .fate = FATE_LOST},
        {.request = 2, .start_ms = 50, .end_ms = 60, .first_ms = 60, .fate = FATE_DIFFERENT, .attempts = 2},
        {.request = 1, .start_ms = 530, .end_ms = 591, .first_ms = 590, .pieces_ms = late, .n_pieces = 2},
        {.request = 1, .start_ms = 560, .end_ms = 621, .first_ms = 620, .pieces_ms = late, .n_pieces = 2},
    };
    lab_injection injections[] = {
        {.at_ms = 60, .end_ms = -1, .hit = true, .model = "m", .what = "kill worker m"},
        {.fault = 1, .at_ms = 500, .end_ms = 550, .hit = true, .what = "reboot"},
        {.fault = 2, .at_ms = 600, .end_ms = -1, .hit = false, .what = "kill worker: there is none"},
    };
    lab_record r = {
        .scenario = &s, .answers = answers, .n_answers = 7, .injections = injections, .n_injections = 3};
    lab_summary sum;
    shoal_err err;
    record_find_gaps(&r);
    assert_int_equal(injections[0].n_touched, 2); /* the lost one, too; the other model's feel nothing */
    assert_true(injections[0].gap_ms == 70);      /* from 50 to 120 */
    assert_int_equal(injections[1].n_touched, 1); /* which began before it was over, and asks for whatever */
    assert_true(injections[1].gap_ms == 60);
    assert_int_equal(injections[2].n_touched, 0); /* nothing was struck */
    assert_int_equal(report_sum(&sum, &r, &err), 0);
    assert_int_equal(sum.n_requests, 7);
    assert_int_equal(sum.n_answered, 6);
    assert_int_equal(sum.n_lost, 1);
    assert_int_equal(sum.n_different, 1);
    assert_int_equal(sum.n_retried, 1);
    assert_int_equal(sum.n_hit, 2);
    assert_true(sum.gap_max_ms == 70 && sum.gap_p50_ms == 70 && sum.silence_max_ms == 395);
    char *line = NULL;
    size_t n;
    FILE *f = open_memstream(&line, &n);
    report_print_line(f, &sum);
    fclose(f);
    assert_string_equal(line,
                        "{\"requests\":7,\"answered\":6,\"lost\":1,\"different\":1,\"gap_p50_ms\":70.000,"
                        "\"gap_p99_ms\":70.000,\"availability\":0.857143}\n");
    free(line);
    f = open_memstream(&line, &n);
    report_print(f, &r, &sum);
    fclose(f);
    assert_non_null(strstr(line, "  kill worker (1)                 70.0 ms      70.0 ms      70.0 ms\n"));
    assert_non_null(strstr(line, "  reboot (1)                      60.0 ms"));
    assert_null(strstr(line, "fill"));
    free(line);
}

static void states_begin_once_and_end_once(void **state)
{
    lab_record r = {0};
    record_end(&r, 0, STATE_DOWN, 5);
    record_begin(&r, 0, STATE_DOWN, 10);
    record_begin(&r, 0, STATE_DOWN, 11);
    record_begin(&r, 1, STATE_DOWN, 12);
    record_end(&r, 0, STATE_DOWN, 20);
    record_end(&r, 0, STATE_DOWN, 21);
    record_begin(&r, 0, STATE_DOWN, 30);
    assert_int_equal(r.n_spans, 3);
    assert_true(r.spans[0].from_ms == 10 && r.spans[0].to_ms == 20 && r.spans[2].to_ms < 0);
    record_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judge_takes_pieces_of_any_length_for_the_same),
        cmocka_unit_test(judge_leaves_out_what_may_differ_and_nothing_else),
        cmocka_unit_test(judge_knows_what_is_not_whole),
        cmocka_unit_test(report_counts_fates_and_finds_the_gap_at_each_fault),
        cmocka_unit_test(states_begin_once_and_end_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
