/* browser.h: what a web page can make its reader's browser send here.
 *
 * A gateway without API keys trusts whoever reaches it, and a browser on the same machine does. So that not
 * every page it shows may use the models, such a gateway refuses
 *
 *     a Host that is no name of ours          (DNS rebinding: the page's own name, turned to our address)
 *     an Origin that is not our own Host      (a page of another site)
 *     a GET that a page embeds                (Sec-Fetch-Site of another site and no Origin: <img>, <iframe>)
 *     a POST that a page may send unasked     (no JSON content type; curl -d, which sends no Origin, goes on)
 *
 * With keys none of this is asked: a page does not know them. allow_hosts and allow_origins make exceptions;
 * allowed origins are told so (CORS), with or without keys. Pure functions. */
#ifndef ACCESS_BROWSER_H
#define ACCESS_BROWSER_H

#include <stdbool.h>

#include "config/config.h"
#include "messages/api_error.h"

/* Of a request; NULL where it has none. */
typedef struct browser_facts {
    const char *method, *host, *origin, *fetch_site, *content_type;
    bool takes_forms; /* the endpoint takes files, as multipart/form-data */
    const char *fetch_dest;
} browser_facts;

/* 0, or the status and the error: 421, 403, 415. */
int browser_check(const gateway_config *c, const browser_facts *f, api_error *e);
/* Is this origin among allow_origins? NULL is not. */
bool browser_origin_is_allowed(const gateway_config *c, const char *origin);

#endif
