/* openai.c: bodies of chat and text completions as gen_specs, their model calls and their cache keys; see
 * openai.h. Messages, tools and reply formats of chat are openai_chat.c's, the ranges json/sampling.h's. */
#include "dialects/openai.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "base/number.h"
#include "json/sampling.h"
#include "base/sha256.h"
#include "messages/fields.h"
#include "dialects/openai_chat.h"
#include "cache/cache_key.h"

#define COMPLETION_MAX_TOKENS 16 /* OpenAI's default for /v1/completions */
#define LOGPROBS_MAX          20 /* OpenAI's of chat, and vLLM's of completions; OpenAI's of those is 5 */

void openai_spec_free(gen_spec *s)
{
    if (!s) return;
    json_drop(s->root);
    json_drop(s->messages);
    json_drop(s->tools);
    arena_free(s->mem); /* s lives in it */
}

/* Without "model" the only one with the task is meant. */
static int spec_new(gen_spec **ret, const char *body, size_t len, api_error *e)
{
    arena *mem = arena_new(0);
    gen_spec *s = mem ? arena_alloc(mem, sizeof *s) : NULL;
    if (!s) {
        arena_free(mem);
        return api_error_nomem(e);
    }
    s->mem = mem;
    s->n = s->n_prompts = 1;
    s->sampling = (Shoal__V1__Sampling)SHOAL__V1__SAMPLING__INIT;
    s->constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__NONE;
    int rc = fields_parse(&s->root, body, len, e);
    if (rc == 0) rc = fields_str(s->root, "model", &s->model, e);
    if (rc == 0 && s->model && !*s->model) rc = api_error_bad(e, "model", "\"model\" must name a model");
    if (rc == 0)
        *ret = s;
    else
        openai_spec_free(s);
    return rc;
}

/* ---- what both endpoints share ------------------------------------------------------------------- */

static int read_stop(gen_spec *s, api_error *e)
{
    const json_t *v = fields_get(s->root, "stop");
    if (!v) return 0;
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    if (n > GEN_STOP_MAX)
        return api_error_bad(e, "stop", "\"stop\" has %zu strings, at most %d are taken", n, GEN_STOP_MAX);
    s->stop = arena_alloc(s->mem, (n + 1) * sizeof *s->stop);
    if (!s->stop) return api_error_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const char *text = fields_text(json_is_array(v) ? json_array_get(v, i) : v);
        if (!text || !*text)
            return api_error_bad(e, "stop", "\"stop\" must be a string or strings, none of them empty");
        s->stop[s->n_stop++] = (char *)text;
    }
    return 0;
}

static int read_max_tokens(gen_spec *s, uint32_t when_absent, api_error *e)
{
    int64_t n = when_absent;
    int rc = s->texts ? 0 : fields_int(s->root, "n_predict", -1, INT64_MAX, &n, e); /* llama-server's name */
    if (rc == 0) rc = fields_int(s->root, "max_tokens", -1, INT64_MAX, &n, e);
    if (rc == 0 && s->chat) rc = fields_int(s->root, "max_completion_tokens", -1, INT64_MAX, &n, e);
    /* -1 and 0 mean what nothing means, and so does what no context holds: the engine ends there. */
    s->max_tokens = n < 0 || n > UINT32_MAX ? 0 : (uint32_t)n;
    return rc;
}

/* A form of the reply says itself where it ends. */
static int read_min_tokens(gen_spec *s, api_error *e)
{
    int64_t n = 0;
    int rc = fields_int(s->root, "min_tokens", 0, UINT32_MAX, &n, e);
    if (rc != 0 || n == 0) return rc;
    if (s->max_tokens && n > s->max_tokens)
        return api_error_bad(e, "min_tokens", "\"min_tokens\" is %lld, and \"max_tokens\" only %u",
                             (long long)n, s->max_tokens);
    if (s->constraint != SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__NONE)
        return api_error_bad(e, "min_tokens",
                             "\"min_tokens\" does not go with a form of the reply: leave one of them out");
    s->min_tokens = (uint32_t)n;
    return 0;
}

static int read_common(gen_spec *s, api_error *e)
{
    int64_t n = 1;
    int rc = fields_int(s->root, "n", INT64_MIN, INT64_MAX, &n, e);
    if (rc == 0 && n < 1)
        rc = api_error_bad(e, "n", "\"n\" is %lld, must be between 1 and %d", (long long)n, GEN_N_MAX);
    if (rc == 0 && n > GEN_N_MAX)
        rc = api_error_bad(
            e, "n", "\"n\" is %lld: at most %d choices of one prompt are made at once; send more requests",
            (long long)n, GEN_N_MAX);
    if (rc == 0) rc = fields_bool(s->root, "stream", &s->stream, e);
    if (rc == 0) rc = fields_bool(s->root, "ignore_eos", &s->ignore_eos, e);
    if (rc != 0) return rc;
    s->n = (size_t)n;
    const json_t *o = fields_get(s->root, "stream_options");
    if (o && !json_is_object(o))
        return api_error_bad(e, "stream_options", "\"stream_options\" must be an object");
    if (o) rc = fields_bool(o, "include_usage", &s->include_usage, e);
    if (rc == 0 && o && !s->texts) rc = fields_bool(o, "continuous_usage_stats", &s->usage_stats, e);
    if (rc == 0 && !s->texts) rc = fields_bool(s->root, "return_tokens_as_token_ids", &s->token_ids, e);
    if (rc == 0 && !s->texts) rc = read_min_tokens(s, e);
    if (rc == 0) rc = read_stop(s, e);
    return rc == 0 ? openai_read_sampling(s, e) : rc;
}

/* ---- chat ---------------------------------------------------------------------------------------- */

static int read_chat_logprobs(gen_spec *s, api_error *e)
{
    int64_t top = 0;
    int rc = fields_bool(s->root, "logprobs", &s->logprobs, e);
    if (rc == 0) rc = fields_int(s->root, "top_logprobs", 0, LOGPROBS_MAX, &top, e);
    if (rc == 0 && top > 0 && !s->logprobs)
        rc = api_error_bad(e, "top_logprobs", "\"top_logprobs\" needs \"logprobs\": true");
    s->n_top = (unsigned)top;
    return rc;
}

int openai_spec_parse_chat(gen_spec **ret, const char *body, size_t len, api_error *e)
{
    gen_spec *s = NULL;
    int rc = spec_new(&s, body, len, e);
    if (rc != 0) return rc;
    s->chat = true;
    s->parse_tool_calls = true;
    rc = openai_map_functions(s, e);
    if (rc == 0) rc = openai_read_messages(s, e);
    if (rc == 0) rc = openai_read_tools(s, e);
    if (rc == 0) rc = openai_read_template(s, e);
    if (rc == 0) rc = openai_read_format(s, e);
    if (rc == 0) rc = openai_read_modalities(s, e);
    if (rc == 0) rc = read_max_tokens(s, 0, e);
    if (rc == 0) rc = read_chat_logprobs(s, e);
    if (rc == 0) rc = read_common(s, e);
    if (rc == 0) rc = openai_refuse_foreign(s, e);
    if (rc == 0)
        *ret = s;
    else
        openai_spec_free(s);
    return rc;
}

/* ---- completions --------------------------------------------------------------------------------- */

static int read_ids(gen_spec *s, const json_t *v, gen_prompt *ret, api_error *e)
{
    size_t n = json_array_size(v);
    ret->ids = arena_alloc(s->mem, (n + 1) * sizeof *ret->ids);
    if (!ret->ids) return api_error_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(v, i);
        json_int_t x = json_integer_value(id);
        if (!json_is_integer(id) || x < 0 || x > INT32_MAX)
            return api_error_bad(e, "prompt", "\"prompt\": token ids must be integers from 0 to 2147483647");
        ret->ids[ret->n_ids++] = (int32_t)x;
    }
    return n > 0 ? 0 : api_error_bad(e, "prompt", "\"prompt\" must not be empty");
}

static int read_prompt(gen_spec *s, const json_t *v, gen_prompt *ret, api_error *e)
{
    if (json_is_array(v)) return read_ids(s, v, ret, e);
    ret->text = fields_text(v);
    if (!ret->text || !*ret->text)
        return api_error_bad(e, "prompt",
                             "\"prompt\" must be text, token ids, or an array of these; none of them empty "
                             "and without NUL characters");
    return 0;
}

static int read_prompts(gen_spec *s, api_error *e)
{
    const json_t *v = fields_get(s->root, "prompt");
    bool many = json_is_array(v) && !json_is_integer(json_array_get(v, 0));
    s->n_prompts = many ? json_array_size(v) : 1;
    if (s->n_prompts == 0 || s->n_prompts > GEN_PROMPTS_MAX)
        return api_error_bad(e, "prompt", "\"prompt\" has %zu entries, must be 1 to %d", s->n_prompts,
                             GEN_PROMPTS_MAX);
    s->prompts = arena_alloc(s->mem, s->n_prompts * sizeof *s->prompts);
    if (!s->prompts) return api_error_nomem(e);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n_prompts; i++)
        rc = read_prompt(s, many ? json_array_get(v, i) : v, &s->prompts[i], e);
    return rc;
}

static int read_completion_logprobs(gen_spec *s, api_error *e)
{
    int64_t top = -1;
    int rc = fields_int(s->root, "logprobs", 0, LOGPROBS_MAX, &top, e);
    s->logprobs = top >= 0;
    s->n_top = top > 0 ? (unsigned)top : 0;
    return rc;
}

/* With the prompt given back, no token means none. */
static int read_echo(gen_spec *s, api_error *e)
{
    int rc = fields_bool(s->root, "echo", &s->echo, e);
    const json_t *most = fields_get(s->root, "max_tokens");
    s->only_prompt = s->echo && json_is_integer(most) && json_integer_value(most) == 0;
    return rc;
}

/* Parameters of the OpenAI form that are not served: better a no than an answer that ignores them. */
static int refuse_unserved(gen_spec *s, api_error *e)
{
    int64_t best_of = 1;
    int rc = fields_int(s->root, "best_of", 1, GEN_CHOICES_MAX, &best_of, e);
    if (rc == 0 && best_of != 1 && (size_t)best_of != s->n)
        rc = api_error_bad(e, "best_of", "\"best_of\" is not served: ask for \"n\" choices instead");
    const char *suffix = "";
    if (rc == 0) rc = fields_str(s->root, "suffix", &suffix, e);
    if (rc == 0 && *suffix)
        rc = api_error_bad(e, "suffix", "\"suffix\" is not served: these models write on from a prompt");
    return rc;
}

int openai_spec_parse_completion(gen_spec **ret, const char *body, size_t len, api_error *e)
{
    gen_spec *s = NULL;
    int rc = spec_new(&s, body, len, e);
    if (rc != 0) return rc;
    rc = read_prompts(s, e);
    if (rc == 0) rc = read_max_tokens(s, COMPLETION_MAX_TOKENS, e);
    if (rc == 0) rc = read_completion_logprobs(s, e);
    if (rc == 0) rc = openai_read_format(s, e);
    if (rc == 0) rc = read_echo(s, e);
    if (rc == 0) rc = read_common(s, e);
    if (rc == 0) rc = refuse_unserved(s, e);
    if (rc == 0) rc = openai_refuse_foreign(s, e);
    if (rc == 0 && openai_spec_choices(s) > GEN_CHOICES_MAX)
        rc = api_error_bad(e, "n", "prompts times \"n\" is %zu, at most %d are taken", openai_spec_choices(s),
                           GEN_CHOICES_MAX);
    if (rc == 0)
        *ret = s;
    else
        openai_spec_free(s);
    return rc;
}

/* ---- texts from texts ---------------------------------------------------------------------------- */

static int read_beams(gen_spec *s, api_error *e)
{
    int64_t n = 1;
    s->length_penalty = 1;
    int rc = fields_int(s->root, "num_beams", 1, 10, &n, e);
    if (rc == 0) rc = fields_num(s->root, "length_penalty", -10, 10, &s->length_penalty, e);
    if (rc == 0) rc = fields_bool(s->root, "early_stopping", &s->early_stopping, e);
    s->n_beams = (uint32_t)n;
    return rc;
}

/* One text of "input", behind the words that tell the model what to do with it ("summarize: "). */
static int openai_read_text(gen_spec *s, const json_t *v, const char *prefix, gen_prompt *ret, api_error *e)
{
    const char *text = fields_text(v);
    if (!text || !*text)
        return api_error_bad(e, "input",
                             "\"input\" must be text or texts without NUL characters, none empty");
    ret->text = *prefix ? arena_printf(s->mem, "%s%s", prefix, text) : text;
    return ret->text ? 0 : api_error_nomem(e);
}

static int read_texts(gen_spec *s, api_error *e)
{
    const char *prefix = "";
    const json_t *v = fields_get(s->root, "input");
    int rc = fields_str(s->root, "prefix", &prefix, e);
    if (rc != 0) return rc;
    bool many = json_is_array(v);
    s->n_prompts = many ? json_array_size(v) : 1;
    if (s->n_prompts == 0 || s->n_prompts > GEN_PROMPTS_MAX)
        return api_error_bad(e, "input", "\"input\" has %zu texts, must be 1 to %d", s->n_prompts,
                             GEN_PROMPTS_MAX);
    s->prompts = arena_alloc(s->mem, s->n_prompts * sizeof *s->prompts);
    if (!s->prompts) return api_error_nomem(e);
    for (size_t i = 0; rc == 0 && i < s->n_prompts; i++)
        rc = openai_read_text(s, many ? json_array_get(v, i) : v, prefix, &s->prompts[i], e);
    return rc;
}

int openai_spec_parse_texts(gen_spec **ret, const char *object, const char *body, size_t len, api_error *e)
{
    gen_spec *s = NULL;
    int rc = spec_new(&s, body, len, e);
    if (rc != 0) return rc;
    s->texts = object;
    rc = read_texts(s, e);
    if (rc == 0) rc = read_max_tokens(s, 0, e);
    if (rc == 0) rc = read_beams(s, e);
    if (rc == 0) rc = read_common(s, e);
    if (rc == 0 && s->n != 1)
        rc = api_error_bad(e, "n", "\"n\" is not served here: each text has one answer");
    if (rc == 0)
        *ret = s;
    else
        openai_spec_free(s);
    return rc;
}

/* ---- use ----------------------------------------------------------------------------------------- */

size_t openai_spec_choices(const gen_spec *s)
{
    return s->n_prompts * s->n;
}

bool openai_spec_is_deterministic(const gen_spec *s)
{
    return s->sampling.temperature == 0 || s->has_seed;
}

void openai_spec_fill(const gen_spec *s, size_t k, Shoal__V1__GenerateRequest *ret,
                      Shoal__V1__Sampling *sampling)
{
    Shoal__V1__GenerateRequest r = SHOAL__V1__GENERATE_REQUEST__INIT;
    *sampling = s->sampling;
    sampling->seed = sampling_seed(s->sampling.seed, (uint32_t)(k / s->n), (uint32_t)(k % s->n));
    if (s->messages_json) r.messages_json = (char *)s->messages_json;
    if (s->tools_json) r.tools_json = (char *)s->tools_json;
    if (s->chat_template) r.chat_template = (char *)s->chat_template;
    if (s->template_kwargs_json) r.template_kwargs_json = (char *)s->template_kwargs_json;
    if (s->prompts) {
        const gen_prompt *p = &s->prompts[k / s->n];
        if (p->text) r.text = (char *)p->text;
        r.ids = p->ids;
        r.n_ids = p->n_ids;
    }
    r.max_tokens = s->max_tokens;
    r.min_tokens = s->min_tokens;
    r.n_beams = s->n_beams;
    r.length_penalty = s->length_penalty;
    r.early_stopping = s->early_stopping;
    r.sampling = sampling;
    r.stop = s->stop;
    r.n_stop = s->n_stop;
    r.ignore_eos = s->ignore_eos;
    r.logprobs = s->logprobs;
    r.n_top = s->n_top;
    r.constraint = s->constraint;
    if (s->schema) r.schema = (char *)s->schema;
    r.choices = s->choices;
    r.n_choices = s->n_choices;
    r.relaxed = s->judge != NULL;
    r.parse_tool_calls = s->parse_tool_calls;
    r.tool_choice = s->tool_choice;
    r.parallel_tool_calls = s->parallel_calls;
    if (s->tool_name) r.tool_name = (char *)s->tool_name;
    r.echo = s->echo;
    r.only_prompt = s->only_prompt;
    r.choice = (uint32_t)(k % s->n);
    r.of_choices = (uint32_t)s->n;
    r.clock = s->messages_json ? s->clock : 0;
    *ret = r;
}

static void key_prompts(cache_key *k, const gen_spec *s)
{
    cache_key_str(k, "messages", s->messages_json); /* as the template sees them: in the client's order */
    cache_key_str(k, "tools", s->tools_json);
    cache_key_str(k, "chat_template", s->chat_template);
    cache_key_str(k, "template_kwargs", s->template_kwargs_json);
    for (size_t i = 0; s->prompts && i < s->n_prompts; i++) {
        cache_key_str(k, "text", s->prompts[i].text);
        cache_key_bytes(k, "ids", s->prompts[i].ids, s->prompts[i].n_ids * sizeof(int32_t));
    }
}

static void key_sampling(cache_key *k, const gen_spec *s)
{
    const Shoal__V1__Sampling *p = &s->sampling;
    bool greedy = p->temperature == 0; /* then nothing is drawn, and these do not matter */
    cache_key_num(k, "temperature", p->temperature);
    cache_key_int(k, "top_k", greedy ? 0 : p->top_k);
    cache_key_num(k, "top_p", greedy ? 0 : p->top_p);
    cache_key_num(k, "min_p", greedy ? 0 : p->min_p);
    cache_key_int(k, "seed", greedy || !s->has_seed ? 0 : (int64_t)p->seed);
    cache_key_num(k, "repetition_penalty", p->repetition_penalty);
    cache_key_num(k, "presence_penalty", p->presence_penalty);
    cache_key_num(k, "frequency_penalty", p->frequency_penalty);
    for (size_t i = 0; i < p->n_bias; i++) {
        cache_key_int(k, "bias_id", p->bias[i]->id);
        cache_key_num(k, "bias", p->bias[i]->bias);
    }
}

static void key_rest(cache_key *k, const gen_spec *s)
{
    key_prompts(k, s);
    key_sampling(k, s);
    cache_key_int(k, "n", (int64_t)s->n);
    cache_key_int(k, "ignore_eos", s->ignore_eos);
    cache_key_int(k, "max_tokens", s->max_tokens);
    if (s->min_tokens) cache_key_int(k, "min_tokens", s->min_tokens);
    if (s->token_ids) cache_key_int(k, "token_ids", 1);
    for (size_t i = 0; i < s->n_stop; i++) cache_key_str(k, "stop", s->stop[i]);
    cache_key_int(k, "logprobs", s->logprobs ? (int64_t)s->n_top + 1 : 0);
    cache_key_int(k, "beams", s->n_beams > 1 ? s->n_beams * 2 + s->early_stopping : 0);
    cache_key_num(k, "length_penalty", s->n_beams > 1 ? s->length_penalty : 0);
    cache_key_int(k, "constraint", (int64_t)s->constraint);
    cache_key_str(k, "schema", s->schema);
    for (size_t i = 0; i < s->n_choices; i++) cache_key_str(k, "choice", s->choices[i]);
    cache_key_int(k, "relaxed", s->judge != NULL);
    cache_key_int(k, "tool_choice", (int64_t)s->tool_choice);
    cache_key_str(k, "tool_name", s->tool_name);
    cache_key_int(k, "flags",
                  s->parse_tool_calls | s->echo << 1 | s->parallel_calls << 2 | s->only_prompt << 3);
    if (s->llama) cache_key_int(k, "llama", 1); /* of such answers more is kept */
}

static const char *openai_kind_of(const gen_spec *s)
{
    return s->chat ? "chat.completions" : s->texts ? s->texts : "completions";
}

/* Then equal messages make other prompts later. */
static bool reads_clock(const gen_spec *s, const Shoal__V1__ModelInfo *model)
{
    if (s->chat_template) return strstr(s->chat_template, "strftime_now") != NULL;
    return s->chat && model->template_reads_clock;
}

bool openai_spec_key(const gen_spec *s, const Shoal__V1__ModelInfo *model, const char *adapter_digest,
                     sha256_digest *ret)
{
    if (!openai_spec_is_deterministic(s) || !*model->identity) return false;
    if (reads_clock(s, model)) return false;
    cache_key *k = cache_key_new(openai_kind_of(s));
    cache_key_str(k, "identity", model->identity);
    cache_key_str(k, "adapter", adapter_digest);
    key_rest(k, s);
    return cache_key_end(k, ret);
}

bool openai_spec_identity(const gen_spec *s, sha256_digest *ret)
{
    cache_key *k = cache_key_new(openai_kind_of(s));
    cache_key_str(k, "model", s->model);
    cache_key_int(k, "include_usage", s->include_usage | s->usage_stats << 1);
    cache_key_int(k, "has_seed", s->has_seed);
    cache_key_int(k, "functions", s->functions);
    cache_key_int(k, "unsaid", s->sampling.unsaid); /* what the request leaves to the model */
    key_rest(k, s);
    return cache_key_end(k, ret);
}
