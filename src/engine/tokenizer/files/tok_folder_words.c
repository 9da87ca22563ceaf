/* tok_folder_words.c: vocab.txt, and vocab.json with merges.txt, as the tokenizer.json that their class's
 * converter writes (huggingface/transformers, convert_slow_tokenizer.py). */
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "tokenizer/files/tok_folder.h"

enum { MAX_LINES = TOK_MAX_TOKENS };

/* The next line without its end; false after the last. An empty last line is none. */
static bool next_line(const char **at, const char *end, const char **ret, size_t *ret_len)
{
    if (*at >= end) return false;
    const char *eol = memchr(*at, '\n', (size_t)(end - *at));
    *ret = *at;
    *ret_len = (size_t)((eol ? eol : end) - *at);
    *at = eol ? eol + 1 : end;
    if (*ret_len && (*ret)[*ret_len - 1] == '\r') --*ret_len;
    return true;
}

static int line_error(const tok_folder *f, const char *name, size_t line, const char *why)
{
    return err_set(f->err, SHOAL_EFORMAT, "%s/%s: line %zu %s", f->dir, name, line, why);
}

static int wordpiece_vocab(const tok_folder *f, const buf *text, json_t *vocab)
{
    const char *at = text->data, *end = at + text->len, *line;
    size_t len;
    for (json_int_t id = 0; next_line(&at, end, &line, &len); id++) {
        if (id >= MAX_LINES || len > TOK_MAX_PIECE || memchr(line, 0, len) || !utf8_valid(line, len, NULL))
            return line_error(f, "vocab.txt", (size_t)id + 1, "is no piece of text");
        if (json_object_setn_new(vocab, line, len, json_integer(id))) return err_nomem(f->err);
    }
    return 0;
}

static const char *const bert_roles[][2] = {{"unk_token", "[UNK]"},
                                            {"sep_token", "[SEP]"},
                                            {"pad_token", "[PAD]"},
                                            {"cls_token", "[CLS]"},
                                            {"mask_token", "[MASK]"}};
static const char *const mpnet_roles[][2] = {
    {"unk_token", "[UNK]"}, {"sep_token", "</s>"}, {"pad_token", "<pad>"},  {"cls_token", "<s>"},
    {"bos_token", "<s>"},   {"eos_token", "</s>"}, {"mask_token", "<mask>"}};

/* {"type": ..., "sep": [text, id], "cls": [text, id]}, of the tokens that root has. */
static int set_ends(const tok_folder *f, json_t *root, const char *type, const char *cls, const char *sep)
{
    json_t *post = json_pack("{sssb}", "type", type, "trim_offsets", false), *o;
    size_t i;
    int rc = post && json_object_set_new(root, "post_processor", post) == 0 ? 0 : SHOAL_ENOMEM;
    json_array_foreach(json_object_get(root, "added_tokens"), i, o)
    {
        const char *text = json_string_value(json_object_get(o, "content"));
        json_int_t id = json_integer_value(json_object_get(o, "id"));
        if (rc == 0 && !strcmp(text, cls)) rc = json_object_set_new(post, "cls", json_pack("[sI]", text, id));
        if (rc == 0 && !strcmp(text, sep)) rc = json_object_set_new(post, "sep", json_pack("[sI]", text, id));
    }
    return rc ? err_nomem(f->err) : 0;
}

int tok_folder_wordpiece(const tok_folder *f, json_t **root)
{
    buf text = {0};
    json_t *vocab = json_object();
    int rc = vocab ? tok_folder_read(f, "vocab.txt", &text) : err_nomem(f->err);
    if (rc == 0) rc = wordpiece_vocab(f, &text, vocab);
    buf_done(&text);
    if (rc) {
        json_decref(vocab);
        return rc;
    }
    bool lower = tok_folder_flag(f, "do_lower_case", true), mpnet = !strcmp(f->kind, "mpnet");
    *root =
        json_pack("{s{sbsssbsb}s{ss}s{ssss}s{sssoss}}", "normalizer", "lowercase", lower, "type",
                  "BertNormalizer", "strip_accents", tok_folder_flag(f, "strip_accents", lower),
                  "handle_chinese_chars", tok_folder_flag(f, "tokenize_chinese_chars", true), "pre_tokenizer",
                  "type", "BertPreTokenizer", "decoder", "type", "WordPiece", "prefix", "##", "model", "type",
                  "WordPiece", "vocab", vocab, "unk_token", tok_folder_token(f, "unk_token", "[UNK]"));
    if (!*root) return err_nomem(f->err);
    rc = mpnet ? tok_folder_add_tokens(f, *root, vocab, mpnet_roles, sizeof mpnet_roles / sizeof *mpnet_roles)
               : tok_folder_add_tokens(f, *root, vocab, bert_roles, sizeof bert_roles / sizeof *bert_roles);
    return rc ? rc
              : set_ends(f, *root, mpnet ? "RobertaProcessing" : "BertProcessing",
                         tok_folder_token(f, "cls_token", mpnet ? "<s>" : "[CLS]"),
                         tok_folder_token(f, "sep_token", mpnet ? "</s>" : "[SEP]"));
}

/* ---- vocab.json and merges.txt ---- */

static int read_merges(const tok_folder *f, json_t **ret)
{
    buf text = {0};
    json_t *list = json_array();
    const char *line;
    size_t len, n = 0;
    int rc = list ? tok_folder_read(f, "merges.txt", &text) : err_nomem(f->err);
    const char *at = text.data, *end = at + text.len;
    while (rc == 0 && next_line(&at, end, &line, &len)) {
        n++;
        if (len == 0 || (n == 1 && len >= 8 && !memcmp(line, "#version", 8))) continue;
        if (n > MAX_LINES || len > 2 * TOK_MAX_PIECE || memchr(line, 0, len) || !utf8_valid(line, len, NULL))
            rc = line_error(f, "merges.txt", n, "is no pair of pieces");
        else if (json_array_append_new(list, json_stringn(line, len)))
            rc = err_nomem(f->err);
    }
    buf_done(&text);
    if (rc == 0)
        *ret = list;
    else
        json_decref(list);
    return rc;
}

#define QWEN2_REGEX                                                                                     \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" \
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CLIP_REGEX \
    "<\\|startoftext\\|>|<\\|endoftext\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"

/* A class of byte-level BPE. Special tokens that it names are there even where no file does. */
typedef struct bpe_class {
    const char *kind, *unk, *bos, *eos, *pad, *mask;
    bool ends;   /* <s> a </s></s> b </s> */
    bool begins; /* bos a */
} bpe_class;

static const bpe_class bpe_classes[] = {
    {"", NULL, NULL, NULL, NULL, NULL, false, false},
    {"gpt2", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", NULL, NULL, false, false},
    {"opt", "</s>", "</s>", "</s>", "<pad>", NULL, false, true},
    {"roberta", "<unk>", "<s>", "</s>", "<pad>", "<mask>", true, false},
    {"whisper", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", NULL, NULL, false, false},
    {"qwen2", NULL, NULL, "<|endoftext|>", "<|endoftext|>", NULL, false, false},
    {"clip", "<|endoftext|>", "<|startoftext|>", "<|endoftext|>", NULL, NULL, true, false},
};

static json_t *split_by(const char *regex, const char *behavior, bool invert)
{
    return json_pack("{sss[{sss{ss}sssb}{sssbsb}]}", "type", "Sequence", "pretokenizers", "type", "Split",
                     "pattern", "Regex", regex, "behavior", behavior, "invert", invert, "type", "ByteLevel",
                     "add_prefix_space", false, "use_regex", false);
}

static json_t *pre_of(const tok_folder *f)
{
    if (!strcmp(f->kind, "qwen2")) return split_by(QWEN2_REGEX, "Isolated", false);
    if (!strcmp(f->kind, "clip")) return split_by(CLIP_REGEX, "Removed", true);
    return json_pack("{sssb}", "type", "ByteLevel", "add_prefix_space",
                     tok_folder_flag(f, "add_prefix_space", false));
}

static json_t *normalizer_of(const tok_folder *f)
{
    if (!strcmp(f->kind, "qwen2")) return json_pack("{ss}", "type", "NFC");
    if (strcmp(f->kind, "clip")) return json_null();
    return json_pack("{sss[{ss}{sss{ss}ss}{ss}]}", "type", "Sequence", "normalizers", "type", "NFC", "type",
                     "Replace", "pattern", "Regex", "\\s+", "content", " ", "type", "Lowercase");
}

/* {"type": "TemplateProcessing"} of tokens before and behind the text; a pair's second text follows the same
 * way. What is no token of the vocabulary is left out. */
static int set_template(const tok_folder *f, json_t *root, const char *const *before, const char *after)
{
    json_t *post =
        json_pack("{sss[]s[]s{}}", "type", "TemplateProcessing", "single", "pair", "special_tokens");
    json_t *ids = json_object_get(post, "special_tokens"), *o;
    size_t i;
    int rc = post && json_object_set_new(root, "post_processor", post) == 0 ? 0 : SHOAL_ENOMEM;
    json_array_foreach(json_object_get(root, "added_tokens"), i, o)
    {
        json_t *id = json_object_get(o, "id");
        if (rc == 0)
            rc = json_object_set_new(ids, json_string_value(json_object_get(o, "content")),
                                     json_pack("{s[O]}", "ids", id));
    }
    for (int pair = 0; rc == 0 && pair < 2; pair++) {
        json_t *list = json_object_get(post, pair ? "pair" : "single");
        for (int text = 0; rc == 0 && text <= pair; text++) {
            for (const char *const *b = before; rc == 0 && *b; b++)
                if (json_object_get(ids, *b))
                    rc = json_array_append_new(
                        list, json_pack("{s{sssi}}", "SpecialToken", "id", *b, "type_id", text));
            if (rc == 0)
                rc = json_array_append_new(
                    list, json_pack("{s{sssi}}", "Sequence", "id", text ? "B" : "A", "type_id", text));
            if (rc == 0 && after && json_object_get(ids, after))
                rc = json_array_append_new(
                    list, json_pack("{s{sssi}}", "SpecialToken", "id", after, "type_id", text));
        }
    }
    return rc ? err_nomem(f->err) : 0;
}

static int set_post(const tok_folder *f, json_t *root, const bpe_class *c)
{
    const char *bos = tok_folder_token(f, "bos_token", c->bos),
               *eos = tok_folder_token(f, "eos_token", c->eos);
    if (c->ends) {
        bool roberta = !strcmp(c->kind, "roberta");
        int rc =
            set_ends(f, root, "RobertaProcessing", roberta ? tok_folder_token(f, "cls_token", c->bos) : bos,
                     roberta ? tok_folder_token(f, "sep_token", c->eos) : eos);
        json_t *post = json_object_get(root, "post_processor");
        if (rc == 0 && (json_object_set_new(post, "trim_offsets", json_boolean(roberta)) ||
                        json_object_set_new(post, "add_prefix_space",
                                            json_boolean(tok_folder_flag(f, "add_prefix_space", false)))))
            rc = err_nomem(f->err);
        return rc;
    }
    const char *const whisper[] = {"<|startoftranscript|>", "<|notimestamps|>", NULL}, *const begin[] = {
                                                                                           bos, NULL};
    if (!strcmp(c->kind, "whisper")) return set_template(f, root, whisper, eos);
    if (tok_folder_flag(f, "add_bos_token", c->begins) && bos) return set_template(f, root, begin, NULL);
    return 0;
}

static int bpe_root(const tok_folder *f, const bpe_class *c, json_t *vocab, json_t **root)
{
    json_t *merges;
    int rc = read_merges(f, &merges);
    if (rc) return rc;
    const char *unk = strcmp(c->kind, "qwen2") ? tok_folder_token(f, "unk_token", c->unk) : NULL;
    *root = json_pack("{sosos{ss}s{sssOsoss*ss}}", "normalizer", normalizer_of(f), "pre_tokenizer", pre_of(f),
                      "decoder", "type", "ByteLevel", "model", "type", "BPE", "vocab", vocab, "merges",
                      merges, "unk_token", unk && json_object_get(vocab, unk) ? unk : NULL,
                      "end_of_word_suffix", strcmp(c->kind, "clip") ? "" : "</w>");
    if (!*root) return err_nomem(f->err);
    /* Of files that nothing is said about, where they have it. */
    const char *end_of_text = *c->kind || !json_object_get(vocab, "<|endoftext|>") ? NULL : "<|endoftext|>";
    const char *const roles[][2] = {{"unk_token", c->unk ? c->unk : end_of_text},
                                    {"bos_token", c->bos},
                                    {"eos_token", c->eos},
                                    {"pad_token", c->pad},
                                    {"mask_token", c->mask},
                                    {"cls_token", c->ends ? c->bos : NULL},
                                    {"sep_token", c->ends ? c->eos : NULL}};
    rc = tok_folder_add_tokens(f, *root, vocab, roles, sizeof roles / sizeof *roles);
    return rc ? rc : set_post(f, *root, c);
}

int tok_folder_bpe(const tok_folder *f, json_t **root)
{
    const bpe_class *c = NULL;
    for (size_t i = 0; i < sizeof bpe_classes / sizeof *bpe_classes; i++)
        if (!strcmp(f->kind, bpe_classes[i].kind)) c = &bpe_classes[i];
    if (!c)
        return err_set(f->err, SHOAL_EUNSUPPORTED,
                       "%s: vocab.json and merges.txt of a model like \"%s\" are not supported", f->dir,
                       f->kind);
    buf text = {0};
    json_t *vocab = NULL;
    char *path = tok_folder_path(f, "vocab.json");
    int rc = path ? tok_folder_read(f, "vocab.json", &text) : err_nomem(f->err);
    if (rc == 0) rc = json_parse(&vocab, text.data, text.len, path, f->err);
    if (rc == 0 && !json_is_object(vocab)) rc = err_set(f->err, SHOAL_EFORMAT, "%s: must be an object", path);
    if (rc == 0) rc = bpe_root(f, c, vocab, root);
    buf_done(&text);
    json_decref(vocab);
    return rc;
}
