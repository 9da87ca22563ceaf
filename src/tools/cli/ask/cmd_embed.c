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

static const char *cmd_embed_serve(const task_input *in, json_t *question, shoal_err *err)
{
    return in->text;
}

static int cmd_embed_run(int argc, char **argv)
{
    task_command t = {.cmd = &cmd_embed, .task = "embed", .ask = cmd_embed_ask, .serve = cmd_embed_serve};
    return task_run(&t, argc, argv);
}

const cli_command cmd_embed = {"embed", "turn a text into a vector", "MODEL TEXT|-", cmd_embed_run, false};
