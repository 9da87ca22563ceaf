/* inspect_trees.c: see inspect_trees.h. */
#include "inspect/inspect_trees.h"

#include <string.h>

#include "json/json_put.h"

enum { NAMES_SHOWN = 8 };

static void inspect_trees_put_field(buf *out, const char *name)
{
    buf_printf(out, "%s%-14s", out->len ? "\n" : "", name);
}

static void put_names(buf *out, const char *field, const char *const *names, size_t n)
{
    if (n == 0) return;
    inspect_trees_put_field(out, field);
    buf_printf(out, "%zu:", n);
    for (size_t i = 0; i < n && i < NAMES_SHOWN; i++) buf_printf(out, " %s", names[i]);
    if (n > NAMES_SHOWN) buf_puts(out, " ...");
}

void inspect_trees_put(buf *out, const scorer *s, const char *path)
{
    const forest_info *f = forest_about(scorer_forest(s));
    const series_spec *spec = scorer_spec(s);
    inspect_trees_put_field(out, "model");
    buf_puts(out, path);
    inspect_trees_put_field(out, "architecture");
    buf_printf(out, "%s %s, for \"score\"", f->format, f->booster);
    if (*f->objective) buf_printf(out, " (%s)", f->objective);
    inspect_trees_put_field(out, "parameters");
    buf_printf(out, "%zu trees, %zu splits, %zu leaves", f->n_trees, f->n_splits, f->n_leaves);
    put_names(out, "features", spec->names, spec->n_features);
    put_names(out, "channels", spec->channels, spec->n_channels);
    if (spec->window) {
        inspect_trees_put_field(out, "windows");
        buf_printf(out, "of %zu rows every %zu, the first after %zu", spec->window, spec->stride,
                   spec->window + spec->least_baseline);
    }
    put_names(out, "labels", spec->labels, spec->n_labels);
    inspect_trees_put_field(out, "outputs");
    buf_printf(out, "%zu%s", f->n_outputs, f->n_classes ? "" : ", numbers and not classes");
    inspect_trees_put_field(out, "verdict");
    buf_puts(out, "it runs here: shoal score");
}

void inspect_trees_put_json(buf *out, const scorer *s, const char *path)
{
    const forest_info *f = forest_about(scorer_forest(s));
    const series_spec *spec = scorer_spec(s);
    buf_putc(out, '{');
    json_put_text(out, "path", path);
    json_put_text(out, "architecture", f->format);
    json_put_text(out, "task", "score");
    json_put_text(out, "booster", f->booster);
    json_put_text(out, "objective", f->objective);
    json_put_texts(out, "features", spec->names, spec->n_features);
    json_put_texts(out, "channels", spec->channels, spec->n_channels);
    json_put_texts(out, "labels", spec->labels, spec->n_labels);
    buf_printf(out, ",\"trees\":%zu,\"splits\":%zu,\"leaves\":%zu,\"outputs\":%zu}", f->n_trees, f->n_splits,
               f->n_leaves, f->n_outputs);
}
