/* state.h: the folder in which a machine keeps what must outlive its processes.
 *
 * DIR as given, else $SHOAL_STATE, else /var/lib/shoal for root, else $XDG_STATE_HOME/shoal or
 * ~/.local/state/shoal (the XDG Base Directory Specification's). The CA is in DIR/ca; a member's place in
 * DIR. */
#ifndef TRUST_STATE_H
#define TRUST_STATE_H

#include "base/err.h"

/* malloc'd; given and sub may be NULL. SHOAL_EINVALID: there is no home, so it has to be given. */
int state_path(char **ret, const char *given, const char *sub, shoal_err *err);

#endif
