/* Bytes as a token, as a member's URI and as a host name. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trust/identity.h"
#include "trust/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *s = (const char *)data;
    token t;
    identity id;
    char text[TOKEN_TEXT_SIZE], uri[IDENTITY_URI_SIZE], host[300], name[IDENTITY_NAME_SIZE];
    shoal_err err;
    if (token_parse(&t, s, size, &err) == 0) {
        token_format(text, &t);
        if (size < TOKEN_TEXT_SIZE - 1 || !memmem(s, size, text, strlen(text))) abort();
    }
    if (identity_parse(&id, s, size)) { /* it is written back as it was */
        identity_format(uri, &id);
        if (strlen(uri) != size || memcmp(uri, s, size) != 0) abort();
    }
    size_t n = size < sizeof host ? size : sizeof host - 1;
    memcpy(host, s, n);
    host[n] = '\0';
    identity_name_from_host(name, host);
    if (!identity_name_ok(name, strlen(name))) abort();
    identity_name_check(s, size, "node", &err);
    return 0;
}
