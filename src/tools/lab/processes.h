/* processes.h: what runs on the nodes of a lab: started in order, awaited, started again when it dies.
 *
 *     processes *c;
 *     processes_new(&c, scenario, nodes, &hooks, err);
 *     processes_boot(c, 0);
 *     while (!processes_up(c, 0)) { if (processes_tick(c, clock_ns(), err)) ...; sleep a little; }
 *     processes_free(c);                  // which leaves its processes to whoever ends the sandbox
 *
 * A node boots by starting its processes one after the other: the next when the last one is ready, or has
 * ended if it is to run once. Nothing here waits: processes_tick takes each step when it is due. One thread, the
 * one that is process 1, since the dead are its children. */
#ifndef LAB_PROCESSES_H
#define LAB_PROCESSES_H

#include "lab/host.h"
#include "lab/scenario.h"

typedef struct processes processes;

typedef struct processes_hooks { /* texts are borrowed for the processes's life */
    const char *program;         /* the path of `shoal` */
    const char *share;           /* {share}: the folder of shoal.yaml, models and lexicons */
    const char *logs;            /* an absolute folder: NODE.ROLE.log */
    bool (*answers)(void *user,
                    const char *url); /* whether it answers 200, in a moment; asked by processes_tick */
    void *user;
} processes_hooks;

/* nodes[n_nodes] are borrowed. Writes the nodes' files. */
int processes_new(processes **ret, const lab_scenario *s, const host *nodes, const processes_hooks *hooks,
                  shoal_err *err);
void processes_free(processes *c); /* NULL is fine */

void processes_boot(processes *c, size_t node);
bool processes_up(const processes *c, size_t node); /* everything on it was ready, and what must run runs */
/* Bury the dead and take the steps that are due. SHOAL_EUNAVAILABLE: what has never been up died, or a
 * process that runs once failed; the sentence has the last line of its log. */
int processes_tick(processes *c, uint64_t now_ns, shoal_err *err);

/* The process of a role; 0 when it does not run (or is no role of this node). */
pid_t processes_pid(const processes *c, size_t node, const char *role);
/* A dead process of that role stays dead until processes_release, or starts at once there. */
void processes_hold(processes *c, size_t node, const char *role);
void processes_release(processes *c, size_t node, const char *role, uint64_t now_ns);
/* The node is off: all its processes get SIGKILL, and none is started until it boots again. */
void processes_off(processes *c, size_t node);

/* Start a command line beside the others; nobody waits for it. */
int processes_run(processes *c, size_t node, const char *line, shoal_err *err);
/* A text of the scenario with its fields filled in, as seen from a node (n_nodes: from the client). */
int processes_expand(processes *c, size_t node, const char *text, buf *ret);

#endif
