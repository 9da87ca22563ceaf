/* token.c: writing, reading and comparing tokens. */
#include "trust/token.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum { ID_BYTES = (TOKEN_ID_SIZE - 1) / 2 };

void hex_put(char *ret, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[2 * n] = '\0';
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_take(uint8_t *ret, const char *digits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = digit(digits[2 * i]), low = digit(digits[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool token_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* text holds exactly a token's number of characters. */
static bool take_fields(token *t, const char *text)
{
    uint8_t id[ID_BYTES];
    const char *secret = text + 2 * ID_BYTES + 1, *pin = secret + 2 * TOKEN_SECRET_BYTES + 1;
    bool ok = secret[-1] == '.' && pin[-1] == '.' && hex_take(id, text, ID_BYTES) &&
              hex_take(t->secret, secret, TOKEN_SECRET_BYTES) &&
              hex_take(t->pin.bytes, pin, sizeof t->pin.bytes);
    if (ok) hex_put(t->id, id, ID_BYTES);
    return ok;
}

int token_parse(token *ret, const char *text, size_t n, shoal_err *err)
{
    token t = {0};
    while (n && token_is_blank(text[n - 1])) n--;
    while (n && token_is_blank(*text)) text++, n--;
    bool ok = n == TOKEN_TEXT_SIZE - 1 && take_fields(&t, text);
    if (ok) *ret = t;
    token_forget(&t);
    if (ok) return 0;
    if (n == TOKEN_TEXT_SIZE - 1)
        return err_set(
            err, SHOAL_EINVALID,
            "this is no token: it is as long as one, but not ID.SECRET.PIN in 0-9 and a-f; copy it "
            "again from what \"shoal token create\" printed");
    return err_set(
        err, SHOAL_EINVALID,
        "this is no token: one is %d characters, ID.SECRET.PIN, as \"shoal token create\" prints it; "
        "here are %zu",
        TOKEN_TEXT_SIZE - 1, n);
}

void token_format(char ret[TOKEN_TEXT_SIZE], const token *t)
{
    char secret[2 * TOKEN_SECRET_BYTES + 1], pin[65];
    hex_put(secret, t->secret, sizeof t->secret);
    sha256_hex(&t->pin, pin);
    snprintf(ret, TOKEN_TEXT_SIZE, "%s.%s.%s", t->id, secret, pin);
    OPENSSL_cleanse(secret, sizeof secret);
}

void token_draw(token *ret, const sha256_digest *pin)
{
    uint8_t id[ID_BYTES];
    rng_bytes(id, sizeof id);
    hex_put(ret->id, id, sizeof id);
    rng_bytes(ret->secret, sizeof ret->secret);
    ret->pin = *pin;
}

void token_forget(token *t)
{
    OPENSSL_cleanse(t->secret, sizeof t->secret);
}

void token_secret_digest(const token *t, sha256_digest *ret)
{
    sha256_of(t->secret, sizeof t->secret, ret);
}

bool token_secret_is(const token *t, const sha256_digest *kept)
{
    sha256_digest d;
    token_secret_digest(t, &d);
    return CRYPTO_memcmp(d.bytes, kept->bytes, sizeof d.bytes) == 0;
}
