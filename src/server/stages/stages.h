/* stages.h: how the server's kinds of stages run, one file a kind.
 *
 * A new one is a row of STAGE_TABLE (pipeline/stage_kind.h), its row in STAGE_KINDS, and a runner in a file here. */
#ifndef STAGES_STAGES_H
#define STAGES_STAGES_H

#include "process/stage_run.h"

#define STAGE_RUNNER(id, name) extern const stage_runner stage_##name;
STAGE_TABLE(STAGE_RUNNER)
#undef STAGE_RUNNER

/* The rows of a registry, each with a comma behind it. */
#define SERVER_STAGE_ROW(id, name) {&STAGE_KINDS[id], &stage_##name},
#define SERVER_STAGE_ROWS          STAGE_TABLE(SERVER_STAGE_ROW)

/* These alone. */
extern const stage_registry SERVER_STAGES;

#endif
