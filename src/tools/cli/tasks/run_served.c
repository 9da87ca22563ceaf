/* run_served.c: each task is a row: where it is asked, with what, and how its answer looks. */
#define _GNU_SOURCE
#include "cli/tasks/run_served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "json/json.h"
#include "command/cli_model.h"
#include "command/cli_process.h"

enum { FILE_MAX_BYTES = 128 << 20, LABELS_SHOWN = 5 };

typedef struct task_row {
    const char *task, *path, *input; /* input: the field that has the text; NULL: a file goes along */
    void (*print)(const json_t *answer);
} task_row;

/* ---- answers ------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static double number_of(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static const json_t *first(const json_t *answer, const char *key)
{
    return json_array_get(json_object_get(answer, key), 0);
}

static void print_labels(const json_t *answer)
{
    size_t i;
    json_t *l;
    const json_t *from = json_object_get(answer, "labels") ? answer : first(answer, "data");
    json_array_foreach(json_object_get(from, "labels"), i, l) if (i < LABELS_SHOWN)
        cli_printf("%6.2f %%  %s\n", 100 * number_of(l, "score"), text_of(l, "label"));
}

static void print_spans(const json_t *answer)
{
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(first(answer, "data"), "spans"), i, s)
        cli_printf("%.0f-%.0f  %-20s %s  (%.1f %%)\n", number_of(s, "start"), number_of(s, "end"),
                   text_of(s, "label"), text_of(s, "text"), 100 * number_of(s, "score"));
}

static void print_vector(const json_t *answer)
{
    size_t i;
    json_t *x;
    json_array_foreach(json_object_get(first(answer, "data"), "embedding"), i, x)
        cli_printf("%s%.6g", i ? " " : "", json_number_value(x));
    putchar('\n');
}

static void print_ranks(const json_t *answer)
{
    size_t i;
    json_t *r;
    json_array_foreach(json_object_get(answer, "results"), i, r)
    {
        const json_t *d = json_object_get(r, "document");
        cli_printf("%8.4f  %s\n", number_of(r, "relevance_score"),
                   json_is_string(d) ? json_string_value(d) : text_of(d, "text"));
    }
}

static void print_masks(const json_t *answer)
{
    size_t i, k;
    json_t *mask, *word;
    json_array_foreach(json_object_get(first(answer, "data"), "masks"), i, mask)
        json_array_foreach(json_is_array(mask) ? mask : json_object_get(mask, "words"), k, word)
            cli_printf("%6.2f %%  %s\n", 100 * number_of(word, "score"), text_of(word, "sequence"));
}

static void print_choice(const json_t *answer)
{
    cli_printf("%s\n", text_of(first(answer, "choices"), "text"));
}

static void print_heard(const json_t *answer)
{
    const char *s = text_of(answer, "text");
    cli_printf("%s\n", s + strspn(s, " "));
}

static void print_all(const json_t *answer)
{
    cli_print_json(answer, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
}

static const task_row ROWS[] = {
    {"classify", "/v1/classify", "input", print_labels},
    {"tag", "/v1/tag", "input", print_spans},
    {"embed", "/v1/embeddings", "input", print_vector},
    {"rerank", "/v1/rerank", "query", print_ranks},
    {"fill-mask", "/v1/fill-mask", "input", print_masks},
    {"seq2seq", "/v1/completions", "prompt", print_choice},
    {"generate", "/v1/completions", "prompt", print_choice},
    {"transcribe", "/v1/audio/transcriptions", NULL, print_heard},
    {"classify-image", "/v1/images/classify", NULL, print_labels},
    {"score", "/v1/score", NULL, print_all},
};

/* Behind the reply of a model that writes. */
static void say_if_cut(const json_t *answer, const cli_sampling *sampling)
{
    const json_t *n = json_object_get(json_object_get(answer, "usage"), "completion_tokens");
    if (strcmp(text_of(first(answer, "choices"), "finish_reason"), "length") != 0) return;
    fflush(stdout);
    cli_sampling_say_cut(sampling, (size_t)json_integer_value(n));
}

/* ---- questions ----------------------------------------------------------------------------------------- */

static json_t *question(const task_row *row, const served *at, const run_input *in)
{
    json_t *o = json_pack("{s:s, s:s}", "model", at->model, row->input, in->text);
    json_t *documents = strcmp(row->task, "rerank") == 0 ? json_array() : NULL;
    for (size_t i = 0; documents && i < in->n_more; i++)
        json_array_append_new(documents, json_string(in->more[i]));
    if (documents) {
        json_object_set_new(o, "documents", documents);
        json_object_set_new(o, "return_documents", json_true());
    }
    if (strcmp(row->input, "prompt") == 0) cli_sampling_put(o, in->sampling);
    return o;
}

static int ask_text(const task_row *row, const served *at, const run_input *in, const char *key, buf *ret,
                    shoal_err *err)
{
    json_t *o = question(row, at, in);
    char *body = o ? json_dumps(o, JSON_COMPACT) : NULL;
    if (!o) err_set(err, SHOAL_EINVALID, "the text is not UTF-8");
    int rc = body ? cli_process_post_json(&at->where, row->path, body, key, ret, err)
             : o  ? err_nomem(err)
                  : SHOAL_EINVALID;
    free(body);
    json_decref(o);
    return rc;
}

/* A form with the model's name and the file. */
static int put_form(buf *out, char type[96], const served *at, const char *path, shoal_err *err)
{
    uint64_t drawn[2];
    char boundary[40]; /* drawn, so that no file holds it */
    const char *name = strrchr(path, '/');
    buf file = {0};
    rng_bytes(drawn, sizeof drawn);
    snprintf(boundary, sizeof boundary, "shoal%016llx%016llx", (unsigned long long)drawn[0],
             (unsigned long long)drawn[1]);
    snprintf(type, 96, "multipart/form-data; boundary=%s", boundary);
    int rc = file_read(&file, strcmp(path, "-") == 0 ? "/dev/stdin" : path, FILE_MAX_BYTES, err);
    name = name ? name + 1 : path;
    buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n%s\r\n", boundary,
               at->model);
    buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n\r\n",
               boundary, strpbrk(name, "\"\r\n\\") ? "file" : name);
    buf_append(out, file.data ? file.data : "", file.len);
    buf_printf(out, "\r\n--%s--\r\n", boundary);
    buf_done(&file);
    return rc == 0 && out->failed ? err_nomem(err) : rc;
}

static int ask_file(const task_row *row, const served *at, const run_input *in, const char *key, buf *ret,
                    shoal_err *err)
{
    buf body = {0}, headers = {0};
    char type[96];
    int status = 0, rc = put_form(&body, type, at, in->text, err);
    if (rc == 0) rc = cli_process_headers(&headers, key, err);
    http_ask ask = {
        .path = row->path, .body = body.data, .n_body = body.len, .type = type, .headers = headers.data};
    if (rc == 0) rc = http_client_once(&at->where, &ask, &status, ret, err);
    if (rc == SHOAL_EUNAVAILABLE) rc = cli_process_nobody(err);
    if (rc == 0 && status != 200) {
        json_t *why = NULL;
        json_parse(&why, ret->data ? ret->data : "", ret->len, "the answer", NULL);
        rc = cli_process_refused(status, why, err);
        json_decref(why);
    }
    buf_done(&body);
    buf_done(&headers);
    return rc;
}

int run_served(const served *at, const run_input *in, const char *key, shoal_err *err)
{
    const task_row *row = NULL;
    buf text = {0};
    json_t *answer = NULL;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (strcmp(ROWS[i].task, at->task) == 0) row = &ROWS[i];
    if (!row)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s is for \"%s\", which shoal run does not know; see docs/http.md", at->model,
                       at->task);
    if (strcmp(row->task, "rerank") == 0 && in->n_more == 0)
        return err_set(err, SHOAL_EINVALID, "%s orders documents: shoal run %s QUERY DOCUMENT...", at->model,
                       at->model);
    int rc = (row->input ? ask_text : ask_file)(row, at, in, key, &text, err);
    if (rc == 0) rc = json_parse(&answer, text.data ? text.data : "", text.len, "the answer", err);
    if (rc == 0 && in->json)
        cli_printf("%s\n", text.data);
    else if (rc == 0)
        row->print(answer);
    say_if_cut(answer, in->sampling);
    json_decref(answer);
    buf_done(&text);
    return rc;
}
