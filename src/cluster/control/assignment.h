/* assignment.h: a model that a gateway says this machine is to serve, checked.
 *
 * The message comes over the wire: every number and name in it is looked at before it names a file or goes on
 * a worker's command line.
 *
 *     assignment a = {0};
 *     if (assignment_take(&a, m, &err) == 0) ...
 *     assignment_done(&a); */
#ifndef CONTROL_ASSIGNMENT_H
#define CONTROL_ASSIGNMENT_H

#include "base/arena.h"
#include "agent/agent.h"
#include "transfer/artifact.h"
#include "control/member_table.h"

enum { ASSIGNMENT_ADAPTER_NAME = 64, ASSIGNMENT_REPLICAS_MAX = 64, ASSIGNMENT_THREADS_MAX = 4096 };

typedef struct assignment_adapter {
    char name[ASSIGNMENT_ADAPTER_NAME];
    artifact artifact;
} assignment_adapter;

typedef struct assignment { /* zeroed: none */
    char model[MEMBER_TABLE_TEXT_MAX + 1];
    artifact artifact;
    assignment_adapter *adapters;
    size_t n_adapters;
    unsigned n_serving;       /* of spec.n_replicas; the others stand by */
    worker_spec spec;         /* its stages are the assignment's; where the files lie, the caller knows */
    const char **first_nodes; /* of a later stage: the machines that may call it */
    size_t n_first_nodes;
    arena *strings;
} assignment;

/* SHOAL_EINVALID: says what makes no sense. */
int assignment_take(assignment *ret, const Shoal__V1__Assignment *m, shoal_err *err);
void assignment_done(assignment *a);

#endif
