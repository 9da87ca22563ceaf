/* task_print.h: what a model of a task says, as lines for people: of a file's model, and of one that a Shoal serves. */
#ifndef CLI_ASK_TASK_PRINT_H
#define CLI_ASK_TASK_PRINT_H

#include <jansson.h>
#include <stdbool.h>

/* answer: the JSON of the task's command, or of its endpoint; NULL: none yet. False: a task that has no lines. */
bool task_print(const char *task, const json_t *answer);

#endif
