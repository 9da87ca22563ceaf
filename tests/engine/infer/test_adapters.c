/* Adapters: what merged weights give, over families; the same bits whatever adapters are beside a text, on
 * every instruction set; and their life in an engine. */
#include "helper.h"

#include "model/files/gguf_writer.h"
#include "net/net.h"
#include "peft.h"

#define FAR 1e-5 /* of the row's norm: merging rounds once more */

#define LLAMA " q_proj k_proj v_proj o_proj gate_proj up_proj down_proj "
#define BERT  " query key value dense classifier "

typedef struct family {
    const char *name, *modules;
    bool turned;
} family;

static const family decoders[] = {
    {"llama-gqa", LLAMA "lm_head ", false},
    {"qwen3-qknorm", LLAMA, false},
    {"gpt2", " c_attn c_proj c_fc ", true},
    {"phi3", " qkv_proj o_proj gate_up_proj down_proj ", false},
    {"gpt-neox-pythia", " query_key_value dense dense_h_to_4h dense_4h_to_h ", false},
    {"gemma2-softcap", LLAMA, false},
    {"lfm2-conv", " q_proj k_proj v_proj out_proj in_proj w1 w2 w3 ", false},
    {"qwen3-moe", " q_proj k_proj v_proj o_proj ", false},
};

static const family encoders[] = {
    {"bert-ner", BERT, false},
    {"bert-intent", BERT, false},
    {"albert-intent", " query key value ffn ffn_output ", false},
    {"modernbert-embed", " Wqkv Wi Wo ", false},
    {"deberta-v3-nli", " value_proj dense ", false},
};

static const family translators[] = {
    {"t5-small-relu", " q k v o wi wo ", false},
    {"bart", " q_proj k_proj v_proj out_proj fc1 fc2 ", false},
};

#define N_OF(a) (sizeof(a) / sizeof *(a))

static peft_spec spec_of(const family *f, size_t which)
{
    return (peft_spec){.base = f->name,
                       .modules = f->modules,
                       .turned = f->turned,
                       .rank = which ? 3 : 8,
                       .alpha = which ? 6 : 16,
                       .seed = 1000 * (which + 1)};
}

static double far_from(const float *a, const float *ref, size_t n)
{
    double off = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        off += ((double)a[i] - (double)ref[i]) * ((double)a[i] - (double)ref[i]);
        all += (double)ref[i] * (double)ref[i];
    }
    return sqrt(off / (all > 0 ? all : 1));
}

static void same(const char *what, const float *a, const float *b, size_t n)
{
    if (memcmp(a, b, n * sizeof *a) == 0) return;
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s: value %zu is %.9g instead of %.9g", what, i, (double)b[i], (double)a[i]);
}

/* ---- a network by itself ------------------------------------------------------------------------------ */

enum { MAX_TOKENS = 96, MAX_ITEMS = 6, N_ADAPTERS = 2 };

typedef struct bench {
    model *m;
    const model_config *c;
    const net_ops *ops;
    team *t;
    net *n;
    kv *cache;
    adapter *adapters[N_ADAPTERS + 1]; /* [0]: none */
} bench;

static void bench_open(bench *b, const char *path, isa set, int n_threads)
{
    *b = (bench){0};
    must(model_open(&b->m, path, &(model_options){.no_tokenizer = true}, &err));
    b->c = model_get_config(b->m);
    must(team_new(&b->t, n_threads, set, &err));
    shoal_err why = {0};
    b->ops = net_ops_for(b->c, &why);
    if (!b->ops) fail_msg("%s", why.message);
    size_t n_ctx = b->c->n_ctx < MAX_TOKENS ? b->c->n_ctx : MAX_TOKENS;
    const net_limits limits = {.n_ctx = n_ctx,
                               .max_tokens = MAX_ITEMS * MAX_TOKENS,
                               .max_rows = MAX_ITEMS * MAX_TOKENS,
                               .max_inputs = MAX_ITEMS,
                               .max_positions = MAX_ITEMS * MAX_TOKENS};
    must(b->ops->load(&b->n, b->m, b->t, &limits, &err));
    if (!(b->ops->roles & NET_DECODES)) return;
    kv_shape shape = b->ops->kv(b->m);
    must(kv_new(&b->cache, &shape, 32 << 20, &err));
}

static void bench_adapt(bench *b, char folders[N_ADAPTERS][64])
{
    for (size_t i = 0; i < N_ADAPTERS; i++)
        must(adapter_open(&b->adapters[i + 1], folders[i], 1, b->m, &err));
}

static void bench_close(bench *b)
{
    for (size_t i = 0; i <= N_ADAPTERS; i++) adapter_unref(b->adapters[i]);
    b->ops->free(b->n);
    kv_free(b->cache);
    team_free(b->t);
    model_free(b->m);
}

/* A text or an input, its source where the network has one, its adapter, and all its values. */
typedef struct text {
    size_t n, n_source, adapter;
    const int32_t *ids;
    float *values;
    size_t n_values;
    kv_seq seq;
    void *cross;
} text;

typedef struct sink {
    text **of; /* by item */
    size_t n_vocab;
} sink;

static void on_row(void *user, team_member *m, size_t item, size_t at, float *logits)
{
    (void)m;
    const sink *s = user;
    text *t = s->of[item];
    memcpy(t->values + (t->seq.n_tokens + at) * s->n_vocab, logits, s->n_vocab * sizeof *logits);
}

static void read_sources(bench *b, text *ts, size_t n)
{
    net_input in[MAX_ITEMS];
    for (size_t i = 0; i < n; i++)
        in[i] = (net_input){.ids = ts[i].ids, .n = ts[i].n_source, .adapter = b->adapters[ts[i].adapter]};
    b->ops->encode(b->n, b->t, in, n);
    for (size_t i = 0; i < n; i++) {
        ts[i].cross = calloc(1, b->ops->cross_bytes(b->n, in[i].rows));
        b->ops->cross(b->n, b->t, b->adapters[ts[i].adapter], in[i].values, in[i].rows, ts[i].cross);
    }
}

/* n texts together, `chunk` tokens of each a step (0: all). */
static void run_decoder(bench *b, text *ts, size_t n, size_t chunk)
{
    size_t n_vocab = b->c->n_vocab;
    if (b->ops->roles & NET_CROSS) read_sources(b, ts, n);
    for (size_t i = 0; i < n; i++) {
        ts[i].n_values = ts[i].n * n_vocab;
        ts[i].values = calloc(ts[i].n_values, sizeof(float));
        assert_int_equal(kv_seq_init(&ts[i].seq, MAX_TOKENS, i + 1), 0);
    }
    for (;;) {
        net_item items[MAX_ITEMS];
        text *of[MAX_ITEMS];
        size_t n_items = 0;
        for (size_t i = 0; i < n; i++) {
            size_t left = ts[i].n - ts[i].seq.n_tokens, take = chunk && chunk < left ? chunk : left;
            if (take == 0) continue;
            assert_int_equal(kv_reserve(b->cache, &ts[i].seq, take), 0);
            of[n_items] = &ts[i];
            items[n_items++] = (net_item){.seq = &ts[i].seq,
                                          .ids = ts[i].ids + ts[i].seq.n_tokens,
                                          .n = take,
                                          .n_out = take,
                                          .cross = ts[i].cross,
                                          .n_cross = ts[i].cross ? ts[i].n_source : 0,
                                          .adapter = b->adapters[ts[i].adapter]};
        }
        if (n_items == 0) break;
        b->ops->decode(b->n, b->t, b->cache, items, n_items, on_row, &(sink){of, n_vocab});
        for (size_t i = 0; i < n_items; i++) kv_commit(b->cache, &of[i]->seq, of[i]->ids, items[i].n);
    }
    for (size_t i = 0; i < n; i++) kv_seq_done(b->cache, &ts[i].seq);
    for (size_t i = 0; i < n; i++) free(ts[i].cross);
}

static void run_encoder(bench *b, text *ts, size_t n)
{
    net_input in[MAX_ITEMS];
    for (size_t i = 0; i < n; i++)
        in[i] = (net_input){.ids = ts[i].ids, .n = ts[i].n, .adapter = b->adapters[ts[i].adapter]};
    b->ops->encode(b->n, b->t, in, n);
    for (size_t i = 0; i < n; i++) {
        ts[i].n_values = in[i].rows * in[i].cols;
        ts[i].values = malloc(ts[i].n_values * sizeof(float));
        memcpy(ts[i].values, in[i].values, ts[i].n_values * sizeof(float));
    }
}

static void run(bench *b, text *ts, size_t n, size_t chunk)
{
    if (b->ops->roles & NET_DECODES)
        run_decoder(b, ts, n, chunk);
    else
        run_encoder(b, ts, n);
}

/* The i-th text; every adapter has two and so has none. */
static text text_at(const bench *b, int32_t ids[2 * MAX_TOKENS], size_t i)
{
    static const size_t n[MAX_ITEMS] = {21, 40, 1, 17, 40, 33};
    for (size_t k = 0; k < 2 * MAX_TOKENS; k++) ids[k] = (int32_t)(rng_mix(k) % b->c->n_vocab);
    return (text){.ids = ids + i, .n = n[i], .n_source = 3 + 5 * i, .adapter = i % (N_ADAPTERS + 1)};
}

static void texts_done(text *ts, size_t n)
{
    for (size_t i = 0; i < n; i++) free(ts[i].values);
}

/* ---- every family ----------------------------------------------------------------------------------- */

static void an_adapter_gives_what_merged_weights_give(void **state)
{
    const family *f = *state;
    for (size_t which = 0; which < N_ADAPTERS; which++) {
        peft_spec s = spec_of(f, which);
        char folders[N_ADAPTERS][64], merged[64], path[256];
        int32_t ids[2 * MAX_TOKENS];
        bench b;
        for (size_t i = 0; i < N_ADAPTERS; i++) {
            folder_make(folders[i]);
            assert_true(peft_write(&s, folders[i]) > 0);
        }
        folder_make(merged);
        peft_write_merged(&s, merged);
        bench_open(&b, merged, isa_compared(), 1);
        text want = text_at(&b, ids, 1), plain, got;
        want.adapter = 0;
        run(&b, &want, 1, 0);
        bench_close(&b);
        snprintf(path, sizeof path, DATA "hf/%s", f->name);
        bench_open(&b, path, isa_compared(), 1);
        bench_adapt(&b, folders);
        got = text_at(&b, ids, 1);
        plain = text_at(&b, ids, 1);
        plain.adapter = 0;
        run(&b, &got, 1, 0);
        run(&b, &plain, 1, 0);
        double off = far_from(got.values, want.values, want.n_values),
               change = far_from(plain.values, want.values, want.n_values);
        bench_close(&b);
        if (!(off < FAR)) fail_msg("%s: %.2g of the norm away from merged weights", f->name, off);
        if (!(change > 0.01)) fail_msg("%s: the adapter changes only %.2g", f->name, change);
        texts_done((text[]){want, plain, got}, 3);
        for (size_t i = 0; i < N_ADAPTERS; i++) folder_remove(folders[i]);
        folder_remove(merged);
    }
}

static void check_together(bench *b, const text *alone, size_t chunk, const char *what)
{
    text ts[MAX_ITEMS];
    int32_t ids[2 * MAX_TOKENS];
    for (size_t i = 0; i < MAX_ITEMS; i++) ts[i] = text_at(b, ids, i);
    run(b, ts, MAX_ITEMS, chunk);
    for (size_t i = 0; i < MAX_ITEMS; i++) same(what, alone[i].values, ts[i].values, alone[i].n_values);
    texts_done(ts, MAX_ITEMS);
}

static void texts_have_the_same_bits_beside_any_adapter(void **state)
{
    const family *f = *state;
    char folders[N_ADAPTERS][64], path[256], what[128];
    int32_t ids[2 * MAX_TOKENS];
    text alone[MAX_ITEMS];
    bench b;
    for (size_t i = 0; i < N_ADAPTERS; i++) {
        peft_spec s = spec_of(f, i);
        folder_make(folders[i]);
        peft_write(&s, folders[i]);
    }
    snprintf(path, sizeof path, DATA "hf/%s", f->name);
    bench_open(&b, path, isa_compared(), 1);
    bench_adapt(&b, folders);
    for (size_t i = 0; i < MAX_ITEMS; i++) {
        alone[i] = text_at(&b, ids, i);
        run(&b, &alone[i], 1, 0);
    }
    bench_close(&b);
    for (int set = 0; set < ISA_COUNT; set++) {
        for (int threads = 1; threads <= 3; threads++) {
            if (!team_tested((isa)set, threads)) continue;
            bench_open(&b, path, (isa)set, threads);
            bench_adapt(&b, folders);
            static const size_t chunks[] = {0, 1, 5};
            for (size_t k = 0; k < N_OF(chunks); k++) {
                if (!way_tested((isa)set, threads, k)) continue;
                size_t chunk = chunks[k];
                snprintf(what, sizeof what, "%s, %s, %d threads, %zu tokens a step", f->name,
                         isa_name((isa)set), threads, chunk);
                check_together(&b, alone, chunk, what);
            }
            bench_close(&b);
        }
    }
    texts_done(alone, MAX_ITEMS);
    for (size_t i = 0; i < N_ADAPTERS; i++) folder_remove(folders[i]);
}

/* ---- files of both kinds ------------------------------------------------------------------------------- */

/* An adapter as its GGUF base has it in memory: rows of q and k stand in that file's order. */
static void write_gguf(const adapter *a, const model *m, const char *path)
{
    gguf_out o = {0};
    sha256_digest d;
    uint64_t n;
    char name[128];
    gguf_out_str(&o, "general.architecture", "llama");
    gguf_out_str(&o, "general.type", "adapter");
    gguf_out_str(&o, "adapter.type", "lora");
    gguf_out_f32(&o, "adapter.lora.alpha", 8);
    for (int write = 0; write < 2; write++) {
        if (write) must(gguf_out_open(&o, path, &err));
        for (size_t i = 0; i < model_tensor_count(m); i++) {
            const adapter_matrix *x = adapter_find(a, model_tensor_at(m, i));
            if (!x) continue;
            if (!write) {
                snprintf(name, sizeof name, "%s.lora_a", x->base->name);
                gguf_out_tensor(&o, name, DT_F32, 2, (const size_t[]){x->cols, x->rank});
                snprintf(name, sizeof name, "%s.lora_b", x->base->name);
                gguf_out_tensor(&o, name, DT_F32, 2, (const size_t[]){x->rank, x->rows});
                continue;
            }
            must(gguf_out_data(&o, x->a, x->rank * x->cols * sizeof *x->a, &err));
            for (size_t r = 0; r < x->rows; r++)
                for (size_t k = 0; k < x->rank; k++)
                    must(gguf_out_data(&o, &x->b[k * x->rows + r], sizeof *x->b, &err));
        }
    }
    must(gguf_out_close(&o, &d, &n, &err));
    gguf_out_done(&o);
}

static float *logits_with(const char *base, const char *path, size_t *ret_n)
{
    int32_t ids[40];
    rig r;
    rig_open(&r, base, (engine_options){.adapter = path});
    size_t n_vocab = model_get_config(r.m)->n_vocab;
    float *out = malloc(40 * n_vocab * sizeof *out);
    for (size_t i = 0; i < 40; i++) ids[i] = (int32_t)(rng_mix(i) % n_vocab);
    must(engine_logits(r.e, NULL, ids, 40, 40, out, &err));
    rig_close(&r);
    *ret_n = 40 * n_vocab;
    return out;
}

/* q and k have their rows in another order in GGUF files of this family. */
static void adapters_and_bases_of_either_kind_of_file_agree(void **state)
{
    static const char *const bases[] = {DATA "hf/llama-gqa", SHOAL_GGUF_DIR "/llama-gqa.gguf"};
    static const char *const folders[] = {DATA "adapters/llama-one", DATA "adapters/llama-two"};
    char folder[64], path[96];
    size_t n;
    folder_make(folder);
    snprintf(path, sizeof path, "%s/a.gguf", folder);
    for (size_t i = 0; i < 2; i++) {
        model *m;
        adapter *a;
        must(model_open(&m, bases[1], NULL, &err));
        must(adapter_open(&a, folders[i], 1, m, &err));
        write_gguf(a, m, path);
        adapter_unref(a);
        model_free(m);
        float *plain = logits_with(bases[0], NULL, &n), *want = logits_with(bases[0], folders[i], &n);
        assert_true(far_from(plain, want, n) > 0.01);
        for (size_t b = 0; b < 2; b++) {
            float *peft = logits_with(bases[b], folders[i], &n), *gguf = logits_with(bases[b], path, &n);
            assert_true(far_from(peft, want, n) < FAR);
            same("a GGUF adapter", peft, gguf, n);
            free(peft);
            free(gguf);
        }
        free(plain);
        free(want);
    }
    folder_remove(folder);
}

/* ---- in an engine ----------------------------------------------------------------------------------- */

static void make_llama(size_t which, char folder[64])
{
    peft_spec s = spec_of(&decoders[0], which);
    folder_make(folder);
    peft_write(&s, folder);
}

static const gen_request *request(const int32_t *ids, const char *adapter, gen_request *q)
{
    *q = (gen_request){
        .ids = ids, .n_ids = 40, .max_tokens = 24, .ignore_eos = true, .logprobs = true, .adapter = adapter};
    return q;
}

static void fill_ids(int32_t *ids, size_t n, size_t n_vocab)
{
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(rng_mix(i) % n_vocab);
}

static void same_reply(const reply *a, const reply *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->ids, b->ids, a->n * sizeof *a->ids);
    same("log-probabilities", a->logprobs, b->logprobs, a->n);
}

static void requests_with_different_adapters_run_together(void **state)
{
    static const char *const names[] = {NULL, "one", "two"};
    char folders[2][64];
    int32_t ids[40];
    gen_request q;
    reply *alone[3], *now[9];
    rig r;
    for (size_t i = 0; i < 2; i++) make_llama(i, folders[i]);
    for (size_t i = 0; i < 3; i++) {
        rig_open(&r, DATA "hf/llama-gqa", (engine_options){.n_threads = 1});
        fill_ids(ids, 40, model_get_config(r.m)->n_vocab);
        if (i > 0) must(engine_adapter_load(r.e, names[i], folders[i - 1], 1, &err));
        alone[i] = generate(r.e, request(ids, names[i], &q));
        rig_close(&r);
    }
    assert_memory_not_equal(alone[0]->logprobs, alone[1]->logprobs, 24 * sizeof(float));
    assert_memory_not_equal(alone[1]->logprobs, alone[2]->logprobs, 24 * sizeof(float));
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
    for (size_t i = 1; i < 3; i++) must(engine_adapter_load(r.e, names[i], folders[i - 1], 1, &err));
    for (size_t i = 0; i < 9; i++) {
        now[i] = reply_new();
        must(reply_start(now[i], r.e, request(ids, names[i % 3], &q), &err));
    }
    for (size_t i = 0; i < 9; i++) {
        reply_wait(now[i]);
        assert_int_equal(now[i]->status, 0);
        same_reply(alone[i % 3], now[i]);
        reply_free(now[i]);
    }
    for (size_t i = 0; i < 3; i++) reply_free(alone[i]);
    rig_close(&r);
    for (size_t i = 0; i < 2; i++) folder_remove(folders[i]);
}

static void cached_prefixes_are_of_one_adapter(void **state)
{
    static const char *const names[] = {NULL, "one", "half"};
    char folder[64];
    int32_t ids[40];
    gen_request q;
    rig r;
    make_llama(0, folder);
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
    fill_ids(ids, 40, model_get_config(r.m)->n_vocab);
    must(engine_adapter_load(r.e, "one", folder, 1, &err));
    must(engine_adapter_load(r.e, "half", folder, 0.5f, &err));
    for (size_t i = 0; i < 3; i++) {
        reply *cold = generate(r.e, request(ids, names[i], &q)), *warm = generate(r.e, &q);
        assert_int_equal(cold->timings.n_cached, 0);
        assert_int_equal(warm->timings.n_cached, 39);
        same_reply(cold, warm);
        reply_free(cold);
        reply_free(warm);
    }
    rig_close(&r);
    folder_remove(folder);
}

static void beams_search_with_an_adapter(void **state)
{
    char folder[64];
    int32_t ids[40];
    rig r;
    make_llama(0, folder);
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
    fill_ids(ids, 40, model_get_config(r.m)->n_vocab);
    must(engine_adapter_load(r.e, "one", folder, 1, &err));
    gen_request q = {.ids = ids, .n_ids = 40, .max_tokens = 12, .n_beams = 3, .ignore_eos = true};
    reply *plain = generate(r.e, &q);
    q.adapter = "one";
    reply *adapted = generate(r.e, &q), *again = generate(r.e, &q);
    assert_int_equal(adapted->status, 0);
    assert_true(plain->n != adapted->n || memcmp(plain->ids, adapted->ids, plain->n * sizeof *ids) != 0);
    same_reply(adapted, again);
    reply_free(plain);
    reply_free(adapted);
    reply_free(again);
    rig_close(&r);
    folder_remove(folder);
}

static void an_adapter_comes_and_goes_while_the_engine_serves(void **state)
{
    char folder[64], name[64];
    int32_t ids[40];
    gen_request q;
    rig r;
    shoal_err e = {0};
    make_llama(0, folder);
    rig_open(&r, DATA "hf/llama-gqa", (engine_options){0});
    fill_ids(ids, 40, model_get_config(r.m)->n_vocab);
    assert_int_equal(engine_generate(r.e, request(ids, "one", &q), on_event, NULL, NULL, &e),
                     SHOAL_ENOTFOUND);
    assert_non_null(strstr(e.message, "none is loaded"));
    must(engine_adapter_load(r.e, "zwei", folder, 1, &err));
    must(engine_adapter_load(r.e, "one", folder, 1, &err));
    assert_true(engine_adapter_name(r.e, 0, name, NULL));
    assert_string_equal(name, "one");
    assert_true(engine_adapter_name(r.e, 1, name, NULL));
    assert_false(engine_adapter_name(r.e, 2, name, NULL));
    assert_int_equal(engine_adapter_load(r.e, "one", folder, 1, &e), SHOAL_EINVALID);
    assert_int_equal(engine_adapter_load(r.e, "a:b", folder, 1, &e), SHOAL_EINVALID);
    assert_int_equal(engine_adapter_load(r.e, "three", "/nowhere", 1, &e), SHOAL_ENOTFOUND);
    assert_int_equal(engine_generate(r.e, request(ids, "three", &q), on_event, NULL, NULL, &e),
                     SHOAL_ENOTFOUND);
    assert_non_null(strstr(e.message, "one, zwei"));
    reply *before = generate(r.e, request(ids, "one", &q)), *during = reply_new();
    must(reply_start(during, r.e, &q, &err));
    must(engine_adapter_unload(r.e, "one", &err));
    assert_int_equal(engine_adapter_unload(r.e, "one", &e), SHOAL_ENOTFOUND);
    assert_int_equal(engine_generate(r.e, &q, on_event, NULL, NULL, &e), SHOAL_ENOTFOUND);
    reply_wait(during);
    same_reply(before, during);
    reply_free(before);
    reply_free(during);
    rig_close(&r);
    folder_remove(folder);
}

static void encoders_take_adapters_by_name(void **state)
{
    peft_spec s = spec_of(&encoders[1], 0);
    char folder[64];
    const int32_t ids[] = {2, 17, 33, 40, 3};
    vectors v[2];
    shoal_err e = {0};
    rig r;
    folder_make(folder);
    peft_write(&s, folder);
    rig_open(&r, DATA "hf/bert-intent", (engine_options){0});
    must(engine_adapter_load(r.e, "mine", folder, 1, &err));
    for (size_t i = 0; i < 2; i++) {
        vectors_init(&v[i]);
        enc_request q = {.ids = ids, .n_ids = 5, .adapter = i ? "mine" : NULL};
        must(engine_encode(r.e, &q, on_vectors, &v[i], NULL, &err));
    }
    for (size_t i = 0; i < 2; i++) vectors_wait(&v[i]);
    assert_memory_not_equal(v[0].values, v[1].values, v[0].cols * sizeof(float));
    enc_request q = {.ids = ids, .n_ids = 5, .adapter = "other"};
    assert_int_equal(engine_encode(r.e, &q, on_vectors, NULL, NULL, &e), SHOAL_ENOTFOUND);
    for (size_t i = 0; i < 2; i++) vectors_done(&v[i]);
    rig_close(&r);
    folder_remove(folder);
}

/* ---- every family is a case of its own -------------------------------------------------------------- */

static char names[2 * (N_OF(decoders) + N_OF(encoders) + N_OF(translators))][96];
static struct CMUnitTest tests[N_OF(names) + 8];
static size_t n_tests;

static void add_family(const family *f)
{
    static const struct {
        const char *what;
        CMUnitTestFunction fn;
    } each[] = {
        {"adapters_give_what_merged_weights_give", an_adapter_gives_what_merged_weights_give},
        {"texts_have_the_same_bits_beside_any_adapter", texts_have_the_same_bits_beside_any_adapter},
    };
    for (size_t i = 0; i < N_OF(each); i++, n_tests++) {
        snprintf(names[n_tests], sizeof names[0], "%s_%s", f->name, each[i].what);
        tests[n_tests] = (struct CMUnitTest){
            .name = names[n_tests], .test_func = each[i].fn, .initial_state = (void *)(uintptr_t)f};
    }
}

int main(void)
{
    const struct CMUnitTest engines[] = {
        cmocka_unit_test(adapters_and_bases_of_either_kind_of_file_agree),
        cmocka_unit_test(requests_with_different_adapters_run_together),
        cmocka_unit_test(cached_prefixes_are_of_one_adapter),
        cmocka_unit_test(beams_search_with_an_adapter),
        cmocka_unit_test(an_adapter_comes_and_goes_while_the_engine_serves),
        cmocka_unit_test(encoders_take_adapters_by_name),
    };
    for (size_t i = 0; i < N_OF(decoders); i++) add_family(&decoders[i]);
    for (size_t i = 0; i < N_OF(encoders); i++) add_family(&encoders[i]);
    for (size_t i = 0; i < N_OF(translators); i++) add_family(&translators[i]);
    for (size_t i = 0; i < N_OF(engines); i++) tests[n_tests++] = engines[i];
    return _cmocka_run_group_tests("infer_adapters", tests, n_tests, NULL, NULL);
}
