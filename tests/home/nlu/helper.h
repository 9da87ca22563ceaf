/* helper.h: homes, lexicons and requests for the tests of src/home/nlu. */
#ifndef TESTS_NLU_HELPER_H
#define TESTS_NLU_HELPER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "nlu/check.h"

#define DATA(path)  SHOAL_SOURCE_DIR "/tests/data/nlu/" path
#define HOME_LEX    SHOAL_SOURCE_DIR "/lexicons/home.yaml"
#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

static inline lexicon *load_lexicon(const char *path)
{
    lexicon *l = NULL;
    shoal_err err = {0};
    if (lexicon_load(&l, path, &err)) fail_msg("%s", err.message);
    return l;
}

/* What is asked for, as "light.turn_on light.kitchen; lock.lock lock.front". */
static inline void describe_calls(const device_call *calls, size_t n, char *out, size_t cap)
{
    size_t len = 0;
    out[0] = 0;
    for (size_t i = 0; i < n && len < cap; i++)
        len += (size_t)snprintf(out + len, cap - len, "%s%s %s", i ? "; " : "", calls[i].name,
                                calls[i].arguments);
}

#endif
