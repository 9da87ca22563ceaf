/* delta.c: news of a stream packed into one message; see delta.h. The buffers move as they grow, so pieces
 * are kept as offsets and become pointers only in delta_pack. */
#include "worker/delta.h"

#include <math.h>
#include <string.h>

#include "shoal/v1/worker.pb-c.h"

typedef struct tool_piece {
    int index;
    size_t name, arguments; /* offsets into strings */
} tool_piece;

static buf *bufs(delta *d, int i)
{
    buf *const all[] = {&d->ids,   &d->thought, &d->text,     &d->logprobs,
                        &d->tools, &d->strings, &d->pointers, &d->earlier_sums};
    return i < (int)(sizeof all / sizeof *all) ? all[i] : NULL;
}

void delta_done(delta *d)
{
    for (int i = 0; bufs(d, i); i++) buf_done(bufs(d, i));
}

static void delta_clear(delta *d)
{
    for (int i = 0; bufs(d, i); i++) buf_clear(bufs(d, i));
    d->n_logprobs = 0;
}

bool delta_failed(delta *d)
{
    for (int i = 0; bufs(d, i); i++)
        if (bufs(d, i)->failed) return true;
    return false;
}

bool delta_is_empty(const delta *d)
{
    return d->ids.len == 0 && d->thought.len == 0 && d->text.len == 0 && d->tools.len == 0;
}

bool delta_has_tools(const delta *d)
{
    return d->tools.len > 0;
}

void delta_skip(delta *d, uint64_t n_bytes)
{
    d->n_skip = n_bytes;
    d->cuts = n_bytes > 0;
}

bool delta_skips(const delta *d)
{
    return d->n_skip > 0 || d->bad_cut;
}

void delta_add_id(delta *d, int32_t id, double prob_sum)
{
    if (d->ids.len) buf_append(&d->earlier_sums, &d->prob_sum, sizeof d->prob_sum);
    buf_append(&d->ids, &id, sizeof id);
    d->prob_sum = prob_sum;
}

/* What of s[0..n) is not to be skipped. */
static void add_unskipped(delta *d, buf *to, const char *s, size_t n)
{
    size_t gone = d->n_skip < n ? (size_t)d->n_skip : n;
    d->n_skip -= gone;
    if (gone == n) return;
    if (d->cuts && ((unsigned char)s[gone] & 0xC0) == 0x80) d->bad_cut = true;
    d->cuts = false;
    buf_append(to, s + gone, n - gone);
}

void delta_add_text(delta *d, const char *s, size_t n)
{
    add_unskipped(d, &d->text, s, n);
}

void delta_add_thought(delta *d, const char *s, size_t n)
{
    add_unskipped(d, &d->thought, s, n);
}

static void add_logprob(delta *d, const tokenizer *t, int32_t id, float logprob, size_t n_top)
{
    Shoal__V1__TokenLogprob p = SHOAL__V1__TOKEN_LOGPROB__INIT;
    p.id = id;
    p.logprob = logprob;
    p.n_top = n_top;
    size_t len = 0;
    const char *bytes = t ? tokenizer_bytes(t, id, &len, &(bool){false}) : NULL;
    if (bytes) p.text = (ProtobufCBinaryData){.len = len, .data = (uint8_t *)bytes};
    buf_append(&d->logprobs, &p, sizeof p);
}

void delta_add_logprob(delta *d, const tokenizer *t, const gen_event *ev)
{
    add_logprob(d, t, ev->id, ev->logprob, ev->n_top);
    for (size_t i = 0; i < ev->n_top; i++) add_logprob(d, t, ev->top[i].id, ev->top[i].logprob, 0);
    d->n_logprobs++;
}

void delta_add_first(delta *d, const tokenizer *t, int32_t id)
{
    add_logprob(d, t, id, NAN, 0);
    d->n_logprobs++;
}

static size_t delta_put_string(delta *d, const char *s)
{
    size_t at = d->strings.len;
    buf_append(&d->strings, s, strlen(s) + 1);
    return at;
}

/* A name comes whole or not at all. */
void delta_add_tool_begin(delta *d, int index, const char *name)
{
    size_t n = strlen(name);
    tool_piece p = {.index = index};
    if (d->n_skip >= n && d->n_skip > 0) {
        d->n_skip -= n;
        return;
    }
    d->bad_cut |= d->n_skip > 0;
    d->cuts = false;
    p.name = delta_put_string(d, name);
    p.arguments = delta_put_string(d, "");
    buf_append(&d->tools, &p, sizeof p);
}

/* Arguments are C strings. They are JSON, which has U+0000 as an escape only, unless the reply breaks off or
 * breaks its syntax. */
static void add_arguments(delta *d, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t run = strnlen(s + i, n - i);
        add_unskipped(d, &d->strings, s + i, run);
        i += run;
        if (i == n) break;
        add_unskipped(d, &d->strings, "\xEF\xBF\xBD", 3);
        i++;
    }
}

/* The last string of `strings` is always the arguments of the last piece, so they can grow in place. */
void delta_add_tool_arguments(delta *d, int index, const char *s, size_t n)
{
    size_t n_tools = d->tools.len / sizeof(tool_piece);
    const tool_piece *last = n_tools ? (tool_piece *)(void *)d->tools.data + n_tools - 1 : NULL;
    if (last && last->index == index && d->strings.len > 0) {
        d->strings.len--;
        add_arguments(d, s, n);
        buf_append(&d->strings, "", 1);
        return;
    }
    tool_piece p = {.index = index};
    p.name = delta_put_string(d, "");
    p.arguments = d->strings.len;
    add_arguments(d, s, n);
    if (d->strings.len == p.arguments) {
        d->strings.len = p.name; /* all of it is skipped */
        return;
    }
    buf_append(&d->strings, "", 1);
    buf_append(&d->tools, &p, sizeof p);
}

static size_t align16(size_t n)
{
    return (n + 15) & ~(size_t)15;
}

/* Fill `at` with pointers to the chosen tokens, and after them those to each one's alternatives. */
static void link_logprobs(delta *d, Shoal__V1__Delta *m, void **at)
{
    Shoal__V1__TokenLogprob *p = (void *)d->logprobs.data;
    void **chosen = at, **top = at + d->n_logprobs;
    m->logprobs = (Shoal__V1__TokenLogprob **)chosen;
    m->n_logprobs = d->n_logprobs;
    for (size_t i = 0; i < d->n_logprobs; i++) {
        size_t n_top = p->n_top;
        *chosen++ = p;
        p->top = (Shoal__V1__TokenLogprob **)top;
        for (size_t k = 1; k <= n_top; k++) *top++ = p + k;
        p += 1 + n_top;
    }
}

static void link_tools(delta *d, Shoal__V1__Delta *m, void **at, Shoal__V1__ToolCallDelta *calls)
{
    const tool_piece *pieces = (void *)d->tools.data;
    m->n_tool_calls = d->tools.len / sizeof *pieces;
    m->tool_calls = (Shoal__V1__ToolCallDelta **)at;
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        calls[i] = (Shoal__V1__ToolCallDelta)SHOAL__V1__TOOL_CALL_DELTA__INIT;
        calls[i].index = (uint32_t)pieces[i].index;
        calls[i].name = d->strings.data + pieces[i].name;
        calls[i].arguments = d->strings.data + pieces[i].arguments;
        at[i] = &calls[i];
    }
}

int delta_pack(delta *d, buf *out)
{
    size_t n_lp = d->logprobs.len / sizeof(Shoal__V1__TokenLogprob),
           n_tools = d->tools.len / sizeof(tool_piece);
    size_t tool_at = align16(n_lp * sizeof(void *)), call_at = align16(tool_at + n_tools * sizeof(void *));
    int rc = buf_reserve(&d->pointers, call_at + n_tools * sizeof(Shoal__V1__ToolCallDelta));
    Shoal__V1__Delta m = SHOAL__V1__DELTA__INIT;
    if (rc == 0 && !delta_failed(d)) {
        m.n_ids = d->ids.len / sizeof(int32_t);
        m.ids = (void *)d->ids.data;
        if (m.n_ids) m.prob_sum = d->prob_sum;
        m.n_earlier_prob_sums = d->earlier_sums.len / sizeof(double);
        m.earlier_prob_sums = (void *)d->earlier_sums.data;
        m.reasoning = (ProtobufCBinaryData){d->thought.len, (uint8_t *)d->thought.data};
        m.text = (ProtobufCBinaryData){d->text.len, (uint8_t *)d->text.data};
        if (n_lp) link_logprobs(d, &m, (void *)d->pointers.data);
        if (n_tools)
            link_tools(d, &m, (void *)(d->pointers.data + tool_at), (void *)(d->pointers.data + call_at));
        Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
        ev.delta = &m;
        size_t n = shoal__v1__generate_event__get_packed_size(&ev);
        rc = buf_reserve(out, n);
        if (rc == 0) out->len += shoal__v1__generate_event__pack(&ev, (uint8_t *)out->data + out->len);
    } else {
        rc = SHOAL_ENOMEM;
    }
    delta_clear(d);
    return rc;
}
