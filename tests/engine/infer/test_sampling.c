/* Sampler, stop strings and batch plans: the small parts, alone. */
#include "helper.h"

#include "infer/batch.h"
#include "infer/decoding/sampler.h"
#include "infer/decoding/stop.h"

#define V 300

/* Distribution: logit falls with the id's place in a fixed shuffle. */
static void make_logits(float *x)
{
    for (size_t i = 0; i < V; i++) x[i] = (float)(rng_uniform(3, i) * 8 - 4);
}

static void draw(const sampling *how, const float *logits, uint64_t position, sample *ret)
{
    sampler s;
    sampler_space sp;
    must(sampler_init(&s, how, 0, V, NULL, 0, &err));
    assert_int_equal(sampler_space_init(&sp, V), 0);
    sampler_choose(&s, vec_kernels_for(ISA_SCALAR), &sp, logits, position, NULL, NULL, 0, ret);
    sampler_space_done(&sp);
    sampler_done(&s);
}

static size_t rank_of(const float *x, int32_t id)
{
    size_t n = 0;
    for (size_t i = 0; i < V; i++) n += x[i] > x[id] || (x[i] == x[id] && (int32_t)i < id);
    return n;
}

static void greedy_takes_the_lowest_id_of_equals(void **state)
{
    float x[V];
    sample got;
    make_logits(x);
    x[17] = x[40] = x[200] = 50;
    draw(&(sampling){0}, x, 0, &got);
    assert_int_equal(got.id, 17);
}

/* Blocks are a short cut: the draw is where a plain walk over the probabilities would stop. */
static void a_draw_is_where_the_sum_passes_it(void **state)
{
    float x[V], p[V];
    sample got;
    make_logits(x);
    memcpy(p, x, sizeof p);
    vec_kernels_for(ISA_SCALAR)->softmax(p, V);
    for (uint64_t at = 0; at < 2000; at++) {
        draw(&(sampling){.temperature = 1, .seed = 4}, x, at, &got);
        double below = 0, u = rng_uniform(4, at);
        for (int32_t i = 0; i < got.id; i++) below += (double)p[i];
        assert_true(below < u + 1e-6 && below + (double)p[got.id] > u - 1e-6);
        assert_true(fabsf(math_expf(got.logprob) - p[got.id]) < 1e-5f);
    }
}

/* However cold or hot, however much is ruled out: one of what is left. */
static void extremes_draw_something_possible(void **state)
{
    float x[V];
    sample got;
    for (size_t i = 0; i < V; i++) x[i] = -(float)INFINITY;
    x[131] = -3e38f;
    x[290] = 5;
    for (uint64_t at = 0; at < 50; at++) {
        draw(&(sampling){.temperature = 1e-45f, .seed = 1}, x, at, &got);
        assert_int_equal(got.id, 290);
        draw(&(sampling){.temperature = 1, .seed = 1}, x, at, &got);
        assert_int_equal(got.id, 290);
    }
}

static void top_k_top_p_and_min_p_keep_a_prefix(void **state)
{
    float x[V], p[V];
    sample got;
    make_logits(x);
    memcpy(p, x, sizeof p);
    vec_kernels_for(ISA_SCALAR)->softmax(p, V);
    for (uint64_t at = 0; at < 2000; at++) {
        draw(&(sampling){.temperature = 1, .top_k = 5, .seed = 9}, x, at, &got);
        assert_true(rank_of(x, got.id) < 5);
        draw(&(sampling){.temperature = 1, .min_p = 0.5f, .seed = 9}, x, at, &got);
        float top = 0, before = 0;
        for (size_t i = 0; i < V; i++) top = p[i] > top ? p[i] : top;
        assert_true(p[got.id] >= 0.5f * top);
        draw(&(sampling){.temperature = 1, .top_p = 0.3f, .seed = 9}, x, at, &got);
        for (size_t i = 0; i < V; i++) before += rank_of(x, (int32_t)i) < rank_of(x, got.id) ? p[i] : 0;
        assert_true(before < 0.3f);
    }
}

#define WIDE 3000

static const float *sorted_by;

static int likelier(const void *a, const void *b)
{
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    if (sorted_by[i] != sorted_by[k]) return sorted_by[i] > sorted_by[k] ? -1 : 1;
    return i < k ? -1 : 1;
}

/* The rule in its plain form: weigh all, sort all, cut, walk. */
static int32_t draw_plainly(const sampling *how, const float *x, size_t n_vocab, uint64_t position)
{
    static float p[WIDE];
    static int32_t order[WIDE];
    const vec_kernels *v = vec_kernels_for(ISA_SCALAR);
    float max = x[v->argmax(x, n_vocab)];
    double total = 0, kept = 0, sum = 0;
    size_t n = 0, i = 0, k = how->top_k > 0 && (size_t)how->top_k < n_vocab ? (size_t)how->top_k : n_vocab;
    for (size_t at = 0; at < n_vocab; at += EXP_SUMS_BLOCK)
        total += (double)v->exp_scaled(p + at, x + at,
                                       n_vocab - at < EXP_SUMS_BLOCK ? n_vocab - at : EXP_SUMS_BLOCK, max,
                                       1 / how->temperature);
    for (size_t id = 0; id < n_vocab; id++) order[id] = (int32_t)id;
    sorted_by = x;
    qsort(order, n_vocab, sizeof *order, likelier);
    if (k < n_vocab) total = 0;
    for (size_t j = 0; k < n_vocab && j < k; j++) total += (double)p[order[j]];
    double share = how->top_p > 0 && how->top_p < 1 ? (double)how->top_p * total : total;
    for (; n < k; n++) {
        if (n > 0 && (!(p[order[n]] > 0) || p[order[n]] < p[order[0]] * how->min_p || kept >= share)) break;
        kept += (double)p[order[n]];
    }
    for (; i + 1 < n; i++) {
        sum += (double)p[order[i]];
        if (sum > rng_uniform(how->seed, position) * kept) break;
    }
    return order[i];
}

/* However flat or steep, with ties and with most ruled out, of one token or many: ranking in bands changes no draw. */
static void cuts_draw_what_a_full_sort_would(void **state)
{
    static const float spreads[] = {0.01f, 2, 12, 90, 3000};
    static const size_t sizes[] = {WIDE, 1, 2, 31, 33, 65, 1000};
    static const sampling how[] = {{.temperature = 1, .top_k = 40},
                                   {.temperature = 0.7f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f},
                                   {.temperature = 1.5f, .top_p = 0.9f},
                                   {.temperature = 1, .top_p = 0.9999f},
                                   {.temperature = 2, .min_p = 0.001f},
                                   {.temperature = 0.01f, .top_k = 2999}};
    static float x[WIDE];
    sampler s;
    sampler_space sp;
    sample got;
    assert_int_equal(sampler_space_init(&sp, WIDE), 0);
    for (size_t at = 0; at < 5 * 6 * 7 * 12; at++) {
        const sampling *h = &how[at % 6];
        size_t n = sizes[at / 30 % 7];
        for (size_t i = 0; i < n; i++) {
            float u = (float)rng_uniform(at, i);
            x[i] = at % 4 == 3 && i % 50 ? -(float)INFINITY : floorf(u * 256) / 256 * spreads[at / 6 % 5];
        }
        must(sampler_init(&s, h, 0, n, NULL, 0, &err));
        sampler_choose(&s, vec_kernels_for(ISA_SCALAR), &sp, x, at, NULL, NULL, 0, &got);
        assert_int_equal(got.id, draw_plainly(h, x, n, at));
        sampler_done(&s);
    }
    sampler_space_done(&sp);
}

/* The blocks that are passed over hold none of the likeliest. */
static void alternatives_are_the_likeliest(void **state)
{
    static float x[WIDE];
    static int32_t order[WIDE];
    sampler s;
    sampler_space sp;
    sample got;
    assert_int_equal(sampler_space_init(&sp, WIDE), 0);
    must(sampler_init(&s, &(sampling){0}, SAMPLER_TOP_MAX, WIDE, NULL, 0, &err));
    for (size_t round = 0; round < 20; round++) {
        for (int32_t i = 0; i < WIDE; i++) {
            x[i] = floorf((float)rng_uniform(round, (uint64_t)i) * 300) / 300 * (float)(round * round);
            order[i] = i;
        }
        sorted_by = x;
        qsort(order, WIDE, sizeof *order, likelier);
        sampler_choose(&s, vec_kernels_for(ISA_SCALAR), &sp, x, 0, NULL, NULL, 0, &got);
        assert_int_equal(got.n_top, SAMPLER_TOP_MAX);
        for (size_t i = 0; i < got.n_top; i++) assert_int_equal(got.top[i].id, order[i]);
    }
    sampler_done(&s);
    sampler_space_done(&sp);
}

static void draws_follow_the_distribution(void **state)
{
    float x[V], p[V];
    size_t seen[V] = {0};
    sample got;
    for (size_t i = 0; i < V; i++) x[i] = i < 4 ? (float)i : -50;
    memcpy(p, x, sizeof p);
    vec_kernels_for(ISA_SCALAR)->softmax(p, V);
    for (int cut = 0; cut < 2; cut++) {
        memset(seen, 0, sizeof seen);
        for (uint64_t at = 0; at < 20000; at++) {
            draw(&(sampling){.temperature = 1, .top_k = cut ? 200 : 0, .seed = 4}, x, at, &got);
            seen[got.id]++;
        }
        for (size_t i = 0; i < 4; i++) assert_true(fabs((double)seen[i] / 20000 - (double)p[i]) < 0.015);
    }
}

static void hostile_logits_give_some_id(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t b = 0; b < 3; b++) {
        float x[V];
        sample got;
        for (size_t i = 0; i < V; i++) x[i] = bad[b];
        for (int k = 0; k < 3; k++) {
            draw(&(sampling){.temperature = k ? 1 : 0, .top_k = k == 2 ? 7 : 0}, x, 1, &got);
            assert_true(got.id >= 0 && got.id < V);
        }
    }
}

/* ---- stop strings ---------------------------------------------------------------------------- */

static void push_all(stop_matcher *m, const char *text, size_t piece, char *out, bool *ret_hit)
{
    const char *safe;
    size_t n, len = strlen(text), at = 0;
    *ret_hit = false;
    out[0] = 0;
    while (at < len && !*ret_hit) {
        size_t take = len - at < piece ? len - at : piece;
        *ret_hit = stop_push(m, text + at, take, &safe, &n);
        strncat(out, safe, n);
        at += take;
    }
    stop_flush(m, &safe, &n);
    strncat(out, safe, n);
}

static void stop_strings_are_found_however_the_text_is_cut(void **state)
{
    const char *const stops[] = {"END", "aab", "\n\n"};
    static const char *const cases[][2] = {{"hello END x", "hello "},
                                           {"aaaab", "aa"},
                                           {"a\n \n\nb", "a\n "},
                                           {"EN E EN", NULL},
                                           {"aaENDb", "aa"},
                                           {"END", ""},
                                           {"", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece < 12; piece++) {
            stop_matcher m;
            char out[64];
            bool hit;
            must(stop_init(&m, stops, 3, &err));
            push_all(&m, cases[i][0], piece, out, &hit);
            assert_int_equal(hit, cases[i][1] != NULL);
            assert_string_equal(out, cases[i][1] ? cases[i][1] : cases[i][0]);
            stop_done(&m);
        }
    }
}

static void what_may_become_a_stop_string_is_held_back(void **state)
{
    const char *const stops[] = {"<end>"};
    const char *safe;
    size_t n;
    stop_matcher m;
    must(stop_init(&m, stops, 1, &err));
    assert_false(stop_push(&m, "a<en", 4, &safe, &n));
    assert_int_equal(n, 1);
    assert_false(stop_push(&m, "x", 1, &safe, &n));
    assert_int_equal(n, 4);
    assert_memory_equal(safe, "<enx", 4);
    stop_done(&m);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static void streams_keep_their_step_and_prefills_share_the_budget(void **state)
{
    batch_entry e[] = {{.pending = 1}, {.pending = 500}, {.pending = 20}, {.pending = 1}, {.pending = 500}};
    batch_limits l = {.alone = 256, .shared = 96, .probe_rows = 64};
    batch_plan(e, 5, &l);
    assert_int_equal(e[0].n, 1);
    assert_int_equal(e[3].n, 1);
    assert_int_equal(e[2].n, 20);
    assert_int_equal(e[1].n + e[2].n + e[4].n, 96);
    assert_true(e[1].n >= 32 && e[4].n >= 32);
}

static void a_prefill_alone_gets_the_whole_budget(void **state)
{
    batch_entry e[] = {{.pending = 500}};
    batch_plan(e, 1, &(batch_limits){.alone = 256, .shared = 64, .probe_rows = 64, .turn = 3});
    assert_int_equal(e[0].n, 256);
}

static void a_probe_stops_where_its_rows_begin(void **state)
{
    batch_entry e[] = {{.pending = 100, .probe = true, .n_quiet = 30}, {.pending = 100, .probe = true}};
    batch_plan(e, 2, &(batch_limits){.alone = 256, .shared = 64, .probe_rows = 64});
    assert_int_equal(e[0].n, 30);
    assert_int_equal(e[1].n, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_lowest_id_of_equals),
        cmocka_unit_test(a_draw_is_where_the_sum_passes_it),
        cmocka_unit_test(extremes_draw_something_possible),
        cmocka_unit_test(top_k_top_p_and_min_p_keep_a_prefix),
        cmocka_unit_test(cuts_draw_what_a_full_sort_would),
        cmocka_unit_test(alternatives_are_the_likeliest),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(hostile_logits_give_some_id),
        cmocka_unit_test(stop_strings_are_found_however_the_text_is_cut),
        cmocka_unit_test(what_may_become_a_stop_string_is_held_back),
        cmocka_unit_test(streams_keep_their_step_and_prefills_share_the_budget),
        cmocka_unit_test(a_prefill_alone_gets_the_whole_budget),
        cmocka_unit_test(a_probe_stops_where_its_rows_begin),
    };
    return cmocka_run_group_tests_name("infer_sampling", tests, NULL, NULL);
}
