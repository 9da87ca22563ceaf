/* tok_gguf.c: a tokenizer from GGUF metadata, as the field's converter writes it. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer/files/tok_gguf.h"
#include "tokenizer/tok_spm.h"

#define META "\xE2\x96\x81"

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER = 4, TYPE_BYTE = 6 };

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

/* Pieces of more than a byte are made by merging. */
static bool needs_merges(const tokenizer_gguf *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_tokens; i++) n += !is_added(m, i);
    return n > 256;
}

static int load_merges(tokenizer *t, const tokenizer_gguf *m, const char *what, shoal_err *err)
{
    segmenter *g = &t->seg;
    if (m->n_merges == 0 && needs_merges(m))
        return err_set(err, SHOAL_EFORMAT, "%s: tokenizer.ggml.merges: missing, and %zu tokens need them",
                       what, m->n_tokens);
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

/* Characters rather than letters of bytes: Gemma's way, merges all the same. */
static int set_raw(tokenizer *t, shoal_err *err)
{
    norm_step *s = tok_add_norm(t);
    if (!s) return err_nomem(err);
    *s = (norm_step){
        .kind = NORM_REPLACE, .pattern = " ", .pattern_len = 1, .content = META, .content_len = 3};
    t->seg.byte_fallback = true;
    dec_step *meta = tok_add_dec(t, DSTEP_REPLACE);
    *meta = (dec_step){.kind = DSTEP_REPLACE, .from = META, .to = " ", .from_len = 3, .to_len = 1};
    tok_add_dec(t, DSTEP_BYTE_FALLBACK);
    return 0;
}

static int load_gpt2(tokenizer *t, const tokenizer_gguf *m, const char *what, shoal_err *err)
{
    const char *none = strcmp(m->model, "gemma4") ? "default" : "gemma4";
    const char *name = m->pre && m->pre[0] ? m->pre : none;
    const tok_pre_name *p = tok_gguf_pre(name);
    if (!p)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: tokenizer.ggml.pre: \"%.60s\" is not supported", what,
                       name);
    bool raw = p->flags & PRE_RAW;
    t->seg.kind = SEG_BPE;
    t->seg.byte_level = !raw;
    t->seg.ignore_merges = p->flags & PRE_IGNORE_MERGES;
    t->dec.kind = DEC_BYTES;
    t->dec.added_as_is = !raw; /* DeepSeek's "\u00fc" is that letter, not the byte FC */
    if (!raw) tok_add_dec(t, DSTEP_BYTE_LEVEL);
    int rc = raw ? set_raw(t, err) : 0;
    if (rc == 0) rc = load_merges(t, m, what, err);
    for (size_t i = 0; rc == 0 && i < PRE_MAX_REGEX && p->regex[i]; i++)
        rc = add_regex(t, p->regex[i], what, err);
    bool add_bos = m->add_bos >= 0 ? m->add_bos == 1 : (p->flags & PRE_ADD_BOS) != 0;
    bool pairs = p->flags & PRE_ROBERTA;
    if (rc == 0)
        rc = tok_wrap_templates(t, add_bos ? t->bos : -1, m->add_eos == 1 ? t->eos : -1, pairs ? t->eos : -1,
                                !pairs, err);
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

/* "llama" joins by score, "t5" is Unigram; both keep SentencePiece's types and settings. */
static int load_spm(tokenizer *t, const tokenizer_gguf *m, bool bpe, const char *what, shoal_err *err)
{
    if (!m->scores) return err_set(err, SHOAL_EFORMAT, "%s: tokenizer.ggml.scores: missing", what);
    if (m->n_tokens > TOK_MAX_TOKENS) return err_set(err, SHOAL_ELIMIT, "%s: too many tokens", what);
    spm_vocab v = {.pieces = calloc(m->n_tokens + 1, sizeof *v.pieces),
                   .n = m->n_tokens,
                   .bpe = bpe,
                   .spaces = {.dummy = m->space_prefix ? m->space_prefix > 0 : bpe,
                              .suffix = m->space_suffix,
                              .remove_extra = m->remove_extra_spaces},
                   .charsmap = m->charsmap,
                   .charsmap_len = m->charsmap_len,
                   .unk = checked(m, m->unk),
                   .bos = checked(m, m->bos),
                   .eos = checked(m, m->eos)};
    if (!v.pieces) return err_nomem(err);
    for (size_t i = 0; i < v.n; i++) {
        int32_t type = m->token_types ? m->token_types[i] : is_added(m, i) ? TYPE_CONTROL : TYPE_NORMAL;
        bool known = type >= SPM_NORMAL && type <= SPM_BYTE;
        v.pieces[i] =
            (spm_piece){m->tokens[i], m->token_lens[i], m->scores[i], known ? (spm_type)type : SPM_UNUSED};
    }
    int rc = tok_spm_build(t, &v, what, err);
    free(v.pieces);
    if (rc) return rc;
    bool add_bos = m->add_bos >= 0 ? m->add_bos == 1 : bpe,
         add_eos = m->add_eos >= 0 ? m->add_eos == 1 : !bpe;
    bool pairs = !bpe && add_bos; /* XLM-R: <s> a </s></s> b </s> */
    return tok_wrap_templates(t, add_bos ? t->bos : -1, add_eos ? t->eos : -1, pairs ? t->eos : -1, bpe, err);
}

/* Bytes, the longest token first; the file spells those that are no text as "\n", "\x0a". */
static int load_rwkv(tokenizer *t, shoal_err *err)
{
    t->seg.kind = SEG_GREEDY;
    t->seg.unk = -1;
    t->dec.kind = DEC_BYTES;
    tok_add_dec(t, DSTEP_UNESCAPE);
    return tok_wrap_templates(t, -1, -1, -1, 1, err);
}

static int tok_gguf_load(tokenizer *t, const tokenizer_gguf *m, const char *what, shoal_err *err)
{
    const char *model = m->model ? m->model : "";
    bool llama = !strcmp(model, "llama");
    if (llama || !strcmp(model, "t5")) return load_spm(t, m, llama, what, err);
    bool bert = !strcmp(model, "bert");
    if (!bert && strcmp(model, "gpt2") && strcmp(model, "gemma4") && strcmp(model, "rwkv"))
        return err_set(
            err, SHOAL_EUNSUPPORTED,
            "%s: tokenizer.ggml.model: \"%.60s\" is not supported (llama, gpt2, bert, t5 and rwkv are)", what,
            model);
    int rc = load_pieces(t, m, bert, what, err);
    t->bos = checked(m, m->bos);
    t->eos = checked(m, m->eos);
    if (rc) return rc;
    if (bert) return load_bert(t, m, err);
    return strcmp(model, "rwkv") ? load_gpt2(t, m, what, err) : load_rwkv(t, err);
}

/* As in llama.cpp, where texts begin with the token; encoders have no chats. */
static bool begins_chats(const tokenizer *t)
{
    return t->n_single > 0 && t->single[0].kind == TPL_TOKEN && t->bos >= 0 && t->single[0].id == t->bos;
}

int tokenizer_from_gguf(tokenizer **ret, const tokenizer_gguf *m, const char *what, shoal_err *err)
{
    tokenizer *t = tok_new();
    if (!t) return err_nomem(err);
    int rc = tok_gguf_load(t, m, what, err);
    if (rc == 0) {
        t->begins_chats = begins_chats(t);
        tok_seg_find_bytes(&t->seg);
        rc = tok_seal(t, err);
    }
    if (rc == 0 && t->seg.kind == SEG_GREEDY) rc = tok_build_trie(t, t->voc.n, NULL, err);
    if (rc) {
        tokenizer_free(t);
        return rc;
    }
    *ret = t;
    return 0;
}
