/* shoal seq2seq MODEL TEXT: turn one text into another: translate, summarise, parse. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "cli/commands.h"
#include "command/cli_model.h"

static int print_json(const shoal_generation *g)
{
    buf out = {0};
    buf_puts(&out, "{\"text\":");
    json_put_string(&out, g->text, g->n_bytes);
    buf_puts(&out, ",\"ids\":[");
    for (size_t i = 0; i < g->n_ids; i++) buf_printf(&out, "%s%d", i ? "," : "", g->ids[i]);
    buf_printf(&out,
               "],\"finish\":\"%s\",\"mean_prob\":%.6g,\"timings\":{\"source_tokens\":%zu,\"encode_ms\":%.3f,"
               "\"generated_tokens\":%zu,\"decode_ms\":%.3f}}",
               g->stopped ? "stop" : "length", g->mean_prob, g->n_prompt, g->prefill_ms, g->n_ids,
               g->decode_ms);
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

static int read_penalty(const char *text, float *ret, shoal_err *err)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= -10 && v <= 10))
        return err_set(err, SHOAL_EINVALID, "--length-penalty wants a number from -10 to 10, not \"%s\"",
                       text);
    *ret = (float)v;
    return 0;
}

/* The model's own words for the job ("summarize: ") in front of the text. */
static int read_text(buf *ret, const char *prefix, const char *arg, shoal_err *err)
{
    buf text = {0};
    int rc = cli_text(&text, arg, err);
    if (rc == 0) buf_printf(ret, "%s%s", prefix, text.data ? text.data : "");
    buf_done(&text);
    return rc == 0 && ret->failed ? err_nomem(err) : rc;
}

static int run(int argc, char **argv)
{
    cli_model_options mo = {0};
    const char *prefix = "", *penalty = "1";
    long long beams = 1, max_tokens = 0;
    bool early = false, json = false;
    const cli_option options[] = {
        CLI_STRING('p', "prefix", "TEXT", "words in front of the text that tell the model what to do",
                   &prefix),
        CLI_INT('b', "beams", "N", 1, 10, "beams of the search [1: greedy]", &beams),
        CLI_STRING(0, "length-penalty", "X", "of beams: over 0 favours long replies [1]", &penalty),
        CLI_FLAG(0, "early-stopping", "of beams: end as soon as N replies have ended", &early),
        CLI_INT('n', "max-tokens", "N", 0, 1 << 20, "tokens of reply at most [what the model can]",
                &max_tokens),
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_seq2seq, options, 2, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    shoal_model *m = NULL;
    shoal_generation g = {0};
    shoal_generate_options o = {
        .n_beams = (size_t)beams, .early_stopping = early, .max_tokens = (size_t)max_tokens};
    shoal_model_info info;
    buf text = {0};
    rc = read_penalty(penalty, &o.length_penalty, &err);
    if (rc == 0) rc = read_text(&text, prefix, a.v[1], &err);
    if (rc == 0) rc = cli_model_open(&m, a.v[0], &mo, &err);
    if (rc == 0) rc = shoal_model_describe(m, &info, &err);
    if (rc == 0 && strcmp(info.task, "seq2seq") != 0)
        rc = err_set(&err, SHOAL_EUNSUPPORTED,
                     "%s is a model for \"%s\" and does not turn a text into another", a.v[0], info.task);
    if (rc == 0) rc = shoal_generate(m, text.data, &o, NULL, NULL, &g, &err);
    if (rc != 0) {
        rc = cli_fail(&cmd_seq2seq, &err);
    } else if (json) {
        rc = print_json(&g);
    } else {
        buf out = {0};
        buf_puts(&out, g.text);
        rc = cli_print(&out);
        buf_done(&out);
    }
    shoal_generation_done(&g);
    shoal_model_close(m);
    buf_done(&text);
    return rc;
}

const cli_command cmd_seq2seq = {"seq2seq", "turn a text into another: translate, summarise, parse",
                                 "MODEL TEXT|-", run, false};
