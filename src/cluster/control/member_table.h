/* member_table.h: the machines that are attached to a gateway, and what they last said.
 *
 * Pure: who is attached is told from outside, and time is an argument. What a machine says was packed by a
 * foreign program on a member's machine, so it is looked over before it is kept: texts that fit a line,
 * numbers that are numbers, lists of bounded length. A message that breaks a rule changes nothing.
 *
 *     member_table_admit(r, "kitchen-pi", now_ns, &e, err);
 *     member_table_hear(r, e, bytes, n, now_ns, &bits, &pong, err);     // SHOAL_EPROTOCOL: hang up
 *     member_table_put_json(r, now_ns, &out);
 *     member_table_leave(r, e);
 *
 * One thread. */
#ifndef CONTROL_MEMBER_TABLE_H
#define CONTROL_MEMBER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cluster/node.h"
#include "shoal/v1/cluster.pb-c.h"
#include "trust/identity.h"

enum {
    MEMBER_TABLE_NODES_MAX = 4096,
    MEMBER_TABLE_LABELS_MAX = 32,
    MEMBER_TABLE_REPLICAS_MAX = 1024,
    MEMBER_TABLE_FILES_MAX = 2048, /* files that others may fetch of it */
    MEMBER_TABLE_TEXT_MAX = 255,   /* bytes of any text */
    MEMBER_TABLE_MESSAGE_MAX = 1 << 20,
};

typedef struct member_table member_table;

typedef struct member_entry {
    char name[IDENTITY_NAME_SIZE];
    role role; /* a gateway attaches to the one with the CA, for lists and renewals, and serves nothing */
    Shoal__V1__NodeFacts *facts;         /* NULL until hello */
    Shoal__V1__NodeLoad *load;           /* NULL until the first report, as replicas */
    Shoal__V1__Replicas *replicas, *had; /* had: as of the report before, until the next message */
    Shoal__V1__StoredFiles *stored;      /* NULL: it has said nothing of files */
    uint64_t since_ns, heard_ns;
    uint64_t epoch;    /* of its attachment; 0: it says none */
    uint64_t instance; /* of its agent's process; 0: it says none */
    uint64_t twice_ns; /* when another machine with its certificate was last refused; 0: none was */
    char twice_from[64], from[64]; /* where that one came from, and where this one is */
    double rtt_ms;                 /* 0: not measured yet */
    bool drains;                   /* a person said so (control.h) */
    void *session;                 /* the caller's */
} member_entry;

/* Bits of what a message brought. */
enum {
    MEMBER_TABLE_HELLO = 1,
    MEMBER_TABLE_LOAD = 2,
    MEMBER_TABLE_REPLICAS = 4,
    MEMBER_TABLE_PONG = 8,
    MEMBER_TABLE_FILES = 16
};

int member_table_new(member_table **ret, shoal_err *err);
void member_table_free(member_table *r); /* accepts NULL */

/* A machine attaches. One that is there already keeps its entry, with what it said: it has come by another
 * connection. SHOAL_ELIMIT, SHOAL_ENOMEM. */
int member_table_admit(member_table *r, const char *name, uint64_t now_ns, member_entry **ret,
                       shoal_err *err);
void member_table_leave(member_table *r, member_entry *e);
member_entry *member_table_find(const member_table *r, const char *name); /* NULL: not attached */

/* The bytes of an AgentMessage. *ret_bits says what it brought; a pong's number is in *ret_pong.
 * SHOAL_EPROTOCOL says which rule it breaks. */
int member_table_hear(member_table *r, member_entry *e, const uint8_t *bytes, size_t n, uint64_t now_ns,
                      unsigned *ret_bits, uint64_t *ret_pong, shoal_err *err);

size_t member_table_count(const member_table *r);
member_entry *member_table_at(const member_table *r, size_t i); /* in the order of their coming */

/* The rule for texts: one line of at most MEMBER_TABLE_TEXT_MAX bytes of UTF-8. */
bool member_table_text_ok(const char *s);
/* What the facts say of devices, which are at most as many; borrows from f. Returns how many. */
size_t member_table_devices(const Shoal__V1__NodeFacts *f, node_device ret[NODE_DEVICES_MAX]);

/* Append a machine as an object. */
void member_table_put_entry(const member_entry *e, uint64_t now_ns, buf *out);
/* Append {"nodes":[...]}. */
void member_table_put_json(const member_table *r, uint64_t now_ns, buf *out);

#endif
