/* tok_json.c: tokenizer.json -> tokenizer: the vocabulary, the merges and the added tokens. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "tokenizer/files/tok_json.h"

/* What a loader works on; `what` names the file in every error. */
typedef struct loader {
    tokenizer *t;
    const char *what;
    shoal_err *err;
} loader;

static int tok_json_put(loader *l, int64_t id, const char *s, size_t len, const char *path)
{
    int rc = id < 0 || id > TOK_MAX_ID ? SHOAL_ELIMIT : tok_vocab_put(&l->t->voc, (int32_t)id, s, len);
    if (rc == SHOAL_ENOMEM) return err_nomem(l->err);
    if (rc == 0) return 0;
    return err_set(l->err, SHOAL_EFORMAT,
                   "%s: %s[\"%.40s\"]: id %lld is out of range, or the text is too long", l->what, path, s,
                   (long long)id);
}

static int load_vocab(loader *l, const json_t *model)
{
    json_t *pieces = json_object_get(model, "vocab"), *v;
    const char *key;
    if (!json_is_object(pieces))
        return err_set(l->err, SHOAL_EFORMAT, "%s: model.vocab: must be an object", l->what);
    if (json_object_size(pieces) > TOK_MAX_TOKENS)
        return err_set(l->err, SHOAL_ELIMIT, "%s: model.vocab: more than %d tokens", l->what, TOK_MAX_TOKENS);
    json_object_foreach(pieces, key, v)
    {
        if (!json_is_integer(v))
            return err_set(l->err, SHOAL_EFORMAT, "%s: model.vocab[\"%.40s\"]: must be an integer", l->what,
                           key);
        size_t n;
        if (tok_vocab_text(&l->t->voc, (int32_t)(json_integer_value(v) & INT32_MAX), &n))
            return err_set(l->err, SHOAL_EFORMAT, "%s: model.vocab[\"%.40s\"]: its id %lld is taken", l->what,
                           key, (long long)json_integer_value(v));
        int rc = tok_json_put(l, json_integer_value(v), key, strlen(key), "model.vocab");
        if (rc) return rc;
    }
    return 0;
}

/* An optional string of the model section, at most `cap` bytes with its NUL. */
static int short_text(loader *l, const json_t *model, const char *key, char *ret, size_t cap, size_t *ret_len)
{
    const char *s = json_string_value(json_object_get(model, key));
    size_t n = s ? strlen(s) : 0;
    if (n >= cap)
        return err_set(l->err, SHOAL_EUNSUPPORTED, "%s: model.%s: longer than %zu bytes", l->what, key,
                       cap - 1);
    memcpy(ret, s ? s : "", n + 1);
    *ret_len = n;
    return 0;
}

static int find_unk(loader *l, const json_t *model)
{
    const char *s = json_string_value(json_object_get(model, "unk_token"));
    if (!s) return 0;
    l->t->seg.unk = tok_vocab_find(&l->t->voc, s, strlen(s));
    if (l->t->seg.unk >= 0) return 0;
    return err_set(l->err, SHOAL_EFORMAT, "%s: model.unk_token: \"%.40s\" is not in the vocabulary", l->what,
                   s);
}

/* The two sides of a merge: "left right" or ["left", "right"]. */
static bool merge_sides(const json_t *m, const char **a, size_t *n_a, const char **b, size_t *n_b)
{
    const json_t *x = json_array_get(m, 0), *y = json_array_get(m, 1);
    if (json_is_string(x) && json_is_string(y) && json_array_size(m) == 2) {
        *a = json_string_value(x);
        *n_a = json_string_length(x);
        *b = json_string_value(y);
        *n_b = json_string_length(y);
        return true;
    }
    const char *s = json_string_value(m), *space = s ? strchr(s, ' ') : NULL;
    if (!space || strchr(space + 1, ' ')) return false;
    *a = s;
    *n_a = (size_t)(space - s);
    *b = space + 1;
    *n_b = strlen(space + 1);
    return true;
}

static int load_merge(loader *l, const json_t *m, size_t i)
{
    segmenter *g = &l->t->seg;
    const char *a, *b;
    size_t n_a, n_b;
    if (!merge_sides(m, &a, &n_a, &b, &n_b))
        return err_set(
            l->err, SHOAL_EFORMAT,
            "%s: model.merges[%zu]: a pair of pieces is expected, \"left right\" or [\"left\", \"right\"]",
            l->what, i);
    int32_t left = tok_vocab_find(g->voc, a, n_a), right = tok_vocab_find(g->voc, b, n_b);
    size_t k = left >= 0 && right >= 0 && n_b >= g->prefix_len && n_a ? g->prefix_len : 0;
    b += k; /* the right side is no longer inside a word */
    n_b -= k;
    uint64_t h = vocab_hash(vocab_hash(VOCAB_HASH_START, a, n_a), b, n_b);
    int32_t both = left < 0 || right < 0 ? -1 : tok_vocab_find_hashed(g->voc, h, a, n_a, b, n_b);
    if (both < 0)
        return err_set(l->err, SHOAL_EFORMAT, "%s: model.merges[%zu]: a piece is not in the vocabulary",
                       l->what, i);
    tok_seg_merges_add(g, left, right, (uint32_t)i, both);
    return 0;
}

static int load_bpe(loader *l, const json_t *model)
{
    segmenter *g = &l->t->seg;
    const json_t *merges = json_object_get(model, "merges"), *m;
    size_t i;
    g->kind = SEG_BPE;
    g->fuse_unk = json_is_true(json_object_get(model, "fuse_unk"));
    g->byte_fallback = json_is_true(json_object_get(model, "byte_fallback"));
    g->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    int rc = short_text(l, model, "end_of_word_suffix", g->suffix, sizeof g->suffix, &g->suffix_len);
    if (rc == 0)
        rc = short_text(l, model, "continuing_subword_prefix", g->prefix, sizeof g->prefix, &g->prefix_len);
    if (rc == 0) rc = find_unk(l, model);
    if (rc) return rc;
    if (!json_is_array(merges))
        return err_set(l->err, SHOAL_EFORMAT,
                       "%s: model.merges: an array of pairs is expected, in the order of their ranks",
                       l->what);
    if (json_array_size(merges) > TOK_MAX_TOKENS)
        return err_set(l->err, SHOAL_ELIMIT, "%s: model.merges: more than %d merges", l->what,
                       TOK_MAX_TOKENS);
    if (tok_seg_merges_init(g, json_array_size(merges))) return err_nomem(l->err);
    json_array_foreach(merges, i, m)
    {
        rc = load_merge(l, m, i);
        if (rc) return rc;
    }
    return 0;
}

static int load_wordpiece(loader *l, const json_t *model)
{
    segmenter *g = &l->t->seg;
    int64_t max_chars = 100;
    g->kind = SEG_WORDPIECE;
    memcpy(g->prefix, "##", 3);
    g->prefix_len = 2;
    int rc = json_get_int(model, "max_input_chars_per_word", 1, 100000, &max_chars, l->err);
    if (rc) return err_prefix(l->err, rc, "%s: model", l->what);
    g->max_chars = (size_t)max_chars;
    if (json_is_string(json_object_get(model, "continuing_subword_prefix")))
        rc = short_text(l, model, "continuing_subword_prefix", g->prefix, sizeof g->prefix, &g->prefix_len);
    return rc ? rc : find_unk(l, model);
}

static int load_unigram(loader *l, const json_t *model)
{
    segmenter *g = &l->t->seg;
    const json_t *pieces = json_object_get(model, "vocab"), *v, *unk = json_object_get(model, "unk_id");
    size_t i, n = json_array_size(pieces);
    double lowest = INFINITY;
    if (n == 0 || n > TOK_MAX_TOKENS)
        return err_set(l->err, SHOAL_EFORMAT, "%s: model.vocab: an array of at most %d pieces is expected",
                       l->what, TOK_MAX_TOKENS);
    g->kind = SEG_UNIGRAM;
    g->byte_fallback = json_is_true(json_object_get(model, "byte_fallback"));
    g->scores = calloc(n, sizeof *g->scores);
    if (!g->scores) return err_nomem(l->err);
    json_array_foreach(pieces, i, v)
    {
        const json_t *text = json_array_get(v, 0), *score = json_array_get(v, 1);
        if (!json_is_string(text) || !json_is_number(score))
            return err_set(l->err, SHOAL_EFORMAT, "%s: model.vocab[%zu]: [\"piece\", score] is expected",
                           l->what, i);
        int rc =
            tok_json_put(l, (int64_t)i, json_string_value(text), json_string_length(text), "model.vocab");
        if (rc) return rc;
        g->scores[i] = json_number_value(score);
        if (g->scores[i] < lowest) lowest = g->scores[i];
    }
    g->unk_score = lowest - 10; /* kUnkPenalty of SentencePiece */
    if (!isfinite(lowest))
        return err_set(l->err, SHOAL_EFORMAT, "%s: model.vocab: a score is no number", l->what);
    if (json_is_integer(unk) && json_integer_value(unk) >= 0 && (size_t)json_integer_value(unk) < n)
        g->unk = (int32_t)json_integer_value(unk);
    return tok_build_trie(l->t, n, NULL, l->err);
}

/* Files before tokenizers 0.9 do not name the model; each has fields of its own. */
static const char *implied_type(const json_t *model)
{
    if (json_object_get(model, "merges")) return "BPE";
    if (json_is_array(json_object_get(model, "vocab"))) return "Unigram";
    return json_object_get(model, "max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

static int load_model(loader *l, const json_t *root)
{
    const json_t *model = json_object_get(root, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    if (!json_is_object(model))
        return err_set(l->err, SHOAL_EFORMAT, "%s: model: must be an object", l->what);
    if (!type) type = implied_type(model);
    if (!strcmp(type, "Unigram")) return load_unigram(l, model);
    bool bpe = !strcmp(type, "BPE"), words = !strcmp(type, "WordLevel");
    if (!bpe && !words && strcmp(type, "WordPiece"))
        return err_set(l->err, SHOAL_EUNSUPPORTED, "%s: model.type: \"%s\" is not supported", l->what, type);
    int rc = load_vocab(l, model);
    if (rc) return rc;
    if (bpe) return load_bpe(l, model);
    if (!words) return load_wordpiece(l, model);
    l->t->seg.kind = SEG_WORDLEVEL;
    return find_unk(l, model);
}

int tok_json_add_token(tokenizer *t, const json_t *o, size_t i, const char *what, shoal_err *err)
{
    const json_t *text = json_object_get(o, "content"), *id = json_object_get(o, "id");
    loader *l = &(loader){.t = t, .what = what, .err = err};
    if (!json_is_string(text) || !json_is_integer(id))
        return err_set(l->err, SHOAL_EFORMAT, "%s: added_tokens[%zu]: \"id\" and \"content\" are expected",
                       l->what, i);
    const char *s = json_string_value(text);
    size_t len = json_string_length(text);
    bool foreign = tok_vocab_find(&t->voc, s, len) < 0;
    int rc = tok_json_put(l, json_integer_value(id), s, len, "added_tokens");
    if (rc) return rc;
    t->added[t->n_added++] = (added_token){
        .text = arena_strndup(t->mem, s, len),
        .len = len,
        .id = (int32_t)json_integer_value(id),
        .foreign = foreign,
        .special = json_is_true(json_object_get(o, "special")),
        .normalized = json_is_true(json_object_get(o, "normalized")),
        .lstrip = json_is_true(json_object_get(o, "lstrip")),
        .rstrip = json_is_true(json_object_get(o, "rstrip")),
        .single_word = json_is_true(json_object_get(o, "single_word")),
    };
    return t->added[t->n_added - 1].text ? 0 : err_nomem(l->err);
}

static int load_added(loader *l, const json_t *root)
{
    const json_t *list = json_object_get(root, "added_tokens"), *o;
    tokenizer *t = l->t;
    size_t i, n = json_array_size(list);
    if (n > TOK_MAX_TOKENS) return err_set(l->err, SHOAL_ELIMIT, "%s: too many added_tokens", l->what);
    t->added = arena_alloc(t->mem, (n + 1) * sizeof *t->added);
    if (!t->added) return err_nomem(l->err);
    json_array_foreach(list, i, o)
    {
        int rc = tok_json_add_token(t, o, i, l->what, l->err);
        if (rc) return rc;
    }
    t->seg.foreign = calloc(t->voc.n + 1, 1);
    if (!t->seg.foreign) return err_nomem(l->err);
    for (i = 0; i < t->n_added; i++) t->seg.foreign[t->added[i].id] |= t->added[i].foreign;
    return 0;
}

/* tokenizer_config.json: "bos_token" is a string or an added token. */
static int32_t config_token(const tokenizer *t, const json_t *config, const char *key)
{
    const json_t *v = json_object_get(config, key);
    const char *s = json_string_value(json_is_object(v) ? json_object_get(v, "content") : v);
    return s ? tok_vocab_find(&t->voc, s, strlen(s)) : -1;
}

static int load_config(loader *l, const char *json, size_t len)
{
    json_t *config = NULL;
    int rc = json_parse(&config, json, len, "tokenizer_config.json", l->err);
    if (rc) return err_prefix(l->err, rc, "%s", l->what);
    l->t->bos = config_token(l->t, config, "bos_token");
    l->t->eos = config_token(l->t, config, "eos_token");
    json_decref(config);
    return 0;
}

static int tok_json_load(loader *l, const json_t *root)
{
    tokenizer *t = l->t;
    if (!json_is_object(root)) return err_set(l->err, SHOAL_EFORMAT, "%s: must be an object", l->what);
    int rc = load_model(l, root);
    if (rc == 0) rc = load_added(l, root);
    if (rc) return rc;
    static const struct {
        const char *key;
        int (*fn)(tokenizer *t, const json_t *o, const char *what, shoal_err *err);
    } sections[] = {{"normalizer", tok_json_normalizer},
                    {"pre_tokenizer", tok_json_pre},
                    {"post_processor", tok_json_post},
                    {"decoder", tok_json_decoder}};
    for (size_t i = 0; i < 4; i++) {
        rc = sections[i].fn(t, json_object_get(root, sections[i].key), sections[i].key, l->err);
        if (rc) return err_prefix(l->err, rc, "%s", l->what);
    }
    tok_seg_find_bytes(&t->seg);
    return 0;
}

int tok_json_build(tokenizer *t, const json_t *root, const char *what, shoal_err *err)
{
    return tok_json_load(&(loader){.t = t, .what = what, .err = err}, root);
}

int tokenizer_from_json(tokenizer **ret, const char *json, size_t len, const char *config_json,
                        size_t config_len, const char *what, shoal_err *err)
{
    loader l = {.t = tok_new(), .what = what, .err = err};
    json_t *root = NULL;
    if (!l.t) return err_nomem(err);
    int rc = json_parse(&root, json, len, what, err);
    if (rc == 0) rc = tok_json_load(&l, root);
    if (rc == 0 && config_json) rc = load_config(&l, config_json, config_len);
    if (rc == 0) rc = tok_seal(l.t, err);
    json_decref(root);
    if (rc) {
        tokenizer_free(l.t);
        return rc;
    }
    *ret = l.t;
    return 0;
}
