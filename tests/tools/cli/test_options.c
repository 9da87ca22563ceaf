/* Options and the command table. What cli_parse prints on stderr is for people and not compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/commands.h"

static const cli_command toy = {"toy", "a command for this test", "A [B]", NULL, false};

typedef struct values {
    bool flag;
    const char *text;
    cli_list list;
    long long count;
    double share;
    cli_args args;
} values;

static int parse(values *v, int argc, const char *const *args)
{
    static char *argv[16]; /* what cli_args borrows */
    memset(argv, 0, sizeof argv);
    argv[0] = "toy";
    for (int i = 0; i < argc; i++) argv[i + 1] = (char *)args[i];
    *v = (values){.text = "default", .count = 7};
    const cli_option options[] = {
        CLI_FLAG('f', "flag", "a flag", &v->flag),
        CLI_STRING('t', "text", "TEXT", "a text", &v->text),
        CLI_LIST(0, "item", "ITEM", "an item", &v->list),
        CLI_INT('n', "count", "N", 0, 100, "a count", &v->count),
        CLI_NUM(0, "share", "X", "a share", &v->share),
        CLI_END,
    };
    return cli_parse(&v->args, &toy, options, 1, 2, argc + 1, argv);
}

#define PARSE(v, ...) \
    parse(v, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

static void options_may_stand_anywhere(void **state)
{
    values v;
    assert_int_equal(
        PARSE(&v, "--flag", "a", "-t", "x y", "b", "--item=1", "--item", "2", "-n3", "--share", "0.5"),
        CLI_GO);
    assert_true(v.flag);
    assert_string_equal(v.text, "x y");
    assert_int_equal(v.list.n, 2);
    assert_string_equal(v.list.v[1], "2");
    assert_int_equal(v.count, 3);
    assert_true(v.share == 0.5);
    assert_int_equal(v.args.n, 2);
    assert_string_equal(v.args.v[0], "a");
    assert_string_equal(v.args.v[1], "b");
}

static void defaults_stay_and_dashes_end_options(void **state)
{
    values v;
    assert_int_equal(PARSE(&v, "--", "-n"), CLI_GO);
    assert_string_equal(v.text, "default");
    assert_int_equal(v.count, 7);
    assert_string_equal(v.args.v[0], "-n");
}

static void wrong_usage_gives_exit_code_2(void **state)
{
    values v;
    assert_int_equal(PARSE(&v, "a", "b", "c"), CLI_USAGE);
    assert_int_equal(PARSE(&v, "--flag"), CLI_USAGE);
    assert_int_equal(PARSE(&v, "a", "--unknown"), CLI_USAGE);
    assert_int_equal(PARSE(&v, "a", "--text"), CLI_USAGE);
    assert_int_equal(PARSE(&v, "a", "--count", "101"), CLI_USAGE);
    assert_int_equal(PARSE(&v, "a", "--count", "4x"), CLI_USAGE);
    assert_int_equal(PARSE(&v, "a", "--share", "nan"), CLI_USAGE);
}

static void numbers_are_read_strictly(void **state)
{
    static const char *const whole[] = {"1e1", "0x10", "010", " 5", "5 ", "+5", "1_0", "5s", "", "1.0"};
    static const char *const shares[] = {"1e-1", "0x1", "00.5", " 0.5", "+0.5", ".5", "5.", "0,5", "inf", ""};
    values v;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        assert_int_equal(PARSE(&v, "a", "--count", whole[i]), CLI_USAGE);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        assert_int_equal(PARSE(&v, "a", "--share", shares[i]), CLI_USAGE);
    assert_int_equal(PARSE(&v, "a", "--count", "0", "--share", "-0.25"), CLI_GO);
    assert_int_equal(v.count, 0);
    assert_true(v.share == -0.25);
}

static void every_command_has_a_name_a_summary_and_a_usage(void **state)
{
    assert_true(cli_count() > 0);
    for (size_t i = 0; i < cli_count(); i++) {
        const cli_command *c = cli_at(i);
        assert_ptr_equal(cli_find(c->name), c);
        assert_non_null(c->run);
        assert_non_null(c->usage);
        assert_true(strlen(c->summary) > 0 && c->summary[strlen(c->summary) - 1] != '.');
    }
    assert_null(cli_find("nothing"));
    assert_true(cli_find("worker")->hidden);
}

static const cli_verb toy_verbs[] = {{"", "", "do nothing", 0, 0},
                                     {"show", "NAME", "show one", 1, 1},
                                     {"join", "NAME...", "join several", 2, -1},
                                     CLI_VERB_END};

static const char *verb_of(int argc, const char *const *args, int *ret_n)
{
    static char *argv[16];
    static const cli_option none[] = {CLI_END};
    const cli_verb *verb = NULL;
    cli_args a = {0};
    memset(argv, 0, sizeof argv);
    argv[0] = "toy";
    for (int i = 0; i < argc; i++) argv[i + 1] = (char *)args[i];
    int rc = cli_parse_verb(&a, &verb, &toy, none, toy_verbs, argc + 1, argv);
    *ret_n = a.n;
    return rc == CLI_GO ? verb->name : NULL;
}

#define VERB(n, ...) \
    verb_of(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__}, n)

static void a_verb_takes_as_many_arguments_as_it_says(void **state)
{
    int n;
    assert_string_equal(VERB(&n, "show", "x"), "show");
    assert_int_equal(n, 1);
    assert_string_equal(VERB(&n, "join", "x", "y", "z"), "join");
    assert_int_equal(n, 3);
    assert_string_equal(verb_of(0, NULL, &n), "");
    assert_null(VERB(&n, "show"));
    assert_null(VERB(&n, "show", "x", "y"));
    assert_null(VERB(&n, "join", "x"));
    assert_null(VERB(&n, "shwo", "x"));
}

static void help_of_a_verb_is_its_part(void **state)
{
    char s[80];
    assert_true(cli_help_of_verb("a name", toy_verbs, "show", s, sizeof s));
    assert_string_equal(s, "a name");
    assert_true(cli_help_of_verb("show: one; which: any", toy_verbs, "show", s, sizeof s));
    assert_string_equal(s, "one; which: any");
    assert_false(cli_help_of_verb("show: one; which: any", toy_verbs, "join", s, sizeof s));
    assert_true(cli_help_of_verb("show: one; join: two", toy_verbs, "show", s, sizeof s));
    assert_string_equal(s, "one");
    assert_true(cli_help_of_verb("show: one; join: two", toy_verbs, "join", s, sizeof s));
    assert_string_equal(s, "two");
    assert_true(cli_help_of_verb("join, show: both", toy_verbs, "show", s, sizeof s));
    assert_string_equal(s, "both");
    assert_true(cli_help_of_verb("show it: so", toy_verbs, "join", s, sizeof s));
}

static size_t n_told;

static void take(void *user, const cli_command *cmd, const cli_option *options, const cli_verb *verbs)
{
    assert_ptr_equal(cmd, user);
    assert_non_null(options);
    n_told++;
}

static void every_command_tells_its_options_and_runs_nothing(void **state)
{
    for (size_t i = 0; i < cli_count(); i++) cli_tell(cli_at(i), take, (void *)cli_at(i));
    assert_int_equal(n_told, cli_count());
}

static void the_first_command_begins_a_group(void **state)
{
    const char *summary = NULL;
    size_t n = 0;
    assert_non_null(cli_group_begins(cli_at(0), &summary));
    for (size_t i = 0; i < cli_count(); i++) n += cli_group_begins(cli_at(i), &summary) != NULL;
    assert_int_equal(n, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_may_stand_anywhere),
        cmocka_unit_test(defaults_stay_and_dashes_end_options),
        cmocka_unit_test(wrong_usage_gives_exit_code_2),
        cmocka_unit_test(numbers_are_read_strictly),
        cmocka_unit_test(every_command_has_a_name_a_summary_and_a_usage),
        cmocka_unit_test(a_verb_takes_as_many_arguments_as_it_says),
        cmocka_unit_test(help_of_a_verb_is_its_part),
        cmocka_unit_test(every_command_tells_its_options_and_runs_nothing),
        cmocka_unit_test(the_first_command_begins_a_group),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
