/* adapters.h: the adapters that an engine has by name.
 *
 * A plain list; its owner's lock guards it. Who takes one has a reference of its own: an adapter that is
 * removed lives on until the last request that runs with it is done. */
#ifndef NET_ADAPTERS_H
#define NET_ADAPTERS_H

#include "model/adapter.h"

typedef struct adapter_name {
    char *name;
    adapter *adapter;
} adapter_name;

typedef struct adapters {
    adapter_name *at; /* sorted by name */
    size_t n;
} adapters;

/* Letters, digits and ._- make a name, 1 to 63 of them. */
int adapters_check_name(const char *name, shoal_err *err);
/* Takes the reference, but not when it fails: SHOAL_EINVALID for a name that is taken, SHOAL_ENOMEM. */
int adapters_add(adapters *l, const char *name, adapter *a, shoal_err *err);
/* The name's adapter, with a reference for the caller; SHOAL_ENOTFOUND names those there are. */
int adapters_take(const adapters *l, const char *name, const char *model, adapter **ret, shoal_err *err);
/* Out of the list. SHOAL_ENOTFOUND as above. */
int adapters_remove(adapters *l, const char *name, const char *model, shoal_err *err);
void adapters_done(adapters *l);

#endif
