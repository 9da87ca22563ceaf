/* shoal fill-mask MODEL TEXT: the words that may stand where the text says [MASK]. */
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "cli/commands.h"
#include "command/cli_model.h"

static void put_guess(buf *out, const shoal_guess *g)
{
    buf_puts(out, "{\"token\":");
    json_put_string(out, g->token, strlen(g->token));
    buf_printf(out, ",\"id\":%d,\"score\":%.9g,\"sequence\":", g->id, (double)g->score);
    json_put_string(out, g->sequence, strlen(g->sequence));
    buf_putc(out, '}');
}

static void put_json(buf *out, const shoal_filling *f)
{
    buf_puts(out, "{\"masks\":[");
    for (size_t i = 0; i < f->n_gaps; i++) {
        buf_puts(out, i ? ",[" : "[");
        for (size_t k = 0; k < f->n_top; k++) {
            if (k) buf_putc(out, ',');
            put_guess(out, &f->guesses[i * f->n_top + k]);
        }
        buf_putc(out, ']');
    }
    buf_puts(out, "]}");
}

static void put_lines(buf *out, const shoal_filling *f)
{
    for (size_t i = 0; i < f->n_gaps * f->n_top; i++) {
        const shoal_guess *g = &f->guesses[i];
        const char *before = i == 0 ? "" : i % f->n_top ? "\n" : "\n\n";
        buf_printf(out, "%s%6.2f %%  %s", before, 100.0 * (double)g->score, g->sequence);
    }
}

static int run(int argc, char **argv)
{
    cli_model_options mo = {0};
    long long top = 0;
    bool json = false;
    const cli_option options[] = {
        CLI_INT('k', "top", "N", 1, 1000, "words for each gap [5]", &top),
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_fill_mask, options, 2, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    shoal_model *m = NULL;
    shoal_filling f = {0};
    buf text = {0}, out = {0};
    rc = cli_text(&text, a.v[1], &err);
    if (rc == 0) rc = cli_model_open(&m, a.v[0], &mo, &err);
    if (rc == 0) rc = shoal_fill_mask(m, text.data, (size_t)top, &f, &err);
    if (rc != 0) {
        rc = cli_fail(&cmd_fill_mask, &err);
    } else {
        (json ? put_json : put_lines)(&out, &f);
        rc = cli_print(&out);
    }
    buf_done(&out);
    shoal_filling_done(&f);
    shoal_model_close(m);
    buf_done(&text);
    return rc;
}

const cli_command cmd_fill_mask = {"fill-mask", "say which words fit into the gaps of a text", "MODEL TEXT|-",
                                   run, false};
