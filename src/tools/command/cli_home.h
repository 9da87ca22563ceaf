/* cli_home.h: the home that a command means when none is named: where its configuration lies, and what its
 * pipeline tells a model. */
#ifndef COMMAND_CLI_HOME_H
#define COMMAND_CLI_HOME_H

#include "base/buf.h"
#include "base/err.h"

/* The configuration to use when none was given: ./shoal.yaml, /etc/shoal/shoal.yaml, then the one that was
 * installed with this program (PREFIX/share/shoal/shoal.yaml, of a build tree its root's). *ret is malloc'd;
 * when there is none, SHOAL_EINVALID names every place. */
int cli_home_find(char **ret, shoal_err *err);

/* What a pipeline's generate stages would say to one model. */
typedef struct cli_home cli_home;

/* config: a file's path, NULL for cli_home_find's. *ret is NULL, with success, when there is no
 * configuration or no stage in it that gives this model a system message. */
int cli_home_open(cli_home **ret, const char *config, const char *model, shoal_err *err);
void cli_home_close(cli_home *h); /* accepts NULL */

/* The configuration's file, borrowed; and how many devices its pipeline names. */
const char *cli_home_path(const cli_home *h);
size_t cli_home_n_devices(const cli_home *h);
/* The system and the user message for one line of a person, appended: those of the stage that the pipeline
 * would run for this input, as far as that can be said without asking other models. */
int cli_home_messages(const cli_home *h, const char *line, buf *system, buf *user, shoal_err *err);

/* What the pipeline's rules answer to a line by themselves: to small talk, questions, what is forbidden or
 * not understood. Nothing is appended when it is for the model to reply. */
int cli_home_answer(const cli_home *h, const char *line, buf *ret, shoal_err *err);

#endif
