/* jinja_parse.c: template source -> tree: text, tags and statements. */
#include <ctype.h>
#include <string.h>

#include "jinja/jinja_parse.h"

/* ---- text and tags ---- */

static bool starts(const parser *p, const char *mark)
{
    return p->len - p->at >= 2 && p->s[p->at] == mark[0] && p->s[p->at + 1] == mark[1];
}

/* End of tag: step over it, and over what white-space control says to drop behind it. */
static void close_tag(parser *p)
{
    if (p->rc) return;
    if (p->tok != T_CLOSE) {
        jp_fail(p, "the tag's end is expected here");
        return;
    }
    bool dash = p->s[p->at] == '-', plus = p->s[p->at] == '+';
    p->at += dash || plus ? 1 : 0;
    bool block = p->s[p->at] == '%';
    p->at += 2;
    if (dash) {
        while (p->at < p->len && isspace((unsigned char)p->s[p->at])) p->line += p->s[p->at++] == '\n';
    } else if (block && !plus) { /* trim_blocks: the first newline goes */
        if (p->at < p->len && p->s[p->at] == '\r' && p->at + 1 < p->len && p->s[p->at + 1] == '\n') p->at++;
        if (p->at < p->len && p->s[p->at] == '\n') {
            p->at++;
            p->line++;
        }
    }
}

static void skip_comment(parser *p)
{
    size_t b = p->at;
    while (p->at < p->len && !starts(p, "#}")) p->line += p->s[p->at++] == '\n';
    if (p->at >= p->len) {
        jp_fail(p, "a comment has no end");
        return;
    }
    bool dash = p->at > b + 2 && p->s[p->at - 1] == '-';
    p->at += 2;
    if (dash) {
        while (p->at < p->len && isspace((unsigned char)p->s[p->at])) p->line += p->s[p->at++] == '\n';
    } else if (p->at < p->len && p->s[p->at] == '\n') {
        p->at++;
        p->line++;
    }
}

/* Text up to the next tag, its end cut as the tag asks; NULL when nothing is left of it. */
static jnode *text(parser *p)
{
    size_t b = p->at;
    int line = p->line;
    while (p->at < p->len && !starts(p, "{{") && !starts(p, "{%") && !starts(p, "{#"))
        p->line += p->s[p->at++] == '\n';
    size_t e = p->at;
    bool tag = p->at < p->len, value = starts(p, "{{");
    char control = tag && p->at + 2 < p->len ? p->s[p->at + 2] : 0;
    if (tag && control == '-') {
        while (e > b && isspace((unsigned char)p->s[e - 1])) e--;
    } else if (tag && !value && control != '+') { /* lstrip_blocks: blanks before a block on its line */
        size_t k = e;
        while (k > b && (p->s[k - 1] == ' ' || p->s[k - 1] == '\t')) k--;
        if (k > b ? p->s[k - 1] == '\n' : b == 0 || p->s[b - 1] == '\n') e = k;
    }
    if (e == b) return NULL;
    jnode *n = jp_node(p, N_TEXT);
    if (!n) return NULL;
    n->line = line;
    n->value = (jvalue){.kind = V_STRING, .s = arena_strndup(p->mem, p->s + b, e - b), .n = e - b};
    if (!n->value.s) p->rc = err_nomem(p->err);
    return n;
}

static jnode *jinja_parse_body(parser *p);

/* The body of a block up to one of `ends`, whose name is then the token in hand. */
static jnode *block(parser *p, const char *const *ends)
{
    jnode *b = jp_node(p, N_BLOCK), **tail = b ? &b->items : NULL;
    if (++p->depth > JINJA_MAX_DEPTH) jp_fail(p, "nested too deep");
    while (b && p->rc == 0) {
        jnode *n = jinja_parse_body(p);
        if (n) {
            *tail = n;
            tail = &n->next;
        }
        if (p->in_tag && jp_is_end(p, ends)) break;
        if (p->in_tag)
            jp_fail(p, "an end tag that nothing opened, or an unknown statement");
        else if (p->at >= p->len && p->rc == 0)
            jp_fail(p, "a block has no end");
    }
    p->depth--;
    return b;
}

static void jinja_parse_finish(parser *p)
{
    p->in_tag = false;
    close_tag(p);
}

static jnode *if_statement(parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
    jnode *n = jp_with(p, N_IF, "if", jp_expression(p), NULL);
    jinja_parse_finish(p);
    if (!n) return NULL;
    n->items = block(p, ends);
    if (p->rc) return n;
    if (jp_accept_name(p, "elif")) {
        if (++p->depth > JINJA_MAX_DEPTH) jp_fail(p, "nested too deep");
        n->other = if_statement(p); /* takes the endif too */
        p->depth--;
        return n;
    }
    if (jp_accept_name(p, "else")) {
        jinja_parse_finish(p);
        n->other = block(p, last);
    }
    if (p->rc == 0) jp_next(p);
    jinja_parse_finish(p);
    return n;
}

/* Names to assign to: one, or several with commas. */
static jnode *targets(parser *p)
{
    jnode *first = NULL, **tail = &first;
    bool paren = jp_accept(p, "(");
    do {
        if (p->rc || p->tok != T_NAME) {
            jp_fail(p, "a name is expected here");
            return first;
        }
        jnode *n = jp_with(p, N_NAME, p->text, NULL, NULL);
        jp_next(p);
        if (!n) return first;
        if (jp_accept(p, ".")) { /* namespace attribute */
            if (p->tok != T_NAME) jp_fail(p, "a name is expected after \".\"");
            if (p->rc) return first;
            n->a = jp_with(p, N_ATTR, p->text, NULL, NULL);
            jp_next(p);
        }
        *tail = n;
        tail = &n->next;
    } while (jp_accept(p, ",") && !jp_is_op(p, ")"));
    if (paren) jp_expect(p, ")");
    return first;
}

static jnode *for_statement(parser *p)
{
    static const char *const ends[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
    jnode *n = jp_node(p, N_FOR);
    if (!n) return NULL;
    n->b = targets(p);
    if (!jp_accept_name(p, "in")) jp_fail(p, "\"in\" is expected in a for");
    n->a = jp_or_level(p);
    if (jp_accept_name(p, "if")) n->c = jp_expression(p);
    if (jp_accept_name(p, "recursive")) n->name = "recursive";
    jinja_parse_finish(p);
    n->items = block(p, ends);
    if (jp_accept_name(p, "else")) {
        jinja_parse_finish(p);
        n->other = block(p, last);
    }
    if (p->rc == 0) jp_next(p);
    jinja_parse_finish(p);
    return n;
}

static jnode *set_statement(parser *p)
{
    static const char *const ends[] = {"endset", NULL};
    jnode *n = jp_node(p, N_SET);
    if (!n) return NULL;
    n->b = targets(p);
    if (jp_accept(p, "=")) {
        n->a = jp_expression(p);
        if (jp_is_op(p, ",")) {
            jp_next(p);
            jnode *list = jp_node(p, N_LIST);
            if (!list) return NULL;
            list->items = jp_with(p, N_COND, "", n->a, NULL);
            jnode **tail = list->items ? &list->items->next : NULL;
            while (tail && p->rc == 0 && p->tok != T_CLOSE) {
                *tail = jp_with(p, N_COND, "", jp_expression(p), NULL);
                tail = *tail ? &(*tail)->next : NULL;
                if (!jp_accept(p, ",")) break;
            }
            n->a = list;
        }
        jinja_parse_finish(p);
        return n;
    }
    jinja_parse_finish(p);
    n->items = block(p, ends);
    if (p->rc == 0) jp_next(p);
    jinja_parse_finish(p);
    return n;
}

/* "(a, b=1)" as names whose `a` is the default. */
static jnode *parameters(parser *p)
{
    jnode *first = NULL, **tail = &first;
    jp_expect(p, "(");
    while (p->rc == 0 && p->tok == T_NAME) {
        jnode *a = jp_with(p, N_NAME, p->text, NULL, NULL);
        jp_next(p);
        if (!a) return first;
        if (jp_accept(p, "=")) a->a = jp_expression(p);
        *tail = a;
        tail = &a->next;
        if (!jp_accept(p, ",")) break;
    }
    jp_expect(p, ")");
    return first;
}

/* The rest of the opening tag, the body, and the end tag, whose name is `end`. */
static jnode *whole_block(parser *p, const char *end)
{
    const char *const ends[] = {end, NULL};
    jinja_parse_finish(p);
    jnode *b = block(p, ends);
    if (p->rc == 0) jp_next(p);
    jinja_parse_finish(p);
    return b;
}

static jnode *macro_statement(parser *p)
{
    if (p->rc || p->tok != T_NAME) {
        jp_fail(p, "a macro needs a name");
        return NULL;
    }
    jnode *n = jp_with(p, N_MACRO, p->text, NULL, NULL);
    jp_next(p);
    if (!n) return NULL;
    n->b = parameters(p);
    n->items = whole_block(p, "endmacro");
    return n;
}

static jnode *call_statement(parser *p)
{
    jnode *n = jp_with(p, N_CALL_BLOCK, "call", NULL, NULL);
    if (!n) return NULL;
    if (jp_is_op(p, "(")) n->b = parameters(p);
    n->a = jp_expression(p);
    if (p->rc == 0 && (!n->a || n->a->kind != N_CALL)) jp_fail(p, "\"call\" needs the call of a macro");
    n->items = whole_block(p, "endcall");
    return n;
}

/* {% filter upper | trim %}: what the body prints, through the filters. */
static jnode *filter_statement(parser *p)
{
    jnode *text = jp_node(p, N_CAPTURE),
          *n = text ? jp_with(p, N_OUTPUT, "", jp_filters(p, text), NULL) : NULL;
    if (n) text->items = whole_block(p, "endfilter");
    return n;
}

static jnode *with_statement(parser *p)
{
    jnode *n = jp_node(p, N_WITH), **tail = n ? &n->b : NULL;
    while (n && p->rc == 0 && p->tok == T_NAME) {
        jnode *a = jp_with(p, N_NAME, p->text, NULL, NULL);
        jp_next(p);
        if (!a) return n;
        jp_expect(p, "=");
        a->a = jp_expression(p);
        *tail = a;
        tail = &a->next;
        if (!jp_accept(p, ",")) break;
    }
    if (n) n->items = whole_block(p, "endwith");
    return n;
}

/* {% generation %} marks what the assistant wrote, for training: its body is printed as it is. */
static jnode *generation_statement(parser *p)
{
    return whole_block(p, "endgeneration");
}

static jnode *break_statement(parser *p)
{
    jnode *n = jp_node(p, N_BREAK);
    jinja_parse_finish(p);
    return n;
}

static jnode *continue_statement(parser *p)
{
    jnode *n = jp_node(p, N_CONTINUE);
    jinja_parse_finish(p);
    return n;
}

/* The place of "{% endraw %}" from p->at on, p->len when there is none; *ret_end is behind its name. */
static size_t find_endraw(const parser *p, size_t *ret_end)
{
    for (size_t at = p->at; at + 2 < p->len; at++) {
        if (p->s[at] != '{' || p->s[at + 1] != '%') continue;
        size_t e = at + 2 + (p->s[at + 2] == '-' || p->s[at + 2] == '+');
        while (e < p->len && isspace((unsigned char)p->s[e])) e++;
        if (p->len - e < 6 || memcmp(p->s + e, "endraw", 6) != 0) continue;
        *ret_end = e + 6;
        return at;
    }
    return p->len;
}

/* {% raw %}: text that is no template. */
static jnode *raw_statement(parser *p)
{
    jinja_parse_finish(p);
    size_t b = p->at, end = 0, e = p->rc ? p->len : find_endraw(p, &end);
    if (e == p->len) {
        jp_fail(p, "a raw block has no end");
        return NULL;
    }
    jnode *n = jp_node(p, N_TEXT);
    if (!n) return NULL;
    for (size_t i = b; i < end; i++) p->line += p->s[i] == '\n';
    if (p->s[e + 2] == '-')
        while (e > b && isspace((unsigned char)p->s[e - 1])) e--;
    n->value = (jvalue){.kind = V_STRING, .s = arena_strndup(p->mem, p->s + b, e - b), .n = e - b};
    if (!n->value.s) p->rc = err_nomem(p->err);
    p->at = end;
    p->in_tag = true;
    jp_next(p);
    jinja_parse_finish(p);
    return n;
}

/* A template comes as one text: what would read others is refused by its name. */
static void jinja_parse_refuse(parser *p)
{
    static const char *const others[] = {"include", "import", "from", "extends", NULL};
    static const char *const unknown[] = {"block", "autoescape", "do", "trans", "debug", NULL};
    if (p->rc) return;
    if (jp_is_end(p, others))
        p->rc = err_set(p->err, SHOAL_EUNSUPPORTED,
                        "%s: line %d: \"%.20s\" reads another template, and a chat template stands alone: "
                        "put its text here",
                        p->what, p->line, p->text);
    else if (jp_is_end(p, unknown))
        p->rc = err_set(p->err, SHOAL_EUNSUPPORTED, "%s: line %d: statement \"%.20s\" is not supported",
                        p->what, p->line, p->text);
}

/* The statement whose first word is in hand; NULL with in_tag still set when it is an end tag. */
static jnode *statement(parser *p)
{
    static const struct {
        const char *name;
        jnode *(*read)(parser *p);
    } statements[] = {
        {"if", if_statement},       {"for", for_statement},           {"set", set_statement},
        {"macro", macro_statement}, {"call", call_statement},         {"filter", filter_statement},
        {"with", with_statement},   {"raw", raw_statement},           {"generation", generation_statement},
        {"break", break_statement}, {"continue", continue_statement},
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (jp_accept_name(p, statements[i].name)) return statements[i].read(p);
    jinja_parse_refuse(p);
    return NULL;
}

/* The next thing of a template; NULL when it is nothing (a comment, the end, an end tag). */
static jnode *jinja_parse_body(parser *p)
{
    jnode *n = text(p);
    if (n || p->rc || p->at >= p->len) return n;
    if (starts(p, "{#")) {
        skip_comment(p);
        return NULL;
    }
    bool value = starts(p, "{{");
    p->at += 2;
    if (p->at < p->len && (p->s[p->at] == '-' || (!value && p->s[p->at] == '+'))) p->at++;
    p->in_tag = true;
    jp_next(p);
    if (!value) return statement(p);
    n = jp_with(p, N_OUTPUT, "", jp_expression(p), NULL);
    jinja_parse_finish(p);
    return n;
}

int jinja_parse(jnode **ret, arena *mem, const char *source, size_t len, const char *what, shoal_err *err)
{
    parser p = {.mem = mem, .what = what, .s = source, .len = len, .line = 1, .err = err};
    if (len > JINJA_MAX_SOURCE)
        return err_set(err, SHOAL_ELIMIT, "%s: longer than %d bytes", what, JINJA_MAX_SOURCE);
    /* keep_trailing_newline is off: one newline at the end does not count. */
    if (len && source[len - 1] == '\n') p.len--;
    jnode *root = jp_node(&p, N_BLOCK), **tail = root ? &root->items : NULL;
    while (p.rc == 0 && p.at < p.len) {
        jnode *n = jinja_parse_body(&p);
        if (p.rc == 0 && p.in_tag) jp_fail(&p, "an end tag that nothing opened, or an unknown statement");
        if (!n) continue;
        *tail = n;
        tail = &n->next;
    }
    if (p.rc == 0 && !root) p.rc = err_nomem(err);
    if (p.rc == 0) *ret = root;
    return p.rc;
}
