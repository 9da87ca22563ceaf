/* pages.h: what a browser shows: files that the program carries (asset/asset.h).
 *
 * A page is an asset with an endpoint of its own, and what it loads comes from /assets/: its scripts, styles
 * and pictures. A new page is a row of the endpoint table and a handler that names its asset:
 *
 *     void pages_mine(gateway_request *rq) { pages_serve(rq, "mine/index.html"); }
 *
 * All of them may load from this server alone, and no script or style may stand in the page itself
 * (Content-Security-Policy). They need no key: what they ask for does. */
#ifndef ENDPOINTS_PAGES_H
#define ENDPOINTS_PAGES_H

#include "request/request.h"

/* Ends the request with the asset of this name: 200, 304 where the client has it (If-None-Match), or 404. */
void pages_serve(gateway_request *rq, const char *name);

/* The client says that it has what this tag is of (If-None-Match). */
bool pages_client_has(const gateway_request *rq, const char *etag);

void pages_docs(gateway_request *rq);  /* GET /docs */
void pages_root(gateway_request *rq);  /* GET /: the page, for browsers; for others there is nothing */
void pages_asset(gateway_request *rq); /* GET /assets/... */

#endif
