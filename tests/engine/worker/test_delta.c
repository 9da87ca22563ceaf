#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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
    assert_int_equal(ev->delta->reasoning.len, 2);
    assert_memory_equal(ev->delta->reasoning.data, "hm", 2);
    assert_int_equal(ev->delta->n_ids, 3);
    assert_int_equal(ev->delta->ids[2], 2);
    assert_true(ev->delta->prob_sum == 1.0);
    assert_int_equal(ev->delta->n_earlier_prob_sums, 2);
    assert_true(ev->delta->earlier_prob_sums[0] == 0 && ev->delta->earlier_prob_sums[1] == 0.5);
    assert_int_equal(ev->delta->text.len, 3);
    assert_memory_equal(ev->delta->text.data, "a\0b", 3);
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

/* ---- what is skipped --------------------------------------------------------------------------- */

/* All that a reply has to say, some of it in pieces within characters. */
static void say(delta *d, bool cut_differently)
{
    static const char TEXT[] = "t\xC3\xA9\0xt";
    delta_add_thought(d, "hm \xE2\x82\xAC", 6);
    for (size_t i = 0; i < 6; i += cut_differently ? 6 : 1)
        delta_add_text(d, TEXT + i, cut_differently ? 6 : 1);
    delta_add_tool_begin(d, 0, "set_light");
    delta_add_tool_arguments(d, 0, "{\"on\":", 6);
    delta_add_tool_arguments(d, 0, "\"\0\"}", 4);
    delta_add_tool_begin(d, 1, "nod");
    delta_add_tool_arguments(d, 1, "{}", 2);
}

/* The strings of a message one after the other, as a gateway counts them. */
static size_t join(const Shoal__V1__Delta *m, char *out)
{
    size_t n = m->reasoning.len + m->text.len;
    if (m->reasoning.len) memcpy(out, m->reasoning.data, m->reasoning.len);
    if (m->text.len) memcpy(out + m->reasoning.len, m->text.data, m->text.len);
    out[n] = '\0';
    for (size_t i = 0; i < m->n_tool_calls; i++)
        n += (size_t)sprintf(out + n, "%s%s", m->tool_calls[i]->name, m->tool_calls[i]->arguments);
    return n;
}

/* Within a character, or a name: no message ends there. */
static bool no_boundary(const char *all, size_t n, size_t at)
{
    static const char *const NAMES[] = {"set_light", "nod"};
    for (size_t i = 0; i < 2; i++) {
        size_t from = (size_t)((const char *)memmem(all, n, NAMES[i], strlen(NAMES[i])) - all);
        if (at > from && at < from + strlen(NAMES[i])) return true;
    }
    return ((unsigned char)all[at] & 0xC0) == 0x80;
}

static void delta_skips_what_the_client_has(void **state)
{
    char all[128], rest[128];
    delta d = {0};
    say(&d, false);
    Shoal__V1__GenerateEvent *ev = round_trip(&d);
    size_t n = join(ev->delta, all);
    static const char ALL[] = "hm \xE2\x82\xACt\xC3\xA9\0xtset_light{\"on\":\"\xEF\xBF\xBD\"}nod{}";
    assert_int_equal(n, sizeof ALL - 1);
    assert_memory_equal(all, ALL, n);
    shoal__v1__generate_event__free_unpacked(ev, NULL);
    for (size_t k = 1; k <= n + 1; k++) {
        delta_skip(&d, k);
        say(&d, true);
        assert_int_equal(delta_skips(&d), k > n || (k < n && no_boundary(all, n, k)));
        bool bad = delta_skips(&d);
        if (!bad && k < n) {
            ev = round_trip(&d);
            assert_int_equal(join(ev->delta, rest), n - k);
            assert_memory_equal(rest, all + k, n - k);
            for (size_t i = 0; i < ev->delta->n_tool_calls; i++) /* no empty pieces */
                assert_true(*ev->delta->tool_calls[i]->name || *ev->delta->tool_calls[i]->arguments);
            shoal__v1__generate_event__free_unpacked(ev, NULL);
        } else if (k == n) {
            assert_true(delta_is_empty(&d));
        }
        delta_done(&d);
        d = (delta){0};
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delta_carries_ids_text_and_logprobs),
        cmocka_unit_test(delta_joins_pieces_of_one_tool_call),
        cmocka_unit_test(delta_skips_what_the_client_has),
    };
    return cmocka_run_group_tests_name("delta", tests, NULL, NULL);
}
