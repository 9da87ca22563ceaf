/* completions_bash.c: a function for bash, and beside it the tables as functions of one case each. */
#include <string.h>

#include "cli/shell/completions.h"

static const char LETTERS[] = {
    [TAKES_ANY] = '-', [TAKES_FILE] = 'f', [TAKES_FOLDER] = 'd', [TAKES_MODEL] = 'm'};

static const char DRIVER[] =
    "_shoal_offer() { # KIND WORD\n"
    "    local IFS=$'\\n' name quotes\n"
    "    case $1 in\n"
    "    f) COMPREPLY=($(compgen -f -- \"$2\")); compopt -o filenames 2>/dev/null ;;\n"
    "    d) COMPREPLY=($(compgen -d -- \"$2\")); compopt -o filenames 2>/dev/null ;;\n"
    /* Not compgen -W, which expands its words, for names are anybody's; and where readline does not quote
     * what it inserts, bash 3.2, they come quoted. */
    "    m) COMPREPLY=($(compgen -f -- \"$2\"))\n"
    "        compopt -o filenames 2>/dev/null; quotes=$?\n"
    "        while read -r name; do\n"
    "            [[ $name == \"$2\"* ]] || continue\n"
    "            [ \"$quotes\" -eq 0 ] || printf -v name %q \"$name\"\n"
    "            COMPREPLY+=(\"$name\")\n"
    "        done < <(\"${COMP_WORDS[0]}\" completions models 2>/dev/null) ;;\n"
    "    esac\n"
    "}\n"
    "_shoal() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} path=${COMP_WORDS[1]} verbs value= "
    "place=0 i word\n"
    "    COMPREPLY=()\n"
    "    [ \"$cur\" = = ] && cur=\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        COMPREPLY=($(compgen -W \"$_shoal_commands help\" -- \"$cur\"))\n"
    "        return\n"
    "    fi\n"
    "    if [ \"$command\" = help ]; then\n"
    "        [ \"$COMP_CWORD\" -eq 2 ] && verbs=\"$_shoal_commands all\" || verbs=$(_shoal_verbs "
    "\"${COMP_WORDS[2]}\")\n"
    "        COMPREPLY=($(compgen -W \"$verbs\" -- \"$cur\"))\n"
    "        return\n"
    "    fi\n"
    "    verbs=$(_shoal_verbs \"$command\")\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [ \"$word\" = = ]; then continue; fi\n"
    "        if [ -n \"$value\" ]; then value=; continue; fi\n"
    "        case $word in\n"
    "        -*) value=$(_shoal_takes \"$command $word\") ;;\n"
    "        *) if [ -n \"$verbs\" ] && [ \"$path\" = \"$command\" ]; then path=\"$command $word\"; else "
    "place=$((place + 1)); fi ;;\n"
    "        esac\n"
    "    done\n"
    "    if [ -n \"$value\" ]; then\n"
    "        _shoal_offer \"$value\" \"$cur\"\n"
    "    elif [ \"${cur#-}\" != \"$cur\" ]; then\n"
    "        COMPREPLY=($(compgen -W \"$(_shoal_options \"$path\")\" -- \"$cur\"))\n"
    "    elif [ -n \"$verbs\" ] && [ \"$path\" = \"$command\" ]; then\n"
    "        COMPREPLY=($(compgen -W \"$verbs\" -- \"$cur\"))\n"
    "    else\n"
    "        set -- $(_shoal_places \"$path\")\n"
    "        [ $# -gt 0 ] && [ \"${!#}\" = + ] && [ \"$place\" -gt $(($# - 2)) ] && place=$(($# - 2))\n"
    "        [ \"$place\" -lt $# ] && shift \"$place\" && _shoal_offer \"$1\" \"$cur\"\n"
    "    fi\n"
    "}\n"
    "complete -F _shoal shoal\n";

static void put_verbs(void *user, const cli_command *cmd, const cli_option *options, const cli_verb *verbs)
{
    FILE *to = user;
    if (!verbs || cmd->hidden) return;
    fprintf(to, "%s) echo '", cmd->name);
    const char *between = "";
    for (const cli_verb *v = verbs; v->name; v++) {
        if (!*v->name) continue;
        fprintf(to, "%s%s", between, v->name);
        between = " ";
    }
    fputs("' ;;\n", to);
}

/* Of a command, or of its verb. */
static void put_options_of(FILE *to, const cli_command *cmd, const cli_option *options, const cli_verb *verbs,
                           const cli_verb *of)
{
    char help[256];
    fprintf(to, "'%s%s%s') echo '", cmd->name, of ? " " : "", of ? of->name : "");
    for (const cli_option *o = options; o->kind != CLI_KIND_END; o++) {
        if (of && !cli_help_of_verb(o->help, verbs, of->name, help, sizeof help)) continue;
        fprintf(to, "--%s ", o->name);
    }
    fputs("--help' ;;\n", to);
}

static void put_options(void *user, const cli_command *cmd, const cli_option *options, const cli_verb *verbs)
{
    if (cmd->hidden) return;
    put_options_of(user, cmd, options, verbs, NULL);
    for (const cli_verb *v = verbs; v && v->name; v++)
        if (*v->name) put_options_of(user, cmd, options, verbs, v);
}

static void put_takes(void *user, const cli_command *cmd, const cli_option *options, const cli_verb *verbs)
{
    FILE *to = user;
    for (const cli_option *o = options; o->kind != CLI_KIND_END && !cmd->hidden; o++) {
        if (!o->arg) continue;
        if (o->letter) fprintf(to, "'%s -%c' | ", cmd->name, o->letter);
        fprintf(to, "'%s --%s') echo %c ;;\n", cmd->name, o->name, LETTERS[completion_of_option(o)]);
    }
}

static void put_places_of(FILE *to, const char *command, const char *verb, const char *usage)
{
    completion_places p = completion_places_of(usage);
    if (p.n == 0) return;
    fprintf(to, "'%s%s%s') echo '", command, *verb ? " " : "", verb);
    for (size_t i = 0; i < p.n; i++) fprintf(to, "%s%c", i ? " " : "", LETTERS[p.at[i]]);
    fprintf(to, "%s' ;;\n", p.goes_on ? " +" : "");
}

static void put_places(void *user, const cli_command *cmd, const cli_option *options, const cli_verb *verbs)
{
    if (cmd->hidden) return;
    if (!verbs) put_places_of(user, cmd->name, "", cmd->usage);
    for (const cli_verb *v = verbs; v && v->name; v++)
        if (*v->name) put_places_of(user, cmd->name, v->name, v->args);
}

static void put_case(FILE *to, const char *name, cli_take put)
{
    fprintf(to, "%s() { case $1 in\n", name);
    for (size_t i = 0; i < cli_count(); i++) cli_tell(cli_at(i), put, to);
    fputs("esac; }\n", to);
}

void completions_bash(FILE *to)
{
    fputs("# What bash offers behind shoal; made by: shoal completions bash\n_shoal_commands='", to);
    for (size_t i = 0; i < cli_count(); i++)
        if (!cli_at(i)->hidden) fprintf(to, "%s%s", i ? " " : "", cli_at(i)->name);
    fputs("'\n", to);
    put_case(to, "_shoal_verbs", put_verbs);
    put_case(to, "_shoal_options", put_options);
    fputs("# what stands behind an option: f a file, d a folder, m a model, - something else\n", to);
    put_case(to, "_shoal_takes", put_takes);
    fputs("# and at each place of the arguments; +: the last again\n", to);
    put_case(to, "_shoal_places", put_places);
    fputs(DRIVER, to);
}
