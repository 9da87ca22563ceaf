/* route_calls.h: calls of a route, for those who name one as their model: stages of pipelines.
 *
 * An order whose model is a route's name is resolved (resolve.h) and made of the model that it comes to, with
 * the rest of the plan as its stand-ins; any other goes straight through. What a rule can know of an order is
 * its text, its length, its task (the endpoint "process") and its deadline: there are no headers, keys or
 * sessions. Endpoints resolve routes themselves, since they know more, and know it before they look into the
 * cache.
 *
 *     route_calls_new(&c, env, inner, &config->book, on_decided, user, err); */
#ifndef CALLS_ROUTE_CALLS_H
#define CALLS_ROUTE_CALLS_H

#include "calls/resolve.h"

/* A route was decided for an order; r is borrowed. */
typedef void (*route_calls_heard)(void *user, const call_order *o, const config_route *route,
                                  const resolved *r);

/* Takes inner, and frees it with itself; on failure inner is the caller's still. The book is borrowed; heard
 * may be NULL. */
int route_calls_new(calls **ret, const env *e, calls *inner, const route_book *b, route_calls_heard heard,
                    void *user, shoal_err *err);

/* Does a model of this task take this kind of call? */
bool route_calls_fits(call_task task, const Shoal__V1__ModelInfo *info);

#endif
