/* Spans in their ring, and what of a traceparent they need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <string.h>

#include "logging/span.h"
#include "logging/trace.h"

static void add(span_ring *r, uint64_t group, uint64_t id)
{
    span s = {.group = group, .id = id, .start_ns = id, .end_ns = id + 1};
    span_ring_add(r, &s);
}

static void expect(const span_ring *r, uint64_t group, const uint64_t *ids)
{
    const span *at = NULL;
    while ((at = span_ring_next(r, group, at))) assert_int_equal(at->id, *ids++);
    assert_int_equal(*ids, 0);
}

static void a_group_is_read_in_order_and_the_oldest_go(void **state)
{
    span_ring *r = span_ring_new(4);
    expect(r, 1, (uint64_t[]){0});
    add(r, 1, 10);
    add(r, 2, 20);
    add(r, 1, 11);
    expect(r, 1, (uint64_t[]){10, 11, 0});
    expect(r, 2, (uint64_t[]){20, 0});
    add(r, 2, 21);
    add(r, 1, 12); /* in the place of 10 */
    add(r, 2, 22); /* and of 20 */
    expect(r, 1, (uint64_t[]){11, 12, 0});
    expect(r, 2, (uint64_t[]){21, 22, 0});
    expect(r, 3, (uint64_t[]){0});
    span_ring_free(r);
}

static void what_is_too_long_is_cut_and_too_many_are_left_out(void **state)
{
    span s = {0};
    char name[200];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    span_name(&s, name);
    assert_int_equal(strlen(s.name), SPAN_NAME_BYTES - 1);
    span_set(&s, "key", name);
    assert_int_equal(strlen(span_value(&s, 0)), SPAN_VALUE_MAX);
    span_set(&s, "none", NULL);
    span_set(&s, "empty", "");
    assert_int_equal(s.n_attributes, 1);
    for (int i = 0; i < SPAN_ATTRIBUTES_MAX + 2; i++) span_set(&s, "short", "value");
    assert_int_equal(s.n_attributes, SPAN_ATTRIBUTES_MAX);
    assert_string_equal(span_find(&s, "short"), "value");
    assert_string_equal(span_find(&s, "other"), "");
}

static void values_share_their_room_and_letters_stay_whole(void **state)
{
    span s = {0};
    char text[SPAN_VALUE_MAX + 2];
    memset(text, 'x', sizeof text);
    memcpy(text + SPAN_VALUE_MAX - 1, "\xC3\xA4", 3); /* half of it would fit */
    span_set(&s, "a", text);
    assert_int_equal(strlen(span_value(&s, 0)), SPAN_VALUE_MAX - 1);
    for (int i = 0; i < SPAN_ATTRIBUTES_MAX; i++) span_set(&s, "b", text);
    assert_true(s.n_values <= SPAN_VALUES_BYTES);
    size_t n = 0;
    for (size_t i = 0; i < s.n_attributes; i++) n += strlen(span_value(&s, i)) + 1;
    assert_int_equal(n, s.n_values);
}

static void a_list_keeps_its_order_and_its_bound(void **state)
{
    span_list l = {0};
    for (uint64_t i = 0; i < SPAN_LIST_MAX + 3; i++) span_list_add(&l, &(span){.id = i + 1});
    assert_int_equal(l.n, SPAN_LIST_MAX);
    assert_int_equal(l.n_lost, 3);
    for (uint64_t i = 0; i < SPAN_LIST_MAX; i++) assert_int_equal(l.spans[i].id, i + 1);
    span_list_done(&l);
    assert_int_equal(l.n, 0);
}

static void a_traceparent_says_whether_it_is_sampled(void **state)
{
    static const char SAMPLED[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                      NOT[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    assert_true(trace_is_sampled(SAMPLED));
    assert_false(trace_is_sampled(NOT));
    assert_false(trace_is_sampled(""));
    assert_false(trace_is_sampled(NULL));
    assert_true(trace_span(NOT) == 0x00f067aa0ba902b7u);
    assert_true(trace_span("new") == 0);
    assert_true(trace_span(NULL) == 0);
}

static void a_new_trace_is_sampled_by_its_ratio(void **state)
{
    char trace[TRACE_SIZE];
    unsigned n = 0;
    for (int i = 0; i < 2000; i++) {
        trace_begin(trace, 0.25);
        assert_int_equal(strlen(trace), TRACE_SIZE - 1);
        n += trace_is_sampled(trace);
        trace_begin(trace, 0);
        assert_false(trace_is_sampled(trace));
        trace_begin(trace, 1);
        assert_true(trace_is_sampled(trace));
    }
    assert_in_range(n, 350, 650); /* seven standard deviations are 135 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_is_read_in_order_and_the_oldest_go),
        cmocka_unit_test(what_is_too_long_is_cut_and_too_many_are_left_out),
        cmocka_unit_test(values_share_their_room_and_letters_stay_whole),
        cmocka_unit_test(a_list_keeps_its_order_and_its_bound),
        cmocka_unit_test(a_new_trace_is_sampled_by_its_ratio),
        cmocka_unit_test(a_traceparent_says_whether_it_is_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
