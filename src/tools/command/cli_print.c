/* cli_print.c: what commands print of files, servers and models: as it is into a pipe, sanitised on a terminal.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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
    char *safe = malloc(n + 1);
    if (!safe) return no_memory();
    if (n) memcpy(safe, s, n);
    n = sanitise_bytes(safe, n, "\n\t");
    int rc = fwrite(safe, 1, n, stdout) == n ? 0 : -1;
    free(safe);
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

size_t cli_columns(size_t otherwise)
{
    struct winsize w;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : otherwise;
}

void cli_say(const char *fmt, ...)
{
    char text[2048]; /* nothing is allocated: it may be about that */
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof text) memcpy(text + sizeof text - 5, "...\n", 5);
    sanitise_text(text, "\n\t");
    fputs(n < 0 ? "" : text, stderr);
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

int cli_print_json(const json_t *v, size_t flags)
{
    buf out = {0};
    char *text = json_dumps(v, flags);
    if (text)
        buf_puts(&out, text);
    else
        out.failed = true;
    free(text);
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}
