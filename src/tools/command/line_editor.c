/* line_editor.c: libedit on a terminal, getline elsewhere. */
#define _GNU_SOURCE
#include "command/line_editor.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"

enum { LINES_KEPT = 500 };

struct line_editor {
    EditLine *el; /* NULL: a pipe */
    History *history;
    char *history_path; /* NULL: not kept */
    const char *prompt;
    bool dropped;    /* Ctrl-C was typed */
    bool leaves;     /* twice, at an empty prompt */
    unsigned n_idle; /* Ctrl-C at an empty prompt, one behind the other */
    bool goes_on;    /* behind a backslash, or within quotes */
    bool quoted;     /* behind three quotes, to the next three */
    buf line;
    char *raw; /* getline's */
    size_t raw_cap;
};

/* ---- the history ----------------------------------------------------------------------------- */

int line_editor_history_path(char **ret, const char *name, shoal_err *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n;
    if (state && *state == '/') /* the specification: a relative one is to be ignored */
        n = asprintf(&path, "%s/shoal/%s", state, name);
    else if (home && *home == '/')
        n = asprintf(&path, "%s/.local/state/shoal/%s", home, name);
    else
        return err_set(err, SHOAL_ENOTFOUND, "neither XDG_STATE_HOME nor HOME is set");
    if (n < 0) return err_nomem(err);
    int rc = file_make_folders(path, 0700, err); /* as the XDG specification asks: for the owner alone */
    if (rc != 0)
        free(path);
    else
        *ret = path;
    return rc;
}

/* libedit writes the file in place; made here first, it is never open to others. */
static void keep_history(line_editor *e)
{
    HistEvent ev;
    if (!e->history_path) return;
    int fd = open(e->history_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return;
    fchmod(fd, 0600);
    close(fd);
    history(e->history, &ev, H_SAVE, e->history_path);
}

static void remember(line_editor *e)
{
    HistEvent ev;
    if (!e->line.len || !*e->line.data) return;
    history(e->history, &ev, H_ENTER, e->line.data);
    keep_history(e);
}

/* ---- editing --------------------------------------------------------------------------------- */

static char *prompt_of(EditLine *el)
{
    line_editor *e = NULL;
    el_get(el, EL_CLIENTDATA, &e);
    return (char *)(e->goes_on ? ". " : e->prompt);
}

/* Bound to Ctrl-C: the line goes, and line_editor_read asks anew. */
static unsigned char drop_line(EditLine *el, int key)
{
    (void)key;
    line_editor *e = NULL;
    el_get(el, EL_CLIENTDATA, &e);
    e->dropped = true;
    const LineInfo *typed = el_line(el);
    bool idle = typed->lastchar == typed->buffer && !e->goes_on;
    e->n_idle = idle ? e->n_idle + 1 : 0;
    e->leaves = e->n_idle > 1;
    fputs(idle && !e->leaves ? "^C (again, or Ctrl-D, leaves)\n" : "^C\n", stdout);
    return CC_NEWLINE;
}

static int open_terminal(line_editor *e, shoal_err *err)
{
    HistEvent ev;
    /* libedit reads characters, not bytes; in the C locale they would be bytes. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
    e->history = history_init();
    e->el = el_init("shoal", stdin, stdout, stderr);
    if (!e->history || !e->el) return err_nomem(err);
    el_set(e->el, EL_CLIENTDATA, e);
    el_set(e->el, EL_PROMPT, prompt_of);
    el_set(e->el, EL_EDITOR, "emacs");
    el_set(e->el, EL_SIGNAL, 1); /* resizing redraws the line; who is killed leaves the terminal as it was */
    el_set(e->el, EL_HIST, history, e->history);
    el_set(e->el, EL_SETTY, "-d", "-isig", NULL); /* while a line is typed, Ctrl-C is a key */
    /* libedit 3.1 keeps the two names until the process ends. */
    el_set(e->el, EL_ADDFN, "shoal-drop-line", "drop the line that is being typed", drop_line);
    el_set(e->el, EL_BIND, "^C", "shoal-drop-line", NULL);
    el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    history(e->history, &ev, H_SETSIZE, LINES_KEPT);
    history(e->history, &ev, H_SETUNIQUE, 1);
    if (e->history_path) history(e->history, &ev, H_LOAD, e->history_path);
    return 0;
}

int line_editor_open(line_editor **ret, const line_editor_options *o, shoal_err *err)
{
    line_editor *e = calloc(1, sizeof *e);
    if (!e) return err_nomem(err);
    e->prompt = o->prompt;
    int rc = 0;
    if (o->edit && o->history && !(e->history_path = strdup(o->history))) rc = err_nomem(err);
    if (rc == 0 && o->edit) rc = open_terminal(e, err);
    if (rc != 0)
        line_editor_close(e);
    else
        *ret = e;
    return rc;
}

void line_editor_close(line_editor *e)
{
    if (!e) return;
    if (e->el) el_end(e->el);
    if (e->history) history_end(e->history);
    buf_done(&e->line);
    free(e->history_path);
    free(e->raw);
    free(e);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool ends_quoted(const char *s, size_t n)
{
    return n >= 3 && memcmp(s + n - 3, "\"\"\"", 3) == 0;
}

/* One line that was typed, appended; what ends it says whether another one belongs to it. */
static void take_part(line_editor *e, const char *s, size_t n)
{
    bool first = e->line.len == 0 && !e->goes_on;
    if (first && n >= 3 && memcmp(s, "\"\"\"", 3) == 0) {
        e->quoted = e->goes_on = true;
        s += 3;
        n -= 3;
        if (n == 0) return;
    }
    if (e->quoted) {
        e->goes_on = !ends_quoted(s, n);
        buf_append(&e->line, s, e->goes_on ? n : n - 3);
    } else {
        e->goes_on = n > 0 && s[n - 1] == '\\';
        buf_append(&e->line, s, e->goes_on ? n - 1 : n);
    }
    if (e->goes_on) buf_putc(&e->line, '\n');
}

/* One line of the terminal; false at the end of the input. */
static bool read_part(line_editor *e)
{
    int n = 0;
    e->dropped = false;
    const char *s = el_gets(e->el, &n);
    clearerr(stdout); /* a signal may have interrupted the drawing of the line, which is nobody's loss */
    if (e->dropped) {
        buf_clear(&e->line);
        e->goes_on = e->quoted = false;
        return !e->leaves;
    }
    e->n_idle = 0;
    if (!s || n <= 0) {
        putchar('\n'); /* the shell's prompt begins a line */
        return false;
    }
    while (n > 0 && (s[n - 1] == '\n' || s[n - 1] == '\r')) n--;
    take_part(e, s, (size_t)n);
    return true;
}

static bool read_terminal(line_editor *e)
{
    e->n_idle = 0;
    do {
        e->goes_on = e->quoted = false;
        buf_clear(&e->line);
        do
            if (!read_part(e)) return false;
        while (e->goes_on);
    } while (e->dropped);
    remember(e);
    return !e->line.failed;
}

bool line_editor_read(line_editor *e, const char **ret)
{
    if (e->el) {
        if (!read_terminal(e)) return false;
        *ret = e->line.data ? e->line.data : "";
        return true;
    }
    if (getline(&e->raw, &e->raw_cap, stdin) < 0) return false;
    e->raw[strcspn(e->raw, "\n")] = '\0';
    *ret = e->raw;
    return true;
}
