/* call_notes.h: what the calls of requests did, noted at the request and in the metrics.
 *
 * A request has a number, which its calls carry (call_context.request) and which is never given twice. A call
 * may outlive its request: then the number names nobody, and only the metrics count.
 *
 *     call_notes_open(g);                       // fills g->observer, before the calls are opened
 *     call_notes_add(rq); ... call_notes_remove(rq);
 */
#ifndef REQUEST_CALL_NOTES_H
#define REQUEST_CALL_NOTES_H

#include "request/gateway_state.h"

void call_notes_open(gateway *g);
void call_notes_add(gateway_request *rq); /* gives it its number */
void call_notes_remove(gateway_request *rq);

#endif
