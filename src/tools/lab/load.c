/* load.c: threads that ask, and what became of each request. */
#define _GNU_SOURCE
#include "lab/load.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "base/sha256.h"
#include "client/http_client.h"
#include "client/stream_client.h"
#include "json/json.h"
#include "lab/judge.h"
#include "load/load_engine.h"

enum { REFERENCE_MAX_BYTES = 1 << 28, RETRY_PAUSE_MS = 20, RETRY_PAUSE_MAX_MS = 500, RETURN_MS = 2000 };

/* Every answer is computed, also when a request comes round again. */
#define FRESH "cache-control: no-cache\r\n"

typedef struct reference {
    char *text; /* canonical; NULL: not yet known */
    double whole_ms, first_ms;
} reference;

typedef struct client {
    lab_load *load;
    uint32_t index, gateway;
    lab_answer *answers;
    size_t n, room;
    float *pieces; /* of what is kept of the answer that runs */
    size_t n_pieces, room_pieces;
    stream_client stream; /* what of it has come, if it streams */
    uint64_t start_ns;    /* of the request */
    uint64_t left_ns;     /* when it turned away from its own gateway, to which it returns after a while */
    buf canon;            /* of an answer */
} client;

struct lab_load {
    const lab_scenario *s;
    const host *node;
    http_where where[16];
    reference *references; /* one a distinct request, by request, then variant */
    size_t *first_of;      /* [n_requests]: where its variants begin */
    size_t n_references, weights;
    client *clients;
    load_engine *engine; /* while it runs */
    uint64_t start_ns;
    atomic_size_t n_started, n_answered, n_lost, n_different;
};

/* ---- one attempt ---- */

static void load_on_piece(void *user, size_t n_bytes)
{
    client *me = user;
    if (me->n_pieces == me->room_pieces) {
        size_t room = me->room_pieces ? 2 * me->room_pieces : 256;
        float *more = realloc(me->pieces, room * sizeof *more);
        if (!more) return; /* a silence looks longer */
        me->pieces = more;
        me->room_pieces = room;
    }
    me->pieces[me->n_pieces++] = (float)clock_ms_since(me->start_ns);
}

/* An attempt: it answers, it may be repeated, or nobody could answer better. */
typedef enum outcome { ANSWERED, FAILED, HOPELESS } outcome;

static outcome attempt_unary(http_client *c, const http_ask *r, lab_answer *a, buf *canon)
{
    shoal_err err = {0};
    char why[sizeof a->why] = "";
    int rc = http_client_exchange(c, r, &err);
    a->status = c->status;
    if (rc != 0) {
        snprintf(a->why, sizeof a->why, "%.110s", err.message);
        return FAILED;
    }
    rc = judge_canon(canon, c->body.data ? c->body.data : "", c->body.len, false, why, sizeof why);
    if (c->status != 200) snprintf(a->why, sizeof a->why, "status %d: %.90s", c->status, why);
    if (c->status == 200) memcpy(a->why, why, sizeof why);
    return rc == 0 && c->status == 200 ? ANSWERED : FAILED;
}

/* What has come of a stream is kept, and the next attempt asks for the rest. */
static outcome attempt_stream(client *me, http_client *c, const http_ask *r, lab_answer *a, buf *canon)
{
    stream_client *s = &me->stream;
    if (!s->id[0]) me->n_pieces = 0;
    stream_try t = stream_client_ask(s, c, r, a->why, sizeof a->why);
    a->status = c->status;
    a->resumed = s->n_resumed;
    if (t != STREAM_WHOLE) return t == STREAM_REFUSED ? HOPELESS : FAILED;
    a->why[0] = '\0';
    return judge_canon(canon, s->events.data, s->events.len, true, a->why, sizeof a->why) == 0 ? ANSWERED
                                                                                               : HOPELESS;
}

/* Appends the canonical answer, or says in a->why what was wrong. */
static outcome attempt(client *me, const lab_request *q, const char *body, uint64_t until_ns, lab_answer *a,
                       buf *canon)
{
    http_client c;
    http_ask r = {.path = q->path, .body = body, .headers = FRESH};
    http_client_init(&c, &me->load->where[me->gateway]);
    c.until_ns = until_ns;
    c.wait_ms = me->load->s->silence_ms;
    c.piece = load_on_piece;
    c.piece_user = me;
    if (!q->stream) me->n_pieces = 0;
    a->attempts++;
    a->gateway = me->gateway;
    a->status = 0;
    outcome o = q->stream ? attempt_stream(me, &c, &r, a, canon) : attempt_unary(&c, &r, a, canon);
    http_client_done(&c);
    return o;
}

/* Attempts until one succeeds, they are used up, or patience is. */
static bool load_ask(client *me, const lab_request *q, const char *body, lab_answer *a, buf *canon)
{
    const lab_scenario *s = me->load->s;
    uint64_t until = me->start_ns + s->patience_ms * 1000000ull;
    for (unsigned pause_ms = RETRY_PAUSE_MS;; pause_ms *= 2) {
        if (pause_ms > RETRY_PAUSE_MAX_MS) pause_ms = RETRY_PAUSE_MAX_MS;
        buf_clear(canon);
        a->why[0] = '\0';
        outcome o = attempt(me, q, body, until, a, canon);
        if (o != FAILED) return o == ANSWERED;
        me->gateway = (me->gateway + 1) % (uint32_t)s->n_gateways;
        me->left_ns = clock_ns();
        if (a->attempts >= s->attempts || clock_ns() + pause_ms * 1000000ull >= until) return false;
        usleep(pause_ms * 1000);
    }
}

static const char *variant_text(void *user, const char *name, size_t n)
{
    return n == 1 && *name == 'n' ? user : NULL;
}

/* One request from its body to its canonical answer; times count from `origin_ns`. */
static bool ask_whole(client *me, size_t request, uint32_t variant, uint64_t origin_ns, lab_answer *a,
                      buf *canon)
{
    const lab_request *q = &me->load->s->requests[request];
    char number[16];
    buf body = {0};
    snprintf(number, sizeof number, "%u", variant);
    me->start_ns = clock_ns();
    me->stream.id[0] = '\0';
    me->stream.n_resumed = 0;
    *a = (lab_answer){.request = request, .variant = variant, .client = me->index, .first_ms = -1};
    a->start_ms = (double)(me->start_ns - origin_ns) / 1e6;
    bool ok =
        scenario_expand(&body, q->body, variant_text, number) == 0 && load_ask(me, q, body.data, a, canon);
    a->end_ms = a->start_ms + clock_ms_since(me->start_ns);
    if (me->n_pieces) a->first_ms = a->start_ms + (double)me->pieces[0];
    buf_done(&body);
    return ok;
}

/* ---- the undisturbed run ---- */

static size_t request_of(const lab_load *l, size_t place)
{
    size_t r = l->s->n_requests - 1;
    while (l->first_of[r] > place) r--;
    return r;
}

/* A client is a thread in the client node's network. */
static int lab_load_enter(void *user, int index, void **ret_state, shoal_err *err)
{
    lab_load *l = user;
    client *me = &l->clients[index];
    me->load = l;
    me->index = (uint32_t)index;
    *ret_state = me;
    return host_enter(l->node, err);
}

static int ask_calm(void *user, void *state, size_t i, uint64_t due_ns, shoal_err *err)
{
    client *me = state;
    lab_load *l = user;
    lab_answer a;
    size_t q = request_of(l, i);
    uint32_t variant = (uint32_t)(i - l->first_of[q]) + 1;
    me->gateway = 0;
    if (!ask_whole(me, q, variant, due_ns, &a, &me->canon))
        return err_set(err, SHOAL_EUNAVAILABLE, "undisturbed, %s %u was not answered by %s: %s",
                       l->s->requests[q].name, variant, l->s->gateways[0], a.why);
    l->references[i] = (reference){.text = me->canon.data ? strdup(me->canon.data) : NULL,
                                   .whole_ms = a.end_ms - a.start_ms,
                                   .first_ms = a.first_ms - a.start_ms};
    return l->references[i].text ? 0 : err_nomem(err);
}

static int start_engine(lab_load *l, size_t n_requests, double think_s,
                        int (*ask)(void *, void *, size_t, uint64_t, shoal_err *), shoal_err *err)
{
    const load_schedule s = {.n_clients = (int)l->s->clients, .n_requests = n_requests, .think_s = think_s};
    int rc = load_engine_new(&l->engine, &s, &(load_ops){.enter = lab_load_enter, .ask = ask}, l, err);
    return rc == 0 ? load_engine_start(l->engine, err) : rc;
}

static int join_engine(lab_load *l, shoal_err *err)
{
    int rc = l->engine ? load_engine_join(l->engine, err) : 0;
    l->engine = NULL;
    return rc;
}

int lab_load_calm(lab_load *l, shoal_err *err)
{
    int rc = start_engine(l, l->n_references, 0, ask_calm, err),
        joined = join_engine(l, rc == 0 ? err : NULL);
    return rc == 0 ? joined : rc;
}

/* ---- references in a file ---- */

void lab_load_write(const lab_load *l, FILE *out)
{
    for (size_t i = 0; i < l->n_references; i++) {
        size_t q = request_of(l, i);
        fprintf(out, "{\"request\":\"%s\",\"variant\":%zu,\"answer\":%s}\n", l->s->requests[q].name,
                i - l->first_of[q] + 1, l->references[i].text ? l->references[i].text : "null");
    }
}

static int read_reference(lab_load *l, const char *line, size_t n, const char *what, shoal_err *err)
{
    json_t *v = NULL;
    const char *name = NULL;
    int64_t variant = 0;
    int rc = json_parse(&v, line, n, what, err);
    if (rc == 0) rc = json_get_str(v, "request", &name, err);
    if (rc == 0) rc = json_get_int(v, "variant", 1, 1000, &variant, err);
    for (size_t i = 0; rc == 0 && name && i < l->s->n_requests; i++) {
        if (strcmp(l->s->requests[i].name, name) != 0 || variant > l->s->requests[i].variants) continue;
        reference *r = &l->references[l->first_of[i] + (size_t)variant - 1];
        free(r->text);
        r->text = json_dumps(json_object_get(v, "answer"), JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        if (!r->text) rc = err_nomem(err);
    }
    json_decref(v);
    return rc;
}

int lab_load_read(lab_load *l, const char *path, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, REFERENCE_MAX_BYTES, err);
    for (char *line = text.data, *end; rc == 0 && line && *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        if (end > line) rc = read_reference(l, line, (size_t)(end - line), path, err);
    }
    for (size_t i = 0; rc == 0 && i < l->n_references; i++)
        if (!l->references[i].text)
            rc = err_set(err, SHOAL_ENOTFOUND, "%s: has no answer to %s %zu", path,
                         l->s->requests[request_of(l, i)].name, i - l->first_of[request_of(l, i)] + 1);
    buf_done(&text);
    return rc;
}

/* ---- the disturbed run ---- */

static size_t draw_request(const lab_load *l, size_t i)
{
    double at = rng_uniform(l->s->seed, 2 * i) * (double)l->weights;
    size_t q = 0;
    while (q + 1 < l->s->n_requests && at >= l->s->requests[q].weight) at -= l->s->requests[q++].weight;
    return q;
}

static void load_judge(client *me, bool whole, const buf *canon, lab_answer *a)
{
    lab_load *l = me->load;
    const char *want = l->references[l->first_of[a->request] + a->variant - 1].text;
    if (!whole) {
        a->fate = FATE_LOST;
        atomic_fetch_add(&l->n_lost, 1);
        return;
    }
    char hex[65];
    sha256_digest digest;
    sha256_of(canon->data, canon->len, &digest);
    sha256_hex(&digest, hex);
    memcpy(a->digest, hex, 16);
    a->fate = strcmp(want, canon->data) == 0 ? FATE_SAME : FATE_DIFFERENT;
    a->why[0] = '\0';
    if (a->fate == FATE_DIFFERENT) judge_difference(want, canon->data, a->why, sizeof a->why);
    if (a->fate == FATE_DIFFERENT) atomic_fetch_add(&l->n_different, 1);
    atomic_fetch_add(&l->n_answered, 1);
}

static int load_keep(client *me, lab_answer *a, shoal_err *err)
{
    if (me->n == me->room) {
        size_t room = me->room ? 2 * me->room : 256;
        lab_answer *more = realloc(me->answers, room * sizeof *more);
        if (!more) return err_nomem(err);
        me->answers = more;
        me->room = room;
    }
    a->pieces_ms = malloc((me->n_pieces + 1) * sizeof *a->pieces_ms);
    if (!a->pieces_ms) return err_nomem(err);
    if (me->n_pieces) memcpy(a->pieces_ms, me->pieces, me->n_pieces * sizeof *a->pieces_ms);
    a->n_pieces = me->n_pieces;
    me->answers[me->n++] = *a;
    return 0;
}

static int ask_disturbed(void *user, void *state, size_t i, uint64_t due_ns, shoal_err *err)
{
    client *me = state;
    lab_load *l = user;
    lab_answer a;
    size_t q = draw_request(l, i);
    uint32_t variant = (uint32_t)(rng_uniform(l->s->seed, 2 * i + 1) * l->s->requests[q].variants) + 1;
    atomic_fetch_add(&l->n_started, 1);
    if (due_ns - me->left_ns > RETURN_MS * 1000000ull) me->gateway = me->index % (uint32_t)l->s->n_gateways;
    bool whole = ask_whole(me, q, variant, l->start_ns, &a, &me->canon);
    load_judge(me, whole, &me->canon, &a);
    int rc = load_keep(me, &a, err);
    if (!whole && l->s->attempts == 1) usleep(RETRY_PAUSE_MS * 1000); /* a refusal is instant */
    return rc;
}

int lab_load_begin(lab_load *l, uint64_t start_ns, shoal_err *err)
{
    l->start_ns = start_ns;
    return start_engine(l, SIZE_MAX, l->s->pause_ms / 1e3, ask_disturbed, err);
}

lab_load_counts lab_load_now(const lab_load *l)
{
    return (lab_load_counts){atomic_load(&l->n_started), atomic_load(&l->n_answered), atomic_load(&l->n_lost),
                             atomic_load(&l->n_different)};
}

static int by_start(const void *x, const void *y)
{
    const lab_answer *a = x, *b = y;
    return a->start_ms < b->start_ms ? -1 : a->start_ms > b->start_ms;
}

static int load_gather(lab_load *l, lab_record *ret, shoal_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < l->s->clients; i++) n += l->clients[i].n;
    ret->answers = malloc((n + 1) * sizeof *ret->answers);
    if (!ret->answers) return err_nomem(err);
    for (size_t i = 0; i < l->s->clients; i++) {
        client *c = &l->clients[i];
        if (c->n) memcpy(ret->answers + ret->n_answers, c->answers, c->n * sizeof *c->answers);
        ret->n_answers += c->n;
        c->n = 0;
    }
    qsort(ret->answers, n, sizeof *ret->answers, by_start);
    ret->n_distinct = l->n_references;
    double *whole = calloc(2 * l->n_references + 1, sizeof *whole), *first = whole + l->n_references;
    for (size_t i = 0; whole && i < l->n_references; i++) {
        whole[i] = l->references[i].whole_ms;
        first[i] = l->references[i].first_ms;
    }
    if (whole) {
        ret->calm_p50_ms = number_quantile(whole, l->n_references, 0.50);
        ret->calm_p99_ms = number_quantile(whole, l->n_references, 0.99);
        ret->calm_first_p50_ms = number_quantile(first, l->n_references, 0.50);
    }
    free(whole);
    return 0;
}

void lab_load_stop(lab_load *l)
{
    if (l->engine) load_engine_stop(l->engine);
}

bool lab_load_busy(const lab_load *l)
{
    return l->engine && load_engine_busy(l->engine);
}

int lab_load_end(lab_load *l, lab_record *ret, shoal_err *err)
{
    lab_load_stop(l);
    int rc = join_engine(l, err);
    return rc == 0 ? load_gather(l, ret, err) : rc;
}

/* ---- the whole ---- */

int lab_load_new(lab_load **ret, const lab_scenario *s, const host *client_node, const char *const *urls,
                 shoal_err *err)
{
    lab_load *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    l->s = s;
    l->node = client_node;
    l->clients = calloc(s->clients, sizeof *l->clients);
    l->first_of = calloc(s->n_requests + 1, sizeof *l->first_of);
    for (size_t i = 0; i < s->n_requests; i++) {
        if (l->first_of) l->first_of[i] = l->n_references;
        l->n_references += s->requests[i].variants;
        l->weights += s->requests[i].weight;
    }
    l->references = calloc(l->n_references + 1, sizeof *l->references);
    int rc = l->clients && l->first_of && l->references ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < s->n_gateways; i++) rc = http_where_parse(&l->where[i], urls[i], err);
    if (rc == 0)
        *ret = l;
    else
        lab_load_free(l);
    return rc;
}

void lab_load_free(lab_load *l)
{
    if (!l) return;
    for (size_t i = 0; l->clients && i < l->s->clients; i++) {
        client *c = &l->clients[i];
        for (size_t k = 0; k < c->n; k++) free(c->answers[k].pieces_ms);
        free(c->answers);
        free(c->pieces);
        stream_client_done(&c->stream);
        buf_done(&c->canon);
    }
    for (size_t i = 0; l->references && i < l->n_references; i++) free(l->references[i].text);
    free(l->references);
    free(l->first_of);
    free(l->clients);
    free(l);
}

bool lab_load_answers(const char *url, unsigned ms)
{
    http_where w;
    http_client c;
    const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    if (http_where_parse(&w, url, NULL) != 0) return false;
    http_client_init(&c, &w);
    c.until_ns = clock_ns() + ms * 1000000ull;
    bool ok = http_client_exchange(&c, &(http_ask){.path = path ? path : "/"}, NULL) == 0 && c.status == 200;
    http_client_done(&c);
    return ok;
}
