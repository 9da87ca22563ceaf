/* worker_identity.c: see worker_identity.h. */
#include "worker/worker_identity.h"

void worker_identity(char ret[BIT_IDENTITY_BYTES], const worker *w)
{
    const backend_about *a = &w->backend.about;
    buf precision = {0};
    buf_puts(&precision, a->precision);
    if (a->task == TASK_TRANSCRIBE && w->sounds.no_vad) buf_puts(&precision, ",vad=off");
    bit_identity m = {.digest = precision.failed ? "" : w->digest, /* without memory it is like no other */
                      .engine = w->backend.ops->engine,
                      .precision = precision.data,
                      .numerics = w->backend.ops->numerics};
    bit_identity_put(ret, &m);
    buf_done(&precision);
}

Shoal__V1__Capabilities worker_capabilities(const worker *w)
{
    Shoal__V1__Capabilities c = SHOAL__V1__CAPABILITIES__INIT;
    const backend_about *a = &w->backend.about;
    const backend_ops *ops = w->backend.ops;
    bool generates = ops->generate && (a->task == TASK_GENERATE || a->task == TASK_SEQ2SEQ);
    c.ballots = generates && ops->ballot;
    c.beams = generates && a->n_parallel > 1;
    c.likelihood = generates && a->tokenizer;
    c.grammar = generates && a->tokenizer && ops->grammar;
    c.adapters = a->takes_adapters;
    c.templates = a->task == TASK_GENERATE && a->tokenizer;
    return c;
}
