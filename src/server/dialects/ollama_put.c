/* ollama_put.c: our answers in Ollama's words. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/sha256.h"
#include "messages/fields.h"
#include "json/json_put.h"
#include "dialects/ollama.h"

static void put_time(buf *out, const char *key, int64_t unix_us)
{
    time_t s = (time_t)(unix_us / 1000000);
    struct tm tm;
    char date[32];
    gmtime_r(&s, &tm);
    size_t n = strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(out, ",\"%s\":\"%.*s.%06dZ\"", key, (int)n, date, (int)(unix_us % 1000000));
}

/* ---- what comes ---------------------------------------------------------------------------------- */

static void ollama_put_take_text(buf *to, const json_t *v)
{
    if (json_is_string(v)) buf_append(to, json_string_value(v), json_string_length(v));
}

static int take_calls(ollama_run *run, const json_t *calls)
{
    json_t *call;
    size_t i;
    json_array_foreach(calls, i, call)
    {
        json_int_t at = json_integer_value(json_object_get(call, "index"));
        const json_t *f = json_object_get(call, "function");
        if (at < 0 || at >= OLLAMA_CALLS_MAX) return SHOAL_EPROTOCOL;
        if ((size_t)at >= run->n_calls) run->n_calls = (size_t)at + 1;
        ollama_put_take_text(&run->calls[at].name, json_object_get(f, "name"));
        ollama_put_take_text(&run->calls[at].arguments, json_object_get(f, "arguments"));
    }
    return 0;
}

static void take_usage(ollama_run *run, const json_t *usage)
{
    if (!json_is_object(usage)) return;
    run->n_prompt = (uint64_t)json_integer_value(json_object_get(usage, "prompt_tokens"));
    run->n_reply = (uint64_t)json_integer_value(json_object_get(usage, "completion_tokens"));
}

static void put_token(buf *to, const json_t *token, const json_t *logprob)
{
    const char *s = json_string_value(token);
    buf_puts(to, to->len && to->data[to->len - 1] != '[' ? ",{\"token\":" : "{\"token\":");
    json_put_string(to, s ? s : "", json_string_length(token));
    buf_puts(to, ",\"logprob\":");
    json_put_digits(to, logprob ? logprob : json_null(), 9);
}

/* Of a completion: {"tokens": [...], "token_logprobs": [...], "top_logprobs": [{TEXT: logprob}]}. */
static void take_completion_logprobs(buf *to, const json_t *l)
{
    const json_t *tokens = json_object_get(l, "tokens");
    json_t *v, *one;
    const char *text;
    size_t i;
    json_array_foreach(tokens, i, v)
    {
        put_token(to, v, json_array_get(json_object_get(l, "token_logprobs"), i));
        json_t *top = json_array_get(json_object_get(l, "top_logprobs"), i);
        if (json_object_size(top) > 0) buf_puts(to, ",\"top_logprobs\":[");
        json_object_foreach(top, text, one)
        {
            json_t *key = json_string(text);
            to->failed |= !key;
            put_token(to, key, one);
            buf_putc(to, '}');
            json_decref(key);
        }
        buf_puts(to, json_object_size(top) > 0 ? "]}" : "}");
    }
}

/* Of a chat its tokens are told as they are: {"token", "logprob", "bytes", "top_logprobs"}. */
static void take_logprobs(buf *to, const json_t *l)
{
    json_t *v;
    size_t i;
    json_array_foreach(json_object_get(l, "content"), i, v)
    {
        if (to->len) buf_putc(to, ',');
        json_put_digits(to, v, 9);
    }
    take_completion_logprobs(to, l);
}

int ollama_take(ollama_run *run, const json_t *chunk)
{
    const json_t *choice = json_array_get(json_object_get(chunk, "choices"), 0);
    const json_t *delta = json_object_get(choice, "delta");
    const char *finish = fields_text(json_object_get(choice, "finish_reason"));
    if (!json_is_array(json_object_get(chunk, "choices"))) return SHOAL_EPROTOCOL;
    take_usage(run, json_object_get(chunk, "usage"));
    ollama_put_take_text(&run->text, json_object_get(delta ? delta : choice, delta ? "content" : "text"));
    ollama_put_take_text(&run->thinking, json_object_get(delta, "reasoning_content"));
    take_logprobs(&run->logprobs, json_object_get(choice, "logprobs"));
    int rc = take_calls(run, json_object_get(delta, "tool_calls"));
    if (finish) snprintf(run->finish, sizeof run->finish, "%s", finish);
    return rc ? rc : run->text.failed || run->thinking.failed || run->logprobs.failed ? SHOAL_ENOMEM : 0;
}

void ollama_run_done(ollama_run *run)
{
    buf_done(&run->text);
    buf_done(&run->thinking);
    buf_done(&run->logprobs);
    for (size_t i = 0; i < run->n_calls; i++) {
        buf_done(&run->calls[i].name);
        buf_done(&run->calls[i].arguments);
    }
    *run = (ollama_run){0};
}

/* ---- lines --------------------------------------------------------------------------------------- */

/* What has not come whole is not there at all. */
static void keep_whole(buf *out, size_t before)
{
    if (out->failed) out->len = before;
}

/* Arguments that are no JSON (a reply that was cut in the middle of them) are told as a text. */
static void put_arguments(buf *out, const buf *text)
{
    json_t *v = NULL;
    if (text->len && json_parse(&v, text->data, text->len, "arguments", NULL) == 0)
        json_put_digits(out, v, 15); /* 21.1, not 21.100000000000001 */
    else if (text->len)
        json_put_string(out, text->data, text->len);
    else
        buf_puts(out, "{}");
    json_decref(v);
}

static void put_calls(buf *out, const ollama_run *run)
{
    buf_puts(out, ",\"tool_calls\":[");
    for (size_t i = 0; i < run->n_calls; i++) {
        buf_puts(out, i ? ",{\"function\":{\"name\":" : "{\"function\":{\"name\":");
        out->failed |= run->calls[i].name.failed || run->calls[i].arguments.failed;
        json_put_string(out, run->calls[i].name.data ? run->calls[i].name.data : "", run->calls[i].name.len);
        buf_puts(out, ",\"arguments\":");
        put_arguments(out, &run->calls[i].arguments);
        buf_puts(out, "}}");
    }
    buf_putc(out, ']');
}

static void put_head(buf *out, const ollama_ask *a, const ollama_times *t)
{
    buf_putc(out, '{');
    json_put_text(out, "model", a->shown);
    put_time(out, "created_at", t->unix_us);
}

/* What came, and nothing is kept of it. */
static void put_said(buf *out, const ollama_ask *a, ollama_run *run, bool last)
{
    if (a->kind == OLLAMA_GENERATE) {
        json_put_buf(out, "response", &run->text);
        if (run->thinking.len) json_put_buf(out, "thinking", &run->thinking);
    } else {
        buf_puts(out, ",\"message\":{\"role\":\"assistant\"");
        json_put_buf(out, "content", &run->text);
        if (run->thinking.len) json_put_buf(out, "thinking", &run->thinking);
        if (last && run->n_calls) put_calls(out, run);
        buf_putc(out, '}');
    }
    if (run->logprobs.len) buf_printf(out, ",\"logprobs\":[%s]", run->logprobs.data);
    buf_clear(&run->text);
    buf_clear(&run->thinking);
    buf_clear(&run->logprobs);
}

void ollama_put_line(buf *out, const ollama_ask *a, ollama_run *run, const ollama_times *t)
{
    size_t before = out->len;
    if (run->text.len == 0 && run->thinking.len == 0) return;
    put_head(out, a, t);
    put_said(out, a, run, false);
    buf_puts(out, ",\"done\":false}");
    keep_whole(out, before);
}

void ollama_put_last(buf *out, const ollama_ask *a, ollama_run *run, const ollama_times *t)
{
    size_t before = out->len;
    put_head(out, a, t);
    put_said(out, a, run, true);
    buf_printf(out,
               ",\"done\":true,\"done_reason\":\"%s\",\"total_duration\":%llu,\"load_duration\":0,"
               "\"prompt_eval_count\":%llu,\"prompt_eval_duration\":%llu,\"eval_count\":%llu,\"eval_"
               "duration\":%llu}",
               strcmp(run->finish, "length") == 0 ? "length" : "stop", (unsigned long long)t->total_ns,
               (unsigned long long)run->n_prompt, (unsigned long long)t->prompt_ns,
               (unsigned long long)run->n_reply, (unsigned long long)t->reply_ns);
    keep_whole(out, before);
}

static void put_no_vectors(buf *out, const ollama_ask *a, const ollama_times *t)
{
    if (a->kind == OLLAMA_EMBEDDINGS) {
        buf_puts(out, "{\"embedding\":[]}");
        return;
    }
    buf_putc(out, '{');
    json_put_text(out, "model", a->shown);
    buf_printf(out, ",\"embeddings\":[],\"total_duration\":%llu,\"load_duration\":0,\"prompt_eval_count\":0}",
               (unsigned long long)t->total_ns);
}

void ollama_put_loaded(buf *out, const ollama_ask *a, const ollama_times *t)
{
    ollama_run nothing = {0};
    if (a->kind == OLLAMA_EMBED || a->kind == OLLAMA_EMBEDDINGS) {
        put_no_vectors(out, a, t);
        return;
    }
    put_head(out, a, t);
    put_said(out, a, &nothing, true);
    buf_printf(out, ",\"done\":true,\"done_reason\":\"%s\"}", a->keep_alive_s == 0 ? "unload" : "load");
}

void ollama_put_status(buf *out, const char *status)
{
    buf_printf(out, "{\"status\":\"%s\"}", status);
}

void ollama_put_progress(buf *out, const char *file, const char *sha256, uint64_t total, uint64_t completed)
{
    buf what = {0};
    buf_printf(&what, "pulling %s", file);
    buf_puts(out, "{\"status\":");
    json_put_string(out, what.data ? what.data : "", what.len);
    if (*sha256) buf_printf(out, ",\"digest\":\"sha256:%.64s\"", sha256);
    if (total) buf_printf(out, ",\"total\":%llu", (unsigned long long)total);
    buf_printf(out, ",\"completed\":%llu}", (unsigned long long)completed);
    out->failed |= what.failed;
    buf_done(&what);
}

/* What our errors name, and what a client of Ollama's API calls it; the longest of a beginning first. */
static const struct {
    const char *ours, *theirs;
} TERMS[] = {
    {"GET /v1/models?loadable=true", "GET /api/tags"},
    {"GET /v1/models", "GET /api/tags"},
    {"/v1/chat/completions or /v1/completions", "/api/chat or /api/generate"},
    {"/v1/chat/completions", "/api/chat"},
    {"/v1/embeddings", "/api/embed"},
    {"(response_format)", "(format)"},
};

static void put_in_terms(buf *out, const char *s)
{
    while (*s) {
        size_t i = 0, n = 0;
        for (; i < sizeof TERMS / sizeof *TERMS; i++)
            if (strncmp(s, TERMS[i].ours, n = strlen(TERMS[i].ours)) == 0) break;
        if (i < sizeof TERMS / sizeof *TERMS) {
            buf_puts(out, TERMS[i].theirs);
            s += n;
        } else {
            buf_putc(out, *s++);
        }
    }
}

void ollama_put_error(buf *out, const char *message)
{
    size_t before = out->len;
    buf own = {0};
    put_in_terms(&own, message);
    buf_putc(out, '{');
    json_put_text(out, "error", own.failed ? message : buf_text(&own));
    buf_putc(out, '}');
    buf_done(&own);
    keep_whole(out, before);
}

/* ---- vectors ------------------------------------------------------------------------------------- */

int ollama_put_vectors(buf *out, const ollama_ask *a, const json_t *ours, const ollama_times *t)
{
    const json_t *data = json_object_get(ours, "data"), *usage = json_object_get(ours, "usage");
    json_t *one;
    size_t i;
    if (!json_is_array(data) || json_array_size(data) == 0) return SHOAL_EPROTOCOL;
    if (a->kind == OLLAMA_EMBEDDINGS) {
        buf_puts(out, "{\"embedding\":");
        json_put_digits(out, json_object_get(json_array_get(data, 0), "embedding"), 9);
        buf_putc(out, '}');
        return out->failed ? SHOAL_ENOMEM : 0;
    }
    buf_putc(out, '{');
    json_put_text(out, "model", a->shown);
    buf_puts(out, ",\"embeddings\":[");
    json_array_foreach(data, i, one)
    {
        if (i) buf_putc(out, ',');
        json_put_digits(out, json_object_get(one, "embedding"), 9);
    }
    buf_printf(out, "],\"total_duration\":%llu,\"load_duration\":0,\"prompt_eval_count\":%lld}",
               (unsigned long long)t->total_ns,
               (long long)json_integer_value(json_object_get(usage, "prompt_tokens")));
    return out->failed ? SHOAL_ENOMEM : 0;
}

/* ---- models -------------------------------------------------------------------------------------- */

/* "134.52M", as Ollama writes it; "" where it is not known. */
static void put_parameter_size(buf *out, const json_t *m)
{
    double n = (double)json_integer_value(json_object_get(m, "parameters"));
    if (n >= 1e9)
        buf_printf(out, ",\"parameter_size\":\"%.1fB\"", n / 1e9);
    else if (n >= 1e6)
        buf_printf(out, ",\"parameter_size\":\"%.2fM\"", n / 1e6);
    else if (n >= 1e3)
        buf_printf(out, ",\"parameter_size\":\"%.2fK\"", n / 1e3);
    else
        json_put_text(out, "parameter_size", "");
}

/* What an alias stands for; "": the row is of a model. */
static const char *stands_for(const json_t *m)
{
    const char *root = json_text_of(m, "root");
    return strcmp(root, json_text_of(m, "id")) == 0 ? "" : root;
}

static void put_details(buf *out, const json_t *m)
{
    const char *family = json_text_of(m, "architecture");
    buf_puts(out, ",\"details\":{\"parent_model\":");
    json_put_string(out, stands_for(m), strlen(stands_for(m)));
    buf_puts(out, ",\"format\":\"gguf\"");
    json_put_text(out, "family", family);
    buf_puts(out, ",\"families\":[");
    if (*family) json_put_string(out, family, strlen(family));
    buf_putc(out, ']');
    put_parameter_size(out, m);
    json_put_text(out, "quantization_level", json_text_of(m, "quantisation"));
    buf_putc(out, '}');
}

/* A model that stays is said to go in a year. */
static int64_t expiry(const json_t *m, const ollama_times *t)
{
    const json_t *left = json_object_get(m, "unloads_in_ms");
    int64_t ms = left ? json_integer_value(left) : 365 * 86400 * INT64_C(1000);
    return t->unix_us + (ms >= 0 && ms < INT64_C(1) << 50 ? ms : 0) * 1000;
}

/* "digest": clients cut twelve characters from it. What has no file of its own has that of its name. */
static void put_digest(buf *out, const json_t *m, const char *id)
{
    const char *digest = json_text_of(m, "digest");
    sha256_digest own;
    char hex[65];
    if (!*digest) digest = json_text_of(m, "sha256");
    if (!*digest) {
        sha256_of(id, strlen(id), &own);
        sha256_hex(&own, hex);
        digest = hex;
    }
    json_put_text(out, "digest", digest);
}

static const json_t *ollama_put_find(const json_t *data, const char *name)
{
    const json_t *m;
    size_t i;
    json_array_foreach(data, i, m) if (strcmp(json_text_of(m, "id"), name) == 0) return m;
    return NULL;
}

static int64_t file_bytes(const json_t *m)
{
    return json_integer_of(m, json_object_get(m, "file_bytes") ? "file_bytes" : "bytes");
}

/* Ensembles and routes have their members' bytes, and are as old as the youngest of them. */
static void put_extent(buf *out, const json_t *m, const json_t *data)
{
    static const char *const MEMBERS[] = {"members", "routes_to"};
    int64_t bytes = file_bytes(m), created = json_integer_of(m, "created");
    const json_t *name, *parent = ollama_put_find(data, json_text_of(m, "parent"));
    size_t i;
    if (parent && !created) created = json_integer_of(parent, "created"); /* of an adapter */
    if (parent && !bytes) bytes = file_bytes(parent);
    for (size_t k = 0; k < sizeof MEMBERS / sizeof *MEMBERS; k++) {
        json_array_foreach(json_object_get(m, MEMBERS[k]), i, name)
        {
            const json_t *one = ollama_put_find(data, json_string_value(name));
            if (!one) continue;
            bytes += file_bytes(one);
            if (json_integer_of(one, "created") > created) created = json_integer_of(one, "created");
        }
    }
    put_time(out, "modified_at", created * 1000000);
    buf_printf(out, ",\"size\":%lld", (long long)bytes);
}

static void put_listed(buf *out, const json_t *m, const json_t *data, bool running, const ollama_times *t)
{
    const char *id = *json_text_of(m, "id") ? json_text_of(m, "id") : json_text_of(m, "name");
    json_put_open(out, NULL, '{');
    json_put_text(out, "name", id);
    json_put_text(out, "model", id);
    if (running) put_time(out, "expires_at", expiry(m, t));
    if (running)
        buf_printf(out, ",\"size\":%lld,\"size_vram\":0,\"context_length\":%lld",
                   json_integer_of(m, json_object_get(m, "memory_bytes") ? "memory_bytes" : "file_bytes"),
                   json_integer_of(m, "context_length"));
    else
        put_extent(out, m, data);
    put_digest(out, m, id);
    put_details(out, m);
    buf_putc(out, '}');
}

/* As its model, under its own name; NULL: no memory. */
static json_t *row_of_made(const json_t *base, const char *name, const json_t *made)
{
    sha256_digest own;
    char hex[65];
    buf text = {0};
    json_t *row = json_copy((json_t *)base);
    buf_puts(&text, name);
    json_put(&text, made);
    sha256_of(buf_text(&text), text.len, &own);
    sha256_hex(&own, hex);
    bool ok = row && !text.failed && json_object_set_new(row, "id", json_string(name)) == 0 &&
              json_object_set_new(row, "digest", json_string(hex)) == 0 &&
              json_object_set(row, "root", json_object_get(made, "from")) == 0 &&
              json_object_set_new(row, "created", json_integer(json_integer_of(made, "created"))) == 0;
    buf_done(&text);
    if (ok) return row;
    json_decref(row);
    return NULL;
}

/* The row of /v1/models that is a model made of another: it is listed as such. */
static bool is_made(const json_t *m, const json_t *made)
{
    const json_t *one = json_object_get(made, json_text_of(m, "id"));
    return one && strcmp(json_text_of(m, "root"), json_text_of(one, "from")) == 0;
}

static int put_made(buf *out, const json_t *data, const json_t *stored, const json_t *made,
                    const ollama_times *t)
{
    const char *name;
    const json_t *one, *m;
    size_t i;
    json_object_foreach((json_t *)made, name, one)
    {
        const char *from = json_text_of(one, "from");
        const json_t *base = ollama_put_find(data, from);
        json_array_foreach(base ? NULL : stored, i, m) if (strcmp(json_text_of(m, "name"), from) == 0) base =
            m;
        m = ollama_put_find(data, name);
        if (!base || (m && !is_made(m, made))) continue;
        json_t *row = row_of_made(base, name, one);
        if (!row) return SHOAL_ENOMEM;
        put_listed(out, row, data, false, t);
        json_decref(row);
    }
    return 0;
}

int ollama_put_models(buf *out, const json_t *ours, const json_t *stored, const json_t *made, bool running,
                      const ollama_times *t)
{
    const json_t *data = json_object_get(ours, "data");
    json_t *m;
    size_t i;
    if (!json_is_array(data)) return SHOAL_EPROTOCOL;
    buf_puts(out, "{\"models\":[");
    json_array_foreach(data, i, m)
    {
        if (running && (json_integer_of(m, "ready") == 0 || *stands_for(m)))
            continue; /* routes, ensembles and adapters have no replicas, nor have aliases of their own */
        if (is_made(m, made)) continue;
        put_listed(out, m, data, running, t);
    }
    json_array_foreach(running ? NULL : stored, i, m)
    {
        if (ollama_put_find(data, json_text_of(m, "name"))) continue;
        put_listed(out, m, data, false, t);
    }
    int rc = running ? 0 : put_made(out, data, stored, made, t);
    buf_puts(out, "]}");
    return rc == 0 && out->failed ? SHOAL_ENOMEM : rc;
}

/* What a task lets a client do with its model. A model that calls the functions it was trained on, and no others,
 * takes no tools of a client; nor is it known of the members of ensembles and routes, which have no task. */
static void put_capabilities(buf *out, const json_t *m)
{
    const char *task = json_text_of(m, "task"), *tools = json_text_of(m, "tools");
    bool generates = strcmp(task, "generate") == 0;
    bool completes = generates || !*task || strcmp(task, "route") == 0;
    if (completes)
        buf_puts(out, "\"completion\"");
    else if (strcmp(task, "embed") == 0)
        buf_puts(out, "\"embedding\"");
    if (generates && strcmp(tools, "own") != 0 && strcmp(tools, "none") != 0) buf_puts(out, ",\"tools\"");
}

/* A template of its own says what a made model does. */
static void put_uses(buf *out, const char *template)
{
    gotemplate_uses uses = {0};
    buf jinja = {0};
    gotemplate_to_jinja(&jinja, template, strlen(template), &uses, NULL);
    buf_puts(out, "\"completion\"");
    if (uses.tools) buf_puts(out, ",\"tools\"");
    if (uses.suffix) buf_puts(out, ",\"insert\"");
    if (uses.thinking) buf_puts(out, ",\"thinking\"");
    out->failed |= jinja.failed;
    buf_done(&jinja);
}

/* Of a Modelfile, whose text ends with the first line that ends in three quotes, and where nothing can be escaped (Ollama's
 * parser/parser.go). A line of the text that ends so, but for the last, gets its quotes behind backslashes. */
static void put_quoted(buf *text, const char *s)
{
    buf_puts(text, "\"\"\"");
    for (size_t n; *s; s += n) {
        n = strcspn(s, "\n");
        size_t end = n;
        while (s[n] && end > 0 && strchr(" \t\r\v\f", s[end - 1])) end--;
        bool closes = s[n] && end >= 3 && strncmp(s + end - 3, "\"\"\"", 3) == 0;
        buf_append(text, s, closes ? end - 3 : n);
        if (closes) buf_puts(text, "\\\"\\\"\\\"\\");
        if (s[n]) buf_putc(text, s[n++]);
    }
    buf_puts(text, "\"\"\"");
}

static bool is_one_word(const json_t *v)
{
    return !strpbrk(json_string_value(v), "\"\n\r");
}

static void put_parameter(buf *text, const char *key, const json_t *v, bool modelfile)
{
    buf_printf(text, "%-30s ", key);
    if (!json_is_string(v))
        json_put_digits(text, v, 6);
    else if (modelfile && !is_one_word(v))
        put_quoted(text, json_string_value(v));
    else if (modelfile)
        buf_printf(text, "\"%s\"", json_string_value(v));
    else
        json_put_string(text, json_string_value(v), json_string_length(v));
}

/* A line each: a name, and its value in column 32; those of a Modelfile begin with PARAMETER. */
static void put_parameters(buf *text, bool modelfile, const json_t *sampling, const json_t *made)
{
    const char *before = modelfile ? "PARAMETER " : "";
    const json_t *own = json_object_get(made, "parameters"), *v, *one;
    const char *key;
    size_t i;
    json_object_foreach((json_t *)sampling, key, v)
    {
        const char *theirs = strcmp(key, "repetition_penalty") == 0 ? "repeat_penalty" : key;
        if (json_object_get(own, theirs)) continue;
        buf_puts(text, text->len ? "\n" : "");
        buf_puts(text, before);
        put_parameter(text, theirs, v, modelfile);
    }
    json_object_foreach((json_t *)own, key, v)
    {
        for (i = 0; i < (json_is_array(v) ? json_array_size(v) : 1); i++) {
            one = json_is_array(v) ? json_array_get(v, i) : v;
            buf_puts(text, text->len ? "\n" : "");
            buf_puts(text, before);
            put_parameter(text, key, one, modelfile);
        }
    }
}

static void put_modelfile(buf *out, const json_t *ours, const json_t *made)
{
    buf text = {0};
    const char *id = *json_text_of(ours, "id") ? json_text_of(ours, "id") : json_text_of(ours, "name");
    const char *system = json_text_of(made, "system"), *template = json_text_of(made, "template");
    buf_printf(&text, "FROM %s", id);
    if (*template) buf_puts(&text, "\nTEMPLATE "), put_quoted(&text, template);
    put_parameters(&text, true, json_object_get(ours, "sampling"), made);
    if (*system) buf_puts(&text, "\nSYSTEM "), put_quoted(&text, system);
    buf_putc(&text, '\n');
    json_put_buf(out, "modelfile", &text);
    out->failed |= text.failed;
    buf_done(&text);
}

int ollama_put_model(buf *out, const json_t *ours, const json_t *made, const ollama_times *t)
{
    const char *family = json_text_of(ours, "architecture");
    const char *NUMBERS[] = {"context_length", "embedding_length"};
    buf parameters = {0};
    if (!*json_text_of(ours, "id") && !*json_text_of(ours, "name")) return SHOAL_EPROTOCOL;
    const char *template = json_text_of(made, "template");
    buf_puts(out, "{\"license\":\"\",\"template\":");
    json_put_string(out, template, strlen(template));
    put_modelfile(out, ours, made);
    put_parameters(&parameters, false, json_object_get(ours, "sampling"), made);
    json_put_buf(out, "parameters", &parameters);
    out->failed |= parameters.failed;
    buf_done(&parameters);
    if (*json_text_of(made, "system")) json_put_text(out, "system", json_text_of(made, "system"));
    put_details(out, ours);
    put_time(out, "modified_at", json_integer_of(made ? made : ours, "created") * 1000000);
    buf_puts(out, ",\"model_info\":{\"general.architecture\":");
    json_put_string(out, family, strlen(family));
    if (json_integer_of(ours, "parameters"))
        buf_printf(out, ",\"general.parameter_count\":%lld", json_integer_of(ours, "parameters"));
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        const json_t *v = json_object_get(ours, NUMBERS[i]);
        if (json_is_integer(v) && *family)
            buf_printf(out, ",\"%.64s.%s\":%lld", family, NUMBERS[i], (long long)json_integer_value(v));
    }
    buf_puts(out, "},\"capabilities\":[");
    if (*template)
        put_uses(out, template);
    else
        put_capabilities(out, ours);
    buf_puts(out, "]}");
    return out->failed ? SHOAL_ENOMEM : 0;
}
