/* cli_route.h: routes without a server: decided in this process, and trained. */
#ifndef CLI_MEASURE_CLI_ROUTE_H
#define CLI_MEASURE_CLI_ROUTE_H

#include "base/buf.h"
#include "config/config.h"

typedef struct cli_route_ask {
    const char *route, *text, *endpoint; /* endpoint NULL: chat_completions */
    const char *latency;                 /* NULL: interactive */
    long long deadline_ms;               /* 0: none */
    double max_cost, max_energy_j;       /* 0: any */
} cli_route_ask;

/* What POST /v1/route of an idle server of this configuration would answer, appended: every model of the file
 * is taken to be there, and the models that know domains are opened here. */
int cli_route_decide(const gateway_config *c, const cli_route_ask *ask, buf *ret_json, shoal_err *err);

/* Make each set's centroids of its examples, and write them where the configuration says. What was made is
 * said on stdout, with how many of the examples are found again when each is left out of its own centroid. */
int cli_route_train(const gateway_config *c, shoal_err *err);

#endif
