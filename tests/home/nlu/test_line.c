#include "helper.h"

#include "nlu/line.h"

#define FORMS SHOAL_SOURCE_DIR "/lexicons/sensors.yaml"
#define PUMP  "sensor vibration asset=pump-12 change=+64% threshold=20% window=30s"

typedef struct bench {
    line_forms *f;
    arena *a;
} bench;

static void open_bench(bench *t)
{
    shoal_err err = {0};
    *t = (bench){.a = arena_new(0)};
    if (line_forms_load(&t->f, FORMS, &err)) fail_msg("%s", err.message);
}

static void close_bench(bench *t)
{
    line_forms_free(t->f);
    arena_free(t->a);
}

static line_reading read_line(bench *t, const char *text)
{
    line_reading r = {0};
    assert_int_equal(line_read(&r, t->f, text, t->a, NULL), 0);
    return r;
}

static void expect_text(bench *t, const char *line, line_verdict verdict, const char *says)
{
    line_reading r = read_line(t, line);
    if (r.verdict != verdict || !strstr(r.text, says))
        fail_msg("'%s': %s '%s'", line, line_verdict_name(r.verdict), r.text);
}

static void lines_that_hold_become_alerts_by_outcome(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {PUMP, "pump-12 shows a 64% increase in vibration over 30 s (limit 20%). Schedule an inspection."},
        {"sensor current asset=fan-54 change=-42% threshold=30% window=5s",
         "fan-54 shows a 42% drop in current"},
        {"sensor current asset=fan-54 change=-12% threshold=30% window=5s",
         "fan-54: current moved 12% in 5 s, within the 30% limit. No action needed."},
        {"sensor x asset=a change=20% threshold=20% window=1s", "within the 20% limit"},
        {"sensor x asset=a change=20.1% threshold=20% window=1s", "a shows a 20.1% increase"},
        {"sensor x asset=a change=-20.1% threshold=20.0% window=0.5s",
         "20.1% drop in x over 0.5 s (limit 20.0%)"},
        {"sensor x window=1s threshold=1% change=+0% asset=a", "a: x moved 0%"}, /* in any order */
        {"  SENSOR\tx  asset=a\r\nchange=5% threshold=1% window=1s\n", "a shows a 5% increase in x"},
        {"sensor x asset=\xC3\xBC"
         "ber/7_b.c change=5% threshold=1% window=1s",
         "\xC3\xBC"
         "ber/7_b.c shows"},
    };
    bench t;
    open_bench(&t);
    for (size_t i = 0; i < COUNT_OF(rows); i++) expect_text(&t, rows[i].line, LINE_READ, rows[i].says);
    close_bench(&t);
}

static void other_texts_are_no_lines(void **state)
{
    static const char *const texts[] = {"",     "turn on the light", "sensors x", "the sensor line",
                                        "sens", "sensor=x"};
    bench t;
    open_bench(&t);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        line_reading r = read_line(&t, texts[i]);
        assert_int_equal(r.verdict, LINE_OTHER);
        assert_string_equal(r.text, "");
    }
    close_bench(&t);
}

static void each_reason_of_refusal_is_said(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"sensor", "one word must name the signal"},
        {"sensor asset=a change=1% threshold=1% window=1s", "one word must name the signal"},
        {"sensor 5 asset=a change=1% threshold=1% window=1s",
         "one word must name the signal"}, /* no letter */
        {"sensor x y asset=a change=1% threshold=1% window=1s", "'y' is no field"},
        {"sensor x asset=a change=1% threshold=1% window=1s colour=red", "'colour' is no field"},
        {"sensor x signal=a change=1% threshold=1% window=1s", "'signal' is no field"},
        {"sensor x asset=a asset=a change=1% threshold=1% window=1s", "'asset' stands there twice"},
        {"sensor x asset=a change=1% change=2% threshold=1% window=1s", "'change' stands there twice"},
        {"sensor x asset=a change=1% window=1s", "'threshold' is missing"},
        {"sensor x change=1% threshold=1% window=1s", "'asset' is missing"},
        /* values */
        {"sensor x asset= change=1% threshold=1% window=1s", "'asset=' is no value"},
        {"sensor x asset=12 change=1% threshold=1% window=1s", "'asset=12' is no value"},
        {"sensor x asset=a;b change=1% threshold=1% window=1s", "'asset=a;b' is no value"},
        {"sensor x asset=a change=1 threshold=1% window=1s", "'change=1' is no value"},
        {"sensor x asset=a change=1s threshold=1% window=1s", "'change=1s' is no value"},
        {"sensor x asset=a change=% threshold=1% window=1s", "'change=%' is no value"},
        {"sensor x asset=a change=+-1% threshold=1% window=1s", "'change=+-1%' is no value"},
        {"sensor x asset=a change=1.% threshold=1% window=1s", "'change=1.%' is no value"},
        {"sensor x asset=a change=.5% threshold=1% window=1s", "'change=.5%' is no value"},
        {"sensor x asset=a change=1.2.3% threshold=1% window=1s", "'change=1.2.3%' is no value"},
        {"sensor x asset=a change=1e5% threshold=1% window=1s", "'change=1e5%' is no value"},
        {"sensor x asset=a change=nan% threshold=1% window=1s", "'change=nan%' is no value"},
        {"sensor x asset=a change=100001% threshold=1% window=1s", "'change=100001%' is no value"},
        {"sensor x asset=a change=9999999999999% threshold=1% window=1s", "is no value"},
        {"sensor x asset=a change=1% threshold=-1% window=1s",
         "'threshold=-1%' is no value"}, /* has no sign */
        {"sensor x asset=a change=1% threshold=1% window=+1s", "'window=+1s' is no value"},
        {"sensor x asset=a change=1%% threshold=1% window=1s", "'change=1%%' is no value"},
    };
    bench t;
    open_bench(&t);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        expect_text(&t, rows[i].line, LINE_UNREADABLE, rows[i].says);
        expect_text(&t, rows[i].line, LINE_UNREADABLE, "A line looks like: sensor vibration");
    }
    close_bench(&t);
}

static void long_lines_and_names_are_refused_in_whole_characters(void **state)
{
    bench t;
    buf b = {0};
    open_bench(&t);
    buf_puts(&b, "sensor x ");
    for (int i = 0; i < 60; i++) buf_puts(&b, "\xC3\xBC");
    line_reading r = read_line(&t, b.data);
    assert_int_equal(r.verdict, LINE_UNREADABLE);
    assert_non_null(strstr(r.text, "\xC3\xBC' is no field")); /* cut after a whole one */
    buf_puts(&b, PUMP + 6);
    for (int i = 0; i < 1000; i++) buf_putc(&b, ' ');
    assert_int_equal(read_line(&t, b.data).verdict, LINE_UNREADABLE);
    buf_done(&b);
    close_bench(&t);
}

/* ---- what a model says of a line ----------------------------------------------------------------- */

static void expect_said(bench *t, const char *line, const char *said, const char *kept)
{
    line_reading r = read_line(t, line);
    bool is_kept = false;
    const char *text = line_check(&r, said, t->a, &is_kept);
    if (is_kept != (kept != NULL) || strcmp(text, kept ? kept : r.text) != 0)
        fail_msg("'%s' gave '%s'", said, text);
}

#define ADVICE " Schedule an inspection."

static void faithful_words_of_a_model_are_kept_and_advice_follows(void **state)
{
    bench t;
    open_bench(&t);
    expect_said(&t, PUMP, "pump-12 shows a 64% increase in vibration over 30 s (limit 20%)." ADVICE,
                "pump-12 shows a 64% increase in vibration over 30 s (limit 20%)." ADVICE); /* once */
    expect_said(&t, PUMP, "The vibration of pump-12 rose 64% in 30 seconds.",
                "The vibration of pump-12 rose 64% in 30 seconds." ADVICE);
    expect_said(&t, PUMP, "Alert: pump-12 has vibration 64% over the limit of 20 percent!",
                "Alert: pump-12 has vibration 64% over the limit of 20 percent!" ADVICE);
    close_bench(&t);
}

static void spelling_of_names_is_repaired(void **state)
{
    bench t;
    open_bench(&t);
    expect_said(&t, PUMP, "Pump 12 shows a 64% increase in Vibration.",
                "pump-12 shows a 64% increase in vibration." ADVICE);
    expect_said(&t, "sensor Oil.Temp asset=M/7 change=5% threshold=1% window=1s",
                "m 7 shows a 5% rise in oil temp.", "M/7 shows a 5% rise in Oil.Temp." ADVICE);
    close_bench(&t);
}

static void sentences_that_the_line_does_not_hold_are_dropped(void **state)
{
    bench t;
    open_bench(&t);
    expect_said(&t, PUMP, "pump-12 shows a 64% increase in vibration. The bearing is broken. Inspect soon!",
                "pump-12 shows a 64% increase in vibration. Inspect soon!" ADVICE);
    expect_said(&t, PUMP, "Hello! pump-12 shows a 64% increase in vibration.",
                "pump-12 shows a 64% increase in vibration." ADVICE);
    close_bench(&t);
}

static void unfaithful_words_of_a_model_are_replaced(void **state)
{
    static const char *const said[] = {
        "",
        "...",
        "ok",
        "pump-12 shows a 65% increase in vibration.",  /* another number */
        "pump-12 shows a 6.4% increase in vibration.", /* another decimal */
        "pump-13 shows a 64% increase in vibration.",  /* another machine */
        "pump-12 shows a 64% increase in pressure.",   /* another signal */
        "pump-12 shows an increase in vibration.",     /* the change is missing */
        "Schedule an inspection over 30 s.",           /* the asset is missing */
        "pump-12 shows a 64% drop in vibration.",      /* the contrary */
        "pump-12 shows a 64% increase in vibration. No action needed.",
        "pump-12 vibration 64%. It fell.", /* a false sentence spoils the others */
    };
    bench t;
    open_bench(&t);
    for (size_t i = 0; i < COUNT_OF(said); i++) expect_said(&t, PUMP, said[i], NULL);
    close_bench(&t);
}

static void contradictions_depend_on_the_outcome(void **state)
{
    bench t;
    open_bench(&t);
    const char *drop = "sensor current asset=fan-5 change=-42% threshold=30% window=5s";
    const char *fine = "sensor current asset=fan-5 change=-2% threshold=30% window=5s";
    expect_said(&t, drop, "fan-5 current fell 42%.", "fan-5 current fell 42%." ADVICE);
    expect_said(&t, drop, "fan-5 current rose 42%.", NULL);
    expect_said(&t, fine, "fan-5 current fell 2%.", "fan-5 current fell 2%.");
    expect_said(&t, fine, "fan-5 current fell 2%. Schedule an inspection.", NULL);
    close_bench(&t);
}

static void numbers_are_compared_by_value(void **state)
{
    bench t;
    open_bench(&t);
    expect_said(&t, "sensor x1 asset=a change=5% threshold=1.50% window=1s", "a x1 rose 5% (limit 1.5%).",
                "a x1 rose 5% (limit 1.5%)." ADVICE);
    expect_said(&t, "sensor x1 asset=a change=5.5% threshold=1% window=1s", "a x1 rose 55%.", NULL);
    close_bench(&t);
}

/* ---- forms --------------------------------------------------------------------------------------- */

#define HEAD \
    "begins: s\nerror: '{why}'\nreasons: {subject: a, unknown: b, twice: c, missing: d, value: e}\nforms:\n"
#define FORM(fields, more)                                                                       \
    HEAD "  - subject: x\n    example: e\n    fields: {" fields "}\n    size: n\n    limit: n\n" \
         "    within: w\n    up: u\n    down: d\n" more

static void malformed_forms_are_refused_with_file_and_line(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"[]", "f.yaml:1: 'begins' is missing"},
        {"begins: s\nerror: e\nreasons: {}\nforms: []\n", "f.yaml:3: 'subject' is missing"},
        {"begins: ''\n", "f.yaml:1: a text is expected here"},
        {"begins: [s]\n", "f.yaml:1: 'begins' must be a text"},
        {HEAD "  []\n", "there is no form"},
        {HEAD "  - subject: x\n", "f.yaml:5: 'example' is missing"},
        {HEAD "  - {subject: x, example: e, fields: []}\n", "f.yaml:5: 'fields' must be a map"},
        {FORM("n: {type: text}", ""), "f.yaml:7: type 'text' is neither name nor number"},
        {FORM("n: {type: number}", ""), "f.yaml:7: 'unit' is missing"},
        {FORM("n: {type: number, unit: s, sign: 5}", ""), "f.yaml:7: sign"},
        {FORM("n: {type: number, unit: s, max: much}", ""), "f.yaml:7: max"},
        {FORM("n: {type: name}", ""), "f.yaml:5: 'size' must name a field that is a number"},
        {FORM("m: {type: name}", ""), "'size' must name a field"},
        {FORM("n: {type: number, unit: s}", "    must: [x, y]\n"), "f.yaml:13: 'y' is no field"},
        {FORM("n: {type: number, unit: s}",
              "    must: [x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x]\n"),
         "f.yaml:13: 'x' is no field"},
        {FORM("a: {type: name}, b: {type: name}, c: {type: name}, d: {type: name}, e: {type: name}, "
              "f: {type: name}, g: {type: name}, h: {type: name}, i: {type: name}, j: {type: name}, "
              "k: {type: name}, l: {type: name}, m: {type: name}, o: {type: name}, p: {type: name}, "
              "q: {type: name}, n: {type: number, unit: s}",
              ""),
         "f.yaml:7: too many fields"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        line_forms *f = NULL;
        shoal_err err = {0};
        int rc = line_forms_parse(&f, rows[i].text, strlen(rows[i].text), "f.yaml", &err);
        if (!rc || f || !strstr(err.message, rows[i].says)) fail_msg("'%s': %s", rows[i].says, err.message);
    }
    line_forms *f = NULL;
    const char *fine = FORM("n: {type: number, unit: s}", "    must: [x, n]\n");
    shoal_err err = {0};
    if (line_forms_parse(&f, fine, strlen(fine), "f.yaml", &err)) fail_msg("%s", err.message);
    line_forms_free(f);
    line_forms_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_hold_become_alerts_by_outcome),
        cmocka_unit_test(other_texts_are_no_lines),
        cmocka_unit_test(each_reason_of_refusal_is_said),
        cmocka_unit_test(long_lines_and_names_are_refused_in_whole_characters),
        cmocka_unit_test(faithful_words_of_a_model_are_kept_and_advice_follows),
        cmocka_unit_test(spelling_of_names_is_repaired),
        cmocka_unit_test(sentences_that_the_line_does_not_hold_are_dropped),
        cmocka_unit_test(unfaithful_words_of_a_model_are_replaced),
        cmocka_unit_test(contradictions_depend_on_the_outcome),
        cmocka_unit_test(numbers_are_compared_by_value),
        cmocka_unit_test(malformed_forms_are_refused_with_file_and_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
