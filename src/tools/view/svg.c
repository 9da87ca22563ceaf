/* svg.c: see svg.h. */
#include "view/svg.h"

const char *const svg_colours[SVG_N_COLOURS] = {"#2f7dd1", "#d9772b", "#2f8f6f",
                                                "#b0568f", "#8a7a1f", "#6f6fd9"};

const char svg_style[] =
    ".paper{fill:#ffffff} text{fill:#1d2733} .strong{font-weight:600} "
    ".title{font-weight:600;font-size:16px}\n"
    "text.dim{fill:#5b6774} line{stroke:#dde3e9} line.ideal{stroke:#5b6774;stroke-dasharray:6 4}\n"
    "line.cores{stroke:#5b6774;stroke-dasharray:2 3}\n"
    "@media (prefers-color-scheme: dark){.paper{fill:#12181f} text{fill:#e6ebf0} text.dim{fill:#9aa7b4}\n"
    "line{stroke:#2b3540} line.ideal,line.cores{stroke:#9aa7b4}}\n";

void svg_escape(buf *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '<' || c == '>' || c == '&' || c == '"')
            buf_printf(out, "&#%d;", c);
        else
            buf_putc(out, c < 32 ? ' ' : (char)c);
    }
}

void svg_text(buf *out, const char *class, double x, double y, const char *anchor, const char *s)
{
    buf_printf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y, anchor);
    svg_escape(out, s);
    buf_puts(out, "</text>\n");
}

void svg_line(buf *out, const char *class, double x1, double y1, double x2, double y2)
{
    buf_printf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1,
               x2, y2);
}

void svg_begin(buf *out, int width, int height)
{
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
               "font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<style>\n",
               width, height, width, height);
    buf_puts(out, svg_style);
    buf_puts(out, "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
}
