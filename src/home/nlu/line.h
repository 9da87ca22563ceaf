/* line.h: lines of a declared form ("sensor vibration asset=pump-12 change=+64% ...") and what may be said of
 * them.
 *
 * A line is read exactly or refused with a reason. Its alert is a template of the form; a model may put it in
 * other words, of which only those are kept that the line and the form hold. lexicons/sensors.yaml says how
 * forms are written. Forms are immutable after loading; any thread may use them. */
#ifndef NLU_LINE_H
#define NLU_LINE_H

#include "base/err.h"
#include "base/words.h"

#define LINE_FIELDS_MAX 16

typedef struct line_forms line_forms;

/* The caller frees *ret. Errors begin with "file:line: ". */
int line_forms_load(line_forms **ret, const char *path, shoal_err *err);
int line_forms_parse(line_forms **ret, const char *text, size_t len, const char *what, shoal_err *err);
void line_forms_free(line_forms *f); /* NULL is fine */

/* X(enum, name in conditions and traces, what it is) */
#define LINE_VERDICTS(X)                                    \
    X(LINE_OTHER, "other", "does not begin as such a line") \
    X(LINE_READ, "read", "text is the alert")               \
    X(LINE_UNREADABLE, "unreadable", "text says what is wrong")
typedef enum line_verdict {
#define LINE_ENUM(e, n, about) e,
    LINE_VERDICTS(LINE_ENUM)
#undef LINE_ENUM
} line_verdict;
const char *line_verdict_name(line_verdict v);

typedef struct line_reading {
    line_verdict verdict;
    const char *text;             /* "" for OTHER */
    const struct line_form *form; /* READ */
    int outcome;                  /* READ: within, up or down */
    words line;
    const char *values[LINE_FIELDS_MAX + 1]; /* the subject, then the fields in the form's order */
} line_reading;

/* The reading lives in the arena and borrows `text`. SHOAL_ENOMEM, or 0. */
int line_read(line_reading *ret, const line_forms *f, const char *text, arena *a, shoal_err *err);

/* What may be said of a line that was read, of what a model `said`: its faithful sentences, with names spelt
 * as the line has them; else r->text. *ret_kept: something of it was kept. NULL: out of memory. */
const char *line_check(const line_reading *r, const char *said, arena *a, bool *ret_kept);

#endif
