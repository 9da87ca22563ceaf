/* docs_add.h: `shoal docs add`: files into a collection, those that have not changed left out. */
#ifndef CLI_ASK_DOCS_ADD_H
#define CLI_ASK_DOCS_ADD_H

#include <stdbool.h>

#include "cli/ask/docs_place.h"
#include "command/cli.h"

typedef struct docs_add_ask {
    const char *collection, *model, *type; /* model and type NULL: as the server and the files' endings say */
    const cli_list *meta;                  /* "KEY=VALUE": metadata of all documents */
    long long chunk_bytes;                 /* 0: as the model wants */
    bool shared;                           /* a new collection is */
    bool json, quiet;
} docs_add_ask;

/* The exit code; says on stdout what came of it, and on stderr how far it is. What one file lacks stops no
 * other. */
int docs_add(const cli_command *cmd, docs_place *at, const docs_add_ask *ask, char *const *paths,
             int n_paths);

#endif
