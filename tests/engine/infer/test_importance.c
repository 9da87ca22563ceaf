/* Importance: what a text's run leaves on the matrices, and what the quantiser makes of it. */
#include "helper.h"

#include <math.h>
#include <unistd.h>

#define BASE DATA "quant/base-f32.gguf"

static importance *measured(void)
{
    importance *imp;
    model *m;
    engine *e;
    int32_t ids[64];
    must(importance_new(&imp, &err));
    must(model_open(&m, BASE, &(model_options){.no_tokenizer = true}, &err));
    model_measure(m, imp);
    must(engine_new(&e, m, &(engine_options){.n_threads = 2}, &err));
    float *row = malloc(model_get_config(m)->n_vocab * sizeof *row);
    for (int i = 0; i < 64; i++) ids[i] = 1 + i * 37 % 600;
    must(engine_logits(e, NULL, ids, 64, 1, row, &err));
    free(row);
    engine_free(e);
    model_free(m);
    return imp;
}

static void every_multiplied_matrix_is_measured(void **state)
{
    importance *imp = measured();
    model *m;
    size_t n_matrices = 0;
    must(model_open(&m, BASE, &(model_options){.no_tokenizer = true}, &err));
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const tensor *t = model_tensor_at(m, i);
        if (t->n_dims != 2) continue;
        n_matrices++;
        float *w = malloc(t->dims[0] * sizeof *w);
        double mean = 0;
        bool known = importance_get(imp, t->name, t->dims[0], w);
        if (known == (strcmp(t->name, "token_embd.weight") == 0)) fail_msg("%s: %d", t->name, known);
        for (size_t c = 0; known && c < t->dims[0]; c++) {
            assert_true(w[c] > 0 && isfinite(w[c]));
            mean += (double)w[c] / (double)t->dims[0];
        }
        if (known) assert_true(fabs(mean - 1) < 0.01);
        free(w);
    }
    assert_true(importance_count(imp) >= n_matrices - 1);
    /* q and k read the same rows */
    size_t n = model_tensor(m, "blk.0.attn_q.weight")->dims[0];
    float *q = malloc(n * sizeof *q), *k = malloc(n * sizeof *k);
    assert_true(importance_get(imp, "blk.0.attn_q.weight", n, q));
    assert_true(importance_get(imp, "blk.0.attn_k.weight", n, k));
    assert_memory_equal(q, k, n * sizeof *q);
    assert_false(importance_get(imp, "blk.0.attn_q.weight", n - 1, q));
    assert_false(importance_get(imp, "blk.99.attn_q.weight", n, q));
    free(q);
    free(k);
    model_free(m);
    importance_free(imp);
}

/* The squared error of ffn_down, each column by its importance. */
static double weighed_error(const char *path, const importance *imp)
{
    model *a, *b;
    must(model_open(&a, path, &(model_options){.no_tokenizer = true}, &err));
    must(model_open(&b, BASE, &(model_options){.no_tokenizer = true}, &err));
    const tensor *x = model_tensor(a, "blk.0.ffn_down.weight"), *y = model_tensor(b, "blk.0.ffn_down.weight");
    size_t cols = x->dims[0], n = cols * x->dims[1];
    float *w = malloc(cols * sizeof *w), *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v);
    assert_true(importance_get(imp, x->name, cols, w));
    dtype_to_f32(x->type, x->data, u, n);
    dtype_to_f32(y->type, y->data, v, n);
    double e = 0;
    for (size_t i = 0; i < n; i++) e += (double)w[i % cols] * (double)(u[i] - v[i]) * (double)(u[i] - v[i]);
    free(w);
    free(u);
    free(v);
    model_free(a);
    model_free(b);
    return e;
}

static void what_matters_is_kept_better(void **state)
{
    char even[] = "/tmp/shoal-even-XXXXXX", spared[] = "/tmp/shoal-spared-XXXXXX";
    importance *imp = measured();
    quantize_report r;
    close(mkstemp(even));
    close(mkstemp(spared));
    must(quantize_model(BASE, even, &(quantize_options){.type = DT_Q4_K}, &r, &err));
    must(quantize_model(BASE, spared, &(quantize_options){.type = DT_Q4_K, .importance = imp}, &r, &err));
    double a = weighed_error(even, imp), b = weighed_error(spared, imp);
    print_message("even %g, spared %g\n", a, b);
    assert_true(b < 0.97 * a);
    unlink(even);
    unlink(spared);
    importance_free(imp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_multiplied_matrix_is_measured),
        cmocka_unit_test(what_matters_is_kept_better),
    };
    return cmocka_run_group_tests_name("infer_importance", tests, NULL, NULL);
}
