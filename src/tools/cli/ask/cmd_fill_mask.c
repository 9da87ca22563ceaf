/* shoal fill-mask MODEL TEXT: the words that may stand where the text says [MASK]. */
#include <string.h>

#include "json/json.h"
#include "cli/commands.h"
#include "cli/ask/task_run.h"

static void put_guess(buf *out, const shoal_guess *g)
{
    buf_puts(out, "{\"token\":");
    json_put_string(out, g->token, strlen(g->token));
    buf_printf(out, ",\"id\":%d,\"score\":%.9g,\"sequence\":", g->id, (double)g->score);
    json_put_string(out, g->sequence, strlen(g->sequence));
    buf_putc(out, '}');
}

static int cmd_fill_mask_ask(shoal_model *m, const task_input *in, buf *out, shoal_err *err)
{
    const long long *top = in->own;
    shoal_filling f = {0};
    int rc = shoal_fill_mask(m, in->text, (size_t)*top, &f, err);
    buf_puts(out, "{\"masks\":[");
    for (size_t i = 0; i < f.n_gaps; i++) {
        buf_puts(out, i ? ",[" : "[");
        for (size_t k = 0; k < f.n_top; k++) {
            if (k) buf_putc(out, ',');
            put_guess(out, &f.guesses[i * f.n_top + k]);
        }
        buf_putc(out, ']');
    }
    buf_puts(out, "]}");
    shoal_filling_done(&f);
    return rc;
}

static int cmd_fill_mask_run(int argc, char **argv)
{
    long long top = 0;
    const cli_option options[] = {CLI_INT('k', "top", "N", 1, 1000, "words for each gap [5]", &top), CLI_END};
    task_command t = {.cmd = &cmd_fill_mask,
                      .task = "fill-mask",
                      .options = options,
                      .own = &top,
                      .ask = cmd_fill_mask_ask};
    return task_run(&t, argc, argv);
}

const cli_command cmd_fill_mask = {"fill-mask", "say which words fit into the gaps of a text", "MODEL TEXT|-",
                                   cmd_fill_mask_run, false};
