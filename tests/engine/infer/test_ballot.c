/* Ballots: generations that choose each token from a mean. Alone, or with their like, they say what they
 * would have said; with others all say the same. */
#include "helper.h"

#include "infer/decoding/ballot.h"

enum { N_NEW = 10, MEMBERS_MAX = 4 };

/* What a member of a chorus has told. */
typedef struct member {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t id;
    float *values;
    size_t n_values, position;
    bool voted, done;
    int status;
    int32_t ids[N_NEW + 1];
    size_t n;
} member;

static void on_sung(void *user, const gen_event *ev)
{
    member *m = user;
    pthread_mutex_lock(&m->lock);
    if (ev->kind == EVENT_BALLOT) {
        m->n_values = ev->text_len / sizeof(float);
        m->values = realloc(m->values, ev->text_len);
        memcpy(m->values, ev->text, ev->text_len);
        m->position = ev->n_read;
        m->voted = true;
    }
    if (ev->kind == EVENT_TOKEN && ev->id >= 0) m->ids[m->n++] = ev->id;
    if (ev->kind == EVENT_DONE) m->status = ev->status, m->done = true;
    pthread_cond_signal(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static void member_start(member *m, engine *e, const gen_request *q)
{
    *m = (member){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&m->lock); /* no event before the id is known */
    must(engine_generate(e, q, on_sung, m, &m->id, &err));
    pthread_mutex_unlock(&m->lock);
}

/* False: it has ended. */
static bool member_votes(member *m)
{
    pthread_mutex_lock(&m->lock);
    while (!m->voted && !m->done) pthread_cond_wait(&m->changed, &m->lock);
    bool voted = m->voted;
    m->voted = false;
    pthread_mutex_unlock(&m->lock);
    return voted;
}

static void member_free(member *m)
{
    free(m->values);
}

/* All to the end, each with the mean of all; position by position. */
static void sing(engine *e, member *m, size_t n)
{
    for (size_t at = 0;; at++) {
        bool go_on = true;
        for (size_t i = 0; i < n; i++) go_on = member_votes(&m[i]) && go_on;
        if (!go_on) return;
        size_t n_vocab = m[0].n_values;
        float *mean = calloc(n_vocab, sizeof *mean);
        for (size_t k = 0; k < n_vocab; k++) {
            for (size_t i = 0; i < n; i++) mean[k] += m[i].values[k];
            mean[k] /= (float)n;
        }
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(m[i].position, at);
            assert_int_equal(m[i].n_values, n_vocab);
            assert_int_equal(engine_ballot(e, m[i].id, at, mean, n_vocab), 0);
        }
        free(mean);
    }
}

static const int32_t PROMPT[] = {5, 6, 7}, OTHER[] = {11, 3, 20, 8};

static gen_request plain(void)
{
    return (gen_request){.ids = PROMPT, .n_ids = 3, .max_tokens = N_NEW, .ignore_eos = true};
}

static void alone_it_says_what_it_would_have_said(void **state)
{
    for (int geometric = 0; geometric < 2; geometric++) {
        for (size_t n = 1; n <= MEMBERS_MAX; n += MEMBERS_MAX - 1) {
            rig r;
            member m[MEMBERS_MAX];
            rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
            gen_request q = plain();
            reply *a = generate(r.e, &q);
            q.votes = true;
            q.geometric = geometric;
            for (size_t i = 0; i < n; i++) member_start(&m[i], r.e, &q);
            sing(r.e, m, n);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(m[i].status, 0);
                assert_int_equal(m[i].n, a->n);
                assert_memory_equal(m[i].ids, a->ids, a->n * sizeof *a->ids);
                member_free(&m[i]);
            }
            reply_free(a);
            rig_close(&r);
        }
    }
}

static void with_others_all_say_the_same(void **state)
{
    for (int geometric = 0; geometric < 2; geometric++) {
        rig r;
        member m[2];
        rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
        gen_request q = plain();
        q.votes = true;
        q.geometric = geometric;
        q.sampling = (sampling){.temperature = 1, .top_p = 0.9F, .seed = 7};
        member_start(&m[0], r.e, &q);
        q.ids = OTHER;
        q.n_ids = 4;
        member_start(&m[1], r.e, &q);
        sing(r.e, m, 2);
        assert_int_equal(m[0].n, N_NEW);
        assert_int_equal(m[1].n, N_NEW);
        assert_memory_equal(m[0].ids, m[1].ids, N_NEW * sizeof(int32_t));
        for (size_t i = 0; i < 2; i++) member_free(&m[i]);
        rig_close(&r);
    }
}

static void only_a_mean_is_taken_and_once(void **state)
{
    rig r;
    member m;
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
    gen_request q = plain();
    q.votes = true;
    member_start(&m, r.e, &q);
    assert_true(member_votes(&m));
    size_t n = m.n_values;
    assert_int_equal(engine_ballot(r.e, m.id, 1, m.values, n), SHOAL_ENOTFOUND);
    assert_int_equal(engine_ballot(r.e, m.id + 1, 0, m.values, n), SHOAL_ENOTFOUND);
    assert_int_equal(engine_ballot(r.e, m.id, 0, m.values, n - 1), SHOAL_EINVALID);
    const float bad[] = {-0.1F, 1.1F, NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        float kept = m.values[3];
        m.values[3] = bad[i];
        assert_int_equal(engine_ballot(r.e, m.id, 0, m.values, n), SHOAL_EINVALID);
        m.values[3] = kept;
    }
    float *none = calloc(n, sizeof *none);
    assert_int_equal(engine_ballot(r.e, m.id, 0, none, n), SHOAL_EINVALID);
    free(none);
    assert_int_equal(engine_ballot(r.e, m.id, 0, m.values, n), 0);
    assert_true(member_votes(&m));
    engine_cancel(r.e, m.id); /* while it waits for others */
    assert_false(member_votes(&m));
    assert_int_equal(m.status, SHOAL_ECANCELLED);
    member_free(&m);
    rig_close(&r);
}

/* Those who wait for votes take no step, and hold nobody up. */
static void others_go_on_meanwhile(void **state)
{
    rig r;
    member m;
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){.max_batch = 2});
    gen_request q = plain();
    q.votes = true;
    member_start(&m, r.e, &q);
    assert_true(member_votes(&m));
    q.votes = false;
    for (int i = 0; i < 5; i++) {
        reply *a = generate(r.e, &q);
        assert_int_equal(a->status, 0);
        assert_int_equal(a->n, N_NEW);
        reply_free(a);
    }
    q.votes = true;
    q.n_beams = 2;
    uint64_t id;
    shoal_err err;
    assert_int_equal(engine_generate(r.e, &q, on_sung, &m, &id, &err), SHOAL_EINVALID);
    engine_cancel(r.e, m.id);
    assert_false(member_votes(&m));
    member_free(&m);
    rig_close(&r);
}

static void a_deadline_ends_a_wait(void **state)
{
    rig r;
    member m;
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
    gen_request q = plain();
    q.votes = true;
    q.deadline_ns = clock_ns() + 2000000000;
    member_start(&m, r.e, &q);
    while (member_votes(&m)) {
    }
    assert_int_equal(m.status, SHOAL_EDEADLINE);
    member_free(&m);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_says_what_it_would_have_said),
        cmocka_unit_test(with_others_all_say_the_same),
        cmocka_unit_test(only_a_mean_is_taken_and_once),
        cmocka_unit_test(others_go_on_meanwhile),
        cmocka_unit_test(a_deadline_ends_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
