/* A streamed reply gives the same text and calls however it is cut. The first byte is the piece size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What came out, with a mark wherever something else than the last goes on. */
typedef struct script {
    buf b;
    char last;
    int n_begun, n_ended;
    bool cut; /* by a lack of memory */
} script;

static void mark(script *s, char kind)
{
    if (s->last != kind) buf_printf(&s->b, "\n%c:", kind);
    s->last = kind;
}

static void on_text(void *user, const char *p, size_t n)
{
    mark(user, 't');
    buf_append(&((script *)user)->b, p, n);
}

static void on_begin(void *user, int index, const char *name)
{
    script *s = user;
    if (index != s->n_begun++ || s->n_ended != index) abort();
    mark(s, 'b');
    buf_puts(&s->b, name);
}

static void on_arguments(void *user, int index, const char *json, size_t n)
{
    script *s = user;
    if (index != s->n_begun - 1 || s->n_ended != index) abort();
    mark(s, 'a');
    buf_append(&s->b, json, n);
}

static void on_end(void *user, int index)
{
    script *s = user;
    if (index != s->n_ended++) abort();
    mark(s, 'e');
}

static script run(const char *s, size_t n, size_t piece)
{
    script out = {0};
    toolcall_sink sink = {
        .user = &out, .text = on_text, .begin = on_begin, .arguments = on_arguments, .end = on_end};
    toolcall_parser *p = toolcall_new(&sink);
    out.cut = !holds(p);
    if (out.cut) return out;
    for (size_t at = 0; at < n && !out.cut; at += piece)
        out.cut = !holds(toolcall_push(p, s + at, n - at < piece ? n - at : piece) == 0);
    if (!out.cut) out.cut = !holds(toolcall_end(p) == 0);
    if (!out.cut && (toolcall_count(p) != out.n_begun || out.n_begun != out.n_ended)) abort();
    toolcall_free(p);
    out.cut |= out.b.failed;
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const char *text = (const char *)data + 1;
    script whole = run(text, size - 1, size), pieces = run(text, size - 1, data[0] ? data[0] : 1);
    bool compare = !whole.cut && !pieces.cut;
    if (compare &&
        (whole.b.len != pieces.b.len || (whole.b.len && memcmp(whole.b.data, pieces.b.data, whole.b.len))))
        abort();
    buf_done(&whole.b);
    buf_done(&pieces.b);
    return 0;
}
