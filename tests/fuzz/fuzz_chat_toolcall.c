/* A streamed reply gives the same text and calls however it is cut into pieces, in every syntax, and
 * arguments that came whole are JSON. The first byte is the piece size, and says whether the reply was cut
 * off (128); the second says the syntax, whether tools are offered (not: 128) and whether calls that nobody
 * is sure of are asked about (64). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "memory.h"
#include "chat/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What came out, with a mark wherever something else than the last goes on. */
typedef struct script {
    buf b;
    char last;
    buf arguments; /* of the newest call, to be looked at where `whole` */
    bool whole;
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
    buf_clear(&s->arguments);
    buf_puts(&s->b, name);
}

static void on_arguments(void *user, int index, const char *json, size_t n)
{
    script *s = user;
    if (index != s->n_begun - 1 || s->n_ended != index) abort();
    mark(s, 'a');
    buf_append(&s->b, json, n);
    buf_append(&s->arguments, json, n);
}

static void on_end(void *user, int index)
{
    script *s = user;
    json_t *v = NULL;
    if (index != s->n_ended++) abort();
    mark(s, 'e');
    s->cut |= s->arguments.failed;
    if (!s->whole || s->cut) return;
    int rc = json_parse(&v, s->arguments.data ? s->arguments.data : "", s->arguments.len, "arguments", NULL);
    if (holds(rc != SHOAL_ENOMEM) && !json_is_object(v)) abort();
    json_decref(v);
}

/* Calls of which nobody is sure come whole; some may begin. */
static bool may(void *user, const char *name, const char *json, size_t n)
{
    json_t *v = NULL;
    bool object = json_parse(&v, json, n, "arguments", NULL) == 0 && json_is_object(v);
    if (!v && holds(false)) abort();
    bool ok = !v || (object && n % 2);
    if (!v) ((script *)user)->cut = true;
    json_decref(v);
    return ok;
}

static const char TOOLS[] =
    "[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
    "\"integer\"},\"b\":{\"type\":\"string\"},\"c\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/"
    "d\"}]}},\"$defs\":{\"d\":{\"type\":[\"string\",\"array\"]}}}}},{\"function\":{\"name\":\"get.x_1\"}}]";

static script run(uint8_t how, bool cut_off, const char *s, size_t n, size_t piece)
{
    script out = {0};
    toolcall_sink sink = {
        .user = &out, .text = on_text, .begin = on_begin, .arguments = on_arguments, .end = on_end};
    if (how & 0x40) sink.may = may;
    size_t n_syntaxes;
    const toolcall_syntax *all = toolcall_syntaxes(&n_syntaxes);
    const toolcall_syntax *syntax = &all[(how & 0x3f) % n_syntaxes];
    json_t *tools = json_loads(TOOLS, 0, NULL);
    out.whole = syntax->form == CALL_TAGS && !cut_off && utf8_valid(s, n, NULL) && !memchr(s, 0, n);
    toolcall_parser *p = toolcall_new(&sink, syntax, how & 0x80 ? NULL : tools);
    out.cut = !holds(tools) || !holds(p);
    json_decref(tools);
    for (size_t at = 0; at < n && !out.cut; at += piece)
        out.cut |= !holds(toolcall_push(p, s + at, n - at < piece ? n - at : piece) == 0);
    if (!out.cut) out.cut |= !holds(toolcall_end(p, cut_off) == 0);
    if (!out.cut && (toolcall_count(p) != out.n_begun || out.n_begun != out.n_ended)) abort();
    toolcall_free(p);
    out.cut |= out.b.failed;
    return out;
}

/* What is no JSON must say so. */
static void translate(const char *s, size_t n)
{
    static const char *const names[] = {"lfm2", "function-gemma", "gemma-4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        buf out = {0};
        json_t *v = NULL;
        if (toolcall_arguments(&out, toolcall_find(names[i]), s, n) && !out.failed && out.data &&
            holds(json_parse(&v, out.data, out.len, "arguments", NULL) != SHOAL_ENOMEM) && !v)
            abort();
        json_decref(v);
        buf_done(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    const char *text = (const char *)data + 2;
    size_t n = size - 2, piece = data[0] & 0x7f ? data[0] & 0x7f : 1;
    bool cut_off = data[0] & 0x80;
    script whole = run(data[1], cut_off, text, n, size), pieces = run(data[1], cut_off, text, n, piece);
    bool compare = !whole.cut && !pieces.cut;
    if (compare &&
        (whole.b.len != pieces.b.len || (whole.b.len && memcmp(whole.b.data, pieces.b.data, whole.b.len))))
        abort();
    translate(text, n);
    buf_done(&whole.b);
    buf_done(&pieces.b);
    buf_done(&whole.arguments);
    buf_done(&pieces.arguments);
    return 0;
}
