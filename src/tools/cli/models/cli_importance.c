/* cli_importance.c: a text through a model, for its matrices to be watched. */
#define _GNU_SOURCE /* memrchr */
#include "cli/models/cli_importance.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "command/cli.h"
#include "infer/engine.h"
#include "model/model.h"

enum { WINDOW_TOKENS = 512, PIECE_BYTES = 1 << 20, TEXT_MAX_BYTES = 64 << 20 };

typedef struct reading {
    model *m;
    engine *e;
    float *row;               /* logits, or what one window leaves */
    size_t n_tokens, n_bytes; /* read so far; of the text */
    cli_importance_progress *progress;
    void *user;
    shoal_err *err;
} reading;

/* `done` bytes of the text have been read. */
static int cli_importance_tell(const reading *r, size_t done)
{
    if (!r->progress || r->progress(r->user, done, r->n_bytes) == 0) return 0;
    return err_set(r->err, SHOAL_ECANCELLED, "stopped at byte %zu of %zu of the text; nothing was written",
                   done, r->n_bytes);
}

/* ---- decoders: all tokens in windows ------------------------------------------------------------------- */

/* text[0..len) is at `before` of the whole. */
static int read_windows(reading *r, const char *text, size_t len, size_t before)
{
    encoding e = {0};
    size_t most = engine_ctx(r->e) < WINDOW_TOKENS ? engine_ctx(r->e) : WINDOW_TOKENS;
    int rc = tokenizer_encode(model_tokenizer(r->m), text, len, NULL, 0, TOK_ADD_SPECIAL, 0, &e, r->err);
    for (size_t at = 0; rc == 0 && at < e.n; at += most) {
        size_t n = e.n - at < most ? e.n - at : most;
        rc = engine_logits(r->e, NULL, e.ids + at, n, 1, r->row, r->err);
        r->n_tokens += n;
        if (rc == 0)
            rc = cli_importance_tell(r, before + (size_t)((double)len * (double)(at + n) / (double)e.n));
    }
    encoding_done(&e);
    return rc;
}

/* Bytes of a piece of text[0..len): to the end of its last line, or of a character, so that a long text is
 * read while its end has no tokens yet. */
static size_t piece_bytes(const char *text, size_t len)
{
    if (len <= PIECE_BYTES) return len;
    const char *line = memrchr(text, '\n', PIECE_BYTES);
    size_t n = line ? (size_t)(line - text) + 1 : PIECE_BYTES;
    while (n > 1 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    return n;
}

static int read_pieces(reading *r, const char *text)
{
    int rc = 0;
    for (size_t at = 0, n; rc == 0 && at < r->n_bytes; at += n) {
        n = piece_bytes(text + at, r->n_bytes - at);
        rc = read_windows(r, text + at, n, at);
    }
    return rc;
}

/* ---- encoders: a line at a time ------------------------------------------------------------------------ */

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int status;
} gate;

static void on_encoded(void *user, const enc_result *result)
{
    gate *g = user;
    pthread_mutex_lock(&g->lock);
    g->done = true;
    g->status = result->status;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static int encode_line(reading *r, const char *line, size_t len)
{
    encoding e = {0};
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    uint64_t id;
    int rc = tokenizer_encode(model_tokenizer(r->m), line, len, NULL, 0, TOK_ADD_SPECIAL, 0, &e, r->err);
    if (rc == 0) {
        encoding_truncate(&e, engine_ctx(r->e));
        r->n_tokens += e.n;
        enc_request request = {.ids = e.ids, .type_ids = e.type_ids, .n_ids = e.n};
        rc = engine_encode(r->e, &request, on_encoded, &g, &id, r->err);
    }
    if (rc == 0) {
        pthread_mutex_lock(&g.lock);
        while (!g.done) pthread_cond_wait(&g.changed, &g.lock);
        pthread_mutex_unlock(&g.lock);
        if (g.status != 0) rc = err_set(r->err, g.status, "the model could not read a line of the text");
    }
    encoding_done(&e);
    return rc;
}

static int read_lines(reading *r, const char *text)
{
    int rc = 0;
    for (size_t at = 0; rc == 0 && text[at];) {
        size_t n = strcspn(text + at, "\r\n");
        if (n > 0) rc = encode_line(r, text + at, n);
        at += n;
        at += strspn(text + at, "\r\n");
        if (rc == 0) rc = cli_importance_tell(r, at);
    }
    return rc;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static int cli_importance_read_text(reading *r, const char *file)
{
    buf text = {0};
    const model_config *c = model_get_config(r->m);
    if (!model_tokenizer(r->m))
        return err_set(r->err, SHOAL_EUNSUPPORTED, "%s: %s", model_name(r->m), model_tokenizer_error(r->m));
    if (c->task == TASK_SEQ2SEQ || c->task >= TASK_TRANSCRIBE)
        return err_set(r->err, SHOAL_EUNSUPPORTED,
                       "what matters to a model for %s cannot be learned from a text; leave --importance out",
                       task_name(c->task));
    int rc = file_read(&text, file, TEXT_MAX_BYTES, r->err);
    if (rc == 0 && buf_reserve(&text, 0) != 0) rc = err_nomem(r->err); /* an empty file, too, is a string */
    if (rc == 0 && memchr(text.data, '\0', text.len))
        rc = err_set(r->err, SHOAL_EINVALID, "%s holds a NUL byte: it is not text", file);
    if (rc == 0 && strspn(text.data, " \t\r\n") == text.len)
        rc = err_set(r->err, SHOAL_EINVALID, "%s is empty: nothing to learn importance from", file);
    if (rc == 0 && !(r->row = malloc(c->n_vocab * sizeof *r->row))) rc = err_nomem(r->err);
    r->n_bytes = text.len;
    if (rc == 0) rc = c->task == TASK_GENERATE ? read_pieces(r, text.data) : read_lines(r, text.data);
    free(r->row);
    buf_done(&text);
    return rc;
}

int cli_importance(importance **ret, const char *path, const char *text, cli_importance_progress *progress,
                   void *user, size_t *ret_tokens, shoal_err *err)
{
    importance *imp = NULL;
    reading r = {.progress = progress, .user = user, .err = err};
    int rc = importance_new(&imp, err);
    if (rc == 0) rc = cli_opened(model_open(&r.m, path, NULL, err), err);
    if (rc == 0) {
        model_measure(r.m, imp);
        rc = engine_new(&r.e, r.m, &(engine_options){0}, err);
    }
    if (rc == 0) rc = cli_importance_read_text(&r, text);
    engine_free(r.e);
    model_free(r.m);
    if (rc == 0) {
        *ret = imp;
        *ret_tokens = r.n_tokens;
    } else {
        importance_free(imp);
    }
    return rc;
}
