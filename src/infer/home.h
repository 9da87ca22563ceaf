/* home.h: a network and the place of its packed matrices, made and freed together.
 *
 *     home h = {0};
 *     home_load(&h, ops, m, team, &limits, &err);       h.net
 *     home_free(&h, ops);                               also after a failure */
#ifndef INFER_HOME_H
#define INFER_HOME_H

#include "compute/weights.h"
#include "infer/net.h"

typedef struct home {
    net *net;
    weights *weights;
} home;

/* ops->load with every matrix packed into one mapping by the team. */
int home_load(home *h, const net_ops *ops, model *m, team *t, const net_limits *l, shoal_err *err);
void home_free(home *h, const net_ops *ops);

#endif
