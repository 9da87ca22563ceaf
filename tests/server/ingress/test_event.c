/* Events taken apart as they were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ingress/event.h"

static void check(const char **p, size_t *n, const char *id, const char *name, const char *data)
{
    event e;
    assert_true(event_next(p, n, &e));
    assert_int_equal(e.n_id, strlen(id));
    assert_int_equal(e.n_name, strlen(name));
    assert_int_equal(e.n_data, strlen(data));
    assert_memory_equal(e.id, id, e.n_id);
    assert_memory_equal(e.name, name, e.n_name);
    assert_memory_equal(e.data, data, e.n_data);
}

static void events_come_one_by_one(void **state)
{
    const char *p = "data: {\"a\":1}\n\nid: AQ\nevent: refine\ndata: {}\n\ndata: [DONE]\n\n";
    size_t n = strlen(p);
    check(&p, &n, "", "", "{\"a\":1}");
    check(&p, &n, "AQ", "refine", "{}");
    check(&p, &n, "", "", "[DONE]");
    event e;
    assert_false(event_next(&p, &n, &e));
    assert_int_equal(n, 0);
}

static void what_is_not_whole_is_none(void **state)
{
    static const char *const parts[] = {"", "data: {}", "data: {}\n", "id: 1\ndata: {}\n", "dat"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *p = parts[i];
        size_t n = strlen(p);
        event e;
        assert_false(event_next(&p, &n, &e));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_one_by_one),
        cmocka_unit_test(what_is_not_whole_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
