/* regroup.c: see regroup.h. */
#include "model/packed/regroup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/arch/arch.h"
#include "model/model_priv.h"
#include "model/quantize/quantize_block.h"
#include "model/quantize/quantize_types.h"

bool regroup_is_type(dtype t)
{
    switch (t) {
#define WIDE(name, kernel) case DT_##name:
        DTYPE_WIDE(WIDE)
#undef WIDE
        return true;
    default: return false;
    }
}

int regroup_parse(const char *name, dtype *ret, shoal_err *err)
{
    dtype t;
    if (dtype_parse(name, &t) && regroup_is_type(t)) {
        *ret = t;
        return 0;
    }
    return err_set(err, SHOAL_EINVALID,
                   "\"%.40s\" is no type that matrices can be regrouped to: s8_64, s8_128, s8_256, s4_64 and "
                   "s4_128 are (and s8_96, s4_96)",
                   name);
}

dtype regroup_type(const model *m, const tensor *t)
{
    rule_hit h;
    if (!m->regroup || t->n_dims < 2 || t->type == m->regroup || !arch_find(m->config.arch, t->name, &h) ||
        (h.rule->flags & (RULE_SMALL | RULE_FLOAT)))
        return t->type;
    dtype fit = quantize_types_fit(m->regroup, t->dims[0]);
    bool better = regroup_is_type(fit) || (dtype_is_float(t->type) && !dtype_is_float(fit));
    return better ? fit : t->type;
}

static void write_row(dtype to, const float *values, void *dst, size_t n)
{
    quantize_row(to, values, NULL, dst, n);
}

const wmat_turn *regroup_turn(const model *m, const tensor *t)
{
#define TURN(name, kernel) [DT_##name] = {DT_##name, write_row},
    static const wmat_turn turns[DT_COUNT] = {DTYPE_TABLE(TURN)};
#undef TURN
    return regroup_type(m, t) == t->type ? NULL : &turns[t->type];
}

/* ---- digests ------------------------------------------------------------------------------------- */

enum { PROBE = 768 }; /* whole groups of every type */

int regroup_layout_of(dtype t, sha256_digest *layout, shoal_err *err)
{
    float values[PROBE];
    uint8_t written[2 * PROBE]; /* more than any of these types takes */
    sha256 *s = sha256_new();
    if (!s) return err_nomem(err);
    for (size_t i = 0; i < PROBE; i++) values[i] = ldexpf((float)(int32_t)(rng_mix(i) >> 32), -31);
    quantize_row(t, values, NULL, written, PROBE);
    sha256_add(s, layout, sizeof *layout);
    sha256_add(s, dtype_name(t), strlen(dtype_name(t)));
    sha256_add(s, written, PROBE / dtype_block(t) * dtype_block_bytes(t));
    sha256_end(s, layout);
    return 0;
}

int regroup_layout(const model *m, sha256_digest *layout, shoal_err *err)
{
    return m->regroup ? regroup_layout_of(m->regroup, layout, err) : 0;
}

int regroup_identity(model *m, sha256_digest *ret, shoal_err *err)
{
    int rc = model_digest(m, ret, err);
    if (rc || !m->regroup) return rc;
    sha256 *s = sha256_new();
    if (!s) return err_nomem(err);
    sha256_add(s, ret, sizeof *ret);
    sha256_add(s, dtype_name(m->regroup), strlen(dtype_name(m->regroup)));
    sha256_end(s, ret);
    return 0;
}

/* ---- refusing ------------------------------------------------------------------------------------ */

int regroup_check(const model *m, shoal_err *err)
{
    bool same = false;
    if (!m->regroup) return 0;
    for (size_t i = 0; i < m->n_tensors; i++) {
        const tensor *t = &m->tensors[i];
        if (regroup_turn(m, t)) return 0;
        same = same || t->type == m->regroup;
    }
    if (same) return 0; /* it is in that type already */
    return err_set(err, SHOAL_EUNSUPPORTED,
                   "%s: none of its matrices can be regrouped to %s: their rows are no multiples of 64 "
                   "weights, nor of 32 floats",
                   m->path, dtype_name(m->regroup));
}
