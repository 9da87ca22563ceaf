/* How much work a document costs: linear in its length whatever it says, and over soon after nobody wants it. */
#include "check.h"

#include "base/buf.h"
#include "base/steps.h"
#include "retrieve/piece.h"

/* ---- texts that have made readers quadratic somewhere ----------------------------------------------------- */

typedef void writer(buf *out, size_t i);

static void one_word(buf *out, size_t i)
{
    buf_putc(out, (char)('a' + i % 26));
}

static void angles(buf *out, size_t i)
{
    buf_puts(out, "<");
}

static void combining_marks(buf *out, size_t i)
{
    buf_puts(out, i ? "\xCC\x81" : "e");
}

static void csv_rows(buf *out, size_t i)
{
    buf_puts(out, i ? "a\n" : "name\n");
}

static void csv_columns_of_one(buf *out, size_t i)
{
    buf_puts(out, "b;");
}

static void short_headings(buf *out, size_t i)
{
    buf_puts(out, "# a\n");
}

static void deep_headings(buf *out, size_t i)
{
    buf_printf(out, "%.*s h%zu\n", (int)(i % 6 + 1), "######", i);
}

static void spaces(buf *out, size_t i)
{
    buf_putc(out, ' ');
}

static void newlines(buf *out, size_t i)
{
    buf_putc(out, '\n');
}

static void mixed_scripts(buf *out, size_t i)
{
    static const char *const LETTERS[] = {"a", "\xD0\xB6", "\xE6\xBC\xA2", "\xF0\x9F\x92\xA1", "\xD7\xA9"};
    buf_puts(out, LETTERS[i % 5]);
}

static void words_without_end(buf *out, size_t i)
{
    buf_printf(out, "w%zu ", i);
}

static void ends_alone(buf *out, size_t i)
{
    buf_puts(out, ". ");
}

static void ideographic_ends(buf *out, size_t i)
{
    buf_puts(out, "\xE3\x80\x82");
}

static void html_blocks(buf *out, size_t i)
{
    buf_printf(out, "<p class=\"x%zu\">text &amp; more</p>", i);
}

static void open_comments(buf *out, size_t i)
{
    buf_puts(out, "<!-- ");
}

static void open_scripts(buf *out, size_t i)
{
    buf_puts(out, "<script><style>");
}

static void open_quotes(buf *out, size_t i)
{
    buf_puts(out, "<a b=\"c' ");
}

static void entities(buf *out, size_t i)
{
    buf_puts(out, "&abcdefghijklmnopqrstuvwxyzabcdefg");
}

static void fences(buf *out, size_t i)
{
    buf_puts(out, "```\n");
}

static void underlines(buf *out, size_t i)
{
    buf_puts(out, i % 2 ? "----\n" : "title\n");
}

static const struct {
    const char *name;
    writer *write;
    plain_type type;
} KINDS[] = {
    {"one word", one_word, PLAIN_TEXT},
    {"angles", angles, PLAIN_TEXT},
    {"angles as HTML", angles, PLAIN_HTML},
    {"combining marks", combining_marks, PLAIN_TEXT},
    {"CSV rows", csv_rows, PLAIN_CSV},
    {"one row of CSV", csv_columns_of_one, PLAIN_TEXT},
    {"short headings", short_headings, PLAIN_MARKDOWN},
    {"deep headings", deep_headings, PLAIN_MARKDOWN},
    {"spaces", spaces, PLAIN_TEXT},
    {"newlines", newlines, PLAIN_MARKDOWN},
    {"newlines as text", newlines, PLAIN_TEXT},
    {"mixed scripts", mixed_scripts, PLAIN_TEXT},
    {"words without end", words_without_end, PLAIN_TEXT},
    {"sentence ends alone", ends_alone, PLAIN_TEXT},
    {"ideographic ends", ideographic_ends, PLAIN_TEXT},
    {"HTML blocks", html_blocks, PLAIN_HTML},
    {"open comments", open_comments, PLAIN_HTML},
    {"open scripts", open_scripts, PLAIN_HTML},
    {"open quotes", open_quotes, PLAIN_HTML},
    {"entities", entities, PLAIN_HTML},
    {"fences", fences, PLAIN_MARKDOWN},
    {"underlines", underlines, PLAIN_MARKDOWN},
};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

static void make_text(buf *out, size_t kind, size_t n_bytes)
{
    for (size_t i = 0; out->len < n_bytes; i++) KINDS[kind].write(out, i);
}

static int read_and_cut(size_t kind, const buf *text, steps *s, shoal_err *err)
{
    plain p = {0};
    pieces ps = {0};
    int rc = plain_read(&p, KINDS[kind].type, text->data, text->len, "test", s, err);
    if (rc == 0) rc = pieces_cut(&ps, &p, 320, 64, s, err);
    pieces_done(&ps);
    plain_done(&p);
    return rc;
}

static uint64_t steps_of(size_t kind, size_t n_bytes)
{
    shoal_err err = {0};
    buf text = {0};
    steps s = {0};
    make_text(&text, kind, n_bytes);
    if (read_and_cut(kind, &text, &s, &err) != 0) fail_msg("%s: %s", KINDS[kind].name, err.message);
    buf_done(&text);
    return s.n;
}

static void twice_the_text_is_less_than_three_times_the_work(void **state)
{
    for (size_t kind = 0; kind < N_KINDS; kind++) {
        uint64_t once = steps_of(kind, 100000), twice = steps_of(kind, 200000);
        if (once < 100000) fail_msg("%s: only %llu steps are counted", KINDS[kind].name, (long long)once);
        if (twice >= 3 * once)
            fail_msg("%s: %llu steps, and %llu for twice the text", KINDS[kind].name, (long long)once,
                     (long long)twice);
    }
}

/* Cancelled from the beginning: the first look at the flag ends it, long before the text does. */
static void cancelled_work_ends_within_a_check(void **state)
{
    for (size_t kind = 0; kind < N_KINDS; kind++) {
        atomic_bool cancelled = true;
        shoal_err err = {0};
        buf text = {0};
        steps s = {.next = STEPS_PER_CHECK, .cancel = cancel_by_flag(&cancelled)};
        make_text(&text, kind, 20 * STEPS_PER_CHECK);
        assert_int_equal(read_and_cut(kind, &text, &s, &err), SHOAL_ECANCELLED);
        if (s.n > 2 * STEPS_PER_CHECK)
            fail_msg("%s: %llu steps after it was cancelled", KINDS[kind].name, (long long)s.n);
        buf_done(&text);
    }
}

/* The cutter alone: what was read before is cut no further. */
static void cancelled_cutting_ends_within_a_check(void **state)
{
    for (size_t kind = 0; kind < N_KINDS; kind++) {
        atomic_bool cancelled = true;
        shoal_err err = {0};
        buf text = {0};
        plain p = {0};
        pieces ps = {0};
        steps s = {.next = STEPS_PER_CHECK, .cancel = cancel_by_flag(&cancelled)};
        make_text(&text, kind, 20 * STEPS_PER_CHECK);
        assert_ok(plain_read(&p, KINDS[kind].type, text.data, text.len, "test", NULL, &err));
        int rc = pieces_cut(&ps, &p, 320, 64, &s, &err);
        if (p.n > 0 && p.text.len > 10 * STEPS_PER_CHECK) assert_int_equal(rc, SHOAL_ECANCELLED);
        if (s.n > 2 * STEPS_PER_CHECK)
            fail_msg("%s: %llu steps after it was cancelled", KINDS[kind].name, (long long)s.n);
        pieces_done(&ps);
        plain_done(&p);
        buf_done(&text);
    }
}

/* A header of one long name, repeated by every row, would make a file of 100 KB one of gigabytes. */
static void csv_does_not_grow_without_bound(void **state)
{
    shoal_err err = {0};
    plain p = {0};
    buf text = {0};
    for (int i = 0; i < 50000; i++) buf_putc(&text, 'n');
    for (int i = 0; i < 1000; i++) buf_puts(&text, "\nv");
    assert_ok(plain_read(&p, PLAIN_CSV, text.data, text.len, "test", NULL, &err));
    assert_true(p.text.len < 1000 * (PLAIN_CSV_NAME_MAX + 8));
    plain_done(&p);
    buf_clear(&text);
    for (int i = 0; i < 90; i++) buf_putc(&text, 'n');
    for (int i = 0; i < 100000; i++) buf_puts(&text, "\nv");
    assert_int_equal(plain_read(&p, PLAIN_CSV, text.data, text.len, "test", NULL, &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "shorten the names"));
    plain_done(&p);
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twice_the_text_is_less_than_three_times_the_work),
        cmocka_unit_test(cancelled_work_ends_within_a_check),
        cmocka_unit_test(cancelled_cutting_ends_within_a_check),
        cmocka_unit_test(csv_does_not_grow_without_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
