/* run.c: builds a lab, runs its load undisturbed and disturbed, and reports. */
#define _GNU_SOURCE
#include "lab/run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "lab/processes.h"
#include "lab/load.h"
#include "lab/chart.h"
#include "lab/report.h"
#include "lab/sandbox.h"
#include "lab/injector.h"

enum { BOOT_LIMIT_S = 60, TICK_US = 2000, PINGS = 200, ANSWER_MS = 100, SAY_EVERY_MS = 5000 };

typedef struct lab {
    const lab_scenario *s;
    const lab_run_options *o;
    host nodes[LAB_NODES_MAX + 1]; /* the last is the client */
    size_t n_open;
    int tuns[LAB_NODES_MAX + 1]; /* the relay borrows them */
    relay *links;
    processes *processes;
    injector *injector;
    lab_load *load;
    lab_event *events;
    size_t n_events;
    char *urls[16];
    lab_record record;
    uint64_t start_ns; /* of the disturbed run */
    bool live, line_open;
    uint64_t said_ns;
} lab;

/* ---- signals: the first ends the load early, the next everything ---- */

static volatile sig_atomic_t interrupted, may_finish;

static void run_on_signal(int signum)
{
    if (interrupted || !may_finish) _exit(128 + signum); /* process 1: all goes with it */
    interrupted = signum;
}

static void watch_signals(void)
{
    struct sigaction a = {.sa_handler = run_on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- progress ---- */

static void run_say(lab *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void run_say(lab *l, const char *fmt, ...)
{
    va_list args;
    if (l->line_open) fputs("\r\033[K", stderr);
    l->line_open = false;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Where the run is: one line that changes on a terminal, one now and then elsewhere. */
static void run_show(lab *l, uint64_t now)
{
    double s = (double)(now - l->start_ns) / 1e9;
    if (now - l->said_ns < (l->live ? 100u : SAY_EVERY_MS) * 1000000ull) return;
    l->said_ns = now;
    lab_load_counts c = lab_load_now(l->load);
    fprintf(stderr, "%s%6.1f/%g s  %zu asked, %zu answered, %zu lost, %zu different%s",
            l->live ? "\r\033[K" : "", s, l->s->seconds, c.n_started, c.n_answered, c.n_lost, c.n_different,
            l->live ? "" : "\n");
    l->line_open = l->live;
}

/* ---- building ---- */

static int open_nodes(lab *l, const char *root, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i <= l->s->n_nodes; i++) {
        bool client = i == l->s->n_nodes;
        rc = host_open(&l->nodes[i], root, client ? LAB_CLIENT : l->s->nodes[i].name, i,
                       client ? 1 : l->s->nodes[i].disk_mb, err);
        if (rc == 0) l->n_open++;
    }
    for (size_t i = 0; i < l->n_open; i++) l->tuns[i] = l->nodes[i].tun_fd;
    if (rc == 0) rc = relay_start(&l->links, l->tuns, l->n_open, l->s->seed, err);
    return rc == 0 ? host_enter(&l->nodes[l->s->n_nodes], err) : rc;
}

static bool answers(void *user, const char *url)
{
    return lab_load_answers(url, ANSWER_MS);
}

static int boot(lab *l, size_t node, shoal_err *err)
{
    uint64_t start = clock_ns();
    int rc = 0;
    processes_boot(l->processes, node);
    while (rc == 0 && !processes_up(l->processes, node)) {
        rc = processes_tick(l->processes, clock_ns(), err);
        if (rc == 0 && clock_ns() - start > BOOT_LIMIT_S * 1000000000ull)
            rc = err_set(err, SHOAL_EUNAVAILABLE, "node %s was not up in %d s; its logs are in %s/logs",
                         l->s->nodes[node].name, BOOT_LIMIT_S, l->o->out);
        usleep(TICK_US);
    }
    if (rc == 0)
        run_say(l, "node %s (%s) is up after %.0f ms", l->nodes[node].name, l->nodes[node].ip,
                clock_ms_since(start));
    return rc;
}

static int start_processes(lab *l, shoal_err *err)
{
    char logs[4200];
    snprintf(logs, sizeof logs, "%s/logs", l->o->out);
    processes_hooks hooks = {
        .program = l->o->program, .share = l->o->share, .logs = strdup(logs), .answers = answers};
    int rc = hooks.logs ? processes_new(&l->processes, l->s, l->nodes, &hooks, err) : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < l->s->n_nodes; i++) rc = boot(l, i, err);
    return rc;
}

static int start_load(lab *l, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < l->s->n_gateways; i++) {
        buf url = {0};
        rc = processes_expand(l->processes, l->s->n_nodes, l->s->gateways[i], &url) != 0 ? err_nomem(err) : 0;
        l->urls[i] = buf_take(&url);
    }
    return rc == 0 ? lab_load_new(&l->load, l->s, &l->nodes[l->s->n_nodes], (const char *const *)l->urls, err)
                   : rc;
}

/* ---- what the links themselves cost ---- */

static uint16_t checksum(const uint16_t *p, size_t n_words)
{
    uint32_t sum = 0;
    while (n_words--) sum += *p++;
    sum = (sum >> 16) + (sum & 0xffff);
    return (uint16_t) ~(sum + (sum >> 16));
}

/* Half the median time of an echo from `ip`, in microseconds, both kernels' part included; -1 when none came.
 */
static double echo_us(const char *ip)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct timeval limit = {.tv_usec = 100000};
    double us[PINGS];
    size_t n = 0;
    inet_pton(AF_INET, ip, &to.sin_addr);
    int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    for (uint16_t i = 0; i < PINGS; i++) {
        struct icmphdr ask = {.type = ICMP_ECHO, .un.echo = {.id = htons(77), .sequence = htons(i)}};
        unsigned char in[128];
        ask.checksum = checksum((const uint16_t *)&ask, sizeof ask / 2);
        uint64_t start = clock_ns();
        if (sendto(fd, &ask, sizeof ask, 0, (struct sockaddr *)&to, sizeof to) < 0) break;
        ssize_t got;
        do /* what is not the reply to this one comes late, or was for somebody else */
            got = recv(fd, in, sizeof in, 0);
        while (got > 0 && (got < 28 || in[20] != ICMP_ECHOREPLY || in[26] != i >> 8 || in[27] != (i & 255)));
        if (got > 0) us[n++] = (double)(clock_ns() - start) / 2e3;
    }
    close(fd);
    qsort(us, n, sizeof *us, number_compare_doubles);
    return n ? us[n / 2] : -1;
}

static void measure_links(lab *l)
{
    l->record.link_added_us = echo_us(l->nodes[0].ip);
    if (l->record.link_added_us >= 0)
        run_say(l, "a packet's way through the lab's switch takes %.0f us", l->record.link_added_us);
}

/* ---- the disturbed run ---- */

static int strike_due(lab *l, size_t *next, uint64_t now, shoal_err *err)
{
    double at_ms = (double)(now - l->start_ns) / 1e6;
    int rc = 0;
    for (; rc == 0 && *next < l->n_events && l->events[*next].at_s * 1e3 <= at_ms; ++*next) {
        const lab_event *e = &l->events[*next];
        const lab_injection *k = &l->record.injections[e->injection];
        rc = (e->begins ? injector_begin : injector_end)(l->injector, e, at_ms, err);
        run_say(l, "%8.2f s  %s%s", at_ms / 1e3, k->what, e->begins ? "" : ": over");
    }
    return rc;
}

/* Nodes whose processes run, and those that wait for them. */
static void note_states(lab *l, double at_ms)
{
    for (size_t i = 0; i < l->s->n_nodes; i++)
        if (processes_up(l->processes, i))
            record_end(&l->record, i, STATE_DOWN, at_ms);
        else
            record_begin(&l->record, i, STATE_DOWN, at_ms);
}

static int disturb(lab *l, shoal_err *err)
{
    size_t next = 0;
    int rc = 0;
    bool over = false;
    l->start_ns = l->said_ns = clock_ns();
    rc = lab_load_begin(l->load, l->start_ns, err);
    while (rc == 0 && !(over && next == l->n_events)) {
        uint64_t now = clock_ns();
        over = interrupted || (double)(now - l->start_ns) / 1e9 >= l->s->seconds;
        if (interrupted) break;
        rc = strike_due(l, &next, now, err);
        if (rc == 0) rc = processes_tick(l->processes, now, err);
        note_states(l, (double)(now - l->start_ns) / 1e6);
        run_show(l, now);
        usleep(TICK_US);
    }
    if (interrupted) run_say(l, "interrupted: waiting for the answers under way; once more to stop at once");
    lab_load_stop(l->load);
    while (rc == 0 && lab_load_busy(l->load)) { /* what died comes back meanwhile */
        rc = processes_tick(l->processes, clock_ns(), err);
        note_states(l, clock_ms_since(l->start_ns));
        usleep(TICK_US);
    }
    shoal_err late;
    int ended = lab_load_end(l->load, &l->record, rc == 0 ? err : &late);
    l->record.whole_ms = (double)(clock_ns() - l->start_ns) / 1e6;
    l->record.links = relay_read(l->links);
    l->record.interrupted = interrupted != 0;
    return rc == 0 ? ended : rc;
}

static int prepare_strikes(lab *l, shoal_err *err)
{
    int rc = schedule_make(&l->events, &l->n_events, l->s, err);
    for (size_t i = 0; rc == 0 && i < l->n_events; i++) l->record.n_injections += l->events[i].begins;
    l->record.injections = calloc(l->record.n_injections + 1, sizeof *l->record.injections);
    if (rc == 0 && !l->record.injections) rc = err_nomem(err);
    return rc == 0 ? injector_new(&l->injector, l->s, l->processes, l->nodes, l->links, &l->record, err) : rc;
}

/* ---- the report ---- */

static int save_answers(lab *l, shoal_err *err)
{
    char path[4300];
    snprintf(path, sizeof path, "%s/answers.jsonl", l->o->out);
    FILE *f = fopen(path, "we");
    if (f) lab_load_write(l->load, f);
    if (f && fclose(f) == 0) return 0;
    return err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
}

static int run_report(lab *l, int *ret_status, shoal_err *err)
{
    lab_summary sum;
    char picture[4300];
    snprintf(picture, sizeof picture, "%s/timeline.svg", l->o->out);
    while (l->record.n_injections && !l->record.injections[l->record.n_injections - 1].what[0])
        l->record.n_injections--; /* those that an interrupted run did not come to */
    record_find_gaps(&l->record);
    int rc = report_sum(&sum, &l->record, err);
    if (rc == 0) rc = report_write(l->o->out, &l->record, &sum, err);
    if (rc == 0) rc = chart_write(picture, &l->record, &sum, err);
    if (rc != 0) return rc;
    run_say(l, "report: %s/report.txt, timeline.svg, requests.jsonl", l->o->out);
    if (l->o->json)
        report_print_line(stdout, &sum);
    else
        report_print(stdout, &l->record, &sum);
    *ret_status = sum.n_lost + sum.n_different ? LAB_FAULTY : 0;
    return 0;
}

static int run_all(lab *l, const char *root, int *ret_status, shoal_err *err)
{
    int rc = open_nodes(l, root, err);
    if (rc == 0) rc = start_processes(l, err);
    if (rc == 0) measure_links(l);
    if (rc == 0) rc = start_load(l, err);
    if (rc == 0 && l->o->reference)
        rc = lab_load_read(l->load, l->o->reference, err);
    else if (rc == 0)
        rc = lab_load_calm(l->load, err);
    if (rc == 0) rc = save_answers(l, err);
    if (rc == 0) rc = prepare_strikes(l, err);
    if (rc != 0) return rc;
    run_say(l, "the disturbed run begins: %zu fault%s in %g s", l->record.n_injections,
            l->record.n_injections == 1 ? "" : "s", l->s->seconds);
    may_finish = 1;
    rc = disturb(l, err);
    return rc == 0 ? run_report(l, ret_status, err) : rc;
}

/* Process 1. What it leaves to the kernel: networks, disks and processes. */
static int lab_main(void *user, const char *root)
{
    lab *l = user;
    shoal_err err = {0};
    int status = 1;
    watch_signals();
    if (run_all(l, root, &status, &err) != 0) run_say(l, "shoal lab: %s", err.message);
    if (interrupted && status == 0) status = 128 + (int)interrupted;
    return status;
}

int lab_run(const lab_scenario *s, const lab_run_options *o, int *ret_status, shoal_err *err)
{
    lab *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    l->s = s;
    l->o = o;
    l->record.scenario = s;
    l->live = isatty(STDERR_FILENO) != 0;
    int rc = sandbox_run(lab_main, l, ret_status, err);
    free(l);
    return rc;
}
