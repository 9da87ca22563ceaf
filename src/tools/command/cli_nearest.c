/* cli_nearest.c: what a person may have meant by a word that is none. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/edits.h"
#include "command/cli.h"

const char *cli_nearest(const char *word, size_t n, const char *(*name)(const void *list, size_t i),
                        const void *list)
{
    const char *best = NULL;
    size_t nearest = strlen(word) < 4 ? 2 : 3; /* fewer than so many letters differ */
    for (size_t i = 0; i < n; i++) {
        size_t d = edits(word, name(list, i), nearest);
        if (d >= nearest) continue;
        nearest = d;
        best = name(list, i);
    }
    return best;
}

cli_hint cli_did_you_mean(const char *nearest)
{
    cli_hint h = {""};
    if (nearest && *nearest) snprintf(h.text, sizeof h.text, ", did you mean \"%s\"?", nearest);
    return h;
}
