/* chat_end.c: which token ends an assistant's turn.
 *
 * Files name one end token, and often the wrong one: that of plain text, where a chat ends its turns with
 * another. The template knows. So [user, assistant ANSWER] is rendered, and the first control token behind
 * ANSWER is the end:
 *
 *     <|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\nANSWER<|im_end|>\n         <|im_end|>
 *     ...<|START_RESPONSE|>ANSWER<|END_RESPONSE|><|END_OF_TURN_TOKEN|>               a frame, then the end
 *
 * Where nothing follows, a user's next turn is rendered behind it: some templates (GLM) only mark where turns
 * begin, and such a reply ends at the marker of the next one. */
#define _GNU_SOURCE
#include <string.h>

#include "json/json.h"
#include "chat/chat_impl.h"

#define ANSWER "shoal_answer"

const char chat_template_plain[] = "{{- bos_token or '' -}}\n"
                                   "{%- for m in messages -%}\n"
                                   "{{- m.role | capitalize }}: {{ m.content | trim }}{{ '\\n' -}}\n"
                                   "{%- endfor -%}\n"
                                   "{%- if add_generation_prompt -%}Assistant:{%- endif -%}\n";
const char chat_template_plain_stop[] = "\nUser:";

static json_t *messages(bool next)
{
    json_t *m = json_pack("[{s:s,s:s},{s:s,s:s}]", "role", "user", "content", "Go.", "role", "assistant",
                          "content", ANSWER);
    if (!next || !m) return m;
    if (json_array_append_new(m, json_pack("{s:s,s:s}", "role", "user", "content", "More.")) == 0) return m;
    json_decref(m);
    return NULL;
}

/* What the template writes behind the answer; *ret_at borrows from out, and is NULL where there is none: a
 * template may refuse, or not show the answer. 0 or SHOAL_ENOMEM. */
static int render_tail(const chat_template *c, const tokenizer *t, bool next, buf *out, const char **ret_at)
{
    shoal_err why;
    json_t *m = messages(next);
    chat_input in = {.messages = m, .steps = CHAT_PROBE_STEPS};
    *ret_at = NULL;
    int rc = m ? chat_render(c, t, &in, false, out, NULL, &why) : SHOAL_ENOMEM;
    json_decref(m);
    buf_putc(out, '\0');
    if (rc == SHOAL_ENOMEM || out->failed) return SHOAL_ENOMEM;
    const char *at = rc == 0 ? strstr(out->data, ANSWER) : NULL;
    *ret_at = at ? at + strlen(ANSWER) : NULL;
    return 0;
}

static bool chat_end_is_blank(const char *s, size_t n)
{
    return strspn(s, " \t\r\n") >= n;
}

/* "<|im_end|>", "[|endofturn|]": spelt as a marker, where the file does not say that it is one. */
static bool looks_special(const char *s, size_t n)
{
    return n > 2 && ((s[0] == '<' && s[n - 1] == '>') || (s[0] == '[' && s[n - 1] == ']'));
}

/* What closes a thought ends no turn: a reply goes on behind it (gpt-oss: <|end|>). Nor does the
 * begin-of-text token before a next turn; behind the last one it does (GPT-2 has one token for both). */
static bool never_ends(const chat_template *c, const tokenizer *t, int32_t id, const char *s, size_t n,
                       bool next)
{
    const thinking_form *f = chat_template_thinking(c);
    return (next && id == tokenizer_bos(t)) || (f && f->close && memmem(f->close, strlen(f->close), s, n));
}

/* What a reply may hold: thoughts, frames and calls. */
static bool is_within_replies(const chat_template *c, const char *s, size_t n)
{
    return thinking_shows(chat_template_thinking(c), s, n) ||
           toolcall_shows(chat_template_calls(c, NULL), s, n);
}

/* The end among the tokens of tail, or -1. Markers of replies are the end only where nothing else is. */
static int32_t chat_end_pick(const chat_template *c, const tokenizer *t, const char *tail, const encoding *e,
                             bool next)
{
    int32_t marker = -1;
    for (size_t i = 0; i < e->n; i++) {
        size_t len = 0;
        bool special = false;
        const char *s = tokenizer_piece(t, e->ids[i], &len);
        const token_span at = e->spans[i];
        tokenizer_bytes(t, e->ids[i], &(size_t){0}, &special);
        bool whole = s && len > 0 && memmem(tail + at.begin, at.end - at.begin, s, len);
        if (next && !chat_end_is_blank(tail, at.begin)) break;
        if (!whole || (!special && !looks_special(s, len))) continue;
        if (never_ends(c, t, e->ids[i], s, len, next)) continue;
        if (!is_within_replies(c, s, len)) return e->ids[i];
        if (special) marker = e->ids[i];
    }
    return next ? -1 : marker;
}

/* A token of this spelling that the file calls plain text: prompts spell it in pieces, yet the model was
 * trained to write it. */
static int32_t find_plain(const chat_template *c, const tokenizer *t, const char *tail, bool next)
{
    tail += strspn(tail, " \t\r\n");
    size_t n = strcspn(tail, tail[0] == '[' ? "]" : ">");
    if (!tail[n] || !looks_special(tail, n + 1) || is_within_replies(c, tail, n + 1)) return -1;
    int32_t id = tokenizer_find(t, tail, n + 1);
    return id >= 0 && never_ends(c, t, id, tail, n + 1, next) ? -1 : id;
}

static int chat_end_find(const chat_template *c, const tokenizer *t, bool next, int32_t *ret)
{
    buf out = {0};
    encoding e = {0};
    const char *tail;
    shoal_err why;
    int rc = render_tail(c, t, next, &out, &tail);
    if (rc == 0 && tail) rc = tokenizer_encode_prompt(t, tail, strlen(tail), NULL, &e, &why);
    if (rc == 0 && tail) *ret = chat_end_pick(c, t, tail, &e, next);
    if (rc == 0 && tail && *ret < 0) *ret = find_plain(c, t, tail, next);
    encoding_done(&e);
    buf_done(&out);
    return rc == SHOAL_ENOMEM ? rc : 0;
}

int chat_turn_end(const chat_template *c, const tokenizer *t, int32_t *ret, shoal_err *err)
{
    *ret = -1;
    int rc = chat_end_find(c, t, false, ret);
    if (rc == 0 && *ret < 0) rc = chat_end_find(c, t, true, ret);
    return rc ? err_nomem(err) : 0;
}
