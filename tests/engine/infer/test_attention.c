/* Attention kernels and entity decoding. */
#include <math.h>

#include "helper.h"

#include "net/attention/attend_block.h"
#include "net/attention/kv.h"
#include "net/tagging.h"

static void fill(float *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)(rng_uniform(seed, i) * 4 - 2);
}

/* Odd widths, odd counts of keys and queries, rows further apart than wide. */
static void attention_kernels_equal_scalar_bit_for_bit(void **state)
{
    enum { D = 131, H = 5, N = 37 };
    static float q[H * (D + 3)], kt[D * 16], v[N * (D + 2)], p[H * (N + 1)];
    fill(q, H * (D + 3), 1);
    fill(kt, D * 16, 2);
    fill(v, N * (D + 2), 3);
    fill(p, H * (N + 1), 4);
    const vec_kernels *ref = vec_kernels_for(ISA_SCALAR);
    for (int set = 1; set < ISA_COUNT; set++) {
        if (!isa_built((isa)set)) continue;
        if (!isa_usable((isa)set)) {
            fprintf(stderr, "SKIP attention_on_%s: this machine has no usable %s\n", isa_name((isa)set),
                    isa_name((isa)set));
            continue;
        }
        const vec_kernels *k = vec_kernels_for((isa)set);
        for (size_t d = 1; d <= D; d += size_step()) {
            for (size_t h = 1; h <= H; h++) {
                float a[H * 20] = {0}, b[H * 20] = {0}, ya[H * (D + 1)], yb[H * (D + 1)];
                ref->attn_scores(a, 20, q, D + 3, h, kt, d, 0.3f);
                k->attn_scores(b, 20, q, D + 3, h, kt, d, 0.3f);
                assert_memory_equal(a, b, sizeof a);
                fill(ya, H * (D + 1), 5);
                memcpy(yb, ya, sizeof ya);
                size_t n = d % N;
                ref->attn_mix(ya, D + 1, p, N + 1, h, v, D + 2, n, d);
                k->attn_mix(yb, D + 1, p, N + 1, h, v, D + 2, n, d);
                assert_memory_equal(ya, yb, sizeof ya);
            }
        }
    }
}

enum {
    HEADS = 6,
    HEADS_KV = 3, /* so that two or four members cannot share them evenly */
    HEAD = 16,
    TOKENS = ATTEND_CHUNK + 77, /* two chunks, the last page open */
    WIDTH = (HEADS + 2 * HEADS_KV) * HEAD
};

/* How attention is asked for. */
typedef struct asked {
    isa set;
    int n_members;
    size_t cut; /* tokens of a step */
    dtype type;
    size_t window;
    float softcap;
    bool biased;
} asked;

typedef struct attention {
    attend a;
    attend_step s;
    size_t n;
    float *qkv, *att;
} attention;

static void run_attention(void *arg, team_member *m)
{
    attention *j = arg;
    lane l;
    rows_open(&l, m, NULL);
    rows qkv = rows_of(j->qkv, j->n, WIDTH), att = rows_of(j->att, j->n, HEADS * HEAD);
    blk_attend(&l, &j->a, &j->s, &qkv, &att);
}

/* One sequence step by step: att[TOKENS][HEADS * HEAD] of qkv[TOKENS][WIDTH]. */
static void attend_cut(const asked *k, const float *qkv, float *att)
{
    static float bias[HEADS * (2 * TOKENS - 1)];
    static token_place place[TOKENS];
    attn_conf c = {.n_head = HEADS, .n_head_kv = HEADS_KV, .head_dim = HEAD};
    kv_shape shape = {.n_layer = 1, .n_head_kv = HEADS_KV, .head_dim = HEAD, .type = k->type};
    distance far = {.n_ctx = TOKENS, .bias = bias};
    kv *cache;
    kv_seq seq = {0};
    team *t;
    net_item item = {.seq = &seq};
    size_t space = attend_block_space(&c), parts = 8 * attend_parts_floats(&c, TOKENS);
    fill(bias, sizeof bias / sizeof *bias, 9);
    must(kv_new(&cache, &shape, 1 << 20, &err));
    must(kv_seq_init(&seq, TOKENS, 0));
    must(kv_reserve(cache, &seq, TOKENS));
    must(team_new(&t, k->n_members, k->set, &err));
    attention j = {.a = {HEADS, HEADS_KV, HEAD, .window = k->window, .scale = 0.2f, .softcap = k->softcap},
                   .s = {.cache = cache, .items = &item, .place = place, .space_floats = space}};
    float *copy = malloc(TOKENS * WIDTH * sizeof *copy);
    memcpy(copy, qkv, TOKENS * WIDTH * sizeof *copy);
    j.a.distance = k->biased ? &far : NULL;
    j.s.space = calloc((size_t)k->n_members * space, sizeof(float));
    j.s.parts = calloc(parts, sizeof(float));
    j.s.parts_floats = parts;
    for (size_t i = 0; i < TOKENS; i += j.n) {
        j.n = TOKENS - i < k->cut ? TOKENS - i : k->cut;
        j.s.all_single = j.n == 1;
        j.qkv = copy + i * WIDTH;
        j.att = att + i * HEADS * HEAD;
        for (size_t n = 0; n < j.n; n++) place[n].position = (uint32_t)(i + n);
        team_run(t, run_attention, &j);
    }
    free(copy);
    free(j.s.space);
    free(j.s.parts);
    team_free(t);
    kv_seq_done(cache, &seq);
    kv_free(cache);
}

static isa best_set(void)
{
    isa set;
    must(isa_choose(&set, &err));
    return set;
}

/* What a token gets depends on itself and what stands before it alone: not on how many share its block or its
 * step, on who computes which chunk, or with what instructions. Where few sizes do, each type meets each cut
 * once. */
static void cuts_members_and_sets_attend_alike(void **state)
{
    static float qkv[TOKENS * WIDTH], want[TOKENS * HEADS * HEAD], got[TOKENS * HEADS * HEAD];
    fill(qkv, TOKENS * WIDTH, 1);
    for (size_t k = 0; k < 12; k++) {
        asked ask = {.set = isa_compared(),
                     .n_members = 1,
                     .cut = TOKENS,
                     .type = (const dtype[]){DT_F32, DT_F16, DT_Q8_0}[k % 3],
                     .window = (const size_t[]){0, 1, 20, ATTEND_CHUNK + 30}[k / 3],
                     .softcap = k % 2 ? 1.5f : 0,
                     .biased = k % 4 == 0};
        attend_cut(&ask, qkv, want);
        ask.set = best_set();
        for (size_t i = few_sizes() ? k % 4 : 0; i < 4; i += size_step()) {
            ask.cut = (const size_t[]){TOKENS, 1, 3, 40}[i];
            ask.n_members = (const int[]){3, 2, 2, 1}[i];
            attend_cut(&ask, qkv, got);
            assert_memory_equal(got, want, sizeof got);
        }
    }
}

/* Token t's query head h over keys [0, t], in double. */
static double attended(const float *qkv, size_t t, size_t h, size_t i)
{
    const float *q = qkv + t * WIDTH + h * HEAD, *k = qkv + (HEADS + h / (HEADS / HEADS_KV)) * HEAD,
                *v = k + HEADS_KV * HEAD;
    double total = 0, out = 0;
    for (size_t j = 0; j <= t; j++) {
        double dot = 0;
        for (size_t n = 0; n < HEAD; n++) dot += (double)q[n] * (double)k[j * WIDTH + n];
        double e = exp(dot * 0.2);
        total += e;
        out += e * (double)v[j * WIDTH + i];
    }
    return out / total;
}

/* Joined chunks are one softmax, wherever its largest score lies. */
static void chunks_join_to_one_softmax(void **state)
{
    static float qkv[TOKENS * WIDTH], att[TOKENS * HEADS * HEAD];
    asked ask = {.set = best_set(), .n_members = 1, .cut = TOKENS, .type = DT_F32};
    for (size_t peak = 0; peak < 2; peak++) {
        fill(qkv, TOKENS * WIDTH, 1);
        float *k = qkv + (peak * ATTEND_CHUNK + 5) * WIDTH + HEADS * HEAD;
        for (size_t i = 0; i < HEADS_KV * HEAD; i++) k[i] *= 8;
        attend_cut(&ask, qkv, att);
        for (size_t t = 0; t < TOKENS; t += t < 2 ? 1 : 91) {
            for (size_t h = 0; h < HEADS; h++)
                assert_float_equal(att[(t * HEADS + h) * HEAD + 3], attended(qkv, t, h, 3), 2e-5);
        }
    }
}

static void labels_become_entities_with_offsets(void **state)
{
    const char *labels[] = {"O", "B-room", "I-room", "B-date", "I-date"};
    static const int best[] = {1, 1, 2, 0, 2, 4, 3, 3, 1}; /* first and last belong to [CLS] and [SEP] */
    enum { N = 9 };
    model_config c = {.head = {.n_labels = 5, .labels = labels}};
    float logits[N * 5] = {0};
    int32_t ids[N] = {0}, word[N] = {0};
    uint8_t types[N] = {0}, special[N] = {1, 0, 0, 0, 0, 0, 0, 0, 1};
    token_span spans[N] = {{0}};
    for (uint32_t i = 0; i < N; i++) {
        logits[i * 5 + (uint32_t)best[i]] = 5;
        if (!special[i]) spans[i] = (token_span){i * 10, i * 10 + 4, i * 5, i * 5 + 2};
    }
    encoding e = {.n = N, .ids = ids, .spans = spans, .type_ids = types, .special = special, .word = word};
    entity *found;
    size_t n;
    must(tagging_entities(&c, &e, logits, &found, &n, &err));
    assert_int_equal(n, 5); /* room(1..2), room(4), date(5), date(6), date(7) */
    assert_string_equal(found[0].label, "room");
    assert_int_equal(found[0].span.begin, 10);
    assert_int_equal(found[0].span.end, 24);
    assert_int_equal(found[0].span.cp_begin, 5);
    assert_int_equal(found[0].span.cp_end, 12);
    assert_string_equal(found[2].label, "date");
    assert_int_equal(found[4].span.begin, 70);
    assert_true(found[0].score > 0.97f && found[0].score < 0.98f);
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_kernels_equal_scalar_bit_for_bit),
        cmocka_unit_test(cuts_members_and_sets_attend_alike),
        cmocka_unit_test(chunks_join_to_one_softmax),
        cmocka_unit_test(labels_become_entities_with_offsets),
    };
    return cmocka_run_group_tests_name("infer_attention", tests, NULL, NULL);
}
