/* ollama.c: what Ollama's clients ask, as the body that ours would send. */
#include "dialects/ollama.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/openai.h"
#include "messages/fields.h"
#include "base/utf8.h"
#include "json/json.h"

#define KEEP_ALIVE_MAX_S (365 * 24 * 3600)

static json_t *ollama_text_of(const json_t *v)
{
    return v ? json_incref((json_t *)v) : json_string("");
}

static int refuse_pictures(const json_t *o, api_error *e)
{
    const json_t *images = fields_get(o, "images");
    if (!images || (json_is_array(images) && json_array_size(images) == 0)) return 0;
    return api_error_bad(e, "images", "no model here sees pictures");
}

/* ---- options ------------------------------------------------------------------------------------- */

static int put_options(json_t *body, const json_t *asked, api_error *e)
{
    static const fields_name NAMES[] = {{"temperature", "temperature"},
                                        {"top_p", "top_p"},
                                        {"top_k", "top_k"},
                                        {"min_p", "min_p"},
                                        {"seed", "seed"},
                                        {"stop", "stop"},
                                        {"num_predict", "max_tokens"},
                                        {"repeat_penalty", "repetition_penalty"},
                                        {"presence_penalty", "presence_penalty"},
                                        {"frequency_penalty", "frequency_penalty"}};
    const json_t *o = fields_get(asked, "options");
    int64_t n = 0;
    if (o && !json_is_object(o)) return api_error_bad(e, "options", "\"options\" must be an object");
    int rc = fields_int(o, "num_predict", -2, INT64_MAX, &n, e);
    if (rc == 0) rc = fields_put(body, "sampling_defaults", json_string("ollama"), e);
    if (rc == 0) rc = fields_rename(body, o, NAMES, sizeof NAMES / sizeof *NAMES, e);
    return rc == 0 && n < 0 ? fields_put(body, "max_tokens", json_integer(-1), e) : rc;
}

static int put_format(json_t *body, const json_t *asked, api_error *e)
{
    const json_t *f = fields_get(asked, "format");
    const char *word = fields_text(f);
    json_t *ours = NULL;
    if (!f || (word && !*word)) return 0;
    if (word && strcmp(word, "json") == 0)
        ours = json_pack("{s:s}", "type", "json_object");
    else if (json_is_object(f))
        ours = json_pack("{s:s,s:{s:s,s:b,s:O}}", "type", "json_schema", "json_schema", "name", "answer",
                         "strict", 1, "schema", f);
    else
        return api_error_bad(e, "format", "\"format\" must be \"json\" or a JSON schema");
    return fields_put(body, "response_format", ours, e);
}

/* ---- templates ----------------------------------------------------------------------------------- */

static int put_kwarg(json_t *body, const char *key, json_t *v, api_error *e)
{
    static const char ALL[] = "chat_template_kwargs";
    int rc = json_object_get(body, ALL) ? 0 : fields_put(body, ALL, json_object(), e);
    if (rc == 0) return fields_put(json_object_get(body, ALL), key, v, e);
    json_decref(v);
    return rc;
}

/* A template of Ollama, as one that /v1/chat/completions takes. */
static int put_template(ollama_ask *a, json_t *body, const char *source, api_error *e)
{
    buf jinja = {0};
    shoal_err err;
    int rc = gotemplate_to_jinja(&jinja, source, strlen(source), &a->uses, &err);
    a->has_template = rc == 0;
    if (rc == 0)
        rc = fields_put(body, "chat_template", json_stringn(jinja.data, jinja.len), e);
    else
        rc = rc == SHOAL_ENOMEM ? api_error_nomem(e)
                                : api_error_bad(e, "template", "\"template\": %s", err.message);
    buf_done(&jinja);
    return rc;
}

/* true, false, or how hard. */
static int put_think(ollama_ask *a, json_t *body, const json_t *asked, api_error *e)
{
    const json_t *think = fields_get(asked, "think");
    if (!think) return 0;
    a->thinks = !json_is_false(think);
    if (json_is_boolean(think)) return put_kwarg(body, "enable_thinking", json_incref((json_t *)think), e);
    return fields_put(body, "reasoning_effort", json_incref((json_t *)think), e);
}

/* ---- messages ------------------------------------------------------------------------------------ */

/* Ollama's calls have no ids; ours are named by their place: a message, and a call in it. */
static json_t *call_id(size_t message, size_t call)
{
    char id[48];
    snprintf(id, sizeof id, "call_%zu_%zu", message, call);
    return json_string(id);
}

static json_t *arguments_text(const json_t *v)
{
    buf text = {0};
    if (json_is_string(v)) return json_incref((json_t *)v);
    if (!v) return json_string("{}");
    json_put(&text, v);
    json_t *s = text.failed ? NULL : json_stringn(text.data, text.len);
    buf_done(&text);
    return s;
}

static json_t *our_call(const json_t *call, size_t message, size_t i)
{
    const json_t *f = json_object_get(call, "function");
    return json_pack("{s:o, s:s, s:{s:O*, s:o}}", "id", call_id(message, i), "type", "function", "function",
                     "name", fields_get(f, "name"), "arguments", arguments_text(fields_get(f, "arguments")));
}

static json_t *our_calls(const json_t *calls, size_t message)
{
    json_t *all = json_array(), *call;
    size_t i;
    if (!all) return NULL;
    json_array_foreach(calls, i, call)
    {
        if (json_array_append_new(all, our_call(call, message, i)) == 0) continue;
        json_decref(all);
        return NULL;
    }
    return all;
}

/* The call that a tool's message answers is the next one without an answer. */
typedef struct awaited {
    size_t message, n_calls, n_answered;
} awaited;

static int fill_message(json_t *ours, const json_t *m, size_t i, awaited *last, api_error *e)
{
    static const fields_name ROLE[] = {{"role", "role"}}, THOUGHT[] = {{"thinking", "reasoning_content"}};
    const json_t *calls = fields_get(m, "tool_calls");
    const char *role = fields_text(json_object_get(m, "role"));
    int rc = fields_rename(ours, m, ROLE, 1, e);
    if (rc == 0) rc = fields_put(ours, "content", ollama_text_of(fields_get(m, "content")), e);
    if (rc == 0) rc = fields_rename(ours, m, THOUGHT, 1, e);
    if (rc == 0 && json_is_array(calls) && json_array_size(calls) > 0) {
        *last = (awaited){.message = i, .n_calls = json_array_size(calls)};
        rc = fields_put(ours, "tool_calls", our_calls(calls, i), e);
    }
    if (rc == 0 && role && strcmp(role, "tool") == 0)
        rc = fields_put(ours, "tool_call_id", call_id(last->message, last->n_answered++), e);
    return rc;
}

static int put_messages(ollama_ask *a, json_t *body, const json_t *asked, api_error *e)
{
    const json_t *theirs = fields_get(asked, "messages");
    json_t *all = json_array(), *m;
    awaited last = {0};
    size_t i;
    int rc = fields_put(body, "messages", all, e);
    if (rc != 0) return rc;
    if (theirs && !json_is_array(theirs))
        return api_error_bad(e, "messages", "\"messages\" must be a list of messages");
    a->loads = json_array_size(theirs) == 0;
    json_array_foreach(theirs, i, m)
    {
        if (!json_is_object(m)) return api_error_bad(e, "messages", "messages[%zu] must be an object", i);
        if (refuse_pictures(m, e) != 0) return e->status;
        json_t *ours = json_object();
        rc = fields_append(all, ours, e);
        if (rc == 0) rc = fill_message(ours, m, i, &last, e);
        if (rc != 0) return rc;
    }
    return rc;
}

/* A prompt is a conversation of one request; a raw one, or one to be filled in, is a completion. */
static int put_prompt(ollama_ask *a, json_t *body, const json_t *asked, api_error *e)
{
    const char *system = NULL, *prompt = "", *suffix = "";
    bool raw = false;
    int rc = fields_str(asked, "prompt", &prompt, e);
    if (rc == 0) rc = fields_str(asked, "system", &system, e);
    if (rc == 0) rc = fields_str(asked, "suffix", &suffix, e);
    if (rc == 0) rc = fields_bool(asked, "raw", &raw, e);
    if (rc == 0) rc = refuse_pictures(asked, e);
    if (rc != 0) return rc;
    if (*suffix && raw)
        return api_error_bad(e, "suffix", "\"suffix\" needs a template, which \"raw\": true leaves out");
    a->loads = !*prompt && !(system && *system);
    if (raw) {
        a->path = "/v1/completions";
        return fields_put(body, "prompt", json_string(prompt), e);
    }
    json_t *messages = json_array();
    rc = fields_put(body, "messages", messages, e);
    if (rc == 0 && system && *system)
        rc = fields_append(messages, json_pack("{s:s,s:s}", "role", "system", "content", system), e);
    if (rc == 0) rc = fields_append(messages, json_pack("{s:s,s:s}", "role", "user", "content", prompt), e);
    a->inserts = *suffix;
    return rc == 0 && a->inserts ? put_kwarg(body, "suffix", json_string(suffix), e) : rc;
}

/* A chat takes both as they are; a completion takes one number. */
static int put_logprobs(const ollama_ask *a, json_t *body, const json_t *asked, api_error *e)
{
    bool wanted = false;
    int64_t n_top = 0;
    int rc = fields_bool(asked, "logprobs", &wanted, e);
    if (rc == 0) rc = fields_int(asked, "top_logprobs", 0, 20, &n_top, e);
    if (rc == 0 && n_top > 0 && !wanted)
        rc = api_error_bad(e, "top_logprobs", "\"top_logprobs\" needs \"logprobs\": true");
    if (rc != 0 || !wanted) return rc;
    bool is_chat = strcmp(a->path, "/v1/chat/completions") == 0;
    rc = fields_put(body, "logprobs", is_chat ? json_true() : json_integer(n_top), e);
    return rc == 0 && is_chat && n_top > 0 ? fields_put(body, "top_logprobs", json_integer(n_top), e) : rc;
}

/* A chat drops its oldest messages unless it says "truncate": false. A prompt is never cut, and no reply goes on
 * behind the end of the context by forgetting its beginning ("shift"). */
static int read_truncation(ollama_ask *a, const json_t *asked, api_error *e)
{
    bool cut = a->kind == OLLAMA_CHAT, shift = false;
    int rc = fields_bool(asked, "truncate", &cut, e);
    if (rc == 0) rc = fields_bool(asked, "shift", &shift, e);
    if (rc != 0) return rc;
    if (cut && a->kind != OLLAMA_CHAT)
        return api_error_bad(
            e, "truncate",
            "\"truncate\": true is not offered for a prompt: send one that fits the context, "
            "or the conversation's messages to /api/chat");
    if (shift)
        return api_error_bad(e, "shift",
                             "\"shift\": true is not offered: a reply ends where the context is full");
    a->truncates = cut;
    return 0;
}

/* A template for this prompt alone. */
static int read_template(ollama_ask *a, json_t *body, const json_t *asked, api_error *e)
{
    const char *source = NULL;
    int rc = fields_str(asked, "template", &source, e);
    if (rc != 0 || !source || !*source) return rc;
    if (a->kind == OLLAMA_CHAT)
        return api_error_bad(e, "template", "\"template\" is a field of /api/generate and /api/create");
    if (!json_object_get(body, "messages"))
        return api_error_bad(e, "template", "\"template\" and \"raw\": true do not go together");
    return put_template(a, body, source, e);
}

/* What would change the answer and is not offered. */
static int refuse_others(const json_t *asked, api_error *e)
{
    const json_t *context = fields_get(asked, "context");
    if (context && !(json_is_array(context) && json_array_size(context) == 0))
        return api_error_bad(e, "context",
                             "\"context\" is not offered: send the conversation's messages to /api/chat");
    return 0;
}

/* ---- whole requests ------------------------------------------------------------------------------ */

static int read_generation(ollama_ask *a, json_t *body, const json_t *asked, api_error *e)
{
    static const fields_name TOOLS[] = {{"tools", "tools"}};
    a->stream = true;
    a->path = "/v1/chat/completions";
    int rc = fields_bool(asked, "stream", &a->stream, e);
    if (rc == 0)
        rc = a->kind == OLLAMA_CHAT ? put_messages(a, body, asked, e) : put_prompt(a, body, asked, e);
    if (rc == 0) rc = refuse_others(asked, e);
    if (rc == 0) rc = read_template(a, body, asked, e);
    if (rc == 0) rc = read_truncation(a, asked, e);
    if (rc == 0) rc = put_logprobs(a, body, asked, e);
    if (rc == 0) rc = put_options(body, asked, e);
    if (rc == 0) rc = put_format(body, asked, e);
    if (rc == 0) rc = put_think(a, body, asked, e);
    if (rc == 0) rc = fields_rename(body, asked, TOOLS, 1, e);
    if (rc == 0) rc = fields_put(body, "stream", json_true(), e);
    return rc ? rc : fields_put(body, "stream_options", json_pack("{s:b}", "include_usage", 1), e);
}

static const char *role_of(const json_t *messages, size_t i)
{
    return json_text_of(json_array_get(messages, i), "role");
}

static bool is_instruction(const json_t *messages, size_t i)
{
    return strcmp(role_of(messages, i), "system") == 0 || strcmp(role_of(messages, i), "developer") == 0;
}

/* Where the shortened conversation may begin, at or behind `from`, its last message at the latest: with a user's
 * message, as templates that demand turns want it, else not with a tool's result, whose call would be gone.
 * 0: nowhere. */
static size_t find_beginning(const json_t *messages, size_t from)
{
    size_t n = json_array_size(messages);
    for (size_t i = from; i < n; i++)
        if (strcmp(role_of(messages, i), "user") == 0) return i;
    for (size_t i = from; i < n; i++)
        if (!is_instruction(messages, i) && strcmp(role_of(messages, i), "tool") != 0) return i;
    for (size_t i = from; --i > 0;)
        if (strcmp(role_of(messages, i), "assistant") == 0) return i;
    return 0;
}

/* A quarter at a time: a long conversation fits after a few tries, and most of it is kept. */
bool ollama_shorten(json_t *body)
{
    const json_t *messages = json_object_get(body, "messages");
    size_t n = json_array_size(messages), n_said = 0, n_gone = 0, from = 0;
    for (size_t i = 0; i < n; i++) n_said += !is_instruction(messages, i);
    if (n_said < 2) return false;
    for (; n_gone < (n_said + 3) / 4; from++) n_gone += !is_instruction(messages, from);
    size_t begin = find_beginning(messages, from);
    json_t *left = json_array(); /* the old array may be shared with the request that was refused */
    bool ok = left != NULL;
    for (size_t i = 0; ok && i < n; i++)
        if (i >= begin || is_instruction(messages, i))
            ok = json_array_append(left, json_array_get(messages, i)) == 0;
    ok = ok && json_array_size(left) < n && json_object_set(body, "messages", left) == 0;
    json_decref(left);
    return ok;
}

/* A completion has one number where a chat has two fields. */
static int put_text_logprobs(json_t *body)
{
    json_t *n = json_object_get(body, "top_logprobs");
    if (!json_object_get(body, "logprobs")) return 0;
    if (json_object_set_new(body, "logprobs", n ? json_incref(n) : json_integer(0)) != 0) return SHOAL_ENOMEM;
    json_object_del(body, "top_logprobs");
    return 0;
}

int ollama_use_text(ollama_ask *a, json_t *body)
{
    json_t *messages = json_object_get(body, "messages"), *m;
    buf text = {0};
    size_t i;
    if (a->kind != OLLAMA_GENERATE || !messages) return 0;
    json_array_foreach(messages, i, m)
    {
        if (i > 0) buf_puts(&text, "\n\n");
        buf_puts(&text, json_string_value(json_object_get(m, "content")));
    }
    json_t *prompt = text.failed ? NULL : json_stringn(buf_text(&text), text.len);
    int rc = json_object_set_new(body, "prompt", prompt) == 0 ? put_text_logprobs(body) : SHOAL_ENOMEM;
    buf_done(&text);
    if (rc != 0) return rc;
    json_object_del(body, "messages");
    json_object_del(body, "chat_template_kwargs");
    json_object_del(body, "reasoning_effort");
    a->path = "/v1/completions";
    return 0;
}

/* Ollama's clients send no token ids, which /v1/embeddings would take. */
static bool are_texts(const json_t *v)
{
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!json_is_string(json_array_get(v, i))) return false;
    return json_is_string(v) || json_is_array(v);
}

static int read_texts(ollama_ask *a, json_t *body, const json_t *asked, api_error *e)
{
    const char *field = a->kind == OLLAMA_EMBED ? "input" : "prompt";
    const fields_name NAMES[] = {{field, "input"}, {"dimensions", "dimensions"}};
    a->path = "/v1/embeddings";
    const json_t *v = fields_get(asked, field);
    bool cut = true; /* as Ollama has it; /v1/embeddings refuses what is too long */
    if (!v) return api_error_bad(e, field, "\"%s\" is missing", field);
    if (!are_texts(v)) return api_error_bad(e, field, "\"%s\" must be text or an array of texts", field);
    int rc = fields_bool(asked, "truncate", &cut, e);
    if (rc != 0) return rc;
    a->loads =
        (json_is_string(v) && json_string_length(v) == 0) || (json_is_array(v) && json_array_size(v) == 0);
    rc = fields_rename(body, asked, NAMES, sizeof NAMES / sizeof *NAMES, e);
    return rc == 0 ? fields_put(body, "truncate", json_boolean(cut), e) : rc;
}

/* "NAME:latest" is NAME. False: it is too long. */
static bool without_latest(char *ret, size_t cap, const char *name)
{
    size_t n = strlen(name), n_tag = strlen(":latest");
    if (n > n_tag && strcmp(name + n - n_tag, ":latest") == 0) n -= n_tag;
    if (n >= cap) return false;
    memcpy(ret, name, n);
    ret[n] = '\0';
    return true;
}

static int read_model(ollama_ask *a, const json_t *asked, api_error *e)
{
    const char *name = NULL, *old = NULL;
    int rc = fields_str(asked, "model", &name, e);
    if (rc == 0) rc = fields_str(asked, "name", &old, e);
    if (rc != 0) return rc;
    if (!name || !*name) name = old; /* the command of Ollama sends both, one of them empty */
    if (!name || !*name) return api_error_bad(e, "model", "\"model\" is missing");
    if (!without_latest(a->model, sizeof a->model, name)) return api_error_no_model(e, name);
    snprintf(a->shown, sizeof a->shown, "%s", name);
    return 0;
}

/* One number and its unit of a duration, in seconds; false: it is none. */
static bool read_part(const char **s, double *sum)
{
    static const struct {
        const char *name;
        double s;
    } UNITS[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    char *end;
    if (!isdigit((unsigned char)**s) && **s != '.') return false;
    double n = strtod(*s, &end);
    size_t len = strcspn(end, ".0123456789");
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++) {
        if (strlen(UNITS[i].name) != len || strncmp(end, UNITS[i].name, len) != 0) continue;
        *sum += n * UNITS[i].s;
        *s = end + len;
        return true;
    }
    return false;
}

/* Seconds as a number, or "5m", "1h30m", "300ms" (Go's durations); what is negative is for good. */
static int read_keep_alive(ollama_ask *a, const json_t *asked, api_error *e)
{
    const json_t *v = fields_get(asked, "keep_alive");
    const char *text = fields_text(v), *s = text;
    double sum = json_number_value(v);
    bool ok = !v || json_is_number(v) || (s && *s), negative = s && *s == '-';
    if (s && (*s == '-' || *s == '+')) s++;
    if (s && *s && s[strspn(s, "0123456789")] == '\0')
        sum = strtod(s, NULL);
    else
        while (ok && s && *s) ok = read_part(&s, &sum);
    if (!ok || (text && s == text + (negative ? 1 : 0) && !*s))
        return api_error_bad(e, "keep_alive", "\"keep_alive\" must be seconds, or a duration such as \"5m\"");
    if (!v) return 0;
    sum = ceil(negative ? -sum : sum);
    a->keep_alive_s = sum < 0 || sum > KEEP_ALIVE_MAX_S ? OLLAMA_FOR_GOOD : (int64_t)sum;
    return 0;
}

bool ollama_reference(const char *name, char *ret, size_t size)
{
    static const char *const HUBS[] = {"hf.co/", "huggingface.co/"};
    static const char *const OURS[] = {"hf:", "ollama:", "oci://", "https://", "http://"};
    const char *prefix = "ollama:";
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++)
        if (strncmp(name, OURS[i], strlen(OURS[i])) == 0) prefix = "";
    for (size_t i = 0; i < sizeof HUBS / sizeof *HUBS; i++) {
        size_t n = strlen(HUBS[i]);
        if (strncmp(name, HUBS[i], n) != 0) continue;
        prefix = "hf:";
        name += n;
        break;
    }
    int n = snprintf(ret, size, "%s%s", prefix, name);
    return n > 0 && (size_t)n < size;
}

int ollama_read(ollama_ask *ret, ollama_kind kind, const char *bytes, size_t n, json_t **ret_body,
                api_error *e)
{
    json_t *asked = NULL, *body = json_object();
    *ret = (ollama_ask){.kind = kind, .path = "/v1/models"};
    *ret_body = NULL;
    int rc = body ? fields_parse(&asked, bytes, n, e) : api_error_nomem(e);
    if (rc == 0) rc = read_model(ret, asked, e);
    ret->keep_alive_s = OLLAMA_NOT_SAID;
    if (rc == 0 && kind < OLLAMA_SHOW) rc = read_keep_alive(ret, asked, e);
    if (rc == 0 && kind == OLLAMA_PULL) ret->stream = true;
    if (rc == 0 && kind == OLLAMA_PULL) rc = fields_bool(asked, "stream", &ret->stream, e);
    if (rc == 0) rc = fields_put(body, "model", json_string(ret->model), e);
    if (rc == 0 && (kind == OLLAMA_CHAT || kind == OLLAMA_GENERATE))
        rc = read_generation(ret, body, asked, e);
    if (rc == 0 && (kind == OLLAMA_EMBED || kind == OLLAMA_EMBEDDINGS)) rc = read_texts(ret, body, asked, e);
    json_drop(asked);
    if (rc == 0 && kind < OLLAMA_SHOW)
        *ret_body = body;
    else
        json_decref(body);
    return rc;
}

/* ---- models that are made of others ---------------------------------------------------------------------- */

static int read_name(char *ret, size_t cap, const json_t *asked, const char *key, api_error *e)
{
    const char *s = NULL;
    int rc = fields_str(asked, key, &s, e);
    if (rc != 0) return rc;
    if (!s || !*s) return api_error_bad(e, key, "\"%s\" is missing", key);
    return without_latest(ret, cap, s) ? 0 : api_error_bad(e, key, "\"%s\" is too long", key);
}

int ollama_read_copy(ollama_making *ret, const char *bytes, size_t n, api_error *e)
{
    json_t *asked = NULL;
    *ret = (ollama_making){0};
    int rc = fields_parse(&asked, bytes, n, e);
    if (rc == 0) rc = read_name(ret->from, sizeof ret->from, asked, "source", e);
    if (rc == 0) rc = read_name(ret->name, sizeof ret->name, asked, "destination", e);
    json_drop(asked);
    return rc;
}

bool ollama_read_digest(char ret[65], const char *digest)
{
    uint8_t bytes[32];
    size_t n = strlen("sha256:");
    if (!digest || strncmp(digest, "sha256:", n) != 0 ||
        !hex_decode(digest + n, strlen(digest + n), bytes, 32))
        return false;
    for (size_t i = 0; i <= 64; i++) ret[i] = (char)tolower((unsigned char)digest[n + i]);
    return true;
}

/* "files": one file, whose digest says which model of this server it is. */
static int read_file(ollama_making *m, const json_t *asked, api_error *e)
{
    const json_t *files = fields_get(asked, "files");
    if (!files || (json_is_object(files) && json_object_size(files) == 0)) return 0;
    if (!json_is_object(files) || json_object_size(files) > 1)
        return api_error_bad(e, "files", "\"files\" must be an object of one GGUF file and its digest");
    const json_t *digest = json_object_iter_value(json_object_iter((json_t *)files));
    if (ollama_read_digest(m->sha256, fields_text(digest))) return 0;
    return api_error_bad(e, "files", "\"files\": a digest is \"sha256:\" and 64 hexadecimal digits");
}

/* What would take another file, or another program. */
static int refuse_files(const json_t *asked, api_error *e)
{
    static const char *const KEYS[] = {"adapters", "quantize", "modelfile", "path"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const json_t *v = fields_get(asked, KEYS[i]);
        if (!v || (json_is_string(v) && !json_string_length(v)) ||
            (json_is_object(v) && !json_object_size(v)))
            continue;
        return api_error_bad(
            e, KEYS[i],
            "\"%s\" is not offered: a model is made \"from\" one that is here; \"shoal load\" "
            "loads a file, with --adapter if need be, and \"shoal quantize\" writes a smaller one",
            KEYS[i]);
    }
    return 0;
}

/* As a chat with these would: what is refused now is not kept. */
static int check_made(const json_t *made, api_error *e)
{
    json_t *asked = json_pack("{s:O}", "options", json_object_get(made, "parameters"));
    json_t *body =
        json_pack("{s:s, s:[{s:s, s:s}]}", "model", "a", "messages", "role", "user", "content", "a");
    const json_t *before = json_object_get(made, "messages");
    buf text = {0};
    gen_spec *spec = NULL;
    int rc = asked && body ? put_options(body, asked, e) : api_error_nomem(e);
    if (rc == 0 && before && json_array_extend(json_object_get(body, "messages"), (json_t *)before) != 0)
        rc = api_error_nomem(e);
    if (rc == 0 && json_put(&text, body) != 0) rc = api_error_nomem(e);
    if (rc == 0) rc = openai_spec_parse_chat(&spec, text.data, text.len, e);
    openai_spec_free(spec);
    buf_done(&text);
    json_decref(body);
    json_decref(asked);
    return rc;
}

static int read_made(ollama_making *m, json_t *made, const json_t *asked, api_error *e)
{
    static const fields_name SYSTEM[] = {{"system", "system"}}, TEMPLATE[] = {{"template", "template"}};
    const json_t *parameters = fields_get(asked, "parameters"), *messages = fields_get(asked, "messages");
    const char *system = NULL, *template = NULL;
    ollama_ask a = {0};
    json_t *checked = json_object();
    m->stream = true;
    int rc = checked ? fields_bool(asked, "stream", &m->stream, e) : api_error_nomem(e);
    if (rc == 0) rc = fields_str(asked, "system", &system, e);
    if (rc == 0) rc = fields_str(asked, "template", &template, e);
    if (rc == 0) rc = refuse_files(asked, e);
    if (rc == 0 && parameters && !json_is_object(parameters))
        rc = api_error_bad(e, "parameters", "\"parameters\" must be an object");
    if (rc == 0)
        rc =
            fields_put(made, "parameters", parameters ? json_incref((json_t *)parameters) : json_object(), e);
    if (rc == 0 && system && *system) rc = fields_rename(made, asked, SYSTEM, 1, e);
    if (rc == 0 && template && *template) rc = fields_rename(made, asked, TEMPLATE, 1, e);
    if (rc == 0 && template && *template) rc = put_template(&a, checked, template, e);
    if (rc == 0) rc = put_messages(&a, checked, asked, e);
    if (rc == 0 && json_array_size(messages) > 0)
        rc = fields_put(made, "messages", json_incref(json_object_get(checked, "messages")), e);
    json_decref(checked);
    return rc ? rc : check_made(made, e);
}

int ollama_read_create(ollama_making *ret, const char *bytes, size_t n, json_t **ret_made, api_error *e)
{
    json_t *asked = NULL, *made = json_object();
    *ret = (ollama_making){0};
    *ret_made = NULL;
    int rc = made ? fields_parse(&asked, bytes, n, e) : api_error_nomem(e);
    const char *model = NULL, *old = NULL;
    if (rc == 0) rc = fields_str(asked, "model", &model, e);
    if (rc == 0) rc = fields_str(asked, "name", &old, e);
    bool named = old && *old && !(model && *model);
    if (rc == 0) rc = read_name(ret->name, sizeof ret->name, asked, named ? "name" : "model", e);
    if (rc == 0) rc = refuse_files(asked, e);
    if (rc == 0) rc = read_file(ret, asked, e);
    if (rc == 0 && !*ret->sha256) rc = read_name(ret->from, sizeof ret->from, asked, "from", e);
    if (rc == 0) rc = read_made(ret, made, asked, e);
    json_t *own = rc == 0 ? json_deep_copy(made) : NULL; /* the request's memory goes with it */
    if (rc == 0 && !own) rc = api_error_nomem(e);
    json_decref(made);
    json_drop(asked);
    *ret_made = own;
    return rc;
}

/* Put the system message, if there is none, and the messages that go before those of the request. */
static int fill_messages(json_t *body, const json_t *made)
{
    const json_t *theirs = json_object_get(body, "messages"), *before = json_object_get(made, "messages");
    const char *system = json_string_value(json_object_get(made, "system"));
    if (!theirs || (!system && !before)) return 0;
    bool instructed = is_instruction(theirs, 0);
    json_t *all = json_array();
    bool ok = all != NULL;
    if (ok && instructed)
        ok = json_array_append(all, json_array_get(theirs, 0)) == 0;
    else if (ok && system)
        ok = json_array_append_new(all, json_pack("{s:s, s:s}", "role", "system", "content", system)) == 0;
    if (ok && before) ok = json_array_extend(all, (json_t *)before) == 0;
    for (size_t i = instructed; ok && i < json_array_size(theirs); i++)
        ok = json_array_append(all, json_array_get(theirs, i)) == 0;
    ok = ok && json_object_set(body, "messages", all) == 0;
    json_decref(all);
    return ok ? 0 : SHOAL_ENOMEM;
}

/* What the request gives as null it leaves out. */
static bool fill_missing(json_t *body, const json_t *said)
{
    const char *key;
    json_t *v;
    bool ok = true;
    json_object_foreach((json_t *)said, key, v)
    {
        if (!fields_get(body, key)) ok = ok && json_object_set(body, key, v) == 0;
    }
    return ok;
}

int ollama_fill_in(json_t *body, const json_t *made)
{
    json_t *asked = json_pack("{s:O*}", "options", json_object_get(made, "parameters")),
           *said = json_object();
    api_error e;
    bool ok = asked && said && put_options(said, asked, &e) == 0;
    if (ok) json_object_del(said, "sampling_defaults"); /* each API has its own */
    if (ok && fields_get(body, "max_completion_tokens")) json_object_del(said, "max_tokens");
    ok = ok && fill_missing(body, said);
    json_decref(asked);
    json_decref(said);
    return ok ? fill_messages(body, made) : SHOAL_ENOMEM;
}

int ollama_fill_template(ollama_ask *a, json_t *body, const json_t *made, api_error *e)
{
    const char *template = json_string_value(json_object_get(made, "template"));
    ollama_ask nobody;
    bool fits = template && json_object_get(body, "messages") && !fields_get(body, "chat_template");
    return fits ? put_template(a ? a : &nobody, body, template, e) : 0;
}

/* llama-server's names are Ollama's but for one; what neither knows has no effect there. */
int ollama_fill_in_llama(json_t *body, const json_t *made)
{
    const json_t *parameters = json_object_get(made, "parameters");
    json_t *said = parameters ? json_copy((json_t *)parameters) : json_object();
    const json_t *most = json_object_get(said, "num_predict");
    bool ok = said && (!most || json_object_set(said, "n_predict", (json_t *)most) == 0);
    if (fields_get(body, "max_tokens")) json_object_del(said, "n_predict");
    ok = ok && fill_missing(body, said);
    json_decref(said);
    return ok ? 0 : SHOAL_ENOMEM;
}
