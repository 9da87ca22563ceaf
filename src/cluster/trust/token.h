/* token.h: the text that lets a machine join: ID.SECRET.PIN, all in hexadecimal digits.
 *
 *     3f9c0a1b2c3d4e5f.00112233445566778899aabbccddeeff.9b2c...e1
 *
 * The id names the token in lists and logs, the secret admits one node once, and the pin is the SHA-256 of the
 * cluster CA's public key (SubjectPublicKeyInfo, as RFC 7469 pins it): whoever holds the token knows whom to
 * talk to before the secret is said. The CA keeps the SHA-256 of the secret alone, which is as good as the
 * secret's own 128 random bits. Pure functions. */
#ifndef TRUST_TOKEN_H
#define TRUST_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"

enum {
    TOKEN_ID_SIZE = 17,
    TOKEN_SECRET_BYTES = 16,
    TOKEN_TEXT_SIZE = 16 + 1 + 32 + 1 + 64 + 1
}; /* with NUL */

typedef struct token {
    char id[TOKEN_ID_SIZE];
    uint8_t secret[TOKEN_SECRET_BYTES];
    sha256_digest pin;
} token;

/* Blanks and line ends around the text are let go. SHOAL_EINVALID with a sentence that does not repeat it. */
int token_parse(token *ret, const char *text, size_t n, shoal_err *err);
void token_format(char ret[TOKEN_TEXT_SIZE], const token *t);
/* A new one from the kernel's random bytes. */
void token_draw(token *ret, const sha256_digest *pin);
void token_forget(token *t); /* overwrite the secret */

/* In a time that does not depend on where they differ. */
bool token_secret_is(const token *t, const sha256_digest *kept);
void token_secret_digest(const token *t, sha256_digest *ret);

/* Lower-case digits of n bytes and a NUL, resp. n bytes from exactly 2n such digits. */
void hex_put(char *ret, const uint8_t *bytes, size_t n);
bool hex_take(uint8_t *ret, const char *digits, size_t n);

#endif
