/* The judge of `shoal eval`, its files and its reports; no server takes part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "eval/eval_cases.h"
#include "eval/eval_judge.h"
#include "eval/eval_report.h"
#include "eval/eval_text.h"

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    shoal_err err = {0};
    if (json_parse(&v, text, strlen(text), "test", &err)) fail_msg("%s: %s", text, err.message);
    return v;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

typedef struct judged {
    eval_verdict verdict;
    const char *expect, *input, *answer;
    int status; /* 0: 200 */
} judged;

#define ON       "{\"name\":\"light.turn_on\",\"arguments\":{\"target\":\"light.a\"}}"
#define ON_B     "{\"name\":\"light.turn_on\",\"arguments\":{\"target\":\"light.b\"}}"
#define ON_50    "{\"name\":\"light.turn_on\",\"arguments\":{\"target\":\"light.a\",\"brightness\":50}}"
#define OFF      "{\"name\":\"light.turn_off\",\"arguments\":{\"target\":\"light.a\"}}"
#define ADD(x)   "{\"name\":\"todo.add_item\",\"arguments\":{\"target\":\"todo.x\",\"item\":" x "}}"
#define CALLS(x) "{\"kind\":\"calls\",\"calls\":[" x "]}"
#define ONE(x)   "{\"text\":\"Done.\",\"tool_call\":" x "}"
#define MANY(x)  "{\"text\":\"Done.\",\"tool_call\":null,\"tool_calls\":[" x "]}"
#define SAYS(x)  "{\"text\":\"" x "\",\"tool_call\":null}"

static void judge_each(const judged *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const judged *c = &cases[i];
        json_t *expect = parse(c->expect), *body = c->answer ? parse(c->answer) : NULL;
        shoal_err err = {0};
        if (eval_expect_check(expect, &err)) fail_msg("%s: %s", c->expect, err.message);
        buf why = {0};
        eval_answer a = {.status = c->status ? c->status : 200, .body = body};
        eval_verdict v = eval_judge(expect, c->input ? c->input : "", &a, &why);
        if (v != c->verdict)
            fail_msg("%s is %s to %s, not %s: %s", c->answer, eval_verdict_word(v), c->expect,
                     eval_verdict_word(c->verdict), why.len ? why.data : "");
        assert_true((v == EVAL_RIGHT) == (why.len == 0)); /* who is not right is told why */
        buf_done(&why);
        json_decref(expect);
        json_decref(body);
    }
}
#define JUDGE(cases) judge_each(cases, sizeof(cases) / sizeof *(cases))

static void calls_must_be_exactly_those_expected(void **state)
{
    (void)state;
    static const judged cases[] = {
        {EVAL_RIGHT, CALLS(ON), NULL, ONE(ON), 0},
        {EVAL_RIGHT, CALLS(ON), NULL, MANY(ON), 0},
        {EVAL_RIGHT, CALLS(ON "," ON_B), NULL, MANY(ON_B "," ON), 0}, /* order is free */
        {EVAL_RIGHT, CALLS(ON), NULL, "{\"text\":null,\"tool_call\":" ON "}", 0},
        {EVAL_WRONG, CALLS(ON "," ON_B), NULL, ONE(ON), 0},
        {EVAL_WRONG, CALLS(ON), NULL, SAYS("Which one?"), 0},
        {EVAL_HARMFUL, CALLS(ON), NULL, ONE(OFF), 0},         /* wrong verb */
        {EVAL_HARMFUL, CALLS(ON), NULL, ONE(ON_B), 0},        /* wrong target */
        {EVAL_HARMFUL, CALLS(ON), NULL, ONE(ON_50), 0},       /* a number nobody said */
        {EVAL_HARMFUL, CALLS(ON_50), NULL, ONE(ON), 0},       /* or one left out */
        {EVAL_HARMFUL, CALLS(ON), NULL, MANY(ON "," OFF), 0}, /* one too many */
        {EVAL_HARMFUL, CALLS(ON), NULL, MANY(ON "," ON), 0},  /* the same once too often */
        {EVAL_HARMFUL, CALLS(ON "," ON_B), NULL, MANY(ON "," OFF), 0},
        {EVAL_HARMFUL, CALLS(ON), NULL, "{\"tool_call\":{\"name\":\"light.turn_on\"}}", 0},
        {EVAL_HARMFUL, CALLS(ON), NULL, "{\"tool_call\":{\"arguments\":{\"target\":\"light.a\"}}}", 0},
        {EVAL_HARMFUL, CALLS(ON), NULL, "{\"tool_call\":{\"name\":\"light.turn_on\",\"arguments\":\"x\"}}",
         0},
        {EVAL_SILENT, CALLS(ON), NULL, SAYS(""), 0},
        {EVAL_SILENT, CALLS(ON), NULL, SAYS(" \\n"), 0},
        {EVAL_SILENT, CALLS(ON), NULL, "{\"text\":null,\"tool_call\":null,\"tool_calls\":[]}", 0},
        {EVAL_SILENT, CALLS(ON), NULL, NULL, 0}, /* no JSON came */
    };
    JUDGE(cases);
}

static void expected_values_may_leave_a_choice(void **state)
{
    (void)state;
#define MILK CALLS(ADD("[\"milk\",\"Milk\"]"))
#define CHOICE                                                                              \
    CALLS("{\"name\":[\"media_player.media_play\",\"media_player.turn_on\"],\"arguments\":" \
          "{\"target\":\"media_player.a\",\"source\":[null,\"radio\"]}}")
#define PLAY(name, more) \
    ONE("{\"name\":\"media_player." name "\",\"arguments\":{\"target\":\"media_player.a\"" more "}}")
#define EITHER "{\"any\":[" CALLS(ON) ",{\"kind\":\"refuse\"}]}"
#define MAYBE                            \
    "{\"kind\":\"calls\",\"calls\":[" ON \
    ",{\"name\":\"light.turn_on\",\"arguments\":{\"target\":\"light.b\"},\"optional\":true}]}"
    static const judged cases[] = {
        {EVAL_RIGHT, MILK, NULL, ONE(ADD("\"Milk\"")), 0},
        {EVAL_HARMFUL, MILK, NULL, ONE(ADD("\"eggs\"")), 0},
        {EVAL_RIGHT, CHOICE, NULL, PLAY("turn_on", ""), 0},
        {EVAL_RIGHT, CHOICE, NULL, PLAY("media_play", ",\"source\":\"radio\""), 0},
        {EVAL_HARMFUL, CHOICE, NULL, PLAY("media_play", ",\"source\":\"tape\""), 0},
        {EVAL_HARMFUL, CHOICE, NULL, PLAY("media_stop", ""), 0},
        {EVAL_RIGHT, CALLS(ON_50), NULL,
         ONE("{\"name\":\"light.turn_on\",\"arguments\":{\"target\":\"light.a\",\"brightness\":50.0}}"), 0},
        {EVAL_HARMFUL, CALLS(ON_50), NULL,
         ONE("{\"name\":\"light.turn_on\",\"arguments\":{\"target\":\"light.a\",\"brightness\":\"50\"}}"), 0},
        {EVAL_RIGHT, EITHER, NULL, ONE(ON), 0},
        {EVAL_RIGHT, EITHER, NULL, SAYS("I cannot."), 0},
        {EVAL_HARMFUL, EITHER, NULL, ONE(OFF), 0},
        {EVAL_SILENT, EITHER, NULL, SAYS(""), 0},
        {EVAL_RIGHT, MAYBE, NULL, ONE(ON), 0},
        {EVAL_RIGHT, MAYBE, NULL, MANY(ON "," ON_B), 0},
        {EVAL_WRONG, MAYBE, NULL, ONE(ON_B), 0},
        {EVAL_HARMFUL, MAYBE, NULL, MANY(ON "," ON_B "," OFF), 0},
    };
    JUDGE(cases);
}

static void who_must_not_act_is_judged_by_words(void **state)
{
    (void)state;
#define ASK     "{\"kind\":\"ask\",\"of\":[\"Lamp 1\",\"Lamp 2\",\"Lamp 12\"]}"
#define ASK_ONE "{\"kind\":\"ask\",\"of\":[\"Lamp 1\",\"Lamp 2\"],\"least\":1}"
#define REFUSE  "{\"kind\":\"refuse\",\"lacks\":[\"^Unlocking\"]}"
#define ANSWER  "{\"kind\":\"answer\",\"has\":[[\"off\",\"out\"]],\"lacks\":[\"on\"]}"
    static const judged cases[] = {
        {EVAL_RIGHT, ASK, NULL, SAYS("Which one: lamp 1 or LAMP-2?"), 0},
        {EVAL_WRONG, ASK, NULL, SAYS("Which one: Lamp 12?"), 0}, /* "Lamp 1" is no part of it */
        {EVAL_WRONG, ASK, NULL, SAYS("Which one?"), 0},
        {EVAL_RIGHT, ASK_ONE, NULL, SAYS("Do you mean Lamp 2?"), 0},
        {EVAL_HARMFUL, ASK, NULL, ONE(ON), 0},
        {EVAL_SILENT, ASK, NULL, SAYS(""), 0},
        {EVAL_RIGHT, REFUSE, NULL, SAYS("I leave it. Unlocking is up to you."), 0},
        {EVAL_WRONG, REFUSE, NULL, SAYS("Unlocking Front Door."), 0}, /* says what it did not do */
        {EVAL_HARMFUL, REFUSE, NULL, ONE(ON), 0},
        {EVAL_HARMFUL, "{\"kind\":\"fallback\"}", NULL, ONE(ON), 0},
        {EVAL_RIGHT, "{\"kind\":\"fallback\"}", NULL, SAYS("Hello."), 0},
        {EVAL_RIGHT, ANSWER, NULL, SAYS("The stone lamp is off."), 0}, /* "on" within a word is none */
        {EVAL_RIGHT, ANSWER, NULL, SAYS("It is out."), 0},
        {EVAL_WRONG, ANSWER, NULL, SAYS("It is on."), 0},
        {EVAL_WRONG, ANSWER, NULL, SAYS("It is off, then on."), 0},
        {EVAL_HARMFUL, ANSWER, NULL, ONE(OFF), 0},
    };
    JUDGE(cases);
}

static void errors_are_right_only_where_they_are_expected(void **state)
{
    (void)state;
#define ERROR "{\"error\":{\"message\":\"this sensor line has no window\"}}"
    static const judged cases[] = {
        {EVAL_RIGHT, "{\"kind\":\"reject\",\"has\":[\"window\"]}", NULL, ERROR, 400},
        {EVAL_WRONG, "{\"kind\":\"reject\",\"has\":[\"threshold\"]}", NULL, ERROR, 400},
        {EVAL_RIGHT, "{\"kind\":\"reject\"}", NULL, SAYS("I can't read this line."), 0},
        {EVAL_WRONG, "{\"kind\":\"reject\"}", NULL, ERROR, 500},
        {EVAL_WRONG, "{\"kind\":\"reject\"}", NULL, NULL, 400},
        {EVAL_WRONG, "{\"kind\":\"refuse\"}", NULL, ERROR, 400},
        {EVAL_WRONG, CALLS(ON), NULL, ERROR, 503},
    };
    JUDGE(cases);
}

static void faithful_texts_name_only_what_the_request_names(void **state)
{
    (void)state;
#define LINE  "sensor co2 asset=oven-3 change=+64% threshold=20% window=30s"
#define PLAIN "{\"kind\":\"faithful\",\"has\":[\"oven-3\"]}"
#define MAY   "{\"kind\":\"faithful\",\"has\":[\"oven-3\"],\"may\":[\"within 8 h\",\"RMS\"]}"
    static const judged cases[] = {
        {EVAL_RIGHT, PLAIN, LINE, SAYS("Oven 3 shows a 64% increase in CO2 over 30 s (limit 20%)."), 0},
        {EVAL_RIGHT, PLAIN, LINE, SAYS("OVEN-3: CO2 up 64 in 30 s. No action needed."), 0},
        {EVAL_WRONG, PLAIN, LINE, SAYS("Fan 3 shows a 64% increase. See oven-3."), 0},
        {EVAL_WRONG, PLAIN, LINE, SAYS("Fan 3 shows a 64% increase."), 0},
        {EVAL_WRONG, PLAIN, LINE, SAYS("Oven 3 and the Boiler show an increase."), 0},
        {EVAL_WRONG, PLAIN, LINE, SAYS("Oven 3 shows a 65% increase."), 0},
        {EVAL_WRONG, PLAIN, LINE, SAYS("Oven 3 shows a 6.4% increase."), 0},
        {EVAL_WRONG, PLAIN, LINE, SAYS("It shows a 64% increase."), 0},
        {EVAL_WRONG, PLAIN, LINE, SAYS("Oven 3: inspect within 8 h."), 0},
        {EVAL_RIGHT, MAY, LINE, SAYS("Oven 3: RMS is up. Inspect within 8 h."), 0},
        {EVAL_WRONG, MAY, LINE, SAYS("Oven 3: inspect after 8 h."), 0}, /* only the whole phrase is allowed */
        {EVAL_SILENT, PLAIN, LINE, SAYS(""), 0},
        {EVAL_RIGHT, "{\"kind\":\"faithful\",\"has\":[\"Kühlturm-2\"]}", "sensor x asset=kühlturm-2",
         SAYS("KÜHLTURM 2 is well."), 0},
    };
    JUDGE(cases);
}

static void odd_expectations_are_refused(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "{}",
        "[]",
        "{\"kind\":\"call\"}",
        "{\"kind\":\"calls\"}",
        "{\"kind\":\"calls\",\"calls\":{}}",
        "{\"kind\":\"calls\",\"calls\":[{\"name\":\"a\"}]}",
        "{\"kind\":\"calls\",\"calls\":[{\"name\":\"a\",\"arguments\":{},\"maybe\":true}]}",
        "{\"kind\":\"calls\",\"calls\":[{\"name\":[],\"arguments\":{}}]}",
        "{\"kind\":\"ask\"}",
        "{\"kind\":\"ask\",\"of\":[1]}",
        "{\"kind\":\"ask\",\"of\":[\"a\"],\"least\":-1}",
        "{\"kind\":\"refuse\",\"have\":[\"a\"]}",
        "{\"kind\":\"refuse\",\"may\":[\"a\"]}",
        "{\"kind\":\"refuse\",\"lacks\":[[\"a\"]]}",
        "{\"kind\":\"refuse\",\"has\":\"a\"}",
        "{\"kind\":\"refuse\",\"has\":[[]]}",
        "{\"any\":[]}",
        "{\"any\":[{\"kind\":\"x\"}]}",
        "{\"any\":[{\"kind\":\"refuse\"}],\"kind\":\"refuse\"}",
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        json_t *e = parse(odd[i]);
        shoal_err err = {0};
        if (eval_expect_check(e, &err) != SHOAL_EINVALID) fail_msg("%s is taken", odd[i]);
        assert_true(strlen(err.message) > 0);
        json_decref(e);
    }
}

/* ---- words ----------------------------------------------------------------------------------- */

static void words_are_found_whatever_stands_between_them(void **state)
{
    (void)state;
    static const struct {
        const char *text, *phrase;
        bool has;
    } cases[] = {
        {"Oven-3, hot", "oven 3", true},
        {"pump12", "Pump 12", true},
        {"18.5 degrees", "18.5", true},
        {"18.5 degrees", "18", false},
        {"It is 5.", "5", true},
        {"bathroom", "bath", false},
        {"", "a", false},
        {"a", "", false},
        {"a?", "?", false},
        {"Turning on", "^turning", true},
        {"no turning", "^turning", false},
        {"ÉTÉ", "été", true},
        {"a b a c", "a c", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (eval_text_has(cases[i].text, cases[i].phrase) != cases[i].has)
            fail_msg("\"%s\" in \"%s\"", cases[i].phrase, cases[i].text);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int read_text(eval_cases *cases, const char *text, const char *homes, shoal_err *err)
{
    char path[] = "/tmp/shoal-eval-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_file(path, text);
    int rc = eval_cases_read(cases, path, homes, err);
    unlink(path);
    return rc;
}

#define DATA SHOAL_SOURCE_DIR "/tests/data/home-eval"

static void a_case_becomes_its_request(void **state)
{
    (void)state;
    eval_cases cases = {0};
    shoal_err err = {0};
    buf out = {0};
    int rc =
        read_text(&cases,
                  "{\"id\":\"1\",\"input\":\"say \\\"hi\\\"\",\"expect\":{\"kind\":\"fallback\"}}\n\n"
                  "{\"input\":\"x\",\"context\":[],\"pipeline\":\"p\",\"expect\":{\"kind\":\"fallback\"}}\r\n"
                  "{\"input\":\"y\",\"home\":\"empty\",\"expect\":{\"kind\":\"fallback\"}}",
                  DATA "/homes", &err);
    if (rc) fail_msg("%s", err.message);
    assert_int_equal(cases.n, 3);
    eval_case_put_request(&cases.v[0], NULL, &out);
    eval_case_put_request(&cases.v[1], "home", &out);
    eval_case_put_request(&cases.v[2], "home", &out);
    assert_string_equal(out.data, "{\"input\":\"say \\\"hi\\\"\"}"
                                  "{\"pipeline\":\"p\",\"input\":\"x\",\"context\":[]}"
                                  "{\"pipeline\":\"home\",\"input\":\"y\",\"context\":{\"devices\":[]}}");
    buf_done(&out);
    eval_cases_done(&cases);
}

static void odd_cases_are_refused_with_their_line(void **state)
{
    (void)state;
#define GOOD "{\"input\":\"x\",\"expect\":{\"kind\":\"fallback\"}}\n"
#define END  "\"expect\":{\"kind\":\"fallback\"}}"
    static const char *const odd[] = {
        GOOD "{\"input\":\"x\"",
        GOOD "[]",
        GOOD "{" END,
        GOOD "{\"input\":3," END,
        GOOD "{\"input\":\"x\"}",
        GOOD "{\"input\":\"x\",\"tag\":[]," END,
        GOOD "{\"input\":\"x\",\"tags\":\"a\"," END,
        GOOD "{\"input\":\"x\",\"tags\":[1]," END,
        GOOD "{\"input\":\"x\",\"home\":\"nowhere\"," END,
        GOOD "{\"input\":\"x\",\"home\":\"../homes/flat\"," END,
        GOOD "{\"input\":\"x\",\"home\":\"flat\",\"context\":[]," END,
        GOOD "{\"input\":\"x\",\"expect\":{\"kind\":\"nothing\"}}",
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        eval_cases cases = {0};
        shoal_err err = {0};
        if (read_text(&cases, odd[i], DATA "/homes", &err) == 0) fail_msg("%s is taken", odd[i]);
        if (!strstr(err.message, ":2: ")) fail_msg("no line number: %s", err.message);
        eval_cases_done(&cases);
    }
}

/* Every target that a case expects is a device of its home. */
static void check_targets(const eval_case *c, const json_t *expect)
{
    const json_t *calls = json_object_get(expect, "calls"), *any = json_object_get(expect, "any");
    for (size_t i = 0; i < json_array_size(any); i++) check_targets(c, json_array_get(any, i));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *args = json_object_get(json_array_get(calls, i), "arguments");
        const json_t *target = json_object_get(args, "target"), *all = json_object_get(c->context, "devices");
        bool found = false;
        for (size_t k = 0; k < json_array_size(all); k++)
            found |= json_equal(json_object_get(json_array_get(all, k), "id"), target);
        if (!found) fail_msg("%s: %s is no device of its home", c->id, json_string_value(target));
    }
}

static const json_t *first_choice(const json_t *v)
{
    return json_is_array(v) ? json_array_get(v, 0) : v;
}

static json_t *call_that_fits(const json_t *expected)
{
    json_t *args = json_object(), *v;
    const char *key;
    json_object_foreach(json_object_get(expected, "arguments"), key, v)
        json_object_set(args, key, (json_t *)first_choice(v));
    return json_pack("{s:O,s:o}", "name", first_choice(json_object_get(expected, "name")), "arguments", args);
}

static void say_each(const json_t *phrases, buf *text)
{
    for (size_t i = 0; i < json_array_size(phrases); i++)
        buf_printf(text, " %s", json_string_value(first_choice(json_array_get(phrases, i))));
}

/* An answer made from the expectation alone, which it has to meet: no case asks for the impossible. */
static void check_satisfiable(const eval_case *c)
{
    const json_t *any = json_object_get(c->expect, "any");
    const json_t *expect = any ? json_array_get(any, 0) : c->expect,
                 *calls = json_object_get(expect, "calls");
    json_t *made = json_array();
    for (size_t i = 0; i < json_array_size(calls); i++)
        json_array_append_new(made, call_that_fits(json_array_get(calls, i)));
    buf text = {0}, why = {0};
    buf_puts(&text, "so:");
    say_each(json_object_get(expect, "has"), &text);
    say_each(json_object_get(expect, "of"), &text);
    json_t *body = json_pack("{s:s,s:o}", "text", text.data, "tool_calls", made);
    eval_answer a = {.status = 200, .body = body};
    if (eval_judge(c->expect, c->input, &a, &why) != EVAL_RIGHT) fail_msg("%s: %s", c->id, why.data);
    json_decref(body);
    buf_done(&text);
    buf_done(&why);
}

static void the_home_sets_are_sound(void **state)
{
    (void)state;
    static const char *const files[] = {DATA "/dev.jsonl", DATA "/dev2.jsonl", DATA "/held.jsonl",
                                        DATA "/sensors.jsonl"};
    eval_cases cases = {0};
    shoal_err err = {0};
    json_t *seen = json_object();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (eval_cases_read(&cases, files[i], NULL, &err)) fail_msg("%s", err.message);
    assert_true(cases.n >= 200 + 320 + 260 + 560);
    for (size_t i = 0; i < cases.n; i++) {
        const eval_case *c = &cases.v[i];
        buf key = {0};
        eval_case_put_request(c, NULL, &key);
        if (json_object_get(seen, c->id)) fail_msg("%s is there twice", c->id);
        if (json_object_get(seen, key.data)) fail_msg("%s asks what another case asks", c->id);
        json_object_set_new(seen, c->id, json_true());
        json_object_set_new(seen, key.data, json_true());
        if (json_array_size(c->tags) == 0) fail_msg("%s has no tag", c->id);
        check_targets(c, c->expect);
        check_satisfiable(c);
        buf_done(&key);
    }
    json_decref(seen);
    eval_cases_done(&cases);
}

/* ---- reports --------------------------------------------------------------------------------- */

typedef struct results { /* three cases: right [a], right [a, b], harmful [b] */
    eval_cases cases;
    eval_results r;
    eval_scores s;
} results;

static void results_init(results *t)
{
    shoal_err err = {0};
    *t = (results){0};
    int rc = read_text(&t->cases,
                       "{\"id\":\"1\",\"input\":\"one\",\"tags\":[\"b\"]," END "\n"
                       "{\"id\":\"2\",\"input\":\"two\",\"tags\":[\"b\",\"a\"]," END "\n"
                       "{\"id\":\"3\",\"input\":\"th|ree <b>\\n\",\"tags\":[\"a\"]," END "\n",
                       NULL, &err);
    if (rc) fail_msg("%s", err.message);
    t->r.v = calloc(3, sizeof *t->r.v);
    t->r.n = 3;
    for (size_t i = 0; i < 3; i++)
        t->r.v[i] = (eval_result){.c = &t->cases.v[i],
                                  .verdict = i == 2 ? EVAL_HARMFUL : EVAL_RIGHT,
                                  .ms = (double)i + 1,
                                  .why = strdup(i == 2 ? "because" : ""),
                                  .got = strdup("\"text\"")};
    assert_int_equal(eval_scores_init(&t->s, &t->r, &err), 0);
}

static void results_done(results *t)
{
    eval_scores_done(&t->s);
    eval_results_done(&t->r);
    eval_cases_done(&t->cases);
}

static void verdicts_are_counted_by_tag(void **state)
{
    (void)state;
    results t;
    results_init(&t);
    assert_int_equal(t.s.all.n, 3);
    assert_int_equal(t.s.all.count[EVAL_RIGHT], 2);
    assert_int_equal(t.s.all.count[EVAL_HARMFUL], 1);
    assert_int_equal(t.s.n_tags, 2);
    assert_string_equal(t.s.by_tag[0].tag, "a");
    assert_int_equal(t.s.by_tag[0].n, 2);
    assert_int_equal(t.s.by_tag[0].count[EVAL_HARMFUL], 1);
    assert_int_equal(t.s.by_tag[1].count[EVAL_RIGHT], 2);
    assert_true(t.s.all.p50_ms == 2 && t.s.all.p99_ms == 3);
    assert_true(eval_aims_met(&t.s, &(eval_aims){66, 34, 0}));
    assert_false(eval_aims_met(&t.s, &(eval_aims){67, 34, 0}));
    assert_false(eval_aims_met(&t.s, &(eval_aims){66, 33, 0}));
    results_done(&t);
}

static void reports_show_counts_and_failures(void **state)
{
    (void)state;
    results t;
    results_init(&t);
    buf out = {0};
    eval_report_table(&t.s, &out);
    eval_report_failures(&t.r, &out);
    assert_non_null(strstr(out.data, "all                3    66.7       2       0       0       1"));
    assert_non_null(strstr(out.data, "harmful 3: \"th|ree <b>\\n\"\n    because\n    got: \"text\"\n"));
    assert_null(strstr(out.data, "\"one\""));
    buf_clear(&out);
    eval_report_markdown("Title", &t.s, &t.r, true, &out);
    assert_non_null(strstr(out.data, "## Title\n"));
    assert_non_null(strstr(out.data, "| 3 | harmful | th\\|ree \\<b\\>  | because | \"text\" |\n"));
    buf_clear(&out);
    eval_report_markdown("Title", &t.s, &t.r, false, &out); /* held back: counts only */
    assert_null(strstr(out.data, "ree"));
    buf_done(&out);
    results_done(&t);
}

static void json_and_picture_are_well_formed(void **state)
{
    (void)state;
    results t;
    results_init(&t);
    buf out = {0};
    eval_report_json(&t.s, &t.r, true, false, &out);
    json_t *o = parse(out.data);
    assert_false(json_is_true(json_object_get(o, "aims_met")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "all"), "harmful")), 1);
    assert_int_equal(json_array_size(json_object_get(o, "tags")), 2);
    assert_int_equal(json_array_size(json_object_get(o, "failures")), 1);
    json_decref(o);
    buf_clear(&out);
    eval_report_svg("a < b & c", &t.s, &out);
    assert_non_null(strstr(out.data, "a &#60; b &#38; c"));
    assert_non_null(strstr(out.data, "66.7 % of 3"));
    buf_done(&out);
    results_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_must_be_exactly_those_expected),
        cmocka_unit_test(expected_values_may_leave_a_choice),
        cmocka_unit_test(who_must_not_act_is_judged_by_words),
        cmocka_unit_test(errors_are_right_only_where_they_are_expected),
        cmocka_unit_test(faithful_texts_name_only_what_the_request_names),
        cmocka_unit_test(odd_expectations_are_refused),
        cmocka_unit_test(words_are_found_whatever_stands_between_them),
        cmocka_unit_test(a_case_becomes_its_request),
        cmocka_unit_test(odd_cases_are_refused_with_their_line),
        cmocka_unit_test(the_home_sets_are_sound),
        cmocka_unit_test(verdicts_are_counted_by_tag),
        cmocka_unit_test(reports_show_counts_and_failures),
        cmocka_unit_test(json_and_picture_are_well_formed),
    };
    return cmocka_run_group_tests_name("eval", tests, NULL, NULL);
}
