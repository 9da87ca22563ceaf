/* teacher_forced.c: replies as a model writes them; see teacher_forced.h. */
#include "worker/teacher_forced.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "chat/toolcall_write.h"

void teacher_forced_write(const toolcall_syntax *syntax, const Shoal__V1__Reply *r, buf *text, buf *marks)
{
    toolcall_call *calls = calloc(r->n_calls + 1, sizeof *calls);
    buf_puts(text, r->text);
    while (!marks->failed && marks->len < text->len) buf_putc(marks, 1);
    for (size_t i = 0; calls && i < r->n_calls; i++)
        calls[i] = (toolcall_call){r->calls[i]->name, r->calls[i]->arguments};
    if (calls)
        toolcall_write(text, marks, syntax, calls, r->n_calls);
    else
        text->failed = true;
    free(calls);
}

static int check_utf8(const buf *text, shoal_err *err)
{
    size_t bad;
    if (utf8_valid(text->data ? text->data : "", text->len, &bad)) return 0;
    return err_set(err, SHOAL_EINVALID, "the reply is not UTF-8 at byte %zu", bad);
}

int teacher_forced_encode(const tokenizer *t, const toolcall_syntax *syntax, const Shoal__V1__Reply *r,
                          size_t max_tokens, encoding *ret, shoal_err *err)
{
    buf text = {0}, marks = {0};
    teacher_forced_write(syntax, r, &text, &marks);
    int rc = text.failed || marks.failed ? err_nomem(err) : check_utf8(&text, err);
    if (rc == 0 && text.len > 0)
        rc = tokenizer_encode_prompt(t, text.data, text.len, (const uint8_t *)marks.data, ret, err);
    buf_done(&text);
    buf_done(&marks);
    if (rc == 0 && ret->n > max_tokens)
        return err_set(err, SHOAL_ELIMIT, "%zu tokens, at most %zu are taken", ret->n, max_tokens);
    return rc;
}
