/* env_sim.h: simulated time: a queue of timers, and a clock that stands still between them.
 *
 * Nothing happens until it is told to advance; then timers run in the order of their times, those of one time
 * in the order in which they were started. The same seed and the same calls give the same story.
 *
 *     env_sim *s = env_sim_new(seed);
 *     registry_new(&g, env_sim_env(s), ...);
 *     env_sim_run(s, 60 * 1000);       // a minute
 *     env_sim_free(s);                 // when all its timers are freed
 */
#ifndef TIME_ENV_SIM_H
#define TIME_ENV_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "time/env.h"

typedef struct env_sim env_sim;

env_sim *env_sim_new(uint64_t seed);      /* NULL: out of memory. Its clock starts at one second, of 2026 */
void env_sim_free(env_sim *s);            /* its timers must be freed by then; accepts NULL */
const env *env_sim_env(const env_sim *s); /* lives as long as s */

/* Move to the next timer and run it; false, and no time passes, when none is running. */
bool env_sim_step(env_sim *s);
/* Run all that is due within ms, and leave the clock exactly there. */
void env_sim_run(env_sim *s, uint64_t ms);
/* The process stands still for ms: no timer runs, and it hears nobody. What became due runs at the next step.
 */
void env_sim_stall(env_sim *s, uint64_t ms);
/* Made and not freed: 0 at the end of a test that forgot nothing. */
size_t env_sim_timers(const env_sim *s);

#endif
