/* completions_man.c: the OPTIONS of the manual page, from the tables. */
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
