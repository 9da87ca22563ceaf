/* tok_gguf.c: a tokenizer from GGUF metadata, as the field's converter writes it. */
#include <stdlib.h>
#include <string.h>

#include "text/tok_internal.h"

#define META "\xE2\x96\x81"

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER = 4, TYPE_BYTE = 6 };

#define LLAMA3_REGEX                                                                                       \
    "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" \
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define QWEN2_REGEX                                                                                   \
    "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" \
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* tokenizer.ggml.pre: the regular expressions that split one after the other. */
static const struct pre_name {
    const char *name;
    bool ignore_merges, add_bos;
    const char *regex[4];
} pre_names[] = {
    {"default", false, false, {"[\\p{P}\\$\\+<=>\\^~\\|]+", TOK_GPT2_REGEX, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {"gpt-2", false, false, {TOK_GPT2_REGEX}},
    {"gpt2", false, false, {TOK_GPT2_REGEX}},
    {"phi-2", false, false, {TOK_GPT2_REGEX}},
    {"mpt", false, false, {TOK_GPT2_REGEX}},
    {"olmo", false, false, {TOK_GPT2_REGEX}},
    {"jina-en", false, false, {TOK_GPT2_REGEX}},
    {"roberta-bpe", false, true, {TOK_GPT2_REGEX}},
    {"llama-bpe", true, true, {LLAMA3_REGEX}},
    {"llama3", true, true, {LLAMA3_REGEX}},
    {"llama-v3", true, true, {LLAMA3_REGEX}},
    {"dbrx", false, false, {LLAMA3_REGEX}},
    {"smaug-bpe", false, false, {LLAMA3_REGEX}},
    {"qwen2", false, false, {QWEN2_REGEX}},
    {"deepseek-r1-qwen", false, false, {QWEN2_REGEX}},
    {"stablelm2", false, false, {QWEN2_REGEX}},
    {"smollm", false, false, {"\\p{N}", TOK_GPT2_REGEX}},
    {"starcoder", false, false, {"\\p{N}", TOK_GPT2_REGEX}},
    {"refact", false, false, {"\\p{N}", TOK_GPT2_REGEX}},
    {"command-r", false, false, {"\\p{N}", TOK_GPT2_REGEX}},
    {"codeshell", false, false, {"\\p{N}", TOK_GPT2_REGEX}},
    {"exaone", false, false, {"\\p{N}", TOK_GPT2_REGEX}},
    {"falcon", false, false, {"[\\p{P}\\$\\+<=>\\^~\\|`]+", TOK_GPT2_REGEX, "[0-9][0-9][0-9]"}},
};

static int add_regex(tokenizer *t, const char *regex, const char *what, shoal_err *err)
{
    pre_step *s = tok_add_pre(t);
    if (!s) return err_nomem(err);
    s->kind = PRE_REGEX;
    return tok_regex_compile(&s->re, regex, strlen(regex), what, err);
}

static int add_norm(tokenizer *t, norm_kind kind, shoal_err *err)
{
    norm_step *s = tok_add_norm(t);
    if (!s) return err_nomem(err);
    s->kind = kind;
    return 0;
}

static bool is_added(const tokenizer_gguf *m, size_t id)
{
    int32_t type = m->token_types ? m->token_types[id] : TYPE_NORMAL;
    bool named =
        !m->token_types && ((int64_t)id == m->bos || (int64_t)id == m->eos || (int64_t)id == m->pad ||
                            (int64_t)id == m->cls || (int64_t)id == m->sep || (int64_t)id == m->mask);
    return type == TYPE_CONTROL || type == TYPE_USER || type == TYPE_UNKNOWN || named;
}

/* WordPiece pieces are stored the other way round: "▁" begins a word, nothing continues one. */
static int put_piece(tokenizer *t, const tokenizer_gguf *m, size_t id, bool wordpiece)
{
    const char *s = m->tokens[id];
    size_t n = m->token_lens[id], meta = sizeof META - 1;
    char text[512];
    bool starts = n >= meta && !memcmp(s, META, meta);
    bool bracketed = n > 2 && s[0] == '[' && s[n - 1] == ']';
    if (!wordpiece || is_added(m, id) || bracketed || n > sizeof text - 2)
        return tok_vocab_put(&t->voc, (int32_t)id, s, n);
    if (starts) return tok_vocab_put(&t->voc, (int32_t)id, s + meta, n - meta);
    memcpy(text, "##", 2);
    memcpy(text + 2, s, n);
    return tok_vocab_put(&t->voc, (int32_t)id, text, n + 2);
}

static int load_pieces(tokenizer *t, const tokenizer_gguf *m, bool wordpiece, const char *what,
                       shoal_err *err)
{
    if (m->n_tokens == 0 || m->n_tokens > TOK_MAX_TOKENS)
        return err_set(err, SHOAL_EFORMAT, "%s: tokenizer.ggml.tokens: 1 to %d tokens are expected", what,
                       TOK_MAX_TOKENS);
    t->added = arena_alloc(t->mem, (m->n_tokens + 1) * sizeof *t->added);
    if (!t->added) return err_nomem(err);
    for (size_t id = 0; id < m->n_tokens; id++) {
        int rc = put_piece(t, m, id, wordpiece);
        if (rc == SHOAL_ENOMEM) return err_nomem(err);
        if (rc) return err_set(err, SHOAL_EFORMAT, "%s: tokenizer.ggml.tokens[%zu]: too long", what, id);
        if (!is_added(m, id)) continue;
        added_token *a = &t->added[t->n_added++];
        a->text = arena_strndup(t->mem, m->tokens[id], m->token_lens[id]);
        a->len = m->token_lens[id];
        a->id = (int32_t)id;
        a->special = !m->token_types || m->token_types[id] != TYPE_USER;
        if (!a->text) return err_nomem(err);
    }
    return 0;
}

static int32_t checked(const tokenizer_gguf *m, int64_t id)
{
    return id >= 0 && (uint64_t)id < m->n_tokens ? (int32_t)id : -1;
}

static int load_merges(tokenizer *t, const tokenizer_gguf *m, const char *what, shoal_err *err)
{
    segmenter *g = &t->seg;
    if (m->n_merges > TOK_MAX_TOKENS)
        return err_set(err, SHOAL_ELIMIT, "%s: tokenizer.ggml.merges: too many", what);
    if (tok_seg_merges_init(g, m->n_merges)) return err_nomem(err);
    for (size_t i = 0; i < m->n_merges; i++) {
        const char *s = m->merges[i],
                   *space = m->merge_lens[i] > 2 ? memchr(s + 1, ' ', m->merge_lens[i] - 1) : NULL;
        if (!space)
            return err_set(err, SHOAL_EFORMAT, "%s: tokenizer.ggml.merges[%zu]: not \"left right\"", what, i);
        size_t n_a = (size_t)(space - s), n_b = m->merge_lens[i] - n_a - 1;
        int32_t a = tok_vocab_find(g->voc, s, n_a), b = tok_vocab_find(g->voc, space + 1, n_b);
        uint64_t h = vocab_hash(vocab_hash(VOCAB_HASH_START, s, n_a), space + 1, n_b);
        int32_t both = tok_vocab_find_hashed(g->voc, h, s, n_a, space + 1, n_b);
        if (a < 0 || b < 0 || both < 0)
            return err_set(err, SHOAL_EFORMAT,
                           "%s: tokenizer.ggml.merges[%zu]: a piece is not in the vocabulary", what, i);
        tok_seg_merges_add(g, a, b, (uint32_t)i, both);
    }
    return 0;
}

static int load_gpt2(tokenizer *t, const tokenizer_gguf *m, const char *what, shoal_err *err)
{
    const char *pre = m->pre && m->pre[0] ? m->pre : "default";
    const struct pre_name *p = NULL;
    for (size_t i = 0; i < sizeof pre_names / sizeof *pre_names && !p; i++)
        if (!strcmp(pre, pre_names[i].name)) p = &pre_names[i];
    if (!p)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: tokenizer.ggml.pre: \"%.60s\" is not supported", what,
                       pre);
    t->seg.kind = SEG_BPE;
    t->seg.byte_level = true;
    t->seg.ignore_merges = p->ignore_merges;
    t->dec.kind = DEC_BYTES;
    tok_add_dec(t, DSTEP_BYTE_LEVEL);
    int rc = load_merges(t, m, what, err);
    for (size_t i = 0; rc == 0 && i < 4 && p->regex[i]; i++) rc = add_regex(t, p->regex[i], what, err);
    bool add_bos = m->add_bos >= 0 ? m->add_bos == 1 : p->add_bos;
    if (rc == 0) rc = tok_wrap_templates(t, add_bos ? t->bos : -1, m->add_eos == 1 ? t->eos : -1, -1, 1, err);
    return rc;
}

static int add_pre_class(tokenizer *t, bool (*is)(uint32_t), split_behavior b, shoal_err *err)
{
    pre_step *s = tok_add_pre(t);
    if (!s) return err_nomem(err);
    s->kind = PRE_CLASS;
    s->is = is;
    s->behavior = b;
    return 0;
}

static int load_bert(tokenizer *t, const tokenizer_gguf *m, shoal_err *err)
{
    segmenter *g = &t->seg;
    g->kind = SEG_WORDPIECE;
    memcpy(g->prefix, "##", 3);
    g->prefix_len = 2;
    g->max_chars = 100;
    g->unk = checked(m, m->unk);
    if (g->unk < 0) g->unk = tok_vocab_find(&t->voc, "[UNK]", 5);
    t->dec.kind = DEC_WORDPIECE;
    t->dec.cleanup = true;
    t->dec.mark = "##";
    t->dec.mark_len = 2;
    int rc = add_norm(t, NORM_BERT_CLEAN, err);
    if (rc == 0) rc = add_norm(t, NORM_BERT_CHINESE, err);
    if (rc == 0 && m->lowercase != 0) {
        rc = add_norm(t, NORM_FORM, err);
        if (rc == 0) rc = add_norm(t, NORM_STRIP_ACCENTS, err);
        if (rc == 0) rc = add_norm(t, NORM_LOWERCASE, err);
    }
    if (rc == 0) rc = add_pre_class(t, tok_cp_is_space, SPLIT_REMOVED, err);
    if (rc == 0) rc = add_pre_class(t, tok_cp_is_bert_punct, SPLIT_ISOLATED, err);
    int32_t cls = checked(m, m->cls), sep = checked(m, m->sep);
    if (cls < 0) cls = t->bos >= 0 ? t->bos : tok_vocab_find(&t->voc, "[CLS]", 5);
    if (sep < 0) sep = t->eos >= 0 ? t->eos : tok_vocab_find(&t->voc, "[SEP]", 5);
    return rc ? rc
              : tok_wrap_templates(t, m->add_bos == 0 ? -1 : cls, m->add_eos == 0 ? -1 : sep, -1, 1, err);
}

typedef struct scored {
    float score;
    uint32_t id;
} scored;

static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return x->score != y->score ? (x->score > y->score ? -1 : 1) : (x->id > y->id) - (x->id < y->id);
}

/* SentencePiece's BPE merges the pair whose piece scores best; equal scores share a rank. */
static int rank_scores(tokenizer *t, const tokenizer_gguf *m, shoal_err *err)
{
    scored *all = calloc(m->n_tokens, sizeof *all);
    t->seg.ranks = calloc(m->n_tokens, sizeof *t->seg.ranks);
    if (!all || !t->seg.ranks) {
        free(all);
        return err_nomem(err);
    }
    for (size_t i = 0; i < m->n_tokens; i++)
        all[i] = (scored){m->scores[i] == m->scores[i] ? m->scores[i] : 0, (uint32_t)i};
    qsort(all, m->n_tokens, sizeof *all, by_score);
    uint32_t rank = 0;
    for (size_t i = 0; i < m->n_tokens; i++) {
        if (i && all[i].score != all[i - 1].score) rank++;
        bool merges = !m->token_types ||
                      (m->token_types[all[i].id] != TYPE_CONTROL && m->token_types[all[i].id] != TYPE_BYTE);
        t->seg.ranks[all[i].id] = merges ? rank : UINT32_MAX;
    }
    free(all);
    return 0;
}

static int load_llama(tokenizer *t, const tokenizer_gguf *m, const char *what, shoal_err *err)
{
    if (!m->scores) return err_set(err, SHOAL_EFORMAT, "%s: tokenizer.ggml.scores: missing", what);
    segmenter *g = &t->seg;
    g->kind = SEG_SPM;
    g->byte_fallback = g->fuse_unk = true;
    g->unk = checked(m, m->unk);
    t->dec = (decoder){.kind = DEC_BYTES, .strip_first = 1, .strip_char = ' '};
    dec_step *meta = tok_add_dec(t, DSTEP_REPLACE);
    *meta = (dec_step){.kind = DSTEP_REPLACE, .from = META, .to = " ", .from_len = 3, .to_len = 1};
    tok_add_dec(t, DSTEP_BYTE_FALLBACK);
    int rc = rank_scores(t, m, err);
    if (rc == 0) rc = add_norm(t, NORM_PREPEND, err);
    if (rc == 0) rc = add_norm(t, NORM_REPLACE, err);
    if (rc) return rc;
    t->norm[0].content = t->norm[1].content = META;
    t->norm[0].content_len = t->norm[1].content_len = 3;
    t->norm[1].pattern = " ";
    t->norm[1].pattern_len = 1;
    return tok_wrap_templates(t, m->add_bos != 0 ? t->bos : -1, m->add_eos == 1 ? t->eos : -1, -1, 1, err);
}

int tokenizer_from_gguf(tokenizer **ret, const tokenizer_gguf *m, const char *what, shoal_err *err)
{
    const char *model = m->model ? m->model : "";
    bool gpt2 = !strcmp(model, "gpt2"), bert = !strcmp(model, "bert"), llama = !strcmp(model, "llama");
    if (!gpt2 && !bert && !llama)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: tokenizer.ggml.model: \"%.60s\" is not supported", what,
                       model);
    tokenizer *t = tok_new();
    if (!t) return err_nomem(err);
    int rc = load_pieces(t, m, bert, what, err);
    t->bos = checked(m, m->bos);
    t->eos = checked(m, m->eos);
    if (rc == 0)
        rc = gpt2 ? load_gpt2(t, m, what, err) : bert ? load_bert(t, m, err) : load_llama(t, m, what, err);
    if (rc == 0) {
        tok_seg_find_bytes(&t->seg);
        rc = tok_seal(t, err);
    }
    if (rc) {
        tokenizer_free(t);
        return rc;
    }
    *ret = t;
    return 0;
}
