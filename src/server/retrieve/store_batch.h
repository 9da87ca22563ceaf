/* store_batch.h: batches of requests as they are kept, beside the files that they read and write.
 *
 * A batch names its input file and has a row for each line of it: where the line lies, its custom_id, and, once it has
 * been answered, the line of the output. A line is answered in one transaction, and once: a second answer changes
 * nothing. So whoever runs a batch may be killed at any time, and goes on with the lines that have no answer.
 *
 *     validating ──► in_progress ──► finalizing ──► completed, expired
 *          │              └─► cancelling ─────────► cancelled
 *          └─► failed        (and from everywhere, where answers cannot be written)
 *
 * Like all of store.h: one thread a store; SHOAL_ENOTFOUND of a batch that is another owner's. */
#ifndef RETRIEVE_STORE_BATCH_H
#define RETRIEVE_STORE_BATCH_H

#include "retrieve/store.h"

/* X(enum, name, column of the time at which it became so, it ends there) */
#define BATCH_STATUS_TABLE(X)                                    \
    X(BATCH_VALIDATING, "validating", "created_at", false)       \
    X(BATCH_IN_PROGRESS, "in_progress", "in_progress_at", false) \
    X(BATCH_FINALIZING, "finalizing", "finalizing_at", false)    \
    X(BATCH_COMPLETED, "completed", "completed_at", true)        \
    X(BATCH_FAILED, "failed", "failed_at", true)                 \
    X(BATCH_EXPIRED, "expired", "expired_at", true)              \
    X(BATCH_CANCELLING, "cancelling", "cancelling_at", false)    \
    X(BATCH_CANCELLED, "cancelled", "cancelled_at", true)
typedef enum batch_status {
#define BATCH_STATUS_ENUM(e, name, column, ends) e,
    BATCH_STATUS_TABLE(BATCH_STATUS_ENUM)
#undef BATCH_STATUS_ENUM
        BATCH_N_STATUS
} batch_status;
const char *batch_status_name(batch_status s);
const char *batch_status_time(batch_status s); /* "in_progress_at" */
bool batch_status_ends(batch_status s);

/* In whose words it was made, and is answered. */
typedef enum batch_dialect { BATCH_OPENAI, BATCH_ANTHROPIC } batch_dialect;

typedef struct store_batch {
    int64_t id;
    batch_dialect dialect;
    batch_status status;
    const char *owner;            /* whose files it reads and writes; "": nobody's */
    const char *key;              /* SHA-256 of the API key that made it, hex; "": none */
    const char *endpoint;         /* "/v1/chat/completions" */
    const char *window;           /* as it was asked for: "24h" */
    const char *metadata;         /* a JSON object, or "null" */
    const char *errors;           /* of one that failed: a JSON list; "" */
    int64_t input, output, error; /* ids of files; 0: none */
    int64_t at[BATCH_N_STATUS];   /* seconds since 1970; 0: it was never so */
    int64_t expires;              /* when what is not answered is given up */
    int64_t keep_s;               /* how long its output files stay; 0: as long as the server's others */
    int64_t n_lines, n_completed,
        n_failed; /* which is answered with an error, or, as n_missing of them, not at all */
    int64_t n_missing;
    int64_t n_bytes; /* of answers that are in no file yet */
} store_batch;

/* b->at[0] is now. Its id is drawn at random. most: how many of its owner may be open, 0: any number; over it
 * SHOAL_ELIMIT. SHOAL_ENOTFOUND: there is no such file. SHOAL_EINVALID: it is no input of his. */
int store_batch_create(store *s, store_batch *b, int64_t most, shoal_err *err);
/* Strings are in `mem`. */
int store_batch_get(store *s, int64_t id, batch_dialect d, arena *mem, store_batch *ret, shoal_err *err);
/* At most `most` behind the batch `after` (0: from the first), newest first; strings die with each call. */
int store_batches(store *s, batch_dialect d, int64_t after, size_t most,
                  int (*fn)(void *user, const store_batch *b), void *user, shoal_err *err);
/* Of all owners those that have not ended, oldest first. */
int store_batches_open(store *s, int (*fn)(void *user, const store_batch *b), void *user, shoal_err *err);
/* What has not begun is given up. SHOAL_EINVALID: it has ended. */
int store_batch_cancel(store *s, int64_t id, batch_dialect d, int64_t now, shoal_err *err);
/* One that has ended, with its files. SHOAL_EINVALID: it has not. */
int store_batch_delete(store *s, int64_t id, batch_dialect d, shoal_err *err);

/* ---- running it: of any owner ------------------------------------------------------------------------- */

typedef struct store_batch_line {
    int64_t n;              /* from 1 */
    int64_t start, n_bytes; /* in the input file */
    const char *custom_id;
} store_batch_line;

/* n_bytes of the input file from `start` into `to`. SHOAL_ENOTFOUND: it is gone. */
int store_file_read(store *s, int64_t id, int64_t start, int64_t n_bytes, char *to, shoal_err *err);
/* How long a file is, of any owner. */
int store_file_size(store *s, int64_t id, int64_t *ret, shoal_err *err);
/* It was validated: its lines, and that it runs. Does nothing to one that is not validating. */
int store_batch_begin(store *s, int64_t id, const store_batch_line *lines, size_t n, int64_t now,
                      shoal_err *err);
/* It cannot run: errors is a JSON list. */
int store_batch_fail(store *s, int64_t id, const char *errors, int64_t now, shoal_err *err);
/* Its answers cannot be written: it ends as failed, whatever it was, and has no answers. A small write, and where there is
 * room what it took is freed. */
int store_batch_give_up(store *s, int64_t id, const char *errors, int64_t now, shoal_err *err);
/* The first line behind `after` that has no answer. 1, 0 where there is none, or a negative code. */
int store_batch_next(store *s, int64_t id, int64_t after, arena *mem, store_batch_line *ret, shoal_err *err);
/* The answer of a line, without a newline. SHOAL_ELIMIT: with it the owner's batches would take more than most_bytes,
 * or the batch more than a file can have. What was answered already, or is of a batch that has ended, stays as it is. */
int store_batch_answer(store *s, int64_t id, int64_t n, bool ok, const buf *answer, int64_t most_bytes,
                       shoal_err *err);
/* What the files of all batches of the one whom s acts for take, and their answers. */
int store_batch_bytes(store *s, int64_t *ret, shoal_err *err);
/* Ends it: what was answered goes into its files, and for each line that was not `missing` writes an answer. In a first
 * transaction it becomes finalizing, in a second one it ends; both may come again after a crash. */
typedef struct store_batch_end {
    int64_t now;
    const char *output_name, *error_name;
    void (*missing)(void *user, const store_batch *b, batch_status ends, const store_batch_line *l, buf *out);
    void *user;
} store_batch_end;
int store_batch_finish(store *s, int64_t id, const store_batch_end *e, batch_status *ret_ended,
                       shoal_err *err);
/* Batches that ended keep_s ago go with their files, and so do files whose own time is over; *ret: how many rows. */
int store_batch_sweep(store *s, int64_t now, int64_t keep_s, int64_t *ret, shoal_err *err);

#endif
