/* service_text.c: texts and token ids, without the network: Tokenize, Detokenize, Render. Each runs on a
 * thread of the pool, so that nobody's reply waits for a long one. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/prompt.h"
#include "worker/service.h"

enum { TEXT_MAX_BYTES = 1 << 20, IDS_MAX = 1 << 20, LIGHT_BYTES = 64 << 10 };

/* ---- on a thread of the pool --------------------------------------------------------------------- */

typedef struct text_call text_call;

typedef struct text_kind {
    const char *method;
    const ProtobufCMessageDescriptor *request;
    int (*run)(text_call *t, shoal_err *err); /* fills t's reply */
} text_kind;

struct text_call {
    pool_job work; /* first */
    const text_kind *kind;
    worker *w;
    grpc_call *call; /* NULL once it has gone */
    call_trace trace;
    ProtobufCMessage *request;
    const ProtobufCMessage *reply; /* one of these */
    Shoal__V1__TokenizeReply tokens;
    Shoal__V1__DetokenizeReply text;
    Shoal__V1__RenderReply rendered;
    const tokenizer *tok;
    encoding enc;
    ProtobufCBinaryData *pieces;
    buf bytes;
    shoal_err err; /* code 0: it went well */
};

static void text_free(text_call *t)
{
    if (t->request) protobuf_c_message_free_unpacked(t->request, NULL);
    encoding_done(&t->enc);
    free(t->pieces);
    buf_done(&t->bytes);
    free(t);
}

static void text_run(pool_job *work)
{
    text_call *t = (text_call *)work;
    t->err.code = t->kind->run(t, &t->err);
}

static void text_has_run(pool_job *work, bool ran)
{
    text_call *t = (text_call *)work;
    worker *w = t->w;
    if (t->call && t->err.code != 0)
        service_call_refuse(w, t->call, &t->trace, &t->err);
    else if (t->call)
        service_call_reply(w, t->call, t->reply);
    text_free(t);
    service_blocking_ended(w);
}

static void text_call_gone(void *user, grpc_call *c)
{
    text_call *t = user;
    t->call = NULL;
    pool_drop(&t->w->pool, &t->work); /* may free it */
}

static int text_prepare(text_call *t, const uint8_t *msg, size_t n, shoal_err *err)
{
    int rc = backend_tokenizer(&t->w->backend, "", &t->tok, err);
    if (rc == 0 && t->w->draining) rc = err_set(err, SHOAL_EUNAVAILABLE, "%s is shutting down", t->w->name);
    if (rc == 0) rc = service_check_blocking(t->w, err);
    if (rc == 0) rc = service_call_unpack(t->kind->request, msg, n, &t->request, err);
    if (rc == 0) pool_start(&t->w->pool, &t->work, n > LIGHT_BYTES, text_run, text_has_run);
    return rc;
}

static void text_start(worker *w, grpc_call *c, const text_kind *kind, const uint8_t *msg, size_t n)
{
    text_call *t = calloc(1, sizeof *t);
    if (!t) {
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    t->kind = kind;
    t->w = w;
    t->call = c;
    service_call_begin(w, c, kind->method, &t->trace);
    shoal_err err;
    if (text_prepare(t, msg, n, &err) != 0) {
        service_call_refuse(w, c, &t->trace, &err);
        text_free(t);
        return;
    }
    w->blocking.n++;
    grpc_call_on_cancel(c, text_call_gone, t);
}

/* ---- Tokenize ------------------------------------------------------------------------------------ */

static int text_tokenize(const tokenizer *t, const Shoal__V1__TokenizeRequest *r, encoding *ret,
                         shoal_err *err)
{
    const Shoal__V1__TextInput *in = r->input;
    if (!in) return err_set(err, SHOAL_EINVALID, "input is missing");
    size_t n = strlen(in->text), n_pair = strlen(in->pair);
    if (n > TEXT_MAX_BYTES || n_pair > TEXT_MAX_BYTES)
        return err_set(err, SHOAL_ELIMIT, "the text has %zu bytes: at most %d are turned into tokens at once",
                       n > n_pair ? n : n_pair, TEXT_MAX_BYTES);
    unsigned flags = (r->plain ? 0 : TOK_PARSE_SPECIAL) | (r->no_special ? 0 : TOK_ADD_SPECIAL);
    return tokenizer_encode(t, in->text, n, in->has_pair ? in->pair : NULL, n_pair, flags, 0, ret, err);
}

/* The bytes are the tokeniser's. */
static int find_pieces(text_call *t, shoal_err *err)
{
    t->pieces = calloc(t->enc.n + 1, sizeof *t->pieces);
    if (!t->pieces) return err_nomem(err);
    for (size_t i = 0; i < t->enc.n; i++)
        t->pieces[i].data =
            (uint8_t *)tokenizer_bytes(t->tok, t->enc.ids[i], &t->pieces[i].len, &(bool){false});
    return 0;
}

static int run_tokenize(text_call *t, shoal_err *err)
{
    const Shoal__V1__TokenizeRequest *r = (const Shoal__V1__TokenizeRequest *)t->request;
    int rc = text_tokenize(t->tok, r, &t->enc, err);
    if (rc == 0 && r->pieces) rc = find_pieces(t, err);
    t->tokens = (Shoal__V1__TokenizeReply)SHOAL__V1__TOKENIZE_REPLY__INIT;
    t->tokens.ids = t->enc.ids;
    t->tokens.n_ids = t->enc.n;
    t->tokens.pieces = t->pieces;
    t->tokens.n_pieces = t->pieces ? t->enc.n : 0;
    t->reply = &t->tokens.base;
    return rc;
}

void service_tokenize(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    static const text_kind KIND = {"Tokenize", &shoal__v1__tokenize_request__descriptor, run_tokenize};
    text_start(user, c, &KIND, msg, n);
}

/* ---- Detokenize ---------------------------------------------------------------------------------- */

static int text_detokenize(const tokenizer *t, const Shoal__V1__DetokenizeRequest *r, buf *ret,
                           shoal_err *err)
{
    size_t len;
    if (r->n_ids > IDS_MAX)
        return err_set(err, SHOAL_ELIMIT, "%zu tokens: at most %d are turned into text at once", r->n_ids,
                       IDS_MAX);
    for (size_t i = 0; i < r->n_ids; i++)
        if (!tokenizer_bytes(t, r->ids[i], &len, &(bool){false}))
            return err_set(err, SHOAL_EINVALID, "token %zu: there is no id %d; the vocabulary has %zu", i,
                           (int)r->ids[i], tokenizer_vocab_size(t));
    return tokenizer_decode(t, r->ids, r->n_ids, true, ret) == 0 ? 0 : err_nomem(err);
}

static int run_detokenize(text_call *t, shoal_err *err)
{
    int rc = text_detokenize(t->tok, (const Shoal__V1__DetokenizeRequest *)t->request, &t->bytes, err);
    t->text = (Shoal__V1__DetokenizeReply)SHOAL__V1__DETOKENIZE_REPLY__INIT;
    t->text.text = (ProtobufCBinaryData){.data = (uint8_t *)t->bytes.data, .len = t->bytes.len};
    t->reply = &t->text.base;
    return rc;
}

void service_detokenize(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    static const text_kind KIND = {"Detokenize", &shoal__v1__detokenize_request__descriptor, run_detokenize};
    text_start(user, c, &KIND, msg, n);
}

/* ---- Render -------------------------------------------------------------------------------------- */

static int run_render(text_call *t, shoal_err *err)
{
    int rc = prompt_render(t->w, (const Shoal__V1__RenderRequest *)t->request, &t->bytes, err);
    t->rendered = (Shoal__V1__RenderReply)SHOAL__V1__RENDER_REPLY__INIT;
    t->rendered.text = (ProtobufCBinaryData){t->bytes.len, (uint8_t *)t->bytes.data};
    t->reply = &t->rendered.base;
    return rc;
}

void service_render(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    static const text_kind KIND = {"Render", &shoal__v1__render_request__descriptor, run_render};
    text_start(user, c, &KIND, msg, n);
}
