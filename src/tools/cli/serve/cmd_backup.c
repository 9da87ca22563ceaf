/* shoal backup FOLDER: what a server on this machine keeps, as a folder of files, while it runs. */
#include "backup/backup_take.h"
#include "cli/commands.h"
#include "cli/serve/backup_print.h"
#include "command/cli_cluster.h"
#include "command/cli_model.h"

typedef struct backup_asked {
    const char *config, *state;
    bool check, without_keys, json;
} backup_asked;

static int make_backup(const backup_asked *q, const char *to, manifest *ret, shoal_err *err)
{
    backup_places p;
    const backup_watch watch = backup_print_watch("backup");
    backup_take_options o = {.places = &p, .secrets = !q->without_keys, .now = cli_now(), .watch = &watch};
    int rc = backup_places_find(&p, q->config, q->state, err);
    if (rc == 0) rc = backup_take(ret, to, &o, err);
    backup_places_done(&p);
    return cli_opened(rc, err);
}

static int check_backup(const char *from, manifest *ret, shoal_err *err)
{
    const backup_watch watch = backup_print_watch("backup");
    return backup_check(ret, from, &watch, err);
}

static int cmd_backup_run(int argc, char **argv)
{
    backup_asked q = {0};
    const cli_option options[] = {
        CLI_STRING('c', "config", "FILE",
                   "the server's configuration (./, /etc/shoal/, then the installed shoal.yaml)", &q.config),
        CLI_STATE(&q.state),
        CLI_FLAG(0, "without-keys", "leave out the keys of conversations, of the CA and of this machine",
                 &q.without_keys),
        CLI_FLAG(0, "check", "make nothing: read the backup FOLDER and compare it with its digests",
                 &q.check),
        CLI_JSON(&q.json),
        CLI_END,
    };
    cli_args a;
    manifest m;
    shoal_err err = {0};
    buf out = {0};
    int rc = cli_parse(&a, &cmd_backup, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = q.check ? check_backup(a.v[0], &m, &err) : make_backup(&q, a.v[0], &m, &err);
    backup_print_end();
    if (rc != 0) return cli_fail(&cmd_backup, &err);
    if (q.json)
        backup_print_json(&out, a.v[0], &m, NULL);
    else
        backup_print_rows(&out, a.v[0], &m, q.check ? "is whole" : "is made");
    rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

const cli_command cmd_backup = {"backup", "copy what a server keeps into a folder, while it runs", "FOLDER",
                                cmd_backup_run, false};
