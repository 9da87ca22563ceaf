/* engine.c: an engine's life, what it takes in, and what it says of itself. Its thread is loop.c. */
#include "infer/engine.h"

#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/signal_stack.h"
#include "base/sys.h"
#include "infer/context_plan.h"
#include "infer/engine_impl.h"

#define ENC_BATCH_ITEMS 64
#define PROBE_NS        1000000000u

static const char NO_ADAPTERS[] =
    "a network in stages takes no adapters: its layers are in several processes";

/* ---- making and freeing ------------------------------------------------------------------------------ */

static void fill_defaults(engine *e, const engine_options *o)
{
    if (o) e->o = *o;
    if (e->o.n_threads <= 0) e->o.n_threads = sys_core_count();
    if (e->o.n_threads > 64) e->o.n_threads = 64;
    if (e->o.max_batch == 0) e->o.max_batch = 32;
    if (e->o.max_queue == 0) e->o.max_queue = 256;
    e->max_tokens = e->o.max_batch + BATCH_CHUNK_MAX;
    e->n_ctx = context_plan_asked(e->c, e->o.n_ctx);
}

static int make_step(engine_step *w, engine *e, shoal_err *err)
{
    size_t n = e->o.max_batch;
    w->e = e;
    w->items = calloc(n, sizeof *w->items);
    w->item_session = calloc(n, sizeof *w->item_session);
    w->item_of = calloc(n, sizeof *w->item_of);
    w->steppers = calloc(n, sizeof *w->steppers);
    w->stepper_of = calloc(n, sizeof *w->stepper_of);
    w->entries = calloc(n, sizeof *w->entries);
    return w->items && w->item_session && w->item_of && w->steppers && w->stepper_of && w->entries
               ? 0
               : err_nomem(err);
}

static int make_steps(engine *e, shoal_err *err)
{
    int rc = 0;
    e->depth = e->o.shards ? e->o.shards->n_stages : 1;
    e->steps = calloc(e->depth, sizeof *e->steps);
    if (!e->steps) return err_nomem(err);
    for (size_t i = 0; rc == 0 && i < e->depth; i++) rc = make_step(&e->steps[i], e, err);
    return rc;
}

/* The bounds of the other stages are this one's, too. */
static int meet_shards(engine *e, const kv_shape *shape, size_t *kv_bytes, shoal_err *err)
{
    const shards *sh = e->o.shards;
    size_t bytes;
    if (e->o.max_batch > sh->max_items || e->max_tokens > sh->max_tokens)
        return err_set(err, SHOAL_EINVALID,
                       "%zu sequences are to run together, but a stage has room for %zu: give all stages the "
                       "same --max-batch",
                       e->o.max_batch, sh->max_items);
    if (e->n_ctx > sh->n_ctx) e->n_ctx = sh->n_ctx;
    if (kv_bytes_for(shape, sh->n_pages, &bytes, NULL) == 0 && bytes < *kv_bytes) *kv_bytes = bytes;
    e->hidden = mem_calloc64(e->max_tokens * e->c->n_embd, sizeof *e->hidden);
    e->sent_items = calloc(e->o.max_batch, sizeof *e->sent_items);
    e->copies = calloc(e->o.max_batch, sizeof *e->copies);
    return e->hidden && e->sent_items && e->copies ? 0 : err_nomem(err);
}

/* A search forks each of its lanes once at most before it computes again, and then the copies are sent. */
static void note_copy(void *user, uint32_t from, uint32_t to)
{
    engine *e = user;
    assert(e->n_copies < e->o.max_batch);
    e->copies[e->n_copies++] = (stage_copy){.from = from, .to = to};
}

/* What was asked for is given, or refused: no request should learn that it was not. */
static int check_ctx(const engine *e, shoal_err *err)
{
    size_t wanted = e->o.n_ctx, capacity = kv_capacity_tokens(e->kv);
    if (wanted <= capacity || capacity >= e->n_ctx || e->o.shards) return 0;
    size_t mib = (size_t)((double)e->kv->page_bytes * (double)wanted / KV_PAGE_TOKENS / (1 << 20)) + 1;
    return err_set(err, SHOAL_ELIMIT,
                   "a context of %zu tokens takes %zu MiB of keys and values, and %s allows %zu tokens: %s",
                   wanted, mib, e->o.kv_bytes ? "kv_mb" : "half of the free memory", capacity,
                   e->o.kv_bytes ? "give it more, or a smaller context"
                                 : "give a smaller context, or say kv_mb");
}

static int make_cache(engine *e, shoal_err *err)
{
    size_t bytes = e->o.kv_bytes;
    kv_shape shape = e->o.shards ? e->ops->kv_part(e->m, e->o.shards->part) : e->ops->kv(e->m);
    int rc = kv_shape_keep_as(&shape, e->o.kv_type, err);
    if (rc == 0 && bytes == 0)
        rc = kv_default_bytes(&shape, kv_default_tokens(e->o.n_ctx, e->n_ctx), &bytes, err);
    if (rc == 0 && e->o.shards) rc = meet_shards(e, &shape, &bytes, err);
    if (rc == 0) rc = kv_new(&e->kv, &shape, bytes, err);
    if (rc == 0) rc = check_ctx(e, err);
    if (rc || !e->o.shards) return rc;
    e->kv->copied = note_copy;
    e->kv->copied_user = e;
    return 0;
}

static int make_decoder(engine *e, shoal_err *err)
{
    int rc = make_cache(e, err);
    if (rc == 0) rc = make_steps(e, err);
    if (rc) return rc;
    /* One sequence must fit in the cache when it is alone: then the oldest can always go on. */
    if (kv_capacity_tokens(e->kv) < e->n_ctx) e->n_ctx = kv_capacity_tokens(e->kv);
    size_t n = e->o.max_batch;
    e->running = calloc(n, sizeof *e->running);
    e->slots = calloc(n, sizeof *e->slots);
    e->spaces = calloc((size_t)e->o.n_threads, sizeof *e->spaces);
    if (!e->running || !e->slots || !e->spaces) return err_nomem(err);
    if (!e->o.no_drafts && draft_book_init(&e->book)) return err_nomem(err);
    for (int i = 0; i < e->o.n_threads; i++) {
        if (sampler_space_init(&e->spaces[i], e->c->n_vocab)) return err_nomem(err);
    }
    atomic_store(&e->stats.kv_pages_total, e->kv->n_pages);
    return 0;
}

/* The longest text that its encoder takes. */
static size_t source_ctx(const engine *e)
{
    return e->c->source.n_ctx ? e->c->source.n_ctx : e->n_ctx;
}

static int make_encoder(engine *e, shoal_err *err)
{
    size_t longest = e->ops->longest(e->c, source_ctx(e));
    e->enc_positions = longest > ENC_BATCH_TOKENS ? longest : ENC_BATCH_TOKENS;
    e->enc_max = e->o.max_batch < ENC_BATCH_ITEMS ? e->o.max_batch : ENC_BATCH_ITEMS;
    e->enc_inputs = calloc(e->enc_max, sizeof *e->enc_inputs);
    e->enc_batch = calloc(e->enc_max, sizeof *e->enc_batch);
    return e->enc_inputs && e->enc_batch ? 0 : err_nomem(err);
}

static int load_net(engine *e, shoal_err *err)
{
    net_limits limits = {.part = e->o.shards ? e->o.shards->part : (net_layers){0},
                         .n_ctx = e->n_ctx,
                         .max_tokens = e->max_tokens,
                         .max_rows = e->o.max_batch + PROBE_ROWS,
                         .max_inputs = e->enc_max,
                         .max_positions = e->enc_positions};
    return weights_mapping_load(&e->mapping, e->ops, e->m, e->team, &limits, err);
}

static void *thread_main(void *arg)
{
    signal_stack_open();
    loop_run(arg);
    return NULL;
}

static void free_steps(engine *e)
{
    for (size_t i = 0; e->steps && i < e->depth; i++) {
        engine_step *w = &e->steps[i];
        free(w->items);
        free(w->item_session);
        free(w->item_of);
        free(w->steppers);
        free(w->stepper_of);
        free(w->entries);
    }
    free(e->steps);
    free(e->hidden);
    free(e->sent_items);
    free(e->copies);
}

static void destroy(engine *e)
{
    free_steps(e);
    step_cost_file_close(&e->step_cost_file, &e->mapping.store, &e->step_cost);
    weights_mapping_free(&e->mapping, e->ops);
    kv_free(e->kv);
    for (int i = 0; e->spaces && i < e->o.n_threads; i++) sampler_space_done(&e->spaces[i]);
    free(e->spaces);
    free(e->running);
    free(e->slots);
    draft_book_done(&e->book);
    free(e->enc_inputs);
    free(e->enc_batch);
    team_free(e->team);
    grammar_vocab_free(e->vocab);
    adapters_done(&e->adapters);
    adapter_unref(e->standard);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->wake);
    free(e);
}

static int check_shards(const engine *e, shoal_err *err)
{
    if (e->o.adapter) return err_set(err, SHOAL_EUNSUPPORTED, "%s", NO_ADAPTERS);
    return stage_check_part(e->c, e->o.shards->part, err);
}

/* Signals are for the threads of whoever has the engine. */
static bool start_thread(engine *e)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&e->thread, NULL, thread_main, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0;
}

static int engine_start(engine *e, shoal_err *err)
{
    isa i;
    if (!(e->ops = net_ops_for(e->c, err))) return SHOAL_EUNSUPPORTED;
    if (context_plan_check(e->c, e->o.n_ctx, err) != 0) return err->code;
    int rc = e->o.shards ? check_shards(e, err) : net_check_kv_type(e->m, e->o.kv_type, err);
    if (rc == 0) rc = isa_choose(&i, err);
    if (rc == 0) rc = team_new(&e->team, e->o.n_threads, i, err);
    e->step_cost.n_members = e->o.n_threads;
    e->step_cost.n_cores = sys_core_count();
    e->lease.arbiter = e->o.arbiter;
    if (rc == 0) core_lease_watch(&e->lease, e->team);
    if (rc == 0 && (e->ops->roles & NET_DECODES)) rc = make_decoder(e, err);
    if (rc == 0 && (e->ops->roles & NET_ENCODES)) rc = make_encoder(e, err);
    if (rc == 0) rc = load_net(e, err);
    if (rc == 0)
        step_cost_file_open(&e->step_cost_file, &e->mapping.store, &e->mapping.head, i, &e->step_cost);
    if (rc == 0 && e->o.adapter)
        rc = adapter_open(&e->standard, e->o.adapter, e->o.adapter_strength != 0 ? e->o.adapter_strength : 1,
                          e->m, err);
    e->o.adapter = NULL; /* the caller's */
    if (rc) return rc;
    model_drop_weights(e->m);
    if (!start_thread(e)) return err_set(err, SHOAL_ENOMEM, "the engine's thread could not be started");
    e->has_thread = true;
    return 0;
}

int engine_new(engine **ret, model *m, const engine_options *opts, shoal_err *err)
{
    engine *e = calloc(1, sizeof *e);
    if (!e) return err_nomem(err);
    e->m = m;
    e->c = model_get_config(m);
    fill_defaults(e, opts);
    atomic_store(&e->stats.fresh_share, 1);
    pthread_mutex_init(&e->lock, NULL);
    pthread_condattr_t steady; /* so that timed waits do not follow a clock that somebody sets */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&e->wake, &steady);
    pthread_condattr_destroy(&steady);
    int rc = engine_start(e, err);
    if (rc) {
        destroy(e);
        return rc;
    }
    *ret = e;
    return 0;
}

void engine_stop(engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->stopping = true;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    if (e->has_thread) pthread_join(e->thread, NULL);
    e->has_thread = false;
}

void engine_free(engine *e)
{
    if (!e) return;
    engine_stop(e);
    destroy(e);
}

size_t engine_ctx(const engine *e)
{
    return e->n_ctx;
}

size_t engine_width(const engine *e)
{
    return e->ops->roles & NET_DECODES ? e->o.max_batch : 1;
}

/* ---- adapters ------------------------------------------------------------------------------------ */

int engine_adapter_load(engine *e, const char *name, const char *path, float strength, shoal_err *err)
{
    adapter *a;
    if (e->o.shards) return err_set(err, SHOAL_EUNSUPPORTED, "%s", NO_ADAPTERS);
    int rc = adapters_check_name(name, err);
    if (rc == 0) rc = adapter_open(&a, path, strength, e->m, err);
    if (rc) return rc;
    pthread_mutex_lock(&e->lock);
    rc = adapters_add(&e->adapters, name, a, err);
    pthread_mutex_unlock(&e->lock);
    if (rc) adapter_unref(a);
    return rc;
}

int engine_adapter_unload(engine *e, const char *name, shoal_err *err)
{
    pthread_mutex_lock(&e->lock);
    int rc = adapters_remove(&e->adapters, name, model_name(e->m), err);
    pthread_mutex_unlock(&e->lock);
    return rc;
}

bool engine_adapter_name(engine *e, size_t i, char ret_name[64], char ret_digest[65])
{
    pthread_mutex_lock(&e->lock);
    bool there = i < e->adapters.n;
    if (there) snprintf(ret_name, 64, "%s", e->adapters.at[i].name);
    if (there && ret_digest) sha256_hex(adapter_digest(e->adapters.at[i].adapter), ret_digest);
    pthread_mutex_unlock(&e->lock);
    return there;
}

/* Without a name the standard one, NULL when there is none. */
static int take_adapter(engine *e, const char *name, adapter **ret, shoal_err *err)
{
    *ret = name ? NULL : e->standard;
    if (*ret) adapter_ref(*ret);
    if (!name) return 0;
    pthread_mutex_lock(&e->lock);
    int rc = adapters_take(&e->adapters, name, model_name(e->m), ret, err);
    pthread_mutex_unlock(&e->lock);
    return rc;
}

/* ---- submitting ---------------------------------------------------------------------------------- */

/* The least that the answer needs: the inputs in front of it and its own, less what the cache usually knows
 * of them. It is an estimate, so it counts only while others are here, and once a second not even then. */
static int check_deadline(const engine *e, const job *j, uint64_t now_ns, shoal_err *err)
{
    if (j->deadline_ns == 0) return 0;
    if (j->deadline_ns <= now_ns) return err_set(err, SHOAL_EDEADLINE, "the deadline has passed");
    size_t tokens = job_queue_tokens_before(&e->queue, j->due_ns) + j->n_tokens;
    double fresh = (double)tokens * atomic_load(&e->stats.fresh_share);
    double n_steps = ceil(fresh / (double)e->max_tokens);
    double need_ms = linear_cost_line_least_ms(learnt_cost_line(&e->stats.prefill), n_steps, fresh);
    double left_ms = (double)(j->deadline_ns - now_ns) / 1e6;
    bool busy = e->queue.n + atomic_load(&e->stats.n_running) > 0;
    if (left_ms > need_ms || !busy || now_ns - e->accepted_ns >= PROBE_NS) return 0;
    return err_set(
        err, SHOAL_EDEADLINE,
        "the deadline is %.1f ms away and the %zu tokens ahead of the answer take %.1f ms at least", left_ms,
        tokens, need_ms);
}

/* Places in the running batch that nobody has: whoever is to take one waits for the next step at most, and
 * does not count as waiting. Under the lock. */
static size_t free_slots(const engine *e)
{
    size_t n = e->ops->roles & NET_DECODES ? e->o.max_batch - e->n_running : 0;
    return n < e->queue.n ? n : e->queue.n;
}

/* For the engine thread to end. Under the lock. */
static void engine_drop(engine *e, job *dead)
{
    for (job *next; dead; dead = next) {
        next = dead->next;
        dead->next = e->dropped;
        e->dropped = dead;
    }
}

/* Whose deadline has passed waits no more, though the engine thread is in a step and has not seen it. */
static size_t count_waiting(engine *e, uint64_t now_ns)
{
    size_t n = e->queue.n - free_slots(e);
    if (n < e->o.max_queue) return n;
    engine_drop(e, job_queue_reap(&e->queue, now_ns));
    return e->queue.n - free_slots(e);
}

static int submit(engine *e, job *j, uint64_t *ret_id, shoal_err *err)
{
    uint64_t now = clock_ns();
    pthread_mutex_lock(&e->lock);
    int rc = 0;
    j->due_ns = job_queue_due_ns(now, j->deadline_ns, j->class);
    size_t n_waiting = count_waiting(e, now);
    if (e->stopping) {
        rc = err_set(err, SHOAL_EUNAVAILABLE, "the engine is closing");
    } else if (n_waiting >= e->o.max_queue) {
        rc = err_set(err, SHOAL_EFULL, "%zu requests are waiting, the limit is %zu", n_waiting,
                     e->o.max_queue);
    } else {
        rc = check_deadline(e, j, now, err);
    }
    if (rc == 0) {
        j->submit_ns = j->queued_ns = e->accepted_ns = now;
        j->id = ++e->last_id;
        if (j->group == 0) j->group = ~j->id; /* a request of its own */
        if (ret_id) *ret_id = j->id;
        job_queue_push(&e->queue, j);
        pthread_cond_signal(&e->wake);
    }
    pthread_mutex_unlock(&e->lock);
    if (rc == 0)
        atomic_fetch_add(&e->stats.n_requests, 1);
    else
        atomic_fetch_add(&e->stats.n_failed, 1);
    return rc;
}

static int need_vocab(engine *e, const grammar_vocab **ret, shoal_err *err)
{
    const tokenizer *t = model_tokenizer(e->m);
    int rc = 0;
    pthread_mutex_lock(&e->lock);
    if (!e->vocab && t) rc = grammar_vocab_new(&e->vocab, t, err);
    *ret = e->vocab;
    pthread_mutex_unlock(&e->lock);
    return rc;
}

int engine_grammar(engine *e, const grammar_spec *form, grammar **ret, shoal_err *err)
{
    const grammar_vocab *vocab = NULL;
    int rc = session_check_tokenizer(e->m, err);
    if (rc == 0) rc = need_vocab(e, &vocab, err);
    return rc == 0 ? grammar_new(ret, vocab, form, err) : rc;
}

/* A search must fit when it is alone: then the oldest can always go on. */
static int check_beams(const engine *e, const gen_request *r, shoal_err *err)
{
    size_t longest = r->max_tokens && r->max_tokens < e->n_ctx ? r->n_ids + r->max_tokens : e->n_ctx;
    size_t pages = longest / KV_PAGE_TOKENS + 1;
    if (r->n_beams > e->o.max_batch)
        return err_set(err, SHOAL_ELIMIT, "%zu beams are over the %zu sequences that run together",
                       r->n_beams, e->o.max_batch);
    if (pages * r->n_beams > e->kv->n_pages)
        return err_set(
            err, SHOAL_ELIMIT,
            "%zu beams of %zu tokens need more key/value memory than the %zu tokens there are: ask for "
            "fewer tokens or beams",
            r->n_beams, longest, kv_capacity_tokens(e->kv));
    return 0;
}

/* A generation that can be run: with a source where the model reads one, and without where it does not. */
static int new_session(engine *e, session **ret, const gen_request *r, size_t n_ctx, shoal_err *err)
{
    const grammar_vocab *vocab = NULL;
    input *source = NULL;
    adapter *adapter = NULL;
    if (!(e->ops->roles & NET_DECODES))
        return err_set(err, SHOAL_EINVALID, "%s does not generate text", model_name(e->m));
    if ((r->source != NULL) != ((e->ops->roles & NET_CROSS) != 0))
        return err_set(err, SHOAL_EINVALID,
                       r->source ? "%s reads no source beside its prompt" : "%s needs a source to read",
                       model_name(e->m));
    int rc = r->form ? need_vocab(e, &vocab, err) : 0;
    if (rc == 0 && r->n_beams > 1) rc = check_beams(e, r, err);
    if (rc == 0 && r->source) rc = input_new(&source, e->ops, e->c, r->source, source_ctx(e), err);
    if (rc == 0) rc = take_adapter(e, r->adapter, &adapter, err);
    if (rc == 0) return session_new(ret, e->m, r, source, adapter, n_ctx, vocab, err);
    free(source);
    return rc;
}

/* A prompt that is only judged may fill the context: one more place than that is never used. */
static int new_judged(engine *e, session **ret, const gen_request *r, shoal_err *err)
{
    gen_request alone = *r;
    alone.max_tokens = 1;
    if (r->n_ids > e->n_ctx)
        return err_set(err, SHOAL_ELIMIT,
                       "This model's maximum context length is %zu tokens, and the prompt has %zu", e->n_ctx,
                       r->n_ids);
    return new_session(e, ret, &alone, e->n_ctx + 1, err);
}

int engine_generate(engine *e, const gen_request *r, gen_event_fn fn, void *user, uint64_t *ret_id,
                    shoal_err *err)
{
    session *s = NULL;
    int rc = r->only_judges ? new_judged(e, &s, r, err) : new_session(e, &s, r, e->n_ctx, err);
    if (rc) return rc;
    s->fn = fn;
    s->user = user;
    s->job.group = r->group;
    rc = submit(e, &s->job, ret_id, err);
    if (rc) session_free(s);
    return rc;
}

static job *find_running(const engine *e, uint64_t id)
{
    for (size_t i = 0; i < e->n_running; i++) {
        if (e->running[i]->job.id == id) return &e->running[i]->job;
    }
    return NULL;
}

static job *find_waiting(const engine *e, uint64_t id)
{
    job *j = e->queue.head;
    while (j && j->id != id) j = j->next;
    return j;
}

void engine_pause(engine *e, uint64_t id, bool paused)
{
    pthread_mutex_lock(&e->lock);
    job *j = find_running(e, id);
    if (!j) j = find_waiting(e, id);
    if (j && !paused) j->queued_ns = clock_ns(); /* what it rested was no wait for a slot */
    if (j) atomic_store(&j->paused, paused);
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

static session *find_awaiting(const engine *e, uint64_t id, size_t position)
{
    for (size_t i = 0; i < e->n_running; i++) {
        session *s = e->running[i];
        if (s->job.id == id) return session_awaits(s) && s->n_generated == position ? s : NULL;
    }
    return NULL;
}

int engine_ballot(engine *e, uint64_t id, size_t position, const float *mean, size_t n)
{
    pthread_mutex_lock(&e->lock);
    session *s = find_awaiting(e, id, position);
    int rc = s && !s->ballot->given ? 0 : SHOAL_ENOTFOUND;
    if (rc == 0 && (n != s->ballot->n_vocab || !ballot_is_mean(s->ballot, mean))) rc = SHOAL_EINVALID;
    if (rc == 0) {
        memcpy(s->ballot->values, mean, n * sizeof *mean);
        s->ballot->given = true;
        pthread_cond_signal(&e->wake);
    }
    pthread_mutex_unlock(&e->lock);
    return rc;
}

void engine_cancel(engine *e, uint64_t id)
{
    pthread_mutex_lock(&e->lock);
    job *runs = find_running(e, id), *waits = runs ? NULL : find_waiting(e, id);
    if (runs || waits) atomic_store(&(runs ? runs : waits)->cancelled, true);
    if (waits) {
        job_queue_take(&e->queue, waits);
        engine_drop(e, waits);
    }
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

/* ---- encoders ------------------------------------------------------------------------------------- */

int engine_encode(engine *e, const enc_request *r, enc_result_fn fn, void *user, uint64_t *ret_id,
                  shoal_err *err)
{
    if (!(e->ops->roles & NET_ENCODES))
        return err_set(err, SHOAL_EINVALID, "%s generates text and does not encode it", model_name(e->m));
    enc_job *j = calloc(1, sizeof *j);
    int rc = j ? input_new(&j->in, e->ops, e->c, r, source_ctx(e), err) : err_nomem(err);
    if (rc == 0) rc = take_adapter(e, r->adapter, &j->adapter, err);
    if (rc == 0) {
        j->in->in.adapter = j->adapter;
        j->job.kind = JOB_ENCODE;
        j->job.deadline_ns = r->deadline_ns;
        j->job.class = job_class_of(r->latency);
        j->job.n_tokens = j->in->n_positions;
        j->fn = fn;
        j->user = user;
        rc = submit(e, &j->job, ret_id, err);
    }
    if (rc) encode_free(j);
    return rc;
}

void engine_scores(const engine *e, const float *logits, float *ret_scores)
{
    size_t n = e->c->head.n_labels;
    if (e->c->head.multi_label || n == 1) {
        for (size_t i = 0; i < n; i++) ret_scores[i] = 1 / (1 + math_expf(-logits[i]));
        return;
    }
    memmove(ret_scores, logits, n * sizeof *logits);
    team_vec(e->team)->softmax(ret_scores, n);
}

void engine_word_scores(const engine *e, float *row)
{
    team_vec(e->team)->softmax(row, e->c->n_vocab);
}

/* ---- raw logits ----------------------------------------------------------------------------------- */

typedef struct probe_wait {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    int status;
    shoal_err *err;
} probe_wait;

static void on_probe(void *user, const gen_event *ev)
{
    probe_wait *w = user;
    if (ev->kind != EVENT_DONE) return;
    pthread_mutex_lock(&w->lock);
    w->status = ev->status ? err_set(w->err, ev->status, "%s", ev->message) : 0;
    w->done = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

static int probe_run(engine *e, session *s, shoal_err *err)
{
    probe_wait w = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .err = err};
    s->fn = on_probe;
    s->user = &w;
    int rc = submit(e, &s->job, NULL, err);
    if (rc) {
        session_free(s);
        return rc;
    }
    pthread_mutex_lock(&w.lock);
    while (!w.done) pthread_cond_wait(&w.wake, &w.lock);
    pthread_mutex_unlock(&w.lock);
    return w.status;
}

int engine_logits(engine *e, const enc_request *source, const int32_t *ids, size_t n_ids, size_t n_last,
                  float *out, shoal_err *err)
{
    return engine_logits_adapted(e, NULL, source, ids, n_ids, n_last, out, err);
}

int engine_logits_adapted(engine *e, const char *adapter, const enc_request *source, const int32_t *ids,
                          size_t n_ids, size_t n_last, float *out, shoal_err *err)
{
    if (!(e->ops->roles & NET_DECODES))
        return err_set(err, SHOAL_EINVALID, "%s has no next-token logits", model_name(e->m));
    if (n_last == 0 || n_last > n_ids) {
        return err_set(err, SHOAL_EINVALID, "the last %zu of %zu positions were asked for", n_last, n_ids);
    }
    session *s = NULL;
    gen_request r = {.ids = ids, .n_ids = n_ids, .source = source, .max_tokens = 1, .adapter = adapter};
    int rc = new_judged(e, &s, &r, err); /* as if it were judged: it chooses no token either */
    if (rc) return rc;
    s->probe_out = out;
    s->n_probe = n_last;
    return probe_run(e, s, err);
}

/* ---- statistics ----------------------------------------------------------------------------------- */

static double queue_ms(const engine *e)
{
    if (atomic_load(&e->queue.n) == 0) return 0;
    pthread_mutex_lock((pthread_mutex_t *)&e->lock);
    uint64_t ns = job_queue_longest_ns(&e->queue, clock_ns());
    pthread_mutex_unlock((pthread_mutex_t *)&e->lock);
    return (double)ns / 1e6;
}

void engine_get_stats(const engine *e, engine_stats *ret)
{
    const engine_counters *c = &e->stats;
    *ret = (engine_stats){.n_running = atomic_load(&c->n_running),
                          .n_waiting = atomic_load(&e->queue.n),
                          .kv_pages_used = atomic_load(&c->kv_pages_used),
                          .kv_pages_kept = atomic_load(&c->kv_pages_kept),
                          .kv_pages_total = atomic_load(&c->kv_pages_total),
                          .n_requests = atomic_load(&c->n_requests),
                          .n_failed = atomic_load(&c->n_failed),
                          .n_cancelled = atomic_load(&c->n_cancelled),
                          .n_prompt_tokens = atomic_load(&c->n_prompt_tokens),
                          .n_generated_tokens = atomic_load(&c->n_generated_tokens),
                          .n_drafted = atomic_load(&c->n_drafted),
                          .n_accepted = atomic_load(&c->n_accepted),
                          .n_steps = atomic_load(&c->n_steps),
                          .prefill_tokens_per_s = atomic_load(&c->prefill_tokens_per_s),
                          .decode_tokens_per_s = atomic_load(&c->decode_tokens_per_s),
                          .step_ms = atomic_load(&c->step_ms),
                          .queue_ms = queue_ms(e),
                          .prefill_cost = learnt_cost_line(&c->prefill),
                          .decode_cost = learnt_cost_line(&c->decode)};
}
