/* test_json_memory.c: what a parse costs beside jansson's own work grows with the text and no faster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_memory.h"

/* n times the piece behind a head, and a tail: whole or cut. */
static const struct {
    const char *head, *piece, *tail;
    bool is_json;
} TEXTS[] = {
    {"[", "[],", "0]", true},
    {"[", "{},", "0]", true},
    {"[", "\"abc\",", "0]", true},
    {"[", "1.5,", "0]", true},
    {"[", "[],", "", false},
    {"[", "{\"a\":[1]},", "", false},
    {"[", "\"abcdefgh\",", "", false},
    {"[", "[[[]]],", "]", false},
    {"[", "12,", "nul", false},
    {"{", "\"k%zu\":1,", "\"z\":1}", true},
    {"{", "\"k%zu\":{},", "\"z\"", false},
    {"{", "\"k%zu\":[\"v\"],", "\"k0\":1}", false},
};

static size_t steps_of(size_t i, size_t n)
{
    buf text = {0};
    buf_puts(&text, TEXTS[i].head);
    for (size_t k = 0; k < n; k++) {
        char piece[64];
        snprintf(piece, sizeof piece, TEXTS[i].piece, k);
        buf_puts(&text, piece);
    }
    buf_puts(&text, TEXTS[i].tail);
    size_t before = json_memory_steps();
    json_error_t e;
    bool nomem;
    json_t *v = json_memory_load(text.data, text.len, JSON_REJECT_DUPLICATES, &e, &nomem);
    assert_false(nomem);
    assert_int_equal(v != NULL, TEXTS[i].is_json);
    size_t steps = json_memory_steps() - before;
    json_decref(v);
    buf_done(&text);
    return steps;
}

static void json_memory_steps_grow_linearly(void **state)
{
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        size_t once = steps_of(i, 20000), twice = steps_of(i, 40000);
        if (twice >= 3 * once + 1000)
            fail_msg("text %zu: %zu steps, and %zu for twice as much", i, once, twice);
    }
}

int main(void)
{
    json_memory_guard();
    const struct CMUnitTest tests[] = {cmocka_unit_test(json_memory_steps_grow_linearly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
