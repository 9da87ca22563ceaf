/* Bodies of the OpenAI endpoints and of those for encoders, tables and pictures: the first byte picks the
 * endpoint. A refusal is a 4xx with a sentence; what is taken becomes model calls that pack, and a cache
 * key. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "messages/encode_bytes.h"
#include "base/sha256.h"
#include "dialects/openai.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refused(const api_error *e, int rc)
{
    buf out = {0};
    if (rc != e->status || rc < 400 || !e->type || !e->message[0]) abort();
    holds(rc <= 499);
    api_error_put(&out, e);
    json_t *object = out.failed ? NULL : json_loadb(out.data, out.len, 0, NULL);
    holds(object); /* clients read it as JSON, whatever of theirs it quotes */
    json_decref(object);
    buf_done(&out);
}

static void generate(const char *body, size_t n, bool chat)
{
    gen_spec *s = NULL;
    api_error e = {0};
    int rc = chat ? openai_spec_parse_chat(&s, body, n, &e) : openai_spec_parse_completion(&s, body, n, &e);
    if (rc) {
        refused(&e, rc);
        return;
    }
    size_t n_choices = openai_spec_choices(s);
    if (n_choices == 0 || n_choices > GEN_CHOICES_MAX) abort();
    for (size_t k = 0; k < n_choices; k++) {
        Shoal__V1__GenerateRequest r;
        Shoal__V1__Sampling sampling;
        openai_spec_fill(s, k, &r, &sampling);
        size_t size = shoal__v1__generate_request__get_packed_size(&r);
        uint8_t *packed = malloc(size + 1);
        if (packed && shoal__v1__generate_request__pack(&r, packed) != size) abort();
        Shoal__V1__GenerateRequest *again =
            packed ? shoal__v1__generate_request__unpack(NULL, size, packed) : NULL;
        if (holds(again) && again->max_tokens != s->max_tokens) abort();
        shoal__v1__generate_request__free_unpacked(again, NULL);
        free(packed);
    }
    sha256_digest key;
    Shoal__V1__ModelInfo model = SHOAL__V1__MODEL_INFO__INIT;
    model.digest = "digest";
    if (openai_spec_key(s, &model, "", &key) && !openai_spec_is_deterministic(s)) abort();
    openai_spec_free(s);
}

static void encode(const char *body, size_t n, task_endpoint_id kind)
{
    encode_spec s = {0};
    api_error e = {0};
    int rc = encode_spec_parse(&s, kind, body, n, &e);
    if (rc) {
        refused(&e, rc);
        return;
    }
    if (s.n_inputs == 0 || s.n_inputs > ENCODE_EMBED_MAX) abort();
    sha256_digest key;
    encode_spec_key(&s, "digest", "", &key);
    encode_spec_done(&s);
}

/* The query is the first line, the rest the body. */
static void raw(const char *text, size_t n, task_endpoint_id kind)
{
    const char *end = n ? memchr(text, '\n', n) : NULL;
    size_t n_query = end ? (size_t)(end - text) : 0;
    char *query = strndup(text, n_query);
    encode_spec s = {0};
    api_error e = {0};
    if (!holds(query)) return;
    const char *body = end ? end + 1 : text;
    size_t len = (size_t)(text + n - body);
    int rc = encode_bytes_raw(&s, kind, query, body, len, &e);
    free(query);
    if (rc) {
        refused(&e, rc);
        return;
    }
    if (s.n_inputs != 1 || s.bytes.len != len) abort();
    sha256_digest key;
    encode_spec_key(&s, "digest", "", &key);
    encode_spec_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const char *body = (const char *)data + 1;
    switch (data[0]) {
    case 'e': encode(body, size - 1, ASK_EMBED); break;
    case 'l': encode(body, size - 1, ASK_CLASSIFY); break;
    case 't': encode(body, size - 1, ASK_TAG); break;
    case 'r': encode(body, size - 1, ASK_RERANK); break;
    case 's': encode(body, size - 1, ASK_SCORE); break;
    case 'i': encode(body, size - 1, ASK_IMAGE); break;
    case 'S': raw(body, size - 1, ASK_SCORE); break;
    case 'I': raw(body, size - 1, ASK_IMAGE); break;
    default: generate(body, size - 1, data[0] != 'p');
    }
    return 0;
}
