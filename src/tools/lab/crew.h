/* crew.h: what runs on the nodes of a lab: started in order, awaited, started again when it dies.
 *
 *     crew *c;
 *     crew_new(&c, scenario, nodes, &hooks, err);
 *     crew_boot(c, 0);
 *     while (!crew_up(c, 0)) { if (crew_tick(c, clock_ns(), err)) ...; sleep a little; }
 *     crew_free(c);                  // which leaves its processes to whoever ends the sandbox
 *
 * A node boots by starting its processes one after the other: the next when the last one is ready, or has
 * ended if it is to run once. Nothing here waits: crew_tick takes each step when it is due. One thread, the
 * one that is process 1, since the dead are its children. */
#ifndef LAB_CREW_H
#define LAB_CREW_H

#include "lab/host.h"
#include "lab/scenario.h"

typedef struct crew crew;

typedef struct crew_hooks { /* texts are borrowed for the crew's life */
    const char *program;    /* the path of `shoal` */
    const char *share;      /* {share}: the folder of shoal.yaml, models and lexicons */
    const char *logs;       /* an absolute folder: NODE.ROLE.log */
    bool (*answers)(void *user,
                    const char *url); /* whether it answers 200, in a moment; asked by crew_tick */
    void *user;
} crew_hooks;

/* nodes[n_nodes] are borrowed. Writes the nodes' files. */
int crew_new(crew **ret, const lab_scenario *s, const host *nodes, const crew_hooks *hooks, shoal_err *err);
void crew_free(crew *c); /* NULL is fine */

void crew_boot(crew *c, size_t node);
bool crew_up(const crew *c, size_t node); /* everything on it was ready, and what must run runs */
/* Bury the dead and take the steps that are due. SHOAL_EUNAVAILABLE: what has never been up died, or a
 * process that runs once failed; the sentence has the last line of its log. */
int crew_tick(crew *c, uint64_t now_ns, shoal_err *err);

/* The process of a role; 0 when it does not run (or is no role of this node). */
pid_t crew_pid(const crew *c, size_t node, const char *role);
/* A dead process of that role stays dead until crew_release, or starts at once there. */
void crew_hold(crew *c, size_t node, const char *role);
void crew_release(crew *c, size_t node, const char *role, uint64_t now_ns);
/* The node is off: all its processes get SIGKILL, and none is started until it boots again. */
void crew_off(crew *c, size_t node);

/* Start a command line beside the others; nobody waits for it. */
int crew_run(crew *c, size_t node, const char *line, shoal_err *err);
/* A text of the scenario with its fields filled in, as seen from a node (n_nodes: from the client). */
int crew_expand(crew *c, size_t node, const char *text, buf *ret);

#endif
