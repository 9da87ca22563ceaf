/* quantize_tok.c: tokenizer.json in the words of GGUF, for other engines, and whole, for ours. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "model/quantize/quantize_meta.h"

enum { TOKENS_MAX = 4 << 20 };
enum { KIND_NORMAL = 1, KIND_UNKNOWN = 2, KIND_CONTROL = 3, KIND_USER = 4, KIND_UNUSED = 5, KIND_BYTE = 6 };

typedef enum { STYLE_GPT2, STYLE_BERT, STYLE_LLAMA, STYLE_UNIGRAM, STYLE_OTHER } tok_style;

typedef struct tok_table {
    arena *mem;
    tok_style style;
    size_t n;
    const char **tokens;
    int32_t *kinds;
    const json_t *root, *vocab; /* the vocabulary: ids by token, or a list of [token, score] (Unigram) */
} tok_table;

static tok_style find_style(const json_t *m)
{
    const char *type = json_text_of(m, "type");
    const json_t *vocab = json_object_get(m, "vocab");
    if (strcmp(type, "Unigram") == 0) return json_is_array(vocab) ? STYLE_UNIGRAM : STYLE_OTHER;
    if (!json_is_object(vocab)) return STYLE_OTHER;
    if (strcmp(type, "WordPiece") == 0) return STYLE_BERT;
    if (strcmp(type, "BPE") != 0) return STYLE_OTHER;
    return json_is_true(json_object_get(m, "byte_fallback")) ? STYLE_LLAMA : STYLE_GPT2;
}

/* A token's id, -1 for none. */
static int64_t find_id(const tok_table *t, const char *token)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(t->root, "added_tokens"), i, v)
    {
        if (strcmp(json_text_of(v, "content"), token) == 0)
            return json_integer_value(json_object_get(v, "id"));
    }
    json_array_foreach((json_t *)t->vocab, i, v)
    {
        const char *s = json_string_value(json_array_get(v, 0));
        if (s && strcmp(s, token) == 0) return (int64_t)i;
    }
    const json_t *id = json_object_get(t->vocab, token);
    return json_is_integer(id) ? json_integer_value(id) : -1;
}

/* The highest id + 1 over vocabulary and added tokens, and no fewer than the embeddings' n_vocab rows: other
 * engines hold the two to be the same number. 0 when an id is absurd. */
static size_t count_tokens(const tok_table *t, size_t n_vocab)
{
    json_int_t top = (json_int_t)json_array_size(t->vocab);
    if ((json_int_t)n_vocab > top) top = (json_int_t)n_vocab;
    top--;
    const char *key;
    json_t *v;
    size_t i;
    json_object_foreach((json_t *)t->vocab, key, v)
    {
        if (!json_is_integer(v) || json_integer_value(v) < 0) return 0;
        if (json_integer_value(v) > top) top = json_integer_value(v);
    }
    json_array_foreach(json_object_get(t->root, "added_tokens"), i, v)
    {
        json_int_t id = json_integer_value(json_object_get(v, "id"));
        if (id < 0) return 0;
        if (id > top) top = id;
    }
    return top < TOKENS_MAX ? (size_t)top + 1 : 0;
}

/* BERT vocabularies mark word starts in GGUF, continuations in tokenizer.json. */
static const char *spell(const tok_table *t, const char *token)
{
    if (t->style != STYLE_BERT) return arena_strdup(t->mem, token);
    if (strncmp(token, "##", 2) == 0) return arena_strdup(t->mem, token + 2);
    return arena_printf(t->mem, "\xE2\x96\x81%s", token);
}

static bool is_byte_token(const char *s)
{
    return strlen(s) == 6 && strncmp(s, "<0x", 3) == 0 && s[5] == '>';
}

static bool fill_vocab(tok_table *t)
{
    const char *key;
    json_t *v;
    size_t i;
    json_array_foreach((json_t *)t->vocab, i, v)
    {
        const char *token = json_string_value(json_array_get(v, 0));
        if (!(t->tokens[i] = arena_strdup(t->mem, token ? token : ""))) return false;
        t->kinds[i] = token && is_byte_token(token) ? KIND_BYTE : KIND_NORMAL;
    }
    json_object_foreach((json_t *)t->vocab, key, v)
    {
        size_t id = (size_t)json_integer_value(v);
        if (!(t->tokens[id] = spell(t, key))) return false;
        t->kinds[id] = t->style == STYLE_LLAMA && is_byte_token(key) ? KIND_BYTE : KIND_NORMAL;
    }
    return true;
}

static bool is_sentencepiece(const tok_table *t)
{
    return t->style == STYLE_LLAMA || t->style == STYLE_UNIGRAM;
}

/* Unigram models give its id, the others its text. */
static int64_t unknown_id(const tok_table *t)
{
    const json_t *m = json_object_get(t->root, "model"), *id = json_object_get(m, "unk_id");
    const char *text = json_string_value(json_object_get(m, "unk_token"));
    if (json_is_integer(id)) return json_integer_value(id);
    return text ? find_id(t, text) : -1;
}

static bool fill_added(tok_table *t)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(t->root, "added_tokens"), i, v)
    {
        size_t id = (size_t)json_integer_value(json_object_get(v, "id"));
        if (!(t->tokens[id] = arena_strdup(t->mem, json_text_of(v, "content")))) return false;
        t->kinds[id] = json_is_true(json_object_get(v, "special")) ? KIND_CONTROL : KIND_USER;
    }
    int64_t unknown = unknown_id(t);
    if (unknown >= 0 && (size_t)unknown < t->n && is_sentencepiece(t)) t->kinds[unknown] = KIND_UNKNOWN;
    for (size_t id = 0; id < t->n; id++) {
        if (t->tokens[id]) continue;
        if (!(t->tokens[id] = arena_printf(t->mem, "[PAD%zu]", id))) return false;
        t->kinds[id] = KIND_UNUSED;
    }
    return true;
}

/* Merges as "left right": older files have them so, newer ones as pairs. */
static int put_merges(gguf_out *o, const tok_table *t, shoal_err *err)
{
    const json_t *merges = json_object_get(json_object_get(t->root, "model"), "merges");
    size_t n = json_array_size(merges);
    const char **lines = arena_alloc(t->mem, n * sizeof *lines + 1);
    if (!lines) return err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const json_t *m = json_array_get(merges, i);
        const char *a = json_string_value(json_array_get(m, 0)), *b = json_string_value(json_array_get(m, 1));
        lines[i] = json_is_string(m) ? json_string_value(m)
                   : a && b          ? arena_printf(t->mem, "%s %s", a, b)
                                     : NULL;
        if (!lines[i])
            return err_set(err, SHOAL_EFORMAT, "tokenizer.json: merge %zu is no pair of tokens", i);
    }
    gguf_out_strings(o, "tokenizer.ggml.merges", lines, NULL, n);
    return 0;
}

/* Engines that know only SentencePiece's order merge the best score first: minus the merge's rank. */
static int put_scores(gguf_out *o, const tok_table *t, shoal_err *err)
{
    const json_t *merges = json_object_get(json_object_get(t->root, "model"), "merges");
    float *scores = arena_alloc(t->mem, t->n * sizeof *scores);
    if (!scores) return err_nomem(err);
    for (size_t i = 0; i < t->n; i++) scores[i] = -1e6f;
    for (size_t i = json_array_size(merges); i-- > 0;) {
        const json_t *m = json_array_get(merges, i);
        const char *line = json_string_value(m), *space = line ? strchr(line, ' ') : NULL;
        const char *a = json_string_value(json_array_get(m, 0)), *b = json_string_value(json_array_get(m, 1));
        char *whole = NULL;
        if (space)
            whole = arena_printf(t->mem, "%.*s%s", (int)(space - line), line, space + 1);
        else if (a && b)
            whole = arena_printf(t->mem, "%s%s", a, b);
        const json_t *id = whole ? json_object_get(t->vocab, whole) : NULL;
        if (id) scores[json_integer_value(id)] = -(float)i;
    }
    gguf_out_array(o, "tokenizer.ggml.scores", GGUF_F32, scores, t->n);
    return 0;
}

/* The step of that type, alone or in a sequence kept as `list`; NULL for none. */
static const json_t *find_step(const json_t *o, const char *list, const char *type)
{
    size_t i;
    json_t *v;
    if (strcmp(json_text_of(o, "type"), type) == 0) return o;
    json_array_foreach(json_object_get(o, list), i, v)
    {
        const json_t *found = find_step(v, list, type);
        if (found) return found;
    }
    return NULL;
}

/* The field's name of a pre-tokenizer, by its regular expression. */
static const char *pre_name(const json_t *root)
{
    static const struct {
        const char *regex, *name;
    } known[] = {
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
         "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
         "\\s+(?!\\S)|\\s+",
         "qwen2"},
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
         "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
         "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         "llama-bpe"},
    };
    const json_t *pre = json_object_get(root, "pre_tokenizer");
    if (strcmp(json_text_of(pre, "type"), "ByteLevel") == 0) /* the name also says how pairs are joined */
        return find_step(json_object_get(root, "post_processor"), "processors", "RobertaProcessing")
                   ? "roberta-bpe"
                   : "gpt-2";
    const json_t *first = json_array_get(json_object_get(pre, "pretokenizers"), 0);
    const char *regex = json_text_of(json_object_get(first, "pattern"), "Regex");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(regex, known[i].regex) == 0) return known[i].name;
    return "default";
}

/* ---- special tokens ------------------------------------------------------------------------------------ */

/* The id of the token that tokenizer_config.json gives a role ("eos_token"), -1 for none. */
static int64_t role_id(const tok_table *t, const json_t *config, const char *role)
{
    const json_t *v = json_object_get(config, role);
    const char *text = json_is_object(v) ? json_text_of(v, "content") : json_string_value(v);
    return text ? find_id(t, text) : -1;
}

/* The special token that one text begins or ends with ("<s> $A </s>"), -1 for none. Byte-level BPE without
 * such a step adds nothing. */
static int64_t edge_id(const tok_table *t, bool end)
{
    const json_t *post = json_object_get(t->root, "post_processor");
    const json_t *pair = find_step(post, "processors", "RobertaProcessing");
    const json_t *single = json_object_get(find_step(post, "processors", "TemplateProcessing"), "single");
    if (!pair) pair = find_step(post, "processors", "BertProcessing");
    if (pair) {
        const char *s = json_string_value(json_array_get(json_object_get(pair, end ? "sep" : "cls"), 0));
        return s ? find_id(t, s) : -1;
    }
    size_t n = json_array_size(single);
    const json_t *piece = n ? json_array_get(single, end ? n - 1 : 0) : NULL;
    const json_t *special = json_object_get(piece, "SpecialToken");
    return special ? find_id(t, json_text_of(special, "id")) : -1;
}

/* Whether a pair has two special tokens between its texts ("<s> $A </s></s> $B </s>"): the text's own end and
 * a separator. */
static bool separates_pairs(const tok_table *t)
{
    const json_t *post = json_object_get(t->root, "post_processor");
    const json_t *pair = json_object_get(find_step(post, "processors", "TemplateProcessing"), "pair");
    size_t i, between = 0, texts = 0;
    json_t *v;
    if (find_step(post, "processors", "RobertaProcessing")) return true;
    json_array_foreach((json_t *)pair, i, v)
    {
        if (json_object_get(v, "Sequence")) texts++;
        if (json_object_get(v, "SpecialToken") && texts == 1) between++;
    }
    return between == 2 && edge_id(t, true) >= 0;
}

static void put_id(gguf_out *o, const char *key, int64_t id)
{
    if (id >= 0) gguf_out_u32(o, key, (uint32_t)id);
}

static void put_bert_roles(gguf_out *o, const tok_table *t)
{
    const json_t *lower = json_object_get(json_object_get(t->root, "normalizer"), "lowercase");
    put_id(o, "tokenizer.ggml.bos_token_id", find_id(t, "[CLS]"));
    put_id(o, "tokenizer.ggml.eos_token_id", find_id(t, "[SEP]"));
    put_id(o, "tokenizer.ggml.unknown_token_id", find_id(t, "[UNK]"));
    put_id(o, "tokenizer.ggml.padding_token_id", find_id(t, "[PAD]"));
    put_id(o, "tokenizer.ggml.cls_token_id", find_id(t, "[CLS]"));
    put_id(o, "tokenizer.ggml.seperator_token_id", find_id(t, "[SEP]"));
    put_id(o, "tokenizer.ggml.mask_token_id", find_id(t, "[MASK]"));
    gguf_out_bool(o, "tokenizer.ggml.normalizer.lowercase", json_is_true(lower));
}

/* BERT folders often name no roles: the tokens themselves are the convention. A bos or eos that is added
 * to every text must be the one that the keys name, so the step's goes before tokenizer_config.json's. */
static void put_roles(gguf_out *o, const tok_table *t, const json_t *config, const model_config *c)
{
    int64_t first = edge_id(t, false), last = edge_id(t, true);
    int64_t bos = first >= 0 ? first : role_id(t, config, "bos_token");
    int64_t eos = last >= 0 ? last : role_id(t, config, "eos_token");
    int64_t unknown = unknown_id(t);
    if (eos < 0 && c->n_eos) eos = c->eos_ids[0];
    if (t->style == STYLE_BERT) {
        put_bert_roles(o, t);
    } else {
        put_id(o, "tokenizer.ggml.bos_token_id", bos);
        put_id(o, "tokenizer.ggml.eos_token_id", eos);
        put_id(o, "tokenizer.ggml.unknown_token_id",
               unknown >= 0 ? unknown : role_id(t, config, "unk_token"));
        put_id(o, "tokenizer.ggml.padding_token_id", role_id(t, config, "pad_token"));
        put_id(o, "tokenizer.ggml.mask_token_id", role_id(t, config, "mask_token"));
        if (separates_pairs(t)) put_id(o, "tokenizer.ggml.seperator_token_id", last);
    }
    gguf_out_bool(o, "tokenizer.ggml.add_bos_token", first >= 0);
    gguf_out_bool(o, "tokenizer.ggml.add_eos_token", last >= 0);
    gguf_out_bool(o, "tokenizer.ggml.add_sep_token", separates_pairs(t));
}

/* ---- SentencePiece's settings ------------------------------------------------------------------------- */

/* Whether a text gets a space in front: by a step that says so, before or after the words are split. */
static bool prefixes_space(const json_t *root)
{
    const json_t *norm = json_object_get(root, "normalizer"), *pre = json_object_get(root, "pre_tokenizer");
    const json_t *meta = find_step(pre, "pretokenizers", "Metaspace");
    if (find_step(norm, "normalizers", "Prepend")) return true;
    if (!meta) return false;
    const char *scheme = json_string_value(json_object_get(meta, "prepend_scheme"));
    if (scheme) return strcmp(scheme, "never") != 0;
    return !json_is_false(json_object_get(meta, "add_prefix_space")); /* the older word for it */
}

/* Whether runs of spaces become one: a step that replaces two or more by one. */
static bool joins_spaces(const json_t *norm)
{
    size_t i;
    json_t *v;
    const char *regex = json_text_of(json_object_get(norm, "pattern"), "Regex");
    if (strcmp(regex, " {2,}") == 0) return true;
    json_array_foreach(json_object_get(norm, "normalizers"), i, v)
    {
        if (joins_spaces(v)) return true;
    }
    return false;
}

static int put_charsmap(gguf_out *o, const json_t *norm, shoal_err *err)
{
    const json_t *step = find_step(norm, "normalizers", "Precompiled");
    const json_t *map = json_object_get(step, "precompiled_charsmap");
    buf blob = {0};
    if (!json_is_string(map)) return 0;
    int rc = base64_decode(&blob, json_string_value(map), json_string_length(map));
    if (rc == SHOAL_ENOMEM)
        rc = err_nomem(err);
    else if (rc != 0)
        rc = err_set(err, SHOAL_EFORMAT, "tokenizer.json: precompiled_charsmap: base64 digits are expected");
    if (rc == 0) gguf_out_array(o, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, blob.data, blob.len);
    buf_done(&blob);
    return rc;
}

/* Unigram's scores are the vocabulary's own; a gap's is the worst. */
static int put_unigram(gguf_out *o, const tok_table *t, shoal_err *err)
{
    const json_t *norm = json_object_get(t->root, "normalizer");
    float *scores = arena_alloc(t->mem, t->n * sizeof *scores);
    if (!scores) return err_nomem(err);
    for (size_t i = 0; i < t->n; i++) {
        const json_t *v = json_array_get(json_array_get(t->vocab, i), 1);
        scores[i] = v ? (float)json_number_value(v) : -1e6f;
    }
    gguf_out_array(o, "tokenizer.ggml.scores", GGUF_F32, scores, t->n);
    gguf_out_bool(o, "tokenizer.ggml.remove_extra_whitespaces", joins_spaces(norm));
    return put_charsmap(o, norm, err);
}

static int put_table(gguf_out *o, tok_table *t, const json_t *config, const model_config *c, shoal_err *err)
{
    static const char *const names[] = {"gpt2", "bert", "llama", "t5"};
    t->n = count_tokens(t, c->n_vocab);
    if (t->n == 0) return err_set(err, SHOAL_EFORMAT, "tokenizer.json: its vocabulary has impossible ids");
    t->tokens = arena_alloc(t->mem, t->n * sizeof *t->tokens);
    t->kinds = arena_alloc(t->mem, t->n * sizeof *t->kinds);
    if (!t->tokens || !t->kinds || !fill_vocab(t) || !fill_added(t)) return err_nomem(err);
    gguf_out_str(o, "tokenizer.ggml.model", names[t->style]);
    gguf_out_str(o, "tokenizer.ggml.pre", t->style == STYLE_GPT2 ? pre_name(t->root) : "default");
    gguf_out_strings(o, "tokenizer.ggml.tokens", t->tokens, NULL, t->n);
    gguf_out_array(o, "tokenizer.ggml.token_type", GGUF_I32, t->kinds, t->n);
    put_roles(o, t, config, c);
    if (is_sentencepiece(t)) gguf_out_bool(o, "tokenizer.ggml.add_space_prefix", prefixes_space(t->root));
    if (t->style == STYLE_BERT) return 0;
    if (t->style == STYLE_UNIGRAM) return put_unigram(o, t, err);
    int rc = put_merges(o, t, err);
    return rc == 0 && t->style == STYLE_LLAMA ? put_scores(o, t, err) : rc;
}

/* tokenizer_config.json without the template, which has a key of its own. */
static int put_config(gguf_out *o, const json_t *config, shoal_err *err)
{
    json_t *rest = json_object();
    buf text = {0};
    const char *key;
    json_t *value;
    int rc = rest ? 0 : SHOAL_ENOMEM;
    json_object_foreach((json_t *)config, key, value) /* json_copy would drop what it has no memory for */
        if (rc == 0 && strcmp(key, "chat_template") != 0) rc = json_object_set(rest, key, value);
    if (rc == 0) rc = json_put(&text, rest);
    if (rc == 0) gguf_out_strn(o, "shoal.tokenizer_config", text.data, text.len);
    buf_done(&text);
    json_decref(rest);
    return rc != 0 ? err_nomem(err) : 0;
}

int quantize_put_tokenizer(gguf_out *o, const char *json, size_t len, const json_t *config,
                           const model_config *c, const char *what, shoal_err *err)
{
    json_t *root = NULL;
    buf small = {0};
    tok_table t = {.mem = arena_new(65536)};
    int rc = t.mem ? json_parse(&root, json, len, what, err) : err_nomem(err);
    if (rc == 0) {
        t.root = root;
        t.vocab = json_object_get(json_object_get(root, "model"), "vocab");
        t.style = find_style(json_object_get(root, "model"));
        if (t.style != STYLE_OTHER) rc = put_table(o, &t, config, c, err);
    }
    if (rc == 0 && json_put(&small, root) != 0) rc = err_nomem(err);
    if (rc == 0) gguf_out_strn(o, "tokenizer.huggingface.json", small.data, small.len);
    if (rc == 0 && json_is_object(config)) rc = put_config(o, config, err);
    buf_done(&small);
    json_decref(root);
    arena_free(t.mem);
    return rc;
}
