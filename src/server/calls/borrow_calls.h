/* borrow_calls.h: calls over calls that somebody else keeps.
 *
 * A decorator frees what it stands on. Between a stack that may go and one that stays stands this, which
 * frees itself alone; calls are the inner one's from their start. */
#ifndef CALLS_BORROW_CALLS_H
#define CALLS_BORROW_CALLS_H

#include "calls/calls.h"

/* inner must outlive it. */
int borrow_calls_new(calls **ret, calls *inner, shoal_err *err);

#endif
