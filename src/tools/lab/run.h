/* run.h: a run of the fault lab, from its first node to its report.
 *
 *     lab_run_options o = {.out = "/abs/folder"};
 *     int status;
 *     if (lab_run(scenario, &o, &status, err)) ...      // SHOAL_EAUTH: needs root
 *
 * The run happens in a sandbox (lab/sandbox.h) and takes as long as the scenario says and a little more.
 * Progress goes to standard error, what came out to standard output. */
#ifndef LAB_RUN_H
#define LAB_RUN_H

#include "lab/scenario.h"

enum { LAB_FAULTY = 3 }; /* the exit status of a run that lost an answer or changed one */

typedef struct lab_run_options {
    const char *out;       /* an existing folder, absolute */
    const char *program;   /* this program's path */
    const char *share;     /* {share} */
    const char *reference; /* answers.jsonl of an earlier run, absolute; NULL: ask first, undisturbed */
    bool json;
} lab_run_options;

/* *ret_status: 0, 1 (said why on standard error), LAB_FAULTY or 128 + signal. */
int lab_run(const lab_scenario *s, const lab_run_options *o, int *ret_status, shoal_err *err);

#endif
