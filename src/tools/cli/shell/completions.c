/* completions.c: kinds of arguments, and the tables as JSON; see completions.h. */
#include "cli/shell/completions.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "json/json_put.h"

/* ---- kinds -------------------------------------------------------------------------------------------- */

static completion_kind completions_kind_of(const char *s, size_t n)
{
    static const struct {
        const char *word;
        completion_kind kind;
    } words[] = {{"FILE", TAKES_FILE},  {"PATH", TAKES_FILE},     {"IN", TAKES_FILE},    {"OUT", TAKES_FILE},
                 {"DIR", TAKES_FOLDER}, {"FOLDER", TAKES_FOLDER}, {"MODEL", TAKES_MODEL}};
    size_t stem = 0;
    while (stem < n && (isupper((unsigned char)s[stem]) || isdigit((unsigned char)s[stem]))) stem++;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == stem && strncmp(words[i].word, s, stem) == 0) return words[i].kind;
    return stem > 0 && stem + 1 < n && s[stem] == '.' ? TAKES_FILE : TAKES_ANY; /* SHOAL.YAML, PAIRS.jsonl */
}

completion_kind completion_of(const char *word)
{
    for (const char *s = word + strspn(word, "["); *s;) {
        size_t n = strcspn(s, "|]");
        completion_kind k = completions_kind_of(s, n);
        if (k != TAKES_ANY) return k;
        s += n + strspn(s + n, "|]");
    }
    return TAKES_ANY;
}

completion_places completion_places_of(const char *usage)
{
    completion_places p = {0};
    for (const char *s = usage; *s && p.n < COMPLETION_PLACES;) {
        size_t n = strcspn(s, " ");
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)n, s);
        if (strncmp(word, "--", 2) == 0) break; /* an option stands in its place */
        p.at[p.n++] = completion_of(word);
        p.goes_on = strstr(word, "...") != NULL;
        if (strstr(word, "|--")) break;
        s += n + (s[n] == ' ');
    }
    return p;
}

completion_kind completion_of_option(const cli_option *o)
{
    return o->arg ? completion_of(o->arg) : TAKES_ANY;
}

void completion_put_quoted(FILE *to, const char *s, const char *which, const char *escape)
{
    for (; *s; s++) {
        if (strchr(which, *s)) fputs(escape, to);
        fputc(*s, to);
    }
}

/* ---- JSON --------------------------------------------------------------------------------------------- */

typedef struct writer {
    buf out;
    bool first;
} writer;

static void put_verbs(buf *out, const cli_verb *verbs)
{
    buf_puts(out, ",\"verbs\":[");
    for (const cli_verb *v = verbs; v && v->name; v++) {
        json_put_open(out, NULL, '{');
        json_put_text(out, "name", v->name);
        json_put_text(out, "args", v->args);
        json_put_text(out, "summary", v->summary);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

static void put_command(void *user, const cli_command *cmd, const cli_option *options, const cli_verb *verbs)
{
    writer *w = user;
    json_put_open(&w->out, NULL, '{');
    json_put_text(&w->out, "name", cmd->name);
    w->first = false;
    json_put_text(&w->out, "summary", cmd->summary);
    buf_printf(&w->out, ",\"hidden\":%s", cmd->hidden ? "true" : "false");
    json_put_text(&w->out, "usage", cmd->usage);
    put_verbs(&w->out, verbs);
    buf_puts(&w->out, ",\"options\":[");
    for (const cli_option *o = options; o->kind != CLI_KIND_END; o++) {
        char letter[2] = {o->letter, '\0'};
        json_put_open(&w->out, NULL, '{');
        json_put_text(&w->out, "name", o->name);
        json_put_text(&w->out, "letter", letter);
        json_put_text(&w->out, "arg", o->arg ? o->arg : "");
        json_put_text(&w->out, "help", o->help);
        buf_putc(&w->out, '}');
    }
    buf_puts(&w->out, "]}");
}

void completions_json(FILE *to)
{
    writer w = {.first = true};
    for (size_t i = 0; i < cli_count(); i++) cli_tell(cli_at(i), put_command, &w);
    if (!w.out.failed) fprintf(to, "{\"commands\":[%s]}\n", w.out.data);
    buf_done(&w.out);
}
