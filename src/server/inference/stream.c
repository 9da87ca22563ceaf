/* stream.c: streams by their ids; see stream.h. */
#include "inference/stream.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "logging/log.h"
#include "cluster/route.h"

#define ZONE_S 900

static int conflict(api_error *e, const char *code, const char *message)
{
    return api_error_set(e, 409, "invalid_request_error", code, "last-event-id", "%s", message);
}

int stream_differs(api_error *e)
{
    return conflict(e, "stream_differs",
                    "the answer came out otherwise here than what you have of it: send the request without "
                    "Last-Event-ID for a new one");
}

int stream_other(api_error *e)
{
    return conflict(e, "other_request",
                    "Last-Event-ID belongs to another request: send the request of that stream as it was, or "
                    "this one without Last-Event-ID");
}

/* ---- the start ----------------------------------------------------------------------------------- */

/* The part of a zone that whole quarters of an hour can say, which are all there are today. */
static int zone_of(int64_t created)
{
    time_t t = (time_t)created;
    struct tm tm;
    return localtime_r(&t, &tm) ? (int)(tm.tm_gmtoff / ZONE_S) : 0;
}

static void stream_draw(stream_id *id, int64_t created)
{
    rng_draw(id->nonce, sizeof id->nonce);
    id->created = created;
    id->zone = zone_of(id->created);
}

static int stream_check(const stream_id *given, const stream_id *ours, const gen_spec *spec, api_error *e)
{
    bool same = memcmp(given->request, ours->request, sizeof ours->request) == 0 &&
                given->n_choices == ours->n_choices;
    for (size_t k = 0; same && spec->max_tokens && k < given->n_choices; k++)
        same = given->marks[k].max_tokens <= spec->max_tokens;
    return same ? 0 : stream_other(e);
}

static int take_given(stream *s, const char *text, const gen_spec *spec, api_error *e)
{
    stream_id given;
    shoal_err err = {0};
    int rc = stream_id_parse(&given, text, strlen(text), &err);
    if (rc == SHOAL_ENOMEM) return api_error_nomem(e);
    if (rc != 0) return api_error_bad(e, "last-event-id", "Last-Event-ID: %s", err.message);
    if ((rc = stream_check(&given, &s->id, spec, e)) != 0) return rc;
    memcpy(s->had, given.marks, sizeof s->had);
    memcpy(s->id.marks, given.marks, sizeof s->id.marks); /* until a choice has come so far redispatch */
    memcpy(s->id.model, given.model, sizeof s->id.model);
    memcpy(s->id.nonce, given.nonce, sizeof s->id.nonce);
    s->id.created = given.created;
    s->id.zone = given.zone;
    s->was_whole = stream_id_is_whole(&given, spec->include_usage);
    s->resumes = s->met = true;
    return 0;
}

/* A seed nobody asked for follows from the nonce, so that the id need not say it. */
static void stream_settle(const stream *s, gen_spec *spec)
{
    uint64_t r;
    memcpy(&r, s->id.nonce + sizeof s->id.nonce - sizeof r, sizeof r);
    if (!spec->has_seed) spec->sampling.seed = rng_mix(~r);
    spec->clock = s->id.created + (int64_t)s->id.zone * ZONE_S;
}

int stream_open(stream *ret, gateway_request *rq, gen_spec *spec, api_error *e)
{
    const char *given = spec->stream ? request_header(rq, "last-event-id") : NULL;
    size_t n = openai_spec_choices(spec);
    sha256_digest d;
    *ret = (stream){0};
    if (!spec->stream) return 0;
    if (n > STREAM_CHOICES_MAX) {
        if (!given || !*given) return 0;
        return api_error_bad(e, "last-event-id", "streams of more than %d choices cannot be resumed",
                             STREAM_CHOICES_MAX);
    }
    if (!openai_spec_identity(spec, &d)) return api_error_nomem(e);
    stream_id_init(&ret->id, n);
    memcpy(ret->id.request, d.bytes, sizeof ret->id.request);
    int rc = 0;
    if (given && *given)
        rc = take_given(ret, given, spec, e);
    else
        stream_draw(&ret->id, request_date_s(rq));
    if (rc != 0) return rc;
    const char *ids = request_header(rq, "x-shoal-event-ids");
    ret->id.untold = ids && strcmp(ids, "0") == 0;
    ret->named = true;
    stream_settle(ret, spec);
    if (!ret->resumes) return 0;
    metrics_add(rq->metrics, METRIC_RESUMED, 1, rq->model, NULL, NULL);
    LOG(LOG_INFO, "gateway", "stream_resumed", LOG_S("model", rq->model), LOG_S("request_id", rq->id));
    return 0;
}

void stream_name(stream *s, answer_form *f)
{
    if (!s->named) return;
    answer_form_name(f, s->id.nonce, s->id.created);
    f->events = &s->id;
}

/* ---- who answers --------------------------------------------------------------------------------- */

bool stream_is_of(const stream *s, const char *identity, const char *adapter_digest)
{
    uint8_t model[STREAM_MODEL_BYTES];
    stream_id_model(model, identity, adapter_digest);
    return memcmp(model, s->id.model, sizeof model) == 0;
}

int stream_replaced(const gateway_request *rq, api_error *e)
{
    return api_error_set(
        e, 409, "invalid_request_error", "model_replaced", "last-event-id",
        "the file, engine or adapter of %.64s is another here than the one that began this answer: send the "
        "request without Last-Event-ID for a new one",
        rq->model);
}

int stream_terms(const stream *s, gateway_request *rq, call_terms *ret, api_error *e)
{
    const replica_set *set = registry_find(rq->registry, rq->model);
    bool described = false;
    *ret = (call_terms){0};
    for (size_t i = 0; s->resumes && set && i < set->n; i++) {
        const Shoal__V1__ModelInfo *info = set->replicas[i]->info;
        if (!info) continue;
        described = true;
        const char *adapter = route_adapter_digest(info, rq->adapter);
        if (!stream_is_of(s, info->identity, adapter)) continue;
        call_terms_pin(ret, info->identity, adapter);
        return 0;
    }
    return described ? stream_replaced(rq, e) : 0; /* nobody is up yet: stream_meet will see */
}

int stream_meet(stream *s, const gateway_request *rq, const char *identity, const char *adapter_digest,
                api_error *e)
{
    if (!s->named) return 0;
    bool known = identity && *identity && (!*rq->adapter || (adapter_digest && *adapter_digest));
    if (!s->met && known) {
        stream_id_model(s->id.model, identity, adapter_digest);
        s->met = true;
        return 0;
    }
    if (known && stream_is_of(s, identity, adapter_digest)) return 0;
    if (s->resumes) return stream_replaced(rq, e);
    s->id.untold = true;
    return 0;
}

void stream_forget(stream *s)
{
    if (!s->resumes) s->met = false;
}

int stream_started(stream *s, size_t k, uint32_t max_tokens, api_error *e)
{
    if (!s->named) return 0;
    s->id.marks[k].max_tokens = max_tokens;
    if (!s->resumes || !s->had[k].max_tokens || s->had[k].max_tokens == max_tokens) return 0;
    return conflict(e, "less_room",
                    "the worker here has less room for this answer than the one that began it: try another "
                    "gateway, or send the request without Last-Event-ID for a new answer");
}
