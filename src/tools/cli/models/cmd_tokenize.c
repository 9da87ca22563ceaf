/* shoal tokenize MODEL TEXT: ids and offsets. A folder may hold a tokenizer alone. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "json/json.h"
#include "cli/commands.h"
#include "command/cli_model.h"

static void cmd_tokenize_put_json(buf *out, const encoding *e)
{
    buf_puts(out, "{\"ids\":[");
    for (size_t i = 0; i < e->n; i++) buf_printf(out, "%s%d", i ? "," : "", e->ids[i]);
    buf_puts(out, "],\"offsets\":[");
    for (size_t i = 0; i < e->n; i++)
        buf_printf(out, "%s[%u,%u]", i ? "," : "", e->spans[i].cp_begin, e->spans[i].cp_end);
    buf_puts(out, "],\"byte_offsets\":[");
    for (size_t i = 0; i < e->n; i++)
        buf_printf(out, "%s[%u,%u]", i ? "," : "", e->spans[i].begin, e->spans[i].end);
    buf_puts(out, "],\"type_ids\":[");
    for (size_t i = 0; i < e->n; i++) buf_printf(out, "%s%u", i ? "," : "", e->type_ids[i]);
    buf_puts(out, "]}");
}

static void put_plain(buf *out, const encoding *e, const tokenizer *t)
{
    for (size_t i = 0; i < e->n; i++) {
        size_t len = 0;
        const char *piece = tokenizer_piece(t, e->ids[i], &len);
        buf_printf(out, "%s%7d  %5u-%-5u  %.*s", i ? "\n" : "", e->ids[i], e->spans[i].cp_begin,
                   e->spans[i].cp_end, (int)len, piece ? piece : "");
    }
}

/* What MODEL is read as: a folder needs no model for its tokenizer, so none is loaded. */
typedef struct source {
    cli_engine model;
    tokenizer *own;
    const tokenizer *t;
} source;

static int open_source(source *s, const char *arg, const cli_model_options *mo, shoal_err *err)
{
    if (file_is_dir(arg)) {
        int rc = tokenizer_from_folder(&s->own, arg, err);
        s->t = s->own;
        return rc;
    }
    int rc = cli_engine_open(&s->model, arg, mo, false, err);
    s->t = rc == 0 ? model_tokenizer(s->model.m) : NULL;
    if (rc || s->t) return rc;
    return err_set(err, SHOAL_EUNSUPPORTED, "%s: %s", arg, model_tokenizer_error(s->model.m));
}

static int cmd_tokenize_run(int argc, char **argv)
{
    cli_model_options mo = {0};
    const char *pair = NULL;
    bool json = false, no_special = false;
    const cli_option options[] = {
        CLI_FLAG(0, "no-special", "leave out what the template adds ([CLS], bos)", &no_special),
        CLI_STRING(0, "pair", "TEXT2", "the second text of a pair", &pair),
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_tokenize, options, 2, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    source src = {0};
    encoding e = {0};
    buf text = {0}, out = {0};
    rc = cli_text(&text, a.v[1], &err);
    if (rc == 0) rc = open_source(&src, a.v[0], &mo, &err);
    unsigned flags = TOK_PARSE_SPECIAL | (no_special ? 0 : TOK_ADD_SPECIAL);
    if (rc == 0)
        rc = tokenizer_encode(src.t, text.data, text.len, pair, pair ? strlen(pair) : 0, flags, 0, &e, &err);
    if (rc != 0) {
        rc = cli_fail(&cmd_tokenize, &err);
    } else {
        if (json)
            cmd_tokenize_put_json(&out, &e);
        else
            put_plain(&out, &e, src.t);
        rc = cli_print(&out);
    }
    encoding_done(&e);
    cli_engine_close(&src.model);
    tokenizer_free(src.own);
    buf_done(&text);
    buf_done(&out);
    return rc;
}

const cli_command cmd_tokenize = {"tokenize", "show a text's tokens and where they come from", "MODEL TEXT|-",
                                  cmd_tokenize_run, false};
