/* config_faults.h: errors of a configuration, all that can be told independently of each other.
 *
 *     config_faults all = {0};
 *     rc = config_load_all(&c, &HOME_STAGES, "shoal.yaml", &all, err);
 *     for (size_t i = 0; i < all.n; i++) puts(all.list[i].sentence);    // in the order of lines
 *     config_faults_done(&all);
 *
 * A reader that finds an error gives it to config_faults_add and goes on with what does not depend on it. Without a
 * list (NULL) the same code stops at the first. */
#ifndef CONFIG_CONFIG_FAULTS_H
#define CONFIG_CONFIG_FAULTS_H

#include <stddef.h>

#include "base/err.h"

enum { CONFIG_FAULTS_MAX = 100 };

typedef struct config_fault {
    char *sentence;  /* owned; as errors of config_load */
    size_t line, at; /* line 0: it says none; at: which was found first */
} config_fault;

typedef struct config_faults {
    config_fault list[CONFIG_FAULTS_MAX]; /* more are not kept */
    size_t n;
} config_faults;

/* SHOAL_EINVALID is kept, with err's sentence, and 0 returned: go on. Other codes, and all where f is NULL, are
 * returned as they are. SHOAL_ENOMEM. */
int config_faults_add(config_faults *f, int rc, shoal_err *err);
/* rc, or if that is 0 and something was found, SHOAL_EINVALID with the first of it. f NULL: rc. */
int config_faults_end(const config_faults *f, int rc, shoal_err *err);
void config_faults_sort(config_faults *f);
void config_faults_done(config_faults *f);

#endif
