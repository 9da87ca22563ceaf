/* generate.c: chat and text completions; see generate.h. A request is as many model calls as it has choices,
 * all at once; it is answered when the last has ended, or fails with the first that fails. Loop thread. */
#include "inference/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/utf8.h"
#include "dialects/answer.h"
#include "cache/cache_key.h"
#include "inference/about.h"
#include "request/model_resolve.h"
#include "answers/revalidate.h"
#include "dialects/ollama.h"
#include "dialects/openai.h"
#include "dialects/openai_near.h"
#include "request/routed.h"
#include "answers/shadow.h"
#include "answers/shared.h"
#include "inference/stream.h"

/* One request being answered: as many model calls as it has choices. Dies with the request. */
typedef struct gen_job gen_job;

typedef struct gen_branch { /* one choice's call */
    gen_job *job;
    size_t k;
    model_call *call; /* NULL when it has ended */
    double token_ms;  /* when its last token came, of the request's time; 0: none has come */
    bool met;         /* we know whose answer it is */
    bool counted;     /* so are the tokens of its prompt */
    bool behind;      /* of a resumed stream: the client has what has come so far */
    bool done;        /* the worker said how it finished */
} gen_branch;

struct gen_job {
    shared_job shared; /* first: shared.h takes the job by it */
    gen_spec *spec;
    gen_answer answer;
    answer_form form;
    stream stream;
    call_terms terms;
    conversation *conversation; /* NULL: the request has no conversation */
    gen_branch *branches;
    size_t n_branches, n_open;
    bool saw_token;
    bool rests; /* the client does not keep up */
    buf out;    /* events of one write; its memory is used redispatch */
};

static void generate_job_free(void *job)
{
    gen_job *j = job;
    for (size_t k = 0; k < j->n_branches; k++) calls_cancel(j->branches[k].call);
    answer_done(&j->answer);
    openai_spec_free(j->spec);
    conversation_free(j->conversation);
    free(j->branches);
    buf_done(&j->out);
    free(j);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static void begin_stream(gen_job *j)
{
    if (!j->shared.rq->streaming) request_stream_begin(j->shared.rq);
}

static void pause_calls(gen_job *j, bool paused)
{
    j->rests = paused;
    for (size_t k = 0; k < j->n_branches; k++) calls_pause(j->branches[k].call, paused);
}

static void generate_go_on(void *job)
{
    pause_calls(job, false);
}

static void generate_flush(gen_job *j)
{
    gateway_request *rq = j->shared.rq;
    request_stream_write(rq, &j->out);
    buf_clear(&j->out);
    if (j->rests || !request_stream_is_full(rq)) return;
    pause_calls(j, true);
    request_on_room(rq, generate_go_on);
}

/* True: an event found no memory, so the answer ends in an error, and `j` is freed. */
static bool lacks_memory(gen_job *j)
{
    if (!j->out.failed) return false;
    shared_fail_nomem(&j->shared);
    return true;
}

static void note_usage(gen_job *j)
{
    j->shared.rq->n_prompt_tokens = j->answer.n_prompt;
    j->shared.rq->n_generated_tokens = j->answer.n_generated;
    j->shared.rq->n_drafted_tokens = j->answer.n_drafted;
    j->shared.rq->n_accepted_tokens = j->answer.n_accepted;
}

/* End the reply. `j` is freed. */
static void job_reply(gen_job *j)
{
    gateway_request *rq = j->shared.rq;
    if (j->spec->stream) {
        begin_stream(j);
        answer_put_end(&j->out, &j->form, &j->answer);
        if (lacks_memory(j)) return;
        generate_flush(j);
        generate_job_free(j);
        request_stream_end(rq);
        return;
    }
    buf_clear(&j->out);
    answer_put(&j->out, &j->form, &j->answer);
    buf body = j->out;
    j->out = (buf){0};
    generate_job_free(j);
    request_json(rq, 200, &body);
    buf_done(&body);
}

/* The same request for the route's shadow, if it has one and this is one of its share. */
static void follow(gen_job *j)
{
    Shoal__V1__GenerateRequest req;
    Shoal__V1__Sampling sampling;
    if (j->shared.rq->background || j->n_branches != 1 || j->stream.resumes || !shadow_is_due(j->shared.rq))
        return;
    openai_spec_fill(j->spec, 0, &req, &sampling);
    shadow_start(j->shared.rq, &j->answer, &req);
}

static void on_kept(void *job, const api_error *e)
{
    gen_job *j = job;
    if (e)
        shared_fail(&j->shared, e);
    else
        job_reply(j);
}

/* Everything is there. Of a conversation it is kept before the client hears the end. `j` is freed, later. */
static void job_answer(gen_job *j)
{
    note_usage(j);
    if (!j->conversation || !j->conversation->keeps) {
        job_reply(j);
        return;
    }
    j->conversation->done = on_kept;
    j->conversation->user = j;
    conversation_keep(j->conversation, &j->answer, &j->form);
}

static void job_complete(gen_job *j)
{
    follow(j);
    shared_end end = shared_detach(&j->shared);
    buf packed = {0};
    if (shared_wants(&end)) answer_pack(&packed, &j->answer);
    job_answer(j);
    shared_publish(&end, &packed);
    buf_done(&packed);
}

static void fail_as_different(gen_job *j)
{
    api_error e;
    stream_differs(&e);
    shared_fail(&j->shared, &e);
}

/* A client that comes back may know how the choice ended. */
static void put_finish(gen_job *j, size_t k)
{
    if (!j->stream.resumes || !j->stream.had[k].finished)
        answer_put_finish(&j->out, &j->form, &j->answer, k);
    else
        j->stream.id.marks[k].finished = true;
}

static void answer_cached(void *job, const char *packed, size_t len)
{
    gen_job *j = job;
    answer_done(&j->answer);
    if (answer_unpack(&j->answer, packed, len) != 0) {
        api_error e;
        api_error_nomem(&e);
        shared_fail(&j->shared, &e);
        return;
    }
    for (size_t k = 0; k < j->answer.n; k++) answer_judge(&j->answer, j->spec, k);
    for (size_t k = 0; j->spec->stream && k < j->answer.n; k++) {
        if (!j->stream.resumes)
            answer_put_replay(&j->out, &j->form, &j->answer, k);
        else if (answer_put_rest(&j->out, &j->form, &j->answer, k, &j->stream.had[k]) != REST_PUT)
            return fail_as_different(j);
        put_finish(j, k);
    }
    job_answer(j);
}

/* ---- the calls ----------------------------------------------------------------------------------- */

/* Whose answer this is; false: not the one that the client wants to go on with, and `j` is freed. */
static bool meet(gen_job *j, gen_branch *br)
{
    api_error e;
    if (br->met) return true;
    call_place place = calls_where(br->call);
    const char *digest = place.digest;
    br->met = true;
    request_note_place(j->shared.rq, &place);
    if (place.wanted) j->stream.id.untold = true; /* nobody goes on with a stand-in's answer */
    if (!j->shared.rq->streaming && digest) answer_form_digest(&j->form, digest);
    const char *identity = place.exact_resume ? place.identity : NULL;
    if (stream_meet(&j->stream, j->shared.rq, identity, place.adapter_digest, &e) == 0) return true;
    shared_fail(&j->shared, &e);
    return false;
}

/* False: the answer is not the one that the client has the beginning of, and `j` is freed. */
static bool catch_up(gen_job *j, gen_branch *br)
{
    answer_rest rest = answer_put_rest(&j->out, &j->form, &j->answer, br->k, &j->stream.had[br->k]);
    br->behind = rest != REST_PUT;
    if (rest == REST_PUT || (rest == REST_BEHIND && !br->done)) return true;
    fail_as_different(j);
    return false;
}

/* A worker's text in a header: printable, or not at all. */
static void note_tool_syntax(gateway_request *rq, const char *label)
{
    size_t n = strlen(label);
    if (n == 0 || n >= sizeof rq->tool_syntax) return;
    for (size_t i = 0; i < n; i++)
        if (label[i] < ' ' || label[i] > '~') return;
    memcpy(rq->tool_syntax, label, n + 1);
}

static bool on_started(gen_job *j, gen_branch *br, const Shoal__V1__Started *s)
{
    api_error e;
    if (br->k % j->spec->n == 0 && !br->counted)
        j->shared.rq->n_prompt_tokens += s->n_prompt; /* so far: it may be cut */
    br->counted = true;
    answer_start(&j->answer, j->spec, br->k, s->n_prompt);
    note_tool_syntax(j->shared.rq, s->tool_syntax);
    if (!j->spec->stream) return true;
    if (stream_started(&j->stream, br->k, s->max_tokens, &e) != 0) {
        shared_fail(&j->shared, &e);
        return false;
    }
    begin_stream(j);
    if (br->behind) return catch_up(j, br);
    answer_put_role(&j->out, &j->form, &j->answer, br->k);
    return true;
}

/* Tokens that come together share the time since those before them. */
static void note_gap(gen_job *j, gen_branch *br, size_t n_tokens)
{
    double now_ms = request_ms(j->shared.rq);
    if (n_tokens == 0) return;
    if (br->token_ms > 0)
        metrics_observe_many_s(j->shared.rq->metrics, METRIC_TOKEN_GAP,
                               (now_ms - br->token_ms) / 1000 / (double)n_tokens, n_tokens,
                               j->shared.rq->model, NULL);
    br->token_ms = now_ms;
}

static void count_generation(const gen_job *j, const Shoal__V1__Done *d)
{
    metrics *m = j->shared.rq->metrics;
    const char *model = j->shared.rq->model;
    metrics_add(m, METRIC_FINISHED, 1, model, d->finish, NULL);
    metrics_add(m, METRIC_PREFIX, d->n_cached, model, "hit", NULL);
    metrics_add(m, METRIC_PREFIX, d->n_prompt, model, "queried", NULL);
}

static bool on_delta(gen_job *j, gen_branch *br, const Shoal__V1__Delta *d)
{
    if (!j->saw_token) {
        j->saw_token = true;
        request_note_time(j->shared.rq, REQUEST_FIRST_TOKEN, request_ms(j->shared.rq));
    }
    j->shared.rq->n_generated_tokens += d->n_ids;
    note_gap(j, br, d->n_ids);
    answer_add(&j->answer, j->spec, br->k, d);
    if (!j->spec->stream) return true;
    begin_stream(j);
    if (br->behind) return catch_up(j, br);
    if (j->answer.choices[br->k].n_calls == ANSWER_CALLS_MAX)
        j->stream.id.untold = true; /* more are not kept */
    answer_put_delta(&j->out, &j->form, &j->answer, j->spec, br->k, d);
    return true;
}

static bool on_done(gen_job *j, gen_branch *br, const Shoal__V1__Done *d)
{
    call_place place = calls_where(br->call);
    br->done = true;
    conversation_computed(j->conversation, &place);
    answer_close(&j->answer, j->spec, br->k, d);
    answer_judge(&j->answer, j->spec, br->k);
    degraded_trust(&j->shared.rq->degraded, d->mean_prob);
    count_generation(j, d);
    request_note_time(j->shared.rq, REQUEST_QUEUE, d->queue_ms);
    request_note_time(j->shared.rq, REQUEST_PREFILL, d->prefill_ms);
    request_note_time(j->shared.rq, REQUEST_DECODE, d->decode_ms);
    if (!j->spec->stream) return true;
    begin_stream(j);
    if (br->behind && !catch_up(j, br)) return false;
    put_finish(j, br->k);
    return true;
}

/* Behind it there is no coming back: another gateway may be quicker or slower. */
static void on_refined(gen_job *j, gen_branch *br, const Shoal__V1__Refined *r)
{
    answer_refine(&j->answer, br->k, r);
    j->stream.id.untold = true;
    answer_put_refined(&j->out, &j->form, &j->answer, br->k, r);
}

static void generate_on_event(const call_events *events, const ProtobufCMessage *m)
{
    gen_branch *br = events->user;
    gen_job *j = br->job;
    const Shoal__V1__GenerateEvent *ev = (const Shoal__V1__GenerateEvent *)m;
    if (!meet(j, br)) return;
    if (ev->started && !on_started(j, br, ev->started)) return;
    if (ev->delta && !on_delta(j, br, ev->delta)) return;
    if (ev->refined) on_refined(j, br, ev->refined);
    if (ev->done && !on_done(j, br, ev->done)) return;
    if (!lacks_memory(j) && j->out.len) generate_flush(j);
}

/* The choice begins anew at a replica that gives other bits; of a stream nothing has been sent but its role. */
static void on_restarted(const call_events *events)
{
    gen_branch *br = events->user;
    gen_job *j = br->job;
    answer_restart(&j->answer, br->k);
    br->met = false;
    if (j->n_branches == 1)
        stream_forget(&j->stream);
    else
        j->stream.id.untold = true; /* its choices may come of several */
}

/* With a history that is too long for the model: once more with half of it. True: `j` is freed. */
static bool begin_shorter(gen_job *j)
{
    gateway_request *rq = j->shared.rq;
    conversation *k = j->conversation;
    if (!k || rq->streaming || !conversation_shorten(k)) return false;
    shared_end end = shared_detach(&j->shared);
    j->conversation = NULL;
    generate_job_free(j);
    request_watch(rq, NULL, NULL);
    generate_conversation(k);
    shared_leave(&end);
    return true;
}

static void generate_on_end(const call_events *events, const call_result *r)
{
    gen_branch *br = events->user;
    gen_job *j = br->job;
    br->call = NULL;
    request_note_result(j->shared.rq, r);
    shared_heard(&j->shared, r->identity);
    if (r->status != 0 || !br->done) {
        call_result failed = *r;
        api_error e;
        if (r->status == 0) {
            failed.status = SHOAL_EPROTOCOL;
            failed.message = "the worker ended without a result";
        }
        if (r->status == SHOAL_ELIMIT && begin_shorter(j)) return;
        api_error_from_call(&e, &failed);
        shared_fail(&j->shared, &e);
        return;
    }
    request_note_time(j->shared.rq, REQUEST_TOTAL, r->ms);
    j->shared.cut |= r->cut;
    if (--j->n_open == 0) job_complete(j);
}

/* Streams alone can take something back. */
static bool takes_refined(const gen_job *j)
{
    const char *given = request_header(j->shared.rq, "x-shoal-refine");
    return j->spec->stream && !j->spec->anthropic && given && strcmp(given, "1") == 0;
}

static model_call *start_call(gen_job *j, gen_branch *br)
{
    gateway_request *rq = j->shared.rq;
    call_context ctx = request_context(rq, "endpoint");
    call_events ev = {.user = br,
                      .event = generate_on_event,
                      .end = generate_on_end,
                      .restarted = on_restarted,
                      .takes_back = !j->spec->stream};
    Shoal__V1__GenerateRequest req;
    Shoal__V1__Sampling sampling;
    openai_spec_fill(j->spec, br->k, &req, &sampling);
    req.adapter = rq->adapter;
    req.refines = takes_refined(j);
    req.keeps_pages = j->conversation && j->conversation->keeps;
    conversation_lead(j->conversation, &ctx);
    if (br->behind && j->stream.had[br->k].max_tokens) req.max_tokens = j->stream.had[br->k].max_tokens;
    call_order *o = call_order_new(CALL_GENERATE, rq->model, &req.base, &ctx);
    model_call *call = o ? calls_start(rq->calls, o, &j->terms, &ev) : NULL;
    call_order_unref(o);
    return call;
}

static void start_calls(void *job)
{
    gen_job *j = job;
    j->n_open = j->n_branches;
    for (size_t k = 0; k < j->n_branches; k++) {
        gen_branch *br = &j->branches[k];
        *br = (gen_branch){.job = j, .k = k, .behind = j->stream.resumes};
        br->call = start_call(j, br);
        if (!br->call) {
            shared_fail_nomem(&j->shared);
            return;
        }
    }
}

/* ---- the start ----------------------------------------------------------------------------------- */

static void put_answer_text(buf *out, const char *packed, size_t len)
{
    gen_answer a = {0};
    if (answer_unpack(&a, packed, len) != 0) return;
    if (a.n > 0) utf8_put_c(out, a.choices[0].text.data, a.choices[0].text.len);
    answer_done(&a);
}

static const shared_ops OPS = {
    .compute = start_calls, .answer = answer_cached, .free = generate_job_free, .text = put_answer_text};

/* Takes spec; NULL when out of memory (then spec is freed). */
static gen_job *generate_job_new(gen_spec *spec, const char *digest, const stream *st, int64_t created)
{
    gen_job *j = calloc(1, sizeof *j);
    if (!j) {
        openai_spec_free(spec);
        return NULL;
    }
    j->spec = spec;
    j->n_branches = openai_spec_choices(spec);
    j->branches = calloc(j->n_branches, sizeof *j->branches);
    if (!j->branches || answer_init(&j->answer, j->n_branches) != 0) {
        if (!j->branches) j->n_branches = 0;
        generate_job_free(j);
        return NULL;
    }
    answer_form_init(&j->form, spec, digest, created);
    if (spec->include_usage && spec->usage_stats) j->form.counted = &j->answer;
    j->stream = *st;
    stream_name(&j->stream, &j->form);
    return j;
}

static int parse_translate(gen_spec **ret, const char *body, size_t len, api_error *e)
{
    return openai_spec_parse_texts(ret, "translation", body, len, e);
}

static int parse_summarize(gen_spec **ret, const char *body, size_t len, api_error *e)
{
    return openai_spec_parse_texts(ret, "summary", body, len, e);
}

/* The client has it all, and did not hear the end. */
static void answer_whole(gen_job *j)
{
    gateway_request *rq = j->shared.rq;
    generate_job_free(j);
    request_stream_begin(rq);
    request_event(rq, &EVENT_FINAL);
    request_stream_end(rq);
}

static void join_conversation(gen_job *j, conversation *k)
{
    if (!k) return;
    j->conversation = k;
    k->keeps = k->keeps && !k->was_kept;
    if (!k->response) return;
    response_form_init(&k->form, k->response);
    j->form.response = &k->form;
}

/* A reply that a route's limits may cut is computed for requests with the same limits alone. */
static bool key_limits(const gateway_request *rq, sha256_digest *key)
{
    const reply_limits *l = rq->routed ? &rq->routed->route->limits : NULL;
    if (!l || (!l->first_token_ms && !l->token_gap_ms && !l->reply_ms)) return true;
    cache_key *k = cache_key_new("limits");
    cache_key_bytes(k, "reply", key->bytes, sizeof key->bytes);
    cache_key_int(k, "first_token_ms", (int64_t)l->first_token_ms);
    cache_key_int(k, "token_gap_ms", (int64_t)l->token_gap_ms);
    cache_key_int(k, "reply_ms", (int64_t)l->reply_ms);
    return cache_key_end(k, key);
}

/* False: the answer is not kept. */
static bool make_terms(const gateway_request *rq, const gen_spec *spec, const Shoal__V1__ModelInfo *info,
                       provenance *by, shared_terms *ret)
{
    openai_near near;
    provenance_add(by, rq, rq->model, rq->adapter);
    if (!provenance_end(by) || !info) return false;
    Shoal__V1__ModelInfo all = *info;
    all.identity = by->identity;
    all.template_reads_clock = by->reads_clock;
    if (openai_near_of(&near, spec, &all, rq->adapter_digest, rq->config->cache.semantic.sampled))
        ret->near = (semantic_ask){.text = near.text, .partition = near.partition};
    return openai_spec_key(spec, &all, rq->adapter_digest, &ret->key) && key_limits(rq, &ret->key);
}

/* A kept refusal of the same messages would be told where a shorter request is due. */
static bool shortens(const conversation *k)
{
    return k && k->response && k->response->shortens;
}

/* A stream that goes on does so with the identity that began it. */
static bool goes_on_with(const stream *st, const gateway_request *rq, const provenance *by)
{
    return !st->resumes || (*by->file && stream_is_of(st, by->file, rq->adapter_digest));
}

/* A rerank chooses among drawn candidates: what its first member's author prefers for single replies is no help. Of a
 * model that is not up yet the worker knows. */
static void generate_settle(const gateway_request *rq, gen_spec *spec, const Shoal__V1__ModelInfo *info)
{
    const config_ensemble *e = config_ensemble_find(rq->config, rq->model);
    bool reranks = e && e->kind == ENSEMBLE_RERANK;
    if (info || reranks) openai_spec_settle(spec, reranks ? NULL : info);
}

/* k may be NULL; both it and spec are taken. */
static void begin_generate(gateway_request *rq, gen_spec *spec, const Shoal__V1__ModelInfo *info,
                           const stream *st, const call_terms *terms, conversation *k)
{
    api_error e;
    generate_settle(rq, spec, info);
    gen_job *j = generate_job_new(spec, info ? info->digest : NULL, st, request_date_s(rq));
    if (!j) {
        conversation_free(k);
        api_error_nomem(&e);
        request_error(rq, &e);
        return;
    }
    j->shared.rq = rq;
    j->form.degraded = &rq->degraded;
    j->form.model = request_shown_model(rq, j->form.model);
    j->terms = *terms;
    join_conversation(j, k);
    if (st->was_whole && (!k || !k->keeps)) {
        answer_whole(j);
        return;
    }
    provenance by = {0};
    shared_terms kept_as = {.by = &by};
    rq->keeps = k != NULL;
    bool cacheable = make_terms(rq, spec, info, &by, &kept_as) && goes_on_with(st, rq, &by) && !shortens(k);
    if (cacheable && *by.file)
        stream_meet(&j->stream, rq, info->exact_resume ? by.file : NULL, rq->adapter_digest, &e);
    shared_start(&j->shared, &OPS, rq, cacheable ? &kept_as : NULL);
}

/* The history was shortened when this stream began, and is not so now. */
static bool begins_longer(const conversation *k, const api_error *e)
{
    return k && *k->resumed && e->code && strcmp(e->code, "other_request") == 0;
}

/* The name of a model that was not named lives in the registry: the answer keeps a copy. */
static int generate_choose(gateway_request *rq, gen_spec *spec, const char *task,
                           const Shoal__V1__ModelInfo **ret, api_error *e)
{
    bool named = spec->model != NULL;
    int rc = model_resolve(rq, task, &spec->model, ret, e);
    if (rc == 0 && !named && !(spec->model = arena_strdup(spec->mem, spec->model))) rc = api_error_nomem(e);
    return rc;
}

/* Takes spec, of which it is known by now which model answers, and k, which may be NULL. */
static void generate_answer(gateway_request *rq, gen_spec *spec, const char *task, conversation *k)
{
    api_error e = {0};
    const Shoal__V1__ModelInfo *info = NULL;
    stream st = {0};
    call_terms terms;
    bool plain =
        (!k || !k->response) && !spec->llama && !spec->anthropic; /* the events of others have no ids */
    if (generate_choose(rq, spec, task, &info, &e) != 0 || (plain && stream_open(&st, rq, spec, &e) != 0) ||
        stream_terms(&st, rq, &terms, &e) != 0) {
        openai_spec_free(spec);
        if (begins_longer(k, &e) && conversation_shorten(k)) {
            generate_conversation(k);
            return;
        }
        conversation_free(k);
        request_error(rq, &e);
        return;
    }
    begin_generate(rq, spec, info, &st, &terms, k);
}

/* ---- a route ------------------------------------------------------------------------------------- */

typedef struct gen_routed { /* a request that waits for its route */
    gateway_request *rq;
    gen_spec *spec;
    const char *task;
    conversation *k; /* NULL: without a conversation */
} gen_routed;

static void routed_drop(void *work)
{
    gen_routed *w = work;
    openai_spec_free(w->spec);
    conversation_free(w->k);
    free(w);
}

static void on_routed(void *work, const char *model, const api_error *e)
{
    gen_routed w = *(gen_routed *)work;
    free(work);
    if (model) {
        w.spec->model = model;
        if (w.k) snprintf(w.k->decided, sizeof w.k->decided, "%s", model);
        generate_answer(w.rq, w.spec, w.task, w.k);
        return;
    }
    openai_spec_free(w.spec);
    conversation_free(w.k);
    request_error(w.rq, e);
}

static void start_route(gateway_request *rq, const config_route *route, gen_spec *spec, const char *task,
                        conversation *k)
{
    api_error e;
    routed_about about;
    gen_routed *w = malloc(sizeof *w);
    if (!w) {
        api_error_nomem(&e);
        openai_spec_free(spec);
        conversation_free(k);
        request_error(rq, &e);
        return;
    }
    *w = (gen_routed){rq, spec, task, k};
    about_generation(&about, spec, task);
    routed_start(rq, route, &about, on_routed, routed_drop, w);
}

/* Takes spec and k, which may be NULL. */
static void handle_spec(gateway_request *rq, gen_spec *spec, const char *task, conversation *k)
{
    spec->model = model_resolve_alias(rq, spec->model);
    const config_route *route = routed_find(rq, spec->model);
    if (route)
        start_route(rq, route, spec, task, k);
    else
        generate_answer(rq, spec, task, k);
}

void generate_spec(gateway_request *rq, gen_spec *spec)
{
    api_error e;
    if (request_count_choices(rq, openai_spec_choices(spec), &e) == 0) {
        handle_spec(rq, spec, TASK_COMPLETES, NULL);
        return;
    }
    openai_spec_free(spec);
    request_error(rq, &e);
}

/* A model that a client made of another brings what the request leaves out: the body is read again with it. */
static int fill_variant(const gateway_request *rq, generate_parse parse, const char *body, size_t len,
                        gen_spec **spec, api_error *e)
{
    const json_t *made = model_resolve_variant(rq, (*spec)->model);
    json_t *root = NULL;
    buf filled = {0};
    gen_spec *own = NULL;
    if (!made) return 0;
    int rc = json_parse(&root, body, len, "the body", NULL);
    if (rc == 0) rc = ollama_fill_in(root, made);
    rc = rc == 0 ? ollama_fill_template(NULL, root, made, e) : api_error_nomem(e);
    if (rc == 0 && json_put(&filled, root) != 0) rc = api_error_nomem(e);
    if (rc == 0) rc = parse(&own, filled.data, filled.len, e);
    if (rc == 0) {
        openai_spec_free(*spec);
        *spec = own;
    }
    buf_done(&filled);
    json_decref(root);
    return rc;
}

/* k may be NULL, and is taken. One that is asked again, with less of its history, keeps its route's decision.
 */
static void handle_body(gateway_request *rq, const char *task, generate_parse parse, const char *body,
                        size_t len, conversation *k)
{
    api_error e;
    gen_spec *spec = NULL;
    if (parse(&spec, body, len, &e) != 0 || fill_variant(rq, parse, body, len, &spec, &e) != 0 ||
        request_count_choices(rq, openai_spec_choices(spec), &e) != 0) {
        openai_spec_free(spec);
        conversation_free(k);
        request_error(rq, &e);
        return;
    }
    if (!k || !*k->decided) {
        handle_spec(rq, spec, task, k);
        return;
    }
    spec->model = k->decided;
    generate_answer(rq, spec, task, k);
}

static void handle(gateway_request *rq, const char *task, generate_parse parse)
{
    size_t len;
    const char *body = request_body(rq, &len);
    handle_body(rq, task, parse, body, len, NULL);
}

void generate_conversation(conversation *k)
{
    gateway_request *rq = k->rq;
    api_error e;
    buf body = {0};
    conversation_body(k, &body);
    if (body.failed) {
        conversation_free(k);
        api_error_nomem(&e);
        request_error(rq, &e);
    } else {
        handle_body(rq, "generate", k->parse ? k->parse : openai_spec_parse_chat, body.data, body.len, k);
    }
    buf_done(&body);
}

void generate_chat(gateway_request *rq)
{
    handle(rq, "generate", openai_spec_parse_chat);
}

void generate_body(gateway_request *rq, generate_parse parse, const char *body, size_t len)
{
    handle_body(rq, "generate", parse, body, len, NULL);
}

void generate_completions(gateway_request *rq)
{
    handle(rq, TASK_COMPLETES, openai_spec_parse_completion);
}

void generate_translate(gateway_request *rq)
{
    handle(rq, "seq2seq", parse_translate);
}

void generate_summarize(gateway_request *rq)
{
    handle(rq, "seq2seq", parse_summarize);
}
