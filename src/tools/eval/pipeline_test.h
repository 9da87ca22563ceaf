/* pipeline_test.h: `shoal pipeline test`: a file of cases put to a server, expected against got. */
#ifndef EVAL_PIPELINE_TEST_H
#define EVAL_PIPELINE_TEST_H

#include "command/cli.h"

typedef struct pipeline_test_options {
    const char *server;   /* NULL: config's own, or where `shoal process` would ask */
    const char *config;   /* serve this for the cases; NULL: ask a server that runs */
    const char *pipeline; /* of cases that name none; may be NULL */
    const char *homes;    /* as shoal eval's */
    const char *key;      /* of the API; NULL: none */
    bool json, failures;  /* failures: print only cases that differ */
} pipeline_test_options;

/* Prints the report. *ret_passed: every case came out as expected. */
int pipeline_test_run(const pipeline_test_options *o, const char *path, bool *ret_passed, shoal_err *err);

#endif
