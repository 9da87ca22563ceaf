/* stream_id.c: ids as bytes and letters; see stream_id.h. */
#include "messages/stream_id.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bit_identity.h"
#include "base/cur.h"
#include "base/sha256.h"
#include "base/utf8.h"

#define VERSION     1
#define ZONE_BIAS   64 /* hours ahead run from -12 to +14 */
#define ZONE_MAX    128
#define CREATED_MAX ((uint64_t)1 << 40)
#define FNV_BASIS   2166136261u
#define FNV_PRIME   16777619u
#define USAGE_SENT  1
#define MARK_BEGUN  1
#define MARK_ENDED  2
#define MARK_SHIFT  2
#define NUMBER_MOST 10 /* bytes of a varint of 64 bits */
#define HEAD_BYTES  (4 + STREAM_REQUEST_BYTES + STREAM_MODEL_BYTES + STREAM_NONCE_BYTES + NUMBER_MOST)
#define MARK_BYTES  ((MARK_PARTS + 2) * NUMBER_MOST + sizeof(uint32_t))

/* ---- marks --------------------------------------------------------------------------------------- */

/* FNV-1a (Fowler, Noll, Vo), 32 bits: it finds answers that came out differently, not those who forge. */
static uint32_t fnv(uint32_t h, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)s[i]) * FNV_PRIME;
    return h;
}

static uint32_t sum_of(const stream_mark *m)
{
    uint32_t h = FNV_BASIS;
    for (int i = 0; i < MARK_PARTS; i++) h = (h ^ m->sums[i]) * FNV_PRIME;
    return h;
}

void stream_mark_init(stream_mark *m)
{
    *m = (stream_mark){0};
    for (int i = 0; i < MARK_PARTS; i++) m->sums[i] = FNV_BASIS;
    m->sum = sum_of(m);
}

void stream_id_init(stream_id *s, size_t n_choices)
{
    assert(n_choices >= 1 && n_choices <= STREAM_CHOICES_MAX);
    *s = (stream_id){.n_choices = n_choices};
    for (size_t k = 0; k < n_choices; k++) stream_mark_init(&s->marks[k]);
}

void stream_mark_text(stream_mark *m, mark_part part, const char *s, size_t n)
{
    m->n_bytes[part] += n;
    m->sums[part] = fnv(m->sums[part], s, n);
    m->sum = sum_of(m);
}

bool stream_mark_equal_text(const stream_mark *a, const stream_mark *b)
{
    for (int i = 0; i < MARK_PARTS; i++)
        if (a->n_bytes[i] != b->n_bytes[i]) return false;
    return a->sum == b->sum;
}

bool stream_id_is_whole(const stream_id *s, bool with_usage)
{
    for (size_t k = 0; k < s->n_choices; k++)
        if (!s->marks[k].finished) return false;
    return s->usage_sent || !with_usage;
}

void stream_id_model(uint8_t ret[STREAM_MODEL_BYTES], const char *identity, const char *adapter_digest)
{
    char file[BIT_IDENTITY_BYTES], both[BIT_IDENTITY_BYTES + 80];
    sha256_digest d;
    int n = snprintf(both, sizeof both, "%s+%.72s", bit_identity_short(file, identity), adapter_digest);
    sha256_of(both, (size_t)n, &d);
    memcpy(ret, d.bytes, STREAM_MODEL_BYTES);
}

/* ---- bytes --------------------------------------------------------------------------------------- */

/* Each puts what it has at `to`, and returns where the next one goes. An id is put with every event. */

static uint8_t *stream_id_put_number(uint8_t *to, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) *to++ = (uint8_t)(v | 0x80);
    *to++ = (uint8_t)v;
    return to;
}

static uint8_t *stream_id_put_bytes(uint8_t *to, const void *bytes, size_t n)
{
    memcpy(to, bytes, n);
    return to + n;
}

static uint8_t *put_mark(uint8_t *to, const stream_mark *m)
{
    for (int i = 0; i < MARK_PARTS; i++) to = stream_id_put_number(to, m->n_bytes[i]);
    to = stream_id_put_number(to, (uint64_t)m->n_logprobs << MARK_SHIFT | (m->finished ? MARK_ENDED : 0) |
                                      (m->begun ? MARK_BEGUN : 0));
    to = stream_id_put_number(to, m->max_tokens);
    return stream_id_put_bytes(to, &m->sum, sizeof m->sum);
}

void stream_id_put(buf *out, const stream_id *s)
{
    uint8_t bytes[HEAD_BYTES + STREAM_CHOICES_MAX * MARK_BYTES], *to = bytes;
    *to++ = VERSION;
    to = stream_id_put_bytes(to, s->request, sizeof s->request);
    to = stream_id_put_bytes(to, s->model, sizeof s->model);
    to = stream_id_put_bytes(to, s->nonce, sizeof s->nonce);
    to = stream_id_put_number(to, (uint64_t)s->created);
    *to++ = (uint8_t)(s->zone + ZONE_BIAS);
    *to++ = s->usage_sent ? USAGE_SENT : 0;
    *to++ = (uint8_t)s->n_choices;
    for (size_t k = 0; k < s->n_choices; k++) to = put_mark(to, &s->marks[k]);
    base64_encode(out, bytes, (size_t)(to - bytes));
}

static uint64_t take_number(cur *c, uint64_t max)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 63; shift += 7) {
        uint8_t byte = cur_u8(c);
        v |= (uint64_t)(byte & 0x7F) << shift;
        if (byte & 0x80) continue;
        if (v > max) c->failed = true;
        return c->failed ? 0 : v;
    }
    c->failed = true;
    return 0;
}

static void take_bytes(cur *c, uint8_t *ret, size_t n)
{
    const uint8_t *p = cur_take(c, n);
    if (p) memcpy(ret, p, n);
}

static void take_mark(cur *c, stream_mark *m)
{
    *m = (stream_mark){0};
    for (int i = 0; i < MARK_PARTS; i++) m->n_bytes[i] = take_number(c, UINT32_MAX);
    uint64_t v = take_number(c, (uint64_t)UINT32_MAX << MARK_SHIFT | MARK_ENDED | MARK_BEGUN);
    m->n_logprobs = (uint32_t)(v >> MARK_SHIFT);
    m->begun = v & MARK_BEGUN;
    m->finished = v & MARK_ENDED;
    m->max_tokens = (uint32_t)take_number(c, UINT32_MAX);
    m->sum = cur_u32(c);
}

static bool stream_id_take(cur *c, stream_id *s)
{
    if (cur_u8(c) != VERSION) return false;
    take_bytes(c, s->request, sizeof s->request);
    take_bytes(c, s->model, sizeof s->model);
    take_bytes(c, s->nonce, sizeof s->nonce);
    s->created = (int64_t)take_number(c, CREATED_MAX);
    uint8_t zone = cur_u8(c), flags = cur_u8(c);
    s->zone = (int)zone - ZONE_BIAS;
    s->usage_sent = flags & USAGE_SENT;
    s->n_choices = cur_u8(c);
    if (c->failed || zone > ZONE_MAX || flags > USAGE_SENT || s->n_choices == 0 ||
        s->n_choices > STREAM_CHOICES_MAX)
        return false;
    for (size_t k = 0; k < s->n_choices; k++) take_mark(c, &s->marks[k]);
    return !c->failed && cur_left(c) == 0;
}

/* One id has one spelling. */
static bool is_spelt(const stream_id *s, const char *text, size_t n)
{
    buf again = {0};
    stream_id_put(&again, s);
    bool same = !again.failed && again.len == n && memcmp(again.data, text, n) == 0;
    buf_done(&again);
    return same;
}

int stream_id_parse(stream_id *ret, const char *text, size_t n, shoal_err *err)
{
    buf bytes = {0};
    stream_id s = {0};
    int rc = n > 0 && n <= STREAM_ID_LETTERS ? base64_decode(&bytes, text, n) : SHOAL_EFORMAT;
    bool good = rc == 0;
    if (good) {
        cur c = cur_over(bytes.data, bytes.len);
        good = stream_id_take(&c, &s) && is_spelt(&s, text, n);
    }
    buf_done(&bytes);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (!good)
        return err_set(
            err, SHOAL_EFORMAT,
            "this is no event id of this version of Shoal: send the id of the last event as it came, "
            "or send the request without Last-Event-ID for a new answer");
    *ret = s;
    return 0;
}
