/* config_docs.c: a walk over the rows of config_schema.c, each printed with its help. */
#include "config/config_docs.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 200 };

typedef struct walk {
    buf *out;
    const stage_registry *kinds;
    const char *path; /* the key that is printed; NULL: all */
    bool found;
} walk;

const config_help *config_help_of(const char *path)
{
    for (size_t i = 0; i < config_help_n; i++)
        if (strcmp(config_help_rows[i].path, path) == 0) return &config_help_rows[i];
    return NULL;
}

/* "`a`, `b` or `c`" */
static void put_words(buf *out, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        buf_printf(out, "%s`%s`", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

static void put_kinds(buf *out, const stage_registry *kinds)
{
    const char *names[STAGE_KINDS_MAX + 1] = {NULL};
    if (!kinds) kinds = &PLAIN_STAGES;
    for (size_t i = 0; i < kinds->n_stages; i++) names[i] = kinds->stages[i].kind->name;
    put_words(out, names);
}

static void put_type(buf *out, const stage_registry *kinds, const config_field *f)
{
    static const char *const KINDS[] = {
        [CONFIG_TEXT] = "text", [CONFIG_BOOL] = "true or false",   [CONFIG_SECTION] = "section",
        [CONFIG_JSON] = "JSON", [CONFIG_SHARDS] = "number or map", [CONFIG_PAIRS] = "map of text to text"};
    if (f->words)
        put_words(out, f->words);
    else if (f->kind == CONFIG_STAGE)
        put_kinds(out, kinds);
    else if (f->kind == CONFIG_UINT)
        buf_printf(out, "%llu to %llu", (unsigned long long)f->min, (unsigned long long)f->max);
    else if (f->kind == CONFIG_INT || f->kind == CONFIG_NUMBER)
        buf_printf(out, "%g to %g", f->low, f->high);
    else if (f->kind == CONFIG_LIST)
        buf_puts(out, f->of ? "list" : "list of text");
    else
        buf_puts(out, KINDS[f->kind]);
}

static void put_unset(buf *out, const config_field *f)
{
    if (f->required)
        buf_puts(out, "required");
    else if (f->kind == CONFIG_UINT && f->otherwise)
        buf_printf(out, "%llu", (unsigned long long)f->otherwise);
    else if (f->kind == CONFIG_INT)
        buf_puts(out, "0");
    else if (f->kind == CONFIG_BOOL)
        buf_puts(out, "false");
    else if (f->kind == CONFIG_WORD)
        buf_printf(out, "`%s`", f->words[0]);
    else if (f->otherwise_text && *f->otherwise_text)
        buf_printf(out, "`%s`", f->otherwise_text);
    else
        buf_puts(out, "none");
}

static void config_docs_put_row(const walk *w, const config_field *f, const char *path,
                                const config_help *help)
{
    buf *out = w->out;
    buf_printf(out, "| `%s` | ", path);
    if (help && help->type)
        buf_puts(out, help->type);
    else
        put_type(out, w->kinds, f);
    buf_puts(out, " | ");
    if (help && help->unset)
        buf_puts(out, help->unset);
    else
        put_unset(out, f);
    buf_printf(out, " | %s |\n", help && help->meaning ? help->meaning : f->about);
}

static void put_record(walk *w, const config_record *rec, const char *path, bool inside)
{
    for (const config_field *f = rec->fields; f < rec->fields + rec->n; f++) {
        char at[PATH_BYTES];
        snprintf(at, sizeof at, "%s%s%s", path, *path ? "." : "", f->key);
        const config_help *help = config_help_of(at);
        bool named = w->path && strcmp(at, w->path) == 0, apart = help && help->apart;
        if (named) w->found = true;
        if (inside || (named && !apart)) config_docs_put_row(w, f, at, help);
        if (!f->of || f->kind == CONFIG_PAIRS) continue;
        if (f->kind == CONFIG_LIST) strncat(at, "[]", sizeof at - strlen(at) - 1);
        put_record(w, f->of, at, named || (inside && !apart));
    }
}

int config_docs_put(buf *out, const stage_registry *kinds, const char *const *paths, size_t n_paths,
                    shoal_err *err)
{
    size_t before = out->len;
    buf_puts(out, "| key | type | default | meaning |\n|---|---|---|---|\n");
    if (n_paths == 0) put_record(&(walk){out, kinds, NULL, true}, &config_schema, "", true);
    for (size_t i = 0; i < n_paths; i++) {
        walk w = {out, kinds, paths[i], false};
        put_record(&w, &config_schema, "", false);
        if (w.found) continue;
        out->len = before;
        return err_set(err, SHOAL_ENOTFOUND, "shoal.yaml has no key '%s'", paths[i]);
    }
    return out->failed ? err_nomem(err) : 0;
}
