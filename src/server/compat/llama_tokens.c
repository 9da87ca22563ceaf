/* llama_tokens.c: texts as tokens, tokens as text, messages as a prompt; see llama.h. Loop thread. */
#include <stdlib.h>
#include <string.h>

#include "compat/llama.h"
#include "compat/llama_impl.h"
#include "dialects/llama.h"
#include "dialects/ollama.h"
#include "json/json.h"
#include "json/json_put.h"
#include "messages/fields.h"
#include "messages/query.h"
#include "request/gateway_state.h"

enum { TOKENS_MAX = 1 << 20 };

/* ---- templates ----------------------------------------------------------------------------------- */

/* What a model that a client made of another adds to the chat. */
static int about_fill_variant(about_job *j, api_error *e)
{
    const json_t *made = j->rq->variant;
    if (!made) return 0;
    return ollama_fill_in(j->root, made) == 0 ? ollama_fill_template(NULL, j->root, made, e)
                                              : api_error_nomem(e);
}

/* Checked as a chat request's messages are. */
static int parse_messages(about_job *j, api_error *e)
{
    buf text = {0};
    json_ahead parsed = {0};
    int rc = about_fill_variant(j, e);
    if (rc == 0 &&
        (json_object_set_new(j->root, "model", json_string(j->model)) != 0 || json_put(&text, j->root) != 0))
        rc = api_error_nomem(e);
    if (rc == 0) json_ahead_from(&parsed, &text, j->root);
    json_ahead_offer(&parsed);
    if (rc == 0) rc = openai_spec_parse_chat(&j->spec, text.data, text.len, e);
    json_ahead_offer(NULL);
    json_ahead_done(&parsed);
    buf_done(&text);
    return rc;
}

static void render(about_job *j, calls_render_done done)
{
    call_context ctx = request_context(j->rq, "endpoint");
    Shoal__V1__RenderRequest q = SHOAL__V1__RENDER_REQUEST__INIT;
    char base[LLAMA_NAME_MAX];
    llama_base(j->model, base);
    q.messages_json = (char *)j->spec->messages_json;
    if (j->spec->tools_json) q.tools_json = (char *)j->spec->tools_json;
    if (j->spec->chat_template) q.chat_template = (char *)j->spec->chat_template;
    if (j->spec->template_kwargs_json) q.template_kwargs_json = (char *)j->spec->template_kwargs_json;
    j->call = calls_render(j->rq->calls, base, &q, &ctx, done, j);
    about_job_await(j);
}

static void on_rendered(void *user, const call_result *r, const Shoal__V1__RenderReply *m)
{
    about_job *j = user;
    buf out = {0};
    if (!about_job_went_well(j, r)) return;
    buf_puts(&out, "{\"prompt\":");
    json_put_string(&out, m->text.len ? (const char *)m->text.data : "", m->text.len);
    buf_putc(&out, '}');
    about_job_reply(j, &out);
}

void llama_template(gateway_request *rq)
{
    about_job *j = about_job_new(rq);
    api_error e = {0};
    if (!j) return;
    int rc = about_job_read(j, &e);
    if (rc == 0) rc = about_job_choose(j, &e);
    if (rc == 0) rc = parse_messages(j, &e);
    if (rc == 0)
        render(j, on_rendered);
    else
        about_job_fail(j, &e);
}

/* ---- tokens -------------------------------------------------------------------------------------- */

static void on_tokens(void *user, const call_result *r, const Shoal__V1__TokenizeReply *m)
{
    about_job *j = user;
    char base[LLAMA_NAME_MAX];
    buf out = {0};
    if (!about_job_went_well(j, r)) return;
    llama_base(j->model, base);
    const Shoal__V1__ModelInfo *info = calls_info(j->rq->calls, base, NULL);
    tokens_put(&out, &j->tokens, m, info ? info->n_ctx : 0);
    about_job_reply(j, &out);
}

static void tokenize(about_job *j, const char *text)
{
    call_context ctx = request_context(j->rq, "endpoint");
    Shoal__V1__TokenizeRequest q = SHOAL__V1__TOKENIZE_REQUEST__INIT;
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT;
    char base[LLAMA_NAME_MAX];
    llama_base(j->model, base);
    in.text = (char *)text;
    q.input = &in;
    q.no_special = !j->tokens.special;
    q.plain = j->tokens.plain;
    q.pieces = j->tokens.pieces;
    j->call = calls_tokenize(j->rq->calls, base, &q, &ctx, on_tokens, j);
    about_job_await(j);
}

static void on_rendered_for_tokens(void *user, const call_result *r, const Shoal__V1__RenderReply *m)
{
    about_job *j = user;
    api_error e;
    if (!about_job_went_well(j, r)) return;
    char *text = m->text.len ? malloc(m->text.len + 1) : calloc(1, 1);
    if (!text) {
        api_error_nomem(&e);
        about_job_fail(j, &e);
        return;
    }
    if (m->text.len) memcpy(text, m->text.data, m->text.len);
    text[m->text.len] = '\0';
    if (strlen(text) == m->text.len) {
        tokenize(j, text);
    } else {
        api_error_bad(&e, "messages", "the prompt that \"messages\" become has NUL characters");
        about_job_fail(j, &e);
    }
    free(text);
}

static int read_tokenize(about_job *j, api_error *e)
{
    const char *given = NULL;
    int rc = about_job_read(j, e);
    if (rc == 0) rc = tokens_read(&j->tokens, j->root, e);
    if (rc == 0 && !j->tokens.vllm) return about_job_choose(j, e);
    if (rc == 0) rc = fields_str(j->root, "model", &given, e);
    if (rc == 0) rc = llama_choose_tokenizer(j->rq, given && *given ? given : NULL, j->model, e);
    return rc == 0 && !j->tokens.text ? parse_messages(j, e) : rc;
}

void llama_tokenize(gateway_request *rq)
{
    about_job *j = about_job_new(rq);
    api_error e = {0};
    if (!j) return;
    if (read_tokenize(j, &e) != 0)
        about_job_fail(j, &e);
    else if (j->tokens.text)
        tokenize(j, j->tokens.text);
    else
        render(j, on_rendered_for_tokens);
}

static int read_ids(about_job *j, size_t *ret_n, api_error *e)
{
    int rc = about_job_read(j, e);
    if (rc != 0) return rc;
    const json_t *tokens = fields_get(j->root, "tokens");
    size_t n = json_array_size(tokens);
    if (!json_is_array(tokens) || n > TOKENS_MAX)
        return api_error_bad(e, "tokens", "\"tokens\" must be an array of at most %d token ids", TOKENS_MAX);
    j->ids = calloc(n + 1, sizeof *j->ids);
    if (!j->ids) return api_error_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(tokens, i);
        json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id > INT32_MAX)
            return api_error_bad(e, "tokens", "tokens[%zu] is no token id", i);
        j->ids[i] = (int32_t)id;
    }
    *ret_n = n;
    return about_job_choose(j, e);
}

static void on_text(void *user, const call_result *r, const Shoal__V1__DetokenizeReply *m)
{
    about_job *j = user;
    buf out = {0};
    if (!about_job_went_well(j, r)) return;
    const char *text = m->text.len ? (const char *)m->text.data : "";
    buf_puts(&out, "{\"content\":");
    json_put_string(&out, text, m->text.len);
    json_put_text_n(&out, "prompt", text, m->text.len); /* vLLM's name of it */
    buf_putc(&out, '}');
    about_job_reply(j, &out);
}

void llama_detokenize(gateway_request *rq)
{
    about_job *j = about_job_new(rq);
    Shoal__V1__DetokenizeRequest q = SHOAL__V1__DETOKENIZE_REQUEST__INIT;
    char base[LLAMA_NAME_MAX];
    api_error e = {0};
    if (!j) return;
    if (read_ids(j, &q.n_ids, &e) != 0) {
        about_job_fail(j, &e);
        return;
    }
    call_context ctx = request_context(rq, "endpoint");
    llama_base(j->model, base);
    q.ids = j->ids;
    j->call = calls_detokenize(rq->calls, base, &q, &ctx, on_text, j);
    about_job_await(j);
}

/* ---- the tokenizer ------------------------------------------------------------------------------- */

static void put_token(buf *out, const char *key, const char *text)
{
    if (*text)
        json_put_text(out, key, text);
    else
        buf_printf(out, ",\"%s\":null", key);
}

static void on_tokenizer(void *user, const call_result *r, const Shoal__V1__ModelInfo *m)
{
    about_job *j = user;
    buf out = {0};
    if (!about_job_went_well(j, r)) return;
    buf_printf(&out, "{\"model_max_length\":%u", m->n_ctx);
    json_put_text(&out, "model", request_shown_model(j->rq, j->model));
    put_token(&out, "bos_token", m->bos_token);
    put_token(&out, "eos_token", m->eos_token);
    buf_puts(&out, ",\"pad_token\":null"); /* texts of a batch are not padded */
    put_token(&out, "chat_template", m->chat_template);
    buf_putc(&out, '}');
    about_job_reply(j, &out);
}

void llama_tokenizer_info(gateway_request *rq)
{
    about_job *j = about_job_new(rq);
    Shoal__V1__DescribeRequest q = SHOAL__V1__DESCRIBE_REQUEST__INIT;
    char base[LLAMA_NAME_MAX];
    char *name = NULL;
    api_error e = {0};
    if (!j) return;
    int rc = query_value(request_query(rq), "model", &name, &e);
    if (rc == 0) rc = llama_choose_tokenizer(rq, name && *name ? name : NULL, j->model, &e);
    free(name);
    if (rc != 0) {
        about_job_fail(j, &e);
        return;
    }
    call_context ctx = request_context(rq, "endpoint");
    llama_base(j->model, base);
    q.texts = true;
    j->call = calls_describe(rq->calls, base, &q, &ctx, on_tokenizer, j);
    about_job_await(j);
}
