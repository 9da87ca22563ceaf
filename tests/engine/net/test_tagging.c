#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/tagging.h"

enum { O, B_X, I_X, I_Y, PLAIN, N_LABELS };

static const char *labels[] = {"O", "B-x", "I-x", "I-y", "plain"};

typedef struct sample {
    encoding e;
    token_span spans[16];
    uint8_t types[16], special[16];
    float logits[16 * N_LABELS];
} sample;

/* Token i covers bytes [3i, 3i+2) and wears label tags[i]. */
static void fill(sample *s, const int *tags, size_t n)
{
    *s = (sample){0};
    for (size_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)(3 * i);
        s->spans[i] = (token_span){at, at + 2, at, at + 2};
        s->logits[i * N_LABELS + (size_t)tags[i]] = 20;
    }
    s->e = (encoding){.n = n, .spans = s->spans, .type_ids = s->types, .special = s->special};
}

static entity *decode(sample *s, size_t *ret_n)
{
    model_config c = {.head = {.labels = labels, .n_labels = N_LABELS}};
    entity *found = NULL;
    assert_int_equal(tagging_entities(&c, &s->e, s->logits, &found, ret_n, NULL), 0);
    return found;
}

static void entities_begin_go_on_and_end(void **state)
{
    const int tags[] = {B_X, I_X, O, I_X, I_Y, B_X, B_X, PLAIN, PLAIN};
    const uint32_t want[][2] = {{0, 5}, {9, 11}, {12, 14}, {15, 17}, {18, 20}, {21, 26}};
    const char *const names[] = {"x", "x", "y", "x", "x", "plain"};
    sample s;
    size_t n;
    fill(&s, tags, 9);
    entity *found = decode(&s, &n);
    assert_int_equal(n, 6);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(found[i].span.begin, want[i][0]);
        assert_int_equal(found[i].span.end, want[i][1]);
        assert_string_equal(found[i].label, names[i]);
        assert_true(found[i].score > 0.99f && found[i].score <= 1);
    }
    free(found);
}

static void entities_skip_special_empty_and_second_text(void **state)
{
    const int tags[] = {B_X, B_X, B_X, B_X};
    sample s;
    size_t n;
    fill(&s, tags, 4);
    s.special[0] = 1;
    s.spans[1].end = s.spans[1].begin;
    s.types[3] = 1;
    entity *found = decode(&s, &n);
    assert_int_equal(n, 1);
    assert_int_equal(found[0].span.begin, 6);
    free(found);
}

static void entities_of_nothing_are_none(void **state)
{
    sample s;
    size_t n = 7;
    fill(&s, (const int[]){O, O}, 2);
    assert_null(decode(&s, &n));
    assert_int_equal(n, 0);
    fill(&s, NULL, 0);
    assert_null(decode(&s, &n));
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entities_begin_go_on_and_end),
        cmocka_unit_test(entities_skip_special_empty_and_second_text),
        cmocka_unit_test(entities_of_nothing_are_none),
    };
    return cmocka_run_group_tests_name("tagging", tests, NULL, NULL);
}
