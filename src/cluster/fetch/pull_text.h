/* pull_text.h: small answers of hubs and registries: JSON, with retries and with the token flow of
 * registries.
 *
 * Registries (OCI distribution-spec, Docker's token authentication) answer 401 with a challenge that names
 * where a token is to be had; pull_auth_renew fetches it. A person's own login goes there only when that
 * place belongs to the registry's site (its last two names), and is never sent elsewhere. */
#ifndef FETCH_PULL_TEXT_H
#define FETCH_PULL_TEXT_H

#include <jansson.h>

#include "fetch/pull_http.h"

enum { PULL_TEXT_MAX = 32 << 20 };

typedef struct pull_auth {
    char *header;      /* "Bearer ...", malloc'd; NULL: none yet */
    const char *login; /* "USER:PASSWORD" for registries; NULL */
    bool renewable;    /* a registry's: a 401 may be answered by fetching a token */
} pull_auth;
void pull_auth_done(pull_auth *a);
/* Answer the challenge that `url` gave. SHOAL_EAUTH when there is none or no token is given. */
int pull_auth_renew(pull_auth *a, pull_client *c, const char *url, const char *challenge, shoal_err *err);

/* Is a status worth another try, and how long to wait before try number `k` (from 0)? */
bool pull_status_may_pass(int status);
int pull_wait_ms(int k, int retry_after_s);

/* GET url into `text` (emptied first), at most max bytes; *reply has the status, which may be any but those
 * that may pass. Retried; auth may be NULL. */
int pull_text_get(pull_client *c, const char *url, const char *accept, pull_auth *auth, size_t max, buf *text,
                  pull_reply *reply, shoal_err *err);

#endif
