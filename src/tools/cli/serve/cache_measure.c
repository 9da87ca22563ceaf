/* cache_measure.c: see cache_measure.h. */
#include "cli/serve/cache_measure.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "json/json.h"
#include "json/json_put.h"
#include "cache/near_rule.h"
#include "retrieve/codes.h"
#include "routes/language.h"

#define FILE_MAX_BYTES ((size_t)16 << 20)

enum { PAIRS_MAX = 20000, KINDS_MAX = 64 };

typedef struct pair {
    const char *a, *b, *kind; /* the document's */
    bool same;
    double cosine;
    near_verdict verdict;
} pair;

typedef struct measure {
    const cache_measure_ask *ask;
    http_client client;
    json_t *lines;
    pair *pairs;
    size_t n;
    double *ms; /* of each call */
    size_t n_ms;
} measure;

/* ---- the file ------------------------------------------------------------------------------------ */

static int read_line(measure *m, char *line, size_t at, shoal_err *err)
{
    json_t *o = NULL;
    shoal_err why;
    if (json_parse(&o, line, strlen(line), m->ask->path, &why) != 0)
        return err_set(err, SHOAL_EFORMAT, "%s:%zu: %s", m->ask->path, at, why.message);
    if (json_array_append_new(m->lines, o) != 0) return err_nomem(err);
    const json_t *same = json_object_get(o, "same");
    pair p = {.a = json_string_value(json_object_get(o, "a")),
              .b = json_string_value(json_object_get(o, "b")),
              .kind = json_string_value(json_object_get(o, "kind")),
              .same = json_is_true(same)};
    if (!p.a || !p.b || !p.kind || !json_is_boolean(same))
        return err_set(err, SHOAL_EFORMAT, "%s:%zu: a pair has the texts 'a', 'b' and 'kind', and 'same'",
                       m->ask->path, at);
    if (m->n == PAIRS_MAX) return err_set(err, SHOAL_ELIMIT, "%s: over %d pairs", m->ask->path, PAIRS_MAX);
    m->pairs[m->n++] = p;
    return 0;
}

static int read_pairs(measure *m, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, m->ask->path, FILE_MAX_BYTES, err);
    m->lines = json_array();
    m->pairs = calloc(PAIRS_MAX, sizeof *m->pairs);
    m->ms = calloc(PAIRS_MAX * 2, sizeof *m->ms);
    if (rc == 0 && (!m->lines || !m->pairs || !m->ms)) rc = err_nomem(err);
    size_t at = 1;
    for (char *p = text.data, *next; rc == 0 && p && *p; p = next, at++) {
        size_t n = strcspn(p, "\n");
        next = p + n + (p[n] != '\0');
        p[n] = '\0';
        if (*p) rc = read_line(m, p, at, err);
    }
    if (rc == 0 && m->n == 0) rc = err_set(err, SHOAL_EFORMAT, "%s: there are no pairs in it", m->ask->path);
    buf_done(&text);
    return rc;
}

/* ---- vectors ------------------------------------------------------------------------------------- */

typedef struct vector {
    int8_t codes[CODES_DIMS_MAX];
    float scale;
    size_t dims;
} vector;

static int read_vector(const json_t *reply, vector *ret, shoal_err *err)
{
    const json_t *list = json_object_get(json_array_get(json_object_get(reply, "data"), 0), "embedding");
    static float values[CODES_DIMS_MAX];
    ret->dims = json_array_size(list);
    if (ret->dims == 0 || ret->dims > CODES_DIMS_MAX)
        return err_set(err, SHOAL_EPROTOCOL, "the server answered with no vector");
    for (size_t i = 0; i < ret->dims; i++) values[i] = (float)json_number_value(json_array_get(list, i));
    codes_of(values, ret->dims, ret->codes, &ret->scale);
    return 0;
}

static int embed(measure *m, const char *text, vector *ret, shoal_err *err)
{
    buf body = {0}, headers = {0};
    json_t *reply = NULL;
    buf_printf(&headers, "cache-control: no-store\r\n%s", m->ask->headers ? m->ask->headers : "");
    buf_putc(&body, '{');
    json_put_text(&body, "model", m->ask->model);
    json_put_text(&body, "input", text);
    buf_putc(&body, '}');
    http_ask ask = {.path = "/v1/embeddings", .body = body.data, .n_body = body.len, .headers = headers.data};
    uint64_t from = clock_ns();
    int rc = body.failed || headers.failed ? err_nomem(err) : http_client_exchange(&m->client, &ask, err);
    m->ms[m->n_ms++] = clock_ms_since(from);
    const http_client *c = &m->client;
    if (rc == 0 && c->status != 200)
        rc = err_set(err, SHOAL_EPROTOCOL, "POST /v1/embeddings: %d %.300s", c->status,
                     c->body.data ? c->body.data : "");
    if (rc == 0) rc = json_parse(&reply, c->body.data, c->body.len, "the answer", err);
    if (rc == 0) rc = read_vector(reply, ret, err);
    json_decref(reply);
    buf_done(&headers);
    buf_done(&body);
    return rc;
}

static double cosine_of(const vector *x, const vector *y)
{
    int64_t dot = 0;
    for (size_t i = 0; x->dims == y->dims && i < x->dims; i++) dot += (int64_t)x->codes[i] * y->codes[i];
    return (double)((float)dot * (x->scale * y->scale));
}

static const char *language_of(const pair *p)
{
    const char *code = language_guess(p->b, strlen(p->b));
    return *code ? code : language_guess(p->a, strlen(p->a));
}

static int measure_pairs(measure *m, shoal_err *err)
{
    vector *v = calloc(2, sizeof *v);
    int rc = v ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        pair *p = &m->pairs[i];
        rc = embed(m, p->a, &v[0], err);
        if (rc == 0) rc = embed(m, p->b, &v[1], err);
        if (rc != 0) break;
        p->cosine = cosine_of(&v[0], &v[1]);
        p->verdict = near_rule_compare(p->b, p->a, language_of(p), m->ask->exact ? NEAR_EXACT : NEAR_WORDS);
    }
    free(v);
    return rc;
}

/* ---- the tables ---------------------------------------------------------------------------------- */

typedef struct counts {
    double same, other;          /* pairs */
    double found, found_other;   /* of these, near enough */
    double served, served_other; /* and allowed by the rule */
} counts;

static counts cache_measure_count(const measure *m, double threshold, const char *kind)
{
    counts c = {0};
    for (size_t i = 0; i < m->n; i++) {
        const pair *p = &m->pairs[i];
        if (kind && strcmp(kind, p->kind) != 0) continue;
        bool near = p->cosine >= threshold, allowed = near && p->verdict == NEAR_SAME;
        *(p->same ? &c.same : &c.other) += 1;
        *(p->same ? &c.found : &c.found_other) += near;
        *(p->same ? &c.served : &c.served_other) += allowed;
    }
    return c;
}

static double share(double part, double of)
{
    return of > 0 ? 100 * part / of : 0;
}

static void print_thresholds(const measure *m)
{
    static const double AT[] = {0.70, 0.80, 0.85, 0.90, 0.93, 0.95, 0.97, 0.98, 0.99};
    printf("%-10s | %-27s | %s\n", "", "by likeness alone", "and verified");
    printf("%-10s | %9s %17s | %9s %17s\n", "THRESHOLD", "HITS %", "FALSE HITS %", "HITS %", "FALSE HITS %");
    for (size_t i = 0; i < sizeof AT / sizeof *AT; i++) {
        counts c = cache_measure_count(m, AT[i], NULL);
        printf("%10.2f | %9.1f %17.1f | %9.1f %17.1f\n", AT[i], share(c.found, c.same),
               share(c.found_other, c.other), share(c.served, c.same), share(c.served_other, c.other));
    }
}

static bool is_listed(const measure *m, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(m->pairs[k].kind, m->pairs[i].kind) == 0 && m->pairs[k].same == m->pairs[i].same)
            return true;
    return false;
}

static void print_kinds(const measure *m)
{
    printf("\n%-24s %-6s %6s %12s %12s   (at %.2f)\n", "KIND", "SAME", "PAIRS", "NEAR %", "SERVED %",
           m->ask->threshold);
    for (int same = 1; same >= 0; same--)
        for (size_t i = 0; i < m->n; i++) {
            if (m->pairs[i].same != same || is_listed(m, i)) continue;
            counts c = cache_measure_count(m, m->ask->threshold, m->pairs[i].kind);
            double n = same ? c.same : c.other;
            printf("%-24s %-6s %6.0f %12.1f %12.1f\n", m->pairs[i].kind, same ? "yes" : "no", n,
                   share(same ? c.found : c.found_other, n), share(same ? c.served : c.served_other, n));
        }
}

static void cache_measure_print_json(const measure *m)
{
    counts c = cache_measure_count(m, m->ask->threshold, NULL);
    printf("{\"pairs\":%zu,\"same\":%.0f,\"threshold\":%g,\"hit_rate\":%.4f,\"false_hit_rate\":%.4f,"
           "\"verified_hit_rate\":%.4f,\"verified_false_hit_rate\":%.4f,\"embed_p50_ms\":%.3f}\n",
           m->n, c.same, m->ask->threshold, share(c.found, c.same) / 100, share(c.found_other, c.other) / 100,
           share(c.served, c.same) / 100, share(c.served_other, c.other) / 100, m->ms[m->n_ms / 2]);
}

static void print(const measure *m)
{
    counts c = cache_measure_count(m, 0, NULL);
    qsort(m->ms, m->n_ms, sizeof *m->ms, number_compare_doubles);
    if (m->ask->json) {
        cache_measure_print_json(m);
        return;
    }
    printf("%zu pairs, %.0f that one answer serves and %.0f that it does not; an embedding takes %.2f ms "
           "(p50)\n\n",
           m->n, c.same, c.other, m->ms[m->n_ms / 2]);
    print_thresholds(m);
    print_kinds(m);
}

int cache_measure(const cache_measure_ask *ask, shoal_err *err)
{
    measure m = {.ask = ask};
    http_client_init(&m.client, ask->where);
    int rc = read_pairs(&m, err);
    if (rc == 0) rc = measure_pairs(&m, err);
    if (rc == 0) print(&m);
    http_client_done(&m.client);
    json_decref(m.lines);
    free(m.pairs);
    free(m.ms);
    return rc;
}
