/* adapter.c: tensors of an adapter -> changes of its base's matrices; see adapter.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/adapter_impl.h"

enum { NAME_ROOM = 256 };

void adapter_ref(adapter *a)
{
    atomic_fetch_add(&a->refs, 1);
}

void adapter_unref(adapter *a)
{
    if (!a || atomic_fetch_sub(&a->refs, 1) != 1) return;
    arena_free(a->mem);
    free(a);
}

const adapter_matrix *adapter_find(const adapter *a, const tensor *base)
{
    return a->of[base - model_tensor_at(a->base, 0)];
}

size_t adapter_count(const adapter *a)
{
    return a->n_matrices;
}

const sha256_digest *adapter_digest(const adapter *a)
{
    return &a->digest;
}

/* ---- one pair of tensors ---------------------------------------------------------------------------- */

typedef struct builder {
    adapter *a;
    const adapter_source *s;
    const model_config *c;
    shoal_err *err;
} builder;

/* A and B of one of the file's matrices. */
typedef struct pair {
    const st_tensor *a, *b;
    const char *name; /* of the matrix, as the family's rules spell it */
    size_t rank;
    float *a_values; /* [rank][cols], in the arena; NULL: not read yet */
    float *b_values; /* [rows in the file][rank], malloc'd */
} pair;

static int read_values(const st_tensor *f, float *to, shoal_err *err)
{
    size_t n = f->t.dims[0] * f->t.dims[1];
    void *copy = malloc(f->t.bytes + 1); /* the file need not align its numbers */
    if (!copy) return err_nomem(err);
    memcpy(copy, f->t.data, f->t.bytes);
    dtype_to_f32(f->t.type, copy, to, n);
    free(copy);
    return 0;
}

static int read_pair(const builder *x, pair *p)
{
    size_t n_a, n_b;
    if (p->a_values) return 0;
    if (size_mul(p->a->t.dims[0] * p->a->t.dims[1], sizeof(float), &n_a) ||
        size_mul(p->b->t.dims[0] * p->b->t.dims[1], sizeof(float), &n_b))
        return err_nomem(x->err);
    p->b_values = malloc(n_b + 1);
    float *a = arena_alloc(x->a->mem, n_a + 1);
    if (!p->b_values || !a) return err_nomem(x->err);
    p->a_values = a;
    x->a->bytes += n_a;
    int rc = read_values(p->a, a, x->err);
    return rc ? rc : read_values(p->b, p->b_values, x->err);
}

static bool in_list(unsigned char dim, const unsigned char *list)
{
    for (; *list; list++)
        if (*list == dim) return true;
    return false;
}

/* A matrix that a network multiplies activations by; tables, kernels and experts are none. */
static bool is_linear(const tensor_rule *r)
{
    static const unsigned char outs[] = {DIM_EMBD,  DIM_EMBD_IN,    DIM_FF,     DIM_Q,         DIM_KV,
                                         DIM_HEADS, DIM_THREE_EMBD, DIM_LABELS, DIM_SOURCE_FF, DIM_EXPERTS,
                                         0};
    static const unsigned char ins[] = {DIM_EMBD, DIM_EMBD_IN, DIM_FF, DIM_Q, DIM_SOURCE_FF, 0};
    bool head = strncmp(r->name, "output.", 7) == 0 && r->dims[0] == DIM_VOCAB;
    return (head || in_list(r->dims[0], outs)) && in_list(r->dims[1], ins) && r->dims[2] == DIM_END;
}

/* Relative vectors of DeBERTa are projected by q and k when the model is loaded, without the adapter. */
static bool is_baked(const builder *x, const char *memory_name)
{
    return x->c->pos.relative > 0 && (strstr(memory_name, ".attn_q.") || strstr(memory_name, ".attn_k."));
}

static int check_target(const builder *x, const rule_hit *h, const char *name, const tensor **ret)
{
    *ret = model_tensor(x->a->base, name);
    if (!*ret)
        return err_set(x->err, SHOAL_EFORMAT, "%s: it adapts %s, which the model %s does not have",
                       x->s->what, name, model_name(x->a->base));
    if (!is_linear(h->rule) || (*ret)->n_dims > 2)
        return err_set(x->err, SHOAL_EUNSUPPORTED,
                       "%s: it adapts %s; embeddings, convolutions and experts are not adapted here",
                       x->s->what, name);
    if (is_baked(x, name))
        return err_set(x->err, SHOAL_EUNSUPPORTED,
                       "%s: it adapts %s, which also makes this model's relative positions; that is not "
                       "computed here",
                       x->s->what, name);
    if (adapter_find(x->a, *ret))
        return err_set(x->err, SHOAL_EFORMAT, "%s: %s is adapted twice", x->s->what, name);
    return 0;
}

static int check_shapes(const builder *x, const pair *p, const char *name, const size_t need[4], size_t all)
{
    const size_t *a = p->a->t.dims, *b = p->b->t.dims;
    bool flat = a[2] == 1 && a[3] == 1 && b[2] == 1 && b[3] == 1;
    if (flat && a[0] == need[0] && a[1] == p->rank && b[0] == p->rank && b[1] == all) return 0;
    return err_set(x->err, SHOAL_EFORMAT,
                   "%s: %s is %zu x %zu and %s is %zu x %zu, but %s is %zu x %zu: the adapter is of another "
                   "model",
                   x->s->what, p->a->t.name, a[1], a[0], p->b->t.name, b[1], b[0], name, all, need[0]);
}

/* Row `row` of the matrix in memory is this one of a folder's (or, for a GGUF adapter of a folder's model, of
 * a GGUF file's) part of the tensor: the two keep rotary pairs in different orders. */
static size_t rotary_row(const builder *x, const rule_hit *h, size_t row)
{
    size_t head_dim = x->c->attn.head_dim, rope_dim = x->c->pos.rope.dim;
    bool rotates = x->c->arch->pairs && (h->rule->flags & (RULE_ROPE_Q | RULE_ROPE_K));
    bool pairs_here = x->c->pos.rope.interleaved, pairs_there = x->s->kind == NAME_GGUF;
    if (!rotates || pairs_here == pairs_there) return row;
    if (pairs_here) return arch_rope_source_row(row, head_dim, rope_dim);
    size_t first = row - row % head_dim, i = row % head_dim, half = rope_dim / 2;
    if (i >= rope_dim) return row;
    return first + (i < half ? 2 * i : 2 * (i - half) + 1);
}

/* B's rows that belong to the hit, turned: b[rank][rows]. */
static void turn_rows(const builder *x, const pair *p, const rule_hit *h, size_t rows, float *b)
{
    size_t before, all, head_dim = x->c->attn.head_dim;
    bool turns = x->s->kind == NAME_HF && (h->rule->flags & RULE_PER_HEAD);
    rule_place_rows(x->c, h, x->s->kind, rows, &before, &all);
    for (size_t r = 0; r < rows; r++) {
        size_t row = rotary_row(x, h, r);
        row = turns ? rule_turn_row(row, before, all, rows, head_dim) : before + row;
        for (size_t k = 0; k < p->rank; k++) b[k * rows + r] = p->b_values[row * p->rank + k];
    }
}

static float scale_of(const adapter_source *s, size_t rank)
{
    double by = s->root_rank ? sqrt((double)rank) : (double)rank;
    return (float)((s->alpha == 0 ? 1 : s->alpha / by) * (double)s->strength);
}

/* What is checked by now, into the arena. */
static int put_matrix(const builder *x, const pair *p, const rule_hit *h, const tensor *base,
                      const size_t dims[4])
{
    adapter *a = x->a;
    size_t n;
    adapter_matrix *m = arena_alloc(a->mem, sizeof *m);
    float *b = size_mul(dims[1], p->rank * sizeof *b, &n) ? NULL : arena_alloc(a->mem, n + 1);
    if (!m || !b) return err_nomem(x->err);
    turn_rows(x, p, h, dims[1], b);
    *m = (adapter_matrix){.base = base,
                          .rank = p->rank,
                          .rows = dims[1],
                          .cols = dims[0],
                          .scale = scale_of(x->s, p->rank),
                          .a = p->a_values,
                          .b = b};
    a->of[base - model_tensor_at(a->base, 0)] = m;
    a->n_matrices++;
    a->bytes += n;
    return 0;
}

static int add_matrix(const builder *x, pair *p, const rule_hit *h)
{
    char name[128];
    size_t need[4], before, all;
    const tensor *base;
    rule_name(h, NAME_MEMORY, name);
    int rc = check_target(x, h, name, &base);
    if (rc) return rc;
    rule_shape(x->c, h, need);
    rule_place_rows(x->c, h, x->s->kind, need[1], &before, &all);
    rc = check_shapes(x, p, name, need, all);
    if (rc == 0) rc = read_pair(x, p);
    return rc ? rc : put_matrix(x, p, h, base, need);
}

/* All matrices in memory that the file's matrix holds rows of. */
static int add_pair(const builder *x, pair *p)
{
    const tensor_rule *r;
    rule_hit h;
    bool found = false;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (r = arch_rule(x->c->arch, i)); i++) {
        if (!rule_match(r, x->s->kind, p->name, &h) || !rule_wanted(x->c, r, h.layer)) continue;
        if ((r->flags & RULE_ALIAS) && found) continue;
        found = true;
        rc = strchr(rule_pattern(r, x->s->kind), '@') || h.bias
                 ? err_set(x->err, SHOAL_EUNSUPPORTED, "%s: it adapts %s; experts are not adapted here",
                           x->s->what, p->name)
                 : add_matrix(x, p, &h);
    }
    free(p->b_values);
    if (rc || found) return rc;
    return err_set(x->err, SHOAL_EFORMAT,
                   "%s: it adapts %s, which has no place in the model %s (architecture \"%s\")", x->s->what,
                   p->name, model_name(x->a->base), arch_name(x->c->arch));
}

/* ---- all of them ------------------------------------------------------------------------------------ */

static int adapter_by_name(const void *a, const void *b)
{
    return strcmp(((const st_tensor *)a)->t.name, ((const st_tensor *)b)->t.name);
}

static bool adapter_ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

/* The name of the matrix that tensor `name` is a part of, as rules spell it; false when it is no such part.
 */
static bool matrix_name(const builder *x, const char *name, const char *tail, char out[NAME_ROOM])
{
    bool folder = x->s->kind == NAME_HF;
    char plain[128];
    const char *before = "base_model.model.";
    if (!adapter_ends_with(name, tail) || strlen(name) + 8 > NAME_ROOM) return false;
    if (folder && strncmp(name, before, strlen(before)) == 0) name += strlen(before);
    size_t n = strlen(name) - strlen(tail);
    memcpy(out, name, n);
    strcpy(out + n, folder ? ".weight" : "");
    if (!folder) return true;
    if (!arch_plain_name(x->c->arch, out, plain)) return false;
    strcpy(out, plain);
    return true;
}

static const char *tail_of(const builder *x, bool b)
{
    if (x->s->kind == NAME_HF) return b ? ".lora_B.weight" : ".lora_A.weight";
    return b ? ".lora_b" : ".lora_a";
}

static const st_tensor *partner_of(const builder *x, const st_tensor *a)
{
    char name[NAME_ROOM];
    st_tensor key = {.t.name = name};
    size_t n = strlen(a->t.name) - strlen(tail_of(x, false));
    memcpy(name, a->t.name, n);
    strcpy(name + n, tail_of(x, true));
    return bsearch(&key, x->s->list, x->s->n, sizeof key, adapter_by_name);
}

static int wrong_tensor(const builder *x, const char *name)
{
    if (strstr(name, "lora_embedding_"))
        return err_set(x->err, SHOAL_EUNSUPPORTED,
                       "%s: it adapts embeddings (%s); only matrices are adapted here", x->s->what, name);
    if (strstr(name, "lora_magnitude_vector"))
        return err_set(x->err, SHOAL_EUNSUPPORTED,
                       "%s: it is a DoRA adapter (%s), which is not computed here", x->s->what, name);
    return err_set(x->err, SHOAL_EUNSUPPORTED,
                   "%s: tensor %s is no part of a LoRA adapter, and without it the answers would be wrong",
                   x->s->what, name);
}

static int check_part(const builder *x, const st_tensor *f)
{
    if (f->t.type == DT_COUNT)
        return err_set(x->err, SHOAL_EUNSUPPORTED, "%s: tensor %s has dtype %s, which is not computed with",
                       x->s->what, f->t.name, f->dtype_name);
    return 0;
}

static int add_tensor(const builder *x, const st_tensor *f)
{
    char name[NAME_ROOM];
    pair p = {.a = f, .name = name};
    if (matrix_name(x, f->t.name, tail_of(x, true), name)) return 0; /* with its A; counted by the caller */
    if (!matrix_name(x, f->t.name, tail_of(x, false), name)) return wrong_tensor(x, f->t.name);
    p.b = partner_of(x, f);
    if (!p.b) return err_set(x->err, SHOAL_EFORMAT, "%s: %s has no partner B", x->s->what, f->t.name);
    int rc = check_part(x, p.a);
    if (rc == 0) rc = check_part(x, p.b);
    if (rc) return rc;
    p.rank = f->t.dims[1];
    if (p.rank == 0 || p.rank > ADAPTER_RANK_MAX)
        return err_set(x->err, SHOAL_EUNSUPPORTED, "%s: %s has rank %zu; 1 to %d are computed", x->s->what,
                       f->t.name, p.rank, ADAPTER_RANK_MAX);
    if (x->s->rank && p.rank != x->s->rank)
        return err_set(x->err, SHOAL_EFORMAT, "%s: %s has rank %zu, the configuration says \"r\": %zu",
                       x->s->what, f->t.name, p.rank, x->s->rank);
    return add_pair(x, &p);
}

int adapter_build(adapter *a, const adapter_source *s, shoal_err *err)
{
    builder x = {.a = a, .s = s, .c = model_get_config(a->base), .err = err};
    size_t n_a = 0, n_b = 0;
    int rc = 0;
    a->of = arena_alloc(a->mem, (model_tensor_count(a->base) + 1) * sizeof(adapter_matrix *));
    if (!a->of) return err_nomem(err);
    if (s->n > 0) qsort(s->list, s->n, sizeof *s->list, adapter_by_name);
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        n_a += adapter_ends_with(s->list[i].t.name, tail_of(&x, false));
        n_b += adapter_ends_with(s->list[i].t.name, tail_of(&x, true));
        rc = add_tensor(&x, &s->list[i]);
    }
    if (rc) return rc;
    if (n_a != n_b) return err_set(err, SHOAL_EFORMAT, "%s: %zu tensors A and %zu B", s->what, n_a, n_b);
    return n_a > 0 ? 0 : err_set(err, SHOAL_EFORMAT, "%s: the adapter has no tensors", s->what);
}
