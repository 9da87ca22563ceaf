/* serve_address.h: where a server listens, and how a client finds it. */
#ifndef SERVE_SERVE_ADDRESS_H
#define SERVE_SERVE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* The address for a client on this machine, of what `listen:` says and the port that was bound; cut off at
 * cap. */
void serve_url(char *out, size_t cap, const char *listen, bool tls, int port);
/* The command line's word in the file's place: an address, or another host (not NULL) and another port (>= 0) of the
 * one that is there. */
int serve_override_listen(gateway_config *c, const char *listen, const char *host, long long port,
                          shoal_err *err);
/* What to do about the commonest failure, a port that is taken, behind what err says; gives rc back. */
int serve_advise(shoal_err *err, int rc);
/* What to type for this program here: "shoal" where PATH finds it, else its path, from this folder if it is below it. */
void serve_program(char *ret, size_t size);

#endif
