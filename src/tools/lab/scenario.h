/* scenario.h: what a run of the fault lab is: nodes, links, what runs on them, a load, a schedule of faults.
 *
 *     lab_scenario *s;
 *     if (scenario_load(&s, "examples/lab/freeze.yaml", err)) return err->code;
 *     ... s->nodes[0].name, s->faults[0].action ...
 *     scenario_free(s);
 *
 * A file is read by one table of rows (scenario_schema.c); docs/lab.md has every key. Texts may hold fields
 * such as {ip}, which are filled in when a process is started (scenario_expand). */
#ifndef LAB_SCENARIO_H
#define LAB_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define LAB_NODES_MAX 32
#define LAB_CLIENT    "client" /* the node from which the load comes; every lab has it */

/* One direction of a link. All zero: as fast as the machine. */
typedef struct lab_quality {
    double delay_ms, jitter_ms; /* each frame comes delay ± jitter later, in order */
    double loss;                /* the share of frames that never come, 0 to 1 */
    double rate_kbit;           /* 0: unbounded */
} lab_quality;

typedef struct lab_file {
    const char *name, *text; /* text is expanded */
} lab_file;

typedef struct lab_process {
    const char *role;
    const char *run;     /* expanded, then split at blanks; "shoal" is this program */
    const char *ready;   /* NULL, or a URL (expanded) that answers 200 when it is up */
    bool once;           /* runs to its end before the next one starts; its output is {out.ROLE} */
    bool first;          /* left out when the node boots again */
    uint32_t restart_ms; /* when it died by itself or by a fault it is started again after this; 0: never */
} lab_process;

typedef struct lab_node {
    const char *name;
    lab_file *files; /* written into the node's folder before anything starts */
    size_t n_files;
    lab_process *start;
    size_t n_start;
    uint32_t disk_mb, cores; /* cores 0: all of the machine's */
} lab_node;

typedef struct lab_link {
    const char **between; /* two names of nodes, "client", or "*" */
    size_t n_between;
    bool one_way; /* only from the first to the second */
    lab_quality q;
} lab_link;

/* X(name, word): what a fault does */
#define LAB_ACTIONS(X)  \
    X(KILL, "kill")     \
    X(TERM, "term")     \
    X(FREEZE, "freeze") \
    X(REBOOT, "reboot") \
    X(CUT, "cut")       \
    X(LINK, "link")     \
    X(FILL, "fill")     \
    X(RUN, "run")       \
    X(CLOCK, "clock")
typedef enum lab_action {
#define LAB_ACTION_ENUM(name, word) LAB_##name,
    LAB_ACTIONS(LAB_ACTION_ENUM)
#undef LAB_ACTION_ENUM
} lab_action;
extern const char *const lab_action_words[]; /* in the enum's order; ends with NULL */

typedef struct lab_fault {
    lab_action action;
    const char *of;    /* KILL, TERM, FREEZE: a role, "worker" or "node" */
    const char *node;  /* NULL: one that has it, drawn */
    const char *model; /* of "worker": NULL: any, drawn; of "node": one that has a worker of it */
    const char **between;
    size_t n_between; /* CUT, LINK */
    bool one_way;
    bool silent; /* KILL, FREEZE: no packet says that its connections have ended */
    lab_quality q;
    const char *run; /* RUN: expanded */
    double at_s, every_s, until_s, for_s;
} lab_fault;

typedef struct lab_request {
    const char *name, *path, *body; /* in a body {n} is the variant, 1 to variants */
    uint32_t weight, variants;
    bool stream; /* as the body says */
} lab_request;

typedef struct lab_scenario {
    const char *name, *about;
    uint64_t seed;
    double seconds; /* of the disturbed run */
    lab_node *nodes;
    lab_link *links;
    lab_fault *faults;
    size_t n_nodes, n_links, n_faults;
    /* the load */
    const char **gateways; /* URLs, expanded */
    size_t n_gateways;
    uint32_t clients, attempts, patience_ms, silence_ms, pause_ms; /* silence 0: patience */
    lab_request *requests;
    size_t n_requests;
    struct scenario_memory *memory;
} lab_scenario;

/* `what` names the text in errors, which are "what:line: field: sentence" (SHOAL_EFORMAT, SHOAL_EINVALID,
 * SHOAL_ELIMIT). *ret is the caller's, to be given to scenario_free. */
int scenario_parse(lab_scenario **ret, const char *text, size_t len, const char *what, shoal_err *err);
int scenario_load(lab_scenario **ret, const char *path, shoal_err *err);
void scenario_free(lab_scenario *s); /* NULL is fine */

/* The place of a node of that name; n_nodes for "client"; -1 when there is none. */
int scenario_node(const lab_scenario *s, const char *name);

/* Fill in {NAME} wherever lookup(user, "NAME", n_bytes) has a text for it; other braces stay as they are. */
int scenario_expand(buf *ret, const char *text, const char *(*lookup)(void *user, const char *name, size_t n),
                    void *user);

#endif
