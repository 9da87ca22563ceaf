/* pipeline_graph.c: edges, layers and places; see pipeline_graph.h. */
#include "pipeline/pipeline_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline_template.h"
#include "pipeline/pipeline_words.h"

/* Pixels. */
enum { BOX_HEIGHT = 46, PORT_STEP = 18, GAP_Y = 20, BEND_HEIGHT = 16, MARGIN = 16, HEAD = 34, SWEEPS = 12 };

double pipeline_graph_text_width(size_t n, double size)
{
    return (double)n * size * 0.56;
}

/* ---- edges ------------------------------------------------------------------------------------------ */

static graph_edge *edge_of(pipeline_graph *g, unsigned from, unsigned to)
{
    for (size_t i = 0; i < g->n_edges; i++)
        if (g->edges[i].from == from && g->edges[i].to == to) return &g->edges[i];
    g->edges[g->n_edges] = (graph_edge){.from = from, .to = to};
    return &g->edges[g->n_edges++];
}

/* Conditions hang on the edge from the stage that they look at, or from the request. */
static void add_condition(pipeline_graph *g, unsigned stage, const stage_condition *c, bool unless)
{
    int about = c->stage ? pipeline_stage_index(g->p, c->stage, strlen(c->stage)) : -1;
    graph_edge *e = edge_of(g, (unsigned)(about + 1), stage + 1);
    bool fresh = e->label.len == 0;
    if (fresh) e->bars = unless;
    bool goes_on = !fresh && (!unless || e->bars); /* another of the same */
    if (!fresh) buf_puts(&e->label, goes_on ? " or " : ", ");
    if (!goes_on) buf_printf(&e->label, "%s %s", unless ? "unless" : "if", about < 0 ? "" : "it ");
    pipeline_put_condition(c, false, &e->label);
}

/* Is there a longer way from stage k to stage i? Then a line between them would say nothing. */
static bool is_implied(const config_pipeline *p, unsigned k, unsigned i)
{
    uint32_t behind = 1u << k;
    for (unsigned m = k + 1; m < i; m++) {
        if (!(p->stages[m].needs & behind)) continue;
        behind |= 1u << m;
        if (p->stages[i].needs >> m & 1) return true;
    }
    return false;
}

static void add_edges(pipeline_graph *g, unsigned i)
{
    const config_stage *s = &g->p->stages[i];
    bool any = false;
    for (unsigned k = 0; k < s->n_when; k++) add_condition(g, i, &s->when[k], false);
    for (unsigned k = 0; k < s->n_unless; k++) add_condition(g, i, &s->unless[k], true);
    for (unsigned k = 0; k < i; k++)
        if (s->needs >> k & 1 && !is_implied(g->p, k, i)) edge_of(g, k + 1, i + 1);
    for (size_t k = 0; k < g->n_edges; k++) any |= g->edges[k].to == i + 1;
    if (!any) edge_of(g, 0, i + 1);
}

/* ---- layers ----------------------------------------------------------------------------------------- */

static void find_layers(pipeline_graph *g)
{
    for (size_t i = 0; i < g->n_edges; i++) { /* they come in the order of their ends */
        graph_node *to = &g->nodes[g->edges[i].to];
        unsigned least = g->nodes[g->edges[i].from].layer + 1;
        if (to->layer < least) to->layer = least;
        to->n_in++;
    }
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].layer + 1 > g->n_layers) g->n_layers = g->nodes[i].layer + 1;
}

static int add_bends(pipeline_graph *g, shoal_err *err)
{
    size_t n = g->n_nodes;
    for (size_t i = 0; i < g->n_edges; i++)
        n += g->nodes[g->edges[i].to].layer - g->nodes[g->edges[i].from].layer - 1;
    graph_node *nodes = realloc(g->nodes, n * sizeof *nodes);
    if (!nodes) return err_nomem(err);
    g->nodes = nodes;
    for (size_t i = 0; i < g->n_edges; i++) {
        graph_edge *e = &g->edges[i];
        e->bends = (unsigned)g->n_nodes;
        for (unsigned layer = nodes[e->from].layer + 1; layer < nodes[e->to].layer; layer++)
            nodes[g->n_nodes++] = (graph_node){.layer = layer, .is_bend = true, .height = BEND_HEIGHT};
        e->n_bends = (unsigned)g->n_nodes - e->bends;
    }
    return 0;
}

/* ---- order within layers ---------------------------------------------------------------------------- */

/* The k-th node of an edge's way: its beginning, its bends, its end. */
static unsigned on_way(const graph_edge *e, unsigned k)
{
    return k == 0 ? e->from : k <= e->n_bends ? e->bends + k - 1 : e->to;
}

/* The mean of `value` over the neighbours of a node in the layer before (step -1) or behind it; NAN: none. */
static double mean_of(const pipeline_graph *g, unsigned node, int step, bool by_order)
{
    double sum = 0;
    unsigned n = 0;
    for (size_t i = 0; i < g->n_edges; i++)
        for (unsigned k = 0; k <= g->edges[i].n_bends; k++) {
            unsigned a = on_way(&g->edges[i], k), b = on_way(&g->edges[i], k + 1);
            if ((step < 0 ? b : a) != node) continue;
            const graph_node *other = &g->nodes[step < 0 ? a : b];
            sum += by_order ? other->order : other->y;
            n++;
        }
    return n ? sum / (double)n : NAN;
}

/* The nodes of a layer by their order. */
static size_t layer_of(const pipeline_graph *g, unsigned layer, unsigned *ret)
{
    size_t n = 0;
    for (unsigned i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].layer != layer) continue;
        size_t at = n++;
        for (; at > 0 && g->nodes[ret[at - 1]].order > g->nodes[i].order; at--) ret[at] = ret[at - 1];
        ret[at] = i;
    }
    return n;
}

static void sort_layer(pipeline_graph *g, unsigned layer, int step, unsigned *scratch)
{
    size_t n = layer_of(g, layer, scratch);
    for (size_t i = 0; i < n; i++) g->nodes[scratch[i]].wish = mean_of(g, scratch[i], step, true);
    for (size_t i = 0; i < n; i++) {
        graph_node *at = &g->nodes[scratch[i]];
        if (!isnan(at->wish)) at->order = at->wish + 1e-6 * (double)i; /* of equals the first stays first */
    }
    n = layer_of(g, layer, scratch);
    for (size_t i = 0; i < n; i++) g->nodes[scratch[i]].order = (double)i;
}

static void sort_layers(pipeline_graph *g, unsigned *scratch)
{
    for (unsigned layer = 0; layer < g->n_layers; layer++) {
        size_t n = layer_of(g, layer, scratch);
        for (size_t i = 0; i < n; i++) g->nodes[scratch[i]].order = (double)i;
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (unsigned layer = 1; layer < g->n_layers; layer++) sort_layer(g, layer, -1, scratch);
        for (unsigned layer = g->n_layers; layer-- > 0 && sweep + 1 < SWEEPS;)
            sort_layer(g, layer, 1, scratch);
    }
}

/* ---- places ----------------------------------------------------------------------------------------- */

/* Push nodes apart that are too near, first downwards and then, from the last wish, upwards. */
static void spread(pipeline_graph *g, const unsigned *nodes, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const graph_node *a = &g->nodes[nodes[i - 1]];
        graph_node *b = &g->nodes[nodes[i]];
        double least = a->y + (a->height + b->height) / 2 + GAP_Y;
        if (b->y < least) b->y = least;
    }
}

static void place_layer(pipeline_graph *g, unsigned layer, int step, unsigned *scratch)
{
    size_t n = layer_of(g, layer, scratch);
    double wished = 0, got = 0;
    for (size_t i = 0; i < n; i++) {
        double wish = mean_of(g, scratch[i], step, false);
        if (!isnan(wish)) g->nodes[scratch[i]].y = wish;
        wished += g->nodes[scratch[i]].y;
    }
    spread(g, scratch, n);
    for (size_t i = 0; i < n; i++) got += g->nodes[scratch[i]].y;
    for (size_t i = 0; i < n; i++) g->nodes[scratch[i]].y -= (got - wished) / (double)n;
}

static void place_rows(pipeline_graph *g, unsigned *scratch)
{
    double top = INFINITY, bottom = 0;
    for (size_t i = 0; i < g->n_nodes; i++) g->nodes[i].y = g->nodes[i].order * (BOX_HEIGHT + GAP_Y);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (unsigned layer = 0; layer < g->n_layers; layer++) place_layer(g, layer, -1, scratch);
        for (unsigned layer = g->n_layers; layer-- > 0 && sweep + 1 < SWEEPS;)
            place_layer(g, layer, 1, scratch);
    }
    for (size_t i = 0; i < g->n_nodes; i++) top = fmin(top, g->nodes[i].y - g->nodes[i].height / 2);
    for (size_t i = 0; i < g->n_nodes; i++) {
        g->nodes[i].y += MARGIN + HEAD - top;
        bottom = fmax(bottom, g->nodes[i].y + g->nodes[i].height / 2);
    }
    g->height = bottom + MARGIN;
}

static size_t shown(const buf *label)
{
    return label->len < GRAPH_LABEL_MAX ? label->len : GRAPH_LABEL_MAX;
}

/* Each layer begins behind the widest box of the one before and the widest label into it. */
static void place_columns(pipeline_graph *g)
{
    double x = MARGIN;
    for (unsigned layer = 0; layer < g->n_layers; layer++) {
        double widest = 0, label = 0;
        for (size_t i = 0; i < g->n_edges; i++)
            if (g->nodes[g->edges[i].to].layer == layer)
                label = fmax(label, pipeline_graph_text_width(shown(&g->edges[i].label), 11));
        if (layer > 0) x += 64 + label;
        for (size_t i = 0; i < g->n_nodes; i++)
            if (g->nodes[i].layer == layer) widest = fmax(widest, g->nodes[i].width);
        for (size_t i = 0; i < g->n_nodes; i++)
            if (g->nodes[i].layer == layer) g->nodes[i].x = x;
        for (size_t i = 0; i < g->n_nodes; i++)
            if (g->nodes[i].layer == layer && g->nodes[i].is_bend) g->nodes[i].width = widest;
        x += widest;
    }
    g->width = x + MARGIN;
}

static void size_boxes(pipeline_graph *g)
{
    g->nodes[0].width = pipeline_graph_text_width(strlen("the request"), 13) + 28;
    g->nodes[0].height = 32;
    for (unsigned i = 0; i < g->p->n_stages; i++) {
        const config_stage *s = &g->p->stages[i];
        graph_node *n = &g->nodes[i + 1];
        size_t below = strlen(s->kind->name) + (s->model ? strlen(s->model) + 3 : 0);
        n->width =
            24 + fmax(pipeline_graph_text_width(strlen(s->name), 13.5), pipeline_graph_text_width(below, 11));
        n->height = fmax(BOX_HEIGHT, 10 + PORT_STEP * n->n_in);
    }
}

/* Edges into one box enter it in the order in which they come along. */
static void choose_ports(pipeline_graph *g)
{
    for (size_t i = 0; i < g->n_edges; i++) {
        graph_edge *e = &g->edges[i];
        double y = g->nodes[on_way(e, e->n_bends)].y;
        e->port = 0;
        for (size_t k = 0; k < g->n_edges; k++) {
            const graph_edge *o = &g->edges[k];
            double other = g->nodes[on_way(o, o->n_bends)].y;
            if (o->to == e->to && (other < y || (other == y && k < i))) e->port++;
        }
    }
}

int pipeline_graph_make(pipeline_graph *ret, const config_pipeline *p, shoal_err *err)
{
    *ret = (pipeline_graph){.p = p, .n_nodes = p->n_stages + 1u};
    size_t most = (size_t)p->n_stages * (p->n_stages + 1u);
    ret->nodes = calloc(ret->n_nodes, sizeof *ret->nodes);
    ret->edges = calloc(most, sizeof *ret->edges);
    if (!ret->nodes || !ret->edges) return err_nomem(err);
    for (unsigned i = 0; i < p->n_stages; i++) add_edges(ret, i);
    for (size_t i = 0; i < ret->n_edges; i++)
        if (ret->edges[i].label.failed) return err_nomem(err);
    find_layers(ret);
    int rc = add_bends(ret, err);
    unsigned *scratch = rc ? NULL : calloc(ret->n_nodes, sizeof *scratch);
    if (!rc && !scratch) rc = err_nomem(err);
    if (!rc) {
        size_boxes(ret);
        sort_layers(ret, scratch);
        place_rows(ret, scratch);
        place_columns(ret);
        choose_ports(ret);
    }
    free(scratch);
    return rc;
}

void pipeline_graph_done(pipeline_graph *g)
{
    for (size_t i = 0; g->edges && i < g->n_edges; i++) buf_done(&g->edges[i].label);
    free(g->edges);
    free(g->nodes);
    *g = (pipeline_graph){0};
}
