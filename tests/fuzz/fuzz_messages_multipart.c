/* Forms with files: a line of Content-Type, then the body. Parts lie in the body, in order; in pieces of
 * any size they are the same, and errors too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "messages/detect_parse.h"
#include "messages/encode_bytes.h"
#include "messages/multipart.h"
#include "messages/transcribe_parse.h"

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
        if (!p->name[0]) abort();
        if (p->len == 0) continue;
        if (p->data < at || p->len > n || p->data + p->len > body + n) abort();
        at = p->data + p->len;
    }
}

/* What a form in pieces has given so far. */
typedef struct seen {
    const multipart *whole;
    size_t i, at; /* the part that comes, one more than its number, and how much of it */
} seen;

static int see_part(void *user, const multipart_part *head, api_error *e)
{
    seen *s = user;
    if (s->i > 0 && s->at != s->whole->parts[s->i - 1].len) abort();
    if (s->i == s->whole->n || strcmp(head->name, s->whole->parts[s->i].name) != 0 ||
        strcmp(head->filename, s->whole->parts[s->i].filename) != 0)
        abort();
    s->i++;
    s->at = 0;
    return 0;
}

static int see_data(void *user, const char *bytes, size_t n, api_error *e)
{
    seen *s = user;
    const multipart_part *p = &s->whole->parts[s->i - 1];
    if (n == 0 || n > p->len - s->at || memcmp(p->data + s->at, bytes, n) != 0) abort();
    s->at += n;
    return 0;
}

/* Cut anywhere, a form is what it is in one piece. The lengths of the pieces are drawn from the body. */
static void check_pieces(const char *type, const char *body, size_t n)
{
    static multipart whole;
    api_error e = {0}, f = {0};
    int rc = multipart_parse(&whole, type, body, n, &e);
    for (uint32_t step = 1; step < 200; step = step * 5 + 2) {
        seen s = {.whole = &whole};
        multipart_reader r;
        uint32_t draw = step;
        int got =
            multipart_open(&r, type, &(multipart_events){.user = &s, .part = see_part, .data = see_data}, &f);
        for (size_t at = 0, k; got == 0 && at < n; at += k) {
            draw = draw * 1664525u + 1013904223u + (uint8_t)body[at];
            k = step == 1 ? 1 : 1 + (draw >> 16) % step;
            if (k > n - at) k = n - at;
            char *piece = malloc(k); /* exact, and gone when the next comes */
            if (!piece) return;
            memcpy(piece, body + at, k);
            got = multipart_push(&r, piece, k, &f);
            free(piece);
        }
        if (got == 0) got = multipart_close(&r, &f);
        if (got != rc || (rc == 0 && s.i != whole.n)) abort();
        if (rc != 0 && strcmp(e.message, f.message) != 0) abort();
    }
}

static int take_file(void *user, api_error *e)
{
    return 0;
}

static int take_sound(void *user, const char *bytes, size_t n, api_error *e)
{
    *(size_t *)user += n;
    return 0;
}

static void check_upload(const char *type, const char *body, size_t n)
{
    static upload u;
    transcribe_spec s = {0};
    api_error e = {0};
    sha256_digest key, audio = {{0}};
    size_t n_file = 0;
    upload_events ev = {.user = &n_file, .file = take_file, .data = take_sound};
    int rc = upload_open(&u, type, "model=a%20b&prompt=%zz", TRANSCRIBE_FIELDS, &ev, &e);
    if (rc == 0) rc = upload_push(&u, body, n / 2, &e);
    if (rc == 0) rc = upload_push(&u, body + n / 2, n - n / 2, &e);
    if (rc == 0) rc = upload_close(&u, &e);
    if (rc == 0) rc = transcribe_spec_read(&s, n % 2, upload_fields(&u), &e);
    if (rc != 0 && (rc != e.status || rc < 400 || !e.message[0])) abort();
    if (n_file > n || u.text.len > n + 64) abort();
    if (rc == 0 && transcribe_spec_key(&s, "digest", &audio, &key) && s.request.temperature > 0) abort();
    transcribe_spec_done(&s);
    upload_done(&u);
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

static void check_bytes(task_endpoint_id kind, const char *type, const char *body, size_t n)
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
    check_pieces(type, body, n);
    check_upload(type, body, n);
    check_detect(type, body, n);
    check_bytes(ASK_IMAGE, type, body, n);
    check_bytes(ASK_SCORE, type, body, n);
    free(body);
    return 0;
}
