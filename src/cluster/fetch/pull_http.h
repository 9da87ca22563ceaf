/* pull_http.h: GET by libcurl under rules of our own.
 *
 * https everywhere; plain http to loopback alone, also where a redirect points. Ten redirects at most; to
 * this machine, or an address of a private network, only where that host was asked or is allowed by name, so
 * that no server elsewhere can point a download at what only this machine reaches. The authorization goes to
 * the host (and port) that it was meant for, never to another. Bodies are handed on as they come; a body of
 * an error status is dropped. One client belongs to one thread; proxies are libcurl's (the usual environment
 * variables). */
#ifndef FETCH_PULL_HTTP_H
#define FETCH_PULL_HTTP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct pull_client pull_client;

typedef struct pull_client_options {
    int stall_s; /* give up when nothing came for so long [30] */
    int tries;   /* of what another try may mend [6] */
    /* HOST or HOST:PORT that redirects may point at though they are near; borrowed. */
    const char *const *hosts;
    size_t n_hosts;
    const volatile sig_atomic_t *stop; /* non-zero ends every transfer with SHOAL_ECANCELLED; NULL */
} pull_client_options;

int pull_client_new(pull_client **ret, const pull_client_options *o, shoal_err *err);
void pull_client_free(pull_client *c); /* NULL is fine */
bool pull_client_stopped(const pull_client *c);
/* How often to try what another try may mend: as the options say, but twice only where the last try found
 * nobody who listens and nobody has answered this client before. */
int pull_client_tries(const pull_client *c);
/* Wait so long, or until stopped. */
void pull_client_sleep(const pull_client *c, int ms);

typedef struct pull_reply { /* of the last response; "" and 0 where a header is absent */
    int status;
    bool has_length, has_range;
    uint64_t length, range_from;
    int retry_after_s;
    char etag[256], authenticate[2048], link[4096], location[4096], type[128];
} pull_reply;

typedef struct pull_request {
    const char *url, *accept;  /* accept NULL: anything */
    const char *authorization; /* "Bearer ..."; NULL */
    uint64_t from;             /* ask for the bytes from here on */
    const char *if_range;      /* with `from`: only when the file still has this etag; NULL */
    /* The status is 2xx and its headers are there; then its bytes. A result other than 0 ends the transfer
     * and is returned. Either may be NULL. */
    int (*begin)(void *user, const pull_reply *reply, shoal_err *err);
    int (*data)(void *user, const char *data, size_t n, shoal_err *err);
    void *user;
} pull_request;

/* 0 with ret->status, whichever it is. SHOAL_EUNAVAILABLE for what another try may mend (no connection, cut
 * off, too slow), SHOAL_EPROTOCOL, SHOAL_EAUTH for an address that is not allowed, SHOAL_ECANCELLED. */
int pull_http_get(pull_client *c, const pull_request *r, pull_reply *ret, shoal_err *err);

/* Is it https, or http to this machine? The sentence says what is wrong. */
int pull_url_check(const char *url, shoal_err *err);
/* Are scheme, host and port the same? */
bool pull_url_same_origin(const char *a, const char *b);
/* Is an address of this machine, its link or a private network, or none that a server has? Pure. */
bool pull_address_is_near(const struct sockaddr *a);
/* Does a host name this machine: localhost, 127.x.x.x, ::1, with or without a port? */
bool pull_host_is_loopback(const char *host);

/* `word` of `Bearer realm="...",service="..."`, unquoted, into `to`; false when absent or too long. Pure. */
bool pull_challenge_word(const char *authenticate, const char *word, buf *to);

#endif
