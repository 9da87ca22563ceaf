/* accounting.h: what answers have cost, counted by model and route: a request sink (sink.h).
 *
 * Tokens that were read and made, drafts that were taken, and the price and the energy of the model that
 * answered (routes/price.h); of an ensemble at its own. An answer of the cache was counted when it was made.
 * Loop thread. */
#ifndef OBSERVE_ACCOUNTING_H
#define OBSERVE_ACCOUNTING_H

#include "request/sink.h"

extern const request_sink ACCOUNTING_SINK;

#endif
