/* process_each.c: the rounds of foreach and reduce stages; see process_each.h. */
#include "process/process_each.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "time/env.h"
#include "json/json.h"
#include "json/json_put.h"

struct stage_each {
    const config_each *how;
    json_t *items, *values, *texts; /* of this round, in order; texts: of kinds that give one */
    size_t next;                    /* the first item that has not begun */
    size_t previous;                /* items of the round before; SIZE_MAX: this is the first */
    unsigned n_open, n_rounds, n_items, n_failed;
    size_t n_bytes; /* of values and texts */
    json_t *errors; /* of optional items: [{"item": 3, "error": "..."}] */
    uint64_t start_ns;
    call_context ctx; /* of each item's calls */
    int last_status;
    char last_error[224]; /* of an item that failed */
    call_result ended;    /* how the stage ends, once `over`; its message is the run's */
    char why[256];
    bool over;
    const env *time;
    env_timer *rest;                    /* until the loop has had its turn; NULL: never needed */
    unsigned n_burst;                   /* items that were done at once since then */
    stage_run *open[EACH_PARALLEL_MAX]; /* NULL: free */
};

static bool reduces(const stage_run *s)
{
    return s->stage->reduce.of != NULL;
}

static bool gives_text(const stage_run *s)
{
    return s->stage->kind->gives & GIVES_TEXT;
}

/* ---- the end ---------------------------------------------------------------------------------------- */

static void item_free(stage_run *item)
{
    if (!item) return;
    calls_cancel(item->call);
    find_cancel(item->find);
    hosts_cancel(item->http);
    arena *memory = item->memory;
    process_stage_done(item);
    free(item->fact);
    free(item);
    arena_free(memory);
}

void process_each_cancel(stage_each *e)
{
    if (!e) return;
    if (e->rest) e->time->timer_free(e->rest);
    e->rest = NULL;
    for (unsigned i = 0; i < EACH_PARALLEL_MAX; i++) {
        item_free(e->open[i]);
        e->open[i] = NULL;
    }
    e->n_open = 0;
}

void process_each_free(stage_each *e)
{
    if (!e) return;
    process_each_cancel(e);
    json_decref(e->items);
    json_decref(e->values);
    json_decref(e->texts);
    json_decref(e->errors);
    free(e);
}

void process_each_pause(stage_run *s, bool paused)
{
    for (unsigned i = 0; s->each && i < EACH_PARALLEL_MAX; i++)
        if (s->each->open[i]) calls_pause(s->each->open[i]->call, paused);
}

static double ms_since_start(const stage_each *e)
{
    return (double)(env_now_ns(e->time) - e->start_ns) / 1e6;
}

/* Nothing more is begun or waited for. */
static void end_with(stage_run *s, const call_result *r)
{
    stage_each *e = s->each;
    e->over = true;
    e->ended = *r;
    snprintf(e->why, sizeof e->why, "%s", r->message);
    e->ended.message = e->why;
    e->ended.ms = ms_since_start(e);
}

static void end_alone(stage_run *s, int status, const char *message)
{
    call_result r = process_alone(s->stage, status, message);
    end_with(s, &r);
}

/* ---- what an item came to --------------------------------------------------------------------------- */

static size_t item_number(const stage_run *item)
{
    return item->i_item + 1;
}

/* Its value and text into their places. False: they are too long, or there is no memory. */
static bool process_each_keep(stage_run *s, stage_run *item)
{
    stage_each *e = s->each;
    json_t *value = process_value(item);
    const char *text = gives_text(s) ? process_text(item) : NULL;
    buf size = {0};
    if (value && json_put(&size, value)) size.failed = true;
    e->n_bytes += size.len + (text ? strlen(text) : 0);
    bool kept = value && !size.failed && json_array_set_new(e->values, item->i_item, value) == 0 &&
                (!text || json_array_set_new(e->texts, item->i_item, json_string(text)) == 0);
    buf_done(&size);
    if (!kept) end_alone(s, SHOAL_ENOMEM, "out of memory");
    if (kept && e->n_bytes > EACH_VALUES_MAX_BYTES) {
        end_alone(s, SHOAL_ELIMIT, "its items came to more than 4 MiB: take fewer, or let each say less");
        kept = false;
    }
    return kept;
}

static void fail_item(stage_run *s, const stage_run *item, const call_result *r)
{
    stage_each *e = s->each;
    call_result failed = *r;
    e->n_failed++;
    e->last_status = r->status;
    snprintf(e->last_error, sizeof e->last_error, "item %zu of %zu: %.180s", item_number(item),
             json_array_size(e->items), r->message);
    failed.message = e->last_error;
    if (!s->stage->optional || reduces(s) || r->status == SHOAL_ENOMEM) {
        end_with(s, &failed);
        return;
    }
    s->run->partial = true;
    json_t *o = json_object();
    process_put(s->run, o, "item", json_integer((json_int_t)item_number(item)));
    process_put(s->run, o, "error", json_string(r->message));
    process_add(s->run, e->errors, o);
    e->n_bytes += strlen(r->message);
}

static void note_item(stage_run *item, const call_result *r)
{
    stage_run *s = item->whole;
    s->n_prompt += item->n_prompt;
    s->n_generated += item->n_generated;
    if (r->status)
        fail_item(s, item, r);
    else
        process_each_keep(s, item);
    for (unsigned i = 0; i < EACH_PARALLEL_MAX; i++)
        if (s->each->open[i] == item) s->each->open[i] = NULL;
    s->each->n_open--;
    item_free(item);
}

/* ---- a round ---------------------------------------------------------------------------------------- */

/* A list of n nulls. */
static json_t *nulls(size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, json_null())) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

/* Takes items. SHOAL_ENOMEM, or 0. */
static int begin_round(stage_each *e, json_t *items)
{
    size_t n = json_array_size(items);
    json_decref(e->items);
    json_decref(e->values);
    json_decref(e->texts);
    e->items = items;
    e->values = nulls(n);
    e->texts = nulls(n);
    e->next = 0;
    e->n_bytes = 0;
    e->n_rounds++;
    e->n_items += (unsigned)n;
    return e->values && e->texts ? 0 : SHOAL_ENOMEM;
}

static stage_run *item_new(stage_run *s, size_t i)
{
    stage_run *item = calloc(1, sizeof *item);
    stage_fact *fact = calloc(1, sizeof *fact);
    arena *memory = arena_new(0);
    if (!item || !fact || !memory) {
        free(item);
        free(fact);
        arena_free(memory);
        return NULL;
    }
    fact->label = fact->text = "";
    *item = (stage_run){.run = s->run,
                        .stage = s->stage,
                        .index = s->index,
                        .fact = fact,
                        .memory = memory,
                        .whole = s,
                        .i_item = i,
                        .item = json_array_get(s->each->items, i)};
    return item;
}

static void start_item(stage_run *s)
{
    stage_each *e = s->each;
    stage_run *item = item_new(s, e->next);
    unsigned place = 0;
    call_context ctx = e->ctx;
    ctx.why = s->why.data ? s->why.data : "";
    if (!item) {
        end_alone(s, SHOAL_ENOMEM, "out of memory");
        return;
    }
    while (e->open[place]) place++;
    e->open[place] = item;
    e->n_open++;
    e->next++;
    int rc = process_start_kind(item, &ctx);
    if (rc == 0 && process_is_asking(item)) return;
    call_result r = process_alone(s->stage, rc, rc == SHOAL_ENOMEM ? "out of memory" : item->err.message);
    item->fact->state = rc ? STAGE_FAILED : STAGE_DONE;
    e->n_burst++;
    note_item(item, &r);
}

/* What is left of a reduce stage is one text, or another round of fewer. */
static void next_round(stage_run *s)
{
    stage_each *e = s->each;
    shoal_err err = {0};
    json_t *groups = NULL;
    size_t n = json_array_size(e->items);
    if (n <= 1) {
        end_alone(s, 0, "");
        return;
    }
    int rc = process_groups(e->how, e->texts, &groups, &err);
    if (!rc && json_array_size(groups) >= n) {
        rc = err_set(
            &err, SHOAL_ELIMIT,
            "after round %u there are still %zu texts, of which no two fit into 'most' (%u bytes): let the "
            "stage say less (max_tokens), or read more at once (most)",
            e->n_rounds, n, e->how->most);
        json_decref(groups);
    } else if (!rc) {
        rc = begin_round(e, groups);
    }
    if (rc) end_alone(s, rc, rc == SHOAL_ENOMEM ? "out of memory" : err.message);
}

static void on_rested(void *stage);

/* Enough for now: go on when the loop has had its turn. */
static bool rests(stage_run *s)
{
    stage_each *e = s->each;
    if (e->over || e->n_burst < EACH_BURST) return false;
    if (!e->rest) e->rest = e->time->timer_new(e->time->user, on_rested, s);
    if (!e->rest) {
        end_alone(s, SHOAL_ENOMEM, "out of memory");
        return false;
    }
    e->time->timer_start(e->rest, 0);
    return true;
}

/* Starts as many items as may run, round after round; over: the stage has come to its end. */
static void proceed(stage_run *s)
{
    stage_each *e = s->each;
    e->n_burst = 0;
    while (!e->over) {
        while (!e->over && e->n_open < e->how->parallel && e->next < json_array_size(e->items)) {
            if (rests(s)) return;
            if (!e->over) start_item(s);
        }
        if (e->over || e->n_open) break;
        if (reduces(s))
            next_round(s);
        else
            end_alone(s, 0, "");
    }
}

/* Value and text of the whole stage. */
static void put_whole(stage_run *s)
{
    stage_each *e = s->each;
    size_t n = json_array_size(e->values);
    s->value = reduces(s) ? json_incref(json_array_get(e->values, 0)) : json_incref(e->values);
    if (!s->value) s->value = json_null();
    bool any = false;
    for (size_t i = 0; gives_text(s) && i < n; i++) {
        const char *text = json_string_value(json_array_get(e->texts, i));
        if (!text || !*text) continue;
        if (any) buf_putc(&s->text, '\n');
        buf_puts(&s->text, text);
        any = true;
    }
}

/* All is over: the stage is as one that made a single call. */
static void process_each_conclude(stage_run *s)
{
    stage_each *e = s->each;
    char why[sizeof e->why];
    snprintf(why, sizeof why, "all %u items failed, the last: %.200s", e->n_failed, e->last_error);
    if (e->ended.status == 0 && e->n_failed && e->n_failed == e->n_items)
        end_alone(s, e->last_status, why);
    else if (e->ended.status == 0)
        put_whole(s);
    process_each_cancel(e);
}

/* From the loop. The run may be dead afterwards. */
static void resume(stage_run *s)
{
    proceed(s);
    if (!s->each->over) return;
    process_each_conclude(s);
    call_result ended = s->each->ended;
    process_settle(s, &ended);
}

/* Calls keep the deadline themselves; rules have nobody who does. */
static void on_rested(void *stage)
{
    stage_run *s = stage;
    if (s->each->ctx.deadline_ns && env_now_ns(s->each->time) >= s->each->ctx.deadline_ns)
        end_alone(s, SHOAL_EDEADLINE, "the deadline passed before all items were done");
    resume(s);
}

void process_each_settle(stage_run *item, const call_result *r)
{
    stage_run *s = item->whole;
    note_item(item, r);
    resume(s);
}

int process_each_start(stage_run *s, const call_context *ctx, shoal_err *err)
{
    const config_stage *st = s->stage;
    stage_each *e = s->each = calloc(1, sizeof *e);
    json_t *items = NULL, *groups = NULL;
    if (!e || !(e->errors = json_array())) return err_nomem(err);
    e->how = st->reduce.of ? &st->reduce : &st->each;
    e->time = s->run->in->time;
    e->start_ns = env_now_ns(e->time);
    e->ctx = *ctx;
    int rc = process_items(s, e->how, &items, err);
    if (!rc && reduces(s)) {
        rc = process_groups(e->how, items, &groups, err);
        json_decref(items);
        items = groups;
    }
    if (!rc) rc = begin_round(e, items) ? err_nomem(err) : 0;
    if (rc) return rc;
    proceed(s);
    if (!e->over) return 0;
    process_each_conclude(s);
    return e->ended.status ? err_set(err, e->ended.status, "%s", e->ended.message) : 0;
}

bool process_each_is_over(const stage_run *s)
{
    return s->each->over;
}

void process_each_trace(const stage_run *s, buf *out)
{
    const stage_each *e = s->each;
    json_put_integer(out, "items", (int64_t)e->n_items);
    if (reduces(s)) json_put_integer(out, "rounds", (int64_t)e->n_rounds);
    json_put_real(out, "ms", round(ms_since_start(e) * 1e3) / 1e3, PROCESS_DIGITS);
    if (json_array_size(e->errors)) json_put_json(out, "failed", e->errors, PROCESS_DIGITS);
}
