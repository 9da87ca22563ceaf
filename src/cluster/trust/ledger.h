/* ledger.h: what a cluster's CA has done: the certificates it has signed, the tokens it has made.
 *
 * One text file, so that using up a token and recording the certificate it bought is one atomic step:
 *
 *     shoal-ledger 1 crl 3
 *     cert SERIAL NAME ROLE KEY-SHA256 FROM UNTIL REVOKED
 *     token ID ROLE NAME|* replace|new SECRET-SHA256 MADE UNTIL USED USED-BY|- REVOKED
 *     end N-RECORDS SHA256-OF-ALL-LINES-BEFORE
 *
 * Times are seconds since 1970, 0: not yet. A file that was cut or changed does not parse: a list of revoked
 * certificates that silently lost a line would be worse than none. Pure; records are in the order of their
 * making. */
#ifndef TRUST_LEDGER_H
#define TRUST_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "trust/cert.h"
#include "trust/identity.h"
#include "trust/token.h"

enum {
    LEDGER_RECORDS_MAX = 50000, /* of each kind, after pruning */
    LEDGER_BYTES_MAX = 32 << 20,
    LEDGER_KEEP_DAYS = 7, /* a record is forgotten so long after it has lost its meaning */
};

typedef struct ledger_cert {
    char serial[CERT_SERIAL_SIZE], name[IDENTITY_NAME_SIZE];
    role role;
    sha256_digest key; /* of its public key */
    int64_t from, until, revoked;
} ledger_cert;

typedef struct ledger_token {
    char id[TOKEN_ID_SIZE];
    role role;
    char name[IDENTITY_NAME_SIZE]; /* the only one that may use it; "": any */
    bool replace;                  /* takes the name from whoever has it */
    sha256_digest secret;
    int64_t made, until, used, revoked;
    char used_by[IDENTITY_NAME_SIZE]; /* "" until then */
} ledger_token;

typedef struct ledger {
    ledger_cert *certs;
    ledger_token *tokens;
    size_t n_certs, n_tokens, cap_certs, cap_tokens;
    uint64_t crl_number; /* goes up with every revocation */
} ledger;

/* An empty ledger is a zeroed one. */
void ledger_done(ledger *l);
/* SHOAL_EFORMAT names the line. *ret is to be freed with ledger_done. */
int ledger_parse(ledger *ret, const char *text, size_t n, const char *what, shoal_err *err);
int ledger_put(const ledger *l, buf *out, shoal_err *err);

/* Copies of the record at the end. SHOAL_ELIMIT when there are too many. */
int ledger_add_cert(ledger *l, const ledger_cert *c, shoal_err *err);
int ledger_add_token(ledger *l, const ledger_token *t, shoal_err *err);
/* Valid until the next add or prune; NULL: not there. */
ledger_token *ledger_find_token(const ledger *l, const char *id);
const ledger_cert *ledger_find_serial(const ledger *l, const char *serial);
const ledger_cert *ledger_find_key(const ledger *l, const sha256_digest *key);

bool ledger_cert_lives(const ledger_cert *c, int64_t now); /* neither expired nor revoked */
bool ledger_name_lives(const ledger *l, const char *name, int64_t now);
/* "open", "used", "revoked" or "expired", in the order that it is told to people. */
const char *ledger_token_state(const ledger_token *t, int64_t now);

/* Revoke every certificate of the name that lives; how many there were. */
size_t ledger_revoke_name(ledger *l, const char *name, int64_t now);
/* Forget certificates and tokens that ended LEDGER_KEEP_DAYS before now. */
void ledger_prune(ledger *l, int64_t now);

#endif
