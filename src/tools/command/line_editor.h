/* line_editor.h: lines that a person types: with editing and history on a terminal, plainly from a pipe.
 *
 *     line_editor *e;
 *     const char *line;
 *     line_editor_open(&e, &(line_editor_options){.prompt = "> ", .edit = true}, err);
 *     while (line_editor_read(e, &line)) ...
 *     line_editor_close(e);
 *
 * On a terminal Ctrl-C drops the line that is being typed, and at an empty prompt ends when it comes twice;
 * Ctrl-D at the start of a line ends. A line whose last character is a backslash goes on in the next, and one
 * that begins with """ up to the next """. */
#ifndef COMMAND_LINE_EDITOR_H
#define COMMAND_LINE_EDITOR_H

#include <stdbool.h>

#include "base/err.h"

typedef struct line_editor line_editor;

typedef struct line_editor_options {
    const char *prompt;  /* must live as long as the editor; shown when editing */
    bool edit;           /* standard input and output are a terminal */
    const char *history; /* file to keep lines in (readable by its owner alone), NULL: they are forgotten */
} line_editor_options;

/* A history that cannot be read is an empty one. */
int line_editor_open(line_editor **ret, const line_editor_options *o, shoal_err *err);
void line_editor_close(line_editor *e); /* accepts NULL */

/* The next line without its end, borrowed until the next call; false at the end of the input. */
bool line_editor_read(line_editor *e, const char **ret);

/* $XDG_STATE_HOME/shoal/NAME, or ~/.local/state/shoal/NAME; the folders are made. *ret is malloc'd. */
int line_editor_history_path(char **ret, const char *name, shoal_err *err);

#endif
