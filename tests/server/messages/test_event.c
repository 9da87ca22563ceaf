/* Events taken apart as they were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "messages/event.h"
#include "sse.h"

static event_kind check(const char **p, size_t *n, const char *id, const char *name, const char *data)
{
    event e;
    assert_true(event_next(p, n, &e));
    assert_int_equal(e.n_id, strlen(id));
    assert_int_equal(e.n_name, strlen(name));
    assert_int_equal(e.n_data, strlen(data));
    assert_memory_equal(e.id, id, e.n_id);
    assert_memory_equal(e.name, name, e.n_name);
    assert_memory_equal(e.data, data, e.n_data);
    return e.kind;
}

static void put(buf *out, const char *id, const char *name, const char *data)
{
    buf_puts(out, id);
    event_begin(out, EVENT_DATA, name);
    buf_puts(out, data);
    event_end(out);
}

static void events_come_one_by_one(void **state)
{
    buf b = {0};
    event e;
    put(&b, "", NULL, "{\"a\":1}");
    put(&b, "AQ", "refine", "{}");
    event_begin(&b, EVENT_ERROR, NULL);
    buf_puts(&b, "{\"error\":{}}");
    event_end(&b);
    event_put_alive(&b);
    event_put_done(&b);
    const char *p = b.data;
    size_t n = b.len;
    assert_int_equal(check(&p, &n, "", "", "{\"a\":1}"), EVENT_DATA);
    assert_int_equal(check(&p, &n, "AQ", "refine", "{}"), EVENT_DATA);
    assert_int_equal(check(&p, &n, "", "", "{\"error\":{}}"), EVENT_ERROR);
    assert_int_equal(check(&p, &n, "", "", ""), EVENT_ALIVE);
    assert_int_equal(check(&p, &n, "", "", "[DONE]"), EVENT_LAST);
    assert_false(event_next(&p, &n, &e));
    assert_int_equal(n, 0);
    buf_done(&b);
}

static void what_is_not_whole_is_none(void **state)
{
    buf b = {0};
    put(&b, "1", "a", "{}");
    for (size_t n = 0; n < b.len; n++) {
        const char *p = b.data;
        size_t left = n;
        event e;
        assert_false(event_next(&p, &left, &e));
        assert_ptr_equal(p, b.data);
        assert_int_equal(left, n);
    }
    buf_done(&b);
}

static void events_are_written_as_server_sent_events(void **state)
{
    buf b = {0};
    put(&b, "", NULL, "{}");
    put(&b, "AQ", "refine", "{\"a\":1}");
    event_put_alive(&b);
    event_put_done(&b);
    assert_string_equal(sse_of(&b), "data: {}\n\nid: AQ\nevent: refine\ndata: {\"a\":1}\n\n"
                                    ": still here\n\ndata: [DONE]\n\n");
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_one_by_one),
        cmocka_unit_test(what_is_not_whole_is_none),
        cmocka_unit_test(events_are_written_as_server_sent_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
