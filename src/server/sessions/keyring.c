/* keyring.c: see keyring.h. */
#include "sessions/keyring.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "trust/folder.h"
#include "trust/key.h"

static void name_key(keyring_key *k)
{
    static const char LABEL[] = "shoal session key";
    uint8_t both[sizeof LABEL + KEY_BYTES];
    sha256_digest d;
    memcpy(both, LABEL, sizeof LABEL);
    memcpy(both + sizeof LABEL, k->key, KEY_BYTES);
    sha256_of(both, sizeof both, &d);
    memcpy(k->id, d.bytes, KEY_ID_BYTES);
    OPENSSL_cleanse(both, sizeof both);
}

static int parse_line(keyring *k, const char *line, size_t n, const char *what, size_t number, shoal_err *err)
{
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t')) n--;
    while (n > 0 && (*line == ' ' || *line == '\t')) line++, n--;
    if (n == 0 || *line == '#') return 0;
    if (k->n == KEYRING_MAX)
        return err_set(err, SHOAL_EINVALID, "%s has more than %d keys: take out the oldest", what,
                       KEYRING_MAX);
    keyring_key *key = &k->keys[k->n];
    if (!hex_decode(line, n, key->key, KEY_BYTES))
        return err_set(err, SHOAL_EINVALID,
                       "%s:%zu: must be a key of 64 hex digits (openssl rand -hex 32 makes one)", what,
                       number);
    name_key(key);
    k->n++;
    return 0;
}

int keyring_parse(keyring *ret, const char *text, size_t n, const char *what, shoal_err *err)
{
    keyring k = {.n = 0};
    int rc = 0;
    for (size_t at = 0, number = 1; rc == 0 && at < n; number++) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at;
        rc = parse_line(&k, text + at, len, what, number, err);
        at += len + 1;
    }
    if (rc == 0 && k.n == 0)
        rc = err_set(err, SHOAL_EINVALID, "%s has no key: put the output of openssl rand -hex 32 into it",
                     what);
    if (rc == 0) *ret = k;
    keyring_done(&k);
    return rc;
}

static int keyring_make(const folder *in, const char *name, shoal_err *err)
{
    uint8_t key[KEY_BYTES];
    buf text = {0};
    rng_bytes(key, sizeof key);
    buf_puts(&text, "# One key a line, the newest last: it encrypts, and all of them decrypt.\n");
    for (size_t i = 0; i < sizeof key; i++) buf_printf(&text, "%02x", key[i]);
    buf_putc(&text, '\n');
    int rc = text.failed ? err_nomem(err) : folder_write(in, name, 0600, text.data, text.len, err);
    OPENSSL_cleanse(key, sizeof key);
    buf_wipe(&text);
    return rc;
}

/* Whoever comes second reads what the first has made. */
static int make_if_missing(const folder *in, const char *name, shoal_err *err)
{
    int lock;
    if (folder_has(in, name)) return 0;
    int rc = folder_lock(in, &lock, err);
    if (rc != 0) return rc;
    if (!folder_has(in, name)) rc = keyring_make(in, name, err);
    folder_unlock(lock);
    return rc;
}

int keyring_open(keyring *ret, const char *path, shoal_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *dir = !slash ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
    folder in = FOLDER_NONE;
    buf text = {0};
    int rc = dir ? folder_open(&in, dir, true, err) : err_nomem(err);
    if (rc == 0) rc = make_if_missing(&in, name, err);
    if (rc == 0) rc = folder_read(&in, name, KEYRING_FILE_MAX, true, &text, err);
    if (rc == 0) rc = keyring_parse(ret, text.data ? text.data : "", text.len, path, err);
    buf_wipe(&text);
    folder_close(&in);
    free(dir);
    return rc;
}

const keyring_key *keyring_find(const keyring *k, const uint8_t id[KEY_ID_BYTES])
{
    for (size_t i = k->n; i-- > 0;)
        if (memcmp(k->keys[i].id, id, KEY_ID_BYTES) == 0) return &k->keys[i];
    return NULL;
}

const keyring_key *keyring_newest(const keyring *k)
{
    return &k->keys[k->n - 1];
}

void keyring_done(keyring *k)
{
    OPENSSL_cleanse(k, sizeof *k);
}
