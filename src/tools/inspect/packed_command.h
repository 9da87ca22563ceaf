/* packed_command.h: `shoal models packed`: the store of packed weights (model/packed/packed_store.h) shown, and
 * cleared. */
#ifndef INSPECT_PACKED_COMMAND_H
#define INSPECT_PACKED_COMMAND_H

#include "command/cli.h"

typedef struct packed_wish {
    const char *folder; /* NULL: the configuration's */
    const char *config; /* NULL: the usual one, if there is one */
    const char *model;  /* its name, or the beginning of its digest; NULL: of all models */
    bool clear, json;
} packed_wish;

/* Print what is there, or what went; the exit code. CLI_FAILED when there is nothing of that model. */
int packed_command(const cli_command *cmd, const packed_wish *w);

#endif
