/* price.c: see price.h. */
#include "routes/price.h"

#include <string.h>

const route_price *price_find(const route_book *b, const char *model)
{
    size_t n = strcspn(model, ":");
    for (size_t i = 0; i < b->n_prices; i++)
        if (strlen(b->prices[i].model) == n && memcmp(b->prices[i].model, model, n) == 0)
            return &b->prices[i];
    return NULL;
}

energy price_energy(const route_price *p, energy measured)
{
    if (p && p->energy_j) return (energy){*p->energy_j, ENERGY_CONFIGURED};
    return measured;
}

void price_estimate(const route_book *b, const char *model, double n_tokens, energy measured,
                    route_estimate *ret)
{
    const route_price *p = price_find(b, model);
    energy e = price_energy(p, measured);
    ret->has_cost = p && p->cost;
    ret->cost = ret->has_cost ? *p->cost * n_tokens / 1000 : 0;
    ret->energy_by = e.by;
    ret->energy_j = e.by == ENERGY_UNKNOWN ? 0 : e.j_per_token * n_tokens;
}

double price_tokens(const route_facts *f, bool replies, double mean_reply)
{
    double reply = f->n_reply ? (double)f->n_reply : mean_reply > 0 ? mean_reply : PRICE_REPLY;
    return (double)f->n_tokens + (replies ? reply : 0);
}

static bool over(double allowed, bool known, double is)
{
    return allowed > 0 && (!known || is > allowed);
}

bool price_is_over(const config_rule *r, const route_facts *f, const route_estimate *o)
{
    bool known = o->energy_by != ENERGY_UNKNOWN;
    if (over(f->max_cost, o->has_cost, o->cost) || over(f->max_energy_j, known, o->energy_j)) return true;
    return r && (over(r->max_cost, o->has_cost, o->cost) || over(r->max_energy_j, known, o->energy_j));
}
