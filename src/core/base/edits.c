/* edits.c: see edits.h. */
#include "base/edits.h"

#include <string.h>

static size_t edits_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t edits(const char *a, const char *b, size_t most)
{
    size_t n = strlen(a), m = strlen(b), rows[3][EDITS_LETTERS_MAX + 1], before = 0;
    if (n > EDITS_LETTERS_MAX || m > EDITS_LETTERS_MAX || n > m + most || m > n + most) return most + 1;
    for (size_t k = 0; k <= m; k++) rows[0][k] = k;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *last = rows[(i + 2) % 3], *second_last = rows[(i + 1) % 3];
        size_t lowest = row[0] = i;
        for (size_t k = 1; k <= m; k++) {
            row[k] = edits_least(edits_least(last[k], row[k - 1]) + 1, last[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                row[k] = edits_least(row[k], second_last[k - 2] + 1);
            lowest = edits_least(lowest, row[k]);
        }
        if (lowest > most && before > most) return most + 1; /* a swap looks two rows back */
        before = lowest;
    }
    return edits_least(rows[n % 3][m], most + 1);
}
