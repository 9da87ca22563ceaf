/* Fill-mask heads. No fixture has one, so each test makes a model: a fixture's encoder, and a head of random
 * weights; the reference is the same network in double, written down here. */
#include "../infer/helper.h"

#include <unistd.h>

#include "infer/decoding/mask_slots.h"
#include "shoal.h"

enum { TENSORS_MAX = 80, WIDTH = 64, FF = 128, HEADS = 4, LAYERS = 3, VOCAB = 576, TOKENS_MAX = 64 };

typedef struct weight {
    char name[96];
    size_t rows, cols; /* cols 0: a vector */
    float *v;
} weight;

/* A family's names. */
typedef struct head_names {
    const char *fixture, *architecture, *prefix, *dense, *norm, *bias;
    size_t offset;    /* of its positions */
    const char *mask; /* how its vocabulary spells a gap */
} head_names;

static const head_names families[] = {
    {"bert-intent", "BertForMaskedLM", "bert.", "cls.predictions.transform.dense",
     "cls.predictions.transform.LayerNorm", "cls.predictions.bias", 0, "[MASK]"},
    {"roberta-intent", "RobertaForMaskedLM", "roberta.", "lm_head.dense", "lm_head.layer_norm",
     "lm_head.bias", 2, "<mask>"},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

typedef struct made {
    const head_names *names;
    weight w[TENSORS_MAX];
    size_t n;
    char folder[300];
} made;

/* ---- the file ---------------------------------------------------------------------------------------- */

static weight *add(made *m, const char *name, size_t rows, size_t cols)
{
    assert_true(m->n < TENSORS_MAX);
    weight *w = &m->w[m->n++];
    snprintf(w->name, sizeof w->name, "%s", name);
    w->rows = rows;
    w->cols = cols;
    w->v = calloc(rows * (cols ? cols : 1), sizeof(float));
    return w;
}

static void add_random(made *m, const char *stem, const char *part, size_t rows, size_t cols, float middle)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s", stem, part);
    weight *w = add(m, name, rows, cols);
    uint32_t s = 12345 + (uint32_t)m->n;
    for (size_t i = 0; i < rows * (cols ? cols : 1); i++) {
        s = s * 1664525u + 1013904223u;
        w->v[i] = middle + ((float)(s >> 8) / (float)(1 << 24) - 0.5f) * 0.25f;
    }
}

/* The fixture's encoder, bfloat16 in the file. */
static void take_encoder(made *m)
{
    fixture f = {0};
    char path[512];
    uint64_t n;
    snprintf(path, sizeof path, DATA "hf/%s/model.safetensors", m->names->fixture);
    must(file_map_open(&f.map, path, &err));
    memcpy(&n, f.map.data, 8);
    must(json_parse(&f.tensors, (const char *)f.map.data + 8, n, path, &err));
    f.data = f.map.data + 8 + n;
    const char *name;
    json_t *t;
    json_object_foreach(f.tensors, name, t)
    {
        if (strncmp(name, m->names->prefix, strlen(m->names->prefix)) != 0 || strstr(name, "pooler"))
            continue;
        const json_t *shape = json_object_get(t, "shape");
        weight *w = add(m, name, (size_t)json_integer_value(json_array_get(shape, 0)),
                        (size_t)json_integer_value(json_array_get(shape, 1)));
        const uint8_t *from =
            f.data + json_integer_value(json_array_get(json_object_get(t, "data_offsets"), 0));
        for (size_t i = 0; i < w->rows * (w->cols ? w->cols : 1); i++) {
            uint32_t bits = (uint32_t)from[2 * i] << 16 | (uint32_t)from[2 * i + 1] << 24;
            memcpy(&w->v[i], &bits, 4);
        }
    }
    fixture_close(&f);
}

static void write_bytes(const made *m, const char *file, const void *data, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", m->folder, file);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_weights(const made *m)
{
    buf b = {0}, data = {0};
    buf_puts(&b, "{");
    for (size_t i = 0; i < m->n; i++) {
        const weight *w = &m->w[i];
        size_t from = data.len;
        buf_append(&data, w->v, w->rows * (w->cols ? w->cols : 1) * sizeof(float));
        buf_printf(&b, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu", i ? "," : "", w->name, w->rows);
        if (w->cols) buf_printf(&b, ",%zu", w->cols);
        buf_printf(&b, "],\"data_offsets\":[%zu,%zu]}", from, data.len);
    }
    buf_puts(&b, "}");
    while (b.len % 8) buf_putc(&b, ' ');
    uint64_t n = b.len;
    buf file = {0};
    buf_append(&file, &n, 8);
    buf_join(&file, &b);
    buf_join(&file, &data);
    assert_false(file.failed);
    write_bytes(m, "model.safetensors", file.data, file.len);
    buf_done(&b);
    buf_done(&data);
    buf_done(&file);
}

static void copy_file(const made *m, const char *file)
{
    char path[512];
    buf b = {0};
    snprintf(path, sizeof path, DATA "hf/%s/%s", m->names->fixture, file);
    must(file_read(&b, path, 16 << 20, &err));
    write_bytes(m, file, b.data, b.len);
    buf_done(&b);
}

static void write_config(const made *m)
{
    char path[512];
    json_t *c = NULL;
    snprintf(path, sizeof path, DATA "hf/%s/config.json", m->names->fixture);
    must(json_parse_file(&c, path, 1 << 20, &err));
    json_object_set_new(c, "architectures", json_pack("[s]", m->names->architecture));
    json_object_set_new(c, "dtype", json_string("float32"));
    char *text = json_dumps(c, 0);
    write_bytes(m, "config.json", text, strlen(text));
    free(text);
    json_decref(c);
}

static made *make(const head_names *names)
{
    made *m = calloc(1, sizeof *m);
    const char *tmp = getenv("TMPDIR");
    m->names = names;
    snprintf(m->folder, sizeof m->folder, "%s/shoal_fill_XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(m->folder));
    take_encoder(m);
    add_random(m, names->dense, ".weight", WIDTH, WIDTH, 0);
    add_random(m, names->dense, ".bias", WIDTH, 0, 0);
    add_random(m, names->norm, ".weight", WIDTH, 0, 1);
    add_random(m, names->norm, ".bias", WIDTH, 0, 0);
    add_random(m, names->bias, "", VOCAB, 0, 0);
    write_weights(m);
    write_config(m);
    copy_file(m, "tokenizer.json");
    copy_file(m, "tokenizer_config.json");
    return m;
}

static void unmake(made *m)
{
    static const char *const files[] = {"model.safetensors", "config.json", "tokenizer.json",
                                        "tokenizer_config.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", m->folder, files[i]);
        unlink(path);
    }
    rmdir(m->folder);
    for (size_t i = 0; i < m->n; i++) free(m->w[i].v);
    free(m);
}

/* ---- the reference ----------------------------------------------------------------------------------- */

static const float *at(const made *m, const char *prefix, const char *name)
{
    char full[160];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->w[i].name, full) == 0) return m->w[i].v;
    fail_msg("no tensor %s", full);
    return NULL;
}

/* y[rows] = w[rows][cols] x[cols] + b[rows] */
static void linear(const made *m, const char *prefix, const char *name, const double *x, size_t rows,
                   size_t cols, double *y)
{
    char weight_name[128], bias_name[128];
    snprintf(weight_name, sizeof weight_name, "%s.weight", name);
    snprintf(bias_name, sizeof bias_name, "%s.bias", name);
    const float *w = at(m, prefix, weight_name), *b = at(m, prefix, bias_name);
    for (size_t i = 0; i < rows; i++) {
        y[i] = (double)b[i];
        for (size_t k = 0; k < cols; k++) y[i] += (double)w[i * cols + k] * x[k];
    }
}

static void layer_norm(const made *m, const char *prefix, const char *name, double *x)
{
    char weight_name[128], bias_name[128];
    snprintf(weight_name, sizeof weight_name, "%s.weight", name);
    snprintf(bias_name, sizeof bias_name, "%s.bias", name);
    const float *w = at(m, prefix, weight_name), *b = at(m, prefix, bias_name);
    double mean = 0, var = 0;
    for (size_t i = 0; i < WIDTH; i++) mean += x[i] / WIDTH;
    for (size_t i = 0; i < WIDTH; i++) var += (x[i] - mean) * (x[i] - mean) / WIDTH;
    for (size_t i = 0; i < WIDTH; i++) x[i] = (x[i] - mean) / sqrt(var + 1e-12) * (double)w[i] + (double)b[i];
}

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

typedef double grid[TOKENS_MAX][FF];

static void attend(grid q, grid k, grid v, size_t n, size_t t, double *out)
{
    enum { D = WIDTH / HEADS };
    for (size_t h = 0; h < HEADS; h++) {
        double s[TOKENS_MAX], all = 0;
        for (size_t j = 0; j < n; j++) {
            s[j] = 0;
            for (size_t i = 0; i < D; i++) s[j] += q[t][h * D + i] * k[j][h * D + i];
            all += s[j] = exp(s[j] / sqrt(D));
        }
        for (size_t i = 0; i < D; i++) {
            out[h * D + i] = 0;
            for (size_t j = 0; j < n; j++) out[h * D + i] += s[j] / all * v[j][h * D + i];
        }
    }
}

static void run_layer(const made *m, size_t i, grid x, size_t n)
{
    static grid q, k, v;
    char p[96];
    snprintf(p, sizeof p, "%sencoder.layer.%zu.", m->names->prefix, i);
    for (size_t t = 0; t < n; t++) {
        linear(m, p, "attention.self.query", x[t], WIDTH, WIDTH, q[t]);
        linear(m, p, "attention.self.key", x[t], WIDTH, WIDTH, k[t]);
        linear(m, p, "attention.self.value", x[t], WIDTH, WIDTH, v[t]);
    }
    for (size_t t = 0; t < n; t++) {
        double a[FF], y[FF];
        attend(q, k, v, n, t, a);
        linear(m, p, "attention.output.dense", a, WIDTH, WIDTH, y);
        for (size_t d = 0; d < WIDTH; d++) x[t][d] += y[d];
        layer_norm(m, p, "attention.output.LayerNorm", x[t]);
        linear(m, p, "intermediate.dense", x[t], FF, WIDTH, a);
        for (size_t d = 0; d < FF; d++) a[d] = gelu(a[d]);
        linear(m, p, "output.dense", a, WIDTH, FF, y);
        for (size_t d = 0; d < WIDTH; d++) x[t][d] += y[d];
        layer_norm(m, p, "output.LayerNorm", x[t]);
    }
}

/* logits[VOCAB] of token `which` */
static void reference(const made *m, const int32_t *ids, size_t n, size_t which, double *logits)
{
    static grid x;
    const char *p = m->names->prefix;
    const float *words = at(m, p, "embeddings.word_embeddings.weight");
    const float *places = at(m, p, "embeddings.position_embeddings.weight");
    const float *types = at(m, p, "embeddings.token_type_embeddings.weight");
    for (size_t t = 0; t < n; t++) {
        for (size_t d = 0; d < WIDTH; d++)
            x[t][d] = (double)words[(size_t)ids[t] * WIDTH + d] +
                      (double)places[(t + m->names->offset) * WIDTH + d] + (double)types[d];
        layer_norm(m, p, "embeddings.LayerNorm", x[t]);
    }
    for (size_t i = 0; i < LAYERS; i++) run_layer(m, i, x, n);
    double y[WIDTH];
    linear(m, "", m->names->dense, x[which], WIDTH, WIDTH, y);
    for (size_t d = 0; d < WIDTH; d++) y[d] = gelu(y[d]);
    layer_norm(m, "", m->names->norm, y);
    for (size_t w = 0; w < VOCAB; w++) {
        logits[w] = (double)at(m, "", m->names->bias)[w];
        for (size_t d = 0; d < WIDTH; d++) logits[w] += (double)words[w * WIDTH + d] * y[d];
    }
}

/* ---- tests ------------------------------------------------------------------------------------------- */

#define TEXT "Turn on the [MASK] lights, <mask>."

/* ids[n], and the engine's answer for `at` (NULL: all) */
static void ask(engine *e, const mask_slots *g, bool some, vectors *v)
{
    uint64_t id;
    enc_request r = {.ids = g->enc.ids,
                     .type_ids = g->enc.type_ids,
                     .n_ids = g->enc.n,
                     .at = some ? g->at : NULL,
                     .n_at = some ? g->n : 0};
    vectors_init(v);
    must(engine_encode(e, &r, on_vectors, v, &id, &err));
    vectors_wait(v);
    assert_int_equal(v->status, 0);
}

static void check_gaps(const made *m, engine *e, const mask_slots *g)
{
    vectors some, all;
    ask(e, g, true, &some);
    ask(e, g, false, &all);
    assert_int_equal(some.rows, g->n);
    assert_int_equal(all.rows, g->enc.n);
    assert_int_equal(some.cols, VOCAB);
    for (size_t i = 0; i < g->n; i++) {
        double ref[VOCAB], off = 0, norm = 0;
        const float *row = some.values + i * VOCAB;
        reference(m, g->enc.ids, g->enc.n, g->at[i], ref);
        for (size_t w = 0; w < VOCAB; w++) {
            off += ((double)row[w] - ref[w]) * ((double)row[w] - ref[w]);
            norm += ref[w] * ref[w];
        }
        if (!(sqrt(off / norm) <= 1e-5))
            fail_msg("%s: gap %zu is %.2g of its norm away", m->names->fixture, i, sqrt(off / norm));
        assert_memory_equal(row, all.values + g->at[i] * VOCAB, VOCAB * sizeof *row);
    }
    vectors_done(&some);
    vectors_done(&all);
}

static void heads_agree_with_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        made *m = make(&families[i]);
        rig r;
        mask_slots g = {0};
        rig_open(&r, m->folder, (engine_options){0});
        assert_int_equal(model_get_config(r.m)->task, TASK_FILL_MASK);
        assert_string_equal(mask_slots_token(model_tokenizer(r.m)), families[i].mask);
        must(mask_slots_encode(&g, model_tokenizer(r.m), TEXT, &err));
        assert_int_equal(g.n, 2);
        check_gaps(m, r.e, &g);
        mask_slots_done(&g);
        rig_close(&r);
        unmake(m);
    }
}

static void wrong_places_are_refused(void **state)
{
    (void)state;
    made *m = make(&families[0]);
    rig r;
    rig_open(&r, m->folder, (engine_options){0});
    const uint32_t past = 2;
    uint64_t id;
    vectors v;
    vectors_init(&v);
    enc_request q = {.ids = (const int32_t[]){1, 2}, .n_ids = 2, .at = &past, .n_at = 1};
    assert_int_equal(engine_encode(r.e, &q, on_vectors, &v, &id, NULL), SHOAL_EINVALID);
    q.n_at = 0;
    assert_int_equal(engine_encode(r.e, &q, on_vectors, &v, &id, NULL), SHOAL_EINVALID);
    vectors_done(&v);
    rig_close(&r);
    unmake(m);
}

static shoal_model *open_made(const made *m)
{
    shoal_model *s = NULL;
    must(shoal_model_open(&s, m->folder, &(shoal_options){.n_threads = 2}, &err));
    return s;
}

static void words_come_best_first_and_in_their_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        made *m = make(&families[i]);
        shoal_model *s = open_made(m);
        shoal_filling f = {0}, all = {0};
        must(shoal_fill_mask(s, TEXT, 3, &f, &err));
        must(shoal_fill_mask(s, TEXT, 1000, &all, &err));
        assert_int_equal(f.n_gaps, 2);
        assert_int_equal(f.n_top, 3);
        assert_int_equal(all.n_top, VOCAB);
        double sum = 0;
        for (size_t k = 0; k < VOCAB; k++) sum += (double)all.guesses[k].score;
        assert_true(fabs(sum - 1) < 1e-4);
        for (size_t k = 0; k < 6; k++) {
            const shoal_guess *g = &f.guesses[k], *same = &all.guesses[k / 3 * VOCAB + k % 3];
            assert_int_equal(g->id, same->id);
            assert_string_equal(g->sequence, same->sequence);
            if (k % 3) assert_true(g[-1].score >= g->score);
            /* The other gap stays, as the model spells it. */
            assert_non_null(strstr(g->sequence, families[i].mask));
            assert_non_null(strstr(g->sequence, g->token));
            assert_non_null(strstr(g->sequence, k < 3 ? " lights, " : "Turn on the "));
        }
        shoal_filling_done(&f);
        shoal_filling_done(&all);
        shoal_model_close(s);
        unmake(m);
    }
}

static void texts_without_gaps_are_refused(void **state)
{
    (void)state;
    made *m = make(&families[1]);
    shoal_model *s = open_made(m);
    shoal_filling f = {0};
    shoal_err err = {0};
    assert_int_equal(shoal_fill_mask(s, "no gap", 0, &f, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "write <mask>"));
    assert_int_equal(shoal_fill_mask(s, NULL, 0, &f, &err), SHOAL_EINVALID);
    assert_int_equal(shoal_fill_mask(s, "[MASK] \xff", 0, &f, &err), SHOAL_EINVALID);
    assert_int_equal(shoal_fill_mask(s, "[MASK]", 1001, &f, &err), SHOAL_EINVALID);
    buf b = {0};
    for (int i = 0; i <= GAPS_MAX; i++) buf_puts(&b, "<mask> ");
    assert_int_equal(shoal_fill_mask(s, b.data, 0, &f, &err), SHOAL_ELIMIT);
    for (int i = 0; i < 200; i++) buf_puts(&b, "lights ");
    assert_int_equal(shoal_fill_mask(s, b.data + GAPS_MAX * 7, 0, &f, &err), SHOAL_ELIMIT);
    assert_null(f.guesses);
    shoal_embedding e = {0};
    assert_int_equal(shoal_embed(s, "x", &e, &err), SHOAL_EUNSUPPORTED);
    buf_done(&b);
    shoal_model_close(s);
    unmake(m);
}

/* Control tokens that somebody else wrote are text; the gap is not. */
static void only_gaps_are_control_tokens(void **state)
{
    (void)state;
    made *m = make(&families[0]);
    model *mod = NULL;
    must(model_open(&mod, m->folder, NULL, &err));
    const tokenizer *t = model_tokenizer(mod);
    mask_slots g = {0};
    must(mask_slots_encode(&g, t, "[SEP] [MASK][CLS]", &err));
    int32_t sep = tokenizer_find(t, "[SEP]", 5), cls = tokenizer_find(t, "[CLS]", 5);
    size_t n_sep = 0, n_cls = 0;
    for (size_t i = 0; i < g.enc.n; i++) n_sep += g.enc.ids[i] == sep, n_cls += g.enc.ids[i] == cls;
    assert_int_equal(n_sep, 1);
    assert_int_equal(n_cls, 1);
    assert_int_equal(g.n, 1);
    mask_slots_done(&g);
    model_free(mod);
    unmake(m);
}

static void a_word_that_goes_on_is_glued(void **state)
{
    (void)state;
    static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nplay\n##ing\nnow\n";
    made m = {.folder = "/tmp/shoal_glue_XXXXXX"};
    assert_non_null(mkdtemp(m.folder));
    write_bytes(&m, "vocab.txt", vocab, sizeof vocab - 1);
    tokenizer *t = NULL;
    must(tokenizer_from_folder(&t, m.folder, &err));
    mask_slots g = {0};
    buf b = {0};
    must(mask_slots_encode(&g, t, "Play [MASK] now", &err));
    assert_int_equal(mask_slots_write(&g, t, 0, 6, &b), 0);
    buf_puts(&b, "|");
    assert_int_equal(mask_slots_write(&g, t, 0, 7, &b), 0);
    assert_string_equal(b.data, "Playing now|Play now now");
    buf_done(&b);
    mask_slots_done(&g);
    tokenizer_free(t);
    char path[320];
    snprintf(path, sizeof path, "%s/vocab.txt", m.folder);
    unlink(path);
    rmdir(m.folder);
}

static void equal_words_come_by_id(void **state)
{
    (void)state;
    const float scores[] = {0.1f, 0.3f, 0.3f, 0.05f, 0.25f};
    mask_guess best[3];
    mask_slots_best(scores, 5, 3, best);
    assert_int_equal(best[0].id, 1);
    assert_int_equal(best[1].id, 2);
    assert_int_equal(best[2].id, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_agree_with_the_reference),
        cmocka_unit_test(wrong_places_are_refused),
        cmocka_unit_test(words_come_best_first_and_in_their_places),
        cmocka_unit_test(texts_without_gaps_are_refused),
        cmocka_unit_test(only_gaps_are_control_tokens),
        cmocka_unit_test(a_word_that_goes_on_is_glued),
        cmocka_unit_test(equal_words_come_by_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
