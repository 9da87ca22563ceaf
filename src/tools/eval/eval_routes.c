/* eval_routes.c: a line for each route, and their differences; see eval_routes.h. */
#include "eval/eval_routes.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

int eval_summarise(eval_summary *ret, const eval_results *r, shoal_err *err)
{
    eval_summary s = {.n = r->n};
    double *ms = calloc(r->n + 1, sizeof *ms);
    if (!ms) return err_nomem(err);
    for (size_t i = 0; i < r->n; i++) {
        const eval_result *x = &r->v[i];
        s.n_right += x->verdict == EVAL_RIGHT;
        s.n_escalated += x->escalated;
        s.n_tokens += x->n_tokens;
        ms[i] = x->ms;
    }
    s.p50_ms = number_quantile(ms, r->n, 0.50);
    s.p95_ms = number_quantile(ms, r->n, 0.95);
    free(ms);
    *ret = s;
    return 0;
}

static double share(size_t part, size_t n)
{
    return n ? (double)part / (double)n : 0;
}

static int eval_routes_put_row(const eval_route *r, buf *out, shoal_err *err)
{
    eval_summary s;
    int rc = eval_summarise(&s, &r->results, err);
    if (rc != 0) return rc;
    eval_interval in = eval_wilson(s.n_right, s.n);
    buf_printf(out, "%-20.20s %5zu %8.1f %5.1f-%5.1f %9.1f %9.1f %7.1f %12.1f\n", r->name, s.n,
               100 * share(s.n_right, s.n), 100 * in.low, 100 * in.high, s.p50_ms, s.p95_ms,
               share(s.n_tokens, s.n), 100 * share(s.n_escalated, s.n));
    return 0;
}

static int put_difference(const eval_route *a, const eval_route *b, buf *out, shoal_err *err)
{
    size_t n = a->results.n, n_a = 0, n_b = 0;
    bool *of_a = calloc(n + 1, sizeof *of_a), *of_b = calloc(n + 1, sizeof *of_b);
    int rc = of_a && of_b ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        n_a += of_a[i] = a->results.v[i].verdict == EVAL_RIGHT;
        n_b += of_b[i] = b->results.v[i].verdict == EVAL_RIGHT;
    }
    if (rc == 0) {
        eval_interval in = eval_difference(of_a, of_b, n);
        buf_printf(out, "%s against %s: %+.1f points, 95 %%: %+.1f to %+.1f%s\n", a->name, b->name,
                   100 * (share(n_a, n) - share(n_b, n)), 100 * in.low, 100 * in.high,
                   in.low > 0 || in.high < 0 ? "" : ", which may be chance");
    }
    free(of_a);
    free(of_b);
    return rc;
}

int eval_routes_put(const eval_route *routes, size_t n, buf *out, shoal_err *err)
{
    int rc = 0;
    buf_printf(out, "%-20s %5s %8s %11s %9s %9s %7s %12s\n", "ROUTE", "CASES", "RIGHT %", "95 %", "P50 MS",
               "P95 MS", "TOKENS", "ESCALATED %");
    for (size_t i = 0; !rc && i < n; i++) rc = eval_routes_put_row(&routes[i], out, err);
    if (n > 1) buf_putc(out, '\n');
    for (size_t i = 1; !rc && i < n; i++) rc = put_difference(&routes[0], &routes[i], out, err);
    return rc;
}

int eval_routes_put_json(const eval_route *routes, size_t n, buf *out, shoal_err *err)
{
    for (size_t i = 0; i < n; i++) {
        eval_summary s;
        int rc = eval_summarise(&s, &routes[i].results, err);
        if (rc != 0) return rc;
        eval_interval in = eval_wilson(s.n_right, s.n);
        buf_printf(out, "{\"accuracy\":%.6f,\"n\":%zu,\"p50_ms\":%.3f,\"p95_ms\":%.3f,\"escalated\":%.6f",
                   share(s.n_right, s.n), s.n, s.p50_ms, s.p95_ms, share(s.n_escalated, s.n));
        buf_printf(out, ",\"accuracy_low\":%.6f,\"accuracy_high\":%.6f,\"tokens\":%.3f,\"route\":", in.low,
                   in.high, share(s.n_tokens, s.n));
        json_put_string(out, routes[i].name, strlen(routes[i].name));
        buf_puts(out, "}\n");
    }
    return 0;
}
