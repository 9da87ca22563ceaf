/* A JSON schema up to the first NUL byte, then a reply of any bytes stepped through its automaton. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "infer/grammar_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the automaton takes as a whole document must be JSON. */
static void step(nfa *a, int start, const uint8_t *reply, size_t n)
{
    if (!nfa_seal(a)) abort();
    int config = nfa_begin(a, start);
    for (size_t i = 0; i < n && config != NFA_DEAD; i++) {
        int next = nfa_step(a, config, reply[i]);
        if (nfa_step(a, config, reply[i]) != next) abort();
        config = next;
        if (config == NFA_DEAD || !nfa_accepts(a, config)) continue;
        json_t *document = NULL;
        shoal_err err;
        int rc = json_parse(&document, (const char *)reply, i + 1, "reply", &err);
        /* The automaton knows neither keys that came before nor json_parse's depth. */
        if (rc && !strstr(err.message, "duplicate") && !strstr(err.message, "levels")) abort();
        json_decref(document);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    if (!end) return 0;
    nfa *a = nfa_new();
    int start = NFA_DEAD;
    shoal_err err = {0};
    int rc = schema_compile(a, end == data ? NULL : (const char *)data, &start, &err);
    if (rc == 0)
        step(a, start, end + 1, (size_t)(data + size - end - 1));
    else if (start != NFA_DEAD || !err.message[0])
        abort();
    nfa_free(a);
    return 0;
}
