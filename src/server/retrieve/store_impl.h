/* store_impl.h: what store*.c share: statements with an error in words. */
#ifndef RETRIEVE_STORE_IMPL_H
#define RETRIEVE_STORE_IMPL_H

#include "retrieve/store.h"
#include "sql/database.h"

struct store {
    database file;
    steps *steps;      /* NULL: nobody counts */
    const char *owner; /* "": nobody's */
};

/* A statement; *ret is NULL after a failure. sqlite3_finalize it. */
int store_prepare(store *s, sqlite3_stmt **ret, shoal_err *err, const char *sql, ...)
    __attribute__((format(printf, 4, 5)));
/* 1: a row, 0: the end, or a negative code. */
int store_step(store *s, sqlite3_stmt *st, shoal_err *err);
/* Step to the end, and finalize st, whatever `rc` was before: with a failure nothing is stepped. */
int store_finish(store *s, sqlite3_stmt *st, int rc, shoal_err *err);
/* Parameters i, i+1 ... ; text is borrowed until finalize. A failure shows in the step. */
void store_bind_text(sqlite3_stmt *st, int i, const char *text);
/* The column as text in `mem`, "" for NULL; NULL: out of memory. */
const char *store_text(sqlite3_stmt *st, int column, arena *mem);
/* For what a client names: nobody guesses it, and two do not meet. 63 bits, never 0. */
int64_t store_draw_id(void);

#endif
