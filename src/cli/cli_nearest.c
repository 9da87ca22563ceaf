/* cli_nearest.c: what a person may have meant by a word that is none. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

enum { WORD_MAX = 32, FAR = 99 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to add, drop, change or swap with their neighbour (optimal string alignment). */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), d[WORD_MAX + 1][WORD_MAX + 1];
    if (n > WORD_MAX || m > WORD_MAX) return FAR;
    for (size_t i = 0; i <= n; i++) d[i][0] = i;
    for (size_t k = 0; k <= m; k++) d[0][k] = k;
    for (size_t i = 1; i <= n; i++) {
        for (size_t k = 1; k <= m; k++) {
            size_t best = least(d[i - 1][k], d[i][k - 1]) + 1;
            best = least(best, d[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
            bool swapped = i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1];
            d[i][k] = swapped ? least(best, d[i - 2][k - 2] + 1) : best;
        }
    }
    return d[n][m];
}

const char *cli_nearest(const char *word, size_t n, const char *(*name)(const void *list, size_t i),
                        const void *list)
{
    const char *best = NULL;
    size_t nearest = strlen(word) < 4 ? 2 : 3; /* fewer than so many letters differ */
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, name(list, i));
        if (d >= nearest) continue;
        nearest = d;
        best = name(list, i);
    }
    return best;
}

static const char *command_name(const void *list, size_t i)
{
    (void)list;
    return cli_at(i)->hidden ? "" : cli_at(i)->name;
}

const char *cli_nearest_command(const char *word)
{
    const char *s = cli_nearest(word, cli_count(), command_name, NULL);
    return s && *s ? s : NULL;
}

cli_hint cli_did_you_mean(const char *nearest)
{
    cli_hint h = {""};
    if (nearest && *nearest) snprintf(h.text, sizeof h.text, ", did you mean \"%s\"?", nearest);
    return h;
}
