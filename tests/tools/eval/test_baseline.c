/* A run compared with one that was accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h wants the first four. */
#include <cmocka.h>

#include "eval/eval_baseline.h"

/* "a right, b wrong": a run. */
typedef struct run {
    eval_case cases[16];
    eval_result v[16];
    eval_results results;
} run;

static void add(run *r, const char *id, eval_verdict v)
{
    size_t n = r->results.n++;
    r->cases[n].id = id;
    r->v[n] = (eval_result){.c = &r->cases[n], .verdict = v};
    r->results.v = r->v;
}

static void accept(eval_baseline *ret, const run *r)
{
    buf text = {0};
    shoal_err err;
    eval_baseline_put(&r->results, &text);
    assert_false(text.failed);
    assert_int_equal(eval_baseline_parse(ret, text.data, text.len, "b.json", &err), 0);
    buf_done(&text);
}

static void says(const eval_baseline *b, const run *r, const char *want)
{
    eval_comparison c;
    buf line = {0};
    shoal_err err;
    assert_int_equal(eval_compare(&c, b, &r->results, &err), 0);
    eval_comparison_put(&c, "b.json", &line);
    assert_string_equal(line.data, want);
    buf_done(&line);
    eval_comparison_done(&c);
}

static void what_became_worse_is_named(void **state)
{
    run then = {0}, now = {0};
    eval_baseline b;
    add(&then, "a", EVAL_RIGHT);
    add(&then, "b", EVAL_WRONG);
    add(&then, "c", EVAL_SILENT);
    add(&then, "d", EVAL_RIGHT);
    accept(&b, &then);
    says(&b, &then, "none of 4 cases is worse than in b.json (0 better, 0 new, 0 gone)");
    add(&now, "c", EVAL_HARMFUL);
    add(&now, "b", EVAL_RIGHT);
    add(&now, "a", EVAL_SILENT);
    add(&now, "e", EVAL_HARMFUL);
    says(&b, &now,
         "2 of 4 cases are worse than in b.json: c (silent, now harmful), a (right, now silent) (1 better, 1 "
         "new, 1 gone)");
    eval_baseline_done(&b);
}

static void cases_of_one_id_are_compared_in_their_order(void **state)
{
    run then = {0}, now = {0};
    eval_baseline b;
    add(&then, "a", EVAL_RIGHT);
    add(&then, "a", EVAL_WRONG);
    accept(&b, &then);
    add(&now, "a", EVAL_RIGHT);
    add(&now, "a", EVAL_HARMFUL);
    add(&now, "a", EVAL_RIGHT);
    says(&b, &now, "1 of 3 cases is worse than in b.json: a (wrong, now harmful) (0 better, 1 new, 0 gone)");
    eval_baseline_done(&b);
}

static void few_of_many_are_named(void **state)
{
    static const char *const ids[] = {"1", "2", "3", "4", "5", "6", "7"};
    run then = {0}, now = {0};
    eval_baseline b;
    for (size_t i = 0; i < 7; i++) {
        add(&then, ids[i], EVAL_RIGHT);
        add(&now, ids[i], EVAL_WRONG);
    }
    accept(&b, &then);
    says(&b, &now,
         "7 of 7 cases are worse than in b.json: 1 (right, now wrong), 2 (right, now wrong), 3 (right, now "
         "wrong), "
         "4 (right, now wrong), 5 (right, now wrong), and 2 more (0 better, 0 new, 0 gone)");
    eval_baseline_done(&b);
}

static void what_is_no_accepted_run_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"shoal_eval\":2,\"cases\":[]}",
        "{\"shoal_eval\":1,\"cases\":{}}",
        "{\"shoal_eval\":1,\"cases\":[1]}",
        "{\"shoal_eval\":1,\"cases\":[{\"id\":\"a\",\"verdict\":\"fine\"}]}",
        "{\"shoal_eval\":1,\"cases\":[{\"id\":1,\"verdict\":\"right\"}]}",
        "{\"shoal_eval\":1,\"cases\":[",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        eval_baseline b = {0};
        shoal_err err = {0};
        assert_int_equal(eval_baseline_parse(&b, texts[i], strlen(texts[i]), "b.json", &err), SHOAL_EFORMAT);
        assert_ptr_equal(strstr(err.message, "b.json: "), err.message);
        assert_null(b.verdicts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_became_worse_is_named),
        cmocka_unit_test(cases_of_one_id_are_compared_in_their_order),
        cmocka_unit_test(few_of_many_are_named),
        cmocka_unit_test(what_is_no_accepted_run_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
