/* shoal tag MODEL TEXT: entities with their offsets. */
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "cli/commands.h"
#include "command/cli_model.h"

static int print_json(const shoal_tagging *t, const char *text, bool tokens)
{
    buf out = {0};
    buf_puts(&out, "{\"spans\":[");
    for (size_t i = 0; i < t->n_spans; i++) {
        const shoal_span *s = &t->spans[i];
        buf_printf(&out, "%s{\"start\":%zu,\"end\":%zu,\"start_byte\":%zu,\"end_byte\":%zu,\"label\":",
                   i ? "," : "", s->start, s->end, s->start_byte, s->end_byte);
        json_put_string(&out, s->label, strlen(s->label));
        buf_puts(&out, ",\"text\":");
        json_put_string(&out, text + s->start_byte, s->end_byte - s->start_byte);
        buf_printf(&out, ",\"score\":%.9g}", (double)s->score);
    }
    buf_putc(&out, ']');
    if (tokens) {
        buf_puts(&out, ",\"logits\":[");
        for (size_t i = 0; i < t->n_tokens; i++) {
            if (i) buf_putc(&out, ',');
            cli_put_floats(&out, t->logits + i * t->n_labels, t->n_labels);
        }
        buf_putc(&out, ']');
    }
    buf_putc(&out, '}');
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

static int run(int argc, char **argv)
{
    cli_model_options mo = {0};
    bool json = false, tokens = false;
    const cli_option options[] = {
        CLI_FLAG(0, "tokens", "with --json: also each token's logits", &tokens),
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_tag, options, 2, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    shoal_model *m = NULL;
    shoal_tagging t = {0};
    buf text = {0};
    rc = cli_text(&text, a.v[1], &err);
    if (rc == 0) rc = cli_model_open(&m, a.v[0], &mo, &err);
    if (rc == 0) rc = shoal_tag(m, text.data, &t, &err);
    if (rc != 0) {
        rc = cli_fail(&cmd_tag, &err);
    } else if (json || tokens) {
        rc = print_json(&t, text.data, tokens);
    } else {
        for (size_t i = 0; i < t.n_spans; i++) {
            const shoal_span *s = &t.spans[i];
            cli_printf("%zu-%zu  %-20s %.*s  (%.1f %%)\n", s->start, s->end, s->label,
                       (int)(s->end_byte - s->start_byte), text.data + s->start_byte,
                       100.0 * (double)s->score);
        }
        rc = CLI_OK;
    }
    shoal_tagging_done(&t);
    shoal_model_close(m);
    buf_done(&text);
    return rc;
}

const cli_command cmd_tag = {"tag", "find the entities in a text", "MODEL TEXT|-", run, false};
