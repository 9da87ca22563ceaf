/* borrow_calls.c: see borrow_calls.h. */
#include "calls/borrow_calls.h"

#include <stdlib.h>

typedef struct borrow_calls {
    calls base;
    calls *inner;
} borrow_calls;

static calls *inner_of(calls *c)
{
    return ((borrow_calls *)c)->inner;
}

static model_call *borrow_calls_start(calls *c, call_order *o, const call_terms *t, const call_events *ev)
{
    return calls_start(inner_of(c), o, t, ev);
}

static void borrow_calls_estimate(calls *c, const call_order *o, const call_terms *t, call_estimate *ret)
{
    calls_estimate(inner_of(c), o, t, ret);
}

static const Shoal__V1__ModelInfo *info(calls *c, const char *model, bool *ret_known)
{
    return calls_info(inner_of(c), model, ret_known);
}

static void borrow_free(calls *c)
{
    free(c);
}

/* Its calls are the inner one's, so pause, cancel and where are never asked of it. */
static const calls_ops OPS = {
    .start = borrow_calls_start, .estimate = borrow_calls_estimate, .info = info, .free = borrow_free};

int borrow_calls_new(calls **ret, calls *inner, shoal_err *err)
{
    borrow_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    *b = (borrow_calls){.base = {&OPS}, .inner = inner};
    *ret = &b->base;
    return 0;
}
