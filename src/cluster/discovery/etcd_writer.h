/* etcd_writer.h: what some keys shall hold in etcd, written one after the other until etcd has it.
 *
 *     etcd_writer_open(&w, session, &(etcd_writer_options){.user = x, .leased = true, .failed = log_it}, err);
 *     etcd_writer_put(w, "/shoal/v1/home/nodes/attic", text, n);      // NULL: delete it
 *     etcd_writer_close(w);                                           // what etcd has stays there
 *
 * Leased keys are written under the session's lease, and all of them again under the next one. Others are written once
 * and then forgotten, each in one transaction with a look at the fence. Loop thread. */
#ifndef DISCOVERY_ETCD_WRITER_H
#define DISCOVERY_ETCD_WRITER_H

#include "discovery/etcd_session.h"

typedef struct etcd_writer etcd_writer;

typedef struct etcd_writer_options {
    void *user;
    bool leased;
    /* May be NULL. A key, and the create revision that it must have; NULL: we may not write, all is forgotten. */
    const char *(*fence)(void *user, int64_t *ret_revision);
    /* For the log; it is tried again. why NULL: the fence did not hold, all is forgotten. */
    void (*failed)(void *user, const char *key, const char *why);
} etcd_writer_options;

/* The session must outlive it. */
int etcd_writer_open(etcd_writer **ret, etcd_session *s, const etcd_writer_options *o, shoal_err *err);
void etcd_writer_close(etcd_writer *w); /* accepts NULL */
/* The value is copied. SHOAL_ENOMEM: nothing has changed. */
int etcd_writer_put(etcd_writer *w, const char *key, const void *value, size_t n);
void etcd_writer_rewrite(etcd_writer *w);         /* somebody else changed our keys: write them again */
void etcd_writer_forget(etcd_writer *w);          /* nothing is to be written any more */
size_t etcd_writer_waiting(const etcd_writer *w); /* keys that etcd does not have yet */

#endif
