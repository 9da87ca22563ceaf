/* test_no_memory.c: the cache, its tags and the index of questions while one allocation after the other is
 * refused: answers may be lost, never mixed up, and nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cache/cache.h"
#include "cache/near.h"
#include "cache/near_rule.h"

/* The allocation that gets no memory, counted down; -1: none, or it was refused. */
static long countdown = -1;
static bool refused;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which bring their own allocator */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

static __attribute__((unused)) bool refuses(void)
{
    if (countdown < 0 || countdown-- > 0) return false;
    refused = true;
    return true;
}

void *malloc(size_t n)
{
    return refuses() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return refuses() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return refuses() ? NULL : __libc_realloc(p, n);
}
enum { REFUSES = 1 };
#else
enum { REFUSES = 0 };
#endif

static sha256_digest key(unsigned i)
{
    sha256_digest d = {{(uint8_t)i, (uint8_t)(i >> 8)}};
    return d;
}

static void on_turn(void *user, cache_outcome o, const cache_value *v)
{
    if (v && o == CACHE_HIT) assert_string_equal(v->data, "answer");
}

/* One request: answered from the cache or computed; with a tag of its own and one that all have. */
static void ask(cache *c, unsigned i)
{
    char own[16];
    const char *tags[] = {"all", own};
    sha256_digest k = key(i % 40);
    cache_found f;
    snprintf(own, sizeof own, "own %u", i);
    cache_ask a = {.key = &k, .tags = tags, .n_tags = 2, .takes_stale = true};
    cache_outcome o = cache_lookup(c, &a, i, on_turn, NULL, &f);
    if (o == CACHE_LEAD) {
        cache_found other;
        cache_outcome also = cache_lookup(c, &a, i, on_turn, NULL, &other);
        if (also == CACHE_LEAD) cache_leave(other.ticket);
        if (i % 5 == 0)
            cache_fail(f.ticket, 400, "refused", 7, true, i);
        else
            cache_fill(f.ticket, "answer", 6, i);
    } else if (f.value->status == 200) {
        assert_string_equal(f.value->data, "answer");
    }
    cache_value_unref(f.value);
}

static void live(void)
{
    cache *c = NULL;
    cache_stats s;
    cache_options o = {.max_bytes = 4000, .ttl_ns = 30, .stale_ns = 20, .negative_ttl_ns = 10};
    if (cache_new(&c, &o, NULL) != 0) return;
    for (unsigned i = 0; i < 150; i++) {
        ask(c, i);
        if (i % 37 == 0) cache_purge(c, (const char *const[]){"all"}, 1);
        cache_get_stats(c, &s);
        assert_true(s.n_bytes <= 4000);
    }
    cache_purge(c, NULL, 0);
    cache_get_stats(c, &s);
    assert_int_equal(s.n_bytes, 0);
    assert_int_equal(s.n_in_flight, 0);
    assert_int_equal(s.n_tags, 0);
    cache_free(c);
}

/* What is found is what was added under that key. */
static void look(void)
{
    near *n = NULL;
    near_found f[NEAR_FOUND_MAX];
    if (near_new(&n, ISA_SCALAR, 50, 100000, NULL) != 0) return;
    for (unsigned i = 0; i < 120; i++) {
        int8_t codes[16] = {1, (int8_t)(i % 100), (int8_t)(i / 2)};
        char text[16];
        sha256_digest partition = key(i % 7), k = key(i);
        snprintf(text, sizeof text, "%u", i);
        near_add(n, &partition, &k, codes, 0.01f, sizeof codes, text);
        assert_true(near_count(n) <= 50);
        size_t found = near_find(n, &partition, codes, 0.01f, sizeof codes, 0, f, NEAR_FOUND_MAX);
        for (size_t j = 0; j < found; j++) {
            sha256_digest want = key((unsigned)atoi(f[j].text));
            assert_memory_equal(&want, &f[j].key, sizeof want);
        }
        if (i % 3 == 0) near_drop(n, &k);
    }
    near_free(n);
}

static void judge(void)
{
    near_verdict v = near_rule_compare("turn on the light", "please turn the light on", "en", NEAR_WORDS);
    assert_true(v == NEAR_SAME || v == NEAR_TOO_LONG);
    v = near_rule_compare("turn on the light", "turn off the light", "en", NEAR_WORDS);
    assert_true(v != NEAR_SAME);
}

/* Again and again, until none is refused any more. Returns how many there were. */
static long sweep(void (*run)(void))
{
    long n = 0;
    do {
        refused = false;
        countdown = n++;
        run();
        countdown = -1;
    } while (refused);
    return n;
}

static void cache_lives_on(void **state)
{
    assert_true(sweep(live) > 300 || !REFUSES);
}

static void index_lives_on(void **state)
{
    assert_true(sweep(look) > 100 || !REFUSES);
}

static void rule_refuses(void **state)
{
    assert_true(sweep(judge) > 2 || !REFUSES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_lives_on),
        cmocka_unit_test(index_lives_on),
        cmocka_unit_test(rule_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
