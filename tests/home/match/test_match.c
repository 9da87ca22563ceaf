/* Which devices requests name: lexicons/devices.yaml does what lexicons/devices.tests.yaml says, requests
 * that were held back are counted, and what must hold for any text and home. */
#include "cases.h"

#include "base/clock.h"

#define TESTS SHOAL_SOURCE_DIR "/lexicons/devices.tests.yaml"
#define HELD  SHOAL_SOURCE_DIR "/tests/data/match/held.yaml"
#define FRESH SHOAL_SOURCE_DIR "/tests/data/match/fresh.yaml"

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
                        rows->keys[i]->line, text, m.utterance->t->name, want, got, m.n_unknown ? ": " : "",
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

/* How many of a file come out as it says, by language; SHOAL_SHOW_HELD shows those that do not. */
static void count_cases(const char *path, size_t least)
{
    device_lexicon *l = load_devices(DEVICES_LEX);
    case_file f = open_cases(path);
    const yaml_node *section = yaml_get(yaml_root(f.d), "match");
    size_t right = 0, found = 0, both = 0;
    for (size_t h = 0; h < section->n; h++) {
        tally t = {0};
        match_cases(l, &f, h, getenv("SHOAL_SHOW_HELD") != NULL, &t);
        print_message("%s: %zu of %zu right; %zu ids found, %zu meant, %zu both\n", section->keys[h]->text,
                      t.right, t.n, t.found, t.meant, t.both);
        assert_true(t.n >= 20);
        right += t.right;
        found += t.found;
        both += t.both;
    }
    assert_true(right >= least);
    assert_true(100 * both >= 95 * found); /* what is found is nearly always meant */
    close_cases(&f);
    device_lexicon_free(l);
}

/* Nobody tunes by these, so they are not all right. */
static void requests_that_were_held_back_are_mostly_right(void **state)
{
    count_cases(HELD, 95);
    count_cases(FRESH, 60);
}

/* ---- what holds for any home ------------------------------------------------------------------- */

static const char *const SYLLABLES[] = {"ka",  "lo",  "mi",  "ru",  "te",  "zu",
                                        "bel", "dor", "fin", "gas", "hul", "jop"};

/* A name of `n` words that nobody has: a digit-free number to the base of the syllables. */
static void make_name(char *out, size_t cap, size_t i, unsigned seed)
{
    size_t at = 0, n = sizeof SYLLABLES / sizeof *SYLLABLES;
    for (uint64_t v = i * 7919 + seed, k = 0; k < 6 && at < cap; k++, v /= n)
        at += (size_t)snprintf(out + at, cap - at, "%s%s", k == 3 ? " " : "", SYLLABLES[v % n]);
}

typedef struct crowd {
    size_t n;
    device *list;
    char (*text)[3][48];
} crowd;

static crowd make_crowd(size_t n, unsigned seed)
{
    static const char *const kinds[] = {"light", "switch", "fan", "lock", "cover", "climate"};
    static const char *const areas[] = {"Küche", "living room", "salle de bain", "Flur", "garage", NULL};
    crowd c = {n, calloc(n + 1, sizeof *c.list), calloc(n + 1, sizeof *c.text)};
    for (size_t i = 0; i < n; i++) {
        snprintf(c.text[i][0], sizeof c.text[i][0], "%s.d%zu", kinds[i % 6], i);
        make_name(c.text[i][1], sizeof c.text[i][1], i, seed);
        c.list[i] = (device){.id = c.text[i][0], .name = c.text[i][1], .area = areas[i % 5], .state = ""};
    }
    return c;
}

static void free_crowd(crowd *c)
{
    free(c->list);
    free(c->text);
}

static matching find_in(const device_lexicon *l, const crowd *c, const char *text, arena *a)
{
    matching m;
    assert_int_equal(match(&m, l, c->list, c->n, text, NULL, a), 0);
    return m;
}

/* Each device is found by its name in a sentence of each language, and it alone. */
static void a_whole_name_is_found_in_every_language(void **state)
{
    static const char *const frames[] = {"please turn on the %s now", "Mach bitte %s aus!",
                                         "allume %s s'il te plaît", "enciende %s por favor", "%s"};
    device_lexicon *l = load_devices(DEVICES_LEX);
    for (unsigned seed = 0; seed < 40; seed++) {
        crowd c = make_crowd(20, seed * 131);
        for (size_t i = 0; i < c.n; i++) {
            arena *a = arena_new(0);
            char text[128];
            snprintf(text, sizeof text, frames[(seed + i) % 5], c.list[i].name);
            matching m = find_in(l, &c, text, a);
            bool alone = m.label == MATCH_ONE && m.devices[0].device == i && m.devices[0].by == MATCH_BY_NAME;
            if (!alone) fail_msg("seed %u: '%s' is %s", seed, text, match_label_name(m.label));
            arena_free(a);
        }
        free_crowd(&c);
    }
    device_lexicon_free(l);
}

/* One letter more, one less or another one names nothing that is there. */
static void a_name_that_is_nearly_one_is_none(void **state)
{
    device_lexicon *l = load_devices(DEVICES_LEX);
    for (unsigned seed = 0; seed < 40; seed++) {
        crowd c = make_crowd(20, seed * 977);
        for (size_t i = 0; i < c.n; i++) {
            arena *a = arena_new(0);
            char name[64], text[128];
            size_t n = (size_t)snprintf(name, sizeof name, "%s", c.list[i].name),
                   at = 1 + (seed + i) % (n - 2);
            if (name[at] != ' ') name[at] = name[at] == 'q' ? 'x' : 'q';
            snprintf(text, sizeof text, "turn on the %s", name);
            matching m = find_in(l, &c, text, a);
            if (strcmp(name, c.list[i].name) != 0 && m.n)
                fail_msg("'%s' is found for '%s'", c.list[i].name, text);
            arena_free(a);
        }
        free_crowd(&c);
    }
    device_lexicon_free(l);
}

/* Reported, not held: the machine has others to serve. */
static void the_largest_home_is_read(void **state)
{
    static const char *const texts[] = {"turn on all the lights", "Alle Lichter außer in der Küche aus",
                                        "éteins tout dans la salle de bain", "turn on the kitchen light"};
    device_lexicon *l = load_devices(DEVICES_LEX);
    crowd c = make_crowd(DEVICES_MAX, 3);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        arena *a = arena_new(1 << 20);
        uint64_t start = clock_ns();
        matching m = find_in(l, &c, texts[i], a);
        print_message("%s: %zu devices in %.2f ms\n", texts[i], m.n, clock_ms_since(start));
        assert_int_equal(m.label, i == 3 ? MATCH_AMBIGUOUS : MATCH_MANY);
        arena_free(a);
    }
    free_crowd(&c);
    device_lexicon_free(l);
}

static void a_text_that_is_too_long_is_not_read(void **state)
{
    device_lexicon *l = load_devices(DEVICES_LEX);
    crowd c = make_crowd(2, 0);
    arena *a = arena_new(0);
    buf b = {0};
    for (int i = 0; i < 65; i++) buf_printf(&b, "%s ", c.list[0].name);
    matching m = find_in(l, &c, b.data, a);
    assert_int_equal(m.label, MATCH_UNKNOWN);
    assert_true(m.utterance->cut && m.n == 0);
    buf_done(&b);
    arena_free(a);
    free_crowd(&c);
    device_lexicon_free(l);
}

/* What it does is in tests/e2e/languages.sh. */
static void the_pipeline_in_the_documentation_is_the_one_that_is_tried(void **state)
{
    buf example = {0}, page = {0};
    shoal_err err = {0};
    if (file_read(&example, SHOAL_SOURCE_DIR "/examples/languages.yaml", CASE_FILE_MAX, &err) ||
        file_read(&page, SHOAL_SOURCE_DIR "/docs/understanding.md", CASE_FILE_MAX, &err))
        fail_msg("%s", err.message);
    char *from = strstr(example.data, "  - name: home\n"), *to = strstr(example.data, "\n  # What English");
    assert_true(from && to && from < to);
    *to = 0;
    assert_non_null(strstr(page.data, from));
    buf_done(&example);
    buf_done(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lexicon_does_what_its_tests_say),
        cmocka_unit_test(requests_that_were_held_back_are_mostly_right),
        cmocka_unit_test(a_whole_name_is_found_in_every_language),
        cmocka_unit_test(a_name_that_is_nearly_one_is_none),
        cmocka_unit_test(the_largest_home_is_read),
        cmocka_unit_test(a_text_that_is_too_long_is_not_read),
        cmocka_unit_test(the_pipeline_in_the_documentation_is_the_one_that_is_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
