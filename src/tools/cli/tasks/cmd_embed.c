/* shoal embed MODEL TEXT: a text as a vector. */
#include <stdio.h>

#include "cli/commands.h"
#include "command/cli_model.h"

static int run(int argc, char **argv)
{
    cli_model_options mo = {0};
    bool json = false;
    const cli_option options[] = {
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_embed, options, 2, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    shoal_model *m = NULL;
    shoal_embedding e = {0};
    buf text = {0}, out = {0};
    rc = cli_text(&text, a.v[1], &err);
    if (rc == 0) rc = cli_model_open(&m, a.v[0], &mo, &err);
    if (rc == 0) rc = shoal_embed(m, text.data, &e, &err);
    if (rc != 0) {
        rc = cli_fail(&cmd_embed, &err);
    } else if (json) {
        buf_puts(&out, "{\"embedding\":");
        cli_put_floats(&out, e.values, e.n);
        buf_putc(&out, '}');
        rc = cli_print(&out);
    } else {
        for (size_t i = 0; i < e.n; i++) buf_printf(&out, "%s%.6g", i ? " " : "", (double)e.values[i]);
        rc = cli_print(&out);
    }
    buf_done(&out);
    shoal_embedding_done(&e);
    shoal_model_close(m);
    buf_done(&text);
    return rc;
}

const cli_command cmd_embed = {"embed", "turn a text into a vector", "MODEL TEXT|-", run, false};
