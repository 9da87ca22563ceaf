/* answer.c: a reply that grows by deltas, and its bytes for the cache; see answer.h. The bytes never leave
 * this process; they are read through a bounded cursor all the same. */
#include "dialects/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cur.h"
#include "base/utf8.h"
#include "dialects/llama.h"
#include "dialects/logprobs.h"

int answer_init(gen_answer *a, size_t n_choices)
{
    *a = (gen_answer){.choices = calloc(n_choices, sizeof(gen_choice)), .n = n_choices};
    return a->choices ? 0 : SHOAL_ENOMEM;
}

static void choice_done(gen_choice *c)
{
    buf_done(&c->text);
    buf_done(&c->ids);
    buf_done(&c->reasoning);
    for (size_t i = 0; i < c->n_calls; i++) {
        buf_done(&c->calls[i].name);
        buf_done(&c->calls[i].arguments);
    }
    for (size_t i = 0; i < ANSWER_LOGPROB_PARTS; i++) buf_done(&c->logprobs[i]);
}

void answer_restart(gen_answer *a, size_t k)
{
    bool role_sent = a->choices[k].role_sent;
    choice_done(&a->choices[k]);
    a->choices[k] = (gen_choice){.role_sent = role_sent};
}

void answer_done(gen_answer *a)
{
    for (size_t k = 0; k < a->n && a->choices; k++) choice_done(&a->choices[k]);
    free(a->choices);
    *a = (gen_answer){0};
}

static void add_call(gen_choice *c, const Shoal__V1__ToolCallDelta *d)
{
    if (d->index >= ANSWER_CALLS_MAX || d->index > c->n_calls) return;
    if (d->index == c->n_calls) c->n_calls++;
    gen_call *call = &c->calls[d->index];
    if (d->name) buf_puts(&call->name, d->name);
    if (d->arguments) buf_puts(&call->arguments, d->arguments);
}

void answer_add(gen_answer *a, const gen_spec *s, size_t k, const Shoal__V1__Delta *d)
{
    gen_choice *c = &a->choices[k];
    if (s->llama) {
        llama_add(c, d);
    } else {
        if (c->logprobs[0].len == 0) c->offset = utf8_count(c->text.data, c->text.len);
        c->offset = logprobs_add(c->logprobs, s, d, c->offset);
    }
    c->n_logprobs += d->n_logprobs;
    c->n_so_far += d->n_ids;
    buf_append(&c->text, d->text.data, d->text.len);
    buf_append(&c->reasoning, d->reasoning.data, d->reasoning.len);
    for (size_t i = 0; i < d->n_tool_calls; i++) add_call(c, d->tool_calls[i]);
}

void answer_start(gen_answer *a, const gen_spec *s, size_t k, uint32_t n_prompt)
{
    if (s->llama || s->anthropic) a->choices[k].figures.n_prompt = n_prompt;
    a->choices[k].n_prompt_so_far = n_prompt;
}

void answer_refine(gen_answer *a, size_t k, const Shoal__V1__Refined *r)
{
    gen_choice *c = &a->choices[k];
    c->n_refined = c->text.len ? utf8_count(c->text.data, c->text.len) : 0;
    buf_clear(&c->text);
    buf_puts(&c->text, r->text);
    for (size_t i = 0; i < ANSWER_LOGPROB_PARTS; i++)
        buf_clear(&c->logprobs[i]); /* of tokens that are gone */
    c->n_logprobs = 0;
}

void answer_close(gen_answer *a, const gen_spec *s, size_t k, const Shoal__V1__Done *d)
{
    gen_choice *c = &a->choices[k];
    const char *finish = d->finish && *d->finish ? d->finish : "stop";
    snprintf(c->finish, sizeof c->finish, "%s", finish);
    if (s->llama) llama_close(c, d);
    c->figures.n_stop = d->n_stop;
    a->n_generated += d->n_generated;
    a->n_reasoning += d->n_reasoning;
    a->n_drafted += d->n_drafted;
    a->n_accepted += d->n_accepted < d->n_drafted ? d->n_accepted : d->n_drafted;
    if (k % s->n != 0) return; /* a prompt is counted once for all its choices */
    a->n_prompt += d->n_prompt;
    a->n_cached += d->n_cached;
}

/* ---- bytes for the cache: sizes before strings, little-endian ------------------------------------- */

static void pack_u64(buf *out, uint64_t v)
{
    buf_append(out, &v, sizeof v);
}

static void pack_buf(buf *out, const buf *b)
{
    pack_u64(out, b->len);
    if (b->len) buf_append(out, b->data, b->len);
    if (b->failed) out->failed = true;
}

static void pack_choice(buf *out, const gen_choice *c)
{
    buf_append(out, c->finish, sizeof c->finish);
    buf_append(out, &c->figures, sizeof c->figures);
    pack_buf(out, &c->ids);
    pack_buf(out, &c->text);
    pack_buf(out, &c->reasoning);
    pack_u64(out, c->n_calls);
    for (size_t i = 0; i < c->n_calls; i++) {
        pack_buf(out, &c->calls[i].name);
        pack_buf(out, &c->calls[i].arguments);
    }
    pack_u64(out, c->n_logprobs);
    for (size_t i = 0; i < ANSWER_LOGPROB_PARTS; i++) pack_buf(out, &c->logprobs[i]);
}

void answer_pack(buf *out, const gen_answer *a)
{
    pack_u64(out, a->n);
    pack_u64(out, a->n_prompt);
    pack_u64(out, a->n_cached);
    pack_u64(out, a->n_generated);
    pack_u64(out, a->n_reasoning);
    pack_u64(out, a->n_drafted);
    pack_u64(out, a->n_accepted);
    for (size_t k = 0; k < a->n; k++) pack_choice(out, &a->choices[k]);
}

static void unpack_buf(cur *c, buf *b)
{
    uint64_t n = cur_u64(c);
    const uint8_t *p = n <= SIZE_MAX ? cur_take(c, (size_t)n) : NULL;
    if (p && n && buf_append(b, p, (size_t)n) != 0) c->failed = true;
}

static void unpack_choice(cur *c, gen_choice *ch)
{
    const uint8_t *finish = cur_take(c, sizeof ch->finish);
    if (finish) memcpy(ch->finish, finish, sizeof ch->finish - 1);
    const uint8_t *figures = cur_take(c, sizeof ch->figures);
    if (figures) memcpy(&ch->figures, figures, sizeof ch->figures);
    unpack_buf(c, &ch->ids);
    unpack_buf(c, &ch->text);
    unpack_buf(c, &ch->reasoning);
    uint64_t n = cur_u64(c);
    if (n > ANSWER_CALLS_MAX) c->failed = true;
    for (ch->n_calls = 0; !c->failed && ch->n_calls < n;) {
        gen_call *call = &ch->calls[ch->n_calls++];
        unpack_buf(c, &call->name);
        unpack_buf(c, &call->arguments);
    }
    ch->n_logprobs = cur_u64(c);
    for (size_t i = 0; i < ANSWER_LOGPROB_PARTS; i++) unpack_buf(c, &ch->logprobs[i]);
}

int answer_unpack(gen_answer *ret, const void *data, size_t n)
{
    cur c = cur_over(data, n);
    uint64_t n_choices = cur_u64(&c);
    gen_answer a;
    if (c.failed || n_choices == 0 || n_choices > GEN_CHOICES_MAX) return SHOAL_EFORMAT;
    if (answer_init(&a, (size_t)n_choices) != 0) return SHOAL_ENOMEM;
    a.n_prompt = cur_u64(&c);
    a.n_cached = cur_u64(&c);
    a.n_generated = cur_u64(&c);
    a.n_reasoning = cur_u64(&c);
    a.n_drafted = cur_u64(&c);
    a.n_accepted = cur_u64(&c);
    for (size_t k = 0; k < a.n; k++) unpack_choice(&c, &a.choices[k]);
    if (c.failed || cur_left(&c) != 0) {
        answer_done(&a);
        return SHOAL_EFORMAT;
    }
    *ret = a;
    return 0;
}
