/* eval_report.h: results of an evaluation counted by tag, and shown as a table, JSON, Markdown or a picture.
 */
#ifndef EVAL_EVAL_REPORT_H
#define EVAL_EVAL_REPORT_H

#include "eval/eval_cases.h"
#include "eval/eval_judge.h"

typedef struct eval_result {
    const eval_case *c;
    eval_verdict verdict;
    double ms;
    double said;    /* its confidence, 0 to 1, where a model was asked for it; else < 0 */
    bool escalated; /* a cascade asked more than its first member */
    size_t n_tokens;
    char *why; /* owned; "" when right */
    char *got; /* owned; the answer in one line: its text and its calls */
} eval_result;

typedef struct eval_results {
    eval_result *v;
    size_t n;
} eval_results;

void eval_results_done(eval_results *r);

typedef struct eval_score {
    const char *tag; /* borrowed from the cases */
    size_t n, count[EVAL_N_VERDICTS];
    double p50_ms, p99_ms;
} eval_score;

typedef struct eval_scores {
    eval_score all;     /* tag "all" */
    eval_score *by_tag; /* [n_tags], by name */
    size_t n_tags;
} eval_scores;

/* Counts r by verdict, for all cases and for each tag; tags stay borrowed from the cases. */
int eval_scores_init(eval_scores *ret, const eval_results *r, shoal_err *err);
void eval_scores_done(eval_scores *s); /* accepts a zeroed one */
/* Share of the cases with verdict v, 0 to 100; 0 when there are no cases. */
double eval_percent(const eval_score *s, eval_verdict v);

/* What is asked of all cases together, in percent. */
typedef struct eval_aims {
    double min_right, max_harmful, max_silent;
} eval_aims;

/* Do the scores of all cases together reach every aim? */
bool eval_aims_met(const eval_scores *s, const eval_aims *aims);

/* Each appends to `out`. `title` names what was run: the files. */
void eval_report_table(const eval_scores *s, buf *out);
void eval_report_failures(const eval_results *r, buf *out);
void eval_report_json(const eval_scores *s, const eval_results *r, bool failures, bool met, buf *out);
void eval_report_markdown(const char *title, const eval_scores *s, const eval_results *r, bool failures,
                          buf *out);
void eval_report_svg(const char *title, const eval_scores *s, buf *out);

#endif
