/* Bodies of llama-server's completions: a refusal is a 4xx with a sentence; what is taken has all its texts
 * among ids tokenised and is a completion of ours, whose answer is told in JSON. The first byte chooses
 * /completion or /infill, and how many tokens a text has. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/llama.h"
#include "json/json.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(buf *out)
{
    json_t *v = NULL;
    if (holds(!out->failed)) holds(json_parse(&v, out->data, out->len, "what was put", NULL) == 0);
    json_decref(v);
    buf_done(out);
}

static void check_refusal(int rc, const api_error *e)
{
    if (rc != e->status || rc < 400 || !e->message[0]) abort();
    holds(rc <= 499);
}

static void tokenize(llama_ask *a, size_t n)
{
    const char *text;
    bool first;
    size_t n_texts = 0;
    while (llama_next_text(a, &text, &first)) {
        llama_take_tokens(a, (int32_t[]){1, 2, 3, 4}, n);
        if (++n_texts > LLAMA_TEXTS_MAX) abort();
    }
}

static void answer(const gen_spec *s)
{
    gen_answer a;
    answer_form f;
    buf out = {0};
    Shoal__V1__Done done = SHOAL__V1__DONE__INIT;
    done.n_stop = 1;
    if (!holds(answer_init(&a, openai_spec_choices(s)) == 0)) return;
    for (size_t k = 0; k < a.n; k++) answer_close(&a, s, k, &done);
    answer_form_init(&f, s, NULL, 1);
    answer_put(&out, &f, &a);
    check_json(&out);
    answer_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    llama_ask a;
    gen_spec *s = NULL;
    api_error e = {0};
    bool infills = data[0] & 1;
    int rc = llama_read(&a, infills, (const char *)data + 1, size - 1, &e);
    if (rc == 0 && infills) rc = llama_fill(&a, (int32_t[]){1, 2, 3}) == 0 ? 0 : api_error_nomem(&e);
    if (rc == 0) {
        tokenize(&a, data[0] >> 1 & 3);
        rc = llama_spec(&s, &a, "m", &e);
    }
    if (rc != 0)
        check_refusal(rc, &e);
    else
        answer(s);
    openai_spec_free(s);
    llama_ask_done(&a);
    return 0;
}
