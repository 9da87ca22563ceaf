/* task_run.h: commands that ask a model about one input: options, opening, printing and the end of all. The model is
 * one of a file, which is loaded into this process, or with --server one of a running Shoal.
 *
 *     static int ask(shoal_model *m, const task_input *in, buf *out, shoal_err *err)
 *     {
 *         ... append {"embedding":[...]} of in->text ...
 *     }
 *     static int run(int argc, char **argv)
 *     {
 *         return task_run(&(task_command){.cmd = &cmd_embed, .task = "embed", .ask = ask}, argc, argv);
 *     } */
#ifndef CLI_ASK_TASK_RUN_H
#define CLI_ASK_TASK_RUN_H

#include "base/buf.h"
#include "json/json.h"
#include "command/cli_model.h"

typedef struct task_input {
    const cli_args *args; /* args->v[0] is the model */
    const char *text;     /* the second one, or all of standard input where it is "-"; NULL: there is none */
    bool json;
    void *own; /* task_command's */
} task_input;

typedef struct task_command {
    const cli_command *cmd;
    const char *task;          /* whose lines are printed (task_print.h); NULL: what ask appends */
    const cli_option *options; /* in front of those of all; CLI_END ends them; NULL: none */
    int min, max;              /* arguments; 0: a model and a text */
    bool literal;              /* a text "-" is a text, not standard input */
    void *own;                 /* what the options are read into */
    /* Before anything is opened; it may set in->json. NULL: nothing to check. */
    int (*check)(task_input *in, shoal_err *err);
    /* Append what the model says: an object of JSON, or text where task is NULL and not in->json. */
    int (*ask)(shoal_model *m, const task_input *in, buf *out, shoal_err *err);
    /* With --server: put the options into a question to a running Shoal, and return the input (a text, or the path
     * of a picture). NULL, err: an option that takes the model in this process. Unset: there is no --server. */
    const char *(*serve)(const task_input *in, json_t *question, shoal_err *err);
} task_command;

/* The command's exit code. */
int task_run(const task_command *t, int argc, char **argv);

#endif
