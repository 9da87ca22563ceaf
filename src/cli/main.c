/* main.c: finds the command and runs it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static int help(FILE *to)
{
    fprintf(to, "shoal " SHOAL_VERSION ": a cluster of small language models as one service\n\n"
                "usage: shoal COMMAND [options] ...\n\n");
    for (size_t i = 0; i < cli_count(); i++)
        if (!cli_at(i)->hidden) fprintf(to, "  %-10s %s\n", cli_at(i)->name, cli_at(i)->summary);
    fprintf(to, "\nshoal COMMAND --help shows a command's options.\n");
    return to == stdout ? CLI_OK : CLI_USAGE;
}

int main(int argc, char **argv)
{
    /* A reader that leaves (shoal ... | head) or a client that hangs up is an error code, not a death. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* so is a file that reaches its limit (ulimit -f) */
    if (argc < 2) return help(stderr);
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help(stdout);
    if (strcmp(name, "--version") == 0) {
        printf("shoal " SHOAL_VERSION "\n");
        return CLI_OK;
    }
    const cli_command *cmd = cli_find(name);
    if (!cmd) {
        fprintf(stderr, "shoal: there is no command \"%s\"; try: shoal --help\n", name);
        return CLI_USAGE;
    }
    int rc = cmd->run(argc - 1, argv + 1);
    return cli_flush(rc);
}
