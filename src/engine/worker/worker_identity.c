/* worker_identity.c: see worker_identity.h. */
#include "worker/worker_identity.h"

#include "compute/compute.h"

/* "file", and behind it what deviates from the file. */
static void put_precision(buf *out, const worker *w, const worker_options *o)
{
    buf_puts(out, BIT_IDENTITY_FILE);
    if (w->model && net_kv_type_deviates(w->model, o->engine.kv_type))
        buf_printf(out, ",kv=%s", kv_type_name(o->engine.kv_type));
    if (o->n_stages > 0 && o->wire != ROWS_F32)
        buf_printf(out, ",wire=%s@%zu", rows_wire_name(o->wire), o->layers.end);
    if (w->task == TASK_TRANSCRIBE && o->no_vad) buf_puts(out, ",vad=off");
}

void worker_identity(char ret[BIT_IDENTITY_BYTES], const worker *w, const worker_options *o)
{
    buf precision = {0};
    put_precision(&precision, w, o);
    bit_identity m = {.digest = precision.failed ? "" : w->digest, /* without memory it is like no other */
                      .engine = BIT_IDENTITY_ENGINE,
                      .precision = precision.data,
                      .numerics = NUMERICS_CONTRACT};
    bit_identity_put(ret, &m);
    buf_done(&precision);
}

bool worker_resumes_exactly(const worker_options *o)
{
    return o->n_stages <= 1 || o->wire == ROWS_F32;
}

Shoal__V1__Capabilities worker_capabilities(const worker *w)
{
    Shoal__V1__Capabilities c = SHOAL__V1__CAPABILITIES__INIT;
    bool generates = w->engine && (w->task == TASK_GENERATE || w->task == TASK_SEQ2SEQ);
    bool reads_text = w->model && model_tokenizer(w->model);
    c.ballots = generates;
    c.beams = generates && engine_width(w->engine) > 1;
    c.likelihood = c.grammar = generates && reads_text;
    c.adapters = w->engine && !w->link;
    return c;
}
