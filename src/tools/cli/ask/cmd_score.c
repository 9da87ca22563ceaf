/* shoal score MODEL FILE.csv: a line for each row of a table, or each window of a sensor, as it is scored,
 * and a summary behind them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/json.h"
#include "logging/sanitise.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "command/cli_model.h"

enum { PROGRESS_EVERY = 4096 };

typedef struct report {
    shoal_model_info info;
    const char *only; /* NULL: every label */
    bool json, progress;
    size_t *counts; /* [info.n_labels] */
    size_t n, n_printed;
    buf line;
} report;

static void cmd_score_put_text(buf *out, const char *key, const char *value)
{
    buf_printf(out, "\"%s\":", key);
    json_put_string(out, value, strlen(value));
    buf_putc(out, ',');
}

static void cmd_score_put_number(buf *out, double v)
{
    if (isfinite(v))
        buf_printf(out, "%.17g", v);
    else
        buf_puts(out, "null");
}

static void put_numbers(buf *out, const char *key, const double *v, size_t n)
{
    buf_printf(out, "\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        if (i) buf_putc(out, ',');
        cmd_score_put_number(out, v[i]);
    }
    buf_putc(out, ']');
}

static void cmd_score_put_json(buf *out, const shoal_score *s)
{
    buf_putc(out, '{');
    cmd_score_put_text(out, "sensor", s->sensor);
    cmd_score_put_text(out, "time", s->time);
    buf_printf(out, "\"line\":%zu,\"row\":%zu,", s->line, s->row);
    if (s->label) cmd_score_put_text(out, "label", s->label);
    put_numbers(out, "scores", s->scores, s->n_scores);
    buf_putc(out, ',');
    put_numbers(out, "raw", s->raw, s->n_raw);
    buf_puts(out, "}\n");
}

/* What a file says must not command a terminal: control characters and broken ones become "?". What else would, cli_write
 * keeps from one. */
static void put_plain(buf *out, const char *s, int width)
{
    size_t left = strlen(s);
    for (; left > 0; width--) {
        uint32_t cp;
        size_t bad = sanitise_control(s, left), n = bad ? bad : utf8_decode(s, left, &cp);
        buf_append(out, bad ? "?" : s, bad ? 1 : n);
        s += n;
        left -= n;
    }
    for (; width > 0; width--) buf_putc(out, ' ');
}

static void cmd_score_put_row(buf *out, const shoal_score *s)
{
    char line[32];
    snprintf(line, sizeof line, "line %zu", s->line);
    if (*s->sensor) put_plain(out, s->sensor, 12);
    put_plain(out, *s->time ? s->time : line, 12);
    if (s->label) {
        buf_putc(out, ' ');
        put_plain(out, s->label, 12);
        buf_printf(out, " %6.2f %%", 100.0 * s->probability);
    }
    for (size_t i = 0; !s->label && i < s->n_scores; i++) buf_printf(out, " %.9g", s->scores[i]);
    buf_putc(out, '\n');
}

static void count_label(report *r, const char *label)
{
    for (size_t i = 0; label && i < r->info.n_labels; i++)
        if (strcmp(r->info.labels[i], label) == 0) {
            r->counts[i]++;
            return;
        }
}

static void show_progress(const report *r, const shoal_score *s)
{
    if (r->progress && r->n % PROGRESS_EVERY == 0) fprintf(stderr, "\rline %zu, %zu scores", s->line, r->n);
}

static int on_score(void *user, const shoal_score *s)
{
    report *r = user;
    r->n++;
    count_label(r, s->label);
    show_progress(r, s);
    if (r->only && (!s->label || strcmp(s->label, r->only) != 0)) return 0;
    buf_clear(&r->line);
    (r->json ? cmd_score_put_json : cmd_score_put_row)(&r->line, s);
    if (r->line.failed) return 1;
    r->n_printed++;
    return fwrite(r->line.data, 1, r->line.len, stdout) != r->line.len;
}

static void put_summary_json(buf *out, const report *r, const shoal_score_totals *t)
{
    buf_printf(out, "{\"rows\":%zu,\"scores\":%zu,\"sensors\":%zu", t->n_rows, t->n_scores, t->n_sensors);
    for (size_t i = 0; i < r->info.n_labels; i++) {
        buf_puts(out, i ? "," : ",\"labels\":{");
        json_put_string(out, r->info.labels[i], strlen(r->info.labels[i]));
        buf_printf(out, ":%zu", r->counts[i]);
    }
    buf_puts(out, r->info.n_labels ? "}}\n" : "}\n");
}

static void put_summary(buf *out, const report *r, const shoal_score_totals *t)
{
    buf_printf(out, "%s%zu rows, ", r->n_printed ? "\n" : "", t->n_rows);
    if (t->n_sensors)
        buf_printf(out, "%zu sensor%s, %zu windows", t->n_sensors, t->n_sensors == 1 ? "" : "s", t->n_scores);
    else
        buf_printf(out, "%zu scores", t->n_scores);
    for (size_t i = 0; i < r->info.n_labels; i++)
        buf_printf(out, "%s %zu %s", i ? "," : ":", r->counts[i], r->info.labels[i]);
    buf_putc(out, '\n');
}

static int print_summary(report *r, const shoal_score_totals *t, shoal_err *err)
{
    buf_clear(&r->line);
    (r->json ? put_summary_json : put_summary)(&r->line, r, t);
    if (r->line.failed) return err_nomem(err);
    fwrite(r->line.data, 1, r->line.len, stdout); /* cli_flush sees whether it went well */
    if (t->n_sensors && t->n_scores == 0)
        fprintf(stderr, "note: no sensor has sent enough rows for a first window yet\n");
    return 0;
}

static const char *label_at(const void *list, size_t i)
{
    return ((const char *const *)list)[i];
}

static int check_only(const report *r, shoal_err *err)
{
    if (!r->only) return 0;
    for (size_t i = 0; i < r->info.n_labels; i++)
        if (strcmp(r->info.labels[i], r->only) == 0) return 0;
    const char *near = cli_nearest(r->only, r->info.n_labels, label_at, r->info.labels);
    return err_set(err, SHOAL_EINVALID, "%s has no label \"%.80s\"%s%.80s%s", r->info.name, r->only,
                   near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int score(shoal_model *m, const char *path, report *r, shoal_err *err)
{
    shoal_score_totals t = {0};
    int rc = shoal_model_describe(m, &r->info, err);
    if (rc == 0) rc = check_only(r, err);
    if (rc == 0 && !(r->counts = calloc(r->info.n_labels + 1, sizeof *r->counts))) rc = err_nomem(err);
    if (rc == 0) rc = shoal_score_csv(m, path, on_score, r, &t, err);
    if (r->progress && r->n >= PROGRESS_EVERY) fputs("\r\033[K", stderr);
    if (rc == 0) rc = print_summary(r, &t, err);
    if (rc == SHOAL_ECANCELLED && r->line.failed) rc = err_nomem(err);
    if (rc == SHOAL_ECANCELLED) rc = 0; /* nobody reads on, or the disk is full: cli_flush tells them apart */
    return rc;
}

static int cmd_score_run(int argc, char **argv)
{
    cli_model_options mo = {0};
    report r = {.progress = isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO)};
    const cli_option options[] = {
        CLI_STRING(0, "only", "LABEL", "print these rows alone; the summary counts all", &r.only),
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&r.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_score, options, 2, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    shoal_model *m = NULL;
    rc = cli_model_open(&m, a.v[0], &mo, &err);
    if (rc == 0) rc = score(m, a.v[1], &r, &err);
    if (rc != 0) {
        fflush(stdout);
        rc = cli_fail(&cmd_score, &err);
    } else {
        rc = cli_flush(CLI_OK);
    }
    buf_done(&r.line);
    free(r.counts);
    shoal_model_close(m);
    return rc;
}

const cli_command cmd_score = {"score", "score the rows of a table, or windows of sensors, in a CSV file",
                               "MODEL FILE.csv|-", cmd_score_run, false};
