/* service_text.c: texts and token ids, without the network: Tokenize, Detokenize, Render. Loop thread: what
 * is long is refused, so that nobody waits for it. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/prompt.h"
#include "worker/service.h"

enum { TEXT_MAX_BYTES = 1 << 20, IDS_MAX = 1 << 20 };

static int find_tokenizer(const worker *w, const tokenizer **ret, shoal_err *err)
{
    if (!w->model) return err_set(err, SHOAL_EUNSUPPORTED, "%s is made of trees and reads no text", w->name);
    if (w->stage)
        return err_set(err, SHOAL_EUNSUPPORTED, "this is one stage of %s: ask its first stage", w->name);
    *ret = model_tokenizer(w->model);
    return *ret ? 0 : err_set(err, SHOAL_EUNSUPPORTED, "%s: %s", w->name, model_tokenizer_error(w->model));
}

/* ---- Tokenize ------------------------------------------------------------------------------------ */

static int tokenize(const tokenizer *t, const Shoal__V1__TokenizeRequest *r, encoding *ret, shoal_err *err)
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
static int find_pieces(const tokenizer *t, const encoding *e, ProtobufCBinaryData **ret, shoal_err *err)
{
    ProtobufCBinaryData *pieces = calloc(e->n + 1, sizeof *pieces);
    if (!pieces) return err_nomem(err);
    for (size_t i = 0; i < e->n; i++)
        pieces[i].data = (uint8_t *)tokenizer_bytes(t, e->ids[i], &pieces[i].len, &(bool){false});
    *ret = pieces;
    return 0;
}

void service_tokenize(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    worker *w = user;
    call_trace trace;
    service_call_begin(w, c, "Tokenize", &trace);
    ProtobufCMessage *r = NULL;
    const tokenizer *t;
    encoding e = {0};
    Shoal__V1__TokenizeReply m = SHOAL__V1__TOKENIZE_REPLY__INIT;
    shoal_err err;
    int rc = service_call_unpack(&shoal__v1__tokenize_request__descriptor, msg, n, &r, &err);
    const Shoal__V1__TokenizeRequest *asked = (const Shoal__V1__TokenizeRequest *)r;
    if (rc == 0) rc = find_tokenizer(w, &t, &err);
    if (rc == 0) rc = tokenize(t, asked, &e, &err);
    if (rc == 0 && asked->pieces) rc = find_pieces(t, &e, &m.pieces, &err);
    m.ids = e.ids;
    m.n_ids = e.n;
    m.n_pieces = m.pieces ? e.n : 0;
    if (rc != 0)
        service_call_refuse(w, c, &trace, &err);
    else
        service_call_reply(w, c, &m.base);
    free(m.pieces);
    encoding_done(&e);
    protobuf_c_message_free_unpacked(r, NULL);
}

/* ---- Detokenize ---------------------------------------------------------------------------------- */

static int detokenize(const tokenizer *t, const Shoal__V1__DetokenizeRequest *r, buf *ret, shoal_err *err)
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

void service_detokenize(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    worker *w = user;
    call_trace trace;
    service_call_begin(w, c, "Detokenize", &trace);
    ProtobufCMessage *r = NULL;
    const tokenizer *t;
    buf text = {0};
    Shoal__V1__DetokenizeReply m = SHOAL__V1__DETOKENIZE_REPLY__INIT;
    shoal_err err;
    int rc = service_call_unpack(&shoal__v1__detokenize_request__descriptor, msg, n, &r, &err);
    if (rc == 0) rc = find_tokenizer(w, &t, &err);
    if (rc == 0) rc = detokenize(t, (const Shoal__V1__DetokenizeRequest *)r, &text, &err);
    m.text = (ProtobufCBinaryData){.data = (uint8_t *)text.data, .len = text.len};
    if (rc != 0)
        service_call_refuse(w, c, &trace, &err);
    else
        service_call_reply(w, c, &m.base);
    buf_done(&text);
    protobuf_c_message_free_unpacked(r, NULL);
}

/* ---- Render -------------------------------------------------------------------------------------- */

void service_render(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    worker *w = user;
    call_trace trace;
    service_call_begin(w, c, "Render", &trace);
    ProtobufCMessage *r = NULL;
    const tokenizer *t;
    buf text = {0};
    Shoal__V1__RenderReply m = SHOAL__V1__RENDER_REPLY__INIT;
    shoal_err err;
    int rc = service_call_unpack(&shoal__v1__render_request__descriptor, msg, n, &r, &err);
    if (rc == 0) rc = find_tokenizer(w, &t, &err);
    if (rc == 0) rc = prompt_render(w, (const Shoal__V1__RenderRequest *)r, &text, &err);
    if (text.data) m.text = text.data;
    if (rc != 0)
        service_call_refuse(w, c, &trace, &err);
    else
        service_call_reply(w, c, &m.base);
    buf_done(&text);
    protobuf_c_message_free_unpacked(r, NULL);
}
