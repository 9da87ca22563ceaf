/* kind_trees.c: gradient-boosted trees: LightGBM's or XGBoost's file, or a folder whose config.json names it. */
#include <string.h>

#include "base/buf.h"
#include "json/json.h"
#include "kinds/model_kind.h"

enum { CONFIG_MAX = 16 << 20 };

/* LightGBM's text begins with "tree", XGBoost's JSON with a brace (its binary form too, which is then refused
 * by name), and either may be packed. */
static bool begins_as_trees(const model_view *v)
{
    size_t blank = 0;
    while (blank < v->n_head && v->head[blank] && strchr(" \t\r\n", v->head[blank])) blank++;
    bool is_json = blank < v->n_head && v->head[blank] == '{';
    return is_json || model_view_begins(v, "tree", 4) || model_view_begins(v, "\x1f\x8b", 2);
}

static bool names_a_file(const char *folder)
{
    json_t *config = NULL;
    buf path = {0};
    buf_printf(&path, "%s/config.json", folder);
    bool is = !path.failed && json_parse_file(&config, path.data, CONFIG_MAX, NULL) == 0;
    is = is && json_string_length(json_object_get(config, "file")) > 0;
    json_decref(config);
    buf_done(&path);
    return is;
}

static bool trees_recognises(const model_view *v)
{
    return v->is_folder ? v->path && names_a_file(v->path) : begins_as_trees(v);
}

static const char *trees_describe(const model_view *v)
{
    return "score";
}

/* Which file is the model is up to its config.json. */
static model_file_role trees_file(const char *name)
{
    return MODEL_FILE_OTHER;
}

const model_kind model_kind_trees = {
    .name = "trees", .recognise = trees_recognises, .describe = trees_describe, .file = trees_file};
