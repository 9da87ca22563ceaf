/* blame.h: does this request kill workers, or was it there when they were killed?
 *
 * A request that dies with its worker may be sent again, but not for ever. What speaks for it is that workers
 * die without it, too: blame keeps the deaths of the last minute, and says how likely it is that an innocent
 * request is there each time. Where workers live for days, a few deaths in a row are no chance; where one is
 * killed every two seconds they are.
 *
 *     chance = how likely a worker dies, at the rate of all deaths but those of this row, in the time that
 * the request was there: rate · time, at most 1 the row's chance is the product; a reply that grows ends the
 * row
 *
 * Pure but for the table of deaths; lives are those of call_result. */
#ifndef CALLS_BLAME_H
#define CALLS_BLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BLAME_DEATHS = 64,       /* that are remembered, */
    BLAME_WINDOW_MS = 60000, /* for so long */
    BLAME_PRIOR_MS = 600000, /* without any other evidence a worker dies so often */
    BLAME_ALONE = 2,         /* after so many deaths in a row a request is a suspect, which is tried alone */
    BLAME_MIN = 5,           /* fewer prove nothing, */
    BLAME_MAX = 16,          /* and so many are enough whatever the chances */
};
#define BLAME_CHANCE 1e-9 /* less is no chance */

typedef struct blame { /* zeroed: nobody has died */
    struct {
        uint64_t life, ns;
    } deaths[BLAME_DEATHS];
    size_t n_noted;
    uint64_t begun_ns; /* deaths are noted since then */
} blame;

typedef struct blame_row { /* of one request; zeroed: none died */
    unsigned n;
    double log_chance;
    uint64_t lives[BLAME_MAX];
} blame_row;

/* The request was with this worker from since_ns until it died, now. */
void blame_note(blame *b, blame_row *row, uint64_t life, uint64_t since_ns, uint64_t now_ns);
bool blame_is_suspect(const blame_row *row);
bool blame_is_proven(const blame_row *row);

#endif
