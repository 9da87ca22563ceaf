/* cli_cluster.h: what the commands of clusters share: lengths of time, dates, the CA. */
#ifndef COMMAND_CLI_CLUSTER_H
#define COMMAND_CLI_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "command/cli.h"
#include "trust/ca.h"

#define CLI_STATE(t) \
    CLI_STRING(0, "state", "DIR", "state folder [$SHOAL_STATE, /var/lib/shoal or ~/.local/state/shoal]", t)

/* "90s", "30m", "1h", "7d", or seconds: false when it is none of them. */
bool cli_seconds(const char *text, int64_t *ret);
/* "2026-11-21T02:25:42Z" */
enum { CLI_DATE_SIZE = 32 };
void cli_date(char ret[CLI_DATE_SIZE], int64_t at);

int64_t cli_now(void); /* seconds since 1970 */

/* DIR/ca of that state folder. */
int cli_ca_open(ca **ret, const char *state, shoal_err *err);

#endif
