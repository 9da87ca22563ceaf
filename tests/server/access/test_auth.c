/* Keys: found by their digest alone, held to their rules, and to their rates in a time that the test makes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "access/auth.h"

#define SECOND 1000000000ull
#define MINUTE (60 * SECOND)

typedef struct ring { /* of one key, "sesame" */
    char digest[72];
    config_key rule;
    auth *a;
    const auth_key *k;
} ring;

static void digest_of(const char *text, char out[72])
{
    sha256_digest d;
    sha256_of(text, strlen(text), &d);
    memcpy(out, "sha256:", 7);
    sha256_hex(&d, out + 7);
}

static void ring_open(ring *r, config_key rule)
{
    memset(r, 0, sizeof *r);
    digest_of("sesame", r->digest);
    r->rule = rule;
    r->rule.sha256 = r->digest;
    assert_int_equal(auth_new(&r->a, &r->rule, 1, NULL, NULL), 0);
    r->k = auth_find(r->a, "sesame");
    assert_non_null(r->k);
}

static void auth_refuses_malformed_digests(void **state)
{
    static const char *const BAD[] = {
        "sesame", "sha256:zz", "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff0"};
    auth *a;
    shoal_err err;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        config_key k = {.name = "", .sha256 = BAD[i]};
        assert_int_equal(auth_new(&a, &k, 1, NULL, &err), SHOAL_EINVALID);
        assert_null(strstr(err.message, BAD[i]));
    }
}

static void auth_finds_each_of_thousands_and_no_other(void **state)
{
    enum { N = 5000 };
    config_key *keys = calloc(N, sizeof *keys);
    char(*digests)[72] = calloc(N, sizeof *digests), text[32], name[AUTH_LABEL_BYTES];
    auth *a;
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "sk-%d", i);
        digest_of(text, digests[i]);
        keys[i] = (config_key){.name = "", .sha256 = digests[i]};
    }
    assert_int_equal(auth_new(&a, keys, N, NULL, NULL), 0);
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "sk-%d", i);
        const auth_key *k = auth_find(a, text);
        assert_ptr_equal(k ? k->rule : NULL, &keys[i]);
        assert_memory_equal(auth_label(k, name), digests[i], 15);
    }
    assert_null(auth_find(a, "sk-5000"));
    assert_null(auth_find(a, "Sk-1"));
    assert_null(auth_find(a, ""));
    assert_null(auth_find(a, NULL));
    auth_free(a);
    free(keys);
    free(digests);
}

static void auth_matches_patterns(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } CASES[] = {
        {"home", "home", true},
        {"home", "home-chat", false},
        {"home-*", "home-chat", true},
        {"home-*", "home-", true},
        {"*", "", true},
        {"*", "anything", true},
        {"", "", true},
        {"", "x", false},
        {"?", "", false},
        {"h?me", "home", true},
        {"h?me", "hme", false},
        {"*-s", "home-chat-s", true},
        {"a*b*c", "aXbYbZc", true},
        {"a*b*c", "aXcYb", false},
        {"home-chat", "home-chat:led", false},
        {"/v1/*", "/v1/chat", true},
        {"home-chat*", "home-chat:led", true},
        {"**", "x", true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (auth_matches(CASES[i].pattern, CASES[i].name) != CASES[i].matches)
            fail_msg("'%s' and '%s'", CASES[i].pattern, CASES[i].name);
    char long_name[20001]; /* many stars over a long name must not take long */
    memset(long_name, 'a', 20000);
    long_name[20000] = '\0';
    assert_false(auth_matches("*a*a*a*a*a*a*a*a*b", long_name));
}

static void auth_holds_a_key_to_its_rules(void **state)
{
    const char *models[] = {"home", "tv-*"}, *endpoints[] = {"process", "/v1/audio/*"};
    ring r;
    ring_open(&r, (config_key){.name = "tv",
                               .models = models,
                               .n_models = 2,
                               .endpoints = endpoints,
                               .n_endpoints = 2,
                               .expires = "2027-01-01",
                               .expires_s = 1798761600});
    assert_true(auth_may_use(r.k, "home") && auth_may_use(r.k, "tv-guide"));
    assert_false(auth_may_use(r.k, "home-chat-s"));
    assert_true(auth_may_ask(r.k, "process", "/v1/process"));
    assert_true(auth_may_ask(r.k, "transcriptions", "/v1/audio/transcriptions"));
    assert_false(auth_may_ask(r.k, "embeddings", "/v1/embeddings"));
    assert_false(auth_ended(r.k, 1798761599));
    assert_true(auth_ended(r.k, 1798761600));
    auth_free(r.a);
    ring_open(&r, (config_key){.name = ""});
    assert_true(auth_may_use(r.k, "whatever") && auth_may_ask(r.k, "metrics", "/metrics"));
    assert_false(auth_ended(r.k, INT64_MAX));
    auth_free(r.a);
}

static void auth_counts_requests_of_a_minute(void **state)
{
    ring r;
    auth_rate of;
    uint64_t now = 77 * SECOND;
    ring_open(&r, (config_key){.name = "a", .requests_per_minute = 6});
    for (int i = 0; i < 6; i++) {
        assert_int_equal(auth_wait_ns(r.k, now, &of), 0);
        auth_enter(r.k, now);
        auth_leave(r.k, 1000000, now);
    }
    assert_int_equal(auth_wait_ns(r.k, now, &of), 10 * SECOND);
    assert_int_equal(of, AUTH_REQUESTS);
    assert_int_equal(auth_wait_ns(r.k, now + 4 * SECOND, &of), 6 * SECOND);
    assert_int_equal(auth_wait_ns(r.k, now - 4 * SECOND, &of), 10 * SECOND); /* a clock that went back */
    assert_int_equal(auth_wait_ns(r.k, now + 10 * SECOND, &of), 0);
    auth_enter(r.k, now + 10 * SECOND);
    assert_int_equal(auth_wait_ns(r.k, now + 10 * SECOND, &of), 10 * SECOND);
    assert_int_equal(auth_wait_ns(r.k, now + 100 * MINUTE, &of), 0);
    assert_true(bucket_left(&r.k->use->requests, 6, now + 100 * MINUTE) == 6); /* and no more than that */
    auth_free(r.a);
}

static void auth_waits_out_tokens_that_were_owed(void **state)
{
    ring r;
    auth_rate of;
    uint64_t now = SECOND;
    ring_open(&r, (config_key){.name = "a", .tokens_per_minute = 600});
    auth_enter(r.k, now);
    auth_enter(r.k, now); /* both were let in before anyone knew what they would take */
    auth_leave(r.k, 500, now);
    assert_int_equal(auth_wait_ns(r.k, now, &of), 0);
    auth_leave(r.k, 700, now);
    assert_int_equal(auth_wait_ns(r.k, now, &of), MINUTE + SECOND / 10); /* a debt of 600, and one token */
    assert_int_equal(of, AUTH_TOKENS);
    assert_int_equal(auth_wait_ns(r.k, now + MINUTE + SECOND / 10, &of), 0);
    auth_free(r.a);
}

static void auth_counts_requests_at_once(void **state)
{
    ring r;
    auth_rate of;
    ring_open(&r, (config_key){.name = "a", .n_concurrent = 2});
    auth_enter(r.k, 1);
    auth_enter(r.k, 1);
    assert_true(auth_wait_ns(r.k, MINUTE, &of) > 0);
    assert_int_equal(of, AUTH_CONCURRENT);
    auth_leave(r.k, 0, MINUTE);
    assert_int_equal(auth_wait_ns(r.k, MINUTE, &of), 0);
    auth_free(r.a);
}

/* A file that is read again gives nobody a fresh minute, and a request that began before it still ends. */
static void what_a_key_took_outlives_its_configuration(void **state)
{
    ring r;
    auth *next, *empty;
    auth_rate of;
    ring_open(&r, (config_key){.name = "a", .requests_per_minute = 2, .n_concurrent = 5});
    config_key wider = r.rule;
    wider.requests_per_minute = 4;
    auth_enter(r.k, SECOND);
    auth_enter(r.k, SECOND);
    assert_true(auth_wait_ns(r.k, SECOND, &of) > 0);
    assert_int_equal(auth_new(&next, &wider, 1, r.a, NULL), 0);
    const auth_key *k = auth_find(next, "sesame");
    assert_int_equal(k->use->n_running, 2);
    assert_int_equal(auth_wait_ns(k, SECOND, &of), 0);
    assert_true(bucket_left(&k->use->requests, 4, SECOND) == 2);
    auth_leave(r.k, 0, SECOND);
    auth_free(r.a);
    assert_int_equal(k->use->n_running, 1);
    auth_leave(k, 0, SECOND);
    assert_int_equal(auth_new(&empty, NULL, 0, next, NULL), 0);
    assert_int_equal(auth_count(empty), 0);
    auth_free(next);
    auth_free(empty);
}

/* Whatever is drawn, over any stretch no more passes than a bucketful and what flows in. */
static void a_bucket_gives_no_more_than_it_has(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        bucket b = {0};
        double rate = 1 + (double)(rng_mix(seed) % 1000), taken = 0;
        uint64_t now = rng_mix(seed * 3), start = now;
        now = start %= 1000 * MINUTE;
        for (uint64_t i = 0; i < 2000; i++) {
            now += rng_mix(seed * 7919 + i) % (2 * SECOND);
            if (bucket_wait_ns(&b, rate, 1, now) > 0) continue;
            bucket_take(&b, rate, 1, now);
            taken++;
            double most = rate + (double)(now - start) / (double)MINUTE * rate;
            if (taken > most + 1e-3) fail_msg("seed %llu: %g of %g", (unsigned long long)seed, taken, most);
        }
        uint64_t wait = bucket_wait_ns(&b, rate, 1, now);
        assert_int_equal(bucket_wait_ns(&b, rate, 1, now + wait), 0); /* what it promises holds */
        assert_true(bucket_left(&b, rate, now + bucket_full_ns(&b, rate, now)) > rate - 1e-6);
    }
}

static void a_huge_debt_has_an_end(void **state)
{
    bucket b = {0};
    bucket_take(&b, 1, 1e18, SECOND);
    assert_int_equal(bucket_wait_ns(&b, 1, 1, SECOND), (uint64_t)3e18);
    assert_int_equal(bucket_full_ns(&b, 1, SECOND), (uint64_t)3e18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auth_refuses_malformed_digests),
        cmocka_unit_test(auth_finds_each_of_thousands_and_no_other),
        cmocka_unit_test(auth_matches_patterns),
        cmocka_unit_test(auth_holds_a_key_to_its_rules),
        cmocka_unit_test(auth_counts_requests_of_a_minute),
        cmocka_unit_test(auth_waits_out_tokens_that_were_owed),
        cmocka_unit_test(auth_counts_requests_at_once),
        cmocka_unit_test(what_a_key_took_outlives_its_configuration),
        cmocka_unit_test(a_bucket_gives_no_more_than_it_has),
        cmocka_unit_test(a_huge_debt_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
