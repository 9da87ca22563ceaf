/* control_pass.c: joins and renewals at a gateway without the CA. The one that it follows answers them: a
 * token is enough by itself, and a renewal is signed by the certificate that is renewed, so that nothing
 * depends on who carries it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "logging/log.h"
#include "control/control_impl.h"

enum { PASSED_MAX = 64, PASSED_MS = 12000 };

typedef struct passed {
    control *g;
    grpc_call *call;
    grpc_client_call *there;
} passed;

/* The joining machine learns as much as it would there; who guesses is counted here, where it is. */
static void control_pass_finish(passed *p, grpc_status status, const char *message)
{
    char why[256];
    control *g = p->g;
    const char *where = g->follow ? attach_address(g->follow) : "";
    bool is_attempt = status == GRPC_UNAUTHENTICATED || status == GRPC_INVALID_ARGUMENT;
    bool lost = status == GRPC_CANCELLED || status == GRPC_UNAVAILABLE || status == GRPC_DEADLINE_EXCEEDED;
    if (is_attempt && !grpc_call_peer(p->call))
        guard_failed(&g->guard, grpc_call_from(p->call), control_now_ns(g) / 1000000);
    snprintf(why, sizeof why, "this gateway has no CA, and the one that has, at %.100s, does not answer now",
             where);
    grpc_call_set_data(p->call, NULL);
    grpc_call_end(p->call, lost ? GRPC_UNAVAILABLE : status, lost ? why : message);
    g->n_passed--;
    free(p);
}

static void on_answer(void *user, const uint8_t *msg, size_t n)
{
    passed *p = user;
    grpc_call_send(p->call, msg, n);
}

static void control_pass_on_end(void *user, grpc_status status, const char *message)
{
    control_pass_finish(user, status, message);
}

static void on_caller_gone(void *user, grpc_call *c)
{
    passed *p = grpc_call_data(c);
    if (!p) return;
    grpc_client_cancel(p->there);
    p->g->n_passed--;
    free(p);
}

void control_pass_on(control *g, grpc_call *c, const char *path, const uint8_t *msg, size_t n)
{
    passed *p = g->n_passed < PASSED_MAX ? calloc(1, sizeof *p) : NULL;
    const grpc_client_events ev = {.user = p, .message = on_answer, .end = control_pass_on_end};
    if (!p || !g->follow) {
        free(p);
        control_end_crowded(c);
        return;
    }
    *p = (passed){.g = g, .call = c};
    g->n_passed++;
    p->there = attach_call(g->follow, path, msg, n, clock_ns() + PASSED_MS * UINT64_C(1000000), &ev);
    if (!p->there) {
        control_pass_finish(p, GRPC_UNAVAILABLE, NULL);
        return;
    }
    grpc_call_set_data(c, p);
    grpc_call_on_cancel(c, on_caller_gone, NULL);
}
