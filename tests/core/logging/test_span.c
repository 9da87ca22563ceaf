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
    for (int i = 0; i < SPAN_ATTRIBUTES_MAX + 2; i++) span_set(&s, "key", name);
    assert_int_equal(s.n_attributes, SPAN_ATTRIBUTES_MAX);
    assert_int_equal(strlen(s.attributes[0].value), SPAN_VALUE_BYTES - 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_is_read_in_order_and_the_oldest_go),
        cmocka_unit_test(what_is_too_long_is_cut_and_too_many_are_left_out),
        cmocka_unit_test(a_traceparent_says_whether_it_is_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
