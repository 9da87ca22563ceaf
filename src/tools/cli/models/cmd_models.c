/* shoal models: what the manifest offers, and whether the files are the pinned ones. shoal models inspect
 * MODEL: what a file or folder is. shoal models packed: the store of packed weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/json.h"
#include "base/sha256.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "inspect/inspect_command.h"
#include "inspect/packed_command.h"

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

/* "ok", "missing" or "wrong digest"; NULL when that could not be found out. */
static const char *check_file(const manifest_entry *e, const char *manifest_path, size_t *ret_bytes,
                              shoal_err *err)
{
    char *path = NULL, *sha256 = NULL;
    const char *state = "missing";
    file_map map = {0};
    *ret_bytes = 0;
    int rc = manifest_resolve(e->name, manifest_path, &path, &sha256, err);
    if (rc == 0) rc = file_map_open(&map, path, err);
    if (rc == 0) {
        sha256_digest d;
        char hex[65];
        sha256_of(map.data, map.len, &d);
        sha256_hex(&d, hex);
        *ret_bytes = map.len;
        state = sha256 && strcmp(hex, sha256) != 0 ? "wrong digest" : "ok";
    }
    file_map_close(&map);
    free(path);
    free(sha256);
    return rc == SHOAL_ENOMEM ? NULL : state;
}

static void cmd_models_put_json(buf *out, const manifest_entry *e, const char *state, size_t bytes)
{
    const char *const fields[][2] = {{"name", e->name},
                                     {"task", e->task},
                                     {"file", e->file},
                                     {"sha256", e->sha256},
                                     {"version", e->version},
                                     {"quantisation", e->quantisation},
                                     {"description", e->description},
                                     {"use", e->use},
                                     {"state", state}};
    buf_putc(out, '{');
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        buf_printf(out, "\"%s\":", fields[i][0]);
        json_put_string(out, or_empty(fields[i][1]), strlen(or_empty(fields[i][1])));
        buf_putc(out, ',');
    }
    buf_printf(out, "\"bytes\":%zu", bytes);
    if (!isnan(e->quality)) {
        buf_puts(out, ",\"quality\":{");
        json_put_string(out, or_empty(e->quality_name), strlen(or_empty(e->quality_name)));
        buf_printf(out, ":%.9g}", e->quality);
    }
    buf_putc(out, '}');
}

/* In 80 columns: what it is in one row, what it is for and how good in the next. */
static void cmd_models_put_rows(buf *out, const manifest_entry *e, const char *state, size_t bytes)
{
    buf_printf(out, "\n%-14s %-9s %-6s %-8s %10zu  %s", e->name, or_empty(e->task), or_empty(e->quantisation),
               or_empty(e->version), bytes, state);
    if (*or_empty(e->use)) buf_printf(out, "\n    for: %s", e->use);
    if (!isnan(e->quality)) buf_printf(out, "\n    %s %.3f", or_empty(e->quality_name), e->quality);
}

static const cli_verb VERBS[] = {
    {"", "", "list what the manifest offers, and whether the files are those", 0, 0},
    {"packed", "[MODEL]", "show the packed weights that are kept for the next start (--clear: remove them)",
     0, 1},
    {"inspect", "MODEL", "say what a file or folder is, and how fast it would be here", 1, 1},
    CLI_VERB_END};

static int cmd_models_run(int argc, char **argv)
{
    const char *path = NULL;
    bool json = false, quick = false;
    packed_wish packed = {0};
    const cli_option options[] = {
        CLI_STRING(0, "manifest", "FILE", "models.json to read [models/models.json]", &path),
        CLI_FLAG('q', "quick", "inspect: do not measure how fast it would be", &quick),
        CLI_FLAG(0, "clear", "packed: remove them, of MODEL or all", &packed.clear),
        CLI_STRING(0, "folder", "DIR", "packed: the folder [packed.folder]", &packed.folder),
        CLI_STRING('c', "config", "FILE", "packed: whose packed.folder it is [./shoal.yaml, ...]",
                   &packed.config),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_models, options, VERBS, argc, argv);
    if (rc != CLI_GO) return rc;
    if (strcmp(verb->name, "packed") == 0) {
        packed.model = a.n ? a.v[0] : NULL;
        packed.json = json;
        return packed_command(&cmd_models, &packed);
    }
    if (*verb->name)
        return inspect_command(&cmd_models, a.v[0], path, (inspect_wish){.quick = quick, .json = json});
    shoal_err err = {0};
    manifest *m = NULL;
    char *found = NULL;
    buf out = {0};
    rc = path ? 0 : manifest_locate(&found, &err);
    if (!path) path = found;
    if (rc == 0) rc = manifest_open(&m, path, &err);
    if (rc != 0) {
        free(found);
        return cli_fail(&cmd_models, &err);
    }
    bool all_ok = true;
    if (json)
        buf_puts(&out, "{\"models\":[");
    else
        buf_printf(&out, "%-14s %-9s %-6s %-8s %10s  %s", "NAME", "TASK", "TYPE", "VERSION", "BYTES",
                   "STATE");
    for (size_t i = 0; i < manifest_count(m); i++) {
        const manifest_entry *e = manifest_at(m, i);
        size_t bytes;
        const char *state = check_file(e, path, &bytes, &err);
        if (!state) {
            rc = cli_fail(&cmd_models, &err);
            break;
        }
        all_ok &= strcmp(state, "ok") == 0;
        if (json && i) buf_putc(&out, ',');
        if (json)
            cmd_models_put_json(&out, e, state, bytes);
        else
            cmd_models_put_rows(&out, e, state, bytes);
    }
    if (json) buf_puts(&out, "]}");
    if (rc == CLI_OK) rc = cli_print(&out);
    buf_done(&out);
    manifest_free(m);
    free(found);
    return rc == CLI_OK && !all_ok ? CLI_FAILED : rc;
}

const cli_command cmd_models = {"models", "list models and check their digests, or inspect one",
                                "[inspect MODEL | packed [MODEL]]", cmd_models_run, false};
