/* price.h: what a request would take of a model, in money and joules, before it is asked.
 *
 * The configuration prices models: `cost` for a thousand tokens, in any unit, and `energy_j` for one token,
 * where nobody measures it. A request's tokens are those it brings (a quarter of its bytes) and those of its
 * reply: as many as it allows, else as many as that model's replies have on the mean, else PRICE_REPLY. All
 * tokens count alike.
 *
 *     price_estimate(book, "home-chat-m", 40 + 200, measured, &estimate);
 *     if (estimate.has_cost && estimate.cost <= facts->max_cost) ...
 *
 * What is not known is not within a budget. */
#ifndef ROUTES_PRICE_H
#define ROUTES_PRICE_H

#include "routes/facts.h"

enum { PRICE_REPLY = 128 };

/* NULL: nobody has priced it. "MODEL:ADAPTER" costs what MODEL does. */
const route_price *price_find(const route_book *b, const char *model);
/* As the book has it, else as it was measured. */
energy price_energy(const route_price *p, energy measured);
/* ret's cost and energy, of so many tokens. */
void price_estimate(const route_book *b, const char *model, double n_tokens, energy measured,
                    route_estimate *ret);
/* f->n_tokens, and those of the reply where the task has one. mean_reply 0: not known. */
double price_tokens(const route_facts *f, bool replies, double mean_reply);

/* Is it over what the request (f) or the rule (r, NULL: none) allows? */
bool price_is_over(const config_rule *r, const route_facts *f, const route_estimate *o);

#endif
