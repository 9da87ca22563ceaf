/* csv.h: RFC 4180, row by row, bounded, with errors that name line and column.
 *
 * Fields may be quoted ("" is a quote; commas and line ends within quotes belong to the field); a line ends
 * in LF or CRLF; a byte order mark in front is skipped; blank lines are skipped. The first row is the header:
 * every later row has as many fields. The separator is a comma, or what the header has instead: a semicolon
 * or a tab.
 *
 *     csv *c = NULL;
 *     if (csv_open(&c, "rows.csv.gz", &err) != 0) ...
 *     while ((rc = csv_next(c, &err)) == 1) puts(csv_field(c, 0));
 *     csv_close(c);
 *
 * Memory is one row, whatever the file's length. */
#ifndef FORMATS_CSV_H
#define FORMATS_CSV_H

#include <stddef.h>

#include "base/cancel.h"
#include "base/steps.h"

enum { CSV_ROW_MAX = 1 << 20, CSV_FIELDS_MAX = 1 << 16 }; /* bytes, columns */

typedef struct csv csv;

/* Read the header of a file (gzip is fine, "-" is standard input), or of n bytes that must outlive *ret;
 * `what` names them in errors and is borrowed too. The caller closes *ret. */
int csv_open(csv **ret, const char *path, shoal_err *err);
int csv_over(csv **ret, const char *text, size_t n, const char *what, shoal_err *err);
void csv_close(csv *c); /* NULL is fine */
/* From here on rows, blank ones too, are counted there: csv_next may fail with SHOAL_ECANCELLED. Borrowed. */
void csv_count(csv *c, steps *steps);

/* The header's names, borrowed; columns without one are "". The index of a name, -1 when there is none. */
size_t csv_columns(const csv *c);
const char *csv_name(const csv *c, size_t column);
long csv_column(const csv *c, const char *name);

/* Who is asked before each row whether to go on. */
void csv_set_cancel(csv *c, const cancel_check *cancel);
const cancel_check *csv_get_cancel(const csv *c);

/* Read the next row: 1, 0 at the end, or a negative code. Its fields live until the next call. */
int csv_next(csv *c, shoal_err *err);
const char *csv_field(const csv *c, size_t column);
size_t csv_line(const csv *c); /* where the row begins, from 1 */

/* The field as a finite number; NaN for an empty one, "nan", "na", "null" or "none" in any case. What is no
 * number is SHOAL_EFORMAT, with line and column. */
int csv_number(const csv *c, size_t column, double *ret, shoal_err *err);

#endif
