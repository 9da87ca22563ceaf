/* verify.c: from a check to its rule; see verify.h. */
#include "ensemble/verify.h"

#include <string.h>

#include "ensemble/verify_json.h"

const char *verify_why_text(verify_why w)
{
    static const char *const TEXTS[] = {
#define VERIFY_WHY_TEXT(e, text) [e] = text,
        VERIFY_WHYS(VERIFY_WHY_TEXT)
#undef VERIFY_WHY_TEXT
    };
    return TEXTS[w];
}

static bool verify_is_blank(const char *s)
{
    return s[strspn(s, " \t\r\n")] == '\0';
}

verify_why verify_may_leave(const verify_check *checks, size_t n, const verify_answer *a)
{
    if (a->n_calls == 0) return verify_is_blank(a->text) ? VERIFY_EMPTY : VERIFY_FINE;
    for (size_t i = 0; i < n; i++)
        if (checks[i].kind == VERIFY_DEVICES) return VERIFY_FINE;
    return VERIFY_CALLS_UNCHECKED;
}

int verify_apply(verify_verdict *ret, const verify_check *c, const verify_case *k, const verify_answer *a,
                 arena *mem)
{
    bool strange = false;
    int rc = 0;
    *ret = (verify_verdict){.why = VERIFY_FINE};
    switch (c->kind) {
    case VERIFY_DEVICES: return c->devices->apply(ret, c->lexicon, k, a, mem);
    case VERIFY_NUMBERS:
        rc = verify_numbers(a->text, &k->known, 1, &strange, mem);
        if (strange) ret->why = VERIFY_NUMBER;
        return rc;
    case VERIFY_PATTERN: return verify_pattern(&ret->why, c, a);
    case VERIFY_JSON: return verify_json(&ret->why, c->schema, a->text);
    case VERIFY_NLI: break;
    }
    ret->why = VERIFY_NOT_CHECKED;
    return 0;
}
