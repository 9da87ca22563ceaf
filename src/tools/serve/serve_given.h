/* serve_given.h: models that the command line names, served without a configuration file.
 *
 *     serve_given g = {.models = {.v = {"my.Q4_K_M.gguf"}, .n = 1}, .as = {.context = 4096}};
 *     serve_given_config(&config, &g, &err);            as `models: [{name: my.Q4_K_M, path: /home/...}]` would
 *     serve_given_check(config, specs, &g, &err);       what is no model is said before anything starts */
#ifndef SERVE_SERVE_GIVEN_H
#define SERVE_SERVE_GIVEN_H

#include "base/name.h"
#include "command/cli.h"
#include "config/config.h"
#include "agent/agent.h"

typedef struct serve_given {
    cli_list models;  /* files, folders, names of models.json, references that were fetched */
    const char *name; /* of the only one; NULL: what its file is called */
    config_model as;  /* sizes and options of each */
} serve_given;

/* Where it is on this machine: the path that exists, or that of a name or a reference which models.json lists. *ret is
 * malloc'd and absolute; name, where it is not "", is how models.json calls it. SHOAL_ENOTFOUND says what to give
 * instead. */
int serve_given_find(char **ret, char name[NAME_BYTES_MAX + 1], const char *model, shoal_err *err);

/* Two models that would have one name get numbers: my, my-2. */
int serve_given_config(gateway_config **ret, const serve_given *g, shoal_err *err);

/* A folder that is no model may hold some: the first three, called so, appended. */
void serve_given_inside(const char *folder, const char *called, buf *out);

/* Reads each file in a process of its own. SHOAL_EFORMAT names the first that no worker could serve, and why. Call it
 * before there are threads. */
int serve_given_check(const gateway_config *c, const worker_spec *specs, const serve_given *g,
                      shoal_err *err);

#endif
