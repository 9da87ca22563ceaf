/* ws_ingress.h: many requests over one WebSocket, at GET /v1/ws.
 *
 * A text message is one request, of any endpoint:
 *
 *     {"id": "1", "path": "/v1/chat/completions",
 *      "body": {"model": "home-chat-s", "stream": true, "messages": [...]}}
 *
 * with "method" (POST, or GET when there is no body), "headers" (an object of texts) and "body_base64" in
 * place of "body" where they are needed. The id is the client's, 64 characters at most, and names one request
 * at a time. Answers come as they are ready, each message with its request's id:
 *
 *     {"id": "1", "status": 200, "headers": {...}, "body": {...}}             a whole one
 *     {"id": "1", "status": 200, "headers": {...}, "stream": true}            or the beginning of a stream,
 *     {"id": "1", "event_id": "AQ...", "data": {...}}                         its events ("event" where they
 *                                                                             have a name),
 *     {"id": "1", "end": true}                                                and its end
 *
 * {"id": "1", "cancel": true} ends a request. A stream goes on over another connection by Last-Event-ID,
 * among the headers, as over HTTP. Whoever leaves too much unread is rested and then closed, as over HTTP,
 * too.
 *
 * The handshake needs no key; each request does, its own or the handshake's, and who has shown none within
 * UNAUTHENTICATED_MS is closed. Loop thread. */
#ifndef INGRESS_WS_INGRESS_H
#define INGRESS_WS_INGRESS_H

#include "request/request.h"

void ws_ingress_handle(gateway_request *rq); /* GET /v1/ws */

#endif
