/* model_adopt.c: see model_adopt.h. */
#include "model/model_adopt.h"

#include <string.h>

#include "base/progress.h"
#include "model/model_priv.h"
#include "model/widen.h"

typedef struct adopter {
    model *m;
    name_kind kind;
    size_t cap;
    uint16_t *n_parts;                  /* beside m->tensors: parts that a stack has already */
    const void *widened_from, *widened; /* the last that was widened, and what it became */
    const void *turned_from;            /* the last that was transposed, and what it became */
    void *turned;
    bool *alias; /* beside m->tensors: came by another name */
    shoal_err *err;
} adopter;

static size_t row_bytes(const tensor *t, size_t cols)
{
    return cols / dtype_block(t->type) * dtype_block_bytes(t->type);
}

static tensor *find_adopted(adopter *a, const char *name)
{
    for (size_t i = a->m->n_tensors; i-- > 0;)
        if (strcmp(a->m->tensors[i].name, name) == 0) return &a->m->tensors[i];
    return NULL;
}

/* ---- shapes ----------------------------------------------------------------------------------------- */

static int wrong_shape(const adopter *a, const char *name, const tensor *t, const size_t need[4], size_t n)
{
    if (n <= 2)
        return err_set(a->err, SHOAL_EFORMAT,
                       "%s: tensor %s is %zu x %zu where the configuration needs %zu x %zu", a->m->path, name,
                       t->dims[1], t->dims[0], need[1], need[0]);
    return err_set(
        a->err, SHOAL_EFORMAT,
        "%s: tensor %s is %zu x %zu x %zu x %zu where the configuration needs %zu x %zu x %zu x %zu",
        a->m->path, name, t->dims[3], t->dims[2], t->dims[1], t->dims[0], need[3], need[2], need[1], need[0]);
}

/* Equal but for sides of 1, which files put anywhere. */
static bool same_shape(const size_t a[4], const size_t b[4])
{
    size_t i = 0, j = 0;
    for (;;) {
        while (i < 4 && a[i] == 1) i++;
        while (j < 4 && b[j] == 1) j++;
        if (i == 4 || j == 4) return i == j;
        if (a[i++] != b[j++]) return false;
    }
}

/* ---- values ----------------------------------------------------------------------------------------- */

static int weights_alloc(adopter *a, size_t n, void **ret)
{
    if (!a->m->weights) a->m->weights = arena_new(1 << 20);
    *ret = a->m->weights ? arena_alloc(a->m->weights, n + 1) : NULL;
    return *ret ? 0 : err_nomem(a->err);
}

/* Types that are stored and not computed with; the last one is kept for the other rows of a fused tensor. */
static int widen(adopter *a, const st_tensor *f, tensor *t)
{
    size_t bytes, n;
    if (!widen_type(f->dtype_name, &t->type, &bytes))
        return err_set(a->err, SHOAL_EUNSUPPORTED,
                       "%s: tensor %s has dtype %s; weights may be F32, F16, BF16, F64, F8_E4M3 or F8_E5M2",
                       a->m->path, f->t.name, f->dtype_name);
    n = f->t.bytes / bytes;
    t->bytes = n * dtype_block_bytes(t->type);
    if (a->widened_from != f->t.data) {
        void *copy;
        int rc = weights_alloc(a, t->bytes, &copy);
        if (rc != 0) return rc;
        widen_values(f->dtype_name, f->t.data, copy, n);
        a->widened_from = f->t.data;
        a->widened = copy;
    }
    t->data = a->widened;
    return 0;
}

/* The format packs tensors without padding, so one of odd size may leave the next unaligned. */
static int align(adopter *a, tensor *t)
{
    void *copy;
    if ((uintptr_t)t->data % dtype_block_bytes(t->type) == 0 || dtype_block(t->type) > 1) return 0;
    int rc = weights_alloc(a, t->bytes, &copy);
    if (rc != 0) return rc;
    memcpy(copy, t->data, t->bytes);
    model_release(a->m, t->data, t->bytes);
    t->data = copy;
    return 0;
}

/* *t becomes rows [before, before + own) of its `all`; cols is 1 for vectors. */
static int take_rows(adopter *a, const rule_hit *h, tensor *t, size_t cols, size_t before, size_t own,
                     size_t all)
{
    bool folder = a->kind == NAME_HF, turns = folder && (h->rule->flags & RULE_PER_HEAD);
    size_t n = row_bytes(t, cols);
    size_t head_dim = a->m->config.attn.head_dim;
    uint8_t *copy;
    if (own == all) return 0;
    if (cols % dtype_block(t->type) != 0)
        return err_set(a->err, SHOAL_EUNSUPPORTED, "%s: a fused vector of type %s is not supported",
                       a->m->path, dtype_name(t->type));
    t->bytes = own * n;
    if (!turns) {
        t->data = (const uint8_t *)t->data + before * n;
        return 0;
    }
    int rc = weights_alloc(a, t->bytes, (void **)&copy);
    for (size_t r = 0; rc == 0 && r < own; r++, progress_add(n))
        memcpy(copy + r * n, (const uint8_t *)t->data + rule_turn_row(r, before, all, own, head_dim) * n, n);
    if (rc == 0) t->data = copy;
    return rc;
}

/* [cols][rows] -> [rows][cols]; folders' element types only. */
static int transpose(adopter *a, tensor *t)
{
    size_t rows = t->dims[0], cols = t->dims[1], n = dtype_block_bytes(t->type);
    if (a->turned_from != t->data) {
        uint8_t *copy;
        int rc = weights_alloc(a, t->bytes, (void **)&copy);
        if (rc != 0) return rc;
        for (size_t r = 0; r < rows; r++, progress_add(8 * cols))
            for (size_t c = 0; c < cols; c++)
                memcpy(copy + (r * cols + c) * n, (const uint8_t *)t->data + (c * rows + r) * n, n);
        model_release(a->m, t->data, t->bytes);
        a->turned_from = t->data;
        a->turned = copy;
    }
    t->data = a->turned;
    t->dims[0] = cols;
    t->dims[1] = rows;
    return 0;
}

static int plus_one(adopter *a, tensor *t)
{
    float *copy;
    size_t n = t->dims[0];
    int rc = weights_alloc(a, n * sizeof *copy, (void **)&copy);
    if (rc != 0) return rc;
    dtype_to_f32(t->type, t->data, copy, n);
    for (size_t i = 0; i < n; i++) copy[i] += 1;
    t->data = copy;
    t->type = DT_F32;
    t->bytes = n * sizeof *copy;
    return 0;
}

/* ---- adding ----------------------------------------------------------------------------------------- */

static int add_tensor(adopter *a, const rule_hit *h, const char *name, const tensor *t)
{
    model *m = a->m;
    bool alias = (h->rule->flags & RULE_ALIAS) != 0;
    tensor *old = NULL;
    for (size_t i = 0; i < m->n_tensors; i++)
        if ((alias || a->alias[i]) && strcmp(m->tensors[i].name, name) == 0) old = &m->tensors[i];
    if (old && alias) return 0;
    if (!old && m->n_tensors == a->cap)
        return err_set(a->err, SHOAL_EFORMAT, "%s: tensor %s appears twice", m->path, name);
    if (!old) old = &m->tensors[m->n_tensors++];
    a->alias[old - m->tensors] = alias;
    *old = *t;
    old->name = arena_strdup(m->mem, name);
    if (!old->name) {
        m->n_tensors--;
        return err_nomem(a->err);
    }
    return 0;
}

/* One expert's matrix (one head's norm) into the stack of its layer's. */
static int add_expert(adopter *a, const rule_hit *h, const char *name, const tensor *t)
{
    tensor *stack = find_adopted(a, name);
    size_t n = arch_side(&a->m->config, h->rule->dims[0], h->layer);
    if (h->expert >= n)
        return err_set(a->err, SHOAL_EFORMAT, "%s: %s has a part %zu where the configuration has %zu",
                       a->m->path, name, h->expert, n);
    if (!stack) {
        tensor whole = *t;
        void *room;
        int rc =
            size_mul(t->bytes, n, &whole.bytes) ? err_nomem(a->err) : weights_alloc(a, whole.bytes, &room);
        if (rc != 0) return rc;
        whole.data = room;
        whole.dims[whole.n_dims++] = n;
        rc = add_tensor(a, h, name, &whole);
        if (rc != 0) return rc;
        stack = &a->m->tensors[a->m->n_tensors - 1];
    }
    if (stack->type != t->type)
        return err_set(a->err, SHOAL_EUNSUPPORTED, "%s: the parts of %s are of different types", a->m->path,
                       name);
    memcpy((uint8_t *)stack->data + h->expert * t->bytes, t->data, t->bytes);
    a->n_parts[stack - a->m->tensors]++;
    progress_tick();
    return 0;
}

static bool is_norm(const char *name)
{
    size_t n = strlen(name);
    return n > 11 && strcmp(name + n - 11, "norm.weight") == 0;
}

static int adopt_hit(adopter *a, const rule_hit *h, const st_tensor *f)
{
    const model_config *c = &a->m->config;
    bool folder = a->kind == NAME_HF, stacked = folder && strchr(h->rule->hf, '@');
    size_t need[4], whole[4], before, all;
    char name[128];
    tensor t = f->t;
    int rc = 0;
    rule_name(h, NAME_MEMORY, name);
    size_t n_dims = rule_shape(c, h, need);
    if (stacked) need[--n_dims] = 1; /* one of them */
    if (t.type == DT_COUNT) rc = widen(a, f, &t);
    bool turned = folder && (h->rule->flags & RULE_TRANSPOSED) && !h->bias && t.n_dims == 2;
    if (rc == 0 && turned) rc = transpose(a, &t);
    if (rc != 0) return rc;
    size_t at_row = n_dims > 1 ? n_dims - 1 : 0;
    rule_place_rows(c, h, a->kind, need[at_row], &before, &all);
    memcpy(whole, need, sizeof whole);
    whole[at_row] = all;
    if (!same_shape(t.dims, whole)) return wrong_shape(a, f->t.name, &t, whole, n_dims);
    rc = take_rows(a, h, &t, n_dims > 1 ? need[0] : 1, before, need[at_row], all);
    memcpy(t.dims, need, sizeof need);
    t.n_dims = n_dims;
    if (rc == 0) rc = align(a, &t);
    if (rc == 0 && folder && c->arch->norms_plus_one && is_norm(name)) rc = plus_one(a, &t);
    if (rc != 0) return rc;
    return stacked ? add_expert(a, h, name, &t) : add_tensor(a, h, name, &t);
}

/* One of 0 elements changes no answer, whatever its name. */
static int unknown_tensor(const adopter *a, const st_tensor *f, const char *plain)
{
    const arch_def *arch = a->m->config.arch;
    const char *name = f->t.name;
    if (f->t.bytes == 0 || arch_ignores(arch, plain)) return 0;
    return err_set(
        a->err, SHOAL_EUNSUPPORTED,
        "%s: tensor %s has no place in the architecture \"%s\", and without it the answers would be "
        "wrong: the file is of a variant that this Shoal does not know",
        a->m->path, name, arch_name(arch));
}

/* A rule's tensor that this configuration has no use for is no harm (another head's), but for a router: with
 * it the model would be another. */
static int unwanted_tensor(const adopter *a, const tensor_rule *r, const char *name)
{
    const arch_def *arch = a->m->config.arch;
    if (!(r->flags & WHEN_EXPERTS) || a->m->config.ffn.n_expert > 0) return 0;
    return err_set(a->err, SHOAL_EFORMAT,
                   "%s: tensor %s is of a mixture of experts, but \"%s.expert_count\" tells of none",
                   a->m->path, name, arch_name(arch));
}

static int adopt_one(adopter *a, const st_tensor *f)
{
    const model_config *c = &a->m->config;
    char plain[128];
    const char *name = f->t.name;
    const tensor_rule *r;
    rule_hit h;
    bool known = false;
    if (a->kind == NAME_HF) {
        if (!arch_plain_name(c->arch, name, plain)) return unknown_tensor(a, f, name);
        name = plain;
    }
    for (size_t i = 0; (r = arch_rule(c->arch, i)); i++) {
        if (!rule_match(r, a->kind, name, &h)) continue;
        known = true;
        bool wanted = rule_wanted(c, r, h.layer);
        int rc = wanted ? adopt_hit(a, &h, f) : unwanted_tensor(a, r, f->t.name);
        if (rc != 0) return rc;
    }
    return known ? 0 : unknown_tensor(a, f, name);
}

static int check_stacks(const adopter *a)
{
    for (size_t i = 0; i < a->m->n_tensors; i++) {
        const tensor *t = &a->m->tensors[i];
        size_t need = t->dims[t->n_dims - 1];
        if (a->n_parts[i] && a->n_parts[i] != need)
            return err_set(a->err, SHOAL_EFORMAT, "%s: tensor %s is missing in part: %u of %zu are there",
                           a->m->path, t->name, (unsigned)a->n_parts[i], need);
    }
    return 0;
}

int model_adopt(model *m, name_kind kind, const st_tensor *list, size_t n, shoal_err *err)
{
    adopter a = {.m = m, .kind = kind, .cap = 3 * n, .err = err};
    m->tensors = arena_alloc(m->mem, a.cap * sizeof *m->tensors + 1);
    a.n_parts = arena_alloc(m->mem, a.cap * sizeof *a.n_parts + 1);
    a.alias = arena_alloc(m->mem, a.cap + 1);
    if (!m->tensors || !a.n_parts || !a.alias) return err_nomem(err);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) rc = adopt_one(&a, &list[i]);
    if (kind == NAME_HF) m->config.pos.offset = 0; /* those rows were left out */
    return rc != 0 ? rc : check_stacks(&a);
}
