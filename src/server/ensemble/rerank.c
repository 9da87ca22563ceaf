/* rerank.c: rules and texts; see rerank.h. */
#include "ensemble/rerank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"

static const char *const NAMES[RERANK_N_RULES] = {
#define RERANK_RULE_NAME(e, name) [e] = name,
    RERANK_RULE_TABLE(RERANK_RULE_NAME)
#undef RERANK_RULE_NAME
};

const char *rerank_rule_name(rerank_by rule)
{
    return NAMES[rule];
}

bool rerank_rule_tops(rerank_by rule)
{
    return rule == RERANK_WORDS || rule == RERANK_NAMES || rule == RERANK_JSON || rule == RERANK_PATTERN;
}

bool rerank_rule_find(const char *name, rerank_by *ret)
{
    for (int i = 0; i < RERANK_N_RULES; i++) {
        if (strcmp(NAMES[i], name) != 0) continue;
        *ret = (rerank_by)i;
        return true;
    }
    return false;
}

/* ---- texts as they are compared ------------------------------------------------------------------ */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_stop(char c)
{
    return c == '.' || c == '!' || c == '?';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Without case (of ASCII), spaces that repeat or stand at an end, and stops at the end. */
static void fold(buf *to, const rerank_text *t)
{
    for (size_t i = 0; i < t->len; i++) {
        bool space = is_space(t->s[i]);
        if (!space) buf_putc(to, lower(t->s[i]));
        if (space && to->len && to->data[to->len - 1] != ' ') buf_putc(to, ' ');
    }
    while (to->len && (to->data[to->len - 1] == ' ' || is_stop(to->data[to->len - 1]))) to->len--;
}

static bool rerank_is_same(const buf *a, const buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static int by_majority(const rerank_text *texts, size_t n, double *worth)
{
    buf folded[RERANK_CANDIDATES_MAX] = {{0}};
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        fold(&folded[i], &texts[i]);
        if (folded[i].failed) rc = SHOAL_ENOMEM;
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        size_t say_so = 0;
        for (size_t k = 0; k < n; k++) say_so += rerank_is_same(&folded[i], &folded[k]);
        worth[i] = (double)say_so / (double)n;
    }
    for (size_t i = 0; i < n; i++) buf_done(&folded[i]);
    return rc;
}

/* ---- words --------------------------------------------------------------------------------------- */

/* Of letters and digits; what is not ASCII is taken for letters. */
static bool in_word(char c)
{
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || (unsigned char)c >= 0x80;
}

/* The next word of s[*at..n), false behind the last. */
static bool next_word(const char *s, size_t n, size_t *at, rerank_text *ret)
{
    while (*at < n && !in_word(s[*at])) ++*at;
    size_t begin = *at;
    while (*at < n && in_word(s[*at])) ++*at;
    *ret = (rerank_text){s + begin, *at - begin};
    return ret->len > 0;
}

static bool is_same_word(const rerank_text *a, const rerank_text *b)
{
    if (a->len != b->len) return false;
    for (size_t i = 0; i < a->len; i++)
        if (lower(a->s[i]) != lower(b->s[i])) return false;
    return true;
}

static size_t words_of(const char *s, rerank_text *ret)
{
    size_t n = 0, at = 0, len = strlen(s);
    rerank_text w;
    while (n < RERANK_WORDS_MAX && next_word(s, len, &at, &w)) {
        size_t k = 0;
        while (k < n && !is_same_word(&ret[k], &w)) k++;
        if (k == n) ret[n++] = w;
    }
    return n;
}

/* Which of the words stand in a text, in one walk over it. Returns how many. */
static size_t find_words(const rerank_text *words, size_t n, const rerank_text *t, bool has[])
{
    size_t at = 0, found = 0;
    rerank_text w;
    memset(has, 0, n * sizeof *has);
    while (found < n && next_word(t->s, t->len, &at, &w)) {
        for (size_t k = 0; k < n; k++) {
            if (has[k] || !is_same_word(&words[k], &w)) continue;
            has[k] = true;
            found++;
        }
    }
    return found;
}

/* Those of the question that stand in the context, too. */
static size_t names_of(const rerank_asked *asked, rerank_text *ret)
{
    bool has[RERANK_WORDS_MAX];
    rerank_text context = {asked->context.data, asked->context.len};
    size_t n = words_of(asked->question.data, ret), n_names = 0;
    find_words(ret, n, &context, has);
    for (size_t i = 0; i < n; i++)
        if (has[i]) ret[n_names++] = ret[i];
    return n_names;
}

/* Where there is no word to be had, nothing is left out. */
static double share_of_words(const rerank_text *words, size_t n, const rerank_text *t)
{
    bool has[RERANK_WORDS_MAX];
    return n ? (double)find_words(words, n, t, has) / (double)n : 1;
}

/* ---- rules --------------------------------------------------------------------------------------- */

static int worth_of_json(const verify_schema *schema, const rerank_text *t, double *ret)
{
    json_t *v = NULL;
    shoal_err err;
    verify_why why = VERIFY_NO_JSON;
    if (schema) {
        int rc = verify_json(&why, schema, t->s);
        *ret = why == VERIFY_FINE;
        return rc;
    }
    int rc = json_parse(&v, t->s, t->len, "answer", &err);
    *ret = rc == 0 && (json_is_object(v) || json_is_array(v));
    json_decref(v);
    return rc == SHOAL_ENOMEM ? rc : 0;
}

static bool rerank_is_empty(const rerank_text *t)
{
    for (size_t i = 0; i < t->len; i++)
        if (!is_space(t->s[i])) return false;
    return true;
}

static int rerank_worth_of(rerank_by rule, const rerank_text *words, size_t n_words,
                           const rerank_needs *needs, const rerank_text *t, double *ret)
{
    *ret = 0;
    switch (rule) {
    case RERANK_LONGEST: *ret = (double)utf8_count(t->s, t->len); break;
    case RERANK_SHORTEST: *ret = -(double)utf8_count(t->s, t->len); break;
    case RERANK_WORDS:
    case RERANK_NAMES: *ret = share_of_words(words, n_words, t); break;
    case RERANK_JSON: return worth_of_json(needs ? needs->schema : NULL, t, ret);
    case RERANK_PATTERN: *ret = regex_find(needs->pattern, t->s, t->len) == REGEX_FOUND; break;
    default: break;
    }
    return 0;
}

int rerank_by_rule(rerank_by rule, const rerank_asked *asked, const rerank_needs *needs,
                   const rerank_text *texts, size_t n, double *worth)
{
    rerank_text words[RERANK_WORDS_MAX];
    double all[RERANK_CANDIDATES_MAX];
    size_t n_words = rule == RERANK_WORDS   ? words_of(asked->question.data, words)
                     : rule == RERANK_NAMES ? names_of(asked, words)
                                            : 0;
    int rc = rule == RERANK_MAJORITY ? by_majority(texts, n, all) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (rerank_is_empty(&texts[i]))
            all[i] = -INFINITY;
        else if (rule != RERANK_MAJORITY)
            rc = rerank_worth_of(rule, words, n_words, needs, &texts[i], &all[i]);
    }
    if (rc == 0) memcpy(worth, all, n * sizeof *all);
    return rc;
}

void rerank_order(const double *worth, size_t n, size_t *order)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && worth[order[at - 1]] < worth[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

/* ---- requests and answers ------------------------------------------------------------------------ */

static void put_content(buf *out, const json_t *content)
{
    size_t i;
    json_t *part;
    if (json_is_string(content)) buf_puts(out, json_string_value(content));
    json_array_foreach(content, i, part)
    {
        const char *text = json_string_value(json_object_get(part, "text"));
        if (text) buf_puts(out, text);
    }
}

/* The number of the last message of the user's; the number of messages when there is none. */
static size_t find_question(const json_t *messages)
{
    size_t n = json_array_size(messages);
    for (size_t i = n; i-- > 0;) {
        const char *role = json_string_value(json_object_get(json_array_get(messages, i), "role"));
        if (role && strcmp(role, "user") == 0) return i;
    }
    return n;
}

/* What is no conversation asks nothing: the worker says what is wrong with it. */
static void rerank_read_messages(rerank_asked *a, const char *messages)
{
    json_t *all = NULL;
    shoal_err err;
    if (json_parse(&all, messages, strlen(messages), "messages", &err) != 0) return;
    size_t question = find_question(all);
    for (size_t i = 0; i < json_array_size(all); i++) {
        buf *to = i == question ? &a->question : &a->context;
        put_content(to, json_object_get(json_array_get(all, i), "content"));
        if (i != question) buf_putc(to, '\n');
    }
    json_decref(all);
}

int rerank_asked_init(rerank_asked *ret, const Shoal__V1__GenerateRequest *r)
{
    rerank_asked a = {0};
    if (*r->messages_json)
        rerank_read_messages(&a, r->messages_json);
    else
        buf_puts(&a.question, r->text);
    int rc = buf_reserve(&a.question, 1) || buf_reserve(&a.context, 1); /* their NULs */
    if (rc || a.question.failed || a.context.failed) {
        rerank_asked_done(&a);
        return SHOAL_ENOMEM;
    }
    a.question.data[a.question.len] = a.context.data[a.context.len] = 0;
    *ret = a;
    return 0;
}

void rerank_asked_done(rerank_asked *a)
{
    buf_done(&a->question);
    buf_done(&a->context);
}

static void read_call(rerank_reader *r, const Shoal__V1__ToolCallDelta *c)
{
    if (!r->tools) r->tools = calloc(RERANK_TOOLS_MAX, sizeof *r->tools);
    if (!r->tools) r->failed = true;
    if (!r->tools || c->index > r->n_tools || c->index >= RERANK_TOOLS_MAX) return;
    if (c->index == r->n_tools) r->n_tools++;
    rerank_tool *t = &r->tools[c->index];
    buf_puts(&t->name, c->name);
    buf_puts(&t->arguments, c->arguments);
    r->failed |= t->name.failed || t->arguments.failed;
}

void rerank_read(rerank_reader *r, const Shoal__V1__Delta *d)
{
    utf8_put_c(&r->text, (const char *)d->text.data, d->text.len);
    for (size_t i = 0; i < d->n_tool_calls; i++) read_call(r, d->tool_calls[i]);
    r->failed |= r->text.failed;
}

const char *rerank_read_all(rerank_reader *r, size_t *ret_len)
{
    buf *all = &r->all;
    buf_clear(all);
    buf_append(all, r->text.data, r->text.len);
    for (size_t i = 0; i < r->n_tools; i++) {
        const rerank_tool *t = &r->tools[i];
        buf_puts(all, all->len ? "\n{\"name\": " : "{\"name\": ");
        json_put_string(all, t->name.data, t->name.len);
        buf_puts(all, ", \"arguments\": ");
        buf_append(all, t->arguments.data, t->arguments.len);
        buf_putc(all, '}');
    }
    *ret_len = all->len;
    return r->failed || all->failed ? NULL : all->len ? all->data : "";
}

void rerank_reader_done(rerank_reader *r)
{
    for (size_t i = 0; i < r->n_tools; i++) {
        buf_done(&r->tools[i].name);
        buf_done(&r->tools[i].arguments);
    }
    free(r->tools);
    buf_done(&r->text);
    buf_done(&r->all);
    *r = (rerank_reader){0};
}
