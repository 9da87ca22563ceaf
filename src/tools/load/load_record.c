/* load_record.c: see load_record.h. */
#include "load/load_record.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

#define LATE_S           0.001
#define FIRST_INTERVAL_S 0.25

#define LOAD_ERROR_WORD(name, word, about)  word,
#define LOAD_ERROR_ABOUT(name, word, about) about,
const char *const load_error_words[LOAD_N_ERRORS] = {LOAD_ERRORS(LOAD_ERROR_WORD)};
const char *const load_error_abouts[LOAD_N_ERRORS] = {LOAD_ERRORS(LOAD_ERROR_ABOUT)};

int load_record_new(load_record **ret, shoal_err *err)
{
    load_record *r = calloc(1, sizeof *r);
    if (!r) return err_nomem(err);
    pthread_mutex_init(&r->lock, NULL);
    r->interval_s = FIRST_INTERVAL_S;
    *ret = r;
    return 0;
}

void load_record_free(load_record *r)
{
    if (!r) return;
    for (size_t i = 0; i < LOAD_INTERVALS; i++) {
        free(r->intervals[i].whole);
        free(r->intervals[i].first);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void load_record_lock(load_record *r)
{
    pthread_mutex_lock(&r->lock);
}

void load_record_unlock(load_record *r)
{
    pthread_mutex_unlock(&r->lock);
}

/* ---- over time ---- */

static load_histogram *join_histograms(load_histogram *a, load_histogram *b)
{
    if (a && b) load_histogram_merge(a, b);
    if (a) free(b);
    return a ? a : b;
}

static void join_intervals(load_interval *to, load_interval *more)
{
    to->n_due += more->n_due;
    to->n_sent += more->n_sent;
    to->n_ok += more->n_ok;
    to->n_failed += more->n_failed;
    to->n_tokens += more->n_tokens;
    to->whole = join_histograms(to->whole, more->whole);
    to->first = join_histograms(to->first, more->first);
    *more = (load_interval){0};
}

/* Intervals of twice the width: half as many. */
static void widen(load_record *r)
{
    for (size_t i = 0; i < LOAD_INTERVALS / 2; i++) {
        load_interval first = r->intervals[2 * i];
        r->intervals[2 * i] = (load_interval){0};
        join_intervals(&first, &r->intervals[2 * i + 1]);
        r->intervals[i] = first;
    }
    r->interval_s *= 2;
    r->n_intervals = (r->n_intervals + 1) / 2;
}

static load_interval *interval_at(load_record *r, double at_s)
{
    if (at_s < 0) at_s = 0;
    while (at_s >= r->interval_s * LOAD_INTERVALS) widen(r);
    size_t i = (size_t)(at_s / r->interval_s);
    if (i >= LOAD_INTERVALS) i = LOAD_INTERVALS - 1;
    if (i >= r->n_intervals) r->n_intervals = i + 1;
    return &r->intervals[i];
}

/* Without memory for a histogram the interval has none: the totals are complete all the same. */
static void add_to(load_histogram **h, uint64_t ns)
{
    if (!*h) *h = calloc(1, sizeof **h);
    if (*h) load_histogram_add(*h, ns);
}

/* ---- what happens ---- */

void load_record_sent(load_record *r, double due_s, double sent_s)
{
    load_record_lock(r);
    r->n_sent++;
    r->n_late += sent_s > due_s + LATE_S;
    interval_at(r, due_s)->n_due++;
    interval_at(r, sent_s)->n_sent++;
    load_record_unlock(r);
}

static void add_ok(load_record *r, const load_answer *a)
{
    uint64_t whole = (uint64_t)((a->end_s - a->due_s) * 1e9);
    r->n_ok++;
    load_histogram_add(&r->whole, whole);
    load_histogram_add(&r->service, (uint64_t)((a->end_s - a->sent_s) * 1e9));
    if (a->first_ns) load_histogram_add(&r->first, a->first_ns);
    load_interval *due = interval_at(r, a->due_s);
    add_to(&due->whole, whole);
    if (a->first_ns) add_to(&due->first, a->first_ns);
    interval_at(r, a->end_s)->n_ok++;
}

static void add_failed(load_record *r, const load_answer *a)
{
    r->n_failed++;
    r->errors[a->error]++;
    interval_at(r, a->end_s)->n_failed++;
    if (!r->first_failure[0]) buf_copy_str(r->first_failure, sizeof r->first_failure, a->why);
}

void load_record_add(load_record *r, const load_answer *a)
{
    load_record_lock(r);
    if (a->error == LOAD_ERROR_NONE)
        add_ok(r, a);
    else
        add_failed(r, a);
    for (size_t i = 0; i < a->n_gaps; i++) load_histogram_add(&r->gap, a->gaps_ns[i]);
    r->n_resumed += a->n_resumed;
    r->n_tokens += a->n_tokens;
    r->n_prompt_tokens += a->n_prompt_tokens;
    r->n_by_texts += a->by_texts;
    interval_at(r, a->end_s)->n_tokens += a->n_tokens;
    load_record_unlock(r);
}
