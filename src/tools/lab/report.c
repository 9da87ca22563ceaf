/* report.c: sums up a run of the lab and writes it down. */
#define _GNU_SOURCE
#include "lab/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/number.h"
#include "json/json_put.h"

enum { SHOWN = 8 };

/* ---- numbers ---- */

typedef struct report_kind { /* gaps of all faults that do the same */
    char name[64];
    size_t n; /* that found something to affect */
    double p50_ms, p99_ms, max_ms;
} report_kind;

typedef struct values {
    double *v;
    size_t n;
} values;

static void report_add(values *x, double v)
{
    if (v >= 0) x->v[x->n++] = v;
}

/* -1 when there are none. */
static double quantile(values *x, double q)
{
    if (x->n == 0) return -1;
    qsort(x->v, x->n, sizeof *x->v, number_compare_doubles);
    size_t rank = (size_t)(q * (double)x->n);
    return x->v[rank < x->n ? rank : x->n - 1];
}

static double longest_silence(const lab_answer *a)
{
    double longest = -1, last = 0;
    for (size_t i = 0; i < a->n_pieces; i++) {
        if (a->pieces_ms[i] - last > longest) longest = a->pieces_ms[i] - last;
        last = a->pieces_ms[i];
    }
    return longest;
}

static void sum_answers(lab_summary *s, const lab_record *r, double *mem)
{
    values whole = {mem, 0}, first = {mem + r->n_answers, 0}, silence = {mem + 2 * r->n_answers, 0};
    for (size_t i = 0; i < r->n_answers; i++) {
        const lab_answer *a = &r->answers[i];
        s->n_lost += a->fate == FATE_LOST;
        s->n_different += a->fate == FATE_DIFFERENT;
        s->n_retried += a->attempts > 1;
        s->n_resumed += a->resumed > 0;
        if (a->fate == FATE_LOST) continue;
        report_add(&whole, a->end_ms - a->start_ms);
        if (!r->scenario->requests[a->request].stream) continue;
        report_add(&first, a->first_ms - a->start_ms);
        report_add(&silence, longest_silence(a));
    }
    s->n_requests = r->n_answers;
    s->n_answered = s->n_requests - s->n_lost;
    s->availability = s->n_requests ? (double)s->n_answered / (double)s->n_requests : 1;
    s->p50_ms = quantile(&whole, 0.50);
    s->p99_ms = quantile(&whole, 0.99);
    s->max_ms = quantile(&whole, 1);
    s->first_p50_ms = quantile(&first, 0.50);
    s->first_p99_ms = quantile(&first, 0.99);
    s->silence_p50_ms = quantile(&silence, 0.50);
    s->silence_p99_ms = quantile(&silence, 0.99);
    s->silence_max_ms = quantile(&silence, 1);
}

/* "kill worker", "reboot": what faults are told apart by. */
static void name_kind(const lab_fault *f, char out[64])
{
    snprintf(out, 64, "%s%s%.40s", lab_action_words[f->action], f->of ? " " : "", f->of ? f->of : "");
}

/* Of all faults of the same kind as the scenario's k-th: *ret. False when an earlier one is of that kind,
 * nothing was struck, or memory is out. */
static bool sum_kind(const lab_record *r, size_t k, report_kind *ret)
{
    const lab_fault *faults = r->scenario->faults;
    char other[64];
    values gaps = {calloc(r->n_injections + 1, sizeof(double)), 0};
    *ret = (report_kind){.n = 0};
    name_kind(&faults[k], ret->name);
    bool first = gaps.v != NULL;
    for (size_t i = 0; first && i < k; i++) {
        name_kind(&faults[i], other);
        first = strcmp(other, ret->name) != 0;
    }
    for (size_t i = 0; first && i < r->n_injections; i++) {
        name_kind(&faults[r->injections[i].fault], other);
        if (!r->injections[i].hit || strcmp(other, ret->name) != 0) continue;
        ret->n++;
        report_add(&gaps, r->injections[i].gap_ms);
    }
    ret->p50_ms = quantile(&gaps, 0.50);
    ret->p99_ms = quantile(&gaps, 0.99);
    ret->max_ms = quantile(&gaps, 1);
    free(gaps.v);
    return ret->n > 0;
}

int report_sum(lab_summary *ret, const lab_record *r, shoal_err *err)
{
    double *mem = calloc(3 * r->n_answers + r->n_injections + 1, sizeof *mem);
    if (!mem) return err_nomem(err);
    lab_summary s = {.n_injections = r->n_injections};
    values gaps = {mem + 3 * r->n_answers, 0};
    sum_answers(&s, r, mem);
    for (size_t i = 0; i < r->n_injections; i++) {
        s.n_hit += r->injections[i].hit;
        report_add(&gaps, r->injections[i].gap_ms);
    }
    s.gap_p50_ms = quantile(&gaps, 0.50);
    s.gap_p99_ms = quantile(&gaps, 0.99);
    s.gap_max_ms = quantile(&gaps, 1);
    free(mem);
    *ret = s;
    return 0;
}

/* ---- lines ---- */

static const char *report_number(double v, char out[32])
{
    snprintf(out, 32, v < 0 ? "null" : "%.3f", v);
    return out;
}

void report_print_line(FILE *out, const lab_summary *s)
{
    char p50[32], p99[32];
    fprintf(out,
            "{\"requests\":%zu,\"answered\":%zu,\"lost\":%zu,\"different\":%zu,\"gap_p50_ms\":%s,"
            "\"gap_p99_ms\":%s,\"availability\":%.6f}\n",
            s->n_requests, s->n_answered, s->n_lost, s->n_different, report_number(s->gap_p50_ms, p50),
            report_number(s->gap_p99_ms, p99), s->availability);
}

static const char *shown(double v, char out[32])
{
    snprintf(out, 32, v < 0 ? "-" : "%.1f ms", v);
    return out;
}

static void print_row(FILE *out, const char *name, double p50, double p99, double max)
{
    char a[32], b[32], c[32];
    fprintf(out, "  %-28s %12s %12s %12s\n", name, shown(p50, a), shown(p99, b), shown(max, c));
}

static void print_strikes(FILE *out, const lab_record *r)
{
    char gap[32];
    for (size_t i = 0; i < r->n_injections; i++) {
        const lab_injection *k = &r->injections[i];
        fprintf(out, "  %8.2f s  %-44s ", k->at_ms / 1e3, k->what);
        if (k->hit)
            fprintf(out, "%3zu stream%s, longest gap %s\n", k->n_touched, k->n_touched == 1 ? " " : "s",
                    shown(k->gap_ms, gap));
        else
            fprintf(out, "found nothing to strike\n");
    }
}

static void print_bad(FILE *out, const lab_record *r, lab_fate fate)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_answers; i++) {
        const lab_answer *a = &r->answers[i];
        if (a->fate != fate || n++ >= SHOWN) continue;
        fprintf(out, "  %8.2f s  %-10s %s %u: %s\n", a->start_ms / 1e3, lab_fate_words[fate],
                r->scenario->requests[a->request].name, a->variant, a->why);
    }
    if (n > SHOWN) fprintf(out, "              and %zu more in requests.jsonl\n", n - SHOWN);
}

void report_print(FILE *out, const lab_record *r, const lab_summary *s)
{
    fprintf(out, "%s: %s\n", r->scenario->name, r->scenario->about);
    fprintf(out,
            "%zu requests in %.1f s from %u clients%s: %zu answered, %zu lost, %zu different; availability "
            "%.4f %%\n",
            s->n_requests, r->whole_ms / 1e3, r->scenario->clients, r->interrupted ? " (interrupted)" : "",
            s->n_answered, s->n_lost, s->n_different, 100 * s->availability);
    if (s->n_retried)
        fprintf(
            out,
            "%zu were tried more than once by the client; %zu streams of them went on where they broke off\n",
            s->n_retried, s->n_resumed);
    fprintf(out, "\n  %-28s %12s %12s %12s\n", "", "p50", "p99", "max");
    print_row(out, "longest gap at a fault", s->gap_p50_ms, s->gap_p99_ms, s->gap_max_ms);
    for (size_t k = 0; k < r->scenario->n_faults; k++) {
        report_kind kind;
        char name[100];
        if (!sum_kind(r, k, &kind)) continue;
        snprintf(name, sizeof name, "  %s (%zu)", kind.name, kind.n);
        print_row(out, name, kind.p50_ms, kind.p99_ms, kind.max_ms);
    }
    print_row(out, "longest gap in a stream", s->silence_p50_ms, s->silence_p99_ms, s->silence_max_ms);
    print_row(out, "to a stream's first byte", s->first_p50_ms, s->first_p99_ms, -1);
    print_row(out, "whole answer", s->p50_ms, s->p99_ms, s->max_ms);
    print_row(out, "whole answer, undisturbed", r->calm_p50_ms, r->calm_p99_ms, -1);
    fprintf(out, "\nlinks: our own switch in user space over TUN devices, seed %llu",
            (unsigned long long)r->scenario->seed);
    if (r->link_added_us >= 0) fprintf(out, ", which adds %.0f us one way", r->link_added_us);
    fprintf(out, ": %llu packets passed, %llu lost, %llu cut off, %llu met a full queue\n",
            (unsigned long long)r->links.n_passed, (unsigned long long)r->links.n_lost,
            (unsigned long long)r->links.n_cut, (unsigned long long)r->links.n_full);
    if (r->n_injections) fprintf(out, "\nfaults\n");
    print_strikes(out, r);
    if (s->n_lost + s->n_different) fprintf(out, "\nrequests\n");
    print_bad(out, r, FATE_LOST);
    print_bad(out, r, FATE_DIFFERENT);
}

/* ---- files ---- */

static void report_put_answer(buf *b, const lab_record *r, size_t i)
{
    const lab_answer *a = &r->answers[i];
    const lab_request *q = &r->scenario->requests[a->request];
    char first[32], gap[32];
    buf_printf(b, "{\"i\":%zu", i);
    json_put_text(b, "request", q->name);
    buf_printf(b, ",\"variant\":%u,\"client\":%u", a->variant, a->client);
    json_put_text(b, "gateway", r->scenario->gateways[a->gateway]);
    buf_printf(
        b, ",\"attempts\":%u,\"resumed\":%u,\"status\":%d,\"fate\":\"%s\",\"start_ms\":%.3f,\"end_ms\":%.3f",
        a->attempts, a->resumed, a->status, lab_fate_words[a->fate], a->start_ms, a->end_ms);
    buf_printf(b, ",\"first_ms\":%s,\"pieces\":%zu,\"longest_gap_ms\":%s",
               report_number(a->first_ms < 0 ? -1 : a->first_ms - a->start_ms, first), a->n_pieces,
               report_number(q->stream ? longest_silence(a) : -1, gap));
    json_put_text(b, "digest", a->digest);
    json_put_text(b, "why", a->why);
    buf_puts(b, "}\n");
}

static void put_strike(buf *b, const lab_record *r, size_t i)
{
    const lab_injection *k = &r->injections[i];
    char end[32], gap[32];
    buf_printf(b, "{\"at_ms\":%.3f,\"end_ms\":%s,\"do\":\"%s\"", k->at_ms, report_number(k->end_ms, end),
               lab_action_words[r->scenario->faults[k->fault].action]);
    json_put_text(b, "what", k->what);
    json_put_text(b, "node", k->node >= 0 ? r->scenario->nodes[k->node].name : "");
    json_put_text(b, "model", k->model);
    buf_printf(b, ",\"hit\":%s,\"streams\":%zu,\"gap_ms\":%s}\n", k->hit ? "true" : "false", k->n_touched,
               report_number(k->gap_ms, gap));
}

static int save(const char *folder, const char *name, buf *b, shoal_err *err)
{
    char path[4300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = b->failed ? NULL : fopen(path, "we");
    bool ok = f && fwrite(b->data ? b->data : "", 1, b->len, f) == b->len;
    int why = errno;
    if (f && fclose(f) != 0) ok = false;
    int rc = b->failed ? err_nomem(err) : ok ? 0 : err_set(err, SHOAL_EIO, "%s: %s", path, strerror(why));
    buf_done(b);
    return rc;
}

static void put_kinds(buf *b, const lab_record *r)
{
    const char *sep = "";
    char p50[32], p99[32], max[32];
    buf_puts(b, ",\"gaps\":[");
    for (size_t k = 0; k < r->scenario->n_faults; k++) {
        report_kind kind;
        if (!sum_kind(r, k, &kind)) continue;
        buf_printf(b, "%s{\"of\":\"%s\",\"faults\":%zu,\"p50_ms\":%s,\"p99_ms\":%s,\"max_ms\":%s}", sep,
                   kind.name, kind.n, report_number(kind.p50_ms, p50), report_number(kind.p99_ms, p99),
                   report_number(kind.max_ms, max));
        sep = ",";
    }
    buf_putc(b, ']');
}

static int save_summary(const char *folder, const lab_record *r, const lab_summary *s, shoal_err *err)
{
    const struct {
        const char *key;
        double v;
    } rows[] = {
        {"gap_p50_ms", s->gap_p50_ms},
        {"gap_p99_ms", s->gap_p99_ms},
        {"gap_max_ms", s->gap_max_ms},
        {"silence_p50_ms", s->silence_p50_ms},
        {"silence_p99_ms", s->silence_p99_ms},
        {"silence_max_ms", s->silence_max_ms},
        {"first_p50_ms", s->first_p50_ms},
        {"first_p99_ms", s->first_p99_ms},
        {"p50_ms", s->p50_ms},
        {"p99_ms", s->p99_ms},
        {"max_ms", s->max_ms},
        {"calm_p50_ms", r->calm_p50_ms},
        {"calm_p99_ms", r->calm_p99_ms},
        {"link_added_us", r->link_added_us},
    };
    buf b = {0};
    char v[32];
    buf_putc(&b, '{');
    json_put_text(&b, "scenario", r->scenario->name);
    buf_printf(&b, ",\"version\":\"" SHOAL_VERSION "\",\"seed\":%llu,\"seconds\":%.3f,\"clients\":%u",
               (unsigned long long)r->scenario->seed, r->whole_ms / 1e3, r->scenario->clients);
    buf_printf(&b, ",\"distinct\":%zu,\"requests\":%zu,\"answered\":%zu,\"lost\":%zu,\"different\":%zu",
               r->n_distinct, s->n_requests, s->n_answered, s->n_lost, s->n_different);
    buf_printf(&b, ",\"retried\":%zu,\"resumed\":%zu,\"faults\":%zu,\"availability\":%.6f,\"interrupted\":%s",
               s->n_retried, s->n_resumed, s->n_hit, s->availability, r->interrupted ? "true" : "false");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        buf_printf(&b, ",\"%s\":%s", rows[i].key, report_number(rows[i].v, v));
    put_kinds(&b, r);
    buf_puts(&b, "}\n");
    return save(folder, "report.json", &b, err);
}

static int save_text(const char *folder, const lab_record *r, const lab_summary *s, shoal_err *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return err_nomem(err);
    report_print(f, r, s);
    buf b = {0};
    if (fclose(f) != 0 || buf_append(&b, text, n) != 0) b.failed = true;
    free(text);
    return save(folder, "report.txt", &b, err);
}

int report_write(const char *folder, const lab_record *r, const lab_summary *s, shoal_err *err)
{
    buf answers = {0}, injections = {0};
    for (size_t i = 0; i < r->n_answers; i++) report_put_answer(&answers, r, i);
    for (size_t i = 0; i < r->n_injections; i++) put_strike(&injections, r, i);
    int rc = save(folder, "requests.jsonl", &answers, err);
    int rc2 = save(folder, "faults.jsonl", &injections, rc == 0 ? err : NULL);
    if (rc == 0) rc = rc2;
    if (rc == 0) rc = save_summary(folder, r, s, err);
    if (rc == 0) rc = save_text(folder, r, s, err);
    return rc;
}
