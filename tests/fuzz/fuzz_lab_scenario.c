/* A scenario from hostile bytes: read or refused with a sentence, and its schedule can be made. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "lab/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *lookup(void *user, const char *name, size_t n)
{
    return n == 2 && name[0] == 'i' && name[1] == 'p' ? "10.77.0.1" : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shoal_err err = {0};
    lab_scenario *s = NULL;
    lab_event *events = NULL;
    size_t n = 0;
    int rc = scenario_parse(&s, (const char *)data, size, "fuzz.yaml", &err);
    if ((rc == 0) != (s != NULL) || (rc && !err.message[0])) abort();
    if (!rc && schedule_make(&events, &n, s, &err) == 0)
        for (size_t i = 1; i < n; i++)
            if (events[i].at_s < events[i - 1].at_s || events[i].fault >= s->n_faults) abort();
    for (size_t i = 0; !rc && i < s->n_nodes; i++)
        for (size_t k = 0; k < s->nodes[i].n_files; k++) {
            buf b = {0};
            scenario_expand(&b, s->nodes[i].files[k].text, lookup, NULL);
            buf_done(&b);
        }
    free(events);
    scenario_free(s);
    return 0;
}
