/* Who drains, on disk. */
#include "../trust/trust_fixture.h"

#include "control/drained_set.h"

typedef struct heard {
    char names[4][64];
    size_t n;
} heard;

static int hear(void *user, const char *name)
{
    heard *h = user;
    if (h->n == 4) return SHOAL_ELIMIT;
    snprintf(h->names[h->n++], sizeof h->names[0], "%s", name);
    return 0;
}

static folder open_place(void)
{
    folder f = FOLDER_NONE;
    assert_int_equal(folder_open(&f, place, true, NULL), 0);
    return f;
}

static void what_was_written_is_read(void **state)
{
    const char *const names[] = {"kitchen-pi", "attic.lan"};
    shoal_err err;
    folder f = open_place();
    heard h = {0};
    assert_int_equal(drained_set_read(&f, hear, &h, &err), 0);
    assert_int_equal(h.n, 0);
    assert_int_equal(drained_set_write(&f, names, 2, &err), 0);
    assert_int_equal(drained_set_read(&f, hear, &h, &err), 0);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.names[0], "kitchen-pi");
    assert_string_equal(h.names[1], "attic.lan");
    assert_int_equal(drained_set_write(&f, NULL, 0, &err), 0);
    h.n = 0;
    assert_int_equal(drained_set_read(&f, hear, &h, &err), 0);
    assert_int_equal(h.n, 0);
    folder_close(&f);
}

static void a_line_that_is_no_name_is_named(void **state)
{
    static const struct {
        const char *text, *said;
        size_t n_heard;
    } rows[] = {
        {"pi\n\nattic\n", "line 2 is no machine's name", 1},
        {"pi\nNot A Name\n", "line 2", 1},
        {"../etc\n", "line 1", 0},
        {"0123456789012345678901234567890123456789012345678901234567890123\n", "line 1", 0},
        {"pi\nattic\n\x80\n", "line 3", 2},
    };
    folder f = open_place();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        shoal_err err = {0};
        heard h = {0};
        assert_int_equal(folder_write(&f, "drains", 0600, rows[i].text, strlen(rows[i].text), NULL), 0);
        assert_int_equal(drained_set_read(&f, hear, &h, &err), SHOAL_EINVALID);
        if (!says(&err, rows[i].said)) fail_msg("%zu: %s", i, err.message);
        assert_int_equal(h.n, rows[i].n_heard);
    }
    folder_close(&f);
}

static void the_last_line_needs_no_end(void **state)
{
    folder f = open_place();
    heard h = {0};
    assert_int_equal(folder_write(&f, "drains", 0600, "pi\nattic", 8, NULL), 0);
    assert_int_equal(drained_set_read(&f, hear, &h, NULL), 0);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.names[1], "attic");
    folder_close(&f);
}

static void who_hears_may_refuse(void **state)
{
    folder f = open_place();
    heard h = {.n = 3};
    assert_int_equal(folder_write(&f, "drains", 0600, "a\nb\nc\n", 6, NULL), 0);
    assert_int_equal(drained_set_read(&f, hear, &h, NULL), SHOAL_ELIMIT);
    folder_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_is_read, place_open, place_close),
        cmocka_unit_test_setup_teardown(a_line_that_is_no_name_is_named, place_open, place_close),
        cmocka_unit_test_setup_teardown(the_last_line_needs_no_end, place_open, place_close),
        cmocka_unit_test_setup_teardown(who_hears_may_refuse, place_open, place_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
