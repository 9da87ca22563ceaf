/* browser.h: what a web page can make its reader's browser send here.
 *
 * A gateway without API keys trusts whoever reaches it, and a browser on the same machine does. So that not
 * every page it shows may use the models, such a gateway refuses
 *
 *     a Host that is no name of ours          (DNS rebinding: the page's own name, turned to our address)
 *     an Origin that is neither our own Host nor allowed     (a page of another site)
 *     a GET that a page embeds                (Sec-Fetch-Site of another site and no Origin: <img>, <iframe>)
 *     a POST that a page may send unasked     (no JSON content type and no trusted Origin; curl -d, which sends
 *                                              neither Origin nor Sec-Fetch-Site, is served)
 *
 * allow_hosts and allow_origins make exceptions. Without allow_origins, a gateway that listens on loopback alone
 * allows the origins of this machine (http://localhost:3000). With keys only the fetch of a page whose origin is
 * not allowed is refused: its browser would not show it the answer. Allowed origins get CORS headers, with or
 * without keys. Pure functions. */
#ifndef ACCESS_BROWSER_H
#define ACCESS_BROWSER_H

#include <stdbool.h>

#include "config/config.h"
#include "messages/api_error.h"

/* Of a request; NULL where it has none. */
typedef struct browser_facts {
    const char *method, *host, *origin, *fetch_site, *content_type;
    bool takes_forms; /* the endpoint takes files, as multipart/form-data */
    const char *fetch_dest, *fetch_mode;
} browser_facts;

/* 0, or the status and the error: 421, 403, 415. */
int browser_check(const gateway_config *c, const browser_facts *f, api_error *e);
/* Is this origin allowed, by allow_origins or by default? NULL is not. */
bool browser_origin_is_allowed(const gateway_config *c, const char *origin);
/* Does the answer depend on the Origin: may any be allowed? */
bool browser_allows_origins(const gateway_config *c);

#endif
