/* energy.h: joules a token takes, and how that is known.
 *
 * Whoever compares energies should know what they are: written down by a person, measured by the processor's
 * own counters, or guessed from the time that the process had a core.
 *
 *     energy e = {.j_per_token = 0.021, .by = ENERGY_RAPL};
 *     printf("%.3f J (%s)", e.j_per_token, energy_name(e.by)); */
#ifndef ROUTER_ENERGY_H
#define ROUTER_ENERGY_H

/* X(enum, name): best known last but one. */
#define ENERGY_TABLE(X)                                                                              \
    X(ENERGY_UNKNOWN, "unknown")                                                                     \
    X(ENERGY_CPU_TIME, "cpu_time") /* of the worker, times the configured watts of a busy core */    \
    X(ENERGY_RAPL, "rapl")         /* the package's counters, the worker's share of its busy time */ \
    X(ENERGY_CONFIGURED, "configured")
typedef enum energy_by {
#define ENERGY_ENUM(e, name) e,
    ENERGY_TABLE(ENERGY_ENUM)
#undef ENERGY_ENUM
        N_ENERGIES
} energy_by;
const char *energy_name(energy_by by);

typedef struct energy { /* zero: not known */
    double j_per_token;
    energy_by by;
} energy;

#endif
