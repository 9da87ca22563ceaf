/* pipeline_graph.h: a pipeline as a layered graph: which stage leads to which, and on what condition.
 *
 *     pipeline_graph g;
 *     pipeline_graph_make(&g, p, err);
 *     pipeline_graph_put_svg(&g, 0, &out) ...             or _put_dot, _put_text
 *     pipeline_graph_done(&g);
 *
 * Node 0 is the request, node i + 1 is stage i, and behind these stand bends: places where an edge that
 * passes a layer goes between its boxes. Edges point to later layers (Sugiyama, Tagawa and Toda, "Methods for
 * visual understanding of hierarchical system structures", 1981). Pure. */
#ifndef PIPELINE_PIPELINE_GRAPH_H
#define PIPELINE_PIPELINE_GRAPH_H

#include "base/buf.h"
#include "pipeline/pipeline.h"

typedef struct graph_edge {
    unsigned from, to;       /* nodes, never bends */
    buf label;               /* "is read", "unless read"; empty: it only waits */
    bool bars;               /* an "unless" alone */
    unsigned port;           /* its place among the edges into `to`, from the top */
    unsigned bends, n_bends; /* nodes [bends, bends + n_bends), by layer */
} graph_edge;

typedef struct graph_node {
    unsigned layer, n_in; /* n_in: edges that end here */
    bool is_bend;
    double x, y, width, height; /* pixels; y is its middle */
    double order, wish;         /* within its layer; where it would like to be */
} graph_node;

typedef struct pipeline_graph {
    const config_pipeline *p;
    graph_node *nodes;
    size_t n_nodes; /* with bends */
    graph_edge *edges;
    size_t n_edges;
    unsigned n_layers;
    double width, height; /* of all, as pipeline_graph_place has it */
} pipeline_graph;

/* p has passed pipeline_check, and is borrowed. Fails only with SHOAL_ENOMEM; give *ret to _done in any case.
 */
int pipeline_graph_make(pipeline_graph *ret, const config_pipeline *p, shoal_err *err);
void pipeline_graph_done(pipeline_graph *g);

/* How wide a text of n letters is, about; and how many of a label are drawn. */
double pipeline_graph_text_width(size_t n, double size);
enum { GRAPH_LABEL_MAX = 38 };

/* Appended. The SVG is a group that begins at height y and needs a frame around it. */
void pipeline_graph_put_svg(const pipeline_graph *g, double y, buf *out);
void pipeline_graph_put_dot(const pipeline_graph *g, buf *out);
void pipeline_graph_put_text(const pipeline_graph *g, buf *out);
/* The frame: what comes before and after the graphs, which stand one below the other. */
void pipeline_graph_begin_svg(double width, double height, buf *out);
void pipeline_graph_end_svg(buf *out);

#endif
