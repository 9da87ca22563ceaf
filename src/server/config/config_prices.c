/* config_prices.c: see config_prices.h. */
#include "config/config_prices.h"

static const double *cost_of(const config_model *m)
{
    return m->cost;
}

static const double *energy_of(const config_model *m)
{
    return m->energy_j;
}

/* *ret NULL: one of the members does not say. */
static int sum(const double **ret, const gateway_config *c, const config_ensemble *e,
               const double *(*of)(const config_model *m), arena *mem, shoal_err *err)
{
    double all = 0;
    for (size_t i = 0; i < e->n_members; i++) {
        const config_model *m = config_find_model(c, e->members[i].model);
        const double *is = m ? of(m) : NULL;
        if (!is) return 0;
        all += *is;
    }
    double *kept = arena_alloc(mem, sizeof *kept);
    if (!kept) return err_nomem(err);
    *kept = all;
    *ret = kept;
    return 0;
}

int config_prices_fill(gateway_config *c, arena *mem, shoal_err *err)
{
    size_t n = 0;
    route_price *all = arena_alloc(mem, (c->n_models + c->n_ensembles) * sizeof *all);
    if (!all) return err_nomem(err);
    for (size_t i = 0; i < c->n_models; i++)
        all[n++] = (route_price){c->models[i].name, c->models[i].cost, c->models[i].energy_j};
    for (size_t i = 0; i < c->n_ensembles; i++) {
        const config_ensemble *e = &c->ensembles[i];
        route_price *p = &all[n++];
        *p = (route_price){.model = e->name};
        int rc = sum(&p->cost, c, e, cost_of, mem, err);
        if (rc == 0) rc = sum(&p->energy_j, c, e, energy_of, mem, err);
        if (rc != 0) return rc;
    }
    c->book.prices = all;
    c->book.n_prices = n;
    return 0;
}
