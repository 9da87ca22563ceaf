/* inspect_command.h: what `shoal models inspect` and `shoal show` have in common: a file or folder,
 * described. */
#ifndef INSPECT_INSPECT_COMMAND_H
#define INSPECT_INSPECT_COMMAND_H

#include "command/cli.h"

typedef struct inspect_wish {
    bool quick, json; /* quick: how fast it would be here is not measured */
    bool digest;      /* also its SHA-256, which reads all of it */
} inspect_wish;

/* Print it, or the reason why not as an error of cmd; the exit code. name: a path or of the manifest (NULL:
 * the usual one). CLI_FAILED also for what cannot run here. */
int inspect_command(const cli_command *cmd, const char *name, const char *manifest, inspect_wish w);

#endif
