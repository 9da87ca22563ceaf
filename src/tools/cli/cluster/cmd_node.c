/* shoal node drain|resume|remove NAME, shoal node rebalance: a person's word about machines of the cluster.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "command/cli_process.h"
#include "trust/identity.h"

static const cli_verb ORDERS[] = {{"drain", "NAME", "let it finish, and take nothing new", 1, 1},
                                  {"resume", "NAME", "let it serve again", 1, 1},
                                  {"remove", "NAME", "put it out of the cluster", 1, 1},
                                  {"rebalance", "", "move replicas from busy machines to idle ones", 0, 0},
                                  CLI_VERB_END};
static const char *const SAID[] = {
    "drains: its streams go on elsewhere, and its replicas leave when others have taken over",
    "may serve again",
    "is out: its certificate is revoked, and it needs a new token to join again",
};

static int cmd_node_say(const char *server, const char *key, size_t order, const char *name, bool json,
                        shoal_err *err)
{
    http_where where;
    buf path = {0}, reply = {0};
    int rc = identity_name_check(name, strlen(name), "node", err);
    if (rc == 0) rc = cli_process_where(&where, server, err);
    buf_printf(&path, "/v1/nodes/%s/%s", name, ORDERS[order].name);
    if (rc == 0 && path.failed) rc = err_nomem(err);
    if (rc == 0) rc = cli_process_post(&where, path.data, key, &reply, err);
    if (rc == 0 && json) cli_printf("%s\n", reply.data);
    if (rc == 0 && !json) cli_printf("%s %s\n", name, SAID[order]);
    buf_done(&path);
    buf_done(&reply);
    return rc;
}

static int rebalance(const char *server, const char *key, bool json, shoal_err *err)
{
    http_where where;
    buf reply = {0};
    int rc = cli_process_where(&where, server, err);
    if (rc == 0) rc = cli_process_post(&where, "/v1/placement/rebalance", key, &reply, err);
    if (rc == 0 && json) cli_printf("%s\n", reply.data);
    if (rc == 0 && !json)
        cli_printf(
            "replicas move one by one from busy machines to idle ones; in the gateway's log event=balanced "
            "says that it is done, and event=rebalance_waits what must end before\n");
    buf_done(&reply);
    return rc;
}

static int cmd_node_run(int argc, char **argv)
{
    const char *server = NULL, *key = getenv("SHOAL_API_KEY");
    bool json = false;
    const cli_option options[] = {
        CLI_SERVER(&server),
        CLI_KEY(&key),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_node, options, ORDERS, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = verb->max == 0 ? rebalance(server, key, json, &err)
                        : cmd_node_say(server, key, (size_t)(verb - ORDERS), a.v[0], json, &err);
    return rc ? cli_fail(&cmd_node, &err) : CLI_OK;
}

const cli_command cmd_node = {"node", "drain, resume or remove a machine of the cluster, or rebalance",
                              "drain|resume|remove NAME|rebalance", cmd_node_run, false};
