/* http_internal.h: what the files of the HTTP server share. Each calls only those above it:
 *
 *     http_conn.c     what any connection needs: its turn, the date, an error's body
 *     http_request.c  a request and the calls a handler makes on it
 *     http1.c         one connection speaking HTTP/1.1      (http1_parse.c: its strict grammar)
 *     http_tunnel.c   one that has left HTTP/1.1 for another protocol
 *     http2.c         one connection speaking HTTP/2        (nghttp2 session)
 *     http2_answer.c  its answers
 *     http_server.c   connections, limits and time
 *     http_places.c   who gives way when the table is full
 *     http_listen.c   listeners
 *
 * The way up is a connection's conn_ops: what its protocol does with bytes, time and answers.
 *
 * Two rules keep handlers safe. Nothing a handler calls runs another handler callback: what follows from
 * an answer (the next pipelined request, on_gone) is done in conn_settle, from the loop. And nothing is
 * written at once: a connection that has something to send marks itself dirty, and is flushed before
 * the loop sleeps, so that all answers of one loop turn leave in one system call. */
#ifndef HTTP_HTTP_INTERNAL_H
#define HTTP_HTTP_INTERNAL_H

#include <nghttp2/nghttp2.h>

#include "http/http.h"
#include "http/http1_parse.h"
#include "wire/transport.h"

typedef struct http_conn http_conn;
typedef struct http_listener http_listener;

/* How fast a client takes what waits for it. A zeroed one begins with the first look. */
typedef struct http_pace {
    uint64_t moved, since_ms, owed; /* bytes taken and time when this span began; bytes to take in it */
} http_pace;

struct http_server {
    uv_loop_t *loop;
    http_handler handler;
    http_limits limits;
    transport_scratch scratch;
    uv_timer_t tick;      /* runs while there are connections */
    uv_timer_t probe;     /* runs while an answer is due to a client whose input has ended */
    uv_prepare_t settle;  /* runs while there are dirty ones */
    uv_check_t turn;      /* ends each turn of the loop: base/loop_work.h, n_turns */
    uv_idle_t again;      /* keeps the loop from sleeping while there still are after settling */
    int n_handles;        /* listeners and the five above that are not yet closed */
    uint64_t n_turns;     /* of the loop: from one wait for input to the end of the next */
    uint64_t accept_turn; /* of them, to which n_accepted belongs */
    size_t n_accepted;    /* connections taken in it */
    http_listener *listeners;
    http_conn *conns;
    http_conn *dirty, **last_dirty; /* in the order in which they are settled; where the next one goes */
    size_t n_conns, n_refusing;
    size_t max_refusing; /* connections that say goodbye at a time; the others are cut */
    size_t n_held;       /* memory of unsent bytes of all connections, as each was last noted */
    size_t n_doomed;     /* the same of connections that were closed for it and go at the end of this turn */
    size_t body_bytes;   /* of whole bodies that come or are answered, of all connections: http_hold */
    /* Answers an HTTP/2 request that the server refuses in another protocol's words (gRPC), unless it is none
     * of that protocol; may be NULL. */
    bool (*refuse)(http_request *r, int status, const char *why);
    void (*refused)(void *user, const char *from, const char *why); /* http_server_on_refused */
    void *refused_user;
    int port;
    bool draining, closing;
    void (*drained)(void *user);
    void *drained_user;
    void (*closed)(void *user);
    void *closed_user;
    char date[40]; /* of second date_at */
    time_t date_at;
};

/* What a protocol does. A connection begins with http_server.c's own, until its first bytes or ALPN have
 * told which it speaks. */
typedef struct conn_ops {
    void (*data)(http_conn *c, const uint8_t *bytes, size_t n);
    void (*eof)(http_conn *c);
    void (*settle)(http_conn *c); /* once a turn when something has changed: go on, send */
    void (*tick)(http_conn *c, uint64_t now_ms);
    void (*leave)(http_conn *c); /* no further requests: close once nothing is being answered */
    void (*done)(http_conn *c);  /* free what is the protocol's; may be NULL, as may the next */
    bool (*probe)(http_conn *c, uint64_t now_ms); /* see http1.c; false: nothing is to be probed */
    /* The answer, as http.h has it. */
    void (*respond)(http_request *r, int status, const http_header *headers, size_t n, const void *body,
                    size_t len);
    void (*begin)(http_request *r, int status, const http_header *headers, size_t n);
    void (*write)(http_request *r, const void *data, size_t len);
    void (*end)(http_request *r, const http_header *trailers, size_t n);
    void (*accept)(http_request *r, const http_header *headers, size_t n);
} conn_ops;

typedef enum { H1_HEAD, H1_BODY, H1_BUSY, H1_CLOSED } http1_state;

struct http_conn {
    http_server *server;
    transport *io;
    http_conn *prev, *next, *next_dirty;
    const conn_ops *ops;
    tls_context *tls; /* its listener's, or NULL; a reference of its own */
    bool is_dirty, refusing, eof, in_data;
    bool is_unix;      /* it came by a Unix socket */
    bool is_own;       /* by one that knows users, from a process of this user, or of root (http_own.h) */
    file_user *user;   /* by one for all users, from another's process; NULL: not so */
    bool is_open;      /* the TLS handshake is done, or there is none */
    bool has_answered; /* a request of it was answered */
    bool is_known;     /* it has shown a key: http_handler.is_known */
    bool evicted;      /* it goes once what it has to say has left */
    uint64_t opened_ms;
    buf in;                             /* received, not yet understood: HTTP/1.1, or too short to tell */
    uint64_t idle_since_ms;             /* no request since */
    uint64_t begun_ms;                  /* first byte of the request being received; 0: none */
    http_pace socket_pace, window_pace; /* at which it takes from the socket, and through HTTP/2's windows */
    size_t unsent;                      /* bytes that its client had not taken after the last settling */
    size_t held, doomed;                /* their memory, in the server's n_held or n_doomed */
    uint64_t turn;                      /* of the server's n_turns, to which n_turn belongs */
    size_t n_turn;                      /* requests given to the handler in it */
    bool parked;           /* whole requests wait for the next turn, or for room: see conn_may_go_on */
    bool has_waiting;      /* messages of a request of it do: see http_take_message */
    size_t n_unauthorized; /* requests that were answered with 401 */
    http_request *requests;

    http1_state h1;
    size_t in_at, line_at; /* consumed; where the unfinished head line starts */
    size_t n_lines;
    uint64_t body_left;
    bool chunked, keep_alive, running;
    uint64_t probe_at_ms, probe_gap_ms; /* see http1_probe; gap 0: not probing */
    unsigned n_zeros;                   /* of it, in front of the chunk to come */
    http1_chunks chunks;

    nghttp2_session *h2;
    size_t body_bytes, out_bytes; /* held by this connection's requests, in and out */
    size_t kept;                  /* of pieces whose handlers rest */
    size_t owed;                  /* of the connection's window, not given back because too much is kept */
    bool has_due;                 /* a request of it is due, or was */
    uint64_t taken;               /* response bytes that flow control has let through */
    uint64_t calm_since_ms;
    size_t n_resets, n_control, n_oversize;
    bool goaway;
    /* When the last bytes came; when a PING left that nothing has followed, or 0. */
    uint64_t heard_ms, pinged_ms;
    bool overdue; /* it should have been answered: one more look */
};

struct http_request {
    http_request *prev, *next;
    http_conn *conn;
    arena *mem;
    const char *method, *path, *query;
    const char *protocol; /* http_protocol */
    http_header *headers;
    size_t n_headers, cap_headers, header_bytes;
    size_t list_bytes; /* HTTP/2: of header list and trailers, as sent */
    buf body;          /* all of it so far; with another intake, the pieces that wait for the handler */
    size_t max_body;
    size_t held_body; /* of its whole body, for http_hold */
    size_t held;      /* bytes among the server's body_bytes, by all owners: http_hold */
    http_intake intake;
    bool paused, due; /* due: something waits to be delivered from the loop */
    bool waits;       /* for a later turn: see http_take_message */
    bool drained;     /* on_drained is due */
    bool end_said;    /* on_body_end has been called */
    int body_status;  /* for on_body_end */
    const char *body_why;
    uint64_t n_received; /* bytes of the body so far */
    http_pace in_pace;   /* of a body in pieces */
    int version;
    int32_t stream_id; /* HTTP/2 */
    uint64_t received_ns, begun_ms;
    void *data;
    bool headed;       /* its head has come, and that is enough for the handler */
    bool dispatched;   /* the handler has it */
    bool complete;     /* its last byte has arrived: the handler may have it */
    bool begun, ended; /* the answer */
    bool gone;         /* on_gone is due */
    bool idle;         /* http_set_idle */
    bool is_head;
    bool streaming; /* chunked or close-delimited */
    bool deferred;  /* nghttp2 waits for bytes */
    bool wrote;     /* a part of the streamed answer */
    int reject;     /* 0, or the status to refuse with once the head is in */
    const char *reject_why;
    buf out; /* HTTP/2: answer bytes that flow control has not let through */
    size_t out_at;
    uint64_t taken; /* answer bytes that flow control has let through */
    http_pace pace;
    nghttp2_nv *trailers;
    size_t n_trailers;
};

/* http_conn.c */
void conn_mark_dirty(http_conn *c);
bool conn_is_late(const http_conn *c, uint64_t now_ms); /* the request being received takes too long */
/* left bytes of a body in pieces are still to come, and too few came over request_timeout_ms. */
bool conn_body_is_too_slow(http_request *r, uint64_t left, uint64_t now_ms);
/* While its handler rests, or nothing of it is due, time does not count. */
void conn_body_rests(http_request *r, uint64_t now_ms);
bool conn_is_idle(const http_conn *c, uint64_t now_ms); /* without a request for too long */
/* May one more request of this connection go to the handler? Not while its client leaves more than a small
 * mark of answers unread, and only a few a turn of the loop, so that one client neither takes the memory nor
 * the loop. If not, the connection is parked, and settled again when it may. */
bool conn_may_go_on(http_conn *c);
bool conn_has_room(const http_conn *c);
bool conn_turn_is_full(void); /* the loop has done enough in this turn: what can wait is left for the next */
size_t conn_unsent(const http_conn *c);
/* Count what has become of its unsent bytes; when all take more memory than max_unsent, the connection that
 * holds most is closed. */
void conn_note_unsent(http_conn *c);
/* Did the client take less than what waits for it, and less than `least` bytes, in all of the last span? */
bool conn_pace_is_too_slow(http_pace *p, uint64_t waiting, uint64_t moved, uint64_t least, uint64_t now_ms,
                           uint64_t span_ms);
void conn_note_drained(http_request *r);    /* what was written to its answer has all left */
void conn_resume_waiting(http_conn *c);     /* after http_take_message said no: again, if it may */
const char *http_conn_date(http_server *s); /* for the Date header */
/* The body of an error the server answers itself, and how many headers of ret[HTTP_ERROR_HEADERS] go with it. */
size_t http_conn_error_headers(http_server *s, const http_request *r, http_header *ret);
void http_conn_error_body(http_server *s, const http_request *r, int status, const char *why, buf *out,
                          const char **ret_type);

/* http_request.c */
http_request *http_request_new(http_conn *c); /* NULL when out of memory */
/* 0, or the status to refuse with. */
int http_request_add_header(http_request *r, const char *name, size_t n_name, const char *value,
                            size_t n_value);
char *http_request_lower(http_request *r, const char *s, size_t n); /* a copy; NULL: out of memory */
int http_request_set_target(http_request *r, const char *target, size_t n);
/* Its head is whole: find out how long its body may be, and how it is wanted. */
void http_request_limit_body(http_request *r);
/* Count what its whole body has grown to: 0, 503 where the bodies of all requests take too much memory, or
 * 413 where it does so alone. */
int http_request_hold(http_request *r);

/* Of 408: a whole request, and a body in pieces. */
#define REQUEST_IS_LATE "the request did not arrive within limits.request_timeout_ms"
#define BODY_IS_SLOW \
    "the body arrives more slowly than limits.min_body_rate: send it faster, or raise the limit"

void request_complete(http_request *r); /* its last byte has come */
/* Does the handler take its body now? If not, it is kept, and delivered from the loop. */
bool http_request_flows(const http_request *r);
void http_request_mark_due(http_request *r);
void http_request_go_on(http_request *r); /* what is due; r may be gone afterwards */
/* No more of its body comes, for this reason (0: it is whole). */
void http_request_end_body(http_request *r, int status, const char *why);
void http_request_dispatch(http_request *r);
void http_request_free(http_request *r);
const char *http_status_text(int status);
/* Names and values a handler may set: well formed, and not the server's own business. */
bool http_header_is_sendable(const http_header *h);

/* http1.c */
void http1_start(http_conn *c);
void http1_refuse(http_conn *c, int status, const char *why);

/* http_tunnel.c: c has said 101, and its bytes belong to its request from now on. */
void http_tunnel_start(http_conn *c);

/* http2.c */
int http2_start(http_conn *c);
void http2_give_stream(http_conn *c, int32_t id, size_t n); /* n bytes of its window are free again */

/* http2_answer.c: of conn_ops */
void http2_respond(http_request *r, int status, const http_header *headers, size_t n, const void *body,
                   size_t len);
void http2_begin(http_request *r, int status, const http_header *headers, size_t n);
void http2_write(http_request *r, const void *data, size_t len);
void http2_end(http_request *r, const http_header *trailers, size_t n);
void http2_accept(http_request *r, const http_header *headers, size_t n);
/* The answer's head, and what r->out holds. */
void http2_send_answer(http_request *r, int status, const http_header *headers, size_t n, bool has_body);
void http2_reset(http_conn *c, int32_t id, uint32_t why);

/* http_places.c */
/* Is there a place for the newest? Perhaps another connection has made room. */
bool http_places_have_room(http_server *s, const http_conn *newest);
void http_places_tick(http_conn *c, uint64_t now_ms); /* closes it when it is unknown for too long */

/* http_listen.c */
void http_server_stop_listening(http_server *s);
void http_listen_turn(http_server *s); /* takes the connections that waited for this turn */

/* http_server.c */
void http_server_gone(http_server *s); /* the last of it has gone, perhaps: then free it, and say so */
/* Connections around a transport without a listener, for fuzz targets and tests. */
http_conn *http_server_new_conn(http_server *s);
void http_server_adopt(http_conn *c, transport *io);
const transport_events *http_server_events(http_conn *c, transport_events *ret);

#endif
