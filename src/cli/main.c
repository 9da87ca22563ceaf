/* main.c: finds the command and runs it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/json_memory.h"
#include "cli/cli.h"

static int help(FILE *to)
{
    fprintf(to, "shoal " SHOAL_VERSION ": a cluster of small language models as one service\n\n"
                "usage: shoal COMMAND [options] ...\n\n");
    for (size_t i = 0; i < cli_count(); i++)
        if (!cli_at(i)->hidden) fprintf(to, "  %-10s %s\n", cli_at(i)->name, cli_at(i)->summary);
    fprintf(to, "\nshoal help COMMAND shows a command's options; shoal -v the version.\n");
    return to == stdout ? CLI_OK : CLI_USAGE;
}

static int unknown(const char *name)
{
    const char *meant = cli_nearest_command(name);
    fprintf(stderr, "shoal: there is no command \"%s\"%s%s%s; try: shoal --help\n", name,
            meant ? ", did you mean \"" : "", meant ? meant : "", meant ? "\"?" : "");
    return CLI_USAGE;
}

static bool is_one_of(const char *s, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(s, *words) == 0) return true;
    return false;
}

/* shoal help COMMAND is shoal COMMAND --help. */
static int help_on(char *name)
{
    char option[] = "--help", *argv[] = {name, option, NULL};
    const cli_command *cmd = cli_find(name);
    return cmd ? cmd->run(2, argv) : unknown(name);
}

static int dispatch(int argc, char **argv)
{
    static const char *const help_words[] = {"help", "--help", "-h", NULL};
    static const char *const version_words[] = {"--version", "-v", "-V", NULL};
    if (argc < 2) return help(stderr);
    if (is_one_of(argv[1], help_words)) return argc > 2 ? help_on(argv[2]) : help(stdout);
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
