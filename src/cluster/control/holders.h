/* holders.h: what attached machines have fetched, told to those that lack it.
 *
 * A machine says with each report what others may fetch of it (StoredFiles). One that has been assigned a file that
 * it does not have hears who has it: machines of its own site first, beginning at a place that follows from
 * its name, so that many who join at once do not all ask the same one. What machines say is not believed,
 * only passed on: who fetches compares the digest.
 *
 *     holders_list l = {0};
 *     for (each file that it needs) holders_add(&l, members, e, digest, address_of);
 *     m.holders = holders_message(&l);     // valid until holders_done
 *     holders_done(&l);
 *
 * Pure but for memory. */
#ifndef CONTROL_HOLDERS_H
#define CONTROL_HOLDERS_H

#include "transfer/model_holders.h"
#include "control/member_table.h"

typedef struct holders_item {
    char digest[65];
    size_t n;
    struct {
        const char *node; /* the member table's */
        char address[HOLDERS_ADDRESS_SIZE];
    } at[HOLDERS_OF_FILE_MAX];
} holders_item;

typedef struct holders_list { /* zeroed: empty */
    holders_item *items;
    size_t n, cap;
    Shoal__V1__Holders message;
    void *memory;
} holders_list;

/* Where a machine's relay is reached: "HOST:PORT"; false: it cannot be. */
typedef bool holders_address(const member_entry *e, char *ret, size_t size);

/* Nothing is added where nobody else has it, or where `to` has it itself. False: no memory. */
bool holders_add(holders_list *l, const member_table *r, const member_entry *to, const char *digest,
                 holders_address *where);
/* Borrows from l; NULL: no memory. */
Shoal__V1__Holders *holders_message(holders_list *l);
void holders_done(holders_list *l);

#endif
