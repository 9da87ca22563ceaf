/* spend.h: what answers have cost, counted by model and route.
 *
 *     spend_note(rq)      once, when a request is counted
 *
 * Tokens that were read and made, at the price of the model that answered (routes/price.h); of an ensemble at
 * its own. Loop thread. */
#ifndef REQUEST_SPEND_H
#define REQUEST_SPEND_H

#include "request/request.h"

void spend_note(const gateway_request *rq);

#endif
