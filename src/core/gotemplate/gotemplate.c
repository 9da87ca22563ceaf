/* gotemplate.c: the text and the statements of a template of Ollama, as Jinja's; see gotemplate.h. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "gotemplate/gotemplate_impl.h"

void gt_fail(gt_parser *p, int code, const char *fmt, ...)
{
    char message[300];
    va_list ap;
    if (p->rc) return;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    p->rc = err_set(p->err, code, "line %d: %s", p->in.line, message);
    p->in.tok = GT_END;
}

void gt_nomem(gt_parser *p)
{
    if (p->rc == 0) p->rc = err_nomem(p->err);
    p->in.tok = GT_END;
}

void gt_deepen(gt_parser *p, size_t levels)
{
    p->depth += levels;
    if (p->depth > GOTEMPLATE_MAX_DEPTH) gt_fail(p, SHOAL_ELIMIT, "this nests too deep");
}

const char *gt_printf(gt_parser *p, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > GOTEMPLATE_MAX_RESULT) gt_fail(p, SHOAL_ELIMIT, "this is too long");
    char *s = n < 0 || p->rc ? NULL : arena_alloc(p->mem, (size_t)n + 1);
    if (s) vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    if (!s) gt_nomem(p);
    return s ? s : "";
}

/* ---- what is written ---------------------------------------------------------------------------- */

/* Begin a tag, with as many line breaks as its line is behind the template's. */
static void open_tag(gt_parser *p, const char *mark, int line)
{
    buf_puts(p->out, mark);
    for (; p->out_line < line; p->out_line++) buf_putc(p->out, '\n');
    if (p->out->len > GOTEMPLATE_MAX_RESULT)
        gt_fail(p, SHOAL_ELIMIT, "what becomes of the template is larger than %d bytes",
                GOTEMPLATE_MAX_RESULT);
}

static void put(gt_parser *p, const char *what)
{
    buf_puts(p->out, what);
}

static void put_text(gt_parser *p, const char *s, size_t n, int line)
{
    if (n == 0) return;
    open_tag(p, "{{", line);
    gt_put_string(p->out, s, n, true);
    put(p, "}}");
    for (size_t i = 0; i < n; i++) p->out_line += s[i] == '\n';
}

/* The last turn ends here. */
static void put_cut(gt_parser *p)
{
    if (p->in_turns) put(p, "{%if d['.last']%}{%break%}{%endif%}");
}

static void put_set(gt_parser *p, unsigned id, const char *value)
{
    buf_printf(p->out, "{%%set v.x%u=%s%%}", id, value);
}

/* ---- statements --------------------------------------------------------------------------------- */

static gt_block *innermost(gt_parser *p)
{
    return p->n_blocks ? &p->blocks[p->n_blocks - 1] : NULL;
}

static void expect_end(gt_parser *p, const char *behind)
{
    if (p->rc == 0 && p->in.tok != GT_END)
        gt_fail(p, SHOAL_EINVALID, "%s cannot stand behind \"%s\"", gt_token_name(p), behind);
}

/* The value of an if, a with or a range, through the end of its action. */
static gt_pipeline read_head(gt_parser *p, bool in_range)
{
    gt_next(p);
    gt_pipeline pipe = gt_read_pipeline(p, in_range);
    if (p->rc == 0 && p->in.tok != GT_END) gt_fail(p, SHOAL_EINVALID, "a \")\" has no \"(\"");
    return pipe;
}

static gt_block *open_block(gt_parser *p, int kind, int line)
{
    size_t depth = p->depth;
    gt_deepen(p, 1);
    if (p->rc) return NULL;
    gt_block *b = &p->blocks[p->n_blocks++];
    *b = (gt_block){.kind = kind, .line = line, .n_vars = p->n_vars, .depth = depth, .dot = p->dot};
    return b;
}

/* The condition of an if, or what a with makes the dot, as "if" or "elif". */
static void put_condition(gt_parser *p, gt_block *b, const char *tag, int line)
{
    gt_pipeline pipe = read_head(p, false);
    const char *value = gt_set_and_get(p, &pipe);
    if (b->kind == GT_WITH) {
        unsigned id = ++p->n_ids;
        value = gt_printf(p, "go_set(v, 'x%u', %s)", id, value);
        p->dot = gt_printf(p, "v.x%u", id);
    }
    open_tag(p, "{%", line);
    buf_printf(p->out, "%s %s%%}", tag, value);
    b->n_head_vars = p->n_vars;
}

static void read_condition(gt_parser *p, int kind, int line)
{
    gt_block *b = open_block(p, kind, line);
    if (b) put_condition(p, b, "if", line);
}

/* The loop number n has its element in en. What it goes over is asked for its keys where they are wanted. */
static void read_range(gt_parser *p, int line)
{
    gt_block *b = open_block(p, GT_RANGE, line);
    if (!b) return;
    gt_pipeline pipe = read_head(p, true);
    unsigned n = ++p->n_ids;
    bool has_key = pipe.n_declared == 2;
    p->n_ranges++;
    if (has_key) put_set(p, n, pipe.value);
    open_tag(p, "{%", line);
    buf_printf(p->out, "for e%u in go_range(%s)%%}", n, has_key ? gt_printf(p, "v.x%u", n) : pipe.value);
    p->dot = gt_printf(p, "e%u", n);
    if (has_key) put_set(p, pipe.declared[0].id, gt_printf(p, "go_key(v.x%u, loop.index0)", n));
    if (pipe.n_declared) put_set(p, pipe.declared[pipe.n_declared - 1].id, p->dot);
    gt_declare(p, &pipe);
    b->n_head_vars = p->n_vars;
}

static void read_else(gt_parser *p, int line)
{
    gt_block *b = innermost(p);
    gt_next(p);
    if (!b || b->in_else) gt_fail(p, SHOAL_EINVALID, "an \"else\" that belongs to nothing");
    if (p->rc) return;
    p->n_vars = b->n_head_vars;
    p->dot = b->dot;
    if (b->kind == GT_RANGE) p->n_ranges--;
    bool more = (b->kind == GT_IF && gt_is_name(p, "if")) || (b->kind == GT_WITH && gt_is_name(p, "with"));
    if (more) {
        gt_deepen(p, 1); /* in Jinja it is a block within */
        put_condition(p, b, "elif", line);
    } else {
        b->in_else = true;
        expect_end(p, "else");
        open_tag(p, "{%", line);
        put(p, "else%}");
    }
    if (b->has_cut) put_cut(p);
}

static void read_end(gt_parser *p, int line)
{
    gt_block *b = innermost(p);
    gt_next(p);
    expect_end(p, "end");
    if (!b) gt_fail(p, SHOAL_EINVALID, "an \"end\" that belongs to nothing");
    if (p->rc) return;
    open_tag(p, "{%", line);
    put(p, b->kind == GT_RANGE ? "endfor%}" : "endif%}");
    if (b->kind == GT_RANGE && !b->in_else) p->n_ranges--;
    p->n_vars = b->n_vars;
    p->depth = b->depth;
    p->dot = b->dot;
    p->n_blocks--;
    if (b->has_cut) put_cut(p);
}

static void read_jump(gt_parser *p, const char *name, int line)
{
    gt_next(p);
    expect_end(p, name);
    if (p->n_ranges == 0) gt_fail(p, SHOAL_EINVALID, "\"%s\" stands in no range", name);
    open_tag(p, "{%", line);
    buf_printf(p->out, "%s%%}", name);
}

/* From now on the last turn is over. */
static void cut(gt_parser *p)
{
    p->is_cut = true;
    for (size_t i = 0; i < p->n_blocks; i++) p->blocks[i].has_cut = true;
    put_cut(p);
}

/* A value that is printed, or put into a variable. */
static void read_value(gt_parser *p, int line)
{
    p->shows_response = p->pipes_response = false;
    gt_pipeline pipe = gt_read_pipeline(p, false);
    if (p->rc == 0 && p->in.tok != GT_END) gt_fail(p, SHOAL_EINVALID, "a \")\" has no \"(\"");
    if (p->pipes_response && !p->is_cut) cut(p); /* as Ollama does, with the response itself */
    open_tag(p, pipe.n_declared ? "{%" : "{{", line);
    if (pipe.n_declared)
        buf_printf(p->out, "set v.x%u=%s%%}", pipe.declared[0].id, pipe.value);
    else
        buf_printf(p->out, "go_print(%s)}}", pipe.value);
    gt_declare(p, &pipe);
    if (p->shows_response && !p->is_cut) cut(p);
}

static void refuse_statement(gt_parser *p)
{
    static const char *const NOT_OFFERED[] = {"define", "template", "block"};
    for (size_t i = 0; i < sizeof NOT_OFFERED / sizeof *NOT_OFFERED; i++)
        if (gt_is_name(p, NOT_OFFERED[i]))
            gt_fail(p, SHOAL_EUNSUPPORTED, "\"%s\" is not offered: write its text where it is used",
                    NOT_OFFERED[i]);
}

static void read_action(gt_parser *p)
{
    gt_next(p);
    int line = p->in.line;
    refuse_statement(p);
    if (gt_is_name(p, "if"))
        read_condition(p, GT_IF, line);
    else if (gt_is_name(p, "with"))
        read_condition(p, GT_WITH, line);
    else if (gt_is_name(p, "range"))
        read_range(p, line);
    else if (gt_is_name(p, "else"))
        read_else(p, line);
    else if (gt_is_name(p, "end"))
        read_end(p, line);
    else if (gt_is_name(p, "break") || gt_is_name(p, "continue"))
        read_jump(p, gt_is_name(p, "break") ? "break" : "continue", line);
    else if (p->rc == 0)
        read_value(p, line);
}

/* ---- text --------------------------------------------------------------------------------------- */

static const char BLANKS[] = " \t\r\n";

static bool is_blank(char c)
{
    return c && strchr(BLANKS, c);
}

/* Behind the "{{-" or "{{" of a comment: step over it. */
static void skip_comment(gt_parser *p)
{
    const char *s = p->s + p->in.at, *end = memmem(s + 2, p->len - p->in.at - 2, "*/", 2);
    if (!end) {
        gt_fail(p, SHOAL_EINVALID, "a comment has no end");
        return;
    }
    for (; s < end; s++) p->in.line += *s == '\n';
    p->in.at = (size_t)(end + 2 - p->s);
    gt_next(p);
    if (p->rc == 0 && (p->in.tok != GT_END || (p->in.spaced && !p->in.trims)))
        gt_fail(p, SHOAL_EINVALID, "\"}}\" is missing directly behind a comment");
}

/* Step over blanks up to `end`. */
static const char *skip_to(gt_parser *p, const char *s, const char *end, bool blanks_only)
{
    for (; s < end && (!blanks_only || is_blank(*s)); s++) p->in.line += *s == '\n';
    return s;
}

/* Text up to the next action, whose "{{" and "{{- " are stepped over; false: none follows. */
static bool read_text(gt_parser *p, bool trims)
{
    const char *s = p->s + p->in.at, *all = p->s + p->len;
    const char *mark = memmem(s, p->len - p->in.at, "{{", 2), *end = mark ? mark : all, *stop = end;
    bool cuts = mark && all - mark > 3 && mark[2] == '-' && is_blank(mark[3]);
    if (trims) s = skip_to(p, s, end, true);
    while (cuts && stop > s && is_blank(stop[-1])) stop--;
    put_text(p, s, (size_t)(stop - s), p->in.line);
    skip_to(p, s, end + (cuts ? 4 : 0), false);
    p->in.at = (size_t)(end - p->s) + (cuts ? 4 : mark ? 2 : 0);
    return mark != NULL;
}

static void read_template(gt_parser *p)
{
    for (bool trims = false; p->rc == 0 && read_text(p, trims); trims = p->in.trims) {
        bool comment = p->len - p->in.at >= 2 && memcmp(p->s + p->in.at, "/*", 2) == 0;
        if (comment)
            skip_comment(p);
        else
            read_action(p);
    }
    gt_block *b = innermost(p);
    if (b && p->rc == 0) p->in.line = b->line;
    if (b) gt_fail(p, SHOAL_EINVALID, "this block has no \"end\"");
}

/* ---- all ---------------------------------------------------------------------------------------- */

/* The data of a template with .Messages, or a loop over the turns of one without. */
static void put_beginning(gt_parser *p, const gotemplate_uses *uses)
{
    put(p, "{%set v=namespace()%}");
    put(p, p->in_turns ? "{%for d in go_turns(messages" : "{%set d=go_data(messages");
    if (!p->in_turns) put(p, uses->tools ? ", tools" : ", none");
    put(p, uses->thinking ? ", enable_thinking, reasoning_effort" : ", go_nil, go_nil");
    put(p, uses->suffix ? ", suffix)" : ", go_nil)");
    put(p, "%}");
}

static int write(const gt_parser *fresh, buf *out, gotemplate_uses *uses, bool in_turns)
{
    gt_parser p = *fresh;
    p.out = out;
    p.in_turns = in_turns;
    put_beginning(&p, uses);
    read_template(&p);
    if (p.rc == 0 && !p.uses.messages && !p.uses.response)
        put(&p, "{{go_print(d['Response'])}}"); /* as Ollama */
    if (in_turns) put(&p, "{%endfor%}");
    if (p.rc == 0 && out->failed) gt_nomem(&p);
    *uses = p.uses;
    return p.rc;
}

static int check_text(const char *source, size_t len, shoal_err *err)
{
    size_t bad = len;
    const char *nul = len ? memchr(source, '\0', len) : NULL;
    if (len > GOTEMPLATE_MAX_BYTES)
        return err_set(err, SHOAL_ELIMIT, "it has %zu bytes, and at most %d are taken", len,
                       GOTEMPLATE_MAX_BYTES);
    if (!nul && utf8_valid(source, len, &bad)) return 0;
    int line = 1;
    if (nul) bad = (size_t)(nul - source);
    for (size_t i = 0; i < bad; i++) line += source[i] == '\n';
    return err_set(err, SHOAL_EINVALID, "line %d: this is no text in UTF-8", line);
}

int gotemplate_to_jinja(buf *ret, const char *source, size_t len, gotemplate_uses *ret_uses, shoal_err *err)
{
    gt_parser p = {
        .s = len ? source : "", .len = len, .in = {.line = 1}, .out_line = 1, .dot = "d", .err = err};
    gotemplate_uses uses = {0};
    buf first = {0}, second = {0};
    int rc = check_text(source, len, err);
    if (rc == 0 && !(p.mem = arena_new(16384))) rc = err_nomem(err);
    if (rc == 0) rc = write(&p, &first, &uses, false); /* says what it looks at */
    if (rc == 0) rc = write(&p, &second, &uses, !uses.messages);
    if (rc == 0 && buf_join(ret, &second) != 0) rc = err_nomem(err);
    if (rc == 0 && ret_uses) *ret_uses = uses;
    arena_free(p.mem);
    buf_done(&first);
    buf_done(&second);
    return rc;
}
