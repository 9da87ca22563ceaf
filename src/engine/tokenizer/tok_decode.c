/* tok_decode.c: ids -> text, whole or streamed, by the same steps.
 *
 * What a token stands for is worked out once, at load (bytes[]). Decoding then only needs to know
 * whether the token is the first. Byte tokens of a broken character become one U+FFFD for each maximal
 * broken part, as in byte-level vocabularies: the reference gives one for each byte of "<0x..>"
 * vocabularies, after looking at all the byte tokens that follow, which a stream cannot do. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/tok_internal.h"
#include "tokenizer/tok_letter.h"

/* ---- what tokens stand for ---- */

/* Append the bytes that a byte-level piece spells; false (and nothing) when a character is no letter. */
static bool unletter(buf *out, const char *s, size_t n)
{
    size_t start = out->len;
    for (size_t at = 0; at < n;) {
        uint32_t cp = 0;
        size_t k = utf8_decode(s + at, n - at, &cp);
        int byte = k ? tok_letter_byte(cp) : -1;
        if (byte < 0) {
            out->len = start;
            return false;
        }
        buf_putc(out, (char)byte);
        at += k;
    }
    return true;
}

static void replaced(buf *out, const char *s, size_t n, const char *from, size_t from_len, const char *to,
                     size_t to_len)
{
    for (size_t at = 0; at < n;) {
        bool hit = from_len && n - at >= from_len && !memcmp(s + at, from, from_len);
        buf_append(out, hit ? to : s + at, hit ? to_len : 1);
        at += hit ? from_len : 1;
    }
}

static bool is_byte_token(const char *s, size_t n, char *ret)
{
    uint8_t byte;
    if (n != 6 || memcmp(s, "<0x", 3) || s[5] != '>' || !hex_decode(s + 3, 2, &byte, 1)) return false;
    *ret = (char)byte;
    return true;
}

/* Replace in out[from..], which only ever shrinks. */
static void shrink(buf *out, size_t from, const char *what, const char *by)
{
    size_t n = strlen(what), m = strlen(by), to = from;
    for (size_t at = from; at < out->len;) {
        bool hit = out->len - at >= n && !memcmp(out->data + at, what, n);
        if (hit)
            memcpy(out->data + to, by, m);
        else
            out->data[to] = out->data[at];
        to += hit ? m : 1;
        at += hit ? n : 1;
    }
    out->len = to;
    if (out->data) out->data[to] = '\0';
}

static void cleanup(buf *out, size_t from)
{
    static const char *const rules[][2] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) shrink(out, from, rules[i][0], rules[i][1]);
}

static void replace_matches(const dec_step *p, buf *out, const char *s, size_t n)
{
    tok_match m = {0};
    size_t last = 0, b, e;
    int rc;
    while ((rc = tok_regex_find(p->re, &m, s, n, last, &b, &e, NULL)) > 0 && e > b) {
        buf_append(out, s + last, b - last);
        buf_append(out, p->to, p->to_len);
        last = e;
    }
    if (rc == SHOAL_ENOMEM) out->failed = true;
    buf_append(out, s + last, n - last);
    tok_match_done(&m);
}

static void strip(const dec_step *p, buf *out, const char *s, size_t n)
{
    size_t k = p->from_len;
    for (size_t i = 0; i < p->start && n >= k && !memcmp(s, p->from, k); i++) {
        s += k;
        n -= k;
    }
    for (size_t i = 0; i < p->stop && n >= k && !memcmp(s + n - k, p->from, k); i++) n -= k;
    buf_append(out, s, n);
}

/* "\t", "\n", "\r", "\x" and two digits; any other escaped character is itself. */
static void unescape(buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        uint8_t byte;
        if (c == '\\' && i + 1 < n) {
            c = s[++i];
            if (c == 'x' && i + 2 < n && hex_decode(s + i + 1, 2, &byte, 1)) {
                c = (char)byte;
                i += 2;
            } else {
                c = (char)(c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c);
            }
        }
        buf_putc(out, c);
    }
}

static void tok_decode_run_step(const dec_step *p, buf *out, const char *s, size_t n)
{
    char byte;
    switch (p->kind) {
    case DSTEP_REPLACE:
        if (p->re)
            replace_matches(p, out, s, n);
        else
            replaced(out, s, n, p->from, p->from_len, p->to, p->to_len);
        return;
    case DSTEP_STRIP: strip(p, out, s, n); return;
    case DSTEP_UNESCAPE: unescape(out, s, n); return;
    case DSTEP_BYTE_LEVEL:
        if (!unletter(out, s, n)) buf_append(out, s, n);
        return;
    case DSTEP_BYTE_FALLBACK:
        if (is_byte_token(s, n, &byte))
            buf_putc(out, byte);
        else
            buf_append(out, s, n);
        return;
    }
}

/* What a token stands for, behind what `out` holds; tmp is scratch. */
static void tok_decode_put_bytes(const decoder *d, buf *out, buf *tmp, const char *s, size_t n, bool first)
{
    size_t start = out->len;
    buf_append(out, s, n);
    for (size_t i = 0; i < d->n_steps; i++) {
        buf_clear(tmp);
        buf_append(tmp, out->data + start, out->len - start);
        out->len = start;
        tok_decode_run_step(&d->steps[i], out, tmp->data, tmp->len);
    }
    if (d->kind == DEC_JOIN || d->kind == DEC_BYTES || !d->mark_len) return;
    buf_clear(tmp);
    buf_append(tmp, out->data + start, out->len - start);
    out->len = start;
    bool drop = d->kind == DEC_CTC || (d->kind == DEC_METASPACE && first && d->meta_first);
    bool goes_on = tmp->len >= d->mark_len && !memcmp(tmp->data, d->mark, d->mark_len);
    if (d->kind == DEC_WORDPIECE)
        buf_append(out, tmp->data + (goes_on ? d->mark_len : 0), tmp->len - (goes_on ? d->mark_len : 0));
    else
        replaced(out, tmp->data, tmp->len, d->mark, d->mark_len, " ", !drop);
    if (d->kind != DEC_CTC || !d->cleanup) return;
    cleanup(out, start);
    buf_clear(tmp);
    buf_append(tmp, out->data + start, out->len - start);
    out->len = start;
    replaced(out, tmp->data, tmp->len, d->delimiter, d->delimiter_len, " ", 1);
}

/* Marks of the tokens that no step changes, [voc.n]; the caller frees them. NULL: out of memory. */
static bool *mark_as_is(const tokenizer *t)
{
    bool *marks = calloc(t->voc.n + 1, sizeof *marks);
    for (size_t i = 0; marks && t->dec.added_as_is && i < t->n_added; i++) marks[t->added[i].id] = true;
    return marks;
}

int tok_build_bytes(tokenizer *t, shoal_err *err)
{
    buf tmp = {0};
    bool *as_is = mark_as_is(t);
    t->bytes = calloc(t->voc.n + 1, sizeof *t->bytes);
    if (!as_is || !t->bytes || buf_reserve(&t->bytes_pool, 1)) {
        free(as_is);
        return err_nomem(err);
    }
    for (size_t id = 0; id < t->voc.n; id++) {
        size_t n, start = t->bytes_pool.len;
        const char *s = tok_vocab_text(&t->voc, (int32_t)id, &n);
        if (s && as_is[id])
            buf_append(&t->bytes_pool, s, n);
        else if (s)
            tok_decode_put_bytes(&t->dec, &t->bytes_pool, &tmp, s, n, false);
        if (t->bytes_pool.len >= UINT32_MAX) t->bytes_pool.failed = true;
        if (t->bytes_pool.failed) break;
        t->bytes[id] = (vocab_piece){(uint32_t)start, (uint32_t)(t->bytes_pool.len - start)};
    }
    bool failed = t->bytes_pool.failed || tmp.failed;
    buf_done(&tmp);
    free(as_is);
    return failed ? err_nomem(err) : 0;
}

const char *tokenizer_bytes(const tokenizer *t, int32_t id, size_t *ret_len, bool *ret_special)
{
    if (id < 0 || (size_t)id >= t->voc.n || t->voc.pieces[id].off == UINT32_MAX) return NULL;
    *ret_len = t->bytes[id].len;
    *ret_special = t->special[id];
    return t->bytes_pool.data + t->bytes[id].off;
}

/* ---- one token in its place ---- */

static void put_wordpiece(const tokenizer *t, int32_t id, bool first, buf *out)
{
    size_t n_piece, n = t->bytes[id].len, from = out->len;
    const char *piece = tok_vocab_text(&t->voc, id, &n_piece);
    bool goes_on = n_piece != n;
    if (first) {
        buf_append(out, piece, n_piece);
    } else {
        if (!goes_on) buf_putc(out, ' ');
        buf_append(out, t->bytes_pool.data + t->bytes[id].off, n);
    }
    if (t->dec.cleanup) cleanup(out, from);
}

/* A token's end of a word is a space once another token follows. */
static void put_bpe(detok *d, const char *s, size_t n, const char *piece, size_t n_piece, buf *out)
{
    const decoder *c = &d->t->dec;
    if (d->space) buf_putc(out, ' ');
    d->space = n && n_piece >= c->mark_len && !memcmp(piece + n_piece - c->mark_len, c->mark, c->mark_len);
    buf_append(out, s, n - d->space);
}

static void put_first_meta(const tokenizer *t, const char *piece, size_t n, buf *out)
{
    buf tmp = {0};
    tok_decode_put_bytes(&t->dec, out, &tmp, piece, n, true);
    out->failed |= tmp.failed;
    buf_done(&tmp);
}

/* Append the token's bytes. */
static void put_token(detok *d, int32_t id, buf *out)
{
    const tokenizer *t = d->t;
    const decoder *c = &t->dec;
    const char *s = t->bytes_pool.data + t->bytes[id].off;
    size_t n = t->bytes[id].len, n_piece;
    const char *piece = tok_vocab_text(&t->voc, id, &n_piece);
    bool first = !d->started;
    d->started = true;
    switch (c->kind) {
    case DEC_WORDPIECE: put_wordpiece(t, id, first, out); return;
    case DEC_BPE: put_bpe(d, s, n, piece, n_piece, out); return;
    case DEC_METASPACE:
        if (!first || !c->meta_first) break;
        put_first_meta(t, piece, n_piece, out);
        return;
    case DEC_CTC:
        if (!first && id == d->last) return;
        d->last = id;
        break;
    case DEC_JOIN:
        if (!first) buf_putc(out, ' ');
        break;
    case DEC_BYTES:
        for (; d->stripped < c->strip_first && n && s[0] == c->strip_char; d->stripped++, s++) n--;
        if (n) d->stripped = (uint8_t)c->strip_first;
    }
    buf_append(out, s, n);
}

/* ---- whole characters ---- */

/* True when s[0..n), n in 1..3, begins a character that needs more bytes (RFC 3629, section 4). */
static bool is_open(const char *s, size_t n)
{
    uint8_t lead = (uint8_t)s[0];
    size_t len = lead >= 0xF0 && lead <= 0xF4  ? 4
                 : lead >= 0xE0 && lead < 0xF0 ? 3
                 : lead >= 0xC2 && lead < 0xE0 ? 2
                                               : 1;
    if (n >= len) return false;
    for (size_t i = 1; i < n; i++)
        if (((uint8_t)s[i] & 0xC0) != 0x80) return false;
    if (n == 1) return true;
    uint8_t second = (uint8_t)s[1];
    if (lead == 0xE0) return second >= 0xA0;
    if (lead == 0xED) return second < 0xA0;
    if (lead == 0xF0) return second >= 0x90;
    return lead != 0xF4 || second < 0x90;
}

/* The bytes at the end of s[0..n) that begin a character. */
static size_t open_tail(const char *s, size_t n)
{
    for (size_t k = n < 3 ? n : 3; k > 0; k--)
        if (is_open(s + n - k, k)) return k;
    return 0;
}

/* The length of the broken part at s: the longest start of a character there is, at least 1 (Unicode
 * 3.9, "substitution of maximal subparts"). */
static size_t broken_len(const char *s, size_t n)
{
    for (size_t k = n < 3 ? n : 3; k > 1; k--)
        if (is_open(s, k)) return k;
    return 1;
}

/* Make out[from..] well-formed, but leave `keep` bytes at its end for the next token. */
static int repair(buf *out, size_t from, size_t keep)
{
    size_t end = out->len - keep;
    if (out->failed) return SHOAL_ENOMEM;
    if (end == from || utf8_valid(out->data + from, end - from, NULL)) return 0;
    /* The repaired text is written behind the broken one, then moved over it. */
    for (size_t at = from; at < end;) {
        uint32_t cp;
        size_t k = utf8_decode(out->data + at, end - at, &cp);
        if (buf_reserve(out, 4)) return SHOAL_ENOMEM;
        if (k)
            buf_append(out, out->data + at, k);
        else
            buf_append(out, "\xEF\xBF\xBD", 3);
        at += k ? k : broken_len(out->data + at, end - at);
    }
    size_t fixed = out->len - end - keep;
    if (buf_reserve(out, keep)) return SHOAL_ENOMEM; /* before its own bytes are named: they may move */
    buf_append(out, out->data + end, keep);
    memmove(out->data + from, out->data + end + keep, fixed + keep);
    out->len = from + fixed + keep;
    out->data[out->len] = '\0';
    return 0;
}

void detok_init(detok *d, const tokenizer *t, bool with_special)
{
    memset(d, 0, sizeof *d);
    d->t = t;
    d->with_special = with_special;
}

int detok_push(detok *d, int32_t id, buf *out)
{
    const tokenizer *t = d->t;
    if (id < 0 || (size_t)id >= t->voc.n || t->voc.pieces[id].off == UINT32_MAX) return 0;
    if (t->special[id] && !d->with_special) return 0;
    size_t from = out->len;
    buf_append(out, d->pending, d->n_pending);
    put_token(d, id, out);
    if (out->failed) return SHOAL_ENOMEM;
    size_t keep = open_tail(out->data + from, out->len - from);
    if (repair(out, from, keep)) return SHOAL_ENOMEM;
    memcpy(d->pending, out->data + out->len - keep, keep);
    d->n_pending = (uint8_t)keep;
    out->len -= keep;
    out->data[out->len] = '\0';
    return 0;
}

int detok_end(detok *d, buf *out)
{
    bool open = d->n_pending > 0;
    d->n_pending = 0;
    return open ? buf_append(out, "\xEF\xBF\xBD", 3) : 0;
}

int tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t n, bool with_special, buf *out)
{
    detok d;
    detok_init(&d, t, with_special);
    for (size_t i = 0; i < n; i++)
        if (detok_push(&d, ids[i], out)) return SHOAL_ENOMEM;
    return detok_end(&d, out);
}
