/* pipeline_words.c: see pipeline_words.h. */
#include "pipeline/pipeline_words.h"

static void pipeline_words_put_labels(const stage_condition *c, buf *out)
{
    if (c->n_label) buf_puts(out, " is ");
    for (unsigned i = 0; i < c->n_label; i++)
        buf_printf(out, "%s%s", i == 0 ? "" : i + 1 < c->n_label ? ", " : " or ", c->label[i]);
}

/* " scores 0.8 or more", the first one after a label with "and". */
static void put_bound(const char *what, const double *bound, const char *end, bool *first, buf *out)
{
    if (!bound) return;
    buf_printf(out, "%s %s%g%s", *first ? "" : " and", what, *bound, end);
    *first = false;
}

static void put_stage(const stage_condition *c, bool with_name, buf *out)
{
    size_t start = out->len;
    bool first = c->n_label == 0;
    if (with_name) buf_puts(out, c->stage);
    pipeline_words_put_labels(c, out);
    put_bound("scores ", c->score_min, " or more", &first, out);
    put_bound("scores under ", c->score_below, "", &first, out);
    put_bound("gives ", c->number_min, " or more", &first, out);
    put_bound("gives less than ", c->number_below, "", &first, out);
    put_bound("is unsure (under ", c->mean_prob_below, ")", &first, out);
    if (!with_name && !out->failed && out->len > start) { /* every part begins with a blank */
        for (size_t i = start; i < out->len; i++) out->data[i] = out->data[i + 1];
        out->len--;
    }
}

static void put_and(size_t start, buf *out)
{
    if (out->len > start) buf_puts(out, " and ");
}

void pipeline_put_condition(const stage_condition *c, bool with_name, buf *out)
{
    size_t start = out->len;
    if (c->stage) put_stage(c, with_name, out);
    if (c->text_prefix) put_and(start, out);
    if (c->text_prefix) buf_printf(out, "the input starts with '%s'", c->text_prefix);
    if (c->mentions_device) put_and(start, out);
    if (c->mentions_device) buf_puts(out, "the input names a device");
    if (c->brings) put_and(start, out);
    if (c->brings) buf_printf(out, "the request brings %s", c->brings);
}

static void put_any(const stage_condition *c, unsigned n, buf *out)
{
    for (unsigned i = 0; i < n; i++) {
        if (i) buf_puts(out, ", or ");
        pipeline_put_condition(&c[i], true, out);
    }
}

void pipeline_put_when(const config_stage *s, buf *out)
{
    if (s->n_when) buf_puts(out, "when ");
    put_any(s->when, s->n_when, out);
    if (!s->n_when && !s->n_unless) buf_puts(out, "always");
    if (s->n_unless) buf_puts(out, s->n_when ? ", unless " : "unless ");
    put_any(s->unless, s->n_unless, out);
}
