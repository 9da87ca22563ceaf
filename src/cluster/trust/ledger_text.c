/* ledger_text.c: the ledger as a file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "trust/ledger.h"

#define MAGIC "shoal-ledger"
enum { WORDS_MAX = 11, WORD_SIZE = 72 };

/* ---- writing ----------------------------------------------------------------------------------- */

static void put_cert(buf *out, const ledger_cert *c)
{
    char key[65];
    sha256_hex(&c->key, key);
    buf_printf(out, "cert %s %s %s %s %" PRId64 " %" PRId64 " %" PRId64 "\n", c->serial, c->name,
               role_name(c->role), key, c->from, c->until, c->revoked);
}

static void put_token(buf *out, const ledger_token *t)
{
    char secret[65];
    sha256_hex(&t->secret, secret);
    buf_printf(out, "token %s %s %s %s %s %" PRId64 " %" PRId64 " %" PRId64 " %s %" PRId64 "\n", t->id,
               role_name(t->role), *t->name ? t->name : "*", t->replace ? "replace" : "new", secret, t->made,
               t->until, t->used, *t->used_by ? t->used_by : "-", t->revoked);
}

int ledger_put(const ledger *l, buf *out, shoal_err *err)
{
    size_t start = out->len;
    sha256_digest d;
    char hex[65];
    buf_printf(out, MAGIC " 1 crl %" PRIu64 "\n", l->crl_number);
    for (size_t i = 0; i < l->n_certs; i++) put_cert(out, &l->certs[i]);
    for (size_t i = 0; i < l->n_tokens; i++) put_token(out, &l->tokens[i]);
    if (out->failed) return err_nomem(err);
    sha256_of(out->data + start, out->len - start, &d);
    sha256_hex(&d, hex);
    buf_printf(out, "end %zu %s\n", l->n_certs + l->n_tokens, hex);
    return out->failed ? err_nomem(err) : 0;
}

/* ---- reading ----------------------------------------------------------------------------------- */

typedef struct line {
    char words[WORDS_MAX][WORD_SIZE];
    size_t n;
} line;

/* s[0..n) into words between single blanks; false when one is empty or too long, or there are too many. */
static bool ledger_text_split(line *ret, const char *s, size_t n)
{
    const char *at = s, *end = s + n;
    for (ret->n = 0; at <= end; ret->n++) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        size_t len = (size_t)((blank ? blank : end) - at);
        if (len == 0 || len >= WORD_SIZE || ret->n == WORDS_MAX || memchr(at, '\0', len)) return false;
        memcpy(ret->words[ret->n], at, len);
        ret->words[ret->n][len] = '\0';
        at = blank ? blank + 1 : end + 1;
    }
    return true;
}

static bool take_name(char ret[IDENTITY_NAME_SIZE], const char *word, const char *none)
{
    if (none && strcmp(word, none) == 0) {
        *ret = '\0';
        return true;
    }
    if (!identity_name_ok(word, strlen(word))) return false;
    strcpy(ret, word); /* a name's length was checked */
    return true;
}

/* digits of n bytes, resp. the same kept as text */
static bool take_digest(sha256_digest *ret, const char *word)
{
    return strlen(word) == 2 * sizeof ret->bytes && hex_take(ret->bytes, word, sizeof ret->bytes);
}
static bool take_digits(char *ret, size_t size, const char *word)
{
    uint8_t bytes[32];
    if (strlen(word) != size - 1 || !hex_take(bytes, word, (size - 1) / 2)) return false;
    memcpy(ret, word, size);
    return true;
}

/* Written in one way only: "-0" is none. */
static bool take_time(int64_t *ret, const char *word)
{
    return *word != '-' && number_i64(word, ret);
}

static bool read_cert(ledger_cert *c, const line *l)
{
    const char(*w)[WORD_SIZE] = l->words;
    return l->n == 8 && take_digits(c->serial, sizeof c->serial, w[1]) && take_name(c->name, w[2], NULL) &&
           role_parse(&c->role, w[3], strlen(w[3])) && take_digest(&c->key, w[4]) &&
           take_time(&c->from, w[5]) && take_time(&c->until, w[6]) && take_time(&c->revoked, w[7]);
}

static bool read_token(ledger_token *t, const line *l)
{
    const char(*w)[WORD_SIZE] = l->words;
    t->replace = l->n == 11 && strcmp(w[4], "replace") == 0;
    return l->n == 11 && take_digits(t->id, sizeof t->id, w[1]) && role_parse(&t->role, w[2], strlen(w[2])) &&
           take_name(t->name, w[3], "*") && (t->replace || strcmp(w[4], "new") == 0) &&
           take_digest(&t->secret, w[5]) && take_time(&t->made, w[6]) && take_time(&t->until, w[7]) &&
           take_time(&t->used, w[8]) && take_name(t->used_by, w[9], "-") && take_time(&t->revoked, w[10]);
}

static bool ledger_text_read_head(ledger *l, const line *x)
{
    return x->n == 4 && strcmp(x->words[0], MAGIC) == 0 && strcmp(x->words[1], "1") == 0 &&
           strcmp(x->words[2], "crl") == 0 && number_u64(x->words[3], &l->crl_number);
}

/* One record; *ret_fits is false when it is none. Certificates come before tokens, as they are written. */
static int read_record(ledger *l, const line *x, bool *ret_fits, shoal_err *err)
{
    ledger_cert c = {0};
    ledger_token t = {0};
    if ((*ret_fits = strcmp(x->words[0], "cert") == 0 && l->n_tokens == 0 && read_cert(&c, x)))
        return ledger_add_cert(l, &c, err);
    if ((*ret_fits = strcmp(x->words[0], "token") == 0 && read_token(&t, x)))
        return ledger_add_token(l, &t, err);
    return 0;
}

/* The last line vouches for all before it. */
static bool read_end(const ledger *l, const line *x, const char *text, size_t n_before)
{
    uint64_t n;
    sha256_digest said, is;
    sha256_of(text, n_before, &is);
    return x->n == 3 && number_u64(x->words[1], &n) && n == l->n_certs + l->n_tokens &&
           take_digest(&said, x->words[2]) && memcmp(&said, &is, sizeof is) == 0;
}

static int ledger_text_parse(ledger *l, const char *text, size_t n, const char *what, shoal_err *err)
{
    bool ended = false;
    size_t number = 0;
    for (size_t at = 0; at < n; number++) {
        const char *newline = memchr(text + at, '\n', n - at);
        size_t len = newline ? (size_t)(newline - text) - at : 0;
        line x;
        bool fits = newline && !ended && ledger_text_split(&x, text + at, len);
        if (fits && number == 0)
            fits = ledger_text_read_head(l, &x);
        else if (fits && strcmp(x.words[0], "end") == 0)
            fits = ended = read_end(l, &x, text, at);
        else if (fits) {
            int rc = read_record(l, &x, &fits, err);
            if (rc != 0) return rc;
        }
        if (!fits)
            return err_set(err, SHOAL_EFORMAT, "%s: line %zu is damaged; put a copy of the file back", what,
                           number + 1);
        at += len + 1;
    }
    if (ended) return 0;
    return err_set(err, SHOAL_EFORMAT, "%s: its end is missing; put a copy of the file back", what);
}

int ledger_parse(ledger *ret, const char *text, size_t n, const char *what, shoal_err *err)
{
    ledger l = {0};
    int rc = ledger_text_parse(&l, text, n, what, err);
    if (rc == 0)
        *ret = l;
    else
        ledger_done(&l);
    return rc;
}
