/* encode_parse.c: bodies of the encoder endpoints, checked field by field. Texts stay in the parsed JSON and
 * are lent to protobuf-c from there. */
#include "messages/encode_parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "messages/encode_bytes.h"
#include "messages/fields.h"
#include "json/json.h"
#include "cache/cache_key.h"

void encode_spec_done(encode_spec *s)
{
    free(s->inputs);
    free(s->input_list);
    free(s->ids);
    json_drop(s->root);
    buf_done(&s->bytes);
    *s = (encode_spec){0};
}

static int bad_document(api_error *e, size_t i)
{
    return api_error_bad(e, "documents", "documents[%zu]: must be text without NUL characters", i);
}

/* The query goes with every document as a pair. */
static int read_documents(encode_spec *s, api_error *e)
{
    const char *query = fields_text(fields_get(s->root, "query"));
    const json_t *v = fields_get(s->root, "documents"), *texts = fields_get(s->root, "texts");
    if (v && texts)
        return api_error_bad(e, "texts", "\"texts\" is another name for \"documents\": send one of them");
    if (!v) v = texts;
    if (!query || !*query)
        return api_error_bad(e, "query", "\"query\" must be text without NUL characters, not empty");
    s->n_inputs = json_array_size(v);
    if (s->n_inputs == 0 || s->n_inputs > ENCODE_DOCUMENTS_MAX)
        return api_error_bad(e, "documents", "\"documents\" must be an array of 1 to %d texts",
                             ENCODE_DOCUMENTS_MAX);
    s->inputs = calloc(s->n_inputs, sizeof *s->inputs);
    s->input_list = calloc(s->n_inputs, sizeof *s->input_list);
    if (!s->inputs || !s->input_list) return api_error_nomem(e);
    for (size_t i = 0; i < s->n_inputs; i++) {
        const json_t *d = json_array_get(v, i);
        const char *text = fields_text(json_is_object(d) ? fields_get(d, "text") : d);
        if (!text) return bad_document(e, i); /* an empty one is as far from the query as may be */
        s->inputs[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        s->inputs[i].text = (char *)query;
        s->inputs[i].pair = (char *)text;
        s->inputs[i].has_pair = 1;
        s->input_list[i] = &s->inputs[i];
    }
    return 0;
}

static int bad_input(const encode_spec *s, size_t i, api_error *e)
{
    return api_error_bad(e, "input", "input[%zu]: must be text without NUL characters%s, not empty", i,
                         s->kind == ASK_EMBED ? " or an array of token ids" : "");
}

/* Token ids, as OpenAI's clients send them; the worker knows the vocabulary that they must be of. */
static int read_ids(encode_spec *s, const json_t *v, size_t i, api_error *e)
{
    Shoal__V1__TextInput *in = &s->inputs[i];
    if (json_array_size(v) == 0) return bad_input(s, i, e);
    in->ids = s->ids + s->n_ids;
    for (; in->n_ids < json_array_size(v); in->n_ids++) {
        const json_t *id = json_array_get(v, in->n_ids);
        json_int_t x = json_integer_value(id);
        if (!json_is_integer(id) || x < 0 || x > INT32_MAX)
            return api_error_bad(e, "input", "input[%zu]: token ids must be integers from 0 to 2147483647",
                                 i);
        s->ids[s->n_ids++] = (int32_t)x;
    }
    return 0;
}

/* Room for the ids of all inputs. */
static int make_ids(encode_spec *s, const json_t *inputs, bool many, api_error *e)
{
    size_t n = many ? 0 : json_array_size(inputs);
    for (size_t i = 0; many && i < s->n_inputs; i++) n += json_array_size(json_array_get(inputs, i));
    if (n == 0 || s->kind != ASK_EMBED) return 0;
    s->ids = calloc(n, sizeof *s->ids);
    return s->ids ? 0 : api_error_nomem(e);
}

/* "text", or {"text": ..., "pair": ...} where the endpoint takes pairs, or [1, 2] where it takes ids. */
static int read_one(encode_spec *s, const json_t *v, size_t i, api_error *e)
{
    Shoal__V1__TextInput *in = &s->inputs[i];
    *in = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
    s->input_list[i] = in;
    const json_t *pair = json_is_object(v) && s->kind == ASK_CLASSIFY ? fields_get(v, "pair") : NULL;
    const json_t *text = json_is_object(v) && s->kind == ASK_CLASSIFY ? fields_get(v, "text") : v;
    if (json_is_array(v) && s->kind == ASK_EMBED) return read_ids(s, v, i, e);
    in->text = (char *)fields_text(text);
    if (!in->text || !*in->text) return bad_input(s, i, e);
    if (!pair) return 0;
    in->pair = (char *)fields_text(pair);
    in->has_pair = 1;
    return in->pair ? 0 : api_error_bad(e, "pair", "input[%zu].pair: must be text without NUL characters", i);
}

/* A top-level "pair" goes with every input that has none of its own. */
static int read_pair(encode_spec *s, api_error *e)
{
    const char *pair = NULL;
    int rc = s->kind == ASK_CLASSIFY ? fields_str(s->root, "pair", &pair, e) : 0;
    for (size_t i = 0; rc == 0 && pair && i < s->n_inputs; i++) {
        if (s->inputs[i].has_pair) continue;
        s->inputs[i].pair = (char *)pair;
        s->inputs[i].has_pair = 1;
    }
    return rc;
}

/* A list of parts is one input, as OpenAI has it: their texts, a line each, take the place of "input". */
static int join_parts(encode_spec *s, const json_t *parts, api_error *e)
{
    buf all = {0};
    size_t i;
    json_t *part;
    json_array_foreach((json_t *)parts, i, part)
    {
        const char *type = fields_text(json_object_get(part, "type")),
                   *text = fields_text(json_object_get(part, "text"));
        if (!type || strcmp(type, "text") != 0 || !text) {
            buf_done(&all);
            return api_error_bad(
                e, "input",
                "input[%zu]: must be a part of type \"text\": models here that moderate read text", i);
        }
        if (all.len > 0) buf_putc(&all, '\n');
        buf_puts(&all, text);
    }
    json_t *joined = all.failed ? NULL : json_stringn(all.data ? all.data : "", all.len);
    int rc = json_object_set_new(s->root, "input", joined);
    buf_done(&all);
    return rc == 0 ? 0 : api_error_nomem(e);
}

static int bad_inputs(const encode_spec *s, api_error *e)
{
    return api_error_bad(e, "input", "\"input\" must be text%s or an array of %s",
                         s->kind == ASK_EMBED ? ", an array of token ids" : "",
                         s->kind == ASK_EMBED ? "these" : "texts");
}

static int read_inputs(encode_spec *s, api_error *e)
{
    const json_t *v = fields_get(s->root, "input");
    if (s->kind == ASK_MODERATE && json_is_object(json_array_get(v, 0))) {
        int rc = join_parts(s, v, e);
        if (rc != 0) return rc;
        v = fields_get(s->root, "input");
    }
    if (!v && s->kind != ASK_EMBED) v = fields_get(s->root, "text");
    if (!json_is_array(v) && !json_is_string(v) && !json_is_object(v)) return bad_inputs(s, e);
    bool many = json_is_array(v) && !(s->kind == ASK_EMBED && json_is_integer(json_array_get(v, 0)));
    size_t most = s->kind == ASK_EMBED ? ENCODE_EMBED_MAX : ENCODE_INPUTS_MAX;
    s->n_inputs = many ? json_array_size(v) : 1;
    if (s->n_inputs == 0 || s->n_inputs > most)
        return api_error_bad(e, "input", "\"input\" has %zu entries, must be 1 to %zu", s->n_inputs, most);
    s->inputs = calloc(s->n_inputs, sizeof *s->inputs);
    s->input_list = calloc(s->n_inputs, sizeof *s->input_list);
    if (!s->inputs || !s->input_list) return api_error_nomem(e);
    int rc = make_ids(s, v, many, e);
    for (size_t i = 0; rc == 0 && i < s->n_inputs; i++)
        rc = read_one(s, many ? json_array_get(v, i) : v, i, e);
    return rc == 0 ? read_pair(s, e) : rc;
}

/* vLLM's truncate_prompt_tokens (-1: what the model takes) and the boolean of other servers. */
static int read_truncate(encode_spec *s, api_error *e)
{
    bool cut = false;
    int64_t n = 0;
    int rc = fields_bool(s->root, "truncate", &cut, e);
    if (rc == 0) rc = fields_int(s->root, "truncate_prompt_tokens", -1, INT32_MAX, &n, e);
    if (rc != 0) return rc;
    s->truncate_tokens = n > 0 ? (uint32_t)n : n < 0 || cut ? UINT32_MAX : 0;
    return 0;
}

static int read_options(encode_spec *s, api_error *e)
{
    const char *format = NULL;
    int rc = fields_str(s->root, "model", &s->model, e);
    if (rc == 0 && (s->kind == ASK_CLASSIFY || s->kind == ASK_IMAGE))
        rc = fields_int(s->root, "top_k", 1, 100000, &s->top_k, e);
    if (rc == 0 && s->kind == ASK_FILL_MASK)
        rc = fields_int(s->root, "top_k", 1, ENCODE_GUESSES_MAX, &s->top_k, e);
    if (rc == 0 && s->kind == ASK_RERANK) {
        rc = fields_int(s->root, "top_n", 1, 100000, &s->top_k, e);
        if (rc == 0) rc = fields_bool(s->root, "return_documents", &s->documents, e);
    }
    if (rc != 0 || s->kind != ASK_EMBED) return rc;
    rc = fields_str(s->root, "encoding_format", &format, e);
    if (rc == 0) rc = read_truncate(s, e);
    if (rc == 0) rc = fields_int(s->root, "dimensions", 1, 1000000, &s->dimensions, e);
    if (rc != 0 || !format || strcmp(format, "float") == 0) return rc;
    s->base64 = strcmp(format, "base64") == 0;
    return s->base64 ? 0 : api_error_bad(e, "encoding_format", "\"encoding_format\" must be float or base64");
}

static int read_asked(encode_spec *s, api_error *e)
{
    switch (s->kind) {
    case ASK_RERANK: return read_documents(s, e);
    case ASK_SCORE: s->n_inputs = 1; return encode_bytes_score(s, e);
    case ASK_IMAGE: s->n_inputs = 1; return encode_bytes_image(s, e);
    default: return read_inputs(s, e);
    }
}

int encode_spec_parse(encode_spec *ret, task_endpoint_id kind, const char *body, size_t len, api_error *e)
{
    encode_spec s = {.kind = kind};
    int rc = fields_parse(&s.root, body, len, e);
    if (rc == 0) rc = read_options(&s, e);
    if (rc == 0) rc = read_asked(&s, e);
    if (rc == 0)
        *ret = s;
    else
        encode_spec_done(&s);
    return rc;
}

bool encode_spec_key(const encode_spec *s, const char *identity, const char *adapter_digest,
                     sha256_digest *ret)
{
    cache_key *k = cache_key_new(TASK_ENDPOINTS[s->kind].name);
    cache_key_str(k, "model", s->model); /* the answer's body names it */
    cache_key_str(k, "identity", identity);
    cache_key_str(k, "adapter", adapter_digest);
    cache_key_bytes(k, "bytes", s->bytes.data, s->bytes.len);
    for (size_t i = 0; s->inputs && i < s->n_inputs; i++) {
        cache_key_str(k, "text", s->inputs[i].text);
        if (s->inputs[i].ids)
            cache_key_bytes(k, "ids", s->inputs[i].ids, s->inputs[i].n_ids * sizeof *s->ids);
        cache_key_str(k, "pair", s->inputs[i].has_pair ? s->inputs[i].pair : NULL);
    }
    cache_key_int(k, "base64", s->base64);
    cache_key_int(k, "dimensions", s->dimensions);
    cache_key_int(k, "truncate", s->truncate_tokens);
    cache_key_int(k, "top_k", s->top_k);
    cache_key_int(k, "documents", s->documents);
    for (size_t i = 0; i < s->n_safe; i++) cache_key_str(k, "safe", s->safe[i]);
    cache_key_num(k, "min_score", s->min_score);
    return cache_key_end(k, ret);
}
