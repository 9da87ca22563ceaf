/* model_manager.c: the names of a model manager's steps. */
#include "gateway/model_manager.h"

const char *model_manager_step_name(model_manager_step s)
{
#define STEP_NAME(e, n) n,
    static const char *const NAMES[] = {MODEL_MANAGER_STEP_TABLE(STEP_NAME)};
#undef STEP_NAME
    return NAMES[s];
}
