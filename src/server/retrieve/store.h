/* store.h: collections in one SQLite file: documents, their pieces, vectors, metadata and words.
 *
 *     collections ─┬─ documents (source, digest, metadata) ─┬─ pieces (text, place in the source, headings)
 *                  │                                        └─ vectors (one row: scales and codes
 *                  │                                                    of all pieces)
 *                  └─ words_N (FTS5 over title and text of its pieces)
 *
 * The journal is a write-ahead log and every commit is synced (synchronous=FULL): what was acknowledged is
 * there after a crash, and what was not is not there in part. Any number of readers see what was committed
 * when they began; one writer at a time, also from another process.
 *
 *     store *s = NULL;
 *     if (store_open(&s, "/var/lib/shoal/collections.db", err) == 0 && store_begin(s, true, err) == 0) {
 *         store_put(s, &c, &doc, &content, &replaced, err);
 *         store_commit(s, err);
 *     }
 *     store_close(s);
 *
 * A store is used by one thread at a time, and two are not opened at once in one process. Outside a
 * transaction each call is one of its own. */
#ifndef RETRIEVE_STORE_H
#define RETRIEVE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/name.h"
#include "retrieve/filter.h"
#include "retrieve/fuse.h"
#include "retrieve/piece.h"
#include "store/partial.h"

enum { STORE_NAME_MAX = NAME_BYTES_MAX, STORE_SOURCE_MAX = 1024, STORE_METADATA_MAX = 16384 };

/* Of the file's schema. */
#define STORE_VERSION 4
/* What to do about a damaged file, behind DATABASE_DAMAGED. */
#define STORE_LOST "add the documents again, or bring them back with shoal restore"

typedef struct store store;

/* Makes the file and its folder when they are not there. SHOAL_EIO, SHOAL_EAUTH: the sentence names it;
 * SHOAL_EFORMAT: it is damaged, or none of ours; SHOAL_EUNSUPPORTED: a newer Shoal made it. */
int store_open(store **ret, const char *path, shoal_err *err);
/* Somebody has moved, removed or replaced the file since it was opened. */
bool store_has_moved(const store *s);
void store_close(store *s); /* accepts NULL; what was not committed is undone */

/* For whom it works from now on: the digest of an API key, "" for nobody's. What is made is the owner's. An
 * owner finds his own collections and files and those that are shared: a collection says so, and what has no
 * owner is. All else is not there (SHOAL_ENOTFOUND). Borrowed until the next call. */
void store_act_for(store *s, const char *owner);

/* From here on, work on the store is counted there: what is put by its bytes. When it is cancelled a
 * statement that runs, or waits for another process, ends with SHOAL_ECANCELLED. NULL: not any more.
 * Borrowed. */
void store_count(store *s, steps *steps);

/* write: nobody else writes until the end (SHOAL_EUNAVAILABLE when somebody does for 10 s). */
int store_begin(store *s, bool write, shoal_err *err);
int store_commit(store *s, shoal_err *err);
void store_rollback(store *s); /* also when there is nothing to undo */

/* ---- collections ------------------------------------------------------------------------------------ */

typedef struct store_collection {
    int64_t id;
    char name[STORE_NAME_MAX + 1];
    bool owned;                  /* it has an owner; */
    bool own;                    /* who may change it: he asks, or it has none */
    bool shared;                 /* everybody finds it */
    const char *title;           /* what people call it; "" */
    const char *metadata;        /* a JSON object */
    const char *model;           /* that embeds; "": found by words alone */
    const char *digest;          /* of that model's file when the first piece was embedded; "" before */
    uint32_t dims;               /* 0 before */
    uint32_t piece_bytes;        /* of its longest pieces */
    int64_t created;             /* seconds since 1970 */
    int64_t revision, n_removed; /* grow with every change, and with every document that goes */
    int64_t n_documents, n_pieces, n_bytes;
} store_collection;

/* Makes c, whose `shared` counts; its id is set. most: how many its owner may have, 0: any number.
 * SHOAL_EINVALID: the name is taken, or none; SHOAL_ELIMIT: he has as many. */
int store_create(store *s, store_collection *c, int64_t most, shoal_err *err);
/* The owner's, else a shared one. SHOAL_ENOTFOUND. Strings are in `mem`. */
int store_find(store *s, const char *name, arena *mem, store_collection *ret, shoal_err *err);
/* The same to change it: SHOAL_EAUTH when it is shared by another owner. */
int store_find_own(store *s, const char *name, arena *mem, store_collection *ret, shoal_err *err);
/* At most `most` with names behind `after`, in order; strings die with each call. fn not 0: it ends with
 * that. */
int store_each(store *s, const char *after, size_t most, int (*fn)(void *user, const store_collection *c),
               void *user, shoal_err *err);
/* Its title and metadata from now on; NULL: as it is. SHOAL_EAUTH as store_find_own. */
int store_change(store *s, const char *name, const char *title, const char *metadata, shoal_err *err);
/* With all that is in it. SHOAL_EAUTH as store_find_own. */
int store_delete(store *s, const char *name, shoal_err *err);

/* ---- documents -------------------------------------------------------------------------------------- */

typedef struct store_document {
    int64_t id;
    const char *source;   /* a file's path, an address, a title: names it in the collection */
    const char *type;     /* plain_type_name */
    const char *digest;   /* SHA-256 of its bytes and metadata, hex */
    const char *metadata; /* a JSON object */
    int64_t n_bytes, n_pieces, created;
    int64_t file; /* the uploaded file it is, 0: none */
} store_document;

typedef struct store_content { /* of a document that is put */
    const char *text;
    const pieces *cut;
    const float *scales; /* [cut->n]; NULL: no vectors */
    const int8_t *codes; /* [cut->n][dims] */
    uint32_t dims;
    const char *model_digest; /* whose vectors they are; "" without */
} store_content;

/* Puts the document, in place of one with the same source; its id is set, *ret_replaced says so.
 * SHOAL_EDIGEST: the collection has vectors of another model file. Within a transaction that writes. */
int store_put(store *s, const store_collection *c, store_document *d, const store_content *what,
              bool *ret_replaced, shoal_err *err);
/* By its source; SHOAL_ENOTFOUND. Strings are in `mem`. */
int store_document_find(store *s, int64_t collection, const char *source, arena *mem, store_document *ret,
                        shoal_err *err);
int store_document_get(store *s, int64_t collection, int64_t id, arena *mem, store_document *ret,
                       shoal_err *err);
int store_document_of_file(store *s, int64_t collection, int64_t file, arena *mem, store_document *ret,
                           shoal_err *err);
/* At most `most` with ids above `after`, in order; strings die with each call. */
int store_documents(store *s, int64_t collection, int64_t after, size_t most,
                    int (*fn)(void *user, const store_document *d), void *user, shoal_err *err);
/* SHOAL_ENOTFOUND. */
/* Its metadata from now on, within a transaction. */
int store_document_change(store *s, const store_collection *c, int64_t id, const char *metadata,
                          shoal_err *err);
int store_document_delete(store *s, const store_collection *c, int64_t id, shoal_err *err);

/* ---- uploaded files (store_file.c) ------------------------------------------------------------------ */

typedef struct store_file {
    int64_t id, n_bytes, created;
    int64_t expires; /* 0: it stays */
    const char *name, *purpose;
} store_file;

/* For what comes piece by piece (store_spool.c): a nameless file beside the store. */
int store_spool_open(const store *s, partial *ret, shoal_err *err);
/* The first f->n_bytes of one, in a transaction of its own and without having them all in memory; f->id is
 * drawn at random. SHOAL_ELIMIT: it is longer than a row may be. */
int store_file_put_spool(store *s, store_file *f, int fd, shoal_err *err);
/* The same of bytes in memory, within a transaction that writes. */
int store_file_put_bytes(store *s, store_file *f, const void *bytes, size_t n, shoal_err *err);
/* SHOAL_ENOTFOUND. ret_content NULL: not wanted; else it is in `mem`, too. */
int store_file_get(store *s, int64_t id, arena *mem, store_file *ret, const char **ret_content,
                   shoal_err *err);
/* At most `most` behind the file `after` (0: from the first), oldest first, of that purpose (NULL: any); strings die
 * with each call. fn not 0: it ends with that. SHOAL_ENOTFOUND: there is no file `after`. */
int store_files(store *s, int64_t after, const char *purpose, size_t most,
                int (*fn)(void *user, const store_file *f), void *user, shoal_err *err);
/* Documents that were made of it stay. SHOAL_ENOTFOUND; SHOAL_EINVALID: a batch still reads it. */
int store_file_delete(store *s, int64_t id, shoal_err *err);

/* ---- searching (store_search.c) --------------------------------------------------------------------- */

/* The k best pieces by BM25 of the text's words, best first: document, ordinal, bm25 and by_words are set.
 * Returns how many, or a negative code. */
int store_words(store *s, const store_collection *c, const char *text, const filter *f, found *out, size_t k,
                shoal_err *err);
/* Ids of the documents that the filter lets pass, ascending; malloc'd, NULL for none. */
int store_filtered(store *s, const store_collection *c, const filter *f, int64_t **ret, size_t *ret_n,
                   shoal_err *err);

typedef struct store_piece {
    const char *source, *metadata, *title, *text;
    int64_t document, start, end, line, file;
} store_piece;
/* SHOAL_ENOTFOUND: it is gone. Strings are in `mem`. */
int store_piece_get(store *s, int64_t document, uint32_t ordinal, arena *mem, store_piece *ret,
                    shoal_err *err);

/* The vectors of each document of the collection with an id above `after`, in order; borrowed for the call.
 * What the file says is checked: n rows of c->dims. fn not 0: it ends with that. */
int store_vectors(store *s, const store_collection *c, int64_t after,
                  int (*fn)(void *user, int64_t document, const void *scales, const int8_t *codes, size_t n),
                  void *user, shoal_err *err);
/* The ids of all its documents, in order. */
int store_ids(store *s, int64_t collection, int (*fn)(void *user, int64_t id), void *user, shoal_err *err);

#endif
