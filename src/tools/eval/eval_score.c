/* eval_score.c: counts verdicts and times, for all results and for each tag. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "eval/eval_report.h"

void eval_results_done(eval_results *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].why);
        free(r->v[i].got);
    }
    free(r->v);
    *r = (eval_results){0};
}

static const char *tag_at(const eval_case *c, size_t i)
{
    return json_string_value(json_array_get(c->tags, i));
}

static bool has_tag(const eval_case *c, const char *tag)
{
    for (size_t i = 0; i < json_array_size(c->tags); i++)
        if (strcmp(tag_at(c, i), tag) == 0) return true;
    return false;
}

/* Results of one tag, NULL: of all. ms[] has room for every result. */
static eval_score score(const eval_results *r, const char *tag, double *ms)
{
    eval_score s = {.tag = tag ? tag : "all"};
    for (size_t i = 0; i < r->n; i++) {
        if (tag && !has_tag(r->v[i].c, tag)) continue;
        s.count[r->v[i].verdict]++;
        ms[s.n++] = r->v[i].ms;
    }
    s.p50_ms = number_quantile(ms, s.n, 0.50);
    s.p99_ms = number_quantile(ms, s.n, 0.99);
    return s;
}

static int eval_score_by_name(const void *a, const void *b)
{
    return strcmp(((const eval_score *)a)->tag, ((const eval_score *)b)->tag);
}

static bool is_known(const eval_scores *s, const char *tag)
{
    for (size_t i = 0; i < s->n_tags; i++)
        if (strcmp(s->by_tag[i].tag, tag) == 0) return true;
    return false;
}

static int add_tag(eval_scores *s, const eval_results *r, const char *tag, double *ms, shoal_err *err)
{
    eval_score *v = realloc(s->by_tag, (s->n_tags + 1) * sizeof *v);
    if (!v) return err_nomem(err);
    s->by_tag = v;
    v[s->n_tags++] = score(r, tag, ms);
    return 0;
}

int eval_scores_init(eval_scores *ret, const eval_results *r, shoal_err *err)
{
    eval_scores s = {0};
    double *ms = calloc(r->n + 1, sizeof *ms);
    int rc = ms ? 0 : err_nomem(err);
    if (!rc) s.all = score(r, NULL, ms);
    for (size_t i = 0; !rc && i < r->n; i++) {
        const eval_case *c = r->v[i].c;
        for (size_t k = 0; !rc && k < json_array_size(c->tags); k++)
            if (!is_known(&s, tag_at(c, k))) rc = add_tag(&s, r, tag_at(c, k), ms, err);
    }
    free(ms);
    if (rc) {
        eval_scores_done(&s);
        return rc;
    }
    if (s.n_tags) qsort(s.by_tag, s.n_tags, sizeof *s.by_tag, eval_score_by_name);
    *ret = s;
    return 0;
}

void eval_scores_done(eval_scores *s)
{
    free(s->by_tag);
    *s = (eval_scores){0};
}

double eval_percent(const eval_score *s, eval_verdict v)
{
    return s->n ? 100.0 * (double)s->count[v] / (double)s->n : 0;
}

bool eval_aims_met(const eval_scores *s, const eval_aims *aims)
{
    return eval_percent(&s->all, EVAL_RIGHT) >= aims->min_right &&
           eval_percent(&s->all, EVAL_HARMFUL) <= aims->max_harmful &&
           eval_percent(&s->all, EVAL_SILENT) <= aims->max_silent;
}
