/* Every family's fixture: opened from its folder and from GGUF, written as GGUF and read back. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "family_facts.h"
#include "model/arch/arch.h"
#include "model/model.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"

static const model_options bare = {.no_tokenizer = true};

static model *open_or_fail(const char *path)
{
    model *m = NULL;
    shoal_err err = {0};
    if (model_open(&m, path, &bare, &err) != 0) print_error("%s\n", err.message);
    return m;
}

/* Call fn for each entry of a folder; returns how many. */
static size_t each(const char *folder, void (*fn)(const char *path, const char *name))
{
    size_t n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[512];
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s%s", folder, e->d_name);
        fn(path, e->d_name);
        n++;
    }
    closedir(d);
    return n;
}

static size_t n_bad;

static void must_open(const char *path, const char *name)
{
    if (strstr(name, "no-pooler")) return;
    model *m = open_or_fail(path);
    if (!m) n_bad++;
    model_free(m);
}

static void every_folder_opens(void **state)
{
    (void)state;
    n_bad = 0;
    assert_true(each(DATA "hf/", must_open) >= 40);
    assert_int_equal(n_bad, 0);
}

static void every_gguf_opens(void **state)
{
    (void)state;
    n_bad = 0;
    assert_true(each(SHOAL_GGUF_DIR "/", must_open) >= 20);
    assert_int_equal(n_bad, 0);
}

/* ---- the right configuration ------------------------------------------------------------------------ */

/* One rotary embedding, "16@10000" or "" for none. */
static void put_rope(buf *b, const char *name, const rope_conf *r)
{
    static const char *const kinds[] = {"", " linear", " dynamic", " llama3", " yarn", " long"};
    if (r->dim > 0)
        buf_printf(b, " %s %zu@%g%s%s", name, r->dim, r->theta, r->interleaved ? " pairs" : "",
                   kinds[r->scaling]);
}

static void put_shape(buf *b, const model_config *c)
{
    static const char *const places[] = {"pre", "post", "sandwich", "output"};
    static const char *const qk[] = {"", " qk-head", " qk-width", " qk-each"};
    static const char *const branches[] = {"", " one-norm", " two-norms"};
    buf_printf(b, " %s/%s%s%s %g", c->norm.kind == NORM_RMS ? "rms" : "ln", places[c->norm.place],
               c->norm.embedding ? "+e" : "", c->norm.final ? "+f" : "", (double)c->norm.eps);
    buf_printf(b, " heads %zu/%zux%zu%s%s %s%s %zu", c->attn.n_head, c->attn.n_head_kv, c->attn.head_dim,
               qk[c->attn.qk_norm], branches[c->branch], activation_name(c->ffn.act),
               c->ffn.gated ? " gated" : "", c->ffn.n_ff);
    if (c->attn.scale > 0) buf_printf(b, " scale %g", (double)c->attn.scale);
    if (c->attn.softcap > 0) buf_printf(b, " cap %g", (double)c->attn.softcap);
    if (c->attn.window) buf_printf(b, " window %zu", c->attn.window);
    if (c->ffn.n_expert)
        buf_printf(b, " experts %zu/%zux%zu%s", c->ffn.n_used, c->ffn.n_expert, c->ffn.n_ff_expert,
                   c->ffn.sum_to_one ? " sum" : "");
}

static void put_rest(buf *b, const model_config *c)
{
    put_rope(b, "rope", &c->pos.rope);
    put_rope(b, "local", &c->pos.local);
    if (c->pos.learned) buf_puts(b, " learned");
    if (c->pos.sinusoidal) buf_puts(b, " sines");
    if (c->pos.buckets.n) buf_printf(b, " buckets %zu<%zu", c->pos.buckets.n, c->pos.buckets.max_distance);
    if (c->pos.relative) buf_printf(b, " relative %zu<%zu", c->pos.relative, c->pos.relative_max);
    for (size_t i = 0; c->layers && i < c->n_layer; i++)
        buf_printf(b, "%s%u", i ? "," : " layers ", c->layers[i]);
    if (c->scale.embd > 0) buf_printf(b, " embd*%g", (double)c->scale.embd);
    if (c->scale.residual > 0) buf_printf(b, " res*%g", (double)c->scale.residual);
    if (c->scale.logits > 0) buf_printf(b, " logits*%g", (double)c->scale.logits);
    if (c->scale.softcap > 0) buf_printf(b, " logits<%g", (double)c->scale.softcap);
    if (c->n_types) buf_printf(b, " types %zu", c->n_types);
    if (c->n_embd_in) buf_printf(b, " in %zu", c->n_embd_in);
    if (c->n_conv) buf_printf(b, " taps %zu", c->n_conv);
    if (c->source.n_layer)
        buf_printf(b, " source %zux%zu heads %zu ff %zu mel %zu start %d", c->source.n_layer, c->source.n_ctx,
                   c->source.n_head, c->source.n_ff, c->source.n_mel, c->start_id);
    if (c->head.dense)
        buf_printf(b, " dense %s%s", activation_name(c->head.act), c->head.norm ? " norm" : "");
    if (c->tied) buf_puts(b, " tied");
}

static void describe(buf *b, const model_config *c)
{
    buf_printf(b, "%s %s %zux%zu ctx %zu", arch_name(c->arch), task_name(c->task), c->n_layer, c->n_embd,
               c->n_ctx);
    if (c->series.n_hidden)
        buf_printf(b, " %s %zu>%zu", c->series.cell == CELL_LSTM ? "lstm" : "gru", c->series.n_input,
                   c->series.n_hidden);
    else
        put_shape(b, c);
    put_rest(b, c);
    if (c->head.n_labels) buf_printf(b, " labels %zu", c->head.n_labels);
}

static void every_folder_means_what_it_says(void **state)
{
    (void)state;
    size_t bad = 0;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        char path[512];
        buf b = {0};
        snprintf(path, sizeof path, DATA "hf/%s", facts[i].name);
        model *m = open_or_fail(path);
        assert_non_null(m);
        describe(&b, model_get_config(m));
        bool same = strcmp(b.data, facts[i].is) == 0;
        if (!same) print_error("%s is\n    %s\nand not\n    %s\n", facts[i].name, b.data, facts[i].is);
        bad += !same;
        buf_done(&b);
        model_free(m);
    }
    assert_int_equal(bad, 0);
}

/* ---- there and back --------------------------------------------------------------------------------- */

static float *values_of(const tensor *t, size_t *ret_n)
{
    *ret_n = t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
    float *v = malloc(*ret_n * sizeof *v + 1);
    assert_non_null(v);
    dtype_to_f32(t->type, t->data, v, *ret_n);
    return v;
}

/* Rows of q and k of families whose GGUF form is pairs stand elsewhere. */
static size_t there(const model_config *c, const rule_hit *h, size_t row)
{
    if (!c->arch->pairs || c->pos.rope.interleaved || !(h->rule->flags & (RULE_ROPE_Q | RULE_ROPE_K)))
        return row;
    return arch_rope_source_row(row, c->attn.head_dim, c->pos.rope.dim);
}

static bool same_tensor(const model_config *c, const tensor *a, const tensor *b)
{
    rule_hit h;
    size_t n, m, cols = a->n_dims > 1 ? a->dims[0] : 1;
    if (!arch_find(c->arch, a->name, &h) || memcmp(a->dims, b->dims, sizeof a->dims) != 0) return false;
    float *x = values_of(a, &n), *y = values_of(b, &m);
    bool same = n == m;
    for (size_t r = 0; same && r < n / cols; r++)
        same = memcmp(x + there(c, &h, r) * cols, y + r * cols, cols * sizeof *x) == 0;
    free(x);
    free(y);
    return same;
}

static size_t compare_tensors(const model *a, const model *b)
{
    size_t bad = 0;
    for (size_t i = 0; i < model_tensor_count(a); i++) {
        const tensor *t = model_tensor_at(a, i), *u = model_tensor(b, t->name);
        if (u && same_tensor(model_get_config(a), t, u)) continue;
        print_error("%s: %s %s\n", model_name(a), t->name, u ? "differs" : "is gone");
        bad++;
    }
    for (size_t i = 0; i < model_tensor_count(b); i++) {
        const char *name = model_tensor_at(b, i)->name;
        if (model_tensor(a, name) || strncmp(name, "rope_f", 6) == 0) continue;
        print_error("%s: %s is new\n", model_name(a), name);
        bad++;
    }
    return bad;
}

static bool near(double a, double b)
{
    double d = a > b ? a - b : b - a, m = a < 0 ? -a : a;
    return d <= 1e-6 * m;
}

static bool same_rope(const rope_conf *a, const rope_conf *b)
{
    bool freqs = a->scaling == ROPE_LLAMA3 && b->scaling == ROPE_PLAIN; /* became a tensor */
    return a->dim == b->dim && near(a->theta, b->theta) && near(a->attn_factor, b->attn_factor) &&
           near(a->beta_fast, b->beta_fast) && near(a->beta_slow, b->beta_slow) &&
           (freqs ||
            (a->scaling == b->scaling && near(a->factor, b->factor) && a->original_ctx == b->original_ctx));
}

static bool same_layers(const model_config *a, const model_config *b)
{
    for (size_t i = 0; i < a->n_layer; i++)
        if (config_layer(a, i) != config_layer(b, i)) return false;
    return true;
}

static bool same_labels(const head_conf *a, const head_conf *b)
{
    for (size_t i = 0; i < a->n_labels; i++)
        if (strcmp(a->labels[i], b->labels[i]) != 0) return false;
    return true;
}

#define FIELD(f)                                                    \
    {                                                               \
#f, offsetof(model_config, f), sizeof((model_config *)0)->f \
    }
static const struct {
    const char *name;
    size_t at, n;
} fields[] = {
    FIELD(task),
    FIELD(n_vocab),
    FIELD(n_ctx),
    FIELD(n_embd),
    FIELD(n_layer),
    FIELD(n_embd_in),
    FIELD(n_layer_file),
    FIELD(norm.kind),
    FIELD(norm.place),
    FIELD(norm.eps),
    FIELD(norm.embedding),
    FIELD(norm.final),
    FIELD(pos.learned),
    FIELD(pos.sinusoidal),
    FIELD(pos.offset),
    FIELD(pos.buckets),
    FIELD(pos.relative),
    FIELD(pos.relative_max),
    FIELD(attn.n_head),
    FIELD(attn.n_head_kv),
    FIELD(attn.head_dim),
    FIELD(attn.scale),
    FIELD(attn.softcap),
    FIELD(attn.window),
    FIELD(attn.qk_norm),
    FIELD(ffn.act),
    FIELD(ffn.gated),
    FIELD(ffn.n_ff),
    FIELD(ffn.n_expert),
    FIELD(ffn.n_used),
    FIELD(ffn.n_ff_expert),
    FIELD(ffn.sum_to_one),
    FIELD(branch),
    FIELD(n_conv),
    FIELD(scale),
    FIELD(tied),
    FIELD(n_types),
    FIELD(head.dense),
    FIELD(head.act),
    FIELD(head.norm),
    FIELD(head.pool),
    FIELD(head.normalize),
    FIELD(head.n_labels),
    FIELD(head.multi_label),
    FIELD(source.n_layer),
    FIELD(source.n_head),
    FIELD(source.n_ff),
    FIELD(source.n_ctx),
    FIELD(source.n_mel),
    FIELD(source.final_norm),
    FIELD(image),
    FIELD(series),
    FIELD(eos_ids),
    FIELD(n_eos),
    FIELD(start_id),
};

static size_t differs(const char *file, const char *field, bool (*excused)(const char *, const char *))
{
    if (excused && excused(file, field)) return 0;
    print_error("%s: %s is another\n", file, field);
    return 1;
}

/* How many fields of the two configurations differ; those that `excused` says may. */
static size_t compare_configs(const model_config *a, const model_config *b, const char *file,
                              bool (*excused)(const char *, const char *))
{
    size_t bad = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *name = fields[i].name;
        bool unused = strcmp(name, "head.act") == 0 && !a->head.dense;
        if (!unused &&
            memcmp((const char *)a + fields[i].at, (const char *)b + fields[i].at, fields[i].n) != 0)
            bad += differs(file, name, excused);
    }
    if (!same_rope(&a->pos.rope, &b->pos.rope)) bad += differs(file, "pos.rope", excused);
    if (!same_rope(&a->pos.local, &b->pos.local)) bad += differs(file, "pos.local", excused);
    if (!same_labels(&a->head, &b->head)) bad += differs(file, "head.labels", excused);
    if (!same_layers(a, b)) bad += differs(file, "layers", excused);
    return bad;
}

static char written[256];

static void must_return(const char *path, const char *name)
{
    shoal_err err = {0};
    quantize_report report;
    if (strstr(name, "no-pooler")) return;
    model *a = NULL, *b = NULL; /* a with its tokenizer, whose ends of text are written, too */
    if (model_open(&a, path, NULL, &err) != 0) print_error("%s\n", err.message);
    if (a && quantize_model(path, written, &(quantize_options){.type = DT_F32}, &report, &err) != 0)
        print_error("%s\n", err.message);
    else if (a)
        b = open_or_fail(written);
    if (!b) n_bad++;
    if (b)
        n_bad +=
            compare_configs(model_get_config(a), model_get_config(b), name, NULL) + compare_tensors(a, b);
    model_free(a);
    model_free(b);
    unlink(written);
}

static void name_written(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(written, sizeof written, "%s/shoal_families_%ld.gguf", tmp ? tmp : "/tmp", (long)getpid());
}

static void must_shrink(const char *path, const char *name)
{
    shoal_err err = {0};
    quantize_report report;
    model *m = NULL;
    if (strstr(name, "no-pooler")) return;
    if (quantize_model(path, written, &(quantize_options){.type = DT_Q8_0}, &report, &err) != 0 ||
        model_open(&m, written, &bare, &err) != 0) {
        print_error("%s\n", err.message);
        n_bad++;
    }
    model_free(m);
    unlink(written);
}

static void every_fixture_can_be_quantised(void **state)
{
    (void)state;
    name_written();
    n_bad = 0;
    each(DATA "hf/", must_shrink);
    each(SHOAL_GGUF_DIR "/", must_shrink);
    assert_int_equal(n_bad, 0);
}

static void every_file_survives_being_written(void **state)
{
    (void)state;
    name_written();
    n_bad = 0;
    each(SHOAL_GGUF_DIR "/", must_return);
    assert_int_equal(n_bad, 0);
}

static void every_folder_survives_being_written(void **state)
{
    (void)state;
    name_written();
    n_bad = 0;
    each(DATA "hf/", must_return);
    assert_int_equal(n_bad, 0);
}

/* ---- the field's own files -------------------------------------------------------------------------- */

/* What the field's converter leaves out, so that such a file is another model than its folder: all of it. */
static const struct {
    const char *file, *field;
} lost[] = {
    {"mistral-sliding.gguf", "attn.window"},
    {"mistral-sliding.gguf", "layers"},
};

static bool is_lost(const char *file, const char *field)
{
    /* Both kinds of file say when text ends in their own way: the fixtures' tokenizers differ from their
     * configs. */
    if (strcmp(field, "eos_ids") == 0 || strcmp(field, "tied") == 0) return true;
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        if (strcmp(lost[i].file, file) == 0 && strcmp(lost[i].field, field) == 0) return true;
    return false;
}

static void must_agree(const char *path, const char *name)
{
    char folder[512];
    snprintf(folder, sizeof folder, DATA "hf/%.*s", (int)(strlen(name) - 5), name);
    if (!file_is_dir(folder)) return;
    model *a = open_or_fail(folder), *b = open_or_fail(path);
    assert_true(a && b);
    n_bad += compare_configs(model_get_config(a), model_get_config(b), name, is_lost);
    n_bad += compare_tensors(a, b);
    model_free(a);
    model_free(b);
}

static void every_gguf_agrees_with_its_folder(void **state)
{
    (void)state;
    n_bad = 0;
    each(SHOAL_GGUF_DIR "/", must_agree);
    assert_int_equal(n_bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_folder_opens),
        cmocka_unit_test(every_gguf_opens),
        cmocka_unit_test(every_folder_means_what_it_says),
        cmocka_unit_test(every_gguf_agrees_with_its_folder),
        cmocka_unit_test(every_folder_survives_being_written),
        cmocka_unit_test(every_file_survives_being_written),
        cmocka_unit_test(every_fixture_can_be_quantised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
