/* What is held back: lexicons/devices.yaml does what lexicons/devices.tests.yaml says, requests that were
 * held back are counted, and each rule by itself. */
#include "cases.h"

#include "match/guard.h"

#define TESTS SHOAL_SOURCE_DIR "/lexicons/devices.tests.yaml"
#define HELD  SHOAL_SOURCE_DIR "/tests/data/match/held.yaml"
#define FRESH SHOAL_SOURCE_DIR "/tests/data/match/fresh.yaml"

enum { MAX_TARGETS = 8 };

static guarding judge_text(const device_lexicon *l, const device *list, size_t n, const char *text, arena *a)
{
    matching m;
    guarding g;
    assert_int_equal(match(&m, l, list, n, text, NULL, a), 0);
    guard_rules rules = {.lex = l, .held = GUARD_ALL_RULES, .max_targets = MAX_TARGETS};
    guard_case c = {.found = &m, .devices = list, .n_devices = n, .by_match = true};
    assert_int_equal(guard(&g, &rules, &c, a), 0);
    assert_true(g.why && *g.why && g.text && (g.verdict == GUARD_PASS || *g.text));
    return g;
}

static size_t guard_cases(const device_lexicon *l, const case_file *f, size_t home, bool tell,
                          size_t *ret_missed)
{
    const yaml_node *root = yaml_root(f->d), *section = yaml_get(root, "guard"), *rows = section->items[home];
    arena *a = arena_new(0);
    device list[CASE_HOME_MAX];
    size_t n = read_case_home(yaml_get(yaml_get(root, "homes"), section->keys[home]->text), list, a),
           right = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const char *text = rows->keys[i]->text, *want = rows->items[i]->text;
        guarding g = judge_text(l, list, n, text, a);
        char got[64];
        snprintf(got, sizeof got, "%s%s%s", guard_verdict_name(g.verdict), *g.rule ? " " : "", g.rule);
        right += strcmp(got, want) == 0;
        *ret_missed += g.verdict == GUARD_PASS && strcmp(want, "pass") != 0;
        if (tell && strcmp(got, want) != 0)
            print_error("%s:%zu: %s\n    expected: %s\n    got:      %s: %s\n", f->path, rows->keys[i]->line,
                        text, want, got, g.why);
    }
    arena_free(a);
    return right;
}

static void the_lexicon_holds_back_what_its_tests_say(void **state)
{
    device_lexicon *l = load_devices(DEVICES_LEX);
    case_file f = open_cases(TESTS);
    const yaml_node *section = yaml_get(yaml_root(f.d), "guard");
    size_t wrong = 0;
    assert_int_equal(section->n, 4);
    for (size_t h = 0; h < section->n; h++) {
        size_t missed = 0, right = guard_cases(l, &f, h, true, &missed);
        print_message("%s: %zu of %zu right\n", section->keys[h]->text, right, section->items[h]->n);
        wrong += section->items[h]->n - right;
        assert_true(section->items[h]->n >= 30);
    }
    if (wrong) fail_msg("%zu requests came out otherwise", wrong);
    close_cases(&f);
    device_lexicon_free(l);
}

/* Nobody tunes by these. Returns how many pass that must not. */
static size_t count_missed(const char *path)
{
    device_lexicon *l = load_devices(DEVICES_LEX);
    case_file f = open_cases(path);
    const yaml_node *section = yaml_get(yaml_root(f.d), "guard");
    size_t missed = 0;
    for (size_t h = 0; h < section->n; h++) {
        size_t right = guard_cases(l, &f, h, getenv("SHOAL_SHOW_HELD") != NULL, &missed);
        print_message("%s: %zu of %zu right\n", section->keys[h]->text, right, section->items[h]->n);
    }
    close_cases(&f);
    device_lexicon_free(l);
    return missed;
}

static void of_requests_that_nobody_tuned_by_none_slips_through(void **state)
{
    assert_int_equal(count_missed(HELD), 0);
    assert_int_equal(count_missed(FRESH), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lexicon_holds_back_what_its_tests_say),
        cmocka_unit_test(of_requests_that_nobody_tuned_by_none_slips_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
