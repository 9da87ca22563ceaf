/* websocket.h: a WebSocket at the server's end, over a tunnel of HTTP/1.1 or HTTP/2.
 *
 * wslay keeps the protocol (RFC 6455: frames, masks, fragments, UTF-8, pings, the closing handshake); here
 * are the handshake, the bounds, and the way to the tunnel. A turn of the loop reads a few frames of a
 * connection (http_take_message); the rest waits here and, from there on, in the tunnel. The owner hands on
 * what its HTTP handler is told of the request, and gets whole messages, unpacked where the client packs them
 * (websocket_deflate.h). Loop thread.
 *
 *     on_request:   rc = websocket_accept(&ws, r, &limits, &events, &err)    // else the client was told
 *     on_body:      websocket_receive(ws, bytes, n)
 *     on_body_end:  websocket_shut(ws)
 *     on_gone:      websocket_free(ws)
 *     message:      websocket_send(ws, true, text, n)
 *
 * `closed` is the last time that the request may be read. Free the websocket in it or later, but in no other
 * callback. */
#ifndef HTTP_WEBSOCKET_H
#define HTTP_WEBSOCKET_H

#include "http/http.h"

typedef struct websocket websocket;

typedef struct websocket_limits {
    size_t max_message_bytes; /* over it: closed with 1009 */
    uint64_t message_ms;      /* each so long brings min_rate of a message, or its end; 0: for ever */
    uint64_t min_rate;        /* bytes a second */
    uint64_t ping_ms; /* so long nothing has come: a ping; and so long again: it is closed. 0: never */
} websocket_limits;

typedef struct websocket_events {
    void *user;
    void (*message)(void *user, bool is_text, const void *bytes, size_t n); /* borrowed */
    /* Once, from the loop: by us, by the client, or for what it did wrong. code: RFC 6455 7.4, 1006: the
     * connection ended without a word. No message comes afterwards. */
    void (*closed)(void *user, unsigned code);
} websocket_events;

/* Is this request for a WebSocket? */
bool websocket_is_asked(const http_request *r);
/* Answer the handshake of a request that came with HTTP_TUNNEL. 0, or an error for what is no handshake
 * (SHOAL_EINVALID; the client was told, the request has ended) or SHOAL_ENOMEM (it has ended too). */
int websocket_accept(websocket **ret, http_request *r, const websocket_limits *l, const websocket_events *ev,
                     shoal_err *err);
/* How long a packed message may get when it is unpacked, from now on; at first max_message_bytes. */
void websocket_limit_unpacked(websocket *ws, size_t max_bytes);
void websocket_receive(websocket *ws, const uint8_t *bytes, size_t n);
/* While paused no message comes, and little is read. What has come meanwhile follows from the loop. */
void websocket_pause(websocket *ws, bool paused);
void websocket_shut(websocket *ws);                  /* the client sends no more */
void websocket_tick(websocket *ws, uint64_t now_ms); /* now and then, for ping_ms */
/* One message. Nothing after websocket_close, or once it was closed. Text must be UTF-8. When more than
 * max_write_backlog waits for the client to read, it is closed with 1013 instead. */
void websocket_send(websocket *ws, bool is_text, const void *bytes, size_t n);
size_t websocket_unsent(const websocket *ws); /* what waits for the client to read */
/* Say goodbye; `closed` follows when the client has answered, or left. reason: 120 bytes at most are sent. */
void websocket_close(websocket *ws, unsigned code, const char *reason);
/* May be NULL; no callback comes any more. The tunnel is cut if it is open. */
void websocket_free(websocket *ws);

#endif
