/* How many tokens of prompts a step takes: plans for given speeds. */
#include "helper.h"
#include "infer/batch.h"

/* Milliseconds that a step of n tokens of a prompt takes. */
static double lasts(const batch_scene *s, size_t n)
{
    return s->fixed_ms + s->token_ms * (double)n;
}

static const double speeds[] = {0.01, 0.05, 0.3, 0.54, 1, 2, 6, 40}; /* ms a token */
#define N_SPEEDS (sizeof speeds / sizeof *speeds)

/* 135 M parameters on one thread: the weights stream once for two hundred tokens, not for thirty-two. */
static void a_prompt_alone_is_read_in_long_chunks(void **state)
{
    for (size_t i = 0; i < N_SPEEDS; i++) {
        batch_scene s = {.fixed_ms = 8 * speeds[i], .token_ms = speeds[i]};
        size_t n = batch_alone(&s);
        assert_in_range(n, 128, BATCH_CHUNK_MAX);
        assert_int_equal(n % BATCH_GRAIN, 0);
        if (n > 128) assert_true(lasts(&s, n) <= BATCH_QUIET_MS);
    }
    assert_int_equal(batch_alone(&(batch_scene){.fixed_ms = 4, .token_ms = 0.54}), 256);
    assert_int_equal(batch_alone(&(batch_scene){.fixed_ms = 50, .token_ms = 6}), 128);
}

static void who_comes_waits_a_tenth_of_a_second_at_most(void **state)
{
    for (size_t i = 0; i < N_SPEEDS; i++) {
        batch_scene s = {.fixed_ms = 8 * speeds[i], .token_ms = speeds[i], .others_here = true};
        size_t n = batch_alone(&s);
        assert_in_range(n, 32, BATCH_CHUNK_MAX);
        if (n > 32) assert_true(lasts(&s, n) <= BATCH_COMPANY_MS);
        if (n < BATCH_CHUNK_MAX) assert_true(lasts(&s, n + BATCH_GRAIN) > BATCH_COMPANY_MS);
    }
}

static void streams_keep_their_gap_beside_a_prompt(void **state)
{
    for (size_t i = 0; i < N_SPEEDS; i++) {
        for (double decode_ms = 0.1; decode_ms < 1000; decode_ms *= 1.7) {
            batch_scene s = {.token_ms = speeds[i], .decode_ms = decode_ms};
            size_t n = batch_shared(&s);
            assert_in_range(n, BATCH_GRAIN, BATCH_CHUNK_MAX);
            bool fits = decode_ms + speeds[i] * (double)n <= BATCH_GAP * decode_ms * 1.0001;
            if (n > BATCH_GRAIN) assert_true(fits);
            bool more = decode_ms + speeds[i] * (double)(n + BATCH_GRAIN) <= BATCH_GAP * decode_ms;
            if (n < BATCH_CHUNK_MAX) assert_false(more);
        }
    }
}

/* Beside streams the weights are there already: what was seen there counts, not the prompts alone. */
static void a_token_beside_streams_has_a_cost_of_its_own(void **state)
{
    batch_scene s = {.token_ms = 1, .beside_ms = 0.5, .decode_ms = 40};
    assert_int_equal(batch_shared(&s), 80);
    s.beside_ms = 0;
    assert_int_equal(batch_shared(&s), 32);
}

static void the_owner_has_the_last_word_beside_streams(void **state)
{
    batch_scene s = {.token_ms = 0.1, .decode_ms = 100};
    assert_int_equal(batch_shared(&s), BATCH_CHUNK_MAX);
    for (size_t most = 1; most < 300; most += 7) {
        s.most = most;
        assert_int_equal(batch_shared(&s), most < BATCH_CHUNK_MAX ? most : BATCH_CHUNK_MAX);
    }
    s.most = 8;
    s.decode_ms = 0;
    assert_int_equal(batch_shared(&s), 8);
}

static void a_near_deadline_of_somebody_else_cuts_the_chunk(void **state)
{
    batch_scene s = {.token_ms = 0.5, .decode_ms = 200};
    assert_int_equal(batch_alone(&s), 256);
    assert_int_equal(batch_shared(&s), 256);
    s.left_ms = 200;
    assert_int_equal(batch_alone(&s), 96);
    assert_int_equal(batch_shared(&s), 96);
    s.left_ms = 1;
    assert_int_equal(batch_alone(&s), BATCH_GRAIN);
    assert_int_equal(batch_shared(&s), BATCH_GRAIN);
    s.left_ms = 1e6;
    assert_int_equal(batch_alone(&s), 256);
}

static void what_is_not_known_is_tried_with_care(void **state)
{
    assert_int_equal(batch_alone(&(batch_scene){.others_here = true}), 64);
    assert_int_equal(batch_alone(&(batch_scene){0}), 64);
    assert_int_equal(batch_shared(&(batch_scene){.decode_ms = 3}), 64);
    assert_int_equal(batch_shared(&(batch_scene){.token_ms = 3}), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_alone_is_read_in_long_chunks),
        cmocka_unit_test(who_comes_waits_a_tenth_of_a_second_at_most),
        cmocka_unit_test(streams_keep_their_gap_beside_a_prompt),
        cmocka_unit_test(a_token_beside_streams_has_a_cost_of_its_own),
        cmocka_unit_test(the_owner_has_the_last_word_beside_streams),
        cmocka_unit_test(a_near_deadline_of_somebody_else_cuts_the_chunk),
        cmocka_unit_test(what_is_not_known_is_tried_with_care),
    };
    return cmocka_run_group_tests_name("infer_batch", tests, NULL, NULL);
}
