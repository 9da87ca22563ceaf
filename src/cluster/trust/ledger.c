/* ledger.c: the records, and what follows from them. */
#include "trust/ledger.h"

#include <stdlib.h>
#include <string.h>

void ledger_done(ledger *l)
{
    free(l->certs);
    free(l->tokens);
    *l = (ledger){0};
}

/* Room for one more in *array; the doubled size is bounded by LEDGER_RECORDS_MAX records. */
static int ledger_grow(void **array, size_t *cap, size_t n, size_t size, const char *what, shoal_err *err)
{
    if (n < *cap) return 0;
    if (n >= LEDGER_RECORDS_MAX)
        return err_set(err, SHOAL_ELIMIT, "the CA's ledger holds no more than %d %s", LEDGER_RECORDS_MAX,
                       what);
    size_t want = *cap ? *cap * 2 : 16;
    void *more = realloc(*array, want * size);
    if (!more) return err_nomem(err);
    *array = more;
    *cap = want;
    return 0;
}

int ledger_add_cert(ledger *l, const ledger_cert *c, shoal_err *err)
{
    int rc = ledger_grow((void **)&l->certs, &l->cap_certs, l->n_certs, sizeof *c, "certificates", err);
    if (rc == 0) l->certs[l->n_certs++] = *c;
    return rc;
}

int ledger_add_token(ledger *l, const ledger_token *t, shoal_err *err)
{
    int rc = ledger_grow((void **)&l->tokens, &l->cap_tokens, l->n_tokens, sizeof *t, "tokens", err);
    if (rc == 0) l->tokens[l->n_tokens++] = *t;
    return rc;
}

ledger_token *ledger_find_token(const ledger *l, const char *id)
{
    for (size_t i = 0; i < l->n_tokens; i++)
        if (strcmp(l->tokens[i].id, id) == 0) return &l->tokens[i];
    return NULL;
}

const ledger_cert *ledger_find_serial(const ledger *l, const char *serial)
{
    for (size_t i = 0; i < l->n_certs; i++)
        if (strcmp(l->certs[i].serial, serial) == 0) return &l->certs[i];
    return NULL;
}

const ledger_cert *ledger_find_key(const ledger *l, const sha256_digest *key)
{
    for (size_t i = 0; i < l->n_certs; i++)
        if (memcmp(&l->certs[i].key, key, sizeof *key) == 0) return &l->certs[i];
    return NULL;
}

bool ledger_cert_lives(const ledger_cert *c, int64_t now)
{
    return c->revoked == 0 && now <= c->until;
}

bool ledger_name_lives(const ledger *l, const char *name, int64_t now)
{
    for (size_t i = 0; i < l->n_certs; i++)
        if (ledger_cert_lives(&l->certs[i], now) && strcmp(l->certs[i].name, name) == 0) return true;
    return false;
}

const char *ledger_token_state(const ledger_token *t, int64_t now)
{
    return t->used ? "used" : t->revoked ? "revoked" : now > t->until ? "expired" : "open";
}

size_t ledger_revoke_name(ledger *l, const char *name, int64_t now)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_certs; i++) {
        ledger_cert *c = &l->certs[i];
        if (!ledger_cert_lives(c, now) || strcmp(c->name, name) != 0) continue;
        c->revoked = now;
        n++;
    }
    if (n > 0) l->crl_number++;
    return n;
}

void ledger_prune(ledger *l, int64_t now)
{
    int64_t before = now - LEDGER_KEEP_DAYS * CERT_DAY_S;
    size_t n = 0;
    for (size_t i = 0; i < l->n_certs; i++)
        if (l->certs[i].until >= before) l->certs[n++] = l->certs[i];
    l->n_certs = n;
    n = 0;
    for (size_t i = 0; i < l->n_tokens; i++)
        if (l->tokens[i].until >= before) l->tokens[n++] = l->tokens[i];
    l->n_tokens = n;
}
