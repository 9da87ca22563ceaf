/* answer_rest.c: what an answer holds, as chunks, from its beginning or from where a client left; see
 * answer.h. The answer was made again from its first token, so all of it is here: what was sent is checked by
 * its sum and left out. */
#include <string.h>

#include "dialects/llama.h"
#include "dialects/answer_impl.h"
#include "dialects/logprobs.h"

static const char *bytes_of(const buf *b)
{
    return b->data ? b->data : "";
}

/* A part of the choice must hold what the client had of it, up to the end of a character. */
static bool answer_rest_holds(const buf *b, uint64_t n)
{
    return n <= b->len && (n == b->len || ((uint8_t)b->data[n] & 0xC0) != 0x80);
}

static uint64_t calls_len(const gen_choice *c)
{
    uint64_t n = 0;
    for (size_t i = 0; i < c->n_calls; i++) n += c->calls[i].name.len + c->calls[i].arguments.len;
    return n;
}

/* Mark the first n bytes of all calls as sent; false when that ends within a name or a character. */
static bool mark_calls(stream_mark *m, const gen_choice *c, uint64_t n)
{
    for (size_t i = 0; i < c->n_calls && n > 0; i++) {
        const gen_call *t = &c->calls[i];
        if (n < t->name.len) return false;
        uint64_t take = n - t->name.len < t->arguments.len ? n - t->name.len : t->arguments.len;
        if (!answer_rest_holds(&t->arguments, take)) return false;
        stream_mark_text(m, MARK_CALLS, bytes_of(&t->name), t->name.len);
        stream_mark_text(m, MARK_CALLS, bytes_of(&t->arguments), (size_t)take);
        n -= t->name.len + take;
    }
    return n == 0;
}

/* What of c the client has, as it would have been marked here; false: it cannot have had it. */
static bool mark_had(stream_mark *m, const gen_choice *c, const stream_mark *had)
{
    const uint64_t *n = had->n_bytes;
    if (!answer_rest_holds(&c->reasoning, n[MARK_REASONING]) || !answer_rest_holds(&c->text, n[MARK_TEXT]))
        return false;
    stream_mark_text(m, MARK_REASONING, bytes_of(&c->reasoning), (size_t)n[MARK_REASONING]);
    stream_mark_text(m, MARK_TEXT, bytes_of(&c->text), (size_t)n[MARK_TEXT]);
    if (!mark_calls(m, c, n[MARK_CALLS])) return false;
    m->n_logprobs = had->n_logprobs;
    m->begun = had->begun;
    return stream_mark_equal_text(m, had);
}

static void put_calls(buf *out, const answer_form *f, const gen_choice *c, size_t k, uint64_t n_had)
{
    for (size_t i = 0; i < c->n_calls; i++) {
        const gen_call *t = &c->calls[i];
        uint64_t len = t->name.len + t->arguments.len, had = n_had < len ? n_had : len;
        n_had -= had;
        out->failed |= t->name.failed || t->arguments.failed;
        if (had == len && len > 0) continue;
        size_t skip = had > 0 ? (size_t)(had - t->name.len) : 0;
        answer_put_call_chunk(out, f, k, i, had > 0 ? NULL : bytes_of(&t->name),
                              bytes_of(&t->arguments) + skip, t->arguments.len - skip);
    }
}

static bool is_all(const gen_choice *c, const stream_mark *had)
{
    return c->reasoning.len == had->n_bytes[MARK_REASONING] && c->text.len == had->n_bytes[MARK_TEXT] &&
           calls_len(c) == had->n_bytes[MARK_CALLS] && c->n_logprobs == had->n_logprobs;
}

static void put_rest(buf *out, const answer_form *f, gen_answer *a, size_t k, const stream_mark *had)
{
    const gen_choice *c = &a->choices[k];
    size_t reasoned = (size_t)had->n_bytes[MARK_REASONING], said = (size_t)had->n_bytes[MARK_TEXT];
    answer_put_role(out, f, a, k);
    out->failed |= c->text.failed || c->reasoning.failed;
    answer_put_reasoning_chunk(out, f, k, bytes_of(&c->reasoning) + reasoned, c->reasoning.len - reasoned);
    bool more_logprobs = c->n_logprobs > had->n_logprobs || c->logprobs[0].failed;
    if (c->text.len > said || more_logprobs) {
        buf parts[ANSWER_LOGPROB_PARTS];
        logprobs_after(parts, c->logprobs, had->n_logprobs);
        answer_put_text_chunk(out, f, k, bytes_of(&c->text) + said, c->text.len - said,
                              more_logprobs ? parts : NULL, (size_t)(c->n_logprobs - had->n_logprobs));
    }
    put_calls(out, f, c, k, had->n_bytes[MARK_CALLS]);
}

void answer_put_replay(buf *out, const answer_form *f, gen_answer *a, size_t k)
{
    if (f->llama)
        llama_put_replay(out, f, a, k);
    else
        put_rest(out, f, a, k, &(stream_mark){0});
}

answer_rest answer_put_rest(buf *out, const answer_form *f, gen_answer *a, size_t k, const stream_mark *had)
{
    gen_choice *c = &a->choices[k];
    if (c->reasoning.len < had->n_bytes[MARK_REASONING] || c->text.len < had->n_bytes[MARK_TEXT] ||
        calls_len(c) < had->n_bytes[MARK_CALLS] || c->n_logprobs < had->n_logprobs)
        return REST_BEHIND;
    if (had->finished && !*c->finish) return REST_BEHIND;
    if (had->finished && !is_all(c, had)) return REST_DIFFERENT;
    stream_mark now;
    stream_mark_init(&now);
    if (!mark_had(&now, c, had)) return REST_DIFFERENT;
    now.max_tokens = f->events->marks[k].max_tokens;
    f->events->marks[k] = now;
    c->role_sent = had->begun;
    put_rest(out, f, a, k, had);
    return REST_PUT;
}
