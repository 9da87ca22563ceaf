/* memory.h: a fuzz target demands much of what memory allows and nothing of what it does not. Where
 * tests/fail lets an allocation fail, a refusal is no fault; without that it still is. */
#ifndef TESTS_FUZZ_MEMORY_H
#define TESTS_FUZZ_MEMORY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

static inline bool memory_was_refused(void)
{
    int (*injected)(void);
    *(void **)&injected = dlsym(NULL, "fail_injected"); /* NULL: RTLD_DEFAULT, all that is loaded */
    return injected && injected();
}

/* True when ok; false when memory was refused to this process; any other failure is the end. */
static inline bool holds(bool ok)
{
    if (!ok && !memory_was_refused()) abort();
    return ok;
}

#endif
