/* shoal run MODEL PROMPT: continue a raw prompt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli_generate.h"
#include "cli/cli_model.h"

static int show(void *user, const char *text, size_t n)
{
    (void)user;
    return fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0 ? 0 : 1;
}

static double per_second(size_t n, double ms)
{
    return ms > 0 ? (double)n * 1e3 / ms : 0;
}

static int print_json(const shoal_generation *g)
{
    buf out = {0};
    buf_puts(&out, "{\"text\":");
    json_put_string(&out, g->text, g->n_bytes);
    buf_puts(&out, ",\"ids\":[");
    for (size_t i = 0; i < g->n_ids; i++) buf_printf(&out, "%s%d", i ? "," : "", g->ids[i]);
    buf_printf(
        &out,
        "],\"finish\":\"%s\",\"mean_prob\":%.6g,\"timings\":{\"prompt_tokens\":%zu,\"prefill_ms\":%.3f,"
        "\"prefill_tokens_per_s\":%.1f,\"generated_tokens\":%zu,\"decode_ms\":%.3f,\"decode_tokens_per_s\":%."
        "1f}}",
        g->stopped ? "stop" : "length", g->mean_prob, g->n_prompt, g->prefill_ms,
        per_second(g->n_prompt, g->prefill_ms), g->n_ids, g->decode_ms, per_second(g->n_ids, g->decode_ms));
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

/* Trained on one form of prompt, such a model says little to another. */
static void hint(const char *model, const char *manifest)
{
    char *use = cli_model_use(model, manifest);
    if (use)
        fprintf(stderr, "%s is for %s; \"shoal chat %s\" gives it the prompt it knows\n", model, use, model);
    free(use);
}

static int run(int argc, char **argv)
{
    cli_model_options mo = {0};
    cli_sampling s = {.max_tokens = 128};
    const char *prompt = NULL;
    bool json = false;
    const cli_option options[] = {
        CLI_STRING('p', "prompt", "TEXT", "what to continue, as the second argument (-: standard input)",
                   &prompt),
        CLI_SAMPLING_OPTIONS(&s),
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_run, options, 1, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    if (!prompt && a.n == 2) prompt = a.v[1];
    shoal_err err = {0};
    shoal_model *m = NULL;
    shoal_generation g = {0};
    shoal_generate_options go;
    buf text = {0};
    rc = prompt ? cli_text(&text, prompt, &err)
                : err_set(&err, SHOAL_EINVALID, "there is no prompt: shoal run MODEL PROMPT");
    if (rc == 0) rc = cli_sampling_resolve(&s, &go, &err);
    if (rc == 0) rc = cli_model_open(&m, a.v[0], &mo, &err);
    if (rc == 0) rc = shoal_generate(m, text.data, &go, json ? NULL : show, NULL, &g, &err);
    if (rc == SHOAL_ECANCELLED && ferror(stdout)) {
        rc = cli_flush(CLI_OK);
    } else if (rc != 0) {
        rc = cli_fail(&cmd_run, &err);
    } else if (json) {
        rc = print_json(&g);
    } else {
        putchar('\n');
        fprintf(stderr, "%zu tokens of prompt in %.1f ms, %zu generated at %.0f tokens/s\n", g.n_prompt,
                g.prefill_ms, g.n_ids, per_second(g.n_ids, g.decode_ms));
        hint(a.v[0], mo.manifest);
        rc = CLI_OK;
    }
    shoal_generation_done(&g);
    shoal_model_close(m);
    free(s.schema);
    buf_done(&text);
    return rc;
}

const cli_command cmd_run = {"run", "continue a prompt", "MODEL PROMPT", run, false};
