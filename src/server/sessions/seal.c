/* seal.c: see seal.h. */
#include "sessions/seal.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/clock.h"
#include "base/cur.h"
#include "trust/key.h"

enum { SEAL_VERSION = 1, SEAL_TEXT_MAX = 1 << 30 };

typedef enum { CIPHER_OK, CIPHER_FAILED, CIPHER_CHANGED } cipher_end; /* failed: OpenSSL found no memory */

/* text[n] -> out[n], tag[16]; decrypt: the tag is compared. One place for both ways, which differ in it. */
static cipher_end cipher(bool encrypt, const uint8_t key[KEY_BYTES], const uint8_t *nonce, const void *place,
                         size_t n_place, const void *in, size_t n, uint8_t *out, uint8_t *tag)
{
    int len;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    bool ok = c && EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce, encrypt) == 1;
    ok = ok && EVP_CipherUpdate(c, NULL, &len, place, (int)n_place) == 1;
    ok = ok && (n == 0 || EVP_CipherUpdate(c, out, &len, in, (int)n) == 1);
    if (!encrypt) ok = ok && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG_BYTES, tag) == 1;
    bool same = ok && EVP_CipherFinal_ex(c, out + n, &len) == 1;
    if (encrypt) ok = same;
    if (encrypt) ok = ok && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG_BYTES, tag) == 1;
    EVP_CIPHER_CTX_free(c);
    return !ok ? CIPHER_FAILED : same ? CIPHER_OK : CIPHER_CHANGED;
}

int seal_put(buf *out, const keyring *k, const void *place, size_t n_place, const void *text, size_t n,
             shoal_err *err)
{
    const keyring_key *key = keyring_newest(k);
    if (n >= SEAL_TEXT_MAX) return err_set(err, SHOAL_ELIMIT, "%zu bytes are too many to encrypt at once", n);
    if (buf_reserve(out, n + SEAL_MORE) != 0) return err_nomem(err);
    uint8_t *to = (uint8_t *)out->data + out->len;
    uint8_t *nonce = to + 1 + KEY_ID_BYTES, *body = nonce + SEAL_NONCE_BYTES;
    *to = SEAL_VERSION;
    memcpy(to + 1, key->id, KEY_ID_BYTES);
    rng_bytes(nonce, SEAL_NONCE_BYTES);
    if (cipher(true, key->key, nonce, place, n_place, text, n, body, body + n) != CIPHER_OK)
        return ossl_fail(err, SHOAL_ENOMEM, "a conversation cannot be encrypted");
    out->len += n + SEAL_MORE;
    return 0;
}

static int broken(shoal_err *err)
{
    return err_set(err, SHOAL_EFORMAT, "a stored conversation is damaged: delete it and begin another");
}

static int unseal(buf *out, const keyring_key *key, const uint8_t *nonce, const void *place, size_t n_place,
                  const uint8_t *body, size_t n, shoal_err *err)
{
    uint8_t tag[SEAL_TAG_BYTES];
    if (buf_reserve(out, n + 1) != 0) return err_nomem(err);
    uint8_t *to = (uint8_t *)out->data + out->len;
    memcpy(tag, body + n, sizeof tag);
    cipher_end end = cipher(false, key->key, nonce, place, n_place, body, n, to, tag);
    if (end != CIPHER_OK) {
        OPENSSL_cleanse(to, n);
        ERR_clear_error();
        return end == CIPHER_FAILED ? err_nomem(err) : broken(err);
    }
    out->len += n;
    out->data[out->len] = '\0';
    return 0;
}

int seal_open(buf *out, const keyring *k, const void *place, size_t n_place, const void *sealed, size_t n,
              bool *ret_old, shoal_err *err)
{
    cur c = cur_over(sealed, n);
    uint8_t version = cur_u8(&c);
    const uint8_t *id = cur_take(&c, KEY_ID_BYTES), *nonce = cur_take(&c, SEAL_NONCE_BYTES);
    if (c.failed || version != SEAL_VERSION || cur_left(&c) < SEAL_TAG_BYTES || n >= SEAL_TEXT_MAX)
        return broken(err);
    const keyring_key *key = keyring_find(k, id);
    if (!key)
        return err_set(err, SHOAL_EAUTH,
                       "a stored conversation is encrypted with a key that is not in the key file: put key "
                       "%02x%02x%02x%02x back, or delete the conversation",
                       id[0], id[1], id[2], id[3]);
    *ret_old = key != keyring_newest(k);
    return unseal(out, key, nonce, place, n_place, c.at, cur_left(&c) - SEAL_TAG_BYTES, err);
}
