/* Documents as blocks of plain text. */
#include "check.h"

#include "retrieve/plain.h"

/* The blocks as "kind level line|text" lines. */
static char *blocks_of(plain_type type, const char *bytes)
{
    plain p = {0};
    buf out = {0};
    shoal_err err = {0};
    assert_ok(plain_read(&p, type, bytes, strlen(bytes), "test", NULL, &err));
    for (size_t i = 0; i < p.n; i++) {
        const plain_block *b = &p.blocks[i];
        buf_printf(&out, "%c%u %zu|%.*s\n", "phr"[b->kind], b -> level, b -> line, (int)(b->end - b->start),
                   p.text.data + b->start);
    }
    plain_done(&p);
    buf_putc(&out, 0);
    return buf_take(&out);
}

#define assert_blocks(type, bytes, want)    \
    do {                                    \
        char *got = blocks_of(type, bytes); \
        assert_string_equal(got, want);     \
        free(got);                          \
    } while (0)

static void paragraphs_end_at_blank_lines(void **state)
{
    assert_blocks(PLAIN_TEXT, "one\ntwo  \n\n \t\nthree\r\n\r\nfour",
                  "p0 1|one\ntwo\np0 5|three\np0 7|four\n");
    assert_blocks(PLAIN_TEXT, "# no heading here\n", "p0 1|# no heading here\n");
    assert_blocks(PLAIN_TEXT, "\n \n", "");
}

static void markdown_has_headings_and_code(void **state)
{
    assert_blocks(PLAIN_MARKDOWN, "# Boiler ##\ntext\n## Care\n\nmore\n#5 is no heading\n",
                  "h1 1|Boiler\np0 2|text\nh2 3|Care\np0 5|more\n#5 is no heading\n");
    assert_blocks(PLAIN_MARKDOWN, "Title\n=====\nbody\n\nSub\n---\nx\n",
                  "h1 1|Title\np0 3|body\nh2 5|Sub\np0 7|x\n");
    assert_blocks(PLAIN_MARKDOWN, "```\n# code\n\nmore\n```\nafter\n",
                  "p0 1|```\n# code\n\nmore\n```\nafter\n");
}

static void html_loses_its_tags(void **state)
{
    assert_blocks(
        PLAIN_HTML,
        "<!DOCTYPE html><html><head><title>Manual</title><style>p{a>b}</style></head>\n<body>"
        "<script>if (a<b) '</p>'</script><h2 class=\"a>b\">Care &amp; use</h2>\n<p>Oil <b>it</b>\n  "
        "well.<br>Twice&nbsp;a year &#8211; or &#x20AC;5, M&uuml;ller.<!-- no > word --></p>"
        "<table><tr><td>a</td><td>1</td></tr></table></body>",
        "h1 1|Manual\nh2 2|Care & use\np0 3|Oil it well.\nTwice a year \xE2\x80\x93 or \xE2\x82\xAC"
        "5, M\xC3\xBCller.\np0 4|a 1\n");
}

static void broken_html_is_text_or_nothing(void **state)
{
    assert_blocks(PLAIN_HTML, "a < b & c &nope; &#0; <p", "p0 1|a < b & c &nope; &#0;\n");
    assert_blocks(PLAIN_HTML, "x<!-- never ends", "p0 1|x\n");
    assert_blocks(PLAIN_HTML, "x<script>never ends</scrip", "p0 1|x\n");
    assert_blocks(PLAIN_HTML, "x<a title=\"never ends> y", "p0 1|x\n");
    assert_blocks(PLAIN_HTML, "<>", "p0 1|<>\n");
}

static void a_row_of_csv_is_a_block(void **state)
{
    assert_blocks(PLAIN_CSV, "name,note\npump,\"loud, hot\"\n\nfan,\n",
                  "r0 2|name: pump; note: loud, hot\nr0 4|name: fan\n");
}

static void what_is_no_text_is_refused(void **state)
{
    plain p = {0};
    shoal_err err = {0};
    assert_int_equal(plain_read(&p, PLAIN_TEXT, "a\0b", 3, "x.txt", NULL, &err), SHOAL_EFORMAT);
    assert_non_null(strstr(err.message, "x.txt is no text: byte 1"));
    assert_int_equal(plain_read(&p, PLAIN_HTML, "caf\xE9!", 5, "x.html", NULL, &err), SHOAL_EFORMAT);
    assert_non_null(strstr(err.message, "UTF-8: byte 3"));
    assert_int_equal(plain_read(&p, PLAIN_CSV, "a,b\n1\n", 6, "x.csv", NULL, &err), SHOAL_EFORMAT);
    plain_done(&p);
}

static void endings_tell_the_type(void **state)
{
    plain_type t;
    assert_true(plain_type_of("a/b.MD", &t) && t == PLAIN_MARKDOWN);
    assert_true(plain_type_of("page.htm", &t) && t == PLAIN_HTML);
    assert_false(plain_type_of("picture.png", &t));
    assert_false(plain_type_of("Makefile", &t));
    for (size_t i = 0; i < PLAIN_N_TYPES; i++)
        assert_true(plain_type_parse(plain_type_name((plain_type)i), &t) && t == (plain_type)i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paragraphs_end_at_blank_lines), cmocka_unit_test(markdown_has_headings_and_code),
        cmocka_unit_test(html_loses_its_tags),           cmocka_unit_test(broken_html_is_text_or_nothing),
        cmocka_unit_test(a_row_of_csv_is_a_block),       cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(endings_tell_the_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
