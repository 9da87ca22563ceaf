/* Every family of decoders through the engine: a prefix from the cache, prompts in pieces, and replies that
 * lose their pages to others and compute them again, give the bits of the plain run on every instruction set.
 */
#include "helper.h"

#include <dirent.h>

#include "net/net.h"

enum { N_IDS = 70, PARTS_AT = 43, N_LAST = 6, N_CROWD = 5, N_NEW = 40 };

static void make_ids(int32_t *ids, size_t n, size_t seed, size_t n_vocab)
{
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(rng_mix(seed * 1000 + i) % n_vocab);
}

/* Logits of the last positions; the second time their prefix is in the cache. */
static void check_prefix(rig *r, const int32_t *ids, const float *want, const char *what)
{
    size_t n_vocab = model_get_config(r->m)->n_vocab, first = N_IDS - N_LAST;
    float *got = malloc(N_LAST * n_vocab * sizeof *got);
    for (int again = 0; again < 2; again++) {
        must(engine_logits(r->e, NULL, ids, N_IDS, N_LAST, got, &err));
        if (memcmp(got, want + first * n_vocab, N_LAST * n_vocab * sizeof *got) != 0)
            fail_msg("%s: other logits %s", what, again ? "behind a cached prefix" : "in pieces");
    }
    free(got);
}

static gen_request request(int32_t *ids, size_t i, size_t n_vocab)
{
    size_t n = 20 + 7 * i;
    make_ids(ids, n, i % 2, n_vocab); /* every second one begins as another does */
    return (gen_request){.ids = ids, .n_ids = n, .max_tokens = N_NEW, .ignore_eos = true, .logprobs = true};
}

static void check_crowd(rig *plain, rig *crowd, const char *what)
{
    size_t n_vocab = model_get_config(plain->m)->n_vocab;
    int32_t ids[N_CROWD][64];
    reply *want[N_CROWD], *got[N_CROWD];
    for (size_t i = 0; i < N_CROWD; i++) {
        gen_request q = request(ids[i], i, n_vocab);
        want[i] = generate(plain->e, &q);
        got[i] = reply_new();
        must(reply_start(got[i], crowd->e, &q, &err));
    }
    for (size_t i = 0; i < N_CROWD; i++) {
        reply_wait(got[i]);
        if (got[i]->status || got[i]->n != want[i]->n ||
            memcmp(got[i]->ids, want[i]->ids, want[i]->n * sizeof(int32_t)) != 0 ||
            memcmp(got[i]->logprobs, want[i]->logprobs, want[i]->n * sizeof(float)) != 0)
            fail_msg("%s: reply %zu differs in a crowd: %s", what, i, got[i]->message);
        reply_free(got[i]);
        reply_free(want[i]);
    }
}

/* A conversation's next turn goes on in the page in which the last one ended. */
static void check_turns(rig *talks, rig *fresh, const char *what)
{
    enum { N_FIRST = 21, N_REPLY = 8, N_MORE = 6 };
    size_t n_vocab = model_get_config(talks->m)->n_vocab;
    int32_t ids[N_FIRST + N_REPLY + N_MORE];
    gen_request q = {.ids = ids,
                     .n_ids = N_FIRST,
                     .max_tokens = N_REPLY,
                     .ignore_eos = true,
                     .logprobs = true,
                     .keeps_pages = true};
    make_ids(ids, N_FIRST, 5, n_vocab);
    reply *first = generate(talks->e, &q);
    memcpy(ids + N_FIRST, first->ids, N_REPLY * sizeof *ids);
    make_ids(ids + N_FIRST + N_REPLY, N_MORE, 6, n_vocab);
    q.n_ids = N_FIRST + N_REPLY + N_MORE;
    reply *got = generate(talks->e, &q), *want = generate(fresh->e, &q);
    if (got->timings.n_cached != N_FIRST + N_REPLY - 1) /* nobody has computed the last token */
        fail_msg("%s: the next turn found %zu tokens", what, got->timings.n_cached);
    if (memcmp(got->ids, want->ids, N_REPLY * sizeof *ids) != 0 ||
        memcmp(got->logprobs, want->logprobs, N_REPLY * sizeof(float)) != 0)
        fail_msg("%s: the next turn differs", what);
    reply_free(first);
    reply_free(got);
    reply_free(want);
}

/* Room for hardly more than one of the crowd at once. */
static size_t few_pages(const char *path)
{
    model *m;
    must(model_open(&m, path, &(model_options){.no_tokenizer = true}, &err));
    const net_ops *ops = net_ops_for(model_get_config(m), NULL);
    kv_shape s = ops->kv(m);
    size_t bytes;
    must(kv_bytes_for(&s, 10, &bytes, &err));
    model_free(m);
    return bytes;
}

static void check_family(const char *name)
{
    char path[512], what[128];
    int32_t ids[2][N_IDS]; /* the second goes another way within a page */
    float *want[2] = {NULL, NULL};
    snprintf(path, sizeof path, DATA "hf/%s", name);
    for (int i = ISA_SCALAR; i < ISA_COUNT; i++) {
        if (!isa_tested((isa)i)) continue;
        rig plain, crowd;
        setenv("SHOAL_ISA", isa_name((isa)i), 1);
        rig_open(&plain, path, (engine_options){.n_threads = 1});
        rig_open(&crowd, path,
                 (engine_options){.n_threads = 2, .prefill_chunk = 7, .kv_bytes = few_pages(path)});
        unsetenv("SHOAL_ISA");
        size_t n_vocab = model_get_config(plain.m)->n_vocab;
        snprintf(what, sizeof what, "%s on %s", name, isa_name((isa)i));
        for (size_t k = 0; k < 2; k++) {
            if (!want[k]) {
                make_ids(ids[k], N_IDS, 3, n_vocab);
                if (k == 1) ids[k][PARTS_AT] = (ids[k][PARTS_AT] + 1) % (int32_t)n_vocab;
                want[k] = malloc(N_IDS * n_vocab * sizeof *want[k]);
                must(engine_logits(plain.e, NULL, ids[k], N_IDS, N_IDS, want[k], &err));
            }
            check_prefix(&plain, ids[k], want[k], what);
            check_prefix(&crowd, ids[k], want[k], what);
        }
        check_turns(&plain, &crowd, what);
        check_crowd(&plain, &crowd, what);
        rig_close(&crowd);
        rig_close(&plain);
    }
    free(want[0]);
    free(want[1]);
}

static bool decodes(const char *name)
{
    char path[512];
    model *m = NULL;
    snprintf(path, sizeof path, DATA "hf/%s", name);
    if (*name == '.' || model_open(&m, path, &(model_options){.no_tokenizer = true}, NULL) != 0) return false;
    bool yes = model_get_config(m)->task == TASK_GENERATE;
    model_free(m);
    return yes;
}

static void every_decoder_is_itself_from_the_cache_and_in_a_crowd(void **state)
{
    size_t n = 0;
    DIR *d = opendir(DATA "hf");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (!decodes(e->d_name)) continue;
        check_family(e->d_name);
        n++;
    }
    closedir(d);
    assert_true(n >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_decoder_is_itself_from_the_cache_and_in_a_crowd)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
