/* session.c: from a request to tokens to events; see session.h. What an event points to is good during the
 * callback only. */
#include "infer/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "infer/lanes.h"

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

static int fill(session *s, const model *m, const gen_request *r, size_t n_ctx, const grammar_vocab *vocab,
                shoal_err *err)
{
    const tokenizer *t = model_tokenizer(m);
    if (!t && (r->n_stop > 0 || r->form)) {
        return err_set(err, SHOAL_EUNSUPPORTED, "stop strings and a form of reply need a tokenizer: %s",
                       model_tokenizer_error(m));
    }
    int rc = sampler_init(&s->sampler, &r->sampling, r->n_top, s->config->n_vocab, r->ids, r->n_ids, err);
    if (rc == 0) rc = thinking_init(&s->thinking, t ? r->thinking : NULL, r->in_thought);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc == 0) rc = stop_init(&s->stop, r->stop, r->n_stop, err);
    if (rc == 0 && r->form) rc = grammar_new(&s->grammar, vocab, r->form, err);
    if (rc) return rc;
    size_t room = n_ctx - r->n_ids;
    s->max_ids = r->n_ids + (r->max_tokens && r->max_tokens < room ? r->max_tokens : room);
    s->ids = calloc(s->max_ids, sizeof *s->ids);
    if (r->n_beams > 1 && (r->n_stop || r->form || r->logprobs || r->n_top || !is_greedy(&r->sampling)))
        return err_set(
            err, SHOAL_EINVALID,
            "beam search takes the likeliest reply: no temperature, penalties, bias, stop strings, "
            "log-probabilities or form of reply go with it");
    uint64_t salt = 0;
    if (s->source && input_digest(s->source, &salt)) return err_nomem(err);
    if (!s->ids || kv_seq_init(&s->kv, s->max_ids, salt) || buf_reserve(&s->text, TOKEN_TEXT_BYTES))
        return err_nomem(err);
    memcpy(s->ids, r->ids, r->n_ids * sizeof *s->ids);
    if (t) detok_init(&s->detok, t, false);
    return r->n_beams > 1 ? lanes_new(&s->lanes, m, r, s, n_ctx, err) : 0;
}

int session_new(session **ret, const model *m, const gen_request *r, input *source, size_t n_ctx,
                const grammar_vocab *vocab, shoal_err *err)
{
    const model_config *c = model_get_config(m);
    int rc = check_prompt(c, r, n_ctx, err);
    session *s = rc == 0 ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        free(source);
        return rc ? rc : err_nomem(err);
    }
    s->source = source;
    s->job.kind = JOB_GENERATE;
    s->config = c;
    s->job.deadline_ns = r->deadline_ns;
    s->job.n_tokens = s->n_prompt = s->n_ids = r->n_ids;
    s->ignore_eos = r->ignore_eos;
    memcpy(s->shown, r->shown, sizeof s->shown);
    s->first_position = r->first_position;
    rc = fill(s, m, r, n_ctx, vocab, err);
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
    lanes_free(s->lanes);
    free(s->kv.pages);
    free(s->ids);
    free(s->source);
    free(s->cross);
    sampler_done(&s->sampler);
    stop_done(&s->stop);
    thinking_done(&s->thinking);
    grammar_free(s->grammar);
    buf_done(&s->text);
    free(s);
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
    return false;
}

/* A control token that is a marker of calls or thoughts: its text, which detok_push leaves out. */
static const char *marker_text(const session *s, int32_t id, size_t *ret_len)
{
    bool special = false;
    const char *text = tokenizer_bytes(s->detok.t, id, ret_len, &special);
    for (size_t i = 0; text && special && i < sizeof s->shown / sizeof *s->shown; i++) {
        const char *shown = s->shown[i];
        if (shown && *shown && strlen(shown) == *ret_len && memcmp(shown, text, *ret_len) == 0) return text;
    }
    return NULL;
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

void session_take(session *s, uint64_t now_ns)
{
    const sample *next = &s->next;
    gen_event ev = {.kind = EVENT_TOKEN, .id = next->id, .text = "", .thought = "", .logprob = next->logprob};
    assert(s->n_ids < s->max_ids);
    s->ids[s->n_ids++] = next->id;
    s->n_generated++;
    s->prob_sum += (double)math_expf(next->logprob);
    if (s->first_token_ns == 0) s->first_token_ns = now_ns;
    sampler_accept(&s->sampler, next->id);
    if (is_eos(s, next->id) && !s->ignore_eos) {
        s->finish = FINISH_STOP;
    } else {
        token_text(s, next->id, &ev);
        if (s->grammar) grammar_accept(s->grammar, next->id);
        if (s->grammar && grammar_ended(s->grammar)) s->finish = FINISH_STOP;
        if (s->finish == FINISH_NONE && s->n_ids == s->max_ids) s->finish = FINISH_LENGTH;
    }
    ev.top = next->n_top ? next->top : NULL;
    ev.n_top = next->n_top;
    s->fn(s->user, &ev);
}

void session_take_all(session *s, const int32_t *ids, size_t n, float logprob, uint64_t now_ns)
{
    for (size_t i = 0; i < n && s->finish == FINISH_NONE; i++) {
        s->next = (sample){.id = ids[i], .logprob = logprob};
        session_take(s, now_ns);
    }
    if (s->finish == FINISH_NONE) s->finish = FINISH_LENGTH;
}

/* What is still held back: an open character, and text that might have become a stop string. */
static void last_text(session *s, gen_event *ev)
{
    thinking_parts p;
    if (s->stop.matched || !s->detok.t) return;
    buf_clear(&s->text);
    detok_end(&s->detok, &s->text);
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
                         .n_prompt = s->source && s->source->in.n ? s->source->in.n : s->n_prompt,
                         .n_cached = s->n_cached,
                         .n_generated = s->n_generated,
                         .n_thought = s->thinking.any ? s->n_thought : 0,
                         .mean_prob = s->n_generated ? s->prob_sum / (double)s->n_generated : 0};
}

void session_end(session *s, int status, const char *message, uint64_t now_ns)
{
    gen_event ev = {.kind = EVENT_DONE, .text = "", .thought = "", .status = status};
    ev.finish = status ? FINISH_ERROR : s->finish;
    ev.message = status == 0 ? "" : message ? message : shoal_err_text(status);
    if (!s->probe_out) last_text(s, &ev);
    ev.timings = timings(s, now_ns);
    s->fn(s->user, &ev);
}
