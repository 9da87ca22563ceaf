/* shadow.c: a second answer, compared and thrown away; see shadow.h. */
#include "answers/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "logging/log.h"
#include "base/utf8.h"
#include "request/gateway_state.h"

typedef struct shadow {
    struct shadow *next;
    gateway *g;
    settings *settings; /* whose route and calls these are */
    const config_route *route;
    model_call *call;
    buf wanted, said; /* text, then each call of a tool on a line of its own */
    char request_id[129];
} shadow;

/* ---- comparing ----------------------------------------------------------------------------------- */

typedef struct word_run {
    const char *at[SHADOW_WORDS_MAX];
    size_t len[SHADOW_WORDS_MAX], n;
} word_run;

static void shadow_split(word_run *w, const char *s)
{
    static const char space[] = " \t\r\n";
    for (w->n = 0; w->n < SHADOW_WORDS_MAX && *(s += strspn(s, space)); s += w->len[w->n++]) {
        w->at[w->n] = s;
        w->len[w->n] = strcspn(s, space);
    }
}

double shadow_likeness(const char *a, const char *b)
{
    word_run x, y;
    size_t common = 0;
    shadow_split(&x, a);
    shadow_split(&y, b);
    size_t all = x.n + y.n;
    for (size_t i = 0; i < x.n; i++)
        for (size_t k = 0; k < y.n; k++) {
            if (!y.at[k] || x.len[i] != y.len[k] || memcmp(x.at[i], y.at[k], x.len[i]) != 0) continue;
            y.at[k] = NULL; /* counted */
            common++;
            break;
        }
    return all > 0 ? 2 * (double)common / (double)all : 1;
}

/* ---- the end ------------------------------------------------------------------------------------- */

static void shadow_free(shadow *s)
{
    shadow **at = &s->g->shadows;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    s->g->n_shadows--;
    settings_unref(s->settings);
    buf_done(&s->wanted);
    buf_done(&s->said);
    free(s);
}

static void shadow_on_end(const call_events *ev, const call_result *r)
{
    shadow *s = ev->user;
    metrics *m = s->g->metrics;
    bool failed = r->status != 0 || s->said.failed || s->said.len > SHADOW_BYTES_MAX;
    bool same = !failed && strcmp(buf_text(&s->wanted), buf_text(&s->said)) == 0;
    double likeness = failed ? 0 : shadow_likeness(buf_text(&s->wanted), buf_text(&s->said));
    metrics_add(m, METRIC_SHADOW, 1, s->route->name, s->route->shadow,
                failed ? "failed"
                : same ? "same"
                       : "other");
    if (!failed) metrics_add(m, METRIC_SHADOW_LIKENESS, likeness, s->route->name, s->route->shadow, NULL);
    LOG(LOG_INFO, "route", "shadow", LOG_S("route", s->route->name), LOG_S("shadow", s->route->shadow),
        LOG_S("model", r->model),
        LOG_S("result", failed ? "failed"
                        : same ? "same"
                               : "other"),
        LOG_F("likeness", likeness), LOG_F("ms", r->ms), LOG_S("request_id", s->request_id));
    shadow_free(s);
}

static void shadow_on_event(const call_events *ev, const ProtobufCMessage *message)
{
    shadow *s = ev->user;
    const Shoal__V1__Delta *d = ((const Shoal__V1__GenerateEvent *)message)->delta;
    if (!d || s->said.len > SHADOW_BYTES_MAX) return;
    utf8_put_c(&s->said, (const char *)d->text.data, d->text.len);
    for (size_t i = 0; i < d->n_tool_calls; i++) {
        if (*d->tool_calls[i]->name) buf_printf(&s->said, "\n%s ", d->tool_calls[i]->name);
        buf_puts(&s->said, d->tool_calls[i]->arguments);
    }
}

/* ---- the start ----------------------------------------------------------------------------------- */

bool shadow_is_due(const gateway_request *rq)
{
    const routed *r = rq->routed;
    if (!r || !r->route->shadow || rq->gateway->draining || rq->gateway->n_shadows >= SHADOWS_MAX)
        return false;
    double share = r->route->shadow_share > 0 ? r->route->shadow_share : 1;
    return rng_uniform(route_hash(rq->id, strlen(rq->id)), 1) < share;
}

static void shadow_put_answer(buf *out, const gen_choice *c)
{
    buf_puts(out, buf_text(&c->text));
    for (size_t i = 0; i < c->n_calls; i++)
        buf_printf(out, "\n%s %s", buf_text(&c->calls[i].name), buf_text(&c->calls[i].arguments));
}

static model_call *start_call(shadow *s, const gateway_request *rq, const Shoal__V1__GenerateRequest *request)
{
    Shoal__V1__GenerateRequest q = *request;
    const char *colon = strchr(s->route->shadow, ':');
    char model[136];
    call_context of = request_context(rq, ""), ctx = call_context_named(&of, "shadow");
    ctx.deadline_ns = request_now_ns(rq) + SHADOW_DEADLINE_MS * 1000000ull;
    ctx.latency = SHOAL__V1__LATENCY__BATCH;
    call_events ev = {.user = s, .event = shadow_on_event, .end = shadow_on_end};
    call_terms none = {0};
    snprintf(model, sizeof model, "%.*s", (int)strcspn(s->route->shadow, ":"), s->route->shadow);
    q.adapter = colon ? (char *)colon + 1 : (char *)"";
    call_order *o = call_order_new(CALL_GENERATE, model, &q.base, &ctx);
    model_call *call = o ? calls_start(rq->calls, o, &none, &ev) : NULL;
    call_order_unref(o);
    return call;
}

void shadow_start(gateway_request *rq, const gen_answer *answer, const Shoal__V1__GenerateRequest *request)
{
    gateway *g = rq->gateway;
    shadow *s = calloc(1, sizeof *s);
    if (!s) return;
    s->g = g;
    s->settings = settings_ref(rq->settings);
    s->route = rq->routed->route;
    memcpy(s->request_id, rq->id, sizeof s->request_id);
    s->next = g->shadows;
    g->shadows = s;
    g->n_shadows++;
    shadow_put_answer(&s->wanted, &answer->choices[0]);
    s->call = s->wanted.failed ? NULL : start_call(s, rq, request);
    if (!s->call) shadow_free(s);
}

void shadow_cancel_all(gateway *g)
{
    while (g->shadows) {
        calls_cancel(g->shadows->call);
        shadow_free(g->shadows);
    }
}
