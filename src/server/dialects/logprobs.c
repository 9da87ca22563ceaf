/* logprobs.c: log-probabilities in the forms of OpenAI's chat and completions; see logprobs.h. They are kept
 * as comma separated JSON without brackets, so that each delta only appends. */
#include "dialects/logprobs.h"

#include <math.h>
#include <string.h>

#include "json/json.h"
#include "base/number.h"
#include "base/utf8.h"

/* JSON knows no -inf; OpenAI sends this for "as good as impossible". */
static void put_logprob(buf *out, float v)
{
    if (isnan(v))
        buf_puts(out, "null"); /* the first token of a prompt */
    else if (isfinite(v))
        number_put(out, (double)v, 7);
    else
        buf_puts(out, "-9999.0");
}

static void put_token(buf *out, const Shoal__V1__TokenLogprob *t, bool as_id)
{
    if (as_id)
        buf_printf(out, "\"token_id:%d\"", (int)t->id);
    else
        json_put_string(out, (const char *)t->text.data, t->text.len);
}

/* A token may be half a character: "bytes" is exact where "token" cannot be. */
static void put_fields(buf *out, const Shoal__V1__TokenLogprob *t, bool as_id)
{
    buf_puts(out, "\"token\":");
    put_token(out, t, as_id);
    buf_puts(out, ",\"logprob\":");
    put_logprob(out, t->logprob);
    buf_puts(out, ",\"bytes\":[");
    for (size_t i = 0; i < t->text.len; i++) buf_printf(out, i ? ",%u" : "%u", t->text.data[i]);
    buf_putc(out, ']');
}

static void add_chat(buf *out, const Shoal__V1__TokenLogprob *t, bool as_id)
{
    buf_puts(out, out->len ? ",{" : "{");
    put_fields(out, t, as_id);
    buf_puts(out, ",\"top_logprobs\":[");
    for (size_t i = 0; i < t->n_top; i++) {
        buf_puts(out, i ? ",{" : "{");
        put_fields(out, t->top[i], as_id);
        buf_putc(out, '}');
    }
    buf_puts(out, "]}");
}

static bool same_text(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* The completions form maps texts to numbers, so of two tokens with the same text the likelier stays. */
static void put_top_map(buf *out, const Shoal__V1__TokenLogprob *t, bool as_id)
{
    buf_putc(out, '{');
    bool first = true;
    for (size_t i = 0; i < t->n_top; i++) {
        bool seen = false;
        for (size_t j = 0; j < i && !as_id; j++) seen |= same_text(&t->top[i]->text, &t->top[j]->text);
        if (seen) continue;
        if (!first) buf_putc(out, ',');
        first = false;
        put_token(out, t->top[i], as_id);
        buf_putc(out, ':');
        put_logprob(out, t->top[i]->logprob);
    }
    buf_putc(out, '}');
}

static void add_completion(buf parts[ANSWER_LOGPROB_PARTS], const Shoal__V1__TokenLogprob *t, bool as_id,
                           size_t offset)
{
    for (int i = 0; i < ANSWER_LOGPROB_PARTS; i++)
        if (parts[i].len) buf_putc(&parts[i], ',');
    put_token(&parts[0], t, as_id);
    put_logprob(&parts[1], t->logprob);
    if (isnan(t->logprob))
        buf_puts(&parts[2], "null");
    else
        put_top_map(&parts[2], t, as_id);
    buf_printf(&parts[3], "%zu", offset);
}

/* A token with which the tokenizer begins every prompt has no place in the text. */
static bool is_unseen(const Shoal__V1__TokenLogprob *t, const Shoal__V1__Delta *d)
{
    size_t n = t->text.len;
    return isnan(t->logprob) && (d->text.len < n || memcmp(d->text.data, t->text.data, n) != 0);
}

/* Characters that begin in it. */
static size_t chars_of(const Shoal__V1__TokenLogprob *t)
{
    return utf8_count((const char *)t->text.data, t->text.len);
}

/* Does it begin within a character of the token before it? */
static bool continues(const Shoal__V1__TokenLogprob *t)
{
    return t->text.len > 0 && (t->text.data[0] & 0xC0) == 0x80;
}

size_t logprobs_chars(const Shoal__V1__Delta *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_logprobs; i++)
        if (!is_unseen(d->logprobs[i], d)) n += chars_of(d->logprobs[i]);
    return n;
}

size_t logprobs_add(buf parts[ANSWER_LOGPROB_PARTS], const gen_spec *s, const Shoal__V1__Delta *d,
                    size_t offset)
{
    for (size_t i = 0; i < d->n_logprobs; i++) {
        const Shoal__V1__TokenLogprob *t = d->logprobs[i];
        if (s->chat)
            add_chat(&parts[0], t, s->token_ids);
        else
            add_completion(parts, t, s->token_ids, offset - (offset > 0 && continues(t)));
        if (!is_unseen(t, d)) offset += chars_of(t);
    }
    return offset;
}

/* Where in s the n-th of these values (from 0) begins: our own JSON, without white space. */
static size_t value_at(const char *s, size_t len, size_t n)
{
    size_t i = 0, depth = 0;
    bool quoted = false;
    for (; n > 0 && i < len; i++) {
        if (s[i] == '"') quoted = !quoted;
        if (quoted && s[i] == '\\') i++;
        if (quoted) continue;
        if (s[i] == '{' || s[i] == '[') depth++;
        if (s[i] == '}' || s[i] == ']') depth--;
        if (s[i] == ',' && depth == 0) n--;
    }
    return n > 0 || i > len ? len : i;
}

void logprobs_after(buf ret[ANSWER_LOGPROB_PARTS], const buf all[ANSWER_LOGPROB_PARTS], size_t n)
{
    for (int i = 0; i < ANSWER_LOGPROB_PARTS; i++) {
        size_t at = all[i].len ? value_at(all[i].data, all[i].len, n) : 0;
        ret[i] = (buf){.data = all[i].data ? all[i].data + at : NULL, .len = all[i].len - at};
        ret[i].failed = all[i].failed;
    }
}

void logprobs_put(buf *out, bool chat, const buf parts[ANSWER_LOGPROB_PARTS])
{
    static const char *const KEYS[] = {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
    if (parts[0].len == 0 && !parts[0].failed) {
        buf_puts(out, "null");
        return;
    }
    if (chat) {
        buf_puts(out, "{\"content\":[");
        buf_join(out, &parts[0]);
        buf_puts(out, "],\"refusal\":null}");
        return;
    }
    for (int i = 0; i < ANSWER_LOGPROB_PARTS; i++) {
        buf_printf(out, "%c\"%s\":[", i ? ',' : '{', KEYS[i]);
        buf_join(out, &parts[i]);
        buf_putc(out, ']');
    }
    buf_putc(out, '}');
}
