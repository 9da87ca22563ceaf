/* load_bodies.h: what the requests of a load ask: drawn prompts, lines of a file, or those of a trace.
 *
 *     load_bodies b;
 *     load_bodies_open(&b, &options, err);
 *     ... load_plan.make = load_bodies_make, .user = &b ...
 *     load_bodies_done(&b);
 *
 * Prompts are words, one token each for most tokenizers, behind a number that no earlier request and no earlier run
 * had: no cache answers them. Request i of a run is always the same. */
#ifndef LOAD_LOAD_BODIES_H
#define LOAD_LOAD_BODIES_H

#include "base/buf.h"
#include "base/err.h"
#include "client/http_client.h"
#include "load/load_trace.h"

/* How long prompts or replies are: "128", "64..512" (uniform) or "256~64" (normal, with its deviation). */
typedef struct load_length {
    double from, to, deviation; /* deviation 0: uniform from `from` to `to` */
} load_length;

enum { LOAD_LENGTH_MOST = 1000000 };

/* SHOAL_EINVALID names the option. */
int load_length_read(load_length *ret, const char *name, const char *text, shoal_err *err);
/* The draw for request i, at least `least`. */
size_t load_length_draw(const load_length *l, uint64_t seed, size_t i, size_t least);

typedef struct load_bodies_options {
    const char *model;        /* NULL: bodies name none */
    const char *path;         /* NULL: /v1/completions */
    const char *body_file;    /* sent as it is; of .jsonl a line each; NULL: bodies are made */
    const char *prompts_file; /* a prompt a line; NULL: they are drawn */
    const char *trace_file;   /* NULL: none */
    load_length prompt, reply;
    bool cached; /* one prompt for all, which a cache may answer */
    bool stream;
    const char *key; /* of the API; NULL: none */
} load_bodies_options;

typedef struct load_bodies {
    load_bodies_options o;
    int api;                /* a row of the table of paths, or -1: any */
    uint64_t salt;          /* of this run */
    double words_per_token; /* [1] */
    double fixed_tokens;    /* that a prompt has beside its words [0] */
    load_lines lines;       /* of body_file or prompts_file */
    load_trace trace;
    buf model, headers; /* as JSON; as sent */
    bool by_tokens;     /* lengths are tokens: words_per_token and fixed_tokens hold */
} load_bodies;

/* SHOAL_EINVALID: a path without a body of its own and without a file; SHOAL_EFORMAT, SHOAL_EIO: a file. */
int load_bodies_open(load_bodies *ret, const load_bodies_options *o, shoal_err *err);
void load_bodies_done(load_bodies *b);
/* Other prompts from here on. */
void load_bodies_next_run(load_bodies *b);
/* load_plan.make; user is a load_bodies. */
void load_bodies_make(void *user, size_t i, buf *scratch, http_ask *ret);
/* One request with a prompt of so many words, for counting its tokens. */
void load_bodies_probe(load_bodies *b, size_t n_words, buf *scratch, http_ask *ret);
/* Does a trace say how many tokens drawn prompts have? */
bool load_bodies_count_tokens(const load_bodies *b);
const char *load_bodies_path(const load_bodies *b);

#endif
