/* shoal tag MODEL TEXT: entities with their offsets. */
#include <string.h>

#include "json/json.h"
#include "cli/commands.h"
#include "cli/ask/task_run.h"

static void put_spans(buf *out, const shoal_tagging *t, const char *text)
{
    buf_puts(out, "{\"spans\":[");
    for (size_t i = 0; i < t->n_spans; i++) {
        const shoal_span *s = &t->spans[i];
        buf_printf(out, "%s{\"start\":%zu,\"end\":%zu,\"start_byte\":%zu,\"end_byte\":%zu,\"label\":",
                   i ? "," : "", s->start, s->end, s->start_byte, s->end_byte);
        json_put_string(out, s->label, strlen(s->label));
        buf_puts(out, ",\"text\":");
        json_put_string(out, text + s->start_byte, s->end_byte - s->start_byte);
        buf_printf(out, ",\"score\":%.9g}", (double)s->score);
    }
    buf_putc(out, ']');
}

/* Logits are printed as JSON alone. */
static int cmd_tag_check(task_input *in, shoal_err *err)
{
    (void)err;
    in->json |= *(const bool *)in->own;
    return 0;
}

static int cmd_tag_ask(shoal_model *m, const task_input *in, buf *out, shoal_err *err)
{
    const bool *tokens = in->own;
    shoal_tagging t = {0};
    int rc = shoal_tag(m, in->text, &t, err);
    put_spans(out, &t, in->text);
    if (*tokens) buf_puts(out, ",\"logits\":[");
    for (size_t i = 0; *tokens && i < t.n_tokens; i++) {
        if (i) buf_putc(out, ',');
        cli_put_floats(out, t.logits + i * t.n_labels, t.n_labels);
    }
    buf_puts(out, *tokens ? "]}" : "}");
    shoal_tagging_done(&t);
    return rc;
}

static const char *cmd_tag_serve(const task_input *in, json_t *question, shoal_err *err)
{
    const bool *tokens = in->own;
    if (*tokens) err_set(err, SHOAL_EINVALID, "a server tells no logits: --tokens does not go with --server");
    return *tokens ? NULL : in->text;
}

static int cmd_tag_run(int argc, char **argv)
{
    bool tokens = false;
    const cli_option options[] = {CLI_FLAG(0, "tokens", "with --json: also each token's logits", &tokens),
                                  CLI_END};
    task_command t = {.cmd = &cmd_tag,
                      .task = "tag",
                      .options = options,
                      .own = &tokens,
                      .check = cmd_tag_check,
                      .ask = cmd_tag_ask,
                      .serve = cmd_tag_serve};
    return task_run(&t, argc, argv);
}

const cli_command cmd_tag = {"tag", "find the entities in a text", "MODEL TEXT|-", cmd_tag_run, false};
