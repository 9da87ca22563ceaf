/* readiness.h: can a name be asked now, and which models have no replica?
 *
 * A name is a model's, an adapter's ("MODEL:ADAPTER"), an ensemble's, a route's or a pipeline's. A model is
 * ready when a replica of it is; the others when what they need is, where a model may be replaced by its
 * fallback: an ensemble one of its members and all models of its checks, a route one of its targets, a
 * pipeline the models of all stages that are not optional.
 *
 *     char why[READINESS_WHY_SIZE];
 *     if (readiness_of(g, "home", why) == READINESS_NOT) say(why);   // "home-slots: its worker failed: ..."
 *
 * Loop thread only. */
#ifndef OBSERVE_READINESS_H
#define OBSERVE_READINESS_H

#include "base/buf.h"
#include "request/gateway_state.h"

typedef enum readiness { READINESS_UNKNOWN, READINESS_READY, READINESS_NOT } readiness;

enum { READINESS_WHY_SIZE = 480 };

readiness readiness_of(const gateway *g, const char *name, char why[READINESS_WHY_SIZE]);
/* Append ,"missing":[{"model":..,"reason":..}, ...]: all models without a replica that takes calls. */
void readiness_put_missing(buf *out, const gateway *g);

#endif
