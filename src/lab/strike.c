/* strike.c: what each fault does to processes, links and disks. */
#include "lab/strike.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { TARGETS_MAX = 256 };

typedef struct victim {
    int node;
    pid_t pid; /* 0: the whole node */
    char model[64];
} victim;

struct striker {
    const lab_scenario *s;
    crew *crew;
    const host *nodes;
    relay *links;
    lab_record *record;
    victim *victims; /* [n_strikes] */
};

/* ---- links ---- */

static bool names(const char *end, const lab_scenario *s, size_t node)
{
    return strcmp(end, "*") == 0 || scenario_node(s, end) == (int)node;
}

/* Call fn for each direction that two ends name. */
static void each_link(striker *x, const char *const *between, bool one_way, const void *arg,
                      void (*fn)(striker *x, size_t from, size_t to, const void *arg))
{
    for (size_t a = 0; a <= x->s->n_nodes; a++)
        for (size_t b = 0; b <= x->s->n_nodes; b++)
            if (a != b && ((names(between[0], x->s, a) && names(between[1], x->s, b)) ||
                           (!one_way && names(between[1], x->s, a) && names(between[0], x->s, b))))
                fn(x, a, b, arg);
}

static void set_quality(striker *x, size_t from, size_t to, const void *arg)
{
    relay_set(x->links, from, to, arg);
}

static void cut(striker *x, size_t from, size_t to, const void *arg)
{
    relay_cut(x->links, from, to, true);
}

static void mend(striker *x, size_t from, size_t to, const void *arg)
{
    relay_cut(x->links, from, to, false);
}

/* Cut or mend all links of one node. */
static void reach_node(striker *x, size_t node,
                       void (*fn)(striker *x, size_t from, size_t to, const void *arg))
{
    for (size_t other = 0; other <= x->s->n_nodes; other++) {
        if (other == node) continue;
        fn(x, node, other, NULL);
        fn(x, other, node, NULL);
    }
}

/* As the scenario's links say; the last that names a direction counts. */
static void set_links(striker *x)
{
    static const lab_quality perfect;
    const char *all[] = {"*", "*"};
    each_link(x, all, false, &perfect, set_quality);
    for (size_t i = 0; i < x->s->n_links; i++)
        each_link(x, x->s->links[i].between, x->s->links[i].one_way, &x->s->links[i].q, set_quality);
}

/* The ends of a link fault that are nodes by name: theirs is the lane that shows it. */
static void note_link(striker *x, const lab_fault *f, lab_state state, double at_ms, bool begins)
{
    for (int k = 0; k < 2; k++) {
        int node = strcmp(f->between[k], "*") == 0 ? -1 : scenario_node(x->s, f->between[k]);
        if (node < 0 || (size_t)node == x->s->n_nodes) continue;
        if (begins)
            record_begin(x->record, (size_t)node, state, at_ms);
        else
            record_end(x->record, (size_t)node, state, at_ms);
    }
}

/* ---- victims ---- */

/* The value of "--name" in a worker's command line; false when it is no worker. */
static bool worker_model(const char *line, char *ret, size_t cap)
{
    const char *at = strstr(line, " worker "), *name = at ? strstr(at, " --name ") : NULL;
    if (!name) return false;
    name += strlen(" --name ");
    snprintf(ret, cap, "%.*s", (int)strcspn(name, " "), name);
    return true;
}

static size_t find_workers(const striker *x, const lab_fault *f, int node, victim *ret, size_t max)
{
    host_process *all = calloc(TARGETS_MAX, sizeof *all);
    size_t found = 0, n = all ? host_processes(&x->nodes[node], all, TARGETS_MAX) : 0;
    for (size_t i = 0; i < n && found < max; i++) {
        victim v = {.node = node, .pid = all[i].pid};
        if (!worker_model(all[i].line, v.model, sizeof v.model)) continue;
        if (!f->model || strcmp(f->model, v.model) == 0) ret[found++] = v;
    }
    free(all);
    return found;
}

static size_t find_on_node(const striker *x, const lab_fault *f, int node, victim *ret, size_t max)
{
    if (!f->of || strcmp(f->of, "node") == 0) {
        *ret = (victim){.node = node};
        return 1;
    }
    if (strcmp(f->of, "worker") == 0) return find_workers(x, f, node, ret, max);
    *ret = (victim){.node = node, .pid = crew_pid(x->crew, (size_t)node, f->of)};
    return ret->pid > 0;
}

/* Draws one of all that the fault may mean. First the node, then what is on it, so that a node with many
 * workers is not struck more often. */
static bool draw_victim(const striker *x, const lab_event *e, victim *ret)
{
    const lab_fault *f = &x->s->faults[e->fault];
    victim *all = calloc(TARGETS_MAX, sizeof *all);
    size_t starts[LAB_NODES_MAX + 1] = {0}, n_places = 0, n = 0;
    for (size_t i = 0; all && i < x->s->n_nodes; i++) {
        if (f->node && strcmp(f->node, x->s->nodes[i].name) != 0) continue;
        size_t found = find_on_node(x, f, (int)i, all + n, TARGETS_MAX - n);
        if (!found) continue;
        starts[n_places++] = n;
        n += found;
        starts[n_places] = n;
    }
    if (n) {
        size_t p = timetable_draw(x->s, e->strike, 0, n_places);
        *ret = all[starts[p] + timetable_draw(x->s, e->strike, 1, starts[p + 1] - starts[p])];
    }
    free(all);
    return n > 0;
}

static void describe(const striker *x, const lab_fault *f, const victim *v, lab_strike *s)
{
    const char *word = lab_action_words[f->action];
    if (f->n_between)
        snprintf(s->what, sizeof s->what, "%s %s %s %s", word, f->between[0], f->one_way ? "to" : "and",
                 f->between[1]);
    else if (!v)
        snprintf(s->what, sizeof s->what, "%s %s: there is none", word, f->of ? f->of : "node");
    else if (f->run)
        snprintf(s->what, sizeof s->what, "on %s: %s", x->nodes[v->node].name, f->run);
    else if (f->action == LAB_REBOOT || f->action == LAB_FILL || strcmp(f->of, "node") == 0)
        snprintf(s->what, sizeof s->what, "%s %s", word, x->nodes[v->node].name);
    else
        snprintf(s->what, sizeof s->what, "%s %s%s%s on %s", word, f->of, v->model[0] ? " " : "", v->model,
                 x->nodes[v->node].name);
}

/* ---- striking ---- */

static void signal_victim(striker *x, const victim *v, int signum)
{
    if (v->pid)
        kill(v->pid, signum);
    else
        host_signal(&x->nodes[v->node], signum);
}

static void strike_processes(striker *x, const lab_fault *f, const victim *v, double at_ms)
{
    bool whole = f->of && strcmp(f->of, "node") == 0, worker = v->model[0] != '\0';
    size_t node = (size_t)v->node;
    if (f->action == LAB_FREEZE) {
        signal_victim(x, v, SIGSTOP);
        if (!worker) record_begin(x->record, node, STATE_FROZEN, at_ms);
        return;
    }
    if (f->action == LAB_REBOOT) reach_node(x, node, cut);
    if (whole || f->action == LAB_REBOOT) {
        crew_off(x->crew, node);
        return;
    }
    if (!worker && f->for_s > 0) crew_hold(x->crew, node, f->of);
    kill(v->pid, f->action == LAB_TERM ? SIGTERM : SIGKILL);
}

static bool strike_victim(striker *x, const lab_event *e, lab_strike *s)
{
    const lab_fault *f = &x->s->faults[e->fault];
    victim v = {0};
    shoal_err err;
    bool found = draw_victim(x, e, &v);
    describe(x, f, found ? &v : NULL, s);
    if (!found) return false;
    x->victims[e->strike] = v;
    s->node = v.node;
    snprintf(s->model, sizeof s->model, "%s", v.model);
    if (f->action == LAB_RUN) return crew_run(x->crew, (size_t)v.node, f->run, &err) == 0;
    if (f->action == LAB_FILL) {
        host_fill(&x->nodes[v.node]);
        record_begin(x->record, (size_t)v.node, STATE_FULL, s->at_ms);
    } else {
        strike_processes(x, f, &v, s->at_ms);
    }
    return true;
}

void striker_begin(striker *x, const lab_event *e, double at_ms)
{
    const lab_fault *f = &x->s->faults[e->fault];
    lab_strike *s = &x->record->strikes[e->strike];
    *s = (lab_strike){.fault = e->fault, .at_ms = at_ms, .end_ms = -1, .node = -1, .gap_ms = -1, .hit = true};
    if (!f->n_between) {
        s->hit = strike_victim(x, e, s);
        return;
    }
    describe(x, f, NULL, s);
    note_link(x, f, f->action == LAB_CUT ? STATE_CUT_OFF : STATE_SLOW, at_ms, true);
    if (f->action == LAB_CUT)
        each_link(x, f->between, f->one_way, NULL, cut);
    else
        each_link(x, f->between, f->one_way, &f->q, set_quality);
}

static void undo(striker *x, const lab_event *e, double at_ms)
{
    const lab_fault *f = &x->s->faults[e->fault];
    const victim *v = &x->victims[e->strike];
    size_t node = (size_t)v->node;
    if (f->action == LAB_FREEZE) {
        signal_victim(x, v, SIGCONT);
        record_end(x->record, node, STATE_FROZEN, at_ms);
    } else if (f->action == LAB_FILL) {
        host_unfill(&x->nodes[node]);
        record_end(x->record, node, STATE_FULL, at_ms);
    } else if (f->action == LAB_REBOOT || strcmp(f->of, "node") == 0) {
        if (f->action == LAB_REBOOT) reach_node(x, node, mend);
        crew_boot(x->crew, node);
    } else if (!v->model[0]) {
        crew_release(x->crew, node, f->of, clock_ns());
    }
}

void striker_end(striker *x, const lab_event *e, double at_ms)
{
    const lab_fault *f = &x->s->faults[e->fault];
    lab_strike *s = &x->record->strikes[e->strike];
    s->end_ms = at_ms;
    if (f->n_between) {
        note_link(x, f, f->action == LAB_CUT ? STATE_CUT_OFF : STATE_SLOW, at_ms, false);
        if (f->action == LAB_CUT)
            each_link(x, f->between, f->one_way, NULL, mend);
        else
            set_links(x);
    } else if (s->hit) {
        undo(x, e, at_ms);
    }
}

int striker_new(striker **ret, const lab_scenario *s, crew *c, const host *nodes, relay *links,
                lab_record *record, shoal_err *err)
{
    striker *x = calloc(1, sizeof *x);
    victim *victims = calloc(record->n_strikes + 1, sizeof *victims);
    if (!x || !victims) {
        free(x);
        free(victims);
        return err_nomem(err);
    }
    *x = (striker){.s = s, .crew = c, .nodes = nodes, .links = links, .record = record, .victims = victims};
    set_links(x);
    *ret = x;
    return 0;
}

void striker_free(striker *x)
{
    if (!x) return;
    free(x->victims);
    free(x);
}
