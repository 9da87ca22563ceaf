/* energy.c: see energy.h. */
#include "router/energy.h"

static const char *const names[] = {
#define ENERGY_NAME(e, name) [e] = name,
    ENERGY_TABLE(ENERGY_NAME)
#undef ENERGY_NAME
};

const char *energy_name(energy_by by)
{
    return (unsigned)by < N_ENERGIES ? names[by] : "unknown";
}
