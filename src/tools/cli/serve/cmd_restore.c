/* shoal restore FOLDER: a backup's files back in the places of a server, which must not run. */
#include "backup/backup_restore.h"
#include "cli/commands.h"
#include "cli/serve/backup_print.h"
#include "command/cli_cluster.h"
#include "command/cli_model.h"

static void restore_put_text(buf *out, const char *from, const backup_places *p, const backup_restored *r)
{
    char date[CLI_DATE_SIZE];
    cli_date(date, r->m.created);
    if (r->finished) buf_printf(out, "a restore that had been interrupted is finished\n");
    buf_printf(out, "restored %s, of %s, to %s", from, date, p->state);
    if (r->moved) buf_printf(out, "\nwhat was there is in %s/%s", p->state, r->m.aside);
    if (r->m.files[BACKUP_CONFIG].is_in)
        buf_printf(out, "\nthe configuration is not changed; that of the backup is %s/%s", from,
                   BACKUP_ITEMS[BACKUP_CONFIG].name);
}

static int restore_print(const char *from, const backup_places *p, const backup_restored *r, bool json)
{
    buf out = {0};
    if (json)
        backup_print_json(&out, from, &r->m, r->moved ? r->m.aside : "");
    else
        restore_put_text(&out, from, p, r);
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

static int cmd_restore_run(int argc, char **argv)
{
    const char *config = NULL, *state = NULL;
    bool json = false;
    const cli_option options[] = {
        CLI_STRING('c', "config", "FILE",
                   "the server's configuration (./, /etc/shoal/, then the installed shoal.yaml)", &config),
        CLI_STATE(&state),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    backup_places p;
    backup_restored r;
    shoal_err err = {0};
    const backup_watch watch = backup_print_watch("restore");
    int rc = cli_parse(&a, &cmd_restore, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    backup_restore_options o = {.places = &p, .now = cli_now(), .watch = &watch};
    rc = backup_places_find(&p, config, state, &err);
    if (rc == 0 && state && !config) rc = backup_places_check_below(&p, &err);
    if (rc == 0) rc = backup_restore(&r, a.v[0], &o, &err);
    backup_print_end();
    rc = rc == 0 ? restore_print(a.v[0], &p, &r, json) : cli_fail(&cmd_restore, (cli_opened(rc, &err), &err));
    backup_places_done(&p);
    return rc;
}

const cli_command cmd_restore = {"restore", "put a backup back where a server keeps its files", "FOLDER",
                                 cmd_restore_run, false};
