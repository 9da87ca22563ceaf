#include "helper.h"

#include "nlu/phrase.h"

/* One pattern and a text of words, digits (numbers), "5m" (durations), "Name" (devices), on/off (states). */
typedef struct bench {
    arena *a;
    yaml_doc *d;
    phrase_list list;
    unit u[UNITS_MAX];
    size_t n;
} bench;

static void open_bench(bench *t, const char *patterns)
{
    shoal_err err = {0};
    *t = (bench){.a = arena_new(0)};
    if (yaml_parse(&t->d, patterns, strlen(patterns), "p.yaml", &err)) fail_msg("%s", err.message);
    if (phrase_list_read(&t->list, t->d, yaml_root(t->d), t->a, &err)) fail_msg("%s", err.message);
}

static void close_bench(bench *t)
{
    yaml_doc_free(t->d);
    arena_free(t->a);
}

static void say(bench *t, const char *text)
{
    char *copy = arena_strdup(t->a, text), *save = NULL;
    t->n = 0;
    for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        unit u = unit_of_word(s, false);
        if (*s >= '0' && *s <= '9') u.kind = strchr(s, 'm') ? UNIT_DURATION : UNIT_NUMBER;
        if (*s >= 'A' && *s <= 'Z') u.kind = UNIT_DEVICE;
        if (strlen(s) == 1 && strchr(",?!", *s)) u.kind = UNIT_SIGN;
        if (strchr(s, '%')) u.measure = "%";
        u.state = strcmp(s, "on") == 0 || strcmp(s, "off") == 0;
        t->u[t->n++] = u;
    }
}

/* What the pattern uses of the text, as '#' and '-'. */
static const char *match(const char *pattern, const char *text, bool at_start)
{
    static char out[UNITS_MAX + 1];
    bench t;
    open_bench(&t, pattern);
    say(&t, text);
    unit_set used = phrase_match(&t.list.at[0], t.u, 0, t.n, 0, at_start);
    for (size_t i = 0; i < t.n; i++) out[i] = used >> i & 1 ? '#' : '-';
    out[t.n] = 0;
    close_bench(&t);
    return out;
}

static void patterns_use_words_alternatives_gaps_and_options(void **state)
{
    static const struct {
        const char *pattern, *text, *uses;
    } rows[] = {
        {"\"turn on\"", "turn on Lamp", "##-"},
        {"\"turn .. on\"", "turn the Lamp on", "#--#"},
        {"\"turn .. on\"", "turn on", "##"},
        {"\"turn|switch on\"", "please switch on it", "-##-"},
        {"\"set .. to?\"", "set Lamp to 40", "#-#-"},
        {"\"set .. to?\"", "set Lamp 40", "#--"},
        {"\"for {duration}\"", "run it for 5m", "--##"},
        {"\"for {duration}\"", "run it for 5", "----"},
        {"\"at {number}\"", "off at 8", "-##"},
        {"\"at {number}\"", "dim at 40%", "---"}, /* a number with a measure is another thing */
        {"\"is .. {state}\"", "is Lamp on", "#-#"},
        {"\"is .. {state}\"", "is Lamp red", "---"},
        {"\"say {any}\"", "say cheese", "##"},
        {"\"say {any}\"", "say Lamp", "--"},
        {"\"^ .. on $\"", "Lamp on", "-#"},
        {"\"^ .. on $\"", "Lamp on please", "---"},
        {"\"^ on\"", "turn on", "--"},
        {"\"Über?\"", "uber", "#"},
        {"\", and\"", "a , and", "-##"},
        {"\"lamp\"", "Lamp", "-"}, /* a whole name is one unit, no word */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *got = match(rows[i].pattern, rows[i].text, false);
        if (strcmp(got, rows[i].uses) != 0) fail_msg("%s on '%s': %s", rows[i].pattern, rows[i].text, got);
    }
}

static void the_match_that_explains_most_wins(void **state)
{
    assert_string_equal(match("\"turn .. to? on?\"", "turn it to on", false), "#-##");
    assert_string_equal(match("\"a .. a .. a?\"", "a b a a", false), "#-##");
}

static void at_start_does_not_look_further_on(void **state)
{
    assert_string_equal(match("\"on\"", "turn on", true), "--");
    assert_string_equal(match("\"on\"", "on turn", true), "#-");
}

static void units_that_are_taken_are_passed_over_by_gaps_only(void **state)
{
    bench t;
    open_bench(&t, "\"turn .. on\"");
    say(&t, "turn on on");
    assert_int_equal(phrase_match(&t.list.at[0], t.u, 0, t.n, 2, false), 5);
    assert_int_equal(phrase_match(&t.list.at[0], t.u, 0, t.n, 6, false), 0);
    close_bench(&t);
}

static void lists_give_their_longest_match_at_a_place(void **state)
{
    bench t;
    open_bench(&t, "[and, and then, never]");
    say(&t, "x and then y");
    assert_int_equal(phrase_list_at(&t.list, t.u, 1, t.n, 0), 6);
    assert_int_equal(phrase_list_at(&t.list, t.u, 0, t.n, 0), 0);
    assert_true(phrase_list_has_word(&t.list, "and"));
    assert_false(phrase_list_has_word(&t.list, "then"));
    close_bench(&t);
}

static void words_that_begin_alike_are_told_apart(void **state)
{
    assert_string_equal(match("thermostat", "thermostats thermos thermostat", false), "--#");
    assert_string_equal(match("bedrooms", "bedroom bedrooms bedroomsx", false), "-#-");
    assert_string_equal(match("a", "ab a", false), "-#");
}

static void the_last_of_the_most_units_can_be_used(void **state)
{
    bench t;
    char text[UNITS_MAX * 2];
    open_bench(&t, "\"on .. on $\"");
    for (size_t i = 0; i < UNITS_MAX; i++) memcpy(text + 2 * i, "x ", 2);
    text[2 * UNITS_MAX - 1] = 0;
    say(&t, text);
    t.u[0] = t.u[UNITS_MAX - 1] = unit_of_word("on", false);
    assert_true(phrase_match(&t.list.at[0], t.u, 0, t.n, 0, false) == ((uint64_t)1 << 63 | 1));
    close_bench(&t);
}

static void hostile_patterns_end_soon(void **state)
{
    bench t;
    char text[UNITS_MAX * 2];
    open_bench(&t, "\".. a .. a .. a .. a .. a .. a .. a b\"");
    for (size_t i = 0; i < UNITS_MAX; i++) memcpy(text + 2 * i, "a ", 2);
    text[2 * UNITS_MAX - 1] = 0;
    say(&t, text);
    assert_int_equal(phrase_match(&t.list.at[0], t.u, 0, t.n, 0, false), 0);
    close_bench(&t);
}

static void wrong_patterns_name_file_and_line(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"- fine\n- {a: b}\n", "p.yaml:2: a pattern is a text"},
        {"- \"\"\n", "p.yaml:1: a pattern is a text"},
        {"- fine\n\n- turn {speed}\n", "p.yaml:3: '{speed}' is no part of a pattern"},
        {"- a||b\n", "p.yaml:1: 'a||b' is no part"},
        {"- don't-ever\n", "'don't-ever' is no part"},
        {"- a b c d e f g h i j k l m n o p q\n", "at most 16 parts"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        yaml_doc *d = NULL;
        phrase_list l = {0};
        shoal_err err = {0};
        assert_int_equal(yaml_parse(&d, rows[i].text, strlen(rows[i].text), "p.yaml", NULL), 0);
        assert_int_equal(phrase_list_read(&l, d, yaml_root(d), a, &err), SHOAL_EINVALID);
        if (!strstr(err.message, rows[i].says)) fail_msg("%s", err.message);
        assert_int_equal(l.n, 0);
        yaml_doc_free(d);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_use_words_alternatives_gaps_and_options),
        cmocka_unit_test(the_match_that_explains_most_wins),
        cmocka_unit_test(at_start_does_not_look_further_on),
        cmocka_unit_test(units_that_are_taken_are_passed_over_by_gaps_only),
        cmocka_unit_test(lists_give_their_longest_match_at_a_place),
        cmocka_unit_test(words_that_begin_alike_are_told_apart),
        cmocka_unit_test(the_last_of_the_most_units_can_be_used),
        cmocka_unit_test(hostile_patterns_end_soon),
        cmocka_unit_test(wrong_patterns_name_file_and_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
