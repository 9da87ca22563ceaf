/* llama.c: what llama-server's clients ask, as the body that ours would send; see llama.h. */
#include "dialects/llama.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "messages/fields.h"
#include "json/json.h"

/* ---- sampling ------------------------------------------------------------------------------------ */

/* Numbers: their name there and here. */
static const struct {
    const char *theirs, *ours;
    double least, most; /* beyond these it is taken as the limit, as there */
    bool is_sampler;    /* "samplers" may leave it out, which is `off` */
    double off;
} NUMBERS[] = {{"temperature", "temperature", 0, 1e9, true, 1},
               {"top_p", "top_p", 0, 1, true, 1},
               {"min_p", "min_p", 0, 1, true, 0},
               {"repeat_penalty", "repetition_penalty", 0, 1e9, false, 0},
               {"presence_penalty", "presence_penalty", -1e9, 1e9, false, 0},
               {"frequency_penalty", "frequency_penalty", -1e9, 1e9, false, 0}};

/* What there is nothing of here, and the value that turns it off there. */
static const struct {
    const char *field;
    double off, off_too;
} ABSENT[] = {{"typical_p", 1, 1},      {"typ_p", 1, 1},           {"dynatemp_range", 0, 0},
              {"dry_multiplier", 0, 0}, {"xtc_probability", 0, 0}, {"top_n_sigma", -1, 0},
              {"mirostat", 0, 0},       {"n_indent", 0, 0},        {"tfs_z", 1, 1}};

/* A sampler that the list leaves out is not used. */
static bool samples(const json_t *asked, const char *name)
{
    const json_t *list = fields_get(asked, "samplers");
    if (!json_is_array(list)) return true;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = fields_text(json_array_get(list, i));
        if (s && strcmp(s, name) == 0) return true;
    }
    return false;
}

static int put_numbers(llama_ask *a, api_error *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        float v = 0;
        rc = fields_num(a->root, NUMBERS[i].theirs, -1e30, 1e30, &v, e);
        bool off = NUMBERS[i].is_sampler && !samples(a->root, NUMBERS[i].theirs);
        if (rc != 0 || (!off && !fields_get(a->root, NUMBERS[i].theirs)))
            continue; /* the model's, else llama-server's */
        double x = off ? NUMBERS[i].off : fmin(fmax((double)v, NUMBERS[i].least), NUMBERS[i].most);
        rc = fields_put(a->body, NUMBERS[i].ours, json_real(x), e);
    }
    return rc;
}

static int refuse_absent(const llama_ask *a, api_error *e)
{
    for (size_t i = 0; i < sizeof ABSENT / sizeof *ABSENT; i++) {
        float v = (float)ABSENT[i].off;
        int rc = fields_num(a->root, ABSENT[i].field, -1e30, 1e30, &v, e);
        if (rc != 0) return rc;
        if ((double)v != ABSENT[i].off && (double)v != ABSENT[i].off_too)
            return api_error_bad(e, ABSENT[i].field,
                                 "\"%s\" is not served here: leave it out, or set it to %g", ABSENT[i].field,
                                 ABSENT[i].off);
    }
    return 0;
}

static int put_top_k(llama_ask *a, api_error *e)
{
    int64_t k = 0;
    int rc = fields_int(a->root, "top_k", INT64_MIN, INT64_MAX, &k, e);
    bool off = !samples(a->root, "top_k");
    if (!off && !fields_get(a->root, "top_k")) return rc;
    if (off || k < 0) k = 0;
    return rc == 0 ? fields_put(a->body, "top_k", json_integer(k), e) : rc;
}

static int put_seed(llama_ask *a, api_error *e)
{
    int rc = fields_seed(a->root, &a->form.seed, e);
    bool any = a->form.seed < 0 || a->form.seed == UINT32_MAX; /* as it says "any" */
    return rc == 0 ? fields_put(a->body, "seed", json_integer(any ? -1 : a->form.seed), e) : rc;
}

/* One token's: a number, or false for never. */
static int put_bias(json_t *map, const json_t *id, const json_t *v, api_error *e)
{
    char key[24];
    double x = json_is_false(v) ? -100 : json_number_value(v);
    if (!json_is_integer(id))
        return api_error_bad(e, "logit_bias",
                             "\"logit_bias\" takes token ids here; POST /tokenize has those of a text");
    if (!json_is_number(v) && !json_is_false(v))
        return api_error_bad(e, "logit_bias", "a bias of \"logit_bias\" must be a number or false");
    snprintf(key, sizeof key, "%lld", (long long)json_integer_value(id));
    x = x < -100 ? -100 : x > 100 ? 100 : x;
    return fields_put(map, key, json_real(x), e);
}

/* [[15043, 1.5], [9, false]], or OpenAI's object. */
static int put_biases(llama_ask *a, api_error *e)
{
    const json_t *v = fields_get(a->root, "logit_bias");
    int rc = 0;
    if (!v) return 0;
    if (json_is_object(v)) return fields_put(a->body, "logit_bias", json_incref((json_t *)v), e);
    if (!json_is_array(v)) return api_error_bad(e, "logit_bias", "\"logit_bias\" must be an array of pairs");
    json_t *map = json_object();
    for (size_t i = 0; map && rc == 0 && i < json_array_size(v); i++) {
        const json_t *pair = json_array_get(v, i);
        if (json_array_size(pair) != 2)
            rc = api_error_bad(e, "logit_bias", "logit_bias[%zu] must be [token id, bias]", i);
        else
            rc = put_bias(map, json_array_get(pair, 0), json_array_get(pair, 1), e);
    }
    if (rc == 0) return fields_put(a->body, "logit_bias", map, e);
    json_decref(map);
    return rc;
}

/* ---- the form of the reply ------------------------------------------------------------------------ */

static int refuse_grammar(const llama_ask *a, api_error *e)
{
    const char *grammar = NULL;
    int rc = fields_str(a->root, "grammar", &grammar, e);
    if (rc != 0) return rc;
    if (grammar && *grammar)
        return api_error_bad(e, "grammar",
                             "grammars in GBNF are not read here: say the form as \"json_schema\"");
    return 0;
}

static bool scales_something(const json_t *lora)
{
    for (size_t i = 0; i < json_array_size(lora); i++)
        if (json_number_value(json_object_get(json_array_get(lora, i), "scale")) != 0) return true;
    return false;
}

static int refuse_rest(const llama_ask *a, api_error *e)
{
    bool after = false;
    int rc = fields_bool(a->root, "post_sampling_probs", &after, e);
    if (rc == 0 && after)
        rc = api_error_bad(e, "post_sampling_probs",
                           "\"post_sampling_probs\" is not served here: \"n_probs\" tells the "
                           "model's own probabilities");
    if (rc == 0 && scales_something(fields_get(a->root, "lora")))
        rc = api_error_bad(e, "lora", "\"lora\" is not served here: give \"model\": \"MODEL:ADAPTER\"");
    if (rc == 0 && json_array_size(fields_get(a->root, "image_data")) > 0)
        rc = api_error_bad(e, "image_data", "\"image_data\" is not served: no model here sees pictures");
    return rc == 0 ? refuse_absent(a, e) : rc;
}

static int put_counts(llama_ask *a, api_error *e)
{
    int64_t n = 1, probs = 0, most = -1;
    int rc = fields_int(a->root, "max_tokens", INT64_MIN, INT64_MAX, &most, e);
    if (rc == 0) rc = fields_int(a->root, "n_predict", INT64_MIN, INT64_MAX, &most, e);
    if (rc == 0) rc = fields_int(a->root, "n", INT64_MIN, INT64_MAX, &n, e);
    if (rc == 0) rc = fields_int(a->root, "n_cmpl", INT64_MIN, INT64_MAX, &n, e);
    if (rc == 0) rc = fields_int(a->root, "n_probs", 0, LLAMA_PROBS_MAX, &probs, e);
    if (rc != 0) return rc;
    a->form.n_predict = most < 0 ? -1 : most;
    a->form.n_probs = (unsigned)probs;
    a->many |= n > 1;
    rc = fields_put(a->body, "max_tokens", json_integer(most <= 0 ? -1 : most), e);
    return rc == 0 ? fields_put(a->body, "n", json_integer(n), e) : rc;
}

/* What is called and means the same. */
static const fields_name SAME[] = {{"json_schema", "json_schema"},
                                   {"response_format", "response_format"},
                                   {"stream", "stream"},
                                   {"ignore_eos", "ignore_eos"},
                                   {"stop", "stop"}};

static int put_flags(llama_ask *a, api_error *e)
{
    int rc = fields_bool(a->root, "return_tokens", &a->form.return_tokens, e);
    if (rc == 0) rc = fields_bool(a->root, "timings_per_token", &a->form.timings_per_token, e);
    if (rc == 0) rc = fields_rename(a->body, a->root, SAME, sizeof SAME / sizeof *SAME, e);
    a->form.fields = fields_get(a->root, "response_fields");
    if (rc == 0 && a->form.fields && !json_is_array(a->form.fields))
        rc = api_error_bad(e, "response_fields", "\"response_fields\" must be an array of names");
    if (rc == 0 && json_array_size(a->form.fields) == 0) a->form.fields = NULL;
    return rc;
}

/* ---- prompts ------------------------------------------------------------------------------------- */

/* Of {"prompt_string": "..."} the text. */
static const json_t *unwrap(const json_t *v)
{
    const json_t *s = fields_get(v, "prompt_string");
    return s && json_array_size(fields_get(v, "multimodal_data")) == 0 ? s : v;
}

/* An array that is one prompt: of ids, or of ids and texts. */
static bool is_one(const json_t *v)
{
    for (size_t i = 0; i < json_array_size(v); i++)
        if (json_is_integer(json_array_get(v, i))) return true;
    return false;
}

static int add_prompt(llama_ask *a, const json_t *v, api_error *e)
{
    v = unwrap(v);
    bool fine = json_is_string(v) || (json_is_array(v) && json_array_size(v) > 0);
    for (size_t i = 0; fine && i < json_array_size(v); i++) {
        const json_t *part = json_array_get(v, i);
        fine = json_is_integer(part) || (json_is_string(part) && fields_text(part));
        a->n_texts += json_is_string(part);
    }
    if (!fine)
        return api_error_bad(
            e, "prompt",
            "\"prompt\" must be text, an array of token ids and texts, or an array of such prompts");
    if (a->n_texts > LLAMA_TEXTS_MAX)
        return api_error_bad(e, "prompt", "\"prompt\" has more than %d texts among token ids",
                             LLAMA_TEXTS_MAX);
    return json_array_append(a->prompts, (json_t *)v) == 0 && json_array_append(a->asked, (json_t *)v) == 0
               ? 0
               : api_error_nomem(e);
}

static int read_prompts(llama_ask *a, api_error *e)
{
    const json_t *v = fields_get(a->root, "prompt");
    int rc = 0;
    if (!v) return api_error_bad(e, "prompt", "\"prompt\" is missing");
    if (!json_is_array(v) || is_one(v)) return add_prompt(a, v, e);
    size_t n = json_array_size(v);
    if (n == 0 || n > GEN_PROMPTS_MAX)
        return api_error_bad(e, "prompt", "\"prompt\" has %zu entries, must be 1 to %d", n, GEN_PROMPTS_MAX);
    a->many = n > 1;
    for (size_t i = 0; rc == 0 && i < n; i++) rc = add_prompt(a, json_array_get(v, i), e);
    return rc;
}

static bool has_text(const json_t *p)
{
    for (size_t i = 0; i < json_array_size(p); i++)
        if (json_is_string(json_array_get(p, i))) return true;
    return false;
}

/* Copy the ids of prompt p up to its next text, or its end. */
static const json_t *copy_ids(llama_ask *a, const json_t *p)
{
    for (; a->part < json_array_size(p); a->part++) {
        json_t *v = json_array_get(p, a->part);
        if (json_is_string(v)) return v;
        a->failed |= json_array_append(a->copy, v) != 0;
    }
    a->failed |= json_array_set_new(a->prompts, a->at, a->copy) != 0;
    a->copy = NULL;
    a->part = 0;
    return NULL;
}

bool llama_next_text(llama_ask *a, const char **ret_text, bool *ret_first)
{
    for (; a->at < json_array_size(a->prompts) && !a->failed; a->at++) {
        const json_t *p = json_array_get(a->prompts, a->at), *text;
        if (!a->copy && !has_text(p)) continue;
        if (!a->copy) a->copy = json_array();
        a->failed |= !a->copy;
        if (a->failed || !(text = copy_ids(a, p))) continue;
        *ret_text = json_string_value(text);
        *ret_first = a->part == 0;
        return true;
    }
    return false;
}

void llama_take_tokens(llama_ask *a, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n && !a->failed; i++)
        a->failed = json_array_append_new(a->copy, json_integer(ids[i])) != 0;
    a->part++;
}

/* ---- gaps ---------------------------------------------------------------------------------------- */

/* Qwen, StarCoder and Granite, CodeGemma, DeepSeek, Code Llama. */
const char *const LLAMA_FILL[LLAMA_FILL_FAMILIES][3] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    {"<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>"},
    {"\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"}};

/* Other files stand before the one with the gap. */
static int read_extra(llama_ask *a, api_error *e)
{
    const json_t *extra = fields_get(a->root, "input_extra");
    for (size_t i = 0; i < json_array_size(extra); i++) {
        const json_t *file = json_array_get(extra, i);
        const char *text = fields_text(json_object_get(file, "text"));
        const char *name = fields_text(json_object_get(file, "filename"));
        if (!text) return api_error_bad(e, "input_extra", "input_extra[%zu] needs \"text\"", i);
        buf_printf(&a->extra, "%s\n", name ? name : "");
        buf_puts(&a->extra, text);
        buf_putc(&a->extra, '\n');
    }
    return 0;
}

static int read_gap(llama_ask *a, api_error *e)
{
    static const char *const FIELDS[] = {"input_prefix", "input_suffix", "prompt"};
    int rc = read_extra(a, e);
    a->plain = true;
    for (size_t i = 0; rc == 0 && i < 3; i++) {
        a->fill[i] = "";
        if (i < 2 && !fields_get(a->root, FIELDS[i]))
            rc = api_error_bad(e, FIELDS[i], "\"%s\" is missing", FIELDS[i]);
        if (rc == 0) rc = fields_str(a->root, FIELDS[i], &a->fill[i], e);
    }
    if (rc == 0) buf_puts(&a->extra, a->fill[0]);
    return rc == 0 && a->extra.failed ? api_error_nomem(e) : rc;
}

int llama_fill(llama_ask *a, const int32_t ids[3])
{
    const char *const texts[] = {a->extra.data ? a->extra.data : "", a->fill[1], a->fill[2]};
    json_t *prompt = json_array();
    int rc = prompt ? 0 : SHOAL_ENOMEM;
    for (size_t i = 0; rc == 0 && i < 3; i++) {
        rc = json_array_append_new(prompt, json_integer(ids[i]));
        if (rc == 0 && *texts[i]) rc = json_array_append_new(prompt, json_string(texts[i]));
    }
    if (rc == 0) rc = json_array_append(a->prompts, prompt) || json_array_append(a->asked, prompt);
    json_decref(prompt);
    return rc == 0 ? 0 : SHOAL_ENOMEM;
}

/* ---- whole requests ------------------------------------------------------------------------------ */

int llama_read(llama_ask *ret, bool infills, const char *bytes, size_t n, api_error *e)
{
    *ret =
        (llama_ask){.body = json_object(), .asked = json_array(), .prompts = json_array(), .form.seed = -1};
    int rc = ret->body && ret->asked && ret->prompts ? 0 : api_error_nomem(e);
    if (rc == 0) rc = fields_parse(&ret->root, bytes, n, e);
    if (rc == 0) rc = fields_str(ret->root, "model", &ret->model, e);
    if (rc == 0 && ret->model && !*ret->model) ret->model = NULL;
    if (rc == 0) rc = infills ? read_gap(ret, e) : read_prompts(ret, e);
    if (rc == 0) rc = put_counts(ret, e);
    if (rc == 0) rc = put_numbers(ret, e);
    if (rc == 0) rc = put_top_k(ret, e);
    if (rc == 0) rc = fields_put(ret->body, "sampling_defaults", json_string("llama-server"), e);
    if (rc == 0) rc = put_seed(ret, e);
    if (rc == 0) rc = put_biases(ret, e);
    if (rc == 0) rc = refuse_grammar(ret, e);
    if (rc == 0) rc = put_flags(ret, e);
    return rc == 0 ? refuse_rest(ret, e) : rc;
}

void llama_ask_done(llama_ask *a)
{
    json_drop(a->root);
    json_decref(a->body);
    json_decref(a->asked);
    json_decref(a->prompts);
    json_decref(a->copy);
    buf_done(&a->extra);
    *a = (llama_ask){0};
}

/* What the body of a completion cannot say. */
static int complete(gen_spec *s, llama_ask *a, api_error *e)
{
    llama_form *f = arena_alloc(s->mem, sizeof *f);
    if (!f || json_object_set(s->root, "asked", a->asked) != 0 ||
        (a->form.fields && json_object_set(s->root, "fields", (json_t *)a->form.fields) != 0))
        return api_error_nomem(e);
    *f = a->form;
    f->spec = s;
    f->prompts = json_object_get(s->root, "asked"); /* they live as long as the spec */
    f->many = a->many;
    s->llama = f;
    s->logprobs = f->n_probs > 0;
    s->n_top = f->n_probs;
    s->only_prompt = f->n_predict == 0;
    return 0;
}

int llama_spec(gen_spec **ret, llama_ask *a, const char *model, api_error *e)
{
    buf text = {0};
    gen_spec *s = NULL;
    json_ahead parsed = {0};
    int rc = !a->failed && json_object_set(a->body, "prompt", a->prompts) == 0 &&
                     json_object_set_new(a->body, "model", json_string(model)) == 0 &&
                     json_put(&text, a->body) == 0
                 ? 0
                 : api_error_nomem(e);
    if (rc == 0) json_ahead_from(&parsed, &text, a->body);
    json_ahead_offer(&parsed);
    if (rc == 0) rc = openai_spec_parse_completion(&s, text.data, text.len, e);
    json_ahead_offer(NULL);
    json_ahead_done(&parsed);
    buf_done(&text);
    if (rc == 0) rc = complete(s, a, e);
    if (rc == 0)
        *ret = s;
    else
        openai_spec_free(s);
    return rc;
}
