/* run_served.h: one input for a model of a running Shoal, whatever its task. */
#ifndef CLI_ASK_RUN_SERVED_H
#define CLI_ASK_RUN_SERVED_H

#include "command/cli_generate.h"
#include "command/served.h"

typedef struct run_input {
    const char *text;  /* or, of models that hear, see or score, a file's path; "-": standard input */
    char *const *more; /* of a reranker: the documents */
    size_t n_more;
    const cli_sampling *sampling; /* NULL: of a task that has none */
    json_t *extra;                /* further members of the question; borrowed, NULL: none */
    bool json;                    /* print the answer as it came */
} run_input;

/* Ask the endpoint of its task, print what it answers. A model that generates continues the text as it is. */
int run_served(const served *at, const run_input *in, const char *key, shoal_err *err);
/* The same of a model that generates: the text is printed as it comes. */
int run_served_stream(const served *at, const run_input *in, const char *key, shoal_err *err);

#endif
