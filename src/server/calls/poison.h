/* poison.h: poison-request detection. Does this request kill workers, or was it there when they were killed?
 *
 * A request that dies with its worker may be sent again, but not for ever. What speaks for it is that workers
 * die without it, too: poison keeps the deaths of the last minute, and says how likely it is that an innocent
 * request is there each time.
 *
 *     rate   = of the deaths at which this request was absent, the higher of two: those of the last minute
 *              per minute, and those since the row began per time that it was absent since (at least
 *              POISON_ABSENT_MS). The second one knows a machine that began to kill workers just now, because
 *              it is out of memory.
 *     chance = the product over the row's deaths of rate * time that the request was there, each at most 1
 *
 * All of it is computed anew at each death, with the rate as it is known by then: the first deaths of a bad
 * minute look like the work of whoever was there. A reply that grows ends the row. Pure but for the table of
 * deaths; lives are those of call_result. */
#ifndef CALLS_POISON_H
#define CALLS_POISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    POISON_DEATHS = 128,      /* that are remembered, */
    POISON_WINDOW_MS = 60000, /* for so long */
    POISON_PRIOR_MS = 600000, /* without any other evidence a worker dies so often */
    POISON_ABSENT_MS = 2000,  /* a time too short to tell a rate by */
    POISON_ALONE = 2,         /* after so many deaths in a row a request is a suspect, which is tried alone */
    POISON_MIN = 5,           /* fewer prove nothing, */
    POISON_MAX = 32,          /* and so many are enough whatever the chances */
};
#define POISON_CHANCE 1e-9 /* less is no chance */

typedef struct poison { /* zeroed: nobody has died */
    struct {
        uint64_t life, ns;
    } deaths[POISON_DEATHS];
    size_t n_noted;
    uint64_t begun_ns; /* deaths are noted since then */
} poison;

typedef struct poison_row { /* of one request; zeroed: none died */
    unsigned n;
    double log_chance;
    uint64_t begun_ns; /* when the request came to the first of them */
    struct {
        uint64_t life, there_ns; /* there_ns: for so long it was with this worker */
    } deaths[POISON_MAX];
} poison_row;

/* The request was with this worker from since_ns until it died, now. */
void poison_note(poison *b, poison_row *row, uint64_t life, uint64_t since_ns, uint64_t now_ns);
/* A worker died, whoever was there; told twice it is the same death. */
void poison_note_death(poison *b, uint64_t life, uint64_t now_ns);
bool poison_is_suspect(const poison_row *row);
bool poison_is_proven(const poison_row *row);

#endif
