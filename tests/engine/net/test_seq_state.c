/* States of sequences: counted references, and snapshots beside the pages of a cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "net/attention/kv.h"

enum { STATE_BYTES = 64, PAGE = KV_PAGE_TOKENS };
static const kv_shape shape = {
    .n_layer = 1, .n_head_kv = 1, .head_dim = 8, .state_bytes = STATE_BYTES, .stateful = true};

static kv *open_kv(size_t n_pages)
{
    kv *c = NULL;
    size_t bytes;
    assert_int_equal(kv_bytes_for(&shape, n_pages, &bytes, NULL), 0);
    assert_int_equal(kv_new(&c, &shape, bytes, NULL), 0);
    assert_int_equal(c->n_pages, n_pages);
    assert_int_equal(c->states.n, n_pages + KV_SPARE_STATES);
    return c;
}

static void make_ids(int32_t *ids, int32_t first, size_t n)
{
    for (size_t i = 0; i < n; i++) ids[i] = first + (int32_t)i;
}

/* The "network": a state holds the sum of all tokens up to its position, from that of the state before. */
static uint64_t *sum_at(const kv *c, seq_state s)
{
    return seq_state_at(&c->states, s, 0);
}

static void compute(const kv *c, const kv_seq *s, const int32_t *ids, size_t n)
{
    uint64_t sum = s->n_tokens > 0 ? *sum_at(c, s->state) : 0;
    for (size_t at = s->n_tokens; at < s->n_tokens + n; at++) {
        sum += (uint64_t)ids[at];
        for (size_t m = 0; m < s->n_marks; m++)
            if (s->marks[m].position == at + 1) *sum_at(c, s->marks[m].state) = sum;
    }
}

static void check_sum(const kv *c, const kv_seq *s, const int32_t *ids)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n_tokens; i++) sum += (uint64_t)ids[i];
    if (s->n_tokens > 0) assert_int_equal(*sum_at(c, s->state), sum);
}

static int go_on(kv *c, kv_seq *s, const int32_t *ids, size_t n)
{
    int rc = kv_reserve(c, s, n);
    if (rc) return rc;
    compute(c, s, ids, n);
    kv_commit(c, s, ids, n);
    check_sum(c, s, ids);
    return 0;
}

/* ---- the pool ----------------------------------------------------------------------------------------- */

static void the_last_reference_frees_a_state(void **state)
{
    seq_states p;
    assert_int_equal(seq_states_init(&p, 128, 2, NULL), 0);
    seq_state a = seq_state_take(&p), b = seq_state_take(&p), a2 = seq_state_ref(&p, a);
    assert_int_not_equal(a, b);
    assert_int_equal(seq_state_take(&p), SEQ_STATE_NONE);
    memset(seq_state_at(&p, b, 0), 0xff, 128);
    memset(seq_state_at(&p, a, 0), 0, 128);
    assert_int_equal(*(uint8_t *)seq_state_at(&p, b, 0), 0xff); /* they do not overlap */
    seq_state_drop(&p, &a);
    assert_int_equal(a, SEQ_STATE_NONE);
    assert_int_equal(seq_state_take(&p), SEQ_STATE_NONE);
    seq_state_drop(&p, &a2);
    assert_int_equal(p.n_free, 1);
    assert_int_not_equal(seq_state_take(&p), SEQ_STATE_NONE);
    seq_state_drop(&p, &a2); /* none */
    assert_int_equal(seq_state_ref(&p, SEQ_STATE_NONE), SEQ_STATE_NONE);
    seq_states_done(&p);
    seq_states_done(&p);
}

static void absurd_pools_are_refused(void **state)
{
    seq_states p;
    shoal_err err = {0};
    assert_int_equal(seq_states_init(&p, SIZE_MAX / 2, 3, &err), SHOAL_ENOMEM);
    assert_int_equal(seq_states_init(&p, (size_t)1 << 62, 3, &err), SHOAL_ENOMEM);
    assert_null(p.free);
    assert_int_equal(seq_states_init(&p, 64, 0, &err), 0);
    assert_int_equal(seq_state_take(&p), SEQ_STATE_NONE);
}

/* ---- beside pages ------------------------------------------------------------------------------------- */

static void a_prefix_is_restored_where_a_page_ends(void **state)
{
    kv *c = open_kv(8);
    kv_seq a = {0}, b = {0};
    int32_t ids[4 * PAGE];
    make_ids(ids, 7, 4 * PAGE);
    kv_seq_init(&a, 256, 0);
    kv_seq_init(&b, 256, 0);
    assert_int_equal(go_on(c, &a, ids, 2 * PAGE + 5), 0);
    assert_int_equal(kv_adopt(c, &b, ids, 3 * PAGE), 2 * PAGE);
    check_sum(c, &b, ids);
    assert_int_equal(go_on(c, &b, ids, PAGE), 0);
    kv_release(c, &a);
    kv_release(c, &b);
    /* Within a page no state is known, though its keys are. */
    assert_int_equal(kv_adopt(c, &a, ids, 3 * PAGE - 1), 2 * PAGE);
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    kv_free(c);
}

static void a_conversation_goes_on_from_its_state(void **state)
{
    kv *c = open_kv(8);
    kv_seq a = {0};
    int32_t ids[2 * PAGE];
    make_ids(ids, 3, 2 * PAGE);
    kv_seq_init(&a, 256, 0);
    a.keeps = true;
    assert_int_equal(go_on(c, &a, ids, PAGE + 6), 0);
    kv_release(c, &a);
    assert_int_equal(kv_adopt(c, &a, ids, PAGE + 5), PAGE); /* a token less: its state is not known */
    kv_release(c, &a);
    assert_int_equal(kv_adopt(c, &a, ids, PAGE + 9), PAGE + 6);
    check_sum(c, &a, ids);
    assert_int_equal(go_on(c, &a, ids, 10), 0);
    kv_seq_done(c, &a);
    assert_int_equal(c->states.n_free, c->states.n - 2); /* the snapshots of two full pages */
    kv_free(c);
}

static void a_fork_goes_its_own_way(void **state)
{
    kv *c = open_kv(8);
    kv_seq a = {0}, b = {0};
    int32_t ids[2 * PAGE], others[2 * PAGE];
    make_ids(ids, 3, 2 * PAGE);
    make_ids(others, 3, 2 * PAGE);
    others[PAGE + 2] = 4711;
    kv_seq_init(&a, 256, 0);
    kv_seq_init(&b, 256, 0);
    assert_int_equal(go_on(c, &a, ids, PAGE + 2), 0);
    assert_int_equal(kv_fork(c, &b, &a), 0);
    assert_int_equal(b.state, a.state); /* nothing is copied */
    assert_int_equal(go_on(c, &a, ids, 1), 0);
    assert_int_equal(go_on(c, &b, others, 1), 0);
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    kv_free(c);
}

/* Whatever number of guesses holds, the state is that of the last token that does. */
static void rejected_guesses_are_rolled_back(void **state)
{
    enum { SURE = 3, GUESSED = 6 };
    for (size_t n_true = 0; n_true <= GUESSED; n_true++) {
        kv *c = open_kv(4);
        kv_seq a = {0};
        int32_t ids[2 * PAGE], guess[2 * PAGE];
        make_ids(ids, 20, 2 * PAGE);
        kv_seq_init(&a, 256, 0);
        assert_int_equal(go_on(c, &a, ids, PAGE - 6), 0); /* the guesses reach over the end of a page */
        memcpy(guess, ids, sizeof guess);
        for (size_t i = PAGE - 6 + SURE + n_true; i < 2 * PAGE; i++) guess[i] += 1000;
        assert_int_equal(kv_reserve_guessed(c, &a, SURE + GUESSED, GUESSED), 0);
        compute(c, &a, guess, SURE + GUESSED);
        kv_commit(c, &a, ids, SURE);
        check_sum(c, &a, ids);
        for (size_t i = 0; i < n_true; i++) {
            kv_commit(c, &a, ids, 1);
            check_sum(c, &a, ids);
        }
        assert_int_equal(go_on(c, &a, ids, 2), 0);
        kv_seq_done(c, &a);
        kv_forget(c);
        assert_int_equal(c->states.n_free, c->states.n);
        kv_free(c);
    }
}

/* Sequences come before snapshots: those of pages that wait are given up, in the pages' order. */
static void steps_take_states_from_pages_that_wait(void **state)
{
    enum { N_PAGES = 4, N = N_PAGES + KV_SPARE_STATES - 1 };
    kv *c = open_kv(N_PAGES);
    kv_seq a = {0};
    int32_t ids[3 * PAGE];
    seq_state held[N];
    make_ids(ids, 1, 3 * PAGE);
    kv_seq_init(&a, 256, 0);
    assert_int_equal(go_on(c, &a, ids, 2 * PAGE), 0);
    kv_release(c, &a);
    size_t n = 0;
    while (c->states.n_free > 0) held[n++] = seq_state_take(&c->states);
    assert_int_equal(kv_adopt(c, &a, ids, PAGE), PAGE); /* so that the first page's is in use */
    assert_int_equal(kv_reserve(c, &a, 3), 0);
    kv_release(c, &a);
    assert_int_equal(kv_adopt(c, &a, ids, 3 * PAGE), PAGE); /* the second page's snapshot is gone */
    held[n++] = seq_state_take(&c->states);
    assert_int_equal(kv_reserve(c, &a, 3), SHOAL_EFULL);
    assert_int_equal(a.n_pages, 1); /* nothing has changed */
    assert_int_equal(a.n_marks, 0);
    check_sum(c, &a, ids);
    seq_state_drop(&c->states, &held[--n]);
    assert_int_equal(kv_reserve_guessed(c, &a, 3, 2), SHOAL_EFULL);
    assert_int_equal(c->states.n_free, 1);
    assert_int_equal(go_on(c, &a, ids, 3), 0);
    while (n > 0) seq_state_drop(&c->states, &held[--n]);
    kv_seq_done(c, &a);
    kv_free(c);
}

/* Whatever happens, states are neither lost nor wrong. */
static void random_use_keeps_the_states(void **state)
{
    enum { N = 6 };
    kv *c = open_kv(20);
    kv_seq s[N] = {0};
    int32_t ids[N][256];
    uint64_t r = 1;
    for (int i = 0; i < N; i++) kv_seq_init(&s[i], 256, 0);
    for (int step = 0; step < 20000; step++) {
        r = rng_mix(r);
        size_t i = r % N, more = 1 + (r >> 16 & 63);
        kv_seq *q = &s[i], *p = &s[(i + 1) % N];
        if (q->n_pages == 0) {
            q->keeps = r >> 32 & 1;
            make_ids(ids[i], (int32_t)(r >> 8 & 3), 256);
            kv_adopt(c, q, ids[i], 1 + (r >> 40 & 63));
            check_sum(c, q, ids[i]);
        }
        if (q->n_tokens + more > 256 || go_on(c, q, ids[i], more) != 0) kv_release(c, q);
        if ((r >> 50 & 7) == 0 && q->n_tokens > 0) {
            kv_release(c, p);
            memcpy(ids[(i + 1) % N], ids[i], sizeof ids[i]);
            if (kv_fork(c, p, q) == 0) check_sum(c, p, ids[i]);
        }
    }
    for (int i = 0; i < N; i++) kv_seq_done(c, &s[i]);
    kv_forget(c);
    assert_int_equal(c->states.n_free, c->states.n);
    kv_free(c);
}

static void the_ceiling_counts_states(void **state)
{
    size_t page, one, n;
    kv *c;
    assert_int_equal(kv_page_bytes(&shape, &page, NULL), 0);
    assert_int_equal(page, 2 * 8 * PAGE * sizeof(float) + STATE_BYTES);
    assert_int_equal(kv_bytes_for(&shape, 1, &one, NULL), 0);
    assert_int_equal(one, page + KV_SPARE_STATES * STATE_BYTES);
    assert_int_equal(kv_pages_in(&shape, one - 1, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(kv_pages_in(&shape, one + 2 * page - 1, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(kv_new(&c, &shape, one - 1, NULL), SHOAL_ELIMIT);
}

/* A stage whose layers have no keys and values, and one whose layers have no state. */
static void either_part_may_be_missing(void **state)
{
    kv_shape only = shape, without = shape;
    only.n_layer = 0;
    without.state_bytes = 0;
    const kv_shape *each[] = {&only, &without};
    for (int i = 0; i < 2; i++) {
        kv *c;
        kv_seq a = {0};
        int32_t ids[PAGE];
        make_ids(ids, 1, PAGE);
        assert_int_equal(kv_new(&c, each[i], 1 << 20, NULL), 0);
        kv_seq_init(&a, 64, 0);
        assert_int_equal(kv_reserve(c, &a, PAGE), 0);
        kv_commit(c, &a, ids, PAGE);
        kv_release(c, &a);
        assert_int_equal(kv_adopt(c, &a, ids, PAGE), PAGE);
        kv_seq_done(c, &a);
        kv_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_reference_frees_a_state),
        cmocka_unit_test(absurd_pools_are_refused),
        cmocka_unit_test(a_prefix_is_restored_where_a_page_ends),
        cmocka_unit_test(a_conversation_goes_on_from_its_state),
        cmocka_unit_test(a_fork_goes_its_own_way),
        cmocka_unit_test(rejected_guesses_are_rolled_back),
        cmocka_unit_test(steps_take_states_from_pages_that_wait),
        cmocka_unit_test(random_use_keeps_the_states),
        cmocka_unit_test(the_ceiling_counts_states),
        cmocka_unit_test(either_part_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
