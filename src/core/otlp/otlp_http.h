/* otlp_http.h: the transport of otlp_exporter.h that a server has: HTTP POST by libcurl on its loop.
 *
 *     otlp_http_open(&h, loop, &(otlp_http_options){.urls = {"http://127.0.0.1:4318/v1/traces", ...}}, err);
 *     otlp_transport t = otlp_http_transport(h);
 *     ...
 *     otlp_http_close(h);                          behind the exporter; and run the loop until it has nothing left
 *
 * Names are looked up in libuv's threads: nothing blocks the loop. Redirects are not followed, proxies of the environment
 * are not asked. Loop thread. */
#ifndef OTLP_OTLP_HTTP_H
#define OTLP_OTLP_HTTP_H

#include <uv.h>

#include "otlp/otlp_exporter.h"

typedef struct otlp_http_options {       /* texts are copied */
    const char *urls[OTLP_N_SIGNALS];    /* NULL: nothing is sent of this signal */
    const char *headers[OTLP_N_SIGNALS]; /* "Name: value\r\n" each; NULL: none */
    otlp_protocol protocol;
    bool gzip;
    const char *ca;      /* PEM file of the CAs to trust; NULL: the system's */
    uint64_t timeout_ms; /* of a request; 0: 10,000 */
} otlp_http_options;

typedef struct otlp_http otlp_http;
int otlp_http_open(otlp_http **ret, uv_loop_t *loop, const otlp_http_options *o, shoal_err *err);
void otlp_http_close(otlp_http *h); /* cancels what is under way; accepts NULL */
otlp_transport otlp_http_transport(otlp_http *h);

/* The value of a Retry-After header in seconds, as milliseconds; 0: it is none, or a date. Of foreign bytes. */
uint64_t otlp_retry_after_ms(const char *line, size_t n);

#endif
