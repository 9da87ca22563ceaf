/* completions_zsh.c: a function for zsh: _arguments for each command and verb, with what help says of each.
 */
#include <string.h>

#include "cli/shell/completions.h"

static const char *const ACTIONS[] = {[TAKES_ANY] = " ",
                                      [TAKES_FILE] = "_files",
                                      [TAKES_FOLDER] = "_files -/",
                                      [TAKES_MODEL] = "_shoal_models"};

/* Inside '...': brackets and colons end what _arguments reads, an apostrophe what the shell does. */
static void completions_zsh_put_text(FILE *to, const char *s, bool colons)
{
    for (; *s; s++) {
        if (*s == '\'')
            fputs("'\\''", to);
        else if (*s == '[' || *s == ']' || *s == '\\' || (colons && *s == ':'))
            fprintf(to, "\\%c", *s);
        else
            fputc(*s, to);
    }
}

static void put_option(FILE *to, const cli_option *o, const char *help)
{
    char letter[16] = "", first[80];
    snprintf(first, sizeof first, "--%s%s", o->name, o->arg ? "=" : "");
    if (o->letter) snprintf(letter, sizeof letter, "-%c%s", o->letter, o->arg ? "+" : "");
    bool repeats = o->kind == CLI_KIND_LIST;
    if (o->letter && !repeats)
        fprintf(to, " \\\n        '(-%c --%s)'{%s,%s}'[", o->letter, o->name, letter, first);
    else if (o->letter)
        fprintf(to, " \\\n        '*'{%s,%s}'[", letter, first);
    else
        fprintf(to, " \\\n        '%s%s[", repeats ? "*" : "", first);
    completions_zsh_put_text(to, help, false);
    fputc(']', to);
    if (o->arg) {
        fputc(':', to);
        completions_zsh_put_text(to, o->arg, true);
        fprintf(to, ":%s", ACTIONS[completion_of_option(o)]);
    }
    fputc('\'', to);
}

static void put_places(FILE *to, const char *usage)
{
    completion_places p = completion_places_of(usage);
    for (size_t i = 0; i < p.n; i++) {
        bool last = i + 1 == p.n && p.goes_on;
        fprintf(to, " \\\n        '%.0zu%s:argument:%s'", last ? 0 : i + 1, last ? "*" : "",
                ACTIONS[p.at[i]]);
    }
}

static void put_arguments(FILE *to, const cli_option *options, const cli_verb *verbs, const char *verb,
                          const char *usage)
{
    char help[256];
    fputs("_arguments -s -S", to);
    for (const cli_option *o = options; o->kind != CLI_KIND_END; o++) {
        if (!*verb)
            put_option(to, o, o->help);
        else if (cli_help_of_verb(o->help, verbs, verb, help, sizeof help))
            put_option(to, o, help);
    }
    fputs(" \\\n        '(-h --help)'{-h,--help}'[show help]'", to);
    put_places(to, usage);
    fputs(" ;;\n", to);
}

static void put_named(FILE *to, const char *name, const char *summary)
{
    fprintf(to, " '%s:", name);
    completions_zsh_put_text(to, summary, false);
    fputc('\'', to);
}

static void put_command(void *user, const cli_command *cmd, const cli_option *options, const cli_verb *verbs)
{
    FILE *to = user;
    if (cmd->hidden) return;
    fprintf(to, "    %s)\n", cmd->name);
    if (!verbs) {
        fputs("        ", to);
        put_arguments(to, options, NULL, "", cmd->usage);
        return;
    }
    fputs("        if (( CURRENT == 2 )); then\n            local -a verbs=(", to);
    for (const cli_verb *v = verbs; v->name; v++)
        if (*v->name) put_named(to, v->name, v->summary);
    fputs(")\n            _describe verb verbs\n            return\n        fi\n"
          "        shift words; (( CURRENT-- ))\n        case $words[1] in\n",
          to);
    for (const cli_verb *v = verbs; v->name; v++) {
        if (!*v->name) continue;
        fprintf(to, "        %s) ", v->name);
        put_arguments(to, options, verbs, v->name, v->args);
    }
    fputs("        esac ;;\n", to);
}

void completions_zsh(FILE *to)
{
    fputs("#compdef shoal\n# What zsh offers behind shoal; made by: shoal completions zsh\n"
          "_shoal_models() {\n"
          "    local -a names=(${(f)\"$(shoal completions models 2>/dev/null)\"})\n"
          "    compadd -a names\n    _files\n}\n"
          "_shoal() {\n    local -a commands=(",
          to);
    for (size_t i = 0; i < cli_count(); i++)
        if (!cli_at(i)->hidden) put_named(to, cli_at(i)->name, cli_at(i)->summary);
    fputs(" 'help:show what a command can do')\n"
          "    if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
          "    shift words; (( CURRENT-- ))\n"
          "    case $words[1] in\n"
          "    help) _describe command commands ;;\n",
          to);
    for (size_t i = 0; i < cli_count(); i++) cli_tell(cli_at(i), put_command, to);
    fputs(
        "    esac\n}\nif [[ $funcstack[1] == _shoal ]]; then _shoal \"$@\"; else compdef _shoal shoal; fi\n",
        to);
}
