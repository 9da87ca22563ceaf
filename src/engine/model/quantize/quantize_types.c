/* quantize_types.c: types of tensors by name, mixture and width; see quantize_types.h. */
#include "model/quantize/quantize_types.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

typedef struct quantize_override {
    char pattern[96];
    dtype type;
    bool is_pattern, used;
} quantize_override;

/* ---- names ------------------------------------------------------------------------------------------- */

/* Past "blk." and a number, or the same place. */
static const char *skip_layer(const char *name)
{
    const char *p = name;
    if (strncmp(p, "blk.", 4) != 0 || !isdigit((unsigned char)p[4])) return name;
    for (p += 4; isdigit((unsigned char)*p);) p++;
    return *p == '.' ? p + 1 : p;
}

void quantize_types_class(const char *name, char out[48])
{
    size_t n = 0;
    for (bool fresh = true; *name && n < 47; fresh = out[n - 1] == '.') {
        const char *next = fresh ? skip_layer(name) : name;
        if (next != name && !*next) break;
        name = next;
        out[n++] = *name++;
    }
    out[n] = '\0';
    if (n > 7 && strcmp(out + n - 7, ".weight") == 0) out[n - 7] = '\0';
}

/* Whether all of s[0..n) is what p says, '*' standing for any characters. Only the last '*' need be tried
 * again, so the time is at most the product of the lengths. */
static bool glob(const char *p, const char *s, size_t n)
{
    const char *star = NULL, *end = s + n, *again = NULL;
    while (s < end) {
        if (*p == '*') {
            star = p++;
            again = s;
        } else if (*p == *s) {
            p++;
            s++;
        } else if (star) {
            p = star + 1;
            s = ++again;
        } else {
            return false;
        }
    }
    while (*p == '*') p++;
    return *p == '\0';
}

/* The whole name, with or without ".weight". */
static bool matches(const char *pattern, const char *name)
{
    size_t n = strlen(name);
    if (glob(pattern, name, n)) return true;
    return n > 7 && strcmp(name + n - 7, ".weight") == 0 && glob(pattern, name, n - 7);
}

/* ---- overrides --------------------------------------------------------------------------------------- */

static int parse_override(const char *text, quantize_override *ret, shoal_err *err)
{
    const char *eq = strrchr(text, '=');
    size_t n = eq ? (size_t)(eq - text) : 0;
    if (n == 0 || n >= sizeof ret->pattern || !dtype_parse(eq + 1, &ret->type))
        return err_set(err, SHOAL_EINVALID,
                       "\"%.80s\": an override is CLASS=TYPE or PATTERN=TYPE, such as token_embd=q8_0 or "
                       "blk.*.ffn_down=q6_k",
                       text);
    memcpy(ret->pattern, text, n);
    ret->pattern[n] = '\0';
    ret->is_pattern = memchr(text, '*', n) != NULL;
    ret->used = false;
    return 0;
}

int quantize_types_init(quantize_types *r, const quantize_options *opts, const model *m, arena *mem,
                        quantize_report *report, shoal_err *err)
{
    *r = (quantize_types){.opts = opts,
                          .report = report,
                          .n_layer = model_get_config(m)->n_layer,
                          .own_output = model_tensor(m, "output.weight") != NULL};
    r->overrides = arena_alloc(mem, opts->n_overrides * sizeof *r->overrides + 1);
    if (!r->overrides) return err_nomem(err);
    for (size_t i = 0; i < opts->n_overrides; i++) {
        int rc = parse_override(opts->overrides[i], &r->overrides[i], err);
        if (rc != 0) return rc;
    }
    return 0;
}

static quantize_override *find_override(quantize_types *r, const char *name, const char *class)
{
    quantize_override *best = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < r->opts->n_overrides; i++) {
        quantize_override *o = &r->overrides[i];
        size_t n = o->is_pattern ? SIZE_MAX : strlen(o->pattern);
        if (!(o->is_pattern ? matches(o->pattern, name) : strncmp(class, o->pattern, n) == 0)) continue;
        o->used = true;
        if (n < longest) continue;
        longest = n;
        best = o;
    }
    return best;
}

int quantize_types_finish(const quantize_types *r, shoal_err *err)
{
    for (size_t i = 0; i < r->opts->n_overrides; i++)
        if (!r->overrides[i].used)
            return err_set(err, SHOAL_EINVALID,
                           "the override \"%.80s\" fits no matrix of this model; shoal quantize without it "
                           "prints the classes that there are",
                           r->opts->overrides[i]);
    return 0;
}

/* ---- the choice ---------------------------------------------------------------------------------------- */

/* The field's _M mixtures: the output, and the values and the feed-forward's way down of the first and last
 * eighth of the layers and of every third between, are Q6_K. */
static bool gets_more_bits(const quantize_types *r, const char *name, const char *class)
{
    if (strcmp(class, r->own_output ? "output" : "token_embd") == 0) return true;
    if (strcmp(class, "attn_v") != 0 && strcmp(class, "ffn_down") != 0) return false;
    size_t layer = 0, eighth = r->n_layer / 8;
    for (const char *p = name + 4; isdigit((unsigned char)*p) && layer < 100000; p++)
        layer = 10 * layer + (size_t)(*p - '0');
    return layer < eighth || layer >= 7 * r->n_layer / 8 || (layer - eighth) % 3 == 2;
}

/* The type for rows that are no multiple of t's block, as the field chooses it. */
static dtype narrower(dtype t)
{
    switch (t) {
    case DT_Q4_K: return DT_Q5_0;
    case DT_Q5_K: return DT_Q5_1;
    case DT_Q6_K: return DT_Q8_0;
    case DT_Q2_K:
    case DT_Q3_K:
    case DT_IQ4_XS: return DT_IQ4_NL;
    case DT_S8_256: return DT_S8_128;
    case DT_S8_128: return DT_S8_96;
    case DT_S8_96: return DT_S8_64;
    case DT_S8_64: return DT_Q8_0;
    case DT_S4_128: return DT_S4_96;
    case DT_S4_96: return DT_S4_64;
    case DT_S4_64: return DT_Q4_0;
    default: return DT_F16;
    }
}

dtype quantize_types_fit(dtype t, size_t cols)
{
    while (cols % dtype_block(t) != 0) t = narrower(t);
    return t;
}

/* The last row takes what the report has no room for. */
static void count_fallback(quantize_report *report, dtype wanted, dtype got)
{
    size_t most = sizeof report->fallbacks / sizeof *report->fallbacks, i = 0;
    while (i < report->n_fallbacks &&
           (report->fallbacks[i].wanted != wanted || report->fallbacks[i].got != got))
        i++;
    if (i == most) i--;
    if (i == report->n_fallbacks)
        report->fallbacks[report->n_fallbacks++] = (quantize_fallback){.wanted = wanted, .got = got};
    report->fallbacks[i].n_tensors++;
}

dtype quantize_types_choose(quantize_types *r, const tensor_rule *rule, const char *name, size_t cols)
{
    dtype type = r->opts->type;
    char class[48];
    quantize_types_class(name, class);
    if (r->opts->medium && gets_more_bits(r, name, class)) type = DT_Q6_K;
    if ((rule->flags & RULE_SMALL) && type != DT_F32) type = DT_F16;
    if (rule->flags & RULE_FLOAT) type = DT_F32;
    quantize_override *o = find_override(r, name, class);
    if (o) type = o->type;
    dtype fits = quantize_types_fit(type, cols);
    if (fits != type && r->report) count_fallback(r->report, type, fits);
    return fits;
}

/* ---- names of types ------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    dtype base;
} mixtures[] = {{"q4_k_m", DT_Q4_K}, {"q5_k_m", DT_Q5_K}};

bool quantize_parse_type(const char *name, quantize_options *opts)
{
    opts->medium = false;
    if (dtype_parse(name, &opts->type)) return true;
    for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++) {
        if (strcasecmp(name, mixtures[i].name) != 0) continue;
        opts->type = mixtures[i].base;
        opts->medium = true;
        return true;
    }
    return false;
}

/* The specification counts a mixture _M right after its _S, which is the plain type. */
uint32_t quantize_types_file_type(const quantize_options *opts)
{
    return dtype_file_type(opts->type) + opts->medium;
}
