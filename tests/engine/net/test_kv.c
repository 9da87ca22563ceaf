/* The paged cache: ceilings, prefix reuse, eviction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "os/memory_headroom.h"
#include "net/attention/kv.h"

static const kv_shape shape = {.n_layer = 2, .n_head_kv = 2, .head_dim = 8};
#define PAGE_BYTES (2 * 2 * 2 * 8 * KV_PAGE_TOKENS * sizeof(float))

static kv *open_kv(size_t n_pages)
{
    kv *c = NULL;
    assert_int_equal(kv_new(&c, &shape, n_pages * PAGE_BYTES + 5, NULL), 0);
    return c;
}

/* A sequence of n tokens first, first + 1, ..., computed to its end. */
static int fill(kv *c, kv_seq *s, int32_t first, size_t n)
{
    int32_t ids[256];
    for (size_t i = 0; i < n; i++) ids[i] = first + (int32_t)i;
    size_t had = kv_adopt(c, s, ids, n - 1);
    int rc = kv_reserve(c, s, n - had);
    if (rc == 0) kv_commit(c, s, ids, n - had);
    return rc;
}

static void the_ceiling_is_hard(void **state)
{
    kv *c = open_kv(4);
    kv_seq a = {0}, b = {0};
    kv_seq_init(&a, 256, 0);
    kv_seq_init(&b, 256, 0);
    assert_int_equal(kv_capacity_tokens(c), 4 * KV_PAGE_TOKENS);
    assert_int_equal(fill(c, &a, 0, 3 * KV_PAGE_TOKENS), 0);
    assert_int_equal(fill(c, &b, 1000, 2 * KV_PAGE_TOKENS), SHOAL_EFULL);
    assert_int_equal(b.n_pages, 0);
    assert_int_equal(c->n_used, 3);
    kv_release(c, &a);
    assert_int_equal(fill(c, &b, 1000, 2 * KV_PAGE_TOKENS), 0);
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    assert_int_equal(c->n_used, 0);
    assert_int_equal(kv_available(c), 4);
    kv_free(c);
}

static void sequences_of_different_sources_share_nothing(void **state)
{
    kv *c = open_kv(8);
    kv_seq a = {0}, b = {0}, same = {0};
    kv_seq_init(&a, 256, 7);
    kv_seq_init(&b, 256, 8);
    kv_seq_init(&same, 256, 7);
    assert_int_equal(fill(c, &a, 5, 40), 0);
    int32_t ids[40];
    for (int i = 0; i < 40; i++) ids[i] = 5 + i;
    assert_int_equal(kv_adopt(c, &b, ids, 40), 0);
    assert_int_equal(kv_adopt(c, &same, ids, 40), 32);
    kv_release(c, &same);
    assert_int_equal(kv_adopt(c, &same, ids, 40), 32); /* the salt outlives a release */
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    kv_seq_done(c, &same);
    kv_free(c);
}

static void a_fork_shares_full_pages_and_copies_the_open_one(void **state)
{
    kv *c = open_kv(4);
    kv_seq a = {0}, b = {0};
    kv_seq_init(&a, 256, 0);
    kv_seq_init(&b, 256, 0);
    assert_int_equal(fill(c, &a, 5, 2 * KV_PAGE_TOKENS + 3), 0);
    memset(kv_k(c, &a, 0, 0, 2), 0x5a, PAGE_BYTES);
    assert_int_equal(kv_fork(c, &b, &a), 0);
    assert_int_equal(b.n_tokens, a.n_tokens);
    assert_int_equal(b.pages[0], a.pages[0]);
    assert_int_equal(b.pages[1], a.pages[1]);
    assert_int_not_equal(b.pages[2], a.pages[2]);
    assert_memory_equal(kv_k(c, &b, 0, 0, 2), kv_k(c, &a, 0, 0, 2), PAGE_BYTES);
    kv_release(c, &a);
    assert_int_equal(c->n_used, 3);
    kv_seq third = {0}; /* no page is left for its open one, and nothing has changed */
    kv_seq_init(&third, 256, 0);
    assert_int_equal(fill(c, &a, 1000, 1), 0);
    assert_int_equal(kv_fork(c, &third, &b), SHOAL_EFULL);
    assert_int_equal(third.n_pages, 0);
    kv_seq_done(c, &third);
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    assert_int_equal(c->n_used, 0);
    kv_free(c);
}

static void an_equal_prefix_is_adopted_and_the_last_token_is_not(void **state)
{
    kv *c = open_kv(8);
    kv_seq a = {0}, b = {0};
    kv_seq_init(&a, 256, 0);
    kv_seq_init(&b, 256, 0);
    assert_int_equal(fill(c, &a, 5, 40), 0);
    int32_t ids[40];
    for (int i = 0; i < 40; i++) ids[i] = 5 + i;
    assert_int_equal(kv_adopt(c, &b, ids, 16), 16);
    assert_int_equal(b.pages[0], a.pages[0]);
    kv_release(c, &b);
    assert_int_equal(kv_adopt(c, &b, ids, 39), 32); /* the open page of another is nobody else's */
    kv_release(c, &b);
    ids[0] = 0;
    assert_int_equal(kv_adopt(c, &b, ids, 39), 0);
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    kv_free(c);
}

/* The longest that any page begins with, and what is copied is ours: the others' pages stay theirs. */
static void a_page_that_begins_the_same_is_copied(void **state)
{
    kv *c = open_kv(8);
    kv_seq a = {0}, b = {0}, s = {0};
    int32_t ids[48];
    kv_seq_init(&a, 256, 0);
    kv_seq_init(&b, 256, 0);
    kv_seq_init(&s, 256, 0);
    for (int i = 0; i < 48; i++) ids[i] = 5 + i;
    assert_int_equal(kv_reserve(c, &a, 32), 0);
    kv_commit(c, &a, ids, 32);
    ids[20] = 0; /* b parts from a in their second page */
    assert_int_equal(kv_adopt(c, &b, ids, 32), 20);
    assert_int_not_equal(b.pages[1], a.pages[1]);
    assert_int_equal(kv_reserve(c, &b, 12), 0);
    memset(kv_k(c, &b, 0, 0, 1), 0x5a, PAGE_BYTES);
    kv_commit(c, &b, ids, 12);
    ids[30] = 0; /* and s from b, ten tokens later */
    assert_int_equal(kv_adopt(c, &s, ids, 47), 30);
    assert_int_equal(s.n_registered, 1);
    assert_memory_equal(kv_k(c, &s, 0, 0, 1), kv_k(c, &b, 0, 0, 1), PAGE_BYTES);
    kv_release(c, &s);
    assert_int_equal(kv_adopt(c, &s, ids, 25), 25); /* no more than is asked for */
    kv_release(c, &s);
    ids[30] = 35, ids[20] = 25;
    assert_int_equal(kv_adopt(c, &s, ids, 48), 32); /* a is still as it was */
    assert_int_equal(s.pages[1], a.pages[1]);
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    kv_seq_done(c, &s);
    assert_int_equal(c->n_used, 0);
    assert_int_equal(kv_available(c), 8);
    kv_free(c);
}

/* The page that it would be copied from is never the one that makes room. */
static void a_full_cache_copies_nothing_over_itself(void **state)
{
    kv *c = open_kv(2);
    kv_seq a = {0}, b = {0};
    int32_t ids[32];
    kv_seq_init(&a, 256, 0);
    kv_seq_init(&b, 256, 0);
    for (int i = 0; i < 32; i++) ids[i] = i;
    assert_int_equal(kv_reserve(c, &a, 16), 0);
    kv_commit(c, &a, ids, 16);
    assert_int_equal(kv_reserve(c, &a, 1), 0);
    ids[9] = 77;
    assert_int_equal(kv_adopt(c, &b, ids, 30), 0); /* both pages are held */
    assert_int_equal(b.n_pages, 0);
    kv_release(c, &a);
    assert_int_equal(kv_adopt(c, &b, ids, 30), 9);
    assert_int_equal(c->n_used, 1);
    kv_release(c, &b);
    kv_forget(c);
    assert_int_equal(kv_adopt(c, &b, ids, 30), 0);
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    assert_int_equal(kv_available(c), 2);
    kv_free(c);
}

static void released_prefixes_stay_until_room_is_needed(void **state)
{
    kv *c = open_kv(4);
    kv_seq a = {0};
    kv_seq_init(&a, 256, 0);
    fill(c, &a, 0, 32);
    kv_release(c, &a);
    fill(c, &a, 500, 32);
    kv_release(c, &a);
    assert_int_equal(fill(c, &a, 0, 33), 0); /* 32 of them adopted, one page evicted from the other */
    kv_release(c, &a);
    int32_t ids[33];
    for (int i = 0; i < 33; i++) ids[i] = 500 + i;
    assert_int_equal(kv_adopt(c, &a, ids, 32), 16); /* the tail of a prefix goes first */
    kv_seq_done(c, &a);
    kv_free(c);
}

/* Which of the n tokens from `first` on are still there. */
static size_t is_known(kv *c, int32_t first, size_t n)
{
    int32_t ids[256];
    kv_seq s = {0};
    for (size_t i = 0; i < n; i++) ids[i] = first + (int32_t)i;
    kv_seq_init(&s, 256, 0);
    size_t had = kv_adopt(c, &s, ids, n);
    kv_seq_done(c, &s);
    return had;
}

static void use(kv *c, int32_t first, size_t n, bool keeps)
{
    kv_seq s = {0};
    kv_seq_init(&s, 256, 0);
    s.keeps = keeps;
    assert_int_equal(fill(c, &s, first, n), 0);
    kv_seq_done(c, &s);
}

static void pages_of_conversations_go_after_all_others(void **state)
{
    kv *c = open_kv(8);
    use(c, 0, 48, true);
    for (int32_t i = 1; i < 20; i++) use(c, i * 1000, 80, false);
    assert_int_equal(is_known(c, 0, 48), 48);
    assert_int_equal(c->line[KV_KEPT].n, 3);
    use(c, 30000, 112, false); /* room is needed, and nobody else has any: its tail goes */
    assert_int_equal(is_known(c, 0, 48), 16);
    use(c, 40000, 128, false);
    assert_int_equal(is_known(c, 0, 48), 0);
    assert_int_equal(c->line[KV_KEPT].n, 0);
    kv_free(c);
}

static void conversations_keep_half_of_the_cache_at_most(void **state)
{
    kv *c = open_kv(8);
    for (int32_t i = 0; i < 4; i++) use(c, i * 1000, 32, true);
    assert_int_equal(c->line[KV_KEPT].n, 4);
    assert_int_equal(is_known(c, 0, 32), 32); /* no longer kept, and still there */
    use(c, 50000, 48, false);
    assert_int_equal(is_known(c, 2000, 32), 32); /* the newest two */
    assert_int_equal(is_known(c, 3000, 32), 32);
    assert_true(is_known(c, 1000, 32) < 32);
    kv_free(c);
}

static size_t resume(kv *c, kv_seq *s, int32_t first, size_t n)
{
    int32_t ids[256];
    for (size_t i = 0; i < n; i++) ids[i] = first + (int32_t)i;
    return kv_adopt(c, s, ids, n);
}

/* In place, as it is; and what another one of the same beginning took is its own from then on. */
static void a_conversation_goes_on_in_its_open_page(void **state)
{
    kv *c = open_kv(8);
    kv_seq a = {.n_tokens = 0}, b = {.n_tokens = 0};
    kv_seq_init(&a, 256, 0);
    kv_seq_init(&b, 256, 0);
    a.keeps = true;
    assert_int_equal(fill(c, &a, 5, 40), 0);
    uint32_t page = a.pages[2];
    kv_release(c, &a);
    assert_int_equal(c->n_used, 0);
    assert_int_equal(c->line[KV_KEPT].n, 3);
    assert_int_equal(resume(c, &b, 5, 36), 36); /* the beginning of it alone is copied */
    assert_int_not_equal(b.pages[2], page);
    assert_int_equal(resume(c, &a, 5, 60), 40);
    assert_int_equal(a.pages[2], page);
    kv_release(c, &b);
    assert_int_equal(resume(c, &b, 5, 60), 32); /* it is a's again */
    kv_release(c, &b);
    assert_int_equal(fill(c, &b, 5, 40), 0);
    kv_release(c, &b); /* nobody in particular: its open page is free */
    assert_int_equal(kv_reserve(c, &a, 20), 0);
    kv_release(c, &a);
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    assert_int_equal(kv_available(c), 8);
    kv_free(c);
}

/* Two that end alike leave one open page; it goes when room is needed, and is not found any more. */
static void an_open_page_is_kept_once_and_goes_in_its_turn(void **state)
{
    kv *c = open_kv(4);
    kv_seq a = {.n_tokens = 0}, b = {.n_tokens = 0};
    kv_seq_init(&a, 256, 0);
    kv_seq_init(&b, 256, 0);
    a.keeps = b.keeps = true;
    assert_int_equal(fill(c, &a, 5, 20), 0);
    assert_int_equal(fill(c, &b, 5, 20), 0);
    kv_release(c, &a);
    kv_release(c, &b);
    assert_int_equal(c->line[KV_KEPT].n, 2);
    assert_int_equal(resume(c, &a, 5, 30), 20);
    kv_release(c, &a);
    use(c, 1000, 3 * KV_PAGE_TOKENS, false);
    assert_int_equal(resume(c, &a, 5, 30), 16);
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    assert_int_equal(kv_available(c), 4);
    kv_free(c);
}

static void equal_pages_computed_side_by_side_become_one(void **state)
{
    kv *c = open_kv(8);
    kv_seq a = {0}, b = {0};
    int32_t ids[16];
    for (int i = 0; i < 16; i++) ids[i] = i;
    kv_seq_init(&a, 64, 0);
    kv_seq_init(&b, 64, 0);
    kv_reserve(c, &a, 16);
    kv_reserve(c, &b, 16);
    assert_int_equal(c->n_used, 2);
    kv_commit(c, &a, ids, 16);
    kv_commit(c, &b, ids, 16);
    assert_int_equal(c->n_used, 1);
    assert_int_equal(a.pages[0], b.pages[0]);
    kv_seq_done(c, &a);
    kv_seq_done(c, &b);
    kv_free(c);
}

static void a_cache_under_one_page_is_refused(void **state)
{
    kv *c = NULL;
    shoal_err err = {0};
    assert_int_equal(kv_new(&c, &shape, PAGE_BYTES - 1, &err), SHOAL_ELIMIT);
    assert_null(c);
}

/* Whatever happens, pages are neither lost nor handed out twice. */
static void random_use_keeps_the_books(void **state)
{
    enum { N = 6 };
    kv *c = open_kv(20);
    kv_seq s[N] = {0};
    uint64_t r = 1;
    for (int i = 0; i < N; i++) kv_seq_init(&s[i], 256, 0);
    for (int step = 0; step < 20000; step++) {
        r = rng_mix(r);
        kv_seq *q = &s[r % N];
        q->keeps = r >> 32 & 1;
        if (q->n_pages > 0)
            kv_release(c, q);
        else if (fill(c, q, (int32_t)(r >> 8 & 3) * 100, 1 + (r >> 16 & 127)) != 0)
            kv_release(c, q);
        size_t held[20] = {0}, n_held = 0;
        for (int i = 0; i < N; i++) {
            for (size_t k = 0; k < s[i].n_pages; k++) n_held += held[s[i].pages[k]]++ == 0;
        }
        assert_int_equal(c->n_used, n_held);
        assert_int_equal(kv_available(c) + n_held, 20);
        assert_true(c->line[KV_KEPT].n <= 10);
    }
    for (int i = 0; i < N; i++) kv_seq_done(c, &s[i]);
    kv_free(c);
}

/* A page of this shape has 2 MiB. */
static void the_default_ceiling_holds_one_long_sequence(void **state)
{
    static const kv_shape large = {.n_layer = 32, .n_head_kv = 16, .head_dim = 32, .type = DT_F32};
    enum { CTX_16K = 16384, CTX_4K = 4096 };
    size_t page, bytes, half = (size_t)(memory_headroom_read("").free_bytes / 2);
    assert_int_equal(kv_page_bytes(&large, &page, NULL), 0);
    assert_int_equal(page, 2 << 20);
    /* What is asked for is reckoned with, and not 8,192 tokens of it. */
    assert_int_equal(kv_default_tokens(0, CTX_4K), CTX_4K);
    assert_int_equal(kv_default_tokens(0, CTX_16K), KV_DEFAULT_CTX);
    assert_int_equal(kv_default_tokens(CTX_16K, CTX_16K), CTX_16K);
    assert_int_equal(kv_default_bytes(&large, CTX_4K, &bytes, NULL), 0);
    assert_int_equal(bytes, half / 2 > 256 * page ? 256 * page : bytes);
    assert_int_equal(kv_default_bytes(&large, CTX_16K, &bytes, NULL), 0);
    assert_true(bytes >= KV_DEFAULT_BYTES && bytes <= CTX_16K / KV_PAGE_TOKENS * page);
    assert_int_equal(kv_default_bytes(&shape, CTX_4K, &bytes, NULL), 0);
    assert_int_equal(bytes, KV_DEFAULT_BYTES);
    assert_int_equal(kv_default_bytes(&large, 40, &bytes, NULL), 0);
    assert_int_equal(bytes, KV_DEFAULT_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ceiling_is_hard),
        cmocka_unit_test(the_default_ceiling_holds_one_long_sequence),
        cmocka_unit_test(sequences_of_different_sources_share_nothing),
        cmocka_unit_test(a_fork_shares_full_pages_and_copies_the_open_one),
        cmocka_unit_test(an_equal_prefix_is_adopted_and_the_last_token_is_not),
        cmocka_unit_test(a_page_that_begins_the_same_is_copied),
        cmocka_unit_test(a_full_cache_copies_nothing_over_itself),
        cmocka_unit_test(released_prefixes_stay_until_room_is_needed),
        cmocka_unit_test(pages_of_conversations_go_after_all_others),
        cmocka_unit_test(conversations_keep_half_of_the_cache_at_most),
        cmocka_unit_test(a_conversation_goes_on_in_its_open_page),
        cmocka_unit_test(an_open_page_is_kept_once_and_goes_in_its_turn),
        cmocka_unit_test(equal_pages_computed_side_by_side_become_one),
        cmocka_unit_test(a_cache_under_one_page_is_refused),
        cmocka_unit_test(random_use_keeps_the_books),
    };
    return cmocka_run_group_tests_name("infer_kv", tests, NULL, NULL);
}
