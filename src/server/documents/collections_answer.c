/* collections_answer.c: POST /v1/collections/NAME/answer: a question answered from what is found, with
 * citations.
 *
 * The generator is held to the passages. In the form "quote" (the default) its grammar is their sentences and
 * one that says that they do not tell: the answer is a sentence of a document, word for word. In the form
 * "free" it writes, and every sentence whose words do not stand in a passage is left out. Either way a
 * citation names source and span. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "base/utf8.h"
#include "request/model_resolve.h"
#include "documents/collections.h"
#include "documents/collections_impl.h"
#include "retrieve/cite.h"

enum { PASSAGES_MAX = 20, CHOICES_MAX = 32, MAX_TOKENS = 160 };
#define SUPPORT_LEAST 0.6
#define NOT_SAID      "The documents do not say."

typedef struct answer_job {
    gateway_request *rq;
    json_t *root; /* the request: owns question and model */
    arena *mem;   /* of what was found */
    const char *question, *model;
    bool quotes;
    int64_t max_tokens;
    search_hit v[PASSAGES_MAX];
    size_t n; /* fewer, when the model's context is too short for all */
    cite_sentence choices[CHOICES_MAX];
    char *choice_text[CHOICES_MAX + 1]; /* in `mem`; the last says that nothing does */
    size_t n_choices;
    model_call *call;
    buf reply;
    double mean_prob;
    const char *degraded;
} answer_job;

static void collections_answer_job_free(void *work)
{
    answer_job *j = work;
    calls_cancel(j->call);
    json_decref(j->root);
    arena_free(j->mem);
    buf_done(&j->reply);
    free(j);
}

static void collections_answer_refuse(answer_job *j, const api_error *e)
{
    gateway_request *rq = j->rq;
    collections_answer_job_free(j);
    request_error(rq, e);
}

static void refuse_nomem(answer_job *j)
{
    api_error e;
    api_error_nomem(&e);
    collections_answer_refuse(j, &e);
}

/* ---- the answer ------------------------------------------------------------------------------------- */

static size_t line_of(const store_piece *p, size_t at)
{
    size_t line = (size_t)p->line;
    for (size_t i = 0; i < at; i++) line += p->text[i] == '\n';
    return line;
}

/* Bytes start to end of the passage, with their place in the document. */
static void put_citation(buf *out, const search_hit *h, size_t start, size_t end, double support)
{
    const store_piece *p = &h->piece;
    buf_putc(out, '{');
    json_put_text(out, "source", p->source);
    buf_printf(out, ",\"document\":%lld,\"start\":%lld,\"end\":%lld,\"line\":%zu,", (long long)p->document,
               (long long)p->start + (long long)start, (long long)p->start + (long long)end,
               line_of(p, start));
    json_put_text(out, "title", p->title);
    json_put_text_n(out, "text", p->text + start, end - start);
    buf_printf(out, ",\"score\":%.9g,\"support\":%.3g}", (double)h->found.score, support);
}

static void collections_answer_end(answer_job *j, const char *text, bool answered, size_t n_dropped,
                                   const buf *citations)
{
    gateway_request *rq = j->rq;
    buf out = {0};
    buf_putc(&out, '{');
    json_put_text(&out, "answer", text);
    buf_printf(&out, ",\"answered\":%s,\"form\":\"%s\",", answered ? "true" : "false",
               j->quotes ? "quote" : "free");
    json_put_text(&out, "model", request_shown_model(rq, rq->model));
    buf_printf(&out, ",\"confidence\":%.4g,\"passages\":%zu,\"dropped_sentences\":%zu,\"citations\":[",
               j->mean_prob, j->n, n_dropped);
    if (citations) buf_join(&out, citations);
    buf_putc(&out, ']');
    if (j->degraded) json_put_text(&out, "degraded", j->degraded);
    buf_putc(&out, '}');
    collections_answer_job_free(j);
    request_json(rq, 200, &out);
    buf_done(&out);
}

static void end_quote(answer_job *j)
{
    for (size_t i = 0; i < j->n_choices; i++) {
        const cite_sentence *c = &j->choices[i];
        buf citation = {0};
        if (!j->reply.data || strcmp(j->choice_text[i], j->reply.data) != 0) continue;
        char *text = arena_strdup(j->mem, j->reply.data);
        put_citation(&citation, &j->v[c->passage], c->start, c->end, 1);
        if (text)
            collections_answer_end(j, text, true, 0, &citation);
        else
            refuse_nomem(j);
        buf_done(&citation);
        return;
    }
    collections_answer_end(j, NOT_SAID, false, 0, NULL);
}

/* The passage that a sentence stands on best; its support. */
static double best_passage(const cite_words *passages, size_t n_passages, const char *s, size_t n,
                           size_t *ret)
{
    double best = 0;
    for (size_t i = 0; i < n_passages; i++) {
        double support = cite_support(s, n, &passages[i]);
        if (support <= best) continue;
        best = support;
        *ret = i;
    }
    return best;
}

/* Sentences that stand on no passage are left out. */
static size_t put_supported(const answer_job *j, const cite_words *passages, buf *text, buf *citations)
{
    size_t n_dropped = 0, passage = 0;
    const char *s = j->reply.data ? j->reply.data : "";
    for (size_t at = 0, end_, n = j->reply.len; at < n; at = end_) {
        end_ = cite_sentence_end(s, at, n);
        double support = best_passage(passages, j->n, s + at, end_ - at, &passage);
        if (support < SUPPORT_LEAST) {
            n_dropped += strspn(s + at, " \n\t\r") < end_ - at;
            continue;
        }
        buf_append(text, s + at, end_ - at);
        if (citations->len) buf_putc(citations, ',');
        put_citation(citations, &j->v[passage], 0, strlen(j->v[passage].piece.text), support);
    }
    return n_dropped;
}

static void end_free(answer_job *j)
{
    buf text = {0}, citations = {0};
    cite_words passages[PASSAGES_MAX] = {0};
    size_t n = j->n, n_dropped = 0;
    for (size_t i = 0; i < n && !text.failed; i++)
        text.failed = cite_words_of(&passages[i], j->v[i].piece.text) != 0;
    if (!text.failed) n_dropped = put_supported(j, passages, &text, &citations);
    for (size_t i = 0; i < n; i++) cite_words_done(&passages[i]);
    if (text.failed)
        refuse_nomem(j);
    else if (text.len)
        collections_answer_end(j, text.data + strspn(text.data, " \n"), true, n_dropped, &citations);
    else
        collections_answer_end(j, NOT_SAID, false, n_dropped, NULL);
    buf_done(&text);
    buf_done(&citations);
}

/* ---- the generator ---------------------------------------------------------------------------------- */

static void collections_answer_start(answer_job *j);

static void collections_answer_on_event(void *user, const Shoal__V1__GenerateEvent *ev)
{
    answer_job *j = user;
    if (ev->delta) utf8_put_c(&j->reply, (const char *)ev->delta->text.data, ev->delta->text.len);
    if (!ev->done) return;
    j->mean_prob = ev->done->mean_prob;
    j->rq->n_prompt_tokens = ev->done->n_prompt;
    j->rq->n_generated_tokens = ev->done->n_generated;
}

static void collections_answer_on_end(void *user, const call_result *r)
{
    answer_job *j = user;
    j->call = NULL;
    request_note_result(j->rq, r);
    if (r->status == SHOAL_ELIMIT && j->n > 1) {
        j->n /= 2; /* fewer passages fit */
        buf_clear(&j->reply);
        collections_answer_start(j);
    } else if (r->status != 0) {
        api_error e;
        api_error_from_call(&e, r);
        collections_answer_refuse(j, &e);
    } else if (j->reply.failed) {
        refuse_nomem(j);
    } else if (j->quotes) {
        end_quote(j);
    } else {
        end_free(j);
    }
}

static void put_message(buf *out, const char *role, const buf *text)
{
    buf_printf(out, "%s{\"role\":\"%s\",\"content\":", out->len ? "," : "[", role);
    json_put_string(out, text->data ? text->data : "", text->len);
    buf_putc(out, '}');
    out->failed |= text->failed;
}

static void put_messages(const answer_job *j, buf *out)
{
    buf system = {0}, user = {0};
    buf_puts(&system, "Answer the question from the passages and from nothing else.\nPassages:");
    for (size_t i = 0; i < j->n; i++) buf_printf(&system, "\n[%zu] %s", i + 1, j->v[i].piece.text);
    buf_puts(&user, j->question);
    put_message(out, "system", &system);
    put_message(out, "user", &user);
    buf_putc(out, ']');
    buf_done(&system);
    buf_done(&user);
}

/* The sentences as one line each: what the grammar allows. False: out of memory. */
static bool make_choices(answer_job *j)
{
    const char *texts[PASSAGES_MAX];
    for (size_t i = 0; i < j->n; i++) texts[i] = j->v[i].piece.text;
    j->n_choices = cite_sentences(texts, j->n, j->choices, CHOICES_MAX);
    for (size_t i = 0; i < j->n_choices; i++) {
        const cite_sentence *c = &j->choices[i];
        char *text = arena_strndup(j->mem, texts[c->passage] + c->start, c->end - c->start);
        if (!text) return false;
        for (char *p = text; *p; p++)
            if (*p == '\n' || *p == '\r' || *p == '\t') *p = ' ';
        j->choice_text[i] = text;
    }
    j->choice_text[j->n_choices] = (char *)NOT_SAID;
    return true;
}

static void collections_answer_start(answer_job *j)
{
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__Sampling sampling = SHOAL__V1__SAMPLING__INIT;
    calls_generate_events ev = {
        .user = j, .event = collections_answer_on_event, .end = collections_answer_on_end};
    call_context ctx = request_context(j->rq, "answer");
    buf messages = {0};
    put_messages(j, &messages);
    bool fine = !messages.failed && (!j->quotes || make_choices(j));
    req.messages_json = messages.data;
    req.sampling = &sampling;
    req.max_tokens = (uint32_t)j->max_tokens;
    req.adapter = j->rq->adapter;
    if (j->quotes) {
        req.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES;
        req.choices = j->choice_text;
        req.n_choices = j->n_choices + 1;
    }
    j->call = fine ? calls_generate(j->rq->calls, j->rq->model, &req, &ctx, &ev) : NULL;
    buf_done(&messages);
    if (!j->call) refuse_nomem(j);
}

/* ---- what was found --------------------------------------------------------------------------------- */

static bool collections_answer_keep(answer_job *j, const find_result *r)
{
    for (size_t i = 0; i < r->n && i < PASSAGES_MAX; i++) {
        search_hit *h = &j->v[j->n++];
        *h = r->v[i];
        h->piece.source = arena_strdup(j->mem, h->piece.source);
        h->piece.title = arena_strdup(j->mem, h->piece.title);
        h->piece.text = arena_strdup(j->mem, h->piece.text);
        if (!h->piece.source || !h->piece.title || !h->piece.text) return false;
    }
    if (r->degraded) j->degraded = arena_strdup(j->mem, r->degraded);
    return !r->degraded || j->degraded;
}

static int read_form(answer_job *j, api_error *e)
{
    const Shoal__V1__ModelInfo *info = NULL;
    const char *form = "quote";
    int rc = fields_str(j->root, "form", &form, e);
    if (rc == 0) rc = fields_str(j->root, "model", &j->model, e);
    if (rc == 0) rc = fields_int(j->root, "max_tokens", 1, 4096, &j->max_tokens, e);
    if (rc == 0 && strcmp(form, "quote") != 0 && strcmp(form, "free") != 0)
        rc = api_error_bad(e, "form", "form: must be quote or free");
    j->quotes = strcmp(form, "quote") == 0;
    j->model = model_resolve_alias(j->rq, j->model);
    return rc == 0 ? model_resolve(j->rq, "generate", &j->model, &info, e) : rc;
}

static void on_found(search_job *s, const find_result *r)
{
    api_error e = {0};
    answer_job *j = calloc(1, sizeof *j);
    if (j)
        *j = (answer_job){
            .rq = s->rq, .root = s->root, .question = s->text, .mem = arena_new(0), .max_tokens = MAX_TOKENS};
    gateway_request *rq = s->rq;
    if (j) s->root = NULL;
    int rc = j && j->mem && collections_answer_keep(j, r) ? 0 : api_error_nomem(&e);
    collections_search_free(s);
    if (rc == 0) rc = read_form(j, &e);
    if (rc != 0) {
        if (j) collections_answer_job_free(j);
        request_error(rq, &e);
        return;
    }
    request_watch(rq, collections_answer_job_free, j);
    if (j->n == 0)
        collections_answer_end(j, NOT_SAID, false, 0, NULL);
    else
        collections_answer_start(j);
}

void collections_answer(gateway_request *rq)
{
    static const search_keys KEYS = {.text = "question", .text_too = "query", .k = "limit", .k_default = 4};
    collections_start_search(rq, &KEYS, on_found);
}
