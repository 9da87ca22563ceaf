/* shoal logits MODEL: every output of a network for token ids or the tensors of a file, for checking engines.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/models/logits_input.h"
#include "command/cli_model.h"

/* ---- what an encoder makes of an input ----------------------------------------------------------- */

typedef struct answer {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    int status;
    char message[256];
    float *values;
    size_t rows, cols;
} answer;

static void on_encoded(void *user, const enc_result *r)
{
    answer *a = user;
    pthread_mutex_lock(&a->lock);
    a->status = r->status;
    snprintf(a->message, sizeof a->message, "%s", r->message ? r->message : "");
    a->rows = r->rows;
    a->cols = r->cols;
    a->values = r->status ? NULL : malloc(r->rows * r->cols * sizeof *a->values);
    if (a->values) memcpy(a->values, r->values, r->rows * r->cols * sizeof *a->values);
    if (r->status == 0 && !a->values) a->status = SHOAL_ENOMEM;
    a->done = true;
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->lock);
}

/* ret->values[rows][cols] is the caller's to free. */
static int encode(engine *e, const enc_request *r, answer *ret, shoal_err *err)
{
    uint64_t id;
    *ret = (answer){0};
    pthread_mutex_init(&ret->lock, NULL);
    pthread_cond_init(&ret->wake, NULL);
    int rc = engine_encode(e, r, on_encoded, ret, &id, err);
    if (rc == 0) {
        pthread_mutex_lock(&ret->lock);
        while (!ret->done) pthread_cond_wait(&ret->wake, &ret->lock);
        pthread_mutex_unlock(&ret->lock);
        if (ret->status) rc = err_set(err, ret->status, "%s", ret->message);
    }
    pthread_mutex_destroy(&ret->lock);
    pthread_cond_destroy(&ret->wake);
    return rc;
}

/* ---- printing ------------------------------------------------------------------------------------ */

/* One line a row; what: "position", "encoder". */
static void put_lines(buf *out, const char *what, const float *v, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++) {
        size_t best = 0;
        for (size_t k = 1; k < cols; k++)
            if (v[i * cols + k] > v[i * cols + best]) best = k;
        if (out->len) buf_putc(out, '\n');
        buf_printf(out, "%s %zu: best id %zu, logit %.6g", what, i, best, (double)v[i * cols + best]);
    }
}

static void cmd_logits_put_rows(buf *out, const char *key, const float *v, size_t rows, size_t cols)
{
    buf_printf(out, "%s\"%s\":[", out->len ? "," : "{", key);
    for (size_t i = 0; i < rows; i++) {
        if (i) buf_putc(out, ',');
        cli_put_floats(out, v + i * cols, cols);
    }
    buf_putc(out, ']');
}

/* ---- the command --------------------------------------------------------------------------------- */

typedef struct asked {
    int32_t *ids, *decoder;
    size_t n_ids, n_decoder, last;
    logits_input in;
    bool json, encoder;
} asked;

static void asked_done(asked *q)
{
    free(q->ids);
    free(q->decoder);
    logits_input_done(&q->in);
}

static int put_encoded(const asked *q, engine *e, const enc_request *r, const char *key, const char *line,
                       buf *out, shoal_err *err)
{
    answer a;
    int rc = encode(e, r, &a, err);
    if (rc == 0 && q->json) cmd_logits_put_rows(out, key, a.values, a.rows, a.cols);
    if (rc == 0 && !q->json) put_lines(out, line, a.values, a.rows, a.cols);
    free(a.values);
    return rc;
}

/* Next-token logits of ids, behind a source. */
static int put_decoded(const asked *q, const cli_engine *c, const enc_request *source, const int32_t *ids,
                       size_t n, buf *out, shoal_err *err)
{
    size_t rows = q->last == 0 || q->last > n ? n : q->last, cols = model_get_config(c->m)->n_vocab;
    float *logits = calloc(rows * cols, sizeof *logits);
    int rc = logits ? engine_logits(c->e, source, ids, n, rows, logits, err) : err_nomem(err);
    if (rc == 0 && q->json) cmd_logits_put_rows(out, "logits", logits, rows, cols);
    if (rc == 0 && !q->json) put_lines(out, "position", logits, rows, cols);
    free(logits);
    return rc;
}

/* An encoder-decoder: the source, and how the reply goes on. */
static int put_both(const asked *q, const cli_engine *c, const enc_request *source, buf *out, shoal_err *err)
{
    int rc = 0;
    if (!q->n_decoder && !q->encoder)
        return err_set(err, SHOAL_EINVALID,
                       "an encoder-decoder wants --decoder-ids beside its source (%d begins a reply), or "
                       "--encoder",
                       model_get_config(c->m)->start_id);
    if (q->encoder || q->json) rc = put_encoded(q, c->e, source, "encoder", "encoder row", out, err);
    if (rc == 0 && q->n_decoder) rc = put_decoded(q, c, source, q->decoder, q->n_decoder, out, err);
    return rc;
}

static int put_all(const asked *q, const cli_engine *c, buf *out, shoal_err *err)
{
    model_task task = model_get_config(c->m)->task;
    bool both = task == TASK_SEQ2SEQ || task == TASK_TRANSCRIBE;
    enc_request r = {.ids = q->ids, .n_ids = q->n_ids};
    if (q->n_decoder && !both)
        return err_set(err, SHOAL_EINVALID,
                       "--decoder-ids are for encoder-decoders; this is a model for \"%s\"", task_name(task));
    if (task == TASK_GENERATE && q->in.features)
        return err_set(err, SHOAL_EINVALID, "this model reads tokens: give --ids");
    if (task == TASK_GENERATE) return put_decoded(q, c, NULL, q->ids, q->n_ids, out, err);
    if (both && q->in.n > 1)
        return err_set(err, SHOAL_EINVALID, "the file has %zu sources: give one at a time", q->in.n);
    if (q->in.features) r = logits_input_at(&q->in, 0);
    if (both) return put_both(q, c, &r, out, err);
    int rc = put_encoded(q, c->e, &r, "logits", "row", out, err);
    for (size_t i = 1; rc == 0 && i < q->in.n; i++) {
        r = logits_input_at(&q->in, i);
        /* Further inputs go on in the same list. */
        if (q->json && out->len) out->data[out->len - 1] = ',';
        buf more = {0};
        rc = put_encoded(q, c->e, &r, "logits", "row", &more, err);
        static const char head[] = "{\"logits\":[";
        size_t skip = q->json && more.len >= sizeof head - 1 ? sizeof head - 1 : 0;
        if (!q->json) buf_putc(out, '\n');
        if (more.len) buf_append(out, more.data + skip, more.len - skip);
        out->failed |= more.failed;
        buf_done(&more);
    }
    return rc;
}

static int cmd_logits_run(int argc, char **argv)
{
    cli_model_options mo = {0};
    const char *ids_text = NULL, *decoder_text = NULL, *file = NULL;
    long long last = 0;
    asked q = {0};
    const cli_option options[] = {
        CLI_STRING(0, "ids", "1,2,3", "the prompt or the source as token ids", &ids_text),
        CLI_STRING(0, "decoder-ids", "1,2", "encoder-decoders: how the reply begins", &decoder_text),
        CLI_STRING(0, "input", "FILE", "safetensors with px, x or mel instead of --ids", &file),
        CLI_FLAG(0, "encoder", "encoder-decoders: the encoder's rows, too", &q.encoder),
        CLI_INT(0, "last", "N", 1, 1 << 20, "only the last N positions [all]", &last),
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&q.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_logits, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    cli_engine c = {0};
    buf out = {0};
    q.last = (size_t)last;
    rc = !ids_text == !file ? err_set(&err, SHOAL_EINVALID, "give --ids or --input, and one of them alone")
                            : 0;
    if (rc == 0 && ids_text) rc = logits_ids(ids_text, "--ids", &q.ids, &q.n_ids, &err);
    if (rc == 0 && decoder_text)
        rc = logits_ids(decoder_text, "--decoder-ids", &q.decoder, &q.n_decoder, &err);
    if (rc == 0 && file) rc = logits_input_read(&q.in, file, &err);
    if (rc == 0) rc = cli_engine_open(&c, a.v[0], &mo, true, &err);
    if (rc == 0) rc = put_all(&q, &c, &out, &err);
    if (rc == 0 && q.json) buf_putc(&out, '}');
    rc = rc ? cli_fail(&cmd_logits, &err) : cli_print(&out);
    buf_done(&out);
    asked_done(&q);
    cli_engine_close(&c);
    return rc;
}

const cli_command cmd_logits = {"logits", "show a network's raw output for token ids or tensors",
                                "MODEL --ids 1,2,3|--input FILE", cmd_logits_run, false};
