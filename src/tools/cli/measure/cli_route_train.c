/* cli_route_train.c: centroids of examples; see cli_route.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/measure/cli_route.h"
#include "command/cli_model.h"

typedef struct training {
    const gateway_config *config;
    const config_domains *set;
    size_t place; /* of the set */
    shoal_model *model;
    shoal_model_info info;
    float *vectors; /* [all examples][dimensions], one domain behind the other */
    size_t n;
    centroids *means;
} training;

static size_t count_examples(const config_domains *set)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n_of; i++) n += set->of[i].n_examples;
    return n;
}

static int cli_route_train_check(const training *t, shoal_err *err)
{
    for (size_t i = 0; i < t->set->n_of; i++)
        if (t->set->of[i].n_examples == 0)
            return config_fail(t->config, err,
                               "domains[%zu].of[%zu].examples: '%s' needs texts to learn from", t->place, i,
                               t->set->of[i].name);
    if (t->set->n_of < 2)
        return config_fail(t->config, err, "domains[%zu].of: one domain cannot be told from another",
                           t->place);
    return 0;
}

static int open_embedder(training *t, shoal_err *err)
{
    cli_model_options o = {.manifest = t->config->manifest};
    const char *file = t->set->model;
    for (size_t i = 0; i < t->config->n_models; i++)
        if (strcmp(t->config->models[i].name, t->set->model) == 0 && t->config->models[i].path)
            file = t->config->models[i].path;
    int rc = cli_model_open(&t->model, file, &o, err);
    return rc ? rc : shoal_model_describe(t->model, &t->info, err);
}

static int embed_all(training *t, shoal_err *err)
{
    size_t at = 0, dims = t->info.n_embd;
    t->n = count_examples(t->set);
    t->vectors = calloc(t->n, dims * sizeof(float));
    if (!t->vectors) return err_nomem(err);
    int rc = 0;
    for (size_t i = 0; i < t->set->n_of; i++)
        for (size_t k = 0; rc == 0 && k < t->set->of[i].n_examples; k++, at++) {
            shoal_embedding e = {0};
            rc = shoal_embed(t->model, t->set->of[i].examples[k], &e, err);
            if (rc == 0 && e.n != dims)
                rc = err_set(err, SHOAL_EINVALID, "%s gives no vectors", t->set->model);
            if (rc == 0) memcpy(t->vectors + at * dims, e.values, dims * sizeof(float));
            shoal_embedding_done(&e);
        }
    return rc;
}

static int make_means(training *t, shoal_err *err)
{
    const char **names = calloc(t->set->n_of, sizeof *names);
    size_t at = 0, dims = t->info.n_embd;
    if (!names) return err_nomem(err);
    for (size_t i = 0; i < t->set->n_of; i++) names[i] = t->set->of[i].name;
    t->means = centroids_new(t->set->model, t->info.digest, dims, names, t->set->n_of);
    free(names);
    if (!t->means) return err_nomem(err);
    for (size_t i = 0; i < t->set->n_of; i++)
        for (size_t k = 0; k < t->set->of[i].n_examples; k++, at++)
            centroids_add(t->means, i, t->vectors + at * dims, 1);
    return 0;
}

/* Of `mean` over its own length; all sums of the others are unchanged by one that is left out of its own. */
static size_t find_without(const training *t, size_t own, const float *vector)
{
    double best = -2;
    size_t found = 0;
    for (size_t i = 0; i < t->means->n; i++) {
        double dot = 0, length = 0, self = i == own ? 1 : 0;
        for (size_t k = 0; k < t->means->n_dimensions; k++) {
            double v = (double)t->means->at[i].vector[k] - self * (double)vector[k];
            dot += v * (double)vector[k];
            length += v * v;
        }
        if (length <= 0 || dot * (dot > 0 ? dot : -dot) / length <= best) continue;
        best = dot * (dot > 0 ? dot : -dot) / length;
        found = i;
    }
    return found;
}

static void cli_route_train_report(const training *t)
{
    size_t at = 0, dims = t->info.n_embd, right = 0;
    printf("%s: %zu domains of %zu examples by %s\n", t->set->name, t->set->n_of, t->n, t->set->model);
    for (size_t i = 0; i < t->set->n_of; i++) {
        const config_domain *d = &t->set->of[i];
        for (size_t k = 0; k < d->n_examples; k++, at++) {
            size_t found = find_without(t, i, t->vectors + at * dims);
            right += found == i;
            if (found != i)
                printf("  %-16s looks like %-16s %s\n", d->name, t->set->of[found].name, d->examples[k]);
        }
    }
    printf("  %zu of %zu are found again when they are left out\n", right, t->n);
}

static int write_means(const training *t, shoal_err *err)
{
    buf out = {0};
    centroids_put(&out, t->means);
    int rc = file_replace(t->set->centroids_path, &out, err);
    if (rc == 0) printf("  written to %s\n", t->set->centroids_path);
    buf_done(&out);
    return rc;
}

static int train(const gateway_config *c, size_t place, shoal_err *err)
{
    training t = {.config = c, .set = &c->book.domains[place], .place = place};
    int rc = cli_route_train_check(&t, err);
    if (rc == 0) rc = open_embedder(&t, err);
    if (rc == 0) rc = embed_all(&t, err);
    if (rc == 0) rc = make_means(&t, err);
    if (rc == 0) cli_route_train_report(&t);
    if (rc == 0) rc = write_means(&t, err);
    centroids_free(t.means);
    free(t.vectors);
    shoal_model_close(t.model);
    return rc;
}

int cli_route_train(const gateway_config *c, shoal_err *err)
{
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->book.n_domains; i++) {
        if (!c->book.domains[i].centroids_path) continue;
        rc = train(c, i, err);
        n++;
    }
    if (rc == 0 && n == 0)
        rc = err_set(err, SHOAL_EINVALID,
                     "no set of domains in it has 'centroids', so there is nothing to train");
    return rc;
}
