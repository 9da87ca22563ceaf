/* Names of attributes by version, what of a recorded span goes out, and the table in docs/observability.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "telemetry/semconv.h"

static void names_differ_by_version(void **state)
{
    assert_string_equal(semconv_name(OTEL_SEMCONV_1_28, SEM_PROVIDER), "gen_ai.system");
    assert_string_equal(semconv_name(OTEL_SEMCONV_1_37, SEM_PROVIDER), "gen_ai.provider.name");
    assert_string_equal(semconv_name(OTEL_SEMCONV_1_28, SEM_INPUT), "gen_ai.usage.input_tokens");
    assert_string_equal(semconv_schema_url(OTEL_SEMCONV_1_28), "https://opentelemetry.io/schemas/1.28.0");
    assert_string_equal(semconv_schema_url(OTEL_SEMCONV_1_37), "https://opentelemetry.io/schemas/1.37.0");
}

static void recorded_values_have_their_kinds(void **state)
{
    sem_list l = {.version = OTEL_SEMCONV_1_28};
    sem_recorded(&l, SPAN_CALL, "prompt_tokens", "12");
    sem_recorded(&l, SPAN_CALL, "cpu_ms", "1.5");
    sem_recorded(&l, SPAN_CALL, "finish", "stop");
    sem_recorded(&l, SPAN_CALL, "prompt_tokens", "many");
    assert_int_equal(l.n, 3);
    assert_string_equal(l.items[0].key, "gen_ai.usage.input_tokens");
    assert_int_equal(l.items[0].i, 12);
    assert_int_equal(l.items[1].kind, OTLP_DOUBLE);
    assert_true(l.items[1].d == 1.5);
    assert_int_equal(l.items[2].kind, OTLP_LIST);
    assert_string_equal(l.items[2].text, "stop");
}

static void a_call_is_answered_by_the_model_that_it_asks(void **state)
{
    sem_list l = {0};
    sem_recorded(&l, SPAN_STAGE, "model", "m");
    assert_int_equal(l.n, 1);
    sem_recorded(&l, SPAN_CALL, "model", "m");
    assert_int_equal(l.n, 3);
    assert_string_equal(l.items[2].key, "gen_ai.response.model");
}

/* Labels and verdicts may stand in these. */
static void what_may_hold_parts_of_requests_stays_here(void **state)
{
    sem_list l = {0};
    sem_recorded(&l, SPAN_CALL, "why", "label.intent is lights_off");
    sem_recorded(&l, SPAN_ENSEMBLE, "decision", "home-chat-s devices: no lamp");
    sem_recorded(&l, SPAN_CALL, "another", "x");
    assert_int_equal(l.n, 0);
}

static void who_was_cancelled_did_not_fail(void **state)
{
    sem_list l = {0};
    sem_recorded(&l, SPAN_CALL, "fault", "none");
    assert_int_equal(l.n, 0);
    sem_recorded(&l, SPAN_CALL, "error", "SHOAL_ECANCELLED");
    assert_string_equal(l.items[0].key, "shoal.cancelled");
    sem_recorded(&l, SPAN_CALL, "error", "SHOAL_EUNAVAILABLE");
    assert_string_equal(l.items[1].key, "error.type");
    assert_string_equal(l.items[1].text, "SHOAL_EUNAVAILABLE");
    sem_recorded(&l, SPAN_CALL, "fault", "lost");
    assert_string_equal(l.items[2].text, "lost");
}

static void too_many_are_left_out(void **state)
{
    sem_list l = {0};
    for (int i = 0; i < OTLP_ATTRIBUTES_MAX + 3; i++) sem_text(&l, SEM_ERROR, "x");
    assert_int_equal(l.n, OTLP_ATTRIBUTES_MAX);
    sem_text(&l, SEM_ERROR, "");
    sem_bool(&l, SEM_STREAMED, false);
    assert_int_equal(l.n, OTLP_ATTRIBUTES_MAX);
}

static void put_table(buf *out)
{
    static const struct {
        const char *now, *before, *spans, *meaning;
    } ROWS[] = {
#define DOCS_ROW(e, now, before, kind, spans, meaning) {now, before, spans, meaning},
        SEMCONV_TABLE(DOCS_ROW)
#undef DOCS_ROW
    };
    buf_puts(out, "| attribute (1.37.0) | in 1.28.0 | spans | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        bool same = strcmp(ROWS[i].now, ROWS[i].before) == 0;
        buf_printf(out, "| `%s` | %s%s%s | %s | %s |\n", ROWS[i].now, same ? "" : "`",
                   same ? "the same" : ROWS[i].before, same ? "" : "`", ROWS[i].spans, ROWS[i].meaning);
    }
}

static void docs_list_each_attribute(void **state)
{
    static const char PAGE[] = SHOAL_SOURCE_DIR "/docs/observability.md", BEGIN[] = "<!-- attributes -->\n";
    buf there = {0}, wanted = {0};
    assert_int_equal(file_read(&there, PAGE, 1 << 20, NULL), 0);
    char *from = strstr(there.data, BEGIN), *to = strstr(there.data, "<!-- end -->");
    assert_true(from && to);
    buf_append(&wanted, there.data, (size_t)(from - there.data) + sizeof BEGIN - 1);
    put_table(&wanted);
    buf_puts(&wanted, to);
    bool same = there.len == wanted.len && memcmp(there.data, wanted.data, there.len) == 0;
    if (!same && getenv("SHOAL_WRITE_DOCS")) {
        FILE *f = fopen(PAGE, "w");
        assert_true(f && fwrite(wanted.data, 1, wanted.len, f) == wanted.len && fclose(f) == 0);
    } else if (!same) {
        fail_msg("docs/observability.md is not what the table says: SHOAL_WRITE_DOCS=1 "
                 "build/tests/telemetry_test_semconv");
    }
    buf_done(&there);
    buf_done(&wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_differ_by_version),
        cmocka_unit_test(recorded_values_have_their_kinds),
        cmocka_unit_test(a_call_is_answered_by_the_model_that_it_asks),
        cmocka_unit_test(what_may_hold_parts_of_requests_stays_here),
        cmocka_unit_test(who_was_cancelled_did_not_fail),
        cmocka_unit_test(too_many_are_left_out),
        cmocka_unit_test(docs_list_each_attribute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
