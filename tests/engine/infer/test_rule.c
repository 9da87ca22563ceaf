/* A rule says which token may come next: it sees the reply, log-probabilities are of what it leaves, and it
 * gives the same reply in any company. */
#include "helper.h"

enum { N_NEW = 12 };

/* Token n of the reply has the remainder n modulo 4; what was said before is not said again. */
static void every_fourth(void *user, const int32_t *ids, size_t n, float *logits, size_t n_vocab)
{
    for (size_t i = 0; i < n_vocab; i++)
        if (i % 4 != n % 4) logits[i] = GEN_NEVER;
    for (size_t i = 0; i < n; i++) logits[ids[i]] = GEN_NEVER;
}

static void only_one(void *user, const int32_t *ids, size_t n, float *logits, size_t n_vocab)
{
    for (size_t i = 0; i < n_vocab; i++)
        if ((int32_t)i != *(int32_t *)user) logits[i] = GEN_NEVER;
}

static gen_request request(const int32_t *ids, void (*mask)(void *, const int32_t *, size_t, float *, size_t),
                           void *user)
{
    return (gen_request){.ids = ids,
                         .n_ids = 3,
                         .max_tokens = N_NEW,
                         .ignore_eos = true,
                         .logprobs = true,
                         .rule = {mask, user}};
}

static void a_reply_follows_its_rule(void **state)
{
    static const int32_t prompt[] = {5, 6, 7};
    rig r;
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
    gen_request q = request(prompt, every_fourth, NULL);
    reply *a = generate(r.e, &q);
    assert_int_equal(a->n, N_NEW);
    for (size_t i = 0; i < a->n; i++) {
        assert_int_equal((size_t)a->ids[i] % 4, i % 4);
        for (size_t k = 0; k < i; k++) assert_int_not_equal(a->ids[i], a->ids[k]);
    }
    q.sampling = (sampling){.temperature = 2, .seed = 3};
    reply *hot = generate(r.e, &q);
    for (size_t i = 0; i < hot->n; i++) assert_int_equal((size_t)hot->ids[i] % 4, i % 4);
    reply *many[6];
    q.sampling = (sampling){0};
    for (int i = 0; i < 6; i++) {
        many[i] = reply_new();
        must(reply_start(many[i], r.e, &q, &err));
    }
    for (int i = 0; i < 6; i++) {
        reply_wait(many[i]);
        assert_memory_equal(many[i]->ids, a->ids, N_NEW * sizeof *a->ids);
        assert_memory_equal(many[i]->logprobs, a->logprobs, N_NEW * sizeof *a->logprobs);
        reply_free(many[i]);
    }
    reply_free(hot);
    reply_free(a);
    rig_close(&r);
}

static void what_is_left_is_certain(void **state)
{
    static const int32_t prompt[] = {5, 6, 7};
    int32_t id = 9;
    rig r;
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
    gen_request q = request(prompt, only_one, &id);
    reply *a = generate(r.e, &q);
    for (size_t i = 0; i < a->n; i++) {
        assert_int_equal(a->ids[i], 9);
        assert_true(a->logprobs[i] == 0);
    }
    id = -1; /* nothing is left: some token comes, and the reply ends nevertheless */
    reply *none = generate(r.e, &q);
    assert_int_equal(none->status, 0);
    assert_int_equal(none->n, N_NEW);
    reply_free(none);
    reply_free(a);
    rig_close(&r);
}

static void beams_take_no_rule(void **state)
{
    static const int32_t prompt[] = {5, 6, 7};
    rig r;
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
    gen_request q = request(prompt, every_fourth, NULL);
    q.logprobs = false;
    q.n_beams = 2;
    reply *a = reply_new();
    shoal_err err = {0};
    assert_int_equal(reply_start(a, r.e, &q, &err), SHOAL_EINVALID);
    reply_free(a);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_follows_its_rule),
        cmocka_unit_test(what_is_left_is_certain),
        cmocka_unit_test(beams_take_no_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
