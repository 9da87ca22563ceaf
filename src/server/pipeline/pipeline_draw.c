/* pipeline_draw.c: a placed graph as SVG, as DOT (Graphviz) and as lines of text; see pipeline_graph.h. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "pipeline/pipeline_graph.h"

static const char *pipeline_draw_name_of(const pipeline_graph *g, unsigned node)
{
    return node ? g->p->stages[node - 1].name : "the request"; /* which no stage can be called */
}

/* ---- SVG -------------------------------------------------------------------------------------------- */

/* The first `most` bytes and "...", whole characters. */
static void put_xml(const char *s, size_t most, buf *out)
{
    size_t n = strlen(s), cut = n;
    if (n > most) {
        for (cut = most - 3; cut > 0 && ((unsigned char)s[cut] & 0xC0) == 0x80;) cut--;
    }
    for (size_t i = 0; i < cut; i++) {
        if (strchr("<>&\"", s[i]))
            buf_printf(out, "&#%d;", s[i]);
        else
            buf_putc(out, (unsigned char)s[i] < ' ' ? ' ' : s[i]);
    }
    if (cut < n) buf_puts(out, "...");
}

void pipeline_graph_begin_svg(double width, double height, buf *out)
{
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
               "height=\"%.0f\" font-family=\"system-ui, sans-serif\">\n",
               width, height, width, height);
    buf_puts(out,
             "<style>\n"
             ":root{--paper:#fff;--ink:#1c2630;--soft:#5a6875;--line:#8795a3;--box:#eef3f8;--rule:#f6f1e4;"
             "--bar:#b3423a}\n"
             "@media (prefers-color-scheme:dark){:root{--paper:#12181f;--ink:#e6edf3;--soft:#9fb0c0;"
             "--line:#6b7c8d;--box:#1d2935;--rule:#2c2920;--bar:#f08a80}}\n"
             ".paper{fill:var(--paper)}.box{fill:var(--box);stroke:var(--line)}.rule{fill:var(--rule)}\n"
             ".optional{stroke-dasharray:5 4}.edge{fill:none;stroke:var(--line);stroke-width:1.3}\n"
             ".edge.bars{stroke:var(--bar)}.head{fill:var(--line)}.head.bars{fill:var(--bar)}\n"
             "text{fill:var(--ink)}.title{font-size:15px;font-weight:600}\n"
             ".name{font-size:13px;font-weight:600}.what,.label{font-size:11px;fill:var(--soft)}\n"
             ".label.bars{fill:var(--bar)}\n"
             "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
}

void pipeline_graph_end_svg(buf *out)
{
    buf_puts(out, "</svg>\n");
}

static void pipeline_draw_put_text(double x, double y, const char *class, const char *anchor, const char *s,
                                   size_t most, buf *out)
{
    buf_printf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y, anchor);
    put_xml(s, most, out);
    buf_puts(out, "</text>\n");
}

static void put_box(const pipeline_graph *g, unsigned i, buf *out)
{
    const graph_node *n = &g->nodes[i];
    const config_stage *s = i ? &g->p->stages[i - 1] : NULL;
    double middle = n->x + n->width / 2;
    buf_puts(out, "<g>");
    if (s) buf_puts(out, "<title>");
    if (s) put_xml(s->name, 64, out);
    if (s) buf_puts(out, s->optional ? ": may fail</title>" : "</title>");
    buf_printf(out,
               "<rect class=\"box%s%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%d\"/>\n",
               s && !s->model ? " rule" : "", s && s->optional ? " optional" : "", n->x, n->y - n->height / 2,
               n->width, n->height, s ? 6 : 16);
    pipeline_draw_put_text(middle, n->y + (s ? -3 : 4.5), "name", "middle", pipeline_draw_name_of(g, i), 64,
                           out);
    if (s) {
        char what[160];
        snprintf(what, sizeof what, "%s%s%s", s->kind->name, s->model ? " · " : "", s->model ? s->model : "");
        pipeline_draw_put_text(middle, n->y + 13, "what", "middle", what, 160, out);
    }
    buf_puts(out, "</g>\n");
}

/* Where an edge enters its box. */
static double port_of(const pipeline_graph *g, const graph_edge *e)
{
    const graph_node *to = &g->nodes[e->to];
    return to->y + 18.0 * ((double)e->port - (to->n_in - 1) / 2.0);
}

static void put_curve(double x0, double y0, double x1, double y1, buf *out)
{
    double half = (x1 - x0) / 2;
    buf_printf(out, " C%.1f %.1f %.1f %.1f %.1f %.1f", x0 + half, y0, x1 - half, y1, x1, y1);
}

/* Before a box all edges run straight, as far as the longest of their labels reaches. */
static double straight_from(const pipeline_graph *g, unsigned box)
{
    size_t most = 0;
    for (size_t i = 0; i < g->n_edges; i++)
        if (g->edges[i].to == box && g->edges[i].label.len > most) most = g->edges[i].label.len;
    if (most > GRAPH_LABEL_MAX) most = GRAPH_LABEL_MAX;
    return g->nodes[box].x - 12 - (most ? pipeline_graph_text_width(most, 11) + 4 : 0);
}

/* Curves between layers, straight past boxes and under the label. */
static void put_edge(const pipeline_graph *g, const graph_edge *e, buf *out)
{
    const graph_node *from = &g->nodes[e->from], *to = &g->nodes[e->to];
    const char *bars = e->bars ? " bars" : "";
    double x = from->x + from->width, y = from->y, port = port_of(g, e), straight = straight_from(g, e->to);
    buf_printf(out, "<g><title>");
    put_xml(e->label.len ? buf_text(&e->label) : "waits", 400, out);
    buf_printf(out, "</title><path class=\"edge%s\" d=\"M%.1f %.1f", bars, x, y);
    for (unsigned i = e->bends; i < e->bends + e->n_bends; i++) {
        put_curve(x, y, g->nodes[i].x, g->nodes[i].y, out);
        x = g->nodes[i].x + g->nodes[i].width;
        y = g->nodes[i].y;
        buf_printf(out, " L%.1f %.1f", x, y);
    }
    put_curve(x, y, straight, port, out);
    buf_printf(out, " L%.1f %.1f\"/><path class=\"head%s\" d=\"M%.1f %.1f l-8 -4 v8 z\"/>\n", to->x - 6, port,
               bars, to->x, port);
    if (e->label.len) {
        char class[16];
        snprintf(class, sizeof class, "label%s", bars);
        pipeline_draw_put_text(to->x - 12, port - 4, class, "end", buf_text(&e->label), GRAPH_LABEL_MAX, out);
    }
    buf_puts(out, "</g>\n");
}

void pipeline_graph_put_svg(const pipeline_graph *g, double y, buf *out)
{
    buf_printf(out, "<g transform=\"translate(0 %.1f)\">\n", y);
    pipeline_draw_put_text(16, 24, "title", "start", g->p->name, 64, out);
    for (size_t i = 0; i < g->n_edges; i++) put_edge(g, &g->edges[i], out);
    for (unsigned i = 0; i <= g->p->n_stages; i++) put_box(g, i, out);
    buf_puts(out, "</g>\n");
}

/* ---- DOT -------------------------------------------------------------------------------------------- */

static void put_quoted(const char *s, buf *out)
{
    buf_putc(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\' || *s == '\n') buf_putc(out, '\\');
        buf_putc(out, *s == '\n' ? 'n' : (unsigned char)*s < ' ' ? ' ' : *s);
    }
    buf_putc(out, '"');
}

void pipeline_graph_put_dot(const pipeline_graph *g, buf *out)
{
    buf_puts(out, "digraph ");
    put_quoted(g->p->name, out);
    buf_puts(out, " {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n  \"the request\" [shape=oval];\n");
    for (unsigned i = 1; i <= g->p->n_stages; i++) {
        const config_stage *s = &g->p->stages[i - 1];
        char what[200];
        snprintf(what, sizeof what, "%s\n%s%s%s", s->name, s->kind->name, s->model ? " " : "",
                 s->model ? s->model : "");
        buf_puts(out, "  ");
        put_quoted(s->name, out);
        buf_puts(out, " [label=");
        put_quoted(what, out);
        buf_puts(out, s->optional ? ", style=\"rounded,dashed\"];\n" : "];\n");
    }
    for (size_t i = 0; i < g->n_edges; i++) {
        const graph_edge *e = &g->edges[i];
        buf_puts(out, "  ");
        put_quoted(pipeline_draw_name_of(g, e->from), out);
        buf_puts(out, " -> ");
        put_quoted(pipeline_draw_name_of(g, e->to), out);
        if (e->label.len) buf_puts(out, " [label=");
        if (e->label.len) put_quoted(buf_text(&e->label), out);
        if (e->label.len) buf_putc(out, ']');
        buf_puts(out, ";\n");
    }
    buf_puts(out, "}\n");
}

/* ---- text ------------------------------------------------------------------------------------------- */

static size_t widest_name(const pipeline_graph *g)
{
    size_t n = 0;
    for (unsigned i = 0; i <= g->p->n_stages; i++)
        if (strlen(pipeline_draw_name_of(g, i)) > n) n = strlen(pipeline_draw_name_of(g, i));
    return n;
}

void pipeline_graph_put_text(const pipeline_graph *g, buf *out)
{
    int width = (int)widest_name(g);
    buf_printf(out, "%s\n", g->p->name);
    for (unsigned i = 0; i <= g->p->n_stages; i++) {
        const config_stage *s = i ? &g->p->stages[i - 1] : NULL;
        buf_printf(out, "  %s", pipeline_draw_name_of(g, i));
        if (s)
            buf_printf(out, " (%s%s%s%s)", s->kind->name, s->model ? " " : "", s->model ? s->model : "",
                       s->optional ? ", optional" : "");
        buf_putc(out, '\n');
        for (size_t k = 0; k < g->n_edges; k++) {
            const graph_edge *e = &g->edges[k];
            if (e->from != i) continue;
            buf_printf(out, "    -> %-*s%s%s", e->label.len ? width : 0, pipeline_draw_name_of(g, e->to),
                       e->label.len ? "  " : "", buf_text(&e->label));
            buf_putc(out, '\n');
        }
    }
}
