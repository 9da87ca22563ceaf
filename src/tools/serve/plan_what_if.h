/* plan_what_if.h: a cluster after changes that have not happened, for `shoal plan --what-if`.
 *
 *     plan_what_if w = {0};
 *     plan_what_if_open(&w, nodes, n_nodes, now, n_now, (const char *[]){"gone:pi", "joins:nas.yaml"}, 2, err);
 *     placement_plan(&p, w.nodes, w.n_nodes, models, n, w.now, w.n_now, err);
 *     plan_what_if_done(&w);
 *
 * Names are borrowed: those of the lists that it was given, which must outlive the plan made of it, and those of
 * its files. */
#ifndef SERVE_PLAN_WHAT_IF_H
#define SERVE_PLAN_WHAT_IF_H

#include "cluster/placement.h"
#include "config/config_nodes.h"

enum { PLAN_WHAT_IF_MOST = 64 }; /* changes */

typedef struct plan_what_if { /* zeroed: nothing was changed */
    node *nodes;
    size_t n_nodes;
    placement_now *now;
    size_t n_now;
    config_nodes *files[PLAN_WHAT_IF_MOST];
    size_t n_files;
} plan_what_if;

/* In their order: "gone:NODE" (with all that runs there), "drains:NODE", "joins:FILE" (the machines of a file as
 * config_nodes.h reads it, with nothing on them). SHOAL_EINVALID: an unknown change or node, or a name that is there
 * already; SHOAL_EFORMAT and others: a file that cannot be read; SHOAL_ENOMEM. Nothing is left to free after an error. */
int plan_what_if_open(plan_what_if *ret, const node *nodes, size_t n_nodes, const placement_now *now,
                      size_t n_now, const char *const *changes, size_t n_changes, shoal_err *err);
void plan_what_if_done(plan_what_if *w);

#endif
