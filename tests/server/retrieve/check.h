/* check.h: what the tests of this layer share. */
#ifndef TESTS_RETRIEVE_CHECK_H
#define TESTS_RETRIEVE_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

#define assert_ok(call)                                                    \
    do {                                                                   \
        shoal_err err_ = {0};                                              \
        int rc_ = (call);                                                  \
        (void)err_;                                                        \
        if (rc_ != 0) fail_msg("%s gave %d: %s", #call, rc_, err.message); \
    } while (0)

/* A folder of its own under build/, gone at the end of the test program's run. */
static inline void make_folder(char path[64])
{
    snprintf(path, 64, "/tmp/shoal-retrieve-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static inline void remove_folder(const char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

#endif
