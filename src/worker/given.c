/* given.c: replies as a model writes them; see given.h. */
#include "worker/given.h"

#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

typedef struct writing {
    buf *text, *marks;
} writing;

/* What was appended last came from the request, or from the syntax. */
static void mark(const writing *w, bool brought)
{
    while (!w->marks->failed && w->marks->len < w->text->len) buf_putc(w->marks, (char)brought);
}

static void put(const writing *w, const char *s)
{
    buf_puts(w->text, s);
    mark(w, false);
}

static void put_given(const writing *w, const char *s)
{
    buf_puts(w->text, s);
    mark(w, true);
}

static void put_call(const writing *w, const toolcall_syntax *syntax, const Shoal__V1__ToolCallDelta *c)
{
    if (syntax->form == CALL_ARGS) {
        put_given(w, c->name);
        put(w, syntax->middle);
        put_given(w, c->arguments);
        return;
    }
    put(w, "{\"name\": ");
    json_put_string(w->text, c->name, strlen(c->name));
    mark(w, true);
    put(w, ", \"");
    put(w, syntax->arguments ? syntax->arguments : "arguments");
    put(w, "\": ");
    put_given(w, c->arguments);
    put(w, "}");
}

static void put_open(const writing *w, const toolcall_syntax *syntax)
{
    put(w, syntax->open);
    put(w, syntax->head);
}

static void put_close(const writing *w, const toolcall_syntax *syntax)
{
    put(w, syntax->tail);
    put(w, syntax->close);
}

void given_write(const toolcall_syntax *syntax, const Shoal__V1__Reply *r, buf *text, buf *marks)
{
    writing w = {text, marks};
    put_given(&w, r->text);
    if (r->n_calls > 0 && text->len > 0 && !syntax->list) put(&w, syntax->between);
    if (r->n_calls > 0 && syntax->list) put_open(&w, syntax);
    for (size_t i = 0; i < r->n_calls; i++) {
        if (i > 0) put(&w, syntax->between);
        if (!syntax->list) put_open(&w, syntax);
        put_call(&w, syntax, r->calls[i]);
        if (!syntax->list) put_close(&w, syntax);
    }
    if (r->n_calls > 0 && syntax->list) put_close(&w, syntax);
}

static int check_utf8(const buf *text, shoal_err *err)
{
    size_t bad;
    if (utf8_valid(text->data ? text->data : "", text->len, &bad)) return 0;
    return err_set(err, SHOAL_EINVALID, "the reply is not UTF-8 at byte %zu", bad);
}

int given_encode(const tokenizer *t, const toolcall_syntax *syntax, const Shoal__V1__Reply *r,
                 size_t max_tokens, encoding *ret, shoal_err *err)
{
    buf text = {0}, marks = {0};
    given_write(syntax, r, &text, &marks);
    int rc = text.failed || marks.failed ? err_nomem(err) : check_utf8(&text, err);
    if (rc == 0 && text.len > 0)
        rc = tokenizer_encode_prompt(t, text.data, text.len, (const uint8_t *)marks.data, ret, err);
    buf_done(&text);
    buf_done(&marks);
    if (rc == 0 && ret->n > max_tokens)
        return err_set(err, SHOAL_ELIMIT, "%zu tokens, at most %zu are taken", ret->n, max_tokens);
    return rc;
}
