/* shoal seq2seq MODEL TEXT: turn one text into another: translate, summarise, parse. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "cli/commands.h"
#include "cli/ask/task_run.h"

typedef struct asked {
    const char *prefix, *penalty;
    float length_penalty; /* the same as a number */
    long long beams, max_tokens;
    bool early;
} asked;

static void cmd_seq2seq_put_json(buf *out, const shoal_generation *g)
{
    buf_puts(out, "{\"text\":");
    json_put_string(out, g->text, g->n_bytes);
    buf_puts(out, ",\"ids\":[");
    for (size_t i = 0; i < g->n_ids; i++) buf_printf(out, "%s%d", i ? "," : "", g->ids[i]);
    buf_printf(out,
               "],\"finish\":\"%s\",\"mean_prob\":%.6g,\"timings\":{\"source_tokens\":%zu,\"encode_ms\":%.3f,"
               "\"generated_tokens\":%zu,\"decode_ms\":%.3f}}",
               g->stopped ? "stop" : "length", g->mean_prob, g->n_prompt, g->prefill_ms, g->n_ids,
               g->decode_ms);
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

static int cmd_seq2seq_check(task_input *in, shoal_err *err)
{
    asked *a = in->own;
    return read_penalty(a->penalty, &a->length_penalty, err);
}

static int cmd_seq2seq_ask(shoal_model *m, const task_input *in, buf *out, shoal_err *err)
{
    const asked *a = in->own;
    shoal_generation g = {0};
    shoal_generate_options o = {.n_beams = (size_t)a->beams,
                                .length_penalty = a->length_penalty,
                                .early_stopping = a->early,
                                .max_tokens = (size_t)a->max_tokens};
    shoal_model_info info;
    buf text = {0};
    buf_printf(&text, "%s%s", a->prefix, in->text ? in->text : "");
    int rc = text.failed ? err_nomem(err) : 0;
    if (rc == 0) rc = shoal_model_describe(m, &info, err);
    if (rc == 0 && strcmp(info.task, "seq2seq") != 0)
        rc =
            err_set(err, SHOAL_EUNSUPPORTED, "%s is a model for \"%s\" and does not turn a text into another",
                    in->args->v[0], info.task);
    if (rc == 0) rc = shoal_generate(m, text.data, &o, NULL, NULL, &g, err);
    if (rc == 0 && in->json) cmd_seq2seq_put_json(out, &g);
    if (rc == 0 && !in->json) buf_puts(out, g.text);
    shoal_generation_done(&g);
    buf_done(&text);
    return rc;
}

static int cmd_seq2seq_run(int argc, char **argv)
{
    asked a = {.prefix = "", .penalty = "1", .beams = 1};
    const cli_option options[] = {
        CLI_STRING('p', "prefix", "TEXT", "words in front of the text that tell the model what to do",
                   &a.prefix),
        CLI_INT('b', "beams", "N", 1, 10, "beams of the search [1: greedy]", &a.beams),
        CLI_STRING(0, "length-penalty", "X", "of beams: over 0 favours long replies [1]", &a.penalty),
        CLI_FLAG(0, "early-stopping", "of beams: end as soon as N replies have ended", &a.early),
        CLI_INT('n', "max-tokens", "N", 0, 1 << 20, "tokens of reply at most [what the model can]",
                &a.max_tokens),
        CLI_END,
    };
    task_command t = {.cmd = &cmd_seq2seq,
                      .options = options,
                      .own = &a,
                      .check = cmd_seq2seq_check,
                      .ask = cmd_seq2seq_ask};
    return task_run(&t, argc, argv);
}

const cli_command cmd_seq2seq = {"seq2seq", "turn a text into another: translate, summarise, parse",
                                 "MODEL TEXT|-", cmd_seq2seq_run, false};
