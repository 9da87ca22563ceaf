/* websocket_deflate.c: offers of permessage-deflate, and the payloads. */
#include "http/websocket_deflate.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/loop_work.h"
#include "wire/coding.h"

enum { WINDOW_BITS_MIN = 9, PIECE_BYTES = 16 << 10, TAIL_BYTES = 4 };

/* A packed message ends where these would follow (RFC 7692 7.2.1). */
static const uint8_t TAIL[TAIL_BYTES] = {0, 0, 0xFF, 0xFF};

/* ---- the offer ----------------------------------------------------------------------------------- */

typedef struct word {
    const char *at;
    size_t n;
} word;

static word next_word(const char **s)
{
    *s += strspn(*s, " \t");
    word w = {*s, strcspn(*s, " \t;,=")};
    *s += w.n;
    *s += strspn(*s, " \t");
    return w;
}

static bool websocket_deflate_is(word w, const char *name)
{
    return strlen(name) == w.n && strncasecmp(w.at, name, w.n) == 0;
}

/* 8 to 15, perhaps in quotes; 0: something else. */
static int read_bits(const char **s)
{
    word w = next_word(s);
    if (w.n > 2 && *w.at == '"' && w.at[w.n - 1] == '"') w = (word){w.at + 1, w.n - 2};
    if (w.n == 1 && (*w.at == '8' || *w.at == '9')) return *w.at - '0';
    if (w.n == 2 && *w.at == '1' && w.at[1] >= '0' && w.at[1] <= '5') return 10 + w.at[1] - '0';
    return 0;
}

/* Parameters, each at most once; false: this offer cannot be kept. What the client's window may be does not
 * matter to who takes every one. */
static bool read_parameters(const char **s, int *ret_bits, bool *ret_limits)
{
    static const char *const NAMES[] = {"server_no_context_takeover", "client_no_context_takeover",
                                        "server_max_window_bits", "client_max_window_bits"};
    unsigned seen = 0;
    while (**s == ';') {
        (*s)++;
        word name = next_word(s);
        size_t k = 0;
        while (k < 4 && !websocket_deflate_is(name, NAMES[k])) k++;
        if (k == 4 || seen & 1u << k) return false;
        seen |= 1u << k;
        bool has_value = **s == '=';
        if (has_value) (*s)++;
        int bits = has_value ? read_bits(s) : 0;
        if (has_value != (k == 2) && k != 3) return false;
        if (has_value && (!bits || k < 2)) return false;
        if (k == 2) {
            *ret_bits = bits;
            *ret_limits = true;
        }
    }
    return **s == ',' || !**s;
}

int websocket_deflate_choose(const char *offers, char answer[WEBSOCKET_DEFLATE_ANSWER])
{
    for (const char *s = offers; s && *s;) {
        int bits = MAX_WBITS;
        bool limits = false;
        bool ours = websocket_deflate_is(next_word(&s), "permessage-deflate") &&
                    read_parameters(&s, &bits, &limits) &&
                    bits >= WINDOW_BITS_MIN; /* zlib has no smaller window */
        if (ours) {
            int n = snprintf(answer, WEBSOCKET_DEFLATE_ANSWER,
                             "permessage-deflate; server_no_context_takeover; client_no_context_takeover");
            if (limits)
                snprintf(answer + n, WEBSOCKET_DEFLATE_ANSWER - (size_t)n, "; server_max_window_bits=%d",
                         bits);
            return bits;
        }
        s += strcspn(s, ",");
        if (*s) s++;
    }
    return 0;
}

/* ---- payloads ------------------------------------------------------------------------------------ */

int websocket_deflate_pack(const void *bytes, size_t n, int window_bits, buf *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)n};
    int bits = WINDOW_BITS_MIN;
    while (bits < window_bits && ((size_t)1 << bits) < n) bits++; /* a short message needs no wide window */
    int memory = bits - 7 < 8 ? bits - 7 : 8;
    if (n > UINT32_MAX / 2 || deflateInit2(&z, 1, Z_DEFLATED, -bits, memory, Z_DEFAULT_STRATEGY) != Z_OK)
        return SHOAL_ENOMEM;
    size_t most = deflateBound(&z, (uLong)n) + 64;
    int rc = buf_reserve(out, most);
    if (rc == 0) {
        z.next_out = (Bytef *)out->data + out->len;
        z.avail_out = (uInt)most;
        if (deflate(&z, Z_SYNC_FLUSH) != Z_OK || z.avail_in) rc = SHOAL_ENOMEM;
        out->len += most - z.avail_out - TAIL_BYTES;
        out->data[out->len] = '\0';
    }
    deflateEnd(&z);
    return rc;
}

/* All of z's input, of a message of n_packed bytes; what comes out of it is at most `room` bytes more, and no more
 * than coding.h lets a body become. */
static int inflate_all(z_stream *z, size_t n_packed, size_t *room, buf *out)
{
    uint8_t piece[PIECE_BYTES];
    for (;;) {
        z->next_out = piece;
        z->avail_out = sizeof piece;
        int rc = inflate(z, Z_SYNC_FLUSH);
        size_t got = sizeof piece - z->avail_out;
        if (got > *room) return SHOAL_ELIMIT;
        if (z->total_out > CODING_RATIO_FREE && z->total_out / CODING_RATIO_MAX > n_packed)
            return SHOAL_ELIMIT;
        *room -= got;
        loop_work_add(got);
        if (got && buf_append(out, piece, got) != 0) return SHOAL_ENOMEM;
        if (rc == Z_MEM_ERROR) return SHOAL_ENOMEM;
        if (rc == Z_STREAM_END) { /* a block that says it is the last is not (RFC 7692 7.2.3.4) */
            if (inflateReset(z) != Z_OK) return SHOAL_ENOMEM;
            if (z->avail_in) continue;
            return 0;
        }
        if (rc != Z_OK && rc != Z_BUF_ERROR) return SHOAL_EFORMAT;
        if (z->avail_out > 0) return z->avail_in ? SHOAL_EFORMAT : 0;
    }
}

int websocket_deflate_unpack(const void *bytes, size_t n, size_t max_bytes, buf *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)n};
    size_t room = max_bytes;
    if (n > UINT32_MAX) return SHOAL_ELIMIT;
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return SHOAL_ENOMEM;
    int rc = inflate_all(&z, n, &room, out);
    if (rc == 0) {
        z.next_in = (Bytef *)(uintptr_t)TAIL;
        z.avail_in = sizeof TAIL;
        rc = inflate_all(&z, n, &room, out);
    }
    inflateEnd(&z);
    return rc;
}
