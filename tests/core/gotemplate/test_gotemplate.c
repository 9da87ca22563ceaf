/* Templates of Ollama that are refused, with the line and the reason, and what is noted of those that are
 * not. What they render is in tests/engine/chat/test_gotemplate.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gotemplate/gotemplate.h"

static void refuses(const char *source, int code, const char *why)
{
    shoal_err err = {0};
    buf out = {0};
    buf_puts(&out, "kept");
    int rc = gotemplate_to_jinja(&out, source, strlen(source), NULL, &err);
    if (rc != code || strcmp(err.message, why) != 0)
        fail_msg("%s\n gave: %d %s\n want: %s", source, rc, err.message, why);
    assert_string_equal(out.data, "kept");
    buf_done(&out);
}

static void wrong(const char *source, const char *why)
{
    refuses(source, SHOAL_EINVALID, why);
}

static void errors_name_line_and_reason(void **state)
{
    wrong("a\n{{ .Role", "line 2: an action has no end: \"}}\" is missing");
    wrong("{{ if .A }}\n\n{{ range .B }}{{ end }}", "line 1: this block has no \"end\"");
    wrong("a\nb{{ end }}", "line 2: an \"end\" that belongs to nothing");
    wrong("{{ else }}", "line 1: an \"else\" that belongs to nothing");
    wrong("{{ if 1 }}{{ else }}{{ else }}{{ end }}", "line 1: an \"else\" that belongs to nothing");
    wrong("{{ if }}{{ end }}", "line 1: a value is missing before \"}}\"");
    wrong("{{ }}", "line 1: a value is missing before \"}}\"");
    wrong("{{ range 1 }}{{ end }}{{ break }}", "line 1: \"break\" stands in no range");
    wrong("{{ range 1 }}{{ else }}{{ continue }}{{ end }}", "line 1: \"continue\" stands in no range");
    wrong("{{ if 1 }}{{ else with 2 }}{{ end }}", "line 1: \"with\" cannot stand behind \"else\"");
    wrong("{{ end .X }}", "line 1: \".X\" cannot stand behind \"end\"");
    wrong("{{/* a */ }}", "line 1: \"}}\" is missing directly behind a comment");
    wrong("a{{/* b", "line 1: a comment has no end");
    wrong("a\n{{/*/}}", "line 2: a comment has no end");
}

static void expressions_that_are_none_are_refused(void **state)
{
    wrong("{{ upper .Role }}", "line 1: there is no function \"upper\"");
    wrong("{{ $x }}", "line 1: the variable \"$x\" is not declared here");
    wrong("{{ if 1 }}{{ $x := 1 }}{{ end }}\n{{ $x }}", "line 2: the variable \"$x\" is not declared here");
    wrong("{{ $x = 1 }}", "line 1: the variable \"$x\" is set before it is declared by \":=\"");
    wrong("{{ $x, $y := .A }}", "line 1: only a range has two variables");
    wrong("{{ range $i, $x .A }}{{ end }}", "line 1: \":=\" is missing behind the variables");
    wrong("{{ eq .A }}", "line 1: \"eq\" cannot have 1 argument");
    wrong("{{ .A .B }}", "line 1: \".A\" is no function, and \".B\" cannot follow it");
    wrong("{{ 1 | .A }}", "line 1: \".A\" is no function, and nothing can be piped to it");
    wrong("{{ eq (.A 1 }}", "line 1: \".A\" is no function, and a number cannot follow it");
    wrong("{{ (not .A }}", "line 1: \")\" is missing");
    wrong("{{ not .A) }}", "line 1: a \")\" has no \"(\"");
    wrong("{{ eq \"a\"\"b\" }}", "line 1: a string cannot stand here");
    wrong("{{ \"a }}", "line 1: a string has no end");
    wrong("{{ `a }}", "line 1: a string has no end");
    wrong("{{ \"\\q\" }}", "line 1: a string has an unknown escape \"\\q\"");
    wrong("{{ \"\\xff\" }}", "line 1: a string's escapes make no text");
    wrong("{{ 'ab' }}", "line 1: a character in single quotes must be one; a text has double quotes");
    wrong("{{ 1x }}", "line 1: this is no number");
    wrong("{{ .A? }}", "line 1: \"?\" cannot follow a name");
    wrong("{{ ? }}", "line 1: an unexpected character in an action: \"?\"");
    wrong("{{ nil }}", "line 1: nil is no command");
}

static void what_is_not_offered_is_named(void **state)
{
    refuses("{{ define \"a\" }}{{ end }}", SHOAL_EUNSUPPORTED,
            "line 1: \"define\" is not offered: write its text where it is used");
    refuses("\n{{ template \"a\" . }}", SHOAL_EUNSUPPORTED,
            "line 2: \"template\" is not offered: write its text where it is used");
    refuses("{{ block \"a\" . }}{{ end }}", SHOAL_EUNSUPPORTED,
            "line 1: \"block\" is not offered: write its text where it is used");
    refuses("{{ html .A }}", SHOAL_EUNSUPPORTED, "line 1: the function \"html\" is not offered");
}

static void repeat(buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) buf_puts(out, s);
}

static int try(const buf *source, shoal_err *err)
{
    buf out = {0};
    int rc = gotemplate_to_jinja(&out, source->data, source->len, NULL, err);
    buf_done(&out);
    return rc;
}

/* begin n times, then end as often. */
static void nests(const char *begin, const char *end, size_t n, int code)
{
    buf source = {0};
    shoal_err err = {0};
    repeat(&source, begin, n);
    repeat(&source, end, n);
    int rc = try(&source, &err);
    if (rc != code) fail_msg("%zu of %s: %d %s", n, begin, rc, err.message);
    buf_done(&source);
}

static void size_and_nesting_are_bounded(void **state)
{
    buf source = {0};
    shoal_err err = {0};
    nests("{{ if 1 }}", "{{ end }}", GOTEMPLATE_MAX_DEPTH, 0);
    nests("{{ if 1 }}", "{{ end }}", GOTEMPLATE_MAX_DEPTH + 1, SHOAL_ELIMIT);
    nests("{{ if 1 }}{{ else if 2 }}", "{{ end }}", GOTEMPLATE_MAX_DEPTH / 2, 0);
    nests("{{ if 1 }}{{ else if 2 }}", "{{ end }}", GOTEMPLATE_MAX_DEPTH / 2 + 1, SHOAL_ELIMIT);
    buf_puts(&source, "{{ ");
    repeat(&source, "not (", GOTEMPLATE_MAX_DEPTH / GOTEMPLATE_PAREN + 1);
    assert_int_equal(try(&source, &err), SHOAL_ELIMIT);
    assert_string_equal(err.message, "line 1: this nests too deep");
    buf_clear(&source);
    repeat(&source, "x", GOTEMPLATE_MAX_BYTES);
    assert_int_equal(try(&source, &err), 0);
    buf_putc(&source, 'x');
    assert_int_equal(try(&source, &err), SHOAL_ELIMIT);
    assert_string_equal(err.message, "it has 65537 bytes, and at most 65536 are taken");
    buf_clear(&source);
    buf_puts(&source, "{{ .A.B.C.D.E.F.G.H.I }}");
    assert_int_equal(try(&source, &err), SHOAL_ELIMIT);
    buf_clear(&source);
    buf_puts(&source, "{{ and");
    repeat(&source, " 1", GOTEMPLATE_MAX_ARGS + 1);
    buf_puts(&source, " }}");
    assert_int_equal(try(&source, &err), SHOAL_ELIMIT);
    buf_done(&source);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    shoal_err err = {0};
    buf out = {0};
    assert_int_equal(gotemplate_to_jinja(&out, "a\nb\0c", 5, NULL, &err), SHOAL_EINVALID);
    assert_string_equal(err.message, "line 2: this is no text in UTF-8");
    assert_int_equal(gotemplate_to_jinja(&out, "\n\n\xff", 3, NULL, &err), SHOAL_EINVALID);
    assert_string_equal(err.message, "line 3: this is no text in UTF-8");
    assert_int_equal(gotemplate_to_jinja(&out, NULL, 0, NULL, &err), 0);
    buf_done(&out);
}

static gotemplate_uses uses_of(const char *source)
{
    gotemplate_uses uses;
    buf out = {0};
    assert_int_equal(gotemplate_to_jinja(&out, source, strlen(source), &uses, NULL), 0);
    buf_done(&out);
    return uses;
}

static void what_a_template_looks_at_is_told(void **state)
{
    gotemplate_uses u = uses_of("{{ range .Messages }}{{ .Content }}{{ range $.Tools }}{{ end }}{{ end }}");
    assert_true(u.messages && u.tools && !u.thinking && !u.suffix && !u.response);
    u = uses_of(
        "{{ if .Suffix }}{{ .Prompt }}{{ end }}{{ if and .IsThinkSet .Think }}{{ end }}{{ .Response }}");
    assert_true(!u.messages && !u.tools && u.thinking && u.suffix && u.response);
    assert_false(uses_of("{{/* .Messages */}}.Tools").messages);
}

static void lines_stay_those_of_the_template(void **state)
{
    buf out = {0};
    const char source[] = "a\n{{- if 1 -}}\n\n  b\n{{/* c\n */ -}}\n{{ .X }}{{ end }}";
    int line = 1;
    assert_int_equal(gotemplate_to_jinja(&out, source, strlen(source), NULL, NULL), 0);
    const char *at = strstr(out.data, "'X'");
    for (const char *s = out.data; s < at; s++) line += *s == '\n';
    assert_int_equal(line, 7);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_name_line_and_reason),
        cmocka_unit_test(expressions_that_are_none_are_refused),
        cmocka_unit_test(what_is_not_offered_is_named),
        cmocka_unit_test(size_and_nesting_are_bounded),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(what_a_template_looks_at_is_told),
        cmocka_unit_test(lines_stay_those_of_the_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
