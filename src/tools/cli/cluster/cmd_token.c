/* shoal token create | list | revoke ID: what lets a machine join, once. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "command/cli_cluster.h"
#include "command/cli_model.h"
#include "json/json_put.h"

static const cli_verb verbs[] = {{"create", "", "make one that lets one machine join once", 0, 0},
                                 {"list", "", "list them, without their secrets", 0, 0},
                                 {"revoke", "ID", "make one worthless", 1, 1},
                                 CLI_VERB_END};

typedef struct asked {
    const char *ttl, *role, *name;
    bool replace, json;
} asked;

static int create(ca *c, const asked *q, shoal_err *err)
{
    ca_token_ask ask = {.name = q->name, .replace = q->replace};
    char text[TOKEN_TEXT_SIZE];
    if (!role_parse(&ask.role, q->role, strlen(q->role)))
        return err_set(err, SHOAL_EINVALID, "--role is node or gateway, not \"%s\"", q->role);
    if (!cli_seconds(q->ttl, &ask.ttl_s) || ask.ttl_s < 1)
        return err_set(err, SHOAL_EINVALID,
                       "--ttl is a length of time such as 90s, 30m, 1h or 7d, not \"%s\"", q->ttl);
    int64_t now = cli_now();
    int rc = ca_token(c, &ask, now, text, err);
    if (rc != 0) return rc;
    if (q->json)
        printf("{\"token\":\"%s\",\"role\":\"%s\",\"until\":%lld}\n", text, role_name(ask.role),
               (long long)(now + ask.ttl_s));
    else
        printf("%s\n", text);
    return 0;
}

static void cmd_token_put_json(buf *out, const ledger *l, int64_t now)
{
    buf_puts(out, "{\"tokens\":[");
    for (size_t i = 0; i < l->n_tokens; i++) {
        const ledger_token *t = &l->tokens[i];
        buf_puts(out, i ? ",{" : "{");
        json_put_text(out, "id", t->id);
        json_put_text(out, "role", role_name(t->role));
        json_put_text(out, "state", ledger_token_state(t, now));
        json_put_text(out, "name", t->name);
        json_put_text(out, "used_by", t->used_by);
        buf_printf(out, ",\"replace\":%s,\"until\":%lld}", t->replace ? "true" : "false",
                   (long long)t->until);
    }
    buf_puts(out, "]}");
}

static void cmd_token_put_rows(buf *out, const ledger *l, int64_t now)
{
    char date[CLI_DATE_SIZE];
    buf_printf(out, "%-16s  %-8s %-8s %-20s  %-16s %s", "ID", "ROLE", "STATE", "UNTIL", "FOR", "USED BY");
    for (size_t i = 0; i < l->n_tokens; i++) {
        const ledger_token *t = &l->tokens[i];
        cli_date(date, t->until);
        buf_printf(out, "\n%-16s  %-8s %-8s %-20s  %-16s %s", t->id, role_name(t->role),
                   ledger_token_state(t, now), date, *t->name ? t->name : "any", t->used_by);
    }
}

static int cmd_token_list(ca *c, bool json, shoal_err *err)
{
    ledger l;
    buf out = {0};
    int rc = ca_ledger(c, &l, err);
    if (rc != 0) return rc;
    (json ? cmd_token_put_json : cmd_token_put_rows)(&out, &l, cli_now());
    rc = cli_print(&out) == CLI_OK ? 0 : err_nomem(err);
    buf_done(&out);
    ledger_done(&l);
    return rc;
}

static int revoke(ca *c, const char *id, shoal_err *err)
{
    int rc = ca_token_revoke(c, id, cli_now(), err);
    if (rc == 0) printf("token %s opens nothing any more\n", id);
    return rc;
}

static int cmd_token_run(int argc, char **argv)
{
    const char *state = NULL;
    asked q = {.ttl = "1h", .role = "node"};
    const cli_option options[] = {
        CLI_STATE(&state),
        CLI_STRING(0, "ttl", "TIME", "create: how long it is good for: 90s, 30m, 1h, 7d [1h]", &q.ttl),
        CLI_STRING(0, "role", "ROLE", "create: node or gateway [node]", &q.role),
        CLI_STRING(0, "name", "NAME", "create: the only name it is good for [any that is free]", &q.name),
        CLI_FLAG(0, "replace", "create: --name may be taken; who has it now is revoked", &q.replace),
        CLI_JSON(&q.json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    ca *c = NULL;
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_token, options, verbs, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = cli_ca_open(&c, state, &err);
    if (rc == 0 && verb == &verbs[0]) rc = create(c, &q, &err);
    if (rc == 0 && verb == &verbs[1]) rc = cmd_token_list(c, q.json, &err);
    if (rc == 0 && verb == &verbs[2]) rc = revoke(c, a.v[0], &err);
    ca_close(c);
    return rc ? cli_fail(&cmd_token, &err) : CLI_OK;
}

const cli_command cmd_token = {"token", "make one-time tokens that let machines join, list or revoke them",
                               "create|list|revoke ID", cmd_token_run, false};
