/* plain.h: documents as plain text in blocks: paragraphs, headings, rows of a table.
 *
 * Text and Markdown stay as they are, so that a place in `text` is a place in the file. Of HTML the tags go,
 * and what is not read (scripts, styles, comments); a row of CSV becomes a line "header: value; header:
 * value".
 *
 *     plain p = {0};
 *     if (plain_read(&p, PLAIN_MARKDOWN, bytes, n, "manual.md", NULL, err) == 0)
 *         for (size_t i = 0; i < p.n; i++) ... p.text.data + p.blocks[i].start ...
 *     plain_done(&p);
 *
 * HTML is read by a scanner of its own: nothing but words, headings and the borders of blocks is wanted,
 * which takes one pass without a tree and without recursion, while libxml2 brings a whole parser and gumbo
 * has no upstream any more. Pure: no I/O. */
#ifndef RETRIEVE_PLAIN_H
#define RETRIEVE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/steps.h"

/* X(enum, name in requests) */
#define PLAIN_TYPE_TABLE(X)       \
    X(PLAIN_TEXT, "text")         \
    X(PLAIN_MARKDOWN, "markdown") \
    X(PLAIN_HTML, "html")         \
    X(PLAIN_CSV, "csv")
typedef enum plain_type {
#define PLAIN_ENUM(e, name) e,
    PLAIN_TYPE_TABLE(PLAIN_ENUM)
#undef PLAIN_ENUM
        PLAIN_N_TYPES
} plain_type;

const char *plain_type_name(plain_type t);
bool plain_type_parse(const char *name, plain_type *ret);
/* By the ending of a file's name: false when it tells nothing. */
bool plain_type_of(const char *path, plain_type *ret);

/* Each row of CSV repeats the header's names: only so much of a name, and no more than so many times the file. */
enum { PLAIN_BLOCKS_MAX = 1 << 21, PLAIN_CSV_NAME_MAX = 96, PLAIN_CSV_GROWTH_MAX = 8 };

typedef enum { BLOCK_PARAGRAPH, BLOCK_HEADING, BLOCK_ROW } block_kind;

typedef struct plain_block {
    size_t start, end; /* bytes of text; blocks do not overlap, are in order, and not empty */
    size_t line;       /* of the file, from 1, where it begins */
    block_kind kind;
    unsigned level; /* of a heading: 1 is the highest */
} plain_block;

typedef struct plain {
    buf text; /* UTF-8 without NUL */
    plain_block *blocks;
    size_t n, cap;
    bool as_it_was; /* text is the file's bytes, so that its lines are the file's */
} plain;

/* *ret is zeroed before and the caller's to be done with, also after a failure. `what` names the bytes in
 * errors. steps: NULL, or what counts the work, which is linear in n and ends with SHOAL_ECANCELLED.
 * SHOAL_EFORMAT: no UTF-8 text, or CSV whose rows do not fit its header; SHOAL_ELIMIT: too many blocks, or CSV
 * whose rows are mostly the header's names. */
int plain_read(plain *ret, plain_type type, const char *bytes, size_t n, const char *what, steps *steps,
               shoal_err *err);
void plain_done(plain *p);

/* Inside plain*.c: add the block, unless it is empty. */
int plain_add(plain *p, const plain_block *b, shoal_err *err);
int plain_read_html(plain *p, const char *bytes, size_t n, steps *steps, shoal_err *err);

#endif
