/* thinking.c: see thinking.h. What is held back is no longer than a marker and some white space. */
#include "chat/thinking.h"

#include <ctype.h>
#include <string.h>

#include "base/err.h"

enum { SPACES_MAX = 64, ROOM = 1024 };

/* Of two rows that a template could mean, the first is taken. Sources: the families' published templates. */
static const thinking_form FORMS[] = {
    {.name = "gpt-oss",
     .open = "<|channel|>analysis<|message|>",
     .close = "<|end|>",
     .sign = "<|channel|>analysis",
     .ends = {"<|channel|>final", "<|channel|>commentary", "<|start|>assistant"},
     .calls = {"to=functions.", "<|start|>assistant to=functions.", "<|channel|>commentary to=functions.",
               "<|channel|>analysis to=functions."},
     .others = {"<|start|>assistant to=", "<|channel|>commentary to=", "<|channel|>analysis to="},
     .head_end = "<|message|>",
     .frames = {"<|start|>assistant", "<|channel|>final<|message|>",
                "<|channel|>final <|constrain|>json<|message|>", "<|channel|>commentary<|message|>",
                "<|channel|>commentary to=assistant", "<|end|>", "<|return|>", "<|call|>"},
     .again = true,
     .between = "<|start|>assistant",
     .answer = "<|channel|>final<|message|>"},
    {.name = "cohere",
     .open = "<|START_THINKING|>",
     .close = "<|END_THINKING|>",
     .frames = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"}},
    {.name = "command-r",
     .sign = "<|CHATBOT_TOKEN|>",
     .frames = {"<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"}},
    {.name = "gemma-4",
     .open = "<|channel>thought",
     .close = "<channel|>",
     .sign = "<|channel>",
     .frames = {"<|channel>", "<channel|>"},
     .again = true},
    {.name = "seed", .open = "<seed:think>", .close = "</seed:think>"},
    {.name = "minimax-m3", .open = "<mm:think>", .close = "</mm:think>", .frames = {"</mm:think>"}},
    {.name = "kimi-k3",
     .open = "<|open|>think<|sep|>",
     .close = "<|close|>think<|sep|>",
     .sign = "<|sep|>",
     .ends = {"<|open|>response<|sep|>", "<|open|>tools<|sep|>"},
     .frames = {"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"},
     .answer = "<|open|>response<|sep|>"},
    {.name = "muse",
     .open = " to=self<|message|>",
     .close = "<|eom|>",
     .sign = "to=self",
     .frames = {"<|start|>assistant", " to=user<|message|>", "<|eom|>", "<|eot|>"},
     .again = true,
     .between = "<|start|>assistant",
     .answer = " to=user<|message|>"},
    {.name = "apriel",
     .open = "Here are my reasoning steps:",
     .close = "[BEGIN FINAL RESPONSE]",
     .frames = {"[END FINAL RESPONSE]", "<|end|>"}},
    /* Qwen3, SmolLM3, DeepSeek, GLM and many others */
    {.name = "think", .open = "<think>", .close = "</think>"},
    {.name = "magistral", .open = "[THINK]", .close = "[/THINK]"},
    {.name = "granite-3.2", .open = "Here is my thought process:", .close = "Here is my response:"},
    {.name = "functionary", .sign = ">>>all", .frames = {">>>all\n"}, .lead = "all\n"},
};

enum { N_FORMS = sizeof FORMS / sizeof *FORMS };

const thinking_form *thinking_forms(size_t *ret_n)
{
    *ret_n = N_FORMS;
    return FORMS;
}

const thinking_form *thinking_named(const char *name)
{
    for (size_t i = 0; i < N_FORMS; i++)
        if (strcmp(FORMS[i].name, name) == 0) return &FORMS[i];
    return NULL;
}

const thinking_form *thinking_find(const char *source)
{
    for (size_t i = 0; i < N_FORMS; i++) {
        const thinking_form *f = &FORMS[i];
        if (f->sign ? strstr(source, f->sign) != NULL : strstr(source, f->open) || strstr(source, f->close))
            return f;
    }
    return NULL;
}

static bool thinking_holds(const char *text, const char *s, size_t n)
{
    size_t len = text ? strlen(text) : 0;
    for (size_t i = 0; n > 0 && len >= n && i <= len - n; i++)
        if (memcmp(text + i, s, n) == 0) return true;
    return false;
}

bool thinking_shows(const thinking_form *f, const char *s, size_t n)
{
    if (!f) return false;
    bool shows =
        thinking_holds(f->open, s, n) || thinking_holds(f->close, s, n) || thinking_holds(f->lead, s, n);
    for (size_t i = 0; i < THINKING_FRAMES && f->frames[i]; i++) shows |= thinking_holds(f->frames[i], s, n);
    for (size_t i = 0; i < THINKING_ENDS && f->ends[i]; i++) shows |= thinking_holds(f->ends[i], s, n);
    shows |= thinking_holds(f->head_end, s, n);
    return shows;
}

static bool is_space(char c)
{
    return isspace((unsigned char)c);
}

bool thinking_is_open(const thinking_form *f, const char *prompt, size_t n, const uint8_t *marks)
{
    if (!f->open) return false;
    size_t len = strlen(f->open);
    while (n > 0 && is_space(prompt[n - 1])) n--;
    if (n < len || memcmp(prompt + n - len, f->open, len) != 0) return false;
    return !marks || !memchr(marks + n - len, 1, len);
}

int thinking_init(thinking *t, const thinking_form *form, bool open, const char *const *ends)
{
    *t = (thinking){.form = form,
                    .ends = ends,
                    .any = form && open,
                    .at = !form  ? THINK_DONE
                          : open ? THINK_LEAD
                                 : THINK_BEFORE};
    if (!form) return 0;
    int rc = buf_reserve(&t->held, ROOM);
    if (rc == 0) rc = buf_reserve(&t->thought, ROOM);
    return rc == 0 ? buf_reserve(&t->answer, ROOM) : rc;
}

void thinking_done(thinking *t)
{
    buf_done(&t->held);
    buf_done(&t->thought);
    buf_done(&t->answer);
}

bool thinking_failed(const thinking *t)
{
    return t->held.failed || t->thought.failed || t->answer.failed;
}

static size_t lead(const char *s, size_t n)
{
    size_t k = 0;
    while (k < n && is_space(s[k])) k++;
    return k;
}

/* ---- markers ------------------------------------------------------------------------------------- */

typedef enum { IS_NONE, IS_FRAME, IS_LEAD, IS_OPEN, IS_CALL, IS_OTHER } kind;

typedef struct found {
    kind kind;      /* what stands here */
    size_t len;     /* so long */
    bool may_go_on; /* a longer marker may stand here, which the text ends within */
} found;

static void thinking_look(found *f, kind k, const char *marker, const char *s, size_t n)
{
    size_t len = marker ? strlen(marker) : 0, have = n < len ? n : len;
    if (len == 0 || memcmp(s, marker, have) != 0) return;
    if (have < len)
        f->may_go_on = true;
    else if (len > f->len)
        *f = (found){k, len, f->may_go_on};
}

/* The longest marker at s; of those that may stand outside of a thought. */
static found marker_at(const thinking *t, bool open, bool first, const char *s, size_t n)
{
    found f = {IS_NONE, 0, false};
    if (open) thinking_look(&f, IS_OPEN, t->form->open, s, n);
    if (first) thinking_look(&f, IS_LEAD, t->form->lead, s, n);
    for (size_t i = 0; i < THINKING_FRAMES && t->form->frames[i]; i++)
        thinking_look(&f, IS_FRAME, t->form->frames[i], s, n);
    for (size_t i = 0; i < THINKING_ENDS && t->form->calls[i]; i++)
        thinking_look(&f, IS_CALL, t->form->calls[i], s, n);
    for (size_t i = 0; i < THINKING_ENDS && t->form->others[i]; i++)
        thinking_look(&f, IS_OTHER, t->form->others[i], s, n);
    return f;
}

static void take_marker(thinking *t, const found *f, const char *s)
{
    switch (f->kind) {
    case IS_LEAD: t->at = THINK_DONE; break;
    case IS_OPEN:
        t->at = THINK_LEAD;
        t->any = true;
        break;
    case IS_CALL:
        t->at = THINK_CALL;
        buf_append(&t->answer, s, f->len);
        break;
    case IS_OTHER: t->at = THINK_OTHER; break;
    default: break;
    }
}

/* ---- the parts of a reply ------------------------------------------------------------------------ */

/* Each of these looks at what is held from *at on, moves *at over what is decided, and returns whether the
 * next one can go on. */

/* Markers that begin with white space are part of it. */
static size_t white(const thinking *t, const char *s, size_t n)
{
    return t->form->open && is_space(*t->form->open) ? 0 : lead(s, n);
}

/* White space, then an opening marker or a frame, or no thought at all. Behind a thought (THINK_GAP) the
 * white space is nobody's, before all else it is the answer's. */
static bool before(thinking *t, const char *s, size_t n, size_t *at, bool last)
{
    bool gap = t->at == THINK_GAP;
    size_t skip = white(t, s + *at, n - *at), from = *at + skip;
    found f = marker_at(t, !gap || t->form->again, true, s + from, n - from);
    bool near = gap || skip <= SPACES_MAX;
    if (gap) *at = from;
    if (near && !last && (f.may_go_on || from == n)) return false;
    if (near && f.kind != IS_NONE) {
        *at = from + f.len;
        take_marker(t, &f, s + from);
        return true;
    }
    if (f.may_go_on && t->form->frames[0] && n - from > 1) *at = n; /* the reply ends within a marker */
    t->at = THINK_DONE;
    return true;
}

/* Where s has one of the markers that end a thought, and how much of it is the marker; n: nowhere yet. */
static size_t find_end(const thinking *t, const char *s, size_t n, size_t *ret_len, size_t *ret_certain)
{
    *ret_certain = n;
    for (size_t i = 0; i < n; i++) {
        found close = {IS_NONE, 0, false}, other = {IS_NONE, 0, false};
        thinking_look(&close, IS_FRAME, t->form->close, s + i, n - i);
        for (size_t k = 0; k < THINKING_ENDS && t->form->ends[k]; k++)
            thinking_look(&other, IS_FRAME, t->form->ends[k], s + i, n - i);
        for (const char *const *e = t->ends; e && *e; e++) thinking_look(&other, IS_FRAME, *e, s + i, n - i);
        if (close.len || other.len) {
            *ret_len = close.len;
            return i;
        }
        if ((close.may_go_on || other.may_go_on) && *ret_certain == n) *ret_certain = i;
    }
    return n;
}

/* Within the thought: white space at its end is held back, as long as it is the end. */
static bool within(thinking *t, const char *s, size_t n, size_t *at, bool last)
{
    size_t len = 0, certain, from = *at;
    size_t close = find_end(t, s + from, n - from, &len, &certain), end = close;
    bool found = close < n - from;
    if (!found && !last) end = certain;
    size_t kept = end;
    for (size_t k = 0; k < SPACES_MAX && kept > 0 && is_space(s[from + kept - 1]); k++) kept--;
    buf_append(&t->thought, s + from, kept);
    *at = from + (found ? close + len : last ? n - from : kept);
    if (found) t->at = THINK_GAP;
    return found;
}

/* Behind all thoughts, or between them. */
static bool thinking_answer(thinking *t, const char *s, size_t n, size_t *at, bool last)
{
    bool framed = t->form->again || t->form->frames[0];
    size_t from = *at, i = from;
    while (framed && i < n) {
        found f = marker_at(t, t->form->again, false, s + i, n - i);
        if (f.may_go_on && !last) break;
        if (f.may_go_on && f.kind == IS_NONE && n - i > 1) {
            buf_append(&t->answer, s + from, i - from);
            *at = n;
            return false;
        }
        if (f.kind != IS_NONE) {
            buf_append(&t->answer, s + from, i - from);
            *at = i + f.len;
            take_marker(t, &f, s + i);
            return true;
        }
        i++;
    }
    if (!framed) i = n;
    buf_append(&t->answer, s + from, i - from);
    *at = i;
    return false;
}

/* Up to and with a marker, all of which is the answer's or nobody's. */
static bool up_to(thinking *t, const char *marker, bool keep, const char *s, size_t n, size_t *at, bool last)
{
    size_t from = *at, i = from;
    found f = {IS_NONE, 0, false};
    for (; i < n; i++) {
        thinking_look(&f, IS_FRAME, marker, s + i, n - i);
        if (f.len || f.may_go_on) break;
    }
    *at = f.len ? i + f.len : last ? n : i;
    if (keep) buf_append(&t->answer, s + from, *at - from);
    if (f.len) t->at = THINK_DONE;
    return f.len > 0;
}

static void thinking_split(thinking *t, bool last)
{
    const char *s = t->held.data;
    size_t n = t->held.len, at = 0;
    for (bool goes_on = true; goes_on;) {
        switch (t->at) {
        case THINK_BEFORE:
        case THINK_GAP: goes_on = before(t, s, n, &at, last); break;
        case THINK_LEAD:
            at += lead(s + at, n - at);
            goes_on = at < n;
            if (goes_on) t->at = THINK_IN;
            break;
        case THINK_IN: goes_on = within(t, s, n, &at, last); break;
        case THINK_DONE: goes_on = thinking_answer(t, s, n, &at, last); break;
        case THINK_CALL: goes_on = up_to(t, t->form->head_end, true, s, n, &at, last); break;
        case THINK_OTHER: goes_on = up_to(t, t->form->close, false, s, n, &at, last); break;
        }
    }
    buf_consume(&t->held, at);
}

static void thinking_take(thinking *t, const char *s, size_t n, bool last, thinking_parts *ret)
{
    *ret = (thinking_parts){.thought = "", .answer = n ? s : "", .n_answer = n};
    bool plain = !t->form || (t->at == THINK_DONE && !t->form->again && !t->form->frames[0]);
    if (plain && t->held.len == 0) return; /* nothing is held: as it is */
    buf_clear(&t->thought);
    buf_clear(&t->answer);
    buf_append(&t->held, s, n);
    if (!t->held.failed && t->held.len > 0) thinking_split(t, last);
    *ret = (thinking_parts){.thought = t->thought.data ? t->thought.data : "",
                            .answer = t->answer.data ? t->answer.data : "",
                            .n_thought = t->thought.len,
                            .n_answer = t->answer.len};
}

void thinking_push(thinking *t, const char *s, size_t n, thinking_parts *ret)
{
    thinking_take(t, s, n, false, ret);
}

void thinking_end(thinking *t, const char *s, size_t n, thinking_parts *ret)
{
    thinking_take(t, s, n, true, ret);
}
