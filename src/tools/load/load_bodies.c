/* load_bodies.c: see load_bodies.h. */
#include "load/load_bodies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "command/cli_process.h"
#include "json/json.h"

enum { N_DOCUMENTS = 4, QUERY_WORDS = 8, FILE_MOST = 256 << 20 };

/* ---- lengths ---------------------------------------------------------------------------------------- */

static bool take_length(const char *text, size_t n, double *ret)
{
    char digits[32];
    if (n == 0 || n >= sizeof digits) return false;
    memcpy(digits, text, n);
    digits[n] = '\0';
    return number_double(digits, ret) && *ret >= 0 && *ret <= LOAD_LENGTH_MOST;
}

int load_length_read(load_length *ret, const char *name, const char *text, shoal_err *err)
{
    load_length l = {0};
    const char *to = strstr(text, ".."), *wide = strchr(text, '~');
    size_t n = to ? (size_t)(to - text) : wide ? (size_t)(wide - text) : strlen(text);
    bool ok = take_length(text, n, &l.from);
    l.to = l.from;
    if (ok && to) ok = take_length(to + 2, strlen(to + 2), &l.to) && l.to >= l.from;
    if (ok && wide) ok = !to && take_length(wide + 1, strlen(wide + 1), &l.deviation);
    if (!ok)
        return err_set(
            err, SHOAL_EINVALID,
            "--%s wants a length up to %d, a range such as 64..512, or a mean and a deviation such as "
            "256~64, not \"%.60s\"",
            name, LOAD_LENGTH_MOST, text);
    *ret = l;
    return 0;
}

size_t load_length_draw(const load_length *l, uint64_t seed, size_t i, size_t least)
{
    double u = rng_uniform(seed, 2 * i), v = rng_uniform(seed, 2 * i + 1);
    double at = l->deviation > 0
                    ? l->from + l->deviation * sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v) /* Box and Muller */
                    : floor(l->from + u * (l->to - l->from + 1));
    return at < (double)least ? least : at > LOAD_LENGTH_MOST ? LOAD_LENGTH_MOST : (size_t)at;
}

/* ---- prompts ---------------------------------------------------------------------------------------- */

static void put_words(uint64_t salt, size_t n, buf *out)
{
    static const char *const words[] = {"light", "door", "warm", "blue", "turn", "hall", "noon", "rain",
                                        "song",  "open", "late", "cold", "room", "fan",  "lamp", "wind"};
    for (size_t k = 0; k < n; k++)
        buf_printf(out, "%s%s", k ? " " : "", words[rng_mix(salt + k) % (sizeof words / sizeof *words)]);
}

/* As JSON. Words that no earlier request began with, nor one of another run; of cached always the same. */
static void put_drawn(const load_bodies *b, size_t i, size_t n_words, buf *out)
{
    uint64_t salt = b->o.cached ? 0 : rng_mix(b->salt + i);
    buf_putc(out, '"');
    if (!b->o.cached) buf_printf(out, "%llx ", (unsigned long long)salt);
    put_words(salt, n_words, out);
    buf_putc(out, '"');
}

static size_t words_of(const load_bodies *b, size_t n_tokens)
{
    if (!b->by_tokens) return n_tokens;
    double words = ((double)n_tokens - b->fixed_tokens) * b->words_per_token;
    return words < 1 ? 1 : (size_t)(words + 0.5);
}

typedef struct wanted { /* of one request */
    const load_bodies *b;
    size_t i;
    size_t n_words; /* of a drawn prompt */
    size_t n_reply;
    const char *prompt; /* as JSON; NULL: drawn */
} wanted;

static void put_prompt(const wanted *w, buf *out)
{
    const load_lines *l = &w->b->lines;
    if (w->prompt)
        buf_puts(out, w->prompt);
    else if (w->b->o.prompts_file && l->n)
        json_put_string(out, l->v[w->i % l->n].text, l->v[w->i % l->n].n);
    else
        put_drawn(w->b, w->i, w->n_words, out);
}

/* ---- bodies, by path -------------------------------------------------------------------------------- */

static void put_sampling(const wanted *w, buf *out)
{
    const load_bodies *b = w->b;
    if (b->o.stream) buf_puts(out, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    buf_printf(out, ",\"max_tokens\":%zu,\"ignore_eos\":true,\"temperature\":%d,\"seed\":%zu}", w->n_reply,
               b->o.cached ? 0 : 1, w->i + 1);
}

static void put_completion(const wanted *w, buf *out)
{
    buf_puts(out, "\"prompt\":");
    put_prompt(w, out);
    put_sampling(w, out);
}

static void put_chat(const wanted *w, buf *out)
{
    buf_puts(out, "\"messages\":[{\"role\":\"user\",\"content\":");
    put_prompt(w, out);
    buf_puts(out, "}]");
    put_sampling(w, out);
}

static void put_input(const wanted *w, buf *out)
{
    buf_puts(out, "\"input\":");
    put_prompt(w, out);
    buf_putc(out, '}');
}

static void put_rerank(const wanted *w, buf *out)
{
    buf_puts(out, "\"query\":");
    wanted query = *w;
    query.n_words = QUERY_WORDS;
    put_prompt(&query, out);
    buf_puts(out, ",\"documents\":[");
    for (size_t k = 0; k < N_DOCUMENTS; k++) {
        buf_puts(out, k ? ",\"" : "\"");
        put_words(rng_mix(w->b->salt + w->i) + k + 1, w->n_words, out);
        buf_putc(out, '"');
    }
    buf_puts(out, "]}");
}

static const struct {
    const char *path, *model; /* the member that names the model */
    void (*put)(const wanted *w, buf *out);
} apis[] = {
    {"/v1/completions", "model", put_completion}, {"/v1/chat/completions", "model", put_chat},
    {"/v1/embeddings", "model", put_input},       {"/v1/rerank", "model", put_rerank},
    {"/v1/classify", "model", put_input},         {"/v1/process", "pipeline", put_input},
};
enum { N_APIS = sizeof apis / sizeof *apis };

static int api_of(const char *path)
{
    for (int i = 0; i < N_APIS; i++)
        if (strcmp(apis[i].path, path) == 0) return i;
    return -1;
}

static void put_body(const wanted *w, int api, const char *model, buf *out)
{
    buf_putc(out, '{');
    if (model) buf_printf(out, "\"%s\":%s,", apis[api].model, model);
    apis[api].put(w, out);
}

/* ---- one request ------------------------------------------------------------------------------------ */

static wanted draw(const load_bodies *b, size_t i)
{
    uint64_t seed = b->o.cached ? 0 : b->salt;
    size_t at = b->o.cached ? 0 : i;
    return (wanted){.b = b,
                    .i = i,
                    .n_words = words_of(b, load_length_draw(&b->o.prompt, seed, at, 0)),
                    .n_reply = load_length_draw(&b->o.reply, rng_mix(seed + 1), at, 1)};
}

static void make_traced(const load_bodies *b, size_t i, buf *scratch, http_ask *ret)
{
    const load_trace_line *t = &b->trace.v[i % b->trace.n];
    const char *path = t->path ? t->path : load_bodies_path(b);
    wanted w = draw(b, i);
    w.prompt = t->prompt;
    if (t->n_prompt) w.n_words = words_of(b, t->n_prompt);
    if (t->n_reply) w.n_reply = t->n_reply;
    ret->path = path;
    int api = api_of(path);
    if (t->body)
        buf_puts(scratch, t->body);
    else if (api >= 0)
        put_body(&w, api, t->model ? t->model : b->o.model ? b->model.data : NULL, scratch);
}

void load_bodies_make(void *user, size_t i, buf *scratch, http_ask *ret)
{
    const load_bodies *b = user;
    *ret = (http_ask){.method = "POST", .path = load_bodies_path(b), .headers = b->headers.data};
    if (b->trace.n) {
        make_traced(b, i, scratch, ret);
    } else if (b->o.body_file) {
        const load_line *l = &b->lines.v[i % b->lines.n];
        ret->n_body = l->n;
        ret->body = l->text;
        return;
    } else {
        wanted w = draw(b, i);
        put_body(&w, b->api, b->o.model ? b->model.data : NULL, scratch);
    }
    ret->body = buf_text(scratch);
    ret->n_body = scratch->len;
}

/* The first request of a trace whose prompt is drawn; NULL: there is none. */
static const load_trace_line *drawn_of(const load_trace *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (!t->v[i].body && !t->v[i].prompt) return &t->v[i];
    return NULL;
}

void load_bodies_probe(load_bodies *b, size_t n_words, buf *scratch, http_ask *ret)
{
    const load_trace_line *t = drawn_of(&b->trace);
    const char *path = t && t->path ? t->path : load_bodies_path(b),
               *model = b->o.model ? b->model.data : NULL;
    load_bodies plain = *b;
    const wanted w = {.b = &plain, .i = SIZE_MAX - n_words, .n_words = n_words, .n_reply = 1};
    plain.o.stream = false;
    plain.o.prompts_file = NULL;
    int api = api_of(path);
    put_body(&w, api < 0 ? 0 : api, t && t->model ? t->model : model, scratch);
    *ret = (http_ask){.method = "POST",
                      .path = api < 0 ? apis[0].path : path,
                      .headers = b->headers.data,
                      .body = buf_text(scratch),
                      .n_body = scratch->len};
}

bool load_bodies_count_tokens(const load_bodies *b)
{
    for (size_t i = 0; i < b->trace.n; i++)
        if (b->trace.v[i].n_prompt && !b->trace.v[i].body && !b->trace.v[i].prompt) return true;
    return false;
}

const char *load_bodies_path(const load_bodies *b)
{
    return b->o.path ? b->o.path : apis[0].path;
}

/* ---- the whole -------------------------------------------------------------------------------------- */

static int read_files(load_bodies *b, shoal_err *err)
{
    const char *lines = b->o.body_file ? b->o.body_file : b->o.prompts_file;
    size_t n = lines ? strlen(lines) : 0;
    bool whole = b->o.body_file && !(n > 6 && strcmp(lines + n - 6, ".jsonl") == 0);
    int rc = lines ? load_lines_read(&b->lines, lines, whole, FILE_MOST, err) : 0;
    buf text = {0};
    if (rc == 0 && b->o.trace_file) {
        rc = file_read(&text, b->o.trace_file, FILE_MOST, err);
        if (rc == 0) rc = load_trace_parse(&b->trace, buf_text(&text), text.len, b->o.trace_file, err);
        buf_done(&text);
    }
    for (size_t i = 0; rc == 0 && i < b->trace.n; i++) {
        const load_trace_line *t = &b->trace.v[i];
        if (!t->body && api_of(t->path ? t->path : load_bodies_path(b)) < 0)
            rc = err_set(err, SHOAL_EFORMAT, "%s: request %zu goes to %s and has no \"body\"",
                         b->o.trace_file, i + 1, t->path ? t->path : load_bodies_path(b));
    }
    return rc;
}

int load_bodies_open(load_bodies *ret, const load_bodies_options *o, shoal_err *err)
{
    load_bodies b = {.o = *o, .words_per_token = 1, .salt = rng_mix(clock_ns() ^ (uint64_t)getpid() << 40)};
    b.api = api_of(load_bodies_path(&b));
    int rc = 0;
    if (b.api < 0 && !o->body_file && !o->trace_file)
        rc = err_set(err, SHOAL_EINVALID, "--path %.60s: --body FILE says what is sent there", o->path);
    if (rc == 0 && o->path && o->path[0] != '/')
        rc = err_set(err, SHOAL_EINVALID, "--path %.60s: a path begins with a slash", o->path);
    if (rc == 0 && o->model && json_put_string(&b.model, o->model, strlen(o->model)) != 0)
        rc = err_nomem(err);
    if (rc == 0 && !o->cached) buf_puts(&b.headers, "cache-control: no-cache\r\n");
    if (rc == 0) rc = cli_process_headers(&b.headers, o->key, err);
    if (rc == 0 && b.headers.failed) rc = err_nomem(err);
    if (rc == 0) rc = read_files(&b, err);
    if (rc == 0)
        *ret = b;
    else
        load_bodies_done(&b);
    return rc;
}

void load_bodies_done(load_bodies *b)
{
    load_lines_done(&b->lines);
    load_trace_done(&b->trace);
    buf_done(&b->model);
    buf_done(&b->headers);
}

void load_bodies_next_run(load_bodies *b)
{
    b->salt = rng_mix(b->salt + 1);
}
