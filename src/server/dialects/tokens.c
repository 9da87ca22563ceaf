/* tokens.c: see tokens.h. */
#include "dialects/tokens.h"

#include "dialects/llama.h"
#include "json/json.h"
#include "messages/fields.h"

static int read_llama(tokens_ask *a, const json_t *root, api_error *e)
{
    bool parse = true;
    int rc = fields_str(root, "content", &a->text, e);
    if (rc == 0) rc = fields_bool(root, "add_special", &a->special, e);
    if (rc == 0) rc = fields_bool(root, "parse_special", &parse, e);
    if (rc == 0) rc = fields_bool(root, "with_pieces", &a->pieces, e);
    a->plain = !parse;
    return rc;
}

/* A template has put the special tokens of messages. */
static int read_vllm(tokens_ask *a, const json_t *root, api_error *e)
{
    a->vllm = true;
    a->special = fields_get(root, "prompt") != NULL;
    int rc = fields_str(root, "prompt", &a->text, e);
    if (rc == 0) rc = fields_bool(root, "add_special_tokens", &a->special, e);
    return rc == 0 ? fields_bool(root, "return_token_strs", &a->pieces, e) : rc;
}

int tokens_read(tokens_ask *ret, const json_t *root, api_error *e)
{
    *ret = (tokens_ask){0};
    if (fields_get(root, "content")) return read_llama(ret, root, e);
    if (fields_get(root, "prompt") || fields_get(root, "messages")) return read_vllm(ret, root, e);
    return api_error_bad(e, "content",
                         "\"content\" (or \"prompt\", or \"messages\") is missing: the text to be tokenised");
}

static void put_texts(buf *out, const Shoal__V1__TokenizeReply *r)
{
    buf_puts(out, ",\"token_strs\":[");
    for (size_t i = 0; i < r->n_pieces; i++) {
        if (i) buf_putc(out, ',');
        json_put_string(out, (const char *)r->pieces[i].data, r->pieces[i].len);
    }
    buf_putc(out, ']');
}

void tokens_put(buf *out, const tokens_ask *a, const Shoal__V1__TokenizeReply *r, uint32_t max_model_len)
{
    Shoal__V1__TokenizeReply ids = *r;
    if (a->vllm) ids.n_pieces = 0;
    buf_puts(out, "{\"tokens\":");
    llama_put_tokens(out, &ids);
    buf_printf(out, ",\"count\":%zu,\"max_model_len\":%u", r->n_ids, max_model_len);
    if (a->vllm && a->pieces) put_texts(out, r);
    buf_putc(out, '}');
}
