/* svg.h: the pieces of SVG charts, legible on light and dark paper. */
#ifndef VIEW_SVG_H
#define VIEW_SVG_H

#include "base/buf.h"

enum { SVG_N_COLOURS = 6 };
/* Each of them is legible on white and on black. */
extern const char *const svg_colours[SVG_N_COLOURS];

/* Text of XML: escaped, without control characters. */
void svg_escape(buf *out, const char *s);
/* anchor: "start", "middle" or "end". class: one of svg_style's. */
void svg_text(buf *out, const char *class, double x, double y, const char *anchor, const char *s);
void svg_line(buf *out, const char *class, double x1, double y1, double x2, double y2);
/* The rules of the classes (title, strong, ink, dim; rule, ideal, cores; paper) for light and dark, for a <style>. */
extern const char svg_style[];
/* "<svg ...>" of that size with these rules and the paper. */
void svg_begin(buf *out, int width, int height);

#endif
