/* gateways.h: the gateways that a machine knows, and at which of them it tries to attach next.
 *
 * Some were given by a person (--join A,B; the file "gateway" of the state folder), in the order in which to
 * try them; the first is the machine's home. Others are told by gateways (cluster.proto, Gateways) and kept
 * in the file "gateways". Who is told of under a name that is known has moved; when there are too many, the
 * one that was first told of goes. Nobody here is believed: whoever answers at an address must show a
 * gateway's certificate of the cluster's CA (attach.h).
 *
 *     gateways_give(&g, "10.0.0.1:7080,10.0.0.2:7080", err);
 *     gateways_read(&g, &dir, err);
 *     address = gateways_address(&g);                 attach there; when that is lost:
 *     wait_ms = gateways_lost(&g, lived_ms, draw);    and then gateways_address again
 *
 * Pure but for its file; time and chance are arguments. One thread. */
#ifndef JOIN_GATEWAYS_H
#define JOIN_GATEWAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shoal/v1/cluster.pb-c.h"
#include "trust/folder.h"
#include "trust/identity.h"

enum {
    GATEWAYS_MAX = 16,
    GATEWAYS_GIVEN_MAX = 8,
    GATEWAYS_ADDRESS_SIZE = 264,
    GATEWAYS_LASTED_MS = 5000, /* a link that lived so long was no failure */
    GATEWAYS_TEXT_MAX = GATEWAYS_MAX * (GATEWAYS_ADDRESS_SIZE + IDENTITY_NAME_SIZE + 2),
};

typedef struct gateways_one {
    char name[IDENTITY_NAME_SIZE]; /* "": not known yet */
    char address[GATEWAYS_ADDRESS_SIZE];
} gateways_one;

typedef struct gateways { /* zeroed: none are known */
    gateways_one list[GATEWAYS_MAX];
    size_t n, n_given; /* those that were given come first */
    size_t at;         /* where the machine is attached, or tries to be */
    unsigned n_failed; /* since a link lasted */
    bool roams;        /* it tries those that were told as well */
} gateways;

/* "HOST:PORT", or several with commas or line ends between them, in the place of those given before.
 * SHOAL_EINVALID: one of them is none, or there are too many; then nothing has changed. */
int gateways_give(gateways *g, const char *text, shoal_err *err);
/* What gateways have told, from the folder. SHOAL_EINVALID: the file makes no sense, and is not heeded. */
int gateways_read(gateways *g, const folder *dir, shoal_err *err);
int gateways_write(const gateways *g, const folder *dir, shoal_err *err);
/* The same as text, "NAME ADDRESS" a line. */
int gateways_parse(gateways *g, const char *text, size_t n, shoal_err *err);
void gateways_put(const gateways *g, buf *out);

/* A gateway tells of others; what makes no sense is stepped over. True: the list is another one now. */
bool gateways_hear(gateways *g, const Shoal__V1__Gateways *m);
/* The machine is attached there, to the gateway of that name. True: the list is another one now. */
bool gateways_settle(gateways *g, const char *address, const char *name);

const char *gateways_address(const gateways *g);
bool gateways_is_home(const gateways *g); /* it is at the first of those that were given */
/* The link there, which had been welcomed for lived_ms (0: never), is lost, and the next gateway's turn has
 * come: after so many milliseconds. At once where a link that lasted is lost and there is another gateway;
 * else after attach_pause_ms of the attempts that failed since. */
uint64_t gateways_lost(gateways *g, uint64_t lived_ms, double draw);

/* May machines be sent there: a HOST:PORT that fits? */
bool gateways_address_ok(const char *address);

#endif
