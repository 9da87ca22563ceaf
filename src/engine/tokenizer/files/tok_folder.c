/* tok_folder.c: which files a folder has, which class they belong to, and what its special tokens are. */
#include "tokenizer/files/tok_folder.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/hub_file.h"
#include "json/json.h"
#include "tokenizer/files/tok_json.h"

enum { FILE_MAX = 256 << 20, CONFIG_MAX = 64 << 20 };

char *tok_folder_path(const tok_folder *f, const char *name)
{
    return arena_printf(f->mem, "%s/%s", f->dir, name);
}

bool tok_folder_has(const tok_folder *f, const char *name)
{
    char *path = tok_folder_path(f, name);
    return path && file_exists(path);
}

int tok_folder_read(const tok_folder *f, const char *name, buf *out)
{
    char *path = tok_folder_path(f, name);
    if (!path) return err_nomem(f->err);
    const char *dot = strrchr(name, '.');
    bool is_json = dot && strcmp(dot, ".json") == 0;
    int rc =
        is_json ? hub_file_read_json(out, path, FILE_MAX, f->err) : file_read(out, path, FILE_MAX, f->err);
    if (rc == 0) rc = hub_file_check(out->data, out->len, path, f->err);
    if (rc == 0 && buf_reserve(out, 1)) rc = err_nomem(f->err); /* an empty file is a text, too */
    return rc;
}

bool tok_folder_flag(const tok_folder *f, const char *key, bool def)
{
    return tok_json_bool(f->config, key, def);
}

/* "[CLS]", or {"content": "[CLS]", ...}. */
static const char *token_text(const json_t *o, const char *role)
{
    const json_t *v = json_object_get(o, role);
    return json_string_value(json_is_object(v) ? json_object_get(v, "content") : v);
}

const char *tok_folder_token(const tok_folder *f, const char *role, const char *def)
{
    const char *s = token_text(f->config, role);
    if (!s) s = token_text(f->special, role);
    return s ? s : def;
}

/* ---- what kind of model it is ---- */

/* The class in tokenizer_config.json or the type in config.json begins with the first; the kind is the
 * second. */
static const char *const kinds[][2] = {
    {"Bert", "bert"},
    {"bert", "bert"},
    {"DistilBert", "bert"},
    {"distilbert", "bert"},
    {"Electra", "bert"},
    {"electra", "bert"},
    {"MobileBert", "bert"},
    {"mobilebert", "bert"},
    {"ConvBert", "bert"},
    {"MPNet", "mpnet"},
    {"mpnet", "mpnet"},
    {"Roberta", "roberta"},
    {"roberta", "roberta"},
    {"Bart", "roberta"},
    {"bart", "roberta"},
    {"LED", "roberta"},
    {"Longformer", "roberta"},
    {"longformer", "roberta"},
    {"Blenderbot", "roberta"},
    {"GPT2", "gpt2"},
    {"gpt2", "gpt2"},
    {"gpt_neo", "gpt2"},
    {"GPTNeoX", "gpt2"},
    {"CodeGen", "gpt2"},
    {"codegen", "gpt2"},
    {"phi", "gpt2"},
    {"opt", "opt"},
    {"OPT", "opt"},
    {"Whisper", "whisper"},
    {"whisper", "whisper"},
    {"Qwen2", "qwen2"},
    {"qwen2", "qwen2"},
    {"qwen3", "qwen2"},
    {"CLIP", "clip"},
    {"clip", "clip"},
    {"T5", "t5"},
    {"t5", "t5"},
    {"MT5", "t5"},
    {"mt5", "t5"},
    {"umt5", "t5"},
    {"Albert", "albert"},
    {"albert", "albert"},
    {"XLMRoberta", "xlmr"},
    {"xlm-roberta", "xlmr"},
    {"Camembert", "camembert"},
    {"camembert", "camembert"},
    {"DebertaV2", "deberta"},
    {"deberta-v2", "deberta"},
    {"DebertaV3", "deberta"},
    {"Llama", "llama"},
    {"llama", "llama"},
    {"CodeLlama", "llama"},
    {"mistral", "llama"},
    {"mixtral", "llama"},
    {"phi3", "llama"},
    {"Gemma", "llama"},
    {"gemma", "llama"},
    {"Marian", "marian"},
    {"marian", "marian"},
};

static const char *tok_folder_kind_of(const char *name)
{
    size_t best = 0;
    const char *kind = "";
    for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i][0]);
        if (n <= best || strncmp(name, kinds[i][0], n)) continue;
        best = n;
        kind = kinds[i][1];
    }
    return kind;
}

static int parse_optional(tok_folder *f, const char *name, json_t **ret)
{
    char *path = tok_folder_path(f, name);
    if (!path) return err_nomem(f->err);
    if (!file_exists(path)) return 0;
    int rc = hub_file_parse_json(ret, path, CONFIG_MAX, f->err);
    if (rc == 0 && !json_is_object(*ret)) rc = err_set(f->err, SHOAL_EFORMAT, "%s: must be an object", path);
    return rc;
}

int tok_folder_open(tok_folder *f, const char *dir, shoal_err *err)
{
    *f = (tok_folder){.dir = dir, .kind = "", .err = err, .mem = arena_new(0)};
    if (!f->mem) return err_nomem(err);
    if (!file_is_dir(dir)) return err_set(err, SHOAL_ENOTFOUND, "%s: there is no such folder", dir);
    int rc = parse_optional(f, "tokenizer_config.json", &f->config);
    if (rc == 0) rc = parse_optional(f, "special_tokens_map.json", &f->special);
    if (rc == 0) rc = parse_optional(f, "added_tokens.json", &f->added);
    if (rc == 0) rc = parse_optional(f, "config.json", &f->model);
    f->kind = tok_folder_kind_of(json_string_value(json_object_get(f->config, "tokenizer_class")));
    if (!*f->kind) f->kind = tok_folder_kind_of(json_string_value(json_object_get(f->model, "model_type")));
    return rc;
}

void tok_folder_close(tok_folder *f)
{
    json_decref(f->config);
    json_decref(f->special);
    json_decref(f->added);
    json_decref(f->model);
    arena_free(f->mem);
}

/* ---- added tokens ---- */

typedef struct adder {
    json_t *list, *vocab, *seen;
    json_int_t next; /* the first id that is free */
} adder;

/* How a role's token is taken is in its object, where it has one: {"content", "lstrip", ...}. */
static int tok_folder_add(adder *a, const char *text, json_int_t id, const json_t *how, bool special,
                          bool lstrip)
{
    if (!text || !*text || json_object_get(a->seen, text)) return 0;
    if (json_object_set_new(a->seen, text, json_true())) return SHOAL_ENOMEM;
    const json_t *known = json_object_get(a->vocab, text);
    if (json_is_integer(known)) id = json_integer_value(known);
    if (id < 0) id = a->next;
    if (id >= a->next) a->next = id + 1;
    json_t *o = json_pack("{sIsssbsbsbsbsb}", "id", id, "content", text, "special", special, "normalized",
                          tok_json_bool(how, "normalized", false), "lstrip",
                          tok_json_bool(how, "lstrip", lstrip), "rstrip", tok_json_bool(how, "rstrip", false),
                          "single_word", tok_json_bool(how, "single_word", false));
    return o && json_array_append_new(a->list, o) == 0 ? 0 : SHOAL_ENOMEM;
}

static int add_roles(const tok_folder *f, adder *a, const char *const roles[][2], size_t n)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const json_t *how = json_object_get(f->config, roles[i][0]);
        if (!json_is_object(how)) how = json_object_get(f->special, roles[i][0]);
        bool strips = roles[i][1] && !strcmp(roles[i][1], "<mask>"); /* RoBERTa's takes the space before it */
        rc = tok_folder_add(a, tok_folder_token(f, roles[i][0], roles[i][1]), -1, how, true, strips);
    }
    return rc;
}

/* {"128000": {"content": "[MASK]", ...}}, and {"[MASK]": 128000} of older ones. */
static int add_listed(const tok_folder *f, adder *a)
{
    json_t *decoder = json_object_get(f->config, "added_tokens_decoder"), *v;
    const char *key;
    int rc = 0;
    json_object_foreach(decoder, key, v)
    {
        const char *text = json_string_value(json_object_get(v, "content"));
        char *end;
        long long id = strtoll(key, &end, 10);
        if (!text || *end || id < 0 || id > TOK_MAX_ID)
            return err_set(f->err, SHOAL_EFORMAT,
                           "%s/tokenizer_config.json: added_tokens_decoder[\"%.40s\"]: "
                           "an id and an object with \"content\" are expected",
                           f->dir, key);
        rc = tok_folder_add(a, text, id, v, tok_json_bool(v, "special", false), false);
        if (rc) return err_nomem(f->err);
    }
    json_object_foreach(f->added, key, v)
    {
        json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id > TOK_MAX_ID)
            return err_set(f->err, SHOAL_EFORMAT, "%s/added_tokens.json: \"%.40s\": an id is expected",
                           f->dir, key);
        /* The file does not say which are control tokens: "<|en|>" and "[MASK]" look it. */
        size_t n = strlen(key);
        bool special =
            n > 2 && ((key[0] == '<' && key[n - 1] == '>') || (key[0] == '[' && key[n - 1] == ']'));
        rc = tok_folder_add(a, key, id, NULL, special, false);
        if (rc) return err_nomem(f->err);
    }
    return 0;
}

int tok_folder_add_tokens(const tok_folder *f, json_t *root, json_t *vocab, const char *const roles[][2],
                          size_t n_roles)
{
    adder a = {.list = json_array(), .vocab = vocab, .seen = json_object()};
    const char *key;
    json_t *v;
    json_object_foreach(vocab, key, v) if (json_integer_value(v) >= a.next) a.next =
        json_integer_value(v) + 1;
    int rc = json_object_set_new(root, "added_tokens", a.list) || !a.seen ? SHOAL_ENOMEM : 0;
    if (rc == 0) rc = add_roles(f, &a, roles, n_roles);
    rc = rc ? err_nomem(f->err) : add_listed(f, &a);
    json_decref(a.seen);
    return rc;
}

/* ---- the one entry ---- */

static const char *const spm_files[] = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
                                        "sentencepiece.model", "spm.model"};

static const char *spm_file(const tok_folder *f)
{
    for (size_t i = 0; i < sizeof spm_files / sizeof *spm_files; i++)
        if (tok_folder_has(f, spm_files[i])) return spm_files[i];
    return NULL;
}

static int from_json(const tok_folder *f, tokenizer **ret)
{
    buf json = {0}, config = {0};
    bool has_config = tok_folder_has(f, "tokenizer_config.json");
    int rc = tok_folder_read(f, "tokenizer.json", &json);
    if (rc == 0 && has_config) rc = tok_folder_read(f, "tokenizer_config.json", &config);
    char *path = tok_folder_path(f, "tokenizer.json");
    if (rc == 0 && !path) rc = err_nomem(f->err);
    if (rc == 0)
        rc = tokenizer_from_json(ret, json.data, json.len, has_config ? config.data : NULL, config.len, path,
                                 f->err);
    buf_done(&json);
    buf_done(&config);
    return rc;
}

static int from_root(const tok_folder *f, int (*make)(const tok_folder *, json_t **), tokenizer *t)
{
    json_t *root = NULL;
    int rc = make(f, &root);
    if (rc == 0) rc = tok_json_build(t, root, f->dir, f->err);
    json_decref(root);
    return rc;
}

/* A class that is named but not known may do anything; where none is named, the files' own format counts. */
static int check_kind(const tok_folder *f)
{
    const char *class = json_string_value(json_object_get(f->config, "tokenizer_class"));
    const char *type = json_string_value(json_object_get(f->model, "model_type"));
    bool generic = class && !strncmp(class, "PreTrainedTokenizer", 19);
    if (*f->kind || (!type && (!class || generic))) return 0;
    return err_set(f->err, SHOAL_EUNSUPPORTED,
                   "%s: there is no tokenizer.json, and without one the class \"%.60s\" is not supported",
                   f->dir, class && !generic ? class : type);
}

static int tok_folder_load(const tok_folder *f, tokenizer *t)
{
    const char *spm = spm_file(f);
    int rc = check_kind(f);
    if (rc) return rc;
    if (tok_folder_has(f, "source.spm") && tok_folder_has(f, "vocab.json")) return tok_folder_marian(f, t);
    if (spm) return tok_folder_spm(f, spm, t);
    if (tok_folder_has(f, "vocab.json") && tok_folder_has(f, "merges.txt"))
        return from_root(f, tok_folder_bpe, t);
    if (tok_folder_has(f, "vocab.txt")) return from_root(f, tok_folder_wordpiece, t);
    return err_set(f->err, SHOAL_ENOTFOUND,
                   "%s: there is no tokenizer.json, nor vocab.txt, nor vocab.json with merges.txt, nor a "
                   "SentencePiece .model",
                   f->dir);
}

static int32_t role_id(const tok_folder *f, const tokenizer *t, const char *role, int32_t def)
{
    const char *s = tok_folder_token(f, role, NULL);
    int32_t id = s ? tok_vocab_find(&t->voc, s, strlen(s)) : -1;
    return id >= 0 ? id : def;
}

int tokenizer_folder_json(buf *out, const char *dir, shoal_err *err)
{
    tok_folder f;
    json_t *root = NULL;
    int rc = tok_folder_open(&f, dir, err);
    if (rc == 0 && tok_folder_has(&f, "tokenizer.json")) {
        rc = tok_folder_read(&f, "tokenizer.json", out);
    } else if (rc == 0 && !spm_file(&f) && !tok_folder_has(&f, "source.spm")) {
        bool merges = tok_folder_has(&f, "vocab.json") && tok_folder_has(&f, "merges.txt");
        bool known = merges || tok_folder_has(&f, "vocab.txt");
        known = known && check_kind(&f) == 0; /* what nothing can read is not written either */
        if (known) rc = (merges ? tok_folder_bpe : tok_folder_wordpiece)(&f, &root);
        if (rc == 0 && known && json_put(out, root) != 0) rc = err_nomem(err);
    }
    json_decref(root);
    tok_folder_close(&f);
    return rc;
}

int tokenizer_folder_gguf(tokenizer_gguf *ret, arena *mem, size_t n_least, const char *dir, shoal_err *err)
{
    static const char *const plain[] = {"llama", "t5", "xlmr", ""};
    tok_folder f;
    bool known = false;
    *ret = (tokenizer_gguf){0};
    int rc = tok_folder_open(&f, dir, err);
    for (size_t i = 0; rc == 0 && i < sizeof plain / sizeof *plain; i++)
        known = known || strcmp(f.kind, plain[i]) == 0;
    const char *spm = rc == 0 ? spm_file(&f) : NULL;
    bool newer = rc == 0 && (tok_folder_has(&f, "tokenizer.json") || tok_folder_has(&f, "source.spm"));
    if (known && spm && !newer && check_kind(&f) == 0) rc = tok_folder_spm_meta(&f, spm, n_least, mem, ret);
    tok_folder_close(&f);
    return rc;
}

int tokenizer_from_folder(tokenizer **ret, const char *dir, shoal_err *err)
{
    tok_folder f;
    tokenizer *t = NULL;
    int rc = tok_folder_open(&f, dir, err);
    if (rc == 0 && tok_folder_has(&f, "tokenizer.json")) {
        rc = from_json(&f, ret);
        tok_folder_close(&f);
        return rc;
    }
    if (rc == 0 && !(t = tok_new())) rc = err_nomem(err);
    if (rc == 0) rc = tok_folder_load(&f, t);
    if (rc == 0) {
        t->bos = role_id(&f, t, "bos_token", t->bos);
        t->eos = role_id(&f, t, "eos_token", t->eos);
        tok_seg_find_bytes(&t->seg);
        rc = tok_seal(t, err);
    }
    tok_folder_close(&f);
    if (rc == 0)
        *ret = t;
    else
        tokenizer_free(t);
    return rc;
}
