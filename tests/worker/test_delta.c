#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shoal/v1/worker.pb-c.h"
#include "worker/delta.h"

static Shoal__V1__GenerateEvent *round_trip(delta *d)
{
    buf out = {0};
    assert_int_equal(delta_pack(d, &out), 0);
    Shoal__V1__GenerateEvent *ev =
        shoal__v1__generate_event__unpack(NULL, out.len, (const uint8_t *)out.data);
    assert_non_null(ev);
    assert_non_null(ev->delta);
    buf_done(&out);
    return ev;
}

static void delta_carries_ids_text_and_logprobs(void **state)
{
    delta d = {0};
    for (int i = 0; i < 3; i++) {
        token_logprob top[2] = {{10 + i, -0.5f}, {20 + i, -1.5f}};
        delta_add_id(&d, i, 0.5 * i);
        delta_add_logprob(&d, NULL,
                          &(gen_event){.id = i, .logprob = (float)-i, .top = top, .n_top = (size_t)i});
    }
    delta_add_text(&d, "a\0b", 3);
    delta_add_thought(&d, "hm", 2);
    Shoal__V1__GenerateEvent *ev = round_trip(&d);
    assert_true(delta_is_empty(&d));
    assert_string_equal(ev->delta->reasoning, "hm");
    assert_int_equal(ev->delta->n_ids, 3);
    assert_int_equal(ev->delta->ids[2], 2);
    assert_true(ev->delta->prob_sum == 1.0);
    assert_string_equal(ev->delta->text, "a\xEF\xBF\xBD"
                                         "b");
    assert_int_equal(ev->delta->n_logprobs, 3);
    assert_int_equal(ev->delta->logprobs[0]->n_top, 0);
    assert_int_equal(ev->delta->logprobs[1]->n_top, 1);
    assert_int_equal(ev->delta->logprobs[2]->n_top, 2);
    assert_int_equal(ev->delta->logprobs[2]->id, 2);
    assert_int_equal(ev->delta->logprobs[2]->top[1]->id, 22);
    assert_true(ev->delta->logprobs[2]->top[1]->logprob == -1.5f);
    shoal__v1__generate_event__free_unpacked(ev, NULL);
    delta_done(&d);
}

static void delta_joins_pieces_of_one_tool_call(void **state)
{
    delta d = {0};
    for (int round = 0; round < 2; round++) {
        delta_add_tool_begin(&d, 0, "set_light");
        delta_add_tool_arguments(&d, 0, "{\"on\":", 6);
        delta_add_tool_arguments(&d, 0, "true}", 5);
        delta_add_tool_arguments(&d, 1, "{}", 2);
        Shoal__V1__GenerateEvent *ev = round_trip(&d);
        assert_int_equal(ev->delta->n_tool_calls, 2);
        assert_string_equal(ev->delta->tool_calls[0]->name, "set_light");
        assert_string_equal(ev->delta->tool_calls[0]->arguments, "{\"on\":true}");
        assert_int_equal(ev->delta->tool_calls[1]->index, 1);
        assert_string_equal(ev->delta->tool_calls[1]->name, "");
        assert_string_equal(ev->delta->tool_calls[1]->arguments, "{}");
        shoal__v1__generate_event__free_unpacked(ev, NULL);
    }
    delta_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delta_carries_ids_text_and_logprobs),
        cmocka_unit_test(delta_joins_pieces_of_one_tool_call),
    };
    return cmocka_run_group_tests_name("delta", tests, NULL, NULL);
}
