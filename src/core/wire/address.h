/* address.h: where to listen or connect, from one string.
 *
 *     "127.0.0.1:8080"  "[::1]:8080"  "localhost:8080"  ":8080" (all interfaces)  "unix:/path" */
#ifndef WIRE_ADDRESS_H
#define WIRE_ADDRESS_H

#include <stdbool.h>

#include "base/err.h"

typedef struct address {
    bool is_unix;
    char path[108]; /* sun_path; NUL-terminated */
    char host[256]; /* "" for ":port" */
    int port;       /* 0..65535 */
} address;

/* SHOAL_EINVALID when the string is none of the above or too long. */
int address_parse(address *ret, const char *text, shoal_err *err);

/* A Unix socket, or an address that only this machine reaches. */
bool address_is_here(const address *a);

#endif
