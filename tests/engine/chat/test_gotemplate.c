/* Templates of Ollama as they are rendered: translated, compiled and run. Expected texts are those of
 * Ollama 0.12.6 (its package template), which was run over the same templates and messages; mistakes and
 * bounds are ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chat/chat.h"
#include "gotemplate/gotemplate.h"
#include "json/json.h"

static const char TALK[] =
    "[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"Hi\"},"
    "{\"role\":\"assistant\",\"content\":\"Hello!\"},{\"role\":\"user\",\"content\":\"<b> & \\\"q\\\"\"}]";
static const char CALLS[] = "[{\"role\":\"user\",\"content\":\"Weather?\"},{\"role\":\"assistant\","
                            "\"content\":\"\",\"tool_calls\":[{\"id\":\"c1\","
                            "\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":{"
                            "\"city\":\"K\\u00f6ln\",\"days\":2,"
                            "\"at\":{\"z\":1000000,\"a\":[true,null,0.00001]}}}}]},"
                            "{\"role\":\"tool\",\"content\":\"3\",\"tool_call_id\":\"c1\"}]";
static const char TOOLS[] = "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":"
                            "\"Weather <now>\",\"parameters\":"
                            "{\"type\":\"object\",\"properties\":{\"days\":{\"type\":[\"integer\",\"null\"]},"
                            "\"city\":{\"type\":\"string\","
                            "\"enum\":[\"a\",1]}},\"required\":[\"city\"]}}},"
                            "{\"type\":\"function\",\"function\":{\"name\":\"stop\"}}]";

static json_t *parsed(const char *text)
{
    json_t *v = NULL;
    if (text) assert_int_equal(json_parse(&v, text, strlen(text), "test", NULL), 0);
    return v;
}

/* The text or "ERROR: ...", and the marks where they are asked for; the caller's. */
static char *render(const char *source, const char *messages, const char *tools, const char *kwargs,
                    buf *marks)
{
    chat_template *t = NULL;
    shoal_err err = {0};
    buf out = {0};
    json_t *m = parsed(messages), *f = parsed(tools), *k = parsed(kwargs);
    int rc = chat_template_compile_go(&t, source, strlen(source), "t", &err);
    if (rc == 0)
        rc = chat_template_render(t, &(chat_input){.messages = m, .tools = f, .kwargs = k}, true, "", "",
                                  &out, marks, &err);
    if (rc) buf_printf(&out, "ERROR: %s", err.message);
    buf_putc(&out, '\0');
    chat_template_free(t);
    json_decref(m);
    json_decref(f);
    json_decref(k);
    return buf_take(&out);
}

static void gives(const char *source, const char *messages, const char *tools, const char *kwargs,
                  const char *want)
{
    char *got = render(source, messages, tools, kwargs, NULL);
    if (strcmp(got, want)) fail_msg("template %s\n gave: %s\n want: %s", source, got, want);
    free(got);
}

/* An action, of a template that reads messages. */
static void prints(const char *pipeline, const char *want)
{
    char source[512];
    snprintf(source, sizeof source, "{{ if .Messages }}{{ end }}{{ %s }}", pipeline);
    gives(source, TALK, NULL, NULL, want);
}

static void messages_are_gone_through(void **state)
{
    gives("{{- range $i, $m := .Messages }}\n{{ $i }}:{{ .Role }}={{ $m.Content }}\n{{- else }}none{{ end "
          "-}} !\n",
          TALK, NULL, NULL, "\n0:system=Be brief.\n1:user=Hi\n2:assistant=Hello!\n3:user=<b> & \"q\"!\n");
    gives("{{ range .Messages }}a{{ else }}none{{ end }}", "[]", NULL, NULL, "none");
    gives("{{ range .Messages }}{{ if eq .Role \"system\" }}{{ continue }}{{ else if eq .Role \"tool\" "
          "\"assistant\" }}"
          "{{ break }}{{ end }}[{{ .Content }}]{{ end }}",
          TALK, NULL, NULL, "[Hi]");
    gives("{{ $last := \"\" }}{{ range $i, $_ := .Messages }}{{ if eq (len (slice $.Messages $i)) 1 }}{{ "
          "$last = .Content }}"
          "{{ end }}{{ end }}{{ .System }}|{{ $last }}",
          TALK, NULL, NULL, "Be brief.|<b> & \"q\"");
    gives("{{ with $x := .System }}{{ . }}{{ $x }}{{ else }}no{{ end }}{{ with .Missing }}a{{ else with "
          ".Messages }}{{ len . "
          "}}{{ end }}{{ with \"\" }}b{{ else }}{{ len .Messages }}{{ end }}",
          TALK, NULL, NULL, "Be brief.Be brief.44");
}

/* Ollama makes one message of those in a row, but for the results of tools. */
static void messages_of_one_role_are_one(void **state)
{
    gives("{{ range .Messages }}{{ .Role }}({{ .Content }}){{ end }} {{ .System }}",
          "[{\"role\":\"system\",\"content\":\"a\"},{\"role\":\"developer\",\"content\":\"b\"},{\"role\":"
          "\"user\",\"content\":"
          "[{\"type\":\"text\",\"text\":\"c\"},{\"type\":\"text\",\"text\":\"d\"}]},{\"role\":\"user\","
          "\"content\":\"e\"},"
          "{\"role\":\"tool\",\"content\":\"f\"},{\"role\":\"tool\",\"content\":\"g\"},{\"role\":\"system\","
          "\"content\":\"h\"}]",
          NULL, NULL, "system(a\n\nb)user(cd\n\ne)tool(f)tool(g)system(h) a\n\nb\n\nh");
}

static void white_space_goes_where_a_dash_says_so(void **state)
{
    gives("a {{- \"b\" }} c\n{{- /* d\n e */ -}}\n f {{ \"g\" -}}\t\nh{{ \"}}\" }}{{ `{{\\n` }}{%i%}", TALK,
          NULL, NULL, "ab cf gh}}{{\\n{%i%}Hello!ab cf gh}}{{\\n{%i%}");
    gives("{{\"\\u00e9\\t\\x41\\101\\\"\"}}{{'a'}}{{- -3 -}}{{0x1F}}{{1_000}}{{1.5e3}}{{ true }}{{ .Messages "
          "| len }}",
          TALK, NULL, NULL, "\xc3\xa9\tAA\"97-33110001500true4");
}

static void functions_are_those_of_go(void **state)
{
    prints("and 1 \"\" 2", "");
    prints("or 0 \"\" .Missing 2", "2");
    prints("not (and .System .Missing)", "true");
    prints("eq 3 1 2 3", "true");
    prints("and (ne 1 2) (lt 1 2) (le 2 2) (gt \"b\" \"a\") (ge 1.5 1.5)", "true");
    prints("len \"\xc3\xa9\"", "2");
    prints("index .Messages 1 | json", "{\"role\":\"user\",\"content\":\"Hi\"}");
    prints("(index .Messages 3).Content | json", "\"\\u003cb\\u003e \\u0026 \\\"q\\\"\"");
    prints("slice \"abcdef\" 1 3", "bc");
    prints("index \"abc\" 1", "98");
    prints("printf \"%s|%d|%5d|%-5s|%05d|%.2f|%q|%t|%v|%%\" \"a\" 1 2 \"b\" -3 1.5 \"c\\n\" true .Missing",
           "a|1|    2|b    |-0003|1.50|\"c\\n\"|true|<nil>|%");
    prints("printf \"%s %d\" 1 \"a\"", "%!s(int=1) %!d(string=a)");
    prints("print 1 2 \"a\" 3", "1 2a3");
    prints("println \"a\" 1", "a 1\n");
    prints(".System | printf \"%s-%s\" \"a\" | len", "11");
    prints(".Missing", "<no value>");
    prints("range 3 }}{{ . }}{{ end", "012");
    prints("len (currentDate)", "10");
}

static void mistakes_of_a_run_name_the_line(void **state)
{
    gives("{{ range .Messages }}\n{{ .Contents }}{{ end }}", TALK, NULL, NULL,
          "ERROR: t: line 2: this has no field \".Contents\"");
    gives("{{ range .Messages }}\n\n{{ .Content.X }}{{ end }}", TALK, NULL, NULL,
          "ERROR: t: line 3: a string has no field \".X\"");
    prints("index .Messages 9", "ERROR: t: line 1: an index is not within 0 to 4");
    prints("slice .Messages 2 1", "ERROR: t: line 1: a slice ends before it begins");
    prints("lt 1 \"a\"", "ERROR: t: line 1: an integer and a string have no order");
    prints("len 1", "ERROR: t: line 1: an integer has no length");
    prints("range .System }}{{ end", "ERROR: t: line 1: a range cannot go over a string");
    prints("printf \"%d\"", "ERROR: t: line 1: printf has more places than values");
}

static void tools_are_written_as_ollama_does(void **state)
{
    gives("{{ range .Messages }}{{ end }}{{ .Tools }}", CALLS, TOOLS, NULL,
          "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":\"Weather "
          "\\u003cnow\\u003e\","
          "\"parameters\":{\"type\":\"object\",\"required\":[\"city\"],\"properties\":{\"city\":{\"type\":"
          "\"string\",\"enum\":"
          "[\"a\",1]},\"days\":{\"type\":[\"integer\",\"null\"]}}}}},{\"type\":\"function\",\"function\":{"
          "\"name\":\"stop\","
          "\"parameters\":{\"type\":\"\",\"required\":null,\"properties\":null}}}]");
    gives("{{ range .Messages }}{{ end }}{{ range .Tools }}{{ .Function.Name }}{{ range $k, $p := "
          ".Function.Parameters.Properties }} {{ $k }}:{{ $p.Type }}:{{ $p.Enum }}:{{ toTypeScriptType $p "
          "}}{{ else }} no{{ end "
          "}} {{ .Function.Parameters.Required }};{{ end }}",
          CALLS, TOOLS, NULL,
          "get_weather city:string:[a 1]:string days:[integer null]:[]:number | null [city];stop no [];");
}

static void calls_are_written_as_ollama_does(void **state)
{
    gives("{{ range .Messages }}{{ range .ToolCalls }}{{ .Function.Index }} {{ .Function.Name }} {{ "
          ".Function.Arguments }}\n"
          "{{ range $k, $v := .Function.Arguments }}{{ $k }}={{ $v }} {{ end }}{{ json "
          ".Function.Arguments.days }}{{ end }}"
          "{{ if .ToolName }} {{ .ToolName }}: {{ .Content }}{{ end }}{{ end }}",
          CALLS, NULL, NULL,
          "0 get_weather "
          "{\"at\":{\"a\":[true,null,0.00001],\"z\":1000000},\"city\":\"K\xc3\xb6ln\",\"days\":2}\n"
          "at=map[a:[true <nil> 1e-05] z:1e+06] city=K\xc3\xb6ln days=2 2 get_weather: 3");
}

static void thinking_is_told(void **state)
{
    static const char SOURCE[] =
        "{{ range .Messages }}{{ .Thinking }}{{ end }}{{ .IsThinkSet }} {{ .Think }} {{ .ThinkLevel }}";
    static const char THOUGHT[] =
        "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\","
        "\"reasoning_content\":\"hm \"}]";
    gives(SOURCE, THOUGHT, NULL, NULL, "hm false false ");
    gives(SOURCE, THOUGHT, NULL, "{\"enable_thinking\":false}", "hm true false ");
    gives(SOURCE, THOUGHT, NULL, "{\"enable_thinking\":true,\"reasoning_effort\":\"high\"}",
          "hm true true high");
}

/* Without .Messages a template is one turn, and the last one ends where the model goes on. */
static void a_template_of_a_turn_is_run_for_each(void **state)
{
    static const char SOURCE[] =
        "{{ if .System }}[{{ .System }}] {{ end }}U: {{ .Prompt }} A: {{ .Response }}</s>\n";
    gives(SOURCE, TALK, NULL, NULL, "[Be brief.] U: Hi A: Hello!</s>\nU: <b> & \"q\" A: ");
    gives("{{ .Prompt }}", TALK, NULL, NULL, "HiHello!<b> & \"q\"");
    gives("{{ if .Prompt }}{{ if .System }}{{ .System }} {{ end }}{{ .Prompt }}>{{ .Response }}</s>{{ end "
          "}}tail",
          TALK, NULL, NULL, "Be brief. Hi>Hello!</s>tail<b> & \"q\">");
    gives("{{ .Prompt }}>{{ if .Response }}{{ .Response }}</s>{{ end }}{{ .Prompt }};", TALK, NULL, NULL,
          "Hi>Hello!</s>Hi;<b> & \"q\">");
    gives("{{ range 2 }}{{ . }}{{ $.Prompt }}{{ .Response }}{{ end }}", "[]", NULL, NULL,
          "ERROR: t: line 1: an integer has no field \".Response\"");
    gives("{{ .Prompt }}{{ .Response }}.",
          "[{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"},"
          "{\"role\":\"system\",\"content\":\"c\"},{\"role\":\"user\",\"content\":\"d\"}]",
          NULL, NULL, "a.b.d");
}

static void text_is_written_between(void **state)
{
    static const char SOURCE[] =
        "{{ if .Suffix }}<P>{{ .Prompt }}<S>{{ .Suffix }}<M>{{ else }}{{ .Prompt }}{{ end }}";
    static const char ONE[] = "[{\"role\":\"user\",\"content\":\"def f(\"}]";
    gives(SOURCE, ONE, NULL, "{\"suffix\":\"return\"}", "<P>def f(<S>return<M>");
    gives(SOURCE, ONE, NULL, NULL, "def f(");
}

/* Only what the template wrote can become a control token. */
static void what_the_request_brought_stays_marked(void **state)
{
    buf marks = {0};
    char *text = render(
        "<u>{{ range .Messages }}{{ printf \"(%s)\" .Content }}{{ slice .Content 1 }}{{ json .Content }}"
        "{{ end }}{{ .System }}",
        "[{\"role\":\"system\",\"content\":\"<u>\"}]", NULL, NULL, &marks);
    assert_string_equal(text, "<u>(<u>)u>\"\\u003cu\\u003e\"<u>");
    assert_int_equal(marks.len, strlen(text));
    for (size_t i = 0; i < marks.len; i++) {
        bool own = i < 4 || i == 7 || i == 10 || i == 24;
        if (marks.data[i] == own) fail_msg("byte %zu of %s is marked %d", i, text, marks.data[i]);
    }
    free(text);
    buf_done(&marks);
}

static void runs_are_bounded(void **state)
{
    gives("{{ range 2000 }}{{ range 2000 }}{{ end }}{{ end }}", TALK, NULL, NULL,
          "ERROR: t: line 1: the template needs more than 67108864 bytes");
    gives("{{ $x := \"0123456789\" }}{{ range 30 }}{{ $x = print $x $x }}{{ end }}", TALK, NULL, NULL,
          "ERROR: t: line 1: a value is too long or too deep to print");
    gives("{{ $x := \"0123456789\" }}{{ range 20 }}{{ $x = print $x $x }}{{ end }}{{ $x }}", TALK, NULL, NULL,
          "ERROR: t: line 1: the template prints more than 4194304 bytes");
    gives("{{ range 99999999 }}{{ end }}", TALK, NULL, NULL, "ERROR: t: line 1: a range is too long");
}

/* What is as deep as the translator lets it be still compiles. */
static void the_deepest_template_compiles(void **state)
{
    buf source = {0};
    for (int i = 0; i < GOTEMPLATE_MAX_DEPTH - 3 * GOTEMPLATE_PAREN; i++) buf_puts(&source, "{{ if 1 }}");
    buf_puts(&source, "{{ eq (eq (eq (not true) 1 2) 3 4) 5 6 }}");
    for (int i = 0; i < GOTEMPLATE_MAX_DEPTH - 3 * GOTEMPLATE_PAREN; i++) buf_puts(&source, "{{ end }}");
    gives(source.data, TALK, NULL, NULL, "falseHello!false");
    buf_clear(&source);
    buf_puts(&source, "{{ with $x := ");
    for (int i = 0; i < GOTEMPLATE_MAX_DEPTH / GOTEMPLATE_PAREN - 1; i++) buf_puts(&source, "eq 1 2 (not (");
    gives(source.data, TALK, NULL, NULL, "ERROR: t: line 1: this nests too deep");
    buf_clear(&source);
    buf_puts(&source, "{{ with $x := ");
    for (int i = 0; i < GOTEMPLATE_MAX_DEPTH / GOTEMPLATE_PAREN - 1; i++) buf_puts(&source, "eq 1 2 (");
    buf_puts(&source, "1");
    for (int i = 0; i < GOTEMPLATE_MAX_DEPTH / GOTEMPLATE_PAREN - 1; i++) buf_puts(&source, ")");
    buf_puts(&source, " }}{{ end }}");
    gives(source.data, TALK, NULL, NULL, "Hello!");
    buf_done(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_gone_through),
        cmocka_unit_test(messages_of_one_role_are_one),
        cmocka_unit_test(white_space_goes_where_a_dash_says_so),
        cmocka_unit_test(functions_are_those_of_go),
        cmocka_unit_test(mistakes_of_a_run_name_the_line),
        cmocka_unit_test(tools_are_written_as_ollama_does),
        cmocka_unit_test(calls_are_written_as_ollama_does),
        cmocka_unit_test(thinking_is_told),
        cmocka_unit_test(a_template_of_a_turn_is_run_for_each),
        cmocka_unit_test(text_is_written_between),
        cmocka_unit_test(what_the_request_brought_stays_marked),
        cmocka_unit_test(runs_are_bounded),
        cmocka_unit_test(the_deepest_template_compiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
