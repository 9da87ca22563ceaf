/* capacity.h: limits.max_requests, and how clients share it.
 *
 * A client is an API key where several are configured, else a connection: one WebSocket or HTTP/2 connection may
 * have many requests at a time. While more than a quarter of max_requests is free each may have as many as it
 * sends. Of the last quarter a client gets another one while it then holds at most a quarter of those still free,
 * at least one: the more clients fill it, the less each gets, and one that holds none is served for the longest. Where
 * max_requests is less than 16 there is no such rule.
 * (Dynamic thresholds: Choudhury and Hahne, "Dynamic Queue Length Thresholds", IEEE/ACM ToN 6(2), 1998.)
 *
 *     if (capacity_check(rq, 1, &e) != 0) return e.status;     429
 *     capacity_take(rq, 1);                                    request_finish gives all of them back
 *
 * Loop thread. */
#ifndef REQUEST_CAPACITY_H
#define REQUEST_CAPACITY_H

#include "request/request.h"

/* May rq count as n more? 0, or 429 with *e filled. */
int capacity_check(const gateway_request *rq, size_t n, api_error *e);
void capacity_take(gateway_request *rq, size_t n);

/* Who sent rq; only to be compared. NULL: nobody, as of a request that the gateway makes itself. */
const void *capacity_client(const gateway_request *rq);

#endif
