/* Bodies of Ollama's API: a refusal is a 4xx with a sentence; what is taken is a body that is JSON, or one
 * that only loads. And bytes as one of our own chunks or objects: what is put of them is JSON, or they are
 * refused. The first byte chooses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/ollama.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(buf *out)
{
    json_t *v = NULL;
    if (holds(!out->failed)) holds(json_parse(&v, out->data, out->len, "what was put", NULL) == 0);
    json_decref(v);
    buf_done(out);
}

static void read_asked(ollama_kind kind, const char *bytes, size_t n)
{
    ollama_ask a;
    json_t *body;
    api_error e = {0};
    int rc = ollama_read(&a, kind, bytes, n, &body, &e);
    if (rc == 0) {
        if (!*a.model || *a.path != '/' || (kind != OLLAMA_SHOW) != (body != NULL)) abort();
    } else {
        if (rc != e.status || rc < 400 || !e.message[0] || body) abort();
        holds(rc <= 499);
    }
    json_decref(body);
}

/* What is made of another model fills in a body that is JSON still. */
static void read_making(const char *bytes, size_t n, ollama_kind kind)
{
    ollama_making m;
    int (*fill)(json_t *, const json_t *) = kind == OLLAMA_CHAT ? ollama_fill_in : ollama_fill_in_llama;
    json_t *made = NULL, *body = json_pack("{s:[{s:s, s:s}]}", "messages", "role", "user", "content", "a");
    buf out = {0};
    api_error e = {0};
    int rc = ollama_read_create(&m, bytes, n, &made, &e);
    if (rc == 0 && (!*m.name || (!*m.from && !*m.sha256) || !made)) abort();
    if (rc != 0 && (rc != e.status || rc < 400 || made)) abort();
    bool filled = rc == 0 && body && fill(body, made) == 0 && ollama_fill_template(NULL, body, made, &e) == 0;
    if (filled && json_put(&out, body) == 0)
        check_json(&out);
    else
        buf_done(&out);
    rc = ollama_read_copy(&m, bytes, n, &e);
    if (rc == 0 ? !*m.name || !*m.from : rc != e.status || rc < 400) abort();
    json_decref(made);
    json_decref(body);
}

static void put_chunk(const json_t *v, ollama_kind kind)
{
    ollama_ask a = {.kind = kind, .model = "m", .shown = "m"};
    ollama_times t = {.unix_us = 1};
    ollama_run run = {0};
    buf line = {0}, last = {0};
    (void)ollama_take(&run, v);
    ollama_put_line(&line, &a, &run, &t);
    if (line.len) check_json(&line);
    ollama_put_last(&last, &a, &run, &t);
    check_json(&last);
    buf_done(&line);
    ollama_run_done(&run);
}

static void put_object(const json_t *v, ollama_kind kind)
{
    ollama_ask a = {.kind = kind, .model = "m", .shown = "m"};
    ollama_times t = {0};
    buf out[4] = {{0}};
    int rc[4] = {ollama_put_vectors(&out[0], &a, v, &t), ollama_put_models(&out[1], v, v, v, false, &t),
                 ollama_put_models(&out[2], v, NULL, NULL, true, &t), ollama_put_model(&out[3], v, v, &t)};
    for (size_t i = 0; i < 4; i++)
        if (rc[i] == 0)
            check_json(&out[i]);
        else
            buf_done(&out[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const char *bytes = (const char *)data + 1;
    ollama_kind kind = (ollama_kind)(data[0] % 5);
    json_t *v = NULL;
    read_asked(kind, bytes, size - 1);
    read_making(bytes, size - 1, kind);
    if (json_parse(&v, bytes, size - 1, "bytes", NULL) == 0) {
        put_chunk(v, kind);
        put_object(v, kind);
    }
    json_decref(v);
    return 0;
}
