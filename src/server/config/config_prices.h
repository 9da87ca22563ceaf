/* config_prices.h: what models cost, as routes want to know it (routes/price.h). */
#ifndef CONFIG_CONFIG_PRICES_H
#define CONFIG_CONFIG_PRICES_H

#include "base/arena.h"
#include "config/config.h"

/* Fills c->book.prices, in mem: of each model that says a cost or an energy, and of each ensemble what all of
 * its members take together, as far as all say it. That is what a vote takes; a cascade or a refined answer
 * takes that at most. SHOAL_ENOMEM. */
int config_prices_fill(gateway_config *c, arena *mem, shoal_err *err);

#endif
