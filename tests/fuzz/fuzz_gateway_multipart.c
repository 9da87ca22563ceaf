/* Forms with files: a line of Content-Type, then the body. Parts lie in the body, in order, and what is taken
 * packs to a model call with the file's very bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/detect_parse.h"
#include "gateway/encode_bytes.h"
#include "gateway/multipart.h"
#include "gateway/transcribe_parse.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parts(const char *type, const char *body, size_t n)
{
    static multipart m;
    api_error e = {0};
    int rc = multipart_parse(&m, type, body, n, &e);
    if (rc != 0) {
        if (rc != e.status || (rc != 400 && rc != 415) || !e.message[0]) abort();
        return;
    }
    const char *at = body;
    for (size_t i = 0; i < m.n; i++) {
        const multipart_part *p = &m.parts[i];
        if (p->data < at || p->len > n || p->data + p->len > body + n || !p->name[0]) abort();
        at = p->data + p->len;
    }
}

static void check_spec(const char *type, const char *body, size_t n)
{
    transcribe_spec s = {0};
    api_error e = {0};
    sha256_digest key;
    int rc = transcribe_spec_parse(&s, n % 2, type, body, n, &e);
    if (rc != 0) {
        if (rc != e.status || rc < 400) abort();
        return;
    }
    const ProtobufCBinaryData *audio = &s.request.audio;
    if (audio->len == 0 || (const char *)audio->data < body || audio->len > n) abort();
    if (transcribe_spec_key(&s, "digest", &key) && s.request.temperature > 0) abort();
    size_t size = shoal__v1__transcribe_request__get_packed_size(&s.request);
    uint8_t *packed = malloc(size + 1);
    if (packed && shoal__v1__transcribe_request__pack(&s.request, packed) != size) abort();
    Shoal__V1__TranscribeRequest *again =
        packed ? shoal__v1__transcribe_request__unpack(NULL, size, packed) : NULL;
    if (holds(again) &&
        (again->audio.len != audio->len || memcmp(again->audio.data, audio->data, audio->len)))
        abort();
    shoal__v1__transcribe_request__free_unpacked(again, NULL);
    free(packed);
    transcribe_spec_done(&s);
}

static void check_detect(const char *type, const char *body, size_t n)
{
    detect_spec s;
    api_error e = {0};
    int rc = detect_spec_parse(&s, type, body, n, &e);
    if (rc != 0) {
        if (rc != e.status || rc < 400 || !e.message[0]) abort();
        return;
    }
    if ((const char *)s.request.audio.data < body || s.request.audio.len > n) abort();
}

static void check_bytes(encode_kind kind, const char *type, const char *body, size_t n)
{
    encode_spec s = {0};
    api_error e = {0};
    int rc = encode_bytes_form(&s, kind, type, body, n, &e);
    if (rc != 0) {
        if (rc != e.status || rc < 400 || !e.message[0] || s.root) abort();
        return;
    }
    if (s.bytes.len == 0 || s.bytes.len > n || s.n_inputs != 1) abort();
    encode_spec_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = memchr(data, '\n', size);
    size_t n_type = line ? (size_t)(line - data) : 0;
    if (!line || n_type > 1024 || memchr(data, '\0', n_type)) return 0;
    char type[1025];
    memcpy(type, data, n_type);
    type[n_type] = '\0';
    size_t n = size - n_type - 1;
    char *body = malloc(n ? n : 1); /* exact, so that a byte too far is seen */
    if (!body) return 0;
    memcpy(body, line + 1, n);
    check_parts(type, body, n);
    check_spec(type, body, n);
    check_detect(type, body, n);
    check_bytes(ENCODE_IMAGE, type, body, n);
    check_bytes(ENCODE_SCORE, type, body, n);
    free(body);
    return 0;
}
