/* backup_print.c: see backup_print.h. */
#include "cli/serve/backup_print.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/cli.h"
#include "command/cli_cluster.h"
#include "json/json_put.h"

enum { LARGE = 64 << 20 };

static struct {
    const char *command;
    bool live;
    const char *name; /* that is shown */
    unsigned shown;   /* its quarters */
} shown;

static volatile sig_atomic_t backup_stopped;

static void backup_on_signal(int number)
{
    (void)number;
    backup_stopped = 1;
}

static int backup_on_progress(void *user, const char *name, uint64_t done, uint64_t all)
{
    unsigned quarter = all ? (unsigned)((double)done / (double)all * 4) : 0;
    bool fresh = !shown.name || strcmp(shown.name, name) != 0;
    if (fresh) shown.name = name;
    if (shown.live && all)
        cli_live_line("%s: %s  %.0f %% of %.1f MB", shown.command, name, 100.0 * (double)done / (double)all,
                      (double)all / 1e6);
    else if (!shown.live && fresh)
        fprintf(stderr, "%s: %s, %llu bytes\n", shown.command, name, (unsigned long long)all);
    else if (!shown.live && all >= LARGE && quarter > shown.shown && quarter < 4)
        fprintf(stderr, "%s: %s, %u %%\n", shown.command, name, 25 * quarter);
    shown.shown = quarter;
    return backup_stopped;
}

backup_watch backup_print_watch(const char *command)
{
    struct sigaction a = {.sa_handler = backup_on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    shown.command = command;
    shown.live = isatty(STDERR_FILENO);
    return (backup_watch){.progress = backup_on_progress};
}

void backup_print_end(void)
{
    if (shown.live) cli_live_line("%s", "");
}

void backup_print_rows(buf *out, const char *folder, const manifest *m, const char *what)
{
    char date[CLI_DATE_SIZE];
    cli_date(date, m->created);
    for (int i = 0; i < BACKUP_N_ITEMS; i++) {
        const manifest_file *f = &m->files[i];
        if (f->is_in)
            buf_printf(out, "%-16s %12llu bytes\n", BACKUP_ITEMS[i].name, (unsigned long long)f->bytes);
        if (f->left_out) buf_printf(out, "%-16s left out\n", BACKUP_ITEMS[i].name);
    }
    buf_printf(out, "the backup %s, of %s, %s", folder, date, what);
}

void backup_print_json(buf *out, const char *folder, const manifest *m, const char *aside)
{
    char hex[65];
    buf_putc(out, '{');
    json_put_text(out, "backup", folder);
    json_put_text(out, "version", m->version);
    json_put_integer(out, "created", m->created);
    if (aside) json_put_text(out, "aside", aside);
    json_put_open(out, "files", '[');
    for (int i = 0; i < BACKUP_N_ITEMS; i++) {
        if (!m->files[i].is_in) continue;
        sha256_hex(&m->files[i].digest, hex);
        json_put_open(out, NULL, '{');
        json_put_text(out, "name", BACKUP_ITEMS[i].name);
        json_put_integer(out, "bytes", (int64_t)m->files[i].bytes);
        json_put_text(out, "sha256", hex);
        buf_putc(out, '}');
    }
    buf_puts(out, "]");
    json_put_open(out, "left_out", '[');
    for (int i = 0; i < BACKUP_N_ITEMS; i++)
        if (m->files[i].left_out) json_put_text(out, NULL, BACKUP_ITEMS[i].name);
    buf_puts(out, "]}");
}
