/* Bodies of /tokenize: a refusal is a 4xx with a sentence; what is taken has a text or messages, and its answer is
 * JSON. The first byte says how many tokens the text has, and whether they have texts. */
#include <stdint.h>
#include <stdlib.h>

#include "dialects/tokens.h"
#include "json/json.h"
#include "memory.h"
#include "messages/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer(const tokens_ask *a, size_t n, const uint8_t *bytes, size_t n_bytes)
{
    Shoal__V1__TokenizeReply r = SHOAL__V1__TOKENIZE_REPLY__INIT;
    ProtobufCBinaryData pieces[4];
    buf out = {0};
    json_t *v = NULL;
    for (size_t i = 0; i < 4; i++)
        pieces[i] = (ProtobufCBinaryData){.data = (uint8_t *)bytes + i % (n_bytes + 1), .len = n_bytes > i};
    r.ids = (int32_t[]){1, 2, 3, INT32_MAX};
    r.n_ids = n;
    r.pieces = pieces;
    r.n_pieces = a->pieces ? n : 0;
    tokens_put(&out, a, &r, 128);
    if (holds(!out.failed)) holds(json_parse(&v, out.data, out.len, "what was put", NULL) == 0);
    json_decref(v);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tokens_ask a;
    json_t *root = NULL;
    api_error e = {0};
    if (size < 1) return 0;
    int rc = fields_parse(&root, (const char *)data + 1, size - 1, &e);
    if (rc == 0) rc = tokens_read(&a, root, &e);
    if (rc != 0) {
        if (rc != e.status || rc < 400 || !e.message[0]) abort();
        holds(rc <= 499);
    } else {
        if (!a.text && !fields_get(root, "messages")) abort();
        answer(&a, data[0] & 3, data, size);
    }
    json_drop(root);
    return 0;
}
