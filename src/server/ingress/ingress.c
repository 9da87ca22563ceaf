/* ingress.c: the list; see ingress.h. */
#include "ingress/ingress.h"

/* GRPC and WEBSOCKET add themselves to HTTP's connections; nothing is accepted before LISTEN. */
static const ingress *const INGRESSES[] = {&HTTP_INGRESS, &GRPC_INGRESS, &WEBSOCKET_INGRESS, &LISTEN_INGRESS};

enum { N_INGRESSES = sizeof INGRESSES / sizeof *INGRESSES };

int ingress_open(gateway *g, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < N_INGRESSES; i++)
        if (INGRESSES[i]->open) rc = INGRESSES[i]->open(g, err);
    return rc;
}

int ingress_reload(gateway *g, const gateway_config *next, shoal_err *err)
{
    int rc = 0;
    for (size_t i = N_INGRESSES; rc == 0 && i-- > 0;)
        if (INGRESSES[i]->reload) rc = INGRESSES[i]->reload(g, next, err);
    return rc;
}

void ingress_withdraw(gateway *g)
{
    for (size_t i = 0; i < N_INGRESSES; i++)
        if (INGRESSES[i]->withdraw) INGRESSES[i]->withdraw(g);
}

void ingress_drain(gateway *g)
{
    for (size_t i = N_INGRESSES; i-- > 0;)
        if (INGRESSES[i]->drain) INGRESSES[i]->drain(g);
}

void ingress_close(gateway *g)
{
    for (size_t i = N_INGRESSES; i-- > 0;)
        if (INGRESSES[i]->close) INGRESSES[i]->close(g);
}

static void release_next(void *user)
{
    gateway *g = user;
    while (g->n_released < N_INGRESSES) {
        const ingress *in = INGRESSES[g->n_released++];
        if (!in->release) continue;
        in->release(g, release_next);
        return;
    }
    g->released(g);
}

void ingress_release(gateway *g, void (*done)(gateway *g))
{
    g->released = done;
    release_next(g);
}
