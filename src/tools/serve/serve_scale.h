/* serve_scale.h: the numbers of replicas of `shoal serve`: those of its file, and of models with a range those that
 * their load calls for (cluster/scale.h).
 *
 * Each second it looks at the replicas, at their queues and at the calls that wait in the gateway, and has `changed`
 * called where another number is wanted. Room is asked of the control plane, whose plan knows all machines, or, where
 * this machine serves alone, seen in its free memory. A gateway that follows another one takes the number of replicas
 * that there are, so that it goes on from there when it leads.
 *
 *     serve_scale_open(&s, &options, err);
 *     serve_scale_number(s, "home-chat");          wanted now
 *     serve_scale_take(s, config);                 the file has been read again
 *     serve_scale_close(s);                        before the gateway goes
 *
 * Loop thread. */
#ifndef SERVE_SERVE_SCALE_H
#define SERVE_SERVE_SCALE_H

#include "cluster/registry.h"
#include "config/config.h"
#include "control/control.h"
#include "gateway/gateway.h"

typedef struct serve_scale serve_scale;

typedef struct serve_scale_options {
    registry *registry; /* whose time counts */
    gateway *gateway;
    const gateway_config *config; /* that was started; must outlive this */
    const control *control;       /* that places the models; NULL: all are served here */
    const uint64_t *bytes;        /* [config->n_models]: memory of a replica on this machine; 0: a device's */
    void (*changed)(void *user);
    void *user;
} serve_scale_options;

/* SHOAL_ENOMEM. The options are copied, but for what they point to. */
int serve_scale_open(serve_scale **ret, const serve_scale_options *o, shoal_err *err);
/* The models that both have follow the new file; `changed` is the caller's to call. */
void serve_scale_take(serve_scale *s, const gateway_config *now);
/* Of a model of the configuration that was started; others have none. */
unsigned serve_scale_number(const serve_scale *s, const char *model);
void serve_scale_close(serve_scale *s); /* NULL is fine */

#endif
