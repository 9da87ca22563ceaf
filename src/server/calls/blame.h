/* blame.h: poison-request detection. Does this request kill workers, or was it there when they were killed?
 *
 * A request that dies with its worker may be sent again, but not for ever. What speaks for it is that workers
 * die without it, too: blame keeps the deaths of the last minute, and says how likely it is that an innocent
 * request is there each time.
 *
 *     rate   = of the deaths at which this request was absent, the higher of two: those of the last minute
 *              per minute, and those since the row began per time that it was absent since (at least
 *              BLAME_ABSENT_MS). The second one knows a machine that began to kill workers just now, because
 *              it is out of memory.
 *     chance = the product over the row's deaths of rate * time that the request was there, each at most 1
 *
 * All of it is computed anew at each death, with the rate as it is known by then: the first deaths of a bad
 * minute look like the work of whoever was there. A reply that grows ends the row. Pure but for the table of
 * deaths; lives are those of call_result. */
#ifndef CALLS_BLAME_H
#define CALLS_BLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BLAME_DEATHS = 128,      /* that are remembered, */
    BLAME_WINDOW_MS = 60000, /* for so long */
    BLAME_PRIOR_MS = 600000, /* without any other evidence a worker dies so often */
    BLAME_ABSENT_MS = 2000,  /* a time too short to tell a rate by */
    BLAME_ALONE = 2,         /* after so many deaths in a row a request is a suspect, which is tried alone */
    BLAME_MIN = 5,           /* fewer prove nothing, */
    BLAME_MAX = 32,          /* and so many are enough whatever the chances */
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
    uint64_t begun_ns; /* when the request came to the first of them */
    struct {
        uint64_t life, there_ns; /* there_ns: for so long it was with this worker */
    } deaths[BLAME_MAX];
} blame_row;

/* The request was with this worker from since_ns until it died, now. */
void blame_note(blame *b, blame_row *row, uint64_t life, uint64_t since_ns, uint64_t now_ns);
/* A worker died, whoever was there; told twice it is the same death. */
void blame_note_death(blame *b, uint64_t life, uint64_t now_ns);
bool blame_is_suspect(const blame_row *row);
bool blame_is_proven(const blame_row *row);

#endif
