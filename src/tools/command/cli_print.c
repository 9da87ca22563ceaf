/* cli_print.c: what commands print of files, servers and models: as it is into a pipe, sanitised on a terminal.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "logging/fold.h"
#include "logging/sanitise.h"
#include "command/cli.h"
#include "command/cli_model.h"

static bool is_lost; /* something that was to be printed */

bool cli_print_lost(void)
{
    return is_lost;
}

static int no_memory(void)
{
    is_lost = true;
    fprintf(stderr, "shoal: out of memory while writing the answer\n");
    return -1;
}

int cli_write(const char *s, size_t n)
{
    if (!isatty(STDOUT_FILENO)) return fwrite(s, 1, n, stdout) == n ? 0 : -1;
    buf safe = {0};
    sanitise_put(&safe, s, n, "\n\t");
    int rc = safe.failed ? no_memory() : fwrite(buf_text(&safe), 1, safe.len, stdout) == safe.len ? 0 : -1;
    buf_done(&safe);
    return rc;
}

int cli_printf(const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0) return no_memory();
    int rc = cli_write(text, (size_t)n);
    free(text);
    return rc == 0 ? n : -1;
}

static size_t columns_of(int fd, size_t otherwise)
{
    struct winsize w;
    return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : otherwise;
}

size_t cli_columns(size_t otherwise)
{
    return columns_of(STDOUT_FILENO, otherwise);
}

void cli_end_line(buf *out, size_t from, size_t indent)
{
    size_t columns = cli_columns(0);
    if (columns)
        fold_line(out, from, columns, indent);
    else
        buf_putc(out, '\n');
}

int cli_print_line(size_t indent, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    buf line = {0};
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0) return no_memory();
    buf_puts(&line, text);
    cli_end_line(&line, 0, indent);
    int rc = line.failed ? no_memory() : cli_write(line.data, line.len);
    buf_done(&line);
    free(text);
    return rc;
}

/* The lines of text, each folded. */
static void put_folded(buf *out, const char *text, size_t n, size_t columns, size_t indent)
{
    for (size_t at = 0; at < n; at++) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at, from = out->len;
        buf_append(out, text + at, len);
        fold_line(out, from, columns, indent);
        at += len;
    }
}

void cli_live_line(const char *fmt, ...)
{
    char text[512];
    va_list ap;
    buf line = {0};
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_puts(&line, text);
    sanitise_line(&line, 0, columns_of(STDERR_FILENO, 80) - 1); /* the cursor stands behind it */
    if (!line.failed) fprintf(stderr, "\r\033[K%.*s", (int)line.len - 1, line.data);
    fflush(stderr);
    buf_done(&line);
}

void cli_say(const char *fmt, ...)
{
    char text[2048]; /* what is allocated is not needed: it may be about that */
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof text) memcpy(text + sizeof text - 5, "...\n", 5);
    if (n < 0) return;
    size_t columns = columns_of(STDERR_FILENO, 0);
    buf rows = {0};
    if (columns)
        put_folded(&rows, text, strlen(text), columns, 0);
    else
        sanitise_put(&rows, text, strlen(text), "\n\t");
    sanitise_text(text, "\n\t");
    fputs(rows.len && !rows.failed ? rows.data : text, stderr);
    buf_done(&rows);
}

int cli_print(buf *out)
{
    buf_putc(out, '\n');
    if (out->failed) {
        no_memory();
        return CLI_FAILED;
    }
    return cli_write(out->data, out->len) == 0 || ferror(stdout) ? cli_flush(CLI_OK) : CLI_FAILED;
}

int cli_print_folded(buf *out, size_t indent)
{
    buf rows = {0};
    size_t columns = cli_columns(0);
    if (!columns) return cli_print(out);
    put_folded(&rows, out->data ? out->data : "", out->len, columns, indent);
    rows.failed |= out->failed;
    if (rows.len) rows.len--; /* cli_print ends it */
    int rc = cli_print(&rows);
    buf_done(&rows);
    return rc;
}

static int on_json(const char *bytes, size_t n, void *out)
{
    return buf_append(out, bytes, n);
}

/* Not json_dumps, which loses a member's name, and says nothing, where it has no memory for it: a buf remembers. */
int cli_print_json(const json_t *v, size_t flags)
{
    buf out = {0};
    if (json_dump_callback(v, on_json, &out, flags) != 0) out.failed = true;
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}
