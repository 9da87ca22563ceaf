/* What decisions stand on: languages, centroids, prices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "routes/price.h"
#include "routes/centroids.h"
#include "routes/language.h"

/* ---- languages ----------------------------------------------------------------------------------- */

static void languages_are_told_apart(void **state)
{
    static const struct row {
        const char *text, *code;
    } rows[] = {
        {"turn off the kitchen light please", "en"},
        {"what is the weather in Berlin?", "en"},
        {"mach das Licht in der Küche aus", "de"},
        {"Wie spät ist es?", "de"},
        {"Erzähl mir einen Witz", "de"},
        {"allume la lumière dans le salon", "fr"},
        {"quelle heure est-il ?", "fr"},
        {"enciende la luz del salón por favor", "es"},
        {"¿qué hora es?", "es"},
        {"accendi la luce della cucina per favore", "it"},
        {"doe het licht aan in de keuken alsjeblieft", "nl"},
        {"você pode desligar a luz da cozinha?", "pt"},
        {"キッチンの電気を消して", "ja"},
        {"关掉厨房的灯", "zh"},
        {"주방 불을 꺼줘", "ko"},
        {"выключи свет на кухне", "ru"},
        {"σβήσε το φως", "el"},
        {"أطفئ الضوء", "ar"},
        {"42", ""},
        {"", ""},
        {"\xff\xfe", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *guess = language_guess(rows[i].text, strlen(rows[i].text));
        if (strcmp(guess, rows[i].code) != 0)
            fail_msg("'%s' is %s, not %s", rows[i].text, rows[i].code, guess);
        assert_true(!*guess || language_is_known(guess));
    }
    assert_false(language_is_known("xx"));
}

/* ---- centroids ----------------------------------------------------------------------------------- */

static void the_nearest_mean_is_found_again_from_its_file(void **state)
{
    static const char *const names[] = {"north", "east"};
    const float north[2] = {0, 3}, northish[2] = {0.1f, 1}, east[2] = {5, 0}, nowhere[2] = {0, 0};
    centroids *c = centroids_new("m", "abc", 2, names, 2), *read = NULL;
    buf file = {0};
    double cosine = 0;
    shoal_err err;
    centroids_add(c, 0, north, 1);
    centroids_add(c, 0, northish, 1);
    centroids_add(c, 1, east, 1);
    centroids_put(&file, c);
    if (centroids_parse(&read, file.data, file.len, "f", &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(read->model, "m");
    assert_string_equal(read->digest, "abc");
    assert_int_equal(read->at[0].n_examples, 2);
    assert_int_equal(centroids_nearest(read, north, &cosine), 0);
    assert_true(cosine > 0.99 && cosine <= 1.0001);
    assert_int_equal(centroids_nearest(read, east, &cosine), 1);
    assert_int_equal(centroids_nearest(read, nowhere, &cosine), -1);
    centroids_free(read);
    centroids_free(c);
    buf_done(&file);
}

static void damaged_files_are_refused(void **state)
{
    static const char *const files[] = {
        "",
        "[]",
        "{\"object\":\"shoal.centroids\"}",
        "{\"object\":\"other\",\"dimensions\":1,\"domains\":[{\"name\":\"a\",\"vector\":[1]}]}",
        "{\"object\":\"shoal.centroids\",\"dimensions\":1,\"domains\":[]}",
        "{\"object\":\"shoal.centroids\",\"dimensions\":2,\"domains\":[{\"name\":\"a\",\"vector\":[1]}]}",
        "{\"object\":\"shoal.centroids\",\"dimensions\":1,\"domains\":[{\"name\":\"a\",\"vector\":[0]}]}",
        "{\"object\":\"shoal.centroids\",\"dimensions\":1,\"domains\":[{\"name\":\"a\",\"vector\":[\"1\"]}]}",
        "{\"object\":\"shoal.centroids\",\"dimensions\":1,\"domains\":[{\"name\":\"\",\"vector\":[1]}]}",
        "{\"object\":\"shoal.centroids\",\"dimensions\":1e9,\"domains\":[{\"name\":\"a\",\"vector\":[1]}]}",
        "{\"object\":\"shoal.centroids\",\"dimensions\":100000,\"domains\":[{\"name\":\"a\",\"vector\":[1]}]"
        "}",
        "{\"object\":\"shoal.centroids\",\"dimensions\":1,\"domains\":[{\"name\":\"a\",\"vector\":[1e300]}]}",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        centroids *c = NULL;
        shoal_err err;
        if (centroids_parse(&c, files[i], strlen(files[i]), "f", &err) == 0)
            fail_msg("%s is taken", files[i]);
        assert_null(c);
    }
}

static void a_price_is_the_book_s_or_what_was_measured(void **state)
{
    double cost = 0.5, j = 0.02;
    route_price prices[] = {{.model = "big", .cost = &cost, .energy_j = &j}, {.model = "free"}};
    route_book b = {.prices = prices, .n_prices = 2};
    energy measured = {0.1, ENERGY_RAPL};
    route_estimate o = {0};
    price_estimate(&b, "big:german", 200, measured, &o);
    assert_true(o.has_cost && o.cost == 0.1);
    assert_true(o.energy_by == ENERGY_CONFIGURED && o.energy_j == 4);
    price_estimate(&b, "free", 200, measured, &o);
    assert_true(!o.has_cost && o.energy_by == ENERGY_RAPL && o.energy_j == 20);
    price_estimate(&b, "bigger", 200, (energy){0}, &o);
    assert_true(!o.has_cost && o.energy_by == ENERGY_UNKNOWN && o.energy_j == 0);
    route_facts f = {.n_tokens = 10};
    assert_true(price_tokens(&f, false, 40) == 10);
    assert_true(price_tokens(&f, true, 40) == 50);
    assert_true(price_tokens(&f, true, 0) == 10 + PRICE_REPLY);
    f.n_reply = 7;
    assert_true(price_tokens(&f, true, 40) == 17);
    assert_false(price_is_over(NULL, &f, &o));
    f.max_cost = 1; /* what is not known is not within it */
    assert_true(price_is_over(NULL, &f, &o));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(languages_are_told_apart),
        cmocka_unit_test(the_nearest_mean_is_found_again_from_its_file),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(a_price_is_the_book_s_or_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
