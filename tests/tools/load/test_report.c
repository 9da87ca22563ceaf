/* What a load sends, and what is written of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/json.h"
#include "load/load_bodies.h"
#include "load/load_live.h"
#include "load/load_report.h"

static void lengths_are_drawn(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",   "-1", "a",      "5..", "..5", "9..5",
                                        "5~", "~5", "1..2~3", "8,",  "1e3", "2000000"};
    load_length l;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (load_length_read(&l, "prompt", wrong[i], NULL) != SHOAL_EINVALID)
            fail_msg("\"%s\" is taken", wrong[i]);
    assert_int_equal(load_length_read(&l, "prompt", "7", NULL), 0);
    assert_int_equal(load_length_draw(&l, 1, 5, 0), 7);
    assert_int_equal(load_length_read(&l, "prompt", "3..5", NULL), 0);
    size_t seen[8] = {0};
    for (size_t i = 0; i < 3000; i++) seen[load_length_draw(&l, 1, i, 0)]++;
    assert_true(seen[3] > 800 && seen[4] > 800 && seen[5] > 800 && seen[3] + seen[4] + seen[5] == 3000);
    assert_int_equal(load_length_read(&l, "prompt", "100~10", NULL), 0);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < 4000; i++) {
        double v = (double)load_length_draw(&l, 2, i, 1) + 0.5; /* whole numbers are cut */
        sum += v;
        squares += v * v;
    }
    assert_true(fabs(sum / 4000 - 100) < 1 && fabs(sqrt(squares / 4000 - pow(sum / 4000, 2)) - 10) < 0.7);
    assert_int_equal(load_length_read(&l, "prompt", "0~5", NULL), 0);
    for (size_t i = 0; i < 100; i++) assert_true(load_length_draw(&l, 2, i, 1) >= 1);
}

static json_t *made(load_bodies *b, size_t i)
{
    buf scratch = {0};
    http_ask r;
    json_t *v;
    shoal_err err = {0};
    load_bodies_make(b, i, &scratch, &r);
    if (json_parse(&v, r.body, r.n_body, "body", &err) != 0) fail_msg("%s: %s", err.message, r.body);
    buf_done(&scratch);
    return v;
}

static void each_path_has_its_body(void **state)
{
    (void)state;
    static const struct {
        const char *path, *named, *text;
        bool streams;
    } want[] = {{NULL, "model", "prompt", true},
                {"/v1/chat/completions", "model", "messages", true},
                {"/v1/embeddings", "model", "input", false},
                {"/v1/rerank", "model", "documents", false},
                {"/v1/classify", "model", "input", false},
                {"/v1/process", "pipeline", "input", false}};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        load_bodies b;
        const load_bodies_options o = {.model = "a \"b\"",
                                       .path = want[k].path,
                                       .stream = true,
                                       .prompt = {5, 5, 0},
                                       .reply = {9, 9, 0}};
        assert_int_equal(load_bodies_open(&b, &o, NULL), 0);
        json_t *one = made(&b, 1), *two = made(&b, 2), *same = made(&b, 1);
        assert_string_equal(json_text_of(one, want[k].named), "a \"b\"");
        assert_non_null(json_object_get(one, want[k].text));
        assert_int_equal(json_is_true(json_object_get(one, "stream")), want[k].streams);
        assert_int_equal(json_integer_of(one, "max_tokens"), want[k].streams ? 9 : 0);
        assert_true(json_equal(one, same) && !json_equal(one, two)); /* no cache has heard of the second */
        load_bodies_next_run(&b);
        json_t *later = made(&b, 1);
        assert_false(json_equal(one, later));
        json_decref(later);
        json_decref(one);
        json_decref(two);
        json_decref(same);
        load_bodies_done(&b);
    }
    load_bodies b;
    assert_int_equal(load_bodies_open(&b, &(load_bodies_options){.path = "/v1/other"}, NULL), SHOAL_EINVALID);
}

static void put_file(char *path, const char *text)
{
    int fd = mkstemps(path, 6);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void files_are_sent_line_by_line(void **state)
{
    (void)state;
    char bodies[] = "/tmp/load_XXXXXX.jsonl", prompts[] = "/tmp/load_XXXXXX.lines";
    put_file(bodies, "{\"a\":1}\r\n\n{\"a\":2}");
    put_file(prompts, "one \"two\"\nthree\n");
    load_bodies b;
    assert_int_equal(load_bodies_open(&b, &(load_bodies_options){.path = "/any", .body_file = bodies}, NULL),
                     0);
    for (size_t i = 0; i < 4; i++) {
        json_t *v = made(&b, i);
        assert_int_equal(json_integer_of(v, "a"), 1 + (int)(i % 2));
        json_decref(v);
    }
    load_bodies_done(&b);
    assert_int_equal(load_bodies_open(&b, &(load_bodies_options){.prompts_file = prompts}, NULL), 0);
    json_t *v = made(&b, 2);
    assert_string_equal(json_text_of(v, "prompt"), "one \"two\"");
    assert_null(json_object_get(v, "model"));
    json_decref(v);
    load_bodies_done(&b);
    unlink(bodies);
    unlink(prompts);
}

static void a_trace_says_when_and_what(void **state)
{
    (void)state;
    static const char text[] = "{\"at\": 10.5, \"path\": \"/v1/embeddings\", \"body\": {\"x\": 1}}\n"
                               "{\"at\": 10, \"model\": \"m\", \"prompt\": \"hello\", \"max_tokens\": 3}\n \n"
                               "{\"timestamp\": 12000, \"input_length\": 6, \"output_length\": 4}";
    char path[] = "/tmp/load_XXXXXX.trace";
    put_file(path, text);
    load_bodies b;
    assert_int_equal(
        load_bodies_open(&b, &(load_bodies_options){.model = "own", .trace_file = path, .stream = true},
                         NULL),
        0);
    assert_int_equal(b.trace.n, 3);
    assert_true(b.trace.v[0].at_s == 0 && b.trace.v[1].at_s == 0.5 && b.trace.v[2].at_s == 2);
    json_t *v[3];
    for (size_t i = 0; i < 3; i++) v[i] = made(&b, i);
    assert_string_equal(json_text_of(v[0], "model"), "m");
    assert_string_equal(json_text_of(v[0], "prompt"), "hello");
    assert_int_equal(json_integer_of(v[0], "max_tokens"), 3);
    assert_int_equal(json_integer_of(v[1], "x"), 1);
    assert_string_equal(json_text_of(v[2], "model"), "own");
    size_t blanks = 0; /* six words behind the number */
    for (const char *p = json_text_of(v[2], "prompt"); *p; p++) blanks += *p == ' ';
    assert_int_equal(blanks, 6);
    assert_int_equal(json_integer_of(v[2], "max_tokens"), 4);
    for (size_t i = 0; i < 3; i++) json_decref(v[i]);
    load_bodies_done(&b);
    unlink(path);

    static const char *const wrong[] = {"",
                                        "{}",
                                        "[1]",
                                        "{\"at\":-1}",
                                        "{\"at\":1,\"path\":\"x\"}",
                                        "{\"at\":1}\n{\"at\":",
                                        "{\"at\":1,\"max_tokens\":-3}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        load_trace t;
        shoal_err err = {0};
        if (load_trace_parse(&t, wrong[i], strlen(wrong[i]), "t", &err) != SHOAL_EFORMAT)
            fail_msg("%s is taken", wrong[i]);
        assert_non_null(strstr(err.message, "t"));
    }
}

/* What a server lists is a trace that can be sent again. */
static void a_servers_requests_become_a_trace(void **state)
{
    (void)state;
    static const char list[] = "{\"data\":[{\"at\":105,\"ms\":1000,\"endpoint\":\"process\",\"pipeline\":"
                               "\"home\",\"prompt_tokens\":3},"
                               "{\"at\":103,\"ms\":0,\"endpoint\":\"models\"},"
                               "{\"at\":102,\"ms\":500,\"endpoint\":\"chat_completions\",\"model\":\"m\","
                               "\"prompt_tokens\":9,\"completion_tokens\":5},"
                               "{\"at\":101,\"ms\":0,\"endpoint\":\"embeddings\",\"model\":\"e\",\"asked\":"
                               "\"{\\\"input\\\":\\\"x\\\"}\"}]}";
    json_t *v;
    buf out = {0};
    size_t n;
    load_trace t;
    assert_int_equal(json_parse(&v, list, strlen(list), "list", NULL), 0);
    assert_int_equal(load_trace_put_requests(&out, v, &n, NULL), 0);
    assert_int_equal(n, 3);
    assert_int_equal(load_trace_parse(&t, out.data, out.len, "t", NULL), 0);
    assert_string_equal(t.v[0].body, "{\"input\":\"x\"}");
    assert_string_equal(t.v[1].path, "/v1/chat/completions");
    assert_true(fabs(t.v[1].at_s - 0.5) < 1e-6 && t.v[1].n_prompt == 9 && t.v[1].n_reply == 5);
    assert_string_equal(t.v[2].model, "\"home\"");
    load_trace_done(&t);
    json_decref(v);
    buf_done(&out);
}

static void objectives_are_judged(void **state)
{
    (void)state;
    load_objective o;
    static const char *const wrong[] = {"", "p95", "p95=", "p95=0", "p95=-1", "p94=3", "=3", "first_max=2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(load_objective_read(&o, wrong[i], NULL), SHOAL_EINVALID);
    assert_int_equal(load_objective_read(&o, "first_p95=200", NULL), 0);
    load_result r = {.n_ok = 200, .p95_ms = 900, .first_p95_ms = 200};
    assert_false(load_objective_broke(&o, &r));
    r.n_failed = 2;
    assert_false(load_objective_broke(&o, &r));
    r.n_failed = 3; /* more than a hundredth */
    assert_true(load_objective_broke(&o, &r));
    r = (load_result){.n_ok = 200, .first_p95_ms = 201};
    assert_true(load_objective_broke(&o, &r));
    assert_true(load_objective_broke(&o, &(load_result){0})); /* nothing was answered */
}

/* A report of two rates, one of them with failures: what was measured is in it, what others say is escaped, and every tag
 * that is opened is closed. */
static void reports_are_whole(void **state)
{
    (void)state;
    load_record *record;
    load_row *rows = calloc(2, sizeof *rows);
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(load_record_new(&record, NULL), 0);
        for (size_t i = 0; i < 200; i++) {
            const uint64_t gaps[] = {1000000, 2000000};
            load_answer a = {.due_s = (double)i / 100,
                             .sent_s = (double)i / 100,
                             .end_s = (double)i / 100 + 0.05 * (double)(k + 1),
                             .first_ns = 20000000,
                             .gaps_ns = gaps,
                             .n_gaps = 2,
                             .n_tokens = 3,
                             .error = k && i % 10 == 0 ? LOAD_ERROR_SERVER : LOAD_ERROR_NONE,
                             .why = "<b>503</b>"};
            load_record_sent(record, a.due_s, a.sent_s);
            load_record_add(record, &a);
        }
        buf live = {0};
        load_live_put(&live, &(load_live){"40/s", 10, 400}, record, 2, 100);
        assert_non_null(strstr(live.data, "200/400 sent"));
        assert_int_equal(strstr(live.data, "errors  5xx 20") != NULL, k == 1);
        buf_done(&live);
        record->seconds = 2.1;
        load_result r = {.n_ok = record->n_ok,
                         .n_failed = record->n_failed,
                         .n_tokens = record->n_tokens,
                         .n_gaps = record->gap.n,
                         .seconds = 2.1,
                         .p95_ms = load_histogram_ms(&record->whole, 0.95)};
        memcpy(r.first_failure, record->first_failure, sizeof r.first_failure);
        load_row_take(&rows[k], record, &r);
        snprintf(rows[k].name, sizeof rows[k].name, "%zu/s", 100 * (k + 1));
        rows[k].rate = 100.0 * (double)(k + 1);
        rows[k].broke = k == 1;
        load_record_free(record);
    }
    assert_true(fabs(rows[0].whole[0] - 50) < 0.5 && isnan(rows[0].whole[LOAD_CURVE_POINTS - 1]));
    load_report report = {.url = "http://a",
                          .path = "/v1/<x>",
                          .model = "m&n",
                          .rows = rows,
                          .n_rows = 2,
                          .objective = {"p95", 60}};
    char verdict[200];
    load_report_verdict(&report, verdict, sizeof verdict);
    assert_string_equal(
        verdict, "p95 <= 60 ms holds up to 100/s; it is 100.0 ms at 200/s, with 20 of 200 requests failed");
    buf html = {0}, svg = {0}, json = {0};
    load_report_put_html(&report, &html);
    load_report_put_svg(&report, &svg);
    assert_null(strstr(html.data, "<x>"));
    assert_null(strstr(html.data, "<b>503"));
    assert_non_null(strstr(html.data, "&#60;b&#62;503"));
    assert_non_null(strstr(html.data, "200/s (objective missed)"));
    assert_null(strstr(html.data, "nan"));
    assert_null(strstr(svg.data, "nan"));
    static const char *const tags[] = {"svg", "g", "table", "tr", "td", "div", "details", "text", "main"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        int depth = 0;
        char open[16], close[16];
        snprintf(open, sizeof open, "<%s", tags[i]);
        snprintf(close, sizeof close, "</%s>", tags[i]);
        for (const char *p = html.data; (p = strstr(p, open)); p++)
            depth += p[strlen(open)] == ' ' || p[strlen(open)] == '>';
        for (const char *p = html.data; (p = strstr(p, close)); p++) depth--;
        if (depth != 0) fail_msg("<%s>: %d more opened than closed", tags[i], depth);
    }
    buf_puts(&json, "{\"x\":0");
    load_row_put_json(&rows[1], &json);
    buf_putc(&json, '}');
    json_t *v;
    assert_int_equal(json_parse(&v, json.data, json.len, "row", NULL), 0);
    assert_int_equal(json_integer_of(json_object_get(v, "errors"), "5xx"), 20);
    double n = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(v, "intervals")); i++)
        n += 0.25 * json_number_of(json_array_get(json_object_get(v, "intervals"), i), "due_per_s");
    assert_true(fabs(n - 200) < 1e-6);
    json_decref(v);
    buf_done(&json);
    buf_done(&html);
    buf_done(&svg);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_drawn),
        cmocka_unit_test(each_path_has_its_body),
        cmocka_unit_test(files_are_sent_line_by_line),
        cmocka_unit_test(a_trace_says_when_and_what),
        cmocka_unit_test(a_servers_requests_become_a_trace),
        cmocka_unit_test(objectives_are_judged),
        cmocka_unit_test(reports_are_whole),
    };
    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
