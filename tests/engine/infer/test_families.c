/* Every family's small model (tests/data): the reference implementation's tensors, and the numerics contract:
 * however a text is cut, whoever is beside it, on every instruction set and with any number of threads, the
 * same bits as in one go. Here the network alone is run, without the engine. */
#include "helper.h"

#include <unistd.h>

#include "net/net.h"

/* The weights were rounded to bfloat16 before the reference ran in float32. */
#define FAR 3e-6 /* of the reference row's norm; the most is 1.7e-6, of lfm2-conv */

typedef struct family {
    const char *name; /* tests/data/hf/NAME */
    bool gguf;        /* and NAME.gguf, made by tests/data/gguf/make.py, says the same */
} family;

/* A GGUF file lacks what its folder says: mistral-sliding its window. */
static const family decoders[] = {
    {"llama-gqa", true},
    {"llama-bf16", true},
    {"llama3-rope-scaled-tied", true},
    {"mistral-sliding", false},
    {"qwen2-bias", true},
    {"qwen3-qknorm", true},
    {"qwen3-moe", true},
    {"phi-1.5", true},
    {"phi3", false},
    {"gpt2", false},
    {"gpt-neo-local", false},
    {"gpt-neox-pythia", false},
    {"opt", false},
    {"gemma2-softcap", false},
    {"gemma3", true},
    {"granite", true},
    {"olmo2", true},
    {"smollm3-nope", true},
    {"stablelm", true},
    {"lfm2-conv", true},
};

static const family encoders[] = {
    {"bert-intent", true},     {"bert-ner", false},          {"cross-encoder-rerank", true},
    {"minilm-embed", true},    {"distilbert-intent", true}, {"distilbert-ner", false},
    {"roberta-intent", true},  {"xlmr-ner", false},          {"electra-intent", false},
    {"albert-intent", false},  {"mpnet-embed", false},       {"modernbert-embed", true},
    {"deberta-v3-nli", false},
};

/* Series and pictures: tensors in expected.safetensors. */
typedef struct numbers {
    family f;
    const char *in, *out; /* [items][rows][width], [items][labels] */
    bool every;           /* one item, [rows][width], [rows][labels] */
} numbers;

static const numbers arrays[] = {
    {{"lstm-anomaly", false}, "x", "logits", false},
    {{"home-wake", false}, "features", "logits", true},
    {{"vit-tiny", false}, "px", "logits", false},
};

/* ---- a network by itself ------------------------------------------------------------------------------ */

typedef struct bench {
    model *m;
    const model_config *c;
    const net_ops *ops;
    team *t;
    net *n;
    kv *cache;
} bench;

#define MAX_TOKENS 256
#define MAX_INPUTS 16

static void bench_open(bench *b, const char *path, isa set, int n_threads)
{
    *b = (bench){0};
    must(model_open(&b->m, path, &(model_options){.no_tokenizer = true}, &err));
    b->c = model_get_config(b->m);
    must(team_new(&b->t, n_threads, set, &err));
    shoal_err why = {0};
    b->ops = net_ops_for(b->c, &why);
    if (!b->ops) fail_msg("%s", why.message);
    const net_limits limits = {.n_ctx = b->c->n_ctx < MAX_TOKENS ? b->c->n_ctx : MAX_TOKENS,
                               .max_tokens = MAX_TOKENS,
                               .max_rows = MAX_TOKENS,
                               .max_inputs = MAX_INPUTS,
                               .max_positions = MAX_INPUTS * MAX_TOKENS};
    must(b->ops->load(&b->n, b->m, b->t, &limits, &err));
    if (!(b->ops->roles & NET_DECODES)) return;
    kv_shape shape = b->ops->kv(b->m);
    must(kv_new(&b->cache, &shape, 32 << 20, &err));
}

static void bench_close(bench *b)
{
    b->ops->free(b->n);
    kv_free(b->cache);
    team_free(b->t);
    model_free(b->m);
}

static void path_of(const family *f, bool gguf, char out[256])
{
    snprintf(out, 256, gguf ? SHOAL_GGUF_DIR "/%s.gguf" : DATA "hf/%s", f->name);
}

typedef struct text {
    const int32_t *ids;
    size_t n;
    float *logits; /* [n][n_vocab] */
    kv_seq seq;
} text;

typedef struct sink {
    text **of; /* by item */
    size_t n_vocab;
} sink;

/* Every row of a step is wanted. */
static void on_row(void *user, team_member *m, size_t item, size_t at, float *logits)
{
    (void)m;
    const sink *s = user;
    text *t = s->of[item];
    memcpy(t->logits + (t->seq.n_tokens + at) * s->n_vocab, logits, s->n_vocab * sizeof *logits);
}

/* Run n texts together, `chunk` tokens of each a step (0: all). */
static void run_texts(bench *b, text *ts, size_t n, size_t chunk)
{
    for (size_t i = 0; i < n; i++) assert_int_equal(kv_seq_init(&ts[i].seq, MAX_TOKENS, i + 1), 0);
    for (;;) {
        net_item items[MAX_INPUTS];
        text *of[MAX_INPUTS];
        size_t n_items = 0;
        for (size_t i = 0; i < n; i++) {
            size_t left = ts[i].n - ts[i].seq.n_tokens, take = chunk && chunk < left ? chunk : left;
            if (take == 0) continue;
            assert_int_equal(kv_reserve(b->cache, &ts[i].seq, take), 0);
            of[n_items] = &ts[i];
            items[n_items++] = (net_item){
                .seq = &ts[i].seq, .ids = ts[i].ids + ts[i].seq.n_tokens, .n = take, .n_out = take};
        }
        if (n_items == 0) break;
        b->ops->decode(b->n, b->t, b->cache, items, n_items, on_row, &(sink){of, b->c->n_vocab});
        for (size_t i = 0; i < n_items; i++) kv_commit(b->cache, &of[i]->seq, of[i]->ids, items[i].n);
    }
    for (size_t i = 0; i < n; i++) kv_seq_done(b->cache, &ts[i].seq);
}

static float *space(const bench *b, size_t n)
{
    return calloc(n * b->c->n_vocab, sizeof(float));
}

/* ---- against the reference ---------------------------------------------------------------------------- */

static double far_from(const float *a, const float *ref, size_t n)
{
    double off = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        off += ((double)a[i] - (double)ref[i]) * ((double)a[i] - (double)ref[i]);
        all += (double)ref[i] * (double)ref[i];
    }
    return sqrt(off / (all > 0 ? all : 1));
}

static void check_rows(const family *f, const float *a, const float *ref, size_t rows, size_t cols,
                       size_t first)
{
    for (size_t i = 0; i < rows; i++) {
        double d = far_from(a + i * cols, ref + i * cols, cols);
        if (!(d <= FAR))
            fail_msg("%s: row %zu is %.2g of its norm away from the reference", f->name, first + i, d);
    }
}

static void check_prompt(const family *f, const fixture *x, bench *b, const json_t *prompt)
{
    size_t n, n_ref, n_greedy, n_vocab = b->c->n_vocab;
    int32_t *ids = int_array(json_object_get(prompt, "ids"), &n);
    int32_t *greedy = int_array(json_object_get(prompt, "greedy_ids"), &n_greedy);
    float *ref = fixture_tensor(x, json_string_value(json_object_get(prompt, "logits")), &n_ref);
    assert_int_equal(n_ref, n * n_vocab);
    int32_t *all = malloc((n + n_greedy) * sizeof *all);
    memcpy(all, ids, n * sizeof *all);
    memcpy(all + n, greedy, n_greedy * sizeof *all);
    text t = {.ids = all, .n = n + n_greedy, .logits = space(b, n + n_greedy)};
    run_texts(b, &t, 1, 0);
    check_rows(f, t.logits, ref, n, n_vocab, 0);
    for (size_t i = 0; i < n_greedy; i++) {
        size_t best = vec_kernels_for(ISA_SCALAR)->argmax(t.logits + (n + i - 1) * n_vocab, n_vocab);
        if ((int32_t)best != greedy[i])
            fail_msg("%s: greedy token %zu is %zu, not %d", f->name, i, best, greedy[i]);
    }
    free(t.logits);
    free(all);
    free(ref);
    free(greedy);
    free(ids);
}

static void check_long(const family *f, const fixture *x, bench *b)
{
    size_t n, n_ref, n_vocab = b->c->n_vocab;
    json_t *l = json_object_get(x->expected, "long");
    int32_t *ids = int_array(json_object_get(l, "ids"), &n);
    float *ref = fixture_tensor(x, json_string_value(json_object_get(l, "logits_last4")), &n_ref);
    size_t rows = n_ref / n_vocab;
    text t = {.ids = ids, .n = n, .logits = space(b, n)};
    run_texts(b, &t, 1, 0);
    check_rows(f, t.logits + (n - rows) * n_vocab, ref, rows, n_vocab, n - rows);
    free(t.logits);
    free(ids);
    free(ref);
}

static void decoder_gives_the_reference_logits(void **state)
{
    const family *f = *state;
    char path[256];
    fixture x;
    bench b;
    size_t i;
    json_t *prompt;
    fixture_open(&x, f->name);
    for (int gguf = 0; gguf <= f->gguf; gguf++) {
        path_of(f, gguf, path);
        bench_open(&b, path, isa_compared(), 1);
        json_array_foreach(json_object_get(x.expected, "prompts"), i, prompt) check_prompt(f, &x, &b, prompt);
        check_long(f, &x, &b);
        bench_close(&b);
    }
    fixture_close(&x);
}

/* ---- the same bits ------------------------------------------------------------------------------------ */

static void same(const family *f, const char *what, const float *a, const float *b, size_t rows, size_t cols)
{
    if (memcmp(a, b, rows * cols * sizeof *a) == 0) return;
    for (size_t i = 0; i < rows * cols; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s, %s: value %zu of row %zu is %.9g instead of %.9g", f->name, what, i % cols,
                     i / cols, (double)b[i], (double)a[i]);
    }
}

#define N_TEXTS 3

/* Three texts of different lengths; ref has the rows of each that a run alone and in one go gave. */
static void check_cuts(const family *f, bench *b, const int32_t *ids, const size_t n[N_TEXTS],
                       float *const ref[N_TEXTS], const char *what)
{
    static const size_t chunks[] = {0, 1, 5, 16, 23};
    for (size_t k = 0; k < sizeof chunks / sizeof *chunks; k++) {
        if (!way_tested(team_isa(b->t), team_size(b->t), k)) continue;
        text ts[N_TEXTS];
        char how[128];
        snprintf(how, sizeof how, "%s, together, %zu tokens a step", what, chunks[k]);
        for (size_t i = 0; i < N_TEXTS; i++)
            ts[i] = (text){.ids = ids + i, .n = n[i], .logits = space(b, n[i])};
        run_texts(b, ts, N_TEXTS, chunks[k]);
        for (size_t i = 0; i < N_TEXTS; i++) same(f, how, ref[i], ts[i].logits, n[i], b->c->n_vocab);
        for (size_t i = 0; i < N_TEXTS; i++) free(ts[i].logits);
    }
}

/* Of the model at `path`: each text alone, in one go, on scalar, against every other way. */
static void check_ways(const family *f, const char *path)
{
    static const size_t n[N_TEXTS] = {70, 1, 37};
    char what[64];
    int32_t ids[MAX_TOKENS];
    float *ref[N_TEXTS];
    bench b;
    bench_open(&b, path, isa_compared(), 1);
    for (size_t i = 0; i < MAX_TOKENS; i++) ids[i] = (int32_t)(i * 7919 % b.c->n_vocab);
    for (size_t i = 0; i < N_TEXTS; i++) {
        text t = {.ids = ids + i, .n = n[i], .logits = ref[i] = space(&b, n[i])};
        run_texts(&b, &t, 1, 0);
    }
    bench_close(&b);
    for (int set = 0; set < ISA_COUNT; set++) {
        for (int threads = 1; threads <= 3; threads++) {
            if (!team_tested((isa)set, threads)) continue;
            snprintf(what, sizeof what, "%s, %d threads", isa_name((isa)set), threads);
            bench_open(&b, path, (isa)set, threads);
            check_cuts(f, &b, ids, n, ref, what);
            bench_close(&b);
        }
    }
    for (size_t i = 0; i < N_TEXTS; i++) free(ref[i]);
}

static void decoder_gives_the_same_bits_however_it_runs(void **state)
{
    char path[256];
    path_of(*state, false, path);
    check_ways(*state, path);
}

/* Integer products and a cache of halves. */
static void quantised_decoder_gives_the_same_bits_however_it_runs(void **state)
{
    char in[256], out[] = "/tmp/shoal-family-XXXXXX";
    int fd = mkstemp(out);
    assert_true(fd >= 0);
    close(fd);
    path_of(*state, false, in);
    quantize_report *report = calloc(1, sizeof *report);
    must(quantize_model(in, out, &(quantize_options){.type = DT_Q8_0}, report, &err));
    free(report);
    check_ways(*state, out);
    remove(out);
}

/* ---- encoders ------------------------------------------------------------------------------------------ */

static uint8_t *byte_array(const json_t *a)
{
    size_t n;
    int32_t *v = int_array(a, &n);
    uint8_t *out = malloc(n + 1);
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)v[i];
    free(v);
    return out;
}

typedef struct inputs {
    size_t n;
    net_input in[MAX_INPUTS];
    float *ref[MAX_INPUTS];
    size_t n_ref[MAX_INPUTS];
} inputs;

/* Which of the reference's tensors an answer is: embeddings come pooled one way or the other. */
static const char *answer_key(const model_config *c)
{
    return c->task != TASK_EMBED ? "out" : c->head.pool == POOL_CLS ? "cls" : "mean";
}

static void inputs_open(inputs *s, const fixture *x, const model_config *c)
{
    json_t *all = json_object_get(x->expected, "inputs");
    s->n = json_array_size(all);
    assert_true(s->n > 0 && s->n <= MAX_INPUTS);
    for (size_t i = 0; i < s->n; i++) {
        json_t *in = json_array_get(all, i), *types = json_object_get(in, "type_ids");
        size_t n;
        int32_t *ids = int_array(json_object_get(in, "ids"), &n);
        s->in[i] = (net_input){.ids = ids, .n = n};
        if (json_is_array(types)) s->in[i].type_ids = byte_array(types);
        s->ref[i] = fixture_tensor(x, json_string_value(json_object_get(in, answer_key(c))), &s->n_ref[i]);
    }
}

static void inputs_close(inputs *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free((void *)s->in[i].ids);
        free((void *)s->in[i].type_ids);
        free(s->ref[i]);
    }
}

static void normalize(float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (size_t i = 0; i < n; i++) x[i] = (float)((double)x[i] / sqrt(sum));
}

static void encoder_gives_the_reference_values(void **state)
{
    const family *f = *state;
    char path[256];
    fixture x;
    bench b;
    inputs s = {0};
    fixture_open(&x, f->name);
    for (int gguf = 0; gguf <= f->gguf; gguf++) {
        path_of(f, gguf, path);
        bench_open(&b, path, isa_compared(), 1);
        inputs_open(&s, &x, b.c);
        b.ops->encode(b.n, b.t, s.in, s.n);
        for (size_t i = 0; i < s.n; i++) {
            assert_int_equal(s.in[i].rows * s.in[i].cols, s.n_ref[i]);
            if (b.c->task == TASK_EMBED && b.c->head.normalize) normalize(s.ref[i], s.n_ref[i]);
            check_rows(f, s.in[i].values, s.ref[i], s.in[i].rows, s.in[i].cols, 0);
        }
        inputs_close(&s);
        bench_close(&b);
    }
    fixture_close(&x);
}

/* Whole batch on every machine against one by one on scalar. */
static void encoder_gives_the_same_bits_however_it_runs(void **state)
{
    const family *f = *state;
    char path[256], what[64];
    fixture x;
    bench b;
    inputs s = {0};
    float *ref[MAX_INPUTS];
    path_of(f, false, path);
    fixture_open(&x, f->name);
    bench_open(&b, path, isa_compared(), 1);
    inputs_open(&s, &x, b.c);
    for (size_t i = 0; i < s.n; i++) {
        b.ops->encode(b.n, b.t, &s.in[i], 1);
        size_t bytes = s.in[i].rows * s.in[i].cols * sizeof(float);
        ref[i] = memcpy(malloc(bytes), s.in[i].values, bytes);
    }
    bench_close(&b);
    for (int set = 0; set < ISA_COUNT; set++) {
        for (int threads = 1; threads <= 3; threads++) {
            if (!team_tested((isa)set, threads)) continue;
            snprintf(what, sizeof what, "%s, %d threads", isa_name((isa)set), threads);
            bench_open(&b, path, (isa)set, threads);
            b.ops->encode(b.n, b.t, s.in, s.n);
            for (size_t i = 0; i < s.n; i++)
                same(f, what, ref[i], s.in[i].values, s.in[i].rows, s.in[i].cols);
            bench_close(&b);
        }
    }
    for (size_t i = 0; i < s.n; i++) free(ref[i]);
    inputs_close(&s);
    fixture_close(&x);
}

/* ---- series and pictures ---------------------------------------------------------------------------- */

typedef struct array {
    float *x, *ref;
    size_t n_items, rows, width, labels, n_ref;
    net_input in[MAX_INPUTS];
} array;

static void array_open(array *a, const numbers *n, const model_config *c)
{
    fixture x;
    size_t n_x;
    fixture_open(&x, n->f.name);
    *a = (array){.labels = c->head.n_labels, .width = c->image.size ? c->image.size : c->series.n_input};
    a->x = fixture_tensor(&x, n->in, &n_x);
    a->ref = fixture_tensor(&x, n->out, &a->n_ref);
    a->n_items = n->every ? 1 : a->n_ref / a->labels;
    a->rows = n_x / a->n_items / a->width;
    assert_true(a->n_items > 0 && a->n_items <= MAX_INPUTS);
    for (size_t i = 0; i < a->n_items; i++)
        a->in[i] = (net_input){.features = a->x + i * a->rows * a->width,
                               .n_features = a->rows,
                               .width = a->width,
                               .every = n->every};
    fixture_close(&x);
}

static void array_close(array *a)
{
    free(a->x);
    free(a->ref);
}

static void array_gives_the_reference_values(void **state)
{
    const numbers *n = *state;
    char path[256];
    bench b;
    array a;
    path_of(&n->f, false, path);
    bench_open(&b, path, isa_compared(), 1);
    array_open(&a, n, b.c);
    for (size_t i = 0; i < a.n_items; i++) {
        size_t rows;
        must(b.ops->positions(b.c, &a.in[i], &rows, &err));
        assert_true(rows <= b.ops->longest(b.c, b.c->n_ctx));
    }
    b.ops->encode(b.n, b.t, a.in, a.n_items);
    for (size_t i = 0; i < a.n_items; i++)
        check_rows(&n->f, a.in[i].values, a.ref + i * a.labels, a.in[i].rows, a.in[i].cols, i);
    array_close(&a);
    bench_close(&b);
}

/* All at once on every machine against one by one on scalar. */
static void array_gives_the_same_bits_however_it_runs(void **state)
{
    const numbers *n = *state;
    char path[256], what[64];
    bench b;
    array a;
    path_of(&n->f, false, path);
    bench_open(&b, path, isa_compared(), 1);
    array_open(&a, n, b.c);
    for (size_t i = 0; i < a.n_items; i++) {
        b.ops->encode(b.n, b.t, &a.in[i], 1);
        memcpy(a.ref + i * a.labels, a.in[i].values, a.in[i].rows * a.labels * sizeof(float));
    }
    bench_close(&b);
    for (int set = 0; set < ISA_COUNT; set++) {
        for (int threads = 1; threads <= 3; threads++) {
            if (!team_tested((isa)set, threads)) continue;
            snprintf(what, sizeof what, "%s, %d threads", isa_name((isa)set), threads);
            bench_open(&b, path, (isa)set, threads);
            b.ops->encode(b.n, b.t, a.in, a.n_items);
            for (size_t i = 0; i < a.n_items; i++)
                same(&n->f, what, a.ref + i * a.labels, a.in[i].values, a.in[i].rows, a.labels);
            bench_close(&b);
        }
    }
    array_close(&a);
}

/* A series in pieces whose state is carried along. */
static void series_goes_on_where_it_stopped(void **state)
{
    const numbers *n = *state;
    static const size_t pieces[] = {1, 7, 32};
    char path[256];
    bench b;
    array a;
    path_of(&n->f, false, path);
    bench_open(&b, path, isa_compared(), 2);
    array_open(&a, n, b.c);
    net_input whole = a.in[0];
    whole.every = true;
    b.ops->encode(b.n, b.t, &whole, 1);
    float *ref =
        memcpy(malloc(a.rows * a.labels * sizeof *ref), whole.values, a.rows * a.labels * sizeof *ref);
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        float *carried = calloc(net_state_floats(b.c), sizeof *carried);
        for (size_t at = 0; at < a.rows; at += pieces[p]) {
            net_input part = whole;
            part.features = a.x + at * a.width;
            part.n_features = a.rows - at < pieces[p] ? a.rows - at : pieces[p];
            part.state = carried;
            b.ops->encode(b.n, b.t, &part, 1);
            same(&n->f, "in pieces", ref + at * a.labels, part.values, part.rows, a.labels);
        }
        free(carried);
    }
    free(ref);
    array_close(&a);
    bench_close(&b);
}

/* ---- every family is a case of its own -------------------------------------------------------------- */

#define N_OF(a) (sizeof(a) / sizeof *(a))
static char names[3 * N_OF(decoders) + 2 * N_OF(encoders) + 3 * N_OF(arrays)][80];
static struct CMUnitTest tests[N_OF(names)];
static size_t n_tests;

static void add(const void *f, CMUnitTestFunction fn, const char *what)
{
    const char *name = *(const char *const *)f; /* a family's first field */
    snprintf(names[n_tests], sizeof names[0], "%s_%s", name, what);
    tests[n_tests] =
        (struct CMUnitTest){.name = names[n_tests], .test_func = fn, .initial_state = (void *)(uintptr_t)f};
    n_tests++;
}

/* One thread on scalar: ThreadSanitizer has nothing to see there, and takes minutes. */
static void add_reference(const void *f, CMUnitTestFunction fn, const char *what)
{
#ifndef __SANITIZE_THREAD__
    add(f, fn, what);
#endif
}

int main(void)
{
    for (size_t i = 0; i < N_OF(decoders); i++) {
        add_reference(&decoders[i], decoder_gives_the_reference_logits, "gives_the_reference_logits");
        add(&decoders[i], decoder_gives_the_same_bits_however_it_runs, "gives_the_same_bits_however_it_runs");
        add(&decoders[i], quantised_decoder_gives_the_same_bits_however_it_runs,
            "quantised_gives_the_same_bits_however_it_runs");
    }
    for (size_t i = 0; i < N_OF(encoders); i++) {
        add_reference(&encoders[i], encoder_gives_the_reference_values, "gives_the_reference_values");
        add(&encoders[i], encoder_gives_the_same_bits_however_it_runs, "gives_the_same_bits_however_it_runs");
    }
    for (size_t i = 0; i < N_OF(arrays); i++) {
        add_reference(&arrays[i], array_gives_the_reference_values, "gives_the_reference_values");
        add(&arrays[i], array_gives_the_same_bits_however_it_runs, "gives_the_same_bits_however_it_runs");
        if (strcmp(arrays[i].in, "px") != 0)
            add(&arrays[i], series_goes_on_where_it_stopped, "goes_on_where_it_stopped");
    }
    return _cmocka_run_group_tests("infer_families", tests, n_tests, NULL, NULL);
}
