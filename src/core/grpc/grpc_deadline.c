/* grpc_deadline.c: the server's calls whose clients said how long they wait, the first to be due in front.
 *
 * Most have the same timeout, so that a new one belongs at the end or near it: it is sought from there. */
#include "base/clock.h"
#include "grpc/grpc_internal.h"

static void on_due(uv_timer_t *t);

static void arm(grpc_server *s)
{
    uint64_t now = clock_ns();
    if (!s->first_due) {
        uv_timer_stop(&s->due);
        return;
    }
    uint64_t at = s->first_due->deadline_ns;
    uv_timer_start(&s->due, on_due, at > now ? (at - now) / 1000000 + 1 : 0, 0);
}

/* Those that are due end; what handlers do meanwhile may take others away, so each look is a new one. */
static void on_due(uv_timer_t *t)
{
    grpc_server *s = t->data;
    for (grpc_call *c; (c = s->first_due) && c->deadline_ns <= clock_ns();)
        grpc_call_fail(c, GRPC_DEADLINE_EXCEEDED, "the deadline was missed");
    arm(s);
}

void grpc_deadline_open(grpc_server *s, uv_loop_t *loop)
{
    uv_timer_init(loop, &s->due);
    s->due.data = s;
    uv_unref((uv_handle_t *)&s->due);
}

void grpc_deadline_add(grpc_call *c)
{
    grpc_server *s = c->server;
    if (!c->deadline_ns) return;
    grpc_call *before = s->last_due;
    while (before && before->deadline_ns > c->deadline_ns) before = before->due_prev;
    c->due_prev = before;
    c->due_next = before ? before->due_next : s->first_due;
    *(before ? &before->due_next : &s->first_due) = c;
    *(c->due_next ? &c->due_next->due_prev : &s->last_due) = c;
    if (s->first_due == c) arm(s);
}

/* The timer may come too early then, which costs a look. */
void grpc_deadline_take(grpc_call *c)
{
    grpc_server *s = c->server;
    if (!c->deadline_ns) return;
    *(c->due_prev ? &c->due_prev->due_next : &s->first_due) = c->due_next;
    *(c->due_next ? &c->due_next->due_prev : &s->last_due) = c->due_prev;
}
