/* main.c: finds the command and runs it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "json/json_memory.h"
#include "cli/commands.h"

enum { HELP_COLUMNS = 79, HELP_INDENT = 9 };

/* A word on a row of the terminal, or on the next one. */
static void main_put_word(FILE *to, const char *word, size_t *at)
{
    size_t n = strlen(word);
    if (*at + 1 + n > HELP_COLUMNS) *at = (size_t)fprintf(to, "\n%*s", HELP_INDENT, "") - 1;
    *at += (size_t)fprintf(to, " %s", word);
}

/* What there is, in as many rows as a terminal of 80x24 has. */
static int help(FILE *to)
{
    const char *group, *summary;
    size_t at = 0;
    fprintf(to, "shoal " SHOAL_VERSION ": a cluster of small language models as one service\n\n"
                "usage: shoal COMMAND [options] ...\n");
    for (size_t i = 0; i < cli_count(); i++) {
        if ((group = cli_group_begins(cli_at(i), &summary))) {
            fprintf(to, "%s%-*s %s\n%*s", i ? "" : "\n", HELP_INDENT, group, summary, HELP_INDENT, "");
            at = HELP_INDENT;
        }
        if (!cli_at(i)->hidden) main_put_word(to, cli_at(i)->name, &at);
        if (i + 1 == cli_count() || cli_group_begins(cli_at(i + 1), &summary)) fputc('\n', to);
    }
    fprintf(to, "\nshoal help all has a line for each command, shoal help COMMAND its options.\n"
                "To begin: shoal serve, and elsewhere: shoal process \"turn on the kitchen light\"\n");
    return to == stdout ? CLI_OK : CLI_USAGE;
}

static int help_all(void)
{
    const char *group, *summary;
    for (size_t i = 0; i < cli_count(); i++) {
        if ((group = cli_group_begins(cli_at(i), &summary)))
            printf("%s%s: %s\n", i ? "\n" : "", group, summary);
        if (!cli_at(i)->hidden) printf("  %-11s %s\n", cli_at(i)->name, cli_at(i)->summary);
    }
    return CLI_OK;
}

static int unknown(const char *name)
{
    bool lists = strcmp(name, "ls") == 0 || strcmp(name, "list") == 0; /* other programs' names of it */
    cli_hint hint = cli_did_you_mean(lists ? "ps" : cli_nearest_command(name));
    fprintf(stderr, "shoal: there is no command \"%s\"%s%s try: shoal --help\n", name, hint.text,
            *hint.text ? "" : ";");
    return CLI_USAGE;
}

static bool is_one_of(const char *s, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(s, *words) == 0) return true;
    return false;
}

/* shoal help COMMAND [VERB] is shoal COMMAND [VERB] --help. */
static int help_on(int n, char **words)
{
    char option[] = "--help", *verb[] = {words[0], words[1], option, NULL},
         *argv[] = {words[0], option, NULL};
    if (strcmp(words[0], "help") == 0) return help(stdout);
    if (strcmp(words[0], "all") == 0) return help_all();
    const cli_command *cmd = cli_find(words[0]);
    if (!cmd) return unknown(words[0]);
    return n > 1 ? cmd->run(3, verb) : cmd->run(2, argv);
}

static int dispatch(int argc, char **argv)
{
    static const char *const help_words[] = {"help", "--help", "-h", NULL};
    static const char *const version_words[] = {"--version", "-v", "-V", NULL};
    if (argc < 2) return help(stderr);
    if (is_one_of(argv[1], help_words)) return argc > 2 ? help_on(argc - 2, argv + 2) : help(stdout);
    if (is_one_of(argv[1], version_words)) {
        printf("shoal " SHOAL_VERSION "\n");
        return CLI_OK;
    }
    const cli_command *cmd = cli_find(argv[1]);
    return cmd ? cmd->run(argc - 1, argv + 1) : unknown(argv[1]);
}

int main(int argc, char **argv)
{
    json_memory_guard();
    /* A reader that leaves (shoal ... | head) or a client that hangs up is an error code, not a death. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* so is a file that reaches its limit (ulimit -f) */
    return cli_flush(dispatch(argc, argv));
}
