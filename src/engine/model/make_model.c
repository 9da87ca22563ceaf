/* make_model.c: a GGUF of a family's own tensors, filled from a pool; see make_model.h. */
#include "model/make_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "model/config/conf.h"
#include "model/quantize/quantize_block.h"
#include "model/quantize/quantize_types.h"

/* Values of a pool, and the longest run of them that goes into a matrix in one piece: matrices of one file
 * are alike in nothing but such runs. They are whole blocks of every type. */
enum { POOL_VALUES = 3 << 19, RUN_VALUES = 3 << 13, PIECE_BYTES = 1 << 20 };
/* Of what training starts from, for widths of a few hundred to a few thousand. */
#define WEIGHT_SPREAD 0.02f

typedef struct job {
    const char *name;
    size_t n_dims, dims[4];
    dtype type;
    float value; /* of vectors: all elements */
} job;

typedef struct plan {
    const make_options *o;
    model_config c;
    arena *mem;
    job *jobs;
    size_t n_jobs, cap;
    quantize_options types_as;
    quantize_types types;
    uint8_t *pool[DT_COUNT]; /* POOL_VALUES in that type; NULL: not drawn yet */
    uint8_t *piece;          /* what is written next */
    team *team;
    shoal_err *err;
} plan;

/* ---- what the file holds ------------------------------------------------------------------------------ */

static void configure(model_config *c, const make_shape *s, const arch_def *a, size_t n_ctx)
{
    *c = a->base;
    c->arch = a;
    c->task = a->task;
    c->n_vocab = s->n_vocab;
    c->n_ctx = n_ctx ? n_ctx : s->n_ctx;
    c->n_embd = s->n_embd;
    c->n_layer = s->n_layer;
    c->attn.n_head = s->n_head;
    c->attn.n_head_kv = s->n_head_kv;
    c->attn.head_dim = s->head_dim ? s->head_dim : s->n_embd / s->n_head;
    c->ffn.n_ff = s->n_ff;
    c->tied = s->tied;
    c->head.normalize = c->task == TASK_EMBED;
    if (s->rope_theta <= 0) return;
    c->pos.rope.theta = s->rope_theta;
    c->pos.rope.dim = c->attn.head_dim;
}

static int add_job(plan *p, const rule_hit *h)
{
    char name[128];
    if (p->n_jobs == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 256;
        job *more = realloc(p->jobs, cap * sizeof *more);
        if (!more) return err_nomem(p->err);
        p->jobs = more;
        p->cap = cap;
    }
    job *j = &p->jobs[p->n_jobs];
    rule_name(h, NAME_GGUF, name);
    *j = (job){.name = arena_strdup(p->mem, name), .value = h->bias ? 0 : 1};
    if (!j->name) return err_nomem(p->err);
    j->n_dims = rule_shape(&p->c, h, j->dims);
    j->type = j->n_dims == 1 ? DT_F32 : quantize_types_choose(&p->types, h->rule, name, j->dims[0]);
    p->n_jobs++;
    return 0;
}

/* Biases that a family may have are there where the shape says so: Qwen 2's of queries, keys and values. */
static bool has_bias(const tensor_rule *r, const make_shape *s)
{
    if (r->flags & RULE_BIAS) return true;
    if (!(r->flags & RULE_BIAS_MAYBE) || !s->attn_bias) return false;
    return strstr(r->name, ".attn_q.") || strstr(r->name, ".attn_k.") || strstr(r->name, ".attn_v.");
}

static int add_jobs(plan *p, const make_shape *s)
{
    const tensor_rule *r;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (r = arch_rule(p->c.arch, i)); i++) {
        if ((r->flags & (RULE_ALIAS | RULE_OPTIONAL)) || !rule_pattern(r, NAME_GGUF)) continue;
        for (size_t layer = 0; rc == 0 && layer < rule_layers(&p->c, r); layer++) {
            rule_hit h = {.rule = r, .layer = layer, .layered = true};
            if (!rule_wanted(&p->c, r, layer)) continue;
            rc = add_job(p, &h);
            h.bias = true;
            if (rc == 0 && has_bias(r, s)) rc = add_job(p, &h);
        }
    }
    return rc;
}

static int put_metadata(plan *p, const make_shape *s, gguf_out *o)
{
    gguf_out_str(o, "general.architecture", p->c.arch->name);
    gguf_out_str(o, "general.type", "model");
    gguf_out_str(o, "general.name", p->o->name ? p->o->name : s->name);
    gguf_out_str(o, "general.description", "random weights, to measure with");
    gguf_out_u32(o, "general.file_type", quantize_types_file_type(&p->types_as));
    gguf_out_u32(o, "general.quantization_version", 2);
    gguf_out_str(o, "shoal.task", task_name(p->c.task));
    conf_write(o, &p->c);
    return make_tokenizer(o, p->c.n_vocab, p->c.task == TASK_EMBED, p->err);
}

/* ---- weights ------------------------------------------------------------------------------------------ */

/* Nearly a bell: the sum of four even ones, of one number's four quarters. The same on any machine. */
static float make_model_draw(uint64_t seed, uint64_t at)
{
    uint64_t x = rng_mix(seed ^ rng_mix(at));
    int32_t sum = 0;
    for (int k = 0; k < 4; k++, x >>= 16) sum += (int32_t)(x & 0xFFFF) - 0x8000;
    return (float)sum * (WEIGHT_SPREAD * 0x1.bb67aep+0f / 0x10000); /* sqrt(3): four of variance 1/12 */
}

typedef struct drawing {
    const plan *p;
    dtype type;
    uint8_t *to;
    float *values; /* [members][RUN_VALUES] */
} drawing;

static void draw_runs(void *arg, team_member *m)
{
    const drawing *d = arg;
    float *v = d->values + (size_t)member_index(m) * RUN_VALUES;
    size_t bytes = RUN_VALUES / dtype_block(d->type) * dtype_block_bytes(d->type), i, end;
    member_share(m, POOL_VALUES / RUN_VALUES, 1, &i, &end);
    for (; i < end; i++) {
        for (size_t k = 0; k < RUN_VALUES; k++) v[k] = make_model_draw(d->p->o->seed, i * RUN_VALUES + k);
        quantize_row(d->type, v, NULL, d->to + i * bytes, RUN_VALUES);
    }
}

static int draw_pool(plan *p, dtype t)
{
    if (p->pool[t]) return 0;
    p->pool[t] = malloc(POOL_VALUES / dtype_block(t) * dtype_block_bytes(t));
    drawing d = {.p = p, .type = t, .to = p->pool[t]};
    d.values = malloc((size_t)team_size(p->team) * RUN_VALUES * sizeof *d.values);
    int rc = d.to && d.values ? 0 : err_nomem(p->err);
    if (rc == 0) team_run(p->team, draw_runs, &d);
    free(d.values);
    return rc;
}

/* The next n bytes of a matrix: runs of whole blocks from anywhere in the pool. `turn` counts them. */
static void fill_matrix(const plan *p, dtype t, uint64_t salt, uint64_t *turn, uint8_t *out, size_t n)
{
    size_t block = dtype_block_bytes(t), blocks = POOL_VALUES / dtype_block(t);
    size_t most = RUN_VALUES / dtype_block(t) / 4; /* shorter than a run of the pool, so that seams differ */
    for (size_t k; n; n -= k * block, out += k * block) {
        uint64_t x = rng_mix(salt + (*turn)++);
        k = 1 + (size_t)(x >> 32) % most;
        if (k > n / block) k = n / block;
        memcpy(out, p->pool[t] + (size_t)((uint32_t)x % (blocks - k + 1)) * block, k * block);
    }
}

static int write_job(plan *p, gguf_out *o, size_t i)
{
    const job *j = &p->jobs[i];
    size_t n = j->dims[0] * j->dims[1] * j->dims[2] * j->dims[3], block = dtype_block_bytes(j->type);
    size_t left = n / dtype_block(j->type) * block, step = PIECE_BYTES / block * block;
    uint64_t salt = rng_mix(p->o->seed + 1 + i), turn = 0;
    int rc = j->n_dims > 1 ? draw_pool(p, j->type) : 0;
    for (size_t k; rc == 0 && left; left -= k) {
        k = left < step ? left : step;
        if (j->n_dims > 1)
            fill_matrix(p, j->type, salt << 32, &turn, p->piece, k);
        else
            for (size_t v = 0; v < k / sizeof(float); v++)
                memcpy(p->piece + v * sizeof(float), &j->value, sizeof(float));
        rc = gguf_out_data(o, p->piece, k, p->err);
    }
    return rc;
}

static int write_jobs(plan *p, gguf_out *o)
{
    for (size_t i = 0; i < p->n_jobs; i++) {
        int rc = write_job(p, o, i);
        if (rc != 0) return rc;
        if (p->o->progress && p->o->progress(p->o->user, i + 1, p->n_jobs, p->jobs[i].name) != 0)
            return err_set(p->err, SHOAL_ECANCELLED, "stopped at tensor %zu of %zu; nothing was written",
                           i + 1, p->n_jobs);
    }
    return 0;
}

/* ---- */

static int make_model_prepare(plan *p, const make_shape *s)
{
    const arch_def *a = arch_by_gguf(s->arch);
    configure(&p->c, s, a, p->o->n_ctx);
    int rc = arch_check_config(&p->c, s->name, p->err), n_threads = sys_core_count();
    p->types_as = (quantize_options){.type = p->o->type, .medium = p->o->medium};
    p->types = (quantize_types){.opts = &p->types_as, .n_layer = s->n_layer, .own_output = !s->tied};
    if (rc == 0) rc = add_jobs(p, s);
    p->piece = malloc(PIECE_BYTES);
    if (rc == 0 && !p->piece) rc = err_nomem(p->err);
    return rc == 0 ? team_new(&p->team, n_threads < 64 ? n_threads : 64, ISA_SCALAR, p->err) : rc;
}

static int write_file(plan *p, const make_shape *s, const char *out, make_report *ret)
{
    gguf_out o = {0};
    int rc = put_metadata(p, s, &o);
    make_report r = {.n_tensors = p->n_jobs};
    for (size_t i = 0; rc == 0 && i < p->n_jobs; i++) {
        const job *j = &p->jobs[i];
        gguf_out_tensor(&o, j->name, j->type, j->n_dims, j->dims);
        r.n_weights += (uint64_t)j->dims[0] * j->dims[1] * j->dims[2] * j->dims[3];
    }
    if (rc == 0) rc = gguf_out_open(&o, out, p->err);
    if (rc == 0) rc = write_jobs(p, &o);
    if (rc == 0) rc = gguf_out_close(&o, &r.digest, &r.bytes, p->err);
    gguf_out_done(&o);
    if (rc == 0) *ret = r;
    return rc;
}

int make_model(const char *shape, const char *out, const make_options *o, make_report *ret, shoal_err *err)
{
    const make_shape *s = make_shape_find(shape);
    if (!s) return err_set(err, SHOAL_ENOTFOUND, "there is no shape \"%.60s\"", shape);
    plan p = {.o = o, .err = err, .mem = arena_new(0)};
    int rc = p.mem ? make_model_prepare(&p, s) : err_nomem(err);
    if (rc == 0) rc = write_file(&p, s, out, ret);
    for (int t = 0; t < DT_COUNT; t++) free(p.pool[t]);
    free(p.piece);
    free(p.jobs);
    team_free(p.team);
    arena_free(p.mem);
    return rc;
}
