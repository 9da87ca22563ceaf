#include "helper.h"

/* The small German lexicon of docs/understanding.md, with one piece replaced. */
static buf edited(const char *find, const char *put)
{
    buf whole = {0}, b = {0};
    shoal_err err = {0};
    if (file_read(&whole, DATA("licht.yaml"), 1 << 20, &err)) fail_msg("%s", err.message);
    const char *at = strstr(whole.data, find);
    if (!at) fail_msg("'%s' does not stand in licht.yaml", find);
    buf_append(&b, whole.data, (size_t)(at - whole.data));
    buf_puts(&b, put);
    buf_puts(&b, at + strlen(find));
    buf_done(&whole);
    return b;
}

static void expect_refused(const char *text, size_t n, const char *says)
{
    lexicon *l = NULL;
    shoal_err err = {0};
    int rc = lexicon_parse(&l, text, n, "licht.yaml", &err);
    if (!rc) fail_msg("taken, not refused: %s", says);
    assert_null(l);
    if (strncmp(err.message, "licht.yaml:", 11) != 0 || !strstr(err.message, says))
        fail_msg("'%s' lacks '%s'", err.message, says);
}

static void what_is_malformed_is_refused_with_file_and_line(void **state)
{
    static const struct {
        const char *find, *put, *says;
    } rows[] = {
        /* sections */
        {"states: [an, aus]", "colors: [rot]", ":7: there is no section 'colors'"},
        {"states: [an, aus]\n", "", "'states' is missing"},
        {"states: [an, aus]", "states: {an: 1}", ":7: 'states' must be a list"},
        {"states: [an, aus]", "states: [[an]]", ":7: one word is expected"},
        {"states: [an, aus]", "states: [sehr hell]", ":7: one word is expected"},
        {"states: [an, aus]", "states: [an|, aus]", ":7: one word is expected here, or several"},
        {"states: [an, aus]", "states: [an, aus]\nno_states: weg", ":8: 'no_states' must be a list"},
        {"states: [an, aus]", "states: [an, aus]\nno_states: [[weg]]", ":8: a text is expected"},
        /* words */
        {"fillers: [bitte], ", "", "words: 'fillers' is missing: words without meaning"},
        {"fillers: [bitte]", "fillers: [\"{wann}\"]", ":1: '{wann}' is no part of a pattern"},
        {"fillers: [bitte]", "fillers: [{a: b}]", ":1: a pattern is a text"},
        {"scope: [und|oder], ", "", "words: 'scope' is missing"},
        /* numbers, time, synonyms */
        {"numbers: {eins: 1,", "numbers: {eins: eins,", ":5: numbers"},
        {"numbers: {eins: 1,", "numbers: {eins und: 1,", ":5: 'eins und' must be one word"},
        {"numbers: {eins: 1, zwei: 2, zwanzig: 20}", "numbers: [eins]", ":5: 'numbers' must be a map"},
        {"time: {minute: 60,", "time: {minute: lang,", ":6: time"},
        {"synonyms: {licht: [leuchte]}", "synonyms: [licht]", ":8: 'synonyms' must be a map"},
        {"synonyms: {licht:", "synonyms: {das licht:", ":8: 'das licht' must be one word"},
        /* values */
        {"type: number", "type: zahl", ":10: 'zahl' is no type of value"},
        {"type: number, ", "", "'type' is missing"},
        {"min: 1", "min: eins", ":10: min"},
        {"max: 100", "max: 100, bare: vielleicht", ":10: bare"},
        {"max: 100", "max: 100, choices: [halb]", ":10: 'choices' must be a map"},
        {"measures: [\"%\", prozent]", "measures: [von hundert]", ":10: one word is expected"},
        {"  helligkeit: {type", "  helligkeit: 5\n  zeit: {type", ":10: 'type' is missing"},
        {"max: 100", "max: 100, units: [lux]", ":10: 'units' must be a map of units"},
        {"max: 100", "max: 100, units: {}", ":10: 'units' must be a map of units"},
        {"max: 100", "max: 100, units: {lux: {measures: [lux]}}", ":10: 'sign' is missing"},
        {"max: 100", "max: 100, units: {lux: {sign: lx}}", ":10: 'measures' is missing"},
        {"max: 100", "max: 100, units: {lux: {sign: lx, measures: [lux], scale: 0}}",
         "'scale' of unit 'lux' is 0"},
        {"max: 100", "max: 100, units: {lux: {sign: lx, measures: [lux], offset: viel}}", ":10: offset"},
        {"max: 100", "max: 100, ranges: {flur: 5}", ":10: 'ranges' must be a list"},
        {"max: 100", "max: 100, ranges: [{names: [flur], min: 1}]", ":10: 'max' is missing"},
        {"max: 100", "max: 100, list: oft", ":10: list"},
        {"max: 100", "max: 100, units: {lux: 5}", ":10: 'sign' is missing"},
        {"max: 100", "max: 100, ranges: [5]", ":10: 'names' is missing"},
        /* kinds */
        {"words: [licht, lampe]", "words: [licht], only: [zwei worte]", ":12: one word is expected"},
        {"words: [licht, lampe]", "words: [licht], states: [sehr hell]", ":12: one word is expected"},
        {"words: [licht, lampe]", "words: [licht], states: {an: hell}", ":12: state 'an' must be a list"},
        {"words: [licht, lampe]", "words: [licht], states: {an: [[hell]]}", ":12: a text is expected"},
        {"words: [licht, lampe]", "words: [licht], states: {sehr an: []}", ":12: 'sehr an' must be one word"},
        {"domains: [light], ", "", ":12: 'domains' is missing"},
        {"domains: [light]", "domains: light", ":12: 'domains' must be a list"},
        {"domains: [light]", "domains: [\"\"]", ":12: a text is expected"},
        {"lampe: {domains", "lampe: 5\n  lampen: {domains", ":12: kind 'lampe' must be a map"},
        {"words: [licht, lampe]", "words: [das licht]", ":12: one word is expected"},
        {"words: [licht, lampe]", "also: {names: [lampe]}, words: [licht]", ":12: 'domain' is missing"},
        /* actions */
        {"kinds: [lampe], say: \"Ich schalte {name} ein\"", "kinds: [ofen], say: x",
         ":14: there is no kind 'ofen'"},
        {"takes: [helligkeit]", "takes: [farbe]", ":16: there is no value 'farbe'"},
        {"takes: [helligkeit]", "takes: [helligkeit, helligkeit, helligkeit, helligkeit, helligkeit]",
         ":16: an action takes at most four values"},
        {"say: \"Ich schalte {name} ein\", ", "", ":14: 'say' is missing"},
        {"verb: einschalten, ", "", ":14: 'verb' is missing in action 'turn_on'"},
        {"cues: [\"schalte|mach .. ein|an\", \"^ .. an $\"]", "cues: schalte", ":14: 'cues' must be a list"},
        {"cues: [\"schalte|mach .. ein|an\", \"^ .. an $\"]", "cue: []", ":14: 'cues' is missing"},
        {"{service: turn_off", "{implied: ja, service: turn_off", ":15: implied"},
        {"verb: einschalten", "verb: einschalten, makes: [an]", ":14: "},
        {"verb: einschalten", "verb: einschalten, deed: [an]", ":14: a text is expected"},
        /* replies, talk */
        {"say: \"Hallo. Zum", "kinds: [ofen], say: \"Hallo. Zum", ":26: there is no kind 'ofen'"},
        {"leave: \"Gut, {names} bleibt.\", ", "", "'leave' is missing"},
        {"and: und", "and: \"\"", "a text is expected"},
        {"more: \"{names} und {count} weitere\"", "more: [weitere]", ":24: 'more' must be a text"},
        {"say: \"Hallo. Zum Beispiel: {example}.\"", "labels: [gruss]", ":26: 'say' is missing"},
        {"hallo, guten morgen|tag", "\"hallo {wer}\"", ":26: '{wer}' is no part"},
        {"say: \"Hallo. Zum Beispiel: {example}.\"", "labels: [[a]], say: x", ":26: a text is expected"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf b = edited(rows[i].find, rows[i].put);
        expect_refused(b.data, b.len, rows[i].says);
        buf_done(&b);
    }
}

static void what_is_no_map_or_no_yaml_is_refused(void **state)
{
    expect_refused("[a, b]", 6, ":1: a lexicon is a map");
    expect_refused("words: {", 8, "not YAML");
    expect_refused("", 0, "licht.yaml");
    expect_refused("a\0b", 3, ":1: holds a NUL");
    lexicon *l = NULL;
    shoal_err err = {0};
    assert_int_not_equal(lexicon_load(&l, DATA("nowhere.yaml"), &err), 0);
    assert_non_null(strstr(err.message, "nowhere.yaml"));
    lexicon_free(NULL);
}

static void too_many_kinds_are_refused(void **state)
{
    buf kinds = {0};
    for (int i = 0; i < LEXICON_KINDS_MAX; i++) buf_printf(&kinds, "  k%d: {domains: [d%d]}\n", i, i);
    buf_puts(&kinds, "  lampe: {domains");
    buf b = edited("  lampe: {domains", kinds.data);
    expect_refused(b.data, b.len, ":12: too many kinds");
    buf_done(&b);
    buf_done(&kinds);
}

static const char *kind_of(const lexicon *l, const char *domain, const char *name)
{
    arena *a = arena_new(0);
    words w;
    assert_int_equal(words_split(&w, a, name, strlen(name)), 0);
    size_t k = lexicon_kind_of(l, domain, strlen(domain), &w);
    arena_free(a);
    return k == SIZE_MAX ? "" : l->kinds[k].name;
}

static void kinds_come_by_domain_and_by_name_where_a_domain_has_several(void **state)
{
    lexicon *l = load_lexicon(HOME_LEX);
    assert_string_equal(kind_of(l, "cover", "Garage Gate"), "garage_door");
    assert_string_equal(kind_of(l, "cover", "Kitchen Blind"), "blinds");
    assert_string_equal(kind_of(l, "toaster", "Kitchen Blind"), "");
    assert_string_equal(kind_of(l, "cove", "Kitchen Blind"), "");
    lexicon_free(l);
}

static void words_numbers_times_and_states_are_known(void **state)
{
    lexicon *l = load_lexicon(DATA("licht.yaml"));
    double v;
    assert_true(lexicon_knows(l, "schalte") && lexicon_knows(l, "leuchte") && lexicon_knows(l, "prozent"));
    assert_true(lexicon_knows(l, "spater")); /* folded */
    assert_false(lexicon_knows(l, "turn"));
    assert_true(lexicon_number(l, "zwanzig", &v) && v == 20);
    assert_false(lexicon_number(l, "drei", &v));
    assert_true(lexicon_measure(l, "minuten", &v) && v == 60);
    assert_true(lexicon_is_state(l, "an"));
    assert_false(lexicon_is_state(l, "ein"));
    lexicon_free(l);
}

static void talk_is_found_by_label_and_by_the_beginning_of_one(void **state)
{
    lexicon *l = load_lexicon(HOME_LEX);
    assert_non_null(lexicon_talk_of(l, "weather_query"));
    assert_non_null(lexicon_talk_of(l, "general_joke"));
    assert_null(lexicon_talk_of(l, "general_jokes"));
    assert_null(lexicon_talk_of(l, ""));
    lexicon_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_malformed_is_refused_with_file_and_line),
        cmocka_unit_test(what_is_no_map_or_no_yaml_is_refused),
        cmocka_unit_test(too_many_kinds_are_refused),
        cmocka_unit_test(kinds_come_by_domain_and_by_name_where_a_domain_has_several),
        cmocka_unit_test(words_numbers_times_and_states_are_known),
        cmocka_unit_test(talk_is_found_by_label_and_by_the_beginning_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
