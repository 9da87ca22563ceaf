/* load_report.h: what `shoal bench --load` found, as JSON, SVG or one HTML file that needs nothing else. Pure.
 *
 *     load_report r = {.url = url, .path = path};
 *     load_row_take(&rows[0], record, &result);       // what the charts need of a run; the record can be freed
 *     r.rows = rows, r.n_rows = 1;
 *     load_report_put_html(&r, &out); */
#ifndef LOAD_LOAD_REPORT_H
#define LOAD_LOAD_REPORT_H

#include "load/load_client.h"
#include "load/load_cores.h"

enum { LOAD_CURVE_POINTS = 61 };

typedef struct load_point { /* an interval; times NAN where nothing was answered */
    double at_s, due_per_s, sent_per_s, ok_per_s, failed_per_s, tokens_per_s;
    double p50_ms, p95_ms, p99_ms, first_p50_ms, first_p95_ms;
} load_point;

typedef struct load_row {
    char name[48]; /* "16 clients", "40/s" */
    int n_clients;
    double rate, rate_to; /* 0: a closed loop; rate_to 0: constant */
    load_result r;
    size_t errors[LOAD_N_ERRORS], n_prompt_tokens, n_by_texts;
    double p90_ms, p999_ms, service_p99_ms;
    double interval_s;
    load_point points[LOAD_INTERVALS];
    size_t n_points;
    /* Percentiles at load_curve_quantile(i), in ms; NAN: there is none */
    double whole[LOAD_CURVE_POINTS], first[LOAD_CURVE_POINTS], gap[LOAD_CURVE_POINTS],
        service[LOAD_CURVE_POINTS];
    load_cores cpu;
    bool broke; /* the objective */
} load_row;

/* 0.5 to 0.9995, as many points between 0.9 and 0.99 as between 0.99 and 0.999. */
double load_curve_quantile(size_t i);
void load_row_take(load_row *row, load_record *record, const load_result *r);

typedef struct load_objective {
    char name[24]; /* "p95", "first_p99", ...; "": there is none */
    double ms;
} load_objective;

/* "p95=500", "first_p95=200", "gap_p99=30", "max=1000". SHOAL_EINVALID. */
int load_objective_read(load_objective *ret, const char *text, shoal_err *err);
double load_objective_value(const load_objective *o, const load_result *r);
/* Its time is longer, nothing was answered, or more than a hundredth failed. */
bool load_objective_broke(const load_objective *o, const load_result *r);

typedef struct load_setting {
    const char *name;
    char value[200];
} load_setting;

enum { LOAD_SETTINGS_MOST = 24 };

typedef struct load_report {
    const char *url, *path, *model; /* model NULL: none was named */
    char server[200], when[40];     /* what it says it is, "" unknown; when the load began */
    load_setting settings[LOAD_SETTINGS_MOST];
    size_t n_settings;
    load_objective objective;
    const load_row *rows;
    size_t n_rows;
} load_report;

/* One sentence: up to which rate the objective holds; "" without one. */
void load_report_verdict(const load_report *r, char *ret, size_t size);
/* The members of a row behind those of the table, each with a comma in front. */
void load_row_put_json(const load_row *row, buf *out);
void load_report_put_svg(const load_report *r, buf *out);
void load_report_put_html(const load_report *r, buf *out);

#endif
