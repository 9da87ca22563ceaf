/* arch_rule.c: tensor rules: which names match, which shape follows, when a tensor is there. */
#include <stdio.h>
#include <string.h>

#include "model/arch/arch.h"

/* ---- names ------------------------------------------------------------------------------------------ */

const tensor_rule *arch_rule(const arch_def *a, size_t i)
{
    for (size_t k = 0; k < ARCH_LISTS && a->tensors[k]; k++)
        for (const tensor_rule *r = a->tensors[k]; r->name; r++)
            if (i-- == 0) return r;
    return NULL;
}

const char *rule_pattern(const tensor_rule *r, name_kind kind)
{
    if (kind == NAME_HF) return r->hf;
    if (kind == NAME_MEMORY) return r->name;
    return r->gguf || (r->flags & RULE_ALIAS) ? r->gguf : r->name;
}

/* A number without leading zeros, of at most four digits. */
static bool take_number(const char **at, size_t *ret)
{
    const char *s = *at;
    size_t v = 0, n = 0;
    for (; s[n] >= '0' && s[n] <= '9'; n++) {
        if (n == 4) return false;
        v = 10 * v + (size_t)(s[n] - '0');
    }
    if (n == 0 || (s[0] == '0' && n > 1)) return false;
    *at += n;
    *ret = v;
    return true;
}

static bool take_word(const char **at, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0) return false;
    *at += n;
    return true;
}

static bool take_kind(const tensor_rule *r, const char **at, bool *ret_bias)
{
    *ret_bias = false;
    if (take_word(at, "weight")) return true;
    *ret_bias = (r->flags & (RULE_BIAS | RULE_BIAS_MAYBE)) != 0;
    return *ret_bias && take_word(at, "bias");
}

bool rule_match(const tensor_rule *r, name_kind kind, const char *name, rule_hit *ret)
{
    const char *p = rule_pattern(r, kind);
    rule_hit h = {.rule = r};
    if (!p) return false;
    for (; *p; p++) {
        bool ok = *p == '#'   ? (h.layered = true, take_number(&name, &h.layer))
                  : *p == '@' ? take_number(&name, &h.expert)
                  : *p == '*' ? take_kind(r, &name, &h.bias)
                              : *name++ == *p;
        if (!ok) return false;
    }
    if (*name) return false;
    *ret = h;
    return true;
}

void rule_name(const rule_hit *h, name_kind kind, char out[128])
{
    size_t n = 0;
    for (const char *p = rule_pattern(h->rule, kind); p && *p && n < 127; p++) {
        char piece[24] = {*p};
        if (*p == '#') snprintf(piece, sizeof piece, "%zu", h->layer);
        if (*p == '@') snprintf(piece, sizeof piece, "%zu", h->expert);
        if (*p == '*') snprintf(piece, sizeof piece, "%s", h->bias ? "bias" : "weight");
        int k = snprintf(out + n, 128 - n, "%s", piece);
        n += (size_t)k;
    }
    out[n < 127 ? n : 127] = '\0';
}

bool arch_find(const arch_def *a, const char *name, rule_hit *ret)
{
    const tensor_rule *r;
    for (size_t i = 0; (r = arch_rule(a, i)); i++)
        if (!(r->flags & RULE_ALIAS) && rule_match(r, NAME_MEMORY, name, ret)) return true;
    return false;
}

bool arch_plain_name(const arch_def *a, const char *hf_name, char out[128])
{
    for (const char *const *p = a->prefixes; p && *p; p++)
        if (strncmp(hf_name, *p, strlen(*p)) == 0) hf_name += strlen(*p);
    if (strlen(hf_name) + 3 >= 128) return false;
    strcpy(out, hf_name);
    char *dot = strrchr(out, '.');
    if (dot && strcmp(dot, ".gamma") == 0) strcpy(dot, ".weight");
    if (dot && strcmp(dot, ".beta") == 0) strcpy(dot, ".bias");
    return true;
}

static bool ignored_by(const char *pattern, const char *name)
{
    size_t unused;
    for (; *pattern; pattern++) {
        if (*pattern == '*') return true;
        if (*pattern == '#' ? !take_number(&name, &unused) : *name++ != *pattern) return false;
    }
    return *name == '\0';
}

bool arch_ignores(const arch_def *a, const char *name)
{
    for (const char *const *p = a->ignored; p && *p; p++)
        if (ignored_by(*p, name)) return true;
    return false;
}

/* ---- shapes ----------------------------------------------------------------------------------------- */

size_t arch_side(const model_config *c, unsigned dim, size_t layer)
{
    size_t patches = c->image.patch ? c->image.size / c->image.patch : 0;
    switch ((arch_dim)dim) {
    case DIM_END:
    case DIM_ONE: return 1;
    case DIM_EMBD: return c->n_embd;
    case DIM_EMBD_IN: return c->n_embd_in ? c->n_embd_in : c->n_embd;
    case DIM_VOCAB: return c->n_vocab;
    case DIM_CTX: return c->n_ctx;
    case DIM_TYPES: return c->n_types;
    case DIM_FF: return c->ffn.n_ff;
    case DIM_Q: return c->attn.n_head * c->attn.head_dim;
    case DIM_KV: return c->attn.n_head_kv * c->attn.head_dim;
    case DIM_HEAD: return c->attn.head_dim;
    case DIM_HEADS: return c->attn.n_head;
    case DIM_HEADS_KV: return c->attn.n_head_kv;
    case DIM_ROPE: return c->pos.rope.dim / 2;
    case DIM_LABELS: return c->head.n_labels;
    case DIM_EXPERTS: return c->ffn.n_expert;
    case DIM_FF_EXPERT: return c->ffn.n_ff_expert;
    case DIM_THREE: return 3;
    case DIM_THREE_EMBD: return 3 * c->n_embd;
    case DIM_TAPS: return c->n_conv;
    case DIM_BUCKETS: return c->pos.buckets.n;
    case DIM_RELATIVE: return 2 * c->pos.relative;
    case DIM_SOURCE_CTX: return c->source.n_ctx;
    case DIM_SOURCE_FF: return c->source.n_ff;
    case DIM_MEL: return c->source.n_mel;
    case DIM_PATCH: return c->image.patch;
    case DIM_CHANNELS: return c->image.channels;
    case DIM_PLACES: return patches * patches + 1;
    case DIM_GATES: return (c->series.cell == CELL_LSTM ? 4 : 3) * c->series.n_hidden;
    case DIM_HIDDEN: return c->series.n_hidden;
    case DIM_CELL_IN: return layer == 0 ? c->series.n_input : c->series.n_hidden;
    }
    return 0;
}

size_t rule_shape(const model_config *c, const rule_hit *h, size_t dims[4])
{
    const unsigned char *d = h->rule->dims;
    size_t n = 0;
    while (n < 4 && d[n] != DIM_END && !(h->bias && n == 1)) n++;
    for (size_t i = 0; i < 4; i++) dims[i] = i < n ? arch_side(c, d[n - 1 - i], h->layer) : 1;
    return n;
}

size_t rule_layers(const model_config *c, const tensor_rule *r)
{
    if (!strchr(r->name, '#')) return 1;
    if (strncmp(r->name, "enc.", 4) == 0) return c->source.n_layer;
    return c->n_layer_file ? c->n_layer_file : c->n_layer;
}

void rule_place_rows(const model_config *c, const rule_hit *h, name_kind kind, size_t own, size_t *ret_before,
                     size_t *ret_all)
{
    const char *source = rule_pattern(h->rule, kind);
    *ret_before = 0;
    *ret_all = own;
    if ((h->rule->flags & RULE_OFFSET) && kind == NAME_HF) {
        *ret_before = c->pos.offset;
        *ret_all += c->pos.offset;
    }
    if (!(h->rule->flags & RULE_FUSED)) return;
    const tensor_rule *r;
    bool before = true;
    *ret_all = 0;
    for (size_t i = 0; (r = arch_rule(c->arch, i)); i++) {
        const char *p = rule_pattern(r, kind);
        if (!(r->flags & RULE_FUSED) || !p || strcmp(p, source) != 0) continue;
        size_t rows = arch_side(c, r->dims[0], h->layer);
        if (r == h->rule) before = false;
        if (before) *ret_before += rows;
        *ret_all += rows;
    }
}

size_t rule_turn_row(size_t r, size_t before, size_t all, size_t own, size_t head_dim)
{
    size_t parts = all / own, part = before / own;
    return r / head_dim * parts * head_dim + part * head_dim + r % head_dim;
}

/* ---- presence --------------------------------------------------------------------------------------- */

bool rule_wanted(const model_config *c, const tensor_rule *r, size_t layer)
{
    unsigned l = strchr(r->name, '#') && layer < c->n_layer ? config_layer(c, layer) : 0;
    bool experts = c->ffn.n_expert > 0 && !(l & LAYER_DENSE);
    const struct {
        rule_flags flag;
        bool holds;
    } conditions[] = {
        {WHEN_UNTIED, !c->tied},
        {WHEN_FFN_NORM, c->branch != BRANCH_ONE_NORM},
        {WHEN_POST, c->norm.place == PLACE_POST},
        {WHEN_FRONT, c->norm.place != PLACE_POST},
        {WHEN_FINAL, c->norm.final},
        {WHEN_GATED, c->ffn.gated},
        {WHEN_PLAIN_FFN, !c->ffn.gated},
        {WHEN_LABELS, c->head.n_labels > 0},
        {WHEN_DENSE_HEAD, c->head.dense && c->head.n_labels > 0},
        {WHEN_MASK, c->task == TASK_FILL_MASK},
        {WHEN_EXPERTS, experts},
        {WHEN_DENSE, !experts},
        {WHEN_CONV, (l & LAYER_CONV) != 0},
        {WHEN_ATTN, !(l & LAYER_CONV)},
        {WHEN_PRE, !(l & LAYER_NO_PRE)},
        {WHEN_LEARNED, c->pos.learned},
        {WHEN_TYPES, c->n_types > 0},
        {WHEN_WIDENED, c->n_embd_in != 0 && c->n_embd_in != c->n_embd},
        {WHEN_QK_NORM, c->attn.qk_norm != QK_NORM_NONE},
    };
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if ((r->flags & conditions[i].flag) && !conditions[i].holds) return false;
    return true;
}
