/* quantize.c: read a model, write it as GGUF in other types. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "model/arch/arch.h"
#include "model/files/gguf_writer.h"
#include "model/model_priv.h"
#include "model/quantize/quantize_block.h"
#include "model/quantize/quantize_meta.h"
#include "model/quantize/quantize_types.h"

/* About this many values are converted at a time. */
enum { CHUNK_VALUES = 1 << 18 };

enum { PARTS_MAX = 4 };

/* One tensor to write: from the model, of several where GGUF has them fused, or computed (rope_freqs of a
 * folder). */
typedef struct job {
    const char *name;
    const tensor *parts[PARTS_MAX]; /* their rows follow each other; none for computed values */
    size_t n_parts;
    const float *computed; /* owned by the plan's arena */
    size_t n_dims, dims[4];
    dtype type;
    quantize_class *class;
    size_t permute_head_dim; /* 0, or rows come from arch_rope_source_row */
} job;

typedef struct plan {
    const model *m;
    const quantize_options *opts;
    quantize_report *report;
    arena *mem;
    quantize_types types;
    job *jobs;
    size_t n_jobs;
    float *values, *back; /* a chunk as read, and as written */
    float *weights;       /* a row's importance by column */
    team *team;           /* packs rows side by side */
    uint8_t *bytes;       /* a chunk as written */
    shoal_err *err;
} plan;

/* ---- the plan ------------------------------------------------------------------------------------------ */

/* A report has room for so many classes; the rest shares the last row. */
static void find_class(plan *p, job *j, dtype from)
{
    static const char rest[] = "(others)";
    quantize_report *r = p->report;
    size_t most = sizeof r->classes / sizeof *r->classes;
    char name[48];
    quantize_types_class(j->name, name);
    for (size_t i = 0; i < r->n_classes; i++) {
        quantize_class *c = &r->classes[i];
        j->class = c;
        if (strcmp(c->name, rest) == 0 || (strcmp(c->name, name) == 0 && c->to == j->type)) return;
    }
    j->class = &r->classes[r->n_classes++];
    *j->class = (quantize_class){.from = from, .to = j->type};
    snprintf(j->class->name, sizeof j->class->name, "%s", r->n_classes == most ? rest : name);
}

/* The rows of every tensor that GGUF keeps in one with this first one; 1 alone. */
static int gather_parts(plan *p, const rule_hit *h, job *j)
{
    const model *m = p->m;
    const char *source = rule_pattern(h->rule, NAME_GGUF);
    const tensor_rule *r;
    j->n_parts = 0;
    for (size_t i = 0, at = 0; (r = arch_rule(m->config.arch, i)); i++) {
        const char *pattern = rule_pattern(r, NAME_GGUF);
        if (!(r->flags & RULE_FUSED) || (r->flags & RULE_ALIAS) || strcmp(pattern, source) != 0) continue;
        rule_hit part = *h;
        char name[128];
        part.rule = r;
        rule_name(&part, NAME_MEMORY, name);
        const tensor *t = model_tensor(m, name);
        if (!t || j->n_parts == PARTS_MAX)
            return err_set(p->err, SHOAL_EFORMAT, "%s: %s is missing beside its like", m->path, name);
        j->parts[j->n_parts++] = t;
        at = t->n_dims > 1 ? t->n_dims - 1 : 0;
        j->dims[at] = j->n_parts == 1 ? t->dims[at] : j->dims[at] + t->dims[at];
    }
    return 0;
}

static int add_job(plan *p, const tensor *t)
{
    const model *m = p->m;
    rule_hit h;
    char name[128];
    if (!arch_find(m->config.arch, t->name, &h)) return 0; /* every tensor was adopted by a rule */
    job *j = &p->jobs[p->n_jobs];
    *j = (job){.parts = {t}, .n_parts = 1, .n_dims = t->n_dims};
    memcpy(j->dims, t->dims, sizeof j->dims);
    int rc = h.rule->flags & RULE_FUSED ? gather_parts(p, &h, j) : 0;
    if (rc != 0 || j->parts[0] != t) return rc;
    rule_name(&h, NAME_GGUF, name);
    if (!(j->name = arena_strdup(p->mem, name))) return err_nomem(p->err);
    j->type = t->n_dims == 1 ? DT_F32 : quantize_types_choose(&p->types, h.rule, name, t->dims[0]);
    if (m->is_folder && m->config.arch->pairs && (h.rule->flags & (RULE_ROPE_Q | RULE_ROPE_K)))
        j->permute_head_dim = m->config.attn.head_dim;
    p->n_jobs++;
    find_class(p, j, t->type);
    return 0;
}

static void add_computed(plan *p, const char *name, const float *values, size_t n)
{
    if (model_tensor(p->m, name)) return;
    job *j = &p->jobs[p->n_jobs++];
    *j = (job){.name = name, .computed = values, .n_dims = 1, .dims = {n, 1, 1, 1}, .type = DT_F32};
    find_class(p, j, DT_F32);
}

/* What is a formula or a list in folders is a tensor of divisors in GGUF: Llama 3's and LongRoPE's
 * frequencies. */
static int add_rope_freqs(plan *p)
{
    const rope_conf *r = &p->m->config.pos.rope;
    size_t n = r->dim / 2;
    if (r->scaling == ROPE_LONG) {
        add_computed(p, "rope_factors_long.weight", r->long_by, n);
        add_computed(p, "rope_factors_short.weight", r->short_by, n);
    }
    if (r->scaling != ROPE_LLAMA3) return 0;
    float *values = arena_alloc(p->mem, n * sizeof *values);
    if (!values) return err_nomem(p->err);
    arch_rope_factors(&p->m->config, values, n);
    add_computed(p, "rope_freqs.weight", values, n);
    return 0;
}

static int make_plan(plan *p)
{
    size_t widest = 0;
    int rc = quantize_types_init(&p->types, p->opts, p->m, p->mem, p->report, p->err);
    p->jobs = arena_alloc(p->mem, (p->m->n_tensors + 2) * sizeof *p->jobs);
    if (rc == 0 && !p->jobs) rc = err_nomem(p->err);
    if (rc == 0) rc = add_rope_freqs(p);
    for (size_t i = 0; rc == 0 && i < p->m->n_tensors; i++) {
        rc = add_job(p, &p->m->tensors[i]);
        if (p->m->tensors[i].dims[0] > widest) widest = p->m->tensors[i].dims[0];
    }
    if (rc == 0) rc = quantize_types_finish(&p->types, p->err);
    if (rc != 0) return rc;
    /* One row always fits; the sides were checked against the configuration. */
    size_t room = widest > CHUNK_VALUES ? widest : CHUNK_VALUES;
    p->values = malloc(room * sizeof *p->values);
    p->back = malloc(room * sizeof *p->back);
    p->bytes = malloc(room * sizeof(float));
    p->weights = malloc(widest * sizeof *p->weights + 1);
    if (!p->values || !p->back || !p->bytes || !p->weights) return err_nomem(p->err);
    int n_threads = sys_core_count();
    return team_new(&p->team, n_threads < 64 ? n_threads : 64, ISA_SCALAR, p->err);
}

/* ---- the work -------------------------------------------------------------------------------- */

static size_t rows_of(const tensor *t)
{
    return t->dims[1] * t->dims[2] * t->dims[3];
}

static size_t source_row(const plan *p, const job *j, size_t row)
{
    return arch_rope_source_row(row, j->permute_head_dim, p->m->config.pos.rope.dim);
}

/* One row of the parts, in their order. Vectors in parts have all of them for a row. */
static void read_row(const job *j, size_t row, float *out)
{
    for (size_t k = 0; k < j->n_parts; k++) {
        const tensor *t = j->parts[k];
        size_t cols = t->dims[0], n = rows_of(t);
        size_t bytes = cols / dtype_block(t->type) * dtype_block_bytes(t->type);
        if (t->n_dims == 1) {
            dtype_to_f32(t->type, t->data, out, cols);
            out += cols;
        } else if (row < n) {
            dtype_to_f32(t->type, (const uint8_t *)t->data + row * bytes, out, cols);
            return;
        } else {
            row -= n;
        }
    }
}

/* values = rows [begin, begin + n) of the job's tensor as it will be written. */
static void read_rows(const plan *p, const job *j, size_t begin, size_t n)
{
    size_t cols = j->dims[0];
    if (j->computed) {
        memcpy(p->values, j->computed, cols * sizeof *p->values);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        size_t row = begin + i;
        if (j->permute_head_dim && j->n_dims > 1) row = source_row(p, j, row);
        read_row(j, row, p->values + i * cols);
    }
    if (!j->permute_head_dim || j->n_dims > 1) return;
    memcpy(p->back, p->values, cols * sizeof *p->values); /* a bias: its elements are the rows */
    for (size_t i = 0; i < cols; i++) p->values[i] = p->back[source_row(p, j, i)];
}

/* Sums of squares gather in the class's rms fields until finish_report divides them. */
static void quantize_measure(const plan *p, quantize_class *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v = (double)p->values[i], e = fabs(v - (double)p->back[i]);
        c->rms_value += v * v;
        c->rms_error += e * e;
        if (e > c->max_error) c->max_error = e;
    }
}

static bool all_finite(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

/* A chunk of whole rows for the team to pack and to read back. */
typedef struct chunk {
    const plan *p;
    const job *j;
    const float *weights; /* importance by column, NULL: all alike */
    size_t n_rows;
} chunk;

static void pack_rows(void *arg, team_member *m)
{
    const chunk *c = arg;
    const plan *p = c->p;
    dtype t = c->j->type;
    size_t cols = c->j->dims[0], bytes = cols / dtype_block(t) * dtype_block_bytes(t), i, end;
    member_share(m, c->n_rows, 1, &i, &end);
    for (; i < end; i++) {
        quantize_row(t, p->values + i * cols, c->weights, p->bytes + i * bytes, cols);
        dtype_to_f32(t, p->bytes + i * bytes, p->back + i * cols, cols);
    }
}

/* Pack the chunk of n values and read it back. */
static int convert(plan *p, const job *j, size_t n)
{
    if (!all_finite(p->values, n))
        return err_set(p->err, SHOAL_EFORMAT, "%s: tensor %s holds a value that is not a finite number",
                       p->m->path, j->name);
    bool known = p->opts->importance && j->n_parts && j->n_dims > 1 &&
                 importance_get(p->opts->importance, j->parts[0]->name, j->dims[0], p->weights);
    chunk c = {.p = p, .j = j, .weights = known ? p->weights : NULL, .n_rows = n / j->dims[0]};
    team_run(p->team, pack_rows, &c);
    if (!all_finite(p->back, n))
        return err_set(p->err, SHOAL_EUNSUPPORTED, "%s: tensor %s holds a value too large for %s", p->m->path,
                       j->name, dtype_name(j->type));
    quantize_measure(p, j->class, n);
    return 0;
}

static int write_job(plan *p, gguf_out *o, const job *j)
{
    size_t cols = j->dims[0], rows = j->dims[1] * j->dims[2] * j->dims[3];
    size_t step = CHUNK_VALUES / cols ? CHUNK_VALUES / cols : 1;
    int rc = 0;
    for (size_t row = 0; rc == 0 && row < rows; row += step) {
        size_t n_rows = rows - row < step ? rows - row : step, n = n_rows * cols;
        size_t bytes = n / dtype_block(j->type) * dtype_block_bytes(j->type);
        read_rows(p, j, row, n_rows);
        rc = convert(p, j, n);
        if (rc == 0) rc = gguf_out_data(o, p->bytes, bytes, p->err);
        j->class->bytes_out += bytes;
    }
    j->class->n_tensors++;
    for (size_t k = 0; k < j->n_parts; k++) j->class->bytes_in += j->parts[k]->bytes;
    return rc;
}

static int write_jobs(plan *p, gguf_out *o)
{
    for (size_t i = 0; i < p->n_jobs; i++) {
        int rc = write_job(p, o, &p->jobs[i]);
        if (rc != 0) return rc;
        if (p->opts->progress && p->opts->progress(p->opts->user, i + 1, p->n_jobs, p->jobs[i].name) != 0)
            return err_set(p->err, SHOAL_ECANCELLED, "stopped at tensor %zu of %zu; nothing was written",
                           i + 1, p->n_jobs);
    }
    return 0;
}

static void finish_report(plan *p)
{
    double n[sizeof p->report->classes / sizeof *p->report->classes] = {0};
    for (size_t i = 0; i < p->n_jobs; i++) {
        const job *j = &p->jobs[i];
        n[j->class - p->report->classes] +=
            (double)j->dims[0] * (double)j->dims[1] * (double)j->dims[2] * (double)j->dims[3];
    }
    for (size_t i = 0; i < p->report->n_classes; i++) {
        quantize_class *c = &p->report->classes[i];
        c->rms_error = sqrt(c->rms_error / n[i]);
        c->rms_value = sqrt(c->rms_value / n[i]);
    }
    for (size_t i = 0; i < p->m->n_maps; i++) p->report->bytes_in += p->m->maps[i].len;
}

static int run_plan(plan *p, const char *out)
{
    gguf_out o = {0};
    int rc = make_plan(p);
    if (rc == 0) rc = quantize_put_metadata(&o, p->m, p->opts, p->err);
    for (size_t i = 0; rc == 0 && i < p->n_jobs; i++)
        gguf_out_tensor(&o, p->jobs[i].name, p->jobs[i].type, p->jobs[i].n_dims, p->jobs[i].dims);
    if (rc == 0) rc = gguf_out_open(&o, out, p->err);
    if (rc == 0) rc = write_jobs(p, &o);
    if (rc == 0) rc = gguf_out_close(&o, &p->report->digest, &p->report->bytes_out, p->err);
    gguf_out_done(&o);
    return rc;
}

int quantize_model(const char *in, const char *out, const quantize_options *opts, quantize_report *ret,
                   shoal_err *err)
{
    model *m = NULL;
    int rc = model_open(&m, in, NULL, err);
    if (rc == SHOAL_EINVALID) rc = err->code = SHOAL_EFORMAT; /* the file is wrong, not what was asked */
    if (rc == 0 && model_get_config(m)->task == TASK_VAD)
        rc = err_set(err, SHOAL_EUNSUPPORTED, "%s: a voice detector is small: serve the file as it is", in);
    if (rc != 0) {
        model_free(m);
        return rc;
    }
    quantize_report report = {0};
    plan p = {.m = m, .opts = opts, .report = &report, .err = err, .mem = arena_new(0)};
    rc = p.mem ? run_plan(&p, out) : err_nomem(err);
    if (rc == 0) {
        finish_report(&p);
        *ret = report;
    }
    free(p.values);
    free(p.back);
    free(p.bytes);
    free(p.weights);
    team_free(p.team);
    arena_free(p.mem);
    model_free(m);
    return rc;
}
