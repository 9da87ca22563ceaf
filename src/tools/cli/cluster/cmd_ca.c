/* shoal ca init | show | revoke NAME: the authority of a cluster, on the machine that keeps it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "command/cli_cluster.h"
#include "command/cli_model.h"
#include "json/json_put.h"
#include "trust/state.h"

static const cli_verb verbs[] = {{"init", "", "make the authority, on the machine that keeps it", 0, 0},
                                 {"show", "", "show it, and the certificates that it gave", 0, 0},
                                 {"revoke", "NAME", "put a member out of the cluster", 1, 1},
                                 CLI_VERB_END};

static int init(const char *path, const char *cluster, shoal_err *err)
{
    char pin[65];
    ca *c = NULL;
    int rc = ca_init(path, cluster, cli_now(), err);
    if (rc == 0) rc = ca_open(&c, path, err);
    if (rc != 0) return rc;
    sha256_hex(ca_pin(c), pin);
    cli_printf("cluster %s: its CA is in %s\npin %s\nnext: shoal token create, on this machine\n",
               ca_cluster(c), path, pin);
    ca_close(c);
    return 0;
}

/* ---- show -------------------------------------------------------------------------------------- */

static const char *state_of(const ledger_cert *c, int64_t now)
{
    return c->revoked ? "revoked" : now > c->until ? "expired" : "valid";
}

static void cmd_ca_put_json(buf *out, const ca *c, const ledger *l, int64_t until, int64_t now)
{
    char pin[65];
    sha256_hex(ca_pin(c), pin);
    buf_putc(out, '{');
    json_put_text(out, "cluster", ca_cluster(c));
    json_put_text(out, "pin", pin);
    buf_printf(out, ",\"until\":%lld,\"crl_number\":%llu,\"certificates\":[", (long long)until,
               (unsigned long long)l->crl_number);
    for (size_t i = 0; i < l->n_certs; i++) {
        const ledger_cert *x = &l->certs[i];
        buf_puts(out, i ? ",{" : "{");
        json_put_text(out, "name", x->name);
        json_put_text(out, "role", role_name(x->role));
        json_put_text(out, "state", state_of(x, now));
        json_put_text(out, "serial", x->serial);
        buf_printf(out, ",\"from\":%lld,\"until\":%lld,\"revoked\":%lld}", (long long)x->from,
                   (long long)x->until, (long long)x->revoked);
    }
    buf_puts(out, "]}");
}

static void cmd_ca_put_rows(buf *out, const ca *c, const ledger *l, int64_t until, int64_t now)
{
    char pin[65], date[CLI_DATE_SIZE];
    sha256_hex(ca_pin(c), pin);
    cli_date(date, until);
    buf_printf(out, "cluster %s\npin     %s\nuntil   %s", ca_cluster(c), pin, date);
    if (l->n_certs)
        buf_printf(out, "\n\n%-24s %-8s %-8s %-20s  %s", "NAME", "ROLE", "STATE", "UNTIL", "SERIAL");
    for (size_t i = 0; i < l->n_certs; i++) {
        const ledger_cert *x = &l->certs[i];
        cli_date(date, x->until);
        buf_printf(out, "\n%-24s %-8s %-8s %-20s  %s", x->name, role_name(x->role), state_of(x, now), date,
                   x->serial);
    }
}

static int cmd_ca_show(ca *c, bool json, shoal_err *err)
{
    ledger l;
    buf out = {0};
    int64_t from, until, now = cli_now();
    int rc = cert_times(ca_cert(c), &from, &until, err);
    if (rc == 0) rc = ca_ledger(c, &l, err);
    if (rc != 0) return rc;
    (json ? cmd_ca_put_json : cmd_ca_put_rows)(&out, c, &l, until, now);
    rc = cli_print(&out) == CLI_OK ? 0 : err_nomem(err);
    buf_done(&out);
    ledger_done(&l);
    return rc;
}

static int revoke(ca *c, const char *name, shoal_err *err)
{
    size_t n;
    int rc = ca_revoke(c, name, cli_now(), &n, err);
    if (rc == 0)
        cli_printf("%s is out: %zu certificate%s revoked; it needs a new token to join again\n", name, n,
                   n == 1 ? "" : "s");
    return rc;
}

static int cmd_ca_run(int argc, char **argv)
{
    const char *state = NULL, *cluster = "home";
    bool json = false;
    const cli_option options[] = {
        CLI_STATE(&state),
        CLI_STRING(0, "cluster", "NAME", "init: what the cluster is called [home]", &cluster),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    char *path = NULL;
    ca *c = NULL;
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_ca, options, verbs, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = state_check_whole(state, &err);
    if (rc == 0) rc = state_path(&path, state, "ca", &err);
    if (rc == 0 && verb == &verbs[0])
        rc = init(path, cluster, &err);
    else if (rc == 0)
        rc = ca_open(&c, path, &err);
    if (rc == 0 && verb == &verbs[1]) rc = cmd_ca_show(c, json, &err);
    if (rc == 0 && verb == &verbs[2]) rc = revoke(c, a.v[0], &err);
    ca_close(c);
    free(path);
    return rc ? cli_fail(&cmd_ca, &err) : CLI_OK;
}

const cli_command cmd_ca = {"ca", "make a cluster's certificate authority, show it, revoke a member",
                            "init|show|revoke NAME", cmd_ca_run, false};
