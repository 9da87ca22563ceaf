/* encode.c: everything that waits to be encoded, up to a budget, as one ragged batch: jobs of their own, and
 * the sources of generations. */
#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "compute/profile.h"
#include "infer/engine_impl.h"

#define SOON_NS 2000000u /* what a batch without a deadline asks the arbiter for */

void encode_fail(engine *e, enc_job *j, int status, const char *message)
{
    if (status == SHOAL_ECANCELLED)
        atomic_fetch_add(&e->stats.n_cancelled, 1);
    else
        atomic_fetch_add(&e->stats.n_failed, 1);
    j->fn(j->user,
          &(enc_result){.status = status, .message = message, .queue_ms = clock_ms_since(j->job.submit_ns)});
    encode_free(j);
}

void encode_free(enc_job *j)
{
    if (!j) return;
    adapter_unref(j->adapter);
    free(j->in);
    free(j);
}

/* ---- the batch -------------------------------------------------------------------------------------- */

static const input *input_of(const enc_entry *at)
{
    return at->job ? at->job->in : at->session->source;
}

static const job *job_of(const enc_entry *at)
{
    return at->job ? &at->job->job : &at->session->job;
}

/* Add it if it fits beside the others; the first always does (make_encoder). */
static bool encode_add(engine *e, enc_entry at, size_t *n, size_t *n_positions)
{
    size_t more = input_of(&at)->n_positions;
    if (*n == e->enc_max || (*n > 0 && *n_positions + more > ENC_BATCH_TOKENS)) return false;
    e->enc_batch[(*n)++] = at;
    *n_positions += more;
    return true;
}

/* Generations that have a slot come first: they hold it while they wait. */
static size_t take_batch(engine *e, size_t *n_positions)
{
    size_t n = 0;
    *n_positions = 0;
    for (size_t i = 0; i < e->n_running; i++)
        if (session_waits(e->running[i]))
            encode_add(e, (enc_entry){.session = e->running[i]}, &n, n_positions);
    pthread_mutex_lock(&e->lock);
    job *j;
    while ((j = job_queue_first(&e->queue, JOB_ENCODE)) != NULL &&
           encode_add(e, (enc_entry){.job = (enc_job *)j}, &n, n_positions))
        job_queue_take(&e->queue, j);
    pthread_mutex_unlock(&e->lock);
    return n;
}

static uint64_t fill_inputs(engine *e, size_t n)
{
    uint64_t earliest = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t deadline = job_of(&e->enc_batch[i])->deadline_ns;
        e->enc_inputs[i] = input_of(&e->enc_batch[i])->in;
        if (deadline && (earliest == 0 || deadline < earliest)) earliest = deadline;
    }
    return earliest;
}

static void encode_measure(engine *e, size_t n_positions, uint64_t took_ns)
{
    step_average(&e->stats.prefill_tokens_per_s, (double)n_positions * 1e9 / (double)(took_ns ? took_ns : 1));
    step_average(&e->stats.step_ms, (double)took_ns / 1e6);
    step_learn(&e->stats.prefill, n_positions, (double)took_ns / 1e6);
    atomic_fetch_add(&e->stats.n_prompt_tokens, n_positions);
    atomic_fetch_add(&e->stats.n_steps, 1);
}

/* ---- handing out ------------------------------------------------------------------------------------ */

static bool all_finite(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

static void end_session(engine *e, session *s, int status, const char *message)
{
    loop_take_out(e, s, NULL);
    loop_end(e, s, status, message);
}

/* The source is encoded: what the decoder's layers want of it is made once and kept. */
static void make_cross(engine *e, session *s, const net_input *in, team *t)
{
    s->cross = mem_calloc64(e->ops->cross_bytes(e->mapping.net, in->rows), 1);
    if (!s->cross) return;
    s->n_cross = in->rows;
    e->ops->cross(e->mapping.net, t, s->adapter, in->values, in->rows, s->cross);
}

static void check_session(engine *e, session *s, bool finite)
{
    if (!finite)
        end_session(e, s, SHOAL_EINTERNAL, ENGINE_NOT_FINITE);
    else if (!s->cross)
        end_session(e, s, SHOAL_ENOMEM, NULL);
}

static void give_job(engine *e, enc_job *j, const net_input *in, uint64_t start_ns, uint64_t took_ns,
                     double cpu_ms)
{
    j->fn(j->user, &(enc_result){.message = "",
                                 .values = in->values,
                                 .rows = in->rows,
                                 .cols = in->cols,
                                 .queue_ms = (double)(start_ns - j->job.submit_ns) / 1e6,
                                 .compute_ms = (double)took_ns / 1e6,
                                 .cpu_ms = cpu_ms});
    encode_free(j);
}

static void hand_out(engine *e, size_t n, size_t n_positions, uint64_t start_ns, uint64_t took_ns)
{
    double each_ms = (double)e->lease.cpu_ns / 1e6 / (double)n_positions;
    for (size_t i = 0; i < n; i++) {
        const enc_entry *at = &e->enc_batch[i];
        const net_input *in = &e->enc_inputs[i];
        bool finite = all_finite(in->values, in->rows * in->cols);
        double cpu_ms = each_ms * (double)input_of(at)->n_positions;
        if (at->session) at->session->cpu_ms += cpu_ms;
        if (at->session)
            check_session(e, at->session, finite);
        else if (!finite)
            encode_fail(e, at->job, SHOAL_EINTERNAL, ENGINE_NOT_FINITE);
        else
            give_job(e, at->job, in, start_ns, took_ns, cpu_ms);
    }
}

static void run_batch(engine *e, team *t, size_t n)
{
    e->ops->encode(e->mapping.net, t, e->enc_inputs, n);
    for (size_t i = 0; i < n; i++)
        if (e->enc_batch[i].session) make_cross(e, e->enc_batch[i].session, &e->enc_inputs[i], t);
}

void encode_step(engine *e)
{
    size_t n_positions, n = take_batch(e, &n_positions);
    if (n == 0) return;
    atomic_store(&e->stats.n_running, e->n_running + n);
    uint64_t deadline = fill_inputs(e, n);
    team *t = step_team(e, STEP_ENCODE, n_positions);
    uint64_t start = core_lease_begin(&e->lease, step_deadline(deadline, SOON_NS), team_size(t));
    profile_begin(e->o.profile, t, PROFILE_ENCODE, n_positions);
    run_batch(e, t, n);
    profile_end(e->o.profile, t);
    uint64_t took = core_lease_end(&e->lease);
    step_note_team(e, STEP_ENCODE, n_positions, took);
    encode_measure(e, n_positions, took);
    hand_out(e, n, n_positions, start, took);
    atomic_store(&e->stats.n_running, e->n_running);
}
