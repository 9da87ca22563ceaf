/* eval_baseline.h: the verdicts of a run that was accepted, and which cases are worse than then.
 *
 *     {"shoal_eval": 1, "cases": [{"id": "flat-7", "verdict": "right"}, ...]}
 *
 * Replies at temperature 0 are the same bits on every machine, so that a verdict that is worse comes of a change, and not of
 * chance. Verdicts are compared in the order of EVAL_VERDICTS. Of cases with one id the n-th is compared with the n-th. */
#ifndef EVAL_EVAL_BASELINE_H
#define EVAL_EVAL_BASELINE_H

#include "eval/eval_report.h"

enum { EVAL_BASELINE_BYTES_MAX = 64 << 20, EVAL_BASELINE_NAMED = 5 };

typedef struct eval_baseline {
    json_t *verdicts; /* id: [numbers of verdicts, in the order of the file]; owned */
    size_t n;
} eval_baseline;

/* `what` names the text in errors. SHOAL_EFORMAT. *ret is untouched on failure. */
int eval_baseline_parse(eval_baseline *ret, const char *text, size_t n, const char *what, shoal_err *err);
void eval_baseline_done(eval_baseline *b); /* accepts a zeroed one */
void eval_baseline_put(const eval_results *r, buf *out);

typedef struct eval_comparison {
    size_t n, n_worse, n_better;
    size_t n_new, n_gone; /* cases of this run alone, of the baseline alone */
    buf worse;            /* the first EVAL_BASELINE_NAMED: "flat-7 (right, now harmful), ..." */
} eval_comparison;

/* *ret is to be freed with eval_comparison_done, also on failure. */
int eval_compare(eval_comparison *ret, const eval_baseline *b, const eval_results *r, shoal_err *err);
void eval_comparison_done(eval_comparison *c);
/* One line for people, without its end; name: of the baseline's file. */
void eval_comparison_put(const eval_comparison *c, const char *name, buf *out);

#endif
