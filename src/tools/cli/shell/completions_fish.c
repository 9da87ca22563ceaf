/* completions_fish.c: lines of `complete` for fish. */
#include <string.h>

#include "cli/shell/completions.h"

static const char *const VALUES[] = {[TAKES_ANY] = "",
                                     [TAKES_FILE] = " -F",
                                     [TAKES_FOLDER] = " -a '(__fish_complete_directories)'",
                                     [TAKES_MODEL] = " -F -a '(__shoal_models)'"};

static void put_quoted(FILE *to, const char *s)
{
    fputc('\'', to);
    completion_put_quoted(to, s, "'\\", "\\");
    fputc('\'', to);
}

/* Whether behind this command and verb. */
static void put_where(FILE *to, const cli_command *cmd, const char *verb)
{
    fprintf(to, "complete -c shoal -n '__shoal_is %s%s%s'", cmd->name, *verb ? " " : "", verb);
}

static void put_options(FILE *to, const cli_command *cmd, const cli_option *options, const cli_verb *verbs,
                        const char *verb)
{
    char help[256];
    for (const cli_option *o = options; o->kind != CLI_KIND_END; o++) {
        snprintf(help, sizeof help, "%s", o->help);
        if (*verb && !cli_help_of_verb(o->help, verbs, verb, help, sizeof help)) continue;
        put_where(to, cmd, verb);
        if (o->letter) fprintf(to, " -s %c", o->letter);
        fprintf(to, " -l %s%s%s -d ", o->name, o->arg ? " -r" : "",
                o->arg ? VALUES[completion_of_option(o)] : "");
        put_quoted(to, help);
        fputc('\n', to);
    }
}

/* Fish offers by command and not by place: all that some place takes. */
static void put_places(FILE *to, const cli_command *cmd, const char *verb, const char *usage)
{
    completion_places p = completion_places_of(usage);
    bool has[TAKES_MODEL + 1] = {false};
    for (size_t i = 0; i < p.n; i++) has[p.at[i]] = true;
    for (size_t k = TAKES_ANY + 1; k <= TAKES_MODEL; k++) {
        if (!has[k]) continue;
        put_where(to, cmd, verb);
        fprintf(to, "%s\n", VALUES[k]);
    }
}

static void put_command(void *user, const cli_command *cmd, const cli_option *options, const cli_verb *verbs)
{
    FILE *to = user;
    if (cmd->hidden) return;
    fprintf(to, "complete -c shoal -n __shoal_is_first -a %s -d ", cmd->name);
    put_quoted(to, cmd->summary);
    fputc('\n', to);
    if (!verbs) {
        put_options(to, cmd, options, NULL, "");
        put_places(to, cmd, "", cmd->usage);
    }
    for (const cli_verb *v = verbs; v && v->name; v++) {
        if (!*v->name) continue;
        fprintf(to, "complete -c shoal -n '__shoal_is_verb %s' -a %s -d ", cmd->name, v->name);
        put_quoted(to, v->summary);
        fputc('\n', to);
        put_options(to, cmd, options, verbs, v->name);
        put_places(to, cmd, v->name, v->args);
    }
}

void completions_fish(FILE *to)
{
    fputs(
        "# What fish offers behind shoal; made by: shoal completions fish\n"
        "function __shoal_is_first\n"
        "    set -l words (commandline -opc)\n"
        "    test (count $words) -eq 1; or begin; test (count $words) -eq 2; and test $words[2] = help; end\n"
        "end\n"
        "function __shoal_is # COMMAND [VERB]\n"
        "    set -l words (commandline -opc)\n"
        "    test (count $words) -gt (count $argv); or return 1\n"
        "    set -l last (math 1 + (count $argv))\n"
        "    test \"$words[2..$last]\" = \"$argv\"\n"
        "end\n"
        "function __shoal_is_verb # COMMAND\n"
        "    set -l words (commandline -opc)\n"
        "    test (count $words) -eq 2; and test $words[2] = $argv[1]\n"
        "end\n"
        "function __shoal_models\n"
        "    shoal completions models 2>/dev/null\n"
        "end\n"
        "complete -c shoal -f\n"
        "complete -c shoal -n __shoal_is_first -a help -d 'show what a command can do'\n",
        to);
    for (size_t i = 0; i < cli_count(); i++) cli_tell(cli_at(i), put_command, to);
}
