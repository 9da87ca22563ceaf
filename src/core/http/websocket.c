/* websocket.c: wslay between a tunnel and its owner. */
#define OPENSSL_SUPPRESS_DEPRECATED /* SHA1_* allocate nothing, as base/sha256.c says of their kin */
#include "http/websocket.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#include "base/loop_work.h"
#include "base/utf8.h"
#include "wire/coding.h"
#include "http/websocket_deflate.h"

enum {
    KEY_BYTES = 16,
    REASON_MAX = 120,       /* of the 125 that a control frame carries, two are the code's */
    RSV1 = 4,               /* in wslay's words: the message is packed */
    GOODBYE_MS = 5000,      /* so long a client may take to answer a closing frame */
    HEAD_MAX = 14,          /* of a frame: two bytes, eight of the length, four of the mask */
    TRY_AGAIN_LATER = 1013, /* IANA's registry of close codes, beyond RFC 6455 */
    ABNORMAL_CLOSURE = 1006,
    FRAGMENTS_MAX = 1024, /* of a message that is short */
    FRAGMENT_BYTES = 64   /* on average, of one that is long: wslay keeps some 90 bytes for each fragment */
};

/* Where the bytes handed to wslay stand in their frame. wslay reads ahead and works through all that it has
 * read, so it is given one frame at a time. */
typedef struct frame_place {
    uint8_t head[HEAD_MAX];
    size_t n_head;
    uint64_t left;      /* of the payload */
    size_t n_fragments; /* of the message so far */
} frame_place;

struct websocket {
    http_request *r; /* NULL: ended */
    websocket_limits limits;
    size_t max_unpacked;
    websocket_events ev;
    wslay_event_context_ptr ctx;
    const uint8_t *in; /* what has come and was not read yet */
    size_t n_in;
    frame_place at;
    size_t n_message, held; /* bytes of the message that is in assembly; the same for http_hold */
    size_t message_moved;   /* n_message at message_ms */
    uint64_t message_ms;    /* when its rate was last looked at, by websocket_tick's clock; 0: not yet */
    buf kept;               /* what waits for a later turn */
    bool waits;             /* for it */
    bool paused;
    uint64_t now_ms, heard_ms, pinged_ms, closing_ms; /* by websocket_tick's clock; 0: no */
    bool closing, receiving, told;
    int deflate_bits; /* of the window to pack with; 0: permessage-deflate was not asked for */
};

/* ---- the handshake --------------------------------------------------------------------------- */

bool websocket_is_asked(const http_request *r)
{
    const char *name = http_protocol(r);
    return name && strcmp(name, "websocket") == 0;
}

static bool is_key(const char *key)
{
    buf bytes = {0};
    bool ok = key && base64_decode(&bytes, key, strlen(key)) == 0 && bytes.len == KEY_BYTES;
    buf_done(&bytes);
    return ok;
}

/* RFC 6455 4.2.2, step 5.4. */
static int put_accept(buf *out, const char *key)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t sum[SHA_DIGEST_LENGTH];
    SHA_CTX s;
    SHA1_Init(&s);
    SHA1_Update(&s, key, strlen(key));
    SHA1_Update(&s, guid, sizeof guid - 1);
    SHA1_Final(sum, &s);
    return base64_encode(out, sum, sizeof sum);
}

static int websocket_refuse(http_request *r, int status, const char *why, shoal_err *err)
{
    const http_header h[] = {{"content-type", "text/plain; charset=utf-8"}, {"sec-websocket-version", "13"}};
    http_respond(r, status, h, 2, why, strlen(why));
    return err_set(err, SHOAL_EINVALID, "%s", why);
}

static int refuse_for_memory(http_request *r, shoal_err *err)
{
    http_respond(r, 503, NULL, 0, "out of memory\n", 14);
    return err_nomem(err);
}

/* Over HTTP/2 the key and its echo are no part of the handshake (RFC 8441 5). */
static int shake_hands(http_request *r, const char *extensions, shoal_err *err)
{
    http_header h[2] = {{"sec-websocket-extensions", extensions}};
    size_t n = *extensions ? 1 : 0;
    const char *version = http_header_get(r, "sec-websocket-version");
    const char *key = http_header_get(r, "sec-websocket-key");
    buf echo = {0};
    if (!version || strcmp(version, "13") != 0)
        return websocket_refuse(r, 426, "Sec-WebSocket-Version must be 13\n", err);
    if (http_version(r) == 20) {
        http_accept(r, h, n);
        return 0;
    }
    if (!is_key(key)) return websocket_refuse(r, 400, "Sec-WebSocket-Key must be 16 bytes in base64\n", err);
    if (put_accept(&echo, key) != 0 || echo.failed) {
        buf_done(&echo);
        return refuse_for_memory(r, err);
    }
    h[n++] = (http_header){"sec-websocket-accept", echo.data};
    http_accept(r, h, n);
    buf_done(&echo);
    return 0;
}

/* ---- wslay's side ---------------------------------------------------------------------------- */

/* How long the head of a frame is, as far as its first bytes tell (RFC 6455 5.2). */
static size_t head_bytes(const frame_place *at)
{
    if (at->n_head < 2) return 2;
    unsigned length = at->head[1] & 127;
    size_t masked = at->head[1] & 128 ? 4 : 0;
    return 2 + (length == 127 ? 8 : length == 126 ? 2 : 0) + masked;
}

static uint64_t payload_bytes(const frame_place *at)
{
    unsigned length = at->head[1] & 127;
    size_t n = length == 127 ? 8 : length == 126 ? 2 : 0;
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v = v << 8 | at->head[2 + i];
    return n ? v : length;
}

/* Control frames may stand between those of a message. */
static void count_fragment(frame_place *at)
{
    unsigned opcode = at->head[0] & 15;
    if (opcode == WSLAY_CONTINUATION_FRAME)
        at->n_fragments++;
    else if (!wslay_is_ctrl_frame(opcode))
        at->n_fragments = 1;
}

static bool has_too_many_fragments(const websocket *ws)
{
    return ws->at.n_fragments > FRAGMENTS_MAX + ws->limits.max_message_bytes / FRAGMENT_BYTES;
}

/* The next of the bytes up to the end of a head or of a payload: at most max of them. */
static size_t take_bytes(websocket *ws, uint8_t *to, size_t max)
{
    frame_place *at = &ws->at;
    uint64_t most = at->left ? at->left : head_bytes(at) - at->n_head;
    size_t n = ws->n_in < max ? ws->n_in : max;
    if (n > most) n = (size_t)most;
    memcpy(to, ws->in, n);
    ws->in += n;
    ws->n_in -= n;
    if (at->left) {
        at->left -= n;
        return n;
    }
    memcpy(at->head + at->n_head, to, n);
    at->n_head += n;
    if (at->n_head == head_bytes(at)) {
        at->left = payload_bytes(at);
        at->n_head = 0;
        count_fragment(at);
    }
    return n;
}

/* False: it is closed, since no more can be kept. */
static bool count_payload(websocket *ws, size_t n)
{
    uint8_t opcode = ws->at.head[0] & 15;
    if (wslay_is_ctrl_frame(opcode)) return true;
    ws->n_message += n;
    int status = http_hold(ws->r, &ws->held, ws->n_message);
    if (status == 0) return true;
    websocket_close(ws, status == 413 ? WSLAY_CODE_MESSAGE_TOO_BIG : TRY_AGAIN_LATER, http_hold_why(status));
    wslay_event_shutdown_read(ws->ctx);
    return false;
}

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *to, size_t max, int flags, void *user)
{
    websocket *ws = user;
    bool is_new = !ws->at.left && !ws->at.n_head;
    if (ws->n_in && is_new) ws->waits = ws->paused || !http_take_message(ws->r);
    if (ws->n_in == 0 || ws->waits || has_too_many_fragments(ws)) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    bool is_payload = ws->at.left > 0;
    size_t n = take_bytes(ws, to, max);
    if (is_payload && !count_payload(ws, n)) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    return (ssize_t)n;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *bytes, size_t n, int flags, void *user)
{
    websocket *ws = user;
    http_respond_write(ws->r, bytes, n);
    return (ssize_t)n;
}

static void refuse_unpacked(websocket *ws)
{
    char why[REASON_MAX];
    snprintf(why, sizeof why, "the message is longer than %zu bytes once it is unpacked", ws->max_unpacked);
    websocket_close(ws, WSLAY_CODE_MESSAGE_TOO_BIG, why);
}

/* wslay looks at a packed text's bytes no further, so whether they are UTF-8 is ours to see. */
static void unpack(websocket *ws, const struct wslay_event_on_msg_recv_arg *m)
{
    buf plain = {0};
    bool is_text = m->opcode == WSLAY_TEXT_FRAME;
    int rc = websocket_deflate_unpack(m->msg, m->msg_length, ws->max_unpacked, &plain);
    if (rc == 0 && is_text && plain.len && !utf8_valid(plain.data, plain.len, NULL)) rc = SHOAL_EFORMAT;
    if (rc == 0)
        ws->ev.message(ws->ev.user, is_text, plain.len ? plain.data : "", plain.len);
    else if (rc == SHOAL_ELIMIT)
        refuse_unpacked(ws);
    else if (rc == SHOAL_ENOMEM)
        websocket_close(ws, WSLAY_CODE_INTERNAL_SERVER_ERROR, "out of memory");
    else
        websocket_close(ws, WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA, "the packed message is damaged");
    buf_done(&plain);
}

static void websocket_on_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m,
                                 void *user)
{
    websocket *ws = user;
    if (!wslay_is_ctrl_frame(m->opcode)) {
        ws->n_message = 0;
        ws->message_ms = 0;
        http_hold(ws->r, &ws->held, 0);
    }
    if (ws->closing) return;
    loop_work_add(m->msg_length);
    if (wslay_is_ctrl_frame(m->opcode)) {
        if (m->rsv) websocket_close(ws, WSLAY_CODE_PROTOCOL_ERROR, "a control frame cannot be packed");
    } else if (m->rsv & RSV1) {
        unpack(ws, m);
    } else {
        ws->ev.message(ws->ev.user, m->opcode == WSLAY_TEXT_FRAME, m->msg, m->msg_length);
    }
}

/* ---- the way through it ---------------------------------------------------------------------- */

static void websocket_end(websocket *ws, unsigned code)
{
    http_request *r = ws->r;
    if (!r) return;
    bool tells = !ws->told;
    ws->r = NULL;
    ws->told = true;
    if (tells) ws->ev.closed(ws->ev.user, code); /* who is told may free ws, and still read the request */
    http_respond_end(r, NULL, 0);
}

/* For frames that wslay cannot read it queues a goodbye without a code; so this one is ours. */
static void websocket_give_up(websocket *ws, unsigned code)
{
    const uint8_t goodbye[] = {0x80 | WSLAY_CONNECTION_CLOSE, 2, (uint8_t)(code >> 8), (uint8_t)code};
    if (ws->r && !wslay_event_get_close_sent(ws->ctx)) http_respond_write(ws->r, goodbye, sizeof goodbye);
    websocket_end(ws, code);
}

static unsigned code_of(const websocket *ws)
{
    unsigned got =
        wslay_event_get_close_received(ws->ctx) ? wslay_event_get_status_code_received(ws->ctx) : 0;
    return got ? got : wslay_event_get_status_code_sent(ws->ctx);
}

/* Over, once our last word has gone out and no more is read. */
static bool websocket_is_over(const websocket *ws)
{
    return wslay_event_get_close_sent(ws->ctx) &&
           (wslay_event_get_close_received(ws->ctx) || !wslay_event_get_read_enabled(ws->ctx));
}

static void websocket_flush(websocket *ws)
{
    if (ws->r && wslay_event_want_write(ws->ctx) && wslay_event_send(ws->ctx) != 0)
        wslay_event_shutdown_write(ws->ctx);
}

int websocket_accept(websocket **ret, http_request *r, const websocket_limits *l, const websocket_events *ev,
                     shoal_err *err)
{
    static const struct wslay_event_callbacks calls = {
        .recv_callback = on_recv, .send_callback = on_send, .on_msg_recv_callback = websocket_on_message};
    websocket *ws = calloc(1, sizeof *ws);
    if (!ws || wslay_event_context_server_init(&ws->ctx, &calls, ws) != 0) {
        free(ws);
        return refuse_for_memory(r, err);
    }
    char extensions[WEBSOCKET_DEFLATE_ANSWER] = "";
    *ws = (websocket){.r = r, .limits = *l, .max_unpacked = l->max_message_bytes, .ev = *ev, .ctx = ws->ctx};
    ws->deflate_bits = websocket_deflate_choose(http_header_get(r, "sec-websocket-extensions"), extensions);
    if (ws->deflate_bits) wslay_event_config_set_allowed_rsv_bits(ws->ctx, RSV1);
    wslay_event_config_set_max_recv_msg_length(ws->ctx, l->max_message_bytes);
    int rc = shake_hands(r, extensions, err);
    if (rc == 0) {
        *ret = ws;
        return 0;
    }
    ws->r = NULL;
    websocket_free(ws);
    return rc;
}

void websocket_limit_unpacked(websocket *ws, size_t max_bytes)
{
    ws->max_unpacked = max_bytes;
}

/* Frame by frame, until one waits for a later turn. */
static int read_frames(websocket *ws)
{
    int rc = 0;
    ws->waits = false;
    ws->receiving = true;
    do {
        rc = wslay_event_want_read(ws->ctx) ? wslay_event_recv(ws->ctx) : 0;
    } while (rc == 0 && ws->n_in && !ws->waits && !has_too_many_fragments(ws) &&
             wslay_event_want_read(ws->ctx));
    if (has_too_many_fragments(ws) && !ws->closing) {
        websocket_close(ws, WSLAY_CODE_MESSAGE_TOO_BIG, "the message comes in too many fragments");
        wslay_event_shutdown_read(ws->ctx);
    }
    ws->receiving = false;
    return rc;
}

/* Bytes that came after those that wait are read behind them. */
static int read_kept(websocket *ws, const uint8_t *bytes, size_t n)
{
    if (n && buf_append(&ws->kept, bytes, n) != 0) return WSLAY_ERR_NOMEM;
    ws->in = (const uint8_t *)ws->kept.data;
    ws->n_in = ws->kept.len;
    int rc = read_frames(ws);
    buf_consume(&ws->kept, ws->waits ? ws->kept.len - ws->n_in : ws->kept.len);
    if (!ws->waits) buf_done(&ws->kept);
    return rc;
}

static int read_new(websocket *ws, const uint8_t *bytes, size_t n)
{
    ws->in = bytes;
    ws->n_in = n;
    int rc = read_frames(ws);
    if (rc == 0 && ws->waits && buf_append(&ws->kept, ws->in, ws->n_in) != 0) rc = WSLAY_ERR_NOMEM;
    return rc;
}

void websocket_receive(websocket *ws, const uint8_t *bytes, size_t n)
{
    if (!ws->r) return;
    if (n) {
        ws->heard_ms = ws->now_ms;
        ws->pinged_ms = 0;
    }
    int rc = ws->kept.len ? read_kept(ws, bytes, n) : n ? read_new(ws, bytes, n) : 0;
    ws->n_in = 0;
    if (rc != 0) {
        websocket_give_up(ws, rc == WSLAY_ERR_NOMEM ? WSLAY_CODE_INTERNAL_SERVER_ERROR
                                                    : WSLAY_CODE_PROTOCOL_ERROR);
        return;
    }
    websocket_flush(ws);
    if (websocket_is_over(ws)) websocket_end(ws, code_of(ws));
}

void websocket_pause(websocket *ws, bool paused)
{
    ws->paused = paused;
    if (ws->r) http_pause(ws->r, paused);
}

void websocket_shut(websocket *ws)
{
    websocket_end(ws, ABNORMAL_CLOSURE);
}

/* As for a body: each message_ms brings what min_rate asks for, or the end. While a message is not read, its
 * client cannot send. */
static bool is_too_slow(websocket *ws)
{
    const websocket_limits *l = &ws->limits;
    bool is_coming = ws->n_message || ws->at.n_head || ws->at.left;
    uint64_t ms = ws->now_ms - ws->message_ms, least = l->min_rate * l->message_ms / 1000;
    bool rests = !is_coming || ws->paused || ws->waits || !ws->message_ms;
    if (!rests && ms <= l->message_ms) return false;
    bool slow = !rests && l->message_ms && ws->n_message - ws->message_moved < (least ? least : 1);
    ws->message_ms = is_coming ? ws->now_ms : 0;
    ws->message_moved = ws->n_message;
    return slow;
}

void websocket_tick(websocket *ws, uint64_t now_ms)
{
    ws->now_ms = now_ms;
    if (!ws->r) return;
    if (!ws->closing && is_too_slow(ws)) {
        websocket_close(ws, WSLAY_CODE_POLICY_VIOLATION, "the message comes too slowly");
        wslay_event_shutdown_read(ws->ctx);
        if (websocket_is_over(ws)) websocket_end(ws, code_of(ws));
        return;
    }
    if (!ws->heard_ms) ws->heard_ms = now_ms;
    if (ws->closing && !ws->closing_ms) ws->closing_ms = now_ms;
    uint64_t ping_ms = ws->limits.ping_ms;
    if (ws->closing_ms && now_ms - ws->closing_ms >= GOODBYE_MS) {
        websocket_end(ws, ABNORMAL_CLOSURE);
    } else if (ping_ms && ws->pinged_ms && now_ms - ws->pinged_ms >= ping_ms) {
        websocket_end(ws, ABNORMAL_CLOSURE);
    } else if (ping_ms && !ws->pinged_ms && now_ms - ws->heard_ms >= ping_ms) {
        ws->pinged_ms = now_ms;
        wslay_event_queue_msg(ws->ctx, &(struct wslay_event_msg){.opcode = WSLAY_PING});
        websocket_flush(ws);
    }
}

void websocket_send(websocket *ws, bool is_text, const void *bytes, size_t n)
{
    if (!ws->r || ws->closing) return;
    if (http_unsent(ws->r) > http_unsent_max(ws->r)) {
        websocket_close(ws, TRY_AGAIN_LATER, "too many answers wait to be read");
        return;
    }
    struct wslay_event_msg m = {
        .opcode = is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, .msg = bytes, .msg_length = n};
    buf packed = {0};
    bool packs = ws->deflate_bits && coding_worth(n) & CODING_GZIP &&
                 websocket_deflate_pack(bytes, n, ws->deflate_bits, &packed) == 0 && packed.len < n;
    if (packs) {
        m.msg = (const uint8_t *)packed.data;
        m.msg_length = packed.len;
    }
    int rc = wslay_event_queue_msg_ex(ws->ctx, &m, packs ? RSV1 : 0); /* it copies */
    buf_done(&packed);
    if (rc == WSLAY_ERR_NOMEM)
        websocket_close(ws, WSLAY_CODE_INTERNAL_SERVER_ERROR,
                        "out of memory"); /* nothing is left out unsaid */
    if (!ws->receiving) websocket_flush(ws);
}

size_t websocket_unsent(const websocket *ws)
{
    return ws->r ? http_unsent(ws->r) : 0;
}

void websocket_close(websocket *ws, unsigned code, const char *reason)
{
    if (!ws->r || ws->closing) return;
    size_t n = strlen(reason);
    websocket_flush(ws); /* wslay sends control frames first, and nothing behind a closing one */
    ws->closing = true;
    ws->closing_ms = ws->now_ms;
    (void)wslay_event_queue_close(ws->ctx, (uint16_t)code, (const uint8_t *)reason,
                                  n < REASON_MAX ? n : REASON_MAX);
    if (!ws->receiving) websocket_flush(ws);
}

void websocket_free(websocket *ws)
{
    if (!ws) return;
    ws->told = true;
    websocket_end(ws, 0);
    wslay_event_context_free(ws->ctx);
    buf_done(&ws->kept);
    free(ws);
}
