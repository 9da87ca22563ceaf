/* kserve_task.c: what a model of a task takes and gives as tensors, by way of our own endpoints; see
 * kserve.h.
 *
 *     task             inputs                                  outputs
 *     generate         text_input BYTES [n]                    text_output, finish_reason BYTES [n]
 *     classify         text BYTES [n]                          label BYTES [n], score FP32 [n],
 *                                                              scores FP32 [n, labels]
 *     embed            text BYTES [n]                          embedding FP32 [n, dimensions]
 *     rerank           query BYTES [1], documents BYTES [n]    score FP32 [n]
 *     tag, fill-mask   text BYTES [n]                          spans, masks BYTES [n]: lists in JSON
 *     classify-image   image BYTES [1]                         as classify
 *     score            features FP32 [n, columns],             label BYTES [m], score FP64 [m],
 *                      or a tensor a column                    scores FP64 [m, outputs], row INT64 [m]
 *
 * A score has m = n rows of a table, or as many windows of a series as are due. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "messages/fields.h"
#include "dialects/kserve.h"
#include "json/json.h"
#include "json/json_put.h"
#include "base/utf8.h"
#include "tasks/task.h"

typedef struct task_row {
    const char *task;
    kserve_face face;
    const char *params[12]; /* that are handed on */
    int (*put)(buf *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info, api_error *e);
    int (*take)(kserve_tensors *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                const json_t *ours);
} task_row;

static const char *said(const json_t *o, const char *key)
{
    const char *s = fields_text(json_object_get(o, key));
    return s ? s : "";
}

/* ---- what goes in -------------------------------------------------------------------------------- */

/* Says which input is missing, and which ones the request has instead. */
static int refuse_missing(const kserve_tensors *in, const char *name, api_error *e)
{
    buf sent = {0};
    for (size_t i = 0; i < in->n && i < 4; i++)
        buf_printf(&sent, "%s\"%.48s\"", i ? ", " : "", in->items[i].name);
    api_error_bad(e, name,
                  "input \"%s\" is missing; the request has %s%s; the model's metadata lists its inputs",
                  name, sent.data ? sent.data : "none", in->n > 4 ? ", ..." : "");
    buf_done(&sent);
    return e->status;
}

static int find_input(const kserve_tensors *in, const char *name, kserve_type type, const kserve_tensor **ret,
                      api_error *e)
{
    const kserve_tensor *t = kserve_find(in, name);
    if (!t) return refuse_missing(in, name, e);
    if (t->type != type)
        return api_error_bad(e, name, "input \"%s\" is %s, must be %s", name, kserve_type_name(t->type),
                             kserve_type_name(type));
    if (t->n == 0) return api_error_bad(e, name, "input \"%s\" is empty", name);
    *ret = t;
    return 0;
}

/* Texts of any shape, one behind the other. */
static int put_texts(buf *out, const kserve_tensor *t, api_error *e)
{
    size_t at = 0, n, bad;
    buf_putc(out, '[');
    for (size_t i = 0; i < t->n; i++) {
        const char *s = kserve_next_text(t, &at, &n);
        if (!utf8_valid(s, n, &bad))
            return api_error_bad(e, t->name, "input \"%s\": text %zu is not UTF-8 at byte %zu", t->name, i,
                                 bad);
        if (i) buf_putc(out, ',');
        json_put_string(out, s, n);
    }
    buf_putc(out, ']');
    return 0;
}

static int put_list(buf *out, const kserve_tensors *in, const char *name, const char *ours, api_error *e)
{
    const kserve_tensor *t;
    int rc = find_input(in, name, KSERVE_BYTES, &t, e);
    if (rc != 0) return rc;
    buf_printf(out, ",\"%s\":", ours);
    return put_texts(out, t, e);
}

static int put_prompts(buf *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info, api_error *e)
{
    return put_list(out, in, "text_input", "prompt", e);
}

static int put_inputs(buf *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info, api_error *e)
{
    return put_list(out, in, "text", "input", e);
}

static int put_embed(buf *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info, api_error *e)
{
    buf_puts(out, ",\"encoding_format\":\"base64\""); /* the very bits */
    return put_inputs(out, in, info, e);
}

/* The only text of a tensor. */
static int put_one(buf *out, const kserve_tensor *t, bool base64, api_error *e)
{
    size_t at = 0, n, bad;
    if (t->n != 1)
        return api_error_bad(e, t->name, "input \"%s\" has %zu elements, must be one", t->name, t->n);
    const char *s = kserve_next_text(t, &at, &n);
    if (!base64 && !utf8_valid(s, n, &bad))
        return api_error_bad(e, t->name, "input \"%s\" is not UTF-8 at byte %zu", t->name, bad);
    if (!base64) {
        json_put_string(out, s, n);
        return 0;
    }
    buf_putc(out, '"');
    base64_encode(out, s, n);
    buf_putc(out, '"');
    return 0;
}

static int put_ranking(buf *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info, api_error *e)
{
    const kserve_tensor *query;
    int rc = find_input(in, "query", KSERVE_BYTES, &query, e);
    if (rc != 0) return rc;
    buf_puts(out, ",\"query\":");
    rc = put_one(out, query, false, e);
    return rc == 0 ? put_list(out, in, "documents", "documents", e) : rc;
}

static int put_image(buf *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info, api_error *e)
{
    const kserve_tensor *image;
    int rc = find_input(in, "image", KSERVE_BYTES, &image, e);
    if (rc != 0) return rc;
    buf_puts(out, ",\"image\":");
    return put_one(out, image, true, e);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static int put_cell(buf *out, const kserve_tensor *t, size_t *at, api_error *e)
{
    size_t n;
    if (!kserve_is_number(t->type)) {
        const char *s = kserve_next_text(t, at, &n);
        if (!utf8_valid(s, n, NULL))
            return api_error_bad(e, t->name, "input \"%.64s\" is not UTF-8", t->name);
        json_put_string(out, s, n);
        return 0;
    }
    double v = kserve_next_number(t, at);
    if (isinf(v)) return api_error_bad(e, t->name, "input \"%.64s\" holds an infinite number", t->name);
    if (isnan(v))
        buf_puts(out, "null"); /* a missing value */
    else
        buf_printf(out, "%.17g", v);
    return 0;
}

static void kserve_task_put_name(buf *out, size_t i, const char *name)
{
    if (i) buf_putc(out, ',');
    json_put_string(out, name, strlen(name));
}

/* One tensor [rows, columns], in the model's order of columns. */
static int put_matrix(buf *out, const kserve_tensor *t, const Shoal__V1__ModelInfo *info, api_error *e)
{
    size_t at = 0, n_columns = t->n_dims == 0 ? 1 : (size_t)t->shape[t->n_dims - 1];
    int rc = 0;
    if (!kserve_is_number(t->type)) return api_error_bad(e, t->name, "input \"features\" must be numbers");
    if (t->n == 0) return api_error_bad(e, t->name, "input \"features\" is empty");
    if (!info || info->n_columns == 0)
        return api_error_bad(e, t->name,
                             "the model does not name its columns: send a tensor for each, with its name");
    if (n_columns != info->n_columns)
        return api_error_bad(e, t->name, "input \"features\" has %zu columns, and the model %zu", n_columns,
                             info->n_columns);
    buf_puts(out, ",\"columns\":[");
    for (size_t i = 0; i < n_columns; i++) kserve_task_put_name(out, i, info->columns[i]);
    buf_puts(out, "],\"rows\":[");
    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        if (i) buf_putc(out, ',');
        if (i % n_columns == 0) buf_putc(out, '[');
        rc = put_cell(out, t, &at, e);
        if (i % n_columns == n_columns - 1) buf_putc(out, ']');
    }
    buf_putc(out, ']');
    return rc;
}

/* A tensor [rows] or [rows, 1] for each column, which it names. */
static int put_table(buf *out, const kserve_tensors *in, api_error *e)
{
    int rc = 0;
    size_t *at = calloc(in->n, sizeof *at), n_rows = in->items[0].n;
    if (!at) return api_error_nomem(e);
    buf_puts(out, ",\"columns\":[");
    for (size_t i = 0; rc == 0 && i < in->n; i++) {
        kserve_task_put_name(out, i, in->items[i].name);
        if (in->items[i].n != n_rows)
            rc = api_error_bad(e, in->items[i].name, "column \"%.64s\" has %zu rows, and \"%.64s\" %zu",
                               in->items[i].name, in->items[i].n, in->items[0].name, n_rows);
    }
    buf_puts(out, "],\"rows\":[");
    for (size_t r = 0; rc == 0 && r < n_rows; r++) {
        buf_puts(out, r ? ",[" : "[");
        for (size_t i = 0; rc == 0 && i < in->n; i++) {
            if (i) buf_putc(out, ',');
            rc = put_cell(out, &in->items[i], &at[i], e);
        }
        buf_putc(out, ']');
    }
    buf_putc(out, ']');
    free(at);
    return rc;
}

static int kserve_task_put_rows(buf *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                                api_error *e)
{
    const kserve_tensor *t = kserve_find(in, "features");
    if (in->n == 0) return api_error_bad(e, "inputs", "there are no inputs");
    return t && in->n == 1 ? put_matrix(out, t, info, e) : put_table(out, in, e);
}

/* ---- what comes out ------------------------------------------------------------------------------ */

/* One more output, [n] or [n, m]; NULL: no memory. */
static kserve_tensor *add_output(kserve_tensors *out, const char *name, kserve_type type, size_t n, size_t m)
{
    kserve_tensor *t = kserve_add(out, name, type);
    if (!t) return NULL;
    t->shape[0] = (int64_t)n;
    t->shape[1] = (int64_t)m;
    t->n_dims = m ? 2 : 1;
    return t;
}

/* Whatever the answer held: do all outputs have what their shape says? */
static int close_outputs(kserve_tensors *out)
{
    api_error e = {0};
    for (size_t i = 0; i < out->n; i++) {
        if (out->items[i].raw.failed) return SHOAL_ENOMEM;
        if (kserve_check(&out->items[i], &e) != 0) return SHOAL_EPROTOCOL;
    }
    return 0;
}

/* The elements of a list one of whose members each output is. */
static int take_list(kserve_tensors *out, const json_t *list, const char *name, const char *member)
{
    kserve_tensor *t = add_output(out, name, KSERVE_BYTES, json_array_size(list), 0);
    json_t *o;
    size_t i;
    if (!t) return SHOAL_ENOMEM;
    json_array_foreach(list, i, o)
    {
        const json_t *v = json_object_get(o, member);
        buf text = {0};
        if (json_is_string(v)) {
            kserve_add_text(t, json_string_value(v), json_string_length(v));
            continue;
        }
        if (v) json_put(&text, v);
        t->raw.failed |= text.failed;
        kserve_add_text(t, text.data ? text.data : "", text.len);
        buf_done(&text);
    }
    return 0;
}

static int take_texts(kserve_tensors *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                      const json_t *ours)
{
    const json_t *choices = json_object_get(ours, "choices");
    if (!json_is_array(choices)) return SHOAL_EPROTOCOL;
    int rc = take_list(out, choices, "text_output", "text");
    return rc == 0 ? take_list(out, choices, "finish_reason", "finish_reason") : rc;
}

static int take_spans(kserve_tensors *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                      const json_t *ours)
{
    return take_list(out, json_object_get(ours, "data"), "spans", "spans");
}

static int take_masks(kserve_tensors *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                      const json_t *ours)
{
    return take_list(out, json_object_get(ours, "data"), "masks", "masks");
}

static int take_vectors(kserve_tensors *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                        const json_t *ours)
{
    const json_t *data = json_object_get(ours, "data");
    kserve_tensor *t = add_output(out, "embedding", KSERVE_FP32, json_array_size(data), 1);
    json_t *o;
    size_t i;
    if (!t) return SHOAL_ENOMEM;
    json_array_foreach(data, i, o)
    {
        int rc = base64_decode(&t->raw, said(o, "embedding"), strlen(said(o, "embedding")));
        if (rc != 0) return rc == SHOAL_ENOMEM ? rc : SHOAL_EPROTOCOL;
        if (i == 0) t->shape[1] = (int64_t)(t->raw.len / sizeof(float));
    }
    return 0;
}

/* In the order of the model's labels. */
static void add_scores(kserve_tensor *t, const Shoal__V1__ModelInfo *info, const json_t *labels)
{
    json_t *o;
    size_t i;
    for (size_t k = 0; k < info->n_labels; k++) {
        double score = 0;
        json_array_foreach(labels, i, o) if (strcmp(said(o, "label"), info->labels[k]) == 0) score =
            json_number_value(json_object_get(o, "score"));
        kserve_add_f32(t, (float)score);
    }
}

static int take_classes(kserve_tensors *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                        const json_t *ours)
{
    const json_t *data = json_object_get(ours, "data");
    size_t n = json_array_size(data), n_labels = info ? info->n_labels : 0;
    if (!add_output(out, "label", KSERVE_BYTES, n, 0) || !add_output(out, "score", KSERVE_FP32, n, 0) ||
        (n_labels && !add_output(out, "scores", KSERVE_FP32, n, n_labels)))
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *labels = json_object_get(json_array_get(data, i), "labels");
        const json_t *best = json_array_get(labels, 0);
        kserve_add_text(&out->items[0], said(best, "label"), strlen(said(best, "label")));
        kserve_add_f32(&out->items[1], (float)json_number_value(json_object_get(best, "score")));
        if (n_labels) add_scores(&out->items[2], info, labels);
    }
    return 0;
}

/* In the order of the documents. */
static int take_ranking(kserve_tensors *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                        const json_t *ours)
{
    const kserve_tensor *documents = kserve_find(in, "documents");
    size_t n = documents ? documents->n : 0, i;
    const json_t *results = json_object_get(ours, "results");
    kserve_tensor *t = add_output(out, "score", KSERVE_FP32, n, 0);
    json_t *o;
    if (!t) return SHOAL_ENOMEM;
    for (i = 0; i < n; i++) kserve_add_f32(t, NAN);
    if (t->raw.failed) return SHOAL_ENOMEM;
    json_array_foreach(results, i, o)
    {
        json_int_t at = json_integer_value(json_object_get(o, "index"));
        float score = (float)json_number_value(json_object_get(o, "relevance_score"));
        if (at < 0 || (size_t)at >= n) return SHOAL_EPROTOCOL;
        memcpy(t->raw.data + (size_t)at * sizeof score, &score, sizeof score);
    }
    return 0;
}

/* A row's numbers: probabilities by label, or a list. */
static size_t add_row(kserve_tensor *t, const Shoal__V1__ModelInfo *info, const json_t *scores)
{
    if (json_is_array(scores)) {
        for (size_t i = 0; i < json_array_size(scores); i++)
            kserve_add_f64(t, json_number_value(json_array_get(scores, i)));
        return json_array_size(scores);
    }
    for (size_t k = 0; info && k < info->n_labels; k++)
        kserve_add_f64(t, json_number_value(json_object_get(scores, info->labels[k])));
    return info ? info->n_labels : 0;
}

static int take_scores(kserve_tensors *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                       const json_t *ours)
{
    const json_t *data = json_object_get(ours, "data");
    size_t n = json_array_size(data);
    if (!add_output(out, "scores", KSERVE_FP64, n, 1) || !add_output(out, "score", KSERVE_FP64, n, 0) ||
        !add_output(out, "row", KSERVE_INT64, n, 0) || !add_output(out, "label", KSERVE_BYTES, n, 0))
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(data, i), *scores = json_object_get(o, "scores");
        size_t width = add_row(&out->items[0], info, scores);
        const json_t *best = json_object_get(scores, said(o, "label"));
        if (i == 0) out->items[0].shape[1] = (int64_t)width;
        kserve_add_f64(&out->items[1], json_number_value(best ? best : json_array_get(scores, 0)));
        kserve_add_i64(&out->items[2], (int64_t)json_integer_value(json_object_get(o, "row")));
        kserve_add_text(&out->items[3], said(o, "label"), strlen(said(o, "label")));
    }
    return 0;
}

/* ---- tasks --------------------------------------------------------------------------------------- */

#define IN_TEXT                       \
    {                                 \
        "text", KSERVE_BYTES, {-1}, 1 \
    }
#define TO_TEXTS                                                          \
    .n_in = 1, .n_out = 2, .in = {{"text_input", KSERVE_BYTES, {-1}, 1}}, \
    .out = {{"text_output", KSERVE_BYTES, {-1}, 1}, {"finish_reason", KSERVE_BYTES, {-1}, 1}}
#define TO_CLASSES                                        \
    .n_out = 3, .out = {{"label", KSERVE_BYTES, {-1}, 1}, \
                        {"score", KSERVE_FP32, {-1}, 1},  \
                        {"scores", KSERVE_FP32, {-1, -1}, 2}}
#define SAYS                                                                                    \
    "max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "presence_penalty", \
        "frequency_penalty", "repetition_penalty", "ignore_eos"

static const task_row TASKS[] = {
    {"generate", {TO_TEXTS}, {SAYS}, put_prompts, take_texts},
    {"seq2seq", {TO_TEXTS}, {SAYS}, put_prompts, take_texts},
    {"classify", {.n_in = 1, .in = {IN_TEXT}, TO_CLASSES}, {NULL}, put_inputs, take_classes},
    {"embed",
     {.n_in = 1, .n_out = 1, .in = {IN_TEXT}, .out = {{"embedding", KSERVE_FP32, {-1, -1}, 2}}},
     {"dimensions"},
     put_embed,
     take_vectors},
    {"rerank",
     {.n_in = 2,
      .n_out = 1,
      .in = {{"query", KSERVE_BYTES, {1}, 1}, {"documents", KSERVE_BYTES, {-1}, 1}},
      .out = {{"score", KSERVE_FP32, {-1}, 1}}},
     {NULL},
     put_ranking,
     take_ranking},
    {"tag",
     {.n_in = 1, .n_out = 1, .in = {IN_TEXT}, .out = {{"spans", KSERVE_BYTES, {-1}, 1}}},
     {NULL},
     put_inputs,
     take_spans},
    {"fill-mask",
     {.n_in = 1, .n_out = 1, .in = {IN_TEXT}, .out = {{"masks", KSERVE_BYTES, {-1}, 1}}},
     {"top_k"},
     put_inputs,
     take_masks},
    {"classify-image",
     {.n_in = 1, .in = {{"image", KSERVE_BYTES, {1}, 1}}, TO_CLASSES},
     {NULL},
     put_image,
     take_classes},
    {"score",
     {.n_in = 1,
      .n_out = 4,
      .in = {{"features", KSERVE_FP32, {-1, -1}, 2}},
      .out = {{"scores", KSERVE_FP64, {-1, -1}, 2},
              {"score", KSERVE_FP64, {-1}, 1},
              {"row", KSERVE_INT64, {-1}, 1},
              {"label", KSERVE_BYTES, {-1}, 1}}},
     {NULL},
     kserve_task_put_rows,
     take_scores},
};

static const task_row *row_of(const Shoal__V1__ModelInfo *info)
{
    const char *task = info ? task_effective(info->task, info->n_labels) : "generate";
    for (size_t i = 0; i < sizeof TASKS / sizeof *TASKS; i++)
        if (strcmp(TASKS[i].task, task) == 0) return &TASKS[i];
    return NULL;
}

bool kserve_face_of(const Shoal__V1__ModelInfo *info, kserve_face *ret)
{
    const task_row *row = row_of(info);
    if (!row) return false;
    *ret = row->face;
    for (size_t i = 0; info && i < ret->n_out; i++) {
        kserve_slot *s = &ret->out[i];
        if (strcmp(s->name, "embedding") == 0) s->shape[1] = info->n_embd;
        if (strcmp(s->name, "scores") == 0 && info->n_labels) s->shape[1] = (int64_t)info->n_labels;
    }
    if (info && strcmp(ret->in[0].name, "features") == 0 && info->n_columns)
        ret->in[0].shape[1] = (int64_t)info->n_columns;
    return true;
}

/* ---- parameters ---------------------------------------------------------------------------------- */

/* Inputs that generating models of Triton take beside the text. "stream" is read where the answer is made;
 * our answers never begin with the prompt, so "exclude_input_in_output" may only be true. */
static const char *const EXTRAS[] = {"stream", "exclude_input_in_output", "sampling_parameters"};

static bool is_generating(const task_row *row)
{
    return row->put == put_prompts;
}

/* NULL: the task has no parameter of that name. */
static const char *param_of(const task_row *row, const char *name)
{
    for (size_t i = 0; row->params[i]; i++)
        if (strcmp(row->params[i], name) == 0) return row->params[i];
    return NULL;
}

static bool is_extra(const task_row *row, const char *name)
{
    for (size_t i = 0; is_generating(row) && i < sizeof EXTRAS / sizeof *EXTRAS; i++)
        if (strcmp(EXTRAS[i], name) == 0) return true;
    return false;
}

static bool is_input(const task_row *row, const char *name)
{
    for (size_t i = 0; i < row->face.n_in; i++)
        if (strcmp(row->face.in[i].name, name) == 0) return true;
    return row->put == kserve_task_put_rows; /* columns have the model's names */
}

/* Every tensor is an input or a parameter of the task. */
static int check_names(const task_row *row, const kserve_tensors *in, api_error *e)
{
    for (size_t i = 0; i < in->n; i++) {
        const char *name = in->items[i].name;
        if (!is_input(row, name) && !is_extra(row, name) && !param_of(row, name))
            return api_error_bad(e, "inputs", "the model has no input \"%.64s\": its metadata lists them",
                                 name);
    }
    return 0;
}

/* A parameter that came as a tensor of one element, as Triton's generating models take them. */
static int put_scalar(buf *out, const kserve_tensor *t, api_error *e)
{
    size_t at = 0;
    if (t->n != 1)
        return api_error_bad(e, t->name, "input \"%.64s\" has %zu elements, must be one", t->name, t->n);
    if (t->type == KSERVE_BYTES) return put_one(out, t, false, e);
    double v = kserve_next_number(t, &at);
    if (!isfinite(v)) return api_error_bad(e, t->name, "input \"%.64s\" must be a finite number", t->name);
    if (t->type == KSERVE_BOOL)
        buf_puts(out, v != 0 ? "true" : "false");
    else if (t->type == KSERVE_FP32)
        buf_printf(out, "%.9g", v);
    else
        buf_printf(out, "%.17g", v);
    return 0;
}

/* vLLM's sampling_parameters are the text of a JSON object, whose values may be texts, too: {"temperature":
 * "0.1"}. */
static int read_sampling(const kserve_tensors *in, const task_row *row, json_t **ret, api_error *e)
{
    const kserve_tensor *t = is_generating(row) ? kserve_find(in, "sampling_parameters") : NULL;
    size_t at = 0, n;
    const char *key;
    json_t *v;
    if (!t) return 0;
    if (t->type != KSERVE_BYTES || t->n != 1)
        return api_error_bad(e, t->name,
                             "input \"sampling_parameters\" must be one BYTES element, a JSON object");
    const char *text = kserve_next_text(t, &at, &n);
    int rc = fields_parse(ret, text, n, e);
    json_object_foreach(*ret, key, v)
    {
        if (rc == 0 && !param_of(row, key))
            rc = api_error_bad(e, t->name, "sampling_parameters: \"%.64s\" is not offered here", key);
    }
    return rc;
}

static void put_sampled(buf *out, const char *name, const json_t *v)
{
    const char *s = strcmp(name, "stop") == 0 ? NULL : fields_text(v);
    json_t *number = NULL;
    if (s && json_parse(&number, s, strlen(s), name, NULL) == 0)
        json_put(out, number);
    else
        json_put(out, v);
    json_decref(number);
}

static int put_params(buf *out, const task_row *row, const json_t *params, const kserve_tensors *in,
                      api_error *e)
{
    json_t *sampling = NULL;
    int rc = read_sampling(in, row, &sampling, e);
    for (size_t i = 0; rc == 0 && row->params[i]; i++) {
        const char *name = row->params[i];
        const json_t *v = fields_get(params, name), *sampled = fields_get(sampling, name);
        const kserve_tensor *t = row->put == kserve_task_put_rows ? NULL : kserve_find(in, name);
        if ((v != NULL) + (sampled != NULL) + (t != NULL) > 1)
            rc = api_error_bad(e, name, "\"%s\" is given more than once", name);
        if (rc != 0 || (!v && !sampled && !t)) continue;
        buf_printf(out, ",\"%s\":", name);
        if (t)
            rc = put_scalar(out, t, e);
        else if (v)
            json_put(out, v);
        else
            put_sampled(out, name, sampled);
    }
    json_decref(sampling);
    return rc;
}

/* A BOOL of one element; *ret stays as it is without one. */
static int read_truth(const kserve_tensors *in, const char *name, bool *ret, api_error *e)
{
    const kserve_tensor *t = kserve_find(in, name);
    size_t at = 0;
    if (!t) return 0;
    if (t->type != KSERVE_BOOL || t->n != 1)
        return api_error_bad(e, t->name, "input \"%s\" must be one BOOL element", name);
    *ret = kserve_next_number(t, &at) != 0;
    return 0;
}

bool kserve_streams(const Shoal__V1__ModelInfo *info)
{
    const task_row *row = row_of(info);
    return row && is_generating(row);
}

int kserve_wants_stream(const kserve_tensors *in, const Shoal__V1__ModelInfo *info, bool *ret, api_error *e)
{
    const task_row *row = row_of(info);
    *ret = row && is_generating(row);
    if (!*ret) return 0;
    int rc = read_truth(in, "stream", ret, e);
    const kserve_tensor *t = kserve_find(in, "text_input");
    if (rc == 0 && *ret && t && t->n > 1)
        rc = api_error_bad(e, t->name, "a stream answers one text, and \"text_input\" has %zu", t->n);
    return rc;
}

static int check_extras(const task_row *row, const kserve_tensors *in, api_error *e)
{
    bool stream = false, excludes = true;
    if (!is_generating(row)) return 0;
    int rc = read_truth(in, "stream", &stream, e);
    if (rc == 0) rc = read_truth(in, "exclude_input_in_output", &excludes, e);
    if (rc == 0 && !excludes)
        rc = api_error_bad(e, "exclude_input_in_output",
                           "replies do not repeat the input here: leave "
                           "\"exclude_input_in_output\" out, or send true");
    return rc;
}

int kserve_ask_ours(const kserve_tensors *in, const json_t *params, const char *model,
                    const Shoal__V1__ModelInfo *info, const char **ret_path, buf *ret_body, api_error *e)
{
    const task_row *row = row_of(info);
    if (!row)
        return api_error_bad(e, "model", "%.64s does \"%.16s\", which is not served in tensors", model,
                             info->task);
    *ret_path = task_endpoint_of(row->task)->path;
    buf_putc(ret_body, '{');
    json_put_text(ret_body, "model", model);
    int rc = put_params(ret_body, row, params, in, e);
    if (rc == 0) rc = row->put(ret_body, in, info, e);
    if (rc == 0) rc = check_names(row, in, e);
    if (rc == 0) rc = check_extras(row, in, e);
    buf_putc(ret_body, '}');
    return rc == 0 && ret_body->failed ? api_error_nomem(e) : rc;
}

int kserve_take_chunk(kserve_tensors *out, const json_t *chunk, bool *ret_last)
{
    const json_t *choice = json_array_get(json_object_get(chunk, "choices"), 0);
    const json_t *text = json_object_get(choice, "text");
    const char *reason = said(choice, "finish_reason");
    kserve_tensor *t = add_output(out, "text_output", KSERVE_BYTES, 1, 0);
    if (!t) return SHOAL_ENOMEM;
    kserve_add_text(t, json_is_string(text) ? json_string_value(text) : "", json_string_length(text));
    if (!(t = add_output(out, "finish_reason", KSERVE_BYTES, 1, 0))) return SHOAL_ENOMEM;
    kserve_add_text(t, reason, strlen(reason));
    *ret_last = *reason;
    return close_outputs(out);
}

int kserve_take_ours(kserve_tensors *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                     const json_t *ours)
{
    const task_row *row = row_of(info);
    int rc = row && json_is_object(ours) ? row->take(out, in, info, ours) : SHOAL_EPROTOCOL;
    return rc == 0 ? close_outputs(out) : rc;
}
