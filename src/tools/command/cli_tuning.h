/* cli_tuning.h: a flag for each option that is a worker's own (json/tuning.h): --max-batch N, --kv-type WORD.
 *
 *     cli_tuning flags = {0};
 *     rc = cli_parse(&a, &cmd, cli_tuning_behind(&flags, options), ...);
 *     rc = cli_tuning_read(&flags, &tuning, &err); */
#ifndef COMMAND_CLI_TUNING_H
#define COMMAND_CLI_TUNING_H

#include "command/cli.h"
#include "json/tuning.h"

enum { CLI_TUNING_OPTIONS_MAX = 64 };

typedef struct cli_tuning {
    char names[TUNING_N_ROWS][32];
    char help[TUNING_N_ROWS][160];
    const char *values[TUNING_N_ROWS]; /* NULL: not given */
    cli_option all[CLI_TUNING_OPTIONS_MAX];
} cli_tuning;

/* The command's own options and behind them these; both live as long as *c and the own ones. */
const cli_option *cli_tuning_behind(cli_tuning *c, const cli_option *own);
/* What was given, put over *ret. SHOAL_EINVALID names the flag's value that cannot be. */
int cli_tuning_read(const cli_tuning *c, tuning *ret, shoal_err *err);
/* The same into the body of a request, as it was given: the server refuses what cannot be. 0 or -1. */
int cli_tuning_put_json(const cli_tuning *c, json_t *body);

#endif
