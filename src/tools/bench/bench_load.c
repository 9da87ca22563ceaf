/* bench_load.c: loads on any server that speaks OpenAI's protocol: as many clients, or as many requests a second, as was
 * asked for, or those of a trace. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "bench/bench.h"
#include "command/cli.h"
#include "command/cli_process.h"
#include "json/json.h"
#include "load/load_arrivals.h"
#include "load/load_bodies.h"
#include "load/load_live.h"
#include "load/load_report.h"
#include "logging/tty_style.h"

enum { OPEN_CLIENTS = 1024 }; /* of an open loop whose clients nobody counted */
enum { REQUESTS = 200 };      /* where neither their number nor a duration was given */
enum { STEP_S = 10, STEPS_MOST = 64, SAY_EVERY_S = 5, LIVE_ROWS_MOST = 6 };
enum { PROBE_FEW = 32, PROBE_MANY = 96, PROBE_WAIT_S = 60 };

/* One load: so many clients, or so many requests a second. */
typedef struct step {
    int n_clients;
    double rate, rate_to;
} step;

typedef struct load {
    const bench_options *o;
    http_where where;
    int pid;   /* of the server, 0: not known */
    bool live; /* there is a terminal to show progress on */
    load_bodies bodies;
    load_objective objective;
    load_arrival_kind arrivals;
    step steps[STEPS_MOST];
    size_t n_steps;
    load_row *rows; /* [n_steps], n_rows of them done */
    size_t n_rows;
    load_report report;
    load_live view; /* of the step that runs */
    int drawn_rows; /* of it on the terminal */
    double said_s;
} load;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signo)
{
    interrupted = 1;
}

/* ---- what is asked for ------------------------------------------------------------------------------ */

static int read_rate(const load *l, step *ret, shoal_err *err)
{
    const char *text = l->o->more.rate, *to = text ? strstr(text, "..") : NULL;
    char from[32];
    step s = {.n_clients = OPEN_CLIENTS};
    if (!text) return 0;
    snprintf(from, sizeof from, "%.*s", to ? (int)(to - text) : 31, text);
    bool ok = number_double(from, &s.rate) && s.rate >= 0 && s.rate <= 1e6;
    if (ok && to) ok = s.rate > 0 && number_double(to + 2, &s.rate_to) && s.rate_to > 0 && s.rate_to <= 1e6;
    if (!ok)
        return err_set(err, SHOAL_EINVALID,
                       "--rate wants 0 to 1000000 requests a second, or a range such as 5..50, not \"%.60s\"",
                       text);
    if (l->o->clients_given) s.n_clients = (int)l->o->clients.v[0];
    *ret = s;
    return 0;
}

/* Of a range with --step each rate is a load of its own. */
static int add_rates(load *l, const step *s, shoal_err *err)
{
    double by = l->o->more.step;
    if (by <= 0 || s->rate_to <= 0) {
        l->steps[l->n_steps++] = *s;
        return 0;
    }
    double n = floor((s->rate_to - s->rate) / by + 1e-9) + 1;
    if (n < 1 || n > STEPS_MOST)
        return err_set(err, SHOAL_EINVALID,
                       "--rate %.60s --step %g: from 1 to %d steps, please, the last rate the highest",
                       l->o->more.rate, by, STEPS_MOST);
    for (size_t i = 0; i < (size_t)n; i++)
        l->steps[l->n_steps++] = (step){.n_clients = s->n_clients, .rate = s->rate + by * (double)i};
    return 0;
}

static int read_steps(load *l, shoal_err *err)
{
    step s = {0};
    int rc = read_rate(l, &s, err);
    if (rc == 0 && l->o->more.step > 0 && s.rate_to <= 0)
        rc = err_set(err, SHOAL_EINVALID, "--step is of a range of rates: --rate 5..50 --step 5");
    if (rc == 0 && l->o->more.trace)
        l->steps[l->n_steps++] =
            (step){.n_clients = l->o->clients_given ? (int)l->o->clients.v[0] : OPEN_CLIENTS};
    else if (rc == 0 && s.rate > 0)
        rc = add_rates(l, &s, err);
    else
        for (size_t i = 0; rc == 0 && i < l->o->clients.n; i++)
            l->steps[l->n_steps++] = (step){.n_clients = (int)l->o->clients.v[i]};
    return rc;
}

static int read_lengths(const load *l, load_bodies_options *b, shoal_err *err)
{
    const bench_load_options *m = &l->o->more;
    const char *prompt = m->prompt_tokens ? m->prompt_tokens : m->prompt ? m->prompt : "128";
    int rc = load_length_read(&b->prompt, m->prompt_tokens ? "prompt-tokens" : "prompt", prompt, err);
    return rc == 0 ? load_length_read(&b->reply, "generate", m->generate ? m->generate : "64", err) : rc;
}

static int read_arrivals(load *l, shoal_err *err)
{
    const char *s = l->o->more.arrivals;
    l->arrivals = s && strcmp(s, "poisson") == 0 ? LOAD_POISSON : LOAD_CONSTANT;
    if (s && l->arrivals == LOAD_CONSTANT && strcmp(s, "constant") != 0)
        return err_set(err, SHOAL_EINVALID, "--arrivals wants constant or poisson, not \"%.60s\"", s);
    return 0;
}

static int open_bodies(load *l, shoal_err *err)
{
    const bench_load_options *m = &l->o->more;
    load_bodies_options b = {.model = l->o->load,
                             .path = m->path,
                             .body_file = m->body,
                             .prompts_file = m->prompts,
                             .trace_file = m->trace,
                             .cached = l->o->cached,
                             .stream = !m->no_stream,
                             .key = m->key ? m->key : getenv("SHOAL_API_KEY")};
    int rc = read_lengths(l, &b, err);
    return rc == 0 ? load_bodies_open(&l->bodies, &b, err) : rc;
}

static int check_options(const load *l, shoal_err *err)
{
    const bench_load_options *m = &l->o->more;
    if (m->body && (m->prompts || m->trace))
        return err_set(err, SHOAL_EINVALID,
                       "--body sends a file as it is: neither --prompts nor --trace goes with it");
    if (m->trace && m->rate)
        return err_set(err, SHOAL_EINVALID, "--trace says when requests are due: --rate goes without it");
    if (m->think_s < 0 || m->think_s > 3600 || m->timeout_s < 0 || m->timeout_s > 86400)
        return err_set(err, SHOAL_EINVALID, "--think wants 0 to 3600 seconds and --timeout 0 to 86400");
    if (m->speed <= 0 || m->speed > 1e6)
        return err_set(err, SHOAL_EINVALID, "--speed wants a number above 0, not %g", m->speed);
    int rc = file_try_replace(m->html, err);
    return rc;
}

/* ---- prompts of tokens ------------------------------------------------------------------------------ */

static int count_tokens(load *l, size_t n_words, double *ret, shoal_err *err)
{
    buf scratch = {0}, answer = {0};
    http_ask r;
    int status = 0;
    json_t *v = NULL;
    load_bodies_probe(&l->bodies, n_words, &scratch, &r);
    int rc = http_client_once(&l->where, &r, &status, &answer, err);
    if (rc == 0 && status != 200)
        rc =
            err_set(err, SHOAL_EUNAVAILABLE, "--prompt-tokens: status %d: %.150s", status, buf_text(&answer));
    if (rc == 0) rc = json_parse_last(&v, buf_text(&answer), answer.len, "the answer", err);
    *ret = json_number_of(json_object_get(v, "usage"), "prompt_tokens");
    if (rc == 0 && *ret <= 0)
        rc = err_set(
            err, SHOAL_EUNAVAILABLE,
            "--prompt-tokens: the server's answers do not say how many tokens a prompt has; -p counts words");
    json_decref(v);
    buf_done(&scratch);
    buf_done(&answer);
    return rc;
}

/* Two requests say how many tokens a word has, and how many there are beside the words. */
static int learn_tokens(load *l, shoal_err *err)
{
    double few = 0, many = 0;
    int rc = count_tokens(l, PROBE_FEW, &few, err);
    if (rc == 0) rc = count_tokens(l, PROBE_MANY, &many, err);
    if (rc == 0 && many <= few)
        rc = err_set(err, SHOAL_EUNAVAILABLE, "--prompt-tokens: %d words are %g tokens, and %d are %g",
                     PROBE_FEW, few, PROBE_MANY, many);
    if (rc != 0) return rc;
    l->bodies.by_tokens = true;
    l->bodies.words_per_token = (PROBE_MANY - PROBE_FEW) / (many - few);
    l->bodies.fixed_tokens = few - PROBE_FEW / l->bodies.words_per_token;
    return 0;
}

/* ---- who is asked ----------------------------------------------------------------------------------- */

static json_t *get_json(const load *l, const char *path)
{
    buf body = {0};
    int status = 0;
    json_t *v = NULL;
    const http_ask r = {.method = "GET", .path = path, .headers = l->bodies.headers.data};
    if (http_client_once(&l->where, &r, &status, &body, NULL) == 0 && status == 200)
        (void)json_parse_last(&v, buf_text(&body), body.len, "", NULL);
    buf_done(&body);
    return v;
}

/* "shoal 0.3.0": who owns the models, and the version, where these can be had. */
static void ask_version(load *l)
{
    static const struct {
        const char *path, *key;
    } from[] = {{"/version", "version"}, {"/api/version", "version"}, {"/props", "build_info"}};
    char owner[80] = "", version[100] = "";
    json_t *models = get_json(l, "/v1/models");
    buf_copy_str(owner, sizeof owner,
                 json_text_of(json_array_get(json_object_get(models, "data"), 0), "owned_by"));
    json_decref(models);
    for (size_t i = 0; !version[0] && i < sizeof from / sizeof *from; i++) {
        json_t *v = get_json(l, from[i].path);
        buf_copy_str(version, sizeof version, json_text_of(v, from[i].key));
        json_decref(v);
    }
    snprintf(l->report.server, sizeof l->report.server, "%s%s%s",
             owner[0]     ? owner
             : version[0] ? "version"
                          : "",
             version[0] ? " " : "", version);
}

static void set(load *l, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void set(load *l, const char *name, const char *fmt, ...)
{
    va_list ap;
    if (l->report.n_settings == LOAD_SETTINGS_MOST) return;
    load_setting *s = &l->report.settings[l->report.n_settings++];
    s->name = name;
    va_start(ap, fmt);
    vsnprintf(s->value, sizeof s->value, fmt, ap);
    va_end(ap);
}

static void describe(load *l)
{
    const bench_load_options *m = &l->o->more;
    char when[40];
    time_t now = time(NULL);
    struct tm at;
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &at));
    l->report.url = l->o->url;
    l->report.path = load_bodies_path(&l->bodies);
    l->report.model = l->o->load;
    l->report.objective = l->objective;
    buf_copy_str(l->report.when, sizeof l->report.when, when);
    set(l, "server", "%s%s%s", l->o->url, l->report.server[0] ? ", " : "", l->report.server);
    set(l, "path", "%s", l->report.path);
    if (l->o->load) set(l, "model", "%s", l->o->load);
    if (m->trace)
        set(l, "trace", "%s, %zu requests, %g times as fast", m->trace, l->bodies.trace.n, m->speed);
    if (m->rate)
        set(l, "open loop", "%s, %s requests a second%s",
            l->arrivals == LOAD_POISSON ? "Poisson" : "constant", m->rate, m->step > 0 ? ", in steps" : "");
    if (!m->rate && !m->trace)
        set(l, "closed loop", "each client asks when its last request is answered, and after %g s",
            m->think_s);
    if (m->body)
        set(l, "bodies", "%s", m->body);
    else if (m->prompts)
        set(l, "prompts", "%s, %zu lines", m->prompts, l->bodies.lines.n);
    else
        set(l, "prompts", "%s %s%s",
            m->prompt_tokens ? m->prompt_tokens
            : m->prompt      ? m->prompt
                             : "128",
            m->prompt_tokens ? "tokens" : "words", l->o->cached ? ", the same for all" : "");
    set(l, "replies", "%s tokens%s", m->generate ? m->generate : "64",
        m->no_stream ? ", not streamed" : ", streamed");
    if (m->timeout_s > 0) set(l, "timeout", "%g s", m->timeout_s);
    if (l->objective.name[0])
        set(l, "objective", "%s <= %g ms, and at most 1 %% failed", l->objective.name, l->objective.ms);
    set(l, "measured by", "shoal %s, commit %s", SHOAL_VERSION, bench_commit);
}

/* ---- while it runs ---------------------------------------------------------------------------------- */

static void erase(load *l)
{
    if (l->drawn_rows) fprintf(stderr, "\033[%dA\033[J", l->drawn_rows);
    l->drawn_rows = 0;
}

static void draw(load *l, load_record *r, double seconds)
{
    buf out = {0};
    load_record_lock(r);
    if (l->live)
        load_live_put(&out, &l->view, r, seconds, cli_columns(80) - 1);
    else
        load_live_put_line(&out, &l->view, r, seconds);
    load_record_unlock(r);
    erase(l);
    for (size_t i = 0; l->live && i < out.len; i++) l->drawn_rows += out.data[i] == '\n';
    fwrite(buf_text(&out), 1, out.len, stderr);
    fflush(stderr);
    buf_done(&out);
}

static bool on_watch(void *user, load_record *r, double seconds)
{
    load *l = user;
    if (l->live || seconds - l->said_s >= SAY_EVERY_S) {
        l->said_s = seconds;
        draw(l, r, seconds);
    }
    return !interrupted;
}

/* load_plan has one user for both. */
static void make(void *user, size_t i, buf *scratch, http_ask *ret)
{
    load *l = user;
    load_bodies_make(&l->bodies, i, scratch, ret);
}

/* ---- one load --------------------------------------------------------------------------------------- */

/* Unless somebody says how many: as many as there is time for. */
static size_t requests_of(const bench_options *o, double seconds)
{
    return o->requests ? (size_t)o->requests : seconds > 0 ? REQUESTS_MOST : REQUESTS;
}

/* Of an open loop: when each request is due. */
static int make_arrivals(load *l, const step *s, double seconds, double **ret, size_t *ret_n, shoal_err *err)
{
    const load_trace *t = &l->bodies.trace;
    if (!t->n) {
        const load_arrivals a = {.kind = l->arrivals,
                                 .rate = s->rate,
                                 .rate_to = s->rate_to,
                                 .seconds = seconds,
                                 .n_most = requests_of(l->o, seconds),
                                 .seed = l->bodies.salt};
        return load_arrivals_make(ret, ret_n, &a, err);
    }
    double *due = malloc(t->n * sizeof *due);
    if (!due) return err_nomem(err);
    size_t n = 0;
    while (n < t->n && (!l->o->requests || n < (size_t)l->o->requests) &&
           (seconds <= 0 || t->v[n].at_s / l->o->more.speed < seconds)) {
        due[n] = t->v[n].at_s / l->o->more.speed;
        n++;
    }
    *ret = due;
    *ret_n = n;
    return 0;
}

/* A ramp and the steps of a range end after some time. */
static double seconds_of(const load *l, const step *s)
{
    bool ends = l->o->duration_s > 0 || l->o->requests;
    return l->o->duration_s > 0                               ? l->o->duration_s
           : !ends && (s->rate_to > 0 || l->o->more.step > 0) ? STEP_S
                                                              : 0;
}

static void name_step(const load *l, const step *s, char ret[48])
{
    if (s->rate_to > 0)
        snprintf(ret, 48, "%g to %g/s", s->rate, s->rate_to);
    else if (s->rate > 0)
        snprintf(ret, 48, "%g/s", s->rate);
    else if (l->bodies.trace.n)
        snprintf(ret, 48, "trace");
    else
        snprintf(ret, 48, "%d client%s", s->n_clients, s->n_clients == 1 ? "" : "s");
}

static int run_plan(load *l, const load_plan *plan, load_row *row, shoal_err *err)
{
    load_result r;
    load_plan p = *plan;
    int rc = load_record_new(&p.record, err);
    if (rc != 0) return rc;
    load_cores_begin(&row->cpu, l->pid);
    l->said_s = 0;
    rc = load_run(&p, &r, err);
    erase(l);
    if (rc == 0) {
        load_cores_end(&row->cpu, r.seconds);
        load_row_take(row, p.record, &r);
        row->broke = l->objective.name[0] && load_objective_broke(&l->objective, &r);
    }
    load_record_free(p.record);
    return rc;
}

static int run_step(load *l, const step *s, shoal_err *err)
{
    load_row *row = &l->rows[l->n_rows];
    double seconds = seconds_of(l, s), *due = NULL;
    size_t n = requests_of(l->o, seconds);
    bool open = s->rate > 0 || l->bodies.trace.n;
    load_bodies_next_run(&l->bodies);
    row->n_clients = s->n_clients;
    row->rate = s->rate;
    row->rate_to = s->rate_to;
    name_step(l, s, row->name);
    int rc = open ? make_arrivals(l, s, seconds, &due, &n, err) : 0;
    if (rc == 0 && open && n == 0)
        rc = err_set(err, SHOAL_EINVALID, "no request is due: a longer --duration, or a higher --rate");
    if (rc == 0) {
        l->view = (load_live){
            .name = row->name, .whole_s = open ? due[n - 1] : seconds, .n_most = n < REQUESTS_MOST ? n : 0};
        const load_plan plan = {.where = l->where,
                                .schedule = {.n_clients = s->n_clients,
                                             .n_requests = n,
                                             .seconds = seconds,
                                             .due_s = due,
                                             .think_s = l->o->more.think_s},
                                .timeout_ms = (uint32_t)(l->o->more.timeout_s * 1e3),
                                .make = make,
                                .user = l,
                                .watch = on_watch};
        rc = run_plan(l, &plan, row, err);
    }
    free(due);
    if (rc == 0) l->n_rows++;
    return rc;
}

/* ---- what is printed -------------------------------------------------------------------------------- */

static void put_json_text(buf *out, const char *s)
{
    if (s)
        json_put_string(out, s, strlen(s));
    else
        buf_puts(out, "null");
}

static void print_head(const load *l)
{
    const bench_load_options *m = &l->o->more;
    buf out = {0};
    if (l->o->json) {
        buf_printf(&out, "{\"url\":\"%s\",\"model\":", l->o->url);
        put_json_text(&out, l->o->load);
        buf_puts(&out, ",\"server\":");
        put_json_text(&out, l->report.server);
        buf_puts(&out, ",\"path\":");
        put_json_text(&out, l->report.path);
        buf_printf(&out, ",\"words\":%g,\"max_tokens\":%g,\"cached\":%s,\"loads\":[", l->bodies.o.prompt.from,
                   l->bodies.o.reply.from, l->o->cached ? "true" : "false");
    } else {
        buf_printf(&out, "%s%s", l->o->url, l->report.path);
        if (l->o->load) buf_printf(&out, ", %s", l->o->load);
        for (size_t i = 0; i < l->report.n_settings; i++)
            if (strcmp(l->report.settings[i].name, "prompts") == 0 ||
                strcmp(l->report.settings[i].name, "bodies") == 0 ||
                strcmp(l->report.settings[i].name, "trace") == 0)
                buf_printf(&out, "; %s: %s", l->report.settings[i].name, l->report.settings[i].value);
        buf_printf(&out, "%s\n\n", l->o->cached ? " (the cache may answer)" : "");
        buf_printf(&out, "%7s %7s %6s %6s %9s %9s %9s %9s %9s %9s %9s %9s %10s\n",
                   m->rate    ? "RATE/S"
                   : m->trace ? "TRACE"
                              : "CLIENTS",
                   "REQ/S", "OK", "FAILED", "TOKENS/S", "FIRST p50", "p99 ms", "GAP p50", "p99 ms",
                   "WHOLE p50", "p95 ms", "p99 ms", "TOK/CPU s");
    }
    fwrite(buf_text(&out), 1, out.len, stdout);
    buf_done(&out);
}

static void print_row_json(const load *l, const load_row *row, bool first)
{
    const load_result *r = &row->r;
    buf processes = {0}, rest = {0};
    double per_s = r->seconds > 0 ? (double)r->n_tokens / r->seconds : 0;
    double requests = r->seconds > 0 ? (double)r->n_ok / r->seconds : 0;
    load_cores_put_json(&row->cpu, &processes);
    load_row_put_json(row, &rest);
    printf("%s{\"clients\":%d,\"rate\":%g,\"rate_to\":%g,\"ok\":%zu,\"failed\":%zu,\"late\":%zu,\"seconds\":%"
           ".3f,"
           "\"tokens\":%zu,"
           "\"tokens_per_s\":%.1f,\"requests_per_s\":%.2f,\"first_p50_ms\":%.3f,\"first_p99_ms\":%.3f,"
           "\"gap_p50_ms\":%.3f,\"gap_p99_ms\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f%s,"
           "\"tokens_per_cpu_s\":%.1f%s%s}",
           first ? "" : ",", row->n_clients, row->rate, row->rate_to, r->n_ok, r->n_failed, r->n_late,
           r->seconds, r->n_tokens, per_s, requests, r->first_p50_ms, r->first_p99_ms, r->gap_p50_ms,
           r->gap_p99_ms, r->p50_ms, r->p99_ms, processes.failed ? "" : buf_text(&processes),
           row->cpu.seconds > 0 ? (double)r->n_tokens / row->cpu.seconds : 0.0,
           rest.failed ? "" : buf_text(&rest),
           !l->objective.name[0] ? ""
           : row->broke          ? ",\"objective_held\":false"
                                 : ",\"objective_held\":true");
    buf_done(&processes);
    buf_done(&rest);
}

static void print_row(const load *l, const load_row *row)
{
    const load_result *r = &row->r;
    double s = r->seconds > 0 ? r->seconds : 1;
    char load_name[32];
    snprintf(load_name, sizeof load_name, row->rate_to > 0 ? "%g-%g" : "%g",
             row->rate > 0 ? row->rate : row->n_clients, row->rate_to);
    printf("%7s %7.1f %6zu %6zu %9.1f %9.2f %9.2f %9.2f %9.2f %9.1f %9.1f %9.1f %10.0f\n",
           l->bodies.trace.n ? "" : load_name, (double)r->n_ok / s, r->n_ok, r->n_failed,
           (double)r->n_tokens / s, r->first_p50_ms, r->first_p99_ms, r->gap_p50_ms, r->gap_p99_ms, r->p50_ms,
           r->p95_ms, r->p99_ms, row->cpu.seconds > 0 ? (double)r->n_tokens / row->cpu.seconds : 0);
    load_cores_print(&row->cpu);
    for (size_t i = 0, any = 0; i < LOAD_N_ERRORS; i++)
        if (row->errors[i])
            printf("%s%s %zu", any++ ? ", " : "      failed: ", load_error_words[i], row->errors[i]);
    if (r->n_failed) printf("\n");
}

static void print_notes(const load *l, const load_row *row)
{
    const load_result *r = &row->r;
    bool open = row->rate > 0 || l->bodies.trace.n;
    if (r->n_failed) cli_say("%s: first failure: %s\n", row->name, r->first_failure);
    if (open && r->n_late >= 5 && r->n_late * 100 > r->n_ok + r->n_failed)
        cli_say("%s: %zu of %zu requests left over 1 ms late; their times count from when they were due\n",
                row->name, r->n_late, r->n_ok + r->n_failed);
    if (row->n_by_texts)
        cli_say("%s: the server counts no tokens: each text of a stream counts as one\n", row->name);
}

static int write_file(const char *path, void (*put)(const load_report *, buf *), const load_report *r,
                      shoal_err *err)
{
    buf out = {0};
    if (!path) return 0;
    put(r, &out);
    int rc = out.failed ? err_nomem(err) : file_replace(path, &out, err);
    buf_done(&out);
    return rc;
}

static int finish(load *l, shoal_err *err)
{
    char verdict[200];
    l->report.rows = l->rows;
    l->report.n_rows = l->n_rows;
    load_report_verdict(&l->report, verdict, sizeof verdict);
    if (l->o->json) {
        buf out = {0};
        put_json_text(&out, verdict[0] ? verdict : NULL);
        printf("],\"objective\":%s}\n", out.failed ? "null" : out.data);
        buf_done(&out);
    }
    if (!l->o->json && verdict[0]) printf("\n%s\n", verdict);
    if (!l->o->json && !l->pid)
        printf("\nno CPU time: nobody here listens there that this user may look into (--pid)\n");
    int rc = write_file(l->o->svg, load_report_put_svg, &l->report, err);
    return rc == 0 ? write_file(l->o->more.html, load_report_put_html, &l->report, err) : rc;
}

/* ---- the whole -------------------------------------------------------------------------------------- */

static int open_load(load *l, shoal_err *err)
{
    const bench_load_options *m = &l->o->more;
    int rc = cli_process_where(&l->where, l->o->url, err);
    if (rc == 0) rc = check_options(l, err);
    if (rc == 0) rc = read_arrivals(l, err);
    if (rc == 0) rc = read_steps(l, err);
    if (rc == 0 && m->objective) rc = load_objective_read(&l->objective, m->objective, err);
    if (rc == 0) rc = open_bodies(l, err);
    if (rc != 0) return rc;
    l->pid = l->o->pid ? (int)l->o->pid : load_cpu_find(&l->where);
    if (l->o->pid && load_cpu_seconds(l->pid) < 0)
        return err_set(err, SHOAL_EINVALID, "--pid %d: there is no such process", l->pid);
    l->rows = calloc(l->n_steps, sizeof *l->rows);
    if (!l->rows) return err_nomem(err);
    if (m->prompt_tokens) return learn_tokens(l, err);
    shoal_err unknown;
    if (load_bodies_count_tokens(&l->bodies))
        (void)learn_tokens(l, &unknown); /* else a word counts as a token */
    return 0;
}

/* Ctrl-C ends the load early, and again everything. */
static void take_interrupts(void)
{
    struct sigaction a = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
}

int bench_load(const bench_options *o, shoal_err *err)
{
    load l = {.o = o, .live = tty_style_shows(STDERR_FILENO) && isatty(STDERR_FILENO)};
    int rc = open_load(&l, err);
    if (rc == 0) {
        ask_version(&l);
        describe(&l);
        print_head(&l);
        take_interrupts();
        for (size_t i = 0; rc == 0 && i < l.n_steps && !interrupted; i++) {
            rc = run_step(&l, &l.steps[i], err);
            if (rc != 0) break;
            const load_row *row = &l.rows[i];
            if (o->json)
                print_row_json(&l, row, i == 0);
            else
                print_row(&l, row);
            fflush(stdout);
            print_notes(&l, row);
            if (row->broke && row->rate > 0) break;
        }
        if (l.n_rows) {
            int ended = finish(&l, rc == 0 ? err : NULL);
            if (rc == 0) rc = ended;
        }
    }
    load_bodies_done(&l.bodies);
    free(l.rows);
    return rc;
}

int bench_save_trace(const bench_options *o, shoal_err *err)
{
    http_where where;
    buf body = {0}, out = {0};
    json_t *v = NULL;
    size_t n = 0;
    const char *key = o->more.key ? o->more.key : getenv("SHOAL_API_KEY");
    int rc = cli_process_where(&where, o->url, err);
    if (rc == 0) rc = cli_process_get(&where, "/v1/requests?limit=512", key, &body, err);
    if (rc == 0) rc = json_parse_last(&v, buf_text(&body), body.len, "/v1/requests", err);
    if (rc == 0) rc = load_trace_put_requests(&out, v, &n, err);
    if (rc == 0 && n == 0)
        rc = err_set(err, SHOAL_ENOTFOUND, "the server lists no request that could be sent again");
    if (rc == 0) rc = file_replace(o->more.save_trace, &out, err);
    if (rc == 0) cli_printf("%s: %zu requests\n", o->more.save_trace, n);
    json_decref(v);
    buf_done(&body);
    buf_done(&out);
    return rc;
}
