/* keeper.c: the names of a keeper's steps. */
#include "gateway/keeper.h"

const char *keeper_step_name(keeper_step s)
{
#define STEP_NAME(e, n) n,
    static const char *const NAMES[] = {KEEPER_STEP_TABLE(STEP_NAME)};
#undef STEP_NAME
    return NAMES[s];
}
