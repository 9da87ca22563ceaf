/* tok_json_steps.c: normalizer, pre_tokenizer and post_processor of a tokenizer.json. */
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "tokenizer/files/tok_json.h"

static norm_step *add_norm(tokenizer *t, norm_kind kind, shoal_err *err)
{
    norm_step *s = t->n_norm < 256 ? tok_add_norm(t) : NULL;
    if (s)
        s->kind = kind;
    else
        err_nomem(err);
    return s;
}

static int add_form(tokenizer *t, bool compose, bool compat, shoal_err *err)
{
    norm_step *s = add_norm(t, NORM_FORM, err);
    if (!s) return SHOAL_ENOMEM;
    s->compose = compose;
    s->compat = compat;
    return 0;
}

static int bert_normalizer(tokenizer *t, const json_t *o, shoal_err *err)
{
    bool lower = tok_json_bool(o, "lowercase", true);
    if (tok_json_bool(o, "clean_text", true) && !add_norm(t, NORM_BERT_CLEAN, err)) return SHOAL_ENOMEM;
    if (tok_json_bool(o, "handle_chinese_chars", true) && !add_norm(t, NORM_BERT_CHINESE, err))
        return SHOAL_ENOMEM;
    if (tok_json_bool(o, "strip_accents", lower)) {
        if (add_form(t, false, false, err) || !add_norm(t, NORM_STRIP_ACCENTS, err)) return SHOAL_ENOMEM;
    }
    return !lower || add_norm(t, NORM_LOWERCASE, err) ? 0 : SHOAL_ENOMEM;
}

static int replace_or_prepend(tokenizer *t, const json_t *o, bool prepend, const char *what, shoal_err *err)
{
    norm_step *s = add_norm(t, prepend ? NORM_PREPEND : NORM_REPLACE, err);
    if (!s) return SHOAL_ENOMEM;
    int rc = 0;
    if (!prepend) rc = tok_json_pattern(t, o, &s->re, &s->pattern, &s->pattern_len, what, err);
    return rc ? rc
              : tok_json_text(t, o, prepend ? "prepend" : "content", "", &s->content, &s->content_len, what,
                              err);
}

static int precompiled(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    const json_t *v = json_object_get(o, "precompiled_charsmap");
    norm_step *s = add_norm(t, NORM_PRECOMPILED, err);
    buf blob = {0};
    if (!s) return SHOAL_ENOMEM;
    if (!v || json_is_null(v)) return 0;
    int rc =
        json_is_string(v) ? base64_decode(&blob, json_string_value(v), json_string_length(v)) : SHOAL_EFORMAT;
    if (rc == SHOAL_ENOMEM) rc = err_nomem(err);
    if (rc == SHOAL_EFORMAT)
        rc = err_set(err, rc, "%s.precompiled_charsmap: base64 digits are expected", what);
    if (rc == 0) rc = charsmap_parse(&s->map, t->mem, blob.data, blob.len, what, err);
    buf_done(&blob);
    return rc;
}

static const struct {
    const char *type;
    norm_kind kind;
} plain_norms[] = {
    {"Lowercase", NORM_LOWERCASE},
    {"Nmt", NORM_NMT},
    {"ByteLevel", NORM_BYTES},
};

int tok_json_normalizer(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    const char *type;
    if (!o || json_is_null(o)) return 0;
    int rc = tok_json_type(o, what, &type, err);
    if (rc) return rc;
    if (!strcmp(type, "Sequence")) return tok_json_each(t, o, "normalizers", tok_json_normalizer, what, err);
    if (!strcmp(type, "BertNormalizer")) return bert_normalizer(t, o, err);
    if (!strcmp(type, "NFC")) return add_form(t, true, false, err);
    if (!strcmp(type, "NFD")) return add_form(t, false, false, err);
    if (!strcmp(type, "NFKC")) return add_form(t, true, true, err);
    if (!strcmp(type, "NFKD")) return add_form(t, false, true, err);
    for (size_t i = 0; i < sizeof plain_norms / sizeof *plain_norms; i++)
        if (!strcmp(type, plain_norms[i].type))
            return add_norm(t, plain_norms[i].kind, err) ? 0 : SHOAL_ENOMEM;
    if (!strcmp(type, "Precompiled")) return precompiled(t, o, what, err);
    if (!strcmp(type, "Prepend")) return replace_or_prepend(t, o, true, what, err);
    if (!strcmp(type, "Replace")) return replace_or_prepend(t, o, false, what, err);
    if (!strcmp(type, "StripAccents")) {
        norm_step *marks = add_norm(t, NORM_STRIP_ACCENTS, err);
        if (marks) marks->all_marks = true;
        return marks ? 0 : SHOAL_ENOMEM;
    }
    if (strcmp(type, "Strip"))
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: normalizer \"%s\" is not supported", what, type);
    norm_step *s = add_norm(t, NORM_STRIP, err);
    if (!s) return SHOAL_ENOMEM;
    s->left = tok_json_bool(o, "strip_left", true);
    s->right = tok_json_bool(o, "strip_right", true);
    return 0;
}

/* ---- pre-tokenisers ---- */

static int get_behavior(const json_t *o, split_behavior *ret, const char *what, shoal_err *err)
{
    static const char *const names[] = {"Isolated", "Removed", "Contiguous", "MergedWithPrevious",
                                        "MergedWithNext"};
    const char *s = json_string_value(json_object_get(o, "behavior"));
    for (int i = 0; s && i < 5; i++) {
        if (strcmp(s, names[i])) continue;
        *ret = (split_behavior)i;
        return 0;
    }
    if (!s) return 0;
    return err_set(err, SHOAL_EFORMAT, "%s.behavior: \"%s\" is none of the five behaviours", what, s);
}

static pre_step *add_pre(tokenizer *t, pre_kind kind, shoal_err *err)
{
    pre_step *s = t->n_pre < 256 ? tok_add_pre(t) : NULL;
    if (!s) {
        err_nomem(err);
        return NULL;
    }
    s->kind = kind;
    s->letters = t->seg.byte_level;
    return s;
}

static int add_class(tokenizer *t, bool (*is)(uint32_t), split_behavior b, shoal_err *err)
{
    pre_step *s = add_pre(t, PRE_CLASS, err);
    if (!s) return SHOAL_ENOMEM;
    s->is = is;
    s->behavior = b;
    return 0;
}

static int byte_level(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    bool regex = tok_json_bool(o, "use_regex", true);
    if (tok_json_bool(o, "add_prefix_space", true) && !add_pre(t, PRE_PREFIX_SPACE, err)) return SHOAL_ENOMEM;
    pre_step *s = regex ? add_pre(t, PRE_REGEX, err) : NULL;
    if (regex && !s) return SHOAL_ENOMEM;
    t->seg.byte_level = true; /* from here on, steps see letters */
    return regex ? tok_regex_compile(&s->re, TOK_GPT2_REGEX, strlen(TOK_GPT2_REGEX), what, err) : 0;
}

static int tok_json_steps_split(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    pre_step *s = add_pre(t, PRE_LITERAL, err);
    if (!s) return SHOAL_ENOMEM;
    s->invert = tok_json_bool(o, "invert", false);
    int rc = get_behavior(o, &s->behavior, what, err);
    if (rc == 0) rc = tok_json_pattern(t, o, &s->re, &s->text, &s->text_len, what, err);
    if (s->re) s->kind = PRE_REGEX;
    return rc;
}

static int whitespace(tokenizer *t, const char *what, shoal_err *err)
{
    static const char words[] = "[\\w\\x{200C}\\x{200D}]+|[^\\w\\s\\x{200C}\\x{200D}]+";
    pre_step *s = add_pre(t, PRE_REGEX, err);
    if (!s) return SHOAL_ENOMEM;
    s->behavior = SPLIT_REMOVED;
    s->invert = true;
    return tok_regex_compile(&s->re, words, sizeof words - 1, what, err);
}

static int delimiter(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    pre_step *s = add_pre(t, PRE_LITERAL, err);
    if (!s) return SHOAL_ENOMEM;
    s->behavior = SPLIT_REMOVED;
    int rc = tok_json_text(t, o, "delimiter", NULL, &s->text, &s->text_len, what, err);
    if (rc || s->text_len) return rc;
    return err_set(err, SHOAL_EFORMAT, "%s.delimiter: one character is expected", what);
}

static int scripts(tokenizer *t, const char *what, shoal_err *err)
{
    pre_step *s = add_pre(t, PRE_REGEX, err);
    if (!s) return SHOAL_ENOMEM;
    s->behavior = SPLIT_REMOVED; /* of what is no script's: white space before the first character */
    s->invert = true;
    return tok_scripts_compile(&s->re, what, err);
}

static int punctuation(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    split_behavior b = SPLIT_ISOLATED;
    int rc = get_behavior(o, &b, what, err);
    return rc ? rc : add_class(t, tok_cp_is_bert_punct, b, err);
}

static int metaspace(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    pre_step *s = add_pre(t, PRE_METASPACE, err);
    if (!s) return SHOAL_ENOMEM;
    int rc = tok_json_scheme(o, &s->prepend, what, err);
    if (rc == 0) rc = tok_json_text(t, o, "replacement", "\xE2\x96\x81", &s->text, &s->text_len, what, err);
    if (rc || !tok_json_bool(o, "split", true)) return rc;
    const char *text = s->text;
    size_t len = s->text_len;
    s = add_pre(t, PRE_LITERAL, err);
    if (!s) return SHOAL_ENOMEM;
    s->text = text;
    s->text_len = len;
    s->behavior = SPLIT_WITH_NEXT;
    return 0;
}

int tok_json_pre(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    const char *type;
    if (!o || json_is_null(o)) return 0;
    int rc = tok_json_type(o, what, &type, err);
    if (rc) return rc;
    if (!strcmp(type, "Sequence")) return tok_json_each(t, o, "pretokenizers", tok_json_pre, what, err);
    if (!strcmp(type, "ByteLevel")) return byte_level(t, o, what, err);
    if (!strcmp(type, "Split")) return tok_json_steps_split(t, o, what, err);
    if (!strcmp(type, "Whitespace")) return whitespace(t, what, err);
    if (!strcmp(type, "WhitespaceSplit")) return add_class(t, tok_cp_is_space, SPLIT_REMOVED, err);
    if (!strcmp(type, "CharDelimiterSplit")) return delimiter(t, o, what, err);
    if (!strcmp(type, "UnicodeScripts")) return scripts(t, what, err);
    if (!strcmp(type, "Punctuation")) return punctuation(t, o, what, err);
    if (!strcmp(type, "Metaspace")) return metaspace(t, o, what, err);
    if (!strcmp(type, "Digits"))
        return add_class(t, tok_cp_is_numeric,
                         tok_json_bool(o, "individual_digits", false) ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS,
                         err);
    if (strcmp(type, "BertPreTokenizer"))
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: pre-tokenizer \"%s\" is not supported", what, type);
    rc = add_class(t, tok_cp_is_space, SPLIT_REMOVED, err);
    return rc ? rc : add_class(t, tok_cp_is_bert_punct, SPLIT_ISOLATED, err);
}

/* ---- post-processors ---- */

/* One element of a template, a token of several ids being several items. */
static int template_item(tokenizer *t, const json_t *o, const json_t *specials, tpl_item *items, size_t *n,
                         size_t max, const char *what, shoal_err *err)
{
    const json_t *seq = json_object_get(o, "Sequence"), *tok = json_object_get(o, "SpecialToken");
    const json_t *it = seq ? seq : tok;
    const char *id = json_string_value(json_object_get(it, "id"));
    json_int_t type = json_integer_value(json_object_get(it, "type_id"));
    if (!id || type < 0 || type > 255) return err_set(err, SHOAL_EFORMAT, "%s: not a template element", what);
    const json_t *ids = json_object_get(json_object_get(specials, id), "ids"), *v;
    size_t i;
    if (seq) {
        if (*n == max) return err_set(err, SHOAL_ELIMIT, "%s: the template is too long", what);
        items[(*n)++] = (tpl_item){!strcmp(id, "B") ? TPL_B : TPL_A, -1, (uint8_t)type};
        return 0;
    }
    if (!json_is_array(ids))
        return err_set(err, SHOAL_EFORMAT, "%s: \"%s\" is not in special_tokens", what, id);
    json_array_foreach(ids, i, v)
    {
        json_int_t k = json_is_integer(v) ? json_integer_value(v) : -1;
        if (k < 0 || (size_t)k >= t->voc.n)
            return err_set(err, SHOAL_EFORMAT, "%s: \"%s\" has an id that is no token", what, id);
        if (*n == max) return err_set(err, SHOAL_ELIMIT, "%s: the template is too long", what);
        items[(*n)++] = (tpl_item){TPL_TOKEN, (int32_t)k, (uint8_t)type};
    }
    return 0;
}

static int template_of(tokenizer *t, const json_t *o, const char *key, tpl_item **ret, size_t *ret_n,
                       const char *what, shoal_err *err)
{
    enum { MAX_ITEMS = 32 };
    const json_t *list = json_object_get(o, key), *item;
    tpl_item *items = arena_alloc(t->mem, MAX_ITEMS * sizeof *items);
    size_t i, n = 0, n_b = 0;
    char at[160];
    if (!items) return err_nomem(err);
    json_array_foreach(list, i, item)
    {
        snprintf(at, sizeof at, "%.100s.%s[%zu]", what, key, i);
        int rc = template_item(t, item, json_object_get(o, "special_tokens"), items, &n, MAX_ITEMS, at, err);
        if (rc) return rc;
        n_b += n && items[n - 1].kind == TPL_B;
    }
    if (n == 0 || (ret == &t->single && n_b))
        return err_set(err, SHOAL_EFORMAT, "%s.%s: not a template", what, key);
    *ret = items;
    *ret_n = n;
    return 0;
}

static int pair_id(const tokenizer *t, const json_t *o, const char *key, int32_t *ret, const char *what,
                   shoal_err *err)
{
    const json_t *v = json_array_get(json_object_get(o, key), 1);
    json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
    if (id < 0 || (size_t)id >= t->voc.n)
        return err_set(err, SHOAL_EFORMAT, "%s.%s: [\"token\", id] is expected", what, key);
    *ret = (int32_t)id;
    return 0;
}

static int classic(tokenizer *t, const json_t *o, bool roberta, const char *what, shoal_err *err)
{
    int32_t cls, sep;
    int rc = pair_id(t, o, "cls", &cls, what, err);
    if (rc == 0) rc = pair_id(t, o, "sep", &sep, what, err);
    if (rc) return rc;
    t->trim_offsets = roberta && tok_json_bool(o, "trim_offsets", true);
    t->trim_prefix = tok_json_bool(o, "add_prefix_space", true);
    return tok_wrap_templates(t, cls, sep, roberta ? sep : -1, roberta ? 0 : 1, err);
}

int tok_json_post(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    const char *type;
    if (!o || json_is_null(o)) return 0;
    int rc = tok_json_type(o, what, &type, err);
    if (rc) return rc;
    if (!strcmp(type, "Sequence")) return tok_json_each(t, o, "processors", tok_json_post, what, err);
    if (!strcmp(type, "BertProcessing")) return classic(t, o, false, what, err);
    if (!strcmp(type, "RobertaProcessing")) return classic(t, o, true, what, err);
    if (!strcmp(type, "ByteLevel")) {
        t->trim_offsets = tok_json_bool(o, "trim_offsets", true);
        t->trim_prefix = tok_json_bool(o, "add_prefix_space", true);
        return 0;
    }
    if (strcmp(type, "TemplateProcessing"))
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: post-processor \"%s\" is not supported", what, type);
    rc = template_of(t, o, "single", &t->single, &t->n_single, what, err);
    return rc ? rc : template_of(t, o, "pair", &t->pair, &t->n_pair, what, err);
}
