/* tok_folder_spm.c: a SentencePiece model in a folder, with what its class adds to it: pieces, their order,
 * the tokens around a text (huggingface/transformers, tokenization_*.py). */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "tokenizer/files/tok_folder.h"
#include "tokenizer/files/tok_json.h"

enum { T5_EXTRA = 100, SPARE = T5_EXTRA + 8 };

/* A piece that the .model has not, or only at another place. */
static void tok_folder_spm_put(spm_vocab *v, const char *text, spm_type type)
{
    v->pieces[v->n++] = (spm_piece){text, strlen(text), 0, type};
}

static int32_t tok_folder_spm_find(const spm_vocab *v, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    for (size_t i = 0; text && i < v->n; i++)
        if (v->pieces[i].len == len && !memcmp(v->pieces[i].text, text, len)) return (int32_t)i;
    return -1;
}

/* The token of a role as a control piece, added when the model has it not. */
static int32_t control(const tok_folder *f, spm_vocab *v, const char *role, const char *def)
{
    const char *text = tok_folder_token(f, role, def);
    int32_t id = tok_folder_spm_find(v, text);
    if (id < 0) {
        id = (int32_t)v->n;
        tok_folder_spm_put(v, text, SPM_CONTROL);
    }
    if (v->pieces[id].type != SPM_UNKNOWN) v->pieces[id].type = SPM_CONTROL;
    return id;
}

/* fairseq's order: its own tokens first, then the model's pieces from the third on. */
static int fairseq(const tok_folder *f, spm_vocab *v, const char *const *first, size_t n)
{
    if (v->n < 3) return err_set(f->err, SHOAL_EFORMAT, "%s: the model has fewer than three pieces", f->dir);
    memmove(v->pieces + n, v->pieces + 3, (v->n - 3) * sizeof *v->pieces);
    v->n += n - 3;
    for (size_t i = 0; i < n; i++)
        v->pieces[i] =
            (spm_piece){first[i], strlen(first[i]), 0, strcmp(first[i], "<unk>") ? SPM_CONTROL : SPM_UNKNOWN};
    v->unk = 3;
    return 0;
}

/* "<extra_id_99>" to "<extra_id_0>" behind the last piece. */
static int t5_extra(const tok_folder *f, spm_vocab *v)
{
    json_int_t n = T5_EXTRA;
    const json_t *o = json_object_get(f->config, "extra_ids");
    if (json_is_integer(o)) n = json_integer_value(o);
    if (n < 0 || n > T5_EXTRA)
        return err_set(f->err, SHOAL_EUNSUPPORTED, "%s: extra_ids must be 0 to %d", f->dir, T5_EXTRA);
    if (tok_folder_spm_find(v, "<extra_id_0>") >= 0) return 0;
    while (n-- > 0) {
        char *text = arena_printf(f->mem, "<extra_id_%d>", (int)n);
        if (!text) return err_nomem(f->err);
        tok_folder_spm_put(v, text, SPM_CONTROL);
    }
    return 0;
}

/* ALBERT and DeBERTa change the text before SentencePiece sees it. */
static int add_norm(const tok_folder *f, tokenizer *t, const char *json)
{
    json_t *o = json_loads(json, 0, NULL);
    int rc = o ? tok_json_normalizer(t, o, "normalizer", f->err) : err_nomem(f->err);
    json_decref(o);
    return rc;
}

static int albert_norm(const tok_folder *f, tokenizer *t)
{
    int rc = add_norm(f, t, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"``\"},\"content\":\"\\\"\"}");
    if (rc == 0)
        rc = add_norm(f, t, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"''\"},\"content\":\"\\\"\"}");
    if (rc == 0 && !tok_folder_flag(f, "keep_accents", false)) {
        rc = add_norm(f, t, "{\"type\":\"NFKD\"}");
        if (rc == 0) rc = add_norm(f, t, "{\"type\":\"StripAccents\"}");
    }
    if (rc == 0 && tok_folder_flag(f, "do_lower_case", true)) rc = add_norm(f, t, "{\"type\":\"Lowercase\"}");
    return rc;
}

typedef struct ends {
    int32_t head, tail, mid;
    uint8_t type_b;
} ends;

static int bert_like(const tok_folder *f, tokenizer *t, spm_vocab *v, ends *e)
{
    bool albert = !strcmp(f->kind, "albert");
    control(f, v, "pad_token", albert ? "<pad>" : "[PAD]");
    e->head = control(f, v, "cls_token", "[CLS]");
    e->tail = control(f, v, "sep_token", "[SEP]");
    control(f, v, "mask_token", "[MASK]");
    v->bos = e->head;
    v->eos = e->tail;
    e->type_b = 1;
    if (albert) return albert_norm(f, t);
    if (tok_folder_flag(f, "split_by_punct", false))
        return err_set(f->err, SHOAL_EUNSUPPORTED, "%s: split_by_punct is not supported", f->dir);
    return tok_folder_flag(f, "do_lower_case", false) ? add_norm(f, t, "{\"type\":\"Lowercase\"}") : 0;
}

static int roberta_like(const tok_folder *f, spm_vocab *v, ends *e)
{
    static const char *const xlmr[] = {"<s>", "<pad>", "</s>", "<unk>"};
    static const char *const camembert[] = {"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"};
    bool plain = !strcmp(f->kind, "xlmr");
    int rc = plain ? fairseq(f, v, xlmr, 4) : fairseq(f, v, camembert, 5);
    if (rc) return rc;
    if (!plain && v->n > 6) { /* the model's own <s> and </s> follow fairseq's */
        v->pieces[5].type = v->pieces[6].type = SPM_CONTROL;
    }
    v->bos = e->head = control(f, v, "cls_token", "<s>");
    v->eos = e->tail = e->mid = control(f, v, "sep_token", "</s>");
    control(f, v, "mask_token", "<mask>");
    return 0;
}

static int apply_kind(const tok_folder *f, tokenizer *t, spm_vocab *v, ends *e)
{
    if (!strcmp(f->kind, "albert") || !strcmp(f->kind, "deberta")) return bert_like(f, t, v, e);
    if (!strcmp(f->kind, "xlmr") || !strcmp(f->kind, "camembert")) return roberta_like(f, v, e);
    if (!strcmp(f->kind, "t5")) {
        v->eos = e->tail = control(f, v, "eos_token", "</s>");
        return t5_extra(f, v);
    }
    if (!strcmp(f->kind, "llama")) {
        e->head = tok_folder_flag(f, "add_bos_token", true) ? v->bos : -1;
        e->tail = tok_folder_flag(f, "add_eos_token", false) ? v->eos : -1;
        e->type_b = 1;
        return 0;
    }
    if (!*f->kind) return 0;
    return err_set(f->err, SHOAL_EUNSUPPORTED,
                   "%s: a SentencePiece model of a class like \"%s\" is not supported", f->dir, f->kind);
}

/* Of two entries for one id, the files' own stays; ids from n_model on are no pieces of the model. */
static int settle_added(tokenizer *t, size_t n_first, size_t n_model, shoal_err *err)
{
    uint8_t *listed = calloc(t->voc.n + 1, 1);
    t->seg.foreign = calloc(t->voc.n + 1, 1);
    if (!listed || !t->seg.foreign) {
        free(listed);
        return err_nomem(err);
    }
    for (size_t i = n_first; i < t->n_added; i++) listed[t->added[i].id] = 1;
    size_t kept = 0;
    for (size_t i = 0; i < t->n_added; i++)
        if (i >= n_first || !listed[t->added[i].id]) t->added[kept++] = t->added[i];
    t->n_added = kept;
    for (size_t id = n_model; id < t->voc.n; id++) t->seg.foreign[id] = 1;
    free(listed);
    return 0;
}

/* added_tokens_decoder and added_tokens.json: how the tokens that are there are taken, and those that are
 * not. */
static int add_listed(const tok_folder *f, tokenizer *t)
{
    json_t *root = json_object(), *vocab = json_object(), *o;
    size_t i, n_first = t->n_added, n_model = t->voc.n;
    int rc = root && vocab ? tok_folder_add_tokens(f, root, vocab, NULL, 0) : err_nomem(f->err);
    const json_t *list = json_object_get(root, "added_tokens");
    added_token *all = rc ? NULL : arena_alloc(t->mem, (n_first + json_array_size(list) + 1) * sizeof *all);
    if (rc == 0 && !all) rc = err_nomem(f->err);
    if (rc == 0 && n_first) memcpy(all, t->added, n_first * sizeof *all);
    if (rc == 0) t->added = all;
    json_array_foreach(list, i, o)
    {
        if (rc == 0) rc = tok_json_add_token(t, o, i, f->dir, f->err);
    }
    json_decref(root);
    json_decref(vocab);
    return rc ? rc : settle_added(t, n_first, n_model, f->err);
}

/* The mask of these classes takes the space before it. */
static void strip_mask(const tok_folder *f, tokenizer *t)
{
    const char *mask = tok_folder_token(
        f, "mask_token", !strcmp(f->kind, "xlmr") || !strcmp(f->kind, "camembert") ? "<mask>" : "[MASK]");
    bool strips = *f->kind && strcmp(f->kind, "t5") && strcmp(f->kind, "llama");
    for (size_t i = 0; strips && i < t->n_added; i++)
        if (!strcmp(t->added[i].text, mask)) t->added[i].lstrip = true;
}

/* The pieces in the class's order; they borrow from data. Norm steps of the class go to t. */
static int read_model(const tok_folder *f, const char *file, buf *data, tokenizer *t, spm_vocab *v, ends *e)
{
    char *path = tok_folder_path(f, file);
    int rc = path ? tok_folder_read(f, file, data) : err_nomem(f->err);
    if (rc == 0) rc = tok_spm_parse(v, f->mem, data->data, data->len, SPARE, path, f->err);
    return rc == 0 ? apply_kind(f, t, v, e) : rc;
}

int tok_folder_spm(const tok_folder *f, const char *file, tokenizer *t)
{
    buf data = {0};
    spm_vocab v;
    ends e = {-1, -1, -1, 0};
    int rc = read_model(f, file, &data, t, &v, &e);
    if (rc == 0) rc = tok_spm_build(t, &v, f->dir, f->err);
    if (rc == 0) strip_mask(f, t);
    if (rc == 0) rc = add_listed(f, t);
    if (rc == 0) rc = tok_wrap_templates(t, e.head, e.tail, e.mid, e.type_b, f->err);
    buf_done(&data);
    return rc;
}

/* ---- in the words of GGUF ---- */

typedef struct meta {
    const tok_folder *f;
    arena *mem;
    tokenizer_gguf *to;
    const char **tokens;
    size_t *lens;
    float *scores;
    int32_t *types;
} meta;

static int meta_init(meta *w, size_t n)
{
    w->tokens = arena_alloc(w->mem, (n + 1) * sizeof *w->tokens);
    w->lens = arena_alloc(w->mem, (n + 1) * sizeof *w->lens);
    w->scores = arena_alloc(w->mem, (n + 1) * sizeof *w->scores);
    w->types = arena_alloc(w->mem, (n + 1) * sizeof *w->types);
    if (!w->tokens || !w->lens || !w->scores || !w->types) return err_nomem(w->f->err);
    w->to->n_tokens = n;
    w->to->tokens = w->tokens;
    w->to->token_lens = w->lens;
    w->to->scores = w->scores;
    w->to->token_types = w->types;
    return 0;
}

static int meta_put(meta *w, size_t id, const char *text, size_t len, float score, spm_type type)
{
    if (!(w->tokens[id] = arena_strndup(w->mem, text, len))) return err_nomem(w->f->err);
    w->lens[id] = len;
    w->scores[id] = score;
    w->types[id] = (int32_t)type;
    return 0;
}

/* The pieces, then what other files add, then names for ids that nothing has. */
static int meta_pieces(meta *w, const spm_vocab *v, const json_t *added, size_t n)
{
    int rc = meta_init(w, n);
    size_t i;
    json_t *o;
    for (size_t id = 0; rc == 0 && id < n; id++) {
        char gap[32];
        const spm_piece *p = id < v->n ? &v->pieces[id] : NULL;
        snprintf(gap, sizeof gap, "[PAD%zu]", id);
        rc = p ? meta_put(w, id, p->text, p->len, p->score, p->type)
               : meta_put(w, id, gap, strlen(gap), -1e6f, SPM_UNUSED);
    }
    json_array_foreach(added, i, o)
    {
        size_t id = (size_t)json_integer_value(json_object_get(o, "id"));
        const char *text = json_string_value(json_object_get(o, "content"));
        spm_type type = json_is_true(json_object_get(o, "special")) ? SPM_CONTROL : SPM_USER;
        bool unknown = id < v->n && v->pieces[id].type == SPM_UNKNOWN;
        if (rc == 0) rc = meta_put(w, id, text, strlen(text), 0, unknown ? SPM_UNKNOWN : type);
    }
    return rc;
}

static int meta_settings(meta *w, const spm_vocab *v, const ends *e)
{
    tokenizer_gguf *to = w->to;
    to->model = v->bpe ? "llama" : "t5";
    to->bos = v->bos;
    to->eos = v->eos;
    to->unk = v->unk;
    to->pad = to->cls = to->sep = to->mask = -1;
    to->add_bos = e->head >= 0;
    to->add_eos = e->tail >= 0;
    to->space_prefix = v->spaces.dummy ? 1 : -1;
    to->space_suffix = v->spaces.suffix;
    to->remove_extra_spaces = v->spaces.remove_extra;
    to->charsmap_len = v->charsmap_len;
    if (v->charsmap) to->charsmap = arena_strndup(w->mem, v->charsmap, v->charsmap_len);
    return v->charsmap && !to->charsmap ? err_nomem(w->f->err) : 0;
}

int tok_folder_spm_meta(const tok_folder *f, const char *file, size_t n_least, arena *mem,
                        tokenizer_gguf *ret)
{
    buf data = {0};
    spm_vocab v;
    ends e = {-1, -1, -1, 0};
    meta w = {.f = f, .mem = mem, .to = ret};
    json_t *root = json_object(), *vocab = json_object(), *o;
    size_t i, n = 0;
    int rc = root && vocab ? read_model(f, file, &data, NULL, &v, &e) : err_nomem(f->err);
    if (rc == 0) rc = tok_folder_add_tokens(f, root, vocab, NULL, 0);
    if (rc == 0) n = v.n > n_least ? v.n : n_least;
    const json_t *added = json_object_get(root, "added_tokens");
    json_array_foreach(added, i, o)
    {
        size_t id = (size_t)json_integer_value(json_object_get(o, "id"));
        if (id >= n) n = id + 1;
    }
    if (rc == 0) rc = meta_pieces(&w, &v, added, n);
    if (rc == 0) rc = meta_settings(&w, &v, &e);
    json_decref(root);
    json_decref(vocab);
    buf_done(&data);
    return rc;
}

/* ---- Marian: the pieces of source.spm with the ids of vocab.json ---- */

/* v's pieces by the ids of vocab.json, those of the target language as never found in text. */
static int marian_pieces(const tok_folder *f, const json_t *ids, const spm_vocab *source, spm_vocab *ret)
{
    const char *key;
    json_t *o, *vocab = (json_t *)ids;
    size_t n = 0;
    json_object_foreach(vocab, key, o)
    {
        json_int_t id = json_is_integer(o) ? json_integer_value(o) : -1;
        if (id < 0 || id >= TOK_MAX_TOKENS)
            return err_set(f->err, SHOAL_EFORMAT, "%s/vocab.json: \"%.40s\": an id is expected", f->dir, key);
        if ((size_t)id >= n) n = (size_t)id + 1;
    }
    *ret = (spm_vocab){.pieces = arena_alloc(f->mem, (n + 1) * sizeof *ret->pieces),
                       .n = n,
                       .spaces = source->spaces,
                       .charsmap = source->charsmap,
                       .charsmap_len = source->charsmap_len,
                       .unk = -1,
                       .bos = -1,
                       .eos = -1};
    if (!ret->pieces) return err_nomem(f->err);
    for (size_t i = 0; i < n; i++) ret->pieces[i] = (spm_piece){"", 0, 0, SPM_UNUSED};
    json_object_foreach(vocab, key, o)
    {
        spm_piece *p = &ret->pieces[json_integer_value(o)];
        size_t len = strlen(key);
        bool language = len > 4 && !strncmp(key, ">>", 2) && !strcmp(key + len - 2, "<<");
        *p = (spm_piece){key, len, 0, language ? SPM_CONTROL : SPM_UNUSED};
    }
    for (size_t i = 0; i < source->n; i++) {
        const spm_piece *p = &source->pieces[i];
        const json_t *id = json_object_getn(ids, p->text, p->len);
        if (!id) continue;
        ret->pieces[json_integer_value(id)].score = p->score;
        ret->pieces[json_integer_value(id)].type = p->type;
    }
    return 0;
}

static int32_t marian_control(const tok_folder *f, const json_t *ids, spm_vocab *v, const char *role,
                              const char *def)
{
    const json_t *id = json_object_get(ids, tok_folder_token(f, role, def));
    if (!id) return -1;
    spm_piece *p = &v->pieces[json_integer_value(id)];
    if (p->type != SPM_UNKNOWN) p->type = SPM_CONTROL;
    return (int32_t)json_integer_value(id);
}

static int marian_build(const tok_folder *f, const json_t *ids, const spm_vocab *source, tokenizer *t)
{
    spm_vocab v;
    int rc = marian_pieces(f, ids, source, &v);
    if (rc) return rc;
    v.bpe = source->bpe;
    v.eos = marian_control(f, ids, &v, "eos_token", "</s>");
    v.unk = marian_control(f, ids, &v, "unk_token", "<unk>");
    if (v.unk >= 0) v.pieces[v.unk].type = SPM_UNKNOWN;
    marian_control(f, ids, &v, "pad_token", "<pad>");
    rc = tok_spm_build(t, &v, f->dir, f->err);
    return rc ? rc : tok_wrap_templates(t, -1, v.eos, -1, 0, f->err);
}

int tok_folder_marian(const tok_folder *f, tokenizer *t)
{
    buf data = {0}, text = {0};
    json_t *ids = NULL;
    spm_vocab source;
    char *path = tok_folder_path(f, "source.spm"), *vocab = tok_folder_path(f, "vocab.json");
    int rc = path && vocab ? tok_folder_read(f, "source.spm", &data) : err_nomem(f->err);
    if (rc == 0) rc = tok_folder_read(f, "vocab.json", &text);
    if (rc == 0) rc = tok_spm_parse(&source, f->mem, data.data, data.len, 0, path, f->err);
    if (rc == 0) rc = json_parse(&ids, text.data, text.len, vocab, f->err);
    if (rc == 0 && !json_is_object(ids)) rc = err_set(f->err, SHOAL_EFORMAT, "%s: must be an object", vocab);
    if (rc == 0) rc = marian_build(f, ids, &source, t);
    json_decref(ids);
    buf_done(&text);
    buf_done(&data);
    return rc;
}
