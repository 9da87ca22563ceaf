/* load_trace.h: files of requests: lines of texts, and traces that say when each request is due.
 *
 * A trace has one JSON object a line:
 *
 *     {"at": 0.25, "path": "/v1/chat/completions", "body": {"model": "m", "messages": [...]}}
 *     {"at": 0.40, "model": "m", "prompt": "turn on the light", "max_tokens": 32}
 *     {"at": 1.10, "prompt_tokens": 300, "max_tokens": 64}
 *     {"timestamp": 1500, "input_length": 300, "output_length": 64}
 *
 * `at` is in seconds, `timestamp` in milliseconds; both count from the earliest of the file. The last form is that of
 * Mooncake's public traces. Unknown members are ignored. */
#ifndef LOAD_LOAD_TRACE_H
#define LOAD_LOAD_TRACE_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct load_line { /* not NUL-terminated */
    const char *text;
    size_t n;
} load_line;

typedef struct load_lines {
    load_line *v; /* [n] into text */
    size_t n;
    buf text;
} load_lines;

/* The lines of a file that hold anything; whole: the file is one. SHOAL_EFORMAT: it holds none. */
int load_lines_read(load_lines *ret, const char *path, bool whole, size_t most_bytes, shoal_err *err);
void load_lines_done(load_lines *l);

typedef struct load_trace_line { /* strings are owned; NULL: not said */
    double at_s;                 /* since the first one */
    char *path;
    char *body, *model, *prompt; /* as JSON */
    size_t n_prompt, n_reply;    /* tokens; 0: not said */
} load_trace_line;

typedef struct load_trace {
    load_trace_line *v; /* [n], by at_s */
    size_t n;
} load_trace;

/* SHOAL_EFORMAT: which line is wrong, or that there is none. */
int load_trace_parse(load_trace *ret, const char *text, size_t n, const char *name, shoal_err *err);
void load_trace_done(load_trace *t);

/* A trace of what GET /v1/requests answers, appended; *ret_n: its lines. Requests to other endpoints than those that
 * generate, embed, rank, classify or process are left out. */
int load_trace_put_requests(buf *out, const json_t *requests, size_t *ret_n, shoal_err *err);

#endif
