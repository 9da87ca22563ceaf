#include "helper.h"

/* devices_find over a home, with what was said given as words. */
typedef struct bench {
    lexicon *lex;
    arena *a;
    devices d;
} bench;

static void open_bench(bench *t, const device *list, size_t n)
{
    *t = (bench){.lex = load_lexicon(HOME_LEX), .a = arena_new(0)};
    assert_int_equal(devices_init(&t->d, t->lex, list, n, t->a), 0);
}

static void close_bench(bench *t)
{
    devices_done(&t->d);
    arena_free(t->a);
    lexicon_free(t->lex);
}

static entity_mention said(bench *t, const char *text)
{
    words w;
    word_list l;
    entity_mention m = {0};
    assert_int_equal(words_split(&w, t->a, text, strlen(text)), 0);
    assert_int_equal(devices_canonical(&l, t->lex, &w, t->a), 0);
    for (size_t i = 0; i < l.n && m.n < MENTION_WORDS_MAX; i++) {
        bool plural;
        if (strcmp(l.at[i], "all") == 0)
            m.all = true;
        else
            m.at[m.n++] = l.at[i];
        if (devices_is_kind_word(t->lex, l.at[i], &plural) && plural) m.plural = true;
    }
    return m;
}

/* The ids that are meant, joined by spaces; "*" before those of a group. */
static const char *find_of(bench *t, const char *text, uint64_t kinds)
{
    static char out[2048];
    bool group;
    entity_mention m = said(t, text);
    device_set s = devices_find(&t->d, &m, kinds, &group);
    size_t n = (size_t)snprintf(out, sizeof out, "%s", group ? "*" : "");
    for (size_t i = 0; i < t->d.n && n < sizeof out; i++)
        if (device_set_has(&s, i)) n += (size_t)snprintf(out + n, sizeof out - n, "%s ", t->d.at[i].id);
    if (n && out[n - 1] == ' ') out[n - 1] = 0;
    return out;
}

static void expect_found(bench *t, const char *text, const char *ids)
{
    const char *got = find_of(t, text, UINT64_MAX);
    if (strcmp(got, ids) != 0) fail_msg("'%s': '%s', not '%s'", text, got, ids);
}

static const char *const READING[] = {"Reading Lamp", "the snug", "Leselampe"};
static const device FLAT[] = {
    {.id = "light.kitchen", .name = "Kitchen Light"},
    {.id = "light.lamp_1", .name = "Lamp 1", .area = "upstairs"},
    {.id = "light.lamp_2", .name = "Lamp Two", .area = "upstairs"},
    {.id = "light.den", .name = "Den Ceiling", .area = "Den", .aliases = READING, .n_aliases = 3},
    {.id = "fan.office", .name = "Fan"},
    {.id = "media_player.lounge_tv", .name = "Living Room Television"},
    {.id = "blinds.dining_room", .name = "Dining Room Blinds"},
    {.id = "lock.front", .name = "Front Door Lock"},
    {.id = "cover.garage", .name = "Garage Gate"},
    {.id = "odd", .name = "Thing"},
};

static void whole_names_parts_and_ids_name_one_device(void **state)
{
    bench t;
    open_bench(&t, FLAT, COUNT_OF(FLAT));
    expect_found(&t, "kitchen light", "light.kitchen");
    expect_found(&t, "light kitchen", "light.kitchen");
    expect_found(&t, "kitchen", "light.kitchen");
    expect_found(&t, "office fan", "fan.office"); /* where it is stands in its id alone */
    expect_found(&t, "thing", "odd");
    expect_found(&t, "bathroom light", "");
    expect_found(&t, "kitchen heater", "");
    close_bench(&t);
}

static void aliases_areas_and_synonyms_name_a_device(void **state)
{
    bench t;
    open_bench(&t, FLAT, COUNT_OF(FLAT));
    expect_found(&t, "reading lamp", "light.den");
    expect_found(&t, "leselampe", "light.den");
    expect_found(&t, "den light", "light.den");
    expect_found(&t, "living room tv", "media_player.lounge_tv");
    expect_found(&t, "lounge telly", "media_player.lounge_tv");
    expect_found(&t, "front door", "lock.front");
    close_bench(&t);
}

static void numbers_are_the_same_in_digits_and_words(void **state)
{
    bench t;
    open_bench(&t, FLAT, COUNT_OF(FLAT));
    expect_found(&t, "lamp one", "light.lamp_1");
    expect_found(&t, "lamp 2", "light.lamp_2");
    expect_found(&t, "lamp 3", "");
    assert_true(devices_know(&t.d, "two") && devices_know(&t.d, "2"));
    assert_false(devices_know(&t.d, "3"));
    close_bench(&t);
}

static void several_that_fit_alike_are_all_given(void **state)
{
    bench t;
    open_bench(&t, FLAT, COUNT_OF(FLAT));
    expect_found(&t, "lamp", "light.lamp_1 light.lamp_2 light.den");
    expect_found(&t, "upstairs light", "light.lamp_1 light.lamp_2");
    close_bench(&t);
}

static void groups_are_each_that_fits(void **state)
{
    bench t;
    open_bench(&t, FLAT, COUNT_OF(FLAT));
    expect_found(&t, "all lights", "*light.kitchen light.lamp_1 light.lamp_2 light.den");
    expect_found(&t, "all lamps", "*light.lamp_1 light.lamp_2 light.den"); /* named so */
    expect_found(&t, "upstairs lights", "*light.lamp_1 light.lamp_2");
    expect_found(&t, "all fans", "*fan.office");
    expect_found(&t, "bathroom lights", "*");
    close_bench(&t);
}

static void a_plural_that_is_the_name_makes_no_group(void **state)
{
    bench t;
    open_bench(&t, FLAT, COUNT_OF(FLAT));
    expect_found(&t, "dining room blinds", "blinds.dining_room");
    expect_found(&t, "blinds", "*blinds.dining_room");
    close_bench(&t);
}

static void kinds_are_preferred_and_others_given_when_nothing_else_fits(void **state)
{
    bench t;
    open_bench(&t, FLAT, COUNT_OF(FLAT));
    uint64_t locks = 0, covers = 0;
    for (size_t i = 0; i < t.lex->n_kinds; i++) {
        if (strcmp(t.lex->kinds[i].name, "lock") == 0) locks = (uint64_t)1 << i;
        if (strcmp(t.lex->kinds[i].name, "garage_door") == 0) covers = (uint64_t)1 << i;
    }
    assert_string_equal(find_of(&t, "door", locks), "lock.front");
    assert_string_equal(find_of(&t, "door", covers), "cover.garage");
    assert_string_equal(find_of(&t, "kitchen light", locks), "light.kitchen");
    close_bench(&t);
}

static void words_of_no_device_and_no_kind_are_unknown(void **state)
{
    bench t;
    open_bench(&t, FLAT, COUNT_OF(FLAT));
    entity_mention known = said(&t, "kitchen heater"), strange = said(&t, "kitchen zebra");
    assert_false(devices_has_unknown(&t.d, &known));
    assert_true(devices_has_unknown(&t.d, &strange));
    assert_true(devices_know_typed(&t.d, "television"));
    assert_false(devices_know(&t.d, "television")); /* its synonym stands for it */
    close_bench(&t);
}

static void every_device_of_the_largest_home_is_found(void **state)
{
    enum { TOO_MANY = DEVICES_MAX + 8 };
    static device list[TOO_MANY];
    static char names[TOO_MANY][2][32];
    bench t;
    char id[64];
    for (int i = 0; i < TOO_MANY; i++) {
        snprintf(names[i][0], sizeof names[i][0], "light.r%d", i);
        snprintf(names[i][1], sizeof names[i][1], "Room %d Light", i);
        list[i] = (device){.id = names[i][0], .name = names[i][1]};
    }
    open_bench(&t, list, TOO_MANY);
    assert_int_equal(t.d.n, DEVICES_MAX);
    for (int i = 0; i < DEVICES_MAX; i++) {
        snprintf(id, sizeof id, "room %d light", i);
        expect_found(&t, id, names[i][0]);
    }
    expect_found(&t, "room 256 light", "");
    bool group;
    entity_mention m = said(&t, "all lights");
    device_set s = devices_find(&t.d, &m, UINT64_MAX, &group);
    assert_int_equal(device_set_count(&s), DEVICES_MAX);
    close_bench(&t);
}

static void names_of_signs_and_of_very_many_words_do_no_harm(void **state)
{
    static const device odd[] = {
        {.id = ".", .name = "?!"},
        {.id = "light.x", .name = "a b c d e f g h i j k l m n o p r s t u v w x y z 1 2 3 4 5 6 7 8 9 0"},
        {.id = "light.y",
         .name =
             "q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q.q"},
        {.id = "", .name = ""},
    };
    bench t;
    open_bench(&t, odd, COUNT_OF(odd));
    expect_found(&t, "a b c", "light.x");
    expect_found(&t, "q", "light.y");
    expect_found(&t, "a b c d e f g h i j k l m n o p r s t u v w x y z", "light.x");
    close_bench(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_names_parts_and_ids_name_one_device),
        cmocka_unit_test(aliases_areas_and_synonyms_name_a_device),
        cmocka_unit_test(numbers_are_the_same_in_digits_and_words),
        cmocka_unit_test(several_that_fit_alike_are_all_given),
        cmocka_unit_test(groups_are_each_that_fits),
        cmocka_unit_test(a_plural_that_is_the_name_makes_no_group),
        cmocka_unit_test(kinds_are_preferred_and_others_given_when_nothing_else_fits),
        cmocka_unit_test(words_of_no_device_and_no_kind_are_unknown),
        cmocka_unit_test(every_device_of_the_largest_home_is_found),
        cmocka_unit_test(names_of_signs_and_of_very_many_words_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
