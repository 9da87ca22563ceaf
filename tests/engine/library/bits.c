/* bits.c: what models answer, each number with all its bits. scripts/neon.sh runs it here and on other processors: the lines
 * are the same.
 *
 *     library_bits TEXT MODEL...
 *
 * On standard error it says which kernels answered. */
#include <stdio.h>
#include <stdlib.h>

#include "library/api_impl.h"

static void put_floats(const char *what, const float *v, size_t n)
{
    printf("%s", what);
    for (size_t i = 0; i < n; i++) printf(" %a", (double)v[i]);
    printf("\n");
}

static int classify(shoal_model *m, const char *text, shoal_err *err)
{
    shoal_classification c;
    int rc = shoal_classify(m, text, NULL, &c, err);
    if (rc != 0) return rc;
    put_floats("logits", c.logits, c.n_labels);
    for (size_t i = 0; i < c.n_labels; i++) printf("%s %a\n", c.labels[i].name, (double)c.labels[i].score);
    shoal_classification_done(&c);
    return 0;
}

static int embed(shoal_model *m, const char *text, shoal_err *err)
{
    shoal_embedding e;
    int rc = shoal_embed(m, text, &e, err);
    if (rc != 0) return rc;
    put_floats("embedding", e.values, e.n);
    shoal_embedding_done(&e);
    return 0;
}

/* A prompt of several tokens, which is a batch to the kernels. */
static int put_logits(shoal_model *m, size_t n_vocab, shoal_err *err)
{
    static const int32_t ids[] = {1, 7, 42, 3, 99, 5, 64, 11, 2, 30, 8, 77};
    enum { N = sizeof ids / sizeof *ids };
    float *logits = malloc(N * n_vocab * sizeof *logits);
    int rc = logits ? engine_logits(m->e, NULL, ids, N, N, logits, err) : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < N; i++) put_floats("logits", logits + i * n_vocab, n_vocab);
    free(logits);
    return rc;
}

/* The chat templates of those that have one run, too. */
static int generate(shoal_model *m, const char *text, const shoal_model_info *info, shoal_err *err)
{
    const shoal_message message = {"user", text};
    const shoal_generate_options options = {.max_tokens = 24, .temperature = 0.8f, .seed = 3};
    shoal_generation g;
    int rc = put_logits(m, info->n_vocab, err);
    if (rc == 0 && info->tool_syntax) rc = shoal_chat(m, &message, 1, &options, NULL, NULL, &g, err);
    if (rc == 0 && !info->tool_syntax) rc = shoal_generate(m, text, &options, NULL, NULL, &g, err);
    if (rc != 0) return rc;
    for (size_t i = 0; i < g.n_ids; i++) printf("%d ", (int)g.ids[i]);
    printf("\n%s\nprobability %a\n", g.text, g.mean_prob);
    shoal_generation_done(&g);
    return 0;
}

static int answer(shoal_model *m, const char *text, shoal_err *err)
{
    shoal_model_info info;
    int rc = shoal_model_describe(m, &info, err);
    if (rc != 0) return rc;
    fprintf(stderr, "kernels: %s\n", info.isa);
    if (strcmp(info.task, "classify") == 0) return classify(m, text, err);
    if (strcmp(info.task, "embed") == 0) return embed(m, text, err);
    return generate(m, text, &info, err);
}

int main(int argc, char **argv)
{
    const shoal_options options = {.n_threads = 2};
    int rc = argc > 2 ? 0 : SHOAL_EINVALID;
    if (rc != 0) fprintf(stderr, "usage: library_bits TEXT MODEL...\n");
    for (int i = 2; i < argc && rc == 0; i++) {
        shoal_model *m = NULL;
        shoal_err err;
        printf("%s\n", argv[i]);
        if ((rc = shoal_model_open(&m, argv[i], &options, &err)) == 0) rc = answer(m, argv[1], &err);
        if (rc != 0) fprintf(stderr, "library_bits: %s\n", err.message);
        shoal_model_close(m);
    }
    return rc == 0 ? 0 : 1;
}
