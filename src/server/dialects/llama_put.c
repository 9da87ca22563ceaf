/* llama_put.c: a reply as llama-server tells it; see llama.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "messages/event.h"
#include "messages/fields.h"
#include "dialects/llama.h"
#include "json/json.h"
#include "json/json_put.h"
#include "base/number.h"
#include "base/utf8.h"

static void llama_put_put_bytes(buf *out, const uint8_t *s, size_t n)
{
    buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) buf_printf(out, i ? ",%u" : "%u", s[i]);
    buf_putc(out, ']');
}

/* ---- what is kept of a reply --------------------------------------------------------------------- */

static void put_prob(buf *out, const Shoal__V1__TokenLogprob *t)
{
    buf_printf(out, "\"id\":%d,\"token\":", (int)t->id);
    json_put_string(out, (const char *)t->text.data, t->text.len);
    buf_puts(out, ",\"bytes\":");
    llama_put_put_bytes(out, t->text.data, t->text.len);
    if (isnan(t->logprob))
        buf_puts(out, ",\"logprob\":null");
    else
        buf_printf(out, ",\"logprob\":%.7g", isfinite(t->logprob) ? (double)t->logprob : -3.4028235e38);
}

static void put_probs(buf *out, const Shoal__V1__TokenLogprob *t)
{
    buf_puts(out, out->len ? ",{" : "{");
    put_prob(out, t);
    buf_puts(out, ",\"top_logprobs\":[");
    for (size_t i = 0; i < t->n_top; i++) {
        buf_puts(out, i ? ",{" : "{");
        put_prob(out, t->top[i]);
        buf_putc(out, '}');
    }
    buf_puts(out, "]}");
}

void llama_add(gen_choice *c, const Shoal__V1__Delta *d)
{
    buf_append(&c->ids, d->ids, d->n_ids * sizeof *d->ids);
    for (size_t i = 0; i < d->n_logprobs; i++) put_probs(&c->logprobs[0], d->logprobs[i]);
}

void llama_close(gen_choice *c, const Shoal__V1__Done *d)
{
    c->figures = (gen_figures){.n_stop = d->n_stop,
                               .n_prompt = d->n_prompt,
                               .n_cached = d->n_cached,
                               .n_generated = d->n_generated,
                               .n_drafted = d->n_drafted,
                               .n_accepted = d->n_accepted,
                               .prompt_ms = d->prefill_ms,
                               .predicted_ms = d->decode_ms};
}

/* ---- settings ------------------------------------------------------------------------------------ */

static void put_stops(buf *out, const gen_spec *s)
{
    buf_puts(out, ",\"stop\":[");
    for (size_t i = 0; i < s->n_stop; i++) json_put_text(out, NULL, s->stop[i]);
    buf_puts(out, "],\"logit_bias\":[");
    for (size_t i = 0; i < s->sampling.n_bias; i++)
        buf_printf(out, "%s{\"bias\":%g,\"token\":%d}", i ? "," : "", (double)s->sampling.bias[i]->bias,
                   (int)s->sampling.bias[i]->id);
    buf_putc(out, ']');
}

void llama_put_settings(buf *out, const llama_form *form)
{
    const gen_spec *s = form->spec;
    const Shoal__V1__Sampling *p = &s->sampling;
    long long most = (long long)form->n_predict;
    buf_printf(out,
               "{\"seed\":%lld,\"temperature\":%g,\"top_k\":%u,\"top_p\":%g,\"min_p\":%g,\"typical_p\":1.0,"
               "\"repeat_last_n\":-1,\"repeat_penalty\":%g,\"presence_penalty\":%g,\"frequency_penalty\":%g,"
               "\"mirostat\":0,\"max_tokens\":%lld,\"n_predict\":%lld,\"n_keep\":0,\"ignore_eos\":%s,"
               "\"stream\":%s,\"n_probs\":%u,\"min_keep\":0,\"grammar\":\"\",\"samplers\":[\"penalties\","
               "\"top_k\",\"top_p\",\"min_p\",\"temperature\"],\"timings_per_token\":%s,"
               "\"post_sampling_probs\":false,\"lora\":[]",
               s->has_seed ? (long long)p->seed : (long long)form->seed, (double)p->temperature, p->top_k,
               (double)p->top_p, (double)p->min_p, (double)p->repetition_penalty, (double)p->presence_penalty,
               (double)p->frequency_penalty, most, most, s->ignore_eos ? "true" : "false",
               s->stream ? "true" : "false", form->n_probs, form->timings_per_token ? "true" : "false");
    put_stops(out, s);
    buf_putc(out, '}');
}

void llama_put_defaults(buf *out, const Shoal__V1__ModelInfo *model)
{
    llama_ask a;
    gen_spec *s = NULL;
    api_error e;
    static const char NOTHING[] = "{\"prompt\":\"a\"}";
    if (llama_read(&a, false, NOTHING, sizeof NOTHING - 1, &e) == 0 && llama_spec(&s, &a, "m", &e) == 0) {
        openai_spec_settle(s, model);
        llama_put_settings(out, s->llama);
    } else {
        out->failed = true;
    }
    openai_spec_free(s);
    llama_ask_done(&a);
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static double per(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void put_timings(buf *out, const gen_figures *g)
{
    double n_read = g->n_prompt > g->n_cached ? (double)(g->n_prompt - g->n_cached) : 0;
    double n = (double)g->n_generated;
    buf_printf(
        out,
        ",\"timings\":{\"cache_n\":%u,\"prompt_n\":%.0f,\"prompt_ms\":%.3f,\"prompt_per_token_ms\":%.6g,"
        "\"prompt_per_second\":%.6g,\"predicted_n\":%.0f,\"predicted_ms\":%.3f,"
        "\"predicted_per_token_ms\":%.6g,\"predicted_per_second\":%.6g",
        g->n_cached, n_read, g->prompt_ms, per(g->prompt_ms, n_read), per(1000 * n_read, g->prompt_ms), n,
        g->predicted_ms, per(g->predicted_ms, n), per(1000 * n, g->predicted_ms));
    if (g->n_drafted > 0)
        buf_printf(out, ",\"draft_n\":%u,\"draft_n_accepted\":%u", g->n_drafted, g->n_accepted);
    buf_putc(out, '}');
}

static void put_ids(buf *out, const int32_t *ids, size_t n)
{
    buf_puts(out, ",\"tokens\":[");
    for (size_t i = 0; i < n; i++) buf_printf(out, i ? ",%d" : "%d", (int)ids[i]);
    buf_putc(out, ']');
}

static void put_prompt(buf *out, const llama_form *form, size_t k)
{
    buf_puts(out, ",\"prompt\":");
    json_put(out, json_array_get(form->prompts, k / form->spec->n));
}

static void put_stop(buf *out, const llama_form *form, const gen_choice *c)
{
    const gen_spec *s = form->spec;
    const gen_figures *g = &c->figures;
    bool limit = strcmp(c->finish, "length") == 0, word = !limit && g->n_stop > 0 && g->n_stop <= s->n_stop;
    const char *which = word ? s->stop[g->n_stop - 1] : "";
    bool full = limit && !s->only_prompt && (s->max_tokens == 0 || g->n_generated < s->max_tokens);
    buf_printf(out, ",\"has_new_line\":%s,\"truncated\":%s,\"stop_type\":\"%s\"",
               c->text.len && memchr(c->text.data, '\n', c->text.len) ? "true" : "false",
               full ? "true" : "false",
               limit  ? "limit"
               : word ? "word"
                      : "eos");
    json_put_text_n(out, "stopping_word", which, strlen(which));
}

/* The last object of choice k; in a stream its text and tokens have been told. */
static void put_all(buf *out, const answer_form *f, const gen_answer *a, size_t k)
{
    const llama_form *form = f->llama;
    const gen_choice *c = &a->choices[k];
    bool told = form->spec->stream;
    out->failed |= c->text.failed || c->ids.failed || c->logprobs[0].failed;
    buf_printf(out, "{\"index\":%zu", k);
    json_put_text_n(out, "content", c->text.data, told ? 0 : c->text.len);
    put_ids(out, (const int32_t *)(const void *)c->ids.data,
            told || !form->return_tokens ? 0 : c->ids.len / sizeof(int32_t));
    buf_puts(out, ",\"id_slot\":-1,\"stop\":true");
    json_put_text_n(out, "model", f->model, strlen(f->model));
    buf_printf(out, ",\"tokens_predicted\":%u,\"tokens_evaluated\":%u,\"generation_settings\":",
               c->figures.n_generated, c->figures.n_prompt);
    llama_put_settings(out, form);
    put_prompt(out, form, k);
    put_stop(out, form, c);
    buf_printf(out, ",\"tokens_cached\":%u", c->figures.n_prompt + c->figures.n_generated);
    put_timings(out, &c->figures);
    if (!told && c->logprobs[0].len) {
        buf_puts(out, ",\"completion_probabilities\":[");
        buf_append(out, c->logprobs[0].data, c->logprobs[0].len);
        buf_putc(out, ']');
    }
    buf_putc(out, '}');
}

/* "a/b" is the member b of a, and stands at the top. */
static int llama_put_pick(json_t *to, const json_t *all, const char *field)
{
    const char *slash, *name = field;
    for (; (slash = strchr(name, '/')); name = slash + 1) {
        char key[64];
        if ((size_t)(slash - name) >= sizeof key) return 0;
        snprintf(key, sizeof key, "%.*s", (int)(slash - name), name);
        all = json_object_get(all, key);
    }
    json_t *v = json_object_get(all, name);
    return v ? json_object_set(to, name, v) : 0;
}

static void put_chosen(buf *out, const answer_form *f, const gen_answer *a, size_t k)
{
    const json_t *fields = f->llama->fields;
    buf whole = {0};
    json_t *all = NULL, *some = json_object();
    put_all(&whole, f, a, k);
    int rc =
        whole.failed || !some ? SHOAL_ENOMEM : json_parse(&all, whole.data, whole.len, "the answer", NULL);
    for (size_t i = 0; rc == 0 && i < json_array_size(fields); i++) {
        const char *field = fields_text(json_array_get(fields, i));
        if (field) rc = llama_put_pick(some, all, field);
    }
    if (rc == 0) rc = json_put(out, some);
    out->failed |= rc != 0;
    json_decref(all);
    json_decref(some);
    buf_done(&whole);
}

static void put_one(buf *out, const answer_form *f, const gen_answer *a, size_t k)
{
    if (f->llama->fields)
        put_chosen(out, f, a, k);
    else
        put_all(out, f, a, k);
}

void llama_put(buf *out, const answer_form *f, const gen_answer *a)
{
    if (f->llama->many) buf_putc(out, '[');
    for (size_t k = 0; k < a->n; k++) {
        if (k) buf_putc(out, ',');
        put_one(out, f, a, k);
    }
    if (f->llama->many) buf_putc(out, ']');
}

/* ---- streams ------------------------------------------------------------------------------------- */

static void put_event(buf *out, const answer_form *f, const gen_choice *c, size_t k, const char *text,
                      size_t n, const int32_t *ids, size_t n_ids, const buf *probs)
{
    gen_figures so_far = {.n_prompt = c->figures.n_prompt,
                          .n_generated = (uint32_t)(c->ids.len / sizeof(int32_t))};
    event_begin(out, EVENT_DATA, NULL);
    buf_printf(out, "{\"index\":%zu", k);
    json_put_text_n(out, "content", text, n);
    put_ids(out, ids, n_ids);
    buf_printf(out, ",\"stop\":false,\"id_slot\":-1,\"tokens_predicted\":%u,\"tokens_evaluated\":%u",
               so_far.n_generated, so_far.n_prompt);
    if (f->llama->timings_per_token) put_timings(out, &so_far);
    if (probs->len) {
        buf_puts(out, ",\"completion_probabilities\":[");
        buf_append(out, probs->data, probs->len);
        buf_putc(out, ']');
    }
    out->failed |= probs->failed;
    buf_putc(out, '}');
    event_end(out);
}

void llama_put_delta(buf *out, const answer_form *f, const gen_answer *a, size_t k, const Shoal__V1__Delta *d)
{
    buf probs = {0};
    if (d->text.len == 0 && d->n_ids == 0 && d->n_logprobs == 0) return;
    for (size_t i = 0; i < d->n_logprobs; i++) put_probs(&probs, d->logprobs[i]);
    put_event(out, f, &a->choices[k], k, (const char *)d->text.data, d->text.len, d->ids, d->n_ids, &probs);
    buf_done(&probs);
}

void llama_put_replay(buf *out, const answer_form *f, const gen_answer *a, size_t k)
{
    const gen_choice *c = &a->choices[k];
    put_event(out, f, c, k, c->text.data, c->text.len, (const int32_t *)(const void *)c->ids.data,
              c->ids.len / sizeof(int32_t), &c->logprobs[0]);
}

void llama_put_finish(buf *out, const answer_form *f, const gen_answer *a, size_t k)
{
    event_begin(out, EVENT_DATA, NULL);
    put_one(out, f, a, k);
    event_end(out);
}

/* ---- tokens -------------------------------------------------------------------------------------- */

static void put_piece(buf *out, int32_t id, const ProtobufCBinaryData *piece)
{
    buf_puts(out, "{\"id\":");
    number_put_i64(out, id);
    buf_puts(out, ",\"piece\":");
    if (utf8_valid((const char *)piece->data, piece->len, NULL))
        json_put_string(out, (const char *)piece->data, piece->len);
    else
        llama_put_put_bytes(out, piece->data, piece->len);
    buf_putc(out, '}');
}

void llama_put_tokens(buf *out, const Shoal__V1__TokenizeReply *r)
{
    buf_putc(out, '[');
    for (size_t i = 0; i < r->n_ids; i++) {
        if (i) buf_putc(out, ',');
        if (r->n_pieces == r->n_ids)
            put_piece(out, r->ids[i], &r->pieces[i]);
        else
            number_put_i64(out, r->ids[i]);
    }
    buf_putc(out, ']');
}

/* ---- errors -------------------------------------------------------------------------------------- */

static const char *type_of(int status)
{
    static const struct {
        int status;
        const char *type;
    } ROWS[] = {{401, "authentication_error"}, {403, "permission_error"},  {404, "not_found_error"},
                {501, "not_supported_error"},  {503, "unavailable_error"}, {429, "rate_limit_error"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (ROWS[i].status == status) return ROWS[i].type;
    return status >= 500 ? "server_error" : "invalid_request_error";
}

void llama_put_error(buf *out, const api_error *e)
{
    buf_printf(out, "{\"error\":{\"code\":%d,\"message\":", e->status);
    json_put_string(out, e->message, strlen(e->message));
    buf_printf(out, ",\"type\":\"%s\"}}", type_of(e->status));
}
