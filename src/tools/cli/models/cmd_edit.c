/* shoal edit IN OUT: a GGUF file with another chat template or other texts in its metadata. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/json_put.h"
#include "base/sha256.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "model/model.h"

enum { SETTINGS_MAX = 64 };

/* "KEY=TEXT" is cut at the first '='. */
static int parse_set(char *arg, gguf_setting *ret, shoal_err *err)
{
    char *equals = strchr(arg, '=');
    if (!equals || equals == arg) return err_set(err, SHOAL_EINVALID, "--set \"%.64s\" is not KEY=TEXT", arg);
    *equals = '\0';
    *ret = (gguf_setting){.key = arg, .value = equals + 1};
    return 0;
}

/* A template is compiled before it is written: a model that cannot chat helps nobody. */
static int read_template(const char *file, buf *text, gguf_setting *ret, shoal_err *err)
{
    chat_template *t = NULL;
    int rc = file_read(text, file, 1 << 20, err);
    if (rc == 0) rc = chat_template_compile(&t, text->data ? text->data : "", text->len, file, err);
    chat_template_free(t);
    if (rc == 0 && text->len != (text->data ? strlen(text->data) : 0))
        rc = err_set(err, SHOAL_EFORMAT, "%s: holds a NUL character", file);
    *ret = (gguf_setting){.key = "tokenizer.chat_template", .value = text->data ? text->data : ""};
    return rc;
}

static int edit(const char *in, const char *out, const char *template_file, const cli_list *sets,
                sha256_digest *ret, shoal_err *err)
{
    gguf_setting all[SETTINGS_MAX];
    buf text = {0};
    char *copies[SETTINGS_MAX] = {0};
    size_t n = 0;
    int rc = 0;
    if (sets->n >= SETTINGS_MAX)
        return err_set(err, SHOAL_EINVALID, "more than %d settings", SETTINGS_MAX - 1);
    if (template_file) rc = read_template(template_file, &text, &all[n++], err);
    for (size_t i = 0; rc == 0 && i < sets->n; i++) {
        copies[i] = strdup(sets->v[i]);
        rc = copies[i] ? parse_set(copies[i], &all[n++], err) : err_nomem(err);
    }
    if (rc == 0) rc = gguf_edit_file(in, out, all, n, ret, err);
    for (size_t i = 0; i < SETTINGS_MAX; i++) free(copies[i]);
    buf_done(&text);
    return rc;
}

static int cmd_edit_run(int argc, char **argv)
{
    const char *template_file = NULL;
    cli_list sets = {0};
    bool json = false;
    const cli_option options[] = {
        CLI_STRING(0, "chat-template", "FILE", "the Jinja template to write", &template_file),
        CLI_LIST(0, "set", "KEY=TEXT", "a text of the metadata (general.version=2; may repeat)", &sets),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_edit, options, 2, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    sha256_digest digest;
    if (edit(a.v[0], a.v[1], template_file, &sets, &digest, &err) != 0) return cli_fail(&cmd_edit, &err);
    char hex[65];
    sha256_hex(&digest, hex);
    if (!json) {
        printf("%s: sha256 %s\n", a.v[1], hex);
        return CLI_OK;
    }
    buf out = {0};
    buf_putc(&out, '{');
    json_put_text(&out, "file", a.v[1]);
    buf_printf(&out, ",\"sha256\":\"%s\"}", hex);
    rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

const cli_command cmd_edit = {"edit", "write a GGUF again with another chat template or other metadata",
                              "IN OUT", cmd_edit_run, false};
