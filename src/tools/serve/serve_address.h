/* serve_address.h: where a server listens, how a client finds it, and what to try there first. */
#ifndef SERVE_SERVE_ADDRESS_H
#define SERVE_SERVE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* The address for a client on this machine, of what `listen:` says and the port that was bound; cut off at
 * cap. */
void serve_url(char *out, size_t cap, const char *listen, bool tls, int port);
/* The command line's word in the file's place: an address, or (port >= 0) another port of the one that is
 * there. */
int serve_override_listen(gateway_config *c, const char *listen, long long port, shoal_err *err);
/* What to do about the commonest failure, a port that is taken, behind what err says; gives rc back. */
int serve_advise(shoal_err *err, int rc);
/* To standard output; commands name this program as it can be called from here. */
void serve_samples(const char *url);

#endif
