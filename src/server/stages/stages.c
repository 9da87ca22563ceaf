/* stages.c: the registry of the server's own kinds; see stages.h. */
#include "stages/stages.h"

static const stage_row ROWS[] = {SERVER_STAGE_ROWS};

const stage_registry SERVER_STAGES = {.stages = ROWS, .n_stages = sizeof ROWS / sizeof *ROWS};
