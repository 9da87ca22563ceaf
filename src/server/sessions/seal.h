/* seal.h: text as it lies in a store: AES-256-GCM (NIST SP 800-38D), bound to the place where it lies.
 *
 *     u8 version (1) | u8 key_id[8] | u8 nonce[12] | ciphertext[n] | u8 tag[16]
 *
 * Nonces are drawn at random: a key is good for 2^32 texts (SP 800-38D, 8.3). The place is authenticated with
 * the text: what somebody moves to another conversation does not open there. Any thread. */
#ifndef SESSIONS_SEAL_H
#define SESSIONS_SEAL_H

#include <stdbool.h>

#include "sessions/keyring.h"

enum {
    SEAL_NONCE_BYTES = 12,
    SEAL_TAG_BYTES = 16,
    SEAL_MORE = 1 + KEY_ID_BYTES + SEAL_NONCE_BYTES + SEAL_TAG_BYTES
};

/* Append n bytes of text and SEAL_MORE, with the newest key; on failure `out` is as it was. n < 2^30. */
int seal_put(buf *out, const keyring *k, const void *place, size_t n_place, const void *text, size_t n,
             shoal_err *err);
/* Append the text. SHOAL_EFORMAT: no sealed text, or changed; SHOAL_EAUTH: its key is in the file no more.
 * *ret_old: another key than the newest sealed it. On failure `out` is as it was. */
int seal_open(buf *out, const keyring *k, const void *place, size_t n_place, const void *sealed, size_t n,
              bool *ret_old, shoal_err *err);

#endif
