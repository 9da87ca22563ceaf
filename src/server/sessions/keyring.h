/* keyring.h: the keys that conversations are encrypted with, from a file of their own.
 *
 *     # one key a line, 64 hex digits; the last one encrypts, all of them decrypt
 *     5f1c...
 *
 * A new key is a new line (openssl rand -hex 32 >>sessions.key). A key may go when nothing is left that it
 * encrypted: whatever is read is written again with the newest. The file's mode must keep others out. Plain
 * memory; keyring_done overwrites it. */
#ifndef SESSIONS_KEYRING_H
#define SESSIONS_KEYRING_H

#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

enum { KEYRING_MAX = 64, KEY_BYTES = 32, KEY_ID_BYTES = 8, KEYRING_FILE_MAX = 64 << 10 };

typedef struct keyring_key {
    uint8_t id[KEY_ID_BYTES]; /* the beginning of a digest of the key: says which one, and nothing of it */
    uint8_t key[KEY_BYTES];   /* AES-256 */
} keyring_key;

typedef struct keyring {
    keyring_key keys[KEYRING_MAX];
    size_t n;
} keyring;

/* text[0..n) as a key file; `what` names it in errors. SHOAL_EINVALID; then *ret is untouched. */
int keyring_parse(keyring *ret, const char *text, size_t n, const char *what, shoal_err *err);
/* Reads the file; one that is missing is made, with one key and mode 0600. SHOAL_EAUTH: others may read it.
 */
int keyring_open(keyring *ret, const char *path, shoal_err *err);
/* NULL: none has this id. */
const keyring_key *keyring_find(const keyring *k, const uint8_t id[KEY_ID_BYTES]);
const keyring_key *keyring_newest(const keyring *k); /* k->n > 0 */
void keyring_done(keyring *k);

#endif
