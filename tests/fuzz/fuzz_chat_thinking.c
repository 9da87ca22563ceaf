/* A thought and an answer are the same however the stream is cut, and nothing is lost but markers and white
 * space. The first byte is the piece size, the second says how (run). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "chat/thinking.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct parts {
    buf thought, answer;
    bool cut; /* by a lack of memory */
} parts;

static void keep(parts *all, const thinking_parts *p)
{
    buf_append(&all->thought, p->thought, p->n_thought);
    buf_append(&all->answer, p->answer, p->n_answer);
}

/* The second byte: the form (of those in the table, or none), whether the prompt opened the thought (128),
 * and whether calls may end it (64). */
static parts run(uint8_t how, const char *s, size_t n, size_t piece)
{
    static const char *const ends[] = {"<tool_call>", NULL};
    parts all = {0};
    thinking t;
    thinking_parts p;
    size_t n_forms, which;
    const thinking_form *forms = thinking_forms(&n_forms);
    which = (how & 63) % (n_forms + 1);
    all.cut = !holds(
        thinking_init(&t, which < n_forms ? &forms[which] : NULL, how & 128, how & 64 ? ends : NULL) == 0);
    for (size_t at = 0; at < n && !all.cut; at += piece) {
        thinking_push(&t, s + at, n - at < piece ? n - at : piece, &p);
        keep(&all, &p);
    }
    if (!all.cut) {
        thinking_end(&t, NULL, 0, &p);
        keep(&all, &p);
        all.cut = thinking_failed(&t) || all.thought.failed || all.answer.failed;
    }
    if (!all.cut && !t.any && all.thought.len > 0) abort();
    thinking_done(&t);
    return all;
}

static bool same(const buf *a, const buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const char *text = (const char *)data + 2;
    size_t n = size - 2;
    parts whole = run(data[1], text, n, size), pieces = run(data[1], text, n, data[0] ? data[0] : 1);
    bool compare = !whole.cut && !pieces.cut;
    if (compare && (!same(&whole.thought, &pieces.thought) || !same(&whole.answer, &pieces.answer))) abort();
    if (compare && whole.thought.len + whole.answer.len > n) abort();
    buf_done(&whole.thought);
    buf_done(&whole.answer);
    buf_done(&pieces.thought);
    buf_done(&pieces.answer);
    return 0;
}
