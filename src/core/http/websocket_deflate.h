/* websocket_deflate.h: messages of a WebSocket that are packed (permessage-deflate, RFC 7692).
 *
 * Each message is packed by itself (server_no_context_takeover, client_no_context_takeover), so that a
 * WebSocket that rests keeps no window: nothing is held between messages, and what one takes is bounded by
 * its length.
 *
 *     int bits = websocket_deflate_choose(offers, answer);       // 0: not this extension
 *     websocket_deflate_pack(bytes, n, bits, &out);              // the payload of a message with RSV1
 *     websocket_deflate_unpack(bytes, n, max_bytes, &out);       // SHOAL_ELIMIT: it grows beyond that
 */
#ifndef HTTP_WEBSOCKET_DEFLATE_H
#define HTTP_WEBSOCKET_DEFLATE_H

#include "base/buf.h"
#include "base/err.h"

enum { WEBSOCKET_DEFLATE_ANSWER = 128 };

/* Of the value of Sec-WebSocket-Extensions (NULL: none) the first offer that we can keep: the bits of the
 * window to pack with (9 to 15), and what to answer; 0: there is none. */
int websocket_deflate_choose(const char *offers, char answer[WEBSOCKET_DEFLATE_ANSWER]);

/* Append to out. 0 or SHOAL_ENOMEM. */
int websocket_deflate_pack(const void *bytes, size_t n, int window_bits, buf *out);
/* 0, SHOAL_EFORMAT, SHOAL_ELIMIT or SHOAL_ENOMEM. */
int websocket_deflate_unpack(const void *bytes, size_t n, size_t max_bytes, buf *out);

#endif
