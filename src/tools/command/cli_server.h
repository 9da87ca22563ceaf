/* cli_server.h: a server of a command's own: `shoal serve` of a configuration on a free port.
 *
 *     cli_server s;
 *     if (cli_server_start(&s, "shoal.yaml", err) == 0) ... s.url ...
 *     cli_server_stop(&s);
 *
 * It ends with this process. */
#ifndef COMMAND_CLI_SERVER_H
#define COMMAND_CLI_SERVER_H

#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"

typedef struct cli_server {
    pid_t pid; /* 0: none */
    FILE *out; /* what it writes on stdout; open as long as it lives */
    int log;   /* and on stderr, a file without a name */
    char url[128];
} cli_server;

/* Returns when it is ready; otherwise with the last thing that it said. */
int cli_server_start(cli_server *ret, const char *config, shoal_err *err);
void cli_server_stop(cli_server *s); /* waits for its end; accepts a zeroed one */

#endif
