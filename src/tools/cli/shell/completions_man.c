/* completions_man.c: the OPTIONS of the manual page, and the page of each command, from the tables. */
#include "cli/shell/completions.h"

/* troff reads \ and a dot or an apostrophe at the start of a line; a plain - is a hyphen. */
static void completions_man_put_text(FILE *to, const char *s)
{
    for (; *s; s++) {
        if (*s == '-')
            fputs("\\-", to);
        else if (*s == '\\')
            fputs("\\e", to);
        else if (*s == '"')
            fputs("\\(dq", to);
        else
            fputc(*s, to);
    }
}

static void put_option(FILE *to, const cli_option *o)
{
    fputs(".TP\n.BR ", to);
    if (o->letter) fprintf(to, "\\-%c \", \" ", o->letter);
    fputs("\\-\\-", to);
    completions_man_put_text(to, o->name);
    if (o->arg) {
        fputs(" \" ", to);
        completions_man_put_text(to, o->arg);
        fputc('"', to);
    }
    fputs("\n\\&", to);
    completions_man_put_text(to, o->help);
    fputs(".\n", to);
}

static void put_command(void *user, const cli_command *cmd, const cli_option *options, const cli_verb *verbs)
{
    FILE *to = user;
    if (cmd->hidden) return;
    fputs(".SS shoal ", to);
    completions_man_put_text(to, cmd->name);
    fputc('\n', to);
    for (const cli_option *o = options; o->kind != CLI_KIND_END; o++) put_option(to, o);
}

void completions_man(FILE *to)
{
    fputs(".SH OPTIONS\n", to);
    for (size_t i = 0; i < cli_count(); i++) cli_tell(cli_at(i), put_command, to);
}

/* ---- the page of one command -------------------------------------------------------------------------- */

static void put_synopsis(FILE *to, const char *name, const char *verb, const char *args, bool first)
{
    if (!first) fputs(".br\n", to);
    fputs(".B shoal ", to);
    completions_man_put_text(to, name);
    if (*verb) {
        fputc(' ', to);
        completions_man_put_text(to, verb);
    }
    fputs("\n[options]", to);
    if (*args) fputc(' ', to);
    completions_man_put_text(to, args);
    fputc('\n', to);
}

static void put_verbs(FILE *to, const cli_verb *verbs)
{
    fputs(".SH VERBS\n", to);
    for (const cli_verb *v = verbs; v->name; v++) {
        if (!*v->name) continue;
        fputs(".TP\n.B \"", to);
        completions_man_put_text(to, v->name);
        if (*v->args) fputc(' ', to);
        completions_man_put_text(to, v->args);
        fputs("\"\n\\&", to);
        completions_man_put_text(to, v->summary);
        fputs(".\n", to);
    }
}

static void put_page(void *user, const cli_command *cmd, const cli_option *options, const cli_verb *verbs)
{
    static const cli_option HELP = CLI_FLAG('h', "help", "show this", NULL);
    FILE *to = user;
    fputs(".TH SHOAL\\-", to);
    for (const char *s = cmd->name; *s; s++) {
        char upper[] = {*s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s, '\0'};
        completions_man_put_text(to, upper);
    }
    fputs(" 1 \"\" \"shoal " SHOAL_VERSION "\" \"User Commands\"\n.SH NAME\nshoal\\-", to);
    completions_man_put_text(to, cmd->name);
    fputs(" \\- ", to);
    completions_man_put_text(to, cmd->summary);
    fputs("\n.SH SYNOPSIS\n", to);
    for (const cli_verb *v = verbs; v && v->name; v++)
        put_synopsis(to, cmd->name, v->name, v->args, v == verbs);
    if (!verbs) put_synopsis(to, cmd->name, "", cmd->usage, true);
    if (verbs) put_verbs(to, verbs);
    fputs(".SH OPTIONS\n", to);
    for (const cli_option *o = options; o->kind != CLI_KIND_END; o++) put_option(to, o);
    put_option(to, &HELP);
    fputs(".SH SEE ALSO\n.BR shoal (1)\ndescribes the command, files, environment and exit statuses.\n", to);
}

void completions_man_page(FILE *to, const cli_command *cmd)
{
    cli_tell(cmd, put_page, to);
}
