/* trained.h: the trained models' rows of docs/families.md, for tests/engine/infer/test_table.c. Include once.
 *
 * Two engines run the same rows of real text, sound or sensors: one with weights and activations in float32,
 * one as the file is. Of the bundled models the floats are the file's own weights, so what is seen is the
 * int8 activations; home-ears, home-wake and sensor-lstm are float files, which are quantised to Q8_0 for
 * this. SHOAL_ORIGINALS=DIR compares each DIR/NAME, the float16 model as it was trained, with itself in Q8_0
 * instead, or in the type that SHOAL_TYPE names, regrouped to SHOAL_REGROUP (docs/quantisation.md has these
 * tables); robot-parse is seen only there. */
#ifndef TESTS_INFER_TRAINED_H
#define TESTS_INFER_TRAINED_H

#include <unistd.h>

#include "table.h"
#include "tokenizer/tokenizer.h"

typedef enum trained_kind { READS_TEXT, READS_CHAT, READS_SOUND, READS_PLANS, READS_SERIES } trained_kind;

typedef struct trained_model {
    const char *name, *path; /* NULL: an original only */
    trained_kind kind;
    const char *cases; /* in tests/data; READS_SERIES: the tensor of its expected.safetensors */
    const char *what;
} trained_model;

static const trained_model trained_models[] = {
    {"home-intent", "models/home-intent.gguf", READS_TEXT, "home/intent.json", "requests"},
    {"home-slots", "models/home-slots.gguf", READS_TEXT, "home/slots.json", "tokens of requests"},
    {"home-embed", "models/home-embed.gguf", READS_TEXT, "home/embed.json", "requests"},
    {"home-chat-s", "models/home-chat-s.gguf", READS_CHAT, "home/chat-s.json", "tokens of dialogues"},
    {"home-chat-m", "models/home-chat-m.gguf", READS_CHAT, "home/chat-s.json", "tokens of dialogues"},
    {"home-ears", "models/home-ears.gguf", READS_SOUND, "speech", "tokens of speech"},
    {"home-wake", "tests/data/hf/home-wake", READS_SERIES, "features", "frames of speech"},
    {"sensor-lstm", "tests/data/sensors/lstm", READS_SERIES, "x", "windows of sensors"},
    {"robot-parse", NULL, READS_PLANS, "robot-parse/expected.json", "tokens of plans"},
};
#define N_TRAINED  (sizeof trained_models / sizeof *trained_models)
#define CHATS_READ 10 /* the first of 29: 27 million weights take their time under a sanitizer */

typedef struct trained_pair {
    rig exact, int8;
    const char *originals; /* NULL: none */
    score s;
} trained_pair;

/* ---- two runs of the same ------------------------------------------------------------------------------ */

static void trained_encode(trained_pair *p, const enc_request *r)
{
    vectors v[2];
    for (int i = 0; i < 2; i++) {
        vectors_init(&v[i]);
        must(engine_encode(i ? p->exact.e : p->int8.e, r, on_vectors, &v[i], NULL, &err));
        vectors_wait(&v[i]);
        assert_int_equal(v[i].status, 0);
    }
    add_rows(&p->s, v[0].values, v[1].values, v[0].rows, v[0].cols);
    for (int i = 0; i < 2; i++) vectors_done(&v[i]);
}

static void trained_decode(trained_pair *p, const enc_request *source, const int32_t *ids, size_t n)
{
    size_t n_vocab = model_get_config(p->exact.m)->n_vocab;
    float *got = malloc(n * n_vocab * sizeof *got), *ref = malloc(n * n_vocab * sizeof *ref);
    must(engine_logits(p->int8.e, source, ids, n, n, got, &err));
    must(engine_logits(p->exact.e, source, ids, n, n, ref, &err));
    add_rows(&p->s, got, ref, n, n_vocab);
    for (size_t i = 0; i < n; i++)
        p->s.divergence += divergence(got + i * n_vocab, ref + i * n_vocab, n_vocab);
    free(got);
    free(ref);
}

/* ---- what they read ------------------------------------------------------------------------------------ */

/* The ids of c's `first` and of its greedy reply behind them. */
static int32_t *joined_ids(const json_t *c, const char *first, size_t *ret_n)
{
    size_t n, more;
    int32_t *a = int_array(json_object_get(c, first), &n),
            *b = int_array(json_object_get(c, "greedy_ids"), &more);
    a = realloc(a, (n + more + 1) * sizeof *a);
    memcpy(a + n, b, more * sizeof *a);
    free(b);
    *ret_n = n + more;
    return a;
}

static void read_text(trained_pair *p, const char *text)
{
    encoding e = {0};
    must(tokenizer_encode(model_tokenizer(p->exact.m), text, strlen(text), NULL, 0, TOK_ADD_SPECIAL, 0, &e,
                          &err));
    trained_encode(p, &(enc_request){.ids = e.ids, .n_ids = e.n});
    encoding_done(&e);
}

static void read_chat(trained_pair *p, const json_t *c)
{
    size_t n;
    int32_t *ids = joined_ids(c, "prompt_ids", &n);
    trained_decode(p, NULL, ids, n);
    free(ids);
}

/* A plan begins with id 0. */
static void read_plan(trained_pair *p, const json_t *c)
{
    size_t n, n_plan;
    int32_t *ids = int_array(json_object_get(c, "ids"), &n), *plan = joined_ids(c, "start_ids", &n_plan);
    memmove(plan + 1, plan, n_plan * sizeof *plan);
    plan[0] = 0;
    trained_decode(p, &(enc_request){.ids = ids, .n_ids = n}, plan, n_plan + 1);
    free(plan);
    free(ids);
}

/* mel.I: F16 [bands][n]. Six of the cases have them. */
static void read_sound(trained_pair *p, const fixture *f, const json_t *c, size_t i)
{
    size_t bands = model_get_config(p->exact.m)->source.n_mel, n_mel, n;
    char key[32];
    snprintf(key, sizeof key, "mel.%zu", i);
    uint16_t *mel = (uint16_t *)fixture_tensor(f, key, &n_mel);
    size_t n_frames = 2 * n_mel / bands;
    float *frames = malloc(n_frames * bands * sizeof *frames);
    for (size_t k = 0; k < n_frames * bands; k++)
        frames[k % n_frames * bands + k / n_frames] = f16_to_f32(mel[k]);
    int32_t *ids = joined_ids(c, "prompt_ids", &n);
    trained_decode(p, &(enc_request){.features = frames, .n_features = n_frames, .width = bands}, ids, n);
    free(ids);
    free(frames);
    free(mel);
}

static void read_sounds(trained_pair *p)
{
    fixture f;
    size_t i;
    json_t *c;
    fixture_open(&f, "../speech");
    json_array_foreach(json_object_get(f.expected, "cases"), i, c) read_sound(p, &f, c, i);
    fixture_close(&f);
}

/* Of sensors 50 windows; of speech a series, whose answer is that of its last frame: its beginnings. */
static void read_series(trained_pair *p, const trained_model *t)
{
    fixture f;
    bool is_speech = strcmp(t->cases, "features") == 0;
    size_t n, width = model_get_config(p->exact.m)->series.n_input;
    fixture_open(&f, is_speech ? t->name : "../sensors/lstm");
    float *x = fixture_tensor(&f, t->cases, &n);
    size_t frames = n / width, each = is_speech ? 1 : frames / 50;
    for (size_t at = 0; at < frames; at += each)
        trained_encode(p, &(enc_request){.features = is_speech ? x : x + at * width,
                                         .n_features = is_speech ? at + 1 : each,
                                         .width = width});
    free(x);
    fixture_close(&f);
}

static void read_cases(trained_pair *p, const trained_model *t)
{
    char path[512];
    size_t i;
    json_t *root, *c;
    if (t->path)
        snprintf(path, sizeof path, DATA "%s", t->cases);
    else
        snprintf(path, sizeof path, "%s/%s", p->originals, t->cases);
    must(json_parse_file(&root, path, 4 << 20, &err));
    json_array_foreach(json_object_get(root, "cases"), i, c)
    {
        if (t->kind == READS_TEXT) read_text(p, json_string_value(json_object_get(c, "text")));
        if (t->kind == READS_PLANS) read_plan(p, c);
        if (t->kind == READS_CHAT && i < CHATS_READ) read_chat(p, c);
    }
    json_decref(root);
}

/* ---- a model ------------------------------------------------------------------------------------------- */

static void write_as(const char *from, dtype type, char to[])
{
    quantize_report report;
    int fd = mkstemp(to);
    assert_true(fd >= 0);
    close(fd);
    must(quantize_model(from, to, &(quantize_options){.type = type}, &report, &err));
}

/* The type that a variable of the environment names. */
static dtype type_said(const char *variable, dtype otherwise)
{
    dtype t = otherwise;
    const char *name = getenv(variable);
    if (name && !dtype_parse(name, &t)) fail_msg("%s=%s is no type", variable, name);
    return t;
}

static dtype trained_type(void)
{
    return type_said("SHOAL_TYPE", DT_Q8_0);
}

/* out: the row. */
static void add_trained(buf *out, const trained_model *t, const char *originals, score *ret)
{
    char path[512], floats[] = "/tmp/shoal-table-XXXXXX", q8[] = "/tmp/shoal-table-XXXXXX";
    trained_pair p = {.originals = originals};
    if (originals)
        snprintf(path, sizeof path, "%s/%s", originals, t->name);
    else
        snprintf(path, sizeof path, SHOAL_SOURCE_DIR "/%s", t->path);
    bool is_small = !originals && t->kind <= READS_CHAT; /* the bundled file is quantised already */
    write_as(path, DT_F32, floats);
    write_as(path, originals ? trained_type() : DT_Q8_0, q8);
    rig_open(&p.exact, floats, (engine_options){.n_threads = 1});
    bool regroups = originals && t->kind != READS_SERIES; /* their rows are narrower than any group */
    const model_options mo = {.regroup = regroups ? type_said("SHOAL_REGROUP", 0) : 0};
    rig_open_as(&p.int8, is_small ? path : q8, &mo, (engine_options){.n_threads = 1});
    if (t->kind == READS_SERIES)
        read_series(&p, t);
    else if (t->kind == READS_SOUND)
        read_sounds(&p);
    else
        read_cases(&p, t);
    const model_config *c = model_get_config(p.exact.m);
    const char *type = originals                                         ? model_quantisation(p.int8.m)
                       : is_small && strcmp(t->name, "home-chat-m") == 0 ? "Q4_0, Q4_1"
                                                                         : "Q8_0";
    buf_printf(out, "| %s | %s | %s | %zu %s | %.5f | %.5f | %zu, %.1f %% |", t->name, arch_name(c->arch),
               type, p.s.n_rows, t->what, p.s.least, cosine(&p.s), p.s.n_same,
               100.0 * (double)p.s.n_same / (double)p.s.n_rows);
    if (originals) buf_printf(out, " %.5f |", p.s.divergence / (double)p.s.n_rows);
    buf_puts(out, "\n");
    rig_close(&p.exact);
    rig_close(&p.int8);
    unlink(floats);
    unlink(q8);
    *ret = p.s;
}

#endif
