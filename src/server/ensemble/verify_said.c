/* verify_said.c: events into an answer, and an answer into events; see verify_said.h. */
#include "ensemble/verify_said.h"

#include <string.h>

#include "base/utf8.h"

/* ---- events into an answer ----------------------------------------------------------------------- */

typedef struct said {
    buf text, names[VERIFY_CALLS_MAX], arguments[VERIFY_CALLS_MAX];
    size_t n_calls;
    bool more, plain;
} said;

static void hear_call(said *s, const Shoal__V1__ToolCallDelta *d)
{
    if (d->index >= VERIFY_CALLS_MAX) {
        s->more = true;
        return;
    }
    if (d->index >= s->n_calls) s->n_calls = d->index + 1;
    if (d->name) buf_puts(&s->names[d->index], d->name);
    if (d->arguments) buf_puts(&s->arguments[d->index], d->arguments);
}

static void hear(said *s, const Shoal__V1__GenerateEvent *ev)
{
    if (ev->delta) utf8_put_c(&s->text, (const char *)ev->delta->text.data, ev->delta->text.len);
    for (size_t i = 0; ev->delta && i < ev->delta->n_tool_calls; i++) hear_call(s, ev->delta->tool_calls[i]);
    if (!ev->refined) return;
    s->plain = false;
    buf_clear(&s->text);
    buf_puts(&s->text, ev->refined->text);
}

static const char *verify_said_keep(const buf *b, bool *ret_nomem, arena *mem)
{
    const char *s = b->failed ? NULL : arena_strndup(mem, b->len ? b->data : "", b->len);
    *ret_nomem |= !s;
    return s ? s : "";
}

static int verify_said_give(verify_answer *ret, const said *s, const char *given, arena *mem)
{
    bool nomem = false;
    size_t n = s->n_calls + s->more;
    device_call *calls = arena_alloc(mem, (n + 1) * sizeof *calls);
    const char *text = verify_said_keep(&s->text, &nomem, mem);
    if (!calls) return SHOAL_ENOMEM;
    for (size_t i = 0; i < s->n_calls; i++)
        calls[i] = (device_call){verify_said_keep(&s->names[i], &nomem, mem),
                                 verify_said_keep(&s->arguments[i], &nomem, mem)};
    if (s->more) calls[s->n_calls] = (device_call){"", ""};
    size_t n_given = strlen(given);
    if (strncmp(text, given, n_given) == 0) text += n_given;
    *ret = (verify_answer){text, calls, n};
    return nomem ? SHOAL_ENOMEM : 0;
}

int verify_said_read(verify_answer *ret, bool *ret_plain, const response_buffer *from, const call_order *o,
                     const verify_case *k, arena *mem)
{
    said *s = arena_alloc(mem, sizeof *s);
    if (!s) return SHOAL_ENOMEM;
    response_buffer again = *from; /* a second reading of the same bytes */
    again.at = 0;
    s->plain = true;
    int rc = 0;
    while (rc == 0 && response_buffer_has_more(&again)) {
        Shoal__V1__GenerateEvent *ev = (Shoal__V1__GenerateEvent *)response_buffer_next(&again, o);
        if (ev)
            hear(s, ev);
        else
            rc = SHOAL_ENOMEM;
        if (ev) response_buffer_free(&ev->base);
    }
    if (rc == 0) rc = verify_said_give(ret, s, k->given, mem);
    *ret_plain = s->plain;
    buf_done(&s->text);
    for (size_t i = 0; i < VERIFY_CALLS_MAX; i++) {
        buf_done(&s->names[i]);
        buf_done(&s->arguments[i]);
    }
    return rc;
}

/* ---- an answer into events ----------------------------------------------------------------------- */

/* Started or Done as the member said it, to be freed by response_buffer_free; NULL: it did not say one. */
static Shoal__V1__GenerateEvent *verify_said_find(const response_buffer *from, const call_order *o, bool done)
{
    response_buffer again = *from;
    again.at = 0;
    while (response_buffer_has_more(&again)) {
        Shoal__V1__GenerateEvent *ev = (Shoal__V1__GenerateEvent *)response_buffer_next(&again, o);
        if (!ev || (done ? ev->done != NULL : ev->started != NULL)) return ev;
        response_buffer_free(&ev->base);
    }
    return NULL;
}

static void put_started(response_buffer *to, const response_buffer *from, const call_order *o)
{
    Shoal__V1__Started none = SHOAL__V1__STARTED__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT, *was = verify_said_find(from, o, false);
    ev.started = was ? was->started : &none;
    response_buffer_note(to, o, &ev.base);
    if (was) response_buffer_free(&was->base);
}

static void verify_said_put_text(response_buffer *to, const call_order *o, const verify_case *k,
                                 const verify_answer *a)
{
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    buf text = {0};
    buf_puts(&text, k->given);
    buf_puts(&text, a->text);
    d.text = (ProtobufCBinaryData){text.len, (uint8_t *)text.data};
    ev.delta = &d;
    if (text.len) response_buffer_note(to, o, &ev.base);
    to->lost |= text.failed;
    buf_done(&text);
}

static void put_call(response_buffer *to, const call_order *o, const device_call *c, size_t i)
{
    Shoal__V1__ToolCallDelta call = SHOAL__V1__TOOL_CALL_DELTA__INIT, *list[] = {&call};
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    call.index = (uint32_t)i;
    call.name = (char *)(uintptr_t)c->name;
    call.arguments = (char *)(uintptr_t)c->arguments;
    d.tool_calls = list;
    d.n_tool_calls = 1;
    ev.delta = &d;
    response_buffer_note(to, o, &ev.base);
}

static void put_done(response_buffer *to, const response_buffer *from, const call_order *o, bool calls)
{
    Shoal__V1__Done done = SHOAL__V1__DONE__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT, *was = verify_said_find(from, o, true);
    if (was) done = *was->done; /* its strings stay was's */
    done.finish = (char *)(uintptr_t)(calls ? "tool_calls" : "stop");
    ev.done = &done;
    response_buffer_note(to, o, &ev.base);
    if (was) response_buffer_free(&was->base);
}

int verify_said_make(response_buffer *ret, const response_buffer *from, const call_order *o,
                     const verify_case *k, const verify_answer *a, const char *model)
{
    call_result r = call_result_of(o, 0, "");
    r.model = model;
    if (response_buffer_is_whole(from)) r = from->result;
    response_buffer_init(ret, model);
    put_started(ret, from, o);
    verify_said_put_text(ret, o, k, a);
    for (size_t i = 0; i < a->n_calls; i++) put_call(ret, o, &a->calls[i], i);
    put_done(ret, from, o, a->n_calls > 0);
    response_buffer_end(ret, o, &r);
    return ret->lost ? SHOAL_ENOMEM : 0;
}

/* ---- a choice ------------------------------------------------------------------------------------ */

call_order *verify_said_choose(const call_order *o, const char *model, const device_option *options, size_t n,
                               arena *mem)
{
    Shoal__V1__GenerateRequest *r = (Shoal__V1__GenerateRequest *)call_order_request(o);
    char **texts = arena_alloc(mem, n * sizeof *texts);
    bool have = r && texts;
    for (size_t i = 0; have && i < n; i++) have = (texts[i] = device_option_text(&options[i], mem)) != NULL;
    call_context ctx = call_context_beside(o, NULL);
    call_order *other = NULL;
    if (have) {
        Shoal__V1__GenerateRequest q = *r; /* borrows all of r but the choices */
        q.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES;
        q.choices = texts;
        q.n_choices = n;
        other = call_order_new(CALL_GENERATE, model, &q.base, &ctx);
    }
    if (r) response_buffer_free(&r->base);
    return other;
}
