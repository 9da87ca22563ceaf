/* stage_link.c: steps on their way through the stages, as the engine thread sees them; see stage_link.h. */
#define _GNU_SOURCE
#include "backend/stage_link_impl.h"
#include "base/progress.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 30000 };

/* ---- trips, under the lock ----------------------------------------------------------------------- */

static void trip_done(trip *t)
{
    free(t->items);
    free(t->item_at);
    free(t->numbers);
    free(t->bytes);
    *t = (trip){0};
}

void stage_link_drop_trips(stage_link *l)
{
    for (; l->n_trips > 0; l->n_trips--) {
        trip_done(trip_at(l, 0));
        l->first = (l->first + 1) % SHARDS_MAX;
    }
}

static void count_numbers(const stage_step *s, size_t *ret)
{
    *ret = 2 * s->n_copies;
    for (size_t i = 0; i < s->n_items; i++) *ret += s->items[i].n_pages + 2 * s->items[i].n_marks;
}

/* The step as the message has it; what it names is copied, since it goes to one stage after the other. */
static int trip_fill(trip *t, const stage_step *s)
{
    size_t n, at = 0;
    count_numbers(s, &n);
    t->items = calloc(s->n_items + 1, sizeof *t->items);
    t->item_at = calloc(s->n_items + 1, sizeof *t->item_at);
    t->numbers = calloc(n + 1, sizeof *t->numbers);
    if (!t->items || !t->item_at || !t->numbers) return SHOAL_ENOMEM;
    shoal__v1__stage_step__init(&t->step);
    for (size_t i = 0; i < s->n_items; i++) {
        const stage_item *from = &s->items[i];
        shoal__v1__stage_item__init(&t->items[i]);
        t->items[i].pages = t->numbers + at;
        t->items[i].n_pages = from->n_pages;
        t->items[i].position = (uint32_t)from->position;
        t->items[i].n = (uint32_t)from->n;
        t->items[i].n_out = (uint32_t)from->n_out;
        t->items[i].state = from->state;
        t->item_at[i] = &t->items[i];
        memcpy(t->numbers + at, from->pages, from->n_pages * sizeof *from->pages);
        at += from->n_pages;
        t->items[i].marks = t->numbers + at;
        t->items[i].n_marks = 2 * from->n_marks;
        for (size_t k = 0; k < from->n_marks; k++) {
            t->numbers[at++] = from->marks[k].position;
            t->numbers[at++] = from->marks[k].state;
        }
    }
    t->step.items = t->item_at;
    t->step.n_items = s->n_items;
    t->step.copies = t->numbers + at;
    t->step.n_copies = 2 * s->n_copies;
    for (size_t i = 0; i < s->n_copies; i++) {
        t->numbers[at++] = s->copies[i].from;
        t->numbers[at++] = s->copies[i].to;
    }
    return 0;
}

/* ---- the engine's side --------------------------------------------------------------------------- */

static struct timespec in_ms(unsigned ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Under the lock. */
static void note_loss(stage_link *l, bool fine)
{
    snprintf(l->wrong, sizeof l->wrong, "%s", fine ? "" : l->why.message);
}

static bool link_ready(void *user, unsigned wait_ms)
{
    stage_link *l = user;
    struct timespec until = in_ms(wait_ms);
    pthread_mutex_lock(&l->lock);
    bool lost = l->broken;
    l->broken = false;
    progress_end(); /* other machines are waited for */
    while (!lost && !l->all_ready && pthread_cond_timedwait(&l->changed, &l->lock, &until) == 0) continue;
    progress_begin();
    bool there = !lost && l->all_ready && !l->broken;
    note_loss(l, there);
    pthread_mutex_unlock(&l->lock);
    return there;
}

static int link_send(void *user, const stage_step *step, const float *rows, size_t n_rows)
{
    stage_link *l = user;
    trip t = {.n_rows = n_rows, .n_wanted = stage_wanted(step), .finite = true};
    size_t n;
    t.bytes = size_mul(n_rows, l->row_bytes, &n) ? NULL : malloc(n + 1);
    if (!t.bytes || trip_fill(&t, step)) {
        trip_done(&t);
        return SHOAL_EUNAVAILABLE; /* what runs is computed again, when there is memory */
    }
    rows_wire_put(l->o.wire, rows, n_rows, l->o.n_embd, t.bytes);
    t.finite = rows_wire_finite(l->o.wire, t.bytes, n_rows, l->o.n_embd);
    pthread_mutex_lock(&l->lock);
    bool go = l->all_ready && !l->broken;
    note_loss(l, go);
    assert(l->n_trips < SHARDS_MAX);
    t.number = ++l->last_number;
    if (go) *trip_at(l, l->n_trips++) = t;
    pthread_mutex_unlock(&l->lock);
    if (go)
        uv_async_send(&l->async);
    else
        trip_done(&t);
    return go ? 0 : SHOAL_EUNAVAILABLE;
}

static int link_receive(void *user, float *rows, size_t n_wanted)
{
    stage_link *l = user;
    trip t = {0};
    pthread_mutex_lock(&l->lock);
    progress_end();
    while (!l->broken && l->n_trips > 0 && !trip_at(l, 0)->back) pthread_cond_wait(&l->changed, &l->lock);
    progress_begin();
    bool there = !l->broken && l->n_trips > 0;
    note_loss(l, there);
    if (there) {
        t = *trip_at(l, 0);
        *trip_at(l, 0) = (trip){0};
        l->first = (l->first + 1) % SHARDS_MAX;
        l->n_trips--;
    }
    pthread_mutex_unlock(&l->lock);
    if (!there) return SHOAL_EUNAVAILABLE;
    assert(t.n_wanted == n_wanted);
    if (t.bad)
        snprintf(
            l->wrong, sizeof l->wrong,
            "the stage at %.300s gave back numbers that are not finite: its memory, its processor or its "
            "copy of the model may be damaged",
            t.bad->address);
    rows_wire_get(l->o.wire, t.bytes, n_wanted, l->o.n_embd, rows);
    trip_done(&t);
    return 0;
}

static const char *link_why(void *user)
{
    const stage_link *l = user;
    return *l->wrong ? l->wrong : NULL;
}

/* ---- life ---------------------------------------------------------------------------------------- */

/* Whoever proves to be the node that the address names will do: relays belong to members alone. */
static int link_open_tls(stage_link *l, const char *member, shoal_err *err)
{
    char cert[4096], ca[4096], crl[4096];
    if (!member) return 0;
    snprintf(cert, sizeof cert, "%s/member.pem", member);
    snprintf(ca, sizeof ca, "%s/ca.crt", member);
    snprintf(crl, sizeof crl, "%s/crl.pem", member);
    const tls_options o = {.cert_file = cert, .key_file = cert, .ca_file = ca, .crl_file = crl};
    return tls_context_new(&l->tls, TLS_CLIENT, &o, err);
}

static int link_wait_for_all(stage_link *l, shoal_err *err)
{
    struct timespec until = in_ms(l->o.wait_ms ? l->o.wait_ms : WAIT_MS);
    pthread_mutex_lock(&l->lock);
    progress_end();
    while (!l->all_ready && l->why.code != SHOAL_EINVALID &&
           pthread_cond_timedwait(&l->changed, &l->lock, &until) == 0)
        continue;
    progress_begin();
    int rc = 0;
    if (!l->all_ready)
        rc = err_set(err, l->why.code ? l->why.code : SHOAL_EUNAVAILABLE, "%s",
                     l->why.code ? l->why.message : "the other stages did not come");
    pthread_mutex_unlock(&l->lock);
    return rc;
}

static void link_least(size_t *at, size_t n)
{
    if (n < *at) *at = n;
}

static void fill_table(stage_link *l)
{
    l->table = (shards){.n_stages = l->n_hops + 1,
                        .part = l->o.part,
                        .n_ctx = SIZE_MAX,
                        .n_pages = SIZE_MAX,
                        .max_items = SIZE_MAX,
                        .max_tokens = SIZE_MAX,
                        .user = l,
                        .ready = link_ready,
                        .send = link_send,
                        .receive = link_receive,
                        .why = link_why};
    for (size_t i = 0; i < l->n_hops; i++) {
        link_least(&l->table.n_ctx, l->hops[i].facts.n_ctx);
        link_least(&l->table.n_pages, l->hops[i].facts.n_pages);
        link_least(&l->table.max_items, l->hops[i].facts.max_items);
        link_least(&l->table.max_tokens, l->hops[i].facts.max_tokens);
    }
}

static int open_link(stage_link *l, const stage_link_options *o, shoal_err *err)
{
    l->row_bytes = rows_wire_bytes(o->wire, o->n_embd);
    if (o->n == 0 || o->n >= SHARDS_MAX || l->row_bytes == 0)
        return err_set(err, SHOAL_EINVALID, "%zu further stages; there can be 1 to %d", o->n, SHARDS_MAX - 1);
    l->o = *o;
    l->digest = strdup(o->digest);
    l->name = strdup(o->name ? o->name : "");
    int rc = l->digest && l->name ? link_open_tls(l, o->member, err) : err_nomem(err);
    if (rc == 0) rc = stage_link_start(l, err);
    if (rc == 0) rc = link_wait_for_all(l, err);
    if (rc == 0) fill_table(l);
    return rc;
}

int stage_link_open(stage_link **ret, const stage_link_options *o, shoal_err *err)
{
    stage_link *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &steady);
    pthread_condattr_destroy(&steady);
    pthread_mutex_init(&l->lock, NULL);
    int rc = open_link(l, o, err);
    if (rc) {
        stage_link_close(l);
        return rc;
    }
    *ret = l;
    return 0;
}

const shards *stage_link_shards(const stage_link *l)
{
    return &l->table;
}

void stage_link_get_stats(stage_link *l, stage_link_stats *ret)
{
    pthread_mutex_lock(&l->lock);
    *ret = l->stats;
    pthread_mutex_unlock(&l->lock);
}

void stage_link_close(stage_link *l)
{
    if (!l) return;
    if (l->has_thread) {
        pthread_mutex_lock(&l->lock);
        l->closing = true;
        pthread_mutex_unlock(&l->lock);
        uv_async_send(&l->async);
        uv_thread_join(&l->thread);
    }
    stage_link_drop_trips(l);
    for (size_t i = 0; i < l->n_hops; i++) free(l->hops[i].address);
    tls_context_unref(l->tls);
    buf_done(&l->scratch);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l->digest);
    free(l->name);
    free(l);
}
