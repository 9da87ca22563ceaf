/* batch_line.h: the input of a batch: lines of JSON, one request each; pure.
 *
 *     {"custom_id": "a1", "method": "POST", "url": "/v1/embeddings", "body": {"model": "home-embed", "input": "x"}}
 *
 * A reader takes the file in pieces of any size and hands out its lines; a line is parsed when it is checked, and again
 * when it is asked. Lines of white space count, and are not requests.
 *
 *     batch_reader_push(&r, bytes, n, on_line, user, err);   ...
 *     batch_reader_end(&r, on_line, user, err);
 *
 * What is wrong with a line is a batch_fault, in OpenAI's words. */
#ifndef BATCHES_BATCH_LINE_H
#define BATCHES_BATCH_LINE_H

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

enum { BATCH_CUSTOM_ID_MAX = 512 };

typedef struct batch_fault {
    const char *code, *param; /* static; param NULL: none */
    char message[256];
} batch_fault;

typedef struct batch_line {
    const char *custom_id;     /* root's */
    const struct json_t *body; /* root's, an object */
    struct json_t *root;       /* owned; json_drop */
} batch_line;

/* The endpoints that a batch may ask, with NULL behind them. */
extern const char *const BATCH_ENDPOINTS[];
bool batch_endpoint_is_known(const char *path);

/* One line, for a batch of `endpoint`. 0; SHOAL_EINVALID with *ret_fault; or SHOAL_ENOMEM. */
int batch_line_parse(batch_line *ret, const char *text, size_t n, const char *endpoint,
                     batch_fault *ret_fault);
/* What is sent: the body, less what a request of a batch cannot have. */
int batch_line_put_body(buf *out, const batch_line *l, const char *endpoint);

typedef struct batch_reader {
    size_t most_bytes;      /* of a line; a longer one is handed out with text NULL */
    buf rest;               /* of a line that has not ended */
    bool over;              /* and is too long */
    int64_t n;              /* lines handed out */
    int64_t start, n_bytes; /* where it began in the file, and how much of it has come */
} batch_reader;
/* A line without its newline. Not 0: the reader ends with it. */
typedef int batch_line_fn(void *user, int64_t n, int64_t start, int64_t n_bytes, const char *text,
                          shoal_err *err);
int batch_reader_push(batch_reader *r, const char *bytes, size_t n, batch_line_fn *fn, void *user,
                      shoal_err *err);
int batch_reader_end(batch_reader *r, batch_line_fn *fn, void *user, shoal_err *err);
void batch_reader_done(batch_reader *r);

#endif
