/* test_json_memory.c: what a parse costs beside jansson's own work grows with the text and no faster. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "json/json.h"
#include "json/json_memory.h"

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

static buf text_of(size_t i, size_t n)
{
    buf text = {0};
    buf_puts(&text, TEXTS[i].head);
    for (size_t k = 0; k < n; k++) {
        char piece[64];
        snprintf(piece, sizeof piece, TEXTS[i].piece, k);
        buf_puts(&text, piece);
    }
    buf_puts(&text, TEXTS[i].tail);
    return text;
}

static size_t steps_of(size_t i, size_t n)
{
    buf text = text_of(i, n);
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

static size_t held, most_held;

static void *counted_malloc(size_t n)
{
    void *block = malloc(n);
    held += malloc_usable_size(block) + sizeof(size_t);
    most_held = held > most_held ? held : most_held;
    return block;
}

static void counted_free(void *block)
{
    held -= block ? malloc_usable_size(block) + sizeof(size_t) : 0;
    free(block);
}

/* `held` counts what is alive at once; while a table grows its old half is alive, too. */
static void json_memory_is_known_before_the_parse(void **state)
{
    json_set_alloc_funcs(counted_malloc, counted_free);
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        buf text = text_of(i, 20000);
        json_t *v = NULL;
        held = most_held = 0;
        json_parse(&v, text.data, text.len, "text", NULL);
        size_t known = json_memory_of(text.data, text.len);
        if (most_held > known) fail_msg("text %zu took %zu bytes, %zu were said", i, most_held, known);
        json_decref(v);
        assert_int_equal(held, 0);
        buf_done(&text);
    }
    json_memory_guard();
}

static void json_of_many_small_objects_is_refused(void **state)
{
    shoal_err err;
    json_t *v = NULL;
    buf text = text_of(1, 300000);
    assert_int_equal(json_parse_request(&v, text.data, text.len, "body", &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "too many small objects"));
    assert_null(v);
    buf_done(&text);
    char deep[50000];
    memset(deep, '[', sizeof deep);
    assert_int_equal(json_parse_request(&v, deep, sizeof deep, "body", &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "nested deeper"));
    for (size_t i = 2; i < 4; i++) { /* texts and numbers, as many as a body holds */
        text = text_of(i, 500000);
        assert_int_equal(json_parse_request(&v, text.data, text.len, "body", &err), 0);
        json_decref(v);
        buf_done(&text);
    }
}

int main(void)
{
    json_memory_guard();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_memory_steps_grow_linearly),
        cmocka_unit_test(json_memory_is_known_before_the_parse),
        cmocka_unit_test(json_of_many_small_objects_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
