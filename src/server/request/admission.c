/* admission.c: see admission.h. */
#include "request/admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/config_schema.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"

/* ---- who ----------------------------------------------------------------------------------------- */

const char *admission_shown(admission_header header, const void *of)
{
    static const char BEARER[] = "Bearer ";
    const char *s = header(of, "authorization");
    if (s && strncasecmp(s, BEARER, sizeof BEARER - 1) == 0) {
        s += sizeof BEARER - 1;
        return s + strspn(s, " ");
    }
    s = header(of, "x-api-key"); /* a proxy's own word (Basic ...) may stand in "authorization" */
    return s ? s : header(of, "api-key");
}

static const char *header_of_http(const void *of, const char *lower_name)
{
    return http_header_get(of, lower_name);
}

const char *admission_shown_over_http(const http_request *http)
{
    return admission_shown(header_of_http, http);
}

static const char *header_of(const void *of, const char *lower_name)
{
    return request_header(of, lower_name);
}

const char *admission_credential(const gateway_request *rq)
{
    return rq->ingress->key ? rq->ingress->key : admission_shown(header_of, rq);
}

bool admission_knows(const gateway *g, const char *shown)
{
    const auth *a = g->settings->auth;
    const auth_key *k = auth_count(a) > 0 ? auth_find(a, shown) : NULL;
    return auth_count(a) == 0 || (k && !auth_ended(k, env_wall_s(&g->time)));
}

static int refuse_unauthenticated(const char *shown, api_error *e)
{
    return api_error_set(e, 401, "invalid_request_error", "invalid_api_key", NULL,
                         shown ? "this API key is none of this server's: look it over, or ask for a new one"
                               : "a valid API key is needed: send it as Authorization: Bearer KEY");
}

static int refuse_ended(const auth_key *k, api_error *e)
{
    char label[AUTH_LABEL_BYTES];
    return api_error_set(e, 401, "invalid_request_error", "expired_api_key", NULL,
                         "the API key %s ended at %s: ask whoever runs this server for a new one, or for a "
                         "later 'expires' in its configuration",
                         auth_label(k, label), k->rule->expires);
}

/* What shows or changes the server, in whatever form it is asked. */
static int check_admin(const gateway_request *rq, api_error *e)
{
    char label[AUTH_LABEL_BYTES];
    unsigned takes = rq->endpoint->takes;
    bool admin =
        takes & ENDPOINT_ADMIN && !(takes & ENDPOINT_METRICS && rq->config->metrics_key == METRICS_KEY_ANY);
    if (!admin || rq->key->rule->admin) return 0;
    return api_error_set(e, 403, "invalid_request_error", "insufficient_permissions", NULL,
                         "the API key %s may not ask %.100s, which shows or changes the server: that takes a "
                         "key with 'admin: true'",
                         auth_label(rq->key, label), request_path(rq));
}

/* Where it came in. A background request came in nowhere: what it repeats may have been asked in another form. */
static int check_endpoint(const gateway_request *rq, api_error *e)
{
    char label[AUTH_LABEL_BYTES];
    if (rq->background || auth_may_ask(rq->key, rq->endpoint->name, request_path(rq))) return 0;
    return api_error_set(e, 403, "invalid_request_error", "insufficient_permissions", NULL,
                         "the API key %s may not ask %.100s (%s): its 'endpoints' do not name it",
                         auth_label(rq->key, label), request_path(rq), rq->endpoint->name);
}

/* Is a key needed there, as things are configured? */
static bool is_open(const gateway_request *rq)
{
    const endpoint *at = rq->endpoint;
    return auth_count(rq->settings->auth) == 0 || !at->needs_key ||
           (at->takes & ENDPOINT_METRICS && rq->config->metrics_key == METRICS_KEY_NONE);
}

int admission_check(gateway_request *rq, api_error *e)
{
    if (is_open(rq)) return 0;
    if (rq->ingress->of && rq->ingress->of->key) {
        rq->key = rq->ingress->of->key;
        return check_admin(rq, e);
    }
    const char *shown = admission_credential(rq), *digest = rq->ingress->key_digest;
    rq->key = digest ? auth_find_sha256(rq->settings->auth, digest) : auth_find(rq->settings->auth, shown);
    if (!rq->key) return refuse_unauthenticated(shown, e);
    if (auth_ended(rq->key, request_date_s(rq))) return refuse_ended(rq->key, e);
    int rc = check_admin(rq, e);
    return rc == 0 ? check_endpoint(rq, e) : rc;
}

/* The same question, of the present settings. */
static gateway_request asked_now(const gateway_request *rq)
{
    gateway_request now = *rq;
    now.settings = rq->gateway->settings;
    now.config = rq->gateway->config;
    now.key = NULL;
    return now;
}

int admission_check_again(const gateway_request *rq, api_error *e)
{
    gateway_request now = asked_now(rq);
    return admission_check(&now, e);
}

/* Some endpoint's name or path matches it; or it is the path of something that is there. */
static bool names_something(const endpoint_table *t, const char *pattern)
{
    for (size_t i = 0; i < t->n; i++)
        if (auth_matches(pattern, t->rows[i].name) || auth_matches(pattern, t->rows[i].path) ||
            endpoint_path_matches(t->rows[i].path, pattern))
            return true;
    return false;
}

static int no_endpoint(const endpoint_table *t, size_t key, size_t at, const char *given, shoal_err *err)
{
    const char **names = malloc(t->n * sizeof *names);
    if (!names) return err_nomem(err);
    for (size_t i = 0; i < t->n; i++) names[i] = t->rows[i].name;
    const char *near = config_nearest(given, names, t->n);
    free(names);
    return err_set(err, SHOAL_EINVALID, "api_keys[%zu].endpoints[%zu]: there is no endpoint '%.100s'%s%s%s",
                   key, at, given,
                   near ? "; did you mean '" : " (a name such as chat_completions, or a path)",
                   near ? near : "", near ? "'?" : "");
}

int admission_check_config(const gateway_config *c, const endpoint_table *t, shoal_err *err)
{
    for (size_t i = 0; i < c->n_api_keys; i++)
        for (size_t k = 0; k < c->api_keys[i].n_endpoints; k++) {
            const char *given = c->api_keys[i].endpoints[k];
            if (names_something(t, given)) continue;
            shoal_err why;
            int rc = no_endpoint(t, i, k, given, &why);
            return rc == SHOAL_ENOMEM ? err_nomem(err) : config_fail(c, err, "%s", why.message);
        }
    return 0;
}

/* ---- what for ------------------------------------------------------------------------------------ */

bool admission_shows(const gateway_request *rq, const char *name)
{
    return !rq->key || auth_may_use(rq->key, name);
}

bool admission_shows_now(const gateway_request *rq, const char *name)
{
    gateway_request now = asked_now(rq);
    api_error e = {0};
    return admission_check(&now, &e) == 0 && admission_shows(&now, name);
}

int admission_may_use(const gateway_request *rq, const char *name, api_error *e)
{
    char label[AUTH_LABEL_BYTES];
    if (!name || admission_shows(rq, name)) return 0;
    return api_error_set(e, 403, "invalid_request_error", "model_not_found", "model",
                         "the API key %s may not use '%.64s'; GET /v1/models lists what it may",
                         auth_label(rq->key, label), name);
}

/* ---- how much ------------------------------------------------------------------------------------ */

static unsigned limit_of(const config_key *r, auth_rate rate)
{
    return rate == AUTH_REQUESTS ? r->requests_per_minute
           : rate == AUTH_TOKENS ? r->tokens_per_minute
                                 : r->n_concurrent;
}

/* In OpenAI's words, whose clients read them. */
static int refuse_rate(const auth_key *k, auth_rate rate, uint64_t wait_ns, api_error *e)
{
    static const char *const NAMES[] = {
#define RATE_NAME(e, name) name,
        AUTH_RATE_TABLE(RATE_NAME)
#undef RATE_NAME
    };
    static const char *const WHAT[] = {"requests per min", "tokens per min", "requests at once"};
    char label[AUTH_LABEL_BYTES];
    api_error_set(e, 429, NAMES[rate], "rate_limit_exceeded", NULL,
                  "Rate limit reached for the API key %s on %s. Limit: %u. Please try again in %.3fs.",
                  auth_label(k, label), WHAT[rate], limit_of(k->rule, rate), (double)wait_ns / 1e9);
    uint64_t s = (wait_ns + 999999999u) / 1000000000u;
    e->retry_after_s = s < 1 ? 1 : s > 86400 ? 86400 : (int)s;
    return e->status;
}

int admission_begin(gateway_request *rq, api_error *e)
{
    auth_rate rate = AUTH_REQUESTS;
    if (!rq->key || rq->background) return 0;
    uint64_t now = request_now_ns(rq), wait = auth_wait_ns(rq->key, now, &rate);
    if (wait > 0) return refuse_rate(rq->key, rate, wait, e);
    auth_enter(rq->key, now);
    rq->key_counts = true;
    return 0;
}

static void leave_key(gateway_request *rq, int status, const char *error_code)
{
    uint64_t n = request_is_computed(rq) ? rq->n_prompt_tokens + rq->n_generated_tokens : 0;
    if (rq->key_counts) auth_leave(rq->key, n, request_now_ns(rq));
    rq->key_counts = false;
}

const request_sink ADMISSION_SINK = {.name = "admission", .finish = leave_key};

/* "6m0s", "12s", "150ms": as Go writes durations, and OpenAI these headers. */
static void put_duration(char out[24], uint64_t ns)
{
    unsigned long long ms = (ns + 999999u) / 1000000u, s = (ms + 999) / 1000;
    if (ms < 1000)
        snprintf(out, 24, "%llu%s", ms, ms ? "ms" : "s");
    else if (s < 60)
        snprintf(out, 24, "%llus", s);
    else if (s < 3600)
        snprintf(out, 24, "%llum%llus", s / 60, s % 60);
    else
        snprintf(out, 24, "%lluh%llum%llus", s / 3600, s / 60 % 60, s % 60);
}

static void put_rate(admission_rates *to, const char *const names[3], const bucket *b, unsigned per_minute,
                     uint64_t now)
{
    double left = bucket_left(b, per_minute, now);
    if (!per_minute) return;
    snprintf(to->text[to->n], sizeof *to->text, "%u", per_minute);
    snprintf(to->text[to->n + 1], sizeof *to->text, "%llu",
             left > 0 ? (unsigned long long)(left + 1e-9) : 0ull);
    put_duration(to->text[to->n + 2], bucket_full_ns(b, per_minute, now));
    for (size_t i = 0; i < 3; i++, to->n++) to->at[to->n] = (http_header){names[i], to->text[to->n]};
}

void admission_put_rates(admission_rates *ret, const gateway_request *rq)
{
    static const char *const REQUESTS[] = {"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests",
                                           "x-ratelimit-reset-requests"};
    static const char *const TOKENS[] = {"x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens",
                                         "x-ratelimit-reset-tokens"};
    ret->n = 0;
    if (!rq->key) return;
    uint64_t now = request_now_ns(rq);
    put_rate(ret, REQUESTS, &rq->key->use->requests, rq->key->rule->requests_per_minute, now);
    put_rate(ret, TOKENS, &rq->key->use->tokens, rq->key->rule->tokens_per_minute, now);
}
