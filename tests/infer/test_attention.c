/* Attention kernels and entity decoding. */
#include "helper.h"

#include "infer/attend.h"
#include "infer/kv.h"
#include "infer/tagging.h"

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
        for (size_t d = 1; d <= D; d++) {
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

enum { HEADS = 6, HEADS_KV = 2, HEAD = 48, TOKENS = 150, WIDTH = (HEADS + 2 * HEADS_KV) * HEAD };

typedef struct attention {
    attend a;
    attend_step s;
    float *qkv, *att;
} attention;

static void run_attention(void *arg, team_member *m)
{
    attention *j = arg;
    lane l;
    rows_open(&l, m, NULL);
    rows qkv = rows_of(j->qkv, TOKENS, WIDTH), att = rows_of(j->att, TOKENS, HEADS * HEAD);
    blk_attend(&l, &j->a, &j->s, &qkv, &att);
}

/* att[TOKENS][HEADS * HEAD] of one sequence, with so many floats of space for a member. */
static void attend_within(size_t space_floats, dtype type, size_t window, float *att)
{
    kv *cache;
    kv_seq seq = {0};
    kv_shape shape = {.n_layer = 1, .n_head_kv = HEADS_KV, .head_dim = HEAD, .type = type};
    team *t;
    token_place place[TOKENS] = {{0}};
    net_item item = {.seq = &seq};
    must(kv_new(&cache, &shape, 1 << 20, &err));
    must(kv_seq_init(&seq, TOKENS, 0));
    must(kv_reserve(cache, &seq, TOKENS));
    must(team_new(&t, 2, ISA_SCALAR, &err));
    attention j = {.a = {HEADS, HEADS_KV, HEAD, .window = window, .scale = 0.2f},
                   .s = {.cache = cache, .items = &item, .place = place, .space_floats = space_floats},
                   .qkv = calloc(TOKENS * WIDTH, sizeof(float)),
                   .att = att};
    j.s.space = calloc(2 * space_floats, sizeof(float));
    fill(j.qkv, TOKENS * WIDTH, 1);
    for (uint32_t i = 0; i < TOKENS; i++) place[i].position = i;
    team_run(t, run_attention, &j);
    free(j.s.space);
    free(j.qkv);
    team_free(t);
    kv_seq_done(cache, &seq);
    kv_free(cache);
}

/* What a token gets depends on itself and what stands before it alone: not on how many share its block. */
static void blocks_of_any_size_attend_alike(void **state)
{
    static float whole[TOKENS * HEADS * HEAD], few[TOKENS * HEADS * HEAD];
    attn_conf c = {.n_head = HEADS, .n_head_kv = HEADS_KV, .head_dim = HEAD};
    size_t most = attend_space(&c, TOKENS), row = HEADS / HEADS_KV * 11 * KV_PAGE_TOKENS;
    for (size_t k = 0; k < 12; k++) {
        dtype type = (const dtype[]){DT_F32, DT_F16, DT_Q8_0}[k % 3];
        size_t window = (const size_t[]){0, 1, 20, 64}[k / 3];
        attend_within(most, type, window, whole);
        for (size_t rows = 1; rows < 16; rows += 4) {
            attend_within(most - (16 - rows) * row, type, window, few);
            assert_memory_equal(few, whole, sizeof few);
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
        cmocka_unit_test(blocks_of_any_size_attend_alike),
        cmocka_unit_test(labels_become_entities_with_offsets),
    };
    return cmocka_run_group_tests_name("infer_attention", tests, NULL, NULL);
}
