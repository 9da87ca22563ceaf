/* roster.h: the machines that are attached to a gateway, and what they last said.
 *
 * Pure: who is attached is told from outside, and time is an argument. What a machine says was packed by a
 * stranger's program on a member's machine, so it is looked over before it is kept: texts that fit a line,
 * numbers that are numbers, lists of bounded length. A message that breaks a rule changes nothing.
 *
 *     roster_admit(r, "kitchen-pi", now_ns, &e, err);
 *     roster_hear(r, e, bytes, n, now_ns, &bits, &pong, err);     // SHOAL_EPROTOCOL: hang up
 *     roster_put_json(r, now_ns, &out);
 *     roster_leave(r, e);
 *
 * One thread. */
#ifndef CONTROL_ROSTER_H
#define CONTROL_ROSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "shoal/v1/cluster.pb-c.h"
#include "trust/identity.h"

enum {
    ROSTER_NODES_MAX = 4096,
    ROSTER_LABELS_MAX = 32,
    ROSTER_REPLICAS_MAX = 1024,
    ROSTER_SHELF_MAX = 2048, /* files that others may fetch of it */
    ROSTER_TEXT_MAX = 255,   /* bytes of any text */
    ROSTER_MESSAGE_MAX = 1 << 20,
};

typedef struct roster roster;

typedef struct roster_entry {
    char name[IDENTITY_NAME_SIZE];
    role role; /* a gateway attaches to the one with the CA, for lists and renewals, and serves nothing */
    Shoal__V1__NodeFacts *facts;         /* NULL until hello */
    Shoal__V1__NodeLoad *load;           /* NULL until the first report, as replicas */
    Shoal__V1__Replicas *replicas, *had; /* had: as of the report before, until the next message */
    Shoal__V1__Shelf *shelf;             /* NULL: it has said nothing of files */
    uint64_t since_ns, heard_ns;
    uint64_t epoch;    /* of its attachment; 0: it says none */
    uint64_t instance; /* of its agent's process; 0: it says none */
    uint64_t twice_ns; /* when another machine with its certificate was last refused; 0: none was */
    char twice_from[64], from[64]; /* where that one came from, and where this one is */
    double rtt_ms;                 /* 0: not measured yet */
    bool drains;                   /* a person said so (control.h) */
    void *session;                 /* the caller's */
} roster_entry;

/* Bits of what a message brought. */
enum { ROSTER_HELLO = 1, ROSTER_LOAD = 2, ROSTER_REPLICAS = 4, ROSTER_PONG = 8, ROSTER_SHELF = 16 };

int roster_new(roster **ret, shoal_err *err);
void roster_free(roster *r); /* accepts NULL */

/* A machine attaches. One that is there already keeps its entry, with what it said: it has come by another
 * connection. SHOAL_ELIMIT, SHOAL_ENOMEM. */
int roster_admit(roster *r, const char *name, uint64_t now_ns, roster_entry **ret, shoal_err *err);
void roster_leave(roster *r, roster_entry *e);
roster_entry *roster_find(const roster *r, const char *name); /* NULL: not attached */

/* The bytes of an AgentMessage. *ret_bits says what it brought; a pong's number is in *ret_pong.
 * SHOAL_EPROTOCOL says which rule it breaks. */
int roster_hear(roster *r, roster_entry *e, const uint8_t *bytes, size_t n, uint64_t now_ns,
                unsigned *ret_bits, uint64_t *ret_pong, shoal_err *err);

size_t roster_count(const roster *r);
roster_entry *roster_at(const roster *r, size_t i); /* in the order of their coming */

/* The rule for texts: one line of at most ROSTER_TEXT_MAX bytes of UTF-8. */
bool roster_text_ok(const char *s);

/* Append a machine as an object. */
void roster_put_entry(const roster_entry *e, uint64_t now_ns, buf *out);
/* Append {"nodes":[...]}. */
void roster_put_json(const roster *r, uint64_t now_ns, buf *out);

#endif
