/* mixer.c: the kinds of mixers; see mixer.h. */
#include "net/mixer.h"

/* ---- attention -------------------------------------------------------------------------------------- */

static int attention_load(layer *ly, const model *m, const model_config *c, const char *prefix,
                          shoal_err *err)
{
    return attend_load(&ly->attend, m, c, prefix, ly->flags, err);
}

static void attention_done(layer *ly)
{
    attend_done(&ly->attend);
}

static void attention_place(layer *ly, size_t slot, size_t state_at)
{
    (void)state_at;
    ly->attend.slot = slot;
}

static rows *attention_run(pass *p, const layer *ly, rows *in)
{
    blk_linear(&p->l, &ly->in, in, &p->qkv, false);
    p->attend(p, ly);
    return &p->att;
}

/* ---- short convolutions ------------------------------------------------------------------------------- */

static int conv_load(layer *ly, const model *m, const model_config *c, const char *prefix, shoal_err *err)
{
    (void)c;
    return shortconv_load(&ly->conv, m, prefix, err);
}

static void conv_done(layer *ly)
{
    shortconv_done(&ly->conv);
}

static void conv_place(layer *ly, size_t slot, size_t state_at)
{
    (void)slot;
    ly->conv.state_at = state_at;
}

static rows *conv_run(pass *p, const layer *ly, rows *in)
{
    blk_linear(&p->l, &ly->in, in, &p->conv_in, false);
    blk_shortconv(&p->l, &ly->conv, p->causal, &p->conv_in, &p->conv);
    return &p->conv;
}

/* ---- the table ---------------------------------------------------------------------------------------- */

const mixer *mixer_of(unsigned layer_flags)
{
    static const mixer attention = {.in = {"attn_q", "attn_k", "attn_v"},
                                    .n_in = 3,
                                    .out = "attn_output",
                                    .measure = "attn_k",
                                    .n_kv = 1,
                                    .load = attention_load,
                                    .done = attention_done,
                                    .place = attention_place,
                                    .run = attention_run};
    static const mixer conv = {.in = {"shortconv.in_proj"},
                               .n_in = 1,
                               .out = "shortconv.out_proj",
                               .measure = "shortconv.in_proj",
                               .load = conv_load,
                               .done = conv_done,
                               .state_bytes = shortconv_state_bytes,
                               .place = conv_place,
                               .run = conv_run};
    return layer_flags & LAYER_CONV ? &conv : &attention;
}
