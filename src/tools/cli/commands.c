/* commands.c: the table of commands, and what is found in it. */
#include <string.h>

#include "cli/commands.h"

static const cli_command *const commands[] = {
#define CLI_ROW(name) &cmd_##name,
    CLI_COMMANDS(CLI_ROW)
#undef CLI_ROW
};

size_t cli_count(void)
{
    return sizeof commands / sizeof *commands;
}

const cli_command *cli_at(size_t i)
{
    return commands[i];
}

const cli_command *cli_find(const char *name)
{
    for (size_t i = 0; i < cli_count(); i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

const char *cli_group_begins(const cli_command *cmd, const char **ret_summary)
{
    static const struct {
        const char *name;
        const cli_command *first;
        const char *summary;
    } groups[] = {
#define CLI_ROW(n, first, summary) {n, &cmd_##first, summary},
        CLI_GROUPS(CLI_ROW)
#undef CLI_ROW
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (groups[i].first != cmd) continue;
        *ret_summary = groups[i].summary;
        return groups[i].name;
    }
    return NULL;
}

static const char *command_name(const void *list, size_t i)
{
    (void)list;
    return cli_at(i)->hidden ? "" : cli_at(i)->name;
}

const char *cli_nearest_command(const char *word)
{
    const char *s = cli_nearest(word, cli_count(), command_name, NULL);
    return s && *s ? s : NULL;
}
