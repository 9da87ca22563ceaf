/* What templates can say beyond test_chat.c's basics: call, filter and with blocks, recursive loops, and the
 * filters, tests and methods that published templates use. Expected texts are those of Jinja 2, but that
 * tuples print as lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/progress.h"
#include "json/json.h"
#include "chat/chat.h"

/* The text or "ERROR: ..." is the caller's to free. */
static char *render(const char *source)
{
    static const char MESSAGES[] = "[{\"role\":\"user\",\"content\":\"Hi\",\"n\":{\"k\":2}},"
                                   "{\"role\":\"assistant\",\"content\":\"Yo\",\"n\":{\"k\":1}}]";
    chat_template *t = NULL;
    shoal_err err = {0};
    buf out = {0};
    json_t *m = NULL;
    assert_int_equal(json_parse(&m, MESSAGES, strlen(MESSAGES), "messages", &err), 0);
    int rc = chat_template_compile(&t, source, strlen(source), "t", &err);
    if (rc == 0)
        rc = chat_template_render(t, &(chat_input){.messages = m}, true, "<s>", "</s>", &out, NULL, &err);
    if (rc) buf_printf(&out, "ERROR: %s", err.message);
    buf_putc(&out, '\0');
    chat_template_free(t);
    json_decref(m);
    return buf_take(&out);
}

static void expect(const char *source, const char *want)
{
    char *got = render(source);
    if (strcmp(got, want)) fail_msg("template %s\n gave: %s\n want: %s", source, got, want);
    free(got);
}

static void prints(const char *expression, const char *want)
{
    char t[512];
    snprintf(t, sizeof t, "{{ %s }}", expression);
    expect(t, want);
}

static void call_blocks_give_their_body_to_the_macro(void **state)
{
    expect("{% macro box(t) %}[{{ t }}:{{ caller() }}]{% endmacro %}{% call box('a') %}in{% endcall %}.",
           "[a:in].");
    expect("{% macro each(xs) %}{% for x in xs %}{{ caller(x, loop.index) }};{% endfor %}{% endmacro %}"
           "{% set y = 'z' %}{% call(x, i=0) each([1, 2]) %}{{ y }}{{ x * i }}{% endcall %}",
           "z1;z4;");
    expect("{% macro m() %}{{ 'yes' if caller is defined else 'no' }}{% endmacro %}{{ m() }}"
           "{% call m() %}{% endcall %}",
           "noyes");
    expect("{% macro a() %}<{{ caller() }}>{% endmacro %}{% macro b() %}({% call a() %}{{ caller() }}"
           "{% endcall %}){% endmacro %}{% call b() %}x{% endcall %}",
           "(<x>)");
    expect(
        "{% macro a() %}{{ caller() }}{% endmacro %}{% for i in [1, 2] %}{% call a() %}{{ i }}{{ loop.last "
        "}}{% endcall %}{% endfor %}",
        "1False2True");
    expect("{% call 3 %}x{% endcall %}", "ERROR: t: line 1: \"call\" needs the call of a macro");
    expect("{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
           "ERROR: t: line 1: \"caller\" is no function");
}

static void blocks_filter_scope_and_quote(void **state)
{
    expect("{% filter upper | replace('A', 'o') %}a{{ 'b' }}{% endfilter %}c", "oBc");
    expect("{% set x = 1 %}{% with x = 2, y = x %}{{ x }}{{ y }}{% endwith %}{{ x }}", "221");
    expect("{% raw %}{{ x }}{% if %}{% endraw %}|{%- raw -%} a {%- endraw -%} b", "{{ x }}{% if %}|ab");
    expect("a{% raw %}b", "ERROR: t: line 1: a raw block has no end");
}

static void loops_know_their_place(void **state)
{
    expect("{% for x in 'aab' %}{{ loop.cycle('+', '-') }}{{ loop.changed(x) }}{{ loop.previtem is defined }}"
           "{{ loop.nextitem }} {% endfor %}",
           "+TrueFalsea -FalseTrueb +TrueTrue ");
    expect("{% for x in [1, [2, [3]], 4] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}"
           "{{ loop.depth }}{{ x }}{{ loop.depth0 }} {% endif %}{% endfor %}",
           "110 (221 (332 ))140 ");
    expect("{% for x in [[]] %}{{ loop(x) }}{% endfor %}",
           "ERROR: t: line 1: loop() is called in a loop that is not \"recursive\"");
    expect("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
           "ERROR: t: line 1: the template nests too deep");
    expect("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}", "a1");
}

static void filters_choose_sort_and_group(void **state)
{
    prints("{'b': 1, 'A': 2} | dictsort", "[['A', 2], ['b', 1]]");
    prints("{'b': 1, 'A': 2} | dictsort(by='value')", "[['b', 1], ['A', 2]]");
    prints("['b', 'A', 'B'] | unique | join", "bA");
    prints("messages | sort(attribute='n.k') | map(attribute='content') | join(',')", "Yo,Hi");
    prints("messages | map(attribute='n.k') | sum", "3");
    prints("[1, 2, 3] | batch(2) | list", "[[1, 2], [3]]");
    prints("[1, 2, 3] | batch(2, 0) | list", "[[1, 2], [3, 0]]");
    prints("[3, 1, 2] | max ~ ['b', 'a'] | min", "3a");
    prints("messages | selectattr('n.k', 'ge', 2) | map(attribute='role') | list", "['user']");
    prints("[1, 2, 3] | select('in', [1, 3]) | reject('odd') | list", "[]");
    prints("'a b  c' | wordcount ~ '%s-%s' | format(1, 'x')", "31-x");
    prints("'ab' | center(6)", "  ab  ");
    prints("'one two three' | truncate(9, leeway=0)", "one...");
    prints("messages[0] | attr('role')", "user");
    expect("{% for g in messages | groupby('role') %}{{ g.grouper }}={{ g.list | length }};{% endfor %}"
           "{% for k, l in messages | groupby('n.k') %}{{ k }}{{ l[0].content }}{% endfor %}",
           "assistant=1;user=1;1Yo2Hi");
}

static void tojson_writes_as_asked(void **state)
{
    prints("{'a': [1, 'é'], 'b': {}} | tojson(separators=(',', ':'))", "{\"a\":[1,\"é\"],\"b\":{}}");
    prints("'é😀' | tojson(ensure_ascii=true)", "\"\\u00e9\\ud83d\\ude00\"");
    prints("{'a': {'b': [1]}} | tojson(indent=4)",
           "{\n    \"a\": {\n        \"b\": [\n            1\n        ]\n    }\n}");
    prints("{'b': {'d': 1, 'c': 2}, 'B': [{'z': 0, 'a': none}], 'a': 3} | tojson(sort_keys=true)",
           "{\"B\": [{\"a\": null, \"z\": 0}], \"a\": 3, \"b\": {\"c\": 2, \"d\": 1}}");
    prints("{'b': 1, 'a': 2} | tojson(sort_keys=false)", "{\"b\": 1, \"a\": 2}");
}

static void tests_tell_kinds_and_places(void **state)
{
    prints("'ell' is in 'hello' and 2 is in [1, 2] and 3 is not in [1]", "True");
    prints("true is sameas true and 1 is not sameas true and none is sameas(none)", "True");
    prints("messages is sequence and messages is not mapping and messages[0] is mapping and 'x' is string",
           "True");
    prints("'AB' is upper and 'ab' is lower and 3 is number and 2.5 is float and x is not callable", "True");
    prints("messages[0].tool_calls is not defined and (messages[0].x is none) == false", "True");
}

static void strings_have_pythons_methods(void **state)
{
    prints("'a::b::c'.split('::', 1) ~ 'a::b::c'.rsplit('::', 1)", "['a', 'b::c']['a::b', 'c']");
    prints("'k=v=w'.partition('=') | list ~ ('k=v=w'.rpartition('=') | list)",
           "['k', '=', 'v=w']['k=v', '=', 'w']");
    prints("'<think>a</think>b'.split('</think>')[-1].lstrip('\\n')", "b");
    prints("'abcabc'.rfind('bc') ~ 'abc'.index('c') ~ 'aXbX'.count('X')", "422");
    prints("'v1'.removeprefix('v').isdigit() and 'ab'.isalpha() and 'AB'.isupper() and not '1'.isupper()",
           "True");
    prints("'7'.zfill(3) ~ 'a'.ljust(3, '.') ~ 'a'.rjust(2)", "007a.. a");
    prints("'{} and {1} {x} {{}}'.format('a', 'b', x=3)", "a and b 3 {}");
    prints("'%s is %d%% of %.2f' % ('x', 5, 1.5)", "x is 5% of 1.50");
    prints("'x'.startswith(('a', 'x')) and 'file.md'.endswith('.md')", "True");
    prints("'héllo wörld'.title() ~ 'ab'.capitalize()", "Héllo WörldAb");
    prints("'{' .format()", "ERROR: t: line 1: format knows {}, {0} and {name} only");
    prints("'%s' % ()", "ERROR: t: line 1: a format has more places than values");
}

static void templates_stand_alone(void **state)
{
    static const char *const words[] = {"include", "import", "extends", "from"};
    for (size_t i = 0; i < 4; i++) {
        char source[64], want[160];
        snprintf(source, sizeof source, "\n{%% %s 'x' %%}", words[i]);
        snprintf(want, sizeof want,
                 "ERROR: t: line 2: \"%s\" reads another template, and a chat template stands alone: put its "
                 "text here",
                 words[i]);
        expect(source, want);
    }
    expect("{% block a %}{% endblock %}", "ERROR: t: line 1: statement \"block\" is not supported");
}

static void a_sign_binds_before_filters_and_powers(void **state)
{
    prints("-1 | abs", "1");
    prints("- 2 ** 2", "4");
    prints("2 ** 3 ** 2", "64");
    prints("-{'a': 3}.a", "-3");
    prints("- -1", "1");
    prints("+2 | string", "2");
    prints("3 - -1 | abs", "2");
}

static void items_of_items_are_reached_by_numbers(void **state)
{
    expect("{% set m = [[1, [2, 3]], 4] %}{{ m.0.1.1 }}{{ m.1 }}{{ m.0.0 + 0.5 }}", "341.5");
}

static void filters_of_lists_give_nothing_for_none(void **state)
{
    prints("none | selectattr('a') | list", "[]");
    prints("none | rejectattr('a', 'equalto', 1) | list", "[]");
    prints("none | select | list", "[]");
    prints("0 | reject | list", "[]");
    prints("none | map(attribute='a') | list", "[]");
    prints("none | unique | list", "ERROR: t: line 1: none cannot be iterated over");
    prints("[none, none] | sort", "[None, None]");
}

static void lists_are_spread_over_arguments(void **state)
{
    expect("{% macro m(a, b, c=0) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}"
           "{{ m(*[1, 2]) }} {{ m(1, *[2], c=3) }} {{ m(*'xy') }} {{ 'a{}b{}'.format(*[1, 2]) }}",
           "1-2-0 1-2-3 x-y-0 a1b2");
    prints("range(*[1, 3]) | list", "[1, 2]");
    prints("range(*[1,2,3,4,5,6,7,8,9,10,11,12,13])", "ERROR: t: line 1: more than 12 arguments");
    prints("range(*1)", "ERROR: t: line 1: an integer cannot be iterated over");
}

static void floats_print_as_pythons_repr(void **state)
{
    prints("[100.0, 1000.0, 12345.0, 1e15, 1e16]", "[100.0, 1000.0, 12345.0, 1000000000000000.0, 1e+16]");
    prints("[0.1, 0.3, 2.5e-05, 5e-324, 1.7976931348623157e308]",
           "[0.1, 0.3, 2.5e-05, 5e-324, 1.7976931348623157e+308]");
}

/* The agent kills a worker that computes for half a second and counts nothing. */
static void counts(const char *source, uint64_t n)
{
    uint64_t before = progress_count();
    free(render(source));
    if (progress_count() - before < n) fail_msg("%s counts nothing", source);
}

static void long_values_count_as_progress(void **state)
{
    counts("{% for i in range(10) %}{{ ('<' * 900000) | tojson | length }}{% endfor %}", 8);
    counts("{% for i in range(1000) %}{{ ('ab' * 9000) | replace('b', 'c') | length }}{% endfor %}", 8);
    counts("{{ range(20000) | map('float') | list | string | length }}", 8);
    counts("{% for i in range(40) %}{{ ('a' * 900000) == ('a' * 900000) }}{% endfor %}", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_blocks_give_their_body_to_the_macro),
        cmocka_unit_test(blocks_filter_scope_and_quote),
        cmocka_unit_test(loops_know_their_place),
        cmocka_unit_test(filters_choose_sort_and_group),
        cmocka_unit_test(tojson_writes_as_asked),
        cmocka_unit_test(tests_tell_kinds_and_places),
        cmocka_unit_test(strings_have_pythons_methods),
        cmocka_unit_test(templates_stand_alone),
        cmocka_unit_test(a_sign_binds_before_filters_and_powers),
        cmocka_unit_test(items_of_items_are_reached_by_numbers),
        cmocka_unit_test(filters_of_lists_give_nothing_for_none),
        cmocka_unit_test(lists_are_spread_over_arguments),
        cmocka_unit_test(floats_print_as_pythons_repr),
        cmocka_unit_test(long_values_count_as_progress),
    };
    return cmocka_run_group_tests_name("jinja", tests, NULL, NULL);
}
