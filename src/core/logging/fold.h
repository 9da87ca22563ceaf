/* fold.h: text in the rows of a terminal, folded at words, never in one.
 *
 *     fold f = {.width = 80};
 *     fold_put(&f, &out, piece, n); // pieces of a reply, as they come; out gets what is certain
 *     fold_end(&f, &out);           // the last word, which was held back until now
 *
 * Widths are columns (utf8_columns): a character of Chinese takes two, and text without spaces folds between
 * such characters. A word that is wider than a row gets a row of its own and stays whole, so that it can be
 * copied. Nothing is sanitised here. */
#ifndef LOGGING_FOLD_H
#define LOGGING_FOLD_H

#include "base/buf.h"

typedef struct fold {
    size_t width;    /* columns of a row; 0: there is no limit */
    size_t margin;   /* spaces before each row, */
    size_t indent;   /* and more of them before what continues one */
    size_t at;       /* columns of the row that is being written */
    size_t gap;      /* spaces that the next word has before it */
    buf held;        /* the word that may not be complete */
    size_t n_read;   /* bytes of it that were looked at: behind them begins a character */
    size_t columns;  /* of these bytes */
    bool wide, runs; /* it ends with a wide character; its beginning is wider than a row, and written */
} fold;

/* Failures are out's. */
void fold_put(fold *f, buf *out, const char *s, size_t n);
/* Writes and frees what is held; f may be used for another text, which begins a row. */
void fold_end(fold *f, buf *out);

/* The line that began at out->data[from]: sanitised (sanitise.h), in rows of at most `width` columns (0: one
 * row). All rows but the first begin with `indent` spaces. A row has no spaces at its end and ends in a newline. */
void fold_line(buf *out, size_t from, size_t width, size_t indent);

#endif
