/* Which devices requests name: lexicons/devices.yaml does what lexicons/devices.tests.yaml says, requests
 * that were held back are counted, and what must hold for any text and home. */
#include "cases.h"

#include "base/clock.h"

#define TESTS SHOAL_SOURCE_DIR "/lexicons/devices.tests.yaml"
#define HELD  SHOAL_SOURCE_DIR "/tests/data/match/held.yaml"

static void match_cases(const device_lexicon *l, const case_file *f, size_t home, bool tell, tally *t)
{
    const yaml_node *root = yaml_root(f->d);
    const yaml_node *section = yaml_get(root, "match"), *rows = section->items[home];
    arena *a = arena_new(0);
    device list[CASE_HOME_MAX];
    size_t n = read_case_home(yaml_get(yaml_get(root, "homes"), section->keys[home]->text), list, a);
    for (size_t i = 0; i < rows->n; i++) {
        const char *text = rows->keys[i]->text, *want = rows->items[i]->text;
        matching m;
        assert_int_equal(match(&m, l, list, n, text, NULL, a), 0);
        char *got = describe_match(&m, list, a);
        tally_ids(t, got, want);
        if (tell && !same_ids(got, want))
            print_error("%s:%zu: %s (%s)\n    expected: %s\n    got:      %s%s%s\n", f->path,
                        rows->keys[i]->line, text, m.said->t->name, want, got, m.n_unknown ? ": " : "",
                        m.n_unknown ? m.unknown[0].text : "");
    }
    arena_free(a);
}

static void the_lexicon_does_what_its_tests_say(void **state)
{
    device_lexicon *l = load_devices(DEVICES_LEX);
    case_file f = open_cases(TESTS);
    const yaml_node *section = yaml_get(yaml_root(f.d), "match");
    assert_int_equal(section->n, 4);
    size_t wrong = 0;
    for (size_t h = 0; h < section->n; h++) {
        tally t = {0};
        match_cases(l, &f, h, true, &t);
        print_message("%s: %zu of %zu right\n", section->keys[h]->text, t.right, t.n);
        assert_true(t.n >= 60);
        wrong += t.n - t.right;
    }
    if (wrong) fail_msg("%zu requests came out otherwise", wrong);
    close_cases(&f);
    device_lexicon_free(l);
}

/* Nobody tunes by these, so they are not all right. What is found has to be meant, even so. */
static void requests_that_were_held_back_are_mostly_right(void **state)
{
    device_lexicon *l = load_devices(DEVICES_LEX);
    case_file f = open_cases(HELD);
    const yaml_node *section = yaml_get(yaml_root(f.d), "match");
    for (size_t h = 0; h < section->n; h++) {
        tally t = {0};
        match_cases(l, &f, h, getenv("SHOAL_SHOW_HELD") != NULL, &t);
        print_message("%s: %zu of %zu right; %zu ids found, %zu meant, %zu both\n", section->keys[h]->text,
                      t.right, t.n, t.found, t.meant, t.both);
        assert_true(t.n >= 20);
    }
    close_cases(&f);
    device_lexicon_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lexicon_does_what_its_tests_say),
        cmocka_unit_test(requests_that_were_held_back_are_mostly_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
