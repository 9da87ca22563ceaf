/* shoal embed MODEL TEXT: a text as a vector. */
#include "cli/commands.h"
#include "cli/ask/task_run.h"

static int cmd_embed_ask(shoal_model *m, const task_input *in, buf *out, shoal_err *err)
{
    shoal_embedding e = {0};
    int rc = shoal_embed(m, in->text, &e, err);
    buf_puts(out, "{\"embedding\":");
    cli_put_floats(out, e.values, e.n);
    buf_putc(out, '}');
    shoal_embedding_done(&e);
    return rc;
}

static int cmd_embed_run(int argc, char **argv)
{
    return task_run(&(task_command){.cmd = &cmd_embed, .task = "embed", .ask = cmd_embed_ask}, argc, argv);
}

const cli_command cmd_embed = {"embed", "turn a text into a vector", "MODEL TEXT|-", cmd_embed_run, false};
