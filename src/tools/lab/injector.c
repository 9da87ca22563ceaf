/* injector.c: what each fault does to processes, links and disks. */
#include "lab/injector.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { TARGETS_MAX = 256, FLOWS_MAX = 1024 };

typedef struct victim {
    int node;
    pid_t pid; /* 0: the whole node */
    char model[64];
    relay_flow *muted; /* its connections, while a silent freeze lasts */
    size_t n_muted;
} victim;

struct injector {
    const lab_scenario *s;
    processes *processes;
    host *nodes;
    relay *links;
    lab_record *record;
    victim *victims; /* [n_injections] */
};

/* ---- links ---- */

static bool names(const char *end, const lab_scenario *s, size_t node)
{
    return strcmp(end, "*") == 0 || scenario_node(s, end) == (int)node;
}

/* Call fn for each direction that two ends name. */
static void each_link(injector *x, const char *const *between, bool one_way, const void *arg,
                      void (*fn)(injector *x, size_t from, size_t to, const void *arg))
{
    for (size_t a = 0; a <= x->s->n_nodes; a++)
        for (size_t b = 0; b <= x->s->n_nodes; b++)
            if (a != b && ((names(between[0], x->s, a) && names(between[1], x->s, b)) ||
                           (!one_way && names(between[1], x->s, a) && names(between[0], x->s, b))))
                fn(x, a, b, arg);
}

static void set_quality(injector *x, size_t from, size_t to, const void *arg)
{
    relay_set(x->links, from, to, arg);
}

static void injector_cut(injector *x, size_t from, size_t to, const void *arg)
{
    relay_cut(x->links, from, to, true);
}

static void mend(injector *x, size_t from, size_t to, const void *arg)
{
    relay_cut(x->links, from, to, false);
}

/* Cut or mend all links of one node. */
static void reach_node(injector *x, size_t node,
                       void (*fn)(injector *x, size_t from, size_t to, const void *arg))
{
    for (size_t other = 0; other <= x->s->n_nodes; other++) {
        if (other == node) continue;
        fn(x, node, other, NULL);
        fn(x, other, node, NULL);
    }
}

/* As the scenario's links say; the last that names a direction counts. */
static void set_links(injector *x)
{
    static const lab_quality perfect;
    const char *all[] = {"*", "*"};
    each_link(x, all, false, &perfect, set_quality);
    for (size_t i = 0; i < x->s->n_links; i++)
        each_link(x, x->s->links[i].between, x->s->links[i].one_way, &x->s->links[i].q, set_quality);
}

/* The ends of a link fault that are nodes by name: theirs is the lane that shows it. */
static void note_link(injector *x, const lab_fault *f, lab_state state, double at_ms, bool begins)
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

/* MODEL, or MODEL@FIRST for the stage that begins with this layer. */
static bool is_of_model(const char *line, const char *model, const char *wanted)
{
    size_t n = strcspn(wanted, "@"), n_first = strlen(wanted) - n;
    const char *layers = strstr(line, " --layers ");
    if (strlen(model) != n || memcmp(model, wanted, n) != 0) return false;
    if (n_first == 0) return true;
    if (!layers) return false;
    layers += strlen(" --layers ");
    return strncmp(layers, wanted + n + 1, n_first - 1) == 0 && layers[n_first - 1] == ':';
}

static size_t find_workers(const injector *x, const lab_fault *f, int node, victim *ret, size_t max)
{
    host_process *all = calloc(TARGETS_MAX, sizeof *all);
    size_t found = 0, n = all ? host_processes(&x->nodes[node], all, TARGETS_MAX) : 0;
    for (size_t i = 0; i < n && found < max; i++) {
        victim v = {.node = node, .pid = all[i].pid};
        if (!worker_model(all[i].line, v.model, sizeof v.model)) continue;
        if (!f->model || is_of_model(all[i].line, v.model, f->model)) ret[found++] = v;
    }
    free(all);
    return found;
}

static size_t find_on_node(const injector *x, const lab_fault *f, int node, victim *ret, size_t max)
{
    if (!f->of || strcmp(f->of, "node") == 0) {
        bool meant = !f->model || find_workers(x, f, node, ret, 1) > 0;
        *ret = (victim){.node = node};
        return meant;
    }
    if (strcmp(f->of, "worker") == 0) return find_workers(x, f, node, ret, max);
    *ret = (victim){.node = node, .pid = processes_pid(x->processes, (size_t)node, f->of)};
    return ret->pid > 0;
}

/* Draws one of all that the fault may mean. First the node, then what is on it, so that a node with many
 * workers is not struck more often. */
static bool draw_victim(const injector *x, const lab_event *e, victim *ret)
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
        size_t p = schedule_draw(x->s, e->injection, 0, n_places);
        *ret = all[starts[p] + schedule_draw(x->s, e->injection, 1, starts[p + 1] - starts[p])];
    }
    free(all);
    return n > 0;
}

static void injector_describe(const injector *x, const lab_fault *f, const victim *v, lab_injection *s)
{
    char word[32];
    snprintf(word, sizeof word, "%s%s", f->silent ? "silent " : "", lab_action_words[f->action]);
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

static int no_power(injector *x, size_t node, shoal_err *err)
{
    int rc = relay_plug(x->links, node, -1, err);
    if (rc != 0) return rc;
    host_power_off(&x->nodes[node]);
    processes_off(x->processes, node);
    return 0;
}

static int power(injector *x, size_t node, shoal_err *err)
{
    int rc = host_power_on(&x->nodes[node], err);
    return rc == 0 ? relay_plug(x->links, node, x->nodes[node].tun_fd, err) : rc;
}

/* Nothing of its connections reaches anybody from now on; v remembers them for the end of the fault. */
static int mute(injector *x, victim *v, shoal_err *err)
{
    free(v->muted);
    v->muted = calloc(FLOWS_MAX, sizeof *v->muted);
    if (!v->muted) return err_nomem(err);
    v->n_muted = host_flows(&x->nodes[v->node], v->pid, v->muted, FLOWS_MAX);
    return relay_mute(x->links, v->muted, v->n_muted, true, err);
}

static bool is_whole(const lab_fault *f)
{
    return f->action == LAB_REBOOT || (f->of && strcmp(f->of, "node") == 0);
}

/* Does the machine vanish, rather than say goodbye for its processes? */
static bool loses_power(const lab_fault *f)
{
    return f->action == LAB_REBOOT || (f->action == LAB_KILL && f->silent && is_whole(f));
}

static void signal_victim(injector *x, const victim *v, int signum)
{
    if (v->pid)
        kill(v->pid, signum);
    else
        host_signal(&x->nodes[v->node], signum);
}

/* A machine whose kernel hangs, too, answers no packet. */
static int freeze(injector *x, const lab_fault *f, victim *v, double at_ms, shoal_err *err)
{
    int rc = f->silent && !is_whole(f) ? mute(x, v, err) : 0;
    if (rc != 0) return rc;
    if (f->silent && is_whole(f)) reach_node(x, (size_t)v->node, injector_cut);
    signal_victim(x, v, SIGSTOP);
    if (!v->model[0]) record_begin(x->record, (size_t)v->node, STATE_FROZEN, at_ms);
    return 0;
}

static int strike_processes(injector *x, const lab_fault *f, victim *v, double at_ms, shoal_err *err)
{
    size_t node = (size_t)v->node;
    if (f->action == LAB_FREEZE) return freeze(x, f, v, at_ms, err);
    if (loses_power(f)) return no_power(x, node, err);
    if (is_whole(f)) {
        processes_off(x->processes, node);
        return 0;
    }
    if (!v->model[0] && f->for_s > 0) processes_hold(x->processes, node, f->of);
    int rc = f->silent ? mute(x, v, err) : 0;
    if (rc == 0) kill(v->pid, f->action == LAB_TERM ? SIGTERM : SIGKILL);
    return rc;
}

static int strike_victim(injector *x, const lab_event *e, lab_injection *s, shoal_err *err)
{
    const lab_fault *f = &x->s->faults[e->fault];
    victim *v = &x->victims[e->injection];
    s->hit = draw_victim(x, e, v);
    injector_describe(x, f, s->hit ? v : NULL, s);
    if (!s->hit) return 0;
    s->node = v->node;
    snprintf(s->model, sizeof s->model, "%s", v->model);
    if (f->action == LAB_RUN) {
        s->hit = processes_run(x->processes, (size_t)v->node, f->run, err) == 0;
        return 0;
    }
    if (f->action != LAB_FILL) return strike_processes(x, f, v, s->at_ms, err);
    host_fill(&x->nodes[v->node]);
    record_begin(x->record, (size_t)v->node, STATE_FULL, s->at_ms);
    return 0;
}

int injector_begin(injector *x, const lab_event *e, double at_ms, shoal_err *err)
{
    const lab_fault *f = &x->s->faults[e->fault];
    lab_injection *s = &x->record->injections[e->injection];
    *s = (lab_injection){
        .fault = e->fault, .at_ms = at_ms, .end_ms = -1, .node = -1, .gap_ms = -1, .hit = true};
    if (!f->n_between) return strike_victim(x, e, s, err);
    injector_describe(x, f, NULL, s);
    note_link(x, f, f->action == LAB_CUT ? STATE_CUT_OFF : STATE_SLOW, at_ms, true);
    if (f->action == LAB_CUT)
        each_link(x, f->between, f->one_way, NULL, injector_cut);
    else
        each_link(x, f->between, f->one_way, &f->q, set_quality);
    return 0;
}

static int thaw(injector *x, const lab_fault *f, const victim *v, double at_ms, shoal_err *err)
{
    size_t node = (size_t)v->node;
    int rc = relay_mute(x->links, v->muted, v->n_muted, false, err);
    if (f->silent && is_whole(f)) reach_node(x, node, mend);
    signal_victim(x, v, SIGCONT);
    record_end(x->record, node, STATE_FROZEN, at_ms);
    return rc;
}

static int undo(injector *x, const lab_event *e, double at_ms, shoal_err *err)
{
    const lab_fault *f = &x->s->faults[e->fault];
    const victim *v = &x->victims[e->injection];
    size_t node = (size_t)v->node;
    int rc = 0;
    if (f->action == LAB_FREEZE) return thaw(x, f, v, at_ms, err);
    if (f->action == LAB_FILL) {
        host_unfill(&x->nodes[node]);
        record_end(x->record, node, STATE_FULL, at_ms);
    } else if (is_whole(f)) {
        if (loses_power(f)) rc = power(x, node, err);
        processes_boot(x->processes, node);
    } else if (!v->model[0]) {
        processes_release(x->processes, node, f->of, clock_ns());
    }
    return rc;
}

int injector_end(injector *x, const lab_event *e, double at_ms, shoal_err *err)
{
    const lab_fault *f = &x->s->faults[e->fault];
    lab_injection *s = &x->record->injections[e->injection];
    s->end_ms = at_ms;
    if (f->n_between) {
        note_link(x, f, f->action == LAB_CUT ? STATE_CUT_OFF : STATE_SLOW, at_ms, false);
        if (f->action == LAB_CUT)
            each_link(x, f->between, f->one_way, NULL, mend);
        else
            set_links(x);
    } else if (s->hit) {
        return undo(x, e, at_ms, err);
    }
    return 0;
}

int injector_new(injector **ret, const lab_scenario *s, processes *c, host *nodes, relay *links,
                 lab_record *record, shoal_err *err)
{
    injector *x = calloc(1, sizeof *x);
    victim *victims = calloc(record->n_injections + 1, sizeof *victims);
    if (!x || !victims) {
        free(x);
        free(victims);
        return err_nomem(err);
    }
    *x = (injector){
        .s = s, .processes = c, .nodes = nodes, .links = links, .record = record, .victims = victims};
    set_links(x);
    *ret = x;
    return 0;
}
