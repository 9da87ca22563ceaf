/* session.c: from a request to tokens to events; see session.h. What an event points to is good during the
 * callback only. */
#include "infer/session.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "infer/beam_set.h"

#define TOKEN_TEXT_BYTES 512 /* room for the text of one token; longer ones allocate */

static int check_prompt(const model_config *c, const gen_request *r, size_t n_ctx, shoal_err *err)
{
    if (r->n_ids == 0) return err_set(err, SHOAL_EINVALID, "the prompt is empty");
    for (size_t i = 0; i < r->n_ids; i++) {
        if (r->ids[i] < 0 || (size_t)r->ids[i] >= c->n_vocab) {
            return err_set(err, SHOAL_EINVALID, "token %zu of the prompt is %d, the vocabulary has %zu", i,
                           r->ids[i], c->n_vocab);
        }
    }
    if (r->n_ids >= n_ctx) {
        return err_set(err, SHOAL_ELIMIT,
                       "%zu prompt tokens leave no room for a reply in the context of %zu tokens", r->n_ids,
                       n_ctx);
    }
    return 0;
}

static bool is_greedy(const sampling *s)
{
    return s->temperature == 0 && s->n_bias == 0 && s->presence_penalty == 0 && s->frequency_penalty == 0 &&
           (s->repetition_penalty == 0 || s->repetition_penalty == 1);
}

/* What else than its tokens the keys and values of a sequence depend on. */
static int salt_of(const session *s, uint64_t *ret)
{
    uint64_t source = 0, adapter = 0;
    if (s->source && input_digest(s->source, &source)) return SHOAL_ENOMEM;
    if (s->adapter) memcpy(&adapter, adapter_digest(s->adapter), sizeof adapter);
    *ret = s->source && s->adapter ? rng_mix(source) ^ adapter : source ^ adapter;
    if (*ret == 0 && (s->source || s->adapter)) *ret = 1;
    return 0;
}

int session_check_tokenizer(const model *m, shoal_err *err)
{
    if (model_tokenizer(m)) return 0;
    return err_set(err, SHOAL_EUNSUPPORTED, "stop strings and a form of reply need a tokenizer: %s",
                   model_tokenizer_error(m));
}

static int make_grammar(session *s, const gen_request *r, const grammar_vocab *vocab, shoal_err *err)
{
    if (!r->grammar || !*r->grammar) return grammar_new(&s->grammar, vocab, r->form, err);
    s->grammar = *r->grammar;
    *r->grammar = NULL;
    return 0;
}

static int session_fill(session *s, const model *m, const gen_request *r, size_t n_ctx,
                        const grammar_vocab *vocab, shoal_err *err)
{
    const tokenizer *t = model_tokenizer(m);
    int rc = r->n_stop > 0 || r->form ? session_check_tokenizer(m, err) : 0;
    if (rc) return rc;
    rc = sampler_init(&s->sampler, &r->sampling, r->n_top, s->config->n_vocab, r->ids, r->n_ids, err);
    if (rc == 0)
        rc = thinking_init(&s->thinking, t ? r->thinking : NULL, r->in_thought,
                           r->calls && r->may_call ? r->calls->ends : NULL);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc == 0) rc = stop_init(&s->stop, r->stop, r->n_stop, err);
    if (rc == 0 && r->form) rc = make_grammar(s, r, vocab, err);
    if (rc) return rc;
    size_t room = n_ctx - r->n_ids;
    s->max_ids = r->n_ids + (r->max_tokens && r->max_tokens < room ? r->max_tokens : room);
    if (s->grammar) grammar_limit(s->grammar, s->max_ids - r->n_ids);
    if (s->grammar && !r->max_tokens) grammar_limit_text(s->grammar, room / 2);
    s->ids = calloc(s->max_ids, sizeof *s->ids);
    if (r->n_beams > 1 &&
        (r->n_stop || r->form || r->rule.mask || r->logprobs || r->n_top || !is_greedy(&r->sampling)))
        return err_set(
            err, SHOAL_EINVALID,
            "beam search takes the likeliest reply: no temperature, penalties, bias, stop strings, "
            "log-probabilities or form of reply go with it");
    uint64_t salt = 0;
    if (salt_of(s, &salt)) return err_nomem(err);
    if (!s->ids || kv_seq_init(&s->kv, s->max_ids, salt) || buf_reserve(&s->text, TOKEN_TEXT_BYTES))
        return err_nomem(err);
    s->kv.keeps = r->keeps_pages;
    memcpy(s->ids, r->ids, r->n_ids * sizeof *s->ids);
    if (t) detok_init(&s->detok, t, false);
    if (r->votes) {
        if (r->n_beams > 1) return err_set(err, SHOAL_EINVALID, "beam search and voting do not go together");
        s->ballot = ballot_new(r->geometric, s->config->n_vocab);
        if (!s->ballot) return err_nomem(err);
    }
    return r->n_beams > 1 ? beam_set_new(&s->beams, m, r, s, n_ctx, err) : 0;
}

/* Likelier tokens that are told beside a judged one. */
static size_t judged_top(const session *s)
{
    size_t n = (size_t)s->sampler.n_top;
    return n < s->config->n_vocab ? n : s->config->n_vocab;
}

/* The row in front of a token judges it, and the last row the end. */
static int judge_session(session *s, const gen_request *r, shoal_err *err)
{
    size_t n_top = judged_top(s);
    if (r->judge_from == 0 && !r->only_judges) return 0;
    if (r->n_beams > 1 || r->votes || r->n_resume > 0 || r->judge_from == 0 || r->judge_from > r->n_ids)
        return err_set(
            err, SHOAL_EINVALID,
            "a prompt is judged from one of its tokens on, and neither in a beam search or vote nor "
            "where a reply goes on");
    s->n_probe = r->n_ids - r->judge_from + 1;
    s->only_judges = r->only_judges;
    s->judged = calloc(s->n_probe, sizeof *s->judged);
    s->judged_top = calloc(s->n_probe, (n_top ? n_top : 1) * sizeof *s->judged_top);
    return s->judged && s->judged_top ? 0 : err_nomem(err);
}

static int resume(session *s, const gen_request *r, size_t n_ctx, shoal_err *err);

int session_new(session **ret, const model *m, const gen_request *r, input *source, adapter *adapter,
                size_t n_ctx, const grammar_vocab *vocab, shoal_err *err)
{
    const model_config *c = model_get_config(m);
    int rc = check_prompt(c, r, n_ctx, err);
    session *s = rc == 0 ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        free(source);
        adapter_unref(adapter);
        return rc ? rc : err_nomem(err);
    }
    s->source = source;
    s->adapter = adapter;
    if (source) source->in.adapter = adapter;
    s->job.kind = JOB_GENERATE;
    s->config = c;
    s->job.deadline_ns = r->deadline_ns;
    s->job.class = job_class_of(r->latency);
    s->job.n_tokens = s->n_prompt = s->n_ids = r->n_ids;
    s->ignore_eos = r->ignore_eos;
    s->min_tokens = r->form ? 0 : r->min_tokens;
    s->end = r->end ? *r->end : -1;
    s->calls = r->calls;
    s->may_call = r->may_call;
    s->progress = r->progress;
    s->rule = r->rule;
    rc = session_fill(s, m, r, n_ctx, vocab, err);
    if (rc == 0) rc = judge_session(s, r, err);
    if (rc == 0) rc = resume(s, r, n_ctx, err);
    if (rc) {
        session_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void session_free(session *s)
{
    if (!s) return;
    assert(s->kv.n_pages == 0);
    beam_set_free(s->beams);
    free(s->kv.pages);
    free(s->ids);
    free(s->source);
    adapter_unref(s->adapter);
    free(s->cross);
    sampler_done(&s->sampler);
    stop_done(&s->stop);
    thinking_done(&s->thinking);
    grammar_free(s->grammar);
    buf_done(&s->text);
    buf_done(&s->resumed_text);
    buf_done(&s->resumed_thought);
    free(s->begun);
    free(s->ballot);
    free(s->judged);
    free(s->judged_top);
    free(s);
}

bool session_awaits(const session *s)
{
    return s->ballot && s->ballot->waits;
}

bool session_waits(const session *s)
{
    return s->source && !s->cross;
}

void session_drop_cross(session *s)
{
    free(s->cross);
    s->cross = NULL;
    s->n_cross = 0;
}

size_t session_pending(const session *s)
{
    return s->n_ids - s->kv.n_tokens;
}

static bool is_eos(const session *s, int32_t id)
{
    for (size_t i = 0; i < s->config->n_eos; i++) {
        if (s->config->eos_ids[i] == id) return true;
    }
    return s->end == id;
}

void session_mask(const session *s, float *logits, size_t n_vocab)
{
    if (s->rule.mask) s->rule.mask(s->rule.user, s->ids + s->n_prompt, s->n_generated, logits, n_vocab);
    if (s->n_generated >= s->min_tokens) return;
    for (size_t i = 0; i < s->config->n_eos; i++) logits[s->config->eos_ids[i]] = GEN_NEVER;
    if (s->end >= 0) logits[s->end] = GEN_NEVER;
}

/* A control token that is a marker of calls or thoughts: its text, which detok_push leaves out. */
static const char *marker_text(const session *s, int32_t id, size_t *ret_len)
{
    bool special = false;
    const char *text = tokenizer_bytes(s->detok.t, id, ret_len, &special);
    if (!text || !special) return NULL;
    if (s->calls && toolcall_shows(s->calls, text, *ret_len)) return text;
    return thinking_shows(s->thinking.form, text, *ret_len) ? text : NULL;
}

static void detokenize(session *s, int32_t id)
{
    size_t len = 0;
    const char *marker = marker_text(s, id, &len);
    buf_clear(&s->text);
    if (!marker) {
        detok_push(&s->detok, id, &s->text);
        return;
    }
    detok_end(&s->detok, &s->text);
    buf_append(&s->text, marker, len);
}

/* What the token adds to the thought, and to the text past the stop strings; "" while it is held back. */
static void token_text(session *s, int32_t id, gen_event *ev)
{
    thinking_parts p;
    if (s->detok.t)
        detokenize(s, id);
    else
        buf_clear(&s->text);
    thinking_push(&s->thinking, s->text.data, s->text.len, &p);
    s->n_thought += s->thinking.at != THINK_DONE;
    ev->thought = p.thought;
    ev->thought_len = p.n_thought;
    if (stop_push(&s->stop, p.answer, p.n_answer, &ev->text, &ev->text_len)) s->finish = FINISH_STOP;
}

/* The reply grows by a token: what may follow it, what it shows, and whether it is the last. accept is
 * grammar_accept or grammar_replay; false: the form does not allow the token. */
static bool session_grow(session *s, int32_t id, bool (*accept)(grammar *, int32_t), gen_event *ev)
{
    bool may_end = !s->grammar || (is_eos(s, id) && grammar_complete(s->grammar));
    assert(s->n_ids < s->max_ids);
    s->ids[s->n_ids++] = id;
    s->n_generated++;
    sampler_accept(&s->sampler, id);
    if (is_eos(s, id) && !s->ignore_eos) {
        s->finish = FINISH_STOP;
        return may_end;
    }
    token_text(s, id, ev);
    bool fits = (s->grammar && accept(s->grammar, id)) || may_end;
    if (s->grammar && grammar_ended(s->grammar)) s->finish = FINISH_STOP;
    if (s->finish == FINISH_NONE && s->n_ids == s->max_ids) s->finish = FINISH_LENGTH;
    return fits;
}

static void tell_resumed(session *s)
{
    if (!s->resumed) return;
    s->resumed = false;
    s->fn(s->user, &(gen_event){.kind = EVENT_RESUMED,
                                .id = -1,
                                .text = s->resumed_text.len ? s->resumed_text.data : "",
                                .text_len = s->resumed_text.len,
                                .thought = s->resumed_thought.len ? s->resumed_thought.data : "",
                                .thought_len = s->resumed_thought.len});
    buf_done(&s->resumed_text);
    buf_done(&s->resumed_thought);
}

void session_take(session *s, uint64_t now_ns)
{
    const sample *next = &s->next;
    gen_event ev = {.kind = EVENT_TOKEN, .id = next->id, .text = "", .thought = "", .logprob = next->logprob};
    tell_resumed(s);
    s->prob_sum += (double)math_expf(next->logprob);
    if (s->first_token_ns == 0) s->first_token_ns = now_ns;
    session_grow(s, next->id, grammar_accept, &ev);
    ev.prob_sum = s->prob_sum;
    ev.top = next->n_top ? next->top : NULL;
    ev.n_top = next->n_top;
    s->fn(s->user, &ev);
}

void session_judge(session *s, size_t at, int32_t id, const sample *how)
{
    s->judged[at] = (token_logprob){.id = id, .logprob = how->logprob};
    memcpy(s->judged_top + at * judged_top(s), how->top, how->n_top * sizeof *how->top);
}

bool session_tell_judged(session *s)
{
    size_t first = s->n_prompt - s->n_probe + 1, n = s->only_judges ? s->n_probe : s->n_probe - 1;
    size_t n_top = judged_top(s);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(s->judged[i].logprob)) return false;
    s->n_probe = 0;
    for (size_t i = 0; i < n; i++)
        s->fn(s->user, &(gen_event){.kind = EVENT_JUDGED,
                                    .id = s->judged[i].id,
                                    .text = "",
                                    .thought = "",
                                    .logprob = s->judged[i].logprob,
                                    .top = n_top ? s->judged_top + i * n_top : NULL,
                                    .n_top = n_top,
                                    .n_read = first + i});
    return true;
}

void session_tell_ballot(const session *s)
{
    s->fn(s->user, &(gen_event){.kind = EVENT_BALLOT,
                                .id = -1,
                                .text = (const char *)(const void *)s->ballot->values,
                                .text_len = s->ballot->n_vocab * sizeof *s->ballot->values,
                                .thought = "",
                                .n_read = s->n_generated});
}

void session_tell_progress(const session *s)
{
    if (!s->progress) return;
    size_t n_read = s->beams ? s->beams->lane[0]->kv.n_tokens : s->kv.n_tokens;
    s->fn(s->user, &(gen_event){.kind = EVENT_PROGRESS,
                                .id = -1,
                                .text = "",
                                .thought = "",
                                .n_read = n_read < s->n_ids ? n_read : s->n_ids,
                                .n_input = s->n_ids,
                                .n_cached = s->n_cached});
}

/* ---- replies that began elsewhere ---------------------------------------------------------------- */

/* A token of the reply so far: its text is kept for EVENT_RESUMED. False as of grow. */
static bool grow_quietly(session *s, int32_t id)
{
    gen_event ev = {.text = "", .thought = ""};
    bool fits = session_grow(s, id, grammar_replay, &ev);
    buf_append(&s->resumed_text, ev.text, ev.text_len);
    buf_append(&s->resumed_thought, ev.thought, ev.thought_len);
    return fits;
}

static bool lacks_memory(const session *s)
{
    return s->resumed_text.failed || s->resumed_thought.failed || s->stop.held.failed ||
           thinking_failed(&s->thinking) || s->text.failed;
}

static int check_resumed(const session *s, const gen_request *r, size_t n_ctx, shoal_err *err)
{
    size_t room = n_ctx - r->n_ids, most = s->max_ids - s->n_prompt;
    if (r->max_tokens > room)
        return err_set(
            err, SHOAL_ELIMIT,
            "the reply that was begun may have %zu tokens; the context of %zu tokens has room for %zu "
            "after the prompt",
            r->max_tokens, n_ctx, room);
    if (r->n_resume > most)
        return err_set(err, SHOAL_EINVALID,
                       "%zu resume_ids, and a reply of this request has %zu tokens at most", r->n_resume,
                       most);
    if (!(r->resume_prob_sum >= 0 && r->resume_prob_sum <= (double)r->n_resume))
        return err_set(err, SHOAL_EINVALID, "resume_prob_sum is %g for %zu tokens; it must be from 0 to %zu",
                       r->resume_prob_sum, r->n_resume, r->n_resume);
    for (size_t i = 0; i < r->n_resume; i++)
        if (r->resume_ids[i] < 0 || (size_t)r->resume_ids[i] >= s->config->n_vocab)
            return err_set(err, SHOAL_EINVALID, "token %zu of resume_ids is %d, the vocabulary has %zu", i,
                           r->resume_ids[i], s->config->n_vocab);
    return 0;
}

/* As if the tokens had been made here; only their keys and values are still to be computed. */
static int replay(session *s, const gen_request *r, shoal_err *err)
{
    for (size_t i = 0; i < r->n_resume; i++) {
        if (s->finish != FINISH_NONE)
            return err_set(err, SHOAL_EINVALID, "token %zu of resume_ids comes after the end of the reply",
                           i);
        bool fits = grow_quietly(s, r->resume_ids[i]);
        if (lacks_memory(s)) return err_nomem(err);
        const shoal_err *wrong = s->grammar ? grammar_error(s->grammar) : NULL;
        if (wrong) return err_set(err, wrong->code, "%s", wrong->message);
        if (!fits)
            return err_set(err, SHOAL_EINVALID,
                           "token %zu of resume_ids (%d) is not one that the form of the reply allows there",
                           i, r->resume_ids[i]);
    }
    s->prob_sum = r->resume_prob_sum;
    s->job.n_tokens = s->n_ids;
    s->job.over = s->finish != FINISH_NONE;
    return 0;
}

static int resume(session *s, const gen_request *r, size_t n_ctx, shoal_err *err)
{
    s->job.n_deaths = r->n_deaths;
    s->job.replays = r->n_resume > 0 || r->n_deaths > 0;
    s->job.n_left = s->max_ids - s->n_prompt;
    if (r->n_resume == 0 && r->resume_prob_sum == 0) return 0;
    int rc = check_resumed(s, r, n_ctx, err);
    if (rc != 0) return rc;
    s->resumed = true;
    s->job.n_left -= r->n_resume;
    if (!s->beams) return replay(s, r, err);
    s->begun = malloc(r->n_resume * sizeof *s->begun);
    if (!s->begun) return err_nomem(err);
    memcpy(s->begun, r->resume_ids, r->n_resume * sizeof *s->begun);
    s->n_begun = r->n_resume;
    return 0;
}

int session_take_all(session *s, const int32_t *ids, size_t n, float logprob, uint64_t now_ns)
{
    bool other = s->n_begun > 0 && (n < s->n_begun || memcmp(ids, s->begun, s->n_begun * sizeof *ids) != 0);
    if (other) return SHOAL_EINVALID;
    for (size_t i = 0; i < n && s->finish == FINISH_NONE; i++) {
        s->next = (sample){.id = ids[i], .logprob = logprob};
        if (i < s->n_begun) {
            s->prob_sum += (double)math_expf(logprob);
            grow_quietly(s, ids[i]);
        } else {
            session_take(s, now_ns);
        }
    }
    if (lacks_memory(s)) return SHOAL_ENOMEM;
    if (s->finish == FINISH_NONE) s->finish = FINISH_LENGTH;
    return 0;
}

/* ---- the end ------------------------------------------------------------------------------------- */

/* What is still held back: an open character, and text that might have become a stop string. A character that the
 * limit cut may be a marker's, of which nothing is to be seen. */
static void last_text(session *s, gen_event *ev)
{
    thinking_parts p;
    if (s->stop.matched || !s->detok.t) return;
    buf_clear(&s->text);
    if (!s->may_call || s->finish != FINISH_LENGTH) detok_end(&s->detok, &s->text);
    thinking_end(&s->thinking, s->text.data, s->text.len, &p);
    ev->thought = p.thought;
    ev->thought_len = p.n_thought;
    stop_push(&s->stop, p.answer, p.n_answer, &ev->text, &ev->text_len);
    if (s->stop.matched) return;
    s->stop.n_safe = 0; /* nothing of it was shown */
    stop_flush(&s->stop, &ev->text, &ev->text_len);
}

static gen_timings timings(const session *s, uint64_t now_ns)
{
    uint64_t admitted = s->admitted_ns ? s->admitted_ns : now_ns;
    uint64_t first = s->first_token_ns ? s->first_token_ns : now_ns;
    return (gen_timings){.queue_ms = (double)(admitted - s->job.submit_ns) / 1e6,
                         .prefill_ms = (double)(first - admitted) / 1e6,
                         .decode_ms = (double)(now_ns - first) / 1e6,
                         .cpu_ms = s->cpu_ms,
                         .n_prompt = s->source && s->source->in.n ? s->source->in.n : s->n_prompt,
                         .n_cached = s->n_cached,
                         .n_generated = s->n_generated,
                         .n_thought = s->thinking.any ? s->n_thought : 0,
                         .n_drafted = s->n_drafted,
                         .n_accepted = s->n_accepted,
                         .mean_prob = s->n_generated ? s->prob_sum / (double)s->n_generated : 0};
}

void session_end(session *s, int status, const char *message, uint64_t now_ns)
{
    gen_event ev = {.kind = EVENT_DONE, .text = "", .thought = "", .status = status};
    ev.finish = status ? FINISH_ERROR : s->finish;
    ev.message = status == 0 ? "" : message ? message : shoal_err_text(status);
    if (status == 0) tell_resumed(s);
    if (!s->probe_out) last_text(s, &ev);
    if (s->stop.matched) ev.n_stop = s->stop.which + 1;
    ev.timings = timings(s, now_ns);
    s->fn(s->user, &ev);
}
